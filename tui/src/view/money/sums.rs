//! What Margin and Exposure draw alike: one line per key, target, UTC day or what else sums are for, and the total at the end.

use farebox_ledger::{Amount, MarginBy, MarginQuery, Timestamp};
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::ConsoleApp;
use crate::app::money::sums::{MarginView, NAME, Period, Sums, by_name};
use crate::format;
use crate::view::chart;
use crate::view::pen::{Pen, above, below, last};

/// From this height on there is room for charts.
const CHARTS_FROM: u16 = 14;

/// Draws one of them.
pub(super) fn draw(app: &ConsoleApp, sums: &Sums, pen: &mut Pen<'_>, inner: Rect) {
    // Charts are about all keys, the warning is about the selected row: it stands right above the list.
    let charted = charts(app, pen, inner);
    let rest = below(inner, charted);
    let warned = warning(app, sums, pen, rest);
    let body = below(rest, warned);
    if sums.page.rows.is_empty() {
        return nothing(sums, pen, body);
    }
    let columns = sums.columns;
    pen.list(above(body, 2), columns, &sums.lines(), &sums.list);
    pen.total(last(body, 2), columns, sums.total());
    pen.text(last(body, 1), 2, 0, &about(sums), pen.theme.faint());
}

pub(super) fn title(sums: &Sums) -> String {
    let (what, by) = (
        if sums.view == MarginView::Exposure {
            "Exposure"
        } else {
            "Margin"
        },
        by_name(sums.by),
    );
    let order = sums.list.order;
    let column = match order.column {
        NAME => by.to_uppercase(),
        column => column.to_owned(),
    };
    let arrow = order.arrow();
    let last = |query: &MarginQuery| match sums.period {
        Period::Dates(..) => {
            let last = Timestamp::from_millis(query.to.millis() - 1);
            format!(" to {}", format::date(last))
        }
        Period::Today | Period::Week | Period::Month | Period::LastMonth => String::new(),
    };
    let from = sums
        .asked
        .map(|query| format!(" from {}{}", format::date(query.from), last(&query)))
        .unwrap_or_default();
    format!(
        "{what} by {by} · {}{from} UTC · {column} {arrow}",
        sums.period.name()
    )
}

/// The charts of all keys, if they are wanted and fit; returns the number of lines used.
fn charts(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) -> u16 {
    if !app.money.charts || area.height < CHARTS_FROM {
        return 0;
    }
    let place = Rect {
        height: area.height / 2,
        ..area
    };
    chart::grid(pen, place, app.now, &app.money.spend.flow(app.now, ""));
    place.height
}

/// The alert about the selected row, if there is one; returns the number of lines used.
fn warning(app: &ConsoleApp, sums: &Sums, pen: &mut Pen<'_>, area: Rect) -> u16 {
    let selected = sums.selected_name().filter(|_| area.height > 9);
    let about = |name| app.alerts().iter().find(|alert| alert.is_about(name));
    let Some(alert) = selected.and_then(about) else {
        return 0;
    };
    pen.paragraph(area, 0, &format!("! {}", alert.text), pen.theme.warn()) + 1
}

/// The full name of the selected row, which its column may have cut; for days, the range of the screen.
fn about(sums: &Sums) -> String {
    match (sums.by, sums.lines().get(sums.list.selected), sums.view) {
        (by, Some(line), _) if by != MarginBy::Day && !line.row.name.is_empty() => {
            let row = line.row;
            let own = if row.own == Amount::ZERO {
                String::new()
            } else {
                format!(" · {} for our own requests", format::short(row.own, 10))
            };
            format!(
                "{} · {}{own}",
                line.name(),
                format::many(row.requests, "request")
            )
        }
        (_, _, MarginView::Exposure) => {
            "what providers may bill beyond the charges, at the catalog's prices".to_owned()
        }
        (_, _, MarginView::Margin) => {
            "charged less cost, where answers told it or a target has a `cost`; its exposure is part of it".to_owned()
        }
    }
}

fn nothing(sums: &Sums, pen: &mut Pen<'_>, area: Rect) {
    let (text, style) = match (&sums.error, sums.loaded) {
        (Some(error), _) => (error.as_str(), pen.theme.bad()),
        (None, false) => ("adding up …", pen.theme.faint()),
        (None, true) => (
            "no request ended in this period; p, or `:period 2026-10-01 2026-10-31`, chooses another",
            Style::new(),
        ),
    };
    pen.paragraph(area, 1, text, style);
}
