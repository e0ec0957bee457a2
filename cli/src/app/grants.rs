//! Books what time has done to grants: that they begin, near their end, and end. A request settles those of its own customer; of one
//! that sends none, nothing but time moves.

use std::convert::Infallible;
use std::time::Duration;

use farebox_ledger::{LedgerError, Perform, SettleGrants, SharedLedger};

use farebox::clock;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);

/// Looks again and again. Gateways of a fleet may look at once: what happens to a grant has an operation of its own, and is booked once.
pub(super) async fn watch(ledger: SharedLedger) -> Infallible {
    loop {
        if let Err(error) = look(&ledger).await {
            tracing::debug!(%error, "grants wait for the ledger");
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(ledger: &SharedLedger) -> Result<(), LedgerError> {
    for customer in ledger.due_grants(clock::now()).await? {
        // One that cannot be settled keeps no other waiting.
        if let Err(error) = ledger.perform(SettleGrants { customer }).await {
            tracing::debug!(%customer, %error, "its grants are not settled");
        }
    }
    Ok(())
}
