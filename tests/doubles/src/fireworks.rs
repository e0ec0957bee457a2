//! Fireworks's `POST /inference/v1/chat/completions`: a closed schema of many fields.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule, word};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, Null, Object, Text};
use Must::{Absent, Be, Closed, Long, Needs, OneOf, Spelt};

pub(crate) static WIRE: Wire = Wire {
    name: "fireworks chat",
    vendor: Vendor::Fireworks,
    path: "/chat/completions",
    rules: &[
        &headers(SDK),
        &fields(SDK, 400),
        // `grammar` is one more.
        &unverified_at(shapes(SDK, 400), &["/response_format/type"]),
        RULES,
    ],
    largest: None,
    examples: include_str!("fireworks.json"),
    plan: OnceLock::new(),
};

const SDK: &str = "fireworks-ai 1.2.30 (PyPI, 2026-11-23): types/chat/completion_create_params.py and the shared params it names";
const UNKNOWN: &str = "400 \"Extra inputs are not permitted, field: 'vl_high_resolution_images'\", 2025-10-15: github.com/web-infra-dev/midscene/issues/1322";
const USAGE: &str = "refused 2024-07-24 (github.com/FlowiseAI/Flowise/issues/2866); clients have sent it since, and no source of 2026 was found";
const IN_MESSAGES: &str =
    "no source found (2026-11-23) that a message with further members is refused as a body is";

/// `stream_options` is not in the SDK's types.
const NAMES: &[&str] = &[
    "messages",
    "model",
    "context_length_exceeded_behavior",
    "echo",
    "echo_last",
    "frequency_penalty",
    "function_call",
    "functions",
    "ignore_eos",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "min_p",
    "mirostat_lr",
    "mirostat_target",
    "n",
    "parallel_tool_calls",
    "perf_metrics_in_response",
    "prediction",
    "presence_penalty",
    "prompt_cache_isolation_key",
    "prompt_cache_key",
    "prompt_truncate_len",
    "raw_output",
    "reasoning_effort",
    "reasoning_history",
    "repetition_penalty",
    "response_format",
    "return_token_ids",
    "safe_tokenization",
    "seed",
    "service_tier",
    "speculation",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "typical_p",
    "user",
];

const RULES: &[WireRule] = &[
    WireRule::new("", Closed(NAMES), UNKNOWN),
    WireRule::new("", Needs(&["model"]), SDK).named("needs its model"),
    WireRule::new("/stream_options", Absent, USAGE)
        .unverified()
        .broken_by(&[("/stream_options", "{}")]),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), SDK),
    WireRule::new("/n", Be(&[Integer]), SDK),
    WireRule::new("/metadata", Be(&[Object, Null]), SDK),
    WireRule::new("/metadata/*", Be(&[Text]), SDK),
    WireRule::new("/prompt_cache_key", Be(&[Text, Null]), SDK),
    WireRule::new("/parallel_tool_calls", Be(&[Flag, Null]), SDK),
    WireRule::new("/top_k", Be(&[Integer, Null]), SDK),
    WireRule::new("/user", Be(&[Text, Null]), SDK),
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
        "/reasoning_history",
        OneOf(&["disabled", "interleaved", "preserved"]),
        SDK,
    ),
    WireRule::new(
        "/context_length_exceeded_behavior",
        OneOf(&["error", "truncate"]),
        SDK,
    ),
    WireRule::new("/thinking", Be(&[Object, Null]), SDK),
    WireRule::new("/thinking/type", OneOf(&["enabled", "disabled"]), SDK),
    WireRule::new(
        "/messages/*",
        Closed(&[
            "role",
            "content",
            "reasoning_content",
            "tool_call_id",
            "tool_calls",
        ]),
        IN_MESSAGES,
    )
    .unverified(),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        SDK,
    ),
    WireRule::new(
        "/messages/*/content/*/type",
        OneOf(&["text", "image_url", "video_url"]),
        SDK,
    ),
    WireRule::new("/tools/*", Needs(&["type"]), SDK),
    WireRule::new("/tools/*/type", OneOf(&["function"]), SDK),
    WireRule::new("/tools/*/function/name", Long(1, 64), SDK),
    WireRule::new("/tools/*/function/name", Spelt(word), SDK),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), SDK),
    WireRule::new(
        "/tool_choice",
        OneOf(&["auto", "none", "any", "required"]),
        SDK,
    ),
];
