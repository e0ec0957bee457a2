//! What a cap that refuses says. Pure.

use std::fmt;

use super::{Cap, CapMaker};
use crate::{Amount, CapInterval, CustomerId, PlanLimit, Scope, Timestamp};

/// Why a cap refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapReached {
    /// Whose cap it is.
    pub scope: Scope,
    /// The cap with least room.
    pub cap: Cap,
    /// Whose limit it is.
    pub made_by: CapMaker,
    /// The requested amount.
    pub needed: Amount,
    /// What it still has room for.
    pub room: Amount,
    /// Charged in its window.
    pub spent: Amount,
    /// Held in its window by running requests.
    pub held: Amount,
    /// When it starts again; a total never does.
    pub resets_at: Option<Timestamp>,
    /// What of a plan it is that binds as a cap does: then the cap itself is none that anybody set.
    pub plan: Option<PlanLimit>,
}

impl CapReached {
    /// A plan's limit, where a customer has so much room for a slug.
    pub(crate) fn of_plan(
        plan: PlanLimit,
        customer: CustomerId,
        (needed, room): (Amount, Amount),
    ) -> Self {
        Self {
            scope: Scope::Customer(customer),
            cap: Cap {
                interval: CapInterval::Total,
                model: None,
                limit: plan.limit,
            },
            made_by: CapMaker::Seller,
            needed,
            room,
            spent: plan.spent,
            held: plan.held,
            resets_at: Some(plan.opens_at),
            plan: Some(plan),
        }
    }

    /// What binds, in words: `cap of 5.00 USD per day`, `plan Coder, monthly of 4.00 USD per 5h`.
    pub fn what(&self) -> String {
        match &self.plan {
            None => format!("cap of {}", self.cap),
            Some(plan) => plan.to_string(),
        }
    }
}

impl fmt::Display for CapReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            needed,
            room,
            spent,
            held,
            ..
        } = self;
        let what = self.what();
        write!(
            out,
            "this takes {needed} USD; the {what} has room for {room} USD: {spent} USD are spent and {held} USD held by running \
             requests"
        )
    }
}
