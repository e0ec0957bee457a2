//! What the strings of a document can show at most, in tokens: one for each byte.
//!
//! No tokenizer makes more tokens than its text has bytes. On a page a font decides what a byte means: it is at least the code of one
//! character, and that is a token (rare characters take two or three, but have codes of two bytes). A font can make more of a code:
//! its character table (`ToUnicode`) and its glyphs' names (`Differences`) tell how many UTF-16 units, and every byte counts as so
//! many, unless they could be a ligature. Notes and form fields, which viewers draw and readers for models also take as words, are
//! not written in a font.

use super::syntax::{PdfEntries, PdfItem, PdfTokenKind, is_blank, name, references, string, token};

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
    pub(super) appearances: Vec<u32>,
    /// Character tables of fonts, and strings that can replace marked content.
    pub(super) apart: Vec<u32>,
    /// Most UTF-16 units that one code means.
    longest: u64,
}

/// What was found before a dictionary that may turn out to be a signature.
struct StringMark {
    tokens: u64,
    replacement: u64,
    appearances: usize,
    apart: usize,
    longest: u64,
}

impl StringFacts {
    /// Whether an entry with this name says something even if its value is a word.
    pub(super) fn looks_for(name: &[u8]) -> bool {
        matches!(name, b"AP" | b"ActualText" | b"ByteRange" | b"ToUnicode")
    }

    /// Adds a value and everything inside it; returns how many bytes were read for it, those of a value once for each dictionary
    /// or array around it.
    pub(super) fn read(&mut self, item: PdfItem<'_>) -> usize {
        self.walk(item.bytes, 0).map_or(0, |(_, _, read)| read)
    }

    /// The same of the value at `at`, which is also returned with the position after it. Looks at each byte once, however
    /// deep, which is as deep as [`value`](super::syntax::value) reads.
    fn walk<'a>(&mut self, bytes: &'a [u8], at: usize) -> Option<(PdfItem<'a>, usize, usize)> {
        let (first, end) = token(bytes, at)?;
        let start = end.saturating_sub(first.bytes.len());
        let (kind, end, inside) = match first.bytes {
            b"<<" => self.dictionary(bytes, start),
            b"[" => self.array(bytes, end),
            _ => {
                self.tokens = self.tokens.saturating_add(tokens(first));
                (first.kind, end, 0)
            }
        };
        let item = PdfItem {
            kind,
            bytes: bytes.get(start..end)?,
        };
        Some((item, end, item.bytes.len().saturating_add(inside)))
    }

    /// Reads a dictionary; returns its kind, the position after it, and how many bytes were read for its values.
    fn dictionary(&mut self, bytes: &[u8], start: usize) -> (PdfTokenKind, usize, usize) {
        let before = self.mark();
        let (mut inside, mut is_signed, mut is_element) = (0_usize, false, false);
        let mut replacing = Vec::new();
        let mut entries = PdfEntries::at(bytes, start);
        let mut read_value = |bytes, at| {
            let (item, end, read) = self.walk(bytes, at)?;
            // A reference is longer than its first word.
            let is_word = item.kind == PdfTokenKind::Word;
            inside = inside.saturating_add(if is_word { 0 } else { read });
            Some((item, end))
        };
        let mut words = 0_usize;
        let (mut appearances, mut apart) = (Vec::new(), Vec::new());
        while let Some((name, value)) = entries.next_through(&mut read_value) {
            if value.kind == PdfTokenKind::Word {
                words = words.saturating_add(value.bytes.len());
            }
            match name.as_ref() {
                b"AP" => appearances.extend(references(value)),
                b"ToUnicode" => apart.extend(references(value)),
                b"ActualText" => replacing.push(value),
                b"ByteRange" => is_signed = true,
                b"S" => is_element = true,
                _ => {}
            }
        }
        let (kind, end) = (PdfTokenKind::Dict, entries.position());
        if is_signed {
            // The contents of a signature are not text.
            self.back_to(before);
            return (kind, end, 0);
        }
        self.appearances.append(&mut appearances);
        self.apart.append(&mut apart);
        // An element of the document's structure replaces its own content once, not every occurrence of a mark.
        for text in replacing.into_iter().filter(|_| !is_element) {
            self.replaces(text);
            self.apart.extend(references(text));
        }
        (kind, end, inside.saturating_add(words))
    }

    /// The same of an array, whose inside begins at `at`.
    fn array(&mut self, bytes: &[u8], mut at: usize) -> (PdfTokenKind, usize, usize) {
        let mut inside = 0_usize;
        while let Some((value, end, read)) = self.walk(bytes, at) {
            at = end;
            inside = inside.saturating_add(read);
            if value.kind == PdfTokenKind::Name {
                // It may be a glyph's.
                self.longest = self.longest.max(units(value));
            }
            if value.bytes == b"]" {
                return (PdfTokenKind::Array, end, inside);
            }
        }
        (PdfTokenKind::Array, bytes.len(), inside)
    }

    /// What was found so far.
    fn mark(&self) -> StringMark {
        StringMark {
            tokens: self.tokens,
            replacement: self.replacement,
            appearances: self.appearances.len(),
            apart: self.apart.len(),
            longest: self.longest,
        }
    }

    /// Forgets what was found since.
    fn back_to(&mut self, mark: StringMark) {
        self.tokens = mark.tokens;
        self.replacement = mark.replacement;
        self.appearances.truncate(mark.appearances);
        self.apart.truncate(mark.apart);
        self.longest = mark.longest;
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
