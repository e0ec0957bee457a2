//! Inspects a messages request.
//!
//! Three tables list the refused fields, the fields that pass, and the tools; the gateway itself needs the fields below them. A
//! field in no table is unknown.

use std::borrow::Cow;

use crate::cache;
use crate::class;
use crate::content;
use crate::fields::{FieldRule, Free, STATE, THREAD, TIER};
use crate::json::{Cursor, Kind};
use crate::limits::{limit_or_none, positive};
use crate::requests::FamilyFields;
use crate::tools::{ToolFate, ToolRow};
use crate::translate::tree::JsonNode;
use crate::turns::{self, FamilyTurns, Level};
use crate::walk::{self, Verdict, options, text};
use crate::{BadRequest, Inspection};

/// Fields that buy something other than tokens of the slug: refused, unless their value is free.
#[rustfmt::skip]
const REFUSED: &[FieldRule] = &[
    ("billing_policy",      Free::Nothing,                                      TIER),
    (THREAD,                Free::Absent,                                       STATE),
];

/// Fields that pass untouched.
const KNOWN: &[&str] = &[
    "metadata",
    "temperature",
    "top_p",
    "top_k",
    "compaction",
    "safeguards",
];

/// The upstream compacts from this many input tokens on, if the request names no other number.
const COMPACTS_FROM: u64 = 150_000;
/// A longer `context_management` is not read.
const LONGEST_MANAGEMENT: usize = 16 * 1024;

/// What is a message here.
#[rustfmt::skip]
const TURNS: FamilyTurns = FamilyTurns {
    roles: &["user", "assistant", "system"],
    silent: &[],
    items: false,
    foreign: &[
        "input_text", "output_text", "input_image", "input_file", "image_url", "input_audio", "file", "refusal",
    ],
};

/// Types of tools. A tool search only picks among the tools that were sent and costs nothing but tokens.
#[rustfmt::skip]
const TOOLS: &[ToolRow] = &[
    ("",                    ToolFate::Described),
    ("custom",              ToolFate::Described),
    ("bash_*",              ToolFate::Passes),
    ("text_editor_*",       ToolFate::Passes),
    ("computer_*",          ToolFate::Passes),
    ("browser_toolset_*",   ToolFate::Passes),
    ("memory_*",            ToolFate::Passes),
    ("tool_search_tool_*",  ToolFate::Passes),
    ("web_search",          ToolFate::Search),
    ("web_search_*",        ToolFate::Search),
];

/// What its requests have.
static FIELDS: FamilyFields = FamilyFields {
    conversation: "messages",
    empty: "`messages` must be a list with at least one message.",
    refused: REFUSED,
    known: KNOWN,
    classes: class::MESSAGES,
    tools: TOOLS,
    turns: TURNS,
};

pub(super) fn inspect(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    let seen = inspect_count(body, seed)?;
    if seen.limit.is_none() {
        return Err(BadRequest::at(
            "max_tokens",
            "`max_tokens` is required: send the most tokens the answer may have.",
        ));
    }
    Ok(seen)
}

pub(super) fn inspect_count(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    let mut seen = FIELDS.inspect(body, seed, field)?;
    // This family thinks only when it is asked to.
    seen.thinking.off = !seen.thinking.hidden;
    Ok(seen)
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Option<Verdict>, BadRequest> {
    match name {
        "system" => {
            turns::no_text(name, cursor.peek()?)?;
            content::content(cursor, &mut FIELDS.out(seen), Level::Part)
                .map_err(|bad| bad.within(name))?;
        }
        "max_tokens" => limit_or_none("max_tokens", cursor, seen)?,
        "thinking" => thinking(cursor, seen)?,
        "output_config" | "output_format" => {
            seen.places.effort |= name == "output_config";
            walk::form(cursor, seen)?;
        }
        "context_management" => {
            let start = cursor.at();
            text(cursor, seen)?;
            seen.compacts_from = compacts_from(cursor.slice(start..cursor.at()));
        }
        "cache_control" => cache::control(cursor.at(), cursor, seen)?,
        "stop_sequences" => return walk::stops(cursor, seen).map(Some),
        _ => return Ok(None),
    }
    Ok(Some(Verdict::Stays))
}

/// From how many input tokens on the upstream compacts the conversation: it then reads all of it once more, for the summary.
fn compacts_from(management: &str) -> Option<u64> {
    if management.len() > LONGEST_MANAGEMENT {
        return Some(0);
    }
    let management = JsonNode::parse(management.as_bytes()).ok()?;
    let edits = management
        .get("edits")
        .elements()
        .filter(|edit| edit.get("type").word().starts_with("compact_"));
    edits
        .map(|edit| {
            edit.get("trigger")
                .get("value")
                .raw
                .parse()
                .unwrap_or(COMPACTS_FROM)
        })
        .min()
}

/// A stream shows a summary of thinking at best, and often nothing.
fn thinking(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let mut kind = Cow::Borrowed("");
    let mut budget = None;
    cursor.peek()?;
    let start = cursor.at();
    options("thinking", cursor, |name, cursor| {
        let value = cursor.skip()?;
        match name {
            "type" => kind = cursor.text_of(&value).unwrap_or_default(),
            "budget_tokens" if value.kind != Kind::Null => budget = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    if let Some(budget) = budget.filter(|_| kind == "enabled") {
        let tokens = positive("budget_tokens", cursor, &budget).map_err(|bad| BadRequest {
            // This family wants one wherever thinking is on.
            remedy: None,
            ..bad.within("thinking")
        })?;
        seen.thinking_budget = Some(tokens);
    }
    if kind == "disabled" {
        seen.places.thinking = Some(start..cursor.at());
    }
    seen.thinking.hidden = !matches!(kind.as_ref(), "" | "disabled");
    Ok(())
}
