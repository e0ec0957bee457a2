//! A key's last hour in money: what was charged, and what was not charged although a provider may bill it. Pure; the clock is
//! passed in.
//!
//! The ledger sums by clock hours. Of the previous hour, only the share within the last sixty minutes counts.

use farebox_ledger::{Amount, Timestamp, UsageRow};

use crate::config::{Catalog, Lookup, Model};
use crate::metering::price;

/// In milliseconds.
pub(super) const HOUR: i64 = 3_600_000;

/// A key's sums in this clock hour and in the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LastHour {
    hour: i64,
    current: Sums,
    before: Sums,
    /// The highest cost of a full context among the models that caused its exposure.
    context: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    exposure: i128,
    charge: i128,
}

/// The two sides of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Exposure over the last hour.
    pub exposure: Amount,
    /// One context and half the charges of the last hour.
    pub allowed: Amount,
}

impl Standing {
    /// Whether the key runs one request at a time.
    #[must_use]
    pub fn runs_away(&self) -> bool {
        self.exposure > self.allowed
    }
}

impl LastHour {
    /// The hours that the rollup has for a key.
    pub(super) fn of(rows: &[UsageRow], catalog: &Catalog, now: Timestamp) -> Self {
        let mut found = Self {
            hour: now.hour(),
            ..Self::default()
        };
        for row in rows {
            let sums = if row.hour.hour() >= found.hour {
                &mut found.current
            } else {
                &mut found.before
            };
            // Output that a crashed gateway left unmetered is not the key's fault.
            sums.exposure += i128::from(row.exposure.picos()) - i128::from(row.unmetered.picos());
            sums.charge += i128::from(row.charge.picos());
            if row.exposure.is_positive() {
                found.context = found.context.max(context(catalog, &row.slug));
            }
        }
        found
    }

    /// The last sixty minutes at an instant: the current clock hour and a share of the previous one.
    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        let part = i128::from(HOUR - now.millis().rem_euclid(HOUR));
        let share = |sum: i128| sum * part / i128::from(HOUR);
        let last = match now.hour().saturating_sub(self.hour) {
            i64::MIN..=0 => Sums {
                exposure: self.current.exposure + share(self.before.exposure),
                charge: self.current.charge + share(self.before.charge),
            },
            1 => Sums {
                exposure: share(self.current.exposure),
                charge: share(self.current.charge),
            },
            _ => Sums::default(),
        };
        let allowed = i128::from(self.context.picos()) + last.charge / 2;
        Standing {
            exposure: price::to_amount(last.exposure),
            allowed: price::to_amount(allowed),
        }
    }
}

/// The cost of one full context of a model; for a model no longer published, the highest cost of any published one.
fn context(catalog: &Catalog, slug: &str) -> Amount {
    let of = |model: &Model| {
        let tokens = model.limits.context;
        price::to_amount(
            i128::from(model.price.for_input(tokens).input.picos()) * i128::from(tokens),
        )
    };
    match catalog.find(slug) {
        Lookup::Found(model) => of(model),
        _ => catalog
            .models
            .iter()
            .map(|model| of(model))
            .max()
            .unwrap_or(Amount::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hour_slides_over_two_clock_hours() {
        let sums = |exposure, charge| Sums { exposure, charge };
        let last = LastHour {
            hour: 10,
            current: sums(40, 8),
            before: sums(100, 60),
            context: Amount::from_picos(20),
        };
        let at = |hour: i64, minute: i64| {
            let standing = last.standing(Timestamp::from_millis(hour * HOUR + minute * 60_000));
            (
                standing.exposure.picos(),
                standing.allowed.picos(),
                standing.runs_away(),
            )
        };
        assert_eq!(at(10, 0), (140, 20 + 34, true));
        assert_eq!(at(10, 45), (65, 20 + 11, true));
        assert_eq!(at(11, 0), (40, 20 + 4, true), "without another request");
        assert_eq!(at(11, 45), (10, 20 + 1, false));
        assert_eq!(at(12, 0), (0, 20, false));
    }
}
