//! Well-formed answers of the three families, written by hand and not by the code under test.
//!
//! The given usage is the truth; it is converted to each family's way of counting here.
#![cfg(test)]

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use super::Reply;
use super::classes::Saying;

/// What an upstream says, before it is a whole answer or a stream.
#[derive(Debug, Clone)]
pub(crate) struct Speech {
    family: Family,
    pieces: Vec<String>,
    model: String,
    id: String,
    usage: ReportedUsage,
    shown_usage: Option<Value>,
    stop: Option<String>,
    choices: u64,
    saying: Saying,
}

impl Speech {
    /// A text with a small usage: 10 input tokens, and one output token for each word.
    pub(crate) fn new(family: Family, text: &str) -> Self {
        let pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        let output = u64::try_from(pieces.len()).unwrap();
        let usage = ReportedUsage {
            input: 10,
            output,
            ..ReportedUsage::default()
        };
        Self {
            family,
            pieces,
            model: "upstream-model".to_owned(),
            id: "up-1".to_owned(),
            usage,
            shown_usage: None,
            stop: None,
            choices: 1,
            saying: Saying::default(),
        }
    }

    /// The same text in pieces of so many characters, wherever its words end.
    pub(crate) fn in_pieces_of(mut self, characters: usize) -> Self {
        let all: Vec<char> = self.text().chars().collect();
        self.pieces = all
            .chunks(characters)
            .map(|piece| piece.iter().collect())
            .collect();
        self
    }

    /// The true usage.
    pub(crate) fn usage(mut self, usage: ReportedUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Whatever the upstream claims as usage; `null` leaves it out.
    pub(crate) fn claims(mut self, usage: Value) -> Self {
        self.shown_usage = Some(usage);
        self
    }

    /// The model's name in the answer.
    pub(crate) fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    /// The answer's id.
    pub(crate) fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// The stop reason in the family's words; for responses the status, `incomplete` at the output limit.
    pub(crate) fn stop(mut self, stop: &str) -> Self {
        self.stop = Some(stop.to_owned());
        self
    }

    /// The same answer so many times, side by side. Only chat can.
    pub(crate) fn choices(mut self, choices: u64) -> Self {
        self.choices = choices;
        self
    }

    /// What it says of the class that it served.
    pub(crate) fn saying(mut self, saying: Saying) -> Self {
        self.saying = saying;
        self
    }

    /// As one JSON answer.
    pub(crate) fn whole(&self) -> Reply {
        let body = match self.family {
            Family::Chat => self.chat(
                "chat.completion",
                json!({"message": {"role": "assistant", "content": self.text()}}),
                true,
            ),
            Family::Responses => self.response(true),
            Family::Messages => self.message(true),
        };
        Reply::json(200, &without_null_usage(body)).with_usage(self.usage)
    }

    /// As a stream, terminal marker included; one frame for each word.
    pub(crate) fn stream(&self) -> Reply {
        let frames = match self.family {
            Family::Chat => self.chat_frames(),
            Family::Responses => self.response_frames(),
            Family::Messages => self.message_frames(),
        };
        Reply::events(frames).with_usage(self.usage)
    }

    fn text(&self) -> String {
        self.pieces.concat()
    }

    fn stop_word(&self, default: &str) -> String {
        self.stop.clone().unwrap_or_else(|| default.to_owned())
    }

    fn counts(&self) -> Value {
        let usage = self.usage;
        let written = usage.cache_write + usage.cache_write_1h;
        let (input, output) = (
            usage.input + usage.cache_read + written,
            usage.output + usage.reasoning,
        );
        self.shown_usage.clone().unwrap_or_else(|| match self.family {
            Family::Chat => json!({
                "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": written},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning}}),
            Family::Responses => json!({
                "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
                "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": written},
                "output_tokens_details": {"reasoning_tokens": usage.reasoning}}),
            Family::Messages => json!({
                "input_tokens": usage.input, "output_tokens": output, "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": written,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": usage.cache_write_1h}}),
        })
    }

    fn chat(&self, object: &str, said: Value, ends: bool) -> Value {
        let mut choice = said;
        choice["index"] = json!(0);
        choice["finish_reason"] = if ends {
            json!(self.stop_word("stop"))
        } else {
            Value::Null
        };
        let choices: Vec<Value> = (0..self.choices)
            .map(|index| with(&choice, "index", json!(index)))
            .collect();
        let mut answer = json!({"id": self.id, "object": object, "created": 1_700_000_000, "model": self.model, "choices": choices});
        if object == "chat.completion" {
            answer["usage"] = self.counts();
        }
        self.saying
            .chat(&mut answer, ends || object == "chat.completion");
        answer
    }

    fn chat_frames(&self) -> Vec<String> {
        let delta = |delta: Value, ends| {
            data(&self.chat("chat.completion.chunk", json!({"delta": delta}), ends))
        };
        let mut frames = vec![delta(json!({"role": "assistant", "content": ""}), false)];
        frames.extend(
            self.pieces
                .iter()
                .map(|piece| delta(json!({"content": piece}), false)),
        );
        frames.push(delta(json!({}), true));
        let mut last = self.chat("chat.completion.chunk", json!({"delta": {}}), false);
        self.saying.chat(&mut last, true);
        last["choices"] = json!([]);
        last["usage"] = self.counts();
        if !last["usage"].is_null() {
            frames.push(data(&last));
        }
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }

    fn response(&self, ends: bool) -> Value {
        let item = json!({"id": "msg_up1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": self.text(), "annotations": []}]});
        let mut response = json!({
            "id": self.id, "object": "response", "created_at": 1_700_000_000, "model": self.model,
            "status": if ends { self.stop_word("completed") } else { "in_progress".to_owned() },
            "incomplete_details": self.stop.as_ref().filter(|_| ends).map(|_| json!({"reason": "max_output_tokens"})),
            "error": null,
            "output": if ends { json!([item]) } else { json!([]) },
            "usage": if ends { self.counts() } else { Value::Null }});
        self.saying.response(&mut response, ends);
        response
    }

    fn response_frames(&self) -> Vec<String> {
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        let item = |status: &str, content: Value| json!({"id": "msg_up1", "type": "message", "role": "assistant", "status": status, "content": content});
        let text = self.text();
        let place = json!({"item_id": "msg_up1", "output_index": 0, "content_index": 0});
        let mut events = vec![
            (
                "response.created",
                json!({"response": self.response(false)}),
            ),
            (
                "response.in_progress",
                json!({"response": self.response(false)}),
            ),
            (
                "response.output_item.added",
                json!({"output_index": 0, "item": item("in_progress", json!([]))}),
            ),
            (
                "response.content_part.added",
                with(&place, "part", part("")),
            ),
        ];
        events.extend(self.pieces.iter().map(|piece| {
            (
                "response.output_text.delta",
                with(&place, "delta", json!(piece)),
            )
        }));
        events.push((
            "response.output_text.done",
            with(&place, "text", json!(text)),
        ));
        events.push((
            "response.content_part.done",
            with(&place, "part", part(&text)),
        ));
        events.push((
            "response.output_item.done",
            json!({"output_index": 0, "item": item("completed", json!([part(&text)]))}),
        ));
        let last = if self.stop.as_deref() == Some("incomplete") {
            "response.incomplete"
        } else {
            "response.completed"
        };
        events.push((
            last,
            without_null_usage(json!({"response": self.response(true)})),
        ));
        let numbered = events.into_iter().enumerate();
        numbered
            .map(|(number, (name, event))| {
                named(name, with(&event, "sequence_number", json!(number)))
            })
            .collect()
    }

    fn message(&self, ends: bool) -> Value {
        let mut usage = self.counts();
        if !ends && usage.is_object() {
            usage["output_tokens"] = json!(1);
        }
        self.saying.message(&mut usage);
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "stop_sequence": null,
            "content": if ends { json!([{"type": "text", "text": self.text()}]) } else { json!([]) },
            "stop_reason": if ends { json!(self.stop_word("end_turn")) } else { Value::Null },
            "usage": usage})
    }

    fn message_frames(&self) -> Vec<String> {
        let mut frames = vec![
            named(
                "message_start",
                without_null_usage(json!({"message": self.message(false)})),
            ),
            named(
                "content_block_start",
                json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
            named("ping", json!({})),
        ];
        let delta =
            |piece: &String| json!({"index": 0, "delta": {"type": "text_delta", "text": piece}});
        frames.extend(
            self.pieces
                .iter()
                .map(|piece| named("content_block_delta", delta(piece))),
        );
        frames.push(named("content_block_stop", json!({"index": 0})));
        let stop = json!({"stop_reason": self.stop_word("end_turn"), "stop_sequence": null});
        frames.push(named(
            "message_delta",
            without_null_usage(json!({"delta": stop, "usage": self.counts()})),
        ));
        frames.push(named("message_stop", json!({})));
        frames
    }
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn named(name: &str, event: Value) -> String {
    let mut whole = json!({"type": name});
    for (member, value) in event.as_object().into_iter().flatten() {
        whole[member] = value.clone();
    }
    format!("event: {name}\ndata: {whole}\n\n")
}

/// An upstream that claims nothing leaves the member out, here and in the nested answer.
fn without_null_usage(mut value: Value) -> Value {
    for place in ["", "/response", "/message"] {
        let object = value.pointer_mut(place).and_then(Value::as_object_mut);
        if let Some(object) =
            object.filter(|object| object.get("usage").is_some_and(Value::is_null))
        {
            object.remove("usage");
        }
    }
    value
}
