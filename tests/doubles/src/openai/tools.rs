//! Tools of the chat wire, the choice among them, and the form of the answer.

use serde_json::Value;

use super::needs;
use crate::rule::{JsonType, Must, WireRule, word};

use JsonType::{Flag, List, Null, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt};

pub(super) const TOOL: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/chat/chat_completion_*tool*_param.py, types/shared_params/function_definition.py";
const FORMAT: &str = "openai 3.54.0 (PyPI, 2026-11-23): types/shared_params/response_format_*.py";

/// The tools and the choice among them.
pub(crate) const TOOLS: &[WireRule] = &[
    WireRule::new("/tools", Be(&[List]), TOOL),
    WireRule::new("/tools", Long(1, 128), TOOL_COUNT),
    WireRule::new("/tools/*", Needs(&["type"]), TOOL),
    WireRule::new("/tools/*/type", OneOf(&["function", "custom"]), TOOL),
    WireRule::new("/tools/*[type=function]", Closed(&["type", "function"]), TOOL),
    WireRule::new("/tools/*[type=function]", Needs(&["function"]), TOOL).named("needs its function"),
    WireRule::new("/tools/*/function", Closed(&["name", "description", "parameters", "strict"]), TOOL),
    WireRule::new("/tools/*/function", Needs(&["name"]), TOOL),
    WireRule::new("/tools/*/function/name", Be(&[Text]), TOOL),
    WireRule::new("/tools/*/function/name", Long(1, 64), TOOL),
    WireRule::new("/tools/*/function/name", Spelt(word), TOOL),
    WireRule::new("/tools/*/function/description", Be(&[Text]), TOOL),
    WireRule::new("/tools/*/function/parameters", Be(&[Object]), TOOL),
    WireRule::new("/tools/*/function/parameters", Hold(is_object_schema), OBJECT_SCHEMA)
        .broken_by(&[("/tools", r#"[{"type":"function","function":{"name":"f","parameters":{"type":"string"}}}]"#)]),
    WireRule::new("/tools/*/function/strict", Be(&[Flag, Null]), TOOL),
    WireRule::new("/tools/*/function", Hold(strict_tool), STRICT)
        .named("strict subset")
        .broken_by(&[("/tools", r#"[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}]"#)]),
    WireRule::new("/tools/*/custom", Closed(&["name", "description", "format"]), TOOL),
    WireRule::new("/tools/*/custom", Needs(&["name"]), TOOL),
    WireRule::new("/tool_choice", Be(&[Text, Object]), TOOL),
    WireRule::new("/tool_choice", OneOf(&["none", "auto", "required"]), TOOL),
    WireRule::new("/tool_choice", Needs(&["type"]), TOOL).when(chooses_by_object),
    WireRule::new("/tool_choice/type", OneOf(&["function", "custom", "allowed_tools"]), TOOL),
    WireRule::new("/tool_choice/function", Closed(&["name"]), TOOL),
    WireRule::new("/tool_choice/function", Needs(&["name"]), TOOL),
    WireRule::new("", Hold(choice_of_tools), CHOICE)
        .named("tool_choice needs tools")
        .broken_by(&[("/tools", ""), ("/tool_choice", "\"auto\"")]),
    WireRule::new("", Hold(parallel_of_tools), CHOICE)
        .named("parallel_tool_calls needs tools")
        .broken_by(&[("/tools", ""), ("/tool_choice", ""), ("/parallel_tool_calls", "true")]),
    WireRule::new("", Hold(chosen_exists), CHOICE)
        .named("the chosen tool exists")
        .broken_by(&[("/tool_choice", r#"{"type":"function","function":{"name":"nobody"}}"#)]),
];

const TOOL_COUNT: &str = "400 \"[] is too short - 'tools'\", 2025-09-12: github.com/JetBrains/koog/issues/786; 400 array_above_max_length over 128, 2025-08-23: github.com/musistudio/claude-code-router/issues/686";
const OBJECT_SCHEMA: &str = "400 invalid_function_parameters: [] is not of type 'object', 2025-06-11: github.com/FoundationAgents/OpenManus/issues/1162; object schema missing properties, 2025-12-07: github.com/github/github-mcp-server/issues/1548";
const STRICT: &str = "400 \"'additionalProperties' is required to be supplied and to be false\" for a function, 2025-03-14: github.com/lastmile-ai/openai-agents-mcp/issues/2; the same and \"'required' is required to be supplied and to be an array including every key in properties\" for response_format, 2026-08-04: github.com/agentscope-ai/agentscope-java/issues/2548";
const CHOICE: &str = "400 \"only allowed when 'tools' are specified\", 2025: github.com/Upsonic/Upsonic/issues/323, github.com/camel-ai/camel/pull/3706";

/// The form of the answer.
pub(crate) const FORMATS: &[WireRule] = &[
    WireRule::new("/response_format", Be(&[Object]), FORMAT),
    WireRule::new("/response_format", Needs(&["type"]), FORMAT),
    WireRule::new("/response_format/type", OneOf(&["text", "json_object", "json_schema"]), FORMAT),
    WireRule::new("/response_format[type=json_schema]", Needs(&["json_schema"]), FORMAT).named("needs its schema"),
    WireRule::new("/response_format/json_schema", Closed(&["name", "description", "schema", "strict"]), FORMAT),
    WireRule::new("/response_format/json_schema", Needs(&["name"]), FORMAT),
    WireRule::new("/response_format/json_schema/name", Long(1, 64), FORMAT),
    WireRule::new("/response_format/json_schema/name", Spelt(word), FORMAT),
    WireRule::new("/response_format/json_schema", Hold(strict_format), STRICT)
        .named("strict subset")
        .broken_by(&[("/response_format", r#"{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}}}"#)]),
];

fn choice_of_tools(body: &Value) -> Result<(), String> {
    needs(body, "tool_choice", "tools", Value::is_array)
}

fn parallel_of_tools(body: &Value) -> Result<(), String> {
    needs(body, "parallel_tool_calls", "tools", Value::is_array)
}

fn chooses_by_object(body: &Value) -> bool {
    body["tool_choice"].is_object()
}

fn chosen_exists(body: &Value) -> Result<(), String> {
    let Some(chosen) = body.pointer("/tool_choice/function/name") else {
        return Ok(());
    };
    let tools = body["tools"].as_array().into_iter().flatten();
    let mut names = tools.map(|tool| &tool["function"]["name"]);
    if names.any(|name| name == chosen) {
        Ok(())
    } else {
        Err(format!("no tool {chosen}"))
    }
}

pub(super) fn is_object_schema(schema: &Value) -> Result<(), String> {
    let empty = schema.as_object().is_some_and(serde_json::Map::is_empty);
    if empty || schema["type"] == "object" {
        Ok(())
    } else {
        Err("the schema is not of type object".to_owned())
    }
}

fn strict_tool(function: &Value) -> Result<(), String> {
    if function["strict"] == true {
        closed_schema(&function["parameters"])
    } else {
        Ok(())
    }
}

fn strict_format(format: &Value) -> Result<(), String> {
    if format["strict"] == true {
        closed_schema(&format["schema"])
    } else {
        Ok(())
    }
}

/// The subset of strict mode: every object is closed and requires all its properties.
pub(crate) fn closed_schema(schema: &Value) -> Result<(), String> {
    if let Some(properties) = schema["properties"].as_object() {
        if schema["additionalProperties"] != false {
            return Err(
                "'additionalProperties' is required to be supplied and to be false".to_owned(),
            );
        }
        let required = schema["required"].as_array();
        let is_required = |name: &String| {
            required.is_some_and(|names| names.contains(&Value::from(name.as_str())))
        };
        if let Some(name) = properties.keys().find(|name| !is_required(name)) {
            return Err(format!("'required' misses {name:?}"));
        }
    }
    match schema {
        Value::Object(members) => members.values().try_for_each(closed_schema),
        Value::Array(items) => items.iter().try_for_each(closed_schema),
        _ => Ok(()),
    }
}
