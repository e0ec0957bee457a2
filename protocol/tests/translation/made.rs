//! Random requests and answers, valid and odd.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::help::*;

/// Words that mean something somewhere.
const WORDS: &[&str] = &[
    "user",
    "assistant",
    "system",
    "developer",
    "tool",
    "function",
    "text",
    "input_text",
    "output_text",
    "image",
    "image_url",
    "document",
    "file",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "reasoning",
    "message",
    "custom",
    "namespace",
    "auto",
    "required",
    "allowed_tools",
    "json_schema",
    "json_object",
    "enabled",
    "adaptive",
    "high",
    "base64",
    "url",
    "c1",
    "c2",
    "",
    "fbx1.x",
    "{\"a\":1}",
    "{\"a\":",
    "web_search_20250305",
    "compaction",
    "input_file",
    "input_image",
    "data:image/png;base64,AA==",
];

/// Names of members that mean something somewhere.
const NAMES: &[&str] = &[
    "type",
    "role",
    "content",
    "text",
    "id",
    "call_id",
    "tool_use_id",
    "tool_call_id",
    "name",
    "input",
    "arguments",
    "output",
    "source",
    "data",
    "media_type",
    "url",
    "image_url",
    "file",
    "file_data",
    "filename",
    "tool_calls",
    "function",
    "custom",
    "parameters",
    "input_schema",
    "tools",
    "tool_choice",
    "thinking",
    "signature",
    "encrypted_content",
    "summary",
    "reasoning_content",
    "cache_control",
    "is_error",
    "action",
    "schema",
    "format",
    "effort",
    "stop",
    "description",
    "title",
    "namespace",
    "budget_tokens",
    "delta",
    "index",
    "choices",
    "finish_reason",
    "content_block",
    "stop_reason",
    "partial_json",
    "error",
];

pub(crate) fn odd_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u32..5_000).prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        "[a-z\"\\\\\u{1}ß🎫 ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

/// One turn of a conversation.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Text(String),
    Calls(Vec<(String, String)>),
}

pub(crate) fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        "[a-z\"\\\\\nß🎫]{1,12}".prop_map(|text| Said::Text(format!("t{text}"))),
        prop::collection::vec(("[a-z]{1,5}", "[a-z\"\\\\\nß ]{0,9}"), 1..4).prop_map(Said::Calls),
    ]
}

/// A conversation of messages clients: the user's words, and the model's turns with what followed.
pub(crate) fn native_talk(turns: &[Said]) -> Value {
    let mut out = vec![json!({"role": "user", "content": [{"type": "text", "text": "begin"}]})];
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Said::Text(text) => {
                out.push(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}));
                out.push(json!({"role": "user", "content": [{"type": "text", "text": format!("and {at}?")}]}));
            }
            Said::Calls(calls) => {
                let id = |call: usize| format!("call_{at}_{call}");
                let uses = calls.iter().enumerate();
                let uses = uses.map(
                    |(call, (name, value))| json!({"type": "tool_use", "id": id(call), "name": name, "input": {"v": value}}),
                );
                let results = calls.iter().enumerate().map(|(call, (_, value))| {
                    json!({"type": "tool_result", "tool_use_id": id(call), "content": [{"type": "text", "text": format!("r{value}")}]})
                });
                out.push(json!({"role": "assistant", "content": uses.collect::<Vec<_>>()}));
                out.push(json!({"role": "user", "content": results.collect::<Vec<_>>()}));
            }
        }
    }
    talking(Messages, Value::Array(out))
}

/// The same conversation of responses clients.
pub(crate) fn item_talk(turns: &[Said]) -> Value {
    let mut out = vec![
        json!({"role": "developer", "content": "rules"}),
        json!({"role": "user", "content": "begin"}),
    ];
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Said::Text(text) => {
                out.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
                out.push(json!({"role": "user", "content": format!("and {at}?")}));
            }
            Said::Calls(calls) => {
                let id = |call: usize| format!("call_{at}_{call}");
                out.extend(calls.iter().enumerate().map(|(call, (name, value))| {
                    json!({"type": "function_call", "call_id": id(call), "name": name, "arguments": json!({"v": value}).to_string()})
                }));
                out.extend(calls.iter().enumerate().map(|(call, (_, value))| {
                    json!({"type": "function_call_output", "call_id": id(call), "output": format!("r{value}")})
                }));
            }
        }
    }
    talking(Responses, Value::Array(out))
}

pub(crate) fn messages_of(body: &Value) -> Vec<String> {
    let list = body["messages"]
        .as_array()
        .or(body["input"].as_array())
        .expect("a conversation");
    list.iter().map(Value::to_string).collect()
}

/// A piece of an answer, in no family's shape.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Text(String),
    Thinking(String),
    Call(String, String),
}

pub(crate) fn answer() -> impl Strategy<Value = Vec<Piece>> {
    let text = || "[a-z\"\\\\\n\u{1}ß漢🎫 ]{1,20}";
    prop::collection::vec(
        prop_oneof![
            text().prop_map(Piece::Text),
            text().prop_map(Piece::Thinking),
            ("[a-z]{1,6}", text()).prop_map(|(name, value)| Piece::Call(name, value)),
        ],
        0..6,
    )
}

/// Cuts a text into pieces of this many characters.
fn pieces(text: &str, length: usize) -> Vec<String> {
    text.chars()
        .collect::<Vec<_>>()
        .chunks(length)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// The answer of a messages upstream, streamed and whole.
pub(crate) fn native_answer(answer: &[Piece], length: usize) -> (Vec<String>, Value) {
    let mut blocks = Vec::new();
    let mut content = Vec::new();
    for (at, piece) in answer.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                let deltas = pieces(text, length)
                    .into_iter()
                    .map(|text| json!({"type": "text_delta", "text": text}));
                blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
                content.push(json!({"type": "text", "text": text}));
            }
            Piece::Thinking(text) => {
                let deltas = pieces(text, length)
                    .into_iter()
                    .map(|text| json!({"type": "thinking_delta", "thinking": text}));
                blocks.push((
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas.collect(),
                ));
                content.push(json!({"type": "thinking", "thinking": text, "signature": "s"}));
            }
            Piece::Call(name, value) => {
                let (id, input) = (format!("t{at}"), json!({"v": value}));
                let text = input.to_string();
                let parts = pieces(&text, length);
                blocks.push(call_block(
                    &id,
                    name,
                    &parts.iter().map(String::as_str).collect::<Vec<_>>(),
                ));
                content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            }
        }
    }
    let stop = if answer.iter().any(|piece| matches!(piece, Piece::Call(..))) {
        "tool_use"
    } else {
        "end_turn"
    };
    (
        native(&blocks, stop),
        json!({"type": "message", "content": content, "stop_reason": stop}),
    )
}

fn pick(words: &[&'static str], index: u64) -> &'static str {
    usize::try_from(index)
        .ok()
        .and_then(|index| words.get(index))
        .expect("a word")
}

pub(crate) fn native_event(kind: usize, index: u64) -> Value {
    match kind {
        0 => json!({"type": "message_start", "message": {}}),
        1 => {
            json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "s"}})
        }
        2 => {
            json!({"type": "content_block_start", "index": index, "content_block": {"type": "thinking", "thinking": ""}})
        }
        3 => {
            json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}})
        }
        4 => {
            json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "d"}})
        }
        5 => {
            json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}})
        }
        6 => json!({"type": "content_block_stop", "index": index}),
        7 => {
            json!({"type": "message_delta", "delta": {"stop_reason": pick(&["end_turn", "max_tokens", "tool_use"], index)}})
        }
        _ => json!({"type": "ping"}),
    }
}

pub(crate) fn chat_event(kind: usize, index: u64) -> Value {
    let delta = match kind {
        0 => json!({"content": "a"}),
        1 => json!({"reasoning_content": "b"}),
        2 => json!({"refusal": "r"}),
        3 => tool_call(index, &format!("c{index}"), "f", ""),
        4 => tool_call(index, "", "", "{}"),
        5 => json!({"tool_calls": [{"function": {"name": "g", "arguments": "{\"a\":"}}]}),
        6 => tool_call(index, "c9", "h", "{\"x\":\"}\"}"),
        7 => {
            return json!({"choices": [{"index": 0, "delta": {}, "finish_reason": pick(&["stop", "length", "tool_calls"], index)}]});
        }
        _ => return json!({"choices": []}),
    };
    json!({"choices": [{"index": 0, "delta": delta}]})
}

/// What a messages caller must get of an answer.
pub(crate) fn said_by(answer: &[Piece]) -> Vec<(String, String)> {
    let block = |piece: &Piece| match piece {
        Piece::Text(text) => ("text".to_owned(), text.clone()),
        Piece::Thinking(text) => ("thinking".to_owned(), text.clone()),
        Piece::Call(_, value) => ("tool_use".to_owned(), json!({"v": value}).to_string()),
    };
    answer.iter().map(block).collect()
}

pub(crate) fn item_event(kind: usize, index: u64) -> Value {
    let call = json!({"type": "function_call", "call_id": format!("c{index}"), "name": "f", "arguments": "{}"});
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "m"}]});
    match kind {
        0 => json!({"type": "response.created", "response": {}}),
        1 => json!({"type": "response.output_item.added", "output_index": index, "item": call}),
        2 => json!({"type": "response.output_item.done", "output_index": index, "item": call}),
        3 => json!({"type": "response.output_item.done", "output_index": index, "item": message}),
        4 => json!({"type": "response.output_text.delta", "output_index": index, "delta": "t"}),
        5 => json!({"type": "response.reasoning_text.delta", "delta": "r"}),
        6 => {
            json!({"type": "response.reasoning_summary_text.delta", "output_index": index, "summary_index": index, "delta": "s"})
        }
        7 => {
            json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": "{"})
        }
        8 => {
            json!({"type": pick(&["response.completed", "response.incomplete", "response.in_progress"], index), "response": {"output": [message, call]}})
        }
        _ => json!({"type": "response.refusal.delta", "delta": "x"}),
    }
}
