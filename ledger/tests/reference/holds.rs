//! Holds in the reference store: open, extend, finish, recover.

use super::operations::{Done, amount, available, blank, insufficient, limit, picos};
use super::{Held, State};
use crate::value::owed::UNMETERED;
use crate::{
    Account, Amount, Bill, EndReason, EndedHold, EntryKind, Evidence, Extension, Finish,
    JournalEntry, NewHold, OpenHold, Owed, Recovered, Refusal, Timestamp, UtcDay, clock,
};

impl State {
    pub(super) fn open(&mut self, new: &NewHold) -> Done<()> {
        if let Some(Held { open, opened, .. }) = self.holds.get(&new.request) {
            let same = open.key == new.key
                && *opened == new.amount
                && open.slug == new.slug
                && open.family == new.family
                && open.at == new.at;
            return if same {
                Ok(())
            } else {
                Err(Refusal::OperationUsed(new.request))
            };
        }
        if self.entry(new.request).is_some() {
            return Err(Refusal::OperationUsed(new.request));
        }
        if self.key(new.key)?.belongs_to != new.customer {
            return Err(Refusal::NoSuchKey(new.key));
        }
        let account = self.active(new.key, new.at)?.account;
        if new.amount.is_negative() {
            return Err(limit("a hold must not be negative"));
        }
        let free = available(&account);
        if free <= 0 || picos(new.amount) > free {
            return Err(insufficient(new.amount, &account)?);
        }
        let today = UtcDay::of(clock::now());
        self.check_caps(new.key, &new.slug, today, picos(new.amount), true)?;
        self.count(new.key, &new.slug, today, 0, picos(new.amount))?;
        let held = amount(picos(account.held).saturating_add(picos(new.amount)))?;
        self.set(new.customer, Account { held, ..account });
        let open = OpenHold {
            request: new.request,
            key: new.key,
            amount: new.amount,
            used: Amount::ZERO,
            slug: new.slug.clone(),
            family: new.family.clone(),
            at: new.at,
            epoch: self.epoch,
        };
        let held = Held {
            open,
            opened: new.amount,
            day: today,
            checkpoint: None,
        };
        self.holds.insert(new.request, held);
        Ok(())
    }

    pub(super) fn extend(&mut self, extension: &Extension) -> Done<()> {
        let request = extension.request;
        let held = self
            .holds
            .get(&request)
            .ok_or(Refusal::NoSuchHold(request))?;
        let (key, now) = (held.open.key, held.open.amount);
        let (slug, day) = (held.open.slug.clone(), held.day);
        let customer = self.active(key, extension.at)?;
        let (customer, account) = (customer.id, customer.account);
        let used = extension.checkpoint.total()?;
        if extension.total.is_negative() {
            return Err(limit("a hold must not be negative"));
        }
        let more = picos(extension.total).saturating_sub(picos(now)).max(0);
        if more > available(&account) {
            return Err(insufficient(amount(more)?, &account)?);
        }
        self.check_caps(key, &slug, day, more, false)?;
        self.count(key, &slug, day, 0, more)?;
        let sum = amount(picos(account.held).saturating_add(more))?;
        self.set(
            customer,
            Account {
                held: sum,
                ..account
            },
        );
        if let Some(held) = self.holds.get_mut(&request) {
            held.open.amount = now.max(extension.total);
            held.open.used = used;
            held.checkpoint = Some(extension.checkpoint.clone());
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, finish: &Finish) -> Done<EndedHold> {
        let request = finish.request;
        if let Some(held) = self.holds.get(&request) {
            let held = held.clone();
            return self.end(&held, finish.clone());
        }
        let entry = self.entry(request).ok_or(Refusal::NoSuchHold(request))?;
        let bill = entry.bill.as_ref().ok_or(Refusal::NoSuchHold(request))?;
        let key = entry.key.ok_or(Refusal::NoSuchHold(request))?;
        Ok(EndedHold {
            charge: amount(picos(entry.amount).saturating_neg())?,
            loss: bill.loss,
            available: amount(self.room(
                key,
                &bill.slug,
                UtcDay::of(clock::now()),
                available(&self.payer(key)?.account),
            ))?,
        })
    }

    /// A bill that is refused for its size is replaced by the last checkpoint's counts.
    pub(super) fn resolve(&mut self, finish: &Finish) -> Done<EndedHold> {
        let refused = match self.finish(finish) {
            Err(Refusal::Limit(_)) => finish.clone(),
            outcome => return outcome,
        };
        let counted = self
            .holds
            .get(&finish.request)
            .and_then(|held| held.checkpoint.clone())
            .unwrap_or_default();
        let mut bill = refused.bill;
        bill.evidence = Some(Evidence::Disputed);
        (bill.usage, bill.lines) = (counted.usage, counted.lines);
        if bill.check_facts().is_err() {
            (bill.exposure, bill.cost) = (counted.exposure, counted.cost);
            bill.facts = counted.facts;
        }
        self.finish(&Finish { bill, ..refused })
    }

    pub(super) fn end(&mut self, held: &Held, finish: Finish) -> Done<EndedHold> {
        let (hold, day) = (&held.open, held.day);
        let customer = self.payer(hold.key)?;
        let (customer, account) = (customer.id, customer.account);
        let cost = finish.bill.total()?;
        if cost.is_negative() {
            return Err(limit("a cost must not be negative"));
        }
        if cost > Amount::MAX_COST {
            let text = format!("a cost of {cost} for one request is implausible");
            return Err(Refusal::Limit(text));
        }
        let beyond = self.room(hold.key, &hold.slug, day, available(&account));
        let payable = picos(hold.amount).saturating_add(beyond);
        let charge = picos(cost).min(payable);
        let loss = amount(picos(cost).saturating_sub(charge))?;
        let after = Account {
            spent: amount(picos(account.spent).saturating_add(charge))?,
            held: amount(picos(account.held).saturating_sub(picos(hold.amount)))?,
            ..account
        };
        let bill = Bill {
            hold: hold.amount,
            loss,
            ..finish.bill
        };
        self.count(
            hold.key,
            &hold.slug,
            day,
            charge,
            picos(hold.amount).saturating_neg(),
        )?;
        let reached = self.reached(hold.key, &hold.slug, day)?;
        let mut entry = JournalEntry {
            operation: finish.request,
            kind: EntryKind::Charge,
            amount: amount(charge.saturating_neg())?,
            at: finish.at,
            actor: "gateway".to_owned(),
            bill: Some(bill),
            ..blank(customer, Some(hold.key))
        };
        if self.has_caps(hold.key) {
            entry.set_day(day);
        }
        self.enter(customer, after, entry)?;
        self.holds.remove(&finish.request);
        self.tell_of_caps(customer, finish.request, reached);
        self.collect(customer, finish.request, finish.at)?;
        self.tell_of_balance(customer, finish.request)?;
        let after = self.customer(customer)?.account;
        Ok(EndedHold {
            charge: amount(charge)?,
            loss,
            available: amount(self.room(
                hold.key,
                &hold.slug,
                UtcDay::of(clock::now()),
                available(&after),
            ))?,
        })
    }

    pub(super) fn recover(&mut self, epoch: i64, now: Timestamp) -> Done<Option<Recovered>> {
        let dead = self.holds.values().filter(|held| held.open.epoch < epoch);
        let dead: Vec<Held> = dead.take(500).cloned().collect();
        let mut done = Recovered {
            epoch,
            ..Recovered::default()
        };
        for held in &dead {
            let open = &held.open;
            let mut bill = held.checkpoint.clone().unwrap_or_else(|| Bill {
                slug: open.slug.clone(),
                family: open.family.clone(),
                ..Bill::default()
            });
            (bill.evidence, bill.end_reason) = (Some(Evidence::Recovered), EndReason::Recovered);
            let known = picos(open.used).saturating_add(picos(bill.exposure));
            let exposure = amount(picos(open.amount).saturating_sub(known).max(0))?;
            let owed = Owed {
                exposure,
                cost: None,
            };
            bill.owe(UNMETERED, owed);
            let finish = Finish {
                request: open.request,
                bill,
                at: now,
            };
            let finished = self.end(held, finish)?;
            let count = if finished.charge.is_positive() {
                &mut done.settled
            } else {
                &mut done.released
            };
            *count = count.saturating_add(1);
        }
        Ok((!dead.is_empty()).then_some(done))
    }
}
