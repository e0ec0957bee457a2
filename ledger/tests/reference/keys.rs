//! Keys and money in, in the reference store: create, change, credit.

use super::State;
use super::operations::{
    Done, amount, available, blank, insufficient, is_same, limit, not_applicable, picos,
};
use crate::book::audit;
use crate::value::reference::{folded, normal};
use crate::{
    Account, Amount, Caps, Change, Credit, CreditKind, EntryKind, JournalEntry, Key, KeyChange,
    KeyStatus, NewKey, OperationId, Posted, Refusal, UtcDay, clock,
};

impl State {
    pub(super) fn is_used(&self, operation: OperationId) -> bool {
        self.entry(operation).is_some()
            || self.audited(operation).is_some()
            || self.holds.contains_key(&operation)
    }

    pub(super) fn check_unused(&self, operation: OperationId) -> Done<()> {
        if self.is_used(operation) {
            Err(Refusal::OperationUsed(operation))
        } else {
            Ok(())
        }
    }

    pub(super) fn named(&self, reference: &str) -> Option<&JournalEntry> {
        let same = |known: &String| folded(known) == folded(reference);
        self.entries
            .iter()
            .find(|entry| entry.reference.as_ref().is_some_and(same))
    }

    pub(super) fn create(&mut self, new: &NewKey) -> Done<Key> {
        let operation = new.act.operation;
        if let Some(made) = self.audited(operation).filter(|act| act.act == "create") {
            return self.key(made.key).cloned();
        }
        self.check_unused(operation)?;
        new.settings.check()?;
        if self.keys.contains_key(&new.id) {
            return Err(not_applicable(&format!("key id {} is taken", new.id)));
        }
        let blank_key = Key {
            id: new.id,
            settings: new.settings.clone(),
            stored_status: KeyStatus::Active,
            secret: new.secret,
            old_secret: None,
            account: Account::default(),
            caps: Caps::default(),
            created_at: new.act.at,
            created_by: new.act.actor.clone(),
            last_entry_at: None,
        };
        match &new.first_credit {
            None => drop(self.keys.insert(new.id, blank_key)),
            Some((paid, reference)) => {
                let credit = Credit {
                    operation,
                    key: new.id,
                    kind: CreditKind::TopUp,
                    amount: *paid,
                    reference: reference.clone(),
                    actor: new.act.actor.clone(),
                    at: new.act.at,
                };
                credit.check()?;
                self.check_reference(reference)?;
                let after = topped_up(Account::default(), *paid)?;
                self.keys.insert(new.id, blank_key);
                self.enter(new.id, after, credited(&credit))?;
            }
        }
        self.write(audit::create(new));
        self.key(new.id).cloned()
    }

    pub(super) fn change(&mut self, change: &KeyChange) -> Done<Key> {
        let act = audit::change(change);
        let operation = act.operation;
        if self
            .audited(operation)
            .is_some_and(|known| is_same(&act, known))
        {
            return self.key(change.key).cloned();
        }
        self.check_unused(operation)?;
        let mut key = self.key(change.key)?.clone();
        if key.stored_status == KeyStatus::Revoked && change.change != Change::Revoke {
            let text = format!("key {} is revoked, which cannot be undone", key.id);
            return Err(not_applicable(&text));
        }
        let mut ends = true;
        match &change.change {
            Change::Set(settings) => {
                settings.check()?;
                (key.settings, ends) = (settings.clone(), false);
            }
            Change::Block => key.stored_status = KeyStatus::Blocked,
            Change::Unblock => (key.stored_status, ends) = (KeyStatus::Active, false),
            Change::Revoke => key.stored_status = KeyStatus::Revoked,
            Change::Rotate { secret, old_until } => {
                key.old_secret = old_until.map(|until| (key.secret, until));
                key.secret = *secret;
            }
            Change::SetCap(cap) => {
                self.set_cap(key.id, cap, UtcDay::of(clock::now()))?;
                (key.caps, ends) = (self.key(key.id)?.caps.clone(), false);
            }
            Change::ClearCap { interval, model } => {
                self.clear_cap(key.id, *interval, model.as_deref())?;
                (key.caps, ends) = (self.key(key.id)?.caps.clone(), false);
            }
        }
        if ends {
            self.sessions.retain(|_, session| session.key != key.id);
            self.links.retain(|_, (owner, _)| *owner != key.id);
        }
        self.keys.insert(key.id, key.clone());
        self.write(act);
        Ok(key)
    }

    pub(super) fn credit(&mut self, credit: &Credit) -> Done<Posted> {
        credit.check()?;
        if let Some(posted) = self.repeated(credit, self.entry(credit.operation))? {
            return Ok(posted);
        }
        self.check_unused(credit.operation)?;
        if let Some(posted) = self.repeated(credit, self.named(&credit.reference))? {
            return Ok(posted);
        }
        self.check_reference(&credit.reference)?;
        let key = self.key(credit.key)?;
        let after = match &credit.kind {
            CreditKind::TopUp if key.stored_status == KeyStatus::Revoked => {
                let text = format!("key {} is revoked and takes no more money", key.id);
                return Err(not_applicable(&text));
            }
            CreditKind::TopUp => topped_up(key.account, credit.amount)?,
            CreditKind::Adjust { .. } => adjusted(key.account, credit.amount)?,
            CreditKind::Refund { request, .. } => self.refunded(key, credit.amount, *request)?,
        };
        let entry = self.enter(credit.key, after, credited(credit))?;
        if let CreditKind::Refund { request, .. } = &credit.kind
            && let Some(charge) = self.entry(*request)
            && let Some(bill) = &charge.bill
        {
            let (slug, day) = (bill.slug.clone(), charge.day());
            let back = picos(credit.amount).saturating_neg();
            self.count(credit.key, &slug, day, back, 0)?;
        }
        self.write(audit::credit(credit));
        Ok(Posted {
            entry,
            key: self.key(credit.key)?.clone(),
            repeated: false,
        })
    }

    pub(super) fn repeated(
        &self,
        credit: &Credit,
        entry: Option<&JournalEntry>,
    ) -> Done<Option<Posted>> {
        let wanted = credited(credit);
        let same = |entry: &&JournalEntry| {
            (entry.key, entry.kind, entry.amount) == (wanted.key, wanted.kind, wanted.amount)
                && entry.reference.as_deref().map(folded) == Some(folded(&credit.reference))
                && entry.reason == wanted.reason
                && entry.refunds == wanted.refunds
        };
        let Some(entry) = entry.filter(same) else {
            return Ok(None);
        };
        Ok(Some(Posted {
            entry: entry.clone(),
            key: self.key(entry.key)?.clone(),
            repeated: true,
        }))
    }

    pub(super) fn check_reference(&self, reference: &str) -> Done<()> {
        match self.named(reference) {
            None => Ok(()),
            Some(entry) => Err(Refusal::ReferenceUsed {
                reference: entry.reference.clone().unwrap_or_default(),
                key: entry.key,
            }),
        }
    }

    pub(super) fn refunded(&self, key: &Key, back: Amount, request: OperationId) -> Done<Account> {
        let not_more_than = |refundable| Refusal::NotRefundable {
            request,
            refundable,
        };
        let charge = self
            .entry(request)
            .filter(|entry| entry.key == key.id && entry.kind == EntryKind::Charge)
            .ok_or_else(|| not_more_than(Amount::ZERO))?;
        if !back.is_positive() {
            return Err(limit("a refund must be more than zero"));
        }
        let earlier: i128 = self
            .entries
            .iter()
            .filter(|entry| entry.refunds == Some(request))
            .map(|entry| picos(entry.amount))
            .sum();
        let left = amount(
            picos(charge.amount)
                .saturating_neg()
                .saturating_sub(earlier),
        )?;
        if back > left {
            return Err(not_more_than(left));
        }
        let spent = amount(picos(key.account.spent).saturating_sub(picos(back)))?;
        within_limits(Account {
            spent,
            ..key.account
        })
    }
}

/// The entry of a credit, before it has its place.
pub(super) fn credited(credit: &Credit) -> JournalEntry {
    let (kind, reason, refunds) = match &credit.kind {
        CreditKind::TopUp => (EntryKind::TopUp, None, None),
        CreditKind::Adjust { reason } => (EntryKind::Adjust, Some(reason.clone()), None),
        CreditKind::Refund { request, reason } => {
            (EntryKind::Refund, Some(reason.clone()), Some(*request))
        }
    };
    JournalEntry {
        operation: credit.operation,
        kind,
        amount: credit.amount,
        at: credit.at,
        actor: credit.actor.clone(),
        reference: Some(normal(&credit.reference)),
        reason,
        refunds,
        ..blank(credit.key)
    }
}

pub(super) fn topped_up(account: Account, paid: Amount) -> Done<Account> {
    if !paid.is_positive() {
        return Err(limit("a top-up must be more than zero"));
    }
    if paid > Amount::MAX_TOP_UP {
        let text = format!("a top-up is at most {}", Amount::MAX_TOP_UP);
        return Err(Refusal::Limit(text));
    }
    paid_in(account, paid)
}

pub(super) fn adjusted(account: Account, by: Amount) -> Done<Account> {
    if by == Amount::ZERO {
        return Err(limit("an adjustment must not be zero"));
    }
    if by.is_positive() {
        if by > Amount::MAX_TOP_UP {
            let text = format!("an adjustment is at most {}", Amount::MAX_TOP_UP);
            return Err(Refusal::Limit(text));
        }
        return paid_in(account, by);
    }
    let taken = amount(picos(by).saturating_neg())?;
    if picos(taken) > available(&account) {
        return Err(insufficient(taken, &account)?);
    }
    let credit = amount(picos(account.credit).saturating_sub(picos(taken)))?;
    Ok(Account { credit, ..account })
}

pub(super) fn paid_in(account: Account, paid: Amount) -> Done<Account> {
    let credit = picos(account.credit).saturating_add(picos(paid));
    if credit > picos(Amount::MAX_LIFETIME_CREDIT) {
        return Err(Refusal::Limit(format!(
            "a key can be paid at most {} in its lifetime",
            Amount::MAX_LIFETIME_CREDIT
        )));
    }
    within_limits(Account {
        credit: amount(credit)?,
        ..account
    })
}

pub(super) fn within_limits(account: Account) -> Done<Account> {
    let balance = picos(account.credit).saturating_sub(picos(account.spent));
    if balance > picos(Amount::MAX_BALANCE) {
        let text = format!("a key's balance is at most {}", Amount::MAX_BALANCE);
        return Err(Refusal::Limit(text));
    }
    Ok(account)
}
