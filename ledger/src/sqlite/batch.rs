//! The writer's transactions, one at a time: the few writes that every operation is made of.
//!
//! A batch holds the write lock from its beginning, carries the running totals and appends to the chains. Operations check
//! everything before their first write, so a refusal leaves nothing behind. It never commits by itself. From one transaction to
//! the next it keeps nothing but statements and the numbers of slugs.

use std::collections::HashMap;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, PrepFlags, Result, Statement, params};

use super::rows::{self, ENTRY_BY_OPERATION, ENTRY_BY_REFERENCE, Head, KEY_BY_ID, StoredEntry, StoredKey, malformed, number};
use crate::account::Account;
use crate::audit::{self, Written};
use crate::chain::{self, Hash};
use crate::{Amount, Bill, Entry, Key, KeyId, OperationId, Refusal, Totals, reference};

/// Why an operation had no effect.
#[derive(Debug)]
pub(super) enum Fault {
    Refused(Refusal),
    Database(rusqlite::Error),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The connection that writes, and the transaction open on it.
#[derive(Debug)]
pub(super) struct Batch<'c> {
    pub(super) conn: &'c Connection,
    statements: Vec<(&'static str, Statement<'c>)>,
    /// Rows of `slugs` never change, so they may be remembered as long as no transaction is rolled back.
    slugs: HashMap<String, i64>,
    totals: Totals,
    entries: i64,
    audits: i64,
    epoch: i64,
    changed: bool,
}

impl<'c> Batch<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            statements: Vec::new(),
            slugs: HashMap::new(),
            totals: Totals::default(),
            entries: 0,
            audits: 0,
            epoch: 0,
            changed: false,
        }
    }

    /// A statement that stays prepared. It is found by where its text lies in the program: finding it by the text itself, as the
    /// connection's cache does, takes a tenth of the time of all writing.
    pub(super) fn statement(&mut self, sql: &'static str) -> Result<&mut Statement<'c>> {
        let known = self.statements.iter().position(|(text, _)| std::ptr::eq(*text, sql));
        let index = known.unwrap_or(self.statements.len());
        if known.is_none() {
            // Told that they stay, SQLite keeps them out of the small fast memory that running statements share.
            self.statements.push((sql, self.conn.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?));
        }
        self.statements.get_mut(index).map(|(_, statement)| statement).ok_or(rusqlite::Error::InvalidQuery)
    }

    /// Takes the write lock and reads the totals.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.statement("BEGIN IMMEDIATE")?.execute([])?;
        let statement = self.statement("SELECT * FROM totals")?;
        (self.totals, self.audits, self.epoch) =
            statement.query_row([], |row| Ok((totals(row)?, row.get("audits")?, row.get("epoch")?)))?;
        self.entries = number(self.totals.entries);
        self.changed = false;
        Ok(())
    }

    /// Undoes what was written since the beginning, unless SQLite has done so itself.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.slugs.clear();
        if self.conn.is_autocommit() { Ok(()) } else { self.conn.execute_batch("ROLLBACK") }
    }

    /// Writes the totals and commits. After an error the caller rolls back.
    pub(super) fn commit(&mut self) -> Result<()> {
        if self.changed {
            let Totals { keys, holds, credit, spent, held, loss, .. } = self.totals;
            let (entries, audits, epoch) = (self.entries, self.audits, self.epoch);
            let statement = self.statement(
                "UPDATE totals SET keys = ?1, entries = ?2, audits = ?3, holds = ?4, epoch = ?5, credit = ?6, spent = ?7,
                 held = ?8, loss = ?9",
            )?;
            statement.execute(params![
                number(keys),
                entries,
                audits,
                number(holds),
                epoch,
                credit.to_string(),
                spent.to_string(),
                held.to_string(),
                loss.to_string(),
            ])?;
        }
        self.statement("COMMIT")?.execute([])?;
        Ok(())
    }

    pub(super) const fn epoch(&self) -> i64 {
        self.epoch
    }

    pub(super) fn set_epoch(&mut self, epoch: i64) {
        self.epoch = epoch;
        self.changed = true;
    }

    pub(super) fn count_key(&mut self) {
        self.totals.keys = self.totals.keys.saturating_add(1);
        self.changed = true;
    }

    pub(super) fn count_hold(&mut self, opened: bool) {
        let holds = self.totals.holds;
        self.totals.holds = if opened { holds.saturating_add(1) } else { holds.saturating_sub(1) };
        self.changed = true;
    }

    // --- reading inside the transaction ---

    pub(super) fn find_key(&mut self, id: KeyId) -> Result<Option<StoredKey>> {
        let statement = self.statement(&KEY_BY_ID)?;
        statement.query_row([id], rows::stored_key).optional()
    }

    pub(super) fn key(&mut self, id: KeyId) -> Result<StoredKey, Fault> {
        self.find_key(id)?.ok_or(Fault::Refused(Refusal::NoSuchKey(id)))
    }

    pub(super) fn entry(&mut self, operation: OperationId) -> Result<Option<Entry>> {
        let statement = self.statement(&ENTRY_BY_OPERATION)?;
        statement.query_row([operation], rows::stored_entry).optional().map(entry_only)
    }

    /// The entry that has this reference: spelled exactly so, or else the one that it is the same as. Ledgers from before
    /// references were folded may have both.
    pub(super) fn entry_by_reference(&mut self, reference: &str) -> Result<Option<Entry>> {
        let exact = self.statement(&ENTRY_BY_REFERENCE)?.query_row([reference], rows::stored_entry).optional()?;
        if exact.is_some() {
            return Ok(entry_only(exact));
        }
        let taken = self.statement("SELECT operation FROM refs WHERE folded = ?1")?;
        let taken: Option<OperationId> = taken.query_row([reference::folded(reference)], |row| row.get(0)).optional()?;
        taken.map_or(Ok(None), |operation| self.entry(operation))
    }

    pub(super) fn audited(&mut self, operation: OperationId) -> Result<Option<crate::AuditRecord>> {
        let statement = self.statement("SELECT * FROM audit WHERE operation = ?1")?;
        statement.query_row([operation], rows::audit_record).optional()
    }

    /// Refuses an operation id that made an entry, an audit record or a hold.
    pub(super) fn check_unused(&mut self, operation: OperationId) -> Result<(), Fault> {
        let statement = self.statement(
            "SELECT EXISTS (SELECT 1 FROM entries WHERE operation = ?1) OR EXISTS (SELECT 1 FROM audit WHERE operation = ?1)
             OR EXISTS (SELECT 1 FROM holds WHERE request = ?1)",
        )?;
        let used: bool = statement.query_row([operation], |row| row.get(0))?;
        if used { Err(Refusal::OperationUsed(operation).into()) } else { Ok(()) }
    }

    // --- writing ---

    /// The position the next entry will have.
    pub(super) fn next_entry(&self) -> i64 {
        self.entries.saturating_add(1)
    }

    /// Changes what a key holds.
    pub(super) fn set_held(&mut self, key: KeyId, before: Account, after: Account) -> Result<()> {
        self.statement("UPDATE accounts SET held = ?2 WHERE id = ?1")?.execute(params![key, after.held])?;
        self.add_up(before, after, Amount::ZERO);
        Ok(())
    }

    /// Appends an entry behind `head` and moves its key's account from `before` to `after`.
    pub(super) fn append(&mut self, entry: &Entry, head: &Head, before: Account, after: Account) -> Result<()> {
        let hash = chain::entry_hash(&head.hash, head.last, entry);
        self.insert_entry(entry, head.last, &hash)?;
        self.statement(
            "UPDATE accounts SET credit = ?2, spent = ?3, held = ?4, seq = ?5, last = ?6, last_at = ?7, hash = ?8
                 WHERE id = ?1",
        )?
        .execute(params![
            entry.key,
            after.credit,
            after.spent,
            after.held,
            entry.seq,
            entry.position,
            entry.at,
            hash
        ])?;
        self.entries = entry.position;
        self.add_up(before, after, entry.bill.as_ref().map_or(Amount::ZERO, |bill| bill.loss));
        Ok(())
    }

    fn insert_entry(&mut self, entry: &Entry, prev: i64, hash: &Hash) -> Result<()> {
        let slug = entry.bill.as_ref().map(|bill| self.slug(&bill.slug)).transpose()?;
        let statement = self.statement(
            "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
             ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33)",
        )?;
        let bill = entry.bill.as_ref();
        let counted = |pick: fn(&Bill) -> u64| bill.map(|bill| number(pick(bill)));
        statement.execute(params![
            entry.position,
            entry.key,
            entry.seq,
            prev,
            entry.operation,
            entry.kind,
            entry.amount,
            entry.balance_after,
            entry.at,
            entry.actor,
            entry.reference,
            entry.reason,
            entry.refunds,
            slug,
            bill.map(|bill| &bill.family),
            bill.map(|bill| &bill.target),
            bill.map(|bill| bill.status),
            bill.map(|bill| &bill.end_reason),
            bill.map(|bill| bill.first_byte_ms),
            bill.map(|bill| bill.total_ms),
            bill.map(|bill| &bill.answer_id),
            bill.map(|bill| bill.hold),
            bill.map(|bill| bill.loss),
            bill.map(|bill| bill.evidence),
            counted(|bill| bill.usage.input),
            counted(|bill| bill.usage.cache_read),
            counted(|bill| bill.usage.cache_write),
            counted(|bill| bill.usage.cache_write_1h),
            counted(|bill| bill.usage.output),
            counted(|bill| bill.usage.reasoning),
            counted(|bill| bill.usage.images),
            bill.map(|bill| rows::lines_text(&bill.lines)).transpose()?,
            hash,
        ])?;
        if let Some(reference) = &entry.reference {
            let statement = self.statement("INSERT INTO refs VALUES (?1, ?2)")?;
            statement.execute(params![reference::folded(reference), entry.operation])?;
        }
        match (slug, bill) {
            (Some(slug), Some(bill)) => self.roll_up(entry, bill, slug),
            _ => Ok(()),
        }
    }

    /// Adds an ended request to its hour.
    fn roll_up(&mut self, entry: &Entry, bill: &Bill, slug: i64) -> Result<()> {
        let usage = &bill.usage;
        let charge = entry.amount.checked_neg().unwrap_or_default();
        let values = params![
            entry.at.hour(),
            entry.key,
            slug,
            number(usage.input),
            number(usage.cache_read),
            number(usage.cache_write),
            number(usage.cache_write_1h),
            number(usage.output),
            number(usage.reasoning),
            number(usage.images),
            charge,
            bill.loss,
        ];
        // Two statements, because SQLite copies the pages of one that may do either. min() keeps an hour of absurd losses an
        // integer; sums of believable counts come nowhere near.
        let statement = self.statement(
            "UPDATE usage SET requests = requests + 1, input = input + ?4, cache_read = cache_read + ?5,
                 cache_write = cache_write + ?6, cache_write_1h = cache_write_1h + ?7, output = output + ?8,
                 reasoning = reasoning + ?9, images = images + ?10, charge = min(charge + ?11, 9223372036854775807),
                 loss = min(loss + ?12, 9223372036854775807)
             WHERE hour = ?1 AND key = ?2 AND slug = ?3",
        )?;
        if statement.execute(values)? == 0 {
            let statement = self.statement("INSERT INTO usage VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?;
            statement.execute(values)?;
        }
        Ok(())
    }

    fn slug(&mut self, slug: &str) -> Result<i64> {
        if let Some(id) = self.slugs.get(slug) {
            return Ok(*id);
        }
        self.statement("INSERT OR IGNORE INTO slugs (slug) VALUES (?1)")?.execute([slug])?;
        let id = self.statement("SELECT id FROM slugs WHERE slug = ?1")?.query_row([slug], |row| row.get(0))?;
        self.slugs.insert(slug.to_owned(), id);
        Ok(id)
    }

    /// Appends an act to the audit; `stored` is the key after it, with the chain's end before it.
    pub(super) fn write_audit(&mut self, act: Written, key: &Key, prev: i64, before: &Hash) -> Result<()> {
        self.audits = self.audits.saturating_add(1);
        self.changed = true;
        let record = act.record(self.audits);
        let state = audit::state(key);
        let hash = chain::audit_hash(before, prev, &record, &state);
        self.statement("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?.execute(params![
            record.position,
            record.key,
            prev,
            record.operation,
            record.act,
            record.actor,
            record.at,
            record.details,
            state,
            hash
        ])?;
        let statement = self.statement("UPDATE keys SET audit_last = ?2, audit_hash = ?3 WHERE id = ?1")?;
        statement.execute(params![record.key, record.position, hash])?;
        Ok(())
    }

    fn add_up(&mut self, before: Account, after: Account, loss: Amount) {
        let moved = |sum: &mut i128, from: Amount, to: Amount| {
            *sum = sum.saturating_add(i128::from(to.picos())).saturating_sub(i128::from(from.picos()));
        };
        moved(&mut self.totals.credit, before.credit, after.credit);
        moved(&mut self.totals.spent, before.spent, after.spent);
        moved(&mut self.totals.held, before.held, after.held);
        moved(&mut self.totals.loss, Amount::ZERO, loss);
        self.changed = true;
    }
}

/// The totals row.
pub(super) fn totals(row: &rusqlite::Row<'_>) -> Result<Totals> {
    let sum = |column: &str| {
        let text: String = row.get(column)?;
        text.parse::<i128>().map_err(|error| malformed(Type::Text, error))
    };
    Ok(Totals {
        keys: rows::count(row, "keys")?,
        entries: rows::count(row, "entries")?,
        holds: rows::count(row, "holds")?,
        credit: sum("credit")?,
        spent: sum("spent")?,
        held: sum("held")?,
        loss: sum("loss")?,
    })
}

fn entry_only(stored: Option<StoredEntry>) -> Option<Entry> {
    stored.map(|stored| stored.entry)
}
