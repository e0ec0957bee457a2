//! Errors on the wire: the one body that every client understands, and each family's words for each case.

use serde::Serialize;

/// Why a customer gets an error; each family has its own status and words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// 401: key missing, malformed or unknown.
    Unauthenticated,
    /// 403: key blocked, expired, revoked, or the model is not allowed to it.
    Forbidden,
    /// 404: no such path.
    NoPath,
    /// 404: unknown, retired or provider-style model name.
    NoModel,
    /// 429: depleted, or larger than the balance.
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
    /// 503: the ledger cannot be written, or too much in flight.
    Unavailable,
    /// 500: our own fault.
    Internal,
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorBody {
    /// `error.type`.
    pub kind: String,
    /// `error.code`.
    pub code: Option<String>,
    /// `error.param`.
    pub param: Option<String>,
    /// `error.message`.
    pub message: String,
    /// `error.details`, where the case has some.
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
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl UpstreamError {
    /// Reads an upstream's error body, whatever its shape.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() }
    }
}
