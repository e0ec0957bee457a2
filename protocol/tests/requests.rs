//! How requests are refused, and the facts of those that pass.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

use farebox_protocol::{
    BadRequest, Case, Detail, Document, Edits, ErrorBody, Family, Inspection, Picture,
    UpstreamError, messages,
};
use serde_json::{Value, json};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQgwQCgAf7gP9sXAjOAAAAABJRU5ErkJggg==";

fn good(family: Family) -> Value {
    match family {
        Family::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
        Family::Responses => json!({"model": "m", "input": "hi"}),
        Family::Messages => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        }
    }
}

/// The edits for a target that wants this model's name and passes these fields.
fn edits<'a>(model: &'a str, pass: &'a [String]) -> Edits<'a> {
    Edits {
        model,
        limit_field: "max_tokens",
        limit: None,
        pass,
        leave_out: &[],
    }
}

fn body_with(family: Family, name: &str, value: Value) -> Value {
    let mut body = good(family);
    body[name] = value;
    body
}

fn with(family: Family, name: &str, value: Value) -> Result<Inspection, BadRequest> {
    let body = body_with(family, name, value);
    family.protocol().inspect(body.to_string().as_bytes(), 0)
}

fn refused(family: Family, name: &str, value: Value) -> BadRequest {
    with(family, name, value.clone()).expect_err(&format!("{family} {name} {value}"))
}

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
            for value in bad {
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
        messages::inspect_count(count.as_bytes(), 0)
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
fn only_tokens_of_the_slug_are_bought() {
    let all: &[(&str, Value)] = &[
        ("models", json!(["a"])),
        ("provider", json!({"order": ["x"]})),
        ("api_base", json!("http://x")),
        ("base_url", json!("http://x")),
        ("fallbacks", json!(["a"])),
        ("service_tier", json!("priority")),
        ("service_tier", json!("flex")),
        ("speed", json!("fast")),
        ("route", json!("fallback")),
        ("plugins", json!([{"id": "web"}])),
        ("mcp_servers", json!([{"url": "x"}])),
        ("file_id", json!("f")),
    ];
    for family in Family::ALL {
        for (name, value) in all {
            assert_eq!(
                refused(family, name, value.clone()).param.as_deref(),
                Some(*name)
            );
            assert!(with(family, name, Value::Null).is_ok(), "{name}");
        }
        assert!(with(family, "service_tier", json!("auto")).is_ok());
        assert!(with(family, "mcp_servers", json!([])).is_ok());
        assert!(with(family, "unknown", json!({"file_id": 1, "deep": [1]})).is_ok());
    }
    let chat = [
        ("audio", json!({"voice": "x"})),
        ("modalities", json!(["text", "audio"])),
        ("web_search_options", json!({"x": 1})),
        ("best_of", json!(2)),
    ];
    chat.into_iter()
        .for_each(|(name, value)| drop(refused(Family::Chat, name, value)));
    assert!(with(Family::Chat, "modalities", json!(["text"])).is_ok());
    let responses = [
        ("previous_response_id", json!("r")),
        ("conversation", json!("c")),
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
    ];
    responses
        .into_iter()
        .for_each(|(name, value)| drop(refused(Family::Responses, name, value)));
    assert!(with(Family::Responses, "background", json!(false)).is_ok());
    assert_eq!(
        refused(Family::Responses, "reasoning", json!({"mode": "pro"}))
            .param
            .as_deref(),
        Some("reasoning.mode")
    );
    assert!(
        with(
            Family::Responses,
            "prompt_cache_options",
            json!({"ttl": "12h"})
        )
        .expect("good")
        .one_hour_cache
    );
    refused(Family::Messages, "thread", json!({"type": "create"}));
    assert!(with(Family::Messages, "service_tier", json!("standard_only")).is_ok());
    let bad = refused(Family::Messages, "container", json!("c"));
    assert_eq!(
        bad.message,
        "`container` is refused: tools that run on a server have no price here. Leave it out."
    );
    let bad = refused(
        Family::Responses,
        "input",
        json!([{"role": "user", "content": "a"}, {"type": "item_reference", "id": "x"}]),
    );
    assert_eq!(bad.param.as_deref(), Some("input[1].type"));
}

#[test]
fn server_tools_are_refused_and_searches_taken_out() {
    let refused_types = |family, types: &[&str]| {
        for kind in types {
            assert_eq!(
                refused(family, "tools", json!([{"type": kind}]))
                    .param
                    .as_deref(),
                Some("tools[0].type"),
                "{kind}"
            );
        }
    };
    refused_types(
        Family::Responses,
        &[
            "code_interpreter",
            "file_search",
            "image_generation",
            "mcp",
            "anything_new",
            "",
        ],
    );
    refused_types(
        Family::Messages,
        &[
            "web_fetch_20250910",
            "code_execution_20250825",
            "mcp_toolset",
            "web_search_2025\r\nx: y",
        ],
    );
    refused_types(Family::Chat, &["code_interpreter", "openrouter:web_search"]);
    let shell = |environment: Value| {
        with(
            Family::Responses,
            "tools",
            json!([{"type": "shell", "environment": environment}]),
        )
    };
    assert!(
        shell(json!({"type": "local"})).is_ok()
            && shell(Value::Null).is_ok()
            && shell(json!({"type": "container_auto"})).is_err()
    );
    refused(
        Family::Responses,
        "tools",
        json!([{"type": "namespace", "tools": [{"type": "web_search"}]}]),
    );
    for kind in [
        "custom",
        "bash_20250124",
        "text_editor_20250728",
        "computer_20250124",
        "memory_20250818",
    ] {
        assert_eq!(
            with(
                Family::Messages,
                "tools",
                json!([{"type": kind, "name": "n", "input_schema": {}}])
            )
            .expect(kind)
            .content
            .tools,
            1
        );
    }
    let later = json!([{"role": "user", "content": "a"}, {"type": "additional_tools", "tools": [{"type": "code_interpreter"}]}]);
    assert_eq!(
        refused(Family::Responses, "input", later).param.as_deref(),
        Some("input[1].tools[0].type")
    );
    let inline = |kind: &str| {
        let definition = json!({"type": "tool_definition", "definition": {"type": kind, "name": "n", "input_schema": {}}});
        with(
            Family::Messages,
            "messages",
            json!([{"role": "user", "content": [{"type": "tool_addition", "tool": definition}]}]),
        )
    };
    let bad = inline("advisor_20260301").expect_err("it runs on a server");
    assert_eq!(
        bad.param.as_deref(),
        Some("messages[0].content[0].tool.definition.type")
    );
    assert_eq!(inline("custom").expect("a client's tool").content.tools, 1);
    let body = json!({
        "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "mine", "input_schema": {}}, {"type": "web_search_20260101"}],
        "tool_choice": {"type": "tool", "name": "web_search"}, "model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
    });
    let text = body.to_string();
    let seen = Family::Messages
        .protocol()
        .inspect(text.as_bytes(), 0)
        .expect("good");
    assert_eq!(
        seen.removed_tools,
        ["web_search_20250305", "web_search_20260101"]
    );
    let edits = edits("u", &[]);
    let protocol = Family::Messages.protocol();
    let patched = protocol.patch(text.as_bytes(), &seen, &edits);
    let expected = r#"{"tools":[{"name":"mine","input_schema":{}}],"model":"u","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(String::from_utf8_lossy(&patched), expected);
}

#[test]
fn pictures_are_found_wherever_they_stand() {
    let url = format!("data:image/png;base64,{PNG}");
    let inline = Picture {
        bytes: Some(73),
        size: Some((3, 2)),
        detail: Detail::Auto,
    };
    let high = Picture {
        detail: Detail::High,
        ..inline.clone()
    };
    let remote = Picture {
        bytes: None,
        size: None,
        detail: Detail::Low,
    };
    let chat = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        {"image_url": {"detail": "low", "url": "https://x.example/y.png"}, "type": "image_url"},
    ]}]);
    assert_eq!(
        with(Family::Chat, "messages", chat)
            .expect("good")
            .content
            .pictures,
        [high.clone(), remote.clone()]
    );
    let input = json!([
        {"role": "user", "content": [{"type": "input_image", "image_url": url, "detail": "high"}]},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "https://x.example", "detail": "low"}]},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": url}},
    ]);
    let seen = with(Family::Responses, "input", input).expect("good");
    assert_eq!(seen.content.pictures, [high, remote, inline.clone()]);
    let block = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let native = json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "ä b"}, block]},
        {"source": {"url": "https://x.example", "type": "url"}, "type": "image"},
    ]}]);
    let seen = with(Family::Messages, "messages", native).expect("good");
    assert_eq!(
        seen.content.pictures,
        [
            inline,
            Picture {
                bytes: None,
                size: None,
                detail: Detail::Auto
            }
        ]
    );
    assert_eq!(
        (seen.content.text.ascii, seen.content.text.other),
        (3, 2),
        "the text, and the id of the call"
    );
}

#[test]
fn documents_are_counted_or_refused() {
    use base64::Engine as _;
    let pdf = "%PDF-1.4\n1 0 obj<</Type /Pages /Kids[]>>";
    let data = base64::engine::general_purpose::STANDARD.encode(pdf);
    let found = |family: Family, field: &str, value: Value| {
        let body = body_with(family, field, value).to_string();
        let seen = family.protocol().inspect(body.as_bytes(), 0).expect("good");
        let [
            Document {
                bytes,
                place,
                tokens: None,
            },
        ] = &seen.content.documents[..]
        else {
            panic!("{seen:?}")
        };
        assert_eq!(*bytes, pdf.len() as u64);
        assert_eq!(
            farebox_protocol::document_bytes(body.as_bytes(), place).expect("base64"),
            pdf.as_bytes()
        );
        assert!(seen.content.text.bytes() < 100, "its data is no text");
    };
    let url = format!("data:application/pdf;base64,{data}");
    let chat = json!([{"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": url}}]}]);
    found(Family::Chat, "messages", chat);
    let input = json!([{"role": "user", "content": [{"type": "input_file", "file_data": url}]}]);
    found(Family::Responses, "input", input);
    let block = |source: Value| json!([{"role": "user", "content": [{"type": "document", "source": source}]}]);
    found(
        Family::Messages,
        "messages",
        block(json!({"type": "base64", "media_type": "application/pdf", "data": data})),
    );
    let seen = with(
        Family::Messages,
        "messages",
        block(json!({"type": "text", "media_type": "text/plain", "data": "four"})),
    );
    assert_eq!(seen.expect("good").content.text.ascii, 4);
    let nested = json!({"type": "content", "content": [{"type": "text", "text": "abc"}]});
    assert_eq!(
        with(Family::Messages, "messages", block(nested))
            .expect("good")
            .content
            .text
            .ascii,
        3
    );
    for source in [
        json!({"type": "url", "url": "https://x.example"}),
        json!({"type": "file", "file_id": "f"}),
    ] {
        assert!(
            refused(Family::Messages, "messages", block(source))
                .param
                .expect("a path")
                .starts_with("messages[0].content[0].source")
        );
    }
    let part = |part: Value| json!([{"role": "user", "content": [part]}]);
    refused(
        Family::Chat,
        "messages",
        part(json!({"type": "file", "file": {"file_id": "f"}})),
    );
    refused(
        Family::Chat,
        "messages",
        part(json!({"type": "input_audio", "input_audio": {"data": "x"}})),
    );
    refused(
        Family::Chat,
        "messages",
        json!([{"role": "assistant", "audio": {"id": "a"}}]),
    );
    refused(
        Family::Responses,
        "input",
        part(json!({"type": "input_file", "file_url": "https://x.example"})),
    );
    refused(
        Family::Responses,
        "input",
        part(json!({"type": "input_image", "file_id": "f"})),
    );
    for address in [json!("https://x/a.pdf"), json!({"url": "https://x/a.pdf"})] {
        let bad = refused(
            Family::Chat,
            "messages",
            part(json!({"type": "document_url", "document_url": address})),
        );
        assert!(bad.param.expect("a path").ends_with("document_url"));
    }
    let packed = base64::engine::general_purpose::STANDARD.encode(b"PK\x03\x04 and so on");
    let file =
        json!({"type": "input_file", "file_data": format!("data:text/plain;base64,{packed}")});
    assert_eq!(
        with(Family::Responses, "input", part(file))
            .expect("good")
            .content
            .documents
            .len(),
        1
    );
    let many = with(
        Family::Responses,
        "input",
        part(json!({"type": "input_image", "file_id": null, "image_url": "https://x.example"})),
    );
    assert_eq!(many.expect("null is absent").content.pictures.len(), 1);
}

#[test]
fn pictures_come_from_the_web_or_inline() {
    for url in [
        "data:video/mp4;base64,AAAA",
        "gs://bucket/a.mp4",
        "file:///etc/passwd",
        "s3://b/k",
        "data:text/plain;base64,AAAA",
        "",
    ] {
        let chat = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
        let input =
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]);
        let native = json!([{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": url}}]}]);
        for (family, name, value) in [
            (Family::Chat, "messages", chat),
            (Family::Responses, "input", input),
            (Family::Messages, "messages", native),
        ] {
            let bad = refused(family, name, value);
            assert!(
                bad.param
                    .as_deref()
                    .is_some_and(|param| param.ends_with("image_url")),
                "{family} {url}: {bad:?}"
            );
        }
    }
    for (family, value) in [
        (
            Family::Chat,
            json!({"type": "file", "file": {"file_data": "data:video/mp4;base64,AAAA"}}),
        ),
        (
            Family::Chat,
            json!({"type": "file", "file": {"file_data": "gs://bucket/a.pdf"}}),
        ),
        (
            Family::Messages,
            json!({"type": "image", "source": {"type": "base64", "media_type": "video/mp4", "data": "AAAA"}}),
        ),
    ] {
        refused(
            family,
            "messages",
            json!([{"role": "user", "content": [value]}]),
        );
    }
}

#[test]
fn what_a_part_shows_is_said_once() {
    let web = "https://example.com/a.png";
    for (family, name, text) in [
        (Family::Chat, "messages", format!(r#"[{{"content":[{{"image_url":{{"url":"gs://b/a","url":"{web}"}}}}]}}]"#)),
        (Family::Chat, "messages", format!(r#"[{{"content":[{{"image_url":{{"url":"gs://b/a"}},"file":{{"url":"{web}"}}}}]}}]"#)),
        (Family::Chat, "messages", r#"[{"content":[{"file":{"file_data":"AAAA","file_data":"AA"}}]}]"#.to_owned()),
        (
            Family::Chat,
            "messages",
            format!(r#"[{{"content":[{{"image_url":{{"url":"{web}","detail":"high","detail":"low"}}}}]}}]"#),
        ),
        (Family::Responses, "input", format!(r#"[{{"content":[{{"image_url":"gs://b/a","image_url":"{web}"}}]}}]"#)),
        (Family::Messages, "thinking", r#"{"type":"enabled","type":"disabled"}"#.to_owned()),
        (
            Family::Responses,
            "tools",
            r#"[{"type":"shell","environment":{"type":"container_auto"},"environment":{"type":"local"}}]"#.to_owned(),
        ),
    ] {
        let list = if family == Family::Responses { "input" } else { "messages" };
        let others = if name == list { String::new() } else { format!(r#","{list}":[{{"role":"user","content":"x"}}]"#) };
        let body = format!(r#"{{"model":"m","max_tokens":9,"{name}":{text}{others}}}"#)
            .replace("max_tokens", if family == Family::Responses { "max_output_tokens" } else { "max_tokens" });
        let bad = family.protocol().inspect(body.as_bytes(), 0).expect_err(&body);
        assert!(bad.message.contains("twice") || bad.message.contains("same part"), "{body}: {bad:?}");
    }
}

#[test]
fn a_picture_is_cheaper_only_where_its_family_reads_its_detail() {
    let web = "https://example.com/a.png";
    let looks = |family: Family, part: Value| {
        let name = if family == Family::Responses {
            "input"
        } else {
            "messages"
        };
        let seen = with(family, name, json!([{"role": "user", "content": [part]}])).expect("good");
        seen.content.pictures[0].detail
    };
    let low = Detail::Low;
    assert_eq!(
        looks(
            Family::Chat,
            json!({"type": "image_url", "image_url": {"url": web, "detail": "low"}})
        ),
        low
    );
    assert_eq!(
        looks(
            Family::Responses,
            json!({"type": "input_image", "image_url": web, "detail": "low"})
        ),
        low
    );
    for (family, part) in [
        (
            Family::Chat,
            json!({"type": "image_url", "detail": "low", "image_url": {"url": web}}),
        ),
        (
            Family::Messages,
            json!({"type": "image", "detail": "low", "source": {"type": "url", "url": web, "detail": "low"}}),
        ),
    ] {
        assert_ne!(looks(family, part.clone()), low, "{part}");
    }
}

#[test]
fn every_string_counts_whatever_its_field() {
    let long = "some words that a template may well show to the model ".repeat(400);
    let part = |name: &str| json!([{"role": "user", "content": "x", name: long}]);
    for (family, name, value) in [
        (
            Family::Chat,
            "messages",
            json!([{"role": long, "content": "x"}]),
        ),
        (Family::Chat, "messages", part("id")),
        (Family::Chat, "messages", part("status")),
        (Family::Chat, "messages", part("annotations")),
        (
            Family::Chat,
            "messages",
            json!([{"role": "user", "content": [{"type": long, "text": "x"}]}]),
        ),
        (
            Family::Chat,
            "messages",
            json!([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": long}}]}]),
        ),
        (
            Family::Chat,
            "messages",
            json!([{"role": "user", "content": "x", long.as_str(): 1}]),
        ),
        (
            Family::Chat,
            "messages",
            json!([{"role": "user", "content": [{"type": "file", "file": {"filename": long, "file_data": "AAAA"}}]}]),
        ),
        (Family::Chat, "documents", json!([{"text": long}])),
        (Family::Chat, "chat_template_kwargs", json!({"a": long})),
        (Family::Chat, "user", json!(long)),
        (Family::Chat, "stream_options", json!({"x": long})),
        (
            Family::Messages,
            "thinking",
            json!({"type": "disabled", "x": long}),
        ),
        (
            Family::Messages,
            "system",
            json!([{"type": "text", "text": "x", "signature2": long}]),
        ),
        (
            Family::Responses,
            "input",
            json!([{"role": "user", "content": "x"}, {"type": "reasoning", "id": long}]),
        ),
        (Family::Responses, "anything_new", json!({"deep": [long]})),
    ] {
        let tokens = with(family, name, value)
            .expect("good")
            .content
            .weight
            .tokens();
        assert!(
            (4_000..9_000).contains(&tokens),
            "{family} {name}: {tokens}"
        );
    }
    let sealed = json!([{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "A".repeat(60_000)}]}]);
    let tokens = with(Family::Messages, "messages", sealed)
        .expect("good")
        .content
        .weight
        .tokens();
    assert!(
        (10_000..10_020).contains(&tokens),
        "a token per six characters: {tokens}"
    );
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
        assert_eq!(seen.removed(&[], &[]), "new_field, (unnamed), other_new");
        let pass = ["new_field".to_owned(), "brand new".to_owned()];
        assert_eq!(seen.removed(&pass, &[]), "other_new");
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
            let edits = edits("m", pass);
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
    assert!(seen.unknown.len() == 900 && (900..=1_024).contains(&seen.removed(&[], &[]).len()));
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
fn a_compaction_is_expected_from_its_trigger_on() {
    let compacts = |management: Value| {
        with(Family::Messages, "context_management", management)
            .expect("passes")
            .compacts_from
    };
    let edit = |trigger: Value| json!({"type": "compact_20260112", "trigger": trigger});
    let clears = json!({"type": "clear_thinking_20251015", "keep": "all"});
    assert_eq!(
        compacts(
            json!({"edits": [clears, edit(json!({"type": "input_tokens", "value": 60_000}))]})
        ),
        Some(60_000)
    );
    assert_eq!(
        compacts(json!({"edits": [edit(Value::Null)]})),
        Some(150_000)
    );
    assert_eq!(
        compacts(
            json!({"edits": [{"type": "compact_20260112", "instructions": "x".repeat(20_000)}]})
        ),
        Some(0),
        "not read"
    );
    assert_eq!(
        with(Family::Messages, "compaction", json!({"type": "summarize"}))
            .expect("on demand")
            .unknown,
        [""; 0]
    );
    for none in [
        Value::Null,
        json!([]),
        json!({"edits": [clears]}),
        json!({"edits": {}}),
        json!("compact_20260112"),
    ] {
        assert_eq!(compacts(none.clone()), None, "{none}");
    }
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
    assert!(
        with(Family::Chat, "usage", json!({"include": true}))
            .expect("good")
            .asks_cost
    );
    assert!(
        !with(Family::Responses, "usage", json!({"include": false}))
            .expect("good")
            .asks_cost
    );
    let thinking = with(
        Family::Messages,
        "thinking",
        json!({"budget_tokens": 31_999, "type": "enabled"}),
    )
    .expect("good");
    assert_eq!(
        (thinking.thinking_budget, thinking.hidden_reasoning),
        (Some(31_999), true)
    );
    let thinking = with(
        Family::Messages,
        "thinking",
        json!({"type": "adaptive", "display": "omitted"}),
    )
    .expect("good");
    assert_eq!(
        (thinking.thinking_budget, thinking.hidden_reasoning),
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
            .hidden_reasoning
    );
    assert!(
        !with(Family::Responses, "reasoning", json!({"effort": "none"}))
            .expect("good")
            .hidden_reasoning
    );
}

#[test]
fn errors_have_one_body_and_each_family_its_words() {
    let error = ErrorBody {
        kind: "insufficient_quota".into(),
        code: Some("insufficient_quota".into()),
        param: None,
        message: "out of balance: \"x\"".into(),
        details: Some(json!({"needed": "0.1"})),
        request_id: "req_1".into(),
    };
    let expected = r#"{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","param":null,"message":"out of balance: \"x\"","details":{"needed":"0.1"}},"request_id":"req_1"}"#;
    assert_eq!(String::from_utf8_lossy(&error.to_json()), expected);
    let words = |family: Family, case| family.protocol().words(case);
    assert_eq!(
        (
            words(Family::Messages, Case::NoTarget).status,
            words(Family::Chat, Case::NoTarget).status
        ),
        (529, 503)
    );
    assert_eq!(
        words(Family::Messages, Case::OutOfBalance).kind,
        "billing_error"
    );
    assert_eq!(
        words(Family::Responses, Case::OutOfBalance).code,
        Some("insufficient_quota")
    );
}

#[test]
fn upstream_errors_are_read_in_every_shape() {
    let read = |text: &str| {
        let error = UpstreamError::parse(text.as_bytes());
        (
            error.kind.unwrap_or_default(),
            error.code.unwrap_or_default(),
            error.message,
        )
    };
    let is = |kind: &str, code: &str, message: &str| {
        (kind.to_owned(), code.to_owned(), message.to_owned())
    };
    let cases = [
        (
            r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#,
            is("t", "c", "m"),
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}"#,
            is("overloaded_error", "", "m"),
        ),
        (
            r#"{"error":{"code":400,"message":"m","type":"invalid_request_error"}}"#,
            is("invalid_request_error", "400", "m"),
        ),
        (
            r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
            is("RESOURCE_EXHAUSTED", "429", "m"),
        ),
        (r#"{"error":"plain"}"#, is("", "", "plain")),
        (
            r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
            is("BadRequestError", "400", "m"),
        ),
        (r#"{"detail":"Not Found"}"#, is("", "", "Not Found")),
        (
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            is("", "", "field required"),
        ),
        (
            r#"{"type":"error","code":"c","message":"m","param":null,"sequence_number":3}"#,
            is("", "c", "m"),
        ),
        (" upstream timed out\n", is("", "", "upstream timed out")),
        (
            "<html><head><TITLE>502 Bad Gateway</TITLE></head></html>",
            is("", "", "502 Bad Gateway"),
        ),
        ("", is("", "", "")),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}
