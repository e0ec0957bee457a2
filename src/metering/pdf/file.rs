//! The objects of a PDF and what their dictionaries say, found without the file's own index.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::filters;
use super::objects::{MOST_OBJECTS, ObjectValue, PdfObjects};
use super::strings::StringFacts;
use super::syntax::{
    PdfEntries, PdfItem, PdfTokenKind, blanks, entries, entry, integer, is_blank, name, references,
    token, value,
};

/// Most bytes that are inflated.
const MOST_INFLATED: usize = 64 << 20;
/// Most bytes scanned, over all walks.
const MOST_READ: usize = 256 << 20;

/// A document: its bytes, the inflated object streams, and every object in them.
pub(super) struct PdfFile<'a> {
    buffers: Vec<Cow<'a, [u8]>>,
    objects: PdfObjects,
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

/// What the walk over all objects asks of one: its value, and the entries of a dictionary that say what it is.
#[derive(Default)]
struct PdfObject<'a> {
    /// The position after its value.
    end: usize,
    contents_at: Range<usize>,
    kind: Option<PdfItem<'a>>,
    kids: Option<PdfItem<'a>>,
    count: Option<PdfItem<'a>>,
    parent: Option<PdfItem<'a>>,
    contents: Option<PdfItem<'a>>,
    size: Option<PdfItem<'a>>,
    resources: Option<PdfItem<'a>>,
    forms: Option<PdfItem<'a>>,
    /// Of an object stream: how many objects are in it, and where the first begins.
    many: Option<PdfItem<'a>>,
    first: Option<PdfItem<'a>>,
    /// What [`StringFacts::read`] would say, if that would find nothing: most dictionaries have only names, numbers and references.
    plain: Option<usize>,
}

impl<'a> PdfFile<'a> {
    pub(super) fn new(pdf: &'a [u8]) -> Self {
        Self {
            buffers: vec![Cow::Borrowed(pdf)],
            objects: PdfObjects::default(),
            inflate_left: MOST_INFLATED,
            read_left: MOST_READ,
        }
    }

    /// Finds `12 0 obj` anywhere, even inside other things: an index may point there.
    pub(super) fn find_objects(&mut self) -> Option<()> {
        let bytes = self.buffers.first()?;
        memchr::memmem::find_iter(bytes, b"obj")
            .filter_map(|at| Some((number_before(bytes, at)?, at.saturating_add(3))))
            .try_for_each(|(number, at)| self.objects.add(number, 0, at))
    }

    /// The first definition of an object, by its index.
    pub(super) fn first(&self, number: u32) -> Option<usize> {
        self.objects.first(number)
    }

    /// The next definition of the same object.
    pub(super) fn later(&self, index: usize) -> Option<usize> {
        self.objects.later(index)
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Option<()> {
        self.read_left = self.read_left.checked_sub(bytes)?;
        Some(())
    }

    /// The value of an object that was read; empty at the end of a buffer.
    pub(super) fn value(&mut self, index: usize) -> Option<Option<ObjectValue>> {
        let place = self.objects.get(index)?;
        let (at, value) = (place.at, place.value.clone());
        let end = value.as_ref().map_or(at, |value| value.span.end);
        // The callers walk it a few more times.
        self.spend(end.saturating_sub(at).max(1).saturating_mul(4))?;
        Some(value)
    }

    /// Bytes of the buffer in which this object is.
    pub(super) fn slice(&self, index: usize, span: &Range<usize>) -> &[u8] {
        self.objects
            .get(index)
            .and_then(|place| self.buffers.get(place.buffer)?.get(span.clone()))
            .unwrap_or_default()
    }

    /// The object's dictionary, if it is one.
    pub(super) fn dict(&mut self, index: usize) -> Option<Option<ObjectValue>> {
        let value = self.value(index)?;
        Some(value.filter(|value| value.kind == PdfTokenKind::Dict))
    }

    /// The data of a stream; empty for any other object.
    pub(super) fn stream(&mut self, index: usize) -> Option<Option<Vec<u8>>> {
        let Some(ObjectValue { span, .. }) = self.dict(index)? else {
            return Some(None);
        };
        let dict = self.slice(index, &span).to_vec();
        let length = match entry(&dict, b"Length").and_then(PdfNumber::of) {
            Some(length) => self.number(length)?.unwrap_or(0),
            None => 0,
        };
        let bytes = self.buffers.get(self.objects.get(index)?.buffer)?;
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
        let by_length = usize::try_from(length).unwrap_or(0);
        let data = data
            .get(..by_keyword.max(by_length))
            .or_else(|| data.get(..by_keyword))?
            .to_vec();
        self.spend(data.len())?;
        let mut left = self.inflate_left;
        let decoded = filters::decoded(&dict, &data, &mut left)?;
        self.inflate_left = left;
        Some(Some(decoded))
    }

    /// A number, itself or by reference.
    fn number(&mut self, number: PdfNumber) -> Option<Option<u64>> {
        let target = match number {
            PdfNumber::Plain(number) => return Some(Some(number)),
            PdfNumber::Of(target) => target,
        };
        let (mut most, mut next) = (None, self.objects.first(target));
        while let Some(index) = next {
            next = self.objects.later(index);
            let place = self.objects.get(index)?;
            let found = token(self.buffers.get(place.buffer)?, place.at);
            let end = found.map_or(place.at, |(_, end)| end);
            most = most.max(found.and_then(|(item, _)| integer(item.bytes)));
            // At least one, because many may ask for many.
            self.spend(end.saturating_sub(place.at).max(1))?;
        }
        Some(most)
    }

    /// One walk over all objects, which opens object streams on its way.
    pub(super) fn facts(&mut self) -> Option<PdfFacts> {
        let mut facts = PdfFacts::default();
        // Dictionaries of forms that stand apart.
        let mut resources = Vec::new();
        let (in_file, mut index) = (self.objects.len(), 0);
        while let Some(place) = self.objects.get(index) {
            let (number, at) = (place.number, place.at);
            let bytes = self.buffers.get(place.buffer)?;
            let start = blanks(bytes, at);
            if start >= bytes.len() {
                self.spend(start.saturating_sub(at))?;
                index = index.saturating_add(1);
                continue;
            }
            let (item, object) = PdfObject::read(bytes, start)?;
            let read = match object.plain {
                Some(read) => read,
                None => facts.strings.read(item),
            };
            facts.take(number, &object);
            object.names(&mut facts, &mut resources);
            let packed = [object.many, object.first].map(|item| item.and_then(PdfNumber::of));
            let value = ObjectValue {
                span: start..object.end,
                kind: item.kind,
                contents: object.contents_at,
            };
            self.objects.get_mut(index)?.value = Some(value);
            self.value(index)?;
            self.spend(read)?;
            // Object streams are never inside object streams.
            if index < in_file {
                self.value(index)?;
                if let [Some(many), Some(first)] = packed {
                    self.open(index, many, first)?;
                }
            }
            index = index.saturating_add(1);
        }
        for number in each_once(resources) {
            let mut next = self.objects.first(number);
            while let Some(index) = next {
                next = self.objects.later(index);
                if let Some(value) = self.dict(index)? {
                    facts.take_names(self.slice(index, &value.span));
                }
            }
        }
        self.read_apart(&mut facts)?;
        let strings = &mut facts.strings;
        for numbers in [&mut facts.pages, &mut facts.nodes, &mut strings.appearances] {
            *numbers = each_once(std::mem::take(numbers));
        }
        Some(facts)
    }

    /// Adds the objects of an object stream, if it is one.
    fn open(&mut self, index: usize, many: PdfNumber, first: PdfNumber) -> Option<()> {
        let (Some(many), Some(first)) = (self.number(many)?, self.number(first)?) else {
            return Some(());
        };
        let first = usize::try_from(first).ok()?;
        let Some(data) = self.stream(index)? else {
            return Some(());
        };
        let (buffer, mut at) = (self.buffers.len(), 0);
        for _ in 0..many.min(MOST_OBJECTS as u64) {
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
            let at_offset = first.checked_add(usize::try_from(offset).ok()?)?;
            self.objects
                .add(u32::try_from(number).ok()?, buffer, at_offset)?;
            at = behind;
        }
        self.buffers.push(Cow::Owned(data));
        Some(())
    }

    /// Reads the character tables and the strings that stand apart.
    fn read_apart(&mut self, facts: &mut PdfFacts) -> Option<()> {
        for number in each_once(std::mem::take(&mut facts.strings.apart)) {
            let mut next = self.objects.first(number);
            while let Some(index) = next {
                next = self.objects.later(index);
                if let Some(table) = self.stream(index)? {
                    facts.strings.read_table(&table);
                } else if let Some(ObjectValue { span, kind, .. }) = self.value(index)? {
                    let bytes = self.slice(index, &span);
                    facts.strings.replaces(PdfItem { kind, bytes });
                }
            }
        }
        Some(())
    }
}

impl PdfFacts {
    /// Notes whether an object is a page or a node of their tree.
    fn take(&mut self, number: u32, object: &PdfObject<'_>) {
        let is = |wanted: &[u8]| {
            let kind = object.kind;
            kind.is_some_and(|kind| name(kind.bytes).as_ref() == wanted)
        };
        if object.kids.is_some() {
            self.nodes.push(number);
            let claimed = object.count.filter(|_| is(b"Pages"));
            let claimed = claimed.and_then(|count| integer(count.bytes));
            self.claimed = self.claimed.max(claimed.unwrap_or(0));
        } else if is(b"Page")
            || object.parent.is_some()
                && [object.contents, object.size, object.resources]
                    .iter()
                    .any(Option::is_some)
        {
            self.pages.push(number);
        }
    }

    /// The names of forms in a dictionary of them.
    fn take_names(&mut self, forms: &[u8]) {
        for (name, value) in entries(forms) {
            let named = self.names.entry(name.into_owned()).or_default();
            named.extend(references(value));
        }
    }
}

impl<'a> PdfObject<'a> {
    /// The value at `at`; `None` if it is nested too deep.
    fn read(bytes: &'a [u8], at: usize) -> Option<(PdfItem<'a>, Self)> {
        let mut object = Self::default();
        if !bytes.get(at..)?.starts_with(b"<<") {
            let (item, end) = value(bytes, at)?;
            object.end = end;
            return Some((item, object));
        }
        let (mut entries, mut values, mut is_plain) = (PdfEntries::at(bytes, at), 0_usize, true);
        while let Some((name, value)) = entries.next() {
            values = values.saturating_add(value.bytes.len());
            is_plain &= matches!(value.kind, PdfTokenKind::Name | PdfTokenKind::Word);
            let field = match name.as_ref() {
                b"Type" => &mut object.kind,
                b"Kids" => &mut object.kids,
                b"Count" => &mut object.count,
                b"Parent" => &mut object.parent,
                b"Contents" => {
                    let end = entries.position();
                    object.contents_at = end.saturating_sub(value.bytes.len())..end;
                    &mut object.contents
                }
                b"MediaBox" => &mut object.size,
                b"Resources" => &mut object.resources,
                b"XObject" => &mut object.forms,
                b"N" => &mut object.many,
                b"First" => &mut object.first,
                other => {
                    is_plain &= !StringFacts::looks_for(other);
                    continue;
                }
            };
            *field = Some(value);
        }
        if entries.is_too_deep() {
            return None;
        }
        object.end = entries.position();
        let (kind, bytes) = (PdfTokenKind::Dict, bytes.get(at..object.end)?);
        object.plain = is_plain.then(|| bytes.len().saturating_add(values));
        Some((PdfItem { kind, bytes }, object))
    }

    /// The names of forms in a dictionary of resources, which is separate or inside a page; `apart` gets the objects that have more.
    fn names(&self, facts: &mut PdfFacts, apart: &mut Vec<u32>) {
        let inside = self
            .resources
            .filter(|value| value.kind == PdfTokenKind::Dict);
        let inside = inside.and_then(|value| entry(value.bytes, b"XObject"));
        for named in [self.forms, inside].into_iter().flatten() {
            if named.kind == PdfTokenKind::Dict {
                facts.take_names(named.bytes);
            } else {
                apart.extend(references(named));
            }
        }
    }
}

fn each_once(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// A number, or the object that is one.
#[derive(Clone, Copy)]
enum PdfNumber {
    Plain(u64),
    Of(u32),
}

impl PdfNumber {
    fn of(item: PdfItem<'_>) -> Option<Self> {
        let plain = integer(item.bytes).map(Self::Plain);
        plain.or_else(|| references(item).next().map(Self::Of))
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
