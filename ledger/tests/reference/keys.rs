//! Keys and money in, in the reference store: create, change, credit.

use super::State;
use super::customers::{blank_customer, not_closed, settings_of};
use super::operations::{
    Done, amount, blank, is_same, limit, not_applicable, picos, said, says, set, status,
};
use super::sources::Made;
use serde_json::json;

use crate::book::audit;
use crate::value::reference::{folded, normal};
use crate::{
    Account, Amount, AuditRecord, Caps, Change, Credit, CreditKind, Customer, CustomerId,
    DailyBound, EntryKind, EventKind, JournalEntry, Key, KeyChange, KeyRecord, KeySettings,
    KeyStatus, Membership, NewCustomer, NewKey, OperationId, Payment, PaymentStatus, Posted,
    Refusal, Scope, UtcDay, clock,
};

impl State {
    pub(super) fn is_used(&self, operation: OperationId) -> bool {
        self.entry(operation).is_some()
            || self.audited(operation).is_some()
            || self.holds.contains_key(&operation)
            || self.is_house_act(operation)
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

    /// A customer with its first key, or neither: tried on a copy of everything.
    pub(super) fn enrol(&mut self, owner: &NewCustomer, new: &NewKey) -> Done<Key> {
        let known = self.audited(new.act.operation);
        if known.is_some_and(|act| act.act == "create") {
            return self.create(new);
        }
        let is_first = new.within.customer == Some(owner.id) && new.within.made_by.is_none();
        if !is_first || owner.act.operation == new.act.operation {
            return Err(not_applicable(
                "a first key belongs to the customer that is made with it",
            ));
        }
        self.check_new_customer(owner)?;
        let before = self.clone();
        let made = self.create_customer(owner).and_then(|_| self.create(new));
        if made.is_err() {
            *self = before;
        }
        made
    }

    pub(super) fn create(&mut self, new: &NewKey) -> Done<Key> {
        let operation = new.act.operation;
        if let Some(made) = self.audited(operation).filter(|act| act.act == "create") {
            return self.whole_key(made.key.unwrap_or(new.id));
        }
        self.check_unused(operation)?;
        new.settings.check()?;
        if self.keys.contains_key(&new.id) {
            return Err(not_applicable(&format!("key id {} is taken", new.id)));
        }
        let within = new.within;
        let own = settings_of(&new.settings.label);
        let made = blank_customer(CustomerId::made_for(new.id), own, &new.act);
        let customer = match within.customer {
            Some(existing) => {
                self.customer(existing)?;
                if new.first_credit.is_some() || new.purse.is_some() {
                    self.settle_grants(existing)?;
                }
                self.customer(existing)?.clone()
            }
            None => made,
        };
        not_closed(&customer)?;
        self.check_maker(&within)?;
        if let Some(purse) = &new.purse {
            self.check_purse(new.id, &within, purse)?;
        }
        let taken = self.customers.contains_key(&customer.id);
        let counts_in = within.made_by.filter(|_| !within.is_owner);
        let blank_key = KeyRecord {
            id: new.id,
            belongs_to: customer.id,
            is_owner: within.is_owner,
            made_by: within.made_by,
            counts_in,
            token: self.asked_by.token(),
            settings: new.settings.clone(),
            stored_status: KeyStatus::Active,
            secret: new.secret,
            old_secret: None,
            caps: Caps::default(),
            defaults: crate::ByDefault::default(),
            used_at: None,
            created_at: if counts_in.is_some() {
                clock::now()
            } else {
                new.act.at
            },
            created_by: new.act.actor.as_str().into(),
        };
        let payment = match &new.first_credit {
            None => None,
            Some((paid, reference)) => {
                let credit = Credit {
                    operation,
                    to: Scope::Key(new.id),
                    kind: CreditKind::TopUp,
                    amount: *paid,
                    reference: reference.clone(),
                    actor: new.act.actor.clone(),
                    at: new.act.at,
                };
                credit.check()?;
                Self::check_no_wish(reference)?;
                self.check_name(reference)?;
                topped_up(customer.account, *paid)?;
                self.check_booked(*paid)?;
                Some(credited(&credit, customer.id))
            }
        };
        self.one_more(DailyBound::Keys)?;
        if within.customer.is_none() {
            if taken {
                let text = format!("customer id {} is taken", customer.id);
                return Err(not_applicable(&text));
            }
            let token = self.asked_by.token();
            let made = Customer {
                token,
                ..customer.clone()
            };
            self.customers.insert(customer.id, made);
            self.fit_house(customer.id.into())?;
            self.tell_of_customer(&customer, &new.act);
        }
        self.keys.insert(new.id, blank_key);
        self.fit_house(new.id.into())?;
        if let Some(purse) = &new.purse {
            self.set_cap(new.id.into(), purse, UtcDay::of(clock::now()))?;
        }
        let owner = within.is_owner;
        let data = json!({ "key": new.id, "owner": owner, "actor": new.act.actor });
        self.tell(customer.id, operation, EventKind::KeyCreated, &data);
        let is_paid = payment.is_some();
        if let Some(entry) = payment {
            let after = topped_up(self.customer(customer.id)?.account, entry.amount)?;
            self.count_booked(entry.amount, true);
            let entry = self.enter(customer.id, after, entry)?;
            self.take_over(&entry);
            let reference = entry.reference.clone().unwrap_or_default();
            self.address(&reference, customer.id, None)?;
            self.tell_of_top_up(&entry);
        }
        self.write(customer.id, audit::create(new));
        self.collect(customer.id, operation, new.act.at)?;
        if is_paid {
            self.tell_of_balance(customer.id, operation)?;
        }
        self.whole_key(new.id)
    }

    /// Only an owner key makes others, of its own customer.
    fn check_maker(&self, within: &Membership) -> Done<()> {
        let Some(maker) = within.made_by else {
            return Ok(());
        };
        let key = self.key(maker)?;
        if !key.is_owner || Some(key.belongs_to) != within.customer {
            let text = format!("key {maker} is no owner key of this customer");
            return Err(not_applicable(&text));
        }
        match status(key, clock::now()) {
            KeyStatus::Active if within.is_owner => Ok(()),
            KeyStatus::Active => self.check_made(key.belongs_to),
            stopped => Err(Refusal::NotActive(stopped)),
        }
    }

    pub(super) fn change(&mut self, change: &KeyChange) -> Done<Key> {
        let operation = change.act.operation;
        let repeats = |known: &AuditRecord| match &change.change {
            Change::Edit(edit) => {
                known.act == "set"
                    && known.key == Some(change.key)
                    && says(
                        &known.details,
                        [
                            ("label", edit.label.as_ref().map(|label| json!(label))),
                            ("models", said(&edit.models)),
                            ("expires_at", said(&edit.expires_at)),
                            ("rate", said(&edit.rate)),
                            ("concurrency", said(&edit.concurrency)),
                        ],
                    )
            }
            _ => is_same(&audit::change(change, &KeySettings::default()), known),
        };
        if self.audited(operation).is_some_and(repeats) {
            return self.whole_key(change.key);
        }
        self.check_unused(operation)?;
        let mut key = self.key(change.key)?.clone();
        if key.stored_status == KeyStatus::Revoked && change.change != Change::Revoke {
            let text = format!("key {} is revoked, which cannot be undone", key.id);
            return Err(not_applicable(&text));
        }
        let mut ends = true;
        match &change.change {
            Change::Edit(edit) => {
                let mut settings = key.settings.clone();
                settings.label = edit.label.clone().unwrap_or(settings.label);
                set(&mut settings.models, &edit.models);
                set(&mut settings.expires_at, &edit.expires_at);
                set(&mut settings.rate, &edit.rate);
                set(&mut settings.concurrency, &edit.concurrency);
                settings.check()?;
                (key.settings, ends) = (settings, false);
            }
            Change::Block => key.stored_status = KeyStatus::Blocked,
            Change::Unblock => (key.stored_status, ends) = (KeyStatus::Active, false),
            Change::Revoke => key.stored_status = KeyStatus::Revoked,
            Change::Rotate { secret, old_until } => {
                key.old_secret = old_until.map(|until| (key.secret, until));
                key.secret = *secret;
            }
            Change::Reissue { secret } => {
                if key.used_at.is_some() || self.has_spent(key.id) {
                    return Err(not_applicable(&format!(
                        "key {} has been used; rotate it instead, so that its holder can change over",
                        key.id
                    )));
                }
                self.one_more(DailyBound::Reissues)?;
                (key.old_secret, key.secret) = (None, *secret);
            }
            Change::SetCap(cap) => {
                self.set_cap(key.id.into(), cap, UtcDay::of(clock::now()))?;
                (key.caps, ends) = (self.key(key.id)?.caps.clone(), false);
            }
            Change::SetPurse(purse) => {
                self.settle_grants(key.belongs_to)?;
                self.refill(&key, purse)?;
                (key.caps, ends) = (self.key(key.id)?.caps.clone(), false);
            }
            Change::ClearCap { interval, model } => {
                self.clear_cap(key.id.into(), *interval, model.as_deref())?;
                (key.caps, ends) = (self.key(key.id)?.caps.clone(), false);
            }
        }
        if ends {
            self.sessions.retain(|_, session| session.key != key.id);
            self.links.retain(|_, (owner, _)| *owner != key.id);
        }
        let (id, belongs_to) = (key.id, key.belongs_to);
        let before = self.key(id)?.stored_status;
        let news = match &change.change {
            Change::Rotate { .. } | Change::Reissue { .. } => Some(EventKind::KeyRotated),
            Change::Block => (before == KeyStatus::Active).then_some(EventKind::KeyBlocked),
            Change::Revoke => (before != KeyStatus::Revoked).then_some(EventKind::KeyRevoked),
            _ => None,
        };
        if let Some(news) = news {
            self.tell_of_act(belongs_to, Some(id), news, &change.act);
        }
        let act = audit::change(change, &key.settings);
        self.keys.insert(id, key);
        self.write(belongs_to, act);
        self.whole_key(id)
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
        self.check_wish_of(credit)?;
        match credit.kind {
            CreditKind::TopUp => self.check_name(&credit.reference)?,
            _ => self.check_reference(&credit.reference)?,
        }
        let customer = match credit.to {
            Scope::Key(key) => self.payer(key)?,
            Scope::Customer(customer) => self.customer(customer)?,
        };
        let owner = customer.id;
        not_closed(customer)?;
        self.settle_grants(owner)?;
        let account = self.customer(owner)?.account;
        let after = match &credit.kind {
            CreditKind::TopUp => {
                if let Scope::Key(key) = credit.to
                    && self.key(key)?.stored_status == KeyStatus::Revoked
                {
                    let text = format!("key {key} is revoked and takes no more money");
                    return Err(not_applicable(&text));
                }
                topped_up(account, credit.amount)?
            }
            CreditKind::Adjust { .. } => self.adjusted(owner, credit)?,
            CreditKind::WriteOff { .. } if !credit.amount.is_negative() => {
                return Err(limit(
                    "what is written off is taken, so its amount is below zero",
                ));
            }
            CreditKind::WriteOff { .. } => self.adjusted(owner, credit)?,
            CreditKind::Refund { request, .. } => {
                self.refunded(credit.to, account, credit.amount, *request)?
            }
        };
        if matches!(credit.kind, CreditKind::TopUp | CreditKind::Adjust { .. }) {
            self.check_booked(credit.amount)?;
            let is_payment = credit.kind == CreditKind::TopUp;
            self.count_booked(credit.amount, is_payment);
        }
        let (parts, made) = match &credit.kind {
            CreditKind::Refund { request, .. } => {
                let charge = self.entry(*request).cloned();
                let before = self.refunded_before(*request);
                match charge {
                    Some(charge) => self.refund_parts(credit, &charge, before)?,
                    None => Made::default(),
                }
            }
            _ => self.correct(credit, owner)?,
        };
        let entry = JournalEntry {
            parts,
            ..credited(credit, owner)
        };
        let entry = self.enter(owner, after, entry)?;
        if credit.kind == CreditKind::TopUp {
            self.address(&credit.reference, owner, None)?;
        }
        if let CreditKind::Refund { request, .. } = &credit.kind
            && let Some(charge) = self.entry(*request)
            && let Some(bill) = &charge.bill
        {
            let (slug, day, key) = (bill.slug.clone(), charge.day(), charge.key);
            let back = picos(credit.amount).saturating_neg();
            if let Some(key) = key {
                self.count(key, &slug, day, back, 0)?;
            }
        }
        self.take_over(&entry);
        self.write(owner, audit::credit(credit).making(&made));
        if entry.kind == EntryKind::TopUp {
            self.tell_of_top_up(&entry);
        }
        self.collect(owner, credit.operation, credit.at)?;
        self.tell_of_balance(owner, credit.operation)?;
        self.posted(entry, false)
    }

    pub(super) fn repeated(
        &self,
        credit: &Credit,
        entry: Option<&JournalEntry>,
    ) -> Done<Option<Posted>> {
        let wanted = credited(credit, CustomerId::from_random(0));
        let same = |entry: &&JournalEntry| {
            let to = match (&credit.kind, credit.to) {
                (CreditKind::TopUp, Scope::Key(key)) => self
                    .key(key)
                    .is_ok_and(|key| key.belongs_to == entry.customer),
                (CreditKind::TopUp, Scope::Customer(customer)) => entry.customer == customer,
                (_, Scope::Key(key)) => entry.key == Some(key),
                (_, Scope::Customer(customer)) => entry.customer == customer && entry.key.is_none(),
            };
            to && (entry.kind, entry.amount) == (wanted.kind, wanted.amount)
                && entry.reference.as_deref().map(folded) == Some(folded(&credit.reference))
                && entry.reason == wanted.reason
                && entry.refunds == wanted.refunds
        };
        let Some(entry) = entry.filter(same) else {
            return Ok(None);
        };
        self.posted(entry.clone(), true).map(Some)
    }

    fn posted(&self, entry: JournalEntry, repeated: bool) -> Done<Posted> {
        Ok(Posted {
            customer: self.customer(entry.customer)?.clone(),
            key: entry.key.map(|key| self.whole_key(key)).transpose()?,
            entry,
            repeated,
        })
    }

    /// Refuses a name that no new payment can have: but who does not sell takes over that of an unapplied one.
    pub(super) fn check_name(&self, reference: &str) -> Done<()> {
        if self
            .payment(reference)
            .is_some_and(|known| self.may_take_over(known))
        {
            return Ok(());
        }
        self.check_reference(reference)
    }

    pub(super) fn may_take_over(&self, known: &Payment) -> bool {
        matches!(known.status, PaymentStatus::Unapplied { .. }) && !self.is_sold()
    }

    /// A top-up has the name from now on that an unapplied payment has kept.
    fn take_over(&mut self, entry: &JournalEntry) {
        let Some(reference) = entry
            .reference
            .clone()
            .filter(|_| entry.kind == EntryKind::TopUp)
        else {
            return;
        };
        let is_kept = |known: &Payment| matches!(known.status, PaymentStatus::Unapplied { .. });
        if self.payment(&reference).is_some_and(is_kept) {
            self.payments.remove(&folded(&reference));
            if let Ok(payment) = self.find_payment(&reference) {
                self.keep(&payment);
            }
        }
    }

    pub(super) fn check_reference(&self, reference: &str) -> Done<()> {
        match self.named(reference) {
            None => match (self.payment(reference), self.granted(reference)) {
                (None, None) => Ok(()),
                (Some(payment), _) => Err(Refusal::ReferenceUsed {
                    reference: payment.reference.clone(),
                    customer: payment.customer,
                }),
                // It has no entry before it begins.
                (None, Some(known)) => Err(Refusal::ReferenceUsed {
                    reference: known.reference.0.clone().unwrap_or_default(),
                    customer: known.grant.customer,
                }),
            },
            Some(entry) => Err(Refusal::ReferenceUsed {
                reference: entry.reference.clone().unwrap_or_default(),
                customer: entry.customer,
            }),
        }
    }

    fn refunded_before(&self, request: OperationId) -> i128 {
        let refunds = self.entries.iter();
        let refunds = refunds.filter(|entry| entry.refunds == Some(request));
        refunds.map(|entry| picos(entry.amount)).sum()
    }

    /// A correction upwards for whatever reason, or downwards by what is free of the pool.
    fn adjusted(&self, owner: CustomerId, credit: &Credit) -> Done<Account> {
        let (account, by) = (self.customer(owner)?.account, credit.amount);
        if by == Amount::ZERO {
            return Err(limit("an adjustment must not be zero"));
        }
        if by > Amount::MAX_TOP_UP {
            let text = format!("an adjustment is at most {}", Amount::MAX_TOP_UP);
            return Err(Refusal::Limit(text));
        }
        if by.is_positive() {
            if matches!(credit.kind, CreditKind::Adjust { is_paid: false, .. }) {
                self.check_one_more(owner)?;
            }
            return paid_in(account, by);
        }
        self.check_pool(owner, amount(picos(by).saturating_neg())?)?;
        let credit = amount(picos(account.credit).saturating_add(picos(by)))?;
        Ok(Account { credit, ..account })
    }

    pub(super) fn refunded(
        &self,
        to: Scope,
        account: Account,
        back: Amount,
        request: OperationId,
    ) -> Done<Account> {
        let not_more_than = |refundable| Refusal::NotRefundable {
            request,
            refundable,
        };
        let charge = self
            .entry(request)
            .filter(|entry| match to {
                Scope::Key(key) => entry.key == Some(key),
                Scope::Customer(customer) => entry.customer == customer,
            })
            .filter(|entry| entry.kind == EntryKind::Charge)
            .ok_or_else(|| not_more_than(Amount::ZERO))?;
        if !back.is_positive() {
            return Err(limit("a refund must be more than zero"));
        }
        let earlier = self.refunded_before(request);
        let left = amount(
            picos(charge.amount)
                .saturating_neg()
                .saturating_sub(earlier),
        )?;
        if back > left {
            return Err(not_more_than(left));
        }
        let spent = amount(picos(account.spent).saturating_sub(picos(back)))?;
        within_limits(Account { spent, ..account })
    }
}

/// The entry of a credit, before it has its place.
pub(super) fn credited(credit: &Credit, customer: CustomerId) -> JournalEntry {
    let (kind, reason, refunds) = match &credit.kind {
        CreditKind::TopUp => (EntryKind::TopUp, None, None),
        CreditKind::Adjust { reason, .. } => (EntryKind::Adjust, Some(reason.clone()), None),
        CreditKind::WriteOff { reason } => (EntryKind::WriteOff, Some(reason.clone()), None),
        CreditKind::Refund { request, reason } => {
            (EntryKind::Refund, Some(reason.clone()), Some(*request))
        }
    };
    let key = match credit.to {
        Scope::Key(key) => Some(key),
        Scope::Customer(_) => None,
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
        ..blank(customer, key)
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

pub(super) fn paid_in(account: Account, paid: Amount) -> Done<Account> {
    let credit = picos(account.credit).saturating_add(picos(paid));
    if credit > picos(Amount::MAX_LIFETIME_CREDIT) {
        return Err(Refusal::Limit(format!(
            "a customer can be paid at most {} in its lifetime",
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
        let text = format!("a customer's balance is at most {}", Amount::MAX_BALANCE);
        return Err(Refusal::Limit(text));
    }
    Ok(account)
}
