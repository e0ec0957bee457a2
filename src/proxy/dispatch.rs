//! Sends an admitted request to a target of its route, and hands what it answers to a relay.
//!
//! A customer who leaves before a stream has begun is not sent one; a whole answer is read to its usage all the same. When no
//! target answers, the hold is released before the customer hears of it.

use bytes::Bytes;
use farebox_protocol::Edits;

use super::job::{End, Job, ReplyTo};
use super::{Failure, stream, whole};
use crate::config::{ChatLimit, OnDisconnect, Target};
use crate::metering::Ending;
use crate::upstream::{Answer, AnswerContent, Attempt, Call, DispatchError, Prepared};

/// Sends the request and sees to its answer until it is settled.
pub(super) async fn dispatch(mut job: Box<Job>, mut reply: ReplyTo) {
    job.begin();
    let (proxy, model) = (job.proxy.clone(), job.model.clone());
    let call = Call { route: &model.route, family: job.request.family, path_suffix: "", stream: job.seen.stream };
    // A whole answer is read to its usage whether or not somebody waits for it; a stream is not begun for nobody.
    let given_up = job.seen.stream && model.route.on_disconnect == OnDisconnect::Cancel;
    let prepare = |target: &Target| prepare(&job, target);
    // In a box that is gone when the answer has begun: the task of an open stream is no larger than its relay.
    let dispatching = Box::pin(proxy.upstreams.dispatch(call, &prepare));
    let dispatched = tokio::select! {
        biased;
        dispatched = dispatching => dispatched,
        () = reply.closed(), if given_up => {
            job.settle(End { ending: Ending::Nothing, reason: "client_gone", status: 499 }).await;
            return;
        }
        () = tokio::time::sleep_until(job.deadline()) => Err(DispatchError::NoTarget {
            attempts: Vec::new(),
            retry_after: None,
        }),
    };
    match dispatched.map(|answer| begun(&mut job, answer)) {
        Ok(AnswerContent::Whole(body, facts)) => whole::relay(job, body, &facts, reply).await,
        Ok(AnswerContent::Stream(first, frames)) => stream::relay(job, first, frames, reply).await,
        Err(error) => fail(job, error, reply).await,
    }
}

/// Notes who answers, and gives back what.
fn begun(job: &mut Job, answer: Answer) -> AnswerContent {
    // The upstream has the request: an answer that runs for an hour must not keep it.
    job.request.body = Bytes::new();
    job.request.headers = Vec::new();
    job.request.room = None;
    job.outcome.target = format!("{}/{}", answer.target.provider.name, answer.target.model);
    job.outcome.attempts.extend(answer.attempts.iter().map(Attempt::to_string));
    job.outcome.removed = job.seen.removed(&answer.target.provider.pass);
    job.meter.reasoning_outside(answer.target.provider.reasoning_outside);
    answer.content
}

/// No target answered.
async fn fail(mut job: Box<Job>, error: DispatchError, reply: ReplyTo) {
    let failure = match error {
        DispatchError::ClientFault { status, error, target } => {
            job.outcome.target = target;
            Failure::Upstream(status, error)
        }
        DispatchError::NoTarget { attempts, retry_after } => {
            job.outcome.attempts.extend(attempts.iter().map(Attempt::to_string));
            Failure::NoTarget(retry_after)
        }
    };
    let status = failure.status(job.request.family);
    job.settle(End { ending: Ending::Nothing, reason: failure.reason(), status }).await;
    // A customer who has left does not mind.
    let _ = reply.send(Err(failure));
}

/// The request as this target wants it.
fn prepare(job: &Job, target: &Target) -> Prepared {
    let chat_field = match target.provider.chat_limit {
        ChatLimit::MaxCompletionTokens => "max_completion_tokens",
        ChatLimit::MaxTokens => "max_tokens",
    };
    let protocol = job.request.family.protocol();
    let field = protocol.limit_field().unwrap_or(chat_field);
    let edits = Edits { model: &target.model, limit: job.limit.map(|limit| (field, limit)), pass: &target.provider.pass };
    let body = protocol.patch(&job.request.body, &job.seen, &edits);
    Prepared { body: Bytes::from(body), headers: job.request.headers.clone() }
}
