//! What a request may still cost the operator, and the rule for keys whose exposure grows too large.
//!
//! Exposure is what a provider may bill beyond the charge, at the catalog's prices; cost is all that it may bill, at the operator's
//! own prices. Both are recorded with the charge. A key whose exposure and loss over the last hour exceed one context (at most half
//! of what was ever paid onto it) and half its charges gets nothing more until they do not. The hour is read from the ledger after
//! each request that adds to it, so the rule survives a restart and spans all gateways of a fleet. A request that runs adds nothing:
//! its hold grows with what it may cost. What a target failed to do for several customers counts against none of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use farebox_ledger::{Amount, KeyId, SharedLedger, Timestamp};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::last_hour::{HOUR, HourStanding, LastHour};
use super::outages::{FailedTarget, Outages};
use crate::clock;
use crate::config::ConfigHandle;

/// What a target failed to do for a customer.
pub(crate) struct TargetFailure {
    pub(crate) target: String,
    /// A word for how.
    pub(crate) kind: &'static str,
    /// What it left uncharged.
    pub(crate) exposure: Amount,
    /// It is the target's own doing, whoever else meets it.
    pub(crate) alone: bool,
}

/// What is known of one key's exposure.
#[derive(Debug, Default)]
pub(crate) struct KeyExposure {
    /// Set for a key with uncharged exposure.
    last_hour: Option<LastHour>,
    /// All that was ever paid onto it, as of its last request.
    pub(crate) credit: Amount,
    /// Exposure of an hour that counts against nobody, of this hour and the one before.
    excused: Vec<(i64, i128)>,
    review: HourReview,
}

/// The state of reading a key's last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HourReview {
    #[default]
    Idle,
    Running,
    /// A request ended since the read began.
    Again,
}

impl KeyExposure {
    /// The two sides of the rule, for a key that has uncharged exposure.
    pub(crate) fn standing(&self, now: Timestamp) -> Option<HourStanding> {
        Some(self.last_hour?.standing(now, self.credit))
    }

    /// Minutes until the key is served again; `None` if it is served now.
    pub(crate) fn minutes_left(&self, now: Timestamp) -> Option<u32> {
        let stopped = self.last_hour.filter(|_| self.is_stopped(now))?;
        Some(stopped.minutes_left(now, self.credit))
    }

    /// Whether the key gets nothing more for now.
    pub(crate) fn is_stopped(&self, now: Timestamp) -> bool {
        self.standing(now)
            .is_some_and(|standing| standing.is_stopped())
    }

    /// Whether nothing is lost when it is forgotten.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.review == HourReview::Idle && !self.is_stopped(now) && self.excused.is_empty()
    }

    /// Notes exposure that counts against nobody.
    fn excuse(&mut self, failed: FailedTarget) {
        let (hour, more) = (failed.booked.hour(), i128::from(failed.exposure.picos()));
        // Older hours have left the sixty minutes that count.
        self.excused.retain(|(other, _)| *other >= hour - 1);
        match self.excused.iter_mut().find(|(other, _)| *other == hour) {
            Some((_, sum)) => *sum = sum.saturating_add(more),
            None => self.excused.push((hour, more)),
        }
    }

    /// What is excused of an hour.
    fn excused(&self, hour: i64) -> i128 {
        let sum = self.excused.iter().find(|(other, _)| *other == hour);
        sum.map_or(0, |(_, sum)| *sum)
    }

    /// Whether the caller should read the key's last hour; otherwise another task is reading it and will read it again.
    fn begin_review(&mut self) -> bool {
        let idle = self.review == HourReview::Idle;
        self.review = if idle {
            HourReview::Running
        } else {
            HourReview::Again
        };
        idle
    }

    /// Whether the reader should read once more.
    fn review_again(&mut self) -> bool {
        let again = self.review == HourReview::Again;
        self.review = if again {
            HourReview::Running
        } else {
            HourReview::Idle
        };
        again
    }
}

/// Where the exposure of keys is kept while the gateway runs.
pub(crate) trait ExposedKeys: Send + Sync + 'static {
    /// Failures of targets that several keys had.
    fn outages(&self) -> &Outages;
    /// Whether a key gets nothing more for now; asked of keys that nobody knows, too.
    fn is_stopped(&self, key: KeyId, now: Timestamp) -> bool;
    /// Reads or changes what is known of a key.
    fn exposure_of<T>(&self, key: KeyId, with: impl FnOnce(&mut KeyExposure) -> T) -> T;

    /// Notes exposure that counts against nobody.
    fn excuse(&self, failed: FailedTarget) {
        self.exposure_of(failed.customer, |known| known.excuse(failed));
    }

    /// What is excused of a key's hour.
    fn excused(&self, key: KeyId, hour: i64) -> i128 {
        self.exposure_of(key, |known| known.excused(hour))
    }

    /// Notes a key's last hour.
    fn note_last_hour(&self, key: KeyId, last_hour: LastHour) {
        self.exposure_of(key, |known| known.last_hour = Some(last_hour));
    }
}

/// The rule, with what it reads.
pub(crate) struct ExposureRule<'a> {
    pub(crate) ledger: &'a SharedLedger,
    pub(crate) config: &'a Arc<ConfigHandle>,
    pub(crate) tasks: &'a TaskTracker,
}

impl ExposureRule<'_> {
    /// Notes what targets failed to do for a customer, and excuses what was none of its doing, and none of others' before. `paused`:
    /// the targets that are paused for all.
    pub(crate) fn excuse(
        &self,
        keys: &Arc<impl ExposedKeys>,
        customer: KeyId,
        failures: Vec<TargetFailure>,
        paused: &BTreeSet<String>,
    ) {
        for failure in failures {
            let TargetFailure {
                target,
                kind,
                exposure,
                alone,
            } = failure;
            let failed = FailedTarget {
                customer,
                exposure,
                booked: clock::now(),
            };
            let now = (Instant::now(), alone || paused.contains(&target));
            for excused in keys.outages().note(&target, kind, failed, now) {
                keys.excuse(excused);
                // The customer's own review follows when its request is settled.
                if excused.customer != customer {
                    self.review(keys, excused.customer, excused.exposure);
                }
            }
        }
    }

    /// Excuses what targets failed to do just before they were paused for all: who met an outage first may have been stopped before
    /// it was proved.
    pub(crate) fn excuse_paused(&self, keys: &Arc<impl ExposedKeys>, paused: &BTreeSet<String>) {
        for target in paused {
            for excused in keys.outages().paused(target, Instant::now()) {
                keys.excuse(excused);
                self.review(keys, excused.customer, excused.exposure);
            }
        }
    }

    /// Re-reads a key's last hour after a request that may have changed the rule's result: in the background, one read at a time,
    /// and once more if another request ended meanwhile.
    pub(crate) fn review(&self, keys: &Arc<impl ExposedKeys>, key: KeyId, exposure: Amount) {
        // A stopped key is read again even without exposure: its charges allow more.
        let concerned = exposure.is_positive() || keys.is_stopped(key, clock::now());
        if !concerned || !keys.exposure_of(key, KeyExposure::begin_review) {
            return;
        }
        let (ledger, config) = (Arc::clone(self.ledger), Arc::clone(self.config));
        let keys = Arc::clone(keys);
        self.tasks.spawn(async move {
            loop {
                let now = clock::now();
                let from = Timestamp::from_millis(now.millis().saturating_sub(HOUR));
                // The end is exclusive, and the charge that caused this may be of this very millisecond.
                let to = Timestamp::from_millis(now.millis().saturating_add(1));
                match ledger.usage(key, from, to).await {
                    Ok(rows) => {
                        let config = config.current();
                        let excused = |hour| keys.excused(key, hour);
                        let last_hour = LastHour::of(&rows, &config.catalog, excused, now);
                        keys.note_last_hour(key, last_hour);
                    }
                    // The key keeps the standing it had: a silent ledger neither stops nor frees anybody.
                    Err(error) => {
                        tracing::warn!(key = %key, %error, "a key's exposure could not be read")
                    }
                }
                if !keys.exposure_of(key, KeyExposure::review_again) {
                    return;
                }
            }
        });
    }
}
