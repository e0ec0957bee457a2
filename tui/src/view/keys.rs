//! The Keys screen: one line per key, ending in a word for its worst problem.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Cell, Column, Pen, left, right};
use crate::app::ConsoleApp;
use crate::app::keys::{ListedKey, Sort};
use crate::app::party::state_word;
use crate::format;

const COLUMNS: &[Column] = &[
    left("KEY", 12, 1),
    left("LABEL", 0, 0),
    right("BALANCE", 12, 0),
    right("HELD", 9, 3),
    right("24 h", 9, 4),
    right("LAST", 7, 6),
    left("CREATED", 10, 5),
    left("STATE", 7, 0),
];

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, &title(app));
    let keys = &app.keys;
    if keys.rows.is_empty() {
        return empty(app, pen, inner);
    }
    let placed = pen.heads(inner, 0, COLUMNS, keys.list_order());
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    let range = keys.visible(usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.clone().enumerate() {
        let Some(row) = keys.rows.get(index) else {
            continue;
        };
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pen.line(
            list,
            y,
            COLUMNS,
            &placed,
            &cells(app, pen, row),
            index == keys.selected,
        );
        if app.marks.has(row.key.id) {
            pen.text(list, 1, y, "•", pen.theme.warn());
        }
    }
    let bottom = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    let (left, right) = bottom_line(app, &range);
    pen.text(bottom, 2, 0, &left, pen.theme.faint());
    if usize::from(bottom.width)
        > crate::sanitize::width(&left) + crate::sanitize::width(&right) + 6
    {
        pen.end(bottom, 0, &right, pen.theme.faint());
    }
}

fn title(app: &ConsoleApp) -> String {
    let keys = &app.keys;
    let all = app.totals.map(|totals| format::count(totals.keys));
    let matching = match (&keys.count, keys.is_whole() && keys.loaded) {
        (_, true) => Some(format::count(keys.rows.len() as u64)),
        (Some(count), _) => Some(format!(
            "{}{}",
            format::count(count.keys),
            if count.more { "+" } else { "" }
        )),
        _ => None,
    };
    let how_many = match (matching, all) {
        (_, Some(all)) if keys.filter.is_empty() => format!(" · {all}"),
        (Some(some), Some(all)) => format!(" · {some} of {all}"),
        (Some(some), None) => format!(" · {some}"),
        (None, _) => String::new(),
    };
    let filter = if keys.filter_text.is_empty() {
        String::new()
    } else {
        format!(" · {}", crate::sanitize::mask(&keys.filter_text))
    };
    let arrow = if keys.ascending { '▲' } else { '▼' };
    let sorting = if keys.is_sorting() {
        " sorting …"
    } else {
        ""
    };
    let marked = match app.marks.len() {
        0 => String::new(),
        marks => format!(" · {marks} MARKED"),
    };
    format!(
        "Keys{filter}{how_many}{marked} · {} {arrow}{sorting}",
        keys.sort.column()
    )
}

fn cells(app: &ConsoleApp, pen: &Pen<'_>, row: &ListedKey) -> [Cell; 8] {
    let (key, theme) = (&row.key, pen.theme);
    let word = state_word(key, app.now);
    let held = if key.customer.account.held.is_positive() {
        Style::new()
    } else {
        theme.faint()
    };
    let day = row.day.map_or_else(|| "…".to_owned(), format::money);
    let last = key.customer.last_entry_at.map_or_else(
        || "—".to_owned(),
        |at| format::age(app.now.millis() - at.millis()),
    );
    [
        (key.id.to_string(), theme.key()),
        (key.settings.label.clone(), Style::new()),
        (
            format::money(key.customer.account.balance()),
            theme.strong(),
        ),
        (format::money(key.customer.account.held), held),
        (day, Style::new()),
        (last, theme.faint()),
        (format::date(key.created_at), theme.faint()),
        (word.to_owned(), theme.state(word)),
    ]
}

fn bottom_line(app: &ConsoleApp, range: &std::ops::Range<usize>) -> (String, String) {
    let keys = &app.keys;
    let rows = match keys.first_position() {
        Some(first) => {
            let row = |index: usize| format::count(first + index as u64 + 1);
            format!(
                "rows {}–{}",
                row(range.start),
                row(range.end.saturating_sub(1))
            )
        }
        None => "rows near the end".to_owned(),
    };
    let more = if keys.is_whole() && range.end == keys.rows.len() {
        ""
    } else {
        " · pgdn for more"
    };
    let order = match keys.ordered_at.filter(|_| keys.sort != Sort::Created) {
        Some(_) if keys.loading => "sorting …".to_owned(),
        Some(at) => format!("order of {} · r sorts again", format::time(at)),
        None => format!("read in {} ms", keys.took_ms),
    };
    (format!("{rows}{more}"), order)
}

fn empty(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let keys = &app.keys;
    let theme = pen.theme;
    if let Some(error) = &keys.error {
        let taken = pen.paragraph(area, 1, error, theme.bad());
        pen.text(area, 0, 2 + taken, "r tries again", theme.faint());
    } else if keys.is_sorting() {
        pen.text(area, 0, 1, "sorting …", theme.faint());
    } else if !keys.loaded || keys.loading {
        pen.text(area, 0, 1, "reading the ledger …", theme.faint());
    } else if !keys.filter.is_empty() {
        pen.text(
            area,
            0,
            1,
            keys.filter_error
                .as_deref()
                .unwrap_or("no key matches this filter"),
            theme.warn(),
        );
        pen.text(area, 0, 3, "esc clears it, / changes it", theme.faint());
    } else {
        pen.text(area, 0, 1, "no keys yet", theme.strong());
        let hint = if app.options.read_only {
            "this console is read-only: start one without --read-only to create keys"
        } else {
            "press n to create the first one"
        };
        pen.paragraph(area, 3, hint, Style::new());
    }
}
