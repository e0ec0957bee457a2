//! The ledger's clock and randomness, and days in the console's format; all other code gets instants passed in.

use farebox_ledger::Timestamp;
pub(crate) use farebox_ledger::clock::{now, random};

/// Random bits for operation and key ids.
pub(crate) fn random_bits() -> u128 {
    u128::from_be_bytes(random())
}

/// The first instant after a day written `YYYY-MM-DD` (UTC): when a key that expires on that day stops working.
pub(crate) fn end_of_day(text: &str) -> Option<Timestamp> {
    let date: jiff::civil::Date = text.parse().ok()?;
    let start = date
        .tomorrow()
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()?;
    Some(Timestamp::from_millis(start.timestamp().as_millisecond()))
}

/// The day before an instant, as [`end_of_day`] reads it back.
pub(crate) fn last_day(instant: Timestamp) -> String {
    Timestamp::from_millis(instant.millis().saturating_sub(1))
        .to_string()
        .chars()
        .take(10)
        .collect()
}

/// An instant written in RFC 3339, as the gateway writes them.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|instant| Timestamp::from_millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_the_next_midnight() {
        let end = end_of_day("2026-12-31").unwrap();
        assert_eq!(end.to_string(), "2027-01-01T00:00:00.000Z");
        assert_eq!(last_day(end), "2026-12-31");
        assert_eq!(parse("2027-01-01T00:00:00Z"), Some(end));
        for wrong in ["", "2026-13-01", "31.12.2026", "tomorrow"] {
            assert_eq!(end_of_day(wrong), None, "{wrong}");
        }
    }
}
