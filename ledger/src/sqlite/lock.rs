//! The serve lock: one gateway for one ledger.
//!
//! `<ledger>.lock` is locked by the operating system for as long as the holder lives, so a killed process never leaves it
//! locked. Its content only names the holder; the file itself is never removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::beside;
use crate::LedgerError;

const STEP: Duration = Duration::from_millis(50);

/// The exclusive right to serve one ledger, held for as long as this value lives.
#[derive(Debug)]
pub struct ServeLock {
    path: PathBuf,
    _locked: File,
}

impl ServeLock {
    /// Takes `<ledger>.lock`, waiting at most `wait`. Blocks its thread meanwhile.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`], naming the holder.
    pub fn acquire(ledger: impl AsRef<Path>, wait: Duration) -> Result<Self, LedgerError> {
        let path = beside(ledger.as_ref(), ".lock");
        let failed = |error: std::io::Error| LedgerError::Unusable(format!("{}: {error}", path.display()));
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        let mut left = wait;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if left.is_zero() => {
                    let mut holder = String::new();
                    let _ = file.read_to_string(&mut holder);
                    let holder = holder.trim();
                    let holder = if holder.is_empty() { "another process" } else { holder };
                    return Err(LedgerError::Unusable(format!("{} is served by {holder}", ledger.as_ref().display())));
                }
                Err(TryLockError::WouldBlock) => {
                    let nap = left.min(STEP);
                    std::thread::sleep(nap);
                    left = left.saturating_sub(nap);
                }
            }
        }
        let holder = format!("process {} since {}\n", std::process::id(), crate::clock::now());
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(holder.as_bytes())).map_err(failed)?;
        Ok(Self { path, _locked: file })
    }

    /// The lock's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
