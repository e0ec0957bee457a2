//! State of the Exposure and Margin screens: sums of the ledger by key, target, class or UTC day.
//!
//! The ledger sorts and adds up; this state only has the query and its answer. An answer to an older query is dropped.

use std::collections::HashMap;

use farebox_ledger::{MarginBy, MarginOrder, MarginQuery, Margins, Timestamp};

const DAY: i64 = 86_400_000;
/// More rows than anybody scrolls through.
const ROWS: usize = 500;

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
    const ALL: [Self; 4] = [Self::Today, Self::Week, Self::Month, Self::LastMonth];

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
    pub(crate) asked: Option<MarginQuery>,
    pub(crate) page: Margins,
    /// Labels of the keys among the rows, by id.
    pub(crate) labels: HashMap<String, String>,
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
            asked: None,
            page: Margins::default(),
            labels: HashMap::new(),
            selected: 0,
            loaded: false,
            error: None,
        };
        sums.usual_order();
        sums
    }

    /// The orders of this screen; the first one is the default.
    const fn orders(&self) -> &'static [MarginOrder] {
        match self.view {
            MarginView::Exposure => &[
                MarginOrder::Exposure,
                MarginOrder::Charge,
                MarginOrder::Loss,
                MarginOrder::Name,
            ],
            MarginView::Margin => &[
                MarginOrder::Margin,
                MarginOrder::Charge,
                MarginOrder::Cost,
                MarginOrder::Exposure,
                MarginOrder::Loss,
                MarginOrder::Name,
            ],
        }
    }

    /// Days newest first, margins smallest first, exposures largest first.
    fn usual_order(&mut self) {
        (self.order, self.reverse) = match (self.by, self.view) {
            (MarginBy::Day, _) => (MarginOrder::Name, true),
            (_, MarginView::Exposure) => (MarginOrder::Exposure, false),
            (_, MarginView::Margin) => (MarginOrder::Margin, true),
        };
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
        self.period = self.period.next();
        self.restart();
    }

    /// The next column, or the reverse order.
    pub(crate) fn sort(&mut self, next: bool) {
        if next {
            let orders = self.orders();
            let at = orders
                .iter()
                .position(|order| *order == self.order)
                .map_or(0, |at| (at + 1) % orders.len());
            (self.order, self.reverse) = (orders.get(at).copied().unwrap_or_default(), false);
        } else {
            self.reverse = !self.reverse;
        }
        self.restart();
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
            Ok(answer) => (self.page, self.labels, self.error) = (answer.page, answer.labels, None),
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
