//! What a provider's account is called, under every name that vendors use and in every place of a good answer: none of it reaches a
//! customer of the same family, while the family's own members, new harmless ones, and what a model or a customer wrote stay.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Map, Value, json};

use super::canary::{CANARY, SECRET};
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{Gateway, TestKey, ask, path};

/// Members under which vendors, and what stands before them, name accounts, hosts and models.
const NAMES: [&str; 56] = [
    "organization",
    "organization_id",
    "organisation",
    "org",
    "org_id",
    "openai_organization",
    "project",
    "project_id",
    "project_number",
    "request_id",
    "x_request_id",
    "upstream_request_id",
    "account",
    "account_id",
    "billing_account",
    "service_account",
    "api_base",
    "base_url",
    "api_key",
    "api_key_id",
    "deployment",
    "deployment_id",
    "deployment_name",
    "region",
    "zone",
    "availability_zone",
    "datacenter",
    "cluster",
    "host",
    "hostname",
    "provider",
    "provider_name",
    "provider_metadata",
    "upstream",
    "upstream_model",
    "upstream_provider",
    "model_id",
    "model_name",
    "served_by",
    "backend",
    "trace_id",
    "span_id",
    "traceparent",
    "system_fingerprint",
    "x_groq",
    "cf_ray",
    "arn",
    "tenant_id",
    "subscription_id",
    "resource_group",
    "workspace_id",
    "team_id",
    "response_metadata",
    "hidden_params",
    "kv_transfer_params",
    "billing",
];
const ORGANISATION: &str = "org-Zk83hRt6LqVb21xYcPmN";
/// A member that tomorrow's ability may bring.
const NEW: (&str, &str) = ("new_ability", "harmless-5c1e");
/// What a model or a customer wrote, and lists of the customer's own tools: nothing in them is touched.
const WRITTEN: [&str; 5] = ["metadata", "input", "arguments", "tools", "attributes"];
/// Members that hold content; what is inside of them may have new members.
const CONTENT: [&str; 6] = [
    "delta",
    "content",
    "content_block",
    "output",
    "item",
    "part",
];

/// Words in which every name occurs, as a model may well write them.
fn prose() -> String {
    let names: Vec<String> = NAMES.iter().map(|name| format!("\"{name}\": 1")).collect();
    format!("the organization's provider says {{{}}}", names.join(", "))
}

/// What a model wrote for a tool, with the same names.
fn written() -> Value {
    let names = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "region": name })));
    Value::Object(names.collect())
}

fn chat(stream: bool) -> Vec<Value> {
    let calls = json!([
        { "index": 0, "id": "call_1", "type": "function", "function": { "name": "project", "arguments": written().to_string() } },
        { "index": 1, "id": "call_2", "type": "custom", "custom": { "name": "region", "input": prose() } },
    ]);
    let said = json!({
        "role": "assistant", "content": prose(), "refusal": null, "tool_calls": calls,
        "annotations": [{ "type": "url_citation", "url_citation": { "title": "t", "url": "https://127.0.0.1/", "start_index": 0, "end_index": 1 } }],
        "reasoning_details": [{ "type": "reasoning.text", "text": prose(), "signature": "c2ln", "index": 0 }],
    });
    let tokens = json!({ "content": [{ "token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{ "token": "a", "logprob": -0.5, "bytes": null }] }], "refusal": null });
    let usage = json!({
        "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12,
        "prompt_tokens_details": { "cached_tokens": 0 }, "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0 },
    });
    let answer = |object: &str, choices: Value| {
        json!({
            "id": "c", "object": object, "created": 1_700_000_000, "model": "upstream-model-1", "system_fingerprint": "fp_1",
            "metadata": { "project": "mine" }, "choices": choices,
        })
    };
    if !stream {
        let choice =
            json!({ "index": 0, "message": said, "finish_reason": "stop", "logprobs": tokens });
        let mut whole = answer("chat.completion", json!([choice]));
        whole["usage"] = usage;
        return vec![whole];
    }
    let chunk = |delta: Value, end: Value| {
        let choice =
            json!({ "index": 0, "delta": delta, "finish_reason": end, "logprobs": tokens });
        answer("chat.completion.chunk", json!([choice]))
    };
    let mut last = answer("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    vec![
        chunk(json!({ "role": "assistant", "content": "" }), Value::Null),
        chunk(json!({ "content": "a" }), Value::Null),
        chunk(json!({ "content": "b" }), Value::Null),
        chunk(said, Value::Null),
        chunk(json!({}), json!("stop")),
        last,
    ]
}

fn responses(stream: bool) -> Vec<Value> {
    let part = json!({
        "type": "output_text", "text": prose(), "logprobs": [{ "token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [] }],
        "annotations": [{ "type": "url_citation", "title": "t", "url": "https://127.0.0.1/", "start_index": 0, "end_index": 1 }],
    });
    let item = json!({ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part] });
    let others = [
        json!({ "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": prose() }], "encrypted_content": "c2ln" }),
        json!({ "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "project", "arguments": written().to_string(), "status": "completed" }),
        json!({ "id": "ws_1", "type": "web_search_call", "status": "completed", "action": { "type": "search", "query": "q", "sources": [{ "type": "url", "url": "https://127.0.0.1/" }] } }),
        json!({ "id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["q"], "results": [{ "file_id": "f", "filename": "n", "score": 0.5, "text": prose(), "attributes": { "region": "eu" } }] }),
    ];
    let response = |status: &str, output: Value| {
        json!({
            "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "upstream-model-1", "status": status, "error": null,
            "incomplete_details": null, "instructions": prose(), "metadata": { "project": "mine" }, "output": output,
            "reasoning": { "effort": "low", "summary": null }, "tools": [{ "type": "function", "name": "f", "parameters": { "properties": written() } }],
            "usage": null,
        })
    };
    let output: Vec<Value> = others.iter().cloned().chain([item.clone()]).collect();
    let mut whole = response("completed", json!(output));
    whole["usage"] = json!({
        "input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 },
    });
    if !stream {
        return vec![whole];
    }
    let begun = response("in_progress", json!([]));
    let place = |more: Value| {
        let mut event = json!({ "item_id": "msg_1", "output_index": 0, "content_index": 0 });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        place(json!({ "type": "response.content_part.added", "part": part })),
        place(
            json!({ "type": "response.output_text.delta", "delta": "a", "logprobs": part["logprobs"] }),
        ),
        place(
            json!({ "type": "response.output_text.annotation.added", "annotation_index": 0, "annotation": part["annotations"][0] }),
        ),
        place(json!({ "type": "response.output_text.done", "text": prose() })),
        place(json!({ "type": "response.content_part.done", "part": part })),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
    ];
    for (index, other) in others.iter().enumerate() {
        events.push(json!({ "type": "response.output_item.done", "output_index": index + 1, "item": other }));
    }
    events.push(json!({ "type": "response.completed", "response": whole }));
    events
}

fn messages(stream: bool) -> Vec<Value> {
    let blocks = [
        json!({ "type": "text", "text": prose(), "citations": [{ "type": "web_search_result_location", "cited_text": "c", "title": "t", "url": "https://127.0.0.1/", "encrypted_index": "i" }] }),
        json!({ "type": "thinking", "thinking": prose(), "signature": "c2ln" }),
        json!({ "type": "tool_use", "id": "toolu_1", "name": "project", "input": written(), "caller": { "type": "direct" } }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{ "type": "web_search_result", "title": "t", "url": "https://127.0.0.1/", "encrypted_content": "c", "page_age": null }] }),
    ];
    let usage = json!({
        "input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
        "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0 },
    });
    let message = |content: Value, stop: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "upstream-model-1", "content": content, "stop_reason": stop,
            "stop_sequence": null, "container": { "id": "c", "expires_at": "2026-11-28T00:00:00Z" }, "usage": usage,
        })
    };
    if !stream {
        return vec![message(json!(blocks), json!("end_turn"))];
    }
    let mut events =
        vec![json!({ "type": "message_start", "message": message(json!([]), Value::Null) })];
    for (index, block) in blocks.iter().enumerate() {
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": { "type": "text_delta", "text": "a" } }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn answer(family: Family, stream: bool) -> Vec<Value> {
    match family {
        Family::Chat => chat(stream),
        Family::Responses => responses(stream),
        Family::Messages => messages(stream),
    }
}

/// Adds members to every object that the family writes, and returns to how many. `inside`: this one is content.
fn plant(
    value: &mut Value,
    family: Family,
    inside: bool,
    add: &impl Fn(&mut Map<String, Value>, bool),
) -> usize {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .map(|item| plant(item, family, inside, add))
            .sum(),
        Value::Object(members) => {
            let mut planted = 1;
            for (name, inner) in &mut *members {
                let content =
                    CONTENT.contains(&name.as_str()) || family == Family::Chat && name == "message";
                if !WRITTEN.contains(&name.as_str()) {
                    planted += plant(inner, family, inside || content, add);
                }
            }
            add(members, inside);
            planted
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// A way to write a name, and to put the canary under it.
type Way = (&'static str, fn(&str) -> (String, Value));

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + &part[..1].to_uppercase() + &part[1..]
    })
}

const WAYS: [Way; 8] = [
    ("plain", |name| (name.to_owned(), json!(CANARY))),
    ("an object", |name| {
        (name.to_owned(), json!({ "id": CANARY, "more": [CANARY] }))
    }),
    ("as a header", |name| {
        (name.replace('_', "-").to_uppercase(), json!(CANARY))
    }),
    ("in camel case", |name| (camel(name), json!(CANARY))),
    ("escaped", |name| (format!("@{name}"), json!(CANARY))),
    ("nested", |name| {
        (format!("zz_{name}"), json!([{ "deep": { name: CANARY } }]))
    }),
    ("as a pair", |name| {
        (
            format!("zz_{name}"),
            json!({ "key": name, "value": CANARY }),
        )
    }),
    ("in a string", |name| {
        (
            format!("zz_{name}"),
            json!(json!({ name: CANARY }).to_string()),
        )
    }),
];

/// Serialised; a name that begins with `@` has its first letter escaped instead.
fn text_of(value: &Value) -> String {
    let mut text = value.to_string();
    for name in NAMES {
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        text = text.replace(&format!("\"@{name}\":"), &format!("\"{escaped}\":"));
    }
    text
}

fn reply(stream: bool, frames: &[Value]) -> Reply {
    if !stream {
        return Reply::whole(200, "application/json", text_of(&frames[0]));
    }
    let event = |frame: &Value| match frame["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {}\n\n", text_of(frame)),
        None => format!("data: {}\n\n", text_of(frame)),
    };
    let done = frames[0]
        .get("choices")
        .map(|_| "data: [DONE]\n\n".to_owned());
    Reply::events(frames.iter().map(event).chain(done).collect::<Vec<_>>())
}

/// What the customer reads, without the charge that the gateway adds.
async fn read(
    gateway: &Gateway,
    key: &TestKey,
    family: Family,
    stream: bool,
) -> (String, Vec<Value>) {
    let mut body = ask(family, "test-model", stream);
    // Names in every place are many tokens, and a stream that shows more than its limit is ended, soon or late.
    let limit = match family {
        Family::Responses => "max_output_tokens",
        Family::Chat | Family::Messages => "max_tokens",
    };
    body[limit] = json!(20_000);
    if family == Family::Chat && stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    let told = gateway.post(path(family), key, &body).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let lines = told
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let data: Vec<&str> = if stream {
        lines.collect()
    } else {
        vec![&told.text]
    };
    let frames = data.into_iter().filter(|data| *data != "[DONE]");
    let mut frames: Vec<Value> = frames
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    for place in ["/usage", "/response/usage"] {
        for frame in &mut frames {
            let usage = frame.pointer_mut(place).and_then(Value::as_object_mut);
            usage.and_then(|usage| usage.remove("cost"));
        }
    }
    (told.text, frames)
}

/// The same answer under the public name.
fn public(frames: &[Value]) -> Vec<Value> {
    let renamed = |frame: &Value| frame.to_string().replace("upstream-model-1", "test-model");
    frames
        .iter()
        .map(|frame| serde_json::from_str(&renamed(frame)).unwrap())
        .collect()
}

#[tokio::test]
async fn no_name_of_the_account_leaves_in_any_place_of_an_answer() {
    let mut cases = 0;
    for family in Family::ALL {
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("50.00").await;
        for stream in [false, true] {
            let clean = answer(family, stream);
            for (way, write) in WAYS {
                let mut frames = clean.clone();
                for frame in &mut frames {
                    cases += NAMES.len()
                        * plant(frame, family, false, &|members, _| {
                            for name in NAMES {
                                let (name, value) = write(name);
                                if !members.contains_key(name.trim_start_matches('@')) {
                                    members.insert(name, value);
                                }
                            }
                        });
                }
                upstream.follow(reply(stream, &frames));
                let (text, told) = read(&gateway, &key, family, stream).await;
                let place = format!("{family} stream={stream} {way}");
                assert!(!text.contains(CANARY), "{place}: {text}");
                assert_eq!(told, public(&clean), "{place}: all else stays");
            }
        }
    }
    assert!(cases >= 2_000, "{cases} cases");
}

/// Values that tell who answered, under names that say nothing.
fn values(host: &str) -> Vec<String> {
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    vec![
        SECRET.to_owned(),
        SECRET.to_uppercase(),
        format!("Bearer {SECRET}"),
        percent,
        STANDARD.encode(format!("key={SECRET};")),
        SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
        format!("https://{host}/v1"),
        host.to_owned(),
        "upstream-model-1".to_owned(),
        "Upstream_Model_1".to_owned(),
        ORGANISATION.to_owned(),
        format!("arn:aws:bedrock:us-east-1:481516234211:model/{ORGANISATION}"),
    ]
}

#[tokio::test]
async fn new_members_pass_unless_their_value_tells_who_answered() {
    for family in Family::ALL {
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let host = upstream.base_url();
        let host = host.split('/').nth(2).unwrap();
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("50.00").await;
        for stream in [false, true] {
            let (mut clean, mut frames) = (answer(family, stream), answer(family, stream));
            let new = |members: &mut Map<String, Value>| {
                members.insert(NEW.0.to_owned(), json!({ "level": 3, "note": NEW.1 }));
            };
            for (clean, frame) in clean.iter_mut().zip(&mut frames) {
                plant(clean, family, false, &|members, inside| {
                    if inside {
                        new(members);
                    }
                });
                plant(frame, family, false, &|members, inside| {
                    for (at, value) in values(host).into_iter().enumerate() {
                        members.insert(format!("zz_{at}"), json!(value));
                        members.insert(format!("zy_{at}"), json!({ "of": [value] }));
                        members.insert(value, json!(true));
                    }
                    if inside {
                        new(members);
                    }
                });
            }
            upstream.follow(reply(stream, &frames));
            let (_, told) = read(&gateway, &key, family, stream).await;
            assert_eq!(told, public(&clean), "{family} stream={stream}");
            assert!(
                json!(told).to_string().matches(NEW.1).count() > 3,
                "{family}: {told:?}"
            );
        }
        let status = gateway.ask("/status").await.text;
        assert!(
            status.contains("zz_0"),
            "what was removed is counted: {status}"
        );
    }
}
