//! Charts of money and requests over hours and days.

use std::ops::Range;

use farebox_ledger::{Amount, Timestamp};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Pen, last};
use crate::app::money::spend::{FlowSum, SpendFlow};
use crate::format;
use crate::sanitize::width;

/// Charts stand beside each other from this width on, and below each other from this height on.
const TWO_WIDE: u16 = 70;
const TWO_HIGH: u16 = 10;
/// A lower place has no charts.
pub(super) const LEAST: u16 = 5;

/// A chart with its title and what its axes say.
struct ChartPlace<'a> {
    title: &'a str,
    /// At the top of the vertical axis.
    most: String,
    /// At both ends of the horizontal axis.
    ends: [String; 2],
    bars: Vec<u64>,
    style: Style,
    /// How high each bar is marked; empty without marks.
    marks: Vec<u64>,
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
    ChartPlace {
        title: match (by_hour, priced) {
            (true, false) => "charged per hour",
            (true, true) => "charged per hour (• its cost)",
            (false, false) => "charged per day",
            (false, true) => "charged per day (• its cost)",
        },
        most: format::within(most, 8),
        ends: ends(now, by_hour),
        bars: charged,
        style: pen.theme.good(),
        marks: if priced { cost } else { Vec::new() },
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
        bars: values,
        style: pen.theme.key(),
        marks: Vec::new(),
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
    let faint = pen.theme.faint();
    pen.text(area, 0, 0, chart.title, faint);
    let axis = u16::try_from(width(&chart.most)).unwrap_or_default() + 1;
    pen.text(area, 0, 1, &chart.most, faint);
    pen.text(area, axis.saturating_sub(2), area.height - 2, "0", faint);
    let plot = Rect {
        x: area.x + axis.min(area.width),
        y: area.y + 1,
        width: area.width.saturating_sub(axis),
        height: area.height - 2,
    };
    let most = chart.bars.iter().chain(&chart.marks).copied().max();
    let most = most.unwrap_or_default().max(1);
    let columns = columns(chart.bars.len(), plot.width);
    for (x, values) in &columns {
        let highest = |list: &[u64]| {
            let here = list.get(values.clone()).unwrap_or_default();
            here.iter().copied().max().unwrap_or_default()
        };
        let high = eighths(highest(&chart.bars), most, plot.height);
        for (step, y) in (0..plot.height).rev().enumerate() {
            let part = high.saturating_sub(8 * step).min(8);
            if let Some(bar) = BARS.get(part).filter(|_| part > 0) {
                pen.text(plot, *x, y, bar, chart.style);
            }
        }
        let mark = eighths(highest(&chart.marks), most, plot.height);
        if mark > 0 {
            let below = u16::try_from((mark - 1) / 8).unwrap_or_default();
            let y = plot.height.saturating_sub(below + 1);
            pen.text(plot, *x, y, "•", pen.theme.warn());
        }
    }
    let below = last(area, 1);
    let used = columns.last().map_or(0, |(x, _)| axis + x + 1);
    let [first, now] = &chart.ends;
    pen.text(below, axis, 0, first, faint);
    let now_cells = u16::try_from(width(now)).unwrap_or_default();
    pen.text(below, used.saturating_sub(now_cells), 0, now, faint);
}

/// A cell that is filled by so many eighths.
const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The height of a bar; what is not nothing is seen.
fn eighths(value: u64, most: u64, height: u16) -> usize {
    let all = u128::from(height) * 8;
    let high = (u128::from(value) * all).div_ceil(u128::from(most));
    usize::try_from(high).unwrap_or_default()
}

/// The values that each cell of a width shows: bars as wide as fit, with a gap from three cells on, or several values in one cell.
fn columns(values: usize, width: u16) -> Vec<(u16, Range<usize>)> {
    let cells = usize::from(width);
    let (wide, shown) = (cells / values.max(1), cells.min(values));
    let place = |x: usize| match wide {
        0 => x * values / shown.max(1)..(x + 1) * values / shown.max(1),
        _ => x / wide..x / wide + 1,
    };
    let is_gap = |x: &usize| wide > 2 && x % wide == wide - 1;
    let used = if wide == 0 { shown } else { wide * values };
    let bars = (0..used).filter(|x| !is_gap(x));
    let cell = |x: usize| u16::try_from(x).map(|cell| (cell, place(x))).ok();
    bars.filter_map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bar_at_every_width() {
        for (values, width, bars, last) in [
            (48, 60, 48, 47),
            (30, 60, 60, 59),
            (30, 100, 60, 88),
            (48, 20, 20, 19),
            (0, 20, 0, 0),
            (48, 0, 0, 0),
        ] {
            let columns = columns(values, width);
            assert_eq!(columns.len(), bars, "{values} in {width}");
            assert_eq!(columns.last().map_or(0, |(x, _)| *x), last);
            let mut next = 0;
            for (_, range) in columns {
                assert!(range.start <= next && range.end > range.start);
                next = range.end;
            }
            assert_eq!(next, if bars == 0 { 0 } else { values });
        }
        assert_eq!(
            [0, 1, 50, 100].map(|value| eighths(value, 100, 4)),
            [0, 1, 16, 32]
        );
    }
}
