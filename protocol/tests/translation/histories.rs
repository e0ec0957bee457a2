//! Histories that no client sends: results without calls, calls without results, repeated ids, thinking of other vendors, in any
//! order. Each becomes a conversation that the target's vendor accepts, or a 400.

use std::collections::{HashMap, HashSet};

use farebox_protocol::Family;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::help::*;

/// Marks of other vendors, and one that an earlier translation made.
const SEALS: [&str; 3] = ["EqQBforeign", "gAAAforeign", "fbx1.plain"];

/// One step of a history, as each family's clients write it: what was said or done, and by which id.
fn step(family: Family, kind: u8, id: u8) -> Value {
    let call_id = format!("c{id}");
    let seal = SEALS[usize::from(id) % SEALS.len()];
    match (family, kind) {
        (Responses, 0 | 1) => {
            json!({"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"})
        }
        (Responses, 2 | 3) => {
            json!({"type": "function_call_output", "call_id": call_id, "output": "r"})
        }
        (Responses, 6) => {
            json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "(thought)"}], "encrypted_content": seal})
        }
        (Messages, 0 | 1) => {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "f", "input": {}}]})
        }
        (Messages, 2 | 3) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "r"}]})
        }
        (Messages, 6) => {
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "(thought)", "signature": seal}, {"type": "redacted_thinking", "data": seal},
            ]})
        }
        (Chat, 0 | 1) => {
            let call = json!({"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        }
        (Chat, 2 | 3) => json!({"role": "tool", "tool_call_id": call_id, "content": "r"}),
        (Chat, 6) => {
            json!({"role": "assistant", "content": "a", "reasoning_content": "(thought)", "reasoning_details": [{"signature": seal}]})
        }
        (_, 4) => json!({"role": "user", "content": "u"}),
        _ => json!({"role": "assistant", "content": "a"}),
    }
}

/// The ids of these blocks of a native turn.
fn ids<'v>(turn: &'v Value, kind: &str, name: &str) -> Vec<&'v Value> {
    let blocks = turn["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == kind)
        .map(|block| &block[name])
        .collect()
}

fn assert_native(turns: &[Value]) {
    let mut given = HashSet::new();
    let mut waiting: Vec<&Value> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        assert_eq!(
            turn["role"],
            if at % 2 == 0 { "user" } else { "assistant" },
            "roles take turns"
        );
        assert_eq!(
            ids(turn, "tool_result", "tool_use_id"),
            waiting,
            "each call is answered in the next turn, and nothing else is"
        );
        let blocks = turn["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty());
        assert!(
            blocks
                .iter()
                .take(waiting.len())
                .all(|block| block["type"] == "tool_result"),
            "results stand first"
        );
        waiting = ids(turn, "tool_use", "id");
        assert!(
            waiting.iter().all(|id| given.insert(id.to_string())),
            "an id is given once"
        );
    }
    assert!(waiting.is_empty());
}

fn assert_chat(messages: &[Value]) {
    let mut given = HashSet::new();
    let mut waiting: Vec<Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            assert!(!waiting.is_empty(), "a result without its call");
            assert_eq!(waiting.remove(0), message["tool_call_id"]);
            continue;
        }
        assert!(waiting.is_empty(), "all results follow their calls");
        waiting = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| call["id"].clone())
            .collect();
        assert!(
            waiting.iter().all(|id| given.insert(id.to_string())),
            "an id is given once"
        );
    }
    assert!(waiting.is_empty());
}

fn assert_items(items: &[Value]) {
    let mut open: HashMap<String, bool> = HashMap::new();
    for item in items {
        let kind = item["type"].as_str().unwrap_or_default();
        let id = item["call_id"].to_string();
        if kind.ends_with("_call") {
            assert!(open.insert(id, true).is_none(), "an id is given once");
        } else if kind.ends_with("_output") {
            assert_eq!(
                open.insert(id, false),
                Some(true),
                "a result stands behind its call, once"
            );
        }
    }
    assert!(open.values().all(|open| !open), "every call has its result");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_put_right(steps in prop::collection::vec((0_u8..7, 0_u8..4), 0..14)) {
        for (from, to) in PAIRS {
            let turns: Vec<Value> = steps.iter().map(|(kind, id)| step(from, *kind, *id)).collect();
            let Ok(done) = translated(from, to, &able(to), &talking(from, Value::Array(turns))) else { continue };
            let text = String::from_utf8(done.body).expect("UTF-8");
            for seal in SEALS {
                prop_assert!(!text.contains(seal), "{from} to {to}: {text}");
            }
            prop_assert!(!text.contains("(thought)"), "thinking never becomes text: {text}");
            let sent: Value = serde_json::from_str(&text).expect("JSON");
            let said = sent[if to == Responses { "input" } else { "messages" }].as_array().expect("a conversation").as_slice();
            match to {
                Chat => assert_chat(said),
                Messages => assert_native(said),
                Responses => assert_items(said),
            }
        }
    }
}
