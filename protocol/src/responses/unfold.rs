//! A whole responses answer as the stream that was asked for.

use serde_json::{Map, Value, json};

use super::synthetic::Frames;

/// The events of an answer: its items begin empty and bring what they have in one piece. `None` if it has no list of items.
pub(super) fn as_stream(body: &[u8]) -> Option<Vec<u8>> {
    let response: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let items = response.get("output")?.as_array()?;
    let mut begun = response.clone();
    for (name, value) in [
        ("status", json!("in_progress")),
        ("output", json!([])),
        ("usage", Value::Null),
        ("completed_at", Value::Null),
        ("incomplete_details", Value::Null),
    ] {
        begun.insert(name.to_owned(), value);
    }
    let mut out = Frames::default();
    out.push("response.created", &json!({"response": begun}));
    out.push("response.in_progress", &json!({"response": begun}));
    for (index, item) in items.iter().enumerate() {
        unfold(item, index, &mut out);
    }
    let last = match response.get("status").and_then(Value::as_str) {
        // One that is still made, in the background.
        Some("queued" | "in_progress") => return None,
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    out.push(last, &json!({"response": response}));
    Some(out.list.concat())
}

fn unfold(item: &Value, index: usize, out: &mut Frames) {
    let mut begun = item.clone();
    if item.get("status").is_some() {
        begun["status"] = json!("in_progress");
    }
    for (name, empty) in [
        ("content", json!([])),
        ("summary", json!([])),
        ("arguments", json!("")),
        ("input", json!("")),
    ] {
        // An input that is no text is another item's, which has no events for it.
        if let Some(value) = begun.get_mut(name).filter(|value| !value.is_object()) {
            *value = empty;
        }
    }
    out.push(
        "response.output_item.added",
        &json!({"output_index": index, "item": begun}),
    );
    for (list, place, word) in [
        ("summary", "summary_index", "reasoning_summary_part"),
        ("content", "content_index", "content_part"),
    ] {
        let parts = item.get(list).and_then(Value::as_array);
        for (at, part) in parts.into_iter().flatten().enumerate() {
            let at = json!({"item_id": item["id"], "output_index": index, place: at});
            unfold_part(part, (word, at), out);
        }
    }
    for (name, word) in [
        ("arguments", "function_call_arguments"),
        ("input", "custom_tool_call_input"),
    ] {
        if let Some(text) = item.get(name).and_then(Value::as_str) {
            let at = json!({"item_id": item["id"], "output_index": index});
            bring((word, &at), (name, text), out);
        }
    }
    out.push(
        "response.output_item.done",
        &json!({"output_index": index, "item": item}),
    );
}

fn unfold_part(part: &Value, (word, at): (&str, Value), out: &mut Frames) {
    let (name, text_word) = match part["type"].as_str().unwrap_or_default() {
        "refusal" => ("refusal", "refusal"),
        "summary_text" => ("text", "reasoning_summary_text"),
        "reasoning_text" => ("text", "reasoning_text"),
        _ => ("text", "output_text"),
    };
    let mut begun = part.clone();
    if let Some(text) = begun.get_mut(name) {
        *text = json!("");
    }
    out.push(
        &format!("response.{word}.added"),
        &with(&at, "part", &begun),
    );
    if let Some(text) = part.get(name).and_then(Value::as_str) {
        bring((text_word, &at), (name, text), out);
    }
    out.push(&format!("response.{word}.done"), &with(&at, "part", part));
}

/// A text of an item, at once and as it ended.
fn bring((word, at): (&str, &Value), (name, text): (&str, &str), out: &mut Frames) {
    if !text.is_empty() {
        out.push(
            &format!("response.{word}.delta"),
            &with(at, "delta", &json!(text)),
        );
    }
    out.push(
        &format!("response.{word}.done"),
        &with(at, name, &json!(text)),
    );
}

fn with(at: &Value, name: &str, value: &Value) -> Value {
    let mut members = at.clone();
    members[name] = value.clone();
    members
}
