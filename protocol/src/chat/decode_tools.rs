//! The tools of a chat request, and the choice among them.

use std::borrow::Cow;

use crate::BadRequest;
use crate::json::Kind;
use crate::translate::decode::{Decoding, cache, no_server_tool, object_schema, some_left, wrong};
use crate::translate::neutral::{NeutralPrompt, NeutralTool, ToolChoice, ToolKind};
use crate::translate::tree::JsonNode;

pub(super) fn tools<'a>(
    list: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<(), BadRequest> {
    let mut gone = None;
    for (at, node) in list.elements().enumerate() {
        let tool = match node.get("type").word() {
            "" | "function" => function(node.get("function")),
            "custom" => custom(node.get("custom")),
            kind => {
                decoding.drop(&format!("tools.{kind}"));
                gone.get_or_insert((at, kind));
                continue;
            }
        };
        if tool.name.is_empty() {
            return Err(wrong(&format!("tools[{at}]"), "a tool with a name"));
        }
        prompt.tools.push(NeutralTool {
            cache: cache(node),
            ..tool
        });
    }
    some_left(prompt, gone)
}

fn function<'a>(node: &JsonNode<'a>) -> NeutralTool<'a> {
    NeutralTool {
        name: node.get("name").plain().unwrap_or_default(),
        description: node.get("description").text(),
        schema: object_schema(node.get("parameters")),
        strict: node.get("strict").flag(),
        ..NeutralTool::default()
    }
}

fn custom<'a>(node: &JsonNode<'a>) -> NeutralTool<'a> {
    let grammar = match node.get("format") {
        nested if !nested.get("grammar").is_null() => nested.get("grammar"),
        flat => flat,
    };
    NeutralTool {
        name: node.get("name").plain().unwrap_or_default(),
        kind: ToolKind::Custom,
        description: node.get("description").text(),
        grammar: grammar
            .get("syntax")
            .text()
            .zip(grammar.get("definition").text()),
        ..NeutralTool::default()
    }
}

/// The older `functions` form of tools, in which an answer has at most one call.
pub(super) fn functions<'a>(
    list: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    prompt.old_functions = !list.is_empty();
    prompt.parallel = Some(false);
    for (at, node) in list.elements().enumerate() {
        let tool = function(node);
        if tool.name.is_empty() {
            return Err(wrong(&format!("functions[{at}]"), "a function with a name"));
        }
        prompt.tools.push(tool);
    }
    Ok(())
}

pub(super) fn tool_choice<'a>(node: &JsonNode<'a>) -> Result<Option<ToolChoice<'a>>, BadRequest> {
    if node.kind != Kind::Object {
        return Ok(choice(node));
    }
    let named = |node: &JsonNode<'a>| {
        let inner = [node.get("function"), node.get("custom")]
            .into_iter()
            .find(|inner| inner.kind == Kind::Object);
        inner.unwrap_or(node).get("name").plain()
    };
    match node.get("type").word() {
        "allowed_tools" => {
            let inner = node.get("allowed_tools");
            let names: Vec<Cow<'_, str>> =
                inner.get("tools").elements().filter_map(named).collect();
            Ok(Some(ToolChoice::Allowed {
                names,
                required: inner.get("mode").word() == "required",
            }))
        }
        "function" | "custom" => named(node)
            .map(|name| Some(ToolChoice::Tool(name)))
            .ok_or_else(|| wrong("tool_choice", "a choice with a name")),
        kind => Err(no_server_tool("tool_choice", kind)),
    }
}

/// A choice by one word, or the old form with a name.
pub(super) fn choice<'a>(node: &JsonNode<'a>) -> Option<ToolChoice<'a>> {
    let named = || node.get("name").plain().map(ToolChoice::Tool);
    ToolChoice::of_word(node.word()).or_else(named)
}
