//! Webhooks as the ledger knows them: how far each has been handed events, and what became of every delivery.
//!
//! No money moves by any of it. What is lost is delivered twice, never not at all.

use sha2::{Digest as _, Sha256};

use super::id::number_of;
use crate::{Event, OperationId, Timestamp};

/// A webhook in the ledger: a number that follows from its address, so that every gateway gives it the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookId(pub(crate) i64);

impl WebhookId {
    /// Of this address.
    #[must_use]
    pub fn of(url: &str) -> Self {
        // Positive, because people read it in a database.
        Self(number_of(Sha256::new_with_prefix(url)).cast_signed() & i64::MAX)
    }
}

/// What the ledger has of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownWebhook {
    /// Follows from its address.
    pub id: WebhookId,
    /// Where it is.
    pub url: String,
    /// When it was first seen: it gets what is told from then on.
    pub since: Timestamp,
    /// The newest event that has a row of delivery to it, or was not wanted.
    pub handed: Option<OperationId>,
    /// When and why nothing is delivered to it any more.
    pub disabled: Option<(Timestamp, String)>,
    /// Deliveries that wait; a hundred stands for that many or more.
    pub waiting: u64,
}

/// What of a webhook's deliveries a gateway can take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedDeliveries {
    /// Whose.
    pub webhook: WebhookId,
    /// How many more it may try.
    pub free: u32,
    /// How many it is trying.
    pub running: u32,
}

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// To whom.
    pub webhook: WebhookId,
    /// What.
    pub event: Event,
    /// How often it was tried.
    pub tries: u32,
}

/// The delivery that waits after the most tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDelivery {
    /// What.
    pub event: OperationId,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried again.
    pub due: Timestamp,
    /// What was wrong with the last try.
    pub why: String,
    /// When the newest delivery that has arrived there was due.
    pub arrived: Option<Timestamp>,
}

/// What became of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It is there.
    Delivered,
    /// It is tried again then.
    Again {
        /// When.
        due: Timestamp,
        /// What was wrong.
        why: String,
    },
    /// It is not tried again by itself.
    GivenUp {
        /// What was wrong.
        why: String,
    },
}

/// One step of delivering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStep {
    /// A webhook is there. One that is known stays as it is.
    Register {
        /// Its address.
        url: String,
        /// It gets what is told after this event.
        handed: Option<OperationId>,
        /// When.
        at: Timestamp,
    },
    /// These events get rows of delivery, unless they have them, and everything up to `handed` was looked at.
    Hand {
        /// To whom.
        webhook: WebhookId,
        /// What it wants.
        events: Vec<OperationId>,
        /// The last event that was looked at.
        handed: OperationId,
        /// When they are due.
        due: Timestamp,
    },
    /// One try has ended, well or not.
    Tried {
        /// To whom.
        webhook: WebhookId,
        /// What.
        event: OperationId,
        /// How often by now.
        tries: u32,
        /// What became of it.
        outcome: DeliveryOutcome,
    },
    /// Nothing is delivered to it any more.
    Disable {
        /// Whom.
        webhook: WebhookId,
        /// When.
        at: Timestamp,
        /// Why.
        why: String,
    },
    /// Delivers again: what was given up is due.
    Enable {
        /// Whom.
        webhook: WebhookId,
        /// When what was given up is due.
        due: Timestamp,
    },
    /// Delivers these events again, whether or not they were delivered.
    Replay {
        /// To whom.
        webhook: WebhookId,
        /// What.
        events: Vec<OperationId>,
        /// When.
        due: Timestamp,
    },
}

/// Steps of delivering events, to note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySteps(pub Vec<DeliveryStep>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_has_the_number_of_its_address() {
        let one = WebhookId::of("https://shop.example/hook");
        assert_eq!(one, WebhookId::of("https://shop.example/hook"));
        assert_ne!(one, WebhookId::of("https://shop.example/hook2"));
        assert!(one.0 >= 0);
    }
}
