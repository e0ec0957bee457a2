//! Relays a whole answer: count, settle, then send. The customer gets the answer only when its charge is in the ledger, or after
//! the ledger has not responded for five seconds.

use bytes::Bytes;
use farebox_ledger::EndReason;
use farebox_protocol::{AnswerFacts, CallKind, EndUserEcho, Family, UsageWish, json, translate};

use super::end::End;
use super::items::Recipient;
use super::request::{Admitted, ReplyTo, Settled};
use super::translation::Translation;
use super::{Failure, Reply, ReplyBody, rewrite};
use crate::billing::calibration::AnswerSample;
use crate::metering::reported;
use crate::upstream::redact;
use farebox_door::byte_room::ByteShare;

/// A whole answer of a target, on its way to its customer.
pub(super) struct WholeRelay {
    admitted: Box<Admitted>,
    /// The target's.
    family: Family,
    body: Bytes,
    facts: Box<AnswerFacts>,
    /// The memory reserved for the answer, until it has been sent.
    room: ByteShare,
    reply: ReplyTo,
    /// Writes it in the customer's family, if the target is of another.
    translated: Option<(Box<Translation>, translate::NeutralAnswer)>,
    /// Why the customer gets an error instead.
    failure: Option<Failure>,
}

impl WholeRelay {
    pub(super) fn new(
        mut admitted: Box<Admitted>,
        family: Family,
        (body, room): (Bytes, ByteShare),
        facts: Box<AnswerFacts>,
        reply: ReplyTo,
    ) -> Self {
        admitted.outcome.removed_members(&facts.marks, &body);
        Self {
            admitted,
            family,
            body,
            facts,
            room,
            reply,
            translated: None,
            failure: None,
        }
    }

    /// Counts the answer; one that cannot be translated is of no use, and free.
    pub(super) fn count(&mut self) -> End {
        let Self {
            admitted, facts, ..
        } = self;
        if let Some(translation) = admitted.translation.take() {
            let Some(answer) = translation.read(&self.body) else {
                admitted.broke("a whole answer that cannot be read");
                let failure = Failure::NoTarget(None);
                let status = failure.status(admitted.request.family);
                admitted.count.meter.report(&facts.usage, true);
                self.failure = Some(failure);
                return End::lost(EndReason::UpstreamBroken, status);
            };
            self.translated = Some((translation, answer));
        }
        admitted.first_byte();
        admitted.outcome.answer_id = match &self.translated {
            Some((translation, _)) => Some(translation.answer_id()),
            None => {
                let id = facts.id.as_deref();
                id.map(|id| redact::answer_id(id, &admitted.outcome.secrets))
            }
        };
        admitted.count.meter.show(facts.shown);
        admitted.count.shows();
        admitted.count.meter.report(&facts.usage, true);
        // A call has no output to be counted.
        if admitted.request.call.is_none() {
            admitted.count.shown = AnswerSample::Whole(self.family, self.body.clone());
        }
        End::complete(facts.stop)
    }

    /// Settles, and only then sends the answer.
    pub(super) async fn settle(self, end: End) {
        let Self {
            mut admitted,
            family,
            body,
            facts,
            room,
            reply,
            translated,
            failure,
            ..
        } = self;
        if let Some(failure) = failure {
            admitted.settle(&end).await;
            let _ = reply.send(Err(failure));
            return;
        }
        let recipient = Recipient::of(&admitted);
        let call = admitted.request.call;
        let shows_cost = admitted.count.seen.shows_cost(admitted.request.family);
        let name = json::quoted(&admitted.count.seen.model);
        let mut headers = admitted.headers();
        if let Some((translation, answer)) = &translated {
            admitted.outcome.lost.merge(&translation.losses(answer));
        }
        let echo = admitted.outcome.echo.take();
        let settled = admitted.settle(&end).await;
        let cost = shows_cost.then(|| settled.charge());
        let counted = !settled.ours && facts.marks.usage_end.is_some();
        let body = match translated {
            None if counted => rewrite::rewrite(&body, &facts.marks, &name, cost),
            None => {
                let body = rewrite::rewrite(&body, &facts.marks, &name, None);
                let cost = cost.map(|cost| cost.to_string());
                let usage = reported(settled.usage);
                let cost = cost.as_deref();
                Bytes::from(match call {
                    Some(_) => CallKind::with_usage(&body, usage.all_input(), cost),
                    None => family.protocol().with_usage(&body, &usage, cost),
                })
            }
            Some((translation, answer)) => {
                let cost = cost.map(|cost| cost.to_string());
                let wish = UsageWish {
                    chunk: true,
                    cost: cost.as_deref(),
                };
                translation.write(&answer, &reported(settled.usage), wish)
            }
        };
        let body = EndUserEcho::restored(echo.as_deref(), body);
        headers.extend(paid_headers(&settled));
        recipient.gets(&body);
        // A large answer keeps its memory reservation until the customer has read it. A customer who has left is charged anyway: the
        // answer was produced.
        let _ = reply.send(Ok(Reply {
            headers,
            body: ReplyBody::Whole(room.keep(body)),
        }));
    }
}

pub(super) fn paid_headers(settled: &Settled) -> Vec<(&'static str, String)> {
    let class = settled.class.as_ref();
    let class = class.map(|class| ("x-farebox-class", class.to_string()));
    let paid = settled.finished.map(|finished| {
        [
            ("x-farebox-cost", finished.charge.to_string()),
            ("x-farebox-balance", finished.remaining.to_string()),
        ]
    });
    paid.into_iter().flatten().chain(class).collect()
}
