//! Why an answer ended: the upstream's own reason, in the journal, the log and the receipt, whole and streamed.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, Gateway, TestKey, ask, path};

/// Sends a request to an upstream of this family that stops with this word, and returns the reason in the journal, the log and the
/// receipt.
async fn reasons(family: Family, word: &'static str, stream: bool) -> [String; 3] {
    let speech = Speech::new(family, "one two").stop(word);
    let upstream = ScriptedUpstream::start(if stream {
        speech.stream()
    } else {
        speech.whole()
    })
    .await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(path(family), &key, &ask(family, "test-model", stream))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    told(&gateway, &key, &answer).await
}

async fn told(gateway: &Gateway, key: &TestKey, answer: &Answer) -> [String; 3] {
    gateway.settled().await;
    let journal = gateway.charges(key).await[0]
        .bill
        .as_ref()
        .unwrap()
        .end_reason
        .clone();
    let log = gateway.records.all()[0].end_reason.clone();
    let id = answer.header("x-request-id").unwrap();
    let receipt = gateway
        .get(&format!("/v1/generation?id={id}"), key)
        .await
        .json()["data"]
        .clone();
    assert_eq!(receipt["end_reason"], receipt["finish_reason"]);
    [
        journal.to_string(),
        log,
        receipt["end_reason"].as_str().unwrap().to_owned(),
    ]
}

#[tokio::test]
async fn an_answer_cut_at_its_limit_says_length_everywhere() {
    for (family, word) in [
        (Family::Chat, "length"),
        (Family::Responses, "incomplete"),
        (Family::Messages, "max_tokens"),
    ] {
        for stream in [false, true] {
            assert_eq!(
                reasons(family, word, stream).await,
                ["length"; 3],
                "{family} {stream}"
            );
        }
    }
}

#[tokio::test]
async fn other_reasons_keep_their_meaning_in_every_family() {
    for (family, word, reason) in [
        (Family::Chat, "stop", "stop"),
        (Family::Chat, "tool_calls", "tool_calls"),
        (Family::Chat, "content_filter", "content_filter"),
        (Family::Messages, "end_turn", "stop"),
        (Family::Messages, "tool_use", "tool_calls"),
        (Family::Messages, "refusal", "refusal"),
    ] {
        for stream in [false, true] {
            assert_eq!(
                reasons(family, word, stream).await,
                [reason; 3],
                "{family} {word} {stream}"
            );
        }
    }
}

#[tokio::test]
async fn a_response_that_calls_a_tool_says_so() {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"});
    let response = json!({"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": [call],
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let script = Script::by(move |seen: &Seen, _| {
        let event = json!({"type": "response.completed", "response": response});
        let streams = seen.json()["stream"] == Value::Bool(true);
        if streams {
            Reply::events(vec![format!(
                "event: response.completed\ndata: {event}\n\n"
            )])
        } else {
            Reply::json(200, &response)
        }
    });
    let upstream = ScriptedUpstream::start(script).await;
    for stream in [false, true] {
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(
                "/v1/responses",
                &key,
                &ask(Family::Responses, "test-model", stream),
            )
            .await;
        assert_eq!(
            told(&gateway, &key, &answer).await,
            ["tool_calls"; 3],
            "stream {stream}"
        );
    }
}

#[tokio::test]
async fn an_empty_stop_reason_is_none_and_the_stream_is_broken() {
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"id": "c", "model": "m", "choices": [choice]})
        )
    };
    let frames = vec![
        chunk(json!({"content": "one"}), Value::Null),
        chunk(json!({"content": " two"}), json!("")),
    ];
    let upstream = ScriptedUpstream::start(Reply::events(frames)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(
            "/v1/chat/completions",
            &key,
            &ask(Family::Chat, "test-model", true),
        )
        .await;
    assert!(
        answer.text.contains("two") && answer.text.contains("upstream_error"),
        "{}",
        answer.text
    );
    assert_eq!(told(&gateway, &key, &answer).await, ["upstream_broken"; 3]);
}
