//! The files of `deploy/`: each proxy starts with them and passes on a stream frame by frame and a body of 33 MiB whole; the
//! unit's settings start a gateway.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::json;

use crate::support::process::{Served, farebox, json as document};
use crate::support::skip::installed;

/// How long a proxy may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

fn shipped(name: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("deploy")
            .join(name),
    )
    .unwrap()
}

/// Loopback addresses that nothing else uses, so that nobody takes a port before the proxy does.
const NGINX: [u8; 4] = [127, 0, 8, 2];
const CADDY: [u8; 4] = [127, 0, 8, 3];

fn free_port(at: [u8; 4]) -> SocketAddr {
    TcpListener::bind(SocketAddr::from((at, 0)))
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A running proxy. Dropping it stops it.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gateway with a slow `sim-chat`, and a funded key.
fn gateway(folder: &Path) -> (Served, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("catalog.toml"), folder.join("catalog.toml")).unwrap();
    let routes = fs::read_to_string(root.join("routes.toml")).unwrap();
    fs::write(
        folder.join("routes.toml"),
        routes.replacen("model = \"sim\"", "model = \"sim-slow\"", 1),
    )
    .unwrap();
    let made = document(
        folder,
        &[
            "keys",
            "create",
            "--new-ledger",
            "--label",
            "t",
            "--balance",
            "10",
            "--reference",
            "r",
        ],
    );
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
    let (proxy, here) = (free_port(NGINX), folder.path().display().to_string());
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let site = shipped("nginx.conf")
        .replace(
            "127.0.0.1:8080",
            served.base.strip_prefix("http://").unwrap(),
        )
        .replace("[::]:443", &format!("[::1]:{}", proxy.port()))
        .replace("listen 443", &format!("listen {proxy}"))
        .replace(
            "/etc/letsencrypt/live/api.example.com/fullchain.pem",
            &tls.join("first.crt").display().to_string(),
        )
        .replace(
            "/etc/letsencrypt/live/api.example.com/privkey.pem",
            &tls.join("first.key").display().to_string(),
        );
    fs::write(folder.path().join("site.conf"), site).unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {here}/{name};\n"))
        .concat();
    let whole = format!(
        "pid {here}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}include {here}/site.conf;\n}}\n"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, whole).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("nginx");
        command
            .args(["-e", "stderr", "-p", &here, "-c"])
            .arg(&file)
            .args(arguments)
            .stdin(Stdio::null());
        command
    };
    let checked = run(&["-t"]).output().unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let _proxy = Proxy(
        run(&["-g", "daemon off; master_process off;"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    passes_everything_on(
        &client(proxy),
        &format!("https://api.example.com:{}", proxy.port()),
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
    let proxy = free_port(CADDY);
    // A test has no public name to get a certificate for: plain HTTP, the rest as shipped.
    let site = shipped("Caddyfile")
        .replace(
            "127.0.0.1:8080",
            served.base.strip_prefix("http://").unwrap(),
        )
        .replace("api.example.com {", &format!("http://{proxy} {{"));
    let file: PathBuf = folder.path().join("Caddyfile");
    fs::write(
        &file,
        format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}"),
    )
    .unwrap();
    let mut command = Command::new("caddy");
    command
        .arg("run")
        .arg("--adapter")
        .arg("caddyfile")
        .arg("--config")
        .arg(&file)
        .env("HOME", folder.path());
    command
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path());
    let _proxy = Proxy(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    passes_everything_on(&client(proxy), &format!("http://{proxy}"), &secret).await;
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
