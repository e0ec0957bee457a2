//! Calls: paid requests that are no conversation. All that a call costs is its input, so its cost is bounded before it is sent.
//!
//! A [`CallDialect`] says what differs between calls, and has nothing of a family's: no streams, no turns, no tools, no translation. The
//! rest is chat's: keys, headers, errors, and the edits to a request on its way upstream.

mod answer;
mod embeddings;
mod rerank;

use std::fmt;

use crate::json::{self, Cursor};
use crate::walk::{self, Verdict};
use crate::{Additions, AnswerFacts, BadRequest, Family, Inspection, Remedy, fields};

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Vectors of texts, `/v1/embeddings`.
    Embeddings,
    /// Documents by their fit to a query, `/v1/rerank`.
    Rerank,
}

/// What differs between calls.
pub trait CallDialect: Sync {
    /// The name used in both TOML files and in the journal; also the capability of its models.
    fn name(&self) -> &'static str;

    /// What is appended to a provider's base URL, and to `/v1` for customers.
    fn public_path(&self) -> &'static str;

    /// The facts of a request. Each text that is read for itself is one of its inputs.
    ///
    /// # Errors
    /// Not JSON, wrong types, no model, nothing to read, or a field that has no price.
    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest>;

    /// The facts of an answer that must have so many parts, in one pass over its bytes; `None` when it is not a JSON object.
    fn read_answer(
        &self,
        body: &[u8],
        parts: u32,
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts>;

    /// The smallest request.
    fn question(&self, model: &str, words: &str) -> String;

    /// The simulated provider's answer, of a token for so many characters.
    ///
    /// # Errors
    /// What is wrong with the request, for the customer.
    fn simulate(&self, body: &[u8], model: &str) -> Result<String, String>;
}

impl CallKind {
    /// All calls, in the order in which lists show them.
    pub const ALL: [Self; 2] = [Self::Embeddings, Self::Rerank];

    /// The call of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.name() == name)
    }

    /// This call's dialect.
    #[must_use]
    pub fn dialect(self) -> &'static dyn CallDialect {
        match self {
            Self::Embeddings => &embeddings::Embeddings,
            Self::Rerank => &rerank::Rerank,
        }
    }

    /// The name used in both TOML files and in the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.dialect().name()
    }

    /// The path below a provider's base URL.
    #[must_use]
    pub fn path(self) -> &'static str {
        let path = self.dialect().public_path();
        path.strip_prefix("/v1").unwrap_or(path)
    }

    /// A whole answer, already as its customer gets it, with this count instead of its target's; `cost` is a decimal literal, copied
    /// unchanged.
    pub fn with_usage(body: &[u8], input: u64, cost: Option<&str>) -> Vec<u8> {
        let counts = answer::usage_json(input, cost);
        let body = String::from_utf8_lossy(body);
        json::set_members(&body, &[("usage", &counts)]).into_bytes()
    }
}

/// Takes a field that calls have in common, or of which the model reads nothing: those that are `known` pass untouched.
fn other_field(
    name: &str,
    known: &[&str],
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Verdict, BadRequest> {
    match name {
        "model" => walk::model(cursor, seen)?,
        "usage" => return walk::cost_wish(cursor, seen),
        _ if known.contains(&name) => {
            cursor.skip()?;
        }
        _ => {
            return match fields::check(&[], name, cursor)? {
                Some(verdict) => Ok(verdict),
                None => walk::known(name, &[], cursor, seen),
            };
        }
    }
    Ok(Verdict::Stays)
}

/// The refusal of a list that is too long.
fn too_many(list: &'static str, most: u32) -> BadRequest {
    let message = format!("`{list}` must have at most {most} texts; send several requests.");
    BadRequest::at(list, message).with(Remedy::AtMost(list, most.into()))
}

/// What a model is asked for on its best path: answers of a family, or a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WirePath {
    /// A conversation.
    Family(Family),
    /// A call.
    Call(CallKind),
}

impl WirePath {
    /// All of them: the families, then the calls.
    pub fn all() -> impl Iterator<Item = Self> {
        let families = Family::ALL.map(Self::Family).into_iter();
        families.chain(CallKind::ALL.map(Self::Call))
    }

    /// Their names as both TOML files write them.
    #[must_use]
    pub fn choices() -> String {
        let quoted: Vec<String> = Self::all()
            .map(|path| format!("{:?}", path.name()))
            .collect();
        quoted.join(", ")
    }

    /// The call, if it is one.
    #[must_use]
    pub const fn call(self) -> Option<CallKind> {
        match self {
            Self::Family(_) => None,
            Self::Call(call) => Some(call),
        }
    }

    /// The family, if it is one.
    #[must_use]
    pub const fn family(self) -> Option<Family> {
        match self {
            Self::Family(family) => Some(family),
            Self::Call(_) => None,
        }
    }

    /// The name used in both TOML files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Family(family) => family.name(),
            Self::Call(call) => call.name(),
        }
    }

    /// The name that customers read.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            Self::Family(family) => family.shown(),
            Self::Call(call) => call.name(),
        }
    }

    /// What is appended to a provider's base URL.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Family(family) => family.protocol().path,
            Self::Call(call) => call.path(),
        }
    }

    /// The path that customers call below the public base URL.
    #[must_use]
    pub fn public_path(self) -> &'static str {
        match self {
            Self::Family(family) => family.protocol().public_path,
            Self::Call(call) => call.dialect().public_path(),
        }
    }
}

impl From<Family> for WirePath {
    fn from(family: Family) -> Self {
        Self::Family(family)
    }
}

impl PartialEq<Family> for WirePath {
    fn eq(&self, other: &Family) -> bool {
        self.family() == Some(*other)
    }
}

impl fmt::Display for WirePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
