//! The totals over all customers: one row, and the entries after the one that it counts last.
//!
//! EntrySums follow from the entries. So a commit that only adds entries leaves the row as it is until [`LAG`] have come together: the end of
//! a hold writes one page and runs one statement less. A new key, act or epoch writes the row.

use rusqlite::{Connection, Result, Statement};

use super::rows::{self, select_entry};
use crate::{JournalEntry, Totals};

/// So many entries later the row is written by any commit. A reader adds fewer than these, and those of one commit.
// It saves 63 of 64 writes; what more would save is little, and each reader of the sums would have more entries to add.
pub(super) const LAG: i64 = 64;

/// The row; see [`stored`].
pub(super) const ROW: &str =
    "SELECT keys, entries, 0, credit, spent, '0', loss, exposure, cost, charges, audits, epoch,
     (SELECT user_version FROM pragma_user_version) FROM totals";
/// The entries after a position; see [`TotalsNow::catch_up`].
pub(super) const AFTER: &str = concat!(select_entry!(), " WHERE e.position > ?1");

/// What entries come to.
#[derive(Debug, Default)]
pub(super) struct EntrySums {
    /// But for open holds, which are not stored: a hold would write one page more.
    pub(super) totals: Totals,
    /// How many entries are charges.
    pub(super) charges: i64,
}

impl EntrySums {
    pub(super) fn add(&mut self, entry: &JournalEntry) {
        let totals = &mut self.totals;
        let amount = i128::from(entry.amount.picos());
        if entry.kind.changes_credit() {
            totals.credit = totals.credit.saturating_add(amount);
        } else {
            totals.spent = totals.spent.saturating_sub(amount);
        }
        totals.entries = totals.entries.saturating_add(1);
        let Some(bill) = &entry.bill else { return };
        self.charges = self.charges.saturating_add(1);
        for (sum, more) in [
            (&mut totals.loss, bill.loss),
            (&mut totals.exposure, bill.exposure),
            (&mut totals.cost, bill.own_cost().unwrap_or_default()),
        ] {
            *sum = sum.saturating_add(i128::from(more.picos()));
        }
    }
}

/// What there is at one instant, in all.
#[derive(Debug)]
pub(super) struct TotalsNow {
    pub(super) sums: EntrySums,
    pub(super) acts: i64,
    pub(super) epoch: i64,
    /// The version of the schema.
    pub(super) schema: i64,
    /// The position of the newest entry that the row counts.
    pub(super) written: i64,
}

/// The row as it stands. [`TotalsNow::catch_up`] makes it whole, within the same transaction.
pub(super) fn stored(row: &mut Statement<'_>) -> Result<TotalsNow> {
    row.query_row([], |row| {
        Ok(TotalsNow {
            sums: EntrySums {
                totals: rows::totals(row)?,
                charges: row.get(9)?,
            },
            acts: row.get(10)?,
            epoch: row.get(11)?,
            schema: row.get(12)?,
            written: row.get(1)?,
        })
    })
}

impl TotalsNow {
    /// Adds the entries after the row.
    pub(super) fn catch_up(&mut self, after: &mut Statement<'_>) -> Result<()> {
        let mut entries = after.query([self.written])?;
        while let Some(row) = entries.next()? {
            self.sums.add(&rows::stored_entry(row)?.entry);
        }
        Ok(())
    }
}

/// The row and the entries after it. The caller's transaction makes both one instant.
pub(super) fn count(conn: &Connection) -> Result<TotalsNow> {
    let mut counted = stored(&mut *conn.prepare_cached(ROW)?)?;
    counted.catch_up(&mut *conn.prepare_cached(AFTER)?)?;
    Ok(counted)
}
