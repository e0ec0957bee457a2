//! Events in a database: what a batch writes of them, and how they are read so that a reader misses none.
//!
//! Transactions commit in another order than they begin, so no sequence is the order in which rows become visible. Each event carries
//! the number of its transaction, and is shown once every transaction with a lower one has ended: from then on none can come before
//! it.

use async_trait::async_trait;

use super::link::Link;
use super::rows::{Columns, row};
use super::trouble::TransactionTrouble;
use super::writes::Write;
use super::{PostgresLedger, deliveries, table_rows};
use crate::batch::rows::Rows;
use crate::book::head::StoredCustomer;
use crate::store::event_rows::{OLD_AT_ONCE, OWING_OR_ASKING, kept_since};
use crate::store::rows::{Decoded, RowColumns as _, rows_at_most};
use crate::store::select::SELECT_CUSTOMER;
use crate::table::list::TableVisitor as _;
use crate::{
    Customer, DueDelivery, Event, FailedDelivery, KnownWebhook, LedgerError, OperationId, Outbox,
    Refusal, Timestamp, WantedDeliveries, WebhookId,
};

/// Whether to show only what no open transaction can precede.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Settled,
    /// All: nobody writes.
    All,
}

/// What is told, and the removal of some of what is older than is kept: more than comes in, so that it never piles up.
pub(super) fn events<'rows>(
    rows: &'rows Rows,
    writes: &mut Vec<Write<'rows>>,
) -> Result<(), TransactionTrouble> {
    let events = &rows.changes.events;
    if events.is_unchanged() {
        return Ok(());
    }
    writes.table(events)?;
    let old = "SELECT id FROM (SELECT id, at FROM events ORDER BY xid, position LIMIT $2) o WHERE at < $1";
    // Every gateway removes: what another one has locked is passed over, so that none waits for it.
    for sql in [
        format!(
            "DELETE FROM deliveries WHERE (event, webhook) IN (SELECT event, webhook FROM deliveries WHERE event IN ({old}) \
             FOR UPDATE SKIP LOCKED)"
        ),
        format!(
            "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id IN ({old}) FOR UPDATE SKIP LOCKED)"
        ),
    ] {
        let since = kept_since(rows.now()).millis();
        writes.push(Write {
            sql,
            columns: vec![Box::new(since), Box::new(OLD_AT_ONCE)],
        });
    }
    Ok(())
}

/// Events after this one, oldest first; `None` if there is no such event.
pub(super) async fn after(
    link: &Link,
    after: Option<OperationId>,
    limit: usize,
    shown: Shown,
) -> Result<Option<Vec<Event>>, TransactionTrouble> {
    let (xid, position) = match after {
        None => ("0".to_owned(), i64::MIN),
        Some(id) => {
            let sql = "SELECT xid::text, position FROM events WHERE id = $1";
            let rows = link.query(sql, &[&id.to_bytes().as_slice()]).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let mut columns = Columns::of(row);
            (columns.read()?, columns.number()?)
        }
    };
    let settled = match shown {
        Shown::Settled => " AND xid < pg_snapshot_xmin(pg_current_snapshot())",
        Shown::All => "",
    };
    let which = format!(
        "WHERE (xid, position) > ($1::text::xid8, $2){settled} ORDER BY xid, position LIMIT $3"
    );
    let limit = rows_at_most(limit);
    table_rows::read(link, &which, &[&xid, &position, &limit])
        .await
        .map(Some)
}

/// After a restore into another cluster, whose transactions are numbered anew: the events of before keep their order, and precede
/// everything that is written there. For a gateway that starts.
pub(super) async fn renumber(link: &Link) -> Result<(), TransactionTrouble> {
    let sql = "SELECT pg_advisory_xact_lock(7378697629483820646); \
         UPDATE events e SET xid = '0', position = n.place - n.count FROM \
         (SELECT id, row_number() OVER (ORDER BY xid, position) AS place, count(*) OVER () AS count FROM events) n \
         WHERE n.id = e.id AND EXISTS (SELECT 1 FROM events WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))";
    Ok(link.client.batch_execute(sql).await?)
}

/// The newest event that no open transaction can precede.
async fn newest(link: &Link) -> Result<Option<OperationId>, TransactionTrouble> {
    let sql = "SELECT id FROM events WHERE xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid DESC, position DESC LIMIT 1";
    let rows = link.query(sql, &[]).await?;
    let id = rows.first().map(|row| Columns::of(row).read());
    Ok(id.transpose()?)
}

#[async_trait]
impl Outbox for PostgresLedger {
    async fn events(
        &self,
        after_event: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError> {
        let found = self
            .readers
            .with(|link| async move { after(&link, after_event, limit, Shown::Settled).await })
            .await?;
        found.ok_or_else(|| Refusal::no_event(after_event))
    }

    async fn newest_event(&self) -> Result<Option<OperationId>, LedgerError> {
        self.readers
            .with(|link| async move { newest(&link).await })
            .await
    }

    async fn owing_or_asking(&self) -> Result<Vec<Customer>, LedgerError> {
        self.readers
            .with(|link| async move {
                let sql = format!("{SELECT_CUSTOMER} {OWING_OR_ASKING}");
                let found = link.query(&sql, &[]).await?;
                let found: Decoded<Vec<StoredCustomer>> = found.iter().map(row).collect();
                Ok(found?.into_iter().map(|stored| stored.customer).collect())
            })
            .await
    }

    async fn webhooks(&self) -> Result<Vec<KnownWebhook>, LedgerError> {
        self.readers
            .with(|link| async move { deliveries::webhooks(&link).await })
            .await
    }

    async fn failed_delivery(
        &self,
        webhook: WebhookId,
    ) -> Result<Option<FailedDelivery>, LedgerError> {
        self.readers
            .with(|link| async move { deliveries::failed(&link, webhook).await })
            .await
    }

    async fn due_deliveries(
        &self,
        wanted: Vec<WantedDeliveries>,
        now: Timestamp,
    ) -> Result<Vec<DueDelivery>, LedgerError> {
        // A lease is a write beside the batches: only of a gateway that may write.
        self.epoch_to_write_with()?;
        let wanted = &wanted;
        self.readers
            .with(|link| async move { deliveries::lease(&link, wanted, now).await })
            .await
    }
}
