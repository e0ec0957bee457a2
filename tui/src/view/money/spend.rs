//! The tab of charges: charts of the selected slug, or of all together, above the list of slugs.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::ConsoleApp;
use crate::app::money::spend::{SPEND, SpendLine};
use crate::view::chart;
use crate::view::pen::Pen;

/// Lines that the list keeps beside charts, and the least height for both.
const LIST: u16 = 8;
const BOTH: u16 = 14;

/// The slug that is selected; empty for all.
fn selected(app: &ConsoleApp) -> String {
    let spend = &app.money.spend;
    let mut lines = spend.lines(app.now);
    match lines.get_mut(spend.list.selected) {
        Some(line) => std::mem::take(&mut line.slug),
        None => String::new(),
    }
}

pub(super) fn title(app: &ConsoleApp) -> String {
    let slug = match selected(app) {
        all if all.is_empty() => "all slugs".to_owned(),
        slug => slug,
    };
    let order = app.money.spend.list.order.in_title();
    format!("Spend · {slug}{order}")
}

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, inner: Rect) {
    let spend = &app.money.spend;
    let lines = spend.lines(app.now);
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
        chart::grid(pen, charts, app.now, &spend.flow(app.now, &selected(app)));
        list = Rect {
            y: charts.bottom(),
            height: needs,
            ..inner
        };
    }
    let lines: Vec<&SpendLine> = lines.iter().collect();
    pen.list(list, SPEND, &lines, &spend.list);
}
