//! A stream that has not begun: its target may already produce what it will not show, so its hold grows with the wait, and it ends
//! when the money does.
//!
//! A hold that covers the stream's whole limit needs none of this.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Bill, EndReason, Hold, LedgerError};
use farebox_protocol::{Family, PublicAnswer, UsageWish};
use tokio::time::Instant;

use super::admitted::{Admitted, ReplyTo};
use super::broken::last_words;
use super::end::End;
use super::sending::SentRequest;
use super::{Failure, Reply, ReplyBody, pipe, stream, whole};
use crate::billing::credit::{CreditVerdict, StreamCredit};
use crate::config::{Model, Target};
use crate::metering::Meter;
use crate::metering::pace::Hiding;

/// How often the hold is compared with the wait. The fastest targets produce a slice in a second: with a longer one a hold would be
/// outrun between two looks, and a shorter one wakes every waiting stream for nothing.
const TICK: Duration = Duration::from_millis(250);

/// The target that has the request now, as an index into the route, in which family, and since when.
#[derive(Debug, Default)]
pub(super) struct AskedTarget(Mutex<Option<(usize, Family, Instant)>>);

impl AskedTarget {
    /// Notes that a target is about to get the request.
    pub(super) fn note(&self, model: &Model, target: &Target, family: Family) {
        let mut targets = model.route.targets.iter();
        let place = targets.position(|listed| std::ptr::eq(listed, target));
        let now = place.map(|place| (place, family, Instant::now()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn now<'a>(&self, model: &'a Model) -> Option<(&'a Target, Family, Instant)> {
        let (place, family, since) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some((model.route.targets.get(place)?, family, since))
    }
}

/// Watches one wait.
pub(super) struct Watch {
    credit: StreamCredit,
    next: Instant,
}

impl Watch {
    pub(super) fn new(admitted: &Admitted) -> Self {
        let now = Instant::now();
        Self {
            credit: StreamCredit::new(admitted.count.seen.choices, admitted.output_limit, now),
            next: now + TICK,
        }
    }

    /// Waits until the hold has to be looked at.
    pub(super) async fn due(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = Instant::now() + TICK;
    }

    /// Whether the target may go on.
    pub(super) async fn check(
        &mut self,
        asked: &AskedTarget,
        sent: SentRequest<'_>,
        (hold, meter): (&mut Hold, &mut Meter),
    ) -> CreditVerdict {
        let Some((target, family, since)) = asked.now(sent.model) else {
            return CreditVerdict::Covered;
        };
        let name = target.name();
        let form =
            sent.bodies
                .sent_to(target, family, (sent.request.family, sent.seen), sent.model);
        if !form.is_some_and(|seen| sent.proxy.calibrations.may_hide(sent.model, seen, &name)) {
            return CreditVerdict::Covered;
        }
        let pace = sent.proxy.calibrations.hidden_pace(sent.model, &name);
        meter.may_hide(Hiding::new(pace, &sent.model.limits, false));
        // Of the target that has the request now: what failed ones may bill is named on the bill, and the customer pays for none of it.
        meter.wait(since.elapsed());
        // Nothing was delivered: if the gateway dies now, nothing is charged.
        let checkpoint = Bill {
            slug: sent.model.slug.clone(),
            family: sent.request.family.name().to_owned(),
            target: name,
            end_reason: End::INTERRUPTED.reason,
            ..Bill::default()
        };
        let now = Instant::now();
        self.credit.check_wait(hold, meter, checkpoint, now).await
    }
}

/// Ends a stream that ran out of money before its first frame. The customer gets an answer that ends as at a length limit.
pub(super) async fn spent(
    mut admitted: Box<Admitted>,
    asked: &AskedTarget,
    reason: EndReason,
    reply: ReplyTo,
) {
    let model = admitted.model.clone();
    let family = admitted.request.family;
    if let Some((target, _, since)) = asked.now(&model) {
        admitted.answered_by(target);
        admitted.count.meter.wait(since.elapsed());
    }
    // The customer has seen nothing, and the fault is ours: an error, and free.
    if reason == EndReason::LedgerUnavailable {
        let failure = Failure::Ledger(LedgerError::unavailable("a hold could not grow"));
        admitted
            .settle(&End::lost(reason, failure.status(family)))
            .await;
        let _ = reply.send(Err(failure));
        return;
    }
    // Money ran out, which is no error: clients would repeat the request, and pay for its prompt again.
    let (asks_cost, asks_usage) = (
        admitted.count.seen.asks_cost,
        admitted.count.seen.asks_usage,
    );
    let asked_for = admitted.count.seen.model.clone();
    let headers = admitted.headers();
    admitted.first_byte();
    let end = End::cut(reason);
    let words = last_words(&end, None, &admitted.proxy);
    let settled = admitted.settle(&end).await;
    let (sender, receiver) = pipe::pipe();
    let answer = Reply {
        headers,
        body: ReplyBody::Stream(receiver),
    };
    if reply.send(Ok(answer)).is_err() {
        return;
    }
    let charge = settled.charge().to_string();
    let wish = UsageWish {
        chunk: asks_usage,
        cost: asks_cost.then_some(charge.as_str()),
    };
    let public = PublicAnswer {
        model: &asked_for,
        id: None,
    };
    let words = words.as_deref().map(str::trim_start);
    let usage = whole::wire(settled.usage);
    let writer = family.protocol().writer();
    let end = writer.end_at_limit(public, words, &usage, wish);
    stream::deliver(&sender, Bytes::from(end)).await;
}
