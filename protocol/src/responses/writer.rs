//! Ends a responses stream that the gateway cuts.
//!
//! Every open part and item gets its done events; then comes `response.incomplete` or `response.failed` with the response object
//! that the upstream began. Sequence numbers continue where the upstream's stopped.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error::failed_code;
use super::items::{ItemPart, Items, OutputItem};
use super::reader::{public_items, public_response};
use super::synthetic::{skeleton, usage_json};
use crate::json::{quoted, set_members};
use crate::translate::seals::OURS;
use crate::{
    Brings, ErrorBody, Frame, FrameFacts, PublicAnswer, ReportedUsage, Step, UsageWish, sse,
};

/// Ends one streamed answer.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The last response object that was not an end.
    response: String,
    next_sequence: u64,
    items: Items,
    ended: bool,
}

impl crate::EndWriter for Writer {
    fn observe(&mut self, frame: &Frame, facts: &FrameFacts) {
        let Step::Event(event) = &facts.step else {
            return;
        };
        self.next_sequence = event
            .sequence
            .unwrap_or(self.next_sequence)
            .saturating_add(1);
        self.ended |= facts.end;
        if event.brings == Brings::Nothing {
            return;
        }
        let data = frame.data().unwrap_or_default();
        let text = data
            .get(event.place.clone())
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default();
        match event.brings {
            Brings::Response => text.clone_into(&mut self.response),
            _ => self.items.note(event, text),
        }
    }

    fn end_at_limit(
        &self,
        answer: PublicAnswer<'_>,
        words: Option<&str>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<u8> {
        let mut out = self.out(answer);
        if self.ended {
            return out.bytes;
        }
        let begun = self.begun(answer);
        if self.response.is_empty() {
            out.event("response.created", &format!(r#""response":{begun}"#));
        }
        for item in self.items.open() {
            item.parts
                .iter()
                .filter(|part| !part.done)
                .for_each(|part| out.part_done(item, part));
            if matches!(item.kind.as_str(), "function_call" | "custom_tool_call") {
                out.arguments_done(item);
            }
            let done = public_items(item.to_json(), answer.model);
            out.event(
                "response.output_item.done",
                &format!(r#""output_index":{},"item":{done}"#, item.index),
            );
        }
        let said = words.map(|words| out.message(self.items.next_index(), answer.id, words));
        let output = public_items(self.items.to_json_with(said), answer.model);
        let response = set_members(
            &begun,
            &[
                ("status", r#""incomplete""#),
                ("incomplete_details", r#"{"reason":"max_output_tokens"}"#),
                ("output", &output),
                ("usage", &usage_json(usage, wish.cost)),
            ],
        );
        out.event("response.incomplete", &format!(r#""response":{response}"#));
        out.bytes
    }

    fn with_counts(
        &self,
        mut last: Vec<Bytes>,
        _answer: PublicAnswer<'_>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<Bytes> {
        let counts = usage_json(usage, wish.cost);
        // The event that ends the answer is the last with a response.
        for bytes in last.iter_mut().rev() {
            let frame = Frame::new(bytes.clone());
            let data = frame.data().unwrap_or_default();
            let Ok(event) = serde_json::from_slice::<EndEvent<'_>>(&data) else {
                continue;
            };
            let response = set_members(event.response.get(), &[("usage", &counts)]);
            let data = set_members(&String::from_utf8_lossy(&data), &[("response", &response)]);
            *bytes = frame.with_data(&data);
            break;
        }
        last
    }

    fn missing_end(&self) -> Vec<u8> {
        // The last event carries the answer itself; without one there is nothing to close.
        Vec::new()
    }

    fn error_event(&self, answer: PublicAnswer<'_>, error: &ErrorBody) -> Vec<u8> {
        let mut out = self.out(answer);
        let told = json!({
            "code": failed_code(error), "message": error.message, "type": error.kind, "param": error.param, "request_id": error.request_id,
        });
        let output = self.output(answer);
        let members = [
            ("status", r#""failed""#),
            ("error", &told.to_string()),
            ("output", &output),
        ];
        let response = set_members(&self.begun(answer), &members);
        out.event("response.failed", &format!(r#""response":{response}"#));
        out.bytes
    }
}

impl Writer {
    fn out<'a>(&self, answer: PublicAnswer<'a>) -> EventsOut<'a> {
        EventsOut {
            bytes: Vec::new(),
            sequence: self.next_sequence,
            model: answer.model,
        }
    }

    /// All items, as customers may see them.
    fn output(&self, answer: PublicAnswer<'_>) -> String {
        public_items(self.items.to_json(), answer.model)
    }

    /// The response object as the upstream began it, under the customer's name for the model, with missing members filled in.
    fn begun(&self, answer: PublicAnswer<'_>) -> String {
        let mut response = skeleton(answer.id.unwrap_or("resp_ended"), answer.model, 0);
        if let (Value::Object(members), Ok(begun)) = (
            &mut response,
            serde_json::from_str::<Map<String, Value>>(&self.response),
        ) {
            members.extend(begun);
        }
        response["model"] = json!(answer.model);
        public_response(response.to_string(), answer.model)
    }
}

/// An event with a response.
#[derive(Deserialize)]
struct EndEvent<'e> {
    #[serde(borrow)]
    response: &'e RawValue,
}

/// Events being written.
struct EventsOut<'a> {
    bytes: Vec<u8>,
    sequence: u64,
    model: &'a str,
}

impl EventsOut<'_> {
    fn event(&mut self, kind: &str, members: &str) {
        self.bytes.extend(sse::event(
            kind,
            &format!(
                r#"{{"type":"{kind}",{members},"sequence_number":{}}}"#,
                self.sequence
            ),
        ));
        self.sequence = self.sequence.saturating_add(1);
    }

    /// A whole message with this text; returns it. `answer` is the answer's id.
    fn message(&mut self, index: u64, answer: Option<&str>, words: &str) -> String {
        let id = quoted(&format!("msg_{}{OURS}", answer.unwrap_or("ended")));
        let text = quoted(words);
        let part = |text: &str| {
            format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
        };
        let item = |status: &str, content: &str| {
            format!(
                r#"{{"id":{id},"type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
            )
        };
        let whole = item("completed", &part(&text));
        let place = format!(r#""item_id":{id},"output_index":{index},"content_index":0"#);
        let at = format!(r#""output_index":{index},"item":"#);
        let begun = item("in_progress", "");
        for (kind, members) in [
            ("output_item.added", format!("{at}{begun}")),
            (
                "content_part.added",
                format!(r#"{place},"part":{}"#, part(r#""""#)),
            ),
            (
                "output_text.delta",
                format!(r#"{place},"delta":{text},"logprobs":[]"#),
            ),
            (
                "output_text.done",
                format!(r#"{place},"text":{text},"logprobs":[]"#),
            ),
            (
                "content_part.done",
                format!(r#"{place},"part":{}"#, part(&text)),
            ),
            ("output_item.done", format!("{at}{whole}")),
        ] {
            self.event(&format!("response.{kind}"), &members);
        }
        whole
    }

    fn part_done(&mut self, item: &OutputItem, part: &ItemPart) {
        let (text, text_done, part_done, index) = match part.kind.as_str() {
            "summary_text" => (
                "text",
                "reasoning_summary_text.done",
                "reasoning_summary_part.done",
                "summary_index",
            ),
            "reasoning_text" => (
                "text",
                "reasoning_text.done",
                "content_part.done",
                "content_index",
            ),
            "refusal" => (
                "refusal",
                "refusal.done",
                "content_part.done",
                "content_index",
            ),
            _ => (
                "text",
                "output_text.done",
                "content_part.done",
                "content_index",
            ),
        };
        let place = format!(
            r#""item_id":{},"output_index":{},"{index}":{}"#,
            quoted(&item.id),
            item.index,
            part.index
        );
        let logprobs = if text_done == "output_text.done" {
            r#","logprobs":[]"#
        } else {
            ""
        };
        self.event(
            &format!("response.{text_done}"),
            &format!(r#"{place},"{text}":"{}"{logprobs}"#, part.text),
        );
        self.event(
            &format!("response.{part_done}"),
            &format!(
                r#"{place},"part":{}"#,
                public_items(part.to_json(), self.model)
            ),
        );
    }

    fn arguments_done(&mut self, item: &OutputItem) {
        let kind = if item.kind == "custom_tool_call" {
            "custom_tool_call_input"
        } else {
            "function_call_arguments"
        };
        let place = format!(
            r#""item_id":{},"output_index":{}"#,
            quoted(&item.id),
            item.index
        );
        self.event(
            &format!("response.{kind}.done"),
            &format!(
                r#"{place},"{}":"{}""#,
                item.arguments_name(),
                item.arguments
            ),
        );
    }
}
