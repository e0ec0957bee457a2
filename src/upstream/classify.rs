//! Decides who is at fault for a failed try: the customer, the operator or the provider. Pure.
//!
//! The order of the checks matters: the operator's own problems (key, money, a model name the provider does not know) are
//! recognised first, even when they come as a 400, so that they are never blamed on the customer. Words are matched at the start
//! of a message only, because upstreams quote customers' texts.

use std::fmt;
use std::time::Duration;

use farebox_protocol::{UpstreamError, WireUsage, translate};

/// Kinds of failed tries, as the log and the metrics name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The customer's request is at fault.
    Client,
    /// The operator's account or configuration is.
    Operator,
    /// The provider has no capacity now.
    Busy,
    /// No proper answer arrived.
    Broken,
    /// The request provably never left.
    Unsent,
    /// The gateway ran out of a resource of its own.
    Own,
    /// Passed over: the provider is at its `max_concurrent`.
    Full,
    /// Passed over: its breaker is open.
    Resting,
}

impl FailureClass {
    /// Its word in the log and the metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Busy => "busy",
            Self::Broken => "broken",
            Self::Unsent => "unsent",
            Self::Own => "own",
            Self::Full => "full",
            Self::Resting => "resting",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// How a target failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TargetFault {
    /// There was no connection: no request can be the cause.
    pub(super) unreachable: bool,
    /// How long the upstream asked to wait (`retry-after`).
    pub(super) rest: Option<Duration>,
}

/// Why a try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttemptFailure {
    /// The customer's request is at fault.
    Client {
        /// As the upstream sent it; a 422 is a 400 here.
        status: u16,
        /// Not redacted yet.
        error: UpstreamError,
        /// What the provider counted for it all the same.
        usage: Box<WireUsage>,
    },
    /// The operator's account is: its key or its money.
    Operator(String),
    /// The operator's configuration is: the provider knows no such path or model, or does not let this account use it.
    NotServed(String),
    /// The provider has no capacity now.
    Busy {
        /// For the log.
        why: String,
        /// When it will have capacity again.
        retry_after: Option<Duration>,
        /// It is a limit of our account, and not the service that has none.
        of_account: bool,
    },
    /// The request may have been sent, and no proper answer arrived: the provider may have worked on it and bill that.
    Broken(String),
    /// We gave up on a whole answer: the provider worked on it all the time and bills that.
    GivenUp(GivenUp),
    /// The provider answered with an error of its own, which it does not bill.
    Failed(String),
    /// The request provably never left.
    Unsent(String),
    /// The gateway ran out of a resource of its own, such as descriptors. No evidence about the target.
    Own(String),
}

/// Why we gave up on a whole answer. Another target would do the same work again, at the same price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It did not arrive within this time.
    Late(Duration),
    /// It has more than this many bytes.
    Large(usize),
}

impl fmt::Display for GivenUp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(limit) => write!(out, "it took longer than {limit:?}"),
            Self::Large(most) => write!(out, "it is larger than {most} bytes"),
        }
    }
}

impl AttemptFailure {
    /// What kind of failure it is.
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Client { .. } => FailureClass::Client,
            Self::Operator(_) | Self::NotServed(_) => FailureClass::Operator,
            Self::Busy { .. } => FailureClass::Busy,
            Self::Broken(_) | Self::GivenUp(_) | Self::Failed(_) => FailureClass::Broken,
            Self::Unsent(_) => FailureClass::Unsent,
            Self::Own(_) => FailureClass::Own,
        }
    }

    /// What went wrong, for the operator's log.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Client { status, error, .. } => format!("{status} {}", words(error)),
            Self::GivenUp(why) => format!("the whole answer was given up: {why}"),
            Self::Operator(why)
            | Self::NotServed(why)
            | Self::Busy { why, .. }
            | Self::Broken(why)
            | Self::Failed(why)
            | Self::Unsent(why)
            | Self::Own(why) => why.clone(),
        }
    }

    /// What it says about the target: nothing when the gateway is at fault.
    pub(super) fn fault(&self) -> Option<TargetFault> {
        match self {
            Self::Own(_) => None,
            _ => Some(TargetFault {
                unreachable: matches!(self, Self::Unsent(_)),
                rest: self.retry_after(),
            }),
        }
    }

    /// Whether the provider may have worked on the request and may bill that.
    pub(super) fn may_be_billed(&self) -> bool {
        // A whole answer that was given up is billed, too, but ends the request: `DispatchError::GivenUp` says so itself.
        matches!(self, Self::Broken(_))
    }

    /// When to come back, if the upstream said so.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Types and codes of errors that are the operator's problem.
const OPERATOR_CODES: [&str; 21] = [
    "authentication_error",
    "permission_error",
    "billing_error",
    "invalid_api_key",
    "incorrect_api_key",
    "api_key_invalid",
    "account_deactivated",
    "access_terminated",
    "billing_not_active",
    "billing_hard_limit_reached",
    "budget_exceeded",
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_funds",
    "quota_exceeded",
    "exceeded_current_quota_error",
    "payment_required",
    "model_not_found",
    "model_not_available",
    "deployment_not_found",
];

/// Those of them that are about one model.
const NOT_SERVED_CODES: [&str; 3] = [
    "model_not_found",
    "model_not_available",
    "deployment_not_found",
];

/// How messages about the operator's problems begin, in lower case.
const OPERATOR_STARTS: [&str; 15] = [
    "your credit balance is too low",
    "credit balance is too low",
    "you have reached your specified api usage limits",
    "you exceeded your current quota",
    "you have run out of credits",
    "insufficient balance",
    "insufficient credits",
    "insufficient quota",
    "quota exceeded",
    "this organization has been disabled",
    "your account is not active",
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "budget has been exceeded",
];

const BUSY_CODES: [&str; 8] = [
    "overloaded_error",
    "server_is_overloaded",
    "service_unavailable_error",
    "engine_overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_overloaded",
    "slow_down",
];

/// Those of them that are about our account.
const LIMIT_CODES: [&str; 2] = ["rate_limit_error", "rate_limit_exceeded"];

/// Types and codes that put an error inside a good-looking answer down to the customer.
const CLIENT_CODES: [&str; 27] = [
    "invalid_request_error",
    "invalid_prompt",
    "invalid_encrypted_content",
    "bio_policy",
    "misalignment_policy_violation",
    "content_policy_violation",
    "content_filter",
    // The filters of two Chinese vendors.
    "data_inspection_failed",
    "1301",
    "image_content_policy_violation",
    "invalid_image",
    "invalid_image_format",
    "invalid_image_mode",
    "invalid_image_url",
    "invalid_base64_image",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_file_too_large",
    "image_file_not_found",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "context_length_exceeded",
    "string_above_max_length",
    "request_too_large",
    "tool_use_failed",
];

/// Judges an answer that is not a success.
pub(super) fn of_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> AttemptFailure {
    let json = is_object(body);
    let error = if json {
        UpstreamError::parse(body)
    } else {
        UpstreamError::default()
    };
    let why = format!("{status} {}", words(&error));
    match status {
        // An item that another vendor made is missing here: some say 404.
        404 if json && translate::rejects_seal(&error) => AttemptFailure::Client {
            status: 400,
            error,
            usage: Box::default(),
        },
        401..=404 => operators(status, &error, why),
        400 | 413 | 422 | 429 if is_operators(&error) => operators(status, &error, why),
        400 | 413 | 422 if json => AttemptFailure::Client {
            status: if status == 422 { 400 } else { status },
            error,
            usage: Box::default(),
        },
        413 => AttemptFailure::Client {
            status,
            error: too_large(),
            usage: Box::default(),
        },
        429 | 503 | 529 => busy(why, retry_after, status == 429 || has(&error, &LIMIT_CODES)),
        _ if has(&error, &BUSY_CODES) => busy(why, retry_after, has(&error, &LIMIT_CODES)),
        300..=399 => AttemptFailure::Failed(format!("{status} redirects are not followed")),
        // A proxy gave up on a model that may have gone on.
        502 | 504 | 524 => AttemptFailure::Broken(why),
        // A 400 that is not JSON comes from a proxy, not from the model.
        _ => AttemptFailure::Failed(why),
    }
}

fn busy(why: String, retry_after: Option<Duration>, of_account: bool) -> AttemptFailure {
    AttemptFailure::Busy {
        why,
        retry_after,
        of_account,
    }
}

/// Judges an error inside an answer whose status reported success, and in which the provider may have counted something.
pub(super) fn of_error(error: UpstreamError, usage: &WireUsage) -> AttemptFailure {
    let why = format!("200 with an error: {}", words(&error));
    if is_operators(&error) {
        operators(200, &error, why)
    } else if has(&error, &BUSY_CODES) {
        busy(why, None, has(&error, &LIMIT_CODES))
    } else if has(&error, &CLIENT_CODES) {
        AttemptFailure::Client {
            status: 400,
            error,
            usage: Box::new(usage.clone()),
        }
    } else {
        AttemptFailure::Failed(why)
    }
}

/// The operator's problem with its account, or with what is asked of the provider.
fn operators(status: u16, error: &UpstreamError, why: String) -> AttemptFailure {
    // A `permission_error` is about what was asked for: other requests of the same account may be served.
    let of_account = has(error, &OPERATOR_CODES) && !has(error, &["permission_error"]);
    if has(error, &NOT_SERVED_CODES) || status == 404 || (status == 403 && !of_account) {
        AttemptFailure::NotServed(why)
    } else {
        AttemptFailure::Operator(why)
    }
}

fn is_operators(error: &UpstreamError) -> bool {
    let message = error.message.trim_start().to_ascii_lowercase();
    has(error, &OPERATOR_CODES)
        || OPERATOR_STARTS
            .iter()
            .any(|start| message.starts_with(start))
}

fn has(error: &UpstreamError, list: &[&str]) -> bool {
    [&error.kind, &error.code]
        .into_iter()
        .flatten()
        .any(|word| list.iter().any(|entry| word.eq_ignore_ascii_case(entry)))
}

fn words(error: &UpstreamError) -> String {
    let parts = [
        error.kind.as_deref(),
        error.code.as_deref(),
        Some(error.message.as_str()),
    ];
    parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn too_large() -> UpstreamError {
    UpstreamError {
        kind: Some("request_too_large".to_owned()),
        message: "the request is larger than this model accepts".to_owned(),
        ..UpstreamError::default()
    }
}

/// An error of the model's own service: an object, or a list of one as Gemini's chat wire writes it.
fn is_object(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    let listed = body.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    listed.unwrap_or(body).starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: &str, code: &str, message: &str) -> UpstreamError {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        UpstreamError {
            kind: some(kind),
            code: some(code),
            param: None,
            message: message.to_owned(),
        }
    }

    fn body(kind: &str, code: &str, message: &str) -> Vec<u8> {
        let code = if code.is_empty() {
            serde_json::Value::Null
        } else {
            code.into()
        };
        serde_json::json!({"error": {"type": kind, "code": code, "param": null, "message": message}}).to_string().into_bytes()
    }

    fn class(fault: &AttemptFailure) -> String {
        fault.class().to_string()
    }

    #[test]
    fn a_list_of_one_error_is_an_error_of_the_service() {
        let body =
            br#"[{"error": {"code": 400, "message": "too long", "status": "INVALID_ARGUMENT"}}]"#;
        assert_eq!(class(&of_status(400, None, body)), "client");
        assert_eq!(class(&of_status(400, None, b"[1]")), "broken");
    }

    #[test]
    fn statuses_alone() {
        let cases = [
            (400, "broken"),
            (401, "operator"),
            (402, "operator"),
            (403, "operator"),
            (404, "operator"),
            (405, "broken"),
            (408, "broken"),
            (413, "client"),
            (422, "broken"),
            (429, "busy"),
            (500, "broken"),
            (502, "broken"),
            (503, "busy"),
            (529, "busy"),
            (302, "broken"),
        ];
        for (status, expected) in cases {
            assert_eq!(
                class(&of_status(status, None, b"<html>")),
                expected,
                "{status}"
            );
        }
    }

    #[test]
    fn only_what_may_have_been_worked_on_is_billed() {
        for (status, billed) in [
            (500, false),
            (502, true),
            (504, true),
            (503, false),
            (401, false),
            (302, false),
            (400, false),
        ] {
            assert_eq!(
                of_status(status, None, b"<html>").may_be_billed(),
                billed,
                "{status}"
            );
        }
        assert!(
            !of_error(error("api_error", "", "m"), &WireUsage::default()).may_be_billed(),
            "an error in place of an answer"
        );
        assert!(AttemptFailure::Broken("reset".to_owned()).may_be_billed());
    }

    #[test]
    fn a_json_400_is_the_customers_with_its_wording() {
        let fault = of_status(
            422,
            None,
            &body("invalid_request_error", "", "max_tokens: too large"),
        );
        let AttemptFailure::Client {
            status: 400, error, ..
        } = fault
        else {
            panic!("{fault:?}")
        };
        assert_eq!(error.message, "max_tokens: too large");
        assert_eq!(
            class(&of_status(413, None, &body("request_too_large", "", "no"))),
            "client"
        );
    }

    #[test]
    fn the_operators_money_is_never_the_customers_fault() {
        for (status, kind, code, message) in [
            (
                400,
                "invalid_request_error",
                "",
                "Your credit balance is too low to access the API. Go to Plans & Billing.",
            ),
            (400, "billing_error", "", "x"),
            (
                429,
                "insufficient_quota",
                "insufficient_quota",
                "You exceeded your current quota",
            ),
            (
                429,
                "requests",
                "",
                "You exceeded your current quota, please check your plan",
            ),
            (
                400,
                "invalid_request_error",
                "model_not_found",
                "no such model",
            ),
        ] {
            assert_eq!(
                class(&of_status(status, None, &body(kind, code, message))),
                "operator",
                "{message}"
            );
        }
    }

    #[test]
    fn a_quoted_phrase_does_not_make_it_the_operators() {
        let quoted = body(
            "invalid_request_error",
            "",
            "Invalid value: 'your credit balance is too low'",
        );
        assert_eq!(class(&of_status(400, None, &quoted)), "client");
    }

    #[test]
    fn errors_in_good_answers() {
        for (kind, expected) in [
            ("overloaded_error", "busy"),
            ("server_is_overloaded", "busy"),
            ("api_error", "broken"),
            ("server_error", "broken"),
            ("invalid_request_error", "client"),
            ("authentication_error", "operator"),
            ("image_parse_error", "client"),
            ("image_content_policy_violation", "client"),
            ("vector_store_timeout", "broken"),
        ] {
            assert_eq!(
                class(&of_error(error(kind, "", "m"), &WireUsage::default())),
                expected,
                "{kind}"
            );
        }
    }

    #[test]
    fn busy_keeps_the_time_it_was_told() {
        let told = Some(Duration::from_secs(7));
        assert_eq!(
            of_status(429, told, &body("rate_limit_error", "", "slow down")).retry_after(),
            told
        );
        assert_eq!(
            of_status(500, told, &body("overloaded_error", "", "")).retry_after(),
            told
        );
        assert_eq!(of_status(502, told, b"").retry_after(), None);
    }
}
