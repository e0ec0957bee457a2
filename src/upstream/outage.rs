//! What our own requests to a target prove when they have no frame: that it is out, where earlier ones have passed. Pure; the clock is
//! passed in.

use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// One of ours that passed so long ago says nothing about how they do.
pub(super) const PASSING: Duration = Duration::from_secs(24 * 60 * 60);
/// A request of our own has so long for its first frame …
pub(super) const SLOWEST: Duration = Duration::from_secs(10);
/// … or so many times what ours took.
const SLOWER: u32 = 3;

/// A request of our own to a target that had no frame, while no other answer had one and an earlier one of ours had passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// `provider/model`.
    pub target: String,
    /// When it was sent.
    pub sent: Instant,
}

/// Outages of which nobody has heard yet.
#[derive(Debug, Default)]
pub(super) struct OutageNews {
    unheard: Mutex<Vec<Outage>>,
    told: Notify,
}

impl OutageNews {
    pub(super) fn tell(&self, outage: Outage) {
        lock(&self.unheard).push(outage);
        self.told.notify_one();
    }

    /// Waits for the next one. One task at a time may wait.
    pub(super) async fn next(&self) -> Outage {
        loop {
            let unheard = lock(&self.unheard).pop();
            if let Some(outage) = unheard {
                return outage;
            }
            self.told.notified().await;
        }
    }
}

/// How our own requests to a target do when it works.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passing {
    /// When the last one that passed was sent.
    last: Option<Instant>,
    /// How long those took, the later ones most.
    took: Duration,
}

impl Passing {
    /// One that was sent at `sent` has passed.
    pub(super) fn passed(&mut self, sent: Instant, now: Instant) {
        let took = now.saturating_duration_since(sent);
        self.took = match self.last {
            None => took,
            Some(_) => (self.took + took) / 2,
        };
        self.last = self.last.max(Some(sent));
    }

    /// How long the next one may wait for its frame; `None` if none has passed within a day.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        self.last.filter(|last| now < *last + PASSING)?;
        Some(SLOWEST.max(self.took.saturating_mul(SLOWER)))
    }
}
