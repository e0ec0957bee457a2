//! The tools of a responses request, and the choice among them.

use std::borrow::Cow;

use crate::BadRequest;
use crate::json::Kind;
use crate::translate::decode::{Decoding, cache, no_server_tool, object_schema, wrong};
use crate::translate::neutral::{Choice, Prompt, Tool, ToolKind};
use crate::translate::tree::Node;

/// Adds the tools of a list. Tools that run on a server are dropped, and refused if nothing else is left.
pub(super) fn tools<'a>(
    list: &Node<'a>,
    prompt: &mut Prompt<'a>,
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
            "local_shell" => push(
                Tool {
                    name: Cow::Borrowed("local_shell"),
                    kind: ToolKind::LocalShell,
                    ..Tool::default()
                },
                prompt,
            ),
            kind => {
                decoding.drop(&format!("tools.{kind}"));
                gone.get_or_insert((at, kind));
            }
        }
    }
    match gone {
        Some((at, kind)) if prompt.tools.is_empty() => {
            Err(no_server_tool(&format!("tools[{at}]"), kind))
        }
        _ => Ok(()),
    }
}

fn add<'a>(
    node: &Node<'a>,
    namespace: Option<Cow<'a, str>>,
    at: usize,
    prompt: &mut Prompt<'a>,
) -> Result<(), BadRequest> {
    let Some(name) = node.get("name").plain().filter(|name| !name.is_empty()) else {
        return Err(wrong(&format!("tools[{at}]"), "a tool with a name"));
    };
    let custom = node.get("type").word() == "custom";
    let format = node.get("format");
    let tool = Tool {
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
fn push<'a>(tool: Tool<'a>, prompt: &mut Prompt<'a>) {
    if !prompt.tools.contains(&tool) {
        prompt.tools.push(tool);
    }
}

pub(super) fn choice<'a>(node: &Node<'a>) -> Result<Option<Choice<'a>>, BadRequest> {
    match node.word() {
        "auto" => return Ok(Some(Choice::Auto)),
        "none" => return Ok(Some(Choice::None)),
        "required" => return Ok(Some(Choice::Required)),
        _ if node.kind != Kind::Object => return Ok(None),
        _ => {}
    }
    match node.get("type").word() {
        "function" | "custom" => {
            let name = node
                .get("name")
                .plain()
                .ok_or_else(|| wrong("tool_choice.name", "text"))?;
            Ok(Some(Choice::Tool(name)))
        }
        "local_shell" => Ok(Some(Choice::Tool(Cow::Borrowed("local_shell")))),
        "allowed_tools" => {
            let names = node
                .get("tools")
                .elements()
                .filter_map(|tool| tool.get("name").plain())
                .collect();
            Ok(Some(Choice::Allowed {
                names,
                required: node.get("mode").word() == "required",
            }))
        }
        kind => Err(no_server_tool("tool_choice", kind)),
    }
}
