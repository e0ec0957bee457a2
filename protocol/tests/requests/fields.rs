//! Fields of the wrong kind, written twice, unknown or unsold; and the wishes that are read from good ones.

use farebox_protocol::{Family, TargetFit};
use serde_json::{Value, json};

use super::{edits, good, passing, refused, with};

fn limits(family: Family) -> &'static [&'static str] {
    match family {
        Family::Chat => &["max_tokens", "max_completion_tokens", "n"],
        Family::Responses => &["max_output_tokens"],
        Family::Messages => &["max_tokens"],
    }
}

#[test]
fn limits_are_integers_in_range_or_absent() {
    for family in Family::ALL {
        for name in limits(family) {
            let bad = [
                json!(0),
                json!(-1),
                json!(2_147_483_648_u64),
                json!(9_223_372_036_854_775_808_u64),
                json!("10"),
                json!(0.5),
                json!(true),
                json!([]),
                json!({}),
            ];
            // On messages, 0 asks for no answer.
            let skipped = usize::from(family == Family::Messages);
            for value in bad.into_iter().skip(skipped) {
                assert_eq!(refused(family, name, value).param.as_deref(), Some(*name));
            }
            for literal in ["1e308", "1e3", "-0", "1.0", "99999999999999999999999"] {
                let body = good(family)
                    .to_string()
                    .replacen('{', &format!("{{\"{name}\":{literal},"), 1)
                    .replace(",\"max_tokens\":9", "");
                let bad = family
                    .protocol()
                    .inspect(body.as_bytes(), 0)
                    .expect_err(literal);
                assert_eq!(bad.param.as_deref(), Some(*name), "{literal}");
            }
            if family != Family::Messages {
                assert_eq!(
                    with(family, name, Value::Null)
                        .expect("null is absent")
                        .limit,
                    None
                );
            }
        }
    }
    assert_eq!(
        with(Family::Chat, "max_tokens", json!(2_147_483_647))
            .expect("good")
            .limit,
        Some(2_147_483_647)
    );
    assert_eq!(
        with(Family::Chat, "n", json!(128)).expect("good").choices,
        128
    );
    assert_eq!(
        refused(Family::Chat, "n", json!(129)).param.as_deref(),
        Some("n")
    );
    let both = json!({"model": "m", "messages": [{}], "max_tokens": 5, "max_completion_tokens": 6});
    assert!(
        Family::Chat
            .protocol()
            .inspect(both.to_string().as_bytes(), 0)
            .is_err()
    );
    assert_eq!(
        refused(Family::Messages, "max_tokens", Value::Null)
            .param
            .as_deref(),
        Some("max_tokens")
    );
}

#[test]
fn required_fields_have_their_types() {
    for family in Family::ALL {
        for value in [Value::Null, json!(1), json!([]), json!({})] {
            assert_eq!(
                refused(family, "model", value).param.as_deref(),
                Some("model")
            );
        }
        assert_eq!(
            with(family, "model", json!(""))
                .expect("an empty name is a 404")
                .model,
            ""
        );
        assert_eq!(
            refused(family, "stream", json!("true")).param.as_deref(),
            Some("stream")
        );
        assert!(
            !with(family, "stream", Value::Null)
                .expect("null is absent")
                .stream
        );
        let list = if family == Family::Responses {
            "input"
        } else {
            "messages"
        };
        for value in [Value::Null, json!(1), json!({}), json!([])] {
            assert_eq!(refused(family, list, value).param.as_deref(), Some(list));
        }
        let mut body = good(family);
        body.as_object_mut().expect("an object").remove(list);
        assert_eq!(
            family
                .protocol()
                .inspect(body.to_string().as_bytes(), 0)
                .expect_err("nothing to read")
                .param
                .as_deref(),
            Some(list)
        );
    }
    let count = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    assert_eq!(
        Family::Messages
            .protocol()
            .inspect_count(count.as_bytes(), 0)
            .expect("no limit is needed")
            .limit,
        None
    );
    assert!(
        Family::Messages
            .protocol()
            .inspect(count.as_bytes(), 0)
            .is_err()
    );
}

#[test]
fn broken_json_is_refused() {
    let deep = |depth: usize| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":""}}],"x":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let deep_known = format!(
        r#"{{"model":"m","messages":{}{}}}"#,
        "[{\"content\":".repeat(80),
        "}]".repeat(80)
    );
    let bodies: &[&[u8]] = &[
        b"",
        b" ",
        b"null",
        b"[]",
        b"\"x\"",
        b"{",
        b"{}x",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\":1,}",
        b"{,}",
        b"{'a':1}",
        b"\xef\xbb\xbf{}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}{}",
        b"{\"model\":\"m\x00\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}",
        b"{\"model\":\"m\xff\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":01}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":NaN}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":\"\\x\"}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":\"\\u12g4\"}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":\"\n\"}",
        b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"x\":\x00}",
    ];
    for family in Family::ALL {
        for body in bodies.iter().copied().chain([
            deep(128).as_bytes(),
            deep(100_000).as_bytes(),
            deep_known.as_bytes(),
        ]) {
            let bad = family
                .protocol()
                .inspect(body, 0)
                .expect_err(&String::from_utf8_lossy(&body[..body.len().min(60)]));
            assert!(!bad.message.is_empty());
        }
    }
    assert!(
        Family::Chat
            .protocol()
            .inspect(deep(127).as_bytes(), 0)
            .is_ok()
    );
    let lone = r#"{"model":"m\ud800","messages":[{"role":"user","content":"\udfff"}]}"#;
    assert_eq!(
        Family::Chat
            .protocol()
            .inspect(lone.as_bytes(), 0)
            .expect("tolerated")
            .model,
        "m\u{fffd}"
    );
}

#[test]
fn a_top_level_key_stands_once() {
    for (first, second) in [
        ("model", "model"),
        ("model", r"mod\u0065l"),
        ("x", "x"),
        ("a\u{fc}", r"a\u00fc"),
    ] {
        let body = format!(
            r#"{{"{first}":"m","messages":[{{"role":"user","content":"x"}}],"{second}":"n","model2":1}}"#
        );
        let bad = Family::Chat
            .protocol()
            .inspect(body.as_bytes(), 0)
            .expect_err(second);
        assert!(bad.message.contains("twice"), "{bad:?}");
    }
}

#[test]
fn a_field_in_no_table_is_named_and_taken_out_for_who_does_not_pass_it() {
    let text = r#"{"new_field":{"a":[1]},"model":"m","max_tokens":9,"brand new":1,"messages":[{"role":"user","content":"x"}],"other_new":"y"}"#;
    for family in Family::ALL {
        let text = if family == Family::Responses {
            text.replace("messages", "input")
                .replace("max_tokens", "max_output_tokens")
        } else {
            text.to_owned()
        };
        let seen = family
            .protocol()
            .inspect(text.as_bytes(), 0)
            .expect("it says what it found");
        assert_eq!(seen.unknown, ["new_field", "brand new", "other_new"]);
        assert_eq!(
            seen.removed(TargetFit::anything()),
            "new_field, (unnamed), other_new"
        );
        let pass = ["new_field".to_owned(), "brand new".to_owned()];
        assert_eq!(seen.removed(&passing(&pass)), "other_new");
        assert_eq!(
            (
                seen.unsold(|name| name == "brand new"),
                seen.unsold(|_| true)
            ),
            (Some("new_field"), None)
        );
        for (pass, kept) in [
            (&pass[..0], vec![]),
            (&pass[..1], vec!["new_field"]),
            (&pass[..], vec!["new_field", "brand new"]),
        ] {
            let fit = passing(pass);
            let edits = edits("m", &fit);
            let patched = family.protocol().patch(text.as_bytes(), &seen, &edits);
            let patched: Value = serde_json::from_slice(&patched).expect("still JSON");
            let names: Vec<&str> = patched
                .as_object()
                .expect("an object")
                .keys()
                .map(String::as_str)
                .collect();
            let found: Vec<&str> = seen
                .unknown
                .iter()
                .map(String::as_str)
                .filter(|name| names.contains(name))
                .collect();
            assert_eq!(found, kept, "{family}: {patched}");
        }
    }
    let many: serde_json::Map<String, Value> = (0..900)
        .map(|at| (format!("new_field_{at}"), json!(1)))
        .collect();
    let mut body = good(Family::Messages);
    body.as_object_mut().expect("an object").extend(many);
    let seen = Family::Messages
        .protocol()
        .inspect(body.to_string().as_bytes(), 0)
        .expect("good");
    assert!(
        seen.unknown.len() == 900
            && (900..=1_024).contains(&seen.removed(TargetFit::anything()).len())
    );
}

#[test]
fn what_presence_switches_on_is_refused_even_when_it_is_empty() {
    for (family, name) in [
        (Family::Chat, "web_search_options"),
        (Family::Chat, "search_parameters"),
        (Family::Responses, "search_parameters"),
        (Family::Messages, "container"),
    ] {
        for value in [json!({}), json!([]), json!(false)] {
            assert_eq!(refused(family, name, value).param.as_deref(), Some(name));
        }
    }
    for family in [Family::Chat, Family::Responses] {
        let bad = refused(
            family,
            "tools",
            json!([{"function": {"name": "f"}, "name": "f"}]),
        );
        assert_eq!(
            (bad.param.as_deref(), bad.code),
            (Some("tools[0].type"), Some("unsupported_tool"))
        );
    }
    assert!(
        with(
            Family::Messages,
            "tools",
            json!([{"name": "f", "input_schema": {}}])
        )
        .is_ok(),
        "a missing type is custom"
    );
}

#[test]
fn wishes_are_seen() {
    let hour = json!([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}]);
    assert!(
        with(Family::Messages, "messages", hour.clone())
            .expect("good")
            .one_hour_cache
    );
    assert!(
        with(Family::Chat, "messages", hour)
            .expect("good")
            .one_hour_cache
    );
    let tool = json!([{"name": "t", "input_schema": {"ttl": 1}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
    assert!(
        with(Family::Messages, "tools", tool)
            .expect("good")
            .one_hour_cache
    );
    assert!(
        !with(
            Family::Messages,
            "cache_control",
            json!({"type": "ephemeral", "ttl": "5m"})
        )
        .expect("good")
        .one_hour_cache
    );
    for (family, wish, shows, asks) in [
        (Family::Chat, json!({"include": true}), true, true),
        (Family::Chat, json!({"include": null}), true, false),
        (Family::Chat, json!(null), true, false),
        (Family::Chat, json!({"include": false}), false, false),
        (Family::Responses, json!({}), true, false),
        (Family::Responses, json!({"include": false}), false, false),
    ] {
        let seen = with(family, "usage", wish.clone()).expect("good");
        let read = (seen.shows_cost(family), seen.asks_usage);
        assert_eq!(read, (shows, asks), "{family:?} {wish}");
    }
    let native = with(Family::Messages, "system", json!("hi")).expect("good");
    assert!(!native.shows_cost(Family::Messages));
    let thinking = with(
        Family::Messages,
        "thinking",
        json!({"budget_tokens": 31_999, "type": "enabled"}),
    )
    .expect("good");
    assert_eq!(
        (thinking.thinking_budget, thinking.thinking.hidden),
        (Some(31_999), true)
    );
    let thinking = with(
        Family::Messages,
        "thinking",
        json!({"type": "adaptive", "display": "omitted"}),
    )
    .expect("good");
    assert_eq!(
        (thinking.thinking_budget, thinking.thinking.hidden),
        (None, true)
    );
    assert_eq!(
        refused(
            Family::Messages,
            "thinking",
            json!({"type": "enabled", "budget_tokens": -1})
        )
        .param
        .as_deref(),
        Some("thinking.budget_tokens")
    );
    assert!(
        with(Family::Chat, "reasoning_effort", json!("high"))
            .expect("good")
            .thinking
            .hidden
    );
    assert!(
        !with(Family::Responses, "reasoning", json!({"effort": "none"}))
            .expect("good")
            .thinking
            .hidden
    );
}

#[test]
fn a_refusal_carries_what_would_be_taken() {
    let refusals = [
        (Family::Chat, "models", json!(["a"])),
        (Family::Chat, "web_search_options", json!({})),
        (Family::Chat, "modalities", json!(["audio"])),
        (Family::Chat, "audio", json!({"voice": "a"})),
        (Family::Responses, "previous_response_id", json!("resp_1")),
        (Family::Responses, "conversation", json!("conv_1")),
        (Family::Responses, "background", json!(true)),
        (Family::Responses, "prompt", json!({"id": "p"})),
        (Family::Messages, "mcp_servers", json!([{"url": "u"}])),
        (Family::Messages, "container", json!("c")),
    ];
    for (family, name, value) in refusals {
        let bad = refused(family, name, value);
        let details = bad.details(true).expect("a remedy");
        let remedy = details["remedies"][0].as_object().expect("members");
        let mut body = good(family);
        for (name, value) in remedy {
            body[name] = value.clone();
        }
        let taken = family.protocol().inspect(body.to_string().as_bytes(), 0);
        assert!(taken.is_ok(), "{family} {name}: {details}");
    }
    let stored = refused(Family::Responses, "previous_response_id", json!("resp_1"));
    assert!(
        stored.message.contains("set `store` to false"),
        "{}",
        stored.message
    );
}
