//! Writes into the screen's cells: every text passes the filter for untrusted text here, and nothing leaves its area.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Widget};

use super::theme::Theme;
use crate::app::mouse::{Pane, Spot};
use crate::app::order::ListOrder;
use crate::sanitize::{clean, cut, width, wrap};

/// One column of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Width in cells; 0 takes what is left.
    pub(crate) width: u16,
    /// Right-aligned, for numbers.
    pub(crate) right: bool,
    /// The order in which columns are dropped when room is short, highest first; 0 is never dropped.
    pub(crate) drop: u8,
}

/// A text column.
pub(crate) const fn left(title: &'static str, width: u16, drop: u8) -> Column {
    Column {
        title,
        width,
        right: false,
        drop,
    }
}

/// A column of numbers.
pub(crate) const fn right(title: &'static str, width: u16, drop: u8) -> Column {
    Column {
        title,
        width,
        right: true,
        drop,
    }
}

/// A cell's text and style.
pub(crate) type Cell = (String, Style);

/// Places of the screen, for the mouse.
pub(crate) type Spots = Vec<(Rect, Spot)>;

/// Cells for the mark of the selected line.
const BEFORE: u16 = 2;
/// Other columns are dropped until the column that takes the rest has this width.
const LEAST_REST: u16 = 18;

/// Writes into a buffer.
pub(crate) struct Pen<'a> {
    pub(crate) buf: &'a mut Buffer,
    pub(crate) theme: Theme,
    /// Position of the terminal's cursor when a text field has the focus.
    pub(crate) cursor: Option<Position>,
    /// What was drawn where, for the mouse. Later ones lie above earlier ones.
    pub(crate) spots: Spots,
    /// What is being drawn.
    pub(crate) pane: Pane,
}

impl Pen<'_> {
    /// Writes a text at a place in `area`; what does not fit is cut. Returns the cells used.
    pub(crate) fn text(&mut self, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
        if y >= area.height || x >= area.width {
            return 0;
        }
        let text = cut(text, usize::from(area.width - x));
        self.buf.set_stringn(
            area.x + x,
            area.y + y,
            &text,
            usize::from(area.width - x),
            style,
        );
        u16::try_from(width(&text)).unwrap_or(u16::MAX)
    }

    /// Empties a line of `area`.
    pub(crate) fn blank(&mut self, area: Rect, y: u16) {
        self.text(
            area,
            0,
            y,
            &" ".repeat(usize::from(area.width)),
            Style::new(),
        );
    }

    /// Writes a text that ends at the right edge of `area`.
    pub(crate) fn end(&mut self, area: Rect, y: u16, text: &str, style: Style) {
        let wide = u16::try_from(width(&clean(text))).unwrap_or(u16::MAX);
        self.text(area, area.width.saturating_sub(wide), y, text, style);
    }

    /// Writes several pieces one after the other.
    pub(crate) fn pieces(&mut self, area: Rect, y: u16, pieces: &[(&str, Style)]) -> u16 {
        pieces.iter().fold(0, |x, (text, style)| {
            x + self.text(area, x, y, text, *style)
        })
    }

    /// A frame with a title; returns the area inside, with one empty cell left and right.
    pub(crate) fn frame(&mut self, area: Rect, title: &str) -> Rect {
        let title = cut(title, usize::from(area.width.saturating_sub(6)));
        let block = Block::bordered().border_style(self.theme.faint());
        let inner = block.inner(area);
        block.render(area, self.buf);
        if area.height > 0 {
            // The border under it is dim, and a style only adds to a cell's attributes.
            self.text(area, 1, 0, &format!(" {title} "), self.theme.undimmed());
        }
        inner_of(inner)
    }

    /// The column headings, with an arrow at the one that the rows are sorted by; returns index and width of those that fit.
    pub(crate) fn heads(
        &mut self,
        area: Rect,
        y: u16,
        columns: &[Column],
        order: ListOrder,
    ) -> Vec<(usize, u16)> {
        let placed = place(columns, area.width);
        let mut x = area.x.saturating_add(BEFORE);
        for (index, wide) in &placed {
            if let Some(column) = columns.get(*index) {
                let head = Rect {
                    x,
                    y: area.y.saturating_add(y),
                    width: *wide,
                    height: 1,
                };
                self.spots.push((head, Spot::Head(self.pane, column.title)));
            }
            x = x.saturating_add(wide + 1);
        }
        let theme = self.theme;
        let title = |column: &Column| match column.title == order.column {
            true => (format!("{}{}", column.title, order.arrow()), theme.strong()),
            false => (column.title.to_owned(), theme.faint()),
        };
        let titles: Vec<Cell> = columns.iter().map(title).collect();
        self.row(area, y, columns, &placed, &titles);
        placed
    }

    /// One row of a table whose columns are placed.
    fn row(
        &mut self,
        area: Rect,
        y: u16,
        columns: &[Column],
        placed: &[(usize, u16)],
        cells: &[Cell],
    ) {
        let line = Rect {
            x: area.x + BEFORE,
            y: area.y + y,
            width: area.width.saturating_sub(BEFORE),
            height: 1,
        };
        let shown = placed.iter().filter_map(|(index, wide)| {
            let (column, (text, style)) = (columns.get(*index)?, cells.get(*index)?);
            let alignment = match column.right {
                true => Alignment::Right,
                false => Alignment::Left,
            };
            let text = cut(text, usize::from(*wide));
            Some(Line::styled(text, *style).alignment(alignment))
        });
        let widths = placed.iter().map(|(_, wide)| Constraint::Length(*wide));
        let table = Table::new([Row::new(shown)], widths).column_spacing(1);
        table.render(line.intersection(area), self.buf);
    }

    /// Notes where the rows of a list are, for the mouse; the first line shows this row.
    pub(crate) fn rows_from(&mut self, area: Rect, rows: &std::ops::Range<usize>) {
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let shown = Rect {
            height: height.min(area.height),
            ..area
        };
        self.spots.push((shown, Spot::Rows(self.pane, rows.start)));
    }

    /// One line of a list.
    pub(crate) fn line(
        &mut self,
        area: Rect,
        y: u16,
        columns: &[Column],
        placed: &[(usize, u16)],
        cells: &[Cell],
        selected: bool,
    ) {
        if y >= area.height {
            return;
        }
        self.row(area, y, columns, placed, cells);
        if selected {
            self.text(area, 0, y, ">", self.theme.strong());
            self.buf.set_style(
                Rect {
                    y: area.y + y,
                    height: 1,
                    ..area
                },
                self.theme.selected(),
            );
        }
    }

    /// On the lower border of a frame: which of its lines are visible (the first, how many fit, all), if these are not all.
    pub(crate) fn extent(&mut self, frame: Rect, lines: (usize, usize, usize), keys: &str) {
        let (first, height, all) = lines;
        if all <= height || frame.height == 0 {
            return;
        }
        let place = format!(
            " {}–{} of {all}{keys} ",
            first + 1,
            (first + height).min(all)
        );
        let border = Rect {
            y: frame.bottom().saturating_sub(1),
            height: 1,
            width: frame.width.saturating_sub(2),
            ..frame
        };
        self.end(border, 0, &place, self.theme.faint());
    }

    /// A text of several lines, wrapped at blanks; returns the number of lines used.
    pub(crate) fn paragraph(&mut self, area: Rect, y: u16, text: &str, style: Style) -> u16 {
        let lines = wrap(&clean(text), usize::from(area.width));
        let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let below = Rect {
            y: area.y.saturating_add(y),
            height: area.height.saturating_sub(y),
            ..area
        };
        let lines: Vec<Line<'_>> = (lines.iter())
            .map(|line| Line::styled(cut(line, usize::from(area.width)), style))
            .collect();
        Paragraph::new(lines).render(below, self.buf);
        count
    }

    /// One bar for each value, the largest is full; a dot for zero. Returns the cells used.
    pub(crate) fn bars(&mut self, area: Rect, x: u16, y: u16, values: &[u64], style: Style) -> u16 {
        let wide = u16::try_from(values.len()).unwrap_or(u16::MAX);
        let place = Rect {
            x: area.x.saturating_add(x),
            y: area.y.saturating_add(y),
            width: wide,
            height: 1,
        };
        // Of a bar an eighth is the least that shows.
        let least = values.iter().max().map_or(0, |most| most.div_ceil(8));
        let shown = (values.iter()).map(|value| (*value > 0).then_some((*value).max(least)));
        let bars = Sparkline::default().data(shown).style(style);
        let bars = bars.absent_value_symbol("·").absent_value_style(style);
        bars.render(place.intersection(area), self.buf);
        wide
    }
}

fn inner_of(inner: Rect) -> Rect {
    let side = u16::from(inner.width > 2);
    Rect {
        x: inner.x + side,
        width: inner.width.saturating_sub(2 * side),
        ..inner
    }
}

/// Places columns from the left, after two cells for the cursor; drops optional ones until the rest fits.
fn place(columns: &[Column], total: u16) -> Vec<(usize, u16)> {
    let mut kept: Vec<(usize, &Column)> = columns.iter().enumerate().collect();
    let need = |kept: &[(usize, &Column)]| {
        kept.iter()
            .map(|(_, column)| {
                if column.width == 0 {
                    LEAST_REST + 1
                } else {
                    column.width + 1
                }
            })
            .sum::<u16>()
            + 1
    };
    while need(&kept) > total {
        let Some(most) = kept
            .iter()
            .map(|(_, column)| column.drop)
            .max()
            .filter(|most| *most > 0)
        else {
            break;
        };
        kept.retain(|(_, column)| column.drop != most);
    }
    let fixed: u16 = kept.iter().map(|(_, column)| column.width + 1).sum::<u16>() + 1;
    let rest = total.saturating_sub(fixed);
    let mut x = BEFORE;
    let mut placed = Vec::with_capacity(kept.len());
    for (index, column) in kept {
        let wide = if column.width == 0 {
            rest
        } else {
            column.width
        };
        let wide = wide.min(total.saturating_sub(x));
        // Without a cell it would still take the gap before it.
        if wide > 0 {
            placed.push((index, wide));
        }
        x += wide + 1;
    }
    placed
}
