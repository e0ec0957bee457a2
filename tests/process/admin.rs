//! The admin listener: health, counters, status and the live stream; who may see them, and that no secret is in any of it.

use std::io::ErrorKind;
use std::time::Duration;

use farebox_protocol::Family;
use futures_util::StreamExt;
use serde_json::Value;

use crate::support::process::text_at;
use crate::support::upstream::{Gate, Reply, ScriptedUpstream, Speech};
use crate::support::{Answer, CATALOG, Gateway, chat, routes, talking};

const CHAT: &str = "/v1/chat/completions";

/// The value of a sample, or 0 when there is none.
fn sample(metrics: &str, name: &str) -> f64 {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn health_and_readiness() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    assert_eq!(
        (
            gateway.ask("/healthz").await.status,
            gateway.ask("/readyz").await.text.as_str()
        ),
        (200, "ready\n")
    );
    assert_eq!(gateway.ask("/").await.status, 404);
    let posted = gateway
        .client
        .post(format!("{}/status", gateway.admin))
        .send()
        .await
        .unwrap();
    assert_eq!(posted.status().as_u16(), 405, "reads only");
    for path in ["/healthz", "/readyz", "/status", "/metrics", "/live"] {
        let head = gateway.client.head(format!("{}{path}", gateway.admin));
        let head = head.send().await.unwrap();
        assert_eq!(head.status().as_u16(), 200, "{path}");
        assert!(head.bytes().await.unwrap().is_empty(), "{path}");
    }
    let customers = gateway
        .client
        .get(format!("{}/metrics", gateway.base))
        .send()
        .await
        .unwrap();
    assert_eq!(
        customers.status().as_u16(),
        404,
        "the customers' listener has none of it"
    );
}

#[tokio::test]
async fn a_stopping_gateway_is_not_ready_and_still_shows_itself() {
    let gate = Gate::new();
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "slow").whole().gated(&gate)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let (ask, base) = (gateway.client.clone(), gateway.admin.clone());
    let running = tokio::spawn({
        let request = gateway
            .client
            .post(format!("{}{CHAT}", gateway.base))
            .bearer_auth(&key.secret);
        request.json(&chat("test-model", false)).send()
    });
    upstream.request(0).await;
    let address = gateway.base.strip_prefix("http://").unwrap().to_owned();
    let stopping = tokio::spawn(gateway.stop());
    let not_ready = async {
        loop {
            let ready = Answer::read(ask.get(format!("{base}/readyz")).send().await.unwrap()).await;
            if (ready.status, ready.text.as_str()) == (503, "not ready: the gateway is stopping\n")
            {
                break;
            }
        }
        // A proxy can ask another gateway at once.
        while tokio::net::TcpStream::connect(&address)
            .await
            .map_err(|error| error.kind())
            .err()
            != Some(ErrorKind::ConnectionRefused)
        {}
    };
    tokio::time::timeout(Duration::from_secs(60), not_ready)
        .await
        .expect("it says that it stops, and takes no more connections");
    let metrics = text_at(&ask, format!("{base}/metrics")).await;
    assert_eq!(
        (
            sample(&metrics, "farebox_draining"),
            sample(&metrics, "farebox_holds")
        ),
        (1.0, 1.0)
    );
    gate.open();
    assert_eq!(
        running.await.unwrap().unwrap().status().as_u16(),
        200,
        "the running request is answered"
    );
    stopping.await.unwrap();
}

#[tokio::test]
async fn metrics_count_requests_tokens_and_money_with_bounded_labels() {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    // The poor one has enough for its body to be read.
    let (key, poor) = (gateway.key("5.00").await, gateway.key("0.00001").await);
    for _ in 0..3 {
        assert_eq!(
            gateway
                .post(CHAT, &key, &chat("test-model", false))
                .await
                .status,
            200
        );
    }
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-model", true))
            .await
            .status,
        200
    );
    for number in 0..5 {
        assert_eq!(
            gateway
                .post(CHAT, &key, &chat(&format!("made-up-{number}"), false))
                .await
                .status,
            404
        );
    }
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-old", false))
            .await
            .status,
        404
    );
    assert_eq!(
        gateway
            .post(CHAT, &poor, &chat("test-model", false))
            .await
            .status,
        429
    );
    gateway.settled().await;

    let answer = gateway.ask("/metrics").await;
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    let metrics = &answer.text;
    let of = |name: &str| sample(metrics, name);
    assert_eq!(
        of(r#"farebox_requests_total{slug="test-model",family="chat",status="200"}"#),
        4.0
    );
    assert_eq!(
        of(r#"farebox_requests_total{slug="",family="chat",status="404"}"#),
        5.0,
        "{metrics}"
    );
    assert!(
        !metrics.contains("made-up"),
        "a customer's text is never a label"
    );
    assert_eq!(
        of(r#"farebox_refusals_total{reason="model_not_found"}"#),
        5.0
    );
    assert_eq!(of(r#"farebox_refusals_total{reason="model_retired"}"#), 1.0);
    assert_eq!(
        of(r#"farebox_refusals_total{reason="out_of_balance"}"#),
        1.0
    );
    assert_eq!(
        of(r#"farebox_tokens_total{slug="test-model",kind="input"}"#),
        40.0
    );
    assert_eq!(
        of(r#"farebox_tokens_total{slug="test-model",kind="output"}"#),
        12.0
    );
    // 4 × (10 × $3 + 3 × $15) per million.
    assert!(
        metrics.contains("farebox_charged_usd_total{slug=\"test-model\"} 0.0003\n"),
        "{metrics}"
    );
    assert_eq!(
        of(r#"farebox_request_seconds_count{slug="test-model",family="chat"}"#),
        5.0
    );
    assert_eq!(
        of(r#"farebox_first_byte_seconds_count{slug="test-model",family="chat"}"#),
        4.0
    );
    assert_eq!(
        of("farebox_own_seconds_count"),
        4.0,
        "refused requests have no own time"
    );
    assert!(of("farebox_own_seconds_sum") > 0.0);
    assert_eq!(
        of(
            r#"farebox_target_state{slug="test-model",target="up/upstream-model-1",state="closed"}"#
        ),
        1.0
    );
    assert_eq!(
        of(r#"farebox_target_requests_total{slug="test-model",target="up/upstream-model-1"}"#),
        4.0
    );
    assert!(
        of("farebox_ledger_commit_seconds_count") >= 4.0 && of("farebox_ledger_writable") == 1.0
    );
    assert_eq!(
        (
            of("farebox_keys"),
            of("farebox_holds"),
            of("farebox_held_usd")
        ),
        (2.0, 0.0, 0.0)
    );
    assert!(
        metrics.contains("farebox_balance_usd 4.99971\n"),
        "{metrics}"
    );
    well_formed(metrics);
}

/// Every line is a comment or a sample of the metric announced last, and no series appears twice.
fn well_formed(metrics: &str) {
    let (mut seen, mut current) = (std::collections::HashSet::new(), String::new());
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            rest.split(' ').next().unwrap().clone_into(&mut current);
            assert!(seen.insert(line.to_owned()), "announced twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(
                series.starts_with(&current) && value.parse::<f64>().is_ok(),
                "{line}"
            );
            assert!(seen.insert(series.to_owned()), "twice: {line}");
        }
    }
}

#[tokio::test]
async fn status_says_what_runs_and_nothing_secret() {
    let upstream = ScriptedUpstream::start(Reply::error(
        529,
        "overloaded_error",
        None,
        "busy upstream-secret-of-UPSTREAM_KEY",
    ))
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    assert_eq!(
        gateway
            .post(CHAT, &key, &chat("test-model", false))
            .await
            .status,
        503
    );
    let answer = gateway.ask("/status").await;
    let status = answer.json();
    assert_eq!(
        (
            status["state"].as_str(),
            status["generation"].as_u64(),
            status["ready"].as_bool()
        ),
        (Some("ok"), Some(1), Some(true))
    );
    assert_eq!(status["public_url"], gateway.base);
    let model = &status["models"][0];
    assert_eq!(
        (model["slug"].as_str(), model["price"]["output"].as_str()),
        (Some("test-model"), Some("15.00"))
    );
    assert_eq!(
        (model["context"].as_u64(), model["best_path"].as_str()),
        (Some(200_000), Some("chat"))
    );
    assert_eq!(status["retired"][0]["use"], "test-model");
    let target = &status["targets"][0];
    assert_eq!(
        (target["provider"].as_str(), target["target"].as_str()),
        (Some("up"), Some("upstream-model-1"))
    );
    assert_eq!(
        (target["state"].as_str(), target["errors"].as_u64()),
        (Some("closed"), Some(1))
    );
    assert!(
        target["reason"].as_str().unwrap().starts_with("busy: 529"),
        "{target}"
    );
    assert_eq!(
        (
            status["providers"][0]["name"].as_str(),
            status["providers"][0]["simulated"].as_bool()
        ),
        (Some("up"), Some(false))
    );
    assert_eq!(status["routes"][0]["on_disconnect"], "cancel");
    assert_eq!(status["ledger"]["queue"], 0);
    assert_eq!(
        status["ledger"]["path"],
        gateway.ledger_path().display().to_string()
    );
    assert!(
        !answer.text.contains("upstream-secret") && !answer.text.contains(&key.secret),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn live_shows_the_past_and_then_each_request() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for _ in 0..2 {
        gateway.post(CHAT, &key, &chat("test-model", false)).await;
    }
    let mut live = Events::open(&gateway, gateway.admin_token.as_deref()).await;
    let first = live.next().await;
    assert_eq!(
        (first["status"].as_u64(), first["slug"].as_str()),
        (Some(200), Some("test-model"))
    );
    assert_eq!(first["key"], key.id.to_string());
    assert_eq!(
        (first["target"].as_str(), first["family"].as_str()),
        (Some("up/upstream-model-1"), Some("chat"))
    );
    assert_eq!(first["usage"]["input"], 10);
    assert_eq!(
        (first["charge"].as_str(), first["loss"].as_str()),
        (Some("0.000045"), Some("0.00"))
    );
    assert!(first["at"].as_str().unwrap().ends_with('Z') && first["own_us"].as_u64().is_some());
    assert_eq!(first["client"], "127.0.0.1");
    live.next().await;
    gateway.post(CHAT, &key, &chat("nonsense", false)).await;
    let refused = live.next().await;
    assert_eq!(
        (refused["status"].as_u64(), refused["end_reason"].as_str()),
        (Some(404), Some("model_not_found"))
    );
    assert!(
        !live.text.contains("Say PONG") && !live.text.contains(&key.secret),
        "no body and no secret: {}",
        live.text
    );
}

/// A reader of `/live`.
struct Events {
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
    read: usize,
}

impl Events {
    async fn open(gateway: &Gateway, token: Option<&str>) -> Self {
        let mut request = gateway.client.get(format!("{}/live", gateway.admin));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.bytes_stream().boxed(),
            text: String::new(),
            read: 0,
        }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some(length) = self.text[self.read..].find("\n\n") {
                let event = self.text[self.read..self.read + length].to_owned();
                self.read += length + 2;
                if let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return serde_json::from_str(data).unwrap();
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(60), self.body.next())
                .await
                .expect("an event")
                .unwrap()
                .unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[tokio::test]
async fn metrics_status_and_live_want_the_token_that_is_set() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "the-operators-own-token\n").unwrap();
    let with_token = |path: std::path::PathBuf| {
        move |settings: &mut farebox_cli::app::Settings| settings.admin_token_file = Some(path)
    };
    let gateway = Gateway::start_with(
        CATALOG,
        &routes(&upstream.base_url()),
        with_token(token.path().to_owned()),
    )
    .await;
    for path in ["/metrics", "/status", "/live"] {
        assert_eq!(gateway.ask(path).await.status, 401, "{path}");
        let url = format!("{}{path}", gateway.admin);
        let wrong = gateway
            .client
            .get(&url)
            .bearer_auth("the-operators-own-tokex")
            .send()
            .await
            .unwrap();
        assert_eq!(wrong.status().as_u16(), 401, "{path}");
        let right = gateway
            .client
            .get(&url)
            .bearer_auth("the-operators-own-token")
            .send()
            .await
            .unwrap();
        assert_eq!(right.status().as_u16(), 200, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(gateway.ask(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn off_loopback_metrics_status_and_live_are_closed_without_a_token() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let everywhere = |settings: &mut farebox_cli::app::Settings| {
        settings.admin_listen = Some("0.0.0.0:0".parse().unwrap())
    };
    let gateway = Gateway::start_with(CATALOG, &routes(&upstream.base_url()), everywhere).await;
    for (path, status) in [
        ("/status", 403),
        ("/live", 403),
        ("/requests/req_1", 403),
        ("/metrics", 403),
        ("/healthz", 200),
        ("/readyz", 200),
    ] {
        let answer = gateway.ask(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(
            answer.text.contains("--admin-token-file"),
            status == 403,
            "{path}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn only_a_trusted_proxy_says_where_a_request_came_from() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let trusting = |settings: &mut farebox_cli::app::Settings| {
        settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]
    };
    for (gateway, expected) in [
        (Gateway::before(&upstream).await, ("127.0.0.1", false)),
        (
            Gateway::start_with(CATALOG, &routes(&upstream.base_url()), trusting).await,
            ("198.51.100.7", true),
        ),
    ] {
        let key = gateway.key("5.00").await;
        let request = gateway
            .client
            .post(format!("{}{CHAT}", gateway.base))
            .bearer_auth(&key.secret);
        let request = request
            .header("x-forwarded-for", "203.0.113.1, 198.51.100.7")
            .header("x-forwarded-proto", "https");
        assert_eq!(
            request
                .json(&chat("test-model", false))
                .send()
                .await
                .unwrap()
                .status()
                .as_u16(),
            200
        );
        gateway.settled().await;
        let origin = gateway.records.all()[0].origin;
        assert_eq!(
            (origin.client.unwrap().to_string().as_str(), origin.secure),
            expected
        );
    }
}
