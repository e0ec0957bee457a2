//! The content of one chunk of a chat answer, or of a whole answer read as one chunk: positions in its text, nothing copied.

use std::borrow::Cow;

use crate::json::{Cursor, JsonError, Kind};
use crate::translate::text::escape;
use crate::usage::count;

#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// It has a choice, which is this answer's.
    pub(super) said: bool,
    /// The first reasoning text that is not empty, escaped.
    pub(super) reasoning: Option<&'a str>,
    /// `reasoning_details`, as JSON.
    pub(super) details: Option<&'a str>,
    /// Text, escaped.
    pub(super) content: Option<&'a str>,
    /// A content that is a list of parts, as JSON.
    pub(super) parts: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
    pub(super) fragments: Vec<Fragment<'a>>,
    pub(super) finish: Option<&'a str>,
    /// Members that only this family has.
    pub(super) lost: Vec<&'static str>,
    pub(super) error: bool,
}

/// Parts of a message that no other family has.
const OWN: [&str; 3] = ["annotations", "audio", "images"];

/// A piece of a call.
#[derive(Debug, Default)]
pub(super) struct Fragment<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    /// More of the arguments, escaped.
    pub(super) arguments: Cow<'a, str>,
    /// The arguments are free text.
    pub(super) free: bool,
}

pub(super) fn chunk<'a>(cursor: &mut Cursor<'a>) -> Result<Chunk<'a>, JsonError> {
    let mut said = Chunk::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "choices" if cursor.peek()? == Kind::Array => {
                let mut choices = cursor.enter_array()?;
                while cursor.element(&mut choices)? {
                    choice(cursor, &mut said)?;
                }
            }
            "error" => said.error = cursor.skip()?.kind != Kind::Null,
            _ => {
                cursor.skip()?;
            }
        }
    }
    Ok(said)
}

/// One choice; only the first answer is taken, whatever the others contain.
fn choice<'a>(cursor: &mut Cursor<'a>, said: &mut Chunk<'a>) -> Result<(), JsonError> {
    if cursor.peek()? != Kind::Object {
        return cursor.skip().map(drop);
    }
    let mut own = Chunk {
        said: true,
        ..Chunk::default()
    };
    let mut walk = cursor.enter_object()?;
    let mut first = true;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "index" => {
                let value = cursor.skip()?;
                first = count(cursor, &value).is_none_or(|index| index == 0);
            }
            "delta" | "message" if cursor.peek()? == Kind::Object => delta(cursor, &mut own)?,
            "finish_reason" => {
                own.finish = text(cursor)?
                    .filter(|reason| !reason.is_empty())
                    .or(own.finish)
            }
            "text" => own.content = text(cursor)?.or(own.content),
            _ => {
                cursor.skip()?;
            }
        }
    }
    if first && !said.said {
        *said = Chunk {
            error: said.error,
            ..own
        };
    }
    Ok(())
}

fn delta<'a>(cursor: &mut Cursor<'a>, own: &mut Chunk<'a>) -> Result<(), JsonError> {
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "content" if cursor.peek()? == Kind::Array => {
                let value = cursor.skip()?;
                own.parts = Some(cursor.slice(value.span));
            }
            "content" => own.content = text(cursor)?,
            "refusal" => own.refusal = text(cursor)?,
            "reasoning_content" | "reasoning" => {
                let found = text(cursor)?.filter(|text| !text.is_empty());
                own.reasoning = own.reasoning.or(found);
            }
            "reasoning_details" if cursor.peek()? == Kind::Array => {
                let value = cursor.skip()?;
                own.details = Some(cursor.slice(value.span));
            }
            "tool_calls" if cursor.peek()? == Kind::Array => {
                let mut calls = cursor.enter_array()?;
                while cursor.element(&mut calls)? {
                    fragment(cursor, own)?;
                }
            }
            "function_call" => fragment(cursor, own)?,
            name => {
                let found = OWN.into_iter().find(|known| *known == name);
                let value = cursor.skip()?;
                let said = !matches!(cursor.slice(value.span), "null" | "[]" | "{}");
                own.lost.extend(found.filter(|_| said));
            }
        }
    }
    Ok(())
}

fn fragment<'a>(cursor: &mut Cursor<'a>, own: &mut Chunk<'a>) -> Result<(), JsonError> {
    let mut found = Fragment::default();
    members(cursor, &mut found)?;
    if found.index.is_some()
        || !(found.id.is_empty() && found.name.is_empty() && found.arguments.is_empty())
    {
        own.fragments.push(found);
    }
    Ok(())
}

/// The members of a call, at either of their two levels.
fn members<'a>(cursor: &mut Cursor<'a>, found: &mut Fragment<'a>) -> Result<(), JsonError> {
    if cursor.peek()? != Kind::Object {
        return cursor.skip().map(drop);
    }
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        match key.name.as_ref() {
            "function" => members(cursor, found)?,
            "custom" => {
                found.free = true;
                members(cursor, found)?;
            }
            name => {
                let value = cursor.skip()?;
                let plain = || cursor.text_of(&value).unwrap_or_default();
                match name {
                    "index" => found.index = count(cursor, &value),
                    "id" => found.id = plain(),
                    "name" => found.name = plain(),
                    "arguments" | "input" => {
                        found.arguments = match (cursor.raw_text(&value), value.kind) {
                            (Some(raw), _) => Cow::Borrowed(raw),
                            (None, Kind::Object) => Cow::Owned(escape(cursor.slice(value.span))),
                            _ => Cow::Borrowed(""),
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a str>, JsonError> {
    let value = cursor.skip()?;
    Ok(cursor.raw_text(&value))
}
