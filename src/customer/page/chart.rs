//! Spending over time as a drawing and as a table: bars stacked by model. Whole numbers only, up to the pixel.

use std::collections::BTreeMap;

use farebox_ledger::{Amount, Timestamp, Usage, UsageRow};
use maud::{Markup, html};

use super::display;

const HOUR_MS: i64 = 3_600_000;
/// The number of models with their own colour; the others share one.
const SERIES: usize = 6;
/// The fewest bars of a long range.
const FEWEST: i64 = 8;
/// The drawing's units.
const WIDTH: i64 = 720;
const HEIGHT: i64 = 200;

/// The time span of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::customer) enum Range {
    Day,
    Week,
    Month,
}

impl Range {
    pub(super) const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The range that a query names; a month by default.
    pub(in crate::customer) fn asked(name: Option<&str>) -> Self {
        Self::ALL
            .into_iter()
            .find(|range| Some(range.name()) == name)
            .unwrap_or(Self::Month)
    }

    pub(in crate::customer) const fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Day => "24 hours",
            Self::Week => "7 days",
            Self::Month => "30 days",
        }
    }

    /// Hours of one bar, and how many bars.
    const fn bars(self) -> (i64, i64) {
        match self {
            Self::Day => (1, 24),
            Self::Week => (6, 28),
            Self::Month => (24, 30),
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Day => "%H:00",
            Self::Week => "%b %d %H:00",
            Self::Month => "%b %d",
        }
    }

    /// The hour that follows the last bar, which is the one that holds now: a bar is a UTC hour, quarter of a day, or day.
    fn end(self, now: Timestamp) -> i64 {
        let (hours, _) = self.bars();
        (now.hour().div_euclid(hours) + 1) * hours
    }

    /// The first hour shown of a key that is old enough.
    pub(in crate::customer) fn first_hour(self, now: Timestamp) -> i64 {
        let (hours, bars) = self.bars();
        self.end(now) - hours * bars
    }

    /// The first hour shown, and how many bars: a long range of a young key begins with the day of its first use, or with earlier
    /// ones where a chart would have too few bars to be read.
    fn span(self, now: Timestamp, first_use: Option<i64>) -> (i64, i64) {
        let ((hours, bars), first) = (self.bars(), self.first_hour(now));
        let day = first_use.map_or(first, |hour| hour.div_euclid(24) * 24);
        if self == Self::Day || day <= first {
            return (first, bars);
        }
        let shown = ((self.end(now) - day) / hours).max(FEWEST);
        (self.end(now) - shown * hours, shown)
    }
}

/// What one model used and cost in a range.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelShare {
    pub(super) slug: String,
    pub(super) requests: u64,
    pub(super) usage: Usage,
    pub(super) charge: Amount,
}

/// Spending of a range, ready to draw.
#[derive(Debug)]
pub(super) struct Spending {
    range: Range,
    /// In order of falling charge.
    pub(super) shares: Vec<ModelShare>,
    pub(super) total: Amount,
    bars: Vec<Bar>,
}

#[derive(Debug)]
struct Bar {
    label: String,
    total: Amount,
    /// By the model's position among the shares.
    parts: BTreeMap<usize, Amount>,
}

impl Spending {
    /// Sums the rows that lie in a range; `first_use` is the hour of the key's first use, if that was lately.
    pub(super) fn of(
        rows: &[UsageRow],
        range: Range,
        now: Timestamp,
        first_use: Option<i64>,
    ) -> Self {
        let (first, count) = range.span(now, first_use);
        let rows = || rows.iter().filter(move |row| row.hour.hour() >= first);
        let mut shares: BTreeMap<&str, ModelShare> = BTreeMap::new();
        for row in rows() {
            let share = shares.entry(&row.slug).or_default();
            share.requests += row.requests;
            share.usage = share.usage.and(row.usage);
            share.charge = plus(share.charge, row.charge);
        }
        let mut shares: Vec<ModelShare> = shares
            .into_iter()
            .map(|(slug, share)| ModelShare {
                slug: slug.to_owned(),
                ..share
            })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.charge));
        let (hours, _) = range.bars();
        let start = |bar: i64| Timestamp::from_millis((first + bar * hours) * HOUR_MS);
        let empty = |bar| Bar {
            label: display::format(start(bar), range.label()),
            total: Amount::ZERO,
            parts: BTreeMap::new(),
        };
        let mut bars: Vec<Bar> = (0..count).map(empty).collect();
        for row in rows() {
            let at = usize::try_from((row.hour.hour() - first) / hours).unwrap_or(usize::MAX);
            let model = shares
                .iter()
                .position(|share| share.slug == row.slug)
                .unwrap_or(SERIES)
                .min(SERIES);
            if let Some(bar) = bars.get_mut(at) {
                bar.total = plus(bar.total, row.charge);
                let part = bar.parts.entry(model).or_default();
                *part = plus(*part, row.charge);
            }
        }
        let total = shares
            .iter()
            .fold(Amount::ZERO, |sum, share| plus(sum, share.charge));
        Self {
            range,
            shares,
            total,
            bars,
        }
    }

    /// The drawing, its scale and its legend.
    pub(super) fn draw(&self) -> Markup {
        let top = scale(
            self.bars
                .iter()
                .map(|bar| bar.total.picos())
                .max()
                .unwrap_or_default(),
        );
        let summary = format!(
            "Spending of the last {}: {} USD in all",
            self.range.title(),
            self.total
        );
        let label = |at: usize| {
            self.bars
                .get(at)
                .map(|bar| bar.label.as_str())
                .unwrap_or_default()
        };
        html! {
            @if self.total == Amount::ZERO {
                p.empty { "Nothing was charged in the last " (self.range.title()) "." }
            } @else {
                div.chart {
                    div.scale aria-hidden="true" {
                        span { (Amount::from_picos(top)) } span { (Amount::from_picos(top / 2)) } span { "0" }
                    }
                    svg role="img" aria-label=(summary) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
                        @for line in [0, HEIGHT / 2, HEIGHT] { line x1="0" x2=(WIDTH) y1=(line) y2=(line) {} }
                        @for (at, bar) in self.bars.iter().enumerate() { (self.draw_bar(at, bar, top)) }
                    }
                    div.when aria-hidden="true" {
                        span { (label(0)) } span { (label(self.bars.len() / 2)) } span { (label(self.bars.len() - 1)) }
                    }
                }
                ul.legend { @for (at, share) in self.shares.iter().enumerate().take(SERIES + 1) {
                    li { span class=(format!("swatch s{at}")) aria-hidden="true" {} (if at < SERIES { &share.slug } else { "other models" }) }
                } }
            }
        }
    }

    fn draw_bar(&self, at: usize, bar: &Bar, top: i64) -> Markup {
        let count = i64::try_from(self.bars.len()).unwrap_or(1);
        let step = WIDTH / count;
        let x = i64::try_from(at).unwrap_or_default() * WIDTH / count + step / 8;
        let height = |amount: Amount| {
            i64::try_from(i128::from(amount.picos()) * i128::from(HEIGHT) / i128::from(top))
                .unwrap_or_default()
        };
        let mut below = Amount::ZERO;
        let mut parts = Vec::new();
        for (model, amount) in &bar.parts {
            let (low, high) = (height(below), height(plus(below, *amount)));
            // A small amount is drawn as a thin line, never omitted.
            let tall = (high - low).max(i64::from(amount.is_positive()));
            parts.push((format!("s{model}"), HEIGHT - low - tall, tall));
            below = plus(below, *amount);
        }
        html! {
            g {
                title { (bar.label) ": " (bar.total) " USD" }
                rect.hit x=(x) y="0" width=(step - step / 4) height=(HEIGHT) {}
                @for (class, y, tall) in parts { rect class=(class) x=(x) y=(y) width=(step - step / 4) height=(tall) {} }
            }
        }
    }

    /// The same as text.
    pub(super) fn table(&self) -> Markup {
        html! {
            table {
                caption.hidden { "Spending of the last " (self.range.title()) }
                thead { tr { th scope="col" { "From (UTC)" } th.number scope="col" { "USD" } } }
                @let places = display::places(self.bars.iter().map(|bar| bar.total));
                tbody { @for bar in self.bars.iter().rev().filter(|bar| bar.total.is_positive()) {
                    tr { th scope="row" { (bar.label) } td.number { (display::aligned(bar.total, places)) } }
                } }
            }
        }
    }
}

/// Saturates: one key's spending is far below the limit.
fn plus(a: Amount, b: Amount) -> Amount {
    a.checked_add(b).unwrap_or(a)
}

/// The next round number at or above, close enough that the highest bar fills at least two thirds of the drawing.
fn scale(most: i64) -> i64 {
    let mut unit: i64 = 1;
    loop {
        for step in [10, 12, 15, 20, 25, 30, 40, 50, 60, 80] {
            let Some(top) = unit.checked_mul(step) else {
                return i64::MAX;
            };
            if top >= most {
                return top;
            }
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return i64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hour: i64, slug: &str, usd: &str) -> UsageRow {
        UsageRow {
            hour: Timestamp::from_millis(hour * HOUR_MS),
            slug: slug.to_owned(),
            requests: 1,
            usage: Usage {
                input: 10,
                ..Usage::default()
            },
            charge: Amount::from_usd_str(usd).unwrap(),
            ..UsageRow::default()
        }
    }

    #[test]
    fn a_range_ends_now_and_sums_by_model() {
        let now = Timestamp::from_millis(1_000 * 24 * HOUR_MS + 5 * HOUR_MS + 7);
        let hour = now.hour();
        let rows = [
            row(hour - 24, "old", "9.00"),
            row(hour - 23, "a", "0.10"),
            row(hour, "a", "0.20"),
            row(hour, "<b>", "0.50"),
        ];
        let day = Spending::of(&rows, Range::Day, now, None);
        assert_eq!(
            (day.bars.len(), day.total.to_string().as_str()),
            (24, "0.80")
        );
        assert_eq!(
            (day.shares[0].slug.as_str(), day.shares[1].requests),
            ("<b>", 2)
        );
        assert_eq!(
            (
                day.bars[0].total.to_string(),
                day.bars[23].total.to_string()
            ),
            ("0.10".to_owned(), "0.70".to_owned())
        );
        let month = Spending::of(&rows, Range::Month, now, None);
        assert_eq!(
            (
                month.bars[29].total.to_string().as_str(),
                month.bars[28].total.to_string().as_str()
            ),
            ("0.70", "9.10")
        );
        let drawn = month.draw().into_string();
        assert!(
            drawn.contains("&lt;b&gt;") && !drawn.contains("<b>"),
            "{drawn}"
        );
    }

    #[test]
    fn a_young_key_s_chart_begins_with_its_first_day() {
        let midnight = 1_000 * 24;
        let now = Timestamp::from_millis((midnight + 5) * HOUR_MS);
        let bars = |range: Range, first_use: i64| {
            let rows = [row(first_use, "a", "0.10"), row(now.hour(), "a", "0.20")];
            let spending = Spending::of(&rows, range, now, Some(first_use));
            let filled = spending.bars.iter();
            let filled = filled
                .map(|bar| bar.total.is_positive())
                .collect::<Vec<_>>();
            assert_eq!(spending.total.to_string(), "0.30");
            (
                filled.len(),
                filled.iter().position(|filled| *filled),
                filled.iter().rposition(|filled| *filled),
            )
        };
        // Ten days ago, at three o'clock.
        assert_eq!(bars(Range::Month, midnight - 237), (11, Some(0), Some(10)));
        // Yesterday: a week and a day is drawn, most of it before.
        assert_eq!(bars(Range::Month, midnight - 20), (8, Some(6), Some(7)));
        assert_eq!(bars(Range::Week, midnight - 20), (8, Some(3), Some(7)));
        assert_eq!(bars(Range::Day, midnight + 2), (24, Some(20), Some(23)));
        assert_eq!(
            bars(Range::Month, midnight - 29 * 24),
            (30, Some(0), Some(29))
        );
    }

    #[test]
    fn every_chart_ends_today() {
        let midnight = 1_000 * 24;
        for hour in [0, 5, 6, 13, 23] {
            let now = Timestamp::from_millis((midnight + hour) * HOUR_MS + 17);
            let starts = [None, Some(midnight + hour), Some(midnight - 20), Some(0)];
            for (range, first_use) in Range::ALL
                .into_iter()
                .flat_map(|range| starts.map(|start| (range, start)))
            {
                let rows = [row(now.hour(), "a", "0.20")];
                let spending = Spending::of(&rows, range, now, first_use);
                let last = spending.bars.last().unwrap();
                let case = format!("{range:?}, hour {hour}, first use {first_use:?}");
                assert_eq!(last.total.to_string(), "0.20", "{case}");
                let (hours, _) = range.bars();
                let began = Timestamp::from_millis((midnight + hour / hours * hours) * HOUR_MS);
                assert_eq!(last.label, display::format(began, range.label()), "{case}");
                assert!(spending.bars.len() >= 8, "{case}");
            }
        }
    }

    #[test]
    fn the_scale_is_round_and_never_too_small() {
        for (most, top) in [
            (0, 10),
            (11, 12),
            (348_000_000, 400_000_000),
            (1_000, 1_000),
            (1_001, 1_200),
            (210_000_000, 250_000_000),
        ] {
            assert_eq!(scale(most), top);
        }
        assert!(scale(i64::MAX) == i64::MAX);
    }

    #[test]
    fn many_models_share_the_last_colour() {
        let now = Timestamp::from_millis(1_000 * 24 * HOUR_MS);
        let rows: Vec<UsageRow> = (0..20)
            .map(|at| row(now.hour(), &format!("m{at:02}"), "0.01"))
            .collect();
        let drawn = Spending::of(&rows, Range::Week, now, None)
            .draw()
            .into_string();
        assert!(drawn.contains("other models") && !drawn.contains("s7"));
    }
}
