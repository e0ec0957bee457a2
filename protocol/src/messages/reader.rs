//! Reads the facts of messages answers and frames.
//!
//! Usage is in `message_start` and again, cumulatively and sometimes with other input counts, in `message_delta`. A frame that is
//! not JSON has no facts. Must not change frames: it only reports positions.

use std::ops::Range;
use std::sync::Arc;

use super::own;
use crate::class;
use crate::json::{Cursor, JsonError, Kind, string_span};
use crate::members::{self, MemberPlaces, Members};
use crate::usage::{UsageNames, UsageObject, UsageSlot, count, read};
use crate::{
    Additions, AnswerFacts, Frame, FrameFacts, FrameMarks, Step, StopReason, TextSample, TextSize,
    UpstreamError, WireUsage,
};

#[rustfmt::skip]
const NAMES: &UsageNames = &[
    ("",                      "input_tokens",                UsageSlot::Input),
    ("",                      "output_tokens",               UsageSlot::Output),
    ("",                      "cache_read_input_tokens",     UsageSlot::CacheRead),
    ("",                      "cache_creation_input_tokens", UsageSlot::CacheWrite),
    ("cache_creation",        "ephemeral_5m_input_tokens",   UsageSlot::CacheWrite5m),
    ("cache_creation",        "ephemeral_1h_input_tokens",   UsageSlot::CacheWrite1h),
    ("cache_creation",        "ephemeral_12h_input_tokens",  UsageSlot::CacheWrite12h),
    ("",                      "cost",                        UsageSlot::Cost),
    ("cost",                  "total_cost",                  UsageSlot::Cost),
    ("",                      "cost_in_usd_ticks",           UsageSlot::CostTicks),
    ("cost_details",          "upstream_inference_cost",     UsageSlot::CostBehind),
    ("",                      "is_byok",                     UsageSlot::IsByok),
    ("output_tokens_details", "reasoning_tokens",            UsageSlot::Reasoning),
    ("output_tokens_details", "thinking_tokens",             UsageSlot::Reasoning),
];

/// The content of one event, its `message`, or one whole answer: their names do not clash.
#[derive(Debug, Default)]
struct MessageEvent {
    kind: Option<Range<usize>>,
    id: Option<Range<usize>>,
    index: Option<u64>,
    /// Type of the block that begins.
    block: Option<Range<usize>>,
    shown: TextSize,
    thinking: TextSize,
    stop: Option<StopReason>,
    usage: Option<UsageObject>,
    places: MemberPlaces,
    /// It has a list of blocks.
    complete: bool,
    error: bool,
}

pub(super) fn read_answer(body: &[u8], additions: Option<&dyn Additions>) -> Option<AnswerFacts> {
    let mut cursor = Cursor::of_answer(body).ok()?.allowing(additions);
    let mut said = MessageEvent::default();
    say(&mut cursor, &mut said, &mut TextSample::default()).ok()?;
    let text = |span: Range<usize>| cursor.string_at(span).into_owned();
    let error = said.error
        || said
            .kind
            .is_some_and(|kind| cursor.string_at(kind) == "error");
    let usage = said.usage.unwrap_or_default();
    said.places.add(usage.places);
    said.shown.add(said.thinking);
    Some(AnswerFacts {
        marks: FrameMarks {
            usage_end: (usage.end > 0).then_some(usage.end),
            usage_empty: usage.empty,
            ..FrameMarks::at(said.places, |span| span)
        },
        id: said.id.map(text),
        usage: usage.wire,
        shown: said.shown,
        stop: said.stop,
        complete: said.complete,
        error: error.then(|| UpstreamError::parse(body)),
    })
}

pub(super) fn sample_answer(body: &[u8], seed: u64) -> TextSample {
    let mut sample = TextSample::seeded(seed);
    // What cannot be parsed was not shown.
    let _ = Cursor::of_answer(body)
        .and_then(|mut cursor| say(&mut cursor, &mut MessageEvent::default(), &mut sample));
    sample
}

fn meaning(word: &str) -> Option<StopReason> {
    match word {
        "" => None,
        "end_turn" | "stop_sequence" => Some(StopReason::End),
        "max_tokens" | "model_context_window_exceeded" => Some(StopReason::Length),
        "tool_use" => Some(StopReason::ToolCalls),
        "refusal" => Some(StopReason::Refusal),
        "pause_turn" => Some(StopReason::Pause),
        _ => Some(StopReason::Other),
    }
}

/// Reads the frames of one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    usage: WireUsage,
    id: Option<String>,
    /// The stop reason was seen.
    stopped: bool,
    /// A thinking block is open and has shown nothing yet.
    hiding: bool,
    sample: TextSample,
    /// What the provider may add.
    additions: Option<Arc<dyn Additions>>,
}

impl Reader {
    fn read_data(&mut self, frame: &Frame, data: &[u8]) -> Result<FrameFacts, JsonError> {
        let additions = self.additions.clone();
        let mut cursor = Cursor::of_answer(data)?.allowing(additions.as_deref());
        let mut said = MessageEvent::default();
        say(&mut cursor, &mut said, &mut self.sample)?;
        let kind = said
            .kind
            .clone()
            .map(|span| cursor.string_at(span))
            .unwrap_or_default();
        let mut facts = FrameFacts::default();
        match kind.as_ref() {
            "message_start" => {
                facts.step = Step::Begun;
                self.id = said
                    .id
                    .clone()
                    .map(|span| cursor.string_at(span).into_owned());
            }
            "content_block_start" => {
                facts.step = said.index.map_or(Step::None, Step::Opened);
                let block = said
                    .block
                    .clone()
                    .map(|span| cursor.string_at(span))
                    .unwrap_or_default();
                // This is also how `redacted_thinking` ends.
                self.hiding = block.ends_with("thinking");
            }
            "content_block_delta" if said.shown.bytes() > 0 || said.thinking.bytes() > 0 => {
                self.hiding = false
            }
            "content_block_stop" => {
                facts.step = said.index.map_or(Step::None, Step::Closed);
                self.hiding = false;
            }
            "message_delta" => facts.stop = said.stop,
            "message_stop" => facts.end = true,
            _ => {}
        }
        let kind = if kind.is_empty() {
            frame.event().unwrap_or_default()
        } else {
            &kind
        };
        let failed = said.error || matches!(kind, "error" | "");
        facts.error = failed.then(|| UpstreamError::parse(data));
        facts.unfamiliar = !own::is_event(kind) && facts.error.is_none();
        if facts.unfamiliar {
            said.places = members::of_unfamiliar(cursor.back_to(0))?;
        }
        self.stopped |= facts.stop.is_some();
        facts.hidden = self.hiding;
        facts.shown = said.shown;
        facts.shown.add(said.thinking);
        let usage = said.usage.map(|mut usage| {
            said.places.add(std::mem::take(&mut usage.places));
            usage
        });
        facts.marks = FrameMarks::at(said.places, |span| frame.raw_range(span));
        if let Some(usage) = usage {
            self.usage.merge(&usage.wire);
            facts.usage = true;
            facts.marks.usage_end = Some(frame.raw_position(usage.end));
            facts.marks.usage_empty = usage.empty;
        }
        facts.last = facts.end || facts.stop.is_some() || (facts.usage && self.stopped);
        Ok(facts)
    }
}

impl crate::AnswerReader for Reader {
    fn expect(&mut self, _choices: u32, seed: u64) {
        self.sample = TextSample::seeded(seed);
    }

    fn allow(&mut self, additions: &Arc<dyn Additions>) {
        self.additions = Some(Arc::clone(additions));
    }

    fn read(&mut self, frame: &Frame) -> FrameFacts {
        let Some(data) = frame.data() else {
            return FrameFacts::default();
        };
        let mut facts = self
            .read_data(frame, &data)
            .unwrap_or_else(|_| FrameFacts::unreadable());
        if facts.error.is_none() && frame.event() == Some("error") {
            facts.error = Some(UpstreamError::parse(&data));
        }
        facts
    }

    fn usage(&self) -> &WireUsage {
        &self.usage
    }

    fn answer_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn sample(&self) -> &TextSample {
        &self.sample
    }
}

fn say(
    cursor: &mut Cursor<'_>,
    said: &mut MessageEvent,
    sample: &mut TextSample,
) -> Result<(), JsonError> {
    let mut members = Members::of(own::of_answer, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        match key.name.as_ref() {
            "type" => said.kind = string_span(cursor)?,
            "index" => {
                let value = cursor.skip()?;
                said.index = count(cursor, &value);
            }
            "message" if kind == Kind::Object => message(cursor, said, sample)?,
            "delta" | "content_block" if kind == Kind::Object => block(cursor, said, sample)?,
            other => {
                if !named((other, kind), cursor, said, sample)? {
                    members.take(cursor, &key);
                    continue;
                }
            }
        }
        members.keep(cursor, &key);
    }
    members.finish(&mut said.places);
    Ok(())
}

/// The `message` of `message_start`: its type is not the event's.
fn message(
    cursor: &mut Cursor<'_>,
    said: &mut MessageEvent,
    sample: &mut TextSample,
) -> Result<(), JsonError> {
    let mut members = Members::of(own::of_answer, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        if named((&key.name, kind), cursor, said, sample)? {
            members.keep(cursor, &key);
        } else {
            members.take(cursor, &key);
        }
    }
    members.finish(&mut said.places);
    Ok(())
}

/// Members that a whole answer shares with the `message` of `message_start`; `usage` also occurs in an event.
/// Returns whether it is one of them.
fn named(
    (name, kind): (&str, Kind),
    cursor: &mut Cursor<'_>,
    said: &mut MessageEvent,
    sample: &mut TextSample,
) -> Result<bool, JsonError> {
    match name {
        "id" => said.id = string_span(cursor)?,
        "stop_reason" => {
            said.stop = string_span(cursor)?.and_then(|span| meaning(&cursor.string_at(span)))
        }
        "usage" => said.usage = read(cursor, (NAMES, own::of_usage, class::MESSAGES))?,
        "error" => said.error = cursor.skip()?.kind != Kind::Null,
        "content" if kind == Kind::Array => {
            said.complete = true;
            let mut blocks = cursor.enter_array()?;
            while cursor.element(&mut blocks)? {
                block(cursor, said, sample)?;
            }
        }
        _ => {
            cursor.skip()?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// A content block, or a delta of one or of the message.
fn block(
    cursor: &mut Cursor<'_>,
    said: &mut MessageEvent,
    sample: &mut TextSample,
) -> Result<(), JsonError> {
    let mut members = Members::inside(own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "type" => said.block = string_span(cursor)?,
            "text" | "partial_json" | "name" => sample.shown(cursor, &mut said.shown)?,
            "input" => {
                let value = cursor.skip()?;
                // In a stream a call begins with `{}`, which says nothing yet.
                if value.size.bytes() > 2 {
                    sample.show(cursor, &value, &mut said.shown);
                }
            }
            "thinking" => sample.shown(cursor, &mut said.thinking)?,
            // The summary of a compaction.
            "content" if cursor.peek()? == Kind::String => sample.shown(cursor, &mut said.shown)?,
            "stop_reason" => {
                said.stop = string_span(cursor)?.and_then(|span| meaning(&cursor.string_at(span)))
            }
            _ => {
                cursor.skip()?;
                members.take(cursor, &key);
                continue;
            }
        }
        members.keep(cursor, &key);
    }
    members.finish(&mut said.places);
    Ok(())
}
