//! Single cases of framing and of usage as upstreams report it.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod support;

use bytes::Bytes;
use farebox_protocol::{Family, FrameReader, FrameTooLarge, StopReason};
use serde_json::{Value, json};
use support::frames;

#[test]
fn a_frame_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"event: a\ndata: 1\n\ndata: 2\n\n");
    let mut reader = FrameReader::new();
    reader.push(chunk.clone());
    let first = reader.next_frame().expect("small").expect("whole");
    let second = reader.next_frame().expect("small").expect("whole");
    assert_eq!(
        (first.event(), first.data().as_deref(), first.data_range()),
        (Some("a"), Some(&b"1"[..]), Some(15..16))
    );
    assert_eq!(
        (second.event(), second.data().as_deref()),
        (None, Some(&b"2"[..]))
    );
    assert_eq!(first.raw().as_ptr(), chunk.as_ptr());
    assert_eq!(second.raw().as_ptr(), chunk[18..].as_ptr());
    assert_eq!(reader.finish().left, 0);
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let stream = b"\xef\xbb\xbf: comment\r\nid: 7\r\nretry: 5\r\nevent:x\r\ndata:  two\r\ndata\r\ndata:end\r\nother: y\r\n\r\n";
    let frame = frames(stream).pop().expect("one frame");
    assert_eq!(
        (frame.event(), frame.data().as_deref(), frame.data_range()),
        (Some("x"), Some(&b" two\n\nend"[..]), None)
    );
    assert_eq!(frame.raw().as_ref(), stream);
}

#[test]
fn bytes_of_an_unfinished_frame_are_told() {
    let mut reader = FrameReader::new();
    reader.push(Bytes::from_static(b"data: 1\n\ndata: {\"half"));
    assert!(reader.next_frame().expect("small").is_some());
    assert!(reader.next_frame().expect("small").is_none());
    let tail = reader.finish();
    assert_eq!((tail.frame, tail.left), (None, 12));
    reader.push(Bytes::from_static(b"data: 1\r\r"));
    assert!(
        reader.next_frame().expect("small").is_none(),
        "a LF may follow"
    );
    assert!(reader.finish().frame.is_some());
}

#[test]
fn a_frame_has_a_largest_size() {
    let mut reader = FrameReader::new();
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..16 {
        reader.push(chunk.clone());
        assert_eq!(reader.next_frame(), Ok(None));
    }
    reader.push(chunk);
    assert_eq!(reader.next_frame(), Err(FrameTooLarge));
    assert_eq!(reader.next_frame(), Err(FrameTooLarge));
}

#[test]
fn places_are_right_when_data_has_several_lines() {
    let stream = b"data: {\"model\":\ndata:  \"up\", \"choices\":[],\ndata: \"usage\": {\"prompt_tokens\":1\ndata: ,\"completion_tokens\":2 }}\n\n";
    let frame = frames(stream).pop().expect("one frame");
    let facts = Family::Chat.protocol().reader().read(&frame);
    assert_eq!(&stream[facts.marks.model.expect("a model")], b"\"up\"");
    let end = facts.marks.usage_end.expect("usage");
    assert_eq!(&stream[end - 1..=end + 1], b" }}");
}

/// The stop that a whole answer and a stream with this end give.
fn stops(family: Family, whole: &Value, last: &Value) -> (Option<StopReason>, Option<StopReason>) {
    let protocol = family.protocol();
    let answer = protocol
        .read_answer(whole.to_string().as_bytes())
        .expect("JSON");
    let frame = frames(format!("data: {last}\n\n").as_bytes())
        .pop()
        .expect("one frame");
    (answer.stop, protocol.reader().read(&frame).stop)
}

#[test]
fn stop_reasons_mean_the_same_whole_and_streamed() {
    let chat = |word: &str| {
        let choices =
            json!([{"index": 0, "message": {"content": "x"}, "delta": {}, "finish_reason": word}]);
        stops(
            Family::Chat,
            &json!({"choices": choices}),
            &json!({"choices": choices}),
        )
    };
    let messages = |word: &str| {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": word}});
        stops(
            Family::Messages,
            &json!({"type": "message", "content": [], "stop_reason": word}),
            &delta,
        )
    };
    let both = |stop| (Some(stop), Some(stop));
    for (word, stop) in [
        ("stop", StopReason::End),
        ("length", StopReason::Length),
        ("tool_calls", StopReason::ToolCalls),
        ("content_filter", StopReason::ContentFilter),
        ("somethingelse", StopReason::Other),
    ] {
        assert_eq!(chat(word), both(stop), "{word}");
    }
    for (word, stop) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("tool_use", StopReason::ToolCalls),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Pause),
    ] {
        assert_eq!(messages(word), both(stop), "{word}");
    }
    assert_eq!(
        (chat(""), messages("")),
        ((None, None), (None, None)),
        "an empty reason is none"
    );
}

#[test]
fn a_response_says_why_it_ended_by_status_reason_and_items() {
    let responses = |status: &str, reason: Value, output: Value| {
        let response = json!({"status": status, "incomplete_details": reason, "output": output});
        stops(
            Family::Responses,
            &response,
            &json!({"type": format!("response.{status}"), "response": response}),
        )
    };
    let both = |stop| (Some(stop), Some(stop));
    let (text, call) = (
        json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]),
        json!([{"type": "function_call"}]),
    );
    assert_eq!(
        responses("completed", Value::Null, text.clone()),
        both(StopReason::End)
    );
    assert_eq!(
        responses("completed", Value::Null, call.clone()),
        both(StopReason::ToolCalls)
    );
    assert_eq!(
        responses("incomplete", json!({"reason": "max_output_tokens"}), call),
        both(StopReason::Length)
    );
    assert_eq!(
        responses("incomplete", json!({"reason": "content_filter"}), text),
        both(StopReason::ContentFilter)
    );
    // Some servers leave the items out of the last event.
    let mut reader = Family::Responses.protocol().reader();
    let stream = concat!(
        "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\"}}\n\n",
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
    );
    let facts: Vec<_> = frames(stream.as_bytes())
        .iter()
        .map(|frame| reader.read(frame).stop)
        .collect();
    assert_eq!(facts, [None, Some(StopReason::ToolCalls)]);
}

#[test]
fn an_item_that_no_delta_showed_is_shown_when_it_is_done() {
    let text = "words of an item ".repeat(60);
    let mut reader = Family::Responses.protocol().reader();
    let mut shown = |event: Value| {
        reader
            .read(&frames(format!("data: {event}\n\n").as_bytes())[0])
            .shown
            .bytes()
    };
    let item = |kind: &str| json!({"type": kind, "name": "read", "arguments": text});
    let done =
        |item: Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    assert_eq!(shown(done(item("function_call"))), text.len() as u64 + 4);
    let delta =
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": text});
    assert_eq!(shown(delta), text.len() as u64);
    assert_eq!(
        shown(done(item("function_call"))),
        0,
        "its deltas have shown it"
    );
    assert_eq!(shown(done(item("function_call"))), text.len() as u64 + 4);
    let sampled = reader.sample().seen();
    assert_eq!(sampled, 3 * text.len() as u64 + 8);
}

#[test]
fn an_answer_of_several_choices_stops_with_the_last_of_them() {
    let mut reader = Family::Chat.protocol().reader();
    let mut stop = |index: u64, reason: Value| {
        let chunk = json!({"choices": [{"index": index, "delta": {}, "finish_reason": reason}]});
        reader
            .read(
                &frames(format!("data: {chunk}\n\n").as_bytes())
                    .pop()
                    .expect("one frame"),
            )
            .stop
    };
    assert_eq!((stop(0, Value::Null), stop(1, Value::Null)), (None, None));
    assert_eq!(
        (stop(1, json!("length")), stop(0, json!("stop"))),
        (None, Some(StopReason::Length)),
        "the first reason is told"
    );
}
