//! Reads the facts of responses answers and events.
//!
//! Usage is in the event that ends the answer. The facts of an event include its effect on the items, because an ending written by
//! the gateway must repeat them. A frame that is not JSON has no facts. Must not change frames.

use std::ops::Range;
use std::sync::Arc;

use super::items::member;
use super::own;
use crate::class::{self, SaidClasses};
use crate::json::{Cursor, JsonError, Kind, Value, quoted, splice, string_span};
use crate::members::{self, MemberPlaces, Members};
use crate::usage::{UsageNames, UsageObject, UsageSlot, count, read};
use crate::{
    Additions, AnswerFacts, Brings, Frame, FrameFacts, FrameMarks, ItemEvent, Step, StopReason,
    TextSample, TextSize, UpstreamError, WireUsage,
};

#[rustfmt::skip]
const NAMES: &UsageNames = &[
    ("",                           "input_tokens",       UsageSlot::Input),
    ("",                           "output_tokens",      UsageSlot::Output),
    ("",                           "total_tokens",       UsageSlot::Total),
    ("input_tokens_details",       "cached_tokens",      UsageSlot::CacheRead),
    ("output_tokens_details",      "reasoning_tokens",   UsageSlot::Reasoning),
    ("input_tokens_details",       "cache_write_tokens", UsageSlot::CacheWrite),
    ("cache_creation",             "ephemeral_5m_input_tokens",  UsageSlot::CacheWrite5m),
    ("cache_creation",             "ephemeral_1h_input_tokens",  UsageSlot::CacheWrite1h),
    ("cache_creation",             "ephemeral_12h_input_tokens", UsageSlot::CacheWrite12h),
    ("cache_write_tokens_details", "ttl_5m_tokens",      UsageSlot::CacheWrite5m),
    ("cache_write_tokens_details", "ttl_30m_tokens",     UsageSlot::CacheWrite5m),
    ("cache_write_tokens_details", "ttl_1h_tokens",      UsageSlot::CacheWrite1h),
    ("cache_write_tokens_details", "ttl_12h_tokens",     UsageSlot::CacheWrite12h),
    ("",                           "cost",               UsageSlot::Cost),
    ("cost",                       "total_cost",         UsageSlot::Cost),
    ("",                           "cost_in_usd_ticks",  UsageSlot::CostTicks),
    ("cost_details",               "upstream_inference_cost", UsageSlot::CostBehind),
    ("",                           "is_byok",            UsageSlot::IsByok),
];

/// The content of a response object, whole or inside an event.
#[derive(Debug, Default)]
struct Response {
    id: Option<Range<usize>>,
    status: Option<Range<usize>>,
    reason: Option<Range<usize>>,
    shown: TextSize,
    /// Whether some item asks the client to run a tool.
    calls: bool,
    usage: Option<UsageObject>,
    places: MemberPlaces,
    /// The class that was served, if it says so.
    classes: SaidClasses,
    /// It has a list of items, or says how far it is.
    complete: bool,
    error: bool,
}

/// The content of one event. Values are kept by their positions.
#[derive(Debug, Default)]
struct ResponseEvent {
    kind: Option<Range<usize>>,
    sequence: Option<u64>,
    output_index: Option<u64>,
    /// Index of a content part or of a summary part.
    part_index: Option<u64>,
    item: Option<Value>,
    part: Option<Value>,
    /// Its text.
    delta: Option<Value>,
    response: Option<Range<usize>>,
    /// The edits outside the response object.
    places: MemberPlaces,
    error: bool,
}

pub(super) fn read_answer(body: &[u8], additions: Option<&dyn Additions>) -> Option<AnswerFacts> {
    let mut cursor = Cursor::of_answer(body).ok()?.allowing(additions);
    let said = response(&mut cursor, &mut TextSample::default()).ok()?;
    let text = |span: Range<usize>| cursor.string_at(span).into_owned();
    let stop = meaning(&cursor, &said, false);
    let failed = said.error
        || said
            .status
            .as_ref()
            .is_some_and(|status| cursor.string_at(status.clone()) == "failed");
    let usage = said.usage.unwrap_or_default();
    Some(AnswerFacts {
        marks: FrameMarks {
            usage_end: (usage.end > 0).then_some(usage.end),
            usage_empty: usage.empty,
            ..FrameMarks::at(said.places, |span| span)
        },
        id: said.id.map(text),
        usage: WireUsage {
            input_is_total: true,
            said: said.classes,
            ..usage.wire
        },
        shown: said.shown,
        stop,
        complete: said.complete,
        error: failed.then(|| UpstreamError::parse(body)),
    })
}

pub(super) fn sample_answer(body: &[u8], seed: u64) -> TextSample {
    let mut sample = TextSample::seeded(seed);
    // What cannot be parsed was not shown.
    let _ = Cursor::of_answer(body).and_then(|mut cursor| response(&mut cursor, &mut sample));
    sample
}

/// Items by which the model asks the client to run something.
const CLIENT_CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
];

/// By how much a finished item's text may exceed its deltas (the name of a call), apart from JSON punctuation.
const REPEATED: u64 = 256;

/// Why a response ended, if it has; `calls`: an earlier event showed a tool call.
fn meaning(cursor: &Cursor<'_>, said: &Response, calls: bool) -> Option<StopReason> {
    let word = |span: &Option<Range<usize>>| {
        span.clone()
            .map(|span| cursor.string_at(span))
            .unwrap_or_default()
    };
    match (&*word(&said.status), &*word(&said.reason)) {
        ("completed", _) if calls || said.calls => Some(StopReason::ToolCalls),
        ("completed", _) => Some(StopReason::End),
        (_, "content_filter") => Some(StopReason::ContentFilter),
        // Whatever else stops an answer before its end, it is not complete.
        ("incomplete", _) | (_, "max_output_tokens" | "max_tokens") => Some(StopReason::Length),
        ("" | "queued" | "in_progress", "") => None,
        _ => Some(StopReason::Other),
    }
}

/// Reads the frames of one streamed answer.
#[derive(Debug)]
pub(super) struct Reader {
    usage: WireUsage,
    id: Option<String>,
    /// Some item asked the client to run a tool.
    calls: bool,
    /// What deltas have shown since the last item ended.
    since_item: TextSize,
    sample: TextSample,
    /// What the provider may add.
    additions: Option<Arc<dyn Additions>>,
}

impl Default for Reader {
    fn default() -> Self {
        let usage = WireUsage {
            input_is_total: true,
            ..WireUsage::default()
        };
        Self {
            usage,
            id: None,
            calls: false,
            since_item: TextSize::default(),
            sample: TextSample::default(),
            additions: None,
        }
    }
}

impl Reader {
    fn read_data(&mut self, frame: &Frame, data: &[u8]) -> Result<FrameFacts, JsonError> {
        let additions = self.additions.clone();
        let mut cursor = Cursor::of_answer(data)?.allowing(additions.as_deref());
        let mut event = event(&mut cursor)?;
        let kind = event.kind.clone().map(|span| cursor.string_at(span));
        let kind = kind.as_deref().or(frame.event()).unwrap_or_default();
        let (mut facts, mut places) = (FrameFacts::default(), std::mem::take(&mut event.places));
        facts.unfamiliar = !kind.is_empty() && !own::is_event(kind);
        if facts.unfamiliar {
            places = members::of_unfamiliar(cursor.back_to(0))?;
        }
        for object in [&event.item, &event.part].into_iter().flatten() {
            shown(
                &mut cursor.back_to(object.span.start),
                &mut TextSize::default(),
                &mut TextSample::default(),
                &mut places,
            )?;
        }
        if let Some(delta) = &event.delta {
            self.sample.show(&cursor, delta, &mut facts.shown);
            self.since_item.add(facts.shown);
        }
        if let ("response.output_item.done", Some(item)) = (kind, &event.item) {
            self.item_done(&cursor, item, &mut facts)?;
        }
        if let ("response.output_item.added", Some(item)) = (kind, &event.item) {
            let item = member(&cursor, item.span.start, "type");
            facts.hidden = item == "reasoning";
            self.calls |= CLIENT_CALLS.contains(&item.as_str());
        }
        let stopped = matches!(kind, "response.completed" | "response.incomplete");
        facts.end = stopped || kind == "response.failed";
        facts.last = facts.end;
        if let Some(span) = event.response.clone() {
            let stop = self.read_response(frame, &cursor, span, (&mut facts, &mut places))?;
            facts.stop = stop.filter(|_| stopped);
        }
        if stopped && facts.stop.is_none() {
            // The event's own name tells, if the response object does not.
            facts.stop = Some(if kind == "response.completed" {
                StopReason::End
            } else {
                StopReason::Other
            });
        }
        if event.error || matches!(kind, "error" | "response.failed" | "") {
            facts.error = Some(UpstreamError::parse(data));
        }
        facts.marks = FrameMarks {
            usage_end: facts.marks.usage_end,
            usage_empty: facts.marks.usage_empty,
            ..FrameMarks::at(places, |span| frame.raw_range(span))
        };
        facts.step = Step::Event(step(kind, event, facts.end));
        Ok(facts)
    }

    /// Some servers show an item only when it is finished: then its text is output, and not a repetition of deltas.
    fn item_done(
        &mut self,
        cursor: &Cursor<'_>,
        item: &Value,
        facts: &mut FrameFacts,
    ) -> Result<(), JsonError> {
        let before = std::mem::take(&mut self.since_item).bytes();
        let (mut size, mut sample) = (TextSize::default(), self.sample.clone());
        shown(
            &mut cursor.back_to(item.span.start),
            &mut size,
            &mut sample,
            &mut MemberPlaces::default(),
        )?;
        if size.bytes() > before.saturating_mul(2).saturating_add(REPEATED) {
            facts.shown.add(size);
            self.sample = sample;
        }
        Ok(())
    }

    fn read_response(
        &mut self,
        frame: &Frame,
        cursor: &Cursor<'_>,
        span: Range<usize>,
        (facts, places): (&mut FrameFacts, &mut MemberPlaces),
    ) -> Result<Option<StopReason>, JsonError> {
        // The object repeats what the deltas showed.
        let said = response(&mut cursor.back_to(span.start), &mut TextSample::default())?;
        let stop = meaning(cursor, &said, self.calls);
        places.add(said.places);
        if self.id.is_none() {
            self.id = said.id.map(|span| cursor.string_at(span).into_owned());
        }
        if facts.end {
            // Earlier events only repeat the request.
            self.usage.said = said.classes;
        }
        if let Some(usage) = said.usage {
            self.usage.merge(&usage.wire);
            facts.usage = true;
            facts.marks.usage_end = Some(frame.raw_position(usage.end));
            facts.marks.usage_empty = usage.empty;
        }
        Ok(stop)
    }
}

/// A response object of the upstream, as customers may see it.
pub(super) fn public_response(text: String, name: &str) -> String {
    public(text, name, |cursor| {
        Ok(response(cursor, &mut TextSample::default())?.places)
    })
}

/// The same for a list of items, an item or a part.
pub(super) fn public_items(text: String, name: &str) -> String {
    public(text, name, |cursor| {
        let mut places = MemberPlaces::default();
        shown(
            cursor,
            &mut TextSize::default(),
            &mut TextSample::default(),
            &mut places,
        )?;
        Ok(places)
    })
}

fn public(
    text: String,
    name: &str,
    look: impl Fn(&mut Cursor<'_>) -> Result<MemberPlaces, JsonError>,
) -> String {
    let Ok(places) = Cursor::of_answer(text.as_bytes()).and_then(|mut cursor| look(&mut cursor))
    else {
        return text;
    };
    let marks = FrameMarks::at(places, |span| span);
    let name = quoted(name);
    let clean = String::from_utf8(splice(text.as_bytes(), &mut marks.edits(&name)));
    clean.unwrap_or(text)
}

/// The content of an event, as an ending may have to repeat it.
fn step(kind: &str, event: ResponseEvent, end: bool) -> ItemEvent {
    let whole = |value: Option<Value>| value.map(|value| value.span).unwrap_or_default();
    let text = |delta: Option<Value>| {
        delta
            .map(|delta| delta.span.start + 1..delta.span.end.saturating_sub(1))
            .unwrap_or_default()
    };
    let (brings, place) = match kind.strip_prefix("response.").unwrap_or_default() {
        _ if event.response.is_some() => (
            if end {
                Brings::Nothing
            } else {
                Brings::Response
            },
            event.response.unwrap_or_default(),
        ),
        "output_item.added" => (Brings::Item, whole(event.item)),
        "output_item.done" => (Brings::ItemDone, whole(event.item)),
        "content_part.added" | "reasoning_summary_part.added" => (Brings::Part, whole(event.part)),
        "content_part.done" | "reasoning_summary_part.done" => {
            (Brings::PartDone, whole(event.part))
        }
        "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
            (Brings::Arguments, text(event.delta))
        }
        "output_text.delta" => (Brings::OutputText, text(event.delta)),
        _ if event.delta.is_some() => (Brings::Text, text(event.delta)),
        _ => (Brings::Nothing, 0..0),
    };
    let (sequence, output_index, part_index) =
        (event.sequence, event.output_index, event.part_index);
    ItemEvent {
        sequence,
        brings,
        output_index,
        part_index,
        place,
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
        self.read_data(frame, &data)
            .unwrap_or_else(|_| FrameFacts::unreadable())
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

fn event(cursor: &mut Cursor<'_>) -> Result<ResponseEvent, JsonError> {
    let mut event = ResponseEvent::default();
    let mut members = Members::of(own::of_event, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name == "type" {
            event.kind = string_span(cursor)?;
            members.keep(cursor, &key);
            continue;
        }
        let value = cursor.skip()?;
        match key.name.as_ref() {
            "sequence_number" => event.sequence = count(cursor, &value),
            "output_index" => event.output_index = count(cursor, &value),
            "content_index" | "summary_index" => event.part_index = count(cursor, &value),
            "item" => event.item = Some(value),
            "part" => event.part = Some(value),
            "delta" if value.kind == Kind::String => event.delta = Some(value),
            "response" if value.kind == Kind::Object => event.response = Some(value.span),
            "error" => event.error = value.kind != Kind::Null,
            _ => {
                members.take(cursor, &key);
                continue;
            }
        }
        members.keep(cursor, &key);
    }
    members.finish(&mut event.places);
    Ok(event)
}

fn response(cursor: &mut Cursor<'_>, sample: &mut TextSample) -> Result<Response, JsonError> {
    let mut said = Response::default();
    let mut members = Members::of(own::of_response, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        match key.name.as_ref() {
            "id" => said.id = string_span(cursor)?,
            "status" => {
                said.status = string_span(cursor)?;
                said.complete |= said.status.is_some();
            }
            "incomplete_details" if kind == Kind::Object => {
                said.reason = reason(cursor)?;
                members.take(cursor, &key);
                continue;
            }
            "usage" => said.usage = read(cursor, (NAMES, own::of_usage, &[]))?,
            "error" => {
                said.error = cursor.skip()?.kind != Kind::Null;
                members.take(cursor, &key);
                continue;
            }
            "output" if kind == Kind::Array => {
                said.complete = true;
                said.calls |= shown(cursor, &mut said.shown, sample, &mut said.places)?;
            }
            name if class::say(class::RESPONSES, name, cursor, &mut said.classes)? => {}
            _ => {
                cursor.skip()?;
                members.take(cursor, &key);
                continue;
            }
        }
        members.keep(cursor, &key);
    }
    members.finish(&mut said.places);
    if let Some(usage) = &mut said.usage {
        said.places.add(std::mem::take(&mut usage.places));
    }
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

/// Adds texts and arguments of output items, at any level; returns whether one asks the client to run a tool.
fn shown(
    cursor: &mut Cursor<'_>,
    size: &mut TextSize,
    sample: &mut TextSample,
    places: &mut MemberPlaces,
) -> Result<bool, JsonError> {
    let mut calls = false;
    match cursor.peek()? {
        Kind::Array => {
            let mut walk = cursor.enter_array()?;
            while cursor.element(&mut walk)? {
                calls |= shown(cursor, size, sample, places)?;
            }
        }
        Kind::Object => {
            let mut members = Members::inside(own::of_content);
            let mut walk = cursor.enter_object()?;
            while let Some(key) = cursor.member(&mut walk)? {
                match key.name.as_ref() {
                    "content" | "summary" => calls |= shown(cursor, size, sample, places)?,
                    "text" | "refusal" | "arguments" | "name" | "input" => {
                        sample.shown(cursor, size)?
                    }
                    "type" => {
                        calls |= string_span(cursor)?
                            .is_some_and(|kind| CLIENT_CALLS.contains(&&*cursor.string_at(kind)))
                    }
                    _ => {
                        cursor.skip()?;
                        members.take(cursor, &key);
                        continue;
                    }
                }
                members.keep(cursor, &key);
            }
            members.finish(places);
        }
        _ => {
            cursor.skip()?;
        }
    }
    Ok(calls)
}
