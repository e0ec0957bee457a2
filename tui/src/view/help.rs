//! Help for this screen, the palette and the keys in the footer, all from the one table of commands.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::FooterKey;
use super::pen::{Pen, below, line_of};
use crate::app::ConsoleApp;
use crate::app::bindings::BINDINGS;
use crate::app::command::{CommandContext, ConsoleCommand};
use crate::app::list::window;
use crate::app::modal::{Modal, OutcomeLookup, ShownOnce};
use crate::app::mouse::Spot;
use crate::app::palette::PaletteLine;
use crate::sanitize::wrap;

/// The available keys, in a few words.
pub(super) fn footer_keys(app: &ConsoleApp) -> Vec<FooterKey> {
    if app.help.is_some() {
        owned(&[("j k", "scroll"), ("any other key", "closes")])
    } else if app.palette.is_some() {
        owned(&[
            ("↑ ↓", "choose"),
            ("tab", "complete"),
            ("enter", "do it"),
            ("esc", "close"),
        ])
    } else {
        app.modal.as_ref().map_or_else(
            || super::bound_keys(app),
            |modal| owned(page_keys(app, modal)),
        )
    }
}

/// Keys of a page. Only what closes it can be clicked.
fn owned(keys: &[(&str, &str)]) -> Vec<FooterKey> {
    let of = |(key, name): &(&str, &str)| FooterKey {
        key: (*key).to_owned(),
        name: (*name).to_owned(),
        spot: key.contains("esc").then_some(Spot::Escape),
    };
    keys.iter().map(of).collect()
}

/// The keys of a page over the screen.
fn page_keys(app: &ConsoleApp, modal: &Modal) -> &'static [(&'static str, &'static str)] {
    match modal {
        Modal::Form(_) => &[
            ("tab", "next field"),
            ("enter", "on the last field: continue"),
            ("ctrl-s", "continue"),
            ("esc", "cancel"),
        ],
        Modal::Review(_) => &[("y", "apply"), ("enter, esc", "back, nothing is applied")],
        Modal::Sending(_) => &[("…", "waiting for the ledger")],
        Modal::Unknown(unknown) if unknown.not_applied => &[
            ("y", "send the same again"),
            ("r", "ask again"),
            ("esc", "leave"),
        ],
        Modal::Unknown(_) => &[
            ("r", "ask now"),
            ("esc", "leave; it stays under O operations"),
        ],
        Modal::Receipt(_) => &[("esc", "close"), ("c", "copy the operation id")],
        Modal::Request(_) => &[
            ("esc", "close"),
            ("K", "its key or customer"),
            ("c", "copy the id"),
            ("j k", "scroll"),
        ],
        Modal::Find(_) => &[("enter", "find"), ("esc", "close")],
        Modal::Operations(selected) => {
            match app.operations.get(*selected).map(|listed| &listed.found) {
                Some(OutcomeLookup::NotApplied) => &[
                    ("y", "review and send again"),
                    ("d", "drop"),
                    ("j k", "move"),
                    ("esc", "close"),
                ],
                Some(OutcomeLookup::Applied(_)) => {
                    &[("d", "done, remove it"), ("j k", "move"), ("esc", "close")]
                }
                _ => &[("j k", "move"), ("esc", "close")],
            }
        }
        Modal::Reading(_) => &[("esc", "close"), ("j k", "scroll")],
        Modal::Bulk(act) if !act.sent => &[
            ("y", "apply to all of these"),
            ("enter, esc", "back, nothing is applied"),
            ("j k", "scroll"),
        ],
        Modal::Bulk(act) if act.is_over() => &[("esc", "close"), ("j k", "scroll")],
        Modal::Bulk(_) => &[("…", "waiting for the ledger"), ("j k", "scroll")],
        Modal::Secret(page) if page.file.is_some() => &[("enter", "write"), ("esc", "back")],
        Modal::Secret(page) if page.leaving.is_some() => &[("enter", "leave"), ("esc", "back")],
        Modal::Secret(page) if matches!(page.shown, ShownOnce::Link(..)) => &[
            ("y", "copy"),
            ("w", "write a file"),
            ("h", "hide"),
            ("esc", "close"),
        ],
        Modal::Secret(_) => &[
            ("y", "copy"),
            ("w", "write a file"),
            ("h", "hide"),
            ("esc", "leave"),
        ],
    }
}

/// The help page.
pub(super) fn help(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, &format!("Help · {}", name_of(app)));
    let theme = pen.theme;
    let lines = help_lines(app, usize::from(inner.width));
    let height = usize::from(inner.height);
    let first = usize::from(app.help.unwrap_or(0)).min(lines.len().saturating_sub(height));
    for (y, line) in (0..inner.height).zip(lines.iter().skip(first)) {
        let (key, name, text) = match line.available {
            true => (theme.key(), Style::new(), Style::new()),
            false => (theme.faint(), theme.faint(), theme.warn()),
        };
        pen.text(Rect { width: 10, ..inner }, 0, y, line.key, key);
        pen.text(inner, 11, y, line.name, name);
        pen.text(inner, line.x, y, &line.text, text);
    }
    pen.extent(area, (first, height, lines.len()), " · j k");
}

/// Below this width the names have no column of their own.
const NARROW: usize = 50;

/// One line of the help page. The lines on which a long text continues have neither key nor name.
struct HelpLine {
    key: &'static str,
    name: &'static str,
    /// Where the text begins.
    x: u16,
    text: String,
    available: bool,
}

/// The keys of this page or screen, with texts that are wrapped at its width.
fn help_lines(app: &ConsoleApp, cells: usize) -> Vec<HelpLine> {
    let wrapped = |key, name, x: u16, text: &str, available| {
        let parts = wrap(text, cells.saturating_sub(usize::from(x)))
            .into_iter()
            .enumerate();
        parts.map(move |(at, text)| {
            let (key, name) = if at == 0 { (key, name) } else { ("", "") };
            HelpLine {
                key,
                name,
                x,
                text,
                available,
            }
        })
    };
    if let Some(modal) = &app.modal {
        let keys = page_keys(app, modal)
            .iter()
            .flat_map(|(key, name)| wrapped(*key, "", 11, name, true));
        return keys
            .chain(wrapped("", "", 11, about(modal), true))
            .collect();
    }
    let place = app.place();
    let here = BINDINGS.iter().filter(|binding| binding.works_at(place));
    let own = here.clone().filter(|binding| !binding.places.is_empty());
    let common = here.filter(|binding| binding.places.is_empty());
    let lines = own.chain(common).flat_map(|binding| {
        let reason = binding.command.reason_against(app);
        let text = reason.as_ref().map_or_else(
            || binding.help.to_owned(),
            |reason| format!("not now: {reason}"),
        );
        if cells < NARROW {
            wrapped(
                binding.key,
                "",
                11,
                &format!("{}: {text}", binding.name),
                reason.is_none(),
            )
        } else {
            wrapped(binding.key, binding.name, 24, &text, reason.is_none())
        }
    });
    lines.collect()
}

/// The purpose of a page, for help.
fn about(modal: &Modal) -> &'static str {
    match modal {
        Modal::Form(_) => {
            "Nothing is applied here: a review follows, and only y in the review applies it. Amounts are exact: 1,000 is refused because it is ambiguous."
        }
        Modal::Review(_) | Modal::Sending(_) => {
            "The operation is applied at most once, however often it is sent. It is kept on file until its outcome is known."
        }
        Modal::Bulk(_) => {
            "Each key has an operation of its own, applied at most once. The reference of a payment gets the key's id: the same act with the same reference pays nobody twice."
        }
        Modal::Unknown(_) => {
            "The ledger did not confirm the operation. The console looks it up by its id; sending it again uses the same id and has no second effect."
        }
        Modal::Operations(_) => {
            "Operations that were sent but whose outcome was not seen, for example because a console was killed."
        }
        Modal::Secret(_) => {
            "Only a hash of the secret is stored. A lost secret is replaced with R rotate; balance and history stay."
        }
        Modal::Find(_) => {
            "A request's id, the id in its answer, a payment's reference, the id of a key or customer, your own system's id, a whole secret, or a part of a label. What was refused is found while the gateway remembers it."
        }
        Modal::Receipt(_) | Modal::Request(_) | Modal::Reading(_) => "",
    }
}

fn name_of(app: &ConsoleApp) -> &'static str {
    match (&app.modal, app.place()) {
        (Some(Modal::Form(_)), _) => "a form",
        (Some(Modal::Review(_) | Modal::Sending(_)), _) => "a review",
        (Some(_), _) => "this page",
        (None, CommandContext::Detail) => "one key",
        (None, CommandContext::Customer) => "one customer",
        (None, _) => {
            let shows = ConsoleCommand::Show(app.screen);
            let bound = BINDINGS.iter().find(|bound| bound.command == shows);
            bound.map_or("", |bound| bound.name)
        }
    }
}

/// Every action by name.
pub(super) fn palette(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let Some(palette) = &app.palette else { return };
    let inner = pen.frame(area, "Commands");
    let theme = pen.theme;
    let used = pen.typed(inner, ": ", &palette.field);
    if palette.field.text().is_empty() {
        pen.text(
            inner,
            used + 1,
            0,
            "type a part of a name, like sort balance or filter acme",
            theme.faint(),
        );
    }
    let lines = app.palette_lines();
    if lines.is_empty() {
        pen.text(inner, 0, 2, "no command matches", theme.warn());
        return;
    }
    let list = below(inner, 2);
    let range = window(palette.selected, lines.len(), usize::from(list.height));
    pen.spots.push((list, Spot::Palette(range.start)));
    let shown = lines.get(range.clone()).unwrap_or_default();
    for (y, (index, line)) in (0..).zip(range.zip(shown)) {
        let row = line_of(list, y);
        palette_line(pen, row, line);
        if index == palette.selected {
            pen.selected(row);
        }
    }
}

/// One line of the palette: its text, its key, and what it does or why it cannot.
fn palette_line(pen: &mut Pen<'_>, row: Rect, line: &PaletteLine) {
    let theme = pen.theme;
    let (text, name_style, text_style) = match &line.reason {
        None => (line.help.clone(), theme.strong(), Style::new()),
        Some(reason) => (format!("not now: {reason}"), theme.faint(), theme.faint()),
    };
    let cut = |width: u16| Rect {
        width: row.width.min(width),
        ..row
    };
    // Only what has no key may be longer than the names of keys.
    let name = if line.key.is_empty() { 28 } else { 15 };
    let used = pen.text(cut(name), 2, 0, &line.text, name_style);
    pen.text(cut(22), 16, 0, line.key, theme.key());
    pen.text(row, 23.max(used + 4), 0, &text, text_style);
}
