//! Estimates the tokens of a content stream's text.
//!
//! Every string of the stream counts, whichever operator shows it. The fonts decide what a byte of a string means: their character
//! tables (`ToUnicode`) and glyph names (`Differences`) tell whether it is Latin, and how many characters one code can become.

use farebox_protocol::{TextSample, token_estimate};

use super::syntax::{PdfItem, PdfTokenKind, elements, hex, name, string, token};
use crate::metering::tokenizer;

/// Longest result of one code that is still only a ligature.
const LIGATURE: usize = 4;
/// Bytes of text that are weighed at a time.
const CHUNK: usize = 64 << 10;

/// How a document's fonts interpret a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fonts {
    /// Whether some code means a character outside the Latin script.
    foreign: bool,
    /// Most UTF-16 units that one code means.
    longest: usize,
}

impl Fonts {
    /// Adds a font's character table.
    pub(super) fn read(&mut self, cmap: &[u8]) {
        // Between `beginbfchar` and its end come pairs, after `beginbfrange` triples; the last of each is what is shown.
        let (mut of, mut index, mut inside) = (0_usize, 0_usize, false);
        let mut at = 0;
        while let Some((item, behind)) = token(cmap, at) {
            at = behind;
            match (item.kind, item.bytes) {
                (PdfTokenKind::Word, b"beginbfchar") => (of, index) = (2, 0),
                (PdfTokenKind::Word, b"beginbfrange") => (of, index) = (3, 0),
                (PdfTokenKind::Word, b"endbfchar" | b"endbfrange") => of = 0,
                (PdfTokenKind::Word, b"[") => inside = true,
                (PdfTokenKind::Word, b"]") => (inside, index) = (false, 0),
                (PdfTokenKind::Hex, bytes) if of > 0 => {
                    if inside || index == of.saturating_sub(1) {
                        self.shows(&hex(bytes));
                    }
                    index = if inside {
                        index
                    } else {
                        index.saturating_add(1).checked_rem(of).unwrap_or(0)
                    };
                }
                _ => {}
            }
        }
    }

    /// Adds a font's list of glyph names. A name is made of parts (`f_i`), and each can spell characters out (`uni4E2D56FD`,
    /// `u1F600`).
    pub(super) fn rename(&mut self, differences: PdfItem<'_>) {
        let names = elements(differences.bytes).filter(|item| {
            differences.kind == PdfTokenKind::Array && item.kind == PdfTokenKind::Name
        });
        for item in names {
            let glyph = name(item.bytes);
            let plain = glyph.split(|byte| *byte == b'.').next().unwrap_or_default();
            self.shows(
                &plain
                    .split(|byte| *byte == b'_')
                    .flat_map(spelled)
                    .collect::<Vec<u8>>(),
            );
        }
    }

    fn shows(&mut self, utf16: &[u8]) {
        self.longest = self.longest.max(utf16.len() / 2);
        // Latin with its accents, punctuation, currency symbols, ligatures.
        let latin =
            |unit: u16| matches!(unit, 0..0x250 | 0x2000..0x2100 | 0xfb00..0xfb07 | 0xf000..0xf100);
        let unit = |pair: &[u8]| {
            u16::from_be_bytes([*pair.first().unwrap_or(&0), *pair.get(1).unwrap_or(&0)])
        };
        self.foreign |= utf16.chunks(2).any(|pair| !latin(unit(pair)));
    }

    /// Tokens per byte, if it cannot be read as Latin.
    fn per_byte(self) -> Option<u64> {
        match self.longest {
            longest if longest > LIGATURE => u64::try_from(longest).ok(),
            _ => self.foreign.then_some(1),
        }
    }
}

/// The characters of a part of a glyph's name, in UTF-16; any other name counts as one letter.
fn spelled(part: &[u8]) -> Vec<u8> {
    let is_hex = |digits: &[u8]| digits.len() >= 4 && digits.iter().all(u8::is_ascii_hexdigit);
    if let Some(digits) = part.strip_prefix(b"uni").filter(|digits| is_hex(digits)) {
        return hex(digits);
    }
    let code = part
        .strip_prefix(b"u")
        .filter(|digits| is_hex(digits))
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let spelled = code
        .and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?))
        .unwrap_or('a');
    spelled
        .encode_utf16(&mut [0; 2])
        .iter()
        .flat_map(|unit| unit.to_be_bytes())
        .collect()
}

/// What a content stream shows: tokens of its strings, how often it marks content with a separate list of properties, and the names
/// of the forms that it draws.
#[derive(Debug, Default)]
pub(super) struct ShownText {
    pub(super) tokens: u64,
    pub(super) marks: u64,
    pub(super) forms: Vec<Vec<u8>>,
}

/// Reads a content stream. `seed` places the samples of its text.
pub(super) fn shown(content: &[u8], fonts: Fonts, seed: u64) -> ShownText {
    let mut shown = ShownText::default();
    let mut text = Vec::new();
    let mut last: Option<PdfItem<'_>> = None;
    let mut at = 0;
    while let Some((item, behind)) = token(content, at) {
        at = behind;
        match (item.kind, item.bytes) {
            (PdfTokenKind::Text | PdfTokenKind::Hex, _) => text.extend(string(item)),
            (PdfTokenKind::Word, b"Do") => shown
                .forms
                .extend(last.map(|name| super::syntax::name(name.bytes).into_owned())),
            (PdfTokenKind::Word, b"BDC") => {
                shown.marks = shown.marks.saturating_add(u64::from(last.is_some()))
            }
            (PdfTokenKind::Word, b"ID") => at = image_end(content, at),
            _ => {}
        }
        last = (item.kind == PdfTokenKind::Name).then_some(item);
        if text.len() >= CHUNK {
            shown.tokens = shown.tokens.saturating_add(tokens(&text, fonts, seed));
            text.clear();
        }
    }
    shown.tokens = shown.tokens.saturating_add(tokens(&text, fonts, seed));
    shown
}

/// The first position where inline data can have ended: what follows is read as text rather than missed.
fn image_end(content: &[u8], from: usize) -> usize {
    let rest = content.get(from..).unwrap_or_default();
    let ends = |at: usize| {
        let before = at
            .checked_sub(1)
            .and_then(|before| rest.get(before))
            .is_none_or(|byte| super::syntax::is_blank(*byte));
        before
            && rest
                .get(at.saturating_add(2))
                .is_none_or(|byte| super::syntax::is_blank(*byte))
    };
    memchr::memmem::find_iter(rest, b"EI")
        .find(|at| ends(*at))
        .map_or(content.len(), |at| {
            from.saturating_add(at).saturating_add(2)
        })
}

fn tokens(text: &[u8], fonts: Fonts, seed: u64) -> u64 {
    if let Some(tokens) = fonts.per_byte() {
        return (text.len() as u64).saturating_mul(tokens);
    }
    latin(text, seed)
}

/// Tokens of text in Latin letters; every byte that is not ASCII counts as one token at most.
pub(super) fn latin(text: &[u8], seed: u64) -> u64 {
    // A backslash would be read as an escape.
    let plain = |byte: &&u8| matches!(byte, b' '..=b'~') && **byte != b'\\';
    let ascii: String = text
        .iter()
        .filter(plain)
        .map(|byte| char::from(*byte))
        .collect();
    let other = text.len().saturating_sub(ascii.len()) as u64;
    written(&ascii, seed).saturating_add(other)
}

/// Tokens of a text: the fast estimate, or a tokenizer's count of a sample, whichever is more. Letters and symbols without spaces
/// look like a few long words to the estimate, but take a token for every two of them.
pub(super) fn written(text: &str, seed: u64) -> u64 {
    let weight = token_estimate::exactly(text);
    let mut sample = TextSample::seeded(seed);
    sample.add(text);
    let counted = u128::from(tokenizer::tokens(&sample.text()));
    let scaled = counted
        .saturating_mul(u128::from(weight))
        .checked_div(u128::from(sample.weight().max(1)))
        .unwrap_or_default();
    weight
        .div_ceil(64)
        .max(u64::try_from(scaled).unwrap_or(u64::MAX))
}
