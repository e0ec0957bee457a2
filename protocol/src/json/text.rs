//! The text of JSON strings: removing escapes and adding them.
//!
//! Works on inner text that a cursor has passed, so it never fails. A lone surrogate always becomes U+FFFD.

use std::borrow::Cow;

/// Removes the escapes from a string's inner text that a cursor has passed. A lone surrogate becomes U+FFFD.
pub fn unescape(raw: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('u') => {
                let (units, length) = utf16_units(after.as_bytes());
                out.extend(
                    char::decode_utf16(units)
                        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
                );
                rest = after.get(length..).unwrap_or_default();
                continue;
            }
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(same) => out.push(same),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The UTF-16 units of `uXXXX`, or of `uXXXX\uXXXX` when that is a surrogate pair, and how many bytes they take.
fn utf16_units(bytes: &[u8]) -> (impl Iterator<Item = u16>, usize) {
    let unit = |at: usize| {
        let hex = bytes
            .get(at..at + 4)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        hex.and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    let first = unit(1).unwrap_or(0xfffd);
    let pair = (0xd800..0xdc00).contains(&first) && bytes.get(5..7) == Some(b"\\u");
    let second = if pair {
        unit(7).filter(|second| (0xdc00..0xe000).contains(second))
    } else {
        None
    };
    let length = if second.is_some() { 11 } else { 5 };
    (std::iter::once(first).chain(second), length)
}

/// A text as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
