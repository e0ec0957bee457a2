//! Fixtures and helpers shared by the test files. Recorded texts are shortened to `<text:N>` and get their length back here.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file uses some of these"
)]

use std::path::PathBuf;

use bytes::Bytes;
use farebox_protocol::{Family, Frame, FrameReader};
use serde_json::Value;

/// Name and bytes of each fixture of a family whose file name ends so.
pub(crate) fn fixtures(family: Family, ending: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(family.name());
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

/// Every answer and event that a family's SDK declares, with all its fields; one a line.
pub(crate) fn fixtures_of_sdk(family: Family) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sdk");
    std::fs::read_to_string(folder.join(format!("{}.jsonl", family.name()))).expect("a fixture")
}

/// Recordings of real clients (`tests/fixtures/clients` of the whole project) whose bodies are tried here, by family.
fn recorded(family: Family) -> &'static [&'static str] {
    match family {
        Family::Chat => &[
            "aider.chat.01",
            "instructor.chat.01",
            "llm.chat.01",
            "openai-python.chat.stream.01",
            "openai-python.chat.tool.01",
            "opencode.chat.tool.03",
        ],
        Family::Responses => &[
            "codex.tool.02",
            "openai-agents.responses.tool.02",
            "openai-python.responses.stream.01",
            "opencode.responses.02",
        ],
        Family::Messages => &[
            "claude-code.interactive.03",
            "claude-code.midstream-fallback.03",
            "claude-code.print.tool.02",
            "claude-code.slug-dotted.01",
            "litellm.messages.stream.01",
            "opencode.messages.tool.03",
        ],
    }
}

/// Recorded requests, expanded and compact as clients send them.
pub(crate) fn requests(family: Family) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/clients");
    let read = |name: &&str| {
        let bytes = std::fs::read(folder.join(format!("{name}.json"))).expect("a recording");
        let mut recording: Value = serde_json::from_slice(&bytes).expect("a recording is JSON");
        let mut body = recording["body"].take();
        expand(&mut body);
        ((*name).to_owned(), body.to_string().into_bytes())
    };
    recorded(family).iter().map(read).collect()
}

fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            let length = text
                .strip_prefix("<text:")
                .and_then(|rest| rest.strip_suffix('>'));
            if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
                *text = "some \"quoted\" words of text\n"
                    .chars()
                    .cycle()
                    .take(length)
                    .collect();
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
