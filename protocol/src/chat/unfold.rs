//! A whole chat answer as the stream that was asked for.

use serde_json::{Map, Value, json};

use crate::sse;

/// The chunks of an answer: all that was said, why it ended, and its counts. `None` if it has no choices.
pub(super) fn as_stream(body: &[u8]) -> Option<Vec<u8>> {
    let mut chunk: Map<String, Value> = serde_json::from_slice(body).ok()?;
    // Strict clients refuse a usage that is null.
    let usage = chunk.shift_remove("usage");
    let choices = chunk.get_mut("choices")?.as_array_mut()?;
    let mut ends = Vec::new();
    for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
        let message = choice.get_mut("message").map(Value::take);
        // Servers of the older completions say it here.
        let text = || {
            choice
                .get("text")
                .map(|text| json!({"role": "assistant", "content": text}))
        };
        let mut said = message.or_else(text).unwrap_or_else(|| json!({}));
        let calls = said.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (index, call) in calls.into_iter().flatten().enumerate() {
            call.as_object_mut()?
                .insert("index".to_owned(), json!(index));
        }
        choice.shift_remove("message");
        choice.shift_remove("text");
        choice.insert("delta".to_owned(), said);
        let index = choice.get("index").cloned().unwrap_or(json!(0));
        let finish = choice.get_mut("finish_reason").map(Value::take);
        ends.push(json!({"index": index, "delta": {}, "logprobs": null, "finish_reason": finish}));
    }
    chunk.insert("object".to_owned(), json!("chat.completion.chunk"));
    let mut out = sse::data(&Value::Object(chunk.clone()).to_string());
    let mut next = |choices: Value, usage: Option<Value>| {
        chunk.insert("choices".to_owned(), choices);
        chunk.extend(usage.map(|usage| ("usage".to_owned(), usage)));
        out.extend(sse::data(&Value::Object(chunk.clone()).to_string()));
    };
    next(json!(ends), None);
    if let Some(usage) = usage.filter(Value::is_object) {
        next(json!([]), Some(usage));
    }
    out.extend(sse::data("[DONE]"));
    Some(out)
}
