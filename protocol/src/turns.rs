//! What can be a message, an item or a part at all, in each family.
//!
//! What cannot be one is refused before money is held: every service of the family would refuse it too, after the hold. What one
//! service knows and another does not, such as a role of a local model's template, is left to the provider.

use crate::fields::ITEM_REFERENCE;
use crate::json::{Kind, unescape};
use crate::{BadRequest, Remedy};

/// One family's messages.
#[derive(Debug)]
pub(crate) struct FamilyTurns {
    /// The roles, if no service of the family has others.
    pub(crate) roles: &'static [&'static str],
    /// Roles whose message may have no content: they call tools instead.
    pub(crate) silent: &'static [&'static str],
    /// Whether what has a type may do without a role.
    pub(crate) items: bool,
    /// Types of parts that only the other families have.
    pub(crate) foreign: &'static [&'static str],
}

/// Where in a conversation an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Level {
    /// A message or an input item.
    Turn,
    /// A part of a message.
    Part,
    /// Anywhere deeper.
    #[default]
    Inner,
}

impl Level {
    /// Of what its `content` lists.
    pub(crate) const fn inner(self) -> Self {
        match self {
            Self::Turn => Self::Part,
            Self::Part | Self::Inner => Self::Inner,
        }
    }
}

/// Refuses anything but an object in a list of messages or parts.
pub(crate) fn not_an_object(level: Level) -> Result<(), BadRequest> {
    let what = match level {
        Level::Turn => "a message must be an object with `role` and `content`.",
        Level::Part => "a part of a message must be an object with `type`.",
        Level::Inner => return Ok(()),
    };
    Err(BadRequest::at("", what))
}

/// The refusal of content of another kind.
pub(crate) fn no_content(name: &str) -> BadRequest {
    BadRequest::at(name, "`content` must be a string or a list of parts.")
}

/// Refuses a text that is neither a string nor a list.
pub(crate) fn no_text(name: &str, kind: Kind) -> Result<(), BadRequest> {
    if matches!(kind, Kind::String | Kind::Array | Kind::Null) {
        return Ok(());
    }
    let message = format!("`{name}` must be a string or a list of parts.");
    Err(BadRequest::at(name, message))
}

impl FamilyTurns {
    /// Refuses what cannot be a message. `role` may have escapes: nearly none has, so it is compared as it is written first.
    pub(crate) fn turn(
        &self,
        role: &str,
        kind: &str,
        content: Option<Kind>,
        has_id: bool,
    ) -> Result<(), BadRequest> {
        // The type of a reference may be left out.
        let is_bare = kind.is_empty() && role.is_empty() && content.is_none();
        if self.items && (kind == "item_reference" || is_bare && has_id) {
            return Err(BadRequest::at("type", ITEM_REFERENCE).with(Remedy::Off("store")));
        }
        // Only messages have roles; calls and their results are items with a type.
        if self.items && !matches!(kind, "" | "message") {
            return Ok(());
        }
        if role.is_empty() {
            let message = "a message needs its `role`: send \"user\" for words of your own.";
            return Err(BadRequest::at("role", message));
        }
        let is_one_of = |list: &[&str]| list.contains(&role) || list.contains(&&*unescape(role));
        if !self.roles.is_empty() && !is_one_of(self.roles) {
            let known = self.roles.join("\", \"");
            let message = format!("`role` must be one of \"{known}\".");
            return Err(BadRequest::at("role", message));
        }
        match content {
            Some(Kind::String | Kind::Array) => Ok(()),
            None | Some(Kind::Null) if is_one_of(self.silent) => Ok(()),
            _ => Err(no_content("content")),
        }
    }

    /// Refuses what cannot be a part of a message.
    pub(crate) fn part(&self, kind: &str, text: Option<Kind>) -> Result<(), BadRequest> {
        if kind.is_empty() {
            let message = "a part of a message needs its `type`.";
            return Err(BadRequest::at("type", message));
        }
        if self.foreign.contains(&kind) {
            let message = format!("`{kind}` is no part of a message on this path, but on another.");
            return Err(BadRequest::at("type", message));
        }
        let is_text = matches!(kind, "text" | "input_text" | "output_text");
        if is_text && text != Some(Kind::String) {
            return Err(BadRequest::at("text", "`text` must be a string."));
        }
        Ok(())
    }
}
