//! Checks twice a second whether the ledger's path still leads to the file that was opened, and whether the lock is in place.
//!
//! While it does not, the ledger accepts no writes and the gateway sells nothing. If a copy of the same ledger is restored to the
//! path, it is opened and recovered as at startup, and selling resumes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::sqlite::{FilesCheck, ServeLock, SqliteLedger};
use farebox_ledger::{Ledger, LedgerError};

use super::reload;
use farebox::clock;
use farebox::config::ConfigHandle;

const EVERY: Duration = Duration::from_millis(500);

/// Checks forever. If another process has taken the lock, nothing is written any more.
pub(super) async fn watch(
    ledger: &Arc<SqliteLedger>,
    lock: &mut ServeLock,
    config: &ConfigHandle,
) -> Infallible {
    let mut returned = false;
    loop {
        tokio::time::sleep(EVERY).await;
        let locked = match lock.keep() {
            Ok(locked) => locked,
            Err(error) => {
                ledger.fail(error.to_string());
                false
            }
        };
        let looking = Arc::clone(ledger);
        let look = tokio::task::spawn_blocking(move || looking.look(locked))
            .await
            .unwrap_or(FilesCheck::Away);
        // Kept until recovery has succeeded: the next look finds files that are simply there.
        returned |= look == FilesCheck::Returned;
        if returned && look != FilesCheck::Away {
            let recorded = lock.record(ledger);
            let recovered = match recorded {
                Ok(()) => recover(ledger, config).await,
                Err(error) => Err(error),
            };
            match recovered {
                Ok(()) => {
                    returned = false;
                    ledger.resume();
                }
                Err(error) => tracing::error!(%error, "the restored ledger is not recovered yet"),
            }
        }
    }
}

/// Recovers the ledger as at startup.
async fn recover(ledger: &Arc<SqliteLedger>, config: &ConfigHandle) -> Result<(), LedgerError> {
    let recovered = ledger.recover(clock::now()).await?;
    tracing::warn!(
        settled = recovered.settled,
        released = recovered.released,
        "ended the open holds of the restored ledger"
    );
    reload::publish(&**ledger, &config.current()).await
}
