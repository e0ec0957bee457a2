//! How far two requests begin alike: conversations that grow, whose marks move, or that part from each other.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

use std::hash::{BuildHasherDefault, DefaultHasher};

use farebox_protocol::Family;
use farebox_protocol::talk::{Beginning, Beginnings};
use proptest::prelude::*;
use serde_json::{Value, json};

fn beginnings(family: Family, body: &Value) -> Beginnings {
    let body = body.to_string();
    let seen = family.protocol().inspect(body.as_bytes(), 1).expect("good");
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let text = seen.content.text.bytes();
    seen.places
        .talk
        .beginnings(body.as_bytes(), &[], text, &hasher)
}

/// How many beginnings two requests have in common, the one without any message included.
fn common(family: Family, one: &Value, two: &Value) -> usize {
    let (one, two) = (beginnings(family, one), beginnings(family, two));
    one.all
        .iter()
        .zip(&two.all)
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
        // The limit, and how the answer comes, may change.
        let limit = if family == Family::Responses {
            "max_output_tokens"
        } else {
            "max_tokens"
        };
        (long[limit], long["stream"]) = (json!(8), json!(false));
        assert_eq!(common(family, &short, &long), 3, "{family}");
        for other in ["metadata", "temperature", "prompt_cache_key", "unknown"] {
            let mut changed = long.clone();
            changed[other] = json!({"turn": "2"});
            if other == "temperature" {
                changed[other] = json!(0.5);
            }
            if other == "prompt_cache_key" {
                changed[other] = json!("another");
            }
            assert_eq!(
                common(family, &short, &changed),
                0,
                "{family}: {other} stands before all"
            );
        }
    }
}

#[test]
fn what_is_sent_around_a_body_stands_before_all() {
    let body = request(Family::Chat, &[message(Family::Chat, "a", false)]).to_string();
    let seen = Family::Chat
        .protocol()
        .inspect(body.as_bytes(), 1)
        .expect("good");
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let hash = |around: &[&[u8]]| {
        let talk = &seen.places.talk;
        talk.beginnings(body.as_bytes(), around, 1, &hasher).all[0].hash
    };
    assert_ne!(hash(&[b"beta", b"one"]), hash(&[b"beta", b"two"]));
    assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    assert_eq!(hash(&[b"beta", b"one"]), hash(&[b"beta", b"one"]));
}

#[test]
fn a_mark_is_a_place_and_moves_nothing() {
    let family = Family::Messages;
    let said = |marked: &[&str]| {
        let said: Vec<Value> = ["a", "b", "c"]
            .iter()
            .map(|text| message(family, text, marked.contains(text)))
            .collect();
        beginnings(family, &request(family, &said))
    };
    let hashes = |of: &[Beginning]| -> Vec<u64> { of.iter().map(|one| one.hash).collect() };
    let (two, other) = (said(&["a", "c"]), said(&["a", "b"]));
    assert_eq!(hashes(&two.all), hashes(&other.all));
    assert_eq!(
        two.marks.iter().map(|mark| mark.turn).collect::<Vec<_>>(),
        [1, 3]
    );
    assert_eq!(two.marks[0], other.marks[0]);
    assert_ne!(two.marks[1].hash, other.marks[1].hash);
    assert_eq!(said(&[]).marks, []);
}

/// What stands behind an address may be another picture the next time.
#[test]
fn nothing_is_in_common_from_a_picture_at_an_address_on() {
    let family = Family::Chat;
    let picture = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]});
    let said = [
        message(family, "a", false),
        picture,
        message(family, "b", false),
    ];
    let found = beginnings(family, &request(family, &said));
    assert_eq!(found.all.len(), 2, "without any message, and the first");
}

#[test]
fn longer_beginnings_weigh_more_and_the_longest_all() {
    for family in Family::ALL {
        let said: Vec<Value> = (0..4)
            .map(|_| message(family, &"word ".repeat(100), false))
            .collect();
        let found = beginnings(family, &request(family, &said));
        let weights: Vec<u64> = found.all.iter().map(|one| one.weight).collect();
        assert!(weights.is_sorted(), "{family}: {weights:?}");
        assert_eq!(weights[4], found.weight, "{family}");
        assert!(weights[4] - weights[0] >= 2_000, "{family}: {weights:?}");
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
        let talk = &seen.places.talk;
        let found = talk.beginnings(body.as_bytes(), &[], 1, &hasher);
        found.all.last().map(|whole| whole.hash)
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
