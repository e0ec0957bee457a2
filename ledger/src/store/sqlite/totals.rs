//! The totals over all customers: one row, and the entries after the one that it counts last.
//!
//! Most ends of holds add one entry, one charge and its amount. They leave the row as it is until [`LAG`] entries have come together,
//! so such a commit writes one page and runs one statement less. Whatever else changes writes the whole row.

use rusqlite::{Connection, Result, Statement};

use super::rows;
use crate::{Amount, EntryKind, Totals};

/// So many entries later the row is written by any commit. A reader adds fewer than these, and those of one commit.
pub(super) const LAG: i64 = 64;

/// The row; see [`stored`].
pub(super) const ROW: &str =
    "SELECT keys, entries, 0, credit, spent, '0', loss, exposure, cost, charges, audits, epoch,
     (SELECT user_version FROM pragma_user_version) FROM totals";
/// The entries after a position; see [`Counted::catch_up`].
pub(super) const AFTER: &str = "SELECT kind, amount FROM entries WHERE position > ?1";

/// What there is at one instant, in all.
#[derive(Debug)]
pub(super) struct Counted {
    /// But for open holds, which are not stored: a hold would write one page more.
    pub(super) totals: Totals,
    /// How many entries are charges.
    pub(super) charges: i64,
    pub(super) acts: i64,
    pub(super) epoch: i64,
    /// The version of the schema.
    pub(super) schema: i64,
    /// The position of the newest entry that the row counts.
    pub(super) written: i64,
}

/// The row as it stands. [`Counted::catch_up`] makes it whole, within the same transaction.
pub(super) fn stored(row: &mut Statement<'_>) -> Result<Counted> {
    row.query_row([], |row| {
        Ok(Counted {
            totals: rows::totals(row)?,
            written: row.get(1)?,
            charges: row.get(9)?,
            acts: row.get(10)?,
            epoch: row.get(11)?,
            schema: row.get(12)?,
        })
    })
}

impl Counted {
    /// Adds the entries after the row.
    pub(super) fn catch_up(&mut self, after: &mut Statement<'_>) -> Result<()> {
        let mut entries = after.query([self.written])?;
        while let Some(entry) = entries.next()? {
            let (kind, amount) = (entry.get::<_, EntryKind>(0)?, entry.get::<_, Amount>(1)?);
            self.totals.entries = self.totals.entries.saturating_add(1);
            if kind == EntryKind::Charge {
                self.charges = self.charges.saturating_add(1);
            }
            // Of other entries the row has the amount already: what changes a credit writes it.
            if !kind.changes_credit() {
                let spent = &mut self.totals.spent;
                *spent = spent.saturating_sub(i128::from(amount.picos()));
            }
        }
        Ok(())
    }
}

/// The row and the entries after it. The caller's transaction makes both one instant.
pub(super) fn count(conn: &Connection) -> Result<Counted> {
    let mut counted = stored(&mut *conn.prepare_cached(ROW)?)?;
    counted.catch_up(&mut *conn.prepare_cached(AFTER)?)?;
    Ok(counted)
}
