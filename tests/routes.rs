//! The router, enumerated: whatever path reaches an upstream has held and settled money for it, exactly once. A new path that is
//! not told here which requests it takes fails the test, and so does one that reaches an upstream for free.

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
/// The one path that reaches an upstream for free.
const FREE: &str = "/native/v1/messages/count_tokens";

/// Method and path of every handler, read from the router's own description of itself.
fn routes(gateway: &Gateway) -> BTreeSet<(String, String)> {
    let service = farebox::server::service(&gateway.front);
    let mut above: Vec<String> = Vec::new();
    let mut found = BTreeSet::new();
    for line in format!("{:?}", service.router).lines() {
        let name = line.trim_start_matches(['│', '├', '└', '─', ' ']);
        let depth = (line.chars().count() - name.chars().count()) / 4;
        let (filters, handler) = name.split_once(" -> ").map_or((name, false), |(filters, _)| (filters, true));
        let (part, methods) = filters.split_once('[').unwrap_or((filters, ""));
        above.truncate(depth);
        above.push(part.trim_matches('/').replace("!NULL!", ""));
        if handler {
            let parts: Vec<&str> = above.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let method = methods.trim_end_matches(']').split(',').next().unwrap_or_default();
            found.insert((method.to_owned(), format!("/{}", parts.join("/"))));
        }
    }
    found
}

/// A path with its parameters filled in.
fn concrete(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "test-model" } else { part }).collect::<Vec<_>>().join("/")
}

fn answering() -> Script {
    Script::by(|seen: &Seen, _| {
        if seen.path.ends_with("/count_tokens") {
            Reply::json(200, &json!({ "input_tokens": 9 }))
        } else {
            speech_for(seen, "PONG")
        }
    })
}

/// Bodies that some path might take: every family's, whole and streamed, and a form.
fn bodies() -> Vec<Vec<u8>> {
    let asks = Family::ALL.into_iter().flat_map(|family| [false, true].map(|stream| ask(family, "test-model", stream)));
    let all = asks.fold(json!({}), |mut all, ask| {
        all.as_object_mut().unwrap().extend(ask.as_object().unwrap().clone());
        all
    });
    let asks = Family::ALL.into_iter().flat_map(|family| [false, true].map(|stream| ask(family, "test-model", stream)));
    asks.chain([all]).map(|body: Value| body.to_string().into_bytes()).chain([b"key=x".to_vec()]).collect()
}

async fn call(gateway: &Gateway, method: &str, path: &str, body: Vec<u8>, secret: &str) -> u16 {
    let url = format!("{}{}", gateway.base, concrete(path));
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = gateway.client.request(method, url).bearer_auth(secret).header("content-type", "application/json").body(body);
    // A page that streams for as long as it is looked at has said enough with its head.
    let sent = request.send().await.unwrap();
    let status = sent.status().as_u16();
    tokio::time::timeout(std::time::Duration::from_secs(2), Answer::read(sent)).await.ok();
    status
}

#[tokio::test]
async fn every_path_that_reaches_an_upstream_holds_and_settles_once() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let gateway = Gateway::before(&upstream).await;
    let routes = routes(&gateway);
    assert!(routes.len() > 10, "{routes:?}");
    let mut reached = BTreeSet::new();
    for (method, path) in &routes {
        // A key of its own, so that the limits of free paths do not stand in the way.
        let key = gateway.key("100.00").await;
        let before = upstream.requests().len();
        let mut answered = false;
        for body in bodies() {
            answered |= !matches!(call(&gateway, method, path, body, &key.secret).await, 404 | 405);
        }
        gateway.settled().await;
        let asked = upstream.requests().len() - before;
        let charges = gateway.charges(&key).await;
        assert!(answered || path.contains('{'), "{method} {path} is in the router and answers nothing");
        if asked > 0 {
            reached.insert(path.as_str());
        }
        if path == FREE {
            assert!(asked > 0 && charges.is_empty(), "counting tokens is free");
            continue;
        }
        assert_eq!(charges.len(), asked, "{method} {path}: one entry for each request that reached the upstream");
        for charge in charges {
            let bill = charge.bill.as_ref().unwrap();
            assert!(
                charge.amount.picos() < 0 && bill.hold.picos() >= -charge.amount.picos(),
                "{method} {path}: held, then charged"
            );
        }
    }
    let known: BTreeSet<&str> = PAID.iter().map(|(path, _)| *path).chain([FREE]).collect();
    assert_eq!(reached, known, "a path that reaches an upstream is listed above, with what it takes");
}

#[tokio::test]
async fn nothing_reaches_an_upstream_without_a_key_or_without_money() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let gateway = Gateway::before(&upstream).await;
    let empty = gateway.key("0").await;
    for (method, path) in routes(&gateway) {
        for secret in ["", "sk-proj-wrong", &empty.secret] {
            for (_, family) in PAID {
                let body = ask(family, "test-model", false).to_string().into_bytes();
                call(&gateway, &method, &path, body, secret).await;
            }
        }
    }
    assert_eq!(upstream.requests().len(), 0);
}
