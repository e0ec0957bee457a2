//! How a messages stream ends when it is ended here.
//!
//! At a limit every open block is closed before the message is; an error event is the last word and no `message_stop` follows.

use serde_json::{Value, json};

use super::reader::Head;
use super::synthetic::{event, usage_value};
use crate::{ErrorBody, Usage, sse};

pub(super) fn end_at_limit(head: &Head, slug: &str, usage: &Usage) -> Vec<u8> {
    let mut out = Vec::new();
    if head.ended {
        return out;
    }
    if !head.started {
        let message = json!({
            "id": "msg_ended", "type": "message", "role": "assistant", "model": slug, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage_value(usage),
        });
        out.extend(event("message_start", &json!({"message": message})));
    }
    for index in &head.open {
        out.extend(event("content_block_stop", &json!({"index": index})));
    }
    if !head.stopped {
        let delta = json!({"stop_reason": "max_tokens", "stop_sequence": null});
        out.extend(event("message_delta", &json!({"delta": delta, "usage": usage_value(usage)})));
    }
    out.extend(event("message_stop", &Value::Null));
    out
}

pub(super) fn error_event(error: &ErrorBody) -> Vec<u8> {
    sse::event("error", &String::from_utf8_lossy(&error.to_json()))
}
