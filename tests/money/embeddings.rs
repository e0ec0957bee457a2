//! Embeddings are held, charged, refused and retried as everything else that is sold: their cost is the count of their provider, who
//! counts here with a tokenizer of its own.

use farebox_doubles::Vendor;
use farebox_ledger::{Amount, Evidence, JournalEntry};
use serde_json::{Value, json};

use super::price_lists::put_on;
use crate::support::billing::words;
use crate::support::load::sized;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Answer, Gateway, TestKey, chat};

const PATH: &str = "/v1/embeddings";
/// Picodollars of a token.
const RATE: i64 = 20_000;

const CATALOG: &str = r#"
[[model]]
model             = "Vectors"
slug              = "vectors"
provider          = "Tests"
best_path         = "embeddings"
best_environments = ["tests"]
price             = { input = "0.02" }
capabilities      = ["embeddings"]
limits            = { context = 8_192 }

[[model]]
model             = "Talker"
slug              = "talker"
provider          = "Tests"
best_path         = "chat"
best_environments = ["tests"]
price             = { input = "1.00", output = "2.00" }
limits            = { context = 200_000, max_output = 64_000 }

[[price_list]]
name = "cheap"
price.vectors = { input = "0.01" }
"#;

/// Two providers; what is said of the first stands in its table.
fn routes(said: &str, first: &ScriptedUpstream, second: &ScriptedUpstream) -> String {
    let (first, second) = (first.base_url(), second.base_url());
    format!(
        r#"
[provider.first]
base_url = "{first}"
key      = {{ env = "K" }}
{said}

[provider.second]
base_url = "{second}"
speaks   = ["embeddings"]
key      = {{ env = "K" }}

[[route]]
slug    = "vectors"
targets = [ {{ provider = "first", model = "upstream-vectors" }}, {{ provider = "second", model = "upstream-vectors" }} ]

[[route]]
slug    = "talker"
targets = [ {{ provider = "first", model = "upstream-talker" }} ]
"#
    )
}

const BOTH: &str = r#"speaks = ["chat", "embeddings"]"#;

async fn gateway(first: &ScriptedUpstream, second: &ScriptedUpstream) -> Gateway {
    Gateway::start(CATALOG, &routes(BOTH, first, second)).await
}

/// What the provider counts.
fn counted(body: &Value) -> u64 {
    let one = |input: &Value| match input {
        Value::String(text) => words(text),
        Value::Array(tokens) => tokens.len() as u64,
        other => panic!("{other}"),
    };
    match &body["input"] {
        Value::Array(list) if !list[0].is_number() => list.iter().map(one).sum(),
        single => one(single),
    }
}

fn texts(body: &Value) -> usize {
    match &body["input"] {
        Value::Array(list) if !list[0].is_number() => list.len(),
        _ => 1,
    }
}

/// An honest answer.
fn vectors(seen: &Seen) -> Value {
    let body = seen.json();
    let vector = match body["encoding_format"].as_str() {
        Some("base64") => json!("AACAPwAAAEA="),
        _ => json!([0.25, -1.5e-3]),
    };
    let data: Vec<Value> = (0..texts(&body))
        .map(|index| json!({ "object": "embedding", "index": index, "embedding": vector }))
        .collect();
    let tokens = counted(&body);
    json!({
        "object": "list", "data": data, "model": body["model"], "host": "upstream.internal",
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens }
    })
}

fn honest() -> Script {
    Script::by(|seen, _| Reply::json(200, &vectors(seen)))
}

fn with(change: impl Fn(&mut Value) + Send + 'static) -> Script {
    Script::by(move |seen, _| {
        let mut answer = vectors(seen);
        change(&mut answer);
        Reply::json(200, &answer)
    })
}

async fn last(gateway: &Gateway, key: &TestKey) -> JournalEntry {
    gateway.settled().await;
    gateway.charges(key).await.pop().unwrap()
}

/// Judges an answer by what was asked, and the journal by what the provider counted.
async fn judge(gateway: &Gateway, key: &TestKey, body: &Value, answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (said, tokens) = (answer.json(), counted(body));
    let charge = i64::try_from(tokens).unwrap() * RATE;
    assert_eq!(said["model"], "vectors");
    assert_eq!(said["host"], Value::Null, "{}", answer.text);
    assert_eq!(said["data"].as_array().unwrap().len(), texts(body));
    assert_eq!(said["usage"]["prompt_tokens"], tokens);
    let cost = Amount::from_picos(charge).to_string();
    assert_eq!(answer.header("x-farebox-cost"), Some(&*cost));
    assert_eq!(
        said["usage"]["cost"].to_string().parse::<f64>(),
        cost.parse()
    );
    let entry = last(gateway, key).await;
    let bill = entry.bill.unwrap();
    assert_eq!((entry.amount.picos(), bill.usage.input), (-charge, tokens));
    assert_eq!(
        (&*bill.family, bill.evidence),
        ("embeddings", Some(Evidence::Provider))
    );
    assert!(bill.hold >= Amount::from_picos(charge), "{body}");
    assert_eq!(bill.loss, Amount::ZERO);
}

#[tokio::test]
async fn every_shape_of_input_is_passed_on_as_it_is_and_charged_exactly() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1").await;
    for (number, more) in [
        r#""input":"hello world""#,
        r#""input":["hello","wörld \"quoted\" \n","日本語のテキスト"]"#,
        r#""input":[15339,1917,0]"#,
        r#""input":[[15339],[1917,0]] ,"user":"u""#,
        r#""encoding_format":"base64","input":["a","b"],"dimensions":2"#,
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(r#"{{ "model":"vectors", {more} }}"#);
        let sent = gateway
            .send(
                PATH,
                &key,
                body.clone(),
                &[("content-type", "application/json")],
            )
            .await;
        let json = serde_json::from_str(&body).unwrap();
        judge(&gateway, &key, &json, &sent).await;
        let arrived = String::from_utf8(upstream.request(number).await.body).unwrap();
        assert_eq!(arrived, body.replace("vectors", "upstream-vectors"));
    }
    let wanted = json!({ "model": "vectors", "input": "a", "usage": { "include": false } });
    let answer = gateway.post(PATH, &key, &wanted).await;
    assert_eq!(answer.json()["usage"]["cost"], Value::Null);
}

#[tokio::test]
async fn random_batches_are_charged_what_the_provider_counts() {
    let upstream = ScriptedUpstream::start(honest()).await;
    upstream.forget();
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1000").await;
    let (mut state, mut all) = (7_u64, 0);
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
    let count = sized(60, 10_000);
    for _ in 0..count {
        let inputs: Vec<Value> = (0..=roll(24))
            .map(|_| {
                let text = (0..=roll(30)).map(|_| pieces[roll(10) as usize]);
                json!(text.collect::<String>())
            })
            .collect();
        let tokens: Vec<Vec<u64>> = (0..=roll(5)).map(|_| (0..=roll(40)).collect()).collect();
        let input = match roll(4) {
            0 => inputs[0].clone(),
            1 => json!(tokens[0]),
            2 => json!(tokens),
            _ => json!(inputs),
        };
        let body = json!({ "model": "vectors", "input": input });
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        all += counted(&body);
    }
    gateway.settled().await;
    let account = gateway.account(&key).await.customer.account;
    assert_eq!(account.spent.picos(), i64::try_from(all).unwrap() * RATE);
    assert_eq!(account.held, Amount::ZERO);
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_sent() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1").await;
    for (body, param) in [
        (json!({ "model": "vectors" }), "input"),
        (json!({ "model": "vectors", "input": null }), "input"),
        (json!({ "model": "vectors", "input": {} }), "input"),
        (json!({ "model": "vectors", "input": "" }), "input"),
        (json!({ "model": "vectors", "input": [] }), "input"),
        (
            json!({ "model": "vectors", "input": ["a", ""] }),
            "input[1]",
        ),
        (json!({ "model": "vectors", "input": ["a", [1]] }), "input"),
        (
            json!({ "model": "vectors", "input": [[1], []] }),
            "input[1]",
        ),
        (json!({ "model": "vectors", "input": [1, -1] }), "input"),
        (json!({ "model": "vectors", "input": [1.5] }), "input"),
        (
            json!({ "model": "vectors", "input": vec!["a"; 2_049] }),
            "input",
        ),
        (json!({ "input": "a" }), "model"),
        (
            json!({ "model": "vectors", "input": "a", "stream_options": {} }),
            "stream_options",
        ),
        (
            json!({ "model": "vectors", "input": "a", "models": ["x"] }),
            "models",
        ),
        (json!({ "model": "talker", "input": "a" }), "model"),
    ] {
        let answer = gateway.post(PATH, &key, &body).await;
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["param"]),
            (400, &json!(param)),
            "{}",
            answer.text
        );
    }
    let many = json!({ "model": "vectors", "input": vec!["a"; 2_049] });
    let details = gateway.post(PATH, &key, &many).await.json()["error"]["details"].clone();
    assert_eq!(details, json!({ "at_most": { "input": 2_048 } }));
    let long = json!({ "model": "vectors", "input": "word ".repeat(20_000) });
    let answer = gateway.post(PATH, &key, &long).await;
    assert_eq!(answer.json()["error"]["code"], "context_length_exceeded");
    assert_eq!(upstream.requests().len(), 0);
    let most = json!({ "model": "vectors", "input": vec!["a"; 2_048] });
    judge(
        &gateway,
        &key,
        &most,
        &gateway.post(PATH, &key, &most).await,
    )
    .await;
}

#[tokio::test]
async fn a_path_that_does_not_serve_a_model_names_the_one_that_does() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1").await;
    let native = json!({ "model": "vectors", "max_tokens": 9, "messages": [{ "role": "user", "content": "a" }] });
    for (path, body, right) in [
        ("/v1/chat/completions", chat("vectors", false), PATH),
        (
            "/v1/responses",
            json!({ "model": "vectors", "input": "a" }),
            PATH,
        ),
        ("/native/v1/messages", native, PATH),
        (
            PATH,
            json!({ "model": "talker", "input": "a" }),
            "/v1/chat/completions",
        ),
    ] {
        let answer = gateway.post(path, &key, &body).await;
        let told = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(answer.status, 400, "{path}: {told}");
        assert!(told.contains(right), "{path}: {told}");
    }
    let listed = gateway.get("/v1/models/vectors", &key).await.json();
    let paths =
        json!({ "chat": null, "responses": null, "messages": null, "embeddings": "direct" });
    assert_eq!(listed["paths"], paths);
    assert_eq!(listed["capabilities"], json!(["embeddings"]));
    assert_eq!(listed["service_price"], "in $0.02 per 1M tokens");
    assert_eq!(
        gateway.get("/native/v1/models/vectors", &key).await.status,
        404
    );
    let all = gateway.get("/native/v1/models", &key).await;
    assert!(!all.text.contains("vectors"), "{}", all.text);
}

#[tokio::test]
async fn a_key_with_nothing_is_refused_and_one_with_too_little_is_told_so() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let body = json!({ "model": "vectors", "input": "a few words of text" });
    let empty = gateway.key("0").await;
    let answer = gateway.post(PATH, &empty, &body).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (429, &json!("insufficient_quota"))
    );
    let poor = gateway.key("0.00000006").await;
    let answer = gateway.post(PATH, &poor, &body).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (429, &json!("insufficient_quota"))
    );
    assert!(!answer.text.contains("output tokens"), "{}", answer.text);
    assert_eq!(upstream.requests().len(), 0);
    let refused = gateway.records.all();
    let called: Vec<_> = refused.iter().map(|record| record.family).collect();
    assert_eq!(called, ["embeddings"; 2]);
    let exact = gateway.key("0.0000002").await;
    judge(
        &gateway,
        &exact,
        &body,
        &gateway.post(PATH, &exact, &body).await,
    )
    .await;
}

#[tokio::test]
async fn a_price_list_has_its_own_price() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("1").await;
    put_on(&*gateway.ledger, &key, Some("cheap")).await;
    let body = json!({ "model": "vectors", "input": ["one two", "three"] });
    let answer = gateway.post(PATH, &key, &body).await;
    let half = Amount::from_picos(i64::try_from(counted(&body)).unwrap() * RATE / 2);
    assert_eq!(answer.header("x-farebox-cost"), Some(&*half.to_string()));
}

#[tokio::test]
async fn another_target_is_asked_where_one_fails_and_only_an_answer_is_charged() {
    let second = ScriptedUpstream::start(honest()).await;
    let body = json!({ "model": "vectors", "input": ["one", "two", "three"] });
    for (number, failing) in [
        Script::from(Reply::error(500, "server_error", None, "no")),
        Script::from(Reply::error(
            429,
            "requests",
            Some("rate_limit_exceeded"),
            "slow down",
        )),
        with(|answer| drop(answer["data"].as_array_mut().unwrap().pop())),
        with(|answer| answer["data"][1]["embedding"] = json!([])),
        with(|answer| answer["data"] = json!("none")),
        Script::from(Reply::whole(
            200,
            "application/json",
            r#"{"object":"list","data":[{"embedd"#,
        )),
        Script::from(Reply::json(
            200,
            &json!({ "error": { "message": "overloaded", "type": "server_error" } }),
        )),
    ]
    .into_iter()
    .enumerate()
    {
        let first = ScriptedUpstream::start(failing).await;
        let gateway = gateway(&first, &second).await;
        let key = gateway.key("1").await;
        let answer = gateway.post(PATH, &key, &body).await;
        judge(&gateway, &key, &body, &answer).await;
        assert_eq!(gateway.charges(&key).await.len(), 1, "{number}");
        assert_eq!(
            (first.requests().len(), second.requests().len()),
            (1, number + 1)
        );
    }
}

#[tokio::test]
async fn an_answer_that_no_target_makes_is_free() {
    let fewer = || with(|answer| drop(answer["data"].as_array_mut().unwrap().pop()));
    let (first, second) = (
        ScriptedUpstream::start(fewer()).await,
        ScriptedUpstream::start(fewer()).await,
    );
    let gateway = gateway(&first, &second).await;
    let key = gateway.key("1").await;
    let body = json!({ "model": "vectors", "input": ["one", "two"] });
    let answer = gateway.post(PATH, &key, &body).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    let entry = last(&gateway, &key).await;
    assert_eq!(entry.amount, Amount::ZERO);
    assert!(
        entry.bill.unwrap().exposure.is_positive(),
        "the providers may bill what they did"
    );
}

#[tokio::test]
async fn a_count_that_is_missing_or_cannot_be_is_replaced_by_ours() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let body = json!({ "model": "vectors", "input": [text.clone(), text] });
    let truth = i64::try_from(counted(&body)).unwrap() * RATE;
    for (script, evidence) in [
        (
            with(|answer| drop(answer.as_object_mut().unwrap().remove("usage"))),
            Evidence::Local,
        ),
        (
            with(|answer| answer["usage"] = Value::Null),
            Evidence::Local,
        ),
        (
            with(|answer| answer["usage"] = json!({ "prompt_tokens": 0, "total_tokens": 0 })),
            Evidence::Local,
        ),
        (
            with(|answer| answer["usage"]["prompt_tokens"] = json!(2_000_000_000)),
            Evidence::Disputed,
        ),
        (
            with(|answer| answer["usage"]["prompt_tokens"] = json!(-5)),
            Evidence::Disputed,
        ),
    ] {
        let upstream = ScriptedUpstream::start(script).await;
        let gateway = gateway(&upstream, &upstream).await;
        let key = gateway.key("1").await;
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let entry = last(&gateway, &key).await;
        let (charge, bill) = (-entry.amount.picos(), entry.bill.unwrap());
        assert_eq!(bill.evidence, Some(evidence), "{bill:?}");
        let shown = &answer.json()["usage"];
        assert_eq!(shown["prompt_tokens"], bill.usage.input, "{}", answer.text);
        match evidence {
            Evidence::Local => assert!(
                (truth * 94 / 100..=truth).contains(&charge),
                "{charge} of {truth}"
            ),
            // A token for each byte, and what a provider may add.
            _ => assert!(charge <= (2_000 + 4_200) * RATE, "{charge} of {truth}"),
        }
    }
}

#[tokio::test]
async fn a_refusal_of_the_provider_passes_and_costs_nothing() {
    let first = ScriptedUpstream::refusing(Vendor::OpenAi, honest()).await;
    let gateway = gateway(&first, &first).await;
    let key = gateway.key("1").await;
    for (body, words) in [
        (
            json!({ "model": "vectors", "input": [100_277] }),
            "does not know",
        ),
        (
            json!({ "model": "vectors", "input": "a", "dimensions": 5_000 }),
            "dimensions",
        ),
    ] {
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains(words), "{}", answer.text);
        assert!(!answer.text.contains("upstream-vectors"), "{}", answer.text);
        assert_eq!(last(&gateway, &key).await.amount, Amount::ZERO);
    }
}

#[tokio::test]
async fn each_service_gets_what_it_takes() {
    for (kind, vendor) in [
        ("openai", Vendor::OpenAi),
        ("mistral", Vendor::Mistral),
        ("gemini", Vendor::Gemini),
        ("vllm", Vendor::Vllm),
    ] {
        let script = match vendor {
            // It counts nothing.
            Vendor::Gemini => with(|answer| drop(answer.as_object_mut().unwrap().remove("usage"))),
            _ => honest(),
        };
        let upstream = ScriptedUpstream::playing(vendor, script).await;
        let said = format!("kind = \"{kind}\"");
        let gateway = Gateway::start(CATALOG, &routes(&said, &upstream, &upstream)).await;
        let key = gateway.key("1").await;
        let body = json!({ "model": "vectors", "input": ["one", "two"], "encoding_format": "float", "user": "u" });
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text);
        // Counted here, it is rounded down.
        let least = if vendor == Vendor::Gemini { 1 } else { 2 };
        let counted = answer.json()["usage"]["prompt_tokens"].as_u64().unwrap();
        assert!((least..=2).contains(&counted), "{kind}: {counted}");
    }
}

#[tokio::test]
async fn large_batches_and_large_answers_pass() {
    let upstream = ScriptedUpstream::start(Script::by(|seen, _| {
        let body = seen.json();
        let vector = format!("[{}0]", "-0.0123456789,".repeat(2_400));
        let one = format!(r#"{{"object":"embedding","index":0,"embedding":{vector}}}"#);
        let data = vec![one; texts(&body)].join(",");
        let tokens = counted(&body);
        let answer = format!(
            r#"{{"object":"list","data":[{data}],"model":"upstream-vectors","usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}}}"#
        );
        Reply::whole(200, "application/json", answer)
    }))
    .await;
    let gateway = gateway(&upstream, &upstream).await;
    let key = gateway.key("10").await;
    let text = "word and ".repeat(15 * 1_024 / 9);
    let body = json!({ "model": "vectors", "input": vec![text; 2_048] });
    assert!(body.to_string().len() > 29 << 20);
    let answer = gateway.post(PATH, &key, &body).await;
    assert_eq!(
        answer.status,
        200,
        "{}",
        answer.text.chars().take(400).collect::<String>()
    );
    assert!(answer.text.len() > 65 << 20, "{}", answer.text.len());
    let charge = i64::try_from(counted(&body)).unwrap() * RATE;
    assert_eq!(last(&gateway, &key).await.amount.picos(), -charge);
}
