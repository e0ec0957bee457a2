//! Where a key's two chains end: what the next entry and the next administrative act are numbered and hashed behind.

use crate::Timestamp;

/// A link of the chain.
pub(crate) type Hash = [u8; 32];

/// What stands before a key's first entry and first audit record in format 1, and in the row of a key that has none yet.
pub(crate) const NOTHING: Hash = [0; 32];

/// Where a key's history ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    /// The store's own place of that entry; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
    pub(crate) last_at: Option<Timestamp>,
}

impl Head {
    /// An instant that is not before the last entry's, whatever the clock says.
    pub(crate) fn not_before(&self, at: Timestamp) -> Timestamp {
        self.last_at.map_or(at, |last| at.max(last))
    }
}

/// Where a key's audit ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditHead {
    pub(crate) seq: i64,
    /// The store's own place of the newest record; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
}
