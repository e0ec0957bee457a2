//! What answers and frames say, in words that all families share.
//!
//! A reader of the target's family fills these; the spine meters by them, and a writer of the customer's family ends a stream by
//! them. Places are byte ranges: nothing is copied out of a frame that only passes through.

use std::ops::Range;

use crate::members::Places;
use crate::{TextSize, UpstreamError, WireUsage};

/// Where a frame or a whole answer is changed on its way to the customer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// The model's name, quotes included; it is replaced by the public slug.
    pub model: Option<Range<usize>>,
    /// Where else it is named: in choices, blocks, items or steps. Apart, because most frames name it once.
    pub more_models: Vec<Range<usize>>,
    /// The closing brace of the usage object, where `cost` can be added.
    pub usage_end: Option<usize>,
    /// The usage object has no members (so `cost` needs no comma).
    pub usage_empty: bool,
    /// Members to take out, commas included: what the upstream says about its own price and about who served the answer.
    pub cuts: Vec<Range<usize>>,
}

impl Marks {
    /// What is changed at these places; `at` says where a place of the JSON text stands in what is forwarded.
    pub(crate) fn at(places: Places, at: impl Fn(Range<usize>) -> Range<usize>) -> Self {
        let (model, more) = places.models;
        Self {
            model: model.map(&at),
            more_models: more.into_iter().map(&at).collect(),
            cuts: places.cuts.into_iter().map(&at).collect(),
            ..Self::default()
        }
    }
}

/// Why the upstream stopped; an empty stop reason counts as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// By itself, or at a stop sequence.
    End,
    /// At the output limit or the end of the context.
    Length,
    /// To have a tool called.
    ToolCalls,
    /// A content filter cut it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// It paused in the middle of a turn and expects to be sent on.
    Pause,
    /// For a reason that this crate has no name for.
    Other,
}

/// What one frame of a streamed answer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameFacts {
    /// What is changed in the frame's bytes.
    pub marks: Marks,
    /// Output this frame shows (text, reasoning text, tool arguments), for metering.
    pub shown: TextSize,
    /// The frame says that output is being made which the stream does not show (hidden reasoning has begun or goes on).
    pub hidden: bool,
    /// The frame reported usage (read it with [`Reader::usage`](crate::Reader::usage)).
    pub usage: bool,
    /// With this frame the whole answer has a stop reason.
    pub stop: Option<Stop>,
    /// This frame and all after it wait for the settlement: it carries the final usage, or is the terminal marker.
    pub last: bool,
    /// The terminal marker of the family.
    pub end: bool,
    /// A usage chunk with no other content, which customers that did not ask for it must not see (chat).
    pub usage_only: bool,
    /// Its data is no JSON object and no terminal marker: nothing that a client waits for.
    pub unreadable: bool,
    /// The frame is an error.
    pub error: Option<UpstreamError>,
    /// What it does to the answer's structure.
    pub step: Step,
}

impl FrameFacts {
    /// What a frame says whose data is no JSON object.
    #[must_use]
    pub fn unreadable() -> Self {
        Self { unreadable: true, ..Self::default() }
    }
}

/// What a whole answer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFacts {
    /// What is changed in the answer's bytes.
    pub marks: Marks,
    /// The upstream's id of the answer.
    pub id: Option<String>,
    /// Usage as reported.
    pub usage: WireUsage,
    /// Output shown.
    pub shown: TextSize,
    /// Why the upstream stopped.
    pub stop: Option<Stop>,
    /// The body is an error although its status may not say so.
    pub error: Option<UpstreamError>,
}

/// What a frame does to the structure of its answer, for the [`Writer`](crate::Writer) that may have to end it. Most frames of a
/// chat or messages stream only bring text and do nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Step {
    /// Nothing that an ending depends on.
    #[default]
    None,
    /// The answer has begun (messages).
    Begun,
    /// A content block has begun (messages).
    Opened(u64),
    /// A content block has ended (messages).
    Closed(u64),
    /// Some choice began or ended (chat): all choices as they stand now.
    Choices {
        /// When the answer was created, in seconds since 1970; zero when not said.
        created: u64,
        /// Index of each choice, and whether it has ended.
        choices: Vec<(u64, bool)>,
    },
    /// Any event of a responses stream, because an ending made by the gateway repeats what was streamed.
    Event(ItemEvent),
}

/// One event of a responses stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemEvent {
    /// Its sequence number, where the server writes one.
    pub sequence: Option<u64>,
    /// What it brings.
    pub brings: Brings,
    /// Index of the output item it belongs to.
    pub output_index: Option<u64>,
    /// Index of the content or summary part it belongs to.
    pub part_index: Option<u64>,
    /// Where that stands in the frame's data; of a text, without its quotes. Empty when it is missing.
    pub place: Range<usize>,
}

/// What an event of a responses stream brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brings {
    /// Nothing that an ending repeats.
    Nothing,
    /// The response object as far as it goes.
    Response,
    /// An item that begins.
    Item,
    /// An item as it ended.
    ItemDone,
    /// A part that begins.
    Part,
    /// A part as it ended.
    PartDone,
    /// More output text, also of a part that was not announced.
    OutputText,
    /// More text of another kind.
    Text,
    /// More arguments of a call.
    Arguments,
}
