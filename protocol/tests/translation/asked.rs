//! Answers in the style in which they were asked for, and fields that are easily lost.

use farebox_protocol::UsageWish;
use farebox_protocol::translate::{read_answer, write_answer};
use serde_json::{Value, json};

use super::help::*;

fn old(more: Value) -> Value {
    let mut body =
        json!({"functions": [{"name": "f", "parameters": {"type": "object", "properties": {}}}]});
    body.as_object_mut()
        .expect("a body")
        .extend(more.as_object().expect("members").clone());
    asking(Chat, &body)
}

#[test]
fn old_functions_are_answered_with_a_function_call() {
    for target in [Messages, Responses] {
        let asked =
            translated(Chat, target, &able(target), &old(json!({}))).expect("a translation");
        let upstream = match target {
            Messages => native(
                &[
                    text_block("I look."),
                    call_block("t1", "f", &["{\"a\"", ":1}"]),
                ],
                "tool_use",
            ),
            _ => {
                let item = json!({"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{\"a\":1}"});
                vec![json!({"type": "response.completed", "response": {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "I look."}]}, item]}}).to_string()]
            }
        };
        let stream = relay(target, Chat, asked.memo.clone(), &upstream);
        let deltas: Vec<Value> = events(&stream)
            .iter()
            .map(|event| event["choices"][0]["delta"]["function_call"].clone())
            .filter(Value::is_object)
            .collect();
        assert_eq!(deltas[0], json!({"name": "f", "arguments": ""}));
        let arguments: String = deltas
            .iter()
            .filter_map(|delta| delta["arguments"].as_str())
            .collect();
        assert_eq!(arguments, "{\"a\":1}");
        assert!(!stream.contains("tool_calls"), "{stream}");
        assert_eq!(
            last_of(&stream, "/choices/0/finish_reason"),
            "function_call"
        );
    }
    let memo = translated(Chat, Messages, &able(Messages), &old(json!({})))
        .expect("a translation")
        .memo;
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}});
    let whole = json!({"content": [call("t1"), call("t2")], "stop_reason": "tool_use"});
    let answer = read_answer(Messages, whole.to_string().as_bytes());
    let body = write_answer(
        Chat,
        &answer,
        &memo,
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
    let choice = serde_json::from_slice::<Value>(&body).expect("JSON")["choices"][0].clone();
    assert_eq!(
        choice["message"]["function_call"],
        json!({"name": "f", "arguments": "{\"a\":1}"})
    );
    assert_eq!(
        (
            choice["message"].get("tool_calls"),
            &choice["finish_reason"]
        ),
        (None, &json!("function_call"))
    );
}

#[test]
fn an_echoed_function_message_is_the_calls_result() {
    let body = old(json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "r"},
    ]}));
    let native = sent(Chat, Messages, &body);
    let id = native["messages"][1]["content"][0]["id"].clone();
    assert_eq!(native["messages"][2]["content"][0]["tool_use_id"], id);
    assert_eq!(
        native["messages"][2]["content"][0]["content"][0]["text"],
        "r"
    );
    let items = sent(Chat, Responses, &body);
    assert_eq!(items["input"][1]["call_id"], items["input"][2]["call_id"]);
    assert_eq!(
        (&items["input"][2]["type"], &items["parallel_tool_calls"]),
        (&json!("function_call_output"), &json!(false))
    );
}

#[test]
fn the_fingerprint_is_null_in_whole_answers_and_absent_in_chunks() {
    use farebox_protocol::{SyntheticAnswer, SyntheticStop};
    let answer = read_answer(
        Messages,
        br#"{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#,
    );
    let body = write_answer(
        Chat,
        &answer,
        &farebox_protocol::translate::Memo::default(),
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
    let made: Value = serde_json::from_slice(&body).expect("JSON");
    let draft = SyntheticAnswer {
        id: "1".to_owned(),
        model: "sim".to_owned(),
        created: 7,
        pieces: vec!["a".to_owned()],
        tool: None,
        stop: SyntheticStop::Stop,
        usage: Some(USAGE),
        stream_usage: true,
        classes: farebox_protocol::Classes::STANDARD,
    };
    let simulated: Value =
        serde_json::from_slice(&Chat.protocol().write_answer(&draft)).expect("JSON");
    for whole in [made, simulated] {
        assert_eq!(
            whole.get("system_fingerprint"),
            Some(&Value::Null),
            "{whole}"
        );
    }
    let stream = relay(
        Messages,
        Chat,
        farebox_protocol::translate::Memo::default(),
        &native(&[text_block("a")], "end_turn"),
    );
    let simulated = Chat.protocol().write_frames(&draft).concat();
    for stream in [stream, String::from_utf8(simulated).expect("UTF-8")] {
        assert!(!stream.contains("system_fingerprint"), "{stream}");
    }
}

#[test]
fn top_k_is_carried_where_the_target_takes_it() {
    let body = asking(Messages, &json!({"top_k": 40}));
    let mut abilities = able(Chat);
    assert_eq!(sent_to(Messages, Chat, &abilities, &body).0["top_k"], 40);
    abilities.top_k = false;
    let (sent, lost) = sent_to(Messages, Chat, &abilities, &body);
    assert_eq!((sent.get("top_k"), lost.as_str()), (None, "top_k=dropped"));
}

#[test]
fn a_forced_custom_tool_stays_custom() {
    let tools = json!([{"type": "custom", "name": "patch"}]);
    let body = asking(
        Responses,
        &json!({"tools": tools, "tool_choice": {"type": "custom", "name": "patch"}}),
    );
    let mut abilities = able(Chat);
    abilities.custom_tools = true;
    let forced = sent_to(Responses, Chat, &abilities, &body).0["tool_choice"].clone();
    assert_eq!(
        forced,
        json!({"type": "custom", "custom": {"name": "patch"}})
    );
    abilities.custom_tools = false;
    let forced = sent_to(Responses, Chat, &abilities, &body).0["tool_choice"].clone();
    assert_eq!(
        forced,
        json!({"type": "function", "function": {"name": "patch"}})
    );
    let tools = json!([{"type": "custom", "custom": {"name": "patch"}}]);
    let body = asking(
        Chat,
        &json!({"tools": tools, "tool_choice": {"type": "custom", "custom": {"name": "patch"}}}),
    );
    assert_eq!(
        sent(Chat, Responses, &body)["tool_choice"],
        json!({"type": "custom", "name": "patch"})
    );
}

#[test]
fn logprobs_by_include_are_refused_like_those_by_number() {
    for target in [Chat, Messages] {
        let bad = refused(
            Responses,
            target,
            &asking(
                Responses,
                &json!({"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}),
            ),
        );
        assert_eq!(
            (bad.code, bad.param.as_deref()),
            (Some("unsupported_by_model"), Some("include"))
        );
        assert_eq!(
            lost(
                Responses,
                target,
                &asking(
                    Responses,
                    &json!({"include": ["reasoning.encrypted_content"]})
                )
            ),
            ""
        );
    }
}

#[test]
fn a_tools_schema_of_several_types_is_an_object_for_native_targets() {
    let schema =
        json!({"type": ["object", "null"], "properties": {"a": {"type": ["string", "null"]}}});
    let body = asking(
        Chat,
        &json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}),
    );
    let sent = sent(Chat, Messages, &body)["tools"][0]["input_schema"].clone();
    assert_eq!(
        sent,
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}})
    );
}

#[test]
fn probabilities_of_tokens_are_asked_for_and_told_in_chats_words() {
    let body = asking(Chat, &json!({"logprobs": true, "top_logprobs": 2}));
    let asked = sent(Chat, Responses, &body);
    assert_eq!(
        (&asked["top_logprobs"], &asked["include"]),
        (&json!(2), &json!(["message.output_text.logprobs"]))
    );
    let token = |text: &str| json!({"token": text, "logprob": -0.5, "top_logprobs": [{"token": "x", "logprob": -1.0, "bytes": [120]}]});
    let told = |text: &str| json!({"token": text, "logprob": -0.5, "bytes": null, "top_logprobs": [{"token": "x", "logprob": -1.0, "bytes": [120]}]});
    let delta = |text: &str| {
        json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": text, "logprobs": [token(text)]}).to_string()
    };
    let part = json!({"type": "output_text", "text": "ab", "logprobs": [token("a"), token("b")]});
    let response = json!({"status": "completed", "output": [{"type": "message", "id": "m", "content": [part]}]});
    let end = json!({"type": "response.completed", "response": response}).to_string();
    let stream = relay(
        Responses,
        Chat,
        farebox_protocol::translate::Memo::default(),
        &[delta("a"), delta("b"), end],
    );
    let lists: Vec<Value> = events(&stream)
        .iter()
        .map(|event| event["choices"][0]["logprobs"]["content"].clone())
        .filter(Value::is_array)
        .collect();
    assert_eq!(lists, [json!([told("a")]), json!([told("b")])]);
    let answer = read_answer(Responses, response.to_string().as_bytes());
    let whole = write_answer(
        Chat,
        &answer,
        &farebox_protocol::translate::Memo::default(),
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
    let choice = serde_json::from_slice::<Value>(&whole).expect("JSON")["choices"][0].clone();
    assert_eq!(
        choice["logprobs"],
        json!({"content": [told("a"), told("b")], "refusal": null})
    );
}
