//! Encodes events as a messages answer, whole or streamed.
//!
//! Counts are only in `message_delta`: an early guess would stay on a client's screen after a cut. Thinking of another family gets
//! a signature of our own, without which clients could not send it back.

use serde_json::json;

use super::synthetic::usage_value;
use super::writer::error_event;
use crate::json::{quoted, unescape};
use crate::translate::event::{
    AnswerBlock, AnswerEvent, BlockKind, BlockStart, NeutralAnswer, NeutralStop,
};
use crate::translate::freeform::is_object;
use crate::translate::ids::Memo;
use crate::translate::losses::Losses;
use crate::translate::seals::PLAIN;
use crate::translate::writing::{self, AnswerWish, Template, declared};
use crate::{ErrorBody, ReportedUsage, UsageWish, sse};

/// Writes the events of one answer.
#[derive(Debug)]
pub(crate) struct Encoder {
    memo: Memo,
    /// The first event, until it is written.
    start: Option<Vec<u8>>,
    index: usize,
    delta: Template,
    open: bool,
    thinking: bool,
}

pub(crate) fn encoder(memo: Memo, wish: &AnswerWish<'_>) -> Encoder {
    let message = message(
        wish,
        "[]",
        "null",
        "null",
        &usage_value(&ReportedUsage::default()).to_string(),
    );
    let mut start = sse::event(
        "message_start",
        &format!(r#"{{"type":"message_start","message":{message}}}"#),
    );
    start.extend(sse::event("ping", r#"{"type":"ping"}"#));
    Encoder {
        memo,
        start: Some(start),
        index: 0,
        delta: Template::default(),
        open: false,
        thinking: false,
    }
}

/// A message object from members that are JSON already.
fn message(
    wish: &AnswerWish<'_>,
    content: &str,
    stop: &str,
    sequence: &str,
    usage: &str,
) -> String {
    let (id, model) = (quoted(&format!("msg_{}", wish.id)), quoted(wish.model));
    format!(
        r#"{{"id":{id},"type":"message","role":"assistant","model":{model},"content":{content},"stop_reason":{stop},"stop_sequence":{sequence},"usage":{usage}}}"#
    )
}

impl writing::AnswerEncoder for Encoder {
    fn event(&mut self, event: AnswerEvent<'_>, out: &mut Vec<u8>) {
        if let Some(start) = self.start.take() {
            out.extend(start);
        }
        match event {
            AnswerEvent::Delta(text) => self.delta.write(text, out),
            AnswerEvent::Open(open) => self.open(open, out),
            AnswerEvent::Close => self.close(out),
            AnswerEvent::Ping => out.extend(sse::event("ping", r#"{"type":"ping"}"#)),
            AnswerEvent::Start
            | AnswerEvent::Logprobs(_)
            | AnswerEvent::Lost(_)
            | AnswerEvent::Stop(_)
            | AnswerEvent::Fail(_) => {}
        }
    }

    fn stop(
        &mut self,
        stop: &NeutralStop,
        usage: &ReportedUsage,
        _: UsageWish<'_>,
        out: &mut Vec<u8>,
    ) {
        if let Some(start) = self.start.take() {
            out.extend(start);
        }
        self.close(out);
        let (reason, sequence) = words(stop);
        let usage = usage_value(usage);
        out.extend(sse::event(
            "message_delta",
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":{sequence}}},"usage":{usage}}}"#
            ),
        ));
        out.extend(sse::event("message_stop", r#"{"type":"message_stop"}"#));
    }

    fn fail(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        out.extend(error_event(error));
    }
}

impl Encoder {
    fn open(&mut self, open: BlockStart<'_>, out: &mut Vec<u8>) {
        let (block, kind, member) = match open {
            BlockStart::Text | BlockStart::Refusal => (
                r#"{"type":"text","text":""}"#.to_owned(),
                "text_delta",
                "text",
            ),
            BlockStart::Thinking => (
                r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned(),
                "thinking_delta",
                "thinking",
            ),
            BlockStart::Call { id, name } => {
                let (name, ..) = declared(&self.memo, name);
                let (id, name) = (quoted(&call_id(id)), quoted(name));
                (
                    format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#),
                    "input_json_delta",
                    "partial_json",
                )
            }
        };
        let index = self.index;
        out.extend(sse::event(
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        ));
        self.delta = Template::new(
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"{member}\":\""
            ),
            "\"}}\n\n",
        );
        self.open = true;
        self.thinking = open == BlockStart::Thinking;
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let index = self.index;
        if self.thinking {
            let delta = format!(r#"{{"type":"signature_delta","signature":"{PLAIN}"}}"#);
            let data =
                format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
            out.extend(sse::event("content_block_delta", &data));
        }
        out.extend(sse::event(
            "content_block_stop",
            &format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        ));
        self.index += 1;
    }
}

/// The id of a call in the form this family's clients accept.
fn call_id(id: &str) -> std::borrow::Cow<'_, str> {
    use crate::translate::abilities::ToolIds;
    crate::translate::ids::call_id(id, crate::Family::Messages, ToolIds::Any)
}

/// Stop reason, and the stop string as JSON.
fn words(stop: &NeutralStop) -> (&'static str, String) {
    let reason = match stop {
        NeutralStop::End | NeutralStop::Other => "end_turn",
        NeutralStop::ToolUse => "tool_use",
        NeutralStop::Length => "max_tokens",
        NeutralStop::ContextFull => "model_context_window_exceeded",
        NeutralStop::Refusal | NeutralStop::Filter => "refusal",
        NeutralStop::Pause => "pause_turn",
        NeutralStop::StopString(text) => {
            return (
                "stop_sequence",
                if text.is_empty() {
                    "null".to_owned()
                } else {
                    format!("\"{text}\"")
                },
            );
        }
    };
    (reason, "null".to_owned())
}

/// The whole answer.
pub(crate) fn encode_answer(
    answer: &NeutralAnswer,
    stop: &NeutralStop,
    memo: &Memo,
    wish: &AnswerWish<'_>,
    usage: &ReportedUsage,
    _: UsageWish<'_>,
) -> Vec<u8> {
    let blocks = answer.blocks.iter().map(|block| match &block.kind {
        BlockKind::Text | BlockKind::Refusal => {
            format!(r#"{{"type":"text","text":"{}"}}"#, block.text)
        }
        BlockKind::Thinking => format!(
            r#"{{"type":"thinking","thinking":"{}","signature":"{PLAIN}"}}"#,
            block.text
        ),
        BlockKind::Call { id, name } => {
            let input = input(block).0;
            let (name, ..) = declared(memo, name);
            format!(
                r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
                quoted(&call_id(id)),
                quoted(name)
            )
        }
    });
    let content = format!("[{}]", blocks.collect::<Vec<String>>().join(","));
    let (reason, sequence) = words(stop);
    message(
        wish,
        &content,
        &quoted(reason),
        &sequence,
        &usage_value(usage).to_string(),
    )
    .into_bytes()
}

/// What a whole answer loses or changes in this family.
pub(crate) fn unsaid(answer: &NeutralAnswer, losses: &mut Losses) {
    for block in &answer.blocks {
        if matches!(block.kind, BlockKind::Call { .. }) && input(block).1 {
            losses.add_to_answer("arguments", "wrapped");
        }
    }
}

/// A call's arguments as an object, and whether they had to be wrapped.
fn input(block: &AnswerBlock) -> (String, bool) {
    let json = unescape(&block.text);
    let text = json.trim();
    match text {
        "" => ("{}".to_owned(), false),
        text if is_object(text) => (text.to_owned(), false),
        _ => (json!({"_raw": text}).to_string(), true),
    }
}
