//! How long events are kept, and which customers owe or ask for money, for both databases.

use crate::{Event, Timestamp};

/// Each half has an index of its own.
pub(crate) const OWING_OR_ASKING: &str = "WHERE a.id IN (SELECT id FROM accounts WHERE claim > 0 UNION \
     SELECT id FROM accounts WHERE auto_top_up IS NOT NULL) ORDER BY a.id";

/// Old events that one batch looks at, at most.
// After a long stop a month's events may be due at once; a batch that deleted all of them would keep holds waiting.
pub(crate) const OLD_AT_ONCE: i64 = 1_000;

/// Events of before may go.
pub(crate) const fn kept_since(now: Timestamp) -> Timestamp {
    let kept = Event::DAYS.saturating_mul(86_400_000);
    Timestamp::from_millis(now.millis().saturating_sub(kept))
}
