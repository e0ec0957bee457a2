//! Laws that hold for every input: nothing panics, one end, blocks in order, streams fold to whole answers, prefixes stay.

use bytes::Bytes;
use farebox_protocol::translate::{Memo, Translator, cut_seals, read_answer, write_answer};
use farebox_protocol::{Family, Frame, UsageWish};
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

fn odd_json() -> impl Strategy<Value = Value> {
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
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

/// One turn of a conversation.
#[derive(Debug, Clone)]
enum Said {
    Text(String),
    Calls(Vec<(String, String)>),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        "[a-z\"\\\\\nß🎫]{1,12}".prop_map(|text| Said::Text(format!("t{text}"))),
        prop::collection::vec(("[a-z]{1,5}", "[a-z\"\\\\\nß ]{0,9}"), 1..4).prop_map(Said::Calls),
    ]
}

/// A conversation of messages clients: the user's words, and the model's turns with what followed.
fn native_talk(turns: &[Said]) -> Value {
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
fn item_talk(turns: &[Said]) -> Value {
    let mut out = vec![json!({"role": "developer", "content": "rules"}), json!({"role": "user", "content": "begin"})];
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

fn messages_of(body: &Value) -> Vec<String> {
    body["messages"].as_array().expect("messages").iter().map(Value::to_string).collect()
}

/// A piece of an answer, in no family's shape.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Thinking(String),
    Call(String, String),
}

fn answer() -> impl Strategy<Value = Vec<Piece>> {
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
    text.chars().collect::<Vec<_>>().chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// The answer of a messages upstream, streamed and whole.
fn native_answer(answer: &[Piece], length: usize) -> (Vec<String>, Value) {
    let mut blocks = Vec::new();
    let mut content = Vec::new();
    for (at, piece) in answer.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                let deltas = pieces(text, length).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
                blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
                content.push(json!({"type": "text", "text": text}));
            }
            Piece::Thinking(text) => {
                let deltas = pieces(text, length).into_iter().map(|text| json!({"type": "thinking_delta", "thinking": text}));
                blocks.push((json!({"type": "thinking", "thinking": "", "signature": ""}), deltas.collect()));
                content.push(json!({"type": "thinking", "thinking": text, "signature": "s"}));
            }
            Piece::Call(name, value) => {
                let (id, input) = (format!("t{at}"), json!({"v": value}));
                let text = input.to_string();
                let parts = pieces(&text, length);
                blocks.push(call_block(&id, name, &parts.iter().map(String::as_str).collect::<Vec<_>>()));
                content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            }
        }
    }
    let stop = if answer.iter().any(|piece| matches!(piece, Piece::Call(..))) { "tool_use" } else { "end_turn" };
    (native(&blocks, stop), json!({"type": "message", "content": content, "stop_reason": stop}))
}

/// The events of a stream as an upstream of its family would send them.
fn data_of(stream: &str) -> Vec<String> {
    frames(stream).iter().filter_map(|frame| Some(String::from_utf8(frame.data()?.into_owned()).expect("UTF-8"))).collect()
}

fn whole(upstream: Family, caller: Family, body: &[u8]) -> Value {
    let answer = read_answer(upstream, body);
    let request = asking(caller, &json!({})).to_string();
    let asked = UsageWish { chunk: true, cost: None };
    serde_json::from_slice(&write_answer(caller, &answer, &Memo::default(), &wish(request.as_bytes()), &USAGE, asked))
        .expect("JSON")
}

/// One end, and it is last.
fn assert_one_end(caller: Family, stream: &str) {
    let all = events(stream);
    let is_end = |event: &Value| match caller {
        Chat => *event == "[DONE]" || event.get("error").is_some(),
        Messages => event["type"] == "message_stop" || event["type"] == "error",
        Responses => {
            ["response.completed", "response.incomplete", "response.failed"].contains(&event["type"].as_str().unwrap_or_default())
        }
    };
    assert_eq!(all.iter().filter(|event| is_end(event)).count(), 1, "{stream}");
    assert!(all.last().is_some_and(is_end), "{stream}");
    match caller {
        Messages if !stream.contains("event: error") => drop(blocks(stream)),
        Responses => assert_items(&all),
        _ => {}
    }
}

/// Items never overlap, each is numbered and done unless the answer broke, and events are numbered.
fn assert_items(all: &[Value]) {
    let mut open = None;
    let mut next = 0;
    for (at, event) in all.iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
        let index = event["output_index"].as_u64();
        match event["type"].as_str().expect("a type") {
            "response.output_item.added" => {
                assert_eq!((open, index), (None, Some(next)));
                open = index;
                next += 1;
            }
            "response.output_item.done" => {
                assert_eq!(index, open);
                open = None;
            }
            "response.completed" | "response.incomplete" => {
                assert_eq!(open, None);
                assert_eq!(event["response"]["output"].as_array().map(Vec::len), Some(usize::try_from(next).expect("small")));
            }
            _ => assert!(index.is_none() || index == open),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_panics(value in odd_json(), turns in prop::collection::vec(odd_json(), 0..6), able_target in any::<bool>()) {
        for (from, to) in PAIRS {
            let abilities = if able_target { able(to) } else { farebox_protocol::translate::Abilities::careful(to) };
            let list = if from == Responses { "input" } else { "messages" };
            let bodies = [
                json!({"model": "m", "max_tokens": 9, list: turns, "tools": value, "system": value, "text": value, "tool_choice": value}),
                json!({"model": "m", "max_tokens": 9, list: value, "tools": turns, "thinking": value, "response_format": value}),
                value.clone(),
            ];
            for body in bodies {
                if let Ok(translated) = translated(from, to, &abilities, &body) {
                    let sent: Value = serde_json::from_slice(&translated.body).expect("JSON is sent");
                    let last = sent["messages"].as_array().and_then(|list| list.last()).expect("something is said");
                    prop_assert!(["user", "tool", "system"].iter().any(|role| last["role"] == *role));
                    prop_assert!(translated.losses.header().len() <= 1_024);
                }
            }
            let _ = cut_seals(json!({list: turns}).to_string().as_bytes());
        }
    }

    #[test]
    fn calls_and_results_are_always_paired(turns in prop::collection::vec((0_u8..6, 0_u8..4), 0..14)) {
        let items: Vec<Value> = turns.iter().map(|(kind, id)| match kind {
            0 | 1 => json!({"type": "function_call", "call_id": format!("c{id}"), "name": "f", "arguments": "{}"}),
            2 | 3 => json!({"type": "function_call_output", "call_id": format!("c{id}"), "output": "r"}),
            4 => json!({"role": "user", "content": "u"}),
            _ => json!({"role": "assistant", "content": "a"}),
        }).collect();
        let body = talking(Responses, Value::Array(items));
        let Ok(chat) = translated(Responses, Chat, &able(Chat), &body) else { return Ok(()) };
        let chat: Value = serde_json::from_slice(&chat.body).expect("JSON");
        let mut waiting: Vec<Value> = Vec::new();
        let mut given = std::collections::HashSet::new();
        for message in chat["messages"].as_array().expect("messages") {
            if message["role"] == "tool" {
                prop_assert!(!waiting.is_empty());
                prop_assert_eq!(&waiting.remove(0), &message["tool_call_id"]);
                continue;
            }
            prop_assert!(waiting.is_empty());
            waiting = message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].clone()).collect();
            for id in &waiting {
                prop_assert!(given.insert(id.to_string()), "an id is given once");
            }
        }
        prop_assert!(waiting.is_empty());
    }

    #[test]
    fn what_is_carried_survives_a_round_trip(turns in prop::collection::vec(said(), 0..6)) {
        let body = native_talk(&turns);
        let there = sent(Messages, Chat, &body);
        prop_assert_eq!(&sent(Chat, Messages, &there)["messages"], &body["messages"]);
        let items = item_talk(&turns);
        let native = sent(Responses, Messages, &items);
        prop_assert_eq!(&native["messages"], &body["messages"]);
        prop_assert_eq!(&sent(Messages, Chat, &native)["messages"], &sent(Responses, Chat, &items)["messages"]);
    }

    #[test]
    fn an_older_conversation_is_a_prefix(turns in prop::collection::vec(said(), 1..7)) {
        let talks: [(Family, fn(&[Said]) -> Value); 2] = [(Messages, native_talk), (Responses, item_talk)];
        for (from, talk) in talks {
            for (_, to) in PAIRS.into_iter().filter(|(family, _)| *family == from) {
                let new = messages_of(&sent(from, to, &talk(&turns)));
                for length in 0..turns.len() {
                    let old = messages_of(&sent(from, to, &talk(&turns[..length])));
                    prop_assert_eq!(&old[..], &new[..old.len()]);
                }
            }
        }
        let chat: Value = sent(Messages, Chat, &native_talk(&turns));
        let list = chat["messages"].as_array().expect("messages");
        let whole = messages_of(&sent(Chat, Messages, &talking(Chat, json!(list))));
        let user_ends = (1..list.len()).filter(|at| list[at - 1]["role"] == "user");
        for at in user_ends {
            let old = messages_of(&sent(Chat, Messages, &talking(Chat, json!(list[..at]))));
            prop_assert_eq!(&old[..], &whole[..old.len()]);
        }
    }

    #[test]
    fn a_stream_folds_to_the_whole_answer(answer in answer(), length in 1_usize..9) {
        let (stream, body) = native_answer(&answer, length);
        let body = body.to_string();
        let shown = relay(Messages, Responses, Memo::default(), &stream);
        assert_one_end(Responses, &shown);
        prop_assert_eq!(&last_of(&shown, "/response"), &whole(Messages, Responses, body.as_bytes()));
        // The same by way of chat, whose stream and whole answer are read again.
        let chat_stream = relay(Messages, Chat, Memo::default(), &stream);
        assert_one_end(Chat, &chat_stream);
        let chat_whole = whole(Messages, Chat, body.as_bytes()).to_string();
        let calls = |response: &Value| -> Vec<Value> {
            response["output"].as_array().expect("output").iter().filter(|item| item["type"] == "function_call").map(|item| item["arguments"].clone()).collect()
        };
        let texts = |response: &Value, kind: &str| -> String {
            let parts = response["output"].as_array().expect("output").iter();
            parts.flat_map(|item| item[kind].as_array().into_iter().flatten()).filter_map(|part| part["text"].as_str()).collect()
        };
        let streamed = last_of(&relay(Chat, Responses, Memo::default(), &data_of(&chat_stream)), "/response");
        let read = whole(Chat, Responses, chat_whole.as_bytes());
        prop_assert_eq!(calls(&streamed), calls(&read));
        prop_assert_eq!(texts(&streamed, "content"), texts(&read, "content"));
        prop_assert_eq!(texts(&streamed, "summary"), texts(&read, "summary"));
        // And back to messages: block by block what the upstream said.
        let native_stream = relay(Chat, Messages, Memo::default(), &data_of(&chat_stream));
        assert_one_end(Messages, &native_stream);
    }

    #[test]
    fn any_events_in_any_order_have_one_end(
        native_events in prop::collection::vec((0_usize..9, 0_u64..3), 0..24),
        chat_deltas in prop::collection::vec((0_usize..9, 0_u64..3), 0..24),
        odd in prop::collection::vec(odd_json(), 0..4),
    ) {
        let native: Vec<String> = native_events.iter().map(|(kind, index)| native_event(*kind, *index).to_string()).chain(odd.iter().map(Value::to_string)).collect();
        let chat: Vec<String> = chat_deltas.iter().map(|(kind, index)| chat_event(*kind, *index).to_string()).chain(odd.iter().map(Value::to_string)).collect();
        for (upstream, data) in [(Messages, &native), (Chat, &chat)] {
            for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
                assert_one_end(caller, &relay(upstream, caller, Memo::default(), data));
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (stream, whole) = native_answer(&[Piece::Text("a\"b".into()), Piece::Call("f".into(), "x".into())], 2);
        let mut damaged: Vec<Vec<u8>> = stream.iter().map(|data| format!("data: {data}\n\n").into_bytes()).collect();
        let place = at.index(damaged.len());
        let inside = at.index(damaged[place].len());
        damaged[place][inside] = byte;
        damaged.push(bytes.clone());
        for upstream in [Chat, Messages] {
            for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
                let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(&bytes)).expect("a translation");
                for raw in &damaged {
                    translator.frame(&Frame::new(Bytes::from(raw.clone())));
                }
                translator.end();
                translator.fail(&broken());
            }
            let mut body = whole.to_string().into_bytes();
            let inside = at.index(body.len());
            body[inside] = byte;
            let _ = read_answer(upstream, &body);
            let _ = read_answer(upstream, &bytes);
        }
        for family in Family::ALL {
            for (from, to) in PAIRS {
                let target = farebox_protocol::translate::Target { model: "m", abilities: &able(family) };
                let _ = farebox_protocol::translate::request(from, to, &bytes, &target);
            }
        }
        let _ = cut_seals(&bytes);
    }
}

fn pick(words: &[&'static str], index: u64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| words.get(index)).expect("a word")
}

fn native_event(kind: usize, index: u64) -> Value {
    match kind {
        0 => json!({"type": "message_start", "message": {}}),
        1 => json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "s"}}),
        2 => json!({"type": "content_block_start", "index": index, "content_block": {"type": "thinking", "thinking": ""}}),
        3 => {
            json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}})
        }
        4 => json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "d"}}),
        5 => json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        6 => json!({"type": "content_block_stop", "index": index}),
        7 => {
            json!({"type": "message_delta", "delta": {"stop_reason": pick(&["end_turn", "max_tokens", "tool_use"], index)}})
        }
        _ => json!({"type": "ping"}),
    }
}

fn chat_event(kind: usize, index: u64) -> Value {
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
