//! Decodes a responses request into a prompt. Fields that only this family has are judged by [`FIELDS`].

use super::decode_items::input;
use super::decode_tools::{choice, tools};
use crate::BadRequest;
use crate::translate::decode::{Decoding, format};
use crate::translate::fates::{FateRow, FieldFate, row, silent_for_messages, unless};
use crate::translate::neutral::{Effort, NeutralBlock, NeutralPrompt};
use crate::translate::tree::JsonNode;

const WHOLE: &str = "Send the whole conversation as `input`.";
const NO_LOGPROBS: &str = "Leave it out.";

#[rustfmt::skip]
pub(crate) const FIELDS: &[FateRow] = &[
    row("model",                  FieldFate::Converted),
    row("input",                  FieldFate::Converted),
    row("instructions",           FieldFate::Converted),
    row("max_output_tokens",      FieldFate::Converted),
    row("temperature",            FieldFate::Carried),
    row("top_p",                  FieldFate::Carried),
    row("stream",                 FieldFate::Carried),
    row("tools",                  FieldFate::Converted),
    row("tool_choice",            FieldFate::Converted),
    row("parallel_tool_calls",    FieldFate::Converted),
    row("reasoning",              FieldFate::Converted),
    row("text",                   FieldFate::Converted),
    silent_for_messages("prompt_cache_key"),
    row("safety_identifier",      FieldFate::Converted),
    row("user",                   FieldFate::Converted),
    row("service_tier",           FieldFate::Converted),
    unless("truncation",          FieldFate::Dropped, &["\"disabled\""]),
    row("context_management",     FieldFate::Dropped),
    row("max_tool_calls",         FieldFate::Dropped),
    row("prompt_cache_options",   FieldFate::Dropped),
    row("prompt_cache_retention", FieldFate::Dropped),
    FateRow { refused: Some(("\"message.output_text.logprobs\"", NO_LOGPROBS)), ..row("include", FieldFate::Silent) },
    row("client_metadata",        FieldFate::Silent),
    row("metadata",               FieldFate::Silent),
    row("store",                  FieldFate::Silent),
    row("stream_options",         FieldFate::Silent),
    row("access_programs",        FieldFate::Silent),
    row("image",                  FieldFate::Silent),
    row("usage",                  FieldFate::Silent),
    row("session_id",             FieldFate::Silent),
    unless("top_logprobs",        FieldFate::Refused(NO_LOGPROBS), &["0"]),
    row("previous_response_id",   FieldFate::Refused(WHOLE)),
    row("conversation",           FieldFate::Refused(WHOLE)),
    row("prompt",                 FieldFate::Refused("Send the prompt's text as `instructions` and `input`.")),
    row("background",             FieldFate::Refused("Ask for a stream instead.")),
    row("moderation",             FieldFate::Refused("Leave it out.")),
];

/// Takes a field that is converted or carried.
pub(crate) fn field<'a>(
    decoding: &mut Decoding<'_>,
    name: &str,
    value: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    match name {
        "input" => input(value, prompt, decoding)?,
        "instructions" => prompt
            .system
            .splice(..0, value.text().map(NeutralBlock::text))
            .for_each(drop),
        "max_output_tokens" => prompt.limit = value.count(),
        "tools" => tools(value, prompt, decoding)?,
        "tool_choice" => prompt.choice = choice(value)?,
        "reasoning" => {
            prompt.thinking.effort = Effort::named(value.get("effort").word());
            prompt.thinking.shown = value.get("summary").text().map(|_| true);
        }
        "text" => {
            let given = value.get("format");
            prompt.format = format(given, given, "text.format.schema")?;
            prompt.verbosity = value
                .get("verbosity")
                .text()
                .filter(|word| word.as_str() != "medium");
        }
        _ => decoding.alike(name, value, prompt),
    }
    Ok(())
}
