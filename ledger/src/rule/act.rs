//! Who did something to a key or customer.

use crate::{OperationId, Timestamp};

/// Who did an administrative act, when, and under which operation id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Repeating an id has no second effect.
    pub operation: OperationId,
    /// The operator's name.
    pub actor: String,
    /// The clock at the act, UTC.
    pub at: Timestamp,
}
