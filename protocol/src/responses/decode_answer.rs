//! Decodes a responses answer, whole or streamed, into events.
//!
//! Items are identified by their `output_index`, because servers change ids on the way. Content that was never streamed is taken
//! from the events that repeat it. Whether tools are called is judged by the calls seen, because the last event may repeat nothing.

use std::borrow::Cow;

use super::blocks::{Blocks, Class};
use crate::json::{Cursor, JsonError, Kind, unescape};
use crate::translate::event::{Sink, Stop};
use crate::translate::flow::{self, Flow};
use crate::translate::text::{Escaped, compact, escape};
use crate::translate::tree::Node;
use crate::usage::count;
use crate::{Frame, UpstreamError};

/// Items that no other family has. Unlisted names are not repeated, because they are a server's own words.
const OWN: [&str; 17] = [
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "computer_call",
    "file_search_call",
    "image_generation_call",
    "mcp_approval_request",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    flow: Flow,
    blocks: Blocks,
    refused: bool,
}

/// The content of one event. Texts are escaped, objects are JSON.
#[derive(Debug, Default)]
struct Said<'a> {
    kind: Cow<'a, str>,
    index: Option<u64>,
    part: u64,
    delta: Option<&'a str>,
    /// What an event that ends a part or a call repeats.
    whole: Option<&'a str>,
    item: Option<&'a str>,
    response: Option<&'a str>,
}

/// The events of a whole answer.
pub(crate) fn decode_answer(body: &[u8], sink: &mut dyn Sink) {
    let mut decoder = Decoder::default();
    let Ok(answer) = Node::parse(body) else {
        return decoder.flow.broke("the answer is not JSON", sink);
    };
    let known = matches!(answer.get("status").word(), "completed" | "incomplete")
        || answer.get("output").kind == Kind::Array;
    if !known || answer.get("status").word() == "failed" || answer.get("error").kind == Kind::Object
    {
        return decoder.flow.fail(UpstreamError::parse(body), sink);
    }
    decoder.complete(&answer, sink);
}

impl flow::Decoder for Decoder {
    fn frame(&mut self, frame: &Frame, sink: &mut dyn Sink) {
        if self.flow.has_ended() {
            return;
        }
        let Some(data) = frame.data() else {
            return self.flow.ping(sink);
        };
        let Ok(mut said) = Cursor::of_answer(&data).and_then(|mut cursor| said(&mut cursor)) else {
            return self
                .flow
                .unreadable(&data, frame.event() == Some("error"), sink);
        };
        if said.kind.is_empty() {
            said.kind = Cow::Owned(frame.event().unwrap_or_default().to_owned());
        }
        if matches!(said.kind.as_ref(), "error" | "response.failed") {
            return self.flow.fail(UpstreamError::parse(&data), sink);
        }
        self.take(&said, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.flow
            .broke("the stream ended before the answer did", sink);
    }
}

impl Decoder {
    fn take(&mut self, said: &Said<'_>, sink: &mut dyn Sink) {
        let kind = said.kind.strip_prefix("response.").unwrap_or_default();
        let class = match kind {
            "output_text.delta" | "output_text.done" => Some(Class::Text),
            "refusal.delta" | "refusal.done" => Some(Class::Refusal),
            "reasoning_summary_text.delta" | "reasoning_summary_text.done" => Some(Class::Summary),
            "reasoning_text.delta" | "reasoning_text.done" => Some(Class::Reasoning),
            "function_call_arguments.delta"
            | "function_call_arguments.done"
            | "custom_tool_call_input.delta"
            | "custom_tool_call_input.done" => Some(Class::Call),
            _ => None,
        };
        self.refused |= class == Some(Class::Refusal);
        if let Some(class) = class {
            match (said.delta, said.whole) {
                (Some(text), _) => {
                    self.blocks
                        .delta(said.index, class, said.part, text, &mut self.flow, sink)
                }
                (None, Some(text)) => {
                    self.blocks
                        .whole(said.index, class, text, &mut self.flow, sink)
                }
                _ => {}
            }
            return;
        }
        match kind {
            "created" => self.flow.start(sink),
            "queued" | "in_progress" => self.flow.ping(sink),
            "output_item.added" => {
                self.item(said.index, said.item, false, sink);
            }
            "output_item.done" => {
                self.item(said.index, said.item, true, sink);
            }
            "completed" | "incomplete" => {
                let Ok(response) = Node::parse(said.response.unwrap_or("{}").as_bytes()) else {
                    return;
                };
                self.complete(&response, sink);
            }
            _ => {}
        }
    }

    /// An item that begins or, with all its content, ends.
    fn item(&mut self, index: Option<u64>, item: Option<&str>, done: bool, sink: &mut dyn Sink) {
        let Some(Ok(item)) = item.map(|item| Node::parse(item.as_bytes())) else {
            return;
        };
        self.node(index, &item, done, sink);
    }

    fn node(&mut self, index: Option<u64>, item: &Node<'_>, done: bool, sink: &mut dyn Sink) {
        let (id, name) = (
            item.get("call_id").plain().unwrap_or_default(),
            item.get("name").plain().unwrap_or_default(),
        );
        match item.get("type").word() {
            "function_call" => self.blocks.call(index, &id, &name, false),
            "custom_tool_call" => self.blocks.call(index, &id, &name, true),
            "local_shell_call" => self.blocks.call(index, &id, "local_shell", false),
            _ => {}
        }
        if done {
            self.contents(index, item, sink);
            self.blocks.done(
                index,
                item.get("status").word() == "incomplete",
                &mut self.flow,
                sink,
            );
        }
        self.blocks.show(&mut self.flow, sink);
    }

    /// What a finished item repeats.
    fn contents(&mut self, index: Option<u64>, item: &Node<'_>, sink: &mut dyn Sink) {
        let kind = item.get("type").word();
        if let Some(own) = OWN.into_iter().find(|own| *own == kind) {
            return self.flow.lose(own, sink);
        }
        let cited = item
            .get("content")
            .elements()
            .flat_map(|part| part.get("annotations").elements());
        cited.for_each(|_| self.flow.lose("annotations", sink));
        let mut give =
            |class: Class, text: &str| self.blocks.whole(index, class, text, &mut self.flow, sink);
        match kind {
            "message" => {
                for (class, name) in [(Class::Text, "text"), (Class::Refusal, "refusal")] {
                    let texts: Vec<Escaped<'_>> = item
                        .get("content")
                        .elements()
                        .filter_map(|part| part.get(name).text())
                        .collect();
                    if !texts.is_empty() {
                        self.refused |= class == Class::Refusal;
                        give(class, Escaped::join(&texts, "").as_str());
                    }
                }
            }
            "reasoning" => {
                for (class, name) in [(Class::Summary, "summary"), (Class::Reasoning, "content")] {
                    let texts: Vec<Escaped<'_>> = item
                        .get(name)
                        .elements()
                        .filter_map(|part| part.get("text").text())
                        .collect();
                    if !texts.is_empty() {
                        give(class, Escaped::join(&texts, "\\n\\n").as_str());
                    }
                }
            }
            "function_call" => give(Class::Call, item.get("arguments").word()),
            "custom_tool_call" => give(Class::Call, item.get("input").word()),
            "local_shell_call" => {
                let members = item
                    .get("action")
                    .members()
                    .filter(|(name, value)| *name != "type" && !value.is_null());
                let members: Vec<String> = members
                    .map(|(name, value)| {
                        format!("{}:{}", crate::json::quoted(name), compact(value.raw))
                    })
                    .collect();
                give(Class::Call, &escape(&format!("{{{}}}", members.join(","))));
            }
            "" => {}
            _ => self.flow.lose("item", sink),
        }
    }

    /// The end: items that were never announced are emitted now.
    fn complete(&mut self, response: &Node<'_>, sink: &mut dyn Sink) {
        self.flow.start(sink);
        for (at, item) in response.get("output").elements().enumerate() {
            let index = at as u64;
            if !self.blocks.knows(index) {
                self.node(Some(index), item, true, sink);
            }
        }
        let reason = response
            .get("incomplete_details")
            .get("reason")
            .plain()
            .unwrap_or_default();
        let stop = match (response.get("status").word(), reason.as_ref()) {
            (_, "content_filter") => Stop::Filter,
            ("incomplete", "max_output_tokens" | "max_tokens") | (_, "max_output_tokens") => {
                Stop::Length
            }
            ("incomplete", _) => Stop::Other,
            _ if self.refused => Stop::Refusal,
            _ => Stop::End,
        };
        self.blocks
            .finish(stop == Stop::Length, &mut self.flow, sink);
        self.flow.stop(stop, sink);
    }
}

fn said<'a>(cursor: &mut Cursor<'a>) -> Result<Said<'a>, JsonError> {
    let mut said = Said::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let value = cursor.skip()?;
        match key.name.as_ref() {
            "type" => said.kind = cursor.raw_text(&value).map(unescape).unwrap_or_default(),
            "output_index" => said.index = count(cursor, &value),
            "summary_index" | "content_index" => said.part = count(cursor, &value).unwrap_or(0),
            "delta" => said.delta = cursor.raw_text(&value),
            "text" | "refusal" | "arguments" | "input" => said.whole = cursor.raw_text(&value),
            "item" if value.kind == Kind::Object => said.item = Some(cursor.slice(value.span)),
            "response" if value.kind == Kind::Object => {
                said.response = Some(cursor.slice(value.span))
            }
            _ => {}
        }
    }
    Ok(said)
}
