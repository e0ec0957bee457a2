//! Tools of the responses wire, the choice among them, and the form of the answer.

use serde_json::Value;

use super::tools::{closed_schema, is_object_schema};
use crate::rule::{JsonType, Must, WireRule, word};

use JsonType::{Flag, List, Null, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt};

const TOOL: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/function_tool_param.py, custom_tool_param.py, tool_param.py";
const CHOICE: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/tool_choice_*_param.py";
const NAME: &str = "OpenAI's OpenAPI document 2.3.0 (github.com/openai/openai-openapi at f85dbe22, 2026-08-21): FunctionToolParam, name; 400 \"Invalid 'tools[0].name': string does not match pattern\", 2025-05-27: github.com/openai/openai-dotnet/issues/441";
const STRICT: &str = "400 \"'additionalProperties' is required to be supplied and to be false\" for a function, 2025-03-14: github.com/lastmile-ai/openai-agents-mcp/issues/2; the same and \"'required' is required to be supplied and to be an array including every key in properties\" for response_format, 2026-08-04: github.com/agentscope-ai/agentscope-java/issues/2548";
const NOT_FOUND: &str = "400 \"Tool choice '<name>' not found in 'tools' parameter\": a change note of @ai-sdk/openai in github.com/vercel/ai, read 2026-11-23";
const FORMAT: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/responses/response_format_text_json_schema_config_param.py";
const OBJECT: &str = "400 invalid_function_parameters \"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'\", 2025-08-06: github.com/ComposioHQ/composio/issues/1829";

/// The tools and the choice among them.
#[rustfmt::skip]
pub(crate) const TOOLS: &[WireRule] = &[
    WireRule::new("/tools", Be(&[List, Null]), TOOL),
    WireRule::new("/tools/*", Needs(&["type"]), TOOL),
    WireRule::new("/tools/*/type", OneOf(&[
        "function", "custom", "namespace", "file_search", "computer", "computer_use_preview", "web_search", "web_search_2025_08_26",
        "web_search_preview", "web_search_preview_2025_03_11", "mcp", "code_interpreter", "image_generation", "local_shell", "shell",
        "apply_patch", "tool_search", "programmatic_tool_calling",
    ]), TOOL),
    WireRule::new("/tools/*[type=function]", Closed(&["type", "name", "description", "parameters", "strict", "allowed_callers", "defer_loading", "output_schema", "async"]), TOOL),
    WireRule::new("/tools/*[type=function]", Needs(&["name"]), TOOL).named("needs its name"),
    WireRule::new("/tools/*[type=custom]", Needs(&["name"]), TOOL).named("needs its name too"),
    WireRule::new("/tools/*[type=custom]", Closed(&["type", "name", "description", "format", "allowed_callers", "defer_loading", "async"]), TOOL).named("custom closed"),
    WireRule::new("/tools/*[type=function|custom]/name", Be(&[Text]), TOOL),
    WireRule::new("/tools/*[type=function|custom]/name", Long(1, 128), NAME),
    WireRule::new("/tools/*[type=function|custom]/name", Spelt(word), NAME),
    WireRule::new("/tools/*[type=function]/parameters", Be(&[Object, Null]), TOOL),
    WireRule::new("/tools/*[type=function]/parameters", Hold(is_object_schema), OBJECT).when(has_schemas)
        .broken_by(&[("/tools", r#"[{"type":"function","name":"f","strict":false,"parameters":{"type":"string"}}]"#), ("/tool_choice", "\"auto\"")]),
    WireRule::new("/tools/*[type=function]/strict", Be(&[Flag, Null]), TOOL),
    WireRule::new("/tools/*[type=function]", Hold(strict_tool), STRICT)
        .named("strict subset")
        .broken_by(&[("/tools", r#"[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}]"#), ("/tool_choice", "\"auto\"")]),
    WireRule::new("/tool_choice", Be(&[Text, Object, Null]), CHOICE),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), CHOICE),
    WireRule::new("/tool_choice[type=function|custom]", Needs(&["name"]), CHOICE).named("names its tool"),
    WireRule::new("/tool_choice[type=function|custom]", Closed(&["type", "name"]), CHOICE),
    WireRule::new("/tool_choice[type=allowed_tools]", Needs(&["mode", "tools"]), CHOICE).named("names its tools"),
    WireRule::new("/tool_choice[type=allowed_tools]/mode", OneOf(&["auto", "required"]), CHOICE),
    WireRule::new("", Hold(chosen_exists), NOT_FOUND)
        .named("the chosen tool exists")
        .broken_by(&[("/tool_choice", r#"{"type":"function","name":"nobody"}"#)]),
];

/// The form of the answer.
#[rustfmt::skip]
pub(crate) const FORMATS: &[WireRule] = &[
    WireRule::new("/text", Be(&[Object, Null]), FORMAT),
    WireRule::new("/text", Closed(&["format", "verbosity"]), FORMAT),
    WireRule::new("/text/verbosity", OneOf(&["low", "medium", "high"]), FORMAT),
    WireRule::new("/text/format", Needs(&["type"]), FORMAT),
    WireRule::new("/text/format/type", OneOf(&["text", "json_object", "json_schema"]), FORMAT),
    WireRule::new("/text/format[type=json_schema]", Needs(&["name", "schema"]), FORMAT).named("needs its schema"),
    WireRule::new("/text/format[type=json_schema]", Closed(&["type", "name", "schema", "description", "strict"]), FORMAT),
    WireRule::new("/text/format/name", Long(1, 64), FORMAT),
    WireRule::new("/text/format/name", Spelt(word), FORMAT),
    WireRule::new("/text/format[type=json_schema]", Hold(strict_format), STRICT)
        .named("strict subset")
        .broken_by(&[("/text", r#"{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}}}"#)]),
];

fn has_schemas(body: &Value) -> bool {
    let mut tools = body["tools"].as_array().into_iter().flatten();
    tools.any(|tool| tool["parameters"].is_object())
}

/// This wire is strict unless told otherwise, but then it makes the schema strict by itself.
fn strict_tool(tool: &Value) -> Result<(), String> {
    if tool["strict"] == true {
        return closed_schema(&tool["parameters"]);
    }
    Ok(())
}

fn strict_format(format: &Value) -> Result<(), String> {
    if format["strict"] == true {
        return closed_schema(&format["schema"]);
    }
    Ok(())
}

fn chosen_exists(body: &Value) -> Result<(), String> {
    let choice = &body["tool_choice"];
    let tools: Vec<&Value> = body["tools"].as_array().into_iter().flatten().collect();
    let offered = |chosen: &Value| {
        let same =
            |tool: &&&Value| tool["type"] == chosen["type"] && tool["name"] == chosen["name"];
        tools.iter().find(same).is_some()
    };
    let chosen: Vec<&Value> = match choice["type"].as_str() {
        Some("function" | "custom") => vec![choice],
        Some("allowed_tools") => choice["tools"].as_array().into_iter().flatten().collect(),
        _ => Vec::new(),
    };
    match chosen.into_iter().find(|chosen| !offered(chosen)) {
        Some(chosen) => Err(format!(
            "Tool choice {chosen} not found in 'tools' parameter."
        )),
        None => Ok(()),
    }
}
