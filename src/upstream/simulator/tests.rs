//! The built-in provider's answers, in paused time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::{FrameReader, StopReason};
use serde_json::Value;

use super::*;
use crate::config::{BreakerPolicy, OnDisconnect, Prefer, Route};

fn user(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

fn ask(
    simulated: &Simulated,
    family: Family,
    model: &str,
    stream: bool,
    body: &Value,
) -> UnjudgedReply {
    ask_at(
        simulated,
        family,
        model,
        stream,
        body,
        TargetOperation::Generate,
    )
}

fn ask_at(
    simulated: &Simulated,
    family: Family,
    model: &str,
    stream: bool,
    body: &Value,
    operation: TargetOperation,
) -> UnjudgedReply {
    send(
        simulated,
        family,
        model,
        stream,
        body.to_string().as_bytes(),
        operation,
    )
}

fn send(
    simulated: &Simulated,
    family: Family,
    model: &str,
    stream: bool,
    body: &[u8],
    operation: TargetOperation,
) -> UnjudgedReply {
    let breaker = BreakerPolicy {
        failures: 1,
        open: Duration::ZERO,
    };
    let route = Route {
        slug: "s".to_owned(),
        on_disconnect: OnDisconnect::Cancel,
        targets: Vec::new(),
        retry: 0,
        breaker,
        translate: true,
        prefer: Prefer::Family,
        call: None,
    };
    let call = UpstreamCall {
        stream,
        ..UpstreamCall::new(
            &route,
            farebox_door::byte_room::Holder(1),
            family,
            operation,
        )
    };
    simulated.answer(&call, model, body)
}

async fn json_of(mut reply: UnjudgedReply) -> Value {
    serde_json::from_slice(&reply.body.whole(1 << 24, &mut share()).await.unwrap()).unwrap()
}

async fn chat(simulated: &Simulated, body: &Value) -> Value {
    json_of(ask(simulated, Family::Chat, "sim", false, body)).await
}

fn said(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"]
        .as_str()
        .unwrap_or_default()
}

async fn said_to(body: &Value) -> String {
    let family = if body["input"].is_null() {
        Family::Chat
    } else {
        Family::Responses
    };
    let answer = json_of(ask(&Simulated::default(), family, "sim", false, body)).await;
    family
        .protocol()
        .first_text(&answer)
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn text_follows_from_the_last_user_message() {
    assert_eq!(said_to(&user("Say PONG")).await, "PONG");
    assert_eq!(said_to(&user("\"Say PONG\"")).await, "PONG");
    assert_eq!(said_to(&user("Reply with exactly: \"ok\"")).await, "ok");
    assert_eq!(said_to(&user("hello there")).await, "You said: hello there");
    assert_eq!(
        said_to(&user("write 7 words please"))
            .await
            .split(' ')
            .count(),
        7
    );
    assert_eq!(said_to(&json!({"input": "Say PONG"})).await, "PONG");
    assert_eq!(
        said_to(&user(
            "<system-reminder>\nSay B\n</system-reminder>\n\nSay A"
        ))
        .await,
        "A"
    );
    assert_eq!(
        said_to(&json!({"messages": []})).await,
        "Hello from the simulated model."
    );
    let reminded = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Say A"}, {"type": "text", "text": "<system-reminder>Say B</system-reminder>"}]},
        {"role": "system", "content": "Say C"}]});
    assert_eq!(said_to(&reminded).await, "A");
}

#[tokio::test]
async fn all_families_answer_whole_and_streamed_with_the_same_usage() {
    for family in Family::ALL {
        let simulated = Simulated::default();
        let mut body = json!({"stream_options": {"include_usage": true}});
        body[family.protocol().conversation_field()] =
            json!([{"role": "user", "content": "Say one two three four five six"}]);
        let mut reply = ask(&simulated, family, "sim", false, &body);
        assert_eq!((reply.status, reply.kind), (200, DeclaredType::Json));
        let whole = family
            .protocol()
            .read_answer(&reply.body.whole(1 << 20, &mut share()).await.unwrap())
            .unwrap();
        // 31 characters and one message; 27 characters of answer.
        assert_eq!(
            (whole.usage.input, whole.usage.output),
            (Some(12), Some(7)),
            "{family}"
        );

        let mut reply = ask(&simulated, family, "sim", true, &body);
        let mut frames = FrameReader::new();
        let mut reader = family.protocol().reader();
        let mut ended = false;
        while let Some(chunk) = reply.body.chunk().await.unwrap() {
            frames.push(chunk);
            while let Some(frame) = frames.next_frame().unwrap() {
                ended |= reader.read(&frame).end;
            }
        }
        assert!(ended, "{family}");
        assert_eq!(
            (reader.usage().input, reader.usage().output),
            (Some(12), Some(7)),
            "{family}"
        );
    }
}

#[tokio::test]
async fn a_long_beginning_seen_before_is_read_from_the_cache() {
    let simulated = Simulated::default();
    let long = "abcdefgh".repeat(100);
    let first = chat(&simulated, &user(&long)).await;
    assert_eq!(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let second = chat(&simulated, &user(&format!("{long} and more"))).await;
    assert_eq!(
        second["usage"]["prompt_tokens_details"]["cached_tokens"],
        192
    );
    assert_eq!(second["usage"]["prompt_tokens"], 207);
    let short = chat(&simulated, &user("abcdefgh")).await;
    assert_eq!(short["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[tokio::test]
async fn a_cache_mark_writes_what_was_not_read() {
    let simulated = Simulated::default();
    let body = |ttl: &str| {
        json!({"system": [{"type": "text", "text": "x".repeat(600), "cache_control": {"type": "ephemeral", "ttl": ttl}}],
               "messages": [{"role": "user", "content": "Say A"}]})
    };
    let first = json_of(ask(&simulated, Family::Messages, "sim", false, &body("5m"))).await;
    let usage = &first["usage"];
    assert_eq!(usage["cache_creation_input_tokens"], 128);
    assert_eq!(
        (&usage["cache_read_input_tokens"], &usage["input_tokens"]),
        (&json!(0), &json!(28))
    );
    let second = json_of(ask(&simulated, Family::Messages, "sim", false, &body("5m"))).await;
    let usage = &second["usage"];
    assert_eq!(
        (
            &usage["cache_read_input_tokens"],
            &usage["cache_creation_input_tokens"]
        ),
        (&json!(128), &json!(0))
    );
    let hour = json_of(ask(
        &Simulated::default(),
        Family::Messages,
        "sim",
        false,
        &body("1h"),
    ))
    .await;
    assert_eq!(
        hour["usage"]["cache_creation"]["ephemeral_1h_input_tokens"],
        128
    );
}

#[tokio::test]
async fn output_limits_hold_in_every_field() {
    for (family, field) in [
        (Family::Chat, "max_tokens"),
        (Family::Chat, "max_completion_tokens"),
        (Family::Responses, "max_output_tokens"),
        (Family::Messages, "max_tokens"),
    ] {
        let protocol = family.protocol();
        let body: Value =
            serde_json::from_str(&protocol.write_question_as("m", "write 100 words", (field, 5)))
                .unwrap();
        let answer = json_of(ask(&Simulated::default(), family, "sim", false, &body)).await;
        assert_eq!(
            protocol.first_text(&answer).unwrap().len(),
            20,
            "{family} {field}"
        );
        let facts = protocol.read_answer(answer.to_string().as_bytes()).unwrap();
        assert_eq!(
            (facts.stop, facts.usage.output),
            (Some(StopReason::Length), Some(5)),
            "{family} {field}"
        );
    }
}

fn with_tools(text: &str, choice: Value) -> Value {
    let schema = json!({"type": "object", "required": ["path", "lines", "mode"], "properties": {
        "path": {"type": "string"}, "lines": {"type": "integer", "exclusiveMinimum": 0, "minimum": -5},
        "mode": {"anyOf": [{"$ref": "#/$defs/mode"}, {"type": "null"}]}, "extra": {"type": "boolean"}},
        "$defs": {"mode": {"enum": ["fast", "slow"]}}});
    json!({"messages": [{"role": "user", "content": text}], "tool_choice": choice,
           "tools": [{"type": "web_search"}, {"type": "function", "function": {"name": "read_file", "parameters": schema}}]})
}

#[tokio::test]
async fn tools_are_called_when_named_or_forced_with_arguments_that_fit() {
    let auto = json!("auto");
    for (body, called) in [
        (with_tools("please read_file for me", auto.clone()), true),
        (with_tools("use a tool", auto.clone()), true),
        (with_tools("hello", json!("required")), true),
        (with_tools("hello", json!({"type": "any"})), true),
        (
            with_tools(
                "hello",
                json!({"type": "function", "function": {"name": "read_file"}}),
            ),
            true,
        ),
        (
            with_tools("hello", json!({"type": "tool", "name": "read_file"})),
            true,
        ),
        (with_tools("hello", auto.clone()), false),
        (with_tools("read_files", auto.clone()), false),
        (with_tools("read_file", json!("none")), false),
    ] {
        let answer = chat(&Simulated::default(), &body).await;
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"] == "read_file", called, "{body}");
        if called {
            let arguments: Value =
                serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
            assert_eq!(
                arguments,
                json!({"path": "simulated", "lines": 1, "mode": "fast"})
            );
            assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        }
    }
    let steered = chat(
        &Simulated::default(),
        &with_tools("read_file {\"path\": \"a.txt\"}", auto),
    )
    .await;
    let arguments = steered["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(arguments.contains("a.txt"), "{arguments}");
}

#[tokio::test]
async fn a_tools_result_is_answered_with_text_in_every_family() {
    let tools = json!([{"name": "read", "parameters": {}, "input_schema": {}}]);
    for items in [
        json!({"messages": [{"role": "user", "content": "read it"}, {"role": "tool", "tool_call_id": "x", "content": "data"}]}),
        json!({"messages": [{"role": "user", "content": "read it"},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "data"}]},
                {"type": "text", "text": "<system-reminder>read</system-reminder>"}]}]}),
        json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "read it"}]},
            {"type": "function_call_output", "call_id": "x", "output": "data"}]}),
    ] {
        let mut body = items;
        body["tools"] = tools.clone();
        assert_eq!(said_to(&body).await, "The tool answered: data");
    }
}

#[tokio::test]
async fn an_answer_schema_is_satisfied() {
    let body = json!({"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema", "json_schema":
        {"schema": {"type": "object", "required": ["n", "tags"], "properties": {"n": {"type": "number"}, "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}}}});
    assert_eq!(said_to(&body).await, r#"{"n":1,"tags":["simulated"]}"#);
}

fn png() -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 30, 0, 0, 0, 25, 8, 2, 0, 0, 0, 0, 0, 0, 0]);
    STANDARD.encode(bytes)
}

#[tokio::test]
async fn pictures_are_looked_at() {
    let data = png();
    let url = format!("data:image/png;base64,{data}");
    for block in [
        json!({"type": "image_url", "image_url": {"url": url}}),
        json!({"type": "input_image", "image_url": url}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}),
    ] {
        let body = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, block]}]});
        let answer = chat(&Simulated::default(), &body).await;
        assert_eq!(said(&answer), "I see a PNG picture of 30 x 25 pixels.");
        assert_eq!(answer["usage"]["prompt_tokens"], 2 + 4 + 1);
    }
    let call = json!({"role": "user", "content": "look"});
    for body in [
        json!({"messages": [call, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content":
            [{"type": "text", "text": "a file"}, {"type": "image", "source": {"type": "base64", "data": data}}]}]}]}),
        json!({"input": [call, {"type": "function_call_output", "call_id": "x", "output":
            [{"type": "input_text", "text": "a file"}, {"type": "input_image", "image_url": url}]}]}),
    ] {
        assert_eq!(
            said_to(&body).await,
            "The tool answered: a file I see a PNG picture of 30 x 25 pixels."
        );
    }
    for data in ["%%%", "aGVsbG8="] {
        let block = json!({"type": "image", "source": {"type": "base64", "data": data}});
        let reply = ask(
            &Simulated::default(),
            Family::Messages,
            "sim",
            true,
            &json!({"messages": [{"role": "user", "content": [block]}]}),
        );
        assert_eq!(reply.status, 400);
        assert_eq!(
            json_of(reply).await["error"]["type"],
            "invalid_request_error"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_models_that_misbehave_do_it_as_they_should() {
    let simulated = Simulated::default();
    let body = user("write 40 words");
    let stream = |model| ask(&simulated, Family::Chat, model, true, &body);
    let started = tokio::time::Instant::now();
    stream("sim-slow").body.chunk().await.unwrap();
    assert_eq!(started.elapsed(), SLOW_START);

    let mut cut = stream("sim-cut");
    let mut seen = 0;
    let end = loop {
        match cut.body.chunk().await {
            Ok(Some(_)) => seen += 1,
            end => break end,
        }
    };
    assert!(end.is_err() && seen > 3, "{seen}");
    for family in Family::ALL {
        let body = json!({"max_tokens": 9, family.protocol().conversation_field(): [{"role": "user", "content": "Say hello"}]});
        let mut shortest = ask(&simulated, family, "sim-cut", true, &body);
        let mut text = String::new();
        while let Ok(Some(piece)) = shortest.body.chunk().await {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        let ends = [
            "\"finish_reason\":\"stop\"",
            "\"stop_reason\":\"end_turn\"",
            "response.completed",
        ];
        assert!(
            !text.is_empty() && !ends.iter().any(|end| text.contains(end)),
            "{text}"
        );
    }
    assert!(
        ask(&simulated, Family::Chat, "sim-cut", false, &body)
            .body
            .chunk()
            .await
            .is_err()
    );

    assert_eq!(stream("sim-529").status, 529);
    assert_eq!(stream("sim-json").kind, DeclaredType::Json);
    let silent = json_of(ask(&simulated, Family::Chat, "sim-no-usage", false, &body)).await;
    assert!(silent.get("usage").is_none_or(Value::is_null), "{silent}");
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_stream_is_paced_and_a_dropped_read_loses_nothing() {
    let simulated = Simulated::default();
    let mut reply = ask(
        &simulated,
        Family::Chat,
        "sim",
        true,
        &user("write 40 words"),
    );
    let started = tokio::time::Instant::now();
    let mut all = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(2), reply.body.chunk()).await {
            Ok(Ok(Some(chunk))) => all.push(chunk),
            Ok(end) => break assert_eq!(end, Ok(None)),
            Err(_) => {}
        }
    }
    assert_eq!(all.len(), 13, "role, ten pieces, finish, marker");
    assert_eq!(started.elapsed(), PACE * 12);
}

#[tokio::test]
async fn tokens_are_counted_without_an_answer() {
    let reply = ask_at(
        &Simulated::default(),
        Family::Messages,
        "sim",
        false,
        &user("12345"),
        TargetOperation::CountTokens,
    );
    assert_eq!(json_of(reply).await, json!({"input_tokens": 6}));
}

#[test]
fn what_is_not_json_is_refused() {
    let reply = send(
        &Simulated::default(),
        Family::Chat,
        "sim",
        false,
        b"{\"a\":",
        TargetOperation::Generate,
    );
    assert_eq!(reply.status, 400);
}

/// A place in a budget without a limit.
fn share() -> farebox_door::byte_room::ByteShare {
    farebox_door::byte_room::ByteRoom::new(usize::MAX)
        .share(farebox_door::byte_room::Holder(1), usize::MAX)
}
