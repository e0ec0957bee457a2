//! What somebody who gave or took back a grant is answered.

use crate::{Customer, GrantRecord};

/// The outcome of what is done to a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantAnswer {
    /// The grant as it is now.
    pub grant: GrantRecord,
    /// Its customer as it is now.
    pub customer: Customer,
    /// Whether an earlier call had already done it.
    pub repeated: bool,
}
