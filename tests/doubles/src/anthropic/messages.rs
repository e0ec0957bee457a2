//! `POST /v1/messages` of Anthropic.

use std::sync::OnceLock;

use super::blocks::{BLOCKS, MARKS};
use super::models::MODELS;
use super::order::ORDER;
use super::schema::FORMAT;
use super::tools::TOOLS;
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Absent, Be, Between, Closed, Long, Needs, Once, OneOf, Start};

pub(crate) static WIRE: Wire = Wire {
    name: "anthropic messages",
    vendor: Vendor::Anthropic,
    path: "/messages",
    rules: &[
        HEADERS, NAMES, LIMITS, PROMPT, BLOCKS, MARKS, TOOLS, FORMAT, ORDER, MODELS,
    ],
    largest: Some((32 << 20, SIZE)),
    examples: include_str!("messages.json"),
    plan: OnceLock::new(),
};

/// Others refuse large bodies too, but no source says from what size on.
pub(crate) const SIZE: &str = "413 request_too_large over 32 MB, also of token counts: www.developersdigest.tech/errors/api/anthropic-api/413-request-too-large, from the service's page, read 2026-11-23";
const CREATE: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/message_create_params.py, types/beta/message_create_params.py";
const CLIENT: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): _base_client.py, default_headers";
const VERSION: &str = "400 \"anthropic-version: header is required\", 2024-01-04: github.com/PipedreamHQ/pipedream/issues/9697; 400 \"\"2023-10-01\" is not a valid version\", of the two that are, 2026-01-11: github.com/directus-labs/extensions/issues/285; of two headers at once, 2026-05-17: github.com/decolua/9router/issues/1227";
const UNKNOWN: &str = "400 \"Extra inputs are not permitted\", 2026-03-13: github.com/NousResearch/hermes-agent/pull/1128";
const EARLIER: &str = "anthropic 0.75.0 (PyPI, read 2026-11-23): types/message_create_params.py";

const KEY: &str = "401 \"x-api-key header is required\", 2026: github.com/n8n-io/n8n/issues/37930; anthropic 0.75.0 (PyPI, read 2026-11-23): _client.py, auth_headers";
const BEARER: &str = "no source found (2026-11-23) that both are refused; anthropic 2.12.0 sends a key as a bearer instead: _client.py, auth_headers";
const USER_ID: &str = "no source found (2026-11-23) for its length; anthropic 0.75.0 gives none: types/metadata_param.py";
/// The greatest depends on the model, and no source has a bound for all.
const NEGATIVE: &str = "400 for -1, measured 2026-09-29 in github.com/aakshintala/fiber (\"Anthropic Messages facts, probed\", #132); 0 is taken: anthropic 2.12.0 (PyPI, 2026-11-23): types/message_create_params.py, max_tokens";
const SMALLEST: &str =
    "anthropic 2.12.0 (PyPI, 2026-11-23): types/thinking_config_enabled_param.py: at least 1024";
const TOP_P: &str = "no source found (2026-11-23) for its bounds; anthropic 0.75.0 only calls it a probability: types/message_create_params.py";

/// What both paths ask of the headers. The gateway is configured with a key of its own, not with a bearer.
pub(crate) const HEADERS: &[WireRule] = &[
    WireRule::new("@content-type", Once, CLIENT),
    WireRule::new("@content-type", Start("application/json"), CLIENT),
    WireRule::new("@x-api-key", Once, KEY).status(401),
    WireRule::new("@authorization", Absent, BEARER)
        .named("beside x-api-key")
        .unverified()
        .broken_by(&[("@authorization", "Bearer k")])
        .status(401),
    WireRule::new("@anthropic-version", Once, VERSION),
    WireRule::new(
        "@anthropic-version",
        OneOf(&["2026-10-21", "2023-06-01", "2023-01-01"]),
        VERSION,
    ),
];

/// The sampling parameters have left the SDK's types, but models up to 4.6 take them.
const NAMES: &[WireRule] = &[
    WireRule::new("", Be(&[Object]), CREATE),
    WireRule::new(
        "",
        Closed(&[
            "billing_policy",
            "cache_control",
            "compaction",
            "container",
            "context_management",
            "diagnostics",
            "fallback_credit_token",
            "fallbacks",
            "inference_geo",
            "max_tokens",
            "mcp_servers",
            "messages",
            "metadata",
            "model",
            "output_config",
            "output_format",
            "safeguards",
            "service_tier",
            "speed",
            "stop_sequences",
            "stream",
            "system",
            "temperature",
            "thinking",
            "thread",
            "tool_choice",
            "tools",
            "top_k",
            "top_p",
            "user_profile_id",
            "workspace_id",
        ]),
        UNKNOWN,
    ),
    WireRule::new("", Needs(&["max_tokens"]), CREATE).named("needs a limit"),
];

const LIMITS: &[WireRule] = &[
    WireRule::new("/max_tokens", Be(&[Integer]), CREATE),
    WireRule::new("/max_tokens", Between(0.0, f64::MAX), NEGATIVE)
        .broken_by(&[("/max_tokens", "-1")]),
    WireRule::new("/stream", Be(&[Flag]), CREATE),
    WireRule::new("/metadata", Be(&[Object]), CREATE),
    WireRule::new("/metadata", Closed(&["user_id"]), CREATE),
    WireRule::new("/metadata/user_id", Be(&[Text, Null]), CREATE),
    WireRule::new("/metadata/user_id", Long(0, 512), USER_ID).unverified(),
    WireRule::new("/service_tier", OneOf(&["auto", "standard_only"]), CREATE),
    WireRule::new("/speed", OneOf(&["standard", "fast"]), CREATE),
    WireRule::new("/stop_sequences", Be(&[List]), CREATE),
    WireRule::new("/stop_sequences/*", Be(&[Text]), CREATE),
    WireRule::new("/temperature", Be(&[Number]), EARLIER),
    WireRule::new("/temperature", Between(0.0, 1.0), EARLIER),
    WireRule::new("/top_p", Be(&[Number]), EARLIER),
    WireRule::new("/top_p", Between(0.0, 1.0), TOP_P).unverified(),
    WireRule::new("/top_k", Be(&[Integer]), EARLIER),
];

/// What both paths share of the body.
#[rustfmt::skip]
pub(crate) const PROMPT: &[WireRule] = &[
    WireRule::new("", Needs(&["model", "messages"]), CREATE),
    WireRule::new("/model", Be(&[Text]), CREATE),
    WireRule::new("/messages", Be(&[List]), CREATE),
    WireRule::new("/messages", Long(1, usize::MAX), CREATE),
    WireRule::new("/messages/*", Be(&[Object]), CREATE),
    WireRule::new("/messages/*", Needs(&["role", "content"]), CREATE),
    WireRule::new("/messages/*", Closed(&["role", "content", "output_config"]), RECORDED),
    WireRule::new("/messages/*/role", OneOf(&["user", "assistant", "system"]), CREATE),
    WireRule::new("/messages/*/content", Be(&[Text, List]), CREATE),
    WireRule::new("/system", Be(&[Text, List]), CREATE),
    WireRule::new("/system/*", Be(&[Object]), CREATE),
    WireRule::new("/system/*", Closed(&["type", "text", "cache_control", "citations"]), CREATE),
    WireRule::new("/system/*", Needs(&["type", "text"]), CREATE),
    WireRule::new("/system/*/type", OneOf(&["text"]), CREATE),
    WireRule::new("/thinking", Be(&[Object]), CREATE),
    WireRule::new("/thinking", Needs(&["type"]), CREATE),
    WireRule::new("/thinking/type", OneOf(&["enabled", "adaptive", "disabled", "between_tools"]), CREATE),
    WireRule::new("/thinking[type=enabled]", Needs(&["budget_tokens"]), BUDGET).named("needs its budget"),
    WireRule::new("/thinking[type=enabled]", Closed(&["type", "budget_tokens", "display", "block_binding"]), CREATE).named("enabled closed"),
    WireRule::new("/thinking[type=adaptive]", Closed(&["type", "display", "block_binding"]), UNKNOWN).named("adaptive closed"),
    WireRule::new("/thinking[type=disabled]", Closed(&["type"]), CREATE).named("disabled closed"),
    WireRule::new("/thinking/display", OneOf(&["summarized", "omitted", "updates"]), CREATE),
    WireRule::new("/thinking/budget_tokens", Be(&[Integer]), CREATE),
    WireRule::new("/thinking/budget_tokens", Between(1_024.0, f64::MAX), SMALLEST)
        .broken_by(&[("/thinking", r#"{"type":"enabled","budget_tokens":1023}"#)]),
    WireRule::new("/output_config", Be(&[Object]), CREATE),
    WireRule::new("/output_config", Closed(&["effort", "format", "task_budget"]), CREATE),
    WireRule::new("/output_config/effort", OneOf(&["low", "medium", "high", "xhigh", "max"]), CREATE),
    WireRule::new("/output_config/format", Closed(&["type", "schema"]), CREATE),
    WireRule::new("/output_config/format", Needs(&["type", "schema"]), CREATE),
    WireRule::new("/output_config/format/type", OneOf(&["json_schema"]), CREATE),
    WireRule::new("/output_config/format/schema", Be(&[Object]), CREATE),
];

/// Claude Code marks messages of the system with an effort of their own.
const RECORDED: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/message_param.py; a request that Claude Code 2 sent: tests/fixtures/clients/claude-code.slug-current.01.json";
const BUDGET: &str = "400 \"thinking.enabled.budget_tokens: Field required\", 2026-03-08: github.com/bug-ops/zeph/issues/1356";
