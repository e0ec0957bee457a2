//! Where a document's objects are, by number.
//!
//! A document of nothing but objects must not cost much more than its bytes: there is neither a list nor a hash for each.

use std::collections::BTreeMap;
use std::ops::Range;

use super::syntax::PdfTokenKind;

/// The most objects of one document; one with more is not read.
pub(super) const MOST_OBJECTS: usize = 400_000;

/// One definition of an object: its buffer and its position.
#[derive(Debug, Clone)]
pub(super) struct ObjectPlace {
    pub(super) number: u32,
    pub(super) buffer: usize,
    pub(super) at: usize,
    /// Once it was read, unless the buffer ends before it.
    pub(super) value: Option<ObjectValue>,
    /// The next definition of the same number.
    later: Option<u32>,
}

/// Where the value of an object is, and what is asked of it later.
#[derive(Debug, Clone)]
pub(super) struct ObjectValue {
    pub(super) span: Range<usize>,
    pub(super) kind: PdfTokenKind,
    /// The value of its entry `Contents`; empty without one.
    pub(super) contents: Range<usize>,
}

/// Every object of a document.
#[derive(Default)]
pub(super) struct PdfObjects {
    places: Vec<ObjectPlace>,
    /// The definitions of each number that a document without gaps can have.
    usual: Vec<Option<ObjectRevisions>>,
    /// The same of higher numbers.
    high: BTreeMap<u32, ObjectRevisions>,
}

/// A chain of definitions.
#[derive(Debug, Clone, Copy)]
struct ObjectRevisions {
    first: u32,
    last: u32,
}

impl PdfObjects {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&ObjectPlace> {
        self.places.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut ObjectPlace> {
        self.places.get_mut(index)
    }

    /// Adds a definition; `None` if there are too many.
    pub(super) fn add(&mut self, number: u32, buffer: usize, at: usize) -> Option<()> {
        if self.places.len() == MOST_OBJECTS {
            return None;
        }
        let index = u32::try_from(self.places.len()).ok()?;
        let mut alone = ObjectRevisions {
            first: index,
            last: index,
        };
        let known = match usize::try_from(number).ok().filter(|at| *at < MOST_OBJECTS) {
            Some(at) => {
                if at >= self.usual.len() {
                    self.usual.resize(at.saturating_add(1), None);
                }
                self.usual.get_mut(at)?.get_or_insert(alone)
            }
            None => self.high.entry(number).or_insert(alone),
        };
        std::mem::swap(&mut known.last, &mut alone.last);
        if alone.last != index {
            self.places.get_mut(alone.last as usize)?.later = Some(index);
        }
        self.places.push(ObjectPlace {
            number,
            buffer,
            at,
            value: None,
            later: None,
        });
        Some(())
    }

    /// The first definition of an object: a file that was saved again has several, and any of them may be the one that is shown.
    pub(super) fn first(&self, number: u32) -> Option<usize> {
        let known = match usize::try_from(number).ok().filter(|at| *at < MOST_OBJECTS) {
            Some(at) => self.usual.get(at)?.as_ref(),
            None => self.high.get(&number),
        };
        known.map(|known| known.first as usize)
    }

    /// The next definition of the same object.
    pub(super) fn later(&self, index: usize) -> Option<usize> {
        self.places.get(index)?.later.map(|later| later as usize)
    }
}
