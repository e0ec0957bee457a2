//! Bodies of any bytes, paths of any shape: each gets a clear answer, and none an effect.

use farebox_ledger::TokenRole;
use serde_json::json;

use super::{Program, code, gateway, text};
use crate::support::Answer;

#[tokio::test]
async fn a_bad_body_is_refused_with_what_is_wrong() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = program.customer("Ada").await;
    let path = format!("/customers/{customer}/top-ups");
    let deep = format!("{{\"amount\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    for (body, wrong, says) in [
        (&b""[..], "missing_field", "`amount`"),
        (b"\xff\xfe\x00", "invalid_json", "no JSON object"),
        (b"null", "invalid_json", "object"),
        (b"{\"amount\":\"1\"", "invalid_json", "EOF"),
        (
            b"{\"amount\":\"1\",\"amount\":\"2\",\"reference\":\"r\"}",
            "invalid_json",
            "twice",
        ),
        (deep.as_bytes(), "invalid_json", "recursion"),
        (
            b"{\"amount\":1,\"reference\":\"r\"}",
            "invalid_field",
            "as text",
        ),
        (
            b"{\"amount\":\"1,5\",\"reference\":\"r\"}",
            "invalid_field",
            "ambiguous",
        ),
        (
            b"{\"amount\":\"0\",\"reference\":\"r\"}",
            "invalid_field",
            "more than zero",
        ),
        (
            b"{\"amount\":\"1\",\"referense\":\"r\"}",
            "unknown_field",
            "`reference`?",
        ),
        (
            b"{\"amount\":\"1\",\"reference\":\"r\",\"gross\":\"2\"}",
            "missing_field",
            "go together",
        ),
        (
            b"{\"amount\":\"1\",\"reference\":\"r\\u0000\"}",
            "unprintable_character",
            "one line",
        ),
    ] {
        let sent = program
            .request("POST", &path)
            .header("idempotency-key", "k");
        let answer = Answer::read(sent.body(body.to_vec()).send().await.unwrap()).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (
                if wrong == "unprintable_character" {
                    422
                } else {
                    400
                },
                wrong
            ),
            "{}",
            answer.text
        );
        assert!(answer.text.contains(says), "{}", answer.text);
    }
    let large = program
        .request("POST", &path)
        .header("idempotency-key", "k");
    let large = Answer::read(large.body(vec![b' '; 70_000]).send().await.unwrap()).await;
    assert_eq!(
        (large.status, code(&large).as_str()),
        (413, "body_too_large")
    );
    assert_eq!(
        program.get(&format!("/customers/{customer}")).await.json()["balance"],
        "0.00"
    );
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_told_apart() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    for (method, path, status, wrong) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/customers/c_zzzzzzzzzz", 404, "customer_not_found"),
        ("GET", "/customers/nobody", 404, "customer_not_found"),
        ("GET", "/keys/k_zzzzzzzzzz", 404, "key_not_found"),
        ("GET", "/payments/pi%2F1", 404, "payment_not_found"),
        ("GET", "/payments/%ff", 400, "invalid_path"),
        ("GET", "/requests/req_zzz", 404, "request_not_found"),
        ("PUT", "/customers", 405, "method_not_allowed"),
        ("DELETE", "/keys/k_zzzzzzzzzz", 405, "method_not_allowed"),
    ] {
        let answer = Answer::read(program.request(method, path).send().await.unwrap()).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (status, wrong),
            "{method} {path}"
        );
    }
    let customer = program.customer("Ada").await;
    let back =
        json!({ "payment": "pi_9", "kind": "refund", "cumulative": "1", "reference": "re_9" });
    let early = program
        .post(&format!("/customers/{customer}/reversals"), "k", &back)
        .await;
    assert_eq!(
        (early.status, code(&early).as_str()),
        (404, "payment_not_found")
    );
}

#[tokio::test]
async fn labels_of_every_noun_are_what_people_can_see() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("plain").await;
    let keys = format!("/customers/{customer}/keys");
    let key = manage.does(&keys, &json!({ "label": "a" }), 201).await;
    let key = format!("/keys/{}", text(&key, "id"));
    for (number, (label, told)) in [
        ("a\u{1b}[2J", "U+001B"),
        ("a\0b", "U+0000"),
        ("a\nb", "U+000A"),
        ("a\u{2028}b", "U+2028"),
        ("a\u{202e}b", "U+202E"),
        ("a\u{2066}b", "U+2066"),
        ("A\u{200d}cme", "U+200D"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({ "label": label });
        for path in ["/customers", &keys] {
            let refused = manage.post(path, &format!("{path}-{number}"), &body).await;
            assert_eq!(refused.status, 422, "{label:?}: {}", refused.text);
            assert!(refused.text.contains(told), "{}", refused.text);
        }
        for path in [&format!("/customers/{customer}"), &key] {
            let edit = manage.request("PATCH", path).json(&body);
            let refused = edit.send().await.unwrap();
            assert_eq!(refused.status().as_u16(), 422, "{label:?}");
        }
    }
    for label in [
        "می\u{200c}خواهم",
        "क्\u{200d}ष",
        "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}",
    ] {
        let made = manage
            .does("/customers", &json!({ "label": label }), 201)
            .await;
        assert_eq!(made["label"], label);
    }
}
