//! xAI's `POST /v1/chat/completions`: what a model does not support is refused by name, in an error of its own shape.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{fields, headers, shapes, unverified};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, Null, Text};
use Must::{Absent, Be, Between, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "xai chat",
    vendor: Vendor::XAi,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &fields(TYPES, 422),
        &unverified(shapes(NONE, 422)),
        RULES,
    ],
    largest: None,
    examples: include_str!("xai.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "OpenAI's client, which sends a bearer, with base_url https://api.x.ai/v1: glama.ai/mcp/servers/@tetsuo-ai/grok-api-mcp, chat-completions.md at 34e8a2fd, read 2026-11-23";
/// The same service's other surface has the same fields, and this one deserialises them strictly.
const TYPES: &str = "github.com/xai-org/xai-proto at 9700be4b (2026-05-17): proto/xai/api/v1/chat.proto, GetCompletionsRequest, Content, MessageRole, ToolMode; 422 \"Failed to deserialize the JSON body into the target type\", 2026-01-30: github.com/meangrinch/MangaTranslator/issues/48";
const NONE: &str = "no source found (2026-11-23) for what this path asks of it";
const FREQUENCY: &str = "grok-4 refuses frequency_penalty, 2025-08-29: github.com/BerriAI/litellm/pull/14078; both penalties, 2026-07-10: github.com/QuantumNous/new-api/pull/6081";
const PENALTY: &str = "400 \"does not support parameter presencePenalty\" for grok-4.6, 4.5, 4.3 and 4.20, even of 0, 2026-09-15: github.com/miaoxworld/NativeTavern/issues/83";
const EFFORT: &str = "400 \"does not support parameter reasoningEffort\", measured 2026-05-10 for each grok: github.com/NousResearch/hermes-agent/pull/23435; grok-4-latest, 2025-11-05: github.com/BerriAI/litellm/pull/16265";
const STOP: &str = "400 \"Argument not supported on this model: stop\" with grok-4, 2025-09-11: github.com/huggingface/smolagents/pull/1766; reasoning models, 2026-06-20: github.com/langchain-ai/langchain/pull/38335, and those not called non-reasoning, 2026-07-08: github.com/langgenius/dify-official-plugins/pull/3405; still with grok-4.6, 2026-08-31: github.com/mnfst/modelparams.dev/pull/330";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), TYPES)
        .named("needs its model")
        .status(422),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), NONE)
        .status(422)
        .unverified(),
    WireRule::new("/temperature", Between(0.0, 2.0), TYPES),
    WireRule::new("/n", Be(&[Integer, Null]), TYPES).status(422),
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
        TYPES,
    )
    .status(422),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "file"]),
        TYPES,
    )
    .status(422),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        TYPES,
    )
    .status(422),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), TYPES),
    WireRule::new("/reasoning_effort", Absent, EFFORT)
        .when(is_without_effort)
        .broken_by(&[("/model", "\"grok-4\""), ("/reasoning_effort", "\"low\"")]),
    WireRule::new("/presence_penalty", Absent, PENALTY)
        .when(reasons)
        .broken_by(&[("/model", "\"grok-4\""), ("/presence_penalty", "0")]),
    WireRule::new("/frequency_penalty", Absent, FREQUENCY)
        .when(reasons)
        .broken_by(&[("/model", "\"grok-4\""), ("/frequency_penalty", "0")]),
    WireRule::new("/stop", Absent, STOP)
        .when(reasons)
        .broken_by(&[("/model", "\"grok-4\""), ("/stop", "\"x\"")]),
];

fn reasons(body: &Value) -> bool {
    body["model"].as_str().is_some_and(|model| {
        (model.starts_with("grok-4") || model.starts_with("grok-code"))
            && !model.contains("non-reasoning")
    })
}

fn is_without_effort(body: &Value) -> bool {
    matches!(
        body["model"].as_str(),
        Some("grok-4" | "grok-4-latest" | "grok-4-fast-reasoning" | "grok-code-fast-1")
    )
}
