//! Routes: order, moving to the next target, what never moves, breakers, waits and limits. Each request is charged once.

use std::time::{Duration, Instant};

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Gate, Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, pass, speech_for, talking};

const CHAT: &str = "/v1/chat/completions";
const NATIVE: &str = "/native/v1/messages";

/// `test-model` at two upstreams in order, `test-blind` at the first only.
fn two(
    first: &ScriptedUpstream,
    second: &ScriptedUpstream,
    settings: &str,
    policy: &str,
) -> String {
    let (first, second) = (first.base_url(), second.base_url());
    format!(
        r#"
[provider.first]
base_url = "{first}"
speaks   = ["chat", "responses", "messages"]
key      = {{ env = "FIRST_KEY" }}
{settings}

[provider.second]
base_url = "{second}"
speaks   = ["chat", "responses", "messages"]
key      = {{ env = "SECOND_KEY" }}

[[route]]
slug    = "test-model"
targets = [ {{ provider = "first", model = "one" }}, {{ provider = "second", model = "two" }} ]
{policy}

[[route]]
slug    = "test-blind"
targets = [ {{ provider = "first", model = "blind" }} ]
{policy}
"#
    )
}

/// Two upstreams and a gateway in front of them.
struct Pair {
    first: ScriptedUpstream,
    second: ScriptedUpstream,
    gateway: Gateway,
    key: TestKey,
}

impl Pair {
    async fn start(first: impl Into<Script>, settings: &str, policy: &str) -> Self {
        let (first, second) = (
            ScriptedUpstream::start(first).await,
            ScriptedUpstream::start(talking("from the second")).await,
        );
        let gateway = Gateway::start(CATALOG, &two(&first, &second, settings, policy)).await;
        let key = gateway.key("5.00").await;
        Self {
            first,
            second,
            gateway,
            key,
        }
    }

    async fn ask(&self, model: &str, stream: bool) -> crate::support::Answer {
        self.gateway
            .post(CHAT, &self.key, &chat(model, stream))
            .await
    }

    async fn as_key(&self, key: &TestKey) -> crate::support::Answer {
        self.gateway
            .post(CHAT, key, &chat("test-model", false))
            .await
    }

    /// A target in `/status`.
    async fn target(&self, slug: &str, provider: &str) -> Value {
        let status = self.gateway.ask("/status").await.json();
        let targets = status["targets"].as_array().unwrap();
        targets
            .iter()
            .find(|target| target["slug"] == slug && target["provider"] == provider)
            .cloned()
            .unwrap()
    }
}

#[tokio::test]
async fn whatever_goes_wrong_before_the_first_frame_moves_on_to_the_next_target() {
    let error = |status| Reply::error(status, "server_error", None, "no luck at org-secret");
    let failures: Vec<(&str, Reply)> = vec![
        ("500", error(500)),
        ("502", error(502)),
        ("503", error(503)),
        ("529", Reply::error(529, "overloaded_error", None, "busy")),
        (
            "429",
            Reply::error(429, "rate_limit_error", None, "slow down"),
        ),
        (
            "401",
            Reply::error(401, "authentication_error", None, "bad key"),
        ),
        ("reset", Speech::new(Family::Chat, "x").stream().reset()),
        ("an empty stream", Reply::events(Vec::<Vec<u8>>::new())),
        (
            "an error first",
            Reply::events(["data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n"]),
        ),
        (
            "HTML",
            Reply::whole(200, "text/html", "<html>welcome</html>"),
        ),
    ];
    for (name, failure) in failures {
        let pair = Pair::start(failure, "", "").await;
        for stream in [false, true] {
            let answer = pair.ask("test-model", stream).await;
            assert_eq!(
                answer.status, 200,
                "{name}, stream {stream}: {}",
                answer.text
            );
            assert!(
                answer.text.contains("second") && !answer.text.contains("org-secret"),
                "{name}: {}",
                answer.text
            );
        }
        pair.gateway.settled().await;
        let charges = pair.gateway.charges(&pair.key).await;
        assert_eq!(charges.len(), 2, "{name}: one charge for each request");
        let bill = charges[0].bill.as_ref().unwrap();
        assert_eq!(
            (bill.target.as_str(), bill.usage.input),
            ("second/two", 10),
            "{name}: only the answer is charged"
        );
        let record = &pair.gateway.records.all()[0];
        assert!(
            record.attempts[0].to_string().starts_with("first/one: "),
            "{name}: {:?}",
            record.attempts
        );
    }
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_or_is_too_slow_is_passed_over() {
    let unreachable = ScriptedUpstream::start(talking("x")).await;
    let second = ScriptedUpstream::start(talking("from the second")).await;
    let routes = two(&unreachable, &second, "", "");
    drop(unreachable);
    let gateway = Gateway::start(CATALOG, &routes).await;
    let key = gateway.key("5.00").await;
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-model", true))
            .await
            .status,
        200
    );
    gateway.settled().await;
    let attempts = &gateway.records.all()[0].attempts;
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.to_string().starts_with("first/one: unsent: ")),
        "{attempts:?}"
    );

    let waits =
        r#"timeouts = { connect = "1s", first_byte = "200ms", idle = "200ms", whole = "300ms" }"#;
    let slow = Pair::start(Speech::new(Family::Chat, "x").stream().silent(), waits, "").await;
    assert_eq!(slow.ask("test-model", true).await.status, 200);
    slow.first.closed_by_peer(0).await;
}

#[tokio::test]
async fn a_whole_answer_that_takes_too_long_is_charged_and_not_asked_for_again() {
    let waits = r#"timeouts = { whole = "300ms" }"#;
    let slow = Pair::start(
        Speech::new(Family::Chat, "x")
            .whole()
            .late(Duration::from_secs(20)),
        waits,
        "",
    )
    .await;
    let begun = Instant::now();
    let answer = slow.ask("test-model", false).await;
    let took = begun.elapsed();
    assert_eq!(
        (answer.status, answer.header("x-should-retry")),
        (503, Some("false")),
        "{}",
        answer.text
    );
    assert!(
        answer.text.contains("charged") && answer.text.contains("stream"),
        "{}",
        answer.text
    );
    slow.first.closed_by_peer(0).await;
    assert!(
        slow.second.requests().is_empty(),
        "a second provider would bill the same again"
    );
    slow.gateway.settled().await;
    let charges = slow.gateway.charges(&slow.key).await;
    let bill = charges[0].bill.as_ref().unwrap();
    assert_eq!(
        (
            charges.len(),
            bill.target.as_str(),
            bill.end_reason.to_string().as_str()
        ),
        (1, "first/one", "max_duration")
    );
    // What the provider probably produced in that time, at 100 tokens a second.
    let most = u64::try_from(took.as_millis()).unwrap() / 10;
    assert!(
        (20..=most).contains(&bill.usage.output) && bill.usage.input > 0,
        "{:?} in {took:?}",
        bill.usage
    );
    let record = &slow.gateway.records.all()[0];
    assert!(
        record.attempts[0].to_string().contains("given up") && record.failed.is_empty(),
        "{:?}",
        record.attempts
    );
}

#[tokio::test]
async fn after_the_first_delivered_frame_there_is_no_second_beginning() {
    for reply in [
        Speech::new(Family::Chat, "one two three")
            .stream()
            .reset_after(2),
        Speech::new(Family::Chat, "one two three")
            .stream()
            .stall_after(2),
    ] {
        let waits = r#"timeouts = { idle = "300ms" }"#;
        let pair = Pair::start(reply, waits, "").await;
        let answer = pair.ask("test-model", true).await;
        assert!(
            answer.text.contains("\"error\"") && !answer.text.contains("[DONE]"),
            "{}",
            answer.text
        );
        pair.gateway.settled().await;
        assert_eq!(
            (
                pair.second.requests().len(),
                pair.gateway.charges(&pair.key).await.len()
            ),
            (0, 1)
        );
    }
}

#[tokio::test]
async fn an_outage_pauses_a_target_for_all_and_a_recovered_one_is_used_within_five_seconds() {
    let down = Reply::error(500, "server_error", None, "broken");
    let pair = Pair::start(down, "", "").await;
    assert_eq!(pair.target("test-model", "first").await["state"], "closed");
    let other = pair.gateway.key("5.00").await;
    for key in [&pair.key, &other] {
        let answer = pair.as_key(key).await;
        assert_eq!(answer.status, 200);
    }
    // Two customers have failed, so the gateway asks itself: once for the answer, and not again within five seconds.
    let ours = pair.first.request(2).await;
    assert_eq!(ours.json()["messages"][0]["content"], "ping");
    while pair.target("test-model", "first").await["state"] != "open" {
        tokio::task::yield_now().await;
    }
    for key in [&pair.key, &other, &pair.gateway.key("5.00").await] {
        let answer = pair.as_key(key).await;
        assert!(answer.text.contains("from the second"));
    }
    assert_eq!(pair.first.requests().len(), 3, "no try is wasted on it");
    let open = pair.target("test-model", "first").await;
    assert!(
        open["reason"].as_str().unwrap().contains("500") && open["probes"]["failed"] == 1,
        "{open}"
    );
    assert_eq!(open["probes"]["cost"], "0.00", "an error is not billed");
    let metrics = pair.gateway.ask("/metrics").await.text;
    for line in [
        r#"farebox_target_state{slug="test-model",target="first/one",state="open"} 1"#,
        r#"farebox_target_probes_total{slug="test-model",target="first/one",outcome="failed"} 1"#,
        r#"farebox_target_probe_cost_usd_total{slug="test-model",target="first/one"} 0.00"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }

    pair.first.follow(talking("from the first"));
    pass(Duration::from_secs(5)).await;
    pair.first.completed(3).await;
    while pair.target("test-model", "first").await["state"] != "closed" {
        tokio::task::yield_now().await;
    }
    for key in [&pair.key, &other] {
        let answer = pair.as_key(key).await;
        assert!(answer.text.contains("from the first"));
    }
    let cost = pair.target("test-model", "first").await["probes"]["cost"].clone();
    assert_ne!(cost, "0.00", "an answer is");
}

#[tokio::test]
async fn a_clients_own_mistake_moves_no_breaker_and_no_target() {
    let refused = Reply::error(
        400,
        "invalid_request_error",
        Some("bad"),
        "messages: too many roles",
    );
    let pair = Pair::start(refused, "", "breaker = { failures = 2, open = \"60s\" }").await;
    for _ in 0..6 {
        let answer = pair.ask("test-model", false).await;
        assert_eq!(answer.status, 400);
        assert_eq!(
            answer.json()["error"]["message"],
            "messages: too many roles",
            "clients match on the wording"
        );
    }
    let target = pair.target("test-model", "first").await;
    assert_eq!(
        (
            target["state"].as_str(),
            target["errors"].as_u64(),
            pair.second.requests().len()
        ),
        (Some("closed"), Some(0), 0)
    );
    assert_eq!(
        pair.gateway
            .account(&pair.key)
            .await
            .customer
            .account
            .available()
            .to_string(),
        "5.00"
    );
}

#[tokio::test]
async fn a_time_the_upstream_names_is_honoured() {
    let told = Reply::error(429, "rate_limit_error", None, "slow down").header("retry-after", "30");
    let pair = Pair::start(told, "", "").await;
    let answer = pair.ask("test-blind", false).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("5")),
        "more makes SDKs hang"
    );
    pass(Duration::from_secs(26)).await;
    let again = pair.ask("test-blind", false).await;
    let wait: u64 = again.header("retry-after").unwrap().parse().unwrap();
    assert!(again.status == 503 && (1..=4).contains(&wait), "{wait}");
    assert_eq!(
        pair.first.requests().len(),
        1,
        "nobody asks before the time is over"
    );
    pair.first.follow(talking("rested"));
    pass(Duration::from_secs(4)).await;
    assert_eq!(pair.ask("test-blind", false).await.status, 200);
}

#[tokio::test]
async fn a_full_provider_is_passed_over_and_its_places_come_back() {
    let gate = Gate::new();
    let slow = Speech::new(Family::Chat, "from the first")
        .whole()
        .gated(&gate);
    let pair = Pair::start(slow, "max_concurrent = 1", "").await;
    let (held, other) = {
        let (body, other) = (chat("test-model", false), chat("test-model", false));
        let held = async { pair.gateway.post(CHAT, &pair.key, &body).await };
        let other = async {
            pair.first.request(0).await;
            let answer = pair.gateway.post(CHAT, &pair.key, &other).await;
            // With no other target it waits for the place.
            let alone = pair.ask("test-blind", false);
            let opening = async {
                tokio::task::yield_now().await;
                gate.open();
            };
            let (alone, ()) = tokio::join!(alone, opening);
            assert!(alone.text.contains("from the first"), "{}", alone.text);
            answer
        };
        tokio::join!(held, other)
    };
    assert!(held.text.contains("from the first") && other.text.contains("from the second"));
    assert!(
        pair.ask("test-model", false)
            .await
            .text
            .contains("from the first"),
        "the place is free again"
    );
}

#[tokio::test]
async fn one_failing_slug_or_family_leaves_the_others_alone() {
    let only_chat_fails = Script::by(|seen, _| {
        let broken = seen.path.ends_with("/chat/completions") && seen.json()["model"] == "blind";
        if broken {
            Reply::error(500, "server_error", None, "broken")
        } else {
            speech_for(seen, "from the first")
        }
    });
    let policy = r#"breaker = { failures = 2, open = "60s" }"#;
    let pair = Pair::start(only_chat_fails, "", policy).await;
    for _ in 0..4 {
        assert_eq!(pair.ask("test-blind", false).await.status, 503);
    }
    assert_eq!(pair.first.requests().len(), 2);
    let target = pair.target("test-blind", "first").await;
    assert_eq!(
        (target["state"].as_str(), target["keys_closed"].as_u64()),
        (Some("closed"), Some(1)),
        "closed to this customer alone"
    );
    assert!(
        pair.ask("test-model", false)
            .await
            .text
            .contains("from the first"),
        "another slug of the same provider"
    );
    let native = json!({ "model": "test-blind", "max_tokens": 64, "messages": [{ "role": "user", "content": "hi" }] });
    let answer = pair.gateway.post(NATIVE, &pair.key, &native).await;
    assert_eq!(
        answer.status, 200,
        "another family of the same target: {}",
        answer.text
    );
    let responses = json!({ "model": "test-blind", "input": "hi" });
    assert_eq!(
        pair.gateway
            .post("/v1/responses", &pair.key, &responses)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn flags_that_a_provider_refuses_are_refused_and_others_pass() {
    let settings = r#"refuse_beta = ["context-1m-2025-08-07"]"#;
    let pair = Pair::start(talking("fine"), settings, "").await;
    let native = json!({ "model": "test-model", "max_tokens": 64, "messages": [{ "role": "user", "content": "hi" }] });
    for (flags, status) in [
        ("context-1m-2025-08-07", 400),
        ("a-2025-01-01, context-1m-2025-08-07", 400),
        ("a-2025-01-01", 200),
    ] {
        let url = format!("{}{NATIVE}", pair.gateway.base);
        let request = pair
            .gateway
            .client
            .post(url)
            .bearer_auth(&pair.key.secret)
            .header("anthropic-beta", flags);
        assert_eq!(
            request
                .json(&native)
                .send()
                .await
                .unwrap()
                .status()
                .as_u16(),
            status,
            "{flags}"
        );
    }
    let seen = pair.first.requests();
    assert_eq!(
        (seen.len(), seen[0].header("anthropic-beta")),
        (1, Some("a-2025-01-01"))
    );
}
