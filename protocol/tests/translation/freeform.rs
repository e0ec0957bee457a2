//! Custom tools and namespaces of responses clients.

use serde_json::{Value, json};

use super::help::*;

fn patch() -> Value {
    let format = json!({"type": "grammar", "syntax": "lark", "definition": "start: \"x\""});
    json!({"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": format})
}

#[test]
fn b25_b28_a_custom_tool_becomes_a_function_with_one_text() {
    let sent = sent(
        Responses,
        Chat,
        &asking(Responses, &json!({"tools": [patch()]})),
    );
    let function = &sent["tools"][0]["function"];
    assert_eq!(function["parameters"]["required"], json!(["input"]));
    assert_eq!(
        function["parameters"]["properties"]["input"],
        json!({"type": "string"})
    );
    let told = function["description"].as_str().expect("a description");
    assert!(
        told.starts_with("Edits files.") && told.contains("Format (lark):\nstart: \"x\""),
        "{told}"
    );
}

#[test]
fn b26_a_tool_declared_as_function_is_answered_as_one() {
    let memo = memo_of(
        &json!([{"type": "function", "name": "apply_patch", "parameters": {"type": "object", "properties": {}}}]),
    );
    let stream = relay(
        Chat,
        Responses,
        memo,
        &chat(
            &[tool_call(0, "c1", "apply_patch", "{\"input\":\"x\"}")],
            "tool_calls",
        ),
    );
    assert_eq!(items(&stream)[0]["type"], "function_call");
    assert_eq!(items(&stream)[0]["arguments"], "{\"input\":\"x\"}");
}

#[test]
fn b27_a_custom_call_is_unwrapped_while_it_streams() {
    let arguments = json!({"input": "*** Begin Patch\n+\"ä\\\"\n"}).to_string();
    for step in 1..arguments.len() {
        let pieces: Vec<String> = arguments
            .chars()
            .collect::<Vec<_>>()
            .chunks(step)
            .map(|piece| piece.iter().collect())
            .collect();
        let first = tool_call(0, "c1", "apply_patch", "");
        let rest = pieces
            .iter()
            .map(|piece| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}));
        let deltas: Vec<Value> = std::iter::once(first).chain(rest).collect();
        let stream = relay(
            Chat,
            Responses,
            memo_of(&json!([patch()])),
            &chat(&deltas, "tool_calls"),
        );
        let shown: String = events(&stream)
            .iter()
            .filter(|event| event["type"] == "response.custom_tool_call_input.delta")
            .filter_map(|event| event["delta"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(shown, "*** Begin Patch\n+\"ä\\\"\n");
        let item = &items(&stream)[0];
        assert_eq!(
            (&item["type"], &item["input"]),
            (&json!("custom_tool_call"), &json!(shown))
        );
    }
}

#[test]
fn b95_arguments_of_another_shape_are_handed_on() {
    for arguments in [
        "{\"patch\":\"x\"}",
        "```\n*** Begin Patch\n```",
        "{\"input\": 5}",
        "{\"inp",
        "",
    ] {
        let deltas = [tool_call(0, "c1", "apply_patch", arguments)];
        let stream = relay(
            Chat,
            Responses,
            memo_of(&json!([patch()])),
            &chat(&deltas, "tool_calls"),
        );
        let expected = if arguments.is_empty() {
            "{}"
        } else {
            arguments
        };
        assert_eq!(items(&stream)[0]["input"], expected);
    }
}

#[test]
fn custom_calls_in_the_history_are_wrapped() {
    let body = asking(
        Responses,
        &json!({"tools": [patch()], "input": [
            {"role": "user", "content": "q"},
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "a\n\"b\""},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        ]}),
    );
    assert_eq!(
        sent(Responses, Chat, &body)["messages"][1]["tool_calls"][0]["function"]["arguments"],
        "{\"input\":\"a\\n\\\"b\\\"\"}"
    );
    assert_eq!(
        sent(Responses, Messages, &body)["messages"][1]["content"][0]["input"],
        json!({"input": "a\n\"b\""})
    );
    let mut abilities = able(Chat);
    abilities.custom_tools = true;
    let (sent, _) = sent_to(Responses, Chat, &abilities, &body);
    assert_eq!(
        sent["tools"][0]["custom"]["format"]["grammar"]["syntax"],
        "lark"
    );
    assert_eq!(
        sent["messages"][1]["tool_calls"][0]["custom"],
        json!({"name": "apply_patch", "input": "a\n\"b\""})
    );
}

#[test]
fn b42_b96_namespaces_and_searches_of_tools_are_flattened() {
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    let tools = json!([{"type": "namespace", "name": "agents", "tools": [function("spawn")]}, {"type": "tool_search"}]);
    let body = asking(
        Responses,
        &json!({"tools": tools, "input": [
            {"role": "user", "content": "q"},
            {"type": "tool_search_call", "call_id": "s1", "arguments": {}},
            {"type": "tool_search_output", "call_id": "s1", "tools": [function("found")]},
            {"type": "function_call", "call_id": "c1", "name": "spawn", "namespace": "agents", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ]}),
    );
    let sent = sent(Responses, Chat, &body);
    let names: Vec<&Value> = sent["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&&json!("agents__spawn")) && names.contains(&&json!("found")));
    assert_eq!(
        sent["messages"][1]["tool_calls"][0]["function"]["name"],
        "agents__spawn"
    );
    let stream = relay(
        Chat,
        Responses,
        memo_of(&tools),
        &chat(&[tool_call(0, "c1", "agents__spawn", "{}")], "tool_calls"),
    );
    assert_eq!(
        (&items(&stream)[0]["name"], &items(&stream)[0]["namespace"]),
        (&json!("spawn"), &json!("agents"))
    );
}
