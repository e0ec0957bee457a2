//! The writer's thread: gathers operations into batches, commits each, and replies.
//!
//! A batch begins with whatever is waiting. Callers hand over the rest while the first operations run, so that on two CPUs neither
//! side waits for the other.
//!
//! Nothing is confirmed before its commit has succeeded. An error that leaves the outcome open (I/O, corruption) ends the thread
//! for good: it must not keep writing to a file it cannot trust.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::files;
use super::gate::{Admission, NoRoom};
use super::job::Job;
use super::location::{Displaced, Location};
use super::paths::wal_path;
use super::state::Shared;
use super::upkeep::{self, Chore};
use crate::batch::batching::{Batching, MAX_BATCH};
use crate::batch::operation::OperationClass;
use crate::store::replies::Replies;
use crate::store::trouble_record::{LedgerWork, WorkUnderWay};
use crate::{Cause, Durability, Fault, LedgerError, TroubleKind, lock};

/// When the log is synced after a commit without a sync. A charge must be on disk within 50 ms of its commit; the other 20 ms
/// are for a batch that may be running.
const SYNC_AFTER: Duration = Duration::from_millis(30);
/// The log is copied into the ledger's file (checkpointed) this long after a commit. Without it, SQLite would do all of it inside
/// the commit that makes the log grow beyond `wal_autocheckpoint`; now only the last pages are left for that commit.
const CHECKPOINT_AFTER: Duration = Duration::from_millis(500);
/// Pause before the next attempt after a full disk or a busy file.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Pause before a hold's end is tried again after an unexpected failure.
// Nobody waits for it, and it is an error that another try rarely cures: more often would only fill the log.
const FAILED_AFTER: Duration = Duration::from_secs(5);

/// Why a batch was not committed.
enum CommitTrouble {
    /// Rolled back: another program holds the lock.
    Busy,
    /// Rolled back: no space.
    Full,
    /// Rolled back: one of the operations did not go through.
    Failed,
    /// The outcome is unknown: the pages may or may not be on disk.
    Fatal,
}

/// Why a batch is not confirmed.
enum BatchFailure {
    Database(rusqlite::Error),
    /// Rolled back: the path no longer leads to the file this would be written to.
    Displaced(Displaced),
    /// Committed, and then the path no longer led to that file.
    Misplaced(Displaced),
}

impl From<rusqlite::Error> for BatchFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

fn trouble(error: &rusqlite::Error) -> CommitTrouble {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => CommitTrouble::Busy,
        Some(Code::DiskFull) => CommitTrouble::Full,
        Some(
            Code::SystemIoFailure
            | Code::DatabaseCorrupt
            | Code::NotADatabase
            | Code::CannotOpen
            | Code::FileLockingProtocolFailed
            | Code::ReadOnly,
        ) => CommitTrouble::Fatal,
        _ => CommitTrouble::Failed,
    }
}

/// The thread's state.
pub(super) struct Worker<'c> {
    shared: Arc<Shared>,
    batch: Batch<'c>,
    location: Arc<Location>,
    chores: Chores,
    strict: bool,
    /// What the connection's `synchronous` is set to.
    full_sync: Option<bool>,
    unresolved: Vec<Job>,
    /// Set when the one extra attempt on closing has been used up; what is due then waits for the next start.
    last_try: bool,
    retry_at: Option<Instant>,
    batching: Batching,
    /// How long the current batch has waited for callers.
    idle: Duration,
}

/// Work that follows a commit on other threads, so that no commit waits for it.
pub(super) struct Chores {
    pub(super) sync: Chore,
    /// Only in the gateway. A command that writes a row or two leaves the checkpoint to the gateway.
    pub(super) checkpoint: Option<Chore>,
}

/// The only clock of this module: it paces the writer and never reaches a record.
fn clock() -> Instant {
    Instant::now()
}

fn past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| clock() >= deadline)
}

fn soon(delay: Duration) -> Option<Instant> {
    clock().checked_add(delay)
}

/// A panic is a bug, but callers must still get an answer: without this they would wait forever for a dead thread.
impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop("its thread panicked".into(), Vec::new());
        }
        self.shared.keep(std::mem::take(&mut self.unresolved));
    }
}

impl<'c> Worker<'c> {
    pub(super) fn new(
        shared: Arc<Shared>,
        batch: Batch<'c>,
        location: Arc<Location>,
        chores: Chores,
        durability: Durability,
    ) -> Self {
        Self {
            shared,
            batch,
            location,
            chores,
            strict: durability == Durability::Strict,
            full_sync: None,
            unresolved: Vec::new(),
            last_try: false,
            retry_at: None,
            batching: Batching::default(),
            idle: Duration::ZERO,
        }
    }

    /// Writes batches until there is nothing more to write, or no way to write it.
    pub(super) fn run(mut self) {
        while let Some(jobs) = self.next_batch() {
            let broken = lock(&self.shared.queue).broken.take();
            if let Some(reason) = broken {
                let reason = self.save_log(reason);
                self.stop(reason.clone().into(), Vec::new());
                return self.park(jobs, RETRY_AFTER, LedgerError::unavailable(reason));
            }
            let jobs = self.admit(jobs);
            if !jobs.is_empty() && self.process(jobs).is_break() {
                return;
            }
        }
    }

    /// Waits for operations or a retry; `None` when closed and everything is written.
    fn next_batch(&mut self) -> Option<Vec<Job>> {
        let mut queue = lock(&self.shared.queue);
        let was_idle = queue.jobs.is_empty();
        while queue.jobs.is_empty() {
            let closing = queue.closed.is_some();
            // Nothing is queued, but holds that could not be ended are due. When closing, they get one last attempt right away,
            // whatever their retry time: who closes the ledger has waited, and keeps what is still due.
            if past(self.retry_at) || closing && !self.unresolved.is_empty() && !self.last_try {
                self.last_try = closing;
                self.retry_at = None;
                break;
            }
            if closing {
                return None;
            }
            if queue.broken.is_some() {
                return Some(Vec::new());
            }
            // Idle: the first job must wake this thread.
            queue.wanted = 1;
            queue = match self.retry_at {
                Some(deadline) => {
                    let wait = deadline.saturating_duration_since(clock());
                    self.shared
                        .wake
                        .wait_timeout(queue, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .shared
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        queue.wanted = usize::MAX;
        if was_idle && self.batching.expected > 1 {
            // On a busy CPU, waking up interrupted the caller. Let it go on until it has nothing else to do: what it brings meanwhile
            // shares the commit. Not where callers come one by one: nobody would bring anything, and beside other programs a yield
            // costs a turn of theirs.
            drop(queue);
            std::thread::yield_now();
            queue = lock(&self.shared.queue);
        }
        let count = queue.jobs.len().min(MAX_BATCH);
        let fresh: Vec<_> = queue.jobs.drain(..count).collect();
        drop(queue);
        // Parked holds go first, and only when their retry time has come: retrying them with every batch would fail that batch
        // too.
        if past(self.retry_at) || self.retry_at.is_none() {
            self.retry_at = None;
            let mut jobs = std::mem::take(&mut self.unresolved);
            jobs.extend(fresh);
            return Some(jobs);
        }
        Some(fresh)
    }

    /// Jobs that have arrived for a batch that has run `taken` operations; none if it should commit.
    ///
    /// A commit costs the same for one operation as for many, so while there are fewer than last time it waits a little (80 µs for
    /// each expected operation, 4 ms at most). It then sleeps until all of them are there: callers on the same CPU would otherwise
    /// take turns with it.
    fn gather(&mut self, taken: usize, full: bool, deadline: Option<Instant>) -> Vec<Job> {
        let missing = self.batching.expected.saturating_sub(taken);
        if missing == 0 {
            return Vec::new();
        }
        let mut queue = lock(&self.shared.queue);
        if queue.jobs.is_empty() {
            let begun = clock();
            while queue.jobs.is_empty()
                && queue.closed.is_none()
                && queue.broken.is_none()
                && !past(deadline)
            {
                queue.wanted = missing;
                let wait = deadline.map_or(Duration::ZERO, |deadline| {
                    deadline.saturating_duration_since(clock())
                });
                queue = self
                    .shared
                    .wake
                    .wait_timeout(queue, wait)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            queue.wanted = usize::MAX;
            self.idle = self
                .idle
                .saturating_add(clock().saturating_duration_since(begun));
        }
        // SQLite cannot begin to sync in the middle of a transaction, so a payment waits for the next batch.
        let fits = |job: &&Job| full || job.work.class() != OperationClass::Money;
        let count = queue
            .jobs
            .iter()
            .take(MAX_BATCH.saturating_sub(taken))
            .take_while(fits)
            .count();
        let fresh = queue.jobs.drain(..count).collect();
        drop(queue);
        self.admit(fresh)
    }

    /// Refuses what there is no room for; returns the rest.
    fn admit(&self, jobs: Vec<Job>) -> Vec<Job> {
        if jobs.iter().all(|job| job.work.class().ends()) {
            return jobs;
        }
        let begins = |job: &&Job| job.work.class() == OperationClass::Hold;
        let holds = u64::try_from(jobs.iter().filter(begins).count()).unwrap_or(u64::MAX);
        let admission = self.shared.gate.admit(holds, clock());
        let (why, (kept, refused)): (_, (Vec<_>, Vec<_>)) = match admission {
            Admission::All => return jobs,
            Admission::NoHolds(why) => (why, jobs.into_iter().partition(|job| !begins(&job))),
            Admission::Ends(why) => (
                why,
                jobs.into_iter().partition(|job| job.work.class().ends()),
            ),
        };
        let why = why.fault(None).cause;
        for job in refused {
            job.reply(Err(LedgerError::unavailable(why.clone())));
        }
        kept
    }

    /// Commits a batch and replies. When one operation fails, the rollback undoes its neighbours too, so each operation then gets
    /// a batch of its own, and only the failing one is reported.
    fn process(&mut self, mut jobs: Vec<Job>) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::Continue;
        let begun = clock();
        let under_way = self.shared.record.begin(LedgerWork::Commit);
        self.idle = Duration::ZERO;
        let error = match self.attempt(&mut jobs) {
            Ok(()) => {
                under_way.succeeded();
                self.note_commit(&jobs, begun);
                Replies(jobs).send();
                return Continue(());
            }
            Err(BatchFailure::Database(error)) => error,
            Err(BatchFailure::Displaced(why)) => {
                self.shared.note_displaced(Some(why.to_string()));
                self.park(jobs, RETRY_AFTER, LedgerError::unavailable(why));
                return Continue(());
            }
            Err(BatchFailure::Misplaced(why)) => {
                self.shared.note_displaced(Some(why.to_string()));
                self.park(jobs, RETRY_AFTER, LedgerError::unknown(why));
                return Continue(());
            }
        };
        self.failed(jobs, error, under_way)
    }

    /// Does what a failure of the database asks for.
    fn failed(
        &mut self,
        jobs: Vec<Job>,
        error: rusqlite::Error,
        under_way: WorkUnderWay,
    ) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        match trouble(&error) {
            CommitTrouble::Fatal => {
                // A file that was cut off may be met in the middle of an operation.
                let displaced = self.location.check().err();
                let words = displaced
                    .map(|displaced| displaced.to_string())
                    .or_else(|| files::damage(&self.location.given, &error))
                    .unwrap_or_else(|| error.to_string());
                self.stop(Cause::in_words(words, error), jobs);
                Break(())
            }
            // Nothing was written, so callers may repeat; the writer lives on, because the other program (a copy, a checker)
            // will finish.
            CommitTrouble::Busy => {
                let fault = self.busy();
                let why = Cause::in_words(fault.to_string(), error);
                under_way.failed(fault);
                if let Some(checkpoint) = &self.chores.checkpoint {
                    checkpoint.ask(CHECKPOINT_AFTER);
                }
                self.park(jobs, RETRY_AFTER, LedgerError::Unavailable(why));
                Continue(())
            }
            CommitTrouble::Full => {
                tracing::error!("the disk is full: new holds are refused until there is space");
                self.shared.gate.note_full(clock());
                let why = Cause::in_words(NoRoom::Full.fault(None).cause, error);
                self.park(jobs, RETRY_AFTER, LedgerError::Unavailable(why));
                Continue(())
            }
            CommitTrouble::Failed if jobs.len() > 1 => {
                drop(under_way);
                // Nothing joins a batch that is expected to have only one operation.
                self.batching.note(1);
                let mut jobs = jobs.into_iter();
                let done = jobs.try_for_each(|job| self.process(vec![job]));
                let stopped = LedgerError::unavailable("the ledger's writer stopped");
                self.park(jobs.collect(), RETRY_AFTER, stopped);
                done
            }
            CommitTrouble::Failed => {
                tracing::error!(%error, "an operation of the ledger failed");
                let why = Cause::in_words(error.to_string(), error);
                self.park(jobs, FAILED_AFTER, LedgerError::Unavailable(why));
                Continue(())
            }
        }
    }

    /// Another program has the write lock, or had it a moment ago.
    fn busy(&self) -> Fault {
        self.shared.locks.busy().unwrap_or_else(|| {
            let cause = "another program is writing to it, and commits wait for it";
            Fault::new(TroubleKind::Blocked, cause, "let it finish").vaguely()
        })
    }

    fn attempt(&mut self, jobs: &mut Vec<Job>) -> Result<(), BatchFailure> {
        // Payments and changes of keys are synced before they are confirmed. Holds and charges are synced 30 ms later by a chore,
        // so a power failure can lose the last 50 ms of them; a crash of the process alone loses nothing.
        let money = |jobs: &[Job]| {
            jobs.iter()
                .any(|job| job.work.class() == OperationClass::Money)
        };
        let full = self.strict || money(jobs);
        if self.full_sync != Some(full) {
            self.batch.conn.execute_batch(if full {
                "PRAGMA synchronous = FULL"
            } else {
                "PRAGMA synchronous = NORMAL"
            })?;
            self.full_sync = Some(full);
        }
        if let Err(failure) = self.commit(jobs, full) {
            self.batch.roll_back()?;
            return Err(failure);
        }
        if !full {
            self.chores.sync.ask(SYNC_AFTER);
        }
        let erased = std::mem::take(&mut self.batch.tables.erased);
        match &self.chores.checkpoint {
            Some(checkpoint) => {
                self.shared.empty_log.fetch_or(erased, Ordering::Relaxed);
                checkpoint.ask(if erased {
                    Duration::ZERO
                } else {
                    CHECKPOINT_AFTER
                });
            }
            None if erased => upkeep::empty_log(&self.location),
            None => {}
        }
        // A file that was moved between the check in `commit` and the commit itself took the commit with it.
        self.location.check().map_err(BatchFailure::Misplaced)
    }

    fn commit(&mut self, jobs: &mut Vec<Job>, full: bool) -> Result<(), BatchFailure> {
        self.batch.begin()?;
        if let Some(version) = self.batch.other_schema() {
            let path = self.location.given.clone();
            return Err(BatchFailure::Displaced(Displaced::Changed(path, version)));
        }
        let deadline = soon(self.batching.patience());
        let mut run = 0;
        while run < jobs.len() {
            jobs.iter_mut()
                .skip(run)
                .try_for_each(|job| job.run(&mut self.batch))?;
            run = jobs.len();
            // Before the wait for more callers, so that the time is used.
            self.batch.flush()?;
            jobs.extend(self.gather(run, full, deadline));
        }
        // Checked last, because the waits for the write lock and for callers leave time in which the file may have been replaced.
        self.location.check().map_err(BatchFailure::Displaced)?;
        Ok(self.batch.commit()?)
    }

    fn note_commit(&mut self, jobs: &[Job], begun: Instant) {
        let operations = jobs.len();
        let ends = jobs.iter().filter(|job| job.work.class().ends()).count();
        self.shared
            .gate
            .note_ends(u64::try_from(ends).unwrap_or(u64::MAX));
        let took = clock()
            .saturating_duration_since(begun)
            .saturating_sub(self.idle);
        self.batching.note(operations);
        let mut stats = lock(&self.shared.stats);
        stats.note(operations, took);
        stats.unresolved = self.unresolved.len();
        drop(stats);
        self.shared.note_displaced(None);
    }

    /// After a rollback: holds that must be ended wait for the next attempt, all other callers get this error.
    fn park(&mut self, jobs: Vec<Job>, delay: Duration, error: LedgerError) {
        for job in jobs {
            if job.work.class() == OperationClass::Resolve {
                self.unresolved.push(job);
            } else {
                job.reply(Err(error.clone()));
            }
        }
        if !self.unresolved.is_empty() {
            self.retry_at = soon(delay);
        }
        lock(&self.shared.stats).unresolved = self.unresolved.len();
    }

    /// Copies a log that was deleted or replaced into the ledger's file, as long as this connection can read it, and says so. SQLite
    /// would do that when the last connection closes, but the threads that read are not waited for, so the process may end first.
    fn save_log(&self, reason: String) -> String {
        let lost = match self.location.check() {
            Err(Displaced::BesideGone(lost) | Displaced::BesideReplaced(lost)) => lost,
            Ok(()) | Err(_) => return reason,
        };
        // An index can be made anew. The log is where it was, or cannot be read without the index.
        if lost != wal_path(&self.location.real) {
            return format!("{reason}; the log has every commit: start the gateway again");
        }
        let copied = self
            .batch
            .conn
            .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
                row.get::<_, bool>(0)
            })
            .map_err(|error| error.to_string())
            .and_then(|busy| {
                if busy {
                    Err("a reader is in it".to_owned())
                } else {
                    Ok(())
                }
            });
        let moved = copied.and_then(|()| {
            let moved = self.location.move_strangers_away();
            moved.map_err(|error| error.to_string())
        });
        match moved {
            Ok(()) => format!(
                "{reason}; every commit is copied into the ledger's file: start the gateway again, and do not put that file back"
            ),
            Err(error) => {
                format!("{reason}; it could not be copied into the ledger's file: {error}")
            }
        }
    }

    /// Ends all writing. The outcome of the current batch is unknown; what was still queued certainly did not happen.
    fn stop(&mut self, error: Cause, batch: Vec<Job>) {
        let error = match files::read_only(&self.location) {
            Some(words) => error.reworded(words),
            None => error,
        };
        let reason = format!("the ledger's writer stopped: {error}");
        let cause = error.reworded(reason.clone());
        tracing::error!(reason, "no more writes are safe");
        let waiting = {
            let mut queue = lock(&self.shared.queue);
            queue.closed = Some(reason.clone());
            std::mem::take(&mut queue.jobs)
        };
        let remedy = "read the last lines of the log, mend the disk, and start the gateway again";
        let fault = Fault::new(TroubleKind::Stopped, reason.clone(), remedy);
        self.shared.record.set(LedgerWork::Writer, fault);
        self.park(batch, RETRY_AFTER, LedgerError::Unknown(cause.clone()));
        self.park(waiting.into(), RETRY_AFTER, LedgerError::Unavailable(cause));
        self.shared.fatal.send_replace(Some(reason));
    }
}
