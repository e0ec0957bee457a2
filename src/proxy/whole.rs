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
    let removed = admitted.seen.removed_tools.clone();

    let settled = admitted.settle(End::complete(facts.stop)).await;

    let charge = settled.finished.map_or(settled.cost, |finished| finished.charge);
    // A large answer keeps its room until the customer has read it.
    let body = room.keep(rewrite::rewrite(&body, &facts.marks, &slug, asks_cost.then_some(charge)));
    // A customer who has left has been charged all the same: the answer was made.
    let _ = reply.send(Ok(Reply { headers: headers(&settled, &removed), body: ReplyBody::Whole(body) }));
}

fn headers(settled: &Settled, removed: &[String]) -> Vec<(&'static str, String)> {
    let mut headers = removed_header(removed);
    if let Some(finished) = settled.finished {
        headers.push(("x-farebox-cost", finished.charge.to_string()));
        headers.push(("x-farebox-balance", finished.available.to_string()));
    }
    headers
}

/// Most bytes of a header that names what was taken out.
const LONGEST_LIST: usize = 1_000;

/// Says which of the request's tools were taken out: each once, and only as many as fit.
pub(super) fn removed_header(removed: &[String]) -> Vec<(&'static str, String)> {
    let mut list = String::new();
    for (at, name) in removed.iter().enumerate().filter(|(at, name)| !removed[..*at].contains(name)) {
        let comma = if list.is_empty() { "" } else { ", " };
        if list.len() + comma.len() + name.len() > LONGEST_LIST {
            list.push_str(", ...");
            tracing::debug!(left_out = removed.len() - at, "the list of removed tools is longer than its header");
            break;
        }
        list.push_str(comma);
        list.push_str(name);
    }
    if list.is_empty() { Vec::new() } else { vec![("x-farebox-removed", list)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_tools_are_named_once_and_within_a_kilobyte() {
        assert!(removed_header(&[]).is_empty());
        let twice = ["web_search", "x", "web_search"].map(str::to_owned);
        assert_eq!(removed_header(&twice)[0].1, "web_search, x");
        let many: Vec<String> = (0..800).map(|number| format!("web_search_{number}")).collect();
        let list = &removed_header(&many)[0].1;
        assert!(list.len() <= 1_024 && list.ends_with(", ..."), "{list}");
    }
}
