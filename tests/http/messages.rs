//! Native messages, whole and streamed: what reaches the upstream, what reaches the customer, what it costs, and counting tokens.

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Gateway, ask, talking};

/// (40 × 3 + 10 × 0.3 + 20 × 3.75 + 5 × 15) / 1e6 USD.
const USAGE: ReportedUsage = ReportedUsage {
    input: 40,
    cache_read: 10,
    cache_write: 20,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 5,
    reasoning: 0,
};
const COST: &str = "0.000273";
const PATH: &str = "/native/v1/messages";

/// The data of every event of a stream.
fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn a_whole_answer_is_paid_to_the_picodollar_and_gets_nothing_added() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Messages, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(PATH, &key, &ask(Family::Messages, "test-model", false))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        (
            answer.header("x-farebox-cost"),
            answer.header("x-farebox-balance")
        ),
        (Some(COST), Some("4.999727"))
    );
    let expected = json!({
        "id": "up-1", "type": "message", "role": "assistant", "model": "test-model", "stop_sequence": null,
        "content": [{"type": "text", "text": "PONG"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 40, "output_tokens": 5, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 20,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0}}});
    assert_eq!(answer.json(), expected);
    let charges = gateway.charges(&key).await;
    assert_eq!(
        (charges.len(), charges[0].amount.to_string()),
        (1, format!("-{COST}"))
    );
    let usage = charges[0].bill.as_ref().unwrap().usage;
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (40, 10, 20, 5),
        "three separate counts"
    );
}

#[tokio::test]
async fn versions_flags_and_new_options_pass_untouched_with_either_header() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let body = r#"{"max_tokens": 7, "messages":[{"role":"system","content":"\u0041"},{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"x"}]}], "context_management":{"edits":[1.50]},"metadata":{"user_id":"u"},"model":"test-alias" }"#;
    for credential in ["authorization", "x-api-key"] {
        let value = if credential == "x-api-key" {
            key.secret.clone()
        } else {
            format!("Bearer {}", key.secret)
        };
        for (path, version) in [
            ("/native/v1/messages?beta=true", "2023-06-01"),
            ("/native/messages", "2023-01-01"),
        ] {
            let sent = gateway
                .client
                .post(format!("{}{path}", gateway.base))
                .header(credential, &value)
                .body(body);
            let sent = sent
                .header("anthropic-version", version)
                .header("anthropic-beta", "a-1,b-2")
                .header("anthropic-beta", "c-3");
            let sent = sent
                .header("x-stainless-os", "Linux")
                .header("cookie", "c")
                .send()
                .await
                .unwrap();
            assert_eq!(sent.status(), 200);
            let seen = upstream.requests().pop().unwrap();
            assert_eq!(
                String::from_utf8(seen.body.clone()).unwrap(),
                body.replace("test-alias", "upstream-model-1")
            );
            assert_eq!(
                (seen.path.as_str(), seen.header("anthropic-version")),
                ("/v1/messages", Some(version))
            );
            let flags: Vec<&str> = seen
                .headers
                .iter()
                .filter(|(name, _)| name == "anthropic-beta")
                .map(|(_, value)| value.as_str())
                .collect();
            assert_eq!(flags, ["a-1,b-2", "c-3"]);
            assert_eq!(
                seen.header("x-api-key"),
                Some("upstream-secret-of-UPSTREAM_KEY")
            );
            assert!(
                !seen
                    .headers
                    .iter()
                    .any(|(_, value)| value.contains(&key.secret)),
                "the customer's key never leaves"
            );
            assert!(
                ["authorization", "cookie", "x-stainless-os"]
                    .iter()
                    .all(|name| seen.header(name).is_none())
            );
        }
    }
    assert_eq!(gateway.charges(&key).await.len(), 4);
}

#[tokio::test]
async fn a_stream_keeps_its_events_and_shows_its_end_after_the_charge() {
    let upstream = ScriptedUpstream::start(
        Speech::new(Family::Messages, "one two three")
            .usage(USAGE)
            .stream(),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(PATH, &key, &ask(Family::Messages, "test-model", true))
        .await;
    let account = gateway.account(&key).await.customer.account;
    assert_eq!(
        (account.spent.to_string().as_str(), account.held.picos()),
        (COST, 0),
        "settled before the last byte"
    );
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let events = events(&answer.text);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        events[0]["message"]["model"], "test-model",
        "the slug, nested too"
    );
    assert!(!answer.text.contains("upstream-model"));
    assert!(
        answer.text.starts_with("event: message_start\ndata: {"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn the_last_usage_wins_and_zero_never_replaces_a_count() {
    let start = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"upstream-model-1","content":[],"usage":{"input_tokens":900,"cache_read_input_tokens":50,"output_tokens":1}}}"#;
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":100,"cache_read_input_tokens":0,"output_tokens":9}}"#;
    let frames = [
        ("message_start", start),
        ("message_delta", delta),
        ("message_stop", r#"{"type":"message_stop"}"#),
    ];
    let frames = frames.map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"));
    let upstream = ScriptedUpstream::start(Reply::events(frames)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(PATH, &key, &ask(Family::Messages, "test-model", true))
        .await;
    assert!(
        answer.text.ends_with("{\"type\":\"message_stop\"}\n\n"),
        "{}",
        answer.text
    );
    let usage = gateway.charges(&key).await[0].bill.clone().unwrap().usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (100, 50, 9));
}

#[tokio::test]
async fn single_steps_of_usage_name_the_slug_too() {
    let usage = json!({"input_tokens": 3, "output_tokens": 2, "iterations": [
        {"type": "message", "model": "upstream-model-1", "input_tokens": 3, "output_tokens": 1},
        {"type": "message", "model": "upstream-model-2-fallback", "input_tokens": 3, "output_tokens": 1}]});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "upstream-model-1", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "PONG"}], "usage": usage});
    let script = Script::by(move |seen: &Seen, _| {
        if seen.json()["stream"] != true {
            return Reply::json(200, &message);
        }
        let event = |data: Value| {
            format!(
                "event: {}\ndata: {data}\n\n",
                data["type"].as_str().unwrap()
            )
        };
        let delta =
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
        Reply::events(vec![
            event(json!({"type": "message_start", "message": message})),
            event(delta),
            event(json!({"type": "message_stop"})),
        ])
    });
    let upstream = ScriptedUpstream::start(script).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for stream in [false, true] {
        let answer = gateway
            .post(PATH, &key, &ask(Family::Messages, "test-model", stream))
            .await;
        assert_eq!(
            (answer.status, answer.text.contains("upstream-model")),
            (200, false),
            "{}",
            answer.text
        );
        let said = if stream {
            events(&answer.text).remove(1)
        } else {
            answer.json()
        };
        assert_eq!(
            said["usage"]["iterations"][1]["model"], "test-model",
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_broken_stream_ends_with_the_familys_error_event() {
    let speech = || Speech::new(Family::Messages, "one two three four five six").stream();
    for reply in [
        speech().end_after(6),
        speech().reset_after(6),
        speech().tear_after(6),
    ] {
        let upstream = ScriptedUpstream::start(reply).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(PATH, &key, &ask(Family::Messages, "test-model", true))
            .await;
        let last = events(&answer.text).pop().unwrap();
        assert_eq!(
            (last["type"].clone(), last["error"]["type"].clone()),
            (json!("error"), json!("api_error")),
            "{}",
            answer.text
        );
        assert!(answer.text.contains("event: error\n") && !answer.text.contains("message_stop"));
        assert!(last["request_id"].as_str().unwrap().starts_with("req_"));
        gateway.settled().await;
        assert_eq!(gateway.charges(&key).await.len(), 1);
    }
}

fn counting(tokens: u64) -> Script {
    Script::by(move |seen, _| {
        assert!(
            seen.path.ends_with("/messages/count_tokens"),
            "{}",
            seen.path
        );
        Reply::json(200, &json!({ "input_tokens": tokens }))
    })
}

fn count_body(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "Say PONG ".repeat(100) }] })
}

#[tokio::test]
async fn a_count_of_a_whole_request_goes_up_as_it_is() {
    let upstream = ScriptedUpstream::tolerant(counting(321)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let mut ask = count_body("test-model");
    ask["max_tokens"] = json!(1_024);
    let path = "/native/v1/messages/count_tokens";
    assert_eq!(gateway.post(path, &key, &ask).await.status, 200);
    ask["model"] = json!("upstream-model-1");
    assert_eq!(upstream.request(0).await.json(), ask, "but for the model");
}

#[tokio::test]
async fn counting_tokens_is_free_and_asks_the_upstream_only_with_money() {
    let upstream = ScriptedUpstream::start(counting(321)).await;
    let gateway = Gateway::before(&upstream).await;
    let path = "/native/v1/messages/count_tokens";
    let rich = gateway.key("5.00").await;
    let answer = gateway
        .send(
            path,
            &rich,
            count_body("test-alias").to_string(),
            &[("anthropic-beta", "token-counting-1")],
        )
        .await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "input_tokens": 321 }))
    );
    let seen = upstream.request(0).await;
    assert_eq!(
        (seen.json()["model"].clone(), seen.header("anthropic-beta")),
        (json!("upstream-model-1"), Some("token-counting-1"))
    );

    let poor = gateway.key("0").await;
    let answer = gateway.post(path, &poor, &count_body("test-model")).await;
    let estimate = answer.json()["input_tokens"].as_u64().unwrap();
    assert_eq!(answer.status, 200);
    assert!((200..400).contains(&estimate), "{estimate}");
    assert_eq!(
        upstream.requests().len(),
        1,
        "an empty key costs the operator nothing"
    );

    upstream.follow(Reply::native_error(
        404,
        "not_found_error",
        "no such thing at upstream-model-1",
    ));
    let answer = gateway.post(path, &rich, &count_body("test-model")).await;
    assert_eq!(
        (answer.status, answer.json()["input_tokens"].as_u64()),
        (200, Some(estimate)),
        "else the estimate"
    );
    let unknown = gateway
        .post(path, &rich, &count_body("claude-haiku-4-5"))
        .await;
    assert_eq!(
        (unknown.status, unknown.json()["error"]["type"].clone()),
        (404, json!("not_found_error"))
    );
    for key in [&rich, &poor] {
        assert!(
            gateway.charges(key).await.is_empty(),
            "counting leaves no entry"
        );
    }
}
