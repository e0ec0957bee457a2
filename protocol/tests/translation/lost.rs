//! What an answer loses on its way back: the caller does not see it, so the receipt and the log name it.

use farebox_protocol::Family;
use farebox_protocol::translate::{Memo, Translator, answer_losses, read_answer, write_answer};
use farebox_protocol::{UsageWish, translate};
use serde_json::{Value, json};

use super::help::*;

/// What a streamed answer loses.
fn streamed(upstream: Family, caller: Family, data: &[String]) -> String {
    let mut translator = Translator::new(upstream, caller, Memo::default(), &wish(b"{}"));
    let mut shown = Vec::new();
    data.iter()
        .for_each(|data| shown.extend_from_slice(translator.frame(&frame(data))));
    shown.extend_from_slice(translator.end());
    assert!(
        !String::from_utf8_lossy(&shown).contains("https://a.example"),
        "what is lost is not shown"
    );
    translator.losses().header()
}

/// What a whole answer loses.
fn whole(upstream: Family, caller: Family, body: &Value) -> String {
    let answer = read_answer(upstream, body.to_string().as_bytes());
    assert!(matches!(answer.end, Some(Ok(_))), "{answer:?}");
    answer_losses(caller, &answer).header()
}

#[test]
fn citations_and_hosted_blocks_of_a_native_answer_are_told() {
    let citation = json!({"type": "web_search_result_location", "url": "https://a.example", "cited_text": "a"});
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let text = (
        json!({"type": "text", "text": "", "citations": []}),
        vec![
            json!({"type": "text_delta", "text": "a"}),
            json!({"type": "citations_delta", "citation": citation}),
            json!({"type": "citations_delta", "citation": citation}),
        ],
    );
    let stream = native(
        &[
            (search.clone(), Vec::new()),
            (found.clone(), Vec::new()),
            text,
        ],
        "end_turn",
    );
    let content =
        json!([search, found, {"type": "text", "text": "a", "citations": [citation, citation]}]);
    let body = json!({"type": "message", "content": content, "stop_reason": "end_turn"});
    let told = "answer.citations=dropped(2), answer.server_tool_use=dropped, answer.web_search_tool_result=dropped";
    for caller in [Chat, Responses] {
        assert_eq!(streamed(Messages, caller, &stream), told);
        assert_eq!(whole(Messages, caller, &body), told);
    }
    let odd = json!({"type": "message", "content": [{"type": "their own words"}, {"type": "redacted_thinking", "data": "x"}], "stop_reason": "pause_turn"});
    assert_eq!(
        whole(Messages, Chat, &odd),
        "answer.block=dropped, answer.pause_turn=dropped, answer.redacted_thinking=dropped",
        "a server's own words are not repeated"
    );
}

#[test]
fn annotations_and_hosted_items_of_a_response_are_told() {
    let note = json!({"type": "url_citation", "url": "https://a.example", "title": "t", "start_index": 0, "end_index": 1});
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}});
    let message = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [note]}]});
    let response = json!({"status": "completed", "output": [search, message, {"type": "newer"}]});
    let event = |kind: &str, index: u64, item: &Value| {
        json!({"type": kind, "output_index": index, "item": item}).to_string()
    };
    let stream = [
        json!({"type": "response.created", "response": {}}).to_string(),
        event("response.output_item.added", 0, &search),
        event("response.output_item.done", 0, &search),
        event("response.output_item.added", 1, &json!({"type": "message", "content": []})),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "a"}).to_string(),
        json!({"type": "response.output_text.annotation.added", "output_index": 1, "annotation": note}).to_string(),
        event("response.output_item.done", 1, &message),
        json!({"type": "response.completed", "response": response}).to_string(),
    ];
    let told = "answer.annotations=dropped, answer.item=dropped, answer.web_search_call=dropped";
    for caller in [Chat, Messages] {
        assert_eq!(streamed(Responses, caller, &stream), told);
        assert_eq!(whole(Responses, caller, &response), told);
    }
}

#[test]
fn annotations_and_sounds_of_a_chat_answer_are_told() {
    let note = json!([{"type": "url_citation", "url_citation": {"url": "https://a.example"}}]);
    let delta = json!({"content": "a", "annotations": note, "audio": null, "images": []});
    let stream = chat(
        &[
            delta.clone(),
            json!({"content": "b", "audio": {"data": "x"}}),
        ],
        "stop",
    );
    for caller in [Responses, Messages] {
        assert_eq!(
            streamed(Chat, caller, &stream),
            "answer.annotations=dropped, answer.audio=dropped"
        );
        let body = json!({"choices": [{"index": 0, "message": delta, "finish_reason": "stop"}]});
        assert_eq!(whole(Chat, caller, &body), "answer.annotations=dropped");
    }
}

#[test]
fn arguments_that_are_no_object_are_wrapped_and_a_cut_call_is_told() {
    let body = |arguments: &str, finish: &str| {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}});
        json!({"choices": [{"index": 0, "finish_reason": finish, "message": {"content": "a", "tool_calls": [call]}}]})
    };
    let written = |body: &Value| -> Value {
        let answer = read_answer(Chat, body.to_string().as_bytes());
        let body = write_answer(
            Messages,
            &answer,
            &Memo::default(),
            &wish(b"{}"),
            &USAGE,
            UsageWish::default(),
        );
        serde_json::from_slice(&body).expect("JSON")
    };
    for (arguments, finish, input, told) in [
        ("{\"a\":1}", "tool_calls", Some(json!({"a": 1})), ""),
        (
            "[1]",
            "tool_calls",
            Some(json!({"_raw": "[1]"})),
            "answer.arguments=wrapped",
        ),
        (
            "{\"a\":",
            "tool_calls",
            Some(json!({"_raw": "{\"a\":"})),
            "answer.arguments=wrapped",
        ),
        ("{\"a\":", "length", None, "answer.tool_use=cut"),
    ] {
        let body = body(arguments, finish);
        assert_eq!(whole(Chat, Messages, &body), told, "{arguments}");
        assert_eq!(
            written(&body)["content"]
                .get(1)
                .map(|block| block["input"].clone()),
            input,
            "{arguments}"
        );
        let cut = Some(told).filter(|told| told.ends_with("=cut"));
        assert_eq!(
            whole(Chat, Responses, &body),
            cut.unwrap_or_default(),
            "only native answers carry objects"
        );
    }
}

#[test]
fn a_frame_that_is_not_json_is_told() {
    for upstream in [Chat, Messages, Responses] {
        let caller = if upstream == Chat { Messages } else { Chat };
        let own = data_of(&relay(
            Messages,
            upstream,
            Memo::default(),
            &native(&[text_block("a")], "end_turn"),
        ));
        let own = if upstream == Messages {
            native(&[text_block("a")], "end_turn")
        } else {
            own
        };
        let mut stream = own.clone();
        stream.insert(own.len() / 2, String::new());
        assert_eq!(
            streamed(upstream, caller, &stream),
            "",
            "a sign of life is no loss"
        );
        stream.insert(own.len() / 2, "{\"text\":\"a\u{1}b\"}".to_owned());
        assert_eq!(
            streamed(upstream, caller, &stream),
            "answer.frame=dropped",
            "{upstream}"
        );
    }
}

#[test]
fn an_ordinary_answer_loses_nothing() {
    let upstream = native(
        &[text_block("a"), call_block("t1", "f", &["{}"])],
        "tool_use",
    );
    for (from, to) in PAIRS {
        let own = if from == Messages {
            upstream.clone()
        } else {
            data_of(&relay(Messages, from, Memo::default(), &upstream))
        };
        assert_eq!(streamed(from, to, &own), "", "{from} to {to}");
    }
    let mut both = translate::Losses::default();
    both.add("seed", "dropped");
    let more =
        json!({"type": "message", "content": [{"type": "compaction"}], "stop_reason": "end_turn"});
    both.merge(&answer_losses(
        Chat,
        &read_answer(Messages, more.to_string().as_bytes()),
    ));
    assert_eq!(both.header(), "answer.compaction=dropped, seed=dropped");
}
