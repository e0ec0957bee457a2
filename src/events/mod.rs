//! Events on their way to webhooks: signed, retried for three days, in the open if a receiver stays away.
//!
//! The ledger has the outbox, and a row for each event and webhook; this room hands events out to them (`courier`), tries each
//! delivery ([`Sending`]) and writes down what became of it. A gateway that dies delivers again what it had not written down. What
//! concerns a gateway and not the books (alerts) is told directly and at best (`direct`).

mod courier;
mod direct;
mod schedule;
mod sending;
mod signature;

pub use courier::deliver;
pub use direct::{DirectEvent, tell_alerts};
pub use sending::{SendError, Sending};
