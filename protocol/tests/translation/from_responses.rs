//! Answers of responses upstreams, towards the other two families.

use farebox_protocol::translate::Memo;
use serde_json::{Value, json};

use super::help::*;

fn relayed(data: &[Value]) -> String {
    let data: Vec<String> = data.iter().map(Value::to_string).collect();
    relay(Responses, Messages, Memo::default(), &data)
}

fn begun() -> Value {
    json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output}})
}

fn call(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": arguments})
}

fn of(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn b08_b77_an_empty_last_output_loses_nothing() {
    let stream = relayed(&[
        begun(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": call("")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a\":1}"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": call("{\"a\":1}")}),
        completed(json!([])),
    ]);
    assert_eq!(blocks(&stream), of(&[("tool_use", "{\"a\":1}")]));
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "tool_use");
}

#[test]
fn b06_b08_a_filter_is_no_limit() {
    let end = |reason: &str| json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}});
    assert_eq!(
        last_of(
            &relayed(&[begun(), end("content_filter")]),
            "/delta/stop_reason"
        ),
        "refusal"
    );
    assert_eq!(
        last_of(
            &relayed(&[begun(), end("max_output_tokens")]),
            "/delta/stop_reason"
        ),
        "max_tokens"
    );
}

#[test]
fn b78_arguments_that_only_stand_in_the_end_are_delivered() {
    let stream = relayed(&[
        begun(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": call("")}),
        json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{\"a\":1}"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": call("{\"a\":1}")}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "role": "assistant", "content": []}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "content": [{"type": "output_text", "text": "b"}]}}),
        completed(json!([])),
    ]);
    assert_eq!(
        blocks(&stream),
        of(&[("tool_use", "{\"a\":1}"), ("text", "b")])
    );
}

#[test]
fn items_that_were_never_announced_are_shown_at_the_end() {
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "b"}]});
    let stream = relayed(&[begun(), completed(json!([message, call("{}")]))]);
    assert_eq!(blocks(&stream), of(&[("text", "b"), ("tool_use", "{}")]));
}

#[test]
fn a_server_that_numbers_no_event_is_not_heard_twice() {
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "hello"}]});
    let stream = relayed(&[
        begun(),
        json!({"type": "response.output_item.added", "item": {"type": "message", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "delta": "hel"}),
        json!({"type": "response.output_text.delta", "delta": "lo"}),
        json!({"type": "response.output_text.done", "text": "hello"}),
        json!({"type": "response.output_item.done", "item": said}),
        json!({"type": "response.output_item.added", "item": call("")}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{\"a\":1}"}),
        json!({"type": "response.output_item.done", "item": call("{\"a\":1}")}),
        completed(json!([said, call("{\"a\":1}")])),
    ]);
    assert_eq!(
        blocks(&stream),
        of(&[("text", "hello"), ("tool_use", "{\"a\":1}")])
    );
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "tool_use");
}

#[test]
fn ids_may_change_and_summaries_have_parts() {
    let summary = |part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "item_id": text, "output_index": 0, "summary_index": part, "delta": text});
    let text = |id: &str, text: &str| json!({"type": "response.output_text.delta", "item_id": id, "output_index": 1, "content_index": 0, "delta": text});
    let stream = relayed(&[
        begun(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "x"}}),
        summary(0, "a"),
        summary(1, "b"),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "never shown"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "y", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "gAAA"}}),
        text("1", "c"),
        text("2", "d"),
        completed(json!([])),
    ]);
    assert_eq!(
        blocks(&stream),
        of(&[("thinking", "a\n\nb"), ("text", "cd")])
    );
    assert!(!stream.contains("gAAA"));
}

#[test]
fn a_custom_call_is_free_text_for_who_declared_it_and_wrapped_for_others() {
    let custom = |input: &str| json!({"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": input});
    let data = [
        begun(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": custom("")}),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "a \"b\"\n"}),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "ß"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": custom("a \"b\"\nß")}),
        completed(json!([])),
    ];
    let input = json!({"input": "a \"b\"\nß"}).to_string();
    assert_eq!(blocks(&relayed(&data)), of(&[("tool_use", &input)]));
    let tools = json!([{"type": "custom", "custom": {"name": "sql"}}]);
    let memo = translated(
        Chat,
        Messages,
        &able(Messages),
        &asking(Chat, &json!({"tools": tools})),
    )
    .expect("a translation")
    .memo;
    let data: Vec<String> = data.iter().map(Value::to_string).collect();
    let shown: String = events(&relay(Responses, Chat, memo, &data))
        .iter()
        .filter_map(|event| {
            event["choices"][0]["delta"]["tool_calls"][0]["custom"]["input"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(shown, "a \"b\"\nß");
}

#[test]
fn a_refusal_is_one() {
    let stream = relayed(&[
        begun(),
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "no"}),
        completed(json!([])),
    ]);
    assert_eq!(
        (blocks(&stream), last_of(&stream, "/delta/stop_reason")),
        (of(&[("text", "no")]), json!("refusal"))
    );
}
