//! Where one is in a list, and which of its rows are shown in which order.

/// A list, as its reader has left it.
#[derive(Debug, Default)]
pub(crate) struct ListState {
    /// The row under the cursor.
    pub(crate) selected: usize,
    /// What was typed to narrow it.
    pub(crate) filter: String,
    pub(crate) order: ListOrder,
    /// The column by which there are more rows than the console sorts, until that is said.
    pub(crate) unsorted: Option<&'static str>,
}

/// What a list is sorted by: a column, as its heading names it, or nothing for the order in which its rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListOrder {
    pub(crate) column: &'static str,
    pub(crate) descending: bool,
}

impl ListState {
    /// Its beginning, in an order.
    pub(crate) fn sorted_by(order: ListOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Moves the cursor in a list of so many rows.
    pub(crate) fn move_by(&mut self, lines: isize, rows: usize) {
        self.selected = self.selected.saturating_add_signed(lines);
        self.stay_in(rows);
    }

    /// Keeps the cursor in a list of so many rows.
    pub(crate) fn stay_in(&mut self, rows: usize) {
        self.selected = self.selected.min(rows.saturating_sub(1));
    }

    /// For the title of a screen.
    pub(crate) fn filter_in_title(&self) -> String {
        if self.filter.is_empty() {
            String::new()
        } else {
            format!(" · {}", crate::sanitize::mask(&self.filter))
        }
    }
}

impl ListOrder {
    /// Whether the rows are in another order than they come in.
    pub(crate) const fn sorts(self) -> bool {
        !self.column.is_empty()
    }

    /// `▼` if it begins with the largest.
    pub(crate) const fn arrow(self) -> char {
        if self.descending { '▼' } else { '▲' }
    }

    /// For the title of a screen; nothing while the rows are as they come.
    pub(crate) fn in_title(self) -> String {
        if self.sorts() {
            format!(" · {} {}", self.column, self.arrow())
        } else {
            String::new()
        }
    }
}
