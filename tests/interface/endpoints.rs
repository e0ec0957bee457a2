//! Endpoints and authentication: sections 4 and 5 of the page.

use farebox_protocol::Family;
use serde_json::json;

use super::{CHAT, Desk, NATIVE, RESPONSES, SHIPPED, ids, picture, saying, tools, with};
use crate::process::cli::Cli;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, ask, catalog, chat, path, routes_speaking, talking};

#[tokio::test]
async fn get_v1_models() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    // The whole lineup, also what only native callers are served.
    let native = routes_speaking(&upstream.base_url(), Family::Messages);
    let only = native.replace("[[route]]", "[[route]]\ntranslate = false");
    let gateway = Gateway::start(&catalog(Family::Messages), &only).await;
    let key = gateway.key("0").await;
    let answer = gateway.get("/v1/models", &key).await;
    assert_eq!(
        (answer.status, &answer.json()["object"]),
        (200, &json!("list"))
    );
    assert_eq!(ids(&answer.json()), ["test-model", "test-blind"]);
    let paths = json!({ "chat": null, "responses": null, "messages": "direct" });
    assert_eq!(answer.json()["data"][0]["paths"], paths);
    let one = gateway.get("/v1/models/test-model", &key).await.json();
    assert_eq!(one, answer.json()["data"][0]);
}

#[tokio::test]
async fn get_native_v1_models() {
    let desk = Desk::with("0").await;
    let key = [("x-api-key", &*desk.key.secret)];
    let answer = desk.asked_by("/native/v1/models", &key).await;
    assert_eq!(
        (answer.status, ids(&answer.json())),
        (200, vec!["test-model", "test-blind"])
    );
    let first = &answer.json()["data"][0];
    assert_eq!(
        (&first["type"], &first["display_name"]),
        (&json!("model"), &json!("Test"))
    );
}

#[tokio::test]
async fn model_that_this_path_does_not_serve() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    for speaks in Family::ALL {
        let only = routes_speaking(&upstream.base_url(), speaks)
            .replace("[[route]]", "[[route]]\ntranslate = false");
        let gateway = Gateway::start(&catalog(speaks), &only).await;
        let key = gateway.key("5.00").await;
        for family in Family::ALL {
            let body = ask(family, "test-model", false);
            let answer = gateway.post(path(family), &key, &body).await;
            if family == speaks {
                assert_eq!(answer.status, 200, "{}", answer.text);
                continue;
            }
            let says = format!(
                "model not found on this path: \\\"test-model\\\" is served on {}",
                path(speaks)
            );
            assert!(
                answer.status == 404 && answer.text.contains(&says),
                "{}",
                answer.text
            );
        }
        let native = gateway.get("/native/v1/models", &key).await.json();
        assert_eq!(ids(&native).is_empty(), speaks != Family::Messages);
        assert_eq!(gateway.charges(&key).await.len(), 1);
    }
}

#[tokio::test]
async fn post_v1_chat_completions() {
    let desk = Desk::with("5").await;
    let pictured = json!({ "messages": saying(picture(300)), "tools": tools(2, &json!({ "type": "object" })) });
    let answer = desk.gateway.post(CHAT, &desk.key, &with(pictured)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "PONG");
    let streamed = desk
        .gateway
        .post(CHAT, &desk.key, &with(json!({ "stream": true })))
        .await;
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    assert!(
        streamed.text.ends_with("data: [DONE]\n\n"),
        "{}",
        streamed.text
    );
    assert_eq!(desk.gateway.charges(&desk.key).await.len(), 2);
}

#[tokio::test]
async fn post_v1_responses() {
    let desk = Desk::with("5").await;
    let body = json!({ "model": "test-model", "input": "Say PONG" });
    let answer = desk.gateway.post(RESPONSES, &desk.key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["output"][0]["content"][0]["text"], "PONG");
}

#[tokio::test]
async fn post_v1_embeddings() {
    let (catalog, routes) = (VECTORS.0, VECTORS.1);
    let gateway = Gateway::start(catalog, routes).await;
    let key = gateway.key("5").await;
    let body = json!({ "model": "vectors", "input": ["four", "eight   "] });
    let answer = gateway.post("/v1/embeddings", &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["data"].as_array().unwrap().len(), 2);
    assert_eq!(answer.json()["usage"]["prompt_tokens"], 3);
    assert_eq!(answer.header("x-farebox-cost"), Some("0.00000006"));
    let chat = crate::support::chat("vectors", false);
    let wrong = gateway.post(CHAT, &key, &chat).await;
    assert_eq!(wrong.json()["error"]["code"], "wrong_path");
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn post_v1_rerank() {
    let of_rank = |text: &str| {
        text.replace("vectors", "ranks")
            .replace("embeddings", "rerank")
    };
    let gateway = Gateway::start(&of_rank(VECTORS.0), &of_rank(VECTORS.1)).await;
    let key = gateway.key("5").await;
    let body = json!({ "model": "ranks", "query": "which", "documents": ["no", "which one"] });
    let answer = gateway.post("/v1/rerank", &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["results"][0]["index"], 1);
    // Two tokens of the query with each document of one and three.
    assert_eq!(answer.json()["usage"]["prompt_tokens"], 8);
    assert_eq!(answer.header("x-farebox-cost"), Some("0.00000016"));
}

#[tokio::test]
async fn run_of_a_request() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5").await;
    let body = chat("test-model", false).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("x-farebox-run", "night"),
    ];
    let answer = gateway
        .send("/v1/chat/completions", &key, body, &headers)
        .await;
    let usage = gateway.get("/v1/usage?by=run", &key).await.json();
    let run = &usage["runs"][0];
    assert_eq!(
        (&run["run"], &run["requests"]),
        (&json!("night"), &json!(1))
    );
    assert_eq!(
        run["cost"].to_string(),
        answer.header("x-farebox-cost").unwrap()
    );
}

/// A model of vectors at the built-in provider.
const VECTORS: (&str, &str) = (
    r#"
[[model]]
model             = "Vectors"
slug              = "vectors"
provider          = "Tests"
best_path         = "embeddings"
best_environments = ["tests"]
price             = { input = "0.02" }
capabilities      = ["embeddings"]
limits            = { context = 8_192 }
"#,
    r#"
[provider.sim]
simulated = true

[[route]]
slug    = "vectors"
targets = [ { provider = "sim", model = "sim-vectors" } ]
"#,
);

#[tokio::test]
async fn post_native_v1_messages() {
    let desk = Desk::with("5").await;
    let mut body = ask(Family::Messages, "test-model", false);
    body["tools"] = json!([{ "name": "f", "input_schema": { "type": "object" } }]);
    let answer = desk.gateway.post(NATIVE, &desk.key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["content"][0]["text"], "PONG");
}

#[tokio::test]
async fn native_client_has_three_settings() {
    let gateway = Gateway::start(SHIPPED.0, SHIPPED.1).await;
    let key = gateway.key("5").await;
    let printed = Cli::new().run(&[
        "setup",
        "claude-code",
        "--base-url",
        &gateway.base,
        "--key",
        &key.secret,
    ]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let set = |name: &str| {
        let (_, rest) = printed.split_once(&format!("{name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let base = set("ANTHROPIC_BASE_URL");
    assert!(base.ends_with("/native"), "{base}");
    let body = ask(Family::Messages, &set("ANTHROPIC_MODEL"), false);
    let request = gateway.client.post(format!("{base}/v1/messages"));
    let request = request.bearer_auth(set("ANTHROPIC_AUTH_TOKEN"));
    let answer = Answer::read(request.json(&body).send().await.unwrap()).await;
    assert!(
        answer.status == 200 && answer.text.contains("claude-"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn chat_sdk_has_two_settings() {
    let arguments = [
        "setup",
        "openai-python",
        "--base-url",
        "https://x.example",
        "--key",
        "sk-fb-x",
    ];
    let printed = String::from_utf8(Cli::new().run(&arguments).stdout).unwrap();
    let client = r#"OpenAI(base_url="https://x.example/v1", api_key="sk-fb-x")"#;
    assert!(printed.contains(client), "{printed}");
}

#[tokio::test]
async fn keys_made_by_program() {
    let desk = Desk::with("5").await;
    let order = json!({ "name": "run 1", "limit": 0.2 });
    let error = desk.refuses("/v1/keys", &order, 403, "owner key").await;
    assert_eq!(error["code"], "owner_key_required");
    let owner = desk.gateway.owner("5").await;
    let made = desk.gateway.post("/v1/keys", &owner, &order).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    let (secret, hash) = (&made["key"], &made["data"]["hash"]);
    let path = format!("/v1/keys/{}", hash.as_str().unwrap());
    let list = desk.gateway.get("/v1/keys", &owner).await.json();
    assert_eq!(&list["data"][0]["hash"], hash);
    let run = (
        "authorization",
        format!("Bearer {}", secret.as_str().unwrap()),
    );
    let asked = desk.asked_by(CHAT, &[(run.0, &run.1)]).await;
    assert_eq!(asked.status, 200, "{}", asked.text);
    let url = format!("{}{path}", desk.gateway.base);
    let client = &desk.gateway.client;
    let renamed = client.patch(&url).json(&json!({ "name": "run one" }));
    let ended = client.delete(&url);
    for (request, says) in [(renamed, "run one"), (ended, "\"deleted\":true")] {
        let sent = request.bearer_auth(&owner.secret).send().await.unwrap();
        let answer = Answer::read(sent).await;
        assert!(
            answer.status == 200 && answer.text.contains(says),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn authorization_bearer() {
    let desk = Desk::with("5").await;
    let key = format!("Bearer {}", desk.key.secret);
    for path in ["/v1/models", "/native/v1/models", CHAT, NATIVE] {
        let answer = desk.asked_by(path, &[("authorization", &key)]).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn native_client_sends_x_api_key() {
    let desk = Desk::with("5").await;
    let key = ("x-api-key", &*desk.key.secret);
    for headers in [
        &[key][..],
        &[("authorization", "Bearer something-else"), key],
    ] {
        let answer = desk.asked_by("/native/v1/models", headers).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let answer = desk.asked_by("/v1/models", &[key]).await;
    desk.refused(&answer, 401, "Authorization: Bearer <API_KEY>")
        .await;
}
