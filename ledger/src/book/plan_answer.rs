//! What somebody who changed a subscription is answered.

use crate::{Customer, Subscription};

/// The outcome of what is done to a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAnswer {
    /// The subscription as it is now.
    pub subscription: Subscription,
    /// Its customer as it is now.
    pub customer: Customer,
    /// Whether an earlier call had already done it.
    pub repeated: bool,
}
