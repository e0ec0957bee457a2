//! Cerebras's `POST /v1/chat/completions`: a closed schema, down to the members of earlier turns.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, Null, Text};
use Must::{Be, Between, Closed, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "cerebras chat",
    vendor: Vendor::Cerebras,
    path: "/chat/completions",
    rules: &[&headers(SDK), &fields(SDK, 400), &shapes(SDK, 400), RULES],
    largest: None,
    examples: include_str!("cerebras.json"),
    plan: OnceLock::new(),
};

const SDK: &str =
    "cerebras-cloud-sdk 1.91.0 (PyPI, 2026-11-23): types/chat/completion_create_params.py";
const UNKNOWN: &str = "400 wrong_api_format \"property 'enable_thinking' is unsupported\", measured 2026-09-19: github.com/proxysoul/Empryo/pull/209";
const IN_MESSAGES: &str = "400 wrong_api_format \"property 'messages.2.assistant.reasoning_content' is unsupported\", 2026-05-19: github.com/Kilo-Org/kilocode/issues/10375; 200 for `reasoning`, 2026-09-19: github.com/proxysoul/Empryo/pull/209";

const NAMES: &[&str] = &[
    "messages",
    "model",
    "clear_thinking",
    "disable_reasoning",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "min_completion_tokens",
    "min_tokens",
    "model_parameters",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "reasoning_format",
    "response_format",
    "seed",
    "service_tier",
    "stop",
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
    WireRule::new("", Closed(NAMES), UNKNOWN).code("wrong_api_format"),
    WireRule::new("", Needs(&["model"]), SDK).named("needs its model"),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), SDK),
    WireRule::new("/n", Be(&[Integer, Null]), SDK),
    WireRule::new("/seed", Be(&[Integer, Null]), SDK),
    WireRule::new("/user", Be(&[Text, Null]), SDK),
    WireRule::new("/prompt_cache_key", Be(&[Text, Null]), SDK),
    WireRule::new("/parallel_tool_calls", Be(&[Flag, Null]), SDK),
    WireRule::new("/logprobs", Be(&[Flag, Null]), SDK),
    WireRule::new("/top_logprobs", Between(0.0, 20.0), SDK),
    WireRule::new(
        "/service_tier",
        OneOf(&["auto", "default", "flex", "priority"]),
        SDK,
    ),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "low", "medium", "high"]),
        SDK,
    ),
    WireRule::new(
        "/reasoning_format",
        OneOf(&["none", "parsed", "text_parsed", "raw", "hidden"]),
        SDK,
    ),
    WireRule::new(
        "/messages/*/role",
        OneOf(&["system", "developer", "user", "assistant", "tool"]),
        SDK,
    ),
    WireRule::new(
        "/messages/*[role=system|developer|user]",
        Closed(&["role", "content", "name"]),
        IN_MESSAGES,
    ),
    WireRule::new(
        "/messages/*[role=assistant]",
        Closed(&["role", "content", "name", "reasoning", "tool_calls"]),
        IN_MESSAGES,
    )
    .code("wrong_api_format"),
    WireRule::new(
        "/messages/*[role=tool]",
        Closed(&["role", "content", "name", "tool_call_id"]),
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
        OneOf(&["text", "image_url", "image"]),
        SDK,
    ),
    WireRule::new("/tools/*", Needs(&["type"]), SDK),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), SDK),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), SDK),
];
