//! Reads what bounds a provider's use: time, requests at once, tokens in a minute, and the cost of our own requests.

use std::time::Duration;

use farebox_ledger::Amount;
use farebox_toml::{Entry, Fields, KEYS, Report};

use super::rates::{PriceUnit, read_amount};
use crate::config::Timeouts;

/// A tenth of a dollar: a small model answers thousands of our questions for it, and an attack costs no more than that.
const PROBE_BUDGET: Amount = Amount::from_picos(100_000_000_000);

const DEFAULT_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    first_byte: Duration::from_secs(120),
    idle: Duration::from_secs(300),
    whole: Duration::from_secs(900),
};

/// The bounds of one provider.
pub(super) struct Bounds {
    pub(super) timeouts: Timeouts,
    pub(super) max_concurrent: Option<u32>,
    pub(super) max_tokens_per_minute: Option<u64>,
    pub(super) probe_budget: Amount,
}

/// `None` if one of them is wrong.
pub(super) fn read_bounds(fields: &Fields<'_, '_>, report: &mut Report<'_>) -> Option<Bounds> {
    let timeouts = fields.given(report, "timeouts", |value, report| {
        read_timeouts(value, report, &fields.what)
    });
    let max_concurrent = fields.given(report, "max_concurrent", |value, report| {
        value.small(report, 1..=1_000_000)
    });
    let max_tokens_per_minute = fields.given(report, "max_tokens_per_minute", |value, report| {
        value.integer(report, 1_000..=1_000_000_000_000)
    });
    let probe_budget = fields.given(report, "probe_budget", |value, report| {
        read_amount(value, report, PriceUnit::One)
    });
    Some(Bounds {
        timeouts: timeouts?.unwrap_or(DEFAULT_TIMEOUTS),
        max_concurrent: max_concurrent?.map(|most| most.value),
        max_tokens_per_minute: max_tokens_per_minute?.map(|most| most.value),
        probe_budget: probe_budget?.unwrap_or(PROBE_BUDGET),
    })
}

fn read_timeouts(value: Entry<'_, '_>, report: &mut Report<'_>, what: &str) -> Option<Timeouts> {
    let fields = value.fields(report, &format!("the timeouts of {what}"), &KEYS.timeouts)?;
    let range = Duration::from_millis(10)..=Duration::from_secs(3_600);
    let mut wait = |name, default| {
        let read =
            |value: Entry<'_, '_>, report: &mut Report<'_>| value.duration(report, range.clone());
        fields
            .given(report, name, read)
            .map(|time| time.unwrap_or(default))
    };
    let connect = wait("connect", DEFAULT_TIMEOUTS.connect);
    let first_byte = wait("first_byte", DEFAULT_TIMEOUTS.first_byte);
    let idle = wait("idle", DEFAULT_TIMEOUTS.idle);
    let whole = wait("whole", DEFAULT_TIMEOUTS.whole);
    Some(Timeouts {
        connect: connect?,
        first_byte: first_byte?,
        idle: idle?,
        whole: whole?,
    })
}
