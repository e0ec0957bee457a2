//! Responses, whole and streamed: what reaches the upstream, what reaches the customer, and what it costs.

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, talking};

/// 70 fresh, 10 read and 20 written input tokens, 3 + 2 output: (70 × 3 + 10 × 0.3 + 20 × 3.75 + 5 × 15) / 1e6 USD.
const USAGE: ReportedUsage = ReportedUsage {
    input: 70,
    cache_read: 10,
    cache_write: 20,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 3,
    reasoning: 2,
};
const COST: &str = "0.000363";
const PATH: &str = "/v1/responses";

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn a_whole_answer_is_paid_to_the_picodollar() {
    let upstream =
        ScriptedUpstream::start(Speech::new(Family::Responses, "PONG").usage(USAGE).whole()).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(PATH, &key, &ask(Family::Responses, "test-model", false))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        (
            answer.header("x-farebox-cost"),
            answer.header("x-farebox-balance")
        ),
        (Some(COST), Some("4.999637"))
    );
    assert_eq!(
        (
            answer.json()["model"].clone(),
            answer.json()["output"][0]["content"][0]["text"].clone()
        ),
        (json!("test-model"), json!("PONG"))
    );
    assert!(
        !answer.text.contains("upstream-model")
            && answer.text.contains(&format!("\"cost\":{COST}"))
    );
    let charges = gateway.charges(&key).await;
    assert_eq!(
        (charges.len(), charges[0].amount.to_string()),
        (1, format!("-{COST}"))
    );
    let usage = charges[0].bill.as_ref().unwrap().usage;
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning
        ),
        (70, 10, 20, 3, 2),
        "fresh = input − cached − written"
    );
}

#[tokio::test]
async fn nothing_is_stored_and_all_else_passes_untouched() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let body = r#"{ "input":"Say \u0050ONG", "include":["reasoning.encrypted_content"],"temperature":1.50,"top_p":1e-1,"max_output_tokens":99,"store":true,"model":"test-alias","text":{"format":{"type":"text"}} }"#;
    assert_eq!(
        gateway
            .send(PATH, &key, body, &[("openai-beta", "x"), ("x-codex", "1")])
            .await
            .status,
        200
    );
    let seen = upstream.request(0).await;
    let expected = body
        .replace("test-alias", "upstream-model-1")
        .replace("\"store\":true", "\"store\":false");
    assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), expected);
    assert_eq!(
        (seen.path.as_str(), seen.header("authorization")),
        (
            "/v1/responses",
            Some("Bearer upstream-secret-of-UPSTREAM_KEY")
        )
    );
    assert!(seen.header("x-codex").is_none());
    gateway
        .post(
            PATH,
            &key,
            &json!({ "model": "test-model", "input": "x", "stream": true }),
        )
        .await;
    assert_eq!(
        upstream.request(1).await.json()["store"],
        false,
        "also when it is not said"
    );
}

#[tokio::test]
async fn a_stream_names_the_slug_in_every_event_and_ends_after_the_charge() {
    let upstream = ScriptedUpstream::start(
        Speech::new(Family::Responses, "one two three")
            .usage(USAGE)
            .stream(),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Responses, "test-model", true);
    let answer = gateway.post(PATH, &key, &body).await;
    let account = gateway.account(&key).await.customer.account;
    assert_eq!(
        (account.spent.to_string().as_str(), account.held.picos()),
        (COST, 0),
        "settled before the last byte"
    );
    let events = events(&answer.text);
    let nested: Vec<&Value> = events
        .iter()
        .filter_map(|event| event.pointer("/response/model"))
        .collect();
    assert_eq!(nested, [&json!("test-model"); 3]);
    assert!(!answer.text.contains("upstream-model"));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert!(
        answer.text.contains(&format!("\"cost\":{COST}")),
        "an exact literal: {}",
        answer.text
    );
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (0..events.len() as u64).collect::<Vec<u64>>(),
        "nothing is lost on the way"
    );
}

#[tokio::test]
async fn search_tools_are_taken_out_and_reported_whole_and_streamed() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for stream in [false, true] {
        let mut body = ask(Family::Responses, "test-model", stream);
        body["tools"] = json!([
            {"type": "function", "name": "exec_command", "parameters": {"type": "object"}},
            {"type": "web_search", "external_web_access": false},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": {}}]}]);
        body["tool_choice"] = json!("auto");
        let answer = gateway.post(PATH, &key, &body).await;
        assert_eq!(
            (answer.status, answer.header("x-farebox-removed")),
            (200, Some("web_search"))
        );
        let sent = upstream.requests().pop().unwrap().json();
        let kinds: Vec<&Value> = sent["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["type"])
            .collect();
        assert_eq!(
            (kinds, sent["tool_choice"].clone()),
            (vec![&json!("function"), &json!("namespace")], json!("auto"))
        );
    }
    let mut many = ask(Family::Responses, "test-model", false);
    many["tools"] = (0..800)
        .map(|number| json!({"type": format!("web_search_{number:04}")}))
        .collect();
    let answer = gateway.post(PATH, &key, &many).await;
    let removed = answer.header("x-farebox-removed").unwrap();
    assert!(
        removed.starts_with("web_search_0000, ") && removed.len() <= 1_024,
        "{removed}"
    );
    let mut only = ask(Family::Responses, "test-model", false);
    only["tools"] = json!([{"type": "web_search_preview"}]);
    only["tool_choice"] = json!({"type": "web_search_preview"});
    only["parallel_tool_calls"] = json!(true);
    assert_eq!(
        gateway
            .post(PATH, &key, &only)
            .await
            .header("x-farebox-removed"),
        Some("web_search_preview")
    );
    let sent = upstream.requests().pop().unwrap().json();
    assert!(
        ["tools", "tool_choice", "parallel_tool_calls"]
            .iter()
            .all(|name| sent.get(*name).is_none()),
        "{sent}"
    );
    assert_eq!(
        gateway
            .post(PATH, &key, &ask(Family::Responses, "test-model", false))
            .await
            .header("x-farebox-removed"),
        None
    );
}

#[tokio::test]
async fn an_incomplete_answer_is_passed_on_and_charged() {
    let upstream = ScriptedUpstream::start(
        Speech::new(Family::Responses, "one two")
            .usage(USAGE)
            .stop("incomplete")
            .stream(),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(PATH, &key, &ask(Family::Responses, "test-model", true))
        .await;
    assert_eq!(
        events(&answer.text).last().unwrap()["type"],
        "response.incomplete"
    );
    assert_eq!(
        gateway.charges(&key).await[0].amount.to_string(),
        format!("-{COST}")
    );
}

#[tokio::test]
async fn a_broken_stream_ends_in_response_failed() {
    let speech = || Speech::new(Family::Responses, "one two three four five six").stream();
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"up-1\",\"model\":\"upstream-model\",\"error\":{\"code\":\"server_error\",\"message\":\"boom at org-abcdefgh\"}}}\n\n";
    for reply in [
        speech().end_after(7),
        speech().reset_after(7),
        speech().then(7, failed),
    ] {
        let upstream = ScriptedUpstream::start(reply).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(PATH, &key, &ask(Family::Responses, "test-model", true))
            .await;
        let last = events(&answer.text).pop().unwrap();
        assert_eq!(last["type"], "response.failed", "{}", answer.text);
        assert_eq!(
            (
                last["response"]["model"].clone(),
                last["response"]["status"].clone()
            ),
            (json!("test-model"), json!("failed"))
        );
        assert_eq!(
            last["response"]["error"]["code"], "server_error",
            "a code that the family publishes"
        );
        assert!(!answer.text.contains("org-abcdefgh"), "{}", answer.text);
        assert!(!answer.text.contains("response.completed"));
        gateway.settled().await;
        let charges = gateway.charges(&key).await;
        assert!(
            charges.len() == 1 && charges[0].amount.picos() < 0,
            "what was delivered is charged, once"
        );
    }
}

#[tokio::test]
async fn an_answer_that_never_begins_is_free() {
    let error = "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n";
    for reply in [
        Reply::json(200, &json!({"id": "no answer"})),
        Reply::events([error]),
        Reply::events([": hello\n\n"]),
    ] {
        let upstream = ScriptedUpstream::start(reply).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(PATH, &key, &ask(Family::Responses, "test-model", true))
            .await;
        assert_eq!(
            (answer.status, answer.json()["error"]["code"].clone()),
            (503, json!("upstream_unavailable")),
            "{}",
            answer.text
        );
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
        assert_eq!(
            gateway.charges(&key).await.len(),
            1,
            "the released hold has its entry"
        );
    }
}

#[tokio::test]
async fn a_refusal_names_the_field_of_this_family() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let picture = json!({ "type": "input_image", "image_url": "https://example.com/a.png" });
    let body =
        json!({ "model": "test-blind", "input": [{ "role": "user", "content": [picture] }] });
    let answer = gateway.post(PATH, &key, &body).await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["code"], &error["param"]),
        (400, &json!("vision_unsupported"), &json!("input"))
    );
}
