//! Chat completions, whole and streamed: what reaches the upstream, what reaches the customer, and what it costs.

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use super::translation::before;
use crate::support::upstream::{ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, chat, path, talking};

/// 90 fresh and 10 cached input tokens, 5 output tokens: (90 × 3 + 10 × 0.3 + 5 × 15) / 1e6 USD.
const USAGE: ReportedUsage = ReportedUsage {
    input: 90,
    cache_read: 10,
    cache_write: 0,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 5,
    reasoning: 0,
};
const COST: &str = "0.000348";

#[tokio::test]
async fn a_whole_answer_is_paid_to_the_picodollar() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("x-farebox-cost"), Some(COST));
    assert_eq!(answer.header("x-farebox-balance"), Some("4.999652"));
    assert_eq!(answer.json()["model"], "test-model");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "PONG");
    assert!(!answer.text.contains("upstream-model"));
    for private in ["openai-organization", "x-farebox-secret"] {
        assert!(answer.header(private).is_none());
    }
    assert!(answer.header("x-request-id").unwrap().starts_with("req_"));
    assert_ne!(answer.header("x-request-id"), Some("req_upstream0001"));
    let charges = gateway.charges(&key).await;
    assert_eq!(charges.len(), 1);
    assert_eq!(charges[0].amount.to_string(), format!("-{COST}"));
    let bill = charges[0].bill.as_ref().unwrap();
    assert_eq!(
        (bill.usage.input, bill.usage.cache_read, bill.usage.output),
        (90, 10, 5)
    );
    assert_eq!(gateway.account(&key).await.customer.account.held.picos(), 0);
}

#[tokio::test]
async fn only_the_named_bytes_of_a_request_change() {
    let upstream = ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let body = r#"{ "messages":[{"role":"user","content":"Say \u0050ONG"}],  "temperature" :15.0e-1 , "metadata" : {"a":"\u0062"},"model":"test-alias","max_tokens":7 }"#;
    let url = format!("{}/v1/chat/completions", gateway.base);
    let sent = gateway
        .client
        .post(url)
        .bearer_auth(&key.secret)
        .header("x-secret-of-customer", "1")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
    let seen = upstream.request(0).await;
    assert_eq!(
        String::from_utf8(seen.body.clone()).unwrap(),
        body.replace("test-alias", "upstream-model-1")
    );
    assert_eq!(
        seen.header("authorization"),
        Some("Bearer upstream-secret-of-UPSTREAM_KEY")
    );
    assert!(
        seen.header("x-secret-of-customer").is_none(),
        "headers pass by an allow-list"
    );
}

#[tokio::test]
async fn a_stream_shows_its_end_only_after_the_charge_is_in_the_ledger() {
    let upstream = ScriptedUpstream::start(talking("one two three four")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", true))
        .await;
    // Read immediately after the last byte.
    let account = gateway.account(&key).await.customer.account;
    assert!(
        account.spent.picos() > 0 && account.held.picos() == 0,
        "{account:?}"
    );
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert!(answer.text.ends_with("data: [DONE]\n\n"), "{}", answer.text);
    assert!(!answer.text.contains("upstream-model") && answer.text.contains("\"test-model\""));
    let sent = upstream.request(0).await.json();
    assert_eq!(
        sent["stream_options"]["include_usage"], true,
        "usage is always asked for"
    );
    assert!(
        !answer.text.contains("\"choices\":[]"),
        "the usage chunk is not shown to who did not ask: {}",
        answer.text
    );
    assert_eq!(
        gateway.charges(&key).await[0]
            .bill
            .as_ref()
            .unwrap()
            .end_reason
            .as_str(),
        "stop"
    );
}

#[tokio::test]
async fn every_usage_on_v1_has_the_cost_unless_the_request_says_no() {
    let told = json!({ "include": true });
    let quiet = json!({ "include": false });
    for upstreams in Family::ALL {
        let replies: Vec<_> = (0..8)
            .flat_map(|_| {
                let speech = Speech::new(upstreams, "one two");
                [speech.whole(), speech.stream()]
            })
            .collect();
        let upstream = ScriptedUpstream::start(replies).await;
        let gateway = before(&upstream, upstreams, "").await;
        let key = gateway.key("5.00").await;
        for caller in Family::ALL {
            // What is asked, whether it is told in a whole answer, and in a stream.
            let cases: &[(Option<&Value>, Option<bool>, bool, bool)] = match caller {
                Family::Chat => &[
                    (None, None, true, false),
                    (None, Some(true), true, true),
                    (Some(&told), None, true, true),
                    (Some(&told), Some(false), true, true),
                    (Some(&quiet), Some(true), false, false),
                ],
                Family::Responses => {
                    &[(None, None, true, true), (Some(&quiet), None, false, false)]
                }
                Family::Messages => &[(None, None, false, false)],
            };
            for (wish, chunk, whole, streamed) in cases {
                for (stream, shown) in [(false, whole), (true, streamed)] {
                    let mut body = ask(caller, "test-model", stream);
                    if let Some(wish) = wish {
                        body["usage"] = (*wish).clone();
                    }
                    if let Some(chunk) = chunk.filter(|_| stream) {
                        body["stream_options"] = json!({ "include_usage": chunk });
                    }
                    let answer = gateway.post(path(caller), &key, &body).await;
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    let charge = gateway
                        .charges(&key)
                        .await
                        .last()
                        .unwrap()
                        .amount
                        .to_string();
                    let cost = format!("\"cost\":{}", charge.trim_start_matches('-'));
                    let said = answer.text.matches(&cost).count();
                    let why = format!("{upstreams:?} {body}: {}", answer.text);
                    assert_eq!(said, usize::from(*shown), "{why}");
                    assert_eq!(answer.text.matches("\"cost\"").count(), said, "{why}");
                }
            }
        }
        for request in upstream.requests() {
            assert!(request.json().get("usage").is_none(), "it stays here");
        }
    }
}

#[tokio::test]
async fn charged_the_same_with_and_without_stream_options() {
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", true))
        .await;
    let mut asking = chat("test-model", true);
    asking["stream_options"] = json!({ "include_usage": true });
    gateway.post("/v1/chat/completions", &key, &asking).await;
    let charges = gateway.charges(&key).await;
    assert_eq!(charges[0].amount, charges[1].amount);
}

#[tokio::test]
async fn bad_bodies_are_refused_without_a_charge() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let deep = format!(
        r#"{{"model":"test-model","messages":[],"x":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let bodies = [
        "",
        "nonsense",
        "[]",
        "{}",
        r#"{"model":"test-model"}"#,
        r#"{"model":7,"messages":[]}"#,
        r#"{"model":"test-model","mod\u0065l":"test-blind","messages":[{"role":"user","content":"x"}]}"#,
        r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"max_tokens":0}"#,
        r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"max_tokens":1e308}"#,
        r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"max_tokens":1,"max_completion_tokens":2}"#,
        r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"n":"10"}"#,
        r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"service_tier":"priority"}"#,
        deep.as_str(),
    ];
    for body in bodies {
        let url = format!("{}/v1/chat/completions", gateway.base);
        let answer = crate::support::Answer::read(
            gateway
                .client
                .post(url)
                .bearer_auth(&key.secret)
                .body(body.to_owned())
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text);
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
    assert_eq!(upstream.requests().len(), 0);
    assert!(gateway.charges(&key).await.is_empty());
}

#[tokio::test]
async fn what_the_upstream_charges_the_operator_is_not_shown() {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.777, "cost_details": { "upstream_inference_cost": 0.777 } });
    let speech = Speech::new(Family::Chat, "PONG").claims(usage);
    let upstream = ScriptedUpstream::start([speech.whole(), speech.stream()]).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let mut body = chat("test-model", false);
    body["usage"] = json!({ "include": true });
    let whole = gateway.post("/v1/chat/completions", &key, &body).await;
    assert!(!whole.text.contains("0.777"), "{}", whole.text);
    assert_eq!(whole.json()["usage"]["cost"].to_string(), "0.000045");
    body["stream"] = json!(true);
    let stream = gateway.post("/v1/chat/completions", &key, &body).await;
    assert!(
        !stream.text.contains("0.777") && stream.text.contains("\"cost\":0.000045"),
        "{}",
        stream.text
    );
}
