//! Enforces the order of events for decoders: blocks never overlap, there is one end, and nothing follows it.

use super::event::{AnswerEvent, BlockStart, NeutralStop, Sink};
use crate::UpstreamError;

/// The state of an answer.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    started: bool,
    open: bool,
    ended: bool,
    blocks: bool,
    calls: bool,
}

impl Flow {
    /// The answer has begun.
    pub(crate) fn start(&mut self, sink: &mut dyn Sink) {
        if !self.started && !self.ended {
            self.started = true;
            sink.event(AnswerEvent::Start);
        }
    }

    /// A block begins; the open one ends first.
    pub(crate) fn open(&mut self, open: BlockStart<'_>, sink: &mut dyn Sink) {
        self.start(sink);
        self.close(sink);
        if !self.ended {
            self.open = true;
            self.blocks = true;
            self.calls |= matches!(open, BlockStart::Call { .. });
            sink.event(AnswerEvent::Open(open));
        }
    }

    /// More of the open block.
    pub(crate) fn delta(&mut self, text: &str, sink: &mut dyn Sink) {
        // Some servers begin each block with an empty delta; passed on, it would be a frame that says nothing.
        if self.open && !self.ended && !text.is_empty() {
            sink.event(AnswerEvent::Delta(text));
        }
    }

    /// The probabilities of the tokens of the latest text.
    pub(crate) fn logprobs(&mut self, list: &str, sink: &mut dyn Sink) {
        if !self.ended {
            sink.event(AnswerEvent::Logprobs(list));
        }
    }

    /// The open block ends.
    pub(crate) fn close(&mut self, sink: &mut dyn Sink) {
        if self.open && !self.ended {
            self.open = false;
            sink.event(AnswerEvent::Close);
        }
    }

    /// Content that only the answer's own family has.
    pub(crate) fn lose(&mut self, what: &'static str, sink: &mut dyn Sink) {
        if !self.ended {
            sink.event(AnswerEvent::Lost(what));
        }
    }

    pub(crate) fn ping(&mut self, sink: &mut dyn Sink) {
        if !self.ended {
            sink.event(AnswerEvent::Ping);
        }
    }

    /// The answer is complete. A block that the limit cut stays open: its encoder closes it as cut.
    pub(crate) fn stop(&mut self, stop: NeutralStop, sink: &mut dyn Sink) {
        self.start(sink);
        // Some servers say `stop` after calls. A client that believes it never runs them.
        let stop = stop.corrected(self.calls);
        // A cut call must not look complete: a client would run it with half its arguments.
        if !matches!(stop, NeutralStop::Length | NeutralStop::ContextFull) {
            self.close(sink);
        }
        if !self.ended {
            self.ended = true;
            sink.event(AnswerEvent::Stop(stop));
        }
    }

    /// The answer broke.
    pub(crate) fn fail(&mut self, error: UpstreamError, sink: &mut dyn Sink) {
        if !self.ended {
            self.ended = true;
            sink.event(AnswerEvent::Fail(error));
        }
    }

    /// A frame that is not JSON: an error in the upstream's own words, or something that the caller does not get.
    pub(crate) fn unreadable(&mut self, data: &[u8], is_error: bool, sink: &mut dyn Sink) {
        if is_error {
            self.fail(UpstreamError::parse(data), sink);
        } else if !data.trim_ascii().is_empty() {
            // Ending the answer for one odd frame would throw away what the customer pays for.
            self.lose("frame", sink);
        }
    }

    /// The answer broke without an error from the upstream.
    pub(crate) fn broke(&mut self, why: &str, sink: &mut dyn Sink) {
        self.fail(
            UpstreamError {
                message: why.to_owned(),
                ..UpstreamError::default()
            },
            sink,
        );
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether any block has begun.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks
    }
}

/// Reads an upstream's streamed answer.
pub(crate) trait AnswerDecoder: Send + std::fmt::Debug {
    /// The next frame.
    fn frame(&mut self, frame: &crate::Frame, sink: &mut dyn Sink);

    /// The stream is over.
    fn end(&mut self, sink: &mut dyn Sink);
}
