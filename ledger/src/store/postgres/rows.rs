//! Rows of a database: their columns for the decoder.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::trouble::TransactionTrouble;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::StoredCustomer;
use crate::rule::hold::StoredHold;
use crate::rule::key::KeyRecord;
use crate::rule::limit::Traffic;
use crate::store::rows::{
    self, Decoded, Malformed, RowColumns as _, act_columns, entry_columns, entry_counts,
    hold_columns,
};
use crate::store::select::{SelectText, columns_of};
use crate::table::columns::Stored;
use crate::table::grants::NEXT_GRANT;
use crate::{Cause, LedgerError, Timestamp};

impl From<Malformed> for TransactionTrouble {
    fn from(malformed: Malformed) -> Self {
        Self::Failed(Cause::in_words(malformed.to_string(), malformed))
    }
}

impl From<Malformed> for LedgerError {
    fn from(malformed: Malformed) -> Self {
        Self::unavailable(Cause::in_words(malformed.to_string(), malformed))
    }
}

pub(super) struct Columns<'row> {
    row: &'row Row,
    next: usize,
}

impl<'row> Columns<'row> {
    pub(super) const fn of(row: &'row Row) -> Self {
        Self { row, next: 0 }
    }

    /// The next column, of a type that only a database has.
    pub(super) fn take<T: FromSql<'row>>(&mut self) -> Decoded<T> {
        let at = self.next;
        self.next = at.saturating_add(1);
        self.row.try_get(at).map_err(|error| Malformed::Column {
            at,
            source: error.into(),
        })
    }
}

impl rows::RowColumns for Columns<'_> {
    fn maybe_number(&mut self) -> Decoded<Option<i64>> {
        self.take()
    }

    fn maybe_str(&mut self) -> Decoded<Option<&str>> {
        self.take()
    }

    fn maybe_bytes(&mut self) -> Decoded<Option<&[u8]>> {
        self.take()
    }
}

/// Selects what [`key_record`] takes; a condition may follow.
pub(super) static SELECT_KEY_RECORD: SelectText = SelectText::new(|| {
    let columns = columns_of::<KeyRecord>("k");
    format!("SELECT {columns}, k.running, k.paced_to FROM keys k")
});

/// A key, and its own traffic at all gateways if it has limits.
pub(super) fn key_record(row: &Row) -> Decoded<(KeyRecord, Option<Traffic>)> {
    let mut columns = Columns::of(row);
    let key = columns.read()?;
    let (running, paced_to) = (columns.maybe_number()?, columns.maybe_number()?);
    let traffic = running
        .zip(paced_to)
        .map(|(running, paced_to)| Traffic { running, paced_to });
    Ok((key, traffic))
}

/// Selects what [`stored_customer`] takes; a condition may follow.
pub(super) static SELECT_CUSTOMER: SelectText = SelectText::new(|| {
    let columns = columns_of::<StoredCustomer>("a");
    format!("SELECT {columns}, a.running, a.paced_to, a.{NEXT_GRANT} FROM accounts a")
});

/// A customer, its traffic at all gateways, and when something happens to its grants, if there are open ones.
pub(super) fn stored_customer(row: &Row) -> Decoded<(StoredCustomer, Traffic, Option<Timestamp>)> {
    let mut columns = Columns::of(row);
    let stored = columns.read()?;
    let traffic = Traffic {
        running: columns.number()?,
        paced_to: columns.number()?,
    };
    Ok((stored, traffic, columns.read()?))
}

macro_rules! select_entry_from {
    () => {
        concat!(
            "SELECT ",
            entry_columns!(
                "0::bigint",
                "e.slug",
                concat!(
                    "(coalesce(e.family, e.target, e.end_reason, e.answer_id, e.lines, e.facts, coalesce(e.status, e.first_byte_ms, \
                     e.total_ms, e.hold, e.loss, e.evidence, ",
                    entry_counts!(),
                    ")::text) IS NOT NULL)::int::bigint"
                )
            ),
            " FROM "
        )
    };
}

/// Selects what [`stored_entry`] takes; a condition may follow. Positions have gaps, and no row names its predecessor's.
pub(super) const SELECT_ENTRY: &str = concat!(select_entry_from!(), "entries e");
/// The same from entries that follow, as a query named `e`.
pub(super) const SELECT_ENTRY_FROM: &str = select_entry_from!();

/// Selects what [`stored_hold`] takes; a condition may follow.
pub(super) const SELECT_HOLD: &str = concat!("SELECT ", hold_columns!(), " FROM holds h");

/// Selects what [`stored_act`] takes; a condition may follow.
pub(super) const SELECT_ACT: &str = concat!("SELECT ", act_columns!("0::bigint"), " FROM audit");

/// What a row is made of.
pub(super) fn row<T: Stored>(row: &Row) -> Decoded<T> {
    T::read(&mut Columns::of(row))
}

macro_rules! decoded {
    ($($name:ident -> $type:ty;)+) => {
        $(pub(super) fn $name(row: &Row) -> Decoded<$type> {
            rows::$name(&mut Columns::of(row))
        })+
    };
}

decoded! {
    stored_entry -> ChainedEntry;
    stored_hold -> StoredHold;
    stored_act -> ChainedAct;
}
