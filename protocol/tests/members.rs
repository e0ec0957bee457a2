//! Members of answers that the vendors' own SDKs read: none is lost on the way through their family, whoever answers.
//!
//! `fixtures/sdk/` has every field of every object that openai 3.57.0 and anthropic 2.14.0 (Python, November 2026) declare for answers
//! and events, made from their types.

#![expect(clippy::expect_used, reason = "a failed step is a failed test")]

mod support;

use bytes::Bytes;
use farebox_protocol::{Family, Frame, FrameMarks};
use serde_json::Value;
use support::fixtures_of_sdk;

/// The members that go.
fn removed<'a>(text: &'a str, marks: &FrameMarks) -> Vec<&'a str> {
    let cuts = marks.more().into_iter().flat_map(|more| &more.cuts);
    cuts.map(|cut| text.get(cut.clone()).expect("whole characters"))
        .collect()
}

#[test]
fn every_field_of_the_newest_sdks_passes() {
    let nothing: [&str; 0] = [];
    for family in Family::ALL {
        let mut frames = 0;
        for line in fixtures_of_sdk(family).lines() {
            let whole: Value = serde_json::from_str(line).expect("a line of JSON");
            if let Some(answer) = whole.get("answer") {
                let text = answer.to_string();
                let facts = family.protocol().read_answer(text.as_bytes());
                let marks = facts.expect("an object").marks;
                assert_eq!(removed(&text, &marks), nothing, "{family}: {text}");
                continue;
            }
            let text = format!("data: {}\n\n", whole["frame"]);
            let frame = Frame::new(Bytes::from(text.clone()));
            let facts = family.protocol().reader().read(&frame);
            assert_eq!(removed(&text, &facts.marks), nothing, "{family}: {text}");
            assert!(!facts.unfamiliar && !facts.unreadable, "{family}: {text}");
            frames += 1;
        }
        assert!(frames > 0, "{family}");
    }
}

#[test]
fn nesting_without_end_costs_a_member_and_not_the_answer() {
    let deep = format!("{}{}", r#"{"content":["#.repeat(300), "]}".repeat(300));
    let body = format!(
        r#"{{"type":"message","content":[{{"type":"text","text":"a","citations":{deep}}}],"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
    );
    let facts = Family::Messages.protocol().read_answer(body.as_bytes());
    let marks = facts.expect("an answer").marks;
    let [gone] = removed(&body, &marks)[..] else {
        panic!("{marks:?}");
    };
    assert_eq!(gone, format!(r#","citations":{deep}"#));
    assert!(marks.strange);
}
