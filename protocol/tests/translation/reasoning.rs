//! Thinking: what is carried, what is cut, and how much is requested.

use farebox_protocol::translate::Memo;
use farebox_protocol::translate::abilities::{ReasoningEcho, ThinkingWay};
use serde_json::{Value, json};

use super::help::*;

fn thought(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": signature})
}

fn native_turns(signature: &str) -> Value {
    talking(
        Messages,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [thought(signature), {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
        ]),
    )
}

#[test]
fn b29_thinking_goes_back_with_the_calls_where_it_is_wanted() {
    let mut abilities = able(Chat);
    abilities.reasoning_echo = ReasoningEcho::Tools;
    let (sent, _) = sent_to(Messages, Chat, &abilities, &native_turns("s"));
    assert_eq!(sent["messages"][1]["reasoning_content"], "hm");
}

#[test]
fn b30_some_want_it_on_every_message_and_take_no_empty_one() {
    let mut abilities = able(Chat);
    abilities.reasoning_echo = ReasoningEcho::All;
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "q"},
        ]),
    );
    let (sent, _) = sent_to(Messages, Chat, &abilities, &body);
    assert_eq!(sent["messages"][1]["reasoning_content"], " ");
}

#[test]
fn b32_b33_foreign_thinking_never_reaches_a_vendor() {
    let body = talking(
        Responses,
        json!([
            {"role": "user", "content": "q"},
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "secret"}], "encrypted_content": "gAAA"},
            {"role": "assistant", "content": "a"}, {"role": "user", "content": "q2"},
        ]),
    );
    let (sent, lost) = sent_to(Responses, Messages, &able(Messages), &body);
    assert!(!sent.to_string().contains("secret") && !sent.to_string().contains("gAAA"));
    assert_eq!(lost, "input.reasoning=dropped");
    let (sent, lost) = sent_to(Messages, Chat, &able(Chat), &native_turns("EqQB"));
    assert!(!sent.to_string().contains("hm") && !sent.to_string().contains("EqQB"));
    assert_eq!(lost, "messages.thinking=dropped");
}

#[test]
fn b37_a_budget_is_given_up_in_the_middle_of_calls() {
    let mut abilities = able(Messages);
    abilities.thinking = ThinkingWay::Budget;
    let mut body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ]),
    );
    body["reasoning_effort"] = json!("medium");
    let (sent, lost) = sent_to(Chat, Messages, &abilities, &body);
    assert_eq!(sent["thinking"], json!({"type": "disabled"}));
    assert_eq!(lost, "thinking=off(no_signature)");
    let body = asking(
        Chat,
        &json!({"reasoning_effort": "medium", "temperature": 0.5}),
    );
    let (sent, lost) = sent_to(Chat, Messages, &abilities, &body);
    assert_eq!(
        sent["thinking"],
        json!({"type": "enabled", "budget_tokens": 8_192})
    );
    assert_eq!(lost, "temperature=dropped");
    let body = asking(
        Chat,
        &json!({"reasoning_effort": "high", "max_tokens": 1_279}),
    );
    assert_eq!(
        sent_to(Chat, Messages, &abilities, &body).1,
        "thinking=off(limit)"
    );
}

#[test]
fn a_budget_is_fitted_to_the_final_limit() {
    use farebox_protocol::translate::fit_budget;
    let mut abilities = able(Messages);
    abilities.thinking = ThinkingWay::Budget;
    let body = asking(Chat, &json!({"reasoning_effort": "high"}));
    let body = translated(Chat, Messages, &abilities, &body)
        .expect("a translation")
        .body;
    assert_eq!(fit_budget(Messages, &body, 64_000), None);
    let fitted = |limit: u32| {
        let (body, off) = fit_budget(Messages, &body, limit).expect("a change");
        (
            serde_json::from_slice::<Value>(&body).expect("JSON")["thinking"].clone(),
            off,
        )
    };
    assert_eq!(
        fitted(8_000),
        (json!({"type": "enabled", "budget_tokens": 6_000}), false)
    );
    assert_eq!(
        fitted(1_280),
        (json!({"type": "enabled", "budget_tokens": 1_024}), false)
    );
    assert_eq!(fitted(1_279), (json!({"type": "disabled"}), true));
}

#[test]
fn b98_an_answer_of_thinking_alone_leaves_no_empty_turn() {
    let body = talking(
        Messages,
        json!([
            {"role": "user", "content": "q"}, {"role": "assistant", "content": [thought("s")]}, {"role": "user", "content": "go on"},
        ]),
    );
    assert_eq!(
        sent(Messages, Chat, &body)["messages"],
        json!([{"role": "user", "content": "q\n\ngo on"}])
    );
}

#[test]
fn efforts_and_budgets_find_each_other() {
    let effort = |body: &Value| sent(Messages, Chat, body).get("reasoning_effort").cloned();
    let budget = |tokens: u32| {
        asking(
            Messages,
            &json!({"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": tokens}}),
        )
    };
    assert_eq!(effort(&budget(2_000)), Some(json!("low")));
    assert_eq!(effort(&budget(8_000)), Some(json!("medium")));
    assert_eq!(effort(&budget(60_000)), Some(json!("high")));
    assert_eq!(
        effort(&asking(
            Messages,
            &json!({"thinking": {"type": "disabled"}})
        )),
        Some(json!("none"))
    );
    assert_eq!(
        effort(&asking(
            Messages,
            &json!({"thinking": {"type": "adaptive"}})
        )),
        None
    );
    let body = asking(
        Messages,
        &json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
    );
    assert_eq!(
        (effort(&body), lost(Messages, Chat, &body)),
        (Some(json!("high")), "effort=clamped".to_owned())
    );
    let sent = sent(
        Responses,
        Messages,
        &asking(
            Responses,
            &json!({"reasoning": {"effort": "low", "summary": "auto"}}),
        ),
    );
    assert_eq!(
        sent["thinking"],
        json!({"type": "adaptive", "display": "summarized"})
    );
    assert_eq!(sent["output_config"], json!({"effort": "low"}));
}

#[test]
fn b38_b97_a_vendors_seal_stops_here_and_its_text_is_kept_to_the_byte() {
    let thinking = (
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        vec![
            json!({"type": "thinking_delta", "thinking": " a\n "}),
            json!({"type": "signature_delta", "signature": "EqQB"}),
        ],
    );
    let upstream = native(&[thinking, text_block("x")], "end_turn");
    let stream = relay(Messages, Responses, Memo::default(), &upstream);
    assert!(!stream.contains("EqQB"));
    assert_eq!(
        last_of(&stream, "/response/output/0/summary/0/text"),
        " a\n "
    );
    let stream = relay(Messages, Chat, Memo::default(), &upstream);
    assert!(!stream.contains("EqQB") && stream.contains("\"reasoning_content\":\" a\\n \""));
}

#[test]
fn shown_thinking_carries_our_seal() {
    let stream = relay(
        Chat,
        Messages,
        Memo::default(),
        &chat(
            &[json!({"reasoning_content": "hm"}), json!({"content": "x"})],
            "stop",
        ),
    );
    assert!(
        stream.contains("\"signature_delta\",\"signature\":\"fbx1."),
        "{stream}"
    );
}

/// On its own family a reasoning item passes to the byte, whatever its members and their order are.
#[test]
fn b36_b40_a_vendors_own_reasoning_item_is_never_reshaped() {
    use farebox_protocol::Edits;
    use farebox_protocol::translate::cut_marks;
    let item = r#"{"summary": [], "encrypted_content":"gAAA\/+=", "type":"reasoning","id":"rs_1", "status":null}"#;
    let body = format!(
        r#"{{"model":"slug","input":[{{"role":"user","content":"q"}},{item},{{"role":"assistant","content":"a"}}]}}"#
    );
    let protocol = Responses.protocol();
    let seen = protocol
        .inspect(body.as_bytes(), 0)
        .expect("a good request");
    let sent = protocol.patch(
        body.as_bytes(),
        &seen,
        &Edits {
            model: "up",
            limit_field: "max_tokens",
            limit: None,
            ..Edits::default()
        },
    );
    assert!(String::from_utf8(sent).expect("UTF-8").contains(item));
    assert_eq!(cut_marks(Responses, body.as_bytes(), false), None);
}
