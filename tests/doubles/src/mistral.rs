//! Mistral's `POST /v1/chat/completions`: pydantic models that forbid every extra member, with a status of their own.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_order::calls_are_answered;
use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, List, Null, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt};

pub(crate) static WIRE: Wire = Wire {
    name: "mistral chat",
    vendor: Vendor::Mistral,
    path: "/chat/completions",
    rules: &[&headers(SDK), &fields(SDK, 422), &shapes(SDK, 422), RULES],
    largest: None,
    examples: include_str!("mistral.json"),
    plan: OnceLock::new(),
};

const SDK: &str = "mistralai 3.7.0 (PyPI, 2026-11-23): client/models/chatcompletionrequest.py and the models it names";
const EXTRA: &str = "422 extra_forbidden, 2025-12-12: github.com/editor-code-assistant/eca/issues/231; within assistant messages, 2025-12-10: github.com/charmbracelet/crush/issues/1590";
const USAGE: &str = "422 extra_forbidden for stream_options.include_usage, 2025-03-14: github.com/dnakov/anon-kode/issues/53; the field is not in mistralai 3.7.0";
const IDS: &str = "400 \"Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9\", 2026-03-16: github.com/nearai/ironclaw/issues/1241";
const ORDER: &str = "mistral-common 1.13.1 (PyPI, 2026-11-23): protocol/instruct/validator.py: \"Not the same number of function calls and responses\", \"Expected last role User or Tool (or Assistant with prefix)\"";

const NAMES: &[&str] = &[
    "model",
    "messages",
    "temperature",
    "top_p",
    "max_tokens",
    "stream",
    "stop",
    "random_seed",
    "metadata",
    "response_format",
    "tools",
    "tool_choice",
    "presence_penalty",
    "frequency_penalty",
    "min_tokens",
    "repetition_penalty",
    "top_k",
    "logprobs",
    "top_logprobs",
    "prompt_logprobs",
    "top_prompt_logprobs",
    "n",
    "prediction",
    "parallel_tool_calls",
    "reasoning_effort",
    "prompt_mode",
    "guardrails",
    "prompt_cache_key",
    "service_tier",
    "safe_prompt",
];

const RULES: &[WireRule] = &[
    WireRule::new("/stream_options", Must::Absent, USAGE)
        .status(422)
        .broken_by(&[("/stream_options", r#"{"include_usage":true}"#)]),
    WireRule::new("", Closed(NAMES), EXTRA).status(422),
    WireRule::new("", Needs(&["model"]), SDK).named("needs its model").status(422),
    WireRule::new("/service_tier", OneOf(&["auto", "standard_only"]), SDK).status(422),
    WireRule::new("/metadata", Be(&[Object, Null]), SDK).status(422),
    WireRule::new("/random_seed", Be(&[Integer, Null]), SDK).status(422),
    WireRule::new("/prompt_cache_key", Be(&[Text, Null]), SDK).status(422),
    WireRule::new("/messages/*/role", OneOf(&["system", "user", "assistant", "tool"]), SDK).status(422),
    WireRule::new("/messages/*[role=system|user]", Closed(&["role", "content"]), EXTRA).status(422),
    WireRule::new("/messages/*[role=assistant]", Closed(&["role", "content", "tool_calls", "prefix"]), EXTRA).status(422),
    WireRule::new("/messages/*[role=tool]", Closed(&["role", "content", "tool_call_id", "name"]), EXTRA).status(422),
    WireRule::new("/messages/*/tool_calls", Be(&[List, Null]), SDK).status(422),
    WireRule::new("/messages/*/tool_calls/*", Closed(&["id", "type", "function", "index"]), EXTRA).status(422),
    WireRule::new("/messages/*/tool_calls/*/function", Closed(&["name", "arguments"]), EXTRA).status(422),
    WireRule::new("/messages/*/tool_calls/*/function/arguments", Be(&[Text, Object]), SDK).status(422),
    WireRule::new("/messages/*/tool_calls/*/id", Long(9, 9), IDS),
    WireRule::new("/messages/*/tool_calls/*/id", Spelt(letter_or_digit), IDS),
    WireRule::new("/messages/*/content/*/type", OneOf(&["image_url", "document_url", "text", "reference", "file", "thinking", "input_audio", "resource", "resource_link"]), SDK).status(422),
    WireRule::new("/messages/*/content/*[type=text]", Closed(&["type", "text"]), EXTRA).status(422),
    WireRule::new("/messages/*/content/*[type=image_url]", Needs(&["image_url"]), SDK).status(422),
    WireRule::new("/messages/*/content/*[type=file]", Closed(&["type", "file_id"]), EXTRA).status(422),
    WireRule::new("/tools/*/function", Closed(&["name", "description", "parameters", "strict"]), EXTRA).status(422),
    WireRule::new("/tools/*/function", Needs(&["parameters"]), SDK).named("needs its parameters").status(422),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), SDK).status(422),
    WireRule::new("/tool_choice", OneOf(&["auto", "none", "any", "required"]), SDK).status(422),
    WireRule::new("/response_format", Closed(&["type", "json_schema"]), EXTRA).status(422),
    WireRule::new("/response_format/json_schema", Closed(&["name", "schema", "description", "strict"]), EXTRA).status(422),
    WireRule::new("/response_format/json_schema", Needs(&["name", "schema"]), SDK).status(422),
    WireRule::new("/messages", Hold(calls_are_answered), ORDER)
        .named("calls are answered")
        .broken_by(&[("/messages", r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"abcdefghi","content":"x"}]"#)]),
    WireRule::new("/messages", Hold(ends_with_a_question), ORDER)
        .named("last role")
        .broken_by(&[("/messages/-", r#"{"role":"assistant","content":"a"}"#)]),
];

fn letter_or_digit(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

fn ends_with_a_question(messages: &Value) -> Result<(), String> {
    let last = messages.as_array().and_then(|all| all.last());
    let fits = last.is_none_or(|last| {
        last["role"] == "user" || last["role"] == "tool" || last["prefix"] == true
    });
    if fits {
        return Ok(());
    }
    Err("Expected last role User or Tool (or Assistant with prefix True)".to_owned())
}
