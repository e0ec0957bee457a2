//! Read-only connections, a few per process. A read whose connection fails, or leads to a server that is used no more, is tried
//! once more on another one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::connector::Connector;
use super::link::Link;
use super::trouble::TransactionTrouble;
use crate::store::trouble_record::TroubleRecord;
use crate::{Cause, LedgerError, lock};

/// Concurrent connections.
// A gateway has up to eight more, for writing, its lease and the question who is in the way; a server has a hundred unless it is told
// otherwise.
const READERS: usize = 4;
/// How long a read may take before its connection is dropped.
// No statement is cancelled (see `link`), so a connection whose read takes too long is given up.
const READ: Duration = Duration::from_secs(10);

/// The readers of a process.
#[derive(Debug)]
pub(super) struct Readers {
    connector: Connector,
    /// The runtime of the connections.
    runtime: Handle,
    idle: Mutex<Vec<Arc<Link>>>,
    free: Semaphore,
}

impl Readers {
    pub(super) fn new(connector: Connector, runtime: Handle) -> Self {
        Self {
            connector,
            runtime,
            idle: Mutex::default(),
            free: Semaphore::new(READERS),
        }
    }

    /// What is wrong with the ledger.
    pub(super) const fn record(&self) -> &Arc<TroubleRecord> {
        self.connector.record()
    }

    /// Runs something on the runtime of the connections.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
    }

    /// Runs a read.
    pub(super) async fn with<T, Reading>(
        &self,
        read: impl Fn(Arc<Link>) -> Reading,
    ) -> Result<T, LedgerError>
    where
        Reading: Future<Output = Result<T, TransactionTrouble>>,
    {
        let found = self.read(read).await;
        found.map_err(|why| self.unavailable(why))
    }

    /// The same for a caller who tells the record of it.
    pub(super) async fn read<T, Reading>(
        &self,
        read: impl Fn(Arc<Link>) -> Reading,
    ) -> Result<T, Cause>
    where
        Reading: Future<Output = Result<T, TransactionTrouble>>,
    {
        let _permit = (self.free.acquire().await).map_err(|_| "the ledger is closed")?;
        let mut again = true;
        loop {
            let link = self.link().await?;
            let reading = tokio::time::timeout(READ, read(Arc::clone(&link)));
            let found = tokio::select! {
                found = reading => found,
                () = self.connector.servers().outdated(link.number) => {
                    Ok(Err(TransactionTrouble::Lost("another server is used now".into())))
                }
            };
            match found {
                Ok(Ok(found)) => {
                    lock(&self.idle).push(link);
                    return Ok(found);
                }
                Ok(Err(TransactionTrouble::Lost(_))) if again => again = false,
                Ok(Err(trouble)) => return Err(trouble.cause()),
                Err(_) => return Err("the database did not answer in time".into()),
            }
        }
    }

    /// Runs a long read on its own connection.
    pub(super) async fn alone<T, Reading>(
        &self,
        read: impl FnOnce(Arc<Link>) -> Reading,
    ) -> Result<T, LedgerError>
    where
        Reading: Future<Output = Result<T, TransactionTrouble>>,
    {
        let link = self.connect().await.map_err(|why| self.unavailable(why))?;
        read(link)
            .await
            .map_err(|trouble| self.unavailable(trouble.cause()))
    }

    /// With what the record knows of the cause.
    pub(super) fn unavailable(&self, cause: Cause) -> LedgerError {
        LedgerError::Unavailable(self.record().worded(cause))
    }

    async fn link(&self) -> Result<Arc<Link>, Cause> {
        let number = self.connector.servers().number();
        loop {
            let idle = lock(&self.idle).pop();
            match idle {
                Some(link) if link.client.is_closed() || link.number != number => {}
                Some(link) => return Ok(link),
                None => return self.connect().await,
            }
        }
    }

    async fn connect(&self) -> Result<Arc<Link>, Cause> {
        let connector = self.connector.clone();
        let connecting = self.runtime.spawn(async move { connector.connect().await });
        match connecting.await {
            Ok(Ok(link)) => Ok(Arc::new(link)),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("the ledger is closed".into()),
        }
    }
}
