//! Ollama's `POST /v1/chat/completions`: Go structs that ignore what they do not know.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, open_headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, Null, Number, Text};
use Must::{Be, Hold, OneOf};
use serde_json::Value;

pub(crate) static WIRE: Wire = Wire {
    name: "ollama chat",
    vendor: Vendor::Ollama,
    path: "/chat/completions",
    rules: &[
        &open_headers(SOURCE),
        &unverified_at(fields(SOURCE, 400), &["", "/stop", "/tool_choice"]),
        &unverified_at(shapes(SOURCE, 400), UNASKED),
        RULES,
    ],
    largest: None,
    examples: include_str!("ollama.json"),
    plan: OnceLock::new(),
};

const SOURCE: &str = "github.com/ollama/ollama at 00988753: openai/openai.go, ChatCompletionRequest and FromChatRequest";

/// Go leaves empty what a request does not have, and the conversion asks for none of these.
const UNASKED: &[&str] = &[
    "/messages/*",
    "/messages/*/tool_calls/*",
    "/messages/*/tool_calls/*/function",
    "/tools/*[type=function]",
    "/tools/*/function",
    "/response_format/type",
];

const RULES: &[WireRule] = &[
    WireRule::new("/seed", Be(&[Integer, Null]), SOURCE),
    WireRule::new("/frequency_penalty", Be(&[Number, Null]), SOURCE),
    WireRule::new("/reasoning_effort", Be(&[Text, Null]), SOURCE),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "low", "medium", "high", "max"]),
        SOURCE,
    ),
    WireRule::new(
        "/messages/*/content/*/type",
        OneOf(&["text", "image_url"]),
        SOURCE,
    ),
    WireRule::new(
        "/messages/*/content/*/image_url/url",
        Hold(is_inline),
        SOURCE,
    )
    .broken_by(&[(
        "/messages/1/content/1/image_url/url",
        "\"https://example.com/a.png\"",
    )]),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        SOURCE,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Hold(is_an_object),
        SOURCE,
    )
    .broken_by(&[("/messages/2/tool_calls/0/function/arguments", "\"{\"")]),
];

fn is_inline(url: &Value) -> Result<(), String> {
    let url = url.as_str().unwrap_or_default();
    let kinds = ["jpeg", "jpg", "png", "webp"];
    let known = kinds
        .iter()
        .any(|kind| url.starts_with(&format!("data:image/{kind};base64,")));
    if known || url.starts_with("data:;base64,") {
        Ok(())
    } else {
        Err("invalid image input".to_owned())
    }
}

fn is_an_object(arguments: &Value) -> Result<(), String> {
    let read: Option<Value> = arguments
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    if read.is_some_and(|value| value.is_object()) {
        Ok(())
    } else {
        Err("invalid tool call arguments".to_owned())
    }
}
