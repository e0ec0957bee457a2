//! Rewrites errors of one family into the words that another family's clients act on.
//!
//! Only a context that is too long has such words: coding clients compact their conversation when they read them. Who is at fault,
//! and what a customer may read, is decided elsewhere.

use crate::{Family, UpstreamError};

/// Phrases in which servers refuse a prompt that does not fit, in lower case.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "context_length_exceeded",
    "exceeds the context window",
    "exceed context limit",
];

/// The error as the caller's clients know it.
#[must_use]
pub fn error_for(caller: Family, error: UpstreamError) -> UpstreamError {
    let message = error.message.to_lowercase();
    let too_long = error.code.as_deref() == Some("context_length_exceeded")
        || TOO_LONG.iter().any(|words| message.contains(words));
    if !too_long {
        return error;
    }
    let kind = Some("invalid_request_error".to_owned());
    match caller {
        Family::Chat | Family::Responses => UpstreamError {
            kind,
            code: Some("context_length_exceeded".to_owned()),
            ..error
        },
        Family::Messages => UpstreamError {
            kind,
            code: None,
            param: None,
            message: native_words(&message),
        },
    }
}

/// The sentence that native clients match on; the larger number is the request's size.
fn native_words(message: &str) -> String {
    let digits = message.replace(',', "");
    let numbers = digits
        .split(|c: char| !c.is_ascii_digit())
        .filter(|run| run.len() >= 3)
        .filter_map(|run| run.parse::<u64>().ok());
    let (least, most) = numbers.fold((u64::MAX, 0), |(least, most), number| {
        (least.min(number), most.max(number))
    });
    if most > least {
        format!("prompt is too long: {most} tokens > {least} maximum")
    } else {
        "prompt is too long: more tokens than the maximum".to_owned()
    }
}
