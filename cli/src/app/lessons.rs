//! Adds what targets have taught to the ledger's sums, and takes over those of other gateways and what an operator has reset.

use std::sync::Arc;
use std::time::Duration;

use farebox::proxy::Proxy;

/// Between two exchanges: a reset is noticed within this time, and a crash loses no more than what was taught in it.
const EVERY: Duration = Duration::from_secs(10);

/// How long a gateway that stops waits for the newest to be written.
const LAST: Duration = Duration::from_secs(2);

/// Writes what is new when the gateway stops.
pub(super) async fn last(proxy: &Proxy) {
    let written = tokio::time::timeout(LAST, proxy.calibrations.exchange(&proxy.ledger)).await;
    if !matches!(written, Ok(Ok(()))) {
        tracing::warn!("the newest of what targets have taught was not written to the ledger");
    }
}

/// Exchanges at once and then again and again; never ends.
pub(super) async fn exchange(proxy: Arc<Proxy>) {
    loop {
        if let Err(error) = proxy.calibrations.exchange(&proxy.ledger).await {
            tracing::warn!(%error, "what targets have taught could not be exchanged with the ledger");
        }
        tokio::time::sleep(EVERY).await;
    }
}
