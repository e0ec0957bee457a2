//! Events in a file: what a batch writes of them, and what is read of them.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteLedger;
use super::batch::BatchTables;
use super::statements::Sql;
use super::{deliveries, rows, tables};
use crate::batch::rows::Rows;
use crate::book::head::StoredCustomer;
use crate::store::event_rows::{OLD_AT_ONCE, OWING_OR_ASKING, kept_since};
use crate::store::rows::rows_at_most;
use crate::store::select::SELECT_CUSTOMER;
use crate::table::list::TableVisitor as _;
use crate::{
    Customer, DueDelivery, Event, FailedDelivery, KnownWebhook, LedgerError, OperationId, Outbox,
    Refusal, Timestamp, WantedDeliveries, WebhookId,
};

impl BatchTables<'_> {
    /// Writes what is told, and removes some of what is older than is kept: more than comes in, so that it never piles up.
    pub(super) fn events(&mut self, rows: &Rows) -> rusqlite::Result<()> {
        let events = &rows.changes.events;
        if events.is_unchanged() {
            return Ok(());
        }
        self.table(events)?;
        let old = params![kept_since(rows.now()), OLD_AT_ONCE];
        self.statements.get(Sql::ForgetDeliveries)?.execute(old)?;
        self.statements.get(Sql::ForgetEvents)?.execute(old)?;
        Ok(())
    }
}

/// Events after this one, oldest first; `None` if there is no such event.
pub(super) fn after(
    conn: &Connection,
    after: Option<OperationId>,
    limit: usize,
) -> rusqlite::Result<Option<Vec<Event>>> {
    let from: i64 = match after {
        None => i64::MIN,
        Some(id) => {
            let place = conn
                .prepare_cached("SELECT position FROM events WHERE id = ?1")?
                .query_row([id], |row| row.get(0))
                .optional()?;
            let Some(place) = place else { return Ok(None) };
            place
        }
    };
    let which = "WHERE position > ?1 ORDER BY position LIMIT ?2";
    tables::read(conn, which, params![from, rows_at_most(limit)]).map(Some)
}

#[async_trait]
impl Outbox for SqliteLedger {
    async fn events(
        &self,
        after_event: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError> {
        let readers = &self.current()?.readers;
        let found = readers
            .scan(move |conn, _| after(conn, after_event, limit))
            .await?;
        found.ok_or_else(|| Refusal::no_event(after_event))
    }

    async fn newest_event(&self) -> Result<Option<OperationId>, LedgerError> {
        self.current()?.readers.point(|conn| {
            conn.prepare_cached("SELECT id FROM events ORDER BY position DESC LIMIT 1")?
                .query_row([], |row| row.get(0))
                .optional()
        })
    }

    async fn owing_or_asking(&self) -> Result<Vec<Customer>, LedgerError> {
        let readers = &self.current()?.readers;
        readers
            .scan(|conn, _| {
                let sql = format!("{SELECT_CUSTOMER} {OWING_OR_ASKING}");
                let mut statement = conn.prepare_cached(&sql)?;
                let found = statement.query_map([], rows::row::<StoredCustomer>)?;
                found.map(|stored| Ok(stored?.customer)).collect()
            })
            .await
    }

    async fn webhooks(&self) -> Result<Vec<KnownWebhook>, LedgerError> {
        let readers = &self.current()?.readers;
        readers.scan(|conn, _| deliveries::webhooks(conn)).await
    }

    async fn failed_delivery(
        &self,
        webhook: WebhookId,
    ) -> Result<Option<FailedDelivery>, LedgerError> {
        let readers = &self.current()?.readers;
        readers
            .scan(move |conn, _| deliveries::failed(conn, webhook))
            .await
    }

    async fn due_deliveries(
        &self,
        wanted: Vec<WantedDeliveries>,
        now: Timestamp,
    ) -> Result<Vec<DueDelivery>, LedgerError> {
        let readers = &self.current()?.readers;
        readers
            .scan(move |conn, _| deliveries::due(conn, &wanted, now))
            .await
    }
}
