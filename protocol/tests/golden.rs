//! Recorded requests, whole answers and streams go in, snapshots of their facts come out.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod support;

use std::fmt::Write as _;
use std::ops::Range;

use farebox_protocol::{
    Edits, Family, FrameFacts, FrameMarks, PublicAnswer, ReportedUsage, StopReason, TextSize,
    UpstreamError, UsageWish, WireUsage,
};
use support::{fixtures, frames, requests};

const USAGE: ReportedUsage = ReportedUsage {
    input: 10,
    cache_read: 20,
    cache_write: 3,
    cache_write_1h: 4,
    cache_write_12h: 0,
    output: 50,
    reasoning: 6,
};

#[test]
fn recorded_requests() {
    for family in Family::ALL {
        for (name, body) in requests(family) {
            let seen = family
                .protocol()
                .inspect(&body, 0)
                .unwrap_or_else(|bad| panic!("{name}: {bad:?}"));
            insta::assert_debug_snapshot!(format!("request-{family}-{name}"), seen);
        }
    }
}

/// The difference that a patch makes, shown around each change.
#[test]
fn patched_requests() {
    for family in Family::ALL {
        for (name, body) in requests(family) {
            let seen = family.protocol().inspect(&body, 0).expect("a good request");
            let field = if family == Family::Responses {
                "max_output_tokens"
            } else {
                "max_tokens"
            };
            let edits = Edits {
                model: "up",
                limit_field: field,
                limit: Some(777),
                ..Edits::default()
            };
            let patched = family.protocol().patch(&body, &seen, &edits);
            let again = family
                .protocol()
                .inspect(&patched, 0)
                .expect("still a good request");
            assert_eq!(
                (again.model.as_str(), again.limit, again.stream),
                ("up", Some(777), seen.stream),
                "{name}"
            );
            assert_eq!(again.removed_tools, Vec::<String>::new(), "{name}");
            assert_eq!(again.content, seen.content, "{name}");
        }
    }
}

#[test]
fn whole_answers() {
    for family in Family::ALL {
        for (name, body) in fixtures(family, ".answer.json") {
            let facts = family.protocol().read_answer(&body).expect("a JSON object");
            let model = facts
                .marks
                .model
                .clone()
                .map(|span| String::from_utf8_lossy(&body[span]).into_owned());
            let closing = facts.marks.usage_end.map(|at| body[at] as char);
            let reading = facts.usage.reading(false);
            insta::assert_debug_snapshot!(
                format!("answer-{family}-{name}"),
                (model, closing, reading, flat(facts))
            );
        }
    }
}

/// The facts as the snapshots have them: places beside the rest.
fn flat(facts: farebox_protocol::AnswerFacts) -> impl std::fmt::Debug {
    #[derive(Debug)]
    #[expect(dead_code, reason = "read by Debug")]
    struct AnswerFacts {
        model: Option<Range<usize>>,
        id: Option<String>,
        usage: WireUsage,
        usage_end: Option<usize>,
        usage_empty: bool,
        cuts: Vec<Range<usize>>,
        shown: TextSize,
        stop: Option<StopReason>,
        error: Option<UpstreamError>,
    }
    let farebox_protocol::AnswerFacts {
        marks,
        id,
        usage,
        shown,
        stop,
        complete: _,
        error,
    } = facts;
    let more = marks.more().cloned().unwrap_or_default();
    let FrameMarks {
        model,
        usage_end,
        usage_empty,
        ..
    } = marks;
    assert!(more.models.is_empty(), "no recorded answer names it twice");
    AnswerFacts {
        model,
        id,
        usage,
        usage_end,
        usage_empty,
        cuts: more.cuts,
        shown,
        stop,
        error,
    }
}

#[test]
fn streamed_answers() {
    for family in Family::ALL {
        for (name, stream) in fixtures(family, ".sse") {
            let frames = frames(&stream);
            let mut reader = family.protocol().reader();
            let mut out = String::new();
            for frame in &frames {
                let facts = reader.read(frame);
                writeln!(out, "{}", line(frame.raw(), frame.event(), &facts)).expect("a string");
            }
            writeln!(
                out,
                "id {:?}\n{:?}\n{:?}",
                reader.answer_id(),
                reader.usage(),
                reader.usage().reading(false)
            )
            .expect("a string");
            insta::assert_snapshot!(format!("stream-{family}-{name}"), out);
        }
    }
}

/// What the gateway says at such an end; the quotes have to be escaped.
const WORDS: &str = "\n\n[the \"balance\" is used up]";

/// Endings made in the middle of each stream, as the customer sees them.
#[test]
fn endings() {
    for family in Family::ALL {
        for (name, stream) in fixtures(family, ".sse") {
            let frames = frames(&stream);
            let mut reader = family.protocol().reader();
            let mut writer = family.protocol().writer();
            for frame in &frames[..frames.len() * 6 / 10] {
                let facts = reader.read(frame);
                writer.observe(frame, &facts);
            }
            let wish = UsageWish {
                chunk: true,
                cost: Some("0.0000125"),
            };
            let answer = PublicAnswer {
                model: "slug",
                id: reader.answer_id(),
            };
            let out =
                String::from_utf8(writer.end_at_limit(answer, None, &USAGE, wish)).expect("UTF-8");
            insta::assert_snapshot!(format!("ending-{family}-{name}"), out);
            let out = writer.end_at_limit(answer, Some(WORDS), &USAGE, wish);
            let out = String::from_utf8(out).expect("UTF-8");
            insta::assert_snapshot!(format!("ending-with-words-{family}-{name}"), out);
        }
    }
}

fn line(raw: &[u8], event: Option<&str>, facts: &FrameFacts) -> String {
    let mut out = format!("{:32}", event.unwrap_or("-"));
    if let Some(span) = facts.marks.model.clone() {
        write!(out, " model={}", String::from_utf8_lossy(&raw[span])).expect("a string");
    }
    if facts.shown.bytes() > 0 {
        write!(out, " shown={}+{}", facts.shown.ascii, facts.shown.other).expect("a string");
    }
    if let Some(at) = facts.marks.usage_end {
        assert_eq!(raw[at], b'}');
        write!(
            out,
            " usage_end={}",
            if facts.marks.usage_empty {
                "empty"
            } else {
                "yes"
            }
        )
        .expect("a string");
    }
    let flags = [
        ("hidden", facts.hidden),
        ("usage", facts.usage),
        ("stop", facts.stop.is_some()),
        ("last", facts.last),
        ("end", facts.end),
        ("usage_only", facts.usage_only),
    ];
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        write!(out, " {name}").expect("a string");
    }
    if let Some(error) = &facts.error {
        write!(out, " {error:?}").expect("a string");
    }
    out
}
