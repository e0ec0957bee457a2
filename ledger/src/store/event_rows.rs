//! How long events are kept, and which customers want money now, for both databases.

use crate::book::head::StoredCustomer;
use crate::{CustomerId, Event, Timestamp};

/// Old events that one batch looks at, at most.
// After a long stop a month's events may be due at once; a batch that deleted all of them would keep holds waiting.
pub(crate) const OLD_AT_ONCE: i64 = 1_000;

/// Events of before may go.
pub(crate) const fn kept_since(now: Timestamp) -> Timestamp {
    let kept = Event::DAYS.saturating_mul(86_400_000);
    Timestamp::from_millis(now.millis().saturating_sub(kept))
}

/// Those whose rule of auto top-up wants money now.
pub(crate) fn wanting(found: &[StoredCustomer], now: Timestamp) -> Vec<CustomerId> {
    let customers = found.iter().map(|stored| &stored.customer);
    customers
        .filter(|customer| customer.wanted_top_up(now).is_some())
        .map(|customer| customer.id)
        .collect()
}
