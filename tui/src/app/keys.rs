//! State of the Keys screen: a window that slides over all keys, never a list of all of them.
//!
//! Pages are requested by key (what comes after this one, before that one), so page N costs the same as page 1. The window has at
//! most [`WINDOW`] rows; answers to older queries are dropped by their generation.

use std::collections::VecDeque;

use farebox_ledger::{Amount, Key, KeyId, KeyOrder, KeyPlace, Timestamp};

use super::cell::{ListCell, age, date, faint, id, money, number, plain, state, unknown};
use super::list::{
    ListColumn, ListRow, fill, first_order, in_order, key_order, left, right, sorts_here, window,
};
use super::order::ListState;
use super::party::{customer_of, state_word};
use super::party_filter::KeyFilter;
use super::tone::Tone;

/// Rows requested at once.
pub(crate) const PAGE: usize = 200;
/// Rows kept, and the most that the console sorts by itself.
pub(crate) const WINDOW: usize = 1000;

/// What was charged in the last day: read only for the rows that are shown, and for all if they are sorted by it.
const DAY: &str = "24 h";

pub(crate) const KEYS: &[ListColumn<ListedKey>] = &[
    left("KEY", 12, 1).rising(6, |row, _| id(row.key.id)),
    fill("LABEL").rising(5, |row, _| plain(&row.key.settings.label)),
    left("CUSTOMER", 16, 7).rising(9, |row, _| faint(customer_of(&row.key))),
    right("BALANCE", 12, 0).in_keys(2, KeyOrder::LowestBalance, |row, _| {
        money(row.key.customer.account.balance()).strong()
    }),
    right("HELD", 9, 3).in_keys(3, KeyOrder::MostHeld, |row, _| {
        held(row.key.customer.account.held)
    }),
    right(DAY, 9, 4).falling(7, |row, _| match row.day {
        Some(day) => money(day),
        None => plain("…").by(number(-1)),
    }),
    right("LAST", 7, 6).in_keys(4, KeyOrder::LastUsed, |row, now| {
        last_entry(row.key.customer.last_entry_at, now)
    }),
    left("CREATED", 10, 5).in_keys(1, KeyOrder::Newest, |row, _| date(row.key.created_at)),
    left("STATE", 7, 0).rising(8, |row, now| state(state_word(&row.key, now))),
];

impl ListRow for ListedKey {
    type At<'a> = &'a Self;
}

/// What running requests hold.
pub(super) fn held(amount: Amount) -> ListCell {
    money(amount).toned(Tone::Faint.when(!amount.is_positive()))
}

/// How long ago the last entry was.
pub(super) fn last_entry(at: Option<Timestamp>, now: Timestamp) -> ListCell {
    at.map_or_else(unknown, |at| age(at, now)).faint()
}

/// The start of a requested page. A place is that of a row as it was read: rows that have moved since do not shift the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Start,
    End,
    After(KeyPlace),
    Before(KeyPlace),
}

/// A query for one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysRequest {
    pub(crate) generation: u64,
    pub(crate) filter: KeyFilter,
    pub(crate) order: KeyOrder,
    pub(crate) from: From,
    /// How many rows; fewer are the last ones.
    pub(crate) limit: usize,
    /// Delayed slightly, because the user is still typing.
    pub(crate) debounce: bool,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysPage {
    pub(crate) generation: u64,
    pub(crate) from: From,
    pub(crate) rows: Vec<Key>,
    /// There are no more rows in the requested direction.
    pub(crate) ended: bool,
    pub(crate) took_ms: u64,
    /// When it was read: rows that have moved since keep their places.
    pub(crate) at: Timestamp,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedKey {
    pub(crate) key: Key,
    /// Charged in the last 24 hours, once known.
    pub(crate) day: Option<Amount>,
    place: KeyPlace,
}

/// How many keys match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchCount {
    pub(crate) keys: u64,
    /// Counting stopped here; there are more.
    pub(crate) more: bool,
}

#[derive(Debug, Default)]
pub(crate) struct KeysScreen {
    pub(crate) rows: VecDeque<ListedKey>,
    pub(crate) list: ListState,
    pub(crate) filter: KeyFilter,
    pub(crate) filter_error: Option<String>,
    pub(crate) count: Option<MatchCount>,
    pub(crate) took_ms: u64,
    /// When the order in the window was read.
    pub(crate) ordered_at: Option<Timestamp>,
    pub(crate) loaded: bool,
    pub(crate) loading: bool,
    pub(crate) error: Option<String>,
    pub(crate) generation: u64,
    /// The row to select when the window is next replaced.
    pub(crate) wanted: Option<KeyId>,
    at_start: bool,
    at_end: bool,
    /// Position of the first row among all, when it is known.
    first: Option<u64>,
}

impl KeysScreen {
    pub(crate) fn new() -> Self {
        Self {
            list: ListState::sorted_by(first_order(KEYS)),
            ..Self::default()
        }
    }

    /// The selected row.
    pub(crate) fn row(&self) -> Option<&ListedKey> {
        self.rows.get(self.list.selected)
    }

    /// Whether the window reaches both ends, so that its length is the count.
    pub(crate) const fn is_whole(&self) -> bool {
        self.at_start && self.at_end
    }

    /// Position of the first row of the window among all, when it is known.
    pub(crate) fn first_position(&self) -> Option<u64> {
        if self.at_start { Some(0) } else { self.first }
    }

    /// The rows that a list of `height` lines shows: those around the selected one.
    pub(crate) fn visible(&self, height: usize) -> std::ops::Range<usize> {
        window(self.list.selected, self.rows.len(), height)
    }

    /// A query for a page; answers to earlier ones are dropped from now on, unless it only extends the window. `keep` leaves the
    /// cursor on its key.
    pub(crate) fn request(&mut self, from: From, keep: bool, debounce: bool) -> KeysRequest {
        if matches!(from, From::Start | From::End) {
            self.generation += 1;
            self.count = None;
            self.wanted = self.row().filter(|_| keep).map(|row| row.key.id);
        }
        self.loading = true;
        let in_ledger = key_order(KEYS, self.list.order);
        KeysRequest {
            // What the ledger has no order for is sorted here, where all rows are needed at once.
            limit: in_ledger.map_or(WINDOW, |_| PAGE),
            generation: self.generation,
            filter: self.filter.clone(),
            order: in_ledger.unwrap_or(KeyOrder::Newest),
            from,
            debounce,
        }
    }

    /// Puts rows that the ledger has no order for into theirs; the cursor stays on its key. Where the window does not hold all of
    /// them, they remain in the order of creation, in which they were read.
    fn sort_here(&mut self) {
        let is_whole = self.is_whole();
        if !sorts_here(KEYS, &mut self.list, is_whole, first_order(KEYS)) {
            return;
        }
        let selected = self.row().map(|row| row.key.id);
        let now = self.ordered_at.unwrap_or_default();
        let rows = Vec::from(std::mem::take(&mut self.rows));
        let rows = in_order(KEYS, rows, self.list.order, |column, row| {
            column.rank(row, now)
        });
        self.rows = rows.into();
        let kept = self
            .rows
            .iter()
            .position(|row| Some(row.key.id) == selected);
        self.list.selected = kept.unwrap_or(0);
    }

    /// Whether they are sorted by creation, whose order does not age.
    pub(crate) fn is_as_created(&self) -> bool {
        self.list.order.column == first_order(KEYS).column
    }

    /// Whether the charges of the last day are needed for all rows.
    pub(crate) fn is_by_day(&self) -> bool {
        self.list.order.column == DAY
    }

    /// Whether the rows still have another order, or there are none.
    pub(crate) fn is_sorting(&self) -> bool {
        self.loading && !self.is_as_created()
    }

    /// The query for more rows, when the selection has moved near an end of the window.
    pub(crate) fn request_more(&mut self, down: bool) -> Option<KeysRequest> {
        if self.loading {
            return None;
        }
        let (near, last) = (PAGE / 2, self.rows.len().saturating_sub(1));
        if down && !self.at_end && self.list.selected + near > last {
            let from = self.rows.back().map(|row| From::After(row.place))?;
            return Some(self.request(from, false, false));
        }
        if !down && !self.at_start && self.list.selected < near {
            let from = self.rows.front().map(|row| From::Before(row.place))?;
            return Some(self.request(from, false, false));
        }
        None
    }

    /// Goes to the first or last key of all.
    pub(crate) fn jump(&mut self, end: bool) -> Option<KeysRequest> {
        if end && self.at_end {
            self.list.selected = self.rows.len().saturating_sub(1);
            return None;
        }
        if !end && self.at_start {
            self.list.selected = 0;
            return None;
        }
        Some(self.request(if end { From::End } else { From::Start }, false, false))
    }

    /// Applies an answer.
    pub(crate) fn take(&mut self, page: KeysPage) {
        if page.generation != self.generation {
            return;
        }
        (self.loading, self.loaded, self.error) = (false, true, None);
        self.took_ms = page.took_ms;
        let order = key_order(KEYS, self.list.order).unwrap_or(KeyOrder::Newest);
        let rows = page.rows.into_iter().map(|key| ListedKey {
            place: order.place(&key),
            key,
            day: None,
        });
        match page.from {
            From::Start | From::End => {
                self.ordered_at = Some(page.at);
                self.replace(rows.collect(), page.from == From::End, page.ended);
                self.sort_here();
            }
            From::After(after) if self.rows.back().is_some_and(|row| row.place == after) => {
                self.rows.extend(rows);
                self.at_end = page.ended;
                while self.rows.len() > WINDOW && self.list.selected > 0 {
                    self.rows.pop_front();
                    self.first = self.first.map(|first| first + 1);
                    self.list.selected -= 1;
                    self.at_start = false;
                }
            }
            From::Before(before) if self.rows.front().is_some_and(|row| row.place == before) => {
                let new: Vec<ListedKey> = rows.collect();
                self.list.selected += new.len();
                self.first = self
                    .first
                    .map(|first| first.saturating_sub(new.len() as u64));
                new.into_iter()
                    .rev()
                    .for_each(|row| self.rows.push_front(row));
                self.at_start = page.ended;
                while self.rows.len() > WINDOW && self.list.selected + 1 < self.rows.len() {
                    self.rows.pop_back();
                    self.at_end = false;
                }
            }
            // The window was moved or replaced meanwhile, and this page no longer adjoins it.
            From::After(..) | From::Before(..) => {}
        }
    }

    fn replace(&mut self, mut rows: VecDeque<ListedKey>, end: bool, ended: bool) {
        let wanted = self.wanted.take();
        for row in &mut rows {
            row.day = self
                .rows
                .iter()
                .find(|old| old.key.id == row.key.id)
                .and_then(|old| old.day);
        }
        self.rows = rows;
        (self.at_start, self.at_end) = if end { (ended, true) } else { (true, ended) };
        self.first = (!end || ended).then_some(0);
        let last = self.rows.len().saturating_sub(1);
        let found = self.rows.iter().position(|row| Some(row.key.id) == wanted);
        self.list.selected = found.unwrap_or(if end { last } else { 0 });
    }

    /// Puts fresher values into rows that are in the window.
    pub(crate) fn refresh(&mut self, fresh: Vec<(Key, Option<Amount>)>) -> bool {
        let mut changed = false;
        for (key, day) in fresh {
            if let Some(row) = self.rows.iter_mut().find(|row| row.key.id == key.id) {
                let day = day.or(row.day);
                changed |= row.key != key || row.day != day;
                (row.key, row.day) = (key, day);
            }
        }
        if changed && self.is_by_day() {
            self.sort_here();
        }
        changed
    }
}
