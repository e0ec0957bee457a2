//! Decodes a chat answer, whole or streamed, into events. Many servers write this family, so it tolerates many mistakes.
//!
//! One block is open at a time. Calls may arrive interleaved: only the first unfinished one is open, the others wait.

use std::borrow::Cow;

use super::calls::AnswerCalls;
use super::chunk::{Chunk, chunk};
use crate::json::Cursor;
use crate::translate::event::{BlockStart, NeutralStop, Sink};
use crate::translate::flow::{self, Flow};
use crate::translate::tree::JsonNode;
use crate::{Frame, UpstreamError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlockKind {
    Text,
    Thinking,
    Refusal,
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    flow: Flow,
    shown: Option<OpenBlockKind>,
    calls: AnswerCalls,
    /// What arrived while a call was unfinished.
    late: Vec<(OpenBlockKind, String)>,
    refused: bool,
    stop: Option<NeutralStop>,
}

/// The events of a whole answer.
pub(crate) fn decode_answer(body: &[u8], sink: &mut dyn Sink) {
    let mut decoder = Decoder::default();
    decoder.data(body, false, sink);
    if decoder.stop.is_some() || decoder.flow.has_blocks() || decoder.calls.any() {
        decoder.finish(sink);
    } else {
        decoder.flow.broke("the answer has no choices", sink);
    }
}

impl flow::AnswerDecoder for Decoder {
    fn frame(&mut self, frame: &Frame, sink: &mut dyn Sink) {
        let Some(data) = frame.data() else {
            return self.flow.ping(sink);
        };
        if data.trim_ascii() == b"[DONE]" {
            return self.done(sink);
        }
        self.data(&data, frame.event() == Some("error"), sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if self.stop.is_some() {
            self.finish(sink);
        } else {
            self.flow
                .broke("the stream ended before the answer did", sink);
        }
    }
}

impl Decoder {
    fn done(&mut self, sink: &mut dyn Sink) {
        if self.stop.is_some() || self.flow.has_blocks() || self.calls.any() {
            self.finish(sink);
        } else {
            self.flow.broke("the stream ended without an answer", sink);
        }
    }

    fn data(&mut self, data: &[u8], error: bool, sink: &mut dyn Sink) {
        if self.flow.has_ended() {
            return;
        }
        let Ok(chunk) = Cursor::of_answer(data).and_then(|mut cursor| chunk(&mut cursor)) else {
            return self.flow.unreadable(data, error, sink);
        };
        if chunk.error || error {
            return self.flow.fail(UpstreamError::parse(data), sink);
        }
        self.take(chunk, sink);
    }

    fn take(&mut self, chunk: Chunk<'_>, sink: &mut dyn Sink) {
        if !chunk.said {
            return;
        }
        self.flow.start(sink);
        chunk
            .lost
            .iter()
            .for_each(|what| self.flow.lose(what, sink));
        match (chunk.reasoning, chunk.details) {
            (Some(text), _) if !text.is_empty() => self.text(OpenBlockKind::Thinking, text, sink),
            (_, Some(list)) => detail_texts(list)
                .iter()
                .for_each(|text| self.text(OpenBlockKind::Thinking, text, sink)),
            _ => {}
        }
        chunk
            .content
            .into_iter()
            .for_each(|text| self.text(OpenBlockKind::Text, text, sink));
        if let Some(list) = chunk.parts {
            part_texts(list)
                .iter()
                .for_each(|(shown, text)| self.text(*shown, text, sink));
        }
        if let Some(text) = chunk.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(OpenBlockKind::Refusal, text, sink);
        }
        for fragment in &chunk.fragments {
            self.calls.take(fragment);
        }
        if !chunk.fragments.is_empty() {
            self.advance(false, sink);
        }
        if let Some(reason) = chunk.finish {
            self.stop = Some(stop(reason));
        }
    }

    fn text(&mut self, shown: OpenBlockKind, text: &str, sink: &mut dyn Sink) {
        if text.is_empty() {
            return;
        }
        if self.calls.unfinished() {
            match self.late.last_mut() {
                Some((last, held)) if *last == shown => held.push_str(text),
                _ => self.late.push((shown, text.to_owned())),
            }
            return;
        }
        if self.shown != Some(shown) {
            self.shown = Some(shown);
            let open = match shown {
                OpenBlockKind::Text => BlockStart::Text,
                OpenBlockKind::Thinking => BlockStart::Thinking,
                OpenBlockKind::Refusal => BlockStart::Refusal,
            };
            self.flow.open(open, sink);
        }
        self.flow.delta(text, sink);
    }

    /// Emits what can be emitted of the calls, then what waited for them.
    fn advance(&mut self, last: bool, sink: &mut dyn Sink) {
        self.shown = None;
        self.calls.advance(last, &mut self.flow, sink);
        if !self.calls.unfinished() {
            for (shown, text) in std::mem::take(&mut self.late) {
                self.text(shown, &text, sink);
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let stop = self.stop.take().unwrap_or(NeutralStop::End);
        if self.calls.any() {
            // At the limit the last call may be cut: then it stays open.
            let cut = stop == NeutralStop::Length;
            self.calls.cut = cut;
            self.advance(true, sink);
        }
        let stop = if self.refused && matches!(stop, NeutralStop::End | NeutralStop::Other) {
            NeutralStop::Refusal
        } else {
            stop
        };
        self.flow.stop(stop, sink);
    }
}

/// The meaning of a finish reason.
fn stop(reason: &str) -> NeutralStop {
    match reason {
        "tool_calls" | "function_call" => NeutralStop::ToolUse,
        "length" | "max_tokens" => NeutralStop::Length,
        "content_filter" => NeutralStop::Filter,
        "stop" | "eos" | "end_turn" => NeutralStop::End,
        _ => NeutralStop::Other,
    }
}

/// The texts of `reasoning_details`.
fn detail_texts(list: &str) -> Vec<Cow<'_, str>> {
    let Ok(list) = JsonNode::parse(list.as_bytes()) else {
        return Vec::new();
    };
    list.elements()
        .filter_map(|detail| {
            detail
                .get("text")
                .text()
                .or_else(|| detail.get("summary").text())
        })
        .map(|text| Cow::Owned(text.as_str().to_owned()))
        .collect()
}

/// The texts of a content that is a list of parts.
fn part_texts(list: &str) -> Vec<(OpenBlockKind, String)> {
    let Ok(list) = JsonNode::parse(list.as_bytes()) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for part in list.elements() {
        let inner = part.get("thinking");
        let thinking = inner
            .elements()
            .filter_map(|part| part.get("text").text())
            .chain(inner.text());
        out.extend(thinking.map(|text| (OpenBlockKind::Thinking, text.as_str().to_owned())));
        out.extend(
            part.get("text")
                .text()
                .map(|text| (OpenBlockKind::Text, text.as_str().to_owned())),
        );
    }
    out
}
