//! The compliance tests of Open Responses over HTTP, on targets of every family, with thinking and without.
//!
//! The requests and checks are those that github.com/openresponses/openresponses publishes (`src/lib/compliance-tests.ts` at 0cb939c),
//! with its string input of the copy in Stars1233/openresponses at 1761768. Of its schemas only what its types say and the JSON
//! schemas that `protocol/tests/translation/schemas.rs` judges by do not: an optional member is never null.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Gateway, catalog, path, routes_speaking};

const HEART: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg==";

/// A request of the suite.
struct Template {
    name: &'static str,
    input: Value,
    tools: bool,
    stream: bool,
}

fn suite() -> Vec<Template> {
    let message =
        |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    let user = |content: &str| json!([message("user", json!(content))]);
    let weather = || user("What's the weather like in San Francisco?");
    let template = |name, input, tools, stream| Template {
        name,
        input,
        tools,
        stream,
    };
    vec![
        template(
            "basic-response",
            user("Say hello in exactly 3 words."),
            false,
            false,
        ),
        template(
            "string-input",
            json!("Say hello in exactly 3 words."),
            false,
            false,
        ),
        template(
            "streaming-response",
            user("Count from 1 to 5."),
            false,
            true,
        ),
        template(
            "system-prompt",
            json!([
                message("system", json!("You are a pirate.")),
                message("user", json!("Say hello."))
            ]),
            false,
            false,
        ),
        template("tool-calling", weather(), true, false),
        template("tool-calling-streaming", weather(), true, true),
        template(
            "image-input",
            json!([message(
                "user",
                json!([
            {"type": "input_text", "text": "What do you see in this image?"}, {"type": "input_image", "image_url": HEART}])
            )]),
            false,
            false,
        ),
        template(
            "multi-turn",
            json!([
                message("user", json!("My name is Alice.")),
                message("assistant", json!("Hello Alice!")),
                message("user", json!("What is my name?"))
            ]),
            false,
            false,
        ),
    ]
}

/// An answer of a target, with a call if it is offered a tool.
fn answer(family: Family, thinks: bool, body: &Value) -> Reply {
    let calls = body["tools"].is_array();
    let frames = match family {
        Family::Chat => {
            let mut deltas = vec![json!({"role": "assistant", "content": ""})];
            deltas.extend(thinks.then(|| json!({"reasoning_content": "hm"})));
            deltas.push(if calls {
                json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"location\":\"x\"}"}}]})
            } else {
                json!({"content": "one two three"})
            });
            if body["stream"] != true {
                let mut message = json!({"role": "assistant", "content": null});
                for delta in deltas {
                    message
                        .as_object_mut()
                        .unwrap()
                        .extend(delta.as_object().unwrap().clone());
                }
                let finish = if calls { "tool_calls" } else { "stop" };
                return Reply::json(
                    200,
                    &json!({"id": "c", "object": "chat.completion", "created": 7, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}),
                );
            }
            let chunk = |choices: Value| json!({"id": "c", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices});
            let mut out: Vec<Value> = deltas
                .iter()
                .map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])))
                .collect();
            out.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": if calls { "tool_calls" } else { "stop" }}])));
            let mut last = chunk(json!([]));
            last["usage"] = json!({"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18});
            out.push(last);
            let out = out.iter().map(|chunk| format!("data: {chunk}\n\n"));
            return Reply::events(out.chain(["data: [DONE]\n\n".to_owned()]));
        }
        _ => {
            let mut content = Vec::new();
            if thinks {
                content.push(json!({"type": "thinking", "thinking": "hm", "signature": "EqQB"}));
            }
            content.push(if calls {
                json!({"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"location": "x"}})
            } else {
                json!({"type": "text", "text": "one two three"})
            });
            let stop = if calls { "tool_use" } else { "end_turn" };
            let whole = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
                "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 9}});
            if body["stream"] != true {
                return Reply::json(200, &whole);
            }
            let mut begun = whole.clone();
            begun["content"] = json!([]);
            let mut out = vec![json!({"type": "message_start", "message": begun})];
            for (index, block) in content.iter().enumerate() {
                out.push(
                    json!({"type": "content_block_start", "index": index, "content_block": block}),
                );
                out.push(json!({"type": "content_block_stop", "index": index}));
            }
            out.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 9}}));
            out.push(json!({"type": "message_stop"}));
            out
        }
    };
    Reply::events(frames.iter().map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    }))
}

/// Members of a response that are never missing; whether they may be null.
const RESPONSE: [(&str, bool); 30] = [
    ("id", false),
    ("object", false),
    ("created_at", false),
    ("completed_at", true),
    ("status", false),
    ("incomplete_details", true),
    ("model", false),
    ("previous_response_id", true),
    ("instructions", true),
    ("output", false),
    ("error", true),
    ("tools", false),
    ("tool_choice", false),
    ("truncation", false),
    ("parallel_tool_calls", false),
    ("text", false),
    ("top_p", false),
    ("presence_penalty", false),
    ("frequency_penalty", false),
    ("top_logprobs", false),
    ("temperature", false),
    ("reasoning", true),
    ("usage", true),
    ("max_output_tokens", true),
    ("max_tool_calls", true),
    ("store", false),
    ("background", false),
    ("service_tier", false),
    ("safety_identifier", true),
    ("prompt_cache_key", true),
];

fn faults_of_item(item: &Value) -> Vec<String> {
    let needed: &[&str] = match item["type"].as_str().unwrap_or_default() {
        "message" => &["id", "status", "role", "content"],
        "reasoning" => &["id", "summary"],
        "function_call" => &["id", "call_id", "name", "arguments", "status"],
        _ => &["a known type"],
    };
    let optional = ["content", "encrypted_content", "created_by"];
    let missing = needed.iter().filter(|name| item[**name].is_null());
    let null = optional
        .iter()
        .filter(|name| item.get(**name).is_some_and(Value::is_null));
    missing
        .chain(null)
        .map(|name| format!("{name} of {item}"))
        .collect()
}

fn faults(template: &Template, response: &Value, events: &[Value]) -> Vec<String> {
    let mut out: Vec<String> = RESPONSE
        .iter()
        .filter(|(name, nullable)| {
            response
                .get(*name)
                .is_none_or(|value| value.is_null() && !nullable)
        })
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let items = response["output"].as_array().cloned().unwrap_or_default();
    let streamed = events.iter().filter_map(|event| event.get("item"));
    out.extend(items.iter().chain(streamed).flat_map(faults_of_item));
    let has = |kind: &str| items.iter().any(|item| item["type"] == kind);
    if items.is_empty() || response["status"] != "completed" {
        out.push(format!("no completed output: {response}"));
    }
    if template.tools && !has("function_call") {
        out.push("no function_call".to_owned());
    }
    if template.stream {
        let seen = |kind: &str, item: Option<&str>| {
            events.iter().any(|event| {
                event["type"] == kind && item.is_none_or(|item| event["item"]["type"] == item)
            })
        };
        let call = Some("function_call");
        let wanted = [
            ("response.output_item.added", call),
            ("response.function_call_arguments.delta", None),
            ("response.function_call_arguments.done", None),
            ("response.output_item.done", call),
        ];
        let missing = wanted
            .iter()
            .filter(|(kind, item)| template.tools && !seen(kind, *item));
        out.extend(missing.map(|(kind, _)| (*kind).to_owned()));
        let numbered = events
            .iter()
            .enumerate()
            .all(|(at, event)| event["sequence_number"] == at);
        out.extend((!numbered).then(|| "sequence_number".to_owned()));
    }
    out
}

#[tokio::test]
async fn the_eight_tests_over_http_pass_on_targets_of_every_family_with_thinking_and_without() {
    for family in [Family::Chat, Family::Messages] {
        for thinks in [false, true] {
            let script = Script::by(move |seen: &Seen, _| answer(family, thinks, &seen.json()));
            let upstream = ScriptedUpstream::start(script).await;
            let gateway = Gateway::start(
                &catalog(family),
                &routes_speaking(&upstream.base_url(), family),
            )
            .await;
            let key = gateway.key("5.00").await;
            for template in suite() {
                let mut body = json!({"model": "test-model", "input": template.input, "stream": template.stream});
                if template.tools {
                    body["tools"] = json!([{"type": "function", "name": "get_weather", "description": "Get the current weather for a location",
                        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}]);
                }
                let answer = gateway.post(path(Family::Responses), &key, &body).await;
                assert_eq!(answer.status, 200, "{}: {}", template.name, answer.text);
                let events: Vec<Value> = answer
                    .text
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .map(|data| serde_json::from_str(data).unwrap())
                    .collect();
                let response = if template.stream {
                    events.last().unwrap()["response"].clone()
                } else {
                    answer.json()
                };
                let kinds = response["output"].to_string();
                assert_eq!(kinds.contains("\"reasoning\""), thinks, "{kinds}");
                assert_eq!(
                    faults(&template, &response, &events),
                    Vec::<String>::new(),
                    "{family} {thinks} {}",
                    template.name
                );
            }
            gateway.stop().await;
        }
    }
}
