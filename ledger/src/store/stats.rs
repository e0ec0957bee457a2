//! The writer's figures for the gateway's metrics. What is wrong with it is in `trouble`.

use std::collections::BTreeMap;
use std::time::Duration;

/// Whether each commit waits for a standby of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standby {
    /// The ledger is a file, or has not been checked yet.
    #[default]
    Unused,
    /// This many synchronous standbys stream from the primary. Without one nothing is sold.
    Streaming(u64),
    /// There is none, and `--allow-single` permits that for a trial.
    Single,
}

impl Standby {
    /// The number of standbys, if any are needed.
    pub const fn count(&self) -> Option<u64> {
        match self {
            Self::Unused => None,
            Self::Streaming(standbys) => Some(*standbys),
            Self::Single => Some(0),
        }
    }
}

/// From this size on a log that cannot be copied is told as a warning, and one that can be is cut.
pub const LOG_LOUD: u64 = 64 << 20;

/// The write-ahead log of a ledger in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStats {
    /// How long it is.
    pub bytes: u64,
    /// From which length on new holds are refused.
    pub limit: u64,
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
    /// The write-ahead log of a file that a gateway serves.
    pub log: Option<LogStats>,
    /// How far the database's clock is ahead of this machine's, milliseconds; 0 if there is no other clock.
    pub clock_off_ms: i64,
    /// Whether each commit waits for a standby.
    pub standby: Standby,
    /// Commits that got no answer, or only a warning. Their operations were repeated.
    pub unknown_commits: u64,
    /// Connections dropped while the server was working for them, which it has not ended yet.
    pub dropped: usize,
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
