//! How a provider counts a prompt: text with `tiktoken-rs`, files as `files.rs` reads them. No code of the gateway's.
#![cfg(test)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, Mutex};

use serde_json::Value;

use crate::support::files::{file, tiles};

/// A vendor's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Tokenizer {
    #[default]
    O200k,
    Cl100k,
}

impl Tokenizer {
    fn table(self) -> &'static tiktoken_rs::CoreBPE {
        match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        }
    }

    /// Tokens of a prompt: every string that a template may show, every picture, every page.
    pub(crate) fn prompt(self, body: &Value) -> u64 {
        let members = body.as_object().unwrap().iter();
        members
            .filter(|(name, _)| {
                !matches!(
                    name.as_str(),
                    "model" | "stream" | "stream_options" | "prediction"
                )
            })
            .map(|(_, value)| self.tokens(value))
            .sum()
    }

    /// Tokens of a text. Long ones are remembered: the same text is sent many times.
    pub(crate) fn words(self, text: &str) -> u64 {
        words_by(self, text)
    }

    /// Tokens of a part of a prompt.
    pub(crate) fn tokens(self, value: &Value) -> u64 {
        match value {
            Value::String(text) => media(text).unwrap_or_else(|| self.words(text)),
            Value::Array(list) => list.iter().map(|value| self.tokens(value)).sum(),
            Value::Object(map) => {
                if let Some(data) = map
                    .get("data")
                    .and_then(Value::as_str)
                    .filter(|_| map.contains_key("media_type"))
                {
                    return file(data);
                }
                if let Some(picture) = map.get("image_url").filter(|_| low(map)) {
                    return self.tokens(picture).min(85);
                }
                // A document at an address is fetched; a picture that was sent before is looked at again.
                if map.get("type").is_some_and(|kind| kind == "document_url") {
                    return 30_000;
                }
                if map.contains_key("uuid")
                    && map
                        .get("image_url")
                        .is_none_or(|picture| picture["url"].is_null())
                {
                    return tiles(2_048, 768);
                }
                // The template's own words around a message or part are few, and the same for all.
                map.iter()
                    .filter(|(name, _)| *name != "type" && *name != "role")
                    .map(|(name, value)| {
                        if is_shown_as_json(name, value) {
                            self.words(&value.to_string())
                        } else {
                            self.tokens(value)
                        }
                    })
                    .sum::<u64>()
                    + ["type", "role"]
                        .iter()
                        .filter_map(|name| map.get(*name))
                        .map(|word| self.tokens(word).min(1_000_000) / 2)
                        .sum::<u64>()
            }
            _ => 0,
        }
    }
}

/// Tokens of a text by the newest table of OpenAI.
pub(crate) fn words(text: &str) -> u64 {
    Tokenizer::O200k.words(text)
}

/// Tokens of a prompt by the same.
pub(crate) fn prompt(body: &Value) -> u64 {
    Tokenizer::O200k.prompt(body)
}

/// Tokens of a part of it.
pub(crate) fn tokens(value: &Value) -> u64 {
    Tokenizer::O200k.tokens(value)
}

fn words_by(tokenizer: Tokenizer, text: &str) -> u64 {
    static KNOWN: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);
    let count = || tokenizer.table().encode_ordinary(text).len() as u64;
    if text.len() < 1_000 {
        return count();
    }
    let mut hasher = DefaultHasher::new();
    (tokenizer, text).hash(&mut hasher);
    let name = hasher.finish();
    let known = KNOWN.lock().unwrap().get(&name).copied();
    known.unwrap_or_else(|| {
        let tokens = count();
        KNOWN.lock().unwrap().insert(name, tokens);
        tokens
    })
}

/// Schemas and arguments are shown to a model as they stand, names and numbers too.
fn is_shown_as_json(name: &str, value: &Value) -> bool {
    value.is_object() && matches!(name, "parameters" | "input_schema" | "schema" | "input")
}

/// Whether a picture is looked at for the small fixed price: chat reads that beside the address, responses in the part.
fn low(part: &serde_json::Map<String, Value>) -> bool {
    let place = if part["image_url"].is_object() {
        part["image_url"].get("detail")
    } else {
        part.get("detail")
    };
    place.is_some_and(|detail| detail == "low")
}

/// Tokens of a `data:` URL or a picture's address.
fn media(text: &str) -> Option<u64> {
    if text.starts_with("https://") {
        return Some(tiles(2_048, 768));
    }
    Some(file(text.strip_prefix("data:")?.split_once(";base64,")?.1))
}
