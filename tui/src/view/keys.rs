//! The Keys screen: one line per key, ending in a word for its worst problem.

use ratatui::layout::Rect;

use super::lists::NoRows;
use super::pen::{Pen, above, last};
use crate::app::ConsoleApp;
use crate::app::keys::{KEYS, ListedKey};
use crate::format;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, &title(app));
    let keys = &app.keys;
    if keys.rows.is_empty() {
        return empty(app, pen, inner);
    }
    let rows: Vec<&ListedKey> = keys.rows.iter().collect();
    let list = above(inner, 1);
    let range = pen.list(list, KEYS, &rows, &keys.list);
    for (y, row) in (1..).zip(rows.get(range.clone()).unwrap_or_default()) {
        if app.marks.has(row.key.id) {
            pen.text(list, 1, y, "•", pen.theme.warn());
        }
    }
    let bottom = last(inner, 1);
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
    let filter = keys.list.filter_in_title();
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
        "Keys{filter}{how_many}{marked}{}{sorting}",
        keys.list.order.in_title()
    )
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
    let order = match keys.ordered_at.filter(|_| !keys.is_as_created()) {
        Some(_) if keys.loading => "sorting …".to_owned(),
        Some(at) => format!("order of {} · r sorts again", format::time(at)),
        None => format!("read in {} ms", keys.took_ms),
    };
    (format!("{rows}{more}"), order)
}

fn empty(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let keys = &app.keys;
    let waits = match (keys.is_sorting(), !keys.loaded || keys.loading) {
        (true, _) => Some("sorting …"),
        (false, waits) => waits.then_some("reading the ledger …"),
    };
    let unmatched = keys.filter_error.as_deref();
    let unmatched = unmatched.unwrap_or("no key matches this filter");
    let none = NoRows {
        error: keys.error.as_deref(),
        waits,
        unmatched: (!keys.filter.is_empty()).then_some(unmatched),
        none: "no keys yet",
        needs: "this console is read-only: start one without --read-only to create keys",
    };
    none.draw(app, pen, area);
}
