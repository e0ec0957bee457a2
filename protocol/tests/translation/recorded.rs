//! Answers recorded from real servers (`tests/fixtures/recorded/SOURCES`): each is translated to every other family, obeys the
//! laws, and gives what was reviewed once.

use std::path::PathBuf;

use farebox_protocol::translate::{Memo, read_answer, write_answer};
use farebox_protocol::{Family, UsageWish};
use serde_json::Value;

use super::help::*;
use super::laws::assert_one_end;

/// Name and text of each recording of a family.
pub(crate) fn recordings(family: Family) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded").join(family.name());
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the recordings")
        .map(|entry| entry.expect("a file").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect();
    found.sort();
    found
}

/// The data of a recorded stream; `None` for a whole answer.
pub(crate) fn stream_of(family: Family, name: &str, text: &str) -> Option<Vec<String>> {
    if name.ends_with(".json") {
        return None;
    }
    if name.ends_with(".sse") {
        return Some(
            frames(text).iter().filter_map(|frame| Some(String::from_utf8_lossy(&frame.data()?).into_owned())).collect(),
        );
    }
    let done = (family == Chat).then(|| "[DONE]".to_owned());
    Some(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).chain(done).collect())
}

/// One line on an answer of responses: each item with its text.
fn told(response: &Value) -> String {
    let item = |item: &Value| {
        let texts = |list: &Value| -> String {
            list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str().or(part["refusal"].as_str())).collect()
        };
        let text = match item["type"].as_str() {
            Some("reasoning") => texts(&item["summary"]),
            Some("message") => texts(&item["content"]),
            _ => format!("{} {}", item["name"].as_str().unwrap_or_default(), item["arguments"].as_str().unwrap_or_default()),
        };
        let shown: String = text.chars().take(70).collect();
        format!("  {} [{}] {shown:?}\n", item["type"].as_str().unwrap_or_default(), text.chars().count())
    };
    let items: String = response["output"].as_array().into_iter().flatten().map(item).collect();
    format!("{items}  {} {}\n", response["status"].as_str().unwrap_or("broken"), response["incomplete_details"])
}

fn whole(upstream: Family, caller: Family, body: &str) -> Option<Value> {
    let answer = read_answer(upstream, body.as_bytes());
    if !matches!(answer.end, Some(Ok(_))) {
        return None;
    }
    let body = write_answer(caller, &answer, &Memo::default(), &wish(b"{}"), &USAGE, UsageWish::default());
    Some(serde_json::from_slice(&body).expect("JSON"))
}

fn summary_of_responses() -> String {
    let mut out = String::new();
    for (name, text) in recordings(Responses) {
        out.push_str(&format!("{name}\n"));
        match stream_of(Responses, &name, &text) {
            Some(data) => {
                let chat = relay(Responses, Chat, Memo::default(), &data);
                assert_one_end(Chat, &chat);
                let calls = chat.matches("\"name\":").count();
                out.push_str(&format!("  chat: {} calls, {}\n", calls, last_of(&chat, "/choices/0/finish_reason")));
                let stream = relay(Responses, Messages, Memo::default(), &data);
                assert_one_end(Messages, &stream);
                for (kind, text) in if stream.contains("event: error") { Vec::new() } else { blocks(&stream) } {
                    let shown: String = text.chars().take(70).collect();
                    out.push_str(&format!("  {kind} [{}] {shown:?}\n", text.chars().count()));
                }
                out.push_str(&format!("  messages: {}\n", last_of(&stream, "/delta/stop_reason")));
            }
            None => {
                let chat = whole(Responses, Chat, &text).unwrap_or_default();
                let calls = chat["choices"][0]["message"]["tool_calls"].as_array().map_or(0, Vec::len);
                out.push_str(&format!("  chat: {} calls, {}\n", calls, chat["choices"][0]["finish_reason"]));
                let answer = whole(Responses, Messages, &text).unwrap_or_default();
                for block in answer["content"].as_array().into_iter().flatten() {
                    let shown: String = block.to_string().chars().take(110).collect();
                    out.push_str(&format!("  {shown}\n"));
                }
                out.push_str(&format!("  messages: {}\n", answer["stop_reason"]));
            }
        }
    }
    out
}

fn summary(family: Family) -> String {
    let mut out = String::new();
    let other = if family == Chat { Messages } else { Chat };
    for (name, text) in recordings(family) {
        out.push_str(&format!("{name}\n"));
        let Some(data) = stream_of(family, &name, &text) else {
            let stop = whole(family, other, &text).map(|answer| match other {
                Chat => answer["choices"][0]["finish_reason"].clone(),
                _ => answer["stop_reason"].clone(),
            });
            let answer = whole(family, Responses, &text);
            out.push_str(&answer.map_or("  an error\n".to_owned(), |answer| told(&answer)));
            out.push_str(&format!("  {}: {}\n", other.name(), stop.unwrap_or_default()));
            continue;
        };
        let stream = relay(family, Responses, Memo::default(), &data);
        assert_one_end(Responses, &stream);
        out.push_str(&told(&last_of(&stream, "/response")));
        let stream = relay(family, other, Memo::default(), &data);
        assert_one_end(other, &stream);
        let stop = if other == Chat { "/choices/0/finish_reason" } else { "/delta/stop_reason" };
        out.push_str(&format!("  {}: {}\n", other.name(), last_of(&stream, stop)));
    }
    out
}

#[test]
fn recorded_chat_answers_are_translated() {
    insta::assert_snapshot!(summary(Chat));
}

#[test]
fn recorded_messages_answers_are_translated() {
    insta::assert_snapshot!(summary(Messages));
}

#[test]
fn recorded_responses_answers_are_translated() {
    insta::assert_snapshot!(summary_of_responses());
}

/// The requests of real clients, which `tests/requests.rs` reads too.
#[test]
fn recorded_requests_are_translated() {
    let mut out = String::new();
    for (from, to) in PAIRS {
        for (name, body) in super::support::requests(from) {
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let (sent, lost) = sent_to(from, to, &able(to), &body);
            let count = |name: &str| sent[name].as_array().map_or(0, Vec::len);
            let said = if to == Responses { "input" } else { "messages" };
            let members: Vec<&str> = sent.as_object().expect("an object").keys().map(String::as_str).collect();
            out.push_str(&format!(
                "{name} to {}\n  {} messages, {} tools\n  {}\n  lost: {lost}\n",
                to.name(),
                count(said),
                count("tools"),
                members.join(" ")
            ));
        }
    }
    insta::assert_snapshot!(out);
}
