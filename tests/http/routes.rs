//! Calls the route table path by path: every path that reaches an upstream holds and settles money for it, exactly once. A new path
//! fails the test if the test does not list its requests, or if it reaches an upstream for free.

use std::collections::BTreeSet;

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Answer, Gateway, ask, speech_for};

/// Paths that cost money, and their family.
const PAID: [(&str, Family); 4] = [
    ("/v1/chat/completions", Family::Chat),
    ("/v1/responses", Family::Responses),
    ("/native/v1/messages", Family::Messages),
    ("/native/messages", Family::Messages),
];
/// The paths that reach an upstream for free.
const FREE: [&str; 2] = [
    "/native/v1/messages/count_tokens",
    "/v1/responses/input_tokens",
];

/// Method and path of every handler, from the table of which the router is built.
fn routes() -> BTreeSet<(&'static str, &'static str)> {
    farebox::server::routes::endpoints()
        .into_iter()
        .map(|endpoint| (endpoint.method.name(), endpoint.path))
        .collect()
}

/// A path with its parameters filled in.
fn concrete(path: &str) -> String {
    path.split('/')
        .map(|part| {
            if part.starts_with('{') {
                "test-model"
            } else {
                part
            }
        })
        .collect::<Vec<_>>()
        .join("/")
}

fn answering() -> Script {
    Script::by(|seen: &Seen, _| {
        if seen.path.ends_with("/count_tokens") || seen.path.ends_with("/input_tokens") {
            Reply::json(200, &json!({ "input_tokens": 9 }))
        } else {
            speech_for(seen, "PONG")
        }
    })
}

/// Bodies that some path might accept: every family's, whole and streamed, all fields at once, and a form.
fn bodies(method: &str, secret: &str) -> Vec<(&'static str, String)> {
    if method != "POST" {
        return vec![("text/plain", String::new())];
    }
    let asks: Vec<Value> = Family::ALL
        .into_iter()
        .flat_map(|family| [false, true].map(|stream| ask(family, "test-model", stream)))
        .collect();
    let all =
        asks.iter()
            .filter_map(Value::as_object)
            .fold(serde_json::Map::new(), |mut all, ask| {
                all.extend(ask.clone());
                all
            });
    let json = asks
        .iter()
        .map(Value::to_string)
        .chain([Value::Object(all).to_string()]);
    json.map(|body| ("application/json", body))
        .chain([("application/x-www-form-urlencoded", format!("key={secret}"))])
        .collect()
}

/// A caller with the key in every header that may carry it, and with a dashboard session.
struct Caller {
    client: reqwest::Client,
    secret: String,
    cookie: String,
}

impl Caller {
    async fn with(gateway: &Gateway, secret: &str) -> Self {
        let url = format!("{}/dashboard/login", gateway.base);
        let direct = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(direct)
            .build()
            .unwrap();
        let form = client
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = form
            .header("origin", &gateway.base)
            .body(format!("key={secret}"))
            .send()
            .await
            .unwrap();
        let cookie = answer
            .headers()
            .get("set-cookie")
            .map(|cookie| cookie.to_str().unwrap().to_owned())
            .unwrap_or_default();
        Self {
            client,
            secret: secret.to_owned(),
            cookie: cookie.split(';').next().unwrap().to_owned(),
        }
    }

    async fn call(
        &self,
        gateway: &Gateway,
        method: &str,
        path: &str,
        (kind, body): (&str, String),
    ) -> u16 {
        let url = format!("{}{}", gateway.base, concrete(path));
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self
            .client
            .request(method, url)
            .bearer_auth(&self.secret)
            .header("x-api-key", &self.secret);
        let request = request
            .header("cookie", &self.cookie)
            .header("origin", &gateway.base)
            .header("content-type", kind);
        let sent = request.body(body).send().await.unwrap();
        let status = sent.status().as_u16();
        // A page that streams as long as it is open has answered with its head.
        tokio::time::timeout(std::time::Duration::from_secs(1), Answer::read(sent))
            .await
            .ok();
        status
    }
}

#[tokio::test]
async fn every_path_that_reaches_an_upstream_holds_and_settles_once() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let gateway = Gateway::before(&upstream).await;
    let routes = routes();
    assert_eq!(
        routes.len(),
        farebox::server::routes::endpoints().len(),
        "no path is listed twice"
    );
    let mut reached = BTreeSet::new();
    for &(method, path) in &routes {
        // A separate key, so that the limits of free paths do not interfere.
        let key = gateway.key("100.00").await;
        let caller = Caller::with(&gateway, &key.secret).await;
        assert!(
            !caller.cookie.is_empty(),
            "signed in to the customer's page"
        );
        let before = upstream.requests().len();
        let mut answered = false;
        for body in bodies(method, &key.secret) {
            answered |= !matches!(caller.call(&gateway, method, path, body).await, 404 | 405);
        }
        gateway.settled().await;
        let asked = upstream.requests().len() - before;
        let charges = gateway.charges(&key).await;
        // The root redirects browsers, and this caller is not one.
        assert!(
            answered || path == "/" || path.contains('{'),
            "{method} {path} is in the router and answers nothing"
        );
        if asked > 0 {
            reached.insert(path);
        }
        if FREE.contains(&path) {
            assert!(asked > 0 && charges.is_empty(), "counting tokens is free");
            continue;
        }
        assert_eq!(
            charges.len(),
            asked,
            "{method} {path}: one entry for each request that reached the upstream"
        );
        for charge in charges {
            let bill = charge.bill.as_ref().unwrap();
            assert!(
                charge.amount.picos() < 0 && bill.hold.picos() >= -charge.amount.picos(),
                "{method} {path}: held, then charged"
            );
        }
    }
    let known: BTreeSet<&str> = PAID.iter().map(|(path, _)| *path).chain(FREE).collect();
    assert_eq!(
        reached, known,
        "a path that reaches an upstream is listed above, with what it takes"
    );
}

#[tokio::test]
async fn nothing_reaches_an_upstream_without_a_key_or_without_money() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let gateway = Gateway::before(&upstream).await;
    let empty = gateway.key("0").await;
    for (method, path) in routes() {
        for secret in ["", "sk-proj-wrong", &empty.secret] {
            let caller = Caller::with(&gateway, secret).await;
            for body in bodies(method, secret) {
                caller.call(&gateway, method, path, body).await;
            }
        }
    }
    assert_eq!(upstream.requests().len(), 0);
}
