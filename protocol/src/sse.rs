//! Cuts a byte stream into server-sent events and writes them. A frame is raw bytes and is forwarded as such.
//!
//! The reader accepts LF, CRLF and CR endings in any chunking, looks at each byte a bounded number of times, and copies only frames
//! that span several chunks. It must not change or judge data. The frames put together are exactly the bytes that arrived.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

/// Largest frame accepted.
// The last event of a responses stream repeats the whole answer in one frame; more than this is held in memory for nobody.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event with the blank line that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    raw: Bytes,
    event: Option<Range<usize>>,
    first: Option<Range<usize>>,
    /// Few frames have any. Boxed, because the task of every open stream has room for a frame.
    rare: Option<Box<RareLines>>,
}

/// What few frames have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct RareLines {
    /// Lines of data behind the first.
    data: Vec<Range<usize>>,
    /// Lines besides event and data, with their ends.
    others: Vec<Range<usize>>,
}

impl Frame {
    /// A frame from its bytes, blank line included.
    #[must_use]
    pub fn new(raw: Bytes) -> Self {
        let mut frame = Self {
            raw: Bytes::new(),
            event: None,
            first: None,
            rare: None,
        };
        let mut at = if raw.starts_with(BOM) { BOM.len() } else { 0 };
        while at < raw.len() {
            let line = raw.get(at..).unwrap_or_default();
            let length = memchr::memchr2(b'\n', b'\r', line).unwrap_or(line.len());
            frame.take_line(
                line.get(..length).unwrap_or_default(),
                at,
                line.get(length..).unwrap_or_default(),
            );
            at += length + 1;
        }
        frame.raw = raw;
        frame
    }

    fn take_line(&mut self, line: &[u8], at: usize, behind: &[u8]) {
        let name = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = (name + 1).min(line.len());
        if line.get(value) == Some(&b' ') {
            value += 1;
        }
        let span = at + value..at + line.len();
        match line.get(..name) {
            Some(b"data") if self.first.is_none() => self.first = Some(span),
            Some(b"data") => self.rare.get_or_insert_default().data.push(span),
            Some(b"event") => self.event = Some(span),
            _ if line.is_empty() => {}
            _ => {
                let ending = if behind.starts_with(b"\r\n") {
                    2
                } else {
                    behind.len().min(1)
                };
                let others = &mut self.rare.get_or_insert_default().others;
                others.push(at..at + line.len() + ending);
            }
        }
    }

    /// The bytes as they came.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The bytes as they came.
    #[must_use]
    pub fn into_raw(self) -> Bytes {
        self.raw
    }

    /// The event's name.
    pub fn event(&self) -> Option<&str> {
        let name = self.raw.get(self.event.clone()?)?;
        std::str::from_utf8(name).ok()
    }

    /// Whether the frame has data; without it, clients see no event.
    pub fn has_data(&self) -> bool {
        self.first.is_some()
    }

    /// Lines that are neither event nor data, with their ends: comments, `id`, `retry`.
    pub fn other_lines(&self) -> &[Range<usize>] {
        self.rare.as_deref().map_or(&[], |rare| &rare.others)
    }

    /// Lines of data behind the first.
    fn more(&self) -> &[Range<usize>] {
        self.rare.as_deref().map_or(&[], |rare| &rare.data)
    }

    /// The event's data, its lines joined by LF. `None` for comments and other frames without data.
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        let first = self.raw.get(self.first.clone()?)?;
        let more = self.more();
        if more.is_empty() {
            return Some(Cow::Borrowed(first));
        }
        let mut joined = first.to_vec();
        for line in more {
            joined.push(b'\n');
            joined.extend_from_slice(self.raw.get(line.clone()).unwrap_or_default());
        }
        Some(Cow::Owned(joined))
    }

    /// The position of the data in the raw bytes, if it is a single line.
    pub fn data_range(&self) -> Option<Range<usize>> {
        if self.more().is_empty() {
            self.first.clone()
        } else {
            None
        }
    }

    /// The same event with other data, on one line.
    pub fn with_data(&self, data: &str) -> Bytes {
        // In JSON a line end stands only between tokens, where a blank says the same.
        let line = data.replace(['\n', '\r'], " ");
        Bytes::from(match self.event() {
            Some(name) => event(name, &line),
            None => self::data(&line),
        })
    }

    /// The position of a byte of the data in the raw bytes.
    pub fn raw_position(&self, in_data: usize) -> usize {
        let mut left = in_data;
        let mut lines = self.first.iter().chain(self.more()).peekable();
        while let Some(line) = lines.next() {
            if left <= line.len() || lines.peek().is_none() {
                return line.start + left;
            }
            left -= line.len() + 1;
        }
        left
    }

    /// The position of a piece of the data in the raw bytes.
    pub fn raw_range(&self, in_data: Range<usize>) -> Range<usize> {
        self.raw_position(in_data.start)..self.raw_position(in_data.end)
    }
}

/// A frame grew over [`MAX_FRAME_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLarge;

impl fmt::Display for FrameTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "an event of the stream is larger than {MAX_FRAME_BYTES} bytes"
        )
    }
}

impl std::error::Error for FrameTooLarge {}

/// What follows the last whole frame when a stream has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// A last frame whose CR could have been half of a CRLF until the end.
    pub frame: Option<Frame>,
    /// A last event without its blank line, which some servers omit; it is added here.
    pub unended: Option<Frame>,
    /// Bytes of an unfinished frame. A stream that ends properly leaves none.
    pub left: usize,
}

/// The state of the scan inside the current frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LineScan {
    /// At the beginning of a line.
    #[default]
    Start,
    /// Inside a line that is not empty.
    Inside,
    /// After a CR that ended such a line.
    AfterCr,
    /// After a CR that ended a blank line: the frame is complete, but an LF would still belong to it.
    Whole,
}

/// Cuts chunks of bytes into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The beginning of a frame that spans several chunks.
    carry: BytesMut,
    /// The bytes not cut yet.
    chunk: Bytes,
    /// How much of `chunk` has been scanned.
    scanned: usize,
    line: LineScan,
    failed: bool,
}

impl FrameReader {
    /// A reader at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk. Call [`Self::next_frame`] until it has none.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            let mut both = BytesMut::with_capacity(self.chunk.len() + chunk.len());
            both.extend_from_slice(&self.chunk);
            both.extend_from_slice(&chunk);
            self.chunk = both.freeze();
        }
    }

    /// Bytes that wait for the end of their frame, or to be requested.
    pub fn buffered(&self) -> usize {
        self.carry.len() + self.chunk.len()
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// A frame is larger than [`MAX_FRAME_BYTES`]; the rest of the stream cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameTooLarge> {
        if let Some(frame) = self.plain_frame() {
            return Ok(Some(frame));
        }
        let found = !self.failed && self.scan();
        if self.failed || self.carry.len() + self.scanned > MAX_FRAME_BYTES {
            self.failed = true;
            return Err(FrameTooLarge);
        }
        let piece = self.chunk.split_to(self.scanned);
        self.scanned = 0;
        if !found {
            self.carry.extend_from_slice(&piece);
            return Ok(None);
        }
        self.line = LineScan::Start;
        Ok(Some(Frame::new(self.with_carry(piece))))
    }

    /// The frame at the beginning of the chunk, if it has the usual form: one line of data, possibly after an event's name, ended
    /// by LF. One look at its bytes is enough to cut and to read it.
    fn plain_frame(&mut self) -> Option<Frame> {
        if self.failed || !self.carry.is_empty() || self.scanned > 0 || self.line != LineScan::Start
        {
            return None;
        }
        let (event, at) = match plain_line(&self.chunk, 0, b"event: ") {
            Some(event) => (Some(event.clone()), event.end + 1),
            None => (None, 0),
        };
        let data = plain_line(&self.chunk, at, b"data: ")?;
        let end = data.end + 2;
        if self.chunk.get(data.end + 1) != Some(&b'\n') || end > MAX_FRAME_BYTES {
            return None;
        }
        let raw = self.chunk.split_to(end);
        Some(Frame {
            raw,
            event,
            first: Some(data),
            rare: None,
        })
    }

    /// Ends the stream.
    pub fn finish(&mut self) -> Tail {
        let whole = self.line == LineScan::Whole;
        let rest = std::mem::take(&mut self.chunk);
        let raw = self.with_carry(rest);
        self.line = LineScan::Start;
        if whole && !raw.is_empty() {
            return Tail {
                frame: Some(Frame::new(raw)),
                unended: None,
                left: 0,
            };
        }
        Tail {
            frame: None,
            left: raw.len(),
            unended: unended(&raw),
        }
    }

    fn with_carry(&mut self, mut piece: Bytes) -> Bytes {
        if self.carry.is_empty() {
            return piece;
        }
        let mut whole = std::mem::take(&mut self.carry);
        whole.extend_from_slice(piece.chunk());
        piece.clear();
        whole.freeze()
    }

    /// Advances `scanned` to the end of the frame, or to the end of the chunk when the frame does not end in it.
    fn scan(&mut self) -> bool {
        while let Some(rest) = self
            .chunk
            .get(self.scanned..)
            .filter(|rest| !rest.is_empty())
        {
            let end = memchr::memchr2(b'\n', b'\r', rest);
            match (self.line, end) {
                (LineScan::Whole, Some(0)) if rest.first() == Some(&b'\n') => {
                    self.scanned += 1;
                    return true;
                }
                (LineScan::Whole, _) => return true,
                (LineScan::AfterCr, Some(0)) if rest.first() == Some(&b'\n') => {
                    self.scanned += 1;
                    self.line = LineScan::Start;
                    continue;
                }
                _ => {}
            }
            let Some(length) = end else {
                self.scanned += rest.len();
                self.line = LineScan::Inside;
                continue;
            };
            let blank = length == 0 && self.line != LineScan::Inside;
            let cr = rest.get(length) == Some(&b'\r');
            self.scanned += length + 1;
            self.line = match (blank, cr) {
                (true, false) => return true,
                (true, true) => LineScan::Whole,
                (false, true) => LineScan::AfterCr,
                (false, false) => LineScan::Start,
            };
        }
        false
    }
}

/// What follows `name` in the line that begins at `at`, if LF ends it.
fn plain_line(bytes: &[u8], at: usize, name: &[u8]) -> Option<Range<usize>> {
    let value = bytes.get(at..)?.strip_prefix(name)?;
    let length = memchr::memchr2(b'\n', b'\r', value)?;
    let start = at + name.len();
    (value.get(length) == Some(&b'\n')).then_some(start..start + length)
}

/// The frame that lacks only its blank line: its data is a complete JSON value, or the terminal marker.
fn unended(raw: &[u8]) -> Option<Frame> {
    let end = if raw.ends_with(b"\n") || raw.ends_with(b"\r") {
        &b"\n"[..]
    } else {
        b"\n\n"
    };
    let frame = Frame::new(Bytes::from([raw, end].concat()));
    let data = frame.data()?;
    let whole = data.trim_ascii() == b"[DONE]"
        || serde_json::from_slice::<serde::de::IgnoredAny>(&data).is_ok();
    whole.then_some(frame)
}

/// Writes one event with one line of data.
pub fn event(name: &str, data: &str) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// Writes one unnamed event with one line of data.
pub fn data(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}
