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
use crate::json::{Cursor, Cuts, Edit, JsonError, JsonWalk, Kind, MemberName, quoted};
use crate::translate::abilities::{HistoryAbilities, ReasoningEcho, ToolIds};
use crate::translate::ids::call_id;
use crate::translate::losses::Losses;

/// Gemini refuses a turn whose first call has no signature of its thinking. No other service gives one, so the call says that it was
/// made elsewhere (ai.google.dev/gemini-api/docs/thought-signatures).
pub(super) const MADE_ELSEWHERE: &str =
    r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;

/// The members of a call that every service knows.
const CALL: &[&str] = &["id", "type", "function", "custom"];

/// The only member of a call that a service is known to add (Gemini's signature).
const ADDED_TO_CALLS: &[u8] = b"extra_content";

/// The edits that make a conversation fit its target.
pub(super) fn changes(
    takes: &HistoryAbilities<'_>,
    body: &[u8],
    seen: &Inspection,
) -> Vec<Edit<'static>> {
    fit(takes, body, seen).edits
}

/// What the model does not get. Only members are lost, so nothing else is a reason to walk the conversation once more.
pub(super) fn losses(takes: &HistoryAbilities<'_>, body: &[u8], seen: &Inspection) -> Losses {
    if !has_strange_members(takes, body, seen) {
        return Losses::default();
    }
    fit(takes, body, seen).losses
}

fn fit<'h>(takes: &HistoryAbilities<'h>, body: &[u8], seen: &Inspection) -> Fitting<'h> {
    let mut fitting = Fitting::new(*takes);
    if concerns(takes, body, seen) {
        // The body was read before: it is JSON.
        let _ = Cursor::new(body).and_then(|mut cursor| fitting.body(&mut cursor));
    }
    fitting
}

/// Whether there may be something to change.
fn concerns(takes: &HistoryAbilities<'_>, body: &[u8], seen: &Inspection) -> bool {
    has_strange_members(takes, body, seen)
        || seen.places.talk.calls && (takes.signed_calls || takes.tool_ids != ToolIds::Any)
        || takes.echo == ReasoningEcho::All
}

/// Whether a turn or a call may have members that the target refuses.
fn has_strange_members(takes: &HistoryAbilities<'_>, body: &[u8], seen: &Inspection) -> bool {
    let talk = &seen.places.talk;
    let has_more = || talk.extended || talk.calls && memmem::find(body, ADDED_TO_CALLS).is_some();
    !takes.turn_members.is_empty() && has_more()
}

struct Fitting<'h> {
    takes: HistoryAbilities<'h>,
    edits: Vec<Edit<'static>>,
    losses: Losses,
}

/// One member of a turn or a call.
struct TurnMember<'a> {
    key: MemberName<'a>,
    kind: Kind,
    value: Range<usize>,
}

impl<'h> Fitting<'h> {
    fn new(takes: HistoryAbilities<'h>) -> Self {
        Self {
            takes,
            edits: Vec::new(),
            losses: Losses::default(),
        }
    }

    fn body(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            if key.name == "messages" && cursor.peek()? == Kind::Array {
                let mut turns = cursor.enter_array()?;
                while cursor.element(&mut turns)? {
                    match cursor.peek()? {
                        Kind::Object => self.turn(cursor)?,
                        _ => {
                            cursor.skip()?;
                        }
                    }
                }
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    fn turn(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_object()?;
        let start = cursor.at();
        let (mut members, mut role) = (Vec::new(), Cow::Borrowed(""));
        while let Some(key) = cursor.member(&mut walk)? {
            let kind = cursor.peek()?;
            let from = cursor.at();
            match key.name.as_ref() {
                "tool_calls" if kind == Kind::Array => self.calls(cursor)?,
                name => {
                    let value = cursor.skip()?;
                    match name {
                        "role" => role = cursor.text_of(&value).unwrap_or_default(),
                        "tool_call_id" => {
                            self.id(&cursor.text_of(&value).unwrap_or_default(), &value.span);
                        }
                        _ => {}
                    }
                }
            }
            let value = from..cursor.at();
            members.push(TurnMember { key, kind, value });
        }
        if role == "assistant" {
            self.echo(start, &members);
            self.leave_out(&members);
        }
        Ok(())
    }

    /// A target that wants its thinking back refuses a turn without any: one of another model has a space.
    fn echo(&mut self, start: usize, members: &[TurnMember<'_>]) {
        if self.takes.echo != ReasoningEcho::All {
            return;
        }
        let thought = members
            .iter()
            .find(|member| member.key.name == "reasoning_content");
        match thought {
            None => self.edits.push(Edit::replace(
                start..start,
                &br#""reasoning_content":" ","#[..],
            )),
            Some(thought) if thought.kind != Kind::String => {
                let blank = &br#"" ""#[..];
                self.edits.push(Edit::replace(thought.value.clone(), blank));
            }
            Some(_) => {}
        }
    }

    /// Leaves out the members that the target does not know.
    fn leave_out(&mut self, members: &[TurnMember<'_>]) {
        if self.takes.turn_members.is_empty() {
            return;
        }
        let mut cuts = Cuts::default();
        for member in members {
            let name = member.key.name.as_ref();
            let asked = name == "reasoning_content" && self.takes.echo != ReasoningEcho::None;
            let stays = asked || self.takes.turn_members.iter().any(|known| known == name);
            let is_empty = member.kind == Kind::Null || member.value.len() == r#""""#.len();
            if !stays && !is_empty {
                self.losses.add(&format!("messages.{name}"), "dropped");
            }
            cuts.take(member.key.at..member.value.end, stays);
        }
        self.edits.extend(cuts.finish().into_iter().map(Edit::cut));
    }

    fn calls(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonError> {
        let mut walk = cursor.enter_array()?;
        let mut first = true;
        while cursor.element(&mut walk)? {
            if cursor.peek()? == Kind::Object {
                let object = cursor.enter_object()?;
                self.call(cursor, object, std::mem::take(&mut first))?;
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        cursor: &mut Cursor<'_>,
        mut walk: JsonWalk,
        first: bool,
    ) -> Result<(), JsonError> {
        let start = cursor.at();
        let (mut cuts, mut extra) = (Cuts::default(), None);
        while let Some(key) = cursor.member(&mut walk)? {
            let value = cursor.skip()?;
            match key.name.as_ref() {
                "id" => self.id(&cursor.text_of(&value).unwrap_or_default(), &value.span),
                "extra_content" => extra = Some(value.span.clone()),
                _ => {}
            }
            let stays = self.takes.turn_members.is_empty() || CALL.contains(&&*key.name);
            cuts.take(key.at..value.span.end, stays);
        }
        self.edits.extend(cuts.finish().into_iter().map(Edit::cut));
        if first && self.takes.signed_calls {
            self.sign(cursor, start, extra);
        }
        Ok(())
    }

    /// Says of a call without a signature that it was made elsewhere.
    fn sign(&mut self, cursor: &Cursor<'_>, start: usize, extra: Option<Range<usize>>) {
        match extra {
            None => self.edits.push(Edit::replace(
                start..start,
                format!(r#""extra_content":{MADE_ELSEWHERE},"#).into_bytes(),
            )),
            Some(extra)
                if !cursor
                    .slice(extra.clone())
                    .contains("\"thought_signature\"") =>
            {
                let elsewhere = MADE_ELSEWHERE.as_bytes();
                self.edits.push(Edit::replace(extra, elsewhere));
            }
            Some(_) => {}
        }
    }

    /// Writes an id in the form that the target takes; a call and its result agree, because both are made of the same text.
    fn id(&mut self, id: &str, at: &Range<usize>) {
        if self.takes.tool_ids == ToolIds::Any {
            return;
        }
        if let Cow::Owned(made) = call_id(id, crate::Family::Chat, self.takes.tool_ids) {
            let made = quoted(&made).into_bytes();
            self.edits.push(Edit::replace(at.clone(), made));
        }
    }
}
