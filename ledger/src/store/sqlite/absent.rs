//! What is said of a path at which there is no ledger, or something where a new one is wanted, and which ledgers are nearby.
//!
//! Looking changes nothing: a file is read through SQLite alone, as one that nobody writes, so that no log appears beside it.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::migrations::{FileContent, identify};
use super::paths::wal_path;
use crate::LedgerError;
use crate::store::copy::MOVED;

/// Where the packages keep it.
const USUAL: &str = "/var/lib/farebox";
/// The length of SQLite's header.
const SHORTEST: u64 = 100;
/// How many files of a folder are looked at.
const LOOKED_AT: usize = 256;
/// How many ledgers are named.
const NAMED: usize = 5;

/// Refuses a path at which there is no ledger: nothing, or an empty file, whose log SQLite would remove.
pub(super) fn refuse_absent(given: &Path) -> Result<(), LedgerError> {
    let what = match given.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if given.is_symlink() {
                " (it is a broken symbolic link)"
            } else if given.parent().is_some_and(Path::is_dir) {
                ""
            } else {
                " (its folder does not exist)"
            }
        }
        Ok(found) if is_empty(&found) => " (the file is empty)",
        // Whatever is wrong with it is said when it is opened.
        Ok(_) | Err(_) => return Ok(()),
    };
    refuse_lone_log(given)?;
    let folder = std::env::current_dir().unwrap_or_default();
    let near = nearby(given, &folder);
    let near = if near.is_empty() {
        "no ledger is nearby".to_owned()
    } else {
        format!("ledgers nearby: {}", near.join(", "))
    };
    Err(LedgerError::misplaced(format!(
        "there is no ledger at {}{what}; working folder: {}; {near}. Name yours with --ledger, or make a new one, once: farebox serve \
         --new-ledger, or farebox keys create --new-ledger",
        given.display(),
        folder.display(),
    )))
}

/// Refuses a path at which a new ledger cannot be made, because something is there.
pub(super) fn refuse_present(given: &Path) -> Result<(), LedgerError> {
    if given
        .symlink_metadata()
        .is_ok_and(|found| !is_empty(&found))
    {
        return Err(LedgerError::misplaced(format!(
            "{} exists, and --new-ledger makes a ledger only where there is none; leave it out, or name another file with --ledger",
            given.display()
        )));
    }
    refuse_lone_log(given)
}

/// A log is what remains of a ledger that somebody moved or deleted.
fn refuse_lone_log(given: &Path) -> Result<(), LedgerError> {
    let log = wal_path(given);
    if log.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(LedgerError::misplaced(format!(
        "{0} is there without its ledger {1}: put that file back beside it. If you restore a backup or want a new ledger, move {0} away first",
        log.display(),
        given.display()
    )))
}

fn is_empty(found: &Metadata) -> bool {
    found.is_file() && found.len() == 0
}

/// Ledgers in the working folder, in the path's own, and where the packages keep theirs.
fn nearby(given: &Path, working: &Path) -> Vec<String> {
    let folders = [Some(working), given.parent(), Some(Path::new(USUAL))];
    let mut folders: Vec<PathBuf> = folders
        .into_iter()
        .filter_map(|folder| folder?.canonicalize().ok())
        .collect();
    folders.sort_unstable();
    folders.dedup();
    let files = folders.iter().filter_map(|folder| folder.read_dir().ok());
    let files = files.flat_map(|files| files.take(LOOKED_AT).filter_map(Result::ok));
    let ledgers = files.map(|file| file.path()).filter(|path| is_ledger(path));
    let mut ledgers: Vec<String> = ledgers
        .take(NAMED)
        .map(|path| path.display().to_string())
        .collect();
    ledgers.sort_unstable();
    ledgers
}

/// Whether a file is a ledger that was not moved to another store.
fn is_ledger(path: &Path) -> bool {
    let long = |found: Metadata| found.is_file() && found.len() >= SHORTEST;
    if !path.metadata().is_ok_and(long) {
        return false;
    }
    let name = path.as_os_str().as_bytes();
    let escaped: String = name.iter().map(|byte| format!("%{byte:02x}")).collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
        .and_then(|conn| identify(&conn))
        .is_ok_and(
            |found| matches!(found, FileContent::Ledger(version) if version <= i64::from(MOVED)),
        )
}
