//! Odd upstream behaviour, each stretched over two seconds: who is to blame, and the cost to the last picodollar.

use serde_json::{Value, json};

use super::paced::{LENGTH, Outcome, asked, data, end, played, stretched, words};
use super::*;
use crate::upstream::{BreakerState, Recorded};

/// Input and output tokens of every usage below, and their cost.
const COUNTS: (u64, u64) = (100, 6);
const COST: i64 = 100 * 3_000_000 + 6 * 15_000_000;

fn chat(event: Value) -> String {
    let mut event = event;
    event["id"] = "c".into();
    event["model"] = "sim".into();
    format!("data: {event}\n\n")
}

fn choice(index: u64, text: &str, finish: Value) -> Value {
    json!({"index": index, "delta": {"content": text}, "finish_reason": finish})
}

fn chat_usage(output: u64) -> Value {
    json!({"prompt_tokens": COUNTS.0, "completion_tokens": output, "total_tokens": COUNTS.0 + output})
}

fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

fn event(data: Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

/// A native answer with two texts whose interim events carry this stop reason and running counts.
fn native(interim_stop: &Value) -> Vec<String> {
    let start = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "sim", "content": [],
        "stop_reason": interim_stop, "usage": {"input_tokens": COUNTS.0, "output_tokens": 1}});
    let delta = |text: &str| {
        event(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        )
    };
    let count = |stop: &Value, output: u64| {
        event(
            json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": output}}),
        )
    };
    vec![
        event(json!({"type": "message_start", "message": start})),
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        delta("one two"),
        count(interim_stop, 2),
        delta(" three four"),
        event(json!({"type": "content_block_stop", "index": 0})),
        count(&"end_turn".into(), COUNTS.1),
        event(json!({"type": "message_stop"})),
    ]
}

/// A responses answer; `end` is its last event.
fn responses(end: Value) -> Vec<String> {
    let response = json!({"id": "resp_1", "object": "response", "status": "in_progress", "model": "sim", "output": []});
    let delta = |text: &str| {
        event(
            json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text}),
        )
    };
    let created = event(json!({"type": "response.created", "response": response}));
    vec![created, delta("one two"), delta(" three four"), event(end)]
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response", "status": "completed", "model": "sim",
        "output": [], "usage": {"input_tokens": COUNTS.0, "output_tokens": COUNTS.1, "total_tokens": COUNTS.0 + COUNTS.1}}})
}

fn with_two_choices() -> String {
    let mut body: Value = serde_json::from_str(&asked(Family::Chat)).unwrap();
    body["n"] = 2.into();
    body.to_string()
}

/// Whole streams of every oddity that is none of the customer's business.
fn complete() -> Vec<(&'static str, Family, String, Vec<String>)> {
    let ask = || asked(Family::Chat);
    let stop = || json!("stop");
    let text = |words: &str, finish: Value| chat(json!({"choices": [choice(0, words, finish)]}));
    let counted = |words: &str, finish: Value, output| {
        chat(json!({"choices": [choice(0, words, finish)], "usage": chat_usage(output)}))
    };
    let usage_only = |output| chat(json!({"choices": [], "usage": chat_usage(output)}));
    let of = |index, words: &str, finish: Value| {
        chat(json!({"choices": [choice(index, words, finish)]}))
    };
    let unended = |mut events: Vec<String>, cut: usize| {
        let last = events.last_mut().unwrap();
        last.truncate(last.len() - cut);
        events
    };
    let plain = || {
        vec![
            text("one two", Value::Null),
            text(" three four", stop()),
            usage_only(COUNTS.1),
            done(),
        ]
    };
    let mut found = vec![
        (
            "an empty finish reason in every chunk",
            Family::Chat,
            ask(),
            vec![
                text("one", json!("")),
                text(" two", json!("")),
                text(" three four", json!("")),
                text("", stop()),
                usage_only(COUNTS.1),
                done(),
            ],
        ),
        (
            "an empty finish reason and usage in every chunk",
            Family::Chat,
            ask(),
            vec![
                counted("one", json!(""), 1),
                counted(" two", json!(""), 2),
                counted(" three four", json!(""), 4),
                counted("", stop(), COUNTS.1),
                done(),
            ],
        ),
        (
            "a usage-only chunk before the content",
            Family::Chat,
            ask(),
            vec![
                usage_only(0),
                text("one two", Value::Null),
                text(" three four", stop()),
                usage_only(COUNTS.1),
                done(),
            ],
        ),
        (
            "usage of nothing before the content",
            Family::Chat,
            ask(),
            vec![
                chat(json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})),
                text("one two", Value::Null),
                text(" three four", stop()),
                usage_only(COUNTS.1),
                done(),
            ],
        ),
        (
            "a usage-only chunk amid the content",
            Family::Chat,
            ask(),
            vec![
                text("one two", Value::Null),
                usage_only(2),
                text(" three", Value::Null),
                text(" four", stop()),
                usage_only(COUNTS.1),
                done(),
            ],
        ),
        (
            "two answers one after the other",
            Family::Chat,
            with_two_choices(),
            vec![
                of(0, "one", Value::Null),
                of(0, " two", stop()),
                usage_only(2),
                of(1, "three", Value::Null),
                of(1, " four", stop()),
                usage_only(COUNTS.1),
                done(),
            ],
        ),
        (
            "no usage before the marker",
            Family::Chat,
            ask(),
            vec![
                counted("one two", Value::Null, 2),
                counted(" three four", stop(), COUNTS.1),
                done(),
            ],
        ),
        ("no marker", Family::Chat, ask(), plain()[..3].to_vec()),
        (
            "comments between",
            Family::Chat,
            ask(),
            plain()
                .into_iter()
                .flat_map(|event| [": still here\n\n".to_owned(), event])
                .collect(),
        ),
        (
            "an empty stop reason in every event",
            Family::Messages,
            asked(Family::Messages),
            native(&json!("")),
        ),
        (
            "no stop reason before the end",
            Family::Messages,
            asked(Family::Messages),
            native(&Value::Null),
        ),
        (
            "an ordinary end",
            Family::Responses,
            asked(Family::Responses),
            responses(completed()),
        ),
    ];
    for cut in [1, 2] {
        found.push((
            "a last event without its blank line",
            Family::Messages,
            asked(Family::Messages),
            unended(native(&Value::Null), cut),
        ));
        found.push((
            "a last event without its blank line",
            Family::Responses,
            asked(Family::Responses),
            unended(responses(completed()), cut),
        ));
        found.push((
            "a last event without its blank line",
            Family::Chat,
            ask(),
            unended(plain(), cut),
        ));
    }
    found
}

#[tokio::test(start_paused = true)]
async fn odd_streams_come_whole_and_cost_what_they_say() {
    for (name, family, body, events) in complete() {
        let Outcome {
            shown,
            bill,
            charge,
            blamed,
            took,
        } = played(family, body, stretched(&events)).await;
        assert_eq!(words(&shown), words(&(events.concat() + "\n\n")), "{name}");
        assert_eq!(
            (end(family, &shown), bill.end_reason.as_str()),
            ("end", "stop"),
            "{name}: {shown}"
        );
        assert_eq!(
            (bill.usage.input, bill.usage.output, bill.evidence),
            (COUNTS.0, COUNTS.1, Some(Evidence::Provider)),
            "{name}"
        );
        assert_eq!((charge, blamed), (COST, 0), "{name}");
        assert!(
            took >= LENGTH && took < LENGTH + Duration::from_millis(1_500),
            "{name}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_stop_reason_never_ends_cleanly() {
    for (name, family, body, events) in complete() {
        if name == "no marker" || name == "no usage before the marker" {
            continue;
        }
        // Everything up to the stop reason: the last words were sent, but nothing marked them as the last.
        let said = |event: &String| {
            ["\"stop\"", "end_turn", "response.completed"]
                .iter()
                .any(|word| event.contains(word))
        };
        let last = if body == with_two_choices() {
            events.iter().rposition(said)
        } else {
            events.iter().position(said)
        };
        let events = &events[..last.unwrap()];
        let Outcome {
            shown,
            bill,
            charge,
            blamed,
            ..
        } = played(family, body, stretched(events)).await;
        assert_eq!(words(&shown), words(&events.concat()), "{name}");
        assert_eq!(
            (end(family, &shown), bill.end_reason.as_str()),
            ("error", "upstream_broken"),
            "{name}: {shown}"
        );
        let output = i64::try_from(bill.usage.output).unwrap();
        assert_eq!(
            (bill.usage.input, charge, blamed),
            (0, output * 15_000_000, 1),
            "{name}: the words, and not the prompt"
        );
        assert!(
            (1..=COUNTS.1).contains(&bill.usage.output),
            "{name}: {}",
            bill.usage.output
        );
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_an_odd_stream_pays_for_the_prompt_and_what_was_shown() {
    for (name, family, body, events) in complete() {
        if name.contains("one after the other")
            || name.contains("ordinary")
            || name.contains("last event")
        {
            continue;
        }
        let house = House::new().experienced();
        house.proxy.upstreams.play(stretched(&events));
        let key = house.key("50").await;
        let mut answer = stream(house.send(&key, family, body).await);
        let mut shown = String::new();
        while words(&shown).is_empty() {
            shown += std::str::from_utf8(&answer.next().await.unwrap()).unwrap();
        }
        drop(answer);
        let charge = house.charges().await.remove(0);
        let bill = charge.bill.unwrap();
        assert_eq!(bill.end_reason.as_str(), "client_gone", "{name}");
        assert!(
            bill.usage.input > 0 && (1..COUNTS.1).contains(&bill.usage.output),
            "{name}: {:?}",
            bill.usage
        );
        assert_eq!(house.proxy.upstreams.states()[0].errors, 0, "{name}");
    }
}

/// An error caused by the customer, as each family reports it, after `shown` words.
fn own_errors() -> Vec<(Family, Vec<String>, &'static str)> {
    let chat_error = |kind: &str, code: &str| {
        format!(
            "data: {}\n\n",
            json!({"error": {"type": kind, "code": code, "message": "why"}})
        )
    };
    let failed = |code: &str| {
        json!({"type": "response.failed", "response": {"id": "resp_1", "object": "response", "status": "failed", "model": "sim",
            "output": [], "error": {"code": code, "message": "why"}}})
    };
    let text = || chat(json!({"choices": [choice(0, "one two", Value::Null)]}));
    let error =
        |kind: &str| event(json!({"type": "error", "error": {"type": kind, "message": "why"}}));
    vec![
        (
            Family::Chat,
            vec![
                text(),
                text(),
                chat_error("invalid_request_error", "context_length_exceeded"),
            ],
            "context_length_exceeded",
        ),
        (
            Family::Chat,
            vec![
                text(),
                chat_error("invalid_request_error", "tool_use_failed"),
            ],
            "tool_use_failed",
        ),
        (
            Family::Responses,
            responses(failed("context_length_exceeded")),
            "context_length_exceeded",
        ),
        (
            Family::Responses,
            responses(failed("invalid_prompt")),
            "invalid_prompt",
        ),
        (
            Family::Messages,
            [
                native(&Value::Null)[..3].to_vec(),
                vec![error("invalid_request_error")],
            ]
            .concat(),
            "invalid_request_error",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_customers_own_error_is_shown_as_it_is_and_closes_nothing() {
    for (family, events, code) in own_errors() {
        let house = House::new();
        house.proxy.upstreams.play(stretched(&events));
        for _ in 0..6 {
            let key = house.key("5").await;
            let shown = read(stream(house.send(&key, family, asked(family)).await)).await;
            assert_eq!(
                words(&shown),
                words(&events[..events.len() - 1].concat()),
                "{family}"
            );
            let last = data(&shown).pop().unwrap();
            let error = if last["response"].is_object() {
                &last["response"]["error"]
            } else {
                &last["error"]
            };
            assert!(
                error["code"] == code || error["type"] == code,
                "{family} {code}: {last}"
            );
        }
        for charge in house.charges().await {
            let bill = charge.bill.unwrap();
            assert_eq!(
                (bill.end_reason.as_str(), bill.usage.input > 0),
                ("upstream_refused", true),
                "{family} {code}"
            );
            let cost = bill.usage.input * 3_000_000 + bill.usage.output * 15_000_000;
            assert_eq!(
                u64::try_from(-charge.amount.picos()).unwrap(),
                cost,
                "{family} {code}"
            );
        }
        let state = house.proxy.upstreams.states().swap_remove(0);
        assert_eq!(
            (state.errors, state.state),
            (0, BreakerState::Closed),
            "{family} {code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_break_costs_words_and_a_customer_who_waits_for_it_pays_as_if_he_left() {
    let line = "word ".repeat(1_450);
    let text = chat(json!({"choices": [choice(0, &line, Value::Null)]}));
    let pieces: Vec<_> = (0..40)
        .map(|_| (LENGTH / 40, Bytes::from(text.clone())))
        .collect();
    for patient in [true, false] {
        let house = House::new();
        house.proxy.upstreams.play(Recorded {
            pieces: pieces.clone(),
            broken: true,
        });
        let key = house.key("50").await;
        let mut answer = stream(house.send(&key, Family::Chat, asked(Family::Chat)).await);
        let mut shown = String::new();
        while let Some(bytes) = answer.next().await {
            shown += std::str::from_utf8(&bytes).unwrap();
            if !patient {
                sleep(Duration::from_secs(29)).await;
            }
        }
        assert_eq!(end(Family::Chat, &shown), "error");
        let bill = house.charges().await.remove(0).bill.unwrap();
        assert_eq!(
            (bill.end_reason.as_str(), bill.usage.input > 0),
            ("upstream_broken", !patient),
            "{:?}",
            bill.usage
        );
        assert!(bill.usage.output > 50_000, "{:?}", bill.usage);
        assert_eq!(house.proxy.upstreams.states()[0].errors, 1);
    }
}
