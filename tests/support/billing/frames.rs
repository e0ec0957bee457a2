//! What a provider in a time of its own sends: the frames of a stream with their times, or a whole answer, in the three families.
#![cfg(test)]

use std::sync::LazyLock;

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::making::{How, Making};

/// What is said of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) fresh: u64,
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// All output, reasoning included.
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
    /// Reasoning is counted beside the output.
    pub(crate) outside: bool,
}

impl Counts {
    fn json(self, family: Family) -> Value {
        let (input, written) = (self.fresh + self.read + self.written, self.written);
        let said = if self.outside {
            self.output - self.reasoning
        } else {
            self.output
        };
        match family {
            Family::Chat => json!({
                "prompt_tokens": input, "completion_tokens": said, "total_tokens": input + self.output,
                "prompt_tokens_details": {"cached_tokens": self.read, "cache_write_tokens": written},
                "completion_tokens_details": {"reasoning_tokens": self.reasoning}}),
            Family::Responses => json!({
                "input_tokens": input, "output_tokens": said, "total_tokens": input + self.output,
                "input_tokens_details": {"cached_tokens": self.read, "cache_write_tokens": written},
                "output_tokens_details": {"reasoning_tokens": self.reasoning}}),
            Family::Messages => json!({
                "input_tokens": self.fresh, "output_tokens": self.output, "cache_read_input_tokens": self.read,
                "cache_creation_input_tokens": written,
                "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}}),
        }
    }
}

/// One answer to be shown.
pub(super) struct Showing<'a> {
    pub(super) family: Family,
    pub(super) making: &'a Making,
    /// The request has tools, so that what comes whole is a call.
    pub(super) calls: bool,
    /// Its last word on usage; `None`: it says nothing.
    pub(super) usage: Option<Counts>,
    /// What it says with every chunk, by the time.
    pub(super) interim: &'a dyn Fn(f64) -> Option<Counts>,
    /// When its first frame comes; `None`: with the first that shows something.
    pub(super) first: Option<f64>,
    /// Seconds between the frames of a text.
    pub(super) tick: f64,
    pub(super) id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Call,
}

/// A piece of one choice, and when it comes.
struct Piece {
    at: f64,
    choice: usize,
    kind: Kind,
    text: String,
}

/// Frames with their times, as they are made.
struct Frames {
    family: Family,
    all: Vec<(f64, String)>,
    /// The open block of messages, the open item of responses, with its text.
    open: Option<(Kind, String)>,
    blocks: usize,
    items: Vec<Value>,
}

impl Showing<'_> {
    /// The frames of a stream, with the times at which they come.
    pub(super) fn stream(&self) -> Vec<(f64, String)> {
        let mut frames = Frames {
            family: self.family,
            all: Vec::new(),
            open: None,
            blocks: 0,
            items: Vec::new(),
        };
        match self.family {
            Family::Chat => self.chat_stream(&mut frames),
            Family::Messages => self.message_stream(&mut frames),
            Family::Responses => self.response_stream(&mut frames),
        }
        frames.all
    }

    fn begins(&self) -> f64 {
        self.first.unwrap_or_else(|| {
            let first = self.pieces().first().map(|piece| piece.at);
            first.unwrap_or_else(|| self.making.ends())
        })
    }

    fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (choice, parts) in self.making.choices.iter().enumerate() {
            let mut done = 0;
            for part in parts {
                let at = |tokens: u64| self.making.speaks + tokens as f64 / self.making.speed;
                let kind = match part.how {
                    How::Hidden => None,
                    How::Shown => Some(Kind::Text),
                    How::Whole if self.calls => Some(Kind::Call),
                    How::Whole => Some(Kind::Text),
                    How::Reasoned => Some(Kind::Reasoning),
                };
                let time = part.tokens as f64 / self.making.speed;
                let count = match part.how {
                    How::Whole => 1,
                    _ => ((time / self.tick).ceil() as u64)
                        .clamp(1, 400)
                        .min(part.tokens),
                };
                let share = |number: u64| part.tokens * number / count;
                for (number, kind) in (0..count).filter_map(|number| Some((number, kind?))) {
                    let (from, to) = (share(number), share(number + 1));
                    pieces.push(Piece {
                        at: at(done + to),
                        choice,
                        kind,
                        text: said(from, to - from),
                    });
                }
                done += part.tokens;
            }
        }
        pieces.sort_by(|one, two| one.at.total_cmp(&two.at));
        pieces
    }

    fn reason(&self, calls: bool) -> &'static str {
        match (self.family, self.making.cut, calls) {
            (Family::Chat, true, _) => "length",
            (Family::Chat, false, true) => "tool_calls",
            (Family::Chat, false, false) => "stop",
            (Family::Messages, true, _) => "max_tokens",
            (Family::Messages, false, true) => "tool_use",
            (Family::Messages, false, false) => "end_turn",
            (Family::Responses, true, _) => "incomplete",
            (Family::Responses, false, _) => "completed",
        }
    }

    fn chunk(&self, at: f64, choices: &Value) -> String {
        let mut chunk = json!({"id": self.id, "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "upstream-model", "choices": choices});
        if let Some(counts) = (self.interim)(at) {
            chunk["usage"] = counts.json(self.family);
        }
        format!("data: {chunk}\n\n")
    }

    fn chat_stream(&self, frames: &mut Frames) {
        let choice = |index: usize, delta: Value, reason: Value| json!([{"index": index, "delta": delta, "finish_reason": reason}]);
        let (number, first) = (self.making.choices.len(), self.begins());
        for index in 0..number {
            let delta = json!({"role": "assistant", "content": ""});
            let frame = self.chunk(first, &choice(index, delta, Value::Null));
            frames.all.push((first, frame));
        }
        let mut calls = vec![0; number];
        for piece in self.pieces() {
            let delta = match piece.kind {
                Kind::Text => json!({"content": piece.text}),
                Kind::Reasoning => json!({"reasoning_content": piece.text}),
                Kind::Call => {
                    let (call, arguments) = (&mut calls[piece.choice], json!({"path": piece.text}));
                    *call += 1;
                    json!({"tool_calls": [{"index": *call - 1, "id": format!("call_{}_{call}", piece.choice),
                        "type": "function", "function": {"name": "read", "arguments": arguments.to_string()}}]})
                }
            };
            let frame = self.chunk(piece.at, &choice(piece.choice, delta, Value::Null));
            frames.all.push((piece.at, frame));
        }
        let ends = self.making.ends();
        for (index, calls) in calls.iter().enumerate() {
            let reason = json!(self.reason(*calls > 0));
            frames
                .all
                .push((ends, self.chunk(ends, &choice(index, json!({}), reason))));
        }
        if let Some(usage) = self.usage {
            let last = json!({"id": self.id, "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": "upstream-model", "choices": [], "usage": usage.json(self.family)});
            frames.all.push((ends, format!("data: {last}\n\n")));
        }
        frames.all.push((ends, "data: [DONE]\n\n".to_owned()));
    }

    fn message(&self, content: &Value, reason: Value, usage: Option<Counts>) -> Value {
        let mut message = json!({"id": self.id, "type": "message", "role": "assistant", "model": "upstream-model",
            "stop_sequence": null, "content": content, "stop_reason": reason});
        if let Some(usage) = usage {
            message["usage"] = usage.json(self.family);
        }
        message
    }

    fn message_stream(&self, frames: &mut Frames) {
        let begun = self.usage.map(|usage| Counts {
            output: 1,
            reasoning: 0,
            ..usage
        });
        let message = self.message(&json!([]), Value::Null, begun);
        frames.push(self.begins(), "message_start", json!({"message": message}));
        for piece in self.pieces() {
            frames.block(piece.at, piece.kind, &piece.text);
        }
        let (ends, calls) = (self.making.ends(), frames.has(Kind::Call));
        frames.close_block(ends);
        let mut delta =
            json!({"delta": {"stop_reason": self.reason(calls), "stop_sequence": null}});
        if let Some(usage) = self.usage {
            delta["usage"] = usage.json(self.family);
        }
        frames.push(ends, "message_delta", delta);
        frames.push(ends, "message_stop", json!({}));
    }

    fn response(&self, items: &[Value], ends: bool) -> Value {
        let cut = ends && self.making.cut;
        let mut response = json!({"id": self.id, "object": "response", "created_at": 1_700_000_000, "model": "upstream-model",
            "status": if ends { self.reason(false) } else { "in_progress" }, "error": null, "output": items,
            "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"}))});
        if let Some(usage) = self.usage.filter(|_| ends) {
            response["usage"] = usage.json(self.family);
        }
        response
    }

    fn response_stream(&self, frames: &mut Frames) {
        for name in ["response.created", "response.in_progress"] {
            let response = self.response(&[], false);
            frames.push(self.begins(), name, json!({"response": response}));
        }
        for piece in self.pieces() {
            frames.item(piece.at, piece.kind, &piece.text);
        }
        let ends = self.making.ends();
        frames.close_item(ends);
        let name = format!("response.{}", self.reason(false));
        let response = self.response(&frames.items, true);
        frames.push(ends, &name, json!({"response": response}));
    }

    /// The same as one answer.
    pub(super) fn whole(&self) -> Value {
        let pieces = self.pieces();
        let text = |choice: usize, wanted: Kind| -> String {
            let own = pieces.iter().filter(|piece| piece.choice == choice);
            own.filter(|piece| piece.kind == wanted)
                .map(|piece| piece.text.as_str())
                .collect()
        };
        let calls = |choice: usize| {
            let own = pieces.iter().filter(move |piece| piece.choice == choice);
            own.filter(|piece| piece.kind == Kind::Call)
        };
        match self.family {
            Family::Chat => {
                let choices = (0..self.making.choices.len()).map(|index| {
                    let made: Vec<Value> = (calls(index).enumerate())
                        .map(|(number, piece)| json!({"id": format!("call_{index}_{number}"), "type": "function",
                            "function": {"name": "read", "arguments": json!({"path": piece.text}).to_string()}}))
                        .collect();
                    let mut message = json!({"role": "assistant", "content": text(index, Kind::Text)});
                    if !made.is_empty() {
                        message["tool_calls"] = json!(made);
                    }
                    json!({"index": index, "message": message, "finish_reason": self.reason(!made.is_empty())})
                });
                let mut answer = json!({"id": self.id, "object": "chat.completion", "created": 1_700_000_000,
                    "model": "upstream-model", "choices": choices.collect::<Vec<_>>()});
                if let Some(usage) = self.usage {
                    answer["usage"] = usage.json(self.family);
                }
                answer
            }
            Family::Messages | Family::Responses => {
                let mut frames = Frames {
                    family: self.family,
                    all: Vec::new(),
                    open: None,
                    blocks: 0,
                    items: Vec::new(),
                };
                for piece in &pieces {
                    frames.block_or_item(piece.at, piece.kind, &piece.text);
                }
                if self.family == Family::Responses {
                    frames.close_item(0.0);
                    return self.response(&frames.items, true);
                }
                frames.close_block(0.0);
                let calls = frames.has(Kind::Call);
                self.message(&json!(frames.items), json!(self.reason(calls)), self.usage)
            }
        }
    }
}

impl Frames {
    fn push(&mut self, at: f64, name: &str, event: Value) {
        let mut event = event;
        event["type"] = json!(name);
        if self.family == Family::Responses {
            event["sequence_number"] = json!(self.all.len());
        }
        self.all
            .push((at, format!("event: {name}\ndata: {event}\n\n")));
    }

    fn block_or_item(&mut self, at: f64, kind: Kind, text: &str) {
        match self.family {
            Family::Responses => self.item(at, kind, text),
            Family::Chat | Family::Messages => self.block(at, kind, text),
        }
    }

    /// Whether a call was made.
    fn has(&self, kind: Kind) -> bool {
        let open = self.open.iter().any(|(open, _)| *open == kind);
        open || kind == Kind::Call && self.items.iter().any(|item| item["type"] == "tool_use")
    }

    /// A piece of a block of messages.
    fn block(&mut self, at: f64, kind: Kind, text: &str) {
        if self
            .open
            .as_ref()
            .is_none_or(|(open, _)| *open != kind || kind == Kind::Call)
        {
            self.close_block(at);
            let block = match kind {
                Kind::Text => json!({"type": "text", "text": ""}),
                Kind::Reasoning => json!({"type": "thinking", "thinking": "", "signature": ""}),
                Kind::Call => {
                    json!({"type": "tool_use", "id": format!("toolu_{}", self.blocks), "name": "read", "input": {}})
                }
            };
            let begun = json!({"index": self.blocks, "content_block": block});
            self.push(at, "content_block_start", begun);
            self.open = Some((kind, String::new()));
        }
        let delta = match kind {
            Kind::Text => json!({"type": "text_delta", "text": text}),
            Kind::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
            Kind::Call => {
                json!({"type": "input_json_delta", "partial_json": json!({"path": text}).to_string()})
            }
        };
        let piece = json!({"index": self.blocks, "delta": delta});
        self.push(at, "content_block_delta", piece);
        if let Some((_, all)) = &mut self.open {
            all.push_str(text);
        }
    }

    fn close_block(&mut self, at: f64) {
        let Some((kind, text)) = self.open.take() else {
            return;
        };
        if kind == Kind::Reasoning {
            let delta = json!({"type": "signature_delta", "signature": "c2lnbmVk"});
            let signed = json!({"index": self.blocks, "delta": delta});
            self.push(at, "content_block_delta", signed);
        }
        self.push(at, "content_block_stop", json!({"index": self.blocks}));
        self.items.push(match kind {
            Kind::Text => json!({"type": "text", "text": text}),
            Kind::Reasoning => json!({"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}),
            Kind::Call => json!({"type": "tool_use", "id": format!("toolu_{}", self.blocks), "name": "read", "input": {"path": text}}),
        });
        self.blocks += 1;
    }

    /// A piece of an item of responses.
    fn item(&mut self, at: f64, kind: Kind, text: &str) {
        if self
            .open
            .as_ref()
            .is_none_or(|(open, _)| *open != kind || kind == Kind::Call)
        {
            self.close_item(at);
            let begun = self.made_item(kind, "", "in_progress");
            let place = self.items.len();
            let added = json!({"output_index": place, "item": begun});
            self.push(at, "response.output_item.added", added);
            match kind {
                Kind::Text => {
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    let event = self.at_item(json!({"content_index": 0, "part": part}));
                    self.push(at, "response.content_part.added", event);
                }
                Kind::Reasoning => {
                    let part = json!({"type": "summary_text", "text": ""});
                    let event = self.at_item(json!({"summary_index": 0, "part": part}));
                    self.push(at, "response.reasoning_summary_part.added", event);
                }
                Kind::Call => {}
            }
            self.open = Some((kind, String::new()));
        }
        let (name, event) = match kind {
            Kind::Text => (
                "response.output_text.delta",
                json!({"content_index": 0, "delta": text}),
            ),
            Kind::Reasoning => (
                "response.reasoning_summary_text.delta",
                json!({"summary_index": 0, "delta": text}),
            ),
            Kind::Call => (
                "response.function_call_arguments.delta",
                json!({"delta": json!({"path": text}).to_string()}),
            ),
        };
        let event = self.at_item(event);
        self.push(at, name, event);
        if let Some((_, all)) = &mut self.open {
            all.push_str(text);
        }
    }

    fn at_item(&self, event: Value) -> Value {
        let mut event = event;
        event["item_id"] = json!(format!("item_{}", self.items.len()));
        event["output_index"] = json!(self.items.len());
        event
    }

    fn made_item(&self, kind: Kind, text: &str, status: &str) -> Value {
        let id = format!("item_{}", self.items.len());
        let done = status == "completed";
        match kind {
            Kind::Text => {
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                let content = if done { json!([part]) } else { json!([]) };
                json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
            }
            Kind::Reasoning => {
                let part = json!({"type": "summary_text", "text": text});
                let summary = if done { json!([part]) } else { json!([]) };
                json!({"id": id, "type": "reasoning", "summary": summary})
            }
            Kind::Call => {
                let arguments = if done {
                    json!({"path": text}).to_string()
                } else {
                    String::new()
                };
                json!({"id": id, "type": "function_call", "status": status, "call_id": format!("call_{}", self.items.len()),
                    "name": "read", "arguments": arguments})
            }
        }
    }

    fn close_item(&mut self, at: f64) {
        let Some((kind, text)) = self.open.take() else {
            return;
        };
        match kind {
            Kind::Text => {
                let event = self.at_item(json!({"content_index": 0, "text": text}));
                self.push(at, "response.output_text.done", event);
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                let event = self.at_item(json!({"content_index": 0, "part": part}));
                self.push(at, "response.content_part.done", event);
            }
            Kind::Reasoning => {
                let event = self.at_item(json!({"summary_index": 0, "text": text}));
                self.push(at, "response.reasoning_summary_text.done", event);
                let part = json!({"type": "summary_text", "text": text});
                let event = self.at_item(json!({"summary_index": 0, "part": part}));
                self.push(at, "response.reasoning_summary_part.done", event);
            }
            Kind::Call => {
                let arguments = json!({"path": text}).to_string();
                let event = self.at_item(json!({"arguments": arguments}));
                self.push(at, "response.function_call_arguments.done", event);
            }
        }
        let item = self.made_item(kind, &text, "completed");
        let done = json!({"output_index": self.items.len(), "item": item});
        self.push(at, "response.output_item.done", done);
        self.items.push(item);
    }
}

/// What a model says: tokens of plain prose, one string for each.
static PROSE: LazyLock<Vec<String>> = LazyLock::new(|| {
    let text = "Who knew that the train was late, and whose pieces of luggage stood at the station? \
        Nobody had seen the porter since noon, and the clerk only said that he would look for him. ";
    let table = tiktoken_rs::o200k_base_singleton();
    let tokens = table.encode_ordinary(&text.repeat(20));
    let word = |token| {
        table
            .decode(&[token])
            .expect("prose has no half characters")
    };
    tokens.into_iter().map(word).collect()
});

/// So many tokens from a place on.
pub(crate) fn said(from: u64, tokens: u64) -> String {
    let words = PROSE.iter().cycle().skip(from as usize % PROSE.len());
    words.take(tokens as usize).map(String::as_str).collect()
}
