//! Errors on the wire: the error body that every client understands, the words for each case, and parsing of upstream errors.
//!
//! Must not decide who is at fault or whether to try again: callers do. An upstream's text is data here, never redacted; it is only
//! cut to [`MAX_MESSAGE_CHARS`], which bounds memory.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Longest message kept from an upstream. Callers shorten it only after redaction: a secret at the edge would otherwise survive.
pub const MAX_MESSAGE_CHARS: usize = 65_536;

/// Why a customer gets an error; each family has its own status and words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// 401: key missing, malformed or unknown.
    Unauthenticated,
    /// 403: key blocked, expired or revoked, or not allowed to use the model.
    Forbidden,
    /// 404: no such path.
    NoPath,
    /// 405: the path is not called with this method.
    WrongMethod,
    /// 404: unknown, retired or provider-style model name.
    NoModel,
    /// 429: depleted, or the request costs more than the balance.
    OutOfBalance,
    /// 429: enough money, but held by running requests.
    BalanceInUse,
    /// 429: per-key rate or concurrency limit.
    RateLimited,
    /// 400.
    BadRequest,
    /// 413.
    TooLarge,
    /// 503 or 529: no target left.
    NoTarget,
    /// 503: the ledger cannot be written, or too many bytes are in flight.
    Unavailable,
    /// 500: our own fault.
    Internal,
    /// After the first byte, and before anything was shown: the target has no capacity.
    Overloaded,
    /// After the first byte: the upstream's stream broke.
    BrokenStream,
}

/// A case in one family's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// HTTP status.
    pub status: u16,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.code`, unless the failure has a more precise one.
    pub code: Option<&'static str>,
}

/// The one error body: `{"type":"error","error":{"type","code","param","message"},"request_id"}`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorBody {
    /// `error.type`.
    pub kind: String,
    /// `error.code`.
    pub code: Option<String>,
    /// `error.param`.
    pub param: Option<String>,
    /// `error.message`.
    pub message: String,
    /// `error.details`, if the case has any.
    pub details: Option<serde_json::Value>,
    /// Our request id, as shown: `req_…`.
    pub request_id: String,
}

/// An error as an upstream wrote it, in whatever shape.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamError {
    /// `type`, when there is one.
    pub kind: Option<String>,
    /// `code`, as text even when it was a number.
    pub code: Option<String>,
    /// `param`.
    pub param: Option<String>,
    /// `message`, or the whole text.
    pub message: String,
}

impl ErrorBody {
    /// The body as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        self.to_value().to_string().into_bytes()
    }

    /// The object or text under `error`.
    pub fn inner(&self) -> Value {
        let mut inner = json!({"type": self.kind, "code": self.code, "param": self.param, "message": self.message});
        if let (Some(details), Value::Object(members)) = (&self.details, &mut inner) {
            members.insert("details".to_owned(), details.clone());
        }
        inner
    }

    fn to_value(&self) -> Value {
        json!({"type": "error", "error": self.inner(), "request_id": self.request_id})
    }
}

impl Serialize for ErrorBody {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(out)
    }
}

/// The words of the two families under `/v1`.
pub(crate) fn v1_words(case: Case) -> Words {
    let (status, kind, code) = match case {
        Case::Unauthenticated => (401, "invalid_request_error", Some("invalid_api_key")),
        Case::Forbidden => (403, "invalid_request_error", Some("key_blocked")),
        Case::NoPath => (404, "invalid_request_error", Some("path_not_found")),
        Case::WrongMethod => (405, "invalid_request_error", Some("method_not_allowed")),
        Case::NoModel => (404, "invalid_request_error", Some("model_not_found")),
        Case::OutOfBalance => (429, "insufficient_quota", Some("insufficient_quota")),
        Case::BalanceInUse => (429, "rate_limit_exceeded", Some("balance_in_use")),
        Case::RateLimited => (429, "rate_limit_exceeded", Some("rate_limit_exceeded")),
        Case::BadRequest => (400, "invalid_request_error", None),
        Case::TooLarge => (413, "invalid_request_error", Some("request_too_large")),
        Case::NoTarget => (503, "api_error", Some("upstream_unavailable")),
        Case::Unavailable => (503, "api_error", Some("ledger_unavailable")),
        Case::Internal => (500, "api_error", Some("internal_error")),
        Case::Overloaded => (503, "server_error", Some("server_is_overloaded")),
        Case::BrokenStream => (502, "upstream_error", Some("upstream_error")),
    };
    Words { status, kind, code }
}

impl UpstreamError {
    /// Reads an upstream's error body, whatever its shape: JSON of any vendor, plain text, or a web page.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self {
                message: cut(&plain_text(&String::from_utf8_lossy(body))),
                ..Self::default()
            },
        }
    }

    fn from_value(value: &Value) -> Self {
        match value {
            Value::Array(several) => several.first().map(Self::from_value).unwrap_or_default(),
            Value::Object(_) => Self::from_object(value),
            other => Self {
                message: cut(&text(other).unwrap_or_default()),
                ..Self::default()
            },
        }
    }

    fn from_object(value: &Value) -> Self {
        let nested = [
            &value["error"],
            &value["response"]["error"],
            &value["errors"][0],
        ];
        if let Some(inner) = nested.into_iter().find(|inner| inner.is_object()) {
            return Self::from_object(inner);
        }
        // A bare `error` is the message; `type: "error"` only marks the body as an error.
        let message = [
            &value["message"],
            &value["error"],
            &value["msg"],
            &value["detail"],
            &value["detail"][0]["msg"],
            &value["message"]["detail"][0]["msg"],
        ];
        let message = message
            .into_iter()
            .find_map(Value::as_str)
            .map_or_else(|| value.to_string(), str::to_owned);
        let kind = [&value["type"], &value["status"]]
            .into_iter()
            .find_map(Value::as_str)
            .filter(|kind| *kind != "error");
        Self {
            kind: kind.map(str::to_owned),
            code: text(&value["code"]),
            param: text(&value["param"])
                .or_else(|| location(&value["detail"][0]["loc"]))
                .or_else(|| location(&value["message"]["detail"][0]["loc"])),
            message: cut(&message),
        }
    }
}

/// Where a server that validates by a schema found something: `["body", "tools", 0, "strict"]`.
fn location(value: &Value) -> Option<String> {
    let parts: Vec<String> = value.as_array()?.iter().filter_map(text).collect();
    let inside = parts
        .iter()
        .position(|part| part == "body")
        .map_or(0, |at| at + 1);
    Some(parts.get(inside..)?.join(".")).filter(|path| !path.is_empty())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A web page becomes its title; other text stays.
fn plain_text(text: &str) -> String {
    let text = text.trim();
    if !text.starts_with('<') {
        return text.to_owned();
    }
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").zip(lower.find("</title>"));
    let title = title.and_then(|(start, end)| text.get(start + "<title>".len()..end));
    title.map_or_else(
        || "a web page instead of an error".to_owned(),
        |title| title.trim().to_owned(),
    )
}

fn cut(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}
