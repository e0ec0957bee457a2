//! Pages of the reference store: customers, keys and entries.

use std::cmp::Reverse;

use super::State;
use crate::value::reference::folded;
use crate::{
    Customer, CustomerQuery, EntryQuery, GrantQuery, GrantRecord, JournalEntry, Key, KeyOrder,
    KeyQuery, KeyStatus, MadeQuery, Timestamp,
};

impl State {
    /// A page of grants, the newest first.
    pub(super) fn grants_page(&self, query: &GrantQuery) -> Vec<GrantRecord> {
        let wanted = |known: &&GrantRecord| {
            let (grant, name) = (&known.grant, known.reference.0.as_deref());
            query.customer.is_none_or(|of| of == grant.customer)
                && query.id.is_none_or(|id| id == grant.id)
                && query.status.is_none_or(|status| status == grant.status)
                && (query.reference.as_deref())
                    .is_none_or(|wanted| name.map(folded) == Some(folded(wanted)))
                && query
                    .after
                    .is_none_or(|after| (known.created_at, grant.id) < after)
        };
        let mut found: Vec<GrantRecord> = self.grants.values().filter(wanted).cloned().collect();
        found.sort_by_key(|known| Reverse((known.created_at, known.grant.id)));
        found.truncate(query.limit);
        found
    }

    pub(super) fn grants_by_age(&self) -> Vec<GrantRecord> {
        let mut all: Vec<GrantRecord> = self.grants.values().cloned().collect();
        all.sort_by_key(|known| (known.created_at, known.grant.id));
        all
    }

    pub(super) fn list_customers(&self, query: &CustomerQuery) -> Vec<Customer> {
        let mut found: Vec<&Customer> = self.customers.values().collect();
        let place = |customer: &Customer| query.order.place_of_customer(customer);
        found.sort_by_key(|customer| place(customer));
        if query.order.is_descending() {
            found.reverse();
        }
        let text = query.text.as_ref().map(|text| text.to_ascii_lowercase());
        let contains = |named: &str| {
            text.as_ref()
                .is_none_or(|text| named.to_ascii_lowercase().contains(text))
        };
        let wanted = |customer: &&Customer| {
            let after = query.after.is_none_or(|after| {
                if query.order.is_descending() {
                    place(customer) < after
                } else {
                    place(customer) > after
                }
            });
            let settings = &customer.settings;
            let named =
                contains(&settings.label) || settings.external_id.as_deref().is_some_and(contains);
            let status = query.status.is_none_or(|status| customer.status == status);
            let below = query.balance_below;
            let poor = below.is_none_or(|below| customer.account.balance() < below);
            after && named && status && poor
        };
        let found = found.into_iter().filter(wanted);
        let page = found.take(query.limit);
        page.map(|found| self.reckoned(found)).collect()
    }

    pub(super) fn list_keys(&self, query: &KeyQuery) -> Vec<Key> {
        let order = query.made.map_or(query.order, |_| KeyOrder::Newest);
        let query = &KeyQuery {
            order,
            ..query.clone()
        };
        let mut keys: Vec<Key> = self.keys.keys().filter_map(|id| self.whole(*id)).collect();
        let place = |key: &Key| {
            let place = query.order.place(key);
            (place.value, place.key)
        };
        keys.sort_by_key(place);
        if query.order.is_descending() {
            keys.reverse();
        }
        let further = |key: &Key| {
            query
                .after
                .map(|after| (after.value, after.key))
                .is_none_or(|after| {
                    if query.order.is_descending() {
                        place(key) < after
                    } else {
                        place(key) > after
                    }
                })
        };
        let label = query.label.as_ref().map(|label| label.to_ascii_lowercase());
        let wanted = |key: &Key| {
            if let Some(made) = query.made {
                return is_shown(key, made, query.now);
            }
            label
                .as_ref()
                .is_none_or(|label| key.settings.label.to_ascii_lowercase().contains(label))
                && query
                    .status
                    .is_none_or(|status| key.status(query.now) == status)
                && query
                    .balance_below
                    .is_none_or(|limit| key.customer.account.balance() < limit)
                && query
                    .customer
                    .is_none_or(|customer| key.belongs_to == customer)
        };
        keys.into_iter()
            .filter(further)
            .filter(wanted)
            .take(query.limit)
            .filter_map(|key| self.shown(key.id))
            .collect()
    }

    pub(super) fn entries(&self, query: &EntryQuery) -> Vec<JournalEntry> {
        let wanted = |entry: &&JournalEntry| {
            query.key.is_none_or(|key| entry.key == Some(key))
                && query
                    .customer
                    .is_none_or(|customer| entry.customer == customer)
                && query.since.is_none_or(|since| entry.at >= since)
                && query.until.is_none_or(|until| entry.at < until)
                && query.before.is_none_or(|before| entry.position < before)
        };
        let newest = self
            .entries
            .iter()
            .rev()
            .filter(wanted)
            .take(query.limit.unwrap_or(usize::MAX));
        let mut found: Vec<JournalEntry> = newest.cloned().collect();
        found.reverse();
        found
    }
}

/// Whether a key is in the list of the owner key that made it: not revoked, and not expired for a day.
fn is_shown(key: &Key, made: MadeQuery, now: Timestamp) -> bool {
    let day = 24 * 3_600 * 1_000;
    let end = key.settings.expires_at;
    let is_gone = end.is_some_and(|end| end.millis().saturating_add(day) <= now.millis());
    let status = match key.stored_status {
        KeyStatus::Active => true,
        KeyStatus::Blocked => made.blocked,
        KeyStatus::Revoked | KeyStatus::Expired => false,
    };
    key.counts_in == Some(made.by) && status && !is_gone
}
