//! How far two requests begin alike: conversations that grow, whose marks move, or that part from each other.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

use std::hash::{BuildHasherDefault, DefaultHasher};

use farebox_protocol::Family;
use farebox_protocol::talk::Beginning;
use proptest::prelude::*;
use serde_json::{Value, json};

fn beginnings(family: Family, body: &Value) -> Vec<Beginning> {
    let body = body.to_string();
    let seen = family.protocol().inspect(body.as_bytes(), 1).expect("good");
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    seen.places.talk.beginnings(body.as_bytes(), &hasher)
}

/// How many beginnings two requests have in common, the one without any message included.
fn common(family: Family, one: &Value, two: &Value) -> usize {
    let (one, two) = (beginnings(family, one), beginnings(family, two));
    one.iter()
        .zip(&two)
        .take_while(|(one, two)| one.hash == two.hash)
        .count()
}

fn request(family: Family, said: &[Value]) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 9, "tools": [], "stream": true});
    if family == Family::Responses {
        body = json!({"model": "m", "max_output_tokens": 9, "tools": [], "stream": true});
    }
    body[family.protocol().conversation_field()] = json!(said);
    body
}

fn message(family: Family, text: &str, marked: bool) -> Value {
    let kind = if family == Family::Responses {
        "input_text"
    } else {
        "text"
    };
    let mut part = json!({"type": kind, "text": text});
    if marked {
        part["cache_control"] = json!({"type": "ephemeral"});
    }
    json!({"role": "user", "content": [part]})
}

#[test]
fn a_conversation_that_grows_begins_as_it_was() {
    for family in Family::ALL {
        let short = request(
            family,
            &[message(family, "a", false), message(family, "b", true)],
        );
        let mut long = request(
            family,
            &["a", "b", "c"].map(|text| message(family, text, text == "c")),
        );
        assert_eq!(
            common(family, &short, &long),
            3,
            "{family}: the mark has moved"
        );
        // What the model does not read may change.
        (long["metadata"], long["stream"]) = (json!({"turn": "2"}), json!(false));
        assert_eq!(common(family, &short, &long), 3, "{family}");
        long["temperature"] = json!(0.5);
        assert_eq!(
            common(family, &short, &long),
            0,
            "{family}: all that stands outside comes first"
        );
    }
}

#[test]
fn marks_leave_no_comma_behind() {
    let with = |content: &str| {
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{content}]}}]}}"#
        );
        let seen = Family::Messages
            .protocol()
            .inspect(body.as_bytes(), 1)
            .expect("good");
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        seen.places
            .talk
            .beginnings(body.as_bytes(), &hasher)
            .last()
            .map(|whole| whole.hash)
    };
    let plain = with(r#"{"type":"text","text":"x"}"#);
    for marked in [
        r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"text", "cache_control" : {"type":"ephemeral","ttl":"5m"},"text":"x"}"#,
        r#"{"cache_control":{"type":"ephemeral"},"type":"text","text":"x"}"#,
    ] {
        assert_eq!(with(marked), plain, "{marked}");
    }
    assert_ne!(with(r#"{"type":"text","text":"x,"}"#), plain);
}

proptest! {
    #[test]
    fn two_conversations_have_in_common_what_comes_before_they_part(
        same in prop::collection::vec("[a-z]{0,5}", 0..8),
        one in prop::collection::vec("[a-z]{0,5}", 0..4),
        two in prop::collection::vec("[a-z]{0,5}", 0..4),
    ) {
        let texts = |rest: &[String]| -> Vec<String> { same.iter().chain(rest).cloned().collect() };
        let (one, two) = (texts(&one), texts(&two));
        prop_assume!(!one.is_empty() && !two.is_empty());
        let said = |family, texts: &[String]| -> Vec<Value> {
            let all = texts.iter().enumerate();
            all.map(|(at, text)| message(family, text, at % 3 == texts.len() % 3)).collect()
        };
        let truth = one.iter().zip(&two).take_while(|(one, two)| one == two).count();
        for family in Family::ALL {
            let found = common(
                family,
                &request(family, &said(family, &one)),
                &request(family, &said(family, &two)),
            );
            prop_assert_eq!(found, truth + 1);
        }
    }
}
