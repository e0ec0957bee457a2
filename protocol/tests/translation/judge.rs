//! Validates against the JSON schemas of `tests/fixtures/schemas` as far as needed: types, names, enumerations and unions. Ignores
//! lengths, patterns and numeric bounds.

use serde_json::{Value, json};

/// A document with schemas, and the one that is asked for.
pub(crate) struct Judge {
    /// The file.
    pub(crate) file: &'static str,
    document: Value,
    root: Value,
}

impl Judge {
    pub(crate) fn new(file: &'static str, schema: &str) -> Self {
        let path = format!(
            "{}/tests/fixtures/schemas/{file}",
            env!("CARGO_MANIFEST_DIR")
        );
        let document =
            serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON");
        Self {
            file,
            document,
            root: json!({"$ref": format!("#/components/schemas/{schema}")}),
        }
    }

    /// What is wrong with a value: the place, and what was expected there.
    pub(crate) fn faults(&self, value: &Value) -> Vec<String> {
        self.at("", &self.root, value)
    }

    fn at(&self, place: &str, schema: &Value, value: &Value) -> Vec<String> {
        if let Some(name) = schema["$ref"].as_str() {
            let target = self
                .document
                .pointer(name.trim_start_matches('#'))
                .expect("a schema of the document");
            return self.at(place, target, value);
        }
        if value.is_null() && schema["nullable"] == true {
            return Vec::new();
        }
        let mut out = Vec::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            out.extend(self.at(place, part, value));
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[union].as_array() {
                out.extend(self.best(place, choices, value));
            }
        }
        let allowed = schema
            .get("const")
            .into_iter()
            .chain(schema["enum"].as_array().into_iter().flatten());
        let allowed: Vec<&Value> = allowed.collect();
        if !allowed.is_empty() && !allowed.contains(&value) {
            out.push(format!("{place}: {value} is none of {allowed:?}"));
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(kind, value)) {
            out.push(format!("{place}: {value} is no {}", kinds.join(" or ")));
            return out;
        }
        match value {
            Value::Object(_) => out.extend(self.members(place, schema, value)),
            Value::Array(items) if schema.get("items").is_some() => {
                out.extend(items.iter().enumerate().flat_map(|(at, item)| {
                    self.at(&format!("{place}/{at}"), &schema["items"], item)
                }));
            }
            _ => {}
        }
        out
    }

    fn members(&self, place: &str, schema: &Value, value: &Value) -> Vec<String> {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let missing = required.iter().filter(|name| value.get(**name).is_none());
        let mut out: Vec<String> = missing
            .map(|name| format!("{place}: {name:?} is missing"))
            .collect();
        for (name, member) in value.as_object().into_iter().flatten() {
            let place = format!("{place}/{name}");
            // The vendors write null for what is optional, whatever their documents say: their recorded answers do not fit otherwise.
            if member.is_null() && !required.contains(&name.as_str()) {
                continue;
            }
            match (
                schema["properties"].get(name),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => out.extend(self.at(&place, schema, member)),
                (None, Value::Bool(false)) => out.push(format!("{place}: no such member")),
                (None, rest @ Value::Object(_)) => out.extend(self.at(&place, rest, member)),
                (None, _) => {}
            }
        }
        out
    }

    /// The faults by the choice that fits best: one whose tag is right before one with fewer faults.
    fn best(&self, place: &str, choices: &[Value], value: &Value) -> Vec<String> {
        let tag = format!("{place}/type: ");
        let all = choices.iter().map(|choice| self.at(place, choice, value));
        all.min_by_key(|faults| {
            (
                faults.iter().any(|fault| fault.starts_with(&tag)),
                faults.len(),
            )
        })
        .unwrap_or_default()
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let judge = Judge::new("anthropic.json", "Event");
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}});
    assert_eq!(judge.faults(&delta), Vec::<String>::new());
    for (pointer, wrong) in [
        ("/type", json!("delta")),
        ("/index", json!("0")),
        ("/delta/text", json!(null)),
        ("/delta", json!({})),
    ] {
        let mut changed = delta.clone();
        *changed.pointer_mut(pointer).expect("a place") = wrong;
        assert!(!judge.faults(&changed).is_empty(), "{changed}");
    }
    let mut more = delta.clone();
    more["delta"]["more"] = json!(1);
    assert_eq!(judge.faults(&more), ["/delta/more: no such member"]);
}
