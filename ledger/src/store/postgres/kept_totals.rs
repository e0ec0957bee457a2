//! The sums over all keys, which a gateway reuses for a while: whoever watches it asks often.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::readers::Readers;
use super::reads;
use crate::{LedgerError, Totals, lock};

/// How long a gateway reuses the same sums. Commands and the console always read them.
const KEPT: Duration = Duration::from_secs(10);

/// What was read last, and when.
#[derive(Default)]
pub(super) struct KeptTotals(Mutex<Option<(Instant, Totals)>>);

impl KeptTotals {
    pub(super) async fn get(&self, readers: &Readers) -> Result<Totals, LedgerError> {
        let last = *lock(&self.0);
        if let Some((at, totals)) = last
            && at.elapsed() < KEPT
        {
            return Ok(totals);
        }
        let totals = read(readers).await?;
        *lock(&self.0) = Some((Instant::now(), totals));
        Ok(totals)
    }
}

pub(super) async fn read(readers: &Readers) -> Result<Totals, LedgerError> {
    readers
        .with(|link| async move { reads::totals(&link).await })
        .await
}
