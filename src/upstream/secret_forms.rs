//! A provider's secrets in every form in which a program writes them: plain, percent-encoded, in hexadecimal, and inside base64 of
//! any surrounding text.
//!
//! Built once per provider, because building them costs more than reading an answer. All are looked for in one pass, whatever the
//! case, and where two overlap both go: a short secret that begins in front of a long one must not save the rest of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::config::Provider;

const SHORTEST_SECRET: usize = 4;
/// Shorter pieces of base64 also occur in ordinary words.
const SHORTEST_CODED: usize = 8;

/// All forms of all secrets of a provider. Never shown.
#[derive(Clone, Default)]
pub struct SecretForms(Arc<SecretFinder>);

#[derive(Default)]
struct SecretFinder {
    count: usize,
    longest: usize,
    /// `None` if there are more than an automaton can hold: then every text is taken for a secret.
    finder: Option<AhoCorasick>,
}

impl fmt::Debug for SecretForms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SecretForms({})", self.0.count)
    }
}

impl SecretForms {
    /// The forms of its keys and header values.
    pub(super) fn of(provider: &Provider) -> Self {
        let headers = provider.headers.iter().map(|(_, value)| value.reveal());
        Self::of_secrets(
            provider
                .keys
                .iter()
                .map(|key| key.secret.reveal())
                .chain(headers),
        )
    }

    pub(super) fn of_secrets<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let all: Vec<String> = secrets.into_iter().flat_map(forms).collect();
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&all);
        Self(Arc::new(SecretFinder {
            count: all.len(),
            longest: all.iter().map(String::len).max().unwrap_or(0),
            finder: finder.ok(),
        }))
    }

    /// Bytes of the longest one.
    pub(super) fn longest(&self) -> usize {
        self.0.longest
    }

    /// Whether a text contains one of them.
    pub(super) fn stand_in(&self, text: &str) -> bool {
        match &self.0.finder {
            Some(finder) => finder.is_match(text),
            None => self.0.count > 0,
        }
    }

    /// Where they stand in a text, as far as they overlap in one piece, in order.
    pub(super) fn places(&self, text: &str) -> Vec<Range<usize>> {
        let Some(finder) = &self.0.finder else {
            let all = 0..text.len();
            return (self.0.count > 0).then_some(all).into_iter().collect();
        };
        let mut found: Vec<Range<usize>> = (finder.find_overlapping_iter(text))
            .map(|found| found.range())
            .collect();
        found.sort_unstable_by_key(|found| (found.start, found.end));
        found.dedup_by(|next, before| {
            let overlap = next.start < before.end;
            if overlap {
                before.end = before.end.max(next.end);
            }
            overlap
        });
        found
    }
}

fn forms(secret: &str) -> Vec<String> {
    if secret.len() < SHORTEST_SECRET {
        return Vec::new();
    }
    let percent = |all: bool| {
        let coded = secret.bytes().map(|byte| {
            let plain = byte.is_ascii_alphanumeric() || !all && b"-_.~".contains(&byte);
            if plain {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        });
        coded.collect::<String>()
    };
    let mut forms = vec![secret.to_owned(), percent(false), percent(true)];
    forms.push(secret.bytes().map(|byte| format!("%{byte:02X}")).collect());
    forms.push(hex::encode(secret));
    for offset in 0..3 {
        // Drops the characters that depend on the text beside the secret.
        let padded = ["\0".repeat(offset), secret.to_owned()].concat();
        let whole = padded.len() / 3 * 4;
        let skipped = [0, 2, 3][offset];
        for coded in [
            STANDARD_NO_PAD.encode(&padded),
            URL_SAFE_NO_PAD.encode(&padded),
        ] {
            forms.extend(
                coded
                    .get(skipped..whole)
                    .filter(|core| core.len() >= SHORTEST_CODED)
                    .map(str::to_owned),
            );
        }
    }
    forms
}
