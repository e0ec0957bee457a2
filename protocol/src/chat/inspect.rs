//! Inspects a chat request.
//!
//! Three tables list the refused fields, the fields that pass, and the tools; the gateway itself needs the fields below them. A
//! field in no table is unknown.

use crate::cache;
use crate::class;
use crate::fields::{FieldRule, Free, HOST, MEDIA, MODEL, SERVER_TOOL, TIER};
use crate::json::{Cursor, Kind};
use crate::limits::{limit, positive};
use crate::requests::FamilyFields;
use crate::tools::{ToolFate, ToolRow};
use crate::turns::FamilyTurns;
use crate::walk::{self, Verdict, flag, options};
use crate::{BadRequest, Inspection, Remedy};

/// The most answers that one request may ask for.
const MAX_CHOICES: u32 = 128;

/// Fields that buy something other than tokens of the slug: refused, unless their value is free.
#[rustfmt::skip]
const REFUSED: &[FieldRule] = &[
    ("preset",              Free::Nothing,                      MODEL),
    ("custom_llm_provider", Free::Nothing,                      HOST),
    ("speed",               Free::Words(&["standard"]),         TIER),
    ("moderation",          Free::Absent,                       MODEL),
    ("best_of",             Free::Nothing,                      "answers that are not shown have no price here; use `n`"),
    ("prompt",              Free::Absent,                       "the conversation goes in `messages`"),
    ("web_search_options",  Free::Absent,                       SERVER_TOOL),
    ("search_parameters",   Free::Absent,                       SERVER_TOOL),
    ("enable_search",       Free::Off,                          SERVER_TOOL),
    ("modalities",          Free::Lists(&["text"]),             MEDIA),
    ("audio",               Free::Absent,                       MEDIA),
];

/// Fields that pass untouched.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "temperature", "top_p", "logit_bias", "logprobs", "top_logprobs", "seed",
    "functions", "function_call", "parallel_tool_calls", "response_format", "verbosity", "user",
    "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
];

/// What is a message here. Templates of local models have roles of their own; an assistant that calls tools, and a legacy function,
/// may say nothing.
#[rustfmt::skip]
const TURNS: FamilyTurns = FamilyTurns {
    roles: &[],
    silent: &["assistant", "function"],
    items: false,
    foreign: &[
        "input_text", "output_text", "input_image", "input_file", "image", "document", "search_result", "tool_use", "tool_result",
        "redacted_thinking",
    ],
};

/// Types of tools.
#[rustfmt::skip]
const TOOLS: &[ToolRow] = &[
    ("function",            ToolFate::Nested),
    ("custom",              ToolFate::Nested),
    ("namespace",           ToolFate::Passes),
    ("web_search",          ToolFate::Search),
    ("web_search_*",        ToolFate::Search),
];

/// What its requests have.
static FIELDS: FamilyFields = FamilyFields {
    conversation: "messages",
    empty: "`messages` must be a list with at least one message.",
    refused: REFUSED,
    known: KNOWN,
    classes: class::CHAT,
    tools: TOOLS,
    turns: TURNS,
};

pub(super) fn inspect(body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
    FIELDS.inspect(body, seed, field)
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
) -> Result<Option<Verdict>, BadRequest> {
    match name {
        "stream_options" => stream_options(cursor, seen)?,
        "max_tokens" => limit("max_tokens", cursor, seen)?,
        "max_completion_tokens" => limit("max_completion_tokens", cursor, seen)?,
        "n" => choices(cursor, seen)?,
        "prediction" => prediction(cursor, seen)?,
        "response_format" => walk::form(cursor, seen)?,
        "reasoning_effort" => reasoning(cursor, seen, true)?,
        "reasoning" => reasoning(cursor, seen, false)?,
        "prompt_cache_options" => cache::lifetime_options(cursor, seen)?,
        "store" => seen.places.store = Some(cursor.skip()?.span),
        "cache_control" => cache::control(cursor.at(), cursor, seen)?,
        "usage" => return walk::cost_wish(cursor, seen).map(Some),
        "stop" => return walk::stops(cursor, seen).map(Some),
        "frequency_penalty" | "presence_penalty" => return penalty(cursor, seen).map(Some),
        "metadata" => {
            walk::text(cursor, seen)?;
            return Ok(Some(Verdict::Spare));
        }
        _ => return Ok(None),
    }
    Ok(Some(Verdict::Stays))
}

fn stream_options(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    cursor.peek()?;
    let start = cursor.at();
    let mut asks = false;
    options("stream_options", cursor, |name, cursor| {
        match name {
            "include_usage" => asks = flag(name, cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    seen.asks_usage |= asks;
    seen.places.stream_options = Some(start..cursor.at());
    Ok(())
}

/// A penalty of 0 is none, and need not be said where even its name is refused.
fn penalty(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<Verdict, BadRequest> {
    if !matches!(cursor.peek()?, Kind::Number | Kind::Null) {
        walk::text(cursor, seen)?;
        return Ok(Verdict::Stays);
    }
    let value = cursor.skip()?;
    let number = cursor.slice(value.span);
    let idle = value.kind == Kind::Null || number.parse() == Ok(0.0);
    Ok(if idle { Verdict::Spare } else { Verdict::Stays })
}

fn choices(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.kind != Kind::Null {
        seen.choices = positive("n", cursor, &value)?;
    }
    if seen.choices > MAX_CHOICES {
        return Err(BadRequest::at(
            "n",
            format!("`n` must be an integer between 1 and {MAX_CHOICES}, or be left out."),
        )
        .with(Remedy::Without));
    }
    Ok(())
}

/// Samples a predicted answer. Its text counts as input too, as every string does.
fn prediction(cursor: &mut Cursor<'_>, seen: &mut Inspection) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.kind != Kind::Null {
        let text = cursor.inner(&value);
        seen.content.read(value.text_size(), text);
        seen.prediction.add(text);
    }
    Ok(())
}

/// A chat stream never shows all of a model's reasoning. Asking for none is the only sure way to have none, and only in the field
/// whose values are words: no provider reads `"reasoning": "none"`.
fn reasoning(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    words: bool,
) -> Result<(), BadRequest> {
    let value = cursor.skip()?;
    if value.kind != Kind::Null {
        match words {
            true => seen.places.effort = true,
            false => seen.places.thinking = Some(value.span.clone()),
        }
    }
    let off = words
        && cursor
            .text_of(&value)
            .is_some_and(|effort| effort == "none");
    seen.thinking.off |= off;
    seen.thinking.hidden |= !off && value.kind != Kind::Null;
    Ok(())
}
