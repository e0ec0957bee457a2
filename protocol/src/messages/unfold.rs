//! A whole messages answer as the stream that was asked for.

use serde_json::{Map, Value, json};

use super::synthetic::event;

/// What of a message stands in the event that ends it.
const AT_END: [&str; 3] = ["stop_reason", "stop_sequence", "stop_details"];

/// The events of an answer: its blocks begin empty, as this family's do, and each brings what it has in one piece. `None` if it has no
/// list of blocks.
pub(super) fn as_stream(body: &[u8]) -> Option<Vec<u8>> {
    let mut message: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let content = message.get_mut("content")?;
    let Value::Array(blocks) = std::mem::replace(content, json!([])) else {
        return None;
    };
    let mut end = Map::new();
    for name in AT_END {
        if let Some(value) = message.get_mut(name) {
            end.insert(name.to_owned(), value.take());
        }
    }
    let mut last = json!({"delta": end});
    if let Some(usage) = message.get("usage") {
        last["usage"] = usage.clone();
    }
    let mut out = event("message_start", &json!({"message": message}));
    for (index, mut block) in blocks.into_iter().enumerate() {
        let deltas = deltas(&mut block);
        let begun = json!({"index": index, "content_block": block});
        out.extend(event("content_block_start", &begun));
        for delta in deltas {
            let more = json!({"index": index, "delta": delta});
            out.extend(event("content_block_delta", &more));
        }
        out.extend(event("content_block_stop", &json!({"index": index})));
    }
    out.extend(event("message_delta", &last));
    out.extend(event("message_stop", &Value::Null));
    Some(out)
}

/// What a block brings after it has begun; it is taken out of the block.
fn deltas(block: &mut Value) -> Vec<Value> {
    let kind = block["type"].as_str().unwrap_or_default().to_owned();
    let Some(block) = block.as_object_mut() else {
        return Vec::new();
    };
    let mut take = |name: &str, empty: Value| {
        let value = block.get_mut(name)?;
        let value = std::mem::replace(value, empty);
        (!value.is_null() && value != json!("")).then_some(value)
    };
    let (none, nothing) = (|| json!(""), Vec::new);
    match kind.as_str() {
        "text" => {
            let text = take("text", none());
            let citations = take("citations", json!([]));
            let cited = citations.and_then(|list| list.as_array().cloned());
            let cited = cited.unwrap_or_else(nothing).into_iter();
            text.map(|text| json!({"type": "text_delta", "text": text}))
                .into_iter()
                .chain(cited.map(|one| json!({"type": "citations_delta", "citation": one})))
                .collect()
        }
        "thinking" => {
            let thinking = take("thinking", none())
                .map(|text| json!({"type": "thinking_delta", "thinking": text}));
            let signature = take("signature", none())
                .map(|text| json!({"type": "signature_delta", "signature": text}));
            thinking.into_iter().chain(signature).collect()
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let input = take("input", json!({})).filter(|input| *input != json!({}));
            let input = input.map(|input| input.to_string());
            input
                .map(|json| json!({"type": "input_json_delta", "partial_json": json}))
                .into_iter()
                .collect()
        }
        _ => nothing(),
    }
}
