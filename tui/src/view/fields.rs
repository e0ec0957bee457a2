//! The elements of pages: facts, and the fields of forms.

use farebox_selling::member::Reads;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Pen, line_of};
use crate::app::form::{Form, FormField};
use crate::plan::title;
use crate::sanitize::{clean, mask, width, wrap};

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

/// Facts below each other, wrapped: each begins on the line where the one before it ended.
#[derive(Debug, Default)]
pub(super) struct FactList(Vec<(String, String, Style)>);

impl FactList {
    /// One fact in the terminal's own style.
    pub(super) fn plain(&mut self, name: &str, value: &str) {
        self.styled(name, value, Style::new());
    }

    pub(super) fn styled(&mut self, name: &str, value: &str, style: Style) {
        self.0.push((name.to_owned(), value.to_owned(), style));
    }

    /// One fact, if there is something to say.
    pub(super) fn if_any(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.plain(name, value);
        }
    }

    /// Draws them below each other; returns the number of lines used.
    pub(super) fn draw(&self, pen: &mut Pen<'_>, area: Rect, y: u16) -> u16 {
        self.0.iter().fold(0, |used, (name, value, style)| {
            used + fact(pen, area, y + used, name, value, *style)
        })
    }

    /// Draws them inside a frame from one of their lines on, with the range that is visible on the frame if that is not all.
    pub(super) fn draw_from(&self, pen: &mut Pen<'_>, frame: Rect, inner: Rect, scroll: u16) {
        let cells = usize::from(inner.width.saturating_sub(NAME)).max(1);
        let lines: Vec<(&str, String, Style)> = (self.0.iter())
            .flat_map(|(name, value, style)| {
                let parts = wrap(&clean(value), cells).into_iter().enumerate();
                parts
                    .map(move |(at, text)| (if at == 0 { name.as_str() } else { "" }, text, *style))
            })
            .collect();
        let height = usize::from(inner.height);
        let first = usize::from(scroll).min(lines.len().saturating_sub(height));
        let name_place = Rect {
            width: inner.width.min(NAME - 1),
            ..inner
        };
        for (y, (name, text, style)) in (0..inner.height).zip(lines.iter().skip(first)) {
            pen.text(name_place, 0, y, name, pen.theme.faint());
            pen.text(inner, NAME, y, text, *style);
        }
        pen.extent(frame, (first, height, lines.len()), " · j k");
    }
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
            &title(&field.member.name),
            if focused {
                theme.strong()
            } else {
                theme.faint()
            },
        );
        let x = NAME + 2;
        let cell = Rect {
            x: area.x + x.min(area.width),
            width: value_width.min(area.width.saturating_sub(x)),
            ..area
        };
        match choices(field) {
            Some(choices) => {
                pen.text(cell, 0, y, &choices, Style::new());
            }
            None => {
                typed(pen, cell, y, field, focused);
            }
        }
        let (beside, words) = (x + value_width + 2, &field.member.words);
        let fits = area.width >= 76 && width(words) <= usize::from(area.width - beside);
        if fits || (area.width >= 76 && !focused) {
            pen.text(area, beside, y, words, theme.faint());
        }
        y += 1;
        let below = Rect {
            x: cell.x,
            width: area.right().saturating_sub(cell.x),
            ..area
        };
        if let Some(error) = &field.error {
            y += pen.paragraph(below, y, error, theme.bad());
        } else if focused && !fits {
            y += pen.paragraph(below, y, words, theme.faint());
        }
    }
    y
}

/// The choices of a field that has some, the chosen one in brackets.
fn choices(field: &FormField) -> Option<String> {
    let word = |word: &String| {
        if word == field.field.text() {
            format!("[{word}]")
        } else {
            format!(" {word} ")
        }
    };
    match &field.member.reads {
        Reads::Choice(words) => Some(words.iter().map(word).collect()),
        Reads::Text | Reads::Number | Reads::UpTo(_) | Reads::List => None,
    }
}

/// A typed value on its line. One that is longer than the line is shown around the cursor.
fn typed(pen: &mut Pen<'_>, cell: Rect, y: u16, field: &FormField, focused: bool) {
    let theme = pen.theme;
    let text = mask(field.field.text());
    let before: String = text.chars().take(field.field.cursor()).collect();
    let room = usize::from(cell.width.saturating_sub(1));
    let skip = before.chars().count().saturating_sub(room);
    let shown: String = text.chars().skip(skip).collect();
    let style = if focused {
        theme.strong()
    } else {
        Style::new()
    };
    let line = "_".repeat(usize::from(cell.width));
    pen.text(cell, 0, y, &line, theme.faint());
    pen.text(cell, 0, y, &shown, style);
    if focused && y < cell.height {
        let visible: String = before.chars().skip(skip).collect();
        let cells = u16::try_from(width(&visible)).unwrap_or(0);
        pen.cursor_at(line_of(cell, y), cells);
    }
}
