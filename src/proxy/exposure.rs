//! What a request may still cost the operator, and the rule for keys whose exposure grows too large.
//!
//! Exposure is what a provider may bill beyond the charge, at the catalog's prices; cost is all that it may bill, at the operator's
//! own prices. Both are recorded with the charge. A key whose exposure and loss over the last hour exceed one context (at most half
//! of what was ever paid onto it) and half its charges gets nothing more until they do not. The hour is read from the ledger after
//! each request that adds to it, so the rule survives a restart and spans all gateways of a fleet. A request that runs adds nothing:
//! its hold grows with what it may cost. What a target failed to do for several customers counts against none of them.

use std::convert::Infallible;
use std::sync::Arc;

use farebox_ledger::{Amount, KeyId, Timestamp};
use tokio::time::Instant;

use super::Proxy;
use super::last_hour::{HOUR, LastHour};
use super::outages::Failed;
use super::rate_limit::RateLimits;
use crate::clock;

/// What a target failed to do for a customer.
pub(super) struct Failure {
    pub(super) target: String,
    /// A word for how.
    pub(super) kind: &'static str,
    /// What it left uncharged.
    pub(super) exposure: Amount,
    /// It is the target's own doing, whoever else meets it.
    pub(super) alone: bool,
}

impl Proxy {
    /// Notes what targets failed to do for a customer, and excuses what was none of its doing, and none of others' before.
    pub(super) fn excuse(
        self: &Arc<Self>,
        limits: &Arc<RateLimits>,
        customer: KeyId,
        failures: Vec<Failure>,
    ) {
        if failures.is_empty() {
            return;
        }
        let paused = self.upstreams.paused_targets();
        for failure in failures {
            let Failure {
                target,
                kind,
                exposure,
                alone,
            } = failure;
            let failed = Failed {
                customer,
                exposure,
                booked: clock::now(),
            };
            let now = (Instant::now(), alone || paused.contains(&target));
            for excused in limits.outages.note(&target, kind, failed, now) {
                limits.excuse(excused);
                if excused.customer != customer {
                    self.review(limits, excused.customer, excused.exposure);
                }
            }
        }
    }

    /// Excuses what targets failed to do just before they were paused for all, as long as the gateway runs: who met an outage first
    /// may have been stopped before it was proved.
    pub async fn excuse_outages(self: &Arc<Self>, limits: &Arc<RateLimits>) -> Infallible {
        loop {
            self.upstreams.paused().await;
            for target in self.upstreams.paused_targets() {
                for excused in limits.outages.paused(&target, Instant::now()) {
                    limits.excuse(excused);
                    self.review(limits, excused.customer, excused.exposure);
                }
            }
        }
    }

    /// Re-reads a key's last hour after a request that may have changed the rule's result: in the background, one read at a time,
    /// and once more if another request ended meanwhile.
    pub(super) fn review(self: &Arc<Self>, limits: &Arc<RateLimits>, key: KeyId, exposure: Amount) {
        let concerned = exposure.is_positive() || limits.is_stopped(key, clock::now());
        if !concerned || !limits.begin_review(key) {
            return;
        }
        let (proxy, limits) = (Arc::clone(self), Arc::clone(limits));
        self.tasks.spawn(async move {
            loop {
                let now = clock::now();
                let from = Timestamp::from_millis(now.millis().saturating_sub(HOUR));
                let to = Timestamp::from_millis(now.millis().saturating_add(1));
                match proxy.ledger.usage(key, from, to).await {
                    Ok(rows) => {
                        let (config, excused) =
                            (proxy.config.current(), |hour| limits.excused(key, hour));
                        let last_hour = LastHour::of(&rows, &config.catalog, excused, now);
                        limits.note_last_hour(key, last_hour);
                    }
                    Err(error) => {
                        tracing::warn!(key = %key, %error, "a key's exposure could not be read")
                    }
                }
                if !limits.review_again(key) {
                    return;
                }
            }
        });
    }
}
