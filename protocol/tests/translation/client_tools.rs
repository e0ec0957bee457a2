//! Tools that responses clients run themselves and whose calls are items of their own, on targets of the other families.
//!
//! The shapes are those of openai 3.57.0 (PyPI): `types/responses/response_*_tool_call*.py`.

use farebox_protocol::UsageWish;
use farebox_protocol::translate::{Translator, answer_losses, read_answer, write_answer};
use serde_json::{Value, json};

use super::help::*;

/// Each tool, a call's arguments, and what the client gets of the call besides type, ids and status.
fn calls() -> Vec<(Value, &'static str, Value, Value)> {
    let click = json!({"type": "click", "x": 5, "y": 6, "button": "left"});
    let created = json!({"type": "create_file", "path": "a.txt", "diff": "+a \"b\"\n"});
    vec![
        (
            json!({"type": "local_shell"}),
            "local_shell_call",
            json!({"command": ["ls", "-l"], "timeout_ms": 5}),
            json!({"action": {"type": "exec", "command": ["ls", "-l"], "timeout_ms": 5, "env": {}}}),
        ),
        (
            json!({"type": "shell", "environment": {"type": "local"}}),
            "shell_call",
            json!({"commands": ["ls", "pwd"], "timeout_ms": 9}),
            json!({
                "action": {"commands": ["ls", "pwd"], "timeout_ms": 9, "max_output_length": null},
                "environment": {"type": "local"},
            }),
        ),
        (
            json!({"type": "apply_patch"}),
            "apply_patch_call",
            created.clone(),
            json!({"operation": created}),
        ),
        (
            json!({"type": "computer"}),
            "computer_call",
            json!({"actions": [click, {"type": "screenshot"}]}),
            json!({"actions": [click, {"type": "screenshot"}], "pending_safety_checks": []}),
        ),
        (
            json!({"type": "computer_use_preview", "display_width": 1_024, "display_height": 768, "environment": "browser"}),
            "computer_call",
            json!({"action": click}),
            json!({"action": click, "pending_safety_checks": []}),
        ),
    ]
}

fn kind(tool: &Value) -> &str {
    tool["type"].as_str().expect("a type")
}

/// What a stream gives a client that offered this tool, and what it lost.
fn streamed(tool: &Value, arguments: &str, finish: &str) -> (Vec<Value>, String) {
    let memo = memo_of(&json!([tool]));
    let deltas = [tool_call(0, "c1", kind(tool), arguments)];
    let data = chat(&deltas, finish);
    let stream = relay(Chat, Responses, memo.clone(), &data);
    let mut translator = Translator::new(Chat, Responses, memo, &wish(b"{}"));
    for data in &data {
        translator.frame(&frame(data));
    }
    translator.end();
    translator.finish(&USAGE, UsageWish::default());
    let output = last_of(&stream, "/response/output");
    assert_eq!(output, json!(items(&stream)), "the last event repeats them");
    (items(&stream), translator.losses().header())
}

/// What a whole answer gives it, and what it lost.
fn whole(tool: &Value, arguments: &str, finish: &str) -> (Vec<Value>, String) {
    let memo = memo_of(&json!([tool]));
    let call = json!({"id": "c1", "type": "function", "function": {"name": kind(tool), "arguments": arguments}});
    let body = json!({"choices": [{"index": 0, "finish_reason": finish, "message": {"content": null, "tool_calls": [call]}}]});
    let answer = read_answer(Chat, body.to_string().as_bytes());
    let wished = UsageWish::default();
    let body = write_answer(Responses, &answer, &memo, &wish(b"{}"), &USAGE, wished);
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let output = body["output"].as_array().expect("a list").clone();
    (output, answer_losses(Responses, &answer).header())
}

#[test]
fn each_is_offered_as_a_function_and_nothing_is_lost() {
    for (tool, _, arguments, _) in calls() {
        let body = asking(Responses, &json!({"tools": [tool]}));
        let (chat, lost) = sent_to(Responses, Chat, &able(Chat), &body);
        assert_eq!(lost, "", "{tool}");
        let function = &chat["tools"][0]["function"];
        assert_eq!(function["name"], tool["type"]);
        let told = function["description"].as_str().expect("a description");
        assert!(told.len() > 20, "{told}");
        let known = &function["parameters"]["properties"];
        for name in arguments.as_object().expect("an object").keys() {
            assert!(known[name].is_object(), "{name} in {function}");
        }
        let (native, lost) = sent_to(Responses, Messages, &able(Messages), &body);
        assert_eq!(lost, "", "{tool}");
        assert_eq!(native["tools"][0]["input_schema"], function["parameters"]);
        assert_eq!(native["tools"][0]["description"], function["description"]);
    }
}

#[test]
fn what_a_client_says_of_its_screen_and_its_skills_is_told() {
    let skill = json!({"name": "csv", "path": "/skills/csv", "description": "Reads \"CSV\"."});
    let tools = json!([
        {"type": "shell", "environment": {"type": "local", "skills": [skill]}},
        {"type": "computer_use_preview", "display_width": 1_024, "display_height": 768, "environment": "browser"},
    ]);
    let sent = sent(
        Responses,
        Messages,
        &asking(Responses, &json!({"tools": tools})),
    );
    let told = |at: usize| sent["tools"][at]["description"].as_str().expect("words");
    assert!(
        told(0).ends_with("\n- csv in /skills/csv: Reads \"CSV\"."),
        "{}",
        told(0)
    );
    assert!(told(1).contains("1024 x 768"), "{}", told(1));
}

#[test]
fn a_call_is_the_item_that_the_client_knows() {
    for (tool, call, arguments, members) in calls() {
        for (items, lost) in [
            streamed(&tool, &arguments.to_string(), "tool_calls"),
            whole(&tool, &arguments.to_string(), "tool_calls"),
        ] {
            assert_eq!(lost, "");
            let mut wanted =
                json!({"type": call, "call_id": "c1", "status": "completed", "id": items[0]["id"]});
            for (name, value) in members.as_object().expect("an object") {
                wanted[name] = value.clone();
            }
            assert_eq!(items, [wanted], "{tool}");
            let id = items[0]["id"].as_str().expect("an id");
            assert!(id.ends_with("_fbx"), "{id}");
        }
    }
}

#[test]
fn a_client_finds_what_it_needs_whatever_a_model_gave() {
    let made = |tool: Value, arguments: &str| {
        let (items, _) = streamed(&tool, arguments, "tool_calls");
        assert_eq!(
            items,
            whole(&tool, arguments, "tool_calls").0,
            "{arguments}"
        );
        items[0].clone()
    };
    let shell = |arguments: &str| {
        let tool = json!({"type": "shell", "environment": {"type": "local"}});
        made(tool, arguments)["action"]["commands"].clone()
    };
    assert_eq!(shell(r#"{"commands":"ls -l"}"#), json!(["ls -l"]));
    for odd in ["", "no JSON", "[1]", "{}", r#"{"commands":7}"#] {
        assert_eq!(shell(odd), json!([]), "{odd}");
    }
    let computer =
        |arguments: &str| made(json!({"type": "computer"}), arguments)["actions"].clone();
    assert_eq!(
        computer(r#"{"actions":{"type":"wait"}}"#),
        json!([{"type": "wait"}])
    );
    assert_eq!(computer("{}"), json!([]));
    let patch = made(json!({"type": "apply_patch"}), "not a patch");
    assert_eq!(patch["operation"], json!({}));
}

#[test]
fn a_call_that_the_limit_cut_is_left_out_and_told() {
    for (tool, ..) in calls() {
        for (items, lost) in [
            streamed(&tool, r#"{"commands":["rm -r"#, "length"),
            whole(&tool, r#"{"commands":["rm -r"#, "length"),
        ] {
            assert_eq!(
                (items, lost.as_str()),
                (vec![], "answer.tool_use=cut"),
                "{tool}"
            );
        }
    }
}

#[test]
fn a_call_that_money_cut_is_left_out_before_the_words_about_it() {
    for (tool, ..) in calls() {
        let deltas = [tool_call(0, "c1", kind(&tool), r#"{"commands":["rm -r"#)];
        let mut translator =
            Translator::new(Chat, Responses, memo_of(&json!([tool])), &wish(b"{}"));
        for data in chat(&deltas, "length") {
            translator.frame(&frame(&data));
        }
        let end = translator.cut(Some("(out of balance)"), &USAGE, UsageWish::default());
        let end = String::from_utf8(end).expect("UTF-8");
        let kinds: Vec<Value> = items(&end)
            .iter()
            .map(|item| item["type"].clone())
            .collect();
        assert_eq!(kinds, ["message"], "{tool}");
        assert_eq!(last_of(&end, "/response/status"), "incomplete");
    }
}

#[test]
fn calls_and_outputs_of_earlier_turns_go_along() {
    let outcome = json!({"type": "exit", "exit_code": 0});
    let printed = json!([{"stdout": "a b", "stderr": "", "outcome": outcome}]);
    let patch = json!({"type": "delete_file", "path": "a.txt"});
    let click = json!({"type": "click", "x": 5, "y": 6, "button": "left"});
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let screenshot = json!({"type": "computer_screenshot", "image_url": png});
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"},
            {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "local_shell_call_output", "call_id": "c1", "output": "a b"},
            {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"], "timeout_ms": null, "max_output_length": 7},
             "environment": {"type": "local"}, "status": "completed", "id": "sh_1_fbx"},
            {"type": "shell_call_output", "call_id": "c2", "output": printed, "max_output_length": 7},
            {"type": "apply_patch_call", "call_id": "c3", "operation": patch, "status": "completed"},
            {"type": "apply_patch_call_output", "call_id": "c3", "status": "failed", "output": "no such file"},
            {"type": "computer_call", "call_id": "c4", "actions": [click], "pending_safety_checks": [], "status": "completed"},
            {"type": "computer_call_output", "call_id": "c4", "output": screenshot},
            {"type": "computer_call", "call_id": "c5", "action": click, "pending_safety_checks": [], "status": "completed"},
            {"type": "apply_patch_call_output", "call_id": "c5", "status": "completed"},
        ]),
    );
    let (native, lost) = sent_to(Responses, Messages, &able(Messages), &body);
    assert_eq!(lost, "");
    let parts = |block: &str| -> Vec<&Value> {
        let turns = native["messages"].as_array().expect("turns").iter();
        let blocks = turns.filter_map(|turn| turn["content"].as_array());
        blocks
            .flatten()
            .filter(|part| part["type"] == block)
            .collect()
    };
    let made: Vec<(&Value, &Value)> = parts("tool_use")
        .into_iter()
        .map(|call| (&call["name"], &call["input"]))
        .collect();
    assert_eq!(
        json!(made),
        json!([
            ["local_shell", {"command": ["ls"], "env": {}}],
            ["shell", {"commands": ["ls"], "max_output_length": 7}],
            ["apply_patch", patch],
            ["computer", {"actions": [click]}],
            ["computer_use_preview", {"action": click}],
        ])
    );
    let results = parts("tool_result");
    let text = |at: usize| results[at]["content"][0]["text"].as_str().expect("text");
    assert_eq!(text(0), "a b");
    assert_eq!(serde_json::from_str::<Value>(text(1)).ok(), Some(printed));
    assert_eq!(results[2]["is_error"], true);
    assert_eq!(results[3]["content"][0]["type"], "image");
    assert_eq!(results[4].get("is_error"), None);

    let (chat, lost) = sent_to(Responses, Chat, &able(Chat), &body);
    assert_eq!(lost, "");
    let all = chat["messages"].to_string();
    assert!(
        all.contains("Error: no such file") && all.contains(png),
        "{all}"
    );
}

#[test]
fn a_choice_forces_one_and_a_list_of_allowed_tools_keeps_them() {
    let tools = json!([
        {"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}, {"type": "computer"},
    ]);
    let chosen = |choice: Value| {
        sent(
            Responses,
            Chat,
            &asking(Responses, &json!({"tools": tools, "tool_choice": choice})),
        )
    };
    for (kind, name) in [
        ("shell", "shell"),
        ("apply_patch", "apply_patch"),
        ("computer", "computer"),
        ("computer_use", "computer"),
    ] {
        assert_eq!(
            chosen(json!({"type": kind}))["tool_choice"],
            json!({"type": "function", "function": {"name": name}})
        );
    }
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "shell"}, {"type": "computer"}]});
    let sent = chosen(allowed);
    let names: Vec<&Value> = sent["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["shell", "computer"]);
    let missing = json!({"tools": [{"type": "apply_patch"}], "tool_choice": {"type": "shell"}});
    let bad = refused(Responses, Chat, &asking(Responses, &missing));
    assert!(bad.message.contains("`shell`"), "{}", bad.message);
}
