//! Embeddings: vectors of texts. A vector is only stepped over, whatever its size, never read as numbers.
//!
//! Rows of docs/interface.md: `post_v1_embeddings`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::calls::answer::{self, AnswerShape};
use crate::calls::{CallDialect, other_field, too_many};
use crate::json::{Cursor, Kind};
use crate::members::Inside::{self, Anything};
use crate::prompt::CHARS_PER_TOKEN;
use crate::usage;
use crate::walk::{self, RequestWalk, Verdict};
use crate::{Additions, AnswerFacts, BadRequest, Inspection};

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

const SHAPE: AnswerShape = AnswerShape {
    list: "data",
    has_part: |name, value| {
        let is_vector = matches!(value.kind, Kind::Array | Kind::String);
        name == "embedding" && is_vector && value.size.bytes() > 2
    },
    of_answer,
    of_part: of_vector,
};

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
        let mut seen = request.finish();
        seen.parts = seen.content.inputs;
        Ok(seen)
    }

    fn read_answer(
        &self,
        body: &[u8],
        parts: u32,
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts> {
        answer::read(&SHAPE, body, additions, |vectors| vectors == parts)
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
            // No number is zero: libraries divide by a vector's length.
            let vector = (1..=dimensions.clamp(1, MOST_DIMENSIONS))
                .map(|place| f32::from(u16::try_from(characters % place + 1).unwrap_or(u16::MAX)));
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
        "input" => inputs(cursor, seen)?,
        _ => return other_field(name, KNOWN, cursor, seen),
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
            return Err(too_many("input", MOST_INPUTS));
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
    seen.content.input(value.text_size(), cursor.inner(&value));
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

fn of_answer(name: &str) -> Option<Inside> {
    match name {
        "id" | "object" | "created" | "model" | "data" | "usage" => Some(Anything),
        _ => None,
    }
}

fn of_vector(name: &str) -> Option<Inside> {
    matches!(name, "object" | "index" | "embedding").then_some(Anything)
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
