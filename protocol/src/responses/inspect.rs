//! Inspects a responses request.
//!
//! Three tables list the refused fields, the fields that pass, and the tools; the gateway itself needs the fields below them. A
//! field in no table is unknown.

use super::client_tools::{APPLY_PATCH, COMPUTER, COMPUTER_PREVIEW, LOCAL_SHELL, SHELL};
use crate::cache;
use crate::class;
use crate::class_fields;
use crate::content::{self, Out};
use crate::conversation::SESSION;
use crate::fields::{self, FieldRule, Free, HOST, LATER, MEDIA, MODEL, SERVER_TOOL, STATE, TIER};
use crate::json::Cursor;
use crate::limits::limit;
use crate::tools::{ToolFate, ToolRow, Tools};
use crate::turns::{self, FamilyTurns};
use crate::walk::{self, RequestWalk, Verdict, flag, options, text};
use crate::{BadRequest, Inspection};

/// Fields that buy something other than tokens of the slug: refused, unless their value is free.
#[rustfmt::skip]
const REFUSED: &[FieldRule] = &[
    ("models",               Free::Nothing,                     MODEL),
    ("route",                Free::Nothing,                     MODEL),
    ("fallbacks",            Free::Nothing,                     MODEL),
    ("preset",               Free::Nothing,                     MODEL),
    ("provider",             Free::Nothing,                     HOST),
    ("api_base",             Free::Nothing,                     HOST),
    ("base_url",             Free::Nothing,                     HOST),
    ("api_key",              Free::Nothing,                     HOST),
    ("custom_llm_provider",  Free::Nothing,                     HOST),
    ("speed",                Free::Words(&["standard"]),        TIER),
    ("access_programs",      Free::Nothing,                     TIER),
    ("moderation",           Free::Absent,                      MODEL),
    ("previous_response_id", Free::Nothing,                     STATE),
    ("conversation",         Free::Absent,                      STATE),
    ("background",           Free::Off,                         LATER),
    ("prompt",               Free::Absent,                      STATE),
    ("context_management",   Free::Nothing,                     COMPACTION),
    ("file_id",              Free::Nothing,                     STATE),
    ("file_ids",             Free::Nothing,                     STATE),
    ("plugins",              Free::Nothing,                     SERVER_TOOL),
    ("web_search_options",   Free::Absent,                      SERVER_TOOL),
    ("search_parameters",    Free::Absent,                      SERVER_TOOL),
    ("mcp_servers",          Free::Nothing,                     SERVER_TOOL),
    ("container",            Free::Absent,                      SERVER_TOOL),
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

pub(super) fn inspect(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    let mut tools = Tools::default();
    let mut request = RequestWalk::walk(body, seed, |name, cursor, seen| {
        field(name, cursor, seen, &mut tools)
    })?;
    walk::need_model(&request.seen)?;
    if request.seen.content.messages == 0 {
        return Err(BadRequest::at(
            "input",
            "`input` must be a text or a list with at least one item.",
        ));
    }
    request.seen.may_refer |= request.seen.places.store.is_none();
    // An item of `input` may ask for reasoning that `reasoning` turns off.
    request.seen.thinking.off &= !request.seen.thinking.hidden;
    tools.finish(&mut request);
    Ok(request.finish())
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    tools: &mut Tools,
) -> Result<Verdict, BadRequest> {
    match name {
        "model" => walk::model(cursor, seen)?,
        "input" => content::messages(
            name,
            cursor,
            &mut Out {
                seen,
                tools: TOOLS,
                turns: &TURNS,
            },
        )?,
        "instructions" => {
            turns::no_text(name, cursor.peek()?)?;
            text(cursor, seen)?;
        }
        "stream" => seen.stream = flag(name, cursor)?,
        "max_output_tokens" => limit("max_output_tokens", cursor, seen)?,
        "tools" => tools.walk(TOOLS, cursor, seen)?,
        "tool_choice" => tools.choice(cursor, seen)?,
        "text" => walk::form(cursor, seen)?,
        "reasoning" => reasoning(cursor, seen)?,
        "prompt_cache_options" => cache::lifetime_options(cursor, seen)?,
        "store" => {
            let value = cursor.skip()?.span;
            seen.may_refer = cursor.slice(value.clone()) != "false";
            seen.places.store = Some(value);
        }
        "usage" => return walk::cost_wish(cursor, seen),
        SESSION => return walk::ours(cursor),
        _ => {
            if let Some(verdict) = class_fields::ask(class::RESPONSES, name, cursor, seen)? {
                return Ok(verdict);
            }
            return match fields::check(REFUSED, name, cursor)? {
                Some(verdict) => Ok(verdict),
                None => walk::known(name, KNOWN, cursor, seen),
            };
        }
    }
    Ok(Verdict::Stays)
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
