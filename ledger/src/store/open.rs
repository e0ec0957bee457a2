//! Opens a ledger from its address: the only place that knows which store belongs to which address.

use std::path::Path;
use std::sync::Arc;

use crate::store::SharedStore;
use crate::store::bill_file::{Left, waiting_beside};
use crate::store::copy::copy;
use crate::store::postgres::{AcceptedLoss, PostgresLedger};
use crate::store::sqlite::SqliteLedger;
use crate::{LedgerAddress, LedgerError, Opening, Timestamp, VerifyReport};

impl LedgerAddress {
    /// Makes a ledger where there is nothing, and opens it.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when there is something already, [`LedgerError::Unusable`] when none can be made.
    pub async fn create(&self, opening: &Opening) -> Result<SharedStore, LedgerError> {
        Ok(match self {
            Self::File(path) => Arc::new(SqliteLedger::create(
                path,
                opening.mode,
                opening.durability,
            )?),
            Self::Postgres(config) => Arc::new(PostgresLedger::create(config, opening).await?),
        })
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when there is none, [`LedgerError::Unusable`] when it is not a ledger, or newer than this program;
    /// nothing was created or changed then.
    pub async fn open(&self, opening: &Opening) -> Result<SharedStore, LedgerError> {
        Ok(match self {
            Self::File(path) => {
                Arc::new(SqliteLedger::open(path, opening.mode, opening.durability)?)
            }
            Self::Postgres(config) => Arc::new(PostgresLedger::open(config, opening).await?),
        })
    }

    /// Accepts the loss of what a gateway's state file remembers but the database no longer has.
    ///
    /// # Errors
    /// As [`PostgresLedger::accept_lost`]; always an error for a file, which no promotion can set back.
    pub async fn accept_lost(
        &self,
        opening: &Opening,
        actor: &str,
        at: Timestamp,
    ) -> Result<AcceptedLoss, LedgerError> {
        match self {
            Self::Postgres(config) => PostgresLedger::accept_lost(config, opening, actor, at).await,
            Self::File(_) => {
                let why = "a ledger in a SQLite file is compared with its anchors: `farebox ledger verify --anchors FILE`";
                Err(LedgerError::unusable(why.to_owned()))
            }
        }
    }

    /// Every loss that operators have accepted, oldest first; none of a file.
    ///
    /// # Errors
    /// As [`PostgresLedger::open`].
    pub async fn accepted_losses(&self) -> Result<Vec<AcceptedLoss>, LedgerError> {
        match self {
            Self::Postgres(config) => PostgresLedger::accepted_losses(config).await,
            Self::File(_) => Ok(Vec::new()),
        }
    }

    /// The bills that a gateway kept when it stopped: beside a file, or beside its state file if the ledger is in a database.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file with them cannot be read, or is not as it was written.
    pub fn unsettled(&self, state: Option<&Path>) -> Result<Left, LedgerError> {
        match self.path().or(state) {
            Some(path) => waiting_beside(path),
            None => Ok(Left::default()),
        }
    }

    /// Every slug that the ledger ever published; empty if there is no ledger yet. For the gateway, which reads its own files
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

    /// Copies this ledger, which must not be served, to `target`, a new ledger on the other kind of store; verifies both.
    /// `progress` gets the number of entries copied, and their total.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the source is served or not sound, or the target is not empty or of the same kind; nothing
    /// was created then. [`LedgerError::Unavailable`] when reading or writing fails.
    pub async fn copy_to(
        &self,
        to: &Self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<VerifyReport, LedgerError> {
        match (self, to) {
            (Self::File(from), Self::Postgres(config)) => {
                let target = crate::store::postgres::CopyTarget::open(config).await?;
                copy(
                    crate::store::sqlite::CopySource::open(from)?,
                    target,
                    &mut progress,
                )
                .await
            }
            (Self::Postgres(config), Self::File(path)) => {
                let target = crate::store::sqlite::CopyTarget::open(path)?;
                copy(
                    crate::store::postgres::CopySource::open(config).await?,
                    target,
                    &mut progress,
                )
                .await
            }
            (Self::File(_), Self::File(_)) => Err(LedgerError::unusable(
                "both are SQLite files; `farebox ledger backup` makes a copy of one".to_owned(),
            )),
            (Self::Postgres(_), Self::Postgres(_)) => Err(LedgerError::unusable(
                "both are on PostgreSQL, whose own pg_dump and pg_restore copy a database"
                    .to_owned(),
            )),
        }
    }
}
