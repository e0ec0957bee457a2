//! Looks for alerts twice a second, whether or not anybody asks: the log tells of them. What has to be read of the ledger for them is read
//! beside, so that a ledger that does not answer is told like any other trouble.

use std::sync::Arc;
use std::time::Duration;

use farebox::server::admin::Admin;

const EVERY: Duration = Duration::from_millis(500);
/// Between two reads of the sums and of the gateways of a fleet: that is a query.
const SUMS_EVERY: Duration = Duration::from_millis(1_500);
/// What of the books has to be told is read once in so many of these reads.
const BOOKS_EVERY: u32 = 2;

/// Looks as long as the gateway runs.
pub(super) async fn watch(admin: Arc<Admin>) {
    tokio::join!(look(&admin), read(&admin));
}

async fn look(admin: &Arc<Admin>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let admin = Arc::clone(admin);
        // Looking at thousands of targets takes too long for a thread that serves requests.
        if tokio::task::spawn_blocking(move || admin.look())
            .await
            .is_err()
        {
            tracing::error!("looking for alerts failed");
        }
    }
}

async fn read(admin: &Admin) {
    for round in (0..BOOKS_EVERY).cycle() {
        tokio::time::sleep(SUMS_EVERY).await;
        if let Some(sums) = admin.read_sums().await {
            admin.compare(&sums.gateways);
        }
        if round == 0
            && let Err(error) = admin.read_books().await
        {
            tracing::debug!(%error, "what of the books has to be told was not read");
        }
    }
}
