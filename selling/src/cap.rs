//! Caps of a key or a customer, and their documents.

use farebox_ledger::key::Change;
use farebox_ledger::{
    Amount, ByDefault, Cap, CapInterval, CapMaker, Caps, CountedCap, CustomerAct, Outcome, Scope,
    Timestamp, UtcDay, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{Count, CustomerName, Instant, KeyName, OneLine, Usd, Word};
use super::{Deed, Doer, SellerAct, Unfit};

/// Set a cap, or change its limit
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SetCap {
    /// How long it counts: day, week (from Monday), month or total; days are UTC
    #[cfg_attr(feature = "clap", arg(value_name = "INTERVAL"))]
    pub interval: Word<CapInterval>,
    /// Most that may be charged and held in one interval
    #[cfg_attr(
        feature = "clap",
        arg(value_name = "USD", allow_negative_numbers = true)
    )]
    pub limit: Usd,
    /// The model's slug; all unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "SLUG", value_parser = slug))]
    pub model: Option<OneLine>,
}

impl SellerAct for SetCap {
    type Of = Scope;
    const EXAMPLE: &'static str = r#"{"interval":"day","limit":"5"}"#;

    async fn deed(self, of: Scope, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let cap = Cap {
            interval: self.interval.0,
            model: self.model.map(Into::into),
            limit: self.limit.0,
        };
        Ok(match of {
            Scope::Key(key) => Deed::on_key(key, Change::SetCap(cap), doer.act()),
            Scope::Customer(customer) => {
                Deed::on_customer(customer, CustomerAct::SetCap(cap), doer.act())
            }
        })
    }
}

#[cfg(feature = "clap")]
fn slug(text: &str) -> Result<OneLine, String> {
    super::value::slug(text).map(OneLine)
}

/// Remove a cap
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ClearCap {
    /// How long it counts: day, week (from Monday), month or total; days are UTC
    #[cfg_attr(feature = "clap", arg(value_name = "INTERVAL"))]
    pub interval: Word<CapInterval>,
    /// The model's slug; all unless you say
    #[cfg_attr(feature = "clap", arg(long, value_name = "SLUG", value_parser = slug))]
    pub model: Option<OneLine>,
}

impl SellerAct for ClearCap {
    type Of = Scope;

    async fn deed(self, of: Scope, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let (interval, model) = (self.interval.0, self.model.map(Into::into));
        Ok(match of {
            Scope::Key(key) => Deed::on_key(key, Change::ClearCap { interval, model }, doer.act()),
            Scope::Customer(customer) => {
                let clear = CustomerAct::ClearCap { interval, model };
                Deed::on_customer(customer, clear, doer.act())
            }
        })
    }
}

// --- documents ---

/// A cap, and what its window has counted
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cap")]
pub struct CapDocument {
    /// How long it counts
    pub interval: Word<CapInterval>,
    /// The model's slug; null is all
    pub model: Option<String>,
    /// Most that may be charged and held in one interval
    pub limit: Usd,
    /// Whose limit that is: the lesser of both
    pub made_by: Word<CapMaker>,
    /// `seller_limit` is a default of catalog.toml, because you set no cap here
    #[serde(skip_serializing_if = "is_own")]
    pub default: bool,
    /// The limit that you set
    pub seller_limit: Option<Usd>,
    /// The limit that an owner set
    pub owner_limit: Option<Usd>,
    /// Charged in this window
    pub spent: Usd,
    /// Held by running requests of this window
    pub held: Usd,
    /// What may still be held
    pub room: Usd,
    /// When it starts again; null is never
    pub resets_at: Option<Instant>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what a skipped field is asked with"
)]
const fn is_own(default: &bool) -> bool {
    !*default
}

/// What holds where nothing was set here: the defaults of catalog.toml
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Defaults")]
pub struct DefaultsDocument {
    /// Requests each second
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Count>,
    /// Requests at once
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Count>,
    /// The balance below which it is low
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_balance: Option<Usd>,
}

impl DefaultsDocument {
    /// Those that hold beside what was set; `None` if none does.
    pub(crate) fn beside(
        own: (Option<u32>, Option<u32>, Option<Amount>),
        defaults: ByDefault,
    ) -> Option<Self> {
        let (rate, concurrency, low_balance) = own;
        let found = Self {
            rate: defaults.rate.filter(|_| rate.is_none()).map(Count),
            concurrency: defaults
                .concurrency
                .filter(|_| concurrency.is_none())
                .map(Count),
            low_balance: defaults
                .low_balance
                .filter(|_| low_balance.is_none())
                .map(Usd),
        };
        let any = found.rate.is_some() || found.concurrency.is_some();
        (any || found.low_balance.is_some()).then_some(found)
    }
}

impl CapDocument {
    /// Caps and what their windows have counted.
    pub fn all(of: Scope, caps: &Caps, now: Timestamp) -> Vec<Self> {
        let today = UtcDay::of(now);
        let document = |counted: &CountedCap| {
            let (state, limits) = (counted.reached(of, today, Amount::ZERO), counted.limits());
            Self {
                interval: Word(counted.cap.interval),
                model: counted.cap.model.clone(),
                limit: Usd(counted.cap.limit),
                made_by: Word(counted.made_by),
                default: counted.is_default(),
                seller_limit: limits.seller.map(Usd),
                owner_limit: limits.owner.map(Usd),
                spent: Usd(state.spent),
                held: Usd(state.held),
                room: Usd(state.room),
                resets_at: state.resets_at.map(Instant),
            }
        };
        caps.iter().map(document).collect()
    }
}

/// Whose caps, and which
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Caps")]
pub struct CapsDocument {
    /// Whose they are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerName>,
    /// Whose they are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyName>,
    /// The caps
    pub caps: Vec<CapDocument>,
}

impl CapsDocument {
    /// What their windows have counted.
    pub fn of(of: Scope, caps: &Caps) -> Self {
        let (customer, key) = match of {
            Scope::Customer(customer) => (Some(CustomerName(customer)), None),
            Scope::Key(key) => (None, Some(KeyName(key))),
        };
        Self {
            customer,
            key,
            caps: CapDocument::all(of, caps, clock::now()),
        }
    }

    /// What an operation left of whom it was done to.
    pub fn left(outcome: &Outcome) -> Option<Self> {
        let (of, caps) = left(outcome)?;
        Some(Self::of(of, caps))
    }
}

/// The caps that an operation left, and whose they are.
pub fn left(outcome: &Outcome) -> Option<(Scope, &Caps)> {
    if let Outcome::Key(key) = outcome {
        Some((key.id.into(), &key.own.caps))
    } else if let Outcome::Customer(customer) = outcome {
        Some((customer.id.into(), &customer.caps))
    } else {
        None
    }
}
