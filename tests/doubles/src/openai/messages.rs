//! Messages of the chat wire and the parts of their content.

use serde_json::Value;

use super::tools::TOOL;
use crate::rule::{JsonType, Must, WireRule, word};

use JsonType::{List, Null, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt, Start};

const MESSAGE: &str =
    "openai 3.54.0 (PyPI, 2026-11-23): types/chat/chat_completion_*_message_param.py";
/// Agent libraries that began with the cookbook's example send it, and OpenAI serves it.
const TOOL_NAME: &str = "200 for `name` in a tool's message, tried on 2026-09-05: github.com/experientiallabs/experiential/pull/803; other members: openai 3.54.0 (PyPI, 2026-11-23): types/chat/chat_completion_tool_message_param.py";
/// Who puts a streamed call together keeps it.
const CALL_INDEX: &str = "`index` in a message's call was refused for half an hour in April 2024, and served before and since: github.com/RageAgainstThePixel/OpenAI-DotNet/issues/278, github.com/songquanpeng/one-api/issues/1319";
const PART: &str =
    "openai 3.54.0 (PyPI, 2026-11-23): types/chat/chat_completion_content_part_*_param.py";

/// The messages, by role. Vendors that copied the wire take the same shapes.
pub(crate) const MESSAGES: &[WireRule] = &[
    WireRule::new("/messages/*", Be(&[Object]), MESSAGE),
    WireRule::new("/messages/*", Needs(&["role"]), MESSAGE),
    WireRule::new(
        "/messages/*/role",
        OneOf(&[
            "developer",
            "system",
            "user",
            "assistant",
            "tool",
            "function",
        ]),
        MESSAGE,
    ),
    WireRule::new(
        "/messages/*[role=system|developer|user|tool|function]",
        Needs(&["content"]),
        MESSAGE,
    ),
    WireRule::new(
        "/messages/*[role=system|developer|user|tool]/content",
        Be(&[Text, List]),
        MESSAGE,
    ),
    WireRule::new(
        "/messages/*[role=assistant]/content",
        Be(&[Text, List, Null]),
        MESSAGE,
    ),
    WireRule::new("/messages/*[role=assistant]", Hold(says_something), MESSAGE)
        .named("content or calls")
        .broken_by(&[(
            "/messages",
            r#"[{"role":"user","content":"a"},{"role":"assistant"},{"role":"user","content":"b"}]"#,
        )]),
    WireRule::new(
        "/messages/*[role=system|developer|user]",
        Closed(&["role", "content", "name"]),
        MESSAGE,
    ),
    WireRule::new(
        "/messages/*[role=assistant]",
        Closed(&[
            "role",
            "content",
            "name",
            "audio",
            "function_call",
            "refusal",
            "tool_calls",
            "annotations",
        ]),
        MESSAGE,
    ),
    WireRule::new(
        "/messages/*[role=tool]",
        Closed(&["role", "content", "tool_call_id", "name"]),
        TOOL_NAME,
    ),
    WireRule::new("/messages/*[role=tool]", Needs(&["tool_call_id"]), MESSAGE)
        .named("needs its call"),
    WireRule::new("/messages/*[role=tool]/tool_call_id", Be(&[Text]), MESSAGE),
    WireRule::new("/messages/*/name", Be(&[Text]), MESSAGE),
    WireRule::new(
        "/messages/*[role=assistant]/refusal",
        Be(&[Text, Null]),
        MESSAGE,
    ),
    WireRule::new("/messages/*/tool_calls", Be(&[List]), MESSAGE),
    WireRule::new("/messages/*/tool_calls", Long(1, 128), DOCUMENT_CALLS).unverified(),
    WireRule::new("/messages/*/tool_calls/*", Needs(&["id", "type"]), TOOL),
    WireRule::new("/messages/*/tool_calls/*/id", Be(&[Text]), TOOL),
    WireRule::new("/messages/*/tool_calls/*/id", Long(1, 40), CALL_ID).unverified(),
    WireRule::new(
        "/messages/*/tool_calls/*/type",
        OneOf(&["function", "custom"]),
        TOOL,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*[type=function]",
        Needs(&["function"]),
        TOOL,
    )
    .named("needs its function"),
    WireRule::new(
        "/messages/*/tool_calls/*[type=function]",
        Closed(&["id", "type", "function", "index"]),
        CALL_INDEX,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function",
        Needs(&["name", "arguments"]),
        TOOL,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function",
        Closed(&["name", "arguments"]),
        TOOL,
    ),
    WireRule::new(
        "/messages/*/tool_calls/*/function/arguments",
        Be(&[Text]),
        TOOL,
    ),
    WireRule::new("/messages/*/tool_calls/*/function/name", Be(&[Text]), TOOL),
    WireRule::new("/messages/*/tool_calls/*/function/name", Long(1, 64), TOOL),
    WireRule::new("/messages/*/tool_calls/*/function/name", Spelt(word), TOOL),
];

const DOCUMENT_CALLS: &str = "at most as many calls as tools (128), and none is left out rather than empty, as for tools: github.com/JetBrains/koog/issues/786, 2025-09-12";
const CALL_ID: &str = "400 \"string too long\", 2026-01-13: github.com/openclaw/openclaw/pull/875; a longer id was accepted on 2026-07-14: github.com/vercel/ai/pull/17233";

/// The parts of a message's content.
pub(crate) const PARTS: &[WireRule] = &[
    WireRule::new("/messages/*/content/*", Be(&[Object]), PART),
    WireRule::new("/messages/*/content/*", Needs(&["type"]), PART),
    WireRule::new("/messages/*[role=user]/content/*/type", OneOf(&["text", "image_url", "input_audio", "file"]), PART),
    WireRule::new("/messages/*[role=system|developer|tool]/content/*/type", OneOf(&["text"]), PART),
    WireRule::new("/messages/*[role=assistant]/content/*/type", OneOf(&["text", "refusal"]), PART),
    WireRule::new("/messages/*/content/*[type=text]", Closed(&["type", "text", "prompt_cache_breakpoint"]), PART),
    WireRule::new("/messages/*/content/*[type=text]", Needs(&["text"]), PART).named("needs its text"),
    WireRule::new("/messages/*/content/*[type=text]/text", Be(&[Text]), PART),
    WireRule::new("/messages/*/content/*[type=image_url]", Closed(&["type", "image_url", "prompt_cache_breakpoint"]), PART),
    WireRule::new("/messages/*/content/*[type=image_url]", Needs(&["image_url"]), PART).named("needs its picture"),
    WireRule::new("/messages/*/content/*/image_url", Be(&[Object]), PART),
    WireRule::new("/messages/*/content/*/image_url", Closed(&["url", "detail"]), PART),
    WireRule::new("/messages/*/content/*/image_url", Needs(&["url"]), PART),
    WireRule::new("/messages/*/content/*/image_url/url", Be(&[Text]), PART),
    WireRule::new("/messages/*/content/*/image_url/url", Hold(is_a_picture), PICTURES)
        .broken_by(&[("/messages", r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AAAA"}}]}]"#)]),
    WireRule::new("/messages/*/content/*/image_url/detail", OneOf(&["auto", "low", "high", "original"]), PART),
    WireRule::new("/messages/*/content/*[type=file]", Closed(&["type", "file", "prompt_cache_breakpoint"]), PART),
    WireRule::new("/messages/*/content/*[type=file]", Needs(&["file"]), PART).named("needs its file"),
    WireRule::new("/messages/*/content/*/file", Closed(&["file_data", "file_id", "filename"]), PART),
    WireRule::new("/messages/*/content/*/file/file_data", Start("data:"), FILES),
    WireRule::new("/messages/*/content/*/file", Hold(has_a_name), FILES)
        .named("data needs a name")
        .broken_by(&[("/messages", r#"[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]"#)]),
    WireRule::new("/messages/*/content/*/input_audio", Needs(&["data", "format"]), PART),
    WireRule::new("/messages/*/content/*/input_audio/format", OneOf(&["wav", "mp3"]), PART),
    WireRule::new("/messages/*/content/*/prompt_cache_breakpoint", Closed(&["mode", "ttl"]), PART),
    WireRule::new("/messages/*/content/*/prompt_cache_breakpoint", Needs(&["mode"]), PART),
    WireRule::new("/messages/*/content/*/prompt_cache_breakpoint/mode", OneOf(&["explicit"]), PART),
];

const PICTURES: &str = "400 invalid_image_format \"Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']\", 2024-12-09: github.com/STranslate/STranslate/issues/277";
const FILES: &str = "400 \"Expected a base64-encoded data URL\" for file_data, 2025-07-13: github.com/vercel/ai/issues/7266; 400 missing_required_parameter without a filename, 2025-08-17: github.com/openai/openai-agents-python/pull/1513";

fn says_something(message: &Value) -> Result<(), String> {
    let said = ["content", "tool_calls", "function_call", "refusal", "audio"];
    if said
        .iter()
        .any(|name| message.get(*name).is_some_and(|value| !value.is_null()))
    {
        return Ok(());
    }
    Err("an assistant message without content and calls".to_owned())
}

pub(super) fn is_a_picture(url: &Value) -> Result<(), String> {
    let url = url.as_str().unwrap_or_default();
    let kinds = ["png", "jpeg", "jpg", "webp", "gif"];
    let inline = kinds
        .iter()
        .any(|kind| url.starts_with(&format!("data:image/{kind};base64,")));
    if inline || url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    Err("neither a URL nor a picture of a supported kind".to_owned())
}

fn has_a_name(file: &Value) -> Result<(), String> {
    if file.get("file_data").is_some() && !file["filename"].is_string() {
        return Err("file_data without filename".to_owned());
    }
    Ok(())
}
