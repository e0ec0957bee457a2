//! Laws that hold for every input: splicing, chunking, merging, patching, drafts and endings; and nothing panics.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod support;

use bytes::Bytes;
use farebox_protocol::json::{Cursor, Edit, pieces, splice};
use farebox_protocol::{
    Edits, ErrorBody, Family, Frame, FrameReader, PublicAnswer, ReportedUsage, SyntheticAnswer,
    SyntheticStop, TargetFit, TextSize, ToolCall, UpstreamError, UsageReading, UsageWish,
    WireUsage,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{fixtures, frames, requests};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| json!(f64::from(number) / 4.0)),
        "[a-z\"\\\\/\u{0}-\u{1f}äß漢🎫 ]{0,24}".prop_map(Value::from),
    ]
}

/// Pieces of a string's text, most of which are good only beside the right ones.
fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        8 => prop::sample::select(vec![r"\\", r"\n", r#"\""#, r"\/", r"\u00e9", "fn main", "            ", "é", "→", "n", "00e9"]),
        1 => prop::sample::select(vec![r"\", "\"", r"\u", r"\x", "\t", "\u{1f}"]),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 6, |inner| {
        let name = prop_oneof![
            Just("type"),
            Just("content"),
            Just("source"),
            Just("data"),
            Just("text"),
            Just("image_url"),
            Just("url"),
            Just("id"),
            Just("file"),
            Just("file_data"),
            Just("role"),
            Just("usage"),
            Just("delta"),
            Just("tools"),
            Just("cache_control"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((name, inner), 0..6).prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

fn accepts(bytes: &[u8]) -> bool {
    Cursor::new(bytes)
        .and_then(|mut cursor| cursor.skip().and_then(|_| cursor.end()))
        .is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cursor_accepts_what_serde_accepts(value in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        prop_assert!(accepts(&bytes));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let out_of_range = serde_json::from_slice::<Value>(&bytes).is_err_and(|error| error.to_string().contains("out of range"));
        prop_assume!(!out_of_range);
        prop_assert_eq!(accepts(&bytes), serde_json::from_slice::<Value>(&bytes).is_ok());
    }

    #[test]
    fn a_string_ends_where_serde_ends_it(pieces in prop::collection::vec(piece(), 0..90), behind in "[a-z ]{0,90}") {
        let bytes = format!("[\"{}\",\"{behind}\"]", pieces.concat()).into_bytes();
        prop_assert_eq!(accepts(&bytes), serde_json::from_slice::<Value>(&bytes).is_ok(), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn strings_are_measured_and_unescaped(text in "[a-z\"\\\\\n\u{1}äß漢🎫]{0,160}") {
        let json = Value::from(text.as_str()).to_string();
        let mut cursor = Cursor::new(json.as_bytes()).expect("UTF-8");
        let value = cursor.skip().expect("a string");
        prop_assert_eq!(cursor.text_of(&value).expect("a string"), text.as_str());
        prop_assert_eq!(value.text_size(), TextSize::of(&json[1..json.len() - 1]));
    }

    #[test]
    fn white_space_is_not_measured(value in any_json()) {
        let size = |text: &str| Cursor::new(text.as_bytes()).and_then(|mut cursor| cursor.skip()).expect("JSON").size;
        prop_assert_eq!(size(&serde_json::to_string_pretty(&value).expect("JSON")), size(&value.to_string()));
    }

    #[test]
    fn splicing_changes_only_the_named_bytes(
        body in prop::collection::vec(any::<u8>(), 0..80),
        times in prop_oneof![Just(1_usize), 1_usize..900],
        cuts in prop::collection::vec((prop_oneof![0_usize..10, 0_usize..20_000], 0_usize..10, prop::collection::vec(any::<u8>(), 0..6)), 0..6),
    ) {
        let body = Bytes::from(body.repeat(times));
        let mut at = 0;
        let mut edits = Vec::new();
        let mut expected = Vec::new();
        for (gap, length, with) in cuts {
            let start = (at + gap).min(body.len());
            let end = (start + length).min(body.len());
            expected.extend_from_slice(&body[at..start]);
            expected.extend_from_slice(&with);
            edits.push(Edit::replace(start..end, with));
            at = end;
        }
        expected.extend_from_slice(&body[at..]);
        prop_assert_eq!(splice(&body, &mut edits), expected.as_slice());
        let pieces = pieces(&body, &mut edits);
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        prop_assert_eq!(pieces.concat(), expected);
    }

    #[test]
    fn any_chunking_gives_the_same_frames(
        pieces in prop::collection::vec(prop_oneof![
            Just("data: x\n\n"), Just("event: e\ndata: x\n\n"), Just("data: x"), Just("data:y"), Just("event: e"), Just(": c"), Just("id: 1"), Just("data"),
            Just("\n"), Just("\r"), Just("\r\n"), Just("\n\n"), Just("\r\n\r\n"), Just("\u{feff}"),
        ], 0..40),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = pieces.concat().into_bytes();
        let mut cuts: Vec<usize> = splits.iter().map(|split| split.index(stream.len() + 1)).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let whole = cut(&[&stream]);
        prop_assert_eq!(&cut(&chunks), &whole);
        for frame in &whole.0 {
            prop_assert_eq!(&Frame::new(frame.raw().clone()), frame);
        }
        let bytes: usize = whole.0.iter().map(|frame| frame.raw().len()).sum();
        prop_assert_eq!(bytes + whole.1, stream.len());
    }

    #[test]
    fn merging_is_associative_and_keeps_positive_counts(counts in prop::collection::vec(prop::option::of(0_u64..4), 3)) {
        let wire = |output: Option<u64>| WireUsage { output, ..WireUsage::default() };
        let [a, b, c] = [wire(counts[0]), wire(counts[1]), wire(counts[2])];
        let (mut left, mut bc, mut right) = (a.clone(), b.clone(), a.clone());
        left.merge(&b);
        left.merge(&c);
        bc.merge(&c);
        right.merge(&bc);
        prop_assert_eq!(&left, &right);
        let positive = counts.iter().rev().flatten().find(|count| **count > 0).or(counts.iter().flatten().next());
        prop_assert_eq!(left.output, positive.copied());
    }

    #[test]
    fn readings_are_disjoint(input in 0_u64..50, read in 0_u64..50, written in 0_u64..50, output in 0_u64..50, reasoning in 0_u64..50) {
        let wire = WireUsage {
            input: Some(input), cache_read: Some(read), cache_write: Some(written), cache_write_1h: None,
            output: Some(output), reasoning: Some(reasoning), input_is_total: true, ..WireUsage::default()
        };
        match wire.reading(false) {
            UsageReading::Counted(usage) => {
                prop_assert_eq!(usage.all_input(), input);
                prop_assert_eq!(usage.all_output(), output);
            }
            UsageReading::Absurd => prop_assert!(read + written > input || reasoning > output),
            UsageReading::Missing => prop_assert!(false),
        }
    }

    #[test]
    fn patching_equals_an_edit_of_the_tree(
        family in prop::sample::select(Family::ALL.to_vec()),
        extra in prop::collection::vec(("x_[a-z]{1,6}", any_json()), 0..4),
        choices in prop::collection::vec(0_usize..4, 6),
        pretty in any::<bool>(),
        tools in prop::collection::vec(any::<bool>(), 0..5),
        passes in any::<prop::sample::Index>(),
    ) {
        let names: Vec<String> = extra.iter().map(|(name, _)| name.clone()).collect();
        let pass = &names[..passes.index(names.len() + 1)];
        let (body, mut expected) = request(family, extra, &choices, &tools);
        let text = if pretty { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) }.expect("JSON");
        let seen = family.protocol().inspect(text.as_bytes(), 0).expect("a good request");
        let field = limit_field(family);
        let fit = TargetFit { pass: pass.to_vec(), ..TargetFit::default() };
        let patched = family.protocol().patch(text.as_bytes(), &seen, &Edits { model: "up\"1", limit_field: field, limit: Some(5), fit: &fit, ..Edits::default() });
        let removed = names.iter().filter(|name| !pass.contains(name));
        removed.for_each(|name| drop(expected.as_object_mut().expect("an object").remove(name)));
        expected["model"] = json!("up\"1");
        expected[field] = json!(5);
        prop_assert_eq!(serde_json::from_slice::<Value>(&patched).expect("JSON"), expected);
    }

    #[test]
    fn no_input_panics(value in any_json(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let list = json!([value]);
        for family in Family::ALL {
            let wrapped = json!({"model": "m", "max_tokens": 5, "messages": list, "input": list, "tools": list, "system": value});
            exercise(family, wrapped.to_string().as_bytes());
            exercise(family, value.to_string().as_bytes());
            exercise(family, &bytes);
        }
    }

    #[test]
    fn no_damaged_fixture_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), pick in any::<prop::sample::Index>()) {
        for family in Family::ALL {
            let streams = fixtures(family, ".sse");
            let (_, mut stream) = streams[pick.index(streams.len())].clone();
            let at = at.index(stream.len());
            stream[at] = byte;
            exercise(family, &stream);
        }
    }

    #[test]
    fn drafts_read_back(
        family in prop::sample::select(Family::ALL.to_vec()),
        pieces in prop::collection::vec("[a-z \"\nß漢]{1,12}", 0..5),
        tool in any::<bool>(),
        counts in prop::collection::vec(1_u64..1_000, 6),
    ) {
        let usage = ReportedUsage {
            input: counts[0], cache_read: counts[1], cache_write: counts[2],
            cache_write_1h: if family == Family::Messages { counts[3] } else { 0 }, cache_write_12h: 0, output: counts[4], reasoning: counts[5],
        };
        let tool = tool.then(|| ToolCall { id: "1".into(), name: "f".into(), arguments: r#"{"path":"ä"}"#.into() });
        let stop = if tool.is_some() { SyntheticStop::Tool } else { SyntheticStop::Stop };
        let draft = SyntheticAnswer {
            id: "1".into(), model: "m".into(), created: 7, pieces, tool, usage: Some(usage), stop, stream_usage: true, classes: farebox_protocol::Classes::STANDARD,
        };
        let answer = family.protocol().read_answer(&family.protocol().write_answer(&draft)).expect("JSON");
        prop_assert_eq!(answer.usage.reading(false), UsageReading::Counted(usage));
        let mut reader = family.protocol().reader();
        let mut shown = TextSize::default();
        let stream = family.protocol().write_frames(&draft).concat();
        let frames = frames(&stream);
        let facts: Vec<_> = frames.iter().map(|frame| reader.read(frame)).collect();
        facts.iter().for_each(|facts| shown.add(facts.shown));
        prop_assert_eq!(reader.usage().reading(false), UsageReading::Counted(usage));
        prop_assert_eq!(reader.answer_id(), answer.id.as_deref());
        prop_assert!(facts.last().is_some_and(|facts| facts.end && facts.last));
        prop_assert_eq!(facts.iter().filter_map(|facts| facts.stop).collect::<Vec<_>>(), [answer.stop.expect("a stop")]);
        let text: TextSize = TextSize::of(&Value::from(draft.pieces.concat()).to_string());
        prop_assert!(shown.bytes() >= text.bytes() - 2 && answer.shown.bytes() >= text.bytes() - 2);
    }
}

fn cut(chunks: &[&[u8]]) -> (Vec<farebox_protocol::Frame>, usize) {
    let mut reader = FrameReader::new();
    let mut out = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = reader.next_frame().expect("small frames") {
            out.push(frame);
        }
    }
    let tail = reader.finish();
    out.extend(tail.frame);
    (out, tail.left)
}

fn limit_field(family: Family) -> &'static str {
    if family == Family::Responses {
        "max_output_tokens"
    } else {
        "max_tokens"
    }
}

/// A request with optional members here and there, and what it must become apart from model and limit.
fn request(
    family: Family,
    extra: Vec<(String, Value)>,
    choices: &[usize],
    tools: &[bool],
) -> (Value, Value) {
    let mut body = Map::new();
    let mut expected = Map::new();
    let mut add = |name: &str, value: Value, becomes: Option<Value>| {
        body.insert(name.to_owned(), value);
        if let Some(becomes) = becomes {
            expected.insert(name.to_owned(), becomes);
        }
    };
    let same = |value: Value| (value.clone(), Some(value));
    let stream = choices[0].is_multiple_of(2);
    for (name, value) in extra {
        let (value, becomes) = same(value);
        add(&name, value, becomes);
    }
    match choices[1] {
        0 if family != Family::Messages => add(limit_field(family), Value::Null, Some(Value::Null)),
        1 if family != Family::Messages => {}
        2 if family == Family::Chat => {
            add("max_tokens", json!(100), None);
            add("max_completion_tokens", json!(100), None);
        }
        _ => add(limit_field(family), json!(100), None),
    }
    add("stream", json!(stream), Some(json!(stream)));
    if family == Family::Chat {
        let forced = |mut value: Value| {
            if stream {
                value["include_usage"] = json!(true);
            }
            Some(value)
        };
        match choices[2] {
            0 => add(
                "stream_options",
                json!({"include_usage": false, "other": [1]}),
                forced(json!({"include_usage": false, "other": [1]})),
            ),
            1 => add("stream_options", json!({}), forced(json!({}))),
            2 => add("stream_options", json!({"x": 1}), forced(json!({"x": 1}))),
            _ => {}
        }
    }
    add(
        if family == Family::Responses {
            "input"
        } else {
            "messages"
        },
        json!([{"role": "user", "content": "hi"}]),
        None,
    );
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    if family != Family::Messages && choices[3] == 0 {
        add("usage", json!({"include": true}), None);
    }
    if family != Family::Messages && choices[4] < 2 {
        add("store", json!(choices[4] == 0), Some(json!(false)));
    }
    if !tools.is_empty() {
        let search = json!({"type": "web_search", "name": "web_search"});
        let client = json!({"type": "custom", "name": "mine", "input_schema": {}, "custom": {"name": "mine"}});
        let all: Vec<Value> = tools
            .iter()
            .map(|keep| {
                if *keep {
                    client.clone()
                } else {
                    search.clone()
                }
            })
            .collect();
        let kept: Vec<Value> = all
            .iter()
            .filter(|tool| **tool == client)
            .cloned()
            .collect();
        let some = !kept.is_empty();
        add("tool_choice", json!("auto"), some.then(|| json!("auto")));
        add("tools", json!(all), some.then(|| json!(kept)));
    }
    add("model", json!("slug"), None);
    expected.insert(list.to_owned(), json!([{"role": "user", "content": "hi"}]));
    if family == Family::Responses {
        expected.insert("store".to_owned(), json!(false));
    }
    if family == Family::Chat && stream && !body.contains_key("stream_options") {
        expected.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    (Value::Object(body), Value::Object(expected))
}

fn exercise(family: Family, bytes: &[u8]) {
    let protocol = family.protocol();
    if let Ok(seen) = protocol.inspect(bytes, 0) {
        let patched = protocol.patch(
            bytes,
            &seen,
            &Edits {
                model: "m",
                limit_field: "max_tokens",
                limit: Some(3),
                ..Edits::default()
            },
        );
        assert!(accepts(&patched));
    }
    let _ = Family::Messages.protocol().inspect_count(bytes, 0);
    let _ = protocol.read_answer(bytes);
    let _ = UpstreamError::parse(bytes);
    let (mut reader, mut writer) = (protocol.reader(), protocol.writer());
    let wrapped = [b"data: ", bytes, b"\n\n"].concat();
    for stream in [bytes, &wrapped] {
        for frame in cut(&[stream]).0 {
            let facts = reader.read(&frame);
            writer.observe(&frame, &facts);
            let model = facts.marks.model.map(|span| {
                frame
                    .raw()
                    .get(span)
                    .is_some_and(|model| model.starts_with(b"\""))
            });
            assert_ne!(model, Some(false));
            assert_ne!(
                facts
                    .marks
                    .usage_end
                    .map(|at| frame.raw().get(at) == Some(&b'}')),
                Some(false)
            );
        }
    }
    let answer = PublicAnswer {
        model: "slug",
        id: reader.answer_id(),
    };
    let ending = writer.end_at_limit(
        answer,
        None,
        &ReportedUsage::default(),
        UsageWish::default(),
    );
    assert_eq!(cut(&[&ending]).1, 0);
}

#[test]
fn endings_made_after_any_frame_are_whole() {
    let error = ErrorBody {
        kind: "upstream_error".into(),
        code: None,
        param: None,
        message: "broken".into(),
        details: None,
        request_id: "req_1".into(),
    };
    for family in Family::ALL {
        for (name, stream) in fixtures(family, ".sse") {
            let all = frames(&stream);
            for length in 0..=all.len() {
                let (mut reader, mut writer) =
                    (family.protocol().reader(), family.protocol().writer());
                for frame in &all[..length] {
                    let facts = reader.read(frame);
                    writer.observe(frame, &facts);
                }
                let answer = PublicAnswer {
                    model: "slug",
                    id: reader.answer_id(),
                };
                let event = writer.error_event(answer, &error);
                let (usage, wish) = (ReportedUsage::default(), UsageWish::default());
                let ending = writer.end_at_limit(answer, Some("\n\n[no money]"), &usage, wish);
                // Read by a reader of its own: an ending is no part of what the upstream said.
                let mut again = family.protocol().reader();
                let facts: Vec<_> = frames(&ending)
                    .iter()
                    .map(|frame| again.read(frame))
                    .collect();
                if let Some(last) = facts.last() {
                    assert!(
                        last.end && facts.iter().all(|facts| facts.error.is_none()),
                        "{family} {name} {length}"
                    );
                }
                let facts: Vec<_> = frames(&event)
                    .iter()
                    .map(|frame| again.read(frame))
                    .collect();
                assert!(
                    facts.iter().any(|facts| facts
                        .error
                        .as_ref()
                        .is_some_and(|told| told.message == "broken")),
                    "{family}"
                );
                assert!(
                    facts.iter().all(|facts| facts.stop.is_none()),
                    "{family} {name}"
                );
            }
        }
    }
}

#[test]
fn recorded_requests_survive_damage() {
    for family in Family::ALL {
        for (_, body) in requests(family) {
            for at in (0..body.len()).step_by(body.len() / 40 + 1) {
                let mut damaged = body.clone();
                damaged[at] ^= 0x55;
                let _ = family.protocol().inspect(&damaged, 0);
                let _ = family.protocol().inspect(&body[..at], 0);
            }
        }
    }
}
