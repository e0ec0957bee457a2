//! A ledger together with its lifecycle, for programs that open and close it.
//!
//! Callers that only use a ledger take `Ledger`; the gateway and the commands, which open and close it, take this trait.

pub(crate) mod address;
pub(crate) mod admin_token;
pub(crate) mod begin;
pub mod bill_file;
pub(crate) mod codes;
pub(crate) mod copy;
pub(crate) mod default_rows;
pub(crate) mod delivery_rows;
pub(crate) mod event_rows;
pub(crate) mod fleet;
pub(crate) mod grant_rows;
pub(crate) mod hour_rows;
pub(crate) mod lesson_rows;
pub(crate) mod mounts;
mod open;
pub(crate) mod opening;
pub mod owner;
pub mod postgres;
mod replies;
mod room;
pub(crate) mod rows;
pub(crate) mod select;
mod side_file;
pub mod sqlite;
pub(crate) mod stats;
mod strays;
pub(crate) mod trouble;
pub(crate) mod trouble_record;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::book::anchor::Anchor;
use crate::{
    Finish, Gateway, Ledger, LedgerError, LedgerTrouble, Recovered, Server, Timestamp,
    VerifyReport, WriterStats,
};
use bill_file::{Left, Unsettled};

/// An opened ledger.
#[async_trait]
pub trait Store: Ledger {
    /// Where it is, without a password.
    fn place(&self) -> String;

    /// How the writer is doing.
    fn stats(&self) -> WriterStats;

    /// What is wrong now, the most telling first. It never asks or waits for the ledger; a file also looks at its clock
    /// and at who has locked its log.
    fn troubles(&self) -> Vec<LedgerTrouble>;

    /// Why nothing can be sold now, if that is so.
    fn obstacle(&self) -> Option<LedgerTrouble> {
        self.troubles().into_iter().find(|trouble| trouble.stops)
    }

    /// The gateways that share the ledger, including this one; none if it is a file.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be read.
    async fn gateways(&self) -> Result<Vec<Gateway>, LedgerError> {
        Ok(Vec::new())
    }

    /// The database's servers, as they last answered; none if it is a file.
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }

    /// Tells the other gateways which files this one runs.
    fn announce(&self, _configuration: String) {}

    /// Waits until it has stopped for good and says why. The process should then exit with an error.
    async fn fatal(&self) -> String;

    /// Books the bills that an earlier run kept in its file, and then ends its other holds.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file cannot be read, or belongs to another ledger; those of [`Ledger::recover`].
    async fn begin(&self, now: Timestamp) -> Result<Recovered, LedgerError> {
        begin::begin(self, now).await
    }

    /// The file for bills that are due when the ledger is closed; none in programs that are not gateways.
    fn unsettled(&self) -> Option<&Unsettled>;

    /// Notes the bills of requests that were ended at their checkpoints meanwhile. They are exposure.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be written.
    async fn store_late(&self, bills: &[&Finish]) -> Result<(), LedgerError> {
        for finish in bills {
            begin::log_late(finish);
        }
        Ok(())
    }

    /// Writes what is waiting and then accepts nothing more. May be called twice. Bills that are due then go to the file.
    fn close(&self) -> Left;

    /// Copies the ledger to a new file and verifies the copy.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the copy cannot be made or is not sound; nothing of it is left.
    async fn backup(&self, to: &Path) -> Result<VerifyReport, LedgerError>;

    /// Continues an anchor over what was appended since.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be read.
    async fn anchor(&self, since: &Anchor, now: Timestamp) -> Result<Anchor, LedgerError>;

    /// Sets the newest anchor, which a database must cover after every interruption.
    fn anchored(&self, _newest: &Anchor) {}

    /// As [`Ledger::verify`], and compares the ledger with its anchors.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the ledger cannot be read.
    async fn verify_with(&self, anchors: Vec<Anchor>) -> Result<VerifyReport, LedgerError>;
}

/// A ledger with its lifecycle, whichever kind it is.
pub type SharedStore = Arc<dyn Store>;
