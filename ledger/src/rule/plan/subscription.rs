//! A customer's subscription to a plan: what is paid, what runs, and what time does to it. Pure.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{PeriodAnchor, PlanTerms};
use crate::rule::account::{less, sum};
use crate::rule::watch::cap_level;
use crate::value::id::number_of;
use crate::{Amount, CustomerId, GrantId, Refusal, SubscriptionId, Timestamp, TokenId};

/// How long what running requests give back of a period follows it into the next, in milliseconds.
const FOLLOWS_FOR: i64 = 3_600_000;

/// Where a subscription is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// A period runs, or is paid.
    Active,
    /// Its last period is over, and the next one is not paid.
    Lapsed,
    /// A seller has stopped its time.
    Paused,
    /// It is renewed no more; what is paid still runs.
    Ended,
}

impl SubscriptionStatus {
    /// All, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Active, Self::Lapsed, Self::Paused, Self::Ended];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Lapsed => "lapsed",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }
}

/// Periods that are paid or given and have not begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoldPeriods {
    /// How many.
    pub count: u32,
    /// What each gives.
    pub terms: PlanTerms,
    /// The payment that bought them; `None` if they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    /// What went back of the last one's allowance.
    #[serde(default)]
    pub taken: Amount,
}

/// The period that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningPeriod {
    /// Its number in the subscription; 1 is the first.
    pub number: u32,
    /// The grant that it is.
    pub grant: GrantId,
    /// What was bought.
    pub terms: PlanTerms,
    /// When it began.
    pub begins: Timestamp,
    /// When the next one begins if it is paid.
    pub ends: Timestamp,
    /// The payment that bought it; `None` if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
}

/// What becomes of what running requests give back of the period before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastPeriod {
    /// The grant that it was.
    pub grant: GrantId,
    /// Most that moves on, with what has moved already.
    pub most: Amount,
    /// Until when; `None`: to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The terms by which it becomes credit; `None` if it moves into the next period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes_credit: Option<PlanTerms>,
}

/// What acts have made of a subscription. The format in which it is stored and hashed is frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionState {
    /// What the next period that is sold gives.
    pub terms: PlanTerms,
    /// Where it is.
    pub status: SubscriptionStatus,
    /// From where periods are reckoned.
    pub anchor: PeriodAnchor,
    /// The number of the last period that has begun.
    pub last: u32,
    /// What is paid and has not begun.
    pub sold: Vec<SoldPeriods>,
    /// What runs.
    pub running: Option<RunningPeriod>,
    /// Of what running requests may still give something back that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<PastPeriod>,
    /// When its time was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When it was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whether its owner wants it ended where a processor renews it.
    #[serde(default)]
    pub end_wanted: bool,
    /// What a processor that renews it calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// The token that sold it last; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
}

/// A customer's subscription to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Public id.
    pub id: SubscriptionId,
    /// Whose it is.
    pub customer: CustomerId,
    /// What acts have made of it.
    pub state: SubscriptionState,
    /// What has moved on of the past period.
    pub moved: Amount,
    /// How many per cent of the running allowance were told to be used: 0, 80 or 100.
    pub told: u8,
}

/// What a subscription does by itself when its time comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanTurn {
    /// The next period begins.
    Begins(Box<PeriodTurn>),
    /// The running one is over, and no other is paid.
    Lapses,
}

/// A period that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeriodTurn {
    pub(crate) running: RunningPeriod,
    /// What it gives.
    pub(crate) allowance: Amount,
    /// The one that it follows directly.
    pub(crate) before: Option<RunningPeriod>,
}

/// What is worth telling of the use of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanNews {
    /// Which subscription, if it still runs.
    pub subscription: Option<SubscriptionId>,
    /// The plan's name.
    pub plan: String,
    /// The window; `None` is the allowance.
    pub per: Option<String>,
    /// How much may be used.
    pub bound: Amount,
    /// How much was.
    pub used: Amount,
    /// In per cent.
    pub level: u8,
    /// When there is more again.
    pub opens_at: Timestamp,
}

impl SoldPeriods {
    /// What all of them still give.
    pub(crate) fn left(&self) -> Amount {
        let each = self.terms.allowance.picos();
        let all = each.saturating_mul(self.count.into());
        less(Amount::from_picos(all), self.taken)
    }
}

impl SubscriptionState {
    /// What is sold and has not begun, in order: the number of the first period of each sale, and when these begin and end, as far as that
    /// is known at an instant.
    pub fn ahead(&self, now: Timestamp) -> Vec<(u32, Timestamp, Timestamp)> {
        let running = self.running.as_ref();
        let mut anchor = running.map(|_| self.anchor);
        let mut number = self.last.saturating_add(1);
        let mut at = running.map_or(now, |running| running.ends);
        let sale = |sold: &SoldPeriods| {
            let period = sold.terms.period;
            let fresh = PeriodAnchor { at, number, period };
            let from = *anchor.get_or_insert(fresh);
            let from = if from.period == period { from } else { fresh };
            anchor = Some(from);
            let first = (number, at);
            number = number.saturating_add(sold.count);
            at = from.begin(number);
            (first.0, first.1, at)
        };
        self.sold.iter().map(sale).collect()
    }

    /// Whether anything can still come of it.
    pub(crate) fn is_open(&self) -> bool {
        match self.status {
            SubscriptionStatus::Active
            | SubscriptionStatus::Lapsed
            | SubscriptionStatus::Paused => true,
            // What running requests give back of a period that was given up becomes credit, whatever comes behind it.
            SubscriptionStatus::Ended => {
                let past = self.past.as_ref();
                let gives_credit = past.is_some_and(|past| past.becomes_credit.is_some());
                gives_credit || self.running.is_some() || !self.sold.is_empty()
            }
        }
    }
}

impl Subscription {
    /// Most that a customer has that are not ended.
    pub const MOST: usize = 4;
    /// Most periods that are paid ahead at a time.
    pub const MOST_PERIODS: u32 = 24;

    /// A new one, of which nothing is paid.
    pub(crate) fn new(
        (id, customer): (SubscriptionId, CustomerId),
        terms: &PlanTerms,
        (created_by, now): (&str, Timestamp),
    ) -> Self {
        let state = SubscriptionState {
            terms: terms.clone(),
            status: SubscriptionStatus::Active,
            anchor: PeriodAnchor {
                at: now,
                number: 1,
                period: terms.period,
            },
            last: 0,
            sold: Vec::new(),
            running: None,
            past: None,
            paused_at: None,
            ended_at: None,
            end_wanted: false,
            processor: None,
            created_at: now,
            created_by: created_by.to_owned(),
            token: None,
        };
        Self::of((id, customer), state)
    }

    /// One of which nothing can come any more, as its last act left it: what ran then has ended since.
    pub fn past(of: (SubscriptionId, CustomerId), left: SubscriptionState) -> Self {
        let state = SubscriptionState {
            running: None,
            past: None,
            ..left
        };
        Self::of(of, state)
    }

    /// One of which nothing has moved or been told yet.
    fn of((id, customer): (SubscriptionId, CustomerId), state: SubscriptionState) -> Self {
        Self {
            id,
            customer,
            state,
            moved: Amount::ZERO,
            told: 0,
        }
    }

    /// The grant that a period is.
    pub(crate) fn grant(&self, number: u32) -> GrantId {
        let hash = Sha256::new_with_prefix(b"farebox period")
            .chain_update(self.id.to_i64().to_be_bytes())
            .chain_update(number.to_be_bytes());
        GrantId::from_random(number_of(hash))
    }

    /// Whether anything can still come of it.
    pub fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Whether it counts towards what a customer may have.
    pub const fn counts(&self) -> bool {
        match self.state.status {
            SubscriptionStatus::Active
            | SubscriptionStatus::Lapsed
            | SubscriptionStatus::Paused => true,
            SubscriptionStatus::Ended => false,
        }
    }

    /// Whether a grant is its running period.
    pub(crate) fn runs(&self, grant: GrantId) -> bool {
        let running = self.state.running.as_ref();
        running.is_some_and(|running| running.grant == grant)
    }

    /// Whether a grant is or was one of its periods.
    pub(crate) fn has_had(&self, grant: GrantId) -> bool {
        self.runs(grant) || (1..=self.state.last).any(|number| self.grant(number) == grant)
    }

    /// The period that can be used: none of a paused one.
    pub fn live_period(&self) -> Option<&RunningPeriod> {
        let running = self.state.running.as_ref();
        running.filter(|_| self.state.status != SubscriptionStatus::Paused)
    }

    /// When the running period can be used no more, if nothing is paid.
    pub fn lives_until(&self) -> Option<Timestamp> {
        let running = self.live_period()?;
        let grace = match self.state.status {
            SubscriptionStatus::Active => running.terms.grace,
            SubscriptionStatus::Lapsed | SubscriptionStatus::Paused | SubscriptionStatus::Ended => {
                0
            }
        };
        let end = running.ends.millis().saturating_add(grace);
        Some(Timestamp::from_millis(end))
    }

    /// How many periods are paid and have not begun.
    pub fn paid_ahead(&self) -> u32 {
        let counts = self.state.sold.iter().map(|sold| sold.count);
        counts.fold(0, u32::saturating_add)
    }

    /// The end of what is paid, as far as it is known today.
    pub fn paid_until(&self) -> Option<Timestamp> {
        let running = self.state.running.as_ref()?;
        let ahead = self.state.ahead(running.ends);
        Some(ahead.last().map_or(running.ends, |sale| sale.2))
    }

    /// When something happens to it next without anybody's doing; [`Timestamp::NEVER`] if nothing does.
    pub(crate) fn next_at(&self) -> Timestamp {
        if self.state.status == SubscriptionStatus::Paused {
            return Timestamp::NEVER;
        }
        match (&self.state.running, self.state.sold.is_empty()) {
            (Some(running), false) => running.ends,
            (Some(_), true) => self.lives_until().unwrap_or(Timestamp::NEVER),
            // What was paid while nothing ran begins at once.
            (None, false) => Timestamp::from_millis(0),
            (None, true) => Timestamp::NEVER,
        }
    }

    /// What has happened by an instant without anybody's doing, with the subscription as it is then.
    pub(crate) fn turn(&self, now: Timestamp) -> Option<(PlanTurn, Self)> {
        if now < self.next_at() {
            return None;
        }
        let mut next = self.clone();
        if self.state.sold.is_empty() {
            next.state.running = None;
            next.state.past = None;
            next.moved = Amount::ZERO;
            if next.state.status == SubscriptionStatus::Active {
                next.state.status = SubscriptionStatus::Lapsed;
            }
            return Some((PlanTurn::Lapses, next));
        }
        let turn = next.begin(now)?;
        Some((PlanTurn::Begins(Box::new(turn)), next))
    }

    /// Begins what was sold next, behind the running period, or now if none runs.
    fn begin(&mut self, now: Timestamp) -> Option<PeriodTurn> {
        let state = &mut self.state;
        let sold = state.sold.first_mut()?;
        let (terms, payment) = (sold.terms.clone(), sold.payment.clone());
        // What went back is of the last one of these.
        let taken = if sold.count == 1 {
            sold.taken
        } else {
            Amount::ZERO
        };
        sold.count = sold.count.saturating_sub(1);
        if sold.count == 0 {
            state.sold.remove(0);
        }
        let before = state.running.take();
        let number = state.last.saturating_add(1);
        let at = before.as_ref().map_or(now, |before| before.ends);
        if before.is_none() || state.anchor.period != terms.period {
            state.anchor = PeriodAnchor {
                at,
                number,
                period: terms.period,
            };
        }
        let ends = state.anchor.begin(number.saturating_add(1));
        state.last = number;
        if state.status == SubscriptionStatus::Lapsed {
            state.status = SubscriptionStatus::Active;
        }
        let follows = |before: &RunningPeriod| PastPeriod {
            grant: before.grant,
            most: before.terms.carry,
            until: Some(Timestamp::from_millis(
                at.millis().saturating_add(FOLLOWS_FOR),
            )),
            becomes_credit: None,
        };
        // Of one that was given up for credit, what comes back goes on to become credit.
        if before.is_some() {
            state.past = before.as_ref().map(follows);
        }
        let allowance = less(terms.allowance, taken);
        let grant = self.grant(number);
        let running = RunningPeriod {
            number,
            grant,
            terms,
            begins: at,
            ends,
            payment,
        };
        self.state.running = Some(running.clone());
        self.told = 0;
        if before.is_some() {
            self.moved = Amount::ZERO;
        }
        Some(PeriodTurn {
            running,
            allowance,
            before,
        })
    }

    /// Adds what was paid or given.
    pub(crate) fn sell(&mut self, sold: SoldPeriods) -> Result<(), Refusal> {
        if self.paid_ahead().saturating_add(sold.count) > Self::MOST_PERIODS {
            return Err(Refusal::NotApplicable(format!(
                "subscription {} has {} periods paid ahead, and at most {} can be",
                self.id,
                self.paid_ahead(),
                Self::MOST_PERIODS
            )));
        }
        self.state.sold.push(sold);
        Ok(())
    }

    /// Stops its time. What is left of days and allowance stays.
    pub(crate) fn pause(&mut self, now: Timestamp) -> Result<(), Refusal> {
        self.check_status(&[SubscriptionStatus::Active], "paused")?;
        let running = self.state.running.as_ref();
        if running.is_none_or(|running| running.ends <= now) {
            return Err(self.refused("its period is over: nothing is left to pause"));
        }
        (self.state.status, self.state.paused_at) = (SubscriptionStatus::Paused, Some(now));
        Ok(())
    }

    /// Lets its time go on: what is left is as long as it was.
    pub(crate) fn resume(&mut self, now: Timestamp) -> Result<(), Refusal> {
        self.check_status(&[SubscriptionStatus::Paused], "resumed")?;
        let since = self.state.paused_at.take().unwrap_or(now);
        let paused = now.millis().saturating_sub(since.millis()).max(0);
        if let Some(running) = &mut self.state.running {
            running.ends = Timestamp::from_millis(running.ends.millis().saturating_add(paused));
            self.state.anchor = PeriodAnchor {
                at: running.ends,
                number: running.number.saturating_add(1),
                period: self.state.anchor.period,
            };
        }
        self.state.status = SubscriptionStatus::Active;
        Ok(())
    }

    /// Renews it no more.
    pub(crate) fn end(&mut self, now: Timestamp) -> Result<(), Refusal> {
        if self.state.status == SubscriptionStatus::Paused {
            self.resume(now)?;
        }
        let open = [SubscriptionStatus::Active, SubscriptionStatus::Lapsed];
        self.check_status(&open, "ended")?;
        (self.state.status, self.state.ended_at) = (SubscriptionStatus::Ended, Some(now));
        self.state.end_wanted = false;
        Ok(())
    }

    /// Nothing of the running period is left, and nothing follows it.
    pub(crate) fn lose_period(&mut self) {
        let state = &mut self.state;
        (state.running, state.past, state.paused_at) = (None, None, None);
        state.status = match state.status {
            SubscriptionStatus::Active
            | SubscriptionStatus::Lapsed
            | SubscriptionStatus::Paused => SubscriptionStatus::Lapsed,
            SubscriptionStatus::Ended => SubscriptionStatus::Ended,
        };
    }

    /// Gives up the running period for what its unused part is worth, and has other terms from then on.
    pub(crate) fn change_now(
        &mut self,
        terms: PlanTerms,
    ) -> Result<Option<RunningPeriod>, Refusal> {
        let running = [SubscriptionStatus::Active, SubscriptionStatus::Lapsed];
        self.check_status(&running, "changed at once")?;
        let ahead = self.paid_ahead();
        if ahead > 0 {
            return Err(self.refused(&format!(
                "{ahead} periods are paid ahead; change it with the next period that is not paid, or pay them back first"
            )));
        }
        let given_up = self.state.running.take();
        let follows = |running: &RunningPeriod| PastPeriod {
            grant: running.grant,
            most: running.terms.allowance,
            until: None,
            becomes_credit: Some(running.terms.clone()),
        };
        self.state.past = given_up.as_ref().map(follows);
        self.moved = Amount::ZERO;
        self.state.status = SubscriptionStatus::Lapsed;
        self.state.terms = terms;
        Ok(given_up)
    }

    /// What of an amount that a period's grant gives back moves on, and into what.
    pub(crate) fn follows(&mut self, grant: GrantId, back: Amount, now: Timestamp) -> Amount {
        let Some(past) = &self.state.past else {
            return Amount::ZERO;
        };
        if past.grant != grant || past.until.is_some_and(|until| until <= now) {
            return Amount::ZERO;
        }
        let moves = less(past.most, self.moved).min(back);
        self.moved = sum(self.moved, moves);
        moves
    }

    /// What is worth telling of the running allowance, once for each level.
    pub(crate) fn news(&mut self, used: Amount) -> Option<PlanNews> {
        let running = self.state.running.as_ref()?;
        let level = cap_level(used, running.terms.allowance);
        if level <= self.told {
            return None;
        }
        self.told = level;
        Some(PlanNews {
            subscription: Some(self.id),
            plan: running.terms.name.clone(),
            per: None,
            bound: running.terms.allowance,
            used,
            level,
            opens_at: running.ends,
        })
    }

    /// Refuses unless it is in one of these states.
    pub(crate) fn check_status(
        &self,
        may: &[SubscriptionStatus],
        what: &str,
    ) -> Result<(), Refusal> {
        if may.contains(&self.state.status) {
            return Ok(());
        }
        let status = self.state.status.as_str();
        Err(self.refused(&format!("it is {status} and cannot be {what}")))
    }

    fn refused(&self, why: &str) -> Refusal {
        Refusal::NotApplicable(format!("subscription {}: {why}", self.id))
    }
}
