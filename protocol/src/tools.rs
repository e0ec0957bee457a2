//! Walks the tools that a request offers: counts and measures them, removes search tools, refuses tools that run on a server.
//!
//! Each family has a table of tool types. A type that no table names is refused, because it may run on a server and cost money. The
//! choice of a removed tool is removed with it.
//!
//! Rows of docs/interface.md: `tool_with_a_broken_schema`.

use std::borrow::Cow;
use std::ops::Range;

use crate::cache;
use crate::fields::SERVER_TOOL;
use crate::json::{Cursor, Cuts, Kind};
use crate::translate::tree::JsonNode;
use crate::walk::{RequestWalk, word};
use crate::{BadRequest, Inspection, Remedy, TextSize};

/// One row of a family's table: a tool type (`*` stands for any ending) and what happens to it.
pub(crate) type ToolRow = (&'static str, ToolFate);

/// What happens to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolFate {
    /// It runs on the customer's side, or for free: it passes.
    Passes,
    /// The customer's own function: it passes if it has a name, beside its type, and a schema that is an object.
    Named,
    /// The same in chat, where both are inside the member named like the type.
    Nested,
    /// The same in messages, where it must have a schema.
    Described,
    /// The customer's side runs it. It has no words of its own: whoever serves it tells the model so much about it.
    Told(&'static [&'static str]),
    /// The same, if its `environment` is the customer's; without one it is a server's.
    Local(&'static [&'static str]),
    /// A server-side search: removed and reported.
    Search,
}

/// The tools of one request.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    kept: u32,
    /// Types and names of removed tools, to find a `tool_choice` that refers to one.
    gone: Vec<String>,
    choice: Option<Range<usize>>,
}

#[derive(Debug, Default)]
struct ToolOffer<'a> {
    kind: Cow<'a, str>,
    name: Cow<'a, str>,
    environment: Option<Cow<'a, str>>,
    /// What kinds of values its schema and the object that describes it have.
    schema: Option<Kind>,
    nested: Option<Kind>,
}

impl Tools {
    pub(crate) fn walk(
        &mut self,
        table: &[ToolRow],
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
    ) -> Result<(), BadRequest> {
        self.list(table, cursor, seen, true)
            .map_err(|bad| bad.within("tools"))
    }

    /// Walks a list of tools inside the conversation, where nothing can be removed.
    pub(crate) fn inside(
        &mut self,
        table: &[ToolRow],
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
    ) -> Result<(), BadRequest> {
        let before = cursor.clone();
        self.list(table, cursor, seen, false)
            .map_err(|bad| bad.within("tools"))?;
        read(&before, cursor, seen);
        Ok(())
    }

    /// Walks one tool inside the conversation.
    pub(crate) fn definition(
        &mut self,
        table: &[ToolRow],
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
    ) -> Result<(), BadRequest> {
        let before = cursor.clone();
        self.tool(table, cursor, seen, false)?;
        read(&before, cursor, seen);
        Ok(())
    }

    /// Records the position of `tool_choice`, and whether it demands a call.
    pub(crate) fn choice(
        &mut self,
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
    ) -> Result<(), BadRequest> {
        let value = cursor.skip()?;
        let choice = JsonNode::parse(cursor.slice(value.span.clone()).as_bytes());
        seen.formed |= choice.is_ok_and(|choice| demands(&choice));
        self.choice = (value.kind != Kind::Null).then_some(value.span);
        Ok(())
    }

    /// Removes the members that have lost their meaning.
    pub(crate) fn finish(&self, request: &mut RequestWalk<'_>) {
        if self.gone.is_empty() {
            return;
        }
        if self.kept == 0 {
            for name in ["tools", "tool_choice", "parallel_tool_calls"] {
                request.cut(name);
            }
        } else if let Some(choice) = &self.choice {
            let text = request.slice(choice.clone());
            if self
                .gone
                .iter()
                .any(|gone| text.contains(&format!("\"{gone}\"")))
            {
                request.cut("tool_choice");
            }
        }
    }

    fn list(
        &mut self,
        table: &[ToolRow],
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
        top: bool,
    ) -> Result<(), BadRequest> {
        match cursor.peek()? {
            Kind::Array => {}
            Kind::Null => return cursor.skip().map(drop).map_err(BadRequest::from),
            _ => return Err(BadRequest::at("", "`tools` must be a list of objects.")),
        }
        let mut walk = cursor.enter_array()?;
        let mut index = 0_usize;
        let mut cuts = Cuts::default();
        while cursor.element(&mut walk)? {
            let kind = cursor.peek()?;
            let start = cursor.at();
            if kind != Kind::Object {
                return Err(BadRequest::at(
                    format!("[{index}]"),
                    "a tool must be an object.",
                ));
            }
            let stays = self
                .tool(table, cursor, seen, top)
                .map_err(|bad| bad.within(format_args!("[{index}]")))?;
            cuts.take(start..cursor.at(), stays);
            index += 1;
        }
        // If nothing stays, the whole member is removed, and its neighbours with it.
        if !cuts.nothing_stays() {
            seen.places.cuts.extend(cuts.finish());
        }
        Ok(())
    }

    /// Walks one tool and returns whether it stays.
    fn tool(
        &mut self,
        table: &[ToolRow],
        cursor: &mut Cursor<'_>,
        seen: &mut Inspection,
        top: bool,
    ) -> Result<bool, BadRequest> {
        let before = cursor.clone();
        let mut offer = ToolOffer::default();
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            match key.name.as_ref() {
                "type" if offer.kind.is_empty() => offer.kind = word(cursor)?,
                "type" => {
                    return Err(BadRequest::at(
                        "type",
                        "`type` is written twice. Send it once.",
                    ));
                }
                "function" | "custom" if cursor.peek()? == Kind::Object => {
                    offer.nested = Some(Kind::Object);
                    offer
                        .described(cursor)
                        .map_err(|bad| bad.within(&key.name))?;
                }
                "name" => offer.name = word(cursor)?,
                "parameters" | "input_schema" => offer.schema = Some(cursor.skip()?.kind),
                "environment" if offer.environment.is_none() => {
                    offer.environment = Some(environment(cursor)?)
                }
                "environment" => {
                    return Err(BadRequest::at(
                        "environment",
                        "`environment` is written twice. Send it once.",
                    ));
                }
                "cache_control" => cache::control(key.at, cursor, seen)?,
                "tools" => self
                    .list(table, cursor, seen, false)
                    .map_err(|bad| bad.within("tools"))?,
                _ => {
                    cursor.skip()?;
                }
            }
        }
        let row = table
            .iter()
            .find(|(pattern, _)| matches(pattern, &offer.kind))
            .map(|(_, tool)| *tool);
        if row == Some(ToolFate::Search) && top {
            seen.removed_tools.push(offer.kind.to_string());
            self.gone.extend(
                [offer.kind, offer.name]
                    .into_iter()
                    .filter(|word| !word.is_empty())
                    .map(Cow::into_owned),
            );
            return Ok(false);
        }
        offer.judge(row)?;
        told(row, seen);
        // Further in, what holds it is counted with all that is in it.
        if top {
            self.kept += 1;
            read(&before, cursor, seen);
        }
        seen.content.tools = seen.content.tools.saturating_add(1);
        Ok(true)
    }
}

impl<'a> ToolOffer<'a> {
    /// Reads the object that describes a function of chat.
    fn described(&mut self, cursor: &mut Cursor<'a>) -> Result<(), BadRequest> {
        let mut walk = cursor.enter_object()?;
        while let Some(key) = cursor.member(&mut walk)? {
            match key.name.as_ref() {
                "name" => self.name = word(cursor)?,
                "parameters" => self.schema = Some(cursor.skip()?.kind),
                _ => {
                    cursor.skip()?;
                }
            }
        }
        Ok(())
    }

    /// Refuses what runs on a server, and what cannot be a tool.
    fn judge(&self, row: Option<ToolFate>) -> Result<(), BadRequest> {
        let place = self.environment.as_deref().unwrap_or_default();
        let (remedy, message) = match row {
            Some(ToolFate::Passes | ToolFate::Told(_)) => return Ok(()),
            Some(ToolFate::Local(_)) if place == "local" => return Ok(()),
            Some(ToolFate::Local(_)) => (
                Some(Remedy::Without),
                format!(
                    "a `{}` runs in a container of the provider unless its `environment` is {{\"type\": \"local\"}}, and {SERVER_TOOL}. \
                     Send that and run its commands yourself, or leave it out.",
                    self.kind
                ),
            ),
            Some(own @ (ToolFate::Named | ToolFate::Nested | ToolFate::Described)) => {
                return self.own(own);
            }
            _ if self.kind.is_empty() => (
                None,
                "a tool needs a `type`: send \"function\" for a function of your own.".to_owned(),
            ),
            _ => (
                Some(Remedy::Without),
                format!(
                    "a tool of type `{}` is refused: it is not known here, and {SERVER_TOOL}. Leave it out.",
                    self.kind
                ),
            ),
        };
        Err(BadRequest {
            code: Some("unsupported_tool"),
            remedy,
            ..BadRequest::at("type", message)
        })
    }

    /// Refuses a function of the customer's that nobody could call.
    fn own(&self, way: ToolFate) -> Result<(), BadRequest> {
        let nested = way == ToolFate::Nested;
        let at = |name: &str| match nested {
            true => format!("{}.{name}", self.kind),
            false => name.to_owned(),
        };
        if nested && self.nested.is_none() {
            let kind = &self.kind;
            let message = format!("a tool of this type needs its `{kind}`, an object with `name`.");
            return Err(BadRequest::at(kind.as_ref(), message));
        }
        if self.name.is_empty() {
            return Err(BadRequest::at(at("name"), "a tool needs a `name`."));
        }
        let schema = if way == ToolFate::Described {
            "input_schema"
        } else {
            "parameters"
        };
        match self.schema {
            Some(Kind::Object) => Ok(()),
            None | Some(Kind::Null) if way != ToolFate::Described => Ok(()),
            _ => {
                let message = format!("`{schema}` must be a JSON schema, an object.");
                Err(BadRequest::at(at(schema), message))
            }
        }
    }
}

/// Counts the definitions of tools since `before` as text.
fn read(before: &Cursor<'_>, cursor: &Cursor<'_>, seen: &mut Inspection) {
    let text = cursor.slice(before.at()..cursor.at());
    count(cursor.size_since(before), text, seen);
}

/// Counts what a model is told about a tool that has no definition.
fn told(row: Option<ToolFate>, seen: &mut Inspection) {
    if let Some(ToolFate::Told(words) | ToolFate::Local(words)) = row {
        words
            .iter()
            .for_each(|words| count(TextSize::of(words), words, seen));
    }
}

fn count(size: TextSize, text: &str, seen: &mut Inspection) {
    seen.content.tool_bytes = seen.content.tool_bytes.saturating_add(size.bytes());
    seen.content.read(size, text);
}

/// Compares safely for a header: the part matched by `*` has only lower-case letters, digits and underscores.
fn matches(pattern: &str, kind: &str) -> bool {
    let Some(stem) = pattern.strip_suffix('*') else {
        return pattern == kind;
    };
    let ending = kind.strip_prefix(stem);
    ending.is_some_and(|ending| {
        ending
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// Where a tool runs: the `type` of its environment. A computer's is a word.
fn environment<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, BadRequest> {
    let mut kind = Cow::Borrowed("");
    if cursor.peek()? == Kind::String {
        cursor.skip()?;
        return Ok(kind);
    }
    crate::walk::options("environment", cursor, |name, cursor| {
        match name {
            "type" => kind = word(cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(kind)
}

/// Whether a choice leaves the model no answer but a call.
fn demands(choice: &JsonNode<'_>) -> bool {
    let said = match choice.object() {
        Some(_) => choice.get("type").word(),
        None => choice.word(),
    };
    !matches!(said, "" | "auto" | "none" | "allowed_tools")
}
