//! Groq's `POST /openai/v1/chat/completions`: a closed schema, with its own words for what it does not know.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_order::calls_are_answered;
use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{JsonType, Must, WireRule, word};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, Null, Object, Text};
use Must::{Be, Between, Closed, Hold, Long, Needs, OneOf, Spelt};

pub(crate) static WIRE: Wire = Wire {
    name: "groq chat",
    vendor: Vendor::Groq,
    path: "/chat/completions",
    rules: &[&headers(SDK), &fields(SDK, 400), &shapes(SDK, 400), RULES],
    largest: None,
    examples: include_str!("groq.json"),
    plan: OnceLock::new(),
};

const SDK: &str =
    "groq 1.7.0 (PyPI, 2026-11-23): types/chat/completion_create_params.py and the params it names";
const UNKNOWN: &str = "400 \"property 'prompt_cache_key' is unsupported\", 2026-07-28: github.com/eigent-ai/eigent/issues/1827; 'verbosity': github.com/CherryHQ/cherry-studio/issues/11435";
const IN_MESSAGES: &str = "400 \"property 'reasoning_content' is unsupported\", 2026-05-16: github.com/SimonSchubert/Kai/issues/265; 'timestamp', 2026-01-26: github.com/ServiceStack/llms/issues/17";
const USAGE: &str = "groq 1.7.0 (PyPI, 2026-11-23): types/chat/chat_completion_chunk.py speaks of stream_options.include_usage";
const ORDER: &str = "no source found (2026-11-23) that Groq refuses a call without its result";

/// `stream_options` is missing in the SDK's request types, but its answer types explain it.
const NAMES: &[&str] = &[
    "messages",
    "model",
    "citation_options",
    "compound_custom",
    "disable_tool_validation",
    "documents",
    "exclude_domains",
    "frequency_penalty",
    "function_call",
    "functions",
    "include_domains",
    "include_reasoning",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "reasoning_format",
    "response_format",
    "search_settings",
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
];

const RULES: &[WireRule] = &[
    WireRule::new("", Closed(NAMES), UNKNOWN),
    WireRule::new("", Needs(&["model"]), SDK).named("needs its model"),
    WireRule::new("/stream_options", Closed(&["include_usage"]), USAGE).unverified(),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), SDK),
    WireRule::new("/n", Between(1.0, 1.0), SDK),
    WireRule::new("/temperature", Between(0.0, 2.0), SDK),
    WireRule::new("/parallel_tool_calls", Be(&[Flag, Null]), SDK),
    WireRule::new(
        "/service_tier",
        OneOf(&["auto", "on_demand", "flex", "performance"]),
        SDK,
    ),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "default", "low", "medium", "high"]),
        SDK,
    ),
    WireRule::new("/reasoning_effort", OneOf(&["low", "medium", "high"]), SDK)
        .named("gpt-oss")
        .when(is_gpt_oss),
    WireRule::new(
        "/reasoning_format",
        OneOf(&["hidden", "raw", "parsed"]),
        SDK,
    ),
    WireRule::new("", Hold(one_reasoning_switch), SDK)
        .named("reasoning_format or include_reasoning")
        .broken_by(&[
            ("/include_reasoning", "true"),
            ("/reasoning_format", "\"raw\""),
        ]),
    WireRule::new(
        "/messages/*/role",
        OneOf(&[
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
        ]),
        SDK,
    ),
    WireRule::new(
        "/messages/*[role=system|developer|user]",
        Closed(&["role", "content", "name"]),
        IN_MESSAGES,
    ),
    WireRule::new(
        "/messages/*[role=assistant]",
        Closed(&[
            "role",
            "content",
            "name",
            "function_call",
            "reasoning",
            "tool_calls",
        ]),
        IN_MESSAGES,
    ),
    WireRule::new(
        "/messages/*[role=tool]",
        Closed(&["role", "content", "tool_call_id"]),
        IN_MESSAGES,
    ),
    WireRule::new(
        "/messages/*[role=tool]",
        Needs(&["content", "tool_call_id"]),
        SDK,
    ),
    WireRule::new("/messages/*/tool_calls/*", Needs(&["id", "type"]), SDK).named("needs its id"),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        SDK,
    ),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "document"]),
        SDK,
    ),
    WireRule::new(
        "/messages/*[role=system|assistant]/content/*/type",
        OneOf(&["text"]),
        SDK,
    ),
    WireRule::new("/tools", Long(0, 128), SDK),
    WireRule::new("/tools/*", Needs(&["type"]), SDK),
    WireRule::new(
        "/tools/*/function",
        Closed(&["name", "description", "parameters", "strict"]),
        SDK,
    ),
    WireRule::new("/tools/*/function/name", Long(1, 64), SDK),
    WireRule::new("/tools/*/function/name", Spelt(word), SDK),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), SDK),
    WireRule::new("/tools/*/function/strict", Be(&[Flag]), SDK),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), SDK),
    WireRule::new(
        "/response_format/json_schema",
        Closed(&["name", "description", "schema", "strict"]),
        SDK,
    ),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), SDK),
    WireRule::new("/messages", Hold(calls_are_answered), ORDER)
        .named("calls are answered")
        .unverified()
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]"#,
        )]),
];

fn is_gpt_oss(body: &Value) -> bool {
    body["model"]
        .as_str()
        .is_some_and(|model| model.contains("gpt-oss"))
}

fn one_reasoning_switch(body: &Value) -> Result<(), String> {
    let both = !body["include_reasoning"].is_null() && !body["reasoning_format"].is_null();
    if both {
        Err("cannot specify both `reasoning_format` and `include_reasoning`".to_owned())
    } else {
        Ok(())
    }
}
