//! Rows in memory: what the operations of a batch may read, and what they have written.
//!
//! A store fills them (`fetch`) with what [`Operation::needs`](super::operation::Operation::needs) names, `apply` decides on them, and
//! the store writes the difference (`flush`). Operations see the writes made before them. Nothing here talks to a database, fails
//! or decides. A new kind of row gets a field here, a name in `Needs`, and a statement in each store's `fetch` and `flush`.

mod defaults;
mod owners;
mod tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) use self::defaults::StoredSpending;
use super::asker::Asker;
use super::changes::{Changes, clear};
pub(crate) use super::row::{CustomerRow, KeyRow, Positions};
use crate::book::audit::ActRecord;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, EntryHead, Hash, StoredCustomer};
use crate::rule::answer::AnswerId;
use crate::rule::defaults::StandingDefaults;
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::limit::{Traffic, TrafficLimits};
use crate::rule::link::SignInLink;
use crate::rule::made::MadeKeys;
use crate::rule::purse::KeyPurse;
use crate::table::list::TableSet;
pub(crate) use crate::table::rows::CachedRow;
use crate::value::reference;
use crate::{
    Account, Amount, Caps, CustomerId, GrantRecord, HoldMove, JournalEntry, Key, KeyId, MoneyPart,
    NewHold, OpenHold, OperationId, OwnCost, Payment, PersonalData, Refusal, ReservationId, Scope,
    Session, Timestamp, UtcDay,
};

/// Holds that one recovery ends. With more, other operations would wait behind one long transaction.
pub(crate) const RECOVERED_AT_ONCE: u16 = 500;

/// Rows by their ids. Each request looks up many, and a fast hash is enough: strangers may ask for an id, but choose none that is kept.
pub(crate) type ById<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What was charged in an hour for a slug.
pub(crate) type SpentHour = (Timestamp, String, Amount);

/// Everything that operations see during one transaction.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The ledger's identity, with which every chain begins.
    pub(crate) ledger: [u8; 16],
    pub(crate) epoch: i64,
    /// The ledger's own clock, in microseconds since 1970: that of its database, or of this machine if it is a file.
    pub(crate) now: i64,
    pub(crate) positions: Positions,
    pub(crate) customers: ById<CustomerId, CustomerRow>,
    /// What keys and customers have that set nothing of their own, as the transaction found it; `None` if there is nothing. What it
    /// changes of it binds from the next one on, as if it came behind everything beside it.
    pub(crate) defaults: Option<Arc<StandingDefaults>>,
    /// Each with its customer in `customers`.
    pub(crate) keys: ById<KeyId, KeyRow>,
    /// Personal data that was looked for and found, or set.
    pub(crate) personal: BTreeMap<CustomerId, PersonalData>,
    pub(crate) holds: ById<OperationId, CachedRow<StoredHold>>,
    /// Those of `holds` whose process is dead, for the next recovery.
    pub(crate) dead: Vec<OperationId>,
    pub(crate) entries: ById<OperationId, ChainedEntry>,
    pub(crate) acts: BTreeMap<OperationId, ChainedAct>,
    /// The positions of the last acts that changed keys, and customers themselves, of those that were looked for.
    pub(crate) last_acts: BTreeMap<Scope, i64>,
    pub(crate) refunds: BTreeMap<OperationId, Vec<Amount>>,
    /// Folded references, and the operations of their entries.
    pub(crate) references: BTreeMap<String, OperationId>,
    /// Answers that another gateway is about to make.
    pub(crate) running: BTreeSet<AnswerId>,
    /// Who asks for the operation that is being applied.
    pub(crate) asked_by: Asker,
    /// What was reserved for the payment that is taken in now.
    pub(crate) paid_for: Option<ReservationId>,
    /// What was charged in each hour as the database has it, by slug, to keys and customers whose spending was asked for, and to the keys
    /// that count in theirs. Their open holds are all in `holds`, and the keys of these in `keys`.
    pub(crate) hours: BTreeMap<Scope, Vec<SpentHour>>,
    /// Rows of described tables.
    pub(crate) tables: TableSet,
    /// What owner keys of a customer have made, of those that were asked for.
    pub(crate) made: BTreeMap<CustomerId, MadeKeys>,
    /// What else to write.
    pub(crate) changes: Changes,
}

// --- reading ---

impl Rows {
    pub(crate) const fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now / 1_000)
    }

    /// The day by the ledger's clock.
    pub(crate) const fn today(&self) -> UtcDay {
        UtcDay::of(self.now())
    }

    pub(crate) fn key(&self, key: KeyId) -> Result<&KeyRecord, Refusal> {
        self.keys
            .get(&key)
            .map(|row| &row.key)
            .ok_or(Refusal::NoSuchKey(key))
    }

    /// A customer with the ends of its chains.
    pub(crate) fn customer(&self, customer: CustomerId) -> Result<&StoredCustomer, Refusal> {
        self.customers
            .get(&customer)
            .map(|row| &row.stored)
            .ok_or(Refusal::NoSuchCustomer(customer))
    }

    /// A key, and its customer with the ends of its chains.
    pub(crate) fn key_and_customer(
        &self,
        key: KeyId,
    ) -> Result<(&KeyRecord, &StoredCustomer), Refusal> {
        let key = self.key(key)?;
        Ok((key, self.customer(key.belongs_to)?))
    }

    /// A key with its customer, as it is shown.
    pub(crate) fn whole_key(&self, key: KeyId) -> Result<Key, Refusal> {
        let (own, stored) = self.key_and_customer(key)?;
        Ok(Key {
            own: own.clone(),
            customer: stored.customer.clone(),
            of_maker: self.caps_of_maker(own)?.cloned().unwrap_or_default(),
        })
    }

    /// What a request of a key may spend.
    pub(crate) fn purse(&self, key: KeyId) -> Result<KeyPurse, Refusal> {
        let (key, stored) = self.key_and_customer(key)?;
        let none = Caps::default();
        let of_maker = self.caps_of_maker(key)?.unwrap_or(&none);
        Ok(KeyPurse::of(
            (key.id, &key.caps),
            (key.counts_in, of_maker),
            &stored.customer,
        ))
    }

    /// The caps of the key in whose caps another counts.
    fn caps_of_maker(&self, key: &KeyRecord) -> Result<Option<&Caps>, Refusal> {
        let maker = key.counts_in.map(|maker| self.key(maker)).transpose()?;
        Ok(maker.map(|maker| &maker.caps))
    }

    /// Refuses a request beyond the limits of key or customer across all gateways.
    pub(crate) fn check_limits(&self, key: KeyId) -> Result<(), Refusal> {
        let Some(of_key) = self.keys.get(&key) else {
            return Ok(());
        };
        let own = TrafficLimits::of_key(&of_key.key);
        if let (Some(traffic), Some(limits)) = (of_key.traffic, own) {
            traffic.check(limits, self.now)?;
        }
        match self.customers.get(&of_key.key.belongs_to) {
            Some(CustomerRow {
                stored,
                traffic: Some(traffic),
                ..
            }) => {
                let limits = TrafficLimits::of_customer(&stored.customer, &of_key.key);
                traffic.check(limits, self.now)
            }
            _ => Ok(()),
        }
    }

    /// An open hold.
    pub(crate) fn hold(&self, request: OperationId) -> Option<&StoredHold> {
        self.holds.get(&request)?.now.as_ref()
    }

    /// The entry that an operation made.
    pub(crate) fn entry(&self, operation: OperationId) -> Option<&JournalEntry> {
        self.entries.get(&operation).map(|chained| &chained.entry)
    }

    /// The entry that carries a reference.
    pub(crate) fn entry_by_reference(&self, spelled: &str) -> Option<&JournalEntry> {
        self.entry(*self.references.get(&reference::folded(spelled))?)
    }

    /// The payment with particulars of this name.
    pub(crate) fn payment(&self, spelled: &str) -> Option<&Payment> {
        self.tables.get(&reference::folded(spelled))
    }

    /// The grant of this name, of those that were looked for.
    pub(crate) fn grant_by_reference(&self, spelled: &str) -> Option<&GrantRecord> {
        let folded = reference::folded(spelled);
        let mut known = self.tables.iter::<GrantRecord>();
        known.find(|known| {
            known.reference.0.as_deref().map(reference::folded).as_ref() == Some(&folded)
        })
    }

    /// Whether what a key spends counts in the caps of whom a scope names.
    fn is_in(&self, of: Scope, key: KeyId) -> bool {
        match of {
            Scope::Key(only) => {
                let row = self.keys.get(&key);
                only == key || row.is_some_and(|row| row.key.counts_in == Some(only))
            }
            Scope::Customer(customer) => self
                .keys
                .get(&key)
                .is_some_and(|row| row.key.belongs_to == customer),
        }
    }

    /// What counts in the caps of a key or customer as charged in each hour, with what this batch has added.
    pub(crate) fn spent_hours(&self, of: Scope) -> Vec<SpentHour> {
        let stored = self.hours.get(&of).into_iter().flatten().cloned();
        stored.chain(self.hours_added(of)).collect()
    }

    /// What this batch has added to it.
    fn hours_added(&self, of: Scope) -> impl Iterator<Item = SpentHour> {
        let added = self.changes.usage.iter();
        let added = added.filter(move |(place, _)| self.is_in(of, place.key));
        added.map(|(place, row)| {
            (
                Timestamp::of_hour(place.hour),
                place.slug.clone(),
                row.charge,
            )
        })
    }

    /// The open holds that count in the caps of a key or customer, and the days on which they were opened.
    pub(crate) fn holds_of(&self, of: Scope) -> Vec<(&OpenHold, UtcDay)> {
        let open = self.holds.values().filter_map(|row| row.now.as_ref());
        open.filter(|hold| self.is_in(of, hold.open.key))
            .map(|hold| (&hold.open, hold.day))
            .collect()
    }

    pub(crate) fn act(&self, operation: OperationId) -> Option<&crate::AuditRecord> {
        self.acts.get(&operation).map(|act| &act.record.record)
    }

    /// The position of the last act that changed a key, or a customer itself; 0 if there is none.
    pub(crate) fn last_act(&self, of: Scope) -> i64 {
        self.last_acts.get(&of).copied().unwrap_or_default()
    }

    /// Whether an operation created an entry, an audit record or a hold.
    pub(crate) fn is_used(&self, operation: OperationId) -> bool {
        self.hold(operation).is_some()
            || self.entries.contains_key(&operation)
            || self.acts.contains_key(&operation)
            || self.house_act(operation).is_some()
    }
}

// --- writing ---

impl Rows {
    /// Stores what our own requests to a target cost in an hour of the current epoch.
    pub(crate) fn own_cost(&mut self, own: &OwnCost) {
        let place = (own.hour, own.target.clone(), self.epoch);
        self.changes.own_costs.insert(place, own.cost);
    }

    /// Stores a new hold of the current epoch.
    pub(crate) fn insert_hold(&mut self, new: &NewHold, amount: Amount, parts: Vec<MoneyPart>) {
        let now = self.now;
        let begin = |traffic: Traffic, limits| traffic.begin(limits, now);
        self.count_traffic(new.key, begin, begin);
        self.count_opened(new.customer);
        let hold = StoredHold::new(new, amount, self.epoch, self.today());
        self.put_hold(StoredHold { parts, ..hold });
    }

    /// Stores a hold as it is.
    pub(crate) fn put_hold(&mut self, hold: StoredHold) {
        let request = hold.open.request;
        let known = self.holds.get(&request);
        if known.is_none_or(|row| !row.changed) {
            self.changes.holds.push(request);
        }
        let was_stored = known.is_some_and(|row| row.was_stored);
        let row = CachedRow {
            was_stored,
            ..CachedRow::new(hold)
        };
        self.holds.insert(request, row);
    }

    /// Stores a hold's new size, what of it is held of grants, and its checkpoint, whose charge is `used`.
    pub(crate) fn move_hold(
        &mut self,
        moved: &HoldMove,
        (amount, parts): (Amount, Vec<MoneyPart>),
        used: Option<Amount>,
    ) {
        if let Some(row) = self.holds.get_mut(&moved.request)
            && let Some(hold) = &mut row.now
        {
            (hold.open.amount, hold.parts, hold.moves) = (amount, parts, moved.number);
            if let (Some(used), Some(checkpoint)) = (used, &moved.checkpoint) {
                hold.open.used = used;
                hold.checkpoint = Some(Box::new(checkpoint.clone()));
            }
            if !std::mem::replace(&mut row.changed, true) {
                self.changes.holds.push(moved.request);
            }
        }
    }

    /// Removes a hold that has ended.
    pub(crate) fn delete_hold(&mut self, request: OperationId) {
        let Some(row) = self.holds.get_mut(&request) else {
            return;
        };
        let known = row.changed;
        let Some(hold) = row.take() else { return };
        if !known {
            self.changes.holds.push(request);
        }
        let end = |traffic: Traffic, _| traffic.end();
        self.count_traffic(hold.open.key, end, end);
    }

    /// Appends an entry of any format to its customer's history and moves the account; the caller knows that its reference is free.
    pub(crate) fn append(
        &mut self,
        entry: JournalEntry,
        format: i64,
        hash: Hash,
        account: Account,
    ) {
        let mut prev = 0;
        self.touch_customer(entry.customer, |row| {
            let stored = &mut row.stored;
            prev = stored.head.last;
            stored.customer.account = account;
            stored.customer.last_entry_at = Some(entry.at);
            stored.head = EntryHead {
                seq: entry.seq,
                last: entry.position,
                hash,
            };
            row.account_changed = true;
        });
        match &mut self.positions {
            Positions::Shared(last) | Positions::Counted { entries: last, .. } => {
                *last = entry.position.max(*last);
            }
        }
        if let Some(request) = entry.refunds {
            self.refunds.entry(request).or_default().push(entry.amount);
        }
        self.changes.roll_up(&entry);
        self.put_entry(ChainedEntry {
            entry,
            prev,
            format,
            hash,
        });
    }

    /// Stores an entry, and nothing that follows from it.
    pub(crate) fn put_entry(&mut self, chained: ChainedEntry) {
        let operation = chained.entry.operation;
        self.changes.entries.push(operation);
        self.entries.insert(operation, chained);
    }

    /// Takes a reference, folded, for an operation's entry.
    pub(crate) fn register(&mut self, folded: String, operation: OperationId) {
        self.changes.names.push((folded.clone(), operation));
        self.references.insert(folded, operation);
    }

    /// Appends an act of any format to its customer's audit.
    pub(crate) fn append_act(&mut self, record: ActRecord, format: i64, hash: Hash) {
        let (customer, position) = (record.record.customer, record.record.position);
        let changed = record.record.changed();
        if let Some(last) = changed.and_then(|of| self.last_acts.get_mut(&of)) {
            *last = position;
        }
        let mut prev = 0;
        self.touch_customer(customer, |row| {
            prev = row.stored.audit.last;
            row.stored.audit = AuditHead {
                seq: record.seq,
                last: position,
                hash,
            };
            row.audit_changed = true;
        });
        match &mut self.positions {
            Positions::Shared(last) | Positions::Counted { acts: last, .. } => {
                *last = position.max(*last);
            }
        }
        self.put_act(ChainedAct {
            record,
            prev,
            format,
            hash,
        });
    }

    /// Stores an act, and nothing that follows from it.
    pub(crate) fn put_act(&mut self, act: ChainedAct) {
        let operation = act.record.record.operation;
        self.changes.acts.push(operation);
        self.acts.insert(operation, act);
    }

    /// Ends the sessions of a key.
    pub(crate) fn close_sessions(&mut self, key: KeyId) {
        self.changes.ended_sessions.insert(key);
        self.tables.remove(|session: &Session| session.key == key);
    }

    /// Ends the sessions and links of a key.
    pub(crate) fn end_access(&mut self, key: KeyId) {
        self.close_sessions(key);
        self.changes.ended_links.insert(key);
        self.tables.remove(|link: &SignInLink| link.key == key);
    }

    /// Stores a link and removes those that have expired at `now`.
    pub(crate) fn insert_link(&mut self, link: SignInLink, now: Timestamp) {
        self.tables
            .remove(|known: &SignInLink| known.expires <= now);
        self.changes.forget_links = self.changes.forget_links.max(Some(now));
        self.tables.put(link);
    }

    /// Stores a session, removes those that have expired when it begins, and has the store remove the oldest above
    /// [`Session::MOST_OF_KEY`] and [`Session::MOST_OF_CUSTOMER`].
    pub(crate) fn insert_session(&mut self, session: Session) {
        let now = session.at;
        self.tables.remove(|known: &Session| known.expires <= now);
        self.changes.forget_sessions = self.changes.forget_sessions.max(Some(now));
        self.changes.crowded.insert(session.key);
        self.tables.put(session);
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.changes.is_empty() && !self.tables.is_changed()
    }

    /// Notes that all changes have been written. Customers, keys and open holds stay, for a store that may use them again.
    pub(crate) fn written(&mut self) {
        for customer in &self.changes.customers {
            if let Some(row) = self.customers.get_mut(customer) {
                row.written();
            }
        }
        for key in &self.changes.keys {
            if let Some(row) = self.keys.get_mut(key) {
                row.written();
            }
        }
        for request in &self.changes.holds {
            match self.holds.get_mut(request) {
                Some(row) if row.now.is_some() => {
                    (row.was_stored, row.changed) = (true, false);
                }
                _ => drop(self.holds.remove(request)),
            }
        }
        self.changes.clear();
        self.dead.clear();
        self.entries.clear();
        clear(&mut self.acts);
        self.last_acts.clear();
        clear(&mut self.refunds);
        clear(&mut self.references);
        clear(&mut self.hours);
        clear(&mut self.personal);
        clear(&mut self.made);
        self.running.clear();
        self.tables.clear();
    }

    /// Customers that were changed.
    pub(crate) fn changed_customers(&self) -> impl Iterator<Item = &CustomerRow> {
        self.changes
            .customers
            .iter()
            .filter_map(|customer| self.customers.get(customer))
    }

    /// Keys that were changed.
    pub(crate) fn changed_keys(&self) -> impl Iterator<Item = &KeyRow> {
        self.changes
            .keys
            .iter()
            .filter_map(|key| self.keys.get(key))
    }

    /// Holds that were changed.
    pub(crate) fn changed_holds(
        &self,
    ) -> impl Iterator<Item = (&OperationId, &CachedRow<StoredHold>)> {
        self.changes
            .holds
            .iter()
            .filter_map(|request| self.holds.get_key_value(request))
    }

    /// Entries to insert, in the order in which they were appended.
    pub(crate) fn new_entries(&self) -> impl DoubleEndedIterator<Item = &ChainedEntry> {
        let operations = self.changes.entries.iter();
        operations.filter_map(|operation| self.entries.get(operation))
    }

    /// Acts to insert, in the order in which they were appended.
    pub(crate) fn new_acts(&self) -> impl Iterator<Item = &ChainedAct> {
        let operations = self.changes.acts.iter();
        operations.filter_map(|operation| self.acts.get(operation))
    }
}
