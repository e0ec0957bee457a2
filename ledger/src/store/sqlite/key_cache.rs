//! Keys and their customers cached for authentication, which reads a key for every request.
//!
//! A key is returned only if it equals what a read of the file would find at that moment. Every commit, by any process, increments
//! a counter in the header of the log's index (`-shm`), so one small read shows whether anybody has committed since. The writer
//! compares the counter under its write lock: if another process has committed, it forgets everything. After its own commit it
//! publishes the batch's changes together with the next count. A reader that finds another count reads the file.

use std::sync::{Mutex, MutexGuard};

use super::index::LogIndex;
use crate::batch::rows::ById;
use crate::{
    Account, Caps, Customer, CustomerId, Key, KeyId, KeyRecord, LedgerError, Timestamp, lock,
};

/// Most keys cached; beyond that all are forgotten, and those in use are read again.
const MOST: usize = 10_000;

/// Cached keys, valid as of one commit.
#[derive(Debug)]
pub(super) struct KeyCache {
    index: LogIndex,
    known: Mutex<CachedKeys>,
}

#[derive(Debug, Default)]
struct CachedKeys {
    /// The commit count for which `keys` is valid; `None` before the writer's first batch.
    at: Option<u32>,
    keys: ById<KeyId, KeyRecord>,
    customers: ById<CustomerId, Customer>,
    /// The caps of keys in whose caps others count.
    makers: ById<KeyId, Caps>,
    /// Counts acts of this process, and times when another one had committed.
    acts: u64,
}

/// What a batch does to a key or customer.
#[derive(Debug, Clone, Copy)]
pub(super) enum CacheChange {
    /// Money of a customer was held or released.
    Held(CustomerId, Account),
    /// An entry of this instant moved money of a customer.
    Entered(CustomerId, Account, Option<Timestamp>),
    /// The key itself was changed.
    Key(KeyId),
    /// The customer itself was changed.
    Customer(CustomerId),
    /// What a key or a customer may do was changed.
    Act,
    /// What all of them have by default may have been.
    Defaults,
}

/// Equal to an earlier one only if no key and no customer was changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActsSeen {
    acts: u64,
    /// The commit count, if another process may have committed since the writer's last batch.
    others: Option<u32>,
}

#[cfg(test)]
impl ActsSeen {
    pub(super) const fn after(acts: u64) -> Self {
        Self { acts, others: None }
    }
}

impl KeyCache {
    /// For an open ledger. Starts empty.
    pub(super) fn new(index: LogIndex) -> Self {
        Self {
            index,
            known: Mutex::default(),
        }
    }

    /// The key as it is now: from memory, or by `read`.
    pub(super) fn find(
        &self,
        id: KeyId,
        read: impl FnOnce() -> Result<Option<Key>, LedgerError>,
    ) -> Result<Option<Key>, LedgerError> {
        let now = self.index.commits();
        if let Some(key) = self.known().at(now).and_then(|known| known.key(id)) {
            return Ok(Some(key));
        }
        let found = read()?;
        // The count is the same before and after, so what was read belongs to it.
        if let Some(key) = &found
            && self.index.commits() == now
            && let Some(known) = self.known().at(now)
        {
            if known.keys.len() >= MOST {
                known.forget();
            }
            known.keys.insert(id, key.own.clone());
            if let Some(maker) = key.counts_in {
                known.makers.insert(maker, key.of_maker.clone());
            }
            let customer = key.customer.clone();
            known.customers.insert(customer.id, customer);
        }
        Ok(found)
    }

    /// The writer has taken the write lock, so nobody else can commit until it releases it.
    pub(super) fn begin(&self) {
        let (now, mut known) = (self.index.commits(), self.known());
        if known.at != now {
            known.forget();
            known.at = now;
            known.acts = known.acts.wrapping_add(1);
        }
    }

    /// What was done to keys and customers by now; `None` if that cannot be known.
    pub(super) fn acts(&self) -> Option<ActsSeen> {
        let mut others = None;
        // Between a commit and its publication the counts differ for a moment.
        for _ in 0..3 {
            let (known, now) = (self.known(), self.index.commits()?);
            others = (known.at != Some(now)).then_some(now);
            if others.is_none() {
                break;
            }
            drop(known);
            std::thread::yield_now();
        }
        let acts = self.known().acts;
        Some(ActsSeen { acts, others })
    }

    /// The writer has committed a batch that wrote at least one row and changed these keys.
    pub(super) fn committed(&self, moved: impl Iterator<Item = CacheChange>) {
        let mut known = self.known();
        known.at = known.at.map(|count| count.wrapping_add(1));
        for moved in moved {
            match moved {
                CacheChange::Held(id, account) => {
                    if let Some(customer) = known.customers.get_mut(&id) {
                        customer.account = account;
                    }
                }
                CacheChange::Entered(id, account, at) => {
                    if let Some(customer) = known.customers.get_mut(&id) {
                        (customer.account, customer.last_entry_at) = (account, at);
                    }
                }
                CacheChange::Key(id) => {
                    known.keys.remove(&id);
                    known.makers.remove(&id);
                }
                CacheChange::Customer(id) => drop(known.customers.remove(&id)),
                CacheChange::Defaults => known.forget(),
                CacheChange::Act => known.acts = known.acts.wrapping_add(1),
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, CachedKeys> {
        lock(&self.known)
    }
}

impl CachedKeys {
    /// A key with its customer, and the caps that it counts in, if all are known.
    fn key(&self, id: KeyId) -> Option<Key> {
        let own = self.keys.get(&id)?.clone();
        let customer = self.customers.get(&own.belongs_to)?.clone();
        let of_maker = match own.counts_in {
            Some(maker) => self.makers.get(&maker)?.clone(),
            None => Caps::default(),
        };
        Some(Key {
            own,
            customer,
            of_maker,
        })
    }

    fn forget(&mut self) {
        self.keys.clear();
        self.makers.clear();
        self.customers.clear();
    }

    /// Returns itself if its keys are valid for this count.
    fn at(&mut self, count: Option<u32>) -> Option<&mut Self> {
        (count.is_some() && self.at == count).then_some(self)
    }
}
