//! The Holds and Audit screens: plain lists of the ledger's own rows.

use farebox_ledger::OpenHold;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Theme;
use super::pen::{Column, Pen, left, right};
use crate::app::keys::window;
use crate::app::live::GatewayLink;
use crate::app::{ConsoleApp, RowList};
use crate::format;

const HOLDS: &[Column] = &[
    left("REQUEST", 26, 4),
    left("KEY", 12, 0),
    left("MODEL", 0, 0),
    left("PATH", 9, 3),
    right("HELD", 13, 0),
    right("USED", 12, 2),
    right("AGE", 7, 0),
    left("STATE", 9, 1),
];
const AUDIT: &[Column] = &[
    left("UTC", 11, 0),
    left("BY", 12, 1),
    left("ACT", 8, 0),
    left("KEY", 12, 0),
    left("DETAILS", 0, 0),
    left("OPERATION", 29, 3),
];

/// Money reserved by running requests.
pub(super) fn holds(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let shown = app.shown_holds();
    let (count, held) = app
        .totals
        .map_or((0, 0), |totals| (totals.holds, totals.held));
    let filter = filter_of(&app.holds.filter);
    let inner = pen.frame(
        area,
        &format!(
            "Holds{filter} · {} · {} held{}",
            format::count(count),
            format::total(held),
            app.holds.order.in_title()
        ),
    );
    if shown.is_empty() {
        return nothing(
            &app.holds,
            pen,
            inner,
            "no request is running: nothing is held",
        );
    }
    let placed = pen.heads(inner, 0, HOLDS, app.holds.order);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    let newest = app
        .holds
        .rows
        .iter()
        .map(|hold| hold.epoch)
        .max()
        .unwrap_or(0);
    let range = window(app.holds.selected, shown.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(hold) = shown.get(index) else {
            continue;
        };
        let cells = hold_cells(app, pen.theme, hold, newest);
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            HOLDS,
            &placed,
            &cells,
            index == app.holds.selected,
        );
    }
    let bottom = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    let hint = match app.gateway.link {
        GatewayLink::Live => "a hold ends with its request; it cannot be released by hand",
        _ => "no gateway is running; the next start ends these holds within 5 s",
    };
    pen.text(bottom, 2, 0, hint, pen.theme.faint());
}

/// A hold's line. One of an epoch before the newest belongs to a gateway that no longer runs.
fn hold_cells(
    app: &ConsoleApp,
    theme: Theme,
    hold: &OpenHold,
    newest: i64,
) -> [(String, Style); 8] {
    let state = match app.gateway.link {
        _ if hold.epoch < newest => "left over",
        GatewayLink::Live => "running",
        _ => "open",
    };
    let age = format::age(app.now.millis() - hold.at.millis());
    [
        (hold.request.to_string(), theme.faint()),
        (hold.key.to_string(), theme.key()),
        (hold.slug.clone(), Style::new()),
        (hold.family.clone(), theme.faint()),
        (format::within(hold.amount, 13), theme.strong()),
        (format::within(hold.used, 12), Style::new()),
        (age, Style::new()),
        (state.to_owned(), theme.state(state)),
    ]
}

/// The audit.
pub(super) fn audit(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let shown = app.shown_audit();
    let more = if app.audit.end || !app.audit.loaded {
        ""
    } else {
        "+"
    };
    let filter = filter_of(&app.audit.filter);
    let inner = pen.frame(
        area,
        &format!(
            "Audit{filter} · {}{more} acts{}",
            format::count(shown.len() as u64),
            match app.audit.order {
                order if order.sorts() => order.in_title(),
                _ => ", newest first".to_owned(),
            }
        ),
    );
    if shown.is_empty() {
        return nothing(&app.audit, pen, inner, "no administrative act yet");
    }
    let placed = pen.heads(inner, 0, AUDIT, app.audit.order);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(1),
        ..inner
    };
    let range = window(app.audit.selected, shown.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(act) = shown.get(index) else {
            continue;
        };
        let cells = [
            (format::when(act.at(), app.now), pen.theme.faint()),
            (act.actor().to_owned(), Style::new()),
            (act.act(), pen.theme.strong()),
            (
                act.key().map(|key| key.to_string()).unwrap_or_default(),
                pen.theme.key(),
            ),
            (act.details(), Style::new()),
            (format!("op_{}", act.operation()), pen.theme.faint()),
        ];
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            AUDIT,
            &placed,
            &cells,
            index == app.audit.selected,
        );
    }
}

fn nothing<T>(list: &RowList<T>, pen: &mut Pen<'_>, area: Rect, text: &str) {
    let theme = pen.theme;
    let (text, style) = match (&list.error, list.loaded) {
        (Some(error), _) => (error.as_str(), theme.bad()),
        (None, false) => ("reading the ledger …", theme.faint()),
        (None, true) if !list.filter.is_empty() => {
            ("nothing matches this filter; esc clears it", theme.warn())
        }
        (None, true) => (text, Style::new()),
    };
    pen.paragraph(area, 1, text, style);
}

fn filter_of(filter: &str) -> String {
    if filter.is_empty() {
        String::new()
    } else {
        format!(" · {filter}")
    }
}
