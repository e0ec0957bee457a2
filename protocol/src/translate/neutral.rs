//! A request before any family gives it a shape: what a decoder makes and an encoder takes.
//!
//! Holds what at least two families can say, and borrows it from the body. What only one family knows is judged by that family's
//! table of fields and never comes here.

use std::borrow::Cow;

use super::text::Escaped;

/// A request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt<'a> {
    /// System prompt: blocks of text.
    pub system: Vec<Block<'a>>,
    /// The conversation.
    pub turns: Vec<Turn<'a>>,
    /// Tools offered.
    pub tools: Vec<Tool<'a>>,
    /// Which tool may or must be called.
    pub choice: Option<Choice<'a>>,
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
    /// Texts that end the answer.
    pub stops: Vec<Escaped<'a>>,
    /// How much the model shall think.
    pub thinking: Thinking,
    /// What form the answer must have.
    pub format: Option<Format<'a>>,
    /// How long-winded the answer may be.
    pub verbosity: Option<Escaped<'a>>,
    /// Requests with one key share cached prefixes.
    pub cache_key: Option<Escaped<'a>>,
    /// Who the customer's own user is.
    pub user: Option<Cow<'a, str>>,
    /// Whether only standard capacity will do.
    pub standard_tier: Option<bool>,
    /// Whether the answer is streamed.
    pub stream: bool,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The customer, and what tools gave.
    User,
    /// The model.
    Assistant,
    /// A system or developer message between turns.
    System,
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block<'a>>,
}

/// One piece of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Block<'a> {
    /// Text.
    Text {
        /// The text.
        text: Escaped<'a>,
        /// A mark of the prompt cache.
        cache: Option<Cache>,
    },
    /// A picture.
    Image {
        /// Where it is.
        source: Source<'a>,
        /// How closely to look, in the words of chat and responses.
        detail: Option<Escaped<'a>>,
        /// A mark of the prompt cache.
        cache: Option<Cache>,
    },
    /// A document.
    File {
        /// Where it is.
        source: Source<'a>,
        /// Its name.
        name: Option<Escaped<'a>>,
        /// A mark of the prompt cache.
        cache: Option<Cache>,
    },
    /// A call of a tool.
    Call(Call<'a>),
    /// What a call gave.
    Result(CallResult<'a>),
    /// Thinking of an earlier turn. Its seal is never carried, so only the text is left.
    Thinking {
        /// What was shown of it.
        text: Escaped<'a>,
    },
}

/// A mark of the prompt cache, by how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The usual time.
    Short,
    /// One hour or longer.
    Long,
}

/// Where a picture or document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source<'a> {
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
pub struct Call<'a> {
    /// Its id; empty when the family gave none.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The namespace the tool stands in.
    pub namespace: Option<Cow<'a, str>>,
    /// How the tool was called.
    pub kind: ToolKind,
    /// JSON for a function, plain text for a custom tool.
    pub arguments: Cow<'a, str>,
    /// A mark of the prompt cache.
    pub cache: Option<Cache>,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult<'a> {
    /// The call's id.
    pub id: Cow<'a, str>,
    /// Texts, pictures and documents.
    pub blocks: Vec<Block<'a>>,
    /// The tool failed.
    pub is_error: bool,
    /// A mark of the prompt cache.
    pub cache: Option<Cache>,
}

/// How a tool takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// One JSON object by a schema.
    #[default]
    Function,
    /// Free text.
    Custom,
    /// The shell of a responses client: a call is an `action`.
    LocalShell,
}

/// A tool offered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The namespace it stands in.
    pub namespace: Option<Cow<'a, str>>,
    /// How it is called.
    pub kind: ToolKind,
    /// What it does.
    pub description: Option<Escaped<'a>>,
    /// The schema of a function's arguments, as JSON.
    pub schema: Option<Cow<'a, str>>,
    /// A custom tool's grammar: syntax and definition.
    pub grammar: Option<(Escaped<'a>, Escaped<'a>)>,
    /// Whether arguments must follow the schema to the letter.
    pub strict: Option<bool>,
    /// A mark of the prompt cache.
    pub cache: Option<Cache>,
}

/// Which tool may or must be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The model decides.
    Auto,
    /// None.
    None,
    /// Any, but one.
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

/// How much the model shall think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thinking {
    /// Whether, and with how many tokens.
    pub mode: Mode,
    /// How hard.
    pub effort: Option<Effort>,
    /// Whether the caller wants to read it.
    pub shown: Option<bool>,
}

/// Whether the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// It does not.
    Off,
    /// As much as it finds right.
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

/// What form the answer must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format<'a> {
    /// Some JSON object.
    Json,
    /// JSON by a schema.
    Schema {
        /// The schema's name, when it has one.
        name: Option<Escaped<'a>>,
        /// What it is for.
        description: Option<Escaped<'a>>,
        /// The schema, as JSON.
        schema: &'a str,
        /// To the letter.
        strict: Option<bool>,
    },
}

impl<'a> Block<'a> {
    /// Text without a mark.
    pub(crate) fn text(text: Escaped<'a>) -> Self {
        Self::Text { text, cache: None }
    }

    /// Text of our own words.
    pub(crate) fn words(words: &str) -> Self {
        Self::text(Escaped::of(words))
    }

    /// The mark it carries.
    pub(crate) fn cache(&self) -> Option<Cache> {
        match self {
            Self::Text { cache, .. } | Self::Image { cache, .. } | Self::File { cache, .. } => *cache,
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
        Self::NAMES.iter().find(|(_, name)| *name == word).map(|(effort, _)| *effort)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(effort, _)| *effort == self).map_or("medium", |(_, name)| name)
    }
}
