//! Webhooks: where sellers' programs hear of events, which, and what they are signed with.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A receiver of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its address, which is no secret; encrypted, except on this machine.
    pub url: String,
    /// What deliveries are signed with; two while one is replaced.
    pub secrets: Vec<WebhookSecret>,
    /// What it wants to hear.
    pub events: EventFilter,
}

impl Webhook {
    /// Most secrets at once.
    // One, and while it is being replaced its successor: each delivery is signed with both.
    pub(crate) const MOST_SECRETS: usize = 2;

    /// How it is called in messages.
    pub fn name(&self) -> &str {
        &self.url
    }
}

/// A secret of Standard Webhooks. `Debug` never prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// Reads `whsec_` and 24 to 64 bytes in base64; the error says what is wrong, never what it is.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let coded = text
            .strip_prefix("whsec_")
            .ok_or("does not begin with whsec_")?;
        let bytes = STANDARD
            .decode(coded)
            .map_err(|_| "is not base64 behind whsec_")?;
        match bytes.len() {
            24..=64 => Ok(Self(bytes)),
            ..24 => Err("has fewer than 24 bytes"),
            _ => Err("has more than 64 bytes"),
        }
    }

    /// An empty one, where secrets are not read.
    pub(super) const fn unread() -> Self {
        Self(Vec::new())
    }

    /// Whether it was not read.
    pub const fn is_unread(&self) -> bool {
        self.0.is_empty()
    }

    /// What to sign with.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.clone()
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WebhookSecret(…)")
    }
}

/// What gateways tell that stands in no ledger.
pub(super) const DIRECT_EVENTS: [&str; 6] = [
    "ledger.stopped",
    "target.paused",
    "target.resumed",
    "provider.refused_us",
    "alert.began",
    "alert.ended",
];

/// Which events a webhook wants: names, and groups like `balance.*`; all if it names none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter(pub(super) Vec<String>);

impl EventFilter {
    /// Whether it wants events of this name.
    pub fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| covers(wanted, name))
    }
}

/// Whether a name or group in a filter covers an event.
pub(super) fn covers(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix(".*") {
        Some(group) => name
            .strip_prefix(group)
            .is_some_and(|rest| rest.starts_with('.')),
        None => wanted == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_events_and_groups() {
        let filter = EventFilter(vec!["balance.*".to_owned(), "key.created".to_owned()]);
        for (name, wanted) in [
            ("balance.low", true),
            ("balances.low", false),
            ("key.created", true),
            ("key.revoked", false),
        ] {
            assert_eq!(filter.wants(name), wanted, "{name}");
        }
        assert!(EventFilter::default().wants("anything"));
    }

    #[test]
    fn secrets_are_what_the_standard_says_and_are_never_shown() {
        let good = format!("whsec_{}", STANDARD.encode([7; 32]));
        let secret = WebhookSecret::parse(&good).unwrap();
        assert_eq!(secret.bytes(), [7; 32]);
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        for bad in ["secret-secret", "whsec_!!!", &short] {
            assert!(WebhookSecret::parse(bad).is_err(), "{bad}");
        }
    }
}
