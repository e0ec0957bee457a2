//! Output limits as customers declare them, in the field that each provider reads.

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{CATALOG, Gateway, ask, catalog, path, routes, routes_speaking, talking};

#[tokio::test]
async fn a_declared_limit_is_moved_only_where_the_providers_field_is_known() {
    for (setting, expected) in [
        ("", ["max_tokens", "max_completion_tokens"]),
        ("chat_limit = \"max_tokens\"", ["max_tokens"; 2]),
        (
            "chat_limit = \"max_completion_tokens\"",
            ["max_completion_tokens"; 2],
        ),
    ] {
        let upstream = ScriptedUpstream::start(talking("x")).await;
        let configured = routes(&upstream.base_url());
        let configured = configured.replacen("speaks", &format!("{setting}\nspeaks"), 1);
        let gateway = Gateway::start(CATALOG, &configured).await;
        let key = gateway.key("5.00").await;
        for declared in ["max_tokens", "max_completion_tokens"] {
            let words = json!([{ "role": "user", "content": "Say PONG" }]);
            let body = json!({ "model": "test-model", "messages": words, declared: 40 });
            gateway.post("/v1/chat/completions", &key, &body).await;
        }
        let fields = |sent: Value| {
            let members = sent.as_object().unwrap().clone();
            let limits = members.into_iter().filter(|(name, _)| name.contains("max"));
            limits.collect::<Vec<_>>()
        };
        let sent: Vec<_> = upstream
            .requests()
            .iter()
            .map(Seen::json)
            .map(fields)
            .collect();
        let expected = expected.map(|field| vec![(field.to_owned(), json!(40))]);
        assert_eq!(sent, expected, "{setting}");
    }
}

/// An answer of which the provider says that it took 100 tokens in and 50 out.
fn fifty_tokens(seen: &Seen) -> Reply {
    let usage = ReportedUsage {
        input: 100,
        output: 50,
        ..ReportedUsage::default()
    };
    let speech = Speech::new(Family::Responses, "one two three").usage(usage);
    if seen.json()["stream"] == true {
        speech.stream()
    } else {
        speech.whole()
    }
}

#[tokio::test]
async fn a_limit_below_the_familys_smallest_is_raised_and_told_and_no_more_is_sold_than_declared() {
    let upstream = ScriptedUpstream::start(Script::by(|seen: &Seen, _| fifty_tokens(seen))).await;
    let base = upstream.base_url();
    let gateway = Gateway::start(
        &catalog(Family::Responses),
        &routes_speaking(&base, Family::Responses),
    )
    .await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Messages, "test-model", false);
    body["max_tokens"] = json!(4);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(
        (answer.status, answer.header("x-farebox-lost")),
        (200, Some("max_tokens=raised")),
        "{}",
        answer.text
    );
    assert_eq!(upstream.requests()[0].json()["max_output_tokens"], 16);
    let answered = answer.json()["usage"]["output_tokens"].clone();
    let charges = gateway.charges(&key).await;
    let bill = charges[0].bill.as_ref().unwrap();
    assert_eq!(
        (bill.usage.output, answered, bill.exposure.picos()),
        (4, json!(4), (50 - 4) * 15_000_000),
        "the provider's 50 tokens are the operator's, beyond the declared 4"
    );
    let lines = |what: &str| bill.lines.iter().filter(|line| line.what == what).count();
    assert_eq!(lines("output"), 1, "{:?}", bill.lines);
    // A stream with a limit of one token, which clients send to look for their quota.
    body["max_tokens"] = json!(1);
    body["stream"] = json!(true);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert!(answer.text.contains("message_stop"), "{}", answer.text);
    let charges = gateway.charges(&key).await;
    let bill = charges[1].bill.as_ref().unwrap();
    assert_eq!((bill.usage.output, bill.usage.input), (1, 100));
    gateway.stop().await;
}
