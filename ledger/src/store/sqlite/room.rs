//! Room on the disk that belongs to the ledger before anything is written there. Whatever fills the disk, every running request can
//! be settled, the log can be copied into the ledger's file, and a start can end the holds of a crash.
//!
//! The blocks are beyond the ends of the files, so that nobody reads them. What the files have is what the file system says they
//! have: a checkpoint that cuts a file short gives its blocks back, and the next look reserves them again.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use nix::sys::statvfs::fstatvfs;

use super::descriptors;
use super::files::open_log;
use super::index;
use super::location::Location;
use super::paths::{cannot_open, index_path};
use crate::LedgerError;
use crate::store::room::reserve;

/// What the settlement of one hold may add to the log when nothing shares its commit. Those of 1,000 holds with bills of
/// 4,000 bytes add 8 pages on average and 16 at most, each by itself.
pub(super) const PER_HOLD: u64 = 96 << 10;
/// The same for the ledger's file, which grows by an entry and its places in the indexes.
const PER_HOLD_IN_FILE: u64 = 8 << 10;
/// For what is written besides: the commits of a start, a command of an operator.
const MARGIN: u64 = 4 << 20;
/// Reserved at once beyond what is needed, so that it is rarely done.
const STEP: u64 = 2 << 20;
/// How many bytes of log a block of its index is for: pages of 4,096 bytes with their headers.
const INDEXED: u64 = index::FRAMES * 4_120;
/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// The files of an open ledger that grow.
#[derive(Debug)]
pub(super) struct DiskRoom {
    log: File,
    file: Arc<File>,
    memory: Arc<File>,
}

impl DiskRoom {
    /// Of the log that `location` names, and no other one.
    pub(super) fn of(location: &Location) -> Result<Self, LedgerError> {
        let kept = |path: &_| descriptors::kept(path).map_err(|error| cannot_open(path, error));
        Ok(Self {
            log: open_log(location)?,
            file: kept(&location.real)?,
            memory: kept(&index_path(&location.real))?,
        })
    }

    /// How long the log is.
    pub(super) fn log_bytes(&self) -> std::io::Result<u64> {
        Ok(self.log.metadata()?.len())
    }

    /// How much of the disk is free for this user.
    pub(super) fn free(&self) -> std::io::Result<u64> {
        let disk = fstatvfs(&self.log)?;
        Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
    }

    /// Makes sure that the log has room for the ends of so many holds.
    pub(super) fn cover(&self, holds: u64) -> std::io::Result<()> {
        let need = holds.saturating_mul(PER_HOLD).saturating_add(MARGIN);
        let length = grow(&self.log, None, need)?;
        let indexed = length.saturating_add(need).saturating_add(STEP) / INDEXED;
        let blocks = indexed.saturating_add(2).saturating_mul(index::BLOCK);
        grow(&self.memory, Some(blocks), 0).map(drop)
    }

    /// Makes sure that the ledger's file has room for so many bytes, which are in the log, and for the ends of so many holds.
    pub(super) fn cover_copy(&self, bytes: u64, holds: u64) -> std::io::Result<()> {
        let need = holds
            .saturating_mul(PER_HOLD_IN_FILE)
            .saturating_add(MARGIN);
        grow(&self.file, Some(bytes), need).map(drop)
    }
}

/// Makes sure that a file has blocks for `need` bytes beyond its end, or beyond `length` if that is more; returns that length.
fn grow(file: &File, length: Option<u64>, need: u64) -> std::io::Result<u64> {
    let found = file.metadata()?;
    let length = length.unwrap_or_default().max(found.len());
    let wanted = length.saturating_add(need);
    if found.blocks().saturating_mul(BLOCK) < wanted {
        let from = found.len();
        let bytes = wanted.saturating_sub(from);
        // A disk without room for the extra may still have what is needed.
        reserve(file, from, bytes.saturating_add(STEP)).or_else(|_| reserve(file, from, bytes))?;
    }
    Ok(length)
}
