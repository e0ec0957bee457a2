//! Syncs and checkpoints the write-ahead log on separate threads: commits without a sync reach the disk shortly afterwards, and the
//! log is copied into the ledger's file while writing goes on. No commit waits for either.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::files::{self, WalSync};
use super::gate::{HoldGate, RoomFacts};
use super::location::Location;
use super::log_readers::{Copied, LogReaders};
use super::paths::wal_path;
use super::readers;
use crate::store::stats::LOG_LOUD;
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::{Cause, Fault, LedgerError, OpenMode, lock};

/// When the log is looked at again while it is not all copied, or no holds are taken.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Work that runs a fixed delay after the first request for it, once for all requests made in between; it may ask for a further run
/// itself. Dropping it runs what is due.
#[derive(Debug)]
pub(super) struct Chore {
    duty: Arc<Duty>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Duty {
    state: Mutex<Alarm>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Alarm {
    due: Option<Instant>,
    closed: bool,
}

impl Chore {
    /// Starts the thread; it sleeps until it is asked. `work` returns when it wants to run again.
    pub(super) fn start(
        name: &str,
        mut work: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> std::io::Result<Self> {
        let duty = Arc::new(Duty::default());
        let for_thread = Arc::clone(&duty);
        let run = move || {
            while for_thread.wait() {
                if let Some(delay) = work() {
                    for_thread.ask(delay);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)?;
        Ok(Self {
            duty,
            thread: Some(thread),
        })
    }

    /// Requests a run after this delay, unless one is due already. A later request never moves an earlier one back: the delay is
    /// an upper bound on how old unsynced data can be.
    pub(super) fn ask(&self, delay: Duration) {
        self.duty.ask(delay);
    }
}

impl Duty {
    fn ask(&self, delay: Duration) {
        let mut state = self.lock();
        if state.due.is_none() && !state.closed {
            state.due = Instant::now().checked_add(delay);
            drop(state);
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alarm> {
        lock(&self.state)
    }

    /// Waits until a run is due; false when closed and nothing is due. `due` is cleared before the work starts, so a request made
    /// while it runs leads to another run: its commit may not be covered by this one.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            let left = state
                .due
                .map(|due| due.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() || state.closed => {
                    state.due = None;
                    return true;
                }
                None if state.closed => return false,
                Some(left) => {
                    self.wake
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Drop for Chore {
    fn drop(&mut self) {
        self.duty.lock().closed = true;
        self.duty.wake.notify_one();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("a thread of the ledger's upkeep panicked");
        }
    }
}

/// Syncs the log to disk. `broken` is called if that fails. A failed `fsync` is never retried: the kernel may have dropped the
/// dirty pages, and a second call would report success for data that is lost.
///
/// # Errors
/// The log cannot be opened, or there is no thread for it.
pub(super) fn sync(
    location: &Location,
    record: &Arc<TroubleRecord>,
    broken: impl Fn(String) + Send + 'static,
) -> Result<Chore, LedgerError> {
    let (mut wal, record) = (WalSync::open(location)?, Arc::clone(record));
    let work = move || {
        let under_way = record.begin(LedgerWork::Sync);
        match wal.sync() {
            Ok(()) => under_way.succeeded(),
            Err(error) => broken(error.to_string()),
        }
        None
    };
    Chore::start("ledger-sync", work)
        .map_err(|error| LedgerError::unavailable(Cause::of("no thread for syncs", error)))
}

/// Copies the log into the ledger's file, and tells the gate what it found. Pages that cannot be copied now stay in the log, where
/// reads find them too. Nothing is copied into a file that is not the ledger any more, as one that a backup was copied over.
///
/// # Errors
/// There is no connection or no thread for it.
pub(super) fn checkpoint(
    location: &Arc<Location>,
    (gate, record): (&Arc<HoldGate>, &Arc<TroubleRecord>),
    empty: &Arc<AtomicBool>,
    broken: impl Fn(String) + Send + 'static,
) -> Result<Chore, LedgerError> {
    let conn = files::connect_again(location, OpenMode::Write)?;
    let unreadable = |error| readers::unreadable(&location.given, error);
    // It never waits: what another program prevents now is done the next time.
    conn.busy_timeout(Duration::ZERO).map_err(unreadable)?;
    let mut readers = LogReaders::of(location)?;
    let (gate, record, empty) = (Arc::clone(gate), Arc::clone(record), Arc::clone(empty));
    let wal = wal_path(&location.real);
    // Before the first hold is taken.
    let begun = gate.begun();
    let seen = look(&conn, None).map_err(unreadable)?;
    gate.look(seen, begun, Instant::now());
    let location = Arc::clone(location);
    let work = move || {
        if location.check().is_err() {
            return Some(LOOK_AGAIN);
        }
        let begun = gate.begun();
        let under_way = record.begin(LedgerWork::Checkpoint);
        let looked = copy_log(&conn, &wal, &empty).and_then(|found| {
            under_way.succeeded();
            let held = found.and_then(|found| readers.note(found, Instant::now()));
            Ok((found, look(&conn, held)?))
        });
        match looked {
            Ok((found, seen)) => {
                let refuses = gate.look(seen, begun, Instant::now());
                let waits = found.is_none_or(|found| !found.is_all())
                    || empty.load(Ordering::Relaxed)
                    || !may_write(&conn, &record);
                (refuses || waits).then_some(LOOK_AGAIN)
            }
            Err(error) if is(&error, ErrorCode::DatabaseBusy) => Some(LOOK_AGAIN),
            Err(error) => {
                broken(error.to_string());
                None
            }
        }
    };
    let chore = Chore::start("ledger-checkpoint", work).map_err(|error| {
        LedgerError::unavailable(Cause::of("cannot start the checkpoint thread", error))
    })?;
    // A start on a full disk may commit nothing that would ask for a look.
    chore.ask(LOOK_AGAIN);
    Ok(chore)
}

/// Whether a commit could begin, if the last one could not: nobody else may try for hours.
fn may_write(conn: &Connection, record: &TroubleRecord) -> bool {
    if record.stands(LedgerWork::Commit) && conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
    {
        record.end(LedgerWork::Commit);
    }
    !record.stands(LedgerWork::Commit)
}

fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

/// Copies what no reader needs any more, and cuts a log that is all copied and long, or has pages of before something was erased: SQLite
/// would only do that with the next commit. `None` if the disk is too full to copy anything.
fn copy_log(conn: &Connection, wal: &Path, empty: &AtomicBool) -> rusqlite::Result<Option<Copied>> {
    let copied = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok((row.get(1)?, row.get(2)?))
    });
    let found = match copied {
        Err(error) if is(&error, ErrorCode::DiskFull) => return Ok(None),
        copied => match copied? {
            // Another connection is copying now.
            (..0, _) | (_, ..0) => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
            (pages, copied) => Copied { pages, copied },
        },
    };
    let long = wal.metadata().is_ok_and(|log| log.len() >= LOG_LOUD);
    if !found.is_all() || !(long || empty.load(Ordering::Relaxed)) {
        return Ok(Some(found));
    }
    // What is erased from here on is wished for anew.
    let wanted = empty.swap(false, Ordering::Relaxed);
    let emptied = files::empty_log(conn);
    if !matches!(emptied, Ok(false)) {
        empty.fetch_or(wanted, Ordering::Relaxed);
    }
    emptied.map(|_| Some(found))
}

/// How often a command tries to empty the log beside a gateway that reads it, and how long it waits each time.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Empties the log, which has pages of before something was erased; for programs without a thread that does it. On a connection of its
/// own, which does not wait: while it waited for readers, nobody could commit.
pub(super) fn empty_log(location: &Location) {
    let conn = match files::connect_again(location, OpenMode::Write) {
        Ok(conn) => conn,
        Err(error) => {
            tracing::warn!(%error, "what was erased stays in the write-ahead log");
            return;
        }
    };
    for _ in 0..TRIES {
        let busy = conn.busy_timeout(Duration::ZERO);
        match busy.and_then(|()| files::empty_log(&conn)) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) if is(&error, ErrorCode::DatabaseBusy) => {}
            Err(error) => {
                tracing::warn!(%error, "what was erased stays in the write-ahead log");
                return;
            }
        }
        std::thread::sleep(PAUSE);
    }
    tracing::warn!(
        "what was erased stays in the write-ahead log while other programs read it; erase again then"
    );
}

/// What the gate has to know of the ledger.
fn look(conn: &Connection, held: Option<Fault>) -> rusqlite::Result<RoomFacts> {
    let number = |text| -> rusqlite::Result<u64> {
        let number: i64 = conn.query_row(text, [], |row| row.get(0))?;
        Ok(number.unsigned_abs())
    };
    let pages = number("PRAGMA page_count")?;
    Ok(RoomFacts {
        holds: number("SELECT count(*) FROM holds")?,
        bytes: pages.saturating_mul(number("PRAGMA page_size")?),
        held,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn what_was_asked_for_is_done_once_and_before_the_end() {
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let chore = Chore::start("test", move || {
            count.fetch_add(1, Ordering::SeqCst);
            Some(Duration::ZERO)
        });
        let chore = chore.unwrap();
        for _ in 0..5 {
            chore.ask(Duration::from_secs(3_600));
        }
        assert_eq!(done.load(Ordering::SeqCst), 0, "not before its time");
        drop(chore);
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}
