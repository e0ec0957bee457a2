//! How answers end: stop reasons, errors, cuts.

use farebox_protocol::translate::{Memo, Translator};
use farebox_protocol::{Family, UsageReading, UsageWish, WireUsage};
use serde_json::{Value, json};

use super::help::*;

/// Each direction of answers: the upstream's family, the caller's.
const DIRECTIONS: [(Family, Family); 6] = [
    (Chat, Messages),
    (Chat, Responses),
    (Messages, Chat),
    (Messages, Responses),
    (Responses, Chat),
    (Responses, Messages),
];

fn upstream(family: Family) -> Vec<String> {
    match family {
        Chat => chat(&[json!({"content": "a"})], "stop"),
        Messages => native(&[text_block("a")], "end_turn"),
        Responses => data_of(&relay(
            Messages,
            Responses,
            Memo::default(),
            &upstream(Messages),
        )),
    }
}

/// Nothing in it looks like a clean end, and the last event is the error.
fn assert_broken(stream: &str, caller: Family) {
    for end in [
        "message_stop",
        "stop_reason\":\"",
        "[DONE]",
        "finish_reason\":\"",
        "response.completed",
        "response.incomplete",
    ] {
        assert!(!stream.contains(end), "{end} in {stream}");
    }
    let last = events(stream).pop().expect("an event");
    let error = if caller == Responses {
        &last["response"]["error"]
    } else {
        &last["error"]
    };
    assert_eq!(error["message"], "the stream broke", "{stream}");
}

#[test]
fn b01_b83_b84_b85_an_error_or_eof_midway_is_the_familys_error() {
    for (from, caller) in DIRECTIONS {
        let all = upstream(from);
        let error =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
                .to_string();
        for cut in 0..all.len() {
            let mut data = all[..cut].to_vec();
            // Chat is complete with its finish reason, messages with its stop reason.
            let done = from == Chat && cut > 1 || from == Messages && cut + 1 >= all.len();
            if !done {
                assert_broken(&relay(from, caller, Memo::default(), &data), caller);
                data.push(error.clone());
                data.extend_from_slice(&all[cut..]);
                assert_broken(&relay(from, caller, Memo::default(), &data), caller);
            }
        }
    }
}

#[test]
fn b86_an_error_beside_empty_choices_is_an_error() {
    let data = [json!({"choices": [], "error": {"message": "no", "code": 500}}).to_string()];
    for caller in [Messages, Responses] {
        assert_broken(&relay(Chat, caller, Memo::default(), &data), caller);
    }
}

#[test]
fn b06_b80_b81_stop_reasons_follow_what_was_delivered() {
    let reason = |stream: &str| last_of(stream, "/delta/stop_reason");
    let calls = [tool_call(0, "c1", "f", "{}")];
    assert_eq!(
        reason(&relay(
            Chat,
            Messages,
            Memo::default(),
            &chat(&calls, "stop")
        )),
        "tool_use"
    );
    assert_eq!(
        reason(&relay(
            Chat,
            Messages,
            Memo::default(),
            &chat(&[json!({"content": "a"})], "tool_calls")
        )),
        "end_turn"
    );
    assert_eq!(
        reason(&relay(
            Chat,
            Messages,
            Memo::default(),
            &chat(&[json!({"content": "a"})], "content_filter")
        )),
        "refusal"
    );
    assert_eq!(
        reason(&relay(
            Chat,
            Messages,
            Memo::default(),
            &chat(&[json!({"refusal": "no"})], "stop")
        )),
        "refusal"
    );
    let stream = relay(
        Messages,
        Chat,
        Memo::default(),
        &native(&[text_block("a")], "tool_use"),
    );
    assert_eq!(last_of(&stream, "/choices/0/finish_reason"), "stop");
    for (stop, word) in [
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
        ("pause_turn", "stop"),
        ("new", "stop"),
    ] {
        let stream = relay(
            Messages,
            Chat,
            Memo::default(),
            &native(&[text_block("a")], stop),
        );
        assert_eq!(last_of(&stream, "/choices/0/finish_reason"), word);
    }
    let stream = relay(
        Messages,
        Responses,
        Memo::default(),
        &native(&[text_block("a")], "max_tokens"),
    );
    assert_eq!(
        last_of(&stream, "/response/incomplete_details/reason"),
        "max_output_tokens"
    );
}

#[test]
fn b87_an_error_after_the_start_needs_no_counts() {
    let data = &upstream(Chat)[..1];
    let stream = relay(Chat, Messages, Memo::default(), data);
    assert_eq!(
        events(&stream)[0]["message"]["usage"]["output_tokens"],
        0,
        "counts are there from the start"
    );
    assert_broken(&stream, Messages);
}

#[test]
fn b91_more_cached_than_sent_is_absurd() {
    let wire = WireUsage {
        input: Some(10),
        cache_read: Some(20),
        output: Some(1),
        input_is_total: true,
        ..WireUsage::default()
    };
    assert_eq!(wire.reading(false), UsageReading::Absurd);
}

#[test]
fn a_prompt_that_is_too_long_is_said_in_the_words_clients_act_on() {
    use farebox_protocol::UpstreamError;
    use farebox_protocol::translate::error_for;
    let chat = UpstreamError {
        code: Some("context_length_exceeded".to_owned()),
        message: "This model's maximum context length is 8,192 tokens. However, your messages resulted in 9000 tokens."
            .to_owned(),
        ..UpstreamError::default()
    };
    assert_eq!(
        error_for(Messages, chat).message,
        "prompt is too long: 9000 tokens > 8192 maximum"
    );
    let native = UpstreamError {
        message: "prompt is too long: 9000 tokens > 8192 maximum".to_owned(),
        ..UpstreamError::default()
    };
    for caller in [Chat, Responses] {
        assert_eq!(
            error_for(caller, native.clone()).code.as_deref(),
            Some("context_length_exceeded")
        );
    }
    let other = UpstreamError {
        message: "no".to_owned(),
        ..UpstreamError::default()
    };
    assert_eq!(error_for(Messages, other.clone()), other);
}

#[test]
fn a_second_answer_inside_the_first_is_an_error() {
    let mut data = upstream(Messages);
    data.insert(3, data[0].clone());
    assert_broken(&relay(Messages, Chat, Memo::default(), &data), Chat);
}

#[test]
fn a_cut_closes_what_is_open() {
    for (from, caller) in DIRECTIONS {
        for taken in 0..upstream(from).len() {
            let mut translator = Translator::new(from, caller, Memo::default(), &wish(b"{}"));
            let mut out = Vec::new();
            for data in &upstream(from)[..taken] {
                out.extend_from_slice(translator.frame(&frame(data)));
            }
            out.extend(translator.cut(None, &USAGE, UsageWish::default()));
            let stream = String::from_utf8(out).expect("UTF-8");
            match caller {
                Messages => {
                    blocks(&stream);
                    assert_eq!(last_of(&stream, "/delta/stop_reason"), "max_tokens");
                }
                Chat => assert_eq!(last_of(&stream, "/choices/0/finish_reason"), "length"),
                Responses => {
                    assert_eq!(last_of(&stream, "/response/status"), "incomplete");
                    let added = stream.matches("event: response.output_item.added").count();
                    assert_eq!(
                        added,
                        stream.matches("event: response.output_item.done").count()
                    );
                }
            }
        }
    }
}

#[test]
fn a_call_the_limit_cut_is_shown_in_streams_and_left_out_of_a_whole_answer() {
    use farebox_protocol::translate::{read_answer, write_answer};
    let body = json!({"choices": [{"index": 0, "finish_reason": "length", "message": {"content": "a", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": "}},
    ]}}]});
    let answer = read_answer(Chat, body.to_string().as_bytes());
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
    assert_eq!(
        write(Messages)["content"],
        json!([{"type": "text", "text": "a"}])
    );
    assert_eq!(write(Messages)["stop_reason"], "max_tokens");
    let items = write(Responses);
    assert_eq!(items["output"].as_array().map(Vec::len), Some(1), "{items}");
    assert_eq!(items["status"], "incomplete");
    let message = write(Chat)["choices"][0].clone();
    assert!(message["message"].get("tool_calls").is_none(), "{message}");
    assert_eq!(message["finish_reason"], "length");
    let losses = farebox_protocol::translate::answer_losses(Chat, &answer);
    assert_eq!(losses.header(), "answer.tool_use=cut");
}

#[test]
fn only_the_first_answer_is_taken() {
    let data = [
        json!({"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]}).to_string(),
        json!({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}).to_string(),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}).to_string(),
        "[DONE]".to_owned(),
    ];
    let stream = relay(Chat, Messages, Memo::default(), &data);
    assert_eq!(blocks(&stream), [("text".to_owned(), "a".to_owned())]);
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "max_tokens");
}

#[test]
fn older_and_other_shapes_of_chat_are_read() {
    let data = [
        json!({"choices": [{"index": 0, "message": {"content": "a"}}]}).to_string(),
        json!({"choices": [{"text": "b"}]}).to_string(),
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "c"}]}}]}).to_string(),
        json!({"choices": [{"delta": {"function_call": {"name": "f", "arguments": "{}"}}, "finish_reason": "function_call"}]})
            .to_string(),
        "[DONE]".to_owned(),
    ];
    let stream = relay(Chat, Messages, Memo::default(), &data);
    assert_eq!(
        blocks(&stream),
        [
            ("text".to_owned(), "abc".to_owned()),
            ("tool_use".to_owned(), "{}".to_owned())
        ]
    );
}

#[test]
fn the_numbers_of_a_too_long_prompt_are_named_only_where_the_text_says_which_is_which() {
    use farebox_protocol::UpstreamError;
    use farebox_protocol::translate::error_for;
    let told = |message: &str| {
        let error = UpstreamError {
            code: Some("context_length_exceeded".to_owned()),
            message: message.to_owned(),
            ..UpstreamError::default()
        };
        error_for(Messages, error).message
    };
    let unknown = "prompt is too long: more tokens than the maximum";
    for (message, expected) in [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9212 tokens (212 in the messages, 9000 in the completion).",
            "prompt is too long: 9212 tokens > 8192 maximum",
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 145000 tokens.",
            "prompt is too long: 145000 tokens > 131072 maximum",
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "prompt is too long: 1200000 tokens > 1048576 maximum",
        ),
        (
            "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "prompt is too long: 9000 tokens > 4096 maximum",
        ),
        (
            "A prompt of 212 tokens with max_tokens 9000 exceeds the context window.",
            unknown,
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            unknown,
        ),
        (
            "Your input exceeds the context window of this model.",
            unknown,
        ),
    ] {
        assert_eq!(told(message), expected, "{message}");
    }
}

#[test]
fn a_native_refusal_is_a_refusal_in_the_callers_words() {
    use farebox_protocol::translate::{read_answer, write_answer};
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "Not \"this\"."});
    for (details, words) in [
        (details, "Not \"this\"."),
        (Value::Null, "The model declined to answer this request."),
    ] {
        let mut upstream = native(&[text_block("I")], "refusal");
        let last = upstream.len() - 2;
        upstream[last] = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": null, "stop_details": details}}).to_string();
        let stream = relay(Messages, Responses, Memo::default(), &upstream);
        let message = last_of(&stream, "/response/output/1");
        let part = json!({"type": "refusal", "refusal": words});
        assert_eq!(message["content"], json!([part]), "{stream}");
        assert!(stream.contains("event: response.refusal.done"));
        assert_eq!(last_of(&stream, "/response/status"), "completed");
        let stream = relay(Messages, Chat, Memo::default(), &upstream);
        assert_eq!(last_of(&stream, "/choices/0/delta/refusal"), words);
        assert_eq!(
            last_of(&stream, "/choices/0/finish_reason"),
            "content_filter"
        );

        let whole = json!({"type": "message", "content": [{"type": "text", "text": "I"}], "stop_reason": "refusal", "stop_details": details});
        let answer = read_answer(Messages, whole.to_string().as_bytes());
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
        assert_eq!(write(Chat)["choices"][0]["message"]["refusal"], words);
        assert_eq!(write(Responses)["output"][1]["content"], json!([part]));
    }
}

#[test]
fn a_failed_response_has_a_code_that_its_family_publishes() {
    let failed = |kind: &str, code: Option<&str>| {
        let error = farebox_protocol::ErrorBody {
            kind: kind.to_owned(),
            code: code.map(str::to_owned),
            ..broken()
        };
        let mut translator = Translator::new(Chat, Responses, Memo::default(), &wish(b"{}"));
        let stream = String::from_utf8(translator.fail(&error)).expect("UTF-8");
        let answer = farebox_protocol::PublicAnswer {
            model: "slug",
            id: None,
        };
        let direct = Responses.protocol().writer().error_event(answer, &error);
        let codes = [stream, String::from_utf8(direct).expect("UTF-8")]
            .map(|stream| last_of(&stream, "/response/error/code"));
        assert_eq!(codes[0], codes[1]);
        codes[0].clone()
    };
    for (kind, code, expected) in [
        ("upstream_error", Some("upstream_error"), "server_error"),
        ("api_error", Some("ledger_unavailable"), "server_error"),
        ("invalid_request_error", None, "invalid_prompt"),
        (
            "invalid_request_error",
            Some("string_above_max_length"),
            "invalid_prompt",
        ),
        (
            "invalid_request_error",
            Some("invalid_image"),
            "invalid_image",
        ),
        ("image_parse_error", None, "image_parse_error"),
        (
            "invalid_request_error",
            Some("context_length_exceeded"),
            "context_length_exceeded",
        ),
    ] {
        assert_eq!(failed(kind, code), expected, "{kind} {code:?}");
    }
}
