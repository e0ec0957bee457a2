//! Answers recorded from real servers, passed on within their family: byte for byte, but for the model's name and what the rule of the
//! envelope names. The snapshot lists every member that goes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use farebox_protocol::{Additions, Family, FrameMarks};
use serde_json::Value;

use super::help::frame;
use super::recorded::{recordings, stream_of};

/// A provider whose additions tell nothing by their values: what goes, goes by its name.
#[derive(Debug)]
struct Discreet;

impl Additions for Discreet {
    fn allows(&self, _name: &str) -> bool {
        false
    }

    fn is_harmless(&self, _member: &str) -> bool {
        true
    }
}

/// Takes from the text the members that go, and notes their names. What stays is the text itself, in its order.
fn removed(text: &str, marks: &FrameMarks, names: &mut BTreeSet<String>) {
    let more = marks.more().cloned().unwrap_or_default();
    let mut cuts: Vec<Range<usize>> = more.cuts;
    cuts.sort_by_key(|cut| cut.start);
    for cut in cuts {
        let cut = text.get(cut).expect("whole characters");
        let member = cut.trim_matches([',', ' ', '\n']);
        let object: Value = serde_json::from_str(&format!("{{{member}}}")).expect("one member");
        let members = object.as_object().expect("an object");
        assert_eq!(members.len(), 1, "one member at a time: {cut}");
        names.extend(members.keys().cloned());
    }
    for model in marks.model.iter().chain(&more.models) {
        let name = text.get(model.clone()).expect("whole characters");
        assert!(name.starts_with('"') && name.ends_with('"'), "{name}");
    }
}

/// The names of the members that go from one recording.
fn gone(family: Family, name: &str, text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match stream_of(family, name, text) {
        None => {
            let read = (family.protocol()).read_answer_with(text.as_bytes(), Some(&Discreet));
            let Some(facts) = read else {
                return BTreeSet::from(["(no answer)".to_owned()]);
            };
            if facts.error.is_none() && !facts.complete {
                names.insert("(no answer)".to_owned());
            }
            removed(text, &facts.marks, &mut names);
        }
        Some(data) => {
            let mut reader = family.protocol().reader();
            let additions: Arc<dyn Additions> = Arc::new(Discreet);
            reader.allow(&additions);
            for data in data {
                let frame = frame(&data);
                let facts = reader.read(&frame);
                let raw = std::str::from_utf8(frame.raw()).expect("a text");
                removed(raw, &facts.marks, &mut names);
                if facts.unfamiliar {
                    names.insert("(an event that is scrubbed)".to_owned());
                }
            }
        }
    }
    names
}

#[test]
fn recorded_answers_lose_nothing_but_what_the_envelopes_rule_names() {
    let mut told = String::new();
    for family in Family::ALL {
        for (name, text) in recordings(family) {
            let gone = gone(family, &name, &text);
            if !gone.is_empty() {
                let gone: Vec<String> = gone.into_iter().collect();
                writeln!(told, "{family} {name}: {}", gone.join(", ")).expect("a text");
            }
        }
    }
    insta::assert_snapshot!(told);
}
