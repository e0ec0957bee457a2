//! What responses answers and events say.
//!
//! Usage stands in the event that ends the answer. The reader keeps the items as their events describe them, because an ending
//! made here must repeat them. A frame that is not JSON has no facts. Must not change frames: it only says where things stand.

use std::ops::Range;

use super::items::Items;
use super::writer;
use crate::json::{Cursor, Cuts, JsonError, Kind, Value, string_span, text_size};
use crate::usage::{Names, Slot, UsageObject, count, read};
use crate::{AnswerFacts, ErrorBody, Frame, FrameFacts, StreamReader, TextSize, UpstreamError, Usage, UsageWish, WireUsage};

#[rustfmt::skip]
const NAMES: &Names = &[
    ("",                           "input_tokens",       Slot::Input),
    ("input_tokens_details",       "cached_tokens",      Slot::CacheRead),
    ("input_tokens_details",       "cache_write_tokens", Slot::CacheWrite),
    ("",                           "output_tokens",      Slot::Output),
    ("output_tokens_details",      "reasoning_tokens",   Slot::Reasoning),
    ("cache_write_tokens_details", "ttl_12h_tokens",     Slot::CacheWrite1h),
];

/// What a response object says, whole or inside an event.
#[derive(Debug, Default)]
struct Response {
    id: Option<Range<usize>>,
    model: Option<Range<usize>>,
    status: Option<Range<usize>>,
    reason: Option<Range<usize>>,
    shown: TextSize,
    usage: Option<UsageObject>,
    cuts: Vec<Range<usize>>,
    error: bool,
}

/// What one event says. Values are kept by their places.
#[derive(Debug, Default)]
pub(super) struct Event {
    kind: Option<Range<usize>>,
    sequence: Option<u64>,
    pub(super) output_index: Option<u64>,
    /// Index of a content part or of a summary part.
    pub(super) part_index: Option<u64>,
    pub(super) item: Option<Value>,
    pub(super) part: Option<Value>,
    pub(super) delta: Option<Value>,
    response: Option<Range<usize>>,
    error: bool,
}

pub(super) fn read_answer(body: &[u8]) -> Option<AnswerFacts> {
    let mut cursor = Cursor::new(body).ok()?;
    let said = response(&mut cursor).ok()?;
    let text = |span: Range<usize>| cursor.string_at(span).into_owned();
    let usage = said.usage.unwrap_or_default();
    Some(AnswerFacts {
        model: said.model,
        id: said.id.map(text),
        usage_end: (usage.end > 0).then_some(usage.end),
        usage_empty: usage.empty,
        cuts: said.cuts,
        usage: WireUsage { input_is_total: true, ..usage.wire },
        shown: said.shown,
        stop: said.reason.or(said.status).map(text),
        error: said.error.then(|| UpstreamError::parse(body)),
    })
}

/// Reads the frames of one streamed answer.
#[derive(Debug)]
pub(super) struct Reader {
    usage: WireUsage,
    head: Head,
}

/// What an ending needs from the events before it.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    /// The last response object that was not an end.
    pub(super) response: String,
    pub(super) next_sequence: u64,
    pub(super) items: Items,
    pub(super) ended: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self { usage: WireUsage { input_is_total: true, ..WireUsage::default() }, head: Head::default() }
    }
}

impl Reader {
    fn read_data(&mut self, frame: &Frame, data: &[u8]) -> Result<FrameFacts, JsonError> {
        let mut cursor = Cursor::new(data)?;
        let event = event(&mut cursor)?;
        let kind = event.kind.clone().map(|span| cursor.string_at(span));
        let kind = kind.as_deref().or(frame.event()).unwrap_or_default();
        self.head.next_sequence = event.sequence.unwrap_or(self.head.next_sequence).saturating_add(1);
        let mut facts = FrameFacts::default();
        if let Some(delta) = event.delta.as_ref().filter(|delta| delta.kind == Kind::String) {
            facts.shown = delta.text_size();
        }
        facts.hidden = kind == "response.output_item.added" && self.head.items.is_reasoning(&cursor, &event);
        facts.stop = matches!(kind, "response.completed" | "response.incomplete");
        facts.end = facts.stop || kind == "response.failed";
        facts.last = facts.end;
        if let Some(span) = event.response.clone() {
            self.read_response(frame, &cursor, span, &mut facts)?;
        }
        if event.error || matches!(kind, "error" | "response.failed") {
            facts.error = Some(UpstreamError::parse(data));
        }
        self.head.ended |= facts.end;
        self.head.items.note(kind, &cursor, &event);
        Ok(facts)
    }

    fn read_response(
        &mut self,
        frame: &Frame,
        cursor: &Cursor<'_>,
        span: Range<usize>,
        facts: &mut FrameFacts,
    ) -> Result<(), JsonError> {
        let said = response(&mut cursor.back_to(span.start))?;
        facts.model = said.model.map(|span| frame.raw_range(span));
        if self.head.id.is_none() {
            self.head.id = said.id.map(|span| cursor.string_at(span).into_owned());
        }
        if !facts.end {
            cursor.slice(span).clone_into(&mut self.head.response);
        }
        facts.cuts = said.cuts.into_iter().map(|span| frame.raw_range(span)).collect();
        if let Some(usage) = said.usage {
            self.usage.merge(&usage.wire);
            facts.usage = true;
            facts.usage_end = Some(frame.raw_position(usage.end));
            facts.usage_empty = usage.empty;
        }
        Ok(())
    }
}

impl StreamReader for Reader {
    fn read(&mut self, frame: &Frame) -> FrameFacts {
        let Some(data) = frame.data() else { return FrameFacts::default() };
        self.read_data(frame, &data).unwrap_or_default()
    }

    fn usage(&self) -> &WireUsage {
        &self.usage
    }

    fn answer_id(&self) -> Option<&str> {
        self.head.id.as_deref()
    }

    fn end_at_limit(&mut self, slug: &str, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
        writer::end_at_limit(&mut self.head, slug, usage, wish)
    }

    fn missing_end(&self) -> Vec<u8> {
        // The last event carries the answer itself; without it there is nothing to close.
        Vec::new()
    }

    fn error_event(&mut self, slug: &str, error: &ErrorBody) -> Vec<u8> {
        writer::error_event(&mut self.head, slug, error)
    }
}

fn event(cursor: &mut Cursor<'_>) -> Result<Event, JsonError> {
    let mut event = Event::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name == "type" {
            event.kind = string_span(cursor)?;
            continue;
        }
        let value = cursor.skip()?;
        match key.name.as_ref() {
            "sequence_number" => event.sequence = count(cursor, &value),
            "output_index" => event.output_index = count(cursor, &value),
            "content_index" | "summary_index" => event.part_index = count(cursor, &value),
            "item" => event.item = Some(value),
            "part" => event.part = Some(value),
            "delta" => event.delta = Some(value),
            "response" if value.kind == Kind::Object => event.response = Some(value.span),
            "error" => event.error = value.kind != Kind::Null,
            _ => {}
        }
    }
    Ok(event)
}

fn response(cursor: &mut Cursor<'_>) -> Result<Response, JsonError> {
    let mut said = Response::default();
    let mut cuts = Cuts::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        match key.name.as_ref() {
            "id" => said.id = string_span(cursor)?,
            "model" => said.model = string_span(cursor)?,
            "status" => said.status = string_span(cursor)?,
            "incomplete_details" if kind == Kind::Object => said.reason = reason(cursor)?,
            "usage" => said.usage = read(cursor, NAMES)?,
            "error" => said.error = cursor.skip()?.kind != Kind::Null,
            "output" => shown(cursor, &mut said.shown)?,
            _ => {
                cursor.skip()?;
            }
        }
        cuts.take(key.at..cursor.at(), key.name != "provider");
    }
    said.cuts = cuts.finish();
    said.cuts.extend(said.usage.iter().flat_map(|usage| usage.cuts.iter().cloned()));
    Ok(said)
}

fn reason(cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, JsonError> {
    let mut reason = None;
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "reason" => reason = string_span(cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
    }
    Ok(reason)
}

/// Texts and arguments of output items, at whatever level they stand.
fn shown(cursor: &mut Cursor<'_>, size: &mut TextSize) -> Result<(), JsonError> {
    match cursor.peek()? {
        Kind::Array => {
            let mut walk = cursor.enter_array()?;
            while cursor.element(&mut walk)? {
                shown(cursor, size)?;
            }
        }
        Kind::Object => {
            let mut walk = cursor.enter_object()?;
            while let Some(key) = cursor.member(&mut walk)? {
                match key.name.as_ref() {
                    "content" | "summary" => shown(cursor, size)?,
                    "text" | "refusal" | "arguments" | "name" | "input" => size.add(text_size(cursor)?),
                    _ => {
                        cursor.skip()?;
                    }
                }
            }
        }
        _ => {
            cursor.skip()?;
        }
    }
    Ok(())
}
