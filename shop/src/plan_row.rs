//! A plan that the gateway sells, as the shop shows it.

use farebox_ledger::{Amount, PlanPeriod, WindowBound};
use serde::Deserialize;

/// A plan on sale.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PlanRow {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) terms: PeriodTerms,
}

/// What each period of a plan gives.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PeriodTerms {
    /// What may be used in it.
    pub(crate) allowance: Amount,
    pub(crate) period: PlanPeriod,
    /// How much of it may be used when.
    pub(crate) windows: Vec<WindowBound>,
}
