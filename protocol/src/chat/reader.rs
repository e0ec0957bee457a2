//! Reads the facts of chat answers and frames.
//!
//! Usage may appear in the finish chunk, in a later chunk without choices, or cumulatively in every chunk: all are merged. A frame
//! that is not JSON has no facts. Must not change frames: it only reports positions.

use std::ops::Range;
use std::sync::Arc;

use super::mend::ShownCalls;
use super::own;
use super::pieces::{self, PlacedPiece};
use crate::class::{self, SaidClasses};
use crate::json::{Cursor, JsonError, Kind, Value, string_span};
use crate::members::{self, MemberPlaces, Members};
use crate::shape::ShapeFacts;
use crate::usage::{UsageNames, UsageObject, UsageSlot, count, read};
use crate::{
    Additions, AnswerFacts, Frame, FrameFacts, FrameMarks, Step, StopReason, TextSample, TextSize,
    UpstreamError, WireUsage,
};

/// Those first that nearly every usage has.
#[rustfmt::skip]
const NAMES: &UsageNames = &[
    ("",                             "prompt_tokens",               UsageSlot::Input),
    ("",                             "completion_tokens",           UsageSlot::Output),
    ("",                             "total_tokens",                UsageSlot::Total),
    ("prompt_tokens_details",        "cached_tokens",               UsageSlot::CacheRead),
    ("completion_tokens_details",    "reasoning_tokens",            UsageSlot::Reasoning),
    ("",                             "cached_tokens",               UsageSlot::CacheRead),
    ("",                             "prompt_cache_hit_tokens",     UsageSlot::CacheRead),
    ("prompt_tokens_details",        "cache_write_tokens",          UsageSlot::CacheWrite),
    ("prompt_tokens_details",        "cache_creation_input_tokens", UsageSlot::CacheWrite),
    ("prompt_tokens_details",        "cache_creation_tokens",       UsageSlot::CacheWrite),
    ("cache_creation",               "ephemeral_5m_input_tokens",   UsageSlot::CacheWrite5m),
    ("cache_creation",               "ephemeral_1h_input_tokens",   UsageSlot::CacheWrite1h),
    ("cache_creation",               "ephemeral_12h_input_tokens",  UsageSlot::CacheWrite12h),
    ("cache_creation_token_details", "ephemeral_5m_input_tokens",   UsageSlot::CacheWrite5m),
    ("cache_creation_token_details", "ephemeral_1h_input_tokens",   UsageSlot::CacheWrite1h),
    ("cache_creation_token_details", "ephemeral_12h_input_tokens",  UsageSlot::CacheWrite12h),
    ("cache_write_tokens_details",   "ttl_5m_tokens",               UsageSlot::CacheWrite5m),
    ("cache_write_tokens_details",   "ttl_30m_tokens",              UsageSlot::CacheWrite5m),
    ("cache_write_tokens_details",   "ttl_1h_tokens",               UsageSlot::CacheWrite1h),
    ("cache_write_tokens_details",   "ttl_12h_tokens",              UsageSlot::CacheWrite12h),
    ("",                             "cost",                        UsageSlot::Cost),
    ("cost",                         "total_cost",                  UsageSlot::Cost),
    ("",                             "cost_in_usd_ticks",           UsageSlot::CostTicks),
    ("cost_details",                 "upstream_inference_cost",     UsageSlot::CostBehind),
    ("",                             "is_byok",                     UsageSlot::IsByok),
];

/// The content of one chunk or one whole answer.
#[derive(Debug, Default)]
struct ChunkContent {
    id: Option<Range<usize>>,
    created: Option<u64>,
    choices: Vec<AnswerChoice>,
    usage: Option<UsageObject>,
    places: MemberPlaces,
    /// The class that was served, if it says so.
    classes: SaidClasses,
    /// It has a list of choices, perhaps an empty one, or a usage: without either it is no part of an answer.
    complete: bool,
    error: bool,
}

#[derive(Debug, Default)]
struct AnswerChoice {
    index: u64,
    shown: TextSize,
    /// Its text, the last if there are several.
    text: Option<Value>,
    hidden: bool,
    stop: Option<StopReason>,
    /// Pieces of calls. Mostly there is one.
    piece: Option<PlacedPiece>,
    more_pieces: Vec<PlacedPiece>,
}

impl AnswerChoice {
    /// The position of the text, without its quotes, if the choice shows nothing else.
    fn only_text(&self) -> Option<Range<usize>> {
        let text = self
            .text
            .as_ref()
            .filter(|text| text.text_size() == self.shown)?;
        Some(text.span.start + 1..text.span.end - 1)
    }
}

pub(super) fn read_answer(body: &[u8], additions: Option<&dyn Additions>) -> Option<AnswerFacts> {
    let mut cursor = Cursor::of_answer(body).ok()?.allowing(additions);
    let said = say(&mut cursor, &mut TextSample::default()).ok()?;
    let text = |span: Range<usize>| cursor.string_at(span).into_owned();
    let mut shown = TextSize::default();
    said.choices
        .iter()
        .for_each(|choice| shown.add(choice.shown));
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
        shown,
        stop: said.choices.iter().find_map(|choice| choice.stop),
        complete: said.complete,
        error: said.error.then(|| UpstreamError::parse(body)),
    })
}

pub(super) fn sample_answer(body: &[u8], seed: u64) -> TextSample {
    let mut sample = TextSample::seeded(seed);
    // What cannot be parsed was not shown.
    let _ = Cursor::of_answer(body).and_then(|mut cursor| say(&mut cursor, &mut sample));
    sample
}

/// The meaning of a stop reason, in the words of the family and of servers that imitate it.
fn meaning(word: &str) -> Option<StopReason> {
    match word {
        "" => None,
        "stop" | "end_turn" | "eos" => Some(StopReason::End),
        "length" | "max_tokens" | "model_length" => Some(StopReason::Length),
        "tool_calls" | "function_call" => Some(StopReason::ToolCalls),
        "content_filter" => Some(StopReason::ContentFilter),
        "refusal" => Some(StopReason::Refusal),
        _ => Some(StopReason::Other),
    }
}

/// Reads the frames of one streamed answer.
#[derive(Debug)]
pub(super) struct Reader {
    usage: WireUsage,
    id: Option<String>,
    created: u64,
    /// Choices requested.
    asked: usize,
    /// Choices seen, and whether they have ended.
    choices: Vec<(u64, bool)>,
    /// Why the first choice that ended did so.
    stop: Option<StopReason>,
    /// Nothing was made since the last usage.
    counted: bool,
    /// Calls, as the customer's client knows them.
    calls: ShownCalls,
    sample: TextSample,
    /// What the provider may add.
    additions: Option<Arc<dyn Additions>>,
    /// The last chunk, so that a chunk that differs only in its text is not parsed.
    known: ShapeFacts,
}

impl Default for Reader {
    fn default() -> Self {
        let usage = WireUsage {
            input_is_total: true,
            ..WireUsage::default()
        };
        let (choices, sample, known) = (Vec::new(), TextSample::default(), ShapeFacts::default());
        Self {
            usage,
            id: None,
            created: 0,
            additions: None,
            asked: 1,
            choices,
            stop: None,
            counted: false,
            calls: ShownCalls::default(),
            sample,
            known,
        }
    }
}

impl Reader {
    fn read_data(&mut self, frame: &Frame, data: &[u8]) -> Result<FrameFacts, JsonError> {
        let additions = self.additions.clone();
        let mut cursor = Cursor::of_answer(data)?.allowing(additions.as_deref());
        let said = say(&mut cursor, &mut self.sample)?;
        if self.id.is_none() {
            self.id = said.id.map(|span| cursor.string_at(span).into_owned());
        }
        let mut facts = FrameFacts {
            marks: FrameMarks::at(said.places, |span| frame.raw_range(span)),
            ..FrameFacts::default()
        };
        let mut changed = self.created == 0 && said.created.is_some_and(|created| created > 0);
        if changed {
            self.created = said.created.unwrap_or(0);
        }
        let mut stopped = false;
        for choice in &said.choices {
            facts.shown.add(choice.shown);
            facts.hidden |= choice.hidden;
            stopped |= choice.stop.is_some();
            self.stop = self.stop.or(choice.stop);
            changed |= self.note(choice);
            self.mend(choice, (frame, &cursor), &mut facts.marks);
        }
        if changed {
            facts.step = Step::Choices {
                created: self.created,
                choices: self.choices.clone(),
            };
        }
        facts.stop = self.stop.filter(|_| stopped && self.all_stopped());
        self.counted &= facts.shown == TextSize::default() && !facts.hidden;
        if said.classes.named {
            // The last one stands: the first may only repeat the request.
            self.usage.said = said.classes;
        }
        if let Some(usage) = said.usage {
            self.usage.merge(&usage.wire);
            facts.usage = true;
            self.counted = true;
            facts.marks.usage_end = Some(frame.raw_position(usage.end));
            facts.marks.usage_empty = usage.empty;
            facts.usage_only = said.choices.is_empty();
            // Usage alone ends nothing: some servers send it before the text, or between two choices.
            facts.last = self.all_stopped();
        }
        // What comes behind the last stop and is no part of an answer cannot undo that the answer is complete.
        facts.unfamiliar = !said.complete && !said.error && self.all_stopped();
        if facts.unfamiliar {
            facts.marks = FrameMarks::at(members::of_unfamiliar(cursor.back_to(0))?, |span| {
                frame.raw_range(span)
            });
        }
        if said.error || !said.complete && !facts.unfamiliar || frame.event() == Some("error") {
            facts.error = Some(UpstreamError::parse(data));
        }
        let text = if let [choice] = said.choices.as_slice() {
            choice.only_text()
        } else {
            None
        };
        self.known.note(
            frame,
            &facts,
            // Data of several lines was joined: what stands together there may be apart in the raw bytes.
            text.filter(|_| frame.data_range().is_some())
                .map(|text| frame.raw_range(text)),
        );
        Ok(facts)
    }

    /// Adds the edits to pieces of calls that are not as clients expect them.
    fn mend(
        &mut self,
        choice: &AnswerChoice,
        chunk: (&Frame, &Cursor<'_>),
        marks: &mut FrameMarks,
    ) {
        let answer = self.id.as_deref().unwrap_or_default();
        for piece in choice.piece.iter().chain(&choice.more_pieces) {
            self.calls.mend((choice.index, piece), chunk, answer, marks);
        }
    }

    /// Whether the choice began or ended with this chunk.
    fn note(&mut self, choice: &AnswerChoice) -> bool {
        let stopped = choice.stop.is_some();
        match self
            .choices
            .iter_mut()
            .find(|(index, _)| *index == choice.index)
        {
            Some((_, ended)) => !std::mem::replace(ended, *ended || stopped) && stopped,
            None => {
                self.choices.push((choice.index, stopped));
                true
            }
        }
    }

    fn all_stopped(&self) -> bool {
        self.choices.len() >= self.asked && self.choices.iter().all(|(_, ended)| *ended)
    }
}

impl crate::AnswerReader for Reader {
    fn expect(&mut self, choices: u32, seed: u64) {
        self.asked = usize::try_from(choices).unwrap_or(1).max(1);
        self.sample = TextSample::seeded(seed);
    }

    fn allow(&mut self, additions: &Arc<dyn Additions>) {
        self.additions = Some(Arc::clone(additions));
    }

    fn read(&mut self, frame: &Frame) -> FrameFacts {
        if let Some(facts) = self.known.facts(frame, &mut self.sample) {
            self.counted = false;
            return facts;
        }
        let Some(data) = frame.data() else {
            return FrameFacts::default();
        };
        if data.trim_ascii() == b"[DONE]" {
            // A blocked prompt has no choice that could stop: its usage is complete all the same.
            return FrameFacts {
                last: true,
                end: true,
                usage: self.counted,
                ..FrameFacts::default()
            };
        }
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

fn say(cursor: &mut Cursor<'_>, sample: &mut TextSample) -> Result<ChunkContent, JsonError> {
    let mut said = ChunkContent::default();
    let mut members = Members::of(own::of_answer, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "id" => said.id = string_span(cursor)?,
            "created" => {
                let value = cursor.skip()?;
                said.created = count(cursor, &value);
            }
            "usage" => said.usage = read(cursor, (NAMES, own::of_usage, &[]))?,
            "choices" if cursor.peek()? == Kind::Array => {
                said.complete = true;
                let mut choices = cursor.enter_array()?;
                while cursor.element(&mut choices)? {
                    said.choices.push(choice(cursor, sample, &mut said.places)?);
                }
            }
            "error" => {
                said.error = cursor.skip()?.kind != Kind::Null;
                members.take(cursor, &key);
                continue;
            }
            name if class::say(class::CHAT, name, cursor, &mut said.classes)? => {}
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
        said.complete = true;
        said.places.add(std::mem::take(&mut usage.places));
    }
    Ok(said)
}

fn choice(
    cursor: &mut Cursor<'_>,
    sample: &mut TextSample,
    places: &mut MemberPlaces,
) -> Result<AnswerChoice, JsonError> {
    let mut choice = AnswerChoice::default();
    let mut members = Members::of(own::of_choice, own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "index" => {
                let value = cursor.skip()?;
                choice.index = count(cursor, &value).unwrap_or(0);
            }
            "finish_reason" => {
                choice.stop = string_span(cursor)?.and_then(|span| meaning(&cursor.string_at(span)))
            }
            "delta" | "message" if cursor.peek()? == Kind::Object => {
                delta(cursor, &mut choice, sample, places)?
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
    Ok(choice)
}

/// Some servers repeat reasoning under two or three names: the longest one counts.
fn delta(
    cursor: &mut Cursor<'_>,
    choice: &mut AnswerChoice,
    sample: &mut TextSample,
    places: &mut MemberPlaces,
) -> Result<(), JsonError> {
    let mut reasoning: Option<Value> = None;
    let mut members = Members::inside(own::of_content);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "content" | "refusal" => {
                let value = cursor.skip()?;
                sample.show(cursor, &value, &mut choice.shown);
                if value.kind == Kind::Array {
                    members.take(cursor, &key);
                    continue;
                }
                choice.text = Some(value)
                    .filter(|value| value.kind == Kind::String)
                    .or(choice.text.take());
            }
            "reasoning_content" | "reasoning" => {
                let value = cursor.skip()?;
                let longest = reasoning
                    .as_ref()
                    .map_or(0, |longest| longest.text_size().bytes());
                if value.kind != Kind::Null && value.text_size().bytes() > longest {
                    reasoning = Some(value);
                }
            }
            "reasoning_details" => {
                let value = cursor.skip()?;
                choice.hidden |= cursor.slice(value.span).contains("reasoning.encrypted");
                members.take(cursor, &key);
                continue;
            }
            "tool_calls" | "function_call" => calls(cursor, choice, sample, places)?,
            "role" => {
                cursor.skip()?;
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
    if let Some(longest) = reasoning {
        sample.show(cursor, &longest, &mut choice.shown);
    }
    Ok(())
}

/// A list of pieces of calls, or the one call of an older function, which has neither number nor id.
fn calls(
    cursor: &mut Cursor<'_>,
    choice: &mut AnswerChoice,
    sample: &mut TextSample,
    places: &mut MemberPlaces,
) -> Result<(), JsonError> {
    if cursor.peek()? != Kind::Array {
        let mut piece = PlacedPiece::default();
        return pieces::read(cursor, &mut piece, (&mut choice.shown, sample), places);
    }
    let mut walk = cursor.enter_array()?;
    while cursor.element(&mut walk)? {
        let mut piece = PlacedPiece::default();
        pieces::read(cursor, &mut piece, (&mut choice.shown, sample), places)?;
        match &choice.piece {
            None => choice.piece = Some(piece),
            Some(_) => choice.more_pieces.push(piece),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{AnswerReader as _, token_estimate};

    const TEXTS: [&str; 6] = ["a", " some words", "", r"\n", r"\u00e4", "é"];
    const DELTAS: [&str; 9] = [
        r#"{"content":"TEXT"}"#,
        r#"{"content":"TEXT","refusal":null}"#,
        r#"{"content":"TEXT","refusal":"TEXT"}"#,
        r#"{"content":"","content":"TEXT"}"#,
        r#"{"reasoning":"TEXT","reasoning_content":"abc"}"#,
        r#"{"content":"TEXT","reasoning":"abc"}"#,
        r#"{"content":"TEXT","provider":"p"}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"TEXT"}}]}"#,
        r#"{"content":["TEXT"]}"#,
    ];
    const REST: [&str; 6] = [
        "}]}",
        r#"}],"model":"m"}"#,
        r#"}],"obfuscation":"TEXT"}"#,
        r#","finish_reason":"stop"}]}"#,
        r#"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"}],"error":{"message":"TEXT"}}"#,
    ];

    #[test]
    fn a_chunk_that_is_known_says_what_reading_it_says() {
        let mut state = 3;
        let mut draw = |most: usize| {
            usize::try_from(token_estimate::random(&mut state) % most as u64).unwrap()
        };
        let mut known = 0;
        for _ in 0..300 {
            let (mut quick, mut slow) = (Reader::default(), Reader::default());
            let (mut delta, mut rest, mut index) = (0, 0, 0);
            for _ in 0..40 {
                if draw(4) == 0 {
                    (delta, rest, index) =
                        (draw(DELTAS.len()), draw(2) * draw(REST.len()), draw(2));
                }
                let text = TEXTS[draw(TEXTS.len())];
                let choice = format!(
                    r#"{{"index":{index},"delta":{}{}"#,
                    DELTAS[delta], REST[rest]
                )
                .replace("TEXT", text);
                let chunk = format!(
                    "data: {{\"id\":\"i\",\"created\":7,\"model\":\"m\",\"choices\":[{choice}\n\n"
                );
                let frame = Frame::new(Bytes::from(chunk));
                known += usize::from(
                    quick
                        .known
                        .facts(&frame, &mut TextSample::default())
                        .is_some(),
                );
                let facts = slow
                    .read_data(&frame, &frame.data().unwrap())
                    .unwrap_or_else(|_| FrameFacts::unreadable());
                assert_eq!(quick.read(&frame), facts, "{frame:?}");
            }
            assert_eq!(
                (&quick.usage, &quick.sample, &quick.choices),
                (&slow.usage, &slow.sample, &slow.choices)
            );
        }
        assert!(known > 1_000, "{known} of 12,000");
    }
}
