//! Why a request is refused with a 400: the field, what to do about it, and what a program can do by itself.

use std::fmt::Display;

use serde_json::json;

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
    /// Send the items themselves, with `store: false`.
    StoreNothing,
    /// Send the whole conversation instead of this field, with `store: false`.
    Whole(&'static str),
    /// Leave this field out; `null` means the same.
    Without(&'static str),
    /// Send this word in this field.
    Word(&'static str, &'static str),
    /// Send a list of this word in this field.
    List(&'static str, &'static str),
}

impl Remedy {
    /// The words that clients look for. The Anthropic libraries continue without a thread when they read theirs.
    #[must_use]
    pub fn details(self) -> serde_json::Value {
        match self {
            Self::Unthreaded => {
                json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]})
            }
            Self::StoreNothing => json!({"remedies": [{"store": false}]}),
            Self::Whole(field) => json!({"remedies": [{field: null, "store": false}]}),
            Self::Without(field) => json!({"remedies": [{field: null}]}),
            Self::Word(field, word) => json!({"remedies": [{field: word}]}),
            Self::List(field, word) => json!({"remedies": [{field: [word]}]}),
        }
    }
}

impl BadRequest {
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
