//! The output items of a streamed responses answer, as far as their events have told.
//!
//! Texts are kept as they stand in JSON, so that nothing is unescaped and escaped again. Only an ending made here reads them.

use super::reader::Event;
use crate::json::{Cursor, Kind, Value, set_members};

/// All items, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<Item>,
}

/// One output item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) index: u64,
    pub(super) kind: String,
    pub(super) id: String,
    /// The item as its last event wrote it.
    raw: String,
    /// Content or summary parts.
    pub(super) parts: Vec<Part>,
    /// Arguments of a call, escaped.
    pub(super) arguments: String,
    pub(super) done: bool,
}

/// One part of an item.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) index: u64,
    pub(super) kind: String,
    /// Its text, escaped.
    pub(super) text: String,
    raw: String,
    pub(super) done: bool,
}

impl Items {
    /// Takes over what one event tells.
    pub(super) fn note(&mut self, kind: &str, cursor: &Cursor<'_>, event: &Event) {
        // Some servers leave indices out: then an event means the latest item.
        let known = match event.output_index {
            Some(index) => self.list.iter().position(|item| item.index == index),
            None => self.list.len().checked_sub(1),
        };
        match (kind.strip_prefix("response.").unwrap_or_default(), known) {
            ("output_item.added", _) => {
                let index = event.output_index.unwrap_or(self.list.len() as u64);
                self.list.retain(|item| item.index != index);
                self.list.extend(Item::begin(index, cursor, event));
            }
            ("output_item.done", Some(at)) => {
                if let (Some(item), Some(value)) = (self.list.get_mut(at), &event.item) {
                    cursor.slice(value.span.clone()).clone_into(&mut item.raw);
                    item.done = true;
                    item.parts = Vec::new();
                    item.arguments = String::new();
                }
            }
            (rest, Some(at)) => {
                if let Some(item) = self.list.get_mut(at) {
                    item.note(rest, cursor, event);
                }
            }
            (_, None) => {}
        }
    }

    /// Whether the event's item is hidden reasoning.
    pub(super) fn is_reasoning(&self, cursor: &Cursor<'_>, event: &Event) -> bool {
        event.item.as_ref().is_some_and(|item| member(cursor, item, "type") == "reasoning")
    }

    /// Items that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &Item> {
        self.list.iter().filter(|item| !item.done)
    }

    /// All items as a JSON list; those that have not ended are incomplete.
    pub(super) fn to_json(&self) -> String {
        let items: Vec<String> = self.list.iter().map(|item| if item.done { item.raw.clone() } else { item.to_json() }).collect();
        format!("[{}]", items.join(","))
    }
}

impl Item {
    fn begin(index: u64, cursor: &Cursor<'_>, event: &Event) -> Option<Self> {
        let value = event.item.as_ref().filter(|item| item.kind == Kind::Object)?;
        Some(Self {
            index,
            kind: member(cursor, value, "type"),
            id: member(cursor, value, "id"),
            raw: cursor.slice(value.span.clone()).to_owned(),
            parts: Vec::new(),
            arguments: String::new(),
            done: false,
        })
    }

    fn note(&mut self, event_kind: &str, cursor: &Cursor<'_>, event: &Event) {
        let delta = event.delta.as_ref().and_then(|delta| cursor.raw_text(delta));
        match event_kind {
            "content_part.added" | "reasoning_summary_part.added" => {
                let Some(part) = &event.part else { return };
                let (kind, raw) = (member(cursor, part, "type"), cursor.slice(part.span.clone()));
                self.begin_part(event, &kind, raw);
            }
            "content_part.done" | "reasoning_summary_part.done" => {
                if let (Some(part), Some(value)) = (self.part(event), &event.part) {
                    cursor.slice(value.span.clone()).clone_into(&mut part.raw);
                    part.done = true;
                }
            }
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                self.arguments.push_str(delta.unwrap_or_default());
            }
            _ => {
                if event_kind == "output_text.delta" && self.part(event).is_none() {
                    self.begin_part(event, "output_text", r#"{"type":"output_text","annotations":[]}"#);
                }
                if let (Some(part), Some(delta)) = (self.part(event), delta) {
                    part.text.push_str(delta);
                }
            }
        }
    }

    fn begin_part(&mut self, event: &Event, kind: &str, raw: &str) {
        let index = event.part_index.unwrap_or(0);
        self.parts.push(Part { index, kind: kind.to_owned(), text: String::new(), raw: raw.to_owned(), done: false });
    }

    fn part(&mut self, event: &Event) -> Option<&mut Part> {
        let index = event.part_index.unwrap_or(0);
        self.parts.iter_mut().find(|part| part.index == index)
    }

    /// The name of the member that holds a call's arguments.
    pub(super) fn arguments_name(&self) -> &'static str {
        if self.kind == "custom_tool_call" { "input" } else { "arguments" }
    }

    /// The item as it ends now.
    pub(super) fn to_json(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::to_json).collect();
        let parts = format!("[{}]", parts.join(","));
        let arguments = format!("\"{}\"", self.arguments);
        let status = ("status", "\"incomplete\"");
        match self.kind.as_str() {
            "message" => set_members(&self.raw, &[status, ("content", &parts)]),
            "reasoning" => set_members(&self.raw, &[("summary", &parts)]),
            _ => set_members(&self.raw, &[status, (self.arguments_name(), &arguments)]),
        }
    }
}

impl Part {
    /// The member that holds the part's text.
    pub(super) fn text_name(&self) -> &'static str {
        if self.kind == "refusal" { "refusal" } else { "text" }
    }

    /// The part as it ends now.
    pub(super) fn to_json(&self) -> String {
        if self.done {
            return self.raw.clone();
        }
        set_members(&self.raw, &[(self.text_name(), &format!("\"{}\"", self.text))])
    }
}

/// A string member of an object, unescaped, or nothing.
fn member(cursor: &Cursor<'_>, object: &Value, name: &str) -> String {
    let mut cursor = cursor.back_to(object.span.start);
    let Ok(mut walk) = cursor.enter_object() else { return String::new() };
    while let Ok(Some(key)) = cursor.member(&mut walk) {
        let Ok(value) = cursor.skip() else { break };
        if key.name == name {
            return cursor.text_of(&value).unwrap_or_default().into_owned();
        }
    }
    String::new()
}
