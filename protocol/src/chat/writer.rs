//! Ends a chat stream that the gateway cuts.
//!
//! At a limit it ends as an upstream would; after an error there is no `[DONE]`, so that it never looks like a clean end.

use bytes::Bytes;
use serde_json::{Value, json};

use super::synthetic::usage_json;
use crate::json::{quoted, without_member};
use crate::{ErrorBody, Frame, FrameFacts, PublicAnswer, ReportedUsage, Step, UsageWish, sse};

/// Ends one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Writer {
    created: u64,
    /// Choices that were passed on, and whether they have ended.
    choices: Vec<(u64, bool)>,
}

impl crate::EndWriter for Writer {
    fn observe(&mut self, _frame: &Frame, facts: &FrameFacts) {
        if let Step::Choices { created, choices } = &facts.step {
            self.created = *created;
            self.choices.clone_from(choices);
        }
    }

    fn end_at_limit(
        &self,
        answer: PublicAnswer<'_>,
        words: Option<&str>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<u8> {
        let mut open: Vec<u64> = self
            .choices
            .iter()
            .filter(|(_, ended)| !ended)
            .map(|(index, _)| *index)
            .collect();
        let mut out = Vec::new();
        let mut delta = |index: u64, delta: &str, finish: &str| {
            let choice = format!(
                r#"[{{"index":{index},"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]"#
            );
            out.extend(self.chunk(answer, &choice, None));
        };
        let first = self.choices.is_empty();
        if first {
            open.push(0);
        }
        let role = if first { r#""role":"assistant","# } else { "" };
        for index in open {
            if first || words.is_some() {
                let content = quoted(words.unwrap_or_default());
                delta(index, &format!(r#"{{{role}"content":{content}}}"#), "null");
            }
            delta(index, "{}", r#""length""#);
        }
        if wish.chunk {
            out.extend(self.chunk(answer, "[]", Some(&usage_json(usage, wish.cost))));
        }
        out.extend(sse::data("[DONE]"));
        out
    }

    fn with_counts(
        &self,
        last: Vec<Bytes>,
        answer: PublicAnswer<'_>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<Bytes> {
        let (mut out, mut end) = (Vec::new(), None);
        for frame in last.into_iter().map(Frame::new) {
            match frame.data() {
                Some(data) if data.trim_ascii() == b"[DONE]" => end = Some(frame.into_raw()),
                Some(data) => match chunk_count(&data) {
                    ChunkCount::None => out.push(frame.into_raw()),
                    ChunkCount::Beside => out.push(self.without_count(frame.into_raw())),
                    ChunkCount::Alone => {}
                },
                None => out.push(frame.into_raw()),
            }
        }
        if wish.chunk {
            let usage = usage_json(usage, wish.cost);
            out.push(Bytes::from(self.chunk(answer, "[]", Some(&usage))));
        }
        out.extend(end);
        out
    }

    fn without_count(&self, frame: Bytes) -> Bytes {
        let frame = Frame::new(frame);
        let data = frame.data().unwrap_or_default();
        frame.with_data(&without_member(&String::from_utf8_lossy(&data), "usage"))
    }

    fn missing_end(&self) -> Vec<u8> {
        sse::data("[DONE]")
    }

    fn error_event(&self, _answer: PublicAnswer<'_>, error: &ErrorBody) -> Vec<u8> {
        error_event(error)
    }
}

impl Writer {
    fn chunk(&self, answer: PublicAnswer<'_>, choices: &str, usage: Option<&str>) -> Vec<u8> {
        let id = quoted(answer.id.unwrap_or("chatcmpl-ended"));
        let usage = usage
            .map(|usage| format!(r#","usage":{usage}"#))
            .unwrap_or_default();
        let (created, model) = (self.created, quoted(answer.model));
        sse::data(&format!(
            r#"{{"id":{id},"object":"chat.completion.chunk","created":{created},"model":{model},"choices":{choices}{usage}}}"#
        ))
    }
}

enum ChunkCount {
    None,
    /// Beside what it says.
    Beside,
    /// It says nothing else.
    Alone,
}

fn chunk_count(data: &[u8]) -> ChunkCount {
    let chunk: Value = serde_json::from_slice(data).unwrap_or_default();
    let says = chunk["choices"]
        .as_array()
        .is_some_and(|choices| !choices.is_empty());
    match (chunk["usage"].is_object(), says) {
        (false, _) => ChunkCount::None,
        (true, true) => ChunkCount::Beside,
        (true, false) => ChunkCount::Alone,
    }
}

/// The event that tells a customer that the answer broke.
pub(super) fn error_event(error: &ErrorBody) -> Vec<u8> {
    sse::data(&json!({"error": error.inner(), "request_id": error.request_id}).to_string())
}
