//! What somebody names, found: a key by its id, secret or label, a customer by its id, external id, label or the id by which vendors know
//! it, an entry by the id of its request, of its answer or of its act, a payment by its reference.
//!
//! Nothing here knows what was refused before money was held: only a running gateway remembers that.

use crate::rule::customer::arrival_of;
use crate::value::text::SECRET_PREFIX;
use crate::{
    Customer, CustomerId, CustomerQuery, EntryKind, EntryQuery, IdError, JournalEntry, Key, KeyId,
    KeyQuery, Ledger, LedgerError, OperationId, Payment, PaymentStatus, Timestamp, VendorIds,
};

/// Entries that one look at the journal reads.
const PAGE: usize = 10_000;
/// Most keys, and most customers, with a label that are listed.
pub const MOST_KEYS: usize = 100;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchResult {
    /// A key, by its id, its secret, or a label that only it has.
    Key(Box<Key>),
    /// A customer, by its id, its external id, or a label that only it has.
    Customer(Box<Customer>),
    /// A charge, payment or correction.
    Entry(Box<JournalEntry>),
    /// A payment that is not in the journal: it could not be booked.
    Payment(Box<Payment>),
    /// Several whose labels, or external ids, contain the text.
    Labelled {
        /// Customers; one that was made for a key of the same label is that key.
        customers: Vec<Customer>,
        /// Keys.
        keys: Vec<Key>,
    },
}

/// The key's id in a text: the id itself, or the public part of a whole secret.
///
/// # Errors
/// When there is none.
pub fn key_id(text: &str) -> Result<KeyId, IdError> {
    let inside = text
        .strip_prefix(SECRET_PREFIX)
        .and_then(|secret| secret.split('-').next());
    inside.unwrap_or(text).parse()
}

/// Looks for a text in everything that the ledger keeps.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find(
    book: &(impl Ledger + ?Sized),
    text: &str,
    now: Timestamp,
) -> Result<Option<SearchResult>, LedgerError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // Ten letters or digits may be a key's id, a customer's, and a payment's reference.
    if let Ok(id) = key_id(text)
        && let Some(key) = book.find_key(id).await?
    {
        return Ok(Some(SearchResult::Key(Box::new(key))));
    }
    if let Ok(operation) = text.parse::<OperationId>()
        && let Some(entry) = book.entry(operation).await?
    {
        return Ok(Some(SearchResult::Entry(Box::new(entry))));
    }
    if text.starts_with(SECRET_PREFIX) {
        return Ok(None);
    }
    if let Some(customer) = customer(book, text).await? {
        return Ok(Some(SearchResult::Customer(Box::new(customer))));
    }
    if let Some(payment) = book.payment(text).await?
        && payment.status != PaymentStatus::Booked
    {
        return Ok(Some(SearchResult::Payment(Box::new(payment))));
    }
    let named = with_reference(book, text).await?.into_iter().next_back();
    if named.is_none()
        && let Some(customer) = known_to_vendors(book, text).await?
    {
        return Ok(Some(SearchResult::Customer(Box::new(customer))));
    }
    let found = match named {
        Some(entry) => Some(entry),
        None => by_answer(book, text, None).await?,
    };
    match found {
        Some(entry) => Ok(Some(SearchResult::Entry(Box::new(entry)))),
        None => labelled(book, text, now).await,
    }
}

/// The customer with this id, its own or that of another system.
async fn customer(
    book: &(impl Ledger + ?Sized),
    text: &str,
) -> Result<Option<Customer>, LedgerError> {
    if let Ok(id) = text.parse::<CustomerId>()
        && let Some(customer) = book.find_customer(id).await?
    {
        return Ok(Some(customer));
    }
    book.find_external(text).await
}

/// The customer that vendors know by this id. Nothing keeps those ids, so this makes every customer's.
async fn known_to_vendors(
    book: &(impl Ledger + ?Sized),
    text: &str,
) -> Result<Option<Customer>, LedgerError> {
    let Some(part) = VendorIds::customer_part(text) else {
        return Ok(None);
    };
    let ids = book.vendor_ids();
    let mut query = CustomerQuery {
        limit: PAGE,
        ..CustomerQuery::default()
    };
    loop {
        let page = book.list_customers(query.clone()).await?;
        query.after = page.last().map(|last| query.order.place_of_customer(last));
        let is_last = page.len() < PAGE;
        let found = page.into_iter().find(|one| ids.is_of(&part, one.id));
        if found.is_some() || is_last {
            return Ok(found);
        }
    }
}

/// The entries with this reference, as references are compared: one, or both sides of a move. An index finds them.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn with_reference(
    book: &(impl Ledger + ?Sized),
    reference: &str,
) -> Result<Vec<JournalEntry>, LedgerError> {
    let Some(entry) = book.entry_by_reference(reference).await? else {
        return Ok(Vec::new());
    };
    let other = match entry.kind {
        EntryKind::Move => book.entry(arrival_of(entry.operation)).await?,
        EntryKind::TopUp
        | EntryKind::Adjust
        | EntryKind::Grant
        | EntryKind::Expired
        | EntryKind::Void
        | EntryKind::Reversal
        | EntryKind::WriteOff
        | EntryKind::Carry
        | EntryKind::Charge
        | EntryKind::Refund => None,
    };
    Ok(std::iter::once(entry).chain(other).collect())
}

/// The newest charge of the answer with this id, among those since an instant, or all. No index finds it: one would cost every
/// settlement, so this goes back through the journal.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn by_answer(
    book: &(impl Ledger + ?Sized),
    answer_id: &str,
    since: Option<Timestamp>,
) -> Result<Option<JournalEntry>, LedgerError> {
    let mut query = EntryQuery {
        limit: Some(PAGE),
        ..EntryQuery::default()
    };
    loop {
        let page = book.entries(query.clone()).await?;
        let is_it = |entry: &&JournalEntry| {
            let bill = entry.bill.as_ref();
            bill.is_some_and(|bill| bill.answer_id.as_deref() == Some(answer_id))
        };
        if let Some(entry) = page.iter().rev().find(is_it) {
            return Ok(Some(entry.clone()));
        }
        let is_older = |oldest: &JournalEntry| since.is_some_and(|since| oldest.at < since);
        match page.first() {
            Some(oldest) if page.len() == PAGE && !is_older(oldest) => {
                query.before = Some(oldest.position);
            }
            _ => return Ok(None),
        }
    }
}

/// What has this label, or those whose labels contain it.
async fn labelled(
    book: &(impl Ledger + ?Sized),
    label: &str,
    now: Timestamp,
) -> Result<Option<SearchResult>, LedgerError> {
    let mut keys = book
        .list_keys(KeyQuery {
            label: Some(label.to_owned()),
            now,
            limit: MOST_KEYS,
            ..KeyQuery::default()
        })
        .await?;
    let mut customers = book
        .list_customers(CustomerQuery {
            text: Some(label.to_owned()),
            limit: MOST_KEYS,
            ..CustomerQuery::default()
        })
        .await?;
    customers.retain(|customer| !keys.iter().any(|key| is_twin(customer, key)));
    let exact_key = |key: &Key| key.settings.label == label;
    let exact_customer = |customer: &Customer| customer.settings.label == label;
    let exact = (keys.iter().filter(|key| exact_key(key)).count())
        .saturating_add(customers.iter().filter(|one| exact_customer(one)).count());
    if exact == 1 {
        keys.retain(exact_key);
        customers.retain(exact_customer);
    }
    Ok(match (customers.len(), keys.len()) {
        (0, 0) => None,
        (1, 0) => customers.pop().map(Box::new).map(SearchResult::Customer),
        (0, 1) => keys.pop().map(Box::new).map(SearchResult::Key),
        _ => Some(SearchResult::Labelled { customers, keys }),
    })
}

/// Whether a customer is the one that creating this key made.
fn is_twin(customer: &Customer, key: &Key) -> bool {
    customer.id == CustomerId::made_for(key.id) && customer.settings.label == key.settings.label
}
