//! Charts of money and requests over hours and days.

use farebox_ledger::{Amount, Timestamp};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::Span;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget};

use super::pen::{Pen, below};
use crate::app::spend::{FlowSum, SpendFlow};
use crate::format;

/// Charts stand beside each other from this width on, and below each other from this height on.
const TWO_WIDE: u16 = 70;
const TWO_HIGH: u16 = 10;
/// A lower place has no charts.
pub(super) const LEAST: u16 = 5;

/// One line of a chart.
struct ChartLine {
    values: Vec<u64>,
    style: Style,
    marker: Marker,
}

/// A chart with its title and what its axes say.
struct ChartPlace<'a> {
    title: &'a str,
    /// At the top of the vertical axis.
    most: String,
    /// At both ends of the horizontal axis.
    ends: [String; 2],
    lines: Vec<ChartLine>,
}

/// Money by hour, requests by hour, money by day, requests by day: as many of them as the place holds.
pub(super) fn grid(pen: &mut Pen<'_>, area: Rect, now: Timestamp, flow: &SpendFlow) {
    let (wide, high) = (area.width >= TWO_WIDE, area.height >= TWO_HIGH);
    let charts = match (wide, high) {
        (true, true) => vec![
            money(pen, now, flow, true),
            requests(pen, now, flow, true),
            money(pen, now, flow, false),
            requests(pen, now, flow, false),
        ],
        (true, false) => vec![money(pen, now, flow, true), money(pen, now, flow, false)],
        (false, true) => vec![money(pen, now, flow, true), requests(pen, now, flow, true)],
        (false, false) => vec![money(pen, now, flow, true)],
    };
    let columns = 1 + u16::from(wide);
    let rows = 1 + u16::from(high);
    let width = area.width.saturating_sub(2 * (columns - 1)) / columns;
    let height = area.height / rows;
    for (index, chart) in (0..).zip(&charts) {
        let place = Rect {
            x: area.x + (index % columns) * (width + 2),
            y: area.y + (index / columns) * height,
            width,
            height,
        };
        draw(pen, place, chart);
    }
}

fn money<'a>(pen: &Pen<'_>, now: Timestamp, flow: &SpendFlow, by_hour: bool) -> ChartPlace<'a> {
    let sums = of(flow, by_hour);
    let values = |value: fn(&FlowSum) -> Amount| -> Vec<u64> {
        let value = |sum| value(sum).picos().max(0).unsigned_abs();
        sums.iter().map(value).collect()
    };
    let (charged, cost) = (values(|sum| sum.charge), values(|sum| sum.cost));
    let most = charged.iter().chain(&cost).copied().max().unwrap_or(0);
    let most = Amount::from_picos(i64::try_from(most).unwrap_or(i64::MAX));
    let priced = cost.iter().any(|cost| *cost > 0);
    let mut lines = Vec::new();
    if priced {
        lines.push(ChartLine {
            values: cost,
            style: pen.theme.warn(),
            marker: Marker::Dot,
        });
    }
    lines.push(ChartLine {
        values: charged,
        style: pen.theme.good(),
        marker: Marker::Braille,
    });
    ChartPlace {
        title: match (by_hour, priced) {
            (true, false) => "charged per hour",
            (true, true) => "charged per hour (• its cost)",
            (false, false) => "charged per day",
            (false, true) => "charged per day (• its cost)",
        },
        most: format::within(most, 8),
        ends: ends(now, by_hour),
        lines,
    }
}

fn requests<'a>(pen: &Pen<'_>, now: Timestamp, flow: &SpendFlow, by_hour: bool) -> ChartPlace<'a> {
    let values: Vec<u64> = of(flow, by_hour).iter().map(|sum| sum.requests).collect();
    ChartPlace {
        title: if by_hour {
            "requests per hour"
        } else {
            "requests per day"
        },
        most: format::tokens(values.iter().copied().max().unwrap_or(0)),
        ends: ends(now, by_hour),
        lines: vec![ChartLine {
            values,
            style: pen.theme.key(),
            marker: Marker::Braille,
        }],
    }
}

fn of(flow: &SpendFlow, by_hour: bool) -> &[FlowSum] {
    if by_hour { &flow.hours } else { &flow.days }
}

/// When the first sum begins, and now.
fn ends(now: Timestamp, by_hour: bool) -> [String; 2] {
    let hours = if by_hour { 47 } else { 29 * 24 };
    let first = Timestamp::from_millis(now.millis().saturating_sub(hours * 3_600_000));
    if by_hour {
        let hour = |at: Timestamp| at.to_string().chars().skip(5).take(8).collect::<String>();
        return [hour(first).replace('T', " ") + "h", "now".to_owned()];
    }
    [format::date(first), "today".to_owned()]
}

fn draw(pen: &mut Pen<'_>, area: Rect, chart: &ChartPlace<'_>) {
    if area.height < LEAST {
        return;
    }
    pen.text(area, 0, 0, chart.title, pen.theme.faint());
    let most = (chart.lines.iter())
        .flat_map(|line| &line.values)
        .copied()
        .max()
        .unwrap_or(0);
    let points: Vec<Vec<(f64, f64)>> = (chart.lines.iter())
        .map(|line| {
            let place = (0_u32..).zip(&line.values);
            place
                .map(|(x, value)| (f64::from(x), share(*value, most)))
                .collect()
        })
        .collect();
    let sets = (chart.lines.iter().zip(&points))
        .map(|(line, points)| {
            Dataset::default()
                .marker(line.marker)
                .graph_type(GraphType::Line)
                .style(line.style)
                .data(points)
        })
        .collect();
    let last = points.first().map_or(1, |points| points.len()).max(2) - 1;
    let faint = pen.theme.faint();
    let label = |text: &str| Span::styled(text.to_owned(), faint);
    let x = Axis::default()
        .bounds([0.0, f64::from(u32::try_from(last).unwrap_or(u32::MAX))])
        .labels(chart.ends.iter().map(|end| label(end)))
        .style(faint);
    let y = Axis::default()
        .bounds([0.0, f64::from(SHARES)])
        .labels([label("0"), label(&chart.most)])
        .style(faint);
    let chart = Chart::new(sets).x_axis(x).y_axis(y).legend_position(None);
    chart.render(below(area, 1), pen.buf);
}

/// Steps of the vertical axis: more than any terminal has dots.
const SHARES: u32 = 10_000;

/// A value as a share of the largest, in [`SHARES`].
fn share(value: u64, most: u64) -> f64 {
    let share = u128::from(value) * u128::from(SHARES) / u128::from(most.max(1));
    f64::from(u32::try_from(share).unwrap_or(SHARES))
}
