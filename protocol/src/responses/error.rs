//! Responses' words for an answer that failed.

use crate::ErrorBody;

/// The codes that a failed response may have, as published, and two that vendors send beyond them: on `context_length_exceeded`
/// coding clients compact their conversation, and on `server_is_overloaded` they say so.
const FAILED: [&str; 22] = [
    "server_error",
    "rate_limit_exceeded",
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "vector_store_timeout",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
    "context_length_exceeded",
    "server_is_overloaded",
];

/// The code of a failed response: its own if a response may have it, else the one for its kind.
pub(super) fn failed_code(error: &ErrorBody) -> &'static str {
    let known = |word: &str| FAILED.into_iter().find(|code| *code == word);
    let own = error.code.as_deref().and_then(known);
    own.or_else(|| known(&error.kind))
        .unwrap_or(match error.kind.as_str() {
            "invalid_request_error" => "invalid_prompt",
            "rate_limit_error" => "rate_limit_exceeded",
            // The kind and the code of an error for want of money. The vendor's own list lacks it, and its clients know it.
            "insufficient_quota" => "insufficient_quota",
            _ => "server_error",
        })
}
