//! The elements of pages: facts, and the fields of forms.

use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::pen::Pen;
use crate::app::form::Form;
use crate::sanitize::{mask, width};

/// Cells for the names.
pub(super) const NAME: u16 = 12;

/// `Name        value`, with the value wrapped; returns the number of lines used.
pub(super) fn fact(
    pen: &mut Pen<'_>,
    area: Rect,
    y: u16,
    name: &str,
    value: &str,
    style: Style,
) -> u16 {
    if y >= area.height {
        return 0;
    }
    pen.text(area, 0, y, name, pen.theme.faint());
    let room = Rect {
        x: area.x + NAME.min(area.width),
        width: area.width.saturating_sub(NAME),
        ..area
    };
    pen.paragraph(room, y, value, style)
}

/// A form's fields; also used for the one field of other pages.
pub(super) fn fields(pen: &mut Pen<'_>, area: Rect, mut y: u16, form: &Form) -> u16 {
    let theme = pen.theme;
    let value_width = if area.width >= 100 {
        40
    } else {
        area.width.saturating_sub(NAME + 2).min(24)
    };
    for (index, field) in form.fields.iter().enumerate() {
        let focused = index == form.focus;
        if focused {
            pen.text(area, 0, y, "›", theme.key());
        }
        pen.text(
            area,
            2,
            y,
            field.name,
            if focused {
                theme.strong()
            } else {
                theme.faint()
            },
        );
        let x = NAME + 2;
        let text = mask(field.field.text());
        let before: String = text.chars().take(field.field.cursor()).collect();
        let room = usize::from(value_width.saturating_sub(1));
        // A long value is shown around the cursor.
        let skip = before.chars().count().saturating_sub(room);
        let shown: String = text.chars().skip(skip).collect();
        let cell = Rect {
            x: area.x + x.min(area.width),
            width: value_width.min(area.width.saturating_sub(x)),
            ..area
        };
        let choice = field.input.choices().map(|choices| {
            choices
                .iter()
                .map(|word| {
                    if *word == field.field.text() {
                        format!("[{word}]")
                    } else {
                        format!(" {word} ")
                    }
                })
                .collect::<String>()
        });
        match choice {
            Some(choice) => {
                pen.text(cell, 0, y, &choice, Style::new());
            }
            None => {
                pen.text(
                    cell,
                    0,
                    y,
                    &"_".repeat(usize::from(cell.width)),
                    theme.faint(),
                );
                pen.text(
                    cell,
                    0,
                    y,
                    &shown,
                    if focused {
                        theme.strong()
                    } else {
                        Style::new()
                    },
                );
                if focused && y < area.height {
                    let visible: String = before.chars().skip(skip).collect();
                    let x = cell.x + u16::try_from(width(&visible)).unwrap_or(0);
                    pen.cursor = Some(Position {
                        x: x.min(area.right().saturating_sub(1)),
                        y: area.y + y,
                    });
                }
            }
        }
        if area.width >= 76 {
            pen.text(area, x + value_width + 2, y, field.hint, theme.faint());
        }
        y += 1;
        if let Some(error) = &field.error {
            let below = Rect {
                x: cell.x,
                width: area.right().saturating_sub(cell.x),
                ..area
            };
            y += pen.paragraph(below, y, error, theme.bad());
        } else if focused && area.width < 76 {
            pen.text(area, x, y, field.hint, theme.faint());
            y += 1;
        }
    }
    y
}
