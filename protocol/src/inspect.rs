//! The facts the gateway needs from a request, the same for every family.
//!
//! An [`Inspection`] borrows nothing: it records where things stand as byte ranges, so that the body can be spliced later
//! without a second walk. Fields nobody needs here are not looked at and pass untouched.

use std::ops::Range;

/// What one request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The model's name as the customer wrote it, unescaped.
    pub model: String,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The declared output limit, when there is one.
    pub limit: Option<u32>,
    /// Answers asked for (`n`), at least 1.
    pub choices: u32,
    /// Tokens set aside for thinking inside the limit.
    pub thinking_budget: Option<u32>,
    /// Whether reasoning may happen that a stream does not show.
    pub hidden_reasoning: bool,
    /// What the model will read.
    pub content: Content,
    /// A cache write for one hour is asked for somewhere.
    pub one_hour_cache: bool,
    /// The customer asked for the usage chunk of a chat stream.
    pub asks_usage: bool,
    /// The customer asked for `usage.cost`.
    pub asks_cost: bool,
    /// Names of server-side search tools that will be taken out, for `x-farebox-removed`.
    pub removed_tools: Vec<String>,
    /// Where the edits go.
    pub places: Places,
}

/// Byte ranges in the request body, for splicing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Just behind the opening brace: where new top-level members go.
    pub start: usize,
    /// The body is `{}` apart from white space.
    pub empty: bool,
    /// The value of `model`, quotes included.
    pub model: Range<usize>,
    /// The value of the limit field that is declared, with its name.
    pub limit: Option<(&'static str, Range<usize>)>,
    /// The value of the second limit field when a chat request declares both with the same value.
    pub limit_twin: Option<Range<usize>>,
    /// Limit fields that are present but `null`: a limit to be inserted under that name replaces the `null`.
    pub nulls: Vec<(&'static str, Range<usize>)>,
    /// The value of `stream_options` (chat) when present.
    pub stream_options: Option<Range<usize>>,
    /// The value of `store` when present.
    pub store: Option<Range<usize>>,
    /// Whole members or array elements to take out, each with one neighbouring comma so that the rest stays valid.
    pub cuts: Vec<Range<usize>>,
}

/// Changes to make to a request on its way to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edits<'a> {
    /// The upstream's name of the model.
    pub model: &'a str,
    /// An output limit to set: the field's name where none is declared, and the value.
    pub limit: Option<(&'a str, u32)>,
}

/// What the model will read, measured without keeping it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// Text of messages, system prompts, tool results and tool schemas.
    pub text: TextSize,
    /// Messages or input items.
    pub messages: u32,
    /// Tools offered.
    pub tools: u32,
    /// Pictures, also those inside tool results.
    pub pictures: Vec<Picture>,
    /// Documents.
    pub documents: Vec<Document>,
}

/// Bytes of text by kind, as they stand in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    /// ASCII bytes.
    pub ascii: u64,
    /// Bytes of other characters.
    pub other: u64,
}

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Size in bytes of an inline picture, decoded; `None` for one given by URL.
    pub bytes: Option<u64>,
    /// Width and height in pixels, when the inline data says so.
    pub size: Option<(u32, u32)>,
    /// How closely the model shall look.
    pub detail: Detail,
}

/// How closely a picture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The family's default.
    #[default]
    Auto,
    /// A fixed small cost.
    Low,
    /// Full size.
    High,
}

/// One inline document. Documents by URL are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Size in bytes, decoded.
    pub bytes: u64,
    /// Pages of a PDF; `None` when they cannot be counted.
    pub pages: Option<u32>,
}

/// Why a request is a 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// What to do about it, in a sentence.
    pub message: String,
    /// The field at fault, as a path: `messages[2].content`.
    pub param: Option<String>,
    /// A stable word for programs, when one helps.
    pub code: Option<&'static str>,
}
