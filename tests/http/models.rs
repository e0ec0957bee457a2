//! The lists of models and the paths around them.

use farebox_ledger::KeySettings;
use serde_json::json;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, talking};

#[tokio::test]
async fn the_list_works_at_zero_balance_and_shows_the_canonical_columns() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0").await;
    let answer = gateway.get("/v1/models", &key).await;
    assert_eq!(answer.status, 200);
    let list = answer.json();
    let entry = &list["data"][0];
    assert_eq!(list["object"], "list");
    assert_eq!(entry["id"], "test-model");
    assert_eq!(entry["owned_by"], "Tests");
    for column in [
        "best_path",
        "best_environments",
        "price",
        "capabilities",
        "limits",
    ] {
        assert!(!entry[column].is_null(), "{column} in {entry}");
    }
    assert!(
        !answer.text.contains("test-alias"),
        "aliases are never listed"
    );
    assert!(
        !answer.text.contains("upstream-model"),
        "upstream names are never listed"
    );
    for (name, rate) in [
        ("prompt", "0.000003"),
        ("completion", "0.000015"),
        ("request", "0.00"),
        ("image", "0.00"),
        ("input_cache_read", "0.0000003"),
        ("input_cache_write", "0.00000375"),
        ("internal_reasoning", "0.000015"),
    ] {
        assert_eq!(entry["pricing"][name], rate, "{name}");
    }
    assert_eq!(entry["pricing"]["standard"], entry["price"]);
    let more = json!([
        entry["context_length"],
        entry["top_provider"]["max_completion_tokens"],
        entry["canonical_slug"],
        entry["architecture"]["input_modalities"],
        list["total_count"]
    ]);
    assert_eq!(
        more,
        json!([200_000, 64_000, "test-model", ["text", "image", "file"], 2])
    );
    assert!(list.get("models").is_none());
    let with_version = gateway
        .get("/v1/models?client_version=0.169.0", &key)
        .await
        .json();
    assert_eq!(with_version["models"][0]["slug"], "test-model");
}

#[tokio::test]
async fn a_key_sees_only_what_it_may_use() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let settings = KeySettings {
        models: Some(vec!["test-blind".to_owned()]),
        ..KeySettings::default()
    };
    let key = gateway.key_with("5.00", settings).await;
    let list = gateway.get("/v1/models", &key).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let native = gateway
        .get("/native/v1/models?limit=1000", &key)
        .await
        .json();
    assert_eq!(native["data"][0]["id"], "test-blind");
    assert_eq!(native["data"][0]["type"], "model");
    let refused = gateway
        .post(
            "/v1/chat/completions",
            &key,
            &crate::support::chat("test-model", false),
        )
        .await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["error"]["code"], "model_not_allowed");
    // Nor is it told of others by a refusal.
    let body = crate::support::chat("test-mode", false);
    for unknown in [
        gateway.post("/v1/chat/completions", &key, &body).await,
        gateway.get("/v1/models/test-mode", &key).await,
    ] {
        assert_eq!(unknown.status, 404);
        assert!(
            unknown.text.contains("test-blind") && !unknown.text.contains("test-model"),
            "{}",
            unknown.text
        );
    }
}

#[tokio::test]
async fn probes_need_no_key_and_a_wrong_method_is_named() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    for path in ["/", "/v1", "/native", "/api/hello", "/native/api/hello"] {
        let probe = gateway
            .client
            .head(format!("{}{path}", gateway.base))
            .send()
            .await
            .unwrap();
        assert_eq!(probe.status(), 200, "{path}");
        assert!(probe.headers().contains_key("x-request-id"));
    }
    let get = Answer::read(
        gateway
            .client
            .get(format!("{}/v1/responses", gateway.base))
            .send()
            .await
            .unwrap(),
    )
    .await;
    let error = &get.json()["error"];
    assert_eq!(
        (get.status, error["code"].as_str(), get.header("allow")),
        (405, Some("method_not_allowed"), Some("POST"))
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("/v1/responses does not take GET"),
        "{}",
        get.text
    );
    let get = Answer::read(
        gateway
            .client
            .get(format!("{}/native/v1/messages", gateway.base))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(
        (get.status, get.json()["error"]["type"].as_str()),
        (405, Some("invalid_request_error"))
    );
}
