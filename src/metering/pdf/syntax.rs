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

fn is_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
    )
}

/// The position after white space and comments.
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            Some(byte) if is_blank(*byte) => at = at.saturating_add(1),
            Some(b'%') => {
                let line = bytes[at..]
                    .iter()
                    .position(|byte| matches!(byte, b'\n' | b'\r'))
                    .unwrap_or(bytes.len().saturating_sub(at));
                at = at.saturating_add(line);
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
    let start = blanks(bytes, at);
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
    let (item, mut end) = token(bytes, start)?;
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
            .position(|byte| is_blank(*byte) || is_delimiter(*byte))
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
pub(super) fn entries<'a>(dict: &'a [u8]) -> impl Iterator<Item = (Cow<'a, [u8]>, PdfItem<'a>)> {
    let mut at = if dict.starts_with(b"<<") {
        2
    } else {
        dict.len()
    };
    std::iter::from_fn(move || {
        loop {
            let (key, behind) = value(dict, at)?;
            at = behind;
            if key.kind != PdfTokenKind::Name {
                continue;
            }
            let (mut found, mut end) = value(dict, at)?;
            if found.kind == PdfTokenKind::Word
                && let Some(behind) = reference_end(dict, at)
            {
                found = PdfItem {
                    kind: PdfTokenKind::Word,
                    bytes: dict.get(blanks(dict, at)..behind)?,
                };
                end = behind;
            }
            at = end;
            return Some((name(key.bytes), found));
        }
    })
}

/// The values in an array; a reference is three words.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = PdfItem<'_>> {
    let mut at = 1;
    std::iter::from_fn(move || {
        let (found, behind) = value(array, at)?;
        at = behind;
        Some(found)
    })
}

/// The value of one entry; the last one counts, as for most readers.
pub(super) fn entry<'a>(dict: &'a [u8], wanted: &[u8]) -> Option<PdfItem<'a>> {
    let [found] = lookup(dict, [wanted]);
    found
}

/// The same of several, in one walk: a file may have 400,000 dictionaries, and walking them is most of the work.
pub(super) fn lookup<'a, const N: usize>(
    dict: &'a [u8],
    wanted: [&[u8]; N],
) -> [Option<PdfItem<'a>>; N] {
    let mut found = [None; N];
    for (name, value) in entries(dict) {
        for (wanted, found) in wanted.iter().zip(&mut found) {
            if name.as_ref() == *wanted {
                *found = Some(value);
            }
        }
    }
    found
}

/// The position after `12 0 R`.
fn reference_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (number, at) = token(bytes, at)?;
    integer(number.bytes)?;
    let (generation, at) = token(bytes, at)?;
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
            if let Some(end) = reference_end(bytes, at) {
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
