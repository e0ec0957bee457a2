//! One act for many keys, before it is applied: what it does to each, and to which it does nothing.

use farebox_ledger::{Amount, CreditKind, Key, KeySettings, KeyStatus, Timestamp};

use crate::clock;
use crate::plan::ActPlan;

/// What is done to each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BulkPlan {
    Credit {
        kind: CreditKind,
        amount: Amount,
        reference: String,
    },
    Block,
    Unblock,
    Revoke,
    Set(BulkEdit),
}

/// What an edit of many keys changes; each keeps what is `None`, and its label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BulkEdit {
    pub(crate) models: Option<Option<Vec<String>>>,
    pub(crate) expires_at: Option<Option<Timestamp>>,
    pub(crate) rate: Option<Option<u32>>,
    pub(crate) concurrency: Option<Option<u32>>,
}

impl BulkEdit {
    /// The settings of one key afterwards.
    fn of(&self, settings: &KeySettings) -> KeySettings {
        KeySettings {
            label: settings.label.clone(),
            models: (self.models.clone()).unwrap_or_else(|| settings.models.clone()),
            expires_at: self.expires_at.unwrap_or(settings.expires_at),
            rate: self.rate.unwrap_or(settings.rate),
            concurrency: self.concurrency.unwrap_or(settings.concurrency),
        }
    }

    /// What changes, in one line.
    pub(crate) fn words(&self) -> String {
        let number = |number: Option<u32>| {
            number.map_or_else(|| "the default".to_owned(), |most| most.to_string())
        };
        let words = [
            self.models.as_ref().map(|models| match models {
                None => "all models".to_owned(),
                Some(models) => format!("models {}", models.join(", ")),
            }),
            self.expires_at.map(|end| match end {
                None => "never expires".to_owned(),
                Some(end) => format!("last day {}", clock::last_day(end)),
            }),
            self.rate.map(|rate| format!("requests/s {}", number(rate))),
            self.concurrency
                .map(|most| format!("at once {}", number(most))),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl BulkPlan {
    /// The act on one key.
    pub(crate) fn of(&self, key: &Key) -> ActPlan {
        match self {
            Self::Credit {
                kind,
                amount,
                reference,
            } => ActPlan::Credit {
                kind: kind.clone(),
                amount: *amount,
                reference: format!("{reference}-{}", key.id),
            },
            Self::Block => ActPlan::Block,
            Self::Unblock => ActPlan::Unblock,
            Self::Revoke => ActPlan::Revoke,
            Self::Set(edit) => ActPlan::Set(edit.of(&key.settings)),
        }
    }

    /// Why it does nothing to a key.
    pub(crate) fn problem(&self, key: &Key) -> Option<String> {
        let adjusts = matches!(self, Self::Credit { kind, .. } if *kind != CreditKind::TopUp);
        match (self, key.stored_status) {
            (_, KeyStatus::Revoked) if !adjusts => Some("revoked already".to_owned()),
            (Self::Block, KeyStatus::Blocked) => Some("blocked already".to_owned()),
            (Self::Unblock, status) if status != KeyStatus::Blocked => {
                Some("served already".to_owned())
            }
            (Self::Set(edit), _) if edit.of(&key.settings) == key.settings => {
                Some("has this already".to_owned())
            }
            (Self::Credit { .. }, _) => self.of(key).after(key.customer.account)?.err(),
            _ => None,
        }
    }

    /// Its name, as a title.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Credit {
                kind: CreditKind::TopUp,
                ..
            } => "Top up",
            Self::Credit { .. } => "Adjust",
            Self::Block => "Block",
            Self::Unblock => "Serve again",
            Self::Revoke => "Revoke",
            Self::Set(_) => "Edit",
        }
    }
}
