//! Webhooks: events arrive signed, and receivers that fail, redirect, lie, hang or leave keep nobody else waiting.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use farebox_ledger::OperationId;
use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;
use standardwebhooks::Webhook;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::block_in_place;

use super::bad_days::{alert, over, told};
use super::bad_machines::Machine;
use crate::support::load::UPSTREAM_KEY;
use crate::support::process::{Served, funded_key, json};
use crate::support::{CATALOG, Gateway, routes};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// An event is handed out within half a second; a busy machine takes longer.
const SOON: Duration = Duration::from_secs(20);

/// How a receiver behaves.
#[derive(Debug, Clone)]
enum Says {
    Status(u16),
    /// 500 at first, 200 from then on.
    LaterYes,
    RedirectTo(String),
    /// 200, and a body that is shorter than it says.
    TooShort,
    Nothing,
}

/// What a receiver got.
#[derive(Debug, Clone)]
struct HeardRequest {
    path: String,
    headers: HeaderMap,
    body: String,
}

/// A receiver on this machine.
struct Receiver {
    base: String,
    says: Arc<Mutex<Says>>,
    heard: Arc<Mutex<Vec<HeardRequest>>>,
}

impl Receiver {
    async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (says, heard) = (Arc::new(Mutex::new(says)), Arc::default());
        let (now, noted) = (Arc::clone(&says), Arc::clone(&heard));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let says = now.lock().unwrap().clone();
                tokio::spawn(answer(stream, says, Arc::clone(&noted)));
            }
        });
        Self { base, says, heard }
    }

    fn becomes(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn heard(&self) -> Vec<HeardRequest> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    async fn until(&self, count: usize) -> Vec<HeardRequest> {
        let begun = Instant::now();
        loop {
            let heard = self.heard();
            if heard.len() >= count {
                return heard;
            }
            assert!(begun.elapsed() < SOON, "{} of {count}", heard.len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn answer(mut stream: TcpStream, says: Says, heard: Arc<Mutex<Vec<HeardRequest>>>) {
    let mut bytes = Vec::new();
    let request = loop {
        let mut some = [0; 4096];
        let Ok(read) = stream.read(&mut some).await else {
            return;
        };
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&some[..read]);
        if let Some(request) = whole(&bytes) {
            break request;
        }
    };
    let tries = {
        let mut heard = heard.lock().unwrap();
        heard.push(request);
        heard.len()
    };
    let text = match says {
        Says::Nothing => return std::future::pending().await,
        Says::Status(status) => format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n"),
        Says::LaterYes => {
            let status = if tries == 1 { 500 } else { 200 };
            format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n")
        }
        Says::RedirectTo(place) => {
            format!("HTTP/1.1 307 x\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")
        }
        Says::TooShort => "HTTP/1.1 200 x\r\ncontent-length: 1000000\r\n\r\nno".to_owned(),
    };
    let _ = stream.write_all(text.as_bytes()).await;
}

/// A request, once all of it is there.
fn whole(bytes: &[u8]) -> Option<HeardRequest> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    (body.len() == length).then(|| HeardRequest {
        path,
        headers,
        body: body.to_owned(),
    })
}

fn secret() -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SECRET).unwrap();
    file
}

/// A webhook as `routes.toml` names it.
fn webhook(url: &str, secret: &NamedTempFile, events: &str) -> String {
    let secret = secret.path().display();
    format!("\n[[webhook]]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{events}\n")
}

/// A gateway that tells these addresses; no request of a customer is sent.
async fn telling(urls: &[String], secret: &NamedTempFile, events: &str) -> Gateway {
    let mut file = routes("http://127.0.0.1:1/v1");
    for url in urls {
        file += &webhook(url, secret, events);
    }
    let gateway = Gateway::start(CATALOG, &file).await;
    let begun = Instant::now();
    loop {
        let status = gateway.ask("/status").await.json();
        if status["webhooks"].as_array().unwrap().len() == urls.len() {
            return gateway;
        }
        assert!(begun.elapsed() < SOON, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The state of each webhook, once it is as wanted.
async fn until_status(gateway: &Gateway, ready: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let status = gateway.ask("/status").await.json();
        let webhooks = status["webhooks"].as_array().unwrap().clone();
        if ready(&webhooks) {
            return webhooks;
        }
        assert!(begun.elapsed() < SOON, "{webhooks:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The judge is the published library of the standard.
#[tokio::test]
async fn every_event_arrives_once_with_a_signature_that_the_reference_accepts() {
    let receiver = Receiver::start(Says::Status(204)).await;
    let secret = secret();
    let url = format!("{}/hooks", receiver.base);
    let gateway = telling(&[url], &secret, "").await;
    gateway.key("5.00").await;
    let heard = receiver.until(3).await;
    let judge = Webhook::new(SECRET).unwrap();
    let stranger = Webhook::new("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
    let mut arrived = Vec::new();
    for request in &heard {
        assert_eq!(request.path, "/hooks");
        judge
            .verify(request.body.as_bytes(), &request.headers)
            .unwrap();
        let forged = stranger.verify(request.body.as_bytes(), &request.headers);
        assert!(forged.is_err());
        let changed = request.body.replace("seq", "sex");
        assert!(judge.verify(changed.as_bytes(), &request.headers).is_err());
        let document: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(
            document["id"],
            request.headers["webhook-id"].to_str().unwrap()
        );
        arrived.push(document);
    }
    arrived.sort_by_key(|document| document["seq"].as_i64());
    let told = gateway.ledger.events(None, 9).await.unwrap();
    let told: Vec<Value> = told.iter().map(farebox_ledger::Event::document).collect();
    assert_eq!(arrived, told, "deliveries are what is pulled");
    until_status(&gateway, |webhooks| webhooks[0]["waiting"] == 0).await;
    assert_eq!(receiver.heard().len(), 3, "each once");
}

#[tokio::test]
async fn receivers_that_misbehave_are_tried_again_and_keep_nobody_waiting() {
    let hangs = Receiver::start(Says::Nothing).await;
    let fails = Receiver::start(Says::LaterYes).await;
    let short = Receiver::start(Says::TooShort).await;
    let elsewhere = Receiver::start(Says::Status(200)).await;
    let redirects = Receiver::start(Says::RedirectTo(elsewhere.base.clone())).await;
    let gone = Receiver::start(Says::Status(410)).await;
    let secret = secret();
    let all = [&hangs, &fails, &short, &redirects, &gone];
    let urls = all.map(|receiver| format!("{}/", receiver.base));
    let only = "events = [\"top_up.*\"]";
    let gateway = telling(&urls, &secret, only).await;
    gateway.key("5.00").await;
    for receiver in all {
        let heard = receiver.until(1).await;
        assert!(heard[0].body.contains("top_up.booked"), "what it wants");
    }
    // The one that failed gets it again, under the same id.
    let again = fails.until(2).await;
    let ids: Vec<_> = again
        .iter()
        .map(|request| &request.headers["webhook-id"])
        .collect();
    assert_eq!(ids[0], ids[1]);
    let state = |webhook: &Value| webhook["state"].as_str().unwrap().to_owned();
    let webhooks = until_status(&gateway, |webhooks| {
        state(&webhooks[4]) == "disabled" && webhooks[1]["waiting"] == 0
    })
    .await;
    let states: Vec<String> = webhooks.iter().map(state).collect();
    assert_eq!(states[1..], ["ok", "ok", "failing", "disabled"]);
    assert!(
        webhooks[3]["reason"]
            .as_str()
            .unwrap()
            .contains("redirects")
    );
    assert_eq!(webhooks[4]["reason"], "it answered 410 Gone");
    assert_eq!(elsewhere.heard().len(), 0, "nobody is sent elsewhere");
    let status = gateway.ask("/status").await.json();
    let alerts = status["alerts"].as_array().unwrap();
    let alert = alerts
        .iter()
        .find(|alert| alert["kind"] == "webhook_disabled");
    assert_eq!(alert.unwrap()["subject"], urls[4].as_str());
}

#[tokio::test]
async fn a_thousand_webhooks_that_hang_keep_nobody_waiting() {
    let hangs = Receiver::start(Says::Nothing).await;
    let good = Receiver::start(Says::Status(200)).await;
    let secret = secret();
    let mut urls: Vec<String> = (0..1_000)
        .map(|one| format!("{}/{one}", hangs.base))
        .collect();
    urls.push(format!("{}/", good.base));
    let gateway = telling(
        &urls,
        &secret,
        "events = [\"key.created\", \"top_up.booked\"]",
    )
    .await;
    for _ in 0..5 {
        gateway.key("5.00").await;
    }
    assert_eq!(good.until(10).await.len(), 10);
}

/// What a gateway has handed out and not written down is delivered by the next one.
#[tokio::test]
async fn what_was_on_its_way_when_a_gateway_died_arrives_later() {
    let hangs = Receiver::start(Says::Nothing).await;
    let secret = secret();
    let url = format!("{}/", hangs.base);
    let gateway = telling(std::slice::from_ref(&url), &secret, "").await;
    gateway.key("5.00").await;
    hangs.until(3).await;
    // Its tries end with it, and nothing of them is written down.
    let known = gateway.ledger.webhooks().await.unwrap();
    assert_eq!((known.len(), known[0].waiting), (1, 3));
    let due = farebox_ledger::WantedDeliveries {
        webhook: farebox_ledger::WebhookId::of(&url),
        free: 9,
        running: 0,
    };
    let due = gateway
        .ledger
        .due_deliveries(vec![due], farebox::clock::now())
        .await;
    let mut waiting: Vec<OperationId> = due.unwrap().iter().map(|due| due.event.id).collect();
    waiting.sort();
    let told = gateway.ledger.events(None, 9).await.unwrap();
    let mut told: Vec<OperationId> = told.iter().map(|event| event.id).collect();
    told.sort();
    assert_eq!(waiting, told);
}

/// The hour is one of the machine's clock, which goes on while the gateway is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_has_failed_for_an_hour_is_told_after_a_restart_until_something_arrives() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let receiver = Receiver::start(Says::Status(500)).await;
    let (folder, secret) = (tempfile::tempdir().unwrap(), secret());
    let (folder, url) = (folder.path(), format!("{}/hooks", receiver.base));
    let file = routes("http://127.0.0.1:1/v1") + &webhook(&url, &secret, "");
    std::fs::write(folder.join("catalog.toml"), CATALOG).unwrap();
    std::fs::write(folder.join("routes.toml"), file).unwrap();
    let environment = [&machine.environment()[..], &[UPSTREAM_KEY]].concat();
    let start = || block_in_place(|| Served::start_with(folder, &[], &environment));
    let served = start();
    until_shown(&served, "ok").await;
    block_in_place(|| funded_key(folder, "5"));
    until_shown(&served, "failing").await;
    assert!(alert(&served, "webhook_failing", &url).await.is_none());
    drop(served);
    machine.set("seconds", "3630");
    let served = start();
    let failing = told(&served, "webhook_failing", &url).await;
    let reason = failing["reason"].as_str().unwrap();
    assert!(reason.ends_with("it answered 500"), "{failing}");
    receiver.becomes(Says::Status(204));
    let replay = ["events", "replay", &url];
    block_in_place(|| json(folder, &replay));
    over(&served, "webhook_failing", &url).await;
    until_shown(&served, "ok").await;
}

/// Waits until the only webhook has this state.
async fn until_shown(served: &Served, state: &str) {
    let begun = Instant::now();
    loop {
        let status: Value = serde_json::from_str(&served.read("/status").await).unwrap();
        if status["webhooks"][0]["state"] == state {
            return;
        }
        assert!(begun.elapsed() < SOON, "{}", status["webhooks"]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
