//! What the model will read: text, pictures and documents, wherever they stand.

use farebox_protocol::{Document, Family, ImageDetail, Picture};
use serde_json::{Value, json};

use super::{PNG, body_with, refused, with};

#[test]
fn pictures_are_found_wherever_they_stand() {
    let url = format!("data:image/png;base64,{PNG}");
    let inline = Picture {
        bytes: Some(73),
        size: Some((3, 2)),
        detail: ImageDetail::Auto,
    };
    let high = Picture {
        detail: ImageDetail::High,
        ..inline.clone()
    };
    let remote = Picture {
        bytes: None,
        size: None,
        detail: ImageDetail::Low,
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
                detail: ImageDetail::Auto
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
                bad.param.as_deref().is_some_and(|param| param.ends_with(
                    if family == Family::Messages {
                        "content[0].source.url"
                    } else {
                        "content[0].image_url"
                    }
                )),
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
    let low = ImageDetail::Low;
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
