//! How webhooks are doing, for status and alerts.

use std::sync::{Mutex, PoisonError};

use farebox_ledger::Timestamp;
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
    /// What was wrong with the last try, until one arrives.
    pub trouble: Option<String>,
}

impl WebhookSeen {
    /// As `/status` shows it.
    #[must_use]
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
            "reason": self.disabled.as_ref().map(|(_, why)| why).or(self.trouble.as_ref()),
        })
    }
}

/// All webhooks, as they were last seen.
#[derive(Debug, Default)]
pub struct WebhookBoard(Mutex<Vec<WebhookSeen>>);

impl WebhookBoard {
    /// Notes all of them.
    pub fn note(&self, seen: Vec<WebhookSeen>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// As they were last noted.
    #[must_use]
    pub fn seen(&self) -> Vec<WebhookSeen> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
