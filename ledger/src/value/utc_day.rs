//! Days of UTC, and the windows of time in which caps count. Pure.

use std::fmt;

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan as _};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

const DAY: i64 = 86_400_000;
const FIRST_DAY: Date = date(1970, 1, 1);

/// A day of UTC, counted from 1970-01-01.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct UtcDay(pub(crate) i64);

impl UtcDay {
    /// The day of an instant.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        Self(at.millis().div_euclid(DAY))
    }

    /// Days since 1970-01-01.
    pub(crate) const fn number(self) -> i64 {
        self.0
    }

    /// Its first instant.
    #[must_use]
    pub const fn begin(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(DAY))
    }

    /// The day after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Reads `2026-11-24`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::of_civil)
    }

    fn civil(self) -> Date {
        FIRST_DAY.saturating_add(Span::new().try_days(self.0).unwrap_or_default())
    }

    fn of_civil(day: Date) -> Self {
        let since = FIRST_DAY.until(day).unwrap_or_default();
        Self(since.get_days().into())
    }
}

/// `2026-11-24`.
impl fmt::Display for UtcDay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.civil().fmt(out)
    }
}

/// How long a cap counts before it starts again, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapInterval {
    /// From midnight to midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first of the month.
    Month,
    /// For ever.
    Total,
}

impl CapInterval {
    /// All, from the narrowest to the widest.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Total];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Total => "total",
        }
    }

    /// The first day of the window that contains a day.
    #[must_use]
    pub fn window(self, day: UtcDay) -> UtcDay {
        match self {
            Self::Day => day,
            Self::Week => {
                let since_monday = day.civil().weekday().to_monday_zero_offset();
                UtcDay(day.0.saturating_sub(since_monday.into()))
            }
            Self::Month => UtcDay::of_civil(day.civil().first_of_month()),
            Self::Total => UtcDay::default(),
        }
    }

    /// The first day of the window after the one that contains a day; a total has none.
    #[must_use]
    pub fn next(self, day: UtcDay) -> Option<UtcDay> {
        let window = self.window(day);
        match self {
            Self::Day => Some(window.next()),
            Self::Week => Some(UtcDay(window.0.saturating_add(7))),
            Self::Month => Some(UtcDay::of_civil(window.civil().saturating_add(1.month()))),
            Self::Total => None,
        }
    }
}

impl fmt::Display for CapInterval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> UtcDay {
        UtcDay::parse(text).unwrap()
    }

    #[test]
    fn windows_begin_at_midnight_on_monday_and_on_the_first() {
        let sunday = day("2026-03-01");
        let expected = [
            (CapInterval::Day, "2026-03-01", Some("2026-03-02")),
            (CapInterval::Week, "2026-02-23", Some("2026-03-02")),
            (CapInterval::Month, "2026-03-01", Some("2026-04-01")),
            (CapInterval::Total, "1970-01-01", None),
        ];
        for (interval, since, next) in expected {
            assert_eq!(interval.window(sunday), day(since), "{interval}");
            assert_eq!(interval.next(sunday), next.map(day), "{interval}");
        }
        assert_eq!(
            CapInterval::Week.window(day("1969-12-30")),
            day("1969-12-29")
        );
        let late = Timestamp::from_millis(-1);
        assert_eq!(UtcDay::of(late), day("1969-12-31"));
        assert_eq!(UtcDay(5).begin(), Timestamp::from_millis(5 * DAY));
    }
}
