//! The writer's state for the gateway's metrics.

use std::collections::BTreeMap;
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
    /// The disk was full at the last attempt; new holds are refused.
    pub disk_full: bool,
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
            && !self.disk_full
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
