//! The ledger's sums and gateways for `/status` and `/metrics`, which answer at once whatever the ledger does: while it is in trouble, or
//! takes longer than a moment, with what was read last.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Gateway, Totals};

use super::Admin;

/// How long a read is waited for once there is an earlier one.
const MOMENT: Duration = Duration::from_millis(40);

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct SumsSeen {
    /// Running totals over all keys; `None` before the first could be read.
    pub totals: Option<Totals>,
    /// The gateways that share the ledger.
    pub gateways: Vec<Gateway>,
}

impl Admin {
    /// What they are now, if that does not take long.
    pub(super) async fn sums(&self) -> Arc<SumsSeen> {
        let last = self.sums.load_full();
        if self.ledger.obstacle().is_some() {
            return last;
        }
        let read = if last.totals.is_some() {
            let reading = tokio::time::timeout(MOMENT, self.read_sums());
            reading.await.ok().flatten()
        } else {
            self.read_sums().await
        };
        read.unwrap_or(last)
    }

    /// Reads them; `None` if the ledger cannot be read, and then what was read last stands.
    pub async fn read_sums(&self) -> Option<Arc<SumsSeen>> {
        let (totals, gateways) = (self.ledger.totals().await, self.ledger.gateways().await);
        let seen = Arc::new(SumsSeen {
            totals: Some(totals.ok()?),
            gateways: gateways.ok()?,
        });
        self.front.rate_limits.shared_by(seen.gateways.len());
        self.sums.store(Arc::clone(&seen));
        Some(seen)
    }
}
