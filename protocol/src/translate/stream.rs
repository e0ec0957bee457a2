//! One streamed answer on its way back: a decoder of the upstream's family, an encoder of the caller's.
//!
//! The relay calls [`Translator::frame`] for each frame and [`Translator::end`] at the end of the stream, settles, and then calls
//! [`Translator::finish`] or [`Translator::fail`], once. After that nothing more is written.

use std::ops::Range;

use super::event::{AnswerEvent, BlockStart, NeutralStop, Sink};
use super::flow::AnswerDecoder;
use super::ids::Memo;
use super::losses::Losses;
use super::stops::Stops;
use super::text::escape;
use super::writing::{AnswerEncoder, AnswerWish, Fold};
use crate::shape::Shape;
use crate::{ErrorBody, Family, Frame, ReportedUsage, UpstreamError, UsageWish};

/// Translates one streamed answer.
#[derive(Debug)]
pub struct Translator {
    decoder: Box<dyn AnswerDecoder>,
    writer: EventSink,
    /// The last text delta: frames that only bring another text are not decoded.
    shape: Shape,
}

/// Receives the decoder's events.
#[derive(Debug)]
struct EventSink {
    encoder: Box<dyn AnswerEncoder>,
    out: Vec<u8>,
    calls: bool,
    /// The open block is text, for which decoders keep no state.
    text: bool,
    /// The open block is text that stop strings may end.
    shown: bool,
    stops: Stops,
    /// A stop string has ended the answer: what its target goes on to say is not shown.
    stopped: bool,
    /// The first half of a character that its target split, escaped.
    half: String,
    end: Option<Result<NeutralStop, UpstreamError>>,
    losses: Losses,
    over: bool,
}

impl Sink for EventSink {
    fn event(&mut self, event: AnswerEvent<'_>) {
        match event {
            // Pings still pass: the target goes on until it notices, and a client must not time out meanwhile.
            event if self.stopped && event != AnswerEvent::Ping => {}
            AnswerEvent::Stop(stop) => self.end = Some(Ok(stop)),
            AnswerEvent::Fail(error) => self.end = Some(Err(error)),
            AnswerEvent::Lost(what) => self.losses.add_to_answer(what, "dropped"),
            // What was lost is still noted, because the record is written after the end; nothing else may follow it.
            _ if self.over => {}
            AnswerEvent::Delta(text) => self.delta(text),
            event => {
                if matches!(event, AnswerEvent::Open(_) | AnswerEvent::Close) {
                    self.flush();
                }
                match event {
                    AnswerEvent::Open(open) => {
                        self.calls |= matches!(open, BlockStart::Call { .. });
                        self.text = !matches!(open, BlockStart::Call { .. });
                        self.shown = open == BlockStart::Text;
                    }
                    AnswerEvent::Close => (self.text, self.shown) = (false, false),
                    _ => {}
                }
                self.encoder.event(event, &mut self.out);
            }
        }
    }
}

impl EventSink {
    /// More text of the open block, in whole characters.
    fn delta(&mut self, text: &str) {
        let whole = without_half(text);
        // Nearly every piece: nothing is copied.
        if self.half.is_empty() && whole.len() == text.len() {
            return self.show(text);
        }
        let mut joined = std::mem::take(&mut self.half);
        joined.push_str(whole);
        text.get(whole.len()..)
            .unwrap_or_default()
            .clone_into(&mut self.half);
        self.show(&joined);
    }

    fn show(&mut self, text: &str) {
        // Stop strings are about the text that customers see; a vendor does not stop in thinking or in a call's arguments
        // either.
        if self.stops.is_empty() || !self.shown {
            if !text.is_empty() {
                self.encoder.event(AnswerEvent::Delta(text), &mut self.out);
            }
            return;
        }
        let mut shown = String::new();
        let found = self.stops.push(text, &mut shown);
        if !shown.is_empty() {
            self.encoder
                .event(AnswerEvent::Delta(&shown), &mut self.out);
        }
        if let Some(stop) = found {
            self.encoder.event(AnswerEvent::Close, &mut self.out);
            self.end = Some(Ok(NeutralStop::StopString(stop).corrected(self.calls)));
            self.stopped = true;
        }
    }

    /// Shows what was held back of the open block. Half a character that never became whole is none.
    fn flush(&mut self) {
        let mut rest = String::new();
        self.stops.flush(&mut rest);
        if !std::mem::take(&mut self.half).is_empty() {
            // A lone half would make the caller's JSON invalid for strict parsers.
            rest.push_str(&escape("\u{fffd}"));
        }
        if !rest.is_empty() {
            self.encoder.event(AnswerEvent::Delta(&rest), &mut self.out);
        }
    }
}

/// The text without the first half of a character at its end: an escape whose second half is in the next piece.
fn without_half(text: &str) -> &str {
    // `\ud83d` has six bytes.
    let Some(at) = text.len().checked_sub(6) else {
        return text;
    };
    match text.get(at..).map(str::as_bytes) {
        Some(
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
                ..,
            ],
        ) => {
            let before = text.get(..at).unwrap_or_default();
            let escapes = before.len() - before.trim_end_matches('\\').len();
            // An odd number of backslashes in front means that this one is text.
            if escapes.is_multiple_of(2) {
                before
            } else {
                text
            }
        }
        _ => text,
    }
}

/// Observes the decoding of one frame: whether it is only a text delta, and the position of that text in the frame.
struct WatchedFrame<'w> {
    writer: &'w mut EventSink,
    raw: &'w [u8],
    events: usize,
    text: Option<Range<usize>>,
}

impl Sink for WatchedFrame<'_> {
    fn event(&mut self, event: AnswerEvent<'_>) {
        self.events += 1;
        self.text = match &event {
            AnswerEvent::Delta(text) if self.events == 1 && self.writer.text => {
                inside(self.raw, text)
            }
            _ => None,
        };
        self.writer.event(event);
    }
}

/// The position in these bytes of a text that was borrowed from them.
fn inside(raw: &[u8], text: &str) -> Option<Range<usize>> {
    let start = text.as_ptr().addr().checked_sub(raw.as_ptr().addr())?;
    let range = start..start.checked_add(text.len())?;
    (raw.get(range.clone())? == text.as_bytes()).then_some(range)
}

impl Translator {
    /// A translator for an answer of `upstream` to a caller of `caller`.
    #[must_use]
    pub fn new(upstream: Family, caller: Family, memo: Memo, wish: &AnswerWish<'_>) -> Self {
        let stops = Stops::new(&memo.stops);
        let encoder = (caller.protocol().encoder)(memo, wish);
        Self::writing(upstream, encoder, stops)
    }

    /// The same for a caller who asked for a whole answer: nothing is written before [`Translator::finish`] gives all of it.
    #[must_use]
    pub fn folding(upstream: Family, caller: Family, memo: Memo, wish: &AnswerWish<'_>) -> Self {
        let stops = Stops::new(&memo.stops);
        Self::writing(upstream, Box::new(Fold::new(caller, memo, wish)), stops)
    }

    fn writing(upstream: Family, encoder: Box<dyn AnswerEncoder>, stops: Stops) -> Self {
        let decoder = (upstream.protocol().decoder)();
        let (out, losses) = (Vec::new(), Losses::default());
        let writer = EventSink {
            encoder,
            out,
            calls: false,
            text: false,
            shown: false,
            stops,
            stopped: false,
            half: String::new(),
            end: None,
            losses,
            over: false,
        };
        Self {
            decoder,
            writer,
            shape: Shape::default(),
        }
    }

    /// Takes the upstream's next frame; returns what the caller gets for it, possibly nothing.
    pub fn frame(&mut self, frame: &Frame) -> &[u8] {
        self.writer.out.clear();
        // Some servers send frames behind their end; a client that has closed its answer would fail on them.
        if self.writer.over || self.writer.end.is_some() {
            return &self.writer.out;
        }
        // Most frames differ from the one before only in their text, and decoding them would be most of a stream's cost.
        if let Some(text) = self.shape.text(frame.raw()) {
            self.writer.event(AnswerEvent::Delta(text));
            return &self.writer.out;
        }
        let mut watched = WatchedFrame {
            writer: &mut self.writer,
            raw: frame.raw(),
            events: 0,
            text: None,
        };
        self.decoder.frame(frame, &mut watched);
        match watched.text {
            Some(text) if watched.events == 1 => self.shape.learn(frame.raw(), text),
            // The state of the decoder may have changed, so the next text delta is decoded again before its shape is trusted.
            _ => self.shape.forget(),
        }
        &self.writer.out
    }

    /// A keep-alive for a caller whose model thinks silently.
    pub fn ping(&mut self) -> &[u8] {
        self.writer.out.clear();
        self.writer.event(AnswerEvent::Ping);
        &self.writer.out
    }

    /// Ends the upstream's stream; returns what is still to be sent before the end.
    pub fn end(&mut self) -> &[u8] {
        self.writer.out.clear();
        if !self.writer.over && self.writer.end.is_none() {
            self.decoder.end(&mut self.writer);
        }
        &self.writer.out
    }

    /// How the answer ended, judged by its frames: complete or broken. `None` while it runs.
    pub fn ended(&self) -> Option<Result<&NeutralStop, &UpstreamError>> {
        self.writer.end.as_ref().map(Result::as_ref)
    }

    /// Whether a stop string of the caller has ended the answer before its target did.
    pub fn has_stopped(&self) -> bool {
        self.writer.stopped
    }

    /// What the caller has not got of the answer so far.
    pub fn losses(&self) -> Losses {
        let mut losses = self.writer.losses.clone();
        losses.merge(&self.writer.encoder.unsaid());
        losses
    }

    /// The end of a complete answer with settled counts, as frames.
    pub fn finish(&mut self, usage: &ReportedUsage, wish: UsageWish<'_>) -> Vec<u8> {
        let stop = match &self.writer.end {
            Some(Ok(stop)) => stop.clone(),
            _ => NeutralStop::Other.corrected(self.writer.calls),
        };
        self.last(|encoder, out| encoder.stop(&stop, usage, wish, out))
    }

    /// The end of an answer that the gateway cuts at the caller's limit: open blocks are closed, and nothing follows but `words` of
    /// the gateway, which are no part of the usage.
    pub fn cut(
        &mut self,
        words: Option<&str>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<u8> {
        self.last(|encoder, out| {
            if let Some(words) = words {
                // Nothing happens if no block is open.
                encoder.cut(out);
                encoder.event(AnswerEvent::Open(BlockStart::Text), out);
                encoder.event(AnswerEvent::Delta(&escape(words)), out);
                encoder.event(AnswerEvent::Close, out);
            }
            encoder.stop(&NeutralStop::Length, usage, wish, out);
        })
    }

    /// The end of an answer that broke. Nothing in it looks like a clean end.
    pub fn fail(&mut self, error: &ErrorBody) -> Vec<u8> {
        self.last(|encoder, out| encoder.fail(error, out))
    }

    fn last(&mut self, write: impl FnOnce(&mut dyn AnswerEncoder, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        // Whoever ends the answer first writes its end; a second one would follow a finished answer.
        if !std::mem::replace(&mut self.writer.over, true) {
            self.writer.out.clear();
            self.writer.flush();
            out.append(&mut self.writer.out);
            write(self.writer.encoder.as_mut(), &mut out);
        }
        out
    }
}
