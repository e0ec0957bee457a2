//! How long money lasts at the mean of what was spent lately. Whole numbers; the clock is passed in.

use farebox_ledger::{Amount, Key, Timestamp, UtcDay};

const HOUR_MS: i64 = 3_600_000;
/// The days whose mean use is the pace.
const DAYS: i64 = 7;
/// More days than this are only "more than a year".
const YEAR: i64 = 365;

/// How fast money is spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpendingPace {
    spent: Amount,
    hours: i64,
    /// Whether there was no request in the days before those that are counted.
    is_young: bool,
}

impl SpendingPace {
    /// The pace of the last seven days, or since the first use if that was later; `since` tells what was spent from an hour on.
    pub(super) fn of(
        now: Timestamp,
        first_use: Option<i64>,
        since: impl Fn(i64) -> Amount,
    ) -> Self {
        let end = now.hour() + 1;
        let week = end - DAYS * 24;
        let young = first_use.filter(|first| *first > week);
        let first = young.unwrap_or(week);
        Self {
            spent: since(first),
            // A first hour of trying things out is no pace: a day is the least.
            hours: (end - first).max(24),
            is_young: young.is_some(),
        }
    }
}

/// How long money lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runway {
    /// Whole days.
    pub(super) days: i64,
    /// Whether it is a cap's, which starts again before it is used up.
    is_renewed: bool,
    /// Whose it is: an owner's is the customer's balance.
    is_owner: bool,
    is_young: bool,
}

impl Runway {
    /// How long it lasts for the holder of a key: the customer's balance for an owner; for a member what this key may spend, so that
    /// it learns nothing of a purse in which there is more. `None` where nothing is left or nothing was spent.
    pub(super) fn of(key: &Key, pace: SpendingPace, now: Timestamp) -> Option<Self> {
        let left = if key.is_owner {
            key.customer.account.balance()
        } else {
            key.remaining("", now)
        };
        if !left.is_positive() || !pace.spent.is_positive() {
            return None;
        }
        let hours =
            i128::from(left.picos()) * i128::from(pace.hours) / i128::from(pace.spent.picos());
        let hours = i64::try_from(hours).unwrap_or(i64::MAX);
        let renewed = renewed_in(key, left, now);
        Some(Self {
            days: hours / 24,
            is_renewed: !key.is_owner && renewed.is_some_and(|until| hours >= until),
            is_owner: key.is_owner,
            is_young: pace.is_young,
        })
    }

    /// As a sentence of the page.
    pub(super) fn shown(self) -> String {
        let what = if self.is_owner { "The balance" } else { "This" };
        let lasts = match self.days {
            _ if self.is_renewed => "lasts until its cap starts again".to_owned(),
            0 => "lasts less than a day".to_owned(),
            1 => "lasts about a day".to_owned(),
            days @ 2..=YEAR => format!("lasts about {days} days"),
            _ => "lasts more than a year".to_owned(),
        };
        let whose = if self.is_owner { "the" } else { "this key's" };
        let since = if self.is_young {
            "since the first request"
        } else {
            "of the last 7 days"
        };
        format!("{what} {lasts} at {whose} mean use {since}.")
    }
}

/// The hours until the first of the key's own caps of which no more is left starts again.
fn renewed_in(key: &Key, left: Amount, now: Timestamp) -> Option<i64> {
    let today = UtcDay::of(now);
    let binding = key
        .caps
        .iter()
        .filter(|counted| counted.cap.model.is_none() && counted.remaining(today) == left);
    let next = binding.filter_map(|counted| counted.cap.interval.next(today));
    let hours = next.map(|day| (day.begin().millis() - now.millis()) / HOUR_MS);
    hours.min()
}
