//! First round trip of a batch: fence, lock the customers and then the references, each in order, read what the operations need.
//!
//! Everything is sent at once. Each statement has its own snapshot, taken after the locks are held, so it sees the newest rows of
//! locked customers, and of their keys: whoever writes a key has locked its customer, to which it belongs for ever. Of the locking
//! statement, only the locked rows themselves can be trusted. A row whose customer is not locked belongs to one that was skipped, or
//! has appeared meanwhile; in the latter case the batch starts again.

use futures_util::future::join;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::link::Link;
use super::locking::Locked;
use super::parameters::FetchParameters;
use super::payments::{self, SELECT_PAYMENT};
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_HOLD, SELECT_LINK, SELECT_SESSION,
};
use super::standby::{BEGIN_FLUSHED, BEGIN_RECEIVED};
use super::tokens::{self, SELECT_ANSWER, SELECT_HOUSE_ACT, SELECT_TOKEN, SELECT_TOKEN_DAY};
use super::trouble::TransactionTrouble;
use super::vouchers::{self, SELECT_LOT, SELECT_VOUCHER};
use super::wanted::WantedRows;
use super::{migrations, reads};
use crate::batch::answer::AnswerId;
use crate::batch::rows::{
    CachedRow as Kept, CustomerRow, KeyRow, Positions, RECOVERED_AT_ONCE, Rows,
};
use crate::store::copy::MOVED_AWAY;
use crate::store::rows::RowColumns as _;
use crate::value::reference;
use crate::{CustomerId, DailyBound, KeyId, OperationId, Scope};

/// In place of the fence, for a program that is not a gateway: whether the ledger was moved or brought up to date meanwhile.
const SCHEMA: &str = "SELECT version FROM identity WHERE id = 1 AND $1::bigint = 0";
const FENCE: &str = "SELECT 1 FROM nodes WHERE epoch = $1 AND ended IS NULL FOR KEY SHARE";
const POSITIONS: &str =
    "SELECT nextval('positions'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

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
        dead.push(columns.operation()?);
        wanted.keys.insert(columns.key()?);
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
    let asked = FetchParameters::of(wanted);
    let fence = if epoch > 0 { FENCE } else { SCHEMA };
    let (fence, lock, find_keys, positions) = (
        link.prepared(fence).await?,
        link.prepared(&asked.lock(locked)).await?,
        link.prepared(&asked.find_keys()).await?,
        link.prepared(POSITIONS).await?,
    );
    let reads = Reads::prepare(link, &asked).await?;
    let client = &link.client;
    let begin = if wanted.flushed {
        BEGIN_FLUSHED
    } else {
        BEGIN_RECEIVED
    };
    let (fence_values, lock_values): ([&(dyn ToSql + Sync); 1], _) = ([&epoch], asked.to_lock());
    let key_values = asked.to_find_keys();
    // Polled in this order, and therefore sent in this order.
    let (begun, (fenced, (customers, (keys, (placed, read))))) = join(
        client.batch_execute(begin),
        join(
            client.query(&fence, &fence_values),
            join(
                client.query(&lock, &lock_values),
                join(
                    client.query(&find_keys, &key_values),
                    join(client.query_one(&positions, &[]), reads.run(link, &asked)),
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
        now: placed.number()?,
        ..Rows::default()
    };
    for row in customers {
        let (stored, traffic) = rows::stored_customer(&row)?;
        let id = stored.customer.id;
        let customer = CustomerRow::stored(stored, Some(traffic));
        rows.customers.insert(id, customer);
    }
    for row in keys {
        let (key, traffic) = rows::key_record(&row)?;
        // Of a customer that was skipped: its operations are skipped, too.
        if rows.customers.contains_key(&key.belongs_to) {
            rows.keys.insert(key.id, KeyRow::stored(key, traffic));
        }
    }
    fill(&mut rows, &read, locked)?;
    Ok(rows)
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

/// The statements that follow the locks, without those that have nothing to look for.
struct Reads(Vec<(What, tokio_postgres::Statement)>);

#[derive(Debug, Clone, Copy)]
enum What {
    /// Locks the tokens of the admin API that operations are asked by. Before the references, as every batch does.
    ApiTokens,
    /// What they did, which their locks protect.
    TokenDays,
    /// Locks lots, and those of vouchers.
    Lots,
    LotsOfVouchers,
    /// Locks vouchers.
    Vouchers,
    Redeemers,
    EntriesOfVouchers,
    /// Finds out which requests another gateway is answering now.
    Running,
    /// Locks the references, which need not be rows yet. It must come first: the others then see what their last holder has written.
    Names,
    Holds,
    HoldsOfKeys,
    SpentHours,
    HoldsOfCustomers,
    SpentHoursOfCustomers,
    ExternalIds,
    Entries,
    EntriesByReference,
    Payments,
    Refunds,
    Acts,
    /// The last acts that changed keys, and customers themselves.
    LastActs,
    LastActsOfCustomers,
    ApiLabels,
    HouseActs,
    TokensOfActs,
    HouseHead,
    Answers,
    Sessions,
    Links,
}

impl What {
    fn sql(self) -> String {
        match self {
            Self::ApiTokens => format!(
                "{SELECT_TOKEN} WHERE t.id = ANY ($1::bigint[]) ORDER BY t.id FOR NO KEY UPDATE OF t"
            ),
            Self::TokenDays => format!(
                "{SELECT_TOKEN_DAY} WHERE d.token = ANY ($1::bigint[]) \
                 AND d.day > floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint - {}",
                DailyBound::DAYS
            ),
            Self::Lots
            | Self::LotsOfVouchers
            | Self::Vouchers
            | Self::Redeemers
            | Self::EntriesOfVouchers => self.sql_of_vouchers(),
            // Nobody waits here: who finds another gateway at it looks again later.
            Self::Running => "SELECT a FROM (SELECT a, pg_try_advisory_xact_lock(1717662310, \
                 ('x' || encode(substring(a FROM 1 FOR 4), 'hex'))::bit(32)::int) AS ours FROM unnest($1::bytea[]) AS a) l \
                 WHERE NOT ours"
                .to_owned(),
            Self::ApiLabels => {
                "SELECT label FROM tokens WHERE label = ANY ($1::text[])".to_owned()
            }
            Self::HouseActs => format!("{SELECT_HOUSE_ACT} WHERE operation = ANY ($1::bytea[])"),
            Self::TokensOfActs => format!(
                "{SELECT_TOKEN} WHERE t.id IN (SELECT token FROM house_acts WHERE operation = ANY ($1::bytea[]))"
            ),
            Self::HouseHead => {
                "SELECT seq, hash FROM house_acts WHERE $1::bytea[] IS NOT NULL ORDER BY seq DESC LIMIT 1"
                    .to_owned()
            }
            Self::Answers => format!("{SELECT_ANSWER} WHERE id = ANY ($1::bytea[])"),
            // They share 1,024 locks, so that no batch needs more of the server's than it has.
            Self::Names => "SELECT pg_advisory_xact_lock(1717662309, n) FROM \
                 (SELECT DISTINCT hashtext(r) & 1023 AS n FROM unnest($1::text[]) AS r ORDER BY n) l"
                .to_owned(),
            Self::Holds => format!("{SELECT_HOLD} WHERE h.request = ANY ($1::bytea[])"),
            Self::HoldsOfKeys => format!("{SELECT_HOLD} WHERE h.key = ANY ($1::bigint[])"),
            Self::HoldsOfCustomers => format!(
                "{SELECT_HOLD} WHERE h.key IN (SELECT id FROM keys WHERE customer = ANY ($1::bigint[]))"
            ),
            Self::SpentHoursOfCustomers => {
                "SELECT u.hour, u.slug, least(sum(u.charge), 9223372036854775807)::bigint, k.customer FROM usage u \
                 JOIN keys k ON k.id = u.key WHERE k.customer = ANY ($1::bigint[]) GROUP BY k.customer, u.hour, u.slug"
                    .to_owned()
            }
            Self::ExternalIds => {
                "SELECT external_id, id FROM accounts WHERE external_id = ANY ($1::text[])".to_owned()
            }
            Self::SpentHours => "SELECT hour, slug, least(sum(charge), 9223372036854775807)::bigint, key FROM usage \
                 WHERE key = ANY ($1::bigint[]) GROUP BY key, hour, slug"
                .to_owned(),
            Self::Entries => format!("{SELECT_ENTRY} WHERE e.operation = ANY ($1::bytea[])"),
            Self::EntriesByReference => {
                format!(
                    "{SELECT_ENTRY} JOIN refs r ON r.operation = e.operation WHERE r.folded = ANY ($1::text[])"
                )
            }
            Self::Payments => format!("{SELECT_PAYMENT} WHERE p.folded = ANY ($1::text[])"),
            Self::Refunds => {
                "SELECT refunds, amount FROM entries WHERE refunds = ANY ($1::bytea[])".to_owned()
            }
            Self::LastActs => reads::last_acts(true),
            Self::LastActsOfCustomers => reads::last_acts(false),
            Self::Acts => format!("{SELECT_ACT} WHERE operation = ANY ($1::bytea[])"),
            Self::Sessions => format!("{SELECT_SESSION} WHERE token = ANY ($1::bytea[])"),
            Self::Links => format!("{SELECT_LINK} WHERE token = ANY ($1::bytea[])"),
        }
    }

    fn sql_of_vouchers(self) -> String {
        match self {
            Self::Lots => {
                format!("{SELECT_LOT} WHERE l.id = ANY ($1::bigint[]) ORDER BY l.id FOR NO KEY UPDATE OF l")
            }
            Self::LotsOfVouchers => format!(
                "{SELECT_LOT} WHERE l.id IN (SELECT lot FROM vouchers WHERE code = ANY ($1::bytea[])) ORDER BY l.id FOR NO KEY UPDATE OF l"
            ),
            Self::Vouchers => {
                format!("{SELECT_VOUCHER} WHERE v.code = ANY ($1::bytea[]) ORDER BY v.code FOR NO KEY UPDATE OF v")
            }
            Self::Redeemers => "SELECT v.lot, v.customer FROM vouchers v JOIN lots l ON l.id = v.lot WHERE v.customer IS NOT NULL \
                 AND l.once = 1 AND v.lot IN (SELECT lot FROM vouchers WHERE code = ANY ($1::bytea[]))"
                .to_owned(),
            _ => format!(
                "{SELECT_ENTRY} WHERE e.operation IN (SELECT operation FROM vouchers WHERE code = ANY ($1::bytea[]))"
            ),
        }
    }

    fn value<'a>(self, asked: &'a FetchParameters<'_>) -> &'a (dyn ToSql + Sync) {
        match self {
            Self::ApiTokens | Self::TokenDays => &asked.api_tokens,
            Self::ApiLabels => &asked.api_labels,
            Self::HouseActs | Self::TokensOfActs | Self::HouseHead => &asked.house_acts,
            Self::Running | Self::Answers => &asked.answers,
            Self::Lots => &asked.lots,
            Self::LotsOfVouchers | Self::Vouchers | Self::Redeemers | Self::EntriesOfVouchers => {
                &asked.vouchers
            }
            Self::Holds => &asked.holds,
            Self::Entries => &asked.entries,
            Self::Names | Self::EntriesByReference | Self::Payments => &asked.references,
            Self::Refunds | Self::Acts => &asked.acts,
            Self::LastActs => &asked.changed,
            Self::LastActsOfCustomers => &asked.changed_of,
            Self::Sessions | Self::Links => &asked.tokens,
            Self::HoldsOfKeys | Self::SpentHours => &asked.spending,
            Self::HoldsOfCustomers | Self::SpentHoursOfCustomers => &asked.spending_of,
            Self::ExternalIds => &asked.external_ids,
        }
    }
}

type FetchedRows = Vec<(What, Vec<Row>)>;

impl Reads {
    async fn prepare(link: &Link, asked: &FetchParameters<'_>) -> Result<Self, Error> {
        let wanted = [
            (What::ApiTokens, asked.api_tokens.is_empty()),
            (What::TokenDays, asked.api_tokens.is_empty()),
            (What::Lots, asked.lots.is_empty()),
            (What::LotsOfVouchers, asked.vouchers.is_empty()),
            (What::Vouchers, asked.vouchers.is_empty()),
            (What::Redeemers, asked.vouchers.is_empty()),
            (What::EntriesOfVouchers, asked.vouchers.is_empty()),
            (What::Running, asked.answers.is_empty()),
            (What::Names, asked.references.is_empty()),
            (What::Holds, asked.holds.is_empty()),
            (What::HoldsOfKeys, asked.spending.is_empty()),
            (What::SpentHours, asked.spending.is_empty()),
            (What::HoldsOfCustomers, asked.spending_of.is_empty()),
            (What::SpentHoursOfCustomers, asked.spending_of.is_empty()),
            (What::ExternalIds, asked.external_ids.is_empty()),
            (What::Entries, asked.entries.is_empty()),
            (What::EntriesByReference, asked.references.is_empty()),
            (What::Payments, asked.references.is_empty()),
            (What::Refunds, asked.acts.is_empty()),
            (What::Acts, asked.acts.is_empty()),
            (What::LastActs, asked.changed.is_empty()),
            (What::LastActsOfCustomers, asked.changed_of.is_empty()),
            (What::ApiLabels, asked.api_labels.is_empty()),
            (What::HouseActs, asked.house_acts.is_empty()),
            (What::TokensOfActs, asked.house_acts.is_empty()),
            (What::HouseHead, asked.house_acts.is_empty()),
            (What::Answers, asked.answers.is_empty()),
            (What::Sessions, asked.tokens.is_empty()),
            (What::Links, asked.tokens.is_empty()),
        ];
        let mut statements = Vec::new();
        for (what, _) in wanted.into_iter().filter(|(_, nothing)| !nothing) {
            statements.push((what, link.prepared(&what.sql()).await?));
        }
        Ok(Self(statements))
    }

    async fn run(&self, link: &Link, asked: &FetchParameters<'_>) -> Result<FetchedRows, Error> {
        let queries = self.0.iter().map(|(what, statement)| async move {
            let value: [&(dyn ToSql + Sync); 1] = [what.value(asked)];
            Ok((*what, link.client.query(statement, &value).await?))
        });
        futures_util::future::try_join_all(queries).await
    }
}

fn fill(rows: &mut Rows, found: &FetchedRows, locked: Locked) -> Result<(), TransactionTrouble> {
    for (what, found) in found {
        for row in found {
            match fill_one(rows, *what, row) {
                // A row of a skipped customer, whose operation is skipped too.
                Err(TransactionTrouble::Retry(_)) if locked == Locked::Skip => {}
                filled => filled?,
            }
        }
    }
    Ok(())
}

fn fill_one(rows: &mut Rows, what: What, row: &Row) -> Result<(), TransactionTrouble> {
    match what {
        What::Holds | What::HoldsOfKeys | What::HoldsOfCustomers => {
            let hold = rows::stored_hold(row)?;
            needs_lock(rows, hold.open.key)?;
            rows.holds.insert(hold.open.request, Kept::stored(hold));
        }
        What::Entries | What::EntriesByReference => {
            let chained = rows::stored_entry(row)?;
            let entry = &chained.entry;
            needs_customer(rows, entry.customer)?;
            if let (What::EntriesByReference, Some(reference)) = (what, &entry.reference) {
                let folded = reference::folded(reference);
                rows.references.insert(folded, entry.operation);
            }
            rows.entries.insert(entry.operation, chained);
        }
        What::Payments => {
            let payment = payments::payment(row)?;
            needs_customer(rows, payment.customer)?;
            let folded = reference::folded(&payment.reference);
            rows.payments.insert(folded, Kept::stored(payment));
        }
        What::SpentHours => {
            let mut columns = Columns::of(row);
            let hour = crate::store::hour_rows::spent_hour(&mut columns)?;
            let of = Scope::Key(columns.key()?);
            rows.hours.entry(of).or_default().push(hour);
        }
        What::SpentHoursOfCustomers => {
            let mut columns = Columns::of(row);
            let hour = crate::store::hour_rows::spent_hour(&mut columns)?;
            let of = Scope::Customer(columns.customer()?);
            rows.hours.entry(of).or_default().push(hour);
        }
        What::ExternalIds => {
            let mut columns = Columns::of(row);
            let (external_id, customer) = (columns.text()?, columns.customer()?);
            rows.external_ids.insert(external_id, customer);
        }
        What::Refunds => {
            let mut columns = Columns::of(row);
            let (request, amount) = (columns.operation()?, columns.amount()?);
            rows.refunds.entry(request).or_default().push(amount);
        }
        What::Acts => {
            let act = rows::stored_act(row)?;
            let record = &act.record.record;
            needs_customer(rows, record.customer)?;
            rows.acts.insert(record.operation, act);
        }
        What::Sessions => {
            let session = rows::session(row)?;
            needs_lock(rows, session.key)?;
            rows.sessions.insert(session.token.0, Kept::stored(session));
        }
        What::Links => {
            let (token, key, expires) = rows::link(row)?;
            needs_lock(rows, key)?;
            rows.links.insert(token.0, Kept::stored((key, expires)));
        }
        of_tokens => fill_of_tokens(rows, of_tokens, row)?,
    }
    Ok(())
}

fn fill_of_tokens(rows: &mut Rows, what: What, row: &Row) -> Result<(), TransactionTrouble> {
    match what {
        What::ApiTokens | What::TokensOfActs => {
            let token = tokens::token(row)?;
            rows.api_tokens
                .entry(token.id)
                .or_insert_with(|| Kept::stored(token));
        }
        What::TokenDays => {
            let day = tokens::token_day(row)?;
            let place = (day.token, day.day);
            rows.token_days.insert(place, Kept::stored(day));
        }
        What::Running => {
            rows.running.insert(AnswerId(Columns::of(row).hash()?));
        }
        What::ApiLabels => {
            rows.api_labels.insert(Columns::of(row).text()?);
        }
        What::HouseActs => {
            let found = tokens::house_act(row)?;
            rows.house_acts.insert(found.act.operation, found);
        }
        What::HouseHead => {
            rows.house_head = tokens::house_head(row)?;
        }
        What::LastActs => {
            let mut columns = Columns::of(row);
            let of = Scope::Key(columns.key()?);
            rows.last_acts.insert(of, columns.number()?);
        }
        What::LastActsOfCustomers => {
            let mut columns = Columns::of(row);
            let of = Scope::Customer(columns.customer()?);
            rows.last_acts.insert(of, columns.number()?);
        }
        What::Answers => {
            let (id, kept) = tokens::answer(row)?;
            rows.answers.insert(id, kept);
        }
        What::Lots | What::LotsOfVouchers => {
            let (lot, made_by) = vouchers::lot(row)?;
            rows.lots.insert(lot.id, Kept::stored((lot, made_by)));
        }
        What::Vouchers => {
            let found = vouchers::voucher(row)?;
            rows.vouchers.insert(found.code.0, Kept::stored(found));
        }
        What::Redeemers => {
            rows.redeemers.insert(vouchers::redeemer(row)?);
        }
        What::EntriesOfVouchers => {
            let chained = rows::stored_entry(row)?;
            // Another customer's is not asked for, and its customer not locked.
            if rows.customers.contains_key(&chained.entry.customer) {
                rows.entries.insert(chained.entry.operation, chained);
            }
        }
        // Locks of references have nothing to say.
        _ => {}
    }
    Ok(())
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
