//! Cerebras's `POST /v1/chat/completions`: a closed schema, down to the members of earlier turns.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{Kind, Must, Rule};
use crate::{Vendor, Wire};

use Kind::{Flag, Integer, Null, Text};
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

const RULES: &[Rule] = &[
    Rule::new("", Closed(NAMES), UNKNOWN).code("wrong_api_format"),
    Rule::new("", Needs(&["model"]), SDK).named("needs its model"),
    Rule::new("/max_completion_tokens", Be(&[Integer, Null]), SDK),
    Rule::new("/n", Be(&[Integer, Null]), SDK),
    Rule::new("/seed", Be(&[Integer, Null]), SDK),
    Rule::new("/user", Be(&[Text, Null]), SDK),
    Rule::new("/prompt_cache_key", Be(&[Text, Null]), SDK),
    Rule::new("/parallel_tool_calls", Be(&[Flag, Null]), SDK),
    Rule::new("/logprobs", Be(&[Flag, Null]), SDK),
    Rule::new("/top_logprobs", Between(0.0, 20.0), SDK),
    Rule::new(
        "/service_tier",
        OneOf(&["auto", "default", "flex", "priority"]),
        SDK,
    ),
    Rule::new(
        "/reasoning_effort",
        OneOf(&["none", "low", "medium", "high"]),
        SDK,
    ),
    Rule::new(
        "/reasoning_format",
        OneOf(&["none", "parsed", "text_parsed", "raw", "hidden"]),
        SDK,
    ),
    Rule::new(
        "/messages/*/role",
        OneOf(&["system", "developer", "user", "assistant", "tool"]),
        SDK,
    ),
    Rule::new(
        "/messages/*[role=system|developer|user]",
        Closed(&["role", "content", "name"]),
        IN_MESSAGES,
    ),
    Rule::new(
        "/messages/*[role=assistant]",
        Closed(&["role", "content", "name", "reasoning", "tool_calls"]),
        IN_MESSAGES,
    )
    .code("wrong_api_format"),
    Rule::new(
        "/messages/*[role=tool]",
        Closed(&["role", "content", "name", "tool_call_id"]),
        IN_MESSAGES,
    ),
    Rule::new(
        "/messages/*[role=tool]",
        Needs(&["content", "tool_call_id"]),
        SDK,
    ),
    Rule::new("/messages/*/tool_calls/*", Needs(&["id", "type"]), SDK).named("needs its id"),
    Rule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        SDK,
    ),
    Rule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "image"]),
        SDK,
    ),
    Rule::new("/tools/*", Needs(&["type"]), SDK),
    Rule::new("/tool_choice", OneOf(&["none", "auto", "required"]), SDK),
    Rule::new("/response_format/json_schema", Needs(&["name"]), SDK),
];
