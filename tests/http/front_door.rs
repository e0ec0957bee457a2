//! Edge cases of the customers' listener: compressed bodies, HEAD requests, what is not sold, and what a 401 asks for.

use std::io::Write;

use farebox_protocol::Family;
use serde_json::json;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, ask, path, talking};

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_read_within_the_same_limits() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for family in Family::ALL {
        let body = ask(family, "test-model", false);
        let plain = body.to_string();
        let zstd = ruzstd::encoding::compress_to_vec(
            plain.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (coding, bytes) in [
            ("gzip", gzipped(plain.as_bytes())),
            ("zstd", zstd),
            ("identity", plain.clone().into_bytes()),
        ] {
            let headers = [
                ("content-type", "application/json"),
                ("content-encoding", coding),
            ];
            let answer = gateway.send(path(family), &key, bytes, &headers).await;
            assert_eq!(answer.status, 200, "{family} {coding}: {}", answer.text);
            let seen = upstream.requests().pop().unwrap();
            assert_eq!(
                seen.json()["max_tokens"],
                body["max_tokens"],
                "{family} {coding}"
            );
            assert!(
                seen.header("content-encoding").is_none(),
                "{family} {coding}"
            );
        }
    }
    let before = upstream.requests().len();
    let bomb = gzipped(&vec![b' '; 40 << 20]);
    for (coding, bytes, status) in [
        ("gzip", bomb, 413),
        ("gzip", b"no gzip".to_vec(), 400),
        ("br", b"x".to_vec(), 415),
    ] {
        let answer = gateway
            .send(
                path(Family::Chat),
                &key,
                bytes,
                &[("content-encoding", coding)],
            )
            .await;
        assert_eq!(answer.status, status, "{coding}: {}", answer.text);
    }
    let twice = [
        ("content-encoding", "identity"),
        ("content-encoding", "gzip"),
    ];
    let answer = gateway
        .send(path(Family::Chat), &key, gzipped(b"{}"), &twice)
        .await;
    assert_eq!(answer.status, 415, "every header counts: {}", answer.text);
    let cut = gzipped(
        ask(Family::Chat, "test-model", false)
            .to_string()
            .as_bytes(),
    );
    for bytes in [b"no gzip".to_vec(), cut[..cut.len() - 5].to_vec()] {
        let answer = gateway
            .send(
                path(Family::Chat),
                &key,
                bytes,
                &[("content-encoding", "gzip")],
            )
            .await;
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            answer.status == 400 && message.contains("is not coded as its content-encoding says"),
            "{message}"
        );
    }
    assert_eq!(upstream.requests().len(), before);
}

#[tokio::test]
async fn a_body_that_is_no_text_of_ours_is_told_what_it_is() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for family in Family::ALL {
        let marked = [
            b"\xEF\xBB\xBF",
            ask(family, "test-model", false).to_string().as_bytes(),
        ]
        .concat();
        for (body, word) in [(Vec::new(), "is empty"), (marked, "byte order mark")] {
            let answer = gateway.send(path(family), &key, body, &[]).await;
            let message = answer.json()["error"]["message"]
                .as_str()
                .unwrap()
                .to_owned();
            assert!(
                answer.status == 400 && message.contains(word),
                "{family}: {message}"
            );
        }
    }
    assert_eq!(upstream.requests().len(), 0);
}

/// Of other services' names, as clients ask for them.
#[tokio::test]
async fn a_name_with_slashes_is_a_model_that_is_not_found() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for (base, code) in [
        ("/v1/models", json!("model_not_found")),
        ("/native/v1/models", json!(null)),
    ] {
        for name in [
            "openai/gpt-4o",
            "openai%2Fgpt-4o",
            "accounts/fireworks/models/x",
            "openai//gpt",
            "a/",
        ] {
            let answer = gateway.get(&format!("{base}/{name}"), &key).await;
            let error = &answer.json()["error"];
            assert_eq!(
                (answer.status, &error["code"]),
                (404, &code),
                "{base}/{name}: {}",
                answer.text
            );
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("model not found"),
                "{base}/{name}: {}",
                answer.text
            );
        }
        for name in ["test-model/", "test%2Dmodel"] {
            assert_eq!(
                gateway.get(&format!("{base}/{name}"), &key).await.json()["id"],
                "test-model",
                "{base}/{name}"
            );
        }
        let all = gateway.get(&format!("{base}/"), &key).await;
        assert_eq!(
            (all.status, all.json()["data"].is_array()),
            (200, true),
            "{base}/: {}",
            all.text
        );
    }
}

#[tokio::test]
async fn what_can_be_read_can_be_looked_at() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for path in [
        "/v1/models",
        "/v1/models/test-model",
        "/native/v1/models",
        "/native/v1/models/test-model",
        "/v1/key",
        "/v1/usage",
    ] {
        let head = gateway
            .client
            .head(format!("{}{path}", gateway.base))
            .bearer_auth(&key.secret)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (head.status().as_u16(), head.text().await.unwrap().as_str()),
            (200, ""),
            "{path}"
        );
    }
    let head = gateway
        .client
        .head(format!("{}/v1/models", gateway.base))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status().as_u16(), 401, "a key all the same");
    let post = gateway.post("/v1/models", &key, &json!({})).await;
    assert_eq!(post.status, 405, "{}", post.text);
    let one = gateway
        .get("/native/v1/models/test-model", &key)
        .await
        .json();
    let list = gateway.get("/native/v1/models", &key).await.json();
    let listed = list["data"].as_array().unwrap().iter();
    let listed = listed.filter(|model| model["id"] == "test-model");
    assert_eq!(listed.collect::<Vec<_>>(), [&one]);
    assert_eq!(one["type"], "model");
    assert_eq!(
        gateway.get("/native/v1/models/none", &key).await.status,
        404
    );
}

#[tokio::test]
async fn what_is_not_sold_is_named_and_a_401_says_how_to_ask() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    for path in [
        "/v1/moderations",
        "/v1/completions",
        "/native/v1/complete",
        "/api/tags",
        "/api/show",
        "/v1/batches",
        "/v1/files",
        "/native/v1/messages/batches",
    ] {
        let answer = gateway
            .post(path, &key, &json!({"model": "test-model"}))
            .await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(
            answer.text.contains("not offered here"),
            "{path}: {}",
            answer.text
        );
    }
    let nobody = gateway
        .client
        .get(format!("{}/v1/models", gateway.base))
        .send()
        .await
        .unwrap();
    assert_eq!(
        nobody.headers().get("www-authenticate").unwrap(),
        "Bearer realm=\"farebox\""
    );
}

#[tokio::test]
async fn usage_refuses_parameters_that_it_does_not_know() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let answer = gateway.get("/v1/usage?form=2026-11-01", &key).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["param"].clone()),
        (400, json!("form")),
        "{}",
        answer.text
    );
    let usage = gateway
        .get("/v1/usage?from=2026-11-01&to=2026-11-02", &key)
        .await;
    assert!(usage.text.contains("\"refunds\""), "{}", usage.text);
}

#[tokio::test]
async fn a_client_that_opens_a_websocket_is_told_to_use_http() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let opening = |path: &str| {
        let opening = gateway.client.get(format!("{}{path}", gateway.base));
        opening
            .bearer_auth(&key.secret)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    let answer = Answer::read(opening("/v1/responses").send().await.unwrap()).await;
    assert_eq!(answer.status, 426, "{}", answer.text);
    assert!(answer.text.contains("send the request with POST"));
    let elsewhere = opening("/v1/chat/completions").send().await.unwrap();
    assert_eq!(elsewhere.status(), 405);
}
