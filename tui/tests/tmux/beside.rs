//! The console beside a real gateway that serves requests meanwhile: acts in one take effect in the other.
//!
//! The gateway is the `farebox` built beside the console; without one these tests fail.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use farebox_ledger::{CustomerId, CustomerSettings, KeyId, Ledger};
use serde_json::Value;

use super::console::*;

/// `farebox serve` with the shipped files, whose models are simulated.
pub(crate) struct Served {
    child: Child,
    base: String,
    pub(crate) admin: String,
}

pub(crate) fn farebox() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_farebox-console")).with_file_name("farebox");
    if !path.exists() {
        crate::skip::skip("the console beside a gateway: cargo build makes the gateway");
    }
    path.exists().then_some(path)
}

impl Served {
    pub(crate) fn start(farebox: &Path, console: &Console) -> Self {
        let folder = console.path("");
        for (name, text) in [
            ("catalog.toml", include_str!("../../../catalog.toml")),
            ("routes.toml", include_str!("../../../routes.toml")),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut child = Command::new(farebox)
            .current_dir(&folder)
            .args([
                "serve",
                "--ledger",
                console.address(),
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (mut base, mut admin) = (None, None);
        while base.is_none() || admin.is_none() {
            let line = lines.next().unwrap();
            base = base
                .or_else(|| address(&line, " at http://").filter(|_| line.contains("serving ")));
            admin = admin.or_else(|| address(&line, "admin listener at http://"));
        }
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            base: base.unwrap(),
            admin: admin.unwrap(),
        }
    }

    /// Status and body of one POST.
    fn post(&self, path: &str, kind: &str, secret: &str, body: &str) -> (u16, String) {
        send(&self.base, &format!("POST {path}"), kind, secret, body)
    }

    /// Has a program edit a customer.
    fn edit(&self, token: &str, customer: CustomerId, body: &str) {
        let request = format!("PATCH /api/v1/customers/{customer}");
        let (status, answer) = send(&self.admin, &request, "application/json", token, body);
        assert_eq!(status, 200, "{answer}");
    }

    pub(crate) fn chat(&self, secret: &str) -> u16 {
        self.ask(secret).0
    }

    fn ask(&self, secret: &str) -> (u16, String) {
        let body = r#"{"model":"sim-chat","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}"#;
        self.post("/v1/chat/completions", "application/json", secret, body)
    }

    fn tell(&self, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &self.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The secret of a new token for a program that manages.
fn new_token(farebox: &Path, console: &Console) -> String {
    let made = Command::new(farebox)
        .args(["--ledger", console.address(), "--json"])
        .args(["tokens", "create", "crm", "--role", "manage"])
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["secret"].as_str().unwrap().to_owned()
}

/// Status and body of one request.
fn send(to: &str, request: &str, kind: &str, secret: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {secret}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

/// `host:port` that stands behind these words.
fn address(line: &str, before: &str) -> Option<String> {
    let (_, rest) = line.split_once(before)?;
    rest.split(['/', ' '])
        .next()
        .map(|address| address.trim_end_matches(':').to_owned())
}

/// Requests of one key, one after the other, until dropped.
struct Load {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(gateway: &Arc<Served>, secret: &str) -> Self {
        let (stop, served) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let worker = || {
            let (gateway, secret, stop, served) = (
                Arc::clone(gateway),
                secret.to_owned(),
                Arc::clone(&stop),
                Arc::clone(&served),
            );
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(gateway.chat(&secret), 200);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let threads = (0..2).map(|_| worker()).collect();
        Self {
            stop,
            served,
            threads,
        }
    }

    /// Ends it; how many requests were served.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        self.served.load(Ordering::Relaxed)
    }
}

/// The secret of the key with this number, as `seed` made it.
pub(crate) fn secret(number: u64) -> String {
    farebox_ledger::Secret::generate(farebox_ledger::KeyId::from_random(number), [7; 32])
        .reveal()
        .to_owned()
}

fn beside() -> Option<(Console, Arc<Served>)> {
    let farebox = has_tmux().then(farebox).flatten()?;
    let console = Console::not_started(3);
    let gateway = Served::start(&farebox, &console);
    console.start_with(&format!("--admin http://{}", gateway.admin));
    console.wait_for("Keys ·");
    Some((console, Arc::new(gateway)))
}

#[test]
fn the_life_of_a_customer_under_load() {
    let Some((console, gateway)) = beside() else {
        return;
    };
    let load = Load::start(&gateway, &secret(2));
    // At zero it is refused there; topped up here, its next request is served.
    let (status, refusal) = gateway.ask(&secret(1));
    assert!(
        status == 429 && refusal.contains("insufficient_quota"),
        "{refusal}"
    );
    console.review_a_top_up("5", "inv-1");
    console.press(&["y", "y"]);
    console.wait_for("✓ applied");
    assert_eq!(gateway.chat(&secret(1)), 200);
    console.press(&["Escape", "2"]);
    console.wait_for("sim-chat");
    // Blocked and served again.
    console.press(&["1", "G"]);
    console.wait_for("> k_0000000001");
    for (word, status) in [("blocked", 403), ("active", 200)] {
        console.press(&["b"]);
        console.wait_for("[ Cancel ]");
        console.press(&["y"]);
        console.wait_for("✓");
        console.press(&["Escape"]);
        assert_eq!(gateway.chat(&secret(1)), status, "{word}");
    }
    let served = load.end();
    assert!(served > 10, "{served}");
    let (_, entries) = console.books(2);
    assert_eq!(
        entries as u64,
        served + 1,
        "one charge for each request and the first money"
    );
}

#[test]
fn a_form_undoes_nothing_that_a_program_changed_while_it_was_open() {
    let Some(farebox) = farebox() else { return };
    let Some((console, gateway)) = beside() else {
        return;
    };
    let customer = CustomerId::made_for(KeyId::from_random(1));
    let token = new_token(&farebox, &console);
    console.press(&["U", "/", "customer-1", "Enter"]);
    console.wait_for("Customers · customer-1 · 1");
    console.press(&["e"]);
    console.wait_for("Low balance");
    let body = r#"{"rate":20,"low_balance":"2","name":"Ada L."}"#;
    gateway.edit(&token, customer, body);
    // The form shows no rate and no low balance, and what it changes is another thing.
    console.press(&[" of the school", "Tab", "crm-1", "C-s"]);
    console.wait_for("[ Cancel ]");
    gateway.edit(&token, customer, r#"{"concurrency":7}"#);
    console.press(&["y"]);
    console.wait_for("✓ applied");
    let found = run(console.open().find_external("crm-1")).unwrap().unwrap();
    let expected = CustomerSettings {
        label: "customer-1 of the school".to_owned(),
        external_id: Some("crm-1".to_owned()),
        price_list: None,
        low_balance: Some(usd("2")),
        rate: Some(20),
        concurrency: Some(7),
    };
    assert_eq!((found.id, found.settings), (customer, expected));
    assert_eq!(run(console.open().verify()).unwrap().faults, [""; 0]);
}

#[test]
fn whatever_a_customer_names_is_found() {
    let Some((console, gateway)) = beside() else {
        return;
    };
    let find = |what: &str, shows: &str| {
        console.press(&["F"]);
        console.wait_for("Find");
        console.press(&[what, "Enter"]);
        let page = console.wait_for(shows);
        console.press(&["Escape"]);
        page
    };
    find("seed-2", "Reference   seed-2");
    find("customer-3", "Key k_0000000003 · customer-3");
    find(&secret(2), "Key k_0000000002 · customer-2");
    let body =
        r#"{"model":"sim-chat","surprise":1,"messages":[{"role":"user","content":"hello"}]}"#;
    let path = "/v1/chat/completions";
    let (status, answer) = gateway.post(path, "application/json", &secret(2), body);
    assert_eq!(status, 400, "{answer}");
    let id = |answer: &str| {
        let (_, rest) = answer.split_once("req_").unwrap();
        let digits = rest.chars().take_while(char::is_ascii_alphanumeric);
        format!("req_{}", digits.collect::<String>())
    };
    let refused = find(&id(&answer), "not in the journal");
    assert!(refused.contains("surprise"), "{refused}");
    let (status, answer) = gateway.ask(&secret(2));
    assert_eq!(status, 200, "{answer}");
    let charged = find(&id(&answer), "Bill");
    assert!(charged.contains("sim-chat"), "{charged}");
    find("nothing-has-this-name", "nothing in the ledger has this id");
}

#[test]
fn a_link_made_here_signs_in_there_once() {
    let Some((console, gateway)) = beside() else {
        return;
    };
    // The base is the gateway's own public URL, which the console learns from it.
    console.press(&["7"]);
    console.wait_for("generation 1");
    console.press(&["1", "G"]);
    console.wait_for("> k_0000000001");
    console.press(&["L"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    let page = console.wait_for("for one sign-in");
    let start = format!("http://{}/dashboard/enter#", gateway.base);
    let letters: String = page
        .chars()
        .filter(|letter| letter.is_ascii_graphic())
        .collect();
    let token: String = letters
        .split_once(&start)
        .unwrap()
        .1
        .chars()
        .take(64)
        .collect();
    assert!(
        token.chars().all(|letter| letter.is_ascii_hexdigit()),
        "{page}"
    );
    let enter = || {
        gateway.post(
            "/dashboard/enter",
            "application/x-www-form-urlencoded",
            "",
            &format!("token={token}"),
        )
    };
    let (status, answer) = enter();
    assert!(
        status == 303 && answer.to_ascii_lowercase().contains("set-cookie: farebox="),
        "{answer}"
    );
    assert_eq!(enter().0, 401, "a link works once");
}

#[test]
fn a_new_key_says_the_base_urls_that_answer() {
    let Some((console, gateway)) = beside() else {
        return;
    };
    console.press(&["7"]);
    console.wait_for("generation 1");
    console.press(&[
        "1", "n", "somebody", "Enter", "5", "Enter", "inv-n", "Enter", "C-s",
    ]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    let page = console.wait_for("sk-fb-");
    let secret = page
        .split_whitespace()
        .find(|word| word.starts_with("sk-fb-"))
        .unwrap();
    for base in [
        format!("http://{}/v1", gateway.base),
        format!("http://{}/native", gateway.base),
    ] {
        assert!(page.contains(&base), "{base}: {page}");
    }
    assert_eq!(gateway.chat(secret), 200);
    let body = r#"{"model":"claude-sim-sonnet","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}"#;
    let (status, answer) = gateway.post("/native/v1/messages", "application/json", secret, body);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_reload_shows_what_it_changed_and_a_mistake_where_it_is() {
    let Some((console, gateway)) = beside() else {
        return;
    };
    let catalog = std::fs::read_to_string(console.path("catalog.toml")).unwrap();
    console.press(&["7"]);
    console.wait_for("generation 1");
    let dearer = catalog.replacen("output = \"10.00\"", "output = \"987.00\"", 1);
    assert_ne!(dearer, catalog);
    std::fs::write(console.path("catalog.toml"), dearer).unwrap();
    gateway.tell("-HUP");
    console.wait_for("generation 2");
    let screen = console.wait_for("Changes in the last reload");
    assert!(screen.contains("987.00"), "{screen}");
    std::fs::write(console.path("catalog.toml"), format!("{catalog}\n[[[\n")).unwrap();
    gateway.tell("-HUP");
    console.wait_for("NEW FILES REJECTED");
    console.press(&["G"]);
    console.wait_for("^");
    let started = Instant::now();
    while gateway.chat(&secret(2)) != 200 {
        assert!(
            started.elapsed() < PATIENCE,
            "the running version stays in force"
        );
    }
}
