//! The facts of answers and frames, in terms that all families share.
//!
//! A reader of the target's family fills these; the spine meters by them, and a writer of the customer's family ends a stream by
//! them. Positions are byte ranges: nothing is copied out of a frame that only passes through.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::Edit;
use crate::members::{self, MemberPlaces};
use crate::{TextSize, UpstreamError, WireUsage};

/// The positions at which a frame or a whole answer is changed on its way to the customer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameMarks {
    /// The model's name, quotes included; it is replaced by the public slug.
    pub model: Option<Range<usize>>,
    /// The closing brace of the usage object, where `cost` can be added.
    pub usage_end: Option<usize>,
    /// The usage object has no members (so `cost` needs no comma).
    pub usage_empty: bool,
    /// Some member that was removed from the envelope is not the family's.
    pub strange: bool,
    /// Whatever else is changed. Separate, because most frames have nothing else.
    pub(crate) more: Option<Box<MoreMarks>>,
}

/// Further positions in a frame or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MoreMarks {
    /// The model's name again: in choices, blocks, items or steps.
    pub models: Vec<Range<usize>>,
    /// Members to remove, commas included: what the upstream says about its own price and about who served the answer.
    pub cuts: Vec<Range<usize>>,
    /// Pieces of calls that clients would take for another call's (chat).
    pub mended: Vec<Edit<'static>>,
}

impl FrameMarks {
    /// The edits at these positions; `at` maps a position in the JSON text to one in the forwarded bytes.
    pub(crate) fn at(places: MemberPlaces, at: impl Fn(Range<usize>) -> Range<usize>) -> Self {
        let (model, models) = places.models;
        let has_more = !(models.is_empty() && places.cuts.is_empty());
        let more = has_more.then(|| {
            Box::new(MoreMarks {
                models: models.into_iter().map(&at).collect(),
                cuts: places.cuts.into_iter().map(&at).collect(),
                mended: Vec::new(),
            })
        });
        Self {
            model: model.map(&at),
            strange: places.strange,
            more,
            ..Self::default()
        }
    }

    /// The changes: the model is called by this name, quotes included.
    pub fn edits<'a>(&self, name: &'a str) -> Vec<Edit<'a>> {
        let named = |place: &Range<usize>| Edit::replace(place.clone(), name.as_bytes());
        let mut edits: Vec<Edit<'a>> = self.model.iter().map(named).collect();
        if let Some(more) = self.more() {
            edits.extend(more.models.iter().map(named));
            edits.extend(more.cuts.iter().cloned().map(Edit::cut));
            edits.extend(more.mended.iter().cloned());
        }
        edits
    }

    /// Whatever else is changed, if anything.
    pub fn more(&self) -> Option<&MoreMarks> {
        self.more.as_deref()
    }

    /// The same, to add to it.
    pub(crate) fn more_mut(&mut self) -> &mut MoreMarks {
        self.more.get_or_insert_default()
    }

    /// Removes these places, too.
    pub fn cut(&mut self, places: &[Range<usize>]) {
        if !places.is_empty() {
            self.more_mut().cuts.extend(places.iter().cloned());
        }
    }

    /// The names of the removed members of these bytes, if one of them is not the family's. Few answers have any, so names are
    /// looked for only here.
    pub fn strange_names<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Cow<'a, str>> {
        let more = self.more().filter(|_| self.strange);
        members::names(bytes, more.map_or(&[], |more| &*more.cuts))
    }
}

/// Why the upstream stopped; an empty stop reason counts as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
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
    /// It paused in the middle of a turn and expects to be continued.
    Pause,
    /// For an unknown reason.
    Other,
}

/// The facts of one frame of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameFacts {
    /// The edits to the frame's bytes.
    pub marks: FrameMarks,
    /// Output this frame shows (text, reasoning text, tool arguments), for metering.
    pub shown: TextSize,
    /// The frame reports output that the stream does not show (hidden reasoning has begun or continues).
    pub hidden: bool,
    /// The frame reported usage (read it with [`AnswerReader::usage`](crate::AnswerReader::usage)).
    pub usage: bool,
    /// With this frame the whole answer has a stop reason.
    pub stop: Option<StopReason>,
    /// This frame and all later ones wait for the settlement: it carries the final usage, or is the terminal marker.
    pub last: bool,
    /// The terminal marker of the family.
    pub end: bool,
    /// A usage chunk with no other content, which must be hidden from customers that did not ask for it (chat).
    pub usage_only: bool,
    /// Its data is neither a JSON object nor a terminal marker: nothing that a client waits for.
    pub unreadable: bool,
    /// An event that the family does not have. It may be anything, so its text is scrubbed.
    pub unfamiliar: bool,
    /// The frame is an error, or has nothing that a frame of its family must have.
    pub error: Option<UpstreamError>,
    /// Its effect on the answer's structure.
    pub step: Step,
}

impl FrameFacts {
    /// The facts of a frame whose data is not a JSON object.
    #[must_use]
    pub fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }
}

/// The facts of a whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFacts {
    /// The edits to the answer's bytes.
    pub marks: FrameMarks,
    /// The upstream's id of the answer.
    pub id: Option<String>,
    /// Usage as reported.
    pub usage: WireUsage,
    /// Output shown.
    pub shown: TextSize,
    /// Why the upstream stopped.
    pub stop: Option<StopReason>,
    /// It has what every answer of its family has.
    pub complete: bool,
    /// Set if the body is an error, whatever its status.
    pub error: Option<UpstreamError>,
}

/// The effect of a frame on the structure of its answer, for the [`EndWriter`](crate::EndWriter) that may have to end it. Most frames of
/// a chat or messages stream only bring text and have none.
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
    /// Some choice began or ended (chat): the state of all choices.
    Choices {
        /// When the answer was created, in seconds since 1970; zero when not said.
        created: u64,
        /// Index of each choice, and whether it has ended.
        choices: Vec<(u64, bool)>,
    },
    /// Any event of a responses stream, because an ending written by the gateway repeats what was streamed.
    Event(ItemEvent),
}

/// One event of a responses stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemEvent {
    /// Its sequence number, if the server writes one.
    pub sequence: Option<u64>,
    /// Its content.
    pub brings: Brings,
    /// Index of the output item it belongs to.
    pub output_index: Option<u64>,
    /// Index of the content or summary part it belongs to.
    pub part_index: Option<u64>,
    /// Its position in the frame's data; for a text, without its quotes. Empty if it is missing.
    pub place: Range<usize>,
}

/// The content of an event of a responses stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brings {
    /// Nothing that an ending repeats.
    Nothing,
    /// The response object so far.
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
