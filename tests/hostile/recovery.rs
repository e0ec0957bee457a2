//! Real outages, and targets that only seem to be down: what they cost requests, and how soon a target is used again.

use std::time::Duration;

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, pass, routes, speech_for, talking};

const CHAT: &str = "/v1/chat/completions";

fn down() -> Reply {
    Reply::error(500, "server_error", None, "no")
}

/// The gateway's own request.
fn is_ours(seen: &Seen) -> bool {
    seen.json().to_string().contains("\"ping\"")
}

fn count(upstream: &ScriptedUpstream, ours: bool) -> usize {
    let seen = upstream.requests();
    seen.iter().filter(|seen| is_ours(seen) == ours).count()
}

async fn target(gateway: &Gateway) -> Value {
    gateway.ask("/status").await.json()["targets"][0].clone()
}

/// Until the target's state is this.
async fn becomes(gateway: &Gateway, state: &str) {
    while target(gateway).await["state"] != state {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn posted(gateway: &Gateway, key: &TestKey) -> u16 {
    let answer = gateway.post(CHAT, key, &chat("test-model", false)).await;
    answer.status
}

/// Two customers meet the outage, and the gateway asks itself.
async fn goes_down(gateway: &Gateway) {
    for _ in 0..2 {
        let key = gateway.key("5.00").await;
        assert_eq!(posted(gateway, &key).await, 503);
    }
    becomes(gateway, "open").await;
}

/// A gateway with two targets; the first is this one.
async fn with_a_second_target(first: &ScriptedUpstream, second: &ScriptedUpstream) -> Gateway {
    let other = routes(&second.base_url())
        .split_once("[[route]]")
        .unwrap()
        .0
        .replace("provider.up", "provider.spare");
    let target = "{ provider = \"up\", model = \"upstream-model-1\" }";
    let both = format!("{target}, {{ provider = \"spare\", model = \"m\" }}");
    let routes = routes(&first.base_url()).replacen(target, &both, 1);
    Gateway::start(CATALOG, &format!("{other}\n{routes}")).await
}

#[tokio::test]
async fn an_outage_costs_each_request_at_most_one_try() {
    let (first, second) = (
        ScriptedUpstream::start(down()).await,
        ScriptedUpstream::start(talking("PONG")).await,
    );
    let gateway = with_a_second_target(&first, &second).await;
    for number in 0..40 {
        let key = gateway.key("5.00").await;
        let before = count(&first, false);
        assert_eq!(posted(&gateway, &key).await, 200, "by the second target");
        let tries = count(&first, false) - before;
        assert!(tries <= 1, "{tries} tries of request {number}");
    }
    becomes(&gateway, "open").await;
    let before = count(&first, false);
    for _ in 0..20 {
        let key = gateway.key("5.00").await;
        assert_eq!(posted(&gateway, &key).await, 200);
    }
    assert_eq!(
        count(&first, false),
        before,
        "a paused target costs nothing"
    );
}

#[tokio::test]
async fn a_recovered_target_is_used_within_five_seconds() {
    let upstream = ScriptedUpstream::start(down()).await;
    let gateway = Gateway::before(&upstream).await;
    goes_down(&gateway).await;
    upstream.follow(talking("PONG"));
    pass(Duration::from_secs(5)).await;
    becomes(&gateway, "closed").await;
    let key = gateway.key("5.00").await;
    assert_eq!(posted(&gateway, &key).await, 200);
}

#[tokio::test]
async fn ours_that_always_fail_do_not_pause_a_working_target_for_good() {
    let upstream = ScriptedUpstream::start(down()).await;
    let gateway = Gateway::before(&upstream).await;
    goes_down(&gateway).await;
    // From here on it serves customers, but never us.
    upstream.follow(Script::by(|seen, _| match is_ours(seen) {
        true => down(),
        false => speech_for(seen, "PONG"),
    }));
    let key = gateway.key("5.00").await;
    assert_eq!(posted(&gateway, &key).await, 503, "not yet");
    pass(Duration::from_secs(30)).await;
    assert_eq!(posted(&gateway, &key).await, 200, "a second opinion");
    assert_eq!(target(&gateway).await["state"], "closed");
    for _ in 0..10 {
        assert_eq!(posted(&gateway, &key).await, 200);
        pass(Duration::from_secs(20)).await;
    }
}

/// A gateway whose provider takes so many tokens in a minute.
async fn with_tokens(upstream: &ScriptedUpstream, tokens: u32) -> Gateway {
    let routes = routes(&upstream.base_url()).replacen(
        "speaks",
        &format!("max_tokens_per_minute = {tokens}\nspeaks"),
        1,
    );
    Gateway::start(CATALOG, &routes).await
}

#[tokio::test]
async fn one_heavy_customer_leaves_tokens_of_the_minute_to_another() {
    // What it used counts, not what was asked for: 900 of 1,000 tokens.
    let speech = Speech::new(Family::Chat, "PONG").claims(json!({
        "prompt_tokens": 300, "completion_tokens": 150, "total_tokens": 450,
    }));
    let upstream = ScriptedUpstream::start(speech.whole()).await;
    let gateway = with_tokens(&upstream, 1_000).await;
    let (heavy, light) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let body = json!({
        "model": "test-model", "max_tokens": 200,
        "messages": [{ "role": "user", "content": "Say PONG" }],
    });
    for _ in 0..2 {
        let answer = gateway.post(CHAT, &heavy, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let third = gateway.post(CHAT, &heavy, &body);
    tokio::pin!(third);
    let waits = tokio::time::timeout(Duration::from_millis(300), &mut third).await;
    assert!(waits.is_err(), "his part of the minute is used up");
    assert_eq!(upstream.requests().len(), 2);
    let small = json!({
        "model": "test-model", "max_tokens": 5,
        "messages": [{ "role": "user", "content": "Say PONG" }],
    });
    let answer = gateway.post(CHAT, &light, &small).await;
    assert_eq!(answer.status, 200, "the last tenth: {}", answer.text);
    pass(Duration::from_secs(61)).await;
    assert_eq!(third.await.status, 200, "a minute later");
}
