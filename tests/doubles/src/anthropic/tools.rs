//! Tools of the messages wire, and the choice among them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::{closed, flat};
use crate::rule::{JsonType, Must, WireRule, word};

use JsonType::{Flag, List, Object, Text};
use Must::{Be, Closed, Hold, Long, Needs, OneOf, Spelt};

const TOOL: &str =
    "anthropic 2.12.0 (PyPI, 2026-11-23): types/tool_param.py, types/tool_union_param.py";
const CHOICE: &str = "anthropic 2.12.0 (PyPI, 2026-11-23): types/tool_choice_*_param.py";
const NAME: &str = "400 \"tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'\", 2025-06-29: github.com/home-assistant/core/issues/147760; the same length, 2026-09-22: github.com/anthropics/claude-code/issues/96152";
const UNIQUE: &str = "400 \"tools: Tool names must be unique.\", 2025-10-31: github.com/anthropics/claude-code/issues/10687";
const FLAT: &str = "400 \"tools.19.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level\", 2026-08-23: github.com/windoze95/cantinarr/issues/497";
const WITHOUT: &str = "measured 2026-09-29 in github.com/aakshintala/fiber (\"Anthropic Messages facts, probed\", #132): without tools auto and none are taken, any is 400 \"tool_choice.any may only be specified while providing tools\", tool is 400 \"Tool 'get_weather' not found in provided tools\"";
const STRICT: &str = "no source found (2026-11-23) for strict tools; output_config.format asks for it: github.com/veryfront/veryfront-code/pull/3921";

/// The tools and the choice among them.
#[rustfmt::skip]
pub(crate) const TOOLS: &[WireRule] = &[
    WireRule::new("/tools", Be(&[List]), TOOL),
    WireRule::new("/tools/*", Be(&[Object]), TOOL),
    WireRule::new("/tools/*", Hold(is_described), TOOL)
        .named("needs its schema")
        .broken_by(&[("/tools", r#"[{"name":"f"}]"#), ("/tool_choice", r#"{"type":"auto"}"#)]),
    WireRule::new("/tools/*", Hold(is_known), TOOL)
        .named("closed")
        .broken_by(&[("/tools", r#"[{"name":"f","input_schema":{"type":"object"},"parameters":{}}]"#), ("/tool_choice", r#"{"type":"auto"}"#)]),
    WireRule::new("/tools/*/name", Be(&[Text]), TOOL),
    WireRule::new("/tools/*/name", Long(1, 128), NAME),
    WireRule::new("/tools/*/name", Spelt(word), NAME),
    WireRule::new("/tools/*/description", Be(&[Text]), TOOL),
    WireRule::new("/tools/*/strict", Be(&[Flag]), TOOL),
    WireRule::new("/tools/*/input_schema", Be(&[Object]), TOOL),
    WireRule::new("/tools/*/input_schema", Needs(&["type"]), TOOL),
    WireRule::new("/tools/*/input_schema/type", OneOf(&["object"]), TOOL),
    WireRule::new("/tools/*/input_schema", Hold(flat), FLAT)
        .broken_by(&[("/tools/0/input_schema", r#"{"type":"object","anyOf":[{"required":["a"]}]}"#)]),
    WireRule::new("/tools/*", Hold(strict_tool), STRICT)
        .named("strict subset")
        .unverified()
        .broken_by(&[("/tools/0/input_schema", r#"{"type":"object","properties":{"a":{"type":"string"}}}"#), ("/tools/0/strict", "true")]),
    WireRule::new("/tools", Hold(one_of_a_name), UNIQUE)
        .broken_by(&[("/tools/-", r#"{"name":"f","input_schema":{"type":"object"}}"#)]),
    WireRule::new("/tool_choice", Be(&[Object]), CHOICE),
    WireRule::new("/tool_choice", Needs(&["type"]), CHOICE),
    WireRule::new("/tool_choice/type", OneOf(&["auto", "any", "tool", "none"]), CHOICE),
    WireRule::new("/tool_choice[type=auto]", Closed(&["type", "disable_parallel_tool_use"]), CHOICE).named("auto closed"),
    WireRule::new("/tool_choice[type=none]", Closed(&["type"]), CHOICE).named("none closed"),
    WireRule::new("/tool_choice[type=tool]", Needs(&["name"]), CHOICE).named("names its tool"),
    WireRule::new("/tool_choice/disable_parallel_tool_use", Be(&[Flag]), CHOICE),
    WireRule::new("", Hold(chosen_exists), WITHOUT)
        .named("the chosen tool exists")
        .broken_by(&[("/tool_choice", r#"{"type":"tool","name":"nobody"}"#)]),
];

/// A tool of the customer's own, not one that the service describes itself.
fn is_own(tool: &Value) -> bool {
    matches!(tool["type"].as_str(), None | Some("custom"))
}

fn is_described(tool: &Value) -> Result<(), String> {
    let missing = ["name", "input_schema"]
        .into_iter()
        .find(|name| tool.get(*name).is_none());
    match missing.filter(|_| is_own(tool)) {
        Some(name) => Err(format!("custom.{name}: Field required")),
        None => Ok(()),
    }
}

fn is_known(tool: &Value) -> Result<(), String> {
    let known = [
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "description",
        "eager_input_streaming",
        "input_examples",
        "input_schema",
        "name",
        "strict",
        "type",
    ];
    let members = tool.as_object().into_iter().flat_map(serde_json::Map::keys);
    let strange = members
        .filter(|_| is_own(tool))
        .find(|name| !known.contains(&name.as_str()));
    strange.map_or(Ok(()), |name| {
        Err(format!("custom.{name}: Extra inputs are not permitted"))
    })
}

fn strict_tool(tool: &Value) -> Result<(), String> {
    if tool["strict"] == true {
        return closed(&tool["input_schema"]);
    }
    Ok(())
}

fn one_of_a_name(tools: &Value) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let all = tools.as_array().into_iter().flatten();
    let doubled = all
        .filter_map(|tool| tool["name"].as_str())
        .find(|name| !names.insert(*name));
    doubled.map_or(Ok(()), |name| {
        Err(format!("Tool names must be unique: {name}"))
    })
}

fn chosen_exists(body: &Value) -> Result<(), String> {
    let choice = &body["tool_choice"];
    let tools = body["tools"].as_array();
    if !choice.is_object() {
        return Ok(());
    }
    if tools.is_none_or(Vec::is_empty) && choice["type"] == "any" {
        return Err("tool_choice.any may only be specified while providing tools".to_owned());
    }
    let named = choice["type"] == "tool";
    let mut names = tools.into_iter().flatten().map(|tool| &tool["name"]);
    if named && !names.any(|name| *name == choice["name"]) {
        return Err(format!(
            "Tool {} not found in provided tools",
            choice["name"]
        ));
    }
    Ok(())
}
