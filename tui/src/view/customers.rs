//! The Customers screen: one line per customer, with its keys below it when they are unfolded.

use farebox_ledger::{Customer, Key};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Cell, Column, Pen, left, right};
use crate::app::ConsoleApp;
use crate::app::customers::{CustomerLine, MOST};
use crate::app::keys::window;
use crate::app::party::{customer_word, state_word};
use crate::format;

const COLUMNS: &[Column] = &[
    left("CUSTOMER", 14, 0),
    left("LABEL", 0, 0),
    left("EXTERNAL ID", 12, 2),
    right("BALANCE", 11, 0),
    right("HELD", 8, 3),
    right("AVAILABLE", 11, 4),
    right("LAST", 7, 6),
    left("CREATED", 10, 5),
    left("STATE", 9, 0),
];

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let screen = &app.customers;
    let inner = pen.frame(area, &title(app));
    if screen.rows.is_empty() {
        return empty(app, pen, inner);
    }
    let placed = pen.heads(inner, 0, COLUMNS, screen.list_order());
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    let lines = screen.lines();
    let range = window(screen.selected, lines.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(line) = lines.get(index) else {
            continue;
        };
        let cells = match line {
            CustomerLine::Customer(customer) => of_customer(app, pen, customer),
            CustomerLine::Key(key) => of_key(app, pen, key),
            CustomerLine::Note(text) => vec![
                (String::new(), Style::new()),
                (format!("  {text}"), pen.theme.faint()),
            ],
        };
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pen.line(list, y, COLUMNS, &placed, &cells, index == screen.selected);
    }
    let bottom = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
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
    let filter = match screen.filter_text.as_str() {
        "" => String::new(),
        text => format!(" · {text}"),
    };
    let more = if screen.ended || !screen.loaded {
        ""
    } else {
        "+"
    };
    let count = format::count(screen.rows.len() as u64);
    let order = screen.list_order();
    format!(
        "Customers{filter} · {count}{more} · {} {}",
        order.column,
        order.arrow()
    )
}

fn of_customer(app: &ConsoleApp, pen: &Pen<'_>, customer: &Customer) -> Vec<Cell> {
    let (theme, account) = (pen.theme, customer.account);
    let word = customer_word(customer);
    let mark = match app.customers.is_unfolded(customer.id) {
        true => "▾",
        false => "▸",
    };
    let held = match account.held.is_positive() {
        true => Style::new(),
        false => theme.faint(),
    };
    let last = customer.last_entry_at.map_or_else(
        || "—".to_owned(),
        |at| format::age(app.now.millis() - at.millis()),
    );
    let external_id = customer.settings.external_id.clone();
    vec![
        (format!("{mark} {}", customer.id), theme.key()),
        (customer.settings.label.clone(), Style::new()),
        (external_id.unwrap_or_default(), theme.faint()),
        (format::money(account.balance()), theme.strong()),
        (format::money(account.held), held),
        (format::money(account.available()), Style::new()),
        (last, theme.faint()),
        (format::date(customer.created_at), theme.faint()),
        (word.to_owned(), theme.state(word)),
    ]
}

/// A key has no money of its own: what it may spend stands in the column of what is available.
fn of_key(app: &ConsoleApp, pen: &Pen<'_>, key: &Key) -> Vec<Cell> {
    let theme = pen.theme;
    let word = state_word(key, app.now);
    let kind = if key.is_owner { "owner" } else { "" };
    let none = || (String::new(), Style::new());
    vec![
        (format!("  {}", key.id), theme.faint()),
        (format!("  {}", key.settings.label), Style::new()),
        (kind.to_owned(), theme.faint()),
        none(),
        none(),
        (format::money(key.spendable(app.now)), theme.faint()),
        none(),
        (format::date(key.created_at), theme.faint()),
        (word.to_owned(), theme.state(word)),
    ]
}

fn empty(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let (screen, theme) = (&app.customers, pen.theme);
    if let Some(error) = &screen.error {
        let taken = pen.paragraph(area, 1, error, theme.bad());
        pen.text(area, 0, 2 + taken, "r tries again", theme.faint());
    } else if !screen.loaded || screen.loading {
        pen.text(area, 0, 1, "reading the ledger …", theme.faint());
    } else if !screen.filter_text.is_empty() {
        let text = screen.filter_error.as_deref();
        let text = text.unwrap_or("no customer matches this filter");
        pen.text(area, 0, 1, text, theme.warn());
        pen.text(area, 0, 3, "esc clears it, / changes it", theme.faint());
    } else {
        pen.text(area, 0, 1, "no customers yet", theme.strong());
        let hint = match app.options.read_only {
            true => "this console is read-only: start one without --read-only to create some",
            false => "press n to create the first one",
        };
        pen.paragraph(area, 3, hint, Style::new());
    }
}
