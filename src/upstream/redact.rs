//! The only exit for text that an upstream wrote. Text for a customer, the log, `/live` or the dashboard first loses everything
//! that identifies the operator's account, is then shortened, and then loses characters that could forge a log line or reverse text
//! direction. The order matters: a secret that was cut in two is no longer found.
//!
//! Only this file creates a [`Redacted`], so the compiler ensures that no text takes another way. Clients match on the wording of a
//! 400, so everything else stays: field names, header names, the customer's own ids and links. The upstream's model name becomes
//! the public slug; keys, hosts, provider names, files, account, project and request ids become a word in brackets.

mod accounts;
mod codes;
mod escapes;
mod files;
mod find;
mod hosts;
mod spelling;
mod targets;

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use farebox_ledger::text::is_unseen;
use farebox_protocol::UpstreamError;

use super::secret_forms::SecretForms;
use crate::config::{Route, Target};
use targets::{ECHOED, RedactedTerms, names_out, without_secrets};

/// Redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<T = String>(T);

/// An upstream's error as a customer may read it. Outside this room an upstream's error exists only as this type.
pub type CustomerError = Redacted<UpstreamError>;

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Redacted {
    /// Prefixed with a word of our own.
    pub(super) fn labelled(&self, label: impl fmt::Display) -> Self {
        Self(format!("{label}: {}", self.0))
    }
}

/// Bytes of a text that are searched.
const WINDOW: usize = 32 << 10;
/// Characters of a message that a customer sees, and of a type, a code or a field's name.
const LONGEST_MESSAGE: usize = 4_000;
const LONGEST_WORD: usize = 200;
/// Characters that an operator sees.
const LONGEST_REASON: usize = 300;

/// The error as a customer may read it.
pub(super) fn for_customer(error: &UpstreamError, route: &Route) -> CustomerError {
    Redacted(error_for_customer(error, &RedactedTerms::of(route)))
}

/// An event that its family does not have, as a customer may read it. It stays as long as it is.
pub fn event(bytes: &Bytes, route: &Route) -> Bytes {
    let known = RedactedTerms::of(route);
    let text = String::from_utf8_lossy(bytes);
    Bytes::from(names_out(without_secrets(&text, &known), &known))
}

/// Whether a member of a target's answer tells who gave it: on its way through this exit it would not stay as it is.
pub(super) fn tells(member: &str, slug: &str, target: &Target, secrets: &SecretForms) -> bool {
    let mut known = RedactedTerms::named(slug, std::slice::from_ref(target));
    known.secrets.push(secrets.clone());
    names_out(without_secrets(member, &known), &known) != member
}

/// A text without the secrets, for the operator's log: hosts and model names may stay.
pub fn for_operator(text: &str, route: &Route) -> Redacted {
    Redacted(text_for_operator(text, &RedactedTerms::of(route)))
}

/// The same for words of our own.
pub fn plain(text: &str) -> Redacted {
    Redacted(text_for_operator(text, &RedactedTerms::default()))
}

/// An upstream's id of its answer, for the journal. Every answer has one, so a quick check comes first: an ordinary id contains
/// nothing that has to be redacted.
pub fn answer_id(id: &str, secrets: &SecretForms) -> Redacted {
    let lower = clip(id, WINDOW).to_ascii_lowercase();
    if !lower.contains(ECHOED) && !secrets.stand_in(&lower) {
        return Redacted(printable(&shorten(id, LONGEST_WORD)));
    }
    let known = RedactedTerms {
        secrets: vec![secrets.clone()],
        ..RedactedTerms::default()
    };
    Redacted(exit(id, &known, LONGEST_WORD, |text, _| text))
}

fn error_for_customer(error: &UpstreamError, known: &RedactedTerms<'_>) -> UpstreamError {
    let word = |text: &Option<String>| {
        text.as_deref()
            .map(|text| exit(text, known, LONGEST_WORD, names_out))
    };
    UpstreamError {
        kind: word(&error.kind),
        code: word(&error.code),
        param: word(&error.param),
        message: exit(&error.message, known, LONGEST_MESSAGE, names_out),
    }
}

fn text_for_operator(text: &str, known: &RedactedTerms<'_>) -> String {
    exit(text, known, LONGEST_REASON, |text, _| text)
}

/// Redacts, then shortens, then removes what could forge a line.
fn exit(
    text: &str,
    known: &RedactedTerms<'_>,
    longest: usize,
    more: impl FnOnce(String, &RedactedTerms<'_>) -> String,
) -> String {
    let window = clip(text, WINDOW);
    let mut clean = more(without_secrets(window, known), known);
    if window.len() < text.len() {
        // Text at the edge of the window may be the beginning of a secret.
        let sure = clean
            .len()
            .saturating_sub(known.longest_secret().max(LONGEST_WORD));
        clean.truncate(clean.floor_char_boundary(sure));
    }
    printable(&shorten(&clean, longest))
}

fn shorten(text: &str, longest: usize) -> String {
    // Every character has at least one byte.
    if text.len() <= longest {
        text.to_owned()
    } else {
        text.chars().take(longest).collect()
    }
}

/// Control characters, and those that change a line's direction or end it, become spaces: removing them could join the halves of a
/// secret.
fn printable(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if is_unseen(c) { ' ' } else { c })
        .collect()
}

fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
