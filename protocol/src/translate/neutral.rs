//! A request in neutral form: decoders produce it and encoders consume it.
//!
//! Holds what at least two families can express, and borrows it from the body. Fields of a single family are judged by that
//! family's table and never get here.

use std::borrow::Cow;

use super::text::Escaped;
use crate::ServiceTier;

/// A request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NeutralPrompt<'a> {
    /// System prompt: blocks of text.
    pub system: Vec<NeutralBlock<'a>>,
    /// The conversation.
    pub turns: Vec<NeutralTurn<'a>>,
    /// Tools offered.
    pub tools: Vec<NeutralTool<'a>>,
    /// The tools came in chat's older form.
    pub old_functions: bool,
    /// Which tool may or must be called.
    pub choice: Option<ToolChoice<'a>>,
    /// Whether several calls may come at once.
    pub parallel: Option<bool>,
    /// The output limit.
    pub limit: Option<u32>,
    /// Temperature, as the number was written.
    pub temperature: Option<&'a str>,
    /// Nucleus sampling, as the number was written.
    pub top_p: Option<&'a str>,
    /// How many candidates are sampled from, as the number was written.
    pub top_k: Option<&'a str>,
    /// The probabilities of the answer's tokens are wanted.
    pub logprobs: bool,
    /// And so many alternatives to each.
    pub top_logprobs: Option<u32>,
    /// Texts that end the answer.
    pub stops: Vec<Escaped<'a>>,
    /// How much the model should think.
    pub thinking: Thinking,
    /// The form of the answer.
    pub format: Option<AnswerFormat<'a>>,
    /// The verbosity of the answer.
    pub verbosity: Option<Escaped<'a>>,
    /// Requests with one key share cached prefixes.
    pub cache_key: Option<Escaped<'a>>,
    /// The customer's end user.
    pub user: Option<Cow<'a, str>>,
    /// The tier that is asked for, if it has a price of its own.
    pub tier: ServiceTier,
    /// Whether only standard capacity will do.
    pub standard_tier: Option<bool>,
    /// Whether the answer is streamed.
    pub stream: bool,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The customer, and results of tools.
    User,
    /// The model.
    Assistant,
    /// A system or developer message between turns.
    System,
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct NeutralTurn<'a> {
    /// Who speaks.
    pub role: Role,
    /// Its content.
    pub blocks: Vec<NeutralBlock<'a>>,
}

/// One piece of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum NeutralBlock<'a> {
    /// Text.
    Text {
        /// The text.
        text: Escaped<'a>,
        /// A prompt cache mark.
        cache: Option<Cache>,
    },
    /// A picture.
    Image {
        /// Its source.
        source: MediaSource<'a>,
        /// The requested detail, in the words of chat and responses.
        detail: Option<Escaped<'a>>,
        /// A prompt cache mark.
        cache: Option<Cache>,
    },
    /// A document.
    File {
        /// Its source.
        source: MediaSource<'a>,
        /// Its name.
        name: Option<Escaped<'a>>,
        /// A prompt cache mark.
        cache: Option<Cache>,
    },
    /// A call of a tool.
    Call(NeutralCall<'a>),
    /// The result of a call.
    Result(CallResult<'a>),
    /// Thinking of an earlier turn. Its seal is never carried, so only the text is left.
    Thinking {
        /// The visible part of it.
        text: Escaped<'a>,
    },
}

/// A prompt cache mark, by its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The usual time.
    Short,
    /// One hour or longer.
    Long,
}

/// The source of a picture or document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource<'a> {
    /// Inline.
    Base64 {
        /// Media type.
        media: Escaped<'a>,
        /// Base64 text.
        data: Escaped<'a>,
    },
    /// By address.
    Url(Escaped<'a>),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeutralCall<'a> {
    /// Its id; empty if the family gave none.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The tool's namespace.
    pub namespace: Option<Cow<'a, str>>,
    /// How the tool was called.
    pub kind: ToolKind,
    /// JSON for a function, plain text for a custom tool.
    pub arguments: Cow<'a, str>,
    /// A prompt cache mark.
    pub cache: Option<Cache>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult<'a> {
    /// The call's id.
    pub id: Cow<'a, str>,
    /// Texts, pictures and documents.
    pub blocks: Vec<NeutralBlock<'a>>,
    /// The tool failed.
    pub is_error: bool,
    /// A prompt cache mark.
    pub cache: Option<Cache>,
}

/// How a tool takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// One JSON object that follows a schema.
    #[default]
    Function,
    /// Free text.
    Custom,
    /// As a function, whose calls the caller's family writes as items of their own: those of a tool of this type.
    Typed(&'static str),
}

/// A tool offered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeutralTool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its namespace.
    pub namespace: Option<Cow<'a, str>>,
    /// How it is called.
    pub kind: ToolKind,
    /// Its description.
    pub description: Option<Escaped<'a>>,
    /// The schema of a function's arguments, as JSON.
    pub schema: Option<Cow<'a, str>>,
    /// A custom tool's grammar: syntax and definition.
    pub grammar: Option<(Escaped<'a>, Escaped<'a>)>,
    /// Whether arguments must follow the schema exactly.
    pub strict: Option<bool>,
    /// A prompt cache mark.
    pub cache: Option<Cache>,
}

/// Which tool may or must be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// None.
    None,
    /// At least one, any of them.
    Required,
    /// This one.
    Tool(Cow<'a, str>),
    /// Only these.
    Allowed {
        /// Their names.
        names: Vec<Cow<'a, str>>,
        /// One of them must be called.
        required: bool,
    },
}

impl ToolChoice<'_> {
    /// The choice that chat and responses say in this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "none" => Some(Self::None),
            "required" => Some(Self::Required),
            _ => None,
        }
    }
}

/// How much the model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thinking {
    /// Whether, and with how many tokens.
    pub mode: ThinkingMode,
    /// How hard.
    pub effort: Option<Effort>,
    /// Whether the caller wants to read it.
    pub shown: Option<bool>,
}

/// Whether the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMode {
    /// Not specified.
    #[default]
    Unsaid,
    /// It does not.
    Off,
    /// As much as it considers right.
    Adaptive,
    /// With this many tokens at most.
    Budget(u32),
}

/// How hard the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// `none`
    None,
    /// `minimal`
    Minimal,
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`
    High,
    /// `xhigh`
    Xhigh,
    /// `max`
    Max,
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFormat<'a> {
    /// Some JSON object.
    Json,
    /// JSON that follows a schema.
    Schema {
        /// The schema's name, if any.
        name: Option<Escaped<'a>>,
        /// Its description.
        description: Option<Escaped<'a>>,
        /// The schema, as JSON.
        schema: &'a str,
        /// Whether it must be followed exactly.
        strict: Option<bool>,
    },
}

impl<'a> NeutralBlock<'a> {
    /// Text without a mark.
    pub(crate) fn text(text: Escaped<'a>) -> Self {
        Self::Text { text, cache: None }
    }

    /// Text of our own.
    pub(crate) fn words(words: &str) -> Self {
        Self::text(Escaped::of(words))
    }

    /// Its prompt cache mark.
    pub(crate) fn cache(&self) -> Option<Cache> {
        match self {
            Self::Text { cache, .. } | Self::Image { cache, .. } | Self::File { cache, .. } => {
                *cache
            }
            Self::Call(call) => call.cache,
            Self::Result(result) => result.cache,
            Self::Thinking { .. } => None,
        }
    }
}

impl Effort {
    /// Every effort with its name, the lowest first.
    pub const NAMES: [(Self, &'static str); 7] = [
        (Self::None, "none"),
        (Self::Minimal, "minimal"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::Xhigh, "xhigh"),
        (Self::Max, "max"),
    ];

    /// The effort of this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(_, name)| *name == word)
            .map(|(effort, _)| *effort)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(effort, _)| *effort == self)
            .map_or("medium", |(_, name)| name)
    }
}
