//! R2: calls of a chat target whose pieces are numbered and named in other ways than clients know.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::super::translation::{before, frames, speech};
use super::{calls, charged, is_strict, post};
use crate::support::answers::{folded, take};
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{ask, path};

/// A chat stream of these pieces of calls.
fn calling(pieces: &[Value]) -> Reply {
    let chunk = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        json!({"id": "up-1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices})
    };
    let mut chunks = vec![chunk(
        json!({"role": "assistant", "content": null}),
        Value::Null,
    )];
    let pieces = pieces
        .iter()
        .map(|piece| chunk(json!({"tool_calls": [piece]}), Value::Null));
    chunks.extend(pieces);
    chunks.push(chunk(json!({}), json!("tool_calls")));
    let mut counted = chunk(json!({}), Value::Null);
    counted["choices"] = json!([]);
    counted["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150});
    chunks.push(counted);
    let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    Reply::events(chunks.chain(["data: [DONE]\n\n".to_owned()]))
}

/// What is odd, the pieces, and the calls that they are.
type Case<'c> = (&'c str, Vec<Value>, &'c [(&'c str, Value)]);

/// R2: pieces of calls however they are numbered and named, and the turn after them.
#[tokio::test]
async fn r2_a_call_has_all_its_arguments_whatever_its_later_ids() {
    let piece = |id: Value, name: Value, arguments: &str| {
        let mut piece = json!({"index": 0, "function": {"arguments": arguments}});
        if !id.is_null() {
            piece["id"] = id;
            piece["type"] = json!("function");
        }
        if !name.is_null() {
            piece["function"]["name"] = name;
        }
        piece
    };
    let none = || Value::Null;
    let one = [("run", json!({"a": 1}))];
    let both = [("run", json!({"a": 1})), ("walk", json!({"b": 2}))];
    let cases: [Case<'_>; 6] = [
        (
            "a late id",
            vec![
                piece(none(), json!("run"), "{\"a\""),
                piece(json!("call_9"), none(), ":1}"),
            ],
            &one,
        ),
        (
            "an id in each piece",
            vec![
                piece(json!("call_1"), json!("run"), ""),
                piece(json!("call_2"), none(), "{\"a\""),
                piece(json!("call_3"), none(), ":1}"),
            ],
            &one,
        ),
        (
            "an empty name",
            vec![
                piece(json!("call_1"), json!("run"), "{"),
                piece(json!("call_2"), json!(""), "\"a\":1"),
                piece(json!(""), json!(""), "}"),
            ],
            &one,
        ),
        (
            "one id and one name in each piece",
            vec![
                piece(json!("call_1"), json!("run"), "{\"a\""),
                piece(json!("call_1"), json!("run"), ":1}"),
            ],
            &one,
        ),
        (
            "two ids with names at one index",
            vec![
                piece(json!("call_1"), json!("run"), "{\"a\":1}"),
                piece(json!("call_2"), json!("walk"), "{\"b\""),
                piece(none(), none(), ":2}"),
            ],
            &both,
        ),
        (
            "no index",
            vec![
                json!({"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{\"a\""}}),
                json!({"function": {"arguments": ":1}"}}),
                json!({"id": "call_2", "type": "function", "function": {"name": "walk", "arguments": "{\"b\":2}"}}),
            ],
            &both,
        ),
    ];
    for caller in Family::ALL {
        for (what, pieces, expected) in &cases {
            let upstream =
                ScriptedUpstream::start([calling(pieces), speech(Family::Chat, false)]).await;
            let gateway = before(&upstream, Family::Chat, "").await;
            let key = gateway.key("5.00").await;
            let answer = post(&gateway, &key, caller, true).await;
            let shown = format!("{caller}, {what}: {}", answer.text);
            let message = folded(caller, &answer.text);
            let expected: Vec<(String, Value)> = (expected.iter())
                .map(|(name, input)| ((*name).to_owned(), input.clone()))
                .collect();
            assert_eq!(calls(caller, &message), expected, "{shown}");
            assert!(caller != Family::Chat || is_strict(&answer.text), "{shown}");
            let entry = charged(&gateway, &key).await;
            assert_eq!(-entry.amount.picos(), 100 * 3_000_000 + 50 * 15_000_000);
            // The vendor that defined the family takes it back.
            let mut next = ask(caller, "test-model", false);
            let field = caller.protocol().conversation_field();
            let mut turns = next[field].as_array().cloned().unwrap();
            let made = take(caller, &mut turns, &message, "done");
            assert_eq!(made, expected.len(), "{shown}");
            next[field] = json!(turns);
            let answer = gateway.post(path(caller), &key, &next).await;
            assert_eq!(answer.status, 200, "{shown}\n{}", answer.text);
        }
    }
}

/// R2: calls as every client expects them are not touched.
#[tokio::test]
async fn r2_pieces_in_order_pass_as_they_are() {
    let first = |index: u64| {
        json!({"index": index, "id": format!("call_{index}"), "type": "function",
            "function": {"name": "run", "arguments": ""}})
    };
    let more = |index: u64, text: &str| json!({"index": index, "id": null, "function": {"name": "", "arguments": text}});
    let pieces = [
        first(0),
        more(0, "{}"),
        first(2),
        more(2, "{\"a\""),
        more(2, ":1}"),
    ];
    let reply = calling(&pieces);
    let sent: Vec<Value> = reply.texts().iter().flat_map(|text| frames(text)).collect();
    let upstream = ScriptedUpstream::start(reply).await;
    let gateway = before(&upstream, Family::Chat, "").await;
    let key = gateway.key("5.00").await;
    let answer = post(&gateway, &key, Family::Chat, true).await;
    let got = frames(&answer.text);
    let calls = |chunk: &Value| chunk["choices"][0]["delta"]["tool_calls"].clone();
    assert_eq!(
        got.iter().map(calls).collect::<Vec<_>>(),
        sent.iter().map(calls).collect::<Vec<_>>()
    );
}
