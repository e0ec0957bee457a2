//! Plans in the reference store: their calendar in days of its own counting, and what time makes of subscriptions.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::State;
use super::operations::{Done, amount, blank, picos};
use super::sources::{free, named};
use crate::book::plan_act;
use crate::{
    Act, Amount, CustomerId, EntryKind, EventKind, Grant, GrantId, GrantKind, GrantName,
    GrantStatus, JournalEntry, OperationId, PastPeriod, PeriodAnchor, PlanPeriod, PlanTerms,
    RunningPeriod, Subscription, SubscriptionId, SubscriptionStatus, Timestamp, clock,
};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

// --- the calendar ---

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month from 0, day from 0, counted on from 1970.
fn civil(mut days: i64) -> (i64, i64, i64) {
    let (mut year, mut month) = (1970, 0_i64);
    loop {
        let of_year = 365_i64.saturating_add(i64::from(is_leap(year)));
        if days < of_year {
            break;
        }
        days = days.saturating_sub(of_year);
        year = year.saturating_add(1);
    }
    while days >= days_of(year, month.saturating_add(1)) {
        days = days.saturating_sub(days_of(year, month.saturating_add(1)));
        month = month.saturating_add(1);
    }
    (year, month, days)
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let years = (1970..year).map(|year| 365_i64.saturating_add(i64::from(is_leap(year))));
    let months = (0..month).map(|month| days_of(year, month.saturating_add(1)));
    years.chain(months).sum::<i64>().saturating_add(day)
}

/// Where a period begins that is reckoned from an anchor, at or behind it.
fn begin_of(anchor: &PeriodAnchor, number: u32) -> Timestamp {
    let periods = i64::from(number).saturating_sub(anchor.number.into());
    let at = anchor.at.millis();
    let moved = match anchor.period {
        PlanPeriod::Days(days) => {
            at.saturating_add(periods.saturating_mul(i64::from(days)).saturating_mul(DAY))
        }
        PlanPeriod::Month => {
            let (year, month, day) = civil(at.div_euclid(DAY));
            let months = month.saturating_add(periods);
            let (year, month) = (
                year.saturating_add(months.div_euclid(12)),
                months.rem_euclid(12),
            );
            let last = days_of(year, month.saturating_add(1)).saturating_sub(1);
            let days = days_since_1970(year, month, day.min(last));
            days.saturating_mul(DAY).saturating_add(at.rem_euclid(DAY))
        }
    };
    Timestamp::from_millis(moved)
}

// --- what time does, without booking it ---

/// When time does something to a subscription next.
pub(super) fn waits_since(of: &Subscription) -> Option<i64> {
    let state = &of.state;
    if state.status == SubscriptionStatus::Paused {
        return None;
    }
    match (&state.running, state.sold.is_empty()) {
        (None, true) => None,
        (None, false) => Some(0),
        (Some(running), false) => Some(running.ends.millis()),
        (Some(_), true) => lives_until(of).map(Timestamp::millis),
    }
}

/// The end of the running period with its grace, which only who may renew it has.
pub(super) fn lives_until(of: &Subscription) -> Option<Timestamp> {
    let running = of.state.running.as_ref()?;
    let grace = match of.state.status {
        SubscriptionStatus::Paused => return None,
        SubscriptionStatus::Active => running.terms.grace,
        SubscriptionStatus::Lapsed | SubscriptionStatus::Ended => 0,
    };
    let end = running.ends.millis().saturating_add(grace);
    Some(Timestamp::from_millis(end))
}

/// What comes of a subscription whose time has come, and the period that begins, with what it gives.
pub(super) struct Stepped {
    pub(super) after: Subscription,
    pub(super) begun: Option<(Grant, i128)>,
    /// The period that this one follows, and how much of it may move on; if none begins, the one that is over.
    pub(super) before: Option<(GrantId, i128)>,
}

pub(super) fn step_of(of: &Subscription, now: Timestamp) -> Stepped {
    let mut after = of.clone();
    let before = after.state.running.take();
    if after.state.sold.is_empty() {
        (after.state.past, after.moved) = (None, Amount::ZERO);
        if after.state.status == SubscriptionStatus::Active {
            after.state.status = SubscriptionStatus::Lapsed;
        }
        return Stepped {
            after,
            begun: None,
            before: before.map(|before| (before.grant, 0)),
        };
    }
    let mut sold = after.state.sold.remove(0);
    let missing = if sold.count == 1 {
        picos(sold.taken)
    } else {
        0
    };
    let (terms, payment) = (sold.terms.clone(), sold.payment.clone());
    sold.count = sold.count.saturating_sub(1);
    if sold.count > 0 {
        after.state.sold.insert(0, sold);
    }
    let number = after.state.last.saturating_add(1);
    let begins = before.as_ref().map_or(now, |before| before.ends);
    let is_in_step = before.is_some() && after.state.anchor.period == terms.period;
    if !is_in_step {
        after.state.anchor = PeriodAnchor {
            at: begins,
            number,
            period: terms.period,
        };
    }
    let ends = begin_of(&after.state.anchor, number.saturating_add(1));
    if let Some(before) = &before {
        after.state.past = Some(PastPeriod {
            grant: before.grant,
            most: before.terms.carry,
            until: Some(Timestamp::from_millis(begins.millis().saturating_add(HOUR))),
            becomes_credit: None,
        });
        after.moved = Amount::ZERO;
    }
    if after.state.status == SubscriptionStatus::Lapsed {
        after.state.status = SubscriptionStatus::Active;
    }
    (after.state.last, after.told) = (number, 0);
    let gives = picos(terms.allowance).saturating_sub(missing);
    let id = period_id(of.id, number);
    let grace = match after.state.status {
        SubscriptionStatus::Ended => 0,
        SubscriptionStatus::Active | SubscriptionStatus::Lapsed | SubscriptionStatus::Paused => {
            terms.grace
        }
    };
    let grace = ends.millis().saturating_add(grace);
    let grant = Grant {
        id,
        customer: of.customer,
        kind: GrantKind::Plan,
        amount: amount(gives).unwrap_or_default(),
        priority: 20,
        effective_at: begins,
        expires_at: Some(Timestamp::from_millis(grace)),
        models: terms.models.clone(),
        remaining: amount(gives).unwrap_or_default(),
        held: Amount::ZERO,
        status: GrantStatus::Active,
        told: None,
    };
    let carry = before.map(|before| (before.grant, picos(before.terms.carry)));
    after.state.running = Some(RunningPeriod {
        number,
        grant: id,
        terms,
        begins,
        ends,
        payment,
    });
    Stepped {
        after,
        begun: Some((grant, gives)),
        before: carry,
    }
}

fn period_id(of: SubscriptionId, number: u32) -> GrantId {
    let mut hash = Sha256::new_with_prefix(b"farebox period");
    hash.update(of.to_i64().to_be_bytes());
    hash.update(number.to_be_bytes());
    let digest = hash.finalize();
    let bits = digest.iter().take(8);
    GrantId::from_random(bits.fold(0, |bits, byte| bits.wrapping_shl(8) | u64::from(*byte)))
}

pub(super) fn is_open(of: &Subscription) -> bool {
    let state = &of.state;
    let past = state.past.as_ref();
    state.status != SubscriptionStatus::Ended
        || state.running.is_some()
        || !state.sold.is_empty()
        || past.is_some_and(|past| past.becomes_credit.is_some())
}

/// The price's share of so much of the allowance.
pub(super) fn worth(terms: &PlanTerms, part: i128) -> i128 {
    let whole = part.saturating_mul(picos(terms.price));
    whole.checked_div(picos(terms.allowance)).unwrap_or(0)
}

pub(super) fn beside(act: &Act) -> Act {
    Act {
        operation: act.operation.derived(b"farebox plan"),
        ..act.clone()
    }
}

impl Subscription {
    /// Whether a grant is or was one of its periods.
    pub(super) fn has_period(&self, id: GrantId) -> bool {
        (1..=self.state.last).any(|number| period_id(self.id, number) == id)
    }
}

impl State {
    pub(super) fn subscriptions_of(
        &self,
        customer: CustomerId,
    ) -> impl Iterator<Item = &Subscription> {
        let all = self.subscriptions.values();
        all.filter(move |of| of.customer == customer && is_open(of))
    }

    pub(super) fn keep_subscription(&mut self, of: Subscription) {
        let customer = of.customer;
        self.subscriptions.insert(of.id, of);
        self.show_grants(customer);
    }

    pub(super) fn keep_with_act(&mut self, of: Subscription, act: &Act, word: &'static str) {
        self.write(of.customer, plan_act::leaves(act, word, &of, &[]));
        self.keep_subscription(of);
    }

    pub(super) fn keep_gone_back(&mut self, of: Subscription, act: &Act) {
        self.keep_with_act(of, &beside(act), "reverse_plan");
    }

    /// Books what time has done to a subscription.
    pub(super) fn step(&mut self, id: SubscriptionId, since: i64) -> Done<()> {
        let Some(of) = self.subscriptions.get(&id).cloned() else {
            return Ok(());
        };
        let now = clock::now();
        let Stepped {
            after,
            begun,
            before,
        } = step_of(&of, now);
        let what = match begun {
            Some(_) => format!("begins {}", after.state.last),
            None => format!("lapses {}", of.state.last),
        };
        let operation = OperationId::new(Timestamp::from_millis(since), 0)
            .derived(format!("farebox plan {id} {what}").as_bytes());
        let act = Act {
            operation,
            actor: "gateway".to_owned(),
            at: now,
        };
        let customer = of.customer;
        match begun {
            Some((grant, gives)) => {
                self.begin_period((after, &act), (grant, gives), before)?;
            }
            None => {
                if let Some((over, _)) = before {
                    self.end_period(over, (operation, EntryKind::Expired), 0)?;
                }
                let is_news = of.state.status == SubscriptionStatus::Active;
                self.keep_with_act(after.clone(), &act, "lapse_plan");
                if is_news {
                    self.tell_of_plan(&after, operation, EventKind::PlanLapsed, json!({}));
                }
            }
        }
        self.collect(customer, operation, now)?;
        self.tell_of_balance(customer, operation)
    }

    fn begin_period(
        &mut self,
        (after, act): (Subscription, &Act),
        (grant, gives): (Grant, i128),
        before: Option<(GrantId, i128)>,
    ) -> Done<()> {
        let (customer, into) = (after.customer, grant.id);
        let left = |id: &GrantId| self.grants.get(id).map_or(0, |known| free(&known.grant));
        let moves = before.map_or(0, |(id, most)| left(&id).min(most));
        let credit = picos(self.customer(customer)?.account.credit).saturating_add(gives);
        let is_given = credit <= picos(Amount::MAX_LIFETIME_CREDIT);
        let remaining = if is_given {
            gives.saturating_add(moves)
        } else {
            moves
        };
        let grant = Grant {
            remaining: amount(remaining)?,
            ..grant
        };
        let made = self.keep_grant(grant, GrantName(None), &act.actor);
        if is_given {
            self.enter_part(customer, act.operation, (EntryKind::Grant, into, gives))?;
        }
        if let Some((over, _)) = before {
            self.carry(customer, act.operation, (over, into, moves))?;
            self.end_period(over, (act.operation, EntryKind::Expired), moves)?;
        }
        let written = plan_act::leaves(act, "begin_period", &after, &[made]);
        let moved = match before {
            Some(_) => amount(moves)?,
            None => after.moved,
        };
        self.keep_subscription(Subscription { moved, ..after });
        self.write(customer, written);
        Ok(())
    }

    /// What is left of a period and does not move goes.
    pub(super) fn end_period(
        &mut self,
        id: GrantId,
        (cause, kind): (OperationId, EntryKind),
        moved: i128,
    ) -> Done<()> {
        let Some(known) = self.grants.get(&id).map(|known| known.grant.clone()) else {
            return Ok(());
        };
        let lost = free(&known).saturating_sub(moved);
        let status = match kind {
            EntryKind::Void => GrantStatus::Voided,
            _ => GrantStatus::Expired,
        };
        self.edit(id, |grant| {
            (grant.remaining, grant.status) = (grant.held, status);
        });
        if lost > 0 {
            let operation = cause.derived(format!("farebox over {id}").as_bytes());
            let part = (kind, id, lost.saturating_neg());
            self.enter_part(known.customer, operation, part)?;
        }
        Ok(())
    }

    /// Two entries of one name: out of one period, and into the next.
    fn carry(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        (from, into, moved): (GrantId, GrantId, i128),
    ) -> Done<()> {
        let out = cause.derived(b"farebox carried out");
        let back = cause.derived(b"farebox carried in");
        if moved <= 0 {
            return Ok(());
        }
        for (operation, id, part) in [(out, from, moved.saturating_neg()), (back, into, moved)] {
            let entry = JournalEntry {
                operation,
                kind: EntryKind::Carry,
                amount: amount(part)?,
                at: clock::now(),
                actor: "gateway".to_owned(),
                reference: Some(format!("carry {out}")),
                parts: named(vec![(Some(id), part)])?,
                ..blank(customer, None)
            };
            let after = self.credited_by(customer, part)?;
            self.enter(customer, after, entry)?;
        }
        Ok(())
    }

    /// What of a loss follows its period: into the next one, or into credit. Returns what is not lost by that.
    pub(super) fn follow(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        (id, back): (GrantId, i128),
    ) -> Done<i128> {
        let waits = self.subscriptions_of(customer).find_map(|of| {
            let past = of.state.past.clone().filter(|past| past.grant == id)?;
            let is_in_time = past.until.is_none_or(|until| clock::now() < until);
            is_in_time.then(|| (of.clone(), past))
        });
        let Some((mut of, past)) = waits else {
            return Ok(0);
        };
        let before = picos(of.moved);
        let moves = picos(past.most).saturating_sub(before).min(back);
        if moves <= 0 {
            return Ok(0);
        }
        of.moved = amount(before.saturating_add(moves))?;
        let (after, running) = (picos(of.moved), of.state.running.clone());
        self.keep_subscription(of);
        let operation = cause.derived(format!("farebox follows {id}").as_bytes());
        if let Some(terms) = past.becomes_credit {
            let credit = worth(&terms, after).saturating_sub(worth(&terms, before));
            self.enter_credit(customer, operation, &terms, credit)?;
            return Ok(0);
        }
        let Some(into) = running.map(|running| running.grant) else {
            return Ok(0);
        };
        self.carry(customer, operation, (id, into, moves))?;
        let known = self
            .grants
            .get(&into)
            .map(|known| picos(known.grant.remaining));
        let remaining = amount(known.unwrap_or(0).saturating_add(moves))?;
        self.edit(into, |grant| grant.remaining = remaining);
        Ok(moves)
    }

    pub(super) fn enter_credit(
        &mut self,
        customer: CustomerId,
        operation: OperationId,
        terms: &PlanTerms,
        credit: i128,
    ) -> Done<()> {
        if credit <= 0 {
            return Ok(());
        }
        let entry = JournalEntry {
            operation,
            kind: EntryKind::Adjust,
            amount: amount(credit)?,
            at: clock::now(),
            actor: "gateway".to_owned(),
            reason: Some(format!("the unused part of a period of {}", terms.name)),
            ..blank(customer, None)
        };
        let after = self.credited_by(customer, credit)?;
        self.enter(customer, after, entry).map(drop)
    }

    pub(super) fn tell_of_plan(
        &mut self,
        of: &Subscription,
        cause: OperationId,
        kind: EventKind,
        more: Value,
    ) {
        let mut data = json!({
            "subscription": of.id, "plan": of.state.terms.name, "title": of.state.terms.title,
            "status": of.state.status, "ends_at": of.state.running.as_ref().map(|running| running.ends),
            "paid_until": of.paid_until(), "processor": of.state.processor,
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            data[name] = value.clone();
        }
        self.tell(of.customer, cause, kind, &data);
    }
}
