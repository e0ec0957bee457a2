//! What a request may still cost the operator, and the rule for keys whose exposure grows too large.
//!
//! Exposure is what a provider may bill beyond the charge, at the catalog's prices; cost is all that it may bill, at the operator's
//! own prices. Both are recorded with the charge. A key whose exposure and loss over the last hour exceed one context (at most half
//! of what was ever paid onto it) and half its charges gets nothing more until they do not. The hour is read from the ledger after
//! each request that adds to it, so the rule survives a restart and spans all gateways of a fleet. A request that runs adds nothing:
//! its hold grows with what it may cost. What a target failed to do for several customers counts against none of them.

use std::convert::Infallible;
use std::sync::Arc;

use farebox_ledger::{Amount, Bill, EndReason, KeyId, Owed, Timestamp, Usage};
use tokio::time::Instant;

use super::Proxy;
use super::admitted::Admitted;
use super::end::End;
use super::last_hour::{self, HOUR, LastHour};
use super::outages::Failed;
use super::rate_limit::RateLimits;
use crate::clock;
use crate::config::{Capability, Model, Price};
use crate::metering::{Ending, Miscount, price};
use crate::upstream::{Attempt, BreakerState};

/// What a target failed to do for a customer.
pub(super) struct Failure {
    target: String,
    /// A word for how.
    kind: &'static str,
    /// What it left uncharged.
    exposure: Amount,
    /// It is the target's own doing, whoever else meets it.
    alone: bool,
}

impl Admitted {
    /// Notes on a bill what providers may bill: the one that answered, and each one tried before it.
    pub(super) fn owe(&self, bill: &mut Bill, usage: Option<Usage>) {
        if let Some(usage) = &usage {
            let charged = farebox_ledger::bill::cost(&bill.lines).unwrap_or(Amount::ZERO);
            let owed = owed(
                &self.model,
                self.outcome.cost.as_deref(),
                self.meter.steps(usage),
                charged,
            );
            (bill.exposure, bill.cost) = (owed.exposure, owed.cost);
        }
        for attempt in &self.outcome.attempts {
            let Some(worked) = attempt.worked else {
                continue;
            };
            // Without a frame, a stream has produced no output that we know of, unless the model reasons first.
            let makes = !self.seen.stream
                || self.seen.hidden_reasoning
                || self.model.can(Capability::Reasoning);
            let usage = self.meter.tried(makes.then_some(worked), self.local);
            let target = self
                .model
                .route
                .targets
                .iter()
                .find(|target| target.name() == attempt.target);
            let cost = target.and_then(|target| target.cost.as_deref());
            bill.owe(
                &attempt.target,
                owed(&self.model, cost, (usage, &[]), Amount::ZERO),
            );
        }
    }

    /// What targets failed to do. A customer who has left may have caused it, so nothing of that is excused.
    pub(super) fn failures(
        &self,
        bill: &Bill,
        end: &End,
        miscount: Option<Miscount>,
    ) -> Vec<Failure> {
        if end.reason == EndReason::ClientGone {
            return Vec::new();
        }
        let at_cost =
            |exposure: i64| price::to_amount(last_hour::at_cost(i128::from(exposure), &self.model));
        let failed = bill.failed().map(|(target, owed)| {
            let of_target = |attempt: &&Attempt| attempt.target == target;
            let class = self.outcome.attempts.iter().rfind(of_target);
            let kind = class.map_or("failed", |attempt| attempt.class.name());
            Failure {
                target: target.to_owned(),
                kind,
                exposure: at_cost(owed.exposure.picos()),
                alone: false,
            }
        });
        let mut all: Vec<_> = failed.collect();
        let elsewhere = bill.failed().map(|(_, owed)| owed.exposure.picos());
        let own = bill.exposure.picos().saturating_sub(elsewhere.sum());
        let kind = match (end.ending, miscount) {
            (Ending::Broken, _) => "broken",
            (Ending::Complete, Some(miscount)) => miscount.name(),
            _ => return all,
        };
        if own > 0 {
            all.push(Failure {
                target: bill.target.clone(),
                kind,
                exposure: at_cost(own),
                alone: miscount.is_some_and(|miscount| self.cannot_cause(miscount)),
            });
        }
        all
    }

    /// Whether no customer can make a provider count like this: then it counts against nobody. Only pictures and documents may be
    /// more than we know; what text can be is certain.
    fn cannot_cause(&self, miscount: Miscount) -> bool {
        match miscount {
            Miscount::Missing => false,
            Miscount::AboveRequest => self.only_text,
            Miscount::AboveContext | Miscount::AboveLimit | Miscount::Malformed => true,
        }
    }

    /// Whether a failed try may be billed, and the request is therefore worth counting.
    pub(super) fn has_billable_failures(&self) -> bool {
        self.outcome
            .attempts
            .iter()
            .any(|attempt| attempt.worked.is_some())
    }
}

/// What a provider may bill for a usage, beyond what was charged for it.
fn owed(
    model: &Model,
    own: Option<&Price>,
    (first, further): (Usage, &[Usage]),
    charged: Amount,
) -> Owed {
    let cost = |price: &Price| price::to_amount(price::picos(price, &first, further));
    let billed = i128::from(cost(&model.price).picos());
    let exposure = price::to_amount((billed - i128::from(charged.picos())).max(0));
    Owed {
        exposure,
        cost: own.map(cost),
    }
}

impl Proxy {
    /// Notes what targets failed to do for a customer, and excuses what was none of its doing, and none of others' before.
    pub(super) fn excuse(
        self: &Arc<Self>,
        limits: &Arc<RateLimits>,
        customer: KeyId,
        failures: Vec<Failure>,
    ) {
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
            let paused = self
                .upstreams
                .states()
                .iter()
                .any(|state| state.target == target && state.state != BreakerState::Closed);
            let now = (Instant::now(), paused || alone);
            for excused in limits.outages.note(&target, kind, failed, now) {
                limits.excuse(excused);
                if excused.customer != customer {
                    self.review(limits, excused.customer, excused.exposure);
                }
            }
        }
    }

    /// Excuses what targets failed to do just before they were paused for all, as long as the gateway runs: who met an outage first
    /// may have been stopped before our own request proved it.
    pub async fn excuse_outages(self: &Arc<Self>, limits: &Arc<RateLimits>) -> Infallible {
        loop {
            self.upstreams.paused().await;
            let paused = self.upstreams.states().into_iter();
            for state in paused.filter(|state| state.state != BreakerState::Closed) {
                for excused in limits.outages.paused(&state.target, Instant::now()) {
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
                    Ok(rows) => note(
                        &limits,
                        key,
                        LastHour::of(
                            &rows,
                            &proxy.config.current().catalog,
                            |hour| limits.excused(key, hour),
                            now,
                        ),
                        now,
                    ),
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

fn note(limits: &RateLimits, key: KeyId, last_hour: LastHour, now: Timestamp) {
    let (was, standing) = limits.note_last_hour(key, last_hour, now);
    let (exposure, allowed) = (standing.exposure, standing.allowed);
    match (was, standing.is_stopped()) {
        (false, true) => {
            tracing::warn!(key = %key, %exposure, %allowed, "uncharged exposure is above its limit: the key is stopped")
        }
        (true, false) => {
            tracing::info!(key = %key, %exposure, %allowed, "uncharged exposure is back within its bound")
        }
        _ => {}
    }
}
