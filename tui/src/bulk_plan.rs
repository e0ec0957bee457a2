//! One act for many keys, before it is applied: what it does to each, and to which it does nothing.

use farebox_ledger::{Amount, CreditKind, Key, KeyEdit, KeyStatus, Said};

use crate::clock;
use crate::plan::{ActPlan, Planned};

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
    /// Each keeps its label.
    Edit(KeyEdit),
}

/// What an edit changes, in one line.
pub(crate) fn words(edit: &KeyEdit) -> String {
    fn word<T>(
        name: &str,
        said: &Said<T>,
        none: &str,
        shown: impl Fn(&T) -> String,
    ) -> Option<String> {
        match said {
            Said::Keep => None,
            Said::Clear => Some(none.to_owned()),
            Said::Set(value) => Some(format!("{name} {}", shown(value))),
        }
    }
    let words = [
        word("models", &edit.models, "all models", |slugs| {
            slugs.join(", ")
        }),
        word("last day", &edit.expires_at, "never expires", |end| {
            clock::last_day(*end)
        }),
        word(
            "requests/s",
            &edit.rate,
            "requests/s the default",
            u32::to_string,
        ),
        word(
            "at once",
            &edit.concurrency,
            "at once the default",
            u32::to_string,
        ),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" · ")
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
            Self::Edit(edit) => ActPlan::Edit(Planned {
                settings: edit.clone().over(key.settings.clone()),
                edit: edit.clone(),
            }),
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
            (Self::Edit(edit), _) if edit.clone().over(key.settings.clone()) == key.settings => {
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
            Self::Edit(_) => "Edit",
        }
    }
}
