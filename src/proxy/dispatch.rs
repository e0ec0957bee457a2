//! Sends an admitted request to a target of its route, until an answer has begun.
//!
//! If the customer leaves before a stream has begun, the provider still reads and bills the prompt. So the stream runs to its first
//! frame, keeping its place in the key's concurrency, and is then stopped and charged. If no target answers, the hold is released
//! before the customer gets the error. A whole answer that is given up is charged as if the customer had left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farebox_ledger::EndReason;
use farebox_protocol::translate;
use farebox_protocol::translate::fates::FieldFate;
use farebox_protocol::{Family, Fitted, TargetFit};
use tokio::time::Instant;

use super::bodies::{self, RequestBodies};
use super::end::End;
use super::request::{Admitted, ReplyTo};
use super::sending::{self, SentRequest, SentTerms, UnsealedRequest};
use super::{Failure, Told, holder};
use crate::config::{OnDisconnect, Target};
use crate::upstream::{
    AnswerContent, DispatchError, GivenUp, Progress, Refusals, TargetOperation, UpstreamAnswer,
    UpstreamCall,
};

/// A target's answer that has begun, and who waits for it.
pub(super) struct BegunAnswer {
    pub(super) admitted: Box<Admitted>,
    /// The target's family.
    pub(super) family: Family,
    pub(super) content: AnswerContent,
    pub(super) reply: ReplyTo,
}

/// Sends the request. Without an answer, the request is settled and the customer told; then there is nothing to relay.
pub(super) async fn dispatch(
    mut admitted: Box<Admitted>,
    progress: &Progress,
    mut reply: ReplyTo,
) -> Option<BegunAnswer> {
    let (proxy, model) = (admitted.proxy.clone(), admitted.model.clone());
    let (family, stream) = (admitted.request.family, admitted.count.seen.stream);
    // A whole answer, and a stream under the policy `drain`, is read to its usage even if the customer has left.
    let cancels = stream && model.route.on_disconnect == OnDisconnect::Cancel;
    // Nothing is asked for a connection that we have closed by now.
    let left = AtomicBool::new(admitted.request.connection.is_closed());
    let refusals = Refusals::default();
    let payer = holder(admitted.request.customer);
    let call = UpstreamCall {
        stream,
        last: bodies::last_family(&admitted.count.seen),
        tokens: admitted.expected_tokens,
        until: Some(admitted.deadline()),
        abandoned: Some(&left),
        refusals: Some(&refusals),
        progress: Some(progress),
        ..UpstreamCall::new(&model.route, payer, family, TargetOperation::Generate)
    };
    let places = std::mem::take(&mut admitted.places);
    let parts = &mut *admitted;
    let mut room = parts.request.room.take();
    let mut sending = SentRequest {
        proxy: &proxy,
        model: &model,
        request: &parts.request,
        room: room.as_mut(),
        seen: &parts.count.seen,
        sent: SentTerms::new(parts.reckoned, &parts.hold),
        bodies: &mut parts.bodies,
        hold: &mut parts.hold,
        refusals: &refusals,
        generation: parts.generation,
    };
    let mut dispatching = Box::pin(proxy.upstreams.dispatch(call, &places, &mut sending));
    let dispatched = loop {
        tokio::select! {
            // An answer that is there is billed, so it counts before the leaving that came with it.
            biased;
            dispatched = &mut dispatching => break dispatched,
            // Noted once, since a closed channel stays so; the request goes on to its first frame.
            () = reply.closed(), if cancels && !left.load(Ordering::Relaxed) => left.store(true, Ordering::Relaxed),
        }
    };
    drop(dispatching);
    let taken = dispatched.as_ref().ok().map(|answer| answer.target.name());
    let sent = sending.sent;
    admitted.note_refused_pin(refusals.pin.into_inner(), taken.as_deref());
    match dispatched {
        Ok(answer) => Some(begun(admitted, answer, &sent, reply)),
        Err(error) => {
            fail(admitted, (error, sent), reply, left.into_inner()).await;
            None
        }
    }
}

/// Turns to the target that answered: frees the memory of the request, notes what was lost on the way, takes the translation, and
/// counts by what that target was sent.
fn begun(
    mut admitted: Box<Admitted>,
    answer: UpstreamAnswer,
    sent: &SentTerms,
    reply: ReplyTo,
) -> BegunAnswer {
    let unsealed: Option<&UnsealedRequest> = sent.unsealed();
    // The upstream has the request, so its memory is freed here: an answer may run for an hour.
    let body = std::mem::take(&mut admitted.request.body);
    let headers = std::mem::take(&mut admitted.request.headers);
    admitted.answered_by(&answer.target, sent);
    admitted.outcome.secrets = answer.secrets;
    admitted.tokens = answer.tokens;
    admitted.served_by(&answer.target, answer.account);
    admitted.outcome.additions = answer.additions;
    admitted.outcome.attempts.extend(answer.attempts);
    if answer.family == admitted.request.family {
        admitted.bodies = RequestBodies::default();
        let target = &answer.target;
        admitted.outcome.removed = admitted.count.seen.removed(&target.fit);
        let (body, seen) =
            unsealed.map_or((&body, &admitted.count.seen), |cut| (&cut.body, &cut.seen));
        let edits = sending::edits(target, answer.family, seen);
        let fitted = answer.family.protocol().fitted(body, seen, &edits);
        note_fit(&mut admitted, &fitted);
        admitted.outcome.echo = sent.echo().map(Box::new);
        if let Some(unsealed) = unsealed {
            admitted.outcome.lost.merge(&unsealed.losses);
        }
    } else if let Some((translation, lost, sent)) = admitted.bodies.take(
        &admitted.request,
        &answer.target,
        answer.family,
        (&admitted.model, &admitted.count.seen.model),
    ) {
        // The provider bills what it was sent, including what it was told about reasoning.
        let seen = &mut admitted.count.seen;
        (seen.thinking, seen.cache_marked) = (sent.thinking, sent.cache_marked);
        seen.content = sent.content;
        admitted.outcome.lost = lost;
        admitted.outcome.removed = removed(&admitted, answer.family);
        admitted.translation = Some(Box::new(translation));
    }
    admitted.count.expect();
    // It has begun, so what it would have left if it never did need not be reserved any more.
    admitted.at_risk.prompt = None;
    let waited = admitted.waited_for_frame();
    let sent = Instant::now()
        .checked_sub(waited)
        .unwrap_or(admitted.request.arrived);
    if matches!(answer.content, AnswerContent::Stream(..)) {
        admitted.outcome.first_frame = Some(Instant::now());
    }
    admitted.count.read_prompt(body, headers, sent);
    admitted.count.seen.places.forget();
    admitted.count.meter.mark_cache(
        admitted.count.seen.cache_marked && !answer.family.protocol().counts_cache_first,
    );
    BegunAnswer {
        admitted,
        family: answer.family,
        content: answer.content,
        reply,
    }
}

/// Notes what the target was told in other words, or not at all: the provider bills what it was sent.
fn note_fit(admitted: &mut Admitted, fitted: &Fitted) {
    admitted.outcome.lost.merge(&fitted.losses);
    let seen = &mut admitted.count.seen;
    seen.cache_marked &= !fitted.unmarked;
    seen.thinking = fitted.thinking.unwrap_or(seen.thinking);
}

/// What a translation for this family leaves out of the request because it does not know it.
fn removed(admitted: &Admitted, family: Family) -> String {
    let known = translate::fields(admitted.request.family)
        .iter()
        .filter(|row| row.fate(family) != FieldFate::Dropped)
        .map(|row| row.name.to_owned());
    admitted.count.seen.removed(&TargetFit {
        pass: known.collect(),
        ..TargetFit::default()
    })
}

/// A whole answer took too long or is too large. Its provider bills what it has produced by then. Nobody has seen any of it, so all
/// of it counts as hidden output.
async fn given_up(
    mut admitted: Box<Admitted>,
    why: GivenUp,
    (target, sent): (&Target, &SentTerms),
    worked: Duration,
    reply: ReplyTo,
) {
    admitted.answered_by(target, sent);
    admitted.count.meter.unseen(worked);
    let failure = Failure::GivenUp(why);
    admitted.outcome.told = Some(Box::new(Told::of(&failure)));
    let end = End {
        status: failure.status(admitted.request.family),
        ..End::cut(EndReason::MaxDuration)
    };
    admitted.settle(&end).await;
    // The send fails if the customer has left, which does not matter.
    let _ = reply.send(Err(failure));
}

/// There is no usable answer: none came, a target refused the request, or it was given up. `left` says that the customer was gone by then.
async fn fail(
    mut admitted: Box<Admitted>,
    (error, mut sent): (DispatchError, SentTerms),
    reply: ReplyTo,
    left: bool,
) {
    let (failure, reason) = match error {
        DispatchError::ClientFault {
            status,
            error,
            usage,
            target,
            attempts,
        } => {
            admitted.answered_by(&target, &sent);
            admitted.outcome.attempts.extend(attempts);
            admitted.count.meter.report(&usage, true);
            (Failure::Upstream(status, error), EndReason::UpstreamRefused)
        }
        DispatchError::GivenUp {
            why,
            target,
            worked,
            attempts,
        } => {
            admitted.outcome.attempts.extend(attempts);
            return given_up(admitted, why, (&target, &sent), worked, reply).await;
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
            let unavailable = EndReason::UpstreamUnavailable;
            match sent.short.take() {
                // There was a target, and no money for it.
                Some(short) => (*short, EndReason::Balance),
                None => (Failure::NoTarget(retry_after), unavailable),
            }
        }
    };
    let status = failure.status(admitted.request.family);
    admitted.outcome.told = Some(Box::new(Told::of(&failure)));
    // A refusal with a count is charged, as it is inside a stream.
    let end = match left {
        _ if admitted.count.meter.made_anything() => End {
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
