//! Parameters: which are clamped, dropped or refused, and the treatment of last turns.

use farebox_protocol::translate::Abilities;
use farebox_protocol::translate::abilities::Sampling;
use serde_json::{Value, json};

use super::help::*;

#[test]
fn b43_b101_a_long_user_id_and_metadata_are_not_sent() {
    let body = asking(Messages, &json!({"metadata": {"user_id": "x".repeat(150)}}));
    let (sent_body, lost) = sent_to(Messages, Chat, &able(Chat), &body);
    assert!(sent_body.get("user").is_none() && lost.is_empty());
    let metadata: serde_json::Map<String, Value> =
        (0..28).map(|key| (format!("k{key}"), json!("v"))).collect();
    assert!(
        sent(
            Chat,
            Messages,
            &asking(Chat, &json!({"metadata": metadata}))
        )
        .get("metadata")
        .is_none()
    );
}

#[test]
fn b44_a_user_is_sent_as_a_hash() {
    let id = sent(Chat, Messages, &asking(Chat, &json!({"user": "a@b.c"})))["metadata"]["user_id"]
        .clone();
    let id = id.as_str().expect("an id");
    assert!(
        id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
}

#[test]
fn b45_b46_b47_b48_a_last_assistant_turn_is_gone_on_with_or_answered() {
    let body = talking(
        Chat,
        json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "The answer is "}]),
    );
    let (sent, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    assert_eq!(
        sent["messages"][1]["content"][0]["text"], "The answer is ",
        "the real answer stays"
    );
    assert_eq!(
        sent["messages"][2],
        json!({"role": "user", "content": [{"type": "text", "text": "(continue)"}]})
    );
    assert_eq!(lost, "prefill=continued");
    let mut abilities = able(Messages);
    abilities.prefill = true;
    let (sent, lost) = sent_to(Chat, Messages, &abilities, &body);
    assert_eq!(sent["messages"][1]["content"][0]["text"], "The answer is");
    assert!(sent["messages"].as_array().map(Vec::len) == Some(2) && lost.is_empty());
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": ""},
        ]),
    );
    let (sent, _) = sent_to(Chat, Messages, &abilities, &body);
    assert_eq!(
        sent["messages"][2]["role"], "user",
        "what was cleaned away must not leave the answer last"
    );
}

#[test]
fn b41_strict_is_said_where_it_is_known() {
    let tool = json!([{"type": "function", "name": "f", "strict": true,
        "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}]);
    let body = asking(Responses, &json!({"tools": tool}));
    assert_eq!(
        sent(Responses, Chat, &body)["tools"][0]["function"]["strict"],
        true
    );
    let (sent, lost) = sent_to(Responses, Chat, &Abilities::careful(Chat), &body);
    assert!(sent["tools"][0]["function"].get("strict").is_none());
    assert_eq!(lost, "tools.strict=dropped");
}

#[test]
fn b102_sampling_is_what_the_target_takes() {
    let body = asking(Chat, &json!({"temperature": 1.6, "top_p": 0.5}));
    let (sent, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    assert_eq!(
        (&sent["temperature"], lost.as_str()),
        (&json!(1), "temperature=clamped")
    );
    let mut abilities = able(Messages);
    abilities.sampling = Sampling::One;
    assert_eq!(
        sent_to(Chat, Messages, &abilities, &body).1,
        "temperature=clamped, top_p=dropped"
    );
    abilities.sampling = Sampling::None;
    let (sent, lost) = sent_to(Chat, Messages, &abilities, &body);
    assert!(sent.get("temperature").is_none() && sent.get("top_p").is_none());
    assert_eq!(lost, "temperature=dropped, top_p=dropped");
}

#[test]
fn what_changes_the_answer_is_refused_with_the_remedy() {
    let cases = [
        (Chat, Messages, json!({"n": 3}), "n", "Use `n` = 1."),
        (
            Chat,
            Messages,
            json!({"logprobs": true}),
            "logprobs",
            "Leave it out.",
        ),
        (
            Chat,
            Messages,
            json!({"modalities": ["text", "audio"]}),
            "modalities",
            "text only",
        ),
        (
            Responses,
            Chat,
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
            "whole conversation",
        ),
        (
            Responses,
            Messages,
            json!({"background": true}),
            "background",
            "stream",
        ),
        (
            Responses,
            Messages,
            json!({"prompt": {"id": "p"}}),
            "prompt",
            "instructions",
        ),
        (
            Responses,
            Chat,
            json!({"top_logprobs": 3}),
            "top_logprobs",
            "Leave it out.",
        ),
        (
            Messages,
            Chat,
            json!({"mcp_servers": [{"url": "x"}]}),
            "mcp_servers",
            "tools of your own",
        ),
        (
            Messages,
            Chat,
            json!({"inference_geo": "us"}),
            "inference_geo",
            "Leave it out",
        ),
        (
            Messages,
            Chat,
            json!({"stop_sequences": ["a", "b", "c", "d", "e"]}),
            "stop_sequences",
            "Send fewer.",
        ),
    ];
    for (from, to, more, param, remedy) in cases {
        let bad = refused(from, to, &asking(from, &more));
        assert_eq!(
            (bad.code, bad.param.as_deref()),
            (Some("unsupported_by_model"), Some(param))
        );
        assert!(bad.message.contains(remedy), "{}", bad.message);
    }
    let item = json!([{"type": "item_reference", "id": "msg_1"}]);
    assert_eq!(
        refused(Responses, Chat, &talking(Responses, item))
            .param
            .as_deref(),
        Some("input[0]")
    );
    let compacted = json!([{"type": "compaction", "encrypted_content": "gAAA"}]);
    assert_eq!(
        refused(Responses, Chat, &talking(Responses, compacted))
            .param
            .as_deref(),
        Some("input[0]")
    );
}

/// Left out, one would be answered as a question, and the other under the wrong settings.
#[test]
fn items_that_only_responses_can_act_on_name_what_to_send_instead() {
    for (kind, remedy) in [
        ("compaction_trigger", "Ask the model for a summary"),
        ("configuration_update", "`reasoning` and `text`"),
    ] {
        let items = json!([{"role": "user", "content": "hi"}, {"type": kind, "reasoning": {"effort": "high"}}]);
        for target in [Chat, Messages] {
            let bad = refused(Responses, target, &talking(Responses, items.clone()));
            assert_eq!(bad.param.as_deref(), Some("input[1]"));
            assert!(bad.message.contains(remedy), "{}", bad.message);
        }
    }
}

#[test]
fn defaults_ask_for_nothing() {
    let quiet = [
        (
            Chat,
            Messages,
            json!({"n": 1, "logprobs": false, "frequency_penalty": 0, "modalities": ["text"], "store": false, "seed": null}),
        ),
        (
            Responses,
            Chat,
            json!({"include": ["reasoning.encrypted_content"], "client_metadata": {"a": 1}, "truncation": "disabled", "text": {"verbosity": "medium"}}),
        ),
        (
            Messages,
            Chat,
            json!({"safeguards": {"x": 1}, "inference_geo": "global", "metadata": {"user_id": "u"}}),
        ),
    ];
    for (from, to, more) in quiet {
        assert_eq!(lost(from, to, &asking(from, &more)), "");
    }
    assert_eq!(
        lost(
            Chat,
            Messages,
            &asking(
                Chat,
                &json!({"seed": 5, "frequency_penalty": 1, "x_new": 1})
            )
        ),
        "frequency_penalty=dropped, seed=dropped, x_new=dropped"
    );
}

#[test]
fn losses_fit_into_a_header() {
    let many: serde_json::Map<String, Value> = (0..200)
        .map(|at| (format!("x_long_name_of_a_field_{at:03}"), json!(1)))
        .collect();
    let header = lost(Chat, Messages, &asking(Chat, &Value::Object(many)));
    assert!(
        header.len() <= 1_024 && header.contains(", more="),
        "{header}"
    );
    let odd = asking(Chat, &json!({"a b\r\nset-cookie: x": 1}));
    assert_eq!(lost(Chat, Messages, &odd), "unknown=dropped");
}

#[test]
fn limits_keep_their_value_and_are_never_invented_small() {
    assert_eq!(
        sent(
            Chat,
            Messages,
            &asking(Chat, &json!({"max_completion_tokens": 77}))
        )["max_tokens"],
        77
    );
    assert_eq!(
        sent(Chat, Messages, &asking(Chat, &json!({})))["max_tokens"],
        32_000
    );
    assert_eq!(
        sent(Responses, Messages, &asking(Responses, &json!({})))["max_tokens"],
        32_000
    );
    assert!(
        sent(Responses, Chat, &asking(Responses, &json!({})))
            .get("max_tokens")
            .is_none()
    );
    let (sent_body, lost) = sent_to(
        Messages,
        Responses,
        &able(Responses),
        &asking(Messages, &json!({"max_tokens": 5})),
    );
    assert_eq!(
        (&sent_body["max_output_tokens"], lost.as_str()),
        (&json!(16), "max_tokens=raised")
    );
    let mut abilities = able(Chat);
    abilities.limit_field = "max_completion_tokens";
    assert_eq!(
        sent_to(Messages, Chat, &abilities, &asking(Messages, &json!({}))).0["max_completion_tokens"],
        4_000
    );
}

#[test]
fn schemas_are_reshaped_for_the_target() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"oneOf": [{"type": "string"}, {"type": "null"}]}}});
    let body = asking(
        Chat,
        &json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
    );
    let (sent_body, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    let wanted = json!({"type": "object", "additionalProperties": false, "properties": {
        "a": {"type": "integer", "description": "(minimum: 1)"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }});
    assert_eq!(
        sent_body["output_config"]["format"],
        json!({"type": "json_schema", "schema": wanted})
    );
    assert_eq!(lost, "schema=relaxed");
    let careful = Abilities::careful(Messages);
    let bad = translated(Chat, Messages, &careful, &body).expect_err("no schema");
    assert_eq!(bad.param.as_deref(), Some("response_format"));
    let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    for (schema, is_strict) in [(strict, true), (schema, false)] {
        let body = asking(
            Messages,
            &json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
        );
        let format = sent(Messages, Chat, &body)["response_format"]["json_schema"].clone();
        assert_eq!(
            (&format["strict"], &format["name"], &format["schema"]),
            (&json!(is_strict), &json!("output"), &schema)
        );
    }
    let body = asking(Chat, &json!({"response_format": {"type": "json_object"}}));
    let (sent, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    assert_eq!(
        (&sent["system"][0]["text"], lost.as_str()),
        (
            &json!("Answer with one JSON object and nothing else."),
            "response_format=asked"
        )
    );
}

#[test]
fn typed_client_tools_get_their_schema() {
    let body = asking(
        Messages,
        &json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}),
    );
    let function = sent(Messages, Chat, &body)["tools"][0]["function"].clone();
    assert_eq!(function["name"], "bash");
    assert!(
        function["parameters"]["properties"]
            .get("command")
            .is_some()
    );
}

#[test]
fn b50_json_is_never_asked_for_by_a_hidden_tool() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let body = asking(Chat, &json!({"response_format": format}));
    for target in [Messages, Responses] {
        assert_eq!(sent(Chat, target, &body).get("tools"), None);
    }
    let stream = relay(
        Messages,
        Chat,
        farebox_protocol::translate::Memo::default(),
        &native(&[text_block("{}")], "end_turn"),
    );
    assert_eq!(
        last_of(&stream, "/choices/0/finish_reason"),
        "stop",
        "structured output ends as an answer, not as a call"
    );
}
