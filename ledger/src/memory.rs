//! The reference store: everything in memory, one lock, nothing clever.
//!
//! It exists to be obviously right. The conformance suite and the model test compare the other stores with it; it keeps nothing
//! across a restart. The rules are those of `account` and `key`, as in every store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::account::Account;
use crate::audit::{self, Written};
use crate::hold::{charge_entry, recovered};
use crate::{
    Act, Amount, AuditRecord, Bill, Credit, CreditKind, Entry, EntryKind, EntryQuery, Extension, Finish, Finished, Key,
    KeyChange, KeyId, KeyQuery, Ledger, LedgerError, NewHold, NewKey, OpenHold, OperationId, Posted, PublishedSlug, Recovered,
    Refusal, SecretHash, Session, SlugUse, Timestamp, Totals, UsageRow, VerifyReport, reference,
};

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    state: Mutex<State>,
}

impl MemoryLedger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone)]
struct HeldMoney {
    open: OpenHold,
    new: NewHold,
    checkpoint: Option<Bill>,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<KeyId, Key>,
    holds: BTreeMap<OperationId, HeldMoney>,
    entries: Vec<Entry>,
    audit: Vec<AuditRecord>,
    published: BTreeMap<String, Timestamp>,
    sessions: HashMap<[u8; 32], Session>,
    links: HashMap<[u8; 32], (KeyId, Timestamp)>,
    epoch: i64,
}

impl State {
    fn key(&self, id: KeyId) -> Result<&Key, Refusal> {
        self.keys.get(&id).ok_or(Refusal::NoSuchKey(id))
    }

    fn entry(&self, operation: OperationId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.operation == operation)
    }

    fn audited(&self, operation: OperationId) -> Option<&AuditRecord> {
        self.audit.iter().find(|record| record.operation == operation)
    }

    fn of_key(&self, key: KeyId) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.key == key)
    }

    fn next_position(&self) -> i64 {
        next(self.entries.len())
    }

    fn next_seq(&self, key: KeyId) -> i64 {
        next(self.of_key(key).count())
    }

    fn write_audit(&mut self, act: Written) {
        let position = next(self.audit.len());
        self.audit.push(act.record(position));
    }

    fn post(&mut self, entry: Entry, account: Account) {
        if let Some(key) = self.keys.get_mut(&entry.key) {
            key.account = account;
            key.last_entry_at = Some(entry.at);
        }
        self.entries.push(entry);
    }

    /// Whether an operation id was used by anything but what `act` would repeat.
    fn check_unused(&self, operation: OperationId) -> Result<(), Refusal> {
        let used = self.entry(operation).is_some() || self.audited(operation).is_some() || self.holds.contains_key(&operation);
        if used { Err(Refusal::OperationUsed(operation)) } else { Ok(()) }
    }

    fn entry_by_reference(&self, reference: &str) -> Option<&Entry> {
        let folded = reference::folded(reference);
        self.entries.iter().find(|entry| entry.reference.as_deref().map(reference::folded).as_ref() == Some(&folded))
    }

    fn check_reference(&self, reference: &str) -> Result<(), Refusal> {
        match self.entry_by_reference(reference) {
            Some(entry) => Err(Refusal::ReferenceUsed { reference: entry.reference.clone().unwrap_or_default(), key: entry.key }),
            None => Ok(()),
        }
    }

    fn create_key(&mut self, new: &NewKey) -> Result<Key, Refusal> {
        if let Some(record) = self.audited(new.act.operation).filter(|record| record.act == "create") {
            return self.key(record.key).cloned();
        }
        self.check_unused(new.act.operation)?;
        new.settings.check()?;
        if self.keys.contains_key(&new.id) {
            return Err(Refusal::NotApplicable(format!("key id {} is taken", new.id)));
        }
        let mut key = new.key();
        if let Some(credit) = new.credit() {
            credit.check()?;
            self.check_reference(&credit.reference)?;
            key.account = key.account.top_up(credit.amount)?;
            key.last_entry_at = Some(credit.at);
            self.entries.push(credit.entry(self.next_position(), 1, key.account.balance()));
        }
        self.keys.insert(new.id, key.clone());
        self.write_audit(audit::create(new));
        Ok(key)
    }

    fn change_key(&mut self, change: &KeyChange) -> Result<Key, Refusal> {
        let act = audit::change(change);
        if self.audited(act.operation).is_some_and(|record| act.repeats(record)) {
            return self.key(change.key).cloned();
        }
        self.check_unused(act.operation)?;
        let mut key = self.key(change.key)?.clone();
        key.apply(&change.change)?;
        self.keys.insert(key.id, key.clone());
        if change.change.ends_sessions() {
            self.sessions.retain(|_, session| session.key != key.id);
            self.links.retain(|_, (owner, _)| *owner != key.id);
        }
        self.write_audit(act);
        Ok(key)
    }

    fn credit(&mut self, credit: &Credit) -> Result<Posted, Refusal> {
        credit.check()?;
        let posted = |state: &Self, entry: Entry, repeated| Ok(Posted { key: state.key(entry.key)?.clone(), entry, repeated });
        if let Some(entry) = self.entry(credit.operation).filter(|entry| credit.repeats(entry)) {
            return posted(self, entry.clone(), true);
        }
        self.check_unused(credit.operation)?;
        if let Some(entry) = self.entry_by_reference(&credit.reference).filter(|entry| credit.repeats(entry)) {
            return posted(self, entry.clone(), true);
        }
        self.check_reference(&credit.reference)?;
        let key = self.key(credit.key)?;
        let account = match &credit.kind {
            CreditKind::TopUp => {
                key.check_payable()?;
                key.account.top_up(credit.amount)?
            }
            CreditKind::Adjust { .. } => key.account.adjust(credit.amount)?,
            CreditKind::Refund { request, .. } => {
                let (charged, refunded) = self.refunded(credit.key, *request)?;
                key.account.refund(credit.amount, *request, charged, refunded)?
            }
        };
        let entry = credit.entry(self.next_position(), self.next_seq(credit.key), account.balance());
        self.post(entry.clone(), account);
        self.write_audit(audit::credit(credit));
        posted(self, entry, false)
    }

    /// The charge of a request and the sum of its refunds so far.
    fn refunded(&self, key: KeyId, request: OperationId) -> Result<(Amount, Amount), Refusal> {
        let nothing = || Refusal::NotRefundable { request, refundable: Amount::ZERO };
        let charge =
            self.entry(request).filter(|entry| entry.kind == EntryKind::Charge && entry.key == key).ok_or_else(nothing)?;
        let refunds = self.entries.iter().filter(|entry| entry.refunds == Some(request)).map(|entry| entry.amount);
        charge.amount.checked_neg().zip(Amount::checked_sum(refunds)).ok_or_else(nothing)
    }

    fn open_hold(&mut self, new: &NewHold) -> Result<(), Refusal> {
        if self.holds.get(&new.request).is_some_and(|held| held.new == *new) {
            return Ok(());
        }
        if self.holds.contains_key(&new.request) || self.entry(new.request).is_some() {
            return Err(Refusal::OperationUsed(new.request));
        }
        let key = self.keys.get_mut(&new.key).ok_or(Refusal::NoSuchKey(new.key))?;
        key.check_active(new.at)?;
        key.account = key.account.hold(new.amount)?;
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
        self.holds.insert(new.request, HeldMoney { open, new: new.clone(), checkpoint: None });
        Ok(())
    }

    fn extend_hold(&mut self, extension: &Extension) -> Result<(), Refusal> {
        let held = self.holds.get_mut(&extension.request).ok_or(Refusal::NoSuchHold(extension.request))?;
        let key = self.keys.get_mut(&held.open.key).ok_or(Refusal::NoSuchKey(held.open.key))?;
        key.check_active(extension.at)?;
        let used = extension.checkpoint.cost()?;
        let (account, amount) = key.account.extend(held.open.amount, extension.total)?;
        key.account = account;
        held.open.amount = amount;
        held.open.used = used;
        held.checkpoint = Some(extension.checkpoint.clone());
        Ok(())
    }

    fn finish_hold(&mut self, finish: &Finish) -> Result<Finished, Refusal> {
        let Some(held) = self.holds.get(&finish.request) else {
            let ended = self.entry(finish.request).and_then(|entry| Some((entry, entry.bill.as_ref()?)));
            let (entry, bill) = ended.ok_or(Refusal::NoSuchHold(finish.request))?;
            let charge = entry.amount.checked_neg().unwrap_or_default();
            return Ok(Finished { charge, loss: bill.loss, available: self.key(entry.key)?.account.available() });
        };
        let ending = self.key(held.open.key)?.account.finish(held.open.amount, finish.bill.cost()?)?;
        let (position, seq) = (self.next_position(), self.next_seq(held.open.key));
        if let Some(entry) = charge_entry(held.open.key, held.open.amount, finish.clone(), &ending, position, seq) {
            self.holds.remove(&finish.request);
            self.post(entry, ending.account);
        }
        Ok(Finished { charge: ending.charge, loss: ending.loss, available: ending.account.available() })
    }

    fn resolve(&mut self, finish: Finish) {
        if let Err(Refusal::Limit(_)) = self.finish_hold(&finish) {
            let checkpoint = self.holds.get(&finish.request).and_then(|held| held.checkpoint.clone());
            // A checkpoint was believed when it was stored, so this cannot be refused.
            let _ = self.finish_hold(&finish.disputed(checkpoint));
        }
    }

    fn recover(&mut self, now: Timestamp) -> Result<Recovered, Refusal> {
        self.epoch = self.epoch.saturating_add(1);
        let mut result = Recovered { epoch: self.epoch, ..Recovered::default() };
        for held in self.holds.clone().into_values() {
            let finished = self.finish_hold(&recovered(&held.open, held.checkpoint, now))?;
            let count = if finished.charge.is_positive() { &mut result.settled } else { &mut result.released };
            *count = count.saturating_add(1);
        }
        Ok(result)
    }

    fn create_link(&mut self, key: KeyId, token: SecretHash, expires: Timestamp, act: &Act) -> Result<(), Refusal> {
        let written = audit::link(key, &token, expires, act);
        if self.audited(act.operation).is_some_and(|record| written.repeats(record)) {
            return Ok(());
        }
        self.check_unused(act.operation)?;
        self.key(key)?.check_not_stopped()?;
        if self.links.contains_key(&token.0) {
            return Err(Refusal::NotApplicable("this link exists already".to_owned()));
        }
        self.links.retain(|_, (_, end)| act.at < *end);
        self.links.insert(token.0, (key, expires));
        self.write_audit(written);
        Ok(())
    }

    fn open_session(&mut self, session: Session) -> Result<(), Refusal> {
        self.key(session.key)?.check_not_stopped()?;
        match self.sessions.get(&session.token.0) {
            Some(known) if *known == session => return Ok(()),
            Some(_) => return Err(Refusal::NotApplicable("this session exists already".to_owned())),
            None => {}
        }
        self.sessions.retain(|_, open| session.at < open.expires);
        let key = session.key;
        self.sessions.insert(session.token.0, session);
        let mut own: Vec<_> = self.sessions.values().filter(|open| open.key == key).map(|open| (open.at, open.token.0)).collect();
        own.sort_by_key(|(at, token)| (std::cmp::Reverse(*at), *token));
        for (_, token) in own.iter().skip(usize::from(Session::MOST_OF_KEY)) {
            self.sessions.remove(token);
        }
        Ok(())
    }

    fn list_keys(&self, query: &KeyQuery) -> Vec<Key> {
        let mut keys: Vec<&Key> = self.keys.values().collect();
        let place = |key: &Key| {
            let place = query.order.place(key);
            (place.value, place.key)
        };
        keys.sort_by_key(|key| place(key));
        if query.order.is_descending() {
            keys.reverse();
        }
        let further = |key: &&Key| {
            query
                .after
                .map(|after| (after.value, after.key))
                .is_none_or(|after| if query.order.is_descending() { place(key) < after } else { place(key) > after })
        };
        let label = query.label.as_ref().map(|label| label.to_ascii_lowercase());
        let wanted = |key: &&Key| {
            label.as_ref().is_none_or(|label| key.settings.label.to_ascii_lowercase().contains(label))
                && query.status.is_none_or(|status| key.status(query.now) == status)
                && query.balance_below.is_none_or(|limit| key.account.balance() < limit)
        };
        keys.into_iter().filter(further).filter(wanted).take(query.limit).cloned().collect()
    }

    fn entries(&self, query: &EntryQuery) -> Vec<Entry> {
        let wanted = |entry: &&Entry| {
            query.key.is_none_or(|key| entry.key == key)
                && query.since.is_none_or(|since| entry.at >= since)
                && query.until.is_none_or(|until| entry.at < until)
                && query.before.is_none_or(|before| entry.position < before)
        };
        let newest = self.entries.iter().rev().filter(wanted).take(query.limit.unwrap_or(usize::MAX));
        let mut found: Vec<Entry> = newest.cloned().collect();
        found.reverse();
        found
    }

    fn usage(&self, key: KeyId, from: Timestamp, to: Timestamp) -> Vec<UsageRow> {
        let mut rows: BTreeMap<(i64, String), UsageRow> = BTreeMap::new();
        for (entry, bill) in self.of_key(key).filter_map(|entry| Some((entry, entry.bill.as_ref()?))) {
            let hour = entry.at.hour();
            let start = Timestamp::from_millis(hour.saturating_mul(3_600_000));
            if hour < from.hour() || start >= to {
                continue;
            }
            let row = rows.entry((hour, bill.slug.clone())).or_insert_with(|| UsageRow::empty(start, &bill.slug));
            row.add(entry, bill);
        }
        rows.into_values().collect()
    }

    fn slug_use(&self, since: Timestamp) -> Vec<SlugUse> {
        let mut slugs: BTreeMap<&str, (BTreeSet<KeyId>, u64)> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.at.hour() >= since.hour()) {
            let Some(bill) = &entry.bill else { continue };
            let (keys, requests) = slugs.entry(&bill.slug).or_default();
            keys.insert(entry.key);
            *requests = requests.saturating_add(1);
        }
        let count = |keys: BTreeSet<KeyId>| u64::try_from(keys.len()).unwrap_or(u64::MAX);
        slugs.into_iter().map(|(slug, (keys, requests))| SlugUse { slug: slug.to_owned(), keys: count(keys), requests }).collect()
    }

    fn totals(&self) -> Totals {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let sum = |amounts: &mut dyn Iterator<Item = Amount>| {
            amounts.fold(0_i128, |sum, amount| sum.saturating_add(amount.picos().into()))
        };
        Totals {
            keys: count(self.keys.len()),
            entries: count(self.entries.len()),
            holds: count(self.holds.len()),
            credit: sum(&mut self.keys.values().map(|key| key.account.credit)),
            spent: sum(&mut self.keys.values().map(|key| key.account.spent)),
            held: sum(&mut self.keys.values().map(|key| key.account.held)),
            loss: sum(&mut self.entries.iter().filter_map(|entry| Some(entry.bill.as_ref()?.loss))),
        }
    }

    fn verify(&self) -> VerifyReport {
        let totals = self.totals();
        let mut report =
            VerifyReport { keys: totals.keys, entries: totals.entries, holds: totals.holds, ..VerifyReport::default() };
        for key in self.keys.values() {
            let entries = Amount::checked_sum(self.of_key(key.id).map(|entry| entry.amount));
            let holds =
                Amount::checked_sum(self.holds.values().filter(|held| held.open.key == key.id).map(|held| held.open.amount));
            if entries != Some(key.account.balance()) || holds != Some(key.account.held) || !key.account.is_sound() {
                report.faults.push(format!("key {}: its account does not follow from its entries and holds", key.id));
            }
        }
        report
    }
}

fn next(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).saturating_add(1)
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn create_key(&self, new: NewKey) -> Result<Key, LedgerError> {
        Ok(self.state().create_key(&new)?)
    }

    async fn find_key(&self, id: KeyId) -> Result<Option<Key>, LedgerError> {
        Ok(self.state().keys.get(&id).cloned())
    }

    async fn find_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError> {
        let state = self.state();
        Ok(ids.iter().filter_map(|id| state.keys.get(id).cloned()).collect())
    }

    async fn list_keys(&self, query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
        Ok(self.state().list_keys(&query))
    }

    async fn change_key(&self, change: KeyChange) -> Result<Key, LedgerError> {
        Ok(self.state().change_key(&change)?)
    }

    async fn credit(&self, credit: Credit) -> Result<Posted, LedgerError> {
        Ok(self.state().credit(&credit)?)
    }

    async fn open_hold(&self, hold: NewHold) -> Result<(), LedgerError> {
        Ok(self.state().open_hold(&hold)?)
    }

    async fn extend_hold(&self, extension: Extension) -> Result<(), LedgerError> {
        Ok(self.state().extend_hold(&extension)?)
    }

    async fn finish_hold(&self, finish: Finish) -> Result<Finished, LedgerError> {
        Ok(self.state().finish_hold(&finish)?)
    }

    fn abandon_hold(&self, finish: Finish) {
        self.state().resolve(finish);
    }

    async fn open_holds(&self, key: Option<KeyId>, limit: usize) -> Result<Vec<OpenHold>, LedgerError> {
        let state = self.state();
        let mut holds: Vec<OpenHold> = state.holds.values().map(|held| held.open.clone()).collect();
        holds.retain(|hold| key.is_none_or(|key| hold.key == key));
        holds.sort_by_key(|hold| (hold.at, hold.request));
        holds.truncate(limit);
        Ok(holds)
    }

    async fn recover(&self, now: Timestamp) -> Result<Recovered, LedgerError> {
        Ok(self.state().recover(now)?)
    }

    async fn entries(&self, query: EntryQuery) -> Result<Vec<Entry>, LedgerError> {
        Ok(self.state().entries(&query))
    }

    async fn entry(&self, operation: OperationId) -> Result<Option<Entry>, LedgerError> {
        Ok(self.state().entry(operation).cloned())
    }

    async fn entry_by_answer(&self, key: KeyId, answer_id: &str) -> Result<Option<Entry>, LedgerError> {
        let state = self.state();
        let carries = |entry: &&Entry| entry.bill.as_ref().is_some_and(|bill| bill.answer_id.as_deref() == Some(answer_id));
        let newest = state.entries.iter().rev().filter(|entry| entry.key == key).take(100_000).find(carries);
        Ok(newest.cloned())
    }

    async fn usage(&self, key: KeyId, from: Timestamp, to: Timestamp) -> Result<Vec<UsageRow>, LedgerError> {
        Ok(self.state().usage(key, from, to))
    }

    async fn spent_since(&self, ids: &[KeyId], since: Timestamp) -> Result<Vec<Amount>, LedgerError> {
        let state = self.state();
        let spent = |id: &KeyId| {
            let charges = state.of_key(*id).filter(|entry| entry.bill.is_some() && entry.at.hour() >= since.hour());
            Amount::checked_sum(charges.map(|entry| entry.amount)).and_then(Amount::checked_neg).unwrap_or_default()
        };
        Ok(ids.iter().map(spent).collect())
    }

    async fn slug_use(&self, since: Timestamp) -> Result<Vec<SlugUse>, LedgerError> {
        Ok(self.state().slug_use(since))
    }

    async fn totals(&self) -> Result<Totals, LedgerError> {
        Ok(self.state().totals())
    }

    async fn audit(&self, key: Option<KeyId>, before: Option<i64>, limit: usize) -> Result<Vec<AuditRecord>, LedgerError> {
        let state = self.state();
        let wanted = |record: &&AuditRecord| {
            key.is_none_or(|key| record.key == key) && before.is_none_or(|before| record.position < before)
        };
        Ok(state.audit.iter().rev().filter(wanted).take(limit).cloned().collect())
    }

    async fn act(&self, operation: OperationId) -> Result<Option<AuditRecord>, LedgerError> {
        Ok(self.state().audited(operation).cloned())
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        Ok(self.state().verify())
    }

    async fn publish(&self, slugs: Vec<String>, now: Timestamp) -> Result<(), LedgerError> {
        let mut state = self.state();
        for slug in slugs {
            state.published.entry(slug).or_insert(now);
        }
        Ok(())
    }

    async fn published(&self) -> Result<Vec<PublishedSlug>, LedgerError> {
        let state = self.state();
        Ok(state.published.iter().map(|(slug, since)| PublishedSlug { slug: slug.clone(), since: *since }).collect())
    }

    async fn create_link(&self, key: KeyId, token: SecretHash, expires: Timestamp, act: Act) -> Result<(), LedgerError> {
        Ok(self.state().create_link(key, token, expires, &act)?)
    }

    async fn consume_link(&self, token: SecretHash, now: Timestamp) -> Result<Option<KeyId>, LedgerError> {
        let link = self.state().links.remove(&token.0);
        Ok(link.filter(|(_, expires)| now < *expires).map(|(key, _)| key))
    }

    async fn open_session(&self, session: Session) -> Result<(), LedgerError> {
        Ok(self.state().open_session(session)?)
    }

    async fn find_session(&self, token: SecretHash, now: Timestamp) -> Result<Option<KeyId>, LedgerError> {
        let state = self.state();
        Ok(state.sessions.get(&token.0).filter(|session| now < session.expires).map(|session| session.key))
    }

    async fn close_session(&self, token: SecretHash) -> Result<(), LedgerError> {
        self.state().sessions.remove(&token.0);
        Ok(())
    }

    async fn close_sessions(&self, key: KeyId) -> Result<(), LedgerError> {
        self.state().sessions.retain(|_, open| open.key != key);
        Ok(())
    }
}
