//! Verify: recomputes every balance, charge, hold, rollup and hash chain, beside a running gateway.
//!
//! It only reads. A key and its account are read at one instant; the entries behind them never change, so the walk along them
//! needs no transaction and holds nothing up. Sums over all keys are compared at one instant too, after catching up with what
//! was appended during the walk. It reports faults, it never mends.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Error, OptionalExtension, Result, params};

use super::reads::entry_at;
use super::rows::{self, Columns, SELECT_ENTRY, StoredEntry, StoredKey};
use crate::chain::{self, GENESIS, Hash};
use crate::{
    Account, Amount, Entry, EntryKind, KeyId, OperationId, Timestamp, Totals, Usage, UsageRow, VerifyReport, audit, reference,
};

const PAGE: i64 = 500;

/// Recomputes everything. `wanted` turning false ends it early.
pub(super) fn verify(conn: &Connection, wanted: &dyn Fn() -> bool) -> Result<VerifyReport> {
    // Positions count from 1 without a gap, so these many rows must be reached.
    let entries: i64 = conn.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))?;
    let audits: i64 = conn.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?;
    let mut check = Check {
        conn,
        report: VerifyReport::default(),
        entries: Seen::up_to(entries),
        audits: Seen::up_to(audits),
        journal: Journal { covered: entries, ..Journal::default() },
    };
    let mut after = -1_i64;
    loop {
        let mut page = conn.prepare_cached("SELECT id FROM keys WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        let ids = page.query_map([after, PAGE], |row| row.get(0))?.collect::<Result<Vec<i64>>>()?;
        let Some(last) = ids.last() else { break };
        after = *last;
        for id in ids {
            check.key(id)?;
        }
        if !wanted() {
            return Ok(check.report);
        }
    }
    for position in check.entries.missing() {
        check.fault(format!("entry {position}: missing, or in no key's history"));
    }
    for position in check.audits.missing() {
        check.fault(format!("audit record {position}: missing, or in no key's history"));
    }
    check.rollups()?;
    check.totals()?;
    Ok(check.report)
}

/// Which positions of an append-only table were reached.
struct Seen(Vec<bool>);

impl Seen {
    fn up_to(newest: i64) -> Self {
        Self(vec![false; usize::try_from(newest).unwrap_or_default()])
    }

    fn mark(&mut self, position: i64) {
        let index = position.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        if let Some(seen) = index.and_then(|index| self.0.get_mut(index)) {
            *seen = true;
        }
    }

    fn missing(&self) -> Vec<usize> {
        self.0.iter().enumerate().filter(|(_, seen)| !**seen).map(|(index, _)| index.saturating_add(1)).take(1_000).collect()
    }
}

/// What the entries up to a position add up to.
#[derive(Default)]
struct Journal {
    covered: i64,
    totals: Totals,
    hours: BTreeMap<i64, BTreeMap<String, HourSum>>,
}

/// One hour of one slug over all keys.
struct HourSum {
    row: UsageRow,
    /// Σ key × (requests + charge): notices usage that was moved to another key.
    weighed: i128,
}

impl HourSum {
    fn empty(slug: &str) -> Self {
        Self { row: UsageRow::empty(Timestamp::default(), slug), weighed: 0 }
    }

    fn add(&mut self, key: i64, usage: &Usage, requests: u64, charge: Amount, loss: Amount) {
        self.row.merge(usage, requests, charge, loss);
        let weight = i128::from(requests).saturating_add(i128::from(charge.picos()));
        self.weighed = self.weighed.wrapping_add(i128::from(key).wrapping_mul(weight));
    }
}

impl Journal {
    fn add(&mut self, entry: &Entry) {
        let totals = &mut self.totals;
        let amount = i128::from(entry.amount.picos());
        match entry.kind {
            EntryKind::TopUp | EntryKind::Adjust => totals.credit = totals.credit.saturating_add(amount),
            EntryKind::Charge | EntryKind::Refund => totals.spent = totals.spent.saturating_sub(amount),
        }
        totals.entries = totals.entries.saturating_add(1);
        if let Some(bill) = &entry.bill {
            totals.loss = totals.loss.saturating_add(i128::from(bill.loss.picos()));
            let hour = self.hours.entry(entry.at.hour()).or_default();
            let sum = hour.entry(bill.slug.clone()).or_insert_with(|| HourSum::empty(&bill.slug));
            sum.add(entry.key.to_i64(), &bill.usage, 1, entry.amount.checked_neg().unwrap_or_default(), bill.loss);
        }
    }
}

struct Check<'a> {
    conn: &'a Connection,
    report: VerifyReport,
    entries: Seen,
    audits: Seen,
    journal: Journal,
}

/// The sums of one key's history.
#[derive(Default)]
struct History {
    credit: i128,
    spent: i128,
    refunds: HashMap<OperationId, i128>,
}

impl Check<'_> {
    fn fault(&mut self, text: String) {
        self.report.faults.push(text);
    }

    /// A row that does not decode is a fault; a file that cannot be read ends the check.
    fn readable<T>(&mut self, what: &str, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ Error::SqliteFailure(..)) => Err(error),
            Err(error) => {
                self.fault(format!("{what}: cannot be read ({error})"));
                Ok(None)
            }
        }
    }

    fn key(&mut self, number: i64) -> Result<()> {
        self.report.keys = self.report.keys.saturating_add(1);
        let name = KeyId::from_i64(number).map_or_else(|| format!("key number {number}"), |id| format!("key {id}"));
        let instant = self.conn.unchecked_transaction()?;
        let stored = instant.prepare_cached(&rows::KEY_BY_ID)?.query_row([number], rows::stored_key).optional();
        let holds = instant
            .prepare_cached("SELECT * FROM holds WHERE key = ?1")?
            .query_map([number], rows::stored_hold)?
            .collect::<Result<Vec<_>>>();
        instant.finish()?;
        let Some(stored) = self.readable(&name, stored)? else { return Ok(()) };
        let Some(stored) = stored else {
            self.fault(format!("{name}: has no account"));
            return Ok(());
        };
        let holds = self.readable(&format!("{name}: a hold"), holds)?.unwrap_or_default();
        self.report.holds = self.report.holds.saturating_add(u64::try_from(holds.len()).unwrap_or(u64::MAX));
        let account = stored.key.account;
        if Amount::checked_sum(holds.iter().map(|hold| hold.open.amount)) != Some(account.held) {
            self.fault(format!("{name}: its holds do not add up to {} held", account.held));
        }
        for hold in &holds {
            let cost = hold.checkpoint.as_ref().map_or(Ok(Amount::ZERO), crate::Bill::cost);
            if cost != Ok(hold.open.used) || hold.open.amount < hold.opened {
                self.fault(format!("{name}: hold {} does not follow from its checkpoint", hold.open.request));
            }
        }
        let history = self.walk(&name, &stored)?;
        self.account(&name, &account, &history);
        self.walk_audit(&name, &stored)
    }

    fn account(&mut self, name: &str, account: &Account, history: &History) {
        if !account.is_sound() {
            self.fault(format!("{name}: spent and held are more than its credit"));
        }
        if history.credit != i128::from(account.credit.picos()) {
            self.fault(format!("{name}: credit {} does not follow from its entries", account.credit));
        }
        if history.spent != i128::from(account.spent.picos()) {
            self.fault(format!("{name}: spent {} does not follow from its entries", account.spent));
        }
        for request in history.refunds.keys() {
            self.fault(format!("{name}: request {request} was refunded without a charge"));
        }
    }

    /// Walks a key's entries from the newest to the first.
    fn walk(&mut self, name: &str, stored: &StoredKey) -> Result<History> {
        let mut history = History::default();
        let (mut position, mut expected) = (stored.head.last, stored.head.hash);
        let (mut seq, mut balance) = (stored.head.seq, stored.key.account.balance());
        while position > 0 {
            let place = format!("{name}: entry {position}");
            let read = entry_at(self.conn, position);
            let Some(found) = self.readable(&place, read)? else { return Ok(history) };
            let Some(StoredEntry { entry, prev, hash }) = found else {
                self.fault(format!("{place}: missing"));
                return Ok(history);
            };
            self.report.entries = self.report.entries.saturating_add(1);
            self.entries.mark(position);
            let before = self.hash_before("SELECT hash FROM entries WHERE position = ?1", prev)?;
            if hash != expected || chain::entry_hash(&before, prev, &entry) != hash {
                self.fault(format!("{place}: its hash does not match its content or the chain"));
            }
            if entry.key != stored.key.id || entry.seq != seq || entry.balance_after != balance {
                self.fault(format!("{place}: key, sequence or balance do not follow from the entry after it"));
            }
            self.entry(&place, &entry, &mut history);
            self.reference(&place, &entry)?;
            if position <= self.journal.covered {
                self.journal.add(&entry);
            }
            if prev >= position {
                self.fault(format!("{place}: points forward"));
                return Ok(history);
            }
            balance = Amount::from_picos(balance.picos().saturating_sub(entry.amount.picos()));
            (position, expected, seq) = (prev, before, seq.saturating_sub(1));
        }
        if seq != 0 || balance != Amount::ZERO || expected != GENESIS {
            self.fault(format!("{name}: its history does not begin at its first entry"));
        }
        Ok(history)
    }

    fn hash_before(&self, sql: &str, position: i64) -> Result<Hash> {
        if position == 0 {
            return Ok(GENESIS);
        }
        let hash: Option<Vec<u8>> = self.conn.prepare_cached(sql)?.query_row([position], |row| row.get(0)).optional()?;
        // A missing entry is reported where the walk reaches it.
        Ok(hash.and_then(|bytes| bytes.try_into().ok()).unwrap_or(GENESIS))
    }

    /// What an entry says of itself.
    fn entry(&mut self, place: &str, entry: &Entry, history: &mut History) {
        let amount = i128::from(entry.amount.picos());
        match entry.kind {
            EntryKind::TopUp | EntryKind::Adjust => history.credit = history.credit.saturating_add(amount),
            EntryKind::Charge | EntryKind::Refund => history.spent = history.spent.saturating_sub(amount),
        }
        if let (EntryKind::Refund, Some(request)) = (entry.kind, entry.refunds) {
            let sum = history.refunds.entry(request).or_default();
            *sum = sum.saturating_add(amount);
        }
        if entry.kind != EntryKind::Charge {
            return;
        }
        let refunded = history.refunds.remove(&entry.operation).unwrap_or_default();
        let Some(bill) = &entry.bill else { return self.fault(format!("{place}: a charge without a bill")) };
        let cost = bill.cost().map(|cost| i128::from(cost.picos()));
        if amount > 0 || cost != Ok(i128::from(bill.loss.picos()).saturating_sub(amount)) {
            self.fault(format!("{place}: charge and loss are not the sum of its lines"));
        }
        if refunded > amount.saturating_neg() {
            self.fault(format!("{place}: more was refunded than charged"));
        }
    }

    /// A reference is registered, and its owner is an entry with the same one: itself, or an older twin.
    fn reference(&mut self, place: &str, entry: &Entry) -> Result<()> {
        let Some(folded) = entry.reference.as_deref().map(reference::folded) else { return Ok(()) };
        let mut statement = self
            .conn
            .prepare_cached("SELECT e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ?1")?;
        let owner = statement.query_row([&folded], |row| row.get::<_, Option<String>>(0)).optional();
        let owner = self.readable(place, owner)?.flatten().flatten();
        if owner.as_deref().map(reference::folded) != Some(folded) {
            self.fault(format!("{place}: its reference could be used again"));
        }
        Ok(())
    }

    fn walk_audit(&mut self, name: &str, stored: &StoredKey) -> Result<()> {
        let (mut position, mut expected) = (stored.audit_last, stored.audit_hash);
        let mut newest = true;
        while position > 0 {
            let place = format!("{name}: audit record {position}");
            let mut statement = self.conn.prepare_cached("SELECT * FROM audit WHERE position = ?1")?;
            let read = statement.query_row([position], |row| {
                Ok((
                    rows::audit_record(row)?,
                    row.get::<_, i64>("prev")?,
                    row.get::<_, String>("state")?,
                    row.get::<_, Hash>("hash")?,
                ))
            });
            let Some(found) = self.readable(&place, read.optional())? else { return Ok(()) };
            let Some((record, prev, state, hash)) = found else {
                self.fault(format!("{place}: missing"));
                return Ok(());
            };
            self.audits.mark(position);
            let before = self.hash_before("SELECT hash FROM audit WHERE position = ?1", prev)?;
            if hash != expected || record.key != stored.key.id || chain::audit_hash(&before, prev, &record, &state) != hash {
                self.fault(format!("{place}: its hash does not match its content or the chain"));
            }
            if newest && state != audit::state(&stored.key) {
                self.fault(format!("{name}: settings, status or secret were changed without an audit record"));
            }
            if prev >= position {
                self.fault(format!("{place}: points forward"));
                return Ok(());
            }
            newest = false;
            (position, expected) = (prev, before);
        }
        if newest || expected != GENESIS {
            self.fault(format!("{name}: its audit does not begin at its creation"));
        }
        Ok(())
    }

    // --- sums over all keys ---

    /// Adds the entries that were appended since, inside the caller's instant.
    fn catch_up(&mut self) -> Result<()> {
        let mut statement = self.conn.prepare_cached(&format!("{SELECT_ENTRY} WHERE e.position > ?1 ORDER BY e.position"))?;
        let fresh = statement.query_map([self.journal.covered], rows::stored_entry)?.collect::<Result<Vec<_>>>();
        for stored in self.readable("an entry appended meanwhile", fresh)?.unwrap_or_default() {
            self.journal.covered = stored.entry.position;
            self.journal.add(&stored.entry);
        }
        Ok(())
    }

    fn rollups(&mut self) -> Result<()> {
        let mut statement = self.conn.prepare("SELECT DISTINCT hour FROM usage")?;
        let mut hours = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>>>()?;
        hours.extend(self.journal.hours.keys());
        hours.sort_unstable();
        hours.dedup();
        for hour in hours {
            let instant = self.conn.unchecked_transaction()?;
            self.catch_up()?;
            let read = rollup_of(self.conn, hour);
            instant.finish()?;
            let place = format!("usage of the hour {}", Timestamp::from_millis(hour.saturating_mul(3_600_000)));
            let Some(stored) = self.readable(&place, read)? else { continue };
            let journal = self.journal.hours.get(&hour);
            let same = journal.map_or(0, BTreeMap::len) == stored.len()
                && journal
                    .into_iter()
                    .flatten()
                    .zip(&stored)
                    .all(|((slug, sum), (name, found))| (slug, &sum.row, sum.weighed) == (name, &found.row, found.weighed));
            if !same {
                self.fault(format!("{place}: does not follow from the entries"));
            }
        }
        Ok(())
    }

    fn totals(&mut self) -> Result<()> {
        let instant = self.conn.unchecked_transaction()?;
        self.catch_up()?;
        let read = super::reads::totals(self.conn);
        let keys: i64 = self.conn.query_row("SELECT count(*) FROM keys", [], |row| row.get(0))?;
        let newest: i64 = self.conn.query_row("SELECT coalesce(max(position), 0) FROM entries", [], |row| row.get(0))?;
        let mut statement = self.conn.prepare("SELECT amount FROM holds")?;
        let holds = statement.query_map([], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>>>();
        instant.finish()?;
        let Some(stored) = self.readable("the totals", read)? else { return Ok(()) };
        let holds = self.readable("a hold", holds)?.unwrap_or_default();
        let expected = Totals {
            keys: keys.unsigned_abs(),
            entries: newest.unsigned_abs(),
            holds: u64::try_from(holds.len()).unwrap_or(u64::MAX),
            held: holds.iter().fold(0, |sum, held| sum.saturating_add(i128::from(*held))),
            ..self.journal.totals
        };
        if stored != expected {
            self.fault("the totals over all keys do not follow from the entries and holds".to_owned());
        }
        Ok(())
    }
}

/// One hour by slug, over all keys.
fn rollup_of(conn: &Connection, hour: i64) -> Result<BTreeMap<String, HourSum>> {
    let mut statement = conn.prepare_cached(
        "SELECT s.slug, u.key, u.input, u.cache_read, u.cache_write, u.cache_write_1h, u.output, u.reasoning, u.images,
         u.requests, u.charge, u.loss FROM usage u LEFT JOIN slugs s ON s.id = u.slug WHERE u.hour = ?1",
    )?;
    let mut found: BTreeMap<String, HourSum> = BTreeMap::new();
    let mut rows = statement.query(params![hour])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let slug: String = columns.take()?;
        let sums = found.entry(slug.clone()).or_insert_with(|| HourSum::empty(&slug));
        sums.add(columns.take()?, &columns.usage()?, columns.small()?, columns.take()?, columns.take()?);
    }
    Ok(found)
}
