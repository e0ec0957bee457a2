//! Ends a messages stream that the gateway cuts.
//!
//! At a limit every open block is closed before the message is; an error event comes last and no `message_stop` follows.

use bytes::Bytes;
use serde_json::{Value, json};

use super::synthetic::{event, usage_value};
use crate::json::set_members;
use crate::{ErrorBody, Frame, FrameFacts, PublicAnswer, ReportedUsage, Step, UsageWish, sse};

/// Ends one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Writer {
    begun: bool,
    /// Content blocks that have begun and not ended.
    open: Vec<u64>,
    /// The index of the next block.
    next: u64,
    stopped: bool,
    ended: bool,
}

impl crate::EndWriter for Writer {
    fn observe(&mut self, _frame: &Frame, facts: &FrameFacts) {
        match facts.step {
            Step::Begun => self.begun = true,
            Step::Opened(index) => {
                self.open.push(index);
                self.next = self.next.max(index.saturating_add(1));
            }
            Step::Closed(index) => self.open.retain(|open| *open != index),
            Step::None | Step::Choices { .. } | Step::Event(_) => {}
        }
        self.stopped |= facts.stop.is_some();
        self.ended |= facts.end;
    }

    fn end_at_limit(
        &self,
        answer: PublicAnswer<'_>,
        words: Option<&str>,
        usage: &ReportedUsage,
        _wish: UsageWish<'_>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        if self.ended {
            return out;
        }
        if !self.begun {
            let message = json!({
                "id": "msg_ended", "type": "message", "role": "assistant", "model": answer.model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": usage_value(usage),
            });
            out.extend(event("message_start", &json!({"message": message})));
        }
        for index in &self.open {
            out.extend(event("content_block_stop", &json!({"index": index})));
        }
        if !self.stopped {
            if let Some(words) = words {
                out.extend(self.text_block(words));
            }
            let delta = json!({"stop_reason": "max_tokens", "stop_sequence": null});
            out.extend(event(
                "message_delta",
                &json!({"delta": delta, "usage": usage_value(usage)}),
            ));
        }
        out.extend(self.missing_end());
        out
    }

    fn with_counts(
        &self,
        mut last: Vec<Bytes>,
        _answer: PublicAnswer<'_>,
        usage: &ReportedUsage,
        _wish: UsageWish<'_>,
    ) -> Vec<Bytes> {
        let counts = usage_value(usage).to_string();
        let delta = last.iter_mut().rev().find_map(|bytes| {
            let frame = Frame::new(bytes.clone());
            let data = serde_json::from_slice::<Value>(&frame.data()?).ok()?;
            (data["type"] == "message_delta").then_some((bytes, frame))
        });
        if let Some((bytes, frame)) = delta {
            let data = frame.data().unwrap_or_default();
            let data = set_members(&String::from_utf8_lossy(&data), &[("usage", &counts)]);
            *bytes = frame.with_data(&data);
        }
        last
    }

    fn missing_end(&self) -> Vec<u8> {
        event("message_stop", &Value::Null)
    }

    fn error_event(&self, _answer: PublicAnswer<'_>, error: &ErrorBody) -> Vec<u8> {
        error_event(error)
    }
}

impl Writer {
    /// One more block, with this text.
    fn text_block(&self, words: &str) -> Vec<u8> {
        let index = self.next;
        let block = json!({"index": index, "content_block": {"type": "text", "text": ""}});
        let delta = json!({"type": "text_delta", "text": words});
        let mut out = event("content_block_start", &block);
        out.extend(event(
            "content_block_delta",
            &json!({"index": index, "delta": delta}),
        ));
        out.extend(event("content_block_stop", &json!({"index": index})));
        out
    }
}

/// The event that tells a customer that the answer broke.
pub(super) fn error_event(error: &ErrorBody) -> Vec<u8> {
    sse::event("error", &String::from_utf8_lossy(&error.to_json()))
}
