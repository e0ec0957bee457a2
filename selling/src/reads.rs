//! What commands and `/api/v1` read of customers and keys.

use farebox_ledger::{
    Caps, Customer, CustomerId, CustomerQuery, Key, KeyId, KeyQuery, KeyStatus, Ledger,
    LedgerError, Refusal, Scope, clock,
};

/// Keys and customers are read from the ledger in pages of this many.
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

/// The caps of a key or customer.
///
/// # Errors
/// When the ledger cannot be read, or has neither.
pub async fn caps(ledger: &dyn Ledger, of: Scope) -> Result<Caps, LedgerError> {
    Ok(match of {
        Scope::Key(key) => self::key(ledger, key).await?.own.caps,
        Scope::Customer(customer) => self::customer(ledger, customer).await?.caps,
    })
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

/// All customers that a query names, whatever its limit.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn all_customers(
    ledger: &dyn Ledger,
    mut query: CustomerQuery,
) -> Result<Vec<Customer>, LedgerError> {
    query.limit = PAGE;
    let mut found = Vec::new();
    loop {
        let page = ledger.list_customers(query.clone()).await?;
        let last = page.last();
        query.after = last.map(|customer| query.order.place_of_customer(customer));
        let whole = page.len() == PAGE;
        found.extend(page);
        if !whole {
            return Ok(found);
        }
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

/// The keys that an owner made and that are neither revoked nor expired.
///
/// # Errors
/// When the ledger cannot be read, or there is no such key.
pub async fn made_by(ledger: &dyn Ledger, owner: KeyId) -> Result<Vec<KeyId>, LedgerError> {
    let key = self::key(ledger, owner).await?;
    let mut made = keys_of(ledger, key.belongs_to).await?;
    let now = clock::now();
    made.retain(|other| {
        let ended = [KeyStatus::Revoked, KeyStatus::Expired].contains(&other.status(now));
        other.made_by == Some(owner) && !ended
    });
    Ok(made.iter().map(|key| key.id).collect())
}
