//! Rows that the writer need not read again: accounts and open holds as it last read or wrote them.
//!
//! They are valid as long as no other connection commits. SQLite keeps pages in its own cache under the same condition, and `batch`
//! checks it under the write lock, before each batch. After another program's commit and after a rollback everything is forgotten.
//! Nothing is decided here, and an UPDATE of an account names the values it replaces, so a row that differs anyway would fail the
//! operation instead of being overwritten.

use std::collections::HashMap;
use std::hash::Hash;

use crate::batch::tx::Payer;
use crate::book::head::Head;
use crate::hold::Held;
use crate::{Account, Amount, KeyId, OperationId};

/// Most rows cached of each kind: about 3 MB of accounts.
const MOST: usize = 16_384;

/// What a request reads of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) payer: Payer,
    pub(super) head: Head,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    keys: HashMap<KeyId, Known>,
    holds: HashMap<OperationId, Held>,
    newest: Option<OperationId>,
}

impl Cache {
    pub(super) fn forget(&mut self) {
        self.keys.clear();
        self.holds.clear();
        self.newest = None;
    }

    pub(super) fn key(&self, key: KeyId) -> Option<Known> {
        self.keys.get(&key).copied()
    }

    pub(super) fn read_key(&mut self, key: KeyId, known: Known) {
        put(&mut self.keys, key, known);
    }

    /// Notes that the key's settings have changed.
    pub(super) fn forget_key(&mut self, key: KeyId) {
        self.keys.remove(&key);
    }

    /// Notes that the key's account has changed, and with an entry also the end of its chain.
    pub(super) fn moved(&mut self, key: KeyId, account: Account, head: Option<Head>) {
        if let Some(known) = self.keys.get_mut(&key) {
            known.payer.account = account;
            known.head = head.unwrap_or(known.head);
        }
    }

    pub(super) fn hold(&self, request: OperationId) -> Option<Held> {
        self.holds.get(&request).copied()
    }

    pub(super) fn opened(&mut self, request: OperationId, held: Held) {
        put(&mut self.holds, request, held);
    }

    pub(super) fn raised(&mut self, request: OperationId, amount: Amount) {
        if let Some(held) = self.holds.get_mut(&request) {
            held.amount = amount;
        }
    }

    pub(super) fn ended(&mut self, request: OperationId) {
        self.holds.remove(&request);
    }

    /// The greatest operation id of any entry, if it has been read.
    pub(super) const fn newest(&self) -> Option<OperationId> {
        self.newest
    }

    pub(super) fn read_newest(&mut self, operation: OperationId) {
        self.newest = Some(operation);
    }

    pub(super) fn entered(&mut self, operation: OperationId) {
        self.newest = self.newest.map(|newest| newest.max(operation));
    }
}

/// A full table is emptied: the rows of running requests are read once more, and no order of use has to be kept.
fn put<K: Eq + Hash, V>(rows: &mut HashMap<K, V>, key: K, value: V) {
    if rows.len() >= MOST {
        rows.clear();
    }
    rows.insert(key, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_small() {
        let mut cache = Cache::default();
        let held = Held {
            key: KeyId::from_random(1),
            amount: Amount::ZERO,
        };
        let request = |number: usize| OperationId::from_bytes((number as u128).to_be_bytes());
        for number in 0..=2 * MOST {
            cache.opened(request(number), held);
            assert!(cache.holds.len() <= MOST);
        }
        assert!(cache.hold(request(2 * MOST)).is_some() && cache.hold(request(0)).is_none());
    }
}
