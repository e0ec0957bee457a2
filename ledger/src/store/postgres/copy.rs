//! Both ends of a copy of a whole ledger in a database: all of it in one transaction.
//!
//! As a source, tables that every writer needs are locked against changes, so neither a gateway nor a command can write meanwhile.
//! As a target, the schema, the identity and all rows appear with one commit.

use tokio_postgres::types::ToSql;

use super::connector::Connector;
use super::events::Shown;
use super::facts::ServerPurpose;
use super::link::Link;
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_CUSTOMER, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY_RECORD,
};
use super::trouble::{TransactionTrouble, cause};
use super::{deliveries, events, flush, lessons, migrations, reads, verify};
use crate::batch::rows::Rows;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::StoredCustomer;
use crate::rule::key::KeyRecord;
use crate::store::address::Database;
use crate::store::copy::{
    CopyBatch, CopyIdentity, MOVED, ROWS, Rest, Side, SourceLedger, TargetLedger,
};
use crate::store::rows::RowColumns as _;
use crate::table::list::TableSet;
use crate::{Cause, Event, LedgerError, OpenMode, OperationId, VerifyReport};

const NO_TIMEOUT: &str = "SET idle_in_transaction_session_timeout = 0";
/// Derives the counters of holds: each hold ever opened is either open or has ended in a charge.
const COUNT_OPENED: &str = "UPDATE accounts SET opened = n.opened, running = n.running FROM \
     (SELECT customer, count(*) AS opened, sum(running) AS running FROM (SELECT customer, 0 AS running FROM entries WHERE kind = 2 \
     UNION ALL SELECT k.customer, 1 FROM holds h JOIN keys k ON k.id = h.key) o GROUP BY customer) n WHERE n.customer = id; \
     UPDATE keys SET running = (SELECT count(*) FROM holds h WHERE h.key = id), paced_to = 0 \
     WHERE rate IS NOT NULL OR concurrency IS NOT NULL";
const PLACE_NEXT: &str = "SELECT setval('positions', greatest((SELECT coalesce(max(position), 1) FROM entries), \
     (SELECT coalesce(max(position), 1) FROM audit)))";

fn unavailable(trouble: TransactionTrouble) -> LedgerError {
    match trouble {
        TransactionTrouble::Unknown(why) => LedgerError::Unknown(why),
        undone => LedgerError::unavailable(undone.cause()),
    }
}

async fn execute(link: &Link, sql: &str) -> Result<(), LedgerError> {
    link.client
        .batch_execute(sql)
        .await
        .map_err(|error| LedgerError::unavailable(cause(error)))
}

async fn query(
    link: &Link,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<tokio_postgres::Row>, LedgerError> {
    link.query(sql, values)
        .await
        .map_err(|error| unavailable(error.into()))
}

async fn customers(link: &Link, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
    let sql = format!("{SELECT_CUSTOMER} WHERE a.id > $1 ORDER BY a.id LIMIT $2");
    let rows = query(link, &sql, &[&after, &i64::from(ROWS)]).await?;
    rows.iter()
        .map(|row| Ok(rows::stored_customer(row)?.0))
        .collect()
}

async fn keys(link: &Link, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
    let sql = format!("{SELECT_KEY_RECORD} WHERE k.id > $1 ORDER BY k.id LIMIT $2");
    let rows = query(link, &sql, &[&after, &i64::from(ROWS)]).await?;
    rows.iter()
        .map(|row| Ok(rows::key_record(row)?.0))
        .collect()
}

/// A database that is the source of a copy.
pub(crate) struct CopySource {
    link: Link,
    verifier: Link,
}

impl CopySource {
    /// Locks the ledger against every writer.
    pub(crate) async fn open(database: &Database) -> Result<Self, LedgerError> {
        let connector = Connector::new(database, ServerPurpose::Write, true)?;
        let mut link = connector.connect().await.map_err(LedgerError::Unusable)?;
        migrations::prepare(&mut link.client, OpenMode::Write).await?;
        let verifier = connector.connect().await.map_err(LedgerError::Unusable)?;
        execute(
            &link,
            &format!("{NO_TIMEOUT}; BEGIN ISOLATION LEVEL REPEATABLE READ"),
        )
        .await?;
        execute(&link, "LOCK TABLE nodes, keys, accounts IN SHARE MODE")
            .await
            .map_err(|error| {
                let words = format!("the ledger is in use: {error}; stop every gateway first");
                LedgerError::Unusable(Cause::in_words(words, error))
            })?;
        migrations::refuse_gateways(&link.client).await?;
        Ok(Self { link, verifier })
    }
}

impl Side for CopySource {
    async fn customers(&mut self, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
        customers(&self.link, after).await
    }

    async fn keys(&mut self, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
        keys(&self.link, after).await
    }
}

impl SourceLedger for CopySource {
    async fn identity(&mut self) -> Result<CopyIdentity, LedgerError> {
        let rows = query(
            &self.link,
            "SELECT ledger, generation, made_at FROM identity WHERE id = 1",
            &[],
        )
        .await?;
        let row = rows
            .first()
            .ok_or_else(|| LedgerError::unusable("the ledger has no identity".to_owned()))?;
        let mut columns = Columns::of(row);
        Ok(CopyIdentity {
            ledger: columns.read::<OperationId>()?.to_bytes(),
            generation: columns.take()?,
            made_at: columns.read()?,
        })
    }

    /// Ends the epochs of gateways that are only frozen, too: their next statement finds that out.
    async fn retire(self) -> Result<(), LedgerError> {
        let mark = format!(
            "{}; UPDATE identity SET version = {} WHERE id = 1; COMMIT",
            migrations::END_ALL,
            migrations::VERSION.saturating_add(MOVED)
        );
        match tokio::time::timeout(migrations::ALIVE, execute(&self.link, &mark)).await {
            Ok(marked) => marked,
            Err(_) => Err(LedgerError::unavailable(
                "the copy is whole, and its source could not be marked as moved: no standby confirms it; serve from the copy alone"
                    .to_owned(),
            )),
        }
    }

    async fn verify(&mut self) -> Result<VerifyReport, LedgerError> {
        verify::verify(&self.verifier, &[])
            .await
            .map_err(unavailable)
    }

    async fn acts(&mut self, after: i64) -> Result<Vec<ChainedAct>, LedgerError> {
        let sql = format!("{SELECT_ACT} WHERE position > $1 ORDER BY position LIMIT $2");
        let rows = query(&self.link, &sql, &[&after, &i64::from(ROWS)]).await?;
        rows.iter().map(|row| Ok(rows::stored_act(row)?)).collect()
    }

    async fn entries(&mut self, after: i64) -> Result<Vec<ChainedEntry>, LedgerError> {
        let sql = format!("{SELECT_ENTRY} WHERE e.position > $1 ORDER BY e.position LIMIT $2");
        let rows = query(&self.link, &sql, &[&after, &i64::from(ROWS)]).await?;
        rows.iter()
            .map(|row| Ok(rows::stored_entry(row)?))
            .collect()
    }

    async fn events(&mut self, after: Option<OperationId>) -> Result<Vec<Event>, LedgerError> {
        let found = events::after(&self.link, after, ROWS as usize, Shown::All).await;
        Ok(found.map_err(unavailable)?.unwrap_or_default())
    }

    async fn rest(&mut self) -> Result<Rest, LedgerError> {
        let mut rest = Rest::default();
        for row in query(&self.link, SELECT_HOLD, &[]).await? {
            rest.holds.push(rows::stored_hold(&row)?);
        }
        let personal = "SELECT customer, data FROM personal_data";
        for row in query(&self.link, personal, &[]).await? {
            rest.personal.push(rows::row(&row)?);
        }
        let addressees = "SELECT folded, customer, data FROM addressees";
        for row in query(&self.link, addressees, &[]).await? {
            rest.addressees.push(rows::row(&row)?);
        }
        rest.deliveries = deliveries::all(&self.link).await.map_err(unavailable)?;
        rest.tables = TableSet::read(&mut &self.link).await.map_err(unavailable)?;
        let claims = "SELECT id, claim FROM accounts WHERE claim > 0";
        for row in query(&self.link, claims, &[]).await? {
            rest.claims.push(rows::row(&row)?);
        }
        rest.slugs = reads::published(&self.link).await.map_err(unavailable)?;
        rest.taught = lessons::all(&self.link).await.map_err(unavailable)?;
        rest.own_costs = reads::own_costs(&self.link, i64::MIN, i64::MAX)
            .await
            .map_err(unavailable)?;
        Ok(rest)
    }
}

/// An empty database that becomes a copy.
pub(crate) struct CopyTarget {
    link: Link,
}

impl CopyTarget {
    pub(crate) async fn open(database: &Database) -> Result<Self, LedgerError> {
        let link = Connector::new(database, ServerPurpose::Write, true)?
            .connect()
            .await
            .map_err(LedgerError::Unusable)?;
        migrations::check_server(&link.client).await?;
        migrations::refuse_content(&link.client).await?;
        Ok(Self { link })
    }
}

impl Side for CopyTarget {
    async fn customers(&mut self, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
        customers(&self.link, after).await
    }

    async fn keys(&mut self, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
        keys(&self.link, after).await
    }
}

impl TargetLedger for CopyTarget {
    async fn begin(&mut self, identity: CopyIdentity) -> Result<(), LedgerError> {
        execute(&self.link, &format!("{NO_TIMEOUT}; BEGIN")).await?;
        migrations::make(&self.link.client, &identity).await
    }

    async fn write(&mut self, part: CopyBatch) -> Result<(), LedgerError> {
        let mut rows = Rows::default();
        match part {
            CopyBatch::Customers(customers) => customers
                .into_iter()
                .for_each(|stored| rows.insert_customer(stored)),
            CopyBatch::Keys(keys) => keys.into_iter().for_each(|key| rows.insert_key(key)),
            CopyBatch::Acts(acts) => acts.into_iter().for_each(|act| rows.put_act(act)),
            CopyBatch::Entries(entries, names) => {
                for chained in entries {
                    rows.changes.roll_up(&chained.entry);
                    rows.put_entry(chained);
                }
                rows.changes.names = names;
            }
            CopyBatch::Events(events) => events
                .into_iter()
                .for_each(|event| rows.changes.events.put(event)),
            CopyBatch::Rest(rest) => rest.put(&mut rows),
        }
        flush::write_all(&self.link, &rows)
            .await
            .map_err(unavailable)
    }

    async fn finish(self) -> Result<VerifyReport, LedgerError> {
        execute(&self.link, &format!("{COUNT_OPENED}; {PLACE_NEXT}")).await?;
        self.link
            .client
            .batch_execute("COMMIT")
            .await
            .map_err(|error| unavailable(TransactionTrouble::of_commit(error)))?;
        let report = verify::verify(&self.link, &[]).await.map_err(unavailable)?;
        match report.faults.first() {
            None => Ok(report),
            Some(fault) => Err(LedgerError::unavailable(format!(
                "the copy is not sound and must not be used; drop the database and make it anew: {fault}"
            ))),
        }
    }
}
