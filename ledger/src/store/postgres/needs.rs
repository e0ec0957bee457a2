//! What the operations of a batch need, deduplicated and sorted, as parameters of its statements.

use std::collections::BTreeSet;

use super::locking::{Locked, keys_of_all, keys_of_holds, lock_of_all, lock_of_holds};
use super::table_rows::array;
use super::writes::SqlValue;
use crate::batch::operation::{Operation, OperationClass};
use crate::table::columns::{ColumnValue, StoredAlone};
use crate::table::needs::RowName;
use crate::value::reference;
use crate::{CustomerId, KeyId, OperationId, Scope};

/// Everything that the operations of a batch may read.
#[derive(Debug, Clone, Default)]
pub(super) struct WantedRows {
    pub(super) customers: BTreeSet<CustomerId>,
    pub(super) keys: BTreeSet<KeyId>,
    pub(super) personal: BTreeSet<CustomerId>,
    pub(super) holds: BTreeSet<OperationId>,
    pub(super) entries: BTreeSet<OperationId>,
    pub(super) acts: BTreeSet<OperationId>,
    pub(super) references: BTreeSet<String>,
    /// Rows of described tables.
    pub(super) rows: BTreeSet<RowName>,
    /// Keys, and customers themselves, whose last change is looked for.
    pub(super) changed: BTreeSet<KeyId>,
    pub(super) changed_of: BTreeSet<CustomerId>,
    /// Keys, and customers with all keys, whose charges by the hour and open holds are read.
    pub(super) spending: BTreeSet<KeyId>,
    pub(super) spending_of: BTreeSet<CustomerId>,
    /// Customers whose owner keys make more keys.
    pub(super) made: BTreeSet<CustomerId>,
    /// Whether to end holds of dead epochs.
    pub(super) dead: bool,
    /// Whether a standby must have flushed the batch before it is confirmed.
    pub(super) flushed: bool,
}

impl WantedRows {
    pub(super) fn add(&mut self, operation: &Operation) {
        let needs = operation.needs();
        self.flushed |= must_be_flushed(operation);
        self.keys.extend(needs.keys.iter().flatten());
        self.customers.extend(needs.customers.iter().flatten());
        self.personal.extend(needs.personal);
        self.holds.extend(needs.holds.iter().flatten());
        self.entries.extend(needs.entries.iter().flatten());
        self.acts.extend(needs.acts.iter().flatten());
        // No stored text contains U+0000, and no parameter can carry it.
        let references = needs.references.into_iter().flatten();
        let references = references.map(reference::folded);
        self.references
            .extend(references.filter(|folded| !folded.contains('\0')));
        let rows = needs.rows.into_iter();
        (self.rows).extend(rows.filter(|name| !name.key().has_nul()));
        match needs.last_act {
            Some(Scope::Key(key)) => drop(self.changed.insert(key)),
            Some(Scope::Customer(customer)) => drop(self.changed_of.insert(customer)),
            None => {}
        }
        match needs.spending {
            Some(Scope::Key(key)) => drop(self.spending.insert(key)),
            Some(Scope::Customer(customer)) => drop(self.spending_of.insert(customer)),
            None => {}
        }
        self.made.extend(needs.made);
        self.dead |= needs.dead.is_some();
    }

    /// Rows of described tables of one kind.
    pub(super) fn named(&self, is: fn(&RowName) -> bool) -> impl Iterator<Item = &RowName> {
        self.rows.iter().filter(move |name| is(name))
    }

    /// The hashes of the tokens of sessions and links.
    fn access(&self) -> impl Iterator<Item = ColumnValue<'_>> {
        let names = self.named(|name| matches!(name, RowName::Access(_)));
        names.map(RowName::key)
    }

    fn is_of_holds_only(&self) -> bool {
        self.acts.is_empty()
            && self.references.is_empty()
            && self.spending_of.is_empty()
            && self.access().next().is_none()
    }

    /// The statement that locks the customers, and its parameters.
    pub(super) fn lock(&self, locked: Locked) -> (String, Vec<SqlValue<'_>>) {
        let mut asked = vec![
            parameter(&self.keys),
            parameter(&self.holds),
            parameter(&self.entries),
            parameter(&self.customers),
        ];
        if self.is_of_holds_only() {
            return (lock_of_holds(locked), asked);
        }
        let (_, tokens) = array(&<[u8; 32]>::NULL, self.access());
        asked.extend([parameter(&self.acts), parameter(&self.references), tokens]);
        (lock_of_all(), asked)
    }

    /// The statement that reads the keys, and its parameters.
    pub(super) fn find_keys(&self) -> (String, Vec<SqlValue<'_>>) {
        let mut asked = vec![
            parameter(&self.keys),
            parameter(&self.holds),
            parameter(&self.entries),
        ];
        if self.is_of_holds_only() {
            return (keys_of_holds(), asked);
        }
        let (_, tokens) = array(&<[u8; 32]>::NULL, self.access());
        asked.extend([
            parameter(&self.acts),
            parameter(&self.references),
            tokens,
            parameter(&self.spending_of),
        ]);
        (keys_of_all(), asked)
    }
}

/// All of them as one parameter.
pub(super) fn parameter<T: StoredAlone>(all: &BTreeSet<T>) -> SqlValue<'_> {
    array(&T::NULL, all.iter().map(T::value)).1
}

/// Whether a standby must have flushed this operation before it is confirmed, even with prompt durability.
fn must_be_flushed(operation: &Operation) -> bool {
    operation.class() == OperationClass::Money || operation.signs_in()
}
