//! A gateway for tests: the real one, in this process, on a free port, with its own ledger.
//!
//! Tests talk to it over sockets like a customer. What a customer cannot see (the journal, reported records) is read here.

pub(crate) mod answers;
pub(crate) mod big_ledger;
pub(crate) mod billing;
pub(crate) mod browser;
pub(crate) mod checker;
#[path = "../../ledger/tests/common/cluster.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
pub(crate) mod cluster;
pub(crate) mod codex;
pub(crate) mod files;
pub(crate) mod load;
pub(crate) mod memory_group;
#[path = "../../ledger/tests/common/pair.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
pub(crate) mod pair;
pub(crate) mod pdf;
pub(crate) mod process;
pub(crate) mod proxies;
pub(crate) mod screen;
pub(crate) mod skip;
mod starting;
pub(crate) mod upstream;
pub(crate) mod wires;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox::clock;
use farebox::config::{self, Secrets, Source};
use farebox::proxy::{Observer, Record};
use farebox::server::Front;
use farebox_cli::app::{App, Files, Settings};
use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    Act, Amount, Change, Credit, CreditKind, EntryKind, EntryQuery, JournalEntry, Key, KeyChange,
    KeyId, KeySettings, Ledger, Membership, NewKey, Perform, Secret,
};
use farebox_protocol::Family;
pub(crate) use load::sized;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The project's folder. These tests belong to the package of the program they start, which is one below.
pub(crate) const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Makes a key in a ledger, with money on it unless the amount is zero.
pub(crate) async fn new_key(ledger: &dyn Ledger, usd: &str, settings: KeySettings) -> TestKey {
    new_key_within(ledger, usd, settings, Membership::default()).await
}

/// The same of a customer, or as its owner.
pub(crate) async fn new_key_within(
    ledger: &dyn Ledger,
    usd: &str,
    settings: KeySettings,
    within: Membership,
) -> TestKey {
    let id = clock::key_id();
    let secret = Secret::generate(id, clock::random());
    let amount = Amount::from_usd_str(usd).unwrap();
    let new = NewKey {
        within,
        id,
        secret: secret.hash(),
        settings,
        first_credit: (amount > Amount::ZERO).then(|| (amount, format!("first-{id}"))),
        purse: None,
        act: act(),
    };
    ledger.perform(new).await.unwrap();
    TestKey {
        id,
        secret: secret.reveal().to_owned(),
    }
}

/// A payment onto a key, made now.
pub(crate) fn payment(key: KeyId, amount: Amount, reference: String) -> Credit {
    let Act {
        operation,
        actor,
        at,
    } = act();
    Credit {
        operation,
        to: key.into(),
        kind: CreditKind::TopUp,
        amount,
        reference,
        actor,
        at,
    }
}

/// A running gateway. Dropping it stops it.
pub(crate) struct Gateway {
    pub(crate) base: String,
    /// Where the operator reaches it.
    pub(crate) admin: String,
    /// What opens that, if the gateway has written it.
    pub(crate) admin_token: Option<String>,
    pub(crate) front: Arc<Front>,
    pub(crate) ledger: SharedStore,
    pub(crate) records: Arc<Records>,
    pub(crate) client: reqwest::Client,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<Result<(), String>>>,
}

/// Everything the gateway reported.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Vec<Record>>);

impl Observer for Records {
    fn ended(&self, record: Arc<Record>) {
        self.0.lock().unwrap().push(Record::clone(&record));
    }
}

impl Records {
    pub(crate) fn all(&self) -> Vec<Record> {
        self.0.lock().unwrap().clone()
    }
}

/// A key and its secret.
#[derive(Debug, Clone)]
pub(crate) struct TestKey {
    pub(crate) id: KeyId,
    pub(crate) secret: String,
}

/// Secrets of test configurations: every name is set, to a value that must never be seen.
struct TestSecrets;

impl Secrets for TestSecrets {
    fn variable(&self, name: &str) -> Option<String> {
        Some(format!("upstream-secret-of-{name}"))
    }

    fn file(&self, path: &std::path::Path) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// What is in these two files.
fn loaded(catalog: &str, routes: &str) -> config::Config {
    let (loaded, diagnostics) = config::load(
        &Source::new("catalog.toml", catalog),
        &Source::new("routes.toml", routes),
        &TestSecrets,
    );
    loaded.unwrap_or_else(|| panic!("{}", diagnostics.render(config::Paint::Plain)))
}

impl Gateway {
    /// Starts a gateway with these two files.
    pub(crate) async fn start(catalog: &str, routes: &str) -> Self {
        Self::start_with(catalog, routes, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn start_with(
        catalog: &str,
        routes: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let (loaded, folder) = (loaded(catalog, routes), tempfile::tempdir().unwrap());
        Self::run(loaded, folder, change).await.experienced()
    }

    /// Starts a gateway that follows two files; where they are is decided by the caller.
    pub(crate) async fn watching(catalog: &std::path::Path, routes: &std::path::Path) -> Self {
        let files = Files::Watched {
            catalog: catalog.to_owned(),
            routes: routes.to_owned(),
            secrets: Box::new(TestSecrets),
        };
        let gateway = Self::run(files, tempfile::tempdir().unwrap(), |_| {}).await;
        gateway.experienced()
    }

    async fn run(
        files: impl Into<Files>,
        folder: TempDir,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut settings = Settings::new(folder.path().join("farebox.db"), any);
        settings.admin_listen = Some(any);
        change(&mut settings);
        settings.new_ledger = !settings.ledger.path().is_some_and(std::path::Path::exists);
        let records = Arc::new(Records::default());
        let observer: Arc<dyn Observer> = Arc::<Records>::clone(&records);
        let app = App::start(&settings, files, observer).await.unwrap();
        let (stop, stopping) = oneshot::channel::<()>();
        let (front, ledger) = (Arc::clone(&app.front), Arc::clone(&app.ledger));
        let scheme = |tls: &Option<_>| if tls.is_some() { "https" } else { "http" };
        let base = format!("{}://{}", scheme(&settings.tls), app.address());
        let admin = app.admin_address().unwrap();
        let admin = format!("{}://{admin}", scheme(&settings.admin_tls));
        let admin_token = settings.ledger.admin_token(settings.state.as_deref());
        let running = tokio::spawn(app.serve(async {
            let _ = stopping.await;
        }));
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()
            .unwrap();
        Self {
            base,
            admin,
            admin_token,
            front,
            ledger,
            records,
            client,
            folder,
            stop: Some(stop),
            running: Some(running),
        }
    }

    /// A gateway in front of a scripted upstream that speaks every family, with one model for each of [`MODELS`].
    pub(crate) async fn before(upstream: &upstream::ScriptedUpstream) -> Self {
        Self::start(CATALOG, &routes(&upstream.base_url())).await
    }

    /// A key with this balance.
    pub(crate) async fn key(&self, usd: &str) -> TestKey {
        self.key_with(
            usd,
            KeySettings {
                label: "test".to_owned(),
                ..KeySettings::default()
            },
        )
        .await
    }

    /// A key with settings.
    pub(crate) async fn key_with(&self, usd: &str, settings: KeySettings) -> TestKey {
        new_key(&*self.ledger, usd, settings).await
    }

    /// An owner key of a new customer with this balance.
    pub(crate) async fn owner(&self, usd: &str) -> TestKey {
        self.owner_with(usd, KeySettings::default()).await
    }

    /// The same, with these settings.
    pub(crate) async fn owner_with(&self, usd: &str, settings: KeySettings) -> TestKey {
        let within = Membership {
            is_owner: true,
            ..Membership::default()
        };
        new_key_within(&*self.ledger, usd, settings, within).await
    }

    /// A member key of the customer of another key.
    pub(crate) async fn member(&self, of: &TestKey, settings: KeySettings) -> TestKey {
        let within = Membership {
            customer: Some(self.account(of).await.customer.id),
            ..Membership::default()
        };
        new_key_within(&*self.ledger, "0", settings, within).await
    }

    /// Changes a key as an operator would.
    pub(crate) async fn change(&self, key: &TestKey, change: Change) {
        self.ledger
            .perform(KeyChange {
                key: key.id,
                change,
                act: act(),
            })
            .await
            .unwrap();
    }

    /// Pays money onto a key.
    pub(crate) async fn top_up(&self, key: &TestKey, usd: &str) {
        let reference = format!("top-up-{}", clock::operation_id());
        self.ledger
            .perform(payment(
                key.id,
                Amount::from_usd_str(usd).unwrap(),
                reference,
            ))
            .await
            .unwrap();
    }

    /// Does something in which requests wait for money, and lets them wait as long as they may without waiting for it. For one thread alone.
    pub(crate) async fn waited_out<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
            // Who waits for a thread gives up after seconds of this clock, not of the machine's.
            let proxy = &self.front.proxy;
            if !proxy.waiting.is_empty() && proxy.turns.counts().waiting == 0 {
                pass(Duration::from_secs(46)).await;
            }
        }
    }

    /// Sends a JSON body with this key.
    pub(crate) async fn post(&self, path: &str, key: &TestKey, body: &Value) -> Answer {
        let sent = self
            .client
            .post(format!("{}{path}", self.base))
            .bearer_auth(&key.secret)
            .json(body)
            .send()
            .await
            .unwrap();
        Answer::read(sent).await
    }

    /// Sends these very bytes with this key and these headers.
    pub(crate) async fn send(
        &self,
        path: &str,
        key: &TestKey,
        body: impl Into<reqwest::Body>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = self
            .client
            .post(format!("{}{path}", self.base))
            .bearer_auth(&key.secret)
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::read(request.send().await.unwrap()).await
    }

    /// Reads a path with this key.
    pub(crate) async fn get(&self, path: &str, key: &TestKey) -> Answer {
        Answer::read(
            self.client
                .get(format!("{}{path}", self.base))
                .bearer_auth(&key.secret)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// Reads a path of the admin listener, as its operator.
    pub(crate) async fn ask(&self, path: &str) -> Answer {
        self.ask_with(path, self.admin_token.as_deref()).await
    }

    /// The same with this token, or without one, as any user of the machine.
    pub(crate) async fn ask_with(&self, path: &str, token: Option<&str>) -> Answer {
        let mut request = self.client.get(format!("{}{path}", self.admin));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        Answer::read(request.send().await.unwrap()).await
    }

    /// The key as it is now.
    pub(crate) async fn account(&self, key: &TestKey) -> Key {
        self.ledger.find_key(key.id).await.unwrap().unwrap()
    }

    /// The key's charges, oldest first.
    pub(crate) async fn charges(&self, key: &TestKey) -> Vec<JournalEntry> {
        let entries = self
            .ledger
            .entries(EntryQuery {
                key: Some(key.id),
                ..EntryQuery::default()
            })
            .await
            .unwrap();
        entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::Charge)
            .collect()
    }

    /// Waits until no request runs and no hold is open.
    pub(crate) async fn settled(&self) {
        let waiting = async {
            while !self.front.proxy.tasks.is_empty()
                || !self.ledger.open_holds(None, 1).await.unwrap().is_empty()
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting)
            .await
            .expect("all requests end and settle");
    }

    /// Where the ledger is.
    pub(crate) fn ledger_path(&self) -> PathBuf {
        self.folder.path().join("farebox.db")
    }

    /// Stops as a signal would, and waits for the end.
    pub(crate) async fn stop(self) {
        self.stop_and_keep().await;
    }

    /// The same; returns its ledger, its anchors and the folder they are in.
    pub(crate) async fn stop_and_keep(mut self) -> (PathBuf, PathBuf, TempDir) {
        let paths = (self.ledger_path(), self.folder.path().join("anchors"));
        self.stop.take();
        self.running.take().unwrap().await.unwrap().unwrap();
        (paths.0, paths.1, self.folder)
    }
}

/// An answer that has been read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self {
            status,
            headers,
            text: response.text().await.unwrap_or_default(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Done now, by the tests.
pub(crate) fn act() -> Act {
    Act {
        operation: clock::operation_id(),
        actor: "tests".to_owned(),
        at: clock::now(),
    }
}

/// Lets so much time pass in this process without waiting for it. Only for tests on one thread.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A small chat request.
pub(crate) fn chat(model: &str, stream: bool) -> Value {
    json!({ "model": model, "stream": stream, "messages": [{ "role": "user", "content": "Say PONG" }] })
}

/// A small request of any family, with an output limit of 100.
pub(crate) fn ask(family: Family, model: &str, stream: bool) -> Value {
    let words = json!([{ "role": "user", "content": "Say PONG" }]);
    match family {
        Family::Chat => {
            json!({ "model": model, "stream": stream, "max_tokens": 100, "messages": words })
        }
        Family::Responses => {
            json!({ "model": model, "stream": stream, "max_output_tokens": 100, "input": words })
        }
        Family::Messages => {
            json!({ "model": model, "stream": stream, "max_tokens": 100, "messages": words })
        }
    }
}

/// Where a family is served.
pub(crate) fn path(family: Family) -> &'static str {
    family.protocol().public_path
}

/// The models of test gateways: `test-model` at $3 in, $15 out; `test-blind` without vision, tools or streaming.
pub(crate) const CATALOG: &str = r#"
[[model]]
model             = "Test"
slug              = "test-model"
provider          = "Tests"
best_path         = "chat"
best_environments = ["tests"]
price             = { input = "3.00", output = "15.00", cache_read = "0.30", cache_write = "3.75" }
capabilities      = ["vision", "tools", "streaming"]
limits            = { context = 200_000, max_output = 64_000 }
aliases           = ["test-alias"]

[[model]]
model             = "Blind"
slug              = "test-blind"
provider          = "Tests"
best_path         = "chat"
best_environments = ["tests"]
price             = { input = "1.00", output = "2.00" }
capabilities      = []
limits            = { context = 32_000, max_output = 4_000 }

[[retired]]
slug  = "test-old"
since = 2026-01-01
use   = "test-model"
"#;

/// Every direction that is translated: the caller's family, the upstream's.
pub(crate) const DIRECTIONS: [(Family, Family); 6] = [
    (Family::Messages, Family::Chat),
    (Family::Responses, Family::Chat),
    (Family::Chat, Family::Messages),
    (Family::Responses, Family::Messages),
    (Family::Chat, Family::Responses),
    (Family::Messages, Family::Responses),
];

/// The same models, with this best path.
pub(crate) fn catalog(best: Family) -> String {
    CATALOG.replace(
        "best_path         = \"chat\"",
        &format!("best_path = \"{best}\""),
    )
}

/// Routes of all test models to one upstream that speaks only this family.
pub(crate) fn routes_speaking(base_url: &str, speaks: Family) -> String {
    routes(base_url).replace(
        r#"["chat", "responses", "messages"]"#,
        &format!("[\"{speaks}\"]"),
    )
}

/// Routes of all test models to one upstream.
pub(crate) fn routes(base_url: &str) -> String {
    format!(
        r#"
[provider.up]
base_url = "{base_url}"
speaks   = ["chat", "responses", "messages"]
key      = {{ env = "UPSTREAM_KEY" }}
private_urls = true

[[route]]
slug    = "test-model"
targets = [ {{ provider = "up", model = "upstream-model-1" }} ]

[[route]]
slug    = "test-blind"
targets = [ {{ provider = "up", model = "upstream-model-2" }} ]
"#
    )
}

/// An upstream that answers with this text, in any family and form.
pub(crate) fn talking(text: &str) -> upstream::Script {
    let text = text.to_owned();
    upstream::Script::by(move |seen, _| speech_for(seen, &text))
}

/// The answer of an upstream with this text to one request.
pub(crate) fn speech_for(seen: &upstream::Seen, text: &str) -> upstream::Reply {
    let path = seen.path.split('?').next().unwrap_or_default();
    let family = Family::ALL
        .into_iter()
        .find(|family| path.ends_with(family.protocol().path))
        .expect("a family's path");
    let speech = upstream::Speech::new(family, text);
    if seen.json()["stream"] == true {
        speech.stream()
    } else {
        speech.whole()
    }
}
