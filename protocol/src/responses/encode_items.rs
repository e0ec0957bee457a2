//! The output items of a responses answer: how each kind begins, continues and ends.

use super::client_tools::{self, ClientTool};
use super::sequence::Numbered;
use crate::json::{quoted, unescape};
use crate::translate::event::BlockKind;
use crate::translate::freeform::{Unwrap, is_object};
use crate::translate::ids::Memo;
use crate::translate::neutral::ToolKind;
use crate::translate::seals::{OURS, PLAIN};
use crate::translate::writing::{Template, declared};

/// An item that has begun.
#[derive(Debug)]
pub(super) struct EncodedItem {
    kind: ItemKind,
    index: usize,
    id: String,
    /// Its text, or its arguments, escaped.
    text: String,
    /// The JSON around a delta; the event's number follows it.
    delta: Template,
}

#[derive(Debug)]
enum ItemKind {
    Message {
        refusal: bool,
    },
    Reasoning,
    Call {
        head: String,
    },
    Custom {
        head: String,
        unwrap: Unwrap,
    },
    /// Emitted only when it is complete, because its arguments become other members.
    Typed {
        tool: &'static ClientTool,
        head: String,
    },
}

pub(super) fn item(block: &BlockKind, index: usize, answer: &str, memo: &Memo) -> EncodedItem {
    let (prefix, kind) = match block {
        BlockKind::Text => ("msg", ItemKind::Message { refusal: false }),
        BlockKind::Refusal => ("msg", ItemKind::Message { refusal: true }),
        BlockKind::Thinking => ("rs", ItemKind::Reasoning),
        BlockKind::Call { id, name } => {
            let (name, kind, tool) = declared(memo, name);
            let space = tool.and_then(|tool| tool.namespace.as_deref());
            let space = space
                .map(|space| format!(r#","namespace":{}"#, quoted(space)))
                .unwrap_or_default();
            let head = format!(r#""call_id":{},"name":{}{space}"#, quoted(id), quoted(name));
            let typed = match kind {
                ToolKind::Typed(kind) => client_tools::of_kind(kind),
                ToolKind::Function | ToolKind::Custom => None,
            };
            match (kind, typed) {
                (_, Some(tool)) => {
                    let head = format!(r#""call_id":{}"#, quoted(id));
                    (tool.prefix, ItemKind::Typed { tool, head })
                }
                (ToolKind::Custom, None) => (
                    "ctc",
                    ItemKind::Custom {
                        head,
                        unwrap: Unwrap::default(),
                    },
                ),
                (_, None) => ("fc", ItemKind::Call { head }),
            }
        }
    };
    let id = quoted(&format!("{prefix}_{answer}_{index}{OURS}"));
    let delta = match &kind {
        ItemKind::Message { refusal: false } => {
            template("output_text", &id, index, "\"content_index\":0,")
        }
        ItemKind::Message { refusal: true } => {
            template("refusal", &id, index, "\"content_index\":0,")
        }
        ItemKind::Reasoning => {
            template("reasoning_summary_text", &id, index, "\"summary_index\":0,")
        }
        ItemKind::Custom { .. } => template("custom_tool_call_input", &id, index, ""),
        ItemKind::Call { .. } | ItemKind::Typed { .. } => {
            template("function_call_arguments", &id, index, "")
        }
    };
    EncodedItem {
        kind,
        index,
        id,
        text: String::new(),
        delta,
    }
}

fn template(kind: &str, id: &str, index: usize, part: &str) -> Template {
    let logprobs = if kind == "output_text" {
        ",\"logprobs\":[]"
    } else {
        ""
    };
    Template::new(
        format!(
            "event: response.{kind}.delta\ndata: {{\"type\":\"response.{kind}.delta\",\"item_id\":{id},\"output_index\":{index},{part}\"delta\":\""
        ),
        &format!("\"{logprobs},\"sequence_number\":"),
    )
}

/// The events that begin an item.
pub(super) fn added(item: &EncodedItem, numbers: &mut Numbered, out: &mut Vec<u8>) {
    if matches!(item.kind, ItemKind::Typed { .. }) {
        return;
    }
    let index = item.index;
    let whole = item.json("in_progress", false);
    numbers.event(
        "response.output_item.added",
        &format!(r#""output_index":{index},"item":{whole}"#),
        out,
    );
    if let Some((event, place, part)) = item.part("") {
        numbers.event(
            &format!("response.{event}.added"),
            &format!(r#"{place},"part":{part}"#),
            out,
        );
    }
}

/// The events that end an item, and the item in its final form; none if nobody could run it and it was never announced.
pub(super) fn finished(
    item: &mut EncodedItem,
    status: &str,
    numbers: &mut Numbered,
    out: &mut Vec<u8>,
) -> Option<String> {
    if item.is_cut(status) {
        return None;
    }
    if let ItemKind::Custom { unwrap, .. } = &mut item.kind {
        let mut shown = String::new();
        unwrap.finish(&mut shown);
        item.shown(&shown, numbers, out);
    }
    let (index, id, text) = (item.index, item.id.clone(), item.text.clone());
    let place = format!(r#""item_id":{id},"output_index":{index}"#);
    let whole = item.json(status, true);
    match &item.kind {
        ItemKind::Call { head } => {
            let name = head
                .split_once(",\"name\":")
                .map_or("\"\"", |(_, name)| name);
            let name = name
                .split_once(",\"namespace\":")
                .map_or(name, |(name, _)| name);
            let members = format!(r#"{place},"name":{name},"arguments":"{text}""#);
            numbers.event("response.function_call_arguments.done", &members, out);
        }
        ItemKind::Custom { .. } => {
            numbers.event(
                "response.custom_tool_call_input.done",
                &format!(r#"{place},"input":"{text}""#),
                out,
            );
        }
        ItemKind::Typed { .. } => {
            numbers.event(
                "response.output_item.added",
                &format!(r#""output_index":{index},"item":{whole}"#),
                out,
            );
        }
        ItemKind::Message { .. } | ItemKind::Reasoning => {}
    }
    if let Some((event, place, part)) = item.part(&text) {
        let (kind, member, more) = match item.kind {
            ItemKind::Message { refusal: false } => ("output_text", "text", ",\"logprobs\":[]"),
            ItemKind::Message { refusal: true } => ("refusal", "refusal", ""),
            _ => ("reasoning_summary_text", "text", ""),
        };
        numbers.event(
            &format!("response.{kind}.done"),
            &format!(r#"{place},"{member}":"{text}"{more}"#),
            out,
        );
        numbers.event(
            &format!("response.{event}.done"),
            &format!(r#"{place},"part":{part}"#),
            out,
        );
    }
    numbers.event(
        "response.output_item.done",
        &format!(r#""output_index":{index},"item":{whole}"#),
        out,
    );
    Some(whole)
}

impl EncodedItem {
    /// More of its text, escaped.
    pub(super) fn delta(&mut self, text: &str, numbers: &mut Numbered, out: &mut Vec<u8>) {
        match &mut self.kind {
            ItemKind::Custom { unwrap, .. } => {
                let mut shown = String::new();
                unwrap.push(text, &mut shown);
                self.shown(&shown, numbers, out);
            }
            ItemKind::Typed { .. } => self.text.push_str(text),
            _ => self.shown(text, numbers, out),
        }
    }

    /// Whether the limit has cut a call that is emitted only when it is complete.
    fn is_cut(&self, status: &str) -> bool {
        let typed = matches!(self.kind, ItemKind::Typed { .. });
        typed && status == "incomplete" && !is_object(&unescape(&self.text))
    }

    fn shown(&mut self, text: &str, numbers: &mut Numbered, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        self.delta.write(text, out);
        push_number(numbers.take(), out);
        out.extend_from_slice(b"}\n\n");
    }

    /// A part's name, its position, and the part with this text; calls have none.
    fn part(&self, text: &str) -> Option<(&'static str, String, String)> {
        let (id, index) = (&self.id, self.index);
        let (event, place, part) = match self.kind {
            ItemKind::Message { refusal: false } => (
                "content_part",
                "content_index",
                format!(
                    r#"{{"type":"output_text","text":"{text}","annotations":[],"logprobs":[]}}"#
                ),
            ),
            ItemKind::Message { refusal: true } => (
                "content_part",
                "content_index",
                format!(r#"{{"type":"refusal","refusal":"{text}"}}"#),
            ),
            ItemKind::Reasoning => (
                "reasoning_summary_part",
                "summary_index",
                format!(r#"{{"type":"summary_text","text":"{text}"}}"#),
            ),
            _ => return None,
        };
        Some((
            event,
            format!(r#""item_id":{id},"output_index":{index},"{place}":0"#),
            part,
        ))
    }

    /// The item; `whole`: including its content.
    fn json(&self, status: &str, whole: bool) -> String {
        let text = if whole { self.text.as_str() } else { "" };
        let part = self
            .part(text)
            .filter(|_| whole)
            .map(|(.., part)| part)
            .unwrap_or_default();
        let id = &self.id;
        match &self.kind {
            ItemKind::Message { .. } => {
                format!(
                    r#"{{"id":{id},"type":"message","status":"{status}","role":"assistant","content":[{part}]}}"#
                )
            }
            ItemKind::Reasoning => format!(
                r#"{{"id":{id},"type":"reasoning","summary":[{part}],"encrypted_content":"{PLAIN}"}}"#
            ),
            ItemKind::Call { head } => {
                format!(
                    r#"{{"id":{id},"type":"function_call","status":"{status}",{head},"arguments":"{text}"}}"#
                )
            }
            ItemKind::Custom { head, .. } => {
                format!(
                    r#"{{"id":{id},"type":"custom_tool_call","status":"{status}",{head},"input":"{text}"}}"#
                )
            }
            ItemKind::Typed { tool, head } => {
                let (call, members) = (tool.call, tool.members(&unescape(text)));
                format!(r#"{{"id":{id},"type":"{call}","status":"{status}",{head},{members}}}"#)
            }
        }
    }
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        at -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}
