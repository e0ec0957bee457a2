//! What a key has spent lately: today, this week, this month, all in UTC. Pure; the clock is passed in.

use farebox_ledger::{Amount, Timestamp, UsageRow};
use jiff::tz::TimeZone;

/// What was spent lately, UTC.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentSpending {
    /// Since midnight.
    pub(super) day: Amount,
    /// Since Monday.
    pub(super) week: Amount,
    /// Since the first of the month.
    pub(super) month: Amount,
}

impl RecentSpending {
    /// Where the earliest of these begins.
    pub(super) fn begins(now: Timestamp) -> Timestamp {
        let hour = Self::hours(now).into_iter().min().unwrap_or_default();
        Timestamp::from_millis(hour.saturating_mul(3_600_000))
    }

    /// The first hours of the day, the week and the month.
    fn hours(now: Timestamp) -> [i64; 3] {
        let day = now.hour().div_euclid(24);
        // The first day of all was a Thursday.
        let monday = day - (day + 3).rem_euclid(7);
        [day * 24, monday * 24, month_of(now)]
    }

    /// The sums of the hours since then.
    pub(super) fn of(rows: &[UsageRow], now: Timestamp) -> Self {
        let [day, week, month] = Self::hours(now).map(|first| spent_since(rows, first));
        Self { day, week, month }
    }
}

/// What was charged from an hour on. A sum that no ledger can hold stays at what fits.
pub(super) fn spent_since(rows: &[UsageRow], hour: i64) -> Amount {
    let rows = rows.iter().filter(|row| row.hour.hour() >= hour);
    rows.fold(Amount::ZERO, |sum, row| {
        sum.checked_add(row.charge).unwrap_or(sum)
    })
}

/// The first hour of an instant's month, in UTC.
pub(super) fn month_of(now: Timestamp) -> i64 {
    let instant = jiff::Timestamp::from_millisecond(now.millis()).unwrap_or_default();
    let day = i64::from(instant.to_zoned(TimeZone::UTC).day());
    (now.hour().div_euclid(24) - (day - 1)) * 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_the_week_and_the_month_begin_at_midnight_utc() {
        // Sunday, 2026-11-22, 02:00: the week began on the 16th.
        let now = Timestamp::from_millis(1_795_312_800_000);
        let row = |hours_ago: i64| UsageRow {
            hour: Timestamp::from_millis(now.millis() - hours_ago * 3_600_000),
            charge: Amount::from_picos(1),
            ..UsageRow::default()
        };
        let rows: Vec<UsageRow> = (0..24 * 40).map(row).collect();
        let spent = RecentSpending::of(&rows, now);
        let hours = [spent.day, spent.week, spent.month].map(Amount::picos);
        assert_eq!(hours, [3, 6 * 24 + 3, 21 * 24 + 3]);
        assert_eq!(RecentSpending::begins(now), row(21 * 24 + 2).hour);
    }
}
