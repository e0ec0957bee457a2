//! Call ids and tool names in the form that a target accepts.
//!
//! Pure functions of the text alone: a call and its result agree without a table, and so do this turn and the next.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::abilities::ToolIds;
use super::neutral::{NeutralTool, ToolKind};
use super::text::Escaped;
use crate::{BadRequest, Family};

/// Longest tool name that every server accepts.
// The smallest limit among the vendors. Their own limits would need a rule each and would give a tool another name at each
// target, which breaks a prompt cache when a route changes its target.
const MAX_NAME: usize = 64;

/// The call id in the form the target accepts: unchanged if it fits.
pub(crate) fn call_id<'i>(id: &'i str, target: Family, ids: ToolIds) -> Cow<'i, str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = match (target, ids) {
        // Some servers reject any other length; the rest are the limits that the families' own vendors enforce.
        (_, ToolIds::Nine) => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        (Family::Messages, _) => id.len() <= 64 && id.bytes().all(word),
        (Family::Chat, _) => id.len() <= 40 && id.bytes().all(|byte| byte.is_ascii_graphic()),
        (Family::Responses, _) => id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_graphic()),
    };
    match ids {
        _ if fits && !id.is_empty() => Cow::Borrowed(id),
        ToolIds::Nine => Cow::Owned(base32(&[id], 9)),
        ToolIds::Any => Cow::Owned(made_id(&[id])),
    }
}

/// An id derived from other facts.
pub(crate) fn made_id(facts: &[&str]) -> String {
    format!("fb_{}", base32(facts, 26))
}

fn digest(facts: &[&str]) -> impl AsRef<[u8]> + use<> {
    let mut hash = Sha256::new();
    for fact in facts {
        // With the length in front, two lists of facts cannot join to the same bytes.
        hash.update((fact.len() as u64).to_be_bytes());
        hash.update(fact.as_bytes());
    }
    hash.finalize()
}

fn base32(facts: &[&str], length: usize) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    digest(facts)
        .as_ref()
        .iter()
        .filter_map(|byte| DIGITS.get(usize::from(byte & 31)))
        .take(length)
        .map(|digit| char::from(*digit))
        .collect()
}

/// The hexadecimal hash of a text, `length` digits of it.
pub(crate) fn hex(text: &str, length: usize) -> String {
    let mut out = hex::encode(digest(&[text]));
    out.truncate(length);
    out
}

/// A tool name that every target accepts: prefixed with its namespace; names that are too long or have unusual characters are
/// hashed.
pub(crate) fn tool_name<'n>(namespace: Option<&str>, name: &'n str) -> Cow<'n, str> {
    let whole = namespace.map_or(Cow::Borrowed(name), |space| {
        Cow::Owned(format!("{space}__{name}"))
    });
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !whole.is_empty() && whole.len() <= MAX_NAME && whole.chars().all(good) {
        return whole;
    }
    let head: String = whole
        .chars()
        .map(|c| if good(c) { c } else { '_' })
        // 55 + `_` + 8 digits of the hash are the 64 that are allowed: names that differ only behind their 55th character stay
        // apart.
        .take(55)
        .collect();
    Cow::Owned(format!("{head}_{}", hex(&whole, 8)))
}

/// What a request's encoder leaves for its answer's encoder: the tools as the caller declared them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memo {
    tools: Vec<Declared>,
    /// The tools were declared in chat's older form, in which an answer has one `function_call`.
    pub(crate) old_functions: bool,
    /// Where the answer is cut, because its target knows no stop strings.
    pub(crate) stops: Vec<String>,
}

/// A tool as the caller declared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The name the upstream knows.
    pub encoded: String,
    /// The caller's name.
    pub name: String,
    /// The caller's namespace.
    pub namespace: Option<String>,
    /// How the caller expects it to be called.
    pub kind: ToolKind,
}

impl Memo {
    /// The tools of a request.
    ///
    /// # Errors
    /// Two tools have the same name for the target.
    pub(crate) fn of(tools: &[NeutralTool<'_>]) -> Result<Self, BadRequest> {
        let mut memo = Self::default();
        let mut seen = std::collections::HashMap::new();
        for tool in tools {
            let encoded = tool_name(tool.namespace.as_deref(), &tool.name).into_owned();
            // The model's call could not be told from a call of the other, and the caller would run the wrong tool.
            if let Some(first) = seen.insert(encoded.clone(), shown(tool)) {
                return Err(BadRequest {
                    code: Some("unsupported_by_model"),
                    ..BadRequest::at(
                        "tools",
                        format!(
                            "The tools `{first}` and `{}` have the same name `{encoded}` for this model. Rename one of them.",
                            shown(tool)
                        ),
                    )
                });
            }
            let namespace = tool.namespace.as_deref().map(str::to_owned);
            memo.tools.push(Declared {
                encoded,
                name: tool.name.to_string(),
                namespace,
                kind: tool.kind,
            });
        }
        Ok(memo)
    }

    /// Has the answer cut at these stop strings; `false` if there are none.
    pub(crate) fn stop_here(&mut self, stops: &[Escaped<'_>]) -> bool {
        self.stops = stops
            .iter()
            .map(|stop| stop.plain().into_owned())
            .filter(|stop| !stop.is_empty())
            .collect();
        !self.stops.is_empty()
    }

    /// The tool that the upstream calls by this name; `None` if it was not declared.
    pub fn declared(&self, encoded: &str) -> Option<&Declared> {
        self.tools.iter().find(|tool| tool.encoded == encoded)
    }
}

fn shown(tool: &NeutralTool<'_>) -> String {
    match &tool.namespace {
        Some(space) => format!("{space}.{}", tool.name),
        None => tool.name.to_string(),
    }
}
