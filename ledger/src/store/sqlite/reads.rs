//! Every read outside the writer, except lists of keys.
//!
//! Lists are paged by key, never by OFFSET, and long ones are read in short statements: a statement is a read transaction, and a
//! long one would delay checkpoints. The history of one key is read by following the pointers between its entries.

use std::collections::HashMap;

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::defaults::fitted;
use super::rows::{self, Columns, ENTRY_AT, ENTRY_BY_OPERATION, KEY_BY_ID, SELECT_ENTRY};
use super::totals;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::store::grant_rows::without_periods;
use crate::store::hour_rows::usage_row;
use crate::store::rows::{RowColumns as _, rollup_columns, rows_at_most};
use crate::store::select::SELECT_SHOWN;
use crate::value::reference;
use crate::value::tries::UNMETERED;
use crate::{
    Addressees, Amount, AuditRecord, Customer, CustomerBy, CustomerId, EntryQuery, JournalEntry,
    Key, KeyId, OpenHold, OperationId, OwnCost, PersonalData, PublishedSlug, RunQuery, RunSum,
    Scope, SecretHash, SlugUse, Timestamp, Totals, UsageRow,
};

/// Rows that one statement of a scan examines.
// Small enough for a checkpoint to get in between two statements, large enough that beginning one does not count.
const PAGE: i64 = 2_000;
/// How many entries back to look for an answer's id.
// No index has these ids, because one would cost every settlement: the search walks back through the key's history, and has to end.
const ANSWER_DEPTH: usize = 100_000;

pub(super) fn find_key(conn: &Connection, id: KeyId) -> Result<Option<Key>> {
    let mut statement = conn.prepare_cached(&KEY_BY_ID)?;
    let mut found = statement.query([id])?;
    let shown = found.next()?.map(rows::shown).transpose()?;
    shown.map(|shown| fitted(conn, shown)).transpose()
}

pub(super) fn customer(conn: &Connection, by: CustomerBy<'_>) -> Result<Option<Customer>> {
    let (column, value) = by.column();
    let mut statement = conn.prepare_cached(&format!("{SELECT_SHOWN} WHERE a.{column} = ?1"))?;
    let mut found = statement.query([value])?;
    let shown = found.next()?.map(rows::shown).transpose()?;
    shown.map(|shown| fitted(conn, shown)).transpose()
}

pub(super) fn addressees(conn: &Connection, id: CustomerId) -> Result<Addressees> {
    let mut statement =
        conn.prepare_cached("SELECT folded, customer, data FROM addressees WHERE customer = ?1")?;
    let found = statement.query_map([id], rows::row)?;
    Ok(Addressees::new(found.collect::<Result<Vec<_>>>()?))
}

pub(super) fn personal_data(conn: &Connection, id: CustomerId) -> Result<Option<PersonalData>> {
    conn.prepare_cached("SELECT data FROM personal_data WHERE customer = ?1")?
        .query_row([id], rows::row)
        .optional()
}

pub(super) fn find_session(
    conn: &Connection,
    token: SecretHash,
    now: Timestamp,
) -> Result<Option<KeyId>> {
    let mut statement =
        conn.prepare_cached("SELECT key FROM sessions WHERE token = ?1 AND expires > ?2")?;
    statement
        .query_row(params![token, now], |row| row.get(0))
        .optional()
}

pub(super) fn has_link(conn: &Connection, token: SecretHash, now: Timestamp) -> Result<bool> {
    conn.prepare_cached("SELECT 1 FROM links WHERE token = ?1 AND expires > ?2")?
        .exists(params![token, now])
}

pub(super) fn entry(conn: &Connection, operation: OperationId) -> Result<Option<JournalEntry>> {
    let mut statement = conn.prepare_cached(ENTRY_BY_OPERATION)?;
    statement
        .query_row([operation], rows::stored_entry)
        .optional()
        .map(|stored| stored.map(|stored| stored.entry))
}

/// The version of the schema.
pub(super) fn schema(conn: &Connection) -> Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

pub(super) fn totals(conn: &Connection) -> Result<Totals> {
    let instant = conn.unchecked_transaction()?;
    let mut totals = totals::count(conn)?.sums.totals;
    let mut holds = conn.prepare_cached("SELECT amount FROM holds")?;
    let mut held = holds.query([])?;
    while let Some(row) = held.next()? {
        let amount = row.get::<_, Amount>(0)?;
        totals.holds = totals.holds.saturating_add(1);
        totals.held = totals.held.saturating_add(i128::from(amount.picos()));
    }
    drop(held);
    instant.finish()?;
    Ok(totals)
}

pub(super) fn open_holds(
    conn: &Connection,
    of: Option<Scope>,
    limit: usize,
) -> Result<Vec<OpenHold>> {
    let (key, customer) = parts(of);
    let mut statement = conn.prepare_cached(concat!(
        rows::select_hold!(),
        " WHERE (?1 IS NULL OR h.key = ?1) AND (?3 IS NULL OR h.key IN (SELECT id FROM keys WHERE customer = ?3))
          ORDER BY h.at, h.request LIMIT ?2"
    ))?;
    statement
        .query_map(
            params![key, rows_at_most(limit), customer],
            rows::stored_hold,
        )?
        .map(|hold| hold.map(|hold| hold.open))
        .collect()
}

const fn parts(of: Option<Scope>) -> (Option<KeyId>, Option<CustomerId>) {
    match of {
        Some(Scope::Key(key)) => (Some(key), None),
        Some(Scope::Customer(customer)) => (None, Some(customer)),
        None => (None, None),
    }
}

pub(super) fn published(conn: &Connection) -> Result<Vec<PublishedSlug>> {
    let mut statement = conn.prepare_cached(
        "SELECT slug, published_at FROM slugs WHERE published_at IS NOT NULL ORDER BY slug",
    )?;
    statement.query_map([], rows::row)?.collect()
}

/// What own requests cost in the hours of a range, by hour and target.
pub(super) fn own_costs(conn: &Connection, first: i64, last: i64) -> Result<Vec<OwnCost>> {
    let mut statement = conn.prepare_cached(
        "SELECT hour, target, sum(cost) FROM own_costs WHERE hour BETWEEN ?1 AND ?2 GROUP BY hour, target ORDER BY hour, target",
    )?;
    statement.query_map([first, last], rows::row)?.collect()
}

// --- history ---

pub(super) fn entry_at(conn: &Connection, position: i64) -> Result<Option<ChainedEntry>> {
    conn.prepare_cached(ENTRY_AT)?
        .query_row([position], rows::stored_entry)
        .optional()
}

pub(super) fn entries(
    conn: &Connection,
    query: &EntryQuery,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<JournalEntry>> {
    let owner = match (query.customer, query.key) {
        (Some(customer), _) => Some(customer),
        (None, Some(key)) => Some(owner(conn, key)?),
        (None, None) => None,
    };
    let mut found = match owner {
        Some(customer) => entries_of_customer(conn, customer, query, wanted)?,
        None => entries_of_all(conn, query, wanted)?,
    };
    found.reverse();
    Ok(found)
}

/// When the entries seen so far happened, newest first. One that a clock ahead of the ledger's has dated later than an entry after
/// it happened, for all that is known, when that one did.
#[derive(Default)]
struct Dates(HashMap<CustomerId, Timestamp>);

impl Dates {
    fn matches(&mut self, query: &EntryQuery, entry: &JournalEntry) -> bool {
        let earliest = self.0.entry(entry.customer).or_insert(entry.at);
        *earliest = entry.at.min(*earliest);
        query.key.is_none_or(|key| entry.key == Some(key))
            && query.since.is_none_or(|since| *earliest >= since)
            && query.until.is_none_or(|until| *earliest < until)
            && query.before.is_none_or(|before| entry.position < before)
    }
}

/// The customer of a key; of one that is not there, the one that would be made for it.
fn owner(conn: &Connection, key: KeyId) -> Result<CustomerId> {
    let mut statement = conn.prepare_cached("SELECT customer FROM keys WHERE id = ?1")?;
    let found = statement.query_row([key], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(CustomerId::made_for(key)))
}

fn entries_of_customer(
    conn: &Connection,
    customer: CustomerId,
    query: &EntryQuery,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<JournalEntry>> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let (mut found, mut dates) = (Vec::new(), Dates::default());
    let mut position = start_of_walk(conn, customer, query.before)?;
    while position > 0 && found.len() < limit && wanted() {
        let Some(stored) = entry_at(conn, position)? else {
            break;
        };
        position = stored.prev;
        if dates.matches(query, &stored.entry) {
            found.push(stored.entry);
        }
    }
    Ok(found)
}

/// The customer's newest entry, or directly the one before `before` if that is an entry of it.
fn start_of_walk(conn: &Connection, customer: CustomerId, before: Option<i64>) -> Result<i64> {
    if let Some(before) = before {
        let mut statement =
            conn.prepare_cached("SELECT prev FROM entries WHERE position = ?1 AND customer = ?2")?;
        if let Some(prev) = statement
            .query_row(params![before, customer], |row| row.get(0))
            .optional()?
        {
            return Ok(prev);
        }
    }
    let mut statement = conn.prepare_cached("SELECT last FROM accounts WHERE id = ?1")?;
    statement
        .query_row([customer], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

fn entries_of_all(
    conn: &Connection,
    query: &EntryQuery,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<JournalEntry>> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let newest: i64 = conn.query_row(
        "SELECT coalesce(max(position), 0) FROM entries",
        [],
        |row| row.get(0),
    )?;
    let mut high = newest.min(
        query
            .before
            .map_or(i64::MAX, |before| before.saturating_sub(1)),
    );
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_ENTRY} WHERE e.position BETWEEN ?1 AND ?2 ORDER BY e.position DESC"
    ))?;
    let (mut found, mut dates) = (Vec::new(), Dates::default());
    while high > 0 && found.len() < limit && wanted() {
        let rows = PAGE.min(rows_at_most(limit.saturating_sub(found.len()).max(100)));
        let low = high.saturating_sub(rows).saturating_add(1);
        for stored in page.query_map([low, high], rows::stored_entry)? {
            let entry = stored?.entry;
            if dates.matches(query, &entry) && found.len() < limit {
                found.push(entry);
            }
        }
        high = low.saturating_sub(1);
    }
    Ok(found)
}

pub(super) fn entry_by_answer(
    conn: &Connection,
    key: KeyId,
    answer: &str,
    wanted: &dyn Fn() -> bool,
) -> Result<Option<JournalEntry>> {
    let mut step = conn.prepare_cached(
        "SELECT prev, answer_id IS ?2 AND coalesce(key, customer) = ?3 FROM entries WHERE position = ?1",
    )?;
    let mut position = start_of_walk(conn, owner(conn, key)?, None)?;
    for _ in 0..ANSWER_DEPTH {
        let row: Option<(i64, bool)> = step
            .query_row(params![position, answer, key], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        match row {
            Some((_, true)) => {
                return entry_at(conn, position).map(|stored| stored.map(|stored| stored.entry));
            }
            Some((prev, false)) if wanted() => position = prev,
            _ => break,
        }
    }
    Ok(None)
}

// --- usage ---

/// The hours of a range in which anything was used.
pub(super) fn hours(conn: &Connection, first: i64, last: i64) -> Result<Vec<i64>> {
    let mut statement = conn.prepare_cached(
        "WITH RECURSIVE used (hour) AS (SELECT min(hour) FROM usage WHERE hour >= ?1
         UNION ALL SELECT (SELECT min(hour) FROM usage WHERE hour > used.hour) FROM used WHERE used.hour < ?2)
         SELECT hour FROM used WHERE hour <= ?2",
    )?;
    let hours = statement.query_map([first, last], |row| row.get(0))?;
    hours.collect()
}

pub(super) fn usage(
    conn: &Connection,
    key: KeyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<UsageRow>> {
    let last = Timestamp::from_millis(to.millis().saturating_sub(1)).hour();
    let mut statement = conn.prepare_cached(concat!(
        "SELECT s.slug, ",
        rollup_columns!(),
        ", iif(t.target = ?3, u.exposure, 0)
         FROM usage u JOIN slugs s ON s.id = u.slug JOIN targets t ON t.id = u.target
         WHERE u.hour = ?1 AND u.key = ?2 ORDER BY s.slug"
    ))?;
    let mut found: Vec<UsageRow> = Vec::new();
    for hour in hours(conn, from.hour(), last)? {
        let start = Timestamp::from_millis(hour.saturating_mul(3_600_000));
        for row in statement.query_map(params![hour, key, UNMETERED], |row| {
            Ok(usage_row(start, &mut Columns::of(row))?)
        })? {
            UsageRow::gather(&mut found, row?);
        }
    }
    Ok(found)
}

/// The same of every key of a customer that was used.
pub(super) fn usage_by_key(
    conn: &Connection,
    customer: CustomerId,
    from: Timestamp,
    to: Timestamp,
) -> Result<BTreeMap<KeyId, Vec<UsageRow>>> {
    let last = Timestamp::from_millis(to.millis().saturating_sub(1)).hour();
    // The keys first: an hour may have those of a thousand other customers.
    let mut statement = conn.prepare_cached(concat!(
        "SELECT u.key, s.slug, ",
        rollup_columns!(),
        ", iif(t.target = ?3, u.exposure, 0)
         FROM keys k CROSS JOIN usage u ON u.hour = ?1 AND u.key = k.id
         JOIN slugs s ON s.id = u.slug JOIN targets t ON t.id = u.target
         WHERE k.customer = ?2 ORDER BY u.key, s.slug"
    ))?;
    let mut found: BTreeMap<KeyId, Vec<UsageRow>> = BTreeMap::new();
    for hour in hours(conn, from.hour(), last)? {
        let start = Timestamp::from_millis(hour.saturating_mul(3_600_000));
        for row in statement.query_map(params![hour, customer, UNMETERED], |row| {
            let mut columns = Columns::of(row);
            Ok((columns.read()?, usage_row(start, &mut columns)?))
        })? {
            let (key, row) = row?;
            UsageRow::gather(found.entry(key).or_default(), row);
        }
    }
    Ok(found)
}

/// What requests cost by the runs that they name.
pub(super) fn usage_by_run(conn: &Connection, query: RunQuery) -> Result<Vec<RunSum>> {
    let RunQuery {
        customer,
        key,
        months: (first, last),
        limit,
    } = query;
    let mut statement = conn.prepare_cached(
        "SELECT month, run, sum(requests), sum(charge) FROM runs
         WHERE customer = ?1 AND month BETWEEN ?2 AND ?3 AND key = coalesce(?4, key)
         GROUP BY month, run ORDER BY month, sum(charge) DESC, run LIMIT ?5",
    )?;
    let values = params![customer, first.first(), last.first(), key, limit];
    statement.query_map(values, super::rows::row)?.collect()
}

/// What of a customer's credit nobody paid.
pub(super) fn given(conn: &Connection, customer: CustomerId) -> Result<Amount> {
    let mut statement = conn.prepare_cached(
        "SELECT credit - (SELECT coalesce(sum(amount), 0) FROM entries WHERE customer = ?1 AND kind <> 2 AND kind IN (1, 8, 9))
         FROM accounts WHERE id = ?1",
    )?;
    let given: Option<Amount> = statement
        .query_row([customer], |row| row.get(0))
        .optional()?;
    let mut plans = conn.prepare_cached(
        "SELECT plan FROM payments WHERE customer = ?1 AND status = 1 AND plan IS NOT NULL",
    )?;
    let plans = plans.query_map([customer], |row| row.get::<_, String>(0))?;
    let plans: Vec<String> = plans.collect::<Result<_>>()?;
    Ok(without_periods(given.unwrap_or_default(), &plans))
}

pub(super) fn slug_use(
    conn: &Connection,
    since: Timestamp,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<SlugUse>> {
    let mut statement = conn.prepare_cached(
        "SELECT s.slug AS name, u.key, u.requests FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.hour = ?1",
    )?;
    let mut slugs: BTreeMap<String, (HashSet<i64>, u64)> = BTreeMap::new();
    for hour in hours(conn, since.hour(), i64::MAX)? {
        let mut rows = statement.query([hour])?;
        while let Some(row) = rows.next()? {
            let mut columns = Columns::of(row);
            let (keys, requests) = slugs.entry(columns.read()?).or_default();
            keys.insert(columns.number()?);
            *requests = requests.saturating_add(columns.read()?);
        }
        if !wanted() {
            break;
        }
    }
    let count = |keys: &HashSet<i64>| u64::try_from(keys.len()).unwrap_or(u64::MAX);
    Ok(slugs
        .into_iter()
        .map(|(slug, (keys, requests))| SlugUse {
            slug,
            keys: count(&keys),
            requests,
        })
        .collect())
}

// --- audit ---

/// Decodes the rows of [`rows::select_act`].
fn record(row: &rusqlite::Row<'_>) -> Result<AuditRecord> {
    rows::stored_act(row).map(|act| act.record.record)
}

pub(super) fn act(conn: &Connection, operation: OperationId) -> Result<Option<AuditRecord>> {
    conn.prepare_cached(concat!(rows::select_act!(), " WHERE operation = ?1"))?
        .query_row([operation], record)
        .optional()
}

pub(super) fn act_at(conn: &Connection, position: i64) -> Result<Option<ChainedAct>> {
    conn.prepare_cached(concat!(rows::select_act!(), " WHERE position = ?1"))?
        .query_row([position], rows::stored_act)
        .optional()
}

pub(super) fn audit(
    conn: &Connection,
    of: Option<Scope>,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<AuditRecord>> {
    let before = before.unwrap_or(i64::MAX);
    let Some(of) = of else {
        let mut statement = conn.prepare_cached(concat!(
            rows::select_act!(),
            " WHERE position < ?1 ORDER BY position DESC LIMIT ?2"
        ))?;
        return statement
            .query_map(params![before, rows_at_most(limit)], record)?
            .collect();
    };
    let (key, owner) = match of {
        Scope::Key(key) => (Some(key), owner(conn, key)?),
        Scope::Customer(customer) => (None, customer),
    };
    let mut next: Option<i64> = conn
        .prepare_cached("SELECT audit_last FROM accounts WHERE id = ?1")?
        .query_row([owner], |row| row.get(0))
        .optional()?;
    let mut found = Vec::new();
    while let Some(position) = next.filter(|position| *position > 0 && found.len() < limit) {
        let Some(act) = act_at(conn, position)? else {
            break;
        };
        next = Some(act.prev);
        let is_of = key.is_none() || act.record.record.key == key;
        if act.record.record.position < before && is_of {
            found.push(act.record.record);
        }
    }
    Ok(found)
}

/// The position of the last act that changed a key, or a customer itself; 0 if there is none.
pub(super) fn last_act(conn: &Connection, of: Scope) -> Result<i64> {
    let owner = match of {
        Scope::Key(key) => owner(conn, key)?,
        Scope::Customer(customer) => customer,
    };
    let mut next: Option<i64> = conn
        .prepare_cached("SELECT audit_last FROM accounts WHERE id = ?1")?
        .query_row([owner], |row| row.get(0))
        .optional()?;
    while let Some(position) = next.filter(|position| *position > 0) {
        let Some(act) = act_at(conn, position)? else {
            break;
        };
        if act.record.record.changed() == Some(of) {
            return Ok(position);
        }
        next = Some(act.prev);
    }
    Ok(0)
}

/// The entry with this reference, as references are compared.
pub(super) fn entry_by_reference(
    conn: &Connection,
    reference: &str,
) -> Result<Option<JournalEntry>> {
    // One with exactly this spelling, or else the one that owns the reference: old ledgers may have both.
    let mut exact = conn.prepare_cached(concat!(
        rows::select_entry!(),
        " WHERE e.reference = ?1 ORDER BY e.position LIMIT 1"
    ))?;
    let found = exact
        .query_row([reference], rows::stored_entry)
        .optional()?;
    if let Some(stored) = found {
        return Ok(Some(stored.entry));
    }
    let mut owner = conn.prepare_cached(concat!(
        rows::select_entry!(),
        " JOIN refs r ON r.operation = e.operation WHERE r.folded = ?1"
    ))?;
    let folded = reference::folded(reference);
    let found = owner.query_row([folded], rows::stored_entry).optional()?;
    Ok(found.map(|stored| stored.entry))
}
