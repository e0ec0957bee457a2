//! Verified copies and anchors, the safety data kept outside the ledger. Both only read, and work while a gateway runs.

use std::fs::File;
use std::path::Path;

use rusqlite::backup::Backup;
use rusqlite::{Connection, Result, Row};
use tempfile::TempPath;

use super::files;
use super::paths::belongs_to_ledger;
use super::rows::Columns;
use super::totals;
use super::verify;
use crate::book::anchor::{Anchor, ChainHeads, Heads, HouseEnd};
use crate::store::rows::{RowColumns as _, number};
use crate::{Cause, LedgerError, OpenMode, Timestamp, VerifyReport};

/// What the chains came to since an anchor.
pub(super) fn anchor(conn: &Connection, since: &Anchor, now: Timestamp) -> Result<Anchor> {
    let instant = conn.unchecked_transaction()?;
    let counted = totals::count(conn)?;
    let open: i64 = conn.query_row("SELECT count(*) FROM holds", [], |row| row.get(0))?;
    let customers = changed_customers(conn, since)?;
    let house = HouseEnd::of(super::tables::house_head(&instant)?);
    instant.finish()?;
    Ok(Anchor::Heads(Heads {
        at: now.to_string(),
        entries: number(counted.sums.totals.entries),
        acts: counted.acts,
        // Each hold that was ever opened is open, or has ended in a charge.
        opened: counted.sums.charges.saturating_add(open),
        customers,
        generation: 0,
        house,
    }))
}

fn changed_customers(conn: &Connection, since: &Anchor) -> Result<Vec<ChainHeads>> {
    let mut statement = conn.prepare_cached(
        "SELECT a.id, a.seq, a.hash, a.audit_seq, a.audit_hash FROM accounts a WHERE a.id IN
         (SELECT customer FROM entries WHERE position > ?1 UNION SELECT customer FROM audit WHERE position > ?2) ORDER BY a.id",
    )?;
    let heads = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        let (customer, seq, hash) = (columns.read()?, columns.number()?, columns.read()?);
        Ok(ChainHeads {
            customer,
            seq,
            hash,
            act: columns.number()?,
            act_hash: columns.read()?,
        })
    };
    statement
        .query_map([since.entries(), since.acts()], heads)?
        .collect()
}

/// Copies the ledger to a new file and verifies the copy; only a sound copy gets its name. Until then it has a random
/// name, so that no symlink or file planted in advance is followed or overwritten.
pub(super) fn backup(
    conn: &Connection,
    to: &Path,
) -> std::result::Result<VerifyReport, LedgerError> {
    let what = format!("no copy was made at {}", to.display());
    let failed = |why: &str| LedgerError::unusable(format!("{what}: {why}"));
    if to.symlink_metadata().is_ok() {
        return Err(failed("the file already exists"));
    }
    if conn
        .path()
        .is_some_and(|ledger| belongs_to_ledger(Path::new(ledger), to))
    {
        return Err(failed(
            "the ledger itself uses this name; choose another one",
        ));
    }
    named_copy(conn, to).map_err(|error| LedgerError::unusable(Cause::of(&what, error)))
}

fn named_copy(conn: &Connection, to: &Path) -> std::io::Result<VerifyReport> {
    let directory = to
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let part = tempfile::Builder::new()
        .prefix(".farebox-")
        .suffix(".part")
        .tempfile_in(directory)?;
    // Closed before SQLite opens it: closing it later would drop SQLite's locks.
    let part = part.into_temp_path();
    copy(conn, &part)?;
    seal(part, to)
}

/// Verifies a ledger that is a single file, and gives it its name once it is on disk.
pub(super) fn seal(part: TempPath, to: &Path) -> std::io::Result<VerifyReport> {
    // In this order whoever finds the name finds a whole ledger behind it, after a power failure, too.
    File::open(&part)?.sync_all()?;
    let report = check_copy(&part)?;
    part.persist_noclobber(to).map_err(|error| error.error)?;
    let directory = to
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()?;
    Ok(report)
}

fn copy(conn: &Connection, part: &Path) -> std::io::Result<()> {
    let mut target = Connection::open(part).map_err(std::io::Error::other)?;
    // Copying all pages in one step captures one instant of the ledger; its writer continues meanwhile.
    Backup::new(conn, &mut target)
        .and_then(|backup| backup.step(-1))
        .map_err(std::io::Error::other)?;
    // A single file, without a log.
    target
        .pragma_update(None, "journal_mode", "delete")
        .map_err(std::io::Error::other)?;
    target
        .close()
        .map_err(|(_, error)| std::io::Error::other(error))
}

fn check_copy(part: &Path) -> std::io::Result<VerifyReport> {
    let copy = files::open(part, OpenMode::ReadOnly).map_err(std::io::Error::other)?;
    let state: String = copy
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(std::io::Error::other)?;
    if state != "ok" {
        // Its first line only names the schema.
        let found = state.lines().last().unwrap_or_default();
        return Err(std::io::Error::other(format!(
            "the ledger is damaged ({found}): {}",
            files::RESTORE
        )));
    }
    let report = verify::verify(&copy, &[], &|| true).map_err(std::io::Error::other)?;
    match report.faults.first() {
        None => Ok(report),
        Some(first) => Err(std::io::Error::other(format!(
            "{} faults in the books, the first one: {first}",
            report.faults.len()
        ))),
    }
}
