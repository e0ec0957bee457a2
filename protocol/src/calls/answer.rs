//! Answers to calls: one list with a part for each thing that was asked, and how much was read. A part is only stepped over, whatever
//! its size.

use serde_json::json;

use crate::json::{Cursor, JsonError, Kind, Value};
use crate::members::Inside::{self, Anything};
use crate::members::{MemberPlaces, Members, Own};
use crate::usage::{self, UsageNames, UsageObject, UsageSlot};
use crate::{Additions, AnswerFacts, FrameMarks, UpstreamError, WireUsage};

/// What differs between the answers to calls.
pub(super) struct AnswerShape {
    /// The list of parts.
    pub(super) list: &'static str,
    /// Whether a member of a part is what was asked for.
    pub(super) has_part: fn(&str, &Value) -> bool,
    /// The answer's own members.
    pub(super) of_answer: Own,
    /// A part's own members.
    pub(super) of_part: Own,
}

/// Names of counts. A call has no output: what some servers call so is not charged.
#[rustfmt::skip]
const USAGE: &UsageNames = &[
    ("", "prompt_tokens",     UsageSlot::Input),
    ("", "total_tokens",      UsageSlot::Total),
    ("", "cost",              UsageSlot::Cost),
    ("", "cost_in_usd_ticks", UsageSlot::CostTicks),
];

/// The same where the count stands in `meta`, as at Cohere.
#[rustfmt::skip]
const META: &UsageNames = &[
    ("tokens", "input_tokens", UsageSlot::Input),
];

/// What an answer says.
#[derive(Default)]
struct SaidParts {
    id: Option<String>,
    /// How many parts there are; `None` without a list of them, or with an element that is none.
    parts: Option<u32>,
    usage: Option<UsageObject>,
    /// The count that stands beside the usage.
    meta: WireUsage,
    places: MemberPlaces,
    error: Option<UpstreamError>,
}

/// The facts of an answer, whole if it has as many parts as `enough` wants.
pub(super) fn read(
    shape: &AnswerShape,
    body: &[u8],
    additions: Option<&dyn Additions>,
    enough: impl Fn(u32) -> bool,
) -> Option<AnswerFacts> {
    let mut cursor = Cursor::of_answer(body).ok()?.allowing(additions);
    let said = say(shape, &mut cursor).ok()?;
    let usage = said.usage.unwrap_or_default();
    let input = usage.wire.input.or(usage.wire.total).or(said.meta.input);
    Some(AnswerFacts {
        marks: FrameMarks {
            usage_end: (usage.end > 0).then_some(usage.end),
            usage_empty: usage.empty,
            ..FrameMarks::at(said.places, |span| span)
        },
        id: said.id,
        usage: WireUsage {
            input,
            output: input.map(|_| 0),
            total: None,
            input_is_total: true,
            malformed: usage.wire.malformed || said.meta.malformed,
            ..usage.wire
        },
        complete: said.parts.is_some_and(enough),
        error: said.error,
        ..AnswerFacts::default()
    })
}

/// A usage object with this count.
pub(super) fn usage_json(input: u64, cost: Option<&str>) -> String {
    let counts = json!({ "prompt_tokens": input, "total_tokens": input });
    usage::with_cost(counts.to_string(), cost)
}

fn say(shape: &AnswerShape, cursor: &mut Cursor<'_>) -> Result<SaidParts, JsonError> {
    let mut said = SaidParts::default();
    let mut members = Members::of(shape.of_answer, shape.of_answer);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match (key.name.as_ref(), cursor.peek()?) {
            (name, Kind::Array) if name == shape.list => {
                said.parts = parts(shape, cursor, &mut said.places)?;
            }
            ("usage", Kind::Object) => {
                if let Some(mut usage) = usage::read(cursor, (USAGE, of_usage, &[]))? {
                    said.places.add(std::mem::take(&mut usage.places));
                    said.usage = Some(usage);
                }
            }
            ("meta", Kind::Object) => {
                let meta = usage::read(cursor, (META, of_usage, &[]))?;
                said.meta = meta.map(|meta| meta.wire).unwrap_or_default();
            }
            ("error", kind) if kind != Kind::Null => {
                let value = cursor.skip()?;
                said.error = Some(UpstreamError::parse(cursor.slice(value.span).as_bytes()));
            }
            ("id", Kind::String) => {
                let value = cursor.skip()?;
                said.id = cursor.text_of(&value).map(Into::into);
            }
            _ => {
                cursor.skip()?;
            }
        }
        members.take(cursor, &key);
    }
    cursor.end()?;
    members.finish(&mut said.places);
    Ok(said)
}

fn parts(
    shape: &AnswerShape,
    cursor: &mut Cursor<'_>,
    places: &mut MemberPlaces,
) -> Result<Option<u32>, JsonError> {
    let mut walk = cursor.enter_array()?;
    let mut found = Some(0_u32);
    while cursor.element(&mut walk)? {
        if cursor.peek()? != Kind::Object {
            cursor.skip()?;
            found = None;
            continue;
        }
        let mut members = Members::of(shape.of_part, shape.of_part);
        let mut is_part = false;
        let mut inner = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut inner)? {
            let value = cursor.skip()?;
            is_part |= (shape.has_part)(&key.name, &value);
            members.take(cursor, &key);
        }
        members.finish(places);
        found = found
            .filter(|_| is_part)
            .and_then(|found| found.checked_add(1));
    }
    Ok(found)
}

fn of_usage(name: &str) -> Option<Inside> {
    match name {
        "prompt_tokens" | "total_tokens" | "completion_tokens" | "prompt_tokens_details" => {
            Some(Anything)
        }
        _ => None,
    }
}
