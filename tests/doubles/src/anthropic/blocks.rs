//! The blocks of a message's content, and the marks of the prompt cache on them.

use serde_json::Value;

use super::blocks;
use crate::rule::{JsonType, Must, WireRule, word};
use crate::seal::was_signed;

use JsonType::{Flag, List, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt};

const BLOCK: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/*_block_param.py";
const SOURCE: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/*_source_param.py";
const MARK: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/cache_control_ephemeral_param.py";
const EMPTY: &str = "400 \"text content blocks must be non-empty\", 2026-09-05: github.com/experientiallabs/experiential/pull/799";
const FOUR: &str = "400 \"A maximum of 4 blocks with cache_control may be provided\", 2024-09-26: github.com/tghamm/Anthropic.SDK/issues/50";
const MARKED: &str = "400 \"cache_control cannot be set for empty text blocks\", 2026-04-17: github.com/anthropics/claude-code/issues/50082";
const LONGEST: &str = "400 \"a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block\", in the order tools, system, messages, 2026-04-19: github.com/cnighswonger/claude-code-cache-fix/issues/44";
const PICTURE: &str = "10 MB for each picture, measured on its base64, 2026-09-03: github.com/can1357/oh-my-pi/pull/10633; until 2026-05-12 it was 5 MB: github.com/lobehub/lobehub/pull/14711";
const SIGNED: &str = "400 \"messages.1.content.0.thinking.signature: Field required\", 2025-02-24: github.com/langchain-ai/langchain/pull/29971";

const FOREIGN: &str = "400 \"messages.1.content.0: Invalid `signature` in `thinking` block\" where services change within a conversation, 2026-01-03: github.com/ding113/claude-code-hub/issues/518";

/// Blocks of customers and models; those of tools that run on the service are not judged.
#[rustfmt::skip]
pub(crate) const BLOCKS: &[WireRule] = &[
    WireRule::new("/messages/*/content/*", Be(&[Object]), BLOCK),
    WireRule::new("/messages/*/content/*", Needs(&["type"]), BLOCK),
    WireRule::new("/messages/*[role=user]/content/*/type", OneOf(&[
        "text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload", "compaction", "mcp_tool_use",
        "mcp_tool_result", "tool_addition", "tool_removal",
    ]), BLOCK),
    WireRule::new("/messages/*[role=system]/content/*/type", OneOf(&["text", "tool_addition", "tool_removal"]), BLOCK),
    WireRule::new("/messages/*/content/*[type=text]", Closed(&["type", "text", "cache_control", "citations"]), BLOCK).named("text closed"),
    WireRule::new("/messages/*/content/*[type=text]", Needs(&["text"]), BLOCK).named("needs its text"),
    WireRule::new("/messages/*/content/*[type=text]/text", Be(&[Text]), BLOCK),
    WireRule::new("/messages/*/content/*[type=text]/text", Hold(is_said), EMPTY)
        .broken_by(&[("/messages", r#"[{"role":"user","content":[{"type":"text","text":" "}]}]"#)]),
    WireRule::new("/messages/*/content/*[type=image]", Closed(&["type", "source", "cache_control", "transformations"]), BLOCK).named("image closed"),
    WireRule::new("/messages/*/content/*[type=image]", Needs(&["source"]), BLOCK).named("needs its picture"),
    WireRule::new("/messages/*/content/*[type=image]/source/type", OneOf(&["base64", "url", "file"]), SOURCE),
    WireRule::new("/messages/*/content/*[type=image]/source[type=base64]", Needs(&["media_type", "data"]), SOURCE).named("needs its data"),
    WireRule::new("/messages/*/content/*[type=image]/source[type=base64]", Closed(&["type", "media_type", "data"]), SOURCE).named("data closed"),
    WireRule::new("/messages/*/content/*[type=image]/source[type=url]", Needs(&["url"]), SOURCE).named("needs its address"),
    WireRule::new("/messages/*/content/*[type=image]/source/media_type", OneOf(&["image/jpeg", "image/png", "image/gif", "image/webp"]), SOURCE),
    WireRule::new("/messages/*/content/*[type=image]/source/data", Long(1, 10 * 1024 * 1024), PICTURE),
    WireRule::new("/messages/*/content/*[type=document]", Closed(&["type", "source", "cache_control", "citations", "context", "title"]), BLOCK).named("document closed"),
    WireRule::new("/messages/*/content/*[type=document]", Needs(&["source"]), BLOCK).named("needs its document"),
    WireRule::new("/messages/*/content/*[type=document]/source/type", OneOf(&["base64", "text", "content", "url", "file"]), SOURCE),
    WireRule::new("/messages/*/content/*[type=document]/source[type=base64]", Needs(&["media_type", "data"]), SOURCE).named("needs its pages"),
    WireRule::new("/messages/*/content/*[type=document]/source[type=base64]/media_type", OneOf(&["application/pdf"]), SOURCE),
    WireRule::new("/messages/*/content/*[type=document]/source[type=text]/media_type", OneOf(&["text/plain"]), SOURCE),
    WireRule::new("/messages/*/content/*[type=thinking]", Closed(&["type", "thinking", "signature"]), BLOCK).named("thinking closed"),
    WireRule::new("/messages/*/content/*[type=thinking]", Needs(&["signature", "thinking"]), SIGNED).named("needs its signature"),
    WireRule::new("/messages/*/content/*[type=thinking]/signature", Be(&[Text]), BLOCK),
    WireRule::new("/messages/*/content/*[type=redacted_thinking]", Closed(&["type", "data"]), BLOCK).named("redacted closed"),
    WireRule::new("/messages/*/content/*[type=redacted_thinking]", Needs(&["data"]), BLOCK).named("needs its seal"),
    WireRule::new("/messages/*/content/*[type=thinking|redacted_thinking]", Hold(was_signed), FOREIGN)
        .named("signed here")
        .broken_by(&[("/messages", r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"}]},{"role":"user","content":"b"}]"#)]),
    WireRule::new("/messages/*/content/*[type=tool_use]", Closed(&["type", "id", "name", "input", "cache_control", "caller", "toolset_name"]), BLOCK).named("call closed"),
    WireRule::new("/messages/*/content/*[type=tool_use]", Needs(&["id", "name", "input"]), BLOCK).named("needs its call"),
    WireRule::new("/messages/*/content/*[type=tool_use]/input", Be(&[Object]), BLOCK),
    WireRule::new("/messages/*/content/*[type=tool_use]/id", Be(&[Text]), BLOCK),
    WireRule::new("/messages/*/content/*[type=tool_use]/id", Spelt(word), IDS),
    WireRule::new("/messages/*/content/*[type=tool_use]/name", Long(1, 200), NAMES),
    WireRule::new("/messages/*/content/*[type=tool_result]", Closed(&["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"]), BLOCK).named("result closed"),
    WireRule::new("/messages/*/content/*[type=tool_result]", Needs(&["tool_use_id"]), BLOCK).named("needs its call's id"),
    WireRule::new("/messages/*/content/*[type=tool_result]/content", Be(&[Text, List]), BLOCK),
    WireRule::new("/messages/*/content/*[type=tool_result]/content/*/type", OneOf(&["text", "image", "search_result", "document", "tool_reference", "browser_state"]), BLOCK),
    WireRule::new("/messages/*/content/*[type=tool_result]/is_error", Be(&[Flag]), BLOCK),
];

const IDS: &str = "400 \"messages.92.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'\", 2026-02-10: github.com/BlockRunAI/ClawRouter/issues/17";
const NAMES: &str = "400 \"messages.1.content.2.tool_use.name: String should have at most 200 characters\", 2026-02-06: github.com/anthropics/claude-code/issues/23681";

/// Cache marks.
#[rustfmt::skip]
pub(crate) const MARKS: &[WireRule] = &[
    WireRule::new("/cache_control", Closed(&["type", "ttl"]), MARK),
    WireRule::new("/messages/*/content/*/cache_control", Closed(&["type", "ttl"]), MARK),
    WireRule::new("/messages/*/content/*/cache_control", Needs(&["type"]), MARK),
    WireRule::new("/messages/*/content/*/cache_control/type", OneOf(&["ephemeral"]), MARK),
    WireRule::new("/messages/*/content/*/cache_control/ttl", OneOf(&["5m", "1h"]), MARK),
    WireRule::new("/system/*/cache_control/type", OneOf(&["ephemeral"]), MARK),
    WireRule::new("/tools/*/cache_control/type", OneOf(&["ephemeral"]), MARK),
    WireRule::new("", Hold(four_marks), FOUR)
        .named("at most four cache marks")
        .broken_by(&[("/messages", r#"[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"type":"text","text":"c","cache_control":{"type":"ephemeral"}},{"type":"text","text":"d","cache_control":{"type":"ephemeral"}},{"type":"text","text":"e","cache_control":{"type":"ephemeral"}}]}]"#)]),
    WireRule::new("", Hold(longest_first), LONGEST)
        .named("one hour before five minutes")
        .broken_by(&[("/system", r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]"#)]),
    WireRule::new("/system/*", Hold(marks_a_text), MARKED).named("marks no empty text")
        .broken_by(&[("/system", r#"[{"type":"text","text":"","cache_control":{"type":"ephemeral"}}]"#)]),
];

fn is_said(text: &Value) -> Result<(), String> {
    match text.as_str() {
        Some(text) if text.trim().is_empty() => {
            Err("text content blocks must be non-empty".to_owned())
        }
        _ => Ok(()),
    }
}

/// The marks in the order in which a prompt is read.
fn marks(body: &Value) -> Vec<&Value> {
    let lists = ["tools", "system"].map(|name| body[name].as_array());
    let first = lists.into_iter().flatten().flatten();
    let all = first.chain(blocks(body).map(|(_, block)| block));
    all.filter_map(|marked| marked.get("cache_control"))
        .filter(|mark| !mark.is_null())
        .collect()
}

fn four_marks(body: &Value) -> Result<(), String> {
    let own = usize::from(
        body.get("cache_control")
            .is_some_and(|mark| !mark.is_null()),
    );
    let found = marks(body).len() + own;
    if found > 4 {
        return Err(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {found}."
        ));
    }
    Ok(())
}

fn longest_first(body: &Value) -> Result<(), String> {
    let long: Vec<bool> = marks(body)
        .into_iter()
        .map(|mark| mark["ttl"] == "1h")
        .collect();
    if long.windows(2).any(|pair| pair == [false, true]) {
        return Err("a cache mark of 1h must not come after one of 5m".to_owned());
    }
    Ok(())
}

fn marks_a_text(block: &Value) -> Result<(), String> {
    if block.get("cache_control").is_some_and(Value::is_object) && block["text"] == "" {
        return Err("cache_control cannot be set for empty text blocks".to_owned());
    }
    Ok(())
}
