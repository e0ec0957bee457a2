//! Answers recorded from real servers (`tests/fixtures/recorded/SOURCES`): each is translated to every other family, obeys the
//! laws, and produces the reviewed snapshot.

use std::collections::BTreeMap;
use std::path::PathBuf;

use farebox_protocol::translate::event::BlockKind;
use farebox_protocol::translate::{
    EncodeTarget, Memo, NeutralAnswer, Translator, answer_losses, read_answer, request,
    write_answer,
};
use farebox_protocol::{Family, UsageWish};
use serde_json::Value;

use super::help::*;
use super::laws::assert_one_end;

/// Name and text of each recorded answer of a family.
pub(crate) fn recordings(family: Family) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder().join(family.name()))
        .expect("the recordings")
        .map(|entry| entry.expect("a file").path())
        .map(|path| {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .chain(cassettes(family, "answers"))
        .collect();
    found.sort();
    found
}

/// Name and text of what was taken out of recorded exchanges: `requests` or `answers`.
pub(crate) fn cassettes(family: Family, what: &str) -> Vec<(String, String)> {
    let path = folder()
        .join("cassettes")
        .join(format!("{}.{what}.jsonl", family.name()));
    let text = std::fs::read_to_string(path).expect("a file of recordings");
    let of = |line: &str| {
        let recording: Value = serde_json::from_str(line).expect("JSON");
        let member = |name: &str| recording[name].as_str().expect("a text").to_owned();
        (member("name"), member("text"))
    };
    text.lines().map(of).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded")
}

/// The data of a recorded stream; `None` for a whole answer.
pub(crate) fn stream_of(family: Family, name: &str, text: &str) -> Option<Vec<String>> {
    if name.ends_with(".json") {
        return None;
    }
    if name.ends_with(".sse") {
        return Some(
            frames(text)
                .iter()
                .filter_map(|frame| Some(String::from_utf8_lossy(&frame.data()?).into_owned()))
                .collect(),
        );
    }
    let done = (family == Chat).then(|| "[DONE]".to_owned());
    Some(
        text.lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .chain(done)
            .collect(),
    )
}

/// What is told of a whole answer that other families have no words for.
fn lost_of_whole(upstream: Family, caller: Family, body: &str) -> String {
    told_losses(&answer_losses(caller, &read_answer(upstream, body.as_bytes())).header())
}

/// The same of a stream.
fn lost_of_stream(upstream: Family, caller: Family, data: &[String]) -> String {
    let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(b"{}"));
    data.iter()
        .for_each(|data| drop(translator.frame(&frame(data)).to_vec()));
    translator.end();
    told_losses(&translator.losses().header())
}

fn told_losses(header: &str) -> String {
    if header.is_empty() {
        String::new()
    } else {
        format!("  lost: {header}\n")
    }
}

/// One line on an answer of responses: each item with its text.
fn told(response: &Value) -> String {
    let item = |item: &Value| {
        let texts = |list: &Value| -> String {
            list.as_array()
                .into_iter()
                .flatten()
                .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
                .collect()
        };
        let text = match item["type"].as_str() {
            Some("reasoning") => texts(&item["summary"]),
            Some("message") => texts(&item["content"]),
            _ => format!(
                "{} {}",
                item["name"].as_str().unwrap_or_default(),
                item["arguments"].as_str().unwrap_or_default()
            ),
        };
        let shown: String = text.chars().take(70).collect();
        format!(
            "  {} [{}] {shown:?}\n",
            item["type"].as_str().unwrap_or_default(),
            text.chars().count()
        )
    };
    let items: String = response["output"]
        .as_array()
        .into_iter()
        .flatten()
        .map(item)
        .collect();
    format!(
        "{items}  {} {}\n",
        response["status"].as_str().unwrap_or("broken"),
        response["incomplete_details"]
    )
}

fn whole(upstream: Family, caller: Family, body: &str) -> Option<Value> {
    let answer = read_answer(upstream, body.as_bytes());
    if !matches!(answer.end, Some(Ok(_))) {
        return None;
    }
    let body = write_answer(
        caller,
        &answer,
        &Memo::default(),
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
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
                out.push_str(&format!(
                    "  chat: {} calls, {}\n",
                    calls,
                    last_of(&chat, "/choices/0/finish_reason")
                ));
                let stream = relay(Responses, Messages, Memo::default(), &data);
                assert_one_end(Messages, &stream);
                for (kind, text) in if stream.contains("event: error") {
                    Vec::new()
                } else {
                    blocks(&stream)
                } {
                    let shown: String = text.chars().take(70).collect();
                    out.push_str(&format!("  {kind} [{}] {shown:?}\n", text.chars().count()));
                }
                out.push_str(&format!(
                    "  messages: {}\n",
                    last_of(&stream, "/delta/stop_reason")
                ));
                out.push_str(&lost_of_stream(Responses, Messages, &data));
            }
            None => {
                let chat = whole(Responses, Chat, &text).unwrap_or_default();
                let calls = chat["choices"][0]["message"]["tool_calls"]
                    .as_array()
                    .map_or(0, Vec::len);
                out.push_str(&format!(
                    "  chat: {} calls, {}\n",
                    calls, chat["choices"][0]["finish_reason"]
                ));
                let answer = whole(Responses, Messages, &text).unwrap_or_default();
                for block in answer["content"].as_array().into_iter().flatten() {
                    let shown: String = block.to_string().chars().take(110).collect();
                    out.push_str(&format!("  {shown}\n"));
                }
                out.push_str(&format!("  messages: {}\n", answer["stop_reason"]));
                out.push_str(&lost_of_whole(Responses, Messages, &text));
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
            out.push_str(&format!(
                "  {}: {}\n",
                other.name(),
                stop.unwrap_or_default()
            ));
            out.push_str(&lost_of_whole(family, other, &text));
            continue;
        };
        let stream = relay(family, Responses, Memo::default(), &data);
        assert_one_end(Responses, &stream);
        out.push_str(&told(&last_of(&stream, "/response")));
        let stream = relay(family, other, Memo::default(), &data);
        assert_one_end(other, &stream);
        let stop = if other == Chat {
            "/choices/0/finish_reason"
        } else {
            "/delta/stop_reason"
        };
        out.push_str(&format!("  {}: {}\n", other.name(), last_of(&stream, stop)));
        out.push_str(&lost_of_stream(family, other, &data));
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
            let members: Vec<&str> = sent
                .as_object()
                .expect("an object")
                .keys()
                .map(String::as_str)
                .collect();
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

/// Requests out of recorded exchanges: histories with pictures, files, thinking, hosted and parallel tools. Each is sent to every other
/// family or refused by the name of what stands in the way, and is valid there.
#[test]
fn recorded_histories_are_translated_or_refused() {
    let mut out = String::new();
    for (from, to) in PAIRS {
        for (name, body) in cassettes(from, "requests") {
            if from.protocol().inspect(body.as_bytes(), 0).is_err() {
                continue;
            }
            let target = EncodeTarget {
                model: "up",
                abilities: &able(to),
            };
            match request(from, to, body.as_bytes(), &target) {
                Err(bad) => {
                    assert!(bad.param.is_some(), "{name}: {}", bad.message);
                    out.push_str(&format!(
                        "{name} to {to}: {}: {}\n",
                        bad.param.unwrap_or_default(),
                        bad.message
                    ));
                }
                Ok(done) => {
                    let sent: Value = serde_json::from_slice(&done.body).expect("JSON");
                    let seen = to.protocol().inspect(&done.body, 0);
                    assert!(seen.is_ok(), "{name} to {to}: {seen:?} of {sent}");
                    let said = &sent[if to == Responses { "input" } else { "messages" }];
                    let turns = said.as_array().into_iter().flatten();
                    let turns: Vec<&str> = turns
                        .map(|turn| {
                            turn["type"]
                                .as_str()
                                .or(turn["role"].as_str())
                                .unwrap_or_default()
                        })
                        .collect();
                    out.push_str(&format!("{name} to {to}: {}", turns.join(" ")));
                    let lost = done.losses.header();
                    out.push_str(&if lost.is_empty() {
                        "\n".to_owned()
                    } else {
                        format!("; lost: {lost}\n")
                    });
                }
            }
        }
    }
    insta::assert_snapshot!(out);
}

/// The words of an answer, by kind of block, without white space: families join neighbouring blocks in their own ways.
fn words(answer: &NeutralAnswer) -> BTreeMap<String, String> {
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    for block in &answer.blocks {
        let kind = match &block.kind {
            BlockKind::Call { name, .. } => format!("call {name}"),
            // Native answers say refusals as text.
            BlockKind::Text | BlockKind::Refusal => "text".to_owned(),
            BlockKind::Thinking => "thinking".to_owned(),
        };
        let text: Value =
            serde_json::from_str(&format!("\"{}\"", block.text)).expect("escaped text");
        let text = text.as_str().unwrap_or_default();
        let text =
            serde_json::from_str(text).map_or(text.to_owned(), |json: Value| json.to_string());
        out.entry(kind).or_default().extend(text.split_whitespace());
    }
    out
}

#[test]
fn no_word_of_a_recorded_answer_is_lost() {
    for upstream in Family::ALL {
        for (name, text) in recordings(upstream) {
            let others = Family::ALL.into_iter().filter(|caller| *caller != upstream);
            let Some(data) = stream_of(upstream, &name, &text) else {
                let answer = read_answer(upstream, text.as_bytes());
                for caller in others.filter(|_| matches!(answer.end, Some(Ok(_)))) {
                    let body = write_answer(
                        caller,
                        &answer,
                        &Memo::default(),
                        &wish(b"{}"),
                        &USAGE,
                        UsageWish::default(),
                    );
                    assert_eq!(
                        words(&read_answer(caller, &body)),
                        words(&answer),
                        "{name} for {caller}"
                    );
                }
                continue;
            };
            let response = |upstream: Family, data: &[String]| {
                let response = last_of(
                    &relay(upstream, Responses, Memo::default(), data),
                    "/response",
                );
                words(&read_answer(Responses, response.to_string().as_bytes()))
            };
            let mut seen = Vec::new();
            for caller in others {
                let stream = relay(upstream, caller, Memo::default(), &data);
                seen.push(if caller == Responses {
                    response(upstream, &data)
                } else {
                    response(caller, &data_of(&stream))
                });
            }
            assert_eq!(seen[0], seen[1], "{name}");
        }
    }
}
