//! The writer's state for the gateway's metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Whether each commit waits for a standby of the database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Standby {
    /// The ledger is a file, or has not been checked yet.
    #[default]
    Unused,
    /// This many synchronous standbys stream from the primary.
    Streaming(u64),
    /// There is none, and `--allow-single` permits that for a trial.
    Single,
    /// Nothing is sold: the reason and the remedy.
    Missing(String),
}

impl Standby {
    /// The number of standbys, if any are needed.
    #[must_use]
    pub const fn count(&self) -> Option<u64> {
        match self {
            Self::Unused => None,
            Self::Streaming(standbys) => Some(*standbys),
            Self::Single | Self::Missing(_) => Some(0),
        }
    }
}

/// From this size on a log that cannot be copied is told as a warning, and one that can be is cut.
pub const LOG_LOUD: u64 = 64 << 20;

/// Why a ledger in a file takes no new holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// Nothing more can be reserved on the disk.
    Full,
    /// Less is free than is kept for running requests.
    Low,
    /// The log has reached its limit.
    Log,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(out, "the disk is full"),
            Self::Low => write!(
                out,
                "the disk is full: its last {} MiB are kept for what runs",
                LOG_LOUD >> 20
            ),
            Self::Log => write!(out, "its log has reached --wal-limit"),
        }
    }
}

/// The write-ahead log of a ledger in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStats {
    /// How long it is.
    pub bytes: u64,
    /// From which length on new holds are refused.
    pub limit: u64,
    /// Who keeps it from being copied into the ledger's file, after 10 s.
    pub held: Option<HeldLog>,
}

/// Readers that keep a log from being copied into the ledger's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLog {
    /// For how long nothing could be copied.
    pub seconds: u64,
    /// The other processes that read; none if this one does.
    pub readers: Vec<LogReader>,
}

/// A process with an open read transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReader {
    /// Its id, unless it is in another container.
    pub pid: Option<u32>,
    /// The name of its program, where the system shows it.
    pub name: Option<String>,
}

impl fmt::Display for HeldLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.readers.is_empty() {
            write!(out, "a long read of this gateway")?;
        }
        for (number, reader) in self.readers.iter().enumerate() {
            let and = if number == 0 { "" } else { " and " };
            write!(out, "{and}{reader}")?;
        }
        write!(out, " has read in it for {} s or longer", self.seconds)
    }
}

impl fmt::Display for LogReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, &self.name) {
            (Some(pid), Some(name)) => write!(out, "process {pid} ({name})"),
            (Some(pid), None) => write!(out, "process {pid}"),
            (None, _) => write!(out, "a process of another container"),
        }
    }
}

/// The writer's state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterStats {
    /// Operations waiting.
    pub queued: usize,
    /// Abandoned holds that wait for their settlement.
    pub unresolved: usize,
    /// The same by the database's SQLSTATE; an empty one stands for a connection that failed. Empty for a file.
    pub unresolved_by: BTreeMap<String, usize>,
    /// Commits so far.
    pub commits: u64,
    /// Operations in those commits.
    pub operations: u64,
    /// How long the last commit took.
    pub last_commit: Duration,
    /// How long all commits took together.
    pub total: Duration,
    /// Commits by duration: one count for each bound of [`WriterStats::BOUNDS`] and one for everything above.
    pub histogram: [u64; 9],
    /// Why no new holds are taken: disk or log are full. Settlements go on.
    pub no_room: Option<NoRoom>,
    /// The write-ahead log of a file that a gateway serves.
    pub log: Option<LogStats>,
    /// Why nothing is written now: the path no longer leads to the ledger's file.
    pub displaced: Option<String>,
    /// How far the database's clock is ahead of this machine's, milliseconds; 0 if there is no other clock.
    pub clock_off_ms: i64,
    /// Whether each commit waits for a standby.
    pub standby: Standby,
    /// What a database has confirmed and no longer has, with the remedy.
    pub lost: Option<String>,
    /// Commits that got no answer, or only a warning. Their operations were repeated.
    pub unknown_commits: u64,
    /// Connections dropped while the server was working for them, which it has not ended yet.
    pub dropped: usize,
    /// For which of these a gateway waits, since when, and what ends it; only when they are too many to sell.
    pub waits: Option<String>,
    /// The writer stopped for good.
    pub stopped: bool,
}

impl WriterStats {
    /// Upper bounds of [`WriterStats::histogram`].
    pub const BOUNDS: [Duration; 8] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(20),
        Duration::from_millis(100),
        Duration::from_secs(1),
    ];

    /// From this many dropped connections on, nothing is sold: each may hold locks, and each counts against the server's limit.
    pub(crate) const MOST_DROPPED: usize = 4;

    /// Clocks further apart than this would expire keys at the wrong time and book hours wrongly.
    const CLOCK_WRONG_MS: u64 = 30_000;

    /// Whether this machine's clock is too far off to sell by.
    #[must_use]
    pub const fn is_clock_wrong(&self) -> bool {
        self.clock_off_ms.unsigned_abs() >= Self::CLOCK_WRONG_MS
    }

    /// Whether holds are accepted now.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        !self.stopped
            && self.no_room.is_none()
            && self.displaced.is_none()
            && !self.is_clock_wrong()
            && self.uncertain().is_none()
    }

    /// Why commits are not certain enough to sell by, if they are not.
    #[must_use]
    pub const fn uncertain(&self) -> Option<&str> {
        match (&self.lost, &self.standby) {
            (Some(why), _) | (None, Standby::Missing(why)) => Some(why.as_str()),
            _ if self.dropped >= Self::MOST_DROPPED => Some(match &self.waits {
                Some(waits) => waits.as_str(),
                None => {
                    "this gateway gave up several connections and does not know yet whether the database still works for them"
                }
            }),
            _ => None,
        }
    }

    pub(crate) fn note(&mut self, operations: usize, took: Duration) {
        self.commits = self.commits.saturating_add(1);
        self.operations = self
            .operations
            .saturating_add(u64::try_from(operations).unwrap_or(u64::MAX));
        self.last_commit = took;
        self.total = self.total.saturating_add(took);
        let bucket = Self::BOUNDS
            .iter()
            .position(|bound| took <= *bound)
            .unwrap_or(Self::BOUNDS.len());
        if let Some(count) = self.histogram.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }
}
