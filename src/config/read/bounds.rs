//! Reads what bounds a provider's use: requests at once, tokens in a minute, and the cost of our own requests.

use farebox_ledger::Amount;

use super::fields::{Fields, given};
use super::rates::{PriceUnit, read_amount};
use crate::config::findings::report::Report;

/// A tenth of a dollar: a small model answers thousands of our questions for it, and an attack costs no more than that.
const PROBE_BUDGET: Amount = Amount::from_picos(100_000_000_000);

/// The bounds of one provider.
pub(super) struct Bounds {
    pub(super) max_concurrent: Option<u32>,
    pub(super) max_tokens_per_minute: Option<u64>,
    pub(super) probe_budget: Amount,
}

/// `None` if one of them is wrong.
pub(super) fn read_bounds(fields: &Fields<'_, '_>, report: &mut Report<'_>) -> Option<Bounds> {
    let max_concurrent = given(fields, report, "max_concurrent", |value, report| {
        value.small(report, 1..=1_000_000)
    });
    let max_tokens_per_minute = given(fields, report, "max_tokens_per_minute", |value, report| {
        value.integer(report, 1_000..=1_000_000_000_000)
    });
    let probe_budget = given(fields, report, "probe_budget", |value, report| {
        read_amount(value, report, PriceUnit::One)
    });
    Some(Bounds {
        max_concurrent: max_concurrent?.map(|most| most.value),
        max_tokens_per_minute: max_tokens_per_minute?.map(|most| most.value),
        probe_budget: probe_budget?.unwrap_or(PROBE_BUDGET),
    })
}
