//! xAI's `POST /v1/chat/completions`: what a model does not support is refused by name, in an error of its own shape.

use serde_json::Value;

use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{Kind, Must, Rule};
use crate::{Vendor, Wire};

use Kind::{Integer, Null, Text};
use Must::{Absent, Be, Between, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "xai chat",
    vendor: Vendor::XAi,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &fields(PAGE, 422),
        &shapes(PAGE, 422),
        RULES,
    ],
    examples: include_str!("xai.json"),
};

const PAGE: &str = "docs.x.ai/developers/rest-api-reference/inference/chat, November 2026";
const PENALTY: &str = "400 \"does not support parameter presencePenalty\" for grok-4.6 to grok-4.20, 2026-09-15: github.com/miaoxworld/NativeTavern/issues/83";
const EFFORT: &str = "400 \"does not support parameter reasoningEffort\" for grok-4, 2026-06-30: github.com/omnigent-ai/omnigent/issues/1686";
const STOP: &str = "docs.x.ai/docs/guides/reasoning, November 2026: presencePenalty, frequencyPenalty and stop are errors at reasoning models";

const RULES: &[Rule] = &[
    Rule::new("", Needs(&["model"]), PAGE)
        .named("needs its model")
        .status(422),
    Rule::new("/max_completion_tokens", Be(&[Integer, Null]), PAGE).status(422),
    Rule::new("/temperature", Between(0.0, 2.0), PAGE),
    Rule::new("/n", Be(&[Integer, Null]), PAGE).status(422),
    Rule::new(
        "/messages/*/role",
        OneOf(&[
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
        ]),
        PAGE,
    )
    .status(422),
    Rule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "file"]),
        PAGE,
    )
    .status(422),
    Rule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        PAGE,
    )
    .status(422),
    Rule::new("/tool_choice", OneOf(&["none", "auto", "required"]), PAGE),
    Rule::new("/reasoning_effort", Absent, EFFORT)
        .when(is_without_effort)
        .broken_by(&[("/model", "\"grok-4\""), ("/reasoning_effort", "\"low\"")]),
    Rule::new("/presence_penalty", Absent, PENALTY)
        .when(is_grok_4)
        .broken_by(&[("/model", "\"grok-4\""), ("/presence_penalty", "0")]),
    Rule::new("/frequency_penalty", Absent, STOP)
        .when(is_grok_4)
        .broken_by(&[("/model", "\"grok-4\""), ("/frequency_penalty", "0")]),
    Rule::new("/stop", Absent, STOP)
        .when(is_grok_4)
        .unverified()
        .broken_by(&[("/model", "\"grok-4\""), ("/stop", "\"x\"")]),
];

fn is_grok_4(body: &Value) -> bool {
    body["model"]
        .as_str()
        .is_some_and(|model| model.starts_with("grok-4") && model != "grok-4.3")
}

fn is_without_effort(body: &Value) -> bool {
    matches!(
        body["model"].as_str(),
        Some("grok-4" | "grok-4-latest" | "grok-4-fast-reasoning" | "grok-code-fast-1")
    )
}
