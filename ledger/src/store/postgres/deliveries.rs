//! Deliveries in a database: what a batch writes of them, and how gateways take them without trying one twice.
//!
//! A gateway leases what it tries. One that dies leaves its lease behind, and another gateway tries it again after that: an event
//! may be delivered twice, and is never lost.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::link::Link;
use super::rows::Columns;
use super::trouble::TransactionTrouble;
use super::writes::{SqlValue, Write};
use crate::batch::changes::Changes;
use crate::store::delivery_rows::{self, failed_delivery, outcome_parts, webhook_columns};
use crate::store::rows::Decoded;
use crate::table::description::DescribedRow as _;
use crate::{
    DeliveryOutcome, DeliveryStep, DueDelivery, Event, FailedDelivery, KnownWebhook, OperationId,
    Timestamp, WantedDeliveries, WebhookId,
};

/// How long a gateway may take for a try and for noting what became of it.
// Four times what a receiver may take (15 s). Shorter, and a slow receiver would get an event again while the first try still runs;
// longer, and the events of a gateway that died wait as long.
const LEASE_MS: i64 = 60_000;

/// The steps of delivering, in their order.
pub(super) fn deliveries(changes: &Changes, writes: &mut Vec<Write<'_>>) {
    for step in &changes.deliveries {
        match step {
            DeliveryStep::Tried {
                webhook,
                event,
                tries,
                outcome,
            } => writes.push(tried(*webhook, event, *tries, outcome)),
            step => delivery(step, writes),
        }
    }
}

fn delivery(step: &DeliveryStep, writes: &mut Vec<Write<'_>>) {
    let mut write = |sql: &str, columns: Vec<SqlValue<'static>>| {
        writes.push(Write {
            sql: sql.to_owned(),
            columns,
        });
    };
    match step {
        // Written by itself.
        DeliveryStep::Tried { .. } => {}
        DeliveryStep::Register { url, handed, at } => write(
            "INSERT INTO webhooks (id, url, since, handed) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            vec![
                Box::new(WebhookId::of(url).0),
                Box::new(url.clone()),
                Box::new(at.millis()),
                Box::new(handed.as_ref().map(bytes)),
            ],
        ),
        DeliveryStep::Hand {
            webhook,
            events,
            handed,
            due,
        } => {
            write(
                "INSERT INTO deliveries (event, webhook, status, tries, due) \
                 SELECT e, $2, 1, 0, $3 FROM unnest($1::bytea[]) AS e ON CONFLICT DO NOTHING",
                to_each(*webhook, events, *due),
            );
            write(
                "UPDATE webhooks SET handed = $2 WHERE id = $1",
                vec![Box::new(webhook.0), Box::new(bytes(handed))],
            );
        }
        DeliveryStep::Disable { webhook, at, why } => write(
            "UPDATE webhooks SET disabled = $2, why = $3 WHERE id = $1 AND disabled IS NULL",
            vec![
                Box::new(webhook.0),
                Box::new(at.millis()),
                Box::new(printable(why)),
            ],
        ),
        DeliveryStep::Enable { webhook, due } => {
            write(
                "UPDATE webhooks SET disabled = NULL, why = NULL WHERE id = $1",
                vec![Box::new(webhook.0)],
            );
            write(
                "UPDATE deliveries SET status = 1, tries = 0, due = $2 WHERE webhook = $1 AND status IN (1, 3)",
                vec![Box::new(webhook.0), Box::new(due.millis())],
            );
        }
        DeliveryStep::Replay {
            webhook,
            events,
            due,
        } => write(
            "INSERT INTO deliveries (event, webhook, status, tries, due) \
             SELECT e, $2, 1, 0, $3 FROM unnest($1::bytea[]) AS e \
             ON CONFLICT (event, webhook) DO UPDATE SET status = 1, tries = 0, due = excluded.due",
            to_each(*webhook, events, *due),
        ),
    }
}

/// What became of a try. It ends the lease.
fn tried(
    webhook: WebhookId,
    event: &OperationId,
    tries: u32,
    outcome: &DeliveryOutcome,
) -> Write<'static> {
    let (status, due, why) = outcome_parts(outcome);
    let sql = "UPDATE deliveries SET status = $3, tries = $4, due = coalesce($5, due), why = $6, leased = 0 \
         WHERE event = $1 AND webhook = $2";
    Write {
        sql: sql.to_owned(),
        columns: vec![
            Box::new(bytes(event)),
            Box::new(webhook.0),
            Box::new(status),
            Box::new(i64::from(tries)),
            Box::new(due.map(Timestamp::millis)),
            Box::new(why.map(printable)),
        ],
    }
}

fn bytes(id: &OperationId) -> Vec<u8> {
    id.to_bytes().to_vec()
}

fn to_each(webhook: WebhookId, events: &[OperationId], due: Timestamp) -> Vec<SqlValue<'static>> {
    let events: Vec<Vec<u8>> = events.iter().map(bytes).collect();
    vec![
        Box::new(events),
        Box::new(webhook.0),
        Box::new(due.millis()),
    ]
}

/// What was wrong, in words: a receiver's may contain what no parameter can carry.
fn printable(why: &str) -> String {
    why.replace('\0', "\u{fffd}")
}

pub(super) async fn webhooks(link: &Link) -> Result<Vec<KnownWebhook>, TransactionTrouble> {
    let sql = concat!(
        "SELECT ",
        webhook_columns!(),
        " FROM webhooks w ORDER BY w.url COLLATE \"C\""
    );
    let rows = link.query(sql, &[]).await?;
    let found: Decoded<_> = rows
        .iter()
        .map(|row| delivery_rows::webhook(&mut Columns::of(row)))
        .collect();
    Ok(found?)
}

pub(super) async fn failed(
    link: &Link,
    webhook: WebhookId,
) -> Result<Option<FailedDelivery>, TransactionTrouble> {
    let sql = concat!("SELECT ", failed_delivery!());
    let rows = link.query(sql, &[&webhook.0]).await?;
    let failed = rows
        .first()
        .map(|row| delivery_rows::failed(&mut Columns::of(row)));
    Ok(failed.transpose()?)
}

/// Leases what is due and no other gateway tries.
pub(super) async fn lease(
    link: &Link,
    wanted: &[WantedDeliveries],
    now: Timestamp,
) -> Result<Vec<DueDelivery>, TransactionTrouble> {
    // Leases are measured by the database's clock, which all gateways share.
    let sql = format!(
        "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now), \
         picked AS (SELECT d.event, d.webhook FROM unnest($1::bigint[], $2::bigint[]) AS w (webhook, free) CROSS JOIN clock \
             CROSS JOIN LATERAL (SELECT d.event, d.webhook FROM deliveries d WHERE d.webhook = w.webhook AND d.status = 1 \
                 AND d.due <= $3 AND d.leased < clock.now ORDER BY d.due LIMIT w.free FOR UPDATE SKIP LOCKED) d), \
         leased AS (UPDATE deliveries d SET leased = clock.now + $4 FROM picked p, clock \
             WHERE d.event = p.event AND d.webhook = p.webhook RETURNING d.event, d.webhook, d.tries) \
         SELECT l.webhook, l.tries, {} FROM leased l JOIN events e ON e.id = l.event",
        Event::names()
    );
    let webhooks: Vec<i64> = wanted.iter().map(|wanted| wanted.webhook.0).collect();
    let free: Vec<i64> = wanted.iter().map(|wanted| wanted.free.into()).collect();
    let values: [&(dyn ToSql + Sync); 4] = [&webhooks, &free, &now.millis(), &LEASE_MS];
    let rows = link.query(&sql, &values).await?;
    let found: Decoded<_> = rows.iter().map(due).collect();
    Ok(found?)
}

fn due(row: &Row) -> Decoded<DueDelivery> {
    delivery_rows::due(&mut Columns::of(row))
}

/// The steps that make the same webhooks and deliveries elsewhere.
pub(super) async fn all(link: &Link) -> Result<Vec<DeliveryStep>, TransactionTrouble> {
    let mut steps = delivery_rows::known(webhooks(link).await?);
    let sql = "SELECT event, webhook, tries, due, why FROM deliveries WHERE status = 1 ORDER BY due, event";
    for row in link.query(sql, &[]).await? {
        steps.extend(delivery_rows::waiting(&mut Columns::of(&row))?);
    }
    Ok(steps)
}
