//! The tab of what waits for a person: payments without an owner, what customers owe, and auto top-ups that failed.

use farebox_ledger::Timestamp;
use farebox_selling::waiting::WaitingThing;

use crate::app::cell::{age, id, plain, short, unknown};
use crate::app::list::{ListColumn, ListRow, fill, in_order, left, right};
use crate::app::order::ListState;

impl ListRow for WaitingThing {
    type At<'a> = &'a WaitingThing;
}

/// The list.
pub(crate) const WAITING: &[ListColumn<WaitingThing>] = &[
    left("WHAT", 15, 0).rising(1, |thing, _| plain(words(thing))),
    left("CUSTOMER", 12, 0).rising(2, |thing, _| id(thing.customer.0)),
    fill("REFERENCE").rising(5, |thing, _| {
        plain(thing.reference.as_deref().unwrap_or("—"))
    }),
    right("USD", 10, 0).falling(3, |thing, _| short(thing.amount.0, 10)),
    right("AGE", 5, 1).falling(4, |thing, now| match &thing.since {
        Some(since) => age(since.0, now),
        None => unknown(),
    }),
];

/// What it is, in a word or two.
fn words(thing: &WaitingThing) -> &'static str {
    match thing.kind {
        "unapplied" => "not booked",
        "reversal" => "went back",
        "claim" => "owed",
        _ => "top-up failed",
    }
}

/// The tab.
#[derive(Debug, Default)]
pub(crate) struct WaitingList {
    rows: Vec<WaitingThing>,
    pub(crate) list: ListState,
    pub(crate) loaded: bool,
    pub(crate) error: Option<String>,
}

impl WaitingList {
    /// Its lines, in their order.
    pub(crate) fn lines(&self, now: Timestamp) -> Vec<&WaitingThing> {
        let rows = self.rows.iter().collect();
        in_order(WAITING, rows, self.list.order, |column, row| {
            column.rank(row, now)
        })
    }

    /// The selected one.
    pub(crate) fn selected(&self, now: Timestamp) -> Option<&WaitingThing> {
        self.lines(now).get(self.list.selected).copied()
    }

    /// Takes what was read.
    pub(crate) fn take(&mut self, answer: Result<Vec<WaitingThing>, String>) {
        self.loaded = true;
        match answer {
            Ok(rows) => (self.rows, self.error) = (rows, None),
            Err(error) => self.error = Some(error),
        }
        self.list.stay_in(self.rows.len());
    }
}
