//! Auto top-up: a customer's rule that asks for money, and a payment that it asked for and that failed.

use farebox_ledger::{
    AutoTopUpOff, AutoTopUpState, Customer, CustomerAct, CustomerId, Key, LinkToken, NewVisit,
    ProcessorRef, Refill, Timestamp, TopUpRule, TopUpWish,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{Count, CustomerName, Instant, KeyName, OneLine, Usd, Word};
use super::{Deed, Doer, SellerAct, Unfit};

/// Ask for money by top_up.wanted whenever the balance falls below a threshold
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SetAutoTopUp {
    /// Ask when the balance falls below this
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USD", allow_negative_numbers = true)
    )]
    pub threshold: Usd,
    /// Ask for this each time
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "USD",
            allow_negative_numbers = true,
            required_unless_present = "target",
            conflicts_with = "target"
        )
    )]
    pub amount: Option<Usd>,
    /// Or ask for what is missing to this balance
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USD", allow_negative_numbers = true)
    )]
    pub target: Option<Usd>,
    /// Ask at most so many times in a month (UTC)
    #[cfg_attr(feature = "clap", arg(long, value_name = "NUMBER"))]
    pub per_month: Count,
    /// Your processor's id of the buyer; kept beside the rule, and erased with the personal data
    #[cfg_attr(feature = "clap", arg(skip))]
    pub processor_ref: Option<OneLine>,
}

impl SellerAct for SetAutoTopUp {
    type Of = CustomerId;
    const EXAMPLE: &'static str = r#"{"threshold":"50","amount":"20","per_month":4}"#;

    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let refill = match (self.amount, self.target) {
            (Some(amount), None) => Refill::Amount(amount.0),
            (None, Some(target)) => Refill::Target(target.0),
            (None, None) | (Some(_), Some(_)) => {
                let why = "give either an amount or a target, the balance to top up to";
                return Err(Unfit::Incomplete(None, why));
            }
        };
        let rule = TopUpRule {
            threshold: self.threshold.0,
            refill,
            per_month: self.per_month.0,
        };
        let card = self.processor_ref.map(|card| ProcessorRef(card.0));
        let set = CustomerAct::SetAutoTopUp(rule, card);
        Ok(Deed::on_customer(customer, set, doer.act()))
    }
}

/// Ask for no more money
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ClearAutoTopUp {}

impl SellerAct for ClearAutoTopUp {
    type Of = CustomerId;

    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let clear = CustomerAct::ClearAutoTopUp;
        Ok(Deed::on_customer(customer, clear, doer.act()))
    }
}

/// Say that the payment failed that a top_up.wanted asked for, by its reference
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TopUpFailed {
    /// Why, as your processor says it, for the audit
    pub reason: Option<OneLine>,
}

impl SellerAct for TopUpFailed {
    type Of = String;
    const EXAMPLE: &'static str = r#"{"reason":"card_declined"}"#;

    async fn deed(self, wish: String, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let Some((customer, number)) = TopUpWish::named(&wish) else {
            return Err(Unfit::NoWish(wish));
        };
        let reason = self.reason.map(Into::into);
        let failed = CustomerAct::FailTopUp { number, reason };
        Ok(Deed::on_customer(customer, failed, doer.act()))
    }
}

/// Take in the link with which an owner came from the dashboard: for a day you may set this customer's auto top-up
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Visit")]
pub struct OwnerVisit {
    /// What follows `link=` in the address of your page
    pub link: OneLine,
}

impl SellerAct for OwnerVisit {
    type Of = ();
    const EXAMPLE: &'static str =
        r#"{"link":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}"#;

    async fn deed(self, (): (), doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let link = LinkToken::hash_for_shop(&self.link.0);
        let act = doer.act();
        Ok(NewVisit { link, act }.into())
    }
}

// --- documents ---

/// A rule of auto top-up, and what it is doing
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AutoTopUp")]
pub struct AutoTopUpDocument {
    /// It asks when the balance falls below this
    pub threshold: Usd,
    /// It asks for this each time
    pub amount: Option<Usd>,
    /// It asks for what is missing to this balance
    pub target: Option<Usd>,
    /// At most so many times in a month (UTC)
    pub per_month: Count,
    /// pending: it has asked; resting: for a day after a failure; used_up: until next month; off: until it is set again
    #[schemars(extend("enum" = ["ready", "pending", "resting", "used_up", "off"]))]
    pub status: &'static str,
    /// Why it is off: three failures, or a dispute
    pub why: Option<Word<AutoTopUpOff>>,
    /// When the pending payment counts as failed, or when it asks again
    pub until: Option<Instant>,
    /// What it has asked for
    pub pending: Option<PendingTopUp>,
    /// How many times it has asked in this month
    pub asked_this_month: u32,
    /// Failures since the last booking
    pub failures: u32,
}

/// A payment that was asked for
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PendingTopUp {
    /// The reference and the idempotency key of its payment
    pub reference: String,
    /// How much
    pub amount: Usd,
}

impl AutoTopUpDocument {
    /// A customer's rule and what it is doing; `None` without one.
    pub fn of(customer: &Customer, now: Timestamp) -> Option<Self> {
        let auto = customer.auto_top_up.as_ref()?;
        let (rule, state) = (auto.rule?, auto.state(now)?);
        let (amount, target) = match rule.refill {
            Refill::Amount(amount) => (Some(Usd(amount)), None),
            Refill::Target(target) => (None, Some(Usd(target))),
        };
        let (pending, until, why) = match state {
            AutoTopUpState::Pending(wish) => (Some(wish), Some(wish.until()), None),
            AutoTopUpState::Resting(until) | AutoTopUpState::UsedUp(until) => {
                (None, Some(until), None)
            }
            AutoTopUpState::Off(why) => (None, None, Some(Word(why))),
            AutoTopUpState::Ready => (None, None, None),
        };
        Some(Self {
            threshold: Usd(rule.threshold),
            amount,
            target,
            per_month: Count(rule.per_month),
            status: state.as_str(),
            why,
            until: until.map(Instant),
            pending: pending.map(|wish| PendingTopUp {
                reference: TopUpWish::reference(customer.id, wish.number),
                amount: Usd(wish.amount),
            }),
            asked_this_month: auto.wishes(now),
            failures: auto.failures(now),
        })
    }
}

/// The same for people, in one line.
pub fn words(customer: &Customer, now: Timestamp) -> Option<String> {
    let auto = customer.auto_top_up.as_ref()?;
    let (rule, state) = (auto.rule?, auto.state(now)?);
    Some(format!("{rule}: {}", state.words(customer.id)))
}

/// A payment that was asked for, and failed
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TopUpFailed")]
pub struct TopUpFailedDocument {
    /// The payment that was asked for
    pub reference: String,
    /// Whose it was
    pub customer: CustomerName,
    /// What the rule is doing now; null to a token that may not read this customer
    pub auto_top_up: Option<AutoTopUpDocument>,
}

/// An owner who came from the dashboard
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Visited")]
pub struct VisitDocument {
    /// Whose owner it is
    pub customer: CustomerName,
    /// The owner key
    pub key: KeyName,
    /// Until when you may set the rule
    pub until: Option<Instant>,
}

impl From<&Key> for VisitDocument {
    fn from(key: &Key) -> Self {
        let auto = key.customer.auto_top_up.as_ref();
        Self {
            customer: CustomerName(key.customer.id),
            key: KeyName(key.id),
            until: auto.and_then(|auto| auto.visited_until()).map(Instant),
        }
    }
}

/// A payment that a rule of yours asked for, as it is now
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TopUpWanted")]
pub struct WantedDocument {
    /// The reference and the idempotency key of its payment
    pub reference: String,
    /// Whose it is
    pub customer: CustomerName,
    /// How much
    pub amount: Usd,
    /// When it counts as failed
    pub until: Instant,
    /// What became of it; charge only while it is wanted
    #[schemars(extend("enum" = ["wanted", "booked", "failed"]))]
    pub status: &'static str,
    /// Your processor's id of the buyer
    pub processor_ref: Option<String>,
}

impl WantedDocument {
    /// A wish by its number, if it is the newest of a customer.
    pub fn of(customer: &Customer, number: i64, now: Timestamp) -> Option<Self> {
        let auto = customer.auto_top_up.as_ref()?;
        let (wish, status) = auto.newest_wish(now)?;
        (wish.number == number).then(|| Self {
            reference: TopUpWish::reference(customer.id, number),
            customer: CustomerName(customer.id),
            amount: Usd(wish.amount),
            until: Instant(wish.until()),
            status,
            processor_ref: auto.processor_ref.as_ref().map(|card| card.0.clone()),
        })
    }
}
