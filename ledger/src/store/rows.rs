//! The one decoder of the rows that requests read and write, and of what follows from them.
//!
//! Each store selects the columns listed here in this order.

use super::codes;
use crate::book::audit::ActRecord;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::rule::hold::StoredHold;
pub(crate) use crate::table::columns::{Decoded, Malformed, RowColumns, present};
use crate::{AuditRecord, Bill, CustomerId, EndReason, JournalEntry, KeyId, OpenHold, Totals};

/// The counts and amounts of a rollup's row.
macro_rules! rollup_columns {
    () => {
        "requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, \
         cache_write_12h, calls, told"
    };
}
pub(crate) use rollup_columns;

/// The counts of `entries e`.
macro_rules! entry_counts {
    () => {
        "e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images"
    };
}
pub(crate) use entry_counts;

/// What a row of a rollup was served as.
macro_rules! served_columns {
    () => {
        "tier, place, context_band, account"
    };
}
pub(crate) use served_columns;

/// The next two columns: a customer, and its key if there is one.
fn customer_and_key(columns: &mut impl RowColumns) -> Decoded<(CustomerId, Option<KeyId>)> {
    let customer = columns.read()?;
    let key = codes::key_of(customer, columns.maybe_number()?);
    Ok((customer, present(key, "key's id")?))
}

/// What [`stored_entry`] takes, of `entries e`: with the column of its predecessor's position, that of its slug, and whether there
/// is anything of a bill.
macro_rules! entry_columns {
    ($prev:literal, $slug:literal, $billed:expr) => {
        concat!(
            "e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, \
             e.refunds, e.parts, ",
            $prev,
            ", e.format, e.hash, ",
            $slug,
            ", ",
            $billed,
            ", e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, ",
            $crate::store::rows::entry_counts!(),
            ", e.lines, e.facts"
        )
    };
}
pub(crate) use entry_columns;

pub(crate) fn stored_entry(columns: &mut impl RowColumns) -> Decoded<ChainedEntry> {
    let (position, seq) = (columns.number()?, columns.number()?);
    let (customer, key) = customer_and_key(columns)?;
    let mut entry = JournalEntry {
        position,
        seq,
        customer,
        key,
        operation: columns.read()?,
        kind: columns.code("kind of entry", codes::kind_of)?,
        amount: columns.read()?,
        balance_after: columns.read()?,
        at: columns.read()?,
        actor: columns.read()?,
        reference: columns.read()?,
        reason: columns.read()?,
        refunds: columns.read()?,
        parts: columns.read()?,
        bill: None,
    };
    let (prev, format, hash) = (columns.number()?, columns.number()?, columns.read()?);
    let (slug, billed) = (columns.read()?, columns.number()? != 0);
    entry.bill = match slug {
        Some(slug) => Some(bill(columns, slug)?),
        None if billed => return Err(Malformed::Value("bill without a slug")),
        None => None,
    };
    Ok(ChainedEntry {
        entry,
        prev,
        format,
        hash,
    })
}

fn bill(columns: &mut impl RowColumns, slug: String) -> Decoded<Bill> {
    let bill = Bill {
        slug,
        family: columns.read()?,
        target: columns.read()?,
        status: columns.read()?,
        end_reason: EndReason::from(columns.str()?),
        first_byte_ms: columns.read()?,
        total_ms: columns.read()?,
        answer_id: columns.read()?,
        hold: columns.read()?,
        loss: columns.read()?,
        evidence: columns
            .maybe_number()?
            .map(|code| present(codes::evidence_of(code), "evidence"))
            .transpose()?,
        usage: columns.usage()?,
        lines: codes::lines_of(columns.str()?).map_err(|error| Malformed::Text {
            what: "bill",
            source: error.into(),
        })?,
        ..Bill::default()
    };
    match columns.maybe_json("list of facts")? {
        None => Ok(bill),
        Some(pairs) => present(bill.with_pairs(pairs), "list of facts"),
    }
}

/// What [`stored_hold`] takes, of `holds h`.
macro_rules! hold_columns {
    () => {
        "h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves, h.parts"
    };
}
pub(crate) use hold_columns;

pub(crate) fn stored_hold(columns: &mut impl RowColumns) -> Decoded<StoredHold> {
    let (request, key, opened) = (columns.read()?, columns.read()?, columns.read()?);
    let open = OpenHold {
        request,
        key,
        amount: columns.read()?,
        used: columns.read()?,
        slug: columns.read()?,
        family: columns.read()?,
        at: columns.read()?,
        epoch: columns.number()?,
    };
    Ok(StoredHold {
        open,
        opened,
        day: columns.read()?,
        checkpoint: columns.maybe_json("checkpoint")?,
        moves: columns.read()?,
        parts: columns.read()?,
    })
}

/// What [`stored_act`] takes, of `audit`, with the column of its predecessor's position.
macro_rules! act_columns {
    ($prev:literal) => {
        concat!(
            "position, customer, key, at, actor, act, operation, details, seq, state, ",
            $prev,
            ", format, hash"
        )
    };
}
pub(crate) use act_columns;

pub(crate) fn stored_act(columns: &mut impl RowColumns) -> Decoded<ChainedAct> {
    let position = columns.number()?;
    let (customer, key) = customer_and_key(columns)?;
    let record = AuditRecord {
        position,
        customer,
        key,
        at: columns.read()?,
        actor: columns.read()?,
        act: columns.read()?,
        operation: columns.read()?,
        details: columns.read()?,
    };
    Ok(ChainedAct {
        record: ActRecord {
            record,
            seq: columns.number()?,
            state: columns.read()?,
        },
        prev: columns.number()?,
        format: columns.number()?,
        hash: columns.read()?,
    })
}

/// Counts of keys, entries and holds, then the sums: credit, spent, held, loss, exposure, cost.
pub(crate) fn totals(columns: &mut impl RowColumns) -> Decoded<Totals> {
    Ok(Totals {
        keys: columns.read()?,
        entries: columns.read()?,
        holds: columns.read()?,
        credit: sum(columns)?,
        spent: sum(columns)?,
        held: sum(columns)?,
        loss: sum(columns)?,
        exposure: sum(columns)?,
        cost: sum(columns)?,
    })
}

/// A sum over all keys, stored as text because it may exceed 64 bits.
fn sum(columns: &mut impl RowColumns) -> Decoded<i128> {
    let text = columns.str()?;
    // Sums of ordinary ledgers fit 64 bits, which are read in a quarter of the time; every batch of a file reads four.
    let small = text.parse::<i64>().map(i128::from);
    small
        .or_else(|_| text.parse())
        .map_err(|error| Malformed::Text {
            what: "sum",
            source: error.into(),
        })
}

/// A count as it is stored; counts are bounded long before this could saturate.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A limit as a parameter.
pub(crate) fn rows_at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
