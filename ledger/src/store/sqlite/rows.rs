//! Rows: how this crate's types are stored in columns and read back.
//!
//! A value that does not fit its type is an error of the read, never a guess.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Type, ValueRef};
use rusqlite::{Error, Result, Row, RowIndex};

use crate::batch::tx::{StoredHold, StoredKey};
use crate::book::audit::Record;
use crate::book::chain::evidence_code;
use crate::book::head::{AuditHead, Hash, Head};
use crate::rule::account::Account;
use crate::store::stored;
use crate::{
    Amount, AuditRecord, Bill, EndReason, Entry, EntryKind, Evidence, Key, KeyId, KeySettings,
    Line, OpenHold, OperationId, SecretHash, Status, Timestamp, Usage, UsageRow,
};

macro_rules! stored_as {
    ($type:ty, $column:ty, $to:expr, $from:expr) => {
        impl ToSql for $type {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                let to: fn(&$type) -> $column = $to;
                Ok(ToSqlOutput::from(to(self)))
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let from: fn($column) -> Option<$type> = $from;
                from(<$column>::column_result(value)?).ok_or(FromSqlError::InvalidType)
            }
        }
    };
}

stored_as!(Amount, i64, |amount| amount.picos(), |picos| Some(
    Self::from_picos(picos)
));
stored_as!(Timestamp, i64, |instant| instant.millis(), |millis| Some(
    Self::from_millis(millis)
));
stored_as!(KeyId, i64, |key| key.to_i64(), Self::from_i64);
stored_as!(
    Status,
    i64,
    |status| stored::status_code(*status),
    stored::status_of
);
stored_as!(
    Evidence,
    i64,
    |evidence| evidence_code(*evidence),
    stored::evidence_of
);
stored_as!(
    EntryKind,
    i64,
    |kind| crate::book::chain::kind_code(*kind),
    stored::kind_of
);

impl ToSql for OperationId {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_bytes()))
    }
}

impl FromSql for OperationId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 16]>::column_result(value).map(Self::from_bytes)
    }
}

impl FromSql for EndReason {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Self::from)
    }
}

impl ToSql for SecretHash {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for SecretHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self)
    }
}

/// A count in stored form; counts are bounded long before this could saturate.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn count(row: &Row<'_>, column: impl RowIndex) -> Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|error| malformed(Type::Integer, error))
}

fn small<T: TryFrom<i64>>(stored: i64) -> Result<T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(stored).map_err(|error| malformed(Type::Integer, error))
}

pub(super) fn malformed(
    kind: Type,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::FromSqlConversionFailure(0, kind, Box::new(error))
}

/// A row's columns, taken in the order in which they were selected: looking each up by name is most of the cost of a read.
pub(super) struct Columns<'row, 'statement> {
    row: &'row Row<'statement>,
    next: usize,
}

impl<'row, 'statement> Columns<'row, 'statement> {
    pub(super) const fn of(row: &'row Row<'statement>) -> Self {
        Self { row, next: 0 }
    }

    /// The next column.
    pub(super) fn take<T: FromSql>(&mut self) -> Result<T> {
        let at = self.next;
        self.next = at.saturating_add(1);
        self.row.get(at)
    }

    /// The next column, for a number stored in a wider type.
    pub(super) fn small<T: TryFrom<i64>>(&mut self) -> Result<T>
    where
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        small(self.take()?)
    }

    fn maybe_small<T: TryFrom<i64>>(&mut self) -> Result<Option<T>>
    where
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        self.take::<Option<i64>>()?.map(small).transpose()
    }

    /// The seven counts, of an entry or a rollup.
    pub(super) fn usage(&mut self) -> Result<Usage> {
        Ok(Usage {
            input: self.small()?,
            cache_read: self.small()?,
            cache_write: self.small()?,
            cache_write_1h: self.small()?,
            output: self.small()?,
            reasoning: self.small()?,
            images: self.small()?,
        })
    }

    /// The counts and amounts of a rollup's row: requests, the seven counts, charge, loss, exposure, cost.
    pub(super) fn rollup(&mut self) -> Result<UsageRow> {
        Ok(UsageRow {
            requests: self.small()?,
            usage: self.usage()?,
            charge: self.take()?,
            loss: self.take()?,
            exposure: self.take()?,
            cost: self.take()?,
            ..UsageRow::default()
        })
    }
}

/// Selects what `batch::totals` takes, in its order; more columns may follow. By position, because each batch reads this row and
/// looking columns up by name took longer than reading it.
macro_rules! select_totals {
    () => {
        "SELECT keys, entries, holds, credit, spent, held, loss, exposure, cost"
    };
}
pub(super) use select_totals;

/// Selects what [`stored_key`] takes, in its order; a condition may follow.
macro_rules! select_key {
    () => {
        "SELECT k.id, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret,
     k.old_secret, k.old_until, a.credit, a.spent, a.held, k.created_at, k.created_by, a.last_at, k.audit_seq, k.audit_last, k.audit_hash,
     a.seq, a.last, a.hash FROM keys k JOIN accounts a ON a.id = k.id"
    };
}
pub(super) use select_key;

/// [`select_key`], for statements assembled at run time.
pub(super) const SELECT_KEY: &str = select_key!();

/// One key.
pub(super) const KEY_BY_ID: &str = concat!(select_key!(), " WHERE k.id = ?1");

pub(super) fn stored_key(row: &Row<'_>) -> Result<StoredKey> {
    let mut columns = Columns::of(row);
    let key = Key {
        id: columns.take()?,
        settings: KeySettings {
            label: columns.take()?,
            models: columns
                .take::<Option<String>>()?
                .map(|json| models(&json))
                .transpose()?,
            expires_at: columns.take()?,
            rate: columns.maybe_small()?,
            concurrency: columns.maybe_small()?,
        },
        stored_status: columns.take()?,
        secret: columns.take()?,
        old_secret: {
            let old: (Option<SecretHash>, Option<Timestamp>) = (columns.take()?, columns.take()?);
            if old.0.is_some() != old.1.is_some() {
                return Err(Error::InvalidColumnType(
                    0,
                    "old_secret without old_until, or the reverse".to_owned(),
                    Type::Null,
                ));
            }
            old.0.zip(old.1)
        },
        account: Account {
            credit: columns.take()?,
            spent: columns.take()?,
            held: columns.take()?,
        },
        created_at: columns.take()?,
        created_by: columns.take()?,
        last_entry_at: columns.take()?,
    };
    let last_at = key.last_entry_at;
    let audit = AuditHead {
        seq: columns.take()?,
        last: columns.take()?,
        hash: columns.take()?,
    };
    Ok(StoredKey {
        key,
        audit,
        head: Head {
            seq: columns.take()?,
            last: columns.take()?,
            hash: columns.take()?,
            last_at,
        },
    })
}

fn models(json: &str) -> Result<Vec<String>> {
    serde_json::from_str(json).map_err(|error| malformed(Type::Text, error))
}

/// An entry with its place in the chain.
#[derive(Debug, Clone)]
pub(super) struct StoredEntry {
    pub(super) entry: Entry,
    pub(super) prev: i64,
    pub(super) format: i64,
    pub(super) hash: Hash,
}

/// Selects what [`stored_entry`] takes, in its order; a condition may follow.
macro_rules! select_entry {
    () => {
        "SELECT e.position, e.seq, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason,
     e.refunds, e.prev, e.format, e.hash, s.slug,
     coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss,
     e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL,
     e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence,
     e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts
     FROM entries e LEFT JOIN slugs s ON s.id = e.slug"
    };
}
pub(super) use select_entry;

/// [`select_entry`], for statements assembled at run time.
pub(super) const SELECT_ENTRY: &str = select_entry!();

/// One entry, by the operation that made it.
pub(super) const ENTRY_BY_OPERATION: &str = concat!(select_entry!(), " WHERE e.operation = ?1");
/// One entry, by its position.
pub(super) const ENTRY_AT: &str = concat!(select_entry!(), " WHERE e.position = ?1");

pub(super) fn stored_entry(row: &Row<'_>) -> Result<StoredEntry> {
    let mut columns = Columns::of(row);
    let mut entry = Entry {
        position: columns.take()?,
        seq: columns.take()?,
        key: columns.take()?,
        operation: columns.take()?,
        kind: columns.take()?,
        amount: columns.take()?,
        balance_after: columns.take()?,
        at: columns.take()?,
        actor: columns.take()?,
        reference: columns.take()?,
        reason: columns.take()?,
        refunds: columns.take()?,
        bill: None,
    };
    let (prev, format, hash) = (columns.take()?, columns.take()?, columns.take()?);
    let (slug, billed): (Option<String>, bool) = (columns.take()?, columns.take()?);
    if slug.is_none() && billed {
        return Err(malformed(Type::Null, std::fmt::Error));
    }
    entry.bill = slug.map(|slug| bill(&mut columns, slug)).transpose()?;
    Ok(StoredEntry {
        entry,
        prev,
        format,
        hash,
    })
}

fn bill(columns: &mut Columns<'_, '_>, slug: String) -> Result<Bill> {
    let bill = Bill {
        slug,
        family: columns.take()?,
        target: columns.take()?,
        status: columns.small()?,
        end_reason: columns.take()?,
        first_byte_ms: columns.maybe_small()?,
        total_ms: columns.small()?,
        answer_id: columns.take()?,
        hold: columns.take()?,
        loss: columns.take()?,
        evidence: columns.take()?,
        usage: columns.usage()?,
        lines: stored::lines_of(&columns.take::<String>()?)
            .map_err(|error| malformed(Type::Text, error))?,
        ..Bill::default()
    };
    match columns.take::<Option<String>>()? {
        None => Ok(bill),
        Some(json) => {
            let pairs =
                serde_json::from_str(&json).map_err(|error| malformed(Type::Text, error))?;
            bill.with_pairs(pairs)
                .ok_or_else(|| malformed(Type::Text, std::fmt::Error))
        }
    }
}

pub(super) fn lines_text(lines: &[Line]) -> Result<String> {
    stored::lines_text(lines).map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

pub(super) fn stored_hold(row: &Row<'_>) -> Result<StoredHold> {
    let checkpoint: Option<String> = row.get("checkpoint")?;
    let checkpoint = checkpoint
        .map(|json| serde_json::from_str(&json).map_err(|error| malformed(Type::Text, error)));
    Ok(StoredHold {
        open: open_hold(row)?,
        opened: row.get("opened")?,
        checkpoint: checkpoint.transpose()?,
    })
}

pub(super) fn open_hold(row: &Row<'_>) -> Result<OpenHold> {
    Ok(OpenHold {
        request: row.get("request")?,
        key: row.get("key")?,
        amount: row.get("amount")?,
        used: row.get("used")?,
        slug: row.get("slug")?,
        family: row.get("family")?,
        at: row.get("at")?,
        epoch: row.get("epoch")?,
    })
}

/// An act with its place in the chain.
#[derive(Debug, Clone)]
pub(super) struct StoredAct {
    pub(super) record: Record,
    pub(super) prev: i64,
    pub(super) format: i64,
    pub(super) hash: Hash,
}

pub(super) fn stored_act(row: &Row<'_>) -> Result<StoredAct> {
    let record = Record {
        record: audit_record(row)?,
        seq: row.get("seq")?,
        state: row.get("state")?,
    };
    Ok(StoredAct {
        record,
        prev: row.get("prev")?,
        format: row.get("format")?,
        hash: row.get("hash")?,
    })
}

pub(super) fn audit_record(row: &Row<'_>) -> Result<AuditRecord> {
    Ok(AuditRecord {
        position: row.get("position")?,
        at: row.get("at")?,
        actor: row.get("actor")?,
        act: row.get("act")?,
        key: row.get("key")?,
        operation: row.get("operation")?,
        details: row.get("details")?,
    })
}
