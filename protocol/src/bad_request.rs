//! Why a request is refused with a 400: the field, what to do about it, and what a program can do by itself.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::json::JsonError;

/// The reason for a 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// What to do about it, in a sentence.
    pub message: String,
    /// The field at fault, as a path: `messages[2].content`.
    pub param: Option<String>,
    /// A stable word for programs, if there is one.
    pub code: Option<&'static str>,
    /// A remedy that a program can apply by itself.
    pub remedy: Option<Remedy>,
}

/// A remedy that programs can apply, sent in `error.details`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Send the whole conversation without `thread`.
    Unthreaded,
    /// Send `false` in this field; of `store`: and the items themselves.
    Off(&'static str),
    /// Send the whole conversation instead of this field, with `store: false`.
    Whole(&'static str),
    /// Leave out what `param` names, which is the whole of a tool or a part.
    Without,
    /// Leave this out, wherever it stands: a member of this name, or a part of this type.
    WithoutEach(&'static str),
    /// Send what `param` names inline, instead of its address or its id.
    Inline,
    /// Send at most so much of this.
    AtMost(&'static str, u64),
    /// Ask a model that has this capability: lists of models name them.
    Capable(&'static str),
}

impl Remedy {
    /// The words that clients look for, for the thing at a path. The Anthropic libraries continue without a thread when they read theirs.
    fn details(self, param: &str) -> Value {
        match self {
            Self::Unthreaded => {
                json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]})
            }
            Self::Off(field) => json!({"remedies": [{field: false}]}),
            Self::Whole(field) => json!({"remedies": [{field: null, "store": false}]}),
            Self::Without if param.contains(['.', '[']) => {
                let whole = param.strip_suffix(".type").unwrap_or(param);
                json!({"remove": whole.strip_suffix(".tool.definition").unwrap_or(whole)})
            }
            Self::Without => json!({"remedies": [{param: null}]}),
            Self::WithoutEach(name) => json!({"remove": name}),
            Self::Inline => json!({"inline": param}),
            Self::AtMost(what, most) => json!({"at_most": {what: most}}),
            Self::Capable(what) => json!({"needs": what}),
        }
    }

    /// The field that the remedy sets, where that is not the one at fault.
    #[must_use]
    pub const fn sets(self) -> Option<&'static str> {
        match self {
            Self::Off(field) => Some(field),
            Self::Whole(_) => Some("store"),
            _ => None,
        }
    }
}

impl BadRequest {
    /// Whether the request refers to an item that it does not have.
    pub fn refers(&self) -> bool {
        self.remedy == Some(Remedy::Off("store"))
    }

    /// The same refusal with what a program can do by itself.
    #[must_use]
    pub fn with(self, remedy: Remedy) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }

    /// What programs can act on. Only families whose errors have codes get numbers: libraries of the others expect other ones.
    pub fn details(&self, with_numbers: bool) -> Option<Value> {
        let remedy =
            (self.remedy).filter(|remedy| with_numbers || !matches!(remedy, Remedy::AtMost(..)))?;
        Some(remedy.details(self.param.as_deref().unwrap_or_default()))
    }

    /// A refusal that concerns the request as a whole.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            param: None,
            code: None,
            remedy: None,
        }
    }

    /// The refusal of one field.
    #[must_use]
    pub fn at(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            param: Some(param.into()),
            code: None,
            remedy: None,
        }
    }

    /// The same refusal with `prefix` put in front of its path.
    pub(crate) fn within(mut self, prefix: impl Display) -> Self {
        self.param = self.param.map(|param| match param.as_str() {
            "" => prefix.to_string(),
            inner if inner.starts_with('[') => format!("{prefix}{inner}"),
            inner => format!("{prefix}.{inner}"),
        });
        self
    }
}

impl From<JsonError> for BadRequest {
    fn from(fault: JsonError) -> Self {
        Self::new(format!(
            "The request body is not valid JSON: {} at byte {}. Send one JSON object.",
            fault.what, fault.at
        ))
    }
}
