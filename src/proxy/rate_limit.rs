//! Limits that protect the gateway from a single key: requests per second and concurrent requests, kept in memory per key. A ledger
//! shared by several gateways counts paid requests again, across all of them, when it opens a hold.
//!
//! A [`Pass`] is one running request; dropping it gives its place back. Rates are token buckets with the clock passed in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farebox_ledger::{Key, KeyId, KeySettings, Timestamp};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::Failure;
use super::last_hour::{LastHour, Standing};
use crate::clock;

/// Requests per second on free paths, and the size of a burst.
const FREE_RATE: Rate = Rate {
    per_second: 10,
    burst: 20,
};
/// Paid requests of a key for which no rate is set.
const PAID_RATE: Rate = Rate {
    per_second: KeySettings::RATE,
    burst: KeySettings::BURST,
};
/// How long a request waits for its turn if its key runs one at a time: in a provider's outage, honest customers are slowed down
/// and not refused.
const TURN_PATIENCE: Duration = Duration::from_secs(30);
/// For a customer whose requests cost the operator far more than they pay, and whose turn did not come in time.
const SLOWED: &str = "this key may run one request at a time for now, because many of its requests in the last hour were left \
     early or broke and were paid only in part; read answers to their end, and the limit is lifted within the hour";
/// From this many keys on, idle keys with full buckets are forgotten; again when there are twice as many as were left.
const KEYS_REMEMBERED: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: u32,
    burst: u32,
}

/// Counts of every key that was active lately.
#[derive(Debug, Default)]
pub struct RateLimits {
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    known: HashMap<KeyId, Traffic>,
    /// Keys that were left when idle ones were last forgotten.
    left: usize,
}

#[derive(Debug, Default)]
struct Traffic {
    running: u32,
    /// How many of them are paid.
    running_paid: u32,
    paid: Bucket,
    free: Bucket,
    /// Set for a key with uncharged exposure.
    last_hour: Option<LastHour>,
    /// Wakes the next waiting request; present once a request had to wait.
    turn: Option<Arc<Notify>>,
    review: Review,
}

/// The state of reading a key's last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Review {
    #[default]
    Idle,
    Running,
    /// A request ended since the read began.
    Again,
}

impl Traffic {
    fn is_slowed(&self, now: Timestamp) -> bool {
        self.last_hour
            .is_some_and(|last| last.standing(now).runs_away())
    }
}

/// Why a request cannot run now.
enum Refused {
    /// Another request of its key is running; notified when that one ends.
    NotNext(Arc<Notify>),
    For(Failure),
}

impl Refused {
    fn failure(self) -> Failure {
        match self {
            Self::NotNext(_) => Failure::RateLimited(SLOWED.to_owned(), Duration::from_secs(1)),
            Self::For(failure) => failure,
        }
    }
}

/// One running request. Gives its place back when dropped.
#[derive(Debug)]
pub struct Pass {
    pub(super) rate_limits: Arc<RateLimits>,
    key: KeyId,
    paid: bool,
    /// Requests of the key that were running when this one entered, including itself.
    pub(super) running: u32,
}

impl RateLimits {
    /// Admits a paid request. If its key runs one at a time, it waits for its turn, and counts as running meanwhile.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub async fn enter(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        let turn = match self.enter_now(key, now) {
            Err(Refused::NotNext(turn)) => turn,
            entered => return entered.map_err(Refused::failure),
        };
        let _place = self
            .begin(key, now, false, |_| Ok(()))
            .map_err(Refused::failure)?;
        let coming = async {
            loop {
                turn.notified().await;
                match self.enter_now(key, Instant::now()) {
                    Err(Refused::NotNext(_)) => {}
                    entered => return entered,
                }
            }
        };
        timeout(TURN_PATIENCE, coming)
            .await
            .unwrap_or(Err(Refused::NotNext(Arc::clone(&turn))))
            .map_err(Refused::failure)
    }

    fn enter_now(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Refused> {
        let rate = key.settings.rate.map_or(PAID_RATE, |per_second| Rate {
            per_second,
            burst: per_second.max(1),
        });
        self.begin(key, now, true, |traffic| traffic.paid.take(rate, now))
    }

    /// Admits a call of a free path, which has a rate of its own and counts among the key's running requests.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub fn enter_free(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        self.begin(key, now, false, |traffic| traffic.free.take(FREE_RATE, now))
            .map_err(Refused::failure)
    }

    /// Admits a dashboard request, even from a key that has used up its concurrency.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub fn admit_visitor(&self, key: KeyId, now: Instant) -> Result<(), Failure> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.forget_idle(now);
        keys.known.entry(key).or_default().free.take(FREE_RATE, now)
    }

    fn begin(
        self: &Arc<Self>,
        key: &Key,
        now: Instant,
        paid: bool,
        take: impl FnOnce(&mut Traffic) -> Result<(), Failure>,
    ) -> Result<Pass, Refused> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.forget_idle(now);
        let traffic = keys.known.entry(key.id).or_default();
        let most = key.settings.concurrency.unwrap_or(KeySettings::CONCURRENCY);
        if traffic.running >= most {
            let words = format!("at most {most} may run at the same time");
            return Err(Refused::For(Failure::RateLimited(
                words,
                Duration::from_secs(1),
            )));
        }
        if paid && traffic.running_paid > 0 && traffic.is_slowed(clock::now()) {
            return Err(Refused::NotNext(Arc::clone(
                traffic.turn.get_or_insert_default(),
            )));
        }
        take(traffic).map_err(Refused::For)?;
        traffic.running += 1;
        traffic.running_paid += u32::from(paid);
        Ok(Pass {
            rate_limits: Arc::clone(self),
            key: key.id,
            paid,
            running: traffic.running,
        })
    }

    fn traffic<T>(&self, key: KeyId, with: impl FnOnce(&mut Traffic) -> T) -> T {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        with(keys.known.entry(key).or_default())
    }

    /// Whether a key runs one request at a time because of its uncharged exposure.
    pub(super) fn is_slowed(&self, key: KeyId, now: Timestamp) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.known
            .get(&key)
            .is_some_and(|traffic| traffic.is_slowed(now))
    }

    /// Whether the caller should read a key's last hour; otherwise another task is reading it and will read it again.
    pub(super) fn begin_review(&self, key: KeyId) -> bool {
        self.traffic(key, |traffic| {
            let idle = traffic.review == Review::Idle;
            traffic.review = if idle { Review::Running } else { Review::Again };
            idle
        })
    }

    /// Whether the reader should read once more.
    pub(super) fn review_again(&self, key: KeyId) -> bool {
        self.traffic(key, |traffic| {
            let again = traffic.review == Review::Again;
            traffic.review = if again { Review::Running } else { Review::Idle };
            again
        })
    }

    /// Notes a key's last hour, and says whether it was slowed before.
    pub(super) fn note_last_hour(&self, key: KeyId, last_hour: LastHour, now: Timestamp) -> bool {
        self.traffic(key, |traffic| {
            let was = traffic.is_slowed(now);
            traffic.last_hour = Some(last_hour);
            was
        })
    }

    /// Keys that run one request at a time, and why; the largest exposure first.
    #[must_use]
    pub fn slowed(&self, now: Timestamp) -> Vec<(KeyId, Standing)> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let standing =
            |(key, traffic): (&KeyId, &Traffic)| Some((*key, traffic.last_hour?.standing(now)));
        let mut slowed: Vec<_> = keys
            .known
            .iter()
            .filter_map(standing)
            .filter(|(_, standing)| standing.runs_away())
            .collect();
        slowed.sort_by_key(|(key, standing)| (std::cmp::Reverse(standing.exposure), *key));
        slowed
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut keys = self
            .rate_limits
            .keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(traffic) = keys.known.get_mut(&self.key) {
            traffic.running = traffic.running.saturating_sub(1);
            traffic.running_paid = traffic.running_paid.saturating_sub(u32::from(self.paid));
            if let Some(turn) = traffic.turn.as_ref().filter(|_| self.paid) {
                turn.notify_one();
            }
        }
    }
}

/// A token bucket: the number of calls ahead of its rate, and since when.
#[derive(Debug, Default)]
struct Bucket {
    used: f64,
    since: Option<Instant>,
}

impl Bucket {
    fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Failure> {
        let elapsed = self
            .since
            .map_or(Duration::ZERO, |since| now.duration_since(since));
        self.used = (self.used - elapsed.as_secs_f64() * f64::from(rate.per_second)).max(0.0);
        self.since = Some(now);
        if self.used + 1.0 > f64::from(rate.burst) {
            let wait =
                (self.used + 1.0 - f64::from(rate.burst)) / f64::from(rate.per_second.max(1));
            return Err(Failure::RateLimited(
                format!("at most {} per second", rate.per_second),
                Duration::from_secs_f64(wait),
            ));
        }
        self.used += 1.0;
        Ok(())
    }

    fn is_full(&self, now: Instant) -> bool {
        self.since
            .is_none_or(|since| now.duration_since(since) > Duration::from_secs(60))
    }
}

impl Keys {
    /// Forgets idle keys when there are many. All keys may be busy, so the next search waits until there are twice as many.
    fn forget_idle(&mut self, now: Instant) {
        if self.known.len() >= KEYS_REMEMBERED.max(self.left.saturating_mul(2)) {
            let wall = clock::now();
            self.known.retain(|_, traffic| {
                traffic.running > 0
                    || !traffic.paid.is_full(now)
                    || !traffic.free.is_full(now)
                    || traffic.is_slowed(wall)
            });
            self.left = self.known.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_busy_keys_are_not_searched_at_every_request() {
        let (limits, begun) = (RateLimits::default(), Instant::now());
        let visit = |numbers: std::ops::Range<i64>, now| {
            numbers.for_each(|number| {
                limits
                    .admit_visitor(KeyId::from_random(number.unsigned_abs()), now)
                    .unwrap()
            });
            let keys = limits.keys.lock().unwrap();
            (keys.known.len(), keys.left)
        };
        assert_eq!(
            visit(1..30_001, begun),
            (30_000, 20_000),
            "searched at 10,000 and at 20,000"
        );
        let later = begun + Duration::from_secs(61);
        assert_eq!(
            visit(30_001..40_002, later),
            (10_001, 10_000),
            "searched at 40,000: three quarters were idle"
        );
    }

    #[tokio::test]
    async fn a_key_without_a_rate_has_two_hundred_a_second_and_four_hundred_at_once() {
        let (limits, begun) = (Arc::new(RateLimits::default()), Instant::now());
        let ledger = farebox_ledger::memory::MemoryLedger::new();
        let key = crate::proxy::tests::new_key(&ledger, "1").await;
        let served_at = async |now| {
            let mut served = 0;
            while limits.enter(&key, now).await.is_ok() {
                served += 1;
            }
            served
        };
        assert_eq!(served_at(begun).await, 400);
        assert_eq!(served_at(begun + Duration::from_secs(1)).await, 200);
    }
}
