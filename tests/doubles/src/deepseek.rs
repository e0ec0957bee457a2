//! DeepSeek's `POST /chat/completions`: unknown fields are ignored, and known ones are deserialised strictly.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_order::calls_are_answered;
use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Object, Text};
use Must::{Be, Hold, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "deepseek chat",
    vendor: Vendor::DeepSeek,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &fields(TYPES, 400),
        &shapes(TYPES, 400),
        RULES,
    ],
    largest: None,
    examples: include_str!("deepseek.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "OpenAI's client, which sends a bearer, with another address: codersera.com/blog/deepseek-v32-api-guide-deepseek-chat-deepseek-reasoner-openai-sdk, 2026-04-27";
const FORMATS: &str = "400 \"This response_format type is unavailable now\" for json_schema, 200 for json_object, measured 2026-09-11: github.com/NousResearch/hermes-agent/issues/102849; text and json_object only, 2026-07-11: github.com/llm-exe/llm-exe/issues/662";
const THINKING: &str = "an object with a type: github.com/NousResearch/hermes-agent/issues/102849, 2026-09-11; fields are deserialised strictly, 2026-05-15: github.com/nesquena/hermes-webui/issues/2297";
const CHOICES: &str = "no source found (2026-11-23) for the words of tool_choice";
const TYPES: &str = "400 \"Failed to deserialize the JSON body into the target type\", 2026-05-15: github.com/nesquena/hermes-webui/issues/2297";
const PICTURES: &str = "400 \"unknown variant `image_url`, expected `text`\", 2026-08-03: github.com/Zoo-Code-Org/Zoo-Code/issues/1106";
const NULLS: &str = "400 \"Input should be a valid boolean\" for tools[0].function.strict of null with V4 Flash in Foundry, 2026-06-11: github.com/microsoft/vscode/issues/316581";
const THOUGHTS: &str = "400 \"The `reasoning_content` in the thinking mode must be passed back to the API\", 2026-04-29: github.com/JohnnyZ93/oai-compatible-copilot/issues/215; 2026-07-04: github.com/qwersyk/Newelle/issues/404";
const ORDER: &str = "400 \"Messages with role 'tool' must be a response to a preceding message with 'tool_calls'\", 2026-08-28: github.com/qwersyk/Newelle/issues/425";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), TYPES).named("needs its model"),
    WireRule::new(
        "/messages/*/role",
        OneOf(&["system", "developer", "user", "assistant", "tool"]),
        TYPES,
    )
    .unverified(),
    WireRule::new("/messages/*/content/*/type", OneOf(&["text"]), PICTURES),
    WireRule::new("/tools/*/function/strict", Be(&[JsonType::Flag]), NULLS),
    WireRule::new("/messages/*[role=tool]", Needs(&["tool_call_id"]), TYPES),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        TYPES,
    ),
    WireRule::new(
        "/response_format/type",
        OneOf(&["text", "json_object"]),
        FORMATS,
    )
    .named("no schemas"),
    WireRule::new("/thinking", Be(&[Object, JsonType::Null]), THINKING),
    WireRule::new(
        "/thinking/type",
        OneOf(&["enabled", "disabled", "adaptive"]),
        THINKING,
    )
    .unverified(),
    WireRule::new(
        "/tool_choice",
        OneOf(&["none", "auto", "required"]),
        CHOICES,
    )
    .unverified(),
    WireRule::new("/messages", Hold(calls_are_answered), ORDER)
        .named("calls are answered")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]"#,
        )]),
    WireRule::new("/messages", Hold(calls_show_their_thoughts), THOUGHTS)
        .named("thoughts come back")
        .when(thinks)
        .broken_by(&[("/messages/2/reasoning_content", "")]),
];

/// Thinking is on unless the request turns it off.
fn thinks(body: &Value) -> bool {
    let named = body["model"]
        .as_str()
        .is_some_and(|model| model.contains("v4"));
    named
        && body
            .pointer("/thinking/type")
            .is_none_or(|kind| kind != "disabled")
}

fn calls_show_their_thoughts(messages: &Value) -> Result<(), String> {
    let mut all = messages.as_array().into_iter().flatten();
    let silent = |message: &&Value| {
        message["tool_calls"].is_array() && !message["reasoning_content"].is_string()
    };
    if all.any(|message| silent(&message)) {
        return Err(
            "The `reasoning_content` in the thinking mode must be passed back to the API."
                .to_owned(),
        );
    }
    Ok(())
}
