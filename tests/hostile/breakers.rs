//! Customers who fail on purpose: whatever they provoke, one who comes once a minute is served.
//!
//! The upstreams work, and answer badly only to requests that ask for it. A request of the gateway's own does not.

use std::time::Duration;

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, pass, routes, speech_for, talking};

const CHAT: &str = "/v1/chat/completions";
const MINUTE: Duration = Duration::from_secs(60);

fn provokes(seen: &Seen) -> bool {
    seen.json().to_string().contains("provoke")
}

/// An upstream that gives this answer when provoked, and a proper one otherwise.
async fn provoked(answer: Reply) -> ScriptedUpstream {
    let script = Script::by(move |seen, _| {
        if provokes(seen) {
            answer.clone()
        } else {
            speech_for(seen, "PONG")
        }
    });
    ScriptedUpstream::start(script).await
}

fn provoking(stream: bool) -> Value {
    json!({
        "model": "test-model", "max_tokens": 5, "stream": stream,
        "messages": [{ "role": "user", "content": "provoke" }],
    })
}

/// What attackers can provoke: an answer, and whether it is one to a stream.
fn provocations() -> Vec<(&'static str, Reply, bool)> {
    let error = |status, kind| Reply::error(status, kind, None, "no");
    let first = |frame: &str| Speech::new(Family::Chat, "x").stream().then(0, frame);
    vec![
        ("402", error(402, "payment_required"), false),
        ("403", error(403, "permission_error"), false),
        (
            "429 with a long rest",
            error(429, "requests").header("retry-after", "600"),
            false,
        ),
        ("500", error(500, "server_error"), false),
        ("HTML", Reply::whole(400, "text/html", "<html>no"), false),
        (
            "first-frame error",
            first("data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n"),
            true,
        ),
    ]
}

/// So many customers provoke it several times each.
async fn attack(gateway: &Gateway, keys: &[TestKey], stream: bool) {
    for _ in 0..6 {
        for key in keys {
            let refused = gateway.post(CHAT, key, &provoking(stream)).await;
            assert_eq!(refused.status, 503, "{}", refused.text);
        }
    }
}

async fn keys(gateway: &Gateway, count: usize) -> Vec<TestKey> {
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.push(gateway.key("5.00").await);
    }
    keys
}

async fn is_served(gateway: &Gateway, key: &TestKey, why: &str) {
    let answer = gateway.post(CHAT, key, &chat("test-model", false)).await;
    assert_eq!(answer.status, 200, "{why}: {}", answer.text);
}

/// The test's model in `/status`.
async fn target(gateway: &Gateway) -> Value {
    gateway.ask("/status").await.json()["targets"][0].clone()
}

/// `minutes` of an attack by so many keys on a quiet slug: its only other customer comes once a minute.
async fn quiet_slug_survives(count: usize) {
    for (name, answer, stream) in provocations() {
        let upstream = provoked(answer).await;
        let gateway = Gateway::before(&upstream).await;
        let (bad, good) = (keys(&gateway, count).await, gateway.key("5.00").await);
        for _ in 0..2 {
            attack(&gateway, &bad, stream).await;
            pass(MINUTE).await;
            is_served(&gateway, &good, name).await;
        }
        let target = target(&gateway).await;
        assert_eq!(target["state"], "closed", "{name}: {target}");
        assert!(
            target["probes"]["sent"].as_u64().unwrap() > 0 && target["probes"]["failed"] == 0,
            "{name}: the gateway has asked itself: {target}"
        );
    }
}

#[tokio::test]
async fn two_hostile_keys_take_a_quiet_slug_from_nobody() {
    quiet_slug_survives(2).await;
}

#[tokio::test]
async fn ten_hostile_keys_take_a_quiet_slug_from_nobody() {
    quiet_slug_survives(10).await;
}

#[tokio::test]
async fn fifty_hostile_keys_take_a_quiet_slug_from_nobody() {
    quiet_slug_survives(50).await;
}

#[tokio::test]
async fn hostile_keys_take_a_busy_slug_from_nobody() {
    for (name, answer, stream) in provocations() {
        let upstream = provoked(answer).await;
        let gateway = Gateway::before(&upstream).await;
        let (bad, good) = (keys(&gateway, 10).await, keys(&gateway, 3).await);
        let rare = gateway.key("5.00").await;
        for _ in 0..3 {
            attack(&gateway, &bad, stream).await;
            for key in &good {
                is_served(&gateway, key, name).await;
            }
        }
        is_served(&gateway, &rare, name).await;
    }
}

#[tokio::test]
async fn one_hostile_key_is_paused_alone_and_asks_nothing_of_us() {
    for (name, answer, stream) in provocations() {
        let upstream = provoked(answer).await;
        let gateway = Gateway::before(&upstream).await;
        let (bad, good) = (keys(&gateway, 1).await, gateway.key("5.00").await);
        attack(&gateway, &bad, stream).await;
        let own = gateway
            .post(CHAT, &bad[0], &chat("test-model", false))
            .await;
        assert_eq!(own.status, 503, "{name}: paused for this customer");
        is_served(&gateway, &good, name).await;
        assert_eq!(target(&gateway).await["probes"]["sent"], 0, "{name}");
    }
}

/// A gateway whose provider has these settings more.
async fn with_settings(upstream: &ScriptedUpstream, settings: &str) -> Gateway {
    let routes = routes(&upstream.base_url()).replacen("speaks", &format!("{settings}\nspeaks"), 1);
    Gateway::start(CATALOG, &routes).await
}

#[tokio::test]
async fn hostile_keys_take_a_server_of_one_slot_from_nobody() {
    for (name, answer, stream) in provocations() {
        let upstream = provoked(answer).await;
        let gateway = with_settings(&upstream, "max_concurrent = 1").await;
        let (bad, good) = (keys(&gateway, 10).await, gateway.key("5.00").await);
        for _ in 0..2 {
            attack(&gateway, &bad, stream).await;
            pass(MINUTE).await;
            is_served(&gateway, &good, name).await;
        }
        assert_eq!(target(&gateway).await["state"], "closed", "{name}");
    }
}

/// So many keys ask again and again for a first frame that never comes, while others are served.
async fn timeouts_survive(count: usize, settings: &str) {
    let silent = Speech::new(Family::Chat, "x").stream().silent();
    let upstream = provoked(silent).await;
    let settings = format!("timeouts = {{ first_byte = \"300ms\" }}\n{settings}");
    let gateway = with_settings(&upstream, &settings).await;
    let (bad, good) = (keys(&gateway, count).await, keys(&gateway, 3).await);
    let rare = gateway.key("5.00").await;
    for _ in 0..2 {
        let body = provoking(true);
        let asking = |key| {
            let (gateway, body) = (&gateway, &body);
            async move {
                loop {
                    gateway.post(CHAT, key, body).await;
                }
            }
        };
        let hostile = futures_util::future::join_all(bad.iter().map(asking));
        let served = async {
            let before = upstream.requests().len();
            upstream.request(before).await;
            for key in &good {
                is_served(&gateway, key, &settings).await;
            }
        };
        tokio::select! {
            _ = hostile => {}
            () = served => {}
        }
        pass(MINUTE).await;
        is_served(&gateway, &rare, &settings).await;
    }
    assert_eq!(target(&gateway).await["state"], "closed", "{settings}");
}

#[tokio::test]
async fn timeouts_on_purpose_by_two_keys_take_a_slug_from_nobody() {
    timeouts_survive(2, "").await;
}

#[tokio::test]
async fn timeouts_on_purpose_by_ten_keys_take_a_slug_from_nobody() {
    timeouts_survive(10, "").await;
}

#[tokio::test]
async fn timeouts_on_purpose_by_fifty_keys_take_a_slug_from_nobody() {
    timeouts_survive(50, "").await;
}

#[tokio::test]
async fn timeouts_on_purpose_take_a_server_of_one_slot_from_nobody() {
    timeouts_survive(10, "max_concurrent = 1").await;
}

#[tokio::test]
async fn whoever_fails_while_ours_pass_is_served_by_the_next_target_first() {
    let first = provoked(Reply::error(500, "server_error", None, "no")).await;
    let second = ScriptedUpstream::start(talking("PONG")).await;
    let other = routes(&second.base_url())
        .split_once("[[route]]")
        .unwrap()
        .0
        .replace("provider.up", "provider.down");
    let both = routes(&first.base_url()).replacen(
        "targets = [ { provider = \"up\", model = \"upstream-model-1\" } ]",
        "targets = [ { provider = \"up\", model = \"upstream-model-1\" }, { provider = \"down\", model = \"m\" } ]",
        1,
    );
    let gateway = Gateway::start(CATALOG, &format!("{other}\n{both}")).await;
    let bad = keys(&gateway, 2).await;
    for key in &bad {
        gateway.post(CHAT, key, &provoking(false)).await;
    }
    while target(&gateway).await["probes"]["sent"] == 0 {
        tokio::task::yield_now().await;
    }
    let before = first.requests().len();
    is_served(&gateway, &bad[0], "by the second").await;
    assert_eq!(first.requests().len(), before);
    let good = gateway.key("5.00").await;
    is_served(&gateway, &good, "by the first").await;
    assert_eq!(first.requests().len(), before + 1);
}

#[tokio::test]
async fn what_our_own_requests_cost_in_a_day_is_bounded() {
    // An answer that costs more than the whole budget.
    let dear = Script::by(|seen, _| {
        if provokes(seen) {
            return Reply::error(500, "server_error", None, "no");
        }
        let usage =
            json!({ "prompt_tokens": 20_000, "completion_tokens": 1, "total_tokens": 20_001 });
        Reply::json(
            200,
            &json!({
                "id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
                "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "PONG" } }],
            }),
        )
    });
    let upstream = ScriptedUpstream::start(dear).await;
    let gateway = with_settings(&upstream, "probe_budget = \"0.0005\"").await;
    let bad = keys(&gateway, 2).await;
    for _ in 0..30 {
        for key in &bad {
            gateway.post(CHAT, key, &provoking(false)).await;
        }
        pass(Duration::from_secs(301)).await;
    }
    let target = target(&gateway).await;
    let cost: f64 = target["probes"]["cost"].as_str().unwrap().parse().unwrap();
    let ours = upstream
        .requests()
        .iter()
        .filter(|seen| !provokes(seen))
        .count();
    assert_eq!(
        (ours, cost),
        (1, 0.060_015),
        "the first one was dearer than the day: {target}"
    );
    let good = gateway.key("5.00").await;
    is_served(&gateway, &good, "without a budget").await;
}

#[tokio::test]
async fn a_second_customer_waits_for_one_answer_of_the_ten_agents_of_the_first() {
    let slow = Speech::new(Family::Chat, "PONG")
        .whole()
        .late(Duration::from_millis(200));
    let upstream = ScriptedUpstream::start(slow).await;
    let gateway = with_settings(&upstream, "max_concurrent = 4").await;
    let (heavy, light) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let body = chat("test-model", false);
    let agents = futures_util::future::join_all((0..10).map(|_| gateway.post(CHAT, &heavy, &body)));
    let late = async {
        // Three of the four places are taken by then.
        upstream.request(2).await;
        let first = gateway.post(CHAT, &light, &body);
        let second = gateway.post(CHAT, &light, &body);
        let answers = tokio::join!(first, second);
        (
            answers.0.status,
            answers.1.status,
            upstream.requests().len(),
        )
    };
    let (agents, (first, second, by_then)) = tokio::join!(agents, late);
    assert!(
        agents.iter().all(|answer| answer.status == 200),
        "nobody is turned away"
    );
    assert_eq!((first, second), (200, 200));
    assert!(
        by_then < 12,
        "he did not wait for all ten: {by_then} had been sent when his were answered"
    );
}
