//! Rows of a file: its columns for the decoder, and this crate's types as parameters.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Type, ValueRef};
use rusqlite::{Error, Result, Row};

use crate::batch::rows::SpentHour;
use crate::book::chain::{ChainedAct, ChainedEntry, evidence_code, kind_code};
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::store::default_rows::{FoundOwner, HasDefaults};
use crate::store::hour_rows;
use crate::store::rows::{self, Decoded, Malformed};
use crate::store::select::{SELECT_KEY, SelectText, columns_of};
use crate::table::columns::{Stored, customer_status_code};
use crate::{
    Amount, CustomerId, CustomerStatus, EntryKind, Evidence, KeyId, OperationId, SecretHash,
    Timestamp, Totals, UtcDay,
};

macro_rules! parameter {
    ($type:ty, $to:expr) => {
        impl ToSql for $type {
            fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
                let to: fn($type) -> i64 = $to;
                Ok(ToSqlOutput::from(to(*self)))
            }
        }
    };
}

parameter!(Amount, Amount::picos);
parameter!(Timestamp, Timestamp::millis);
parameter!(KeyId, KeyId::to_i64);
parameter!(CustomerId, CustomerId::to_i64);
parameter!(CustomerStatus, customer_status_code);
parameter!(UtcDay, UtcDay::number);
parameter!(Evidence, evidence_code);
parameter!(EntryKind, kind_code);

impl ToSql for OperationId {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_bytes()))
    }
}

impl ToSql for SecretHash {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

macro_rules! single {
    ($type:ty, $column:ty, $from:expr) => {
        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let from: fn($column) -> Option<$type> = $from;
                from(<$column>::column_result(value)?).ok_or(FromSqlError::InvalidType)
            }
        }
    };
}

// Read alone, where a row is no more than one of them.
single!(Amount, i64, |picos| Some(Self::from_picos(picos)));
single!(Timestamp, i64, |millis| Some(Self::from_millis(millis)));
single!(KeyId, i64, Self::from_i64);
single!(CustomerId, i64, Self::from_i64);
single!(OperationId, [u8; 16], |bytes| Some(Self::from_bytes(bytes)));
single!(SecretHash, [u8; 32], |bytes| Some(Self(bytes)));

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        let at = match malformed {
            Malformed::Column { at, .. } => at,
            Malformed::Text { .. } | Malformed::Value(_) => 0,
        };
        Self::FromSqlConversionFailure(at, Type::Text, Box::new(malformed))
    }
}

pub(super) struct Columns<'row, 'statement> {
    row: &'row Row<'statement>,
    next: usize,
}

impl<'row, 'statement> Columns<'row, 'statement> {
    pub(super) const fn of(row: &'row Row<'statement>) -> Self {
        Self { row, next: 0 }
    }

    fn next<T>(&mut self, of: impl FnOnce(ValueRef<'row>) -> FromSqlResult<T>) -> Decoded<T> {
        let at = self.next;
        self.next = at.saturating_add(1);
        let unreadable = |source| Malformed::Column { at, source };
        let value = self
            .row
            .get_ref(at)
            .map_err(|error| unreadable(error.into()))?;
        of(value).map_err(|error| unreadable(error.into()))
    }
}

impl rows::RowColumns for Columns<'_, '_> {
    fn maybe_number(&mut self) -> Decoded<Option<i64>> {
        self.next(|value| value.as_i64_or_null())
    }

    fn maybe_str(&mut self) -> Decoded<Option<&str>> {
        self.next(|value| value.as_str_or_null())
    }

    fn maybe_bytes(&mut self) -> Decoded<Option<&[u8]>> {
        self.next(|value| value.as_blob_or_null())
    }
}

macro_rules! decoded {
    ($($name:ident -> $type:ty;)+) => {
        $(pub(super) fn $name(row: &Row<'_>) -> Result<$type> {
            Ok(rows::$name(&mut Columns::of(row))?)
        })+
    };
}

decoded! {
    stored_entry -> ChainedEntry;
    stored_hold -> StoredHold;
    stored_act -> ChainedAct;
    totals -> Totals;
}

/// What a row is made of.
pub(super) fn row<T: Stored>(row: &Row<'_>) -> Result<T> {
    Ok(T::read(&mut Columns::of(row))?)
}

pub(super) fn shown<T: HasDefaults>(row: &Row<'_>) -> Result<FoundOwner<T>> {
    Ok(FoundOwner::read(&mut Columns::of(row))?)
}

pub(super) fn spent_hour(row: &Row<'_>) -> Result<SpentHour> {
    Ok(hour_rows::spent_hour(&mut Columns::of(row))?)
}

/// Selects keys `k`; a condition may follow.
pub(super) static SELECT_KEY_RECORD: SelectText =
    SelectText::new(|| format!("SELECT {} FROM keys k", columns_of::<KeyRecord>("k")));

/// One key with its customer.
pub(super) static KEY_BY_ID: SelectText =
    SelectText::new(|| format!("{SELECT_KEY} WHERE k.id = ?1"));

/// Selects what [`stored_entry`] takes; a condition may follow.
macro_rules! select_entry {
    () => {
        concat!(
            "SELECT ",
            crate::store::rows::entry_columns!(
                "e.prev",
                "s.slug",
                concat!(
                    "coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, \
                     e.hold, e.loss, e.evidence, ",
                    crate::store::rows::entry_counts!(),
                    ", e.lines, e.facts) IS NOT NULL"
                )
            ),
            " FROM entries e LEFT JOIN slugs s ON s.id = e.slug"
        )
    };
}
pub(super) use select_entry;

/// [`select_entry`], for statements assembled at run time.
pub(super) const SELECT_ENTRY: &str = select_entry!();

/// One entry, by the operation that made it.
pub(super) const ENTRY_BY_OPERATION: &str = concat!(select_entry!(), " WHERE e.operation = ?1");
/// One entry, by its position.
pub(super) const ENTRY_AT: &str = concat!(select_entry!(), " WHERE e.position = ?1");

/// Selects what [`stored_act`] takes; a condition may follow.
macro_rules! select_act {
    () => {
        concat!(
            "SELECT ",
            crate::store::rows::act_columns!("prev"),
            " FROM audit"
        )
    };
}
pub(super) use select_act;

/// Selects what [`stored_hold`] takes; a condition may follow.
macro_rules! select_hold {
    () => {
        concat!(
            "SELECT ",
            crate::store::rows::hold_columns!(),
            " FROM holds h"
        )
    };
}
pub(super) use select_hold;
