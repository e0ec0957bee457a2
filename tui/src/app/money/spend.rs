//! What was charged and asked for over time: of all keys, of one slug, of one key. Sums of the ledger's hourly rollup.

use std::collections::BTreeMap;

use farebox_ledger::{Amount, SlugHour, Timestamp, UsageRow};

use crate::app::cell::{count, faint, short, strong, unknown};
use crate::app::list::{ListColumn, ListRow, fill, in_order, right};
use crate::app::order::{ListOrder, ListState};
use crate::format;

/// Hours and UTC days of a chart, the current ones included.
pub(crate) const HOURS: usize = 48;
pub(crate) const DAYS: usize = 30;
/// The column that lists are sorted by unless one asks for another.
const MONTH: &str = "30 d";
/// Milliseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000;

/// The sums of an hour or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FlowSum {
    pub(crate) requests: u64,
    pub(crate) charge: Amount,
    /// At the operator's own prices, where they are known.
    pub(crate) cost: Amount,
}

/// The last hours and days, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpendFlow {
    pub(crate) hours: Vec<FlowSum>,
    pub(crate) days: Vec<FlowSum>,
}

impl FlowSum {
    fn add(&mut self, more: Self) {
        let sum = |one: Amount, other: Amount| {
            Amount::from_picos(one.picos().saturating_add(other.picos()))
        };
        self.requests = self.requests.saturating_add(more.requests);
        self.charge = sum(self.charge, more.charge);
        self.cost = sum(self.cost, more.cost);
    }
}

impl SpendFlow {
    /// Adds up sums of hours.
    pub(crate) fn of(now: Timestamp, sums: impl Iterator<Item = (Timestamp, FlowSum)>) -> Self {
        let mut flow = Self {
            hours: vec![FlowSum::default(); HOURS],
            days: vec![FlowSum::default(); DAYS],
        };
        let place = |ago: i64, all: usize| {
            let ago = usize::try_from(ago).ok()?;
            all.checked_sub(ago.checked_add(1)?)
        };
        for (hour, sum) in sums {
            let hours = now.hour() - hour.hour();
            let days = now.hour().div_euclid(24) - hour.hour().div_euclid(24);
            for (list, ago) in [(&mut flow.hours, hours), (&mut flow.days, days)] {
                let slot = place(ago, list.len()).and_then(|place| list.get_mut(place));
                if let Some(slot) = slot {
                    slot.add(sum);
                }
            }
        }
        flow
    }

    pub(crate) fn of_key(now: Timestamp, usage: &[UsageRow]) -> Self {
        let sum = |row: &UsageRow| {
            let sum = FlowSum {
                requests: row.requests,
                charge: row.charge,
                cost: row.cost,
            };
            (row.hour, sum)
        };
        Self::of(now, usage.iter().map(sum))
    }
}

/// The first instant of the days of a chart.
pub(crate) fn month_before(now: Timestamp) -> Timestamp {
    let days = i64::try_from(DAYS).unwrap_or(1);
    let first = now.hour().div_euclid(24) - days + 1;
    Timestamp::from_millis(first.saturating_mul(24 * HOUR))
}

/// One line of the list below the charts: a slug, or all of them together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SpendLine {
    /// Empty for all.
    pub(crate) slug: String,
    /// In 24 hours.
    requests: u64,
    day: Amount,
    week: Amount,
    month: Amount,
    /// Of the month, where it is known.
    cost: Amount,
    /// The month's of all slugs.
    all: Amount,
}

impl SpendLine {
    fn add(&mut self, hours_ago: i64, sum: FlowSum) {
        let add = |to: &mut Amount, more: Amount| {
            *to = Amount::from_picos(to.picos().saturating_add(more.picos()));
        };
        if hours_ago < 24 {
            self.requests = self.requests.saturating_add(sum.requests);
            add(&mut self.day, sum.charge);
        }
        if hours_ago < 168 {
            add(&mut self.week, sum.charge);
        }
        add(&mut self.month, sum.charge);
        add(&mut self.cost, sum.cost);
    }
}

pub(crate) const SPEND: &[ListColumn<SpendLine>] = &[
    fill("SLUG").rising(6, |line, _| {
        strong(if line.slug.is_empty() {
            "all"
        } else {
            &line.slug
        })
    }),
    right("REQS 24 h", 10, 2).falling(2, |line, _| count(line.requests)),
    right("24 h", 10, 0).falling(1, |line, _| short(line.day, 10)),
    right("7 d", 10, 3).falling(3, |line, _| short(line.week, 10)),
    right(MONTH, 10, 0).falling(4, |line, _| short(line.month, 10).strong()),
    right("COST 30 d", 10, 4).falling(5, |line, _| match line.cost.is_positive() {
        true => short(line.cost, 10).faint(),
        false => unknown().faint(),
    }),
    right("SHARE", 6, 1).shows(|line, _| faint(format::share(line.month, line.all))),
];

impl ListRow for SpendLine {
    type At<'a> = &'a Self;
}

/// The tab of charges over time, whose sums the charts of Margin and Exposure show too.
#[derive(Debug, Default)]
pub(crate) struct Spend {
    pub(crate) rows: Vec<SlugHour>,
    /// Its first row is all slugs together.
    pub(crate) list: ListState,
    pub(crate) loaded: bool,
    pub(crate) error: Option<String>,
    pub(crate) loading: bool,
    /// The slug to select when it is listed.
    pub(crate) wanted: Option<String>,
}

impl Spend {
    /// All slugs together, then each: the largest first unless it is sorted.
    pub(crate) fn lines(&self, now: Timestamp) -> Vec<SpendLine> {
        let mut all = SpendLine::default();
        let mut slugs: BTreeMap<&str, SpendLine> = BTreeMap::new();
        for row in &self.rows {
            let ago = now.hour() - row.hour.hour();
            all.add(ago, sum_of(row));
            let line = slugs.entry(&row.sums.name).or_insert_with(|| SpendLine {
                slug: row.sums.name.clone(),
                ..SpendLine::default()
            });
            line.add(ago, sum_of(row));
        }
        let order = match self.list.order {
            order if order.sorts() => order,
            _ => ListOrder {
                column: MONTH,
                descending: true,
            },
        };
        let slugs: Vec<SpendLine> = slugs.into_values().collect();
        let mut lines = in_order(SPEND, slugs, order, |column, line| column.rank(line, now));
        let month = all.month;
        lines.insert(0, all);
        lines.iter_mut().for_each(|line| line.all = month);
        lines
    }

    /// The charts of one slug, or of all together.
    pub(crate) fn flow(&self, now: Timestamp, slug: &str) -> SpendFlow {
        let of = |row: &&SlugHour| slug.is_empty() || row.sums.name == slug;
        let rows = self.rows.iter().filter(of);
        SpendFlow::of(now, rows.map(|row| (row.hour, sum_of(row))))
    }

    /// Takes an answer; false if nothing changed.
    pub(crate) fn take(&mut self, now: Timestamp, answer: Result<Vec<SlugHour>, String>) -> bool {
        self.loading = false;
        let first = !std::mem::replace(&mut self.loaded, true);
        let changed = match answer {
            Ok(rows) => {
                let changed = self.rows != rows || self.error.is_some();
                (self.rows, self.error) = (rows, None);
                changed
            }
            Err(error) => {
                let changed = self.error.as_ref() != Some(&error);
                self.error = Some(error);
                changed
            }
        };
        let lines = self.lines(now);
        let wanted = self.wanted.take();
        let found = wanted.and_then(|slug| lines.iter().position(|line| line.slug == slug));
        self.list.selected = found.unwrap_or(self.list.selected);
        self.list.stay_in(lines.len());
        changed || first || found.is_some()
    }
}

fn sum_of(row: &SlugHour) -> FlowSum {
    FlowSum {
        requests: row.sums.requests,
        charge: row.sums.charge,
        cost: row.sums.cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_days_fall_into_their_places() {
        // 2026-03-31 23:59:59 UTC.
        let now = Timestamp::from_millis(1_775_001_599_000);
        let at = |hours: i64| Timestamp::from_millis(now.millis() - hours * HOUR);
        let sum = FlowSum {
            requests: 1,
            charge: Amount::from_picos(5),
            cost: Amount::from_picos(2),
        };
        let sums = [0, 0, 23, 24, 47, 48, 719, 720].map(|hours| (at(hours), sum));
        let flow = SpendFlow::of(now, sums.into_iter());
        let requests = |list: &[FlowSum]| {
            let some = list.iter().enumerate().filter(|(_, sum)| sum.requests > 0);
            some.map(|(place, sum)| (place, sum.requests))
                .collect::<Vec<_>>()
        };
        assert_eq!(requests(&flow.hours), [(0, 1), (23, 1), (24, 1), (47, 2)]);
        assert_eq!(requests(&flow.days), [(0, 1), (27, 1), (28, 2), (29, 3)]);
        assert_eq!(month_before(now).to_string(), "2026-03-02T00:00:00.000Z");
        assert_eq!(flow.days.last().map(|sum| sum.charge.picos()), Some(15));
    }
}
