//! The end of a gateway on a shared ledger: what it cannot book any more it keeps, and what it kept too long is exposure.

use std::sync::Arc;
use std::time::Duration;

use super::node;
use super::readers::Readers;
use super::state::Shared;
use crate::store::bill_file::Left;
use crate::{Finish, LedgerError};

/// How long closing may take. With twice 30 s before it, a gateway has stopped within the 90 s of its service manager.
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes what waits, and keeps the bills that cannot be written.
pub(super) fn close(readers: &Readers, writer: &Arc<Shared>) -> Left {
    writer.close();
    // The writer has its own thread, so this one may block on it, whatever runs here.
    let (done, waiting) = std::sync::mpsc::channel();
    let draining = Arc::clone(writer);
    readers.spawn(async move {
        draining.drained().await;
        let _ = done.send(());
    });
    let _ = waiting.recv_timeout(PATIENCE);
    writer.refuse_waiting();
    let due = writer.take_due();
    if let Some(unsettled) = writer.unsettled.get() {
        return unsettled.close(&due);
    }
    if !due.is_empty() {
        tracing::error!(
            "bills are due that would be kept beside the file of --state, and there is none"
        );
    }
    Left::without_bills(due.len())
}

/// Stores bills whose holds other gateways have ended, for the last run that the state file remembers: it had them.
pub(super) async fn store_late(
    readers: &Readers,
    writer: Option<&Shared>,
    bills: &[&Finish],
) -> Result<(), LedgerError> {
    let epoch = writer.map_or(0, |writer| writer.confirmed.run().epoch);
    let store = async |link: Arc<super::link::Link>| {
        node::store_late_bills(&link, epoch, bills.iter().copied()).await
    };
    readers.alone(store).await
}
