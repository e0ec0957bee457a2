//! The tab of what waits for a person: a line for each, and of the selected one why it waits and what to do.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::ConsoleApp;
use crate::app::money::waiting::WAITING;
use crate::format;
use crate::view::pen::{Pen, above, last};

/// Lines below the list, and the least height for both.
const TEXT: u16 = 4;
const BOTH: u16 = 8;

pub(super) fn title(app: &ConsoleApp) -> String {
    let waiting = &app.money.waiting;
    let count = waiting.lines(app.now).len();
    let order = waiting.list.order.in_title();
    format!("Waiting · {}{order}", format::many(count as u64, "thing"))
}

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, inner: Rect) {
    let waiting = &app.money.waiting;
    let lines = waiting.lines(app.now);
    let (text, style) = match (&waiting.error, waiting.loaded) {
        (Some(error), _) => (error.as_str(), pen.theme.bad()),
        (None, false) => ("looking …", pen.theme.faint()),
        (None, true) => ("nothing waits for you", Style::new()),
    };
    if lines.is_empty() || waiting.error.is_some() {
        pen.paragraph(inner, 1, text, style);
        return;
    }
    let told = if inner.height >= BOTH { TEXT } else { 0 };
    pen.list(above(inner, told), WAITING, &lines, &waiting.list);
    if let Some(thing) = waiting.selected(app.now).filter(|_| told > 0) {
        let area = last(inner, told);
        let used = pen.paragraph(area, 0, &thing.why, pen.theme.faint());
        pen.paragraph(area, used, &thing.next, Style::new());
    }
}
