//! Relays a streamed answer frame by frame: meters it, and settles it before its end is sent.
//!
//! Frames are passed on raw and whole. From the one with the final usage on, they are kept back until the settlement is
//! acknowledged. A broken stream ends with the family's error event, never with a clean end.

mod departure;
mod last;
mod watch;

use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{AnswerReader, EndUserEcho, Family, Frame, FrameFacts, StopReason};
use tokio::time::Instant;

use super::breakage::{StreamFault, last_words};
use super::end::End;
use super::fold::{self, Folded};
use super::items::Recipient;
use super::outlet::{self, BrokenAnswer, Outlet};
use super::phase::{KeptFrames, Phase};
use super::pipe::{self, Sender};
use super::request::{Admitted, ReplyTo};
use super::{Reply, ReplyBody};
use crate::billing::calibration::AnswerSample;
use crate::clock;
use crate::config::OnDisconnect;
use crate::deadline::Deadline;
use crate::upstream::redact::CustomerError;
use crate::upstream::{FrameStream, TargetError};
use last::LastFrames;
use watch::Watch;

/// A customer who does not accept a piece for this long counts as gone.
///
/// Its upstream is not read meanwhile, and providers give up on a connection that nobody reads; its money stays held.
const STALL: Duration = Duration::from_secs(30);
/// A comment is sent after this long without a frame, so that proxies keep the connection open; many close it after 30 or 60 seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long to wait for the terminal marker after the final usage. It usually comes in the same packet; a customer waits for the
/// settlement as long as this, and gets a marker of ours if there is none.
const MARKER_PATIENCE: Duration = Duration::from_secs(1);
/// If the customer kept us from reading the upstream for this long and the provider then breaks the stream, it is charged as if
/// the customer had left.
// Higher, and whoever makes the provider hang up by not reading pays for the output alone, as for a break that the provider chose.
const UNREAD: Duration = Duration::from_secs(5);
/// Bytes sent at a time, to tell a slow customer from one who accepts nothing.
///
/// A customer who takes one piece in each [`STALL`] is slow; with larger pieces a thin connection would count as gone.
const PIECE: usize = 16 * 1024;

pub(super) struct StreamRelay {
    admitted: Box<Admitted>,
    /// The first frames, until they are passed on.
    first: Vec<Frame>,
    frames: FrameStream,
    /// `None` once the customer of a stream has left, and always for a folded answer.
    customer: Option<Sender>,
    /// The customer waits for the whole answer.
    folded: Option<Folded>,
    /// Of the target's family.
    reader: Box<dyn AnswerReader>,
    /// Makes the customer's frames of the target's.
    outlet: Box<dyn Outlet>,
    phase: Phase,
    /// Why the whole answer stopped, once known: what follows is only usage.
    stop: Option<StopReason>,
    watch: Watch,
    /// What an error of the target's is to the customer.
    fault: Option<StreamFault>,
    /// Whether what is kept back holds text of the model.
    keeps_text: bool,
    /// How long the customer kept us from reading the upstream.
    waited: Duration,
    last_sent: Instant,
    alarm: Deadline,
}

enum NextFrame {
    Frame(Frame),
    End(End),
}

impl StreamRelay {
    /// The relay of a stream of a target of `family`; its customer gets the head of the answer now.
    pub(super) fn new(
        mut admitted: Box<Admitted>,
        family: Family,
        (first, frames): (Vec<Frame>, FrameStream),
        reply: ReplyTo,
    ) -> Self {
        let headers = admitted.headers();
        let (customer, folded) = if admitted.count.seen.stream {
            let (sender, receiver) = pipe::pipe();
            let stream = Reply {
                headers,
                body: ReplyBody::Stream(receiver),
            };
            (reply.send(Ok(stream)).is_ok().then_some(sender), None)
        } else {
            (None, Some(Folded::new(reply, headers)))
        };
        let now = Instant::now();
        let mut reader = family.protocol().reader();
        reader.expect(admitted.count.seen.choices, clock::seed());
        if let Some(additions) = &admitted.outcome.additions {
            reader.allow(additions);
        }
        Self {
            first,
            frames,
            customer,
            folded,
            reader,
            outlet: outlet::of(&mut admitted),
            phase: Phase::Passing,
            stop: None,
            watch: Watch::new(now),
            fault: None,
            keeps_text: false,
            waited: Duration::ZERO,
            last_sent: now,
            alarm: Deadline::at(now + KEEP_ALIVE),
            admitted,
        }
    }

    /// Reads and passes on frames until there is a reason to stop.
    pub(super) async fn pump(&mut self) -> End {
        for first in std::mem::take(&mut self.first) {
            if let Some(end) = self.pass(first).await {
                return end;
            }
        }
        loop {
            match self.next().await {
                NextFrame::End(end) => return end,
                NextFrame::Frame(frame) => {
                    if let Some(end) = self.pass(frame).await {
                        return end;
                    }
                }
            }
        }
    }

    /// Counts one frame and sends it on, or keeps it back.
    async fn pass(&mut self, frame: Frame) -> Option<End> {
        // The clock is read once for each frame: with thousands of streams it is a good part of what a frame costs.
        let mut now = Instant::now();
        match self.count(frame, now) {
            Err(end) => return Some(end),
            Ok(None) => {}
            Ok(Some(bytes)) => now = self.send(bytes, now).await,
        }
        if self.phase.is_over() {
            return Some(End::complete(self.stop));
        }
        if self.outlet.has_stopped() && self.may_stop_target() {
            Box::pin(self.read_on()).await;
            return Some(End::AT_STOP);
        }
        if self.customer.is_none() && self.ends_without_customer() {
            return Some(Box::pin(self.client_gone()).await);
        }
        if self.watch.is_due(now) && self.phase.is_passing() {
            // Boxed, as whatever is rare: it would enlarge the task of every open stream.
            Box::pin(self.look(now)).await
        } else {
            None
        }
    }

    /// Counts one frame and returns the part of it to send now.
    fn count(&mut self, frame: Frame, now: Instant) -> Result<Option<Bytes>, End> {
        let mut facts = self.reader.read(&frame);
        let outcome = &mut self.admitted.outcome;
        outcome.removed_members(&facts.marks, frame.raw());
        facts.marks.cut(frame.other_lines());
        if facts.unreadable && frame.event() == Some("error") {
            self.frames.blame("an error event in the stream");
            self.broke("error event without JSON");
            return Err(self.broken());
        }
        let count = &mut self.admitted.count;
        count.meter.observe(&facts, self.reader.usage());
        if facts.shown.bytes() > 0 {
            count.shows();
        }
        if let Some(error) = facts.error {
            let route = &self.admitted.model.route;
            let judged = self.frames.judge(error, route, self.outlet.foreign_to());
            return Err(self.failed(judged));
        }
        self.watch.frame(&facts, now);
        self.stop = self.stop.or(facts.stop);
        if (facts.last || self.ends_short(&facts)) && self.phase.is_passing() {
            self.phase = Phase::Keeping(now, KeptFrames::default());
        }
        self.keeps_text |= !self.phase.is_passing() && facts.shown.bytes() > 0;
        let shown = self.outlet.frame(frame, facts, &mut self.phase);
        let outcome = &self.admitted.outcome;
        let shown = shown.map(|shown| shown.map(|bytes| outcome.restored(bytes)));
        shown.map_err(|BrokenAnswer| {
            self.frames.blame("frames that do not form an answer");
            self.broke("frames that do not form an answer");
            End::BROKEN
        })
    }

    /// Whether this frame only says that the answer ended at a limit that was lowered to what the money buys. It is kept back, because
    /// our words come before it.
    fn ends_short(&self, facts: &FrameFacts) -> bool {
        facts.stop == Some(StopReason::Length)
            && facts.shown.bytes() == 0
            && self.admitted.reckoned.terms.lowered
    }

    /// Decides who is to blame for an error in the stream. If it is the customer and something was produced, that is charged.
    fn failed(&mut self, judged: Result<CustomerError, TargetError>) -> End {
        match judged {
            Ok(told) => {
                let charged = self.admitted.count.meter.made_anything();
                self.fault = Some(StreamFault::Customers(Box::new(told)));
                if charged {
                    End::REFUSED
                } else {
                    End::nothing(End::REFUSED.reason, 200)
                }
            }
            Err(TargetError { word, overloaded }) => {
                let shown = self.admitted.count.meter.shown_anything();
                self.fault = (overloaded && !shown).then_some(StreamFault::Overloaded);
                self.broke(&format!("error event ({word})"));
                self.broken()
            }
        }
    }

    /// How a stream that the provider broke ends. If the customer had not read for too long before, it ends as if the customer had
    /// left.
    fn broken(&self) -> End {
        // A provider hangs up on a gateway that does not read; if the customer caused that, the answer is not free.
        if self.waited >= UNREAD {
            End::UNREAD
        } else {
            End::BROKEN
        }
    }

    /// Notes why the answer is incomplete.
    fn broke(&mut self, reason: &str) {
        self.admitted.broke(reason);
    }

    /// Waits for the next frame, or for anything else that has to be handled first.
    async fn next(&mut self) -> NextFrame {
        loop {
            let wake = self.wake();
            // Frames first: one that is there decides more than a timer that is due.
            tokio::select! {
                biased;
                frame = self.frames.next() => return match frame {
                    Ok(Some(frame)) => NextFrame::Frame(frame),
                    Ok(None) if self.stop.is_some() => NextFrame::End(End::complete(self.stop)),
                    Ok(None) => {
                        self.frames.blame("an end without the terminal marker");
                        self.broke("an end without the terminal marker");
                        NextFrame::End(self.broken())
                    }
                    Err(broken) => {
                        self.broke(&broken.0);
                        NextFrame::End(if self.stop.is_some() { End::complete(self.stop) } else { self.broken() })
                    }
                },
                () = left(self.customer.as_ref()) => {
                    self.customer = None;
                    if self.ends_without_customer() {
                        return NextFrame::End(Box::pin(self.client_gone()).await);
                    }
                }
                () = self.alarm.wait_until(wake) => {
                    if let Some(end) = Box::pin(self.woken()).await {
                        return NextFrame::End(end);
                    }
                }
            }
        }
    }

    /// The next instant at which something is due even without a frame.
    fn wake(&self) -> Instant {
        let last = self.admitted.deadline();
        // Nobody waits for money or signs of life any more, only for the marker.
        if let Phase::Keeping(since, _) = self.phase {
            return last.min(since + MARKER_PATIENCE);
        }
        let keep_alive = if self.customer.is_some() {
            self.last_sent + KEEP_ALIVE
        } else {
            last
        };
        self.watch.wakes().min(keep_alive).min(last)
    }

    async fn woken(&mut self) -> Option<End> {
        if let Phase::Keeping(..) = self.phase {
            // The terminal marker did not arrive in time. The frames kept back are paid from the hold.
            return Some(End::complete(self.stop));
        }
        let mut now = Instant::now();
        if now >= self.last_sent + KEEP_ALIVE {
            let comment = self.outlet.ping();
            now = self.send(comment, now).await;
        }
        self.look(now).await
    }

    /// Sends to the customer, who counts as gone after accepting nothing for too long. Returns the time afterwards.
    async fn send(&mut self, bytes: Bytes, now: Instant) -> Instant {
        let Some(customer) = &self.customer else {
            return now;
        };
        self.admitted.first_byte();
        self.last_sent = now;
        if let Err(bytes) = at_once(customer, bytes) {
            let began = Instant::now();
            if !Box::pin(deliver(customer, bytes)).await {
                self.customer = None;
            }
            self.last_sent = Instant::now();
            let waited = self.last_sent - began;
            self.waited += waited;
            self.watch.postpone(waited);
        }
        self.last_sent
    }

    /// Whether to stop now that nobody reads: not for a folded answer, not when only the usage is missing, and not if the route's policy
    /// is `drain` or the target's bill would not be smaller.
    fn ends_without_customer(&self) -> bool {
        self.folded.is_none() && self.may_stop_target()
    }

    /// Whether a target is left in the middle of its answer when nobody wants the rest, or pays for it.
    fn may_stop_target(&self) -> bool {
        let policy = self.admitted.model.route.on_disconnect;
        let cancels = policy == OnDisconnect::Cancel && !self.admitted.count.is_read_on;
        self.stop.is_none() && (cancels || self.admitted.request.connection.is_closed())
    }

    /// Settles, and only then sends the end.
    pub(super) async fn settle(self, mut end: End) {
        let Self {
            mut admitted,
            frames,
            customer,
            reader,
            mut outlet,
            phase,
            fault,
            folded,
            keeps_text,
            watch,
            waited,
            ..
        } = self;
        // The upstream is stopped first, so that it produces nothing that nobody pays for.
        drop(frames);
        admitted.count.shown = AnswerSample::Sample(reader.sample().clone());
        // A class may be named only in the last frames, after everything that was metered.
        admitted.count.meter.hear(&reader.usage().said);
        outlet.close(&mut admitted.outcome, &mut end, reader.answer_id());
        let failure = (folded.as_ref())
            .and_then(|_| fold::failure(&end, outlet.has_stopped(), fault.as_ref()));
        if let Some(failure) = &failure {
            end.status = failure.status(admitted.request.family);
        } else if folded.is_some() {
            admitted.first_byte();
        }
        // Words in front of a kept end replace it, so none where it holds text of the model. A whole answer has no place for them.
        let words = (folded.is_none() && !keeps_text)
            .then(|| last_words(&end, &admitted.reckoned, &admitted.proxy))
            .flatten();
        let answered = watch.pass(&mut admitted.count.meter, Instant::now());
        // A pace out of a stream that lay unread would be too slow.
        admitted.outcome.answered = if waited.is_zero() {
            answered
        } else {
            Duration::ZERO
        };
        let last = LastFrames::of(&admitted, reader, outlet, phase, fault, words);
        let recipient = Recipient::of(&admitted);
        let echo = admitted.outcome.echo.take();
        let settled = admitted.settle(&end).await;
        if let Some(folded) = folded {
            let answer = failure.map_or_else(|| Ok(last.whole(&end, &settled)), Err);
            answer.iter().for_each(|answer| recipient.gets(answer));
            return folded.send(answer, &settled);
        }
        let Some(customer) = customer else { return };
        // Paid for by now: a customer who leaves here misses the end, and the charge stays.
        for bytes in last.frames(&end, &settled) {
            let bytes = EndUserEcho::restored(echo.as_deref(), bytes);
            recipient.gets(&bytes);
            if !deliver(&customer, bytes).await {
                return;
            }
        }
    }
}

/// Sends a single piece if there is room, which is usual, without setting a timer.
fn at_once(customer: &Sender, bytes: Bytes) -> Result<(), Bytes> {
    match bytes.len() {
        0 => Ok(()),
        1..=PIECE => customer.try_send(bytes),
        _ => Err(bytes),
    }
}

/// Sends everything, piece by piece; false if the customer left or accepted nothing for too long.
pub(super) async fn deliver(customer: &Sender, mut bytes: Bytes) -> bool {
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        if !matches!(
            tokio::time::timeout(STALL, customer.send(piece)).await,
            Ok(Ok(()))
        ) {
            return false;
        }
    }
    true
}

/// Ends when the customer has left; never when there is none.
async fn left(customer: Option<&Sender>) {
    match customer {
        Some(customer) => customer.closed().await,
        None => std::future::pending().await,
    }
}
