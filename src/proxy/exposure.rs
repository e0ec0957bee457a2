//! Where the spine applies the rule for exposure: before a request is sent, when it is settled, and when a target fails us, too.

use std::convert::Infallible;
use std::sync::Arc;

use farebox_ledger::Amount;

use super::rate_limit::RateLimits;
use super::{Failure, Proxy};
use crate::billing::exposure::{ExposedCustomers, ExposureRule, Payer, TargetFailure};
use crate::billing::last_days;
use crate::billing::reserve::{Reserved, Risk};
use crate::clock;
use crate::config::Model;

impl Proxy {
    fn exposure_rule(&self) -> ExposureRule<'_> {
        ExposureRule {
            ledger: &self.ledger,
            config: &self.config,
            tasks: &self.tasks,
        }
    }

    /// Applies the rule to a settled request: what targets of a model failed to do for its customer, what it was charged, and what it
    /// added to the exposure.
    pub(super) fn note_exposure(
        &self,
        limits: &Arc<RateLimits>,
        (payer, model): (Payer, &Model),
        failures: Vec<TargetFailure>,
        (charge, owed): (Amount, Amount),
        reserved: Option<Reserved>,
    ) {
        let rule = self.exposure_rule();
        let of_model = (&*model.slug, last_days::context(model));
        rule.excuse(limits, payer, failures, of_model);
        limits.charged(payer, charge, clock::now());
        rule.review(limits, payer, owed, reserved);
    }

    /// What the tighter stop leaves to a key on this gateway, whose request asks for a model.
    pub(super) fn exposure_left(
        &self,
        limits: &Arc<RateLimits>,
        payer: Payer,
        model: &Model,
    ) -> Amount {
        let (context, now) = (last_days::context(model), clock::now());
        let (left, known) = limits.left(payer, context, now);
        if !known {
            self.exposure_rule().read(limits, payer.customer);
        }
        Amount::from_picos(left.picos() / limits.gateways())
    }

    /// Reserves what a known prompt's hold leaves uncovered, until the prompt is counted; `None` if the customer may not leave so much.
    pub(super) fn reserve_gap(
        &self,
        limits: &Arc<RateLimits>,
        (payer, model): (Payer, &Model),
        gap: Amount,
    ) -> Option<Reserved> {
        let left = self.exposure_left(limits, payer, model);
        let place = (payer.customer, Risk::Gap);
        limits.reservations().reserve(place, gap, (left, false))
    }

    /// Reserves the likely prompt of a stream until its first frame. The first of a customer is always let through; `Ok(None)`: the
    /// others may leave too much together, so this one waits for them.
    ///
    /// # Errors
    /// [`Failure::ExposureLimit`] of a key that is stopped by now.
    pub(super) fn reserve_prompt(
        &self,
        limits: &Arc<RateLimits>,
        (payer, model): (Payer, &Model),
        prompt: Amount,
    ) -> Result<Option<Reserved>, Failure> {
        if let Some(stop) = limits.told(payer, clock::now()) {
            return Err(Failure::ExposureLimit(Some(Box::new(stop))));
        }
        let left = self.exposure_left(limits, payer, model);
        let place = (payer.customer, Risk::Prompt);
        Ok(limits.reservations().reserve(place, prompt, (left, true)))
    }

    /// Excuses what targets failed to do for customers while they failed us, as long as the gateway runs.
    pub async fn excuse_outages(&self, limits: &Arc<RateLimits>) -> Infallible {
        loop {
            let outage = self.upstreams.next_outage().await;
            self.exposure_rule()
                .excuse_outage(limits, &outage.target, outage.sent);
        }
    }
}
