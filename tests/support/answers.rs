//! What vendors answer to requests with tools and with thinking: calls as long as no result came, then words; thoughts as the vendor
//! shows or seals them. And what a caller's library makes of an answer, and sends back.
#![cfg(test)]

use farebox_doubles::{Vendor, seal};
use farebox_protocol::Family;
use serde_json::{Value, json};

const THOUGHT: &str = "I look it up.";
const ARGUMENTS: &str = r#"{"city":"Ulm"}"#;

/// A vendor's whole answer to a request: so many calls of `weather`, or words if there is a result or none is to be called.
pub(crate) fn answer(
    vendor: Vendor,
    family: Family,
    body: &Value,
    calls: usize,
    words: &str,
) -> Value {
    let answered = body.to_string().contains("7 degrees");
    let calls = if answered { 0 } else { calls };
    match family {
        Family::Chat => chat(vendor, calls, words),
        Family::Responses => response(body, calls, words),
        Family::Messages => message(body, calls, words),
    }
}

fn call_id(number: usize) -> String {
    format!("callabcd{number}")
}

fn chat(vendor: Vendor, calls: usize, words: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    match vendor {
        Vendor::DeepSeek
        | Vendor::XAi
        | Vendor::LlamaCpp
        | Vendor::Fireworks
        | Vendor::Moonshot
        | Vendor::Qwen
        | Vendor::LmStudio
        | Vendor::SgLang => {
            message["reasoning_content"] = json!(THOUGHT);
        }
        Vendor::Groq | Vendor::Ollama | Vendor::Vllm | Vendor::Cerebras | Vendor::Together => {
            message["reasoning"] = json!(THOUGHT);
        }
        Vendor::OpenRouter => {
            message["reasoning"] = json!(THOUGHT);
            message["reasoning_details"] = json!([{"type": "reasoning.text", "text": THOUGHT, "format": "unknown", "index": 0}]);
        }
        _ => {}
    }
    let made = (0..calls).map(|number| {
        let mut call = json!({"id": call_id(number), "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}});
        // The first call of a step alone is signed.
        if vendor == Vendor::Gemini && number == 0 {
            call["extra_content"] =
                json!({"google": {"thought_signature": seal::thought_signature("weather", ARGUMENTS)}});
        }
        call
    });
    let made: Vec<Value> = made.collect();
    let finish = if made.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    if made.is_empty() {
        message["content"] = json!(words);
    } else {
        message["tool_calls"] = json!(made);
    }
    json!({"id": "c", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}})
}

fn response(body: &Value, calls: usize, words: &str) -> Value {
    let answer = seal::answer_name(body);
    let thinks = body["reasoning"].is_object();
    let mut output = Vec::new();
    if thinks {
        let mut item = json!({"type": "reasoning", "id": seal::item_id("rs", &answer, 0),
            "summary": [{"type": "summary_text", "text": THOUGHT}]});
        if body["include"].to_string().contains("encrypted_content") {
            item["encrypted_content"] = json!(seal::encrypted(&answer));
        }
        output.push(item);
    }
    // Without reasoning there is none to need.
    let id = |kind: &str, number: usize| {
        if thinks {
            seal::item_id(kind, &answer, number + 1)
        } else {
            format!("{kind}_plain{number}")
        }
    };
    output.extend((0..calls).map(|number| {
        json!({"type": "function_call", "id": id("fc", number), "call_id": call_id(number), "name": "weather",
            "arguments": ARGUMENTS, "status": "completed"})
    }));
    if calls == 0 {
        output.push(json!({"type": "message", "id": id("msg", 0), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": words, "annotations": []}]}));
    }
    json!({"id": "r", "object": "response", "created_at": 7, "status": "completed", "model": "m", "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}})
}

fn message(body: &Value, calls: usize, words: &str) -> Value {
    let mut content = Vec::new();
    if matches!(
        body["thinking"]["type"].as_str(),
        Some("enabled" | "adaptive")
    ) {
        let signature = seal::signature(body, &[], THOUGHT);
        content.push(json!({"type": "thinking", "thinking": THOUGHT, "signature": signature}));
    }
    content.extend((0..calls).map(|number| {
        json!({"type": "tool_use", "id": call_id(number), "name": "weather", "input": {"city": "Ulm"}})
    }));
    if calls == 0 {
        content.push(json!({"type": "text", "text": words}));
    }
    let stop = if calls == 0 { "end_turn" } else { "tool_use" };
    json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
        "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 9}})
}

/// A whole answer as the stream of its family.
pub(crate) fn frames(family: Family, whole: &Value) -> Vec<String> {
    match family {
        Family::Chat => chat_frames(whole),
        Family::Responses => response_frames(whole),
        Family::Messages => message_frames(whole),
    }
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn chat_frames(whole: &Value) -> Vec<String> {
    let choice = &whole["choices"][0];
    let mut delta = choice["message"].clone();
    let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (number, call) in calls.into_iter().flatten().enumerate() {
        call["index"] = json!(number);
    }
    let chunk = |choices: Value| json!({"id": "c", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices});
    let mut last = chunk(json!([]));
    last["usage"] = whole["usage"].clone();
    let said = [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])),
        last,
    ];
    let said = said.iter().map(|chunk| format!("data: {chunk}\n\n"));
    said.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn response_frames(whole: &Value) -> Vec<String> {
    let mut begun = whole.clone();
    (begun["output"], begun["status"]) = (json!([]), json!("in_progress"));
    let mut out = vec![event("response.created", json!({"response": begun}))];
    for (index, item) in whole["output"].as_array().unwrap().iter().enumerate() {
        let place = json!({"output_index": index, "item": item});
        out.push(event("response.output_item.added", place.clone()));
        out.push(event("response.output_item.done", place));
    }
    out.push(event("response.completed", json!({"response": whole})));
    out
}

fn message_frames(whole: &Value) -> Vec<String> {
    let mut begun = whole.clone();
    (begun["content"], begun["stop_reason"]) = (json!([]), Value::Null);
    let mut out = vec![event("message_start", json!({"message": begun}))];
    for (index, block) in whole["content"].as_array().unwrap().iter().enumerate() {
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        match block["type"].as_str().unwrap() {
            "text" => {
                start["text"] = json!("");
                deltas.push(json!({"type": "text_delta", "text": block["text"]}));
            }
            "thinking" => {
                (start["thinking"], start["signature"]) = (json!(""), json!(""));
                deltas.push(json!({"type": "thinking_delta", "thinking": block["thinking"]}));
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            "tool_use" => {
                start["input"] = json!({});
                let input = block["input"].to_string();
                deltas.push(json!({"type": "input_json_delta", "partial_json": input}));
            }
            _ => {}
        }
        let place = json!({"index": index, "content_block": start});
        out.push(event("content_block_start", place));
        // It comes whenever nothing else does.
        out.push(event("ping", json!({})));
        out.extend(deltas.into_iter().map(|delta| {
            event(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            )
        }));
        out.push(event("content_block_stop", json!({"index": index})));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    out.push(event(
        "message_delta",
        json!({"delta": delta, "usage": {"output_tokens": 9}}),
    ));
    out.push(event("message_stop", json!({})));
    out
}

/// A stream as the whole answer that a client's library makes of it.
pub(crate) fn folded(family: Family, text: &str) -> Value {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let events: Vec<Value> = data
        .map(|data| serde_json::from_str(&format!("{{{data}")).unwrap())
        .collect();
    match family {
        Family::Responses => events.last().unwrap()["response"].clone(),
        Family::Chat => folded_chat(&events),
        Family::Messages => folded_message(events),
    }
}

fn add(to: &mut Value, more: &Value) {
    if let Some(more) = more.as_str() {
        *to = json!(to.as_str().unwrap_or_default().to_owned() + more);
    }
}

fn folded_chat(events: &[Value]) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls: Vec<Value> = Vec::new();
    for event in events {
        let delta = &event["choices"][0]["delta"];
        for name in ["content", "reasoning_content", "reasoning"] {
            if delta[name].is_string() {
                add(&mut message[name], &delta[name]);
            }
        }
        if delta["reasoning_details"].is_array() {
            message["reasoning_details"] = delta["reasoning_details"].clone();
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(call["index"].as_u64().unwrap_or(0)).unwrap();
            if let Some(known) = calls.get_mut(at) {
                let arguments = &call["function"]["arguments"];
                add(&mut known["function"]["arguments"], arguments);
            } else {
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            }
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"choices": [{"message": message}]})
}

fn folded_message(events: Vec<Value>) -> Value {
    let mut content: Vec<Value> = Vec::new();
    let mut input = String::new();
    for event in events {
        content.extend(event.get("content_block").cloned());
        let Some(last) = content.last_mut() else {
            continue;
        };
        let delta = &event["delta"];
        for name in ["text", "thinking", "signature"] {
            add(&mut last[name], &delta[name]);
        }
        input.push_str(delta["partial_json"].as_str().unwrap_or_default());
        if event["type"] == "content_block_stop" && !input.is_empty() {
            last["input"] = serde_json::from_str(&std::mem::take(&mut input)).unwrap();
        }
    }
    for block in &mut content {
        let block = block.as_object_mut().unwrap();
        block.retain(|_, value| !value.is_null());
    }
    json!({"content": content})
}

/// Takes an answer into a conversation as it came, and gives this result for each of its calls. Says how many there were.
pub(crate) fn take(family: Family, turns: &mut Vec<Value>, answer: &Value, result: &str) -> usize {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match family {
        Family::Chat => {
            let message = answer["choices"][0]["message"].clone();
            let calls = list(&message["tool_calls"]);
            turns.push(message);
            turns.extend(calls.iter().map(
                |call| json!({"role": "tool", "tool_call_id": call["id"], "content": result}),
            ));
            calls.len()
        }
        Family::Responses => {
            let output = list(&answer["output"]);
            let calls = output.iter().filter(|item| item["type"] == "function_call");
            let results: Vec<Value> = calls
                .map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": result}))
                .collect();
            let made = results.len();
            turns.extend(output);
            turns.extend(results);
            made
        }
        Family::Messages => {
            let content = list(&answer["content"]);
            let calls = content.iter().filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = calls
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": result}))
                .collect();
            let made = results.len();
            turns.push(json!({"role": "assistant", "content": content}));
            if made > 0 {
                turns.push(json!({"role": "user", "content": results}));
            }
            made
        }
    }
}
