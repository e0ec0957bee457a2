//! Wire dialects: the three families as bytes. Pure: no async, no I/O, no money.
//!
//! A [`Family`] is a wire dialect. Everything that differs between families is behind [`Protocol`], one unit struct each. The three
//! folders [`chat`], [`responses`], [`messages`] have the same files with the same function names, so it is enough to read one.
//! Only this crate may `match` on a family.
//!
//! - [`json`] walks and splices bytes without building a tree: what is forwarded is never parsed and rewritten.
//! - [`sse`] cuts a byte stream into frames; a frame is raw bytes and is forwarded as such.
//! - [`inspect`] has the facts the gateway needs about a request, [`usage`] the token classes and how they are made disjoint.
//! - A [`AnswerReader`] of the target's family interprets frames; a [`EndWriter`] of the customer's family ends a stream that is cut.
//! - [`scripts`] has what vendors' public tokenizers make of scripts.
//! - [`error`] has the error body and each family's words for it.

pub mod address;
mod bad_request;
mod cache;
pub mod chat;
pub mod class;
mod class_fields;
mod content;
mod conversation;
pub mod error;
mod facts;
mod fields;
mod fit;
mod hints;
pub mod inspect;
pub mod json;
mod limits;
mod media;
mod members;
pub mod messages;
mod part_names;
mod patch;
pub mod paths;
mod picture_size;
pub mod prompt;
pub mod question;
mod requests;
pub mod responses;
mod sample;
pub mod scripts;
mod shape;
pub mod sse;
pub mod synthetic;
pub mod talk;
mod target_fit;
mod text_size;
pub mod token_estimate;
mod tools;
pub mod translate;
mod turns;
pub mod usage;
mod walk;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

pub use error::{Case, ErrorBody, UpstreamError, Words};
pub use facts::{
    AnswerFacts, Brings, FrameFacts, FrameMarks, ItemEvent, MoreMarks, Step, StopReason,
};
use json::Edit;
use prompt::UnderstoodPrompt;

pub use bad_request::{BadRequest, Remedy};
pub use class::{ClassPlace, Classes, RequestRegion, SaidClasses, ServiceTier};
pub use conversation::ConversationPlaces;
pub use fit::{Fitted, ToldThinking};
pub use inspect::{Content, Document, Edits, ImageDetail, Inspection, MemberFate, Picture};
pub use media::document_bytes;
pub use responses::{ItemReference, items_of, references};
pub use sample::TextSample;
pub use sse::{Frame, FrameReader, FrameTooLarge, Tail};
pub use synthetic::{SyntheticAnswer, SyntheticStop, ToolCall};
pub use talk::{Talk, TalkTurn};
pub use target_fit::TargetFit;
pub use text_size::TextSize;
pub use usage::{ReportedUsage, UsageReading, WireUsage};

/// A wire dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Chat completions, `/v1/chat/completions`.
    Chat,
    /// Responses, `/v1/responses`.
    Responses,
    /// Native messages, `/native/v1/messages`.
    Messages,
}

impl Family {
    /// All families, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    /// This family's dialect.
    #[must_use]
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Messages => &messages::Messages,
        }
    }

    /// This family's part in translation.
    pub(crate) fn translates(self) -> &'static dyn translate::Translates {
        match self {
            Self::Chat => &chat::Chat,
            Self::Responses => &responses::Responses,
            Self::Messages => &messages::Messages,
        }
    }

    /// The name used in both TOML files and in the journal: `chat`, `responses`, `messages`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }

    /// The name customers read in the canonical table: `native` for messages.
    #[must_use]
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Messages => "native",
            other => other.name(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|family| family.name() == text)
            .ok_or(())
    }
}

/// How a provider expects its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthStyle {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    ApiKey,
    /// `api-key: KEY`; no customer sends it
    PlainApiKey,
}

/// The field in which a provider of the chat family expects an output limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatLimit {
    /// Nothing is known: where the customer declared it, else `max_completion_tokens`
    AsDeclared,
    /// `max_completion_tokens`
    MaxCompletionTokens,
    /// `max_tokens`
    MaxTokens,
}

/// One family's dialect.
pub trait Protocol: Send + Sync + fmt::Debug {
    /// Which family.
    fn family(&self) -> Family;

    /// What is appended to a provider's base URL.
    fn path(&self) -> &'static str;

    /// The same for counting the tokens of a request without running it; `None` if the family has no such path.
    fn count_path(&self) -> Option<&'static str>;

    /// The path that customers call below the public base URL, for texts: `/v1/chat/completions`.
    fn public_path(&self) -> &'static str;

    /// The field of an output limit. Providers of the chat family disagree; `chat` is the one this provider reads, and `declared` the
    /// one the customer used.
    fn limit_field(&self, chat: ChatLimit, declared: Option<&'static str>) -> &'static str;

    /// The field that holds the conversation, for refusals of something inside it.
    fn conversation_field(&self) -> &'static str;

    /// Headers in which customers of this family send their key, in order of precedence.
    fn credentials(&self) -> &'static [AuthStyle];

    /// How providers of this family expect their key by default.
    fn default_auth(&self) -> AuthStyle;

    /// Names (lower case) of request headers that go upstream; no others do.
    fn forwarded_headers(&self) -> &'static [&'static str];

    /// Headers that every request to a provider of this family carries exactly once, with the value for callers who brought none.
    fn required_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Headers that a request for these classes needs, beside those of every request.
    fn class_headers(&self, _classes: Classes) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The field with which this family asks for a tier or a place; `None` if it cannot.
    fn class_field(&self, classes: Classes) -> Option<&'static str>;

    /// Whether a request with a field that no table knows is refused, rather than sent without it.
    fn refuses_unknown_fields(&self) -> bool;

    /// Whether a stream reports cache writes in its first frame, rather than at its end.
    fn counts_cache_first(&self) -> bool;

    /// The facts of a request, in one walk over its bytes. Everything refused here is a 400.
    ///
    /// Long texts are only sampled, and `seed` decides where. The caller passes a fresh random number: if customers could predict
    /// the samples, they could write prompts that look cheap there and are expensive everywhere else.
    ///
    /// # Errors
    /// Not JSON, wrong types, a repeated top-level key, nested deeper than 128, no model, or a field that has no price.
    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest>;

    /// The edits to a request on its way upstream; all other bytes stay as the customer wrote them.
    fn changes(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<Edit<'static>>;

    /// The request as the upstream gets it. One copy.
    fn patch(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8> {
        json::splice(body, &mut self.changes(body, seen, edits))
    }

    /// The same in pieces, without copying long stretches.
    fn pieces(&self, body: &Bytes, seen: &Inspection, edits: &Edits<'_>) -> Vec<Bytes> {
        json::pieces(body, &mut self.changes(body, seen, edits))
    }

    /// The facts of a request whose input is only counted: it needs nothing that only an answer needs.
    ///
    /// # Errors
    /// As [`Protocol::inspect`].
    fn inspect_count(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        self.inspect(body, seed)
    }

    /// What a target of this family is sent to count a request's input; `None` if the body is no JSON object.
    fn count_body(&self, body: &Bytes, seen: &Inspection, edits: &Edits<'_>) -> Option<Vec<Bytes>>;

    /// The document of such a count.
    fn write_count(&self, tokens: u64) -> Value {
        serde_json::json!({ "input_tokens": tokens })
    }

    /// What became of a request on its way to a target of this family.
    fn fitted(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Fitted;

    /// The facts of a whole answer. `None` when it is not a JSON object.
    fn read_answer(&self, body: &[u8]) -> Option<AnswerFacts> {
        self.read_answer_with(body, None)
    }

    /// The same of a provider that may add something.
    fn read_answer_with(
        &self,
        body: &[u8],
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts>;

    /// A sample of a whole answer's text, placed by a secret seed. It takes a second walk, so it is taken only for the few answers
    /// that need it.
    fn sample_answer(&self, body: &[u8], seed: u64) -> TextSample;

    /// A reader for one streamed answer of a target of this family.
    fn reader(&self) -> Box<dyn AnswerReader>;

    /// A writer for one streamed answer to a customer of this family.
    fn writer(&self) -> Box<dyn EndWriter>;

    /// A usage object; `cost` is a decimal literal, copied unchanged.
    fn usage_json(&self, usage: &ReportedUsage, cost: Option<&str>) -> String;

    /// A whole answer, already as its customer gets it, with these counts instead of its target's.
    fn with_usage(&self, body: &[u8], usage: &ReportedUsage, cost: Option<&str>) -> Vec<u8> {
        let counts = self.usage_json(usage, cost);
        let body = String::from_utf8_lossy(body);
        json::set_members(&body, &[("usage", &counts)]).into_bytes()
    }

    /// A whole answer as the stream that its customer asked for: what this family's services would have sent. `None` if the answer is
    /// none of this family.
    fn as_stream(&self, body: &[u8]) -> Option<Vec<u8>>;

    /// The smallest request: one question, and an output limit under this name.
    fn write_question_as(&self, model: &str, words: &str, limit: (&str, u32)) -> String;

    /// The same, under the name that every gateway reads.
    fn write_question(&self, model: &str, words: &str, limit: u32) -> String {
        let field = self.limit_field(ChatLimit::MaxTokens, None);
        self.write_question_as(model, words, (field, limit))
    }

    /// The smallest output limit that providers accept.
    fn least_output(&self) -> u32 {
        1
    }

    /// The first text of a whole answer.
    fn first_text<'a>(&self, answer: &'a Value) -> Option<&'a str>;

    /// The simulated provider's reading of a request.
    ///
    /// # Errors
    /// What is wrong with it, for the customer.
    fn read_prompt(&self, body: &[u8]) -> Result<UnderstoodPrompt, String>;

    /// A whole answer of the simulated provider.
    fn write_answer(&self, draft: &SyntheticAnswer) -> Vec<u8>;

    /// A streamed answer of the simulated provider: whole frames, terminal marker included.
    fn write_frames(&self, draft: &SyntheticAnswer) -> Vec<Vec<u8>>;

    /// This family's words for an error case, and its status: those of `/v1`, unless it has its own.
    fn words(&self, case: Case) -> Words {
        error::v1_words(case)
    }
}

/// What a provider may add to its answers: members that its family does not have.
pub trait Additions: fmt::Debug + Send + Sync {
    /// Whether members of this name pass wherever they are.
    fn allows(&self, name: &str) -> bool;

    /// Whether a member, `"name": value` as it stands in the answer, tells nothing about who answered.
    fn is_harmless(&self, member: &str) -> bool;
}

/// Reads the frames of one streamed answer, in order; belongs to the family of the target.
pub trait AnswerReader: Send {
    /// Called before the first frame, with the number of requested choices and the secret seed of the sample.
    fn expect(&mut self, choices: u32, seed: u64);

    /// Lets the provider add something. Without this nothing passes that its family does not have.
    fn allow(&mut self, additions: &Arc<dyn Additions>);

    /// The facts of the next frame.
    fn read(&mut self, frame: &Frame) -> FrameFacts;

    /// All usage reported so far: per field the last non-null value, and zero never replaces a positive one.
    fn usage(&self) -> &WireUsage;

    /// The id the upstream gave its answer.
    fn answer_id(&self) -> Option<&str>;

    /// A sample of the output shown so far.
    fn sample(&self) -> &TextSample;
}

/// Writes the end of a streamed answer that the gateway ends itself, in the family of the customer.
///
/// It knows only what was passed on: open blocks, indices, sequence numbers. An ending can follow any observed frame.
pub trait EndWriter: Send {
    /// Observes a frame that goes to the customer, with its facts.
    fn observe(&mut self, frame: &Frame, facts: &FrameFacts);

    /// Frames that end the answer as this family ends at a length limit, with `usage` as counted here. If the answer was still
    /// being written, `words` of the gateway precede its end, as a block or an item of their own where the family has such. They are
    /// no part of the usage.
    fn end_at_limit(
        &self,
        answer: PublicAnswer<'_>,
        words: Option<&str>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<u8>;

    /// The last frames of an answer with these counts in the family's place, for a target that counted nothing, or more than once.
    fn with_counts(
        &self,
        last: Vec<Bytes>,
        answer: PublicAnswer<'_>,
        usage: &ReportedUsage,
        wish: UsageWish<'_>,
    ) -> Vec<Bytes>;

    /// A frame that counts what the answer has so far, without that count: clients may add counts up. Only chat has such frames.
    fn without_count(&self, frame: Bytes) -> Bytes {
        frame
    }

    /// The terminal marker, for an upstream that stopped properly but omitted it.
    fn missing_end(&self) -> Vec<u8>;

    /// The frame that tells the customer that a started stream broke. Never looks like a clean end.
    fn error_event(&self, answer: PublicAnswer<'_>, error: &ErrorBody) -> Vec<u8>;
}

/// What the customer calls an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAnswer<'a> {
    /// The model, as the customer named it: by its public slug or an alias of it.
    pub model: &'a str,
    /// The id from its first frame; `None` if there was none.
    pub id: Option<&'a str>,
}

/// What the customer asked to see about usage, for an ending that the gateway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageWish<'a> {
    /// Chat: the usage chunk is wanted ([`Inspection::asks_usage`]). The other families always report usage.
    pub chunk: bool,
    /// The value of `usage.cost`, a decimal literal, if it was asked for.
    pub cost: Option<&'a str>,
}
