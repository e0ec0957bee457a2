//! vLLM's `POST /v1/chat/completions`: pydantic models that allow extra members, and validators across fields.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{fields, open_headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Be, Hold, Long, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "vllm chat",
    vendor: Vendor::Vllm,
    path: "/chat/completions",
    rules: &[
        &open_headers(MODELS),
        &fields(MODELS, 400),
        // `structural_tag` is one more.
        &unverified_at(shapes(MODELS, 400), &["/response_format/type"]),
        RULES,
    ],
    largest: None,
    examples: include_str!("vllm.json"),
    plan: OnceLock::new(),
};

const MODELS: &str =
    "vllm 0.33.0 (PyPI, 2026-11-23): entrypoints/openai/chat_completion/protocol.py";
const PARTS: &str =
    "vllm 0.33.0 (PyPI, 2026-11-23): renderers/chat_utils/chat_message.py, MM_PARSER_MAP";

const RULES: &[WireRule] = &[
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), MODELS),
    WireRule::new("/n", Be(&[Integer, Null]), MODELS),
    WireRule::new("/seed", Be(&[Integer, Null]), MODELS),
    WireRule::new("/top_k", Be(&[Integer, Null]), MODELS),
    WireRule::new("/min_p", Be(&[Number, Null]), MODELS),
    WireRule::new("/min_tokens", Be(&[Integer]), MODELS),
    WireRule::new("/repetition_penalty", Be(&[Number, Null]), MODELS),
    WireRule::new("/ignore_eos", Be(&[Flag]), MODELS),
    WireRule::new("/stop_token_ids", Be(&[List, Null]), MODELS),
    WireRule::new("/chat_template_kwargs", Be(&[Object, Null]), MODELS),
    WireRule::new("/parallel_tool_calls", Be(&[Flag, Null]), MODELS),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        MODELS,
    ),
    WireRule::new("/tools", Long(1, usize::MAX), MODELS),
    WireRule::new("/tools/*/function/parameters", Be(&[Object, Null]), MODELS),
    WireRule::new("/tools/*/type", OneOf(&["function"]), MODELS),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), MODELS),
    WireRule::new(
        "/response_format[type=json_schema]",
        Needs(&["json_schema"]),
        MODELS,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        MODELS,
    ),
    WireRule::new(
        "/messages/*/content/*/type",
        OneOf(&[
            "text",
            "thinking",
            "input_text",
            "output_text",
            "input_image",
            "image_url",
            "image_embeds",
            "audio_embeds",
            "video_embeds",
            "prompt_embeds",
            "image_pil",
            "audio_url",
            "input_audio",
            "refusal",
            "video_url",
            "tool_reference",
        ]),
        PARTS,
    ),
    WireRule::new("", Hold(options_of_a_stream), MODELS)
        .named("stream_options needs stream")
        .broken_by(&[("/stream", "false")]),
    WireRule::new("", Hold(logprobs_with_top), MODELS)
        .named("top_logprobs needs logprobs")
        .broken_by(&[("/logprobs", "false")]),
    WireRule::new("", Hold(choice_of_tools), MODELS)
        .named("tool_choice needs tools")
        .broken_by(&[("/tools", "")]),
];

fn options_of_a_stream(body: &Value) -> Result<(), String> {
    let options = body["stream_options"]
        .as_object()
        .is_some_and(|all| !all.is_empty());
    if options && body["stream"] != true {
        return Err("Stream options can only be defined when `stream=True`.".to_owned());
    }
    Ok(())
}

fn logprobs_with_top(body: &Value) -> Result<(), String> {
    if body["top_logprobs"].as_i64().unwrap_or(0) != 0 && body["logprobs"] != true {
        return Err("when using `top_logprobs`, `logprobs` must be set to true.".to_owned());
    }
    Ok(())
}

fn choice_of_tools(body: &Value) -> Result<(), String> {
    let choice = &body["tool_choice"];
    if !choice.is_null() && choice != "none" && body["tools"].is_null() {
        return Err("When using `tool_choice`, `tools` must be set.".to_owned());
    }
    Ok(())
}
