//! What providers may bill for a request, noted on its bill: the one that answered, and each one tried before it.

use farebox_ledger::{Amount, Bill, EndReason, Owed, Usage};

use super::super::end::End;
use super::Admitted;
use crate::billing::exposure::TargetFailure;
use crate::billing::last_hour;
use crate::config::{Capability, Price};
use crate::metering::{Ending, Miscount, price};
use crate::upstream::Attempt;

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
            let dearer = self.count.meter.dearer(usage).unwrap_or(Amount::ZERO);
            bill.exposure = owed.exposure.checked_add(dearer).unwrap_or(owed.exposure);
            bill.cost = owed.cost;
        }
        // Each failed try stands at its own target: another one's answer must not hide where the money goes.
        for attempt in &self.outcome.attempts {
            let Some(worked) = attempt.worked else {
                continue;
            };
            // Without a frame, a stream has produced no output that we know of, unless the model reasons first.
            let makes = !self.count.seen.stream
                || self.count.seen.hidden_reasoning
                || self.model.can(Capability::Reasoning);
            let usage = self
                .count
                .meter
                .tried(makes.then_some(worked), self.count.local);
            let target = self
                .model
                .route
                .targets
                .iter()
                .find(|target| target.name() == attempt.target);
            let cost = target.and_then(|target| target.cost.as_deref());
            bill.owe(
                &attempt.target,
                owed(&self.model.price, cost, (usage, &[]), Amount::ZERO),
            );
        }
    }

    /// What targets failed to do. A customer who has left may have caused it, so nothing of that is excused; what we closed ourselves is,
    /// whoever was asked.
    pub(in crate::proxy) fn failures(
        &self,
        bill: &Bill,
        end: &End,
        miscount: Option<Miscount>,
    ) -> Vec<TargetFailure> {
        let at_cost =
            |exposure: i64| price::to_amount(last_hour::at_cost(i128::from(exposure), &self.model));
        let dearer = self.count.meter.dearer(&bill.usage).unwrap_or(Amount::ZERO);
        // The customer asked for less, so it counts against nobody.
        let class = (dearer > Amount::ZERO).then(|| TargetFailure {
            target: bill.target.clone(),
            kind: "dearer_class",
            exposure: at_cost(dearer.picos()),
            alone: true,
        });
        if end.reason == EndReason::GatewayClosed {
            return vec![TargetFailure {
                target: bill.target.clone(),
                kind: "closed",
                exposure: at_cost(bill.exposure.picos()),
                alone: true,
            }];
        }
        if end.reason == EndReason::ClientGone {
            return class.into_iter().collect();
        }
        let failed = bill.failed().map(|(target, owed)| {
            let of_target = |attempt: &&Attempt| attempt.target == target;
            let class = self.outcome.attempts.iter().rfind(of_target);
            let kind = class.map_or("failed", |attempt| attempt.class.name());
            TargetFailure {
                target: target.to_owned(),
                kind,
                exposure: at_cost(owed.exposure.picos()),
                alone: false,
            }
        });
        let mut all: Vec<_> = failed.chain(class).collect();
        let elsewhere = bill.failed().map(|(_, owed)| owed.exposure.picos());
        // The bill's exposure is of all targets together. What the failed ones may bill is in the list already.
        let own = bill.exposure.picos().saturating_sub(elsewhere.sum());
        let own = own.saturating_sub(dearer.picos());
        let kind = match (end.ending, miscount) {
            (Ending::Broken, _) => "broken",
            (Ending::Complete, Some(miscount)) => miscount.name(),
            _ => return all,
        };
        if own > 0 {
            all.push(TargetFailure {
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
