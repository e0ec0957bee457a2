//! How webhooks are doing, for status and alerts.

use std::sync::Mutex;

use farebox_ledger::{Timestamp, lock};
use serde_json::{Value, json};

/// A webhook as this gateway sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSeen {
    /// Its address.
    pub url: String,
    /// Since when and why nothing is delivered to it any more.
    pub disabled: Option<(Timestamp, String)>,
    /// Deliveries that wait; a hundred stands for that many or more.
    pub waiting: u64,
    /// Since when every try has failed, as far as this gateway knows, and what was wrong with the last one.
    pub trouble: Option<(Timestamp, String)>,
}

/// A webhook that has failed for this long is told: its receiver is not only being restarted.
const LONG_MS: i64 = 3_600_000;

impl WebhookSeen {
    /// Since when and why nothing has arrived there, if that has lasted for an hour.
    pub fn failing_long(&self, now: Timestamp) -> Option<&(Timestamp, String)> {
        let trouble = self.trouble.as_ref().filter(|_| self.disabled.is_none());
        trouble.filter(|(since, _)| now.millis().saturating_sub(since.millis()) >= LONG_MS)
    }

    /// As `/status` shows it.
    pub fn document(&self) -> Value {
        let state = match (&self.disabled, &self.trouble) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "failing",
            (None, None) => "ok",
        };
        json!({
            "url": self.url,
            "state": state,
            "waiting": self.waiting,
            "disabled_at": self.disabled.as_ref().map(|(at, _)| at),
            "reason": self.disabled.as_ref().or(self.trouble.as_ref()).map(|(_, why)| why),
        })
    }
}

/// All webhooks, as they were last seen.
#[derive(Debug, Default)]
pub struct WebhookBoard(Mutex<Vec<WebhookSeen>>);

impl WebhookBoard {
    /// Notes all of them.
    pub fn note(&self, seen: Vec<WebhookSeen>) {
        *lock(&self.0) = seen;
    }

    /// As they were last noted.
    pub fn seen(&self) -> Vec<WebhookSeen> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_failures_is_long_and_a_disabled_webhook_has_its_own_alert() {
        let at = Timestamp::from_millis;
        let mut seen = WebhookSeen {
            url: "https://a.example".to_owned(),
            disabled: None,
            waiting: 1,
            trouble: Some((at(5_000), "it answered 500".to_owned())),
        };
        assert_eq!(seen.failing_long(at(3_604_999)), None);
        let long = seen.failing_long(at(3_605_000));
        assert_eq!(long.map(|(_, why)| why.as_str()), Some("it answered 500"));
        assert_eq!(seen.document()["reason"], "it answered 500");
        seen.disabled = Some((at(6_000), "it answered 410 Gone".to_owned()));
        assert_eq!(seen.failing_long(at(3_605_000)), None);
        assert_eq!(seen.document()["reason"], "it answered 410 Gone");
    }
}
