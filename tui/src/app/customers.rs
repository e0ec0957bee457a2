//! State of the Customers screen: customers, page after page as far as one scrolls, with their keys folded into their lines.
//!
//! Answers to older questions are dropped by their generation. The selection is a line: a customer, or a key below it.

use std::collections::BTreeMap;

use farebox_ledger::{Customer, CustomerId, Key, KeyOrder, Scope, Timestamp};

use super::cell::{ListCell, date, faint, id, money, plain, state};
use super::keys::{PAGE, WINDOW, held, last_entry};
use super::list::{
    ListColumn, ListRow, fill, first_order, in_order, key_order, left, right, sorts_here,
};
use super::order::ListState;
use super::party::{customer_word, state_word};
use super::party_filter::CustomerFilter;

/// The list. A key has no money of its own: what it may spend stands in the column of what is available.
pub(crate) const CUSTOMERS: &[ListColumn<CustomerLine>] = &[
    left("CUSTOMER", 14, 0).rising(8, |line, _| match line {
        CustomerLine::Customer(customer, true) => id(format!("▾ {}", customer.id)),
        CustomerLine::Customer(customer, false) => id(format!("▸ {}", customer.id)),
        CustomerLine::Key(key) => faint(format!("  {}", key.id)),
        CustomerLine::Note(_) => plain(""),
    }),
    fill("LABEL").rising(6, |line, _| match line {
        CustomerLine::Customer(customer, _) => plain(&customer.settings.label),
        CustomerLine::Key(key) => plain(format!("  {}", key.settings.label)),
        CustomerLine::Note(text) => faint(format!("  {text}")),
    }),
    left("EXTERNAL ID", 12, 2).rising(7, |line, _| {
        line.shows(
            |customer| faint(customer.settings.external_id.as_deref().unwrap_or_default()),
            |key| faint(if key.is_owner { "owner" } else { "" }),
        )
    }),
    right("BALANCE", 11, 0).in_keys(2, KeyOrder::LowestBalance, |line, _| {
        line.money(|customer| money(customer.account.balance()).strong())
    }),
    right("HELD", 8, 3).in_keys(3, KeyOrder::MostHeld, |line, _| {
        line.money(|customer| held(customer.account.held))
    }),
    right("AVAILABLE", 11, 4).falling(5, |line, now| {
        line.shows(
            |customer| money(customer.available("")),
            |key| money(key.spendable(now)).faint(),
        )
    }),
    right("LAST", 7, 6).in_keys(4, KeyOrder::LastUsed, |line, now| {
        line.money(|customer| last_entry(customer.last_entry_at, now))
    }),
    left("CREATED", 10, 5).in_keys(1, KeyOrder::Newest, |line, _| {
        line.shows(
            |customer| date(customer.created_at),
            |key| date(key.created_at),
        )
    }),
    left("STATE", 9, 0).rising(9, |line, now| {
        line.shows(
            |customer| state(customer_word(customer)),
            |key| state(state_word(key, now)),
        )
    }),
];
/// Customers that are kept; nobody scrolls further, a filter finds the others.
pub(crate) const MOST: usize = 10_000;

/// A query for one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CustomersRequest {
    pub(crate) generation: u64,
    pub(crate) filter: CustomerFilter,
    pub(crate) order: KeyOrder,
    pub(crate) after: Option<(i64, CustomerId)>,
    pub(crate) limit: usize,
    /// Delayed slightly, because the user is still typing.
    pub(crate) debounce: bool,
}

/// The answer.
#[derive(Debug)]
pub(crate) struct CustomersPage {
    pub(crate) generation: u64,
    /// It goes on after the rows that are there.
    pub(crate) more: bool,
    pub(crate) rows: Result<Vec<Customer>, String>,
    /// There are no more.
    pub(crate) ended: bool,
    pub(crate) at: Timestamp,
}

/// A line of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CustomerLine<'a> {
    /// Whether its keys are shown.
    Customer(&'a Customer, bool),
    /// A key of the customer above it.
    Key(&'a Key),
    /// There is no key to show, and why.
    Note(&'a str),
}

impl ListRow for CustomerLine<'static> {
    type At<'a> = CustomerLine<'a>;
}

impl CustomerLine<'_> {
    /// A cell of a customer or a key; a note has but one.
    fn shows(
        self,
        customer: impl Fn(&Customer) -> ListCell,
        key: impl Fn(&Key) -> ListCell,
    ) -> ListCell {
        match self {
            Self::Customer(shown, _) => customer(shown),
            Self::Key(shown) => key(shown),
            Self::Note(_) => plain(""),
        }
    }

    /// A cell that only customers have.
    fn money(self, customer: impl Fn(&Customer) -> ListCell) -> ListCell {
        self.shows(customer, |_| plain(""))
    }
}

#[derive(Debug, Default)]
pub(crate) struct CustomersScreen {
    pub(crate) rows: Vec<Customer>,
    /// The customers whose keys are shown.
    unfolded: BTreeMap<CustomerId, Result<Vec<Key>, String>>,
    /// Of the lines.
    pub(crate) list: ListState,
    pub(crate) filter: CustomerFilter,
    pub(crate) filter_error: Option<String>,
    pub(crate) loaded: bool,
    pub(crate) loading: bool,
    pub(crate) ended: bool,
    pub(crate) error: Option<String>,
    /// When the order of the rows was read.
    pub(crate) ordered_at: Option<Timestamp>,
    generation: u64,
    /// The customer to select when the rows are next replaced.
    wanted: Option<CustomerId>,
}

impl CustomersScreen {
    pub(crate) fn new() -> Self {
        Self {
            list: ListState::sorted_by(first_order(CUSTOMERS)),
            ..Self::default()
        }
    }

    /// Customers, each followed by its keys if they are shown.
    pub(crate) fn lines(&self) -> Vec<CustomerLine<'_>> {
        let mut lines = Vec::with_capacity(self.rows.len());
        for customer in &self.rows {
            let keys = self.unfolded.get(&customer.id);
            lines.push(CustomerLine::Customer(customer, keys.is_some()));
            match keys {
                None => {}
                Some(Ok(keys)) if keys.is_empty() => lines.push(CustomerLine::Note("no keys")),
                Some(Ok(keys)) => lines.extend(keys.iter().map(CustomerLine::Key)),
                Some(Err(why)) => lines.push(CustomerLine::Note(why)),
            }
        }
        lines
    }

    /// The customer of the selected line.
    pub(crate) fn customer(&self) -> Option<&Customer> {
        let lines = self.lines();
        let above = lines.get(..=self.list.selected).unwrap_or(&lines);
        above.iter().rev().find_map(|line| match line {
            CustomerLine::Customer(customer, _) => Some(*customer),
            CustomerLine::Key(_) | CustomerLine::Note(_) => None,
        })
    }

    /// What the selected line opens.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self.lines().get(self.list.selected)? {
            CustomerLine::Customer(customer, _) => Some(customer.id.into()),
            CustomerLine::Key(key) => Some(key.id.into()),
            CustomerLine::Note(_) => None,
        }
    }

    /// The customers whose keys are shown, which change with them.
    pub(crate) fn unfolded(&self) -> impl Iterator<Item = CustomerId> {
        self.unfolded.keys().copied()
    }

    /// Shows the keys of the selected customer, or folds them in; returns whose keys to read.
    pub(crate) fn fold(&mut self) -> Option<CustomerId> {
        let id = self.customer()?.id;
        let shown = self.unfolded.remove(&id).is_some();
        // A line below it may have been selected.
        self.select(id);
        if shown {
            return None;
        }
        self.unfolded.insert(id, Err("reading …".to_owned()));
        Some(id)
    }

    /// Takes the keys of a customer, unless they were folded in meanwhile.
    pub(crate) fn take_keys(&mut self, id: CustomerId, keys: Result<Vec<Key>, String>) -> bool {
        let selected = self.scope_below();
        let known = self.unfolded.get_mut(&id).filter(|known| **known != keys);
        let Some(known) = known else {
            return false;
        };
        *known = keys;
        if let Some(scope) = selected {
            self.select_scope(scope);
        }
        true
    }

    /// The selected line, to find it again when lines above it come or go.
    fn scope_below(&self) -> Option<Scope> {
        self.scope().or_else(|| Some(self.customer()?.id.into()))
    }

    fn select(&mut self, id: CustomerId) {
        self.select_scope(id.into());
    }

    fn select_scope(&mut self, scope: Scope) {
        let is_it = |line: &CustomerLine<'_>| match (line, scope) {
            (CustomerLine::Customer(customer, _), Scope::Customer(id)) => customer.id == id,
            (CustomerLine::Key(key), Scope::Key(id)) => key.id == id,
            _ => false,
        };
        let (found, lines) = {
            let lines = self.lines();
            (lines.iter().position(is_it), lines.len())
        };
        self.list.selected = found
            .unwrap_or(self.list.selected)
            .min(lines.saturating_sub(1));
    }

    /// Whether the rows still have another order.
    pub(crate) fn is_sorting(&self) -> bool {
        self.loading && self.list.order.column != first_order(CUSTOMERS).column
    }

    fn key_order(&self) -> KeyOrder {
        key_order(CUSTOMERS, self.list.order).unwrap_or(KeyOrder::Newest)
    }

    /// A query for the first page, whose answer replaces the rows. `keep` leaves the cursor on its customer.
    pub(crate) fn request(&mut self, keep: bool, debounce: bool) -> CustomersRequest {
        self.generation += 1;
        let kept = self.customer().filter(|_| keep).map(|customer| customer.id);
        self.wanted = self.wanted.take().or(kept);
        self.ask(None, debounce)
    }

    /// A query for what follows, if there is more and the cursor comes near its end.
    pub(crate) fn request_more(&mut self) -> Option<CustomersRequest> {
        let near = self.list.selected + PAGE / 2 > self.lines().len();
        if self.loading || self.ended || !near || self.rows.len() >= MOST {
            return None;
        }
        let after = self.key_order().place_of_customer(self.rows.last()?);
        Some(self.ask(Some(after), false))
    }

    fn ask(&mut self, after: Option<(i64, CustomerId)>, debounce: bool) -> CustomersRequest {
        self.loading = true;
        CustomersRequest {
            generation: self.generation,
            filter: self.filter.clone(),
            order: self.key_order(),
            after,
            // What the ledger has no order for is sorted here, where all rows are needed at once.
            limit: key_order(CUSTOMERS, self.list.order).map_or(WINDOW, |_| PAGE),
            debounce,
        }
    }

    /// Selects this customer when the rows are next replaced.
    pub(crate) const fn want(&mut self, id: CustomerId) {
        self.wanted = Some(id);
    }

    /// Applies an answer.
    pub(crate) fn take(&mut self, page: CustomersPage) {
        if page.generation != self.generation {
            return;
        }
        (self.loading, self.loaded) = (false, true);
        match page.rows {
            Err(error) => self.error = Some(error),
            Ok(rows) => {
                (self.error, self.ended) = (None, page.ended);
                if page.more {
                    self.rows.extend(rows);
                } else {
                    (self.rows, self.ordered_at) = (rows, Some(page.at));
                    self.sort_here();
                    let wanted = self.wanted.take();
                    self.list.stay_in(self.lines().len());
                    if let Some(id) = wanted {
                        self.select(id);
                    }
                }
            }
        }
    }

    /// Puts rows that the ledger has no order for into theirs, if all are here.
    fn sort_here(&mut self) {
        if !sorts_here(
            CUSTOMERS,
            &mut self.list,
            self.ended,
            first_order(CUSTOMERS),
        ) {
            return;
        }
        let now = self.ordered_at.unwrap_or_default();
        let rows = std::mem::take(&mut self.rows);
        self.rows = in_order(CUSTOMERS, rows, self.list.order, |column, row| {
            column.rank(CustomerLine::Customer(row, false), now)
        });
    }

    /// Puts fresher values into rows; whether one differs.
    pub(crate) fn refresh(&mut self, fresh: &Customer) -> bool {
        let row = self.rows.iter_mut().find(|row| row.id == fresh.id);
        let Some(row) = row.filter(|row| *row != fresh) else {
            return false;
        };
        *row = fresh.clone();
        true
    }
}
