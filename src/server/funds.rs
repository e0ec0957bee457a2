//! What a key must be able to pay before its body is worth reading.
//!
//! Reading costs CPU time and memory whether the request is served or not, so a key without money gets its refusal first. The
//! bound is far below what any request with such a body costs, so that it refuses nothing that could be served.
//!
//! Rows of docs/interface.md: `balance_depleted`.

use farebox_ledger::{Amount, Key, UtcDay};

use crate::clock;
use crate::config::Catalog;
use crate::proxy::{Failure, ToldCap};

/// One token of the cheapest model must be affordable for each of so many bytes: text has four bytes a token, and a page of a PDF,
/// which costs the most bytes of all, some two thousand.
const BYTES_PER_TOKEN: usize = 2_000;

/// A key's money as far as caps of all models leave it, and the least that a token costs.
#[derive(Debug, Clone)]
pub(super) struct Funds {
    available: Amount,
    held: Amount,
    cap: Option<Box<ToldCap>>,
    cheapest: Amount,
}

impl Funds {
    pub(super) fn of(key: &Key, catalog: &Catalog) -> Self {
        let (customer, today) = (&key.customer, UtcDay::of(clock::now()));
        let cap = key.binding_cap("", today);
        let cap = cap.map(|(scope, cap)| cap.reached(scope, today, Amount::ZERO));
        let cap = cap.or_else(|| customer.plan_limit(""));
        Self {
            available: cap.as_ref().map_or(customer.available(""), |cap| cap.room),
            held: cap.as_ref().map_or(customer.account.held, |cap| cap.held),
            cap: cap.map(|cap| Box::new(ToldCap::to((key.id, key.is_owner), cap))),
            cheapest: catalog.cheapest_input,
        }
    }

    /// Refuses a body of this size, as far as it is known.
    ///
    /// # Errors
    /// 429 for a key that has nothing available and nothing held, or too little of both.
    pub(super) fn cover(&self, bytes: usize) -> Result<(), Failure> {
        let tokens = u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX);
        let needed = Amount::times(self.cheapest, tokens.max(1)).unwrap_or(Amount::MAX_COST);
        let available = self.available;
        // What is held comes back, and the request may wait for it.
        let at_rest = available.checked_add(self.held).unwrap_or(available);
        if at_rest > Amount::ZERO && (tokens == 0 || at_rest >= needed) {
            return Ok(());
        }
        Err(Failure::unread(needed, available, self.held).bound_by(self.cap.clone()))
    }
}
