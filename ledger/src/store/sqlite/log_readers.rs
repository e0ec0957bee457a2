//! Who has locked the log: a program that writes, or one with an open read transaction, which keeps the log from being copied into the
//! ledger's file, because it still needs the pages as they were when it began.
//!
//! Each holds a lock on a byte of the shared memory (`-shm`), and beside a reader's stands up to where in the log it reads. Both are
//! where SQLite's file format puts them (*WAL-Index Format*). The system tells the process behind a lock unless it is this one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::index::LogIndex;
use super::location::Location;
use super::paths::{cannot_open, index_path};
use crate::{Blocker, Fault, LedgerError, TroubleKind};

/// A reader is told after this time.
// Our own lists are read in short statements, so who reads for this long has a transaction open and has forgotten it, or is stuck.
const TOLD_AFTER: Duration = Duration::from_secs(10);
/// The lock byte of whoever writes.
const WRITER_LOCK: i64 = 120;
/// The first lock byte of readers. It belongs to those that read nothing in the log, which keeps all of it from being copied.
const FIRST_LOCK: i64 = 123;

/// How far a checkpoint came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copied {
    /// Pages in the log.
    pub(super) pages: i64,
    /// How many of them are in the ledger's file.
    pub(super) copied: i64,
}

impl Copied {
    pub(super) const fn is_all(self) -> bool {
        self.copied >= self.pages
    }
}

#[derive(Debug, Clone)]
pub(super) struct LogLocks {
    index: LogIndex,
    /// The ledger's file.
    file: PathBuf,
}

impl LogLocks {
    pub(super) fn of(location: &Location) -> Result<Self, LedgerError> {
        let path = index_path(&location.real);
        let index = LogIndex::open(&path).map_err(|error| cannot_open(&path, error))?;
        Ok(Self {
            index,
            file: location.given.clone(),
        })
    }

    /// Why a commit has to wait, if another process is writing.
    pub(super) fn busy(&self) -> Option<Fault> {
        let writer = self.holder(WRITER_LOCK)?;
        let cause = format!(
            "another program is writing to {}, and commits wait for it: {}",
            self.file.display(),
            words(&writer)
        );
        let remedy = "let it finish, or end that process: what it has not committed is undone";
        Some(Fault::new(TroubleKind::Blocked, cause, remedy).by(vec![writer]))
    }

    /// The other processes that read up to this page or less; none if it is this process itself.
    fn readers(&self, copied: i64) -> Vec<Blocker> {
        let Some(marks) = self.index.marks() else {
            return Vec::new();
        };
        let mut found: Vec<Blocker> = (FIRST_LOCK..)
            .zip(marks)
            .filter(|(_, mark)| i64::from(*mark) <= copied)
            .filter_map(|(byte, _)| self.holder(byte))
            .collect();
        found.dedup();
        found
    }

    /// The process that holds a lock on this byte, if it is another one.
    fn holder(&self, byte: i64) -> Option<Blocker> {
        self.index.holder(byte).map(|pid| self.process(pid))
    }

    /// A process by its id, which is 0 or less for one of another container.
    fn process(&self, pid: i32) -> Blocker {
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0);
        let name = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        Blocker {
            pid,
            name: name.map(|name| name.trim_end().to_owned()),
            file: Some(self.file.clone()),
            ..Blocker::default()
        }
    }
}

/// A process in words.
fn words(process: &Blocker) -> String {
    match (process.pid, &process.name) {
        (Some(pid), Some(name)) => format!("process {pid} ({name})"),
        (Some(pid), None) => format!("process {pid}"),
        (None, _) => "a process of another container".to_owned(),
    }
}

/// Finds the readers behind a log that does not get shorter.
#[derive(Debug)]
pub(super) struct LogReaders {
    locks: LogLocks,
    /// How many pages were copied when that number was first seen, and when.
    stuck: Option<(i64, Instant)>,
}

impl LogReaders {
    pub(super) fn of(location: &Location) -> Result<Self, LedgerError> {
        Ok(Self {
            locks: LogLocks::of(location)?,
            stuck: None,
        })
    }

    /// Notes what a checkpoint did. Returns who has held it back, once it has not moved for 10 s.
    pub(super) fn note(&mut self, found: Copied, now: Instant) -> Option<Fault> {
        if found.is_all() {
            self.stuck = None;
            return None;
        }
        let since = match self.stuck {
            Some((copied, since)) if copied == found.copied => since,
            _ => now,
        };
        self.stuck = Some((found.copied, since));
        let held = now.saturating_duration_since(since) >= TOLD_AFTER;
        held.then(|| held_by(self.locks.readers(found.copied)))
    }
}

/// A log that cannot be copied.
fn held_by(readers: Vec<Blocker>) -> Fault {
    let who = match readers.as_slice() {
        [] => "a long read of this gateway".to_owned(),
        readers => readers.iter().map(words).collect::<Vec<_>>().join(" and "),
    };
    let cause = format!("{who} has read in the log for 10 s or longer, so that it grows");
    let remedy = "a backup or a verification ends by itself; end an operator's forgotten shell";
    Fault::new(TroubleKind::LogHeld, cause, remedy).by(readers)
}
