//! The files of `deploy/`: each proxy starts with them and passes on a stream frame by frame and a body of 33 MiB whole; the
//! unit's settings start a gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;

use crate::support::process::{Served, farebox, funded_key};
use crate::support::proxies::{Proxy, Scheme, shipped};
use crate::support::skip::installed;

/// How long a proxy may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway with a slow `sim-chat`, and a funded key.
fn gateway(folder: &Path) -> (Served, String) {
    let root = Path::new(crate::support::HOME);
    fs::copy(root.join("catalog.toml"), folder.join("catalog.toml")).unwrap();
    let routes = fs::read_to_string(root.join("routes.toml")).unwrap();
    fs::write(
        folder.join("routes.toml"),
        routes.replacen("model = \"sim\"", "model = \"sim-slow\"", 1),
    )
    .unwrap();
    let made = funded_key(folder, "10");
    let served = Served::start(folder, &[]);
    (served, made["secret"].as_str().unwrap().to_owned())
}

/// A client that takes the name of the shipped configuration for the proxy's address.
fn client(proxy: SocketAddr) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .http1_only()
        .tls_danger_accept_invalid_certs(true);
    client.resolve("api.example.com", proxy).build().unwrap()
}

async fn up(client: &reqwest::Client, base: &str) {
    let start = Instant::now();
    while client.head(format!("{base}/v1")).send().await.is_err() {
        assert!(start.elapsed() < PATIENCE, "the proxy does not answer");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A stream arrives in pieces while the model still talks, and a body that is too large is refused in the gateway's own words.
async fn passes_everything_on(client: &reqwest::Client, base: &str, secret: &str) {
    up(client, base).await;
    let body = json!({ "model": "sim-chat", "stream": true, "max_tokens": 64, "messages": [{ "role": "user", "content": "Count to five" }] });
    // A client that did not get the processor reads several pieces as one; a proxy that keeps them back does so in every try.
    let mut tries = Vec::new();
    while !tries
        .iter()
        .any(|(pieces, apart)| *pieces >= 4 && *apart > Duration::from_millis(200))
    {
        assert!(
            tries.len() < 5,
            "the stream is not passed on piece by piece: {tries:?}"
        );
        let answer = client
            .post(format!("{base}/v1/chat/completions"))
            .bearer_auth(secret)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let mut arrivals = Vec::new();
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.next().await {
            piece.unwrap();
            arrivals.push(Instant::now());
        }
        tries.push((
            arrivals.len(),
            arrivals.last().unwrap().duration_since(arrivals[0]),
        ));
    }

    let large = "x".repeat(33 * 1024 * 1024);
    let refused = client
        .post(format!("{base}/v1/chat/completions"))
        .bearer_auth(secret)
        .body(large)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 413);
    let refused: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "request_too_large", "{refused}");
}

#[tokio::test]
async fn nginx_starts_with_the_shipped_file() {
    if !installed("nginx", "the shipped file for nginx") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (served, secret) = gateway(folder.path());
    let gateway = served.base.strip_prefix("http://").unwrap();
    let proxy = Proxy::nginx(folder.path(), gateway, Scheme::Https, 512);
    passes_everything_on(
        &client(proxy.address),
        &format!("https://api.example.com:{}", proxy.address.port()),
        &secret,
    )
    .await;
}

#[tokio::test]
async fn caddy_starts_with_the_shipped_file() {
    if !installed("caddy", "the shipped file for Caddy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (served, secret) = gateway(folder.path());
    let proxy = Proxy::caddy(folder.path(), served.base.strip_prefix("http://").unwrap());
    let base = format!("http://{}", proxy.address);
    passes_everything_on(&client(proxy.address), &base, &secret).await;
}

#[test]
fn the_units_settings_start_a_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    assert!(
        farebox(folder.path(), &["init"])
            .status()
            .unwrap()
            .success()
    );
    funded_key(folder.path(), "1");
    let unit = shipped("farebox.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/farebox serve "))
        .unwrap();
    let settings: Vec<(String, String)> = shipped("farebox.env")
        .lines()
        .filter_map(|line| line.split_once('=').filter(|_| !line.starts_with('#')))
        .map(|(name, value)| {
            (
                name.to_owned(),
                value
                    .replace("/etc/farebox", &here)
                    .replace("/var/lib/farebox", &here),
            )
        })
        .map(|(name, value)| {
            if name.ends_with("LISTEN") {
                (name, "127.0.0.1:0".to_owned())
            } else {
                (name, value)
            }
        })
        .collect();
    assert!(settings.len() >= 7);
    let pairs: Vec<(&str, &str)> = settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let served = Served::start_with(folder.path(), &start.split(' ').collect::<Vec<_>>(), &pairs);
    let log = served.log();
    assert!(
        log.contains("https://api.example.com/v1") && !log.contains("WARN"),
        "{log}"
    );
}
