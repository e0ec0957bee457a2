//! One example for each converted field: its position and form in the target's request.

use farebox_protocol::Family;
use farebox_protocol::translate::fates::FieldFate;
use farebox_protocol::translate::fields;
use serde_json::{Value, json};

use super::help::*;

/// The caller's family, the field, a value, and per target the place and the value there.
type Cell = (
    Family,
    &'static str,
    Value,
    Vec<(Family, &'static str, Value)>,
);

/// How the user `u` is called towards native targets.
const HASH_OF_U: &str = "1dc4f6a066eb53d3dd7ea6ea0e3d0e298dc4b19bc24ffbd6123696c8420f4b1b";

fn converted() -> Vec<Cell> {
    [from_chat(), from_responses(), from_messages()].concat()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})
}

fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

fn from_chat() -> Vec<Cell> {
    let cell =
        |name, value, responses: (&'static str, Value), messages: (&'static str, Value)| -> Cell {
            (
                Chat,
                name,
                value,
                vec![
                    (Responses, responses.0, responses.1),
                    (Messages, messages.0, messages.1),
                ],
            )
        };
    let user = json!([{"role": "user", "content": "q"}]);
    let function = json!({"name": "f", "parameters": empty()});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema()}});
    let named = json!({"type": "tool", "name": "f"});
    let alone = json!({"type": "auto", "disable_parallel_tool_use": true});
    let text = json!({"format": {"type": "json_schema", "name": "n", "schema": schema(), "strict": false}});
    let native = json!({"format": {"type": "json_schema", "schema": schema()}});
    let flat = json!({"type": "function", "name": "f", "parameters": empty(), "strict": false});
    let tool = json!({"name": "f", "input_schema": empty()});
    vec![
        cell(
            "model",
            json!("slug"),
            ("/model", json!("up")),
            ("/model", json!("up")),
        ),
        cell(
            "messages",
            user,
            (
                "/input/0",
                json!({"type": "message", "role": "user", "content": "q"}),
            ),
            (
                "/messages/0",
                json!({"role": "user", "content": [{"type": "text", "text": "q"}]}),
            ),
        ),
        cell(
            "max_completion_tokens",
            json!(77),
            ("/max_output_tokens", json!(77)),
            ("/max_tokens", json!(77)),
        ),
        cell(
            "max_tokens",
            json!(77),
            ("/max_output_tokens", json!(77)),
            ("/max_tokens", json!(77)),
        ),
        (
            Chat,
            "logprobs",
            json!(true),
            vec![(
                Responses,
                "/include",
                json!(["message.output_text.logprobs"]),
            )],
        ),
        (
            Chat,
            "top_logprobs",
            json!(3),
            vec![(Responses, "/model", json!("up"))],
        ),
        (
            Chat,
            "stop",
            json!("x"),
            vec![
                (Messages, "/stop_sequences", json!(["x"])),
                (Responses, "/stream", json!(true)),
            ],
        ),
        cell(
            "tools",
            json!([{"type": "function", "function": function}]),
            ("/tools/0", flat.clone()),
            ("/tools/0", tool.clone()),
        ),
        cell(
            "functions",
            json!([function]),
            ("/tools/0", flat),
            ("/tools/0", tool),
        ),
        cell(
            "tool_choice",
            json!("required"),
            ("/tool_choice", json!("required")),
            ("/tool_choice", json!({"type": "any"})),
        ),
        cell(
            "function_call",
            json!({"name": "f"}),
            ("/tool_choice", json!({"type": "function", "name": "f"})),
            ("/tool_choice", named),
        ),
        cell(
            "parallel_tool_calls",
            json!(false),
            ("/parallel_tool_calls", json!(false)),
            ("/tool_choice", alone),
        ),
        cell(
            "reasoning_effort",
            json!("low"),
            ("/reasoning/effort", json!("low")),
            ("/output_config/effort", json!("low")),
        ),
        cell(
            "reasoning",
            json!({"effort": "low"}),
            ("/reasoning/effort", json!("low")),
            ("/output_config/effort", json!("low")),
        ),
        cell(
            "response_format",
            format,
            ("/text", text),
            ("/output_config", native),
        ),
        (
            Chat,
            "prompt_cache_key",
            json!("k"),
            vec![(Responses, "/prompt_cache_key", json!("k"))],
        ),
        cell(
            "safety_identifier",
            json!("u"),
            ("/safety_identifier", json!("u")),
            ("/metadata/user_id", json!(HASH_OF_U)),
        ),
        cell(
            "user",
            json!("u"),
            ("/safety_identifier", json!("u")),
            ("/metadata/user_id", json!(HASH_OF_U)),
        ),
        cell(
            "service_tier",
            json!("default"),
            ("/service_tier", json!("default")),
            ("/service_tier", json!("standard_only")),
        ),
        (
            Chat,
            "verbosity",
            json!("low"),
            vec![(Responses, "/text/verbosity", json!("low"))],
        ),
    ]
}

fn from_responses() -> Vec<Cell> {
    let cell =
        |name, value, chat: (&'static str, Value), messages: (&'static str, Value)| -> Cell {
            (
                Responses,
                name,
                value,
                vec![(Chat, chat.0, chat.1), (Messages, messages.0, messages.1)],
            )
        };
    let text = json!({"format": {"type": "json_schema", "name": "n", "schema": schema()}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema(), "strict": false}});
    let native = json!({"format": {"type": "json_schema", "schema": schema()}});
    let tool = json!({"type": "function", "name": "f", "parameters": empty()});
    let nested = json!({"type": "function", "function": {"name": "f", "parameters": empty()}});
    let alone = json!({"type": "auto", "disable_parallel_tool_use": true});
    vec![
        cell(
            "model",
            json!("slug"),
            ("/model", json!("up")),
            ("/model", json!("up")),
        ),
        cell(
            "input",
            json!("q"),
            ("/messages/0", json!({"role": "user", "content": "q"})),
            (
                "/messages/0",
                json!({"role": "user", "content": [{"type": "text", "text": "q"}]}),
            ),
        ),
        cell(
            "instructions",
            json!("s"),
            ("/messages/0", json!({"role": "system", "content": "s"})),
            ("/system", json!([{"type": "text", "text": "s"}])),
        ),
        cell(
            "max_output_tokens",
            json!(77),
            ("/max_tokens", json!(77)),
            ("/max_tokens", json!(77)),
        ),
        cell(
            "tools",
            json!([tool]),
            ("/tools/0", nested),
            ("/tools/0", json!({"name": "f", "input_schema": empty()})),
        ),
        cell(
            "tool_choice",
            json!("required"),
            ("/tool_choice", json!("required")),
            ("/tool_choice", json!({"type": "any"})),
        ),
        cell(
            "parallel_tool_calls",
            json!(false),
            ("/parallel_tool_calls", json!(false)),
            ("/tool_choice", alone),
        ),
        cell(
            "reasoning",
            json!({"effort": "low"}),
            ("/reasoning_effort", json!("low")),
            ("/output_config/effort", json!("low")),
        ),
        cell(
            "text",
            text,
            ("/response_format", format),
            ("/output_config", native),
        ),
        (
            Responses,
            "prompt_cache_key",
            json!("k"),
            vec![(Chat, "/prompt_cache_key", json!("k"))],
        ),
        cell(
            "safety_identifier",
            json!("u"),
            ("/user", json!("u")),
            ("/metadata/user_id", json!(HASH_OF_U)),
        ),
        cell(
            "user",
            json!("u"),
            ("/user", json!("u")),
            ("/metadata/user_id", json!(HASH_OF_U)),
        ),
        cell(
            "service_tier",
            json!("default"),
            ("/service_tier", json!("default")),
            ("/service_tier", json!("standard_only")),
        ),
    ]
}

fn from_messages() -> Vec<Cell> {
    let cell =
        |name, value, chat: (&'static str, Value), responses: (&'static str, Value)| -> Cell {
            (
                Messages,
                name,
                value,
                vec![
                    (Chat, chat.0, chat.1),
                    (Responses, responses.0, responses.1),
                ],
            )
        };
    let format = json!({"type": "json_schema", "schema": schema()});
    let nested = json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema(), "strict": true}});
    let text = json!({"type": "json_schema", "name": "output", "schema": schema(), "strict": true});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": empty()}});
    let flat = json!({"type": "function", "name": "f", "parameters": empty(), "strict": false});
    let session = json!({"user_id": "{\"session_id\":\"s\"}"});
    vec![
        cell(
            "model",
            json!("slug"),
            ("/model", json!("up")),
            ("/model", json!("up")),
        ),
        cell(
            "max_tokens",
            json!(77),
            ("/max_tokens", json!(77)),
            ("/max_output_tokens", json!(77)),
        ),
        cell(
            "system",
            json!("s"),
            ("/messages/0", json!({"role": "system", "content": "s"})),
            ("/instructions", json!("s")),
        ),
        cell(
            "messages",
            json!([{"role": "user", "content": "q"}]),
            ("/messages/0", json!({"role": "user", "content": "q"})),
            (
                "/input/0",
                json!({"type": "message", "role": "user", "content": "q"}),
            ),
        ),
        cell(
            "tools",
            json!([{"name": "f", "input_schema": empty()}]),
            ("/tools/0", tool),
            ("/tools/0", flat),
        ),
        cell(
            "tool_choice",
            json!({"type": "any"}),
            ("/tool_choice", json!("required")),
            ("/tool_choice", json!("required")),
        ),
        cell(
            "thinking",
            json!({"type": "disabled"}),
            ("/reasoning_effort", json!("none")),
            ("/reasoning/effort", json!("none")),
        ),
        cell(
            "output_config",
            json!({"effort": "low"}),
            ("/reasoning_effort", json!("low")),
            ("/reasoning/effort", json!("low")),
        ),
        cell(
            "output_format",
            format,
            ("/response_format", nested),
            ("/text/format", text),
        ),
        (
            Messages,
            "stop_sequences",
            json!(["x"]),
            vec![
                (Chat, "/stop", json!(["x"])),
                (Responses, "/stream", json!(true)),
            ],
        ),
        cell(
            "metadata",
            session,
            ("/prompt_cache_key", json!("s")),
            ("/prompt_cache_key", json!("s")),
        ),
        cell(
            "service_tier",
            json!("standard_only"),
            ("/service_tier", json!("default")),
            ("/service_tier", json!("default")),
        ),
        cell(
            "speed",
            json!("fast"),
            ("/service_tier", json!("priority")),
            ("/service_tier", json!("priority")),
        ),
    ]
}

/// Where a converted field stands in the target's request.
pub(crate) fn place(from: Family, to: Family, field: &str) -> String {
    let cells = converted();
    let (.., places) = cells
        .iter()
        .find(|(family, name, ..)| (*family, *name) == (from, field))
        .expect("an example");
    let (_, pointer, _) = places
        .iter()
        .find(|(target, ..)| *target == to)
        .expect("an example");
    let words = pointer
        .split('/')
        .filter(|word| !word.is_empty() && word.parse::<u32>().is_err());
    words.collect::<Vec<_>>().join(".")
}

#[test]
fn every_converted_field_stands_where_the_page_says() {
    let cells = converted();
    let mut wrong = Vec::new();
    for (from, name, value, places) in &cells {
        let row = fields(*from)
            .iter()
            .find(|row| row.name == *name)
            .expect("a row of the table");
        let wanted = Family::ALL
            .into_iter()
            .filter(|to| to != from && row.fate(*to) == FieldFate::Converted);
        let mut given: Vec<Family> = places.iter().map(|(to, ..)| *to).collect();
        given.sort_by_key(|family| family.name());
        let mut wanted: Vec<Family> = wanted.collect();
        wanted.sort_by_key(|family| family.name());
        assert_eq!(
            given, wanted,
            "{from} {name}: one example for each target that converts it"
        );
        for (to, pointer, expected) in places {
            let mut more = json!({(*name): value});
            if ["tool_choice", "function_call", "parallel_tool_calls"].contains(name) {
                more["tools"] = match from {
                    Chat => json!([{"type": "function", "function": {"name": "f"}}]),
                    Responses => json!([{"type": "function", "name": "f", "parameters": empty()}]),
                    Messages => json!([{"name": "f", "input_schema": empty()}]),
                };
            }
            let sent = sent(*from, *to, &asking(*from, &more));
            if sent.pointer(pointer) != Some(expected) {
                wrong.push(format!(
                    "{name} from {from} to {to}: {expected} is not at {pointer} of {sent}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for from in Family::ALL {
        let rows = fields(from).iter().filter(|row| {
            Family::ALL
                .into_iter()
                .any(|to| to != from && row.fate(to) == FieldFate::Converted)
        });
        for row in rows {
            assert!(
                cells
                    .iter()
                    .any(|(family, name, ..)| (*family, *name) == (from, row.name)),
                "{from} {}: no example",
                row.name
            );
        }
    }
}
