//! A list, said once: for each column its heading and width, what its cells show, and who sorts by it.
//!
//! Headings, cells, the orders that `s` goes through and sorting all read the same constant, which stands beside its type of rows.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use farebox_ledger::{KeyOrder, MarginOrder, Timestamp};

use super::cell::{ListCell, SortRank};
use super::order::{ListOrder, ListState};

/// A type that lists have rows of.
pub(crate) trait ListRow {
    /// What columns get of one: a reference to it, and what else its cells need.
    type At<'a>: Copy;
}

pub(crate) struct ListColumn<R: ListRow> {
    pub(crate) head: ColumnHead,
    pub(crate) shows: Shows<R>,
    /// When `s` comes to it; 0 is never.
    turn: u8,
    /// Whether the largest come first when it is first asked for.
    descending: bool,
    sorts: SortedBy,
}

impl<R: ListRow> fmt::Debug for ListColumn<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.head.title)
    }
}

/// The cell of a row at an instant.
type Shows<R> = for<'a> fn(<R as ListRow>::At<'a>, Timestamp) -> ListCell;

/// The heading of a column, and its place beside the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnHead {
    pub(crate) title: &'static str,
    /// Width in cells; 0 takes what is left.
    pub(crate) width: u16,
    /// Right-aligned, for numbers.
    pub(crate) right: bool,
    /// The order in which columns are dropped when room is short, highest first; 0 is never dropped.
    pub(crate) drop: u8,
    /// Once the column that takes what is left has so many cells, this one takes the others; 0 never does.
    pub(crate) after: u16,
}

/// Who sorts by a column.
#[derive(Clone, Copy)]
enum SortedBy {
    Nobody,
    /// The console, by what is behind the cells.
    Console,
    /// The ledger; this is how it is first asked for.
    Keys(KeyOrder),
    Sums(MarginOrder),
}

/// The heading of a text column.
pub(crate) const fn left(title: &'static str, width: u16, drop: u8) -> ColumnHead {
    let (right, after) = (false, 0);
    ColumnHead {
        title,
        width,
        right,
        drop,
        after,
    }
}

/// The heading of a column of numbers.
pub(crate) const fn right(title: &'static str, width: u16, drop: u8) -> ColumnHead {
    ColumnHead {
        right: true,
        ..left(title, width, drop)
    }
}

/// The heading of the text column that takes what is left.
pub(crate) const fn fill(title: &'static str) -> ColumnHead {
    left(title, 0, 0)
}

impl ColumnHead {
    /// Takes what another column leaves that has so many cells.
    pub(crate) const fn after(self, cells: u16) -> Self {
        Self {
            after: cells,
            ..self
        }
    }

    const fn column<R: ListRow>(
        self,
        (turn, descending, sorts): (u8, bool, SortedBy),
        shows: Shows<R>,
    ) -> ListColumn<R> {
        ListColumn {
            head: self,
            shows,
            turn,
            descending,
            sorts,
        }
    }

    /// A column that nothing is sorted by.
    pub(crate) const fn shows<R: ListRow>(self, shows: Shows<R>) -> ListColumn<R> {
        self.column((0, false, SortedBy::Nobody), shows)
    }

    /// One that sorts in its turn, the smallest first.
    pub(crate) const fn rising<R: ListRow>(self, turn: u8, shows: Shows<R>) -> ListColumn<R> {
        self.column((turn, false, SortedBy::Console), shows)
    }

    /// One that sorts in its turn, the largest first.
    pub(crate) const fn falling<R: ListRow>(self, turn: u8, shows: Shows<R>) -> ListColumn<R> {
        self.column((turn, true, SortedBy::Console), shows)
    }

    /// One by which the ledger sorts keys or customers, in this order first.
    pub(crate) const fn in_keys<R: ListRow>(
        self,
        turn: u8,
        order: KeyOrder,
        shows: Shows<R>,
    ) -> ListColumn<R> {
        self.column((turn, order.is_descending(), SortedBy::Keys(order)), shows)
    }

    /// One by which the ledger sorts sums.
    pub(crate) const fn in_sums<R: ListRow>(
        self,
        turn: u8,
        order: MarginOrder,
        shows: Shows<R>,
    ) -> ListColumn<R> {
        let descending = !matches!(order, MarginOrder::Name);
        self.column((turn, descending, SortedBy::Sums(order)), shows)
    }
}

impl<R: ListRow> ListColumn<R> {
    /// What a row is sorted by, if the console sorts by this column.
    pub(crate) fn rank(&self, row: R::At<'_>, now: Timestamp) -> Option<SortRank> {
        matches!(self.sorts, SortedBy::Console).then(|| (self.shows)(row, now).rank)
    }

    /// The order by it that is first asked for.
    const fn order(&self) -> ListOrder {
        ListOrder {
            column: self.head.title,
            descending: self.descending,
        }
    }
}

fn column_of<R: ListRow>(columns: &[ListColumn<R>], order: ListOrder) -> Option<&ListColumn<R>> {
    columns
        .iter()
        .find(|column| column.head.title == order.column)
}

/// The ledger's order of keys or customers, if it has one by this column.
pub(crate) fn key_order<R: ListRow>(
    columns: &[ListColumn<R>],
    order: ListOrder,
) -> Option<KeyOrder> {
    match column_of(columns, order)?.sorts {
        SortedBy::Keys(known) if known.is_descending() == order.descending => Some(known),
        SortedBy::Keys(known) => Some(known.reversed()),
        SortedBy::Nobody | SortedBy::Console | SortedBy::Sums(_) => None,
    }
}

/// The ledger's order of sums, if it has one by this column, and whether it is reversed.
pub(crate) fn sum_order<R: ListRow>(
    columns: &[ListColumn<R>],
    order: ListOrder,
) -> Option<(MarginOrder, bool)> {
    let column = column_of(columns, order)?;
    match column.sorts {
        SortedBy::Sums(known) => Some((known, column.descending != order.descending)),
        SortedBy::Nobody | SortedBy::Console | SortedBy::Keys(_) => None,
    }
}

/// The orders that `s` goes through, each as it is first asked for. Rows that the ledger does not sort have one more: as they come.
pub(crate) fn orders<R: ListRow>(columns: &[ListColumn<R>]) -> Vec<ListOrder> {
    let mut turns: Vec<_> = columns.iter().filter(|column| column.turn > 0).collect();
    turns.sort_by_key(|column| column.turn);
    let in_ledger =
        |column: &&ListColumn<R>| matches!(column.sorts, SortedBy::Keys(_) | SortedBy::Sums(_));
    let as_they_come = (!turns.iter().any(in_ledger)).then(ListOrder::default);
    let turns = turns.into_iter().map(ListColumn::order);
    as_they_come.into_iter().chain(turns).collect()
}

/// That of the first turn.
pub(crate) fn first_order<R: ListRow>(columns: &[ListColumn<R>]) -> ListOrder {
    orders(columns).first().copied().unwrap_or_default()
}

/// Rows in an order, if the console sorts by its column. Those that are equal stay as they came.
pub(crate) fn sorted<'a, R: ListRow>(
    columns: &[ListColumn<R>],
    rows: Vec<R::At<'a>>,
    order: ListOrder,
    now: Timestamp,
) -> Vec<R::At<'a>> {
    in_order(columns, rows, order, |column, row| column.rank(*row, now))
}

/// The same for what rows are made of.
pub(crate) fn in_order<R: ListRow, T>(
    columns: &[ListColumn<R>],
    mut rows: Vec<T>,
    order: ListOrder,
    rank: impl Fn(&ListColumn<R>, &T) -> Option<SortRank>,
) -> Vec<T> {
    match column_of(columns, order) {
        Some(column) if order.descending => {
            rows.sort_by_cached_key(|row| Reverse(rank(column, row)));
        }
        Some(column) => rows.sort_by_cached_key(|row| rank(column, row)),
        None => {}
    }
    rows
}

/// Whether the console sorts the rows that came, which it only does if all are here. Else they remain in the ledger's order.
pub(crate) fn sorts_here<R: ListRow>(
    columns: &[ListColumn<R>],
    list: &mut ListState,
    all_here: bool,
    in_ledger: ListOrder,
) -> bool {
    let sorts = column_of(columns, list.order)
        .is_some_and(|column| matches!(column.sorts, SortedBy::Console));
    if sorts && !all_here {
        list.unsorted = Some(list.order.column);
        list.order = in_ledger;
    }
    sorts && all_here
}

/// The lines around `selected` that fit into `height`.
pub(crate) fn window(selected: usize, rows: usize, height: usize) -> Range<usize> {
    let start = selected
        .saturating_sub(height / 2)
        .min(rows.saturating_sub(height));
    start..rows.min(start.saturating_add(height))
}

#[cfg(test)]
mod tests {
    use super::super::cell::{count, plain};
    use super::*;

    impl ListRow for (&'static str, u64) {
        type At<'a> = Self;
    }

    const PAIRS: &[ListColumn<(&str, u64)>] = &[
        fill("NAME").rising(2, |pair, _| plain(pair.0)),
        right("NUMBER", 6, 0).falling(1, |pair, _| count(pair.1)),
        right("TWICE", 6, 0).shows(|pair, _| count(pair.1 * 2)),
    ];

    #[test]
    fn equal_rows_stay_as_they_came_in_both_directions() {
        let rows = vec![("b", 1), ("A", 1), ("a", 2)];
        let by = |column, descending| {
            let order = ListOrder { column, descending };
            sorted(PAIRS, rows.clone(), order, Timestamp::default())
        };
        assert_eq!(by("", true), rows);
        assert_eq!(by("NAME", false), [("A", 1), ("a", 2), ("b", 1)]);
        assert_eq!(by("NAME", true), [("b", 1), ("A", 1), ("a", 2)]);
        assert_eq!(by("NUMBER", true), [("a", 2), ("b", 1), ("A", 1)]);
        assert_eq!(by("TWICE", true), rows, "nobody sorts by it");
    }

    #[test]
    fn rows_come_as_they_are_unless_the_ledger_pages_through_them() {
        let columns = |columns: &[ListColumn<(&'static str, u64)>]| {
            let orders = orders(columns).into_iter();
            orders.map(|order| order.column).collect::<Vec<_>>()
        };
        assert_eq!(columns(PAIRS), ["", "NUMBER", "NAME"]);
        let paged: [ListColumn<(&str, u64)>; 1] =
            [right("HELD", 6, 0).in_keys(1, KeyOrder::MostHeld, |pair, _| count(pair.1))];
        assert_eq!(columns(&paged), ["HELD"]);
        let order = |descending| {
            key_order(
                &paged,
                ListOrder {
                    column: "HELD",
                    descending,
                },
            )
        };
        assert_eq!(order(true), Some(KeyOrder::MostHeld));
        assert_eq!(order(false), Some(KeyOrder::LeastHeld));
    }
}
