//! The writer's transactions, one at a time: begin, run operations, flush, commit.
//!
//! A batch holds the write lock from its beginning, carries the running totals, and never commits by itself. Between transactions
//! it keeps its statements, the numbers of slugs and, unless another connection has committed meanwhile, the totals and its `rows`:
//! the customers, keys and open holds that it last read or wrote, which SQLite keeps in its own page cache under the same condition. After
//! another program's commit and after a rollback everything is forgotten. `fetch` adds what an operation needs, `flush` writes what
//! it changed.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, DEFAULT_NAME, FileControl, Result, params};

use super::key_cache::{CacheChange, KeyCache};
use super::migrations::VERSION;
use super::statements::{Sql, Statements};
use super::totals::{self, EntrySums, LAG};
use crate::batch::rows::{Positions, Rows};
use crate::store::rows::number;
use crate::{OperationId, Served, clock};

/// Most rows kept of each kind: some 8 MB of each.
const MOST: usize = 16_384;

/// Which totals a batch has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    Nothing,
    /// Rows, and no totals: most holds.
    Rows,
    /// Totals that follow from the new entries.
    Sums,
    Anything,
}

/// The connection that writes, and the transaction open on it.
#[derive(Debug)]
pub(super) struct Batch<'c> {
    pub(super) conn: &'c Connection,
    pub(super) rows: Rows,
    pub(super) tables: BatchTables<'c>,
    /// Every open hold with a greater id is in `rows`. Ids begin with their time, so hardly a new one has to be looked up.
    pub(super) holds_after: Option<OperationId>,
    /// The version of the schema when the totals were read.
    schema: i64,
    /// The data version of the totals and rows; `None` before the first commit and after a rollback.
    version: Option<u32>,
    ledger: Option<[u8; 16]>,
    /// Nobody else may have set defaults since they were read.
    pub(super) knows_defaults: bool,
    /// Other defaults bind from the next transaction on.
    pub(super) sets_defaults: bool,
    /// Keys cached for readers.
    remembered: Option<Arc<KeyCache>>,
}

/// What a batch is written with and to.
#[derive(Debug)]
pub(super) struct BatchTables<'c> {
    pub(super) statements: Statements<'c>,
    /// Rows of `slugs` and `targets` never change, so they may be cached until a transaction is rolled back.
    slugs: HashMap<String, i64>,
    targets: HashMap<String, Vec<(Served, i64)>>,
    /// No entry has a greater operation id.
    pub(super) newest_entry: Option<OperationId>,
    pub(super) sums: EntrySums,
    /// The newest entry that the row of the totals counts.
    written: i64,
    changed: Changed,
    /// Something was erased, of which the log must keep no older pages.
    pub(super) erased: bool,
    /// What this transaction does to keys that readers may have cached; `None` if none do.
    moved: Option<Vec<CacheChange>>,
}

impl<'c> Batch<'c> {
    pub(super) fn new(conn: &'c Connection, remembered: Option<Arc<KeyCache>>) -> Self {
        Self {
            conn,
            rows: Rows::default(),
            tables: BatchTables {
                statements: Statements::new(conn),
                slugs: HashMap::new(),
                targets: HashMap::new(),
                newest_entry: None,
                sums: EntrySums::default(),
                written: 0,
                changed: Changed::Nothing,
                erased: false,
                moved: remembered.as_ref().map(|_| Vec::new()),
            },
            holds_after: None,
            schema: VERSION,
            version: None,
            ledger: None,
            knows_defaults: false,
            sets_defaults: false,
            remembered,
        }
    }

    /// Takes the write lock, and reads the totals if another connection may have changed them.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.tables.statements.get(Sql::Begin)?.execute([])?;
        self.tables.changed = Changed::Nothing;
        if let Some(remembered) = &self.remembered {
            remembered.begin();
        }
        self.tables.moved.iter_mut().for_each(Vec::clear);
        self.rows.now = clock::now().millis().saturating_mul(1_000);
        if self.version.is_some() && self.version == Some(self.data_version()?) {
            self.stay_small();
            return Ok(());
        }
        self.forget();
        let statements = &mut self.tables.statements;
        let mut counted = totals::stored(statements.get(Sql::Totals)?)?;
        counted.catch_up(statements.get(Sql::EntriesAfter)?)?;
        (self.rows.epoch, self.schema) = (counted.epoch, counted.schema);
        self.rows.positions = Positions::Counted {
            entries: number(counted.sums.totals.entries),
            acts: counted.acts,
        };
        (self.tables.sums, self.tables.written) = (counted.sums, counted.written);
        self.knows_defaults = false;
        self.rows.ledger = match self.ledger {
            Some(ledger) => ledger,
            None => {
                let identity = self.tables.statements.get(Sql::Identity)?;
                *self
                    .ledger
                    .insert(identity.query_row([], |row| row.get(0))?)
            }
        };
        Ok(())
    }

    /// The version of the schema, if another process has changed it since this one opened the ledger: the file was moved to
    /// another store, or brought up to date by a newer program.
    pub(super) fn other_schema(&self) -> Option<i64> {
        (self.schema != VERSION).then_some(self.schema)
    }

    /// Undoes everything since the beginning, unless SQLite has already done so.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.tables.slugs.clear();
        self.tables.targets.clear();
        (self.tables.erased, self.sets_defaults) = (false, false);
        self.forget();
        if self.conn.is_autocommit() {
            Ok(())
        } else {
            self.conn.execute_batch("ROLLBACK")
        }
    }

    fn forget(&mut self) {
        self.version = None;
        (self.holds_after, self.tables.newest_entry) = (None, None);
        self.rows = Rows {
            now: self.rows.now,
            ..Rows::default()
        };
    }

    /// A full table is emptied: the rows of running requests are read once more, and no order of use has to be kept.
    fn stay_small(&mut self) {
        // A key is never there without its customer.
        if self.rows.keys.len() > MOST || self.rows.customers.len() > MOST {
            self.rows.keys.clear();
            self.rows.customers.clear();
        }
        if self.rows.holds.len() > MOST {
            self.rows.holds.clear();
            self.holds_after = None;
        }
    }

    /// Changes when another connection has committed since our last commit.
    fn data_version(&self) -> Result<u32> {
        let mut version = 0;
        self.conn
            .file_control(DEFAULT_NAME, FileControl::DataVersion(&mut version))?;
        Ok(version)
    }

    /// Writes what is left and the totals, and commits. After an error the caller rolls back.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.flush()?;
        self.tables.write_totals(&self.rows)?;
        self.tables.statements.get(Sql::Commit)?.execute([])?;
        self.version = self.data_version().ok();
        if std::mem::take(&mut self.sets_defaults) {
            self.version = None;
            self.tables.note(CacheChange::Defaults);
        }
        // Only then was a row certainly written and the commit counted. Otherwise the cached keys are forgotten with this batch.
        if let (Some(remembered), Some(moved)) = (&self.remembered, &mut self.tables.moved)
            && self.tables.changed != Changed::Nothing
        {
            remembered.committed(moved.drain(..));
        }
        Ok(())
    }
}

impl BatchTables<'_> {
    /// Once for each batch.
    fn write_totals(&mut self, rows: &Rows) -> Result<()> {
        let positions = rows.positions;
        let entries = positions.next_entry().saturating_sub(1);
        let waits = match self.changed {
            Changed::Nothing | Changed::Rows => true,
            Changed::Sums => entries < self.written.saturating_add(LAG),
            Changed::Anything => false,
        };
        if waits {
            return Ok(());
        }
        self.written = entries;
        let totals = self.sums.totals;
        self.statements.get(Sql::UpdateTotals)?.execute(params![
            number(totals.keys),
            entries,
            positions.next_act().saturating_sub(1),
            rows.epoch,
            totals.credit.to_string(),
            totals.spent.to_string(),
            totals.loss.to_string(),
            self.sums.charges,
            totals.exposure.to_string(),
            totals.cost.to_string(),
        ])?;
        Ok(())
    }

    /// Records what this transaction does to a key or customer.
    pub(super) fn note(&mut self, moved: CacheChange) {
        if let Some(all) = &mut self.moved {
            all.push(moved);
        }
    }

    pub(super) fn mark(&mut self, changed: Changed) {
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

    /// The number of a target that served this; a new one gets one.
    pub(super) fn target(&mut self, target: &str, served: &Served) -> Result<i64> {
        let mut known = self.targets.get(target).into_iter().flatten();
        if let Some((_, id)) = known.find(|(other, _)| other == served) {
            return Ok(*id);
        }
        let (tier, place) = (served.tier.as_str(), served.place.as_str());
        let values = params![target, tier, place, served.context_band, served.account];
        self.statements.get(Sql::InsertTarget)?.execute(values)?;
        let select = self.statements.get(Sql::Target)?;
        let id = select.query_row(values, |row| row.get(0))?;
        let known = self.targets.entry(target.to_owned()).or_default();
        known.push((served.clone(), id));
        Ok(id)
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
