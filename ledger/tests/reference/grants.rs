//! Grants in the reference store: given, taken back, begun and ended by time, corrected and refunded.

use serde_json::{Value, json};

use super::State;
use super::customers::not_closed;
use super::keys::topped_up;
use super::operations::{Done, amount, blank, limit, not_applicable, picos};
use super::plans;
use super::sources::{Lost, Made, free, has_ended, is_open, named};
use crate::book::grant_act;
use crate::value::reference::{folded, normal};
use crate::{
    Account, Amount, Credit, CreditKind, Customer, CustomerId, EntryKind, EventKind, Grant,
    GrantAnswer, GrantId, GrantKind, GrantName, GrantRecord, GrantStatus, Grants, JournalEntry,
    MoneyPart, NewGrant, OperationId, Refusal, Timestamp, VoidGrant, clock,
};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Days before its end of which its customer is told, and when.
fn notices(grant: &Grant) -> Vec<(u32, i64)> {
    let of_gift = grant.expires_at.filter(|_| grant.kind != GrantKind::Plan);
    let Some(end) = of_gift else {
        return Vec::new();
    };
    let all = [30_u32, 7, 1].map(|days| {
        let before = i64::from(days).saturating_mul(DAY);
        (days, end.millis().saturating_sub(before))
    });
    let told = |days: u32| grant.told.is_some_and(|told| told <= days);
    let comes = |(days, at): &(u32, i64)| grant.effective_at.millis() < *at && !told(*days);
    all.into_iter().filter(comes).collect()
}

/// When time does something to it next.
fn waits_since(grant: &Grant) -> Option<i64> {
    if grant.kind == GrantKind::Plan {
        // That is its subscription's.
        return None;
    }
    match grant.status {
        GrantStatus::Pending => Some(grant.effective_at.millis()),
        GrantStatus::Active => {
            let notices = notices(grant).into_iter().map(|(_, at)| at);
            notices.chain(grant.expires_at.map(Timestamp::millis)).min()
        }
        GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided => None,
    }
}

/// The id of what happens to a grant at an instant of its own.
fn operation_of(grant: GrantId, at: i64, what: &str) -> OperationId {
    let instant = OperationId::new(Timestamp::from_millis(at), 0);
    instant.derived(format!("farebox grant {grant} {what}").as_bytes())
}

fn told(grant: &Grant, moved: i128) -> Done<Value> {
    Ok(json!({
        "grant": grant.id, "kind": grant.kind, "amount": amount(moved)?, "remaining": grant.remaining,
        "expires_at": grant.expires_at, "models": grant.models,
    }))
}

impl State {
    /// Books what was given back to grants that have ended.
    pub(super) fn lose(
        &mut self,
        customer: CustomerId,
        cause: OperationId,
        lost: Lost,
    ) -> Done<()> {
        for (id, lost) in lost {
            let kind = match self.grants.get(&id).map(|known| known.grant.status) {
                Some(GrantStatus::Voided) => EntryKind::Void,
                _ => EntryKind::Expired,
            };
            let lost = lost.saturating_sub(self.follow(customer, cause, (id, lost))?);
            if lost <= 0 {
                continue;
            }
            let operation = cause.derived(format!("farebox back to {id}").as_bytes());
            self.enter_part(customer, operation, (kind, id, lost.saturating_neg()))?;
        }
        Ok(())
    }

    /// The entry of what one grant gives or loses by itself.
    pub(super) fn enter_part(
        &mut self,
        customer: CustomerId,
        operation: OperationId,
        (kind, id, moved): (EntryKind, GrantId, i128),
    ) -> Done<JournalEntry> {
        let entry = JournalEntry {
            operation,
            kind,
            amount: amount(moved)?,
            at: clock::now(),
            actor: "gateway".to_owned(),
            parts: named(vec![(Some(id), moved)])?,
            ..blank(customer, None)
        };
        let after = self.credited_by(customer, moved)?;
        self.enter(customer, after, entry)
    }

    pub(super) fn credited_by(&self, customer: CustomerId, moved: i128) -> Done<Account> {
        let account = self.customer(customer)?.account;
        let credit = amount(picos(account.credit).saturating_add(moved))?;
        Ok(Account { credit, ..account })
    }

    /// Books what time has done to a customer's grants: first what has waited longest.
    pub(super) fn settle_grants(&mut self, customer: CustomerId) -> Done<()> {
        let now = clock::now().millis();
        loop {
            let waiting = self.of(customer).filter_map(|grant| {
                let since = waits_since(grant).filter(|since| *since <= now)?;
                Some((since, grant.id))
            });
            let waiting = waiting.min();
            let stand = self.subscriptions_of(customer).filter_map(|of| {
                let since = plans::waits_since(of).filter(|since| *since <= now)?;
                Some((since, of.id))
            });
            // Grants first, at the same instant.
            if let Some((since, id)) = stand.min()
                && waiting.is_none_or(|(grant, _)| since < grant)
            {
                self.step(id, since)?;
                continue;
            }
            let Some(known) = waiting.and_then(|(_, id)| self.grants.get(&id)) else {
                return Ok(());
            };
            let grant = known.grant.clone();
            let end = grant.expires_at.map(Timestamp::millis);
            match end.filter(|end| *end <= now && grant.status == GrantStatus::Active) {
                Some(end) => self.end_grant(&grant, end)?,
                None if grant.status == GrantStatus::Pending => self.begin_grant(&grant)?,
                None => self.tell_of_end(&grant, now)?,
            }
        }
    }

    fn begin_grant(&mut self, grant: &Grant) -> Done<()> {
        let (id, customer) = (grant.id, grant.customer);
        let begins = picos(grant.amount);
        let credit = picos(self.customer(customer)?.account.credit).saturating_add(begins);
        if credit > picos(Amount::MAX_LIFETIME_CREDIT) {
            self.edit(id, |grant| {
                (grant.status, grant.remaining) = (GrantStatus::Voided, Amount::ZERO);
            });
            return Ok(());
        }
        self.edit(id, |grant| grant.status = GrantStatus::Active);
        let operation = operation_of(id, grant.effective_at.millis(), "begins");
        let entry = self.enter_part(customer, operation, (kind_of(grant), id, begins))?;
        if grant.kind == GrantKind::Paid {
            self.tell_of_top_up(&entry);
        }
        let data = told(grant, begins)?;
        self.tell(customer, operation, EventKind::GrantGiven, &data);
        self.collect(customer, operation, clock::now())?;
        self.tell_of_balance(customer, operation)
    }

    fn end_grant(&mut self, grant: &Grant, end: i64) -> Done<()> {
        let (id, customer, lost) = (grant.id, grant.customer, free(grant));
        self.edit(id, |grant| {
            (grant.status, grant.remaining) = (GrantStatus::Expired, grant.held);
        });
        let operation = operation_of(id, end, "ends");
        if lost > 0 {
            let entry = (EntryKind::Expired, id, lost.saturating_neg());
            self.enter_part(customer, operation, entry)?;
        }
        let ended = Grant {
            remaining: grant.held,
            ..grant.clone()
        };
        let data = told(&ended, lost.saturating_neg())?;
        self.tell(customer, operation, EventKind::GrantExpired, &data);
        self.collect(customer, operation, clock::now())?;
        self.tell_of_balance(customer, operation)
    }

    /// Tells how near the end of a grant is; what was missed is not told any more.
    fn tell_of_end(&mut self, grant: &Grant, now: i64) -> Done<()> {
        let due = notices(grant).into_iter().filter(|(_, at)| *at <= now);
        let Some((days, at)) = due.min() else {
            return Ok(());
        };
        self.edit(grant.id, |grant| grant.told = Some(days));
        let data = json!({
            "grant": grant.id, "remaining": grant.remaining, "days": days, "expires_at": grant.expires_at,
        });
        let operation = operation_of(grant.id, at, &format!("nears {days}"));
        self.tell(grant.customer, operation, EventKind::GrantExpiring, &data);
        Ok(())
    }

    /// A customer as it is now, with what time has done to its grants and nobody has booked.
    pub(super) fn reckoned(&self, customer: &Customer) -> Customer {
        let (now, mut shown) = (clock::now(), customer.clone());
        let (mut credit, mut open) = (picos(customer.account.credit), Vec::new());
        for grant in self.of(customer.id).filter(|grant| is_open(grant)) {
            let mut grant = grant.clone();
            let is_over =
                grant.kind != GrantKind::Plan && grant.expires_at.is_some_and(|end| end <= now);
            if grant.status == GrantStatus::Pending && grant.effective_at <= now {
                grant.status = GrantStatus::Active;
                credit = credit.saturating_add(picos(grant.amount));
            }
            let due = notices(&grant).into_iter();
            let due = due.filter(|(_, at)| *at <= now.millis()).min();
            if grant.status == GrantStatus::Active && is_over {
                credit = credit.saturating_sub(free(&grant));
                (grant.status, grant.remaining) = (GrantStatus::Expired, grant.held);
            } else if let (GrantStatus::Active, Some((days, _))) = (grant.status, due) {
                grant.told = Some(days);
            }
            open.extend(Some(grant).filter(is_open));
        }
        let plans = self.stepped(customer.id, now, (&mut open, &mut credit));
        open.retain(is_open);
        shown.grants = Grants::of(open).and(plans);
        if let Ok(credit) = amount(credit) {
            shown.account.credit = credit;
        }
        shown
    }

    /// The grant of this name.
    pub(super) fn granted(&self, reference: &str) -> Option<&GrantRecord> {
        let mut all = self.grants.values();
        all.find(|known| {
            let named = known.reference.0.as_deref();
            named.map(folded) == Some(folded(reference))
        })
    }

    pub(super) fn check_one_more(&self, customer: CustomerId) -> Done<()> {
        let live = self
            .of(customer)
            .filter(|grant| matches!(grant.status, GrantStatus::Pending | GrantStatus::Active))
            .filter(|grant| grant.kind != GrantKind::Plan);
        if live.count() < 32 {
            return Ok(());
        }
        Err(not_applicable(
            "a customer has at most 32 grants at a time; void one that is no longer needed, or wait until one is used up",
        ))
    }

    pub(super) fn keep_grant(
        &mut self,
        grant: Grant,
        reference: GrantName,
        by: &str,
    ) -> GrantRecord {
        let customer = grant.customer;
        let record = GrantRecord {
            reference,
            created_at: clock::now(),
            created_by: by.to_owned(),
            grant,
        };
        self.grants.insert(record.grant.id, record.clone());
        self.show_grants(customer);
        record
    }

    /// The grant of an upward correction, and what its entry names.
    pub(super) fn correct(&mut self, credit: &Credit, customer: CustomerId) -> Done<Made> {
        let is_gift = matches!(credit.kind, CreditKind::Adjust { is_paid: false, .. });
        if !is_gift || credit.amount <= Amount::ZERO {
            return Ok(Made::default());
        }
        let id = GrantId::derived(credit.operation, 0);
        let grant = gift(customer, id, credit.amount);
        let made = self.keep_grant(grant, GrantName(None), &credit.actor);
        let parts = named(vec![(Some(id), picos(credit.amount))])?;
        Ok((parts, vec![made]))
    }

    /// Gives back to grants what of a charge is refunded, last taken first.
    pub(super) fn refund_parts(
        &mut self,
        credit: &Credit,
        charge: &JournalEntry,
        before: i128,
    ) -> Done<Made> {
        let (mut skip, mut left, mut back) = (before, picos(credit.amount), Vec::new());
        for (number, part) in charge.parts.iter().rev().enumerate() {
            let taken = picos(part.amount).saturating_neg();
            let skipped = skip.min(taken);
            skip = skip.saturating_sub(skipped);
            let given = taken.saturating_sub(skipped).min(left);
            left = left.saturating_sub(given);
            if given > 0 {
                back.push((number, part, given));
            }
        }
        let first = back.first().map_or(0, |(number, ..)| *number);
        let (mut parts, mut made) = (Vec::new(), Vec::new());
        for (number, part, given) in back {
            let number = u64::try_from(number.saturating_sub(first)).unwrap_or(u64::MAX);
            self.count_in(&part.windows, 0, given.saturating_neg())?;
            let new = match part.grant {
                None => None,
                Some(id) => self.give_to(credit, charge.customer, id, (number, given))?,
            };
            parts.push(MoneyPart {
                grant: new.as_ref().map(|new| new.grant.id).or(part.grant),
                amount: amount(given)?,
                windows: part.windows.clone(),
            });
            made.extend(new);
        }
        if parts.iter().all(|part| part.grant.is_none()) {
            parts.clear();
        }
        Ok((parts, made))
    }

    /// Gives back to a grant, or to a new one for 30 days if it has ended: this one.
    fn give_to(
        &mut self,
        credit: &Credit,
        customer: CustomerId,
        id: GrantId,
        (number, given): (u64, i128),
    ) -> Done<Option<GrantRecord>> {
        let known = self
            .grants
            .get(&id)
            .ok_or(Refusal::NoSuchGrant(id))?
            .grant
            .clone();
        let now = clock::now();
        let is_over = has_ended(&known) || known.expires_at.is_some_and(|end| end <= now);
        if !is_over {
            let remaining = amount(picos(known.remaining).saturating_add(given))?;
            self.edit(id, |grant| {
                (grant.remaining, grant.status) = (remaining, GrantStatus::Active);
            });
            return Ok(None);
        }
        let new = GrantId::derived(credit.operation, number);
        let ends = self.lasts_until(customer, id);
        let grant = Grant {
            expires_at: Some(ends),
            models: known.models,
            ..gift(customer, new, amount(given)?)
        };
        let made = self.keep_grant(grant, GrantName(None), &credit.actor);
        Ok(Some(made))
    }

    pub(super) fn grant(&mut self, new: &NewGrant) -> Done<GrantAnswer> {
        new.check()?;
        if let Some(known) = self.granted(&new.reference) {
            if is_same_grant(new, &known.grant) {
                return self.grant_answer(known.grant.id, true);
            }
        } else if self.grants.contains_key(&new.id) {
            return Err(Refusal::OperationUsed(new.act.operation));
        }
        Self::check_no_wish(&new.reference)?;
        self.check_reference(&new.reference)?;
        self.book_grant(new)?;
        self.grant_answer(new.id, false)
    }

    pub(super) fn book_grant(&mut self, new: &NewGrant) -> Done<()> {
        let (customer, operation) = (new.customer, new.act.operation);
        not_closed(self.customer(customer)?)?;
        let begins = new.effective_at.unwrap_or(clock::now());
        if let Some(end) = new.expires_at {
            if end <= clock::now() {
                let text = format!("{end} is over; a grant that has ended gives nothing");
                return Err(limit(&text));
            }
            if end <= begins {
                let text = format!(
                    "a grant must end after it begins: it would begin at {begins} and end at {end}"
                );
                return Err(limit(&text));
            }
        }
        self.check_unused(operation)?;
        self.settle_grants(customer)?;
        self.check_one_more(customer)?;
        let after = topped_up(self.customer(customer)?.account, new.amount)?;
        let effective_at = new.effective_at.unwrap_or(clock::now());
        let begins = effective_at <= clock::now();
        let grant = Grant {
            kind: new.kind,
            priority: new.priority,
            effective_at,
            expires_at: new.expires_at,
            models: new.models.clone(),
            status: if begins {
                GrantStatus::Active
            } else {
                GrantStatus::Pending
            },
            ..gift(customer, new.id, new.amount)
        };
        let name = normal(&new.reference);
        let named_so = GrantName(Some(name.clone()));
        let made = self.keep_grant(grant.clone(), named_so, &new.act.actor);
        let mut paid = None;
        if begins {
            let entry = JournalEntry {
                operation,
                kind: kind_of(&grant),
                amount: new.amount,
                at: new.act.at,
                actor: new.act.actor.clone(),
                reference: Some(name),
                parts: named(vec![(Some(new.id), picos(new.amount))])?,
                ..blank(customer, None)
            };
            let entry = self.enter(customer, after, entry)?;
            paid = Some(entry).filter(|entry| entry.kind == EntryKind::TopUp);
        }
        self.write(customer, grant_act::grant(&new.act, &made));
        if let Some(entry) = &paid {
            self.tell_of_top_up(entry);
        }
        if begins {
            let data = told(&grant, picos(new.amount))?;
            self.tell(customer, operation, EventKind::GrantGiven, &data);
        }
        self.collect(customer, operation, new.act.at)?;
        self.tell_of_balance(customer, operation)
    }

    pub(super) fn void_grant(&mut self, of: &VoidGrant) -> Done<GrantAnswer> {
        let (id, customer, operation) = (of.grant, of.customer, of.act.operation);
        let known = self.grants.get(&id).map(|known| known.grant.clone());
        let known = known.filter(|grant| grant.customer == customer);
        let known = known.ok_or(Refusal::NoSuchGrant(id))?;
        if known.status == GrantStatus::Voided {
            return self.grant_answer(id, true);
        }
        self.check_unused(operation)?;
        self.settle_grants(customer)?;
        let known = self
            .grants
            .get(&id)
            .ok_or(Refusal::NoSuchGrant(id))?
            .grant
            .clone();
        let taken = match known.status {
            GrantStatus::Pending => 0,
            GrantStatus::Active => free(&known),
            over => {
                return Err(not_applicable(&format!(
                    "grant {id} is {}: nothing is left to take back",
                    over.as_str()
                )));
            }
        };
        self.edit(id, |grant| {
            (grant.status, grant.remaining) = (GrantStatus::Voided, grant.held);
        });
        let moved = taken.saturating_neg();
        if taken > 0 {
            let entry = JournalEntry {
                operation,
                kind: EntryKind::Void,
                amount: amount(moved)?,
                at: of.act.at,
                actor: of.act.actor.clone(),
                parts: named(vec![(Some(id), moved)])?,
                ..blank(customer, None)
            };
            let after = self.credited_by(customer, moved)?;
            self.enter(customer, after, entry)?;
        }
        self.write(customer, grant_act::void_grant(of, amount(moved)?));
        let voided = Grant {
            remaining: known.held,
            ..known
        };
        let data = told(&voided, moved)?;
        self.tell(customer, operation, EventKind::GrantVoided, &data);
        self.lose_period_of((customer, id), &of.act)?;
        self.tell_of_balance(customer, operation)?;
        self.grant_answer(id, false)
    }

    fn grant_answer(&self, id: GrantId, repeated: bool) -> Done<GrantAnswer> {
        let grant = self
            .grants
            .get(&id)
            .ok_or(Refusal::NoSuchGrant(id))?
            .clone();
        let customer = self.customer(grant.grant.customer)?.clone();
        Ok(GrantAnswer {
            grant,
            customer,
            repeated,
        })
    }

    /// Customers whose grants wait for something.
    pub(super) fn due_grants(&self, now: Timestamp) -> Vec<CustomerId> {
        let mut due: Vec<(i64, CustomerId)> = Vec::new();
        for customer in self.customers.keys() {
            let of_plans = self
                .subscriptions_of(*customer)
                .filter_map(plans::waits_since);
            let since = self
                .of(*customer)
                .filter_map(waits_since)
                .chain(of_plans)
                .min();
            due.extend(
                since
                    .filter(|since| *since <= now.millis())
                    .map(|since| (since, *customer)),
            );
        }
        due.sort_unstable();
        due.truncate(100);
        due.into_iter().map(|(_, customer)| customer).collect()
    }

    /// What is wrong with a customer's grants: each has what its entries gave and took, and what the open holds have of it.
    pub(super) fn unsound_grants(&self, customer: CustomerId) -> Vec<String> {
        let mut faults = Vec::new();
        for grant in self.of(customer) {
            let parts = self.of_customer(customer).flat_map(|entry| &entry.parts);
            let parts = parts.filter(|part| part.grant == Some(grant.id));
            let mut left: i128 = parts.map(|part| picos(part.amount)).sum();
            if grant.status == GrantStatus::Pending {
                left = left.saturating_add(picos(grant.amount));
            }
            let held = self
                .holds_of(customer)
                .filter_map(|held| held.parts.get(&grant.id));
            let held: i128 = held.sum();
            let is_right = left == picos(grant.remaining) && held == picos(grant.held);
            let is_over = has_ended(grant) && free(grant) != 0;
            if !is_right || is_over || free(grant) < 0 {
                faults.push(format!(
                    "grant {}: it does not follow from entries and holds",
                    grant.id
                ));
            }
        }
        if self.pool_free(customer) < 0 {
            faults.push(format!(
                "customer {customer}: more of its pool is held than it has"
            ));
        }
        faults
    }
}

/// What was paid is a top-up.
fn kind_of(grant: &Grant) -> EntryKind {
    match grant.kind {
        GrantKind::Paid => EntryKind::TopUp,
        GrantKind::Promotional | GrantKind::Plan => EntryKind::Grant,
    }
}

/// Credit that nobody paid, for ever and everything.
pub(super) fn gift(customer: CustomerId, id: GrantId, given: Amount) -> Grant {
    Grant {
        id,
        customer,
        kind: GrantKind::Promotional,
        amount: given,
        priority: 50,
        effective_at: clock::now(),
        expires_at: None,
        models: None,
        remaining: given,
        held: Amount::ZERO,
        status: GrantStatus::Active,
        told: None,
    }
}

fn is_same_grant(new: &NewGrant, known: &Grant) -> bool {
    new.customer == known.customer
        && new.kind == known.kind
        && new.amount == known.amount
        && new.priority == known.priority
        && new.effective_at.is_none_or(|at| at == known.effective_at)
        && new.expires_at == known.expires_at
        && new.models == known.models
}
