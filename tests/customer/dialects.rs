//! The balance in every response shape that tools read: the right fields, exact digits, at zero, and during a running hold.

use std::time::Duration;

use farebox_ledger::{KeySettings, Timestamp};
use farebox_protocol::{Family, ReportedUsage};

use crate::support::upstream::{Gate, Script, ScriptedUpstream, Speech};
use crate::support::{Gateway, chat, speech_for, talking};

/// 90 fresh and 10 cached input tokens, 5 output tokens of `test-model`: 0.000348 USD.
const USAGE: ReportedUsage = ReportedUsage {
    input: 90,
    cache_read: 10,
    cache_write: 0,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 5,
    reasoning: 0,
};

/// Every path, the texts its document must have after that one request on a key with 5 USD.
const AFTER_ONE: &[(&str, &[&str])] = &[
    (
        "/v1/key",
        &[
            r#""limit":5.00"#,
            r#""limit_remaining":4.999652"#,
            r#""usage":0.000348"#,
            r#""balance":"4.999652""#,
            r#""held":"0.00""#,
            r#""available":"4.999652""#,
        ],
    ),
    (
        "/api/v1/key",
        &[r#"{"data":{"#, r#""limit_remaining":4.999652"#],
    ),
    (
        "/v1/credits",
        &[r#"{"data":{"total_credits":5.00,"total_usage":0.000348}}"#],
    ),
    (
        "/api/v1/credits",
        &[r#"{"data":{"total_credits":5.00,"total_usage":0.000348}}"#],
    ),
    (
        "/v1/usage",
        &[
            r#""mode":"unrestricted""#,
            r#""isValid":true"#,
            r#""balance":4.999652"#,
            r#""remaining":4.999652"#,
            r#""unit":"USD""#,
            r#""model":"test-model","requests":1,"cost":0.000348"#,
        ],
    ),
    (
        "/user/balance",
        &[
            r#""is_active":true"#,
            r#""balance":4.999652"#,
            r#""currency":"USD""#,
            r#""is_available":true"#,
            r#""total_balance":"4.999652","granted_balance":"0.00","topped_up_balance":"4.999652""#,
        ],
    ),
    ("/v1/user/balance", &[r#""is_active":true"#]),
    (
        "/api/usage/token",
        &[
            r#"{"code":true"#,
            r#""total_granted":2500000"#,
            r#""total_used":174"#,
            r#""total_available":2499826"#,
            r#""unlimited_quota":false"#,
            r#""expires_at":0"#,
        ],
    ),
    ("/api/usage/token/", &[r#""total_available":2499826"#]),
    (
        "/v1/dashboard/billing/subscription",
        &[r#""hard_limit_usd":5.00"#],
    ),
    (
        "/dashboard/billing/subscription",
        &[r#""hard_limit_usd":5.00"#],
    ),
    (
        "/v1/dashboard/billing/usage?start_date=2026-01-01&end_date=2026-12-31",
        &[r#""total_usage":0.0348"#],
    ),
    ("/dashboard/billing/usage", &[r#""total_usage":0.0348"#]),
];

#[tokio::test]
async fn every_dialect_says_what_the_account_says() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await
            .status,
        200
    );
    for (path, needles) in AFTER_ONE {
        let answer = gateway.get(path, &key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json();
        for needle in *needles {
            assert!(
                answer.text.contains(needle),
                "{path}: {needle} is not in {}",
                answer.text
            );
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

#[tokio::test]
async fn an_empty_key_is_valid_and_has_nothing() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0").await;
    assert_eq!(
        gateway.get("/v1/key", &key).await.json()["data"]["available"],
        "0.00"
    );
    assert_eq!(gateway.get("/v1/usage", &key).await.json()["isValid"], true);
    assert_eq!(
        gateway.get("/v1/usage", &key).await.json()["days"],
        serde_json::json!([])
    );
    let balance = gateway.get("/user/balance", &key).await.json();
    assert_eq!(
        (&balance["is_active"], &balance["is_available"]),
        (&true.into(), &false.into())
    );
    assert_eq!(
        gateway.get("/api/usage/token", &key).await.json()["data"]["total_available"],
        0
    );
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn what_remains_is_what_is_not_charged_whatever_is_held() {
    let gate = Gate::new();
    let held_back = gate.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        speech_for(seen, "PONG").gated(&held_back)
    }))
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let mut body = chat("test-model", false);
    body["max_tokens"] = serde_json::json!(1_000);
    let request = gateway.post("/v1/chat/completions", &key, &body);
    let look = async {
        upstream.request(0).await;
        let account = gateway.account(&key).await.customer.account;
        let (held, available) = (account.held.to_string(), account.available().to_string());
        assert!(account.held.is_positive());
        let expected = [
            ("/v1/key", "\"limit_remaining\":5.00".to_owned()),
            (
                "/v1/key",
                format!("\"balance\":\"5.00\",\"held\":\"{held}\",\"available\":\"{available}\""),
            ),
            (
                "/v1/usage",
                "\"balance\":5.00,\"remaining\":5.00".to_owned(),
            ),
            ("/user/balance", "\"balance\":5.00".to_owned()),
            ("/v1/credits", "\"total_usage\":0.00".to_owned()),
        ];
        for (path, needle) in expected {
            let text = gateway.get(path, &key).await.text;
            assert!(text.contains(&needle), "{path}: {needle} is not in {text}");
        }
        let token = gateway.get("/api/usage/token", &key).await.json();
        assert_eq!(
            token["data"]["total_available"].as_f64(),
            Some(5.0 * 500_000.0)
        );
        gate.open();
    };
    let (answer, ()) = tokio::join!(request, look);
    assert_eq!(answer.status, 200);
    assert_eq!(
        gateway.get("/v1/key", &key).await.json()["data"]["held"],
        "0.00"
    );
}

#[tokio::test]
async fn nobody_reads_an_account_without_its_key() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let expired = KeySettings {
        expires_at: Some(Timestamp::from_millis(1)),
        ..KeySettings::default()
    };
    let expired = gateway.key_with("1.00", expired).await;
    for (path, _) in AFTER_ONE {
        let answer = crate::support::Answer::read(
            gateway
                .client
                .get(format!("{}{path}", gateway.base))
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
    }
    assert_eq!(gateway.get("/v1/credits", &expired).await.status, 403);
}

#[tokio::test]
async fn free_paths_are_limited_for_each_key() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, other) = (gateway.key("1.00").await, gateway.key("1.00").await);
    let answers =
        futures_util::future::join_all((0..40).map(|_| gateway.get("/v1/credits", &key))).await;
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert!(refused.len() >= 10, "{} of 40 are refused", refused.len());
    assert!(
        refused
            .iter()
            .all(|answer| answer.header("retry-after").is_some())
    );
    assert_eq!(gateway.get("/v1/credits", &other).await.status, 200);
}

#[tokio::test]
async fn usage_has_ranges_and_a_spreadsheet() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let csv = gateway.get("/v1/usage?format=csv", &key).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let lines: Vec<&str> = csv.text.lines().collect();
    assert_eq!(
        lines[0],
        "day,model,requests,input,cache_read,cache_write,cache_write_1h,output,reasoning,images,cost,cache_write_12h"
    );
    assert!(
        lines[1].ends_with(",test-model,1,90,10,0,0,5,0,0,0.000348,0"),
        "{}",
        lines[1]
    );
    let before = gateway
        .get("/v1/usage?from=2020-01-01&to=2020-12-31", &key)
        .await;
    assert_eq!(
        (
            before.status,
            before.json()["days"].as_array().unwrap().len()
        ),
        (200, 0)
    );
    for bad in [
        "from=2020-01-01&to=2021-01-01",
        "from=0000-00-00",
        "from=2026-01-02&to=2026-01-01",
        "format=xml",
        "to=%00",
    ] {
        let answer = gateway.get(&format!("/v1/usage?{bad}"), &key).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["type"].clone()),
            (400, "invalid_request_error".into()),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn every_request_has_a_receipt_for_its_own_key_only() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let (key, other) = (gateway.key("5.00").await, gateway.key("5.00").await);
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let request = answer.header("x-request-id").unwrap().to_owned();
    let answer_id = answer.json()["id"].as_str().unwrap().to_owned();
    let receipt = gateway
        .get(&format!("/v1/generation?id={request}"), &key)
        .await;
    assert_eq!(receipt.status, 200, "{}", receipt.text);
    assert!(
        receipt.text.contains(r#""total_cost":0.000348"#),
        "{}",
        receipt.text
    );
    assert!(
        receipt
            .text
            .contains(r#"{"what":"input","count":90,"rate":0.000003,"amount":0.00027}"#),
        "{}",
        receipt.text
    );
    let data = receipt.json()["data"].clone();
    assert_eq!(
        (&data["id"], &data["model"], &data["end_reason"]),
        (&request.into(), &"test-model".into(), &"stop".into())
    );
    assert_eq!(
        (&data["evidence"], &data["usage"]["output"]),
        (&"provider".into(), &5.into())
    );
    assert!(
        data["total_ms"].is_u64() && data["first_byte_ms"].is_u64() && data["hold"].is_number()
    );
    assert!(
        !receipt.text.contains("upstream-model"),
        "who served it is the operator's business"
    );
    let by_answer = gateway
        .get(&format!("/v1/generation?id={answer_id}"), &key)
        .await;
    assert_eq!(by_answer.json()["data"]["id"], data["id"]);
    let shown = data["id"].as_str().unwrap();
    for (id, who) in [
        (shown, &other),
        (&answer_id, &other),
        ("req_0", &key),
        ("%F0%9F%92%A5", &key),
        ("", &key),
    ] {
        let missing = gateway.get(&format!("/v1/generation?id={id}"), who).await;
        let error = &missing.json()["error"];
        assert_eq!(
            (missing.status, &error["code"]),
            (404, &"request_not_found".into()),
            "{id}: {}",
            missing.text
        );
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .starts_with("no generation of this key has the id"),
            "{}",
            missing.text
        );
    }
    assert_eq!(gateway.get("/v1/generation", &key).await.status, 400);
}

#[tokio::test]
async fn a_refused_request_has_a_receipt_of_nothing() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("0").await;
    let refused = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    let id = refused.header("x-request-id").unwrap();
    let receipt = gateway
        .get(&format!("/v1/generation?id={id}"), &key)
        .await
        .json()["data"]
        .clone();
    assert_eq!(
        (&receipt["status"], &receipt["end_reason"]),
        (&429.into(), &"out_of_balance".into())
    );
    assert_eq!(receipt["total_cost"], 0.0);
    gateway.get("/v1/usage?form=csv", &key).await;
    let about_itself = gateway
        .get("/v1/generation?id=req_0", &key)
        .await
        .header("x-request-id")
        .unwrap()
        .to_owned();
    let answer = gateway
        .get(&format!("/v1/generation?id={about_itself}"), &key)
        .await;
    assert_eq!(
        answer.status, 404,
        "what was refused on a free path was no generation"
    );
}
