//! Reads a PDF for the tokens that its pages may cost. Pure, and bounded: 64 MiB inflated, 256 MiB scanned, no trees.
//!
//! PDF libraries build a tree of every object, which a small file can make arbitrarily large. And a reader that follows the file's
//! own index counts what the index lists, while a provider's reader may repair the file and find more. So the index is ignored:
//! every object in the file counts, in each of its revisions and in object streams too. Where two readers could differ, the larger
//! count wins; what cannot be read at all is `None`, and costs the whole context.

mod filters;
mod notes;
mod syntax;
mod text;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use notes::Notes;
use syntax::{Item, Kind, blanks, entry, integer, is_blank, name, references, value};

/// The least tokens of one page: text and picture of an ordinary one.
const PER_PAGE: u64 = 3_000;
/// The picture of a page.
const PICTURE: u64 = 1_600;
/// Most bytes that are inflated.
const MOST_INFLATED: usize = 64 << 20;
/// Most bytes scanned, over all walks.
const MOST_READ: usize = 256 << 20;
/// Most objects.
const MOST_OBJECTS: usize = 400_000;
/// Deepest nesting of pages and forms.
const MAX_DEPTH: u32 = 40;

/// Tokens of a document: for each page its text and its picture, at least 3,000. `seed`, which must be secret, places the samples
/// of its text that a tokenizer reads.
#[must_use]
pub fn tokens(pdf: &[u8], seed: u64) -> Option<u64> {
    let head = pdf.get(..1_024).unwrap_or(pdf);
    memchr::memmem::find(head, b"%PDF-")?;
    if is_encrypted(pdf) {
        return None;
    }
    let mut file = File::new(pdf);
    file.find_objects(0)?;
    file.open_object_streams()?;
    let facts = file.facts(seed)?;
    Counter {
        file,
        facts,
        seed,
        texts: HashMap::new(),
        forms: HashMap::new(),
    }
    .count()
}

/// Whether the name `Encrypt` occurs anywhere, also with `#xx` in place of letters.
fn is_encrypted(pdf: &[u8]) -> bool {
    let escaped = |at: usize| {
        let before = pdf
            .get(at.saturating_sub(b"/Encryp".len())..at)
            .unwrap_or_default();
        let slash = before
            .iter()
            .rposition(|byte| *byte == b'/')
            .map(|place| at - before.len() + place);
        let found = slash.and_then(|slash| syntax::token(pdf, slash));
        found.is_some_and(|(item, _)| name(item.bytes).as_ref() == b"Encrypt")
    };
    memchr::memmem::find(pdf, b"/Encrypt").is_some() || memchr::memchr_iter(b'#', pdf).any(escaped)
}

/// One definition of an object: its buffer and its position.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: u32,
    buffer: usize,
    at: usize,
}

/// A document: its bytes, the inflated object streams, and every object in them.
struct File<'a> {
    buffers: Vec<Cow<'a, [u8]>>,
    objects: Vec<Place>,
    /// Definitions by number.
    by_number: HashMap<u32, Vec<usize>>,
    inflate_left: usize,
    read_left: usize,
}

/// The findings in a document's dictionaries.
#[derive(Default)]
struct Facts {
    /// Objects that are pages, each once.
    pages: Vec<u32>,
    /// Nodes of the page tree.
    nodes: Vec<u32>,
    /// The most pages that any node claims.
    claimed: u64,
    /// The objects that a form's name refers to, anywhere in the document.
    names: HashMap<Vec<u8>, HashSet<u32>>,
    /// The appearance and text of annotations and form fields, and the tables of fonts.
    notes: Notes,
}

impl<'a> File<'a> {
    fn new(pdf: &'a [u8]) -> Self {
        Self {
            buffers: vec![Cow::Borrowed(pdf)],
            objects: Vec::new(),
            by_number: HashMap::new(),
            inflate_left: MOST_INFLATED,
            read_left: MOST_READ,
        }
    }

    /// Finds `12 0 obj` anywhere, even inside other things: an index may point there.
    fn find_objects(&mut self, buffer: usize) -> Option<()> {
        let bytes = self.buffers.get(buffer)?;
        let found: Vec<(u32, usize)> = memchr::memmem::find_iter(bytes.as_ref(), b"obj")
            .filter_map(|at| number_before(bytes, at).map(|number| (number, at + 3)))
            .take(MOST_OBJECTS + 1)
            .collect();
        found
            .into_iter()
            .try_for_each(|(number, at)| self.add(Place { number, buffer, at }))
    }

    fn add(&mut self, place: Place) -> Option<()> {
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

    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.read_left = self.read_left.checked_sub(bytes)?;
        Some(())
    }

    /// The value of an object and its end; empty at the end of a buffer.
    fn value(&mut self, place: Place) -> Option<Option<(std::ops::Range<usize>, Kind)>> {
        let bytes = self.buffers.get(place.buffer)?;
        let start = blanks(bytes, place.at);
        if start >= bytes.len() {
            return Some(None);
        }
        let (item, end) = value(bytes, start)?;
        let kind = item.kind;
        // The callers walk it a few more times.
        self.spend((end - place.at).saturating_mul(4))?;
        Some(Some((start..end, kind)))
    }

    fn slice(&self, buffer: usize, span: &std::ops::Range<usize>) -> &[u8] {
        self.buffers
            .get(buffer)
            .and_then(|bytes| bytes.get(span.clone()))
            .unwrap_or_default()
    }

    /// The object's dictionary, if it is one.
    fn dict(&mut self, place: Place) -> Option<Option<std::ops::Range<usize>>> {
        Some(
            self.value(place)?
                .filter(|(_, kind)| *kind == Kind::Dict)
                .map(|(span, _)| span),
        )
    }

    /// The data of a stream; empty for any other object.
    fn stream(&mut self, place: Place) -> Option<Option<Vec<u8>>> {
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
        let start = at + b"stream".len() + skipped;
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
    fn number(&self, item: Item<'_>) -> Option<u64> {
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

    fn open_object_streams(&mut self) -> Option<()> {
        // Object streams are never inside object streams.
        for index in 0..self.objects.len() {
            let place = *self.objects.get(index)?;
            let Some(span) = self.dict(place)? else {
                continue;
            };
            let dict = self.slice(place.buffer, &span);
            let (Some(count), Some(first)) = (entry(dict, b"N"), entry(dict, b"First")) else {
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
                let Some((number, behind)) = syntax::token(&data, at) else {
                    break;
                };
                let Some((offset, behind)) = syntax::token(&data, behind) else {
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
                .try_for_each(|(number, at)| self.add(Place { number, buffer, at }))?;
        }
        Some(())
    }

    /// One walk over all dictionaries.
    fn facts(&mut self, seed: u64) -> Option<Facts> {
        let mut facts = Facts {
            notes: Notes::seeded(seed),
            ..Facts::default()
        };
        let (mut pages, mut nodes) = (HashSet::new(), HashSet::new());
        for index in 0..self.objects.len() {
            let place = *self.objects.get(index)?;
            let Some(span) = self.dict(place)? else {
                continue;
            };
            let dict = self.slice(place.buffer, &span);
            let word = |key: &[u8]| {
                entry(dict, key)
                    .map(|value| name(value.bytes).into_owned())
                    .unwrap_or_default()
            };
            let has = |key: &[u8]| entry(dict, key).is_some();
            let kind = word(b"Type");
            if has(b"Kids") {
                nodes.insert(place.number);
                let claimed = entry(dict, b"Count")
                    .filter(|_| kind == b"Pages")
                    .and_then(|count| integer(count.bytes));
                facts.claimed = facts.claimed.max(claimed.unwrap_or(0));
            } else if kind == b"Page"
                || has(b"Parent") && (has(b"Contents") || has(b"MediaBox") || has(b"Resources"))
            {
                pages.insert(place.number);
            }
            self.names(dict, &mut facts);
            let read = facts.notes.read(Item {
                kind: Kind::Dict,
                bytes: dict,
            });
            self.spend(read)?;
        }
        for number in std::mem::take(&mut facts.notes.font_tables) {
            for index in self.by_number.get(&number).cloned().unwrap_or_default() {
                let place = *self.objects.get(index)?;
                if let Some(map) = self.stream(place)? {
                    facts.notes.fonts.read(&map);
                } else if let Some((span, kind)) = self.value(place)? {
                    facts.notes.fonts.rename(Item {
                        kind,
                        bytes: self.slice(place.buffer, &span),
                    });
                }
            }
        }
        facts.pages = pages.into_iter().collect();
        facts.nodes = nodes.into_iter().collect();
        Some(facts)
    }

    /// The names of forms in a dictionary of resources, which is separate or inside a page.
    fn names(&self, dict: &[u8], facts: &mut Facts) {
        let inside = entry(dict, b"Resources").filter(|value| value.kind == Kind::Dict);
        for resources in [Some(dict), inside.map(|value| value.bytes)]
            .into_iter()
            .flatten()
        {
            let Some(named) = entry(resources, b"XObject") else {
                continue;
            };
            let mut take = |dict: &[u8]| {
                for (name, value) in syntax::entries(dict) {
                    facts
                        .names
                        .entry(name.into_owned())
                        .or_default()
                        .extend(references(value));
                }
            };
            if named.kind == Kind::Dict {
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
    text.get(..text.len() - blanks).unwrap_or_default()
}

/// Splits off the digits at the end.
fn last_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (digits > 0).then(|| text.split_at(text.len() - digits))
}

/// Counts the tokens of the findings.
struct Counter<'a> {
    file: File<'a>,
    facts: Facts,
    seed: u64,
    /// Tokens of the content streams read so far; one that is being read has none yet, so circular forms end.
    texts: HashMap<u32, u64>,
    /// The same by a form's name.
    forms: HashMap<Vec<u8>, u64>,
}

impl Counter<'_> {
    fn count(mut self) -> Option<u64> {
        let said = self.said_apart()?;
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
        for appearance in std::mem::take(&mut self.facts.notes.appearances) {
            total = total.saturating_add(self.text(appearance, 0)?);
        }
        // A file without a page is not a document, whatever it claims.
        if total == 0 {
            return None;
        }
        Some(
            total
                .saturating_add(self.facts.notes.tokens)
                .saturating_add(said),
        )
    }

    /// Tokens of all strings that are separate objects. Some can replace marked content.
    fn said_apart(&mut self) -> Option<u64> {
        let mut total = 0_u64;
        for text in std::mem::take(&mut self.facts.notes.texts) {
            let tokens = self.said(text)?;
            total = total.saturating_add(tokens);
            let notes = &mut self.facts.notes;
            if notes.replacements.contains(&text) {
                notes.replacement = notes.replacement.max(tokens);
            }
        }
        Some(total)
    }

    /// Tokens of a string that is a separate object.
    fn said(&mut self, number: u32) -> Option<u64> {
        let mut most = 0;
        for index in self
            .file
            .by_number
            .get(&number)
            .cloned()
            .unwrap_or_default()
        {
            let place = *self.file.objects.get(index)?;
            let Some((span, kind)) = self.file.value(place)? else {
                continue;
            };
            most = most.max(notes::tokens(
                Item {
                    kind,
                    bytes: self.file.slice(place.buffer, &span),
                },
                self.seed,
            ));
        }
        Some(most)
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
        for index in self.file.by_number.get(&node).cloned().unwrap_or_default() {
            let place = *self.file.objects.get(index)?;
            let Some(span) = self.file.dict(place)? else {
                continue;
            };
            let kids = entry(self.file.slice(place.buffer, &span), b"Kids")
                .map(|kids| references(kids).collect::<Vec<_>>());
            let mut sum = 0_u64;
            for kid in kids.unwrap_or_default() {
                sum = sum.saturating_add(self.leaves(kid, known, depth + 1)?);
            }
            most = most.max(sum);
        }
        known.insert(node, most);
        Some(most)
    }

    /// Text tokens of a page, in the revision with the most.
    fn page(&mut self, number: u32) -> Option<u64> {
        let mut most = 0;
        for index in self
            .file
            .by_number
            .get(&number)
            .cloned()
            .unwrap_or_default()
        {
            let place = *self.file.objects.get(index)?;
            let Some(span) = self.file.dict(place)? else {
                continue;
            };
            let contents = entry(self.file.slice(place.buffer, &span), b"Contents");
            let contents: Vec<u32> = contents.into_iter().flat_map(references).collect();
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
        for index in self
            .file
            .by_number
            .get(&number)
            .cloned()
            .unwrap_or_default()
        {
            let place = *self.file.objects.get(index)?;
            let Some((span, kind)) = self.file.value(place)? else {
                continue;
            };
            let mut sum = 0_u64;
            if let Some(content) = self.file.stream(place)? {
                self.file.spend(content.len())?;
                let shown = text::shown(&content, self.facts.notes.fonts, self.seed);
                sum = shown
                    .tokens
                    .saturating_add(shown.marks.saturating_mul(self.facts.notes.replacement));
                for name in shown.forms {
                    sum = sum.saturating_add(self.form(name, depth)?);
                }
            } else {
                let item = Item {
                    kind,
                    bytes: self.file.slice(place.buffer, &span),
                };
                for part in references(item).collect::<Vec<_>>() {
                    sum = sum.saturating_add(self.text(part, depth + 1)?);
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
                most = most.max(self.text(number, depth + 1)?);
            }
        }
        self.forms.insert(name, most);
        Some(most)
    }

    /// Whether an object is a form, and not a picture.
    fn is_form(&mut self, number: u32) -> Option<bool> {
        for index in self
            .file
            .by_number
            .get(&number)
            .cloned()
            .unwrap_or_default()
        {
            let place = *self.file.objects.get(index)?;
            let Some(span) = self.file.dict(place)? else {
                continue;
            };
            let subtype = entry(self.file.slice(place.buffer, &span), b"Subtype");
            if subtype.is_none_or(|subtype| name(subtype.bytes).as_ref() != b"Image") {
                return Some(true);
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests;
