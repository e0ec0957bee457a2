//! The one decoder of events, for both databases, and how long they are kept.

use super::rows::{Decoded, Malformed, RowColumns};
use crate::book::head::StoredCustomer;
use crate::value::event::EventKind;
use crate::{CustomerId, Event, Timestamp};

/// Old events that one batch looks at, at most.
pub(crate) const OLD_AT_ONCE: i64 = 1_000;

/// What [`event`] takes, of `events e`.
macro_rules! event_columns {
    () => {
        "e.id, e.kind, e.at, e.customer, e.seq, e.data"
    };
}
pub(crate) use event_columns;

pub(crate) fn event(columns: &mut impl RowColumns) -> Decoded<Event> {
    Ok(Event {
        id: columns.operation()?,
        kind: EventKind::named(columns.str()?).ok_or(Malformed::Value("kind of event"))?,
        at: columns.at()?,
        customer: columns
            .maybe_number()?
            .map(|number| CustomerId::from_i64(number).ok_or(Malformed::Value("customer's id")))
            .transpose()?,
        seq: columns.maybe_number()?,
        data: columns.text()?,
    })
}

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
