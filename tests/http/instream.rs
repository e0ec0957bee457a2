//! Errors inside a stream: the customer's own comes back in the upstream's words and blames nobody; the provider's is a broken
//! stream.

use farebox_ledger::Evidence;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{DIRECTIONS, Gateway, ask, catalog, path, routes_speaking};

/// The error event of a family.
fn event(family: Family, kind: &str, code: Option<&str>, message: &str) -> String {
    match family {
        Family::Chat => format!(
            "data: {}\n\n",
            json!({"error": {"type": kind, "code": code, "message": message}})
        ),
        Family::Messages => {
            let error = json!({"type": "error", "error": {"type": kind, "message": message}});
            format!("event: error\ndata: {error}\n\n")
        }
        Family::Responses => {
            let response = json!({"id": "resp_1", "object": "response", "status": "failed", "model": "m", "output": [],
                "error": {"type": kind, "code": code, "message": message}});
            format!(
                "event: response.failed\ndata: {}\n\n",
                json!({"type": "response.failed", "response": response})
            )
        }
    }
}

/// The last error that a stream shows.
fn told(family: Family, text: &str) -> Value {
    let data = text
        .lines()
        .rfind(|line| line.starts_with("data: {"))
        .unwrap()
        .trim_start_matches("data: ");
    let event: Value = serde_json::from_str(data).unwrap();
    if family == Family::Responses {
        event["response"]["error"].clone()
    } else {
        event["error"].clone()
    }
}

#[tokio::test]
async fn the_customers_own_error_in_a_stream_keeps_its_words_and_blames_nobody() {
    let cases = [
        (
            "invalid_request_error",
            Some("context_length_exceeded"),
            "prompt is too long: 210000 tokens",
        ),
        (
            "invalid_request_error",
            Some("invalid_prompt"),
            "Invalid prompt: it was flagged",
        ),
        (
            "invalid_request_error",
            Some("tool_use_failed"),
            "Failed to call a function",
        ),
        (
            "invalid_request_error",
            None,
            "messages.3: unexpected role at upstream-model-1",
        ),
    ];
    for family in Family::ALL {
        for shown in [0, 3] {
            let before = crate::support::load::before_pieces(family) + shown;
            let replies: Vec<Reply> = cases
                .iter()
                .map(|(kind, code, message)| {
                    Speech::new(family, "one two three four")
                        .stream()
                        .then(before, event(family, kind, *code, message))
                })
                .collect();
            let upstream = ScriptedUpstream::start(replies).await;
            let gateway = Gateway::before(&upstream).await;
            let key = gateway.key("5").await;
            for (kind, code, message) in cases {
                let answer = gateway
                    .post(path(family), &key, &ask(family, "test-model", true))
                    .await;
                let error = told(family, &answer.text);
                assert_eq!(
                    (answer.status, error["type"].as_str()),
                    (200, Some(kind)),
                    "{family}: {}",
                    answer.text
                );
                // A failed response may have only some codes, and always has one.
                let public = ["context_length_exceeded", "invalid_prompt"];
                match (family, code) {
                    (Family::Responses, Some(code)) if public.contains(&code) => {
                        assert_eq!(error["code"], code);
                    }
                    (Family::Responses, _) => assert_eq!(error["code"], "invalid_prompt"),
                    (Family::Chat, Some(code)) => assert_eq!(error["code"], code),
                    _ => {}
                }
                assert_eq!(
                    error["message"],
                    message.replace("upstream-model-1", "test-model"),
                    "{family}"
                );
            }
            gateway.settled().await;
            for charge in gateway.charges(&key).await {
                let bill = charge.bill.unwrap();
                assert_eq!(
                    bill.end_reason.as_str(),
                    "upstream_refused",
                    "{family} {shown}"
                );
                // A native stream counts its input before it shows anything.
                let seen = shown > 0 || family == Family::Messages;
                assert_eq!(
                    charge.amount.picos() < 0,
                    seen,
                    "{family} {shown}: {}",
                    charge.amount
                );
            }
            let states = gateway.front.proxy.upstreams.states();
            assert!(
                states
                    .iter()
                    .all(|state| state.errors == 0 && state.failures == 0),
                "{family}: {states:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_providers_error_in_a_stream_is_a_break_in_our_words() {
    for family in Family::ALL {
        let before = crate::support::load::before_pieces(family) + 2;
        let error = event(
            family,
            "server_error",
            Some("server_error"),
            "boom in datacenter 7",
        );
        let upstream = ScriptedUpstream::start(
            Speech::new(family, "one two three")
                .stream()
                .then(before, error),
        )
        .await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        assert!(!answer.text.contains("datacenter"), "{}", answer.text);
        gateway.settled().await;
        let bill = gateway.charges(&key).await.remove(0).bill.unwrap();
        assert_eq!(
            (bill.end_reason.as_str(), bill.usage.input, bill.evidence),
            ("upstream_broken", 0, Some(Evidence::Local))
        );
        assert_eq!(
            gateway
                .front
                .proxy
                .upstreams
                .states()
                .iter()
                .map(|state| state.errors)
                .sum::<u64>(),
            1,
            "{family}"
        );
    }
}

/// A failed response: whole, as the first event of a stream, as its last, and as JSON in place of a stream.
#[tokio::test]
async fn a_failed_response_costs_what_was_counted_if_the_customer_caused_it() {
    let usage = json!({"input_tokens": 900, "output_tokens": 0, "total_tokens": 900});
    let zero = json!({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0});
    for (code, usage, cost) in [
        (Some("image_parse_error"), &usage, 900 * 3_000_000),
        (Some("invalid_prompt"), &usage, 900 * 3_000_000),
        (Some("invalid_prompt"), &zero, 0),
        (Some("invalid_prompt"), &Value::Null, 0),
        (Some("server_error"), &usage, 0),
        (None, &usage, 0),
    ] {
        let error = code.map(|code| json!({"code": code, "message": "see the picture"}));
        let failed = json!({"id": "resp_1", "object": "response", "status": "failed", "model": "m", "output": [],
            "error": error, "usage": usage});
        let event = format!(
            "event: response.failed\ndata: {}\n\n",
            json!({"type": "response.failed", "response": failed})
        );
        let late = Speech::new(Family::Responses, "one two")
            .stream()
            .then(1, event.clone());
        let whole = || Reply::json(200, &failed);
        for (stream, reply, status) in [
            (false, whole(), 400),
            (true, whole(), 400),
            (true, Reply::events([event]), 400),
            (true, late, 200),
        ] {
            let upstream = ScriptedUpstream::start(reply).await;
            let gateway = Gateway::before(&upstream).await;
            let key = gateway.key("5").await;
            let answer = gateway
                .post(
                    path(Family::Responses),
                    &key,
                    &ask(Family::Responses, "test-model", stream),
                )
                .await;
            let refused = code.is_some_and(|code| code != "server_error");
            // Nothing was shown, so a target that failed by itself has not begun.
            let expected = if refused { status } else { 503 };
            assert_eq!(
                (answer.status, answer.text.contains("see the picture")),
                (expected, refused),
                "{}",
                answer.text
            );
            gateway.settled().await;
            let charge = gateway.charges(&key).await.remove(0);
            let bill = charge.bill.unwrap();
            assert_eq!(
                -charge.amount.picos(),
                cost,
                "{code:?} {usage} {stream} {expected}"
            );
            assert_eq!(
                bill.end_reason.as_str() == "upstream_refused",
                refused,
                "{}",
                bill.end_reason
            );
            let states = gateway.front.proxy.upstreams.states();
            assert_eq!(
                states.iter().all(|state| state.errors == 0),
                refused,
                "{code:?}: {states:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_last_event_of_a_stream_may_lack_its_blank_line() {
    for family in Family::ALL {
        for cut in [1, 2] {
            let mut frames = Speech::new(family, "one two three").stream().texts();
            let last = frames.last_mut().unwrap();
            last.truncate(last.len() - cut);
            let upstream = ScriptedUpstream::start(Reply::events(frames)).await;
            let gateway = Gateway::before(&upstream).await;
            let key = gateway.key("5").await;
            let answer = gateway
                .post(path(family), &key, &ask(family, "test-model", true))
                .await;
            assert!(
                answer.text.ends_with("\n\n") && !answer.text.contains("\"error\":{"),
                "{family}: {}",
                answer.text
            );
            let bill = gateway.charges(&key).await.remove(0).bill.unwrap();
            assert_eq!(
                (bill.usage.input, bill.usage.output, bill.evidence),
                (10, 3, Some(Evidence::Provider)),
                "{family} {cut}"
            );
            assert_eq!(bill.end_reason.as_str(), "stop", "{family} {cut}");
        }
    }
}

/// Whether an error comes before a stream or inside it, a caller of another family reads it in the same words.
#[tokio::test]
async fn an_error_of_another_family_is_said_alike_before_a_stream_and_inside_it() {
    let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
    let code = Some("context_length_exceeded");
    for (caller, target) in DIRECTIONS {
        let error = event(target, "invalid_request_error", code, message);
        let begun = crate::support::load::before_pieces(target) + 2;
        let speech = || Speech::new(target, "one two three four").stream();
        let upstream = ScriptedUpstream::start([
            Reply::error(400, "invalid_request_error", code, message),
            speech().then(begun, error.clone()),
        ])
        .await;
        let routes = routes_speaking(&upstream.base_url(), target);
        let gateway = Gateway::start(&catalog(target), &routes).await;
        let key = gateway.key("5").await;
        let body = ask(caller, "test-model", true);
        let before = gateway.post(path(caller), &key, &body).await;
        assert_eq!(before.status, 400, "{}", before.text);
        let before = before.json()["error"].clone();
        let inside = gateway.post(path(caller), &key, &body).await;
        let inside = told(caller, &inside.text);
        for member in ["type", "code", "message", "param"] {
            assert_eq!(
                inside[member], before[member],
                "{target} for {caller}: {inside}"
            );
        }
        if caller == Family::Messages {
            assert_eq!(
                inside["message"],
                "prompt is too long: 9000 tokens > 8192 maximum"
            );
        } else {
            assert_eq!(inside["code"], "context_length_exceeded");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_for_its_target_has_its_code() {
    for (caller, target) in DIRECTIONS {
        let upstream = ScriptedUpstream::start(Reply::error(
            413,
            "invalid_request_error",
            None,
            "too large",
        ))
        .await;
        let routes = routes_speaking(&upstream.base_url(), target);
        let gateway = Gateway::start(&catalog(target), &routes).await;
        let key = gateway.key("5").await;
        let answer = gateway
            .post(path(caller), &key, &ask(caller, "test-model", false))
            .await;
        let error = answer.json()["error"].clone();
        let expected = if caller == Family::Messages {
            json!({"type": "request_too_large", "code": null, "param": null, "message": "too large"})
        } else {
            json!({"type": "invalid_request_error", "code": "request_too_large", "param": null, "message": "too large"})
        };
        assert_eq!(
            (answer.status, error),
            (413, expected),
            "{target} for {caller}"
        );
        gateway.stop().await;
    }
}
