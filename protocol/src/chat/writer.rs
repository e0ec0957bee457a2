//! How a chat stream ends when it is ended here.
//!
//! At a limit it ends as an upstream would; after an error there is no `[DONE]`, so that it never looks like a clean end.

use serde_json::json;

use super::reader::Head;
use super::synthetic::usage_json;
use crate::json::quoted;
use crate::{ErrorBody, Usage, UsageWish, sse};

pub(super) fn end_at_limit(head: &Head, slug: &str, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8> {
    let mut open: Vec<u64> = head.choices.iter().filter(|(_, ended)| !ended).map(|(index, _)| *index).collect();
    let delta = if head.choices.is_empty() { r#"{"role":"assistant","content":""}"# } else { "{}" };
    if head.choices.is_empty() {
        open.push(0);
    }
    let mut out = Vec::new();
    for index in open {
        let choice = format!(r#"[{{"index":{index},"delta":{delta},"logprobs":null,"finish_reason":"length"}}]"#);
        out.extend(chunk(head, slug, &choice, None));
    }
    if wish.chunk || wish.cost.is_some() {
        out.extend(chunk(head, slug, "[]", Some(&usage_json(usage, wish.cost))));
    }
    out.extend(sse::data("[DONE]"));
    out
}

pub(super) fn error_event(error: &ErrorBody) -> Vec<u8> {
    sse::data(&json!({"error": error.inner(), "request_id": error.request_id}).to_string())
}

fn chunk(head: &Head, slug: &str, choices: &str, usage: Option<&str>) -> Vec<u8> {
    let id = quoted(head.id.as_deref().unwrap_or("chatcmpl-ended"));
    let usage = usage.map(|usage| format!(r#","usage":{usage}"#)).unwrap_or_default();
    let (created, model) = (head.created, quoted(slug));
    sse::data(&format!(
        r#"{{"id":{id},"object":"chat.completion.chunk","created":{created},"model":{model},"choices":{choices}{usage}}}"#
    ))
}
