//! Servers that copy a wire and that no `kind` names, as strict as some were reported to be: chat without `null`, messages without the
//! members that only the wire's own service has.

use std::sync::OnceLock;

use crate::anthropic::messages::HEADERS;
use crate::chat_shapes::{fields, headers, shapes};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Object, Text};
use Must::{Absent, Be, Needs};

pub(crate) static CHAT: Wire = Wire {
    name: "compatible chat",
    vendor: Vendor::Compatible,
    path: "/chat/completions",
    rules: &[
        &headers(CLIENT),
        &fields(PYDANTIC, 400),
        &shapes(PYDANTIC, 400),
        NO_NULLS,
    ],
    largest: None,
    examples: include_str!("compatible_chat.json"),
    plan: OnceLock::new(),
};

pub(crate) static MESSAGES: Wire = Wire {
    name: "compatible messages",
    vendor: Vendor::Compatible,
    path: "/messages",
    rules: &[HEADERS, OLDER],
    largest: None,
    examples: include_str!("compatible_messages.json"),
    plan: OnceLock::new(),
};

const CLIENT: &str =
    "OpenAI's client with another address: github.com/github/app/issues/2903, 2026-08-17";
const PYDANTIC: &str = "types as in the SDK, judged by pydantic: github.com/microsoft/vscode/issues/316581, 2026-06-11";
const REFUSAL: &str = "400 \"Extra inputs are not permitted, field: messages[2].refusal, value: None\", 2026-08-17: github.com/github/app/issues/2903";
const STRICT: &str = "400 \"Input should be a valid boolean\" for tools[0].function.strict, 2026-06-11: github.com/microsoft/vscode/issues/316581";
const NEWER: &str = "400 \"Extra inputs are not permitted\" for context_management, 2026: github.com/wusaki0723/Aelios/issues/59";
const EAGER: &str = "only the first-party service takes eager_input_streaming, others refuse the whole request, 2026-09-17: github.com/DotHarness/dotcraft/pull/282";

const NO_NULLS: &[WireRule] = &[
    WireRule::new("/messages/*/refusal", Be(&[Text]), REFUSAL),
    WireRule::new("/messages/*/audio", Be(&[Object]), REFUSAL),
    WireRule::new("/tools/*/function/strict", Be(&[Flag]), STRICT),
];

const OLDER: &[WireRule] = &[
    WireRule::new("", Needs(&["model", "messages", "max_tokens"]), NEWER),
    WireRule::new("/context_management", Absent, NEWER)
        .broken_by(&[("/context_management", r#"{"edits":[]}"#)]),
    WireRule::new("/tools/*/eager_input_streaming", Absent, EAGER)
        .broken_by(&[("/tools/0/eager_input_streaming", "true")]),
];
