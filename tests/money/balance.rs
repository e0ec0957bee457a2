//! Out of balance: refused once and clearly, nothing reaches the upstream, and a top-up takes effect at once.

use std::cell::Cell;
use std::time::Duration;

use farebox_protocol::Family;
use serde_json::json;

use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{Gateway, ask, chat, path, speech_for, talking};

#[tokio::test]
async fn a_limit_that_is_too_dear_is_refused_with_changes_that_are_served() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    for (family, field) in [
        (Family::Chat, "max_tokens"),
        (Family::Chat, "max_completion_tokens"),
        (Family::Responses, "max_output_tokens"),
        (Family::Messages, "max_tokens"),
    ] {
        let key = gateway.key("0.10").await;
        let mut body = ask(family, "test-model", false);
        body.as_object_mut().unwrap().remove("max_tokens");
        body[field] = json!(50_000);
        let refused = gateway.post(path(family), &key, &body).await;
        let error = refused.json()["error"].clone();
        assert_eq!(refused.status, 429, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with("out of balance") && message.contains("stream: true"),
            "{message}"
        );
        assert!(
            message.contains(&format!("send `{field}` of at most ")),
            "{message}"
        );
        let remedies = error["details"]["remedies"].as_array().unwrap().clone();
        assert_eq!(
            (remedies.len(), remedies[0][field].is_u64(), &remedies[1]),
            (2, true, &json!({"stream": true}))
        );
        for remedy in remedies {
            let mut mended = body.clone();
            for (name, value) in remedy.as_object().unwrap() {
                mended[name] = value.clone();
            }
            let answer = gateway.post(path(family), &key, &mended).await;
            assert_eq!(answer.status, 200, "{family} {remedy}: {}", answer.text);
            gateway.top_up(&key, "0.01").await;
        }
        // A smaller limit does not help a key that cannot even pay for the prompt.
        let poor = gateway.key("0.000001").await;
        let refused = gateway.post(path(family), &poor, &body).await;
        assert!(
            refused.status == 429 && refused.json()["error"]["details"]["remedies"].is_null(),
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn parallel_requests_on_a_key_that_can_pay_for_three_reach_the_upstream_three_times() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&held_back)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    // Each holds its declared 1,000 output tokens at $15 and a few input tokens.
    let key = gateway.key("0.0465").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = json!(1_000);
    let refused = Cell::new(0);
    let requests = (0..10).map(async |_| {
        let answer = gateway.post("/v1/chat/completions", &key, &body).await;
        refused.set(refused.get() + usize::from(answer.status == 429));
        answer
    });
    let answers = async { futures_util::future::join_all(requests).await };
    let release = async {
        while upstream.requests().len() + refused.get() < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let account = gateway.account(&key).await.customer.account;
        assert!(account.available().picos() >= 0);
        gate.open();
    };
    let (answers, ()) = tokio::join!(answers, release);
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((served, upstream.requests().len()), (3, 3));
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (429, json!("balance_in_use"))
        );
        assert_eq!(
            refused.header("retry-after"),
            Some("1"),
            "money that is only held comes back"
        );
    }
    gateway.settled().await;
    assert_eq!(gateway.account(&key).await.customer.account.held.picos(), 0);
}

#[tokio::test]
async fn a_stream_without_a_limit_is_given_one_that_the_balance_can_pay() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0.02").await;
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", true))
            .await
            .status,
        200
    );
    let limit = upstream.request(0).await.json()["max_completion_tokens"]
        .as_u64()
        .unwrap();
    assert!((1_200..1_340).contains(&limit), "{limit}");
}
