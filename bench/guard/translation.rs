//! The guard's counts for translation: a text delta, and a coding client's request, each compared with the same bytes passed on.

use std::hint::black_box;

use bytes::Bytes;
use farebox_protocol::json::{quoted, splice};
use farebox_protocol::translate::{self, Abilities, AnswerWish, EncodeTarget, Memo, Translator};
use farebox_protocol::{Edits, Family, Frame, FrameReader};
use serde_json::{Value, json};

/// One case by its name: `chunk` or `request`, a family and, for a translation, another.
pub(crate) fn run(name: &str, times: u64) {
    let mut words = name.split(' ');
    let what = words.next().unwrap();
    let mut families = words.map(|word| {
        Family::ALL
            .into_iter()
            .find(|family| family.name().starts_with(word))
            .unwrap()
    });
    let (from, to) = (families.next().unwrap(), families.next());
    match what {
        "chunk" => chunks(from, to, times),
        "request" => requests(from, to, times),
        other => unreachable!("no case is called {other}"),
    }
}

/// The frames before a text delta, and the delta.
fn stream(upstream: Family) -> (Vec<Value>, Value) {
    match upstream {
        Family::Chat => {
            let chunk = |delta: Value| {
                json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                    "choices": [{"index": 0, "delta": delta}]})
            };
            (
                vec![chunk(json!({"role": "assistant", "content": ""}))],
                chunk(json!({"content": " word"})),
            )
        }
        Family::Messages => (
            vec![
                json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ],
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " word"}}),
        ),
        Family::Responses => (
            vec![
                json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "i", "type": "message", "content": []}}),
            ],
            json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": " word",
                "logprobs": [], "sequence_number": 2}),
        ),
    }
}

fn event(data: &Value) -> Bytes {
    let name = data["type"]
        .as_str()
        .map(|kind| format!("event: {kind}\n"))
        .unwrap_or_default();
    Bytes::from(format!("{name}data: {data}\n\n"))
}

/// Cutting a text delta out of a stream, reading it, and writing what the customer gets.
fn chunks(upstream: Family, caller: Option<Family>, times: u64) {
    let mut cutter = FrameReader::new();
    let mut reader = upstream.protocol().reader();
    let wish = AnswerWish {
        model: "slug",
        id: "req1",
        created: 7,
        request: b"{}",
    };
    let mut translator =
        caller.map(|caller| Translator::new(upstream, caller, Memo::default(), &wish));
    let (first, delta) = stream(upstream);
    for data in first {
        let frame = Frame::new(event(&data));
        reader.read(&frame);
        translator
            .iter_mut()
            .for_each(|translator| drop(translator.frame(&frame).to_vec()));
    }
    let (delta, name) = (event(&delta), quoted("slug"));
    for _ in 0..times {
        cutter.push(delta.clone());
        let frame = cutter.next_frame().unwrap().unwrap();
        let facts = reader.read(&frame);
        black_box(match &mut translator {
            Some(translator) => Bytes::copy_from_slice(translator.frame(&frame)),
            None => {
                let mut edits = facts.marks.edits(&name);
                if edits.is_empty() {
                    frame.raw().clone()
                } else {
                    Bytes::from(splice(frame.raw(), &mut edits))
                }
            }
        });
    }
}

/// A coding client's request of about 100 KiB: tools, and turns of calls and results.
fn request(family: Family) -> Vec<u8> {
    let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
        "path": {"type": "string", "description": "Where the file is, absolutely. ".repeat(6)}}});
    let told = "Does a thing in the repository with care. ".repeat(20);
    let output =
        "fn main() {\n    println!(\"hello {}\", 1);\n} and some words about it\n".repeat(32);
    let mut turns = vec![json!({"role": "user", "content": "begin"})];
    let mut tools = Vec::new();
    for at in 0..28 {
        let (name, id, arguments) = (
            format!("tool_{at}"),
            format!("call_{at}"),
            json!({"path": "/a/b/c"}),
        );
        match family {
            Family::Chat => {
                tools.push(json!({"type": "function", "function": {"name": name, "description": told, "parameters": schema}}));
                let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
                turns
                    .push(json!({"role": "assistant", "content": "I look.", "tool_calls": [call]}));
                turns.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
            }
            Family::Messages => {
                tools.push(json!({"name": name, "description": told, "input_schema": schema}));
                let call = json!({"type": "tool_use", "id": id, "name": name, "input": arguments});
                turns.push(json!({"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}));
                let given = json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": output}]});
                turns.push(json!({"role": "user", "content": [given]}));
            }
            Family::Responses => {
                tools.push(json!({"type": "function", "name": name, "description": told, "parameters": schema, "strict": false}));
                turns.push(
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}),
                );
                turns.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()}));
                turns
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
    }
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    let mut body = json!({"model": "slug", "stream": true, "tools": tools, list: turns});
    if family == Family::Messages {
        body["max_tokens"] = json!(4_000);
    }
    body.to_string().into_bytes()
}

fn requests(from: Family, to: Option<Family>, times: u64) {
    let body = request(from);
    for _ in 0..times {
        if let Some(to) = to {
            let abilities = Abilities::careful(to);
            let target = EncodeTarget {
                model: "upstream-model-name",
                abilities: &abilities,
            };
            black_box(translate::request(from, to, black_box(&body), &target).unwrap());
        } else {
            let seen = from.protocol().inspect(black_box(&body), 0).unwrap();
            let edits = Edits {
                model: "upstream-model-name",
                limit_field: "max_tokens",
                limit: None,
                ..Edits::default()
            };
            black_box(from.protocol().patch(&body, &seen, &edits));
        }
    }
}
