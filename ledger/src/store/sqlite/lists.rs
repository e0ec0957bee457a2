//! Lists of keys and customers: pages in every order, and several keys in one read.
//!
//! The order of creation has an index, and a filtered page is read in short statements. The other orders have none, because every
//! index on an account would make each write slower: a page is one scan of the narrow accounts that keeps only the first rows.

use std::collections::HashMap;

use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension, Result, ToSql, params, params_from_iter};

use super::defaults::fitted;
use super::reads::hours;
use super::rows::{self, Columns};
use super::tables;
use crate::book::margin::{self, RollupNames, SlugHours, Summing};
use crate::store::grant_rows::{DUE, GRANTS_PAGE, page_values};
use crate::store::rows::{RowColumns as _, rows_at_most};
use crate::store::select::SelectText;
use crate::store::select::{SELECT_KEY, SELECT_SHOWN};
use crate::table::owners::SEARCHED;
use crate::value::clock;
use crate::{
    Amount, Customer, CustomerId, CustomerQuery, GrantQuery, GrantRecord, Key, KeyId, KeyOrder,
    KeyPlace, KeyQuery, KeyStatus, MadeQuery, MarginQuery, Margins, SlugHour, Timestamp, UsageRow,
};

/// Rows that one statement of a filtered scan examines.
// As in `reads`: a checkpoint gets in between two statements.
const PAGE: i64 = 2_000;

const FILTER: &str = "(?4 IS NULL OR instr(lower(k.label), ?4) > 0)
     AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1)
         WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END
     AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10)";

/// The parameters of every page of a query.
struct ListFilter<'query> {
    query: &'query KeyQuery,
    label: Option<String>,
    /// 0 any, 1 active, 2 blocked, 3 revoked, 4 expired
    status: i64,
}

impl<'query> ListFilter<'query> {
    fn new(query: &'query KeyQuery) -> Self {
        let status = query.status.map_or(0, |status| match status {
            KeyStatus::Active => 1,
            KeyStatus::Blocked => 2,
            KeyStatus::Revoked => 3,
            KeyStatus::Expired => 4,
        });
        Self {
            query,
            label: query.label.as_ref().map(|label| label.to_ascii_lowercase()),
            status,
        }
    }

    const fn is_empty(&self) -> bool {
        self.label.is_none()
            && self.status == 0
            && self.query.balance_below.is_none()
            && self.query.customer.is_none()
    }

    /// Where the page begins: after the last row of the previous one.
    fn from(&self) -> (i64, i64) {
        let before_all = if self.query.order.is_descending() {
            (i64::MAX, i64::MAX)
        } else {
            (i64::MIN, i64::MIN)
        };
        self.query
            .after
            .map_or(before_all, |KeyPlace { value, key }| (value, key.to_i64()))
    }
}

pub(super) fn list_keys(
    conn: &Connection,
    query: &KeyQuery,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<Key>> {
    if let Some(made) = query.made {
        return self::made(conn, query, made);
    }
    let filter = ListFilter::new(query);
    let value = match query.order {
        KeyOrder::Created | KeyOrder::Newest => return by_creation(conn, &filter, wanted),
        KeyOrder::LowestBalance | KeyOrder::HighestBalance => "a.credit - a.spent",
        KeyOrder::LeastHeld | KeyOrder::MostHeld => "a.held",
        // Never used sorts before everything.
        KeyOrder::LongestUnused | KeyOrder::LastUsed => "coalesce(a.last_at, -9223372036854775808)",
    };
    if wanted() {
        by_value(conn, &filter, value)
    } else {
        Ok(Vec::new())
    }
}

/// The keys of an owner key: few are neither revoked nor long expired, and these have an index.
fn made(conn: &Connection, query: &KeyQuery, made: MadeQuery) -> Result<Vec<Key>> {
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_KEY} WHERE k.counts_in = ?1 AND coalesce(k.expires_at, 9223372036854775807) > ?2 AND k.status <= ?3
         AND (k.created_at, k.id) < (?4, ?5) ORDER BY k.created_at DESC, k.id DESC LIMIT ?6"
    ))?;
    let from = query.after.map_or((i64::MAX, i64::MAX), |after| {
        (after.value, after.key.to_i64())
    });
    let asked = params![
        made.by,
        MadeQuery::forgotten(query.now),
        made.most(),
        from.0,
        from.1,
        rows_at_most(query.limit)
    ];
    let found = page.query_map(asked, rows::shown)?;
    found
        .map(|shown| Ok(fitted::<Key>(conn, shown?)?.reckoned_at(clock::now)))
        .collect()
}

const fn direction(order: KeyOrder) -> (&'static str, &'static str) {
    if order.is_descending() {
        ("<", "DESC")
    } else {
        (">", "ASC")
    }
}

fn by_creation(
    conn: &Connection,
    filter: &ListFilter<'_>,
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<Key>> {
    let query = filter.query;
    let (further, order) = direction(query.order);
    let (up_to, end) = if query.order.is_descending() {
        (">=", (i64::MIN, i64::MIN))
    } else {
        ("<=", (i64::MAX, i64::MAX))
    };
    let mut from = filter.from();
    let mut boundary = conn.prepare_cached(&format!(
        "SELECT created_at, id FROM keys WHERE (created_at, id) {further} (?1, ?2)
         ORDER BY created_at {order}, id {order} LIMIT 1 OFFSET ?3"
    ))?;
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_KEY} WHERE (k.created_at, k.id) {further} (?1, ?2) AND (k.created_at, k.id) {up_to} (?8, ?9)
         AND {FILTER} ORDER BY k.created_at {order}, k.id {order} LIMIT ?3"
    ))?;
    let mut found: Vec<Key> = Vec::new();
    while found.len() < query.limit && wanted() {
        let next: Option<(i64, i64)> = if filter.is_empty() {
            None
        } else {
            boundary
                .query_row(params![from.0, from.1, PAGE], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?
        };
        let to = next.unwrap_or(end);
        let left = rows_at_most(query.limit.saturating_sub(found.len()));
        let bounds = params![
            from.0,
            from.1,
            left,
            filter.label,
            filter.status,
            query.now,
            query.balance_below,
            to.0,
            to.1,
            query.customer
        ];
        for key in page.query_map(bounds, rows::shown)? {
            let key: Key = fitted(conn, key?)?;
            found.push(key.reckoned_at(clock::now));
        }
        let Some(next) = next else { break };
        from = next;
    }
    Ok(found)
}

/// One statement, so that order and rows belong to the same instant.
fn by_value(conn: &Connection, filter: &ListFilter<'_>, value: &str) -> Result<Vec<Key>> {
    let query = filter.query;
    let (further, order) = direction(query.order);
    let only = if filter.is_empty() { "1" } else { FILTER };
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_KEY} WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer
         WHERE ({value}, k.id) {further} (?1, ?2) AND {only}
         ORDER BY {value} {order}, k.id {order} LIMIT ?3) ORDER BY {value} {order}, k.id {order}"
    ))?;
    let (from, limit) = (filter.from(), rows_at_most(query.limit));
    let mut asked: Vec<&dyn ToSql> = vec![&from.0, &from.1, &limit];
    if !filter.is_empty() {
        asked.extend([
            &filter.label as &dyn ToSql,
            &filter.status,
            &query.now,
            &query.balance_below,
            &Null,
            &Null,
            &query.customer,
        ]);
    }
    let found = page.query_map(asked.as_slice(), rows::shown::<Key>)?;
    found
        .map(|key| Ok(fitted(conn, key?)?.reckoned_at(clock::now)))
        .collect()
}

/// One statement: a list of customers is a page for people, and its filters have no index.
pub(super) fn list_customers(conn: &Connection, query: &CustomerQuery) -> Result<Vec<Customer>> {
    let value = match query.order {
        KeyOrder::Created | KeyOrder::Newest => "a.created_at",
        KeyOrder::LowestBalance | KeyOrder::HighestBalance => "a.credit - a.spent",
        KeyOrder::LeastHeld | KeyOrder::MostHeld => "a.held",
        KeyOrder::LongestUnused | KeyOrder::LastUsed => "coalesce(a.last_at, -9223372036854775808)",
    };
    let (further, order) = direction(query.order);
    let start = if query.order.is_descending() {
        i64::MAX
    } else {
        i64::MIN
    };
    let from = query
        .after
        .map_or((start, start), |(value, id)| (value, id.to_i64()));
    let contains = SEARCHED
        .map(|column| format!("instr(lower(a.{column}), ?4) > 0"))
        .join(" OR ");
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_SHOWN} WHERE ({value}, a.id) {further} (?1, ?2)
         AND (?4 IS NULL OR {contains})
         AND (?5 IS NULL OR a.status = ?5) AND (?6 IS NULL OR a.credit - a.spent < ?6)
         ORDER BY {value} {order}, a.id {order} LIMIT ?3"
    ))?;
    let text = query.text.as_ref().map(|text| text.to_ascii_lowercase());
    let values = params![
        from.0,
        from.1,
        rows_at_most(query.limit),
        text,
        query.status,
        query.balance_below
    ];
    page.query_map(values, rows::shown::<Customer>)?
        .map(|shown| Ok(fitted(conn, shown?)?.reckoned_at(clock::now)))
        .collect()
}

/// [`GRANTS_PAGE`] as a file's statement.
static GRANT_PAGE: SelectText = SelectText::new(|| {
    let untyped = GRANTS_PAGE.replace("::bigint", "").replace("::text", "");
    untyped.replace('$', "?")
});

pub(super) fn grants(conn: &Connection, query: &GrantQuery) -> Result<Vec<GrantRecord>> {
    tables::read(conn, &GRANT_PAGE, params_from_iter(page_values(query)))
}

/// Customers for whose grants the time has come.
pub(super) fn due_grants(conn: &Connection, now: Timestamp) -> Result<Vec<CustomerId>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT id FROM accounts {}",
        DUE.replace('$', "?")
    ))?;
    statement.query_map([now], |row| row.get(0))?.collect()
}

pub(super) fn find_keys(conn: &Connection, ids: &[KeyId]) -> Result<Vec<Key>> {
    let mut page = conn.prepare_cached(&format!(
        "{SELECT_KEY} WHERE k.id IN (SELECT value FROM json_each(?1))"
    ))?;
    let keys = page.query_map([json(ids)], rows::shown::<Key>)?;
    let found = keys
        .map(|key| {
            let key = fitted(conn, key?)?;
            Ok((key.id, key.reckoned_at(clock::now)))
        })
        .collect::<Result<HashMap<_, _>>>()?;
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// Those of these keys that have ended.
pub(super) fn ended(conn: &Connection, keys: &[KeyId]) -> Result<Vec<KeyId>> {
    let mut statement = conn.prepare_cached(
        "SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT value FROM json_each(?1))
         AND (k.status <> 1 OR a.status <> 1)",
    )?;
    let ended = statement.query_map([json(keys)], |row| row.get(0))?;
    ended.collect()
}

pub(super) fn spent_since(
    conn: &Connection,
    ids: &[KeyId],
    since: Timestamp,
) -> Result<Vec<Amount>> {
    // Each hour costs a few lookups; a range of hours would read those of every key.
    let mut hour_of = conn.prepare_cached(
        "SELECT u.key, u.charge FROM (SELECT DISTINCT value FROM json_each(?2)) j CROSS JOIN usage u
         ON u.hour = ?1 AND u.key = j.value",
    )?;
    let json = json(ids);
    let mut sums: HashMap<KeyId, i64> = HashMap::new();
    for hour in hours(conn, since.hour(), i64::MAX)? {
        for row in hour_of.query_map(params![hour, json], |row| {
            Ok((row.get(0)?, row.get::<_, Amount>(1)?))
        })? {
            let (key, charge) = row?;
            let sum = sums.entry(key).or_default();
            *sum = sum.saturating_add(charge.picos());
        }
    }
    Ok(ids
        .iter()
        .map(|id| Amount::from_picos(sums.get(id).copied().unwrap_or_default()))
        .collect())
}

/// Hour by hour, so that no statement delays a checkpoint for long.
pub(super) fn margins(
    conn: &Connection,
    query: MarginQuery,
    wanted: &dyn Fn() -> bool,
) -> Result<Margins> {
    let (number, text) = query.by.columns(&RollupNames {
        slug: "s.slug",
        target: "t.target",
        provider: "substr(t.target, 1, instr(t.target || '/', '/') - 1)",
        day: "(u.hour - (u.hour % 24 + 24) % 24) / 24",
    });
    // A table that is not named is not read: that is what the outer joins are for.
    let mut hour_of = conn.prepare_cached(&format!(
        "SELECT {number}, {text}, u.requests, u.charge, u.loss, u.exposure, u.cost, u.told
         FROM usage u JOIN targets t ON t.id = u.target LEFT JOIN slugs s ON s.id = u.slug LEFT JOIN keys k ON k.id = u.key
         WHERE u.hour = ?1"
    ))?;
    let (first, last) = query.hours();
    let mut sums = Summing::new(query);
    for hour in hours(conn, first, last)? {
        let mut rows = hour_of.query([hour])?;
        while let Some(row) = rows.next()? {
            let mut columns = Columns::of(row);
            let (number, text): (_, String) = (columns.number()?, columns.read()?);
            sums.add(number, &text, &of_hour(&mut columns)?);
        }
        if !wanted() {
            break;
        }
    }
    Ok(sums.finish(super::reads::own_costs(conn, first, last)?))
}

/// Hour by hour, as [`margins`] does.
pub(super) fn slug_hours(
    conn: &Connection,
    (from, to): (Timestamp, Timestamp),
    wanted: &dyn Fn() -> bool,
) -> Result<Vec<SlugHour>> {
    let mut hour_of = conn.prepare_cached(
        "SELECT s.slug, u.requests, u.charge, u.loss, u.exposure, u.cost, u.told
         FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.hour = ?1",
    )?;
    let (first, last) = margin::hours(from, to);
    let mut sums = SlugHours::default();
    for hour in hours(conn, first, last)? {
        let mut rows = hour_of.query([hour])?;
        while let Some(row) = rows.next()? {
            let mut columns = Columns::of(row);
            let slug: String = columns.read()?;
            sums.add(hour, &slug, &of_hour(&mut columns)?);
        }
        if !wanted() {
            break;
        }
    }
    Ok(sums.finish())
}

/// The sums of a row of the rollup.
fn of_hour(columns: &mut Columns<'_, '_>) -> Result<UsageRow> {
    Ok(UsageRow {
        requests: columns.read()?,
        charge: columns.read()?,
        loss: columns.read()?,
        exposure: columns.read()?,
        cost: columns.read()?,
        told: columns.read()?,
        ..UsageRow::default()
    })
}

/// Ids as the stored numbers, in a form that fits one parameter.
fn json(ids: &[KeyId]) -> String {
    let numbers: Vec<String> = ids.iter().map(|id| id.to_i64().to_string()).collect();
    format!("[{}]", numbers.join(","))
}
