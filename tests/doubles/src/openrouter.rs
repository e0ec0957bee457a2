//! OpenRouter's `POST /api/v1/chat/completions`: it passes on what it knows, ignores the rest, and validates types.

use std::sync::OnceLock;

use crate::chat_shapes::{fields, headers, shapes, unverified_at};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Integer, List, Null, Object, Text};
use Must::{Be, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "openrouter chat",
    vendor: Vendor::OpenRouter,
    path: "/chat/completions",
    rules: &[
        &headers(SDK),
        &fields(SDK, 400),
        // `grammar` and `python` are two more.
        &unverified_at(shapes(SDK, 400), &["/response_format/type"]),
        RULES,
    ],
    largest: None,
    examples: include_str!("openrouter.json"),
    plan: OnceLock::new(),
};

const SDK: &str =
    "openrouter 1.3.84 (PyPI, 2026-11-23): components/chatrequest.py and the components it names";

const RULES: &[WireRule] = &[
    WireRule::new("/max_completion_tokens", Be(&[Integer, Null]), SDK)
        .broken_by(&[("/max_completion_tokens", "\"a\"")]),
    WireRule::new("/stream_options", Be(&[Object, Null]), SDK),
    WireRule::new("/reasoning", Be(&[Object]), SDK),
    WireRule::new("/user", Be(&[Text]), SDK),
    WireRule::new("/plugins", Be(&[List]), SDK),
    WireRule::new("/provider", Be(&[Object, Null]), SDK),
    WireRule::new(
        "/messages/*/role",
        OneOf(&["system", "developer", "user", "assistant", "tool"]),
        SDK,
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
        "/messages/*/content/*[type=image_url]",
        Needs(&["image_url"]),
        SDK,
    ),
    WireRule::new("/messages/*/content/*/image_url", Needs(&["url"]), SDK),
    WireRule::new("/tools/*", Needs(&["type"]), SDK),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), SDK),
];
