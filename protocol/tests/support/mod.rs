//! Fixtures and helpers that the test files share. Recorded texts are shortened to `<text:N>`; here they get their length back.

#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses some of these")]

use std::path::PathBuf;

use bytes::Bytes;
use farebox_protocol::{Family, Frame, FrameReader};
use serde_json::Value;

/// Name and bytes of each fixture of a family whose file name ends so.
pub(crate) fn fixtures(family: Family, ending: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(family.name());
    let mut found: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("the family's fixtures")
        .map(|entry| entry.expect("a file").path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned();
            Some((name, std::fs::read(&path).expect("a readable fixture")))
        })
        .collect();
    found.sort();
    found
}

/// Recorded requests, expanded and compact as clients send them.
pub(crate) fn requests(family: Family) -> Vec<(String, Vec<u8>)> {
    let mut all = fixtures(family, ".json");
    all.retain(|(name, _)| !name.ends_with(".answer"));
    all.into_iter()
        .map(|(name, bytes)| {
            let mut body: Value = serde_json::from_slice(&bytes).expect("a JSON fixture");
            expand(&mut body);
            (name, body.to_string().into_bytes())
        })
        .collect()
}

fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            let length = text.strip_prefix("<text:").and_then(|rest| rest.strip_suffix('>'));
            if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
                *text = "some \"quoted\" words of text\n".chars().cycle().take(length).collect();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(expand),
        Value::Object(members) => members.values_mut().for_each(expand),
        _ => {}
    }
}

/// All frames of a stream that ends properly.
pub(crate) fn frames(stream: &[u8]) -> Vec<Frame> {
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(stream));
    let mut out = Vec::new();
    while let Some(frame) = reader.next_frame().expect("no frame is too large") {
        out.push(frame);
    }
    let tail = reader.finish();
    assert_eq!(tail.left, 0, "nothing is left over");
    out.extend(tail.frame);
    out
}
