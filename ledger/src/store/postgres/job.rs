//! A queue entry: an operation, and who waits for it.

use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::store::replies::{Caller, CallerValue};
use crate::{CustomerId, LedgerError, OperationId};

/// Who waits for an outcome.
pub(super) type OutcomeCaller = Caller<Result<Outcome, LedgerError>>;
/// An outcome, and who waits for it.
pub(super) type OutcomeAnswer = CallerValue<Result<Outcome, LedgerError>>;

/// An operation in the queue, and who waits for it.
pub(super) struct Job {
    pub(super) operation: Operation,
    /// The customer, if it is the hold of a request that runs here.
    pub(super) customer: Option<CustomerId>,
    pub(super) caller: Option<OutcomeCaller>,
}

impl Job {
    /// The request whose hold this ends, if it does.
    pub(super) fn ends(&self) -> Option<OperationId> {
        self.operation.finish().map(|finish| finish.request)
    }

    /// The reply, if somebody waits for it.
    pub(super) fn answer(self, value: Result<Outcome, LedgerError>) -> Option<OutcomeAnswer> {
        let caller = self.caller?;
        Some(CallerValue { caller, value })
    }
}
