//! The one page that shows a secret or a sign-in link, and how to use it.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::fields::{fact, fields};
use super::pen::{Pen, line_of};
use crate::app::ConsoleApp;
use crate::app::act::SAVED;
use crate::app::modal::{SecretPage, ShownOnce};
use crate::format;
use crate::sanitize::width;

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, page: &SecretPage) {
    let title = match (&page.shown, page.new) {
        (ShownOnce::Link(..), _) => "Dashboard link: it works once",
        (_, true) => "New key: the secret is shown once and is not stored",
        (_, false) => "New secret: shown once and not stored",
    };
    let inner = pen.frame(area, title);
    let theme = pen.theme;
    let roomy = u16::from(inner.height >= 16);
    let mut y = roomy;
    let key = &page.key;
    let about = format!(
        "{} · {} · balance {}",
        key.id,
        key.settings.label,
        format::money(key.customer.account.balance())
    );
    y += fact(pen, inner, y, "Key", &about, Style::new()) + roomy;
    y += reveal(pen, inner, y, page) + roomy;
    y += match &page.shown {
        ShownOnce::Secret(_) => settings(app, pen, inner, y),
        ShownOnce::Link(_, expires) => fact(
            pen,
            inner,
            y,
            "Valid until",
            &format!("{} UTC, for one sign-in", format::stamp(*expires)),
            Style::new(),
        ),
    } + roomy;
    let copied = page.copied.then_some("sent to the clipboard (OSC 52)");
    for (name, done) in [("Copied", copied), ("Written", page.written.as_deref())] {
        let style = match done {
            Some(_) => theme.good(),
            None => Style::new(),
        };
        y += fact(pen, inner, y, name, done.unwrap_or("no"), style);
    }
    if let Some(problem) = &page.problem {
        y += fact(pen, inner, y, "", problem, theme.bad());
    }
    y = (y + roomy).min(inner.height.saturating_sub(2));
    if let Some(form) = &page.file {
        (y..inner.height).for_each(|line| pen.blank(inner, line));
        fields(pen, inner, y, form);
    } else if let Some(word) = &page.leaving {
        pen.blank(inner, y);
        let text = format!("Leaving erases it. Type {SAVED} and enter: ");
        let used = pen.text(inner, 0, y, &text, theme.warn());
        pen.text(inner, used, y, word.text(), theme.strong());
        let cells = u16::try_from(width(word.text())).unwrap_or(0);
        pen.cursor_at(line_of(inner, y), used + cells);
    } else if matches!(page.shown, ShownOnce::Secret(_)) && inner.height >= 12 {
        pen.paragraph(
            inner,
            y,
            "A lost secret is replaced with R rotate; balance and history stay.",
            theme.faint(),
        );
    }
}

/// The secret, on as many lines as it needs: it must be possible to copy it by eye and by mouse.
fn reveal(pen: &mut Pen<'_>, area: Rect, y: u16, page: &SecretPage) -> u16 {
    if page.hidden {
        pen.text(area, 0, y, "hidden: h shows it", pen.theme.faint());
        return 1;
    }
    let text: Vec<char> = page.shown.reveal().chars().collect();
    let mut lines = 0;
    for part in text.chunks(usize::from(area.width).max(1)) {
        let part: String = part.iter().collect();
        pen.text(area, 0, y + lines, &part, pen.theme.strong());
        lines += 1;
    }
    lines
}

/// The two base URLs and the first check.
fn settings(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, y: u16) -> u16 {
    let base = app.public_url();
    let lines = [
        ("SDKs", format!("base URL {base}/v1, the secret as API key")),
        (
            "Native",
            format!("base URL {base}/native, the secret as auth token"),
        ),
        (
            "First check",
            format!("GET {base}/v1/models answers 200: key and base URL are right"),
        ),
    ];
    lines.iter().fold(0, |taken, (name, value)| {
        taken + fact(pen, area, y + taken, name, value, Style::new())
    })
}
