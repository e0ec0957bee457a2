//! The lists of models and the paths around them.

use std::collections::BTreeMap;

use farebox_ledger::KeySettings;
use serde_json::{Value, json};

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

/// What the newest programs read of a model, with the source of each.
#[rustfmt::skip]
fn reads() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    const SDK: &str = "anthropic 2.14.0 (PyPI): types/model_info.py";
    // Kilo hides a model whose parameters do not name tools.
    const KILO: &str = "Kilo-Org/kilocode: packages/kilo-gateway/src/api/models.ts, openRouterModelSchema";
    // The one list of the OpenAI form that it reads; of other providers it reads none, and takes sizes from its settings.
    const OPENCODE: &str = "opencode-ai 1.18.33 (npm): ModalModels";
    // It asks where its key comes from a command, or for OpenAI itself. Without `base_instructions` it keeps its own sizes and words.
    const CODEX: &str = "openai/codex: codex-rs/protocol/src/openai_models.rs, ModelInfo";
    const ONE: &str = "/native/v1/models/test-model";
    const LIST: &str = "/v1/models";
    const SLUGS: &str = "/v1/models?client_version=0.171.0";
    let sees = json!(["text", "image", "file"]);
    vec![
        (SDK, ONE, "/type", json!("model")),
        (SDK, ONE, "/id", json!("test-model")),
        (SDK, ONE, "/display_name", json!("Test")),
        (SDK, ONE, "/created_at", json!("2026-01-01T00:00:00Z")),
        (SDK, ONE, "/lifecycle", json!("active")),
        (SDK, ONE, "/max_input_tokens", json!(200_000)),
        (SDK, ONE, "/max_tokens", json!(64_000)),
        (SDK, ONE, "/capabilities", Value::Null),
        (SDK, ONE, "/deprecated_at", Value::Null),
        (SDK, ONE, "/retires_at", Value::Null),
        (SDK, ONE, "/line", Value::Null),
        (SDK, "/native/v1/models", "/data/0/max_input_tokens", json!(200_000)),
        (KILO, LIST, "/data/0/id", json!("test-model")),
        (KILO, LIST, "/data/0/name", json!("Test")),
        (KILO, LIST, "/data/0/context_length", json!(200_000)),
        (KILO, LIST, "/data/0/max_completion_tokens", json!(64_000)),
        (KILO, LIST, "/data/0/top_provider/max_completion_tokens", json!(64_000)),
        (KILO, LIST, "/data/0/pricing/prompt", json!("0.000003")),
        (KILO, LIST, "/data/0/pricing/completion", json!("0.000015")),
        (KILO, LIST, "/data/0/pricing/input_cache_read", json!("0.0000003")),
        (KILO, LIST, "/data/0/pricing/input_cache_write", json!("0.00000375")),
        (KILO, LIST, "/data/0/architecture/input_modalities", sees.clone()),
        (KILO, LIST, "/data/0/architecture/output_modalities", json!(["text"])),
        (KILO, LIST, "/data/0/supported_parameters/0", json!("max_tokens")),
        (OPENCODE, LIST, "/data/0/name", json!("Test")),
        (OPENCODE, LIST, "/data/0/context_length", json!(200_000)),
        (OPENCODE, LIST, "/data/0/max_output_length", json!(64_000)),
        (OPENCODE, LIST, "/data/0/input_modalities", sees.clone()),
        (OPENCODE, LIST, "/data/0/output_modalities", json!(["text"])),
        (OPENCODE, LIST, "/data/0/pricing/prompt", json!("0.000003")),
        (OPENCODE, LIST, "/data/0/supported_features", json!(["tools"])),
        (OPENCODE, LIST, "/data/0/supported_sampling_parameters", json!(["temperature", "top_p", "stop"])),
        (OPENCODE, LIST, "/data/1/supported_features", json!([])),
        (CODEX, SLUGS, "/models/0/slug", json!("test-model")),
        (CODEX, SLUGS, "/models/0/display_name", json!("Test")),
        (CODEX, SLUGS, "/models/0/context_window", json!(200_000)),
        (CODEX, SLUGS, "/models/0/max_context_window", json!(200_000)),
        (CODEX, SLUGS, "/models/0/input_modalities", sees),
    ]
}

#[tokio::test]
async fn the_newest_programs_find_what_they_read() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0").await;
    let mut lists: BTreeMap<&str, Value> = BTreeMap::new();
    for (source, path, pointer, value) in reads() {
        if !lists.contains_key(path) {
            lists.insert(path, gateway.get(path, &key).await.json());
        }
        assert_eq!(
            lists[path].pointer(pointer),
            Some(&value),
            "{source}: {pointer} of {path}"
        );
    }
    let codex = &lists["/v1/models?client_version=0.171.0"]["models"][0];
    assert!(codex.get("base_instructions").is_none());
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
