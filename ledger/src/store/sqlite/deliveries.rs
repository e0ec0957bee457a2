//! Deliveries in a file: what a batch writes of them, and what is read of them. Only one gateway serves a file, so nothing is leased.

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::batch::BatchTables;
use super::rows::Columns;
use super::statements::Sql;
use crate::batch::changes::Changes;
use crate::store::delivery_rows::{self, failed_delivery, outcome_parts, webhook_columns};
use crate::table::description::DescribedRow as _;
use crate::{
    DeliveryStep, DueDelivery, Event, FailedDelivery, KnownWebhook, Timestamp, WantedDeliveries,
    WebhookId,
};

fn webhook(row: &Row<'_>) -> Result<KnownWebhook> {
    Ok(delivery_rows::webhook(&mut Columns::of(row))?)
}

impl BatchTables<'_> {
    /// Writes the steps of delivering, in their order.
    pub(super) fn deliveries(&mut self, changes: &Changes) -> Result<()> {
        for step in &changes.deliveries {
            self.delivery(step)?;
        }
        Ok(())
    }

    fn delivery(&mut self, step: &DeliveryStep) -> Result<()> {
        match step {
            DeliveryStep::Register { url, handed, at } => {
                let values = params![WebhookId::of(url).0, url, at, handed];
                self.statements.get(Sql::InsertWebhook)?.execute(values)?;
            }
            DeliveryStep::Hand {
                webhook,
                events,
                handed,
                due,
            } => {
                for event in events {
                    let values = params![event, webhook.0, due];
                    self.statements.get(Sql::InsertDelivery)?.execute(values)?;
                }
                let values = params![webhook.0, handed];
                self.statements.get(Sql::SetHanded)?.execute(values)?;
            }
            DeliveryStep::Tried {
                webhook,
                event,
                tries,
                outcome,
            } => {
                let (status, due, why) = outcome_parts(outcome);
                let values = params![event, webhook.0, status, tries, due, why];
                self.statements.get(Sql::UpdateDelivery)?.execute(values)?;
            }
            DeliveryStep::Disable { webhook, at, why } => {
                let values = params![webhook.0, at, why];
                self.statements.get(Sql::DisableWebhook)?.execute(values)?;
            }
            DeliveryStep::Enable { webhook, due } => {
                let enable = self.statements.get(Sql::EnableWebhook)?;
                enable.execute([webhook.0])?;
                let values = params![webhook.0, due];
                self.statements
                    .get(Sql::ReviveDeliveries)?
                    .execute(values)?;
            }
            DeliveryStep::Replay {
                webhook,
                events,
                due,
            } => {
                for event in events {
                    let values = params![event, webhook.0, due];
                    self.statements.get(Sql::PutDelivery)?.execute(values)?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn webhooks(conn: &Connection) -> Result<Vec<KnownWebhook>> {
    let sql = concat!(
        "SELECT ",
        webhook_columns!(),
        " FROM webhooks w ORDER BY w.url"
    );
    conn.prepare_cached(sql)?.query_map([], webhook)?.collect()
}

pub(super) fn failed(conn: &Connection, webhook: WebhookId) -> Result<Option<FailedDelivery>> {
    let sql = concat!("SELECT ", failed_delivery!());
    let mut statement = conn.prepare_cached(sql)?;
    let row = |row: &Row<'_>| Ok(delivery_rows::failed(&mut Columns::of(row))?);
    statement.query_row([webhook.0], row).optional()
}

/// What is due, including what the gateway is trying already.
pub(super) fn due(
    conn: &Connection,
    wanted: &[WantedDeliveries],
    now: Timestamp,
) -> Result<Vec<DueDelivery>> {
    let sql = format!(
        "SELECT d.webhook, d.tries, {} FROM deliveries d JOIN events e ON e.id = d.event
         WHERE d.webhook = ?1 AND d.status = 1 AND d.due <= ?2 ORDER BY d.due LIMIT ?3",
        Event::names()
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for wanted in wanted {
        let most = wanted.free.saturating_add(wanted.running);
        let rows = statement.query_map(params![wanted.webhook.0, now, most], |row| {
            Ok(delivery_rows::due(&mut Columns::of(row))?)
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    Ok(found)
}

/// The steps that make the same webhooks and deliveries elsewhere.
pub(super) fn all(conn: &Connection) -> Result<Vec<DeliveryStep>> {
    let mut steps = delivery_rows::known(webhooks(conn)?);
    let sql = "SELECT event, webhook, tries, due, why FROM deliveries WHERE status = 1 ORDER BY due, event";
    let mut statement = conn.prepare(sql)?;
    let waiting =
        statement.query_map([], |row| Ok(delivery_rows::waiting(&mut Columns::of(row))?))?;
    for row in waiting {
        steps.extend(row?);
    }
    Ok(steps)
}
