//! Both ends of a copy of a whole ledger in a file.
//!
//! As a source, the file is locked as a gateway locks it, and a write transaction keeps commands and consoles out. As a target, it
//! is built under a random name beside its own, and gets that name only once it is whole, verified and on disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};
use tempfile::TempPath;

use super::batch::Batch;
use super::location::{resolve, wal_path};
use super::migrations::{Birth, VERSION};
use super::{ServeLock, backup, files, rows, verify};
use crate::batch::tx::{Fault, StoredHold, StoredKey, Tx};
use crate::book::chain::{ChainedAct, ChainedEntry};
use crate::book::head::{AuditHead, Head};
use crate::hold::Held;
use crate::store::copy::{Identity, MOVED, Part, ROWS, Rest, Side, Source, Target, replayed};
use crate::{Account, LedgerError, NewHold, OpenMode, Refusal, VerifyReport};

fn failed(error: impl std::fmt::Display) -> LedgerError {
    LedgerError::Unavailable(format!("the ledger could not be copied: {error}"))
}

fn fault(fault: Fault<rusqlite::Error>) -> LedgerError {
    match fault {
        Fault::Refused(refusal) => refusal.into(),
        Fault::Store(error) => failed(error),
    }
}

fn keys(conn: &Connection, after: i64) -> Result<Vec<StoredKey>, LedgerError> {
    let sql = concat!(
        rows::select_key!(),
        " WHERE k.id > ?1 ORDER BY k.id LIMIT ?2"
    );
    let mut statement = conn.prepare_cached(sql).map_err(failed)?;
    statement
        .query_map(params![after, ROWS], rows::stored_key)
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
    async fn keys(&mut self, after: i64) -> Result<Vec<StoredKey>, LedgerError> {
        keys(&self.conn, after)
    }
}

impl Source for CopySource {
    async fn identity(&mut self) -> Result<Identity, LedgerError> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Identity {
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
        let sql = "SELECT * FROM audit WHERE position > ?1 ORDER BY position LIMIT ?2";
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        let read = |row: &rusqlite::Row<'_>| {
            let act = rows::stored_act(row)?;
            Ok(ChainedAct {
                record: act.record,
                format: act.format,
                hash: act.hash,
            })
        };
        statement
            .query_map(params![after, ROWS], read)
            .and_then(Iterator::collect)
            .map_err(failed)
    }

    async fn entries(&mut self, after: i64) -> Result<Vec<ChainedEntry>, LedgerError> {
        let sql = concat!(
            rows::select_entry!(),
            " WHERE e.position > ?1 ORDER BY e.position LIMIT ?2"
        );
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        let read = |row: &rusqlite::Row<'_>| {
            let stored = rows::stored_entry(row)?;
            Ok(ChainedEntry {
                entry: stored.entry,
                format: stored.format,
                hash: stored.hash,
            })
        };
        statement
            .query_map(params![after, ROWS], read)
            .and_then(Iterator::collect)
            .map_err(failed)
    }

    async fn rest(&mut self) -> Result<Rest, LedgerError> {
        let read = || -> rusqlite::Result<Rest> {
            let mut holds = self.conn.prepare("SELECT * FROM holds")?;
            let holds = holds
                .query_map([], rows::stored_hold)?
                .collect::<rusqlite::Result<_>>()?;
            let mut sessions = self
                .conn
                .prepare("SELECT token, key, at, expires FROM sessions")?;
            let session = |row: &rusqlite::Row<'_>| {
                Ok(crate::Session {
                    token: row.get(0)?,
                    key: row.get(1)?,
                    at: row.get(2)?,
                    expires: row.get(3)?,
                })
            };
            let sessions = sessions
                .query_map([], session)?
                .collect::<rusqlite::Result<_>>()?;
            let mut links = self.conn.prepare("SELECT token, key, expires FROM links")?;
            let link = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let links = links
                .query_map([], link)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Rest {
                holds,
                sessions,
                links,
                slugs: super::reads::published(&self.conn)?,
                votes: super::reads::votes(&self.conn)?,
            })
        };
        read().map_err(failed)
    }
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
            return Err(LedgerError::Unusable(format!(
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
        self.conn.as_ref().ok_or_else(|| failed("it was not begun"))
    }
}

impl Side for CopyTarget {
    async fn keys(&mut self, after: i64) -> Result<Vec<StoredKey>, LedgerError> {
        keys(self.conn()?, after)
    }
}

impl Target for CopyTarget {
    async fn begin(&mut self, identity: Identity) -> Result<(), LedgerError> {
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

    async fn write(&mut self, part: Part) -> Result<(), LedgerError> {
        let mut batch = Batch::new(self.conn()?, None);
        batch.begin().map_err(failed)?;
        match part {
            Part::Keys(keys) => keys.iter().try_for_each(|stored| key(&mut batch, stored)),
            Part::Acts(acts) => acts
                .into_iter()
                .try_for_each(|chained| act(&mut batch, chained)),
            Part::Entries(entries, names) => entries
                .into_iter()
                .try_for_each(|chained| entry(&mut batch, chained))
                .and_then(|()| {
                    names
                        .iter()
                        .try_for_each(|(folded, operation)| Ok(batch.register(folded, *operation)?))
                }),
            Part::Rest(rest) => all_the_rest(&mut batch, &rest),
        }
        .map_err(fault)?;
        batch.commit().map_err(failed)
    }

    async fn finish(mut self) -> Result<VerifyReport, LedgerError> {
        let conn = self.conn.take().ok_or_else(|| failed("it was not begun"))?;
        conn.pragma_update(None, "journal_mode", "delete")
            .map_err(failed)?;
        conn.close().map_err(|(_, error)| failed(error))?;
        backup::seal(self.part, &self.to).map_err(failed)
    }
}

type Step = Result<(), Fault<rusqlite::Error>>;

/// A key without money, which comes with its entries.
fn key(batch: &mut Batch<'_>, stored: &StoredKey) -> Step {
    batch.insert_key(&StoredKey {
        key: stored.key.clone(),
        head: Head::NONE,
        audit: AuditHead::NONE,
    })?;
    batch.update_key(&stored.key)
}

fn act(batch: &mut Batch<'_>, chained: ChainedAct) -> Step {
    let ChainedAct {
        mut record,
        format,
        hash,
    } = chained;
    let key = record.record.key;
    let head = batch.key(key)?.ok_or(Refusal::NoSuchKey(key))?.audit;
    record.record.position = batch.next_act();
    batch.append_chained_act(&record, format, &hash, &head)
}

/// Databases number entries with gaps, files without. Only entries of the first format are hashed with their number, and they never
/// have gaps before them.
fn entry(batch: &mut Batch<'_>, chained: ChainedEntry) -> Step {
    let ChainedEntry {
        mut entry,
        format,
        hash,
    } = chained;
    let (before, head) = batch
        .account(entry.key)?
        .ok_or(Refusal::NoSuchKey(entry.key))?;
    let after = replayed(before, &entry).ok_or(Refusal::OperationUsed(entry.operation))?;
    entry.position = batch.next_position();
    batch.append_chained(&entry, format, &hash, &head, before, after)?;
    if entry.bill.is_some() {
        // Each charge ended a hold.
        batch.count_hold(true);
        batch.count_hold(false);
    }
    Ok(())
}

fn all_the_rest(batch: &mut Batch<'_>, rest: &Rest) -> Step {
    for StoredHold {
        open,
        opened,
        checkpoint,
    } in &rest.holds
    {
        let (slug, family) = (open.slug.clone(), open.family.clone());
        let new = NewHold {
            request: open.request,
            key: open.key,
            amount: *opened,
            slug,
            family,
            at: open.at,
        };
        batch.insert_hold(&new)?;
        if let Some(checkpoint) = checkpoint {
            batch.update_hold(open.request, open.amount, open.used, checkpoint)?;
        }
        let held = batch
            .held(open.request)?
            .map(|Held { amount, .. }| amount)
            .unwrap_or_default();
        let (before, _) = batch
            .account(open.key)?
            .ok_or(Refusal::NoSuchKey(open.key))?;
        let used = || Refusal::OperationUsed(open.request);
        let after = Account {
            held: before.held.checked_add(held).ok_or_else(used)?,
            ..before
        };
        batch.set_held(open.key, before, after)?;
    }
    for session in &rest.sessions {
        let values = params![session.token, session.key, session.at, session.expires];
        batch
            .conn
            .execute("INSERT INTO sessions VALUES (?1, ?2, ?3, ?4)", values)?;
    }
    for (token, key, expires) in &rest.links {
        batch.conn.execute(
            "INSERT INTO links VALUES (?1, ?2, ?3)",
            params![token, key, expires],
        )?;
    }
    rest.slugs
        .iter()
        .try_for_each(|slug| batch.publish(&slug.slug, slug.since))?;
    rest.votes.iter().try_for_each(|vote| batch.vote(vote))
}
