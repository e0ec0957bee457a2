//! Subscriptions: which of them, what a customer has of them, and their documents.

use std::collections::{BTreeMap, BTreeSet};

use farebox_ledger::text::visible;
use farebox_ledger::{
    Amount, Customer, CustomerId, Ledger, LedgerError, Perform as _, PlanAfter, PlanAnswer,
    PlanTerms, PlanWindow, Refusal, RunningPeriod, Subscription, SubscriptionId,
    SubscriptionStatus, Timestamp, WindowBound, WindowSpan, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{CustomerName, Instant, OneLine, Usd, Word};
use super::{dates, reads};

/// A subscription and its customer, as they are now.
#[derive(Debug, Clone)]
pub struct KnownSubscription {
    /// The subscription.
    pub of: Subscription,
    /// Whose it is.
    pub customer: Customer,
}

impl KnownSubscription {
    /// Its document.
    pub fn document(&self, now: Timestamp) -> SubscriptionDocument {
        SubscriptionDocument::of(&self.of, &self.customer, now)
    }
}

/// One subscription.
///
/// # Errors
/// When the ledger cannot be read, or has no such subscription.
pub async fn find(
    ledger: &dyn Ledger,
    id: SubscriptionId,
) -> Result<KnownSubscription, LedgerError> {
    let stored = ledger.subscription(id).await?;
    let stored = stored.ok_or(Refusal::NoSuchSubscription(id))?;
    let customer = reads::customer(ledger, stored.customer).await?;
    let of = customer.grants.plans.get(id).cloned();
    let of = of.unwrap_or_else(|| Subscription::past((id, stored.customer), stored.state));
    Ok(KnownSubscription { of, customer })
}

/// A customer's subscription by its id or its plan's name.
///
/// # Errors
/// What it has instead.
pub fn named<'customer>(
    customer: &'customer Customer,
    name: &str,
) -> Result<&'customer Subscription, String> {
    let plans = &customer.grants.plans;
    let of_plan = plans.iter().filter(|of| of.state.terms.name == name);
    let of_plan = of_plan.min_by_key(|of| !of.counts());
    let by_id = || plans.get(name.parse().ok()?);
    of_plan.or_else(by_id).ok_or_else(|| {
        let has = plans.iter().map(|of| {
            let status = of.state.status.as_str();
            format!("{} ({}, {status})", of.state.terms.name, of.id)
        });
        let has: Vec<String> = has.collect();
        let (id, name) = (customer.id, visible(name));
        if has.is_empty() {
            format!("customer {id} has no plan; start one: farebox customers plan {id} start PLAN --reference NAME")
        } else {
            format!("customer {id} has no {name}; it has {}", has.join(", "))
        }
    })
}

/// Which subscriptions
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct WhichSubscriptions {
    /// Only subscriptions to this plan
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub plan: Option<OneLine>,
    /// Only subscriptions in this state
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "STATE",
            help = "Only subscriptions in this state: active, lapsed, paused or ended"
        )
    )]
    pub status: Option<Word<SubscriptionStatus>>,
}

impl WhichSubscriptions {
    /// Those of which something can still come, of a customer or of all, oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has no such customer.
    pub async fn read(
        &self,
        ledger: &dyn Ledger,
        customer: Option<CustomerId>,
    ) -> Result<Vec<KnownSubscription>, LedgerError> {
        let customers = match customer {
            Some(customer) => BTreeSet::from([customer]),
            None => {
                let mut all = ledger.all::<Subscription>().await?;
                all.retain(Subscription::is_open);
                all.iter().map(|of| of.customer).collect()
            }
        };
        let mut found = Vec::new();
        for id in customers {
            let customer = reads::customer(ledger, id).await?;
            let own = customer.grants.plans.iter().filter(|of| self.asks_for(of));
            found.extend(own.map(|of| KnownSubscription {
                of: of.clone(),
                customer: customer.clone(),
            }));
        }
        found.sort_by_key(place);
        Ok(found)
    }

    fn asks_for(&self, of: &Subscription) -> bool {
        let plan = self.plan.as_ref();
        plan.is_none_or(|OneLine(plan)| of.state.terms.name == *plan)
            && self
                .status
                .is_none_or(|Word(status)| of.state.status == status)
    }
}

/// The place of a subscription in lists.
pub fn place(known: &KnownSubscription) -> (Timestamp, SubscriptionId) {
    (known.of.state.created_at, known.of.id)
}

// --- documents ---

/// A customer's subscription to a plan
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Subscription")]
pub struct SubscriptionDocument {
    /// Its id
    pub id: String,
    /// Whose it is
    pub customer: CustomerName,
    /// The plan's name
    pub plan: String,
    /// What people call it
    pub title: String,
    /// active: a period runs or is paid; lapsed: the next one is not paid; paused: its time is stopped; ended: it is renewed no more
    pub status: Word<SubscriptionStatus>,
    /// What the next period that is sold gives
    pub terms: PlanTermsDocument,
    /// The period that can be used
    pub period: Option<PlanPeriodDocument>,
    /// How much of it may be used when, from the narrowest window to the widest
    pub windows: Vec<PlanWindowDocument>,
    /// How many periods are paid and have not begun
    pub paid_ahead: u32,
    /// The end of what is paid; null if nothing runs
    pub paid_until: Option<Instant>,
    /// Its owner wants it ended where a processor renews it
    pub end_wanted: bool,
    /// What a processor that renews it calls it
    pub processor: Option<String>,
    /// When it was made
    pub created_at: Instant,
    /// Who made it
    pub created_by: String,
}

/// A subscription, beside its customer
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CustomerPlanDocument {
    /// Its id
    pub id: String,
    /// The plan's name
    pub plan: String,
    /// Where it is
    pub status: Word<SubscriptionStatus>,
    /// The end of what is paid; null if nothing runs
    pub paid_until: Option<Instant>,
}

impl From<&Subscription> for CustomerPlanDocument {
    fn from(of: &Subscription) -> Self {
        Self {
            id: of.id.to_string(),
            plan: of.state.terms.name.clone(),
            status: Word(of.state.status),
            paid_until: of.paid_until().map(Instant),
        }
    }
}

/// A plan that is sold
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct SoldPlanDocument {
    /// Its name
    pub name: String,
    /// What people call it
    pub title: String,
    /// What a period gives that is sold now
    pub terms: PlanTermsDocument,
}

impl From<&PlanTerms> for SoldPlanDocument {
    fn from(terms: &PlanTerms) -> Self {
        Self {
            name: terms.name.clone(),
            title: terms.title.clone(),
            terms: terms.into(),
        }
    }
}

/// What a plan gives
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PlanTermsDocument {
    /// What a whole unused allowance is worth, without tax
    pub price: Usd,
    /// What may be used in a period
    pub allowance: Usd,
    /// How long a period is: month, week, day, or days as 30d
    pub period: String,
    /// How much of it may be used when
    pub windows: Vec<PlanBoundDocument>,
    /// Slugs that it is for; null is all
    pub models: Option<Vec<String>>,
    /// What pays when it is used up
    pub after: Word<PlanAfter>,
    /// Most of what is left that moves into the next period
    pub carry: Usd,
    /// How long a period may be used beyond its end while the next one is not paid, as 6h
    pub grace: String,
}

/// How much of a plan may be used within a window
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PlanBoundDocument {
    /// How long it counts: hours as 5h, day, week or month
    pub per: String,
    /// How much
    pub usd: Usd,
}

/// The period of a subscription that can be used
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PlanPeriodDocument {
    /// Its number; 1 is the first
    pub number: u32,
    /// The grant that it is
    pub grant: String,
    /// The plan that it is of, which may be another one than the next
    pub plan: String,
    /// When it began
    pub begins_at: Instant,
    /// When the next one begins if it is paid
    pub ends_at: Instant,
    /// When it can be used no more if the next one is not paid; null while it is paused
    pub usable_until: Option<Instant>,
    /// What it gives
    pub allowance: Usd,
    /// What is left of it and of what was carried into it, held or not
    pub remaining: Usd,
    /// Kept for running requests
    pub held: Usd,
    /// What requests may take of it now, within its windows
    pub available: Usd,
    /// The payment that bought it; null if it was given
    pub payment: Option<String>,
}

/// What was used of a plan in one window
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PlanWindowDocument {
    /// How long it counts: hours as 5h, day, week or month
    pub per: String,
    /// Most that may be used in it
    pub bound: Usd,
    /// What was used
    pub used: Usd,
    /// Kept for running requests
    pub held: Usd,
    /// What is left
    pub available: Usd,
    /// When it began; null if none runs. One of hours that nothing has used begins with the next request
    pub begins_at: Option<Instant>,
    /// When there is all of it again
    pub opens_at: Option<Instant>,
}

impl From<&PlanTerms> for PlanTermsDocument {
    fn from(terms: &PlanTerms) -> Self {
        let minutes = terms.grace.div_euclid(60_000);
        let grace = match (minutes.div_euclid(60), minutes.rem_euclid(60)) {
            (hours, 0) => format!("{hours}h"),
            _ => format!("{minutes}m"),
        };
        let bound = |window: &WindowBound| PlanBoundDocument {
            per: window.per.to_string(),
            usd: Usd(window.usd),
        };
        Self {
            price: Usd(terms.price),
            allowance: Usd(terms.allowance),
            period: terms.period.to_string(),
            windows: terms.windows.iter().map(bound).collect(),
            models: terms.models.clone(),
            after: Word(terms.after),
            carry: Usd(terms.carry),
            grace,
        }
    }
}

impl SubscriptionDocument {
    /// A subscription of a customer, now.
    pub fn of(of: &Subscription, customer: &Customer, now: Timestamp) -> Self {
        let (state, running) = (&of.state, of.state.running.as_ref());
        let of_windows = running.map_or(&state.terms, |running| &running.terms);
        let window = |bound| PlanWindowDocument::of(customer, &of_windows.name, bound, now);
        let windows: Vec<_> = of_windows.windows.iter().map(window).collect();
        let period = running.map(|running| {
            let room = windows.iter().map(|window| window.available.0).min();
            PlanPeriodDocument::of(running, of, customer, room)
        });
        Self {
            id: of.id.to_string(),
            customer: CustomerName(of.customer),
            plan: state.terms.name.clone(),
            title: state.terms.title.clone(),
            status: Word(state.status),
            terms: (&state.terms).into(),
            period,
            windows,
            paid_ahead: of.paid_ahead(),
            paid_until: of.paid_until().map(Instant),
            end_wanted: state.end_wanted,
            processor: state.processor.clone(),
            created_at: Instant(state.created_at),
            created_by: state.created_by.clone(),
        }
    }
}

impl PlanPeriodDocument {
    /// The running period; `room` is what its windows leave.
    fn of(
        running: &RunningPeriod,
        of: &Subscription,
        customer: &Customer,
        room: Option<Amount>,
    ) -> Self {
        let grant = customer.grants.iter().find(|one| one.id == running.grant);
        let [remaining, held, free] = grant.map_or([Amount::ZERO; 3], |grant| {
            [grant.remaining, grant.held, grant.free()]
        });
        let available = match of.live_period() {
            Some(_) => room.map_or(free, |room| room.min(free)),
            None => Amount::ZERO,
        };
        Self {
            number: running.number,
            grant: running.grant.to_string(),
            plan: running.terms.name.clone(),
            begins_at: Instant(running.begins),
            ends_at: Instant(running.ends),
            usable_until: of.lives_until().map(Instant),
            allowance: Usd(running.terms.allowance),
            remaining: Usd(remaining),
            held: Usd(held),
            available: Usd(available),
            payment: running.payment.clone(),
        }
    }
}

impl PlanWindowDocument {
    /// The window of a bound that runs, or an empty one.
    fn of(customer: &Customer, plan: &str, bound: &WindowBound, now: Timestamp) -> Self {
        let mut all = customer.grants.plans.windows();
        let runs = |window: &&PlanWindow| {
            (window.place.plan == plan && window.place.per == bound.per)
                && (window.begins <= now && now < window.ends)
        };
        // One of hours that nobody has used begins anew with each look.
        let is_unused = |window: &&PlanWindow| {
            let used = (window.charged, window.held);
            matches!(bound.per, WindowSpan::Hours(_)) && used == (Amount::ZERO, Amount::ZERO)
        };
        let window = all.find(runs).filter(|window| !is_unused(window));
        let amount = |of: fn(&PlanWindow) -> Amount| Usd(window.map_or(Amount::ZERO, of));
        Self {
            per: bound.per.to_string(),
            bound: Usd(window.map_or(bound.usd, |window| window.bound)),
            used: amount(|window| window.charged),
            held: amount(|window| window.held),
            available: Usd(window.map_or(bound.usd, PlanWindow::room)),
            begins_at: window.map(|window| Instant(window.begins)),
            opens_at: window.map(|window| Instant(window.ends)),
        }
    }
}

impl From<&PlanAnswer> for SubscriptionDocument {
    fn from(answer: &PlanAnswer) -> Self {
        Self::of(&answer.subscription, &answer.customer, clock::now())
    }
}

/// The same for people, one line for each subscription: `coder (s_7f3q9d2xw1): active, 12.00 of 25.00 left until 1 December`.
pub fn words(customer: &Customer, now: Timestamp) -> Vec<String> {
    let words = |of: &Subscription| {
        let of = SubscriptionDocument::of(of, customer, now);
        let period = of.period.iter().map(|period| {
            let (left, all) = (period.remaining.0, period.allowance.0);
            let end = dates::in_words(period.ends_at.0, now);
            format!(", {left} of {all} left until {end}")
        });
        let period: String = period.collect();
        let windows = of.windows.iter().filter(|_| !period.is_empty());
        let windows = windows.map(|window| {
            let (left, all) = (window.available.0, window.bound.0);
            format!(", {left} of {all} per {}", window.per)
        });
        let windows: String = windows.collect();
        let status = of.status.0.as_str();
        format!("{} ({}): {status}{period}{windows}", of.plan, of.id)
    };
    customer.grants.plans.iter().map(words).collect()
}

/// How many subscriptions that are not ended have each plan.
pub async fn count(ledger: &dyn Ledger) -> Result<BTreeMap<String, usize>, LedgerError> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for subscription in ledger.all::<Subscription>().await? {
        let state = subscription.state;
        if state.status != SubscriptionStatus::Ended {
            let count = counts.entry(state.terms.name).or_default();
            *count = count.saturating_add(1);
        }
    }
    Ok(counts)
}
