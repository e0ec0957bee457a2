//! Refusals in each vendor's own shape.

use serde_json::{Value, json};

use crate::Vendor;
use crate::place::spoken;

/// What a vendor answers to a request that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The broken rule.
    pub rule: String,
    /// What was wrong, for the test's report.
    pub why: String,
    /// The body in the vendor's shape.
    pub body: String,
}

impl VendorRefusal {
    /// A refusal for a reason that no rule knows: the state of the service, the length of the prompt.
    #[must_use]
    pub fn said(vendor: Vendor, status: u16, why: &str) -> Self {
        Self::new(vendor, status, "said", "", why.to_owned())
    }

    /// The same with a code, in the shapes that have one.
    pub(crate) fn with_code(mut self, code: &str) -> Self {
        self.body = self
            .body
            .replace("\"code\":null", &format!("\"code\":\"{code}\""));
        self
    }

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
    let said = format!("{param} {why}");
    let named = if param.is_empty() {
        Value::Null
    } else {
        json!(param)
    };
    match vendor {
        // openai 3.54.0: types/shared/error_object.py; Azure, DeepSeek (thread of 2026-07-04) and Ollama (openai.go) copy it.
        Vendor::OpenAi | Vendor::Azure | Vendor::Compatible | Vendor::DeepSeek | Vendor::Ollama => {
            json!({"error": {
            "message": said, "type": "invalid_request_error", "param": named, "code": null}})
        }
        // anthropic 2.12.0: types/shared/error_response.py
        Vendor::Anthropic => json!({"type": "error", "request_id": "req_double", "error": {
            "message": said, "type": kind(status)}}),
        // github.com/TokenRhythm/opensquilla/issues/225, 2026-06-08: a list of one
        Vendor::Gemini => {
            json!([{"error": {"code": status, "message": said, "status": "INVALID_ARGUMENT"}}])
        }
        // github.com/eigent-ai/eigent/issues/1827, 2026-07-28: without param and code
        Vendor::Groq => json!({"error": {"message": said, "type": "invalid_request_error"}}),
        // tools/server/server-common.cpp, format_error_response: the code is a number
        Vendor::LlamaCpp => {
            json!({"error": {"code": status, "message": said, "type": "invalid_request_error"}})
        }
        // github.com/editor-code-assistant/eca/issues/231, 2025-12-12: details inside the message
        Vendor::Mistral if status == 422 => json!({"object": "error", "message": {"detail": [{
            "type": "extra_forbidden", "loc": ["body", param], "msg": why, "input": null}]},
            "type": "invalid_request_error", "param": null, "code": null}),
        Vendor::Mistral => json!({"object": "error", "message": said,
            "type": "invalid_request_error", "param": null, "code": "3280", "raw_status_code": status}),
        // no source could be read (2026-11-23): as its page was reported to say
        Vendor::OpenRouter => {
            json!({"error": {"code": status, "message": said}, "user_id": "user_double"})
        }
        // vllm 0.33.0: entrypoints/serve/engine/protocol.py, ErrorResponse
        Vendor::Vllm => {
            json!({"error": {"message": said, "type": "BadRequestError", "param": named, "code": status}})
        }
        // github.com/Kilo-Org/kilocode/issues/10375, 2026-05-19: not inside an `error`
        Vendor::Cerebras => {
            json!({"message": format!("{param}: {why}"), "type": "invalid_request_error",
            "param": "validation_error", "code": null})
        }
        // github.com/kodustech/kodus-ai/pull/1120, 2026-05-17. Fireworks: no source for its shape (2026-11-23), as OpenAI's client
        // showed its message (github.com/web-infra-dev/midscene/issues/1322, 2025-10-15).
        Vendor::Moonshot | Vendor::Fireworks => {
            json!({"error": {"message": said, "type": "invalid_request_error"}})
        }
        // github.com/cloudwego/eino/issues/994, 2026-04-24: an id beside the error
        Vendor::Qwen => {
            json!({"error": {"message": format!("<400> InternalError.Algo.InvalidParameter: {said}"),
            "type": "invalid_request_error", "param": null, "code": "invalid_parameter_error"},
            "id": "chatcmpl-double", "request_id": "double"})
        }
        // github.com/mozilla-ai/any-llm/issues/714, 2026-01-06: its client shows `type_`
        Vendor::Together => {
            json!({"id": "double", "error": {"message": said, "type": "invalid_request_error",
            "param": named, "code": null}})
        }
        // github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670, 2025-05-21: the error is a text
        Vendor::LmStudio => json!({"error": said}),
        // sglang 0.5.23: srt/entrypoints/openai/serving_base.py, create_error_response
        Vendor::SgLang => {
            json!({"object": "error", "message": said, "type": "BadRequestError", "param": named, "code": status})
        }
        // github.com/yym68686/uni-api/issues/105, 2025-04-24: the error is a text
        Vendor::XAi => json!({"code": "Client specified an invalid argument", "error": said}),
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
