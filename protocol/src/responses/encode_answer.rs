//! Encodes events as a responses answer, whole or streamed.
//!
//! The terminal event repeats the whole output, so finished items are kept. Events are numbered. An item that the limit cut is
//! closed as incomplete.

use std::borrow::Cow;

use super::encode_items::{EncodedItem, added, finished, item};
use super::error::failed_code;
use super::sequence::Numbered;
use super::synthetic::{skeleton, usage_json};
use crate::json::{Cursor, Kind, quoted, set_members};
use crate::translate::event::{AnswerEvent, BlockStart, NeutralAnswer, NeutralStop};
use crate::translate::ids::Memo;
use crate::translate::losses::Losses;
use crate::translate::tree::JsonNode;
use crate::translate::writing::{self, AnswerWish};
use crate::{ErrorBody, ReportedUsage, UsageWish};

/// Members of a request that the response repeats.
const ECHO: &[&str] = &[
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
    "user",
];

/// Writes the events of one answer.
#[derive(Debug)]
pub(crate) struct Encoder {
    memo: Memo,
    id: String,
    /// The response object as it began.
    begun: String,
    started: bool,
    out: Numbered,
    item: Option<EncodedItem>,
    /// Finished items, as JSON.
    output: Vec<String>,
    /// The limit cut a call that only a whole item would have shown.
    cut: bool,
}

pub(crate) fn encoder(memo: Memo, wish: &AnswerWish<'_>) -> Encoder {
    let begun = begun(wish);
    Encoder {
        memo,
        id: wish.id.to_owned(),
        begun,
        started: false,
        out: Numbered::default(),
        item: None,
        output: Vec::new(),
        cut: false,
    }
}

/// The response object as it begins, with what it repeats of the request.
fn begun(wish: &AnswerWish<'_>) -> String {
    let empty = skeleton(&format!("resp_{}", wish.id), wish.model, wish.created).to_string();
    let echo = echo(wish.request).unwrap_or_default();
    let set: Vec<(&str, Cow<'_, str>)> = echo
        .iter()
        .map(|(name, value)| {
            (
                *name,
                if *name == "tools" {
                    Cow::Owned(written_out(value))
                } else {
                    Cow::Borrowed(*value)
                },
            )
        })
        .collect();
    let set: Vec<(&str, &str)> = set
        .iter()
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    set_members(&empty, &set)
}

/// Tools as a response lists them: each function states whether it is strict and its parameters, even if the request did not.
fn written_out(tools: &str) -> String {
    let Ok(list) = JsonNode::parse(tools.as_bytes()) else {
        return tools.to_owned();
    };
    let tool = |tool: &JsonNode<'_>| {
        let missing: Vec<(&str, &str)> = [("strict", "false"), ("parameters", "null")]
            .into_iter()
            .filter(|(name, _)| {
                tool.get("type").word() == "function"
                    && !tool.members().any(|(member, _)| member == *name)
            })
            .collect();
        set_members(tool.raw, &missing)
    };
    format!(
        "[{}]",
        list.elements().map(tool).collect::<Vec<String>>().join(",")
    )
}

fn echo(request: &[u8]) -> Option<Vec<(&'static str, &str)>> {
    let mut cursor = Cursor::new(request).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    let mut found = Vec::new();
    while let Some(key) = cursor.member(&mut walk).ok()? {
        let value = cursor.skip().ok()?;
        let name = ECHO
            .iter()
            .find(|name| **name == key.name && value.kind != Kind::Null);
        found.extend(name.map(|name| (*name, cursor.slice(value.span))));
    }
    Some(found)
}

impl writing::AnswerEncoder for Encoder {
    fn event(&mut self, event: AnswerEvent<'_>, out: &mut Vec<u8>) {
        self.start(out);
        match event {
            AnswerEvent::Delta(text) => {
                if let Some(item) = &mut self.item {
                    item.delta(text, &mut self.out, out);
                }
            }
            AnswerEvent::Open(open) => self.open(open, out),
            AnswerEvent::Close => self.close("completed", out),
            AnswerEvent::Ping => out.extend_from_slice(b": ping\n\n"),
            AnswerEvent::Start
            | AnswerEvent::Logprobs(_)
            | AnswerEvent::Lost(_)
            | AnswerEvent::Stop(_)
            | AnswerEvent::Fail(_) => {}
        }
    }

    fn cut(&mut self, out: &mut Vec<u8>) {
        self.close("incomplete", out);
    }

    fn stop(
        &mut self,
        stop: &NeutralStop,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
        out: &mut Vec<u8>,
    ) {
        self.start(out);
        let status = status(stop);
        self.close(status, out);
        let response = ended(&self.begun, stop, &self.output, usage, wish);
        self.out.event(
            &format!("response.{status}"),
            &format!(r#""response":{response}"#),
            out,
        );
    }

    fn fail(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        self.start(out);
        let code = quoted(failed_code(error));
        let mut told = error.inner().to_string();
        told = set_members(
            &told,
            &[("code", &code), ("request_id", &quoted(&error.request_id))],
        );
        let output = format!("[{}]", self.output.join(","));
        let response = set_members(
            &self.begun,
            &[
                ("status", "\"failed\""),
                ("error", &told),
                ("output", &output),
            ],
        );
        self.out
            .event("response.failed", &format!(r#""response":{response}"#), out);
    }

    fn unsaid(&self) -> Losses {
        let mut losses = Losses::default();
        if self.cut {
            losses.add_to_answer("tool_use", "cut");
        }
        losses
    }
}

impl Encoder {
    fn start(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
            let response = format!(r#""response":{}"#, self.begun);
            self.out.event("response.created", &response, out);
            self.out.event("response.in_progress", &response, out);
        }
    }

    fn open(&mut self, open: BlockStart<'_>, out: &mut Vec<u8>) {
        let item = item(&open.into(), self.output.len(), &self.id, &self.memo);
        added(&item, &mut self.out, out);
        self.item = Some(item);
    }

    fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        if let Some(mut item) = self.item.take() {
            let item = finished(&mut item, status, &mut self.out, out);
            self.cut |= item.is_none();
            self.output.extend(item);
        }
    }
}

fn status(stop: &NeutralStop) -> &'static str {
    if matches!(
        stop,
        NeutralStop::Length | NeutralStop::ContextFull | NeutralStop::Filter
    ) {
        "incomplete"
    } else {
        "completed"
    }
}

/// The response object at its end.
fn ended(
    begun: &str,
    stop: &NeutralStop,
    output: &[String],
    usage: &ReportedUsage,
    wish: UsageWish<'_>,
) -> String {
    let details = match stop {
        NeutralStop::Length | NeutralStop::ContextFull => r#"{"reason":"max_output_tokens"}"#,
        NeutralStop::Filter => r#"{"reason":"content_filter"}"#,
        _ => "null",
    };
    let output = format!("[{}]", output.join(","));
    let (status, usage) = (
        format!("\"{}\"", status(stop)),
        usage_json(usage, wish.cost),
    );
    set_members(
        begun,
        &[
            ("status", &status),
            ("incomplete_details", details),
            ("output", &output),
            ("usage", &usage),
        ],
    )
}

/// The whole answer.
pub(crate) fn encode_answer(
    answer: &NeutralAnswer,
    stop: &NeutralStop,
    memo: &Memo,
    wish: &AnswerWish<'_>,
    usage: &ReportedUsage,
    asked: UsageWish<'_>,
) -> Vec<u8> {
    let last = answer.blocks.len().saturating_sub(1);
    let mut unseen = (Numbered::default(), Vec::new());
    let items = answer
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(index, block)| {
            let mut item = item(&block.kind, index, wish.id, memo);
            item.delta(&block.text, &mut unseen.0, &mut unseen.1);
            unseen.1.clear();
            let status = if index == last && !answer.closed {
                status(stop)
            } else {
                "completed"
            };
            finished(&mut item, status, &mut unseen.0, &mut unseen.1)
        });
    let items: Vec<String> = items.collect();
    ended(&begun(wish), stop, &items, usage, asked).into_bytes()
}
