//! Errors, limits, versions and the commands: sections 7 to 9 of the page, and its end.

use farebox_ledger::KeySettings;
use farebox_protocol::Family;
use serde_json::json;

use super::{CHAT, Desk, NATIVE, RESPONSES, SHIPPED, all_name, page, picture, saying, tools, with};
use crate::process::cli::Cli;
use crate::support::upstream::{Reply, Script, Speech};
use crate::support::{Gateway, ask, chat, path, skip, speech_for};

#[tokio::test]
async fn key_is_missing() {
    let desk = Desk::with("5").await;
    for path in ["/v1/models", CHAT, RESPONSES, NATIVE] {
        let answer = desk.asked_by(path, &[]).await;
        let says = "no key was sent … send your key as \"Authorization: Bearer <API_KEY>\"";
        desk.refused(&answer, 401, says).await;
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Bearer realm=\"farebox\"")
        );
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
}

#[tokio::test]
async fn key_is_copied_wrongly() {
    let desk = Desk::with("5").await;
    let secret = &desk.key.secret;
    for wrong in [
        secret[..secret.len() - 1].to_owned(),
        secret.replace("sk-fb-", "sk-fb-x"),
        secret.to_uppercase(),
        "<API_KEY>".to_owned(),
    ] {
        let answer = desk
            .asked_by(CHAT, &[("authorization", &format!("Bearer {wrong}"))])
            .await;
        let error = desk
            .refused(
                &answer,
                401,
                "not copied completely … Authorization: Bearer",
            )
            .await;
        assert_eq!(error["code"], "invalid_api_key");
        assert!(
            !answer.text.contains(&*wrong) || wrong == "<API_KEY>",
            "a secret never comes back"
        );
    }
}

#[tokio::test]
async fn key_of_a_provider() {
    let desk = Desk::with("5").await;
    let answer = desk
        .asked_by(
            CHAT,
            &[("authorization", "Bearer sk-proj-1234567890abcdef")],
        )
        .await;
    desk.refused(
        &answer,
        401,
        "this is not a key of this service … Authorization: Bearer",
    )
    .await;
}

#[tokio::test]
async fn key_is_an_old_one() {
    let desk = Desk::with("5").await;
    let id = desk.key.id.to_string();
    let rotated = Cli::on(&desk.gateway.ledger_path()).json(&["keys", "rotate", &id, "--json"]);
    desk.refuses_chat(
        json!({}),
        401,
        "this key is not known … Authorization: Bearer",
    )
    .await;
    let new = format!("Bearer {}", rotated["secret"].as_str().unwrap());
    let answer = desk.asked_by(CHAT, &[("authorization", &new)]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Names that are no slug, and what the 404 says of each.
async fn no_model(names: &[&str], says: &str) {
    let says = &format!("model not found … {says}");
    let desk = Desk::with("5").await;
    for name in names {
        for family in Family::ALL {
            desk.refuses(path(family), &ask(family, name, false), 404, says)
                .await;
        }
        let read = desk
            .gateway
            .get(&format!("/v1/models/{name}"), &desk.key)
            .await;
        desk.refused(&read, 404, says).await;
    }
}

#[tokio::test]
async fn name_of_a_provider() {
    no_model(
        &["tests/test-model", "upstream-model-1"],
        "GET /v1/models lists what is served",
    )
    .await;
}

#[tokio::test]
async fn alias_that_is_guessed() {
    no_model(
        &["test-latest", "test-model:free"],
        "did you mean test-model",
    )
    .await;
}

#[tokio::test]
async fn slug_with_a_typo() {
    no_model(&["test-modle", "tset-model"], "did you mean test-model").await;
}

#[tokio::test]
async fn slug_that_is_stale() {
    no_model(&["test-old"], "was retired; use \"test-model\" instead").await;
}

#[tokio::test]
async fn one_model_fails() {
    let desk = Desk::with("5").await;
    desk.upstream.follow(Script::by(|seen, _| {
        match seen.json()["model"] == "upstream-model-1" {
            true => Reply::error(500, "server_error", None, "account org-1234 is broken"),
            false => speech_for(seen, "PONG"),
        }
    }));
    let failed = desk
        .gateway
        .post(CHAT, &desk.key, &chat("test-model", false))
        .await;
    assert_eq!(
        (failed.status, failed.header("retry-after")),
        (503, Some("5"))
    );
    assert!(
        failed
            .text
            .contains("use another model, or try again later"),
        "{}",
        failed.text
    );
    assert!(!failed.text.contains("org-1234"), "{}", failed.text);
    assert_eq!(desk.available().await, "5.00");
    let other = desk
        .gateway
        .post(CHAT, &desk.key, &chat("test-blind", false))
        .await;
    assert_eq!(other.status, 200, "{}", other.text);
}

#[tokio::test]
async fn picture_to_a_model_without_vision() {
    let desk = Desk::with("5").await;
    let body = json!({ "model": "test-blind", "messages": saying(picture(300)) });
    let error = desk
        .refuses_chat(
            body,
            400,
            "test-blind does not read pictures; use a model with vision",
        )
        .await;
    assert_eq!(
        (&error["code"], &error["details"]["needs"]),
        (&json!("vision_unsupported"), &json!("vision"))
    );
}

#[tokio::test]
async fn picture_that_is_too_large() {
    let desk = Desk::with("5").await;
    let body = json!({ "messages": saying(picture(3_000)) });
    let error = desk
        .refuses_chat(body, 400, "takes at most 1000 each; send a smaller picture")
        .await;
    assert_eq!(error["details"]["at_most"]["image_bytes"], 1_000);
}

#[tokio::test]
async fn picture_in_a_wrong_field() {
    let desk = Desk::with("5").await;
    for (part, says) in [
        (
            json!({ "type": "image_url", "image_url": { "url": "file:///a.png" } }),
            "inline as `data:image/",
        ),
        (
            json!({ "type": "image_url", "image_url": { "url": "http://10.0.0.1/a.png" } }),
            "inline as `data:image/",
        ),
        (
            json!({ "type": "image_url", "image_url": { "file_id": "file-1" } }),
            "`file_id` is refused … inside it",
        ),
    ] {
        desk.refuses_chat(json!({ "messages": saying(part) }), 400, says)
            .await;
    }
}

#[tokio::test]
async fn tools_to_a_model_without_them() {
    let desk = Desk::with("5").await;
    let body = json!({ "model": "test-blind", "tools": tools(1, &json!({})) });
    let error = desk
        .refuses_chat(
            body,
            400,
            "test-blind does not call tools; send no tools, or use another model",
        )
        .await;
    assert_eq!(error["code"], "tools_unsupported");
}

#[tokio::test]
async fn tool_with_a_broken_schema() {
    let desk = Desk::with("5").await;
    for broken in [json!("{}"), json!([]), json!(7)] {
        let says = "`parameters` must be a JSON schema, an object";
        let error = desk
            .refuses_chat(json!({ "tools": tools(1, &broken) }), 400, says)
            .await;
        assert_eq!(error["param"], "tools[0].function.parameters");
    }
}

#[tokio::test]
async fn too_many_tools() {
    let desk = Desk::with("5").await;
    let body = json!({ "tools": tools(3, &json!({ "type": "object" })) });
    desk.refuses_chat(
        body,
        400,
        "takes at most 2 tools, the request has 3; send fewer",
    )
    .await;
}

#[tokio::test]
async fn stream_of_a_model_that_does_not() {
    let desk = Desk::with("5").await;
    let body = json!({ "model": "test-blind", "stream": true });
    desk.refuses_chat(
        body,
        400,
        "test-blind does not stream; send \"stream\": false",
    )
    .await;
}

#[tokio::test]
async fn models_answer_without_a_balance() {
    let desk = Desk::with("0").await;
    for path in ["/v1/models", "/native/v1/models", "/v1/key"] {
        assert_eq!(
            desk.gateway.get(path, &desk.key).await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn spending_ends_at_the_balance() {
    let desk = Desk::with("0.02").await;
    let limited = Speech::new(Family::Chat, &"word ".repeat(500)).stop("length");
    desk.upstream.follow(limited.stream());
    let body = with(json!({ "model": "test-alias", "stream": true, "max_tokens": 60_000 }));
    let cut = desk.gateway.post(CHAT, &desk.key, &body).await;
    let limit: u64 = cut.header("x-farebox-limit").unwrap().parse().unwrap();
    assert!(
        (1_000..1_400).contains(&limit),
        "all that there is: {limit}"
    );
    let says = format!("(out of balance: this answer was limited to {limit} tokens");
    assert!(
        cut.status == 200 && cut.text.contains(&says),
        "{}",
        cut.text
    );
    all_name(&cut.text, "test-alias");
    let sent = desk.upstream.request(0).await.body;
    let sent: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent["max_tokens"], limit, "what is sent is held");
    desk.gateway.settled().await;
    let paid = desk.gateway.charges(&desk.key).await[0].amount.picos();
    assert!((-20_000_000_000..0).contains(&paid), "{paid}");
}

#[tokio::test]
async fn requests_of_a_key_at_once() {
    let desk = Desk::with("0").await;
    let none = KeySettings {
        concurrency: Some(0),
        ..KeySettings::default()
    };
    let key = desk.gateway.key_with("5", none).await;
    let answer = desk
        .gateway
        .post(CHAT, &key, &chat("test-model", false))
        .await;
    desk.refused(
        &answer,
        429,
        "too many requests with this key: at most 0 may run at the same time",
    )
    .await;
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn body_of_more_than_32_mib() {
    let desk = Desk::with("5").await;
    let answer = desk
        .gateway
        .send(CHAT, &desk.key, vec![b' '; 33 << 20], &[])
        .await;
    desk.refused(&answer, 413, "larger than 32 MiB; send less")
        .await;
}

#[tokio::test]
async fn version_is_in_the_path() {
    let desk = Desk::with("5").await;
    for path in ["/v2/chat/completions", "/native/v2/messages"] {
        let answer = desk.gateway.post(path, &desk.key, &json!({})).await;
        desk.refused(&answer, 404, "does not exist … use the base URL")
            .await;
    }
}

/// Each command says behind `#` which status it gets and some text of the answer.
#[tokio::test]
async fn commands_of_this_page() {
    if !skip::installed("curl", "the commands of docs/interface.md") {
        return;
    }
    let gateway = Gateway::start(SHIPPED.0, SHIPPED.1).await;
    let (key, empty) = (gateway.key("5").await, gateway.key("0").await);
    let page = page("docs/interface.md").replace("\\\n", "");
    let blocks = page
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let commands: Vec<(&str, &str)> = blocks
        .flat_map(str::lines)
        .map(|line| line.split_once(" # ").expect(line))
        .collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for (command, told) in commands {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-euc", command]).env("no_proxy", "*");
        shell
            .env("BASE", &gateway.base)
            .env("KEY", &key.secret)
            .env("EMPTY", &empty.secret);
        let output = tokio::task::spawn_blocking(move || shell.output())
            .await
            .unwrap()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let (status, text) = told.trim().split_once(": ").unwrap();
        let begins = said.starts_with(&format!("HTTP/1.1 {status} "));
        assert!(
            begins && said.contains(text),
            "{command}: {said} {output:?}"
        );
    }
}
