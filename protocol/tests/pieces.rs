//! What a chat client gets of a chat target's calls, however the target numbers and names their pieces (R2, B71 to B74).

use bytes::Bytes;
use farebox_protocol::json::splice;
use farebox_protocol::{AnswerReader, Family, Frame};
use serde_json::{Value, json};

fn reader() -> Box<dyn AnswerReader> {
    Family::Chat.protocol().reader()
}

/// The delta of a chunk as its client gets it.
fn shown(reader: &mut dyn AnswerReader, delta: &str) -> Value {
    let chunk =
        format!("data: {{\"id\":\"a\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let frame = Frame::new(Bytes::from(chunk));
    let marks = reader.read(&frame).marks;
    let bytes = Bytes::from(splice(frame.raw(), &mut marks.edits("")));
    let data = Frame::new(bytes);
    let chunk: Option<Value> = (data.data()).and_then(|data| serde_json::from_slice(&data).ok());
    let chunk = chunk.unwrap_or_default();
    assert!(chunk.is_object(), "{data:?}");
    chunk["choices"][0]["delta"].clone()
}

/// The pieces as their client gets them, each in a chunk of its own.
fn pieces(all: &[&str]) -> Vec<Value> {
    let mut reader = reader();
    let chunk = |piece: &&str| {
        let delta = shown(&mut *reader, &format!("{{\"tool_calls\":[{piece}]}}"));
        delta["tool_calls"][0].clone()
    };
    all.iter().map(chunk).collect()
}

#[test]
fn pieces_as_clients_know_them_are_not_touched() {
    let mut reader = reader();
    for delta in [
        r#"{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"id":"c1","function":{"name":"g","arguments":"{}"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":null,"function":{"name":"","arguments":":1}"}}]}"#,
        r#"{"tool_calls":[{"index":5,"id":"c5","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
        r#"{"tool_calls":[{}]}"#,
        r#"{"tool_calls":null}"#,
    ] {
        let chunk = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        let facts = reader.read(&Frame::new(Bytes::from(chunk)));
        let mended = facts
            .marks
            .more()
            .is_some_and(|more| !more.mended.is_empty());
        assert!(!mended, "{delta}");
    }
}

#[test]
fn a_first_piece_gets_what_it_lacks_and_later_ids_go() {
    let got = pieces(&[
        r#"{"index":0,"function":{"name":"run","arguments":"{\"a\""}}"#,
        r#"{"index":0,"id":"call_9","function":{"arguments":":1}"}}"#,
    ]);
    let id = got[0]["id"].as_str().unwrap();
    assert!(id.len() > 8, "{got:?}");
    assert_eq!(
        got[0],
        json!({"index": 0, "id": id, "type": "function", "function": {"name": "run", "arguments": "{\"a\""}})
    );
    assert_eq!(
        got[1],
        json!({"index": 0, "function": {"arguments": ":1}"}})
    );
    let bare = pieces(&[r#"{"index":0,"custom":{"name":"run","input":""}}"#]);
    assert_eq!(bare[0]["type"], "custom");
    // Ids that are made differ from one answer to the next, and from one call to the next.
    let mut other = reader();
    let chunk = "data: {\"id\":\"b\",\"choices\":[]}\n\n";
    other.read(&Frame::new(Bytes::from(chunk)));
    let both = r#"{"tool_calls":[{"index":0,"function":{"name":"run"}},{"index":1,"id":"","type":"function","function":{"name":"run"}}]}"#;
    let both = shown(&mut *other, both);
    let ids = [
        &both["tool_calls"][0]["id"],
        &both["tool_calls"][1]["id"],
        &got[0]["id"],
    ];
    assert!(
        ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2],
        "{ids:?}"
    );
}

#[test]
fn an_id_with_a_name_opens_another_call() {
    let got = pieces(&[
        r#"{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}"#,
        r#"{"index":0,"id":"c2","type":"function","function":{"name":"g","arguments":"{"}}"#,
        r#"{"index":0,"function":{"arguments":"}"}}"#,
        r#"{"index":1,"id":"c3","type":"function","function":{"name":"h","arguments":"{}"}}"#,
    ]);
    let numbers: Vec<&Value> = got.iter().map(|piece| &piece["index"]).collect();
    assert_eq!(json!(numbers), json!([0, 1, 1, 2]));
    assert_eq!((&got[1]["id"], &got[3]["id"]), (&json!("c2"), &json!("c3")));
}

#[test]
fn an_id_or_a_name_said_again_goes_wherever_it_stands() {
    let first =
        r#"{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{"}}"#;
    for again in [
        r#"{"id":"c1","index":0,"function":{"name":"f","arguments":"}"}}"#,
        r#"{"index":0,"function":{"arguments":"}","name":"f"},"id":"c1"}"#,
        r#"{"index":0, "id":"c2" , "function":{"arguments":"}"}}"#,
        r#"{"index":0,"id":"c1","provider":"p","function":{"arguments":"}"}}"#,
    ] {
        let got = pieces(&[first, again]).pop().unwrap();
        let expected = json!({"index": 0, "function": {"arguments": "}"}});
        let mut said = got.clone();
        // Where another cut touches it, the value alone goes.
        said.as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        assert_eq!(said, expected, "{again}: {got}");
    }
    let bare = pieces(&[first, r#"{"id":"c2"}"#, r#"{"function":{"arguments":"}"}}"#]);
    assert_eq!(
        (&bare[1]["index"], &bare[2]["index"]),
        (&json!(0), &json!(0))
    );
}
