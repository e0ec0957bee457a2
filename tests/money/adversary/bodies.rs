//! Bodies by somebody who has read how requests are counted.

use std::io::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::super::attacks::Written;
use super::super::bodies::{PROSE, document, family, light, picture, png, random, said, talk};
use crate::support::load::Dice;
use crate::support::pdf::{noted, pdf};

/// A placeholder in a body for JSON that no library writes.
pub(super) const HERE: &str = "@@";

/// A request with a placeholder for its only message's content.
pub(super) fn marked(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let mut body = said(family, json!(HERE), 100);
    body["stream"] = json!(dice.below(2) == 0);
    (family, body)
}

/// Two members of one name: a parser that takes the other one reads, produces or does more.
pub(super) fn twice(dice: &mut Dice, body: String) -> Written {
    let mark = format!("\"{HERE}\"");
    let long = PROSE.repeat(300);
    let film = r#"{"url":"gs://bucket/film.mp4","url":"https://example.com/a.png"}"#;
    let content = |part: &str| body.replace(&mark, &format!("[{part}]"));
    let front = |member: &str| body.replacen('{', &format!("{{{member},"), 1);
    let written = match dice.below(12) {
        0 => front(r#""max_tokens":64000"#),
        1 => front(r#""max_output_tokens":64000"#),
        2 => front(r#""model":"test-blind""#),
        3 => front(r#""stream":false"#),
        4 => front(&format!(
            r#""messages":[{{"role":"user","content":"{long}"}}]"#
        )),
        5 => body.replace(
            "\"role\":\"user\"",
            &format!(r#""role":"user","content":"{long}""#),
        ),
        6 => content(&format!(r#"{{"type":"image_url","image_url":{film}}}"#)),
        7 => content(
            r#"{"type":"input_image","image_url":"gs://bucket/film.mp4","image_url":"https://example.com/a.png"}"#,
        ),
        8 => content(
            r#"{"type":"image_url","image_url":{"url":"gs://b/film.mp4"},"file":{"url":"https://example.com/a.png"}}"#,
        ),
        9 => content(
            r#"{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"high","detail":"low"}}"#,
        ),
        10 => front(
            r#""tools":[{"type":"shell","environment":{"type":"code_interpreter"},"environment":{"type":"local"}}]"#,
        ),
        _ => front(r#""thinking":{"type":"enabled","budget_tokens":60000,"type":"disabled"}"#),
    };
    (written.into_bytes(), &[])
}

/// The same characters in forms that look smaller: escaped, invisible, joined.
pub(super) fn escaped(dice: &mut Dice, body: String) -> Written {
    let text = match dice.below(5) {
        0 => r"\u5217\u8f66\u665a\u70b9".repeat(2_500),
        1 => r"\u200b\u200d\u2060\ufeff".repeat(2_500),
        2 => r"\udb40\udc41\udb40\udc42".repeat(2_500),
        3 => "\u{200b}\u{200d}\u{2060}\u{feff}".repeat(2_500),
        _ => r"\u0061\u007a\u0071\u0078".repeat(2_500),
    };
    (body.replace(HERE, &text).into_bytes(), &[])
}

pub(super) fn compressed(dice: &mut Dice, body: String) -> Written {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let headers: &[&[(&str, &str)]] = &[
        &[("content-encoding", "gzip")],
        &[("content-encoding", "identity, gzip")],
        &[("x-content-encoding", "gzip")],
    ];
    (gzip.finish().unwrap(), headers[dice.below(3) as usize])
}

/// Text in places that are read as JSON, or as options.
pub(super) fn schemas(dice: &mut Dice) -> (Family, Value) {
    let numbers: Value = (0..8_000).map(|n| json!(n * 7_919 % 1_000_003)).collect();
    let names: Value = (0..4_000)
        .map(|n| (format!("n{}", n * 7_919 % 10_007), json!(1)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let schema = if dice.below(2) == 0 {
        json!({"enum": numbers})
    } else {
        json!({"type": "object", "properties": names})
    };
    let (family, mut body) = talk(dice, 5, 100);
    match (family, dice.below(4)) {
        (Family::Chat, 0) => {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        }
        (Family::Messages, 0) => {
            let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": schema});
            let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "x"});
            let turns = [
                json!({"role": "user", "content": "x"}),
                json!({"role": "assistant", "content": [call]}),
            ];
            body["messages"] = json!([turns[0], turns[1], {"role": "user", "content": [result]}]);
        }
        (_, 1) => body["metadata"] = json!({ "a": PROSE.repeat(200) }),
        (Family::Chat, 2) => {
            (body["user"], body["stop"]) =
                (json!(PROSE.repeat(200)), json!([PROSE.repeat(100), "x"]))
        }
        (Family::Chat, _) => {
            body["tools"] =
                json!([{"type": "function", "function": {"name": "n", "parameters": schema}}])
        }
        (Family::Responses, _) => {
            body["tools"] = json!([{"type": "function", "name": "n", "parameters": schema}])
        }
        (Family::Messages, _) => body["tools"] = json!([{"name": "n", "input_schema": schema}]),
    }
    (family, body)
}

/// Full-price pictures whose `detail` is where their family does not read it.
pub(super) fn low_detail(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let part = || {
        let mut part = picture(family, &png(2_048, 768));
        match family {
            Family::Chat => part["detail"] = json!("low"),
            Family::Messages => part["source"]["detail"] = json!("low"),
            Family::Responses => part["image_detail"] = json!("low"),
        }
        part
    };
    (
        family,
        said(family, (0..60).map(|_| part()).collect(), 1_000),
    )
}

/// A long prompt with the mark of the native family.
pub(super) fn cached(dice: &mut Dice, family: Family, lines: u64) -> (Family, Value) {
    let text = PROSE.repeat(1 + dice.below(lines) as usize);
    let part = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    (family, said(family, json!([part]), 1_000))
}

/// A predicted answer that the model will not give, in light and in ordinary text.
pub(super) fn predicted(dice: &mut Dice) -> (Family, Value) {
    let text = match dice.below(3) {
        0 => light(dice).1.to_string().chars().take(20_000).collect(),
        1 => random(dice, "bcdfghjklmnpqrstvwxz", 20_000),
        _ => PROSE.repeat(150),
    };
    let mut body = said(Family::Chat, json!("Say PONG"), 100);
    body["stream"] = json!(dice.below(2) == 0);
    body["prediction"] = json!({"type": "content", "content": text});
    (Family::Chat, body)
}

/// Pages of letters and signs that take few bytes to a token.
pub(super) static SIGNS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let sets = [
        "bcdfghjklmnpqrstvwxz",
        "!#$%&*+,-./:;<=>?@[]^_{|}~",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    ];
    sets.map(|signs| STANDARD.encode(pdf(&[random(&mut Dice::new(5), signs, 200_000).as_str()])))
});

pub(super) fn page_of_signs(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    (
        family,
        said(
            family,
            json!([document(
                family,
                "application/pdf",
                &SIGNS[dice.below(3) as usize]
            )]),
            100,
        ),
    )
}

/// A GIF whose first frame is larger than its screen, and JPEGs that lenient parsers read differently.
pub(super) static TWO_SIZES: LazyLock<[String; 3]> = LazyLock::new(|| {
    let gif = [
        b"GIF89a".as_slice(),
        &[
            1, 0, 1, 0, 0, 0, 0, b',', 0, 0, 0, 0, 0, 8, 0, 3, 0, 2, 0, 0, 0x3b,
        ],
    ]
    .concat();
    let frame = |width: u16, height: u16| {
        [
            &[0xff, 0xc0, 0, 17, 8],
            height.to_be_bytes().as_slice(),
            &width.to_be_bytes(),
            &[3, 1, 17, 0, 2, 17, 0, 3, 17, 0],
        ]
        .concat()
    };
    // The real frame after a fill byte, which one parser takes for a marker with 49,152 bytes.
    let filled = [
        &[0xff, 0xd8, 0xff],
        frame(2_048, 768).as_slice(),
        &vec![b' '; 49_152 - 18],
        &frame(8, 8),
    ]
    .concat();
    // A marker without a length: one parser takes the next bytes for it, and ends up inside a comment.
    let comment = [
        &[0xff, 0xd8, 0xff, 1, 0, 8, 0xff, 0xfe, 0, 21],
        frame(8, 8).as_slice(),
        &frame(2_048, 768),
    ]
    .concat();
    [("gif", gif), ("jpeg", filled), ("jpeg", comment)]
        .map(|(kind, bytes)| format!("data:image/{kind};base64,{}", STANDARD.encode(bytes)))
});

pub(super) fn two_sizes(dice: &mut Dice) -> (Family, Value) {
    let (family, url) = (family(dice), &TWO_SIZES[dice.below(3) as usize]);
    (
        family,
        said(family, (0..60).map(|_| picture(family, url)).collect(), 100),
    )
}

/// Content that some servers fetch or remember.
pub(super) fn foreign_part(dice: &mut Dice) -> (Family, Value) {
    let part = match dice.below(4) {
        0 => json!({"type": "document_url", "document_url": "https://example.com/book.pdf"}),
        1 => {
            json!({"type": "document_url", "document_url": {"url": "https://example.com/book.pdf"}})
        }
        2 => json!({"type": "image_url", "uuid": "a", "image_url": {"url": null}}),
        _ => json!({"type": "image_url", "uuid": "a"}),
    };
    let count = if part["type"] == "document_url" {
        1
    } else {
        60
    };
    (
        Family::Chat,
        said(Family::Chat, vec![part; count].into(), 100),
    )
}

/// A packed document, as word processors write them, declared as other types.
pub(super) static PACKED: LazyLock<String> = LazyLock::new(|| {
    let mut packed =
        flate2::write::DeflateEncoder::new(b"PK\x03\x04".to_vec(), flate2::Compression::best());
    packed.write_all(PROSE.repeat(3_000).as_bytes()).unwrap();
    STANDARD.encode(packed.finish().unwrap())
});

pub(super) fn packed(dice: &mut Dice) -> (Family, Value) {
    let media = [
        "text/plain",
        "application/json",
        "image/png",
        "application/zip",
        "",
    ][dice.below(5) as usize];
    let family = family(dice);
    (
        family,
        said(family, json!([document(family, media, &PACKED)]), 100),
    )
}

/// Reasoning as the two other families request it: much, little and none.
pub(super) fn thoughtful(dice: &mut Dice) -> (Family, Value) {
    let family = [Family::Responses, Family::Messages][dice.below(2) as usize];
    let mut body = said(family, json!("Think."), 32_000);
    match (family, dice.below(3)) {
        (_, 0) => {}
        (Family::Messages, 1) => body["thinking"] = json!({"type": "disabled"}),
        (Family::Messages, _) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 1_024})
        }
        (_, 1) => body["reasoning"] = json!({"effort": "none"}),
        (_, _) => body["reasoning"] = json!({"effort": "minimal", "summary": "auto"}),
    }
    (family, body)
}

/// What changes its place and form in translation.
pub(super) fn carried(dice: &mut Dice) -> (Family, Value) {
    let family = [Family::Responses, Family::Messages][dice.below(2) as usize];
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "description": PROSE.repeat(20)}}});
    let text = |text: String| json!({"type": if family == Family::Responses { "input_text" } else { "text" }, "text": text});
    let mut parts: Vec<Value> = (0..dice.below(20))
        .map(|_| picture(family, &png(900, 900)))
        .collect();
    parts.push(text(PROSE.repeat(1 + dice.below(200) as usize)));
    let mut body = said(family, parts.into(), 1_000);
    let tools: Vec<Value> = (0..dice.below(30))
        .map(|n| match family {
            Family::Responses => json!({"type": "function", "name": format!("n{n}"), "parameters": schema, "strict": true}),
            _ => json!({"name": format!("n{n}"), "input_schema": schema, "cache_control": {"type": "ephemeral"}}),
        })
        .collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    let words = json!(PROSE.repeat(1 + dice.below(300) as usize));
    match family {
        Family::Responses => {
            body["instructions"] = words;
            body["text"] =
                json!({"format": {"type": "json_schema", "name": "n", "schema": schema}});
        }
        _ => body["system"] = json!([{"type": "text", "text": words}]),
    }
    (family, body)
}

/// Plain text under names that mean sealed reasoning elsewhere.
pub(super) fn unsealed(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let text = random(dice, "0123456789ABCDEF列车晚点了", 60_000);
    let name = ["data", "signature", "encrypted_content"][dice.below(3) as usize];
    (
        family,
        said(
            family,
            json!([{"type": "text", "text": "x", name: text}]),
            1_000,
        ),
    )
}

pub(super) static NOTED: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(noted(&PROSE.repeat(1_500))));
