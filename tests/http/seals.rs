//! Seals that a vendor rejects: the request is repeated once, without any, before the customer has got a byte.

use farebox_doubles::seal;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Gateway, ask, path};

/// How the vendors reject a seal.
fn rejections() -> Vec<(Family, Reply)> {
    let native = |message: &str| Reply::native_error(400, "invalid_request_error", message);
    let items = |code, message: &str| Reply::error(400, "invalid_request_error", code, message);
    let first_event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}\n\n";
    vec![
        (
            Family::Messages,
            native(
                "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
            ),
        ),
        (
            Family::Messages,
            native("messages.1.content.0: Invalid `signature` in `thinking` block"),
        ),
        (Family::Messages, Reply::events([first_event])),
        (
            Family::Responses,
            items(
                Some("invalid_encrypted_content"),
                "The encrypted content for item rs_1 could not be verified.",
            ),
        ),
        (
            Family::Responses,
            items(
                None,
                "The encrypted content gAAA...DQ== could not be verified. Reason: it could not be parsed.",
            ),
        ),
    ]
}

/// A conversation whose model has thought before it called a tool. The double knows these seals; each script rejects them in its own
/// words.
fn sealed(family: Family, stream: bool) -> Value {
    let mut body = ask(family, "test-model", stream);
    if family == Family::Messages {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1_024});
        body["max_tokens"] = json!(4_096);
        body["messages"] = json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": seal::signature(&json!({}), &[], "hm")},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]}]);
    } else {
        let answer = seal::answer_name(&json!({}));
        let (thought, call) = (
            seal::item_id("rs", &answer, 0),
            seal::item_id("fc", &answer, 1),
        );
        body["input"] = json!([
            {"role": "user", "content": "q"},
            {"type": "reasoning", "id": thought, "summary": [], "encrypted_content": seal::encrypted(&answer)},
            {"type": "function_call", "id": call, "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "r"}]);
    }
    body
}

/// A vendor that rejects every seal like this, and else answers.
fn rejecting(family: Family, rejection: &Reply) -> Script {
    let rejection = rejection.clone();
    Script::by(move |seen: &Seen, _| {
        let speech = Speech::new(family, "one two three");
        match (
            seen.json().to_string().contains("Double"),
            seen.json()["stream"] == true,
        ) {
            (true, _) => rejection.clone(),
            (false, true) => speech.stream(),
            (false, false) => speech.whole(),
        }
    })
}

#[tokio::test]
async fn a_rejected_seal_is_stripped_and_the_request_repeated_once() {
    for (number, (family, rejection)) in rejections().into_iter().enumerate() {
        let upstream = ScriptedUpstream::start(rejecting(family, &rejection)).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        // An error as a stream's first event comes to streams alone.
        for stream in [false, true]
            .into_iter()
            .filter(|stream| *stream || number != 2)
        {
            let before = upstream.requests().len();
            let answer = gateway
                .post(path(family), &key, &sealed(family, stream))
                .await;
            assert_eq!(answer.status, 200, "{number}: {}", answer.text);
            assert!(answer.text.contains("three"), "{number}: {}", answer.text);
            let sent = upstream.requests();
            assert_eq!(sent.len(), before + 2, "{number}: one repeat");
            let last = sent[before + 1].json();
            let lost = answer.header("x-farebox-lost");
            if family == Family::Messages {
                assert_eq!(last["messages"][1]["content"][0]["type"], "tool_use");
                assert_eq!(last["thinking"], json!({"type": "disabled"}));
                assert_eq!(lost, Some("thinking=dropped, thinking=off(no_signature)"));
            } else {
                assert_eq!(last["input"].as_array().unwrap().len(), 3);
                assert!(last["input"][1].get("id").is_none(), "{last}");
                assert_eq!(lost, Some("thinking=dropped"));
            }
        }
        gateway.settled().await;
        let records = gateway.records.all();
        assert!(
            records.iter().all(|record| record.attempts.len() == 1),
            "the rejection is in the log"
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn what_is_rejected_without_a_seal_or_for_the_second_time_is_told() {
    for (family, rejection) in rejections()
        .into_iter()
        .take(4)
        .filter(|(family, _)| *family == Family::Messages)
    {
        let upstream = ScriptedUpstream::start(rejection.clone()).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(family), &key, &sealed(family, true))
            .await;
        assert_eq!(
            (answer.status, upstream.requests().len()),
            (400, 2),
            "{}",
            answer.text
        );
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        assert_eq!(
            (answer.status, upstream.requests().len()),
            (400, 3),
            "{}",
            answer.text
        );
        assert_eq!(
            gateway.account(&key).await.customer.account.spent.picos(),
            0,
            "nothing was produced"
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn items_of_a_translated_turn_go_back_without_what_their_vendor_never_made() {
    let upstream = ScriptedUpstream::start(rejecting(Family::Responses, &rejections()[3].1)).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Responses, "test-model", false);
    body["input"] = json!([
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_req_0_fbx", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "fbx1.plain"},
        {"type": "function_call", "id": "fc_req_1_fbx", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"}]);
    let answer = gateway.post(path(Family::Responses), &key, &body).await;
    assert_eq!(
        (answer.status, answer.header("x-farebox-lost")),
        (200, Some("thinking=dropped")),
        "{}",
        answer.text
    );
    assert_eq!(
        upstream.requests()[0].json()["input"],
        json!([
            {"role": "user", "content": "q"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "r"}])
    );
}
