//! Callers of one family on targets of another: requests, answers, endings, money and the reported losses, in every translated
//! direction, whole and streamed.

use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::load::before_pieces;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, DIRECTIONS, Gateway, ask, catalog, path, routes_speaking};

pub(super) const USAGE: ReportedUsage = ReportedUsage {
    input: 100,
    cache_read: 20,
    cache_write: 30,
    cache_write_1h: 0,
    cache_write_12h: 0,
    output: 50,
    reasoning: 0,
};

/// $3 in, $15 out, $0.30 read, $3.75 written.
pub(super) const CHARGE: i64 = 100 * 3_000_000 + 20 * 300_000 + 30 * 3_750_000 + 50 * 15_000_000;

pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg==";

/// A gateway whose only upstream speaks this family alone.
pub(super) async fn before(upstream: &ScriptedUpstream, speaks: Family, more: &str) -> Gateway {
    let only = routes_speaking(&upstream.base_url(), speaks);
    let only = only.replacen(
        "upstream-model-1\" }",
        &format!("upstream-model-1\"{more} }}"),
        1,
    );
    Gateway::start(&catalog(speaks), &only).await
}

pub(super) fn speech(family: Family, stream: bool) -> Reply {
    let speech = Speech::new(family, "one two three").usage(USAGE);
    if stream {
        speech.stream()
    } else {
        speech.whole()
    }
}

/// An upstream that says three words in the family it is asked in.
pub(super) fn answering(family: Family) -> Script {
    Script::by(move |seen: &Seen, _| speech(family, seen.json()["stream"] == true))
}

/// The data of a stream's frames.
pub(super) fn frames(text: &str) -> Vec<Value> {
    let data = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}")))
        .collect()
}

/// The text a customer of this family reads.
pub(super) fn read(family: Family, stream: bool, answer: &Answer) -> String {
    if !stream {
        let answer = answer.json();
        let text = match family {
            // The first item may be reasoning, and the text the simulated provider's reader knows is the last.
            Family::Responses => {
                answer["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].as_str()
            }
            _ => family.protocol().first_text(&answer),
        };
        return text.unwrap_or_default().to_owned();
    }
    let delta = |frame: &Value| {
        let text = match family {
            Family::Chat => &frame["choices"][0]["delta"]["content"],
            Family::Messages => &frame["delta"]["text"],
            Family::Responses if frame["type"] == "response.output_text.delta" => &frame["delta"],
            Family::Responses => &Value::Null,
        };
        text.as_str().unwrap_or_default().to_owned()
    };
    frames(&answer.text).iter().map(delta).collect()
}

/// The counts that a customer sees: all input, cache reads, output.
pub(super) fn counts(family: Family, stream: bool, answer: &Answer) -> [u64; 3] {
    let all = if stream {
        frames(&answer.text)
    } else {
        vec![answer.json()]
    };
    let usage = match family {
        Family::Responses if stream => all.last().unwrap()["response"]["usage"].clone(),
        _ => all
            .iter()
            .rev()
            .find(|frame| frame["usage"].is_object())
            .unwrap()["usage"]
            .clone(),
    };
    let count = |pointer: &str| {
        usage
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer} in {usage}"))
    };
    match family {
        Family::Chat => [
            count("/prompt_tokens"),
            count("/prompt_tokens_details/cached_tokens"),
            count("/completion_tokens"),
        ],
        Family::Responses => [
            count("/input_tokens"),
            count("/input_tokens_details/cached_tokens"),
            count("/output_tokens"),
        ],
        Family::Messages => {
            let (read, written) = (
                count("/cache_read_input_tokens"),
                count("/cache_creation_input_tokens"),
            );
            [
                count("/input_tokens") + read + written,
                read,
                count("/output_tokens"),
            ]
        }
    }
}

/// Whether a stream ended as this family's streams do when nothing went wrong.
pub(super) fn ended_cleanly(family: Family, text: &str) -> bool {
    match family {
        Family::Chat => text.contains("data: [DONE]"),
        Family::Responses => {
            text.contains("event: response.completed")
                || text.contains("event: response.incomplete")
        }
        Family::Messages => text.contains("event: message_stop"),
    }
}

#[tokio::test]
async fn an_answer_of_another_family_is_read_counted_and_charged_to_the_picodollar() {
    for (caller, target) in DIRECTIONS {
        let upstream = ScriptedUpstream::start(answering(target)).await;
        let gateway = before(&upstream, target, "").await;
        for stream in [false, true] {
            let place = format!("{caller} on {target}, stream {stream}");
            let key = gateway.key("5.00").await;
            let mut body = ask(caller, "test-model", stream);
            if caller == Family::Chat && stream {
                body["stream_options"] = json!({"include_usage": true});
            }
            let answer = gateway.post(path(caller), &key, &body).await;
            assert_eq!(answer.status, 200, "{place}: {}", answer.text);
            assert_eq!(
                read(caller, stream, &answer),
                "one two three",
                "{place}: {}",
                answer.text
            );
            assert_eq!(
                counts(caller, stream, &answer),
                [150, 20, 50],
                "{place}: {}",
                answer.text
            );
            assert!(
                !stream || ended_cleanly(caller, &answer.text),
                "{place}: {}",
                answer.text
            );
            assert!(
                !answer.text.contains("upstream-model") && !answer.text.contains("up-1"),
                "{place}: {}",
                answer.text
            );
            let charges = gateway.charges(&key).await;
            assert_eq!(
                (charges.len(), -charges[0].amount.picos()),
                (1, CHARGE),
                "{place}"
            );
            let bill = charges[0].bill.as_ref().unwrap();
            assert_eq!(
                (bill.family.as_str(), bill.end_reason.as_str()),
                (caller.name(), "stop"),
                "{place}"
            );
            let id = bill.answer_id.clone().unwrap();
            assert!(
                answer.text.contains(&format!("\"{id}\"")),
                "{place}: a receipt is found by the id {id}"
            );
        }
        for seen in upstream.requests() {
            assert!(seen.path.ends_with(target.protocol().path), "{}", seen.path);
            let (limit, turns) = match target {
                Family::Chat => ("max_completion_tokens", "messages"),
                Family::Responses => ("max_output_tokens", "input"),
                Family::Messages => ("max_tokens", "messages"),
            };
            let sent = seen.json();
            assert_eq!(
                (&sent["model"], &sent[limit]),
                (&json!("upstream-model-1"), &json!(100)),
                "{caller} on {target}: {sent}"
            );
            assert_eq!(sent[turns].as_array().unwrap().len(), 1, "{sent}");
            assert!(
                target != Family::Responses || sent["store"] == false,
                "{sent}"
            );
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_of_the_callers_family_and_never_cleanly() {
    for (caller, target) in DIRECTIONS {
        let error = match target {
            Family::Messages => {
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n"
            }
            Family::Chat => "data: {\"error\":{\"type\":\"server_error\",\"message\":\"no\"}}\n\n",
            Family::Responses => {
                "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\
                 \"error\":{\"code\":\"server_error\",\"message\":\"no\"}}}\n\n"
            }
        };
        // Behind the first words: before them, another target would be asked.
        let shown = before_pieces(target) + 2;
        for broken in [
            speech(target, true).reset_after(shown),
            speech(target, true).end_after(shown),
            speech(target, true).then(shown, error),
        ] {
            let upstream = ScriptedUpstream::start(broken).await;
            let gateway = before(&upstream, target, "").await;
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(caller), &key, &ask(caller, "test-model", true))
                .await;
            assert_eq!(answer.status, 200, "{caller} on {target}");
            assert!(
                !ended_cleanly(caller, &answer.text),
                "{caller} on {target}: {}",
                answer.text
            );
            let last = frames(&answer.text).pop().unwrap();
            let told = match caller {
                Family::Chat | Family::Messages => last["error"]["message"].clone(),
                Family::Responses => last
                    .pointer("/response/error/message")
                    .cloned()
                    .unwrap_or_default(),
            };
            assert!(
                told.as_str().is_some_and(|told| told.contains("broke")),
                "{caller} on {target}: {last}"
            );
            gateway.settled().await;
            assert_eq!(
                gateway.charges(&key).await[0]
                    .bill
                    .as_ref()
                    .unwrap()
                    .end_reason,
                "upstream_broken".into()
            );
            gateway.stop().await;
        }
    }
}

/// A call of `look` with `{"at":"x"}`, streamed in pieces.
pub(super) fn call(target: Family) -> Reply {
    let chunk = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!(
            "data: {}\n\n",
            json!({"id": "up", "object": "chat.completion.chunk", "created": 1, "model": "u", "choices": choices})
        )
    };
    let arguments =
        |text: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]});
    let event = |data: Value| {
        format!(
            "event: {}\ndata: {data}\n\n",
            data["type"].as_str().unwrap()
        )
    };
    let input = |text: &str| {
        event(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}),
        )
    };
    Reply::events(match target {
        Family::Chat => vec![
            chunk(
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}]}),
                Value::Null,
            ),
            chunk(arguments("{\"at\":"), Value::Null),
            chunk(arguments("\"x\"}"), Value::Null),
            // Some servers end a call with `stop`.
            chunk(json!({}), json!("stop")),
            "data: {\"id\":\"up\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\n"
                .to_owned(),
            "data: [DONE]\n\n".to_owned(),
        ],
        Family::Responses => {
            // Ids change on the way, the arguments' end stands in `done` alone, and the last event repeats nothing.
            let item = |id: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": "call_1", "name": "look", "arguments": arguments});
            let usage = json!({"input_tokens": 9, "output_tokens": 4, "total_tokens": 13});
            vec![
                event(json!({"type": "response.created", "response": {"id": "up", "status": "in_progress", "output": []}})),
                event(json!({"type": "response.output_item.added", "output_index": 0, "item": item("a", "")})),
                event(
                    json!({"type": "response.function_call_arguments.delta", "item_id": "b", "output_index": 0, "delta": "{\"at\":"}),
                ),
                event(
                    json!({"type": "response.function_call_arguments.done", "item_id": "c", "output_index": 0, "arguments": "{\"at\":\"x\"}"}),
                ),
                event(json!({"type": "response.output_item.done", "output_index": 0, "item": item("d", "{\"at\":\"x\"}")})),
                event(
                    json!({"type": "response.completed", "response": {"id": "up", "status": "completed", "output": [], "usage": usage}}),
                ),
            ]
        }
        Family::Messages => vec![
            event(json!({"type": "message_start", "message": {"id": "msg_up", "type": "message", "role": "assistant",
                "model": "u", "content": [], "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}}})),
            event(json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}})),
            input("{\"at\":"),
            input("\"x\"}"),
            event(json!({"type": "content_block_stop", "index": 0})),
            event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}})),
            event(json!({"type": "message_stop"})),
        ],
    })
}

/// A request that offers `look` and carries a picture.
pub(super) fn with_tool(caller: Family) -> Value {
    let mut body = ask(caller, "test-model", true);
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let url = format!("data:image/png;base64,{PNG}");
    let (tool, picture, turns) = match caller {
        Family::Chat => (
            json!({"type": "function", "function": {"name": "look", "parameters": schema}}),
            json!({"type": "image_url", "image_url": {"url": url}}),
            "messages",
        ),
        Family::Responses => (
            json!({"type": "function", "name": "look", "parameters": schema, "strict": false}),
            json!({"type": "input_image", "image_url": url}),
            "input",
        ),
        Family::Messages => (
            json!({"name": "look", "input_schema": schema}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
            "messages",
        ),
    };
    body["tools"] = json!([tool]);
    body[turns][0]["content"] = json!([picture]);
    body
}

#[tokio::test]
async fn tools_and_pictures_go_out_and_calls_come_back() {
    for (caller, target) in DIRECTIONS {
        let upstream = ScriptedUpstream::start(call(target)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("5.00").await;
        let answer = gateway.post(path(caller), &key, &with_tool(caller)).await;
        assert_eq!(answer.status, 200, "{caller} on {target}: {}", answer.text);
        let all = frames(&answer.text);
        let joined = |pointer: &str| {
            all.iter()
                .filter_map(|frame| frame.pointer(pointer)?.as_str())
                .collect::<String>()
        };
        let (arguments, end) = match caller {
            Family::Chat => (
                joined("/choices/0/delta/tool_calls/0/function/arguments"),
                "\"finish_reason\":\"tool_calls\"",
            ),
            Family::Messages => (
                joined("/delta/partial_json"),
                "\"stop_reason\":\"tool_use\"",
            ),
            Family::Responses => (joined("/delta"), "response.completed"),
        };
        assert_eq!(
            arguments, "{\"at\":\"x\"}",
            "{caller} on {target}: {}",
            answer.text
        );
        assert!(
            answer.text.contains(end) && answer.text.contains("look"),
            "{caller} on {target}: {}",
            answer.text
        );
        assert_eq!(
            -gateway.charges(&key).await[0].amount.picos(),
            9 * 3_000_000 + 4 * 15_000_000,
            "{caller} on {target}"
        );
        let sent = upstream.requests()[0].json();
        let name = if target == Family::Chat {
            "/tools/0/function/name"
        } else {
            "/tools/0/name"
        };
        assert_eq!(sent.pointer(name), Some(&json!("look")), "{sent}");
        let turns = if target == Family::Responses {
            &sent["input"]
        } else {
            &sent["messages"]
        };
        assert!(turns.to_string().contains(PNG), "{sent}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn the_balance_ends_a_translated_stream_as_the_callers_family_ends_at_a_limit() {
    for (caller, target) in DIRECTIONS {
        let stop = match target {
            Family::Chat => "length",
            Family::Responses => "incomplete",
            Family::Messages => "max_tokens",
        };
        let limited = Speech::new(target, &"word ".repeat(500)).stop(stop);
        let upstream = ScriptedUpstream::start(limited.stream()).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("0.05").await;
        let mut body = ask(caller, "test-model", true);
        for limit in ["max_tokens", "max_output_tokens"] {
            if body.get(limit).is_some() {
                body[limit] = json!(60_000);
            }
        }
        let answer = gateway.post(path(caller), &key, &body).await;
        let end = match caller {
            Family::Chat => "\"finish_reason\":\"length\"",
            Family::Responses => "event: response.incomplete",
            Family::Messages => "\"stop_reason\":\"max_tokens\"",
        };
        let tail: String = answer
            .text
            .chars()
            .rev()
            .take(600)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        let words = answer.text.find("(out of balance: ");
        assert!(
            words.is_some() && words < answer.text.rfind(end),
            "{caller} on {target}: …{tail}"
        );
        gateway.settled().await;
        let charge = &gateway.charges(&key).await[0];
        assert_eq!(
            charge.bill.as_ref().unwrap().end_reason,
            "length".into(),
            "{caller} on {target}"
        );
        let account = gateway.account(&key).await.customer.account;
        assert!(account.spent <= account.credit, "{account:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_key_without_money_is_refused_in_its_family_and_nothing_is_sent() {
    for (caller, target) in DIRECTIONS {
        let upstream = ScriptedUpstream::start(answering(target)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("0").await;
        let answer = gateway
            .post(path(caller), &key, &ask(caller, "test-model", true))
            .await;
        assert_eq!(answer.status, 429, "{caller} on {target}: {}", answer.text);
        assert!(upstream.requests().is_empty());
        gateway.stop().await;
    }
}

#[tokio::test]
async fn losses_are_told_and_what_would_change_the_answer_is_refused() {
    let upstream = ScriptedUpstream::start(answering(Family::Messages)).await;
    let gateway = before(&upstream, Family::Messages, "").await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Chat, "test-model", true);
    (body["seed"], body["temperature"]) = (json!(7), json!(1.7));
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(
        answer.header("x-farebox-lost"),
        Some("seed=dropped, temperature=clamped"),
        "{}",
        answer.text
    );
    gateway.settled().await;
    assert_eq!(
        gateway.records.all()[0].lost,
        "seed=dropped, temperature=clamped"
    );
    let receipt = gateway
        .get(
            &format!(
                "/v1/generation?id={}",
                answer.header("x-request-id").unwrap()
            ),
            &key,
        )
        .await
        .json();
    assert_eq!(
        (&receipt["data"]["lost"], &receipt["data"]["removed"]),
        (&json!("seed=dropped, temperature=clamped"), &Value::Null),
        "{receipt}"
    );

    body["n"] = json!(3);
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["code"], &error["param"]),
        (400, &json!("unsupported_by_model"), &json!("n")),
        "{error}"
    );
    assert_eq!(
        (upstream.requests().len(), gateway.charges(&key).await.len()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_field_that_nobody_knows_is_taken_out_and_named_on_a_translated_slug_too() {
    for caller in [Family::Responses, Family::Messages] {
        let target = Family::Chat;
        let upstream = ScriptedUpstream::start(answering(target)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("5.00").await;
        for stream in [false, true] {
            let mut body = ask(caller, "test-model", stream);
            body["brand_new"] = json!({"a": 1});
            let answer = gateway.post(path(caller), &key, &body).await;
            assert_eq!(
                (answer.status, answer.header("x-farebox-removed")),
                (200, Some("brand_new")),
                "{caller}: {}",
                answer.text
            );
            let sent = upstream.requests().last().unwrap().json();
            assert_eq!(sent.get("brand_new"), None, "{sent}");
        }
        gateway.stop().await;
    }
}
