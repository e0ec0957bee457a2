//! What of the pieces of a chat target's calls is changed for clients of this family.
//!
//! Clients know one way: a call's first piece has its index, its id and its name, and the others have the index alone. A stream of
//! that form is not touched.

use std::ops::Range;

use super::pieces::{CallPiece, Called, KnownCall, PlacedPiece, place};
use crate::json::{Cursor, Edit, Kind, Value, quoted};
use crate::translate::ids::made_id;
use crate::{Frame, FrameMarks};

/// A change to a piece.
#[derive(Debug)]
enum Mend {
    /// Other bytes.
    Set(Range<usize>, String),
    /// A member that goes, and its value: where another cut touches the member, the value becomes `null`.
    Cut(Range<usize>, Range<usize>),
}

/// The calls of a streamed answer, as its client knows them.
#[derive(Debug, Default)]
pub(super) struct ShownCalls {
    list: Vec<ShownCall>,
}

#[derive(Debug)]
struct ShownCall {
    /// The choice that it belongs to.
    choice: u64,
    known: KnownCall,
    /// Its number at the client: the target's, unless another call has that.
    index: u64,
}

impl Called for &ShownCall {
    fn known(&self) -> &KnownCall {
        &self.known
    }

    fn is_whole(&self) -> Option<bool> {
        None
    }
}

impl ShownCalls {
    /// Adds the edits that make a piece of a choice one that clients understand. `answer` tells the ids that are made here apart from
    /// those of other answers.
    pub(super) fn mend(
        &mut self,
        (choice, piece): (u64, &PlacedPiece),
        (frame, cursor): (&Frame, &Cursor<'_>),
        answer: &str,
        marks: &mut FrameMarks,
    ) {
        if self.knows(choice, piece) {
            return;
        }
        for mend in self.mends((choice, piece), cursor, answer) {
            let (at, with) = match mend {
                Mend::Set(at, with) => (frame.raw_range(at), with),
                Mend::Cut(member, value) => {
                    let member = frame.raw_range(member);
                    let touches =
                        |cut: &Range<usize>| cut.start <= member.end && member.start <= cut.end;
                    if marks
                        .more()
                        .is_some_and(|more| more.cuts.iter().any(touches))
                    {
                        (frame.raw_range(value), "null".to_owned())
                    } else {
                        (member, String::new())
                    }
                }
            };
            if !(at.is_empty() && with.is_empty()) {
                marks
                    .more_mut()
                    .mended
                    .push(Edit::replace(at, with.into_bytes()));
            }
        }
    }

    fn mends(
        &mut self,
        (choice, piece): (u64, &PlacedPiece),
        cursor: &Cursor<'_>,
        answer: &str,
    ) -> Vec<Mend> {
        let text = |member: &Option<(usize, Value)>| {
            let text = member.as_ref().and_then(|(_, value)| cursor.text_of(value));
            text.unwrap_or_default()
        };
        let (id, name) = (text(&piece.id), text(&piece.name));
        let index = piece.index.as_ref().and_then(|(_, index)| *index);
        let said = CallPiece {
            index,
            id: &id,
            name: &name,
            arguments: piece.arguments,
        };
        // It says nothing, so it begins no call and belongs to none.
        if index.is_none() && id.is_empty() && name.is_empty() && !piece.arguments {
            return Vec::new();
        }
        let own: Vec<(usize, &ShownCall)> = (self.list.iter().enumerate())
            .filter(|(_, call)| call.choice == choice)
            .collect();
        let calls: Vec<&ShownCall> = own.iter().map(|(_, call)| *call).collect();
        let found = place(&calls, said).and_then(|at| own.get(at).map(|(at, _)| *at));
        let Some(at) = found else {
            let call = ShownCall::begun(choice, said, &calls, answer);
            let mends = call.begins(piece, said);
            self.list.push(call);
            return mends;
        };
        let call = self.list.get_mut(at);
        call.map(|call| call.continues(piece, said, cursor))
            .unwrap_or_default()
    }

    /// Whether a piece without an id and a name needs no change.
    fn knows(&self, choice: u64, piece: &PlacedPiece) -> bool {
        let Some((_, index @ Some(_))) = piece.index else {
            return false;
        };
        let known = |call: &&ShownCall| call.choice == choice && call.known.index == index;
        let last = self.list.iter().rev().find(known);
        let says_more = [&piece.id, &piece.name].into_iter().flatten();
        says_more.into_iter().all(|(_, value)| is_empty(value))
            && last.is_some_and(|call| Some(call.index) == index)
    }
}

impl ShownCall {
    fn begun(choice: u64, said: CallPiece<'_>, others: &[&Self], answer: &str) -> Self {
        let taken = |index: u64| others.iter().any(|call| call.index == index);
        let next = others.iter().map(|call| call.index.saturating_add(1)).max();
        let next = next.unwrap_or(0);
        let index = said.index.filter(|index| !taken(*index)).unwrap_or(next);
        let made = said.id.is_empty();
        let id = if made {
            made_id(&[answer, &choice.to_string(), &index.to_string()])
        } else {
            said.id.to_owned()
        };
        let known = KnownCall {
            index: said.index,
            id,
            made,
            name: said.name.to_owned(),
        };
        Self {
            choice,
            known,
            index,
        }
    }

    /// The first piece has an index and an id.
    fn begins(&self, piece: &PlacedPiece, said: CallPiece<'_>) -> Vec<Mend> {
        let (mut mends, mut missing) = self.number(piece, said);
        if self.known.made {
            let id = quoted(&self.known.id);
            match &piece.id {
                Some((_, empty)) => mends.push(Mend::Set(empty.span.clone(), id)),
                None => missing += &format!("\"id\":{id},"),
            }
            if !piece.has_type {
                let word = if piece.is_custom {
                    "custom"
                } else {
                    "function"
                };
                missing += &format!("\"type\":\"{word}\",");
            }
        }
        mends.push(Mend::Set(piece.start..piece.start, missing));
        mends
    }

    /// The others have only the index: clients take a second id for another call, or join both.
    fn continues(
        &mut self,
        piece: &PlacedPiece,
        said: CallPiece<'_>,
        cursor: &Cursor<'_>,
    ) -> Vec<Mend> {
        let (mut mends, missing) = self.number(piece, said);
        let said_again = |text: &str, member: &Option<(usize, Value)>| {
            let (at, value) = member.clone().filter(|_| !text.is_empty())?;
            // What is put in front needs a member behind it.
            Some(if missing.is_empty() {
                Mend::Cut(with_comma(cursor, at..value.span.end), value.span)
            } else {
                Mend::Set(value.span, "null".to_owned())
            })
        };
        mends.extend(said_again(said.id, &piece.id));
        if self.known.name.is_empty() {
            said.name.clone_into(&mut self.known.name);
        } else {
            mends.extend(said_again(said.name, &piece.name));
        }
        mends.push(Mend::Set(piece.start..piece.start, missing));
        mends
    }

    /// Sets the number, or says it as a member if the piece has none.
    fn number(&self, piece: &PlacedPiece, said: CallPiece<'_>) -> (Vec<Mend>, String) {
        match &piece.index {
            _ if said.index == Some(self.index) => (Vec::new(), String::new()),
            Some((span, _)) => {
                let number = Mend::Set(span.clone(), self.index.to_string());
                (vec![number], String::new())
            }
            None => (Vec::new(), format!("\"index\":{},", self.index)),
        }
    }
}

/// A member with one neighbouring comma, if it has any.
fn with_comma(cursor: &Cursor<'_>, member: Range<usize>) -> Range<usize> {
    let (before, behind) = (cursor.slice(0..member.start), cursor.rest(member.end));
    let space = behind.len() - behind.trim_start().len();
    if behind.trim_start().starts_with(',') {
        return member.start..member.end + space + 1;
    }
    match before.trim_end().strip_suffix(',') {
        Some(before) => before.len()..member.end,
        None => member,
    }
}

/// Whether a value is `null` or an empty text.
fn is_empty(value: &Value) -> bool {
    value.kind == Kind::Null || (value.kind == Kind::String && value.span.len() <= 2)
}
