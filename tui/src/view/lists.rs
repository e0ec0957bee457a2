//! The Holds and Audit screens: plain lists of the ledger's own rows.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Pen, above, last};
use crate::app::audit::AUDIT;
use crate::app::holds::HOLDS;
use crate::app::live::GatewayLink;
use crate::app::{ConsoleApp, RowList};
use crate::format;

/// Money reserved by running requests.
pub(super) fn holds(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let shown = app.shown_holds();
    let (count, held) = app
        .totals
        .map_or((0, 0), |totals| (totals.holds, totals.held));
    let filter = app.holds.list.filter_in_title();
    let inner = pen.frame(
        area,
        &format!(
            "Holds{filter} · {} · {} held{}",
            format::count(count),
            format::total(held),
            app.holds.list.order.in_title()
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
    pen.list(above(inner, 1), HOLDS, &shown, &app.holds.list);
    let hint = match app.gateway.link {
        GatewayLink::Live => "a hold ends with its request; it cannot be released by hand",
        _ => "no gateway is running; the next start ends these holds within 5 s",
    };
    pen.text(last(inner, 1), 2, 0, hint, pen.theme.faint());
}

pub(super) fn audit(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let shown = app.shown_audit();
    let more = if app.audit.end || !app.audit.loaded {
        ""
    } else {
        "+"
    };
    let filter = app.audit.list.filter_in_title();
    let inner = pen.frame(
        area,
        &format!(
            "Audit{filter} · {}{more} acts{}",
            format::count(shown.len() as u64),
            match app.audit.list.order {
                order if order.sorts() => order.in_title(),
                _ => ", newest first".to_owned(),
            }
        ),
    );
    if shown.is_empty() {
        return nothing(&app.audit, pen, inner, "no administrative act yet");
    }
    pen.list(inner, AUDIT, &shown, &app.audit.list);
}

fn nothing<T>(list: &RowList<T>, pen: &mut Pen<'_>, area: Rect, text: &str) {
    let theme = pen.theme;
    let (text, style) = match (&list.error, list.loaded) {
        (Some(error), _) => (error.as_str(), theme.bad()),
        (None, false) => ("reading the ledger …", theme.faint()),
        (None, true) if !list.list.filter.is_empty() => {
            ("nothing matches this filter; esc clears it", theme.warn())
        }
        (None, true) => (text, Style::new()),
    };
    pen.paragraph(area, 1, text, style);
}

/// Why Keys or Customers has no rows.
pub(super) struct NoRows<'a> {
    pub(super) error: Option<&'a str>,
    /// What it waits for.
    pub(super) waits: Option<&'a str>,
    /// The filter lets nothing through, or is none.
    pub(super) unmatched: Option<&'a str>,
    /// There is nothing yet.
    pub(super) none: &'a str,
    /// What the first row needs where nothing may be written.
    pub(super) needs: &'a str,
}

impl NoRows<'_> {
    pub(super) fn draw(&self, app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
        let theme = pen.theme;
        if let Some(error) = self.error {
            let taken = pen.paragraph(area, 1, error, theme.bad());
            pen.text(area, 0, 2 + taken, "r tries again", theme.faint());
        } else if let Some(waits) = self.waits {
            pen.text(area, 0, 1, waits, theme.faint());
        } else if let Some(unmatched) = self.unmatched {
            pen.text(area, 0, 1, unmatched, theme.warn());
            pen.text(area, 0, 3, "esc clears it, / changes it", theme.faint());
        } else {
            pen.text(area, 0, 1, self.none, theme.strong());
            let hint = match app.options.read_only {
                true => self.needs,
                false => "press n to create the first one",
            };
            pen.paragraph(area, 3, hint, Style::new());
        }
    }
}
