//! What a list is sorted by, and how its rows are put into that order.

/// What a list is sorted by: a column, as its heading names it, or nothing for the order in which its rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListOrder {
    pub(crate) column: &'static str,
    pub(crate) descending: bool,
}

impl ListOrder {
    /// In the direction that is asked for first: names from A on, numbers and times from the largest on.
    pub(crate) fn first(column: &'static str) -> Self {
        const NAMES: &[&str] = &[
            "",
            "ABILITIES",
            "ACT",
            "BALANCE",
            "BY",
            "BY, WHY",
            "CUSTOMER",
            "DETAILS",
            "ENDED",
            "ENVIRONMENTS",
            "EXTERNAL ID",
            "FILES",
            "KEY",
            "KIND",
            "LABEL",
            "MODEL",
            "NAME",
            "OPERATION",
            "PATH",
            "PROVIDER",
            "REFERENCE",
            "REQUEST",
            "ROUTE, TARGET",
            "SLUG",
            "STATE",
            "VERSION",
            "VIA",
            "WHAT",
            "WHY",
        ];
        Self {
            column,
            descending: !NAMES.contains(&column),
        }
    }

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

/// A value to sort by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortRank {
    Number(i128),
    Text(String),
}

impl SortRank {
    /// Text, without regard to case.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(text.as_ref().to_lowercase())
    }

    /// A number or an instant.
    pub(crate) fn number(number: impl Into<i128>) -> Self {
        Self::Number(number.into())
    }

    /// A share, comparable with others.
    pub(crate) fn share(part: impl Into<i128>, whole: impl Into<i128>) -> Self {
        let part: i128 = part.into();
        let share = part.saturating_mul(1_000_000).checked_div(whole.into());
        Self::Number(share.unwrap_or(-1))
    }
}

/// Rows in an order. Those that are equal stay as they came.
pub(crate) fn sorted<T>(
    mut rows: Vec<T>,
    order: ListOrder,
    rank: impl Fn(&T, &str) -> SortRank,
) -> Vec<T> {
    if order.sorts() && order.descending {
        rows.sort_by_cached_key(|row| std::cmp::Reverse(rank(row, order.column)));
    } else if order.sorts() {
        rows.sort_by_cached_key(|row| rank(row, order.column));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_stay_as_they_came_in_both_directions() {
        let rows = vec![("b", 1), ("A", 1), ("a", 2)];
        let by = |column, descending| {
            let order = ListOrder { column, descending };
            sorted(rows.clone(), order, |row, column| match column {
                "NAME" => SortRank::text(row.0),
                _ => SortRank::number(row.1),
            })
        };
        assert_eq!(by("", true), rows);
        assert_eq!(by("NAME", false), [("A", 1), ("a", 2), ("b", 1)]);
        assert_eq!(by("NAME", true), [("b", 1), ("A", 1), ("a", 2)]);
        assert_eq!(by("NUMBER", true), [("a", 2), ("b", 1), ("A", 1)]);
    }
}
