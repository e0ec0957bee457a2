//! The fields that the requests of all families have, and the tables of those that each has.

use crate::class::ClassField;
use crate::class_fields;
use crate::content::{self, Out};
use crate::conversation::SESSION;
use crate::fields::{self, FieldRule};
use crate::json::{Cursor, Kind};
use crate::tools::{ToolRow, Tools};
use crate::turns::FamilyTurns;
use crate::walk::{self, RequestWalk, Verdict, flag};
use crate::{BadRequest, Inspection};

/// A family's tables.
pub(crate) struct FamilyFields {
    pub(crate) conversation: &'static str,
    /// What is told about one that is missing or empty.
    pub(crate) empty: &'static str,
    /// Fields that buy something other than tokens of the slug: refused, unless their value is free.
    pub(crate) refused: &'static [FieldRule],
    /// Fields that pass untouched.
    pub(crate) known: &'static [&'static str],
    pub(crate) classes: &'static [ClassField],
    /// Types of tools.
    pub(crate) tools: &'static [ToolRow],
    /// What is a message here.
    pub(crate) turns: FamilyTurns,
}

/// Takes a field of a family's own; `None` if it is none.
type OwnField = fn(&str, &mut Cursor<'_>, &mut Inspection) -> Result<Option<Verdict>, BadRequest>;

impl FamilyFields {
    /// The facts of a request.
    pub(crate) fn inspect(
        &'static self,
        body: &[u8],
        seed: u64,
        own: OwnField,
    ) -> Result<Inspection, BadRequest> {
        let mut tools = Tools::default();
        let mut request = RequestWalk::walk(body, seed, |name, cursor, seen| {
            self.field(name, cursor, seen, &mut tools, own)
        })?;
        walk::need_model(&request.seen)?;
        if request.seen.content.messages == 0 {
            return Err(BadRequest::at(self.conversation, self.empty));
        }
        tools.finish(&mut request);
        Ok(request.finish())
    }

    fn field(
        &'static self,
        name: &str,
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
        tools: &mut Tools,
        own: OwnField,
    ) -> Result<Verdict, BadRequest> {
        match name {
            "model" => walk::model(cursor, seen)?,
            _ if name == self.conversation => {
                if !self.turns.items && cursor.peek()? == Kind::String {
                    return Err(BadRequest::at(name, self.empty));
                }
                content::messages(name, cursor, &mut self.out(seen))?;
            }
            "stream" => seen.stream = flag(name, cursor)?,
            "tools" => tools.walk(self.tools, cursor, seen)?,
            "tool_choice" => tools.choice(cursor, seen)?,
            SESSION => return walk::ours(cursor),
            _ => return self.other(name, cursor, seen, own),
        }
        Ok(Verdict::Stays)
    }

    fn other(
        &self,
        name: &str,
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
        own: OwnField,
    ) -> Result<Verdict, BadRequest> {
        if let Some(verdict) = own(name, cursor, seen)? {
            return Ok(verdict);
        }
        if let Some(verdict) = class_fields::ask(self.classes, name, cursor, seen)? {
            return Ok(verdict);
        }
        match fields::check(self.refused, name, cursor)? {
            Some(verdict) => Ok(verdict),
            None => walk::known(name, self.known, cursor, seen),
        }
    }

    /// Where the content of a request is noted.
    pub(crate) fn out<'s>(&'static self, seen: &'s mut Inspection) -> Out<'s> {
        Out {
            seen,
            tools: self.tools,
            turns: &self.turns,
        }
    }
}
