//! One admitted request, as its task carries it from dispatch through the relay, and its one settlement.
//!
//! [`Admitted::settle`] is the only place where a hold ends. If something goes wrong before it (a panic, a cancelled runtime), the
//! hold's own guard settles what was noted last.
//!
//! Rows of docs/interface.md: `balance_is_reduced`.

mod course;
mod debts;
mod journal;
mod service;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{
    Amount, Bill, BillFacts, EndReason, EndedHold, Evidence, Hold, SharedLedger, Timestamp, Usage,
};
use farebox_protocol::translate::Losses;
use farebox_protocol::{Additions, Classes, EndUserEcho, FrameMarks, Inspection};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::bodies::RequestBodies;
use super::end::End;
use super::money::Reckoned;
use super::prepare::PreparedRequest;
use super::record::{self, Told};
use super::sending::SentTerms;
use super::translation::Translation;
use super::under_way::Running;
use super::{Failure, Proxy, Reply, Request, prompt};
use crate::billing::reserve::Reserved;
use crate::billing::running::{AnswerEnd, CountOf, RunningCount};
use crate::clock;
use crate::config::{Model, Price, Target};
use crate::metering::meter::Start;
use crate::metering::{Counted, Meter, Terms};
use crate::upstream::redact::{self, Redacted};
use crate::upstream::{AskOrder, Attempt, FailureClass, SecretForms, ServingAccount, TokenShare};

/// How long an answer waits for its settlement before it is sent anyway.
// A ledger that has not answered by then is in trouble, and the answer was made: the customer gets it, and the bill stays with the
// ledger, which ends the hold when it can.
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);
/// How often it checks whether the resolver has settled.
const SETTLE_LOOK: Duration = Duration::from_millis(50);
/// The output that a request is expected to need of its provider's tokens in a minute.
// Accounts have limits of tokens a minute. With its whole limit reserved, a request would keep others waiting for tokens that most
// answers do not use; the true count takes the place of this at the end.
const USUAL_OUTPUT: u64 = 2_048;
/// The longest a request may run.
// What is held and the place that is taken must come back at last, whatever a provider does.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Most removed members of an answer that are counted.
const MOST_STRANGE: usize = 32;

/// The bill's fact that lists what was removed from the request before it was sent.
pub const REMOVED: &str = "removed";
/// The bill's fact that lists what a translation dropped or changed in the request and, prefixed with `answer.`, in the answer.
pub const LOST: &str = "lost";

/// The bill's fact that says to what the output limit was lowered for want of money.
pub const LIMIT: &str = "limit";
/// The bill's fact that says for how many milliseconds the request waited for money.
pub const WAITED: &str = "waited_ms";
/// The bill's fact with what an answer said of its cost, if that is no amount. For operators.
pub(super) const UNREAD_COST: &str = "unread_cost";

/// Where the answer is sent; closed when the customer has left.
pub(super) type ReplyTo = oneshot::Sender<Result<Reply, Failure>>;

/// What is reserved of what a request's customer may leave unpaid.
pub(super) struct AtRisk {
    /// What its hold leaves uncovered, until its prompt is counted.
    pub(super) gap: Option<Reserved>,
    /// A stream's likely prompt, until its first frame.
    pub(super) prompt: Option<Reserved>,
}

/// What a request was granted.
pub(super) struct GrantedRequest {
    pub(super) reckoned: Reckoned,
    pub(super) hold: Hold,
    /// As the watch over keys sees it.
    pub(super) running: Arc<Running>,
    /// When its key expires.
    pub(super) expires: Option<Timestamp>,
    pub(super) at_risk: AtRisk,
}

/// One admitted request.
pub(super) struct Admitted {
    pub(super) proxy: Arc<Proxy>,
    pub(super) request: Request,
    pub(super) model: Arc<Model>,
    /// What it is charged for, so far.
    pub(super) count: RunningCount,
    pub(super) hold: Hold,
    pub(super) outcome: AnswerOutcome,
    /// What is held for the target that answers, or for the first one.
    pub(super) reckoned: Reckoned,
    /// As the watch over keys sees it.
    pub(super) running: Arc<Running>,
    /// When its key expires.
    expires: Option<Timestamp>,
    /// What it may leave unpaid.
    pub(super) at_risk: AtRisk,
    /// Nothing but text was sent, so that what it can count at most is certain.
    pub(super) only_text: bool,
    /// Output that a family with a smallest limit may produce.
    least_output: u64,
    /// The most output that is charged, if a target may produce more than was declared because its family has a smallest limit.
    sold: Option<u64>,
    /// What it will probably use, for its provider's `max_tokens_per_minute`.
    pub(super) expected_tokens: u64,
    /// Its part of those.
    pub(super) tokens: Option<TokenShare>,
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
    /// When the first frame of a stream came.
    pub(super) first_frame: Option<Instant>,
    /// From arrival to dispatch.
    pub(super) prepared: Duration,
    /// From a stream's first frame to its end, without the time in which nobody read it.
    pub(super) answered: Duration,
    pub(super) attempts: Vec<Attempt>,
    /// What the customer was told instead of an answer.
    pub(super) told: Option<Box<Told>>,
    /// Restores the customer's own end user in an answer of its own family.
    pub(super) echo: Option<Box<EndUserEcho>>,
    /// What was removed from the request for the answering target.
    pub(super) removed: String,
    /// What the translation for that target lost; once the answer has ended, also what was lost on the way back.
    pub(super) lost: Losses,
}

impl AnswerOutcome {
    /// Bytes of an answer with the customer's own end user in them.
    pub(super) fn restored(&self, bytes: Bytes) -> Bytes {
        EndUserEcho::restored(self.echo.as_deref(), bytes)
    }

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
        grant: GrantedRequest,
    ) -> Box<Self> {
        let GrantedRequest {
            reckoned,
            hold,
            running,
            expires,
            at_risk,
        } = grant;
        let terms = reckoned.terms;
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
        let only_text = seen.content.pictures.is_empty() && seen.content.documents.is_empty();
        let meter = meter(&model, &seen, &terms, sent);
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
            reckoned,
            running,
            expires,
            at_risk,
            only_text,
            least_output: sent,
            sold: raised.map(|_| terms.output_bound),
            expected_tokens: (terms.likely_input).saturating_add(
                terms
                    .output_bound
                    .min(USUAL_OUTPUT.saturating_mul(choices.into())),
            ),
            tokens: None,
            bodies,
            places,
            translation: None,
            generation,
        })
    }

    /// Notes that the request is about to go to its upstream.
    pub(super) fn begin(&mut self) {
        self.outcome.prepared = self.request.arrived.elapsed();
    }

    /// Notes the target that answered, or worked on an answer, and what is held for it.
    pub(super) fn answered_by(&mut self, target: &Target, sent: &SentTerms) {
        self.outcome.cost.clone_from(&target.cost);
        (self.reckoned.ask, self.reckoned.terms) = sent.of(&target.name());
        let bound = self.reckoned.terms.output_bound;
        self.count.meter.allow(bound.max(self.least_output));
        self.count.answers(target);
    }

    /// Notes the account with which the target answers.
    pub(super) fn served_by(&mut self, target: &Target, account: ServingAccount) {
        let several = target.provider.keys.accounts() > 1;
        self.count.account = several.then(|| account.number + 1);
        self.outcome.account = Some(account);
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

    /// Notes that the first byte of the answer is about to be sent.
    pub(super) fn first_byte(&mut self) {
        let arrived = self.request.arrived;
        self.outcome
            .first_byte
            .get_or_insert_with(|| arrived.elapsed());
    }

    /// What the request is charged for, now that it ends.
    async fn counted(&mut self, end: &End) -> Counted {
        if end.reason == EndReason::Length {
            self.count.meter.ask_silence();
        }
        if self.has_billable_failures() {
            self.hash_unanswered(self.since_dispatch());
        }
        let limit = (self.reckoned.terms.limit).saturating_mul(self.reckoned.ask.choices.into());
        let ended = AnswerEnd {
            ending: end.ending,
            billable: self.has_billable_failures(),
            took: self.since_dispatch(),
            answered: self.outcome.answered,
            ended_at: (end.reason == EndReason::Length).then_some(limit),
        };
        let counted = self.count.counted(&ended).await;
        self.sold(counted)
    }

    /// Ends the hold. This is the only place where a request's money is settled, and where what we have closed becomes free.
    pub(super) async fn settle(mut self: Box<Self>, end: &End) -> Settled {
        // First of all: from here on nobody may close the connection any more, and one that was closed before is not paid for.
        let closed = !self.request.connection.pay();
        let closed = closed.then(|| end.closed_by_us(self.outcome.first_byte.is_some()));
        let end = closed.as_ref().unwrap_or(end);
        // Boxed, because few answers need it and it would enlarge the task of every open stream.
        let counted = Box::pin(self.counted(end)).await;
        let (usage, ours) = (counted.usage, counted.evidence != Some(Evidence::Provider));
        let class = counted.lines.iter().find_map(|line| line.class.clone());
        let asks = !self.count.seen.classes.is_standard();
        let class = class.or_else(|| asks.then_some(Cow::Borrowed(Classes::STANDARD.name())));
        self.note_use(&counted);
        let miscount = self.count.meter.miscount(end.ending, &counted);
        let oddities = self.oddities(&counted);
        let bill = self.last_bill(counted, end);
        let cost = farebox_ledger::bill::cost(&bill.lines).unwrap_or(Amount::ZERO);
        let failures = self.failures(&bill, end, miscount);
        let mut record = self.record(&bill, end);
        record.miscount = miscount;
        record.oddities = oddities;
        (record.oddities).extend(self.doubted_cost(&bill));
        let (spine, limits) = (
            Arc::clone(&self.proxy),
            Arc::clone(&self.request.pass.rate_limits),
        );
        let model = Arc::clone(&self.model);
        let (owed, reserved) = (bill.exposure, self.at_risk.prompt.take());
        let payer = self.request.payer();
        let (prepared, settling) = (self.outcome.prepared, Instant::now());
        let waited = self.running.waited();
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
        record.loss = finished.map_or(Amount::ZERO, |finished| finished.loss);
        record.own_us = Some(micros(prepared.saturating_sub(waited) + settling.elapsed()));
        let owed = owed.checked_add(record.loss).unwrap_or(owed);
        let paid = (record.charge, owed);
        spine.observer.ended(Arc::new(record));
        // After the settlement, in this order: whoever is called to try again finds the money back and knows what is owed.
        spine.note_exposure(&limits, (payer, &model), failures, paid, reserved);
        spine.call_waiting(payer.customer);
        Settled {
            cost,
            finished,
            usage,
            class,
            ours,
        }
    }
}

/// The meter of a request. `sent`: output that a family with a smallest limit may produce.
fn meter(model: &Arc<Model>, seen: &Inspection, terms: &Terms, sent: u64) -> Meter {
    let start = Start {
        estimated_input: terms.likely_input,
        most_input: terms.most_input,
        images: seen.content.pictures.len() as u64,
        output_limit: terms.output_bound.max(sent),
        choices: seen.choices.into(),
        predicted: terms.predicted,
        lifetimes: prompt::lifetimes(seen),
        classes: seen.classes,
    };
    let mut meter = Meter::new(Arc::clone(model), start);
    // A call shows no text, and is counted all the same.
    if seen.has_stops || seen.content.inputs > 0 {
        meter.ask_silence();
    }
    meter
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
            remaining: key.remaining(&bill.slug, clock::now()),
        });
    }
    None
}

fn tokens(usage: Usage) -> u64 {
    usage.prompt().saturating_add(usage.all_output())
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
            ways: vec![farebox_ledger::HoldWay::exactly(Amount::from_picos(9))],
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
