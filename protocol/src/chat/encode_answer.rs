//! Encodes events as a chat answer, whole or streamed.
//!
//! After an error there is neither a finish chunk nor `[DONE]`: after a clean end clients would continue as if all were well.

use super::logprobs::logprobs;
use super::synthetic::usage_json;
use super::writer::error_event;
use crate::json::quoted;
use crate::translate::event::{AnswerEvent, BlockKind, BlockStart, NeutralAnswer, NeutralStop};
use crate::translate::freeform::{Unwrap, unwrapped};
use crate::translate::ids::Memo;
use crate::translate::neutral::ToolKind;
use crate::translate::text::JsonWriter;
use crate::translate::writing::{self, AnswerWish, Template, declared};
use crate::{ErrorBody, ReportedUsage, UsageWish, sse};

/// Writes the chunks of one answer.
#[derive(Debug)]
pub(crate) struct Encoder {
    memo: Memo,
    /// Id, time and model, as the members of a chunk.
    head: String,
    started: bool,
    calls: usize,
    texts: usize,
    /// Something else came between the last text and this one.
    between: bool,
    delta: Template,
    unwrap: Option<Unwrap>,
    /// The open block has no place in this form of the family.
    mute: bool,
}

pub(crate) fn encoder(memo: Memo, wish: &AnswerWish<'_>) -> Encoder {
    let head = head(wish, "chat.completion.chunk");
    Encoder {
        memo,
        head,
        started: false,
        calls: 0,
        texts: 0,
        between: false,
        delta: Template::default(),
        unwrap: None,
        mute: false,
    }
}

fn head(wish: &AnswerWish<'_>, object: &str) -> String {
    let (id, model) = (quoted(&format!("chatcmpl-{}", wish.id)), quoted(wish.model));
    format!(
        r#""id":{id},"object":"{object}","created":{},"model":{model}"#,
        wish.created
    )
}

impl writing::AnswerEncoder for Encoder {
    fn event(&mut self, event: AnswerEvent<'_>, out: &mut Vec<u8>) {
        if event == AnswerEvent::Ping {
            return out.extend_from_slice(b": ping\n\n");
        }
        self.start(out);
        match event {
            AnswerEvent::Delta(text) => self.write(text, out),
            AnswerEvent::Open(open) => self.open(open, out),
            AnswerEvent::Close => self.close(out),
            AnswerEvent::Logprobs(list) => self.choice("{}", &logprobs(list), "null", out),
            AnswerEvent::Start
            | AnswerEvent::Ping
            | AnswerEvent::Lost(_)
            | AnswerEvent::Stop(_)
            | AnswerEvent::Fail(_) => {}
        }
    }

    fn stop(
        &mut self,
        stop: &NeutralStop,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
        out: &mut Vec<u8>,
    ) {
        self.start(out);
        self.close(out);
        let reason = reason(stop, &self.memo);
        self.chunk("{}", &format!("\"{reason}\""), out);
        if wish.chunk {
            let usage = usage_json(usage, wish.cost);
            out.extend(sse::data(&format!(
                r#"{{{},"choices":[],"usage":{usage}}}"#,
                self.head
            )));
        }
        out.extend(sse::data("[DONE]"));
    }

    fn fail(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        out.extend(error_event(error));
    }
}

impl Encoder {
    fn start(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
            self.chunk(r#"{"role":"assistant","content":""}"#, "null", out);
        }
    }

    fn chunk(&self, delta: &str, finish: &str, out: &mut Vec<u8>) {
        self.choice(delta, "null", finish, out);
    }

    fn choice(&self, delta: &str, logprobs: &str, finish: &str, out: &mut Vec<u8>) {
        let choice = format!(
            r#"{{"index":0,"delta":{delta},"logprobs":{logprobs},"finish_reason":{finish}}}"#
        );
        out.extend(sse::data(&format!(
            r#"{{{},"choices":[{choice}]}}"#,
            self.head
        )));
    }

    /// The frame of a delta whose text follows `before`.
    fn template(&self, before: &str, behind: &str) -> Template {
        Template::new(
            format!(
                "data: {{{},\"choices\":[{{\"index\":0,\"delta\":{{{before}\"",
                self.head
            ),
            &format!("\"{behind}}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"),
        )
    }

    fn open(&mut self, open: BlockStart<'_>, out: &mut Vec<u8>) {
        (self.unwrap, self.mute) = (None, false);
        match open {
            BlockStart::Text => {
                self.delta = self.template("\"content\":", "");
                // A client of this family sees one text: two that something else parted would run together.
                if self.texts > 0 && self.between {
                    self.delta.write("\\n\\n", out);
                }
                self.texts += 1;
                self.between = false;
                return;
            }
            BlockStart::Refusal => self.delta = self.template("\"refusal\":", ""),
            BlockStart::Thinking => self.delta = self.template("\"reasoning_content\":", ""),
            BlockStart::Call { id, name } => self.open_call(id, name, out),
        }
        self.between = true;
    }

    fn open_call(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        let index = self.calls;
        self.calls += 1;
        if self.memo.old_functions {
            self.mute = index > 0;
            return self.open_function(name, out);
        }
        let (name, kind, _) = declared(&self.memo, name);
        let custom = kind == ToolKind::Custom;
        let (word, member) = if custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        let (id, name) = (quoted(id), quoted(name));
        let call = format!(
            r#"{{"index":{index},"id":{id},"type":"{word}","{word}":{{"name":{name},"{member}":""}}}}"#
        );
        self.chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null", out);
        self.delta = self.template(
            &format!("\"tool_calls\":[{{\"index\":{index},\"{word}\":{{\"{member}\":"),
            "}}]",
        );
        self.unwrap = custom.then(Unwrap::default);
    }

    /// The call of an older function; only the first has a place.
    fn open_function(&mut self, name: &str, out: &mut Vec<u8>) {
        if self.mute {
            return;
        }
        let (name, ..) = declared(&self.memo, name);
        let call = format!(r#"{{"name":{},"arguments":""}}"#, quoted(name));
        self.chunk(&format!(r#"{{"function_call":{call}}}"#), "null", out);
        self.delta = self.template("\"function_call\":{\"arguments\":", "}");
    }

    fn write(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.mute {
            return;
        }
        let Some(unwrap) = &mut self.unwrap else {
            return self.delta.write(text, out);
        };
        let mut shown = String::new();
        unwrap.push(text, &mut shown);
        if !shown.is_empty() {
            self.delta.write(&shown, out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(mut unwrap) = self.unwrap.take() {
            let mut shown = String::new();
            unwrap.finish(&mut shown);
            if !shown.is_empty() {
                self.delta.write(&shown, out);
            }
        }
    }
}

fn reason(stop: &NeutralStop, memo: &Memo) -> &'static str {
    match stop {
        NeutralStop::End | NeutralStop::StopString(_) | NeutralStop::Pause | NeutralStop::Other => {
            "stop"
        }
        NeutralStop::ToolUse if memo.old_functions => "function_call",
        NeutralStop::ToolUse => "tool_calls",
        NeutralStop::Length | NeutralStop::ContextFull => "length",
        NeutralStop::Refusal | NeutralStop::Filter => "content_filter",
    }
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
    let mut content = String::new();
    let (mut refusal, mut reasoning) = (String::new(), String::new());
    let (mut texts, mut between) = (0, false);
    let mut calls = JsonWriter::default();
    for block in &answer.blocks {
        match &block.kind {
            BlockKind::Text => {
                if texts > 0 && between {
                    content.push_str("\\n\\n");
                }
                content.push_str(&block.text);
                texts += 1;
                between = false;
                continue;
            }
            BlockKind::Refusal => refusal.push_str(&block.text),
            BlockKind::Thinking => reasoning.push_str(&block.text),
            BlockKind::Call { id, name } => call(&mut calls, id, name, &block.text, memo),
        }
        between = true;
    }
    let mut out = JsonWriter::default();
    out.open('{');
    out.name("role").raw("\"assistant\"");
    if texts > 0 {
        out.name("content").escaped(&content)
    } else {
        out.name("content").raw("null")
    }
    if refusal.is_empty() {
        out.name("refusal").raw("null")
    } else {
        out.name("refusal").escaped(&refusal)
    }
    if !reasoning.is_empty() {
        out.name("reasoning_content").escaped(&reasoning);
    }
    let calls = calls.finish();
    if memo.old_functions {
        first_function(&mut out, answer, memo);
    } else if !calls.is_empty() {
        out.name("tool_calls").raw(&format!("[{calls}]"));
    }
    out.close('}');
    let choice = format!(
        r#"{{"index":0,"message":{},"logprobs":{},"finish_reason":"{}"}}"#,
        out.finish(),
        match answer.logprobs.as_str() {
            "" => "null".to_owned(),
            list => logprobs(&format!("[{list}]")),
        },
        reason(stop, memo)
    );
    let usage = usage_json(usage, asked.cost);
    format!(
        r#"{{{},"choices":[{choice}],"usage":{usage},"system_fingerprint":null}}"#,
        head(wish, "chat.completion")
    )
    .into_bytes()
}

/// The one call that older clients read.
fn first_function(out: &mut JsonWriter, answer: &NeutralAnswer, memo: &Memo) {
    let call = answer.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Call { name, .. } => Some((declared(memo, name).0, &block.text)),
        _ => None,
    });
    if let Some((name, arguments)) = call {
        out.name("function_call").open('{');
        out.name("name").plain(name);
        out.name("arguments").escaped(arguments);
        out.close('}');
    }
}

fn call(out: &mut JsonWriter, id: &str, name: &str, arguments: &str, memo: &Memo) {
    let (name, kind, _) = declared(memo, name);
    let custom = kind == ToolKind::Custom;
    out.open('{');
    out.name("id").plain(id);
    out.name("type")
        .raw(if custom { "\"custom\"" } else { "\"function\"" });
    out.name(if custom { "custom" } else { "function" })
        .open('{');
    out.name("name").plain(name);
    if custom {
        out.name("input").escaped(&unwrapped(arguments))
    } else {
        out.name("arguments").escaped(arguments)
    }
    out.close('}');
    out.close('}');
}
