//! An upstream's answer before it is judged. The network and the simulated provider both produce one.

use std::time::Duration;

use super::stream::AnswerBody;

/// An answer before it is judged.
pub(super) struct UnjudgedReply {
    pub(super) status: u16,
    pub(super) kind: DeclaredType,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: AnswerBody,
}

/// The content type an answer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredType {
    Json,
    /// Server-sent events.
    Events,
    /// Something else, or no type.
    Other,
}

impl DeclaredType {
    pub(super) fn of(content_type: &str) -> Self {
        let essence = content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream" => Self::Events,
            "application/json" => Self::Json,
            other if other.ends_with("+json") => Self::Json,
            _ => Self::Other,
        }
    }
}

/// Reads a `retry-after` header: seconds, possibly fractional, or a date, which becomes a wait relative to the answer's own `date`.
pub(super) fn retry_after(value: &str, date: &str) -> Option<Duration> {
    if let Ok(secs) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(secs.clamp(0.0, 86_400.0)).ok();
    }
    let time = |text: &str| {
        jiff::fmt::rfc2822::parse(text.trim())
            .ok()
            .map(|zoned| zoned.timestamp())
    };
    Some(Duration::try_from(time(value)?.duration_since(time(date)?)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "Sat, 21 Nov 2026 10:00:00 GMT";
        assert_eq!(retry_after("12", now), Some(Duration::from_secs(12)));
        assert_eq!(retry_after(" 0.5 ", now), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("-3", now), Some(Duration::ZERO));
        assert_eq!(retry_after("1e300", now), Some(Duration::from_secs(86_400)));
        assert_eq!(retry_after("NaN", now), None);
        assert_eq!(
            retry_after("Sat, 21 Nov 2026 10:00:30 GMT", now),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            retry_after("Sat, 21 Nov 2026 09:00:30 GMT", now),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_after("Sat, 21 Nov 2026 10:00:30 GMT", ""), None);
        assert_eq!(retry_after("soon", now), None);
    }
}
