//! Documents are ranked at the price of tokens or of searches, held, charged and refused as everything else that is sold.

use farebox_ledger::{Amount, Evidence};
use serde_json::{Value, json};

use crate::support::billing::words;
use crate::support::load::sized;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Answer, Gateway, TestKey, chat};

const PATH: &str = "/v1/rerank";
/// Picodollars of a token, and of a search.
const RATE: i64 = 50_000;
const SEARCH: i64 = 2_000_000_000;

const CATALOG: &str = r#"
[[model]]
model             = "Ranks"
slug              = "ranks"
provider          = "Tests"
best_path         = "rerank"
best_environments = ["tests"]
price             = { input = "0.05" }
capabilities      = ["rerank"]
limits            = { context = 8_192 }

[[model]]
model             = "Searches"
slug              = "searches"
provider          = "Tests"
best_path         = "rerank"
best_environments = ["tests"]
price             = { per_request = "0.002" }
capabilities      = ["rerank"]
limits            = { context = 4_096 }
"#;

fn routes(first: &ScriptedUpstream, second: &ScriptedUpstream) -> String {
    let (first, second) = (first.base_url(), second.base_url());
    format!(
        r#"
[provider.first]
base_url = "{first}"
speaks   = ["chat", "rerank"]
key      = {{ env = "K" }}

[provider.second]
base_url = "{second}"
speaks   = ["rerank"]
key      = {{ env = "K" }}

[[route]]
slug    = "ranks"
targets = [ {{ provider = "first", model = "upstream-ranks" }}, {{ provider = "second", model = "upstream-ranks" }} ]

[[route]]
slug    = "searches"
targets = [ {{ provider = "first", model = "upstream-searches" }} ]
"#
    )
}

async fn gateway(first: &ScriptedUpstream, second: &ScriptedUpstream) -> Gateway {
    Gateway::start(CATALOG, &routes(first, second)).await
}

fn texts(body: &Value) -> Vec<&str> {
    let documents = body["documents"].as_array().unwrap().iter();
    documents
        .map(|one| one.as_str().or(one["text"].as_str()).unwrap())
        .collect()
}

/// What a provider counts that reads the query with each document, and four tokens around both.
fn counted(body: &Value) -> u64 {
    let query = words(body["query"].as_str().unwrap());
    texts(body)
        .into_iter()
        .map(|document| query + words(document) + 4)
        .sum()
}

/// The results that are asked for, the last document first.
fn results(body: &Value) -> Vec<Value> {
    let documents = texts(body);
    let most = body["top_n"].as_u64().map_or(documents.len(), |top| {
        documents.len().min(usize::try_from(top).unwrap())
    });
    let all = documents.iter().enumerate().rev().take(most);
    all.map(|(index, text)| {
        json!({ "index": index, "relevance_score": 0.5, "document": { "text": text }, "host": "h" })
    })
    .collect()
}

/// As Jina, Together and vLLM answer.
fn ranked(seen: &Seen) -> Value {
    let body = seen.json();
    json!({ "id": "r-1", "model": body["model"], "results": results(&body), "usage": { "total_tokens": counted(&body) } })
}

fn honest() -> Script {
    Script::by(|seen, _| Reply::json(200, &ranked(seen)))
}

/// As Cohere answers.
fn by_searches() -> Script {
    Script::by(|seen, _| {
        let meta =
            json!({ "api_version": { "version": "2" }, "billed_units": { "search_units": 1 } });
        Reply::json(
            200,
            &json!({ "id": "r-1", "results": results(&seen.json()), "meta": meta }),
        )
    })
}

async fn judge(gateway: &Gateway, key: &TestKey, body: &Value, answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (said, tokens) = (answer.json(), counted(body));
    assert_eq!(said["model"], "ranks");
    assert!(!answer.text.contains("host"), "{}", answer.text);
    assert_eq!(
        said["results"].as_array().unwrap().len(),
        results(body).len()
    );
    let charge = i64::try_from(tokens).unwrap() * RATE;
    let cost = Amount::from_picos(charge).to_string();
    assert_eq!(answer.header("x-farebox-cost"), Some(&*cost));
    gateway.settled().await;
    let entry = gateway.charges(key).await.pop().unwrap();
    let bill = entry.bill.unwrap();
    assert_eq!((entry.amount.picos(), bill.usage.input), (-charge, tokens));
    assert_eq!(
        (&*bill.family, bill.evidence),
        ("rerank", Some(Evidence::Provider))
    );
    assert!(bill.hold >= Amount::from_picos(charge), "{body}");
}

#[tokio::test]
async fn random_documents_are_charged_what_the_provider_counts() {
    let upstream = ScriptedUpstream::start(honest()).await;
    upstream.forget();
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1000").await;
    let (mut state, mut all) = (11_u64, 0);
    let mut roll = move |most: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let pieces = [
        "cat ",
        "Übung ",
        "日本",
        "42 ",
        "\n",
        "🙂",
        "fn main() {}",
        " a",
        "-",
        "\"x\" ",
    ];
    for _ in 0..sized(40, 2_000) {
        let mut text = |most: u64| {
            let text = (0..=roll(most)).map(|_| pieces[usize::try_from(roll(10)).unwrap()]);
            text.collect::<String>()
        };
        let query = text(30);
        let documents: Vec<Value> = (0..text(20).len().max(1))
            .map(|number| match number % 2 {
                0 => json!(text(40)),
                _ => json!({ "text": text(40) }),
            })
            .collect();
        let body = json!({ "model": "ranks", "query": query, "documents": documents, "top_n": 7 });
        judge(
            &gateway,
            &key,
            &body,
            &gateway.post(PATH, &key, &body).await,
        )
        .await;
        all += counted(&body);
    }
    let account = gateway.account(&key).await.customer.account;
    assert_eq!(account.spent.picos(), i64::try_from(all).unwrap() * RATE);
    assert_eq!(account.held, Amount::ZERO);
}

#[tokio::test]
async fn a_key_with_just_enough_is_served_and_one_with_less_is_not() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let body = json!({ "model": "ranks", "query": "which one is it", "documents": vec!["one or another"; 50] });
    let poor = gateway.key("0.00001").await;
    let answer = gateway.post(PATH, &poor, &body).await;
    assert_eq!(
        answer.json()["error"]["code"],
        "insufficient_quota",
        "{}",
        answer.text
    );
    assert_eq!(upstream.requests().len(), 0);
    let enough = gateway.key("0.00006").await;
    judge(
        &gateway,
        &enough,
        &body,
        &gateway.post(PATH, &enough, &body).await,
    )
    .await;
}

#[tokio::test]
async fn a_search_has_one_price_and_a_request_is_one_search() {
    let upstream = ScriptedUpstream::start(by_searches()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("0.005").await;
    let body =
        json!({ "model": "searches", "query": "a b", "documents": vec!["c d"; 100], "top_n": 3 });
    let answer = gateway.post(PATH, &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("x-farebox-cost"), Some("0.002"));
    assert_eq!(answer.json()["results"].as_array().unwrap().len(), 3);
    assert_eq!(
        answer.json()["meta"],
        Value::Null,
        "what the provider bills is not shown"
    );
    for documents in [vec!["c d".to_owned(); 101], vec!["word ".repeat(500); 60]] {
        let body = json!({ "model": "searches", "query": "a b", "documents": documents });
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert_eq!(answer.json()["error"]["code"], "too_many_documents");
    }
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    assert_eq!(charges.len(), 1);
    assert_eq!(charges[0].amount.picos(), -SEARCH);
}

#[tokio::test]
async fn an_answer_with_fewer_results_is_asked_elsewhere() {
    let fewer = Script::by(|seen, _| {
        let mut answer = ranked(seen);
        answer["results"].as_array_mut().unwrap().pop();
        Reply::json(200, &answer)
    });
    let first = ScriptedUpstream::start(fewer).await;
    let second = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&first, &second).await;
    let key = gateway.key("1").await;
    let body = json!({ "model": "ranks", "query": "a", "documents": ["b", "c"] });
    judge(
        &gateway,
        &key,
        &body,
        &gateway.post(PATH, &key, &body).await,
    )
    .await;
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    let sent = second.request(0).await.json();
    assert_eq!(sent["model"], "upstream-ranks");
}

#[tokio::test]
async fn what_cannot_be_ranked_is_refused_before_anything_is_sent() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1").await;
    for (body, param) in [
        (json!({ "model": "ranks", "documents": ["a"] }), "query"),
        (
            json!({ "model": "ranks", "query": "a", "documents": [] }),
            "documents",
        ),
        (
            json!({ "model": "ranks", "query": "a", "documents": [{ "image": "b" }] }),
            "documents[0]",
        ),
        (
            json!({ "model": "ranks", "query": "a", "documents": vec!["a"; 2_049] }),
            "documents",
        ),
        (
            json!({ "model": "ranks", "query": "a", "documents": ["a"], "top_n": -1 }),
            "top_n",
        ),
        (json!({ "query": "a", "documents": ["a"] }), "model"),
    ] {
        let answer = gateway.post(PATH, &key, &body).await;
        let told = (answer.status, answer.json()["error"]["param"].clone());
        assert_eq!(told, (400, json!(param)), "{}", answer.text);
    }
    let wrong = gateway
        .post("/v1/chat/completions", &key, &chat("ranks", false))
        .await;
    assert_eq!(
        wrong.json()["error"]["code"],
        "wrong_path",
        "{}",
        wrong.text
    );
    assert!(wrong.text.contains(PATH), "{}", wrong.text);
    assert_eq!(upstream.requests().len(), 0);
}
