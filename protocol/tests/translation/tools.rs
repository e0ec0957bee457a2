//! Calls and their results: order, pairing, ids, names.

use serde_json::{Value, json};

use super::help::*;

fn item_call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{\"a\":1}"})
}

fn item_output(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn chat_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

/// Every assistant message with calls is followed by all of its results, in order, and no result stands elsewhere.
fn assert_paired(messages: &Value) {
    let list = messages.as_array().expect("messages");
    let mut at = 0;
    while let Some(message) = list.get(at) {
        at += 1;
        assert_ne!(
            message["role"], "tool",
            "a result without its call: {messages}"
        );
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(list[at]["role"], "tool", "{messages}");
            assert_eq!(list[at]["tool_call_id"], call["id"], "{messages}");
            at += 1;
        }
    }
}

#[test]
fn b03_two_results_are_one_user_turn() {
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [chat_call("c1", "{}"), chat_call("c2", "{}")]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"}, {"role": "tool", "tool_call_id": "c1", "content": "one"},
        ]),
    );
    let sent = sent(Chat, Messages, &body);
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3));
    let ids: Vec<&Value> = sent["messages"][2]["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| &block["tool_use_id"])
        .collect();
    assert_eq!(ids, ["c1", "c2"], "in the order of the calls");
}

#[test]
fn b16_every_call_is_followed_by_its_result() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"}, item_call("c1"), item_call("c2"), item_output("none", "orphan"),
            {"role": "user", "content": "between"}, item_output("c2", "two"),
        ]),
    );
    let sent = sent(Responses, Chat, &body);
    assert_paired(&sent["messages"]);
    assert_eq!(
        sent["messages"][2]["content"],
        "(no output: the call was interrupted)"
    );
    assert_eq!(sent["messages"][3]["content"], "two");
    assert_eq!(
        sent["messages"][4]["content"],
        "[result of tool call none]\n\norphan\n\nbetween"
    );
}

#[test]
fn b17_neighbouring_calls_are_one_message() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"}, item_call("c1"), item_call("c2"), item_output("c1", "one"), item_output("c2", "two"),
        ]),
    );
    let sent = sent(Responses, Chat, &body);
    assert_eq!(
        sent["messages"][1]["tool_calls"].as_array().map(Vec::len),
        Some(2)
    );
    assert_paired(&sent["messages"]);
}

#[test]
fn b18_results_stand_first_in_one_user_turn() {
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [chat_call("c1", "{}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"}, {"role": "user", "content": "and now?"},
        ]),
    );
    let content = &sent(Chat, Messages, &body)["messages"][2]["content"];
    assert_eq!(content[0]["type"], "tool_result");
    assert_eq!(content[1], json!({"type": "text", "text": "and now?"}));
}

#[test]
fn b19_text_and_call_of_one_turn_both_survive() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            item_call("c1"), item_output("c1", "r"),
        ]),
    );
    let message = &sent(Responses, Chat, &body)["messages"][1];
    assert_eq!(message["content"], "I look.");
    assert_eq!(message["tool_calls"][0]["id"], "c1");
}

#[test]
fn b94_calls_of_two_turns_stay_apart() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"}, item_call("c1"), item_output("c1", "one"), item_call("c2"), item_output("c2", "two"),
        ]),
    );
    let sent = sent(Responses, Chat, &body);
    let roles: Vec<&Value> = sent["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
}

#[test]
fn b51_an_odd_id_is_hashed_on_call_and_result_alike() {
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [chat_call("functions.Bash:0", "{}")]},
            {"role": "tool", "tool_call_id": "functions.Bash:0", "content": "r"},
        ]),
    );
    let sent = sent(Chat, Messages, &body);
    let id = sent["messages"][1]["content"][0]["id"]
        .as_str()
        .expect("an id");
    assert!(id.starts_with("fb_") && id.len() == 29, "{id}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], id);
}

#[test]
fn b52_long_ids_are_shortened_and_stay_a_pair() {
    let long = "c".repeat(116);
    let body = talking(
        Responses,
        json!([{"role": "user", "content": "q"}, item_call(&long), item_output(&long, "r")]),
    );
    let sent = sent(Responses, Chat, &body);
    let id = sent["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .expect("an id");
    assert!(id.len() <= 40, "{id}");
    assert_eq!(sent["messages"][2]["tool_call_id"], id);
}

#[test]
fn b53_some_servers_want_nine_letters_and_digits() {
    let mut abilities = able(Chat);
    abilities.tool_ids = farebox_protocol::translate::abilities::ToolIds::Nine;
    let body = talking(
        Responses,
        json!([{"role": "user", "content": "q"}, item_call("call_1"), item_output("call_1", "r")]),
    );
    let (sent, _) = sent_to(Responses, Chat, &abilities, &body);
    let id = sent["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .expect("an id");
    assert!(
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{id}"
    );
    assert_eq!(sent["messages"][2]["tool_call_id"], id);
}

#[test]
fn duplicate_ids_of_two_turns_become_two() {
    let turn = |text: &str| {
        [
            json!({"role": "assistant", "content": null, "tool_calls": [chat_call("call_0", "{}")]}),
            json!({"role": "tool", "tool_call_id": "call_0", "content": text}),
        ]
    };
    let turns: Vec<Value> = [json!({"role": "user", "content": "q"})]
        .into_iter()
        .chain(turn("one"))
        .chain(turn("two"))
        .collect();
    let sent = sent(Chat, Messages, &talking(Chat, Value::Array(turns)));
    let id = |at: usize, name: &str| sent["messages"][at]["content"][0][name].clone();
    assert_eq!(id(1, "id"), "call_0");
    assert_ne!(id(3, "id"), "call_0");
    assert_eq!(
        (id(1, "id"), id(3, "id")),
        (id(2, "tool_use_id"), id(4, "tool_use_id"))
    );
}

#[test]
fn b100_broken_arguments_become_an_object() {
    let body = |arguments: &str| {
        talking(
            Chat,
            json!([
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": null, "tool_calls": [chat_call("c1", arguments)]},
                {"role": "tool", "tool_call_id": "c1", "content": "r"},
            ]),
        )
    };
    let input = |arguments: &str| {
        sent(Chat, Messages, &body(arguments))["messages"][1]["content"][0]["input"].clone()
    };
    assert_eq!(input(""), json!({}));
    assert_eq!(input("{\"a\": [1, 2]}"), json!({"a": [1, 2]}));
    assert_eq!(input("{\"a\": "), json!({"_raw": "{\"a\":"}));
    assert_eq!(input("[1]"), json!({"_raw": "[1]"}));
    assert_eq!(lost(Chat, Messages, &body("[1]")), "arguments=wrapped");
}

#[test]
fn old_functions_are_tools() {
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "r"},
        ]),
    );
    let sent = sent(Chat, Messages, &body);
    assert_eq!(
        sent["messages"][1]["content"][0]["id"],
        sent["messages"][2]["content"][0]["tool_use_id"]
    );
}

#[test]
fn b49_deferred_tools_are_sent_and_references_read() {
    let body = asking(
        Messages,
        &json!({
            "tools": [{"name": "later", "input_schema": {"type": "object", "properties": {}}, "defer_loading": true}],
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "later", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "tool_reference", "tool_name": "later"}]}]},
            ],
        }),
    );
    let (sent, lost) = sent_to(Messages, Chat, &able(Chat), &body);
    assert!(!sent.to_string().contains("defer_loading"));
    assert_eq!(
        sent["messages"][2]["content"],
        "Tool later is now available."
    );
    assert_eq!(lost, "tools.defer_loading=dropped");
}

#[test]
fn b54_a_search_alone_or_forced_is_refused_and_beside_others_dropped() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = json!({"name": "f", "input_schema": {"type": "object", "properties": {}}});
    let bad = refused(
        Messages,
        Chat,
        &asking(Messages, &json!({"tools": [search]})),
    );
    assert_eq!(
        (bad.code, bad.param.as_deref()),
        (Some("unsupported_by_model"), Some("tools[0]"))
    );
    assert!(bad.message.contains("web_search"), "{}", bad.message);
    let forced = asking(
        Messages,
        &json!({"tools": [own, search], "tool_choice": {"type": "tool", "name": "web_search"}}),
    );
    assert!(
        refused(Messages, Chat, &forced)
            .message
            .contains("web_search")
    );
    assert_eq!(
        lost(
            Messages,
            Chat,
            &asking(Messages, &json!({"tools": [own, search]}))
        ),
        "tools.web_search=dropped"
    );
}

#[test]
fn two_tools_with_one_name_are_refused_by_both_names() {
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    let body = asking(
        Responses,
        &json!({"tools": [
            tool("a__b"), {"type": "namespace", "name": "a", "tools": [tool("b")]},
        ]}),
    );
    let bad = refused(Responses, Chat, &body);
    assert!(
        bad.message.contains("`a__b`") && bad.message.contains("`a.b`"),
        "{}",
        bad.message
    );
}

#[test]
fn choices_are_said_in_the_targets_words() {
    let tool = json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}]);
    for (choice, word) in [
        ("auto", json!("auto")),
        ("any", json!("required")),
        ("none", json!("none")),
    ] {
        let body = asking(
            Messages,
            &json!({"tools": tool, "tool_choice": {"type": choice}}),
        );
        assert_eq!(sent(Messages, Chat, &body)["tool_choice"], word);
    }
    let body = asking(
        Messages,
        &json!({"tools": tool, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
    );
    assert_eq!(sent(Messages, Chat, &body)["parallel_tool_calls"], false);
    let tools = json!([{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}]);
    let body = asking(Chat, &json!({"tools": tools, "parallel_tool_calls": false}));
    assert_eq!(
        sent(Chat, Messages, &body)["tool_choice"],
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}});
    let sent = sent(
        Chat,
        Messages,
        &asking(Chat, &json!({"tools": tools, "tool_choice": allowed})),
    );
    assert_eq!(sent["tool_choice"], json!({"type": "any"}));
    assert_eq!(
        sent["tools"],
        json!([{"name": "g", "input_schema": {"type": "object", "properties": {}}}])
    );
}

#[test]
fn b07_text_and_calls_keep_their_order_where_the_family_has_one() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "before"}, item_call("c1"), item_output("c1", "r"),
            {"role": "assistant", "content": "behind"}, {"role": "user", "content": "go on"},
        ]),
    );
    let sent = sent(Responses, Messages, &body);
    assert_eq!(sent["messages"][1]["content"][0]["text"], "before");
    assert_eq!(sent["messages"][1]["content"][1]["type"], "tool_use");
    assert_eq!(sent["messages"][3]["content"][0]["text"], "behind");
}
