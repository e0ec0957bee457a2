//! Embeddings: vectors of texts. A vector is only stepped over, whatever its size, never read as numbers.
//!
//! Rows of docs/interface.md: `post_v1_embeddings`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::calls::CallDialect;
use crate::json::{Cursor, JsonError, Kind};
use crate::members::Inside::{self, Anything};
use crate::members::{MemberPlaces, Members};
use crate::prompt::CHARS_PER_TOKEN;
use crate::usage::{self, UsageNames, UsageObject, UsageSlot};
use crate::walk::{self, RequestWalk, Verdict};
use crate::{
    Additions, AnswerFacts, BadRequest, FrameMarks, Inspection, Remedy, TextSize, UpstreamError,
    WireUsage, fields,
};

/// Most inputs of one request.
const MOST_INPUTS: u32 = 2_048;
/// Numbers in a vector of the simulated provider, unless the request says how many.
const DIMENSIONS: u64 = 8;
const MOST_DIMENSIONS: u64 = 4_096;
const WRONG: &str =
    "`input` must be a string, a list of strings, a list of tokens, or a list of lists of tokens.";
const EMPTY: &str = "`input` must not be empty, nor have an empty text in it.";

/// Fields that pass untouched.
const KNOWN: &[&str] = &["dimensions", "encoding_format", "user"];

/// Names of counts. Embeddings have no output: what some servers call so is not charged.
#[rustfmt::skip]
const USAGE: &UsageNames = &[
    ("", "prompt_tokens",     UsageSlot::Input),
    ("", "total_tokens",      UsageSlot::Total),
    ("", "cost",              UsageSlot::Cost),
    ("", "cost_in_usd_ticks", UsageSlot::CostTicks),
];

/// Vectors of texts.
pub(super) struct Embeddings;

impl CallDialect for Embeddings {
    fn name(&self) -> &'static str {
        "embeddings"
    }

    fn public_path(&self) -> &'static str {
        "/v1/embeddings"
    }

    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        let request = RequestWalk::walk(body, seed, field)?;
        walk::need_model(&request.seen)?;
        if request.seen.content.inputs == 0 {
            return Err(BadRequest::at("input", WRONG));
        }
        Ok(request.finish())
    }

    fn read_answer(
        &self,
        body: &[u8],
        inputs: u32,
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts> {
        let mut cursor = Cursor::of_answer(body).ok()?.allowing(additions);
        let said = say(&mut cursor).ok()?;
        let usage = said.usage.unwrap_or_default();
        let input = usage.wire.input.or(usage.wire.total);
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
                ..usage.wire
            },
            complete: said.vectors == Some(inputs),
            error: said.error,
            ..AnswerFacts::default()
        })
    }

    fn usage_json(&self, input: u64, cost: Option<&str>) -> String {
        let counts = json!({ "prompt_tokens": input, "total_tokens": input });
        usage::with_cost(counts.to_string(), cost)
    }

    fn question(&self, model: &str, words: &str) -> String {
        json!({ "model": model, "input": words }).to_string()
    }

    fn simulate(&self, body: &[u8], model: &str) -> Result<String, String> {
        let seen = self.inspect(body, 0).map_err(|bad| bad.message)?;
        let asked: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let inputs: Vec<&Value> = match &asked["input"] {
            Value::Array(list) if !list.iter().all(Value::is_number) => list.iter().collect(),
            one => vec![one],
        };
        let dimensions = asked["dimensions"].as_u64().unwrap_or(DIMENSIONS);
        let (mut data, mut tokens) = (Vec::new(), seen.content.tokens);
        for (index, input) in inputs.into_iter().enumerate() {
            let characters = input.as_str().map_or(0, |text| text.chars().count() as u64);
            tokens += characters.div_ceil(CHARS_PER_TOKEN);
            let vector = (1..=dimensions.clamp(1, MOST_DIMENSIONS))
                .map(|place| f32::from(u16::try_from(characters % place).unwrap_or(u16::MAX)));
            let vector = match asked["encoding_format"].as_str() {
                Some("base64") => {
                    let bytes: Vec<u8> = vector.flat_map(f32::to_le_bytes).collect();
                    json!(STANDARD.encode(bytes))
                }
                _ => json!(vector.collect::<Vec<f32>>()),
            };
            data.push(json!({ "object": "embedding", "index": index, "embedding": vector }));
        }
        let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
        let answer = json!({ "object": "list", "data": data, "model": model, "usage": usage });
        Ok(answer.to_string())
    }
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Verdict, BadRequest> {
    match name {
        "model" => walk::model(cursor, seen)?,
        "input" => inputs(cursor, seen)?,
        "usage" => return walk::cost_wish(cursor, seen),
        // The model reads nothing of these.
        _ if KNOWN.contains(&name) => {
            cursor.skip()?;
        }
        _ => {
            return match fields::check(&[], name, cursor)? {
                Some(verdict) => Ok(verdict),
                None => walk::known(name, &[], cursor, seen),
            };
        }
    }
    Ok(Verdict::Stays)
}

/// Reads what vectors are asked for: one text, or a list of texts; a text is a string, or a list of tokens.
fn inputs(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let begin = cursor.clone();
    match cursor.peek()? {
        Kind::String => return one(cursor, seen, "input"),
        Kind::Array => {}
        _ => return Err(BadRequest::at("input", WRONG)),
    }
    let mut walk = cursor.enter_array()?;
    let mut kinds: Option<Kind> = None;
    while cursor.element(&mut walk)? {
        let kind = cursor.peek()?;
        if *kinds.get_or_insert(kind) != kind {
            return Err(BadRequest::at("input", WRONG));
        }
        match kind {
            Kind::Number => {
                // One list of tokens is one text.
                *cursor = begin;
                return tokens(cursor, seen, "input");
            }
            Kind::String => one(cursor, seen, &place(seen))?,
            Kind::Array => tokens(cursor, seen, &place(seen))?,
            _ => return Err(BadRequest::at("input", WRONG)),
        }
        if seen.content.inputs > MOST_INPUTS {
            let message =
                format!("`input` must have at most {MOST_INPUTS} texts; send several requests.");
            let most = Remedy::AtMost("input", MOST_INPUTS.into());
            return Err(BadRequest::at("input", message).with(most));
        }
    }
    match kinds {
        Some(_) => Ok(()),
        None => Err(BadRequest::at("input", EMPTY)),
    }
}

fn place(seen: &Inspection) -> String {
    format!("input[{}]", seen.content.inputs)
}

/// One text.
fn one(cursor: &mut Cursor<'_>, seen: &mut Inspection, at: &str) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.text_size().bytes() == 0 {
        return Err(BadRequest::at(at, EMPTY));
    }
    let content = &mut seen.content;
    if content.inputs > 0 {
        // A tokenizer would join what stands in two texts.
        content.read(TextSize { ascii: 1, other: 0 }, " ");
    }
    content.inputs += 1;
    content.read(value.text_size(), cursor.inner(&value));
    Ok(())
}

/// One text whose tokens the customer has made itself.
fn tokens(cursor: &mut Cursor<'_>, seen: &mut Inspection, at: &str) -> Result<(), BadRequest> {
    let mut walk = cursor.enter_array()?;
    let mut count: u64 = 0;
    while cursor.element(&mut walk)? {
        let value = cursor.skip()?;
        if usage::count(cursor, &value).is_none() {
            let message =
                format!("`{at}` must be a text, or a list of tokens: whole numbers from 0 on.");
            return Err(BadRequest::at(at, message));
        }
        count += 1;
    }
    if count == 0 {
        return Err(BadRequest::at(at, EMPTY));
    }
    let content = &mut seen.content;
    content.inputs += 1;
    content.tokens = content.tokens.saturating_add(count);
    Ok(())
}

/// What an answer says.
#[derive(Default)]
struct SaidVectors {
    id: Option<String>,
    /// How many vectors there are; `None` without a list of them, or with an element that is none.
    vectors: Option<u32>,
    usage: Option<UsageObject>,
    places: MemberPlaces,
    error: Option<UpstreamError>,
}

fn say(cursor: &mut Cursor<'_>) -> Result<SaidVectors, JsonError> {
    let mut said = SaidVectors::default();
    let mut members = Members::of(of_answer, of_answer);
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match (key.name.as_ref(), cursor.peek()?) {
            ("data", Kind::Array) => said.vectors = vectors(cursor, &mut said.places)?,
            ("usage", Kind::Object) => {
                if let Some(mut usage) = usage::read(cursor, (USAGE, of_usage, &[]))? {
                    said.places.add(std::mem::take(&mut usage.places));
                    said.usage = Some(usage);
                }
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

fn vectors(cursor: &mut Cursor<'_>, places: &mut MemberPlaces) -> Result<Option<u32>, JsonError> {
    let mut walk = cursor.enter_array()?;
    let mut found = Some(0_u32);
    while cursor.element(&mut walk)? {
        if cursor.peek()? != Kind::Object {
            cursor.skip()?;
            found = None;
            continue;
        }
        let mut members = Members::of(of_vector, of_vector);
        let mut has_vector = false;
        let mut inner = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut inner)? {
            let value = cursor.skip()?;
            let is_vector = matches!(value.kind, Kind::Array | Kind::String);
            has_vector |= key.name == "embedding" && is_vector && value.size.bytes() > 2;
            members.take(cursor, &key);
        }
        members.finish(places);
        found = found
            .filter(|_| has_vector)
            .and_then(|found| found.checked_add(1));
    }
    Ok(found)
}

fn of_answer(name: &str) -> Option<Inside> {
    match name {
        "id" | "object" | "created" | "model" | "data" | "usage" => Some(Anything),
        _ => None,
    }
}

fn of_vector(name: &str) -> Option<Inside> {
    matches!(name, "object" | "index" | "embedding").then_some(Anything)
}

fn of_usage(name: &str) -> Option<Inside> {
    match name {
        "prompt_tokens" | "total_tokens" | "completion_tokens" | "prompt_tokens_details" => {
            Some(Anything)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_each_for_itself_and_tokens_as_they_are() {
        for (input, inputs, bytes, tokens) in [
            (r#""abc""#, 1, 3, 0),
            (r#"["abc","d"]"#, 2, 5, 0),
            ("[1,2,3]", 1, 0, 3),
            ("[[1,2],[3]]", 2, 0, 3),
        ] {
            let body = format!(r#"{{"model":"m","input":{input}}}"#);
            let content = Embeddings.inspect(body.as_bytes(), 1).unwrap().content;
            let found = (content.inputs, content.text.bytes(), content.tokens);
            assert_eq!(found, (inputs, bytes, tokens), "{input}");
        }
    }

    #[test]
    fn an_answer_is_whole_with_a_vector_for_each_text() {
        let read = |data: &str| {
            let answer = format!(
                r#"{{"data":{data},"model":"m","usage":{{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}}}"#
            );
            Embeddings.read_answer(answer.as_bytes(), 2, None)
        };
        let one = r#"{"index":0,"embedding":[0.5,-1e-9]}"#;
        let packed = r#"{"index":1,"embedding":"AAAA"}"#;
        let facts = read(&format!("[{one},{packed}]")).unwrap();
        assert!(facts.complete && facts.marks.model.is_some());
        assert_eq!((facts.usage.input, facts.usage.output), (Some(5), Some(0)));
        for data in [
            format!("[{one}]"),
            format!("[{one},{one},{packed}]"),
            format!(r#"[{one},{{"embedding":[]}}]"#),
            format!("[{one},7]"),
            "null".to_owned(),
        ] {
            assert!(!read(&data).unwrap().complete, "{data}");
        }
        assert_eq!(read("[{"), None);
    }
}
