//! The earlier turns of a chat request, as its target takes them.
//!
//! Services add members of their own to an assistant's turn: thinking, signatures, citations. Clients send them back, also after the
//! conversation has moved to another service, which may refuse their names, ask for its own signature, or for call ids of its form.
//! What a target refuses is left out or rewritten here; every other byte stays. Nothing is walked for a target that takes
//! everything, or for a conversation that has nothing of the kind.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::Inspection;
use crate::fit::{Concern, Fitting};
use crate::json::{Cursor, Cuts, Edit, JsonError, JsonWalk, Kind, MemberName, quoted};
use crate::target_fit::TargetFit;
use crate::translate::abilities::{ReasoningEcho, ToolIds};
use crate::translate::ids::call_id;

/// Gemini refuses a turn whose first call has no signature of its thinking. No other service gives one, so the call says that it was
/// made elsewhere (ai.google.dev/gemini-api/docs/thought-signatures).
pub(super) const MADE_ELSEWHERE: &str =
    r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;

/// The members of a call that every service knows.
const CALL: &[&str] = &["id", "type", "function", "custom"];

/// The only member of a call that a service is known to add (Gemini's signature).
const ADDED_TO_CALLS: &[u8] = b"extra_content";

/// Whether there may be something to change, or to leave out. Only members are lost.
pub(super) fn concern(fit: &TargetFit, body: &[u8], seen: &Inspection) -> Concern {
    let (talk, takes) = (&seen.places.talk, &fit.abilities);
    let has_more = || talk.extended || talk.calls && memmem::find(body, ADDED_TO_CALLS).is_some();
    if !fit.turn_members.is_empty() && has_more() {
        return Concern::Lost;
    }
    let other_calls = takes.signed_calls || takes.tool_ids != ToolIds::Any;
    if talk.calls && other_calls || takes.reasoning_echo == ReasoningEcho::All {
        Concern::Changed
    } else {
        Concern::None
    }
}

struct TurnMember<'a> {
    key: MemberName<'a>,
    kind: Kind,
    value: Range<usize>,
    /// It stays, whatever the target knows of turns.
    stays: bool,
}

/// Walks the conversation.
pub(super) fn turns(fitting: &mut Fitting<'_>, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
    if cursor.peek()? != Kind::Array {
        return fitting.value(cursor);
    }
    let mut turns = cursor.enter_array()?;
    while cursor.element(&mut turns)? {
        match cursor.peek()? {
            Kind::Object => turn(fitting, cursor)?,
            _ => fitting.value(cursor)?,
        }
    }
    Ok(())
}

fn turn(fitting: &mut Fitting<'_>, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    let start = cursor.at();
    let (mut members, mut role) = (Vec::new(), Cow::Borrowed(""));
    while let Some(key) = cursor.member(&mut walk)? {
        let kind = cursor.peek()?;
        let from = cursor.at();
        let here = fitting.enter(&key.name);
        let echoes = fitting.fit.abilities.reasoning_echo == ReasoningEcho::All;
        let stays = match key.name.as_ref() {
            // A turn that wants its thinking has a space for none.
            "reasoning_content" if echoes => {
                cursor.skip()?;
                true
            }
            name if fitting.goes(name, kind) => fitting.member(name, cursor)?,
            "tool_calls" if kind == Kind::Array => {
                calls(fitting, cursor)?;
                true
            }
            "role" => {
                let value = cursor.skip()?;
                role = cursor.text_of(&value).unwrap_or_default();
                true
            }
            "tool_call_id" => {
                id(fitting, cursor)?;
                true
            }
            name => fitting.member(name, cursor)?,
        };
        fitting.leave(here);
        let value = from..cursor.at();
        members.push(TurnMember {
            key,
            kind,
            value,
            stays,
        });
    }
    let is_answer = role == "assistant";
    if is_answer {
        echo(fitting, start, &members);
    }
    leave_out(fitting, &members, is_answer);
    Ok(())
}

/// A target that wants its thinking back refuses a turn without any: one of another model has a space.
fn echo(fitting: &mut Fitting<'_>, start: usize, members: &[TurnMember<'_>]) {
    if fitting.fit.abilities.reasoning_echo != ReasoningEcho::All {
        return;
    }
    let thought = members
        .iter()
        .find(|member| member.key.name == "reasoning_content");
    match thought {
        None => fitting.edits.push(Edit::replace(
            start..start,
            &br#""reasoning_content":" ","#[..],
        )),
        Some(thought) if thought.kind != Kind::String => {
            let blank = &br#"" ""#[..];
            fitting
                .edits
                .push(Edit::replace(thought.value.clone(), blank));
        }
        Some(_) => {}
    }
}

/// Leaves out what goes of a turn, and of an assistant's the members that the target does not know.
fn leave_out(fitting: &mut Fitting<'_>, members: &[TurnMember<'_>], is_answer: bool) {
    let known = &fitting.fit.turn_members;
    let judges = is_answer && !known.is_empty();
    let echoes = fitting.fit.abilities.reasoning_echo != ReasoningEcho::None;
    let mut cuts = Cuts::default();
    for member in members {
        let name = member.key.name.as_ref();
        let asked = name == "reasoning_content" && echoes;
        let is_known = !judges || asked || known.iter().any(|known| known == name);
        let is_empty = member.kind == Kind::Null || member.value.len() == r#""""#.len();
        if member.stays && !is_known && !is_empty {
            fitting.lost(&format!("messages.{name}"));
        }
        cuts.take(member.key.at..member.value.end, member.stays && is_known);
    }
    let cuts = cuts.finish().into_iter();
    fitting.edits.extend(cuts.map(Edit::cut));
}

fn calls(fitting: &mut Fitting<'_>, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
    let mut walk = cursor.enter_array()?;
    let mut first = true;
    while cursor.element(&mut walk)? {
        if cursor.peek()? == Kind::Object {
            let object = cursor.enter_object()?;
            call(fitting, cursor, object, std::mem::take(&mut first))?;
        } else {
            cursor.skip()?;
        }
    }
    Ok(())
}

fn call(
    fitting: &mut Fitting<'_>,
    cursor: &mut Cursor<'_>,
    mut walk: JsonWalk,
    first: bool,
) -> Result<(), JsonError> {
    let start = cursor.at();
    let (mut cuts, mut extra) = (Cuts::default(), None);
    let takes_any = fitting.fit.turn_members.is_empty();
    while let Some(key) = cursor.member(&mut walk)? {
        let here = fitting.enter(&key.name);
        let stays = match key.name.as_ref() {
            "id" => {
                id(fitting, cursor)?;
                true
            }
            "extra_content" => {
                extra = Some(cursor.skip()?.span);
                true
            }
            name => fitting.member(name, cursor)?,
        };
        fitting.leave(here);
        let known = takes_any || CALL.contains(&&*key.name);
        cuts.take(key.at..cursor.at(), stays && known);
    }
    let cuts = cuts.finish().into_iter();
    fitting.edits.extend(cuts.map(Edit::cut));
    if first && fitting.fit.abilities.signed_calls {
        sign(fitting, cursor, start, extra);
    }
    Ok(())
}

/// Says of a call without a signature that it was made elsewhere.
fn sign(fitting: &mut Fitting<'_>, cursor: &Cursor<'_>, start: usize, extra: Option<Range<usize>>) {
    match extra {
        None => fitting.edits.push(Edit::replace(
            start..start,
            format!(r#""extra_content":{MADE_ELSEWHERE},"#).into_bytes(),
        )),
        Some(extra)
            if !cursor
                .slice(extra.clone())
                .contains("\"thought_signature\"") =>
        {
            let elsewhere = MADE_ELSEWHERE.as_bytes();
            fitting.edits.push(Edit::replace(extra, elsewhere));
        }
        Some(_) => {}
    }
}

/// Writes an id in the form that the target takes; a call and its result agree, because both are made of the same text.
fn id(fitting: &mut Fitting<'_>, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
    let value = cursor.skip()?;
    let form = fitting.fit.abilities.tool_ids;
    if form == ToolIds::Any {
        return Ok(());
    }
    let said = cursor.text_of(&value).unwrap_or_default();
    if let Cow::Owned(made) = call_id(&said, crate::Family::Chat, form) {
        let made = quoted(&made).into_bytes();
        fitting.edits.push(Edit::replace(value.span, made));
    }
    Ok(())
}
