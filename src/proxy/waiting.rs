//! A stream that has not begun: its target may already produce what it will not show, so its hold grows with the wait, and it ends
//! when the money does.
//!
//! A hold that covers the stream's whole limit needs none of this.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Bill, EndReason, Hold, LedgerError};
use farebox_protocol::{Family, Inspection, PublicAnswer, UsageWish};
use tokio::time::Instant;

use super::admitted::{Admitted, ReplyTo};
use super::broken::last_words;
use super::credit::{Credit, Verdict};
use super::end::End;
use super::translation::Forms;
use super::{Failure, Proxy, Reply, ReplyBody, Request, pipe, stream, whole};
use crate::config::{Model, Target};
use crate::metering::Meter;
use crate::metering::pace::Hiding;

/// How often the hold is compared with the wait; the fastest targets produce a slice in a second.
const TICK: Duration = Duration::from_millis(250);

/// The target that has the request now, as an index into the route, in which family, and since when.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Option<(usize, Family, Instant)>>);

impl Asked {
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

/// What of a request its targets are sent, while its hold and its meter change.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) model: &'a Model,
    pub(super) request: &'a Request,
    pub(super) seen: &'a Inspection,
    pub(super) forms: &'a Forms,
    /// The output limit to write.
    pub(super) limit: Option<u32>,
    /// The snapshot that it was admitted under.
    pub(super) generation: u64,
}

impl<'a> Sent<'a> {
    pub(super) fn split(
        admitted: &'a mut Admitted,
        proxy: &'a Proxy,
        model: &'a Model,
    ) -> (Self, &'a mut Hold, &'a mut Meter) {
        let sent = Self {
            proxy,
            model,
            request: &admitted.request,
            seen: &admitted.seen,
            forms: &admitted.forms,
            limit: admitted.limit,
            generation: admitted.generation,
        };
        (sent, &mut admitted.hold, &mut admitted.meter)
    }
}

/// Watches one wait.
pub(super) struct Watch {
    credit: Credit,
    next: Instant,
}

impl Watch {
    pub(super) fn new(admitted: &Admitted) -> Self {
        let now = Instant::now();
        Self {
            credit: Credit::new(admitted.seen.choices, admitted.output_limit, now),
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
        asked: &Asked,
        sent: Sent<'_>,
        (hold, meter): (&mut Hold, &mut Meter),
    ) -> Verdict {
        let Some((target, family, since)) = asked.now(sent.model) else {
            return Verdict::Covered;
        };
        let name = target.name();
        let form = sent
            .forms
            .sent_to(target, family, (sent.request.family, sent.seen), sent.model);
        if !form.is_some_and(|seen| sent.proxy.may_hide(sent.model, seen, &name)) {
            return Verdict::Covered;
        }
        let pace = sent.proxy.pace(sent.model, &name);
        meter.may_hide(Hiding::new(pace, &sent.model.limits, false));
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
    asked: &Asked,
    reason: EndReason,
    reply: ReplyTo,
) {
    let model = admitted.model.clone();
    let family = admitted.request.family;
    if let Some((target, _, since)) = asked.now(&model) {
        admitted.answered_by(target);
        admitted.meter.wait(since.elapsed());
    }
    if reason == EndReason::LedgerUnavailable {
        let failure = Failure::Ledger(LedgerError::unavailable("a hold could not grow"));
        admitted
            .settle(&End::lost(reason, failure.status(family)))
            .await;
        let _ = reply.send(Err(failure));
        return;
    }
    let (asks_cost, asks_usage) = (admitted.seen.asks_cost, admitted.seen.asks_usage);
    admitted.first_byte();
    let end = End::cut(reason);
    let words = last_words(&end, false, &admitted.proxy.config.current().catalog.shop);
    let settled = admitted.settle(&end).await;
    let (sender, receiver) = pipe::pipe();
    let answer = Reply {
        headers: Vec::new(),
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
        slug: &model.slug,
        id: None,
    };
    let words = words.as_deref().map(str::trim_start);
    let end =
        family
            .protocol()
            .writer()
            .end_at_limit(public, words, &whole::wire(settled.usage), wish);
    stream::deliver(&sender, Bytes::from(end)).await;
}
