//! The last days of a key or customer in money: what was charged, and what was not charged although a provider may bill it. Pure; the
//! clock is passed in.
//!
//! Two rules. Of the last 24 hours both sides fade evenly: what a single failed request can leave is forgotten a day later. Of the last
//! 30 days nothing fades, so that nobody leaves as much every day.

use std::collections::BTreeMap;

use farebox_ledger::{Amount, Timestamp, UsageRow};

use crate::config::{Catalog, Lookup, Model, Price};
use crate::metering::price;

/// In milliseconds.
pub(crate) const HOUR: i64 = 3_600_000;
/// In milliseconds.
const MINUTE: i64 = 60_000;
/// In hours.
pub(crate) const DAY: i64 = 24;
/// In days: what is older counts no more.
pub(crate) const MONTH: i64 = 30;
/// Prices are compared in thousandths.
const WHOLE: i128 = 1_000;

/// The sums of a key, or of all keys of a customer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LastDays {
    /// By clock hour: those that have not faded yet.
    hours: BTreeMap<i64, ExposureSums>,
    /// By UTC day: of the hours that have.
    days: BTreeMap<i64, ExposureSums>,
    /// The highest cost of a full context among the models that caused its exposure.
    context: Amount,
    /// There was any.
    exposed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ExposureSums {
    /// What was not charged, losses included.
    exposure: i128,
    charge: i128,
}

impl ExposureSums {
    fn add(&mut self, more: Self) {
        self.exposure = self.exposure.saturating_add(more.exposure);
        self.charge = self.charge.saturating_add(more.charge);
    }
}

/// Which days a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposureSpan {
    /// The last 24 hours, fading.
    Day,
    /// The last 30 days.
    Month,
}

impl ExposureSpan {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "24 hours",
            Self::Month => "30 days",
        }
    }

    /// What is allowed beside half the charges, in words.
    #[must_use]
    pub const fn allows(self) -> &'static str {
        match self {
            Self::Day => "one context, at most half of what was paid",
            Self::Month => "half of what was paid",
        }
    }
}

/// What a customer may leave unpaid whatever it is charged follows from these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeExposure {
    /// What it ever paid, less what went back.
    pub(crate) paid: Amount,
    /// The price of a context that is about to be asked for.
    pub(crate) asked: Amount,
}

/// The two sides of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposureStanding {
    /// Which days.
    pub span: ExposureSpan,
    /// Exposure and loss of that time.
    pub exposure: Amount,
    /// What of them is allowed: half the charges of that time, and half of what was ever paid; of a day at most one context.
    pub allowed: Amount,
}

impl ExposureStanding {
    /// Whether nothing more is served for now.
    pub fn is_stopped(&self) -> bool {
        self.exposure > self.allowed
    }

    /// What the rule leaves; nothing once it has stopped.
    pub fn left(&self) -> Amount {
        let left = self.allowed.picos().saturating_sub(self.exposure.picos());
        Amount::from_picos(left.max(0))
    }
}

impl LastDays {
    /// Takes in what the ledger has from an hour on, in place of what was known of that time; without what is `excused` of an hour.
    pub(crate) fn note(
        &mut self,
        rows: &[UsageRow],
        catalog: &Catalog,
        (from, now): (i64, Timestamp),
        excused: impl Fn(i64) -> i128,
    ) {
        self.hours.retain(|hour, _| *hour < from);
        for row in rows.iter().filter(|row| row.hour.hour() >= from) {
            // Output that a crashed gateway left unmetered is not the key's fault.
            let exposure = i128::from(row.exposure.picos()) - i128::from(row.unmetered.picos());
            let exposure = match catalog.find(&row.slug) {
                Lookup::Found(model) => at_cost(exposure, model),
                Lookup::Retired(..) | Lookup::Unknown(..) => exposure,
            };
            self.hours
                .entry(row.hour.hour())
                .or_default()
                .add(ExposureSums {
                    exposure: exposure + i128::from(row.loss.picos()),
                    charge: row.charge.picos().into(),
                });
            if row.exposure.is_positive() || row.loss.is_positive() {
                self.context = self.context.max(context_of(catalog, &row.slug));
            }
        }
        for (hour, sums) in self.hours.range_mut(from..) {
            sums.exposure -= excused(*hour).min(sums.exposure).max(0);
            self.exposed |= sums.exposure > 0;
        }
        self.fold(now.hour());
    }

    /// Adds what was charged just now, until the ledger is read again.
    pub(crate) fn charged(&mut self, charge: Amount, now: Timestamp) {
        self.hours.entry(now.hour()).or_default().charge += i128::from(charge.picos());
    }

    /// Puts hours that have faded to their days, and forgets days that are over.
    fn fold(&mut self, now: i64) {
        let kept = self.hours.split_off(&(now - DAY));
        for (hour, sums) in std::mem::replace(&mut self.hours, kept) {
            self.days.entry(hour.div_euclid(DAY)).or_default().add(sums);
        }
        self.days = self.days.split_off(&first_day(now));
    }

    /// The last day, or the last 30, at an instant.
    pub(crate) fn standing(
        &self,
        span: ExposureSpan,
        at: Timestamp,
        FreeExposure { paid, asked }: FreeExposure,
    ) -> ExposureStanding {
        let half = paid.picos() / 2;
        let (sums, free) = match span {
            // One context is what a single failed request can leave. Half of what was paid bounds it for keys that paid little: a new
            // key per attack would otherwise be worth a context each.
            ExposureSpan::Day => (self.last_day(at), self.context.max(asked).picos().min(half)),
            ExposureSpan::Month => (self.last_month(at), half),
        };
        ExposureStanding {
            span,
            exposure: price::to_amount(sums.exposure.max(0)),
            allowed: price::to_amount(i128::from(free) + sums.charge / 2),
        }
    }

    /// Both rules; the tighter one first.
    pub(crate) fn standings(&self, at: Timestamp, free: FreeExposure) -> [ExposureStanding; 2] {
        let [day, month] =
            [ExposureSpan::Day, ExposureSpan::Month].map(|span| self.standing(span, at, free));
        let left = |of: &ExposureStanding| {
            i128::from(of.allowed.picos()) - i128::from(of.exposure.picos())
        };
        if left(&month) < left(&day) {
            [month, day]
        } else {
            [day, month]
        }
    }

    pub(crate) fn is_stopped(&self, at: Timestamp, free: FreeExposure) -> bool {
        self.exposed
            && self
                .standings(at, free)
                .iter()
                .any(ExposureStanding::is_stopped)
    }

    fn last_day(&self, at: Timestamp) -> ExposureSums {
        let mut all = ExposureSums::default();
        for (hour, sums) in &self.hours {
            // The ledger has no finer sums than clock hours. One fades from its end on, so nobody gains by waiting for the full hour.
            let ended = (hour + 1).saturating_mul(HOUR);
            let age = at.millis().saturating_sub(ended).clamp(0, DAY * HOUR);
            let share = |sum: i128| sum * i128::from(DAY * HOUR - age) / i128::from(DAY * HOUR);
            all.add(ExposureSums {
                exposure: share(sums.exposure),
                charge: share(sums.charge),
            });
        }
        all
    }

    fn last_month(&self, at: Timestamp) -> ExposureSums {
        let first = first_day(at.hour());
        let hours = self.hours.range(first.saturating_mul(DAY)..);
        let days = self.days.range(first..).map(|(_, sums)| sums);
        let mut all = ExposureSums::default();
        days.chain(hours.map(|(_, sums)| sums))
            .for_each(|sums| all.add(*sums));
        all
    }

    /// Minutes until the key is served again, if nothing else happens.
    pub(crate) fn minutes_left(&self, at: Timestamp, free: FreeExposure) -> u32 {
        let later = |minutes: i64| {
            let at = Timestamp::from_millis(at.millis() + minutes * MINUTE);
            !self.is_stopped(at, free)
        };
        // By the minute for an hour, by a tenth of it for the day in which something fades, then day by day.
        let minutes = 1..=60;
        let tenths = (66..=26 * 60).step_by(6);
        let next_day = 24 * 60 - at.millis().rem_euclid(DAY * HOUR) / MINUTE;
        let days = (1..=MONTH).map(|day| next_day + day * DAY * 60);
        let mut all = minutes.chain(tenths).chain(days);
        let found = all.find(|minutes| later(*minutes));
        u32::try_from(found.unwrap_or(MONTH * DAY * 60)).unwrap_or(u32::MAX)
    }
}

/// The first of the days that count: the last 30, and the one that runs.
fn first_day(hour: i64) -> i64 {
    hour.div_euclid(DAY) - MONTH
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
pub(crate) fn context(model: &Model) -> Amount {
    let tokens = model.limits.context;
    price::to_amount(i128::from(model.price.for_input(tokens).input.picos()) * i128::from(tokens))
}

/// The same for a slug; for one that is no longer published, the highest cost of any published one.
fn context_of(catalog: &Catalog, slug: &str) -> Amount {
    match catalog.find(slug) {
        Lookup::Found(model) => context(model),
        Lookup::Retired(..) | Lookup::Unknown(..) => catalog
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

    const PAID: FreeExposure = FreeExposure {
        paid: Amount::from_picos(1_000),
        asked: Amount::from_picos(20),
    };
    const NOON: i64 = 1_000 * DAY + 12;

    fn at(hour: i64, minute: i64) -> Timestamp {
        Timestamp::from_millis(hour * HOUR + minute * MINUTE)
    }

    fn of(hours: &[(i64, i128, i128)]) -> LastDays {
        let mut days = LastDays {
            exposed: true,
            ..LastDays::default()
        };
        for (hour, exposure, charge) in hours {
            days.hours.entry(*hour).or_default().add(ExposureSums {
                exposure: *exposure,
                charge: *charge,
            });
        }
        days
    }

    #[test]
    fn both_sides_of_a_day_fade_evenly() {
        let days = of(&[(NOON, 240, 48)]);
        let at = |hour, minute| {
            let standing = days.standing(ExposureSpan::Day, at(hour, minute), PAID);
            (standing.exposure.picos(), standing.allowed.picos())
        };
        assert_eq!(at(NOON, 0), (240, 20 + 24));
        assert_eq!(at(NOON, 59), (240, 20 + 24), "while the hour lasts");
        assert_eq!(at(NOON + 1 + 6, 0), (180, 20 + 18));
        assert_eq!(at(NOON + 1 + 18, 0), (60, 20 + 6));
        assert_eq!(at(NOON + 1 + 24, 0), (0, 20));
    }

    #[test]
    fn nothing_of_thirty_days_fades() {
        let mut days = of(&[(NOON, 300, 100), (NOON + 5 * DAY, 90, 20)]);
        days.fold(NOON + 5 * DAY);
        assert_eq!((days.hours.len(), days.days.len()), (1, 1));
        let at = |day: i64| {
            let standing = days.standing(ExposureSpan::Month, at(NOON + day * DAY, 0), PAID);
            (standing.exposure.picos(), standing.allowed.picos())
        };
        assert_eq!(at(5), (390, 500 + 60));
        assert_eq!(at(30), (390, 500 + 60));
        assert_eq!(at(31), (90, 500 + 10));
        assert_eq!(at(36), (0, 500));
    }

    #[test]
    fn a_key_is_stopped_for_as_long_as_it_is_told() {
        let day = of(&[(NOON, 100, 60)]);
        let month = of(&[(NOON, 501, 0)]);
        for (days, least, most) in [(&day, 60, 24 * 60), (&month, 30 * 24 * 60, 31 * 24 * 60)] {
            let now = at(NOON, 45);
            assert!(days.is_stopped(now, PAID));
            let minutes = i64::from(days.minutes_left(now, PAID));
            assert!((least..=most).contains(&minutes), "{minutes}");
            assert!(!days.is_stopped(at(NOON, 45 + minutes), PAID));
            assert!(days.is_stopped(at(NOON, 45 + minutes * 9 / 10), PAID));
        }
    }

    #[test]
    fn half_of_what_was_paid_bounds_both_and_one_context_the_day() {
        let allowed = |paid, span| {
            let free = FreeExposure {
                paid: Amount::from_picos(paid),
                ..PAID
            };
            let standing = LastDays::default().standing(span, at(NOON, 0), free);
            standing.allowed.picos()
        };
        assert_eq!(
            (
                allowed(10, ExposureSpan::Day),
                allowed(1_000, ExposureSpan::Day)
            ),
            (5, 20)
        );
        assert_eq!(
            (
                allowed(10, ExposureSpan::Month),
                allowed(1_000, ExposureSpan::Month)
            ),
            (5, 500)
        );
    }

    /// Leaving as much as a day allows, every day, is stopped by what 30 days allow.
    #[test]
    fn the_tighter_rule_is_told() {
        let daily: Vec<_> = (0..30).map(|day| (NOON + day * DAY, 18, 0)).collect();
        let (mut days, now) = (of(&daily), at(NOON + 29 * DAY, 0));
        days.fold(now.hour());
        let [tighter, other] = days.standings(now, PAID);
        assert_eq!(
            (tighter.span, tighter.is_stopped()),
            (ExposureSpan::Month, true)
        );
        assert_eq!((other.span, other.is_stopped()), (ExposureSpan::Day, false));
        assert_eq!((tighter.left(), other.left().picos()), (Amount::ZERO, 2));
    }
}
