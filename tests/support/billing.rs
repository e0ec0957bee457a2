//! An upstream that bills: it counts every prompt it reads and every token it produces, with independent code.
//!
//! It counts text with `tiktoken-rs`, documents with `lopdf`, pictures by the published rule of tiles; the gateway uses none of
//! them. Whatever usage it reports, it bills what an honest provider would: the whole prompt and, for a stream that is cut, the
//! pieces that were sent and the reasoning that the time allowed. `billing/provider.rs` is the same provider in a time of its own, with
//! queues, caches and whatever else providers have.
#![cfg(test)]

pub(crate) mod counting;
pub(crate) mod frames;
pub(crate) mod making;
pub(crate) mod provider;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use super::load::before_pieces;
use super::upstream::classes::{self, Serves};
use super::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};

use counting::tokens;
pub(crate) use counting::{prompt, words};

/// Tokens of hidden reasoning that this upstream makes in a second: less than the 150 that the gateway assumes.
const THINKING: u64 = 130;
/// Fields and types that would buy something beyond tokens; each costs a dollar here.
const DEAR: [&str; 6] = [
    "\"web_search_options\"",
    "\"search_parameters\"",
    "\"video/mp4\"",
    "\"gs://",
    "data:video",
    "code_interpreter",
];

/// Tokens of one request, as billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Billed {
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// What of the input was read from its cache, and written to it.
    pub(crate) cached: [u64; 2],
    /// Services without a price here, in picodollars.
    pub(crate) extras: i64,
    /// The class that its answer says it served, and the one that it was asked for, in thousandths of the standard price; 0 is 1,000.
    pub(crate) times: (i64, i64),
}

impl Billed {
    /// In picodollars, at $3 and $15 a million.
    pub(crate) fn cost(self) -> i64 {
        self.standard() * times(self.times.0) / 1_000
    }

    /// At other prices of a token, in picodollars: of fresh input, output, and input that was read from the cache and written to it.
    pub(crate) fn at(self, [input, output, read, written]: [i64; 4]) -> i64 {
        let fresh = self.input - self.cached[0] - self.cached[1];
        let counts = [fresh, self.output, self.cached[0], self.cached[1]];
        let counts = counts.map(|count| i64::try_from(count).unwrap());
        counts[0] * input + counts[1] * output + counts[2] * read + counts[3] * written
    }

    fn standard(self) -> i64 {
        i64::try_from(self.input * 3_000_000 + self.output * 15_000_000).unwrap() + self.extras
    }

    /// What it would have been in the class that was asked for.
    pub(crate) fn as_asked(self) -> i64 {
        self.standard() * times(self.times.1) / 1_000
    }

    /// The same, without what a dearer class than the dearest of the standard and the one asked for costs beyond that.
    pub(crate) fn fair(self) -> i64 {
        let most = times(self.times.1).max(1_000);
        self.standard() * times(self.times.0).min(most) / 1_000
    }
}

fn times(thousandths: i64) -> i64 {
    if thousandths == 0 { 1_000 } else { thousandths }
}

/// When an upstream reasons without showing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Thinks {
    /// Before its first word, behind the frames that begin a stream.
    #[default]
    BeforeWords,
    /// Before it sends anything at all.
    BeforeFrames,
}

/// How this upstream behaves. It bills the truth in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Manner {
    /// It reports no usage.
    pub(crate) silent_usage: bool,
    /// It claims that nothing was used.
    pub(crate) zero_usage: bool,
    /// Tokens of reasoning that no frame shows, for each choice; they take their time.
    pub(crate) hidden: u64,
    /// How many of them it makes in a second; 0: [`THINKING`].
    pub(crate) thinking: u64,
    /// When they are made.
    pub(crate) thinks: Thinks,
    /// It counts reasoning in addition to its output.
    pub(crate) outside: bool,
    /// Milliseconds before the head, and before each piece of a stream.
    pub(crate) late: u64,
    pub(crate) pace: u64,
    /// Characters of a piece; 0: a word.
    pub(crate) piece: usize,
    /// It writes a prompt with a cache mark to its cache, at 1.25 times the price.
    pub(crate) caches: bool,
    /// It reads from its cache what a prompt has in common with an earlier one, at a tenth of the price: whole messages, in steps of
    /// 128 tokens.
    pub(crate) remembers: bool,
    /// It produces no more than the limit it was sent, reasoning included unless that is counted in addition.
    pub(crate) limited: bool,
    /// It reports its count for an answer without text, whatever it does otherwise.
    pub(crate) counts_silence: bool,
    /// Which class it serves, and what it says of that.
    pub(crate) serves: Serves,
}

impl Manner {
    fn speed(&self) -> u64 {
        if self.thinking > 0 {
            self.thinking
        } else {
            THINKING
        }
    }

    /// Parts of a stream before it reasons, of which `before` come before its text.
    fn before_thinking(&self, before: usize) -> usize {
        match self.thinks {
            Thinks::BeforeFrames => 0,
            Thinks::BeforeWords => before,
        }
    }
}

/// One answer as it was begun.
#[derive(Debug, Clone)]
struct Begun {
    billed: Billed,
    /// Which request of the upstream it answers.
    number: usize,
    choices: u64,
    manner: Manner,
    /// Its pieces, frames before the first, and frames sent; `None` for a whole answer.
    stream: Option<(Vec<String>, usize, Arc<AtomicUsize>)>,
    at: Instant,
}

/// The bills of one upstream, and the prompts that it remembers: their messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bills(Arc<Mutex<Vec<Begun>>>, Arc<Mutex<Vec<Vec<Value>>>>);

impl Bills {
    /// The bill if every answer had reached its end.
    pub(crate) fn all(&self) -> Vec<Billed> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|begun| begun.billed)
            .collect()
    }

    /// The bill, now that every answer has ended.
    pub(crate) fn ended(&self, upstream: &ScriptedUpstream) -> Vec<Billed> {
        let (begun, closings) = (self.0.lock().unwrap().clone(), upstream.closings());
        begun
            .iter()
            .map(|one| one.made(closings[one.number]))
            .collect()
    }

    /// The answer to one request, billed.
    pub(crate) fn reply(&self, seen: &Seen, number: usize, text: &str, manner: Manner) -> Reply {
        let path = seen.path.split('?').next().unwrap();
        let family = Family::ALL
            .into_iter()
            .find(|family| path.ends_with(family.protocol().path))
            .unwrap();
        let body = read(&seen.body);
        let choices = body["n"].as_u64().unwrap_or(1);
        let limit = ["max_completion_tokens", "max_tokens", "max_output_tokens"]
            .iter()
            .find_map(|name| body[*name].as_u64());
        let limit = limit.filter(|_| manner.limited).unwrap_or(u64::MAX);
        let manner = Manner {
            hidden: manner
                .hidden
                .min(if manner.outside { u64::MAX } else { limit }),
            ..manner
        };
        let reasoned = if manner.outside { 0 } else { manner.hidden };
        let whole = text;
        let pieces = within(whole, manner.piece, limit - reasoned.min(limit));
        let text = pieces.concat();
        let counts = manner.counts_silence && text.is_empty();
        let manner = Manner {
            silent_usage: manner.silent_usage && !counts,
            zero_usage: manner.zero_usage && !counts,
            ..manner
        };
        let raw = String::from_utf8_lossy(&seen.body);
        let extras =
            DEAR.iter().filter(|name| raw.contains(**name)).count() as i64 * 1_000_000_000_000;
        let input = prompt(&body);
        let marked = raw.contains("\"ephemeral\"");
        let read = if manner.remembers && (marked || !manner.caches) {
            self.remembered(&body).min(input)
        } else {
            0
        };
        let written = if manner.caches && marked {
            input - read
        } else {
            0
        };
        let extras = extras + i64::try_from(written).unwrap() * 750_000
            - i64::try_from(read).unwrap() * 2_700_000;
        // Nothing is taken from a prediction, so all of it is billed.
        let shown = (words(&text) + tokens(&body["prediction"]["content"])) * choices;
        let asked = classes::asked(&body);
        let saying = manner.serves.saying(asked, family == Family::Messages);
        let billed = Billed {
            input,
            output: shown + manner.hidden * choices,
            cached: [read, written],
            extras,
            times: (saying.times, asked.times()),
        };
        let usage = ReportedUsage {
            input: input - written - read,
            cache_read: read,
            cache_write: written,
            output: shown,
            reasoning: manner.hidden * choices,
            ..ReportedUsage::default()
        };
        let speech = Speech::new(family, &text)
            .usage(usage)
            .choices(if family == Family::Chat { choices } else { 1 })
            .saying(saying);
        let speech = if manner.piece > 0 {
            speech.in_pieces_of(manner.piece)
        } else {
            speech
        };
        let speech = if text.len() < whole.len() {
            speech.stop(match family {
                Family::Chat => "length",
                Family::Responses => "incomplete",
                Family::Messages => "max_tokens",
            })
        } else {
            speech
        };
        let speech = speech.with(manner, family, usage);
        let stream = body["stream"] == true;
        let before = before_pieces(family);
        let thinking = Duration::from_millis(manner.hidden * 1_000 / manner.speed());
        let sent = stream.then(|| (pieces, before, Arc::clone(&seen.sent)));
        let reply = if stream {
            speech
                .stream()
                .wait_after(manner.before_thinking(before), thinking)
        } else {
            speech.whole().late(thinking)
        };
        let begun = Begun {
            billed,
            number,
            choices,
            manner,
            stream: sent,
            at: seen.at,
        };
        self.0.lock().unwrap().push(begun);
        let reply = if stream && manner.pace > 0 {
            reply.paced(Duration::from_millis(manner.pace))
        } else {
            reply
        };
        reply.late(Duration::from_millis(manner.late))
    }

    /// Tokens of the longest beginning that this prompt has in common with an earlier one.
    fn remembered(&self, body: &Value) -> u64 {
        let list = body.get("messages").or(body.get("input")).unwrap();
        let messages: Vec<Value> = list.as_array().unwrap().iter().map(unmarked).collect();
        let mut earlier = self.1.lock().unwrap();
        let common = |other: &Vec<Value>| {
            let same = messages
                .iter()
                .zip(other)
                .take_while(|(one, two)| one == two);
            same.map(|(message, _)| tokens(message)).sum::<u64>()
        };
        let longest = earlier.iter().map(common).max().unwrap_or(0);
        if !earlier.contains(&messages) {
            earlier.push(messages);
        }
        longest / 128 * 128
    }

    /// An upstream that answers with this text and writes its bills here.
    pub(crate) fn answering(&self, text: &str, manner: Manner) -> Script {
        let (bills, text) = (self.clone(), text.to_owned());
        Script::by(move |seen, number| bills.reply(seen, number, &text, manner))
    }
}

impl Begun {
    /// What had been produced when the connection was closed, if it was.
    fn made(&self, closed: Option<Instant>) -> Billed {
        let Some(closed) = closed else {
            return self.billed;
        };
        let Some((pieces, before, sent)) = &self.stream else {
            // Nobody sees how far a whole answer has come: as far as the time allows.
            let time = closed.saturating_duration_since(self.at).as_millis() as u64;
            return Billed {
                output: self
                    .billed
                    .output
                    .min(time * self.manner.speed() / 1_000 * self.choices),
                ..self.billed
            };
        };
        let parts = sent.load(Ordering::SeqCst);
        let sent = parts.saturating_sub(*before).min(pieces.len());
        let began = self.at + Duration::from_millis(self.manner.late);
        let thought = closed.saturating_duration_since(began).as_millis() as u64
            * self.manner.speed()
            / 1_000;
        let hidden = if parts > self.manner.before_thinking(*before) {
            self.manner.hidden
        } else {
            self.manner.hidden.min(thought)
        };
        let left = words(&pieces.concat()) - words(&pieces[..sent].concat());
        let thought = self.manner.hidden - hidden;
        Billed {
            output: self.billed.output - (left + thought) * self.choices,
            ..self.billed
        }
    }
}

/// A message without its cache marks.
fn unmarked(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(parts) = message["content"].as_array_mut() {
        for part in parts {
            part.as_object_mut().unwrap().remove("cache_control");
        }
    }
    message
}

/// The body as lenient servers read it: half of a surrogate pair stands for a character that does not exist.
fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body)
            .replace("\\ud800", "\\ufffd")
            .replace("\\udc00", "\\ufffd");
        serde_json::from_str(&text).expect("the request's body is JSON")
    })
}

impl Speech {
    /// The usage that the provider reports.
    fn with(self, manner: Manner, family: Family, usage: ReportedUsage) -> Self {
        let (input, output, reasoning) = (usage.input, usage.output, usage.reasoning);
        match (family, manner) {
            (_, Manner { silent_usage: true, .. }) => self.claims(Value::Null),
            (Family::Chat, Manner { zero_usage: true, .. }) => self.claims(json!({"prompt_tokens": 0, "completion_tokens": 0})),
            (_, Manner { zero_usage: true, .. }) => self.claims(json!({"input_tokens": 0, "output_tokens": 0})),
            (Family::Chat, Manner { outside: true, .. }) => self.claims(json!({
                "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output + reasoning,
                "completion_tokens_details": {"reasoning_tokens": reasoning}})),
            (Family::Responses, Manner { outside: true, .. }) => self.claims(json!({
                "input_tokens": input, "output_tokens": output, "total_tokens": input + output + reasoning,
                "output_tokens_details": {"reasoning_tokens": reasoning}})),
            _ => self,
        }
    }
}

/// The pieces of a text that fit into a limit of tokens.
fn within(text: &str, piece: usize, limit: u64) -> Vec<String> {
    let text = &*beginning(text, limit);
    if piece > 0 {
        text.chars()
            .collect::<Vec<_>>()
            .chunks(piece)
            .map(|piece| piece.iter().collect())
            .collect()
    } else {
        text.split_inclusive(' ').map(str::to_owned).collect()
    }
}

/// The text, or its first `limit` tokens.
fn beginning(text: &str, limit: u64) -> Cow<'_, str> {
    if words(text) <= limit {
        return Cow::Borrowed(text);
    }
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let mut tokens = tokenizer.encode_ordinary(text);
    tokens.truncate(limit as usize);
    // A character may be cut by the end.
    loop {
        match tokenizer.decode(&tokens) {
            Ok(beginning) => return Cow::Owned(beginning),
            Err(_) => tokens.pop(),
        };
    }
}
