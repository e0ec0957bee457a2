//! What chat services add to their answers, and clients send back, on the way to a service that refuses it.
#![expect(clippy::expect_used, reason = "a failed step is a failed test")]

use farebox_protocol::translate::abilities::{ReasoningEcho, ToolIds};
use farebox_protocol::{Edits, Family, TargetFit};
use serde_json::{Value, json};

/// What goes upstream, and what the model does not get.
fn sent(body: &str, fit: &TargetFit) -> (String, String) {
    let protocol = Family::Chat.protocol();
    let seen = protocol.inspect(body.as_bytes(), 0).expect("a request");
    let edits = Edits {
        model: "m",
        limit_field: "max_tokens",
        fit,
        ..Edits::default()
    };
    let sent = protocol.patch(body.as_bytes(), &seen, &edits);
    let fitted = protocol.fitted(body.as_bytes(), &seen, &edits);
    let lost = fitted.losses.header();
    (String::from_utf8(sent).expect("UTF-8"), lost)
}

fn talk(turns: &Value) -> String {
    json!({"model": "m", "messages": turns}).to_string()
}

fn told(turns: &Value, fit: &TargetFit) -> (Value, String) {
    let (sent, lost) = sent(&talk(turns), fit);
    let mut sent: Value = serde_json::from_str(&sent).expect("JSON");
    (sent["messages"].take(), lost)
}

/// A target that knows these members of an assistant's turn.
fn knowing(members: &[&str]) -> TargetFit {
    TargetFit {
        turn_members: members.iter().map(|name| (*name).to_owned()).collect(),
        ..TargetFit::default()
    }
}

const CALL: &str = r#"{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}"#;

#[test]
fn a_target_that_takes_everything_gets_the_same_bytes() {
    let body = format!(
        r#"{{"model": "m",  "messages": [{{"role":"user","content":"a"}}, {{"reasoning_content" : "t","role":"assistant", "tool_calls":[{CALL}]}}]}}"#
    );
    assert_eq!(
        sent(&body, TargetFit::anything()),
        (body.clone(), String::new())
    );
    let strict = knowing(&["role", "content", "tool_calls"]);
    let plain = body.replace(r#""reasoning_content" : "t","#, "");
    assert_eq!(
        sent(&body, &strict),
        (
            plain.clone(),
            "messages.reasoning_content=dropped".to_owned()
        )
    );
    assert_eq!(sent(&plain, &strict), (plain, String::new()));
}

#[test]
fn only_the_members_of_an_assistant_are_left_out_and_an_empty_one_is_no_loss() {
    let strict = knowing(&["role", "content", "tool_calls"]);
    let extra: Value = serde_json::from_str(CALL).expect("JSON");
    let mut signed = extra.clone();
    signed["extra_content"] = json!({"google": {"thought_signature": "s"}});
    let turns = json!([
        {"role": "user", "name": "u", "content": "a"},
        {"refusal": null, "annotations": [], "reasoning": "t", "role": "assistant", "content": null, "tool_calls": [signed], "audio": null},
        {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "b"}]);
    let fits = json!([
        {"role": "user", "name": "u", "content": "a"},
        {"role": "assistant", "content": null, "tool_calls": [extra]},
        {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "b"}]);
    assert_eq!(
        told(&turns, &strict),
        (fits, "messages.reasoning=dropped".to_owned())
    );
}

#[test]
fn the_first_call_of_each_turn_is_signed_and_a_signature_stays() {
    let mut signs = TargetFit::default();
    signs.abilities.signed_calls = true;
    let call: Value = serde_json::from_str(CALL).expect("JSON");
    let with = |extra: Value| {
        let mut call = call.clone();
        call["extra_content"] = extra;
        json!({"role": "assistant", "tool_calls": [call]})
    };
    let own = with(json!({"google": {"thought_signature": "own"}}));
    let elsewhere =
        with(json!({"google": {"thought_signature": "skip_thought_signature_validator"}}));
    let turns = json!([
        own,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "tool_calls": [call, call]},
        with(json!({}))]);
    let mut two = elsewhere.clone();
    two["tool_calls"].as_array_mut().expect("a list").push(call);
    let signed = json!([own, elsewhere, two, elsewhere]);
    assert_eq!(told(&turns, &signs), (signed, String::new()));
}

#[test]
fn ids_are_rewritten_alike_in_calls_and_results() {
    let mut nine = TargetFit::default();
    nine.abilities.tool_ids = ToolIds::Nine;
    let call: Value = serde_json::from_str(CALL).expect("JSON");
    let mut fitting = call.clone();
    fitting["id"] = json!("abcdefgh9");
    let turns = json!([
        {"role": "assistant", "tool_calls": [call, fitting]},
        {"role": "tool", "tool_call_id": "call_1", "content": "b"},
        {"role": "tool", "tool_call_id": "abcdefgh9", "content": "b"}]);
    let (turns, lost) = told(&turns, &nine);
    let made = turns[0]["tool_calls"][0]["id"].as_str().expect("an id");
    assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(turns[1]["tool_call_id"], made);
    assert_eq!(turns[0]["tool_calls"][1]["id"], "abcdefgh9");
    assert_eq!(turns[2]["tool_call_id"], "abcdefgh9");
    assert_eq!(lost, "");
}

#[test]
fn a_turn_without_thinking_has_a_space_where_all_thinking_comes_back() {
    let mut echoed = knowing(&["role", "content"]);
    echoed.abilities.reasoning_echo = ReasoningEcho::All;
    let turns = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "assistant", "content": "b", "reasoning_content": null},
        {"role": "assistant", "content": "b", "reasoning_content": "t"}]);
    let blank = json!({"role": "assistant", "content": "b", "reasoning_content": " "});
    let full = json!([turns[0], blank, blank, turns[3]]);
    assert_eq!(told(&turns, &echoed), (full, String::new()));
}
