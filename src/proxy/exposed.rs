//! Where the spine applies the rule for exposure: when a request is settled, and when a target is paused for all.

use std::convert::Infallible;
use std::sync::Arc;

use farebox_ledger::Amount;

use super::Proxy;
use super::rate_limit::RateLimits;
use crate::billing::exposure::{ExposureRule, Payer, TargetFailure};

impl Proxy {
    fn exposure_rule(&self) -> ExposureRule<'_> {
        ExposureRule {
            ledger: &self.ledger,
            config: &self.config,
            tasks: &self.tasks,
        }
    }

    /// Applies the rule to a settled request: what targets failed to do for its customer, and what it added to the exposure.
    pub(super) fn note_exposure(
        &self,
        limits: &Arc<RateLimits>,
        payer: Payer,
        failures: Vec<TargetFailure>,
        owed: Amount,
    ) {
        let rule = self.exposure_rule();
        if !failures.is_empty() {
            let paused = self.upstreams.paused_targets();
            rule.excuse(limits, payer, failures, &paused);
        }
        rule.review(limits, payer, owed);
    }

    /// Excuses what targets failed to do just before they were paused for all, as long as the gateway runs.
    pub async fn excuse_outages(&self, limits: &Arc<RateLimits>) -> Infallible {
        loop {
            self.upstreams.paused().await;
            let paused = self.upstreams.paused_targets();
            self.exposure_rule().excuse_paused(limits, &paused);
        }
    }
}
