//! Finds names inside percent-coding, base64 and hexadecimal: what was coded is decoded, and goes if the plain text would change.

use std::borrow::Cow;

use super::find::{replaced, token_len};

/// Bytes of readable text inside a decoded token that are looked at. No name that is searched for is shorter in this form.
const SHORTEST_TEXT: usize = 5;
/// Characters of base64 that carry them.
const SHORTEST_TOKEN: usize = 7;
/// How often percent-coding is undone: `%252F` is twice coded.
const LAYERS: usize = 3;

/// The text with `[hidden]` for each coded token whose plain text changes when it is cleaned.
pub(super) fn without_coded(text: &str, clean: impl Fn(&str) -> String) -> String {
    let hides = |plain: &str| clean(plain) != plain;
    let hidden = |token: &str| {
        readable(token, 6, base64_digit).is_some_and(|plain| hides(&plain))
            || readable(token, 4, hex_digit).is_some_and(|plain| hides(&plain))
    };
    let in_link = |c: char| !c.is_whitespace() && !"\"'`<>\\".contains(c);
    let in_token = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
    let text = without_tokens(text, in_link, |token| {
        let mut plain = Cow::Borrowed(token);
        (0..LAYERS).any(|_| {
            let Some(decoded) = percent_decoded(&plain) else {
                return false;
            };
            let found = hides(&decoded) || without_tokens(&decoded, in_token, hidden) != decoded;
            plain = Cow::Owned(decoded);
            found
        })
    });
    without_tokens(&text, in_token, hidden)
}

fn without_tokens(
    text: &str,
    part: impl Fn(char) -> bool + Copy,
    hidden: impl Fn(&str) -> bool,
) -> String {
    replaced(text, |text, _, from| {
        let at = from + text.get(from..)?.find(part)?;
        let end = at + token_len(&text[at..], part);
        Some((at, end, hidden(&text[at..end]).then_some("[hidden]")))
    })
}

/// The token without its percent-coding; nothing if it has none.
fn percent_decoded(token: &str) -> Option<String> {
    let bytes = token.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digit = |place: usize| bytes.get(place).and_then(|digit| hex_digit(*digit));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    (out.len() < bytes.len()).then(|| String::from_utf8_lossy(&out).into_owned())
}

/// The readable texts inside a token of digits with `width` bits each, one per line. Where the coded text begins is not known: a
/// token may have grown together with the path in front of it.
fn readable(token: &str, width: u32, digit: impl Fn(u8) -> Option<u8>) -> Option<String> {
    if token.len() < SHORTEST_TOKEN {
        return None;
    }
    let digits: Vec<u8> = token.bytes().map_while(digit).collect();
    if digits.len() < token.len() {
        return None;
    }
    let shown = |byte: &u8| *byte == b' ' || byte.is_ascii_graphic();
    let mut out = String::new();
    for begin in 0..(if width == 6 { 4 } else { 2 }) {
        let bytes = packed(digits.get(begin..).unwrap_or_default(), width);
        for text in bytes.split(|byte| !shown(byte)) {
            if text.len() >= SHORTEST_TEXT {
                out.push_str(&String::from_utf8_lossy(text));
                out.push('\n');
            }
        }
    }
    (!out.is_empty()).then_some(out)
}

fn packed(digits: &[u8], width: u32) -> Vec<u8> {
    let (mut out, mut bits, mut held) = (Vec::with_capacity(digits.len()), 0_u32, 0_u32);
    for digit in digits {
        bits = bits << width | u32::from(*digit);
        held += width;
        if held >= 8 {
            held -= 8;
            out.extend((bits >> held).to_le_bytes().first());
            bits &= (1 << held) - 1;
        }
    }
    out
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
