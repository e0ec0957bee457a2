//! The edits that make a request of a target's own family fit it, by what its [`TargetFit`] says.
//!
//! A request in which nothing has to be fitted is not walked, and all its other bytes stay. Whether something has to be is told by the
//! inspection, by what the operator drops, and, for a target that refuses them, by one search for `null`.

use std::ops::Range;

use memchr::memmem;

use crate::inspect::ToldThinking;
use crate::json::{Cursor, Cuts, Edit, JsonError, Kind};
use crate::patch::{cuts, stays};
use crate::target_fit::TargetFit;
use crate::translate::Losses;
use crate::{Edits, Inspection};

/// The fields inside of which every service of a family knows the same members.
const SHARED: &[&str] = &[
    "messages",
    "input",
    "system",
    "tools",
    "response_format",
    "text",
];

/// Objects whose members are the customer's own: a schema, the input of a call. A `null` in one means something.
const OPEN: &[&str] = &[
    "parameters",
    "input_schema",
    "schema",
    "arguments",
    "input",
    "output",
    "metadata",
    "logit_bias",
];

/// What of a request did not reach its target as the customer wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fitted {
    /// What the model does not get.
    pub losses: Losses,
    /// Its marks of the prompt cache are gone.
    pub unmarked: bool,
    /// What is told about thinking, if it is told in other words.
    pub thinking: Option<ToldThinking>,
}

/// Writes what a request tells of thinking in the target's words, and says what they tell.
type ThinkingTeller =
    fn(&TargetFit, &str, &Inspection, &mut Losses) -> (Option<String>, ToldThinking);

/// What of fitting differs between the families.
pub(crate) struct FamilyFit {
    /// How far the turns of a request concern a target.
    pub(crate) concern: fn(&TargetFit, &[u8], &Inspection) -> Concern,
    /// Walks the conversation, where its turns have members of their own.
    pub(crate) turns: fn(&mut Fitting<'_>, &mut Cursor<'_>) -> Result<(), JsonError>,
    /// Whether the target refuses the field that [`crate::inspect::SplicePlaces::thinking`] has the value of.
    pub(crate) retells_thinking: fn(&TargetFit) -> bool,
    /// The member that is written instead of it, if any, and what that tells.
    pub(crate) thinking: ThinkingTeller,
}

/// How far the turns of a conversation concern a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// They stay.
    None,
    /// Something is written otherwise.
    Changed,
    /// Something may be left out.
    Lost,
}

/// Adds to the other changes of a request what makes it fit its target.
pub(crate) fn fit(
    family: &FamilyFit,
    body: &[u8],
    seen: &Inspection,
    edits: &Edits<'_>,
    changes: &mut Vec<Edit<'static>>,
) {
    match Fitting::of(family, body, seen, edits, changes) {
        Some(fitting) => {
            let fits = fitting.edits;
            changes.extend(fits);
        }
        None => changes.extend(cuts(seen, edits)),
    }
}

/// What became of a request on its way to a target. It is walked again only if something may be lost.
pub(crate) fn fitted(
    family: &FamilyFit,
    body: &[u8],
    seen: &Inspection,
    edits: &Edits<'_>,
) -> Fitted {
    let wants = Wants::of(family, body, seen, edits);
    if !wants.loses() {
        return Fitted::default();
    }
    Fitting::of(family, body, seen, edits, &[])
        .map(|fitting| fitting.fitted)
        .unwrap_or_default()
}

/// What has to be fitted.
#[derive(Debug, Clone, Copy)]
struct Wants {
    drop: bool,
    nulls: bool,
    marks: bool,
    thinking: bool,
    turns: Concern,
}

impl Wants {
    fn of(family: &FamilyFit, body: &[u8], seen: &Inspection, edits: &Edits<'_>) -> Self {
        let fit = edits.fit;
        // What the gateway has written itself fits already.
        let own = !edits.translated;
        Self {
            drop: !fit.drop.is_empty(),
            nulls: own && fit.refuses_nulls && has_null(body),
            marks: own && !fit.takes_marks && seen.cache_marked,
            thinking: own && seen.places.thinking.is_some() && (family.retells_thinking)(fit),
            turns: if own {
                (family.concern)(fit, body, seen)
            } else {
                Concern::None
            },
        }
    }

    fn any(self) -> bool {
        self.nulls || self.loses() || self.turns > Concern::None
    }

    fn loses(self) -> bool {
        self.drop || self.marks || self.thinking || self.turns == Concern::Lost
    }
}

/// Whether some member may be `null`. A text can have the same bytes, which costs a walk and changes nothing.
fn has_null(body: &[u8]) -> bool {
    let mut found = memmem::find_iter(body, b"null");
    found.any(|at| {
        let before = body.get(..at).unwrap_or_default();
        before.trim_ascii_end().ends_with(b":")
    })
}

/// A walk over a request that collects what has to change.
pub(crate) struct Fitting<'f> {
    pub(crate) fit: &'f TargetFit,
    wants: Wants,
    /// The names from the root to here, with dots between them; lists have none.
    path: String,
    pub(crate) edits: Vec<Edit<'static>>,
    fitted: Fitted,
}

impl<'f> Fitting<'f> {
    /// `None` if nothing has to be fitted.
    fn of(
        family: &FamilyFit,
        body: &[u8],
        seen: &Inspection,
        edits: &Edits<'f>,
        changes: &[Edit<'_>],
    ) -> Option<Self> {
        let wants = Wants::of(family, body, seen, edits);
        if !wants.any() {
            return None;
        }
        let mut fitting = Self {
            fit: edits.fit,
            wants,
            path: String::new(),
            edits: Vec::new(),
            fitted: Fitted::default(),
        };
        // The body was read before: it is JSON.
        fitting.body(family, body, seen, edits, changes).ok()?;
        Some(fitting)
    }

    fn body(
        &mut self,
        family: &FamilyFit,
        body: &[u8],
        seen: &Inspection,
        edits: &Edits<'_>,
        changes: &[Edit<'_>],
    ) -> Result<(), JsonError> {
        let places = &seen.places;
        let mut cursor = Cursor::new(body)?;
        let mut walk = cursor.enter_object()?;
        let (mut top, mut number) = (Cuts::default(), 0);
        while let Some(key) = cursor.member(&mut walk)? {
            let (kind, from) = (cursor.peek()?, cursor.at());
            let here = self.enter(if seen.is_limit(&key.name) {
                edits.limit_field
            } else {
                &key.name
            });
            // One commas' keeper for all members of an object: `places.cuts` has been made without knowing what goes here.
            let known = match places.members_by_target.get(number) {
                Some((_, fate)) => stays(*fate, seen, edits),
                None => !places.cuts.iter().any(|cut| cut.contains(&key.at)),
            };
            let written = changes.iter().any(|change| change.at.start == from);
            // A `null` in whose place something is written is none any more.
            let goes = self.goes(&key.name, kind) && !(kind == Kind::Null && written);
            let told = (places.thinking.as_ref()).filter(|place| place.start == from);
            let mut keeps = known && !goes;
            match told {
                _ if !keeps => {
                    let value = cursor.skip()?;
                    if known || self.fit.drops(&self.path) {
                        self.lose(&key.name, kind, value.span.len());
                    }
                }
                Some(_) if self.wants.thinking => {
                    let value = cursor.skip()?;
                    let text = cursor.slice(value.span.clone());
                    let losses = &mut self.fitted.losses;
                    let (member, told) = (family.thinking)(self.fit, text, seen, losses);
                    self.fitted.thinking = Some(told);
                    keeps = member.is_some();
                    let at = key.at..value.span.end;
                    self.edits
                        .extend(member.map(|member| Edit::replace(at, member.into_bytes())));
                }
                _ if from == places.talk.place.start && self.wants.turns > Concern::None => {
                    (family.turns)(self, &mut cursor)?;
                }
                _ => self.value(&mut cursor)?,
            }
            self.leave(here);
            let inside = |cut: &&Range<usize>| from < cut.start && cut.end < cursor.at();
            if keeps {
                let cuts = places.cuts.iter().filter(inside).cloned();
                self.edits.extend(cuts.map(Edit::cut));
            }
            top.take(key.at..cursor.at(), keeps);
            number += 1;
        }
        self.edits.extend(top.finish().into_iter().map(Edit::cut));
        Ok(())
    }

    /// Walks a value, if something in it may have to go.
    pub(crate) fn value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        match cursor.peek()? {
            Kind::Object if self.looks_inside() => self.object(cursor),
            Kind::Array if self.looks_inside() => {
                let mut walk = cursor.enter_array()?;
                while cursor.element(&mut walk)? {
                    self.value(cursor)?;
                }
                Ok(())
            }
            _ => cursor.skip().map(drop),
        }
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        let mut cuts = Cuts::default();
        while let Some(key) = cursor.member(&mut walk)? {
            let here = self.enter(&key.name);
            let stays = self.member(&key.name, cursor)?;
            self.leave(here);
            cuts.take(key.at..cursor.at(), stays);
        }
        self.edits.extend(cuts.finish().into_iter().map(Edit::cut));
        Ok(())
    }

    /// Walks the value of a member that was entered; returns whether the member stays.
    pub(crate) fn member(
        &mut self,
        name: &str,
        cursor: &mut Cursor<'_>,
    ) -> Result<bool, JsonError> {
        let kind = cursor.peek()?;
        if !self.goes(name, kind) {
            self.value(cursor)?;
            return Ok(true);
        }
        let value = cursor.skip()?;
        self.lose(name, kind, value.span.len());
        Ok(false)
    }

    /// Whether a member goes; the path ends with it.
    pub(crate) fn goes(&self, name: &str, kind: Kind) -> bool {
        // A content of `null` says that a message only calls, and some services miss the member.
        self.wants.nulls && kind == Kind::Null && name != "content"
            || self.wants.marks && name == "cache_control"
            || self.fit.drops(&self.path)
    }

    /// Names what went, if it said anything. Marks are told alike in all families, wherever they stood.
    fn lose(&mut self, name: &str, kind: Kind, length: usize) {
        let says = match kind {
            Kind::Null => false,
            Kind::Array | Kind::Object => length > 2,
            _ => true,
        };
        if !says {
            return;
        }
        let is_mark = self.wants.marks && name == "cache_control";
        self.fitted.unmarked |= is_mark;
        let field = if is_mark { name } else { &self.path };
        self.fitted.losses.add(field, "dropped");
    }

    fn looks_inside(&self) -> bool {
        let (root, name) = (
            self.path.split('.').next().unwrap_or_default(),
            self.path.rsplit('.').next().unwrap_or_default(),
        );
        // The list of items of a responses request has the name of a call's input.
        let is_open = OPEN.contains(&name) && self.path != "input";
        let is_known = SHARED.contains(&root) && !is_open;
        (self.wants.nulls || self.wants.marks) && is_known || self.fit.drops_within(&self.path)
    }

    /// Names what the model does not get, beside what the walk itself leaves out.
    pub(crate) fn lost(&mut self, field: &str) {
        self.fitted.losses.add(field, "dropped");
    }

    /// Goes down to a member; returns what [`Self::leave`] wants.
    pub(crate) fn enter(&mut self, name: &str) -> usize {
        let here = self.path.len();
        if here > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        here
    }

    pub(crate) fn leave(&mut self, here: usize) {
        self.path.truncate(here);
    }
}
