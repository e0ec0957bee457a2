//! Decodes the input items of a responses request into turns. Each item is a turn; the order pass joins calls and results.

use std::borrow::Cow;

use super::client_tools;
use super::decode_tools::tools;
use crate::fields::ITEM_REFERENCE;
use crate::json::Kind;
use crate::translate::decode::{self, Decoding, cache, file, no_equal, picture, text, wrong};
use crate::translate::fates::unsupported;
use crate::translate::neutral::{
    CallResult, NeutralBlock, NeutralCall, NeutralPrompt, NeutralTurn, Role, ToolKind,
};
use crate::translate::text::{Escaped, compact};
use crate::translate::tree::JsonNode;
use crate::{BadRequest, Remedy};

const NO_TRIGGER: &str = "`compaction_trigger`: this model is served through another family, which cannot compact a conversation. \
     Ask the model for a summary, and send that instead of the conversation.";
const NO_UPDATE: &str = "`configuration_update`: this model is served through another family, whose settings hold for a whole request. \
     Send what is to hold now as `reasoning` and `text`, and leave the item out.";

pub(super) fn input<'a>(
    value: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<(), BadRequest> {
    if let Some(text) = value.text() {
        prompt.turns.push(NeutralTurn {
            role: Role::User,
            blocks: vec![NeutralBlock::text(text)],
        });
        return Ok(());
    }
    for (at, node) in value.elements().enumerate() {
        let path = format!("input[{at}]");
        if let Some(turn) = item(node, &path, prompt, decoding)? {
            prompt.turns.push(turn);
        }
    }
    Ok(())
}

fn item<'a>(
    node: &JsonNode<'a>,
    path: &str,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<Option<NeutralTurn<'a>>, BadRequest> {
    let kind = kind(node);
    let turn = |role, block| {
        Some(NeutralTurn {
            role,
            blocks: vec![block],
        })
    };
    if let Some(call) = any_call(kind, node, path)? {
        return Ok(turn(Role::Assistant, call));
    }
    match kind {
        "" | "message" => message(node, path, prompt, decoding),
        kind if is_output(kind) => {
            let result = output(node, path, decoding)?;
            Ok(turn(Role::User, NeutralBlock::Result(result)))
        }
        "reasoning" => {
            let thought = reasoning(node).map(|text| NeutralBlock::Thinking { text });
            Ok(thought.and_then(|thought| turn(Role::Assistant, thought)))
        }
        "compaction" | "compaction_summary" => compaction(node, path),
        "compaction_trigger" => Err(unsupported(path, NO_TRIGGER)),
        "configuration_update" => Err(unsupported(path, NO_UPDATE)),
        "tool_search_output" | "additional_tools" => {
            tools(node.get("tools"), prompt, decoding)?;
            decoding.drop("input.tool_search");
            Ok(None)
        }
        "tool_search_call" => Ok(None),
        "item_reference" => Err(unsupported(path, ITEM_REFERENCE).with(Remedy::Off("store"))),
        "agent_message" => Ok(agent_message(node, decoding)),
        // Clients keep what one answer or one tool of theirs has made in every later turn: a refusal would end the conversation.
        _ => {
            decoding.drop(&format!("input.{kind}"));
            Ok(None)
        }
    }
}

/// What an item is. One with an id and nothing that a message has is a reference, whose type may be left out.
fn kind<'a>(node: &JsonNode<'a>) -> &'a str {
    let is_null = |name: &str| node.get(name).is_null();
    let kind = node.get("type").word();
    if kind.is_empty() && is_null("role") && is_null("content") && !is_null("id") {
        return "item_reference";
    }
    kind
}

/// What one agent has told another: its texts, after a line that names both. What is sealed can be read only by its maker.
fn agent_message<'a>(node: &JsonNode<'a>, decoding: &mut Decoding<'_>) -> Option<NeutralTurn<'a>> {
    let content = node.get("content");
    let mut blocks: Vec<NeutralBlock<'a>> =
        content.text().map(NeutralBlock::text).into_iter().collect();
    for part in content.elements() {
        match (part.get("type").word(), part.get("text").text()) {
            (_, Some(text)) => blocks.push(NeutralBlock::text(text)),
            (kind, None) => decoding.drop(&format!("input.agent_message.{kind}")),
        }
    }
    if blocks.is_empty() {
        return None;
    }
    let name = |member: &str| node.get(member).plain().unwrap_or(Cow::Borrowed("?"));
    let heading = format!(
        "Message from agent {} to agent {}:",
        name("author"),
        name("recipient")
    );
    blocks.insert(0, NeutralBlock::words(&heading));
    Some(NeutralTurn {
        role: Role::User,
        blocks,
    })
}

/// A call of a tool that the caller runs itself, if the item is one.
fn any_call<'a>(
    kind: &str,
    node: &JsonNode<'a>,
    path: &str,
) -> Result<Option<NeutralBlock<'a>>, BadRequest> {
    let json = |member| text_or_json(node.get(member));
    let name = || {
        let name = node.get("name").plain();
        name.ok_or_else(|| wrong(&format!("{path}.name"), "text"))
    };
    let (name, kind, arguments) = match kind {
        "function_call" => (name()?, ToolKind::Function, json("arguments")),
        "custom_tool_call" => (name()?, ToolKind::Custom, json("input")),
        _ => match client_tools::call(node) {
            Some((name, arguments)) => (name.into(), ToolKind::Function, arguments.into()),
            None => return Ok(None),
        },
    };
    Ok(Some(NeutralBlock::Call(NeutralCall {
        id: id(node),
        name,
        namespace: node.get("namespace").plain(),
        kind,
        arguments,
        cache: None,
    })))
}

fn is_output(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output")
        || client_tools::is_output(kind)
}

fn message<'a>(
    node: &JsonNode<'a>,
    path: &str,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &Decoding<'_>,
) -> Result<Option<NeutralTurn<'a>>, BadRequest> {
    let blocks = parts(node.get("content"), &format!("{path}.content"), decoding)?;
    let role = match node.get("role").word() {
        "system" | "developer" if prompt.turns.is_empty() => {
            prompt.system.extend(blocks);
            return Ok(None);
        }
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => {
            return Err(wrong(
                &format!("{path}.role"),
                "\"user\", \"assistant\", \"system\" or \"developer\"",
            ));
        }
    };
    Ok(Some(NeutralTurn { role, blocks }))
}

fn parts<'a>(
    content: &JsonNode<'a>,
    path: &str,
    decoding: &Decoding<'_>,
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
        "input_text" | "output_text" | "text" | "summary_text" => Ok(text(node, "text")),
        "refusal" => Ok(text(node, "refusal")),
        "input_image" => picture(node, path),
        "input_file" => file(node, node, path),
        kind => Err(no_equal(path, kind, decoding.target)),
    }
}

fn id<'a>(node: &JsonNode<'a>) -> Cow<'a, str> {
    node.get("call_id")
        .plain()
        .or_else(|| node.get("id").plain())
        .unwrap_or_default()
}

/// A string's text, or the JSON of another value.
fn text_or_json<'a>(node: &JsonNode<'a>) -> Cow<'a, str> {
    node.plain()
        .or_else(|| node.object().map(compact))
        .unwrap_or_default()
}

fn output<'a>(
    node: &JsonNode<'a>,
    path: &str,
    decoding: &Decoding<'_>,
) -> Result<CallResult<'a>, BadRequest> {
    let given = node.get("output");
    let typed = given
        .elements()
        .next()
        .is_some_and(|first| !first.get("type").is_null());
    let blocks = match given.kind {
        Kind::Array if !typed => vec![NeutralBlock::words(given.raw)],
        // What a computer shows.
        Kind::Object if !given.get("image_url").is_empty() => {
            vec![picture(given, &format!("{path}.output"))?]
        }
        Kind::Object => vec![NeutralBlock::words(given.raw)],
        _ => parts(given, &format!("{path}.output"), decoding)?,
    };
    Ok(CallResult {
        id: id(node),
        blocks,
        is_error: node.get("status").word() == "failed",
        cache: cache(node),
    })
}

/// The visible part of a reasoning item: its text, else its summary.
fn reasoning<'a>(node: &JsonNode<'a>) -> Option<Escaped<'a>> {
    let texts = |list: &JsonNode<'a>| {
        let texts: Vec<Escaped<'_>> = list
            .elements()
            .filter_map(|part| part.get("text").text())
            .collect();
        (!texts.is_empty()).then(|| Escaped::join(&texts, "\\n\\n"))
    };
    texts(node.get("content"))
        .or_else(|| texts(node.get("summary")))
        .filter(|text| !text.is_empty())
}

/// A readable compacted history stays. An encrypted one is the whole history, so it is refused.
fn compaction<'a>(node: &JsonNode<'a>, path: &str) -> Result<Option<NeutralTurn<'a>>, BadRequest> {
    let summary = node.get("summary");
    if let Some(text) = summary.text().or_else(|| reasoning(node)) {
        return Ok(Some(NeutralTurn {
            role: Role::System,
            blocks: vec![NeutralBlock::text(text)],
        }));
    }
    if node.get("encrypted_content").is_empty() {
        return Ok(None);
    }
    Err(unsupported(
        path,
        format!(
            "`{path}`: the compacted conversation is encrypted for another model. Send the conversation itself, or its summary as text."
        ),
    ))
}
