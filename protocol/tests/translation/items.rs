//! The items of a responses target, however its events are ordered and named: nothing is torn, doubled or lost.

use farebox_protocol::translate::{Memo, read_answer, write_answer};
use farebox_protocol::{Family, UsageWish};
use serde_json::{Value, json};

use super::help::*;

/// How a server names the item of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    /// By index and id, as published.
    Both,
    /// By index alone.
    Index,
    /// By id alone.
    Id,
    /// By index, and with another id in every event.
    Rotating,
    /// By id, with every item at index 0.
    AllFirst,
}

const NAMES: [Names; 5] = [
    Names::Both,
    Names::Index,
    Names::Id,
    Names::Rotating,
    Names::AllFirst,
];

/// Events about items, named in one way.
struct Server {
    names: Names,
    events: Vec<Value>,
}

impl Server {
    fn new(names: Names) -> Self {
        Self {
            names,
            events: vec![json!({"type": "response.created", "response": {"id": "r"}})],
        }
    }

    fn event(mut self, index: u64, mut event: Value) -> Self {
        let place = if self.names == Names::AllFirst {
            0
        } else {
            index
        };
        let id = match self.names {
            Names::Rotating => format!("it_{}", self.events.len()),
            _ => format!("it_{index}"),
        };
        if self.names != Names::Id {
            event["output_index"] = json!(place);
        }
        if self.names != Names::Index {
            match event.get("item") {
                Some(_) => event["item"]["id"] = json!(id),
                None => event["item_id"] = json!(id),
            }
        }
        self.events.push(event);
        self
    }

    fn added(self, index: u64, item: Value) -> Self {
        self.event(
            index,
            json!({"type": "response.output_item.added", "item": item}),
        )
    }

    fn done(self, index: u64, item: Value) -> Self {
        self.event(
            index,
            json!({"type": "response.output_item.done", "item": item}),
        )
    }

    fn text(self, index: u64, text: &str) -> Self {
        self.event(
            index,
            json!({"type": "response.output_text.delta", "content_index": 0, "delta": text}),
        )
    }

    fn thought(self, index: u64, text: &str) -> Self {
        self.event(index, json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": text}))
    }

    fn arguments(self, index: u64, text: &str) -> Self {
        self.event(
            index,
            json!({"type": "response.function_call_arguments.delta", "delta": text}),
        )
    }

    /// The end, which repeats these items.
    fn end(mut self, kind: &str, output: &[(u64, Value)]) -> String {
        let items: Vec<Value> = output
            .iter()
            .map(|(index, item)| {
                let mut item = item.clone();
                match self.names {
                    Names::Index => {}
                    Names::Rotating => item["id"] = json!(format!("end_{index}")),
                    _ => item["id"] = json!(format!("it_{index}")),
                }
                item
            })
            .collect();
        self.events.push(json!({"type": format!("response.{kind}"), "response": {"status": kind, "output": items}}));
        let data: Vec<String> = self.events.iter().map(Value::to_string).collect();
        relay(Responses, Messages, Memo::default(), &data)
    }
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn reasoning(text: &str) -> Value {
    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": arguments})
}

fn of(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned()))
        .collect()
}

const EXPECTED: [(&str, &str); 4] = [
    ("thinking", "hm, well"),
    ("text", "one two"),
    ("tool_use", "{\"a\":1}"),
    ("tool_use", "{\"b\":2}"),
];

/// The items of [`EXPECTED`].
fn items() -> [(u64, Value); 4] {
    [
        (0, reasoning("hm, well")),
        (1, message("one two")),
        (2, call("c1", "{\"a\":1}")),
        (3, call("c2", "{\"b\":2}")),
    ]
}

/// All items begin before any ends, and their deltas alternate.
fn interleaved(names: Names) -> Server {
    Server::new(names)
        .added(0, json!({"type": "reasoning", "summary": []}))
        .thought(0, "hm, ")
        .added(
            1,
            json!({"type": "message", "role": "assistant", "content": []}),
        )
        .text(1, "one ")
        .added(2, call("c1", ""))
        .arguments(2, "{\"a\"")
        .thought(0, "well")
        .added(3, call("c2", ""))
        .arguments(3, "{\"b\"")
        .text(1, "two")
        .arguments(2, ":1}")
        .arguments(3, ":2}")
}

#[test]
fn interleaved_items_are_whole_and_in_order_whoever_names_them() {
    for names in NAMES {
        let mut server = interleaved(names);
        for (index, item) in items() {
            server = server.done(index, item);
        }
        let stream = server.end("completed", &items());
        assert_eq!(blocks(&stream), of(&EXPECTED), "{names:?}");
        assert_eq!(last_of(&stream, "/delta/stop_reason"), "tool_use");
    }
}

#[test]
fn items_whose_end_is_missing_end_with_the_answer() {
    for names in NAMES {
        for output in [&items()[..], &[]] {
            let stream = interleaved(names).end("completed", output);
            assert_eq!(blocks(&stream), of(&EXPECTED), "{names:?} {output:?}");
        }
    }
}

#[test]
fn items_that_end_twice_or_are_missing_in_the_end_count_once() {
    for names in NAMES {
        for kept in [[0, 1, 2, 3].as_slice(), &[1, 3], &[2], &[0]] {
            let mut server = interleaved(names);
            for (index, item) in items().into_iter().chain(items()) {
                server = server.done(index, item);
            }
            let output: Vec<(u64, Value)> = items()
                .into_iter()
                .filter(|(index, _)| kept.contains(index))
                .collect();
            let stream = server.end("completed", &output);
            assert_eq!(blocks(&stream), of(&EXPECTED), "{names:?} {kept:?}");
        }
    }
}

#[test]
fn a_final_item_is_found_by_its_id_and_only_a_new_one_is_shown() {
    let (first, second) = (message("one"), message("two"));
    let stream = Server::new(Names::Both)
        .added(
            0,
            json!({"type": "message", "role": "assistant", "content": []}),
        )
        .text(0, "one")
        .done(0, first.clone())
        .end("completed", &[(7, second), (0, first)]);
    assert_eq!(blocks(&stream), of(&[("text", "one"), ("text", "two")]));
}

#[test]
fn an_item_that_only_ends_is_shown_whole() {
    for names in NAMES {
        let mut server = Server::new(names);
        for (index, item) in items() {
            server = server.done(index, item);
        }
        let stream = server.end("completed", &items());
        assert_eq!(blocks(&stream), of(&EXPECTED), "{names:?}");
    }
}

#[test]
fn text_is_shown_at_once_while_a_silent_item_is_open() {
    let stream = Server::new(Names::Both)
        .added(0, json!({"type": "reasoning", "summary": []}))
        .added(
            1,
            json!({"type": "message", "role": "assistant", "content": []}),
        )
        .text(1, "one");
    let mut translator = farebox_protocol::translate::Translator::new(
        Responses,
        Messages,
        Memo::default(),
        &wish(b"{}"),
    );
    let mut shown = String::new();
    for event in &stream.events {
        shown.push_str(
            std::str::from_utf8(translator.frame(&frame(&event.to_string()))).expect("UTF-8"),
        );
    }
    assert!(shown.contains("\"text\":\"one\""), "{shown}");
}

/// The answers of a target that stopped early, streamed and whole.
fn stopped_early(output: &[Value], caller: Family) -> (String, Value) {
    let response = json!({"id": "r", "status": "incomplete", "incomplete_details": {"reason": "new_reason"}, "output": output});
    let mut server = Server::new(Names::Both);
    for (index, item) in (0..).zip(output) {
        server = server.done(index, item.clone());
    }
    server
        .events
        .push(json!({"type": "response.incomplete", "response": response}));
    let data: Vec<String> = server.events.iter().map(Value::to_string).collect();
    let answer = read_answer(Responses, response.to_string().as_bytes());
    let whole = write_answer(
        caller,
        &answer,
        &Memo::default(),
        &wish(b"{}"),
        &USAGE,
        UsageWish::default(),
    );
    (
        relay(Responses, caller, Memo::default(), &data),
        serde_json::from_slice(&whole).expect("JSON"),
    )
}

#[test]
fn an_answer_that_is_incomplete_for_any_reason_stopped_at_its_length_and_a_cut_call_is_left_out() {
    let mut cut = call("c1", "{\"a\": ");
    cut["status"] = json!("incomplete");
    let output = [message("one"), cut];
    let (stream, whole) = stopped_early(&output, Messages);
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "max_tokens");
    assert_eq!(
        blocks(&stream),
        of(&[("text", "one"), ("tool_use", "{\"a\": ")]),
        "shown, as vendors do"
    );
    assert_eq!(
        (
            &whole["stop_reason"],
            whole["content"].as_array().map(Vec::len)
        ),
        (&json!("max_tokens"), Some(1))
    );
    let (stream, whole) = stopped_early(&output, Chat);
    assert_eq!(last_of(&stream, "/choices/0/finish_reason"), "length");
    assert_eq!(whole["choices"][0]["finish_reason"], "length");
    assert!(
        whole["choices"][0]["message"].get("tool_calls").is_none(),
        "{whole}"
    );
}

#[test]
fn a_cut_call_that_waits_behind_another_is_left_out() {
    let stream = Server::new(Names::Both)
        .added(0, call("c1", ""))
        .added(1, call("c2", ""))
        .arguments(0, "{\"a\":")
        .arguments(1, "{\"b\":")
        .end("incomplete", &[]);
    assert_eq!(blocks(&stream), of(&[("tool_use", "{\"a\":")]));
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "max_tokens");
}
