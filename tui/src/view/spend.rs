//! The Spend screen: charts of the selected slug, or of all together, above the list of slugs.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::chart;
use super::pen::Pen;
use crate::app::ConsoleApp;
use crate::app::spend::{SPEND, SpendLine};

/// Lines that the list keeps beside charts, and the least height for both.
const LIST: u16 = 8;
const BOTH: u16 = 14;

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let spend = &app.spend;
    let lines = spend.lines(app.now);
    let selected = lines.get(spend.list.selected);
    let slug = selected.map_or("", |line| line.slug.as_str());
    let shown = if slug.is_empty() { "all slugs" } else { slug };
    let title = format!("Spend · {shown}{}", spend.list.order.in_title());
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
    let lines: Vec<&SpendLine> = lines.iter().collect();
    pen.list(list, SPEND, &lines, &spend.list);
}
