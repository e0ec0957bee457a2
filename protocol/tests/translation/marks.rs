//! What this gateway makes up is marked, and never reaches a vendor; nor does thinking that a vendor has rejected.

use farebox_protocol::translate::{
    Memo, Unsealed, cut_marks, cut_thinking, read_answer, write_answer,
};
use farebox_protocol::{Family, UsageWish};
use serde_json::{Value, json};

use super::help::*;

fn thought(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": signature})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r"}]})
}

/// A loop whose last turn has a call after thinking with this signature.
fn native_turns(signature: &str) -> Value {
    json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [thought(signature), call("t1")]},
        result("t1"),
    ])
}

/// A request with a thinking budget.
fn with_budget(turns: &Value) -> Value {
    asking(
        Messages,
        &json!({"messages": turns, "thinking": {"type": "enabled", "budget_tokens": 2_000}}),
    )
}

fn cut(family: Family, body: &Value) -> Option<(Value, Unsealed)> {
    let budget = body["thinking"]["type"] == "enabled";
    let text = body.to_string();
    let cut = cut_marks(family, text.as_bytes(), budget)?;
    let again = cut_marks(family, &cut.body, budget);
    assert_eq!(again, None, "nothing is left to cut");
    Some((serde_json::from_slice(&cut.body).expect("JSON"), cut))
}

fn changed(family: Family, body: &Value) -> (Value, Unsealed) {
    cut(family, body).expect("a change")
}

#[test]
fn b31_b32_a_seal_made_here_is_cut_from_a_body_that_passes() {
    let (cut, marks) = changed(Messages, &talking(Messages, native_turns("fbx1.plain")));
    assert_eq!(marks.thinking, 1);
    assert_eq!(
        cut["messages"][1]["content"],
        json!([{"type": "tool_use", "id": "t1", "name": "f", "input": {}}])
    );
    assert!(
        !cut.to_string().contains("hm"),
        "thinking is never turned into text"
    );
    assert_eq!(
        super::marks::cut(Messages, &talking(Messages, native_turns("EqQB"))),
        None
    );
}

#[test]
fn text_that_mentions_a_seal_is_no_seal() {
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "what is fbx1.plain?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"data": "fbx1.x", "content": [{"data": "fbx1.x"}]}}]},
        ]),
    );
    assert_eq!(cut(Messages, &body), None);
}

#[test]
fn b35_an_item_or_message_that_was_only_a_seal_goes_whole() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"}, {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "fbx1.r"},
            {"role": "assistant", "content": "a"},
        ]),
    );
    let (cut, _) = changed(Responses, &body);
    assert_eq!(
        cut["input"],
        json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])
    );
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"}, {"role": "assistant", "content": [thought("fbx1.plain"), thought("fbx1.plain")]},
        ]),
    );
    let (cut, marks) = changed(Messages, &body);
    assert_eq!(
        (cut["messages"].as_array().map(Vec::len), marks.thinking),
        (Some(1), 2)
    );
}

#[test]
fn a_marked_id_goes_alone_and_its_item_stays() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"},
            {"id": "msg_r_0_fbx", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
            {"type": "function_call", "status": "completed", "call_id": "call_fbx", "name": "f", "arguments": "{}", "id": "fc_r_1_fbx"},
            {"type": "function_call_output", "call_id": "call_fbx", "output": "r"},
        ]),
    );
    let (sent, cut) = changed(Responses, &body);
    assert_eq!((cut.thinking, cut.losses().header().as_str()), (0, ""));
    let mut expected = body["input"].clone();
    for at in [1, 2] {
        expected[at].as_object_mut().expect("an item").remove("id");
    }
    assert_eq!(sent["input"], expected);
}

#[test]
fn a_reasoning_item_of_ours_goes_whole_with_its_seal_or_without() {
    let item = |id: &str, seal: Value| json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": seal});
    let vendors = item("rs_1", json!("gAAA"));
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"}, item("rs_r_0_fbx", json!("fbx1.plain")), item("rs_r_1_fbx", Value::Null),
            item("renamed", json!("fbx1.plain")), vendors,
        ]),
    );
    let (sent, cut) = changed(Responses, &body);
    assert_eq!(
        sent["input"],
        json!([{"role": "user", "content": "q"}, vendors])
    );
    assert_eq!(cut.losses().header(), "thinking=dropped(3)");
}

#[test]
fn what_only_looks_like_a_mark_stays() {
    for (family, turns) in [
        (
            Messages,
            json!([
                {"role": "user", "content": [{"type": "text", "text": "x_fbx", "id": "a_fbx"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "fbx1.x"}}]},
                {"role": "assistant", "content": [call("toolu_fbx")]},
            ]),
        ),
        (
            Chat,
            json!([
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_fbx", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call_fbx", "content": "fbx1.plain"},
            ]),
        ),
        (
            Responses,
            json!([
                {"type": "message", "role": "user", "content": [{"type": "input_file", "filename": "model.fbx", "file_data": "fbx1.x", "data": "fbx1.x"}]},
                {"type": "compaction", "id": "cmp_1", "encrypted_content": "fbx1.x"},
            ]),
        ),
    ] {
        assert_eq!(cut(family, &talking(family, turns)), None, "{family}");
    }
}

#[test]
fn thinking_is_off_when_the_turn_with_the_last_calls_lost_its_signature() {
    let (sent, cut) = changed(Messages, &with_budget(&native_turns("fbx1.plain")));
    assert_eq!(sent["thinking"], json!({"type": "disabled"}));
    assert_eq!(
        cut.losses().header(),
        "thinking=dropped, thinking=off(no_signature)"
    );

    let unthinking = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": [call("t1")]}, result("t1")]);
    let (sent, cut) = changed(Messages, &with_budget(&unthinking));
    assert_eq!(
        sent["thinking"],
        json!({"type": "disabled"}),
        "a model that does not think made that turn"
    );
    assert_eq!(cut.losses().header(), "thinking=off(no_signature)");
}

#[test]
fn thinking_stays_on_where_the_vendor_takes_it() {
    assert_eq!(
        cut(Messages, &with_budget(&native_turns("EqQB"))),
        None,
        "signed"
    );
    let mut ended = native_turns("fbx1.plain");
    ended.as_array_mut().expect("turns").extend([
        json!({"role": "assistant", "content": "a"}),
        json!({"role": "user", "content": "q"}),
    ]);
    let (sent, cut) = changed(Messages, &with_budget(&ended));
    assert_eq!(
        (sent["thinking"]["type"].as_str(), cut.off),
        (Some("enabled"), false),
        "a new turn"
    );
    let adaptive = asking(
        Messages,
        &json!({"messages": native_turns("fbx1.plain"), "thinking": {"type": "adaptive"}}),
    );
    let (sent, cut) = changed(Messages, &adaptive);
    assert_eq!(
        (sent["thinking"]["type"].as_str(), cut.off),
        (Some("adaptive"), false),
        "adaptive"
    );
}

#[test]
fn without_thinking_the_context_is_not_cleared_of_it() {
    let mut body = with_budget(&native_turns("fbx1.plain"));
    let tools = json!({"type": "clear_tool_uses_20250919"});
    body["context_management"] =
        json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}, tools]});
    let (sent, _) = changed(Messages, &body);
    assert_eq!(sent["context_management"], json!({"edits": [tools]}));
}

#[test]
fn b34_a_vendor_that_rejects_a_seal_gets_the_conversation_without_any() {
    let repeated = |family: Family, body: &Value| {
        let cut = cut_thinking(family, body.to_string().as_bytes()).expect("thinking");
        let sent: Value = serde_json::from_slice(&cut.body).expect("JSON");
        (sent, cut.losses().header())
    };
    let mut turns = native_turns("EqQB");
    turns[1]["content"]
        .as_array_mut()
        .expect("blocks")
        .insert(0, json!({"type": "redacted_thinking", "data": "Eo"}));
    let (sent, lost) = repeated(Messages, &with_budget(&turns));
    assert_eq!(sent["messages"][1]["content"], json!([call("t1")]));
    assert_eq!(lost, "thinking=dropped(2), thinking=off(no_signature)");

    let body = talking(
        Responses,
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        ]),
    );
    let (sent, lost) = repeated(Responses, &body);
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    assert_eq!(
        sent["input"],
        json!([call, search]),
        "a call's id ties it to its reasoning"
    );
    assert_eq!(lost, "thinking=dropped");

    let plain = talking(
        Responses,
        json!([{"type": "compaction", "encrypted_content": "gAAA"}]),
    )
    .to_string();
    assert_eq!(
        cut_thinking(Responses, plain.as_bytes()),
        None,
        "nothing can be left out"
    );
}

#[test]
fn b34_a_rejected_seal_is_known_by_its_code_or_its_words() {
    use farebox_protocol::UpstreamError;
    use farebox_protocol::translate::rejects_seal;
    let error = |code: Option<&str>, message: &str| UpstreamError {
        code: code.map(str::to_owned),
        message: message.to_owned(),
        ..UpstreamError::default()
    };
    for (code, message) in [
        (Some("invalid_encrypted_content"), "no"),
        (
            None,
            "The encrypted content gAAA...DQ== could not be verified.",
        ),
        (None, "400 invalid_encrypted_content"),
        (
            None,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        ),
        (
            None,
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        ),
        (
            None,
            "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
        ),
        (None, "The block is bound to a different conversation."),
    ] {
        assert!(rejects_seal(&error(code, message)), "{message}");
    }
    for message in [
        "Invalid signature",
        "The content could not be verified.",
        "encrypted",
    ] {
        assert!(
            !rejects_seal(&error(Some("invalid_request_error"), message)),
            "{message}"
        );
    }
}

/// The standard way to go on: the output of one turn is part of the next input.
#[test]
fn nothing_that_we_make_up_is_left_of_an_answer_that_is_sent_back() {
    let thinking = (
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        vec![json!({"type": "thinking_delta", "thinking": "hm"})],
    );
    let upstream = native(
        &[
            thinking,
            text_block("I look."),
            call_block("t1", "f", &["{}"]),
        ],
        "tool_use",
    );
    let stream = relay(Messages, Responses, Memo::default(), &upstream);
    let streamed = last_of(&stream, "/response/output");
    let whole = json!({"stop_reason": "tool_use", "content": [thought("EqQB"), {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]});
    let answer = read_answer(Messages, whole.to_string().as_bytes());
    let whole = write_answer(
        Responses,
        &answer,
        &Memo::default(),
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
    let whole = serde_json::from_slice::<Value>(&whole).expect("JSON")["output"].clone();
    assert_eq!(streamed, whole);
    let ids = whole.as_array().expect("items").iter();
    assert!(
        ids.clone()
            .all(|item| item["id"].as_str().is_some_and(|id| id.ends_with("_fbx")))
    );
    assert_eq!(whole[0]["encrypted_content"], "fbx1.plain");

    let (sent, _) = changed(Responses, &talking(Responses, whole));
    let items = sent["input"].as_array().expect("items");
    assert_eq!(items.len(), 2, "text and call");
    assert!(items.iter().all(|item| item.get("id").is_none()));
    assert!(!sent.to_string().contains("fbx"));
    assert_eq!(items[1]["call_id"], "t1");
}
