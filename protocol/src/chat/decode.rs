//! Decodes a chat request into a prompt. Fields that only this family has are judged by [`FIELDS`].

use std::borrow::Cow;

use super::decode_tools::{choice, functions, tool_choice, tools};
use crate::json::Kind;
use crate::translate::decode::{Decoding, cache, file, no_equal, picture, wrong};
use crate::translate::fates::{Fate, Row, only, refused_by, row, silent_for_messages, unless};
use crate::translate::neutral::{
    Block, Call, CallResult, Effort, Format, Prompt, Role, ToolKind, Turn,
};
use crate::translate::tree::Node;
use crate::{BadRequest, Family, Tier};

const ONE_ANSWER: &str = "Use `n` = 1.";
const NO_LOGPROBS: &str = "Leave it out.";
const NO_AUDIO: &str = "Ask for text only.";

/// The fate of each field.
#[rustfmt::skip]
pub(crate) const FIELDS: &[Row] = &[
    row("model",                   Fate::Converted),
    row("messages",                Fate::Converted),
    row("max_completion_tokens",   Fate::Converted),
    row("max_tokens",              Fate::Converted),
    row("temperature",             Fate::Carried),
    row("top_p",                   Fate::Carried),
    row("stop",                    Fate::Converted),
    row("stream",                  Fate::Carried),
    row("stream_options",          Fate::Silent),
    row("tools",                   Fate::Converted),
    row("functions",               Fate::Converted),
    row("tool_choice",             Fate::Converted),
    row("function_call",           Fate::Converted),
    row("parallel_tool_calls",     Fate::Converted),
    row("reasoning_effort",        Fate::Converted),
    row("reasoning",               Fate::Converted),
    row("response_format",         Fate::Converted),
    silent_for_messages("prompt_cache_key"),
    row("safety_identifier",       Fate::Converted),
    row("user",                    Fate::Converted),
    row("service_tier",            Fate::Converted),
    Row { defaults: &["\"medium\""], ..only("verbosity", Family::Responses, Fate::Converted) },
    unless("frequency_penalty",    Fate::Dropped, &["0", "0.0"]),
    unless("presence_penalty",     Fate::Dropped, &["0", "0.0"]),
    row("logit_bias",              Fate::Dropped),
    row("seed",                    Fate::Dropped),
    row("prediction",              Fate::Dropped),
    only("top_k", Family::Messages, Fate::Carried),
    row("cache_control",           Fate::Dropped),
    row("prompt_cache_options",    Fate::Dropped),
    row("prompt_cache_retention",  Fate::Dropped),
    row("web_search_options",      Fate::Dropped),
    row("metadata",                Fate::Silent),
    row("store",                   Fate::Silent),
    row("usage",                   Fate::Silent),
    unless("n",                    Fate::Refused(ONE_ANSWER), &["1"]),
    refused_by("logprobs", Family::Messages, NO_LOGPROBS),
    Row { defaults: &["0"], ..refused_by("top_logprobs", Family::Messages, NO_LOGPROBS) },
    unless("modalities",           Fate::Refused(NO_AUDIO), &["[\"text\"]"]),
    row("audio",                   Fate::Refused(NO_AUDIO)),
    row("moderation",              Fate::Refused("Leave it out.")),
];

pub(crate) fn decode<'a>(
    body: &'a [u8],
    decoding: &mut Decoding<'_>,
) -> Result<Prompt<'a>, BadRequest> {
    decoding.fields(body, FIELDS, field)
}

fn field<'a>(
    decoding: &mut Decoding<'_>,
    name: &str,
    value: &Node<'a>,
    prompt: &mut Prompt<'a>,
) -> Result<(), BadRequest> {
    match name {
        "messages" => messages(value, prompt, decoding)?,
        "max_completion_tokens" | "max_tokens" => prompt.limit = value.count().or(prompt.limit),
        "temperature" => prompt.temperature = value.number(),
        "top_p" => prompt.top_p = value.number(),
        "top_k" => prompt.top_k = value.number(),
        "logprobs" => prompt.logprobs = value.is_true(),
        "top_logprobs" => prompt.top_logprobs = value.count(),
        "stop" if value.kind == Kind::String => prompt.stops = value.text().into_iter().collect(),
        "stop" => prompt.stops = value.elements().filter_map(Node::text).collect(),
        "stream" => prompt.stream = value.is_true(),
        "tools" => tools(value, prompt, decoding)?,
        "functions" => functions(value, prompt)?,
        "tool_choice" => prompt.choice = tool_choice(value)?,
        "function_call" => prompt.choice = choice(value),
        "parallel_tool_calls" => prompt.parallel = value.flag(),
        "reasoning_effort" => prompt.thinking.effort = Effort::named(value.word()),
        "reasoning" => {
            prompt.thinking.effort =
                Effort::named(value.get("effort").word()).or(prompt.thinking.effort)
        }
        "response_format" => prompt.format = format(value)?,
        "verbosity" => prompt.verbosity = value.text().filter(|word| word.as_str() != "medium"),
        "prompt_cache_key" => prompt.cache_key = value.text(),
        "safety_identifier" => prompt.user = value.plain().or(prompt.user.take()),
        "user" => prompt.user = prompt.user.take().or(value.plain()),
        "service_tier" => match value.word() {
            "auto" => prompt.standard_tier = Some(false),
            "default" => prompt.standard_tier = Some(true),
            "flex" => prompt.tier = Tier::Flex,
            "priority" | "fast" => prompt.tier = Tier::Fast,
            "" => {}
            _ => decoding.drop(name),
        },
        _ => {}
    }
    Ok(())
}

fn format<'a>(value: &Node<'a>) -> Result<Option<Format<'a>>, BadRequest> {
    match value.get("type").word() {
        "json_object" => Ok(Some(Format::Json)),
        "json_schema" => {
            let inner = value.get("json_schema");
            let path = "response_format.json_schema.schema";
            let schema = inner
                .get("schema")
                .object()
                .ok_or_else(|| wrong(path, "a JSON schema"))?;
            let (name, description) = (inner.get("name").text(), inner.get("description").text());
            Ok(Some(Format::Schema {
                name,
                description,
                schema,
                strict: inner.get("strict").flag(),
            }))
        }
        _ => Ok(None),
    }
}

fn messages<'a>(
    value: &Node<'a>,
    prompt: &mut Prompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<(), BadRequest> {
    for (at, message) in value.elements().enumerate() {
        let path = format!("messages[{at}]");
        let place = format!("{path}.content");
        let content = message.get("content");
        let (role, blocks) = match message.get("role").word() {
            "system" | "developer" if prompt.turns.is_empty() => {
                prompt.system.extend(parts(content, &place, decoding)?);
                continue;
            }
            "system" | "developer" => (Role::System, parts(content, &place, decoding)?),
            "user" => (Role::User, parts(content, &place, decoding)?),
            "assistant" => (Role::Assistant, assistant(message, &path, decoding)?),
            "tool" | "function" => {
                let id = message.get("tool_call_id").plain().unwrap_or_default();
                let blocks = parts(content, &place, decoding)?;
                let result = CallResult {
                    id,
                    blocks,
                    is_error: false,
                    cache: cache(message),
                };
                (Role::User, vec![Block::Result(result)])
            }
            _ => return Err(wrong(&format!("{path}.role"), "one of the roles of chat")),
        };
        prompt.turns.push(Turn { role, blocks });
    }
    Ok(())
}

/// The parts of a content: text, or a list.
fn parts<'a>(
    content: &Node<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<Block<'a>>, BadRequest> {
    match content.kind {
        Kind::String => Ok(content.text().map(Block::text).into_iter().collect()),
        Kind::Null => Ok(Vec::new()),
        Kind::Array => {
            let parts = content.elements().enumerate();
            parts
                .map(|(at, node)| part(node, &format!("{path}[{at}]"), decoding))
                .collect()
        }
        _ => Err(wrong(path, "text, or a list of parts")),
    }
}

fn part<'a>(node: &Node<'a>, path: &str, decoding: &Decoding<'_>) -> Result<Block<'a>, BadRequest> {
    match node.get("type").word() {
        "text" | "input_text" | "output_text" => Ok(Block::Text {
            text: node.get("text").text().unwrap_or_default(),
            cache: cache(node),
        }),
        "refusal" => Ok(Block::Text {
            text: node.get("refusal").text().unwrap_or_default(),
            cache: cache(node),
        }),
        "image_url" => picture(node, path),
        "file" => file(node.get("file"), node, path),
        kind => Err(no_equal(path, kind, decoding.target)),
    }
}

fn assistant<'a>(
    message: &Node<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<Block<'a>>, BadRequest> {
    let thinking = [message.get("reasoning_content"), message.get("reasoning")]
        .into_iter()
        .find_map(Node::text);
    let mut out: Vec<Block<'_>> = thinking
        .map(|text| Block::Thinking { text })
        .into_iter()
        .collect();
    out.extend(parts(
        message.get("content"),
        &format!("{path}.content"),
        decoding,
    )?);
    out.extend(message.get("refusal").text().map(Block::text));
    if message.get("audio").kind == Kind::Object {
        return Err(no_equal(&format!("{path}.audio"), "audio", decoding.target));
    }
    for (at, node) in message.get("tool_calls").elements().enumerate() {
        out.push(call(node, &format!("{path}.tool_calls[{at}]"))?);
    }
    let old = message.get("function_call");
    if old.kind == Kind::Object {
        out.push(called(
            old,
            Cow::Borrowed(""),
            ToolKind::Function,
            &format!("{path}.function_call"),
        )?);
    }
    Ok(out)
}

fn call<'a>(node: &Node<'a>, path: &str) -> Result<Block<'a>, BadRequest> {
    let id = node.get("id").plain().unwrap_or_default();
    match node.get("custom") {
        custom if custom.kind == Kind::Object => called(custom, id, ToolKind::Custom, path),
        _ => called(node.get("function"), id, ToolKind::Function, path),
    }
}

fn called<'a>(
    inner: &Node<'a>,
    id: Cow<'a, str>,
    kind: ToolKind,
    path: &str,
) -> Result<Block<'a>, BadRequest> {
    let name = inner
        .get("name")
        .plain()
        .ok_or_else(|| wrong(path, "a call with a name"))?;
    let given = if kind == ToolKind::Custom {
        inner.get("input")
    } else {
        inner.get("arguments")
    };
    let arguments = given
        .plain()
        .or_else(|| given.object().map(Cow::Borrowed))
        .unwrap_or_default();
    Ok(Block::Call(Call {
        id,
        name,
        namespace: None,
        kind,
        arguments,
        cache: None,
    }))
}
