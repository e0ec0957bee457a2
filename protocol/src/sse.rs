//! Cuts a byte stream into server-sent events and writes them. A frame is raw bytes and is forwarded as such.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

/// Largest frame taken.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// One event with the blank line that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    raw: Bytes,
}

impl Frame {
    /// The bytes as they came.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The bytes as they came.
    #[must_use]
    pub fn into_raw(self) -> Bytes {
        self.raw
    }

    /// The event's name.
    #[must_use]
    pub fn event(&self) -> Option<&str> {
        None
    }

    /// The event's data, its lines joined.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    /// Where the data stands in the raw bytes, when it is one line.
    #[must_use]
    pub fn data_range(&self) -> Option<Range<usize>> {
        None
    }
}

/// A frame grew over [`MAX_FRAME_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLarge;

impl fmt::Display for FrameTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an event of the stream is larger than {MAX_FRAME_BYTES} bytes")
    }
}

impl std::error::Error for FrameTooLarge {}

/// What stands behind the last whole frame when a stream has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// A last frame that only the end completed.
    pub frame: Option<Frame>,
    /// Bytes of an unfinished frame.
    pub left: usize,
}

/// Cuts chunks of bytes into frames.
#[derive(Debug, Default)]
pub struct FrameReader {}

impl FrameReader {
    /// A reader at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk. Call [`Self::next_frame`] until it has none.
    pub fn push(&mut self, chunk: Bytes) {
        let _ = chunk;
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// A frame is larger than [`MAX_FRAME_BYTES`]; the stream cannot be read on.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameTooLarge> {
        Ok(None)
    }

    /// Ends the stream.
    pub fn finish(&mut self) -> Tail {
        Tail::default()
    }
}
