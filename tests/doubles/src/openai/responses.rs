//! `POST /v1/responses` of OpenAI.

use std::sync::OnceLock;

use serde_json::Value;

use super::chat::HEADERS;
use super::items::{ITEMS, ORDER};
use super::response_tools::{FORMATS, TOOLS};
use super::{model, reasons};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Absent, Be, Between, Closed, Hold, Long, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "openai responses",
    vendor: Vendor::OpenAi,
    path: "/responses",
    rules: &[
        HEADERS, NAMES, FIELDS, PROMPT, ITEMS, TOOLS, FORMATS, ORDER, MODELS,
    ],
    largest: None,
    examples: include_str!("responses.json"),
    plan: OnceLock::new(),
};

pub(crate) static COUNT: Wire = Wire {
    name: "openai input_tokens",
    vendor: Vendor::OpenAi,
    path: "/responses/input_tokens",
    rules: &[HEADERS, COUNTED, PROMPT, ITEMS, TOOLS, FORMATS, ORDER],
    largest: None,
    examples: include_str!("input_tokens.json"),
    plan: OnceLock::new(),
};

const CREATE: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_create_params.py";
const COUNTING: &str =
    "openai 3.54.0 (PyPI, 2026-11-23): types/responses/input_token_count_params.py";
const UNKNOWN: &str = "400 unknown_parameter \"Unknown parameter: 'input[0].content[0].detail'\", 2025-06-11: github.com/openai/openai-agents-js/issues/87; \"Unknown parameter: 'parent_id'\", 2025-12-09: github.com/cogwheel0/conduit/issues/258; names of openai 3.54.0: types/responses/response_create_params.py";
const SMALLEST: &str = "400 \"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16\", 2026-07-02: github.com/earendil-works/pi/issues/6265";
const METADATA: &str =
    "openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_create_params.py, metadata";
const SAMPLING: &str = "400 \"Unsupported parameter: 'temperature' is not supported with this model\" with gpt-5.2, 2026-01-27: github.com/OpenHands/software-agent-sdk/issues/1837";
const SAMPLING_TOO: &str =
    "no source found (2026-11-23) that says of top_p what is said of temperature";
const NO_EFFORT: &str = "400 unsupported_parameter \"'reasoning.effort' is not supported with this model\" with gpt-4o, 2025-10-24: github.com/RageAgainstThePixel/OpenAI-DotNet/issues/500; with gpt-4.1, 2025-11-08: github.com/BoundaryML/baml/pull/2708";
const EFFORT_54: &str = "gpt-5.4 takes none, low, medium, high, xhigh, 2026-03-19: github.com/RayBytes/ChatMock/pull/101; 400 unsupported_value for minimal since 5.1, 2025-11-17: github.com/openai/openai-agents-python/issues/2089";
const ENCRYPTED: &str = "400 \"Encrypted content is not supported with this model\" with gpt-4o, 2025-09-11: github.com/pydantic/pydantic-ai/issues/2865; with gpt-4.1-mini, 2025-09-12: github.com/miquido/draive/issues/399";

const NAMES: &[WireRule] = &[WireRule::new(
    "",
    Closed(&[
        "access_programs",
        "background",
        "background_options",
        // Codex sends it, though no library has it.
        "client_metadata",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]),
    UNKNOWN,
)];

const COUNTED: &[WireRule] = &[WireRule::new(
    "",
    Closed(&[
        "conversation",
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "personality",
        "previous_response_id",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    ]),
    COUNTING,
)];

#[rustfmt::skip]
const FIELDS: &[WireRule] = &[
    WireRule::new("/max_output_tokens", Be(&[Integer, Null]), CREATE),
    WireRule::new("/max_output_tokens", Between(16.0, f64::MAX), SMALLEST).broken_by(&[("/max_output_tokens", "15")]),
    WireRule::new("/max_tool_calls", Be(&[Integer, Null]), CREATE),
    WireRule::new("/metadata", Be(&[Object, Null]), METADATA),
    WireRule::new("/metadata", Long(0, 16), METADATA),
    WireRule::new("/metadata/*", Be(&[Text]), METADATA),
    WireRule::new("/metadata/*", Long(0, 512), METADATA),
    WireRule::new("/include", Be(&[List, Null]), CREATE),
    WireRule::new("/include/*", OneOf(&[
        "file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
        "computer_call_output.output.image_url", "code_interpreter_call.outputs", "reasoning.encrypted_content",
        "message.output_text.logprobs",
    ]), CREATE),
    WireRule::new("/prompt_cache_key", Be(&[Text, Null]), CREATE),
    WireRule::new("/prompt_cache_retention", OneOf(&["in_memory", "24h"]), CREATE),
    WireRule::new("/prompt_cache_options", Closed(&["comparison_response_id", "mode", "prewarm", "ttl"]), CREATE),
    WireRule::new("/safety_identifier", Be(&[Text, Null]), CREATE),
    WireRule::new("/service_tier", OneOf(&["auto", "default", "flex", "scale", "priority", "fast"]), CREATE),
    WireRule::new("/store", Be(&[Flag, Null]), CREATE),
    WireRule::new("/stream", Be(&[Flag, Null]), CREATE),
    WireRule::new("/stream_options", Closed(&["include_obfuscation"]), CREATE),
    WireRule::new("/temperature", Be(&[Number, Null]), CREATE),
    WireRule::new("/temperature", Between(0.0, 2.0), CREATE),
    WireRule::new("/top_p", Be(&[Number, Null]), CREATE),
    WireRule::new("/top_p", Between(0.0, 1.0), CREATE),
    WireRule::new("/top_logprobs", Be(&[Integer, Null]), CREATE),
    WireRule::new("/top_logprobs", Between(0.0, 20.0), CREATE),
    WireRule::new("/truncation", OneOf(&["auto", "disabled"]), CREATE),
    WireRule::new("/user", Be(&[Text]), CREATE),
];

/// What both paths share of the body.
#[rustfmt::skip]
const PROMPT: &[WireRule] = &[
    WireRule::new("", Be(&[Object]), CREATE),
    WireRule::new("", Needs(&["model", "input"]), CREATE),
    WireRule::new("/model", Be(&[Text]), CREATE),
    WireRule::new("/input", Be(&[Text, List]), CREATE),
    WireRule::new("/instructions", Be(&[Text, Null]), CREATE),
    WireRule::new("/parallel_tool_calls", Be(&[Flag, Null]), CREATE),
    WireRule::new("/reasoning", Be(&[Object, Null]), CREATE),
    WireRule::new("/reasoning", Closed(&["context", "effort", "generate_summary", "mode", "summary"]), CREATE),
    WireRule::new("/reasoning/effort", OneOf(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]), CREATE),
    WireRule::new("/reasoning/summary", OneOf(&["auto", "concise", "detailed"]), CREATE),
];

/// What depends on the model.
#[rustfmt::skip]
const MODELS: &[WireRule] = &[
    WireRule::new("/temperature", Absent, SAMPLING)
        .named("reasoning model").when(reasons_now)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/reasoning", r#"{"effort":"low"}"#), ("/temperature", "0.5")]),
    WireRule::new("/top_p", Absent, SAMPLING_TOO).unverified()
        .named("reasoning model").when(reasons_now)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/reasoning", r#"{"effort":"low"}"#), ("/top_p", "0.5")]),
    WireRule::new("/reasoning/effort", Absent, NO_EFFORT)
        .named("model without reasoning").when(does_not_reason)
        .broken_by(&[("/model", "\"gpt-4.1-mini\""), ("/reasoning", r#"{"effort":"low"}"#)]),
    WireRule::new("/reasoning/effort", OneOf(&["none", "low", "medium", "high", "xhigh"]), EFFORT_54)
        .named("gpt-5.4").when(is_54)
        .broken_by(&[("/model", "\"gpt-5.4-mini\""), ("/reasoning", r#"{"effort":"minimal"}"#)]),
    WireRule::new("/include", Hold(asks_no_seal), ENCRYPTED)
        .named("model without reasoning").when(does_not_reason)
        .broken_by(&[("/model", "\"gpt-4.1-mini\""), ("/include", r#"["reasoning.encrypted_content"]"#)]),
];

fn does_not_reason(body: &Value) -> bool {
    model(body).starts_with("gpt-4") || model(body).starts_with("gpt-3.5")
}

/// From 5.1 on, sampling is accepted where the effort is none, which is the default of some.
fn reasons_now(body: &Value) -> bool {
    let effort = body["reasoning"]["effort"].as_str();
    reasons(body) && effort.is_some_and(|effort| effort != "none")
}

fn is_54(body: &Value) -> bool {
    model(body).starts_with("gpt-5.4")
}

fn asks_no_seal(include: &Value) -> Result<(), String> {
    let mut all = include.as_array().into_iter().flatten();
    if all.any(|one| one == "reasoning.encrypted_content") {
        return Err("Encrypted content is not supported with this model.".to_owned());
    }
    Ok(())
}
