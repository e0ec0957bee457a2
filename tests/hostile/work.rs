//! Work before money: who cannot pay is refused before the body costs anything, and large bodies wait for their turn aside.

use std::sync::Arc;
use std::time::Duration;

use farebox::clock;
use farebox_ledger::{Amount, Bill, CustomerId, Hold, NewHold};
use farebox_protocol::Family;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, ask, chat, talking};

const CHAT: &str = "/v1/chat/completions";
const MIB: usize = 1 << 20;

/// What is answered to a head that announces a body of which nothing is sent.
async fn to_the_head(gateway: &Gateway, key: &TestKey, path: &str, length: usize) -> String {
    let mut stream = TcpStream::connect(gateway.base.trim_start_matches("http://"))
        .await
        .unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n",
        key.secret
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let reading = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut answer));
    let length = reading.await.expect("before the body").unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn a_key_with_nothing_is_refused_before_its_body_is_read() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let poor = gateway.key("0").await;
    for path in [
        CHAT,
        "/v1/responses",
        "/native/v1/messages",
        "/native/messages",
    ] {
        let answer = to_the_head(&gateway, &poor, path, 32 * MIB).await;
        assert!(answer.starts_with("HTTP/1.1 429"), "{path}: {answer}");
        assert!(
            answer.contains("available 0.00 USD, held by running requests 0.00 USD"),
            "{path}: {answer}"
        );
        assert!(answer.contains("out of balance: "), "{path}: {answer}");
    }
    assert_eq!(gateway.front.body_room.in_use(), 0);
    // Counting tokens is free.
    let count =
        json!({ "model": "test-model", "messages": [{ "role": "user", "content": "hello" }] });
    let counted = gateway
        .post("/native/v1/messages/count_tokens", &poor, &count)
        .await;
    assert_eq!(counted.status, 200, "{}", counted.text);
    // What comes before money in the order of errors needs no body.
    gateway.change(&poor, farebox_ledger::Change::Block).await;
    assert!(
        to_the_head(&gateway, &poor, CHAT, MIB)
            .await
            .starts_with("HTTP/1.1 403")
    );
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_key_whose_money_is_held_waits_and_is_served_when_it_comes_back() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("1").await;
    let everything = NewHold {
        request: clock::operation_id(),
        customer: CustomerId::made_for(key.id),
        key: key.id,
        ways: vec![farebox_ledger::HoldWay::exactly(
            Amount::from_usd_str("1").unwrap(),
        )],
        slug: "test-model".to_owned(),
        family: "chat".to_owned(),
        at: clock::now(),
    };
    let ledger = Arc::clone(&gateway.front.proxy.ledger);
    let running = Hold::open(ledger, everything).await.unwrap();
    let body = crate::support::chat("test-model", false);
    let asked = gateway.post(CHAT, &key, &body);
    let ending = async {
        while gateway.front.proxy.waiting.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running
            .release(Bill::default(), clock::now())
            .await
            .unwrap();
    };
    let (answer, ()) = tokio::join!(asked, ending);
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn a_body_must_be_affordable_by_its_size() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    // The cheapest token costs a millionth of a dollar, and 21 MiB must be worth 11,010 of them.
    let key = gateway.key("0.01").await;
    let answer = to_the_head(&gateway, &key, CHAT, 21 * MIB).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(answer.contains("needs at least 0.01101"), "{answer}");
    // As sent it is small; decoded it is judged again.
    let large = format!(
        "{{\"model\":\"test-model\",\"x\":\"{}\"}}",
        "x".repeat(25 * MIB)
    );
    let coded = gzip(large.as_bytes());
    assert!(coded.len() < MIB);
    let refused = gateway
        .send(CHAT, &key, coded, &[("content-encoding", "gzip")])
        .await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert_eq!(refused.json()["error"]["code"], "insufficient_quota");
    // The same key is served what it can pay for.
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-model", false))
            .await
            .status,
        200
    );
    assert_eq!(upstream.requests().len(), 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(bytes).unwrap();
    coder.finish().unwrap()
}

#[tokio::test]
async fn large_bodies_are_read_aside_and_the_budgets_are_shown() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let of = |metrics: &str, name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {metrics}"))
            .trim()
            .parse()
            .unwrap()
    };
    let before = gateway.ask("/metrics").await.text;
    let mut body = ask(Family::Chat, "test-model", false);
    body["messages"][0]["content"] = Value::String("word ".repeat(100_000));
    let answered = gateway.post(CHAT, &key, &body).await;
    assert!(matches!(answered.status, 200 | 400), "{}", answered.text);
    let after = gateway.ask("/metrics").await.text;
    let aside = "farebox_work_seconds_total{where=\"aside\"}";
    assert!(of(&after, aside) > of(&before, aside));
    for (budget, value) in [
        ("{of=\"customer\",per=\"second\"}", 0.1),
        ("{of=\"customer\",per=\"burst\"}", 1.0),
        ("{of=\"unpaid\",per=\"second\"}", 0.01),
        ("{of=\"unpaid\",per=\"burst\"}", 0.2),
    ] {
        assert_eq!(
            of(&after, &format!("farebox_work_budget_seconds{budget}")),
            value
        );
    }
}
