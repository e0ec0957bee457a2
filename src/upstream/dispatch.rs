//! One request on its way through the places of its route: who is asked, and what follows a failure.
//!
//! No place is asked twice. What one account may not do is asked of the provider's next one, everything else of the next target. An
//! account that is full is passed over, at once, or after a moment where the prompt is probably cached. Only when no other place
//! answers does the request wait for room, the customer with the fewest first.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::additions::TargetAdditions;
use super::attempt::{self, Begun};
use super::classify::{AttemptFailure, FailureClass, TargetFault};
use super::client::Pool;
use super::health::{Health, Try};
use super::order::{AccountPlace, AskOrder};
use super::otherwise::Otherwise;
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

/// How long a request waits for room at the account that probably has its prompt cached: answers end all the time, and the prompt
/// costs ten times as much elsewhere.
const MOMENT: Duration = Duration::from_secs(2);
/// How long a request waits for room anywhere: longer than most answers take. Who waits still longer gets an error, because many
/// clients would have given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// What became of a request at one place.
enum TargetOutcome {
    Answered(Box<UpstreamAnswer>),
    /// No other target may be asked.
    Over(Box<DispatchError>),
    /// The same, unless the request can be repeated otherwise.
    Rejected(Box<DispatchError>, Otherwise),
    /// The account is full.
    Full,
    /// The provider's next account may be asked.
    NextAccount,
    /// The next target may be asked.
    NextTarget,
}

/// One place that may be asked, with what it is sent.
struct Candidate<'a> {
    target: &'a Target,
    place: AccountPlace,
    call: UpstreamCall<'a>,
    prepared: Prepared,
    /// How long it waits for room there.
    waits: Option<Duration>,
    /// It is asked on the path that it has named itself.
    moved: bool,
    /// It is asked without a hint that it has refused.
    refitted: Option<Box<Target>>,
}

impl Candidate<'_> {
    /// The target as it is asked.
    fn fitted(&self) -> &Target {
        self.refitted.as_deref().unwrap_or(self.target)
    }
}

impl Upstreams {
    /// Sends a request to the first of its places that answers.
    ///
    /// # Errors
    /// See [`DispatchError`].
    pub async fn dispatch(
        &self,
        call: UpstreamCall<'_>,
        places: &AskOrder,
        prepare: &mut dyn Prepare,
    ) -> Result<UpstreamAnswer, DispatchError> {
        let mut failures = Failures {
            route: call.route,
            progress: call.progress,
            attempts: Vec::new(),
            retry_after: None,
            asking: None,
        };
        let asking = self.ask_all(call, places, prepare, &mut failures);
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

    /// Asks the places in order, however long that takes.
    async fn ask_all<'a>(
        &self,
        call: UpstreamCall<'a>,
        places: &AskOrder,
        prepare: &mut dyn Prepare,
        failures: &mut Failures<'a>,
    ) -> Result<UpstreamAnswer, DispatchError> {
        // Targets whose other accounts would fail as well, and places that are full.
        let (mut over, mut full): (Vec<usize>, Vec<Candidate<'a>>) = (Vec::new(), Vec::new());
        for (at, place) in places.all.iter().enumerate() {
            let target = call.route.targets.get(place.target);
            let Some(target) = target.filter(|_| !over.contains(&place.target)) else {
                continue;
            };
            let prepared = prepare.prepare(target, place.family, &failures.attempts);
            let Some(prepared) = prepared.await else {
                continue;
            };
            let mut candidate = Candidate {
                target,
                place: *place,
                call: UpstreamCall {
                    family: place.family,
                    stream: call.stream || prepared.streams,
                    ..call
                },
                prepared,
                waits: (at == 0 && places.warm).then_some(MOMENT),
                moved: false,
                refitted: None,
            };
            match self
                .ask(&mut candidate, (places, &mut *prepare), None, failures)
                .await
            {
                TargetOutcome::Answered(answer) => return Ok(*answer),
                TargetOutcome::Over(error) | TargetOutcome::Rejected(error, ..) => {
                    return Err(*error);
                }
                TargetOutcome::Full => full.push(candidate),
                TargetOutcome::NextAccount => {}
                TargetOutcome::NextTarget => over.push(place.target),
            }
        }
        // Counting tokens has an estimate instead.
        if call.operation == TargetOperation::Generate
            && let Some((mut candidate, permit)) = self.first_free(full).await
        {
            candidate.waits = Some(PATIENCE);
            match self
                .ask(&mut candidate, (places, prepare), Some(permit), failures)
                .await
            {
                TargetOutcome::Answered(answer) => return Ok(*answer),
                TargetOutcome::Over(error) | TargetOutcome::Rejected(error, ..) => {
                    return Err(*error);
                }
                TargetOutcome::Full | TargetOutcome::NextAccount | TargetOutcome::NextTarget => {}
            }
        }
        Err(DispatchError::NoTarget {
            attempts: std::mem::take(&mut failures.attempts),
            retry_after: failures.retry_after,
        })
    }

    /// Waits for room at the first target that is full, with any of its accounts.
    async fn first_free<'a>(
        &self,
        mut full: Vec<Candidate<'a>>,
    ) -> Option<(Candidate<'a>, AskPermit)> {
        let first = full.first()?.place.target;
        full.retain(|candidate| candidate.place.target == first);
        let mut waits: Vec<(usize, Waiting<'a>)> = Vec::new();
        for (at, candidate) in full.iter().enumerate() {
            let (call, account) = (candidate.call, candidate.place.account);
            if let Ok((pool, health)) = self.find(call.route, candidate.target) {
                let wait = async move { route::wait(&pool, &health, &call, account).await };
                waits.push((at, Box::pin(wait)));
            }
        }
        let free = poll_fn(|context| {
            let mut granted = None;
            waits.retain_mut(|(at, wait)| {
                let Poll::Ready(entered) = wait.as_mut().poll(context) else {
                    return true;
                };
                // It may have been paused meanwhile. Of two that are free at once, the other one's room is handed on.
                granted = granted.take().or(entered.ok().map(|permit| (*at, permit)));
                false
            });
            match granted {
                None if !waits.is_empty() => Poll::Pending,
                granted => Poll::Ready(granted),
            }
        });
        let (at, permit) = timeout(PATIENCE, free).await.ok()??;
        drop(waits);
        Some((full.swap_remove(at), permit))
    }

    /// Tries one place, and once more for each way in which it can be asked otherwise. `permit`: to ask it now.
    async fn ask<'a>(
        &self,
        candidate: &mut Candidate<'a>,
        (places, prepare): (&AskOrder, &mut dyn Prepare),
        mut permit: Option<AskPermit>,
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        loop {
            let asked = self
                .tries(candidate, (places, permit.take()), failures)
                .await;
            let TargetOutcome::Rejected(error, otherwise) = asked else {
                return asked;
            };
            let reason = otherwise.reason();
            match otherwise {
                Otherwise::OnPath(family) => {
                    candidate.moved = true;
                    candidate.call.family = family;
                }
                Otherwise::Without(path) => {
                    candidate.refitted = Some(Box::new(candidate.fitted().without(path)));
                }
                // What is prepared knows of these.
                Otherwise::Unpinned | Otherwise::Unsealed => {}
            }
            let family = candidate.call.family;
            let fitted = prepare.prepare(candidate.fitted(), family, &failures.attempts);
            let Some(fitted) = fitted.await else {
                return TargetOutcome::Over(error);
            };
            candidate.call.stream |= fitted.streams;
            candidate.prepared = fitted;
            failures.add(candidate, FailureClass::Client, reason, None);
        }
    }

    /// Tries one place, with its retries.
    async fn tries<'a>(
        &self,
        candidate: &Candidate<'a>,
        (places, mut permit): (&AskOrder, Option<AskPermit>),
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        let Candidate { target, call, .. } = candidate;
        let (pool, health) = match self.find(call.route, target) {
            Ok(found) => found,
            Err(error) => {
                failures.add(candidate, FailureClass::Operator, &error, None);
                return TargetOutcome::NextTarget;
            }
        };
        pool.with_budget(|budget| budget.request(Instant::now()));
        let mut tries = 0;
        while !call.is_abandoned() {
            let entered = match permit.take() {
                Some(permit) => Ok(permit),
                None => enter(&pool, &health, candidate).await,
            };
            let entry = match entered {
                Ok(entry) => entry,
                Err(skip) => {
                    let (class, wait) = (skip.class(), Some(skip.retry_after()));
                    failures.add(candidate, class, &skip.reason(), wait);
                    return match skip {
                        Skip::Full => TargetOutcome::Full,
                        Skip::Resting(_) => TargetOutcome::NextAccount,
                    };
                }
            };
            // While it waited for its place the customer may have left.
            if call.is_abandoned() {
                break;
            }
            tries += 1;
            match self
                .once(candidate, (places, &pool), entry, tries, failures)
                .await
            {
                Some(outcome) => return outcome,
                None => tokio::time::sleep(REPEAT_PAUSE).await,
            }
        }
        TargetOutcome::NextTarget
    }

    /// One try; `None` if the same target should be asked again.
    async fn once<'a>(
        &self,
        candidate: &Candidate<'a>,
        (places, pool): (&AskOrder, &Pool),
        mut entry: AskPermit,
        tries: u32,
        failures: &mut Failures<'a>,
    ) -> Option<TargetOutcome> {
        let Candidate {
            target,
            call,
            prepared,
            ..
        } = candidate;
        let began = Instant::now();
        failures.asks(target, began);
        let room = self.answers.share(call.holder, usize::MAX);
        let asked = (call, candidate.place.account);
        let fault =
            match attempt::attempt(pool, &self.simulated, asked, target, prepared, room).await {
                Ok(begun) => {
                    return Some(self.answered(begun, candidate, (places, pool), entry, failures));
                }
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
        let told = fault.retry_after();
        let reason = failures.add(candidate, fault.class(), &fault.reason(), told);
        if fault.may_be_billed() {
            failures.worked(began.elapsed());
            if let AskPermit::Answer(running, _) = &entry {
                running.silent();
            }
        }
        if let (AskPermit::Answer(running, tokens), Some(said)) = (&mut entry, fault.fault()) {
            blame(running, &fault, &reason, said);
            if !fault.may_be_billed() {
                // What is refused has used none of the provider's tokens, so they are free before the minute is over.
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
            (_, Move::NextAccount) => Some(TargetOutcome::NextAccount),
            // `Stop` follows a customer's fault and an answer that was given up, and both have been told above.
            (_, Move::NextTarget | Move::Stop) => Some(TargetOutcome::NextTarget),
        }
    }

    /// The answer of a target that has begun one.
    fn answered<'a>(
        &self,
        begun: Begun,
        candidate: &Candidate<'a>,
        (places, pool): (&AskOrder, &Pool),
        entry: AskPermit,
        failures: &mut Failures<'a>,
    ) -> TargetOutcome {
        let (target, call) = (candidate.fitted(), &candidate.call);
        let account = self.serves((call, target), (places, candidate.place), pool);
        let (running, tokens) = match entry {
            AskPermit::Answer(running, tokens) => (Some(running), tokens),
            AskPermit::Side(..) => (None, None),
        };
        call.progress.inspect(|progress| progress.answers());
        // A whole answer has been read with them already.
        let is_stream = matches!(begun, Begun::Stream(..));
        TargetOutcome::Answered(Box::new(UpstreamAnswer {
            target: target.clone(),
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

/// Someone who waits for permission.
type Waiting<'a> = Pin<Box<dyn Future<Output = Result<AskPermit, Skip>> + Send + 'a>>;

/// Permission to ask a place, after a wait for room there if that is worth one.
async fn enter(
    pool: &Pool,
    health: &Arc<Health>,
    candidate: &Candidate<'_>,
) -> Result<AskPermit, Skip> {
    let (call, account) = (&candidate.call, candidate.place.account);
    match (route::enter(pool, health, call, account), candidate.waits) {
        (Err(Skip::Full), Some(patience)) if call.operation == TargetOperation::Generate => {
            timeout(patience, route::wait(pool, health, call, account))
                .await
                .unwrap_or(Err(Skip::Full))
        }
        (entered, _) => entered,
    }
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
        moved,
        ..
    } = candidate;
    let AttemptFailure::Client {
        status,
        error,
        usage,
    } = fault
    else {
        return Err(fault);
    };
    // Once: two paths that name each other would never end.
    let named = call.moves(&error, target).filter(|_| !moved);
    // That one path does not know the model is the operator's business, if no other is left.
    if named.is_none() && status == 404 {
        let refused = AttemptFailure::Client {
            status,
            error,
            usage,
        };
        return Err(AttemptFailure::NotServed(refused.reason()));
    }
    let otherwise = if let Some(family) = named {
        Some(Otherwise::OnPath(family))
    } else if call.unpins(&error, target, &prepared.pinned) {
        Some(Otherwise::Unpinned)
    } else if call.unseals(&error) {
        Some(Otherwise::Unsealed)
    } else {
        call.drops(&error, &prepared.body).map(Otherwise::Without)
    };
    let error = Box::new(DispatchError::ClientFault {
        // Told only where the path that was named cannot be asked. A 404 would say that our own path is unknown.
        status: if status == 404 { 400 } else { status },
        error: as_told(error, call.route, call.foreign_to()),
        usage,
        target: (*target).clone(),
        attempts: failures.attempts.clone(),
    });
    Ok(match otherwise {
        Some(otherwise) => TargetOutcome::Rejected(error, otherwise),
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
        Candidate { target, place, .. }: &Candidate<'_>,
        class: FailureClass,
        reason: &str,
        retry_after: Option<Duration>,
    ) -> Redacted {
        let reason = redact::for_operator(reason, self.route);
        let said = match target.provider.keys.accounts() {
            1 => reason.clone(),
            _ => reason.labelled(format_args!("key {}", place.account + 1)),
        };
        let attempt = Attempt {
            target: target.name(),
            class,
            reason: said,
            worked: None,
        };
        self.progress.inspect(|progress| progress.failed(&attempt));
        self.attempts.push(attempt);
        self.retry_after = [self.retry_after, retry_after].into_iter().flatten().min();
        reason
    }
}
