//! Writes into the screen's cells: every text passes the filter for untrusted text here, and nothing leaves its area.

use std::ops::Range;

use farebox_ledger::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Widget};

use super::theme::Theme;
use crate::app::cell::{ListCell, faint, strong};
use crate::app::list::{ColumnHead, ListColumn, ListRow, window};
use crate::app::mouse::{Pane, Spot};
use crate::app::order::{ListOrder, ListState};
use crate::field::TextField;
use crate::sanitize::{clean, cut, mask, width, wrap};

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
    pub(crate) now: Timestamp,
    /// Position of the terminal's cursor when a text field has the focus.
    pub(crate) cursor: Option<Position>,
    /// What was drawn where, for the mouse. Later ones lie above earlier ones.
    pub(crate) spots: Spots,
    /// What is being drawn.
    pub(crate) pane: Pane,
    /// Whether its lists have the focus, so that their selected rows are marked.
    pub(crate) focus: bool,
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

    /// A line that is typed behind its sign, with the cursor; returns the cells used.
    pub(crate) fn typed(&mut self, line: Rect, sign: &str, field: &TextField) -> u16 {
        let shown = mask(field.text());
        let before: String = shown.chars().take(field.cursor()).collect();
        let cells = u16::try_from(width(sign) + width(&before)).unwrap_or(0);
        self.cursor_at(line, cells);
        let pieces = [(sign, self.theme.key()), (&shown, Style::new())];
        self.pieces(line, 0, &pieces)
    }

    /// Puts the terminal's cursor into a line.
    pub(crate) fn cursor_at(&mut self, line: Rect, x: u16) {
        self.cursor = Some(Position {
            x: line.x.saturating_add(x).min(line.right().saturating_sub(1)),
            y: line.y,
        });
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

    /// A list: its headings in the first line, below them the rows around the selected one. Returns which of the rows are visible.
    pub(crate) fn list<R: ListRow>(
        &mut self,
        area: Rect,
        columns: &[ListColumn<R>],
        rows: &[R::At<'_>],
        list: &ListState,
    ) -> Range<usize> {
        let (lines, selected) = (below(area, 1), list.selected);
        let visible = window(selected, rows.len(), usize::from(lines.height));
        self.rows_from(lines, &visible);
        let shown = rows.get(visible.clone()).unwrap_or_default();
        self.rows(area, columns, shown, list.order);
        if self.focus && visible.contains(&selected) {
            let y = u16::try_from(selected - visible.start).unwrap_or(u16::MAX);
            self.selected(line_of(lines, y));
        }
        visible
    }

    /// Marks the selected line.
    pub(crate) fn selected(&mut self, line: Rect) {
        self.text(line, 0, 0, ">", self.theme.strong());
        self.buf.set_style(line, self.theme.selected());
    }

    /// Headings, with an arrow at the one that sorts, and below them these rows.
    pub(crate) fn rows<R: ListRow>(
        &mut self,
        area: Rect,
        columns: &[ListColumn<R>],
        rows: &[R::At<'_>],
        order: ListOrder,
    ) {
        let placed = placed(columns, area.width);
        let mut x = area.x.saturating_add(BEFORE);
        for (column, width) in &placed {
            let (y, width) = (area.y, *width);
            let head = Rect {
                x,
                y,
                width,
                height: 1,
            };
            self.spots
                .push((head, Spot::Head(self.pane, column.head.title)));
            x = x.saturating_add(width + 1);
        }
        let title = |head: ColumnHead| match head.title == order.column {
            true => strong(format!("{}{}", head.title, order.arrow())),
            false => faint(head.title),
        };
        self.row(area, 0, &placed, |column| title(column.head));
        for (y, row) in (1..area.height).zip(rows) {
            let now = self.now;
            self.row(area, y, &placed, |column| (column.shows)(*row, now));
        }
    }

    /// A row apart from the others, whose cells all stand out.
    pub(crate) fn total<R: ListRow>(
        &mut self,
        area: Rect,
        columns: &[ListColumn<R>],
        row: R::At<'_>,
    ) {
        let now = self.now;
        let placed = placed(columns, area.width);
        self.row(area, 0, &placed, |column| (column.shows)(row, now).strong());
    }

    /// One row of a table whose columns are placed.
    fn row<R: ListRow>(
        &mut self,
        area: Rect,
        y: u16,
        placed: &[PlacedColumn<'_, R>],
        shows: impl Fn(&ListColumn<R>) -> ListCell,
    ) {
        let line = Rect {
            x: area.x + BEFORE,
            y: area.y + y,
            width: area.width.saturating_sub(BEFORE),
            height: 1,
        };
        let cells = placed.iter().map(|(column, wide)| {
            let alignment = match column.head.right {
                true => Alignment::Right,
                false => Alignment::Left,
            };
            let cell = shows(column);
            let text = cut(&cell.text, usize::from(*wide));
            Line::styled(text, self.theme.tone(cell.tone)).alignment(alignment)
        });
        let widths = placed.iter().map(|(_, wide)| Constraint::Length(*wide));
        let table = Table::new([Row::new(cells)], widths).column_spacing(1);
        table.render(line.intersection(area), self.buf);
    }

    /// Notes where the rows of a list are, for the mouse; the first line shows this row.
    pub(crate) fn rows_from(&mut self, area: Rect, rows: &Range<usize>) {
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let shown = Rect {
            height: height.min(area.height),
            ..area
        };
        self.spots.push((shown, Spot::Rows(self.pane, rows.start)));
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
        let lines: Vec<Line<'_>> = (lines.iter())
            .map(|line| Line::styled(cut(line, usize::from(area.width)), style))
            .collect();
        Paragraph::new(lines).render(below(area, y), self.buf);
        count
    }

    /// The names of tabs, each with whether it is the one that is shown, and its place for the mouse; closer to each other where room is
    /// short.
    pub(crate) fn tabs(&mut self, area: Rect, tabs: impl Iterator<Item = (String, bool, Spot)>) {
        let tabs: Vec<_> = tabs.collect();
        let names: usize = tabs.iter().map(|(name, ..)| width(name)).sum();
        let fits = |cells: usize| usize::from(area.width) > names + cells * (tabs.len() + 1);
        let (side, gap) = match (fits(3), fits(2)) {
            (true, _) => (" ", 1),
            (false, true) => ("", 2),
            (false, false) => ("", 1),
        };
        let mut x = self.text(area, 0, 0, "[ ]", self.theme.key()) + 2;
        for (name, is_shown, spot) in tabs {
            let style = if is_shown {
                self.theme.selected()
            } else {
                Style::new()
            };
            let width = self.text(area, x, 0, &format!("{side}{name}{side}"), style);
            let place = Rect {
                x: area.x + x,
                width,
                height: 1,
                ..area
            };
            self.spots.push((place, spot));
            x += width + gap;
        }
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

/// An area without its first lines.
pub(crate) fn below(area: Rect, lines: u16) -> Rect {
    Rect {
        y: area.y.saturating_add(lines),
        height: area.height.saturating_sub(lines),
        ..area
    }
}

/// An area without its last lines.
pub(crate) fn above(area: Rect, lines: u16) -> Rect {
    Rect {
        height: area.height.saturating_sub(lines),
        ..area
    }
}

pub(crate) fn line_of(area: Rect, y: u16) -> Rect {
    Rect {
        height: 1,
        ..below(area, y)
    }
}

pub(crate) fn last(area: Rect, lines: u16) -> Rect {
    Rect {
        y: area.bottom().saturating_sub(lines),
        height: lines,
        ..area
    }
}

/// A column, and its width.
type PlacedColumn<'a, R> = (&'a ListColumn<R>, u16);

/// Places columns from the left, after two cells for the cursor; drops optional ones until the rest fits.
fn placed<R: ListRow>(columns: &[ListColumn<R>], total: u16) -> Vec<PlacedColumn<'_, R>> {
    let mut kept: Vec<&ListColumn<R>> = columns.iter().collect();
    let need = |kept: &[&ListColumn<R>]| {
        let least = |column: &&ListColumn<R>| match column.head.width {
            0 => LEAST_REST + 1,
            width => width + 1,
        };
        kept.iter().map(least).sum::<u16>() + 1
    };
    while need(&kept) > total {
        let Some(most) =
            (kept.iter().map(|column| column.head.drop).max()).filter(|most| *most > 0)
        else {
            break;
        };
        kept.retain(|column| column.head.drop != most);
    }
    let fixed: u16 = kept.iter().map(|column| column.head.width + 1).sum::<u16>() + 1;
    let rest = total.saturating_sub(fixed);
    let enough = kept
        .iter()
        .map(|column| column.head.after)
        .find(|after| *after > 0);
    let surplus = rest.saturating_sub(enough.unwrap_or(rest));
    let mut x = BEFORE;
    let mut placed = Vec::with_capacity(kept.len());
    for column in kept {
        let wide = match column.head {
            ColumnHead { width: 0, .. } => rest - surplus,
            ColumnHead {
                after: 0, width, ..
            } => width,
            ColumnHead { width, .. } => width + surplus,
        };
        let wide = wide.min(total.saturating_sub(x));
        // Without a cell it would still take the gap before it.
        if wide > 0 {
            placed.push((column, wide));
        }
        x += wide + 1;
    }
    placed
}
