//! Inspects a responses request.
//!
//! Three tables list the refused fields, the fields that pass, and the tools; the gateway itself needs the fields below them. A
//! field in no table is unknown.

use super::client_tools::{APPLY_PATCH, COMPUTER, COMPUTER_PREVIEW, LOCAL_SHELL, SHELL};
use crate::cache;
use crate::class;
use crate::fields::{self, FieldRule, Free, HOST, LATER, MEDIA, MODEL, SERVER_TOOL, STATE, TIER};
use crate::json::Cursor;
use crate::limits::limit;
use crate::requests::FamilyFields;
use crate::tools::{ToolFate, ToolRow};
use crate::turns::{self, FamilyTurns};
use crate::walk::{self, Verdict, options, text};
use crate::{BadRequest, Inspection};

/// Fields that buy something other than tokens of the slug: refused, unless their value is free.
#[rustfmt::skip]
const REFUSED: &[FieldRule] = &[
    ("preset",               Free::Nothing,                     MODEL),
    ("custom_llm_provider",  Free::Nothing,                     HOST),
    ("speed",                Free::Words(&["standard"]),        TIER),
    ("access_programs",      Free::Nothing,                     TIER),
    ("moderation",           Free::Absent,                      MODEL),
    ("previous_response_id", Free::Nothing,                     STATE),
    ("conversation",         Free::Absent,                      STATE),
    ("background",           Free::Off,                         LATER),
    ("prompt",               Free::Absent,                      STATE),
    ("context_management",   Free::Nothing,                     COMPACTION),
    ("web_search_options",   Free::Absent,                      SERVER_TOOL),
    ("search_parameters",    Free::Absent,                      SERVER_TOOL),
    ("modalities",           Free::Lists(&["text"]),            MEDIA),
    ("audio",                Free::Absent,                      MEDIA),
];

/// The provider reads the whole conversation once more, and this family's usage does not say so.
const COMPACTION: &str = "a compaction by the provider has no price here";

/// Fields that pass untouched.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "text", "temperature", "top_p", "top_logprobs", "max_tool_calls", "parallel_tool_calls", "include",
    "truncation", "stream_options", "metadata", "client_metadata", "user", "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention",
];

/// Members of `reasoning` that pass untouched.
const REASONING: &[FieldRule] = &[("mode", Free::Words(&["auto", "standard"]), TIER)];

/// What is a message here.
#[rustfmt::skip]
const TURNS: FamilyTurns = FamilyTurns {
    roles: &["user", "assistant", "system", "developer"],
    silent: &[],
    items: true,
    foreign: &[
        "text", "image_url", "file", "image", "document", "search_result", "tool_use", "tool_result", "thinking",
        "redacted_thinking",
    ],
};

/// Types of tools. A tool search only picks among the tools that were sent and costs nothing but tokens.
#[rustfmt::skip]
const TOOLS: &[ToolRow] = &[
    ("function",             ToolFate::Named),
    ("custom",               ToolFate::Named),
    ("namespace",            ToolFate::Passes),
    ("local_shell",          ToolFate::Told(&LOCAL_SHELL.told)),
    ("shell",                ToolFate::Local(&SHELL.told)),
    ("apply_patch",          ToolFate::Told(&APPLY_PATCH.told)),
    ("computer",             ToolFate::Told(&COMPUTER.told)),
    ("computer_use_preview", ToolFate::Told(&COMPUTER_PREVIEW.told)),
    ("tool_search",          ToolFate::Passes),
    ("web_search",           ToolFate::Search),
    ("web_search_*",         ToolFate::Search),
];

/// What its requests have.
static FIELDS: FamilyFields = FamilyFields {
    conversation: "input",
    empty: "`input` must be a text or a list with at least one item.",
    refused: REFUSED,
    known: KNOWN,
    classes: class::RESPONSES,
    tools: TOOLS,
    turns: TURNS,
};

pub(super) fn inspect(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    let mut seen = FIELDS.inspect(body, seed, field)?;
    seen.may_refer |= seen.places.store.is_none();
    // An item of `input` may ask for reasoning that `reasoning` turns off.
    seen.thinking.off &= !seen.thinking.hidden;
    Ok(seen)
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Option<Verdict>, BadRequest> {
    match name {
        "instructions" => {
            turns::no_text(name, cursor.peek()?)?;
            text(cursor, seen)?;
        }
        "max_output_tokens" => limit("max_output_tokens", cursor, seen)?,
        "text" => walk::form(cursor, seen)?,
        "reasoning" => reasoning(cursor, seen)?,
        "prompt_cache_options" => cache::lifetime_options(cursor, seen)?,
        "store" => {
            let value = cursor.skip()?.span;
            seen.may_refer = cursor.slice(value.clone()) != "false";
            seen.places.store = Some(value);
        }
        "usage" => return walk::cost_wish(cursor, seen).map(Some),
        _ => return Ok(None),
    }
    Ok(Some(Verdict::Stays))
}

/// A stream shows summaries of reasoning at best. Any mode except the standard one is a different service.
fn reasoning(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let mut none = false;
    let given = options("reasoning", cursor, |name, cursor| match name {
        "mode" => fields::check(REASONING, name, cursor).map(drop),
        "effort" => {
            none = walk::word(cursor)? == "none";
            Ok(())
        }
        _ => Ok(cursor.skip().map(drop)?),
    })?;
    seen.thinking.off = none;
    seen.thinking.hidden |= given && !none;
    Ok(())
}
