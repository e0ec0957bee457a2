//! A whole answer as the stream that was asked for says what the answer says: to readers of its own family, and in every other one.

use farebox_protocol::translate::{Memo, Translator, read_answer, write_answer};
use farebox_protocol::{Family, UsageWish};
use serde_json::{Value, json};

use super::help::*;
use super::recorded::recordings;

/// The recorded whole answers of a family that are complete, and the frames of each as a stream.
fn unfolded(family: Family) -> Vec<(String, Value, Vec<farebox_protocol::Frame>)> {
    let whole = recordings(family).into_iter();
    let whole = whole.filter(|(name, text)| {
        let facts = family.protocol().read_answer(text.as_bytes());
        name.ends_with(".json")
            && facts.is_some_and(|facts| {
                facts.complete && facts.stop.is_some() && facts.error.is_none()
            })
    });
    let each = whole.map(|(name, text)| {
        let stream = family.protocol().as_stream(text.as_bytes());
        assert!(stream.is_some(), "{name} becomes no stream");
        let stream = String::from_utf8(stream.expect("a stream")).expect("text");
        let body = serde_json::from_str(&text).expect("JSON");
        (name, body, frames(&stream))
    });
    each.collect()
}

fn data(frames: &[farebox_protocol::Frame]) -> Vec<Value> {
    let data = frames.iter().filter_map(farebox_protocol::Frame::data);
    data.filter_map(|data| serde_json::from_slice(&data).ok())
        .collect()
}

#[test]
fn its_reader_counts_and_stops_as_for_the_whole_answer() {
    for family in Family::ALL {
        let all = unfolded(family);
        assert!(all.len() > 5, "{family}: {}", all.len());
        for (name, body, frames) in all {
            let whole = family.protocol().read_answer(body.to_string().as_bytes());
            let whole = whole.expect("an answer");
            let mut reader = family.protocol().reader();
            let (mut stop, mut ended, mut shown) = (None, false, 0);
            for frame in &frames {
                assert!(!ended, "{name}: a frame behind the end");
                let facts = reader.read(frame);
                assert_eq!(facts.error, None, "{name}");
                stop = stop.or(facts.stop);
                ended |= facts.end;
                shown += facts.shown.bytes();
            }
            assert!(ended, "{name}");
            assert_eq!(stop.is_some(), whole.stop.is_some(), "{name}");
            assert_eq!(
                reader.usage().reading(false),
                whole.usage.reading(false),
                "{name}"
            );
            // A small item that has no deltas shows nothing in a stream.
            assert!(shown > 0 || whole.shown.bytes() <= 256, "{name}");
        }
    }
}

#[test]
fn it_is_the_same_answer_in_every_other_family() {
    for (caller, upstream) in PAIRS {
        for (name, body, frames) in unfolded(upstream) {
            let body = body.to_string();
            let asked = UsageWish::default();
            let (memo, wish) = (Memo::default(), wish(b"{}"));
            let answer = read_answer(upstream, body.as_bytes());
            let whole = write_answer(caller, &answer, &memo, &wish, &USAGE, asked);
            let mut translator = Translator::folding(upstream, caller, memo, &wish);
            for frame in &frames {
                translator.frame(frame);
            }
            translator.end();
            let streamed = translator.finish(&USAGE, asked);
            assert_eq!(
                String::from_utf8_lossy(&streamed),
                String::from_utf8_lossy(&whole),
                "{name} for {caller}"
            );
        }
    }
}

#[test]
fn nothing_of_a_responses_answer_is_lost_to_its_own_clients() {
    for (name, body, frames) in unfolded(Responses) {
        let events = data(&frames);
        assert_eq!(events.last().expect("an end")["response"], body, "{name}");
        let done = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done");
        let items: Vec<Value> = done.map(|event| event["item"].clone()).collect();
        assert_eq!(json!(items), body["output"], "{name}");
    }
}

#[test]
fn nothing_of_a_messages_answer_is_lost_to_its_own_clients() {
    for (name, body, frames) in unfolded(Messages) {
        let mut content: Vec<Value> = Vec::new();
        let mut input = String::new();
        for event in data(&frames) {
            content.extend(event.get("content_block").cloned());
            let delta = &event["delta"];
            if let (Some(last), "content_block_delta") =
                (content.last_mut(), event["type"].as_str().expect("a type"))
            {
                for name in ["text", "thinking", "signature"] {
                    if let Some(text) = delta[name].as_str() {
                        last[name] =
                            json!(last[name].as_str().unwrap_or_default().to_owned() + text);
                    }
                }
                if delta["type"] == "citations_delta" {
                    let cited = last["citations"].as_array_mut().expect("a list");
                    cited.push(delta["citation"].clone());
                }
                input.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            if event["type"] == "content_block_stop" && !input.is_empty() {
                let last = content.last_mut().expect("a block");
                last["input"] = serde_json::from_str(&std::mem::take(&mut input)).expect("JSON");
            }
        }
        assert_eq!(json!(content), body["content"], "{name}");
    }
}

#[test]
fn nothing_of_a_chat_answer_is_lost_to_its_own_clients() {
    for (name, body, frames) in unfolded(Chat) {
        let chunks = data(&frames);
        let mut message = chunks[0]["choices"][0]["delta"].clone();
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            call.as_object_mut().expect("a call").remove("index");
        }
        let mut whole = body["choices"][0]["message"].clone();
        if let Some(text) = body["choices"][0].get("text") {
            whole = json!({"role": "assistant", "content": text});
        }
        for call in whole["tool_calls"].as_array_mut().into_iter().flatten() {
            call.as_object_mut().expect("a call").remove("index");
        }
        assert_eq!(message, whole, "{name}");
        let finish = &chunks[1]["choices"][0]["finish_reason"];
        assert_eq!(finish, &body["choices"][0]["finish_reason"], "{name}");
        let usage = chunks.last().expect("an end");
        assert_eq!(usage["usage"], body["usage"], "{name}");
    }
}
