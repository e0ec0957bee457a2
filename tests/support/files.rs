//! What files count in a billing upstream's prompts: documents with `lopdf`, pictures by the published rule of tiles.
#![cfg(test)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read as _;
use std::sync::{LazyLock, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::billing::words;

/// Tokens of a file by what its bytes are, whatever they are called. Read once.
pub(crate) fn file(base64: &str) -> u64 {
    static KNOWN: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);
    let mut hasher = DefaultHasher::new();
    base64.hash(&mut hasher);
    let name = hasher.finish();
    if let Some(tokens) = KNOWN.lock().unwrap().get(&name) {
        return *tokens;
    }
    let bytes = STANDARD.decode(base64).unwrap();
    let side = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    let tokens = match bytes.as_slice() {
        [b'%', b'P', b'D', b'F', ..] => document(&bytes),
        [0x89, b'P', b'N', b'G', ..] => tiles(side(16), side(20)),
        [b'G', b'I', b'F', ..] => {
            // The first frame where it is larger than the screen, as most readers do.
            let side =
                |at: usize| u64::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
            tiles(
                side(6).max(side(14) + side(18)),
                side(8).max(side(16) + side(20)),
            )
        }
        [0xff, 0xd8, rest @ ..] => jpeg(rest),
        [b'P', b'K', 3, 4, packed @ ..] => {
            let mut text = String::new();
            flate2::read::DeflateDecoder::new(packed)
                .read_to_string(&mut text)
                .unwrap();
            words(&text)
        }
        _ => words(&String::from_utf8_lossy(&bytes)),
    };
    KNOWN.lock().unwrap().insert(name, tokens);
    tokens
}

/// As the common library reads it: fill bytes and markers without a length are skipped, the frame header counts.
fn jpeg(mut rest: &[u8]) -> u64 {
    while let [first, others @ ..] = rest {
        rest = others;
        let [mark, behind @ ..] = rest else { break };
        if *first != 0xff || matches!(mark, 0 | 1 | 0xd0..=0xd8 | 0xff) {
            continue;
        }
        let side =
            |at: usize| u64::from(u16::from_be_bytes(behind[at..at + 2].try_into().unwrap()));
        if matches!(mark, 0xc0..=0xc2) {
            return tiles(side(5), side(3));
        }
        rest = &behind[side(0) as usize..];
    }
    0
}

/// The published rule: fit into 2,048, shorter side to 768, 170 tokens for each tile of 512 and 85 for all.
pub(crate) fn tiles(width: u64, height: u64) -> u64 {
    let shrink = (2_048.0 / width.max(height) as f64).min(1.0);
    let (width, height) = (width as f64 * shrink, height as f64 * shrink);
    let shrink = (768.0 / width.min(height)).min(1.0);
    let count = |side: f64| (side * shrink / 512.0).ceil() as u64;
    85 + 170 * count(width) * count(height)
}

/// A page costs its text and a picture of it; what notes and form fields say comes on top.
fn document(pdf: &[u8]) -> u64 {
    let document = lopdf::Document::load_mem(pdf).unwrap();
    let pages: Vec<u32> = document.get_pages().keys().copied().collect();
    let picture = tiles(1_275, 1_650);
    let shown: u64 = pages
        .iter()
        .map(|page| words(&document.extract_text(&[*page]).unwrap_or_default()) + picture)
        .sum();
    shown + document.objects.values().map(said).sum::<u64>()
}

fn said(object: &lopdf::Object) -> u64 {
    let Ok(dict) = object.as_dict() else { return 0 };
    let strings = ["Contents", "V"]
        .iter()
        .filter_map(|name| dict.get(name.as_bytes()).ok()?.as_str().ok());
    let here: u64 = strings
        .map(|text| words(&String::from_utf8_lossy(text)))
        .sum();
    let inside = dict
        .iter()
        .flat_map(|(_, value)| value.as_array().into_iter().flatten());
    here + inside.map(said).sum::<u64>()
}
