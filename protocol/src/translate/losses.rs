//! What a translation dropped or changed, for the customer to read.
//!
//! A loss is a field of the customer's request and one word. Must never hold a value of the request.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Longest header value.
// Proxies in front of the gateway limit the headers of an answer, and replace the whole answer by an error of their own if
// there is more.
const MAX_BYTES: usize = 1_024;

/// The losses on the way to one target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    list: BTreeMap<(String, String), u32>,
}

impl Losses {
    /// Adds a loss of `word` at `field`. Field names that are not plain words are not repeated.
    pub fn add(&mut self, field: &str, word: &str) {
        // A field name comes from the request: only what is surely a name may stand in a header and in the log.
        let plain = !field.is_empty()
            && field.len() <= 64
            && field
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._[]-$".contains(&byte));
        let field = if plain { field } else { "unknown" };
        let count = self
            .list
            .entry((field.to_owned(), word.to_owned()))
            .or_default();
        *count = count.saturating_add(1);
    }

    /// Adds a loss on the way back: fields of answers are prefixed with `answer.`.
    pub(crate) fn add_to_answer(&mut self, field: &str, word: &str) {
        self.add(&format!("answer.{field}"), word);
    }

    /// Adds these losses.
    pub fn merge(&mut self, more: &Self) {
        for (key, more) in &more.list {
            let count = self.list.entry(key.clone()).or_default();
            *count = count.saturating_add(*more);
        }
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Field, word and how often, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        self.list
            .iter()
            .map(|((field, word), count)| (field.as_str(), word.as_str(), *count))
    }

    /// The value of `x-farebox-lost`: `field=word` or `field=word(n)`, sorted, at most 1 KB. What does not fit is counted:
    /// `more=3`.
    pub fn header(&self) -> String {
        let mut out = String::new();
        let mut left = self.list.len();
        for (field, word, count) in self.iter() {
            let mut entry = format!("{field}={word}");
            if count > 1 {
                let _ = write!(entry, "({count})");
            }
            let room = MAX_BYTES - ", more=9999".len();
            if out.len() + entry.len() + 2 > room {
                let _ = write!(out, ", more={}", left.min(9_999));
                return out;
            }
            if !out.is_empty() {
                out.push_str(", ");
            }
            out.push_str(&entry);
            left -= 1;
        }
        out
    }
}
