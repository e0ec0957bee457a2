//! Sends an admitted request to a target of its route, and hands what it answers to a relay.
//!
//! A customer who leaves before a stream has begun is not sent one; a whole answer is read to its usage all the same. When no
//! target answers, the hold is released before the customer hears of it.

use bytes::Bytes;
use farebox_protocol::Edits;

use super::admitted::{Admitted, ReplyTo};
use super::end::End;
use super::{Failure, holder, stream, whole};
use crate::config::{OnDisconnect, Target};
use crate::upstream::{Answer, AnswerContent, Call, DispatchError, Operation, Prepared};

/// Sends the request and sees to its answer until it is settled.
pub(super) async fn dispatch(mut admitted: Box<Admitted>, mut reply: ReplyTo) {
    admitted.begin();
    let (proxy, model) = (admitted.proxy.clone(), admitted.model.clone());
    let (family, stream) = (admitted.request.family, admitted.seen.stream);
    let (holder, operation) = (holder(admitted.request.key.id), Operation::Generate);
    let call = Call { route: &model.route, holder, caller: family, family, operation, stream };
    // A whole answer is read to its usage whether or not somebody waits for it; a stream is not begun for nobody.
    let given_up = stream && model.route.on_disconnect == OnDisconnect::Cancel;
    let prepare = |target: &Target| prepare(&admitted, target);
    // In a box that is gone when the answer has begun: the task of an open stream is no larger than its relay.
    let dispatching = Box::pin(proxy.upstreams.dispatch(call, &prepare));
    let dispatched = tokio::select! {
        biased;
        dispatched = dispatching => dispatched,
        () = reply.closed(), if given_up => {
            admitted.settle(End::NEVER_BEGUN).await;
            return;
        }
        () = tokio::time::sleep_until(admitted.deadline()) => Err(DispatchError::NoTarget {
            attempts: Vec::new(),
            retry_after: None,
        }),
    };
    match dispatched.map(|answer| (answer.family, begun(&mut admitted, answer))) {
        Ok((_, AnswerContent::Whole(body, facts, room))) => whole::relay(admitted, body, &facts, room, reply).await,
        Ok((family, AnswerContent::Stream(first, frames))) => stream::relay(admitted, family, first, frames, reply).await,
        Err(error) => fail(admitted, error, reply).await,
    }
}

/// Notes who answers, and gives back what.
fn begun(admitted: &mut Admitted, answer: Answer) -> AnswerContent {
    // The upstream has the request: an answer that runs for an hour must not keep it.
    admitted.request.body = Bytes::new();
    admitted.request.headers = Vec::new();
    admitted.request.room = None;
    admitted.outcome.target = format!("{}/{}", answer.target.provider.name, answer.target.model);
    admitted.outcome.attempts.extend(answer.attempts);
    admitted.outcome.removed = admitted.seen.removed(&answer.target.provider.pass);
    admitted.meter.reasoning_outside(answer.target.provider.reasoning_outside);
    answer.content
}

/// No target answered.
async fn fail(mut admitted: Box<Admitted>, error: DispatchError, reply: ReplyTo) {
    let failure = match error {
        DispatchError::ClientFault { status, error, target } => {
            admitted.outcome.target = target;
            Failure::Upstream(status, error)
        }
        DispatchError::NoTarget { attempts, retry_after } => {
            admitted.outcome.attempts.extend(attempts);
            Failure::NoTarget(retry_after)
        }
    };
    let status = failure.status(admitted.request.family);
    admitted.settle(End::nothing(failure.reason(), status)).await;
    // A customer who has left does not mind.
    let _ = reply.send(Err(failure));
}

/// The request as this target wants it.
fn prepare(admitted: &Admitted, target: &Target) -> Prepared {
    let protocol = admitted.request.family.protocol();
    let field = protocol.limit_field(target.provider.chat_limit);
    let edits = Edits { model: &target.model, limit: admitted.limit.map(|limit| (field, limit)), pass: &target.provider.pass };
    let body = protocol.patch(&admitted.request.body, &admitted.seen, &edits);
    Prepared { body: Bytes::from(body), headers: admitted.request.headers.clone() }
}
