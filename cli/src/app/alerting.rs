//! Looks for alerts twice a second, whether or not anybody asks: the log tells of them.

use std::sync::Arc;
use std::time::Duration;

use farebox::server::admin::Admin;

const EVERY: Duration = Duration::from_millis(500);
/// The gateways of a fleet are asked for in one look out of this many: that is a query.
const GATEWAYS_EVERY: u32 = 3;
/// What of the books has to be told is read in one look out of this many.
const BOOKS_EVERY: u32 = 6;

/// Looks as long as the gateway runs.
pub(super) async fn watch(admin: Arc<Admin>) {
    for look in (0..GATEWAYS_EVERY * BOOKS_EVERY).cycle() {
        tokio::time::sleep(EVERY).await;
        let gateways = match look % GATEWAYS_EVERY {
            0 => admin.ledger.gateways().await.ok(),
            _ => None,
        };
        if look % BOOKS_EVERY == 0
            && let Err(error) = admin.read_books().await
        {
            tracing::debug!(%error, "what of the books has to be told was not read");
        }
        let admin = Arc::clone(&admin);
        // Looking at thousands of targets takes too long for a thread that serves requests.
        let looked = tokio::task::spawn_blocking(move || match gateways {
            Some(gateways) => drop(admin.alerts(&gateways)),
            None => admin.look(),
        });
        if looked.await.is_err() {
            tracing::error!("looking for alerts failed");
        }
    }
}
