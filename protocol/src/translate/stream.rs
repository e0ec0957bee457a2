//! One streamed answer on its way back: a decoder of the upstream's family, an encoder of the caller's.
//!
//! The relay calls [`Translator::frame`] for each frame and [`Translator::end`] at the end of the stream, settles, and then calls
//! [`Translator::finish`] or [`Translator::fail`], once. After that nothing more is written.

use std::ops::Range;

use super::event::{Event, Open, Sink, Stop};
use super::flow::Decoder;
use super::ids::Memo;
use super::losses::Losses;
use super::writing::{Encoder, Wish};
use crate::shape::Shape;
use crate::{ErrorBody, Family, Frame, UpstreamError, Usage, UsageWish};

/// Translates one streamed answer.
#[derive(Debug)]
pub struct Translator {
    decoder: Box<dyn Decoder>,
    writer: Writer,
    /// The last text delta: frames that only bring another text are not decoded.
    shape: Shape,
}

/// Receives the decoder's events.
#[derive(Debug)]
struct Writer {
    encoder: Box<dyn Encoder>,
    out: Vec<u8>,
    calls: bool,
    /// The open block is text, for which decoders keep no state.
    text: bool,
    end: Option<Result<Stop, UpstreamError>>,
    losses: Losses,
    over: bool,
}

impl Sink for Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Stop(stop) => self.end = Some(Ok(stop)),
            Event::Fail(error) => self.end = Some(Err(error)),
            Event::Lost(what) => self.losses.add_to_answer(what, "dropped"),
            _ if self.over => {}
            event => {
                match event {
                    Event::Open(Open::Call { .. }) => (self.calls, self.text) = (true, false),
                    Event::Open(_) => self.text = true,
                    Event::Close => self.text = false,
                    _ => {}
                }
                self.encoder.event(event, &mut self.out);
            }
        }
    }
}

/// Observes the decoding of one frame: whether it is only a text delta, and the position of that text in the frame.
struct Watched<'w> {
    writer: &'w mut Writer,
    raw: &'w [u8],
    events: usize,
    text: Option<Range<usize>>,
}

impl Sink for Watched<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.events += 1;
        self.text = match &event {
            Event::Delta(text) if self.events == 1 && self.writer.text => inside(self.raw, text),
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
    pub fn new(upstream: Family, caller: Family, memo: Memo, wish: &Wish<'_>) -> Self {
        let decoder = upstream.translates().decoder();
        let encoder = caller.translates().encoder(memo, wish);
        let (out, losses) = (Vec::new(), Losses::default());
        let writer = Writer {
            encoder,
            out,
            calls: false,
            text: false,
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
        if self.writer.over || self.writer.end.is_some() {
            return &self.writer.out;
        }
        if let Some(text) = self.shape.text(frame.raw()) {
            self.writer.event(Event::Delta(text));
            return &self.writer.out;
        }
        let mut watched = Watched {
            writer: &mut self.writer,
            raw: frame.raw(),
            events: 0,
            text: None,
        };
        self.decoder.frame(frame, &mut watched);
        match watched.text {
            Some(text) if watched.events == 1 => self.shape.learn(frame.raw(), text),
            _ => self.shape.forget(),
        }
        &self.writer.out
    }

    /// A keep-alive for a caller whose model thinks silently.
    pub fn ping(&mut self) -> &[u8] {
        self.writer.out.clear();
        self.writer.event(Event::Ping);
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
    #[must_use]
    pub fn ended(&self) -> Option<Result<&Stop, &UpstreamError>> {
        self.writer.end.as_ref().map(Result::as_ref)
    }

    /// What the answer contained so far that the caller's family has no words for.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.writer.losses
    }

    /// The end of a complete answer with settled counts, as frames.
    pub fn finish(&mut self, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
        let stop = match &self.writer.end {
            Some(Ok(stop)) => stop.clone(),
            _ => Stop::Other.corrected(self.writer.calls),
        };
        self.last(|encoder, out| encoder.stop(&stop, usage, wish, out))
    }

    /// The end of an answer that the gateway cuts at the caller's limit: open blocks are closed, and nothing follows.
    pub fn cut(&mut self, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
        self.last(|encoder, out| encoder.stop(&Stop::Length, usage, wish, out))
    }

    /// The end of an answer that broke. Nothing in it looks like a clean end.
    pub fn fail(&mut self, error: &ErrorBody) -> Vec<u8> {
        self.last(|encoder, out| encoder.fail(error, out))
    }

    fn last(&mut self, write: impl FnOnce(&mut dyn Encoder, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.writer.over, true) {
            write(self.writer.encoder.as_mut(), &mut out);
        }
        out
    }
}
