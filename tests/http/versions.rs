//! `anthropic-version`, without which the service refuses every messages request: sent exactly once, whoever asks.

use farebox_protocol::Family;
use serde_json::json;

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{CATALOG, Gateway, ask, catalog, path, routes, routes_speaking, speech_for};

const COUNTING: &str = "/native/v1/messages/count_tokens";

/// An upstream that also counts tokens.
fn answering() -> Script {
    Script::by(|seen, _| {
        if seen.path.ends_with("/count_tokens") {
            Reply::json(200, &json!({"input_tokens": 7}))
        } else {
            speech_for(seen, "PONG")
        }
    })
}

/// All versions that one request named.
fn versions(seen: &Seen) -> Vec<&str> {
    seen.headers
        .iter()
        .filter(|(name, _)| name == "anthropic-version")
        .map(|(_, value)| value.as_str())
        .collect()
}

#[tokio::test]
async fn every_messages_request_names_one_version_whoever_sent_it() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let base = upstream.base_url();
    let gateway = Gateway::start(
        &catalog(Family::Messages),
        &routes_speaking(&base, Family::Messages),
    )
    .await;
    let key = gateway.key("500.00").await;
    let old = ("anthropic-version", "2023-01-01");
    // What a customer's request names, and what a target then gets.
    let none: &[(&str, &str)] = &[];
    let cases = [
        (path(Family::Messages), Family::Messages, none, "2023-06-01"),
        (
            path(Family::Messages),
            Family::Messages,
            &[old],
            "2023-01-01",
        ),
        (
            path(Family::Messages),
            Family::Messages,
            &[old, ("anthropic-version", "2023-06-01")],
            "2023-01-01",
        ),
        (
            path(Family::Messages),
            Family::Messages,
            &[("anthropic-version", "")],
            "2023-06-01",
        ),
        (COUNTING, Family::Messages, none, "2023-06-01"),
        (COUNTING, Family::Messages, &[old], "2023-01-01"),
        (path(Family::Chat), Family::Chat, none, "2023-06-01"),
        (path(Family::Chat), Family::Chat, &[old], "2023-06-01"),
        (
            path(Family::Responses),
            Family::Responses,
            none,
            "2023-06-01",
        ),
        (
            path(Family::Responses),
            Family::Responses,
            &[old],
            "2023-06-01",
        ),
    ];
    for (path, family, headers, expected) in cases {
        for stream in [false, true] {
            let body = ask(family, "test-model", stream).to_string();
            let answer = gateway.send(path, &key, body, headers).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            let seen = upstream.requests().pop().unwrap();
            assert_eq!(versions(&seen), [expected], "{path} with {headers:?}");
        }
    }
}

#[tokio::test]
async fn a_provider_of_another_family_hears_of_no_version() {
    for target in [Family::Chat, Family::Responses] {
        let upstream = ScriptedUpstream::start(answering()).await;
        let base = upstream.base_url();
        let gateway = Gateway::start(&catalog(target), &routes_speaking(&base, target)).await;
        let key = gateway.key("500.00").await;
        for caller in Family::ALL {
            let body = ask(caller, "test-model", false).to_string();
            let version = [("anthropic-version", "2023-06-01")];
            let answer = gateway.send(path(caller), &key, body, &version).await;
            assert_eq!(answer.status, 200, "{caller}: {}", answer.text);
            let seen = upstream.requests().pop().unwrap();
            assert!(versions(&seen).is_empty(), "{caller} to {target}");
        }
    }
}

#[tokio::test]
async fn a_providers_own_version_takes_precedence_over_the_customers() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let version = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(version.path(), "2023-01-01\n").unwrap();
    let header = format!(
        "headers  = {{ \"Anthropic-Version\" = {{ file = \"{}\" }} }}\nkey      =",
        version.path().display()
    );
    let configured = routes(&upstream.base_url()).replace("key      =", &header);
    let gateway = Gateway::start(CATALOG, &configured).await;
    let key = gateway.key("500.00").await;
    let body = ask(Family::Messages, "test-model", false).to_string();
    for (path, headers) in [
        (path(Family::Messages), &[][..]),
        (
            path(Family::Messages),
            &[("anthropic-version", "2023-06-01")][..],
        ),
        (COUNTING, &[][..]),
    ] {
        let answer = gateway.send(path, &key, body.clone(), headers).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let seen = upstream.requests().pop().unwrap();
        assert_eq!(versions(&seen), ["2023-01-01"], "{path}");
    }
}
