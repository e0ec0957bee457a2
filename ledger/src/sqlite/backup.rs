//! What leaves the ledger to keep it safe: verified copies and anchors. Both only read, beside a running gateway.

use std::fs::File;
use std::path::Path;

use rusqlite::backup::Backup;
use rusqlite::{Connection, Result};

use super::files;
use super::{OpenMode, verify};
use crate::anchor::{Anchor, Mark};
use crate::{LedgerError, Timestamp, VerifyReport};

const JOURNAL: &str = "SELECT hash FROM entries WHERE position > ?1 ORDER BY position";
const AUDIT: &str = "SELECT hash FROM audit WHERE position > ?1 ORDER BY position";

/// Continues an anchor over what was appended since.
pub(super) fn anchor(conn: &Connection, since: &Anchor, now: Timestamp) -> Result<Anchor> {
    let mut next = Anchor { at: now.to_string(), ..since.clone() };
    let instant = conn.unchecked_transaction()?;
    extend(conn, JOURNAL, &mut next.entries, |_| {})?;
    extend(conn, AUDIT, &mut next.audit, |_| {})?;
    instant.finish()?;
    Ok(next)
}

/// Compares a ledger with its anchors: one fault for each that does not cover what it says.
pub(super) fn check(conn: &Connection, anchors: &[Anchor]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (what, sql, of) in [
        ("entries", JOURNAL, (|anchor| anchor.entries) as fn(&Anchor) -> Mark),
        ("administrative acts", AUDIT, |anchor| anchor.audit),
    ] {
        let mut wanted: Vec<(Mark, &str)> = anchors.iter().map(|anchor| (of(anchor), anchor.at.as_str())).collect();
        wanted.sort_by_key(|(mark, _)| mark.count);
        let mut wanted = wanted.into_iter().peekable();
        let mut compare = |reached: &Mark| {
            while let Some((mark, at)) = wanted.next_if(|(mark, _)| mark.count <= reached.count) {
                if mark != *reached {
                    faults.push(format!("anchor of {at}: the {} {what} it covers are not those in the ledger", mark.count));
                }
            }
        };
        let mut reached = Mark::START;
        compare(&reached);
        extend(conn, sql, &mut reached, compare)?;
        let missing = wanted.map(|(mark, at)| format!("anchor of {at}: covers {} {what}, the ledger has fewer", mark.count));
        faults.extend(missing);
    }
    Ok(faults)
}

fn extend(conn: &Connection, sql: &str, mark: &mut Mark, mut reached: impl FnMut(&Mark)) -> Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([mark.count])?;
    while let Some(row) = rows.next()? {
        mark.add(&row.get(0)?);
        reached(mark);
    }
    Ok(())
}

/// Copies the ledger to a new file and verifies the copy; only a sound copy gets its name. Until then it has a name that nobody
/// can guess, so that nothing which was put in its way is followed or written over.
pub(super) fn backup(conn: &Connection, to: &Path) -> std::result::Result<VerifyReport, LedgerError> {
    let failed = |why: &dyn std::fmt::Display| LedgerError::Unavailable(format!("no copy was made at {}: {why}", to.display()));
    if to.symlink_metadata().is_ok() {
        return Err(failed(&"there is such a file already"));
    }
    named_copy(conn, to).map_err(|error| failed(&error))
}

fn named_copy(conn: &Connection, to: &Path) -> std::io::Result<VerifyReport> {
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let part = tempfile::Builder::new().prefix(".farebox-").suffix(".part").tempfile_in(directory)?;
    // Closed before SQLite opens it: closing it later would drop SQLite's locks.
    let part = part.into_temp_path();
    copy(conn, &part)?;
    let report = check_copy(&part)?;
    part.persist_noclobber(to).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()?;
    Ok(report)
}

fn copy(conn: &Connection, part: &Path) -> std::io::Result<()> {
    let mut target = Connection::open(part).map_err(std::io::Error::other)?;
    // All pages in one step are one instant of the ledger; its writer goes on meanwhile.
    Backup::new(conn, &mut target).and_then(|backup| backup.step(-1)).map_err(std::io::Error::other)?;
    // A single file that needs nothing beside it.
    target.pragma_update(None, "journal_mode", "delete").map_err(std::io::Error::other)?;
    target.close().map_err(|(_, error)| std::io::Error::other(error))?;
    File::open(part)?.sync_all()
}

fn check_copy(part: &Path) -> std::io::Result<VerifyReport> {
    let copy = files::open(part, OpenMode::ReadOnly).map_err(std::io::Error::other)?;
    let state: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(std::io::Error::other)?;
    if state != "ok" {
        return Err(std::io::Error::other(format!("the copy is damaged: {state}")));
    }
    let report = verify::verify(&copy, &|| true).map_err(std::io::Error::other)?;
    match report.faults.first() {
        None => Ok(report),
        Some(first) => Err(std::io::Error::other(format!("{} faults in the books, first: {first}", report.faults.len()))),
    }
}
