//! Wire dialects: what the three families look like in bytes. Pure: no async, no I/O, no money.
//!
//! A [`Family`] is a wire dialect. Everything that differs between families is behind [`Protocol`], one unit struct each, and
//! the three folders [`chat`], [`responses`], [`messages`] have the same files with the same function names: who has read one
//! has read all. Only this crate may `match` on a family.
//!
//! - [`json`] walks and splices bytes without building a tree: what is forwarded is never parsed and written again.
//! - [`sse`] cuts a byte stream into frames; a frame is raw bytes and is forwarded as such.
//! - [`inspect`] has the facts the gateway needs from a request, [`usage`] the token classes and their law.
//! - [`error`] has the one error body and each family's words for it.

mod bought;
pub mod chat;
mod content;
pub mod draft;
pub mod error;
pub mod inspect;
pub mod json;
mod media;
pub mod messages;
mod patch;
pub mod responses;
mod sample;
pub mod sse;
mod tools;
pub mod usage;
pub mod weigh;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use draft::{Draft, DraftStop, ToolCall};
pub use error::{Case, ErrorBody, UpstreamError, Words};
pub use inspect::{BadRequest, Content, Detail, Document, Edits, Fate, Inspection, Picture, TextSize};
pub use media::document_bytes;
pub use sample::Sample;
pub use sse::{Frame, FrameReader, FrameTooLarge, Tail};
pub use usage::{Reading, Usage, WireUsage};

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
    /// All families, in the order lists show them.
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
        Self::ALL.into_iter().find(|family| family.name() == text).ok_or(())
    }
}

/// How a provider wants its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthStyle {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    ApiKey,
}

/// One family's dialect.
pub trait Protocol: Send + Sync + fmt::Debug {
    /// Which one.
    fn family(&self) -> Family;

    /// What is appended to a provider's base URL.
    fn path(&self) -> &'static str;

    /// The path a customer calls below the public base URL, for texts: `/v1/chat/completions`.
    fn public_path(&self) -> &'static str;

    /// The field of an output limit; `None` where providers disagree and each says which one it knows.
    fn limit_field(&self) -> Option<&'static str>;

    /// How providers of this family take their key unless told otherwise.
    fn default_auth(&self) -> AuthStyle;

    /// Names (lower case) of request headers that go upstream; all others stop here.
    fn forwarded_headers(&self) -> &'static [&'static str];

    /// Whether a request with a field that no table knows is refused, rather than sent without it.
    fn refuses_unknown_fields(&self) -> bool;

    /// The facts of a request, in one walk over its bytes. Everything refused here is a 400. `seed` is a fresh random number: it
    /// decides which parts of a long text are read.
    ///
    /// # Errors
    /// Not JSON, wrong types, a repeated top-level key, nested deeper than 128, no model, or something bought that has no price.
    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest>;

    /// The request as the upstream gets it: the original bytes with only the named places changed. One copy.
    fn patch(&self, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Vec<u8>;

    /// The facts of a whole answer. `None` when it is not a JSON object.
    fn read_answer(&self, body: &[u8]) -> Option<AnswerFacts>;

    /// A reader for one streamed answer.
    fn stream_reader(&self) -> Box<dyn StreamReader>;

    /// A whole answer made here (the simulated provider).
    fn write_answer(&self, draft: &Draft) -> Vec<u8>;

    /// A streamed answer made here: whole frames, terminal marker included.
    fn write_frames(&self, draft: &Draft) -> Vec<Vec<u8>>;

    /// What this family calls an error case, and its status.
    fn words(&self, case: Case) -> Words;
}

/// Reads the frames of one streamed answer, in order. Keeps what a proper ending needs: ids, open blocks, indices.
pub trait StreamReader: Send {
    /// The facts of the next frame.
    fn read(&mut self, frame: &Frame) -> FrameFacts;

    /// All usage reported so far: per field the last non-null value, and zero never replaces a positive one.
    fn usage(&self) -> &WireUsage;

    /// The id the upstream gave its answer.
    fn answer_id(&self) -> Option<&str>;

    /// Frames that end the answer as this family ends at a length limit, with `usage` as counted here and the public slug.
    /// Cuts in after any frame read so far.
    fn end_at_limit(&mut self, slug: &str, usage: &Usage, wish: UsageWish<'_>) -> Vec<u8>;

    /// The terminal marker, for an upstream that stopped properly and then left it out.
    fn missing_end(&self) -> Vec<u8>;

    /// The frame that tells the customer that a started stream broke. Never looks like a clean end.
    fn error_event(&mut self, slug: &str, error: &ErrorBody) -> Vec<u8>;
}

/// What the customer asked to see about usage in an ending made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageWish<'a> {
    /// Chat: the usage chunk is wanted ([`Inspection::asks_usage`]). The other families always report usage.
    pub chunk: bool,
    /// The value of `usage.cost`, a decimal literal, where it was asked for.
    pub cost: Option<&'a str>,
}

/// What one frame of a streamed answer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameFacts {
    /// Where the model's name stands in the frame's bytes, quotes included; it is replaced by the public slug.
    pub model: Option<Range<usize>>,
    /// Output this frame shows (text, reasoning text, tool arguments), for metering.
    pub shown: TextSize,
    /// The frame says that output is being made which the stream does not show (hidden reasoning has begun or goes on).
    pub hidden: bool,
    /// The frame reported usage (read it with [`StreamReader::usage`]).
    pub usage: bool,
    /// Position of the closing brace of the frame's usage object, where `cost` can be added.
    pub usage_end: Option<usize>,
    /// The usage object has no members (so `cost` needs no comma).
    pub usage_empty: bool,
    /// Members to take out, commas included: what the upstream says about its own price and about who served the answer.
    pub cuts: Vec<Range<usize>>,
    /// This answer's stop reason was seen in this frame.
    pub stop: bool,
    /// This frame and all after it wait for the settlement: it carries the final usage, or is the terminal marker.
    pub last: bool,
    /// The terminal marker of the family.
    pub end: bool,
    /// A usage chunk with no other content, which customers that did not ask for it must not see (chat).
    pub usage_only: bool,
    /// The frame is an error.
    pub error: Option<UpstreamError>,
}

/// What a whole answer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFacts {
    /// Where the model's name stands, quotes included.
    pub model: Option<Range<usize>>,
    /// The upstream's id of the answer.
    pub id: Option<String>,
    /// Usage as reported.
    pub usage: WireUsage,
    /// Position of the closing brace of the usage object.
    pub usage_end: Option<usize>,
    /// The usage object has no members.
    pub usage_empty: bool,
    /// Members to take out, commas included: what the upstream says about its own price and about who served the answer.
    pub cuts: Vec<Range<usize>>,
    /// Output shown.
    pub shown: TextSize,
    /// The stop reason as the upstream wrote it.
    pub stop: Option<String>,
    /// The body is an error although its status may not say so.
    pub error: Option<UpstreamError>,
}
