//! The orders of every list, and sorting by them. Only what the ledger pages through is sorted by the ledger.

use super::ConsoleApp;
use super::audit::AUDIT;
use super::catalog_lists::{MODELS, PUBLISHED, ROUTES};
use super::command::CommandContext;
use super::customers::CUSTOMERS;
use super::detail::PartyDetail;
use super::holds::HOLDS;
use super::keys::{From, KEYS};
use super::list::orders;
use super::live::LIVE;
use super::message::Effect;
use super::money::sums::Sums;
use super::nodes::NODES;
use super::order::ListOrder;

impl ConsoleApp {
    /// The orders of this list as `s` goes through them, each in the direction that is asked for first.
    pub(crate) fn orders(&self) -> Vec<ListOrder> {
        match self.place() {
            CommandContext::Keys => orders(KEYS),
            CommandContext::Customers => orders(CUSTOMERS),
            CommandContext::Detail | CommandContext::Customer => {
                let detail = self.detail.as_ref();
                detail.map(PartyDetail::orders).unwrap_or_default()
            }
            CommandContext::Live => orders(LIVE),
            CommandContext::Models if self.gateway.status.is_some() => orders(MODELS),
            CommandContext::Models => orders(PUBLISHED),
            CommandContext::Routes => orders(ROUTES),
            CommandContext::Holds => orders(HOLDS),
            CommandContext::Audit => orders(AUDIT),
            CommandContext::Money => self.money.orders(),
            CommandContext::Nodes => orders(NODES),
            // Alerts are listed by how much they matter, and Config is a text.
            CommandContext::Config | CommandContext::Alerts => Vec::new(),
        }
    }

    /// What this list is sorted by.
    pub(crate) fn shown_order(&self) -> ListOrder {
        let list = self.list_at(self.place());
        list.map(|list| list.order).unwrap_or_default()
    }

    /// Sorts this list; the cursor goes to its first line.
    pub(crate) fn set_order(&mut self, order: ListOrder) -> Vec<Effect> {
        let place = self.place();
        if let Some(list) = self.list_mut(place) {
            (list.order, list.selected) = (order, 0);
        }
        match place {
            CommandContext::Keys => {
                vec![Effect::LoadKeys(self.keys.request(
                    From::Start,
                    false,
                    false,
                ))]
            }
            CommandContext::Customers => {
                vec![Effect::LoadCustomers(self.customers.request(false, false))]
            }
            CommandContext::Money if self.sums().is_some() => self.with_sums(Sums::reorder),
            _ => Vec::new(),
        }
    }

    /// The next column, or the other direction.
    pub(super) fn sort_next(&mut self, next: bool) -> Vec<Effect> {
        let (orders, now) = (self.orders(), self.shown_order());
        let here = orders.iter().position(|order| order.column == now.column);
        let place = match (here, next) {
            (None, _) => 0,
            (Some(here), true) => (here + 1) % orders.len(),
            // The order in which rows come has no other direction: the first column has.
            (Some(here), false) => here + usize::from(!now.sorts()),
        };
        let mut order = orders.get(place).copied().unwrap_or_default();
        if !next {
            order.descending = !now.descending || !now.sorts();
        }
        self.set_order(order)
    }

    /// Sorts by a column, or in the other direction if it is sorted by it: what a click on a heading does.
    pub(crate) fn sort_column(&mut self, column: &str) -> Vec<Effect> {
        let (orders, now) = (self.orders(), self.shown_order());
        let known = orders.into_iter().find(|order| order.column == column);
        let Some(mut order) = known else {
            self.say(format!("this list is not sorted by {column}"), false);
            return Vec::new();
        };
        if now.column == column {
            order.descending = !now.descending;
        }
        self.set_order(order)
    }
}
