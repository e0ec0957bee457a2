//! Moonshot's `POST /v1/chat/completions`: models that think refuse other samplings, forced tools, and calls without their thoughts.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_order::calls_are_answered;
use crate::chat_shapes::{fields, headers, shapes, unverified};
use crate::rule::{JsonType, Must, WireRule};
use crate::{Vendor, Wire};

use JsonType::{Null, Object, Text};
use Must::{Be, Hold, Needs, OneOf};

pub(crate) static WIRE: Wire = Wire {
    name: "moonshot chat",
    vendor: Vendor::Moonshot,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &fields(TYPES, 400),
        &unverified(shapes(NONE, 400)),
        RULES,
    ],
    largest: None,
    examples: include_str!("moonshot.json"),
    plan: OnceLock::new(),
};

const PAGE: &str = "OpenAI's client, which sends a bearer, with base_url https://api.moonshot.ai/v1: github.com/NousResearch/hermes-agent/issues/9125, 2026-04-19";
const TYPES: &str = "\"the thinking field in the request (expected type object) is illegal, and bool is not acceptable\", 2025-12-30: github.com/LionSR/TeXRA/pull/1905; its OpenAPI document, derived 2026-10-13: github.com/api-evangelist/moonshot-ai, json-schema/moonshot-ai-kimi-k2-chat-request-schema.json";
const NONE: &str = "no source found (2026-11-23) for what this path asks of it";
const TEMPERATURE: &str = "400 \"invalid temperature: only 1 is allowed for this model\" for 0 and 0.6 with kimi-k2.6, measured 2026-05-17: github.com/kodustech/kodus-ai/pull/1120";
const TOP_P: &str = "top_p only 0.95 with kimi-k2.5, 2026-02-13: github.com/iOfficeAI/gemini-cli-pro/pull/30; no source found for kimi-k2.6";
const FORCED: &str = "400 \"tool_choice 'required' is incompatible with thinking enabled\", 2026-04-25: github.com/AstrBotDevs/AstrBot/issues/7805; a named tool with kimi-k2.6, 2026-05-14: github.com/can1357/oh-my-pi/issues/1077";
const THOUGHTS: &str = "400 \"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2\", 2026-03-18: github.com/continuedev/continue/issues/11600; kimi-k2.6, 2026-04-26: github.com/n8n-io/n8n/issues/29142";
const BOTH: &str = "400 \"cannot specify both 'thinking' and 'reasoning_effort'\" with kimi-k2.6, measured 2026-05-20: github.com/HKUDS/nanobot/issues/3939";
const ORDER: &str = "no source found (2026-11-23) that Moonshot refuses a call without its result";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), TYPES).named("needs its model"),
    WireRule::new("/thinking", Be(&[Object, Null]), TYPES),
    WireRule::new("/thinking/type", OneOf(&["enabled", "disabled"]), TYPES),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        NONE,
    )
    .unverified(),
    WireRule::new("/temperature", Hold(only_one), TEMPERATURE)
        .named("kimi-k2")
        .when(thinks)
        .broken_by(&[("/model", "\"kimi-k2.6\""), ("/temperature", "0.6")]),
    WireRule::new("/top_p", Hold(only_95), TOP_P)
        .named("kimi-k2")
        .when(thinks)
        .unverified()
        .broken_by(&[("/model", "\"kimi-k2.6\""), ("/top_p", "0.5")]),
    WireRule::new("/tool_choice", Hold(nothing_forced), FORCED)
        .named("forced while it thinks")
        .when(thinks)
        .broken_by(&[
            ("/model", "\"kimi-k2.6\""),
            ("/tool_choice", "\"required\""),
        ]),
    WireRule::new("", Hold(one_switch), BOTH)
        .named("thinking or reasoning_effort")
        .broken_by(&[
            ("/thinking", r#"{"type":"enabled"}"#),
            ("/reasoning_effort", "\"low\""),
        ]),
    WireRule::new("/messages", Hold(calls_are_answered), ORDER)
        .named("calls are answered")
        .unverified()
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"x"}]"#,
        )]),
    WireRule::new("/messages", Hold(calls_show_their_thoughts), THOUGHTS)
        .named("thoughts come back")
        .when(thinks)
        .broken_by(&[("/model", "\"kimi-k2.6\"")]),
];

/// Thinking is on unless the request turns it off.
fn thinks(body: &Value) -> bool {
    let model = body["model"].as_str().unwrap_or_default();
    let kind = body.pointer("/thinking/type");
    (model.starts_with("kimi-k2.5") || model.starts_with("kimi-k2.6"))
        && kind.is_none_or(|kind| kind != "disabled")
}

fn only(value: &Value, allowed: f64) -> Result<(), String> {
    let fits = value.is_null() || value.as_f64() == Some(allowed);
    fits.then_some(())
        .ok_or_else(|| format!("invalid: only {allowed} is allowed for this model"))
}

fn only_one(temperature: &Value) -> Result<(), String> {
    only(temperature, 1.0)
}

fn only_95(top_p: &Value) -> Result<(), String> {
    only(top_p, 0.95)
}

fn nothing_forced(choice: &Value) -> Result<(), String> {
    if choice == "required" || choice.is_object() {
        return Err(format!(
            "tool_choice {choice} is incompatible with thinking enabled"
        ));
    }
    Ok(())
}

fn one_switch(body: &Value) -> Result<(), String> {
    if body["thinking"].is_object() && body["reasoning_effort"].is_string() {
        return Err("cannot specify both 'thinking' and 'reasoning_effort'".to_owned());
    }
    Ok(())
}

fn calls_show_their_thoughts(messages: &Value) -> Result<(), String> {
    let mut all = messages.as_array().into_iter().flatten();
    let silent = |message: &Value| {
        message["tool_calls"].is_array() && !message["reasoning_content"].is_string()
    };
    match all.position(silent) {
        Some(index) => Err(format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
        )),
        None => Ok(()),
    }
}
