//! What a batch has changed, as statements: one for everything that requests change, and at most three for each of the other
//! tables, each for all of its rows.

use super::deliveries::deliveries;
use super::events::events;
use super::lessons::taught;
use super::owner_tables::{accounts, customers, grants, keys, personal, watched};
use super::trouble::TransactionTrouble;
use super::writes::{TableWrite, Write, joined, listed};
use crate::batch::changes::{Changes, UsagePlace};
use crate::batch::rows::Rows;
use crate::book::chain::{ChainedEntry, evidence_code, kind_code};
use crate::rule::hold::StoredHold;
use crate::store::codes;
use crate::store::rows::{number, served_columns};
use crate::{Amount, Bill, KeyId, OperationId, RunSum, Session, UsageKind, UsageRow};

/// The statements that write a batch, in their order.
pub(super) fn writes(rows: &Rows) -> Result<Vec<Write<'_>>, TransactionTrouble> {
    // Every row of these is written once, and by whoever has locked its customer.
    let mut of_requests = Vec::new();
    accounts(rows, &mut of_requests);
    keys(rows, &mut of_requests);
    holds(rows, &mut of_requests)?;
    entries(rows, &mut of_requests)?;
    usage(&rows.changes, &mut of_requests);
    let mut writes = Vec::from_iter(joined(of_requests));
    customers(rows, &mut writes);
    grants(rows, &mut writes);
    watched(rows, &mut writes);
    runs(&rows.changes, &mut writes);
    personal(&rows.changes, &mut writes);
    references(&rows.changes, &mut writes);
    acts(rows, &mut writes);
    slugs(&rows.changes, &mut writes);
    taught(&rows.changes, &mut writes);
    own_costs(&rows.changes, &mut writes);
    ended_access(&rows.changes, &mut writes);
    if let Some(forgotten) = rows.changes.forget_answers {
        writes.push(Write {
            sql: "DELETE FROM answers WHERE at <= $1".to_owned(),
            columns: vec![Box::new(forgotten.millis())],
        });
    }
    rows.tables.each(&mut writes)?;
    crowded(&rows.changes, &mut writes);
    events(rows, &mut writes)?;
    deliveries(&rows.changes, &mut writes);
    Ok(writes)
}

fn json(value: &impl serde::Serialize) -> Result<String, TransactionTrouble> {
    Ok(serde_json::to_string(value)?)
}

const fn bytes(id: &OperationId) -> &[u8] {
    id.as_bytes()
}

fn holds<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) -> Result<(), TransactionTrouble> {
    let mut changed: Vec<_> = rows.changed_holds().collect();
    changed.sort_by_key(|(request, _)| *request);
    let gone: Vec<&OperationId> = changed
        .iter()
        .filter(|(_, row)| row.was_stored && row.now.is_none())
        .map(|(request, _)| *request)
        .collect();
    if !gone.is_empty() {
        let table = TableWrite::of("holds", &gone).bytes("request", |request| bytes(request));
        writes.push(table.delete());
    }
    for was_stored in [true, false] {
        let mut found: Vec<(&StoredHold, Option<String>)> = Vec::new();
        for hold in changed
            .iter()
            .filter(|(_, row)| row.was_stored == was_stored)
            .filter_map(|(_, row)| row.now.as_ref())
        {
            found.push((hold, hold.checkpoint.as_ref().map(json).transpose()?));
        }
        if found.is_empty() {
            continue;
        }
        let table = TableWrite::of("holds", &found)
            .bytes("request", |(hold, _)| bytes(&hold.open.request))
            .number("amount", |(hold, _)| hold.open.amount.picos())
            .number("used", |(hold, _)| hold.open.used.picos())
            .number("moves", |(hold, _)| i64::from(hold.moves))
            .text("checkpoint", |(_, checkpoint)| checkpoint.clone());
        // Most customers have no grants.
        let has_parts = was_stored || found.iter().any(|(hold, _)| !hold.parts.is_empty());
        let table = if has_parts {
            table.text("parts", |(hold, _)| codes::parts_text(&hold.parts))
        } else {
            table
        };
        if was_stored {
            writes.push(table.update(&["request"]));
            continue;
        }
        let table = table
            .number("key", |(hold, _)| hold.open.key.to_i64())
            .number("opened", |(hold, _)| hold.opened.picos())
            .text("slug", |(hold, _)| hold.open.slug.as_str())
            .text("family", |(hold, _)| hold.open.family.as_str())
            .number("at", |(hold, _)| hold.open.at.millis())
            .number("epoch", |(hold, _)| hold.open.epoch)
            .number("day", |(hold, _)| hold.day.number());
        writes.push(table.insert(""));
    }
    Ok(())
}

/// An entry with its derived texts.
struct EntryRow<'batch> {
    chained: &'batch ChainedEntry,
    lines: Option<String>,
    facts: Option<String>,
}

impl<'batch> EntryRow<'batch> {
    fn bill<T>(&self, pick: impl Fn(&'batch Bill) -> T) -> Option<T> {
        self.chained.entry.bill.as_ref().map(pick)
    }

    fn count(&self, kind: UsageKind) -> Option<i64> {
        self.bill(|bill| number(bill.usage[kind]))
    }
}

fn entries<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) -> Result<(), TransactionTrouble> {
    let mut found = Vec::new();
    for chained in rows.new_entries() {
        let bill = chained.entry.bill.as_ref();
        let lines = bill.map(|bill| codes::lines_text(&bill.lines)).transpose();
        let pairs = bill.map(Bill::pairs).filter(|pairs| !pairs.is_empty());
        found.push(EntryRow {
            chained,
            lines: lines?,
            facts: pairs.map(|pairs| json(&pairs)).transpose()?,
        });
    }
    if !found.is_empty() {
        let table = with_bill(with_entry(TableWrite::of("entries", &found)));
        let has_parts = found.iter().any(|row| !row.chained.entry.parts.is_empty());
        let table = if has_parts {
            table.text("parts", |row| codes::parts_text(&row.chained.entry.parts))
        } else {
            table
        };
        writes.push(table.insert(""));
    }
    Ok(())
}

fn references<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let mut names: Vec<&(String, OperationId)> = changes.names.iter().collect();
    names.sort();
    if !names.is_empty() {
        let table = TableWrite::of("refs", &names)
            .text("folded", |(folded, _)| folded.as_str())
            .bytes("operation", |(_, operation)| bytes(operation));
        writes.push(table.insert(""));
    }
}

fn with_entry<'a, 'b>(table: TableWrite<'a, 'b, EntryRow<'b>>) -> TableWrite<'a, 'b, EntryRow<'b>> {
    table
        .number("customer", |row| row.chained.entry.customer.to_i64())
        .number("key", |row| {
            codes::key_number(row.chained.entry.customer, row.chained.entry.key)
        })
        .number("seq", |row| row.chained.entry.seq)
        .number("position", |row| row.chained.entry.position)
        .bytes("operation", |row| bytes(&row.chained.entry.operation))
        .number("kind", |row| kind_code(row.chained.entry.kind))
        .number("amount", |row| row.chained.entry.amount.picos())
        .number("balance_after", |row| {
            row.chained.entry.balance_after.picos()
        })
        .number("at", |row| row.chained.entry.at.millis())
        .text("actor", |row| row.chained.entry.actor.as_str())
        .text("reference", |row| row.chained.entry.reference.as_deref())
        .text("reason", |row| row.chained.entry.reason.as_deref())
        .bytes("refunds", |row| {
            row.chained.entry.refunds.as_ref().map(bytes)
        })
        .text("lines", |row| row.lines.clone())
        .text("facts", |row| row.facts.clone())
        .number("format", |row| row.chained.format)
        .bytes("hash", |row| row.chained.hash.as_slice())
}

fn with_bill<'a, 'b>(table: TableWrite<'a, 'b, EntryRow<'b>>) -> TableWrite<'a, 'b, EntryRow<'b>> {
    let table = table
        .text("slug", |row| row.bill(|bill| bill.slug.as_str()))
        .text("family", |row| row.bill(|bill| bill.family.as_str()))
        .text("target", |row| row.bill(|bill| bill.target.as_str()))
        .number("status", |row| row.bill(|bill| i64::from(bill.status)))
        .text("end_reason", |row| {
            row.bill(|bill| bill.end_reason.as_str())
        })
        .number("first_byte_ms", |row| {
            row.bill(|bill| bill.first_byte_ms.map(i64::from)).flatten()
        })
        .number("total_ms", |row| row.bill(|bill| i64::from(bill.total_ms)))
        .text("answer_id", |row| {
            row.bill(|bill| bill.answer_id.as_deref()).flatten()
        })
        .number("hold", |row| row.bill(|bill| bill.hold.picos()))
        .number("loss", |row| row.bill(|bill| bill.loss.picos()))
        .number("evidence", |row| {
            row.bill(|bill| bill.evidence.map(evidence_code)).flatten()
        });
    UsageKind::FIRST.into_iter().fold(table, |table, kind| {
        table.number(kind.name(), |row| row.count(kind))
    })
}

type UsageSums<'a, 'b> = TableWrite<'a, 'b, (&'b UsagePlace, &'b UsageRow)>;

fn counts<'a, 'b>(sums: UsageSums<'a, 'b>, kinds: &[UsageKind]) -> UsageSums<'a, 'b> {
    kinds.iter().fold(sums, |sums, kind| {
        sums.number(kind.name(), |(_, row)| number(row.usage[*kind]))
    })
}

fn usage<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let rows: Vec<_> = changes.usage.iter().collect();
    if rows.is_empty() {
        return;
    }
    let sums = TableWrite::of("usage", &rows).number("requests", |(_, row)| number(row.requests));
    let sums = counts(sums, &UsageKind::FIRST)
        .number("charge", |(_, row)| row.charge.picos())
        .number("loss", |(_, row)| row.loss.picos())
        .number("exposure", |(_, row)| row.exposure.picos())
        .number("cost", |(_, row)| row.cost.picos());
    // Most batches need none of the later columns, whose defaults say so.
    let ordinary = |(place, row): &(&UsagePlace, &UsageRow)| {
        place.served.is_ordinary()
            && row.told == Amount::ZERO
            && UsageKind::LATER.map(|kind| row.usage[kind]) == [0; 2]
    };
    let ordinary = rows.iter().all(ordinary);
    let sums = if ordinary {
        sums
    } else {
        counts(sums, &UsageKind::LATER).number("told", |(_, row)| row.told.picos())
    };
    // Sums saturate, as they do on SQLite; an hour comes nowhere near the limit.
    let most = i64::MAX;
    let added = listed(sums.names().map(|name| {
        format!("{name} = least(t.{name}::numeric + excluded.{name}, {most})::bigint")
    }));
    let placed = sums
        .number("key", |(place, _)| place.key.to_i64())
        .number("hour", |(place, _)| place.hour)
        .text("slug", |(place, _)| place.slug.as_str())
        .text("target", |(place, _)| place.target.as_str());
    let placed = if ordinary {
        placed
    } else {
        placed
            .text("tier", |(place, _)| place.served.tier.as_str())
            .text("place", |(place, _)| place.served.place.as_str())
            .number("context_band", |(place, _)| {
                i64::from(place.served.context_band)
            })
            .text("account", |(place, _)| place.served.account.as_str())
    };
    let conflict = concat!(
        " ON CONFLICT (key, hour, slug, target, ",
        served_columns!(),
        ") DO UPDATE SET "
    );
    writes.push(placed.insert(&format!("{conflict}{added}")));
}

/// One statement for each: whether a name is one too many, the names before it decide.
fn runs<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    const ADD: &str = "INSERT INTO runs AS t (customer, month, run, key, requests, charge) VALUES ($1::bigint, $2::bigint, \
         CASE WHEN EXISTS (SELECT 1 FROM runs WHERE customer = $1::bigint AND month = $2::bigint AND run = $3::text) \
             OR (SELECT count(DISTINCT run) FROM runs WHERE customer = $1::bigint AND month = $2::bigint AND run <> '') < $7::bigint \
         THEN $3::text ELSE '' END, $4::bigint, $5::bigint, $6::bigint) \
         ON CONFLICT (customer, month, run, key) DO UPDATE SET requests = t.requests + excluded.requests, \
             charge = least(t.charge::numeric + excluded.charge, 9223372036854775807)::bigint";
    for (place, (requests, charge)) in &changes.runs {
        writes.push(Write {
            sql: ADD.to_owned(),
            columns: vec![
                Box::new(place.customer.to_i64()),
                Box::new(place.month.number()),
                Box::new(place.run.as_str()),
                Box::new(place.key.to_i64()),
                Box::new(number(*requests)),
                Box::new(charge.picos()),
                Box::new(i64::from(RunSum::MOST_NAMES)),
            ],
        });
    }
}

fn acts<'b>(rows: &'b Rows, writes: &mut Vec<Write<'b>>) {
    let found: Vec<_> = rows.new_acts().collect();
    if found.is_empty() {
        return;
    }
    let table = TableWrite::of("audit", &found)
        .number("customer", |act| act.record.record.customer.to_i64())
        .number("key", |act| {
            let record = &act.record.record;
            codes::key_number(record.customer, record.key)
        })
        .number("seq", |act| act.record.seq)
        .number("position", |act| act.record.record.position)
        .bytes("operation", |act| bytes(&act.record.record.operation))
        .text("act", |act| act.record.record.act.as_str())
        .text("actor", |act| act.record.record.actor.as_str())
        .number("at", |act| act.record.record.at.millis())
        .text("details", |act| act.record.record.details.as_str())
        .text("state", |act| act.record.state.as_str())
        .number("format", |act| act.format)
        .bytes("hash", |act| act.hash.as_slice());
    writes.push(table.insert(""));
}

/// The oldest sessions of crowded keys and customers.
const TRIM_SESSIONS: &str = "DELETE FROM sessions WHERE token IN (SELECT token FROM (SELECT s.token, \
    row_number() OVER (PARTITION BY s.key ORDER BY s.at DESC, s.token) AS of_key, \
    row_number() OVER (PARTITION BY k.customer ORDER BY s.at DESC, s.token) AS of_customer \
    FROM keys k JOIN sessions s ON s.key = k.id \
    WHERE k.customer IN (SELECT customer FROM keys WHERE id = ANY ($1::bigint[]))) AS n \
    WHERE of_key > $2 OR of_customer > $3)";

/// Sessions and links that end with their key or have expired. Expired rows that another transaction has locked are left for a later
/// batch.
fn ended_access<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    for (table, ended, forget) in [
        ("sessions", &changes.ended_sessions, changes.forget_sessions),
        ("links", &changes.ended_links, changes.forget_links),
    ] {
        let ended: Vec<KeyId> = ended.iter().copied().collect();
        if !ended.is_empty() {
            let table = TableWrite::of(table, &ended).number("key", |key| key.to_i64());
            writes.push(table.delete());
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
}

/// The oldest sessions above the most of a key and of a customer.
fn crowded<'b>(changes: &Changes, writes: &mut Vec<Write<'b>>) {
    let crowded: Vec<i64> = changes.crowded.iter().map(|key| key.to_i64()).collect();
    if !crowded.is_empty() {
        writes.push(Write {
            sql: TRIM_SESSIONS.to_owned(),
            columns: vec![
                Box::new(crowded),
                Box::new(i64::from(Session::MOST_OF_KEY)),
                Box::new(i64::from(Session::MOST_OF_CUSTOMER)),
            ],
        });
    }
}

fn slugs<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let rows: Vec<_> = changes.published.iter().collect();
    if !rows.is_empty() {
        let table = TableWrite::of("slugs", &rows)
            .text("slug", |(slug, _)| slug.as_str())
            .number("published_at", |(_, at)| at.millis());
        writes.push(table.insert(" ON CONFLICT DO NOTHING"));
    }
}

fn own_costs<'b>(changes: &'b Changes, writes: &mut Vec<Write<'b>>) {
    let rows: Vec<_> = changes.own_costs.iter().collect();
    if !rows.is_empty() {
        let table = TableWrite::of("own_costs", &rows)
            .number("hour", |((hour, ..), _)| *hour)
            .text("target", |((_, target, _), _)| target.as_str())
            .number("epoch", |((.., epoch), _)| *epoch)
            .number("cost", |(_, cost)| cost.picos());
        let total = " ON CONFLICT (hour, target, epoch) DO UPDATE SET cost = excluded.cost";
        writes.push(table.insert(total));
    }
}
