//! The names of the screens with their keys, on the lower border: all of them where they fit, which is from 100 cells on, else that of the
//! current one and the keys of the others.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::app::ConsoleApp;
use crate::app::bindings::BINDINGS;
use crate::app::command::ConsoleCommand;
use crate::app::mouse::Spot;
use crate::sanitize::width;

/// Draws them on the border of this frame.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, frame: Rect) {
    let screens = || {
        BINDINGS.iter().filter_map(|binding| match binding.command {
            ConsoleCommand::Show(screen) => Some((screen, binding.key, binding.name)),
            _ => None,
        })
    };
    let needs: usize = screens()
        .map(|(_, key, name)| width(key) + width(name) + 2)
        .sum();
    let all = needs + 4 <= usize::from(frame.width);
    let border = Rect {
        x: frame.x + 2,
        y: frame.bottom().saturating_sub(1),
        width: frame.width.saturating_sub(4),
        height: 1,
    };
    let mut x = pen.text(border, 0, 0, " ", pen.theme.faint());
    for (screen, key, name) in screens() {
        let here = screen == app.screen;
        let text = match all || here {
            true => format!("{key} {name}"),
            false => key.to_owned(),
        };
        let style = match here {
            // The border under it is dim, and a style only adds to a cell's attributes.
            true => pen.theme.undimmed(),
            false => pen.theme.faint(),
        };
        let used = pen.text(border, x, 0, &text, style);
        let place = Rect {
            x: border.x + x,
            width: used,
            ..border
        };
        pen.spots.push((place, Spot::Screen(screen)));
        x += used + pen.text(border, x + used, 0, " ", pen.theme.faint());
    }
}
