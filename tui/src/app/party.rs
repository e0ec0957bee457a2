//! What a page or an act is about: a key, or a customer with all of its keys.

use farebox_ledger::{
    Account, Amount, Customer, CustomerId, CustomerStatus, Key, KeyStatus, Scope,
    SubscriptionStatus, Timestamp,
};

/// Who has less available, and has not set another bound, is called low.
pub(crate) const LOW: Amount = Amount::from_picos(1_000_000_000_000);

/// A key or a customer, as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    Key(Box<Key>),
    Customer(Box<Customer>),
}

impl From<Key> for Party {
    fn from(key: Key) -> Self {
        Self::Key(Box::new(key))
    }
}

impl From<Customer> for Party {
    fn from(customer: Customer) -> Self {
        Self::Customer(Box::new(customer))
    }
}

impl Party {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Key(key) => key.id.into(),
            Self::Customer(customer) => customer.id.into(),
        }
    }

    /// The customer, or that of the key.
    pub(crate) fn customer(&self) -> &Customer {
        match self {
            Self::Key(key) => &key.customer,
            Self::Customer(customer) => customer,
        }
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        match self {
            Self::Key(key) => Some(key),
            Self::Customer(_) => None,
        }
    }

    /// The money: a key's is its customer's.
    pub(crate) fn account(&self) -> Account {
        self.customer().account
    }

    /// What it may spend now: of a key, what its caps leave of that money.
    pub(crate) fn available(&self, now: Timestamp) -> Amount {
        match self {
            Self::Key(key) => key.spendable(now),
            Self::Customer(customer) => customer.available(""),
        }
    }

    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Key(key) => &key.settings.label,
            Self::Customer(customer) => &customer.settings.label,
        }
    }

    /// The one word for its state.
    pub(crate) fn state(&self, now: Timestamp) -> &'static str {
        match self {
            Self::Key(key) => state_word(key, now),
            Self::Customer(customer) => customer_word(customer),
        }
    }
}

/// A key of a customer, with its own sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberKey {
    pub(crate) key: Key,
    pub(crate) spent: Amount,
    /// By its running requests.
    pub(crate) held: Amount,
}

impl MemberKey {
    /// What it may do on the dashboard, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        if self.key.is_owner { "owner" } else { "member" }
    }
}

/// The customer of a key; empty for one that was made for its key, and is it.
pub(crate) fn customer_of(key: &Key) -> &str {
    let is_own = key.belongs_to == CustomerId::made_for(key.id);
    if is_own {
        ""
    } else {
        &key.customer.settings.label
    }
}

pub(crate) fn state_word(key: &Key, now: Timestamp) -> &'static str {
    match key.status(now) {
        KeyStatus::Blocked => "BLOCKED",
        KeyStatus::Expired => "EXPIRED",
        KeyStatus::Revoked => "REVOKED",
        KeyStatus::Active if key.customer.status != CustomerStatus::Active => "STOPPED",
        KeyStatus::Active => money_word(&key.customer),
    }
}

/// The one word for a customer's state.
pub(crate) fn customer_word(customer: &Customer) -> &'static str {
    match customer.status {
        CustomerStatus::Suspended => "SUSPENDED",
        CustomerStatus::Closed => "CLOSED",
        CustomerStatus::Active => money_word(customer),
    }
}

/// Whether a customer that is served can pay, and has paid its plans.
fn money_word(customer: &Customer) -> &'static str {
    let (account, available) = (customer.account, customer.available(""));
    let mut plans = customer.grants.plans.iter();
    if customer.claim.is_positive() {
        "OWES"
    } else if plans.any(|of| of.state.status == SubscriptionStatus::Lapsed) {
        "LAPSED"
    } else if !available.is_positive() && account.held.is_positive() {
        "in use"
    } else if !available.is_positive() {
        "EMPTY"
    } else if available < customer.warned_below().unwrap_or(LOW) {
        "low"
    } else {
        "ok"
    }
}
