//! An answer that the gateway makes itself, before a family encodes it.
//!
//! The simulated provider writes drafts; each family's `synthetic.rs` turns one into a whole answer or into frames.

use crate::{Classes, ReportedUsage};

/// An answer to be encoded in some family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticAnswer {
    /// The answer's id, without a family prefix.
    pub id: String,
    /// The model's name in the answer.
    pub model: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The text, in the pieces a stream shows.
    pub pieces: Vec<String>,
    /// A tool call after the text.
    pub tool: Option<ToolCall>,
    /// Counts to report; `None` leaves usage out.
    pub usage: Option<ReportedUsage>,
    /// Why the answer ends.
    pub stop: SyntheticStop,
    /// The classes that it was served in.
    pub classes: Classes,
    /// Chat streams: whether to write the usage chunk.
    pub stream_usage: bool,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id, without a family prefix.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Arguments as one JSON object.
    pub arguments: String,
}

/// Why a draft ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticStop {
    /// By itself.
    Stop,
    /// At the output limit.
    Length,
    /// To have a tool called.
    Tool,
}

/// A text in two pieces, as streams bring arguments.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}
