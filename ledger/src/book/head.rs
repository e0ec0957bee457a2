//! The ends of a key's two chains: where the next entry and the next administrative act are numbered and hashed.

use crate::{Key, Timestamp};

/// A hash of the chain.
pub(crate) type Hash = [u8; 32];

/// The predecessor of a key's first entry and first audit record in format 1, and the value in the row of a key that has none yet.
pub(crate) const NOTHING: Hash = [0; 32];

/// How many milliseconds an entry may be ahead of the ledger's clock. Gateways whose clocks differ by a little may date their own
/// requests; a clock that is set wrong must not date a key's whole future.
const AHEAD: i64 = 10_000;

/// The end of a key's history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHead {
    pub(crate) seq: i64,
    /// The store's own place of that entry; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
    pub(crate) last_at: Option<Timestamp>,
}

impl KeyHead {
    /// The head of a key without entries.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        last: 0,
        hash: NOTHING,
        last_at: None,
    };

    /// When the next entry happened: not before the last one, and at most [`AHEAD`] after `now`, the ledger's own clock, whatever the
    /// caller's clock says. A last entry that lies further ahead was misdated, and the ledger's clock counts again.
    pub(crate) fn dated(&self, at: Timestamp, now: Timestamp) -> Timestamp {
        let latest = Timestamp::from_millis(now.millis().saturating_add(AHEAD));
        let at = at.min(latest);
        self.last_at
            .filter(|last| *last <= latest)
            .map_or(at, |last| at.max(last))
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

/// A key with the ends of its chains.
#[derive(Debug, Clone)]
pub(crate) struct StoredKey {
    pub(crate) key: Key,
    pub(crate) head: KeyHead,
    pub(crate) audit: AuditHead,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_dated_by_the_ledgers_clock_when_another_lies() {
        let at = Timestamp::from_millis;
        let head = |last: i64| KeyHead {
            last_at: Some(at(last)),
            ..KeyHead::NONE
        };
        let now = at(1_000_000);
        assert_eq!(KeyHead::NONE.dated(at(5), now), at(5));
        assert_eq!(
            head(7).dated(at(5), now),
            at(7),
            "never before the last one"
        );
        assert_eq!(head(7).dated(at(1_009_000), now), at(1_009_000));
        assert_eq!(
            head(7).dated(at(9_000_000), now),
            at(1_010_000),
            "never far ahead"
        );
        assert_eq!(
            head(9_000_000).dated(at(1_000_500), now),
            at(1_000_500),
            "a misdated entry dates nothing else"
        );
    }
}
