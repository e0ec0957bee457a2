//! Tool calls of the built-in provider: which tool, and arguments that its schema accepts.
//!
//! A tool is called when the request forces one, or when the last turn names one or says "use a tool"; never twice in a row,
//! because a result is always answered with text. A JSON object in the last turn supplies the arguments, so that a test can control
//! the call.

use farebox_protocol::prompt::{CallChoice, OfferedTool, UnderstoodPrompt};
use serde_json::{Map, Value, json};

const DEEPEST: u32 = 12;

/// Name and arguments of the call that the prompt asks for.
pub(super) fn wanted(prompt: &UnderstoodPrompt) -> Option<(String, String)> {
    if prompt.result.is_some() {
        return None;
    }
    let tool = match &prompt.choice {
        CallChoice::Never => None,
        CallChoice::Any => mentioned(prompt).or(prompt.tools.first()),
        CallChoice::Named(name) => prompt.tools.iter().find(|tool| tool.name == *name),
        CallChoice::Auto => mentioned(prompt),
    }?;
    let mut arguments = match example(&tool.schema) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if let Some(Value::Object(given)) = object_in(&prompt.last_user) {
        arguments.extend(given);
    }
    Some((tool.name.clone(), Value::Object(arguments).to_string()))
}

/// The simplest value that satisfies the required parts of a JSON schema.
pub(super) fn example(schema: &Value) -> Value {
    value_for(schema, schema, 0)
}

fn mentioned(prompt: &UnderstoodPrompt) -> Option<&OfferedTool> {
    let said = &prompt.last_user;
    let named = prompt
        .tools
        .iter()
        .find(|tool| is_word_of(said, &tool.name));
    named.or_else(|| {
        prompt
            .tools
            .first()
            .filter(|_| said.to_ascii_lowercase().contains("use a tool"))
    })
}

fn is_word_of(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            !text[..at].chars().next_back().is_some_and(inside)
                && !text[at + word.len()..].chars().next().is_some_and(inside)
        })
}

fn object_in(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(start..=end)?).ok()
}

fn value_for(schema: &Value, root: &Value, depth: u32) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(place) = schema["$ref"]
        .as_str()
        .and_then(|place| place.strip_prefix('#'))
    {
        return value_for(root.pointer(place).unwrap_or(&Value::Null), root, depth + 1);
    }
    let first = |name: &str| schema[name].as_array().and_then(|values| values.first());
    if let Some(value) = schema
        .get("const")
        .or(first("enum"))
        .or(schema.get("default"))
    {
        return value.clone();
    }
    if let Some(variant) = first("anyOf").or(first("oneOf")).or(first("allOf")) {
        return value_for(variant, root, depth + 1);
    }
    match schema["type"]
        .as_str()
        .or(first("type").and_then(Value::as_str))
    {
        Some("string") => Value::String(string_for(schema)),
        Some("integer") => json!(least(schema)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => Value::Bool(false),
        Some("null") => Value::Null,
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0).min(8);
            Value::Array(
                (0..count)
                    .map(|_| value_for(&schema["items"], root, depth + 1))
                    .collect(),
            )
        }
        _ => object_for(schema, root, depth),
    }
}

fn object_for(schema: &Value, root: &Value, depth: u32) -> Value {
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    Value::Object(
        required
            .map(|name| {
                (
                    name.to_owned(),
                    value_for(&schema["properties"][name], root, depth + 1),
                )
            })
            .collect(),
    )
}

fn string_for(schema: &Value) -> String {
    let word = match schema["format"].as_str() {
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("uri") => "https://example.com/",
        Some("email") => "someone@example.com",
        _ => "simulated",
    };
    let most = schema["maxLength"]
        .as_u64()
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(usize::MAX);
    let least = schema["minLength"]
        .as_u64()
        .and_then(|least| usize::try_from(least).ok())
        .unwrap_or(0)
        .min(1_000);
    let mut text: String = word.chars().take(most).collect();
    while text.len() < least {
        text.push('x');
    }
    text
}

fn least(schema: &Value) -> i64 {
    let above = schema["exclusiveMinimum"]
        .as_i64()
        .map(|least| least.saturating_add(1));
    let least = [schema["minimum"].as_i64(), above]
        .into_iter()
        .flatten()
        .max();
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    least.filter(|&least| least > 1).unwrap_or(1).min(most)
}
