//! The objects of a PDF and what their dictionaries say, found without the file's own index.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::filters;
use super::strings::StringFacts;
use super::syntax::{
    PdfItem, PdfTokenKind, blanks, entries, entry, integer, is_blank, lookup, name, references,
    token, value,
};

/// Most bytes that are inflated.
const MOST_INFLATED: usize = 64 << 20;
/// Most bytes scanned, over all walks.
const MOST_READ: usize = 256 << 20;
/// The most objects of one document; one with more is not read.
const MOST_OBJECTS: usize = 400_000;

/// One definition of an object: its buffer and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectPlace {
    number: u32,
    pub(super) buffer: usize,
    at: usize,
}

/// A document: its bytes, the inflated object streams, and every object in them.
pub(super) struct PdfFile<'a> {
    buffers: Vec<Cow<'a, [u8]>>,
    pub(super) objects: Vec<ObjectPlace>,
    /// Definitions by number.
    by_number: HashMap<u32, Vec<usize>>,
    inflate_left: usize,
    read_left: usize,
}

/// The findings in a document's dictionaries.
#[derive(Default)]
pub(super) struct PdfFacts {
    /// Objects that are pages, each once.
    pub(super) pages: Vec<u32>,
    /// Nodes of the page tree.
    pub(super) nodes: Vec<u32>,
    /// The most pages that any node claims.
    pub(super) claimed: u64,
    /// The objects that a form's name refers to, anywhere in the document.
    pub(super) names: HashMap<Vec<u8>, HashSet<u32>>,
    /// The strings outside of content streams, and what fonts make of those inside.
    pub(super) strings: StringFacts,
}

impl<'a> PdfFile<'a> {
    pub(super) fn new(pdf: &'a [u8]) -> Self {
        Self {
            buffers: vec![Cow::Borrowed(pdf)],
            objects: Vec::new(),
            by_number: HashMap::new(),
            inflate_left: MOST_INFLATED,
            read_left: MOST_READ,
        }
    }

    /// Finds `12 0 obj` anywhere, even inside other things: an index may point there.
    pub(super) fn find_objects(&mut self, buffer: usize) -> Option<()> {
        let bytes = self.buffers.get(buffer)?;
        let found: Vec<(u32, usize)> = memchr::memmem::find_iter(bytes.as_ref(), b"obj")
            .filter_map(|at| number_before(bytes, at).map(|number| (number, at.saturating_add(3))))
            .take(MOST_OBJECTS + 1)
            .collect();
        found
            .into_iter()
            .try_for_each(|(number, at)| self.add(ObjectPlace { number, buffer, at }))
    }

    fn add(&mut self, place: ObjectPlace) -> Option<()> {
        if self.objects.len() == MOST_OBJECTS {
            return None;
        }
        self.by_number
            .entry(place.number)
            .or_default()
            .push(self.objects.len());
        self.objects.push(place);
        Some(())
    }

    /// Every definition of an object: a file that was saved again has several, and any of them may be the one that is shown. They
    /// are copied, because reading one spends what may still be read.
    pub(super) fn revisions(&self, number: u32) -> Vec<ObjectPlace> {
        let indices = self.by_number.get(&number).into_iter().flatten();
        indices
            .filter_map(|index| self.objects.get(*index).copied())
            .collect()
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Option<()> {
        self.read_left = self.read_left.checked_sub(bytes)?;
        Some(())
    }

    /// The value of an object and its end; empty at the end of a buffer.
    pub(super) fn value(
        &mut self,
        place: ObjectPlace,
    ) -> Option<Option<(std::ops::Range<usize>, PdfTokenKind)>> {
        let bytes = self.buffers.get(place.buffer)?;
        let start = blanks(bytes, place.at);
        if start >= bytes.len() {
            return Some(None);
        }
        let (item, end) = value(bytes, start)?;
        let kind = item.kind;
        // The callers walk it a few more times.
        self.spend(end.saturating_sub(place.at).saturating_mul(4))?;
        Some(Some((start..end, kind)))
    }

    pub(super) fn slice(&self, buffer: usize, span: &std::ops::Range<usize>) -> &[u8] {
        self.buffers
            .get(buffer)
            .and_then(|bytes| bytes.get(span.clone()))
            .unwrap_or_default()
    }

    /// The object's dictionary, if it is one.
    pub(super) fn dict(&mut self, place: ObjectPlace) -> Option<Option<std::ops::Range<usize>>> {
        Some(
            self.value(place)?
                .filter(|(_, kind)| *kind == PdfTokenKind::Dict)
                .map(|(span, _)| span),
        )
    }

    /// The data of a stream; empty for any other object.
    pub(super) fn stream(&mut self, place: ObjectPlace) -> Option<Option<Vec<u8>>> {
        let Some(span) = self.dict(place)? else {
            return Some(None);
        };
        let bytes = self.buffers.get(place.buffer)?;
        let at = blanks(bytes, span.end);
        let Some(rest) = bytes
            .get(at..)
            .and_then(|rest| rest.strip_prefix(b"stream"))
        else {
            return Some(None);
        };
        let skipped = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        let start = at.saturating_add(b"stream".len()).saturating_add(skipped);
        let data = bytes.get(start..)?;
        let by_keyword = memchr::memmem::find(data, b"endstream").unwrap_or(data.len());
        // The length may reach beyond the first such word, which can be part of the data.
        let length = entry(self.slice(place.buffer, &span), b"Length")
            .and_then(|length| self.number(length));
        let by_length = length
            .and_then(|length| usize::try_from(length).ok())
            .unwrap_or(0);
        let data = data
            .get(..by_keyword.max(by_length))
            .or_else(|| data.get(..by_keyword))?
            .to_vec();
        self.spend(data.len())?;
        let dict = self.slice(place.buffer, &span).to_vec();
        let mut left = self.inflate_left;
        let decoded = filters::decoded(&dict, &data, &mut left)?;
        self.inflate_left = left;
        Some(Some(decoded))
    }

    /// A number, itself or by reference.
    fn number(&self, item: PdfItem<'_>) -> Option<u64> {
        if let Some(number) = integer(item.bytes) {
            return Some(number);
        }
        let target = references(item).next()?;
        let places = self
            .by_number
            .get(&target)?
            .iter()
            .filter_map(|index| self.objects.get(*index));
        places
            .filter_map(|place| integer(value(self.buffers.get(place.buffer)?, place.at)?.0.bytes))
            .max()
    }

    pub(super) fn open_object_streams(&mut self) -> Option<()> {
        // Object streams are never inside object streams.
        for index in 0..self.objects.len() {
            let place = *self.objects.get(index)?;
            let Some(span) = self.dict(place)? else {
                continue;
            };
            let dict = self.slice(place.buffer, &span);
            let [Some(count), Some(first)] = lookup(dict, [b"N", b"First"]) else {
                continue;
            };
            let (Some(count), Some(first)) = (self.number(count), self.number(first)) else {
                continue;
            };
            let first = usize::try_from(first).ok()?;
            let Some(data) = self.stream(place)? else {
                continue;
            };
            let buffer = self.buffers.len();
            let mut at = 0;
            let mut inner = Vec::new();
            for _ in 0..count.min(MOST_OBJECTS as u64) {
                let Some((number, behind)) = token(&data, at) else {
                    break;
                };
                let Some((offset, behind)) = token(&data, behind) else {
                    break;
                };
                let (Some(number), Some(offset)) = (integer(number.bytes), integer(offset.bytes))
                else {
                    break;
                };
                inner.push((
                    u32::try_from(number).ok()?,
                    first.checked_add(usize::try_from(offset).ok()?)?,
                ));
                at = behind;
            }
            self.buffers.push(Cow::Owned(data));
            inner
                .into_iter()
                .try_for_each(|(number, at)| self.add(ObjectPlace { number, buffer, at }))?;
        }
        Some(())
    }

    /// One walk over all objects.
    pub(super) fn facts(&mut self) -> Option<PdfFacts> {
        let mut facts = PdfFacts::default();
        let (mut pages, mut nodes) = (HashSet::new(), HashSet::new());
        for index in 0..self.objects.len() {
            let place = *self.objects.get(index)?;
            let Some((span, kind)) = self.value(place)? else {
                continue;
            };
            let dict = self.slice(place.buffer, &span);
            let read = facts.strings.read(PdfItem { kind, bytes: dict });
            let [kind, kids, count, parent, contents, size, resources, forms] = lookup(
                dict,
                [
                    b"Type",
                    b"Kids",
                    b"Count",
                    b"Parent",
                    b"Contents",
                    b"MediaBox",
                    b"Resources",
                    b"XObject",
                ],
            );
            let is = |wanted: &[u8]| kind.is_some_and(|kind| name(kind.bytes).as_ref() == wanted);
            if kids.is_some() {
                nodes.insert(place.number);
                let claimed = count
                    .filter(|_| is(b"Pages"))
                    .and_then(|count| integer(count.bytes));
                facts.claimed = facts.claimed.max(claimed.unwrap_or(0));
            } else if is(b"Page")
                || parent.is_some() && [contents, size, resources].iter().any(Option::is_some)
            {
                pages.insert(place.number);
            }
            self.names([resources, forms], &mut facts);
            self.spend(read)?;
        }
        for number in std::mem::take(&mut facts.strings.apart) {
            for place in self.revisions(number) {
                if let Some(table) = self.stream(place)? {
                    facts.strings.read_table(&table);
                } else if let Some((span, kind)) = self.value(place)? {
                    let bytes = self.slice(place.buffer, &span);
                    facts.strings.replaces(PdfItem { kind, bytes });
                }
            }
        }
        facts.pages = pages.into_iter().collect();
        facts.nodes = nodes.into_iter().collect();
        Some(facts)
    }

    /// The names of forms in a dictionary of resources, which is separate or inside a page.
    fn names(&self, [resources, forms]: [Option<PdfItem<'_>>; 2], facts: &mut PdfFacts) {
        let inside = resources.filter(|value| value.kind == PdfTokenKind::Dict);
        let inside = inside.and_then(|value| entry(value.bytes, b"XObject"));
        for named in [forms, inside].into_iter().flatten() {
            let mut take = |dict: &[u8]| {
                for (name, value) in entries(dict) {
                    facts
                        .names
                        .entry(name.into_owned())
                        .or_default()
                        .extend(references(value));
                }
            };
            if named.kind == PdfTokenKind::Dict {
                take(named.bytes);
                continue;
            }
            let places = references(named)
                .filter_map(|number| self.by_number.get(&number))
                .flatten();
            for place in places.filter_map(|index| self.objects.get(*index)) {
                let found = self
                    .buffers
                    .get(place.buffer)
                    .and_then(|bytes| value(bytes, place.at));
                found.into_iter().for_each(|(item, _)| take(item.bytes));
            }
        }
    }
}

/// The number of the object whose `obj` is at `at`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    let before = trimmed(bytes.get(at.saturating_sub(32)..at)?);
    let (rest, _generation) = last_digits(before)?;
    let number = trimmed(rest);
    if number.len() == rest.len() {
        return None;
    }
    u32::try_from(integer(last_digits(number)?.1)?).ok()
}

fn trimmed(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .rev()
        .take_while(|byte| is_blank(**byte))
        .count();
    text.get(..text.len().saturating_sub(blanks))
        .unwrap_or_default()
}

/// Splits off the digits at the end.
fn last_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (digits > 0).then(|| text.split_at(text.len().saturating_sub(digits)))
}
