//! A key that leaves too much unpaid gets nothing more for a while; an outage that our own requests meet, too, stops nobody.

use std::time::Duration;

use farebox::clock;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::{PROSE, said};
use super::esc::leave_after;
use super::hidden;
use crate::support::billing::{Bills, Manner, Thinks};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, path, routes};

/// A model with a context of $0.003.
fn small_context() -> String {
    CATALOG
        .replacen("context = 200_000", "context = 1_000", 1)
        .replacen("max_output = 64_000", "max_output = 500", 1)
}

/// A request that a provider may bill although it fails: $0.0023, a token for each byte. Two are more than a context, and one is less
/// however slow the machine is.
fn failing() -> Value {
    let mut body = chat("test-model", false);
    body["messages"][0]["content"] = json!("word ".repeat(150));
    body
}

/// Breaks every request of a customer off, and answers ours.
fn failing_customers() -> Script {
    Script::by(|seen, _| {
        if String::from_utf8_lossy(&seen.body).contains("word word") {
            Reply::error(500, "x", None, "x").reset()
        } else {
            Speech::new(Family::Chat, "PONG").whole()
        }
    })
}

/// The shipped breaker, but no key is paused by its own failures.
fn patient(upstream: &ScriptedUpstream) -> String {
    routes(&upstream.base_url()).replacen(
        "slug    = \"test-model\"",
        "slug    = \"test-model\"\nbreaker = { failures = 1000, open = \"1s\" }",
        1,
    )
}

/// Waits until no key is stopped.
async fn calm(gateway: &Gateway, why: &str) {
    let calm = async {
        while !gateway.front.rate_limits.stopped(clock::now()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), calm)
        .await
        .expect(why);
}

/// Asks until the target is in use again.
async fn is_served(gateway: &Gateway, key: &TestKey) {
    let back = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        match ask(gateway, key).await {
            200 => break,
            status => assert_eq!(status, 503),
        }
        assert!(tokio::time::Instant::now() < back, "it is used again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn ask(gateway: &Gateway, key: &TestKey) -> u16 {
    let answer = gateway.post("/v1/chat/completions", key, &failing()).await;
    gateway.settled().await;
    answer.status
}

fn is_stopped(gateway: &Gateway, key: &TestKey) -> bool {
    let stopped = gateway.front.rate_limits.stopped(clock::now());
    stopped.iter().any(|stop| stop.key == key.id)
}

#[tokio::test]
async fn a_key_whose_exposure_is_above_its_limit_gets_nothing_more() {
    let upstream = ScriptedUpstream::start(failing_customers()).await;
    let gateway = Gateway::fresh(&small_context(), &routes(&upstream.base_url())).await;
    let (key, other) = (gateway.key("50").await, gateway.key("50").await);
    let mut tries = 0;
    while !is_stopped(&gateway, &key) {
        assert_eq!(ask(&gateway, &key).await, 503);
        tries += 1;
        assert!(tries < 12, "a context of $0.003 is used up soon");
    }
    assert!(tries >= 2, "{tries}");
    upstream.follow(Speech::new(Family::Chat, "PONG").whole());
    let asked = upstream.requests().len();
    let refused = gateway.post("/v1/chat/completions", &key, &failing()).await;
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status, &error["type"], &error["code"]),
        (429, &json!("rate_limit_exceeded"), &json!("exposure_limit")),
        "{}",
        refused.text
    );
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert!(
        error["message"].as_str().unwrap().contains(" minutes"),
        "{error}"
    );
    assert_eq!(upstream.requests().len(), asked);
    assert_eq!(gateway.get("/v1/key", &key).await.status, 200);
    assert_eq!(ask(&gateway, &other).await, 200, "another key");
    let status = gateway.ask("/status").await.json();
    let alert = &status["alerts"][0];
    assert_eq!(
        (&alert["kind"], &alert["key"]),
        (&json!("exposure_limit"), &json!(key.id.to_string())),
        "{status}"
    );
    let metrics = gateway.ask("/metrics").await.text;
    assert!(metrics.contains("farebox_keys_stopped 1"));
    // Any user of the machine learns that there is one, and not which.
    let ids = [
        key.id.to_string(),
        gateway.account(&key).await.customer.id.to_string(),
    ];
    assert!(metrics.contains(&format!("subject=\"{}\"", ids[0])));
    for path in ["/status", "/metrics"] {
        let seen = gateway.ask_with(path, None).await;
        assert_eq!(seen.status, 200);
        assert!(seen.text.contains("exposure_limit"), "{path}");
        for id in &ids {
            assert!(!seen.text.contains(id), "{path}: {}", seen.text);
        }
    }
}

/// Where we may not ask ourselves, others who fail at the same time are the evidence.
#[tokio::test]
async fn an_outage_that_three_keys_meet_where_we_may_not_ask_stops_none_of_them() {
    let upstream = ScriptedUpstream::start(failing_customers()).await;
    let routes = patient(&upstream).replacen("speaks", "probe_budget = \"0\"\nspeaks", 1);
    let gateway = Gateway::fresh(&small_context(), &routes).await;
    let keys = [
        gateway.key("50").await,
        gateway.key("50").await,
        gateway.key("50").await,
    ];
    for key in &keys {
        for _ in 0..4 {
            ask(&gateway, key).await;
        }
    }
    calm(&gateway, "what all three met is excused").await;
    upstream.follow(Speech::new(Family::Chat, "PONG").whole());
    for key in &keys {
        is_served(&gateway, key).await;
    }
}

/// Any number of keys may fail on purpose while our own requests pass.
#[tokio::test]
async fn what_our_own_requests_do_not_meet_is_no_outage() {
    let upstream = ScriptedUpstream::start(failing_customers()).await;
    let gateway = Gateway::fresh(&small_context(), &patient(&upstream)).await;
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(gateway.key("50").await);
    }
    for key in &keys {
        for _ in 0..4 {
            ask(&gateway, key).await;
        }
    }
    for key in &keys {
        assert!(is_stopped(&gateway, key));
    }
}

/// One of ours has passed, and then fails where a key's requests do: whoever failed at that time is excused, even alone.
#[tokio::test]
async fn an_outage_that_our_own_requests_meet_stops_nobody() {
    let upstream = ScriptedUpstream::start(failing_customers()).await;
    let gateway = Gateway::fresh(&small_context(), &patient(&upstream)).await;
    let (key, other) = (gateway.key("50").await, gateway.key("50").await);
    for key in [&key, &other] {
        ask(&gateway, key).await;
    }
    let ours = || {
        let seen = upstream.requests();
        seen.iter()
            .filter(|seen| !String::from_utf8_lossy(&seen.body).contains("word word"))
            .count()
    };
    let asked = async {
        while ours() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), asked)
        .await
        .expect("two keys failed, so we ask");
    tokio::time::sleep(Duration::from_secs(2)).await;
    upstream.follow(Reply::error(500, "x", None, "x").reset());
    for _ in 0..4 {
        ask(&gateway, &key).await;
    }
    assert!(is_stopped(&gateway, &key), "before it is proved");
    let refused = gateway.post("/v1/chat/completions", &key, &failing()).await;
    assert!(
        refused
            .text
            .contains("the provider of \\\"test-model\\\" sent nothing"),
        "{}",
        refused.text
    );
    calm(&gateway, "our own request failed as well").await;
    upstream.follow(Speech::new(Family::Chat, "PONG").whole());
    is_served(&gateway, &key).await;
}

/// At a target whose pace nobody knows, the wait for a first frame is either read on to its usage and charged, or it is exposure, which
/// stops the key. Left again and again, it costs the operator no more than the promise allows.
#[tokio::test]
async fn whoever_leaves_waits_that_nobody_meters_pays_for_them_or_is_stopped() {
    let bills = Bills::default();
    let manner = Manner {
        hidden: 450,
        thinking: 1_500,
        thinks: Thinks::BeforeFrames,
        limited: true,
        ..Manner::default()
    };
    let upstream = ScriptedUpstream::start(bills.answering("One two.", manner)).await;
    let catalog = hidden::catalog(", speed = 1_500");
    let gateway = Gateway::fresh(&catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key("0.02").await;
    let mut body = said(Family::Chat, json!("Think."), 1_000);
    body["stream"] = json!(true);
    let mut left = 0;
    while left < 20 && !is_stopped(&gateway, &key) {
        let asking = gateway.post(path(Family::Chat), &key, &body);
        let _ = tokio::time::timeout(Duration::from_millis(100), asking).await;
        gateway.settled().await;
        left += 1;
    }
    let billed: i64 = bills.ended(&upstream).iter().map(|one| one.cost()).sum();
    let charged = hidden::charged(&gateway, &key).await;
    println!("left {left} times: billed {billed}, charged {charged}");
    assert!(billed > 10_000_000_000, "half of what was paid: {billed}");
    assert!(billed - charged <= billed / 10 + 20_000_000_000);
}

/// A provider that claims too much for a greeting, in a different way each time, is no reason to refuse the key that met it.
#[tokio::test]
async fn a_lying_provider_stops_no_honest_key() {
    let claims = [
        json!({"prompt_tokens": 190_000, "completion_tokens": 4}),
        json!({"prompt_tokens": 900_000, "completion_tokens": 4}),
        json!({"prompt_tokens": 20, "completion_tokens": 400_000}),
        json!({"prompt_tokens": 20, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5_000}}),
    ];
    let upstream = ScriptedUpstream::start(Script::by(move |seen, number| {
        let speech =
            Speech::new(Family::Chat, "PONG").claims(claims[number % claims.len()].clone());
        if seen.json()["stream"] == true {
            speech.stream()
        } else {
            speech.whole()
        }
    }))
    .await;
    let gateway = Gateway::fresh(CATALOG, &routes(&upstream.base_url())).await;
    let key = gateway.key("1").await;
    for number in 0..16 {
        let mut body = chat("test-model", number % 8 > 3);
        body["max_tokens"] = json!(100);
        let answer = gateway.post("/v1/chat/completions", &key, &body).await;
        assert_eq!(answer.status, 200, "{number}: {}", answer.text);
        gateway.settled().await;
        assert!(!is_stopped(&gateway, &key), "{number}");
    }
    let charges = gateway.charges(&key).await;
    let exposed: i64 = charges
        .iter()
        .map(|charge| charge.bill.as_ref().unwrap().exposure.picos())
        .sum();
    assert!(
        exposed > 500_000_000_000,
        "more than half of what was paid is booked: {exposed}"
    );
}

/// Whoever fails on purpose is stopped alone: a customer of the same model is served between any two of its tries.
#[tokio::test]
async fn no_attacker_stops_a_victim() {
    let upstream = ScriptedUpstream::start(Script::by(|seen, _| {
        if String::from_utf8_lossy(&seen.body).contains("word word") {
            Reply::error(500, "x", None, "x").reset()
        } else {
            Speech::new(Family::Chat, "PONG").whole()
        }
    }))
    .await;
    let gateway = Gateway::fresh(&small_context(), &routes(&upstream.base_url())).await;
    let attackers = [gateway.key("50").await, gateway.key("50").await];
    let victim = gateway.key("1").await;
    for _ in 0..12 {
        for attacker in &attackers {
            ask(&gateway, attacker).await;
        }
        let answer = gateway
            .post("/v1/chat/completions", &victim, &chat("test-model", false))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        gateway.settled().await;
        assert!(!is_stopped(&gateway, &victim));
    }
    for attacker in &attackers {
        assert!(is_stopped(&gateway, attacker));
    }
}

/// Requests that fail until their key is stopped.
async fn failures_until_stopped(target: &str) -> usize {
    let upstream = ScriptedUpstream::start(Reply::error(500, "x", None, "x").reset()).await;
    let patient = routes(&upstream.base_url())
        .replacen(
            "slug    = \"test-model\"",
            "slug    = \"test-model\"\nbreaker = { failures = 1000, open = \"1s\" }",
            1,
        )
        .replacen(
            "model = \"upstream-model-1\" }",
            &format!("model = \"upstream-model-1\"{target} }}"),
            1,
        );
    let gateway = Gateway::fresh(&small_context(), &patient).await;
    let key = gateway.key("50").await;
    let mut tries = 0;
    while !is_stopped(&gateway, &key) && tries < 60 {
        ask(&gateway, &key).await;
        tries += 1;
    }
    tries
}

#[tokio::test]
async fn exposure_counts_at_the_operators_own_cost() {
    let at_price = failures_until_stopped("").await;
    let at_cost = failures_until_stopped(", cost = { input = \"0.30\", output = \"1.50\" }").await;
    assert!(
        at_cost >= at_price * 5 && at_cost < 60,
        "{at_price} at the price, {at_cost} at a tenth of it"
    );
}

/// An agent's request with a prompt of 60,000 tokens.
fn long_prompt(family: Family) -> Value {
    let mut body = said(family, json!(PROSE.repeat(60_000 / 23)), 4_000);
    body["stream"] = json!(true);
    body
}

/// Ten agents of a key that was never charged, each with a prompt of 60,000 tokens; every second one is stopped in the middle of its
/// answer and asks again. Nobody is told to wait.
#[tokio::test]
async fn ten_agents_with_long_prompts_and_no_charge_yet_are_not_stopped() {
    let bills = Bills::default();
    let manner = Manner {
        pace: 5,
        piece: 100,
        limited: true,
        ..Manner::default()
    };
    let answering = bills.answering(&PROSE.repeat(40), manner);
    let upstream = ScriptedUpstream::start(answering).await;
    let gateway = Gateway::fresh(CATALOG, &routes(&upstream.base_url())).await;
    let key = gateway.key("10").await;
    let agents = (0..10).map(|number: usize| {
        let (family, gateway, key) = (Family::ALL[number % 3], &gateway, &key);
        async move {
            let body = long_prompt(family);
            if number.is_multiple_of(2) {
                leave_after(gateway, key, (family, body.clone()), 2_000).await;
            }
            gateway.post(path(family), key, &body).await
        }
    });
    for answer in futures_util::future::join_all(agents).await {
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    gateway.settled().await;
    assert!(!is_stopped(&gateway, &key));
}
