//! Bounds the tokens of a PDF's pages: each with its text and its picture, in the revision with the most.

use std::collections::HashMap;

use super::file::{PdfFacts, PdfFile};
use super::objects::ObjectValue;
use super::strings;
use super::syntax::{PdfItem, PdfTokenKind, entry, name, references};

/// The least tokens of one page: text and picture of an ordinary one.
const PER_PAGE: u64 = 3_000;
/// The picture of a page.
const PICTURE: u64 = 1_600;
/// Deepest nesting of pages and forms.
const MAX_DEPTH: u32 = 40;

/// Counts the tokens of the findings.
pub(super) struct PdfCounter<'a> {
    file: PdfFile<'a>,
    facts: PdfFacts,
    /// Tokens of the content streams read so far; one that is being read has none yet, so circular forms end.
    texts: HashMap<u32, u64>,
    /// The same by a form's name.
    forms: HashMap<Vec<u8>, u64>,
}

impl<'a> PdfCounter<'a> {
    pub(super) fn new(file: PdfFile<'a>, facts: PdfFacts) -> Self {
        Self {
            file,
            facts,
            texts: HashMap::new(),
            forms: HashMap::new(),
        }
    }

    pub(super) fn count(mut self) -> Option<u64> {
        let (mut total, mut dearest) = (0_u64, PER_PAGE);
        let found = self.facts.pages.len() as u64;
        for page in std::mem::take(&mut self.facts.pages) {
            let tokens = self.page(page)?.saturating_add(PICTURE).max(PER_PAGE);
            total = total.saturating_add(tokens);
            dearest = dearest.max(tokens);
        }
        // A page that is shown more than once, or that was not found, may be any of them.
        let mut leaves = HashMap::new();
        let mut shown = 0;
        for node in std::mem::take(&mut self.facts.nodes) {
            shown = shown.max(self.leaves(node, &mut leaves, 0)?);
        }
        let missing = self.facts.claimed.max(shown).saturating_sub(found);
        total = total.saturating_add(missing.saturating_mul(dearest));
        for appearance in std::mem::take(&mut self.facts.strings.appearances) {
            total = total.saturating_add(self.text(appearance, 0)?);
        }
        // A file without a page is not a document, whatever it claims.
        if total == 0 {
            return None;
        }
        Some(total.saturating_add(self.facts.strings.tokens))
    }

    /// Pages below a node of the tree.
    fn leaves(&mut self, node: u32, known: &mut HashMap<u32, u64>, depth: u32) -> Option<u64> {
        if let Some(leaves) = known.get(&node) {
            return Some(*leaves);
        }
        if depth == MAX_DEPTH {
            return None;
        }
        known.insert(node, 1);
        let mut most = 1;
        let mut next = self.file.first(node);
        while let Some(index) = next {
            next = self.file.later(index);
            let Some(dict) = self.file.dict(index)? else {
                continue;
            };
            let kids = entry(self.file.slice(index, &dict.span), b"Kids")
                .map(|kids| references(kids).collect::<Vec<_>>());
            let mut sum = 0_u64;
            for kid in kids.unwrap_or_default() {
                sum = sum.saturating_add(self.leaves(kid, known, depth.saturating_add(1))?);
            }
            most = most.max(sum);
        }
        known.insert(node, most);
        Some(most)
    }

    /// Text tokens of a page, in the revision with the most.
    fn page(&mut self, number: u32) -> Option<u64> {
        let mut most = 0;
        let mut next = self.file.first(number);
        while let Some(index) = next {
            next = self.file.later(index);
            let Some(dict) = self.file.dict(index)? else {
                continue;
            };
            let contents = PdfItem {
                kind: PdfTokenKind::Word,
                bytes: self.file.slice(index, &dict.contents),
            };
            let contents: Vec<u32> = references(contents).collect();
            let mut sum = 0_u64;
            for content in contents {
                sum = sum.saturating_add(self.text(content, 0)?);
            }
            most = most.max(sum);
        }
        Some(most)
    }

    /// Text tokens of a content stream and of the forms that it draws; of everything that an array or a dictionary refers to.
    fn text(&mut self, number: u32, depth: u32) -> Option<u64> {
        if let Some(tokens) = self.texts.get(&number) {
            return Some(*tokens);
        }
        if depth == MAX_DEPTH {
            return None;
        }
        self.texts.insert(number, 0);
        let mut most = 0_u64;
        let mut next = self.file.first(number);
        while let Some(index) = next {
            next = self.file.later(index);
            let Some(ObjectValue { span, kind, .. }) = self.file.value(index)? else {
                continue;
            };
            let mut sum = 0_u64;
            if let Some(content) = self.file.stream(index)? {
                self.file.spend(content.len())?;
                let (shown, facts) = (strings::shown(&content), &self.facts.strings);
                sum = shown
                    .bytes
                    .saturating_mul(facts.per_byte())
                    .saturating_add(shown.marks.saturating_mul(facts.replacement));
                for name in shown.forms {
                    sum = sum.saturating_add(self.form(name, depth)?);
                }
            } else {
                let item = PdfItem {
                    kind,
                    bytes: self.file.slice(index, &span),
                };
                for part in references(item).collect::<Vec<_>>() {
                    sum = sum.saturating_add(self.text(part, depth.saturating_add(1))?);
                }
            }
            most = most.max(sum);
        }
        self.texts.insert(number, most);
        Some(most)
    }

    /// Text tokens of the form with this name; if there are several, of the one with the most.
    fn form(&mut self, name: Vec<u8>, depth: u32) -> Option<u64> {
        if let Some(tokens) = self.forms.get(&name) {
            return Some(*tokens);
        }
        let mut most = 0;
        for number in self.facts.names.get(&name).cloned().unwrap_or_default() {
            if self.is_form(number)? {
                most = most.max(self.text(number, depth.saturating_add(1))?);
            }
        }
        self.forms.insert(name, most);
        Some(most)
    }

    /// Whether an object is a form, and not a picture.
    fn is_form(&mut self, number: u32) -> Option<bool> {
        let mut next = self.file.first(number);
        while let Some(index) = next {
            next = self.file.later(index);
            let Some(dict) = self.file.dict(index)? else {
                continue;
            };
            let subtype = entry(self.file.slice(index, &dict.span), b"Subtype");
            if subtype.is_none_or(|subtype| name(subtype.bytes).as_ref() != b"Image") {
                return Some(true);
            }
        }
        Some(false)
    }
}
