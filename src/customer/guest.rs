//! How a handler says whose request it serves, once it knows: what strangers do is bounded more tightly than what customers do.

use farebox_ledger::Key;

use crate::proxy::ConnectionFate;

/// A request under way, which the server keeps for its handler.
pub trait Guest: Send + Sync {
    /// The request shows a key, which is looked up now: until it is known, this is no stranger, however long that takes.
    fn claims(&self);

    /// The request was made with this key, or in a session of it.
    fn belongs_to(&self, key: &Key);

    /// The key that it shows is none.
    fn is_refused(&self);

    /// Who ends its connection.
    fn connection(&self) -> ConnectionFate;
}
