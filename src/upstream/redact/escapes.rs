//! Finds names inside JSON strings that spell them with escapes: `\u002d` for a hyphen, `\/` for a slash, or a host behind `\n`.
//!
//! Text that has no escapes is cleaned as it stands. Quotes need not be balanced: what stands between any two is looked at.

use std::borrow::Cow;

use farebox_protocol::json::{quoted, unescape};

/// How often escapes are undone: a service repeats another's answer as a string inside its own.
const LAYERS: usize = 3;

/// The text with each escaped string replaced whose plain text changes when it is cleaned.
pub(super) fn without_escaped(text: &str, clean: impl Fn(&str) -> String + Copy) -> String {
    in_layers(text, clean, LAYERS)
}

fn in_layers(text: &str, clean: impl Fn(&str) -> String + Copy, layers: usize) -> String {
    if layers == 0 || !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for (at, inside) in between_quotes(text).enumerate() {
        if at > 0 {
            out.push('"');
        }
        out.push_str(&cleaned(inside, clean, layers));
    }
    out
}

fn cleaned<'t>(
    inside: &'t str,
    clean: impl Fn(&str) -> String + Copy,
    layers: usize,
) -> Cow<'t, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let plain = unescape(inside);
    let clean = clean(&in_layers(&plain, clean, layers - 1));
    if clean == plain {
        return Cow::Borrowed(inside);
    }
    let clean = quoted(&clean);
    Cow::Owned(clean[1..clean.len() - 1].to_owned())
}

/// What stands between quotes that are not themselves escaped.
fn between_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let is_quote = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_quote
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        let clean = |text: &str| text.replace("a-b.example", "[host]");
        assert_eq!(without_escaped(text, clean), expected);
    }

    #[test]
    fn names_behind_escapes_go_and_all_other_text_stays() {
        becomes(r#"{"h":"a\u002db.example"}"#, r#"{"h":"[host]"}"#);
        becomes(
            r#"{"a\u002db.example":1,"x":"C:\\new"}"#,
            r#"{"[host]":1,"x":"C:\\new"}"#,
        );
        becomes(r#""line\na-b.example\n""#, r#""line\n[host]\n""#);
        becomes(r#"" {"h":"a\u002db.example"}"#, r#"" {"h":"[host]"}"#);
        becomes(
            r#"{"of":"{\"h\":\"a\\u002db.example\"}"}"#,
            r#"{"of":"{\"h\":\"[host]\"}"}"#,
        );
        for text in [r#"{"s":"\ud83d\ude00 \" \\ \x"}"#, r"\", "", "\"\\\""] {
            becomes(text, text);
        }
    }
}
