//! The ledger's file: whether it may be opened, how it is created, and how its log reaches the disk.
//!
//! Only `make_new` and a copy make a ledger, and a file that is not one of our ledgers is left alone. The database file is only ever opened through SQLite: closing another handle of it would drop SQLite's locks.

use std::fs::{File, FileTimes, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, DEFAULT_NAME, ErrorCode, FileControl, OpenFlags, OptionalExtension};

use super::absent::{refuse_absent, refuse_present};
use super::file_id::FileId;
use super::header::Header;
use super::index::LogIndex;
use super::location::{Displaced, Location, WrittenFiles};
use super::lock;
use super::migrations::{BASE, Birth, FileContent, VERSION, identify, migrate};
use super::paths::{cannot_open, index_path, move_away, resolve, wal_path};
use super::verify::verify;
use crate::store::copy::{MOVED, MOVED_AWAY};
use crate::store::mounts::is_mounted_alone;
use crate::store::opening::too_old;
use crate::{Cause, LedgerError, OpenMode};

/// Older versions can lose a commit when two processes share a log.
const OLDEST_SQLITE: i32 = 3_051_003;
/// How many milliseconds the ledger's newest entry may be ahead of a command's or a console's clock.
// As far ahead as `book::head` lets an entry be dated: what lies beyond it was not dated by a clock like this one.
const CLOCK_OFF: i64 = 10_000;
/// How often a busy file is retried, a millisecond apart.
// Five seconds: a gateway's batches take milliseconds, so what is busy for longer is kept busy by something else.
const BUSY_TRIES: i32 = 5_000;

/// Makes an empty ledger where there is none. One that was begun and not finished is an empty file, which is taken.
pub(super) fn make_new(path: &Path) -> Result<(), LedgerError> {
    let given = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
    let real = resolve(&given)?;
    refuse_present(&real)?;
    // The gateway takes its lock first, and has no files in it then.
    refuse_other_files(&real)?;
    create(&real)?;
    check_file(&real, OpenMode::Write)?;
    let conn = connect(&real, OpenMode::Write).map_err(|error| refuse(&real, error))?;
    match migrate(&conn, &birth()).map_err(|error| refuse(&real, error))? {
        0 => Ok(()),
        // Another process was faster.
        _ => refuse_present(&real),
    }
}

/// Refuses a path at which a gateway has other files open than those that are there.
fn refuse_other_files(real: &Path) -> Result<(), LedgerError> {
    let Some(gateway) = lock::served(&lock::path_of(real)) else {
        return Ok(());
    };
    gateway.misses(real).map_or(Ok(()), |path| {
        Err(LedgerError::unusable(Displaced::NotServed(
            path,
            gateway.name,
        )))
    })
}

/// Opens a ledger: its first connection and its location.
pub(super) fn open_ledger(
    path: &Path,
    mode: OpenMode,
) -> Result<(Connection, Location), LedgerError> {
    farebox_bus_error::say()
        .map_err(|error| LedgerError::unusable(Cause::of("no handler for SIGBUS", error)))?;
    let given = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
    refuse_absent(&given)?;
    let real = resolve(&given)?;
    if mode == OpenMode::Write {
        check_log_is_there(&real)?;
    }
    check_file(&real, mode)?;
    if mode != OpenMode::Serve {
        refuse_other_files(&real)?;
    }
    let cut = check_log_and_index(&real, mode)?;
    let file = FileId::of(&given).map_err(|error| cannot_open(&given, error))?;
    let header = Header::of(&real).map_err(|error| cannot_open(&real, error))?;
    let foreign = header.has_foreign_log(&wal_path(&real));
    if foreign.map_err(|error| cannot_open(&real, error))? {
        return Err(LedgerError::unusable(format!(
            "the log {0}-wal belongs to another file than {0}, or to an earlier state of it, and would be written over it; move \
             {0}-wal and {0}-shm away",
            real.display()
        )));
    }
    let conn = open(&real, mode)?;
    let ledger = conn
        .query_row("SELECT ledger FROM identity", [], |row| row.get(0))
        .map_err(|error| refuse(&real, error))?;
    let written = match mode {
        OpenMode::ReadOnly => None,
        OpenMode::Serve | OpenMode::Write => {
            Some(WrittenFiles::of(&real, header, mode == OpenMode::Serve)?)
        }
    };
    let location = Location {
        given,
        written,
        real,
        file,
        ledger,
    };
    location
        .check()
        .map_err(|displaced| LedgerError::unusable(format!("{displaced}; try again")))?;
    // What SQLite has open is what the path led to all the time.
    let mut has_moved = 0;
    conn.file_control(DEFAULT_NAME, FileControl::HasMoved(&mut has_moved))
        .map_err(|error| refuse(&location.real, error))?;
    if has_moved != 0 {
        let displaced = Displaced::Replaced(location.given);
        return Err(LedgerError::unusable(format!("{displaced}; try again")));
    }
    if let Some(cut) = cut {
        refuse_mixed(&location.real, &conn, &cut)?;
    }
    Ok((conn, location))
}

/// Refuses a ledger of which a checkpoint copied a part from the end of a log that is gone.
fn refuse_mixed(real: &Path, conn: &Connection, cut: &Displaced) -> Result<(), LedgerError> {
    let report = verify(conn, &[], &|| true).map_err(|error| refuse(real, error))?;
    match report.faults.first() {
        None => Ok(()),
        Some(fault) => Err(LedgerError::unusable(format!("{cut}: {fault}; {RESTORE}"))),
    }
}

/// Refuses to write with a clock that is behind what the ledger has seen: a file has no clock of its own. An entry that lies ahead
/// of this machine's clock was misdated if the ledger was written since by a clock that agrees with it, and dates nothing then.
/// The gateway is not asked: it may be all that writes.
pub(super) fn refuse_clock(
    path: &Path,
    location: &Location,
    conn: &Connection,
) -> Result<(), LedgerError> {
    let newest: Option<i64> = conn
        .query_row(
            "SELECT at FROM entries ORDER BY position DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()
        .map_err(|error| refuse(path, error))?;
    let now = crate::clock::now().millis();
    let ahead = |at: i64| at.saturating_sub(now);
    let newest = newest.map_or(0, ahead);
    let (written, at) = location
        .last_write()
        .map_err(|error| cannot_open(path, error))?;
    if newest <= CLOCK_OFF || ahead(at) <= CLOCK_OFF {
        return Ok(());
    }
    Err(LedgerError::unusable(format!(
        "the newest entry of {} is dated {} s after this machine's clock, and the file was written {} s after it; set the clock \
         right, nothing was changed. If the clock is right and ran ahead then, say so with: touch {}",
        path.display(),
        newest / 1_000,
        ahead(at) / 1_000,
        written.display()
    )))
}

/// Refuses a ledger whose log is missing although another process has it open: SQLite creates the log first and removes it last, so
/// shared memory without a log means that somebody deleted the log. A commit would go into a second log that no other process
/// reads.
fn check_log_is_there(real: &Path) -> Result<(), LedgerError> {
    for _ in 0..20 {
        let in_use = index_path(real).exists();
        if !in_use || wal_path(real).exists() {
            return Ok(());
        }
        // The last process to close removes both; that may be happening now.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(LedgerError::unusable(format!(
        "{0}-wal was moved or deleted while {0} was in use; stop the gateway and the consoles, then start the gateway",
        real.display()
    )))
}

/// Looks for an index that was cut off while another program uses it, and for the end of a log that a crash or a person has cut off, while
/// the index of the process that wrote it is still there. SQLite would begin that index anew and take what is left for all there was. The
/// gateway says what is gone and goes on with what is left.
fn check_log_and_index(real: &Path, mode: OpenMode) -> Result<Option<Displaced>, LedgerError> {
    let log = wal_path(real);
    let path = index_path(real);
    let Ok(index) = LogIndex::open(&path) else {
        return Ok(None);
    };
    if index.is_cut().map_err(|error| cannot_open(&path, error))? {
        return Err(LedgerError::unusable(Displaced::IndexCut(path)));
    }
    if index.is_of_before(&log) {
        return Ok(None);
    }
    let length = || log.metadata().map(|found| found.len());
    let Ok(Some(cut)) = index.missing(length) else {
        return Ok(None);
    };
    let displaced = Displaced::LogCut(log.clone(), cut);
    if mode != OpenMode::Serve {
        return Err(LedgerError::unusable(displaced));
    }
    // The database has more than what is left of the log, and would be taken back to it.
    if cut.is_stale {
        move_away(&log).map_err(|error| cannot_open(&log, error))?;
    }
    if cut.lost == 0 {
        return Ok(None);
    }
    tracing::error!("{displaced}");
    Ok(Some(displaced))
}

/// Another connection to a ledger that is already open, and to no other file.
pub(super) fn connect_again(
    location: &Location,
    mode: OpenMode,
) -> Result<Connection, LedgerError> {
    location.check()?;
    let conn = open(&location.real, mode)?;
    location.check()?;
    Ok(conn)
}

/// Opens a connection in the given mode; a gateway's first one brings an older schema up to date.
pub(super) fn open(path: &Path, mode: OpenMode) -> Result<Connection, LedgerError> {
    let (conn, found) = open_and_identify(path, mode)?;
    match found {
        FileContent::Ledger(VERSION) => {}
        FileContent::Ledger(moved) if moved > i64::from(MOVED) => {
            if mode != OpenMode::ReadOnly || moved != VERSION.saturating_add(MOVED.into()) {
                return Err(LedgerError::unusable(format!(
                    "{} {MOVED_AWAY}",
                    path.display()
                )));
            }
        }
        FileContent::Ledger(version) if version < BASE => {
            return Err(LedgerError::unusable(format!(
                "{} has {}",
                path.display(),
                too_old(version)
            )));
        }
        // Only the gateway migrates a schema: it has the lock, so no older gateway is using the file.
        FileContent::Ledger(version) if mode != OpenMode::Serve => {
            return Err(LedgerError::unusable(format!(
                "{} was written by an older version (schema {version}, now {VERSION}); start the gateway once to upgrade it",
                path.display()
            )));
        }
        FileContent::Ledger(_) => {
            migrate(&conn, &birth()).map_err(|error| refuse(path, error))?;
        }
        FileContent::Empty => {
            return Err(LedgerError::unusable(format!(
                "{} is an empty database, not a ledger",
                path.display()
            )));
        }
        FileContent::Foreign => {
            return Err(LedgerError::unusable(format!(
                "{} is another program's database, not a ledger",
                path.display()
            )));
        }
    }
    if mode != OpenMode::ReadOnly {
        keep_log(&conn).map_err(|error| refuse(path, error))?;
    }
    // SQLite would copy the log into the file that it has open, and then delete the log *by its name*, also when another file is
    // at the path meanwhile. `fold_log` does the first where it is right, and nobody does the second.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(|error| refuse(path, error))?;
    Ok(conn)
}

/// Gives a new ledger its log. SQLite does not wait here by itself while another program, perhaps told to make the same ledger, looks at
/// the file.
fn keep_log(conn: &Connection) -> rusqlite::Result<()> {
    let keep = || conn.pragma_update(None, "journal_mode", "wal");
    for _ in 0..BUSY_TRIES {
        match keep() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            told => return told,
        }
    }
    keep()
}

/// Creates a ledger that exists elsewhere in an empty file.
pub(super) fn make(path: &Path, birth: &Birth) -> Result<Connection, LedgerError> {
    let conn = connect(path, OpenMode::Write).map_err(|error| refuse(path, error))?;
    migrate(&conn, birth).map_err(|error| refuse(path, error))?;
    Ok(conn)
}

/// Opens an existing ledger for reading what every schema version has: the gateway's first look.
pub(super) fn open_any_version(path: &Path) -> Result<Connection, LedgerError> {
    let given = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
    let real = resolve(&given)?;
    check_log_and_index(&real, OpenMode::Serve)?;
    match open_and_identify(&real, OpenMode::ReadOnly)? {
        (conn, FileContent::Ledger(_)) => Ok(conn),
        (_, FileContent::Empty | FileContent::Foreign) => Err(LedgerError::unusable(format!(
            "{} is not a ledger",
            path.display()
        ))),
    }
}

/// Opens a connection and checks the file's content; refuses a schema from the future.
fn open_and_identify(
    path: &Path,
    mode: OpenMode,
) -> Result<(Connection, FileContent), LedgerError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(LedgerError::unusable(format!(
            "SQLite {} is too old; 3.51.3 is needed",
            rusqlite::version()
        )));
    }
    check_file(path, mode)?;
    let conn = connect(path, mode).map_err(|error| refuse(path, error))?;
    match identify(&conn).map_err(|error| refuse(path, error))? {
        FileContent::Ledger(version) if version > VERSION && version <= i64::from(MOVED) => {
            Err(LedgerError::unusable(format!(
                "{} was written by a newer version (schema {version}; this program knows {VERSION})",
                path.display()
            )))
        }
        found => Ok((conn, found)),
    }
}

/// How often it is checked whether a file system has become read-only.
const READ_ONLY_TRIES: u32 = 5;

/// What is wrong with a file system that has stopped taking writes, as one does after a fault of its disk. SQLite says only that writing
/// failed. Setting the log's own times to what they are is a write that changes nothing.
pub(super) fn read_only(location: &Location) -> Option<String> {
    let write = || {
        let log = OpenOptions::new()
            .write(true)
            .open(wal_path(&location.real))?;
        log.set_times(FileTimes::new().set_accessed(log.metadata()?.accessed()?))
    };
    let is_read_only = || write().is_err_and(|error| error.kind() == ErrorKind::ReadOnlyFilesystem);
    // A sync fails a moment before the file system says so.
    let mut tries = 0..READ_ONLY_TRIES;
    let read_only = is_read_only()
        || tries.any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            is_read_only()
        });
    read_only.then(|| {
        format!(
            "the file system of {} has become read-only: the kernel's log says why; check its disk, and mount it again for writing",
            location.given.display()
        )
    })
}

/// Copies the log into the ledger's file and empties it, unless another program is using them: that one will do it. A command leaves it
/// to the gateway.
pub(super) fn fold_log(location: &Location) {
    if location.check().is_err() || location.is_served_by_another() {
        return;
    }
    let fold = || {
        let conn = connect(&location.real, OpenMode::Write)?;
        conn.busy_timeout(Duration::ZERO)?;
        empty_log(&conn)
    };
    match fold() {
        Ok(busy) => tracing::debug!(
            busy,
            "the write-ahead log was copied into the ledger's file"
        ),
        Err(error) => {
            tracing::warn!(%error, "the write-ahead log remains beside the ledger's file; copy both")
        }
    }
}

/// Copies the log into the ledger's file and cuts it to nothing. Returns whether another program was in the way.
pub(super) fn empty_log(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
}

fn check_file(path: &Path, mode: OpenMode) -> Result<(), LedgerError> {
    match path.metadata() {
        Ok(found) if !found.is_file() => {
            return Err(LedgerError::unusable(format!(
                "{} is not a file",
                path.display()
            )));
        }
        Ok(found) if found.nlink() > 1 => {
            return Err(LedgerError::unusable(format!(
                "{} has {} names (hard links), and each would get its own log; remove the others",
                path.display(),
                found.nlink()
            )));
        }
        Ok(_) if mode != OpenMode::ReadOnly && is_mounted_alone(path) => {
            return Err(LedgerError::unusable(format!(
                "{0} is mounted by itself, so that its log and its lock are beside another name of it, too; mount its folder",
                path.display()
            )));
        }
        Ok(_) => {}
        Err(error) => return Err(cannot_open(path, error)),
    }
    for file in [path.to_owned(), wal_path(path), index_path(path)] {
        let Ok(found) = file.symlink_metadata() else {
            continue;
        };
        let shared = found.nlink() > 1;
        if !found.is_file() || shared {
            return Err(LedgerError::unusable(format!(
                "{} is not a regular file, or has more than one name; remove it",
                file.display()
            )));
        }
        if is_open_to_everyone(&found) {
            return Err(LedgerError::unusable(format!(
                "{0} is accessible to every user of this machine; if it is the ledger, run chmod o-rwx {0}",
                file.display()
            )));
        }
        let wanted = if mode == OpenMode::ReadOnly {
            AccessFlags::R_OK
        } else {
            AccessFlags::R_OK | AccessFlags::W_OK
        };
        access(&file, wanted).map_err(|error| cannot_open(&file, error.into()))?;
    }
    if mode != OpenMode::ReadOnly
        && !wal_path(path).exists()
        && let Some(folder) = path.parent()
    {
        access(folder, AccessFlags::W_OK).map_err(|error| cannot_open(folder, error.into()))?;
    }
    Ok(())
}

fn is_open_to_everyone(found: &Metadata) -> bool {
    found.permissions().mode() & 0o007 != 0
}

fn create(path: &Path) -> Result<(), LedgerError> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(cannot_open(path, error)),
        Err(error) => {
            let what = format!("{} cannot be created", path.display());
            Err(LedgerError::unusable(Cause::of(&what, error)))
        }
    }
}

fn connect(path: &Path, mode: OpenMode) -> rusqlite::Result<Connection> {
    let access = if mode == OpenMode::ReadOnly {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    let mut conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Shorter sleeps than SQLite's own: a command must get its turn between the batches of a busy gateway.
    conn.busy_handler(Some(|tries| {
        std::thread::sleep(Duration::from_millis(1));
        tries < BUSY_TRIES
    }))?;
    conn.set_prepared_statement_cache_capacity(96);
    // Plans do not depend on bound values. Otherwise SQLite would prepare every join anew at each use, in search of a better plan.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
         PRAGMA synchronous = FULL; PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 10000;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    #[cfg(feature = "reference")]
    crate::memory::statements::listen(&mut conn)?;
    Ok(conn)
}

/// Randomness and time for a new ledger.
fn birth() -> Birth {
    Birth {
        ledger: crate::value::clock::random(),
        at: crate::value::clock::now(),
    }
}

fn refuse(real: &Path, error: rusqlite::Error) -> LedgerError {
    if let Some(damage) = damage(real, &error) {
        return LedgerError::unusable(Cause::in_words(damage, error));
    }
    let path = real.display();
    match error.sqlite_error_code() {
        // Even a reader makes the ledger's log and its shared memory when nobody else has them open.
        Some(ErrorCode::ReadOnly) => cannot_open(
            real.parent().unwrap_or(real),
            ErrorKind::PermissionDenied.into(),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let words = format!("{path} is locked by another program");
            LedgerError::unusable(Cause::in_words(words, error))
        }
        _ => LedgerError::unusable(Cause::of(&format!("{path} cannot be opened"), error)),
    }
}

/// What to do about a damaged ledger.
pub(super) const RESTORE: &str = "stop what uses it and restore a backup that `farebox ledger verify` finds sound (docs/operations.md, Back up and restore)";

/// What is wrong and what to do, if an error says that the file is damaged. A damaged beginning looks like a file of another kind.
pub(super) fn damage(path: &Path, error: &rusqlite::Error) -> Option<String> {
    let path = path.display();
    match error.sqlite_error_code()? {
        ErrorCode::NotADatabase => Some(format!(
            "{path} is not a ledger; name yours with --ledger. If it was one, {RESTORE}"
        )),
        ErrorCode::DatabaseCorrupt => Some(format!("{path} is damaged ({error}): {RESTORE}")),
        _ => None,
    }
}

/// Opens the log that `location` names, and no other one. Unlike the ledger's file it may be closed: SQLite has no locks on it.
pub(super) fn open_log(location: &Location) -> Result<File, LedgerError> {
    let path = &wal_path(&location.real);
    let failed = |error| cannot_open(path, error);
    let log = OpenOptions::new().read(true).write(true).open(path);
    let log = log.map_err(failed)?;
    let found = FileId::from(&log.metadata().map_err(failed)?);
    if location.files().map(|[_, log, _]| log) != Some(found) {
        return Err(LedgerError::unusable(format!(
            "{} was replaced while the ledger was opened; try again",
            path.display()
        )));
    }
    Ok(log)
}

/// Syncs the log to disk without a transaction. Its files are opened with the ledger: a process that has run out of descriptors
/// must still be able to sync what it commits.
#[derive(Debug)]
pub(super) struct WalSync {
    log: File,
    /// The folder, until its first sync makes the log's directory entry durable.
    directory: Option<File>,
}

impl WalSync {
    pub(super) fn open(location: &Location) -> Result<Self, LedgerError> {
        let log = open_log(location)?;
        let open = |path: &Path| File::open(path).map_err(|error| cannot_open(path, error));
        let directory = location.real.parent().map(open).transpose()?;
        Ok(Self { log, directory })
    }

    /// Everything committed so far is on disk afterwards. SQLite itself syncs the log before it copies pages out of it.
    pub(super) fn sync(&mut self) -> std::io::Result<()> {
        self.log.sync_data()?;
        self.directory
            .take()
            .map_or(Ok(()), |directory| directory.sync_all())
    }
}
