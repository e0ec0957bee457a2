//! What providers may bill for a request, noted on its bill: the one that answered, and each one tried before it.

use std::time::Duration;

use farebox_ledger::{Amount, Bill, CostSource, EndReason, Evidence, Owed, Usage};
use tokio::time::Instant;

use super::super::end::End;
use super::Admitted;
use crate::billing::exposure::{Excuse, TargetFailure, UncountedEnd};
use crate::billing::last_days;
use crate::config::{Price, Target};
use crate::metering::{Ending, Miscount, price};

impl Admitted {
    /// Notes on a bill what providers may bill: the one that answered, and each one tried before it.
    pub(super) fn owe(&self, bill: &mut Bill, usage: Option<Usage>) {
        if let Some(usage) = &usage {
            let charged = farebox_ledger::bill::cost(&bill.lines).unwrap_or(Amount::ZERO);
            let served = self.count.meter.served();
            let steps = self.count.meter.steps(usage);
            let own = self.outcome.cost.as_deref();
            let own = own.map(|own| own.of(served).unwrap_or(own));
            let owed = owed(self.count.meter.price_of(usage), own, steps, charged);
            let exposure = match bill.evidence {
                // What it says, and what it claims.
                Some(Evidence::Provider | Evidence::Disputed) => owed.exposure,
                Some(Evidence::Local | Evidence::Learned | Evidence::Recovered) | None => {
                    let target = self.target_named(&self.count.target);
                    let made = self.outcome.first_frame.map(|first| first.elapsed());
                    let made = made.unwrap_or_else(|| self.since_dispatch());
                    self.uncounted(target, made, charged).exposure()
                }
            };
            let dearer = self.count.meter.dearer(usage).unwrap_or(Amount::ZERO);
            bill.exposure = exposure.checked_add(dearer).unwrap_or(exposure);
            bill.cost = owed.cost;
        }
        bill.cost_source = CostSource::between(self.count.meter.told_cost(), bill.cost);
        // Each failed try stands at its own target: another one's answer must not hide where the money goes.
        for attempt in &self.outcome.attempts {
            let Some(worked) = attempt.worked else {
                continue;
            };
            let target = self.target_named(&attempt.target);
            let cost = target.and_then(|target| target.cost.as_deref());
            let (meter, local) = (&self.count.meter, self.count.local);
            let usage = meter.tried(Some(worked), local);
            let own = owed(&self.model.price, cost, (usage, &[]), Amount::ZERO);
            let exposure = self.uncounted(target, worked, Amount::ZERO).exposure();
            bill.owe(&attempt.target, Owed { exposure, ..own });
        }
    }

    /// What a target may bill for a request that nobody counted, of which it may have made something for so long.
    fn uncounted(&self, target: Option<&Target>, made: Duration, charge: Amount) -> UncountedEnd {
        let (rates, classes) = (self.count.meter.rates(), self.count.meter.served());
        let speed = target.and_then(|target| target.speed(classes));
        let speed = speed.or(self.model.limits.speed);
        let name = target.map(Target::name).unwrap_or_default();
        let ask = &self.reckoned.ask;
        let counted = self.count.meter.counted_prompt().map(|(cost, _)| cost);
        let price = self.model.price.held(ask.classes);
        let input = counted.unwrap_or_else(|| ask.prompt(price, ask.estimate.bound));
        let learned = (self.proxy.calibrations).learned(&name, classes, speed);
        UncountedEnd {
            hold: self.hold.amount(),
            input,
            choices: self.count.seen.choices.into(),
            speed: speed.map(u64::from),
            pace: Some(learned.pace),
            per_output: price::to_amount(price::dearest_output(rates)),
            made,
            stops: target.is_none_or(|target| target.stops),
            charge,
        }
    }

    fn target_named(&self, name: &str) -> Option<&Target> {
        let mut targets = self.model.route.targets.iter();
        targets.find(|target| target.name() == name)
    }

    /// Hashes the prompt of a request that nobody has answered, so that a later count can take back what it leaves.
    pub(super) fn hash_unanswered(&mut self, took: Duration) {
        let body = std::mem::take(&mut self.request.body);
        let headers = std::mem::take(&mut self.request.headers);
        if !body.is_empty() {
            let sent = Instant::now().checked_sub(took);
            self.count
                .read_prompt(body, headers, sent.unwrap_or(self.request.arrived));
        }
    }

    /// What targets failed to do, as far as it may not count against the customer: one that sent no frame, and what we did or counted
    /// ourselves. A customer who left before its provider failed has still waited for it.
    pub(in crate::proxy) fn failures(
        &self,
        bill: &Bill,
        end: &End,
        miscount: Option<Miscount>,
    ) -> Vec<TargetFailure> {
        let failure = |target: &str, kind, exposure: i64, excuse| TargetFailure {
            target: target.to_owned(),
            kind,
            exposure: price::to_amount(last_days::at_cost(i128::from(exposure), &self.model)),
            excuse,
        };
        if end.reason == EndReason::GatewayClosed {
            let all = bill.exposure.picos();
            return vec![failure(&bill.target, "closed", all, Excuse::Certain)];
        }
        let silent = self.outcome.attempts.iter().filter_map(|tried| {
            let target = &tried.target;
            let of = self.uncounted(self.target_named(target), tried.worked?, Amount::ZERO);
            let may_ask = self.proxy.upstreams.may_ask(target);
            let (exposure, excuse) = (of.exposure().picos(), Excuse::IfOthers { may_ask });
            Some(failure(target, tried.class.name(), exposure, excuse))
        });
        let mut all: Vec<_> = silent.collect();
        // The customer asked for less, so it counts against nobody.
        let dearer = self.count.meter.dearer(&bill.usage).unwrap_or(Amount::ZERO);
        if dearer > Amount::ZERO {
            let excuse = Excuse::Certain;
            all.push(failure(
                &bill.target,
                "dearer_class",
                dearer.picos(),
                excuse,
            ));
        }
        let certain = miscount.filter(|miscount| self.cannot_cause(*miscount));
        if let Some(miscount) = certain.filter(|_| end.ending == Ending::Complete) {
            // The bill's exposure is of all targets together.
            let own = bill.owed().exposure.picos().saturating_sub(dearer.picos());
            if own > 0 {
                let (kind, excuse) = (miscount.name(), Excuse::Certain);
                all.push(failure(&bill.target, kind, own, excuse));
            }
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
    pub(in crate::proxy) fn has_billable_failures(&self) -> bool {
        self.outcome
            .attempts
            .iter()
            .any(|attempt| attempt.worked.is_some())
    }
}

/// What a provider may bill for a usage, beyond what was charged for it.
fn owed(
    price: &Price,
    own: Option<&Price>,
    (first, further): (Usage, &[Usage]),
    charged: Amount,
) -> Owed {
    let cost = |price: &Price| price::to_amount(price::picos(price, &first, further));
    let billed = i128::from(cost(price).picos());
    let exposure = price::to_amount((billed - i128::from(charged.picos())).max(0));
    Owed {
        exposure,
        cost: own.map(cost),
    }
}
