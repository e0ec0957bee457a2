//! What goes back of payments for periods in the reference store, what comes again, and what reads reckon in of plans.

use super::State;
use super::grants::gift;
use super::operations::{Done, amount, blank, picos};
use super::plans::{is_open, lives_until, step_of, waits_since, worth};
use super::sources::{free, named};
use super::windows::{begun, live};
use crate::book::grant_act;
use crate::value::reference::normal;
use crate::{
    Act, Amount, CustomerId, EntryKind, Grant, GrantId, GrantName, GrantStatus, JournalEntry,
    NewReversal, PaidPeriods, Payment, PlanWindow, Plans, SoldPeriods, Subscription,
    SubscriptionStatus, Timestamp, clock,
};

/// One message's entries: the first has its name and operation.
struct Told<'told> {
    new: &'told NewReversal,
    reason: &'told str,
    first: Option<JournalEntry>,
}

impl Told<'_> {
    fn blank(&self, customer: CustomerId) -> JournalEntry {
        let operation = self.new.act.operation;
        let is_first = self.first.is_none();
        JournalEntry {
            operation: if is_first {
                operation
            } else {
                operation.derived(b"farebox due")
            },
            kind: EntryKind::Reversal,
            at: self.new.act.at,
            actor: self.new.act.actor.clone(),
            reference: is_first.then(|| normal(&self.new.reference)),
            reason: Some(self.reason.to_owned()),
            ..blank(customer, None)
        }
    }

    fn note(&mut self, entry: JournalEntry) {
        self.first.get_or_insert(entry);
    }
}

impl State {
    /// Moves what is due of a payment for periods, counted in allowance.
    pub(super) fn move_due_of_plan(
        &mut self,
        payment: &mut Payment,
        new: &NewReversal,
        (more, reason): (i128, &str),
    ) -> Done<Option<JournalEntry>> {
        let Some(mut plan) = payment.plan.as_deref().cloned() else {
            return Ok(None);
        };
        let mut told = Told {
            new,
            reason,
            first: None,
        };
        let known = self.subscriptions.get(&plan.subscription);
        let known = known
            .filter(|of| of.customer == payment.customer && is_open(of))
            .cloned();
        let mut of = known.clone();
        if more > 0 {
            self.take_periods((payment, &mut plan), of.as_mut(), more, &mut told)?;
        } else {
            self.give_periods(
                (payment, &mut plan),
                of.as_mut(),
                more.saturating_neg(),
                &mut told,
            )?;
        }
        if told.first.is_none() {
            let account = self.customer(payment.customer)?.account;
            let nothing = told.blank(payment.customer);
            let nothing = self.enter(payment.customer, account, nothing)?;
            told.note(nothing);
        }
        if let Some(of) = of.filter(|of| known.as_ref() != Some(of)) {
            self.keep_gone_back(of, &new.act);
        }
        payment.plan = Some(Box::new(plan));
        Ok(told.first)
    }

    fn take_periods(
        &mut self,
        (payment, plan): (&Payment, &mut PaidPeriods),
        of: Option<&mut Subscription>,
        more: i128,
        told: &mut Told<'_>,
    ) -> Done<()> {
        let (customer, mut left) = (payment.customer, more);
        let is_own = |of: Option<&String>| of == Some(&payment.reference);
        let each = picos(plan.terms.allowance);
        if let Some(of) = of {
            // One period after the other, the last one first.
            for sold in of.state.sold.iter_mut().rev() {
                if !is_own(sold.payment.as_ref()) {
                    continue;
                }
                while sold.count > 0 && left > 0 {
                    let there = each.saturating_sub(picos(sold.taken));
                    let taken = there.min(left);
                    left = left.saturating_sub(taken);
                    plan.of_sold = amount(picos(plan.of_sold).saturating_add(taken))?;
                    sold.taken = amount(picos(sold.taken).saturating_add(taken))?;
                    if taken == there {
                        (sold.count, sold.taken) = (sold.count.saturating_sub(1), Amount::ZERO);
                    }
                }
            }
            of.state.sold.retain(|sold| sold.count > 0);
            let running = of.state.running.clone();
            if let Some(running) = running.filter(|running| is_own(running.payment.as_ref())) {
                let known = self
                    .grants
                    .get(&running.grant)
                    .map(|known| known.grant.clone());
                let there = known.as_ref().map_or(0, free);
                let taken = there.min(left).min(each);
                left = left.saturating_sub(taken);
                plan.of_running = amount(picos(plan.of_running).saturating_add(taken))?;
                if taken > 0 {
                    let remaining = known.map_or(0, |grant| picos(grant.remaining));
                    let remaining = amount(remaining.saturating_sub(taken))?;
                    self.edit(running.grant, |grant| grant.remaining = remaining);
                    self.enter_of(customer, told, (running.grant, taken.saturating_neg()))?;
                }
                if is_whole(payment) {
                    let cause = (told.new.act.operation, EntryKind::Void);
                    self.end_period(running.grant, cause, 0)?;
                    without_period(of);
                }
            }
        }
        let before = worth(&plan.terms, picos(plan.of_used));
        plan.of_used = amount(picos(plan.of_used).saturating_add(left))?;
        let owed = worth(&plan.terms, picos(plan.of_used)).saturating_sub(before);
        if owed > 0 {
            let entry = self.claim(customer, owed, told.blank(customer))?;
            told.note(entry);
        }
        Ok(())
    }

    fn give_periods(
        &mut self,
        (payment, plan): (&Payment, &mut PaidPeriods),
        of: Option<&mut Subscription>,
        again: i128,
        told: &mut Told<'_>,
    ) -> Done<()> {
        let (customer, mut left) = (payment.customer, again);
        let ends = of.as_ref().and_then(|of| lives_until(of));
        let mut back = |part: &mut Amount| {
            let given = picos(*part).min(left);
            left = left.saturating_sub(given);
            *part = amount(picos(*part).saturating_sub(given))?;
            Done::Ok(given)
        };
        let before = worth(&plan.terms, picos(plan.of_used));
        back(&mut plan.of_used)?;
        let (mut again, sold) = (back(&mut plan.of_running)?, back(&mut plan.of_sold)?);
        let paid = before.saturating_sub(worth(&plan.terms, picos(plan.of_used)));
        if paid > 0 {
            let entry = self.claim(customer, paid.saturating_neg(), told.blank(customer))?;
            told.note(entry);
        }
        match of {
            Some(of) if sold > 0 => {
                let each = picos(plan.terms.allowance);
                let count = sold.saturating_add(each).saturating_sub(1).div_euclid(each);
                of.state.sold.push(SoldPeriods {
                    count: u32::try_from(count).unwrap_or(u32::MAX),
                    terms: plan.terms.clone(),
                    payment: Some(payment.reference.clone()),
                    taken: amount(each.saturating_mul(count).saturating_sub(sold))?,
                });
            }
            Some(_) => {}
            None => again = again.saturating_add(sold),
        }
        if again > 0 {
            let act = &told.new.act;
            let id = GrantId::derived(act.operation, 0);
            let grant = Grant {
                models: plan.terms.models.clone(),
                expires_at: Some(ends.unwrap_or_else(in_30_days)),
                ..gift(customer, id, amount(again)?)
            };
            let made = self.keep_grant(grant, GrantName(None), &act.actor);
            let act = Act {
                operation: act.operation.derived(b"farebox again"),
                ..act.clone()
            };
            self.enter_of(customer, told, (id, again))?;
            self.write(customer, grant_act::grant(&act, &made));
        }
        Ok(())
    }

    fn enter_of(
        &mut self,
        customer: CustomerId,
        told: &mut Told<'_>,
        (id, moved): (GrantId, i128),
    ) -> Done<()> {
        let entry = JournalEntry {
            amount: amount(moved)?,
            parts: named(vec![(Some(id), moved)])?,
            ..told.blank(customer)
        };
        let after = self.credited_by(customer, moved)?;
        let entry = self.enter(customer, after, entry)?;
        told.note(entry);
        Ok(())
    }

    /// How long what comes back can be used whose grant has ended.
    pub(super) fn lasts_until(&self, customer: CustomerId, id: GrantId) -> Timestamp {
        let mut own = self.subscriptions_of(customer);
        let own = own.find(|of| of.has_period(id));
        own.and_then(lives_until).unwrap_or_else(in_30_days)
    }

    /// What time has made of a customer's plans and nobody has booked, with the grants that it ends and begins.
    pub(super) fn stepped(
        &self,
        customer: CustomerId,
        now: Timestamp,
        (grants, credit): (&mut Vec<Grant>, &mut i128),
    ) -> Plans {
        let mut all: Vec<Subscription> = self.subscriptions_of(customer).cloned().collect();
        let mut windows: Vec<PlanWindow> = self.windows_of(customer).cloned().collect();
        for of in &mut all {
            while waits_since(of).is_some_and(|since| since <= now.millis()) {
                let step = step_of(of, now);
                let mut moves = 0;
                if let Some((id, most)) = step.before
                    && let Some(over) = grants.iter_mut().find(|grant| grant.id == id)
                {
                    moves = free(over).min(most);
                    *credit = credit.saturating_sub(free(over)).saturating_add(moves);
                    (over.remaining, over.status) = (over.held, GrantStatus::Expired);
                }
                if let Some((grant, gives)) = step.begun {
                    *credit = credit.saturating_add(gives);
                    grants.push(Grant {
                        remaining: amount(gives.saturating_add(moves)).unwrap_or_default(),
                        ..grant
                    });
                }
                let follows = step.after.state.running.is_some() && step.before.is_some();
                *of = step.after;
                if follows {
                    of.moved = amount(moves).unwrap_or_default();
                }
            }
        }
        if !all.is_empty() {
            let periods: Vec<_> = all.iter().filter_map(live).cloned().collect();
            begun(customer, &periods, &mut windows, now);
        }
        all.retain(is_open);
        Plans::of(all, windows)
    }

    /// What is wrong with what is counted in a customer's windows.
    pub(super) fn unsound_windows(&self, customer: CustomerId) -> Vec<String> {
        let mut faults = Vec::new();
        for window in self.windows_of(customer) {
            let entries = self.of_customer(customer);
            let entries =
                entries.filter(|entry| matches!(entry.kind, EntryKind::Charge | EntryKind::Refund));
            let parts = entries.flat_map(|entry| &entry.parts);
            let parts = parts.filter(|part| part.windows.contains(&window.id));
            let charged: i128 = parts.map(|part| picos(part.amount)).sum();
            let used = picos(window.charged).saturating_add(picos(window.held));
            if charged.saturating_neg() != picos(window.charged) || used > picos(window.bound) {
                faults.push(format!(
                    "a window of {customer} does not follow from its entries"
                ));
            }
        }
        faults
    }
}

impl State {
    /// A period that was voided leaves its subscription without one.
    pub(super) fn lose_period_of(
        &mut self,
        (customer, id): (CustomerId, GrantId),
        act: &Act,
    ) -> Done<()> {
        let is_its = |plan: &&Subscription| {
            let period = plan.state.running.as_ref();
            period.is_some_and(|period| period.grant == id)
        };
        let running = self.subscriptions_of(customer).find(is_its).cloned();
        if let Some(mut plan) = running {
            without_period(&mut plan);
            self.keep_gone_back(plan, act);
            self.settle_grants(customer)?;
        }
        Ok(())
    }
}

/// Its running period is gone.
fn without_period(of: &mut Subscription) {
    (of.state.running, of.state.past, of.state.paused_at) = (None, None, None);
    if of.state.status != SubscriptionStatus::Ended {
        of.state.status = SubscriptionStatus::Lapsed;
    }
}

fn is_whole(payment: &Payment) -> bool {
    let told = payment.registers;
    let [refunded, withdrawn, reinstated, gross] = [
        told.refunded,
        told.withdrawn,
        told.reinstated,
        payment.paid.gross,
    ]
    .map(|part| i128::from(part.parts()));
    refunded.saturating_add(withdrawn.saturating_sub(reinstated).max(0)) >= gross
}

fn in_30_days() -> Timestamp {
    let days = 30_i64.saturating_mul(86_400_000);
    Timestamp::from_millis(clock::now().millis().saturating_add(days))
}
