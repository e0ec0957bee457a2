//! What a request may still cost the operator, and the rule for keys and customers whose exposure grows too large.
//!
//! Exposure is what a provider may bill beyond the charge, at the catalog's prices; cost is all that it may bill, at the operator's
//! own prices. Both are recorded with the charge. A key whose exposure and loss of the last day, fading, exceed one context (at most
//! half of what its customer ever paid) and half its charges gets nothing more until they do not, nor does one whose exposure of 30
//! days exceeds half of what was paid and half its charges; and neither does any key of a customer whose keys exceed the same bounds
//! together: a thousand keys gain nothing. The days are read from the ledger after each request that adds to them, so the rule
//! survives a restart and spans all gateways of a fleet. What a target failed to do, as our own requests show, counts against nobody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Amount, CustomerId, KeyId, LedgerError, SharedLedger, Timestamp, UsageRow};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::last_days::{DAY, ExposureSpan, ExposureStanding, FreeExposure, HOUR, LastDays, MONTH};
use super::outages::{FailedTarget, Outages};
use super::reserve::{Reservations, Reserved};
use crate::clock;
use crate::config::{Catalog, ConfigHandle};
use crate::metering::price;
use crate::metering::rates::USUAL_SPEED;

/// What is excused of a customer within 24 hours: so many times what a day leaves without charges.
// An outage must stop nobody's work, but whoever causes failures that look like one would otherwise have no bound at all.
const MOST_EXCUSED: i128 = 10;
/// Hours that are read again, because a settlement may still have come into them.
const UNSETTLED: i64 = 2;

/// What of a request that nobody counted decides what its provider may bill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncountedEnd {
    /// What is held for it.
    pub(crate) hold: Amount,
    /// The most that its input costs.
    pub(crate) input: Amount,
    pub(crate) choices: u64,
    /// Tokens a second, as somebody named it.
    pub(crate) speed: Option<u64>,
    /// Thousandths of a token a second, as it was observed.
    pub(crate) pace: Option<u64>,
    /// The dearest price of a token of output.
    pub(crate) per_output: Amount,
    /// Since the first frame, or since it was sent where there was none.
    pub(crate) made: Duration,
    /// Whether the provider stops when we close.
    pub(crate) stops: bool,
    pub(crate) charge: Amount,
}

impl UncountedEnd {
    /// What the provider may bill beyond the charge.
    pub(crate) fn exposure(&self) -> Amount {
        let picos = |amount: Amount| i128::from(amount.picos());
        let speed = match (self.speed, self.pace) {
            (None, None) => u64::from(USUAL_SPEED).saturating_mul(1_000),
            (speed, pace) => {
                let (named, seen) = (speed.unwrap_or(0), pace.unwrap_or(0));
                named.saturating_mul(1_000).max(seen.saturating_mul(2))
            }
        };
        let millis = i128::try_from(self.made.as_millis()).unwrap_or(i128::MAX);
        let tokens = i128::from(speed)
            .saturating_mul(millis)
            .saturating_mul(self.choices.into())
            / 1_000_000;
        let made = tokens.saturating_mul(picos(self.per_output));
        let bill = picos(self.input).saturating_add(made);
        // A service that goes on after we have closed bills up to the limit that it was sent, and that is what is held.
        let most = if self.stops {
            bill.min(picos(self.hold))
        } else {
            picos(self.hold)
        };
        price::to_amount((most - picos(self.charge)).max(0))
    }
}

/// What a target failed to do for a customer.
pub(crate) struct TargetFailure {
    pub(crate) target: String,
    /// A word for how.
    pub(crate) kind: &'static str,
    /// What it left uncharged.
    pub(crate) exposure: Amount,
    pub(crate) excuse: Excuse,
}

/// Whether a failure counts against its customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excuse {
    /// No: no customer can make it.
    Certain,
    /// Not if the target failed us, too; where we may not ask it ourselves, not if it failed others.
    IfOthers { may_ask: bool },
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
    /// Of all keys together.
    all: LastDays,
    /// Of each key that was used in that time.
    keys: BTreeMap<KeyId, LastDays>,
    /// All that came to the customer, as of its last request.
    pub(crate) credit: Amount,
    /// What of it nobody paid.
    given: Amount,
    /// The hour from which on the ledger has to be read again; `None` before the first time.
    unread: Option<i64>,
    /// Exposure of an hour that counts against nobody, by key, of the last day.
    excused: BTreeMap<(i64, KeyId), i128>,
    /// The model whose provider failed last before it sent anything.
    failed: Option<String>,
    review: DaysReview,
    /// What was reserved for requests that have ended, until what they left has been read.
    ended: Vec<Reserved>,
}

/// The state of reading a customer's last days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum DaysReview {
    #[default]
    Idle,
    Running,
    /// A request ended since the read began.
    Again,
}

/// Who gets nothing more for now, and the two sides of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppedPayer {
    /// Whose keys they are.
    pub customer: CustomerId,
    /// The key that is stopped, or the one that caused most.
    pub key: KeyId,
    /// Whether all keys of the customer are stopped.
    pub all_keys: bool,
    /// Exposure and what is allowed.
    pub standing: ExposureStanding,
}

/// What a stopped key is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldStop {
    /// Which of its days are too much.
    pub span: ExposureSpan,
    /// Until it is served again.
    pub minutes: u32,
    /// The other key of the customer that caused most of it, if the key itself did not.
    pub cause: Option<KeyId>,
    /// The model whose provider sent nothing for some of its requests.
    pub failed: Option<String>,
}

impl CustomerExposure {
    /// What the customer ever paid, less what went back.
    fn paid(&self) -> Amount {
        let paid = self.credit.picos().saturating_sub(self.given.picos());
        Amount::from_picos(paid.max(0))
    }

    fn free(&self) -> FreeExposure {
        FreeExposure {
            paid: self.paid(),
            asked: Amount::ZERO,
        }
    }

    /// The days that stop a request of a key: its own, else those of all keys together.
    fn stopping(&self, key: KeyId, now: Timestamp) -> Option<&LastDays> {
        let known = self.keys.get(&key).into_iter().chain([&self.all]);
        known
            .into_iter()
            .find(|days| days.is_stopped(now, self.free()))
    }

    /// Why a key is not served, if it is not.
    pub(crate) fn told(&self, key: KeyId, now: Timestamp) -> Option<ToldStop> {
        let stopped = self.stopping(key, now)?;
        let [standing, _] = stopped.standings(now, self.free());
        let own = self.keys.get(&key);
        let own = own.is_some_and(|days| days.is_stopped(now, self.free()));
        Some(ToldStop {
            span: standing.span,
            minutes: stopped.minutes_left(now, self.free()),
            cause: self.worst(now).filter(|worst| !own && *worst != key),
            failed: self.failed.clone(),
        })
    }

    fn worst(&self, now: Timestamp) -> Option<KeyId> {
        let exposure = |days: &LastDays| days.standings(now, self.free())[0].exposure;
        let worst = self.keys.iter().max_by_key(|(_, days)| exposure(days));
        worst.map(|(key, _)| *key)
    }

    /// Whether a key gets nothing more for now.
    pub(crate) fn is_stopped(&self, key: KeyId, now: Timestamp) -> bool {
        self.stopping(key, now).is_some()
    }

    /// What the tighter rule leaves to a key that asks for a model whose full context costs `context`, and whether that is what the
    /// ledger says.
    pub(crate) fn left(&self, key: KeyId, context: Amount, now: Timestamp) -> (Amount, bool) {
        let free = FreeExposure {
            asked: context,
            ..self.free()
        };
        let unused = LastDays::default();
        let own = self.keys.get(&key).unwrap_or(&unused);
        let [own, all] = [own, &self.all].map(|days| days.standings(now, free)[0].left());
        (own.min(all), self.unread.is_some())
    }

    /// Adds a charge, until the ledger is read again.
    pub(crate) fn charged(&mut self, key: KeyId, charge: Amount, now: Timestamp) {
        if self.unread.is_some() && charge.is_positive() {
            self.all.charged(charge, now);
            self.keys.entry(key).or_default().charged(charge, now);
        }
    }

    /// Every stop of a customer: that of all keys, named by the key that caused most, or those of single keys.
    pub(crate) fn stops(&self, customer: CustomerId, now: Timestamp) -> Vec<StoppedPayer> {
        let stopped = |key: KeyId, all_keys, days: &LastDays| {
            let [standing, _] = days.standings(now, self.free());
            let stop = StoppedPayer {
                customer,
                key,
                all_keys,
                standing,
            };
            standing.is_stopped().then_some(stop)
        };
        let most = self.worst(now).unwrap_or(customer.first_key());
        match stopped(most, true, &self.all) {
            Some(all) => vec![all],
            None => (self.keys.iter())
                .filter_map(|(key, days)| stopped(*key, false, days))
                .collect(),
        }
    }

    /// Whether nothing is lost when it is forgotten.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let stopped = |days: &LastDays| days.is_stopped(now, self.free());
        self.review == DaysReview::Idle
            && self.excused.is_empty()
            && !stopped(&self.all)
            && !self.keys.values().any(stopped)
    }

    /// Notes exposure that counts against nobody, as far as so much may be excused. `context`: the price of one of the model's.
    fn excuse(&mut self, failed: FailedTarget, context: Option<Amount>) {
        let hour = failed.booked.hour();
        // Only hours that are read again need it; the rest bounds what is excused in a day.
        self.excused.retain(|(other, _), _| *other > hour - DAY);
        let before: i128 = self.excused.values().sum();
        let most = context.map_or(i128::MAX, |context| {
            MOST_EXCUSED * i128::from(context.picos().min(self.paid().picos() / 2))
        });
        let excused = i128::from(failed.exposure.picos()).min((most - before).max(0));
        let sum = self.excused.entry((hour, failed.key)).or_default();
        *sum = sum.saturating_add(excused);
    }

    /// The first hour that has to be read from the ledger.
    pub(crate) fn unread(&self, now: Timestamp) -> i64 {
        self.unread
            .unwrap_or((now.hour().div_euclid(DAY) - MONTH) * DAY)
    }

    /// Takes in what the ledger has from an hour on, by key.
    pub(crate) fn note(
        &mut self,
        rows: &BTreeMap<KeyId, Vec<UsageRow>>,
        catalog: &Catalog,
        (from, now): (i64, Timestamp),
    ) {
        let excused = |key: Option<KeyId>, hour: i64| -> i128 {
            let of_hour = self.excused.iter().filter(|((of, _), _)| *of == hour);
            of_hour
                .filter(|((_, whose), _)| key.is_none_or(|key| key == *whose))
                .map(|(_, sum)| sum)
                .sum()
        };
        let all: Vec<UsageRow> = rows.values().flatten().cloned().collect();
        self.all
            .note(&all, catalog, (from, now), |hour| excused(None, hour));
        for key in rows.keys() {
            self.keys.entry(*key).or_default();
        }
        for (key, days) in &mut self.keys {
            let rows = rows.get(key).map_or(&[][..], Vec::as_slice);
            days.note(rows, catalog, (from, now), |hour| excused(Some(*key), hour));
        }
        self.unread = Some(now.hour() + 1 - UNSETTLED);
    }

    /// Whether the caller should read the customer's last days; otherwise another task is reading it and will read it again.
    fn begin_review(&mut self) -> bool {
        let idle = self.review == DaysReview::Idle;
        self.review = if idle {
            DaysReview::Running
        } else {
            DaysReview::Again
        };
        idle
    }

    /// Whether the reader should read once more.
    fn review_again(&mut self) -> bool {
        let again = self.review == DaysReview::Again;
        self.review = if again {
            DaysReview::Running
        } else {
            DaysReview::Idle
        };
        again
    }
}

/// Where the exposure of customers is kept while the gateway runs.
pub(crate) trait ExposedCustomers: Send + Sync + 'static {
    /// Failures of targets, and what our own requests showed.
    fn outages(&self) -> &Outages;
    /// What running requests may leave unpaid.
    fn reservations(&self) -> &Reservations;
    /// Whether a payer gets nothing more for now; asked of those that nobody knows, too.
    fn is_stopped(&self, payer: Payer, now: Timestamp) -> bool;
    /// Reads or changes what is known of a customer.
    fn exposure_of<T>(
        &self,
        customer: CustomerId,
        with: impl FnOnce(&mut CustomerExposure) -> T,
    ) -> T;

    /// Notes exposure that counts against nobody.
    fn excuse(&self, failed: FailedTarget, context: Option<Amount>) {
        self.exposure_of(failed.customer, |known| known.excuse(failed, context));
    }
}

/// The rule, with what it reads.
pub(crate) struct ExposureRule<'a> {
    pub(crate) ledger: &'a SharedLedger,
    pub(crate) config: &'a Arc<ConfigHandle>,
    pub(crate) tasks: &'a TaskTracker,
}

impl ExposureRule<'_> {
    /// Notes what targets of a model, whose full context costs `context`, failed to do for a customer, and excuses what was none of
    /// its doing, and none of others' before.
    pub(crate) fn excuse(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        payer: Payer,
        failures: Vec<TargetFailure>,
        (slug, context): (&str, Amount),
    ) {
        for failure in failures {
            let failed = FailedTarget {
                customer: payer.customer,
                key: payer.key,
                exposure: failure.exposure,
                context,
                booked: clock::now(),
            };
            let Excuse::IfOthers { may_ask } = failure.excuse else {
                customers.excuse(failed, None);
                continue;
            };
            customers.exposure_of(payer.customer, |known| {
                known.failed = Some(slug.to_owned());
            });
            let (target, kind) = (&failure.target, failure.kind);
            let excused = customers
                .outages()
                .note(target, kind, failed, (Instant::now(), may_ask));
            // The customer's own review follows when its request is settled.
            self.excuse_all(customers, excused, Some(payer.customer));
        }
    }

    /// A request of our own to a target, sent at `sent`, had no frame: excuses whoever's had none at that time.
    pub(crate) fn excuse_outage(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        target: &str,
        sent: Instant,
    ) {
        let excused = customers.outages().outage(target, sent, Instant::now());
        self.excuse_all(customers, excused, None);
    }

    fn excuse_all(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        excused: Vec<FailedTarget>,
        reviewed: Option<CustomerId>,
    ) {
        for failed in excused {
            customers.excuse(failed, Some(failed.context));
            if Some(failed.customer) != reviewed {
                self.review(customers, payer_of(failed), failed.exposure, None);
            }
        }
    }

    /// Re-reads a customer's last days after a request that may have changed the rule's result: in the background, one read at a
    /// time, and once more if another request ended meanwhile.
    pub(crate) fn review(
        &self,
        customers: &Arc<impl ExposedCustomers>,
        payer: Payer,
        exposure: Amount,
        reserved: Option<Reserved>,
    ) {
        // A stopped key is read again even without exposure: its charges allow more.
        let concerned = exposure.is_positive() || customers.is_stopped(payer, clock::now());
        if concerned {
            customers.exposure_of(payer.customer, |known| known.ended.extend(reserved));
            self.read(customers, payer.customer);
        }
    }

    /// Reads a customer's last days in the background.
    pub(crate) fn read(&self, customers: &Arc<impl ExposedCustomers>, customer: CustomerId) {
        if !customers.exposure_of(customer, CustomerExposure::begin_review) {
            return;
        }
        let (ledger, config) = (Arc::clone(self.ledger), Arc::clone(self.config));
        let customers = Arc::clone(customers);
        self.tasks.spawn(async move {
            loop {
                let now = clock::now();
                let (first, ended) = customers.exposure_of(customer, |known| {
                    (known.unread(now), std::mem::take(&mut known.ended))
                });
                let from = Timestamp::from_millis(first.saturating_mul(HOUR));
                // The end is exclusive, and the charge that caused this may be of this very millisecond.
                let to = Timestamp::from_millis(now.millis().saturating_add(1));
                let read = async {
                    let given = ledger.given(customer).await?;
                    let known = ledger.find_customer(customer).await?;
                    Ok((given, known, ledger.usage_by_key(customer, from, to).await?))
                };
                match read.await {
                    Ok((given, payer, rows)) => {
                        let config = config.current();
                        // What is exposed was reckoned at the prices of its list.
                        let list = payer.and_then(|payer| payer.settings.price_list);
                        let catalog = config.catalog.offered_to(list.as_deref());
                        let catalog = catalog.unwrap_or(&config.catalog);
                        customers.exposure_of(customer, |known| {
                            known.given = given;
                            known.note(&rows, catalog, (first, now));
                        });
                    }
                    // The customer keeps the standing it had: a silent ledger neither stops nor frees anybody.
                    Err::<_, LedgerError>(error) => {
                        tracing::warn!(customer = %customer, %error, "a customer's exposure could not be read")
                    }
                }
                drop(ended);
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
#[path = "exposure_tests.rs"]
mod tests;
