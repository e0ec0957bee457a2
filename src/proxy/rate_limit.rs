//! Limits that protect the gateway from a single key: requests per second and concurrent requests, kept in memory per key. A ledger
//! shared by several gateways counts paid requests again, across all of them, when it opens a hold.
//!
//! A [`Pass`] is one running request; dropping it gives its place back. Rates follow the ledger's rule, with the clock passed in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farebox_ledger::{Key, KeyId, KeySettings, RateRule, Timestamp};
use tokio::time::Instant;

use super::Failure;
use crate::billing::HourStanding;
use crate::billing::exposure::{ExposedKeys, KeyExposure};
use crate::billing::outages::Outages;
use crate::clock;

/// Requests per second on free paths, and the size of a burst.
const FREE_RATE: RateRule = RateRule {
    per_second: 10,
    burst: 20,
};
/// Paid requests of a key for which no rate is set.
const PAID_RATE: RateRule = RateRule {
    per_second: KeySettings::RATE,
    burst: KeySettings::BURST,
};
/// From this many keys on, idle keys within their rates are forgotten; again when there are twice as many as were left.
const KEYS_REMEMBERED: usize = 10_000;

/// Counts of every key that was active lately.
#[derive(Debug, Default)]
pub struct RateLimits {
    keys: Mutex<LimitedKeys>,
    /// Failures of targets that several keys had.
    outages: Outages,
}

#[derive(Debug, Default)]
struct LimitedKeys {
    known: HashMap<KeyId, KeyRates>,
    /// Keys that were left when idle ones were last forgotten.
    left: usize,
}

#[derive(Debug, Default)]
struct KeyRates {
    running: u32,
    paid: Bucket,
    free: Bucket,
    exposure: KeyExposure,
}

/// One running request. Gives its place back when dropped.
#[derive(Debug)]
pub struct Pass {
    pub(super) rate_limits: Arc<RateLimits>,
    key: KeyId,
    /// Requests of the key that were running when this one entered, including itself.
    pub(super) running: u32,
}

impl RateLimits {
    /// Admits a paid request.
    ///
    /// # Errors
    /// [`Failure::RateLimited`], [`Failure::ExposureLimit`].
    pub fn enter(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        let rate = key.settings.rate.map_or(PAID_RATE, |per_second| RateRule {
            per_second,
            burst: per_second,
        });
        self.begin(key, now, |traffic| {
            traffic.exposure.credit = key.customer.account.credit;
            if let Some(minutes) = traffic.exposure.minutes_left(clock::now()) {
                return Err(Failure::ExposureLimit(minutes));
            }
            traffic.paid.take(rate, now)
        })
    }

    /// Admits a call of a free path, which has a rate of its own and counts among the key's running requests.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub fn enter_free(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        self.begin(key, now, |traffic| traffic.free.take(FREE_RATE, now))
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
        take: impl FnOnce(&mut KeyRates) -> Result<(), Failure>,
    ) -> Result<Pass, Failure> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.forget_idle(now);
        let traffic = keys.known.entry(key.id).or_default();
        let most = key.settings.concurrency.unwrap_or(KeySettings::CONCURRENCY);
        if traffic.running >= most {
            let words = format!("at most {most} may run at the same time");
            return Err(Failure::RateLimited(words, Duration::from_secs(1)));
        }
        take(traffic)?;
        traffic.running += 1;
        Ok(Pass {
            rate_limits: Arc::clone(self),
            key: key.id,
            running: traffic.running,
        })
    }

    /// Keys that are stopped, and why; the largest exposure first.
    #[must_use]
    pub fn stopped(&self, now: Timestamp) -> Vec<(KeyId, HourStanding)> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let standing =
            |(key, traffic): (&KeyId, &KeyRates)| Some((*key, traffic.exposure.standing(now)?));
        let mut stopped: Vec<_> = keys
            .known
            .iter()
            .filter_map(standing)
            .filter(|(_, standing)| standing.is_stopped())
            .collect();
        stopped.sort_by_key(|(key, standing)| (std::cmp::Reverse(standing.exposure), *key));
        stopped
    }
}

impl ExposedKeys for RateLimits {
    fn outages(&self) -> &Outages {
        &self.outages
    }

    fn is_stopped(&self, key: KeyId, now: Timestamp) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let traffic = keys.known.get(&key);
        traffic.is_some_and(|traffic| traffic.exposure.is_stopped(now))
    }

    fn exposure_of<T>(&self, key: KeyId, with: impl FnOnce(&mut KeyExposure) -> T) -> T {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut keys.known.entry(key).or_default().exposure)
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
        }
    }
}

/// How far calls are ahead of their rate: the instant at which they no longer are.
#[derive(Debug, Default)]
struct Bucket(Option<Instant>);

impl Bucket {
    fn take(&mut self, rate: RateRule, now: Instant) -> Result<(), Failure> {
        let ahead = self
            .0
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        match rate.take(ahead) {
            Ok(ahead) => {
                self.0 = Some(now + ahead);
                Ok(())
            }
            Err(wait) => {
                let words = format!("at most {} per second", rate.per_second);
                Err(Failure::RateLimited(words, wait))
            }
        }
    }

    fn is_ahead(&self, now: Instant) -> bool {
        self.0.is_some_and(|until| until > now)
    }
}

impl LimitedKeys {
    /// Forgets idle keys when there are many. All keys may be busy, so the next search waits until there are twice as many.
    fn forget_idle(&mut self, now: Instant) {
        if self.known.len() >= KEYS_REMEMBERED.max(self.left.saturating_mul(2)) {
            let wall = clock::now();
            self.known.retain(|_, traffic| {
                traffic.running > 0
                    || traffic.paid.is_ahead(now)
                    || traffic.free.is_ahead(now)
                    || !traffic.exposure.is_idle(wall)
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
        let served_at = |now| {
            let mut served = 0;
            while limits.enter(&key, now).is_ok() {
                served += 1;
            }
            served
        };
        assert_eq!(served_at(begun), 400);
        assert_eq!(served_at(begun + Duration::from_secs(1)), 200);
    }
}
