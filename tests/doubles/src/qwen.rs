//! Model Studio's `POST /compatible-mode/v1/chat/completions`: names that it does not know are ignored, and thinking refuses forced tools.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_order::calls_are_answered;
use crate::chat_shapes::{fields, headers, shapes, unverified};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Flag, Null, Text};
use Must::{Be, Between, Hold, Needs};

pub(crate) static WIRE: Wire = Wire {
    name: "qwen chat",
    vendor: Vendor::Qwen,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &fields(PAGE, 400),
        &unverified(shapes(NONE, 400)),
        RULES,
    ],
    largest: None,
    examples: include_str!("qwen.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "a bearer, JSON and the fields of OpenAI's path, answered and refused as the thread shows, 2026-04-24: github.com/cloudwego/eino/issues/994";
const NONE: &str = "no source found (2026-11-23) for what this path asks of it";
const FORCED: &str = "400 \"The tool_choice parameter does not support being set to required or object in thinking mode\", qwen3.5-plus, 2026-04-24: github.com/cloudwego/eino/issues/994; qwen3.7-plus, 2026-06-19: github.com/can1357/oh-my-pi/issues/886";
const FORMATS: &str = "400 \"Json mode response is not supported when enable_thinking is true\", 2025-08-04: github.com/presenton/presenton/issues/184; no source found for the models of 2026";
const LIMIT: &str = "a limit above 65,536 is refused on its messages path, 2026-05-04: github.com/NousResearch/hermes-agent/pull/19624; no source found for this path";
const ORDER: &str = "400 \"messages with role \\\"tool\\\" must be a response to a preceeding message with \\\"tool_calls\\\"\", 2026-03-13: github.com/QwenLM/qwen-code/issues/2360; \"must be followed by tool messages\", 2025-08-13: github.com/QwenLM/qwen-code/issues/315";
const USER: &str = "400 \"The input messages do not contain elements with the role of user\", 2025-11-17: github.com/langfuse/langfuse/issues/10513";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), PAGE).named("needs its model"),
    WireRule::new("/enable_thinking", Be(&[Flag, Null]), NONE).unverified(),
    WireRule::new("/max_tokens", Between(1.0, 65_536.0), LIMIT).unverified(),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        NONE,
    )
    .unverified(),
    WireRule::new("/tool_choice", Hold(nothing_forced), FORCED)
        .named("forced while it thinks")
        .when(thinks)
        .broken_by(&[
            ("/enable_thinking", "true"),
            ("/tool_choice", "\"required\""),
        ]),
    WireRule::new("/response_format/type", Hold(no_json), FORMATS)
        .named("JSON while it thinks")
        .when(thinks)
        .unverified()
        .broken_by(&[
            ("/enable_thinking", "true"),
            ("/response_format", r#"{"type":"json_object"}"#),
        ]),
    WireRule::new("/messages", Hold(has_a_user), USER)
        .named("somebody asks")
        .broken_by(&[("/messages", r#"[{"role":"system","content":"a"}]"#)]),
    WireRule::new("/messages", Hold(calls_are_answered), ORDER)
        .named("calls are answered")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]"#,
        )]),
];

/// The models of 2026 think unless the request turns it off.
fn thinks(body: &Value) -> bool {
    body["enable_thinking"] != false
}

fn nothing_forced(choice: &Value) -> Result<(), String> {
    if choice == "required" || choice.is_object() {
        return Err("The tool_choice parameter does not support being set to required or object in thinking mode".to_owned());
    }
    Ok(())
}

fn no_json(kind: &Value) -> Result<(), String> {
    if kind == "text" {
        return Ok(());
    }
    Err("Json mode response is not supported when enable_thinking is true".to_owned())
}

fn has_a_user(messages: &Value) -> Result<(), String> {
    let mut all = messages.as_array().into_iter().flatten();
    if all.any(|message| message["role"] == "user") {
        return Ok(());
    }
    Err("The input messages do not contain elements with the role of user".to_owned())
}
