//! What the Customers screen asks for.

use farebox_ledger::CustomerId;

use super::ConsoleApp;
use super::customers::CustomerLine;
use super::list::window;
use super::message::Effect;

impl ConsoleApp {
    /// Shows the keys of the selected customer below it, or folds them in.
    pub(super) fn fold(&mut self) -> Vec<Effect> {
        let unfolded = self.customers.fold();
        unfolded.map(Effect::LoadKeysOf).into_iter().collect()
    }

    /// What to read again of the visible customers.
    pub(super) fn visible_customers(&self) -> Vec<Effect> {
        let lines = self.customers.lines();
        let range = window(
            self.customers.list.selected,
            lines.len(),
            self.page_height(),
        );
        let shown = lines.get(range).unwrap_or_default().iter();
        let ids = shown.filter_map(|line| match line {
            CustomerLine::Customer(customer, _) => Some(customer.id),
            CustomerLine::Key(_) | CustomerLine::Note(_) => None,
        });
        let ids: Vec<CustomerId> = ids.collect();
        let unfolded: Vec<CustomerId> = self.customers.unfolded().collect();
        let keys = unfolded.into_iter().filter(|id| ids.contains(id));
        let keys: Vec<Effect> = keys.map(Effect::LoadKeysOf).collect();
        std::iter::once(Effect::VisibleCustomers(ids))
            .chain(keys)
            .collect()
    }
}
