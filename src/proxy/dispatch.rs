//! Sends an admitted request to a target of its route, and hands the answer to a relay.
//!
//! If the customer leaves before a stream has begun, the provider still reads and bills the prompt. So the stream runs to its first
//! frame, keeping its place in the key's concurrency, and is then stopped and charged. If no target answers, the hold is released
//! before the customer gets the error. A whole answer that is given up is charged as if the customer had left.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::EndReason;
use farebox_protocol::translate::fates::Fate;
use farebox_protocol::translate::{self, Losses};
use farebox_protocol::{Edits, Family, Inspection};

use super::admitted::{Admitted, ReplyTo};
use super::credit::Verdict;
use super::end::End;
use super::translation::Forms;
use super::waiting::{self, Asked, Sent, Watch};
use super::{Failure, Request, Told, capabilities, classes, holder, stream, whole};
use crate::clock;
use crate::config::{OnDisconnect, Target};
use crate::upstream::{Answer, AnswerContent, Call, DispatchError, GivenUp, Operation, Prepared};

/// Sends the request and relays its answer until it is settled.
pub(super) async fn dispatch(mut admitted: Box<Admitted>, mut reply: ReplyTo) {
    let under_way = admitted.begin();
    let (proxy, model) = (admitted.proxy.clone(), admitted.model.clone());
    let (family, stream) = (admitted.request.family, admitted.seen.stream);
    // A whole answer, and a stream under the policy `drain`, is read to its usage even if the customer has left.
    let cancels = stream && model.route.on_disconnect == OnDisconnect::Cancel;
    let watches = stream && !admitted.whole;
    let [left, rejected] = [const { AtomicBool::new(false) }; 2];
    let (unsealed, unpinned) = (OnceLock::new(), OnceLock::new());
    let payer = holder(admitted.request.key);
    let call = Call {
        stream,
        last: super::last_family(&admitted.seen),
        tokens: admitted.expected_tokens,
        until: Some(admitted.deadline()),
        abandoned: Some(&left),
        unsealed: Some(&rejected),
        unpinned: Some(&unpinned),
        progress: Some(&under_way.progress),
        ..Call::new(&model.route, payer, family, Operation::Generate)
    };
    let (mut watch, asked) = (Watch::new(&admitted), Asked::default());
    let (sent, hold, meter) = Sent::split(&mut admitted, &proxy, &model);
    let prepare = |target: &Target, family: Family| {
        carries(sent, target, family).then_some(())?;
        asked.note(&model, target, family);
        let pin = pins(sent, target, unpinned.get().is_some());
        if family == call.caller && rejected.load(Ordering::Relaxed) {
            return without_seals(sent, &unsealed, (target, pin));
        }
        prepare(sent, target, family, pin)
    };
    // Everything but a stream's relay is boxed: a task keeps room for its largest part for as long as it runs.
    let mut dispatching = Box::pin(proxy.upstreams.dispatch(call, &prepare));
    let dispatched = loop {
        tokio::select! {
            biased;
            dispatched = &mut dispatching => break Ok(dispatched),
            () = reply.closed(), if cancels && !left.load(Ordering::Relaxed) => left.store(true, Ordering::Relaxed),
            () = watch.due(), if watches => {
                if let Verdict::Spent(reason) = Box::pin(watch.check(&asked, sent, (hold, meter))).await {
                    break Err(reason);
                }
            }
        }
    };
    // The upstream is stopped first, so that it produces nothing that nobody pays for.
    drop(dispatching);
    let dispatched = match dispatched {
        Ok(dispatched) => dispatched,
        Err(reason) => return Box::pin(waiting::spent(admitted, &asked, reason, reply)).await,
    };
    admitted.note_refused_pin(unpinned.into_inner());
    let answer = match dispatched {
        Ok(answer) => answer,
        Err(error) => return Box::pin(fail(admitted, error, reply, left.into_inner())).await,
    };
    let unsealed = unsealed.get().and_then(Option::as_ref);
    match (answer.family, begun(&mut admitted, answer, unsealed)) {
        (family, AnswerContent::Whole(body, facts, room)) => {
            admitted.outcome.removed_members(&facts.marks, &body);
            Box::pin(whole::relay(admitted, family, (body, room), &facts, reply)).await;
        }
        (family, AnswerContent::Stream(first, frames)) => {
            stream::relay(admitted, family, first, frames, reply).await
        }
    }
}

/// Notes which target answered, and returns its answer.
fn begun(admitted: &mut Admitted, answer: Answer, unsealed: Option<&Unsealed>) -> AnswerContent {
    // The upstream has the request, so its memory is freed here: an answer may run for an hour.
    let body = std::mem::take(&mut admitted.request.body);
    admitted.request.headers = Vec::new();
    admitted.request.room = None;
    admitted.answered_by(&answer.target);
    admitted.outcome.secrets = answer.secrets;
    admitted.tokens = answer.tokens;
    if answer.target.provider.keys.len() > 1 {
        admitted.outcome.account = (answer.account + 1).to_string();
    }
    (admitted.outcome.pass_answer).clone_from(&answer.target.provider.pass_answer);
    admitted.outcome.attempts.extend(answer.attempts);
    if answer.family == admitted.request.family {
        admitted.forms = Forms::default();
        admitted.outcome.removed = admitted
            .seen
            .removed(&answer.target.provider.pass, &answer.target.leave_out());
        let (body, seen) = unsealed.map_or((&body, &admitted.seen), |cut| (&cut.body, &cut.seen));
        let protocol = answer.family.protocol();
        let lost = protocol.losses(body, seen, &answer.target.history());
        admitted.outcome.lost.merge(&lost);
        if let Some(unsealed) = unsealed {
            admitted.outcome.lost.merge(&unsealed.losses);
        }
    } else if let Some((translation, lost, sent)) = admitted.forms.take(
        &admitted.request,
        &answer.target,
        answer.family,
        &admitted.model,
    ) {
        // The provider bills what it was sent, including what it was told about reasoning.
        admitted.seen.hidden_reasoning = sent.hidden_reasoning;
        admitted.seen.reasoning_off = sent.reasoning_off;
        admitted.seen.cache_marked = sent.cache_marked;
        admitted.seen.content = sent.content;
        admitted.outcome.lost = lost;
        admitted.outcome.removed = removed(admitted, answer.family);
        admitted.translation = Some(Box::new(translation));
    }
    admitted.read_prompt(answer.family, body);
    admitted
        .meter
        .mark_cache(admitted.seen.cache_marked && !answer.family.protocol().counts_cache_first());
    answer.content
}

/// What a translation for this family leaves out of the request because it does not know it.
fn removed(admitted: &Admitted, family: Family) -> String {
    let known: Vec<String> = translate::fields(admitted.request.family)
        .iter()
        .filter(|row| row.fate(family) != Fate::Dropped)
        .map(|row| row.name.to_owned())
        .collect();
    admitted.seen.removed(&known, &[])
}

/// A whole answer took too long or is too large. Its provider bills what it has produced by then. Nobody has seen any of it, so all
/// of it counts as hidden output.
async fn given_up(
    mut admitted: Box<Admitted>,
    why: GivenUp,
    target: &Target,
    worked: Duration,
    reply: ReplyTo,
) {
    admitted.answered_by(target);
    admitted.meter.hide(worked);
    let failure = Failure::GivenUp(why);
    admitted.outcome.told = Some(Told::of(&failure));
    let end = End {
        status: failure.status(admitted.request.family),
        ..End::cut(EndReason::MaxDuration)
    };
    admitted.settle(&end).await;
    // The send fails if the customer has left, which does not matter.
    let _ = reply.send(Err(failure));
}

/// No target answered; `left` says that the customer was gone by then.
async fn fail(mut admitted: Box<Admitted>, error: DispatchError, reply: ReplyTo, left: bool) {
    let (failure, reason) = match error {
        DispatchError::ClientFault {
            status,
            error,
            usage,
            target,
            attempts,
        } => {
            admitted.answered_by(&target);
            admitted.outcome.attempts.extend(attempts);
            admitted.meter.report(&usage, true);
            (Failure::Upstream(status, error), EndReason::UpstreamRefused)
        }
        DispatchError::GivenUp {
            why,
            target,
            worked,
            attempts,
        } => {
            admitted.outcome.attempts.extend(attempts);
            return given_up(admitted, why, &target, worked, reply).await;
        }
        DispatchError::TooLate { attempts } => {
            admitted.outcome.attempts.extend(attempts);
            (Failure::NoTarget(None), EndReason::MaxDuration)
        }
        DispatchError::NoTarget {
            attempts,
            retry_after,
        } => {
            admitted.outcome.attempts.extend(attempts);
            (
                Failure::NoTarget(retry_after),
                EndReason::UpstreamUnavailable,
            )
        }
    };
    let status = failure.status(admitted.request.family);
    admitted.outcome.told = Some(Told::of(&failure));
    // A refusal with a count is charged, as it is inside a stream.
    let end = match left {
        _ if admitted.meter.made_anything() => End {
            status,
            ..End::REFUSED
        },
        true => End::NEVER_BEGUN,
        false => End::nothing(reason, status),
    };
    admitted.settle(&end).await;
    // The send fails if the customer has left, which does not matter.
    let _ = reply.send(Err(failure));
}

/// Whether a target can be sent the request, in this family.
fn carries(sent: Sent<'_>, target: &Target, family: Family) -> bool {
    capabilities::carries(target, &sent.seen.content)
        && (family != sent.request.family || classes::takes(target, family, sent.seen.classes))
}

/// The request as this target wants it; `None` when the target cannot carry it.
fn prepare(
    sent: Sent<'_>,
    target: &Target,
    family: Family,
    pin: &[&'static str],
) -> Option<Prepared> {
    if family != sent.request.family {
        return sent.forms.prepare(target, family, sent.model, pin);
    }
    Some(direct(sent, &sent.request.body, sent.seen, (target, pin)))
}

/// The same without sealed thinking, after a target has rejected a seal.
fn without_seals(
    sent: Sent<'_>,
    unsealed: &OnceLock<Option<Unsealed>>,
    target: (&Target, &[&'static str]),
) -> Option<Prepared> {
    let unsealed = unsealed.get_or_init(|| Unsealed::of(sent.request));
    let Unsealed { body, seen, .. } = unsealed.as_ref()?;
    Some(direct(sent, body, seen, target))
}

/// The fields that are pinned for a target, unless one of its pins was refused in this request, or too often before.
fn pins<'t>(sent: Sent<'_>, target: &'t Target, refused: bool) -> &'t [&'static str] {
    let (pin, pins) = (target.pin(), &sent.proxy.pins);
    if pin.is_empty() || refused || pins.rest(|| target.name(), sent.generation) {
        return &[];
    }
    pin
}

/// A body of the customer's family, with this target's model and limit.
fn direct(
    sent: Sent<'_>,
    body: &Bytes,
    seen: &Inspection,
    (target, pin): (&Target, &[&'static str]),
) -> Prepared {
    let protocol = sent.request.family.protocol();
    let declared = seen.places.limit.as_ref().map(|(name, _)| *name);
    let edits = Edits {
        model: &target.model,
        limit_field: protocol.limit_field(target.chat_limit(), declared),
        limit: sent.limit,
        pass: &target.provider.pass,
        leave_out: &target.leave_out(),
        history: target.history(),
        pin,
    };
    let mut headers = sent.request.headers.clone();
    classes::add_headers(&mut headers, sent.request.family, seen.classes);
    Prepared {
        body: protocol.pieces(body, seen, &edits),
        headers,
        streams: false,
        pinned: seen.pinned(pin),
    }
}

/// A request without its sealed thinking, for targets that come after one that rejected a seal.
struct Unsealed {
    body: Bytes,
    seen: Inspection,
    losses: Losses,
}

impl Unsealed {
    /// `None` if there is none to leave out: a repeat would be rejected like the first try.
    fn of(request: &Request) -> Option<Self> {
        let cut = translate::cut_thinking(request.family, &request.body)?;
        let losses = cut.losses();
        let body = Bytes::from(cut.body);
        let seen = request
            .family
            .protocol()
            .inspect(&body, clock::seed())
            .ok()?;
        Some(Self { body, seen, losses })
    }
}
