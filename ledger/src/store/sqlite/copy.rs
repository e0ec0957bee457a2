//! Both ends of a copy of a whole ledger in a file.
//!
//! As a source, the file is locked as a gateway locks it, and a write transaction keeps commands and consoles out. As a target, it
//! is built under a random name beside its own, and gets that name only once it is whole, verified and on disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};
use tempfile::TempPath;

use super::batch::Batch;
use super::migrations::{Birth, VERSION};
use super::paths::{resolve, wal_path};
use super::rows::SELECT_KEY_RECORD;
use super::{ServeLock, backup, events, files, rows, verify};
use crate::batch::rows::Rows;
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, EntryHead, StoredCustomer};
use crate::rule::key::KeyRecord;
use crate::store::copy::{
    CopyBatch, CopyIdentity, MOVED, ROWS, Rest, Side, SourceLedger, TargetLedger, replayed,
};
use crate::store::select::SELECT_CUSTOMER;
use crate::table::list::TableSet;
use crate::{
    Account, Amount, Cause, Event, KeyId, LedgerError, OpenMode, OperationId, Refusal, VerifyReport,
};

const NOT_COPIED: &str = "the ledger could not be copied";

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> LedgerError {
    LedgerError::unavailable(Cause::of(NOT_COPIED, error))
}

fn impossible(why: &str) -> LedgerError {
    LedgerError::unavailable(format!("{NOT_COPIED}: {why}"))
}

fn customers(conn: &Connection, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
    let sql = format!("{SELECT_CUSTOMER} WHERE a.id > ?1 ORDER BY a.id LIMIT ?2");
    let mut statement = conn.prepare_cached(&sql).map_err(failed)?;
    statement
        .query_map(params![after, ROWS], rows::row)
        .and_then(Iterator::collect)
        .map_err(failed)
}

fn keys(conn: &Connection, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
    let sql = format!("{SELECT_KEY_RECORD} WHERE k.id > ?1 ORDER BY k.id LIMIT ?2");
    let mut statement = conn.prepare_cached(&sql).map_err(failed)?;
    statement
        .query_map(params![after, ROWS], rows::row)
        .and_then(Iterator::collect)
        .map_err(failed)
}

/// A file that is the source of a copy.
pub(crate) struct CopySource {
    conn: Connection,
    verifier: Connection,
    _lock: ServeLock,
}

impl CopySource {
    /// Locks the ledger against gateways and every other writer.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let (conn, location) = files::open_ledger(path, OpenMode::Write)?;
        let lock = ServeLock::acquire(&location.given, Duration::ZERO)?;
        // The serve lock keeps gateways out, the transaction commands and consoles. The path is looked at once both are held.
        conn.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        location.check()?;
        let verifier = files::connect_again(&location, OpenMode::ReadOnly)?;
        Ok(Self {
            conn,
            verifier,
            _lock: lock,
        })
    }
}

impl Side for CopySource {
    async fn customers(&mut self, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
        customers(&self.conn, after)
    }

    async fn keys(&mut self, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
        keys(&self.conn, after)
    }
}

impl SourceLedger for CopySource {
    async fn identity(&mut self) -> Result<CopyIdentity, LedgerError> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(CopyIdentity {
                ledger: row.get(0)?,
                generation: row.get(1)?,
                made_at: row.get(2)?,
            })
        };
        self.conn
            .query_row("SELECT ledger, generation, made_at FROM identity", [], read)
            .map_err(failed)
    }

    async fn retire(self) -> Result<(), LedgerError> {
        self.conn
            .pragma_update(None, "user_version", VERSION.saturating_add(MOVED.into()))
            .and_then(|()| self.conn.execute_batch("COMMIT"))
            .map_err(failed)
    }

    async fn verify(&mut self) -> Result<VerifyReport, LedgerError> {
        verify::verify(&self.verifier, &[], &|| true).map_err(failed)
    }

    async fn acts(&mut self, after: i64) -> Result<Vec<ChainedAct>, LedgerError> {
        let sql = concat!(
            rows::select_act!(),
            " WHERE position > ?1 ORDER BY position LIMIT ?2"
        );
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        statement
            .query_map(params![after, ROWS], rows::stored_act)
            .and_then(Iterator::collect)
            .map_err(failed)
    }

    async fn entries(&mut self, after: i64) -> Result<Vec<ChainedEntry>, LedgerError> {
        let sql = concat!(
            rows::select_entry!(),
            " WHERE e.position > ?1 ORDER BY e.position LIMIT ?2"
        );
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        statement
            .query_map(params![after, ROWS], rows::stored_entry)
            .and_then(Iterator::collect)
            .map_err(failed)
    }

    async fn events(&mut self, after: Option<OperationId>) -> Result<Vec<Event>, LedgerError> {
        let found = events::after(&self.conn, after, ROWS as usize).map_err(failed)?;
        Ok(found.unwrap_or_default())
    }

    async fn rest(&mut self) -> Result<Rest, LedgerError> {
        let tables = TableSet::read(&mut &self.conn).await.map_err(failed)?;
        let conn = &self.conn;
        Ok(Rest {
            holds: all_rows(conn, rows::select_hold!(), rows::stored_hold)?,
            slugs: super::reads::published(conn).map_err(failed)?,
            taught: super::lessons::taught(conn).map_err(failed)?,
            own_costs: super::reads::own_costs(conn, i64::MIN, i64::MAX).map_err(failed)?,
            deliveries: super::deliveries::all(conn).map_err(failed)?,
            tables,
            claims: all_rows(
                conn,
                "SELECT id, claim FROM accounts WHERE claim > 0",
                rows::row,
            )?,
            personal: all_rows(conn, "SELECT customer, data FROM personal_data", rows::row)?,
            addressees: all_rows(
                conn,
                "SELECT folded, customer, data FROM addressees",
                rows::row,
            )?,
        })
    }
}

fn all_rows<T>(
    conn: &Connection,
    sql: &str,
    decode: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, LedgerError> {
    let mut statement = conn.prepare(sql).map_err(failed)?;
    statement
        .query_map([], decode)
        .and_then(Iterator::collect)
        .map_err(failed)
}

/// A file that becomes a copy.
pub(crate) struct CopyTarget {
    to: PathBuf,
    part: TempPath,
    conn: Option<Connection>,
}

impl CopyTarget {
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let given = std::path::absolute(path).map_err(failed)?;
        let to = resolve(&given)?;
        if to.symlink_metadata().is_ok() || wal_path(&to).symlink_metadata().is_ok() {
            let advice = "a copy never writes over a file, so name a new one";
            return Err(LedgerError::unusable(format!(
                "{} is already there: {advice}",
                to.display()
            )));
        }
        let folder = to.parent().unwrap_or(Path::new("/"));
        let part = tempfile::Builder::new()
            .prefix(".farebox-")
            .suffix(".part")
            .tempfile_in(folder)
            .map_err(failed)?;
        // Closed before SQLite opens it: closing it later would drop SQLite's locks.
        Ok(Self {
            to,
            part: part.into_temp_path(),
            conn: None,
        })
    }

    fn conn(&self) -> Result<&Connection, LedgerError> {
        self.conn
            .as_ref()
            .ok_or_else(|| impossible("it was not begun"))
    }
}

impl Side for CopyTarget {
    async fn customers(&mut self, after: i64) -> Result<Vec<StoredCustomer>, LedgerError> {
        customers(self.conn()?, after)
    }

    async fn keys(&mut self, after: i64) -> Result<Vec<KeyRecord>, LedgerError> {
        keys(self.conn()?, after)
    }
}

impl TargetLedger for CopyTarget {
    async fn begin(&mut self, identity: CopyIdentity) -> Result<(), LedgerError> {
        let conn = files::make(
            &self.part,
            &Birth {
                ledger: identity.ledger,
                at: identity.made_at,
            },
        )?;
        // Nobody uses the file before it has its name, and it is synced by then.
        conn.execute_batch("PRAGMA synchronous = OFF")
            .map_err(failed)?;
        conn.execute("UPDATE identity SET generation = ?1", [identity.generation])
            .map_err(failed)?;
        self.conn = Some(conn);
        Ok(())
    }

    async fn write(&mut self, part: CopyBatch) -> Result<(), LedgerError> {
        let mut batch = Batch::new(self.conn()?, None);
        batch.begin().map_err(failed)?;
        put(&mut batch, part)?;
        batch.commit().map_err(failed)
    }

    async fn finish(mut self) -> Result<VerifyReport, LedgerError> {
        let conn = self
            .conn
            .take()
            .ok_or_else(|| impossible("it was not begun"))?;
        // Without a log beside it, so that one name moves all of it.
        conn.pragma_update(None, "journal_mode", "delete")
            .map_err(failed)?;
        conn.close().map_err(|(_, error)| failed(error))?;
        backup::seal(self.part, &self.to).map_err(failed)
    }
}

/// Adds a part to the batch's rows. Databases number entries and acts with gaps, files without, so both are chained anew. Only those
/// of the first format are hashed with their number, and they never have gaps before them.
fn put(batch: &mut Batch<'_>, part: CopyBatch) -> Result<(), LedgerError> {
    match part {
        CopyBatch::Customers(customers) => {
            for StoredCustomer {
                mut customer,
                watch,
                ..
            } in customers
            {
                // Its money comes with its entries, and what it owes after them.
                (customer.account, customer.last_entry_at) = (Account::default(), None);
                customer.claim = Amount::ZERO;
                batch.rows.insert_customer(StoredCustomer {
                    customer,
                    head: EntryHead::NONE,
                    audit: AuditHead::NONE,
                    watch,
                    opened: 0,
                });
            }
        }
        CopyBatch::Keys(keys) => keys.into_iter().for_each(|key| batch.rows.insert_key(key)),
        CopyBatch::Acts(acts) => {
            for mut act in acts {
                batch
                    .fetch_customer(act.record.record.customer)
                    .map_err(failed)?;
                act.record.record.position = batch.rows.positions.next_act();
                batch.rows.append_act(act.record, act.format, act.hash);
            }
        }
        CopyBatch::Entries(entries, names) => {
            for chained in entries {
                batch
                    .fetch_customer(chained.entry.customer)
                    .map_err(failed)?;
                append(&mut batch.rows, chained)?;
            }
            for (folded, operation) in names {
                batch.rows.register(folded, operation);
            }
        }
        CopyBatch::Events(events) => {
            let told = &mut batch.rows.changes.events;
            events.into_iter().for_each(|event| told.put(event));
        }
        CopyBatch::Rest(rest) => {
            for hold in &rest.holds {
                batch.fetch_key(hold.open.key).map_err(failed)?;
                held(&mut batch.rows, hold.open.key, hold.open.amount)?;
            }
            for (customer, _) in &rest.claims {
                batch.fetch_customer(*customer).map_err(failed)?;
            }
            rest.put(&mut batch.rows);
        }
    }
    Ok(())
}

fn append(rows: &mut Rows, chained: ChainedEntry) -> Result<(), LedgerError> {
    let ChainedEntry {
        mut entry,
        format,
        hash,
        ..
    } = chained;
    let before = rows.customer(entry.customer)?.customer.account;
    let after = replayed(before, &entry).ok_or(Refusal::OperationUsed(entry.operation))?;
    entry.position = rows.positions.next_entry();
    if entry.bill.is_some() {
        // Each charge ended a hold.
        rows.count_opened(entry.customer);
    }
    rows.append(entry, format, hash, after);
    Ok(())
}

fn held(rows: &mut Rows, key: KeyId, more: Amount) -> Result<(), LedgerError> {
    let (_, stored) = rows.key_and_customer(key)?;
    let (customer, account) = (stored.customer.id, stored.customer.account);
    let too_much = || impossible(&format!("the holds of key {key} are too large"));
    let held = account.held.checked_add(more).ok_or_else(too_much)?;
    rows.set_account(customer, Account { held, ..account });
    rows.count_opened(customer);
    Ok(())
}
