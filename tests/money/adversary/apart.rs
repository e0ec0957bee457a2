//! Attempts that do not fit a kind: keys that change, bytes on one connection, and paths that lead elsewhere.

use std::time::Duration;

use farebox_ledger::{Act, Change, KeyChange, KeyEdit, Perform, Said, SecretHash};
use farebox_protocol::Family;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::bodies::PROSE;
use crate::support::billing::{Bills, Manner};
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, ask, path};

/// A gateway and what its provider billed, for attempts with one answer of 4,000 words that takes 2 s.
async fn talkative() -> (Gateway, ScriptedUpstream, Bills) {
    let bills = Bills::default();
    let manner = Manner {
        late: 20,
        pace: 1,
        piece: 60,
        ..Manner::default()
    };
    let upstream = {
        let bills = bills.clone();
        ScriptedUpstream::start(Script::by(move |seen, number| {
            bills.reply(seen, number, &PROSE.repeat(900), manner)
        }))
        .await
    };
    (Gateway::before(&upstream).await, upstream, bills)
}

/// Nearly everything billed is charged; returns a line with both.
async fn assert_paid(
    gateway: &Gateway,
    key: &crate::support::TestKey,
    upstream: &ScriptedUpstream,
    bills: &Bills,
    who: &str,
) -> String {
    gateway.settled().await;
    let charged: i64 = gateway
        .charges(key)
        .await
        .iter()
        .map(|charge| -charge.amount.picos())
        .sum();
    let billed: i64 = bills
        .ended(upstream)
        .iter()
        .map(|billed| billed.cost())
        .sum();
    assert!(
        billed > 0 && billed - charged <= billed / 10 + 200_000 * 3_000_000,
        "{who}: billed {billed}, charged {charged}"
    );
    assert!(
        charged * 100 >= billed * 80,
        "{who}: billed {billed}, charged {charged}"
    );
    format!(
        "{who}: billed {:.3}, charged {:.3}",
        billed as f64 / 1e12,
        charged as f64 / 1e12
    )
}

#[tokio::test]
async fn a_key_that_changes_while_it_streams_pays_for_what_was_made() {
    let now = || farebox::clock::now();
    let later = farebox_ledger::Timestamp::from_millis(now().millis() + 300);
    let limited = KeyEdit {
        concurrency: Said::Set(1),
        expires_at: Said::Set(later),
        ..KeyEdit::default()
    };
    let changes = [
        ("blocked", Change::Block),
        ("revoked", Change::Revoke),
        (
            "rotated",
            Change::Rotate {
                secret: SecretHash::of("another"),
                old_until: None,
            },
        ),
        ("limited and expired", Change::Edit(limited)),
    ];
    for (who, change) in changes {
        let (gateway, upstream, bills) = talkative().await;
        let key = gateway.key("5").await;
        let mut body = ask(Family::Chat, "test-model", true);
        body["max_tokens"] = json!(60_000);
        let asking = (0..8).map(|_| gateway.post(path(Family::Chat), &key, &body));
        let changing = async {
            upstream.request(0).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let act = Act {
                operation: farebox::clock::operation_id(),
                actor: "test".to_owned(),
                at: now(),
            };
            gateway
                .ledger
                .perform(KeyChange {
                    key: key.id,
                    change,
                    act,
                })
                .await
                .unwrap();
        };
        tokio::join!(futures_util::future::join_all(asking), changing);
        println!(
            "{}",
            assert_paid(&gateway, &key, &upstream, &bills, who).await
        );
    }
}

#[tokio::test]
async fn requests_in_one_write_and_a_closed_line_are_paid_for() {
    let (gateway, upstream, bills) = talkative().await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Chat, "test-model", true);
    body["messages"][0]["content"] = json!(PROSE.repeat(600));
    let body = body.to_string();
    let head = |method: &str, length: usize| {
        let lines = [
            format!("{method} /v1/chat/completions HTTP/1.1"),
            "host: x".to_owned(),
            format!("content-length: {length}"),
        ];
        format!(
            "{}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\r\n",
            lines.join("\r\n"),
            key.secret
        )
    };
    let address = gateway.base.trim_start_matches("http://").to_owned();
    for (round, half) in [false, true].into_iter().enumerate() {
        let mut line = tokio::net::TcpStream::connect(&address).await.unwrap();
        // A HEAD first: its answer has no body, so a naive reader takes the next answer's head for it.
        let all = head("HEAD", 0) + &(head("POST", body.len()) + &body).repeat(4);
        line.write_all(all.as_bytes()).await.unwrap();
        if half {
            line.shutdown().await.unwrap();
        }
        let mut some = vec![0; 4_096];
        let _ = tokio::time::timeout(Duration::from_millis(700), line.read(&mut some)).await;
        upstream.request(round).await;
        drop(line);
    }
    // A request whose sender left may have been served first: the books cover what the provider read.
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!(
        "{}",
        assert_paid(&gateway, &key, &upstream, &bills, "pipelined, and left").await
    );
}

/// Places that a request line or a header could lead to, if any of it went upstream as it came.
const ELSEWHERE: [&str; 20] = [
    "/v1/chat/completions/../files",
    "/v1/chat/completions/..%2f..%2ffiles",
    "/v1/%63hat/completions",
    "/v1/chat%2fcompletions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/chat/completions/",
    "/v1/chat/completions;/../batches",
    "/v1/chat/completions?model=dear&path=/files#x",
    "http://other.example/v1/chat/completions",
    "/v1/responses/resp_1",
    "/v1/responses/resp_1/cancel",
    "/v1/responses/compact",
    "/v1/files",
    "/v1/batches",
    "/v1/fine_tuning/jobs",
    "/v1/images/generations",
    "/native/v1/messages/batches",
    "/native/v1/messages/count_tokens/../batches",
    "/native/v1/messages?beta=true",
];

#[tokio::test]
async fn no_request_line_and_no_header_leads_elsewhere() {
    let (gateway, upstream, bills) = talkative().await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Chat, "test-model", false);
    body["max_tokens"] = json!(100);
    let body = body.to_string();
    let address = gateway.base.trim_start_matches("http://").to_owned();
    let headers = "openai-organization: org-x\r\nopenai-project: p\r\nx-http-method-override: DELETE\r\nx-original-url: /v1/files\r\n\
                   x-stainless-helper: x\r\nanthropic-dangerous-direct-browser-access: true\r\nopenai-beta: assistants=v2\r\n\
                   forwarded: host=other.example\r\nx-goog-api-key: k\r\nconnection: close, content-length\r\nupgrade: h2c\r\n";
    for method in ["POST", "PUT", "DELETE", "PATCH", "CONNECT", "GET"] {
        for place in ELSEWHERE {
            let mut line = tokio::net::TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "{method} {place} HTTP/1.1\r\nhost: other.example\r\nauthorization: Bearer {}\r\n",
                key.secret
            );
            let all = format!(
                "{head}{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = line.write_all(all.as_bytes()).await;
            let _ = tokio::time::timeout(Duration::from_secs(5), line.read_to_end(&mut Vec::new()))
                .await;
        }
    }
    let known = [
        "host",
        "user-agent",
        "content-type",
        "accept",
        "accept-encoding",
        "authorization",
        "x-api-key",
        "anthropic-version",
        "content-length",
    ];
    for seen in upstream.requests() {
        assert_eq!(seen.method, "POST");
        // The last place is the native path, with a query that is not passed on.
        assert!(
            matches!(seen.path.as_str(), "/v1/chat/completions" | "/v1/messages"),
            "{}",
            seen.path
        );
        let unknown = |header: &&(String, String)| !known.contains(&header.0.as_str());
        let others: Vec<_> = seen.headers.iter().filter(unknown).collect();
        assert!(others.is_empty(), "{others:?}");
    }
    println!(
        "{}",
        assert_paid(&gateway, &key, &upstream, &bills, "request lines").await
    );
}
