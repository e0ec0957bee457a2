//! Streams that go wrong: errors, cuts, silence, customers who leave. Each settles once, and none ends as if it were complete.

use std::time::Duration;

use farebox_protocol::Family;
use futures_util::StreamExt;
use serde_json::json;

use crate::support::upstream::{Gate, Reply, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, routes};

const WORDS: &str = "one two three four five six seven eight nine ten";

async fn broken(reply: Reply) -> (String, Gateway, TestKey) {
    let upstream = ScriptedUpstream::start(reply).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", true))
        .await;
    assert_eq!(answer.status, 200);
    gateway.settled().await;
    (answer.text, gateway, key)
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_charges_what_was_delivered() {
    let speech = || Speech::new(Family::Chat, WORDS).stream();
    let cut = speech().end_after(6);
    let reset = speech().reset_after(6);
    let error = speech()
        .then(
            6,
            "data: {\"error\":{\"message\":\"boom at org-secret\",\"type\":\"server_error\"}}\n\n",
        )
        .end_after(7);
    for (name, reply) in [("cut", cut), ("reset", reset), ("error", error)] {
        let (text, gateway, key) = broken(reply).await;
        assert!(text.contains("\"error\""), "{name}: {text}");
        assert!(
            !text.contains("[DONE]"),
            "{name}: never a clean end: {text}"
        );
        assert!(
            !text.contains("server_error") && !text.contains("org-secret"),
            "{name}: {text}"
        );
        let charges = gateway.charges(&key).await;
        assert_eq!(charges.len(), 1, "{name}");
        assert!(
            charges[0].amount.picos() < 0,
            "{name}: delivered output is charged"
        );
        assert_eq!(
            charges[0].bill.as_ref().unwrap().end_reason.as_str(),
            "upstream_broken",
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_never_begins_is_free_and_a_503() {
    let json_to_stream = Reply::json(200, &json!({"id": "no answer"}));
    let overloaded = Reply::error(529, "overloaded_error", None, "overloaded");
    let error_first = Reply::events([
        "data: {\"error\":{\"message\":\"quota of org-1\",\"type\":\"insufficient_quota\"}}\n\n",
    ]);
    let operators_trouble = Reply::error(
        401,
        "authentication_error",
        None,
        "bad key sk-operator-secret",
    );
    for (name, reply) in [
        ("json", json_to_stream),
        ("529", overloaded),
        ("error first", error_first),
        ("401", operators_trouble),
    ] {
        let upstream = ScriptedUpstream::start(reply).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post("/v1/chat/completions", &key, &chat("test-model", true))
            .await;
        assert_eq!(
            (answer.status, answer.json()["error"]["code"].clone()),
            (503, json!("upstream_unavailable")),
            "{name}: {}",
            answer.text
        );
        assert!(answer.header("retry-after").is_some());
        assert!(
            !answer.text.contains("sk-operator") && !answer.text.contains("org-1"),
            "{name}: {}",
            answer.text
        );
        let charges = gateway.charges(&key).await;
        assert_eq!(
            (charges.len(), charges[0].amount.picos()),
            (1, 0),
            "{name}: a release is a charge of zero"
        );
        assert_eq!(
            gateway
                .account(&key)
                .await
                .customer
                .account
                .available()
                .to_string(),
            "5.00",
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_customer_who_leaves_stops_the_upstream_and_pays_for_what_was_made() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, WORDS).stream().stall_after(6)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let url = format!("{}/v1/chat/completions", gateway.base);
    let mut answer = gateway
        .client
        .post(url)
        .bearer_auth(&key.secret)
        .json(&chat("test-model", true))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    answer.next().await.unwrap().unwrap();
    drop(answer);
    upstream.closed_by_peer(0).await;
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let bill = charges[0].bill.as_ref().unwrap();
    assert_eq!(
        (charges.len(), bill.end_reason.as_str()),
        (1, "client_gone")
    );
    assert!(charges[0].amount.picos() < 0, "never free after content");
}

#[tokio::test]
async fn a_route_that_drains_charges_the_real_usage() {
    let speech = Speech::new(Family::Chat, WORDS)
        .stream()
        .paced(Duration::from_millis(20));
    let upstream = ScriptedUpstream::start(speech).await;
    let draining =
        routes(&upstream.base_url()).replacen("targets", "on_disconnect = \"drain\"\ntargets", 1);
    let gateway = Gateway::start(CATALOG, &draining).await;
    let key = gateway.key("5.00").await;
    let url = format!("{}/v1/chat/completions", gateway.base);
    let mut answer = gateway
        .client
        .post(url)
        .bearer_auth(&key.secret)
        .json(&chat("test-model", true))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    answer.next().await.unwrap().unwrap();
    drop(answer);
    upstream.completed(0).await;
    gateway.settled().await;
    let bill = gateway.charges(&key).await[0].bill.clone().unwrap();
    assert_eq!(
        (bill.usage.input, bill.usage.output),
        (10, 10),
        "the upstream's own count"
    );
}

#[tokio::test]
async fn a_customer_who_leaves_a_whole_request_pays_for_the_answer() {
    let gate = Gate::new();
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").whole().gated(&gate)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let (path, body) = ("/v1/chat/completions", chat("test-model", false));
    tokio::select! {
        answer = gateway.post(path, &key, &body) => panic!("{answer:?}"),
        _ = upstream.request(0) => {}
    }
    gate.open();
    upstream.completed(0).await;
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    assert_eq!(
        (charges.len(), charges[0].bill.as_ref().unwrap().usage.input),
        (1, 10)
    );
}

#[tokio::test]
async fn a_stream_without_usage_is_counted_here_and_marked_so() {
    let (text, gateway, key) = broken(
        Speech::new(Family::Chat, WORDS)
            .claims(json!(null))
            .stream(),
    )
    .await;
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let charge = &gateway.charges(&key).await[0];
    let bill = charge.bill.as_ref().unwrap();
    assert_eq!(bill.evidence, Some(farebox_ledger::Evidence::Local));
    assert!(charge.amount.picos() < 0 && bill.usage.output > 0);
}

#[tokio::test]
async fn absurd_usage_is_disputed_and_bounded_by_what_can_be_true() {
    for claim in [
        json!({ "prompt_tokens": -5, "completion_tokens": 3 }),
        json!({ "prompt_tokens": 10, "completion_tokens": 900_000_000_000_i64 }),
        json!({ "prompt_tokens": 900_000_000, "completion_tokens": 3 }),
        json!({ "prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 20 } }),
        json!({ "prompt_tokens": "ten", "completion_tokens": 3 }),
    ] {
        let (_, gateway, key) = broken(
            Speech::new(Family::Chat, WORDS)
                .claims(claim.clone())
                .stream(),
        )
        .await;
        let charge = &gateway.charges(&key).await[0];
        let bill = charge.bill.as_ref().unwrap();
        assert_eq!(
            bill.evidence,
            Some(farebox_ledger::Evidence::Disputed),
            "{claim}"
        );
        assert!(
            bill.usage.input <= 4_400 && bill.usage.output <= 128_000,
            "{claim}: {:?}",
            bill.usage
        );
    }
}
