//! What Margin and Exposure have in common: sums of the ledger by key, target, class, UTC day, customer, slug, provider or account.
//!
//! The ledger sorts and adds up; this state only has the query and its answer. An answer to an older query is dropped.

use std::collections::{BTreeSet, HashMap};

use farebox_ledger::{Amount, MarginBy, MarginQuery, MarginRow, Margins, Timestamp};
use farebox_selling::dates;

use crate::app::cell::{ListCell, faint, plain, share, short};
use crate::app::list::{ListColumn, ListRow, first_order, in_order, sorts_here, sum_order};
use crate::app::order::{ListOrder, ListState};
use crate::app::tone::Tone;
use crate::format;

const DAY: i64 = 86_400_000;
/// More rows than anybody scrolls through.
pub(crate) const ROWS: usize = 500;

/// Which of the two.
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

/// The column of what each sum is for.
pub(crate) const NAME: &str = "NAME";

/// A sum of one of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumLine<'a> {
    pub(crate) row: &'a MarginRow,
    pub(super) sums: &'a Sums,
    /// Of all rows, also those that are not listed.
    is_total: bool,
}

impl ListRow for SumLine<'static> {
    type At<'a> = SumLine<'a>;
}

impl SumLine<'_> {
    /// What it is for, with the label of a key.
    pub(crate) fn name(self) -> String {
        let name = &self.row.name;
        match self.sums.labels.get(name) {
            _ if self.is_total => format!("all {}", format::count(self.sums.page.count as u64)),
            _ if name.is_empty() => "no target answered".to_owned(),
            Some(KeyLabel { label, customer }) if customer.is_empty() => {
                format!("{name} {label}")
            }
            Some(KeyLabel { label, customer }) => format!("{name} {label} of {customer}"),
            None => name.clone(),
        }
    }

    pub(super) fn name_cell(self) -> ListCell {
        let is_id = matches!(self.sums.by, MarginBy::Key | MarginBy::Customer);
        plain(self.name()).toned(Tone::Id.when(is_id))
    }

    /// Whether it is a key that its exposure stops.
    pub(super) fn is_stopped(self) -> bool {
        self.sums.by == MarginBy::Key && self.sums.stopped.contains(&self.row.name)
    }
}

/// An amount, faint if there is none.
pub(super) fn sum(amount: Amount, cells: usize) -> ListCell {
    short(amount, cells).toned(Tone::Faint.when(amount == Amount::ZERO))
}

/// The share of a charge in percent.
pub(super) fn part(part: Amount, whole: Amount) -> ListCell {
    let sign = if part.is_negative() { "-" } else { "" };
    let percent = part
        .picos()
        .unsigned_abs()
        .saturating_mul(100)
        .checked_div(whole.picos().unsigned_abs());
    let shown = match percent {
        None => "—".to_owned(),
        Some(1_000..) => format!("{sign}>999%"),
        Some(percent) => format!("{sign}{percent}%"),
    };
    faint(shown).by(share(part.picos(), whole.picos()))
}

/// What each sum is for, as displayed.
pub(crate) const fn by_name(by: MarginBy) -> &'static str {
    match by {
        MarginBy::Key => "key",
        MarginBy::Customer => "customer",
        MarginBy::Slug => "slug",
        MarginBy::Provider => "provider",
        MarginBy::Account => "account",
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
    /// From this midnight until before that one.
    Dates(Timestamp, Timestamp),
}

impl Period {
    pub(crate) const ALL: [Self; 4] = [Self::Today, Self::Week, Self::Month, Self::LastMonth];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Week => "7 days",
            Self::Month => "this month",
            Self::LastMonth => "last month",
            Self::Dates(..) => "dates",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL
            .iter()
            .position(|known| *known == self)
            .unwrap_or_default();
        Self::ALL.get(at + 1).copied().unwrap_or(Self::Today)
    }

    /// Two dates, or one, as they are typed: the last one is in it.
    pub(crate) fn typed(text: &str) -> Option<Self> {
        let (first, last) = text.split_once(' ').unwrap_or((text, text));
        if [first, last].iter().any(|day| day.len() != 10) {
            return None;
        }
        let (from, to) = (dates::instant(first).ok()?, dates::expiry(last).ok()?);
        (from < to).then_some(Self::Dates(from, to))
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
            Self::Dates(from, to) => return (from, to),
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

/// The list of one of the two.
type SumColumns = &'static [ListColumn<SumLine<'static>>];

/// One of the two tabs.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) view: MarginView,
    pub(crate) columns: SumColumns,
    pub(crate) by: MarginBy,
    pub(crate) period: Period,
    pub(crate) list: ListState,
    /// The last order that was the ledger's: what is sorted here comes in it.
    in_ledger: ListOrder,
    pub(crate) asked: Option<MarginQuery>,
    pub(crate) page: Margins,
    /// What the keys among the rows are called, by id.
    labels: HashMap<String, KeyLabel>,
    /// The keys that an alert of the gateway is about, by id: their exposure stops them.
    stopped: BTreeSet<String>,
    pub(crate) loaded: bool,
    pub(crate) error: Option<String>,
}

impl Sums {
    pub(super) fn new(view: MarginView, columns: SumColumns) -> Self {
        let mut sums = Self {
            view,
            columns,
            by: MarginBy::Key,
            period: Period::default(),
            list: ListState::default(),
            in_ledger: ListOrder::default(),
            asked: None,
            page: Margins::default(),
            labels: HashMap::new(),
            stopped: BTreeSet::new(),
            loaded: false,
            error: None,
        };
        sums.usual_order();
        sums
    }

    /// Days newest first, margins smallest first, exposures largest first.
    fn usual_order(&mut self) {
        self.in_ledger = match (self.by, self.view) {
            (MarginBy::Day, _) => ListOrder {
                column: NAME,
                descending: true,
            },
            (
                MarginBy::Key
                | MarginBy::Customer
                | MarginBy::Slug
                | MarginBy::Target
                | MarginBy::Provider
                | MarginBy::Account
                | MarginBy::Class,
                view,
            ) => ListOrder {
                descending: view == MarginView::Exposure,
                ..first_order(self.columns)
            },
        };
        self.list.order = self.in_ledger;
    }

    /// Adds up by the next of what sums are for.
    pub(crate) fn next_by(&mut self) {
        self.by = match self.by {
            MarginBy::Key => MarginBy::Target,
            MarginBy::Target => MarginBy::Class,
            MarginBy::Class => MarginBy::Day,
            MarginBy::Day => MarginBy::Customer,
            MarginBy::Customer => MarginBy::Slug,
            MarginBy::Slug => MarginBy::Provider,
            MarginBy::Provider => MarginBy::Account,
            MarginBy::Account => MarginBy::Key,
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

    /// Goes over to another order, which is sorted here if the ledger has none for it.
    pub(crate) fn reorder(&mut self) {
        if sum_order(self.columns, self.list.order).is_some() {
            self.in_ledger = self.list.order;
        }
        self.restart();
    }

    /// Sorts what the ledger has no order for. Where there are more sums than rows, they remain in the ledger's order.
    fn sort_here(&mut self) {
        let (columns, all_here) = (self.columns, self.page.count <= self.page.rows.len());
        if !sorts_here(columns, &mut self.list, all_here, self.in_ledger) {
            return;
        }
        let rows = std::mem::take(&mut self.page.rows);
        self.page.rows = in_order(columns, rows, self.list.order, |column, row| {
            column.rank(self.line(row, false), Timestamp::default())
        });
    }

    /// The lines of the list.
    pub(crate) fn lines(&self) -> Vec<SumLine<'_>> {
        self.page
            .rows
            .iter()
            .map(|row| self.line(row, false))
            .collect()
    }

    /// Its last line.
    pub(crate) const fn total(&self) -> SumLine<'_> {
        self.line(&self.page.total, true)
    }

    const fn line<'a>(&'a self, row: &'a MarginRow, is_total: bool) -> SumLine<'a> {
        SumLine {
            row,
            sums: self,
            is_total,
        }
    }

    /// Takes what the gateway's alerts are about.
    pub(crate) fn stop(&mut self, stopped: BTreeSet<String>) {
        let changed = std::mem::replace(&mut self.stopped, stopped) != self.stopped;
        if changed && self.loaded {
            self.sort_here();
        }
    }

    fn restart(&mut self) {
        (self.list.selected, self.loaded) = (0, false);
    }

    /// The current query.
    pub(crate) fn ask(&mut self, now: Timestamp) -> MarginQuery {
        let (from, to) = self.period.range(now);
        let (order, reverse) = sum_order(self.columns, self.in_ledger).unwrap_or_default();
        let query = MarginQuery {
            by: self.by,
            from,
            to,
            order,
            reverse,
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
        self.list.stay_in(self.page.rows.len());
        true
    }

    /// The name of the selected row.
    pub(crate) fn selected_name(&self) -> Option<&str> {
        self.page
            .rows
            .get(self.list.selected)
            .map(|row| row.name.as_str())
    }
}

/// What a key is called.
#[derive(Debug)]
pub(crate) struct KeyLabel {
    pub(crate) label: String,
    /// Its customer; empty if that is the key.
    pub(crate) customer: String,
}

/// A page of sums with the labels of its keys.
#[derive(Debug, Default)]
pub(crate) struct SumsPage {
    pub(crate) page: Margins,
    pub(crate) labels: HashMap<String, KeyLabel>,
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
        let typed = |text| Period::typed(text).map(range);
        let both = Some("2026-01-30T00:00 2026-02-03T00:00".to_owned());
        assert_eq!(typed("2026-01-30 2026-02-02"), both);
        let one = Some("2026-02-02T00:00 2026-02-03T00:00".to_owned());
        assert_eq!(typed("2026-02-02"), one);
        for wrong in ["last", "2026-02-02 2026-02-01", "2026-02-30", "2026-02"] {
            assert_eq!(typed(wrong), None, "{wrong}");
        }
    }
}
