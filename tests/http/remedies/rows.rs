//! Every refusal with a remedy: the file that makes it, the request that gets it, the remedy, and what stands in `error.details`.

use farebox_protocol::{Family, Remedy};
use serde_json::{Value, json};

use Family::{Chat, Messages, Responses};

/// One refusal.
pub(super) struct Row {
    pub(super) file: &'static str,
    pub(super) family: Family,
    pub(super) slug: &'static str,
    pub(super) fields: Value,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) remedy: Remedy,
    pub(super) details: Value,
}

/// Places that no request reaches, because another refuses it before: how many in which file, and why they are there.
pub(super) const UNREACHED: &[(&str, usize, &str)] = &[
    (
        "protocol/src/translate/encode.rs",
        1,
        "documents by address are refused at inspection; a decoder of a new family might pass one",
    ),
    (
        "protocol/src/responses/decode_items.rs",
        1,
        "references are refused at inspection",
    ),
    (
        "protocol/src/calls.rs",
        1,
        "a call is of no family: tests/money/embeddings.rs and tests/money/rerank.rs ask for it",
    ),
    (
        "src/proxy/capabilities.rs",
        1,
        "a call is of no family: tests/money/rerank.rs asks for more than one search",
    ),
];

const ANY: &str = "test-model";

fn row(
    file: &'static str,
    (family, slug): (Family, &'static str),
    fields: Value,
    remedy: Remedy,
    details: Value,
) -> Row {
    let headers = Vec::new();
    Row {
        file,
        family,
        slug,
        fields,
        headers,
        remedy,
        details,
    }
}

/// A turn with these parts, and one with words, so that something is left.
fn said(parts: Value) -> Value {
    json!([{"role": "user", "content": parts}, {"role": "user", "content": "and this"}])
}

/// An item before words.
fn before(item: Value) -> Value {
    json!([item, {"role": "user", "content": "and this"}])
}

fn functions(count: usize) -> Value {
    let one = |at: usize| json!({"type": "function", "function": {"name": format!("f{at}"), "parameters": {"type": "object"}}});
    (0..count).map(one).collect()
}

fn leave(field: &str) -> Value {
    json!({"remedies": [{field: null}]})
}

fn remove(path: &str) -> Value {
    json!({"remove": path})
}

fn inline(path: &str) -> Value {
    json!({"inline": path})
}

/// What the request fields, the tools and the limits of any family refuse before a target is looked at.
#[rustfmt::skip]
fn of_fields() -> Vec<Row> {
    use Remedy::{Off, Unthreaded, Whole, Without};
    let own = json!({"type": "function", "name": "f"});
    let mcp = json!({"type": "mcp", "server_label": "a"});
    let reference = before(json!({"type": "item_reference", "id": "rs_1"}));
    let advisor = json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"type": "advisor_20260301"}}});
    const FIELDS: &str = "protocol/src/fields.rs";
    const LIMITS: &str = "protocol/src/limits.rs";
    const TOOLS: &str = "protocol/src/tools.rs";
    const CLASS: &str = "protocol/src/class_fields.rs";
    const CACHE: &str = "protocol/src/cache.rs";
    vec![
        row(FIELDS, (Chat, ANY), json!({"models": ["a"]}), Without, leave("models")),
        row(FIELDS, (Messages, ANY), json!({"thread": {"type": "create"}}), Unthreaded, json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]})),
        row(FIELDS, (Responses, ANY), json!({"previous_response_id": "resp_1"}), Whole("previous_response_id"), json!({"remedies": [{"previous_response_id": null, "store": false}]})),
        row(FIELDS, (Responses, ANY), json!({"conversation": "conv_1"}), Without, leave("conversation")),
        row(FIELDS, (Responses, ANY), json!({"background": true}), Without, leave("background")),
        row(FIELDS, (Responses, ANY), json!({"speed": "fast"}), Without, leave("speed")),
        row(FIELDS, (Responses, ANY), json!({"reasoning": {"mode": "pro", "effort": "low"}}), Without, remove("reasoning.mode")),
        row(FIELDS, (Responses, ANY), json!({"modalities": ["audio"]}), Without, leave("modalities")),
        row(CLASS, (Chat, ANY), json!({"service_tier": "batch"}), Without, leave("service_tier")),
        row(LIMITS, (Chat, ANY), json!({"max_tokens": 0}), Without, leave("max_tokens")),
        row(LIMITS, (Chat, ANY), json!({"max_tokens": 5, "max_completion_tokens": 6}), Without, leave("max_completion_tokens")),
        row("protocol/src/chat/inspect.rs", (Chat, ANY), json!({"n": 1_000}), Without, leave("n")),
        row(LIMITS, (Chat, ANY), json!({"n": 0}), Without, leave("n")),
        row(TOOLS, (Responses, ANY), json!({"tools": [mcp]}), Without, remove("tools[0]")),
        row(TOOLS, (Responses, ANY), json!({"tools": [own, {"type": "namespace", "name": "n", "tools": [own, mcp]}]}), Without, remove("tools[1].tools[1]")),
        row(TOOLS, (Responses, ANY), json!({"tools": [own, {"type": "shell"}]}), Without, remove("tools[1]")),
        row(TOOLS, (Messages, ANY), json!({"messages": said(json!([advisor]))}), Without, remove("messages[0].content[0]")),
        row("protocol/src/turns.rs", (Responses, ANY), json!({"input": reference}), Off("store"), json!({"remedies": [{"store": false}]})),
        row(CACHE, (Messages, ANY), json!({"messages": said(marked("2h"))}), Without, remove("messages[0].content[0].cache_control.ttl")),
        row(CACHE, (Chat, ANY), json!({"prompt_cache_options": {"ttl": "2h"}}), Without, remove("prompt_cache_options.ttl")),
    ]
}

/// A text with a mark of this lifetime.
fn marked(ttl: &str) -> Value {
    json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": ttl}}])
}

/// What parts of a conversation are refused for.
#[rustfmt::skip]
fn of_parts() -> Vec<Row> {
    use Remedy::{Inline, Without};
    let picture = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
    let text = json!({"type": "text", "text": "a"});
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let film = json!({"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}});
    let wav = json!({"type": "document", "source": {"type": "base64", "media_type": "audio/wav", "data": "AAAA"}});
    const CONTENT: &str = "protocol/src/content.rs";
    const NAMES: &str = "protocol/src/part_names.rs";
    vec![
        row(CONTENT, (Chat, ANY), json!({"messages": said(json!([{"type": "file", "file": {"file_id": "file-1"}}]))}), Inline, inline("messages[0].content[0].file.file_id")),
        row(CONTENT, (Chat, ANY), json!({"messages": said(picture("http://127.0.0.1/a.png"))}), Inline, inline("messages[0].content[0].image_url")),
        row(CONTENT, (Chat, ANY), json!({"messages": said(picture("gs://bucket/a.png"))}), Inline, inline("messages[0].content[0].image_url")),
        row(CONTENT, (Messages, ANY), json!({"messages": said(json!([{"type": "image", "source": {"type": "url", "url": "http://10.0.0.1/a.png"}}]))}), Inline, inline("messages[0].content[0].source.url")),
        row(NAMES, (Messages, ANY), json!({"messages": said(json!([{"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}]))}), Inline, inline("messages[0].content[0].source.url")),
        row(NAMES, (Chat, ANY), json!({"messages": said(json!([text, sound]))}), Without, remove("messages[0].content[1]")),
        row(NAMES, (Chat, ANY), json!({"messages": said(json!([film, text]))}), Without, remove("messages[0].content[0]")),
        row(NAMES, (Responses, ANY), json!({"input": said(json!([sound]))}), Without, remove("input[0].content[0]")),
        row(NAMES, (Messages, ANY), json!({"messages": said(json!([wav]))}), Without, remove("messages[0].content[0]")),
        row(NAMES, (Chat, ANY), json!({"messages": [{"role": "assistant", "content": "a", "audio": {"id": "a"}}, {"role": "user", "content": "b"}]}), Without, remove("messages[0].audio")),
        row(NAMES, (Chat, ANY), json!({"messages": said(json!([{"type": "text", "text": "a", "inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}]))}), Inline, inline("messages[0].content[0]")),
    ]
}

/// What a model, or the services behind it, cannot do.
#[rustfmt::skip]
fn of_models() -> Vec<Row> {
    use Remedy::{AtMost, Capable, Inline, Off, Without, WithoutEach};
    let public = json!([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]);
    let large = json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(4_000))}}]);
    let long = json!([{"role": "user", "content": "long word ".repeat(40_000)}]);
    let little = json!([{"role": "user", "content": "long word ".repeat(2_000)}]);
    let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 64_000}, "max_tokens": 64_000});
    const ABLE: &str = "src/proxy/capabilities.rs";
    const CLASSES: &str = "src/proxy/classes.rs";
    let mut flagged = row(ABLE, (Messages, ANY), json!({}), WithoutEach("anthropic-beta"), remove("anthropic-beta"));
    flagged.headers.push(("anthropic-beta", "context-1m-2025-08-07"));
    vec![
        row(ABLE, (Chat, ANY), json!({"made_up": 1}), Without, leave("made_up")),
        row(ABLE, (Chat, "test-blind"), json!({"stream": true}), Off("stream"), json!({"remedies": [{"stream": false}]})),
        row(ABLE, (Chat, "test-blind"), json!({"tools": functions(1)}), Capable("tools"), json!({"needs": "tools"})),
        row(ABLE, (Chat, "test-blind"), json!({"messages": said(public.clone())}), Capable("vision"), json!({"needs": "vision"})),
        row(ABLE, (Chat, "small"), json!({"tools": functions(3)}), AtMost("tools", 2), json!({"at_most": {"tools": 2}})),
        row(ABLE, (Chat, "small"), json!({"messages": said(large)}), AtMost("image_bytes", 1_000), json!({"at_most": {"image_bytes": 1_000}})),
        row(ABLE, (Messages, ANY), json!({"messages": said(marked("1h"))}), WithoutEach("cache_control.ttl"), remove("cache_control.ttl")),
        row(ABLE, (Chat, ANY), json!({"prompt_cache_options": {"ttl": "12h"}}), WithoutEach("ttl"), remove("ttl")),
        row(ABLE, (Messages, ANY), budget, AtMost("budget_tokens", 63_999), Value::Null),
        row(ABLE, (Chat, "walled"), json!({"messages": said(public)}), Inline, inline("messages")),
        flagged,
        row(ABLE, (Chat, "test-blind"), json!({"messages": long}), AtMost("input_tokens", 32_000), json!({"at_most": {"input_tokens": 32_000}})),
        row(CLASSES, (Chat, ANY), json!({"service_tier": "flex"}), Without, leave("service_tier")),
        row(CLASSES, (Messages, ANY), json!({"speed": "fast"}), Without, leave("speed")),
        row(CLASSES, (Chat, "classes"), json!({"service_tier": "priority", "messages": little}), Without, leave("service_tier")),
        row(CLASSES, (Chat, "classes"), json!({"service_tier": "flex"}), Without, leave("service_tier")),
    ]
}

/// What a target of another family cannot be asked for.
#[rustfmt::skip]
fn of_translations() -> Vec<Row> {
    use Remedy::{AtMost, Inline, Without, WithoutEach};
    let own = json!({"type": "function", "name": "f"});
    let forced = json!({"tools": [own], "tool_choice": {"type": "function", "name": "g"}});
    let schema = json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}});
    let pdf = json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}]);
    let png = json!([{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]);
    let bmp = json!([{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AAAA"}}]);
    let zip = json!([{"type": "file", "file": {"filename": "a.zip", "file_data": "data:application/zip;base64,UEsDBA=="}}]);
    const ENCODE: &str = "protocol/src/translate/encode.rs";
    const DECODE: &str = "protocol/src/translate/decode.rs";
    const ITEMS: &str = "protocol/src/responses/decode_items.rs";
    const TURNS: &str = "protocol/src/messages/encode_turns.rs";
    vec![
        row(ENCODE, (Chat, "tiers"), json!({"service_tier": "flex"}), Without, leave("service_tier")),
        row(ENCODE, (Responses, "to-chat"), forced, Without, leave("tool_choice")),
        row(ENCODE, (Responses, "to-chat"), json!({"tool_choice": "required"}), Without, leave("tool_choice")),
        row(ENCODE, (Messages, "to-chat"), json!({"messages": said(png)}), WithoutEach("image"), remove("image")),
        row(ENCODE, (Messages, "to-chat"), json!({"messages": said(pdf)}), WithoutEach("document"), remove("document")),
        row(ENCODE, (Responses, "to-chat"), json!({"text": schema}), Without, remove("text.format")),
        row(DECODE, (Chat, "to-messages"), json!({"messages": said(json!([{"type": "file", "file": {"filename": "a.pdf"}}]))}), Inline, inline("messages[0].content[0]")),
        row(DECODE, (Responses, "to-chat"), json!({"input": said(json!([{"type": "input_riddle"}]))}), Without, remove("input[0].content[0]")),
        row(DECODE, (Responses, "to-chat"), json!({"tools": [{"type": "tool_search"}]}), Without, remove("tools[0]")),
        row(DECODE, (Responses, "to-chat"), json!({"tools": [own, {"type": "tool_search"}], "tool_choice": {"type": "tool_search"}}), Without, leave("tool_choice")),
        row("protocol/src/translate/fates.rs", (Chat, "to-messages"), json!({"n": 2}), Without, leave("n")),
        row("protocol/src/chat/encode.rs", (Messages, "to-chat"), json!({"stop_sequences": ["a", "b", "c", "d", "e"]}), AtMost("stop", 4), Value::Null),
        row(TURNS, (Chat, "to-messages"), json!({"messages": said(bmp)}), Inline, inline("messages")),
        row(TURNS, (Chat, "to-messages"), json!({"messages": said(zip)}), Inline, inline("messages")),
        row("protocol/src/messages/decode.rs", (Messages, "to-chat"), json!({"messages": said(json!([{"type": "document", "source": {"type": "riddle"}}]))}), Inline, inline("messages[0].content[0]")),
        row(ITEMS, (Responses, "to-chat"), json!({"input": before(json!({"type": "compaction_trigger"}))}), Without, remove("input[0]")),
        row(ITEMS, (Responses, "to-chat"), json!({"input": before(json!({"type": "configuration_update", "reasoning": {"effort": "low"}}))}), Without, remove("input[0]")),
        row(ITEMS, (Responses, "to-chat"), json!({"input": before(json!({"type": "compaction", "encrypted_content": "gAAA"}))}), Without, remove("input[0]")),
    ]
}

pub(super) fn all() -> Vec<Row> {
    [of_fields(), of_parts(), of_models(), of_translations()]
        .into_iter()
        .flatten()
        .collect()
}
