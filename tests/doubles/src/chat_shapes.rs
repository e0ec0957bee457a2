//! What every copy of the chat wire asks for alike: the types of the fields and the shapes of messages, tools and calls. A vendor
//! takes these rows under a source and a status of its own, and adds what only it asks for.

use crate::rule::{JsonType, Must, WireRule};

use JsonType::{Flag, Integer, List, Null, Number, Object, Text};
use Must::{Absent, Be, Needs, Once, OneOf, Start};

/// A service has no use for such a header, but none is known to refuse it.
pub(crate) const FOREIGN: &str =
    "no source found (2026-11-23) of a service that refuses another family's header";

/// The same rows, refusing nothing: for a vendor whose sources do not tell these shapes.
pub(crate) const fn unverified<const N: usize>(mut rules: [WireRule; N]) -> [WireRule; N] {
    let mut number = 0;
    while number < N {
        rules[number] = rules[number].unverified();
        number += 1;
    }
    rules
}

/// The same rows, those at these places refusing nothing: for a vendor whose source was read and does not ask for them.
pub(crate) const fn unverified_at<const N: usize>(
    mut rules: [WireRule; N],
    places: &[&str],
) -> [WireRule; N] {
    let mut number = 0;
    while number < N {
        let mut place = 0;
        while place < places.len() {
            if same(rules[number].place, places[place]) {
                rules[number] = rules[number].unverified();
            }
            place += 1;
        }
        number += 1;
    }
    rules
}

/// `==` of texts is not const yet.
const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Authentication by a bearer, a JSON body, and nothing that belongs to another family.
pub(crate) const fn headers(source: &'static str) -> [WireRule; 6] {
    [
        WireRule::new("@content-type", Once, source),
        WireRule::new("@content-type", Start("application/json"), source),
        WireRule::new("@authorization", Once, source).status(401),
        WireRule::new("@authorization", Start("Bearer "), source).status(401),
        WireRule::new("@x-api-key", Absent, FOREIGN)
            .unverified()
            .broken_by(&[("@x-api-key", "k")]),
        WireRule::new("@anthropic-version", Absent, FOREIGN)
            .unverified()
            .broken_by(&[("@anthropic-version", "2023-06-01")]),
    ]
}

/// The same for a server that the operator runs without a key.
pub(crate) const fn open_headers(source: &'static str) -> [WireRule; 2] {
    [
        WireRule::new("@content-type", Once, source),
        WireRule::new("@content-type", Start("application/json"), source),
    ]
}

/// Types of the fields.
pub(crate) const fn fields(source: &'static str, status: u16) -> [WireRule; 13] {
    [
        WireRule::new("", Be(&[Object]), source).status(status),
        WireRule::new("", Needs(&["messages"]), source).status(status),
        WireRule::new("/model", Be(&[Text]), source).status(status),
        WireRule::new("/messages", Be(&[List]), source).status(status),
        WireRule::new("/max_tokens", Be(&[Integer, Null]), source).status(status),
        WireRule::new("/temperature", Be(&[Number, Null]), source).status(status),
        WireRule::new("/top_p", Be(&[Number, Null]), source).status(status),
        WireRule::new("/stream", Be(&[Flag, Null]), source).status(status),
        WireRule::new("/stop", Be(&[Text, List, Null]), source).status(status),
        WireRule::new("/tools", Be(&[List, Null]), source).status(status),
        WireRule::new("/tool_choice", Be(&[Text, Object, Null]), source).status(status),
        WireRule::new("/response_format", Be(&[Object, Null]), source).status(status),
        WireRule::new("/presence_penalty", Be(&[Number, Null]), source).status(status),
    ]
}

/// Shapes of messages, parts, calls and tools.
pub(crate) const fn shapes(source: &'static str, status: u16) -> [WireRule; 17] {
    [
        WireRule::new("/messages/*", Be(&[Object]), source).status(status),
        WireRule::new("/messages/*", Needs(&["role"]), source).status(status),
        WireRule::new("/messages/*/role", Be(&[Text]), source).status(status),
        WireRule::new("/messages/*/content", Be(&[Text, List, Null]), source).status(status),
        WireRule::new("/messages/*[role=user|system]", Needs(&["content"]), source).status(status),
        WireRule::new(
            "/messages/*[role=user|system]/content",
            Be(&[Text, List]),
            source,
        )
        .status(status),
        WireRule::new("/messages/*/content/*", Be(&[Object]), source).status(status),
        WireRule::new("/messages/*/content/*", Needs(&["type"]), source).status(status),
        WireRule::new("/messages/*/content/*[type=text]", Needs(&["text"]), source)
            .named("needs its text")
            .status(status),
        WireRule::new("/messages/*/content/*[type=text]/text", Be(&[Text]), source).status(status),
        WireRule::new("/messages/*/tool_calls/*", Needs(&["function"]), source).status(status),
        WireRule::new(
            "/messages/*/tool_calls/*/function",
            Needs(&["name", "arguments"]),
            source,
        )
        .status(status),
        WireRule::new(
            "/messages/*/tool_calls/*/function/name",
            Be(&[Text]),
            source,
        )
        .status(status),
        WireRule::new("/tools/*[type=function]", Needs(&["function"]), source).status(status),
        WireRule::new("/tools/*/function", Needs(&["name"]), source).status(status),
        WireRule::new("/tools/*/function/name", Be(&[Text]), source).status(status),
        WireRule::new(
            "/response_format/type",
            OneOf(&["text", "json_object", "json_schema"]),
            source,
        )
        .status(status),
    ]
}
