//! SGLang's `POST /v1/chat/completions`: pydantic models that ignore extra members, and checks of tools.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{fields, open_headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Be, Hold, Long, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "sglang chat",
    vendor: Vendor::SgLang,
    path: "/chat/completions",
    rules: &[
        &open_headers(MODELS),
        &fields(MODELS, 400),
        &unverified_at(shapes(MODELS, 400), UNASKED),
        RULES,
    ],
    largest: None,
    examples: include_str!("sglang.json"),
    plan: OnceLock::new(),
};

const MODELS: &str =
    "sglang 0.5.23 (PyPI, 2026-11-23): srt/entrypoints/openai/protocol.py, ChatCompletionRequest";
const SERVING: &str =
    "sglang 0.5.23 (PyPI, 2026-11-23): srt/entrypoints/openai/serving_chat.py, _validate_request";

/// A call's function may lack both, a tool's type is one text or another, `structural_tag` is one more format, and a system message
/// may be empty.
const UNASKED: &[&str] = &[
    "/messages/*[role=user|system]",
    "/messages/*[role=user|system]/content",
    "/messages/*/tool_calls/*/function",
    "/response_format/type",
];

const RULES: &[WireRule] = &[
    WireRule::new("/messages", Long(1, usize::MAX), SERVING),
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), MODELS),
    WireRule::new("/n", Be(&[Integer]), MODELS),
    WireRule::new("/seed", Be(&[Integer, Null]), MODELS),
    WireRule::new("/frequency_penalty", Be(&[Number]), MODELS),
    WireRule::new("/presence_penalty", Be(&[Number]), MODELS).named("not null"),
    WireRule::new("/stream", Be(&[Flag]), MODELS).named("not null"),
    WireRule::new("/logprobs", Be(&[Flag]), MODELS),
    WireRule::new("/top_logprobs", Be(&[Integer, Null]), MODELS),
    WireRule::new("/stream_options", Be(&[Object, Null]), MODELS),
    WireRule::new("/user", Be(&[Text, Null]), MODELS),
    WireRule::new("/top_k", Be(&[Integer, Null]), MODELS),
    WireRule::new("/min_p", Be(&[Number, Null]), MODELS),
    WireRule::new("/min_tokens", Be(&[Integer]), MODELS),
    WireRule::new("/repetition_penalty", Be(&[Number, Null]), MODELS),
    WireRule::new("/ignore_eos", Be(&[Flag]), MODELS),
    WireRule::new("/skip_special_tokens", Be(&[Flag]), MODELS),
    WireRule::new("/stop_token_ids", Be(&[List, Null]), MODELS),
    WireRule::new("/chat_template_kwargs", Be(&[Object, Null]), MODELS),
    WireRule::new("/parallel_tool_calls", Be(&[Flag]), MODELS),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&[
            "none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max",
        ]),
        MODELS,
    ),
    WireRule::new(
        "/messages/*/role",
        OneOf(&[
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
            "latest_reminder",
            "root",
        ]),
        MODELS,
    ),
    WireRule::new("/messages/*[role=user]", Needs(&["content"]), MODELS),
    WireRule::new("/messages/*[role=user]/content", Be(&[Text, List]), MODELS),
    WireRule::new("/messages/*/reasoning_content", Be(&[Text, Null]), MODELS),
    WireRule::new(
        "/messages/*/tool_calls/*/type",
        OneOf(&["function"]),
        MODELS,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text, Object, Null]),
        MODELS,
    ),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&[
            "text",
            "image_url",
            "video_url",
            "audio_url",
            "input_audio",
            "tool_reference",
        ]),
        MODELS,
    ),
    WireRule::new("/tools/*/type", Be(&[Text]), MODELS),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), MODELS),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), MODELS),
    WireRule::new("", Hold(chosen_tools_exist), SERVING)
        .named("tool_choice needs tools")
        .broken_by(&[("/tools", ""), ("/tool_choice", "\"required\"")]),
];

fn chosen_tools_exist(body: &Value) -> Result<(), String> {
    let choice = &body["tool_choice"];
    let tools = body["tools"].as_array().map(Vec::as_slice);
    let tools = tools.unwrap_or_default();
    if choice == "required" && tools.is_empty() {
        return Err("Tools cannot be empty if tool choice is set to required.".to_owned());
    }
    let Some(name) = choice.pointer("/function/name") else {
        return Ok(());
    };
    if tools.iter().any(|tool| tool["function"]["name"] == *name) {
        return Ok(());
    }
    Err(format!("Tool {name} not found in tools list."))
}
