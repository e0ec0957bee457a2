//! The vendors' published schemas validate every frame and every whole answer that is written (`tests/fixtures/schemas/SOURCES`).
//! Members that a vendor's document does not name are also faults, except for `KNOWN`.

use std::collections::BTreeMap;

use farebox_protocol::translate::{Memo, read_answer, write_answer};
use farebox_protocol::{Family, SyntheticAnswer, SyntheticStop, ToolCall, UsageWish};
use serde_json::Value;

use super::help::*;
use super::judge::Judge;
use super::recorded::{recordings, stream_of};

/// What differs on purpose: a part of the fault, and why.
const KNOWN: [(&str, &str); 4] = [
    (
        "reasoning_content: no such member",
        "OpenAI shows no reasoning in chat; this is the name other servers gave it",
    ),
    (
        "message_delta /usage/cache_creation: no such member",
        "the split by lifetime is not known yet when message_start is sent",
    ),
    (
        "message_delta /usage/service_tier: no such member",
        "one form of usage serves whole answers and streams",
    ),
    (
        "response.failed /response/error",
        "the error of a broken stream is Farebox's own in every family",
    ),
];

/// Who judges whole answers and events of a family.
fn judges(family: Family, event: bool) -> Vec<Judge> {
    match (family, event) {
        (Chat, false) => vec![Judge::new("openai.json", "CreateChatCompletionResponse")],
        (Chat, true) => vec![Judge::new(
            "openai.json",
            "CreateChatCompletionStreamResponse",
        )],
        (Responses, false) => vec![
            Judge::new("openai.json", "Response"),
            Judge::new("open-responses.json", "Response"),
        ],
        (Responses, true) => vec![
            Judge::new("openai.json", "ResponseStreamEvent"),
            Judge::new("open-responses.json", "Event"),
        ],
        (Messages, false) => vec![Judge::new("anthropic.json", "Message")],
        (Messages, true) => vec![Judge::new("anthropic.json", "Event")],
    }
}

/// Faults by what they say, with the place where each was seen first.
#[derive(Default)]
struct Faults(BTreeMap<String, String>);

impl Faults {
    fn judge(&mut self, place: &str, judges: &[Judge], document: &Value) {
        for judge in judges {
            for fault in judge.faults(document) {
                let kind = document["type"]
                    .as_str()
                    .or(document["object"].as_str())
                    .unwrap_or_default();
                let fault: String = format!("{} {kind} {fault}", judge.file)
                    .chars()
                    .take(300)
                    .collect();
                if KNOWN.iter().any(|(known, _)| fault.contains(known)) {
                    continue;
                }
                self.0
                    .entry(fault)
                    .or_insert_with(|| format!("{place}: {document}").chars().take(700).collect());
            }
        }
    }
}

fn streamed(faults: &mut Faults, place: &str, judges: &[Judge], stream: &str) {
    for event in events(stream) {
        // A ping and an error are no part of the published unions of messages; chat ends with a word.
        if event != "[DONE]" && event.get("error").is_none() && event["type"] != "ping" {
            faults.judge(place, judges, &event);
        }
    }
}

#[test]
fn every_translated_answer_is_what_its_family_publishes() {
    let mut faults = Faults::default();
    let mut count = 0;
    for caller in Family::ALL {
        let (whole, event) = (judges(caller, false), judges(caller, true));
        for upstream in Family::ALL.into_iter().filter(|family| *family != caller) {
            for (name, text) in recordings(upstream) {
                let place = format!("{name} for {}", caller.name());
                count += 1;
                if let Some(data) = stream_of(upstream, &name, &text) {
                    streamed(
                        &mut faults,
                        &place,
                        &event,
                        &relay(upstream, caller, Memo::default(), &data),
                    );
                    continue;
                }
                let answer = read_answer(upstream, text.as_bytes());
                if matches!(answer.end, Some(Ok(_))) {
                    let body = write_answer(
                        caller,
                        &answer,
                        &Memo::default(),
                        &wish(b"{}"),
                        &USAGE,
                        UsageWish::default(),
                    );
                    faults.judge(
                        &place,
                        &whole,
                        &serde_json::from_slice(&body).expect("JSON"),
                    );
                }
            }
        }
    }
    assert!(count > 100, "{count} recordings");
    assert!(faults.0.is_empty(), "{:#?}", faults.0);
}

#[test]
fn every_simulated_answer_is_what_its_family_publishes() {
    let mut faults = Faults::default();
    let call = ToolCall {
        id: "1".to_owned(),
        name: "weather".to_owned(),
        arguments: "{\"city\":\"Bonn\"}".to_owned(),
    };
    for family in Family::ALL {
        let (whole, event) = (judges(family, false), judges(family, true));
        for (pieces, tool, stop) in [
            (
                vec!["one ".to_owned(), "two".to_owned()],
                None,
                SyntheticStop::Stop,
            ),
            (vec!["one".to_owned()], None, SyntheticStop::Length),
            (Vec::new(), Some(call.clone()), SyntheticStop::Tool),
        ] {
            let (id, model) = ("1".to_owned(), "slug".to_owned());
            let draft = SyntheticAnswer {
                id,
                model,
                created: 7,
                pieces,
                tool,
                usage: Some(USAGE),
                stop,
                stream_usage: true,
                classes: farebox_protocol::Classes::STANDARD,
            };
            let protocol = family.protocol();
            faults.judge(
                "simulated",
                &whole,
                &serde_json::from_slice(&protocol.write_answer(&draft)).expect("JSON"),
            );
            let frames: Vec<u8> = protocol.write_frames(&draft).concat();
            streamed(
                &mut faults,
                "simulated",
                &event,
                &String::from_utf8(frames).expect("UTF-8"),
            );
        }
    }
    assert!(faults.0.is_empty(), "{:#?}", faults.0);
}
