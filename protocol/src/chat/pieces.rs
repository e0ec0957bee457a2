//! The pieces of calls in a streamed chat answer: where each has what, and to which call it belongs.
//!
//! Servers number and name them in many ways: an id that comes late, a new one in each piece, one index for two calls, none at all.

use std::ops::Range;

use super::own;
use crate::json::{Cursor, JsonError, Kind, Value};
use crate::members::{MemberPlaces, Members};
use crate::usage::count;
use crate::{TextSample, TextSize};

/// A call that has begun.
#[derive(Debug, Default)]
pub(super) struct KnownCall {
    /// Its number at the target.
    pub(super) index: Option<u64>,
    /// Empty while it has none.
    pub(super) id: String,
    /// The id is ours, because the first piece had none: the target's may still come.
    pub(super) made: bool,
    /// Empty while it has none.
    pub(super) name: String,
}

/// A call as its reader keeps it.
pub(super) trait Called {
    /// What its pieces have said of it.
    fn known(&self) -> &KnownCall;

    /// Whether its arguments are complete; `None` where nobody looks.
    fn is_whole(&self) -> Option<bool>;
}

/// What a piece says of the call that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPiece<'p> {
    pub(super) index: Option<u64>,
    pub(super) id: &'p str,
    pub(super) name: &'p str,
    /// It brings some of the arguments.
    pub(super) arguments: bool,
}

/// The call that a piece belongs to, among those that have begun; `None` for a new one. At one index only a piece with a name begins
/// another call.
pub(super) fn place<C: Called>(calls: &[C], piece: CallPiece<'_>) -> Option<usize> {
    let by_id = || {
        let known = |call: &C| !piece.id.is_empty() && call.known().id == piece.id;
        calls.iter().rposition(known)
    };
    let found = match piece.index {
        Some(_) => calls
            .iter()
            .rposition(|call| call.known().index == piece.index),
        None => by_id().or(calls.len().checked_sub(1)),
    };
    let Some((at, call)) = found.and_then(|at| Some((at, calls.get(at)?))) else {
        return by_id();
    };
    let known = call.known();
    if piece.name.is_empty() || known.name.is_empty() {
        let same = |own: &usize| {
            let own = calls.get(*own);
            own.is_some_and(|own| own.known().index == piece.index)
        };
        return by_id().filter(same).or(Some(at));
    }
    if !piece.id.is_empty() && !known.id.is_empty() && !known.made {
        return by_id();
    }
    let another = piece.name != known.name;
    let again = match call.is_whole() {
        Some(whole) => whole && (another || piece.arguments),
        None => another,
    };
    (!again).then_some(at)
}

/// A piece as it stands in a chunk.
#[derive(Debug, Default)]
pub(super) struct PlacedPiece {
    /// Behind its opening brace.
    pub(super) start: usize,
    pub(super) index: Option<(Range<usize>, Option<u64>)>,
    /// Where the member begins, and its value.
    pub(super) id: Option<(usize, Value)>,
    pub(super) name: Option<(usize, Value)>,
    pub(super) has_type: bool,
    /// A call of a tool with free text.
    pub(super) is_custom: bool,
    pub(super) arguments: bool,
}

/// Reads a piece of a call, at either of its two levels.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    piece: &mut PlacedPiece,
    (shown, sample): (&mut TextSize, &mut TextSample),
    places: &mut MemberPlaces,
) -> Result<(), JsonError> {
    if cursor.peek()? != Kind::Object {
        return cursor.skip().map(drop);
    }
    let mut members = Members::inside(own::of_content);
    let mut walk = cursor.enter_object()?;
    if piece.start == 0 {
        piece.start = cursor.at();
    }
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            name @ ("function" | "custom") => {
                piece.is_custom |= name == "custom";
                read(cursor, piece, (&mut *shown, &mut *sample), places)?;
            }
            name @ ("name" | "arguments" | "input") => {
                let value = cursor.skip()?;
                sample.show(cursor, &value, shown);
                if name == "name" {
                    piece.name = Some((key.at, value));
                } else {
                    piece.arguments |= value.text_size().bytes() > 0;
                }
            }
            "index" => {
                let value = cursor.skip()?;
                piece.index = Some((value.span.clone(), count(cursor, &value)));
            }
            "id" => piece.id = Some((key.at, cursor.skip()?)),
            "type" => {
                cursor.skip()?;
                piece.has_type = true;
            }
            _ => {
                cursor.skip()?;
                members.take(cursor, &key);
                continue;
            }
        }
        members.keep(cursor, &key);
    }
    members.finish(places);
    Ok(())
}
