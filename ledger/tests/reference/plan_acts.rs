//! What people do to plans in the reference store: periods that are sold and given, and subscriptions that are changed.

use serde_json::{Value, json};

use super::State;
use super::customers::not_closed;
use super::operations::{Done, amount, blank, not_applicable, picos};
use super::plans::{beside, is_open, lives_until, worth};
use super::sources::free;
use crate::book::{audit, plan_act};
use crate::value::reference::normal;
use crate::{
    Act, Amount, CustomerId, EntryKind, EventKind, JournalEntry, NewPayment, PastPeriod,
    PeriodAnchor, PlanAct, PlanAnswer, PlanChange, PlanPurchase, PlanTerms, Refusal, SoldPeriods,
    Subscription, SubscriptionId, SubscriptionState, SubscriptionStatus, Timestamp, clock,
};

impl State {
    /// The subscription with what is sold, or why not; and whether it is new.
    fn sold(
        &self,
        customer: CustomerId,
        of: &PlanPurchase,
        (payment, by): (Option<&str>, &Act),
    ) -> Done<(Subscription, bool)> {
        of.check()?;
        not_closed(self.customer(customer)?)?;
        let known = self.subscriptions.get(&of.subscription).cloned();
        if known
            .as_ref()
            .is_some_and(|known| known.customer != customer)
        {
            let text = format!("subscription {} is of another customer", of.subscription);
            return Err(not_applicable(&text));
        }
        let is_new = known.is_none();
        let mut known = known.unwrap_or_else(|| first(customer, of, by));
        let state = &mut known.state;
        if state.status == SubscriptionStatus::Ended {
            let in_time = (of.invoiced_at.zip(state.ended_at)).is_some_and(|(at, end)| at < end);
            if !in_time {
                let text = format!(
                    "subscription {}: it is ended and cannot be renewed",
                    of.subscription
                );
                return Err(not_applicable(&text));
            }
        } else {
            self.check_beside(customer, of.subscription, &of.terms)?;
        }
        let price = if payment.is_some() {
            of.terms.price
        } else {
            Amount::ZERO
        };
        if payment.is_some() {
            state.terms = of.terms.clone();
            state.token = self.asked_by.token().or(state.token);
        }
        if of.processor.is_some() {
            state.processor.clone_from(&of.processor);
        }
        let ahead: u32 = state.sold.iter().map(|sold| sold.count).sum();
        if ahead.saturating_add(of.periods) > 24 {
            return Err(not_applicable(&format!(
                "subscription {} has {ahead} periods paid ahead, and at most 24 can be",
                of.subscription
            )));
        }
        state.sold.push(SoldPeriods {
            count: of.periods,
            terms: PlanTerms {
                price,
                ..of.terms.clone()
            },
            payment: payment.map(str::to_owned),
            taken: Amount::ZERO,
        });
        Ok((known, is_new))
    }

    fn check_beside(
        &self,
        customer: CustomerId,
        id: SubscriptionId,
        terms: &PlanTerms,
    ) -> Done<()> {
        let others = self.subscriptions_of(customer);
        let mut others: Vec<_> = others.filter(|other| other.id != id).collect();
        others.retain(|other| other.state.status != SubscriptionStatus::Ended);
        if let Some(same) = (others.iter()).find(|other| other.state.terms.name == terms.name) {
            return Err(not_applicable(&format!(
                "customer {customer} has {} already, as subscription {}: renew that one",
                terms.name, same.id
            )));
        }
        if others.len() < 4 {
            return Ok(());
        }
        Err(not_applicable(
            "a customer has at most 4 subscriptions that are not ended; end one first",
        ))
    }

    fn sell(&mut self, (of, is_new): (Subscription, bool), act: &Act, more: Value) -> Done<()> {
        let (customer, id) = (of.customer, of.id);
        self.keep_with_act(of, act, "sell_plan");
        self.settle_grants(customer)?;
        let kind = if is_new {
            EventKind::PlanStarted
        } else {
            EventKind::PlanRenewed
        };
        let now = self
            .subscriptions
            .get(&id)
            .filter(|of| is_open(of))
            .cloned();
        if let Some(of) = now {
            self.tell_of_plan(&of, act.operation, kind, more);
        }
        Ok(())
    }

    /// The entry of nothing that has the name of a sale.
    fn receipt(
        &mut self,
        customer: CustomerId,
        act: &Act,
        (name, of): (&str, &PlanPurchase),
    ) -> Done<JournalEntry> {
        let reason = match of.periods {
            1 => format!("a period of {}", of.terms.name),
            many => format!("{many} periods of {}", of.terms.name),
        };
        let entry = JournalEntry {
            operation: act.operation,
            kind: EntryKind::Grant,
            at: act.at,
            actor: act.actor.clone(),
            reference: Some(normal(name)),
            reason: Some(reason),
            ..blank(customer, None)
        };
        let account = self.customer(customer)?.account;
        self.enter(customer, account, entry)
    }

    /// Books a payment for periods.
    pub(super) fn pay_for_plan(
        &mut self,
        new: &NewPayment,
        of: &PlanPurchase,
    ) -> Done<JournalEntry> {
        self.settle_grants(new.customer)?;
        let name = normal(&new.reference);
        let sold = self.sold(new.customer, of, (Some(&name), &new.act))?;
        let price = amount(picos(of.terms.price).saturating_mul(of.periods.into()))?;
        self.check_booked(new.credit)?;
        self.count_booked(new.credit, true);
        let entry = self.receipt(new.customer, &new.act, (&name, of))?;
        self.write(new.customer, audit::payment(new));
        let more = json!({ "periods": of.periods, "payment": name, "price": price });
        self.sell(sold, &beside(&new.act), more)?;
        Ok(entry)
    }

    /// Gives a period for a voucher.
    pub(super) fn redeem_plan(
        &mut self,
        (customer, act): (CustomerId, &Act),
        terms: &PlanTerms,
        name: &str,
    ) -> Done<JournalEntry> {
        self.check_unused(act.operation)?;
        self.check_reference(name)?;
        not_closed(self.customer(customer)?)?;
        self.settle_grants(customer)?;
        let known = self.subscriptions_of(customer).find(|of| {
            of.state.status != SubscriptionStatus::Ended && of.state.terms.name == terms.name
        });
        let subscription = known.map_or(SubscriptionId::derived(act.operation), |of| of.id);
        let of = PlanPurchase {
            subscription,
            terms: terms.clone(),
            periods: 1,
            processor: None,
            invoiced_at: None,
        };
        let sold = self.sold(customer, &of, (None, act))?;
        let entry = self.receipt(customer, act, (name, &of))?;
        self.sell(sold, act, json!({ "periods": 1, "voucher": name }))?;
        Ok(entry)
    }

    pub(super) fn change_plan(&mut self, change: &PlanChange) -> Done<PlanAnswer> {
        let (customer, id, act) = (change.customer, change.subscription, &change.act);
        let word = plan_act::word(&change.change);
        if let Some(known) = self.audited(act.operation) {
            let left = plan_act::left(known).map(|(left, _)| left);
            if known.act == word && left == Some(id) {
                return self.plan_answer(change, true);
            }
        }
        self.check_unused(act.operation)?;
        self.settle_grants(customer)?;
        if let PlanAct::Give(of) = &change.change {
            if of.subscription != id {
                let text = "periods are given to the subscription that is changed";
                return Err(not_applicable(text));
            }
            let sold = self.sold(customer, of, (None, act))?;
            self.sell(sold, act, json!({ "periods": of.periods }))?;
            return self.plan_answer(change, false);
        }
        self.customer(customer)?;
        let known = self.subscriptions.get(&id).cloned();
        let mut of = known.ok_or(Refusal::NoSuchSubscription(id))?;
        if of.customer != customer {
            let text = format!("subscription {id} is of another customer");
            return Err(not_applicable(&text));
        }
        let event = self.acted(&mut of, &change.change, act)?;
        if let Some(running) = of.state.running.as_ref().map(|running| running.grant) {
            let until = lives_until(&of);
            self.edit(running, |grant| grant.expires_at = until);
        }
        self.keep_with_act(of.clone(), act, word);
        let more = json!({ "actor": act.actor });
        self.tell_of_plan(&of, act.operation, event, more);
        self.collect(customer, act.operation, act.at)?;
        self.tell_of_balance(customer, act.operation)?;
        self.settle_grants(customer)?;
        self.plan_answer(change, false)
    }

    /// Does what somebody wants to a subscription, as far as it is not its own row.
    fn acted(&mut self, of: &mut Subscription, change: &PlanAct, act: &Act) -> Done<EventKind> {
        use SubscriptionStatus::{Active, Ended, Lapsed, Paused};
        let (id, status, now) = (of.id, of.state.status, clock::now());
        let only = |may: &[SubscriptionStatus], what: &str| {
            if may.contains(&status) {
                return Ok(());
            }
            let status = status.as_str();
            Err(not_applicable(&format!(
                "subscription {id}: it is {status} and cannot be {what}"
            )))
        };
        Ok(match change {
            PlanAct::Give(_) => EventKind::PlanRenewed,
            PlanAct::Change { terms, at_once } => {
                terms.check()?;
                self.check_beside(of.customer, id, terms)?;
                if !at_once {
                    only(&[Active, Lapsed, Paused], "changed")?;
                    of.state.terms = terms.clone();
                    return Ok(EventKind::PlanChanged);
                }
                only(&[Active, Lapsed], "changed at once")?;
                let ahead: u32 = of.state.sold.iter().map(|sold| sold.count).sum();
                if ahead > 0 {
                    return Err(not_applicable(&format!(
                        "subscription {id}: {ahead} periods are paid ahead; change it with the next period that is not paid, or pay them back first"
                    )));
                }
                self.give_up(of, act)?;
                (of.state.status, of.state.terms) = (Lapsed, terms.clone());
                EventKind::PlanChanged
            }
            PlanAct::Pause => {
                only(&[Active], "paused")?;
                let ends = of.state.running.as_ref().map(|running| running.ends);
                if ends.is_none_or(|ends| ends <= now) {
                    let text = "its period is over: nothing is left to pause";
                    return Err(not_applicable(&format!("subscription {id}: {text}")));
                }
                (of.state.status, of.state.paused_at) = (Paused, Some(now));
                EventKind::PlanPaused
            }
            PlanAct::Resume => {
                only(&[Paused], "resumed")?;
                go_on(of, now);
                EventKind::PlanChanged
            }
            PlanAct::End => {
                only(&[Active, Lapsed, Paused], "ended")?;
                if status == Paused {
                    go_on(of, now);
                }
                (of.state.status, of.state.ended_at) = (Ended, Some(now));
                of.state.end_wanted = false;
                EventKind::PlanEnded
            }
            PlanAct::WantEnd => {
                only(&[Active, Lapsed, Paused], "ended")?;
                of.state.end_wanted = true;
                EventKind::PlanEndWanted
            }
        })
    }

    /// The running period becomes what its unused part is worth.
    fn give_up(&mut self, of: &mut Subscription, act: &Act) -> Done<()> {
        (of.state.past, of.moved) = (None, Amount::ZERO);
        let Some(running) = of.state.running.take() else {
            return Ok(());
        };
        let left = self
            .grants
            .get(&running.grant)
            .map_or(0, |known| free(&known.grant));
        let unused = left.min(picos(running.terms.allowance));
        self.end_period(running.grant, (act.operation, EntryKind::Void), 0)?;
        let operation = act.operation.derived(b"farebox credit");
        let credit = worth(&running.terms, unused);
        self.enter_credit(of.customer, operation, &running.terms, credit)?;
        of.moved = amount(unused)?;
        of.state.past = Some(PastPeriod {
            grant: running.grant,
            most: running.terms.allowance,
            until: None,
            becomes_credit: Some(running.terms),
        });
        Ok(())
    }

    fn plan_answer(&self, change: &PlanChange, repeated: bool) -> Done<PlanAnswer> {
        let known = self.subscriptions.get(&change.subscription);
        let known = known.ok_or(Refusal::NoSuchSubscription(change.subscription))?;
        Ok(PlanAnswer {
            subscription: known.clone(),
            customer: self.customer(change.customer)?.clone(),
            repeated,
        })
    }
}

/// Its time goes on: what is left of it is as long as it was.
fn go_on(of: &mut Subscription, now: Timestamp) {
    let since = of.state.paused_at.take().unwrap_or(now);
    let stood = now.millis().saturating_sub(since.millis()).max(0);
    if let Some(running) = &mut of.state.running {
        running.ends = Timestamp::from_millis(running.ends.millis().saturating_add(stood));
        let number = running.number.saturating_add(1);
        (of.state.anchor.at, of.state.anchor.number) = (running.ends, number);
    }
    of.state.status = SubscriptionStatus::Active;
}

/// A subscription before anything of it is sold.
fn first(customer: CustomerId, of: &PlanPurchase, by: &Act) -> Subscription {
    let now = clock::now();
    Subscription {
        id: of.subscription,
        customer,
        state: SubscriptionState {
            terms: of.terms.clone(),
            status: SubscriptionStatus::Active,
            anchor: PeriodAnchor {
                at: now,
                number: 1,
                period: of.terms.period,
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
            created_by: by.actor.clone(),
            token: None,
        },
        moved: Amount::ZERO,
        told: 0,
    }
}
