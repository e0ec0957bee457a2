//! The syntax of PDF, parsed in place: values are slices of the file, no tree is built.
//!
//! Lenient, as viewers are: invalid parts are skipped. Must not allocate for what is read, must not recurse deeper than
//! [`MAX_DEPTH`], and must look at each byte of a value once.

use std::borrow::Cow;

/// Deepest nesting of arrays and dictionaries that is read.
const MAX_DEPTH: u32 = 64;

/// The kind of token at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PdfTokenKind {
    Dict,
    Array,
    Text,
    Hex,
    Name,
    /// A number, a keyword, or a misplaced delimiter.
    Word,
}

/// A token or a whole value: its kind and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PdfItem<'a> {
    pub(super) kind: PdfTokenKind,
    pub(super) bytes: &'a [u8],
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

/// Whether a byte ends a word: white space, or a delimiter.
const ENDS_WORD: [bool; 256] = {
    let mut ends = [false; 256];
    let bytes = b"\0\t\n\x0c\r ()<>[]{}/%";
    let mut at = 0;
    while at < bytes.len() {
        ends[bytes[at] as usize] = true;
        at += 1;
    }
    ends
};

fn is_delimiter(byte: u8) -> bool {
    ENDS_WORD[usize::from(byte)] && !is_blank(byte)
}

/// The position after white space and comments.
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            Some(byte) if is_blank(*byte) => at = at.saturating_add(1),
            Some(b'%') => {
                let line = memchr::memchr2(b'\n', b'\r', &bytes[at..]);
                at = line.map_or(bytes.len(), |line| at.saturating_add(line));
            }
            _ => return at,
        }
    }
}

/// The value at `at` and the position after it); `None` at the end of the bytes, or nested too deep.
pub(super) fn value(bytes: &[u8], at: usize) -> Option<(PdfItem<'_>, usize)> {
    nested(bytes, at, 0)
}

/// The same for one token: brackets are tokens of their own.
pub(super) fn token(bytes: &[u8], at: usize) -> Option<(PdfItem<'_>, usize)> {
    token_at(bytes, blanks(bytes, at))
}

/// The same where neither white space nor a comment begins.
#[inline]
fn token_at(bytes: &[u8], start: usize) -> Option<(PdfItem<'_>, usize)> {
    let next = start.saturating_add(1);
    let (kind, end) = match (bytes.get(start)?, bytes.get(next)) {
        (b'(', _) => (PdfTokenKind::Text, text_end(bytes, start)),
        (b'<', Some(b'<')) | (b'>', Some(b'>')) => (PdfTokenKind::Word, next.saturating_add(1)),
        (b'<', _) => (PdfTokenKind::Hex, behind(bytes, start, b'>')),
        (b'/', _) => (PdfTokenKind::Name, word_end(bytes, next)),
        (byte, _) if is_delimiter(*byte) => (PdfTokenKind::Word, next),
        _ => (PdfTokenKind::Word, word_end(bytes, start)),
    };
    Some((
        PdfItem {
            kind,
            bytes: bytes.get(start..end)?,
        },
        end,
    ))
}

fn nested(bytes: &[u8], at: usize, depth: u32) -> Option<(PdfItem<'_>, usize)> {
    let start = blanks(bytes, at);
    let (item, mut end) = token_at(bytes, start)?;
    let (kind, close): (PdfTokenKind, &[u8]) = match item.bytes {
        b"<<" => (PdfTokenKind::Dict, b">>"),
        b"[" => (PdfTokenKind::Array, b"]"),
        _ => return Some((item, end)),
    };
    if depth == MAX_DEPTH {
        return None;
    }
    loop {
        let inner = blanks(bytes, end);
        if bytes
            .get(inner..)
            .is_none_or(|rest| rest.is_empty() || rest.starts_with(close))
        {
            end = inner.saturating_add(close.len()).min(bytes.len());
            return Some((
                PdfItem {
                    kind,
                    bytes: bytes.get(start..end)?,
                },
                end,
            ));
        }
        end = nested(bytes, inner, depth.saturating_add(1))?.1;
    }
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from.saturating_add(
        rest.iter()
            .position(|byte| ENDS_WORD[usize::from(*byte)])
            .unwrap_or(rest.len()),
    )
}

fn behind(bytes: &[u8], from: usize, close: u8) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from.saturating_add(memchr::memchr(close, rest).map_or(rest.len(), |at| at.saturating_add(1)))
}

fn text_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut open) = (start.saturating_add(1), 1_u32);
    while let Some(byte) = bytes.get(at) {
        at = at.saturating_add(1);
        match byte {
            b'\\' => at = at.saturating_add(1),
            b'(' => open = open.saturating_add(1),
            b')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

/// The entries of a dictionary: name and value. A reference is a value of three words, as written.
pub(super) struct PdfEntries<'a> {
    bytes: &'a [u8],
    at: usize,
    is_over: bool,
    is_too_deep: bool,
}

impl<'a> PdfEntries<'a> {
    /// Those of the dictionary at `at`, whose end is found on the way; none, if another value is there.
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        let begins = bytes.get(at..).is_some_and(|rest| rest.starts_with(b"<<"));
        Self {
            bytes,
            at: at.saturating_add(2),
            is_over: !begins,
            is_too_deep: false,
        }
    }

    /// The position after the last entry that was read; in the end that after the dictionary.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether it ended early, because something in it is nested too deep.
    pub(super) fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }

    /// The next entry, whose value `read` reads.
    pub(super) fn next_through(
        &mut self,
        mut read: impl FnMut(&'a [u8], usize) -> Option<(PdfItem<'a>, usize)>,
    ) -> Option<(Cow<'a, [u8]>, PdfItem<'a>)> {
        while !self.is_over {
            let key = self.step(|bytes, at| nested(bytes, at, 1))?;
            self.is_over = key.bytes == b">>";
            if key.kind != PdfTokenKind::Name {
                continue;
            }
            let mut found = self.step(&mut read)?;
            if found.kind == PdfTokenKind::Word {
                self.is_over = found.bytes == b">>";
                if let Some(end) = reference_end(self.bytes, found, self.at) {
                    let start = self.at.saturating_sub(found.bytes.len());
                    found.bytes = self.bytes.get(start..end)?;
                    self.at = end;
                }
            }
            return Some((name(key.bytes), found));
        }
        None
    }

    /// The value that begins next.
    fn step(
        &mut self,
        read: impl FnOnce(&'a [u8], usize) -> Option<(PdfItem<'a>, usize)>,
    ) -> Option<PdfItem<'a>> {
        let at = blanks(self.bytes, self.at);
        let Some((item, end)) = read(self.bytes, at) else {
            self.is_too_deep = at < self.bytes.len();
            self.is_over = true;
            self.at = self.bytes.len();
            return None;
        };
        self.at = end;
        Some(item)
    }
}

impl<'a> Iterator for PdfEntries<'a> {
    type Item = (Cow<'a, [u8]>, PdfItem<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_through(|bytes, at| nested(bytes, at, 1))
    }
}

/// The entries of a dictionary that was cut out.
pub(super) fn entries(dict: &[u8]) -> PdfEntries<'_> {
    PdfEntries::at(dict, 0)
}

/// The value of one entry; the last one counts, as for most readers.
pub(super) fn entry<'a>(dict: &'a [u8], wanted: &[u8]) -> Option<PdfItem<'a>> {
    let of_name = entries(dict).filter(|(name, _)| name.as_ref() == wanted);
    of_name.last().map(|(_, value)| value)
}

/// The position after `12 0 R`, of which the first word was read.
fn reference_end(bytes: &[u8], first: PdfItem<'_>, behind: usize) -> Option<usize> {
    integer(first.bytes)?;
    let (generation, at) = token(bytes, behind)?;
    integer(generation.bytes)?;
    let (word, at) = token(bytes, at)?;
    (word.bytes == b"R").then_some(at)
}

/// The objects that a value refers to: itself a reference, or an array of them.
pub(super) fn references(value: PdfItem<'_>) -> impl Iterator<Item = u32> + '_ {
    let mut at = usize::from(value.kind == PdfTokenKind::Array);
    let bytes = value.bytes;
    std::iter::from_fn(move || {
        loop {
            let (item, behind) = token(bytes, at)?;
            if let Some(end) = reference_end(bytes, item, behind) {
                at = end;
                return integer(item.bytes).and_then(|number| u32::try_from(number).ok());
            }
            at = behind;
        }
    })
}

pub(super) fn integer(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.strip_prefix(b"+").unwrap_or(bytes);
    let (first, rest) = digits.split_first()?;
    rest.iter().try_fold(digit(*first)?, |number, byte| {
        number.checked_mul(10)?.checked_add(digit(*byte)?)
    })
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit()
        .then(|| u64::from(byte.saturating_sub(b'0')))
}

/// A name without its slash, with `#xx` decoded.
pub(super) fn name(bytes: &[u8]) -> Cow<'_, [u8]> {
    let plain = bytes.strip_prefix(b"/").unwrap_or(bytes);
    if !plain.contains(&b'#') {
        return Cow::Borrowed(plain);
    }
    let mut out = Vec::with_capacity(plain.len());
    let mut rest = plain;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        let hex = behind
            .get(..2)
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match hex.filter(|_| *byte == b'#') {
            Some(code) => {
                out.push(code);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => out.push(*byte),
        }
    }
    Cow::Owned(out)
}

/// The bytes of a string, literal or hexadecimal.
pub(super) fn string(item: PdfItem<'_>) -> Vec<u8> {
    if item.kind == PdfTokenKind::Hex {
        return hex(item.bytes);
    }
    let inner = item
        .bytes
        .get(1..item.bytes.len().saturating_sub(1))
        .unwrap_or_default();
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(first @ b'0'..=b'7') => {
                    let mut code = u32::from(first & 7);
                    for _ in 0..2 {
                        if let Some(digit) = rest.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                            code = code.saturating_mul(8).saturating_add(u32::from(digit & 7));
                        }
                    }
                    // The highest digit of three may overflow; readers drop what does not fit.
                    let [low, ..] = code.to_le_bytes();
                    out.push(low);
                }
                Some(b'n' | b'r' | b't' | b'b' | b'f') => out.push(b' '),
                Some(b'\n' | b'\r') | None => {}
                Some(same) => out.push(same),
            },
            byte => out.push(byte),
        }
    }
    out
}

/// What a hexadecimal string says.
pub(super) fn hex(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair.first().unwrap_or(&0) << 4 | pair.get(1).unwrap_or(&0))
        .collect()
}
