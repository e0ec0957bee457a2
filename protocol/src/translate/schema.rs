//! JSON schemas for answers, and how the families differ about them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::tree::JsonNode;
use crate::json::{Kind, set_members};

/// Schema members that messages does not know: their meaning goes into the description.
const UNKNOWN: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "not",
];

/// A tool's schema for messages, whose vendors accept no type but `object`: one of several types that include it becomes it.
pub(crate) fn one_object(schema: &str) -> Cow<'_, str> {
    let parsed = JsonNode::parse(schema.as_bytes());
    match parsed {
        // `["object", "null"]` is common in schemas made from code, where the arguments may be left out.
        Ok(node) if node.get("type").kind == Kind::Array => {
            Cow::Owned(set_members(schema, &[("type", "\"object\"")]))
        }
        _ => Cow::Borrowed(schema),
    }
}

/// String formats that messages knows.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Whether a schema can be strict: every object forbids other members and requires all that it names.
// A schema that claims to be strict and is not gets a 400 from vendors, so it is checked here and not tried.
pub(crate) fn is_strict(schema: &str) -> bool {
    serde_json::from_str::<Value>(schema)
        .is_ok_and(|schema| schema.is_object() && all_strict(&schema))
}

fn all_strict(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().all(all_strict),
        Value::Object(members) => {
            let own = match members.get("properties") {
                Some(Value::Object(properties)) => {
                    let required = members.get("required").and_then(Value::as_array);
                    let needs = |name: &String| {
                        required
                            .is_some_and(|list| list.iter().any(|one| one.as_str() == Some(name)))
                    };
                    members.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(needs)
                }
                _ => members.get("type").and_then(Value::as_str) != Some("object"),
            };
            own && members.values().all(all_strict)
        }
        _ => true,
    }
}

/// A schema in the form messages accepts, and whether that is less than was asked for.
pub(crate) fn for_messages(schema: &str) -> (String, bool) {
    // What is no JSON goes out as it came: the vendor's error names the fault better than ours could.
    let Ok(mut value) = serde_json::from_str::<Value>(schema) else {
        return (schema.to_owned(), false);
    };
    let mut relaxed = false;
    relax(&mut value, &mut relaxed);
    (value.to_string(), relaxed)
}

fn relax(value: &mut Value, relaxed: &mut bool) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| relax(one, relaxed)),
        Value::Object(members) => relax_object(members, relaxed),
        _ => {}
    }
}

fn relax_object(members: &mut Map<String, Value>, relaxed: &mut bool) {
    *relaxed |= keep_only_reference(members);
    members.shift_remove("$schema");
    if let Some(choices) = members.shift_remove("oneOf") {
        members.insert("anyOf".to_owned(), choices);
        *relaxed = true;
    }
    *relaxed |= tell_unknown_limits(members);
    let is_object = members.get("type").and_then(Value::as_str) == Some("object")
        || members.get("properties").is_some();
    if is_object && members.get("additionalProperties") != Some(&Value::Bool(false)) {
        *relaxed |= members.get("additionalProperties").is_some();
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for (name, value) in members.iter_mut() {
        match (name.as_str(), value) {
            // The caller names the members of these; only their values are schemas.
            (
                "properties" | "$defs" | "definitions" | "patternProperties",
                Value::Object(named),
            ) => named.values_mut().for_each(|one| relax(one, relaxed)),
            ("enum" | "const" | "default" | "examples" | "required", _) => {}
            (_, other) => relax(other, relaxed),
        }
    }
}

/// Leaves a reference nothing beside it but definitions; whether more than that was lost.
fn keep_only_reference(members: &mut Map<String, Value>) -> bool {
    let defines = |name: &str| matches!(name, "$defs" | "definitions");
    let Some(reference) = members.get("$ref").cloned() else {
        return false;
    };
    let lost = members.keys().any(|name| name != "$ref" && !defines(name));
    members.retain(|name, _| defines(name));
    members.insert("$ref".to_owned(), reference);
    lost
}

/// Moves limits that messages does not know into the description; whether there were any.
fn tell_unknown_limits(members: &mut Map<String, Value>) -> bool {
    let mut notes = Vec::new();
    for name in UNKNOWN {
        let value = members.get(*name);
        // `minItems` of 0 and 1 are supported.
        if *name == "minItems"
            && value
                .and_then(Value::as_u64)
                .is_some_and(|count| count <= 1)
        {
            continue;
        }
        let limit = members.shift_remove(*name);
        notes.extend(limit.map(|limit| format!("{name}: {limit}")));
    }
    let format = members.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        let format = members.shift_remove("format");
        notes.extend(format.map(|format| format!("format: {format}")));
    }
    if notes.is_empty() {
        return false;
    }
    let told = members.get("description").and_then(Value::as_str);
    let told = told.map(|told| format!("{told}\n")).unwrap_or_default();
    let told = format!("{told}({})", notes.join(", "));
    members.insert("description".to_owned(), Value::String(told));
    true
}
