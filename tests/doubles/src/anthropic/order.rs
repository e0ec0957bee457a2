//! The order of messages and blocks, which no type expresses.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::rule::{Must, WireRule};

use Must::Hold;

const ANSWERED: &str = "400 \"tool_use ids were found without tool_result blocks immediately after\", 2025-09-26: github.com/anthropics/claude-code/issues/8210; \"unexpected tool_use_id found in tool_result blocks\", 2026-01-18: github.com/anthropics/claude-code/issues/18947";
const FIRST: &str = "400 for a text before a tool_result, measured 2026-07-30: github.com/QwenLM/qwen-code/pull/8165; 2026-07-16: github.com/NousResearch/hermes-agent/pull/65369";
const SILENT: &str = "400 \"all messages must have non-empty content except for the optional final assistant message\", 2025-08-28: github.com/anthropics/claude-code/issues/6774";

/// Calls, results and empty messages.
pub(crate) const ORDER: &[WireRule] = &[
    WireRule::new("/messages", Hold(calls_are_answered), ANSWERED)
        .named("calls are answered")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":"b"}]"#,
        )]),
    WireRule::new("/messages", Hold(results_come_first), FIRST)
        .named("results come first")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"t"}]}]"#,
        )]),
    WireRule::new("/messages", Hold(all_speak), SILENT)
        .named("all speak")
        .broken_by(&[("/messages", r#"[{"role":"user","content":[]}]"#)]),
];

/// Neighbours of one role are one turn to the service.
fn turns(messages: &Value) -> Vec<(&str, Vec<&Value>)> {
    let mut turns: Vec<(&str, Vec<&Value>)> = Vec::new();
    for message in messages.as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        // A system message between two turns belongs to neither.
        if role == "system" {
            continue;
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks.collect())),
        }
    }
    turns
}

fn ids<'v>(blocks: &[&'v Value], kind: &str, name: &str) -> BTreeSet<&'v str> {
    let of_kind = blocks.iter().filter(|block| block["type"] == kind);
    of_kind.filter_map(|block| block[name].as_str()).collect()
}

fn calls_are_answered(messages: &Value) -> Result<(), String> {
    let turns = turns(messages);
    let mut open = BTreeSet::new();
    for (number, (role, blocks)) in turns.iter().enumerate() {
        let results = ids(blocks, "tool_result", "tool_use_id");
        if let Some(id) = results.difference(&open).next() {
            return Err(format!(
                "{number}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
            ));
        }
        if let Some(id) = open.difference(&results).next() {
            return Err(format!(
                "{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
            ));
        }
        open = match *role {
            "assistant" => ids(blocks, "tool_use", "id"),
            _ => BTreeSet::new(),
        };
    }
    // Nothing can follow the last turn.
    match open.first() {
        Some(id) => Err(format!("the call {id} has no `tool_result` after it")),
        None => Ok(()),
    }
}

fn results_come_first(messages: &Value) -> Result<(), String> {
    for (number, message) in messages.as_array().into_iter().flatten().enumerate() {
        let blocks = message["content"].as_array().into_iter().flatten();
        let results: Vec<bool> = blocks.map(|block| block["type"] == "tool_result").collect();
        if results.windows(2).any(|pair| pair == [false, true]) {
            return Err(format!("{number}: a tool_result after other content"));
        }
    }
    Ok(())
}

fn all_speak(messages: &Value) -> Result<(), String> {
    let messages: Vec<&Value> = messages.as_array().into_iter().flatten().collect();
    let is_empty = |message: &Value| match &message["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => false,
    };
    let silent = messages.iter().enumerate().find(|(number, message)| {
        let last = number + 1 == messages.len() && message["role"] == "assistant";
        !last && is_empty(message)
    });
    match silent {
        Some((number, _)) => Err(format!(
            "{number}: all messages must have non-empty content"
        )),
        None => Ok(()),
    }
}
