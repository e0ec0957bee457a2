//! A queue entry of the writer: an operation, its outcome until the commit, and its caller.
//!
//! A job may run several times, once in each attempted transaction, and replies once.

use tokio::runtime::Handle;

use super::batch::Batch;
use crate::batch::operation::{Operation, OperationClass};
use crate::batch::outcome::Outcome;
use crate::store::replies::{Caller, CallerReply};
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

/// Work in the queue, and its caller.
pub(super) struct Job {
    pub(super) work: BatchWork,
    pub(super) outcome: Option<Result<Outcome, Refusal>>,
    /// Nobody waits for the end of a hold that is only handed over.
    pub(super) caller: Option<Caller<Result<Outcome, LedgerError>>>,
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
        if let Some(caller) = self.caller {
            caller.reply(outcome);
        }
    }
}

impl CallerReply for Job {
    fn runtime(&self) -> Option<&Handle> {
        self.caller.as_ref().and_then(Caller::runtime)
    }

    fn send(self) {
        self.reply(Ok(()));
    }
}
