//! Lifetimes of cache writes beyond the usual one: what a request asks for, and what writes cost that nobody divides.

use std::time::Duration;

use farebox_ledger::{Amount, Usage, UsageKind};

use crate::config::Rates;

/// The shortest lifetime that providers publish for what they cache …
pub(super) const USUAL: Duration = Duration::from_secs(5 * 60);
/// … for what was written for an hour …
pub(super) const HOUR: Duration = Duration::from_secs(60 * 60);
/// … and for half a day.
const HALF_DAY: Duration = Duration::from_secs(12 * 60 * 60);

/// No provider caches a prompt of fewer tokens.
pub const LEAST_CACHED: u64 = 1_024;

/// The lifetimes that a request asks for somewhere, besides the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lifetimes {
    /// Some mark asks for one hour.
    pub hour: bool,
    /// Some mark asks for twelve hours.
    pub half_day: bool,
}

impl Lifetimes {
    /// None but the usual one.
    pub const NONE: Self = Self {
        hour: false,
        half_day: false,
    };

    /// Whether it asks for any.
    #[must_use]
    pub const fn any(self) -> bool {
        self.hour || self.half_day
    }

    /// How long what the request writes and reads stays cached after each use.
    #[must_use]
    pub const fn longest(self) -> Duration {
        match self {
            Self { half_day: true, .. } => HALF_DAY,
            Self { hour: true, .. } => HOUR,
            Self { .. } => USUAL,
        }
    }

    /// The rate of the dearest lifetime asked for, and as what its writes are counted; of equal ones the longest.
    #[must_use]
    pub fn dearest(self, rates: &Rates) -> (Amount, UsageKind) {
        let hour = (self.hour).then(|| (hour(rates), UsageKind::CacheWrite1h));
        let half_day = (self.half_day).then(|| (half_day(rates), UsageKind::CacheWrite12h));
        let usual = (rates.cache_write, UsageKind::CacheWrite);
        hour.into_iter().chain(half_day).max().unwrap_or(usual)
    }

    /// Counts writes that the provider has not divided as those of the dearest lifetime.
    pub fn undivided(self, usage: &mut Usage, rates: &Rates) {
        if self.any() {
            let written = std::mem::take(&mut usage.cache_write);
            let slot = &mut usage[self.dearest(rates).1];
            *slot = slot.saturating_add(written);
        }
    }
}

/// Requests for writes without a price are refused in advance; if an upstream reports one anyway, it is priced as an ordinary write.
pub(super) fn hour(rates: &Rates) -> Amount {
    rates.cache_write_1h.unwrap_or(rates.cache_write)
}

pub(super) fn half_day(rates: &Rates) -> Amount {
    rates.cache_write_12h.unwrap_or_else(|| hour(rates))
}
