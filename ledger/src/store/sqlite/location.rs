//! Which file a ledger is, and whether its path still leads there.
//!
//! A file that is moved or deleted stays open: SQLite would keep committing to it, and confirmed money would be in no ledger. So
//! each writer compares device and inode of the path and of the log with those it opened. Only `stat` is used here: opening the
//! database file outside SQLite and closing it again would drop SQLite's locks.

use std::fmt;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::header::Header;
use crate::store::copy::{MOVED, MOVED_AWAY};
use crate::{Cause, LedgerError, owner};

/// A file's identity in the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Follows links, as opening would.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        path.metadata().map(|found| Self::from(&found))
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// An opened ledger: the path that was asked for, and the file that it led to.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// As the operator wrote it, made absolute: a renamed folder must be noticed.
    pub(super) given: PathBuf,
    /// With links resolved, as SQLite has it. Log and lock are beside this one.
    pub(super) real: PathBuf,
    pub(super) file: FileId,
    /// The file's first bytes; only for writers.
    pub(super) header: Option<Header>,
    /// Where its log is.
    pub(super) log_path: PathBuf,
    /// Only for writers: a copy that is only read may have none.
    pub(super) log: Option<FileId>,
    /// The file's identity.
    pub(super) ledger: [u8; 16],
}

/// How a path no longer leads to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Displaced {
    Gone(PathBuf),
    Replaced(PathBuf),
    LogGone(PathBuf),
    LogReplaced(PathBuf),
    Overwritten(PathBuf),
    /// Its schema has another version now.
    Changed(PathBuf, i64),
    Unreadable(PathBuf, ErrorKind),
}

impl fmt::Display for Displaced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(path) => {
                write!(
                    out,
                    "{} was moved or deleted while it was open; put that file back, with its -wal",
                    path.display()
                )
            }
            Self::Replaced(path) => {
                write!(
                    out,
                    "{} is not the file that was opened, which was moved away or deleted",
                    path.display()
                )
            }
            Self::LogGone(path) | Self::LogReplaced(path) => {
                write!(
                    out,
                    "the log {} was moved or deleted while the ledger was open",
                    path.display()
                )
            }
            Self::Overwritten(path) => write!(
                out,
                "another program has written over {0} while it was open: stop the gateway and the consoles, remove {0}-wal and {0}-shm, \
                 put the backup in its place again, and start the gateway",
                path.display()
            ),
            Self::Changed(path, version) if *version > i64::from(MOVED) => {
                write!(out, "{} {MOVED_AWAY}", path.display())
            }
            Self::Changed(path, version) => write!(
                out,
                "{} was brought to schema {version} by another version of this program while it was open here: use that version",
                path.display()
            ),
            Self::Unreadable(path, kind) => write!(out, "{}: {kind}", path.display()),
        }
    }
}

impl std::error::Error for Displaced {}

impl From<Displaced> for Cause {
    fn from(displaced: Displaced) -> Self {
        Self::in_words(displaced.to_string(), displaced)
    }
}

impl From<Displaced> for LedgerError {
    fn from(displaced: Displaced) -> Self {
        Self::unavailable(displaced)
    }
}

impl Location {
    /// Whether the path still leads to the file that was opened, and its log is still that log. Two calls of `stat`.
    pub(super) fn check(&self) -> Result<(), Displaced> {
        match FileId::of(&self.given) {
            Ok(found) if found == self.file => {}
            Ok(_) => return Err(Displaced::Replaced(self.given.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Displaced::Gone(self.given.clone()));
            }
            Err(error) => return Err(Displaced::Unreadable(self.given.clone(), error.kind())),
        }
        if let Some(header) = &self.header {
            match header.is_intact() {
                Ok(true) => {}
                Ok(false) => return Err(Displaced::Overwritten(self.given.clone())),
                Err(error) => return Err(Displaced::Unreadable(self.given.clone(), error.kind())),
            }
        }
        let Some(log) = self.log else { return Ok(()) };
        let path = &self.log_path;
        match FileId::of(path) {
            Ok(found) if found == log => Ok(()),
            Ok(_) => Err(Displaced::LogReplaced(path.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Displaced::LogGone(path.clone()))
            }
            Err(error) => Err(Displaced::Unreadable(path.clone(), error.kind())),
        }
    }

    /// When the ledger was last written, in milliseconds since 1970, and the file that shows it: the log if there is anything in it.
    pub(super) fn last_write(&self) -> std::io::Result<(PathBuf, i64)> {
        let log = &self.log_path;
        let written = |found: &Metadata| {
            let (seconds, nanos) = (found.mtime(), found.mtime_nsec());
            seconds
                .saturating_mul(1_000)
                .saturating_add(nanos / 1_000_000)
        };
        match log.metadata() {
            Ok(found) if found.len() > 0 => Ok((log.clone(), written(&found))),
            _ => Ok((self.real.clone(), written(&self.real.metadata()?))),
        }
    }

    /// The path to reopen, after [`Location::check`] reported another file: `Ok` if that may be this ledger again.
    pub(super) fn may_be_back(&self, displaced: &Displaced) -> Result<(), String> {
        match displaced {
            Displaced::Replaced(path) => {
                let log = &self.log_path;
                if self.log.is_some() && FileId::of(log).ok() == self.log {
                    return Err(format!(
                        "{displaced}, and {} still belongs to the old file: move it and the -shm file away too",
                        log.display()
                    ));
                }
                if path.metadata().is_ok_and(|found| found.is_file()) {
                    Ok(())
                } else {
                    Err(displaced.to_string())
                }
            }
            Displaced::Gone(_)
            | Displaced::LogGone(_)
            | Displaced::LogReplaced(_)
            | Displaced::Overwritten(_)
            | Displaced::Changed(..)
            | Displaced::Unreadable(..) => Err(displaced.to_string()),
        }
    }
}

/// The path with links resolved. The file itself need not exist yet, but its folder must.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, LedgerError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => LedgerError::unusable(format!(
            "the folder of {} does not exist; choose the ledger with --ledger",
            path.display()
        )),
        _ => cannot_open(path, error),
    };
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.symlink_metadata().is_ok() {
                return Err(LedgerError::unusable(format!(
                    "{} is a broken symbolic link",
                    path.display()
                )));
            }
            let name = path.file_name().ok_or_else(|| {
                LedgerError::unusable(format!("{} is not a file", path.display()))
            })?;
            let folder = path
                .parent()
                .unwrap_or(Path::new("/"))
                .canonicalize()
                .map_err(failed)?;
            Ok(folder.join(name))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The path of a ledger's write-ahead log.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Why a file cannot be opened; if permissions are missing, who has them and how to act as that user.
pub(super) fn cannot_open(path: &Path, error: std::io::Error) -> LedgerError {
    let shown = path.display();
    if error.kind() != ErrorKind::PermissionDenied {
        return LedgerError::unusable(Cause::of(&format!("{shown} cannot be opened"), error));
    }
    let (owner, user) = (owner::of(path), owner::user_name());
    let remedy = if owner == user {
        "check its permissions".to_owned()
    } else {
        format!("run the command as sudo -u {owner}")
    };
    let words = format!("{shown} belongs to {owner}, and {user} has no access to it; {remedy}");
    LedgerError::unusable(Cause::in_words(words, error))
}

/// Whether a path is that of a ledger's file, or of one that SQLite or the lock keeps beside it.
#[must_use]
pub fn belongs_to_ledger(ledger: &Path, path: &Path) -> bool {
    let real = |path: &Path| {
        std::path::absolute(path)
            .ok()
            .and_then(|path| resolve(&path).ok())
    };
    let (Some(ledger), Some(path)) = (real(ledger), real(path)) else {
        return false;
    };
    ["", "-wal", "-shm", "-journal", ".lock"]
        .into_iter()
        .any(|suffix| beside(&ledger, suffix) == path)
}
