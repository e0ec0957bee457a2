//! Items by reference: a library that expects stored answers sends the ids of their items. What this gateway gave this customer in the
//! last hour is written out before anything is counted; any other reference is a 400 with its remedy.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::translation::speech;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Answer, Gateway, TestKey, catalog, routes_speaking};

const PATH: &str = "/v1/responses";

/// A call on the first request and words on the next.
fn calls_then_speaks() -> Script {
    Script::by(|seen: &Seen, _| {
        let body = seen.json().to_string();
        if body.contains("7 degrees") {
            return speech(family_of(seen), seen.json()["stream"] == true);
        }
        call(family_of(seen))
    })
}

fn family_of(seen: &Seen) -> Family {
    let path = seen.path.split('?').next().unwrap_or_default();
    let mut families = Family::ALL.into_iter();
    let of_path = families.find(|family| path.ends_with(family.protocol().path));
    of_path.expect("a family's path")
}

/// A whole answer that calls a function.
fn call(family: Family) -> Reply {
    let body = match family {
        Family::Chat => {
            json!({"id": "c_1", "object": "chat.completion", "created": 1, "model": "upstream-model",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]}}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}})
        }
        Family::Responses => {
            json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "upstream-model",
            "status": "completed", "output": [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
                "arguments": "{}", "status": "completed"}],
            "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}})
        }
        Family::Messages => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "upstream-model",
            "stop_reason": "tool_use", "stop_sequence": null,
            "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}],
            "usage": {"input_tokens": 20, "output_tokens": 5}})
        }
    };
    Reply::json(200, &body)
}

async fn before(upstream: &ScriptedUpstream, speaks: Family) -> (Gateway, TestKey) {
    let routes = routes_speaking(&upstream.base_url(), speaks);
    let gateway = Gateway::start(&catalog(speaks), &routes).await;
    let key = gateway.key("5.00").await;
    (gateway, key)
}

fn request(input: Value, stream: bool) -> Value {
    json!({"model": "test-model", "max_output_tokens": 100, "stream": stream, "input": input,
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}]})
}

fn reference(id: &Value) -> Value {
    json!({"type": "item_reference", "id": id})
}

/// The items of an answer, whole or streamed.
fn output(answer: &Answer) -> Vec<Value> {
    if answer.text.starts_with('{') {
        return answer.json()["output"].as_array().expect("items").clone();
    }
    let data = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let end = events.filter(|event| event["type"] == "response.completed");
    let all: Vec<Value> = end.collect();
    all.last().expect("an end")["response"]["output"]
        .as_array()
        .expect("items")
        .clone()
}

/// Three turns of a library that refers to all that it was given, on each kind of target.
#[tokio::test]
async fn what_was_given_is_written_out_on_every_kind_of_target() {
    for (speaks, stream) in [
        (Family::Chat, true),
        (Family::Responses, false),
        (Family::Messages, true),
    ] {
        let upstream = ScriptedUpstream::start(calls_then_speaks()).await;
        let (gateway, key) = before(&upstream, speaks).await;
        let mut input = vec![json!({"role": "user", "content": "How warm is it?"})];
        // A target that is not asked for a stream answers the call whole, so only the words stream.
        let first = gateway
            .post(PATH, &key, &request(json!(input), false))
            .await;
        assert_eq!(first.status, 200, "{speaks}: {}", first.text);
        let items = output(&first);
        let call = items
            .iter()
            .find(|item| item["type"] == "function_call")
            .expect("a call");
        input.extend(items.iter().map(|item| reference(&item["id"])));
        input.push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": "7 degrees"}));
        let second = gateway
            .post(PATH, &key, &request(json!(input), stream))
            .await;
        assert_eq!(second.status, 200, "{speaks}: {}", second.text);
        let given = output(&second);
        // The type may be left out.
        input.extend(given.iter().map(|item| json!({"id": item["id"]})));
        input.push(json!({"role": "user", "content": "And now?"}));
        let third = gateway
            .post(PATH, &key, &request(json!(input), stream))
            .await;
        assert_eq!(third.status, 200, "{speaks}: {}", third.text);
        let sent = upstream
            .requests()
            .last()
            .expect("a request")
            .json()
            .to_string();
        assert!(
            sent.contains("weather") && sent.contains("one two three"),
            "{sent}"
        );
        assert!(!sent.contains("item_reference"), "{sent}");
        gateway.settled().await;
        assert_eq!(gateway.charges(&key).await.len(), 3);
        gateway.stop().await;
    }
}

/// A reference counts like the words that it stands for, and so does the count that is asked for before.
#[tokio::test]
async fn a_reference_counts_like_its_item() {
    let long = "word ".repeat(5_000);
    let upstream = ScriptedUpstream::start(crate::support::talking(&long)).await;
    let (gateway, key) = before(&upstream, Family::Chat).await;
    let hi = json!({"role": "user", "content": "hi"});
    let first = gateway.post(PATH, &key, &request(json!([hi]), false)).await;
    let [item] = &output(&first)[..] else {
        panic!("{}", first.text)
    };
    let mut counted = Vec::new();
    for items in [
        json!([hi]),
        json!([hi, reference(&item["id"])]),
        json!([hi, item]),
    ] {
        let body = json!({"model": "test-model", "input": items});
        let count = gateway
            .post("/v1/responses/input_tokens", &key, &body)
            .await;
        counted.push(count.json()["input_tokens"].as_u64().expect("a count"));
    }
    // A sample is counted, and not the same one each time.
    let [without, by_reference, in_full] = counted[..] else {
        panic!("{counted:?}")
    };
    assert!(by_reference > without + 4_000, "{counted:?}");
    assert!(by_reference.abs_diff(in_full) < in_full / 10, "{counted:?}");
    gateway.stop().await;
}

/// Another customer's, an unknown one, one of a client that said that nothing is stored; on another gateway and after a restart it is
/// the same, because nothing is written down.
#[tokio::test]
async fn other_references_are_refused_with_their_remedy() {
    let upstream = ScriptedUpstream::start(crate::support::talking("one two three")).await;
    let (gateway, key) = before(&upstream, Family::Chat).await;
    let hi = json!({"role": "user", "content": "hi"});
    let mut unstored = request(json!([hi]), false);
    unstored["store"] = json!(false);
    let first = gateway.post(PATH, &key, &request(json!([hi]), false)).await;
    let second = gateway.post(PATH, &key, &unstored).await;
    let other = gateway.key("5.00").await;
    let asked = upstream.requests().len();
    for (key, id) in [
        (&other, output(&first)[0]["id"].clone()),
        (&key, output(&second)[0]["id"].clone()),
        (&key, json!("msg_of_another_gateway")),
    ] {
        let refused = gateway
            .post(PATH, key, &request(json!([hi, reference(&id)]), false))
            .await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        let error = refused.json()["error"].clone();
        assert_eq!(error["param"], "input[1].type", "{error}");
        assert_eq!(error["details"], json!({"remedies": [{"store": false}]}));
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("in the last hour")),
            "{error}"
        );
    }
    assert_eq!(upstream.requests().len(), asked);
    gateway.stop().await;
}
