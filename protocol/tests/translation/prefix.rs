//! Everything before the conversation stays the same, so that prompt caches hit: system prompts, marks, keys.

use serde_json::{Value, json};

use super::help::*;

#[test]
fn b10_a_changing_billing_header_is_left_out() {
    let body = |nonce: &str| {
        asking(
            Messages,
            &json!({"system": [
                {"type": "text", "text": format!("x-anthropic-billing-header: cc_version=1; cch={nonce}")},
                {"type": "text", "text": "You help."},
            ]}),
        )
    };
    for target in [Chat, Responses] {
        assert_eq!(
            sent(Messages, target, &body("A")),
            sent(Messages, target, &body("B"))
        );
    }
    assert_eq!(
        sent(Messages, Responses, &body("A"))["instructions"],
        "You help."
    );
    assert_eq!(
        sent(Messages, Chat, &body("A"))["messages"][0],
        json!({"role": "system", "content": "You help."})
    );
}

#[test]
fn b11_the_cache_key_is_the_clients_or_the_session() {
    assert_eq!(
        sent(
            Responses,
            Chat,
            &asking(Responses, &json!({"prompt_cache_key": "k"}))
        )["prompt_cache_key"],
        "k"
    );
    let user = json!({"device_id": "d", "session_id": "s-1"}).to_string();
    let body = asking(Messages, &json!({"metadata": {"user_id": user}}));
    assert_eq!(sent(Messages, Chat, &body)["prompt_cache_key"], "s-1");
    assert_eq!(
        sent(Messages, Chat, &asking(Messages, &json!({}))).get("prompt_cache_key"),
        None
    );
}

#[test]
fn b12_a_late_system_message_leaves_the_system_prompt_alone() {
    let turns = |late: bool| {
        let mut turns = vec![
            json!({"role": "system", "content": "first"}),
            json!({"role": "user", "content": "a"}),
            json!({"role": "assistant", "content": "b"}),
            json!({"role": "user", "content": "c"}),
        ];
        if late {
            turns.push(json!({"role": "system", "content": "late"}));
        }
        talking(Chat, Value::Array(turns))
    };
    let (before, after) = (
        sent(Chat, Messages, &turns(false)),
        sent(Chat, Messages, &turns(true)),
    );
    assert_eq!(before["system"], after["system"]);
    assert_eq!(
        after["messages"][2]["content"][1]["text"],
        "<system-reminder>\nlate\n</system-reminder>"
    );
}

#[test]
fn b13_a_leading_developer_item_is_the_system_prompt() {
    let body = talking(
        Responses,
        json!([{"role": "developer", "content": "rules"}, {"role": "user", "content": "hi"}]),
    );
    let sent = sent(Responses, Messages, &body);
    assert_eq!(sent["system"], json!([{"type": "text", "text": "rules"}]));
    assert_eq!(sent["messages"][0]["role"], "user");
}

#[test]
fn b14_a_system_message_midway_is_said_by_the_user() {
    let body = talking(
        Messages,
        json!([{"role": "user", "content": "hi"}, {"role": "system", "content": "note"}]),
    );
    let sent = sent(Messages, Chat, &body);
    assert_eq!(
        sent["messages"],
        json!([{"role": "user", "content": "hi\n\n<system-reminder>\nnote\n</system-reminder>"}])
    );
}

#[test]
fn b14_where_the_target_takes_it_it_stays() {
    let mut abilities = able(Messages);
    abilities.system_midway = true;
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "system", "content": "note"},
            {"role": "user", "content": "c"},
        ]),
    );
    let (sent, _) = sent_to(Chat, Messages, &abilities, &body);
    let roles: Vec<&Value> = sent["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|turn| &turn["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "system"]);
}

#[test]
fn b15_system_parts_keep_their_marks() {
    let body = talking(
        Chat,
        json!([
            {"role": "system", "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"},
            ]},
            {"role": "user", "content": "hi"},
        ]),
    );
    let system = json!([
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"},
    ]);
    assert_eq!(sent(Chat, Messages, &body)["system"], system);
}

#[test]
fn b92_four_marks_are_kept_and_none_on_empty_text() {
    let mark = json!({"type": "ephemeral"});
    let part = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    let body = talking(
        Chat,
        json!([
            {"role": "system", "content": [part("s1"), part("s2")]},
            {"role": "user", "content": [part("u1"), part(" ")]}, {"role": "assistant", "content": "a"},
            {"role": "user", "content": [part("u2"), part("u3")]},
        ]),
    );
    let (sent, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    let text = sent.to_string();
    assert_eq!(text.matches("cache_control").count(), 3, "{text}");
    assert!(
        sent["system"][0].get("cache_control").is_none()
            && sent["system"][1].get("cache_control").is_some()
    );
    assert!(
        sent["messages"][2]["content"]
            .to_string()
            .matches("cache_control")
            .count()
            == 2
    );
    assert_eq!(lost, "cache_control=dropped(2)");
}

#[test]
fn a_long_mark_without_a_price_becomes_short() {
    let body = talking(
        Chat,
        json!([{"role": "user", "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ]}]),
    );
    let (sent, lost) = sent_to(Chat, Messages, &able(Messages), &body);
    assert_eq!(
        sent["messages"][0]["content"][0]["cache_control"],
        json!({"type": "ephemeral"})
    );
    assert_eq!(lost, "cache_control.ttl=shortened");
}

#[test]
fn auto_cache_waits_for_an_answer_in_the_history() {
    let mut abilities = able(Messages);
    abilities.auto_cache = true;
    let first = talking(Chat, json!([{"role": "user", "content": "a"}]));
    assert_eq!(
        sent_to(Chat, Messages, &abilities, &first)
            .0
            .get("cache_control"),
        None
    );
    let second = talking(
        Chat,
        json!([
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
        ]),
    );
    assert_eq!(
        sent_to(Chat, Messages, &abilities, &second).0["cache_control"],
        json!({"type": "ephemeral"})
    );
}

#[test]
fn b93_neighbours_of_one_role_are_merged() {
    let body = talking(
        Messages,
        json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
    );
    assert_eq!(
        sent(Messages, Chat, &body)["messages"],
        json!([{"role": "user", "content": "a\n\nb"}])
    );
    let body = talking(
        Chat,
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"}, {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
        ]),
    );
    let sent = sent(Chat, Messages, &body);
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        sent["messages"][2]["content"].as_array().map(Vec::len),
        Some(3)
    );
}
