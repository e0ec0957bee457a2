//! What messages answers and frames say.
//!
//! Usage stands in `message_start` and again, cumulatively and sometimes with other input counts, in `message_delta`. A frame
//! that is not JSON has no facts. Must not change frames: it only says where things stand.

use std::ops::Range;

use super::writer;
use crate::json::{Cursor, JsonError, Kind, string_span, text_size};
use crate::usage::{Names, Slot, UsageObject, count, read};
use crate::{AnswerFacts, ErrorBody, Frame, FrameFacts, StreamReader, TextSize, UpstreamError, Usage, UsageWish, WireUsage};

#[rustfmt::skip]
const NAMES: &Names = &[
    ("",                      "input_tokens",                Slot::Input),
    ("",                      "cache_read_input_tokens",     Slot::CacheRead),
    ("",                      "cache_creation_input_tokens", Slot::CacheWrite),
    ("cache_creation",        "ephemeral_5m_input_tokens",   Slot::CacheWrite5m),
    ("cache_creation",        "ephemeral_1h_input_tokens",   Slot::CacheWrite1h),
    ("",                      "output_tokens",               Slot::Output),
    ("output_tokens_details", "reasoning_tokens",            Slot::Reasoning),
    ("output_tokens_details", "thinking_tokens",             Slot::Reasoning),
];

/// What one event, its `message`, or one whole answer says: the names do not clash.
#[derive(Debug, Default)]
struct Said {
    kind: Option<Range<usize>>,
    id: Option<Range<usize>>,
    model: Option<Range<usize>>,
    index: Option<u64>,
    /// Type of the block that begins.
    block: Option<Range<usize>>,
    shown: TextSize,
    thinking: TextSize,
    stop: Option<Range<usize>>,
    usage: Option<UsageObject>,
    error: bool,
}

pub(super) fn read_answer(body: &[u8]) -> Option<AnswerFacts> {
    let mut cursor = Cursor::new(body).ok()?;
    let mut said = Said::default();
    say(&mut cursor, &mut said).ok()?;
    let text = |span: Range<usize>| cursor.string_at(span).into_owned();
    let error = said.error || said.kind.is_some_and(|kind| cursor.string_at(kind) == "error");
    let usage = said.usage.unwrap_or_default();
    said.shown.add(said.thinking);
    Some(AnswerFacts {
        model: said.model,
        id: said.id.map(text),
        usage_end: (usage.end > 0).then_some(usage.end),
        usage_empty: usage.empty,
        cuts: usage.cuts,
        usage: usage.wire,
        shown: said.shown,
        stop: said.stop.map(text),
        error: error.then(|| UpstreamError::parse(body)),
    })
}

/// Reads the frames of one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    usage: WireUsage,
    head: Head,
    /// A thinking block is open and has shown nothing yet.
    hiding: bool,
}

/// What an ending needs from the events before it.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) started: bool,
    /// Content blocks that have begun and not ended.
    pub(super) open: Vec<u64>,
    pub(super) stopped: bool,
    pub(super) ended: bool,
}

impl Reader {
    fn read_data(&mut self, frame: &Frame, data: &[u8]) -> Result<FrameFacts, JsonError> {
        let mut cursor = Cursor::new(data)?;
        let mut said = Said::default();
        say(&mut cursor, &mut said)?;
        let kind = said.kind.clone().map(|span| cursor.string_at(span)).unwrap_or_default();
        let mut facts = FrameFacts::default();
        match kind.as_ref() {
            "message_start" => {
                self.head.started = true;
                self.head.id = said.id.clone().map(|span| cursor.string_at(span).into_owned());
                facts.model = said.model.clone().map(|span| frame.raw_range(span));
            }
            "content_block_start" => {
                self.head.open.extend(said.index);
                let block = said.block.clone().map(|span| cursor.string_at(span)).unwrap_or_default();
                self.hiding = block.ends_with("thinking");
            }
            "content_block_delta" if said.shown.bytes() > 0 || said.thinking.bytes() > 0 => self.hiding = false,
            "content_block_stop" => {
                self.head.open.retain(|index| Some(*index) != said.index);
                self.hiding = false;
            }
            "message_delta" => facts.stop = said.stop.is_some(),
            "message_stop" => (facts.end, self.head.ended) = (true, true),
            _ => {}
        }
        facts.error = (said.error || kind == "error").then(|| UpstreamError::parse(data));
        self.head.stopped |= facts.stop;
        facts.hidden = self.hiding;
        facts.shown = said.shown;
        facts.shown.add(said.thinking);
        if let Some(usage) = said.usage {
            self.usage.merge(&usage.wire);
            facts.usage = true;
            facts.usage_end = Some(frame.raw_position(usage.end));
            facts.usage_empty = usage.empty;
            facts.cuts = usage.cuts.into_iter().map(|span| frame.raw_range(span)).collect();
        }
        facts.last = facts.end || facts.stop || (facts.usage && self.head.stopped);
        Ok(facts)
    }
}

impl StreamReader for Reader {
    fn read(&mut self, frame: &Frame) -> FrameFacts {
        let Some(data) = frame.data() else { return FrameFacts::default() };
        let mut facts = self.read_data(frame, &data).unwrap_or_default();
        if facts.error.is_none() && frame.event() == Some("error") {
            facts.error = Some(UpstreamError::parse(&data));
        }
        facts
    }

    fn usage(&self) -> &WireUsage {
        &self.usage
    }

    fn answer_id(&self) -> Option<&str> {
        self.head.id.as_deref()
    }

    fn end_at_limit(&mut self, slug: &str, usage: &Usage, _wish: UsageWish<'_>) -> Vec<u8> {
        writer::end_at_limit(&self.head, slug, usage)
    }

    fn missing_end(&self) -> Vec<u8> {
        crate::sse::event("message_stop", r#"{"type":"message_stop"}"#)
    }

    fn error_event(&mut self, _slug: &str, error: &ErrorBody) -> Vec<u8> {
        writer::error_event(error)
    }
}

fn say(cursor: &mut Cursor<'_>, said: &mut Said) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        match key.name.as_ref() {
            "type" => said.kind = string_span(cursor)?,
            "index" => {
                let value = cursor.skip()?;
                said.index = count(cursor, &value);
            }
            "message" if kind == Kind::Object => message(cursor, said)?,
            "delta" | "content_block" if kind == Kind::Object => block(cursor, said)?,
            other => named(other, kind, cursor, said)?,
        }
    }
    Ok(())
}

/// The `message` of `message_start`: its type is not the event's.
fn message(cursor: &mut Cursor<'_>, said: &mut Said) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        named(&key.name, kind, cursor, said)?;
    }
    Ok(())
}

/// Members that a whole answer has and the `message` of `message_start`, and `usage` also an event.
fn named(name: &str, kind: Kind, cursor: &mut Cursor<'_>, said: &mut Said) -> Result<(), JsonError> {
    match name {
        "id" => said.id = string_span(cursor)?,
        "model" => said.model = string_span(cursor)?,
        "stop_reason" => said.stop = string_span(cursor)?,
        "usage" => said.usage = read(cursor, NAMES)?,
        "error" => said.error = cursor.skip()?.kind != Kind::Null,
        "content" if kind == Kind::Array => {
            let mut blocks = cursor.enter_array()?;
            while cursor.element(&mut blocks)? {
                block(cursor, said)?;
            }
        }
        _ => {
            cursor.skip()?;
        }
    }
    Ok(())
}

/// A content block, or a delta of one or of the message.
fn block(cursor: &mut Cursor<'_>, said: &mut Said) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "type" => said.block = string_span(cursor)?,
            "text" | "partial_json" | "name" => said.shown.add(text_size(cursor)?),
            "input" => {
                let value = cursor.skip()?;
                if value.size.bytes() > 2 {
                    said.shown.add(value.size);
                }
            }
            "thinking" => said.thinking.add(text_size(cursor)?),
            "stop_reason" => said.stop = string_span(cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
    }
    Ok(())
}
