//! The Customers screen: one line per customer, with its keys below it when they are unfolded.

use ratatui::layout::Rect;

use super::lists::NoRows;
use super::pen::{Pen, above, last};
use crate::app::ConsoleApp;
use crate::app::customers::{CUSTOMERS, MOST};
use crate::format;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let screen = &app.customers;
    let inner = pen.frame(area, &title(app));
    if screen.rows.is_empty() {
        return empty(app, pen, inner);
    }
    pen.list(above(inner, 1), CUSTOMERS, &screen.lines(), &screen.list);
    let bottom = last(inner, 1);
    let order = match screen.ordered_at {
        Some(_) if screen.is_sorting() => "sorting …".to_owned(),
        Some(at) => format!("order of {} · r sorts again", format::time(at)),
        None => String::new(),
    };
    let more = match (screen.ended, screen.rows.len() >= MOST) {
        (true, _) => "space shows their keys, enter opens",
        (false, true) => "there are more: filter them",
        (false, false) => "pgdn for more",
    };
    pen.text(bottom, 2, 0, more, pen.theme.faint());
    if bottom.width > 70 {
        pen.end(bottom, 0, &order, pen.theme.faint());
    }
}

fn title(app: &ConsoleApp) -> String {
    let screen = &app.customers;
    let filter = screen.list.filter_in_title();
    let more = if screen.ended || !screen.loaded {
        ""
    } else {
        "+"
    };
    let count = format::count(screen.rows.len() as u64);
    format!(
        "Customers{filter} · {count}{more}{}",
        screen.list.order.in_title()
    )
}

fn empty(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let screen = &app.customers;
    let unmatched = screen.filter_error.as_deref();
    let unmatched = unmatched.unwrap_or("no customer matches this filter");
    let waits = !screen.loaded || screen.loading;
    let none = NoRows {
        error: screen.error.as_deref(),
        waits: waits.then_some("reading the ledger …"),
        unmatched: (!screen.list.filter.is_empty()).then_some(unmatched),
        none: "no customers yet",
        needs: "this console is read-only: start one without --read-only to create some",
    };
    none.draw(app, pen, area);
}
