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
pub fn named_path(asked: Family, error: &UpstreamError) -> Option<Family> {
    let message = error.message.to_lowercase();
    let points = ELSEWHERE.iter().any(|words| message.contains(words));
    let mut others = Family::ALL.into_iter().filter(|family| *family != asked);
    others.find(|family| points && message.contains(&format!("v1{}", family.protocol().path)))
}

/// In which words servers say that they do not know a field, or not at this model, in lower case.
const UNKNOWN: &[&str] = &[
    "unsupported_parameter",
    "unsupported_value",
    "unknown_parameter",
    "unsupported param",
    "unknown param",
    "unrecognized request argument",
    "unrecognized field",
    "unknown field",
    "unknown name",
    "extra inputs are not permitted",
    "extra_forbidden",
    "is unsupported",
    "not supported",
    "not support parameter",
    "is deprecated for",
];

/// What stands before a field's name in such an error.
const NAMED: &[&str] = &["'", "\"", "`", ": ", "parameter ", "argument ", "property "];

/// Hints that stand inside of other fields.
const INNER_HINTS: &[&str] = &[
    "annotations",
    "cache_control",
    "eager_input_streaming",
    "phase",
    "prompt_cache_breakpoint",
    "reasoning_content",
    "reasoning_details",
    "strict",
];

/// The hint that a server does not know, as the path at which it is left out: the request can be answered without. A customer's quoted
/// text can say the same, which costs one try.
pub fn refused_hint(family: Family, error: &UpstreamError) -> Option<String> {
    let code = error.code.as_deref().unwrap_or_default();
    let says = [code, &error.message].map(str::to_lowercase);
    let unknown = UNKNOWN
        .iter()
        .any(|words| says.iter().any(|said| said.contains(words)));
    if !unknown {
        return None;
    }
    let param = error.param.as_deref().and_then(|name| hint(family, name));
    param.or_else(|| named_in(&error.message).find_map(|name| hint(family, name)))
}

/// What an error's text may name a field with.
fn named_in(message: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    let words = message.split(move |c| !part(c));
    words.filter(move |word| {
        let at = word.as_ptr().addr() - message.as_ptr().addr();
        let (before, after) = (&message[..at], &message[at + word.len()..]);
        NAMED.iter().any(|sign| before.ends_with(sign)) || after.starts_with(':')
    })
}

/// The path of a hint of this name, as vendors write it: `tools[0].function.strict`, `presencePenalty`.
fn hint(family: Family, name: &str) -> Option<String> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let mut path = name
        .split(['.', '[', ']'])
        .filter(|part| !part.is_empty() && !part.bytes().all(|byte| byte.is_ascii_digit()));
    let (first, inner) = (path.next()?, path.collect::<Vec<_>>());
    let Some(last) = inner.last() else {
        let row = super::fields(family)
            .iter()
            .find(|row| plain(row.name) == plain(first))?;
        return row.is_hint().then(|| row.name.to_owned());
    };
    INNER_HINTS
        .contains(last)
        .then(|| [&[first], &*inner].concat().join("."))
}

/// The error as the caller's clients know it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: Option<&str>, param: Option<&str>, message: &str) -> UpstreamError {
        UpstreamError {
            code: code.map(str::to_owned),
            param: param.map(str::to_owned),
            message: message.to_owned(),
            ..UpstreamError::default()
        }
    }

    #[test]
    fn a_hint_that_is_not_known_is_found_in_any_vendors_words() {
        let unknown = Some("unknown_parameter");
        for (family, error, path) in [
            (
                Family::Chat,
                error(unknown, Some("seed"), "Unknown parameter: 'seed'."),
                "seed",
            ),
            (
                Family::Chat,
                error(
                    None,
                    None,
                    "Unrecognized request argument supplied: verbosity",
                ),
                "verbosity",
            ),
            (
                Family::Chat,
                error(
                    None,
                    None,
                    "Model m does not support parameter frequencyPenalty.",
                ),
                "frequency_penalty",
            ),
            (
                Family::Messages,
                error(None, None, "`temperature` is deprecated for this model."),
                "temperature",
            ),
            (
                Family::Messages,
                error(
                    None,
                    None,
                    "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
                ),
                "tools.custom.eager_input_streaming",
            ),
            (
                Family::Responses,
                error(
                    unknown,
                    Some("tools[0].strict"),
                    "Unknown parameter: 'tools[0].strict'.",
                ),
                "tools.strict",
            ),
            (
                Family::Chat,
                error(None, None, "json: unknown field \"safety_identifier\""),
                "safety_identifier",
            ),
        ] {
            assert_eq!(
                refused_hint(family, &error).as_deref(),
                Some(path),
                "{error:?}"
            );
        }
    }

    #[test]
    fn what_an_answer_rests_on_is_no_hint() {
        let unknown = Some("unknown_parameter");
        for wrong in [
            error(unknown, Some("tools"), "Unknown parameter: 'tools'."),
            error(
                unknown,
                Some("max_tokens"),
                "Unsupported parameter: 'max_tokens' is not supported with this model.",
            ),
            error(
                unknown,
                Some("messages[0].content"),
                "Unknown parameter: 'messages[0].content'.",
            ),
            error(
                unknown,
                Some("reasoning_effort"),
                "Unknown parameter: 'reasoning_effort'.",
            ),
            error(
                Some("invalid_value"),
                Some("temperature"),
                "Invalid value for 'temperature': must be at most 2.",
            ),
            error(None, None, "the user said that the seed is not supported"),
            error(None, None, ""),
        ] {
            assert_eq!(refused_hint(Family::Chat, &wrong), None, "{wrong:?}");
        }
    }
}
