//! What cannot be a message is refused before money is held and before a provider hears of it, in every family.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, ask, path, talking};

#[tokio::test]
async fn what_cannot_be_a_message_costs_nothing_and_reaches_nobody() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let picture = |family| match family {
        Family::Chat => "image_url",
        Family::Responses => "input_image",
        Family::Messages => "image",
    };
    let stranger = |family| match family {
        Family::Chat => json!({ "type": "input_text", "text": "a" }),
        Family::Responses => {
            json!({ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } })
        }
        Family::Messages => {
            json!({ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } })
        }
    };
    for family in Family::ALL {
        let list = family.protocol().conversation_field();
        let conversations = [
            (json!([{ "content": "a" }]), "[0].role"),
            (json!(["a"]), "[0]"),
            (json!([{ "role": "user", "content": 5 }]), "[0].content"),
            (
                json!([{ "role": "user", "content": [{ "type": picture(family) }] }]),
                "[0].content[0]",
            ),
            (
                json!([{ "role": "user", "content": [stranger(family)] }]),
                "[0].content[0].type",
            ),
        ];
        for (conversation, place) in conversations {
            let mut body = ask(family, "test-model", false);
            body[list] = conversation;
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(answer.status, 400, "{body}: {}", answer.text);
            let error = &answer.json()["error"];
            assert_eq!(error["type"], "invalid_request_error", "{error}");
            let named = format!("{list}{place}");
            let param = error.get("param").and_then(Value::as_str);
            assert!(param.is_none_or(|param| param == named), "{named}: {error}");
        }
    }
    let mut body = ask(Family::Messages, "test-model", false);
    body["system"] = json!(5);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    let records = gateway.records.all();
    assert!(records.iter().all(|record| record.hold.picos() == 0));
    assert!(upstream.requests().is_empty() && gateway.charges(&key).await.is_empty());
}
