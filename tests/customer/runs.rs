//! `x-farebox-run`: what requests of a run cost, in documents, files and on the dashboard; bad names are refused before anything is held.

use std::iter::repeat_n;

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::sessions::Visitor;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, ask, path, talking};

async fn asked(gateway: &Gateway, key: &TestKey, family: Family, run: &str) -> Answer {
    let body = ask(family, "test-model", false).to_string();
    let headers = [("content-type", "application/json"), ("x-farebox-run", run)];
    gateway.send(path(family), key, body, &headers).await
}

async fn runs(gateway: &Gateway, key: &TestKey) -> Value {
    let answer = gateway.get("/v1/usage?by=run", key).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["runs"].clone()
}

#[tokio::test]
async fn requests_are_summed_by_the_run_that_they_name() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, other) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let mut costs = Vec::new();
    for family in Family::ALL {
        let answer = asked(&gateway, &key, family, " nightly é ").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let cost: f64 = answer.header("x-farebox-cost").unwrap().parse().unwrap();
        costs.push(cost);
        let sent = upstream.requests();
        assert_eq!(sent.last().unwrap().header("x-farebox-run"), None);
    }
    asked(&gateway, &key, Family::Chat, "once, \"twice\"").await;
    gateway
        .post(
            "/v1/chat/completions",
            &key,
            &ask(Family::Chat, "test-model", false),
        )
        .await;
    asked(&gateway, &other, Family::Chat, "somebody else's").await;
    let found = runs(&gateway, &key).await;
    let named = |place: usize| {
        (
            found[place]["run"].clone(),
            found[place]["requests"].clone(),
        )
    };
    assert_eq!(named(0), (json!("nightly é"), json!(3)), "{found}");
    assert_eq!(named(1), (json!("once, \"twice\""), json!(1)), "{found}");
    assert_eq!(found.as_array().unwrap().len(), 2);
    let sum: f64 = costs.iter().sum();
    assert!(
        (found[0]["cost"].as_f64().unwrap() - sum).abs() < 1e-12,
        "{found}"
    );
    let sheet = gateway.get("/v1/usage?by=run&format=csv", &key).await;
    let mut lines = sheet.text.lines();
    assert_eq!(lines.next(), Some("month,run,requests,cost"));
    assert!(
        lines.next().unwrap().contains(",nightly é,3,"),
        "{}",
        sheet.text
    );
    // What is summed by days is as before.
    let days = gateway.get("/v1/usage?by=day", &key).await.json();
    assert_eq!(days["days"][0]["requests"], 5);
    let bad = gateway.get("/v1/usage?by=week", &key).await;
    assert_eq!(
        (bad.status, bad.text.contains("by must be day or run")),
        (400, true)
    );
}

#[tokio::test]
async fn a_run_stands_on_the_receipt_and_on_the_dashboard() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let visitor = Visitor::signed_in(&gateway, &key).await;
    assert!(!visitor.get("").await.text.contains("Runs of this month"));
    let answer = asked(&gateway, &key, Family::Chat, "<night>").await;
    let id = answer.header("x-request-id").unwrap();
    let receipt = gateway.get(&format!("/v1/generation?id={id}"), &key).await;
    assert_eq!(receipt.json()["data"]["run"], "<night>");
    let page = visitor.get("").await.text;
    assert!(
        page.contains("Runs of this month") && page.contains("&lt;night&gt;"),
        "{page}"
    );
    let sheet = visitor.get("/usage.csv?by=run").await.text;
    assert!(sheet.contains(",<night>,1,"), "{sheet}");
    let requests = visitor.get("/requests.csv").await.text;
    assert!(
        requests.lines().nth(1).unwrap().ends_with(",<night>"),
        "{requests}"
    );
}

#[tokio::test]
async fn a_bad_name_of_a_run_is_refused_and_nothing_is_sent() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let long: String = repeat_n('x', 65).collect();
    for (family, run) in Family::ALL.into_iter().flat_map(|family| {
        ["a\u{202e}b", "sk-fb-abc", long.as_str()].map(|run| (family, run.to_owned()))
    }) {
        let answer = asked(&gateway, &key, family, &run).await;
        assert_eq!(answer.status, 400, "{run:?}: {}", answer.text);
        assert!(answer.text.contains("a run's name"), "{}", answer.text);
        assert!(!answer.text.contains("sk-fb-abc"), "{}", answer.text);
    }
    assert_eq!(
        asked(&gateway, &key, Family::Chat, " ").await.status,
        200,
        "none is named"
    );
    // What is no header at all, or too long for one, is refused before it is a request.
    let huge: String = repeat_n('x', 64 * 1024).collect();
    let refused = asked(&gateway, &key, Family::Chat, &huge).await;
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    assert_eq!(upstream.requests().len(), 1);
    assert_eq!(runs(&gateway, &key).await, json!([]));
}
