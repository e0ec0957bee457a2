//! Requests of the three families: recorded ones of real clients with their text put back in, and plain ones.

use std::fs;
use std::path::Path;

use farebox_protocol::Family;
use serde_json::{Value, json};

/// A request and its family.
#[derive(Debug, Clone)]
pub(crate) struct SampleRequest {
    pub(crate) family: Family,
    pub(crate) body: Value,
}

/// Every recorded generation request, with `text` in place of what was taken out of it.
pub(crate) fn recorded(root: &Path, text: &str) -> Vec<SampleRequest> {
    let mut files: Vec<_> = fs::read_dir(root.join("tests/fixtures/clients"))
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    files.sort_by_key(fs::DirEntry::file_name);
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file.path()).ok());
    let recordings = texts
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .filter(|it| it["method"] == "POST");
    recordings
        .filter_map(|recording| request(&recording, text))
        .collect()
}

fn request(recording: &Value, text: &str) -> Option<SampleRequest> {
    let target = recording["target"].as_str()?.split('?').next()?;
    let family = Family::ALL
        .into_iter()
        .find(|family| target.ends_with(family.protocol().path))?;
    let mut body = recording["body"].clone();
    fill(&mut body, text);
    Some(SampleRequest { family, body })
}

/// Puts N characters for every `<text:N>`.
fn fill(value: &mut Value, text: &str) {
    match value {
        Value::String(string) => {
            while let Some((before, after)) = string.split_once("<text:") {
                let Some((count, behind)) = after.split_once('>') else {
                    break;
                };
                *string = format!(
                    "{before}{}{behind}",
                    of_length(text, count.parse().unwrap_or(0))
                );
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| fill(value, text)),
        Value::Object(map) => map.values_mut().for_each(|value| fill(value, text)),
        _ => {}
    }
}

/// So many characters of a text, repeated if need be.
pub(crate) fn of_length(text: &str, characters: usize) -> String {
    text.chars().cycle().take(characters).collect()
}

/// A request with one message.
pub(crate) fn plain(family: Family, text: &str) -> SampleRequest {
    let body = match family {
        Family::Responses => json!({"model": "m", "input": text}),
        _ => {
            json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": text}]})
        }
    };
    SampleRequest { family, body }
}

/// The request with one more turn: a tool is called and gives `text`.
pub(crate) fn with_result(mut request: SampleRequest, text: &str) -> SampleRequest {
    let turns = match request.family {
        Family::Chat => vec![
            json!({"role": "assistant", "content": null, "tool_calls":
                [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"notes.txt\"}"}}]}),
            json!({"role": "tool", "tool_call_id": "call_1", "content": text}),
        ],
        Family::Responses => vec![
            json!({"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"notes.txt\"}"}),
            json!({"type": "function_call_output", "call_id": "call_1", "output": text}),
        ],
        Family::Messages => vec![
            json!({"role": "assistant", "content":
                [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "notes.txt"}}]}),
            json!({"role": "user", "content":
                [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": text}]}]}),
        ],
    };
    let list = if request.family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    if let Some(list) = request.body[list].as_array_mut() {
        list.extend(turns);
    }
    request
}
