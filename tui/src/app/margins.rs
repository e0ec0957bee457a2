//! State of the Exposure and Margin screens: sums of the ledger by key, target, class or UTC day.
//!
//! The ledger sorts and adds up; this state only has the query and its answer. An answer to an older query is dropped.

use std::collections::{BTreeSet, HashMap};

use farebox_ledger::{MarginBy, MarginOrder, MarginQuery, Margins, Timestamp};

use super::order::{ListOrder, SortRank, sorted};
use super::ranks;

const DAY: i64 = 86_400_000;
/// More rows than anybody scrolls through.
pub(crate) const ROWS: usize = 500;

/// Which of the two screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MarginView {
    /// What providers may bill beyond the charges.
    Exposure,
    /// The part of the charges that remains.
    Margin,
}

impl MarginView {
    /// Its form in file names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exposure => "exposure",
            Self::Margin => "margin",
        }
    }

    /// Its columns, those that the ledger sorts first.
    pub(crate) const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Exposure => &[
                "EXPOSURE",
                "CHARGED",
                "LOSS",
                "NAME",
                "REQUESTS",
                "OF CHARGED",
                "STATE",
            ],
            Self::Margin => &[
                "MARGIN", "CHARGED", "COST", "EXPOSURE", "LOSS", "NAME", "REQUESTS", "OF",
            ],
        }
    }
}

/// The ledger's orders.
const ORDERS: &[MarginOrder] = &[
    MarginOrder::Exposure,
    MarginOrder::Charge,
    MarginOrder::Cost,
    MarginOrder::Loss,
    MarginOrder::Margin,
    MarginOrder::Name,
];

/// The heading of the column of an order.
const fn column(order: MarginOrder) -> &'static str {
    match order {
        MarginOrder::Name => "NAME",
        MarginOrder::Charge => "CHARGED",
        MarginOrder::Cost => "COST",
        MarginOrder::Exposure => "EXPOSURE",
        MarginOrder::Loss => "LOSS",
        MarginOrder::Margin => "MARGIN",
    }
}

/// What each sum is for, as displayed.
pub(crate) const fn by_name(by: MarginBy) -> &'static str {
    match by {
        MarginBy::Key => "key",
        MarginBy::Target => "target",
        MarginBy::Class => "class",
        MarginBy::Day => "day",
    }
}

/// The range of days, always whole UTC days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Period {
    Today,
    #[default]
    Week,
    Month,
    LastMonth,
}

impl Period {
    pub(crate) const ALL: [Self; 4] = [Self::Today, Self::Week, Self::Month, Self::LastMonth];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Week => "7 days",
            Self::Month => "this month",
            Self::LastMonth => "last month",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL
            .iter()
            .position(|known| *known == self)
            .unwrap_or_default();
        Self::ALL.get(at + 1).copied().unwrap_or(Self::Today)
    }

    /// Start and end, UTC.
    fn range(self, now: Timestamp) -> (Timestamp, Timestamp) {
        let midnight = now.millis() - now.millis().rem_euclid(DAY);
        let first = month_of(midnight);
        let (from, to) = match self {
            Self::Today => (midnight, midnight + DAY),
            Self::Week => (midnight - 6 * DAY, midnight + DAY),
            Self::Month => (first, midnight + DAY),
            Self::LastMonth => (month_of(first - DAY), first),
        };
        (Timestamp::from_millis(from), Timestamp::from_millis(to))
    }
}

/// The first instant of the month of a midnight.
fn month_of(midnight: i64) -> i64 {
    let text = Timestamp::from_millis(midnight).to_string();
    let day: i64 = text
        .get(8..10)
        .and_then(|day| day.parse().ok())
        .unwrap_or(1);
    midnight - (day - 1) * DAY
}

/// One of the two screens.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) view: MarginView,
    pub(crate) by: MarginBy,
    pub(crate) period: Period,
    pub(crate) order: MarginOrder,
    pub(crate) reverse: bool,
    /// The order that is sorted here, if it is not the ledger's.
    pub(crate) here: Option<ListOrder>,
    /// The column by which there are more sums than the console sorts.
    pub(crate) unsorted: Option<&'static str>,
    pub(crate) asked: Option<MarginQuery>,
    pub(crate) page: Margins,
    /// Labels of the keys among the rows, by id.
    pub(crate) labels: HashMap<String, String>,
    /// The keys that an alert of the gateway is about, by id: their exposure stops them.
    stopped: BTreeSet<String>,
    pub(crate) selected: usize,
    pub(crate) loaded: bool,
    pub(crate) error: Option<String>,
}

impl Sums {
    pub(crate) fn new(view: MarginView) -> Self {
        let mut sums = Self {
            view,
            by: MarginBy::Key,
            period: Period::default(),
            order: MarginOrder::default(),
            reverse: false,
            here: None,
            unsorted: None,
            asked: None,
            page: Margins::default(),
            labels: HashMap::new(),
            stopped: BTreeSet::new(),
            selected: 0,
            loaded: false,
            error: None,
        };
        sums.usual_order();
        sums
    }

    /// Days newest first, margins smallest first, exposures largest first.
    fn usual_order(&mut self) {
        (self.order, self.reverse) = match (self.by, self.view) {
            (MarginBy::Day, _) => (MarginOrder::Name, true),
            (_, MarginView::Exposure) => (MarginOrder::Exposure, false),
            (_, MarginView::Margin) => (MarginOrder::Margin, true),
        };
        self.here = None;
    }

    /// Sets what each sum is for.
    pub(crate) fn step(&mut self, forward: bool) {
        self.by = match (self.by, forward) {
            (MarginBy::Key, true) | (MarginBy::Class, false) => MarginBy::Target,
            (MarginBy::Target, true) | (MarginBy::Day, false) => MarginBy::Class,
            (MarginBy::Class, true) | (MarginBy::Key, false) => MarginBy::Day,
            (MarginBy::Day, true) | (MarginBy::Target, false) => MarginBy::Key,
        };
        self.usual_order();
        self.restart();
    }

    pub(crate) fn next_period(&mut self) {
        self.show(self.period.next());
    }

    /// Adds up another range of days.
    pub(crate) fn show(&mut self, period: Period) {
        self.period = period;
        self.restart();
    }

    /// What the list is sorted by.
    pub(crate) fn list_order(&self) -> ListOrder {
        self.here.unwrap_or_else(|| ListOrder {
            column: column(self.order),
            // Names are in ascending order unless reversed, amounts in descending order.
            descending: self.reverse == (self.order == MarginOrder::Name),
        })
    }

    /// Sorts by a column, here if the ledger has no order for it.
    pub(crate) fn set_list_order(&mut self, order: ListOrder) {
        let in_ledger = ORDERS.iter().find(|known| column(**known) == order.column);
        match in_ledger {
            Some(known) => {
                self.order = *known;
                self.reverse = order.descending == (*known == MarginOrder::Name);
                self.here = None;
            }
            None => self.here = Some(order),
        }
        self.restart();
    }

    /// Sorts what the ledger has no order for. Where there are more sums than rows, they remain in the ledger's order.
    fn sort_here(&mut self) {
        let Some(order) = self.here else {
            return;
        };
        if self.page.count > self.page.rows.len() {
            (self.unsorted, self.here) = (Some(order.column), None);
            return;
        }
        let rows = std::mem::take(&mut self.page.rows);
        self.page.rows = sorted(rows, order, |row, column| match column {
            "STATE" => SortRank::number(i128::from(self.stopped.contains(&row.name))),
            _ => ranks::sums(row, column),
        });
    }

    /// Takes what the gateway's alerts are about.
    pub(crate) fn stop(&mut self, stopped: BTreeSet<String>) {
        let changed = std::mem::replace(&mut self.stopped, stopped) != self.stopped;
        if changed && self.here.is_some_and(|order| order.column == "STATE") {
            self.sort_here();
        }
    }

    /// Whether a key is stopped by its exposure.
    pub(crate) fn is_stopped(&self, name: &str) -> bool {
        self.by == MarginBy::Key && self.stopped.contains(name)
    }

    fn restart(&mut self) {
        (self.selected, self.loaded) = (0, false);
    }

    /// The current query.
    pub(crate) fn ask(&mut self, now: Timestamp) -> MarginQuery {
        let (from, to) = self.period.range(now);
        let query = MarginQuery {
            by: self.by,
            from,
            to,
            order: self.order,
            reverse: self.reverse,
            limit: ROWS,
        };
        self.asked = Some(query);
        query
    }

    /// Applies an answer; false if it belongs to another query.
    pub(crate) fn take(&mut self, query: MarginQuery, answer: Result<SumsPage, String>) -> bool {
        if self.asked != Some(query) {
            return false;
        }
        self.loaded = true;
        match answer {
            Ok(answer) => {
                (self.page, self.labels, self.error) = (answer.page, answer.labels, None);
                self.sort_here();
            }
            Err(error) => self.error = Some(error),
        }
        self.selected = self.selected.min(self.page.rows.len().saturating_sub(1));
        true
    }

    pub(crate) fn move_by(&mut self, lines: isize) {
        self.selected = self
            .selected
            .saturating_add_signed(lines)
            .min(self.page.rows.len().saturating_sub(1));
    }

    /// The name of the selected row.
    pub(crate) fn selected_name(&self) -> Option<&str> {
        self.page
            .rows
            .get(self.selected)
            .map(|row| row.name.as_str())
    }
}

/// A page of sums with the labels of its keys.
#[derive(Debug, Default)]
pub(crate) struct SumsPage {
    pub(crate) page: Margins,
    pub(crate) labels: HashMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_whole_utc_days() {
        // 2026-03-31 23:59:59 UTC.
        let now = Timestamp::from_millis(1_775_001_599_000);
        let range = |period: Period| {
            let (from, to) = period.range(now);
            let day = |at: Timestamp| at.to_string().chars().take(16).collect::<String>();
            format!("{} {}", day(from), day(to))
        };
        assert_eq!(range(Period::Today), "2026-03-31T00:00 2026-04-01T00:00");
        assert_eq!(range(Period::Week), "2026-03-25T00:00 2026-04-01T00:00");
        assert_eq!(range(Period::Month), "2026-03-01T00:00 2026-04-01T00:00");
        assert_eq!(
            range(Period::LastMonth),
            "2026-02-01T00:00 2026-03-01T00:00"
        );
    }
}
