//! Relays a whole answer: count, settle, then send. The customer never holds an answer whose charge is not in the ledger,
//! unless the ledger did not speak for five seconds.

use bytes::Bytes;
use farebox_protocol::AnswerFacts;

use super::admitted::{Admitted, ReplyTo, Settled};
use super::end::End;
use super::{Reply, ReplyBody, rewrite};
use crate::byte_room::Share;
use crate::upstream::redact;

/// Counts, settles and sends a whole answer.
pub(super) async fn relay(mut admitted: Box<Admitted>, body: Bytes, facts: &AnswerFacts, room: Share, reply: ReplyTo) {
    admitted.first_byte();
    admitted.outcome.answer_id = facts.id.as_deref().map(redact::answer_id);
    admitted.meter.show(facts.shown);
    admitted.meter.report(&facts.usage, true);
    let (slug, asks_cost) = (admitted.model.slug.clone(), admitted.seen.asks_cost);
    let removed = std::mem::take(&mut admitted.outcome.removed);

    let settled = admitted.settle(End::complete(facts.stop)).await;

    let charge = settled.finished.map_or(settled.cost, |finished| finished.charge);
    // A large answer keeps its room until the customer has read it.
    let body = room.keep(rewrite::rewrite(&body, &facts.marks, &slug, asks_cost.then_some(charge)));
    // A customer who has left has been charged all the same: the answer was made.
    let _ = reply.send(Ok(Reply { headers: headers(&settled, &removed), body: ReplyBody::Whole(body) }));
}

fn headers(settled: &Settled, removed: &str) -> Vec<(&'static str, String)> {
    let mut headers = removed_header(removed);
    if let Some(finished) = settled.finished {
        headers.push(("x-farebox-cost", finished.charge.to_string()));
        headers.push(("x-farebox-balance", finished.available.to_string()));
    }
    headers
}

/// Says which of the request's tools and fields were taken out.
pub(super) fn removed_header(removed: &str) -> Vec<(&'static str, String)> {
    if removed.is_empty() { Vec::new() } else { vec![("x-farebox-removed", removed.to_owned())] }
}
