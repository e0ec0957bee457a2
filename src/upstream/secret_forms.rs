//! A provider's secrets in every form in which a program writes them: plain, percent-encoded, in hexadecimal, and inside base64 of
//! any surrounding text.
//!
//! Built once per provider, because building them costs more than reading an answer. Lower case, because matching ignores case;
//! longest first, because a long secret may contain a short one.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::config::Provider;

const SHORTEST_SECRET: usize = 4;
/// Shorter pieces of base64 also occur in ordinary words.
const SHORTEST_CODED: usize = 8;

/// All forms of all secrets of a provider. Never shown.
#[derive(Clone, Default)]
pub struct SecretForms(Arc<[String]>);

impl fmt::Debug for SecretForms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SecretForms({})", self.0.len())
    }
}

impl SecretForms {
    /// The forms of its keys and header values.
    pub(super) fn of(provider: &Provider) -> Self {
        let headers = provider.headers.iter().map(|(_, value)| value.reveal());
        Self::of_secrets(provider.keys.iter().map(|key| key.reveal()).chain(headers))
    }

    pub(super) fn of_secrets<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<String> = secrets
            .into_iter()
            .flat_map(forms)
            .map(|form| form.to_ascii_lowercase())
            .collect();
        all.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all.into())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a text, in lower case, contains one of them.
    pub(super) fn stand_in(&self, lower: &str) -> bool {
        self.iter().any(|form| lower.contains(form))
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
