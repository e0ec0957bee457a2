//! First round trip of a batch: fence, lock the customers and then the references, each in order, read what the operations need.
//!
//! Everything is sent at once. Each statement has its own snapshot, taken after the locks are held, so it sees the newest rows of
//! locked customers, and of their keys: whoever writes a key has locked its customer, to which it belongs for ever. Of the locking
//! statement, only the locked rows themselves can be trusted. A row whose customer is not locked belongs to one that was skipped, or
//! has appeared meanwhile; in the latter case the batch starts again.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::mem::discriminant;
use std::sync::Arc;

use futures_util::future::join;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::link::Link;
use super::locking::Locked;
use super::needs::{WantedRows, parameter};
use super::rows::{self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY_RECORD};
use super::standby::{BEGIN_FLUSHED, BEGIN_RECEIVED};
use super::table_rows::array;
use super::trouble::TransactionTrouble;
use super::writes::{SqlValue, values};
use super::{defaults, migrations, reads};
use crate::batch::rows::{
    CachedRow as Kept, CustomerRow, KeyRow, Positions, RECOVERED_AT_ONCE, Rows,
};
use crate::rule::defaults::StandingDefaults;
use crate::rule::link::SignInLink;
use crate::rule::made::MadeKeys;
use crate::store::copy::MOVED_AWAY;
use crate::store::grant_rows::selected;
use crate::store::rows::{Decoded, RowColumns as _};
use crate::store::select::select;
use crate::table::columns::StoredAlone;
use crate::table::list::ListedRow;
use crate::table::needs::{NamedReader, RowName};
use crate::value::reference;
use crate::{
    CustomerId, DailyBound, GrantRecord, Grants, KeyId, OperationId, Payment, Scope, Session, clock,
};

/// In place of the fence, for a program that is not a gateway: whether the ledger was moved or brought up to date meanwhile.
const SCHEMA: &str = "SELECT version FROM identity WHERE id = 1 AND $1::bigint = 0";
// Renewals change no key of the row and go on beside this lock; whoever declares the node dead takes `FOR UPDATE`, and so waits until
// what this transaction does has ended.
const FENCE: &str = "SELECT 1 FROM nodes WHERE epoch = $1 AND ended IS NULL FOR KEY SHARE";
const POSITIONS: &str = "SELECT nextval('positions'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT state FROM defaults)";

/// The holds of dead nodes that this batch may end; their customers are locked with the rest.
pub(super) async fn add_dead(
    link: &Link,
    wanted: &mut WantedRows,
) -> Result<Vec<OperationId>, TransactionTrouble> {
    let sql = "SELECT request, key FROM holds WHERE epoch = 0 OR epoch IN (SELECT epoch FROM nodes WHERE ended IS NOT NULL) \
         ORDER BY request LIMIT $1";
    let mut dead = Vec::new();
    for row in link.query(sql, &[&i64::from(RECOVERED_AT_ONCE)]).await? {
        let mut columns = Columns::of(&row);
        dead.push(columns.read()?);
        wanted.keys.insert(columns.read()?);
    }
    wanted.holds.extend(&dead);
    wanted.entries.extend(&dead);
    Ok(dead)
}

/// Begins a transaction, locks and reads. `epoch` is the node's, 0 for a program that is not a gateway. Only hold operations skip
/// locked customers.
pub(super) async fn fetch(
    link: &Link,
    wanted: &WantedRows,
    ledger: [u8; 16],
    epoch: i64,
    locked: Locked,
) -> Result<Rows, TransactionTrouble> {
    let (lock, lock_values) = wanted.lock(locked);
    let (find_keys, key_values) = wanted.find_keys();
    let fence = if epoch > 0 { FENCE } else { SCHEMA };
    let (fence, lock, find_keys, positions) = (
        link.prepared(fence).await?,
        link.prepared(&lock).await?,
        link.prepared(&find_keys).await?,
        link.prepared(POSITIONS).await?,
    );
    let mut reads = Vec::new();
    for read in self::reads(wanted) {
        let statement = link.prepared(&read.sql).await?;
        reads.push((read, statement));
    }
    let client = &link.client;
    let begin = if wanted.flushed {
        BEGIN_FLUSHED
    } else {
        BEGIN_RECEIVED
    };
    let fence_values: [&(dyn ToSql + Sync); 1] = [&epoch];
    let (lock_values, key_values) = (values(&lock_values), values(&key_values));
    // Polled in this order, and therefore sent in this order.
    let (begun, (fenced, (customers, (keys, (placed, read))))) = join(
        client.batch_execute(begin),
        join(
            client.query(&fence, &fence_values),
            join(
                client.query(&lock, &lock_values),
                join(
                    client.query(&find_keys, &key_values),
                    join(client.query_one(&positions, &[]), run(link, &reads)),
                ),
            ),
        ),
    )
    .await;
    begun?;
    passes(&fenced?, epoch)?;
    // In the order of the statements: after one has failed, each that follows it says only that the transaction is aborted.
    let (customers, keys, placed, read) = (customers?, keys?, placed?, read?);
    let mut placed = Columns::of(&placed);
    let mut rows = Rows {
        ledger,
        epoch,
        positions: Positions::Shared(placed.number()?.saturating_sub(1)),
        now: clock::of_database(placed.number()?),
        defaults: placed
            .read::<Option<Box<StandingDefaults>>>()?
            .map(Arc::from),
        ..Rows::default()
    };
    let granted = owners(&mut rows, &customers, &keys)?;
    grants(link, &mut rows, granted).await?;
    makers(link, &mut rows, wanted).await?;
    made(link, &mut rows, &wanted.made).await?;
    fill(&mut rows, &read, locked)?;
    defaults::fit(link, &mut rows).await?;
    Ok(rows)
}

/// Takes in customers and keys, and returns which customers have open grants.
fn owners(
    rows: &mut Rows,
    customers: &[Row],
    keys: &[Row],
) -> Result<Vec<i64>, TransactionTrouble> {
    let mut granted = Vec::new();
    for row in customers {
        let (stored, traffic, next_grant_at) = rows::stored_customer(row)?;
        let id = stored.customer.id;
        granted.extend(next_grant_at.map(|_| id.to_i64()));
        let customer = CustomerRow::stored(stored, Some(traffic));
        rows.customers.insert(id, customer);
    }
    for row in keys {
        let (key, traffic) = rows::key_record(row)?;
        // Of a customer that was skipped: its operations are skipped, too.
        if rows.customers.contains_key(&key.belongs_to) {
            rows.keys.insert(key.id, KeyRow::stored(key, traffic));
        }
    }
    Ok(granted)
}

/// Reads the open grants of customers again that are locked by now: what was selected with the lock may be as it was before.
async fn grants(
    link: &Link,
    rows: &mut Rows,
    customers: Vec<i64>,
) -> Result<(), TransactionTrouble> {
    if customers.is_empty() {
        return Ok(());
    }
    let list = selected("a");
    let sql = format!("SELECT a.id, {list} FROM accounts a WHERE a.id = ANY ($1::bigint[])");
    for row in link.query(&sql, &[&customers]).await? {
        let (customer, grants): (CustomerId, Grants) = rows::row(&row)?;
        if let Some(row) = rows.customers.get_mut(&customer) {
            row.stored.customer.grants = grants;
        }
    }
    Ok(())
}

/// Reads the keys in whose caps others count, and of a key whose spending is asked for those that count in its and hold something. They
/// are their customers', which are locked by now; most batches have none.
async fn makers(
    link: &Link,
    rows: &mut Rows,
    wanted: &WantedRows,
) -> Result<(), TransactionTrouble> {
    let all = rows.keys.values().filter_map(|row| row.key.counts_in);
    let missing: BTreeSet<KeyId> = all.filter(|maker| !rows.keys.contains_key(maker)).collect();
    if missing.is_empty() && wanted.spending.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "{SELECT_KEY_RECORD} WHERE k.id = ANY ($1::bigint[]) \
         OR k.counts_in = ANY ($2::bigint[]) AND k.id IN (SELECT key FROM holds)"
    );
    let asked = [parameter(&missing), parameter(&wanted.spending)];
    for row in link.query(&sql, &values(&asked)).await? {
        let (key, traffic) = rows::key_record(&row)?;
        if rows.customers.contains_key(&key.belongs_to) {
            rows.keys.insert(key.id, KeyRow::stored(key, traffic));
        }
    }
    Ok(())
}

/// Counts what owner keys of customers have made.
async fn made(
    link: &Link,
    rows: &mut Rows,
    customers: &BTreeSet<CustomerId>,
) -> Result<(), TransactionTrouble> {
    let now = rows.now();
    for customer in customers {
        let asked = [
            customer.to_i64(),
            now.millis(),
            MadeKeys::minute(now).millis(),
        ];
        let row = link.query(MADE, &[&asked[0], &asked[1], &asked[2]]).await?;
        let Some(row) = row.first() else { continue };
        let mut columns = Columns::of(row);
        let (live, lately) = (columns.number()?, columns.number()?);
        rows.made.insert(*customer, MadeKeys { live, lately });
    }
    Ok(())
}

/// Whether this node is alive, and the ledger is still here.
fn passes(fenced: &[Row], epoch: i64) -> Result<(), TransactionTrouble> {
    match fenced.first() {
        None if epoch > 0 => Err(TransactionTrouble::Fenced),
        Some(_) if epoch > 0 => Ok(()),
        None => Err(TransactionTrouble::Failed(
            format!("this ledger {MOVED_AWAY}").into(),
        )),
        Some(row) => match Columns::of(row).take::<i32>()? {
            migrations::VERSION => Ok(()),
            other => Err(TransactionTrouble::Failed(
                migrations::changed(other).to_string().into(),
            )),
        },
    }
}

/// A statement that follows the locks, and what becomes of its rows.
struct FetchRead<'wanted> {
    sql: String,
    /// Its parameter, if it has one.
    value: Option<SqlValue<'wanted>>,
    fill: fn(&mut Rows, &Row) -> Filled,
}

type Filled = Result<(), TransactionTrouble>;

/// A statement that looks for these, unless there are none.
fn read<'wanted, T: StoredAlone>(
    select: &str,
    which: &str,
    all: &'wanted BTreeSet<T>,
    fill: fn(&mut Rows, &Row) -> Filled,
) -> Option<FetchRead<'wanted>> {
    (!all.is_empty()).then(|| FetchRead {
        sql: format!("{select}{which}"),
        value: Some(parameter(all)),
        fill,
    })
}

/// The same for rows of described tables.
fn read_named<'wanted>(
    select: &str,
    which: &str,
    names: impl Iterator<Item = &'wanted RowName>,
    fill: fn(&mut Rows, &Row) -> Filled,
) -> Option<FetchRead<'wanted>> {
    let mut keys = names.map(RowName::key).peekable();
    let (_, value) = array(&keys.peek()?.clone(), keys);
    Some(FetchRead {
        sql: format!("{select}{which}"),
        value: Some(value),
        fill,
    })
}

/// Finds out which requests another gateway is answering now. Nobody waits here: who finds another gateway at it looks again later.
const RUNNING: &str = "SELECT a FROM (SELECT a, pg_try_advisory_xact_lock(1717662310, \
     ('x' || encode(substring(a FROM 1 FOR 4), 'hex'))::bit(32)::int) AS ours FROM unnest($1::bytea[]) AS a) l \
     WHERE NOT ours";
/// Locks the references, which need not be rows yet. They share 1,024 locks, so that no batch needs more of the server's than it has.
const NAMES: &str = "SELECT pg_advisory_xact_lock(1717662309, n) FROM \
     (SELECT DISTINCT hashtext(r) & 1023 AS n FROM unnest($1::text[]) AS r ORDER BY n) l";
const MADE: &str = "SELECT (SELECT count(*) FROM keys WHERE customer = $1 AND counts_in IS NOT NULL AND status <> 3 \
     AND coalesce(expires_at, 9223372036854775807) > $2), \
     (SELECT count(*) FROM keys WHERE customer = $1 AND created_at > $3 AND counts_in IS NOT NULL)";
const HOURS_OF_KEYS: &str = "SELECT u.hour, u.slug, least(sum(u.charge), 9223372036854775807)::bigint, s.id FROM unnest($1::bigint[]) AS s (id) \
     JOIN keys k ON k.id = s.id OR k.counts_in = s.id JOIN usage u ON u.key = k.id GROUP BY s.id, u.hour, u.slug";
const HOURS_OF_CUSTOMERS: &str = "SELECT u.hour, u.slug, least(sum(u.charge), 9223372036854775807)::bigint, k.customer FROM usage u \
     JOIN keys k ON k.id = u.key WHERE k.customer = ANY ($1::bigint[]) GROUP BY k.customer, u.hour, u.slug";

/// Everything to read, in its order: what is locked; the references, before all that the others see of what their last holder has
/// written; the rest.
fn reads(wanted: &WantedRows) -> Vec<FetchRead<'_>> {
    let named = NamedReads::of(wanted);
    let of_answers = wanted.named(|name| matches!(name, RowName::Answer(_)));
    let locks = [
        read_named(RUNNING, "", of_answers, running),
        read(NAMES, "", &wanted.references, |_, _| Ok(())),
    ];
    let others = (locks
        .into_iter()
        .chain(of_holds(wanted))
        .chain(of_history(wanted)))
    .flatten();
    (named.locked.into_iter().chain(others).chain(named.others)).collect()
}

/// Open holds, spending and personal data.
fn of_holds(wanted: &WantedRows) -> [Option<FetchRead<'_>>; 6] {
    let by_id = " WHERE h.request = ANY ($1::bytea[])";
    let of_key = " WHERE h.key = ANY (ARRAY(SELECT unnest($1::bigint[]) UNION SELECT id FROM keys WHERE counts_in = ANY ($1::bigint[])))";
    let of_customer = " WHERE h.key IN (SELECT id FROM keys WHERE customer = ANY ($1::bigint[]))";
    let personal = "SELECT customer, data FROM personal_data WHERE customer = ANY ($1::bigint[])";
    [
        read(SELECT_HOLD, by_id, &wanted.holds, hold),
        read(SELECT_HOLD, of_key, &wanted.spending, hold),
        read(HOURS_OF_KEYS, "", &wanted.spending, |rows, row| {
            hour(rows, row, |columns| Ok(Scope::Key(columns.read()?)))
        }),
        read(SELECT_HOLD, of_customer, &wanted.spending_of, hold),
        read(HOURS_OF_CUSTOMERS, "", &wanted.spending_of, |rows, row| {
            hour(rows, row, |columns| Ok(Scope::Customer(columns.read()?)))
        }),
        read(personal, "", &wanted.personal, |rows, row| {
            let (customer, data) = super::rows::row(row)?;
            rows.personal.insert(customer, data);
            Ok(())
        }),
    ]
}

/// Entries, payments and acts.
fn of_history(wanted: &WantedRows) -> [Option<FetchRead<'_>>; 9] {
    let by_operation = " WHERE e.operation = ANY ($1::bytea[])";
    let by_reference =
        " JOIN refs r ON r.operation = e.operation WHERE r.folded = ANY ($1::text[])";
    let of_voucher =
        " WHERE e.operation IN (SELECT operation FROM vouchers WHERE code = ANY ($1::bytea[]))";
    let refunds = "SELECT refunds, amount FROM entries WHERE refunds = ANY ($1::bytea[])";
    let (payments, grants) = (select::<Payment>(), select::<GrantRecord>());
    let by_folded = "WHERE folded = ANY ($1::text[])";
    let acts = " WHERE operation = ANY ($1::bytea[])";
    let vouchers = wanted.named(|name| matches!(name, RowName::Voucher(_)));
    [
        read(SELECT_ENTRY, by_operation, &wanted.entries, |rows, row| {
            entry(rows, row).map(drop)
        }),
        read(
            SELECT_ENTRY,
            by_reference,
            &wanted.references,
            entry_by_reference,
        ),
        read_named(SELECT_ENTRY, of_voucher, vouchers, entry_of_voucher),
        read(&payments, by_folded, &wanted.references, payment),
        read(&grants, by_folded, &wanted.references, |rows, row| {
            rows.tables.fetched::<GrantRecord>(rows::row(row)?);
            Ok(())
        }),
        read(refunds, "", &wanted.acts, refund),
        read(SELECT_ACT, acts, &wanted.acts, act),
        read(&reads::last_acts(true), "", &wanted.changed, |rows, row| {
            last_act(rows, row, |columns| Ok(Scope::Key(columns.read()?)))
        }),
        read(
            &reads::last_acts(false),
            "",
            &wanted.changed_of,
            |rows, row| last_act(rows, row, |columns| Ok(Scope::Customer(columns.read()?))),
        ),
    ]
}

type FetchedRows<'reads> = Vec<(&'reads FetchRead<'reads>, Vec<Row>)>;

async fn run<'reads>(
    link: &Link,
    prepared: &'reads [(FetchRead<'reads>, Statement)],
) -> Result<FetchedRows<'reads>, Error> {
    let queries = prepared.iter().map(|(read, statement)| async move {
        let value = values(read.value.as_slice());
        Ok((read, link.client.query(statement, &value).await?))
    });
    futures_util::future::try_join_all(queries).await
}

fn fill(
    rows: &mut Rows,
    found: &FetchedRows<'_>,
    locked: Locked,
) -> Result<(), TransactionTrouble> {
    for (read, found) in found {
        for row in found {
            match (read.fill)(rows, row) {
                // A row of a skipped customer, whose operation is skipped too.
                Err(TransactionTrouble::Retry(_)) if locked == Locked::Skip => {}
                filled => filled?,
            }
        }
    }
    let sessions = rows.tables.iter().map(|session: &Session| session.key);
    let links = rows.tables.iter().map(|link: &SignInLink| link.key);
    sessions
        .chain(links)
        .try_for_each(|key| needs_lock(rows, key))
}

fn running(rows: &mut Rows, row: &Row) -> Filled {
    rows.running.insert(Columns::of(row).read()?);
    Ok(())
}

fn hold(rows: &mut Rows, row: &Row) -> Filled {
    let hold = rows::stored_hold(row)?;
    needs_lock(rows, hold.open.key)?;
    rows.holds.insert(hold.open.request, Kept::stored(hold));
    Ok(())
}

fn hour(rows: &mut Rows, row: &Row, of: fn(&mut Columns<'_>) -> Decoded<Scope>) -> Filled {
    let mut columns = Columns::of(row);
    let hour = crate::store::hour_rows::spent_hour(&mut columns)?;
    rows.hours.entry(of(&mut columns)?).or_default().push(hour);
    Ok(())
}

fn entry(rows: &mut Rows, row: &Row) -> Result<OperationId, TransactionTrouble> {
    let chained = rows::stored_entry(row)?;
    let operation = chained.entry.operation;
    needs_customer(rows, chained.entry.customer)?;
    rows.entries.insert(operation, chained);
    Ok(operation)
}

fn entry_by_reference(rows: &mut Rows, row: &Row) -> Filled {
    let operation = entry(rows, row)?;
    let found = rows.entry(operation);
    if let Some(reference) = found.and_then(|entry| entry.reference.as_deref()) {
        let folded = reference::folded(reference);
        rows.references.insert(folded, operation);
    }
    Ok(())
}

fn entry_of_voucher(rows: &mut Rows, row: &Row) -> Filled {
    match entry(rows, row) {
        // Another customer's is not asked for, and its customer not locked.
        Err(TransactionTrouble::Retry(_)) => Ok(()),
        found => found.map(drop),
    }
}

fn payment(rows: &mut Rows, row: &Row) -> Filled {
    let payment: Payment = rows::row(row)?;
    needs_customer(rows, payment.customer)?;
    rows.tables.fetched(payment);
    Ok(())
}

fn refund(rows: &mut Rows, row: &Row) -> Filled {
    let mut columns = Columns::of(row);
    let refunds = rows.refunds.entry(columns.read()?);
    refunds.or_default().push(columns.read()?);
    Ok(())
}

fn act(rows: &mut Rows, row: &Row) -> Filled {
    let act = rows::stored_act(row)?;
    needs_customer(rows, act.record.record.customer)?;
    rows.acts.insert(act.record.record.operation, act);
    Ok(())
}

fn last_act(rows: &mut Rows, row: &Row, of: fn(&mut Columns<'_>) -> Decoded<Scope>) -> Filled {
    let mut columns = Columns::of(row);
    rows.last_acts.insert(of(&mut columns)?, columns.number()?);
    Ok(())
}

/// The statements that read what belongs to named rows: those that lock, and the others.
struct NamedReads<'wanted> {
    locked: Vec<FetchRead<'wanted>>,
    others: Vec<FetchRead<'wanted>>,
    /// The rows of one kind.
    alike: Vec<&'wanted RowName>,
}

impl<'wanted> NamedReads<'wanted> {
    fn of(wanted: &'wanted WantedRows) -> Self {
        let mut reads = Self {
            locked: Vec::new(),
            others: Vec::new(),
            alike: Vec::new(),
        };
        let names: Vec<_> = wanted.rows.iter().collect();
        for alike in names.chunk_by(|a, b| discriminant(*a) == discriminant(*b)) {
            reads.alike = alike.to_vec();
            if let Some(name) = alike.first() {
                let Ok(()) = name.read(&mut reads);
            }
        }
        reads
    }
}

impl NamedReader for NamedReads<'_> {
    type Error = Infallible;

    fn read<T: ListedRow>(&mut self, condition: &str, is_locked: bool) -> Result<(), Infallible> {
        let mut keys = self.alike.iter().map(|name| name.key()).peekable();
        let Some(like) = keys.peek().cloned() else {
            return Ok(());
        };
        let (kind, keys) = array(&like, keys);
        let before = format!(
            "floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint - {}",
            DailyBound::DAYS
        );
        let condition = condition
            .replace("{keys}", &format!("= ANY ($1::{kind}[])"))
            .replace("{before}", &before);
        let lock = if is_locked {
            format!(" ORDER BY {} FOR NO KEY UPDATE", T::KEY.join(", "))
        } else {
            String::new()
        };
        let value = condition.contains("$1").then_some(keys);
        let read = FetchRead {
            sql: format!("{}WHERE {condition}{lock}", select::<T>()),
            value,
            fill: |rows, row| {
                rows.tables.fetched::<T>(rows::row(row)?);
                Ok(())
            },
        };
        let list = if is_locked {
            &mut self.locked
        } else {
            &mut self.others
        };
        list.push(read);
        Ok(())
    }
}

/// Refuses a row of a key whose customer was not locked.
fn needs_lock(rows: &Rows, key: KeyId) -> Result<(), TransactionTrouble> {
    if rows.keys.contains_key(&key) {
        Ok(())
    } else {
        Err(appeared())
    }
}

/// Refuses a row of a customer that was not locked.
fn needs_customer(rows: &Rows, customer: CustomerId) -> Result<(), TransactionTrouble> {
    if rows.customers.contains_key(&customer) {
        Ok(())
    } else {
        Err(appeared())
    }
}

fn appeared() -> TransactionTrouble {
    TransactionTrouble::Retry("a row appeared in the meantime".into())
}
