//! Requests of messages and chat clients for responses upstreams.

use farebox_protocol::Family;
use farebox_protocol::translate::abilities::{SystemRole, ThinkingWay};
use farebox_protocol::translate::{EncodeTarget, Memo, count_request, read_answer};
use serde_json::{Value, json};

use super::help::*;

fn function(name: &str, more: Value) -> Value {
    let mut tool = json!({"name": name, "parameters": {"type": "object", "properties": {}}});
    tool.as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    json!({"type": "function", "function": tool})
}

/// A conversation of chat in which the tools `f` (a function) and `sql` (free text) were called.
fn called() -> Value {
    talking(
        Chat,
        json!([
            {"role": "system", "content": "rules"}, {"role": "user", "content": "q"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "sql", "input": "select \"a\"\n"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"}, {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "user", "content": "and?"},
        ]),
    )
}

#[test]
fn b36_b99_calls_are_known_by_call_id_and_no_item_has_an_id() {
    let sent = sent(Chat, Responses, &called());
    assert_eq!(sent["instructions"], "rules");
    let items = json!([
        {"type": "message", "role": "user", "content": "q"},
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "select \"a\"\n"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "two"},
        {"type": "message", "role": "user", "content": "and?"},
    ]);
    assert_eq!(sent["input"], items);
    assert_eq!(
        (&sent["store"], sent.get("stream_options")),
        (&json!(false), None)
    );
}

#[test]
fn b07_texts_and_calls_keep_their_order() {
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "a"}, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}, {"type": "text", "text": "b"},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
        ]),
    );
    let sent = sent(Messages, Responses, &body);
    let kinds: Vec<&Value> = sent["input"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["type"])
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "function_call",
            "message",
            "function_call_output"
        ]
    );
}

#[test]
fn b41_strict_is_always_written_out() {
    let tools = json!([
        function("a", json!({})),
        json!({"type": "function", "function": {"name": "b", "strict": true, "parameters":
            {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}})
    ]);
    let body = sent(Chat, Responses, &asking(Chat, &json!({"tools": tools})));
    assert_eq!(
        (&body["tools"][0]["strict"], &body["tools"][1]["strict"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(body["tools"][0]["name"], "a", "tools are flat");
    let loose = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tools = json!([{"name": "f", "input_schema": loose}, {"name": "g", "input_schema": loose, "strict": true}]);
    let (body, lost) = sent_to(
        Messages,
        Responses,
        &able(Responses),
        &asking(Messages, &json!({"tools": tools})),
    );
    assert_eq!(
        (&body["tools"][0]["strict"], &body["tools"][1]["strict"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        lost, "tools.strict=dropped",
        "a schema that leaves members open cannot hold to the letter"
    );
}

#[test]
fn b06_b31_old_thinking_is_left_out_and_never_becomes_text() {
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "EqQB"}, {"type": "text", "text": "a"}]},
            {"role": "user", "content": "q2"},
        ]),
    );
    let (sent, lost) = sent_to(Messages, Responses, &able(Responses), &body);
    assert!(!sent.to_string().contains("hm") && !sent.to_string().contains("EqQB"));
    assert_eq!(
        (sent["input"].as_array().map(Vec::len), lost.as_str()),
        (Some(3), "messages.thinking=dropped")
    );
}

#[test]
fn thinking_is_asked_for_by_an_effort_and_shown_to_native_clients() {
    let ask = |from: Family, more: Value| sent(from, Responses, &asking(from, &more));
    let body = ask(
        Messages,
        json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
    );
    assert_eq!(
        body["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let body = ask(
        Messages,
        json!({"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}}),
    );
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    let body = ask(
        Messages,
        json!({"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 8_000}}),
    );
    assert_eq!(
        body["reasoning"],
        json!({"effort": "medium", "summary": "auto"})
    );
    let body = ask(Messages, json!({"thinking": {"type": "disabled"}}));
    assert_eq!(
        (&body["reasoning"], body.get("include")),
        (&json!({"effort": "none"}), None)
    );
    assert_eq!(
        ask(Chat, json!({"reasoning_effort": "high"}))["reasoning"],
        json!({"effort": "high"})
    );
    assert_eq!(ask(Chat, json!({})).get("reasoning"), None);
    let mut abilities = able(Responses);
    abilities.thinking = ThinkingWay::None;
    let body = asking(Chat, &json!({"reasoning_effort": "high"}));
    let (sent, lost) = sent_to(Chat, Responses, &abilities, &body);
    assert_eq!(
        (sent.get("reasoning"), lost.as_str()),
        (None, "reasoning_effort=dropped")
    );
}

#[test]
fn b11_b43_the_session_is_the_cache_key_and_the_user_stays_here() {
    let user = json!({"device_id": "d", "session_id": "s-1"}).to_string();
    let body = sent(
        Messages,
        Responses,
        &asking(Messages, &json!({"metadata": {"user_id": user}})),
    );
    assert_eq!(
        (
            &body["prompt_cache_key"],
            body.get("user"),
            body.get("safety_identifier")
        ),
        (&json!("s-1"), None, None)
    );
    let body = sent(
        Chat,
        Responses,
        &asking(Chat, &json!({"prompt_cache_key": "k", "user": "u"})),
    );
    assert_eq!(
        (&body["prompt_cache_key"], &body["safety_identifier"]),
        (&json!("k"), &json!("u"))
    );
}

#[test]
fn b20_pictures_and_documents_stay_inside_results() {
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="});
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": [{"type": "image", "source": source}, {"type": "document", "source": pdf, "title": "a.pdf"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}, {"type": "tool_use", "id": "t2", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [{"type": "image", "source": source}]},
                {"type": "tool_result", "tool_use_id": "t2", "content": []},
            ]},
        ]),
    );
    let items = sent(Messages, Responses, &body)["input"].clone();
    let picture =
        json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
    let file = json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="});
    assert_eq!(items[0]["content"], json!([picture, file]));
    assert_eq!(
        items[3]["output"],
        json!([{"type": "input_text", "text": "Error:"}, picture])
    );
    assert_eq!(items[4]["output"], "(no output)");
}

#[test]
fn system_messages_stay_in_place_and_marks_where_they_are_known() {
    let part = |text: &str, mark: bool| {
        let mut part = json!({"type": "text", "text": text});
        if mark {
            part["cache_control"] = json!({"type": "ephemeral"});
        }
        part
    };
    let turns = json!([{"role": "user", "content": "a"}, {"role": "system", "content": "note"}]);
    let mut body = talking(Messages, turns);
    body["system"] = json!([part("one", true), part("two", false)]);
    let (sent, lost) = sent_to(Messages, Responses, &able(Responses), &body);
    assert_eq!(
        (&sent["instructions"], lost.as_str()),
        (&json!("one\n\ntwo"), "cache_control=dropped")
    );
    assert_eq!(
        sent["input"][1],
        json!({"type": "message", "role": "developer", "content": "note"})
    );
    let mut abilities = able(Responses);
    abilities.cache_breakpoints = true;
    let (sent, lost) = sent_to(Messages, Responses, &abilities, &body);
    let marked = json!({"type": "input_text", "text": "one", "prompt_cache_breakpoint": {"mode": "explicit"}});
    assert_eq!(
        sent["input"][0]["content"],
        json!([marked, {"type": "input_text", "text": "two"}])
    );
    assert_eq!(
        (
            &sent["input"][0]["role"],
            sent.get("instructions"),
            lost.as_str()
        ),
        (&json!("developer"), None, "")
    );
    abilities.system_role = SystemRole::User;
    let (sent, _) = sent_to(Messages, Responses, &abilities, &body);
    assert_eq!(sent["input"][0]["role"], "user");
    assert!(
        sent["input"]
            .to_string()
            .contains("<system-reminder>\\\\nnote")
            || sent["input"]
                .to_string()
                .contains("<system-reminder>\\nnote")
    );
}

#[test]
fn structured_output_free_tools_and_choices_are_as_they_are() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": true}});
    let tools = json!([function("f", json!({})), {"type": "custom", "custom": {"name": "sql", "description": "d", "format":
        {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"x\""}}}}]);
    let more = json!({"response_format": format, "verbosity": "low", "tools": tools, "parallel_tool_calls": false,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
            {"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "sql"}}]}}});
    let (body, lost) = sent_to(Chat, Responses, &able(Responses), &asking(Chat, &more));
    assert_eq!(lost, "");
    let text = json!({"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}, "verbosity": "low"});
    assert_eq!(body["text"], text);
    let free = json!({"type": "custom", "name": "sql", "description": "d", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"x\""}});
    assert_eq!(body["tools"][1], free);
    let choice = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "sql"}]});
    assert_eq!(
        (&body["tool_choice"], &body["parallel_tool_calls"]),
        (&choice, &json!(false))
    );
    let json_mode = asking(Chat, &json!({"response_format": {"type": "json_object"}}));
    assert_eq!(
        sent(Chat, Responses, &json_mode)["text"]["format"],
        json!({"type": "json_object"})
    );
    let mut abilities = able(Responses);
    abilities.custom_tools = false;
    let (body, _) = sent_to(
        Chat,
        Responses,
        &abilities,
        &asking(Chat, &json!({"tools": tools})),
    );
    assert_eq!(
        (&body["tools"][1]["type"], &body["tools"][1]["strict"]),
        (&json!("function"), &json!(false))
    );
    assert_eq!(body["tools"][1]["parameters"]["required"], json!(["input"]));
}

#[test]
fn input_is_counted_without_what_makes_an_answer() {
    let abilities = able(Responses);
    let target = EncodeTarget {
        model: "up",
        abilities: &abilities,
    };
    let body = asking(
        Messages,
        &json!({"system": "s", "stream": true, "temperature": 0.5, "metadata": {"user_id": "{\"session_id\":\"x\"}"}}),
    );
    let counted = count_request(Messages, Responses, body.to_string().as_bytes(), &target)
        .expect("a translation")
        .expect("a body");
    let counted: Value = serde_json::from_slice(&counted).expect("JSON");
    let members: Vec<&str> = counted
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, ["model", "instructions", "input"]);
    assert_eq!(
        count_request(Messages, Chat, body.to_string().as_bytes(), &target).expect("no refusal"),
        None
    );
}

/// Lost seals: a reasoning model's answer, recorded with its encrypted reasoning, goes to a native client and comes back in the
/// next turn without any of it. What is sent is a conversation that the vendor takes: calls and results paired, no reasoning item,
/// no id.
#[test]
fn a_loop_of_tools_goes_on_without_seals() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/recorded/responses/"
    );
    for name in [
        "openai-reasoning-encrypted-content.1.json",
        "openai-custom-tool.1.json",
        "parallel-tool-call-wrapper.1.json",
    ] {
        let recorded = std::fs::read_to_string(format!("{folder}{name}")).expect("a recording");
        for caller in [Messages, Chat] {
            let answer = read_answer(Responses, recorded.as_bytes());
            let asked = farebox_protocol::UsageWish::default();
            let shown = farebox_protocol::translate::write_answer(
                caller,
                &answer,
                &Memo::default(),
                &wish(b"{}"),
                &USAGE,
                asked,
            );
            let shown: Value = serde_json::from_slice(&shown).expect("JSON");
            let mut turns = vec![json!({"role": "user", "content": "q"})];
            match caller {
                Messages => {
                    turns.push(json!({"role": "assistant", "content": shown["content"]}));
                    let calls = shown["content"]
                        .as_array()
                        .expect("blocks")
                        .iter()
                        .filter(|block| block["type"] == "tool_use");
                    let results: Vec<Value> = calls
                        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "r"}))
                        .chain([json!({"type": "text", "text": "go on"})])
                        .collect();
                    turns.push(json!({"role": "user", "content": results}));
                }
                _ => {
                    let message = &shown["choices"][0]["message"];
                    turns.push(message.clone());
                    let calls = message["tool_calls"].as_array().into_iter().flatten();
                    turns.extend(calls.map(
                        |call| json!({"role": "tool", "tool_call_id": call["id"], "content": "r"}),
                    ));
                    turns.push(json!({"role": "user", "content": "go on"}));
                }
            }
            let mut body = talking(caller, Value::Array(turns));
            if caller == Messages {
                body["thinking"] = json!({"type": "adaptive"});
            }
            let sent = sent(caller, Responses, &body);
            let items = sent["input"].as_array().expect("items");
            assert!(
                items
                    .iter()
                    .all(|item| item["type"] != "reasoning" && item.get("id").is_none()),
                "{name}: {sent}"
            );
            assert!(
                !sent.to_string().contains("gAAAA") && !sent.to_string().contains("fbx1."),
                "{name}: {sent}"
            );
            let ids = |ending: &str| -> Vec<&Value> {
                let kinds = items.iter().filter(|item| {
                    item["type"]
                        .as_str()
                        .is_some_and(|kind| kind.ends_with(ending))
                });
                kinds.map(|item| &item["call_id"]).collect()
            };
            assert_eq!(ids("_call"), ids("_output"), "{name}: {sent}");
        }
    }
}
