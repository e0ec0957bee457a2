//! Rows in memory: what the operations of a batch may read, and what they have written.
//!
//! A store fills them (`fetch`) with what [`Operation::needs`](super::operation::Operation::needs) names, `apply` decides on them, and
//! the store writes the difference (`flush`). Operations see the writes made before them. Nothing here talks to a database, fails
//! or decides. A new kind of row gets a field here, a name in `Needs`, and a statement in each store's `fetch` and `flush`.

use std::collections::BTreeMap;

use super::changes::{Changes, clear};
use crate::book::audit::ActRecord;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, Hash, KeyHead, StoredKey};
use crate::rule::hold::StoredHold;
use crate::rule::limit::KeyTraffic;
use crate::value::reference;
use crate::{
    Account, Amount, Bill, Caps, JournalEntry, Key, KeyId, NewHold, OpenHold, OperationId, OwnCost,
    Refusal, SecretHash, Session, Timestamp, UtcDay,
};

/// Holds that one recovery ends. With more, other operations would wait behind one long transaction.
pub(crate) const RECOVERED_AT_ONCE: u16 = 500;

/// A key with its account and the ends of its chains.
#[derive(Debug, Clone)]
pub(crate) struct KeyRow {
    pub(crate) stored: StoredKey,
    /// Its traffic at all gateways; `None` if a single gateway counts for itself.
    pub(crate) traffic: Option<KeyTraffic>,
    /// Account and number of the newest entry as the database has them; `None` if it does not have the key yet.
    pub(crate) before: Option<(Account, i64)>,
    pub(crate) account_changed: bool,
    pub(crate) settings_changed: bool,
    pub(crate) audit_changed: bool,
    pub(crate) caps_changed: bool,
}

impl KeyRow {
    /// As the database has it.
    pub(crate) fn stored(stored: StoredKey, traffic: Option<KeyTraffic>) -> Self {
        let mut row = Self::new(stored, traffic);
        row.written();
        row
    }

    /// Notes that the database has it as it is.
    fn written(&mut self) {
        self.before = Some((self.stored.key.account, self.stored.head.seq));
        (self.account_changed, self.settings_changed) = (false, false);
        (self.audit_changed, self.caps_changed) = (false, false);
    }

    /// As it will be inserted.
    pub(crate) const fn new(stored: StoredKey, traffic: Option<KeyTraffic>) -> Self {
        Self {
            stored,
            traffic,
            before: None,
            account_changed: true,
            settings_changed: true,
            audit_changed: true,
            caps_changed: true,
        }
    }

    const fn is_touched(&self) -> bool {
        self.account_changed || self.settings_changed || self.audit_changed || self.caps_changed
    }
}

/// A row that may or may not exist, in memory and in the database.
#[derive(Debug, Clone)]
pub(crate) struct CachedRow<T> {
    pub(crate) now: Option<T>,
    pub(crate) was_stored: bool,
    pub(crate) changed: bool,
}

impl<T> CachedRow<T> {
    pub(crate) const fn stored(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: true,
            changed: false,
        }
    }

    pub(crate) const fn new(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: false,
            changed: true,
        }
    }

    /// Removes what is there.
    fn take(&mut self) -> Option<T> {
        self.changed |= self.now.is_some();
        self.now.take()
    }
}

/// Rows with a token, by its hash.
pub(crate) type Tokens<T> = BTreeMap<[u8; 32], CachedRow<T>>;

/// A sign-in link: its key, and when it expires.
pub(crate) type LinkRow = (KeyId, Timestamp);

/// What was charged in an hour for a slug.
pub(crate) type SpentHour = (Timestamp, String, Amount);

/// The last numbers handed out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Positions {
    /// A database has one sequence for both, with gaps.
    Shared(i64),
    /// A file counts both without a gap.
    Counted { entries: i64, acts: i64 },
}

impl Default for Positions {
    fn default() -> Self {
        Self::Shared(0)
    }
}

impl Positions {
    pub(crate) const fn next_entry(self) -> i64 {
        let (Self::Shared(last) | Self::Counted { entries: last, .. }) = self;
        last.saturating_add(1)
    }

    pub(crate) const fn next_act(self) -> i64 {
        let (Self::Shared(last) | Self::Counted { acts: last, .. }) = self;
        last.saturating_add(1)
    }
}

/// Everything that operations see during one transaction.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The ledger's identity, with which every chain begins.
    pub(crate) ledger: [u8; 16],
    pub(crate) epoch: i64,
    /// The ledger's own clock, in microseconds since 1970: that of its database, or of this machine if it is a file.
    pub(crate) now: i64,
    pub(crate) positions: Positions,
    pub(crate) keys: BTreeMap<KeyId, KeyRow>,
    pub(crate) holds: BTreeMap<OperationId, CachedRow<StoredHold>>,
    /// Those of `holds` whose process is dead, for the next recovery.
    pub(crate) dead: Vec<OperationId>,
    pub(crate) entries: BTreeMap<OperationId, ChainedEntry>,
    pub(crate) acts: BTreeMap<OperationId, ChainedAct>,
    pub(crate) refunds: BTreeMap<OperationId, Vec<Amount>>,
    /// Folded references, and the operations of their entries.
    pub(crate) references: BTreeMap<String, OperationId>,
    pub(crate) sessions: Tokens<Session>,
    pub(crate) links: Tokens<LinkRow>,
    /// What keys were charged in each hour as the database has it, by slug, of those whose spending was asked for. Their open holds
    /// are all in `holds`.
    pub(crate) hours: BTreeMap<KeyId, Vec<SpentHour>>,
    /// What to write.
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

    /// A key with the ends of its chains.
    pub(crate) fn key(&self, key: KeyId) -> Result<&StoredKey, Refusal> {
        self.keys
            .get(&key)
            .map(|row| &row.stored)
            .ok_or(Refusal::NoSuchKey(key))
    }

    /// Refuses a request beyond the key's limits across all gateways.
    pub(crate) fn check_limits(&self, key: KeyId) -> Result<(), Refusal> {
        match self.keys.get(&key) {
            Some(KeyRow {
                stored,
                traffic: Some(traffic),
                ..
            }) => traffic.check(&stored.key.settings, self.now),
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

    /// What a key was charged in each hour, with what this batch has added.
    pub(crate) fn spent_hours(&self, key: KeyId) -> Vec<SpentHour> {
        let stored = self.hours.get(&key).into_iter().flatten().cloned();
        let added = self.changes.usage.iter();
        let added = added.filter(|(place, _)| place.key == key);
        let added = added.map(|(place, row)| {
            (
                Timestamp::of_hour(place.hour),
                place.slug.clone(),
                row.charge,
            )
        });
        stored.chain(added).collect()
    }

    /// The open holds of a key, and the days on which they were opened.
    pub(crate) fn holds_of(&self, key: KeyId) -> Vec<(&OpenHold, UtcDay)> {
        let open = self.holds.values().filter_map(|row| row.now.as_ref());
        open.filter(|hold| hold.open.key == key)
            .map(|hold| (&hold.open, hold.day))
            .collect()
    }

    /// The act of an operation.
    pub(crate) fn act(&self, operation: OperationId) -> Option<&crate::AuditRecord> {
        self.acts.get(&operation).map(|act| &act.record.record)
    }

    /// Whether an operation created an entry, an audit record or a hold.
    pub(crate) fn is_used(&self, operation: OperationId) -> bool {
        self.hold(operation).is_some()
            || self.entries.contains_key(&operation)
            || self.acts.contains_key(&operation)
    }
}

// --- writing ---

impl Rows {
    fn touch(&mut self, key: KeyId, change: impl FnOnce(&mut KeyRow)) {
        if let Some(row) = self.keys.get_mut(&key) {
            if !row.is_touched() {
                self.changes.keys.push(key);
            }
            change(row);
        }
    }

    /// Stores what our own requests to a target cost in an hour of the current epoch.
    pub(crate) fn own_cost(&mut self, own: &OwnCost) {
        let place = (own.hour, own.target.clone(), self.epoch);
        self.changes.own_costs.insert(place, own.cost);
    }

    /// Stores a new key, without money or history.
    pub(crate) fn insert_key(&mut self, stored: StoredKey) {
        let id = stored.key.id;
        let shared = matches!(self.positions, Positions::Shared(_));
        let row = KeyRow::new(stored, shared.then(KeyTraffic::default));
        self.keys.insert(id, row);
        self.changes.keys.push(id);
    }

    /// Stores a key's settings, state and secrets.
    pub(crate) fn update_key(&mut self, key: Key) {
        self.touch(key.id, |row| {
            row.stored.key = key;
            (row.settings_changed, row.caps_changed) = (true, true);
        });
    }

    /// Stores what a key's caps count. Most keys have none.
    pub(crate) fn set_caps(&mut self, key: KeyId, caps: Caps) {
        if caps.is_empty() {
            return;
        }
        self.touch(key, |row| {
            row.stored.key.caps = caps;
            row.caps_changed = true;
        });
    }

    /// Changes what a key holds.
    pub(crate) fn set_account(&mut self, key: KeyId, account: Account) {
        self.touch(key, |row| {
            row.stored.key.account = account;
            row.account_changed = true;
        });
    }

    /// Stores a new hold of the current epoch.
    pub(crate) fn insert_hold(&mut self, new: &NewHold) {
        let now = self.now;
        self.touch(new.key, |row| {
            let settings = &row.stored.key.settings;
            row.traffic = row.traffic.map(|traffic| traffic.begin(settings, now));
            row.account_changed = true;
        });
        self.put_hold(StoredHold::new(new, self.epoch, self.today()));
        self.changes.opened = self.changes.opened.saturating_add(1);
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

    /// Stores a hold's new size and its checkpoint, whose charge is `used`.
    pub(crate) fn update_hold(
        &mut self,
        request: OperationId,
        amount: Amount,
        used: Amount,
        checkpoint: &Bill,
    ) {
        if let Some(row) = self.holds.get_mut(&request)
            && let Some(hold) = &mut row.now
        {
            (hold.open.amount, hold.open.used) = (amount, used);
            hold.checkpoint = Some(checkpoint.clone());
            if !std::mem::replace(&mut row.changed, true) {
                self.changes.holds.push(request);
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
        self.touch(hold.open.key, |row| {
            row.traffic = row.traffic.map(KeyTraffic::end);
            row.account_changed = true;
        });
    }

    /// Appends an entry of any format to its key's history and moves the account; the caller knows that its reference is free.
    pub(crate) fn append(
        &mut self,
        entry: JournalEntry,
        format: i64,
        hash: Hash,
        account: Account,
    ) {
        let mut prev = 0;
        self.touch(entry.key, |row| {
            let stored = &mut row.stored;
            prev = stored.head.last;
            stored.key.account = account;
            stored.key.last_entry_at = Some(entry.at);
            stored.head = KeyHead {
                seq: entry.seq,
                last: entry.position,
                hash,
                last_at: Some(entry.at),
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

    /// Appends an act of today's format to its key's audit.
    pub(crate) fn append_act(&mut self, record: ActRecord, format: i64, hash: Hash) {
        let (key, position) = (record.record.key, record.record.position);
        let mut prev = 0;
        self.touch(key, |row| {
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
        for row in self.sessions.values_mut() {
            if row.now.as_ref().is_some_and(|session| session.key == key) {
                row.now = None;
            }
        }
    }

    /// Ends the sessions and links of a key.
    pub(crate) fn end_access(&mut self, key: KeyId) {
        self.close_sessions(key);
        self.changes.ended_links.insert(key);
        for row in self.links.values_mut() {
            if row.now.is_some_and(|(owner, _)| owner == key) {
                row.now = None;
            }
        }
    }

    /// Stores a link and removes those that have expired at `now`.
    pub(crate) fn insert_link(&mut self, token: SecretHash, link: LinkRow, now: Timestamp) {
        for row in self.links.values_mut() {
            if row.now.is_some_and(|(_, end)| end <= now) {
                row.take();
            }
        }
        self.changes.forget_links = self.changes.forget_links.max(Some(now));
        self.changes.tokens = true;
        put(&mut self.links, token, link);
    }

    /// Removes a link; returns its key and expiry.
    pub(crate) fn take_link(&mut self, token: SecretHash) -> Option<LinkRow> {
        self.changes.tokens = true;
        self.links.get_mut(&token.0)?.take()
    }

    /// Stores a session, removes those that have expired when it begins, and has the store remove the key's oldest above
    /// [`Session::MOST_OF_KEY`].
    pub(crate) fn insert_session(&mut self, session: Session) {
        for row in self.sessions.values_mut() {
            if row
                .now
                .as_ref()
                .is_some_and(|open| open.expires <= session.at)
            {
                row.take();
            }
        }
        self.changes.forget_sessions = self.changes.forget_sessions.max(Some(session.at));
        self.changes.crowded.insert(session.key);
        self.changes.tokens = true;
        put(&mut self.sessions, session.token, session);
    }

    /// Removes a session.
    pub(crate) fn delete_session(&mut self, token: SecretHash) {
        self.changes.tokens = true;
        if let Some(row) = self.sessions.get_mut(&token.0) {
            row.take();
        }
    }

    /// Notes that all changes have been written. Keys and open holds stay, for a store that may use them again.
    pub(crate) fn written(&mut self) {
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
        clear(&mut self.entries);
        clear(&mut self.acts);
        clear(&mut self.refunds);
        clear(&mut self.references);
        clear(&mut self.sessions);
        clear(&mut self.links);
        self.hours.clear();
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

fn put<T>(rows: &mut Tokens<T>, token: SecretHash, value: T) {
    let was_stored = rows.get(&token.0).is_some_and(|row| row.was_stored);
    rows.insert(
        token.0,
        CachedRow {
            was_stored,
            ..CachedRow::new(value)
        },
    );
}
