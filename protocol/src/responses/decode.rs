//! Decodes a responses request into a prompt. Fields that only this family has are judged by [`FIELDS`].

use super::decode_items::input;
use super::decode_tools::{choice, tools};
use crate::json::Kind;
use crate::translate::decode::{Decoding, wrong};
use crate::translate::fates::{Fate, Row, row, silent_for_messages, unless};
use crate::translate::neutral::{Block, Effort, Format, Prompt};
use crate::translate::tree::Node;
use crate::{BadRequest, Tier};

const WHOLE: &str = "Send the whole conversation as `input`.";
const NO_LOGPROBS: &str = "Leave it out.";

/// The fate of each field.
#[rustfmt::skip]
pub(crate) const FIELDS: &[Row] = &[
    row("model",                  Fate::Converted),
    row("input",                  Fate::Converted),
    row("instructions",           Fate::Converted),
    row("max_output_tokens",      Fate::Converted),
    row("temperature",            Fate::Carried),
    row("top_p",                  Fate::Carried),
    row("stream",                 Fate::Carried),
    row("tools",                  Fate::Converted),
    row("tool_choice",            Fate::Converted),
    row("parallel_tool_calls",    Fate::Converted),
    row("reasoning",              Fate::Converted),
    row("text",                   Fate::Converted),
    silent_for_messages("prompt_cache_key"),
    row("safety_identifier",      Fate::Converted),
    row("user",                   Fate::Converted),
    row("service_tier",           Fate::Converted),
    unless("truncation",          Fate::Dropped, &["\"disabled\""]),
    row("context_management",     Fate::Dropped),
    row("max_tool_calls",         Fate::Dropped),
    row("prompt_cache_options",   Fate::Dropped),
    row("prompt_cache_retention", Fate::Dropped),
    Row { refused: Some(("\"message.output_text.logprobs\"", NO_LOGPROBS)), ..row("include", Fate::Silent) },
    row("client_metadata",        Fate::Silent),
    row("metadata",               Fate::Silent),
    row("store",                  Fate::Silent),
    row("stream_options",         Fate::Silent),
    row("access_programs",        Fate::Silent),
    row("image",                  Fate::Silent),
    row("usage",                  Fate::Silent),
    unless("top_logprobs",        Fate::Refused(NO_LOGPROBS), &["0"]),
    row("previous_response_id",   Fate::Refused(WHOLE)),
    row("conversation",           Fate::Refused(WHOLE)),
    row("prompt",                 Fate::Refused("Send the prompt's text as `instructions` and `input`.")),
    row("background",             Fate::Refused("Ask for a stream instead.")),
    row("moderation",             Fate::Refused("Leave it out.")),
];

pub(crate) fn decode<'a>(
    body: &'a [u8],
    decoding: &mut Decoding<'_>,
) -> Result<Prompt<'a>, BadRequest> {
    decoding.fields(body, FIELDS, field)
}

fn field<'a>(
    decoding: &mut Decoding<'_>,
    name: &str,
    value: &Node<'a>,
    prompt: &mut Prompt<'a>,
) -> Result<(), BadRequest> {
    match name {
        "input" => input(value, prompt, decoding)?,
        "instructions" => prompt
            .system
            .splice(..0, value.text().map(Block::text))
            .for_each(drop),
        "max_output_tokens" => prompt.limit = value.count(),
        "temperature" => prompt.temperature = value.number(),
        "top_p" => prompt.top_p = value.number(),
        "stream" => prompt.stream = value.is_true(),
        "tools" => tools(value, prompt, decoding)?,
        "tool_choice" => prompt.choice = choice(value)?,
        "parallel_tool_calls" => prompt.parallel = value.flag(),
        "reasoning" => {
            prompt.thinking.effort = Effort::named(value.get("effort").word());
            prompt.thinking.shown = value.get("summary").text().map(|_| true);
        }
        "text" => {
            prompt.format = format(value.get("format"))?;
            prompt.verbosity = value
                .get("verbosity")
                .text()
                .filter(|word| word.as_str() != "medium");
        }
        "prompt_cache_key" => prompt.cache_key = value.text(),
        "safety_identifier" => prompt.user = value.plain().or(prompt.user.take()),
        "user" => prompt.user = prompt.user.take().or(value.plain()),
        "service_tier" => match value.word() {
            "auto" => prompt.standard_tier = Some(false),
            "default" => prompt.standard_tier = Some(true),
            "flex" => prompt.tier = Tier::Flex,
            "priority" | "fast" => prompt.tier = Tier::Fast,
            "" => {}
            _ => decoding.drop(name),
        },
        _ => {}
    }
    Ok(())
}

fn format<'a>(value: &Node<'a>) -> Result<Option<Format<'a>>, BadRequest> {
    match value.get("type").word() {
        "json_object" => Ok(Some(Format::Json)),
        "json_schema" => {
            let schema = value.get("schema");
            if schema.kind != Kind::Object {
                return Err(wrong("text.format.schema", "a JSON schema"));
            }
            let (name, description) = (value.get("name").text(), value.get("description").text());
            Ok(Some(Format::Schema {
                name,
                description,
                schema: schema.raw,
                strict: value.get("strict").flag(),
            }))
        }
        _ => Ok(None),
    }
}
