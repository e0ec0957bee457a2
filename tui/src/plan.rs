//! An act before it is applied: its kind, its operation id, and its effect on the balance.
//!
//! The operation id is fixed when the form opens and changes only after a known outcome, so an act is applied once however often it
//! is sent. Contains no secret.

use farebox_ledger::{
    Account, Amount, CreditKind, CustomerEdit, CustomerId, CustomerSettings, KeyEdit, KeySettings,
    LINK_LIFETIME, OperationId, Scope, Timestamp,
};

/// The act itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActPlan {
    Credit {
        kind: CreditKind,
        amount: Amount,
        reference: String,
    },
    /// A key, of this customer or of one of its own.
    Create {
        settings: KeySettings,
        first: Option<(Amount, String)>,
        customer: Option<CustomerId>,
    },
    Edit(Planned<KeyEdit, KeySettings>),
    CreateCustomer(CustomerSettings),
    EditCustomer(Planned<CustomerEdit, CustomerSettings>),
    Suspend,
    Resume,
    Close,
    /// From the customer that the act is about.
    Move {
        into: CustomerId,
        amount: Amount,
        reference: String,
    },
    Block,
    Unblock,
    Revoke,
    Rotate {
        overlap: PlannedOverlap,
    },
    Link,
}

/// An edit, and the settings that it leaves if nobody else changes them meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned<E, S> {
    pub(crate) edit: E,
    pub(crate) settings: S,
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
    /// The key or customer that it changes, or makes.
    pub(crate) of: Scope,
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
            Self::Edit(_) => "Edit",
            Self::CreateCustomer(_) => "New customer",
            Self::EditCustomer(_) => "Edit customer",
            Self::Suspend => "Suspend",
            Self::Resume => "Resume",
            Self::Close => "Close",
            Self::Move { .. } => "Move",
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
            Self::Edit(_) | Self::EditCustomer(_) => "save the settings",
            Self::CreateCustomer(_) => "create the customer",
            Self::Suspend => "suspend the customer",
            Self::Resume => "serve its keys again",
            Self::Close => "close the customer permanently",
            Self::Move { .. } => "move the money",
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
            Self::Move { amount, .. } => account
                .give(Account::default(), *amount)
                .map(|(giver, _)| giver),
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
            Self::Create {
                settings,
                first,
                customer,
            } => {
                let mut facts = settings_facts(settings);
                facts.extend(customer.map(|customer| ("Customer", customer.to_string())));
                facts.push(match first {
                    Some((amount, reference)) => (
                        "First money",
                        format!("{amount} USD, reference {reference}"),
                    ),
                    None if customer.is_some() => ("First money", "its customer's".to_owned()),
                    None => (
                        "First money",
                        "none: every request is refused until the first top-up".to_owned(),
                    ),
                });
                facts
            }
            Self::Edit(planned) => settings_facts(&planned.settings),
            Self::CreateCustomer(settings) => customer_facts(settings),
            Self::EditCustomer(planned) => customer_facts(&planned.settings),
            Self::Move {
                into,
                amount,
                reference,
            } => vec![
                ("Amount", format!("{amount} USD")),
                ("Into", into.to_string()),
                ("Reference", reference.clone()),
            ],
            Self::Block
            | Self::Unblock
            | Self::Revoke
            | Self::Suspend
            | Self::Resume
            | Self::Close => self.effects(),
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

impl ActPlan {
    /// What an act does that has no other facts.
    fn effects(&self) -> Vec<(&'static str, String)> {
        let effect = match self {
            Self::Block => "new requests are refused at once; running streams end within 10 s",
            Self::Unblock => "requests are served again while money lasts",
            Self::Revoke => "requests are refused permanently; running streams end within 10 s",
            Self::Suspend => {
                "requests of all its keys are refused until it is resumed; running streams end within 10 s"
            }
            Self::Resume => "its keys are served again while money lasts",
            Self::Close => {
                "requests of all its keys are refused permanently; only with nothing held and nothing left"
            }
            _ => return Vec::new(),
        };
        let mut facts = vec![("Effect", effect.to_owned())];
        if matches!(self, Self::Revoke) {
            let stays = "stays on the key, as does the history; nothing is deleted";
            facts.push(("Balance", stays.to_owned()));
        }
        facts
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

/// A customer's settings in words.
pub(crate) fn customer_facts(settings: &CustomerSettings) -> Vec<(&'static str, String)> {
    let low = settings.low_balance.map_or_else(
        || "below a tenth of the last top-up".to_owned(),
        |amount| format!("below {amount} USD"),
    );
    let external_id = settings.external_id.clone();
    vec![
        ("Label", settings.label.clone()),
        (
            "External id",
            external_id.unwrap_or_else(|| "none".to_owned()),
        ),
        ("Low", low),
        ("Limits", customer_limits(settings)),
    ]
}

/// Rate and concurrency of all keys of a customer in words.
pub(crate) fn customer_limits(settings: &CustomerSettings) -> String {
    let rate = settings.rate.map_or_else(
        || "any number of requests/s".to_owned(),
        |rate| format!("{rate} req/s"),
    );
    let most = settings
        .concurrency
        .unwrap_or(CustomerSettings::CONCURRENCY);
    format!("{rate}, {most} at once")
}
