//! `POST /v1/chat/completions` of OpenAI.

use std::sync::OnceLock;

use serde_json::Value;

use super::messages::{MESSAGES, PARTS};
use super::tools::{FORMATS, TOOLS};
use super::{model, needs, reasons};
use crate::chat_order::calls_are_answered;
use crate::chat_shapes::FOREIGN;
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Absent, Be, Between, Closed, Hold, Long, Needs, Once, OneOf, Start};

pub(crate) static WIRE: Wire = Wire {
    name: "openai chat",
    vendor: Vendor::OpenAi,
    path: "/chat/completions",
    rules: &[
        HEADERS, FIELDS, MESSAGES, PARTS, TOOLS, FORMATS, ORDER, MODELS,
    ],
    largest: None,
    examples: include_str!("chat.json"),
    plan: OnceLock::new(),
};

const CREATE: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/chat/completion_create_params.py";
const CLIENT: &str =
    "openai 3.54.0 (PyPI, 2026-11-23): _client.py, auth_headers and default_headers";
/// The document's bounds, which the SDK's types leave out.
const DOCUMENT: &str = "OpenAI's OpenAPI document 2.3.0 (github.com/openai/openai-openapi at f85dbe22, 2026-08-21): CreateChatCompletionRequest, ChatCompletionStreamOptions, Metadata";
const UNKNOWN: &str = "400 \"Unrecognized request argument supplied\", 2026-06-04: github.com/nashsu/llm_wiki/issues/336";

/// What every copy of this wire asks of the headers.
pub(crate) const HEADERS: &[WireRule] = &[
    WireRule::new("@content-type", Once, CLIENT),
    WireRule::new("@content-type", Start("application/json"), CLIENT),
    WireRule::new("@authorization", Once, CLIENT).status(401),
    WireRule::new("@authorization", Start("Bearer "), CLIENT).status(401),
    WireRule::new("@x-api-key", Absent, FOREIGN)
        .unverified()
        .broken_by(&[("@x-api-key", "k")])
        .named("belongs to another family"),
    WireRule::new("@anthropic-version", Absent, FOREIGN)
        .unverified()
        .broken_by(&[("@anthropic-version", "2023-06-01")])
        .named("belongs to another family"),
];

const NAMES: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(crate) const FIELDS: &[WireRule] = &[
    WireRule::new("", Be(&[Object]), CREATE),
    WireRule::new("", Closed(NAMES), UNKNOWN),
    WireRule::new("", Needs(&["model", "messages"]), CREATE),
    WireRule::new("/model", Be(&[Text]), CREATE),
    WireRule::new("/messages", Be(&[List]), CREATE),
    WireRule::new("/messages", Long(1, usize::MAX), DOCUMENT),
    WireRule::new("/frequency_penalty", Be(&[Number, Null]), CREATE),
    WireRule::new("/frequency_penalty", Between(-2.0, 2.0), DOCUMENT),
    WireRule::new("/presence_penalty", Be(&[Number, Null]), CREATE),
    WireRule::new("/presence_penalty", Between(-2.0, 2.0), DOCUMENT),
    WireRule::new("/logit_bias", Be(&[Object, Null]), CREATE),
    WireRule::new("/logit_bias/*", Be(&[Integer]), CREATE),
    WireRule::new("/logprobs", Be(&[Flag, Null]), CREATE),
    WireRule::new("/top_logprobs", Be(&[Integer, Null]), CREATE),
    WireRule::new("/top_logprobs", Between(0.0, 20.0), DOCUMENT),
    WireRule::new("", Hold(logprobs_with_top), CREATE)
        .named("top_logprobs needs logprobs")
        .broken_by(&[("/top_logprobs", "2"), ("/logprobs", "false")]),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), CREATE),
    WireRule::new("/max_tokens", Be(&[Integer, Null]), CREATE),
    WireRule::new("/metadata", Be(&[Object, Null]), CREATE),
    WireRule::new("/metadata", Long(0, 16), DOCUMENT),
    WireRule::new("/metadata/*", Be(&[Text]), CREATE),
    WireRule::new("/metadata/*", Long(0, 512), CREATE),
    WireRule::new("/n", Be(&[Integer, Null]), CREATE),
    WireRule::new("/n", Between(1.0, 128.0), DOCUMENT),
    WireRule::new("/parallel_tool_calls", Be(&[Flag]), CREATE),
    WireRule::new("/prompt_cache_key", Be(&[Text, Null]), CREATE),
    WireRule::new("/prompt_cache_options", Closed(&["mode", "ttl"]), CREATE),
    WireRule::new(
        "/prompt_cache_retention",
        OneOf(&["in_memory", "24h"]),
        CREATE,
    ),
    WireRule::new("/reasoning_effort", Be(&[Text, Null]), CREATE),
    WireRule::new("/reasoning_effort", OneOf(EFFORTS), CREATE),
    WireRule::new("/safety_identifier", Be(&[Text, Null]), CREATE),
    WireRule::new("/safety_identifier", Long(0, 128), CREATE),
    WireRule::new("/seed", Be(&[Integer, Null]), CREATE),
    WireRule::new("/service_tier", Be(&[Text, Null]), CREATE),
    WireRule::new(
        "/service_tier",
        OneOf(&["auto", "default", "flex", "scale", "priority", "fast"]),
        CREATE,
    ),
    WireRule::new("/stop", Be(&[Text, List, Null]), CREATE),
    WireRule::new("/stop", Hold(four_stops), CREATE)
        .named("at most four")
        .broken_by(&[("/stop", r#"["a","b","c","d","e"]"#)]),
    WireRule::new("/stop/*", Be(&[Text]), CREATE),
    WireRule::new("/store", Be(&[Flag, Null]), CREATE),
    WireRule::new("/stream", Be(&[Flag, Null]), CREATE),
    WireRule::new("/stream_options", Be(&[Object, Null]), CREATE),
    WireRule::new(
        "/stream_options",
        Closed(&["include_usage", "include_obfuscation"]),
        CREATE,
    ),
    WireRule::new("/stream_options/*", Be(&[Flag]), CREATE),
    WireRule::new("", Hold(options_of_a_stream), DOCUMENT)
        .named("stream_options needs stream")
        .broken_by(&[
            ("/stream", "false"),
            ("/stream_options", r#"{"include_usage":true}"#),
        ]),
    WireRule::new("/temperature", Be(&[Number, Null]), CREATE),
    WireRule::new("/temperature", Between(0.0, 2.0), DOCUMENT),
    WireRule::new("/top_p", Be(&[Number, Null]), CREATE),
    WireRule::new("/top_p", Between(0.0, 1.0), DOCUMENT),
    WireRule::new("/user", Be(&[Text]), CREATE),
    WireRule::new("/verbosity", Be(&[Text, Null]), CREATE),
    WireRule::new("/verbosity", OneOf(&["low", "medium", "high"]), CREATE),
    WireRule::new("/modalities/*", OneOf(&["text", "audio"]), CREATE),
];

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Calls and their results.
pub(crate) const ORDER: &[WireRule] =
    &[WireRule::new("/messages", Hold(calls_are_answered), CALLS)
        .named("calls are answered")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]"#,
        )])];

const CALLS: &str = "400 \"messages with role 'tool' must be a response to a preceeding message with 'tool_calls'\", 2025-05-12: github.com/simonw/llm/issues/937; \"must be followed by tool messages\", 2025-05-06: github.com/agno-agi/agno/issues/3105";

/// What depends on the model.
pub(crate) const MODELS: &[WireRule] = &[
    WireRule::new("/max_tokens", Absent, LIMIT)
        .named("reasoning model")
        .when(reasons)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/max_tokens", "100")]),
    WireRule::new("/temperature", Hold(default_one), SAMPLING)
        .named("reasoning model")
        .when(reasons)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/temperature", "0.5")]),
    WireRule::new("/top_p", Hold(default_one), SAMPLING)
        .named("reasoning model")
        .when(reasons)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/top_p", "0.5")]),
    WireRule::new("/reasoning_effort", Absent, NO_EFFORT)
        .named("model without reasoning")
        .when(does_not_reason)
        .broken_by(&[
            ("/model", "\"gpt-4.1-mini\""),
            ("/reasoning_effort", "\"low\""),
        ]),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "low", "medium", "high", "xhigh"]),
        EFFORT_54,
    )
    .named("gpt-5.4")
    .when(is_54)
    .broken_by(&[
        ("/model", "\"gpt-5.4-mini\""),
        ("/reasoning_effort", "\"minimal\""),
    ]),
    WireRule::new("/model", Hold(not_in_chat), ELSEWHERE)
        .named("served on another path")
        .status(404)
        .when(is_for_responses)
        .broken_by(&[("/model", "\"o3-deep-research\"")]),
    WireRule::new("/reasoning_effort", Hold(not_with_tools), EFFORT_OR_TOOLS)
        .named("gpt-5.4 with tools")
        .when(is_54_with_tools)
        .broken_by(&[
            ("/model", "\"gpt-5.4-mini\""),
            ("/reasoning_effort", "\"low\""),
        ]),
];

const LIMIT: &str = "400 unsupported_parameter \"'max_tokens' is not supported with this model\", 2025-08-22: github.com/griptape-ai/ComfyUI-Griptape/issues/312";
const SAMPLING: &str = "400 unsupported_value \"Only the default (1) value is supported\" with gpt-5.4, 2026-04-20: github.com/johny-b/llmcomp/issues/69";
const NO_EFFORT: &str = "400 \"Unrecognized request argument supplied: reasoning_effort\" with gpt-4o-mini, 2025-06-09: github.com/umputun/tg-spam/issues/304";
const EFFORT_54: &str = "gpt-5.4 takes none, low, medium, high, xhigh, 2026-03-19: github.com/RayBytes/ChatMock/pull/101; 400 unsupported_value for minimal since 5.1, 2025-11-17: github.com/openai/openai-agents-python/issues/2089";

/// The default effort of later models is not "none", so there tools alone are refused.
const EFFORT_OR_TOOLS: &str = "400 \"Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions\", 2026-03-16: github.com/pipecat-ai/pipecat/issues/4043, 2026-05-18: github.com/openai/openai-openapi/issues/541";

/// Models that only the other path has.
const ELSEWHERE: &str = "404 \"This model is only supported in v1/responses and not in v1/chat/completions.\", 2025-08-14: github.com/n8n-io/n8n/issues/18352";

fn is_for_responses(body: &Value) -> bool {
    model(body).contains("deep-research")
}

fn not_in_chat(_model: &Value) -> Result<(), String> {
    Err("This model is only supported in v1/responses and not in v1/chat/completions.".to_owned())
}

fn not_with_tools(effort: &Value) -> Result<(), String> {
    if effort == "none" {
        return Ok(());
    }
    Err("Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.".to_owned())
}

fn does_not_reason(body: &Value) -> bool {
    model(body).starts_with("gpt-4") || model(body).starts_with("gpt-3.5")
}

fn is_54(body: &Value) -> bool {
    model(body).starts_with("gpt-5.4")
}

fn is_54_with_tools(body: &Value) -> bool {
    is_54(body) && body["tools"].is_array()
}

fn default_one(value: &Value) -> Result<(), String> {
    let default = value.is_null() || value.as_f64() == Some(1.0);
    default
        .then_some(())
        .ok_or_else(|| format!("{value}: only the default (1) is supported"))
}

fn four_stops(stop: &Value) -> Result<(), String> {
    let many = stop.as_array().is_some_and(|stops| stops.len() > 4);
    if many {
        Err("more than four stop strings".to_owned())
    } else {
        Ok(())
    }
}

fn logprobs_with_top(body: &Value) -> Result<(), String> {
    needs(body, "top_logprobs", "logprobs", |value| *value == true)
}

fn options_of_a_stream(body: &Value) -> Result<(), String> {
    needs(body, "stream_options", "stream", |value| *value == true)
}
