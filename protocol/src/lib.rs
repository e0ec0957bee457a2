//! Wire dialects: the three families as bytes. Pure: no async, no I/O, no money.
//!
//! A [`Family`] is a wire dialect. Everything that differs between families is in [`Protocol`], one table each. The three
//! folders [`chat`], [`responses`], [`messages`] have the same files with the same function names, so it is enough to read one.
//! Only this crate may `match` on a family.
//!
//! - [`json`] walks and splices bytes without building a tree: what is forwarded is never parsed and rewritten.
//! - [`sse`] cuts a byte stream into frames; a frame is raw bytes and is forwarded as such.
//! - [`inspect`] has the facts the gateway needs about a request, [`usage`] the token classes and how they are made disjoint.
//! - A [`AnswerReader`] of the target's family interprets frames; a [`EndWriter`] of the customer's family ends a stream that is cut.
//! - A [`CallDialect`] is a paid request that is no conversation: embeddings, rerank.
//! - [`scripts`] has what vendors' public tokenizers make of scripts.
//! - [`error`] has the error body and each family's words for it.

pub mod address;
mod bad_request;
mod cache;
mod calls;
pub mod chat;
pub mod class;
mod class_fields;
mod content;
mod conversation;
mod dialect;
mod end_user;
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

pub use error::{Case, ErrorBody, UpstreamError, Words};
pub use facts::{
    AnswerFacts, Brings, FrameFacts, FrameMarks, ItemEvent, MoreMarks, Step, StopReason,
};

pub use bad_request::{BadRequest, Remedy};
pub use calls::{CallDialect, CallKind, WirePath};
pub use class::{ClassPlace, Classes, RequestRegion, SaidClasses, ServiceTier};
pub use conversation::ConversationPlaces;
pub use dialect::Protocol;
pub use end_user::{END_USER_FIELDS, EndUserEcho};
pub use fit::Fitted;
pub use inspect::{
    Content, Document, Edits, ImageDetail, Inspection, MemberFate, Picture, SentCustomer,
    ToldThinking,
};
pub use media::document_bytes;
pub use responses::{ItemReference, items_of, references};
pub use sample::TextSample;
pub use sse::{Frame, FrameReader, FrameTooLarge, Tail};
pub use synthetic::{SyntheticAnswer, SyntheticStop, ToolCall};
pub use talk::{Talk, TalkTurn};
pub use target_fit::TargetFit;
pub use text_size::TextSize;
pub use usage::{CostField, ReportedUsage, SaidCosts, UsageReading, WireUsage};

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
    pub fn protocol(self) -> &'static Protocol {
        match self {
            Self::Chat => &chat::PROTOCOL,
            Self::Responses => &responses::PROTOCOL,
            Self::Messages => &messages::PROTOCOL,
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

/// What the customer sees of usage, for an ending that the gateway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageWish<'a> {
    /// Chat: the usage chunk is wanted ([`Inspection::asks_usage`]). The other families always report usage.
    pub chunk: bool,
    /// The value of `usage.cost`, a decimal literal, where it is shown.
    pub cost: Option<&'a str>,
}
