//! What a key must be able to pay before its body is worth reading.
//!
//! Reading costs CPU time and memory whether the request is served or not, so a key without money gets its refusal first. The
//! bound is far below what any request with such a body costs, so that it refuses nothing that could be served.

use farebox_ledger::{Account, Amount};

use crate::config::Catalog;
use crate::proxy::Failure;

/// One token of the cheapest model must be affordable for each of so many bytes: text has four bytes a token, and a page of a PDF,
/// which costs the most bytes of all, some two thousand.
const BYTES_PER_TOKEN: usize = 2_000;

/// A key's money, and the least that a token costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Funds {
    account: Account,
    cheapest: Amount,
}

impl Funds {
    pub(super) fn of(account: Account, catalog: &Catalog) -> Self {
        Self {
            account,
            cheapest: catalog.cheapest_input,
        }
    }

    /// Refuses a body of this size, as far as it is known.
    ///
    /// # Errors
    /// 429 for a key that has nothing available, or too little.
    pub(super) fn cover(&self, bytes: usize) -> Result<(), Failure> {
        let tokens = u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX);
        let needed = Amount::times(self.cheapest, tokens.max(1)).unwrap_or(Amount::MAX_COST);
        let available = self.account.available();
        if available > Amount::ZERO && (tokens == 0 || available >= needed) {
            return Ok(());
        }
        Err(Failure::unread(needed, available, self.account.held))
    }
}
