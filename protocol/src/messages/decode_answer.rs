//! Decodes a messages answer, whole or streamed, into events.
//!
//! Blocks that only this family's servers produce are reported as lost. Overlapping blocks wait for each other.

use std::borrow::Cow;

use crate::json::{Cursor, JsonError, Kind};
use crate::translate::event::{BlockStart, NeutralStop, Sink};
use crate::translate::flow::{self, Flow};
use crate::translate::text::{compact, escape};
use crate::translate::tree::JsonNode;
use crate::usage::count;
use crate::{Frame, UpstreamError};

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    flow: Flow,
    /// Blocks that have begun and not ended, in order. Only the first one is emitted.
    blocks: Vec<OpenBlock>,
    begun: bool,
    stop: Option<NeutralStop>,
    /// Why the model refused, escaped.
    explanation: Option<String>,
}

/// What a refusal says when its target gives no reason.
const REFUSED: &str = "The model declined to answer this request.";

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    kind: Kinds,
    /// Not emitted yet, escaped.
    waiting: String,
    /// The input with which a call began, escaped; emitted if no more arrives.
    input: String,
    opened: bool,
    sent: bool,
    ended: bool,
}

#[derive(Debug)]
enum Kinds {
    Text,
    Thinking,
    Call { id: String, name: String },
    Swallowed,
}

/// Blocks that no other family has. Unlisted names are not repeated, because they are a server's own words.
const OWN: [&str; 14] = [
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "fallback",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// The content of one event.
#[derive(Debug, Default)]
struct DecodedMessageEvent<'a> {
    kind: Cow<'a, str>,
    index: Option<u64>,
    /// The text of a delta, escaped, by the name of its member.
    text: Option<&'a str>,
    seal: bool,
    citation: bool,
    block: Option<&'a str>,
    stop: Option<Cow<'a, str>>,
    stop_sequence: Option<&'a str>,
    /// Why the model refused, escaped.
    explanation: Option<String>,
}

/// The events of a whole answer.
pub(crate) fn decode_answer(body: &[u8], sink: &mut dyn Sink) {
    let mut decoder = Decoder::default();
    let Ok(answer) = JsonNode::parse(body) else {
        return decoder.flow.broke("the answer is not JSON", sink);
    };
    if answer.get("content").kind != Kind::Array {
        return decoder.flow.fail(UpstreamError::parse(body), sink);
    }
    decoder.flow.start(sink);
    for (at, block) in answer.get("content").elements().enumerate() {
        let index = at as u64;
        decoder.begin(index, block.raw, sink);
        decoder.finish(index, sink);
    }
    let sequence = answer.get("stop_sequence").text();
    let reason = stop(
        answer.get("stop_reason").word(),
        sequence.as_ref().map_or("", |text| text.as_str()),
    );
    decoder.explanation = explanation(answer.get("stop_details"));
    decoder.stop(reason, sink);
}

impl flow::AnswerDecoder for Decoder {
    fn frame(&mut self, frame: &Frame, sink: &mut dyn Sink) {
        if self.flow.has_ended() {
            return;
        }
        let Some(data) = frame.data() else {
            return self.flow.ping(sink);
        };
        let Ok(mut said) = Cursor::of_answer(&data).and_then(|mut cursor| said(&mut cursor)) else {
            return self
                .flow
                .unreadable(&data, frame.event() == Some("error"), sink);
        };
        if said.kind.is_empty() {
            said.kind = Cow::Owned(frame.event().unwrap_or_default().to_owned());
        }
        if said.kind == "error" {
            return self.flow.fail(UpstreamError::parse(&data), sink);
        }
        self.take(&said, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        match self.stop.take() {
            Some(stop) => self.stop(stop, sink),
            None => self
                .flow
                .broke("the stream ended before the answer did", sink),
        }
    }
}

impl Decoder {
    fn take(&mut self, said: &DecodedMessageEvent<'_>, sink: &mut dyn Sink) {
        match said.kind.as_ref() {
            "content_block_delta" => self.delta(said, sink),
            "content_block_start" => {
                self.begin(said.index.unwrap_or(0), said.block.unwrap_or("{}"), sink);
                self.show(sink);
            }
            "content_block_stop" => self.finish(said.index.unwrap_or(0), sink),
            "message_start"
                if self.begun && (self.flow.has_blocks() || !self.blocks.is_empty()) =>
            {
                self.flow
                    .broke("a second answer began inside the first", sink);
            }
            "message_start" => {
                self.begun = true;
                self.flow.start(sink);
            }
            "message_delta" => {
                if let Some(reason) = &said.stop {
                    self.stop = Some(stop(reason, said.stop_sequence.unwrap_or_default()));
                    self.explanation.clone_from(&said.explanation);
                }
            }
            "message_stop" => {
                let stop = self.stop.take().unwrap_or(NeutralStop::Other);
                self.stop(stop, sink);
            }
            "ping" => self.flow.ping(sink),
            _ => {}
        }
    }

    /// Ends the answer, and with it the blocks that the upstream never ended.
    fn stop(&mut self, stop: NeutralStop, sink: &mut dyn Sink) {
        let cut = matches!(stop, NeutralStop::Length | NeutralStop::ContextFull);
        let count = self.blocks.len();
        for (at, block) in self.blocks.iter_mut().enumerate() {
            // At a limit the last block is the one that was cut, and is never closed.
            block.ended |= !(cut && at + 1 == count);
        }
        self.show(sink);
        match stop {
            NeutralStop::Pause => self.flow.lose("pause_turn", sink),
            // This family says a refusal as a reason to stop, the others as content.
            NeutralStop::Refusal => {
                self.flow.open(BlockStart::Refusal, sink);
                let words = self.explanation.as_deref().unwrap_or(REFUSED);
                self.flow.delta(words, sink);
            }
            _ => {}
        }
        self.flow.stop(stop, sink);
    }

    fn begin(&mut self, index: u64, block: &str, sink: &mut dyn Sink) {
        let Ok(node) = JsonNode::parse(block.as_bytes()) else {
            return;
        };
        let plain = |name: &str| node.get(name).plain().unwrap_or_default().into_owned();
        let text = |name: &str| {
            node.get(name)
                .text()
                .map(|text| text.as_str().to_owned())
                .unwrap_or_default()
        };
        let mut input = String::new();
        let (kind, waiting) = match node.get("type").word() {
            "text" => (Kinds::Text, text("text")),
            "thinking" => (Kinds::Thinking, text("thinking")),
            "tool_use" => {
                input = node
                    .get("input")
                    .object()
                    .map(|input| escape(&compact(input)))
                    .unwrap_or_default();
                (
                    Kinds::Call {
                        id: plain("id"),
                        name: plain("name"),
                    },
                    String::new(),
                )
            }
            other => {
                self.flow.lose(
                    OWN.into_iter().find(|own| *own == other).unwrap_or("block"),
                    sink,
                );
                (Kinds::Swallowed, String::new())
            }
        };
        node.get("citations")
            .elements()
            .for_each(|_| self.flow.lose("citations", sink));
        self.blocks.push(OpenBlock {
            index,
            kind,
            waiting,
            input,
            opened: false,
            sent: false,
            ended: false,
        });
    }

    fn delta(&mut self, said: &DecodedMessageEvent<'_>, sink: &mut dyn Sink) {
        if said.citation {
            self.flow.lose("citations", sink);
        }
        let Some(text) = said.text.filter(|text| !text.is_empty() && !said.seal) else {
            return;
        };
        let found = self
            .blocks
            .iter()
            .rposition(|block| Some(block.index) == said.index && !block.ended);
        // Some servers number deltas wrongly; with only one block open, it is clear which one is meant.
        let at = found.or_else(|| (self.blocks.len() == 1).then_some(0));
        let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) else {
            return;
        };
        if matches!(block.kind, Kinds::Swallowed) {
            return;
        }
        if at == Some(0) && block.opened {
            block.sent = true;
            return self.flow.delta(text, sink);
        }
        block.waiting.push_str(text);
        self.show(sink);
    }

    fn finish(&mut self, index: u64, sink: &mut dyn Sink) {
        let found = self
            .blocks
            .iter()
            .rposition(|block| block.index == index && !block.ended);
        let at = found.or_else(|| (self.blocks.len() == 1).then_some(0));
        if let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) {
            block.ended = true;
        }
        self.show(sink);
    }

    /// Emits the first open block as far as it has arrived, and the blocks after it once it has ended.
    fn show(&mut self, sink: &mut dyn Sink) {
        while let Some(block) = self.blocks.first_mut() {
            let open = match &block.kind {
                Kinds::Swallowed => None,
                Kinds::Text => (!block.waiting.is_empty()).then_some(BlockStart::Text),
                Kinds::Thinking => (!block.waiting.is_empty()).then_some(BlockStart::Thinking),
                Kinds::Call { id, name } => Some(BlockStart::Call { id, name }),
            };
            if let Some(open) = open.filter(|_| !block.opened) {
                block.opened = true;
                self.flow.open(open, sink);
            }
            if block.opened {
                block.sent |= !block.waiting.is_empty();
                self.flow.delta(&block.waiting, sink);
                block.waiting.clear();
            }
            if !block.ended {
                return;
            }
            if block.opened {
                if matches!(block.kind, Kinds::Call { .. }) && !block.sent {
                    let input = if block.input.is_empty() {
                        "{}"
                    } else {
                        &block.input
                    };
                    self.flow.delta(input, sink);
                }
                self.flow.close(sink);
            }
            self.blocks.remove(0);
        }
    }
}

/// The meaning of a stop reason.
fn stop(reason: &str, sequence: &str) -> NeutralStop {
    match reason {
        "end_turn" => NeutralStop::End,
        "tool_use" => NeutralStop::ToolUse,
        "max_tokens" => NeutralStop::Length,
        "model_context_window_exceeded" => NeutralStop::ContextFull,
        "stop_sequence" => NeutralStop::StopString(sequence.to_owned()),
        "refusal" => NeutralStop::Refusal,
        "pause_turn" => NeutralStop::Pause,
        _ => NeutralStop::Other,
    }
}

/// The words with which a refusal is explained, escaped.
fn explanation(details: &JsonNode<'_>) -> Option<String> {
    let words = details.get("explanation").text()?;
    (!words.is_blank()).then(|| words.as_str().to_owned())
}

fn said<'a>(cursor: &mut Cursor<'a>) -> Result<DecodedMessageEvent<'a>, JsonError> {
    let mut said = DecodedMessageEvent::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "delta" if cursor.peek()? == Kind::Object => delta(cursor, &mut said)?,
            name => {
                let value = cursor.skip()?;
                match name {
                    "type" => said.kind = cursor.text_of(&value).unwrap_or_default(),
                    "index" => said.index = count(cursor, &value),
                    "content_block" => said.block = Some(cursor.slice(value.span)),
                    _ => {}
                }
            }
        }
    }
    Ok(said)
}

fn delta<'a>(cursor: &mut Cursor<'a>, said: &mut DecodedMessageEvent<'a>) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let value = cursor.skip()?;
        match key.name.as_ref() {
            "type" => {
                said.citation = cursor.raw_text(&value) == Some("citations_delta");
                said.seal = said.citation || cursor.raw_text(&value) == Some("signature_delta");
            }
            "text" | "thinking" | "partial_json" => {
                said.text = cursor.raw_text(&value).or(said.text)
            }
            "stop_reason" => said.stop = cursor.text_of(&value),
            "stop_sequence" => said.stop_sequence = cursor.raw_text(&value),
            "stop_details" => {
                let details = JsonNode::parse(cursor.slice(value.span).as_bytes());
                said.explanation = details.ok().and_then(|details| explanation(&details));
            }
            _ => {}
        }
    }
    Ok(())
}
