//! The parameters of the statements that read what a batch needs.

use std::collections::BTreeSet;

use tokio_postgres::types::ToSql;

use super::locking::{Locked, keys_of_all, keys_of_holds, lock_of_all, lock_of_holds};
use super::wanted::WantedRows;
use crate::{OperationId, Scope};

/// The parameters of the statements.
pub(super) struct FetchParameters<'wanted> {
    pub(super) customers: Vec<i64>,
    pub(super) keys: Vec<i64>,
    pub(super) external_ids: Vec<String>,
    pub(super) holds: Vec<&'wanted [u8]>,
    pub(super) entries: Vec<&'wanted [u8]>,
    pub(super) acts: Vec<&'wanted [u8]>,
    pub(super) references: Vec<String>,
    pub(super) tokens: Vec<&'wanted [u8]>,
    pub(super) api_tokens: Vec<i64>,
    pub(super) api_labels: Vec<String>,
    pub(super) house_acts: Vec<&'wanted [u8]>,
    pub(super) answers: Vec<&'wanted [u8]>,
    /// Keys, and customers, whose last change is looked for.
    pub(super) changed: Vec<i64>,
    pub(super) changed_of: Vec<i64>,
    pub(super) lots: Vec<i64>,
    pub(super) vouchers: Vec<&'wanted [u8]>,
    /// Keys whose spending is read, and customers.
    pub(super) spending: Vec<i64>,
    pub(super) spending_of: Vec<i64>,
}

/// The numbers of keys, and those of customers.
fn parted(scopes: &BTreeSet<Scope>) -> (Vec<i64>, Vec<i64>) {
    let (mut keys, mut customers) = (Vec::new(), Vec::new());
    for of in scopes {
        match of {
            Scope::Key(key) => keys.push(key.to_i64()),
            Scope::Customer(customer) => customers.push(customer.to_i64()),
        }
    }
    (keys, customers)
}

impl<'wanted> FetchParameters<'wanted> {
    pub(super) fn of(wanted: &'wanted WantedRows) -> Self {
        let ids =
            |ids: &'wanted BTreeSet<OperationId>| ids.iter().map(OperationId::as_bytes).collect();
        let customers = wanted.customers.iter();
        let (spending, spending_of) = parted(&wanted.spending);
        let (changed, changed_of) = parted(&wanted.last_acts);
        Self {
            customers: customers.map(|customer| customer.to_i64()).collect(),
            keys: wanted.keys.iter().map(|key| key.to_i64()).collect(),
            external_ids: wanted.external_ids.iter().cloned().collect(),
            holds: ids(&wanted.holds),
            entries: ids(&wanted.entries),
            acts: ids(&wanted.acts),
            references: wanted.references.iter().cloned().collect(),
            tokens: wanted.tokens.iter().map(<[u8; 32]>::as_slice).collect(),
            api_tokens: wanted.api_tokens.iter().map(|id| id.to_i64()).collect(),
            api_labels: wanted.api_labels.iter().cloned().collect(),
            house_acts: ids(&wanted.house_acts),
            answers: wanted.answers.iter().map(|id| id.0.as_slice()).collect(),
            changed,
            changed_of,
            lots: wanted.lots.iter().map(|id| id.to_i64()).collect(),
            vouchers: wanted.vouchers.iter().map(<[u8; 32]>::as_slice).collect(),
            spending,
            spending_of,
        }
    }

    pub(super) fn is_of_holds_only(&self) -> bool {
        self.acts.is_empty()
            && self.references.is_empty()
            && self.tokens.is_empty()
            && self.spending_of.is_empty()
    }

    /// The statement that locks the customers.
    pub(super) fn lock(&self, locked: Locked) -> String {
        if self.is_of_holds_only() {
            lock_of_holds(locked)
        } else {
            lock_of_all()
        }
    }

    /// Its parameters.
    pub(super) fn to_lock(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> =
            vec![&self.keys, &self.holds, &self.entries, &self.customers];
        if !self.is_of_holds_only() {
            values.extend([
                &self.acts as &(dyn ToSql + Sync),
                &self.references,
                &self.tokens,
            ]);
        }
        values
    }

    /// The statement that reads the keys.
    pub(super) fn find_keys(&self) -> String {
        if self.is_of_holds_only() {
            keys_of_holds()
        } else {
            keys_of_all()
        }
    }

    /// Its parameters.
    pub(super) fn to_find_keys(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.keys, &self.holds, &self.entries];
        if !self.is_of_holds_only() {
            values.extend([
                &self.acts as &(dyn ToSql + Sync),
                &self.references,
                &self.tokens,
                &self.spending_of,
            ]);
        }
        values
    }
}
