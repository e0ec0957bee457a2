//! The Spend screen: charts of the selected slug, or of all together, above the list of slugs.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::chart;
use super::pen::{Cell, Column, Pen, left, right};
use crate::app::ConsoleApp;
use crate::app::keys::window;
use crate::app::spend::SpendLine;
use crate::format;

const COLUMNS: &[Column] = &[
    left("SLUG", 0, 0),
    right("REQS 24 h", 10, 2),
    right("24 h", 10, 0),
    right("7 d", 10, 3),
    right("30 d", 10, 0),
    right("COST 30 d", 10, 4),
    right("SHARE", 6, 1),
];
/// Lines that the list keeps beside charts, and the least height for both.
const LIST: u16 = 8;
const BOTH: u16 = 14;

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let spend = &app.spend;
    let lines = spend.lines(app.now);
    let selected = lines.get(spend.selected);
    let slug = selected.map_or("", |line| line.slug.as_str());
    let shown = if slug.is_empty() { "all slugs" } else { slug };
    let title = format!("Spend · {shown}{}", spend.order.in_title());
    let inner = pen.frame(area, &title);
    if let Some(error) = &spend.error {
        pen.paragraph(inner, 1, error, pen.theme.bad());
        return;
    }
    if !spend.loaded {
        pen.text(inner, 0, 1, "adding up …", pen.theme.faint());
        return;
    }
    if spend.rows.is_empty() {
        let text = "no request has ended in the last 30 days";
        pen.text(inner, 0, 1, text, Style::new());
        return;
    }
    let mut list = inner;
    if inner.height >= BOTH {
        let needs = u16::try_from(lines.len() + 1).unwrap_or(u16::MAX);
        let needs = needs.min(LIST.max(inner.height / 3));
        let charts = Rect {
            height: inner.height - needs,
            ..inner
        };
        chart::grid(pen, charts, app.now, &spend.flow(app.now, slug));
        list = Rect {
            y: charts.bottom(),
            height: needs,
            ..inner
        };
    }
    rows(app, pen, list, &lines);
}

fn rows(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, lines: &[SpendLine]) {
    let spend = &app.spend;
    let placed = pen.heads(area, 0, COLUMNS, spend.order);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let range = window(spend.selected, lines.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    let all = lines.first().map_or(0, |all| all.month.picos());
    for (y, index) in range.enumerate() {
        let Some(line) = lines.get(index) else {
            continue;
        };
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        let cells = cells(pen, line, all);
        pen.line(list, y, COLUMNS, &placed, &cells, index == spend.selected);
    }
}

fn cells(pen: &Pen<'_>, line: &SpendLine, all: i64) -> [Cell; 7] {
    let theme = pen.theme;
    let name = match line.slug.as_str() {
        "" => "all".to_owned(),
        slug => slug.to_owned(),
    };
    let micros = |picos: i64| picos.max(0).unsigned_abs() / 1_000_000;
    let cost = match line.cost.is_positive() {
        true => format::short(line.cost, 10),
        false => "—".to_owned(),
    };
    [
        (name, theme.strong()),
        (format::count(line.requests), Style::new()),
        (format::short(line.day, 10), Style::new()),
        (format::short(line.week, 10), Style::new()),
        (format::short(line.month, 10), theme.strong()),
        (cost, theme.faint()),
        (
            format::percent(micros(line.month.picos()), micros(all)),
            theme.faint(),
        ),
    ]
}
