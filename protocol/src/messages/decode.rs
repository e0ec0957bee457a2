//! Decodes a messages request into a prompt.
//!
//! Fields that only this family has are judged by [`FIELDS`]; blocks that only its servers produce become readable text or are
//! dropped.

use std::borrow::Cow;

use super::decode_tools::{choice, tools};
use crate::conversation::session_in;
use crate::json::unescape;
use crate::translate::decode::{self, Decoding, cache, no_equal, text, wrong};
use crate::translate::fates::{FateRow, FieldFate, only, row, unless, unsupported};
use crate::translate::neutral::{
    AnswerFormat, CallResult, Effort, MediaSource, NeutralBlock, NeutralCall, NeutralPrompt,
    NeutralTurn, Role, ThinkingMode, ToolKind,
};
use crate::translate::text::{Escaped, compact};
use crate::translate::tree::JsonNode;
use crate::{BadRequest, Family, Remedy, ServiceTier};

const ONE_REGION: &str = "Leave it out: no region can be promised.";

#[rustfmt::skip]
pub(crate) const FIELDS: &[FateRow] = &[
    row("model",              FieldFate::Converted),
    row("max_tokens",         FieldFate::Converted),
    row("system",             FieldFate::Converted),
    row("messages",           FieldFate::Converted),
    row("tools",              FieldFate::Converted),
    row("tool_choice",        FieldFate::Converted),
    row("thinking",           FieldFate::Converted),
    row("output_config",      FieldFate::Converted),
    row("output_format",      FieldFate::Converted),
    row("temperature",        FieldFate::Carried),
    row("top_p",              FieldFate::Carried),
    only("top_k", Family::Chat, FieldFate::Carried),
    row("stop_sequences",     FieldFate::Converted),
    row("metadata",           FieldFate::Converted),
    row("session_id",         FieldFate::Silent),
    row("service_tier",       FieldFate::Converted),
    row("stream",             FieldFate::Carried),
    row("cache_control",      FieldFate::Dropped),
    row("context_management", FieldFate::Dropped),
    row("compaction",         FieldFate::Dropped),
    row("safeguards",         FieldFate::Silent),
    row("diagnostics",        FieldFate::Silent),
    row("betas",              FieldFate::Silent),
    row("speed",              FieldFate::Converted),
    row("fallbacks",          FieldFate::Refused("Leave it out: the model is chosen by `model` alone.")),
    row("mcp_servers",        FieldFate::Refused("Leave it out, or use tools of your own.")),
    row("container",          FieldFate::Refused("Leave it out, or use tools of your own.")),
    row("thread",             FieldFate::Refused("Send the whole conversation.")),
    unless("inference_geo",   FieldFate::Refused(ONE_REGION), &["\"global\""]),
];

/// Takes a field that is converted or carried.
pub(crate) fn field<'a>(
    decoding: &mut Decoding<'_>,
    name: &str,
    value: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    match name {
        "max_tokens" => prompt.limit = value.count(),
        "system" => prompt.system = system(value, decoding)?,
        "messages" => {
            for (at, message) in value.elements().enumerate() {
                prompt
                    .turns
                    .push(turn(message, &format!("messages[{at}]"), decoding)?);
            }
        }
        "tools" => tools(value, prompt, decoding)?,
        "tool_choice" => choice(value, prompt)?,
        "thinking" => thinking(value, prompt),
        "output_config" => {
            prompt.thinking.effort =
                Effort::named(value.get("effort").word()).or(prompt.thinking.effort);
            format(value.get("format"), prompt)?;
        }
        "output_format" => format(value, prompt)?,
        "stop_sequences" => prompt.stops = value.elements().filter_map(JsonNode::text).collect(),
        "metadata" => prompt.cache_key = session(value.get("user_id")),
        "service_tier" => {
            prompt.standard_tier = value.text().map(|tier| tier.as_str() == "standard_only")
        }
        "speed" if value.word() == "fast" => prompt.tier = ServiceTier::Fast,
        _ => decoding.alike(name, value, prompt),
    }
    Ok(())
}

/// Blocks of the system prompt. One coding client puts a block with a new number into every request, which would defeat every
/// cache.
fn system<'a>(
    value: &JsonNode<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<NeutralBlock<'a>>, BadRequest> {
    let mut out = blocks(value, "system", decoding)?;
    out.retain(|block| !matches!(block, NeutralBlock::Text { text, .. } if text.as_str().starts_with("x-anthropic-billing-header:")));
    if out
        .iter()
        .any(|block| !matches!(block, NeutralBlock::Text { .. }))
    {
        return Err(wrong("system", "text, or a list of blocks of text"));
    }
    Ok(out)
}

/// A coding client names its session inside `user_id`. Without a session there is no cache key, because a key per person caches
/// worse.
fn session<'a>(user: &JsonNode<'a>) -> Option<Escaped<'a>> {
    session_in(&user.plain()?).as_deref().map(Escaped::of)
}

fn thinking(value: &JsonNode<'_>, prompt: &mut NeutralPrompt<'_>) {
    prompt.thinking.mode = match value.get("type").word() {
        "disabled" => ThinkingMode::Off,
        "enabled" => value
            .get("budget_tokens")
            .count()
            .map_or(ThinkingMode::Adaptive, ThinkingMode::Budget),
        "adaptive" => ThinkingMode::Adaptive,
        _ => ThinkingMode::Unsaid,
    };
    let display = value.get("display");
    prompt.thinking.shown = (!display.is_null()).then(|| display.word() != "omitted");
}

fn format<'a>(value: &JsonNode<'a>, prompt: &mut NeutralPrompt<'a>) -> Result<(), BadRequest> {
    if value.is_null() {
        return Ok(());
    }
    let Some(schema) = value.get("schema").object() else {
        return Err(wrong("output_config.format", "an object with a schema"));
    };
    prompt.format = Some(AnswerFormat::Schema {
        name: value.get("name").text(),
        description: None,
        schema,
        strict: None,
    });
    Ok(())
}

fn turn<'a>(
    message: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<NeutralTurn<'a>, BadRequest> {
    let role = match message.get("role").word() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => {
            return Err(wrong(
                &format!("{path}.role"),
                "\"user\", \"assistant\" or \"system\"",
            ));
        }
    };
    Ok(NeutralTurn {
        role,
        blocks: blocks(message.get("content"), &format!("{path}.content"), decoding)?,
    })
}

/// The blocks of a content: text, or a list.
fn blocks<'a>(
    content: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<NeutralBlock<'a>>, BadRequest> {
    decode::parts(
        content,
        path,
        "text, or a list of blocks",
        |node, path, out| block(node, path, decoding, out),
    )
}

fn block<'a>(
    node: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
    out: &mut Vec<NeutralBlock<'a>>,
) -> Result<(), BadRequest> {
    match node.get("type").word() {
        "text" => out.push(text(node, "text")),
        "image" => out.push(NeutralBlock::Image {
            source: source(node.get("source"), path)?,
            detail: None,
            cache: cache(node),
        }),
        "document" => document(node, path, decoding, out)?,
        "search_result" => out.push(search_result(node, path, decoding)?),
        "thinking" => out.push(NeutralBlock::Thinking {
            text: node.get("thinking").text().unwrap_or_default(),
        }),
        "redacted_thinking" => decoding.drop("messages.redacted_thinking"),
        "tool_use" => out.push(NeutralBlock::Call(call(node, path)?)),
        "tool_result" => {
            let id = node
                .get("tool_use_id")
                .plain()
                .ok_or_else(|| wrong(&format!("{path}.tool_use_id"), "text"))?;
            let blocks = blocks(node.get("content"), &format!("{path}.content"), decoding)?;
            let is_error = node.get("is_error").is_true();
            out.push(NeutralBlock::Result(CallResult {
                id,
                blocks,
                is_error,
                cache: cache(node),
            }));
        }
        "tool_reference" => {
            let name = node.get("tool_name").plain().unwrap_or_default();
            out.push(NeutralBlock::words(&format!(
                "Tool {name} is now available."
            )));
        }
        "web_search_tool_result" => out.extend(found_pages(node)),
        // The vendor ignores everything before a summary, and clients may have left that out.
        "compaction" => match node.get("content").text() {
            Some(summary) => {
                let text = Escaped::join(
                    &[
                        Escaped::raw("[summary of the conversation so far]"),
                        summary,
                    ],
                    "\\n",
                );
                out.push(NeutralBlock::Text {
                    text,
                    cache: cache(node),
                });
            }
            None => decoding.drop("messages.compaction"),
        },
        kind @ ("server_tool_use" | "mcp_tool_use" | "container_upload" | "fallback") => {
            decoding.drop(&format!("messages.{kind}"));
        }
        kind if kind.ends_with("_tool_result") => decoding.drop(&format!("messages.{kind}")),
        kind => return Err(no_equal(path, kind, decoding.target)),
    }
    Ok(())
}

fn call<'a>(node: &JsonNode<'a>, path: &str) -> Result<NeutralCall<'a>, BadRequest> {
    let name = node
        .get("name")
        .plain()
        .ok_or_else(|| wrong(&format!("{path}.name"), "text"))?;
    let arguments = node
        .get("input")
        .object()
        .map_or(Cow::Borrowed("{}"), compact);
    let id = node.get("id").plain().unwrap_or_default();
    Ok(NeutralCall {
        id,
        name,
        namespace: None,
        kind: ToolKind::Function,
        arguments,
        cache: cache(node),
    })
}

fn source<'a>(source: &JsonNode<'a>, path: &str) -> Result<MediaSource<'a>, BadRequest> {
    match source.get("type").word() {
        "base64" => Ok(MediaSource::Base64 {
            media: source
                .get("media_type")
                .plain()
                .map(Escaped::raw)
                .unwrap_or_default(),
            data: source.get("data").text().unwrap_or_default(),
        }),
        "url" => Ok(MediaSource::Url(
            source.get("url").text().unwrap_or_default(),
        )),
        _ => Err(unsupported(
            path,
            format!(
                "`{path}.source` must carry its data: stored files are not known here. Send it as base64."
            ),
        )
        .with(Remedy::Inline)),
    }
}

/// A document: a text document becomes text, preceded by its title and context.
fn document<'a>(
    node: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
    out: &mut Vec<NeutralBlock<'a>>,
) -> Result<(), BadRequest> {
    if node.get("citations").get("enabled").is_true() {
        decoding.drop("messages.citations");
    }
    out.extend(node.get("context").text().map(NeutralBlock::text));
    let (place, title) = (node.get("source"), node.get("title").text());
    let mut text = match place.get("type").word() {
        "text" => place
            .get("data")
            .text()
            .map(NeutralBlock::text)
            .into_iter()
            .collect(),
        "content" => blocks(
            place.get("content"),
            &format!("{path}.source.content"),
            decoding,
        )?,
        _ => {
            out.push(NeutralBlock::File {
                source: source(place, path)?,
                name: title,
                cache: cache(node),
            });
            return Ok(());
        }
    };
    out.extend(title.map(NeutralBlock::text));
    if let (Some(NeutralBlock::Text { cache: mark, .. }), found) = (text.last_mut(), cache(node)) {
        *mark = found.or(*mark);
    }
    out.append(&mut text);
    Ok(())
}

fn search_result<'a>(
    node: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<NeutralBlock<'a>, BadRequest> {
    let inner = blocks(node.get("content"), &format!("{path}.content"), decoding)?;
    let head = [node.get("title").text(), node.get("source").text()]
        .into_iter()
        .flatten();
    let texts: Vec<Escaped<'_>> = head
        .chain(inner.into_iter().filter_map(|block| {
            if let NeutralBlock::Text { text, .. } = block {
                Some(text)
            } else {
                None
            }
        }))
        .collect();
    Ok(NeutralBlock::Text {
        text: Escaped::join(&texts, "\\n"),
        cache: cache(node),
    })
}

/// The results of a server-side search: titles and addresses.
fn found_pages<'a>(node: &JsonNode<'a>) -> Option<NeutralBlock<'a>> {
    let line = |page: &JsonNode<'_>| {
        let part = |name: &str| {
            page.get(name)
                .text()
                .map(|text| unescape(text.as_str()).into_owned())
                .unwrap_or_default()
        };
        format!("{} {}", part("title"), part("url"))
            .trim()
            .to_owned()
    };
    let lines: Vec<String> = node
        .get("content")
        .elements()
        .map(line)
        .filter(|line| !line.is_empty())
        .collect();
    (!lines.is_empty())
        .then(|| NeutralBlock::words(&format!("[web search results]\n{}", lines.join("\n"))))
}
