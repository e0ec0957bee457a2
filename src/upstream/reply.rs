//! An upstream's answer before it is judged. The network and the simulated provider both produce one.

use std::time::Duration;

use super::stream::AnswerBody;

/// An answer before it is judged.
pub(super) struct UnjudgedReply {
    pub(super) status: u16,
    pub(super) kind: DeclaredType,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: AnswerBody,
}

/// The content type an answer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredType {
    /// JSON.
    Json,
    /// Server-sent events.
    Events,
    /// Something else, or no type.
    Other,
}

impl DeclaredType {
    pub(super) fn of(content_type: &str) -> Self {
        let essence = content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream" => Self::Events,
            "application/json" => Self::Json,
            other if other.ends_with("+json") => Self::Json,
            _ => Self::Other,
        }
    }
}
