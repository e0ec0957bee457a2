//! The order of calls and results in a chat conversation, which no type expresses.

use std::collections::BTreeSet;

use serde_json::Value;

/// Every result answers a call of the assistant message before it, and every call is answered before anybody else speaks.
pub(crate) fn calls_are_answered(messages: &Value) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for (number, message) in messages.as_array().into_iter().flatten().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(format!(
                    "[{number}]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                ));
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Err(format!(
                "[{number}]: the call {id} before it is not followed by its tool message"
            ));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str().map(str::to_owned)));
    }
    open.first().map_or(Ok(()), |id| {
        Err(format!("the call {id} is not followed by its tool message"))
    })
}
