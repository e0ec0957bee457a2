//! Lifetimes of cache writes beyond the usual one: what a request asks for, and what writes cost that nobody divides.

use std::time::Duration;

use farebox_ledger::{Amount, Usage};

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
    /// One hour.
    pub hour: bool,
    /// Twelve hours.
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

    /// The dearest rate of those asked for, and whether it is that of twelve hours; `None` if none is.
    #[must_use]
    pub fn dearest(self, rates: &Rates) -> Option<(Amount, bool)> {
        let hour = self.hour.then(|| (hour(rates), false));
        let half_day = self.half_day.then(|| (half_day(rates), true));
        hour.into_iter().chain(half_day).max()
    }

    /// The part of a usage where writes of the dearest lifetime are counted.
    pub fn slot<'u>(self, usage: &'u mut Usage, rates: &Rates) -> &'u mut u64 {
        match self.dearest(rates) {
            Some((_, true)) => &mut usage.cache_write_12h,
            Some((_, false)) => &mut usage.cache_write_1h,
            None => &mut usage.cache_write,
        }
    }

    /// Counts writes that the provider has not divided as those of the dearest lifetime.
    pub fn undivided(self, usage: &mut Usage, rates: &Rates) {
        if self.any() {
            let written = std::mem::take(&mut usage.cache_write);
            let slot = self.slot(usage, rates);
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
