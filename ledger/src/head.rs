//! The ends of a key's two chains: where the next entry and the next administrative act are numbered and hashed.

use crate::Timestamp;

/// A hash of the chain.
pub(crate) type Hash = [u8; 32];

/// The predecessor of a key's first entry and first audit record in format 1, and the value in the row of a key that has none yet.
pub(crate) const NOTHING: Hash = [0; 32];

/// The end of a key's history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    /// The store's own place of that entry; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
    pub(crate) last_at: Option<Timestamp>,
}

impl Head {
    /// The head of a key without entries.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        last: 0,
        hash: NOTHING,
        last_at: None,
    };

    /// An instant that is not before the last entry's, whatever the clock says.
    pub(crate) fn not_before(&self, at: Timestamp) -> Timestamp {
        self.last_at.map_or(at, |last| at.max(last))
    }
}

/// The end of a key's audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditHead {
    pub(crate) seq: i64,
    /// The store's own place of the newest record; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
}

impl AuditHead {
    /// The head of a key without acts.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        last: 0,
        hash: NOTHING,
    };
}
