//! Decodes a chat request into a prompt. Fields that only this family has are judged by [`FIELDS`].

use std::borrow::Cow;

use super::decode_tools::{choice, functions, tool_choice, tools};
use super::reasoning;
use crate::json::Kind;
use crate::translate::decode::{
    self, Decoding, cache, file, format, no_equal, picture, text, wrong,
};
use crate::translate::fates::{
    FateRow, FieldFate, only, refused_by, row, silent_for_messages, unless,
};
use crate::translate::neutral::{
    CallResult, Effort, NeutralBlock, NeutralCall, NeutralPrompt, NeutralTurn, Role, ToolKind,
};
use crate::translate::tree::JsonNode;
use crate::{BadRequest, Family};

const ONE_ANSWER: &str = "Use `n` = 1.";
const NO_LOGPROBS: &str = "Leave it out.";
const NO_AUDIO: &str = "Ask for text only.";

#[rustfmt::skip]
pub(crate) const FIELDS: &[FateRow] = &[
    row("model",                   FieldFate::Converted),
    row("messages",                FieldFate::Converted),
    row("max_completion_tokens",   FieldFate::Converted),
    row("max_tokens",              FieldFate::Converted),
    row("temperature",             FieldFate::Carried),
    row("top_p",                   FieldFate::Carried),
    row("stop",                    FieldFate::Converted),
    row("stream",                  FieldFate::Carried),
    row("stream_options",          FieldFate::Silent),
    row("tools",                   FieldFate::Converted),
    row("functions",               FieldFate::Converted),
    row("tool_choice",             FieldFate::Converted),
    row("function_call",           FieldFate::Converted),
    row("parallel_tool_calls",     FieldFate::Converted),
    row("reasoning_effort",        FieldFate::Converted),
    row("reasoning",               FieldFate::Converted),
    row("response_format",         FieldFate::Converted),
    silent_for_messages("prompt_cache_key"),
    row("safety_identifier",       FieldFate::Converted),
    row("user",                    FieldFate::Converted),
    row("service_tier",            FieldFate::Converted),
    FateRow { defaults: &["\"medium\""], ..only("verbosity", Family::Responses, FieldFate::Converted) },
    unless("frequency_penalty",    FieldFate::Dropped, &["0", "0.0"]),
    unless("presence_penalty",     FieldFate::Dropped, &["0", "0.0"]),
    row("logit_bias",              FieldFate::Dropped),
    row("seed",                    FieldFate::Dropped),
    row("prediction",              FieldFate::Dropped),
    only("top_k", Family::Messages, FieldFate::Carried),
    row("cache_control",           FieldFate::Dropped),
    row("prompt_cache_options",    FieldFate::Dropped),
    row("prompt_cache_retention",  FieldFate::Dropped),
    row("web_search_options",      FieldFate::Dropped),
    row("metadata",                FieldFate::Silent),
    row("store",                   FieldFate::Silent),
    row("usage",                   FieldFate::Silent),
    row("session_id",              FieldFate::Silent),
    unless("n",                    FieldFate::Refused(ONE_ANSWER), &["1"]),
    refused_by("logprobs", Family::Messages, NO_LOGPROBS),
    FateRow { defaults: &["0"], ..refused_by("top_logprobs", Family::Messages, NO_LOGPROBS) },
    unless("modalities",           FieldFate::Refused(NO_AUDIO), &["[\"text\"]"]),
    row("audio",                   FieldFate::Refused(NO_AUDIO)),
    row("moderation",              FieldFate::Refused("Leave it out.")),
];

/// Takes a field that is converted or carried.
pub(crate) fn field<'a>(
    decoding: &mut Decoding<'_>,
    name: &str,
    value: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    match name {
        "messages" => messages(value, prompt, decoding)?,
        "max_completion_tokens" | "max_tokens" => prompt.limit = value.count().or(prompt.limit),
        "logprobs" => prompt.logprobs = value.is_true(),
        "top_logprobs" => prompt.top_logprobs = value.count(),
        "stop" if value.kind == Kind::String => prompt.stops = value.text().into_iter().collect(),
        "stop" => prompt.stops = value.elements().filter_map(JsonNode::text).collect(),
        "tools" => tools(value, prompt, decoding)?,
        "functions" => functions(value, prompt)?,
        "tool_choice" => prompt.choice = tool_choice(value)?,
        "function_call" => prompt.choice = choice(value),
        "reasoning_effort" => prompt.thinking.effort = Effort::named(value.word()),
        "reasoning" => reasoning::read(value, &mut prompt.thinking),
        "response_format" => {
            let path = "response_format.json_schema.schema";
            prompt.format = format(value, value.get("json_schema"), path)?;
        }
        "verbosity" => prompt.verbosity = value.text().filter(|word| word.as_str() != "medium"),
        _ => decoding.alike(name, value, prompt),
    }
    Ok(())
}

fn messages<'a>(
    value: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
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
                (Role::User, vec![NeutralBlock::Result(result)])
            }
            _ => return Err(wrong(&format!("{path}.role"), "one of the roles of chat")),
        };
        prompt.turns.push(NeutralTurn { role, blocks });
    }
    Ok(())
}

/// The parts of a content: text, or a list.
fn parts<'a>(
    content: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<NeutralBlock<'a>>, BadRequest> {
    decode::parts(
        content,
        path,
        "text, or a list of parts",
        |node, path, out| {
            out.push(part(node, path, decoding)?);
            Ok(())
        },
    )
}

fn part<'a>(
    node: &JsonNode<'a>,
    path: &str,
    decoding: &Decoding<'_>,
) -> Result<NeutralBlock<'a>, BadRequest> {
    match node.get("type").word() {
        "text" | "input_text" | "output_text" => Ok(text(node, "text")),
        "refusal" => Ok(text(node, "refusal")),
        "image_url" => picture(node, path),
        "file" => file(node.get("file"), node, path),
        kind => Err(no_equal(path, kind, decoding.target)),
    }
}

fn assistant<'a>(
    message: &JsonNode<'a>,
    path: &str,
    decoding: &mut Decoding<'_>,
) -> Result<Vec<NeutralBlock<'a>>, BadRequest> {
    let thinking = [message.get("reasoning_content"), message.get("reasoning")]
        .into_iter()
        .find_map(JsonNode::text);
    let mut out: Vec<NeutralBlock<'_>> = thinking
        .map(|text| NeutralBlock::Thinking { text })
        .into_iter()
        .collect();
    out.extend(parts(
        message.get("content"),
        &format!("{path}.content"),
        decoding,
    )?);
    out.extend(message.get("refusal").text().map(NeutralBlock::text));
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

fn call<'a>(node: &JsonNode<'a>, path: &str) -> Result<NeutralBlock<'a>, BadRequest> {
    let id = node.get("id").plain().unwrap_or_default();
    match node.get("custom") {
        custom if custom.kind == Kind::Object => called(custom, id, ToolKind::Custom, path),
        _ => called(node.get("function"), id, ToolKind::Function, path),
    }
}

fn called<'a>(
    inner: &JsonNode<'a>,
    id: Cow<'a, str>,
    kind: ToolKind,
    path: &str,
) -> Result<NeutralBlock<'a>, BadRequest> {
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
    Ok(NeutralBlock::Call(NeutralCall {
        id,
        name,
        namespace: None,
        kind,
        arguments,
        cache: None,
    }))
}
