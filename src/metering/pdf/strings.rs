//! What the strings of a document can show at most, in tokens: one for each byte.
//!
//! No tokenizer makes more tokens than its text has bytes. On a page a font decides what a byte means: it is at least the code of one
//! character, and that is a token (rare characters take two or three, but have codes of two bytes). A font can make more of a code:
//! its character table (`ToUnicode`) and its glyphs' names (`Differences`) tell how many UTF-16 units, and every byte counts as so
//! many, unless they could be a ligature. Notes and form fields, which viewers draw and readers for models also take as words, are
//! not written in a font.

use std::collections::HashSet;

use super::syntax::{
    PdfItem, PdfTokenKind, elements, entries, is_blank, lookup, name, references, string, token,
};

/// Longest result of one code that is still only a ligature.
const LIGATURE: u64 = 4;

/// The findings in the values of a document.
#[derive(Debug, Default)]
pub(super) struct StringFacts {
    /// Tokens of all strings.
    pub(super) tokens: u64,
    /// The most tokens of a string that can replace marked content: a page can show it at each of its marks.
    pub(super) replacement: u64,
    /// Appearances of annotations: forms, or dictionaries of forms.
    pub(super) appearances: HashSet<u32>,
    /// Character tables of fonts, and strings that can replace marked content.
    pub(super) apart: HashSet<u32>,
    /// Most UTF-16 units that one code means.
    longest: u64,
}

impl StringFacts {
    /// Adds a value and everything inside it; returns how many bytes were read for it. Reads no value more than once for each
    /// dictionary around it.
    pub(super) fn read(&mut self, item: PdfItem<'_>) -> usize {
        let mut read = item.bytes.len();
        match item.kind {
            PdfTokenKind::Text | PdfTokenKind::Hex => {
                self.tokens = self.tokens.saturating_add(tokens(item));
            }
            PdfTokenKind::Dict => {
                let [signed, element] = lookup(item.bytes, [b"ByteRange", b"S"]);
                if signed.is_some() {
                    // The contents of a signature are not text.
                    return read;
                }
                // An element of the document's structure replaces its own content once, not every occurrence of a mark.
                let is_element = element.is_some();
                for (name, value) in entries(item.bytes) {
                    match name.as_ref() {
                        b"AP" => self.appearances.extend(references(value)),
                        b"ToUnicode" => self.apart.extend(references(value)),
                        b"ActualText" if !is_element => {
                            self.replaces(value);
                            self.apart.extend(references(value));
                        }
                        _ => {}
                    }
                    read = read.saturating_add(self.read(value));
                }
            }
            PdfTokenKind::Array => {
                for value in elements(item.bytes) {
                    if value.kind == PdfTokenKind::Name {
                        // It may be a glyph's.
                        self.longest = self.longest.max(units(value));
                    }
                    read = read.saturating_add(self.read(value));
                }
            }
            PdfTokenKind::Name | PdfTokenKind::Word => {}
        }
        read
    }

    /// Adds what a list of properties shows in place of marked content.
    pub(super) fn replaces(&mut self, text: PdfItem<'_>) {
        self.replacement = self.replacement.max(tokens(text));
    }

    /// Adds a font's character table, in which strings stand for codes and for what they mean.
    pub(super) fn read_table(&mut self, table: &[u8]) {
        let mut at = 0;
        while let Some((item, behind)) = token(table, at) {
            at = behind;
            if item.kind == PdfTokenKind::Hex {
                self.longest = self.longest.max(item.bytes.len() as u64 / 4);
            }
        }
    }

    /// Tokens of a byte on a page.
    pub(super) fn per_byte(&self) -> u64 {
        if self.longest > LIGATURE {
            self.longest
        } else {
            1
        }
    }
}

/// Tokens of a string; 0 for any other value.
fn tokens(item: PdfItem<'_>) -> u64 {
    match item.kind {
        PdfTokenKind::Text | PdfTokenKind::Hex => string(item).len() as u64,
        PdfTokenKind::Dict | PdfTokenKind::Array | PdfTokenKind::Name | PdfTokenKind::Word => 0,
    }
}

/// The most UTF-16 units of a glyph with this name. It is made of parts (`f_i`), and each can spell characters out (`uni4E2D56FD`,
/// `u1F600`); any other is one letter.
fn units(glyph: PdfItem<'_>) -> u64 {
    let glyph = name(glyph.bytes);
    let plain = glyph.split(|byte| *byte == b'.').next();
    let parts = plain
        .into_iter()
        .flat_map(|name| name.split(|byte| *byte == b'_'));
    parts.fold(0, |units, part| match part {
        [b'u', ..] => units.saturating_add(part.len().div_ceil(4) as u64),
        _ => units.saturating_add(1),
    })
}

/// What a content stream shows: bytes of its strings, how often it marks content with a separate list of properties, and the names
/// of the forms that it draws.
#[derive(Debug, Default)]
pub(super) struct ShownStrings {
    pub(super) bytes: u64,
    pub(super) marks: u64,
    pub(super) forms: Vec<Vec<u8>>,
}

/// Reads a content stream. Every string counts, whichever operator shows it.
pub(super) fn shown(content: &[u8]) -> ShownStrings {
    let mut shown = ShownStrings::default();
    let mut last: Option<PdfItem<'_>> = None;
    let mut at = 0;
    while let Some((item, behind)) = token(content, at) {
        at = behind;
        shown.bytes = shown.bytes.saturating_add(tokens(item));
        match item.bytes {
            b"Do" => shown
                .forms
                .extend(last.map(|form| name(form.bytes).into_owned())),
            b"BDC" => shown.marks = shown.marks.saturating_add(u64::from(last.is_some())),
            b"ID" => at = image_end(content, at),
            _ => {}
        }
        last = (item.kind == PdfTokenKind::Name).then_some(item);
    }
    shown
}

/// The first position where inline data can have ended: what follows is read as text rather than missed.
fn image_end(content: &[u8], from: usize) -> usize {
    let rest = content.get(from..).unwrap_or_default();
    let ends = |at: usize| {
        let around = [at.checked_sub(1), at.checked_add(2)];
        let mut bytes = around.into_iter().flatten().filter_map(|at| rest.get(at));
        bytes.all(|byte| is_blank(*byte))
    };
    memchr::memmem::find_iter(rest, b"EI")
        .find(|at| ends(*at))
        .map_or(content.len(), |at| {
            from.saturating_add(at).saturating_add(2)
        })
}
