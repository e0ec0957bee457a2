//! Looks for customers whose rule of auto top-up had to wait: after a failure, or for another month. Where money moves, the ledger asks
//! by itself; of a customer without any, nothing but time moves.

use std::convert::Infallible;
use std::time::Duration;

use farebox_ledger::{JudgeTopUp, LedgerError, Perform, SharedLedger};

use farebox::clock;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(60);

/// Looks again and again. Gateways of a fleet may look at once: the ledger asks once.
pub(super) async fn watch(ledger: SharedLedger) -> Infallible {
    loop {
        if let Err(error) = look(&ledger).await {
            tracing::debug!(%error, "auto top-ups wait for the ledger");
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(ledger: &SharedLedger) -> Result<(), LedgerError> {
    for customer in ledger.due_top_ups(clock::now()).await? {
        let judge = JudgeTopUp {
            customer,
            operation: clock::operation_id(),
        };
        ledger.perform(judge).await?;
    }
    Ok(())
}
