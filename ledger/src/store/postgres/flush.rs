//! Second round trip of a batch: writes what the operations changed in a few multi-row statements, then COMMIT.
//!
//! Everything is sent at once, COMMIT last. If a statement fails, the server turns COMMIT into a rollback; if COMMIT gets no
//! answer, or a warning, the outcome is unknown.

use std::pin::Pin;
use std::task::Poll;

use super::batch::{Batch, KeySlot, Slot};
use super::link::Link;
use super::rows::number;
use super::trouble::Trouble;
use super::votes;
use super::writes::{Value, Write, column, insert, update, write};
use crate::batch::tx::StoredHold;
use crate::book::chain::{ChainedEntry, evidence_code, kind_code};
use crate::store::stored;
use crate::{Bill, Entry, KeyId, Timestamp};

/// The pending result of a statement.
type Answer<'link> =
    Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send + 'link>>;

/// Writes a batch and commits it.
pub(super) async fn flush(link: &Link, batch: &Batch) -> Result<(), Trouble> {
    // A batch that changes nothing has still locked its keys, and so waits for a standby: what it repeats is confirmed only then.
    let writes = writes(batch)?;
    let mut prepared = Vec::with_capacity(writes.len());
    for write in &writes {
        prepared.push((link.prepared(&write.sql).await?, write.values()));
    }
    link.take_warning();
    let mut answers: Vec<Answer<'_>> = Vec::new();
    for (statement, values) in &prepared {
        answers.push(Box::pin(async move {
            link.client.execute(statement, values).await.map(drop)
        }));
    }
    answers.push(Box::pin(link.client.batch_execute("COMMIT")));
    in_order(answers).await?;
    if link.take_warning() {
        Err(Trouble::Unknown(
            "the server committed with a warning".to_owned(),
        ))
    } else {
        Ok(())
    }
}

/// Writes a batch and leaves the transaction open.
pub(super) async fn write_all(link: &Link, batch: &Batch) -> Result<(), Trouble> {
    for write in &writes(batch)? {
        link.client
            .execute(&link.prepared(&write.sql).await?, &write.values())
            .await?;
    }
    Ok(())
}

/// Sends all in order, waits for all, and returns the first failure.
async fn in_order(mut answers: Vec<Answer<'_>>) -> Result<(), Trouble> {
    let mut failed: Vec<Option<Trouble>> = Vec::new();
    failed.resize_with(answers.len(), || None);
    let mut open: Vec<usize> = (0..answers.len()).collect();
    std::future::poll_fn(|context| {
        open.retain(|at| {
            match answers
                .get_mut(*at)
                .map(|answer| answer.as_mut().poll(context))
            {
                Some(Poll::Pending) => true,
                Some(Poll::Ready(Err(error))) => {
                    if let Some(place) = failed.get_mut(*at) {
                        *place = Some(Trouble::of_commit(&error));
                    }
                    false
                }
                Some(Poll::Ready(Ok(()))) | None => false,
            }
        });
        if open.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    failed.into_iter().flatten().next().map_or(Ok(()), Err)
}

fn writes(batch: &Batch) -> Result<Vec<Write>, Trouble> {
    let mut writes = Vec::new();
    keys(batch, &mut writes)?;
    accounts(batch, &mut writes);
    holds(batch, &mut writes)?;
    entries(batch, &mut writes)?;
    usage(batch, &mut writes);
    acts(batch, &mut writes);
    access(batch, &mut writes);
    votes::flush(batch, &mut writes);
    Ok(writes)
}

fn json(value: &impl serde::Serialize) -> Result<String, Trouble> {
    serde_json::to_string(value).map_err(|error| Trouble::Failed(error.to_string()))
}

fn keys(batch: &Batch, writes: &mut Vec<Write>) -> Result<(), Trouble> {
    for is_new in [true, false] {
        let mut rows: Vec<(&KeySlot, Option<String>)> = Vec::new();
        for slot in batch
            .keys
            .values()
            .filter(|slot| slot.is_new == is_new && (is_new || slot.settings_changed))
        {
            let models = slot
                .stored
                .key
                .settings
                .models
                .as_ref()
                .map(json)
                .transpose()?;
            rows.push((slot, models));
        }
        if rows.is_empty() {
            continue;
        }
        let mut columns = vec![
            (
                "id",
                "bigint",
                column(&rows, |(slot, _)| slot.stored.key.id.to_i64()),
            ),
            (
                "label",
                "text",
                column(&rows, |(slot, _)| slot.stored.key.settings.label.clone()),
            ),
            (
                "models",
                "text",
                column(&rows, |(_, models)| models.clone()),
            ),
            (
                "expires_at",
                "bigint",
                column(&rows, |(slot, _)| {
                    slot.stored.key.settings.expires_at.map(Timestamp::millis)
                }),
            ),
            (
                "rate",
                "bigint",
                column(&rows, |(slot, _)| {
                    slot.stored.key.settings.rate.map(i64::from)
                }),
            ),
            (
                "concurrency",
                "bigint",
                column(&rows, |(slot, _)| {
                    slot.stored.key.settings.concurrency.map(i64::from)
                }),
            ),
            (
                "status",
                "bigint",
                column(&rows, |(slot, _)| {
                    stored::status_code(slot.stored.key.stored_status)
                }),
            ),
            (
                "secret",
                "bytea",
                column(&rows, |(slot, _)| slot.stored.key.secret.0.to_vec()),
            ),
            (
                "old_secret",
                "bytea",
                column(&rows, |(slot, _)| {
                    slot.stored.key.old_secret.map(|(hash, _)| hash.0.to_vec())
                }),
            ),
            (
                "old_until",
                "bigint",
                column(&rows, |(slot, _)| {
                    slot.stored.key.old_secret.map(|(_, until)| until.millis())
                }),
            ),
            (
                "audit_seq",
                "bigint",
                column(&rows, |(slot, _)| slot.stored.audit.seq),
            ),
            (
                "audit_last",
                "bigint",
                column(&rows, |(slot, _)| slot.stored.audit.last),
            ),
            (
                "audit_hash",
                "bytea",
                column(&rows, |(slot, _)| slot.stored.audit.hash.to_vec()),
            ),
        ];
        if is_new {
            columns.push((
                "created_at",
                "bigint",
                column(&rows, |(slot, _)| slot.stored.key.created_at.millis()),
            ));
            columns.push((
                "created_by",
                "text",
                column(&rows, |(slot, _)| slot.stored.key.created_by.clone()),
            ));
            writes.push(write(insert("keys", &columns), columns));
        } else {
            writes.push(write(update("keys", "id", &columns), columns));
        }
    }
    Ok(())
}

fn accounts(batch: &Batch, writes: &mut Vec<Write>) {
    for is_new in [true, false] {
        let wanted = |slot: &&KeySlot| slot.is_new == is_new && (is_new || slot.account_changed);
        let rows: Vec<&KeySlot> = batch.keys.values().filter(wanted).collect();
        if rows.is_empty() {
            continue;
        }
        let columns = vec![
            (
                "id",
                "bigint",
                column(&rows, |slot| slot.stored.key.id.to_i64()),
            ),
            (
                "credit",
                "bigint",
                column(&rows, |slot| slot.stored.key.account.credit.picos()),
            ),
            (
                "spent",
                "bigint",
                column(&rows, |slot| slot.stored.key.account.spent.picos()),
            ),
            (
                "held",
                "bigint",
                column(&rows, |slot| slot.stored.key.account.held.picos()),
            ),
            ("seq", "bigint", column(&rows, |slot| slot.stored.head.seq)),
            (
                "last",
                "bigint",
                column(&rows, |slot| slot.stored.head.last),
            ),
            (
                "last_at",
                "bigint",
                column(&rows, |slot| {
                    slot.stored.head.last_at.map(Timestamp::millis)
                }),
            ),
            (
                "hash",
                "bytea",
                column(&rows, |slot| slot.stored.head.hash.to_vec()),
            ),
            (
                "opened",
                "bigint",
                column(&rows, |slot| slot.traffic.opened),
            ),
            (
                "running",
                "bigint",
                column(&rows, |slot| slot.traffic.running),
            ),
            (
                "paced_to",
                "bigint",
                column(&rows, |slot| slot.traffic.paced_to),
            ),
        ];
        let sql = if is_new {
            insert("accounts", &columns)
        } else {
            update("accounts", "id", &columns)
        };
        writes.push(write(sql, columns));
    }
}

fn holds(batch: &Batch, writes: &mut Vec<Write>) -> Result<(), Trouble> {
    let changed = || batch.holds.iter().filter(|(_, slot)| slot.changed);
    let gone: Vec<_> = changed()
        .filter(|(_, slot)| slot.was_stored && slot.now.is_none())
        .map(|(id, _)| id)
        .collect();
    if !gone.is_empty() {
        let columns = vec![(
            "request",
            "bytea",
            column(&gone, |id| id.to_bytes().to_vec()),
        )];
        writes.push(write(
            "DELETE FROM holds WHERE request = ANY ($1::bytea[])".to_owned(),
            columns,
        ));
    }
    for was_stored in [true, false] {
        let mut rows: Vec<(&StoredHold, Option<String>)> = Vec::new();
        for hold in changed()
            .filter(|(_, slot)| slot.was_stored == was_stored)
            .filter_map(|(_, slot)| slot.now.as_ref())
        {
            rows.push((hold, hold.checkpoint.as_ref().map(json).transpose()?));
        }
        if rows.is_empty() {
            continue;
        }
        let mut columns = vec![
            (
                "request",
                "bytea",
                column(&rows, |(hold, _)| hold.open.request.to_bytes().to_vec()),
            ),
            (
                "amount",
                "bigint",
                column(&rows, |(hold, _)| hold.open.amount.picos()),
            ),
            (
                "used",
                "bigint",
                column(&rows, |(hold, _)| hold.open.used.picos()),
            ),
            (
                "checkpoint",
                "text",
                column(&rows, |(_, checkpoint)| checkpoint.clone()),
            ),
        ];
        if was_stored {
            writes.push(write(update("holds", "request", &columns), columns));
            continue;
        }
        columns.extend([
            (
                "key",
                "bigint",
                column(&rows, |(hold, _)| hold.open.key.to_i64()),
            ),
            (
                "opened",
                "bigint",
                column(&rows, |(hold, _)| hold.opened.picos()),
            ),
            (
                "slug",
                "text",
                column(&rows, |(hold, _)| hold.open.slug.clone()),
            ),
            (
                "family",
                "text",
                column(&rows, |(hold, _)| hold.open.family.clone()),
            ),
            (
                "at",
                "bigint",
                column(&rows, |(hold, _)| hold.open.at.millis()),
            ),
            (
                "epoch",
                "bigint",
                column(&rows, |(hold, _)| hold.open.epoch),
            ),
        ]);
        writes.push(write(insert("holds", &columns), columns));
    }
    Ok(())
}

/// An entry with its derived texts.
struct Row<'batch> {
    entry: &'batch Entry,
    hash: Vec<u8>,
    format: i64,
    lines: Option<String>,
    facts: Option<String>,
}

impl Row<'_> {
    fn bill<T>(&self, pick: impl Fn(&Bill) -> T) -> Option<T> {
        self.entry.bill.as_ref().map(pick)
    }

    fn count(&self, pick: fn(&Bill) -> u64) -> Option<i64> {
        self.bill(|bill| number(pick(bill)))
    }
}

fn entries(batch: &Batch, writes: &mut Vec<Write>) -> Result<(), Trouble> {
    let mut rows = Vec::with_capacity(batch.new_entries.len());
    for ChainedEntry {
        entry,
        format,
        hash,
    } in &batch.new_entries
    {
        let bill = entry.bill.as_ref();
        let lines = bill.map(|bill| stored::lines_text(&bill.lines)).transpose();
        let lines = lines.map_err(|error| Trouble::Failed(error.to_string()))?;
        let pairs = bill.map(Bill::pairs).filter(|pairs| !pairs.is_empty());
        let facts = pairs.map(|pairs| json(&pairs)).transpose()?;
        rows.push(Row {
            entry,
            hash: hash.to_vec(),
            format: *format,
            lines,
            facts,
        });
    }
    if rows.is_empty() {
        return Ok(());
    }
    let columns = entry_columns(&rows);
    writes.push(write(insert("entries", &columns), columns));
    let mut named = batch.new_names.clone();
    named.sort();
    if !named.is_empty() {
        let columns = vec![
            (
                "folded",
                "text",
                column(&named, |(folded, _)| folded.clone()),
            ),
            (
                "operation",
                "bytea",
                column(&named, |(_, operation)| operation.to_bytes().to_vec()),
            ),
        ];
        writes.push(write(insert("refs", &columns), columns));
    }
    Ok(())
}

fn entry_columns<'a>(rows: &[Row<'_>]) -> Vec<(&'a str, &'a str, Value)> {
    let mut columns = vec![
        ("key", "bigint", column(rows, |row| row.entry.key.to_i64())),
        ("seq", "bigint", column(rows, |row| row.entry.seq)),
        ("position", "bigint", column(rows, |row| row.entry.position)),
        (
            "operation",
            "bytea",
            column(rows, |row| row.entry.operation.to_bytes().to_vec()),
        ),
        (
            "kind",
            "bigint",
            column(rows, |row| kind_code(row.entry.kind)),
        ),
        (
            "amount",
            "bigint",
            column(rows, |row| row.entry.amount.picos()),
        ),
        (
            "balance_after",
            "bigint",
            column(rows, |row| row.entry.balance_after.picos()),
        ),
        ("at", "bigint", column(rows, |row| row.entry.at.millis())),
        ("actor", "text", column(rows, |row| row.entry.actor.clone())),
        (
            "reference",
            "text",
            column(rows, |row| row.entry.reference.clone()),
        ),
        (
            "reason",
            "text",
            column(rows, |row| row.entry.reason.clone()),
        ),
        (
            "refunds",
            "bytea",
            column(rows, |row| {
                row.entry.refunds.map(|request| request.to_bytes().to_vec())
            }),
        ),
        ("lines", "text", column(rows, |row| row.lines.clone())),
        ("facts", "text", column(rows, |row| row.facts.clone())),
        ("format", "bigint", column(rows, |row| row.format)),
        ("hash", "bytea", column(rows, |row| row.hash.clone())),
    ];
    columns.extend([
        (
            "slug",
            "text",
            column(rows, |row| row.bill(|bill| bill.slug.clone())),
        ),
        (
            "family",
            "text",
            column(rows, |row| row.bill(|bill| bill.family.clone())),
        ),
        (
            "target",
            "text",
            column(rows, |row| row.bill(|bill| bill.target.clone())),
        ),
        (
            "status",
            "bigint",
            column(rows, |row| row.bill(|bill| i64::from(bill.status))),
        ),
        (
            "end_reason",
            "text",
            column(rows, |row| {
                row.bill(|bill| bill.end_reason.as_str().to_owned())
            }),
        ),
        (
            "first_byte_ms",
            "bigint",
            column(rows, |row| {
                row.bill(|bill| bill.first_byte_ms.map(i64::from)).flatten()
            }),
        ),
        (
            "total_ms",
            "bigint",
            column(rows, |row| row.bill(|bill| i64::from(bill.total_ms))),
        ),
        (
            "answer_id",
            "text",
            column(rows, |row| {
                row.bill(|bill| bill.answer_id.clone()).flatten()
            }),
        ),
        (
            "hold",
            "bigint",
            column(rows, |row| row.bill(|bill| bill.hold.picos())),
        ),
        (
            "loss",
            "bigint",
            column(rows, |row| row.bill(|bill| bill.loss.picos())),
        ),
        (
            "evidence",
            "bigint",
            column(rows, |row| {
                row.bill(|bill| bill.evidence.map(evidence_code)).flatten()
            }),
        ),
        (
            "input",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.input)),
        ),
        (
            "cache_read",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.cache_read)),
        ),
        (
            "cache_write",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.cache_write)),
        ),
        (
            "cache_write_1h",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.cache_write_1h)),
        ),
        (
            "output",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.output)),
        ),
        (
            "reasoning",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.reasoning)),
        ),
        (
            "images",
            "bigint",
            column(rows, |row| row.count(|bill| bill.usage.images)),
        ),
    ]);
    columns
}

fn usage(batch: &Batch, writes: &mut Vec<Write>) {
    let rows: Vec<_> = batch.usage.iter().collect();
    if rows.is_empty() {
        return;
    }
    let columns = vec![
        ("key", "bigint", column(&rows, |(place, _)| place.0)),
        ("hour", "bigint", column(&rows, |(place, _)| place.1)),
        ("slug", "text", column(&rows, |(place, _)| place.2.clone())),
        (
            "target",
            "text",
            column(&rows, |(place, _)| place.3.clone()),
        ),
        (
            "requests",
            "bigint",
            column(&rows, |(_, row)| number(row.requests)),
        ),
        (
            "input",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.input)),
        ),
        (
            "cache_read",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.cache_read)),
        ),
        (
            "cache_write",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.cache_write)),
        ),
        (
            "cache_write_1h",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.cache_write_1h)),
        ),
        (
            "output",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.output)),
        ),
        (
            "reasoning",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.reasoning)),
        ),
        (
            "images",
            "bigint",
            column(&rows, |(_, row)| number(row.usage.images)),
        ),
        (
            "charge",
            "bigint",
            column(&rows, |(_, row)| row.charge.picos()),
        ),
        ("loss", "bigint", column(&rows, |(_, row)| row.loss.picos())),
        (
            "exposure",
            "bigint",
            column(&rows, |(_, row)| row.exposure.picos()),
        ),
        ("cost", "bigint", column(&rows, |(_, row)| row.cost.picos())),
    ];
    // Sums saturate, as they do on SQLite; an hour comes nowhere near the limit.
    let added: Vec<String> = columns
        .iter()
        .skip(4)
        .map(|(name, ..)| {
            format!(
                "{name} = least(t.{name}::numeric + excluded.{name}, {})::bigint",
                i64::MAX
            )
        })
        .collect();
    let sql = format!(
        "{} ON CONFLICT (key, hour, slug, target) DO UPDATE SET {}",
        insert("usage AS t", &columns),
        added.join(", ")
    );
    writes.push(write(sql, columns));
}

fn acts(batch: &Batch, writes: &mut Vec<Write>) {
    let rows = &batch.new_acts;
    if rows.is_empty() {
        return;
    }
    let columns = vec![
        (
            "key",
            "bigint",
            column(rows, |act| act.record.record.key.to_i64()),
        ),
        ("seq", "bigint", column(rows, |act| act.record.seq)),
        (
            "position",
            "bigint",
            column(rows, |act| act.record.record.position),
        ),
        (
            "operation",
            "bytea",
            column(rows, |act| act.record.record.operation.to_bytes().to_vec()),
        ),
        (
            "act",
            "text",
            column(rows, |act| act.record.record.act.clone()),
        ),
        (
            "actor",
            "text",
            column(rows, |act| act.record.record.actor.clone()),
        ),
        (
            "at",
            "bigint",
            column(rows, |act| act.record.record.at.millis()),
        ),
        (
            "details",
            "text",
            column(rows, |act| act.record.record.details.clone()),
        ),
        (
            "state",
            "text",
            column(rows, |act| act.record.state.clone()),
        ),
        ("format", "bigint", column(rows, |act| act.format)),
        ("hash", "bytea", column(rows, |act| act.hash.to_vec())),
    ];
    writes.push(write(insert("audit", &columns), columns));
}

/// Sessions, links and published slugs. Expired rows that another transaction has locked are left for a later batch.
fn access(batch: &Batch, writes: &mut Vec<Write>) {
    for (table, ended, forget) in [
        ("sessions", &batch.ended_sessions, batch.forget_sessions),
        ("links", &batch.ended_links, batch.forget_links),
    ] {
        let ended: Vec<i64> = ended.iter().copied().collect();
        if !ended.is_empty() {
            let columns = vec![("key", "bigint", column(&ended, |key| *key))];
            writes.push(write(
                format!("DELETE FROM {table} WHERE key = ANY ($1::bigint[])"),
                columns,
            ));
        }
        if let Some(now) = forget {
            let sql = format!(
                "DELETE FROM {table} WHERE token IN (SELECT token FROM {table} WHERE expires <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)"
            );
            writes.push(Write {
                sql,
                columns: vec![Box::new(now.millis())],
            });
        }
    }
    let sessions: Vec<_> = batch.sessions.iter().collect();
    replaced("sessions", &sessions, writes, |rows| {
        vec![
            ("token", "bytea", column(rows, |(token, _)| token.to_vec())),
            (
                "key",
                "bigint",
                column(rows, |(_, session)| session.key.to_i64()),
            ),
            (
                "at",
                "bigint",
                column(rows, |(_, session)| session.at.millis()),
            ),
            (
                "expires",
                "bigint",
                column(rows, |(_, session)| session.expires.millis()),
            ),
        ]
    });
    let links: Vec<_> = batch.links.iter().collect();
    replaced(
        "links",
        &links,
        writes,
        |rows: &[(&[u8; 32], &(KeyId, Timestamp))]| {
            vec![
                ("token", "bytea", column(rows, |(token, _)| token.to_vec())),
                ("key", "bigint", column(rows, |(_, (key, _))| key.to_i64())),
                (
                    "expires",
                    "bigint",
                    column(rows, |(_, (_, expires))| expires.millis()),
                ),
            ]
        },
    );
    let slugs: Vec<_> = batch.published.iter().collect();
    if !slugs.is_empty() {
        let columns = vec![
            ("slug", "text", column(&slugs, |(slug, _)| (*slug).clone())),
            (
                "published_at",
                "bigint",
                column(&slugs, |(_, at)| at.millis()),
            ),
        ];
        writes.push(write(
            format!("{} ON CONFLICT DO NOTHING", insert("slugs", &columns)),
            columns,
        ));
    }
}

/// Deletes the stored rows that changed and inserts their current state.
fn replaced<T>(
    table: &str,
    slots: &[(&[u8; 32], &Slot<T>)],
    writes: &mut Vec<Write>,
    columns: impl Fn(&[(&[u8; 32], &T)]) -> Vec<(&'static str, &'static str, Value)>,
) {
    let changed = || slots.iter().filter(|(_, slot)| slot.changed);
    let gone: Vec<&[u8; 32]> = changed()
        .filter(|(_, slot)| slot.was_stored)
        .map(|(token, _)| *token)
        .collect();
    if !gone.is_empty() {
        let columns = vec![("token", "bytea", column(&gone, |token| token.to_vec()))];
        writes.push(write(
            format!("DELETE FROM {table} WHERE token = ANY ($1::bytea[])"),
            columns,
        ));
    }
    let rows: Vec<(&[u8; 32], &T)> = changed()
        .filter_map(|(token, slot)| Some((*token, slot.now.as_ref()?)))
        .collect();
    if !rows.is_empty() {
        let columns = columns(&rows);
        writes.push(write(insert(table, &columns), columns));
    }
}
