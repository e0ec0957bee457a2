//! Who is blamed for an upstream's error: the customer's own error comes back in the upstream's words, the operator's never looks
//! like one.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{Answer, Gateway, TestKey, ask, path};

/// An upstream's error in the family's shape.
fn error(family: Family, status: u16, kind: &str, code: Option<&str>, message: &str) -> Reply {
    if family == Family::Messages {
        Reply::native_error(status, kind, message)
    } else {
        Reply::error(status, kind, code, message)
    }
}

async fn answers(family: Family, reply: Reply) -> (Answer, Gateway, TestKey) {
    let upstream = ScriptedUpstream::start(reply).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(path(family), &key, &ask(family, "test-model", false))
        .await;
    let streamed = gateway
        .post(path(family), &key, &ask(family, "test-model", true))
        .await;
    let plain = |answer: &Answer| (answer.status, answer.json()["error"].clone());
    assert_eq!(
        plain(&answer),
        plain(&streamed),
        "the same whether a stream was asked for or not"
    );
    for charge in gateway.charges(&key).await {
        assert_eq!(charge.amount.picos(), 0);
    }
    assert_eq!(
        gateway
            .account(&key)
            .await
            .customer
            .account
            .available()
            .to_string(),
        "5.00"
    );
    (answer, gateway, key)
}

#[tokio::test]
async fn the_customers_fault_keeps_type_code_and_wording() {
    let prefilled =
        "messages.1: `thinking` blocks cannot be modified. Extra inputs are not permitted";
    for family in Family::ALL {
        for (status, kind, code, message) in [
            (
                400,
                "invalid_request_error",
                Some("context_length_exceeded"),
                "prompt is too long: 210000 tokens > 200000 maximum",
            ),
            (400, "invalid_request_error", None, prefilled),
            (
                413,
                "request_too_large",
                Some("request_too_large"),
                "Request exceeds the maximum size",
            ),
        ] {
            let (answer, ..) = answers(family, error(family, status, kind, code, message)).await;
            let code = code.filter(|_| family != Family::Messages);
            let expected = json!({"type": kind, "code": code, "param": null, "message": message});
            assert_eq!(
                (answer.status, answer.json()["error"].clone()),
                (status, expected),
                "{family}"
            );
            assert_eq!(
                answer.json()["request_id"],
                answer.header("x-request-id").unwrap()
            );
        }
        let unprocessable = error(
            family,
            422,
            "invalid_request_error",
            None,
            "n: must be positive",
        );
        assert_eq!(answers(family, unprocessable).await.0.status, 400);
    }
}

#[tokio::test]
async fn names_hosts_keys_and_ids_are_taken_out_of_it() {
    let message = "upstream-model-1 at 127.0.0.1 (key upstream-secret-of-UPSTREAM_KEY, org-AbCdEf123456, sk-proj-abc***xyz, request id req_011CSHoEeqs5C35K) refuses max_tokens";
    for family in Family::ALL {
        let (answer, ..) = answers(
            family,
            error(family, 400, "invalid_request_error", None, message),
        )
        .await;
        let shown = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(answer.status, 400);
        assert!(
            shown.starts_with("test-model at [host]") && shown.ends_with("refuses max_tokens"),
            "{shown}"
        );
        for private in [
            "upstream",
            "127.0.0.1",
            "secret",
            "AbCdEf",
            "sk-proj",
            "011CSH",
        ] {
            assert!(!shown.contains(private), "{private} in {shown}");
        }
        for header in [
            "openai-organization",
            "server",
            "x-ratelimit-limit-requests",
        ] {
            assert!(answer.header(header).is_none(), "{header}");
        }
    }
}

#[tokio::test]
async fn the_operators_trouble_is_a_503_in_our_words() {
    let low = "Your credit balance is too low to access the API. Please go to Plans & Billing.";
    for family in Family::ALL {
        let no_json = Reply::whole(
            400,
            "text/html",
            "<html><title>400 Bad Request</title>nginx</html>",
        );
        for reply in [
            error(
                family,
                401,
                "authentication_error",
                Some("invalid_api_key"),
                "Incorrect API key provided: sk-op***1234",
            ),
            error(family, 402, "payment_required", None, "pay us"),
            error(
                family,
                403,
                "permission_error",
                None,
                "your account org-abcdef12 is disabled",
            ),
            error(
                family,
                404,
                "not_found_error",
                Some("model_not_found"),
                "The model `upstream-model-1` does not exist",
            ),
            error(
                family,
                429,
                "insufficient_quota",
                Some("insufficient_quota"),
                "You exceeded your current quota",
            ),
            error(family, 429, "rate_limit_error", None, "slow down")
                .header("retry-after", "86400"),
            error(family, 400, "invalid_request_error", None, low),
            error(family, 400, "billing_error", None, "billing hard limit"),
            error(family, 500, "server_error", None, "boom in datacenter 7"),
            error(family, 529, "overloaded_error", None, "Overloaded"),
            error(family, 302, "x", None, "moved").header("location", "http://169.254.169.254/"),
            error(
                family,
                200,
                "invalid_api_key",
                Some("invalid_api_key"),
                "a 200 with an error",
            ),
            no_json,
        ] {
            let told = format!("{reply:?}");
            let (answer, ..) = answers(family, reply).await;
            let (status, kind, code) = match family {
                Family::Messages => (529, "overloaded_error", Value::Null),
                _ => (503, "api_error", json!("upstream_unavailable")),
            };
            let error = &answer.json()["error"];
            assert_eq!(
                (answer.status, error["type"].clone(), error["code"].clone()),
                (status, json!(kind), code),
                "{told}"
            );
            assert_eq!(
                error["message"],
                "this model is unavailable at the moment; use another model, or try again later"
            );
            let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=30).contains(&wait), "{wait}");
        }
    }
}

#[tokio::test]
async fn a_good_answer_says_nothing_of_the_providers_price_or_name() {
    let own = json!({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5, "cost_details": {"upstream_inference_cost": 0.4}, "is_byok": false});
    let chat = |object: &str, choice: Value| json!({"provider": "Acme", "id": "c", "object": object, "created": 1, "model": "upstream-model-1", "choices": [choice], "usage": own});
    let whole = chat(
        "chat.completion",
        json!({"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}),
    );
    let first = chat(
        "chat.completion.chunk",
        json!({"index": 0, "delta": {"content": "hi"}, "finish_reason": null}),
    );
    let mut last = chat(
        "chat.completion.chunk",
        json!({"index": 0, "delta": {}, "finish_reason": "stop"}),
    );
    last["provider"] = json!("Acme");
    let upstream = ScriptedUpstream::start([
        Reply::json(200, &whole),
        Reply::events([
            format!("data: {first}\n\n"),
            format!("data: {last}\n\n"),
            "data: [DONE]\n\n".to_owned(),
        ]),
    ])
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for stream in [false, true] {
        let mut body = ask(Family::Chat, "test-model", stream);
        body["usage"] = json!({"include": true});
        let answer = gateway.post(path(Family::Chat), &key, &body).await;
        for private in [
            "Acme",
            "provider",
            "0.5",
            "cost_details",
            "is_byok",
            "upstream",
        ] {
            assert!(
                !answer.text.contains(private),
                "{private} in {}",
                answer.text
            );
        }
        assert!(
            answer.text.contains("\"cost\":0.00006}"),
            "ours, exactly: {}",
            answer.text
        );
        let data = if stream {
            answer
                .text
                .lines()
                .rfind(|line| line.starts_with("data: {"))
                .unwrap()
                .trim_start_matches("data: ")
        } else {
            &answer.text
        };
        let usage = serde_json::from_str::<Value>(data).unwrap()["usage"].clone();
        assert_eq!(
            usage,
            json!({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.00006})
        );
    }
}
