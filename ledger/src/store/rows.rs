//! The one decoder of the rows that requests read and write, and of what follows from them.
//!
//! Each store selects the columns listed here in this order.

use super::stored;
use crate::book::audit::ActRecord;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, EntryHead, StoredCustomer};
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::watch::{BalanceTold, CustomerWatch};
pub(crate) use crate::table::columns::{Decoded, Malformed, RowColumns, present};
use crate::{
    Account, AuditRecord, Bill, Caps, Customer, CustomerId, CustomerSettings, EndReason,
    JournalEntry, Key, KeyId, KeySettings, OpenHold, OwnCost, PersonalData, PersonalHash,
    PublishedSlug, Totals,
};

/// The counts and amounts of a rollup's row.
macro_rules! rollup_columns {
    () => {
        "requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, \
         cache_write_12h, calls"
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
    let key = stored::key_of(customer, columns.maybe_number()?);
    Ok((customer, present(key, "key's id")?))
}

/// What [`key_record`] takes, of `keys k`.
macro_rules! key_columns {
    () => {
        "k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, \
         k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by"
    };
}
pub(crate) use key_columns;

pub(crate) fn key_record(columns: &mut impl RowColumns) -> Decoded<KeyRecord> {
    Ok(KeyRecord {
        id: columns.read()?,
        belongs_to: columns.read()?,
        is_owner: columns.number()? != 0,
        made_by: columns.read()?,
        token: columns.read()?,
        settings: KeySettings {
            label: columns.read()?,
            models: columns.maybe_json("list of models")?,
            expires_at: columns.read()?,
            rate: columns.read()?,
            concurrency: columns.read()?,
        },
        stored_status: columns.code("status", stored::status_of)?,
        secret: columns.read()?,
        old_secret: columns.read()?,
        caps: caps(columns)?,
        used_at: columns.read()?,
        created_at: columns.read()?,
        created_by: columns.read()?,
    })
}

/// What [`stored_customer`] takes, of `accounts a`.
macro_rules! customer_columns {
    () => {
        "a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, \
         a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, \
         a.event_seq, a.last_top_up, a.told, a.opened"
    };
}
pub(crate) use customer_columns;

pub(crate) fn stored_customer(columns: &mut impl RowColumns) -> Decoded<StoredCustomer> {
    let customer = Customer {
        id: columns.read()?,
        settings: CustomerSettings {
            label: columns.read()?,
            external_id: columns.read()?,
            price_list: columns.read()?,
            low_balance: columns.read()?,
            rate: columns.read()?,
            concurrency: columns.read()?,
        },
        status: columns.code("status", stored::customer_status_of)?,
        account: Account {
            credit: columns.read()?,
            spent: columns.read()?,
            held: columns.read()?,
        },
        claim: columns.read()?,
        caps: caps(columns)?,
        auto_top_up: columns.maybe_json("auto top-up")?.map(Box::new),
        personal: columns.read::<Option<_>>()?.map(PersonalHash),
        created_at: columns.read()?,
        created_by: columns.read()?,
        token: columns.read()?,
        last_entry_at: columns.read()?,
    };
    let last_at = customer.last_entry_at;
    Ok(StoredCustomer {
        customer,
        audit: AuditHead {
            seq: columns.number()?,
            last: columns.number()?,
            hash: columns.read()?,
        },
        head: EntryHead {
            seq: columns.number()?,
            last: columns.number()?,
            hash: columns.read()?,
            last_at,
        },
        watch: CustomerWatch {
            seq: columns.number()?,
            last_top_up: columns.read()?,
            told: columns.code("warning", BalanceTold::of)?,
        },
        opened: columns.number()?,
    })
}

/// A key with its customer: the [`key_columns`], then the [`customer_columns`].
pub(crate) fn whole_key(columns: &mut impl RowColumns) -> Decoded<Key> {
    Ok(Key {
        own: key_record(columns)?,
        customer: stored_customer(columns)?.customer,
    })
}

/// A customer and the text of its personal data.
pub(crate) fn personal_data(columns: &mut impl RowColumns) -> Decoded<(CustomerId, PersonalData)> {
    let customer = columns.read()?;
    let data = columns.maybe_json("personal data")?;
    Ok((customer, present(data, "personal data")?))
}

/// A payment's folded reference, whose it is, and whom it is addressed to.
pub(crate) fn addressee(
    columns: &mut impl RowColumns,
) -> Decoded<(String, CustomerId, Option<PersonalData>)> {
    let (folded, customer) = (columns.read()?, columns.read()?);
    Ok((folded, customer, columns.maybe_json("an addressee")?))
}

/// Without caps there is NULL, so that an empty list is none of ours.
fn caps(columns: &mut impl RowColumns) -> Decoded<Caps> {
    let stored: Option<Caps> = columns.maybe_json("list of caps")?;
    match stored {
        Some(caps) if caps.is_empty() => Err(Malformed::Value("list of caps")),
        stored => Ok(stored.unwrap_or_default()),
    }
}

/// What [`stored_entry`] takes, of `entries e`: with the column of its predecessor's position, that of its slug, and whether there
/// is anything of a bill.
macro_rules! entry_columns {
    ($prev:literal, $slug:literal, $billed:expr) => {
        concat!(
            "e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, \
             e.refunds, ",
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
        kind: columns.code("kind of entry", stored::kind_of)?,
        amount: columns.read()?,
        balance_after: columns.read()?,
        at: columns.read()?,
        actor: columns.read()?,
        reference: columns.read()?,
        reason: columns.read()?,
        refunds: columns.read()?,
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
            .map(|code| present(stored::evidence_of(code), "evidence"))
            .transpose()?,
        usage: columns.usage()?,
        lines: stored::lines_of(columns.str()?).map_err(|error| Malformed::Text {
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
        "h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves"
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

/// A slug, and when it was published.
pub(crate) fn published(columns: &mut impl RowColumns) -> Decoded<PublishedSlug> {
    Ok(PublishedSlug {
        slug: columns.read()?,
        since: columns.read()?,
    })
}

/// Hour, target and cost.
pub(crate) fn own_cost(columns: &mut impl RowColumns) -> Decoded<OwnCost> {
    Ok(OwnCost {
        hour: columns.number()?,
        target: columns.read()?,
        cost: columns.read()?,
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
