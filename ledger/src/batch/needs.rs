//! What operations read: a store fetches all of it before it applies them.

use crate::table::needs::RowName;
use crate::{CustomerId, KeyId, OperationId, Scope};

/// No operation names more than two of a kind, and naming them must cost nothing.
pub(crate) type Few<T> = [Option<T>; 2];

/// What an operation reads. A store fetches all of it before it applies the operation, along with the keys that own what is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Needs<'operation> {
    /// Keys, with their customers: settings, state, account and the ends of its chains.
    pub(crate) keys: Few<KeyId>,
    pub(crate) customers: Few<CustomerId>,
    /// The customer's personal data.
    pub(crate) personal: Option<CustomerId>,
    /// Open holds.
    pub(crate) holds: Few<OperationId>,
    /// Entries, by the operations that made them. An open hold's request has none.
    pub(crate) entries: Few<OperationId>,
    /// Administrative acts, and refunds of requests, by their operations.
    pub(crate) acts: Few<OperationId>,
    /// References, with the entries that carry them and the payments that have them.
    pub(crate) references: Few<&'operation str>,
    /// A key with those that count in its caps, or a customer with all keys, whose charges by the hour and open holds are read, all of
    /// them.
    pub(crate) spending: Option<Scope>,
    /// How many keys owner keys of this customer have made.
    pub(crate) made: Option<CustomerId>,
    /// The last act that changed this key, or this customer itself.
    pub(crate) last_act: Option<Scope>,
    /// Rows of described tables, with what belongs to them.
    pub(crate) rows: Vec<RowName>,
    /// Holds of dead processes: in a file, those of epochs before this one.
    pub(crate) dead: Option<i64>,
}

impl Needs<'_> {
    /// Also reads these rows.
    pub(crate) fn with(mut self, rows: impl IntoIterator<Item = RowName>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Also reads whether this id was used for anything, where one is looked for already.
    pub(crate) fn and_used(self, operation: OperationId) -> Self {
        let [first, _] = self.acts;
        let both = [first, Some(operation)];
        Self {
            holds: both,
            entries: both,
            acts: both,
            ..self
        }
    }

    /// What shows whether an operation's id was used for anything.
    pub(crate) fn used(operations: Few<OperationId>) -> Self {
        Self {
            holds: operations,
            entries: operations,
            acts: operations,
            ..Self::default()
        }
    }

    /// What every administrative operation reads: its key or customer, and whether its id was used for anything.
    pub(crate) fn administrative(of: Scope, operations: Few<OperationId>) -> Self {
        let (key, customer) = match of {
            Scope::Key(key) => (Some(key), None),
            Scope::Customer(customer) => (None, Some(customer)),
        };
        Self {
            keys: [key, None],
            customers: [customer, None],
            ..Self::used(operations)
        }
    }

    /// What an act reads that belongs to no customer.
    pub(crate) fn of_house(operation: OperationId) -> Self {
        Self {
            rows: vec![RowName::HouseAct(operation)],
            ..Self::used([Some(operation), None])
        }
    }
}
