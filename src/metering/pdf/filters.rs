//! Decompresses a stream, within a byte budget for the whole document.
//!
//! Only the filters used for text and objects: Flate, ASCII85 and hexadecimal. Anything else gives `None` and makes the document
//! unreadable.

use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};

use super::syntax::{PdfTokenKind, entries, entry, hex, integer, name, token};

/// Most filters on one stream.
const MOST: usize = 4;

/// The data of the stream with this dictionary and raw data; `left` is what may still be inflated.
pub(super) fn decoded(dict: &[u8], raw: &[u8], left: &mut usize) -> Option<Vec<u8>> {
    let predicted = |parms: &[u8]| {
        entry(parms, b"Predictor")
            .and_then(|value| integer(value.bytes))
            .is_some_and(|kind| kind > 1)
    };
    for (key, value) in entries(dict) {
        let parms = matches!(key.as_ref(), b"DecodeParms" | b"DP");
        // A reference or an array of parameters is not followed: neither occurs with plain text.
        if parms
            && (value.kind != PdfTokenKind::Dict
                && value.bytes != b"null"
                && value.bytes != b"[null]"
                || predicted(value.bytes))
        {
            return None;
        }
    }
    let mut data = raw.to_vec();
    for filter in filters(dict)? {
        data = match filter.as_slice() {
            b"FlateDecode" | b"Fl" => inflate(&data, *left)?,
            b"ASCII85Decode" | b"A85" => ascii85(&data)?,
            b"ASCIIHexDecode" | b"AHx" => {
                hex(data.split(|byte| *byte == b'>').next().unwrap_or_default())
            }
            _ => return None,
        };
        *left = left.checked_sub(data.len())?;
    }
    Some(data)
}

fn filters(dict: &[u8]) -> Option<Vec<Vec<u8>>> {
    let Some(filter) = entry(dict, b"Filter") else {
        return Some(Vec::new());
    };
    let mut found = Vec::new();
    let mut at = usize::from(filter.kind == PdfTokenKind::Array);
    while let Some((item, behind)) = token(filter.bytes, at) {
        match item.kind {
            PdfTokenKind::Name => found.push(name(item.bytes).into_owned()),
            _ if matches!(item.bytes, b"]" | b"null") => {}
            // A reference to a filter's name: no program writes that.
            _ => return None,
        }
        at = behind;
    }
    (found.len() <= MOST).then_some(found)
}

fn inflate(data: &[u8], most: usize) -> Option<Vec<u8>> {
    match decompress_to_vec_zlib_with_limit(data, most) {
        Ok(out) => Some(out),
        Err(error) if error.status == TINFLStatus::HasMoreOutput => None,
        // Viewers show what remains of a damaged stream.
        Err(error) => Some(error.output).filter(|out| !out.is_empty()),
    }
}

/// A number with one more digit.
fn base85(number: u64, digit: u8) -> u64 {
    number.saturating_mul(85).saturating_add(u64::from(digit))
}

fn ascii85(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len());
    let (mut group, mut digits) = (0_u64, 0_usize);
    for byte in data {
        match byte {
            b'z' if digits == 0 => out.extend([0; 4]),
            b'!'..=b'u' => {
                group = base85(group, byte.saturating_sub(b'!'));
                digits = digits.saturating_add(1);
            }
            b'~' => break,
            _ => continue,
        }
        if digits == 5 {
            out.extend(u32::try_from(group).ok()?.to_be_bytes());
            (group, digits) = (0, 0);
        }
    }
    if digits > 1 {
        // A group that ends early counts as filled up with the last digit, and yields a byte less than it has digits.
        (digits..5).for_each(|_| group = base85(group, 84));
        let bytes = group.to_be_bytes();
        out.extend(bytes.iter().skip(4).take(digits.saturating_sub(1)));
    }
    Some(out)
}
