//! A queue entry of the writer: an operation, its outcome until the commit, and the channel to its caller.
//!
//! A job may run several times, once in each attempted transaction, and replies once.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::batch::Batch;
use crate::batch::operation::{Operation, OperationClass, Outcome};
use crate::{LedgerError, Refusal};

/// A step that only tests need.
#[cfg(test)]
type TestWork = Box<dyn Fn(&mut Batch<'_>) -> rusqlite::Result<()> + Send>;

/// The work to do in a batch.
pub(super) enum BatchWork {
    Apply(Operation),
    #[cfg(test)]
    Test(OperationClass, TestWork),
}

impl BatchWork {
    pub(super) const fn class(&self) -> OperationClass {
        match self {
            Self::Apply(operation) => operation.class(),
            #[cfg(test)]
            Self::Test(class, _) => *class,
        }
    }

    fn run(&self, batch: &mut Batch<'_>) -> rusqlite::Result<Result<Outcome, Refusal>> {
        match self {
            Self::Apply(operation) => batch.run(operation),
            #[cfg(test)]
            Self::Test(_, work) => work(batch).map(|()| Ok(Outcome::Done)),
        }
    }
}

/// Work in the queue, and the channel to its caller.
pub(super) struct Job {
    pub(super) work: BatchWork,
    pub(super) outcome: Option<Result<Outcome, Refusal>>,
    pub(super) reply: oneshot::Sender<Result<Outcome, LedgerError>>,
    /// The caller's runtime, if it has threads of its own: replies are sent from there.
    pub(super) runtime: Option<Handle>,
}

impl Job {
    /// Runs inside a batch and keeps its outcome until the commit. Runs again after a rollback, so it must not consume its work.
    pub(super) fn run(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()> {
        self.outcome = Some(self.work.run(batch)?);
        Ok(())
    }

    /// Replies with the kept outcome, or with the failure of the batch.
    pub(super) fn reply(self, committed: Result<(), LedgerError>) {
        let outcome = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome.map_err(LedgerError::Refused),
            (Ok(()), None) => Err(LedgerError::unknown(
                "the writer lost this operation".to_owned(),
            )),
            (Err(error), _) => Err(error),
        };
        // The caller may have stopped waiting. The operation has happened anyway, so there is nothing to undo.
        let _ = self.reply.send(outcome);
    }
}

/// A committed batch; dropping it replies to every caller.
pub(super) struct Committed(pub(super) Vec<Job>);

impl Committed {
    /// Replies from inside the callers' runtime. Waking that runtime from this thread costs one system call per caller;
    /// a single spawned task costs one for all of them.
    pub(super) fn reply(self) {
        let runtime = self
            .0
            .iter()
            .find_map(|job| job.runtime.as_ref())
            .filter(|_| self.0.len() > 1)
            .cloned();
        if let Some(runtime) = runtime {
            // If the runtime shuts down and drops the task, `Drop` still replies.
            drop(runtime.spawn(async move { drop(self) }));
        }
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|job| job.reply(Ok(())));
    }
}
