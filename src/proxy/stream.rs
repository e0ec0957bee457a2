//! Relays a streamed answer frame by frame: meters it, keeps it within its hold, and settles it before its end is sent.
//!
//! Frames are passed on raw and whole. From the one with the final usage on, they are kept back until the settlement is
//! acknowledged. A broken stream ends with the family's error event, never with a clean end.

mod last;
mod leaving;

use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::EndReason;
use farebox_protocol::{Family, Frame, FrameFacts, Marks, Reader, Stop, Writer, json};
use tokio::time::Instant;

use super::admitted::{Admitted, ReplyTo};
use super::broken::last_words;
use super::calibration::Shown;
use super::credit::{Credit, Verdict};
use super::end::End;
use super::folded::Folded;
use super::phase::{Kept, Phase};
use super::pipe::{self, Sender};
use super::silence::Silence;
use super::translation::Streamed;
use super::{Reply, ReplyBody, rewrite, whole};
use crate::clock;
use crate::config::OnDisconnect;
use crate::deadline::Deadline;
use crate::upstream::FrameStream;
use crate::upstream::redact::{self, CustomerError, Redacted};
use last::{LastFrames, Wanted};

/// A customer who does not accept a piece for this long counts as gone.
const STALL: Duration = Duration::from_secs(30);
/// A comment is sent after this long without a frame, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long to wait for the terminal marker after the final usage.
const LAST_FRAMES: Duration = Duration::from_secs(1);
/// How often the charge so far is noted on the hold, in case the task ends without settling.
const NOTE: Duration = Duration::from_millis(250);
/// If the customer kept us from reading the upstream for this long and the provider then breaks the stream, it is charged as if
/// the customer had left.
const UNREAD: Duration = Duration::from_secs(5);
/// Bytes sent at a time, to tell a slow customer from one who accepts nothing.
const PIECE: usize = 16 * 1024;

/// Relays a stream of a target of `family` to its end and settles it.
pub(super) async fn relay(
    admitted: Box<Admitted>,
    family: Family,
    first: Box<Frame>,
    frames: FrameStream,
    reply: ReplyTo,
) {
    let (customer, folded) = if admitted.seen.stream {
        let (sender, receiver) = pipe::pipe();
        let headers = whole::omission_headers(&admitted.outcome);
        let stream = Reply {
            headers,
            body: ReplyBody::Stream(receiver),
        };
        (reply.send(Ok(stream)).is_ok().then_some(sender), None)
    } else {
        (None, Some(Folded::new(reply, &admitted.outcome)))
    };
    let mut relay = Relay::new(admitted, family, frames, customer);
    relay.folded = folded;
    let end = relay.pump(first).await;
    // Boxed, because the end of a stream needs more memory than everything before it.
    Box::pin(relay.finish(end)).await;
}

struct Relay {
    admitted: Box<Admitted>,
    /// The public slug as JSON.
    name: String,
    frames: FrameStream,
    /// `None` once the customer has left.
    customer: Option<Sender>,
    /// The customer waits for the whole answer.
    folded: Option<Folded>,
    /// Of the target's family.
    reader: Box<dyn Reader>,
    /// Of the customer's family; knows what was sent.
    writer: Box<dyn Writer>,
    /// Produces the customer's frames when the target is of another family; the writer is then unused.
    translated: Option<Box<Streamed>>,
    credit: Credit,
    phase: Phase,
    /// Why the whole answer stopped, once known: what follows is only usage.
    stop: Option<Stop>,
    silence: Silence,
    /// An upstream error that the customer's request caused.
    told: Option<Box<CustomerError>>,
    /// How long the customer kept us from reading the upstream.
    waited: Duration,
    last_sent: Instant,
    noted: Instant,
    /// Whether the request is being counted for the checkpoints.
    counts_input: bool,
    alarm: Deadline,
}

enum Next {
    Frame(Frame),
    End(End),
}

impl Relay {
    fn new(
        mut admitted: Box<Admitted>,
        family: Family,
        frames: FrameStream,
        customer: Option<Sender>,
    ) -> Self {
        let now = Instant::now();
        let mut reader = family.protocol().reader();
        reader.expect(admitted.seen.choices, clock::seed());
        reader.allow(&admitted.outcome.pass_answer);
        let hiding = admitted.hiding(&admitted.outcome.target);
        let hides = hiding.is_some();
        if let Some(hiding) = hiding {
            let waited = admitted.waited_for_frame();
            admitted.meter.may_hide(hiding);
            admitted.meter.wait(waited);
        }
        Self {
            translated: admitted
                .translation
                .take()
                .map(|translation| translation.stream(admitted.seen.stream)),
            reader,
            writer: admitted.request.family.protocol().writer(),
            credit: Credit::new(admitted.seen.choices, admitted.output_limit, now),
            silence: Silence::new(hides, now),
            told: None,
            waited: Duration::ZERO,
            phase: Phase::Passing,
            stop: None,
            last_sent: now,
            noted: now,
            counts_input: false,
            alarm: Deadline::at(now + KEEP_ALIVE),
            name: json::quoted(&admitted.model.slug),
            admitted,
            frames,
            customer,
            folded: None,
        }
    }

    /// Reads and passes on frames until there is a reason to stop.
    async fn pump(&mut self, first: Box<Frame>) -> End {
        let mut next = Next::Frame(*first);
        loop {
            match next {
                Next::End(end) => return end,
                Next::Frame(frame) => {
                    if let Some(end) = self.pass(frame).await {
                        return end;
                    }
                }
            }
            next = self.next().await;
        }
    }

    /// Counts one frame and sends it on, or keeps it back.
    async fn pass(&mut self, frame: Frame) -> Option<End> {
        // The clock is read once for each frame.
        let mut now = Instant::now();
        match self.count(frame, now) {
            Err(end) => return Some(end),
            Ok(None) => {}
            Ok(Some(bytes)) => now = self.send(bytes, now).await,
        }
        if self.phase.is_over() {
            return Some(End::complete(self.stop));
        }
        if self.has_stopped() && self.leaves() {
            self.read_on().await;
            return Some(End::AT_STOP);
        }
        if self.customer.is_none() && self.ends_without_customer() {
            return Some(self.client_gone().await);
        }
        self.note(now);
        if self.phase.is_passing() {
            self.control(now).await
        } else {
            None
        }
    }

    /// Counts one frame and returns the part of it to send now.
    fn count(&mut self, frame: Frame, now: Instant) -> Result<Option<Bytes>, End> {
        let mut facts = self.reader.read(&frame);
        let outcome = &mut self.admitted.outcome;
        outcome.removed_members(&facts.marks, frame.raw());
        facts.marks.cuts.extend(frame.other_lines().iter().cloned());
        if facts.unreadable && frame.event() == Some("error") {
            self.frames.blame("an error event in the stream");
            self.broke("error event without JSON");
            return Err(self.broken());
        }
        self.admitted.meter.observe(&facts, self.reader.usage());
        if let Some(error) = facts.error {
            let caller = self
                .translated
                .as_ref()
                .map(|_| self.admitted.request.family);
            let route = &self.admitted.model.route;
            let judged = self.frames.judge(error, route, caller);
            return Err(self.failed(judged));
        }
        self.silence.frame(&mut self.admitted.meter, &facts, now);
        self.stop = self.stop.or(facts.stop);
        if (facts.last || self.ends_short(&facts)) && self.phase.is_passing() {
            self.phase = Phase::Keeping(now, Kept::default());
        }
        if let Some(translated) = &mut self.translated {
            let shown = translated.frame(&frame);
            if translated.is_broken() {
                self.frames.blame("frames that do not form an answer");
                self.broke("frames that do not form an answer");
                return Err(End::BROKEN);
            }
            let shown = shown.map(|bytes| (bytes, Marks::default()));
            return Ok(self.phase.keep(shown, facts.end).map(|(bytes, _)| bytes));
        }
        let has_content = !facts.unreadable && frame.has_data();
        let usage_asked = self.admitted.seen.asks_usage || self.admitted.seen.asks_cost;
        if !has_content || (facts.usage_only && !usage_asked) {
            return Ok(None);
        }
        if facts.unfamiliar {
            let bytes = rewrite::rewrite(frame.raw(), &facts.marks, &self.name, None);
            let bytes = redact::event(&bytes, &self.admitted.model.route);
            return Ok(self.pass_on((bytes, Marks::default()), false));
        }
        if self.phase.is_passing() {
            self.writer.observe(&frame, &facts);
        }
        Ok(self.pass_on((frame.into_raw(), facts.marks), facts.end))
    }

    /// Whether this frame only says that the answer ended at a limit that was lowered to what the money buys. It is kept back, because
    /// our words come before it.
    fn ends_short(&self, facts: &FrameFacts) -> bool {
        facts.stop == Some(Stop::Length)
            && facts.shown.bytes() == 0
            && self.admitted.has_lowered_limit()
    }

    /// The bytes to send now; keeps them back if the settlement comes first.
    fn pass_on(&mut self, (bytes, marks): (Bytes, Marks), ends: bool) -> Option<Bytes> {
        if self.phase.is_passing() {
            return Some(rewrite::rewrite(&bytes, &marks, &self.name, None));
        }
        self.phase.keep(Some((bytes, marks)), ends);
        None
    }

    /// Decides who is to blame for an error in the stream. If it is the customer and something was produced, that is charged.
    fn failed(&mut self, judged: Result<CustomerError, Redacted>) -> End {
        match judged {
            Ok(told) => {
                let charged = self.admitted.meter.made_anything();
                self.told = Some(Box::new(told));
                if charged {
                    End::REFUSED
                } else {
                    End::nothing(End::REFUSED.reason, 200)
                }
            }
            Err(word) => {
                self.broke(&format!("error event ({word})"));
                self.broken()
            }
        }
    }

    /// How a stream that the provider broke ends. If the customer had not read for too long before, it ends as if the customer had
    /// left.
    fn broken(&self) -> End {
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

    /// Notes what is to be charged if this task ends without settling.
    fn note(&mut self, now: Instant) {
        if now >= self.noted + NOTE {
            if !std::mem::replace(&mut self.counts_input, true) {
                self.admitted.count_input();
            }
            self.noted = now;
            let checkpoint = self.admitted.checkpoint();
            self.admitted.hold.note(checkpoint, clock::now());
        }
    }

    /// Waits for the next frame, or for anything else that has to be handled first.
    async fn next(&mut self) -> Next {
        loop {
            let wake = self.wake();
            tokio::select! {
                biased;
                frame = self.frames.next() => return match frame {
                    Ok(Some(frame)) => Next::Frame(frame),
                    Ok(None) if self.stop.is_some() => Next::End(End::complete(self.stop)),
                    Ok(None) => {
                        self.frames.blame("an end without the terminal marker");
                        self.broke("an end without the terminal marker");
                        Next::End(self.broken())
                    }
                    Err(broken) => {
                        self.broke(&broken.0);
                        Next::End(if self.stop.is_some() { End::complete(self.stop) } else { self.broken() })
                    }
                },
                () = left(self.customer.as_ref()) => {
                    self.customer = None;
                    if self.ends_without_customer() {
                        return Next::End(self.client_gone().await);
                    }
                }
                () = self.alarm.wait_until(wake) => {
                    if let Some(end) = self.woken().await {
                        return Next::End(end);
                    }
                }
            }
        }
    }

    /// The next instant at which something is due even without a frame.
    fn wake(&self) -> Instant {
        let last = self.admitted.deadline();
        if let Phase::Keeping(since, _) = self.phase {
            return last.min(since + LAST_FRAMES);
        }
        let hidden = self.silence.due(self.stop.is_some()).unwrap_or(last);
        let keep_alive = if self.customer.is_some() {
            self.last_sent + KEEP_ALIVE
        } else {
            last
        };
        hidden.min(keep_alive).min(last)
    }

    async fn woken(&mut self) -> Option<End> {
        if let Phase::Keeping(..) = self.phase {
            // The terminal marker did not arrive in time. The frames kept back are paid from the hold.
            return Some(End::complete(self.stop));
        }
        let mut now = Instant::now();
        if now >= self.last_sent + KEEP_ALIVE {
            let comment = self
                .translated
                .as_mut()
                .map_or(Bytes::from_static(b": keepalive\n\n"), |translated| {
                    translated.ping()
                });
            now = self.send(comment, now).await;
        }
        let stopped = self.stop.is_some();
        self.silence.tick(&mut self.admitted.meter, stopped, now);
        self.control(now).await
    }

    /// Whether the stream still has time and money.
    async fn control(&mut self, now: Instant) -> Option<End> {
        let Self {
            credit,
            admitted,
            reader,
            ..
        } = self;
        if now >= admitted.deadline() {
            return Some(End::TOO_LONG);
        }
        match credit.check(admitted, reader.sample(), now).await {
            Verdict::Covered => None,
            // Nothing was delivered, and the fault is ours: free.
            Verdict::Spent(reason @ EndReason::LedgerUnavailable)
                if !admitted.meter.shown_anything() =>
            {
                Some(End::lost(reason, 200))
            }
            Verdict::Spent(reason) => {
                admitted.meter.charge_pause();
                Some(End::cut(reason))
            }
        }
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
            if !deliver(customer, bytes).await {
                self.customer = None;
            }
            self.last_sent = Instant::now();
            let waited = self.last_sent - began;
            self.waited += waited;
            self.silence.postpone(waited);
        }
        self.last_sent
    }

    /// Without a customer, a stream goes on only for its usage: if only the usage is missing, or if the route's policy is `drain`.
    fn ends_without_customer(&self) -> bool {
        self.folded.is_none() && self.leaves()
    }

    /// Whether a target is left in the middle of its answer when nobody wants the rest.
    fn leaves(&self) -> bool {
        self.stop.is_none() && self.admitted.model.route.on_disconnect == OnDisconnect::Cancel
    }

    /// Whether the customer's answer has ended at a stop string.
    fn has_stopped(&self) -> bool {
        self.translated
            .as_ref()
            .is_some_and(|translated| translated.has_stopped())
    }

    /// Settles, and only then sends the end.
    async fn finish(self, mut end: End) {
        let Self {
            mut admitted,
            name,
            frames,
            customer,
            reader,
            writer,
            phase,
            told,
            folded,
            translated,
            ..
        } = self;
        // The upstream is stopped first, so that it produces nothing that nobody pays for.
        drop(frames);
        admitted.shown = Shown::Sample(reader.sample().clone());
        admitted.meter.hear(&reader.usage().said);
        let mut last = LastFrames {
            wanted: Wanted::by(&admitted),
            name,
            reader,
            writer,
            translated,
            phase,
            told,
            words: last_words(
                &end,
                admitted.has_lowered_limit(),
                &admitted.proxy.config.current().catalog.shop,
            ),
            rest: None,
        };
        last.complete(&mut admitted.outcome, &mut end);
        let failure = folded.as_ref().and_then(|_| last.failure(&end));
        if let Some(failure) = &failure {
            end.status = failure.status(admitted.request.family);
        } else if folded.is_some() {
            admitted.first_byte();
        }
        let settled = admitted.settle(&end).await;
        if let Some(folded) = folded {
            let answer = failure.map_or_else(|| Ok(last.whole(&end, &settled)), Err);
            return folded.send(answer, &settled);
        }
        let Some(customer) = customer else { return };
        for bytes in last.frames(&end, &settled) {
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
