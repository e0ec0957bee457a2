//! What a request may still cost the operator, and the rule for keys and customers whose exposure grows too large.
//!
//! Exposure is what a provider may bill beyond the charge, at the catalog's prices; cost is all that it may bill, at the operator's
//! own prices. Both are recorded with the charge. A key whose exposure and loss over the last hour exceed one context (at most half
//! of what its customer ever paid) and half its charges gets nothing more until they do not, and neither does any key of a customer
//! whose keys exceed the same bound together: a thousand keys gain nothing. The hour is read from the ledger after each request that
//! adds to it, so the rule survives a restart and spans all gateways of a fleet. A request that runs adds nothing: its hold grows
//! with what it may cost. What a target failed to do for several customers counts against none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use farebox_ledger::{Amount, CustomerId, KeyId, SharedLedger, Timestamp, UsageRow};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::last_hour::{HOUR, HourStanding, LastHour};
use super::outages::{FailedTarget, Outages};
use crate::clock;
use crate::config::{Catalog, ConfigHandle};

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

/// Whose request is judged: a key, and the customer who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Payer {
    pub(crate) customer: CustomerId,
    pub(crate) key: KeyId,
}

/// What is known of the exposure of a customer and its keys.
#[derive(Debug, Default)]
pub(crate) struct CustomerExposure {
    /// Of all keys together; set once a request has left exposure.
    last_hour: Option<LastHour>,
    /// Of each key that was used within the hour.
    keys: BTreeMap<KeyId, LastHour>,
    /// All that the customer ever paid, as of its last request.
    pub(crate) credit: Amount,
    /// Exposure of an hour that counts against nobody, by key, of this hour and the one before.
    excused: BTreeMap<(i64, KeyId), i128>,
    review: HourReview,
}

/// The state of reading a customer's last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HourReview {
    #[default]
    Idle,
    Running,
    /// A request ended since the read began.
    Again,
}

/// Who gets nothing more for now, and the two sides of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppedPayer {
    /// The customer.
    pub customer: CustomerId,
    /// The key that is stopped, or the one that caused most.
    pub key: KeyId,
    /// Whether all keys of the customer are stopped.
    pub all_keys: bool,
    /// Exposure and what is allowed.
    pub standing: HourStanding,
}

impl CustomerExposure {
    /// The hour that stops a request of a key: its own, else that of all keys together.
    fn stopping(&self, key: KeyId, now: Timestamp) -> Option<LastHour> {
        let own = self.keys.get(&key).copied();
        [own, self.last_hour]
            .into_iter()
            .flatten()
            .find(|hour| hour.standing(now, self.credit).is_stopped())
    }

    /// Minutes until a key is served again; `None` if it is served now.
    pub(crate) fn minutes_left(&self, key: KeyId, now: Timestamp) -> Option<u32> {
        let stopped = self.stopping(key, now)?;
        Some(stopped.minutes_left(now, self.credit))
    }

    /// The other key that caused most of what stops a key, if its own hour does not.
    pub(crate) fn cause(&self, key: KeyId, now: Timestamp) -> Option<KeyId> {
        let own = self.keys.get(&key);
        let own = own.is_some_and(|hour| hour.standing(now, self.credit).is_stopped());
        self.worst(now).filter(|worst| !own && *worst != key)
    }

    fn worst(&self, now: Timestamp) -> Option<KeyId> {
        let exposure = |hour: &LastHour| hour.standing(now, self.credit).exposure;
        let worst = self.keys.iter().max_by_key(|(_, hour)| exposure(hour));
        worst.map(|(key, _)| *key)
    }

    /// Whether a key gets nothing more for now.
    pub(crate) fn is_stopped(&self, key: KeyId, now: Timestamp) -> bool {
        self.stopping(key, now).is_some()
    }

    /// Every stop of a customer: that of all keys, named by the key that caused most, or those of single keys.
    pub(crate) fn stops(&self, customer: CustomerId, now: Timestamp) -> Vec<StoppedPayer> {
        let stopped = |key: KeyId, all_keys, hour: &LastHour| {
            let standing = hour.standing(now, self.credit);
            let stop = StoppedPayer {
                customer,
                key,
                all_keys,
                standing,
            };
            standing.is_stopped().then_some(stop)
        };
        let most = self.worst(now).unwrap_or(customer.first_key());
        let all = self.last_hour.and_then(|hour| stopped(most, true, &hour));
        match all {
            Some(all) => vec![all],
            None => (self.keys.iter())
                .filter_map(|(key, hour)| stopped(*key, false, hour))
                .collect(),
        }
    }

    /// Whether nothing is lost when it is forgotten.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let stopped = |hour: &LastHour| hour.standing(now, self.credit).is_stopped();
        self.review == HourReview::Idle
            && self.excused.is_empty()
            && !self.last_hour.as_ref().is_some_and(stopped)
            && !self.keys.values().any(stopped)
    }

    /// Notes exposure that counts against nobody.
    fn excuse(&mut self, failed: FailedTarget) {
        let hour = failed.booked.hour();
        // Older hours have left the sixty minutes that count.
        self.excused.retain(|(other, _), _| *other >= hour - 1);
        let sum = self.excused.entry((hour, failed.key)).or_default();
        *sum = sum.saturating_add(i128::from(failed.exposure.picos()));
    }

    /// Takes in what the ledger has of the hour, by key.
    pub(crate) fn note(
        &mut self,
        rows: &BTreeMap<KeyId, Vec<UsageRow>>,
        catalog: &Catalog,
        now: Timestamp,
    ) {
        let excused = |key: Option<KeyId>, hour: i64| {
            let of_hour = self.excused.iter().filter(|((other, _), _)| *other == hour);
            of_hour
                .filter(|((_, whose), _)| key.is_none_or(|key| key == *whose))
                .map(|(_, sum)| sum)
                .sum()
        };
        let all: Vec<UsageRow> = rows.values().flatten().cloned().collect();
        let of_all = LastHour::of(&all, catalog, |hour| excused(None, hour), now);
        let of_key = |(key, rows): (&KeyId, &Vec<UsageRow>)| {
            (
                *key,
                LastHour::of(rows, catalog, |hour| excused(Some(*key), hour), now),
            )
        };
        let keys = rows.iter().map(of_key).collect();
        (self.last_hour, self.keys) = (Some(of_all), keys);
    }

    /// Whether the caller should read the customer's last hour; otherwise another task is reading it and will read it again.
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

/// Where the exposure of customers is kept while the gateway runs.
pub(crate) trait ExposedCustomers: Send + Sync + 'static {
    /// Failures of targets that several customers had.
    fn outages(&self) -> &Outages;
    /// Whether a payer gets nothing more for now; asked of those that nobody knows, too.
    fn is_stopped(&self, payer: Payer, now: Timestamp) -> bool;
    /// Reads or changes what is known of a customer.
    fn exposure_of<T>(
        &self,
        customer: CustomerId,
        with: impl FnOnce(&mut CustomerExposure) -> T,
    ) -> T;

    /// Notes exposure that counts against nobody.
    fn excuse(&self, failed: FailedTarget) {
        self.exposure_of(failed.customer, |known| known.excuse(failed));
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
        customers: &Arc<impl ExposedCustomers>,
        payer: Payer,
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
                customer: payer.customer,
                key: payer.key,
                exposure,
                booked: clock::now(),
            };
            let now = (Instant::now(), alone || paused.contains(&target));
            for excused in customers.outages().note(&target, kind, failed, now) {
                customers.excuse(excused);
                // The customer's own review follows when its request is settled.
                if excused.customer != payer.customer {
                    self.review(customers, payer_of(excused), excused.exposure);
                }
            }
        }
    }

    /// Excuses what targets failed to do just before they were paused for all: who met an outage first may have been stopped before
    /// it was proved.
    pub(crate) fn excuse_paused(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        paused: &BTreeSet<String>,
    ) {
        for target in paused {
            for excused in customers.outages().paused(target, Instant::now()) {
                customers.excuse(excused);
                self.review(customers, payer_of(excused), excused.exposure);
            }
        }
    }

    /// Re-reads a customer's last hour after a request that may have changed the rule's result: in the background, one read at a
    /// time, and once more if another request ended meanwhile.
    pub(crate) fn review(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        payer: Payer,
        exposure: Amount,
    ) {
        // A stopped key is read again even without exposure: its charges allow more.
        let concerned = exposure.is_positive() || customers.is_stopped(payer, clock::now());
        let customer = payer.customer;
        if !concerned || !customers.exposure_of(customer, CustomerExposure::begin_review) {
            return;
        }
        let (ledger, config) = (Arc::clone(self.ledger), Arc::clone(self.config));
        let customers = Arc::clone(customers);
        self.tasks.spawn(async move {
            loop {
                let now = clock::now();
                let from = Timestamp::from_millis(now.millis().saturating_sub(HOUR));
                // The end is exclusive, and the charge that caused this may be of this very millisecond.
                let to = Timestamp::from_millis(now.millis().saturating_add(1));
                match ledger.usage_by_key(customer, from, to).await {
                    Ok(rows) => {
                        let config = config.current();
                        customers.exposure_of(customer, |known| {
                            known.note(&rows, &config.catalog, now);
                        });
                    }
                    // The customer keeps the standing it had: a silent ledger neither stops nor frees anybody.
                    Err(error) => {
                        tracing::warn!(customer = %customer, %error, "a customer's exposure could not be read")
                    }
                }
                if !customers.exposure_of(customer, CustomerExposure::review_again) {
                    return;
                }
            }
        });
    }
}

const fn payer_of(failed: FailedTarget) -> Payer {
    Payer {
        customer: failed.customer,
        key: failed.key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, ProcessSecrets};

    fn hour(exposure: i64, charge: i64) -> Vec<UsageRow> {
        let row = UsageRow {
            hour: Timestamp::default(),
            slug: "quick".to_owned(),
            exposure: Amount::from_picos(exposure),
            charge: Amount::from_picos(charge),
            ..UsageRow::default()
        };
        vec![row]
    }

    #[test]
    fn many_keys_of_one_customer_have_one_bound() {
        let (catalog, routes) = (
            config::Source::new("catalog.toml", include_str!("../proxy/tests/catalog.toml")),
            config::Source::new("routes.toml", include_str!("../proxy/tests/routes.toml")),
        );
        let (config, _) = config::load(&catalog, &routes, &ProcessSecrets { lenient: true });
        let catalog = config.unwrap().catalog;
        let key = KeyId::from_random;
        let customer = CustomerId::made_for(key(1));
        let now = Timestamp::default();
        // Half of what was paid is less than a context: every key may leave 100 unpaid, and all together 100.
        let mut known = CustomerExposure {
            credit: Amount::from_picos(200),
            ..CustomerExposure::default()
        };
        known.note(&BTreeMap::from([(key(1), hour(100, 0))]), &catalog, now);
        assert_eq!(known.stops(customer, now), []);
        known.note(
            &BTreeMap::from([(key(1), hour(101, 0)), (key(2), hour(0, 50))]),
            &catalog,
            now,
        );
        assert!(known.is_stopped(key(1), now) && !known.is_stopped(key(2), now));
        let stops = known.stops(customer, now);
        assert_eq!(
            (stops.len(), stops[0].key, stops[0].all_keys),
            (1, key(1), false)
        );
        let mut many: BTreeMap<_, _> = (1..=1_000).map(|of| (key(of), hour(1, 0))).collect();
        many.insert(key(7), hour(2, 0));
        known.note(&many, &catalog, now);
        assert!(known.is_stopped(key(1), now) && known.is_stopped(key(5_000), now));
        assert_eq!(
            (known.cause(key(1), now), known.cause(key(7), now)),
            (Some(key(7)), None)
        );
        let stops = known.stops(customer, now);
        assert_eq!(
            (stops.len(), stops[0].key, stops[0].all_keys),
            (1, key(7), true)
        );
        assert!(!known.is_idle(now));
    }
}
