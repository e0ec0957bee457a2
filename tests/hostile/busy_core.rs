//! More customers at once than a busy core can look up: none is taken for a stranger, and nobody pays for what we close.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::support::load::sized;
use crate::support::process::{Served, client, farebox, text_at};
use crate::support::skip::installed;

const CUSTOMERS: usize = 40;
/// Streams that begin in a second.
const PER_SECOND: u32 = 1_000;
const CATALOG: &str = "[[model]]\nmodel = \"Test\"\nslug = \"test-model\"\nprovider = \"P\"\nbest_path = \"chat\"\nbest_environments = [\"x\"]\n\
    price = { input = \"3.00\", output = \"15.00\" }\ncapabilities = [\"streaming\"]\nlimits = { context = 200_000, max_output = 64_000 }\n";
const ROUTES: &str = "[provider.sim]\nsimulated = true\n\n[[route]]\nslug = \"test-model\"\ntargets = [ { provider = \"sim\", model = \"sim-slow\" } ]\n";

/// A process that always wants the first CPU, until it is dropped.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gateway on the first CPU alone, and the secrets of its funded customers.
fn gateway(folder: &Path) -> (Served, Vec<String>) {
    fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
    fs::write(folder.join("routes.toml"), ROUTES).unwrap();
    let rows = (0..CUSTOMERS).map(|number| format!("c{number},20,r{number},250\n"));
    let rows = format!(
        "label,balance,reference,concurrency\n{}",
        rows.collect::<String>()
    );
    fs::write(folder.join("keys.csv"), rows).unwrap();
    let create = [
        "keys",
        "create",
        "--from",
        "keys.csv",
        "--new-ledger",
        "--json",
    ];
    let made = farebox(folder, &create).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let rows = made["rows"].as_array().unwrap().iter();
    let secrets = rows.map(|row| row["secret"].as_str().unwrap().to_owned());
    let secrets = secrets.collect();
    let mut command = Command::new("taskset");
    command.env_clear().current_dir(folder);
    command.args(["-c", "0", env!("CARGO_BIN_EXE_farebox"), "serve"]);
    (Served::start_or_end(&mut command).unwrap(), secrets)
}

/// What a client got: the status, and whether the stream ended properly; 0 for a connection that was closed without a word.
async fn stream(from: [u8; 4], base: &str, secret: &str) -> (u16, bool) {
    let address = base.trim_start_matches("http://").parse().unwrap();
    let body = r#"{"model":"test-model","stream":true,"max_tokens":10,"messages":[{"role":"user","content":"Say PONG"}]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let asked = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let mut stream = socket.connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        read.map(|_| answer)
    };
    let answer: std::io::Result<Vec<u8>> = asked.await;
    let answer = String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or_default(), answer.contains("data: [DONE]"))
}

/// The samples of a series, as `name{labels} value`.
fn samples<'a>(metrics: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &&str| line.starts_with(name);
    metrics.lines().filter(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_many_customers_are_served_however_late_they_are_looked_up() {
    if !installed("taskset", "a busy core") {
        return;
    }
    let streams = u32::try_from(sized(1_200, 5_000)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (served, secrets) = gateway(folder.path());
    let hog = Hog::start();
    let (begun, mut asking) = (Instant::now(), Vec::new());
    for number in 0..streams {
        let due = Duration::from_secs(1) * number / PER_SECOND;
        tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        let customer = usize::try_from(number).unwrap() % CUSTOMERS;
        let from = [127, 0, 7, u8::try_from(1 + customer).unwrap()];
        let (base, secret) = (served.base.clone(), secrets[customer].clone());
        asking.push(tokio::spawn(
            async move { stream(from, &base, &secret).await },
        ));
    }
    let (mut ended, mut refused, mut silent, mut broken) = (0, 0, 0, 0);
    for one in asking {
        match one.await.unwrap() {
            (200, true) => ended += 1,
            (0, _) => silent += 1,
            (200, false) => broken += 1,
            _ => refused += 1,
        }
    }
    drop(hog);
    let took = begun.elapsed();
    let metrics = text_at(&client(), format!("{}/metrics", served.admin)).await;
    let ends = samples(&metrics, "farebox_request_ends_total");
    let closed = samples(&metrics, "farebox_connections_closed_total");
    let found = format!(
        "{streams} streams in {took:?}: {ended} served, {refused} refused, {silent} closed unread, {broken} broken off; {ends:?} {closed:?}"
    );
    println!("{found}");
    assert_eq!((silent, broken), (0, 0), "{found}\n{}", served.log());
    assert!(ended > streams / 2, "{found}");
    for reason in ["client_gone", "gateway_closed"] {
        let of = |line: &&&str| line.contains(&format!("reason=\"{reason}\""));
        assert_eq!(ends.iter().find(of), None, "no client has left: {found}");
    }
}
