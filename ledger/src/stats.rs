//! What the gateway's metrics say about the writer.

use std::time::Duration;

/// Whether each commit waits for a standby of the database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Standby {
    /// The ledger is a file, or has not been looked at yet.
    #[default]
    Unused,
    /// This many synchronous standbys stream from the primary.
    Streaming(u64),
    /// There is none, and `--allow-single` says that this is a trial.
    Single,
    /// Nothing is sold: why, and the remedy.
    Missing(String),
}

impl Standby {
    /// How many standbys there are, where any are needed.
    #[must_use]
    pub const fn count(&self) -> Option<u64> {
        match self {
            Self::Unused => None,
            Self::Streaming(standbys) => Some(*standbys),
            Self::Single | Self::Missing(_) => Some(0),
        }
    }
}

/// How the writer is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterStats {
    /// Operations waiting.
    pub queued: usize,
    /// Abandoned holds waiting for their settlement.
    pub unresolved: usize,
    /// Commits so far.
    pub commits: u64,
    /// Operations in those commits.
    pub operations: u64,
    /// How long the last commit took.
    pub last_commit: Duration,
    /// How long all commits took together.
    pub total: Duration,
    /// Commits by duration: one count for each bound of [`WriterStats::BOUNDS`] and one for all above.
    pub histogram: [u64; 9],
    /// The disk was full at the last attempt; new holds are refused.
    pub disk_full: bool,
    /// Why nothing is written now: the path does not lead to the ledger's file any more.
    pub displaced: Option<String>,
    /// How far the database's clock is ahead of this machine's, milliseconds; 0 where there is no other clock.
    pub clock_off_ms: i64,
    /// Whether each commit waits for a standby.
    pub standby: Standby,
    /// What a database has confirmed and does not have any more, with the remedy.
    pub lost: Option<String>,
    /// Commits that got no answer, or one with a warning. Their operations were repeated.
    pub unknown_commits: u64,
    /// Connections that were dropped while the server was at work for them, and that it has not ended yet.
    pub dropped: usize,
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

    /// From this many dropped connections on nothing is sold: each may hold locks, and each counts against the server's pool.
    const MOST_DROPPED: usize = 4;

    /// From here on clocks are so far apart that keys would expire at the wrong time and hours would be booked wrongly.
    const CLOCK_WRONG_MS: u64 = 30_000;

    /// Whether this machine's clock cannot be used to sell by.
    #[must_use]
    pub const fn is_clock_wrong(&self) -> bool {
        self.clock_off_ms.unsigned_abs() >= Self::CLOCK_WRONG_MS
    }

    /// Whether holds are taken now.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        !self.stopped && !self.disk_full && self.displaced.is_none() && !self.is_clock_wrong() && self.uncertain().is_none()
    }

    /// Why commits are not certain enough to sell by, where they are not.
    #[must_use]
    pub const fn uncertain(&self) -> Option<&str> {
        match (&self.lost, &self.standby) {
            (Some(why), _) | (None, Standby::Missing(why)) => Some(why.as_str()),
            _ if self.dropped >= Self::MOST_DROPPED => {
                Some("the database has not ended four connections that this gateway gave up")
            }
            _ => None,
        }
    }

    pub(crate) fn note(&mut self, operations: usize, took: Duration) {
        self.commits = self.commits.saturating_add(1);
        self.operations = self.operations.saturating_add(u64::try_from(operations).unwrap_or(u64::MAX));
        self.last_commit = took;
        self.total = self.total.saturating_add(took);
        let bucket = Self::BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(Self::BOUNDS.len());
        if let Some(count) = self.histogram.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }
}
