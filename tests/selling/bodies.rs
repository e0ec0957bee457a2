//! Bodies of any bytes, paths of any shape: each gets a clear answer, and none an effect.

use farebox_ledger::TokenRole;
use serde_json::json;

use super::{Program, code, gateway};
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
            "invalid_field",
            "one line",
        ),
    ] {
        let sent = program
            .request("POST", &path)
            .header("idempotency-key", "k");
        let answer = Answer::read(sent.body(body.to_vec()).send().await.unwrap()).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (400, wrong),
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
    let reserved = program.get(&format!("/customers/{customer}/grants")).await;
    assert_eq!(
        (reserved.status, code(&reserved).as_str()),
        (501, "not_built")
    );
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
