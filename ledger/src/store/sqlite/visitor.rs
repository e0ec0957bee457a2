//! What is asked of a path whose ledger is not open: a new one, and what an old one has published.

use std::path::Path;

use super::absent::{refuse_absent, refuse_present};
use super::paths::cannot_open;
use super::{SqliteLedger, files, readers, reads};
use crate::{Durability, LedgerError, OpenMode};

impl SqliteLedger {
    /// Makes a ledger file, and opens it.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when something is there; [`LedgerError::Unusable`] when it cannot be made.
    pub fn create(
        path: impl AsRef<Path>,
        mode: OpenMode,
        durability: Durability,
    ) -> Result<Self, LedgerError> {
        files::make_new(path.as_ref())?;
        Self::open(path, mode, durability)
    }

    /// Checks, before anything is made beside it, that there is a ledger at this path, or nothing where a new one is wanted.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`].
    pub fn check_place(path: impl AsRef<Path>, new: bool) -> Result<(), LedgerError> {
        let path = path.as_ref();
        let given = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
        if new {
            refuse_present(&given)
        } else {
            refuse_absent(&given)
        }
    }

    /// Every slug that the ledger in this file ever published, whatever its version; empty if there is no file yet. For the
    /// gateway, which reads its own files before it takes the ledger.
    ///
    /// # Errors
    /// As [`SqliteLedger::open`].
    pub fn published_in(path: &Path) -> Result<Vec<String>, LedgerError> {
        if Self::check_place(path, false).is_err() {
            return Ok(Vec::new());
        }
        let conn = files::open_any_version(path)?;
        let published =
            reads::published(&conn).map_err(|error| readers::unreadable(path, error))?;
        Ok(published
            .into_iter()
            .map(|published| published.slug)
            .collect())
    }
}
