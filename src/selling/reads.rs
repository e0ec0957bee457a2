//! What commands and `/api/v1` read of customers and keys.

use std::collections::HashMap;

use farebox_ledger::{
    Amount, Customer, CustomerId, Key, KeyId, KeyQuery, KeyStatus, Ledger, LedgerError,
    PersonalData, Refusal, Timestamp,
};
use serde_json::{Value, json};

use super::documents;
use crate::clock;

/// Keys are read from the ledger in pages of this many.
const PAGE: usize = 1_000;

/// The key.
///
/// # Errors
/// When the ledger cannot be read, or has no such key.
pub async fn key(ledger: &dyn Ledger, id: KeyId) -> Result<Key, LedgerError> {
    let key = ledger.find_key(id).await?;
    key.ok_or_else(|| Refusal::NoSuchKey(id).into())
}

/// The customer.
///
/// # Errors
/// When the ledger cannot be read, or has no such customer.
pub async fn customer(ledger: &dyn Ledger, id: CustomerId) -> Result<Customer, LedgerError> {
    let customer = ledger.find_customer(id).await?;
    customer.ok_or_else(|| Refusal::NoSuchCustomer(id).into())
}

/// All keys of a customer, oldest first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn keys_of(ledger: &dyn Ledger, customer: CustomerId) -> Result<Vec<Key>, LedgerError> {
    let query = KeyQuery {
        customer: Some(customer),
        now: clock::now(),
        ..KeyQuery::default()
    };
    all_keys(ledger, query).await
}

/// All keys that a query names, whatever its limit.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn all_keys(ledger: &dyn Ledger, mut query: KeyQuery) -> Result<Vec<Key>, LedgerError> {
    query.limit = PAGE;
    let mut found = Vec::new();
    loop {
        let page = ledger.list_keys(query.clone()).await?;
        query.after = page.last().map(|key| query.order.place(key));
        let whole = page.len() == PAGE;
        found.extend(page);
        if !whole {
            return Ok(found);
        }
    }
}

/// A customer with everything that belongs to it.
pub struct CustomerPage {
    /// Settings, state and money.
    pub customer: Customer,
    /// What is known of the person.
    pub personal: Option<PersonalData>,
    /// Its keys, with what each spent and holds.
    pub keys: Vec<(Key, Amount, Amount)>,
}

impl CustomerPage {
    /// Reads it.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has no such customer.
    pub async fn read(ledger: &dyn Ledger, id: CustomerId) -> Result<Self, LedgerError> {
        let customer = self::customer(ledger, id).await?;
        let keys = keys_of(ledger, id).await?;
        let personal = ledger.personal_data(id).await?;
        let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
        let spent = ledger.spent_since(&ids, Timestamp::from_millis(0)).await?;
        let open = ledger.open_holds(Some(id.into()), usize::MAX).await?;
        let mut held: HashMap<KeyId, Vec<Amount>> = HashMap::new();
        for hold in open {
            held.entry(hold.key).or_default().push(hold.amount);
        }
        let held_by = |key: &Key| {
            let own = held.get(&key.id).into_iter().flatten().copied();
            Amount::checked_sum(own).unwrap_or_default()
        };
        let keys = keys.into_iter().zip(spent).map(|(key, spent)| {
            let held = held_by(&key);
            (key, spent, held)
        });
        Ok(Self {
            customer,
            personal,
            keys: keys.collect(),
        })
    }

    /// The whole page as a document.
    pub fn document(&self) -> Value {
        let mut shown = documents::customer(&self.customer);
        let now = clock::now();
        let key = |(key, spent, held): &(Key, Amount, Amount)| {
            documents::key_of_customer(key, *spent, *held, now)
        };
        let keys: Vec<Value> = self.keys.iter().map(key).collect();
        if let Some(fields) = shown.as_object_mut() {
            let personal = self.personal.as_ref().map(documents::personal);
            fields.insert("personal".to_owned(), json!(personal));
            fields.insert("keys".to_owned(), json!(keys));
        }
        shown
    }
}

/// The key of a customer that signs in to its dashboard: its oldest active owner, or its only active key.
///
/// # Errors
/// When the ledger cannot be read; no such customer; the inner one is why there is none, in words.
pub async fn key_that_signs_in(
    ledger: &dyn Ledger,
    id: CustomerId,
) -> Result<Result<KeyId, String>, LedgerError> {
    customer(ledger, id).await?;
    let mut keys = keys_of(ledger, id).await?;
    keys.retain(|key| key.status(clock::now()) == KeyStatus::Active);
    let owner = keys.iter().find(|key| key.is_owner);
    Ok(match (owner, &*keys) {
        (Some(key), _) => Ok(key.id),
        (None, [only]) => Ok(only.id),
        (None, []) => Err(format!(
            "customer {id} has no active key; create one: farebox keys create --customer {id} --owner --label NAME"
        )),
        (None, _) => Err(format!(
            "customer {id} has several keys and none is an owner; name one: farebox keys link KEY"
        )),
    })
}
