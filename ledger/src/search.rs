//! What somebody names, found: a key by its id, secret or label, an entry by the id of its request, of its answer or of its act, or by
//! its payment's reference.
//!
//! Nothing here knows what was refused before money was held: only a running gateway remembers that.

use crate::value::text::SECRET_PREFIX;
use crate::{
    EntryQuery, IdError, JournalEntry, Key, KeyId, KeyQuery, Ledger, LedgerError, OperationId,
    Timestamp, is_same_reference,
};

/// Entries that one look at the journal reads.
const PAGE: usize = 10_000;
/// Most keys with a label that are listed.
pub const MOST_KEYS: usize = 100;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchResult {
    /// A key, by its id, its secret, or a label that only it has.
    Key(Box<Key>),
    /// A charge, payment or correction.
    Entry(Box<JournalEntry>),
    /// Several keys whose labels contain the text.
    Labelled(Vec<Key>),
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
    // Ten letters or digits may be a key's id and a payment's reference.
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
    match in_journal(book, text).await? {
        Some(entry) => Ok(Some(SearchResult::Entry(Box::new(entry)))),
        None => labelled(book, text, now).await,
    }
}

/// The newest entry with this reference, or of the answer with this id.
async fn in_journal(
    book: &(impl Ledger + ?Sized),
    text: &str,
) -> Result<Option<JournalEntry>, LedgerError> {
    let mut query = EntryQuery {
        limit: Some(PAGE),
        ..EntryQuery::default()
    };
    loop {
        let page = book.entries(query.clone()).await?;
        let is_it = |entry: &&JournalEntry| {
            let answer = (entry.bill.as_ref()).and_then(|bill| bill.answer_id.as_deref());
            let reference = entry.reference.as_deref();
            answer == Some(text) || reference.is_some_and(|other| is_same_reference(other, text))
        };
        if let Some(entry) = page.iter().rev().find(is_it) {
            return Ok(Some(entry.clone()));
        }
        match page.first() {
            Some(oldest) if page.len() == PAGE => query.before = Some(oldest.position),
            _ => return Ok(None),
        }
    }
}

/// The key with this label, or those whose labels contain it.
async fn labelled(
    book: &(impl Ledger + ?Sized),
    label: &str,
    now: Timestamp,
) -> Result<Option<SearchResult>, LedgerError> {
    let query = KeyQuery {
        label: Some(label.to_owned()),
        now,
        limit: MOST_KEYS,
        ..KeyQuery::default()
    };
    let mut keys = book.list_keys(query).await?;
    let exact = |key: &Key| key.settings.label == label;
    if keys.len() > 1 && keys.iter().filter(|key| exact(key)).count() == 1 {
        keys.retain(exact);
    }
    Ok(match keys.pop() {
        None => None,
        Some(only) if keys.is_empty() => Some(SearchResult::Key(Box::new(only))),
        Some(last) => {
            keys.push(last);
            Some(SearchResult::Labelled(keys))
        }
    })
}
