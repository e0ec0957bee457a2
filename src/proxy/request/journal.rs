//! What the journal and the log record of a request: its bill so far, its last one, and its record.

use farebox_ledger::{Amount, Bill, RunName, ToldCost};

use super::super::end::End;
use super::super::record::{self, Record};
use super::{Admitted, LIMIT, UNREAD_COST, WAITED, millis};
use crate::clock;
use crate::metering::Counted;
use crate::upstream::redact;

impl Admitted {
    /// What the journal would record if the request ended now.
    pub(in crate::proxy) fn checkpoint(&mut self) -> Bill {
        self.count.catch_up();
        let counted = self.sold(self.count.meter.charge_if_cut());
        self.bill(counted, &End::INTERRUPTED)
    }

    /// What of these counts is charged.
    pub(super) fn sold(&self, counted: Counted) -> Counted {
        match self.sold {
            Some(most) => counted.with_output_at_most(most),
            None => counted,
        }
    }

    pub(super) fn bill(&self, counted: Counted, end: &End) -> Bill {
        let owed = counted.owed;
        let node = self
            .proxy
            .ledger
            .node()
            .map(|name| ("node".to_owned(), name.to_owned()));
        let mut bill = Bill {
            slug: self.model.slug.clone(),
            family: self.request.path_name().to_owned(),
            target: self.count.target.clone(),
            status: end.status,
            end_reason: end.reason.clone(),
            first_byte_ms: self.outcome.first_byte.map(millis),
            total_ms: millis(self.request.arrived.elapsed()),
            answer_id: self.outcome.answer_id.as_deref().cloned(),
            hold: self.hold.amount(),
            loss: Amount::ZERO,
            evidence: counted.evidence,
            usage: counted.usage,
            lines: counted.lines,
            facts: (self.outcome.facts().into_iter())
                .chain(node)
                .chain(self.of_money())
                .chain(self.unread_cost())
                .chain(self.run())
                .collect(),
            served: self.billed_as(&counted.usage),
            provider_cost: match self.count.meter.told_cost() {
                ToldCost::Amount(told) => Some(told),
                ToldCost::Nothing | ToldCost::Unreadable => None,
            },
            ..Bill::default()
        };
        self.owe(&mut bill, owed);
        bill
    }

    /// A lowered limit, and a wait for money, as the receipt says them.
    pub(super) fn of_money(&self) -> impl Iterator<Item = (String, String)> {
        let limit = self.reckoned.terms.told();
        let limit = limit.map(|told| (LIMIT.to_owned(), told));
        let waited = self.running.waited();
        let waited = (!waited.is_zero()).then(|| (WAITED.to_owned(), millis(waited).to_string()));
        limit.into_iter().chain(waited)
    }

    /// The run that the customer named.
    fn run(&self) -> Option<(String, String)> {
        let run = self.request.run.as_ref()?;
        Some((RunName::FACT.to_owned(), run.to_string()))
    }

    /// What the answer said of its cost in words that are no amount.
    fn unread_cost(&self) -> Option<(String, String)> {
        let text = self.count.meter.unread_cost()?;
        let text = redact::for_operator(text, &self.model.route).to_string();
        Some((UNREAD_COST.to_owned(), text))
    }

    pub(super) fn record(&self, bill: &Bill, end: &End) -> Record {
        Record {
            request_id: self.request.id,
            at: clock::now(),
            key: Some(self.request.key),
            origin: self.request.origin,
            slug: bill.slug.clone(),
            asked: record::asked(&self.count.seen.model),
            family: self.request.path_name(),
            target: bill.target.clone(),
            status: end.status,
            end_reason: end.reason.to_string(),
            message: String::new(),
            told: self.outcome.told.as_deref().cloned(),
            answer_id: bill.answer_id.clone(),
            free: false,
            usage: bill.usage,
            class: bill.lines.iter().find_map(|line| line.class.clone()),
            oddities: Vec::new(),
            charge: Amount::ZERO,
            hold: bill.hold,
            moves: self.hold.moves(),
            limit: self.reckoned.terms.told().unwrap_or_default(),
            waited_ms: millis(self.running.waited()),
            loss: Amount::ZERO,
            exposure: bill.exposure,
            cost: bill.own_cost(),
            costs: (self.outcome.cost.as_deref()).and(bill.told_cost().zip(bill.listed_cost())),
            failed: bill
                .failed()
                .map(|(target, owed)| (target.to_owned(), owed))
                .collect(),
            evidence: bill.evidence,
            miscount: None,
            strange: (self.outcome.strange.iter())
                .map(|name| redact::for_operator(name, &self.model.route))
                .collect(),
            first_byte_ms: bill.first_byte_ms,
            total_ms: bill.total_ms,
            own_us: None,
            lost: self.outcome.lost.header(),
            removed: self.outcome.removed.clone(),
            attempts: self.outcome.attempts.clone(),
        }
    }

    /// The bill of a request that has ended. What a count of its prompt proves of earlier ones is taken back from the customer's exposure.
    pub(super) fn last_bill(&mut self, counted: Counted, end: &End) -> Bill {
        let taken_back = self.count.judge_prompt(&counted);
        let mut bill = self.bill(counted, end);
        let mut tried = self.outcome.attempts.iter().rev();
        let tried = tried.find(|tried| tried.worked.is_some());
        let tried = tried.map(|tried| &*tried.target);
        self.count.uncounted(bill.exposure, tried);
        bill.exposure = bill.exposure.checked_sub(taken_back).unwrap_or_default();
        bill
    }
}
