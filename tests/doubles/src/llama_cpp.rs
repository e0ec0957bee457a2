//! `POST /v1/chat/completions` of llama.cpp's own server, for machines on which the real one cannot be built.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::open_headers;
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{List, Null, Object, Text};
use Must::{Be, Hold, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "llama.cpp chat",
    vendor: Vendor::LlamaCpp,
    path: "/chat/completions",
    rules: &[&open_headers(SERVER), RULES],
    largest: None,
    examples: include_str!("llama_cpp.json"),
    plan: OnceLock::new(),
};

const SERVER: &str = "llama.cpp in llama-cpp-python 0.3.36 (PyPI, 2026-11-23): tools/server/server-common.cpp, oaicompat_chat_params_parse";
const CHAT: &str = "llama.cpp in llama-cpp-python 0.3.36 (PyPI, 2026-11-23): common/chat.cpp, common_chat_msgs_parse_oaicompat and common_chat_tools_parse_oaicompat";

/// What `chat.cpp` throws is no `invalid_argument` any more when it leaves, and so a 500.
const RULES: &[WireRule] = &[
    WireRule::new("", Be(&[Object]), SERVER),
    WireRule::new("", Needs(&["messages"]), SERVER),
    WireRule::new("/messages", Be(&[List]), SERVER),
    WireRule::new("/messages/*", Be(&[Object]), CHAT).status(500),
    WireRule::new("/messages/*", Needs(&["role"]), CHAT).status(500),
    WireRule::new(
        "/messages/*[role=system|user|tool]",
        Needs(&["content"]),
        SERVER,
    ),
    WireRule::new("/messages/*/content", Be(&[Text, List, Null]), SERVER),
    WireRule::new(
        "/messages/*/content/*/type",
        OneOf(&[
            "text",
            "image_url",
            "input_audio",
            "input_video",
            "video_url",
        ]),
        SERVER,
    ),
    WireRule::new("/messages/*/content/*", Needs(&["type"]), CHAT).status(500),
    WireRule::new(
        "/messages/*/tool_calls/*",
        Needs(&["type", "function"]),
        CHAT,
    )
    .status(500),
    WireRule::new("/messages/*/tool_calls/*/type", OneOf(&["function"]), CHAT).status(500),
    WireRule::new("/messages/*/tool_calls/*/function", Needs(&["name"]), CHAT).status(500),
    WireRule::new("/tools", Be(&[List]), CHAT).status(500),
    WireRule::new("/tools/*", Needs(&["type", "function"]), CHAT).status(500),
    WireRule::new("/tools/*/type", OneOf(&["function"]), CHAT).status(500),
    WireRule::new("/tool_choice", OneOf(&["auto", "none", "required"]), CHAT),
    WireRule::new(
        "/response_format/type",
        OneOf(&["", "text", "json_object", "json_schema"]),
        SERVER,
    ),
    WireRule::new("/messages", Hold(one_last_assistant), SERVER)
        .named("one assistant message at the end")
        .broken_by(&[
            ("/messages/-", r#"{"role":"assistant","content":"a"}"#),
            ("/messages/-", r#"{"role":"assistant","content":"b"}"#),
        ]),
    WireRule::new("", Hold(top_with_logprobs), SERVER)
        .named("top_logprobs needs logprobs")
        .broken_by(&[("/top_logprobs", "2")]),
];

fn one_last_assistant(messages: &Value) -> Result<(), String> {
    let all = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let last = all
        .iter()
        .rev()
        .take_while(|message| message["role"] == "assistant");
    if last.count() > 1 {
        return Err("Cannot have 2 or more assistant messages at the end of the list.".to_owned());
    }
    Ok(())
}

fn top_with_logprobs(body: &Value) -> Result<(), String> {
    if !body["top_logprobs"].is_null() && body["logprobs"] != true {
        return Err("top_logprobs requires logprobs to be set to true".to_owned());
    }
    Ok(())
}
