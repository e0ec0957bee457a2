//! Syncs and checkpoints the write-ahead log on separate threads: commits without a sync reach the disk shortly afterwards, and the
//! log is copied into the ledger's file while writing goes on. No commit waits for either.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::files::{self, WalSync};
use super::location::Location;
use crate::{Cause, LedgerError, OpenMode};

/// Work that runs a fixed delay after the first request for it, once for all requests made in between. Dropping it runs what is
/// due.
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
    /// Starts the thread; it sleeps until it is asked.
    pub(super) fn start(
        name: &str,
        mut work: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Self> {
        let duty = Arc::new(Duty::default());
        let for_thread = Arc::clone(&duty);
        let run = move || {
            while for_thread.wait() {
                work();
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
        let mut state = self.duty.lock();
        if state.due.is_none() {
            state.due = Instant::now().checked_add(delay);
            drop(state);
            self.duty.wake.notify_one();
        }
    }
}

impl Duty {
    fn lock(&self) -> MutexGuard<'_, Alarm> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    broken: impl Fn(String) + Send + 'static,
) -> Result<Chore, LedgerError> {
    let mut wal = WalSync::open(location)?;
    let work = move || {
        if let Err(error) = wal.sync() {
            broken(error.to_string());
        }
    };
    Chore::start("ledger-sync", work)
        .map_err(|error| LedgerError::unavailable(Cause::of("no thread for syncs", error)))
}

/// Copies the log into the ledger's file. Pages that cannot be copied now stay in the log, where reads find them too. Nothing is copied
/// into a file that is not the ledger any more, as one that a backup was copied over.
///
/// # Errors
/// There is no connection or no thread for it.
pub(super) fn checkpoint(
    location: &Arc<Location>,
    broken: impl Fn(String) + Send + 'static,
) -> Result<Chore, LedgerError> {
    let conn = files::connect_again(location, OpenMode::Write)?;
    let location = Arc::clone(location);
    let fold = move || {
        if location.check().is_err() {
            return Ok(());
        }
        conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    };
    let work = move || match fold() {
        Ok(()) => {}
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull)
            ) =>
        {
            tracing::debug!(%error, "the write-ahead log is waiting to be copied into the ledger's file");
        }
        Err(error) => broken(error.to_string()),
    };
    Chore::start("ledger-checkpoint", work).map_err(|error| {
        LedgerError::unavailable(Cause::of("cannot start the checkpoint thread", error))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_was_asked_for_is_done_once_and_before_the_end() {
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let chore = Chore::start("test", move || {
            count.fetch_add(1, Ordering::SeqCst);
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
