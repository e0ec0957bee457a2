//! The files of `deploy/`: each proxy starts with them, before a gateway and before a shop, and passes on a stream frame by frame and a
//! body of 33 MiB whole; what shows nothing like a key has small bodies; the unit's settings start a gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::process::{Served, farebox, funded_key, shop_file, shop_program};
use crate::support::proxies::{Proxy, Scheme, shipped};
use crate::support::skip::{installed, skip};

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

    // Whoever forgot the key is told that, however long the prompt is.
    let forgotten = client
        .post(format!("{base}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body("x".repeat(100_000));
    let forgotten = forgotten.send().await.unwrap();
    assert_eq!(forgotten.status(), 401);
    let words = forgotten.text().await.unwrap().to_lowercase();
    assert!(words.contains("send your key"), "{words}");
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

/// A connection that has sent this and waits.
async fn sent(to: SocketAddr, text: &str, more: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    // Who is refused may find the connection closed.
    let _ = stream.write_all(more).await;
    stream
}

#[tokio::test]
async fn nginx_keeps_no_more_than_16_kib_on_disk_for_whoever_shows_nothing_like_a_key() {
    if !installed("nginx", "what nginx keeps on disk") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (served, secret) = gateway(folder.path());
    let gateway = served.base.strip_prefix("http://").unwrap();
    let proxy = Proxy::nginx(folder.path(), gateway, Scheme::Http, 512);
    up(&client(proxy.address), &format!("http://{}", proxy.address)).await;
    let head = |key: &str, more: &str| {
        let path = "POST /v1/chat/completions HTTP/1.1\r\nhost: api.example.com";
        format!("{path}\r\nauthorization: Bearer {key}\r\n{more}\r\n\r\n")
    };
    let mut waiting = Vec::new();
    // One that begins like a key, an announced body, and one in chunks so small that they fill nginx's buffer six times.
    for key in ["x", &secret[..30]] {
        let announced = head(key, "content-length: 10000000");
        waiting.push(sent(proxy.address, &announced, &vec![b' '; 1 << 20]).await);
        let chunks = b"1\r\n \r\n".repeat(16_000);
        let chunked = head(key, "transfer-encoding: chunked");
        waiting.push(sent(proxy.address, &chunked, &chunks).await);
    }
    // Nothing more is read of it after the answer, which arrives nevertheless.
    let asked = client(proxy.address).post(format!("http://{}/v1/chat/completions", proxy.address));
    let told = asked.body(vec![b' '; 1 << 20]).send().await.unwrap();
    assert_eq!(told.status(), 401);
    assert!(told.text().await.unwrap().contains("no key was sent"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let most = 2 * 16 * 1024;
    assert!(proxy.bodies_on_disk() <= most, "{}", proxy.bodies_on_disk());
    // What shows a key waits on disk, on the path that the file names.
    let announced = head(&secret, "content-length: 10000000");
    waiting.push(sent(proxy.address, &announced, &vec![b' '; 1 << 20]).await);
    let begun = Instant::now();
    while proxy.bodies_on_disk() <= most {
        assert!(begun.elapsed() < PATIENCE, "nothing is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Visitors reach the shop through its proxy, callbacks up to 512 KiB do, and nothing larger waits anywhere.
async fn passes_on_what_a_shop_takes(proxy: &Proxy) {
    let base = format!("http://{}", proxy.address);
    let client = client(proxy.address);
    let begun = Instant::now();
    let page = loop {
        match client.get(&base).send().await {
            Ok(answer) if answer.status() == 200 => break answer.text().await.unwrap(),
            _ => assert!(begun.elapsed() < PATIENCE, "no page"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(page.contains("Key Corner"), "{page}");
    let post = async |path: &str, kind: &str, bytes: usize| {
        let request = client
            .post(format!("{base}{path}"))
            .header("content-type", kind);
        let answer = request.body("x".repeat(bytes)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (urlencoded, json) = ("application/x-www-form-urlencoded", "application/json");
    let (status, text) = post("/webhook", json, 512 << 10).await;
    assert!(
        status == 400 && text.contains("no signature"),
        "{status}: {text}"
    );
    // The shop's own words for a form of more than 4 KiB, and the proxy's for more than 16.
    let (status, text) = post("/checkout", urlencoded, 5_000).await;
    assert!(status == 413 && text.contains("4 KiB"), "{status}: {text}");
    let (status, text) = post("/checkout", urlencoded, 17 << 10).await;
    assert!(status == 413 && !text.contains("4 KiB"), "{status}: {text}");
    // Caddy up to 2.6.2 has no better word for it.
    let (status, text) = post("/webhook", json, 513 << 10).await;
    assert!([413, 502].contains(&status), "{status}: {text}");
}

/// A shop before a gateway that is not there; it shows its prices all the same.
fn shop(folder: &Path) -> Option<Served> {
    if !shop_program().exists() {
        skip("the shipped files for the shop: cargo build makes the shop");
        return None;
    }
    shop_file(folder, "http://127.0.0.1:9", "fb-token-x");
    let mut command = Command::new(shop_program());
    Some(Served::shop(command.env_clear().current_dir(folder)))
}

#[tokio::test]
async fn a_shop_is_served_through_nginx_with_the_shipped_file() {
    if !installed("nginx", "the shop's shipped file for nginx") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = shop(folder.path()) else {
        return;
    };
    let proxy = Proxy::nginx_of_shop(folder.path(), shop.base.strip_prefix("http://").unwrap());
    passes_on_what_a_shop_takes(&proxy).await;
    // A callback that hardly comes waits in memory.
    let head = "POST /webhook HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 500000\r\n\r\n";
    let _waiting = sent(proxy.address, head, &vec![b'x'; 300 << 10]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(proxy.bodies_on_disk(), 0);
}

#[tokio::test]
async fn a_shop_is_served_through_caddy_with_the_shipped_file() {
    if !installed("caddy", "the shop's shipped file for Caddy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = shop(folder.path()) else {
        return;
    };
    let proxy = Proxy::caddy_of_shop(folder.path(), shop.base.strip_prefix("http://").unwrap());
    passes_on_what_a_shop_takes(&proxy).await;
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
