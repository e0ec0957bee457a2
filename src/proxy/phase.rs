//! The phases of a streamed answer: frames are passed on until the final usage, and from there on kept back until the settlement.

use bytes::Bytes;
use farebox_protocol::FrameMarks;
use tokio::time::Instant;

/// Bytes kept back until the settlement. If an upstream sends more after its final usage, reading stops.
// All families end within a few frames of their usage: what still comes after a MiB is no end of an answer, and it is all in memory.
const MOST_KEPT: usize = 1024 * 1024;

/// The phase of a stream.
pub(super) enum Phase {
    /// Frames are passed on as they come.
    Passing,
    /// The final usage was seen, at this instant: frames wait for the settlement.
    Keeping(Instant, KeptFrames),
    /// The terminal marker was seen.
    Ended(KeptFrames),
}

/// Frames that wait for the settlement, with the places to rewrite in each.
#[derive(Default)]
pub(super) struct KeptFrames {
    pub(super) frames: Vec<(Bytes, FrameMarks)>,
    bytes: usize,
}

impl Phase {
    /// Whether frames are passed on as they come.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Passing)
    }

    /// Keeps a frame until the settlement, unless frames are still passed on: then it is returned. `end` marks the terminal one.
    pub(super) fn keep(
        &mut self,
        frame: Option<(Bytes, FrameMarks)>,
        end: bool,
    ) -> Option<(Bytes, FrameMarks)> {
        let (Self::Keeping(_, kept) | Self::Ended(kept)) = self else {
            return frame;
        };
        kept.bytes += frame.as_ref().map_or(0, |(bytes, _)| bytes.len());
        kept.frames.extend(frame);
        if end {
            *self = Self::Ended(std::mem::take(kept));
        }
        None
    }

    /// Whether nothing more is read: the terminal marker was seen, or too much was kept.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Passing => false,
            Self::Keeping(_, kept) => kept.bytes > MOST_KEPT,
            Self::Ended(_) => true,
        }
    }

    /// The frames that were kept.
    pub(super) fn kept(self) -> Vec<(Bytes, FrameMarks)> {
        match self {
            Self::Passing => Vec::new(),
            Self::Keeping(_, kept) | Self::Ended(kept) => kept.frames,
        }
    }
}
