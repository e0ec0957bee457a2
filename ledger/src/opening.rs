//! From an address to an opened ledger: the one place that knows which store is behind which address.

use std::sync::Arc;

use crate::postgres::PostgresLedger;
use crate::sqlite::{Durability, OpenMode, SqliteLedger};
use crate::store::SharedStore;
use crate::{LedgerAddress, LedgerError};

impl LedgerAddress {
    /// Opens the ledger. A database is as durable as its server makes each commit, whatever `durability` says.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when it is missing, not a ledger, or newer than this program; nothing was created or changed then.
    pub async fn open(&self, mode: OpenMode, durability: Durability) -> Result<SharedStore, LedgerError> {
        Ok(match self {
            Self::File(path) => Arc::new(SqliteLedger::open(path, mode, durability)?),
            Self::Postgres(config) => Arc::new(PostgresLedger::open(config, mode).await?),
        })
    }

    /// Every slug that the ledger ever published; none when there is no ledger yet. For the gateway, which reads its own files
    /// before it takes the ledger.
    ///
    /// # Errors
    /// As [`LedgerAddress::open`].
    pub async fn published(&self) -> Result<Vec<String>, LedgerError> {
        match self {
            Self::File(path) => SqliteLedger::published_in(path),
            Self::Postgres(config) => PostgresLedger::published_in(config).await,
        }
    }
}
