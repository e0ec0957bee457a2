//! A body as a tree of spans: one walk, and no text is unescaped or copied.
//!
//! Schemas and tool inputs stay one span ([`OPAQUE`]): they are copied unchanged and never parsed. Must not know any family.

use std::borrow::Cow;

use super::text::Escaped;
use crate::BadRequest;
use crate::json::{Cursor, JsonError, Kind, unescape};

/// Members whose objects are passed on as a whole and never walked.
// A walk would cost a node for each word of a schema, and writing it again could change its bytes, which would miss the
// vendor's prompt cache.
const OPAQUE: &[&str] = &["input_schema", "parameters", "schema", "input", "arguments"];

/// Most values of a request: a long conversation of a coding client has about 20,000. Each takes a hundred times the two bytes that
/// it may have in the body.
// A body of the largest size made of `{}` would otherwise take gigabytes; ten times fewer would refuse long agent sessions.
const MOST_VALUES: usize = 100_000;

/// One value.
#[derive(Debug, Clone)]
pub(crate) struct JsonNode<'a> {
    /// Its bytes, quotes or braces included.
    pub(crate) raw: &'a str,
    pub(crate) kind: Kind,
    children: Vec<(Cow<'a, str>, JsonNode<'a>)>,
}

/// The value of a missing member.
pub(crate) static MISSING: JsonNode<'static> = JsonNode {
    raw: "null",
    kind: Kind::Null,
    children: Vec::new(),
};

impl<'a> JsonNode<'a> {
    /// The tree of a customer's request, which is larger than its text and therefore limited.
    pub(crate) fn of_request(bytes: &'a [u8]) -> Result<Self, BadRequest> {
        let mut left = MOST_VALUES;
        let tree = Self::within(bytes, &mut left);
        if left == 0 {
            return Err(BadRequest {
                code: Some("unsupported_by_model"),
                ..BadRequest::new(format!(
                    "The request has {MOST_VALUES} JSON values or more, too many for this model, which is served by translation. \
                     Send fewer and longer parts, or use another model."
                ))
            });
        }
        Ok(tree?)
    }

    /// The tree of an upstream's text.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        Self::within(bytes, &mut { usize::MAX })
    }

    /// The tree of a whole text with fewer than `left` values; `left` is 0 afterwards if it has more.
    fn within(bytes: &'a [u8], left: &mut usize) -> Result<Self, JsonError> {
        // A request was inspected before, and is not deeper than requests may be.
        let mut cursor = Cursor::of_answer(bytes)?;
        let node = Self::at(&mut cursor, false, left)?;
        cursor.end()?;
        Ok(node)
    }

    fn at(cursor: &mut Cursor<'a>, opaque: bool, left: &mut usize) -> Result<Self, JsonError> {
        let kind = cursor.peek()?;
        let start = cursor.at();
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Err(JsonError {
                what: "too many values",
                at: start,
            });
        }
        let mut children = Vec::new();
        match kind {
            Kind::Object if !opaque => {
                let mut walk = cursor.enter_object()?;
                while let Some(key) = cursor.member(&mut walk)? {
                    let opaque = OPAQUE.contains(&key.name.as_ref());
                    children.push((key.name, Self::at(cursor, opaque, left)?));
                }
            }
            Kind::Array => {
                let mut walk = cursor.enter_array()?;
                while cursor.element(&mut walk)? {
                    children.push((Cow::Borrowed(""), Self::at(cursor, false, left)?));
                }
            }
            _ => {
                return cursor.skip().map(|value| Self {
                    raw: cursor.slice(value.span),
                    kind,
                    children,
                });
            }
        }
        Ok(Self {
            raw: cursor.slice(start..cursor.at()),
            kind,
            children,
        })
    }

    /// An object's members, in order; none for another value.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = if self.kind == Kind::Object {
            self.children.as_slice()
        } else {
            &[]
        };
        members.iter().map(|(name, node)| (name.as_ref(), node))
    }

    /// A list's elements; none for another value.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Self> {
        let elements = if self.kind == Kind::Array {
            self.children.as_slice()
        } else {
            &[]
        };
        elements.iter().map(|(_, node)| node)
    }

    /// A member of an object; [`MISSING`] if there is none. If a name occurs twice, the last one counts, as in every parser.
    pub(crate) fn get(&self, name: &str) -> &Self {
        let found = self
            .children
            .iter()
            .rev()
            .find(|(key, _)| self.kind == Kind::Object && key == name);
        found.map_or(&MISSING, |(_, node)| node)
    }

    /// The raw text between a string's quotes.
    pub(crate) fn text(&self) -> Option<Escaped<'a>> {
        Some(Escaped::raw(self.inner()?))
    }

    /// A string, unescaped.
    pub(crate) fn plain(&self) -> Option<Cow<'a, str>> {
        self.inner().map(unescape)
    }

    /// The raw text between a string's quotes, for comparing with known words; empty for any other value.
    pub(crate) fn word(&self) -> &'a str {
        self.inner().unwrap_or_default()
    }

    fn inner(&self) -> Option<&'a str> {
        (self.kind == Kind::String)
            .then(|| self.raw.get(1..self.raw.len().saturating_sub(1)))
            .flatten()
    }

    pub(crate) fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Whether this is the literal `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.raw == "true"
    }

    /// `true` or `false`, when it is one of them.
    pub(crate) fn flag(&self) -> Option<bool> {
        (self.kind == Kind::Bool).then(|| self.is_true())
    }

    /// A count that fits.
    pub(crate) fn count(&self) -> Option<u32> {
        if self.kind == Kind::Number {
            self.raw.parse().ok()
        } else {
            None
        }
    }

    /// The bytes of a number.
    pub(crate) fn number(&self) -> Option<&'a str> {
        (self.kind == Kind::Number).then_some(self.raw)
    }

    /// The bytes of an object.
    pub(crate) fn object(&self) -> Option<&'a str> {
        (self.kind == Kind::Object).then_some(self.raw)
    }

    /// Whether it is empty: `null`, `false`, an empty string, list or object.
    pub(crate) fn is_empty(&self) -> bool {
        match self.kind {
            Kind::Null => true,
            Kind::Bool => self.raw == "false",
            Kind::String => self.raw.len() == 2,
            Kind::Array => self.children.is_empty(),
            // Its text tells: one that is passed on as a whole has no children here.
            Kind::Object => self.raw.trim_matches(['{', '}']).trim_ascii().is_empty(),
            Kind::Number => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_tiny_values_is_refused_and_one_long_text_is_not() {
        let request = |parts: usize| format!(r#"{{"messages":[{}{{}}]}}"#, "{},".repeat(parts));
        // The object and the list are values too.
        assert_eq!(
            JsonNode::of_request(request(MOST_VALUES - 4).as_bytes())
                .unwrap()
                .members()
                .count(),
            1
        );
        for parts in [MOST_VALUES - 3, MOST_VALUES * 3] {
            let refused = JsonNode::of_request(request(parts).as_bytes()).unwrap_err();
            assert_eq!(refused.code, Some("unsupported_by_model"));
            assert!(
                refused.message.contains("too many for this model"),
                "{}",
                refused.message
            );
        }
        // A schema is one value.
        let schema = format!(r#"{{"tools":[{{"parameters":{}}}]}}"#, request(MOST_VALUES));
        assert!(JsonNode::of_request(schema.as_bytes()).is_ok());
        assert!(
            JsonNode::of_request(format!(r#"{{"x":"{}"}}"#, "long ".repeat(1_000_000)).as_bytes())
                .is_ok()
        );
    }
}
