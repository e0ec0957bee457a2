//! The serve lock: at most one gateway per ledger.
//!
//! The operating system keeps `<real path>.lock` locked for as long as the holder lives, so a killed process never leaves it
//! locked. The file names the holder and, by device and inode, the three files that it has open: every other writer compares them with
//! its own, as long as the lock is held. The file is never removed or truncated, and anything else with its name (a link, another file,
//! a socket) is neither followed nor written to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;

use super::SqliteLedger;
use super::file_id::{FileId, LedgerFiles};
use super::paths::{cannot_open, resolve};
use crate::LedgerError;
use crate::store::side_file::beside;

const STEP: Duration = Duration::from_millis(50);
/// Both lines are padded to these lengths, so that they cover those of an earlier holder.
const LINE: usize = 80;
const FILES_LINE: usize = 160;
/// Where the second line begins.
const FILES_AT: u64 = LINE as u64 + 1;
/// What is behind the ledger's name in those of its three files.
const NAMES: [&str; 3] = ["", "-wal", "-shm"];
/// How often a lock that is held is tried again, a millisecond apart: who asks for the holder has it for a moment.
const TRIES: usize = 10;

/// The exclusive right to serve one ledger, held for as long as this value lives.
#[derive(Debug)]
pub struct ServeLock {
    path: PathBuf,
    locked: File,
    files: Option<LedgerFiles>,
}

impl ServeLock {
    /// Takes the lock next to the ledger's real file, waiting at most `wait`. Blocks the thread.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`], naming the holder, or what is in the lock's place.
    pub fn acquire(ledger: impl AsRef<Path>, wait: Duration) -> Result<Self, LedgerError> {
        let ledger = std::path::absolute(ledger.as_ref())
            .map_err(|error| cannot_open(ledger.as_ref(), error))?;
        let path = path_of(&resolve(&ledger)?);
        let mut left = wait;
        loop {
            match take(&path)? {
                Ok(locked) => {
                    let files = None;
                    return Ok(Self {
                        path,
                        locked,
                        files,
                    });
                }
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
        // Two failed looks would be equal as well.
        if mine.is_some() && FileId::of(&self.path).ok() == mine {
            return Ok(true);
        }
        match take(&self.path) {
            Ok(Ok(locked)) => {
                self.locked = locked;
                self.tell()?;
                Ok(true)
            }
            Ok(Err(holder)) => Err(LedgerError::unusable(format!(
                "{} was moved or deleted, and {holder} holds the new one",
                self.path.display()
            ))),
            Err(_) => Ok(false),
        }
    }

    /// Says in the lock's file which files this gateway has open now.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when it cannot be written.
    pub fn record(&mut self, ledger: &SqliteLedger) -> Result<(), LedgerError> {
        self.files = ledger.opened().location.files();
        self.tell()
    }

    fn tell(&mut self) -> Result<(), LedgerError> {
        let Some(files) = self.files else {
            return Ok(());
        };
        let line = files.map(|file| file.to_string()).join(" ");
        let written = format!("{line:<FILES_LINE$}\n");
        (self.locked)
            .write_all_at(written.as_bytes(), FILES_AT)
            .map_err(|error| cannot_open(&self.path, error))
    }

    /// The lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The gateway that serves a ledger, as another process sees it.
#[derive(Debug)]
pub(super) struct LockHolder {
    pub(super) name: String,
    /// None before it has opened the ledger.
    files: Option<LedgerFiles>,
}

impl LockHolder {
    /// The first of these three files of the ledger at this path that is not the one that the gateway has open.
    pub(super) fn has_another_open(&self, real: &Path, found: LedgerFiles) -> Option<PathBuf> {
        self.first_other(real, |name| found.get(name).copied())
    }

    /// The same before anything is opened: SQLite would make what is missing.
    pub(super) fn misses(&self, real: &Path) -> Option<PathBuf> {
        let at = |name: usize| FileId::of(&beside(real, NAMES.get(name)?)).ok();
        self.first_other(real, at)
    }

    fn first_other(&self, real: &Path, found: impl Fn(usize) -> Option<FileId>) -> Option<PathBuf> {
        let open = self.files?;
        let mut open = open.into_iter().zip(NAMES).enumerate();
        let (_, (_, name)) = open.find(|(number, (open, _))| found(*number) != Some(*open))?;
        Some(beside(real, name))
    }
}

/// Where a ledger's lock is.
pub(super) fn path_of(real: &Path) -> PathBuf {
    beside(real, ".lock")
}

/// The gateway that has this lock, if one does.
pub(super) fn served(path: &Path) -> Option<LockHolder> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    let mut file = (options.read(true).custom_flags(flags.bits()).open(path)).ok()?;
    // Another process that asks shares the lock; only the gateway has it alone.
    match file.try_lock_shared() {
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => {
            let text = content(&mut file);
            let mut lines = text.lines();
            let name = lines.next().unwrap_or_default().trim().to_owned();
            let files = lines.next().unwrap_or_default().split_whitespace();
            let files: Vec<FileId> = files.map_while(|file| file.parse().ok()).collect();
            let files = files.try_into().ok();
            Some(LockHolder { name, files })
        }
    }
}

/// Locks the file and writes this process into it; the inner error is the holder.
fn take(path: &Path) -> Result<Result<File, String>, LedgerError> {
    let mut file = open(path)?;
    let holder = (content(&mut file).lines().next().unwrap_or_default())
        .trim()
        .to_owned();
    let mut locked = file.try_lock();
    for _ in 1..TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        locked = file.try_lock();
    }
    match locked {
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
    // Another program's file may have this name: nothing has been written to it so far.
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
        .and_then(|()| write!(file, "{holder:<LINE$}\n{:<FILES_LINE$}\n", ""));
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

/// Both lines, as far as they can be read.
fn content(file: &mut File) -> String {
    let mut bytes = [0; LINE + FILES_LINE + 2];
    let read = file
        .rewind()
        .and_then(|()| file.read(&mut bytes))
        .unwrap_or_default();
    String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned()
}
