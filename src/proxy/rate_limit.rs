//! Limits that protect the gateway from a single customer: requests per second and concurrent requests, kept in memory for each
//! customer, whatever the number of its keys, and for keys that have limits of their own. A ledger shared by several gateways counts
//! paid requests again, across all of them, when it opens a hold.
//!
//! A [`Pass`] is one running request; dropping it gives its place back. Rates follow the ledger's rule, with the clock passed in.
//!
//! Rows of docs/interface.md: `requests_of_a_key_at_once`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, Key, KeyId, KeySettings, RateRule, Timestamp, lock};
use tokio::time::Instant;

use super::Failure;
use crate::billing::exposure::{CustomerExposure, ExposedCustomers, Payer, StoppedPayer, ToldStop};
use crate::billing::outages::Outages;
use crate::billing::reserve::Reservations;
use crate::clock;

/// Requests per second on free paths, and the size of a burst.
const FREE_RATE: RateRule = RateRule {
    per_second: 10,
    burst: 20,
};
/// Paid requests of a customer for which no rate is set.
const PAID_RATE: RateRule = RateRule {
    per_second: KeySettings::RATE,
    burst: KeySettings::BURST,
};
/// From this many customers on, idle ones within their rates are forgotten; again when there are twice as many as were left.
// Doubling before the next sweep keeps its cost for each request constant where all are busy.
const CUSTOMERS_REMEMBERED: usize = 10_000;

/// Counts of every customer that was active lately.
#[derive(Debug, Default)]
pub struct RateLimits {
    customers: Mutex<LimitedCustomers>,
    /// Failures of targets, and what our own requests showed.
    outages: Outages,
    /// What running requests may leave unpaid.
    reservations: Reservations,
    /// Gateways that share the ledger.
    gateways: AtomicU32,
}

#[derive(Debug, Default)]
struct LimitedCustomers {
    known: HashMap<CustomerId, CustomerRates>,
    /// Customers that were left when idle ones were last forgotten.
    left: usize,
}

#[derive(Debug, Default)]
struct CustomerRates {
    of_all: RequestCounts,
    /// Those of them that wait for money.
    aside: u32,
    free: Bucket,
    /// Of keys that have limits of their own.
    of_keys: HashMap<KeyId, RequestCounts>,
    exposure: CustomerExposure,
}

/// What is counted of a customer or key.
#[derive(Debug, Default)]
struct RequestCounts {
    running: u32,
    paid: Bucket,
}

/// One running request. Gives its place back when dropped.
#[derive(Debug)]
pub struct Pass {
    pub(super) rate_limits: Arc<RateLimits>,
    payer: Payer,
}

/// A request that waits for money, until this is dropped: it does not count among the running ones where nobody has set how many may run.
pub(super) struct StoodAside(Arc<RateLimits>, CustomerId);

impl Pass {
    /// Gives its place to another one for a while.
    pub(super) fn step_aside(&self) -> StoodAside {
        let mut customers = self.rate_limits.customers();
        let customer = self.payer.customer;
        if let Some(traffic) = customers.known.get_mut(&customer) {
            traffic.aside += 1;
        }
        StoodAside(Arc::clone(&self.rate_limits), customer)
    }
}

impl Drop for StoodAside {
    fn drop(&mut self) {
        if let Some(traffic) = self.0.customers().known.get_mut(&self.1) {
            traffic.aside = traffic.aside.saturating_sub(1);
        }
    }
}

impl RateLimits {
    /// Admits a paid request.
    ///
    /// # Errors
    /// [`Failure::RateLimited`], [`Failure::ExposureLimit`].
    pub fn enter(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        self.begin(key, now, |traffic| {
            traffic.exposure.credit = key.customer.account.credit;
            let wall = clock::now();
            if let Some(stop) = traffic.exposure.told(key.id, wall) {
                return Err(Failure::ExposureLimit(Some(Box::new(stop))));
            }
            // The key's own rate first: a request that it refuses must not use up its customer's.
            if let Some(rate) = key.rate() {
                let own = traffic.of_keys.entry(key.id).or_default();
                own.paid.take(at_once(rate), now)?;
            }
            traffic.of_all.paid.take(customer_rate(key), now)
        })
    }

    /// Admits a call of a free path, which has a rate of its own and counts among the customer's running requests.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub fn enter_free(self: &Arc<Self>, key: &Key, now: Instant) -> Result<Pass, Failure> {
        self.begin(key, now, |traffic| traffic.free.take(FREE_RATE, now))
    }

    /// Admits a dashboard request, even from a customer that has used up its concurrency.
    ///
    /// # Errors
    /// [`Failure::RateLimited`].
    pub fn admit_visitor(&self, customer: CustomerId, now: Instant) -> Result<(), Failure> {
        let mut customers = self.customers();
        customers.forget_idle(now);
        let traffic = customers.known.entry(customer).or_default();
        traffic.free.take(FREE_RATE, now)
    }

    /// Requests that have a place among those of their customer, and perhaps a hold.
    pub fn running(&self) -> u64 {
        let customers = self.customers();
        let running = customers.known.values();
        running
            .map(|traffic| u64::from(traffic.of_all.running))
            .sum()
    }

    fn begin(
        self: &Arc<Self>,
        key: &Key,
        now: Instant,
        take: impl FnOnce(&mut CustomerRates) -> Result<(), Failure>,
    ) -> Result<Pass, Failure> {
        let mut customers = self.customers();
        customers.forget_idle(now);
        let traffic = customers.known.entry(key.customer.id).or_default();
        let own = traffic.of_keys.get(&key.id).map_or(0, |own| own.running);
        let of_all = key.customer_concurrency();
        // Who waits has no place of the usual ones; a number that somebody has set means all.
        let of_customer = &key.customer;
        let is_set = of_customer.settings.concurrency.is_some()
            || of_customer.defaults.concurrency.is_some();
        let aside = if is_set { 0 } else { traffic.aside };
        let bounds = [
            (own, key.concurrency()),
            (traffic.of_all.running.saturating_sub(aside), Some(of_all)),
        ];
        for (running, most) in bounds {
            if let Some(most) = most.filter(|most| running >= *most) {
                let words = format!("at most {most} may run at the same time");
                return Err(Failure::RateLimited(words, Duration::from_secs(1)));
            }
        }
        take(traffic)?;
        traffic.of_all.running += 1;
        if key.concurrency().is_some() {
            traffic.of_keys.entry(key.id).or_default().running += 1;
        }
        Ok(Pass {
            rate_limits: Arc::clone(self),
            payer: Payer {
                customer: key.customer.id,
                key: key.id,
            },
        })
    }

    fn customers(&self) -> MutexGuard<'_, LimitedCustomers> {
        lock(&self.customers)
    }

    /// Why a payer gets nothing more for now, if it does not.
    pub(super) fn told(&self, payer: Payer, now: Timestamp) -> Option<ToldStop> {
        let customers = self.customers();
        let traffic = customers.known.get(&payer.customer)?;
        traffic.exposure.told(payer.key, now)
    }

    /// What the tighter stop leaves to a payer whose request asks for a model with this price of a full context, and whether that is
    /// from the ledger already: until then it is as if nothing had happened lately.
    pub(super) fn left(&self, payer: Payer, context: Amount, now: Timestamp) -> (Amount, bool) {
        self.exposure_of(payer.customer, |known| known.left(payer.key, context, now))
    }

    /// Notes how many gateways share the ledger: each lets customers leave a part of what they may.
    pub fn shared_by(&self, gateways: usize) {
        let gateways = u32::try_from(gateways).unwrap_or(u32::MAX);
        self.gateways.store(gateways, Ordering::Relaxed);
    }

    /// How many there are, at least this one.
    pub(super) fn gateways(&self) -> i64 {
        self.gateways.load(Ordering::Relaxed).max(1).into()
    }

    /// Notes what a payer was charged.
    pub(super) fn charged(&self, payer: Payer, charge: Amount, now: Timestamp) {
        self.exposure_of(payer.customer, |known| {
            known.charged(payer.key, charge, now)
        });
    }

    /// Customers and keys that are stopped, and why; the largest exposure first.
    pub fn stopped(&self, now: Timestamp) -> Vec<StoppedPayer> {
        let customers = self.customers();
        let mut stopped: Vec<_> = (customers.known.iter())
            .flat_map(|(customer, traffic)| traffic.exposure.stops(*customer, now))
            .collect();
        stopped.sort_by_key(|stop| (std::cmp::Reverse(stop.standing.exposure), stop.key));
        stopped
    }
}

/// A rate that was set: a second's requests may come at once.
const fn at_once(per_second: u32) -> RateRule {
    RateRule {
        per_second,
        burst: per_second,
    }
}

/// The rate of a key's customer. An operator who lets one key do more than is usual means its customer, too.
fn customer_rate(key: &Key) -> RateRule {
    match (key.customer.rate(), key.rate()) {
        (Some(rate), _) => at_once(rate),
        (None, Some(rate)) if rate > PAID_RATE.per_second => at_once(rate),
        (None, _) => PAID_RATE,
    }
}

impl ExposedCustomers for RateLimits {
    fn outages(&self) -> &Outages {
        &self.outages
    }

    fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    fn is_stopped(&self, payer: Payer, now: Timestamp) -> bool {
        let customers = self.customers();
        let traffic = customers.known.get(&payer.customer);
        traffic.is_some_and(|traffic| traffic.exposure.is_stopped(payer.key, now))
    }

    fn exposure_of<T>(
        &self,
        customer: CustomerId,
        with: impl FnOnce(&mut CustomerExposure) -> T,
    ) -> T {
        let mut customers = self.customers();
        with(&mut customers.known.entry(customer).or_default().exposure)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut customers = self.rate_limits.customers();
        let Some(traffic) = customers.known.get_mut(&self.payer.customer) else {
            return;
        };
        traffic.of_all.running = traffic.of_all.running.saturating_sub(1);
        if let Some(own) = traffic.of_keys.get_mut(&self.payer.key) {
            own.running = own.running.saturating_sub(1);
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

impl RequestCounts {
    fn is_idle(&self, now: Instant) -> bool {
        self.running == 0 && !self.paid.is_ahead(now)
    }
}

impl LimitedCustomers {
    /// Forgets idle customers when there are many. All may be busy, so the next search waits until there are twice as many.
    fn forget_idle(&mut self, now: Instant) {
        if self.known.len() >= CUSTOMERS_REMEMBERED.max(self.left.saturating_mul(2)) {
            let wall = clock::now();
            self.known.retain(|_, traffic| {
                traffic.of_keys.retain(|_, counts| !counts.is_idle(now));
                !traffic.of_keys.is_empty()
                    || !traffic.of_all.is_idle(now)
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
    fn many_busy_customers_are_not_searched_at_every_request() {
        let (limits, begun) = (RateLimits::default(), Instant::now());
        let visit = |numbers: std::ops::Range<i64>, now| {
            numbers.for_each(|number| {
                limits
                    .admit_visitor(CustomerId::from_random(number.unsigned_abs()), now)
                    .unwrap()
            });
            let customers = limits.customers();
            (customers.known.len(), customers.left)
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

    #[tokio::test]
    async fn many_keys_of_one_customer_gain_nothing() {
        let (limits, begun) = (Arc::new(RateLimits::default()), Instant::now());
        let ledger = farebox_ledger::memory::MemoryLedger::new();
        let mut key = crate::proxy::tests::new_key(&ledger, "1").await;
        key.own.settings.concurrency = None;
        let keys: Vec<Key> = (0..1_000)
            .map(|number| {
                let mut other = key.clone();
                other.own.id = KeyId::from_random(number);
                other
            })
            .collect();
        let running: Vec<_> = keys
            .iter()
            .filter_map(|key| limits.enter(key, begun).ok())
            .collect();
        assert_eq!(running.len(), 64, "at once");
        drop(running);
        let later = begun + Duration::from_secs(10);
        let served = keys.iter().filter(|key| limits.enter(key, later).is_ok());
        assert_eq!(served.count(), 400, "in a burst");
        let free = keys
            .iter()
            .filter(|key| limits.enter_free(key, later).is_ok());
        assert_eq!(free.count(), 20, "on free paths");
        let visits = keys
            .iter()
            .filter(|key| limits.admit_visitor(key.customer.id, later).is_ok());
        assert_eq!(visits.count(), 0, "which pages share");
        // A key's own limits bind it alone.
        let mut slow = keys[0].clone();
        slow.own.settings.concurrency = Some(1);
        let long_after = later + Duration::from_secs(10);
        let _first = limits.enter(&slow, long_after).unwrap();
        assert!(limits.enter(&slow, long_after).is_err());
        assert!(limits.enter(&keys[1], long_after).is_ok());
    }
}
