//! The examples of the OpenAPI document: a story in the order of the routes, which a test lives through.

use serde_json::{Map, Value, json};

use super::route::{ApiRoute, Least};

const CUSTOMER: &str = "c_7f3q9d2xw1";
const KEY: &str = "k_7f3q9d2xw1";
const TOP_UP: &str = "auto-top-up:c_7f3q9d2xw1-4";
const RESERVATION: &str = "r_7f3q9d2xw1";
const REQUEST: &str = "req_01kaxv8m3n5p7q9r1s3t5v7w9x";

/// An example of a path's parameter.
pub(super) fn parameter(route: &ApiRoute, name: &str) -> &'static str {
    if let Some(named) = route.named {
        return named;
    }
    match (name, &*route.name) {
        ("customer", _) => CUSTOMER,
        ("key", _) => KEY,
        ("request", _) => REQUEST,
        ("top_up", _) => TOP_UP,
        ("reservation", _) => RESERVATION,
        (_, "Assign") => "pi_2001",
        (_, "Return") => "pi_2002",
        _ => "pi_1001",
    }
}

/// An example of an answer: of what it always has.
pub(super) fn answer(
    route: &ApiRoute,
    answer: &Value,
    schemas: &Map<String, Value>,
) -> Option<Value> {
    if route.least == Least::Anybody {
        return None;
    }
    let one = sample("", answer, schemas);
    Some(if route.lists {
        json!({ "data": [one], "has_more": false, "next_cursor": null })
    } else {
        one
    })
}

fn sample(name: &str, schema: &Value, schemas: &Map<String, Value>) -> Value {
    if let Some(named) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return sample(name, &schemas[named], schemas);
    }
    let (kind, is_nullable) = match &schema["type"] {
        Value::Array(kinds) => (kinds[0].as_str(), true),
        kind => (kind.as_str(), schema.get("anyOf").is_some()),
    };
    let always = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        let member = sample(name, &schema["properties"][name], schemas);
        (name.to_owned(), member)
    };
    match kind {
        Some("array") => json!([]),
        _ if is_nullable => Value::Null,
        Some("string") if schema.get("enum").is_some() => schema["enum"][0].clone(),
        Some("string") => json!(text(name, schema["pattern"].as_str().unwrap_or_default())),
        Some("integer") => json!(1),
        Some("boolean") => json!(false),
        _ => Value::Object(
            schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .map(always)
                .collect(),
        ),
    }
}

fn text(name: &str, pattern: &str) -> &'static str {
    match name {
        "gross" => "11.90",
        "tax" => "1.90",
        "refunded" | "withdrawn" | "reinstated" => "0.00",
        _ if pattern.starts_with("^c_") => CUSTOMER,
        _ if !pattern.is_empty() => "10.00",
        "key" | "id" | "name" => KEY,
        "label" => "Ada",
        "currency" => "EUR",
        "reference" => "pi_1001",
        "kind" => "top_up",
        "actor" => "my-shop",
        "slug" | "customer_slug" | "model" => "example-large",
        "provider" => "Example",
        "best_path" => "chat",
        "service_price" => "$3.00 in, $15.00 out per million tokens",
        "at" | "until" | "created_at" | "effective_at" | "expires_at" | "hour" | "timestamp" => {
            "2026-11-25T12:00:00.000Z"
        }
        _ => "text",
    }
}
