//! Together's `POST /v1/chat/completions`: values are validated, names that it does not know are ignored.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, Object, Text};
use Must::{Be, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "together chat",
    vendor: Vendor::Together,
    path: "/chat/completions",
    rules: &[
        &headers(SDK),
        // Its types have no null; whether one is refused, no source says.
        &fields(SDK, 400),
        &unverified_at(shapes(SDK, 400), &["/tools/*/function"]),
        RULES,
    ],
    largest: None,
    examples: include_str!("together.json"),
    plan: OnceLock::new(),
};

const SDK: &str = "together 3.1.1 (PyPI, 2026-11-23): types/chat/completion_create_params.py and the params it names; 400 \"Input validation error\", 2026-01-06: github.com/mozilla-ai/any-llm/issues/714";
const OLD_ROLES: &str = "together 3.1.1 (PyPI, 2026-11-23): types/chat/chat_completion_message_param.py knows no developer; a role that it does not know is refused, 2024-04-27: github.com/togethercomputer/together-python/issues/113";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), SDK).named("needs its model"),
    WireRule::new("/n", Be(&[Integer]), SDK),
    WireRule::new("/seed", Be(&[Integer]), SDK),
    WireRule::new("/top_k", Be(&[Integer]), SDK),
    WireRule::new("/reasoning", Be(&[Object]), SDK),
    WireRule::new("/reasoning_effort", OneOf(&["low", "medium", "high"]), SDK),
    WireRule::new(
        "/context_length_exceeded_behavior",
        OneOf(&["truncate", "error"]),
        SDK,
    ),
    WireRule::new(
        "/messages/*/role",
        OneOf(&["system", "user", "assistant", "tool"]),
        OLD_ROLES,
    ),
    WireRule::new(
        "/messages/*[role=tool]",
        Needs(&["content", "tool_call_id"]),
        SDK,
    ),
    WireRule::new("/messages/*/tool_calls/*", Needs(&["id", "type"]), SDK).named("needs its id"),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        SDK,
    ),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "video_url", "audio_url", "input_audio"]),
        SDK,
    ),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), SDK),
    WireRule::new(
        "/response_format[type=json_schema]",
        Needs(&["json_schema"]),
        SDK,
    ),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), SDK),
];
