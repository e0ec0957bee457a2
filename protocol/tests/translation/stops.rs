//! Stop strings towards targets that know none: the answer is cut at the first match in its shown text.

use farebox_protocol::translate::{Translator, read_answer};
use farebox_protocol::{Family, UsageWish};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::help::*;

/// A request with stop strings, as a responses target gets it.
fn asked(caller: Family, stops: &Value) -> farebox_protocol::translate::Translated {
    let field = if caller == Chat {
        "stop"
    } else {
        "stop_sequences"
    };
    translated(
        caller,
        Responses,
        &able(Responses),
        &asking(caller, &json!({(field): stops})),
    )
    .expect("a translation")
}

/// The events of a responses target that thinks, says these pieces, and calls a tool.
fn said(pieces: &[&str]) -> Vec<String> {
    let delta = |kind: &str, index: u64, text: &str| {
        json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": text})
            .to_string()
    };
    let item = |moment: &str, index: u64, item: Value| {
        json!({"type": format!("response.output_item.{moment}"), "output_index": index, "item": item}).to_string()
    };
    let mut out = vec![
        json!({"type": "response.created", "response": {"id": "r"}}).to_string(),
        delta("reasoning_summary_text", 0, "I say END later"),
        item("done", 0, json!({"type": "reasoning", "summary": []})),
    ];
    out.extend(pieces.iter().map(|piece| delta("output_text", 1, piece)));
    let call =
        json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"END\":1}"});
    out.push(item("done", 1, json!({"type": "message", "content": []})));
    out.push(item("done", 2, call));
    out.push(
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}})
            .to_string(),
    );
    out
}

/// What a caller gets of it: the stream, the whole answer, and whether it was cut.
fn got(caller: Family, stops: &Value, pieces: &[&str]) -> (String, Value, bool) {
    let memo = asked(caller, stops).memo;
    let stream = relay(Responses, caller, memo.clone(), &said(pieces));
    let mut folding = Translator::folding(Responses, caller, memo, &wish(b"{}"));
    for data in said(pieces) {
        assert!(
            folding.frame(&frame(&data)).is_empty(),
            "nothing before the end"
        );
    }
    let cut = folding.has_stopped();
    let whole = folding.finish(&USAGE, UsageWish::default());
    (stream, serde_json::from_slice(&whole).expect("JSON"), cut)
}

#[test]
fn the_target_is_asked_for_a_stream_and_the_cut_is_told() {
    for (caller, stops) in [
        (Chat, json!("END")),
        (Chat, json!(["END", "x"])),
        (Messages, json!(["END"])),
    ] {
        let asked = asked(caller, &stops);
        assert_eq!(asked.losses.header(), "stop=cut_here");
        let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
        assert_eq!(body["stream"], true);
        assert!(!asked.body.windows(3).any(|word| word == b"END"), "{body}");
    }
    for none in [json!([]), json!([""]), Value::Null] {
        let asked = asked(Chat, &none);
        let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
        assert_eq!(
            (asked.losses.header().as_str(), body.get("stream")),
            ("", None)
        );
    }
}

#[test]
fn text_is_cut_before_the_first_match_across_frames_and_hidden_text_never_matches() {
    let (stream, whole, cut) = got(
        Messages,
        &json!(["never", "END"]),
        &["one E", "N", "", "D two END"],
    );
    assert!(cut);
    assert_eq!(
        blocks(&stream),
        [
            ("thinking".to_owned(), "I say END later".to_owned()),
            ("text".to_owned(), "one ".to_owned())
        ]
    );
    assert_eq!(last_of(&stream, "/delta/stop_reason"), "stop_sequence");
    assert_eq!(last_of(&stream, "/delta/stop_sequence"), "END");
    assert_eq!(
        (&whole["stop_reason"], &whole["stop_sequence"]),
        (&json!("stop_sequence"), &json!("END"))
    );
    assert_eq!(whole["content"][1], json!({"type": "text", "text": "one "}));
    let (stream, whole, _) = got(Chat, &json!("END"), &["one ", "END", " two"]);
    assert_eq!(last_of(&stream, "/choices/0/finish_reason"), "stop");
    assert!(
        !stream.contains("tool_calls") && !stream.contains("two"),
        "{stream}"
    );
    let choice = &whole["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("one "), &json!("stop"))
    );
}

#[test]
fn an_answer_without_a_match_is_whole_to_the_last_character() {
    let (stream, whole, cut) = got(Messages, &json!(["END!"]), &["one EN", "D"]);
    assert!(!cut);
    let expected = [
        ("thinking", "I say END later"),
        ("text", "one END"),
        ("tool_use", "{\"END\":1}"),
    ];
    assert_eq!(
        blocks(&stream),
        expected.map(|(kind, text)| (kind.to_owned(), text.to_owned()))
    );
    assert_eq!(whole["content"][1]["text"], "one END");
    assert_eq!(
        (&whole["stop_reason"], &whole["content"][2]["name"]),
        (&json!("tool_use"), &json!("f"))
    );
}

#[test]
fn halves_of_a_character_in_two_deltas_are_joined() {
    for caller in [Chat, Messages] {
        let frames = [r#"\ud83d"#, r#"\ude00 a\\ud83d"#, r#" \ud83d"#].map(|text| {
            format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}"#)
        });
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}}).to_string();
        let data: Vec<String> = frames.into_iter().chain([end]).collect();
        let stream = relay(
            Responses,
            caller,
            farebox_protocol::translate::Memo::default(),
            &data,
        );
        let text: String = events(&stream)
            .iter()
            .filter_map(|event| {
                [
                    &event["choices"][0]["delta"]["content"],
                    &event["delta"]["text"],
                ]
                .into_iter()
                .find_map(Value::as_str)
                .map(str::to_owned)
            })
            .collect();
        assert_eq!(text, "😀 a\\ud83d \u{fffd}");
    }
}

proptest! {
    /// However the text is cut into frames, the same part of it is shown.
    #[test]
    fn the_same_text_is_shown_however_it_is_framed(text in "[ab ä]{0,24}", stops in prop::collection::vec("[ab]{1,4}", 1..3), cuts in prop::collection::vec(0_usize..24, 0..6)) {
        let mut at: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut.min(text.len()))).chain([0, text.len()]).collect();
        at.sort_unstable();
        let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let (stream, whole, cut) = got(Messages, &json!(stops), &pieces);
        let first = stops.iter().filter_map(|stop| text.find(stop)).min();
        prop_assert_eq!(cut, first.is_some());
        let expected = &text[..first.unwrap_or(text.len())];
        let shown: String = blocks(&stream).into_iter().filter(|(kind, _)| kind == "text").map(|(_, text)| text).collect();
        prop_assert_eq!(&shown, expected);
        let folded: String = read_answer(Messages, whole.to_string().as_bytes()).blocks.iter()
            .filter(|block| matches!(block.kind, farebox_protocol::translate::event::BlockKind::Text))
            .map(|block| block.text.clone()).collect();
        prop_assert_eq!(&folded, expected);
    }
}
