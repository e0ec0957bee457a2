//! An upstream that bills: it counts every prompt it reads and every token it makes, with code of its own.
//!
//! Text by `tiktoken-rs`, documents by `lopdf`, pictures by the published rule of tiles; the gateway uses none of them. What it
//! bills is what an honest provider would, whatever it then says about usage.
#![cfg(test)]

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::{Family, Usage};
use serde_json::Value;

use super::upstream::{Reply, Script, Seen, Speech};

/// Tokens of one request, as billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Billed {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Billed {
    /// In picodollars, at $3 and $15 a million.
    pub(crate) fn cost(self) -> i64 {
        i64::try_from(self.input * 3_000_000 + self.output * 15_000_000).unwrap()
    }
}

/// How this upstream behaves. It bills the truth in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Manner {
    /// It says nothing about usage.
    pub(crate) silent_usage: bool,
    /// Tokens of reasoning that no frame shows.
    pub(crate) hidden: u64,
}

/// The bills of one upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bills(Arc<Mutex<Vec<Billed>>>);

impl Bills {
    pub(crate) fn all(&self) -> Vec<Billed> {
        self.0.lock().unwrap().clone()
    }

    /// An upstream that answers with this text and writes its bills here.
    pub(crate) fn answering(&self, text: &str, manner: Manner) -> Script {
        let (bills, text) = (self.clone(), text.to_owned());
        Script::by(move |seen, _| bills.answer(seen, &text, manner))
    }

    fn answer(&self, seen: &Seen, text: &str, manner: Manner) -> Reply {
        let path = seen.path.split('?').next().unwrap();
        let family = Family::ALL.into_iter().find(|family| path.ends_with(family.protocol().path())).unwrap();
        let body = seen.json();
        let billed = Billed { input: prompt(&body), output: words(text) + manner.hidden };
        self.0.lock().unwrap().push(billed);
        let usage =
            Usage { input: billed.input, output: billed.output - manner.hidden, reasoning: manner.hidden, ..Usage::default() };
        let speech = Speech::new(family, text).usage(usage);
        let speech = if manner.silent_usage { speech.claims(Value::Null) } else { speech };
        if body["stream"] == true { speech.stream() } else { speech.whole() }
    }
}

/// Tokens of a text.
pub(crate) fn words(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
}

/// Tokens of a prompt: every string that a template may show, every picture, every page.
pub(crate) fn prompt(body: &Value) -> u64 {
    let members = body.as_object().unwrap().iter();
    members
        .filter(|(name, _)| !matches!(name.as_str(), "model" | "stream" | "stream_options"))
        .map(|(_, value)| tokens(value))
        .sum()
}

fn tokens(value: &Value) -> u64 {
    match value {
        Value::String(text) => media(text).unwrap_or_else(|| words(text)),
        Value::Array(list) => list.iter().map(tokens).sum(),
        Value::Object(map) => {
            if let Some(data) = map.get("data").and_then(Value::as_str).filter(|_| map.contains_key("media_type")) {
                return file(data);
            }
            // The template's own words around a message or part are few, and the same for all.
            map.iter().filter(|(name, _)| *name != "type" && *name != "role").map(|(_, value)| tokens(value)).sum::<u64>()
                + ["type", "role"]
                    .iter()
                    .filter_map(|name| map.get(*name))
                    .map(|word| tokens(word).min(1_000_000) / 2)
                    .sum::<u64>()
        }
        _ => 0,
    }
}

/// Tokens of a `data:` URL or a picture's address.
fn media(text: &str) -> Option<u64> {
    if text.starts_with("https://") {
        return Some(tiles(2_048, 768));
    }
    Some(file(text.strip_prefix("data:")?.split_once(";base64,")?.1))
}

fn file(base64: &str) -> u64 {
    let bytes = STANDARD.decode(base64).unwrap();
    if bytes.starts_with(b"%PDF") {
        return document(&bytes);
    }
    let side = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    tiles(side(16), side(20))
}

/// The published rule: fit into 2,048, shorter side to 768, 170 tokens for each tile of 512 and 85 for all.
fn tiles(width: u64, height: u64) -> u64 {
    let shrink = (2_048.0 / width.max(height) as f64).min(1.0);
    let (width, height) = (width as f64 * shrink, height as f64 * shrink);
    let shrink = (768.0 / width.min(height)).min(1.0);
    let count = |side: f64| (side * shrink / 512.0).ceil() as u64;
    85 + 170 * count(width) * count(height)
}

/// A page costs its text and a picture of it.
fn document(pdf: &[u8]) -> u64 {
    let document = lopdf::Document::load_mem(pdf).unwrap();
    let pages: Vec<u32> = document.get_pages().keys().copied().collect();
    let picture = tiles(1_275, 1_650);
    pages.iter().map(|page| words(&document.extract_text(&[*page]).unwrap_or_default()) + picture).sum()
}
