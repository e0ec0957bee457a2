//! What waits in the queue: an operation, and who waits for it.

use tokio::sync::oneshot;

use crate::operation::{Operation, Outcome};
use crate::{KeyId, LedgerError};

/// Where an outcome goes.
pub(super) type Reply = oneshot::Sender<Result<Outcome, LedgerError>>;

/// An operation in the queue, and who waits for it.
pub(super) struct Job {
    pub(super) operation: Operation,
    /// The key, of a hold whose request runs here.
    pub(super) key: Option<KeyId>,
    pub(super) reply: Option<Reply>,
}

impl Job {
    pub(super) fn reply(self, outcome: Result<Outcome, LedgerError>) {
        if let Some(reply) = self.reply {
            // Whoever asked may have gone; the operation has happened all the same.
            let _ = reply.send(outcome);
        }
    }
}
