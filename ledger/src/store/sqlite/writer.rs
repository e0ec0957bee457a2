//! The process's only writer, as its callers see it: queue → batch → one commit → replies.
//!
//! All waiting operations share one commit. `worker` has the thread behind it, `job` the queue's entries, and `apply` what
//! operations do.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::watch;

use super::batch::Batch;
use super::gate::HoldGate;
use super::job::{BatchWork, Job};
use super::key_cache::KeyCache;
use super::location::Location;
use super::log_readers::LogLocks;
use super::state::{JobQueue, Shared};
use super::upkeep;
use super::worker::{Chores, Worker};
use crate::batch::operation::OperationClass;
use crate::batch::outcome::Outcome;
use crate::store::replies::Caller;
use crate::store::trouble_record::{LATE, LedgerWork, TroubleRecord};
use crate::{Cause, Durability, Finish, LedgerError, OpenMode, ResolveHold, WriterStats, lock};

/// New holds are refused while this many operations are queued; other operations are always taken.
// Some forty full batches, which a writer that is well commits in about a second: more have gathered only where it stands still. Ends of
// holds are always taken, because nobody else can bill them.
const MAX_QUEUE: usize = 20_000;

/// The handle that callers have.
#[derive(Debug)]
pub(super) struct WriterHandle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WriterHandle {
    /// Starts the writer's thread on its own connection.
    pub(super) fn start(
        conn: Connection,
        location: &Arc<Location>,
        remembered: Option<Arc<KeyCache>>,
        (mode, durability): (OpenMode, Durability),
        log_limit: Arc<AtomicU64>,
        (fatal, record): (watch::Sender<Option<String>>, Arc<TroubleRecord>),
    ) -> Result<Self, LedgerError> {
        let serves = mode == OpenMode::Serve;
        let gate = HoldGate::new(
            log_limit,
            Arc::clone(&record),
            serves.then_some(location.as_ref()),
        )?;
        let shared = Arc::new(Shared {
            gate: Arc::new(gate),
            locks: LogLocks::of(location)?,
            empty_log: Arc::default(),
            queue: Mutex::new(JobQueue {
                wanted: 1,
                ..JobQueue::default()
            }),
            wake: Condvar::new(),
            stats: Mutex::new(WriterStats::default()),
            record,
            fatal,
            due: Mutex::default(),
        });
        let breaks = |shared: &Arc<Shared>| {
            let shared = Arc::clone(shared);
            move |reason| shared.broken(reason)
        };
        let no_thread = |error| {
            LedgerError::unavailable(Cause::of("cannot start the threads of the writer", error))
        };
        let chores = Chores {
            sync: upkeep::sync(location, &shared.record, breaks(&shared))?,
            checkpoint: serves
                .then(|| {
                    let gate = (&shared.gate, &shared.record);
                    upkeep::checkpoint(location, gate, &shared.empty_log, breaks(&shared))
                })
                .transpose()?,
        };
        let (for_worker, location) = (Arc::clone(&shared), Arc::clone(location));
        let work = move || {
            Worker::new(
                for_worker,
                Batch::new(&conn, remembered),
                location,
                chores,
                durability,
            )
            .run()
        };
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(work)
            .map_err(no_thread)?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `work` in the next batch and waits for its commit.
    pub(super) async fn submit(&self, work: BatchWork) -> Result<Outcome, LedgerError> {
        let (caller, answer) = Caller::new();
        self.enqueue(Job {
            work,
            outcome: None,
            caller: Some(caller),
        });
        // It may have committed before it stopped.
        answer.await.unwrap_or_else(|_| {
            Err(LedgerError::unknown(
                "the ledger's writer stopped".to_owned(),
            ))
        })
    }

    /// Ends a hold in the next batch, and retries until the outcome is known. Returns without waiting.
    pub(super) fn resolve(&self, finish: Arc<Finish>) {
        self.enqueue(Job {
            work: BatchWork::Apply(ResolveHold(finish).into()),
            outcome: None,
            caller: None,
        });
    }

    fn enqueue(&self, job: Job) {
        let mut queue = lock(&self.shared.queue);
        let refused = match &queue.closed {
            Some(reason) => Some(reason.clone()),
            None if job.work.class() == OperationClass::Hold && queue.jobs.len() >= MAX_QUEUE => {
                Some("too many operations are waiting".to_owned())
            }
            None => None,
        };
        if let Some(reason) = refused {
            drop(queue);
            if job.work.class() == OperationClass::Resolve {
                return self.shared.keep([job]);
            }
            return job.reply(Err(LedgerError::unavailable(reason)));
        }
        queue.jobs.push_back(job);
        let wake = queue.jobs.len() >= queue.wanted;
        if wake {
            // One wake is enough. The writer sets `wanted` again, under this lock, before it sleeps.
            queue.wanted = usize::MAX;
        }
        drop(queue);
        if wake {
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn stats(&self) -> WriterStats {
        let queued = lock(&self.shared.queue).jobs.len();
        WriterStats {
            queued,
            log: self.shared.gate.log(),
            ..lock(&self.shared.stats).clone()
        }
    }

    /// Finds out who keeps a commit waiting that is late.
    pub(super) fn explain(&self) {
        let late = self.shared.record.late(LATE).into_iter();
        for late in late.filter(|late| late.work == LedgerWork::Commit) {
            self.shared
                .record
                .explain(late.number, self.shared.locks.busy());
        }
    }

    /// Whether it accepts no more work.
    pub(super) fn stopped(&self) -> bool {
        lock(&self.shared.queue).closed.is_some()
    }

    /// Records a check made outside the writer: whether the path still leads to the ledger's file.
    pub(super) fn note_displaced(&self, why: Option<String>) {
        self.shared.note_displaced(why);
    }

    /// Ends all writing, as an error would.
    pub(super) fn fail(&self, reason: String) {
        self.shared.broken(reason);
    }

    /// The bills that it did not book; call it when the writer is closed.
    pub(super) fn take_due(&self) -> Vec<Arc<Finish>> {
        std::mem::take(&mut lock(&self.shared.due))
    }

    /// Writes what waits, then stops. False if it had stopped before.
    pub(super) fn close(&self) -> bool {
        lock(&self.shared.queue)
            .closed
            .get_or_insert_with(|| "the ledger is closed".to_owned());
        self.shared.wake.notify_one();
        let Some(thread) = lock(&self.thread).take() else {
            return false;
        };
        if thread.join().is_err() {
            tracing::error!("the ledger's writer panicked");
        }
        true
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.close();
    }
}
