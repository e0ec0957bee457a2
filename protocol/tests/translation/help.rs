//! Helpers: a request in one family, an answer relayed to another.

use bytes::Bytes;
use farebox_doubles::Vendor;
use farebox_protocol::translate::abilities::{ReasoningEcho, Sampling, ThinkingWay};
use farebox_protocol::translate::neutral::Effort;
use farebox_protocol::translate::{
    Abilities, AnswerWish, EncodeTarget, Memo, Translated, Translator, request,
};
use farebox_protocol::{
    BadRequest, ErrorBody, Family, Frame, FrameReader, ReportedUsage, UsageWish,
};
use serde_json::{Value, json};

pub(crate) use Family::{Chat, Messages, Responses};

/// The pairs that are translated: the caller's family, the target's.
pub(crate) const PAIRS: [(Family, Family); 6] = [
    (Messages, Chat),
    (Responses, Chat),
    (Chat, Messages),
    (Responses, Messages),
    (Messages, Responses),
    (Chat, Responses),
];

/// A target that can do everything.
pub(crate) fn able(family: Family) -> Abilities {
    Abilities {
        sampling: Sampling::Full,
        thinking: if family == Messages {
            ThinkingWay::Adaptive
        } else {
            ThinkingWay::Effort
        },
        strict_tools: true,
        json_schema: true,
        top_k: true,
        vision: true,
        files: true,
        max_output: 32_000,
        efforts: vec![Effort::None, Effort::Low, Effort::Medium, Effort::High],
        ..Abilities::careful(family)
    }
}

/// The translation of a request for a target that has these abilities.
pub(crate) fn translated(
    from: Family,
    to: Family,
    abilities: &Abilities,
    body: &Value,
) -> Result<Translated, BadRequest> {
    request(
        from,
        to,
        body.to_string().as_bytes(),
        &EncodeTarget {
            model: "up",
            abilities,
        },
    )
}

/// The body a target gets, and the header of losses.
pub(crate) fn sent_to(
    from: Family,
    to: Family,
    abilities: &Abilities,
    body: &Value,
) -> (Value, String) {
    let translated = translated(from, to, abilities, body).expect("a translation");
    let seen = to.protocol().inspect(&translated.body, 0);
    assert!(
        seen.is_ok(),
        "{seen:?} of {}",
        String::from_utf8_lossy(&translated.body)
    );
    accepted(to, abilities, &translated.body);
    (
        serde_json::from_slice(&translated.body).expect("JSON"),
        translated.losses.header(),
    )
}

/// The vendor who defined the family accepts this request, or DeepSeek, who wants thinking back.
fn accepted(family: Family, abilities: &Abilities, body: &[u8]) {
    let vendor = match family {
        Messages => Vendor::Anthropic,
        Chat if abilities.reasoning_echo != ReasoningEcho::None => Vendor::DeepSeek,
        // OpenAI has no `top_k`.
        Chat if body.windows(7).any(|word| word == b"\"top_k\"") => Vendor::Vllm,
        _ => Vendor::OpenAi,
    };
    let path = family.protocol().path;
    if farebox_doubles::wire(vendor, path).is_some() {
        let judged = farebox_doubles::judge_body(vendor, path, body);
        assert_eq!(judged, Ok(()), "{}", String::from_utf8_lossy(body));
    }
}

/// The body an able target gets.
pub(crate) fn sent(from: Family, to: Family, body: &Value) -> Value {
    sent_to(from, to, &able(to), body).0
}

/// What is lost on the way to an able target.
pub(crate) fn lost(from: Family, to: Family, body: &Value) -> String {
    sent_to(from, to, &able(to), body).1
}

/// Why an able target cannot be asked.
pub(crate) fn refused(from: Family, to: Family, body: &Value) -> BadRequest {
    translated(from, to, &able(to), body).expect_err("a refusal")
}

/// A request of this family with one user turn, and other members set or added.
pub(crate) fn asking(family: Family, more: &Value) -> Value {
    let mut body = match family {
        Responses => json!({"model": "slug", "input": [{"role": "user", "content": "hi"}]}),
        _ => json!({"model": "slug", "messages": [{"role": "user", "content": "hi"}]}),
    };
    if family == Messages {
        body["max_tokens"] = json!(4_000);
    }
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more.clone());
    }
    body
}

/// A conversation in this family.
pub(crate) fn talking(family: Family, turns: Value) -> Value {
    asking(
        family,
        &json!({(if family == Responses { "input" } else { "messages" }): turns}),
    )
}

pub(crate) const USAGE: ReportedUsage = ReportedUsage {
    input: 25,
    cache_read: 75,
    cache_write: 3,
    cache_write_1h: 2,
    cache_write_12h: 0,
    output: 7,
    reasoning: 4,
};

pub(crate) fn wish(body: &[u8]) -> AnswerWish<'_> {
    AnswerWish {
        model: "slug",
        id: "req1",
        created: 7,
        request: body,
    }
}

/// A frame of one upstream event.
pub(crate) fn frame(data: &str) -> Frame {
    Frame::new(Bytes::from(format!("data: {data}\n\n")))
}

/// Everything a caller gets for these upstream events: all of it up to the end, and the end.
pub(crate) fn relay(upstream: Family, caller: Family, memo: Memo, data: &[String]) -> String {
    let request = asking(caller, &json!({}));
    let request = request.to_string();
    let mut translator = Translator::new(upstream, caller, memo, &wish(request.as_bytes()));
    let mut out = Vec::new();
    for data in data {
        out.extend_from_slice(translator.frame(&frame(data)));
    }
    out.extend_from_slice(translator.end());
    let asked = UsageWish {
        chunk: true,
        cost: None,
    };
    let last = match translator.ended() {
        Some(Ok(_)) => translator.finish(&USAGE, asked),
        _ => translator.fail(&broken()),
    };
    out.extend(last);
    assert!(
        translator.finish(&USAGE, asked).is_empty() && translator.fail(&broken()).is_empty(),
        "one end"
    );
    assert!(
        translator.frame(&frame("{}")).is_empty() && translator.end().is_empty(),
        "nothing behind the end"
    );
    String::from_utf8(out).expect("UTF-8")
}

pub(crate) fn broken() -> ErrorBody {
    ErrorBody {
        kind: "upstream_error".to_owned(),
        code: Some("upstream_error".to_owned()),
        param: None,
        message: "the stream broke".to_owned(),
        details: None,
        request_id: "req_1".to_owned(),
    }
}

/// The frames of a stream.
pub(crate) fn frames(stream: &str) -> Vec<Frame> {
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(stream.as_bytes()));
    let mut out = Vec::new();
    while let Some(frame) = reader.next_frame().expect("small frames") {
        out.push(frame);
    }
    out
}

/// The data of a stream's events; `[DONE]` as a string.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    frames(stream)
        .iter()
        .filter_map(|frame| frame.data().map(|data| data.into_owned()))
        .map(|data| {
            if data == b"[DONE]" {
                json!("[DONE]")
            } else {
                serde_json::from_slice(&data).expect("JSON")
            }
        })
        .collect()
}

/// The chunks of a chat upstream, each with one delta, ending with this finish reason and `[DONE]`.
pub(crate) fn chat(deltas: &[Value], finish: &str) -> Vec<String> {
    let choice = |delta: &Value, finish: Value| json!({"id": "c", "model": "up", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut out: Vec<String> = deltas
        .iter()
        .map(|delta| choice(delta, Value::Null).to_string())
        .collect();
    out.push(choice(&json!({}), json!(finish)).to_string());
    out.push(
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})
            .to_string(),
    );
    out.push("[DONE]".to_owned());
    out
}

/// The events of a messages upstream: blocks, each with its deltas, ending with this stop reason.
pub(crate) fn native(blocks: &[(Value, Vec<Value>)], stop: &str) -> Vec<String> {
    let mut out =
        vec![json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}}).to_string()];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        out.push(
            json!({"type": "content_block_start", "index": index, "content_block": block})
                .to_string(),
        );
        out.extend(deltas.iter().map(|delta| {
            json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
        }));
        out.push(json!({"type": "content_block_stop", "index": index}).to_string());
    }
    out.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}})
            .to_string(),
    );
    out.push(json!({"type": "message_stop"}).to_string());
    out
}

/// A call of a chat upstream in one piece.
pub(crate) fn tool_call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

/// A native text block and its deltas.
pub(crate) fn text_block(text: &str) -> (Value, Vec<Value>) {
    (
        json!({"type": "text", "text": ""}),
        vec![json!({"type": "text_delta", "text": text})],
    )
}

/// A native call and its deltas.
pub(crate) fn call_block(id: &str, name: &str, pieces: &[&str]) -> (Value, Vec<Value>) {
    let deltas = pieces
        .iter()
        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    (
        json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        deltas.collect(),
    )
}

/// The kinds and texts of the blocks that a messages caller got, checked for order: nothing overlaps, each is closed.
pub(crate) fn blocks(stream: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut open = None;
    for event in events(stream) {
        let index = event["index"].as_u64();
        match event["type"].as_str().expect("a type") {
            "content_block_start" => {
                assert_eq!(open, None, "blocks never overlap");
                assert_eq!(index, Some(out.len() as u64), "blocks are numbered");
                open = index;
                out.push((
                    event["content_block"]["type"]
                        .as_str()
                        .expect("a type")
                        .to_owned(),
                    String::new(),
                ));
            }
            "content_block_delta" => {
                assert_eq!(index, open, "a delta belongs to the open block");
                let delta = &event["delta"];
                let text = [&delta["text"], &delta["thinking"], &delta["partial_json"]]
                    .into_iter()
                    .find_map(Value::as_str);
                out.last_mut()
                    .expect("a block")
                    .1
                    .push_str(text.unwrap_or_default());
            }
            "content_block_stop" => {
                assert_eq!(index, open, "the open block ends");
                open = None;
            }
            "message_delta" | "message_stop" => {
                assert_eq!(open, None, "every block ends before the message")
            }
            _ => {}
        }
    }
    out
}

/// The last value at a path among a stream's events.
pub(crate) fn last_of(stream: &str, pointer: &str) -> Value {
    events(stream)
        .iter()
        .filter_map(|event| event.pointer(pointer).cloned())
        .rfind(|value| !value.is_null())
        .unwrap_or_default()
}

/// The events of a stream as an upstream of its family would send them.
pub(crate) fn data_of(stream: &str) -> Vec<String> {
    frames(stream)
        .iter()
        .filter_map(|frame| Some(String::from_utf8(frame.data()?.into_owned()).expect("UTF-8")))
        .collect()
}

/// What a chat target leaves for the answer to a responses client with these tools.
pub(crate) fn memo_of(tools: &Value) -> Memo {
    translated(
        Responses,
        Chat,
        &able(Chat),
        &asking(Responses, &json!({"tools": tools})),
    )
    .expect("a translation")
    .memo
}

/// The finished items of a responses stream.
pub(crate) fn items(stream: &str) -> Vec<Value> {
    events(stream)
        .into_iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect()
}
