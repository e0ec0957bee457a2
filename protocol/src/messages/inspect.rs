//! Inspects a messages request.
//!
//! Three tables list the refused fields, the fields that pass, and the tools; the gateway itself needs the fields below them. A
//! field in no table is unknown.

use std::borrow::Cow;

use crate::cache;
use crate::class;
use crate::class_fields;
use crate::content::{self, Out};
use crate::conversation::SESSION;
use crate::fields::{self, FieldRule, Free, HOST, MODEL, SERVER_TOOL, STATE, THREAD, TIER};
use crate::json::{Cursor, Kind};
use crate::limits::{limit_or_none, positive};
use crate::tools::{ToolFate, ToolRow, Tools};
use crate::translate::tree::JsonNode;
use crate::turns::{self, FamilyTurns, Level};
use crate::walk::{self, RequestWalk, Verdict, flag, options, text};
use crate::{BadRequest, Inspection};

/// Fields that buy something other than tokens of the slug: refused, unless their value is free.
#[rustfmt::skip]
const REFUSED: &[FieldRule] = &[
    ("models",              Free::Nothing,                                      MODEL),
    ("route",               Free::Nothing,                                      MODEL),
    ("fallbacks",           Free::Nothing,                                      MODEL),
    ("provider",            Free::Nothing,                                      HOST),
    ("api_base",            Free::Nothing,                                      HOST),
    ("base_url",            Free::Nothing,                                      HOST),
    ("api_key",             Free::Nothing,                                      HOST),
    ("billing_policy",      Free::Nothing,                                      TIER),
    (THREAD,                Free::Absent,                                       STATE),
    ("plugins",             Free::Nothing,                                      SERVER_TOOL),
    ("mcp_servers",         Free::Nothing,                                      SERVER_TOOL),
    ("container",           Free::Absent,                                       SERVER_TOOL),
    ("file_id",             Free::Nothing,                                      STATE),
    ("file_ids",            Free::Nothing,                                      STATE),
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
    let mut tools = Tools::default();
    let mut request = RequestWalk::walk(body, seed, |name, cursor, seen| {
        field(name, cursor, seen, &mut tools)
    })?;
    walk::need_model(&request.seen)?;
    if request.seen.content.messages == 0 {
        return Err(BadRequest::at(
            "messages",
            "`messages` must be a list with at least one message.",
        ));
    }
    tools.finish(&mut request);
    let mut seen = request.finish();
    // This family thinks only when it is asked to.
    seen.thinking.off = !seen.thinking.hidden;
    Ok(seen)
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    tools: &mut Tools,
) -> Result<Verdict, BadRequest> {
    match name {
        "model" => walk::model(cursor, seen)?,
        "messages" if cursor.peek()? == Kind::String => {
            return Err(BadRequest::at(
                name,
                "`messages` must be a list with at least one message.",
            ));
        }
        "messages" => content::messages(
            name,
            cursor,
            &mut Out {
                seen,
                tools: TOOLS,
                turns: &TURNS,
            },
        )?,
        "system" => {
            turns::no_text(name, cursor.peek()?)?;
            content::content(
                cursor,
                &mut Out {
                    seen,
                    tools: TOOLS,
                    turns: &TURNS,
                },
                Level::Part,
            )
            .map_err(|bad| bad.within(name))?;
        }
        "stream" => seen.stream = flag(name, cursor)?,
        "max_tokens" => limit_or_none("max_tokens", cursor, seen)?,
        "thinking" => thinking(cursor, seen)?,
        "tools" => tools.walk(TOOLS, cursor, seen)?,
        "tool_choice" => tools.choice(cursor, seen)?,
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
        "stop_sequences" => return walk::stops(cursor, seen),
        SESSION => return walk::ours(cursor),
        _ => {
            if let Some(verdict) = class_fields::ask(class::MESSAGES, name, cursor, seen)? {
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
