//! Every read outside the writer, except lists of keys. Each is a single statement, and so sees one instant.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::Row;

use super::defaults::fitted;
use super::link::Link;
use super::readers::Readers;
use super::rows::{self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_ENTRY_FROM, SELECT_HOLD};
use super::table_rows::one;
use super::trouble::TransactionTrouble;
use crate::book::money_acts::OF_MONEY;
use crate::store::grant_rows::without_periods;
use crate::store::hour_rows::usage_row;
use crate::store::rows::{self as decode, RowColumns as _, rollup_columns, rows_at_most};
use crate::store::select::SELECT_SHOWN;
use crate::value::clock;
use crate::value::reference;
use crate::value::tries::UNMETERED;
use crate::{
    Addressees, Amount, AuditRecord, Customer, CustomerBy, CustomerId, EntryQuery, JournalEntry,
    KeyId, LedgerError, OpenHold, OperationId, OwnCost, PersonalData, PublishedSlug, RunQuery,
    RunSum, Scope, SecretHash, SlugUse, Timestamp, Totals, UsageRow,
};

type ReadResult<T> = Result<T, TransactionTrouble>;

/// The first row, decoded; of a statement that finds one row or none.
fn first<T>(rows: &[Row], decode: impl FnOnce(&Row) -> ReadResult<T>) -> ReadResult<Option<T>> {
    rows.first().map(decode).transpose()
}

/// How many entries back to look for an answer's id.
// No index has these ids, because one would cost every settlement: the search walks back through the customer's entries, and has to end.
const ANSWER_DEPTH: i64 = 100_000;

pub(super) async fn find_session(
    link: &Link,
    token: SecretHash,
    now: Timestamp,
) -> ReadResult<Option<KeyId>> {
    let sql = "SELECT key FROM sessions WHERE token = $1 AND expires > $2";
    let rows = link
        .query(sql, &[&token.0.as_slice(), &now.millis()])
        .await?;
    first(&rows, |row| Ok(Columns::of(row).read()?))
}

pub(super) async fn has_link(
    readers: &Readers,
    token: SecretHash,
    now: Timestamp,
) -> Result<bool, LedgerError> {
    let sql = "SELECT 1 FROM links WHERE token = $1 AND expires > $2";
    let read = |link: Arc<Link>| async move {
        let rows = link
            .query(sql, &[&token.0.as_slice(), &now.millis()])
            .await?;
        Ok(!rows.is_empty())
    };
    readers.with(read).await
}

pub(super) async fn entry(link: &Link, operation: OperationId) -> ReadResult<Option<JournalEntry>> {
    let rows = link
        .query(
            &format!("{SELECT_ENTRY} WHERE e.operation = $1"),
            &[&operation.to_bytes().as_slice()],
        )
        .await?;
    first(&rows, |row| Ok(rows::stored_entry(row)?.entry))
}

pub(super) async fn open_holds(
    link: &Link,
    of: Option<Scope>,
    limit: usize,
) -> ReadResult<Vec<OpenHold>> {
    let (key, customer) = match of {
        Some(Scope::Key(key)) => (Some(key.to_i64()), None),
        Some(Scope::Customer(customer)) => (None, Some(customer.to_i64())),
        None => (None, None),
    };
    let sql = format!(
        "{SELECT_HOLD} WHERE ($1::bigint IS NULL OR h.key = $1) \
         AND ($3::bigint IS NULL OR h.key IN (SELECT id FROM keys WHERE customer = $3)) ORDER BY h.at, h.request LIMIT $2"
    );
    let rows = link
        .query(&sql, &[&key, &rows_at_most(limit), &customer])
        .await?;
    rows.iter()
        .map(|row| Ok(rows::stored_hold(row)?.open))
        .collect()
}

pub(super) async fn customer(link: &Link, by: CustomerBy<'_>) -> ReadResult<Option<Customer>> {
    let (column, value) = by.column();
    if value.has_nul() {
        return Ok(None);
    }
    let sql = format!("{SELECT_SHOWN} WHERE a.{column} = $1");
    let value = one(value);
    let rows = link.query(&sql, &[&*value]).await?;
    let found: Option<Customer> = fitted(link, &rows).await?.pop();
    Ok(found.map(|customer| customer.reckoned_at(clock::now)))
}

pub(super) async fn addressees(link: &Link, id: CustomerId) -> ReadResult<Addressees> {
    let sql = "SELECT folded, customer, data FROM addressees WHERE customer = $1";
    let found = link.query(sql, &[&id.to_i64()]).await?;
    let rows = found.iter().map(rows::row);
    Ok(Addressees::new(rows.collect::<Result<Vec<_>, _>>()?))
}

pub(super) async fn personal_data(link: &Link, id: CustomerId) -> ReadResult<Option<PersonalData>> {
    let sql = "SELECT data FROM personal_data WHERE customer = $1";
    let rows = link.query(sql, &[&id.to_i64()]).await?;
    first(&rows, |row| Ok(rows::row(row)?))
}

pub(super) async fn published(link: &Link) -> ReadResult<Vec<PublishedSlug>> {
    let rows = link
        .query(
            "SELECT slug, published_at FROM slugs ORDER BY slug COLLATE \"C\"",
            &[],
        )
        .await?;
    rows.iter().map(|row| Ok(rows::row(row)?)).collect()
}

/// What own requests cost in the hours of a range, by hour and target.
pub(super) async fn own_costs(link: &Link, first: i64, last: i64) -> ReadResult<Vec<OwnCost>> {
    let sql = "SELECT hour, target, sum(cost)::bigint FROM own_costs WHERE hour BETWEEN $1 AND $2 \
         GROUP BY hour, target ORDER BY hour, target COLLATE \"C\"";
    let rows = link.query(sql, &[&first, &last]).await?;
    rows.iter().map(|row| Ok(rows::row(row)?)).collect()
}

/// Each later generation with the instant of its acceptance, oldest first.
pub(super) async fn generations(readers: &Readers) -> Result<Vec<(i64, Timestamp)>, LedgerError> {
    let sql = "SELECT generation, at FROM losses ORDER BY generation";
    let read = |link: Arc<Link>| async move {
        let rows = link.query(sql, &[]).await?;
        let of_row = |row| {
            let mut columns = Columns::of(row);
            Ok((columns.number()?, columns.read()?))
        };
        rows.iter().map(of_row).collect()
    };
    readers.with(read).await
}

/// Sums over all keys, computed on request.
pub(super) async fn totals(link: &Link) -> ReadResult<Totals> {
    let sql = "SELECT (SELECT count(*) FROM keys), (SELECT coalesce(sum(seq), 0)::bigint FROM accounts), \
         (SELECT count(*) FROM holds), (SELECT coalesce(sum(credit), 0)::text FROM accounts), \
         (SELECT coalesce(sum(spent), 0)::text FROM accounts), (SELECT coalesce(sum(held), 0)::text FROM accounts), \
         u.loss::text, u.exposure::text, u.cost::text FROM (SELECT coalesce(sum(loss), 0) AS loss, \
         coalesce(sum(exposure), 0) AS exposure, coalesce(sum(cost), 0) AS cost FROM usage) u";
    let rows = link.query(sql, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| TransactionTrouble::Failed("no totals".into()))?;
    Ok(decode::totals(&mut Columns::of(row))?)
}

// --- history ---

pub(super) async fn entries(link: &Link, query: &EntryQuery) -> ReadResult<Vec<JournalEntry>> {
    let limit = query.limit.map_or(i64::MAX, rows_at_most);
    let before = query.before.unwrap_or(i64::MAX);
    let since = query.since.map_or(i64::MIN, Timestamp::millis);
    let until = query.until.map_or(i64::MAX, Timestamp::millis);
    let dated = query.since.is_some() || query.until.is_some();
    let from = |of_key: &str| {
        if !dated {
            return format!("{SELECT_ENTRY} WHERE e.at >= $2 AND e.at < $3");
        }
        // An entry that a clock ahead of the ledger's has dated later than an entry after it happened when that one did. Each key is
        // gone through once, from its end: a frame that shrinks instead is summed up anew for every row.
        format!(
            "{SELECT_ENTRY_FROM} (SELECT *, min(at) OVER (PARTITION BY customer ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS dated \
             FROM entries {of_key}) e WHERE e.dated >= $2 AND e.dated < $3"
        )
    };
    let common = "e.position < $1";
    let rows = match (query.customer, query.key) {
        (None, Some(key)) => {
            // A date follows from what its customer's other keys did, too.
            let of = "(SELECT customer FROM keys WHERE id = $5)";
            let sql = format!(
                "{} AND e.customer = {of} AND coalesce(e.key, e.customer) = $5 AND {common} ORDER BY e.seq DESC LIMIT $4",
                from(&format!("WHERE customer = {of}"))
            );
            link.query(&sql, &[&before, &since, &until, &limit, &key.to_i64()])
                .await?
        }
        (Some(customer), key) => {
            let sql = format!(
                "{} AND e.customer = $5 AND ($6::bigint IS NULL OR coalesce(e.key, e.customer) = $6) AND {common} \
                 ORDER BY e.seq DESC LIMIT $4",
                from("WHERE customer = $5")
            );
            let (customer, key) = (customer.to_i64(), key.map(KeyId::to_i64));
            link.query(&sql, &[&before, &since, &until, &limit, &customer, &key])
                .await?
        }
        (None, None) => {
            let sql = format!(
                "{} AND {common} ORDER BY e.position DESC LIMIT $4",
                from("")
            );
            link.query(&sql, &[&before, &since, &until, &limit]).await?
        }
    };
    rows.iter()
        .rev()
        .map(|row| Ok(rows::stored_entry(row)?.entry))
        .collect()
}

/// The entry with this reference, as references are compared.
pub(super) async fn entry_by_reference(
    link: &Link,
    reference: &str,
) -> ReadResult<Option<JournalEntry>> {
    let folded = reference::folded(reference);
    if folded.contains('\0') {
        return Ok(None);
    }
    let sql =
        format!("{SELECT_ENTRY} JOIN refs r ON r.operation = e.operation WHERE r.folded = $1");
    let rows = link.query(&sql, &[&folded]).await?;
    first(&rows, |row| Ok(rows::stored_entry(row)?.entry))
}

/// For each of these keys, or of these customers themselves, the position of the last act that changed it; 0 if there is none.
pub(super) fn last_acts(of_keys: bool) -> String {
    let (table, owner, is_of) = if of_keys {
        ("keys", "customer", "coalesce(a.key, a.customer) = o.id")
    } else {
        ("accounts", "id", "a.key = -1")
    };
    let money = OF_MONEY.join("', '");
    format!(
        "SELECT o.id, coalesce((SELECT a.position FROM audit a WHERE a.customer = o.{owner} AND {is_of} AND a.act NOT IN ('{money}') \
         ORDER BY a.seq DESC LIMIT 1), 0) FROM {table} o WHERE o.id = ANY ($1::bigint[])"
    )
}

pub(super) async fn last_act(link: &Link, of: Scope) -> ReadResult<i64> {
    let (of_keys, number) = match of {
        Scope::Key(key) => (true, key.to_i64()),
        Scope::Customer(customer) => (false, customer.to_i64()),
    };
    let rows = link.query(&last_acts(of_keys), &[&vec![number]]).await?;
    let found = first(&rows, |row| {
        let mut columns = Columns::of(row);
        columns.number()?;
        Ok(columns.number()?)
    })?;
    Ok(found.unwrap_or_default())
}

pub(super) async fn entry_by_answer(
    link: &Link,
    key: KeyId,
    answer: &str,
) -> ReadResult<Option<JournalEntry>> {
    if answer.contains('\0') {
        return Ok(None);
    }
    let sql = format!(
        "{SELECT_ENTRY} JOIN keys k ON k.id = $1 AND e.customer = k.customer WHERE coalesce(e.key, e.customer) = $1 \
         AND e.answer_id = $2 AND e.seq > (SELECT seq FROM accounts WHERE id = k.customer) - $3 ORDER BY e.seq DESC LIMIT 1"
    );
    let rows = link
        .query(&sql, &[&key.to_i64(), &answer, &ANSWER_DEPTH])
        .await?;
    first(&rows, |row| Ok(rows::stored_entry(row)?.entry))
}

// --- usage ---

pub(super) async fn usage(
    link: &Link,
    key: KeyId,
    from: Timestamp,
    to: Timestamp,
) -> ReadResult<Vec<UsageRow>> {
    let last = Timestamp::from_millis(to.millis().saturating_sub(1)).hour();
    let sql = concat!(
        "SELECT hour, slug, ",
        rollup_columns!(),
        ", CASE WHEN target = $4 THEN exposure ELSE 0 END \
         FROM usage WHERE key = $1 AND hour BETWEEN $2 AND $3 ORDER BY hour, slug COLLATE \"C\""
    );
    let mut found: Vec<UsageRow> = Vec::new();
    for row in link
        .query(sql, &[&key.to_i64(), &from.hour(), &last, &UNMETERED])
        .await?
    {
        UsageRow::gather(&mut found, hour_row(&mut Columns::of(&row))?);
    }
    Ok(found)
}

/// The same of every key of a customer that was used.
pub(super) async fn usage_by_key(
    link: &Link,
    customer: CustomerId,
    from: Timestamp,
    to: Timestamp,
) -> ReadResult<BTreeMap<KeyId, Vec<UsageRow>>> {
    let last = Timestamp::from_millis(to.millis().saturating_sub(1)).hour();
    let sql = concat!(
        "SELECT key, hour, slug, ",
        rollup_columns!(),
        ", CASE WHEN target = $4 THEN exposure ELSE 0 END \
         FROM usage WHERE key IN (SELECT id FROM keys WHERE customer = $1) AND hour BETWEEN $2 AND $3 \
         ORDER BY key, hour, slug COLLATE \"C\""
    );
    let mut found: BTreeMap<KeyId, Vec<UsageRow>> = BTreeMap::new();
    for row in link
        .query(sql, &[&customer.to_i64(), &from.hour(), &last, &UNMETERED])
        .await?
    {
        let mut columns = Columns::of(&row);
        let key = columns.read()?;
        UsageRow::gather(found.entry(key).or_default(), hour_row(&mut columns)?);
    }
    Ok(found)
}

fn hour_row(columns: &mut Columns<'_>) -> ReadResult<UsageRow> {
    let hour = Timestamp::from_millis(columns.number()?.saturating_mul(3_600_000));
    Ok(usage_row(hour, columns)?)
}

/// What requests cost by the runs that they name.
pub(super) async fn usage_by_run(link: &Link, query: RunQuery) -> ReadResult<Vec<RunSum>> {
    let RunQuery {
        customer,
        key,
        months: (first, last),
        limit,
    } = query;
    let sql = "SELECT month, run, sum(requests)::bigint, sum(charge)::bigint FROM runs \
         WHERE customer = $1 AND month BETWEEN $2 AND $3 AND key = coalesce($4, key) \
         GROUP BY month, run ORDER BY month, sum(charge) DESC, run COLLATE \"C\" LIMIT $5";
    let rows = link
        .query(
            sql,
            &[
                &customer.to_i64(),
                &first.first().number(),
                &last.first().number(),
                &key.map(KeyId::to_i64),
                &i64::from(limit),
            ],
        )
        .await?;
    rows.iter().map(|row| Ok(rows::row(row)?)).collect()
}

/// What of a customer's credit nobody paid.
pub(super) async fn given(readers: &Readers, customer: CustomerId) -> Result<Amount, LedgerError> {
    let sql = "SELECT (credit - (SELECT coalesce(sum(amount), 0) FROM entries WHERE customer = $1 AND kind <> 2 AND kind IN (1, 8, 9)))::bigint \
         FROM accounts WHERE id = $1";
    let read = |link: Arc<Link>| async move {
        let rows = link.query(sql, &[&customer.to_i64()]).await?;
        let given = first(&rows, |row| Ok(Columns::of(row).read()?))?;
        let plans =
            "SELECT plan FROM payments WHERE customer = $1 AND status = 1 AND plan IS NOT NULL";
        let plans = link.query(plans, &[&customer.to_i64()]).await?;
        let plans: Vec<String> = plans.iter().map(|row| row.get(0)).collect();
        Ok(without_periods(given.unwrap_or_default(), &plans))
    };
    readers.with(read).await
}

pub(super) async fn slug_use(link: &Link, since: Timestamp) -> ReadResult<Vec<SlugUse>> {
    let sql = "SELECT slug, count(DISTINCT key), sum(requests)::bigint FROM usage WHERE hour >= $1 \
         GROUP BY slug ORDER BY slug COLLATE \"C\"";
    let rows = link.query(sql, &[&since.hour()]).await?;
    let slug = |row| {
        let mut columns = Columns::of(row);
        Ok(SlugUse {
            slug: columns.take()?,
            keys: columns.read()?,
            requests: columns.read()?,
        })
    };
    rows.iter().map(slug).collect()
}

// --- audit ---

pub(super) async fn act(
    readers: &Readers,
    operation: OperationId,
) -> Result<Option<AuditRecord>, LedgerError> {
    let (sql, id) = (
        format!("{SELECT_ACT} WHERE operation = $1"),
        operation.to_bytes(),
    );
    let (sql, id) = (&sql, &id);
    let read = |link: Arc<Link>| async move {
        let rows = link.query(sql, &[&id.as_slice()]).await?;
        first(&rows, |row| Ok(rows::stored_act(row)?.record.record))
    };
    readers.with(read).await
}

pub(super) async fn audit(
    link: &Link,
    of: Option<Scope>,
    before: Option<i64>,
    limit: usize,
) -> ReadResult<Vec<AuditRecord>> {
    let (before, limit) = (before.unwrap_or(i64::MAX), rows_at_most(limit));
    let rows = match of {
        Some(Scope::Key(key)) => {
            let sql = format!(
                "{SELECT_ACT} WHERE customer = (SELECT customer FROM keys WHERE id = $3) AND coalesce(key, customer) = $3 \
                 AND position < $1 ORDER BY seq DESC LIMIT $2"
            );
            link.query(&sql, &[&before, &limit, &key.to_i64()]).await?
        }
        Some(Scope::Customer(customer)) => {
            let sql = format!(
                "{SELECT_ACT} WHERE customer = $3 AND position < $1 ORDER BY seq DESC LIMIT $2"
            );
            link.query(&sql, &[&before, &limit, &customer.to_i64()])
                .await?
        }
        None => {
            let sql = format!("{SELECT_ACT} WHERE position < $1 ORDER BY position DESC LIMIT $2");
            link.query(&sql, &[&before, &limit]).await?
        }
    };
    rows.iter()
        .map(|row| Ok(rows::stored_act(row)?.record.record))
        .collect()
}
