//! Gemini's OpenAI surface, `POST /v1beta/openai/chat/completions`: a protobuf of known names in front of the native service.

use std::sync::OnceLock;

use serde_json::Value;

use crate::chat_shapes::{fields, headers, shapes, unverified};
use crate::rule::{JsonType, Must, WireRule, word};
use crate::seal::was_thought;
use crate::{Vendor, Wire};

use JsonType::{Object, Text};
use Must::{Absent, Be, Between, Closed, Hold, Long, Needs, OneOf, Spelt};

pub(crate) static WIRE: Wire = Wire {
    name: "gemini chat",
    vendor: Vendor::Gemini,
    path: "/chat/completions",
    rules: &[
        &headers(PAGE),
        &unverified(fields(NONE, 400)),
        &unverified(shapes(NONE, 400)),
        RULES,
    ],
    largest: None,
    examples: include_str!("gemini.json"),
    plan: OnceLock::new(),
};

const PAGE: &str =
    "ai.google.dev/gemini-api/docs/openai, read 2026-11-23: a bearer and a JSON body";
/// Its page could be read only in part, and no SDK has these shapes.
const NONE: &str = "no source found (2026-11-23) for what this surface asks of it";
const WARMTH: &str =
    "google-genai 3.4.0 (PyPI, 2026-11-23): types.py, GenerationConfig: (0.0, 2.0]";
const NULLS: &str = "400 \"Value is not a string: null\" for an assistant's refusal, 2026-07-23: github.com/github/copilot-sdk/issues/2061";
const EFFORT: &str = "400 \"Invalid reasoning_effort: minimal. Valid values are: high, low, medium, none\", 2026-01-26: github.com/ctrl-space-labs/gendox-core/issues/480; minimal is taken since, 2026-08-10: github.com/HKUDS/DeepTutor/pull/809";
const UNKNOWN: &str = "400 \"Unknown name … Cannot find field\" for top_k, frequency_penalty, reasoning, 2025-08-04: github.com/MinLL/SkyrimNet-GamePlugin/issues/77; reasoning, 2026-01-10: github.com/SuzumiyaAkizuki/ComfyUI-NewBie-LLM-Formatter/issues/3";
const STORED: &str = "400 \"Unknown name \"store\": Cannot find field.\", 2026-04-12: github.com/liliMozi/openhanako/issues/394; of metadata too, 2025-05-23: github.com/ed-donner/agents/issues/45";
const CACHE_KEY: &str = "400 \"Unknown name \"prompt_cache_key\": Cannot find field\", measured 2026-08-21: github.com/liliMozi/openhanako/issues/2494";
const SIGNATURE: &str = "400 \"Function call is missing a thought_signature in functionCall parts\" on this surface, 2026-09-10: github.com/securo-finance/securo/issues/884; extra_content comes back, 2026-06-09: github.com/tinyhumansai/openhuman/issues/3548";
const CORRUPTED: &str = "400 \"Corrupted thought signature.\", 2025-11-20: github.com/google-gemini/gemini-cli/issues/13467; where models change within a conversation, 2026-01-22: github.com/lbjlaq/Antigravity-Manager/issues/970; \"Invalid thought signature.\" from 3.7 on, 2026-08-29: github.com/lbjlaq/Antigravity-Manager/pull/3342; a word that is always taken, 2026-03-24: github.com/musistudio/claude-code-router/pull/1291";
const NAMING: &str = "google-genai 3.4.0 (PyPI, 2026-11-23): types.py, FunctionDeclaration";

const RULES: &[WireRule] = &[
    WireRule::new("", Needs(&["model"]), NONE)
        .unverified()
        .named("needs its model"),
    // The whole list of known names is published nowhere: these are known to be refused.
    WireRule::new("/prompt_cache_key", Absent, CACHE_KEY)
        .broken_by(&[("/prompt_cache_key", "\"k\"")]),
    WireRule::new("/store", Absent, STORED).broken_by(&[("/store", "false")]),
    WireRule::new("/metadata", Absent, STORED).broken_by(&[("/metadata", "{}")]),
    WireRule::new("/frequency_penalty", Absent, UNKNOWN)
        .broken_by(&[("/frequency_penalty", "0.5")]),
    WireRule::new("/top_k", Absent, UNKNOWN).broken_by(&[("/top_k", "5")]),
    WireRule::new("/messages/*/refusal", Be(&[Text]), NULLS),
    WireRule::new("/reasoning", Absent, UNKNOWN).broken_by(&[("/reasoning", "{}")]),
    WireRule::new("/prompt_cache_retention", Absent, UNKNOWN)
        .unverified()
        .broken_by(&[("/prompt_cache_retention", "\"24h\"")]),
    WireRule::new("/safety_identifier", Absent, UNKNOWN)
        .unverified()
        .broken_by(&[("/safety_identifier", "\"u\"")]),
    WireRule::new("/service_tier", Absent, UNKNOWN)
        .unverified()
        .broken_by(&[("/service_tier", "\"default\"")]),
    WireRule::new("/temperature", Between(0.0, 2.0), WARMTH),
    WireRule::new(
        "/reasoning_effort",
        OneOf(&["none", "minimal", "low", "medium", "high"]),
        EFFORT,
    ),
    WireRule::new(
        "/messages/*/role",
        OneOf(&[
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
        ]),
        NONE,
    )
    .unverified(),
    WireRule::new("/messages/*[role=tool]", Needs(&["tool_call_id"]), NONE).unverified(),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        NONE,
    )
    .unverified(),
    WireRule::new(
        "/messages/*[role=user]/content/*/type",
        OneOf(&["text", "image_url", "input_audio"]),
        NONE,
    )
    .unverified(),
    WireRule::new(
        "/messages/*/content/*[type=image_url]",
        Needs(&["image_url"]),
        NONE,
    )
    .unverified(),
    WireRule::new("/messages/*/content/*/image_url", Be(&[Object]), NONE).unverified(),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), NAMING),
    WireRule::new("/tools/*/function/name", Long(1, 128), NAMING),
    WireRule::new("/tools/*/function/name", Spelt(name), NAMING),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), NONE).unverified(),
    WireRule::new("/response_format/json_schema", Needs(&["schema"]), NONE).unverified(),
    WireRule::new("/stream_options", Closed(&["include_usage"]), NONE).unverified(),
    WireRule::new(
        "/messages/*/tool_calls/*/extra_content/google/thought_signature",
        Hold(was_thought),
        CORRUPTED,
    )
    .named("signed here")
    .when(is_gemini_3)
    .broken_by(&[(
        "/messages/2/tool_calls/0/extra_content/google/thought_signature",
        "\"c2lnbmVk\"",
    )]),
    WireRule::new("/messages", Hold(calls_are_signed), SIGNATURE)
        .named("calls are signed")
        .when(is_gemini_3)
        .broken_by(&[("/messages/2/tool_calls/0/extra_content", "")]),
];

fn name(character: char) -> bool {
    word(character) || matches!(character, '.' | ':')
}

fn is_gemini_3(body: &Value) -> bool {
    body["model"]
        .as_str()
        .is_some_and(|model| model.contains("gemini-3"))
}

/// Within the current turn, that is since the user last spoke, the first call of each step carries its signature.
fn calls_are_signed(messages: &Value) -> Result<(), String> {
    let all = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let spoke = all.iter().rposition(|message| message["role"] == "user");
    let turn = all.get(spoke.unwrap_or(0)..).unwrap_or_default();
    let firsts = turn
        .iter()
        .filter_map(|message| message.pointer("/tool_calls/0"));
    for call in firsts {
        let signature = call.pointer("/extra_content/google/thought_signature");
        if signature.and_then(Value::as_str).is_none_or(str::is_empty) {
            let name = &call["function"]["name"];
            return Err(format!(
                "Function call is missing a thought_signature: {name}"
            ));
        }
    }
    Ok(())
}
