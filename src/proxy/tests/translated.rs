//! Requests for a provider of another family: memory for their second form, keep-alives, and what an answer loses on its way back.

use serde_json::{Value, json};

use super::*;
use crate::upstream::Recorded;
use farebox_door::byte_room::{ByteRoom, Holder};

/// Every direction: the caller's family, then the provider's.
const DIRECTIONS: [(Family, Family); 6] = [
    (Family::Chat, Family::Responses),
    (Family::Chat, Family::Messages),
    (Family::Responses, Family::Chat),
    (Family::Responses, Family::Messages),
    (Family::Messages, Family::Chat),
    (Family::Messages, Family::Responses),
];

fn data(event: &Value) -> Bytes {
    Bytes::from(format!("data: {event}\n\n"))
}

/// An answer of a provider: its first event, then the others, which say `a` and end.
fn answer(family: Family) -> (Bytes, Vec<Bytes>) {
    match family {
        Family::Chat => {
            let chunk = |delta: Value, finish: Value| {
                data(
                    &json!({"id": "c", "model": "sim", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
                )
            };
            let usage = json!({"id": "c", "model": "sim", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}});
            let end = Bytes::from_static(b"data: [DONE]\n\n");
            let rest = vec![
                chunk(json!({"content": "a"}), Value::Null),
                chunk(json!({}), json!("stop")),
                data(&usage),
                end,
            ];
            (chunk(json!({"role": "assistant"}), Value::Null), rest)
        }
        Family::Responses => {
            let usage = json!({"input_tokens": 9, "output_tokens": 1, "total_tokens": 10});
            let end = json!({"id": "r", "object": "response", "status": "completed", "model": "sim", "output": [], "usage": usage});
            let begun = json!({"id": "r", "object": "response", "status": "in_progress", "model": "sim", "output": []});
            let rest = [
                json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "a"}),
                json!({"type": "response.completed", "response": end}),
            ];
            (
                data(&json!({"type": "response.created", "response": begun})),
                rest.iter().map(data).collect(),
            )
        }
        Family::Messages => {
            let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "sim", "content": [],
                "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}});
            let block = |kind: &str, more: Value| {
                let mut event = json!({"type": format!("content_block_{kind}"), "index": 0});
                event
                    .as_object_mut()
                    .unwrap()
                    .extend(more.as_object().unwrap().clone());
                data(&event)
            };
            let citation = json!({"type": "web_search_result_location", "url": "https://a.example", "cited_text": "a"});
            let rest = vec![
                block(
                    "start",
                    json!({"content_block": {"type": "text", "text": ""}}),
                ),
                block(
                    "delta",
                    json!({"delta": {"type": "text_delta", "text": "a"}}),
                ),
                block(
                    "delta",
                    json!({"delta": {"type": "citations_delta", "citation": citation}}),
                ),
                block("stop", json!({})),
                data(
                    &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
                ),
                data(&json!({"type": "message_stop"})),
            ];
            (
                data(&json!({"type": "message_start", "message": message})),
                rest,
            )
        }
    }
}

/// The provider begins, thinks silently for this long and then answers.
fn after_silence(family: Family, silence: Duration) -> Recorded {
    let (first, rest) = answer(family);
    let mut pieces = vec![(Duration::ZERO, first)];
    pieces.extend(
        rest.into_iter()
            .enumerate()
            .map(|(at, piece)| (if at == 0 { silence } else { Duration::ZERO }, piece)),
    );
    Recorded {
        pieces,
        broken: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_model_thinks_in_silence_gets_signs_of_life() {
    for (caller, target) in DIRECTIONS {
        let house = House::speaking(target);
        house
            .proxy
            .upstreams
            .play(after_silence(target, Duration::from_secs(50)));
        let key = house.key("5").await;
        let shown = read(stream(
            house.ask(&key, caller, "quick", 10, Some(1_000)).await,
        ))
        .await;
        let sign = if caller == Family::Messages {
            "event: ping\ndata: {\"type\":\"ping\"}\n\n"
        } else {
            ": ping\n\n"
        };
        // A native answer also begins with one.
        let began = usize::from(caller == Family::Messages);
        assert_eq!(
            shown.matches(sign).count(),
            3 + began,
            "one in 15 s, {caller} on {target}: {shown}"
        );
        assert_eq!(shown.matches("\"a\"").count().min(1), 1, "{shown}");
        let charges = house.charges().await;
        assert_eq!(
            (charges.len(), reason(&charges[0])),
            (1, "stop"),
            "{caller} on {target}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_loses_stands_in_its_receipt_and_log_but_not_in_its_headers() {
    for (caller, hint, value) in [
        (Family::Chat, "seed", json!(7)),
        (Family::Responses, "truncation", json!("auto")),
    ] {
        let house = House::speaking(Family::Messages);
        house
            .proxy
            .upstreams
            .play(after_silence(Family::Messages, Duration::ZERO));
        let key = house.key("5").await;
        let mut body: Value = serde_json::from_str(&body(caller, "quick", 10, None)).unwrap();
        body[hint] = value;
        let reply = house.send(&key, caller, body.to_string()).await.unwrap();
        let header = reply
            .headers
            .iter()
            .find(|(name, _)| *name == "x-farebox-lost")
            .map(|(_, value)| value.as_str());
        assert_eq!(
            header,
            Some(format!("{hint}=dropped").as_str()),
            "the answer has not begun when this is sent"
        );
        assert!(!read(stream(Ok(reply))).await.contains("https://a.example"));
        let told = format!("answer.citations=dropped, {hint}=dropped");
        let charges = house.charges().await;
        assert_eq!(
            charges[0].bill.as_ref().unwrap().facts,
            [("lost".to_owned(), told.clone())].into()
        );
        assert_eq!(house.ended.0.lock().unwrap()[0].lost, told);
    }
}

#[tokio::test(start_paused = true)]
async fn the_form_for_another_family_needs_room_too() {
    for (caller, target) in DIRECTIONS {
        let house = House::speaking(target);
        let key = house.key("5").await;
        let mut body: Value = serde_json::from_str(&body(caller, "quick", 10, None)).unwrap();
        // Long, and worth keeping: the second form is about as large as the first.
        let turns = if caller == Family::Responses {
            "input"
        } else {
            "messages"
        };
        body[turns] =
            json!([{"role": "user", "content": format!("10 words {}", "a".repeat(200_000))}]);
        let body = body.to_string();
        for (room, fits) in [(body.len() * 3 / 2, false), (body.len() * 3, true)] {
            // A holder gets a quarter of what is free.
            let all = ByteRoom::new(4 * room);
            let mut share = all.share(Holder(1), usize::MAX);
            assert!(share.grow_to(body.len()));
            let reply = house.send_in(Some(share), &key, caller, body.clone()).await;
            match (reply, fits) {
                (Err(Failure::Overloaded), false) => {}
                (Ok(reply), true) => assert!(!read(stream(Ok(reply))).await.is_empty()),
                (other, _) => panic!("{caller} on {target}, {room} bytes: {:?}", other.err()),
            }
            assert_eq!(
                house.charges().await.len(),
                usize::from(fits),
                "a refusal is free"
            );
            assert_eq!(all.in_use(), 0, "given back");
        }
    }
}

/// A responses provider says one word in a second, the second one a stop string, and counts at its end or breaks off before it.
fn slowly(counts: bool) -> Recorded {
    let (first, mut rest) = answer(Family::Responses);
    let end = rest.split_off(1);
    let say = |word: &str| {
        Bytes::from(String::from_utf8_lossy(&rest[0]).replace("\"a\"", &format!("\"{word}\"")))
    };
    let words = ["one ", "END", " three", " four"].map(|word| (Duration::from_secs(1), say(word)));
    let mut pieces = vec![(Duration::ZERO, first)];
    pieces.extend(words);
    if counts {
        pieces.extend(end.into_iter().map(|piece| (Duration::from_secs(1), piece)));
    }
    Recorded {
        pieces,
        broken: !counts,
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_at_a_stop_string_costs_what_leaving_there_costs() {
    for (caller, counts) in [
        (Family::Chat, true),
        (Family::Chat, false),
        (Family::Messages, true),
        (Family::Messages, false),
    ] {
        let mut paid = Vec::new();
        for (stops, streams) in [(false, true), (true, true), (true, false)] {
            let house = House::speaking(Family::Responses).experienced();
            house.proxy.upstreams.play(slowly(counts));
            let key = house.key("5").await;
            let mut body: Value = serde_json::from_str(&body(caller, "quick", 500, None)).unwrap();
            body["stream"] = json!(streams);
            // Both are asked for, so that both prompts are the same to the provider; only one string is ever said.
            let stop = if stops { "END" } else { "never" };
            let field = if caller == Family::Chat {
                "stop"
            } else {
                "stop_sequences"
            };
            body[field] = json!([stop]);
            let reply = house.send(&key, caller, body.to_string()).await;
            if streams {
                let mut answer = stream(reply);
                let mut shown = String::new();
                while !shown.contains("END") {
                    let Some(bytes) = answer.next().await else {
                        break;
                    };
                    shown += std::str::from_utf8(&bytes).unwrap();
                }
                assert_eq!(
                    shown.contains("END"),
                    !stops || caller == Family::Messages,
                    "{shown}"
                );
            }
            let charge = house.charges().await.remove(0);
            let expected = if stops { "stop" } else { "client_gone" };
            assert_eq!(reason(&charge), expected, "{caller}, {counts}");
            paid.push((charge.amount, charge.bill.unwrap().usage));
        }
        assert!(
            paid[0].0.is_negative() && paid[0] == paid[1] && paid[1] == paid[2],
            "{caller}, {counts}: {paid:?}"
        );
    }
}
