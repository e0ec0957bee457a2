//! Orders that the ledger has no index for: a snapshot of (value, key), made off the screen and paged by position.
//!
//! A snapshot holds sixteen bytes for each key (more for labels) and decides only the order: rows are read again when shown, so
//! balances are always those of now. It is made again on `r`.

use farebox_ledger::{Key, KeyId, KeyQuery, LedgerError, Timestamp};

use super::Shared;
use super::read::query;
use crate::app::keys::{From, KeyFilter, KeysRequest, PAGE, Sort};
use crate::app::message::Message;
use crate::clock;

const READ_AT_ONCE: usize = 5000;

/// Keys in one order.
#[derive(Debug)]
pub(crate) struct Order {
    filter: KeyFilter,
    sort: Sort,
    /// Smallest first.
    keys: Vec<KeyId>,
    at: Timestamp,
}

/// A piece of an order.
pub(super) struct Slice {
    pub(super) rows: Vec<Key>,
    pub(super) first: u64,
    pub(super) ended: bool,
    pub(super) at: Timestamp,
}

impl Shared {
    /// A page in an order of the console's own.
    pub(super) async fn ordered(&self, request: &KeysRequest) -> Result<Slice, LedgerError> {
        let mut held = self.order.lock().await;
        let fits = |order: &Order| !request.fresh && order.filter == request.filter && order.sort == request.sort;
        let order = match held.take().filter(fits) {
            Some(order) => held.insert(order),
            None => held.insert(self.make_order(request).await?),
        };
        let (range, ended) = place(request, order.keys.len());
        let at = order.at;
        let last = order.keys.len().saturating_sub(1);
        let ids: Vec<KeyId> = range
            .clone()
            .filter_map(|position| {
                order.keys.get(if request.descending { last.saturating_sub(position) } else { position }).copied()
            })
            .collect();
        drop(held);
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            rows.extend(self.ledger.find_key(id).await?);
        }
        Ok(Slice { rows, first: range.start as u64, ended, at })
    }

    async fn make_order(&self, request: &KeysRequest) -> Result<Order, LedgerError> {
        let mut numbers: Vec<(i64, KeyId)> = Vec::new();
        let mut labels: Vec<(Box<str>, KeyId)> = Vec::new();
        let mut after = None;
        loop {
            let keys = self.ledger.list_keys(KeyQuery { after, ..query(&request.filter, READ_AT_ONCE) }).await?;
            after = keys.last().map(|key| key.id);
            for key in &keys {
                match request.sort {
                    Sort::Label => labels.push((key.settings.label.to_lowercase().into_boxed_str(), key.id)),
                    sort => numbers.push((value(key, sort), key.id)),
                }
            }
            if keys.len() < READ_AT_ONCE {
                break;
            }
            let read = numbers.len().max(labels.len()) as u64;
            self.tell(Message::Sorting { generation: request.generation, read });
        }
        let sorted = tokio::task::spawn_blocking(move || {
            numbers.sort_unstable();
            labels.sort_unstable();
            numbers.into_iter().map(|(_, key)| key).chain(labels.into_iter().map(|(_, key)| key)).collect()
        });
        let keys = sorted.await.map_err(|error| LedgerError::Unavailable(error.to_string()))?;
        Ok(Order { filter: request.filter.clone(), sort: request.sort, keys, at: clock::now() })
    }
}

fn value(key: &Key, sort: Sort) -> i64 {
    match sort {
        Sort::Balance => key.account.balance().picos(),
        Sort::Held => key.account.held.picos(),
        Sort::LastUsed => key.last_entry_at.map_or(i64::MIN, Timestamp::millis),
        Sort::Created | Sort::Label => key.created_at.millis(),
    }
}

/// Which positions a question means, and whether nothing comes behind them.
fn place(request: &KeysRequest, length: usize) -> (std::ops::Range<usize>, bool) {
    let at = |position: Option<u64>| usize::try_from(position.unwrap_or(0)).unwrap_or(0).min(length);
    match request.from {
        From::Start => (0..PAGE.min(length), PAGE >= length),
        From::End => (length.saturating_sub(PAGE)..length, PAGE >= length),
        From::After(_, position) => {
            let start = (at(position) + 1).min(length);
            (start..(start + PAGE).min(length), start + PAGE >= length)
        }
        From::Before(_, position) => {
            let end = at(position);
            (end.saturating_sub(PAGE)..end, end <= PAGE)
        }
    }
}
