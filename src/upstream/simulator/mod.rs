//! The built-in provider: answers in process, without a network, the same way for the same request.
//!
//! It is a provider like any other: its answers are judged like those from a connection, and its usage is exact by its own tokenizer
//! (four characters per token). It answers whatever it can read; what real services refuse besides is no business of a demo's. Some of
//! its models misbehave on purpose, by their upstream name: `sim-slow`, `sim-cut`, `sim-529`, `sim-no-usage`, `sim-json`; every
//! other name behaves.

mod memory;
mod speak;
mod tools;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use farebox_protocol::{Case, Family, ReportedUsage, SyntheticAnswer, SyntheticStop, ToolCall};
use serde_json::json;

use super::reply::{DeclaredType, UnjudgedReply};
use super::stream::{AnswerBody, Paced};
use super::{TargetOperation, UpstreamCall};
use crate::clock;
use farebox_protocol::prompt::{BLOCK_CHARS, CHARS_PER_TOKEN, UnderstoodPrompt};
use memory::Memory;

/// Between two frames of an ordinary stream.
const PACE: Duration = Duration::from_millis(5);
const SLOW_START: Duration = Duration::from_secs(2);
const SLOW_PACE: Duration = Duration::from_millis(200);

/// The built-in provider and the prompts it remembers.
#[derive(Default)]
pub(super) struct Simulated {
    memory: Memory,
    answers: AtomicU64,
    /// For tests: a recorded stream that every model plays instead of its answer.
    #[cfg(test)]
    pub(super) recorded: std::sync::Mutex<Option<Recorded>>,
}

/// A recorded stream: its pieces with the wait before each, and whether the connection breaks after them.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorded {
    pub(crate) pieces: Vec<(Duration, Bytes)>,
    pub(crate) broken: bool,
}

/// How a model misbehaves on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Proper,
    Slow,
    Cut,
    Overloaded,
    NoUsage,
    JsonToStream,
}

impl Manner {
    fn of(model: &str) -> Self {
        match model {
            "sim-slow" => Self::Slow,
            "sim-cut" => Self::Cut,
            "sim-529" => Self::Overloaded,
            "sim-no-usage" => Self::NoUsage,
            "sim-json" => Self::JsonToStream,
            _ => Self::Proper,
        }
    }
}

impl Simulated {
    /// The answer to a request. The waits have not happened yet: they are in the body.
    pub(super) fn answer(
        &self,
        call: &UpstreamCall<'_>,
        model: &str,
        body: &[u8],
    ) -> UnjudgedReply {
        #[cfg(test)]
        if let Some(Recorded { pieces, broken }) = self.recorded.lock().unwrap().clone() {
            return reply(
                200,
                if call.stream {
                    DeclaredType::Events
                } else {
                    DeclaredType::Json
                },
                Paced::new(pieces, broken),
            );
        }
        let manner = Manner::of(model);
        if manner == Manner::Overloaded {
            return refusal(529, "overloaded_error", "Overloaded");
        }
        if let Some(kind) = call.kind() {
            return match kind.dialect().simulate(body, model) {
                Ok(answer) => whole(answer.into_bytes(), manner),
                Err(message) => refusal(400, "invalid_request_error", &message),
            };
        }
        let prompt = match call.family.protocol().read_prompt(body) {
            Ok(prompt) => prompt,
            Err(message) => {
                return refusal(
                    400,
                    call.family.protocol().words(Case::BadRequest).kind,
                    &message,
                );
            }
        };
        if call.operation == TargetOperation::CountTokens {
            return whole(
                json!({"input_tokens": prompt.tokens()})
                    .to_string()
                    .into_bytes(),
                manner,
            );
        }
        let draft = self.draft(&prompt, model, manner);
        if call.stream && manner != Manner::JsonToStream {
            stream(&draft, call.family, manner)
        } else {
            whole(call.family.protocol().write_answer(&draft), manner)
        }
    }

    fn draft(&self, prompt: &UnderstoodPrompt, model: &str, manner: Manner) -> SyntheticAnswer {
        let now = clock::now().millis();
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let id = format!("sim{now:x}{number:04x}");
        let limit = prompt.limit.unwrap_or(u64::MAX);
        let call = tools::wanted(prompt).filter(|(name, arguments)| {
            tokens(name.chars().count() + arguments.chars().count()) <= limit
        });
        let (text, stop) = match &call {
            Some(_) => (String::new(), SyntheticStop::Tool),
            None => speak::within(speak::text(prompt), limit),
        };
        let said = text.chars().count()
            + call.as_ref().map_or(0, |(name, arguments)| {
                name.chars().count() + arguments.chars().count()
            });
        let usage = self.usage(prompt, tokens(said));
        SyntheticAnswer {
            tool: call.map(|(name, arguments)| ToolCall {
                id: id.clone(),
                name,
                arguments,
            }),
            id,
            model: model.to_owned(),
            created: now / 1_000,
            pieces: speak::pieces(&text),
            usage: (manner != Manner::NoUsage).then_some(usage),
            stop,
            classes: prompt.classes,
            stream_usage: prompt.stream_usage,
        }
    }

    fn usage(&self, prompt: &UnderstoodPrompt, output: u64) -> ReportedUsage {
        let total = prompt.tokens();
        let cache_read = self
            .memory
            .recall(&prompt.tape.blocks)
            .min(total.saturating_sub(1));
        let marked = prompt
            .tape
            .marked
            .map_or(0, tokens_of_blocks)
            .min(total.saturating_sub(1));
        let written = marked.saturating_sub(cache_read);
        let (cache_write, cache_write_1h) = if prompt.tape.one_hour {
            (0, written)
        } else {
            (written, 0)
        };
        ReportedUsage {
            input: total - cache_read - written,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            ..ReportedUsage::default()
        }
    }
}

/// Characters as tokens.
fn tokens(chars: usize) -> u64 {
    u64::try_from(chars)
        .unwrap_or(u64::MAX)
        .div_ceil(CHARS_PER_TOKEN)
}

/// The tokens of the whole remembered blocks in `chars` characters.
fn tokens_of_blocks(chars: u64) -> u64 {
    chars / BLOCK_CHARS * (BLOCK_CHARS / CHARS_PER_TOKEN)
}

fn refusal(status: u16, kind: &str, message: &str) -> UnjudgedReply {
    let body = json!({"type": "error", "error": {"type": kind, "code": null, "param": null, "message": message}});
    let body = Bytes::from(body.to_string());
    reply(
        status,
        DeclaredType::Json,
        Paced::new([(Duration::ZERO, body)], false),
    )
}

fn whole(body: Vec<u8>, manner: Manner) -> UnjudgedReply {
    let wait = if manner == Manner::Slow {
        SLOW_START
    } else {
        Duration::ZERO
    };
    let pieces = (manner != Manner::Cut).then_some((wait, Bytes::from(body)));
    reply(
        200,
        DeclaredType::Json,
        Paced::new(pieces, manner == Manner::Cut),
    )
}

fn stream(draft: &SyntheticAnswer, family: Family, manner: Manner) -> UnjudgedReply {
    let (first, pace) = if manner == Manner::Slow {
        (SLOW_START, SLOW_PACE)
    } else {
        (Duration::ZERO, PACE)
    };
    let frames = family.protocol().write_frames(draft);
    // Half, rounded down: even the shortest answer breaks off before it says why it ended.
    let sent = if manner == Manner::Cut {
        frames.len() / 2
    } else {
        frames.len()
    };
    let waits = std::iter::once(first).chain(std::iter::repeat(pace));
    let pieces = waits.zip(frames.into_iter().map(Bytes::from)).take(sent);
    reply(
        200,
        DeclaredType::Events,
        Paced::new(pieces, manner == Manner::Cut),
    )
}

fn reply(status: u16, kind: DeclaredType, body: Paced) -> UnjudgedReply {
    UnjudgedReply {
        status,
        kind,
        retry_after: None,
        body: AnswerBody::Paced(body),
    }
}

#[cfg(test)]
mod tests;
