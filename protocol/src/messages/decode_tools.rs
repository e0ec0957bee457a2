//! The tools of a messages request. Typed client tools become functions with the schema their clients follow. Tools that run on a
//! server are dropped, and refused if nothing else is left or they are forced.

use std::borrow::Cow;

use crate::BadRequest;
use crate::translate::decode::{Decoding, cache, object_schema, some_left, wrong};
use crate::translate::neutral::{NeutralPrompt, NeutralTool, ToolChoice};
use crate::translate::text::Escaped;
use crate::translate::tree::JsonNode;

const BASH: &str = r#"{"type":"object","properties":{"command":{"type":"string","description":"The command to run"},"restart":{"type":"boolean","description":"Restart the shell"}}}"#;
const EDITOR: &str = r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"old_str":{"type":"string"},"new_str":{"type":"string"},"file_text":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"}},"required":["command","path"]}"#;
const MEMORY: &str = r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"old_str":{"type":"string"},"new_str":{"type":"string"},"file_text":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"},"old_path":{"type":"string"},"new_path":{"type":"string"}},"required":["command"]}"#;

/// Client tools that are recognised by their type: its prefix, a description, their schema.
const TYPED: &[(&str, &str, &str)] = &[
    ("bash_", "Run a command in a persistent shell.", BASH),
    ("text_editor_", "View, create and edit text files.", EDITOR),
    ("memory_", "Read and write files below /memories.", MEMORY),
];

/// Members of a tool that are hints.
const HINTS: &[&str] = &["defer_loading", "input_examples", "allowed_callers"];

pub(super) fn tools<'a>(
    list: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
    decoding: &mut Decoding<'_>,
) -> Result<(), BadRequest> {
    let mut gone = None;
    for (at, node) in list.elements().enumerate() {
        let name = node.get("name").plain().unwrap_or_default();
        let kind = node.get("type").word();
        HINTS
            .iter()
            .filter(|hint| !node.get(hint).is_empty())
            .for_each(|hint| decoding.drop(&format!("tools.{hint}")));
        let mut tool = NeutralTool {
            name,
            cache: cache(node),
            ..NeutralTool::default()
        };
        if matches!(kind, "" | "custom") {
            tool.description = node.get("description").text();
            tool.schema = object_schema(node.get("input_schema"));
            tool.strict = node.get("strict").flag();
        } else if let Some((_, what, schema)) =
            TYPED.iter().find(|(begins, ..)| kind.starts_with(begins))
        {
            tool.description = Some(Escaped::of(what));
            tool.schema = Some(Cow::Borrowed(schema));
        } else {
            decoding.drop(&format!("tools.{}", tool_word(kind)));
            gone.get_or_insert((at, kind));
            continue;
        }
        if tool.name.is_empty() {
            return Err(wrong(&format!("tools[{at}].name"), "text"));
        }
        prompt.tools.push(tool);
    }
    some_left(prompt, gone)
}

/// The type of a tool without its date.
fn tool_word(kind: &str) -> &str {
    kind.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_')
}

pub(super) fn choice<'a>(
    node: &JsonNode<'a>,
    prompt: &mut NeutralPrompt<'a>,
) -> Result<(), BadRequest> {
    prompt.choice = Some(match node.get("type").word() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Tool(
            node.get("name")
                .plain()
                .ok_or_else(|| wrong("tool_choice.name", "text"))?,
        ),
        _ => {
            return Err(wrong(
                "tool_choice.type",
                "\"auto\", \"any\", \"tool\" or \"none\"",
            ));
        }
    });
    if node.get("disable_parallel_tool_use").is_true() {
        prompt.parallel = Some(false);
    }
    Ok(())
}
