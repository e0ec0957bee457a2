//! Rewrites errors of one family into the words that another family's clients act on.
//!
//! Only a context that is too long has such words: coding clients compact their conversation when they read them. Who is at fault,
//! and what a customer may read, is decided elsewhere.

use crate::{Family, UpstreamError};

/// Phrases in which servers refuse a prompt that does not fit, in lower case.
// Matched as phrases because vendors change the codes around them more often than the words, and relays drop codes. A missed
// phrase leaves a coding client without the hint to compact; a wrong one makes it compact for nothing.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "maximum prompt length",
    "maximum model length",
    "context_length_exceeded",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
    "exceed context limit",
];

/// What stands before the request's size in such an error, in lower case and without commas.
const SIZE: &[&str] = &[
    "prompt is too long: ",
    "resulted in ",
    "you requested ",
    "request contains ",
    "prompt contains ",
    "input token count (",
    "prompt (length ",
    "request (",
];

/// What stands before the largest size.
const LARGEST: &[&str] = &[
    "tokens > ",
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "maximum model length of ",
    "available context size (",
    "maximum number of tokens allowed (",
];

/// Whether a vendor rejects a seal of earlier thinking, or an item that only its maker has. Relays between us and a vendor often keep
/// only the message.
#[must_use]
pub fn rejects_seal(error: &UpstreamError) -> bool {
    // Vendors and relays differ in case and in quoting the field.
    let message = error.message.trim().to_lowercase().replace('`', "");
    let code = "invalid_encrypted_content";
    [&error.code, &error.kind]
        .into_iter()
        .any(|word| word.as_deref() == Some(code))
        || [
            code,
            "bound to a different conversation",
            "invalid signature in thinking block",
            "invalid data in redacted_thinking block",
        ]
        .iter()
        .any(|words| message.contains(words))
        || message.starts_with("the encrypted content") && message.contains("could not be verified")
        || message.starts_with("item with id") && message.contains("not found")
}

/// In which words servers say where else they serve what they were asked for, in lower case.
const ELSEWHERE: &[&str] = &["use ", "only supported in", "only available", "instead"];

/// The family on whose path a server says that it serves what it was asked for in another. A customer's quoted text can say the same,
/// which costs one try.
#[must_use]
pub fn named_path(asked: Family, error: &UpstreamError) -> Option<Family> {
    let message = error.message.to_lowercase();
    let points = ELSEWHERE.iter().any(|words| message.contains(words));
    let mut others = Family::ALL.into_iter().filter(|family| *family != asked);
    others.find(|family| points && message.contains(&format!("v1{}", family.protocol().path())))
}

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
        // Native clients know no code for it and match the words.
        Family::Messages => UpstreamError {
            kind,
            code: None,
            param: None,
            message: native_words(&message),
        },
    }
}

/// The sentence that native clients match on. The numbers are named only if the server's text says which is which: clients
/// compute from them how much to leave out.
fn native_words(message: &str) -> String {
    // `200,001` and `200001` are both in use.
    let text = message.replace(',', "");
    let (size, largest) = (after(&text, SIZE), after(&text, LARGEST));
    // Numbers that do not show an excess were read from the wrong words, and a client would cut its conversation by a nonsense
    // amount.
    match size.zip(largest).filter(|(size, largest)| size > largest) {
        Some((size, largest)) => format!("prompt is too long: {size} tokens > {largest} maximum"),
        None => "prompt is too long: more tokens than the maximum".to_owned(),
    }
}

/// The number after the first of these words that one follows.
fn after(text: &str, words: &[&str]) -> Option<u64> {
    words.iter().find_map(|words| {
        let (_, rest) = text.split_once(words)?;
        let (number, _) = rest
            .split_once(|c: char| !c.is_ascii_digit())
            .unwrap_or((rest, ""));
        number.parse().ok()
    })
}
