//! An act before it is applied: its kind, its operation id, and its effect on the balance.
//!
//! The operation id is fixed when the form opens and changes only after a known outcome, so an act is applied once however often it
//! is sent. Contains no secret.

use farebox_ledger::{
    Account, Amount, CreditKind, Key, KeyId, KeySettings, KeyStatus, LINK_LIFETIME, OperationId,
    Timestamp,
};

/// The act itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActPlan {
    Credit {
        kind: CreditKind,
        amount: Amount,
        reference: String,
    },
    Create {
        settings: KeySettings,
        first: Option<(Amount, String)>,
    },
    Set(KeySettings),
    Block,
    Unblock,
    Revoke,
    Rotate {
        overlap: PlannedOverlap,
    },
    Link,
}

/// How long an old secret still works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedOverlap {
    None,
    Hour,
    Day,
}

impl PlannedOverlap {
    /// All of them, as offered by forms.
    pub(crate) const WORDS: &'static [&'static str] = &["0", "1h", "24h"];

    /// Parses one of [`PlannedOverlap::WORDS`].
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "0" => Some(Self::None),
            "1h" => Some(Self::Hour),
            "24h" => Some(Self::Day),
            _ => None,
        }
    }

    /// When the old secret stops working; `None` is at once.
    pub(crate) fn until(self, now: Timestamp) -> Option<Timestamp> {
        let hours = match self {
            Self::None => return None,
            Self::Hour => 1,
            Self::Day => 24,
        };
        Some(Timestamp::from_millis(
            now.millis().saturating_add(hours * 3_600_000),
        ))
    }
}

/// A plan with everything needed to send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) operation: OperationId,
    pub(crate) key: KeyId,
    pub(crate) label: String,
    pub(crate) plan: ActPlan,
    pub(crate) actor: String,
    pub(crate) at: Timestamp,
}

impl ActPlan {
    /// Its name, as a title and in the list of operations.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Credit {
                kind: CreditKind::TopUp,
                ..
            } => "Top up",
            Self::Credit {
                kind: CreditKind::Adjust { .. },
                ..
            } => "Adjust",
            Self::Credit {
                kind: CreditKind::WriteOff { .. },
                ..
            } => "Write off",
            Self::Credit {
                kind: CreditKind::Refund { .. },
                ..
            } => "Refund",
            Self::Create { .. } => "New key",
            Self::Set(_) => "Edit",
            Self::Block => "Block",
            Self::Unblock => "Unblock",
            Self::Revoke => "Revoke",
            Self::Rotate { .. } => "Rotate",
            Self::Link => "Dashboard link",
        }
    }

    /// The effect of `y`, in words.
    pub(crate) const fn apply_text(&self) -> &'static str {
        match self {
            Self::Credit {
                kind: CreditKind::TopUp,
                ..
            } => "apply the top-up",
            Self::Credit {
                kind: CreditKind::Adjust { .. },
                ..
            } => "apply the adjustment",
            Self::Credit {
                kind: CreditKind::WriteOff { .. },
                ..
            } => "write it off",
            Self::Credit {
                kind: CreditKind::Refund { .. },
                ..
            } => "apply the refund",
            Self::Create { .. } => "create the key",
            Self::Set(_) => "save the settings",
            Self::Block => "block the key",
            Self::Unblock => "serve the key again",
            Self::Revoke => "revoke the key permanently",
            Self::Rotate { .. } => "make a new secret",
            Self::Link => "make the link",
        }
    }

    /// Whether its outcome brings a secret that is shown once.
    pub(crate) const fn brings_secret(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Rotate { .. } | Self::Link)
    }

    /// The account afterwards, by the ledger's own rules; `None` if no money moves, an error if the rules refuse.
    pub(crate) fn after(&self, account: Account) -> Option<Result<Account, String>> {
        let after = match self {
            Self::Credit {
                kind: CreditKind::TopUp,
                amount,
                ..
            } => account.top_up(*amount),
            Self::Credit {
                kind: CreditKind::Adjust { .. },
                amount,
                ..
            } => account.adjust(*amount),
            Self::Credit {
                kind: CreditKind::Refund { request, .. },
                amount,
                ..
            } => account.refund(*amount, *request, *amount, Amount::ZERO),
            Self::Credit {
                kind: CreditKind::WriteOff { .. },
                amount,
                ..
            } => account.write_off(*amount),
            Self::Create {
                first: Some((amount, _)),
                ..
            } => account.top_up(*amount),
            _ => return None,
        };
        Some(after.map_err(|refusal| refusal.to_string()))
    }

    /// Name and value of each fact that a review shows.
    pub(crate) fn facts(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        match self {
            Self::Credit {
                kind,
                amount,
                reference,
            } => credit_facts(kind, *amount, reference),
            Self::Create { settings, first } => {
                let mut facts = settings_facts(settings);
                facts.push(match first {
                    Some((amount, reference)) => (
                        "First money",
                        format!("{amount} USD, reference {reference}"),
                    ),
                    None => (
                        "First money",
                        "none: every request is refused until the first top-up".to_owned(),
                    ),
                });
                facts
            }
            Self::Set(settings) => settings_facts(settings),
            Self::Block => {
                vec![(
                    "Effect",
                    "new requests are refused at once; running streams end at their next extension"
                        .to_owned(),
                )]
            }
            Self::Unblock => vec![(
                "Effect",
                "requests are served again while money lasts".to_owned(),
            )],
            Self::Revoke => vec![
                (
                    "Effect",
                    "requests are refused permanently; running streams end at their next extension"
                        .to_owned(),
                ),
                (
                    "Balance",
                    "stays on the key, as does the history; nothing is deleted".to_owned(),
                ),
            ],
            Self::Rotate { overlap } => {
                let old = match overlap.until(now) {
                    None => "stops working at once".to_owned(),
                    Some(until) => format!("works until {}", crate::format::stamp(until)),
                };
                vec![
                    ("Old secret", old),
                    (
                        "Stays",
                        "balance, settings and history; dashboard sessions end".to_owned(),
                    ),
                ]
            }
            Self::Link => vec![(
                "Effect",
                format!(
                    "a link that signs in to this key's dashboard once, within {LINK_LIFETIME}"
                ),
            )],
        }
    }
}

fn credit_facts(kind: &CreditKind, amount: Amount, reference: &str) -> Vec<(&'static str, String)> {
    let adjusts = matches!(kind, CreditKind::Adjust { .. });
    let sign = if adjusts && amount.is_positive() {
        "+"
    } else {
        ""
    };
    let mut facts = vec![("Amount", format!("{sign}{amount} USD"))];
    match kind {
        CreditKind::TopUp => {}
        CreditKind::Adjust { reason } | CreditKind::WriteOff { reason } => {
            facts.push(("Reason", reason.clone()))
        }
        CreditKind::Refund { request, reason } => {
            facts.extend([
                ("Request", format!("req_{request}")),
                ("Reason", reason.clone()),
            ]);
        }
    }
    facts.push(("Reference", reference.to_owned()));
    facts
}

/// Settings in words.
pub(crate) fn settings_facts(settings: &KeySettings) -> Vec<(&'static str, String)> {
    let models = settings
        .models
        .as_ref()
        .map_or_else(|| "all".to_owned(), |models| models.join(", "));
    let last = settings
        .expires_at
        .map_or_else(|| "never expires".to_owned(), crate::clock::last_day);
    vec![
        ("Label", settings.label.clone()),
        ("Models", models),
        ("Last day", last),
        ("Limits", limits(settings)),
    ]
}

/// Rate and concurrency in words.
pub(crate) fn limits(settings: &KeySettings) -> String {
    let rate = settings.rate.map_or_else(
        || format!("{} req/s", KeySettings::RATE),
        |rate| format!("{rate} req/s"),
    );
    let at_once = settings.concurrency.map_or_else(
        || format!("{} at once", KeySettings::CONCURRENCY),
        |limit| format!("{limit} at once"),
    );
    format!("{rate}, {at_once}")
}

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
        }
    }
}
