//! A key's last hour in money: what was charged, and what was not charged although a provider may bill it. Pure; the clock is
//! passed in.
//!
//! The ledger sums by clock hours. Of the previous hour, only the share within the last sixty minutes counts.

use farebox_ledger::{Amount, Timestamp, UsageRow};

use crate::config::{Catalog, Lookup, Model, Price};
use crate::metering::price;

/// In milliseconds.
pub(crate) const HOUR: i64 = 3_600_000;
/// In milliseconds.
const MINUTE: i64 = 60_000;
/// Prices are compared in thousandths.
const WHOLE: i128 = 1_000;

/// A key's sums in this clock hour and in the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LastHour {
    hour: i64,
    current: HourSums,
    before: HourSums,
    /// The highest cost of a full context among the models that caused its exposure.
    context: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct HourSums {
    /// What was not charged, losses included.
    exposure: i128,
    charge: i128,
}

/// The two sides of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourStanding {
    /// Exposure and loss over the last hour.
    pub exposure: Amount,
    /// One context, but at most half of what was ever paid, and half the charges of the last hour.
    pub allowed: Amount,
}

impl HourStanding {
    /// Whether the key gets nothing more for now.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.exposure > self.allowed
    }
}

impl LastHour {
    /// The hours that the rollup has for a key, without what is `excused` of an hour.
    pub(crate) fn of(
        rows: &[UsageRow],
        catalog: &Catalog,
        excused: impl Fn(i64) -> i128,
        now: Timestamp,
    ) -> Self {
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
            let exposure = i128::from(row.exposure.picos()) - i128::from(row.unmetered.picos());
            let exposure = match catalog.find(&row.slug) {
                Lookup::Found(model) => at_cost(exposure, model),
                _ => exposure,
            };
            sums.exposure += exposure + i128::from(row.loss.picos());
            sums.charge += i128::from(row.charge.picos());
            if row.exposure.is_positive() || row.loss.is_positive() {
                found.context = found.context.max(context_of(catalog, &row.slug));
            }
        }
        let hour = found.hour;
        for (sums, hour) in [(&mut found.current, hour), (&mut found.before, hour - 1)] {
            sums.exposure = (sums.exposure - excused(hour)).max(0);
        }
        found
    }

    /// The last sixty minutes at an instant: the current clock hour and a share of the previous one.
    pub(crate) fn standing(&self, at: Timestamp, paid: Amount) -> HourStanding {
        // The ledger has no finer sums than clock hours. Taken as even, an hour's exposure fades minute by minute, and nobody gains by
        // waiting for the full hour.
        let part = i128::from(HOUR - at.millis().rem_euclid(HOUR));
        let share = |sum: i128| sum * part / i128::from(HOUR);
        let last = match at.hour().saturating_sub(self.hour) {
            i64::MIN..=0 => HourSums {
                exposure: self.current.exposure + share(self.before.exposure),
                charge: self.current.charge + share(self.before.charge),
            },
            1 => HourSums {
                exposure: share(self.current.exposure),
                charge: share(self.current.charge),
            },
            _ => HourSums::default(),
        };
        // One context is what a single failed request can leave. Half of what was paid bounds it for keys that paid little: a new key
        // per attack would otherwise be worth a context each.
        let free = self.context.picos().min(paid.picos() / 2);
        HourStanding {
            exposure: price::to_amount(last.exposure),
            allowed: price::to_amount(i128::from(free) + last.charge / 2),
        }
    }

    /// Minutes until the key is served again, if nothing else happens.
    pub(crate) fn minutes_left(&self, at: Timestamp, paid: Amount) -> u32 {
        // Two clock hours later nothing of these sums is left.
        let later = |minutes: &u32| {
            let at = Timestamp::from_millis(at.millis() + i64::from(*minutes) * MINUTE);
            !self.standing(at, paid).is_stopped()
        };
        (1..=120).find(later).unwrap_or(120)
    }
}

/// Exposure at the operator's own prices, where all targets of the slug have them.
pub(crate) fn at_cost(exposure: i128, model: &Model) -> i128 {
    let shares = model.route.targets.iter().map(|target| {
        let cost = target.cost.as_deref()?;
        Some(dearest_share(cost, &model.price))
    });
    // One target without a cost makes the others' meaningless: the request may have gone there.
    let share = shares.collect::<Option<Vec<i128>>>();
    match share.and_then(|shares| shares.into_iter().max()) {
        Some(share) => exposure * share / WHOLE,
        None => exposure,
    }
}

/// What the operator pays of the price, in thousandths: of input or of output, whichever is more.
fn dearest_share(cost: &Price, price: &Price) -> i128 {
    let share = |cost: Amount, price: Amount| {
        let price = i128::from(price.picos());
        (price > 0).then(|| (i128::from(cost.picos()) * WHOLE + price - 1) / price)
    };
    let shares = [
        share(cost.base.input, price.base.input),
        share(cost.base.output, price.base.output),
    ];
    shares.into_iter().flatten().max().unwrap_or(WHOLE)
}

/// The cost of one full context of a model.
fn context(model: &Model) -> Amount {
    let tokens = model.limits.context;
    price::to_amount(i128::from(model.price.for_input(tokens).input.picos()) * i128::from(tokens))
}

/// The same for a slug; for one that is no longer published, the highest cost of any published one.
fn context_of(catalog: &Catalog, slug: &str) -> Amount {
    match catalog.find(slug) {
        Lookup::Found(model) => context(model),
        _ => catalog
            .models
            .iter()
            .map(|model| context(model))
            .max()
            .unwrap_or(Amount::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: LastHour = LastHour {
        hour: 10,
        current: HourSums {
            exposure: 40,
            charge: 8,
        },
        before: HourSums {
            exposure: 100,
            charge: 60,
        },
        context: Amount::from_picos(20),
    };

    const RICH: Amount = Amount::from_picos(1_000);

    fn at(hour: i64, minute: i64) -> Timestamp {
        Timestamp::from_millis(hour * HOUR + minute * MINUTE)
    }

    #[test]
    fn the_last_hour_slides_over_two_clock_hours() {
        let at = |hour: i64, minute: i64| {
            let standing = SUMS.standing(at(hour, minute), RICH);
            (
                standing.exposure.picos(),
                standing.allowed.picos(),
                standing.is_stopped(),
            )
        };
        assert_eq!(at(10, 0), (140, 20 + 34, true));
        assert_eq!(at(10, 45), (65, 20 + 11, true));
        assert_eq!(at(11, 0), (40, 20 + 4, true), "without another request");
        assert_eq!(at(11, 45), (10, 20 + 1, false));
        assert_eq!(at(12, 0), (0, 20, false));
    }

    #[test]
    fn a_key_is_stopped_for_as_long_as_its_hour_lasts() {
        let minutes = SUMS.minutes_left(at(10, 45), RICH);
        assert!((16..75).contains(&minutes), "{minutes}");
        let then = at(10, 45 + i64::from(minutes));
        assert!(!SUMS.standing(then, RICH).is_stopped());
        let before = at(10, 44 + i64::from(minutes));
        assert!(SUMS.standing(before, RICH).is_stopped());
    }

    #[test]
    fn half_of_what_was_paid_bounds_the_context() {
        let standing = |paid| SUMS.standing(at(12, 0), Amount::from_picos(paid));
        assert_eq!(standing(10).allowed.picos(), 5);
        assert_eq!(standing(1_000).allowed.picos(), 20);
    }
}
