//! Keys as they stand in the ledger, kept in memory for the gateway's door, which reads one for every request.
//!
//! A key is given out only if it equals what a read of the file would find at that moment. Every commit, of whatever process, adds
//! one to a counter in the head of the log's index (`-shm`), so one small read tells whether anybody has committed since. The
//! writer compares the counter under its write lock: if another process has committed, everything is forgotten. After a commit of
//! its own it publishes what the batch changed together with the next count. Whoever finds another count reads the file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::location::{Location, beside, cannot_open};
use crate::{Account, Key, KeyId, LedgerError, Timestamp};

/// Keys remembered at most; then all are forgotten, and those in use are read again.
const MOST: usize = 10_000;

/// Keys, true as of one commit.
#[derive(Debug)]
pub(super) struct Remembered {
    commits: Commits,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The count of the commit that `keys` are true of; none before the writer's first batch.
    at: Option<u32>,
    keys: HashMap<KeyId, Key>,
}

/// What a batch does to a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moved {
    /// Money was held or given back.
    Held(Account),
    /// An entry of this instant moved money.
    Entered(Account, Timestamp),
    /// The key itself was changed.
    Changed,
}

impl Remembered {
    /// For a ledger that is open. Remembers nothing yet.
    pub(super) fn open(location: &Location) -> Result<Self, LedgerError> {
        Ok(Self { commits: Commits::open(location)?, known: Mutex::default() })
    }

    /// The key as it is now: from memory, or by `read`.
    pub(super) fn find(
        &self,
        id: KeyId,
        read: impl FnOnce() -> Result<Option<Key>, LedgerError>,
    ) -> Result<Option<Key>, LedgerError> {
        let now = self.commits.count();
        if let Some(key) = self.known().at(now).and_then(|known| known.keys.get(&id)) {
            return Ok(Some(key.clone()));
        }
        let found = read()?;
        // The same count before and after: what was read belongs to it.
        if let Some(key) = &found
            && self.commits.count() == now
            && let Some(known) = self.known().at(now)
        {
            if known.keys.len() >= MOST {
                known.keys.clear();
            }
            known.keys.insert(id, key.clone());
        }
        Ok(found)
    }

    /// The writer has taken the write lock, so nobody else commits until it gives the lock back.
    pub(super) fn begin(&self) {
        let (now, mut known) = (self.commits.count(), self.known());
        if known.at != now {
            known.keys.clear();
            known.at = now;
        }
    }

    /// The writer has committed a batch that wrote at least one row, and moved these keys.
    pub(super) fn committed(&self, moved: impl Iterator<Item = (KeyId, Moved)>) {
        let mut known = self.known();
        known.at = known.at.map(|count| count.wrapping_add(1));
        for (id, moved) in moved {
            let Some(key) = known.keys.get_mut(&id) else { continue };
            match moved {
                Moved::Held(account) => key.account = account,
                Moved::Entered(account, at) => (key.account, key.last_entry_at) = (account, Some(at)),
                Moved::Changed => drop(known.keys.remove(&id)),
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Itself, if its keys are true of this count.
    fn at(&mut self, count: Option<u32>) -> Option<&mut Self> {
        (count.is_some() && self.at == count).then_some(self)
    }
}

/// The number of commits, as every process that uses the ledger counts them.
///
/// After a crash in the middle of writing the index's head, SQLite begins to count at 0 again.
#[derive(Debug)]
struct Commits(&'static File);

impl Commits {
    /// Where `iChange` stands in the index's head, in the machine's byte order (sqlite.org/walformat.html).
    const PLACE: u64 = 8;

    fn open(location: &Location) -> Result<Self, LedgerError> {
        let path = beside(&location.real, "-shm");
        let index = File::open(&path).map_err(|error| cannot_open(&path, &error))?;
        // Never closed: closing any descriptor of this file would drop the locks that SQLite has on it in this process.
        Ok(Self(Box::leak(Box::new(index))))
    }

    fn count(&self) -> Option<u32> {
        let mut count = [0; 4];
        self.0.read_exact_at(&mut count, Self::PLACE).ok().map(|()| u32::from_ne_bytes(count))
    }
}
