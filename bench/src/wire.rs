//! HTTP/1.1 as bytes: where a head ends, how long the body is, and nothing else. The same reader serves requests and answers.

use memchr::{memchr_iter, memmem};

/// A head longer than this is a mistake.
const LONGEST_HEAD: usize = 16 * 1024;

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLeft {
    /// Bytes that remain.
    Length(usize),
    /// The rest of a line with a chunk's size, as read so far.
    Size(usize),
    /// Bytes that remain of a chunk, and its line end behind them.
    Chunk(usize),
    /// Bytes that remain of the line end behind a chunk.
    LineEnd(usize),
    /// Bytes that remain of the empty line behind the last chunk. Nobody here sends trailers.
    LastLine(usize),
}

/// Reads one message from the pieces in which it arrives.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    head: Vec<u8>,
    body: Option<BodyLeft>,
}

impl MessageReader {
    /// Forgets a message that was read, to begin with the next.
    pub(crate) fn reset(&mut self) {
        self.head.clear();
        self.body = None;
    }

    /// The head, once it is there.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Reads on and hands out the body's bytes. `Some` with the number of bytes used as soon as the message is whole.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<Option<usize>, String> {
        let mut at = 0;
        if self.body.is_none() {
            at = self.read_head(bytes)?;
        }
        while let Some(body) = self.body {
            let rest = bytes.get(at..).unwrap_or_default();
            if matches!(body, BodyLeft::Length(0) | BodyLeft::LastLine(0)) {
                return Ok(Some(at));
            }
            let Some(first) = rest.first() else { break };
            let (used, next) = match body {
                BodyLeft::Size(size) => (1, size_line(size, *first)?),
                BodyLeft::Length(left)
                | BodyLeft::Chunk(left)
                | BodyLeft::LineEnd(left)
                | BodyLeft::LastLine(left) => {
                    let used = left.min(rest.len());
                    if matches!(body, BodyLeft::Length(_) | BodyLeft::Chunk(_)) {
                        sink(rest.get(..used).unwrap_or_default())?;
                    }
                    (used, body.after(left - used))
                }
            };
            at += used;
            self.body = Some(next);
        }
        Ok(None)
    }

    /// Takes bytes of the head; how many of these belonged to it.
    fn read_head(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let Some(end) = memmem::find(self.head.get(from..).unwrap_or_default(), b"\r\n\r\n") else {
            return if self.head.len() > LONGEST_HEAD {
                Err("a head without end".to_owned())
            } else {
                Ok(bytes.len())
            };
        };
        self.head.truncate(from + end + 4);
        self.body = Some(framing(&self.head)?);
        Ok(self.head.len() - before)
    }
}

impl BodyLeft {
    /// What comes when so much of this is left.
    fn after(self, left: usize) -> Self {
        match self {
            Self::Chunk(_) if left == 0 => Self::LineEnd(2),
            Self::LineEnd(_) if left == 0 => Self::Size(0),
            Self::Length(_) => Self::Length(left),
            Self::Chunk(_) => Self::Chunk(left),
            Self::LineEnd(_) => Self::LineEnd(left),
            Self::LastLine(_) | Self::Size(_) => Self::LastLine(left),
        }
    }
}

/// One more character of a line with a chunk's size.
fn size_line(size: usize, character: u8) -> Result<BodyLeft, String> {
    match (character, char::from(character).to_digit(16)) {
        (b'\r', _) => Ok(BodyLeft::Size(size)),
        (b'\n', _) if size == 0 => Ok(BodyLeft::LastLine(2)),
        (b'\n', _) => Ok(BodyLeft::Chunk(size)),
        (_, Some(digit)) if size < 1 << 32 => Ok(BodyLeft::Size(size * 16 + digit as usize)),
        _ => Err(format!(
            "{:?} in the size of a chunk",
            char::from(character)
        )),
    }
}

/// How the body behind this head ends.
fn framing(head: &[u8]) -> Result<BodyLeft, String> {
    let mut begin = 0;
    for end in memchr_iter(b'\n', head) {
        let line = head.get(begin..end).unwrap_or_default().trim_ascii_end();
        begin = end + 1;
        if let Some(value) = header(line, b"content-length:") {
            let length = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            return length
                .map(BodyLeft::Length)
                .ok_or_else(|| "a content-length that is no number".to_owned());
        }
        if header(line, b"transfer-encoding:")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"))
        {
            return Ok(BodyLeft::Size(0));
        }
    }
    Ok(BodyLeft::Length(0))
}

fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (begin, value) = line.split_at_checked(name.len())?;
    begin.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::MessageReader;

    /// Reads a message cut into pieces of `size`; its body.
    fn read(message: &[u8], size: usize) -> Vec<u8> {
        let (mut reader, mut body) = (MessageReader::default(), Vec::new());
        let mut whole = None;
        for piece in message.chunks(size) {
            assert_eq!(whole, None, "it ended early");
            whole = reader
                .feed(piece, |bytes| {
                    body.extend_from_slice(bytes);
                    Ok(())
                })
                .unwrap();
        }
        assert!(whole.is_some(), "it did not end");
        assert!(reader.head().ends_with(b"\r\n\r\n"));
        body
    }

    #[test]
    fn a_body_is_read_from_any_pieces() {
        let length = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX: y\r\n\r\nhello world";
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
        for size in 1..chunked.len() + 1 {
            assert_eq!(read(length, size), b"hello world");
            assert_eq!(read(chunked, size), b"hello world");
        }
    }
}
