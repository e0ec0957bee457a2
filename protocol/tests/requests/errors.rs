//! Errors in each family's words, and upstream errors in every shape.

use farebox_protocol::{Case, ErrorBody, Family, UpstreamError};
use serde_json::json;

#[test]
fn errors_have_one_body_and_each_family_its_words() {
    let error = ErrorBody {
        kind: "insufficient_quota".into(),
        code: Some("insufficient_quota".into()),
        param: None,
        message: "out of balance: \"x\"".into(),
        details: Some(json!({"needed": "0.1"})),
        request_id: "req_1".into(),
    };
    let expected = r#"{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","param":null,"message":"out of balance: \"x\"","details":{"needed":"0.1"}},"request_id":"req_1"}"#;
    assert_eq!(String::from_utf8_lossy(&error.to_json()), expected);
    let words = |family: Family, case| family.protocol().words(case);
    assert_eq!(
        (
            words(Family::Messages, Case::NoTarget).status,
            words(Family::Chat, Case::NoTarget).status
        ),
        (529, 503)
    );
    assert_eq!(
        words(Family::Messages, Case::OutOfBalance).kind,
        "billing_error"
    );
    assert_eq!(
        words(Family::Responses, Case::OutOfBalance).code,
        Some("insufficient_quota")
    );
}

#[test]
fn upstream_errors_are_read_in_every_shape() {
    let read = |text: &str| {
        let error = UpstreamError::parse(text.as_bytes());
        (
            error.kind.unwrap_or_default(),
            error.code.unwrap_or_default(),
            error.message,
        )
    };
    let is = |kind: &str, code: &str, message: &str| {
        (kind.to_owned(), code.to_owned(), message.to_owned())
    };
    let cases = [
        (
            r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#,
            is("t", "c", "m"),
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}"#,
            is("overloaded_error", "", "m"),
        ),
        (
            r#"{"error":{"code":400,"message":"m","type":"invalid_request_error"}}"#,
            is("invalid_request_error", "400", "m"),
        ),
        (
            r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
            is("RESOURCE_EXHAUSTED", "429", "m"),
        ),
        (r#"{"error":"plain"}"#, is("", "", "plain")),
        (
            r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
            is("BadRequestError", "400", "m"),
        ),
        (r#"{"detail":"Not Found"}"#, is("", "", "Not Found")),
        (
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            is("", "", "field required"),
        ),
        (
            r#"{"type":"error","code":"c","message":"m","param":null,"sequence_number":3}"#,
            is("", "c", "m"),
        ),
        (" upstream timed out\n", is("", "", "upstream timed out")),
        (
            "<html><head><TITLE>502 Bad Gateway</TITLE></head></html>",
            is("", "", "502 Bad Gateway"),
        ),
        ("", is("", "", "")),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}
