//! A small hostile crowd: idle connections, slow heads, bodies that never arrive, failing requests, greedy keys. The others are
//! served.

use std::time::Duration;

use farebox::clock;
use farebox_ledger::{
    CloseSessions, CustomerId, CustomerSettings, KeySettings, Membership, Perform, SecretHash,
    Session, Timestamp,
};
use farebox_protocol::Family;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{
    Gateway, TestKey, ask, chat, new_key_within, path, sized, speech_for, talking,
};

const CHAT: &str = "/v1/chat/completions";

/// A connection of its own that has sent these bytes.
async fn connect(gateway: &Gateway, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.base.trim_start_matches("http://"))
        .await
        .unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Everything that is answered until the connection is closed, or for a minute.
async fn answered(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut all)).await;
    String::from_utf8_lossy(&all).into_owned()
}

fn head(key: &TestKey, length: usize) -> Vec<u8> {
    format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n", key.secret)
        .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_only_holds_on_keeps_nobody_out() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let (good, poor) = (gateway.key("5.00").await, gateway.key("0").await);
    let mut crowd = Vec::new();
    for number in 0..600 {
        crowd.push(match number % 3 {
            0 => connect(&gateway, b"").await,
            1 => {
                connect(
                    &gateway,
                    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a: ",
                )
                .await
            }
            _ if number < 180 => connect(&gateway, &head(&poor, 32 << 20)).await,
            _ => connect(&gateway, b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n").await,
        });
    }
    assert_eq!(
        gateway.front.body_room.in_use(),
        0,
        "announced is not taken"
    );
    for _ in 0..50 {
        // Less than the crowd holds on.
        let body = chat("test-model", false);
        let asking =
            tokio::time::timeout(Duration::from_secs(60), gateway.post(CHAT, &good, &body));
        assert_eq!(asking.await.expect("nobody is kept out").status, 200);
    }
    drop(crowd);
}

#[tokio::test]
async fn a_head_has_64_kib() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let fits = format!(
        "HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-long: {}\r\n\r\n",
        "x".repeat(50_000)
    );
    assert!(
        answered(connect(&gateway, fits.as_bytes()).await)
            .await
            .starts_with("HTTP/1.1 200")
    );
    let larger = format!(
        "HEAD / HTTP/1.1\r\nhost: x\r\nx-long: {}",
        "x".repeat(100_000)
    );
    let mut stream = connect(&gateway, b"").await;
    let _ = stream.write_all(larger.as_bytes()).await;
    assert!(answered(stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_body_that_two_readers_could_cut_differently_is_refused() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for codings in [
        "gzip, chunked",
        "chunked, chunked",
        "chunked\r\ntransfer-encoding: chunked",
        "xchunked, chunked",
    ] {
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ntransfer-encoding: {codings}\r\n\r\n0\r\n\r\n",
            key.secret
        );
        let answer = answered(connect(&gateway, head.as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{codings}: {answer}");
        assert!(
            answer.contains("\"request_id\":\"req_") && answer.contains("is chunked"),
            "{codings}: {answer}"
        );
        assert!(
            !answer[8..].contains("HTTP/1.1"),
            "the connection is not used again"
        );
    }
    for trailers in [
        "a: b\r\n\r\n",
        "a: b\nc: d\r\n\r\n",
        "a: b\n\r\n\r\n",
        "\nGET /healthz HTTP/1.1\r\n\r\n",
    ] {
        let body = chat("test-model", false).to_string();
        for (path, status) in [(CHAT, "400"), ("/v1/nothing", "404")] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n\
                 {:x}\r\n{body}\r\n0\r\n{trailers}GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
                key.secret,
                body.len()
            );
            let answer = answered(connect(&gateway, request.as_bytes()).await).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{trailers:?}: {answer}"
            );
            assert!(
                answer.to_ascii_lowercase().contains("connection: close"),
                "{answer}"
            );
            assert!(
                !answer[8..].contains("HTTP/1.1"),
                "nothing behind it is taken for a request: {answer}"
            );
        }
    }
    assert!(upstream.requests().is_empty());
}

/// A provider that gives this answer when provoked, and a proper one otherwise.
fn provoked(answer: Reply) -> Script {
    Script::by(move |seen, _| {
        if seen.json().to_string().contains("provoke") {
            answer.clone()
        } else {
            speech_for(seen, "PONG")
        }
    })
}

fn provoking() -> Value {
    json!({ "model": "test-model", "max_tokens": 5, "messages": [{ "role": "user", "content": "provoke" }] })
}

#[tokio::test]
async fn one_keys_failing_requests_close_a_model_to_that_key_alone() {
    for answer in [
        Reply::error(403, "permission_error", None, "no"),
        Reply::whole(400, "text/html", "<html>no</html>"),
        Reply::error(500, "server_error", None, "no"),
        Reply::error(429, "requests", None, "no"),
    ] {
        let name = format!("{answer:?}");
        let upstream = ScriptedUpstream::start(provoked(answer.header("retry-after", "600"))).await;
        let gateway = Gateway::before(&upstream).await;
        let (bad, good) = (gateway.key("5.00").await, gateway.key("5.00").await);
        for _ in 0..8 {
            let answer = gateway.post(CHAT, &bad, &provoking()).await;
            assert_eq!(answer.status, 503, "{name}: {}", answer.text);
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=5).contains(&wait), "{wait}");
        }
        assert_eq!(
            gateway
                .post(CHAT, &bad, &chat("test-model", false))
                .await
                .status,
            503,
            "{name}: closed to this key"
        );
        for _ in 0..8 {
            assert_eq!(
                gateway
                    .post(CHAT, &good, &chat("test-model", false))
                    .await
                    .status,
                200,
                "{name}"
            );
        }
    }
}

/// Its customer's bounds are one for all of them: 64 requests at once, whichever keys send them.
#[tokio::test]
async fn a_thousand_keys_of_one_customer_gain_nothing() {
    let stalled = Speech::new(Family::Chat, "slow").stream().stall_after(2);
    let upstream = ScriptedUpstream::start(stalled).await;
    let gateway = Gateway::before(&upstream).await;
    let (first, other) = (gateway.key("50.00").await, gateway.key("5.00").await);
    let within = Membership {
        customer: Some(CustomerId::made_for(first.id)),
        ..Membership::default()
    };
    let mut keys = vec![first];
    for _ in 1..sized(100, 1_000) {
        let made = new_key_within(&*gateway.ledger, "0", KeySettings::default(), within);
        keys.push(made.await);
    }
    let most = usize::try_from(CustomerSettings::CONCURRENCY).unwrap();
    let mut running = Vec::new();
    for key in keys.iter().take(most) {
        let request = gateway.client.post(format!("{}{CHAT}", gateway.base));
        let request = request
            .bearer_auth(&key.secret)
            .json(&chat("test-model", true));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        running.push(answer);
    }
    upstream.follow(talking("PONG"));
    for key in &keys {
        let answer = gateway.post(CHAT, key, &chat("test-model", false)).await;
        assert_eq!(answer.status, 429, "{}", answer.text);
    }
    let answer = gateway.post(CHAT, &other, &chat("test-model", false)).await;
    assert_eq!(answer.status, 200, "the others are served: {}", answer.text);
    drop(running);
    gateway.settled().await;
    let last = keys.last().unwrap();
    let answer = gateway.post(CHAT, last, &chat("test-model", false)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn answers_of_a_content_filter_close_a_model_to_nobody() {
    let filtered = Reply::error(
        400,
        "invalid_request_error",
        Some("content_filter"),
        "The response was filtered.",
    );
    let upstream = ScriptedUpstream::start(provoked(filtered)).await;
    let gateway = Gateway::before(&upstream).await;
    let (bad, good) = (gateway.key("5.00").await, gateway.key("5.00").await);
    for _ in 0..8 {
        assert_eq!(gateway.post(CHAT, &bad, &provoking()).await.status, 400);
    }
    for key in [&bad, &good] {
        assert_eq!(
            gateway
                .post(CHAT, key, &chat("test-model", false))
                .await
                .status,
            200
        );
    }
}

#[tokio::test]
async fn counting_tokens_has_a_place_among_the_keys_requests_and_blames_nobody() {
    let upstream = ScriptedUpstream::start(
        Speech::new(Family::Messages, "slow")
            .stream()
            .stall_after(1),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let settings = KeySettings {
        label: "one".to_owned(),
        concurrency: Some(1),
        ..KeySettings::default()
    };
    let key = gateway.key_with("5.00", settings).await;
    let count =
        json!({ "model": "test-model", "messages": [{ "role": "user", "content": "hello" }] });
    let running = {
        let request = gateway
            .client
            .post(format!("{}{}", gateway.base, path(Family::Messages)))
            .bearer_auth(&key.secret);
        request
            .json(&ask(Family::Messages, "test-model", true))
            .send()
            .await
            .unwrap()
    };
    assert_eq!(
        gateway
            .post("/native/v1/messages/count_tokens", &key, &count)
            .await
            .status,
        429
    );
    drop(running);
    gateway.settled().await;
    upstream.follow(Reply::whole(500, "text/plain", "no"));
    for _ in 0..6 {
        assert_eq!(
            gateway
                .post("/native/v1/messages/count_tokens", &key, &count)
                .await
                .status,
            200,
            "our own estimate"
        );
    }
    upstream.follow(talking("PONG"));
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-model", false))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_key_has_twenty_sessions_and_all_end_together() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, other) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let open = async |key: &TestKey, number: u64| {
        let (token, at) = (
            SecretHash::of(&format!("{}{number}", key.secret)),
            clock::now(),
        );
        let at = Timestamp::from_millis(at.millis() + i64::try_from(number).unwrap());
        let expires = Timestamp::from_millis(at.millis() + 60_000);
        gateway
            .ledger
            .perform(Session {
                token,
                key: key.id,
                at,
                expires,
            })
            .await
            .unwrap();
        token
    };
    let others = open(&other, 0).await;
    let mut tokens = Vec::new();
    for number in 0..25 {
        tokens.push(open(&key, number).await);
    }
    let mut alive = Vec::new();
    for token in &tokens {
        alive.push(
            gateway
                .ledger
                .find_session(*token, clock::now())
                .await
                .unwrap()
                .is_some(),
        );
    }
    assert_eq!(alive, [vec![false; 5], vec![true; 20]].concat());
    gateway.ledger.perform(CloseSessions(key.id)).await.unwrap();
    assert!(
        gateway
            .ledger
            .find_session(tokens[24], clock::now())
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        gateway
            .ledger
            .find_session(others, clock::now())
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_web_page_cannot_read_the_admin_listener_under_a_name_of_its_own() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let address = gateway.admin.trim_start_matches("http://").to_owned();
    for (host, status) in [
        ("evil.example", 421),
        ("localhost", 200),
        ("127.0.0.1:9", 200),
        ("farebox.internal", 421),
    ] {
        for path in ["/status", "/healthz", "/metrics"] {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let request =
                format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = answered(stream).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{host}{path}: {answer}"
            );
        }
    }
}
