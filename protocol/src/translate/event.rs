//! An answer in neutral form: events in order, and their fold.
//!
//! Laws: blocks never overlap; there is exactly one [`AnswerEvent::Stop`] or [`AnswerEvent::Fail`], and it is the last. Texts keep their JSON
//! escaping. An upstream's seals of thinking are not events, because none is ever passed on.

use super::losses::Losses;
use std::borrow::Cow;

use super::freeform::is_object;
use crate::UpstreamError;
use crate::json::unescape;

/// What happens next in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEvent<'a> {
    /// The answer begins.
    Start,
    /// A block begins.
    Open(BlockStart<'a>),
    /// More text of the open block, escaped. For a call: more of its arguments' JSON.
    Delta(&'a str),
    /// The probabilities of the tokens of the latest text: a list of them in the words of responses, as JSON.
    Logprobs(&'a str),
    /// The open block ends.
    Close,
    /// A sign of life from the upstream.
    Ping,
    /// The answer contains something that only its own family has, by that family's name for it; it is not shown.
    Lost(&'static str),
    /// The answer is complete.
    Stop(NeutralStop),
    /// The answer broke.
    Fail(UpstreamError),
}

/// What kind of block begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStart<'a> {
    /// Text.
    Text,
    /// Why the model refuses to answer.
    Refusal,
    /// Thinking that is shown.
    Thinking,
    /// A call of one of the caller's tools.
    Call {
        /// The call's id, unescaped.
        id: &'a str,
        /// The tool's name as the upstream knows it, unescaped.
        name: &'a str,
    },
}

/// Why an answer is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeutralStop {
    /// By itself.
    End,
    /// At the output limit.
    Length,
    /// The context is full.
    ContextFull,
    /// At this stop string, escaped; empty if the upstream did not say which.
    StopString(String),
    /// To have tools called.
    ToolUse,
    /// The model refused.
    Refusal,
    /// A filter removed the rest.
    Filter,
    /// A server-side turn was paused.
    Pause,
    /// An unknown reason.
    Other,
}

impl NeutralStop {
    /// The reason corrected by what was delivered: with tool calls it is [`NeutralStop::ToolUse`], and without any it never is.
    #[must_use]
    pub fn corrected(self, calls: bool) -> Self {
        match self {
            Self::End | Self::Other | Self::StopString(_) if calls => Self::ToolUse,
            Self::ToolUse if !calls => Self::End,
            other => other,
        }
    }
}

/// Takes events.
pub trait Sink {
    /// The next event.
    fn event(&mut self, event: AnswerEvent<'_>);
}

/// A whole answer: the fold of its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeutralAnswer {
    /// Its blocks, in order.
    pub blocks: Vec<AnswerBlock>,
    /// Whether the last block has ended.
    pub closed: bool,
    /// How it ended; `None` until it has.
    pub end: Option<Result<NeutralStop, UpstreamError>>,
    /// The probabilities of its tokens, if they were asked for: members of a list, as JSON.
    pub logprobs: String,
    /// Content that other families have no words for.
    pub losses: Losses,
}

/// One block of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerBlock {
    /// What kind.
    pub kind: BlockKind,
    /// Its text, escaped; for a call, the JSON of its arguments, escaped.
    pub text: String,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Why the model refuses to answer.
    Refusal,
    /// Thinking.
    Thinking,
    /// A call.
    Call {
        /// Its id.
        id: String,
        /// The tool's name as the upstream knows it.
        name: String,
    },
}

impl From<BlockStart<'_>> for BlockKind {
    fn from(open: BlockStart<'_>) -> Self {
        match open {
            BlockStart::Text => Self::Text,
            BlockStart::Refusal => Self::Refusal,
            BlockStart::Thinking => Self::Thinking,
            BlockStart::Call { id, name } => Self::Call {
                id: id.to_owned(),
                name: name.to_owned(),
            },
        }
    }
}

impl NeutralAnswer {
    /// Whether a call was delivered.
    pub fn has_calls(&self) -> bool {
        self.blocks
            .iter()
            .any(|block| matches!(block.kind, BlockKind::Call { .. }))
    }
}

impl NeutralAnswer {
    /// The answer without a call that the limit cut: its arguments break off, so nobody can run it.
    #[must_use]
    pub fn without_cut_call(&self) -> Cow<'_, Self> {
        let last = self.blocks.last().filter(|_| !self.closed);
        let cut = last.is_some_and(|last| {
            matches!(last.kind, BlockKind::Call { .. }) && !is_object(&unescape(&last.text))
        });
        if !cut {
            return Cow::Borrowed(self);
        }
        let mut whole = self.clone();
        whole.blocks.pop();
        whole.closed = true;
        Cow::Owned(whole)
    }
}

impl Sink for NeutralAnswer {
    fn event(&mut self, event: AnswerEvent<'_>) {
        match event {
            AnswerEvent::Open(open) => {
                self.closed = false;
                self.blocks.push(AnswerBlock {
                    kind: open.into(),
                    text: String::new(),
                });
            }
            AnswerEvent::Delta(text) => {
                if let Some(block) = self.blocks.last_mut() {
                    block.text.push_str(text);
                }
            }
            AnswerEvent::Logprobs(list) => {
                let inner = list.trim().trim_start_matches('[').trim_end_matches(']');
                if !self.logprobs.is_empty() {
                    self.logprobs.push(',');
                }
                self.logprobs.push_str(inner);
            }
            AnswerEvent::Stop(stop) => self.end = Some(Ok(stop)),
            AnswerEvent::Fail(error) => self.end = Some(Err(error)),
            AnswerEvent::Close => self.closed = true,
            AnswerEvent::Lost(what) => self.losses.add_to_answer(what, "dropped"),
            AnswerEvent::Start | AnswerEvent::Ping => {}
        }
    }
}
