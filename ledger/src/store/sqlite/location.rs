//! Which file a ledger is, and whether its path still leads there.
//!
//! A ledger is three files: the database, its log (`-wal`) and the log's index (`-shm`). One that is moved or deleted stays open:
//! SQLite would keep committing to it, and confirmed money would be in no ledger, or be written over by a process with another log or
//! index. So each writer compares device and inode of all three with those it opened, and with those that the gateway has open, before
//! it commits and again before it confirms. SQLite itself can be asked about the database alone (`FileControl::HasMoved`).

use std::fmt;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file_id::{FileId, LedgerFiles};
use super::header::Header;
use super::index::{CutLog, LogIndex};
use super::lock::{self, LockHolder};
use super::paths::{cannot_open, index_path, move_away, wal_path};
use crate::store::copy::{MOVED, MOVED_AWAY};
use crate::{Cause, LedgerError};

/// An opened ledger: the path that was asked for, and the file that it led to.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// As the operator wrote it, made absolute: a renamed folder must be noticed.
    pub(super) given: PathBuf,
    /// With links resolved, as SQLite has it. Log, index and lock are beside this one.
    pub(super) real: PathBuf,
    pub(super) file: FileId,
    /// What a writer has open besides. A copy that is only read may have neither log nor index.
    pub(super) written: Option<WrittenFiles>,
    /// The file's identity.
    pub(super) ledger: [u8; 16],
}

/// What a writer compares.
#[derive(Debug, Clone)]
pub(super) struct WrittenFiles {
    /// The database's first bytes.
    header: Header,
    log_path: PathBuf,
    pub(super) log: FileId,
    index_path: PathBuf,
    index_file: FileId,
    pub(super) index: LogIndex,
    /// The index's greatest length seen.
    index_length: Arc<AtomicU64>,
    /// Where the gateway says which files it has open; none in the gateway itself.
    lock_path: Option<PathBuf>,
}

impl WrittenFiles {
    /// The files of a ledger that has just been opened; `serves`: by the gateway.
    pub(super) fn of(real: &Path, header: Header, serves: bool) -> Result<Self, LedgerError> {
        let [log_path, index_path] = [wal_path(real), index_path(real)];
        let id = |path: &Path| FileId::of(path).map_err(|error| cannot_open(path, error));
        let on_index = |error| cannot_open(&index_path, error);
        let index = LogIndex::open(&index_path).map_err(on_index)?;
        if serves {
            index.lengthen().map_err(on_index)?;
        }
        let length = index_path.metadata().map_err(on_index)?.len();
        if !index.is_whole() {
            return Err(LedgerError::unusable(Displaced::IndexCut(index_path)));
        }
        Ok(Self {
            header,
            log: id(&log_path)?,
            log_path,
            index_file: id(&index_path)?,
            index_path,
            index,
            index_length: Arc::new(AtomicU64::new(length)),
            lock_path: (!serves).then(|| lock::path_of(real)),
        })
    }

    /// Log and index, and where they belong.
    fn beside(&self) -> [(&Path, FileId); 2] {
        [
            (&self.log_path, self.log),
            (&self.index_path, self.index_file),
        ]
    }

    /// The gateway that serves the ledger, unless this process is it.
    fn gateway(&self) -> Option<LockHolder> {
        self.lock_path.as_deref().and_then(lock::served)
    }

    /// Log and index are what was opened, and whole.
    fn check(&self) -> Result<(), Displaced> {
        let seen = self.index_length.load(Ordering::Acquire);
        let index = match same(&self.index_path, self.index_file) {
            Ok(found) => found.len(),
            Err(displaced) => {
                // What is lost with the log comes first: whoever ends for it copies it.
                same(&self.log_path, self.log)?;
                return Err(displaced);
            }
        };
        self.index_length.fetch_max(index, Ordering::AcqRel);
        if index < seen {
            return Err(Displaced::IndexCut(self.index_path.clone()));
        }
        let length = || same(&self.log_path, self.log).map(|found| found.len());
        (self.index.missing(length)?).map_or(Ok(()), |cut| {
            Err(Displaced::LogCut(self.log_path.clone(), cut))
        })
    }
}

/// The file at the path, if it is this one.
fn same(path: &Path, id: FileId) -> Result<Metadata, Displaced> {
    match path.metadata() {
        Ok(found) if FileId::from(&found) == id => Ok(found),
        Ok(_) => Err(Displaced::BesideReplaced(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Displaced::BesideGone(path.to_owned()))
        }
        Err(error) => Err(Displaced::Unreadable(path.to_owned(), error.kind())),
    }
}

/// How a path no longer leads to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Displaced {
    Gone(PathBuf),
    Replaced(PathBuf),
    /// The log or its index.
    BesideGone(PathBuf),
    BesideReplaced(PathBuf),
    /// The gateway has other files open.
    NotServed(PathBuf, String),
    /// The database.
    Overwritten(PathBuf),
    LogCut(PathBuf, CutLog),
    IndexCut(PathBuf),
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
                    "{} was moved or deleted while it was open; put that file back, with its -wal and -shm",
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
            Self::BesideGone(path) => {
                write!(
                    out,
                    "{} was moved or deleted while the ledger was open",
                    path.display()
                )
            }
            Self::BesideReplaced(path) => {
                write!(
                    out,
                    "{} is not the file that was opened with the ledger, which was moved away or deleted",
                    path.display()
                )
            }
            Self::NotServed(path, holder) => write!(
                out,
                "the gateway ({holder}) has another {} open than the one that is there now: put that file back, or start the                  gateway again; nothing was written",
                path.display()
            ),
            Self::Overwritten(path) => write!(
                out,
                "another program has written over {0} or cut it off while it was open: stop the gateway and the consoles, move {0},                  {0}-wal and {0}-shm away, put a backup in their place, and start the gateway",
                path.display()
            ),
            Self::LogCut(path, cut) => write!(out, "{} was cut off: {cut}", path.display()),
            Self::IndexCut(path) => write!(
                out,
                "{} was cut off while the ledger was open; stop every program that has the ledger open and start the gateway again, which makes \
                 it anew: the log has every commit",
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
    /// The three files, of a writer.
    pub(super) fn files(&self) -> Option<LedgerFiles> {
        let written = self.written.as_ref()?;
        Some([self.file, written.log, written.index_file])
    }

    /// Whether the path still leads to the file that was opened, log and index are those that were opened with it, and a gateway that
    /// serves the ledger has the same ones. A few calls of `stat` and two short reads.
    pub(super) fn check(&self) -> Result<(), Displaced> {
        let seen = self.written.as_ref().map(|written| written.header.seen());
        let length = match self.given.metadata() {
            Ok(found) if FileId::from(&found) == self.file => found.len(),
            Ok(_) => return Err(Displaced::Replaced(self.given.clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Displaced::Gone(self.given.clone()));
            }
            Err(error) => return Err(Displaced::Unreadable(self.given.clone(), error.kind())),
        };
        let (Some(written), Some(seen)) = (&self.written, seen) else {
            return Ok(());
        };
        match written.header.is_intact(seen, length) {
            Ok(true) => written.check()?,
            Ok(false) => return Err(Displaced::Overwritten(self.given.clone())),
            Err(error) => return Err(Displaced::Unreadable(self.given.clone(), error.kind())),
        }
        match (written.gateway(), self.files()) {
            (Some(gateway), Some(files)) => match gateway.has_another_open(&self.real, files) {
                None => Ok(()),
                Some(path) => Err(Displaced::NotServed(path, gateway.name)),
            },
            (Some(_), None) | (None, _) => Ok(()),
        }
    }

    /// Whether this process is not the gateway, and there is one.
    pub(super) fn is_served_by_another(&self) -> bool {
        let written = self.written.as_ref();
        written.and_then(WrittenFiles::gateway).is_some()
    }

    /// When the ledger was last written, in milliseconds since 1970, and the file that shows it: the log if there is anything in it.
    pub(super) fn last_write(&self) -> std::io::Result<(PathBuf, i64)> {
        let log = wal_path(&self.real);
        let written = |found: &Metadata| {
            let (seconds, nanos) = (found.mtime(), found.mtime_nsec());
            seconds
                .saturating_mul(1_000)
                .saturating_add(nanos / 1_000_000)
        };
        match log.metadata() {
            Ok(found) if found.len() > 0 => Ok((log, written(&found))),
            _ => Ok((self.real.clone(), written(&self.real.metadata()?))),
        }
    }

    /// The path to reopen, after [`Location::check`] reported another file: `Ok` if that may be this ledger again. Never for another log or
    /// index of the same file: SQLite has one index for each file in a process, and goes on with the old one as long as a connection has it.
    pub(super) fn may_be_back(&self, displaced: &Displaced) -> Result<(), String> {
        match displaced {
            Displaced::Replaced(path) => {
                let own = (self.written.iter())
                    .flat_map(WrittenFiles::beside)
                    .find(|(path, id)| FileId::of(path).is_ok_and(|found| found == *id));
                if let Some((own, _)) = own {
                    return Err(format!(
                        "{displaced}, and {} still belongs to the old file: move its -wal and -shm away, too",
                        own.display()
                    ));
                }
                if path.metadata().is_ok_and(|found| found.is_file()) {
                    Ok(())
                } else {
                    Err(displaced.to_string())
                }
            }
            Displaced::BesideGone(_) | Displaced::BesideReplaced(_) => Err(format!(
                "{displaced}; put it back, or start this program again"
            )),
            Displaced::Gone(_)
            | Displaced::NotServed(..)
            | Displaced::Overwritten(_)
            | Displaced::LogCut(..)
            | Displaced::IndexCut(_)
            | Displaced::Changed(..)
            | Displaced::Unreadable(..) => Err(displaced.to_string()),
        }
    }

    /// Moves a log and an index away that were put in the place of this ledger's own, whose content is in the database now: SQLite
    /// would take the database for older than that log. Nothing is deleted.
    pub(super) fn move_strangers_away(&self) -> std::io::Result<()> {
        let Some(written) = &self.written else {
            return Ok(());
        };
        if FileId::of(&self.given)? != self.file {
            return Ok(());
        }
        for (path, id) in written.beside() {
            if FileId::of(path).is_ok_and(|found| found != id) {
                move_away(path)?;
            }
        }
        Ok(())
    }
}
