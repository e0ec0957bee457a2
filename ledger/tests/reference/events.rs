//! Events of the reference store: what each operation tells, decided here once more. Events of all customers are kept for ever.

use serde_json::{Value, json};

use super::State;
use super::operations::{Done, amount, picos};
use crate::rule::watch::{BalanceTold, CustomerWatch};
use crate::value::reference::normal;
use crate::{
    Act, Amount, CustomerId, Event, EventKind, FilesAct, JournalEntry, KeyId, NewPayment,
    NewReversal, News, OperationId, Scope, clock,
};

impl State {
    pub(super) fn tell(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        kind: EventKind,
        data: &Value,
    ) {
        let watch = self.watched.entry(customer).or_default();
        watch.seq = watch.seq.saturating_add(1);
        let seq = watch.seq;
        self.events.push(Event {
            id: cause.derived(format!("farebox event {customer} {seq}").as_bytes()),
            kind,
            at: clock::now(),
            customer: Some(customer),
            seq: Some(seq),
            data: data.to_string(),
        });
    }

    pub(super) fn tell_of_files(&mut self, act: &FilesAct, news: &[News]) {
        for (number, News { kind, data }) in (1..).zip(news) {
            self.events.push(Event {
                id: act
                    .operation
                    .derived(format!("farebox event {number}").as_bytes()),
                kind: *kind,
                at: clock::now(),
                customer: None,
                seq: None,
                data: data.clone(),
            });
        }
    }

    /// An act upon a customer, or upon one of its keys.
    pub(super) fn tell_of_act(
        &mut self,
        customer: CustomerId,
        key: Option<KeyId>,
        kind: EventKind,
        act: &Act,
    ) {
        let mut data = json!({});
        if let Some(key) = key {
            data["key"] = json!(key);
        }
        data["actor"] = json!(act.actor);
        self.tell(customer, act.operation, kind, &data);
    }

    pub(super) fn tell_of_top_up(&mut self, entry: &JournalEntry) {
        let data = json!({
            "amount": entry.amount, "reference": entry.reference, "balance": entry.balance_after, "key": entry.key,
            "actor": entry.actor,
        });
        let (customer, operation) = (entry.customer, entry.operation);
        self.watched.entry(customer).or_default().last_top_up = entry.amount;
        self.end_wish(entry);
        self.tell(customer, operation, EventKind::TopUpBooked, &data);
    }

    pub(super) fn tell_unapplied(&mut self, new: &NewPayment, why: &str) {
        let data = json!({
            "amount": new.credit, "reference": normal(&new.reference), "why": why, "actor": new.act.actor,
        });
        let operation = new.act.operation;
        self.tell(new.customer, operation, EventKind::TopUpUnapplied, &data);
    }

    pub(super) fn tell_of_waiting(&mut self, customer: CustomerId, new: &NewReversal, why: &str) {
        let data = json!({
            "payment": normal(&new.payment), "kind": new.kind, "cumulative": new.cumulative,
            "reference": normal(&new.reference), "why": why, "actor": new.act.actor,
        });
        let operation = new.act.operation;
        self.tell(customer, operation, EventKind::ReversalUnapplied, &data);
    }

    pub(super) fn tell_of_reversal(
        &mut self,
        payment: &str,
        kind: Option<&str>,
        entry: &JournalEntry,
    ) -> Done<()> {
        let data = json!({
            "payment": payment, "kind": kind, "amount": entry.amount, "reference": entry.reference,
            "balance": entry.balance_after, "claim": self.customer(entry.customer)?.claim, "actor": entry.actor,
        });
        let (customer, operation) = (entry.customer, entry.operation);
        self.tell(customer, operation, EventKind::ReversalBooked, &data);
        Ok(())
    }

    pub(super) fn tell_of_claim(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        before: Amount,
        after: Amount,
    ) {
        let kind = match (picos(before), picos(after)) {
            (0, 1..) => EventKind::ClaimOpened,
            (1.., 0) => EventKind::ClaimPaid,
            _ => return,
        };
        self.tell(customer, cause, kind, &json!({ "claim": after }));
    }

    /// Tells what has become of a balance, and asks for money.
    pub(super) fn tell_of_balance(&mut self, customer: CustomerId, cause: OperationId) -> Done<()> {
        self.tell_of_level(customer, cause)?;
        self.ask_for_money(customer, cause)
    }

    /// Tells of a balance that fell below its threshold, was used up, or is a tenth above the threshold again.
    fn tell_of_level(&mut self, customer: CustomerId, cause: OperationId) -> Done<()> {
        let found = self.customer(customer)?;
        let (account, set) = (
            found.account,
            found.settings.low_balance.or(found.defaults.low_balance),
        );
        let CustomerWatch {
            last_top_up, told, ..
        } = self.watched.get(&customer).copied().unwrap_or_default();
        let low = set.map_or_else(|| picos(last_top_up).div_euclid(10), picos);
        let balance = picos(account.credit).saturating_sub(picos(account.spent));
        let is_well = balance >= low.saturating_add(low.div_euclid(10));
        let (now, kind) = if balance <= 0 {
            (BalanceTold::Depleted, Some(EventKind::BalanceDepleted))
        } else if is_well {
            (BalanceTold::Nothing, Some(EventKind::BalanceRestored))
        } else if told == BalanceTold::Depleted && balance >= low.div_euclid(10) {
            (BalanceTold::Low, None)
        } else if told == BalanceTold::Nothing && balance < low {
            (BalanceTold::Low, Some(EventKind::BalanceLow))
        } else {
            (told, None)
        };
        if now == told {
            return Ok(());
        }
        self.watched.entry(customer).or_default().told = now;
        if let Some(kind) = kind {
            let data = json!({ "balance": amount(balance)?, "threshold": amount(low)? });
            self.tell(customer, cause, kind, &data);
        }
        Ok(())
    }

    /// Tells of caps whose window has a new level.
    pub(super) fn tell_of_caps(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        reached: Vec<(Scope, Value)>,
    ) {
        for (scope, mut data) in reached {
            data["scope"] = json!(scope);
            self.tell(customer, cause, EventKind::CapReached, &data);
        }
    }

    /// Events after this one; `None` if there is no such event.
    pub(super) fn events_after(&self, after: Option<OperationId>) -> Option<Vec<Event>> {
        let from = match after {
            None => 0,
            Some(id) => {
                let place = self.events.iter().position(|event| event.id == id)?;
                place.saturating_add(1)
            }
        };
        Some(self.events.iter().skip(from).cloned().collect())
    }
}
