//! Decodes a responses answer, whole or streamed, into events.
//!
//! Events are keyed by the item they name. Content that was never streamed is taken from the events that repeat it. Whether tools
//! are called is judged by the calls seen, because the last event may repeat nothing.

use std::borrow::Cow;

use super::blocks::{Blocks, EventItem, Moment, OutputItemKind as ItemKind, TextClass};
use super::client_tools;
use crate::json::{Cursor, JsonError, Kind, unescape};
use crate::translate::event::{NeutralStop, Sink};
use crate::translate::flow::{self, Flow};
use crate::translate::text::{Escaped, escape};
use crate::translate::tree::JsonNode;
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
    /// Deltas brought the probabilities of their tokens, which the items repeat.
    probable: bool,
}

/// The content of one event. Texts are escaped, objects are JSON.
#[derive(Debug, Default)]
struct DecodedResponseEvent<'a> {
    kind: Cow<'a, str>,
    index: Option<u64>,
    item_id: Cow<'a, str>,
    part: u64,
    delta: Option<&'a str>,
    /// What an event that ends a part or a call repeats.
    whole: Option<&'a str>,
    /// The probabilities of a delta's tokens.
    logprobs: Option<&'a str>,
    item: Option<&'a str>,
    response: Option<&'a str>,
}

/// The events of a whole answer.
pub(crate) fn decode_answer(body: &[u8], sink: &mut dyn Sink) {
    let mut decoder = Decoder::default();
    let Ok(answer) = JsonNode::parse(body) else {
        return decoder.flow.broke("the answer is not JSON", sink);
    };
    let known = matches!(answer.get("status").word(), "completed" | "incomplete")
        || answer.get("output").kind == Kind::Array;
    if !known || answer.get("status").word() == "failed" || answer.get("error").kind == Kind::Object
    {
        return decoder.flow.fail(UpstreamError::parse(body), sink);
    }
    decoder.complete("", &answer, sink);
}

impl flow::AnswerDecoder for Decoder {
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
            // Every whole answer of this family ends with an event, after which this does nothing.
            .broke("the stream ended before the answer did", sink);
    }
}

impl Decoder {
    fn take(&mut self, said: &DecodedResponseEvent<'_>, sink: &mut dyn Sink) {
        let kind = said.kind.strip_prefix("response.").unwrap_or_default();
        let class = match kind {
            "output_text.delta" | "output_text.done" => Some(TextClass::Text),
            "refusal.delta" | "refusal.done" => Some(TextClass::Refusal),
            "reasoning_summary_text.delta" | "reasoning_summary_text.done" => {
                Some(TextClass::Summary)
            }
            "reasoning_text.delta" | "reasoning_text.done" => Some(TextClass::Reasoning),
            "function_call_arguments.delta"
            | "function_call_arguments.done"
            | "custom_tool_call_input.delta"
            | "custom_tool_call_input.done" => Some(TextClass::Call),
            _ => None,
        };
        self.refused |= class == Some(TextClass::Refusal);
        let named = EventItem {
            index: said.index,
            id: &said.item_id,
            ..EventItem::default()
        };
        if let Some(class) = class {
            let (blocks, flow) = (&mut self.blocks, &mut self.flow);
            match (said.delta, said.whole) {
                (Some(text), _) => {
                    blocks.delta(named, class, said.part, text, flow, sink);
                    if let Some(list) = said.logprobs {
                        self.probable = true;
                        flow.logprobs(list, sink);
                    }
                }
                (None, Some(text)) => blocks.whole(named, class, said.part, text, flow, sink),
                _ => {}
            }
            return;
        }
        let item = said
            .item
            .and_then(|item| JsonNode::parse(item.as_bytes()).ok());
        match (kind, item) {
            ("created", _) => self.flow.start(sink),
            ("queued" | "in_progress", _) => self.flow.ping(sink),
            ("output_item.added", Some(item)) => {
                self.item(said.index, &item, Moment::Begins, sink);
            }
            ("output_item.done", Some(item)) => self.item(said.index, &item, Moment::Ends, sink),
            ("completed" | "incomplete", _) => {
                let Ok(response) = JsonNode::parse(said.response.unwrap_or("{}").as_bytes()) else {
                    return;
                };
                self.complete(kind, &response, sink);
            }
            _ => {}
        }
    }

    /// An item that begins or, with all its content, ends.
    fn item(
        &mut self,
        index: Option<u64>,
        item: &JsonNode<'_>,
        moment: Moment,
        sink: &mut dyn Sink,
    ) {
        let plain = |name: &str| item.get(name).plain().unwrap_or_default();
        let word = item.get("type").word();
        let (id, call, name) = (plain("id"), plain("call_id"), plain("name"));
        let named = EventItem {
            index,
            id: &id,
            call: &call,
            name: match word {
                "local_shell_call" => word.trim_end_matches("_call"),
                "function_call" | "custom_tool_call" => &name,
                _ => "",
            },
            free: word == "custom_tool_call",
        };
        let kind = match word {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" | "custom_tool_call" | "local_shell_call" => ItemKind::Call,
            _ => ItemKind::Own(OWN.into_iter().find(|own| *own == word).unwrap_or("item")),
        };
        if word.is_empty() {
            return;
        }
        match moment {
            Moment::Begins | Moment::Goes => self.blocks.begin(kind, named),
            Moment::Ends | Moment::Repeated => self.ends(kind, named, moment, item, sink),
        }
        self.blocks.show(&mut self.flow, sink);
    }

    /// An item that ends, with what it repeats.
    fn ends(
        &mut self,
        kind: ItemKind,
        named: EventItem<'_>,
        moment: Moment,
        item: &JsonNode<'_>,
        sink: &mut dyn Sink,
    ) {
        let texts = texts(item);
        let cut = item.get("status").word() == "incomplete";
        if !self.blocks.end(kind, named, moment, &texts, cut) {
            return;
        }
        self.refused |= texts.iter().any(|(class, _)| *class == TextClass::Refusal);
        if let ItemKind::Own(own) = kind {
            self.flow.lose(own, sink);
        }
        for part in item.get("content").elements() {
            let list = part.get("logprobs");
            if !self.probable && !list.is_empty() {
                self.flow.logprobs(list.raw, sink);
            }
            part.get("annotations")
                .elements()
                .for_each(|_| self.flow.lose("annotations", sink));
        }
    }

    /// The end, which repeats the items; those that were never announced are emitted now.
    fn complete(&mut self, kind: &str, response: &JsonNode<'_>, sink: &mut dyn Sink) {
        self.flow.start(sink);
        let ids: Vec<Cow<'_, str>> = response
            .get("output")
            .elements()
            .filter_map(|item| item.get("id").plain())
            .collect();
        self.blocks.repeats_ids(ids.iter().map(AsRef::as_ref));
        for item in response.get("output").elements() {
            self.item(None, item, Moment::Repeated, sink);
        }
        let reason = response
            .get("incomplete_details")
            .get("reason")
            .plain()
            .unwrap_or_default();
        let status = match response.get("status").word() {
            "" => kind,
            status => status,
        };
        let stop = match (status, reason.as_ref()) {
            (_, "content_filter") => NeutralStop::Filter,
            // Whatever else stops an answer before its end, it is not complete.
            ("incomplete", _) | (_, "max_output_tokens") => NeutralStop::Length,
            _ if self.refused => NeutralStop::Refusal,
            _ => NeutralStop::End,
        };
        self.blocks
            .finish(stop == NeutralStop::Length, &mut self.flow, sink);
        self.flow.stop(stop, sink);
    }
}

/// The texts that a finished item repeats.
fn texts(item: &JsonNode<'_>) -> Vec<(TextClass, String)> {
    let joined = |class: TextClass, list: &str, member: &str, between: &str| {
        let texts: Vec<Escaped<'_>> = item
            .get(list)
            .elements()
            .filter_map(|part| part.get(member).text())
            .collect();
        (!texts.is_empty()).then(|| (class, Escaped::join(&texts, between).as_str().to_owned()))
    };
    let found = match item.get("type").word() {
        "message" => [
            joined(TextClass::Text, "content", "text", ""),
            joined(TextClass::Refusal, "content", "refusal", ""),
        ],
        "reasoning" => [
            joined(TextClass::Summary, "summary", "text", "\\n\\n"),
            joined(TextClass::Reasoning, "content", "text", "\\n\\n"),
        ],
        "function_call" => [call(item.get("arguments").word().to_owned()), None],
        "custom_tool_call" => [call(item.get("input").word().to_owned()), None],
        "local_shell_call" => {
            let made = client_tools::call(item);
            [
                made.and_then(|(_, arguments)| call(escape(&arguments))),
                None,
            ]
        }
        _ => [None, None],
    };
    found.into_iter().flatten().collect()
}

fn call(arguments: String) -> Option<(TextClass, String)> {
    Some((TextClass::Call, arguments))
}

fn said<'a>(cursor: &mut Cursor<'a>) -> Result<DecodedResponseEvent<'a>, JsonError> {
    let mut said = DecodedResponseEvent::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let value = cursor.skip()?;
        match key.name.as_ref() {
            "type" => said.kind = cursor.raw_text(&value).map(unescape).unwrap_or_default(),
            "output_index" => said.index = count(cursor, &value),
            "logprobs" if value.kind == Kind::Array => {
                said.logprobs = Some(cursor.slice(value.span)).filter(|list| *list != "[]");
            }
            "item_id" => said.item_id = cursor.text_of(&value).unwrap_or_default(),
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
