//! Refusals in each vendor's own shape.

use serde_json::{Value, json};

use crate::Vendor;
use crate::place::spoken;

/// What a vendor answers to a request that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The broken rule.
    pub rule: String,
    /// What was wrong, for the test's report.
    pub why: String,
    /// The body in the vendor's shape.
    pub body: String,
}

impl Refusal {
    pub(crate) fn new(vendor: Vendor, status: u16, rule: &str, place: &str, why: String) -> Self {
        let body = shape(vendor, status, &spoken(place), &why).to_string();
        Self {
            status,
            rule: rule.to_owned(),
            why: format!("{rule}: {place} {why}"),
            body,
        }
    }
}

fn shape(vendor: Vendor, status: u16, param: &str, why: &str) -> Value {
    match vendor {
        // openai 3.54.0: types/shared/error_object.py
        Vendor::OpenAi => json!({"error": {
            "message": format!("Invalid request: {param} {why}"), "type": "invalid_request_error",
            "param": if param.is_empty() { Value::Null } else { json!(param) }, "code": null}}),
        // anthropic 2.12.0: types/shared/error_response.py
        Vendor::Anthropic => json!({"type": "error", "request_id": "req_double", "error": {
            "message": format!("{param}: {why}"), "type": kind(status)}}),
    }
}

/// Anthropic's word for a status (anthropic 2.12.0: types/shared/*_error.py).
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        404 => "not_found_error",
        413 => "request_too_large",
        _ => "invalid_request_error",
    }
}
