//! A queue entry: an operation, and who waits for it.

use tokio::sync::oneshot;

use crate::batch::operation::{Operation, Outcome};
use crate::{CustomerId, LedgerError, OperationId};

/// Where an outcome goes.
pub(super) type OutcomeSender = oneshot::Sender<Result<Outcome, LedgerError>>;

/// An operation in the queue, and who waits for it.
pub(super) struct Job {
    pub(super) operation: Operation,
    /// The customer, if it is the hold of a request that runs here.
    pub(super) customer: Option<CustomerId>,
    pub(super) reply: Option<OutcomeSender>,
}

impl Job {
    /// The request whose hold this ends, if it does.
    pub(super) fn ends(&self) -> Option<OperationId> {
        match &self.operation {
            Operation::Finish(finish) | Operation::Resolve(finish) => Some(finish.request),
            _ => None,
        }
    }

    pub(super) fn reply(self, outcome: Result<Outcome, LedgerError>) {
        if let Some(reply) = self.reply {
            // The caller may have gone; the operation has happened anyway.
            let _ = reply.send(outcome);
        }
    }
}
