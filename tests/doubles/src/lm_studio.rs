//! LM Studio's `POST /v1/chat/completions`: choices of tools and formats of its own, and pictures in the body only.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{fields, open_headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Null, Text};
use Must::{Be, Hold, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "lm studio chat",
    vendor: Vendor::LmStudio,
    path: "/chat/completions",
    rules: &[
        &open_headers(PAGE),
        &unverified_at(
            fields(PAGE, 400),
            &[
                "/max_tokens",
                "/temperature",
                "/top_p",
                "/stop",
                "/presence_penalty",
            ],
        ),
        // Its own two formats stand below.
        &unverified_at(shapes(MESSAGES, 400), &["/response_format/type"]),
        RULES,
    ],
    largest: None,
    examples: include_str!("lm_studio.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "a request without a key, JSON, 2025-05-21 (0.3.15): github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670";
const CHOICE: &str = "400 \"Invalid tool_choice type: 'object'. Supported string values: none, auto, required\", 2025-05-21 (0.3.15): github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670; still 2026-07-28: github.com/can1357/oh-my-pi/issues/6925";
const FORMATS: &str = "400 \"'response_format.type' must be 'json_schema' or 'text'\", 2026-01-07: github.com/LoadShine/tada/issues/16; 2025-11-03: github.com/t59688/arboris-novel/issues/23";
const PICTURES: &str = "400 \"'url' field must be a base64 encoded image\", 2025-09-25 (0.3.27): github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1027; for WebP, 2026-04-04 (0.4.9): github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1752";
const MESSAGES: &str = "400 \"Invalid 'messages' in payload\" for a picture in a tool's message, 2026-04-25: github.com/QwenLM/qwen-code/issues/3616";
const ROLES: &str = "\"'messages' array must only contain objects with a 'role' field that is in [user, assistant, system, tool]\", 2025-11-06: github.com/MangoLion/plotbunni/issues/5";

const RULES: &[WireRule] = &[
    WireRule::new("/tool_choice", Be(&[Text, Null]), CHOICE).named("no named tool"),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), CHOICE),
    WireRule::new(
        "/response_format/type",
        OneOf(&["json_schema", "text"]),
        FORMATS,
    )
    .named("its own two"),
    WireRule::new(
        "/messages/*/role",
        OneOf(&["user", "assistant", "system", "tool"]),
        ROLES,
    ),
    WireRule::new(
        "/messages/*[role=tool]/content/*/type",
        OneOf(&["text"]),
        MESSAGES,
    ),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url"]),
        MESSAGES,
    ),
    WireRule::new(
        "/messages/*/content/*/image_url/url",
        Hold(is_inline),
        PICTURES,
    )
    .broken_by(&[(
        "/messages/1/content/1/image_url/url",
        "\"https://example.com/a.png\"",
    )]),
];

fn is_inline(url: &Value) -> Result<(), String> {
    let url = url.as_str().unwrap_or_default();
    let kinds = ["jpeg", "jpg", "png"];
    let known = kinds
        .iter()
        .any(|kind| url.starts_with(&format!("data:image/{kind};base64,")));
    known
        .then_some(())
        .ok_or_else(|| "'url' field must be a base64 encoded image".to_owned())
}
