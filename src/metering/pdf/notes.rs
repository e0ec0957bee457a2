//! Finds the text of annotations and form fields, and the tables of fonts, wherever their dictionaries are: separate, in a page, or
//! in another dictionary.
//!
//! Viewers draw their appearances; readers for models also take the words themselves. Must not read a value more than once for each
//! dictionary around it.

use std::collections::HashSet;

use super::syntax::{PdfItem, PdfTokenKind, elements, entries, entry, references, string};
use super::text::{self, Fonts};

/// The findings in the dictionaries of a document.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Appearances: forms, or dictionaries of forms.
    pub(super) appearances: HashSet<u32>,
    /// Objects that may be strings with text.
    pub(super) texts: HashSet<u32>,
    /// Tokens of the strings inside the dictionaries themselves.
    pub(super) tokens: u64,
    /// The most tokens of any such string that can replace marked content: a page can show it at each of its marks.
    pub(super) replacement: u64,
    /// Those of `texts` that can replace marked content.
    pub(super) replacements: HashSet<u32>,
    /// Places the samples of them.
    seed: u64,
    /// Objects that are tables of a font: streams, or lists of glyph names.
    pub(super) font_tables: HashSet<u32>,
    /// The meaning of the glyph names inside the dictionaries themselves.
    pub(super) fonts: Fonts,
}

impl Notes {
    /// Nothing yet.
    pub(super) fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Adds a value and everything inside it; returns how many bytes were read for it.
    pub(super) fn read(&mut self, item: PdfItem<'_>) -> usize {
        let mut read = item.bytes.len();
        match item.kind {
            // The contents of a signature are not text.
            PdfTokenKind::Dict if entry(item.bytes, b"ByteRange").is_some() => {}
            PdfTokenKind::Dict => {
                // An element of the document's structure replaces its own content once, not every occurrence of a mark.
                let is_element = entry(item.bytes, b"S").is_some();
                for (name, value) in entries(item.bytes) {
                    match name.as_ref() {
                        b"AP" => self.appearances.extend(references(value)),
                        b"ToUnicode" => self.font_tables.extend(references(value)),
                        b"Differences" if value.kind == PdfTokenKind::Word => {
                            self.font_tables.extend(references(value))
                        }
                        b"Differences" => self.fonts.rename(value),
                        b"ActualText" if !is_element => self.replaces(value),
                        b"Contents" | b"V" | b"RC" | b"Alt" | b"ActualText" => {
                            self.says(value);
                        }
                        _ => {}
                    }
                    read = read.saturating_add(self.read(value));
                }
            }
            PdfTokenKind::Array => {
                read = elements(item.bytes)
                    .fold(read, |read, value| read.saturating_add(self.read(value)))
            }
            _ => {}
        }
        read
    }

    /// Adds what a list of properties shows in place of marked content.
    fn replaces(&mut self, text: PdfItem<'_>) {
        let tokens = self.says(text);
        self.replacement = self.replacement.max(tokens);
        if text.kind == PdfTokenKind::Word {
            self.replacements.extend(references(text));
        }
    }

    /// Returns the tokens of a string at this position.
    fn says(&mut self, value: PdfItem<'_>) -> u64 {
        // The contents of a page are also references, but to streams, which are not strings.
        if value.kind == PdfTokenKind::Word {
            self.texts.extend(references(value));
        }
        let tokens = tokens(value, self.seed);
        self.tokens = self.tokens.saturating_add(tokens);
        tokens
    }
}

/// Tokens of a string, which is Latin or UTF-16; 0 for any other value.
pub(super) fn tokens(value: PdfItem<'_>, seed: u64) -> u64 {
    if !matches!(value.kind, PdfTokenKind::Text | PdfTokenKind::Hex) {
        return 0;
    }
    let bytes = string(value);
    let Some(utf16) = bytes.strip_prefix(&[0xfe, 0xff]) else {
        return text::latin(&bytes, seed);
    };
    let units = utf16
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    text::written(
        &char::decode_utf16(units)
            .map(|char| char.unwrap_or(' '))
            .filter(|char| *char != '\\')
            .collect::<String>(),
        seed,
    )
}
