//! What both stores select of described rows: their columns, in the order in which they are read.

use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

use super::grant_rows;
use crate::Customer;
use crate::book::head::StoredCustomer;
use crate::rule::key::KeyRecord;
use crate::table::description::{Described, DescribedRow};
use crate::table::grants::NEXT_GRANT;

/// Selects the rows of a table; a condition may follow.
pub(crate) fn select<T: DescribedRow>() -> String {
    format!("SELECT {} FROM {} ", T::names(), T::TABLE)
}

/// The columns of a row of a table that has this name in its statement.
pub(crate) fn columns_of<T: Described>(table: &str) -> String {
    let columns = T::columns().into_iter();
    let names: Vec<_> = columns
        .map(|column| match column.name {
            NEXT_GRANT => grant_rows::selected(table),
            name => format!("{table}.{name}"),
        })
        .collect();
    names.join(", ")
}

/// A text that is put together when it is first needed.
pub(crate) struct SelectText(LazyLock<String>);

impl SelectText {
    pub(crate) const fn new(of: fn() -> String) -> Self {
        Self(LazyLock::new(of))
    }
}

impl Deref for SelectText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SelectText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self)
    }
}

/// Selects customers `a`, with the ends of their chains; a condition may follow.
pub(crate) static SELECT_CUSTOMER: SelectText = SelectText::new(|| {
    format!(
        "SELECT {} FROM accounts a",
        columns_of::<StoredCustomer>("a")
    )
});

/// The defaults of the house: no row, and so NULL, where there are none.
const STANDING: &str = "(SELECT state FROM defaults)";

/// Selects customers `a` as they are shown, with the defaults; a condition may follow.
pub(crate) static SELECT_SHOWN: SelectText = SelectText::new(|| {
    let columns = columns_of::<Customer>("a");
    format!("SELECT {columns}, {STANDING} FROM accounts a")
});

/// Selects keys `k` with their customers `a` as they are shown, the caps of those in whose caps they count, and the defaults; a condition
/// may follow.
pub(crate) static SELECT_KEY: SelectText = SelectText::new(|| {
    format!(
        "SELECT {}, {}, (SELECT m.caps FROM keys m WHERE m.id = k.counts_in), {STANDING} FROM keys k JOIN accounts a ON a.id = k.customer",
        columns_of::<KeyRecord>("k"),
        columns_of::<Customer>("a")
    )
});
