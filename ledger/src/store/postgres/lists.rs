//! Lists of keys and customers: pages in every order, and several keys in one read.
//!
//! The order of creation has an index. The other orders have none, because every index on an account would make each write slower:
//! a page is one scan of the accounts.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::types::ToSql;

use super::defaults::fitted;
use super::link::Link;
use super::readers::Readers;
use super::rows::{self, Columns};
use super::table_rows::one;
use super::trouble::TransactionTrouble;
use crate::book::margin::{self, MarginRow, RollupNames};
use crate::store::grant_rows::{DUE, GRANTS_PAGE, page_values};
use crate::store::rows::{RowColumns as _, rows_at_most};
use crate::store::select::{SELECT_KEY, SELECT_SHOWN, select};
use crate::table::columns::customer_status_code;
use crate::table::owners::SEARCHED;
use crate::value::clock;
use crate::{
    Amount, Customer, CustomerId, CustomerQuery, GrantQuery, GrantRecord, Key, KeyId, KeyOrder,
    KeyQuery, KeyStatus, LedgerError, MadeQuery, MarginQuery, Margins, SlugHour, Timestamp,
};

const FILTER: &str = "($4::text IS NULL OR position($4 IN lower(k.label COLLATE \"C\")) > 0) \
     AND CASE $5::bigint WHEN 0 THEN true WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > $6, true) \
         WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= $6, false) ELSE k.status = $5 END \
     AND ($7::bigint IS NULL OR a.credit - a.spent < $7) AND ($8::bigint IS NULL OR k.customer = $8)";

pub(super) async fn list_keys(
    link: &Link,
    query: &KeyQuery,
) -> Result<Vec<Key>, TransactionTrouble> {
    if let Some(made) = query.made {
        return self::made(link, query, made).await;
    }
    let value = match query.order {
        KeyOrder::Created | KeyOrder::Newest => "k.created_at",
        KeyOrder::LowestBalance | KeyOrder::HighestBalance => "(a.credit - a.spent)",
        KeyOrder::LeastHeld | KeyOrder::MostHeld => "a.held",
        // Never used sorts before everything.
        KeyOrder::LongestUnused | KeyOrder::LastUsed => "coalesce(a.last_at, -9223372036854775808)",
    };
    let (further, order) = if query.order.is_descending() {
        ("<", "DESC")
    } else {
        (">", "ASC")
    };
    let start = if query.order.is_descending() {
        (i64::MAX, i64::MAX)
    } else {
        (i64::MIN, i64::MIN)
    };
    let from = query
        .after
        .map_or(start, |place| (place.value, place.key.to_i64()));
    let status: i64 = query.status.map_or(0, |status| match status {
        KeyStatus::Active => 1,
        KeyStatus::Blocked => 2,
        KeyStatus::Revoked => 3,
        KeyStatus::Expired => 4,
    });
    let label = query
        .label
        .as_ref()
        .map(|label| label.to_ascii_lowercase().replace('\0', "\u{fffd}"));
    let (now, limit) = (query.now.millis(), rows_at_most(query.limit));
    let below = query.balance_below.map(Amount::picos);
    let sql = format!(
        "{SELECT_KEY} WHERE ({value}, k.id) {further} ($1, $2) AND {FILTER} ORDER BY {value} {order}, k.id {order} LIMIT $3"
    );
    let customer = query.customer.map(CustomerId::to_i64);
    let values: [&(dyn ToSql + Sync); 8] = [
        &from.0, &from.1, &limit, &label, &status, &now, &below, &customer,
    ];
    let rows = link.query(&sql, &values).await?;
    let keys: Vec<Key> = fitted(link, &rows).await?;
    let keys = keys.into_iter();
    Ok(keys.map(|key| key.reckoned_at(clock::now)).collect())
}

/// The keys of an owner key: few are neither revoked nor long expired, and these have an index.
async fn made(
    link: &Link,
    query: &KeyQuery,
    made: MadeQuery,
) -> Result<Vec<Key>, TransactionTrouble> {
    let from = query.after.map_or((i64::MAX, i64::MAX), |after| {
        (after.value, after.key.to_i64())
    });
    let (forgotten, most) = (MadeQuery::forgotten(query.now).millis(), made.most());
    let (by, limit) = (made.by.to_i64(), rows_at_most(query.limit));
    let sql = format!(
        "{SELECT_KEY} WHERE k.counts_in = $1 AND coalesce(k.expires_at, 9223372036854775807) > $2 AND k.status <= $3 \
         AND (k.created_at, k.id) < ($4, $5) ORDER BY k.created_at DESC, k.id DESC LIMIT $6"
    );
    let values: [&(dyn ToSql + Sync); 6] = [&by, &forgotten, &most, &from.0, &from.1, &limit];
    let rows = link.query(&sql, &values).await?;
    let keys: Vec<Key> = fitted(link, &rows).await?;
    let keys = keys.into_iter();
    Ok(keys.map(|key| key.reckoned_at(clock::now)).collect())
}

pub(super) async fn list_customers(
    link: &Link,
    query: &CustomerQuery,
) -> Result<Vec<Customer>, TransactionTrouble> {
    let value = match query.order {
        KeyOrder::Created | KeyOrder::Newest => "a.created_at",
        KeyOrder::LowestBalance | KeyOrder::HighestBalance => "(a.credit - a.spent)",
        KeyOrder::LeastHeld | KeyOrder::MostHeld => "a.held",
        KeyOrder::LongestUnused | KeyOrder::LastUsed => "coalesce(a.last_at, -9223372036854775808)",
    };
    let (further, order, start) = if query.order.is_descending() {
        ("<", "DESC", i64::MAX)
    } else {
        (">", "ASC", i64::MIN)
    };
    let from = query
        .after
        .map_or((start, start), |(value, id)| (value, id.to_i64()));
    let text = query
        .text
        .as_ref()
        .map(|text| text.to_ascii_lowercase().replace('\0', "\u{fffd}"));
    let status = query.status.map(customer_status_code);
    let (limit, below) = (
        rows_at_most(query.limit),
        query.balance_below.map(Amount::picos),
    );
    let contains = SEARCHED
        .map(|column| format!("position($4 IN lower(a.{column} COLLATE \"C\")) > 0"))
        .join(" OR ");
    let sql = format!(
        "{SELECT_SHOWN} WHERE ({value}, a.id) {further} ($1, $2) AND ($4::text IS NULL OR {contains}) \
         AND ($5::bigint IS NULL OR a.status = $5) AND ($6::bigint IS NULL OR a.credit - a.spent < $6) \
         ORDER BY {value} {order}, a.id {order} LIMIT $3"
    );
    let values: [&(dyn ToSql + Sync); 6] = [&from.0, &from.1, &limit, &text, &status, &below];
    let rows = link.query(&sql, &values).await?;
    let customers: Vec<Customer> = fitted(link, &rows).await?;
    let customers = customers.into_iter();
    Ok(customers.map(|of| of.reckoned_at(clock::now)).collect())
}

pub(super) async fn grants(
    link: &Link,
    query: &GrantQuery,
) -> Result<Vec<GrantRecord>, TransactionTrouble> {
    let sql = format!("{}{GRANTS_PAGE}", select::<GrantRecord>());
    let values = page_values(query).map(one);
    let rows = link.query(&sql, &super::writes::values(&values)).await?;
    rows.iter().map(|row| Ok(rows::row(row)?)).collect()
}

pub(super) async fn due_grants(
    link: &Link,
    now: Timestamp,
) -> Result<Vec<CustomerId>, TransactionTrouble> {
    let sql = format!("SELECT id FROM accounts {DUE}");
    let rows = link.query(&sql, &[&now.millis()]).await?;
    rows.iter().map(|row| Ok(rows::row(row)?)).collect()
}

/// The keys in this order.
pub(super) async fn find_keys(readers: &Readers, ids: &[KeyId]) -> Result<Vec<Key>, LedgerError> {
    let read = |link: Arc<Link>| async move { read_keys(&link, ids).await };
    let keys = readers.with(read).await?;
    let found: HashMap<KeyId, Key> = keys.into_iter().map(|key| (key.id, key)).collect();
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// Those of these keys that have ended.
pub(super) async fn ended(readers: &Readers, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError> {
    let numbers: Vec<i64> = keys.iter().map(|key| key.to_i64()).collect();
    let sql = "SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id = ANY ($1::bigint[]) \
         AND (k.status <> 1 OR a.status <> 1)";
    let asked = &numbers;
    let read = |link: Arc<Link>| async move {
        let rows = link.query(sql, &[asked]).await?;
        let keys = rows.iter().map(|row| Columns::of(row).read());
        Ok(keys.collect::<Result<_, _>>()?)
    };
    readers.with(read).await
}

/// The keys in any order.
pub(super) async fn read_keys(link: &Link, ids: &[KeyId]) -> Result<Vec<Key>, TransactionTrouble> {
    let numbers: Vec<i64> = ids.iter().map(|id| id.to_i64()).collect();
    let sql = format!("{SELECT_KEY} WHERE k.id = ANY ($1::bigint[])");
    let rows = link.query(&sql, &[&numbers]).await?;
    fitted(link, &rows).await
}

pub(super) async fn spent_since(
    link: &Link,
    ids: &[KeyId],
    since: Timestamp,
) -> Result<Vec<Amount>, TransactionTrouble> {
    let numbers: Vec<i64> = ids.iter().map(|id| id.to_i64()).collect();
    let sql = "SELECT key, least(sum(charge), 9223372036854775807)::bigint FROM usage \
         WHERE key = ANY ($1::bigint[]) AND hour >= $2 GROUP BY key";
    let mut sums: HashMap<KeyId, Amount> = HashMap::new();
    for row in link.query(sql, &[&numbers, &since.hour()]).await? {
        let mut columns = Columns::of(&row);
        sums.insert(columns.read()?, columns.read()?);
    }
    Ok(ids
        .iter()
        .map(|id| sums.get(id).copied().unwrap_or_default())
        .collect())
}

/// The database adds up, so that a month of a large fleet is only a few rows here.
pub(super) async fn margins(
    link: &Link,
    query: MarginQuery,
) -> Result<Margins, TransactionTrouble> {
    let (number, text) = query.by.columns(&RollupNames {
        slug: "u.slug",
        target: "u.target",
        provider: "split_part(u.target, '/', 1)",
        day: "floor(u.hour / 24.0)",
    });
    let sql = format!(
        "SELECT ({number})::bigint, {text}, {} FROM usage u LEFT JOIN keys k ON k.id = u.key \
         WHERE hour BETWEEN $1 AND $2 GROUP BY 1, 2",
        sums()
    );
    let (first, last) = query.hours();
    let mut found = Vec::new();
    for row in link.query(&sql, &[&first, &last]).await? {
        let mut columns = Columns::of(&row);
        let (number, text): (i64, String) = (columns.take()?, columns.take()?);
        let name = query.by.name(number, text);
        found.push(summed(name, &mut columns)?);
    }
    let own = super::reads::own_costs(link, first, last).await?;
    Ok(margin::page(query, found, own))
}

/// What [`summed`] reads of a group of rows of the rollup.
fn sums() -> String {
    [
        "requests",
        "charge",
        "cost",
        "told",
        "CASE WHEN cost > 0 THEN charge ELSE 0 END",
        "exposure",
        "loss",
    ]
    .map(|value| format!("least(sum({value}), 9223372036854775807)::bigint"))
    .join(", ")
}

fn summed(name: String, columns: &mut Columns<'_>) -> Result<MarginRow, TransactionTrouble> {
    Ok(MarginRow {
        name,
        requests: columns.read()?,
        charge: columns.read()?,
        cost: columns.read()?,
        told: columns.read()?,
        priced: columns.read()?,
        exposure: columns.read()?,
        loss: columns.read()?,
        own: Amount::ZERO,
    })
}

/// The database adds up here too.
pub(super) async fn slug_hours(
    link: &Link,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<SlugHour>, TransactionTrouble> {
    let sql = format!(
        "SELECT hour, slug, {} FROM usage WHERE hour BETWEEN $1 AND $2 GROUP BY 1, 2 \
         ORDER BY 1, slug COLLATE \"C\"",
        sums()
    );
    let (first, last) = margin::hours(from, to);
    let rows = link.query(&sql, &[&first, &last]).await?;
    let hour = |row| {
        let mut columns = Columns::of(row);
        let (hour, slug) = (columns.take()?, columns.take()?);
        Ok(margin::slug_hour(hour, summed(slug, &mut columns)?))
    };
    rows.iter().map(hour).collect()
}
