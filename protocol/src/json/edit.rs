//! Changes JSON text at given positions. Every byte elsewhere stays as it was.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use super::{Cursor, JsonError, quoted};

/// The object's text with some members set to other values, given as JSON; missing members are added. A text that is not an object
/// becomes an object of only these members.
pub(crate) fn set_members(object: &str, set: &[(&str, &str)]) -> String {
    let mut edits = Vec::new();
    let mut missing: Vec<&(&str, &str)> = set.iter().collect();
    let Some((start, empty)) = places(object, set, &mut edits, &mut missing) else {
        return set_members("{}", set);
    };
    let mut added: Vec<String> = missing
        .iter()
        .map(|(name, value)| format!("{}:{value}", quoted(name)))
        .collect();
    if !empty {
        added.push(String::new());
    }
    edits.push(Edit::replace(start..start, added.join(",").into_bytes()));
    String::from_utf8(splice(object.as_bytes(), &mut edits)).unwrap_or_default()
}

/// The object's text without a member. A text that is not an object stays as it is.
pub(crate) fn without_member(object: &str, name: &str) -> String {
    let cuts = |cuts: &mut Cuts| {
        let mut cursor = Cursor::of_answer(object.as_bytes())?;
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            cursor.skip()?;
            cuts.take(key.at..cursor.at(), key.name != name);
        }
        Ok::<(), JsonError>(())
    };
    let mut found = Cuts::default();
    if cuts(&mut found).is_err() {
        return object.to_owned();
    }
    let mut edits: Vec<Edit<'_>> = found.finish().into_iter().map(Edit::cut).collect();
    String::from_utf8(splice(object.as_bytes(), &mut edits)).unwrap_or_default()
}

fn places<'a>(
    object: &str,
    set: &'a [(&str, &'a str)],
    edits: &mut Vec<Edit<'a>>,
    missing: &mut Vec<&(&str, &str)>,
) -> Option<(usize, bool)> {
    let mut cursor = Cursor::new(object.as_bytes()).ok()?;
    let mut walk = cursor.enter_object().ok()?;
    let start = cursor.at();
    let mut empty = true;
    while let Some(key) = cursor.member(&mut walk).ok()? {
        empty = false;
        let value = cursor.skip().ok()?;
        if let Some((_, with)) = set.iter().find(|(name, _)| *name == key.name) {
            missing.retain(|(name, _)| *name != key.name);
            edits.push(Edit::replace(value.span, with.as_bytes()));
        }
    }
    Some((start, empty))
}

/// One change to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    /// The bytes to remove; an empty range inserts.
    pub at: Range<usize>,
    /// The bytes to put there.
    pub with: Cow<'a, [u8]>,
}

impl<'a> Edit<'a> {
    /// Removes bytes.
    #[must_use]
    pub fn cut(at: Range<usize>) -> Self {
        Self {
            at,
            with: Cow::Borrowed(b""),
        }
    }

    /// Replaces bytes.
    #[must_use]
    pub fn replace(at: Range<usize>, with: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            at,
            with: with.into(),
        }
    }
}

/// The shortest unchanged stretch that becomes a separate piece: copying fewer bytes costs less than sending another piece.
const LONG: usize = 8 * 1024;

/// Applies edits to a body, in one pass and one allocation. At the same position, insertions come before removals, and equal edits
/// keep their order; an edit that begins inside an earlier one is skipped.
pub fn splice(body: &[u8], edits: &mut [Edit<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + added(edits));
    for (kept, with) in parts(body.len(), edits) {
        out.extend_from_slice(body.get(kept).unwrap_or_default());
        out.extend_from_slice(with);
    }
    out
}

/// The same as consecutive pieces. Long unchanged stretches share the memory of the body.
pub fn pieces(body: &Bytes, edits: &mut [Edit<'_>]) -> Vec<Bytes> {
    let mut out = Vec::new();
    let mut copied = Vec::with_capacity(body.len().min(LONG) + added(edits));
    for (kept, with) in parts(body.len(), edits) {
        if kept.len() < LONG {
            copied.extend_from_slice(body.get(kept).unwrap_or_default());
        } else {
            if !copied.is_empty() {
                out.push(Bytes::from(std::mem::take(&mut copied)));
            }
            out.push(body.slice(kept));
        }
        copied.extend_from_slice(with);
    }
    if !copied.is_empty() {
        out.push(Bytes::from(copied));
    }
    out
}

fn added(edits: &[Edit<'_>]) -> usize {
    edits.iter().map(|edit| edit.with.len()).sum()
}

/// The pieces of a text of this length, in order: what stays, and what follows it.
fn parts<'e>(
    length: usize,
    edits: &'e mut [Edit<'_>],
) -> impl Iterator<Item = (Range<usize>, &'e [u8])> {
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    let mut done = 0;
    let end: (Range<usize>, &[u8]) = (length..length, b"");
    edits
        .iter()
        .map(|edit| (edit.at.clone(), &*edit.with))
        .chain([end])
        .filter_map(move |(at, with)| {
            let kept = done..at.start;
            if kept.start > kept.end || kept.end > length {
                return None;
            }
            done = at.end.max(at.start);
            Some((kept, with))
        })
}

/// Collects the ranges of members or elements to remove from one list, each with one neighbouring comma.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    kept_end: Option<usize>,
    /// Start of a member that is removed with the comma after it, because nothing before it stays.
    pending: Option<Range<usize>>,
    ranges: Vec<Range<usize>>,
}

impl Cuts {
    /// The next member or element, and whether it stays.
    pub(crate) fn take(&mut self, span: Range<usize>, stays: bool) {
        if let Some(pending) = self.pending.take() {
            self.ranges.push(pending.start..span.start);
        }
        match (stays, self.kept_end) {
            (true, _) => self.kept_end = Some(span.end),
            (false, Some(end)) => {
                self.ranges.push(end..span.end);
                self.kept_end = Some(span.end);
            }
            (false, None) => self.pending = Some(span),
        }
    }

    /// Whether the whole list is removed.
    pub(crate) fn nothing_stays(&self) -> bool {
        self.kept_end.is_none()
    }

    /// The ranges, in order.
    pub(crate) fn finish(mut self) -> Vec<Range<usize>> {
        if let Some(pending) = self.pending {
            self.ranges.push(pending);
        }
        self.ranges
    }
}
