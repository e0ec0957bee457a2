//! How requests are refused, and the facts of those that pass.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod bought;
mod content;
mod errors;
mod fields;

use farebox_protocol::{BadRequest, Edits, Family, Inspection, TargetFit};
use serde_json::{Value, json};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQgwQCgAf7gP9sXAjOAAAAABJRU5ErkJggg==";

fn good(family: Family) -> Value {
    match family {
        Family::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
        Family::Responses => json!({"model": "m", "input": "hi"}),
        Family::Messages => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        }
    }
}

/// A target that passes these fields.
fn passing(pass: &[String]) -> TargetFit {
    TargetFit {
        pass: pass.to_vec(),
        ..TargetFit::default()
    }
}

/// The edits for a target that wants this model's name.
fn edits<'a>(model: &'a str, fit: &'a TargetFit) -> Edits<'a> {
    Edits {
        model,
        limit_field: "max_tokens",
        fit,
        ..Edits::default()
    }
}

fn body_with(family: Family, name: &str, value: Value) -> Value {
    let mut body = good(family);
    body[name] = value;
    body
}

fn with(family: Family, name: &str, value: Value) -> Result<Inspection, BadRequest> {
    let body = body_with(family, name, value);
    family.protocol().inspect(body.to_string().as_bytes(), 0)
}

fn refused(family: Family, name: &str, value: Value) -> BadRequest {
    with(family, name, value.clone()).expect_err(&format!("{family} {name} {value}"))
}
