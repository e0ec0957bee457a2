//! One admitted request, as its task carries it from dispatch through the relay, and its one settlement.
//!
//! [`Admitted::settle`] is the only place where a hold ends. If something goes wrong before it (a panic, a cancelled runtime), the
//! hold's own guard settles what was noted last.
//!
//! Rows of docs/interface.md: `balance_is_reduced`.

mod owing;
mod served;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{
    Amount, Bill, BillFacts, EndReason, EndedHold, Evidence, Hold, SharedLedger, Usage,
};
use farebox_protocol::translate::Losses;
use farebox_protocol::{Additions, Classes, FrameMarks};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::bodies::RequestBodies;
use super::broken::MoneyBound;
use super::end::End;
use super::prepare::PreparedRequest;
use super::record::{self, Record, Told};
use super::translation::Translation;
use super::under_way::Entered;
use super::{Failure, Proxy, Reply, Request, asked};
use crate::billing::credit::CreditedStream;
use crate::billing::exposure::Payer;
use crate::billing::running::{CountOf, RunningCount};
use crate::clock;
use crate::config::{Model, Price, Target};
use crate::metering::meter::Start;
use crate::metering::{Counted, Meter, Terms};
use crate::upstream::redact::{self, Redacted};
use crate::upstream::{AskOrder, Attempt, FailureClass, SecretForms, ServingAccount, TokenShare};

/// How long an answer waits for its settlement before it is sent anyway.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);
/// How often it checks whether the resolver has settled.
const SETTLE_LOOK: Duration = Duration::from_millis(50);
/// The output that a request is expected to need of its provider's tokens in a minute; as much as a stream's hold covers at first.
const USUAL_OUTPUT: u64 = 2_048;
/// The longest a request may run.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Most removed members of an answer that are counted.
const MOST_STRANGE: usize = 32;

/// The bill's fact that lists what was removed from the request before it was sent.
pub const REMOVED: &str = "removed";
/// The bill's fact that lists what a translation dropped or changed in the request and, prefixed with `answer.`, in the answer.
pub const LOST: &str = "lost";

/// Where the answer is sent; closed when the customer has left.
pub(super) type ReplyTo = oneshot::Sender<Result<Reply, Failure>>;

/// One admitted request.
pub(super) struct Admitted {
    pub(super) proxy: Arc<Proxy>,
    pub(super) request: Request,
    pub(super) model: Arc<Model>,
    /// What it is charged for, so far.
    pub(super) count: RunningCount,
    pub(super) hold: Hold,
    pub(super) outcome: AnswerOutcome,
    pub(super) output_limit: u64,
    /// Nothing but text was sent, so that what it can count at most is certain.
    pub(super) only_text: bool,
    /// The most output that is charged, if a target may produce more than was declared because its family has a smallest limit.
    sold: Option<u64>,
    /// Whether the hold covers all that the limit of a stream allows.
    pub(super) holds_whole_limit: bool,
    /// What it will probably use, for its provider's `max_tokens_per_minute`.
    pub(super) expected_tokens: u64,
    /// Its part of those.
    pub(super) tokens: Option<TokenShare>,
    /// The output limit to write into the request.
    pub(super) limit: Option<u32>,
    /// What it was lowered by, if it was lowered to what the money buys.
    pub(super) lowered: Option<MoneyBound>,
    /// Where it may go, until it is dispatched.
    pub(super) places: AskOrder,
    /// The request in other families, until a target answers.
    pub(super) bodies: RequestBodies,
    /// Translates the answer into the customer's family, if it is in another.
    pub(super) translation: Option<Box<Translation>>,
    /// The snapshot that it was admitted under.
    pub(super) generation: u64,
}

/// What is known about the answer so far, for the journal and the log.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerOutcome {
    /// The operator's cost for the answering target.
    pub(super) cost: Option<Arc<Price>>,
    pub(super) answer_id: Option<Redacted>,
    /// Which of its provider's accounts answered.
    pub(super) account: Option<ServingAccount>,
    /// A pinned field that a target refused.
    pub(super) pin_refused: Option<Box<(String, &'static str)>>,
    /// The provider's secrets, which are redacted from the answer's id.
    pub(super) secrets: SecretForms,
    /// What the target may add to the answer.
    pub(super) additions: Option<Arc<dyn Additions>>,
    /// Members that it added beyond that, and that were removed.
    pub(super) strange: BTreeSet<String>,
    pub(super) first_byte: Option<Duration>,
    /// From arrival to dispatch.
    pub(super) prepared: Duration,
    pub(super) attempts: Vec<Attempt>,
    /// What the customer was told instead of an answer.
    pub(super) told: Option<Box<Told>>,
    /// What was removed from the request for the answering target.
    pub(super) removed: String,
    /// What the translation for that target lost; once the answer has ended, also what was lost on the way back.
    pub(super) lost: Losses,
}

impl AnswerOutcome {
    /// Notes members that were removed from the answer. A provider can invent as many as it likes.
    pub(super) fn removed_members(&mut self, marks: &FrameMarks, bytes: &[u8]) {
        for name in marks.strange_names(bytes) {
            if self.strange.len() < MOST_STRANGE && !self.strange.contains(&*name) {
                self.strange.insert(name.into_owned());
            }
        }
    }

    /// What was removed from the request or lost in translation, if anything: the name of the fact, the header, and the fields.
    pub(super) fn omissions(&self) -> impl Iterator<Item = (&'static str, &'static str, String)> {
        let omissions = [
            (REMOVED, "x-farebox-removed", self.removed.clone()),
            (LOST, "x-farebox-lost", self.lost.header()),
        ];
        omissions
            .into_iter()
            .filter(|(_, _, what)| !what.is_empty())
    }

    /// What the model did not get of the request, and the customer of the answer, as the receipt says it.
    fn facts(&self) -> BillFacts {
        self.omissions()
            .map(|(name, _, what)| (name.to_owned(), what))
            .collect()
    }
}

/// Settled, or handed to the resolver.
pub(super) struct Settled {
    /// The sum of the lines.
    pub(super) cost: Amount,
    /// The ledger's outcome; `None` if it did not answer in time.
    pub(super) finished: Option<EndedHold>,
    /// The counts that are charged.
    pub(super) usage: Usage,
    /// The class at whose price, if it is not the standard, or if another one was asked for.
    pub(super) class: Option<Cow<'static, str>>,
    /// The counts are not the target's: it sent none, or what cannot be.
    pub(super) ours: bool,
}

impl Settled {
    /// What is charged, as far as it is known.
    pub(super) fn charge(&self) -> Amount {
        self.finished.map_or(self.cost, |finished| finished.charge)
    }
}

impl Admitted {
    pub(super) fn new(
        proxy: Arc<Proxy>,
        prepared: PreparedRequest,
        (terms, bound): (Terms, MoneyBound),
        hold: Hold,
    ) -> Box<Self> {
        let PreparedRequest {
            request,
            seen,
            model,
            bodies,
            places,
            left_out,
            generation,
            ..
        } = prepared;
        let (choices, raised) = (seen.choices, bodies.raised(seen.limit));
        let sent = raised.map_or(0, |limit| {
            u64::from(limit).saturating_mul(u64::from(choices))
        });
        let start = Start {
            estimated_input: terms.estimated_input,
            most_input: terms.most_input,
            images: seen.content.pictures.len() as u64,
            output_limit: terms.output_limit.max(sent),
            choices,
            predicted: terms.predicted,
            lifetimes: asked::lifetimes(&seen),
            classes: seen.classes,
            cache_marked: terms.cache_marked,
            compaction: terms.compaction,
        };
        let only_text = seen.content.pictures.is_empty() && seen.content.documents.is_empty();
        let mut meter = Meter::new(Arc::clone(&model), start);
        if seen.has_stops {
            meter.ask_silence();
        }
        let of = CountOf {
            calibrations: &proxy.calibrations,
            turns: &proxy.turns,
            tasks: &proxy.tasks,
            customer: request.customer,
            arrived: request.arrived,
        };
        let count = RunningCount::new(&of, Arc::clone(&model), seen, meter);
        // Boxed because every step moves it: a future that passes two kilobytes by value grows to twenty.
        Box::new(Self {
            proxy,
            request,
            count,
            model,
            hold,
            outcome: AnswerOutcome {
                lost: left_out,
                ..AnswerOutcome::default()
            },
            output_limit: terms.output_limit,
            only_text,
            sold: raised.map(|_| terms.output_limit),
            holds_whole_limit: terms.holds_whole_limit,
            expected_tokens: expected(&terms, choices),
            tokens: None,
            limit: terms.limit,
            lowered: terms.lowered.then_some(bound),
            bodies,
            places,
            translation: None,
            generation,
        })
    }

    /// Notes that the request is about to go to its upstream. It is under way until what is returned here is dropped.
    pub(super) fn begin(&mut self) -> Entered {
        self.outcome.prepared = self.request.arrived.elapsed();
        self.proxy.under_way.enter(self.request.id)
    }

    /// Notes the target that answered, or worked on an answer. A wait for another one counts no longer.
    pub(super) fn answered_by(&mut self, target: &Target) {
        self.count.target = target.name();
        self.outcome.cost.clone_from(&target.cost);
        self.count.meter.wait(Duration::ZERO);
        self.count
            .meter
            .reasoning_outside(target.provider.reasoning_outside);
    }

    /// Notes the account with which the target answers.
    pub(super) fn served_by(&mut self, target: &Target, account: ServingAccount) {
        let several = target.provider.keys.accounts() > 1;
        self.count.account = several.then(|| account.number + 1);
        self.outcome.account = Some(account);
    }

    /// Headers that say what was served: the slug, where an alias of it was asked for, and what did not reach the model.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let slug = &self.model.slug;
        let by_alias = self.count.seen.model != *slug;
        let slug = by_alias.then(|| ("x-farebox-slug", slug.clone()));
        let omitted = self.outcome.omissions();
        let omitted = omitted.map(|(_, header, what)| (header, what));
        slug.into_iter().chain(omitted).collect()
    }

    /// How long the answering target had the request before its first frame, which has just arrived.
    pub(super) fn waited_for_frame(&self) -> Duration {
        let others: Duration = self
            .outcome
            .attempts
            .iter()
            .filter_map(|attempt| attempt.worked)
            .sum();
        self.since_dispatch().saturating_sub(others)
    }

    fn since_dispatch(&self) -> Duration {
        let arrived = self.request.arrived.elapsed();
        arrived.saturating_sub(self.outcome.prepared)
    }

    /// Notes why the answering target's answer is of no use, for the log.
    pub(super) fn broke(&mut self, reason: &str) {
        self.outcome.attempts.push(Attempt {
            target: self.count.target.clone(),
            class: FailureClass::Broken,
            reason: redact::for_operator(reason, &self.model.route),
            worked: None,
        });
    }

    /// When the request must end at the latest.
    pub(super) fn deadline(&self) -> Instant {
        self.request.arrived + LONGEST
    }

    /// Notes that the first byte of the answer is about to be sent.
    pub(super) fn first_byte(&mut self) {
        let arrived = self.request.arrived;
        self.outcome
            .first_byte
            .get_or_insert_with(|| arrived.elapsed());
    }

    /// What the journal would record if the request ended now.
    pub(super) fn checkpoint(&mut self) -> Bill {
        self.count.catch_up();
        let counted = self.sold(self.count.meter.charge_if_cut());
        self.bill(counted, &End::INTERRUPTED)
    }

    /// Ends the hold. This is the only place where a request's money is settled, and where what we have closed becomes free.
    pub(super) async fn settle(mut self: Box<Self>, end: &End) -> Settled {
        let closed = !self.request.connection.pay();
        let closed = closed.then(|| end.closed_by_us(self.outcome.first_byte.is_some()));
        let end = closed.as_ref().unwrap_or(end);
        if end.reason == EndReason::Length {
            self.count.meter.ask_silence();
        }
        // Boxed, because few answers need it and it would enlarge the task of every open stream.
        let (billable, took) = (self.has_billable_failures(), self.since_dispatch());
        let counted = Box::pin(self.count.counted(end.ending, billable, took)).await;
        let counted = self.sold(counted);
        let (usage, ours) = (counted.usage, counted.evidence != Some(Evidence::Provider));
        let class = counted.lines.iter().find_map(|line| line.class.clone());
        let asks = !self.count.seen.classes.is_standard();
        let class = class.or_else(|| asks.then_some(Cow::Borrowed(Classes::STANDARD.name())));
        self.note_use(&counted);
        let miscount = self.count.meter.miscount(end.ending, &counted);
        let oddities = self.oddities(&counted);
        let bill = self.bill(counted, end);
        let cost = farebox_ledger::bill::cost(&bill.lines).unwrap_or(Amount::ZERO);
        let failures = self.failures(&bill, end, miscount);
        let mut record = self.record(&bill, end);
        record.miscount = miscount;
        record.oddities = oddities;
        let (spine, limits) = (
            Arc::clone(&self.proxy),
            Arc::clone(&self.request.pass.rate_limits),
        );
        let owed = bill.exposure;
        let payer = Payer {
            customer: self.request.customer,
            key: self.request.key,
        };
        let (prepared, settling) = (self.outcome.prepared, Instant::now());
        let ledger = Arc::clone(&spine.ledger);
        // If the timeout drops this, the hold's guard hands the bill to the ledger's resolver. Boxed, because it would enlarge the
        // task of every open stream.
        let settled = tokio::time::timeout(
            SETTLE_PATIENCE,
            Box::pin(acknowledged(ledger, self.hold, bill)),
        )
        .await;
        let finished = settled.ok().flatten();
        if finished.is_none() {
            tracing::error!(request = %record.request_id, "the ledger did not acknowledge a settlement in time; its resolver will finish it");
        }
        record.charge = finished.map_or(cost, |finished| finished.charge);
        if !record.target.is_empty() {
            spine.calibrations.note_charge(
                &record.target,
                payer.customer,
                record.at,
                record.charge,
            );
        }
        record.loss = finished.map_or(Amount::ZERO, |finished| finished.loss);
        record.own_us = Some(micros(prepared + settling.elapsed()));
        let owed = owed.checked_add(record.loss).unwrap_or(owed);
        spine.observer.ended(Arc::new(record));
        spine.note_exposure(&limits, payer, failures, owed);
        Settled {
            cost,
            finished,
            usage,
            class,
            ours,
        }
    }

    /// What of these counts is charged.
    fn sold(&self, counted: Counted) -> Counted {
        match self.sold {
            Some(most) => counted.with_output_at_most(most),
            None => counted,
        }
    }

    fn bill(&self, counted: Counted, end: &End) -> Bill {
        let owed = counted.owed;
        let node = self
            .proxy
            .ledger
            .node()
            .map(|name| ("node".to_owned(), name.to_owned()));
        let mut bill = Bill {
            slug: self.model.slug.clone(),
            family: self.request.family.name().to_owned(),
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
            facts: self.outcome.facts().into_iter().chain(node).collect(),
            served: self.billed_as(&counted.usage),
            provider_cost: self.count.meter.provider_cost().map(Amount::from_picos),
            ..Bill::default()
        };
        self.owe(&mut bill, owed);
        bill
    }

    fn record(&self, bill: &Bill, end: &End) -> Record {
        Record {
            request_id: self.request.id,
            at: clock::now(),
            key: Some(self.request.key),
            origin: self.request.origin,
            slug: bill.slug.clone(),
            asked: record::asked(&self.count.seen.model),
            family: self.request.family.name(),
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
            extensions: self.hold.extensions(),
            loss: Amount::ZERO,
            exposure: bill.exposure,
            cost: bill.cost,
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
}

impl CreditedStream for Admitted {
    fn parts(&mut self) -> (&mut RunningCount, &mut Hold) {
        (&mut self.count, &mut self.hold)
    }

    fn bill_so_far(&mut self) -> Bill {
        self.checkpoint()
    }
}

/// Settles. If the ledger cannot take the settlement at once, its resolver takes it over, and this waits for the resolver.
async fn acknowledged(ledger: SharedLedger, hold: Hold, bill: Bill) -> Option<EndedHold> {
    let request = hold.request();
    match hold.settle(bill, clock::now()).await {
        Ok(finished) => return Some(finished),
        Err(error) => {
            tracing::error!(request = %record::request_id(request), %error, "a settlement is left to the ledger's resolver")
        }
    }
    // A stopped ledger resolves nothing; the next start will.
    while !ledger.stopped() {
        tokio::time::sleep(SETTLE_LOOK).await;
        let Ok(Some(entry)) = ledger.entry(request).await else {
            continue;
        };
        let (key, bill) = (
            ledger.find_key(entry.key?).await.ok().flatten()?,
            entry.bill?,
        );
        return Some(EndedHold {
            charge: entry.amount.checked_neg()?,
            loss: bill.loss,
            available: key.room(&bill.slug, clock::now()),
        });
    }
    None
}

fn tokens(usage: Usage) -> u64 {
    [
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.cache_write_1h,
        usage.cache_write_12h,
        usage.output,
        usage.reasoning,
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

/// Input and output as far as they are foreseen: a long answer is corrected when it has ended.
fn expected(terms: &Terms, choices: u32) -> u64 {
    let output = terms.output_limit.min(USUAL_OUTPUT);
    terms
        .estimated_input
        .saturating_add(output.saturating_mul(choices.into()))
}

fn millis(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX)
}

fn micros(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use farebox_ledger::sqlite::SqliteLedger;
    use farebox_ledger::{Durability, NewHold, OpenMode};

    use super::*;
    use crate::proxy::tests::new_key;

    #[tokio::test]
    async fn nobody_waits_for_a_ledger_that_has_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farebox.db");
        let ledger =
            Arc::new(SqliteLedger::create(path, OpenMode::Write, Durability::Prompt).unwrap());
        let (id, at) = (new_key(&*ledger, "1").await.id, clock::now());
        let (slug, family) = ("slug".to_owned(), "chat".to_owned());
        let new = NewHold {
            request: clock::operation_id(),
            customer: farebox_ledger::CustomerId::made_for(id),
            key: id,
            amount: Amount::from_picos(9),
            slug,
            family,
            at,
        };
        let shared: SharedLedger = Arc::clone(&ledger) as SharedLedger;
        let hold = Hold::open(Arc::clone(&shared), new).await.unwrap();
        ledger.close();
        let waited =
            tokio::time::timeout(SETTLE_PATIENCE, acknowledged(shared, hold, Bill::default()))
                .await;
        assert!(waited.unwrap().is_none(), "unknown, and at once");
    }
}
