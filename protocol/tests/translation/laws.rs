//! Laws that hold for every input: no panic, one end, blocks in order, streams fold to whole answers, prefixes stay stable.

use bytes::Bytes;
use farebox_protocol::translate::{Memo, Translator, cut_marks, read_answer, write_answer};
use farebox_protocol::{Family, Frame, UsageWish};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::help::*;
use super::made::*;

fn whole(upstream: Family, caller: Family, body: &[u8]) -> Value {
    let answer = read_answer(upstream, body);
    let request = asking(caller, &json!({})).to_string();
    let asked = UsageWish {
        chunk: true,
        cost: None,
    };
    serde_json::from_slice(&write_answer(
        caller,
        &answer,
        &Memo::default(),
        &wish(request.as_bytes()),
        &USAGE,
        asked,
    ))
    .expect("JSON")
}

/// One end, and it is last.
pub(crate) fn assert_one_end(caller: Family, stream: &str) {
    let all = events(stream);
    let is_end = |event: &Value| match caller {
        Chat => *event == "[DONE]" || event.get("error").is_some(),
        Messages => event["type"] == "message_stop" || event["type"] == "error",
        Responses => [
            "response.completed",
            "response.incomplete",
            "response.failed",
        ]
        .contains(&event["type"].as_str().unwrap_or_default()),
    };
    assert_eq!(
        all.iter().filter(|event| is_end(event)).count(),
        1,
        "{stream}"
    );
    assert!(all.last().is_some_and(is_end), "{stream}");
    match caller {
        Messages if !stream.contains("event: error") => drop(blocks(stream)),
        Responses => assert_items(&all),
        _ => {}
    }
}

/// Items never overlap, each is numbered and done unless the answer broke, and events are numbered.
fn assert_items(all: &[Value]) {
    let mut open = None;
    let mut next = 0;
    for (at, event) in all.iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
        let index = event["output_index"].as_u64();
        match event["type"].as_str().expect("a type") {
            "response.output_item.added" => {
                assert_eq!((open, index), (None, Some(next)));
                open = index;
                next += 1;
            }
            "response.output_item.done" => {
                assert_eq!(index, open);
                open = None;
            }
            "response.completed" | "response.incomplete" => {
                assert_eq!(open, None);
                assert_eq!(
                    event["response"]["output"].as_array().map(Vec::len),
                    Some(usize::try_from(next).expect("small"))
                );
            }
            _ => assert!(index.is_none() || index == open),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_panics(value in odd_json(), turns in prop::collection::vec(odd_json(), 0..6), able_target in any::<bool>()) {
        for (from, to) in PAIRS {
            let abilities = if able_target { able(to) } else { farebox_protocol::translate::Abilities::careful(to) };
            let list = if from == Responses { "input" } else { "messages" };
            let bodies = [
                json!({"model": "m", "max_tokens": 9, list: turns, "tools": value, "system": value, "text": value, "tool_choice": value}),
                json!({"model": "m", "max_tokens": 9, list: value, "tools": turns, "thinking": value, "response_format": value}),
                value.clone(),
            ];
            for body in bodies {
                if let Ok(translated) = translated(from, to, &abilities, &body) {
                    let sent: Value = serde_json::from_slice(&translated.body).expect("JSON is sent");
                    let said = if to == Responses { &sent["input"] } else { &sent["messages"] };
                    let last = said.as_array().and_then(|list| list.last()).expect("something is said");
                    let roles = ["user", "tool", "system", "developer"];
                    let ends = roles.iter().any(|role| last["role"] == *role);
                    prop_assert!(ends || to == Responses && last["type"].as_str().is_some_and(|kind| kind.ends_with("_output")));
                    prop_assert!(translated.losses.header().len() <= 1_024);
                }
            }
            let _ = cut_marks(Messages, json!({list: turns}).to_string().as_bytes(), true);
        }
    }

    #[test]
    fn what_is_carried_survives_a_round_trip(turns in prop::collection::vec(said(), 0..6)) {
        let body = native_talk(&turns);
        let there = sent(Messages, Chat, &body);
        prop_assert_eq!(&sent(Chat, Messages, &there)["messages"], &body["messages"]);
        let items = item_talk(&turns);
        let native = sent(Responses, Messages, &items);
        prop_assert_eq!(&native["messages"], &body["messages"]);
        prop_assert_eq!(&sent(Messages, Chat, &native)["messages"], &sent(Responses, Chat, &items)["messages"]);
        // By way of responses and back.
        let there = sent(Messages, Responses, &body);
        prop_assert_eq!(&sent(Responses, Messages, &there)["messages"], &body["messages"]);
        let chat = sent(Messages, Chat, &body);
        prop_assert_eq!(&sent(Responses, Chat, &sent(Chat, Responses, &chat))["messages"], &chat["messages"]);
    }

    #[test]
    fn an_older_conversation_is_a_prefix(turns in prop::collection::vec(said(), 1..7)) {
        for from in [Messages, Responses] {
            let talk = if from == Messages { native_talk } else { item_talk };
            for (_, to) in PAIRS.into_iter().filter(|(family, _)| *family == from) {
                let new = messages_of(&sent(from, to, &talk(&turns)));
                for length in 0..turns.len() {
                    let old = messages_of(&sent(from, to, &talk(&turns[..length])));
                    prop_assert_eq!(&old[..], &new[..old.len()]);
                }
            }
        }
        let chat: Value = sent(Messages, Chat, &native_talk(&turns));
        let list = chat["messages"].as_array().expect("messages");
        let whole = messages_of(&sent(Chat, Messages, &talking(Chat, json!(list))));
        let items = messages_of(&sent(Chat, Responses, &talking(Chat, json!(list))));
        let user_ends = (1..list.len()).filter(|at| list[at - 1]["role"] == "user");
        for at in user_ends {
            let old = messages_of(&sent(Chat, Messages, &talking(Chat, json!(list[..at]))));
            prop_assert_eq!(&old[..], &whole[..old.len()]);
            let old = messages_of(&sent(Chat, Responses, &talking(Chat, json!(list[..at]))));
            prop_assert_eq!(&old[..], &items[..old.len()]);
        }
    }

    #[test]
    fn a_stream_folds_to_the_whole_answer(answer in answer(), length in 1_usize..9) {
        let (stream, body) = native_answer(&answer, length);
        let body = body.to_string();
        let shown = relay(Messages, Responses, Memo::default(), &stream);
        assert_one_end(Responses, &shown);
        prop_assert_eq!(&last_of(&shown, "/response"), &whole(Messages, Responses, body.as_bytes()));
        // The same by way of chat, whose stream and whole answer are read again.
        let chat_stream = relay(Messages, Chat, Memo::default(), &stream);
        assert_one_end(Chat, &chat_stream);
        let chat_whole = whole(Messages, Chat, body.as_bytes()).to_string();
        let calls = |response: &Value| -> Vec<Value> {
            response["output"].as_array().expect("output").iter().filter(|item| item["type"] == "function_call").map(|item| item["arguments"].clone()).collect()
        };
        let texts = |response: &Value, kind: &str| -> String {
            let parts = response["output"].as_array().expect("output").iter();
            parts.flat_map(|item| item[kind].as_array().into_iter().flatten()).filter_map(|part| part["text"].as_str()).collect()
        };
        let streamed = last_of(&relay(Chat, Responses, Memo::default(), &data_of(&chat_stream)), "/response");
        let read = whole(Chat, Responses, chat_whole.as_bytes());
        prop_assert_eq!(calls(&streamed), calls(&read));
        prop_assert_eq!(texts(&streamed, "content"), texts(&read, "content"));
        prop_assert_eq!(texts(&streamed, "summary"), texts(&read, "summary"));
        // By way of responses nothing is lost at all: block by block what the upstream said.
        let back = relay(Responses, Messages, Memo::default(), &data_of(&shown));
        assert_one_end(Messages, &back);
        prop_assert_eq!(blocks(&back), said_by(&answer));
        let read = whole(Responses, Messages, last_of(&shown, "/response").to_string().as_bytes());
        prop_assert_eq!(read["content"].as_array().map(Vec::len), Some(answer.len()));
        // And back to messages: block by block what the upstream said.
        let native_stream = relay(Chat, Messages, Memo::default(), &data_of(&chat_stream));
        assert_one_end(Messages, &native_stream);
    }

    /// A frame that only brings another text is not decoded; a comment between two frames has each decoded.
    #[test]
    fn frames_that_repeat_each_other_mean_the_same_as_decoded_ones(
        answer in answer(), length in 1_usize..4, twice in any::<bool>(), upstream in prop::sample::select(&Family::ALL[..]),
    ) {
        let (native, _) = native_answer(&answer, length);
        let mut data = match upstream {
            Messages => native,
            other => data_of(&relay(Messages, other, Memo::default(), &native)),
        };
        if twice {
            data = data.into_iter().flat_map(|data| [data.clone(), data]).collect();
        }
        for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
            let run = |comments: bool| {
                let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(b"{}"));
                let mut out = Vec::new();
                for data in &data {
                    out.extend_from_slice(translator.frame(&frame(data)));
                    if comments {
                        translator.frame(&Frame::new(Bytes::from_static(b": comment\n\n")));
                    }
                }
                out.extend_from_slice(translator.end());
                out.extend(translator.finish(&USAGE, UsageWish::default()));
                String::from_utf8(out).expect("UTF-8")
            };
            prop_assert_eq!(run(false), run(true));
        }
    }

    /// However a stream is cut on the way, it means the same.
    #[test]
    fn a_stream_may_be_cut_anywhere(answer in answer(), cuts in prop::collection::vec(1_usize..90, 1..40)) {
        use farebox_protocol::FrameReader;
        let (native, _) = native_answer(&answer, 3);
        for upstream in Family::ALL {
            let stream = if upstream == Messages {
                native.iter().map(|data| format!("data: {data}\n\n")).collect()
            } else {
                relay(Messages, upstream, Memo::default(), &native)
            };
            for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
                let run = |cuts: &[usize]| {
                    let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(b"{}"));
                    let (mut reader, mut rest, mut out) = (FrameReader::new(), stream.as_bytes(), Vec::new());
                    let mut cuts = cuts.iter().cycle();
                    while !rest.is_empty() {
                        let (piece, behind) = rest.split_at((*cuts.next().expect("a cut")).min(rest.len()));
                        rest = behind;
                        reader.push(Bytes::copy_from_slice(piece));
                        while let Some(frame) = reader.next_frame().expect("small frames") {
                            out.extend_from_slice(translator.frame(&frame));
                        }
                    }
                    out.extend_from_slice(translator.end());
                    out.extend(translator.finish(&USAGE, UsageWish::default()));
                    String::from_utf8(out).expect("UTF-8")
                };
                prop_assert_eq!(run(&cuts), run(&[usize::MAX]));
            }
        }
    }

    #[test]
    fn any_events_in_any_order_have_one_end(
        native_events in prop::collection::vec((0_usize..9, 0_u64..3), 0..24),
        chat_deltas in prop::collection::vec((0_usize..9, 0_u64..3), 0..24),
        items in prop::collection::vec((0_usize..10, 0_u64..3), 0..24),
        odd in prop::collection::vec(odd_json(), 0..4),
    ) {
        let native: Vec<String> = native_events.iter().map(|(kind, index)| native_event(*kind, *index).to_string()).chain(odd.iter().map(Value::to_string)).collect();
        let chat: Vec<String> = chat_deltas.iter().map(|(kind, index)| chat_event(*kind, *index).to_string()).chain(odd.iter().map(Value::to_string)).collect();
        let items: Vec<String> = items.iter().map(|(kind, index)| item_event(*kind, *index).to_string()).chain(odd.iter().map(Value::to_string)).collect();
        for (upstream, data) in [(Messages, &native), (Chat, &chat), (Responses, &items)] {
            for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
                assert_one_end(caller, &relay(upstream, caller, Memo::default(), data));
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (stream, whole) = native_answer(&[Piece::Text("a\"b".into()), Piece::Call("f".into(), "x".into())], 2);
        let mut damaged: Vec<Vec<u8>> = stream.iter().map(|data| format!("data: {data}\n\n").into_bytes()).collect();
        let place = at.index(damaged.len());
        let inside = at.index(damaged[place].len());
        damaged[place][inside] = byte;
        damaged.push(bytes.clone());
        for upstream in Family::ALL {
            for caller in Family::ALL.into_iter().filter(|caller| *caller != upstream) {
                let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(&bytes));
                for raw in &damaged {
                    translator.frame(&Frame::new(Bytes::from(raw.clone())));
                }
                translator.end();
                translator.fail(&broken());
            }
            let mut body = whole.to_string().into_bytes();
            let inside = at.index(body.len());
            body[inside] = byte;
            let _ = read_answer(upstream, &body);
            let _ = read_answer(upstream, &bytes);
        }
        for family in Family::ALL {
            for (from, to) in PAIRS {
                let target = farebox_protocol::translate::EncodeTarget { model: "m", abilities: &able(family) };
                let _ = farebox_protocol::translate::request(from, to, &bytes, &target);
            }
        }
        let _ = cut_marks(Messages, &bytes, true);
    }
}
