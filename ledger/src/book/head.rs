//! The ends of a customer's two chains: where the next entry and the next administrative act are numbered and hashed.

use crate::rule::watch::CustomerWatch;
use crate::{Customer, Timestamp};

/// A hash of the chain.
pub(crate) type Hash = [u8; 32];

/// The predecessor of a customer's first entry and first audit record in format 1, and the value in the row of one that has none yet.
pub(crate) const NOTHING: Hash = [0; 32];

/// How many milliseconds an entry may be ahead of the ledger's clock. Gateways whose clocks differ by a little may date their own
/// requests; a clock that is set wrong must not date a customer's whole future.
const AHEAD: i64 = 10_000;

/// The end of a customer's history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryHead {
    pub(crate) seq: i64,
    /// The store's own place of that entry; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
}

impl EntryHead {
    /// The head of a customer without entries.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        last: 0,
        hash: NOTHING,
    };
}

/// When the entry after `last` happened: not before that one, and at most [`AHEAD`] after `now`, the ledger's own clock, whatever the
/// caller's clock says. A last entry that lies further ahead was misdated, and the ledger's clock counts again.
fn dated(last: Option<Timestamp>, at: Timestamp, now: Timestamp) -> Timestamp {
    let latest = Timestamp::from_millis(now.millis().saturating_add(AHEAD));
    let at = at.min(latest);
    last.filter(|last| *last <= latest)
        .map_or(at, |last| at.max(last))
}

/// The end of a customer's audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditHead {
    pub(crate) seq: i64,
    /// The store's own place of the newest record; 0 when there is none.
    pub(crate) last: i64,
    pub(crate) hash: Hash,
}

impl AuditHead {
    /// The head of a customer without acts.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        last: 0,
        hash: NOTHING,
    };
}

/// A customer with the ends of its chains, and what is watched of it.
#[derive(Debug, Clone)]
pub(crate) struct StoredCustomer {
    pub(crate) customer: Customer,
    pub(crate) head: EntryHead,
    pub(crate) audit: AuditHead,
    pub(crate) watch: CustomerWatch,
    /// Holds ever opened by its keys: each is still open or has ended in a charge.
    pub(crate) opened: i64,
}

impl StoredCustomer {
    /// When its newest entry happened.
    pub(crate) const fn last_at(&self) -> Option<Timestamp> {
        self.customer.last_entry_at
    }

    /// When its next entry happened, by the clock of the ledger and by that of whoever makes it.
    pub(crate) fn dated(&self, at: Timestamp, now: Timestamp) -> Timestamp {
        dated(self.last_at(), at, now)
    }
}

/// The end of the chain of acts that belong to no customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HouseHead {
    pub(crate) seq: i64,
    pub(crate) hash: Hash,
}

impl HouseHead {
    pub(crate) const NONE: Self = Self {
        seq: 0,
        hash: NOTHING,
    };

    /// What the next act is hashed with, in a ledger whose chains begin with `genesis`.
    pub(crate) const fn previous(&self, genesis: Hash) -> Hash {
        if self.seq == 0 { genesis } else { self.hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_dated_by_the_ledgers_clock_when_another_lies() {
        let at = Timestamp::from_millis;
        let now = at(1_000_000);
        let after = |last: i64, of: i64| dated(Some(at(last)), at(of), now);
        assert_eq!(dated(None, at(5), now), at(5));
        assert_eq!(after(7, 5), at(7), "never before the last one");
        assert_eq!(after(7, 1_009_000), at(1_009_000));
        assert_eq!(after(7, 9_000_000), at(1_010_000), "never far ahead");
        assert_eq!(
            after(9_000_000, 1_000_500),
            at(1_000_500),
            "a misdated entry dates nothing else"
        );
    }
}
