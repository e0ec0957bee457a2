//! Keeps the customers' votes on targets in the ledger, and takes over those of other gateways and what an operator has reset.

use std::sync::Arc;
use std::time::Duration;

use crate::proxy::Proxy;

/// Between two exchanges: a reset is noticed within this time, and a crash loses votes no older than this.
const EVERY: Duration = Duration::from_secs(30);

/// Exchanges votes at once and then again and again; never ends.
pub(super) async fn exchange(proxy: Arc<Proxy>) {
    loop {
        if let Err(error) = proxy.calibrations.exchange(&proxy.ledger).await {
            tracing::warn!(%error, "what targets have shown could not be exchanged with the ledger");
        }
        tokio::time::sleep(EVERY).await;
    }
}
