//! One request on its way through the targets of its route: who is asked, in which order, and what follows a failure.
//!
//! A target whose provider is full is passed over. Only when no other one answers does the request wait for a place, the customer
//! with the fewest first. A target that works for us but not for this customer is asked last.

use std::sync::Arc;
use std::time::Duration;

use farebox_protocol::Family;
use tokio::time::{Instant, timeout, timeout_at};

use super::additions::TargetAdditions;
use super::attempt::{self, Begun};
use super::classify::{AttemptFailure, FailureClass, TargetFault};
use super::client::Pool;
use super::health::{Health, Try};
use super::redact::{self, Redacted};
use super::retry::{self, Move};
use super::route::{self, AskPermit, Skip};
use super::stream::FrameStream;
use super::{
    AnswerContent, Attempt, DispatchError, Prepare, Prepared, Progress, TargetOperation,
    UpstreamAnswer, UpstreamCall, Upstreams, as_told,
};
use crate::config::{Provider, Route, Target};

/// Pause between two tries at one target: a refused connection would be refused again immediately.
const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// What became of a request at one target.
enum TargetOutcome {
    Answered(Box<UpstreamAnswer>),
    /// No other target may be asked.
    Over(Box<DispatchError>),
    /// The same, unless the request can be repeated without what this target rejects: seals, or pinned fields.
    Rejected(Box<DispatchError>, &'static str),
    /// Its provider is full.
    Full,
    /// The next one may be asked.
    Next,
}

/// One target that may be asked, with what it is sent.
struct Candidate<'a> {
    target: &'a Target,
    call: UpstreamCall<'a>,
    prepared: Prepared,
}

impl Upstreams {
    /// Sends a request to the first target that answers.
    ///
    /// # Errors
    /// See [`DispatchError`].
    pub async fn dispatch(
        &self,
        call: UpstreamCall<'_>,
        prepare: Prepare<'_>,
    ) -> Result<UpstreamAnswer, DispatchError> {
        let mut failures = Failures {
            route: call.route,
            progress: call.progress,
            attempts: Vec::new(),
            retry_after: None,
            asking: None,
        };
        let asking = self.ask_all(call, prepare, &mut failures);
        let answer = match call.until {
            Some(until) => timeout_at(until, asking).await.ok(),
            None => Some(asking.await),
        };
        if let Some(answer) = answer {
            return answer;
        }
        failures.too_late();
        Err(DispatchError::TooLate {
            attempts: failures.attempts,
        })
    }

    /// Asks the targets in order, however long that takes.
    async fn ask_all<'a>(
        &self,
        call: UpstreamCall<'a>,
        prepare: Prepare<'_>,
        failures: &mut Failures<'a>,
    ) -> Result<UpstreamAnswer, DispatchError> {
        let (mut asked, mut full): (Vec<&Target>, Vec<Candidate<'a>>) = (Vec::new(), Vec::new());
        for (target, family) in self.in_order(&call) {
            // A target that speaks several families is asked in only one of them.
            if asked.iter().any(|asked| std::ptr::eq(*asked, target)) {
                continue;
            }
            let Some(prepared) = prepare(target, family) else {
                continue;
            };
            let call = UpstreamCall {
                family,
                stream: call.stream || prepared.streams,
                ..call
            };
            asked.push(target);
            let mut candidate = Candidate {
                target,
                call,
                prepared,
            };
            match self.ask(&mut candidate, prepare, false, failures).await {
                TargetOutcome::Answered(answer) => return Ok(*answer),
                TargetOutcome::Over(error) | TargetOutcome::Rejected(error, _) => {
                    return Err(*error);
                }
                TargetOutcome::Full => full.push(candidate),
                TargetOutcome::Next => {}
            }
        }
        // Counting tokens has an estimate instead.
        let waits = call.operation == TargetOperation::Generate;
        for candidate in full.iter_mut().filter(|_| waits).take(1) {
            match self.ask(candidate, prepare, true, failures).await {
                TargetOutcome::Answered(answer) => return Ok(*answer),
                TargetOutcome::Over(error) | TargetOutcome::Rejected(error, _) => {
                    return Err(*error);
                }
                TargetOutcome::Full | TargetOutcome::Next => {}
            }
        }
        Err(DispatchError::NoTarget {
            attempts: std::mem::take(&mut failures.attempts),
            retry_after: failures.retry_after,
        })
    }

    /// The route's targets for this customer.
    fn in_order<'a>(&self, call: &UpstreamCall<'a>) -> Vec<(&'a Target, Family)> {
        let mut candidates = call.route.candidates_with_last(call.caller, call.last);
        if candidates.len() > 1 {
            candidates.sort_by_cached_key(|(target, family)| {
                self.health(call.route, target)
                    .is_some_and(|health| health.doubts(*family, call.holder))
            });
        }
        candidates
    }

    /// Tries one target, and once more without any seal, and without any pin, if it rejects one. `waits`: for a place, if its provider is full.
    async fn ask<'a>(
        &self,
        candidate: &mut Candidate<'a>,
        prepare: Prepare<'_>,
        waits: bool,
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        loop {
            let asked = self.tries(candidate, waits, failures).await;
            let TargetOutcome::Rejected(error, what) = asked else {
                return asked;
            };
            let Some(without) = prepare(candidate.target, candidate.call.family) else {
                return TargetOutcome::Over(error);
            };
            candidate.prepared = without;
            failures.add(candidate.target, FailureClass::Client, what, None);
        }
    }

    /// Tries one target, with its retries.
    async fn tries<'a>(
        &self,
        candidate: &Candidate<'a>,
        waits: bool,
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        let Candidate { target, call, .. } = candidate;
        let (pool, health) = match self.find(call.route, target) {
            Ok(found) => found,
            Err(error) => {
                failures.add(target, FailureClass::Operator, &error, None);
                return TargetOutcome::Next;
            }
        };
        pool.with_budget(|budget| budget.request(Instant::now()));
        let mut tries = 0;
        while !call.is_abandoned() {
            let entry = match enter(&pool, &health, call, waits).await {
                Ok(entry) => entry,
                Err(skip) => {
                    let (class, wait) = (skip.class(), Some(skip.retry_after()));
                    // A full one was noted before the wait.
                    if !(waits && skip == Skip::Full) {
                        failures.add(target, class, &skip.reason(), wait);
                    }
                    return if skip == Skip::Full {
                        TargetOutcome::Full
                    } else {
                        TargetOutcome::Next
                    };
                }
            };
            if call.is_abandoned() {
                break;
            }
            tries += 1;
            match self.once(candidate, &pool, entry, tries, failures).await {
                Some(outcome) => return outcome,
                None => tokio::time::sleep(REPEAT_PAUSE).await,
            }
        }
        TargetOutcome::Next
    }

    /// One try; `None` if the same target should be asked again.
    async fn once<'a>(
        &self,
        candidate: &Candidate<'a>,
        pool: &Pool,
        mut entry: AskPermit,
        tries: u32,
        failures: &mut Failures<'a>,
    ) -> Option<TargetOutcome> {
        let Candidate {
            target,
            call,
            prepared,
        } = candidate;
        let began = Instant::now();
        failures.asks(target, began);
        let (room, account) = (self.answers.share(call.holder, usize::MAX), entry.account());
        let asked = (call, account);
        let fault =
            match attempt::attempt(pool, &self.simulated, asked, target, prepared, room).await {
                Ok(begun) => return Some(self.answered(begun, candidate, pool, entry, failures)),
                Err(fault) => fault,
            };
        failures.asking = None;
        let fault = match client_fault(fault, candidate, failures) {
            Ok(told) => return Some(told),
            Err(fault) => fault,
        };
        // The first one to meet an outage may have met only a restart; for everyone after it a repeat would fail as well.
        let extra = entry.repeats(call.route.retry);
        let next =
            pool.with_budget(|budget| retry::after(&fault, tries, extra, Instant::now(), budget));
        let reason = failures.add(target, fault.class(), &fault.reason(), fault.retry_after());
        if fault.may_be_billed() {
            failures.worked(began.elapsed());
        }
        if let (AskPermit::Answer(running, tokens), Some(said)) = (&mut entry, fault.fault()) {
            blame(running, &fault, &reason, said);
            if !fault.may_be_billed() {
                tokens.take().into_iter().for_each(|share| share.used(0));
            }
        }
        match (fault, next) {
            (AttemptFailure::GivenUp(why), _) => {
                Some(TargetOutcome::Over(Box::new(DispatchError::GivenUp {
                    why,
                    target: (*target).clone(),
                    worked: began.elapsed(),
                    attempts: std::mem::take(&mut failures.attempts),
                })))
            }
            (_, Move::SameTarget) => None,
            _ => Some(TargetOutcome::Next),
        }
    }

    /// The answer of a target that has begun one.
    fn answered<'a>(
        &self,
        begun: Begun,
        Candidate { target, call, .. }: &Candidate<'a>,
        pool: &Pool,
        entry: AskPermit,
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        let account = entry.account();
        let (running, tokens) = match entry {
            AskPermit::Answer(running, tokens) => (Some(running), tokens),
            AskPermit::Side(..) => (None, None),
        };
        call.progress.inspect(|progress| progress.answers());
        // A whole answer has been read with them already.
        let is_stream = matches!(begun, Begun::Stream(..));
        TargetOutcome::Answered(Box::new(UpstreamAnswer {
            target: (*target).clone(),
            family: call.family,
            account,
            attempts: std::mem::take(&mut failures.attempts),
            content: self.content(begun, call, &pool.provider, running),
            secrets: pool.secrets.clone(),
            additions: is_stream.then(|| TargetAdditions::of(call, target, pool)),
            tokens,
        }))
    }

    /// Wraps an answer that has begun, and reports it to the breaker. An answer on a side path (`count_tokens`) is always whole.
    fn content(
        &self,
        begun: Begun,
        call: &UpstreamCall<'_>,
        provider: &Provider,
        mut running: Option<Try>,
    ) -> AnswerContent {
        match begun {
            Begun::Whole(bytes, facts, room) => {
                if let Some(running) = running {
                    running.succeeded();
                }
                AnswerContent::Whole(bytes, facts, room)
            }
            Begun::Stream(first, unread) => {
                if let Some(running) = &mut running {
                    running.began();
                }
                let room = self.answers.share(call.holder, usize::MAX);
                AnswerContent::Stream(
                    first,
                    FrameStream::new(unread, provider.timeouts.idle, running, room),
                )
            }
        }
    }
}

/// How long a request waits for a place: longer than most answers take. Who waits still longer gets an error, because many clients
/// would have given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Permission to ask a target.
async fn enter(
    pool: &Pool,
    health: &Arc<Health>,
    call: &UpstreamCall<'_>,
    waits: bool,
) -> Result<AskPermit, Skip> {
    if !waits {
        return route::enter(pool, health, call);
    }
    timeout(PATIENCE, route::wait(pool, health, call))
        .await
        .unwrap_or(Err(Skip::Full))
}

/// Counts a failure against the target, and what it says about our account.
fn blame(running: &mut Try, failure: &AttemptFailure, reason: &Redacted, fault: TargetFault) {
    running.failed(failure.class(), reason, fault);
    running.judge(failure, reason);
}

/// The customer's own mistake goes back to the customer; no other target is asked.
fn client_fault(
    fault: AttemptFailure,
    candidate: &Candidate<'_>,
    failures: &mut Failures<'_>,
) -> Result<TargetOutcome, AttemptFailure> {
    let Candidate {
        target,
        call,
        prepared,
    } = candidate;
    let rejected = if call.unpins(&fault, target, &prepared.pinned) {
        Some("a pinned field was rejected")
    } else if call.unseals(Some(&fault)) {
        Some("a seal was rejected")
    } else {
        None
    };
    let AttemptFailure::Client {
        status,
        error,
        usage,
    } = fault
    else {
        return Err(fault);
    };
    let error = Box::new(DispatchError::ClientFault {
        status,
        error: as_told(error, call.route, call.foreign_to()),
        usage,
        target: (*target).clone(),
        attempts: failures.attempts.clone(),
    });
    Ok(match rejected {
        Some(what) => TargetOutcome::Rejected(error, what),
        None => TargetOutcome::Over(error),
    })
}

/// The failures so far.
struct Failures<'a> {
    route: &'a Route,
    progress: Option<&'a Progress>,
    attempts: Vec<Attempt>,
    retry_after: Option<Duration>,
    /// The target that has the request now, and since when.
    asking: Option<(&'a Target, Instant)>,
}

impl<'a> Failures<'a> {
    /// Notes which target has the request from now on.
    fn asks(&mut self, target: &'a Target, began: Instant) {
        self.asking = Some((target, began));
        self.progress.inspect(|progress| progress.asked(target));
    }

    /// Records that the request's time ran out while a target had it, which may bill what it did until then.
    fn too_late(&mut self) {
        let asking = self.asking.take();
        self.attempts.extend(asking.map(|(target, began)| Attempt {
            target: target.name(),
            class: FailureClass::Broken,
            reason: redact::for_operator("no answer within the request's time", self.route),
            worked: Some(began.elapsed()),
        }));
    }

    /// Notes how long the target of the last one may have worked on it.
    fn worked(&mut self, time: Duration) {
        if let Some(last) = self.attempts.last_mut() {
            last.worked = Some(time);
        }
    }

    /// Records a failure, and returns its reason as the operator may see it.
    fn add(
        &mut self,
        target: &Target,
        class: FailureClass,
        reason: &str,
        retry_after: Option<Duration>,
    ) -> Redacted {
        let reason = redact::for_operator(reason, self.route);
        let attempt = Attempt {
            target: target.name(),
            class,
            reason: reason.clone(),
            worked: None,
        };
        self.progress.inspect(|progress| progress.failed(&attempt));
        self.attempts.push(attempt);
        self.retry_after = [self.retry_after, retry_after].into_iter().flatten().min();
        reason
    }
}
