//! Removes from a request what only another party could read: ids and seals that this gateway made up, and, when a vendor rejects
//! them, the seals of all vendors.
//!
//! What the gateway makes up is marked. Clients send it back with every later request, even to a slug of their own family, whose
//! vendor would reject it. Only *values* count, in the places that hold them, never a piece of text. A marked `id` of an item is
//! removed alone; a thinking block or reasoning item with a marked value is removed whole. The vendors' rules, with their sources,
//! are in `docs/translation.md`.

use std::borrow::Cow;
use std::ops::Range;

use super::losses::Losses;
use crate::Family;
use crate::json::{Cursor, Cuts, Edit, JsonError, Kind, splice};

/// The prefix of every seal that we make.
// Short, since it precedes every seal in every later request, and with a version, so that another format can be told from this
// one.
const MARK: &str = "fbx1.";

/// The seal of thinking that arrived without one.
pub(crate) const PLAIN: &str = "fbx1.plain";

/// The end of every item id that we make. Call ids are never marked: a call and its result have to agree.
// At the end, because the beginning of an id says what it is (`rs_`, `msg_`).
pub(crate) const OURS: &str = "_fbx";

/// What both marks contain: one search tells whether a body has to be walked.
const EITHER: &str = "fbx";

/// Members whose value can be a seal.
const SEALS: &[&str] = &["signature", "data", "encrypted_content"];

/// Lists whose elements can carry a seal, besides the conversation itself.
const LISTS: &[&str] = &["content", "reasoning_details", "thinking_blocks"];

/// Items that vendors accept without an id.
const NAMELESS: &[&str] = &[
    "",
    "message",
    "function_call",
    "custom_tool_call",
    "reasoning",
];

/// A body without the thinking that its target cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsealed {
    /// What is sent in the place of the request's own body.
    pub body: Vec<u8>,
    /// How many blocks or items of thinking are gone.
    pub thinking: usize,
    /// Thinking was turned off, because the turn with the last calls no longer begins with its signed thinking.
    pub off: bool,
}

impl Unsealed {
    /// What the model does not get.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        (0..self.thinking).for_each(|_| losses.add("thinking", "dropped"));
        if self.off {
            losses.add("thinking", "off(no_signature)");
        }
        losses
    }
}

/// The body without our own ids and seals; `None` if nothing changes, which one search tells. A body that asks for a thinking
/// budget is walked in any case: its last turn may come from a model that does not think.
pub fn cut_marks(family: Family, body: &[u8], has_budget: bool) -> Option<Unsealed> {
    if !has_budget {
        // Nearly every request of a client that stays with one model ends here; a walk of a long conversation takes
        // milliseconds.
        memchr::memmem::find(body, EITHER.as_bytes())?;
    }
    cut(family, body, SealScope::Ours)
}

/// The body without any sealed thinking and without the ids that tie other items to it, for a vendor that rejects a seal; `None`
/// if there is none. Removing only the block that the vendor names would not be enough.
pub fn cut_thinking(family: Family, body: &[u8]) -> Option<Unsealed> {
    cut(family, body, SealScope::All)
}

fn cut(family: Family, body: &[u8], scope: SealScope) -> Option<Unsealed> {
    let mut found = SealedParts::new(scope);
    let mut cursor = Cursor::new(body).ok()?;
    found.body(&mut cursor).ok()?;
    // The other families accept calls without the reasoning that led to them.
    let off = (family == Family::Messages)
        .then(|| found.has_to_stop_thinking())
        .flatten();
    if found.ranges.is_empty() && off.is_none() {
        return None;
    }
    let mut edits: Vec<Edit<'_>> = found.ranges.into_iter().map(Edit::cut).collect();
    if let Some(place) = off.clone() {
        edits.push(Edit::replace(place, &br#"{"type":"disabled"}"#[..]));
        // Clearing thinking is refused by vendors where none is produced.
        edits.extend(found.clearing.into_iter().map(Edit::cut));
    }
    Some(Unsealed {
        body: splice(body, &mut edits),
        thinking: found.thinking,
        off: off.is_some(),
    })
}

/// Whose seals are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SealScope {
    Ours,
    All,
}

struct SealedParts {
    scope: SealScope,
    ranges: Vec<Range<usize>>,
    thinking: usize,
    /// The value of `thinking`, if it asks for a budget.
    budget: Option<Range<usize>>,
    /// Edits of the context that vendors accept only while the model thinks.
    clearing: Vec<Range<usize>>,
    /// The last assistant turn has calls, but does not begin with its thinking.
    unsigned_calls: bool,
}

/// What is known of an object in a list.
#[derive(Default)]
struct Object<'a> {
    kind: Cow<'a, str>,
    role: Cow<'a, str>,
    id: Cow<'a, str>,
    /// A value in the place of a seal; ours, if there are several.
    seal: Cow<'a, str>,
    content: Option<RemainingList>,
}

/// What is left of a list.
#[derive(Default, Clone, Copy)]
struct RemainingList {
    /// Something was cut, and nothing is left.
    hollow: bool,
    begins_with_thinking: bool,
    has_calls: bool,
}

impl Object<'_> {
    fn is_thinking(&self) -> bool {
        matches!(
            self.kind.as_ref(),
            "thinking" | "redacted_thinking" | "reasoning"
        ) || self.kind.starts_with("reasoning.")
    }

    /// Whether it is an item whose id goes, and with it what depends on it.
    fn has_loose_id(&self, scope: SealScope) -> bool {
        match scope {
            SealScope::Ours => self.id.ends_with(OURS),
            // Only where an id may be missing: of other items a vendor requires it, and rejects the request without.
            SealScope::All => !self.id.is_empty() && NAMELESS.contains(&self.kind.as_ref()),
        }
    }

    /// Whether its thinking goes. A reasoning item of ours may come back without its seal; what is left is no vendor's either.
    fn has_loose_thinking(&self, scope: SealScope) -> bool {
        let ours = || {
            self.seal.starts_with(MARK)
                || self.kind == "reasoning" && self.seal.is_empty() && self.id.ends_with(OURS)
        };
        self.is_thinking() && (scope == SealScope::All || ours())
    }
}

impl SealedParts {
    fn new(scope: SealScope) -> Self {
        Self {
            scope,
            ranges: Vec::new(),
            thinking: 0,
            budget: None,
            clearing: Vec::new(),
            unsigned_calls: false,
        }
    }

    /// The value of `thinking` to replace. With a thinking budget the turn with the last calls must begin with its signed thinking.
    fn has_to_stop_thinking(&self) -> Option<Range<usize>> {
        self.budget.clone().filter(|_| self.unsigned_calls)
    }

    fn body(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            match (key.name.as_ref(), cursor.peek()?) {
                ("messages" | "input", Kind::Array) => {
                    self.list(cursor, true)?;
                }
                ("thinking", Kind::Object) => {
                    let start = cursor.at();
                    let mut object = Object::default();
                    self.members(cursor, &mut object)?;
                    self.budget = (object.kind == "enabled").then_some(start..cursor.at());
                }
                ("context_management", Kind::Object) => self.context_edits(cursor)?,
                _ => {
                    cursor.skip()?;
                }
            }
        }
        Ok(())
    }

    fn members<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        object: &mut Object<'a>,
    ) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            let kind = cursor.peek()?;
            let name = key.name.as_ref();
            if kind == Kind::Array && LISTS.contains(&name) {
                let listed = self.list(cursor, false)?;
                if name == "content" {
                    object.content = Some(listed);
                }
                continue;
            }
            let value = cursor.skip()?;
            let text = || cursor.text_of(&value).unwrap_or_default();
            match name {
                "type" => object.kind = text(),
                "role" => object.role = text(),
                "id" => object.id = text(),
                _ if SEALS.contains(&name) && !object.seal.starts_with(MARK) => {
                    object.seal = text();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Walks a list; `items`: it is the conversation.
    fn list(&mut self, cursor: &mut Cursor<'_>, items: bool) -> Result<RemainingList, JsonError> {
        let mut cuts = Cuts::default();
        let mut listed = RemainingList::default();
        let (mut cut, mut first) = (false, true);
        let mut walk = cursor.enter_array()?;
        while cursor.element(&mut walk)? {
            if cursor.peek()? != Kind::Object {
                let start = cursor.at();
                cursor.skip()?;
                cuts.take(start..cursor.at(), true);
                continue;
            }
            let (before, inside) = (cursor.clone(), self.ranges.len());
            let start = cursor.at();
            let mut object = Object::default();
            self.members(cursor, &mut object)?;
            let loose = object.has_loose_thinking(self.scope);
            // A message whose content is cut to nothing goes as well: vendors reject empty content.
            let stays = !loose && !object.content.is_some_and(|content| content.hollow);
            cuts.take(start..cursor.at(), stays);
            if !stays {
                // The whole element is removed, along with any cuts inside it.
                self.ranges.truncate(inside);
                self.thinking += usize::from(loose);
                cut = true;
                continue;
            }
            listed.begins_with_thinking |= std::mem::take(&mut first) && object.is_thinking();
            listed.has_calls |= object.kind == "tool_use";
            if items && object.role == "assistant" {
                let content = object.content.unwrap_or_default();
                self.unsigned_calls = content.has_calls && !content.begins_with_thinking;
            }
            if items && object.has_loose_id(self.scope) {
                self.ranges.extend(member(before, "id")?);
            }
        }
        listed.hollow = cut && cuts.nothing_stays();
        self.ranges.append(&mut cuts.finish());
        Ok(listed)
    }

    /// Notes the edits that clear thinking.
    fn context_edits(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            if key.name != "edits" || cursor.peek()? != Kind::Array {
                cursor.skip()?;
                continue;
            }
            let mut cuts = Cuts::default();
            let mut edits = cursor.enter_array()?;
            while cursor.element(&mut edits)? {
                let is_object = cursor.peek()? == Kind::Object;
                let (start, mut edit) = (cursor.at(), Object::default());
                if is_object {
                    self.members(cursor, &mut edit)?;
                } else {
                    cursor.skip()?;
                }
                cuts.take(start..cursor.at(), !edit.kind.starts_with("clear_thinking"));
            }
            self.clearing = cuts.finish();
        }
        Ok(())
    }
}

/// The ranges to cut for one member of the object at this place.
fn member(mut cursor: Cursor<'_>, name: &str) -> Result<Vec<Range<usize>>, JsonError> {
    let mut cuts = Cuts::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        cursor.skip()?;
        cuts.take(key.at..cursor.at(), key.name != name);
    }
    Ok(cuts.finish())
}
