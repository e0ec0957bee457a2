//! What schemas may say: those of tools, of strict tools, and of the answer.

use serde_json::Value;

use crate::rule::{Must, WireRule};

use Must::Hold;

const SUBSET: &str = "400 \"output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false\", 2026-08-21: github.com/veryfront/veryfront-code/pull/3921; \"For 'integer' type, property 'minimum' is not supported\", 2025-12-28: github.com/agentjido/req_llm/issues/302; lengths and multipleOf, 2026-06-16: github.com/laravel/ai/issues/715; maxItems, 2026-05-19: github.com/agentjido/req_llm/pull/707";

/// The form of the answer.
pub(crate) const FORMAT: &[WireRule] = &[
    WireRule::new("/output_config/format/schema", Hold(closed), SUBSET)
        .named("closed objects")
        .broken_by(&[(
            "/output_config/format/schema",
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        )]),
    WireRule::new("/output_config/format/schema", Hold(unconstrained), SUBSET)
        .named("subset")
        .broken_by(&[(
            "/output_config/format/schema",
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"additionalProperties":false}"#,
        )]),
];

/// Constraints that the service does not enforce and therefore refuses.
const CONSTRAINTS: [&str; 8] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
];

/// Every object says that it has no other properties.
pub(crate) fn closed(schema: &Value) -> Result<(), String> {
    each(schema, &|schema| {
        if schema["type"] == "object" && schema["additionalProperties"] != false {
            return Err(
                "For 'object' type, 'additionalProperties' must be explicitly set to false"
                    .to_owned(),
            );
        }
        Ok(())
    })
}

/// No schema inside constrains a number, or a length.
fn unconstrained(schema: &Value) -> Result<(), String> {
    each(schema, &|schema| {
        let found = CONSTRAINTS.iter().find(|name| schema.get(**name).is_some());
        found.map_or(Ok(()), |name| {
            Err(format!("property '{name}' is not supported"))
        })
    })
}

/// A tool's input is one object, whatever alternatives there are inside.
pub(crate) fn flat(schema: &Value) -> Result<(), String> {
    let found = ["oneOf", "allOf", "anyOf"]
        .into_iter()
        .find(|name| schema.get(*name).is_some());
    found.map_or(Ok(()), |name| {
        Err(format!(
            "input_schema does not support {name} at the top level"
        ))
    })
}

/// Judges a schema and those inside it, but not what is only named like a keyword: a property `minimum` is a property.
fn each(schema: &Value, judge: &dyn Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    judge(schema)?;
    for name in ["properties", "$defs", "definitions"] {
        let members = schema[name]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::values);
        members
            .into_iter()
            .try_for_each(|inner| each(inner, judge))?;
    }
    for name in ["anyOf", "allOf", "oneOf"] {
        let members = schema[name].as_array().into_iter().flatten();
        members
            .into_iter()
            .try_for_each(|inner| each(inner, judge))?;
    }
    match &schema["items"] {
        Value::Null => Ok(()),
        items => each(items, judge),
    }
}
