//! `kill -9` at each step of a delivery, on a file and on a fleet: each event arrives at least once, and each payment is booked once.
//!
//! The receiver says when a step is reached, and by which connection; the gateway at its other end is killed at that instant.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use farebox_ledger::TokenRole;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::selling::new_token;
use crate::support::cluster::Cluster;
use crate::support::load::{UPSTREAM_KEY, new_ledger};
use crate::support::process::{self, Served};
use crate::support::skip::skip;
use crate::support::{CATALOG, routes, sized};

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(100);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");

/// Where a gateway dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The delivery is claimed and on its way, and nothing of it is read.
    Claimed,
    /// It was sent, and gets no answer.
    Sent,
    /// It was answered, and nothing of that is written down.
    Answered,
    /// Some of it may be written down.
    Recorded,
}

/// A receiver that says 200, but for the step that is awaited.
struct Judge {
    base: String,
    awaited: Arc<Mutex<Option<Reached>>>,
    /// The ids of events that were read whole.
    arrived: Arc<Mutex<HashSet<String>>>,
    reached: mpsc::UnboundedReceiver<SocketAddr>,
}

impl Judge {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap());
        let awaited = Arc::new(Mutex::new(None));
        let arrived = Arc::new(Mutex::new(HashSet::new()));
        let (tell, reached) = mpsc::unbounded_channel();
        let (waits, heard) = (Arc::clone(&awaited), Arc::clone(&arrived));
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (waits, heard, tell) = (Arc::clone(&waits), Arc::clone(&heard), tell.clone());
                tokio::spawn(async move {
                    let step = |now| {
                        let mut awaited = waits.lock().unwrap();
                        let is_it = *awaited == Some(now);
                        if is_it {
                            *awaited = None;
                        }
                        is_it
                    };
                    receive(stream, &step, &heard, &|| tell.send(peer).unwrap()).await;
                });
            }
        });
        Self {
            base,
            awaited,
            arrived,
            reached,
        }
    }

    fn await_step(&self, step: Reached) {
        *self.awaited.lock().unwrap() = Some(step);
    }
}

/// Reads requests of one connection and says 200 to each.
async fn receive(
    mut stream: TcpStream,
    is_awaited: &(dyn Fn(Reached) -> bool + Sync),
    arrived: &Mutex<HashSet<String>>,
    tell: &(dyn Fn() + Sync),
) {
    let mut bytes = Vec::new();
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        if is_awaited(Reached::Claimed) {
            tell();
            return std::future::pending().await;
        }
        let mut some = [0; 4096];
        let Ok(read @ 1..) = stream.read(&mut some).await else {
            return;
        };
        bytes.extend_from_slice(&some[..read]);
        let Some((id, length)) = whole(&bytes) else {
            continue;
        };
        bytes.drain(..length);
        arrived.lock().unwrap().insert(id);
        if is_awaited(Reached::Sent) {
            tell();
            return std::future::pending().await;
        }
        let answered = stream
            .write_all(b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n")
            .await;
        if answered.is_err() {
            return;
        }
        if is_awaited(Reached::Answered) || is_awaited(Reached::Recorded) {
            tell();
        }
    }
}

/// The event's id and the length of a request, once all of it is there.
fn whole(bytes: &[u8]) -> Option<(String, usize)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, _) = text.split_once("\r\n\r\n")?;
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    };
    let length = head.len() + 4 + field("content-length")?.parse::<usize>().ok()?;
    let id = field("webhook-id")?.to_owned();
    (bytes.len() >= length).then_some((id, length))
}

/// Whether a process has the socket with this local port.
fn has_port(process: u32, port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!(":{port:04X}");
    let sockets = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&local);
        is_it.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
    });
    let sockets: HashSet<String> = sockets.collect();
    let open = std::fs::read_dir(format!("/proc/{process}/fd"));
    open.into_iter().flatten().flatten().any(|file| {
        let place = std::fs::read_link(file.path()).unwrap_or_default();
        sockets.contains(&*place.to_string_lossy())
    })
}

/// The two files, with a webhook to the judge.
fn write_files(folder: &Path, judge: &Judge) {
    let secret = folder.join("webhook-secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
    let told = format!(
        "\n[[webhook]]\nurl = \"{}\"\nsecret = {{ file = \"{}\" }}\n",
        judge.base,
        secret.display()
    );
    let routes = routes("http://127.0.0.1:1/v1") + &told;
    std::fs::write(folder.join("routes.toml"), routes).unwrap();
}

/// Gateways of one ledger, the program that sells at them, and who hears of it.
struct Place<'place> {
    folder: tempfile::TempDir,
    judge: Judge,
    environment: Vec<(&'place str, &'place str)>,
    gateways: Vec<Served>,
    client: reqwest::Client,
    secret: String,
    customer: String,
    paid: u32,
}

impl Place<'_> {
    fn start_gateway(&mut self) {
        let served = Served::start_with(self.folder.path(), &[], &self.environment);
        self.gateways.push(served);
    }

    /// Books a payment at any gateway that lives, under one name and key, until it is answered.
    async fn pay(&mut self) {
        self.paid += 1;
        let name = format!("pi_{}", self.paid);
        let body = json!({ "amount": "2", "reference": name });
        let begun = Instant::now();
        loop {
            for gateway in &self.gateways {
                let path = format!(
                    "{}/api/v1/customers/{}/top-ups",
                    gateway.admin, self.customer
                );
                let request = self.client.post(path).bearer_auth(&self.secret);
                let request = request.header("idempotency-key", &name).json(&body);
                if let Ok(answer) = request.send().await {
                    let status = answer.status().as_u16();
                    // 409: a gateway that died was doing it; 503: this one finds that out.
                    assert!(
                        [201, 409, 503].contains(&status),
                        "{}",
                        answer.text().await.unwrap()
                    );
                    if status == 201 {
                        return;
                    }
                }
            }
            assert!(begun.elapsed() < SOON, "{name} is not booked");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Pays, and kills the gateway that delivers when it has come so far.
    async fn kill_at(&mut self, step: Reached) {
        self.judge.await_step(step);
        self.pay().await;
        let reached = tokio::time::timeout(SOON, self.judge.reached.recv()).await;
        let peer = reached
            .unwrap_or_else(|_| panic!("{step:?} is not reached"))
            .unwrap();
        let found = (self.gateways.iter())
            .position(|gateway| has_port(gateway.id(), peer.port()))
            .unwrap_or_else(|| panic!("{step:?}: nobody has {peer}"));
        if step == Reached::Recorded {
            // Between the answer and its row, and after it.
            let pause = u64::from(self.paid % 8) * 100;
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        self.gateways.remove(found).kill();
    }

    /// Waits until nothing is on its way.
    async fn until_all_arrived(&self, told: impl AsyncFn() -> Vec<String>) {
        let begun = Instant::now();
        loop {
            let told = told().await;
            let missing = {
                let arrived = self.judge.arrived.lock().unwrap();
                told.iter().filter(|id| !arrived.contains(*id)).count()
            };
            let address = format!("{}/status", self.gateways[0].admin);
            let status = process::document_at(&self.client, address).await;
            let waiting = &status["webhooks"][0]["waiting"];
            if missing == 0 && *waiting == json!(0) && !told.is_empty() {
                return;
            }
            assert!(
                begun.elapsed() < SOON,
                "{missing} of {} are missing: {status}",
                told.len()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The ids of all events, by the pull twin.
    async fn told(&self) -> Vec<String> {
        let (mut ids, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("{}/api/v1/events?limit=200{after}", self.gateways[0].admin);
            let request = self.client.get(path).bearer_auth(&self.secret);
            let page: Value = request.send().await.unwrap().json().await.unwrap();
            let found = page["data"].as_array().unwrap().iter();
            ids.extend(found.map(|event| event["id"].as_str().unwrap().to_owned()));
            match (page["has_more"].as_bool(), ids.last()) {
                (Some(true), Some(last)) => after = format!("&after={last}"),
                _ => return ids,
            }
        }
    }

    /// The balance, by the API.
    async fn balance(&self) -> Value {
        let path = format!(
            "{}/api/v1/customers/{}",
            self.gateways[0].admin, self.customer
        );
        let request = self.client.get(path).bearer_auth(&self.secret);
        let shown: Value = request.send().await.unwrap().json().await.unwrap();
        shown["balance"].clone()
    }
}

const STEPS: [Reached; 4] = [
    Reached::Claimed,
    Reached::Sent,
    Reached::Answered,
    Reached::Recorded,
];

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_a_gateway_on_a_file_delivers_everything() {
    let folder = tempfile::tempdir().unwrap();
    let judge = Judge::start().await;
    write_files(folder.path(), &judge);
    let key = process::funded_key(folder.path(), "1");
    let token = ["tokens", "create", "shop", "--role", "manage"];
    let token = process::json(folder.path(), &token);
    let mut place = Place {
        customer: key["customer"].as_str().unwrap().to_owned(),
        secret: token["secret"].as_str().unwrap().to_owned(),
        client: process::client(),
        environment: vec![UPSTREAM_KEY],
        gateways: Vec::new(),
        paid: 0,
        folder,
        judge,
    };
    place.start_gateway();
    // The webhook hears of what comes after it was first seen.
    let before = place.told().await.len();
    place.pay().await;
    let told = async || place.told().await.split_off(before);
    place.until_all_arrived(told).await;
    let rounds = sized(3, 25);
    for _ in 0..rounds {
        for step in STEPS {
            place.kill_at(step).await;
            place.start_gateway();
        }
    }
    place
        .until_all_arrived(async || place.told().await.split_off(before))
        .await;
    let expected = 1 + 2 * u64::from(place.paid);
    assert_eq!(place.balance().await, format!("{expected}.00"));
    let told = place.told().await.len() - before;
    println!("{told} events, {} kills", rounds * 4);
    place.gateways.clear();
    let report = process::json(place.folder.path(), &["ledger", "verify"]);
    assert_eq!(report["faults"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_a_fleet_delivers_everything() {
    let Some(cluster) = Cluster::shared() else {
        return skip("deliveries of a fleet: PostgreSQL is not installed");
    };
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start().await);
    write_files(folder.path(), &judge);
    let database = cluster.database();
    let address = cluster.url(&database);
    let ledger = new_ledger(&address).await;
    let (_, secret) = new_token(&*ledger, "shop", TokenRole::Manage, None).await;
    let key = crate::support::new_key(&*ledger, "1", farebox_ledger::KeySettings::default()).await;
    let mut place = Place {
        customer: farebox_ledger::CustomerId::made_for(key.id).to_string(),
        secret,
        client: process::client(),
        environment: vec![UPSTREAM_KEY, SINGLE, ("FAREBOX_LEDGER", &address)],
        gateways: Vec::new(),
        paid: 0,
        folder,
        judge,
    };
    for _ in 0..3 {
        place.start_gateway();
    }
    let before = place.told().await.len();
    place.pay().await;
    place
        .until_all_arrived(async || place.told().await.split_off(before))
        .await;
    let rounds = sized(2, 10);
    for round in 0..rounds {
        for step in STEPS {
            place.kill_at(step).await;
            place.pay().await;
            place.start_gateway();
            // Once the others wait for the lease of the dead one; otherwise it is as if its minute were over.
            if std::env::var_os("FAREBOX_FULL").is_none() || round > 0 {
                let over =
                    "UPDATE deliveries SET leased = leased - 61000 WHERE leased > 0 AND status = 1";
                cluster.psql(&database, over).unwrap();
            }
        }
    }
    let over = "UPDATE deliveries SET leased = leased - 61000 WHERE leased > 0 AND status = 1";
    cluster.psql(&database, over).unwrap();
    place
        .until_all_arrived(async || place.told().await.split_off(before))
        .await;
    let expected = 1 + 2 * u64::from(place.paid);
    assert_eq!(place.balance().await, format!("{expected}.00"));
    let told = place.told().await.len() - before;
    println!("{told} events, {} kills", rounds * 4);
    place.gateways.clear();
    let report = ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}
