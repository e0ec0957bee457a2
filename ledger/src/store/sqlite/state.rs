//! State shared by the writer's callers and its thread: the queue, the wake-up signal, and the writer's state.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};

use tokio::sync::watch;

use super::gate::HoldGate;
use super::job::{BatchWork, Job};
use super::log_readers::LogLocks;
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::{Fault, Finish, TroubleKind, WriterStats, lock};

/// State shared by callers and the thread.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<JobQueue>,
    pub(super) wake: Condvar,
    pub(super) stats: Mutex<WriterStats>,
    pub(super) record: Arc<TroubleRecord>,
    pub(super) gate: Arc<HoldGate>,
    pub(super) locks: LogLocks,
    /// The log has pages of before something was erased.
    pub(super) empty_log: Arc<AtomicBool>,
    pub(super) fatal: watch::Sender<Option<String>>,
    /// Bills that nobody books any more.
    pub(super) due: Mutex<Vec<Arc<Finish>>>,
}

/// The waiting jobs, and how to wake the writer.
#[derive(Default)]
pub(super) struct JobQueue {
    pub(super) jobs: VecDeque<Job>,
    /// The log could not be synced or checkpointed: the writer stops before its next batch.
    pub(super) broken: Option<String>,
    /// The writer sleeps until this many jobs wait; `usize::MAX` while it is awake, so that callers skip needless wakes.
    pub(super) wanted: usize,
    pub(super) closed: Option<String>,
}

impl std::fmt::Debug for JobQueue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue")
            .field("jobs", &self.jobs.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn note_displaced(&self, why: Option<String>) {
        match why {
            Some(why) => {
                let cause = format!("the ledger cannot be written: {why}");
                let remedy = "put the ledger back with its -wal, or restore a backup (*Back up and restore*); selling goes on by itself";
                let fault = Fault::new(TroubleKind::Displaced, cause, remedy);
                if self.record.set(LedgerWork::Files, fault) {
                    tracing::error!("selling stops: {why}");
                }
            }
            None => {
                if self.record.end(LedgerWork::Files) {
                    tracing::info!("the ledger's file is back where it was; selling resumes");
                }
            }
        }
    }

    /// Keeps the bills of these jobs for whoever closes the ledger.
    pub(super) fn keep(&self, jobs: impl IntoIterator<Item = Job>) {
        let bills = jobs.into_iter().filter_map(|job| match job.work {
            BatchWork::Apply(operation) => operation.resolution(),
            #[cfg(test)]
            BatchWork::Test(..) => None,
        });
        lock(&self.due).extend(bills);
    }

    pub(super) fn broken(&self, reason: String) {
        lock(&self.queue).broken.get_or_insert(reason);
        self.wake.notify_one();
    }
}
