//! What a reader of the admin listener sees: everything, or, on loopback without the token, everything but ids of keys and customers, what
//! stands behind the host of an address, and lines of the files.

use std::borrow::Cow;

use farebox_ledger::Scope;
use salvo::prelude::Depot;
use serde_json::Value;

/// In place of what is left out.
const LEFT_OUT: &str = "…";

/// How much a reader sees; more is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sight {
    /// Any user of this machine.
    Shortened,
    /// Who has the token.
    Whole,
}

impl Sight {
    /// Of this request, as the guard has decided.
    pub(super) fn of(depot: &Depot) -> Self {
        depot.get_typed().copied().unwrap_or(Self::Shortened)
    }

    /// A text, as this reader sees it.
    pub(super) fn text(self, text: &str) -> Cow<'_, str> {
        let is_harmless = !["k_", "c_", "://"].iter().any(|sign| text.contains(sign));
        if self == Self::Whole || is_harmless {
            return Cow::Borrowed(text);
        }
        let shortened = text.split_inclusive(ends_address).map(shortened);
        Cow::Owned(shortened.collect())
    }

    /// Takes out of a document what this reader does not see.
    pub(super) fn shorten(self, document: &mut Value) {
        if self == Self::Whole {
            return;
        }
        match document {
            Value::String(text) => {
                if let Cow::Owned(shortened) = self.text(text) {
                    *text = shortened;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.shorten(value)),
            Value::Object(fields) => {
                // It quotes lines of the files, with whatever is wrong in them.
                fields.remove("rendered");
                fields.values_mut().for_each(|value| self.shorten(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn ends_address(character: char) -> bool {
    character.is_whitespace() || character == '"'
}

/// Of an address the scheme and the host, and no ids.
fn shortened(piece: &str) -> String {
    let shown = piece.trim_end_matches(ends_address);
    let end = piece.strip_prefix(shown).unwrap_or_default();
    let Some((scheme, rest)) = shown.split_once("://") else {
        return without_ids(piece);
    };
    let scheme = without_ids(scheme);
    match rest.split_once(['/', '?', '#']) {
        Some((host, path)) if !path.is_empty() => format!("{scheme}://{host}/{LEFT_OUT}{end}"),
        _ => format!("{scheme}://{rest}{end}"),
    }
}

fn without_ids(text: &str) -> String {
    let ends_word = |character: char| !(character.is_ascii_alphanumeric() || character == '_');
    let words = text.split_inclusive(ends_word).map(|part| {
        let word = part.trim_end_matches(ends_word);
        // An id has its letter in front; ten digits alone are none.
        let has_letter = word.starts_with("k_") || word.starts_with("c_");
        if has_letter && word.parse::<Scope>().is_ok() {
            Cow::Owned(part.replacen(word, LEFT_OUT, 1))
        } else {
            Cow::Borrowed(part)
        }
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_and_what_is_behind_a_host_are_left_out_wherever_they_stand() {
        for (whole, shortened) in [
            ("k_k2pv7yq6b3", "…"),
            (
                "all keys of c_7f3q9d2xw1 together, most of it by k_k2pv7yq6b3: 5 USD",
                "all keys of … together, most of it by …: 5 USD",
            ),
            ("(k_k2pv7yq6b3,k_7f3q9d2xw1)", "(…,…)"),
            (
                "SELECT * FROM t WHERE id = 'k_k2pv7yq6b3'",
                "SELECT * FROM t WHERE id = '…'",
            ),
            ("https://hooks.example/a/secret", "https://hooks.example/…"),
            (
                "https://hooks.example:8443/a)b,c'd it said",
                "https://hooks.example:8443/… it said",
            ),
            (
                "url = \"http://127.0.0.1:9/k_k2pv7yq6b3\" k_7f3q9d2xw1",
                "url = \"http://127.0.0.1:9/…\" …",
            ),
            (
                "see (https://a.example/b) and https://c.example/?d=e",
                "see (https://a.example/… and https://c.example/…",
            ),
            ("https://hooks.example/", "https://hooks.example/"),
            ("https://hooks.example", "https://hooks.example"),
            (
                "https://hooks.example\tk_k2pv7yq6b3\n",
                "https://hooks.example\t…\n",
            ),
        ] {
            assert_eq!(Sight::Shortened.text(whole), shortened);
            assert_eq!(Sight::Whole.text(whole), whole);
        }
        for harmless in [
            "",
            "test-model at up/k_",
            "2026112812",
            "k_short",
            "track_list",
            "mac_address ::// no",
            "日本 k_日本",
        ] {
            assert_eq!(Sight::Shortened.text(harmless), harmless);
        }
    }

    #[test]
    fn a_document_is_shortened_in_all_its_depth() {
        let whole = json!({
            "alerts": [{ "key": "k_k2pv7yq6b3", "customer_ids": ["c_7f3q9d2xw1"], "exposure": "5.00", "done": 3, "since": null }],
            "webhooks": [{ "url": "https://hooks.example/a/secret", "state": "failing" }],
            "diagnostics": [{ "message": "`url` is not encrypted", "line": 7, "rendered": "7 | url = \"hooks.example/a/secret\"" }],
        });
        let mut shown = whole.clone();
        Sight::Whole.shorten(&mut shown);
        assert_eq!(shown, whole);
        Sight::Shortened.shorten(&mut shown);
        let expected = json!({
            "alerts": [{ "key": "…", "customer_ids": ["…"], "exposure": "5.00", "done": 3, "since": null }],
            "webhooks": [{ "url": "https://hooks.example/…", "state": "failing" }],
            "diagnostics": [{ "message": "`url` is not encrypted", "line": 7 }],
        });
        assert_eq!(shown, expected);
    }
}
