//! The tools of a responses request, and the choice among them.

use std::borrow::Cow;

use super::client_tools;
use crate::BadRequest;
use crate::json::Kind;
use crate::translate::decode::{Decoding, cache, no_server_tool, object_schema, some_left, wrong};
use crate::translate::neutral::{NeutralPrompt, NeutralTool, ToolChoice, ToolKind};
use crate::translate::tree::JsonNode;

/// Adds the tools of a list. What only its own provider has is dropped, and refused if nothing else is left.
pub(super) fn tools<'a>(
    list: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<(), BadRequest> {
    let mut gone = None;
    for (at, node) in list.elements().enumerate() {
        match node.get("type").word() {
            "namespace" => {
                let space = node.get("name").plain();
                for inner in node.get("tools").elements() {
                    add(inner, space.clone(), at, prompt)?;
                }
            }
            "function" | "custom" => add(node, None, at, prompt)?,
            kind => match client_tools::of_kind(kind) {
                Some(tool) => push(tool.offered(node), prompt),
                None => {
                    decoding.drop(&format!("tools.{kind}"));
                    gone.get_or_insert((at, kind));
                }
            },
        }
    }
    some_left(prompt, gone)
}

fn add<'a>(
    node: &JsonNode<'a>,
    namespace: Option<Cow<'a, str>>,
    at: usize,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    let Some(name) = node.get("name").plain().filter(|name| !name.is_empty()) else {
        return Err(wrong(&format!("tools[{at}]"), "a tool with a name"));
    };
    let custom = node.get("type").word() == "custom";
    let format = node.get("format");
    let tool = NeutralTool {
        name,
        namespace,
        kind: if custom {
            ToolKind::Custom
        } else {
            ToolKind::Function
        },
        description: node.get("description").text(),
        schema: object_schema(node.get("parameters")),
        grammar: format
            .get("syntax")
            .text()
            .zip(format.get("definition").text()),
        strict: node.get("strict").flag(),
        cache: cache(node),
    };
    push(tool, prompt);
    Ok(())
}

/// A tool found by a search may have been offered before; a repeated one does not count as a second tool.
fn push<'a>(tool: NeutralTool<'a>, prompt: &mut NeutralPrompt<'a>) {
    if !prompt.tools.contains(&tool) {
        prompt.tools.push(tool);
    }
}

pub(super) fn choice<'a>(node: &JsonNode<'a>) -> Result<Option<ToolChoice<'a>>, BadRequest> {
    if node.kind != Kind::Object {
        return Ok(ToolChoice::of_word(node.word()));
    }
    let named = |node: &JsonNode<'a>| match client_tools::chosen(node.get("type").word()) {
        Some(name) => Some(Cow::Borrowed(name)),
        None => node.get("name").plain(),
    };
    match node.get("type").word() {
        "allowed_tools" => {
            let names = node.get("tools").elements().filter_map(named).collect();
            Ok(Some(ToolChoice::Allowed {
                names,
                required: node.get("mode").word() == "required",
            }))
        }
        "function" | "custom" => named(node)
            .map(|name| Some(ToolChoice::Tool(name)))
            .ok_or_else(|| wrong("tool_choice.name", "text")),
        kind => match client_tools::chosen(kind) {
            Some(name) => Ok(Some(ToolChoice::Tool(Cow::Borrowed(name)))),
            None => Err(no_server_tool("tool_choice", kind)),
        },
    }
}
