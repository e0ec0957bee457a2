//! The serve lock: at most one gateway per ledger.
//!
//! The operating system keeps `<real path>.lock` locked for as long as the holder lives, so a killed process never leaves it
//! locked. The file's content only names the holder. It is never removed or truncated, and anything else with its name (a link,
//! another file, a socket) is neither followed nor written to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;

use super::location::{FileId, beside, cannot_open, resolve};
use crate::LedgerError;

const STEP: Duration = Duration::from_millis(50);
/// The holder's text is padded to this length, so that it covers the text of an earlier holder.
const LINE: usize = 80;

/// The exclusive right to serve one ledger, held for as long as this value lives.
#[derive(Debug)]
pub struct ServeLock {
    path: PathBuf,
    locked: File,
}

impl ServeLock {
    /// Takes the lock next to the ledger's real file, waiting at most `wait`. Blocks the thread.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`], naming the holder, or what is in the lock's place.
    pub fn acquire(ledger: impl AsRef<Path>, wait: Duration) -> Result<Self, LedgerError> {
        let ledger = std::path::absolute(ledger.as_ref())
            .map_err(|error| cannot_open(ledger.as_ref(), error))?;
        let path = beside(&resolve(&ledger)?, ".lock");
        let mut left = wait;
        loop {
            match take(&path)? {
                Ok(locked) => return Ok(Self { path, locked }),
                Err(holder) if left.is_zero() => {
                    return Err(LedgerError::unusable(format!(
                        "{} is in use by {holder}",
                        ledger.display()
                    )));
                }
                Err(_) => {
                    let nap = left.min(STEP);
                    std::thread::sleep(nap);
                    left = left.saturating_sub(nap);
                }
            }
        }
    }

    /// Checks that the lock's file is still in its place; takes the lock again, if possible, when the file was moved or deleted.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when another process has it now.
    pub fn keep(&mut self) -> Result<bool, LedgerError> {
        let mine = self
            .locked
            .metadata()
            .ok()
            .map(|found| FileId::from(&found));
        if mine.is_some() && FileId::of(&self.path).ok() == mine {
            return Ok(true);
        }
        match take(&self.path) {
            Ok(Ok(locked)) => {
                self.locked = locked;
                Ok(true)
            }
            Ok(Err(holder)) => Err(LedgerError::unusable(format!(
                "{} was moved or deleted, and {holder} holds the new one",
                self.path.display()
            ))),
            Err(_) => Ok(false),
        }
    }

    /// The lock's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Locks the file and writes this process into it; the inner error is the holder.
fn take(path: &Path) -> Result<Result<File, String>, LedgerError> {
    let mut file = open(path)?;
    let holder = content(&mut file);
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Ok(Err(if holder.is_empty() {
                "another process".to_owned()
            } else {
                holder
            }));
        }
        Err(TryLockError::Error(error)) => return Err(cannot_open(path, error)),
    }
    if !holder.is_empty() && !holder.starts_with("process ") {
        return Err(LedgerError::unusable(format!(
            "{} is not a lock file of Farebox; move it away",
            path.display()
        )));
    }
    let holder = format!(
        "process {} since {}",
        std::process::id(),
        crate::value::clock::now()
    );
    let written = file
        .rewind()
        .and_then(|()| writeln!(file, "{holder:<LINE$}"));
    written.map_err(|error| cannot_open(path, error))?;
    Ok(Ok(file))
}

/// Opens or creates the lock's file, and nothing else.
fn open(path: &Path) -> Result<File, LedgerError> {
    let planted = || {
        LedgerError::unusable(format!(
            "{} is not a regular file, or has more than one name; remove it",
            path.display()
        ))
    };
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits())
        .open(path)
        .map_err(|error| match path.symlink_metadata() {
            Ok(found) if !found.is_file() => planted(),
            _ => cannot_open(path, error),
        })?;
    let found = opened
        .metadata()
        .map_err(|error| cannot_open(path, error))?;
    if found.is_file() && found.nlink() == 1 {
        Ok(opened)
    } else {
        Err(planted())
    }
}

/// The holder of the lock, as far as it can be read.
fn content(file: &mut File) -> String {
    let mut bytes = [0; LINE];
    let read = file
        .rewind()
        .and_then(|()| file.read(&mut bytes))
        .unwrap_or_default();
    String::from_utf8_lossy(bytes.get(..read).unwrap_or_default())
        .trim()
        .to_owned()
}
