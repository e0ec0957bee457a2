//! The Exposure and Margin screens: one line per key, target, class or UTC day, and the total at the end.

use farebox_ledger::{Amount, MarginBy, MarginRow};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::chart;
use super::pen::{Cell, Column, Pen, left, right};
use crate::app::ConsoleApp;
use crate::app::keys::window;
use crate::app::margins::{MarginView, Sums, by_name};
use crate::format;

const EXPOSURE: &[Column] = &[
    left("NAME", 0, 0),
    right("REQUESTS", 9, 2),
    right("CHARGED", 10, 0),
    right("EXPOSURE", 10, 0),
    right("OF CHARGED", 10, 1),
    right("LOSS", 9, 0),
    left("STATE", 5, 3),
];
const MARGIN: &[Column] = &[
    left("NAME", 0, 0),
    right("REQUESTS", 9, 4),
    right("CHARGED", 9, 0),
    right("COST", 9, 0),
    right("MARGIN", 9, 0),
    right("OF", 6, 1),
    right("EXPOSURE", 8, 3),
    right("LOSS", 7, 2),
];

/// From this height on there is room for charts.
const CHARTS_FROM: u16 = 14;

/// Draws one of them.
pub(super) fn draw(app: &ConsoleApp, sums: &Sums, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, &title(sums));
    // Charts are about all keys, the warning is about the selected row: it stands right above the list.
    let charted = charts(app, pen, inner);
    let rest = Rect {
        y: inner.y + charted,
        height: inner.height - charted,
        ..inner
    };
    let above = charted + warning(app, sums, pen, rest);
    let body = Rect {
        y: inner.y + above,
        height: inner.height.saturating_sub(above),
        ..inner
    };
    if sums.page.rows.is_empty() {
        return nothing(sums, pen, body);
    }
    let columns = if sums.view == MarginView::Exposure {
        EXPOSURE
    } else {
        MARGIN
    };
    let placed = pen.heads(body, 0, columns, sums.list_order());
    let list = Rect {
        y: body.y + 1,
        height: body.height.saturating_sub(3),
        ..body
    };
    let height = usize::from(list.height);
    let range = window(sums.selected, sums.page.rows.len(), height);
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(row) = sums.page.rows.get(index) else {
            continue;
        };
        let cells = cells(sums, pen, row, &shown_name(sums, row));
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            columns,
            &placed,
            &cells,
            index == sums.selected,
        );
    }
    let count = format::count(sums.page.count as u64);
    let total = cells(sums, pen, &sums.page.total, &format!("all {count}"));
    let bottom = Rect {
        y: body.bottom().saturating_sub(2),
        height: 1,
        ..body
    };
    pen.line(
        bottom,
        0,
        columns,
        &placed,
        &total.map(|(text, _)| (text, pen.theme.strong())),
        false,
    );
    let note = Rect {
        y: body.bottom().saturating_sub(1),
        height: 1,
        ..body
    };
    pen.text(note, 2, 0, &about(sums), pen.theme.faint());
}

fn title(sums: &Sums) -> String {
    let (what, by) = (
        if sums.view == MarginView::Exposure {
            "Exposure"
        } else {
            "Margin"
        },
        by_name(sums.by),
    );
    let order = sums.list_order();
    let column = match order.column {
        "NAME" => by.to_uppercase(),
        column => column.to_owned(),
    };
    let arrow = order.arrow();
    let from = sums
        .asked
        .map(|query| format!(" from {}", format::date(query.from)))
        .unwrap_or_default();
    format!(
        "{what} by {by} · {}{from} UTC · {column} {arrow}",
        sums.period.name()
    )
}

/// The charts of all keys, if they are wanted and fit; returns the number of lines used.
fn charts(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) -> u16 {
    if !app.charts || area.height < CHARTS_FROM {
        return 0;
    }
    let place = Rect {
        height: area.height / 2,
        ..area
    };
    chart::grid(pen, place, app.now, &app.spend.flow(app.now, ""));
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
    match (sums.by, sums.page.rows.get(sums.selected), sums.view) {
        (MarginBy::Key | MarginBy::Target | MarginBy::Class, Some(row), _)
            if !row.name.is_empty() =>
        {
            let own = if row.own == Amount::ZERO {
                String::new()
            } else {
                format!(" · {} for our own requests", format::short(row.own, 10))
            };
            format!(
                "{} · {}{own}",
                shown_name(sums, row),
                format::many(row.requests, "request")
            )
        }
        (_, _, MarginView::Exposure) => {
            "what providers may bill beyond the charges, at the catalog's prices".to_owned()
        }
        (_, _, MarginView::Margin) => {
            "charged less cost, where a target has a `cost`; its exposure is part of it".to_owned()
        }
    }
}

fn nothing(sums: &Sums, pen: &mut Pen<'_>, area: Rect) {
    let (text, style) = match (&sums.error, sums.loaded) {
        (Some(error), _) => (error.as_str(), pen.theme.bad()),
        (None, false) => ("adding up …", pen.theme.faint()),
        (None, true) => (
            "no request ended in this period; p chooses another",
            Style::new(),
        ),
    };
    pen.paragraph(area, 1, text, style);
}

fn shown_name(sums: &Sums, row: &MarginRow) -> String {
    match sums.labels.get(&row.name) {
        _ if row.name.is_empty() => "no target answered".to_owned(),
        Some(label) if !label.is_empty() => format!("{} {label}", row.name),
        _ => row.name.clone(),
    }
}

fn cells(sums: &Sums, pen: &Pen<'_>, row: &MarginRow, name: &str) -> [Cell; 8] {
    let theme = pen.theme;
    let amount = |amount: Amount, wide: usize| {
        let style = if amount == Amount::ZERO {
            theme.faint()
        } else {
            Style::new()
        };
        (format::short(amount, wide), style)
    };
    let name = (
        name.to_owned(),
        if sums.by == MarginBy::Key {
            theme.key()
        } else {
            Style::new()
        },
    );
    let requests = (format::count(row.requests), theme.faint());
    if sums.view == MarginView::Exposure {
        let (exposure, loud) = (row.exposure, row.exposure.picos() > row.charge.picos() / 2);
        let stopped = sums.is_stopped(&row.name);
        return [
            name,
            requests,
            amount(row.charge, 10),
            (
                format::short(exposure, 10),
                if loud { theme.bad() } else { theme.strong() },
            ),
            (of(exposure, row.charge), theme.faint()),
            amount(row.loss, 9),
            (if stopped { "stop" } else { "" }.to_owned(), theme.warn()),
            (String::new(), Style::new()),
        ];
    }
    let margin = row.margin();
    let spent = row.cost.checked_add(row.own).unwrap_or(row.cost);
    let style = if margin.is_some_and(Amount::is_negative) {
        theme.bad()
    } else {
        theme.strong()
    };
    let unknown = || "—".to_owned();
    [
        name,
        requests,
        amount(row.charge, 9),
        match spent {
            Amount::ZERO if margin.is_none() => (unknown(), theme.faint()),
            spent => amount(spent, 9),
        },
        (
            margin.map_or_else(unknown, |margin| format::short(margin, 9)),
            style,
        ),
        (
            margin.map_or_else(unknown, |margin| of(margin, row.priced)),
            theme.faint(),
        ),
        amount(row.exposure, 8),
        amount(row.loss, 7),
    ]
}

/// The share of a charge in percent.
fn of(part: Amount, whole: Amount) -> String {
    let sign = if part.is_negative() { "-" } else { "" };
    let percent = part
        .picos()
        .unsigned_abs()
        .saturating_mul(100)
        .checked_div(whole.picos().unsigned_abs());
    match percent {
        None => "—".to_owned(),
        Some(1_000..) => format!("{sign}>999%"),
        Some(percent) => format!("{sign}{percent}%"),
    }
}
