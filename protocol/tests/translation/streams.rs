//! Streams towards chat and responses callers.

use farebox_protocol::UsageWish;
use farebox_protocol::translate::{Memo, Translator};
use serde_json::{Value, json};

use super::help::*;

fn two_calls() -> Vec<String> {
    native(
        &[
            text_block("I look."),
            call_block("t1", "f", &["", "{\"a\"", ":1}"]),
            call_block("t2", "g", &[]),
        ],
        "tool_use",
    )
}

#[test]
fn b02_b88_b89_b90_counts_are_whole_in_every_family() {
    let chat_usage = last_of(
        &relay(Messages, Chat, Memo::default(), &two_calls()),
        "/usage",
    );
    assert_eq!(
        (&chat_usage["prompt_tokens"], &chat_usage["total_tokens"]),
        (&json!(105), &json!(116))
    );
    assert_eq!(chat_usage["prompt_tokens_details"]["cached_tokens"], 75);
    assert_eq!(chat_usage["prompt_tokens_details"]["cache_write_tokens"], 5);
    let usage = last_of(
        &relay(Messages, Responses, Memo::default(), &two_calls()),
        "/response/usage",
    );
    assert_eq!(
        (&usage["input_tokens"], &usage["total_tokens"]),
        (&json!(105), &json!(116))
    );
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], 75);
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 4);
}

#[test]
fn b09_finish_usage_and_ids_of_chat_chunks() {
    let stream = events(&relay(Messages, Chat, Memo::default(), &two_calls()));
    let ids: Vec<&Value> = stream
        .iter()
        .filter(|event| event.is_object())
        .map(|event| &event["id"])
        .collect();
    assert!(ids.iter().all(|id| **id == "chatcmpl-req1"), "{ids:?}");
    let [.., finish, usage, done] = stream.as_slice() else {
        panic!("three last chunks")
    };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert!(finish.get("usage").is_none());
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(done, "[DONE]");
    let mut unasked = Translator::new(Messages, Chat, Memo::default(), &wish(b"{}"));
    two_calls()
        .iter()
        .for_each(|data| drop(unasked.frame(&frame(data)).to_vec()));
    let end = String::from_utf8(unasked.finish(&USAGE, UsageWish::default())).expect("UTF-8");
    assert!(
        !end.contains("usage") && end.ends_with("data: [DONE]\n\n"),
        "counts are sent to who asks: {end}"
    );
}

#[test]
fn b67_b68_b69_b82_calls_are_numbered_from_zero_without_empty_chunks() {
    let stream = events(&relay(Messages, Chat, Memo::default(), &two_calls()));
    let calls: Vec<&Value> = stream
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    let text = |index: u64| -> String {
        let own = calls.iter().filter(|call| call["index"] == index);
        own.filter_map(|call| call["function"]["arguments"].as_str())
            .collect()
    };
    assert_eq!((text(0).as_str(), text(1).as_str()), ("{\"a\":1}", "{}"));
    assert_eq!(
        (&calls[0]["id"], &calls[0]["type"]),
        (&json!("t1"), &json!("function"))
    );
    let empty = calls
        .iter()
        .filter(|call| call.get("id").is_none() && call["function"]["arguments"] == "");
    assert_eq!(empty.count(), 0);
}

#[test]
fn a_call_that_is_named_after_its_arguments_keeps_them() {
    let call = |call: Value| json!({"tool_calls": [call]});
    let arguments = json!({"index": 0, "id": "c1", "function": {"arguments": "{\"a\":1}"}});
    let stream = chat(
        &[
            call(arguments),
            call(json!({"index": 0, "function": {"name": "f"}})),
        ],
        "tool_calls",
    );
    let shown = events(&relay(Chat, Messages, Memo::default(), &stream));
    let inputs: Vec<&str> = shown
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    let calls: Vec<&Value> = shown
        .iter()
        .map(|event| &event["content_block"])
        .filter(|block| block["type"] == "tool_use")
        .collect();
    assert_eq!((inputs.concat().as_str(), calls.len()), ("{\"a\":1}", 1));
    assert_eq!(
        (&calls[0]["id"], &calls[0]["name"]),
        (&json!("c1"), &json!("f"))
    );
}

#[test]
fn b75_responses_events_are_complete_and_in_order() {
    let stream = events(&relay(Messages, Responses, Memo::default(), &two_calls()));
    let kinds: Vec<&str> = stream
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (at, event) in stream.iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
    }
    let last = &stream.last().expect("an end")["response"];
    let done: Vec<&Value> = stream
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    assert_eq!(
        last["output"]
            .as_array()
            .map(|list| list.iter().collect::<Vec<_>>()),
        Some(done)
    );
    assert_eq!(
        (
            &last["object"],
            &last["model"],
            &last["status"],
            &last["id"]
        ),
        (
            &json!("response"),
            &json!("slug"),
            &json!("completed"),
            &json!("resp_req1")
        )
    );
    assert_eq!(last["output"][1]["arguments"], "{\"a\":1}");
    assert_eq!(last["output"][1]["call_id"], "t1");
}

#[test]
fn b76_an_upstream_without_a_finish_reason_still_completes() {
    let upstream = [
        json!({"choices": [{"index": 0, "delta": {"content": "a"}}]}).to_string(),
        "[DONE]".to_owned(),
    ];
    let stream = relay(Chat, Responses, Memo::default(), &upstream);
    assert_eq!(last_of(&stream, "/type"), "response.completed");
    assert!(stream.contains("response.output_text.done"));
}

#[test]
fn b79_a_reasoning_item_is_sent_for_shown_thinking() {
    let stream = relay(
        Chat,
        Responses,
        Memo::default(),
        &chat(
            &[json!({"reasoning_content": "hm"}), json!({"content": "a"})],
            "stop",
        ),
    );
    let output = last_of(&stream, "/response/output");
    assert_eq!(output[0]["type"], "reasoning");
    assert_eq!(
        output[0]["summary"],
        json!([{"type": "summary_text", "text": "hm"}])
    );
    assert_eq!(output[1]["content"][0]["text"], "a");
}

#[test]
fn b104_whole_answers_keep_their_calls() {
    use farebox_protocol::translate::{read_answer, write_answer};
    let upstream = json!({"id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ]});
    let answer = read_answer(Messages, upstream.to_string().as_bytes());
    let write = |caller| {
        let body = write_answer(
            caller,
            &answer,
            &Memo::default(),
            &wish(b"{}"),
            &USAGE,
            UsageWish::default(),
        );
        serde_json::from_slice::<Value>(&body).expect("JSON")
    };
    let response = write(Responses);
    assert_eq!(
        (&response["status"], &response["output"][1]["type"]),
        (&json!("completed"), &json!("function_call"))
    );
    let chat = write(Chat);
    assert_eq!(
        chat["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
        "{\"a\":1}"
    );
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn the_response_repeats_the_request() {
    let request = json!({"model": "slug", "input": "q", "instructions": "be kind", "tools": [{"type": "function", "name": "f"}], "temperature": null, "store": true});
    let request = request.to_string();
    let mut translator =
        Translator::new(Chat, Responses, Memo::default(), &wish(request.as_bytes()));
    let last = translator.finish(&USAGE, UsageWish::default());
    let response = last_of(&String::from_utf8(last).expect("UTF-8"), "/response");
    assert_eq!(
        (
            &response["instructions"],
            &response["store"],
            &response["temperature"]
        ),
        (&json!("be kind"), &json!(false), &json!(1.0))
    );
    let tool = json!({"type": "function", "name": "f", "strict": false, "parameters": null});
    assert_eq!(
        response["tools"],
        json!([tool]),
        "a function is written out"
    );
}

#[test]
fn servers_own_blocks_are_swallowed() {
    let search = (
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        vec![json!({"type": "input_json_delta", "partial_json": "{}"})],
    );
    let found = (
        json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
        Vec::new(),
    );
    let stream = relay(
        Messages,
        Chat,
        Memo::default(),
        &native(&[search, found, text_block("a")], "end_turn"),
    );
    assert!(!stream.contains("tool_calls") && stream.contains("\"content\":\"a\""));
}

#[test]
fn names_and_texts_survive_odd_characters() {
    let text = "a\"\\\n\u{1}ß漢🎫";
    for caller in [Chat, Responses] {
        let stream = relay(
            Messages,
            caller,
            Memo::default(),
            &native(&[text_block(text)], "end_turn"),
        );
        let shown: String = events(&stream)
            .iter()
            .filter_map(|event| {
                [&event["choices"][0]["delta"]["content"], &event["delta"]]
                    .into_iter()
                    .find_map(Value::as_str)
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(shown, text);
    }
}
