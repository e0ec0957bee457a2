//! The output items of a streamed responses answer, collected from its events.
//!
//! Texts keep their JSON escaping, so that nothing is unescaped and escaped again. They are only read for an ending that the
//! gateway writes.

use crate::json::{Cursor, set_members};
use crate::{Brings, ItemEvent};

/// All items, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<OutputItem>,
}

#[derive(Debug)]
pub(super) struct OutputItem {
    pub(super) index: u64,
    pub(super) kind: String,
    pub(super) id: String,
    /// The item in its last event.
    raw: String,
    /// Content or summary parts.
    pub(super) parts: Vec<ItemPart>,
    /// Arguments of a call, escaped.
    pub(super) arguments: String,
    pub(super) done: bool,
}

#[derive(Debug)]
pub(super) struct ItemPart {
    pub(super) index: u64,
    pub(super) kind: String,
    /// Its text, escaped.
    pub(super) text: String,
    raw: String,
    pub(super) done: bool,
}

impl Items {
    /// Applies one event; `text` is its text.
    pub(super) fn note(&mut self, event: &ItemEvent, text: &str) {
        // Some servers omit indices; such an event refers to the latest item.
        let known = match event.output_index {
            Some(index) => self.list.iter().position(|item| item.index == index),
            None => self.list.len().checked_sub(1),
        };
        match (event.brings, known.and_then(|at| self.list.get_mut(at))) {
            (Brings::Item, _) => {
                let index = event.output_index.unwrap_or(self.list.len() as u64);
                self.list.retain(|item| item.index != index);
                self.list.extend(OutputItem::begin(index, text));
            }
            (Brings::ItemDone, Some(item)) if !text.is_empty() => {
                text.clone_into(&mut item.raw);
                item.done = true;
                item.parts = Vec::new();
                item.arguments = String::new();
            }
            (_, Some(item)) => item.note(event, text),
            (_, None) => {}
        }
    }

    /// Items that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &OutputItem> {
        self.list.iter().filter(|item| !item.done)
    }

    pub(super) fn next_index(&self) -> u64 {
        let indices = self.list.iter().map(|item| item.index);
        indices.max().map_or(0, |last| last.saturating_add(1))
    }

    /// All items as a JSON list; items that have not ended are marked incomplete.
    pub(super) fn to_json(&self) -> String {
        self.to_json_with(None)
    }

    /// The same, and one more item.
    pub(super) fn to_json_with(&self, more: Option<String>) -> String {
        let items: Vec<String> = self
            .list
            .iter()
            .map(|item| {
                if item.done {
                    item.raw.clone()
                } else {
                    item.to_json()
                }
            })
            .chain(more)
            .collect();
        format!("[{}]", items.join(","))
    }
}

impl OutputItem {
    fn begin(index: u64, text: &str) -> Option<Self> {
        if !text.starts_with('{') {
            return None;
        }
        Some(Self {
            index,
            kind: text_member(text, "type"),
            id: text_member(text, "id"),
            raw: text.to_owned(),
            parts: Vec::new(),
            arguments: String::new(),
            done: false,
        })
    }

    fn note(&mut self, event: &ItemEvent, text: &str) {
        match event.brings {
            Brings::Part if !text.is_empty() => {
                self.begin_part(event, &text_member(text, "type"), text)
            }
            Brings::PartDone if !text.is_empty() => {
                if let Some(part) = self.part(event) {
                    text.clone_into(&mut part.raw);
                    part.done = true;
                }
            }
            Brings::Arguments => self.arguments.push_str(text),
            Brings::OutputText | Brings::Text => {
                if event.brings == Brings::OutputText && self.part(event).is_none() {
                    self.begin_part(
                        event,
                        "output_text",
                        r#"{"type":"output_text","annotations":[]}"#,
                    );
                }
                if let Some(part) = self.part(event) {
                    part.text.push_str(text);
                }
            }
            Brings::Nothing
            | Brings::Response
            | Brings::Item
            | Brings::ItemDone
            | Brings::Part
            | Brings::PartDone => {}
        }
    }

    fn begin_part(&mut self, event: &ItemEvent, kind: &str, raw: &str) {
        let index = event.part_index.unwrap_or(0);
        self.parts.push(ItemPart {
            index,
            kind: kind.to_owned(),
            text: String::new(),
            raw: raw.to_owned(),
            done: false,
        });
    }

    fn part(&mut self, event: &ItemEvent) -> Option<&mut ItemPart> {
        let index = event.part_index.unwrap_or(0);
        self.parts.iter_mut().find(|part| part.index == index)
    }

    /// The name of the member that holds a call's arguments.
    pub(super) fn arguments_name(&self) -> &'static str {
        if self.kind == "custom_tool_call" {
            "input"
        } else {
            "arguments"
        }
    }

    /// The item in its present state.
    pub(super) fn to_json(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(ItemPart::to_json).collect();
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

impl ItemPart {
    /// The member that holds the part's text.
    pub(super) fn text_name(&self) -> &'static str {
        if self.kind == "refusal" {
            "refusal"
        } else {
            "text"
        }
    }

    /// The part in its present state.
    pub(super) fn to_json(&self) -> String {
        if self.done {
            return self.raw.clone();
        }
        set_members(
            &self.raw,
            &[(self.text_name(), &format!("\"{}\"", self.text))],
        )
    }
}

/// A string member of the object at `at`, unescaped; `None` if there is none.
pub(super) fn member(cursor: &Cursor<'_>, at: usize, name: &str) -> String {
    let mut cursor = cursor.back_to(at);
    let Ok(mut walk) = cursor.enter_object() else {
        return String::new();
    };
    while let Ok(Some(key)) = cursor.member(&mut walk) {
        let Ok(value) = cursor.skip() else { break };
        if key.name == name {
            return cursor.text_of(&value).unwrap_or_default().into_owned();
        }
    }
    String::new()
}

fn text_member(object: &str, name: &str) -> String {
    Cursor::new(object.as_bytes())
        .map(|cursor| member(&cursor, 0, name))
        .unwrap_or_default()
}
