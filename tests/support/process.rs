//! The real gateway as a separate process: started as an operator would, with its log, its signals and its exit code.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farebox_ledger::LedgerAddress;
use serde_json::Value;

use super::screen::Screen;

/// How long a process may take to do what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `farebox serve`, or a shop beside one. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    log: Arc<Mutex<String>>,
    /// Reads the log to its end.
    reader: Option<JoinHandle<()>>,
    /// Where customers reach it.
    pub(crate) base: String,
    /// Where the operator reaches it.
    pub(crate) admin: String,
    /// Where it runs.
    folder: PathBuf,
    /// The operator's console, if one is open.
    pub(crate) screen: Option<Screen>,
}

/// A command in a folder with `catalog.toml`, `routes.toml` and the ledger; nothing of the test's environment reaches it.
pub(crate) fn farebox(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox"));
    command
        .env_clear()
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// The document that a command prints.
pub(crate) fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = farebox(folder, arguments).arg("--json").output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A key in this folder's ledger, which is made if there is none. It has this many dollars: the document with its `id` and `secret`.
pub(crate) fn funded_key(folder: &Path, usd: &str) -> Value {
    let create = ["keys", "create", "--label", "t"];
    let paid = ["--balance", usd, "--reference", "r"];
    json(folder, &[&create[..], &paid, first(folder)].concat())
}

/// A token of the admin API, made in this folder's ledger.
pub(crate) fn token(folder: &Path, role: &str, label: &str) -> String {
    let create = ["tokens", "create", label, "--role", role];
    let daily = ["--daily", "100"];
    let made = match role {
        "sell" => json(folder, &[&create[..], &daily].concat()),
        _ => json(folder, &create),
    };
    made["secret"].as_str().unwrap().to_owned()
}

/// The shop's program, which `cargo build` makes.
pub(crate) fn shop_program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_farebox")).with_file_name("farebox-shop")
}

/// Writes the file of a shop of test cards before the gateway with this admin listener.
pub(crate) fn shop_file(folder: &Path, admin: &str, token: &str) {
    let file = format!(
        "name = \"Key Corner\"\nlisten = \"127.0.0.1:0\"\ncurrency = \"EUR\"\n\
         [gateway]\napi = \"{admin}\"\nurl = \"http://localhost\"\ntoken = {{ file = \"token\" }}\n\
         [processor]\nsimulated = {{}}\n[[offer]]\ncredit = \"10\"\nprice = \"11.90\"\n"
    );
    std::fs::write(folder.join("token"), token).unwrap();
    std::fs::write(folder.join("shop.toml"), file).unwrap();
}

/// What makes the ledger that a command in this folder uses by itself, if there is none.
fn first(folder: &Path) -> &'static [&'static str] {
    if folder.join("farebox.db").exists() {
        &[]
    } else {
        &["--new-ledger"]
    }
}

/// A client that trusts nobody's certificate: plain HTTP only.
pub(crate) fn client() -> reqwest::Client {
    client_builder().build().unwrap()
}

/// The same before it is built.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}

/// What stands at an address.
pub(crate) async fn text_at(client: &reqwest::Client, url: String) -> String {
    let answer = client.get(url).send().await.unwrap();
    answer.text().await.unwrap()
}

/// The document at an address.
pub(crate) async fn document_at(client: &reqwest::Client, url: String) -> Value {
    serde_json::from_str(&text_at(client, url).await).unwrap()
}

/// One small chat request; what went wrong, in words, unless it is a 200.
pub(crate) async fn ask(
    client: &reqwest::Client,
    base: &str,
    slug: &str,
    secret: &str,
) -> Result<Value, String> {
    let request = client
        .post(format!("{base}/v1/chat/completions"))
        .bearer_auth(secret)
        .json(&super::chat(slug, false));
    let response = request.send().await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let text = response.text().await.map_err(|error| error.to_string())?;
    if status == 200 {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        Err(format!("{status} {text}"))
    }
}

fn on_free_ports(command: &mut Command) -> &mut Command {
    command
        .env("FAREBOX_LISTEN", "127.0.0.1:0")
        .env("FAREBOX_ADMIN_LISTEN", "127.0.0.1:0")
}

impl Served {
    /// Starts it on free ports and waits until it serves. Without a ledger in this folder it makes one, unless another one is named.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn start_with(
        folder: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let elsewhere = arguments.contains(&"--ledger")
            || environment
                .iter()
                .any(|(name, _)| *name == "FAREBOX_LEDGER");
        let first = if elsewhere { &[] } else { first(folder) };
        let mut served = Self::spawn(
            on_free_ports(&mut farebox(folder, &["serve"]))
                .args(first)
                .args(arguments)
                .envs(environment.iter().copied()),
        );
        served.base = served.address_after("serving ", " at ", "/v1");
        served.admin = served.address_after("admin listener", " at ", ": ");
        served
    }

    /// With the operator's console open on this ledger, on its page of alerts: it was open before the day went bad.
    pub(crate) fn watched(mut self, ledger: &str) -> Self {
        self.screen = Screen::open(ledger, &self.admin);
        if let Some(screen) = &self.screen {
            screen.press("A");
            screen.until("Alerts ·");
        }
        self
    }

    /// Starts this command, which may end before it serves: its exit code then.
    pub(crate) fn start_or_end(command: &mut Command) -> Result<Self, ExitStatus> {
        let mut served = Self::spawn(on_free_ports(command));
        let begun = Instant::now();
        while !served.log().contains("admin listener at ") {
            if let Some(status) = served.child.try_wait().unwrap() {
                return Err(status);
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "it neither serves nor ends:\n{}",
                served.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        served.base = served.address_after("serving ", " at ", "/v1");
        served.admin = served.address_after("admin listener", " at ", ": ");
        Ok(served)
    }

    /// Starts the shop with this command and waits until it serves.
    pub(crate) fn shop(command: &mut Command) -> Self {
        let mut shop = Self::spawn(command);
        shop.base = format!("http://{}", shop.address_after("listening", " on ", "\n"));
        shop
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (
            BufReader::new(child.stderr.take().unwrap()).lines(),
            Arc::clone(&log),
        );
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *kept.lock().unwrap() += &(line + "\n");
            }
        });
        Self {
            child,
            log,
            reader: Some(reader),
            base: String::new(),
            admin: String::new(),
            folder: command
                .get_current_dir()
                .map(Path::to_owned)
                .unwrap_or_default(),
            screen: None,
        }
    }

    /// The address in the line with these words, between two others.
    fn address_after(&mut self, line: &str, before: &str, behind: &str) -> String {
        let log = self.wait_for_log(line);
        let line = log.split(line).nth(1).unwrap();
        line.split(before)
            .nth(1)
            .unwrap()
            .split(behind)
            .next()
            .unwrap()
            .to_owned()
    }

    /// What opens its admin listener, from beside the ledger in its folder.
    pub(crate) fn admin_token(&self) -> Option<String> {
        LedgerAddress::File(self.folder.join("farebox.db")).admin_token(None)
    }

    /// What stands at a path of its admin listener, for who has that.
    pub(crate) async fn read(&self, path: &str) -> String {
        let mut request = client().get(format!("{}{path}", self.admin));
        if let Some(token) = self.admin_token() {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap().text().await.unwrap()
    }

    /// One small chat request; what went wrong, in words, unless it is a 200.
    pub(crate) async fn ask(&self, slug: &str, secret: &str) -> Result<Value, String> {
        ask(&client(), &self.base, slug, secret).await
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log says this.
    pub(crate) fn wait_for_log(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "waited in vain for {text:?} ({ended:?}):\n{log}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, and for the end of its log.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.reader.take().map_or(Ok(()), JoinHandle::join).unwrap();
                return status;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "it does not end:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
