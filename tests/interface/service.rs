//! What the service does, keys and models, and the states of a key: sections 1 to 3 of the page.

use farebox::server::TlsFiles;
use farebox_ledger::key::Change;
use farebox_ledger::{KeySettings, Timestamp};
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::{CHAT, Desk, SHIPPED, all_name, ids, page, with};
use crate::customer::sessions::Visitor;
use crate::process::cli::Cli;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{
    CATALOG, Gateway, HOME, ask, catalog, chat, path, routes, routes_speaking, talking,
};

#[tokio::test]
async fn json_over_https() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = |name: &str| std::path::Path::new(HOME).join("tests/tls").join(name);
    let tls = TlsFiles {
        certificate: place("first.crt"),
        key: place("first.key"),
    };
    let routes = routes(&upstream.base_url());
    let mut gateway = Gateway::start_with(CATALOG, &routes, |set| set.tls = Some(tls)).await;
    let client = reqwest::Client::builder().no_proxy();
    gateway.client = (client.tls_danger_accept_invalid_certs(true).build()).unwrap();
    assert!(gateway.base.starts_with("https://"));
    let key = gateway.key("5").await;
    let body = chat("test-model", false);
    let answer = gateway.post(CHAT, &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "PONG");
}

#[tokio::test]
async fn two_path_families() {
    let gateway = Gateway::start(SHIPPED.0, SHIPPED.1).await;
    let key = gateway.key("5.00").await;
    let list = gateway.get("/v1/models", &key).await.json();
    for slug in ids(&list) {
        for (family, stream) in Family::ALL
            .into_iter()
            .flat_map(|one| [(one, false), (one, true)])
        {
            let body = ask(family, slug, stream);
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(answer.status, 200, "{slug} {family}: {}", answer.text);
            assert!(answer.text.contains("PONG"), "{}", answer.text);
            assert!(
                answer.text.contains(&format!("\"{slug}\"")),
                "{}",
                answer.text
            );
        }
    }
    let charges = gateway.charges(&key).await;
    assert_eq!(charges.len(), ids(&list).len() * 6);
    assert!(charges.iter().all(|charge| charge.amount.picos() < 0));
}

#[tokio::test]
async fn chat_client_on_native() {
    let desk = Desk::with("5").await;
    let base = format!("its base URL is {}/v1", desk.gateway.base);
    for path in [
        "/native/chat/completions",
        "/native/v1/chat/completions",
        "/native/v1/responses",
    ] {
        desk.refuses(path, &json!({}), 404, &base).await;
    }
}

#[tokio::test]
async fn native_client_on_v1() {
    let desk = Desk::with("5").await;
    let base = format!("its base URL is {}/native", desk.gateway.base);
    for path in [
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/v1/messages",
    ] {
        desk.refuses(path, &json!({}), 404, &base).await;
    }
}

#[tokio::test]
async fn v1_twice_or_not_at_all() {
    let desk = Desk::with("5").await;
    let base = &desk.gateway.base;
    for (path, says) in [
        (
            "/v1/v1/chat/completions",
            "/v1 is there twice; the base URL is BASE/v1 exactly",
        ),
        ("/v1/v1/responses", "the base URL is BASE/v1 exactly"),
        ("/v1/v1/models", "the base URL is BASE/v1 exactly"),
        ("/chat/completions", "the base URL is BASE/v1"),
        ("/responses", "the base URL is BASE/v1"),
        (
            "/native/v1/v1/messages",
            "is BASE/native, without /v1 at its end",
        ),
    ] {
        // The name that a client calls the gateway by is never repeated to it.
        let called = [("host", "evil.example")];
        let answer = desk.gateway.send(path, &desk.key, "{}", &called).await;
        desk.refused(&answer, 404, &says.replace("BASE", base))
            .await;
        assert!(!answer.text.contains("evil"), "{}", answer.text);
    }
}

#[tokio::test]
async fn balance_moves_on_the_dashboard() {
    let desk = Desk::with("5").await;
    let visitor = Visitor::signed_in(&desk.gateway, &desk.key).await;
    assert!(visitor.get("").await.text.contains("5.00"));
    let body = chat("test-model", false);
    let answer = desk.gateway.post(CHAT, &desk.key, &body).await;
    // 10 input tokens at $3 and 1 output token at $15 per million.
    assert_eq!(answer.header("x-farebox-cost"), Some("0.000045"));
    let shown = visitor.get("").await.text;
    assert!(shown.contains("4.999955"), "{shown}");
}

#[tokio::test]
async fn one_slug_for_each_model() {
    let desk = Desk::with("5").await;
    for path in ["/v1/models", "/native/v1/models"] {
        let list = desk.gateway.get(path, &desk.key).await;
        assert_eq!(ids(&list.json()), ["test-model", "test-blind"]);
        for hidden in ["test-alias", "test-old", "upstream-model"] {
            assert!(!list.text.contains(hidden), "{hidden}: {}", list.text);
        }
    }
    let forms = (Family::ALL.into_iter()).flat_map(|family| [(family, false), (family, true)]);
    for target in Family::ALL {
        let routes = routes_speaking(&desk.upstream.base_url(), target);
        let gateway = Gateway::start(&catalog(target), &routes).await;
        let key = gateway.key("5").await;
        for (family, stream) in forms.clone() {
            for (name, slug) in [("test-model", None), ("test-alias", Some("test-model"))] {
                let body = ask(family, name, stream);
                let answer = gateway.post(path(family), &key, &body).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                assert_eq!(answer.header("x-farebox-slug"), slug, "{family} {name}");
                all_name(&answer.text, name);
            }
        }
    }
}

#[tokio::test]
async fn canonical_table() {
    let output = Cli::new().run(&["models", "--format", "markdown"]);
    let table = String::from_utf8(output.stdout).unwrap();
    let columns =
        "| model | customer slug | provider | best path | best environments | service price |";
    assert_eq!(table.lines().next(), Some(columns));
    let readme = page("README.md");
    let first: Vec<&str> = readme.lines().take(60).collect();
    for row in table.lines() {
        assert!(
            first.contains(&row),
            "README.md, in its first 60 lines: {row}"
        );
    }
    let first = first.join("\n");
    for said in [
        "GET /v1/models",
        "GET /native/v1/models",
        "POST /v1/chat/completions",
        "POST /v1/responses",
        "POST /native/v1/messages",
        "gets 429 \"out of balance",
        "farebox check --online",
    ] {
        assert!(
            first.contains(said),
            "README.md, in its first 60 lines: {said}"
        );
    }
}

#[tokio::test]
async fn key_is_shown_once() {
    let cli = Cli::new();
    let create = ["keys", "create", "--new-ledger", "--label", "a", "--json"];
    let made = cli.json(&create);
    assert!(made["secret"].as_str().unwrap().starts_with("sk-fb-"));
    let shown = cli.json(&["keys", "show", made["id"].as_str().unwrap(), "--json"]);
    assert_eq!(shown.get("secret"), None);
}

#[tokio::test]
async fn balance_of_a_key() {
    let desk = Desk::with("5").await;
    let own = async || desk.gateway.get("/v1/key", &desk.key).await.json()["data"].clone();
    let before = own().await;
    assert_eq!(
        (&before["balance"], &before["held"]),
        (&json!("5.00"), &json!("0.00"))
    );
    desk.gateway
        .post(CHAT, &desk.key, &chat("test-model", false))
        .await;
    desk.gateway.top_up(&desk.key, "1").await;
    let after = own().await;
    assert_eq!(
        (&after["balance"], &after["available"]),
        (&json!("5.999955"), &json!("5.999955"))
    );
}

#[tokio::test]
async fn slug_is_copied_exactly() {
    let desk = Desk::with("5").await;
    for name in [
        "Test-Model",
        "test_model",
        "test model",
        " test-model",
        "test",
        "",
    ] {
        let says = "model not found … test-model … GET /v1/models lists what is served";
        let error = desk.refuses_chat(json!({ "model": name }), 404, says).await;
        assert_eq!(error["code"], "model_not_found", "{name}");
    }
}

#[tokio::test]
async fn catalog_attributes() {
    let desk = Desk::with("0").await;
    let one = desk
        .gateway
        .get("/v1/models/test-model", &desk.key)
        .await
        .json();
    let columns = json!([
        one["model"],
        one["customer_slug"],
        one["provider"],
        one["best_path"],
        one["best_environments"]
    ]);
    assert_eq!(
        columns,
        json!(["Test", "test-model", "Tests", "chat", ["tests"]])
    );
    let rates =
        ["input", "output", "cache_read", "cache_write"].map(|rate| one["price"][rate].clone());
    assert_eq!(rates, ["3.00", "15.00", "0.30", "3.75"].map(Value::from));
    assert_eq!(one["capabilities"], json!(["vision", "tools", "streaming"]));
    assert_eq!(one["limits"]["context"], 200_000);
}

#[tokio::test]
async fn balance_is_reduced() {
    let desk = Desk::with("5").await;
    for left in ["4.999955", "4.99991"] {
        let body = chat("test-model", false);
        let answer = desk.gateway.post(CHAT, &desk.key, &body).await;
        assert_eq!(
            (answer.status, answer.header("x-farebox-balance")),
            (200, Some(left))
        );
        assert_eq!(desk.available().await, left);
    }
}

#[tokio::test]
async fn balance_depleted() {
    let desk = Desk::with("0").await;
    // Also to programs that repeat a 429, which a seller can answer with 402.
    for program in [
        "curl/8.5",
        "opencode/1.18.33",
        "Kilo-Code/7.7.9",
        "factory-cli/0.225.2",
        "ai/7.0.173 ai-sdk",
    ] {
        for family in Family::ALL {
            let body = ask(family, "test-model", false).to_string();
            let sent = [("user-agent", program)];
            let answer = desk
                .gateway
                .send(path(family), &desk.key, body, &sent)
                .await;
            let says = "out of balance … You exceeded your current quota … Top up the same key, then retry";
            let error = desk.refused(&answer, 429, says).await;
            let (kind, code) = match family {
                Family::Chat | Family::Responses => {
                    ("insufficient_quota", json!("insufficient_quota"))
                }
                Family::Messages => ("billing_error", Value::Null),
            };
            assert_eq!((&error["type"], &error["code"]), (&json!(kind), &code));
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            assert_eq!(answer.header("retry-after"), None);
        }
    }
}

#[tokio::test]
async fn balance_smaller_than_the_request() {
    let desk = Desk::with("0.10").await;
    let says = "out of balance … available 0.10 USD … send `max_tokens` of at most";
    // Any other limit would be lowered to what the balance pays; the service knows no lower one beside a prediction.
    let predicts = json!({"type": "content", "content": "a word"});
    let asked = json!({ "max_tokens": 50_000, "prediction": &predicts });
    let error = desk.refuses_chat(asked, 429, says).await;
    let mut remedy = error["details"]["remedies"][0].clone();
    assert_eq!(
        remedy["max_tokens"],
        error["details"]["affordable_output_tokens"]
    );
    remedy["prediction"] = predicts;
    let answer = desk.gateway.post(CHAT, &desk.key, &with(remedy)).await;
    assert_eq!(
        answer.status, 200,
        "what is said to be affordable is: {}",
        answer.text
    );
}

#[tokio::test]
async fn top_up_and_retry() {
    let desk = Desk::with("0").await;
    desk.refuses_chat(json!({}), 429, "out of balance").await;
    desk.gateway.top_up(&desk.key, "1.00").await;
    let answer = desk.gateway.post(CHAT, &desk.key, &with(json!({}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn key_is_stopped() {
    let desk = Desk::with("5").await;
    for (change, word) in [(Change::Block, "blocked"), (Change::Revoke, "revoked")] {
        desk.gateway.change(&desk.key, change).await;
        let says = format!("{word} … ask the seller of this key");
        desk.refuses_chat(json!({}), 403, &says).await;
    }
    let past = KeySettings {
        expires_at: Some(Timestamp::from_millis(1)),
        ..KeySettings::default()
    };
    let expired = desk.gateway.key_with("5", past).await;
    let answer = desk.gateway.get("/v1/models", &expired).await;
    desk.refused(&answer, 403, "expired").await;
}
