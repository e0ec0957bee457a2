//! Removes thinking blocks that this gateway sealed, so that they never reach a vendor.
//!
//! Thinking of another family is shown to messages clients with a signature that begins with [`MARK`]. The client sends it back
//! with every later request, even to slugs of its own family, whose vendor would reject it. So blocks with such a signature are
//! removed from every body: only a *value* that begins with the mark counts, never a piece of text.

use std::ops::Range;

use crate::json::{Cursor, Cuts, Edit, JsonError, Kind, splice};

/// The prefix of every seal.
pub(crate) const MARK: &str = "fbx1.";

/// The signature of thinking that arrived without one.
pub(crate) const PLAIN: &str = "fbx1.plain";

/// Members whose value can be a seal.
const SEALS: &[&str] = &["signature", "data", "encrypted_content"];

/// Lists whose elements can carry a seal.
const LISTS: &[&str] = &[
    "messages",
    "input",
    "content",
    "reasoning_details",
    "thinking_blocks",
];

/// The body without sealed blocks, and their number; `None` if there are none, which costs one search. A message left without
/// content is also removed.
#[must_use]
pub fn cut_seals(body: &[u8]) -> Option<(Vec<u8>, usize)> {
    memchr::memmem::find(body, MARK.as_bytes())?;
    let mut found = Found::default();
    let mut cursor = Cursor::new(body).ok()?;
    found.object(&mut cursor).ok()?;
    if found.count == 0 {
        return None;
    }
    let mut edits: Vec<Edit<'_>> = found.ranges.into_iter().map(Edit::cut).collect();
    Some((splice(body, &mut edits), found.count))
}

#[derive(Default)]
struct Found {
    ranges: Vec<Range<usize>>,
    count: usize,
}

/// The effect of an object on its list.
#[derive(PartialEq, Eq)]
enum Element {
    Stays,
    /// It carries a seal.
    Sealed,
    /// A seal was its whole content.
    Hollow,
}

impl Found {
    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<Element, JsonError> {
        let mut element = Element::Stays;
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            let kind = cursor.peek()?;
            if kind == Kind::Array && LISTS.contains(&key.name.as_ref()) {
                if self.list(cursor)? && key.name == "content" {
                    element = Element::Hollow;
                }
                continue;
            }
            let value = cursor.skip()?;
            let seal = SEALS.contains(&key.name.as_ref())
                && cursor
                    .text_of(&value)
                    .is_some_and(|text| text.starts_with(MARK));
            if seal {
                element = Element::Sealed;
            }
        }
        Ok(element)
    }

    /// Walks a list; returns whether something was cut and nothing is left.
    fn list(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, JsonError> {
        let mut cuts = Cuts::default();
        let mut cut = false;
        let mut walk = cursor.enter_array()?;
        while cursor.element(&mut walk)? {
            let kind = cursor.peek()?;
            let start = cursor.at();
            let inside = self.ranges.len();
            let element = if kind == Kind::Object {
                self.object(cursor)?
            } else {
                cursor.skip().map(|_| Element::Stays)?
            };
            if element != Element::Stays {
                // The whole element is removed, along with any cuts inside it.
                self.ranges.truncate(inside);
                self.count += usize::from(element == Element::Sealed);
                cut = true;
            }
            cuts.take(start..cursor.at(), element == Element::Stays);
        }
        let nothing_stays = cut && cuts.nothing_stays();
        let mut list = cuts.finish();
        self.ranges.append(&mut list);
        Ok(nothing_stays)
    }
}
