//! What a gateway's own requests to targets in trouble cost its operator. They belong to no key and are in no chain: nobody is charged
//! for them, and the margins would be too good without them.

use crate::Amount;

/// What own requests to a target cost in an hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnCost {
    /// Hours since 1970, UTC.
    pub hour: i64,
    /// `provider/model`.
    pub target: String,
    /// The total so far, not a difference: storing it twice has one effect.
    pub cost: Amount,
}
