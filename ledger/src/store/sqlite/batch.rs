//! The writer's transactions, one at a time, and the state of a batch.
//!
//! A batch holds the write lock from its beginning, carries the running totals, and never commits by itself. Between transactions
//! it keeps its statements, the numbers of slugs and, unless another connection has committed meanwhile, the totals and the rows in
//! its `cache`. `tx` has the reads and writes of operations.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Connection, DEFAULT_NAME, FileControl, Result, params};

use super::cache::Cache;
use super::remembered::{Moved, Remembered};
use super::rows::{self, malformed, number};
use super::statements::{Sql, Statements};
use crate::batch::tx;
use crate::{Account, Amount, Bill, KeyId, Totals};

/// Why an operation had no effect.
pub(super) type Fault = tx::Fault<rusqlite::Error>;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error)
    }
}

/// Which totals a batch has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    Nothing,
    /// The totals that holds and most of their ends change: the counts of entries and holds, what is held and what is spent.
    Running,
    Anything,
}

/// The connection that writes, and the transaction open on it.
#[derive(Debug)]
pub(super) struct Batch<'c> {
    pub(super) conn: &'c Connection,
    pub(super) statements: Statements<'c>,
    /// Rows of `slugs` and `targets` never change, so they may be cached until a transaction is rolled back.
    slugs: HashMap<String, i64>,
    targets: HashMap<String, i64>,
    pub(super) cache: Cache,
    /// The data version of the totals and the cache; `None` before the first commit and after a rollback.
    version: Option<u32>,
    opened: i64,
    totals: Totals,
    pub(super) entries: i64,
    pub(super) audits: i64,
    pub(super) epoch: i64,
    changed: Changed,
    /// Keys cached for readers, and what this transaction does to them.
    remembered: Option<Arc<Remembered>>,
    moved: Vec<(KeyId, Moved)>,
}

impl<'c> Batch<'c> {
    pub(super) fn new(conn: &'c Connection, remembered: Option<Arc<Remembered>>) -> Self {
        Self {
            conn,
            statements: Statements::new(conn),
            slugs: HashMap::new(),
            targets: HashMap::new(),
            cache: Cache::default(),
            version: None,
            opened: 0,
            totals: Totals::default(),
            entries: 0,
            audits: 0,
            epoch: 0,
            changed: Changed::Nothing,
            remembered,
            moved: Vec::new(),
        }
    }

    /// Takes the write lock, and reads the totals if another connection may have changed them.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.statements.get(Sql::Begin)?.execute([])?;
        self.changed = Changed::Nothing;
        if let Some(remembered) = &self.remembered {
            remembered.begin();
        }
        self.moved.clear();
        if self.version.is_some() && self.version == Some(self.data_version()?) {
            return Ok(());
        }
        self.forget();
        let statement = self.statements.get(Sql::Totals)?;
        (self.totals, self.audits, self.epoch, self.opened) = statement.query_row([], |row| {
            Ok((totals(row)?, row.get(9)?, row.get(10)?, row.get(11)?))
        })?;
        self.entries = number(self.totals.entries);
        Ok(())
    }

    /// Undoes everything since the beginning, unless SQLite has already done so.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.slugs.clear();
        self.targets.clear();
        self.forget();
        if self.conn.is_autocommit() {
            Ok(())
        } else {
            self.conn.execute_batch("ROLLBACK")
        }
    }

    fn forget(&mut self) {
        self.version = None;
        self.cache.forget();
    }

    /// Changes when another connection has committed since our last commit.
    fn data_version(&self) -> Result<u32> {
        let mut version = 0;
        self.conn
            .file_control(DEFAULT_NAME, FileControl::DataVersion(&mut version))?;
        Ok(version)
    }

    /// Writes the totals and commits. After an error the caller rolls back.
    pub(super) fn commit(&mut self) -> Result<()> {
        let Totals {
            keys,
            holds,
            credit,
            spent,
            held,
            loss,
            exposure,
            cost,
            ..
        } = self.totals;
        let (holds, spent, held) = (number(holds), spent.to_string(), held.to_string());
        let (entries, audits, epoch, opened) = (self.entries, self.audits, self.epoch, self.opened);
        match self.changed {
            Changed::Nothing => {}
            Changed::Running => {
                self.statements
                    .get(Sql::UpdateRunning)?
                    .execute(params![entries, holds, opened, spent, held])?;
            }
            Changed::Anything => {
                self.statements.get(Sql::UpdateTotals)?.execute(params![
                    number(keys),
                    entries,
                    audits,
                    holds,
                    epoch,
                    credit.to_string(),
                    spent,
                    held,
                    loss.to_string(),
                    opened,
                    exposure.to_string(),
                    cost.to_string(),
                ])?;
            }
        }
        self.statements.get(Sql::Commit)?.execute([])?;
        self.version = self.data_version().ok();
        // Only then was a row certainly written and the commit counted. Otherwise the cached keys are forgotten with this batch.
        if let Some(remembered) = self
            .remembered
            .as_ref()
            .filter(|_| self.changed != Changed::Nothing)
        {
            remembered.committed(self.moved.drain(..));
        }
        Ok(())
    }

    /// Records what this transaction does to a key.
    pub(super) fn note(&mut self, key: KeyId, moved: Moved) {
        if self.remembered.is_some() {
            self.moved.push((key, moved));
        }
    }

    // --- the totals, written once for each batch ---

    pub(super) fn count_key(&mut self) {
        self.totals.keys = self.totals.keys.saturating_add(1);
        self.mark(Changed::Anything);
    }

    pub(super) fn count_hold(&mut self, opened: bool) {
        let holds = self.totals.holds;
        self.opened = self.opened.saturating_add(i64::from(opened));
        self.totals.holds = if opened {
            holds.saturating_add(1)
        } else {
            holds.saturating_sub(1)
        };
        self.mark(Changed::Running);
    }

    pub(super) fn count_act(&mut self) {
        self.audits = self.audits.saturating_add(1);
        self.mark(Changed::Anything);
    }

    pub(super) fn set_epoch(&mut self, epoch: i64) {
        self.epoch = epoch;
        self.mark(Changed::Anything);
    }

    /// Adds the change of an account, and what an ended request cost the operator.
    pub(super) fn add_up(&mut self, before: Account, after: Account, bill: Option<&Bill>) {
        let moved = |sum: &mut i128, from: Amount, to: Amount| {
            *sum = sum
                .saturating_add(i128::from(to.picos()))
                .saturating_sub(i128::from(from.picos()));
            if from == to {
                Changed::Nothing
            } else {
                Changed::Anything
            }
        };
        moved(&mut self.totals.spent, before.spent, after.spent);
        moved(&mut self.totals.held, before.held, after.held);
        let mut rest = moved(&mut self.totals.credit, before.credit, after.credit);
        if let Some(bill) = bill {
            rest = rest.max(moved(&mut self.totals.loss, Amount::ZERO, bill.loss));
            rest = rest.max(moved(
                &mut self.totals.exposure,
                Amount::ZERO,
                bill.exposure,
            ));
            rest = rest.max(moved(
                &mut self.totals.cost,
                Amount::ZERO,
                bill.cost.unwrap_or_default(),
            ));
        }
        self.mark(rest.max(Changed::Running));
    }

    fn mark(&mut self, changed: Changed) {
        self.changed = self.changed.max(changed);
    }

    /// The number of a slug; a new slug gets one.
    pub(super) fn slug(&mut self, slug: &str) -> Result<i64> {
        numbered(
            &mut self.statements,
            &mut self.slugs,
            slug,
            Sql::InsertSlug,
            Sql::Slug,
        )
    }

    /// The number of a target; a new target gets one.
    pub(super) fn target(&mut self, target: &str) -> Result<i64> {
        numbered(
            &mut self.statements,
            &mut self.targets,
            target,
            Sql::InsertTarget,
            Sql::Target,
        )
    }
}

fn numbered(
    statements: &mut Statements<'_>,
    known: &mut HashMap<String, i64>,
    name: &str,
    insert: Sql,
    select: Sql,
) -> Result<i64> {
    if let Some(id) = known.get(name) {
        return Ok(*id);
    }
    statements.get(insert)?.execute([name])?;
    let id = statements
        .get(select)?
        .query_row([name], |row| row.get(0))?;
    known.insert(name.to_owned(), id);
    Ok(id)
}

/// The row that `select_totals` returns.
pub(super) fn totals(row: &rusqlite::Row<'_>) -> Result<Totals> {
    let sum = |column: usize| {
        let text = row.get_ref(column)?.as_str()?;
        // Sums of ordinary ledgers fit 64 bits, which are read in a quarter of the time; every batch reads four.
        let small = text.parse::<i64>().map(i128::from);
        small
            .or_else(|_| text.parse())
            .map_err(|error| malformed(Type::Text, error))
    };
    Ok(Totals {
        keys: rows::count(row, 0)?,
        entries: rows::count(row, 1)?,
        holds: rows::count(row, 2)?,
        credit: sum(3)?,
        spent: sum(4)?,
        held: sum(5)?,
        loss: sum(6)?,
        exposure: sum(7)?,
        cost: sum(8)?,
    })
}
