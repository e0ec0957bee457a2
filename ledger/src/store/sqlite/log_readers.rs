//! Who keeps the log from being copied into the ledger's file: a program with an open read transaction, which still needs the pages
//! as they were when it began.
//!
//! Such a reader holds a lock on a byte of the shared memory (`-shm`), and beside it stands up to where in the log it reads. Both are
//! where SQLite's file format puts them (*WAL-Index Format*). The system tells the process behind a lock unless it is this one.

use std::time::{Duration, Instant};

use super::index::LogIndex;
use super::location::Location;
use super::paths::{cannot_open, index_path};
use crate::{HeldLog, LedgerError, LogReader};

/// A reader is told after this time.
const TOLD_AFTER: Duration = Duration::from_secs(10);
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

/// Finds the readers behind a log that does not get shorter.
#[derive(Debug)]
pub(super) struct LogReaders {
    index: LogIndex,
    /// How many pages were copied when that number was first seen, and when.
    stuck: Option<(i64, Instant)>,
}

impl LogReaders {
    pub(super) fn of(location: &Location) -> Result<Self, LedgerError> {
        let path = index_path(&location.real);
        let index = LogIndex::open(&path).map_err(|error| cannot_open(&path, error))?;
        Ok(Self { index, stuck: None })
    }

    /// Notes what a checkpoint did. Returns who has held it back, once it has not moved for 10 s.
    pub(super) fn note(&mut self, found: Copied, now: Instant) -> Option<HeldLog> {
        if found.is_all() {
            self.stuck = None;
            return None;
        }
        let since = match self.stuck {
            Some((copied, since)) if copied == found.copied => since,
            _ => now,
        };
        self.stuck = Some((found.copied, since));
        let held = now.saturating_duration_since(since);
        (held >= TOLD_AFTER).then(|| HeldLog {
            seconds: held.as_secs(),
            readers: self.readers(found.copied),
        })
    }

    /// The other processes that read up to this page or less; none if it is this process itself.
    fn readers(&self, copied: i64) -> Vec<LogReader> {
        let Some(marks) = self.index.marks() else {
            return Vec::new();
        };
        let mut found: Vec<LogReader> = (FIRST_LOCK..)
            .zip(marks)
            .filter(|(_, mark)| i64::from(*mark) <= copied)
            .filter_map(|(byte, _)| self.index.holder(byte).map(reader))
            .collect();
        found.dedup();
        found
    }
}

/// A process by its id, which is 0 or less for one of another container.
fn reader(pid: i32) -> LogReader {
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0);
    let name = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    LogReader {
        pid,
        name: name.map(|name| name.trim_end().to_owned()),
    }
}
