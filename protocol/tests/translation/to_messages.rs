//! Streams towards messages callers.

use farebox_protocol::translate::Memo;
use serde_json::{Value, json};

use super::help::*;

fn relayed(deltas: &[Value], finish: &str) -> String {
    relay(Chat, Messages, Memo::default(), &chat(deltas, finish))
}

fn kinds(stream: &str) -> Vec<(String, String)> {
    blocks(stream)
}

fn of(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn b55_text_thinking_text_are_three_blocks() {
    let stream = relayed(
        &[
            json!({"content": "a"}),
            json!({"reasoning_content": "b"}),
            json!({"content": "c"}),
        ],
        "stop",
    );
    assert_eq!(
        kinds(&stream),
        of(&[("text", "a"), ("thinking", "b"), ("text", "c")])
    );
}

#[test]
fn b56_text_after_a_call_is_a_new_block() {
    let stream = relayed(
        &[
            json!({"content": "a"}),
            tool_call(0, "c1", "f", "{}"),
            json!({"content": "b"}),
        ],
        "tool_calls",
    );
    assert_eq!(
        kinds(&stream),
        of(&[("text", "a"), ("tool_use", "{}"), ("text", "b")])
    );
    let cut = json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]});
    let stream = relayed(
        &[
            tool_call(0, "c1", "f", "{\"a\":"),
            json!({"content": "b"}),
            cut,
        ],
        "tool_calls",
    );
    assert_eq!(
        kinds(&stream),
        of(&[("tool_use", "{\"a\":1}"), ("text", "b")]),
        "text waits for a call that is not whole"
    );
}

#[test]
fn b57_thinking_alone_is_a_valid_stream() {
    let stream = relayed(&[json!({"reasoning_content": "a"})], "stop");
    assert_eq!(kinds(&stream), of(&[("thinking", "a")]));
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "end_turn");
}

#[test]
fn b58_text_behind_thinking_has_the_next_index() {
    let stream = relayed(
        &[json!({"reasoning_content": "a"}), json!({"content": "b"})],
        "stop",
    );
    let delta = events(&stream)
        .into_iter()
        .find(|event| event["delta"]["type"] == "text_delta")
        .expect("text");
    assert_eq!(delta["index"], 1);
}

#[test]
fn b59_reasoning_under_any_name_is_thinking() {
    for delta in [
        json!({"reasoning_content": "a"}),
        json!({"reasoning_content": "a", "thinking_blocks": [], "content": ""}),
        json!({"reasoning": "a"}),
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "a"}]}),
        json!({"reasoning": "a", "reasoning_content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a"}]}),
    ] {
        assert_eq!(kinds(&relayed(&[delta], "stop")), of(&[("thinking", "a")]));
    }
}

#[test]
fn b60_no_byte_of_a_calls_first_chunk_is_lost() {
    let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]});
    let stream = relayed(&[tool_call(0, "c1", "f", "{\"a\":"), rest], "tool_calls");
    assert_eq!(kinds(&stream), of(&[("tool_use", "{\"a\":1}")]));
}

#[test]
fn b61_b103_parallel_calls_are_two_whole_blocks() {
    let piece = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
    let first = |index: u64| json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": ""}});
    let interleaved = [
        json!({"tool_calls": [first(0)]}),
        json!({"tool_calls": [first(1)]}),
        json!({"tool_calls": [piece(1, "{\"b\"")]}),
        json!({"tool_calls": [piece(0, "{\"a\""), piece(1, ":2}")]}),
        json!({"tool_calls": [piece(0, ":1}")]}),
    ];
    let stream = relayed(&interleaved, "tool_calls");
    assert_eq!(
        kinds(&stream),
        of(&[("tool_use", "{\"a\":1}"), ("tool_use", "{\"b\":2}")])
    );
    let call = |index: u64, id: &str| json!({"index": index, "id": id, "function": {"name": "f", "arguments": "{}"}});
    let stream = relayed(
        &[json!({"tool_calls": [call(0, "c1"), call(1, "c2")]})],
        "tool_calls",
    );
    assert_eq!(
        kinds(&stream),
        of(&[("tool_use", "{}"), ("tool_use", "{}")])
    );
}

#[test]
fn b62_a_wrongly_numbered_delta_goes_to_the_open_block() {
    let upstream = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "a"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let upstream: Vec<String> = upstream.iter().map(Value::to_string).collect();
    assert!(relay(Messages, Chat, Memo::default(), &upstream).contains("\"content\":\"a\""));
}

#[test]
fn b63_b64_b65_the_last_counts_are_settled_and_whole() {
    let stream = relayed(&[json!({"content": "a"})], "stop");
    let deltas: Vec<Value> = events(&stream)
        .into_iter()
        .filter(|event| event["type"] == "message_delta")
        .collect();
    assert_eq!(deltas.len(), 1);
    let usage = &deltas[0]["usage"];
    assert_eq!(usage["input_tokens"], 25);
    assert_eq!(usage["cache_read_input_tokens"], 75);
    assert_eq!(usage["cache_creation_input_tokens"], 5);
    assert_eq!(usage["output_tokens"], 11);
    assert_eq!(last_of(&stream, "/type"), "message_stop");
}

#[test]
fn b66_there_is_no_done_on_messages() {
    assert!(!relayed(&[json!({"content": "a"})], "stop").contains("[DONE]"));
}

#[test]
fn b70_a_call_without_arguments_has_an_object() {
    assert_eq!(
        kinds(&relayed(&[tool_call(0, "c1", "f", "")], "tool_calls")),
        of(&[("tool_use", "{}")])
    );
}

#[test]
fn b71_b72_b73_b74_calls_are_told_apart_however_they_are_numbered() {
    let two = [
        tool_call(0, "c1", "f", "{\"a\":1}"),
        tool_call(0, "c2", "g", "{\"b\":2}"),
    ];
    assert_eq!(
        kinds(&relayed(&two, "tool_calls")).len(),
        2,
        "two ids at one index"
    );
    let named = |name: &str| json!({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": "{}"}}]});
    assert_eq!(
        kinds(&relayed(&[named("f"), named("g")], "tool_calls")).len(),
        2,
        "a new name behind whole arguments"
    );
    let bare = |text: &str| json!({"tool_calls": [{"function": {"arguments": text}}]});
    let first = json!({"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{"}}]});
    assert_eq!(
        kinds(&relayed(&[first, bare("\"a\":1"), bare("}")], "tool_calls")),
        of(&[("tool_use", "{\"a\":1}")]),
        "no index"
    );
    let again = |text: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": text}}]});
    let stream = relayed(&[again("{\"a\""), again(":1}"), again("")], "tool_calls");
    assert_eq!(
        kinds(&stream),
        of(&[("tool_use", "{\"a\":1}")]),
        "a name repeated"
    );
    assert_eq!(events(&stream)[2]["content_block"]["name"], "f");
    let moved = [
        tool_call(0, "c1", "f", "{\"a\""),
        tool_call(1, "c1", "f", ":1}"),
    ];
    assert_eq!(
        kinds(&relayed(&moved, "tool_calls")),
        of(&[("tool_use", "{\"a\":1}")]),
        "one id at two indices"
    );
}

#[test]
fn r2_a_piece_without_a_name_belongs_to_the_call_at_its_index() {
    let piece = |id: &str, name: &str, text: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": text}}]});
    let one = of(&[("tool_use", "{\"a\":1}")]);
    for pieces in [
        [piece("", "f", "{\"a\""), piece("c9", "", ":1}")],
        [piece("c1", "f", "{\"a\""), piece("c2", "", ":1}")],
        [piece("c1", "", "{\"a\""), piece("c2", "f", ":1}")],
        [piece("", "f", "{\"a\""), piece("c9", "f", ":1}")],
    ] {
        assert_eq!(kinds(&relayed(&pieces, "tool_calls")), one, "{pieces:?}");
    }
    // A name and no id, behind whole arguments that had none either.
    let two = [piece("", "f", "{}"), piece("c9", "g", "{}")];
    assert_eq!(kinds(&relayed(&two, "tool_calls")).len(), 2);
}

#[test]
fn arguments_as_an_object_and_braces_in_strings_are_whole() {
    let object = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": {"a": "}"}}}]});
    assert_eq!(
        kinds(&relayed(&[object], "tool_calls")),
        of(&[("tool_use", "{\"a\":\"}\"}")])
    );
    let text = "{\"a\":\"}{\\\"\\\\\"}";
    let pieces: Vec<Value> = text
        .chars()
        .map(|c| json!({"tool_calls": [{"index": 0, "function": {"arguments": c.to_string()}}]}))
        .collect();
    let all: Vec<Value> = std::iter::once(tool_call(0, "c1", "f", ""))
        .chain(pieces)
        .chain([tool_call(1, "c2", "g", "{}")])
        .collect();
    assert_eq!(
        kinds(&relayed(&all, "tool_calls")),
        of(&[("tool_use", text), ("tool_use", "{}")])
    );
}

#[test]
fn pings_reach_a_client_that_waits() {
    let mut upstream = native(&[text_block("a")], "end_turn");
    upstream.insert(1, json!({"type": "ping"}).to_string());
    assert!(relay(Messages, Chat, Memo::default(), &upstream).contains(": ping\n\n"));
    assert!(relay(Messages, Responses, Memo::default(), &upstream).contains(": ping\n\n"));
}
