//! Scans the inside of a JSON string: short ones 16 bytes at a time in registers that every CPU of the architecture has, longer
//! ones 64 bytes at a time in the widest registers of the CPU it runs on.
//!
//! It reports how far it got and never judges: it stops at the closing quote, at the first byte that cannot be in a string, and in
//! the last bytes of the text; the caller then continues byte by byte. Masks have one bit for each byte, the lowest for the first.

use fearless_simd::{Level, Simd, dispatch, i8x16, prelude::*, u8x16, u8x64};

/// Bytes of one block.
const BLOCK: usize = 64;
/// Bytes checked before the first block: names and the dialects' own words end within them, and need no block processing.
const SHORT: usize = 32;

/// How much of a string is known to be valid.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Where it stopped.
    pub(super) at: usize,
    /// Whether there are escapes. Also true if one follows within the same block.
    pub(super) has_escapes: bool,
    /// Bytes of characters that are not ASCII.
    pub(super) other: u64,
}

/// The position after the closing quote of a string whose inside begins at `at`, if it is short, ASCII, and without escapes.
#[inline]
pub(super) fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let chunk = bytes.get(at..)?.first_chunk::<SHORT>()?;
    let length = dispatch!(Level::baseline(), simd => plain(simd, chunk))?;
    Some(at + length + 1)
}

/// How many bytes precede the quote, if they are all ASCII without backslashes and control characters.
#[inline(always)]
fn plain<S: Simd>(simd: S, chunk: &[u8; SHORT]) -> Option<usize> {
    let (sixteens, _) = chunk.as_chunks::<16>();
    for (index, sixteen) in sixteens.iter().enumerate() {
        let block = u8x16::from_slice(simd, sixteen);
        let quotes = block.simd_eq(u8x16::splat(simd, b'"'));
        // As signed numbers, bytes that are not ASCII are below all others.
        let low = block
            .bitcast::<i8x16<S>>()
            .simd_lt(i8x16::splat(simd, 0x20));
        let special = (quotes | block.simd_eq(u8x16::splat(simd, b'\\')) | low).to_bitmask();
        if special != 0 {
            let first = special.trailing_zeros();
            let is_quote = (quotes.to_bitmask() >> first) & 1 == 1;
            return is_quote.then_some(index * sixteen.len() + first as usize);
        }
    }
    None
}

/// Scans a string from `at` on, which is not inside an escape.
pub(super) fn pass(bytes: &[u8], at: usize) -> Passed {
    dispatch!(Level::new(), simd => blocks(simd, bytes, at))
}

// Inlined so that it is compiled for each kind of CPU.
#[inline(always)]
fn blocks<S: Simd>(simd: S, bytes: &[u8], at: usize) -> Passed {
    let mut passed = Passed {
        at,
        ..Passed::default()
    };
    let mut open_escape = false;
    while let Some(chunk) = bytes
        .get(passed.at..)
        .and_then(<[u8]>::first_chunk::<BLOCK>)
    {
        let block = u8x64::from_slice(simd, chunk);
        let are = |byte: u8| block.simd_eq(u8x64::splat(simd, byte)).to_bitmask();
        let (mut end, mut wrong) = (
            are(b'"'),
            block.simd_lt(u8x64::splat(simd, 0x20)).to_bitmask(),
        );
        let begun_before = usize::from(open_escape);
        let backslashes = are(b'\\');
        if backslashes != 0 || open_escape {
            passed.has_escapes = true;
            let escaped = escaped(backslashes, &mut open_escape);
            let rare = escaped & !(end | backslashes | are(b'n') | are(b't'));
            end &= !escaped;
            wrong |= unknown(bytes, passed.at, rare & below(end));
        }
        if wrong & below(end) != 0 {
            passed.at -= begun_before;
            return passed;
        }
        let others = block.simd_ge(u8x64::splat(simd, 0x80)).to_bitmask() & below(end);
        passed.other += u64::from(others.count_ones());
        if end != 0 {
            passed.at += end.trailing_zeros() as usize;
            return passed;
        }
        passed.at += BLOCK;
    }
    passed.at -= usize::from(open_escape);
    passed
}

/// The position after those integers from `at` on, where one may begin, that each have a comma behind them.
pub(super) fn integers(bytes: &[u8], at: usize) -> usize {
    dispatch!(Level::new(), simd => lists(simd, bytes, at))
}

#[inline(always)]
fn lists<S: Simd>(simd: S, bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let block = u8x64::from_slice(simd, chunk);
        let are = |byte: u8| block.simd_eq(u8x64::splat(simd, byte)).to_bitmask();
        let from = |byte: u8| block.simd_ge(u8x64::splat(simd, byte)).to_bitmask();
        let (digits, commas) = (from(b'0') & !from(b'9' + 1), are(b','));
        let begin = commas << 1 | 1;
        let signs = are(b'-') & begin;
        let first = begin ^ signs | signs << 1;
        // A comma without a number, and a zero before other digits.
        let wrong = !(digits | commas | signs) | first & commas | first & are(b'0') & digits >> 1;
        let good = commas & below(wrong);
        at += BLOCK - good.leading_zeros() as usize;
        if wrong != 0 || good == 0 {
            break;
        }
    }
    at
}

/// The bits below the lowest set bit; all bits if none is set.
fn below(bits: u64) -> u64 {
    (bits & bits.wrapping_neg()).wrapping_sub(1)
}

/// The bytes after a backslash that is not itself escaped. `open` says whether the previous block ended in one, and then whether
/// this one does. All runs of backslashes are handled at once: the subtraction carries through each of them (after simdjson).
fn escaped(backslashes: u64, open: &mut bool) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let first = u64::from(*open);
    let begins = backslashes & !first;
    let series = ((begins << 1) | ODD).wrapping_sub(begins) ^ ODD;
    *open = series & backslashes & (1 << 63) != 0;
    series ^ (backslashes | first)
}

/// Which of these bytes, in the block at `at`, may not follow a backslash.
fn unknown(bytes: &[u8], at: usize, mut escaped: u64) -> u64 {
    let mut unknown = 0;
    while escaped != 0 {
        let place = escaped.trailing_zeros();
        if escape_length(bytes, (at + place as usize).wrapping_sub(1)).is_err() {
            unknown |= 1 << place;
        }
        escaped &= escaped - 1;
    }
    unknown
}

/// How long an escape in a string is.
pub(super) fn escape_length(bytes: &[u8], at: usize) -> Result<usize, super::JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u')
            if bytes
                .get(at + 2..at + 6)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
        {
            Ok(6)
        }
        _ => Err(super::JsonError {
            at,
            what: "an unknown escape in a string",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, one byte at a time.
    fn singly(bytes: &[u8]) -> (usize, u64) {
        let (mut at, mut other) = (0, 0);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' | 0..0x20 => break,
                b'\\' => match escape_length(bytes, at) {
                    Ok(length) => at += length,
                    Err(_) => break,
                },
                _ => {
                    other += u64::from(*byte >= 0x80);
                    at += 1;
                }
            }
        }
        (at, other)
    }

    #[test]
    fn on_every_kind_of_cpu_it_comes_to_the_same_end() {
        let pieces = [
            "a",
            "some more words, ",
            "é→",
            r"\n",
            r"\\",
            r#"\""#,
            r"\u00e9",
            r"\b\f\/\r\t",
            "\"",
            "\u{1}",
            r"\x",
            r"\u12",
        ];
        let mut state = 7;
        for _ in 0..20_000 {
            // Most texts are long and valid: nothing else fills whole blocks.
            let mut draw = |most: u64| {
                usize::try_from(crate::token_estimate::random(&mut state) % most).unwrap()
            };
            let kinds = if draw(4) == 0 { 12 } else { 8 };
            let text: String = (0..draw(80))
                .map(|_| pieces[draw(kinds)])
                .chain(["\"", &" ".repeat(2 * BLOCK)])
                .collect();
            let bytes = text.as_bytes();
            let (end, other) = singly(bytes);
            for passed in [
                pass(bytes, 0),
                dispatch!(Level::baseline(), simd => blocks(simd, bytes, 0)),
            ] {
                let (rest, more) = singly(&bytes[passed.at..]);
                assert_eq!(
                    (passed.at + rest, passed.other + more),
                    (end, other),
                    "{text}"
                );
                assert!(
                    passed.at <= end && end - passed.at < BLOCK + 6,
                    "{} of {end}: {text}",
                    passed.at
                );
                assert!(passed.has_escapes || !text[..passed.at].contains('\\'));
            }
            if let Some(behind) = short(bytes, 0) {
                assert_eq!((behind, bytes[end], other), (end + 1, b'"', 0), "{text}");
                assert!(!text[..end].contains('\\'), "{text}");
            } else {
                assert!(
                    end >= SHORT || bytes[end] != b'"' || other > 0 || text[..end].contains('\\'),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn integers_are_passed_up_to_the_last_comma_before_anything_else() {
        let pieces = [
            "0,", "7,", "-1,", "1234567,", "-0,", "90,", ",", "-,", "00,", "01,", "1-,", "--1,",
            "1.5,", "1e3,", "[],", "\"a\",", " 1,", "1 ,", "/,", ":,",
        ];
        let singly = |bytes: &[u8]| {
            let mut at = 0;
            while let Ok(end) = super::super::number_end(bytes, at)
                && bytes[at..end]
                    .iter()
                    .all(|byte| matches!(byte, b'-' | b'0'..=b'9'))
                && bytes.get(end) == Some(&b',')
            {
                at = end + 1;
            }
            at
        };
        let mut state = 7;
        for _ in 0..20_000 {
            let mut draw = |most: u64| {
                usize::try_from(crate::token_estimate::random(&mut state) % most).unwrap()
            };
            let kinds = if draw(40) == 0 { 20 } else { 6 };
            let mut text: String = (0..draw(80)).map(|_| pieces[draw(kinds)]).collect();
            text.insert_str(0, pieces[draw(20)]);
            let end = singly(text.as_bytes());
            text.push_str(["]", "x", "", "1"][draw(4)]);
            text.push_str(&" ".repeat(BLOCK));
            let bytes = text.as_bytes();
            for passed in [
                integers(bytes, 0),
                dispatch!(Level::baseline(), simd => lists(simd, bytes, 0)),
            ] {
                assert_eq!(passed, end, "{text}");
            }
        }
        let long = format!("{},1,", "1".repeat(BLOCK));
        assert_eq!(integers(long.as_bytes(), 0), 0, "left to the caller");
    }
}
