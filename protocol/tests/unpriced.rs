//! What other dialects call a file, a switch or a lifetime: refused by name, because nobody could say what it costs.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

use farebox_protocol::{BadRequest, Family, Inspection};
use serde_json::{Value, json};

fn with(family: Family, name: &str, value: Value) -> Result<Inspection, BadRequest> {
    let mut body = match family {
        Family::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
        Family::Responses => json!({"model": "m", "input": "hi"}),
        Family::Messages => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        }
    };
    body[name] = value;
    family.protocol().inspect(body.to_string().as_bytes(), 0)
}

/// Where the refusal says that the fault is.
fn fault(family: Family, name: &str, value: Value) -> String {
    with(family, name, value.clone())
        .expect_err(&format!("{family} {name} {value}"))
        .param
        .unwrap_or_default()
}

#[test]
fn files_in_the_words_of_other_dialects_are_refused() {
    let file = "gs://bucket/film.mp4";
    for (part, place) in [
        (
            json!({"type": "media", "mime_type": "video/mp4", "data": "AAAA"}),
            "type",
        ),
        (json!({"type": "media", "file_uri": file}), "file_uri"),
        (
            json!({"type": "text", "text": "x", "file_uri": file}),
            "file_uri",
        ),
        (
            json!({"fileData": {"mimeType": "video/mp4", "fileUri": file}}),
            "fileData",
        ),
        (
            json!({"file_data": {"mime_type": "video/mp4", "file_uri": file}}),
            "file_data",
        ),
        (
            json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}),
            "inlineData",
        ),
        (
            json!({"inline_data": {"mime_type": "video/mp4", "data": "AAAA"}}),
            "inline_data",
        ),
        (json!({"type": "file", "file": {"uri": file}}), "file.uri"),
        (
            json!({"type": "file", "file": {"url": "https://example.com/a.pdf"}}),
            "file.url",
        ),
        (
            json!({"type": "file", "file": {"fileUri": file}}),
            "file.fileUri",
        ),
        (
            json!({"type": "document", "source": {"type": "url", "uri": file}}),
            "source.uri",
        ),
        (
            json!({"type": "image", "source": {"type": "url", "file_uri": file}}),
            "source.file_uri",
        ),
        (
            json!({"type": "resource", "resource": {"uri": file, "text": "x"}}),
            "resource",
        ),
        (json!({"type": "resource_link", "name": "x"}), "type"),
    ] {
        for family in Family::ALL {
            let list = family.protocol().conversation_field();
            let said = json!([{"role": "user", "content": [part]}]);
            // A part without a type, or with one of another path, is refused for that first.
            let at = fault(family, list, said);
            let part_at = format!("{list}[0].content[0]");
            let places = [place, "type", ""];
            assert!(
                places
                    .iter()
                    .any(|place| at == format!("{part_at}.{place}").trim_end_matches('.')),
                "{family} {part}: {at}"
            );
        }
    }
    // A tool's own arguments and results may be called anything.
    let call = json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "read", "arguments": "{\"uri\":\"a\",\"resource\":1}"}}]}]);
    with(Family::Chat, "messages", call).expect("arguments are text");
    let call = json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read",
        "input": {"uri": "a", "resource": {"file_uri": "b"}}}]}]);
    with(Family::Messages, "messages", call).expect("arguments are text");
}

#[test]
fn a_cache_lifetime_that_nobody_knows_is_refused() {
    for ttl in [
        json!(3_600),
        json!("2h"),
        json!("3600s"),
        json!({}),
        json!(true),
        json!(""),
    ] {
        let mark = json!({"type": "ephemeral", "ttl": ttl});
        for family in [Family::Chat, Family::Messages] {
            assert_eq!(
                fault(family, "cache_control", mark.clone()),
                "cache_control.ttl"
            );
            let part = json!([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": mark}]}]);
            assert!(fault(family, "messages", part).ends_with("cache_control.ttl"));
        }
    }
    for ttl in [
        json!(3_600),
        json!("forever"),
        json!("h"),
        json!([]),
        json!(false),
    ] {
        for family in [Family::Chat, Family::Responses] {
            let options = json!({"ttl": ttl});
            assert_eq!(
                fault(family, "prompt_cache_options", options),
                "prompt_cache_options.ttl"
            );
        }
    }
    let marked = |ttl: Value| {
        with(
            Family::Messages,
            "cache_control",
            json!({"type": "ephemeral", "ttl": ttl}),
        )
        .expect("known")
    };
    assert!(marked(json!("1h")).one_hour_cache && marked(json!("1h")).cache_marked);
    assert!(!marked(json!("5m")).one_hour_cache && !marked(Value::Null).one_hour_cache);
}

#[test]
fn a_switch_is_off_only_when_it_says_so() {
    for (family, name) in [
        (Family::Chat, "enable_search"),
        (Family::Responses, "background"),
    ] {
        for value in [json!({}), json!([]), json!(""), json!(0), json!(true)] {
            assert_eq!(fault(family, name, value), name);
        }
        with(family, name, json!(false)).expect("off");
        with(family, name, Value::Null).expect("absent");
    }
}

#[test]
fn a_compaction_that_no_usage_shows_is_refused() {
    let compacts = json!([{"type": "compaction", "compact_threshold": 1_000}]);
    assert_eq!(
        fault(Family::Responses, "context_management", compacts),
        "context_management"
    );
    with(Family::Responses, "context_management", json!([])).expect("nothing to do");
}
