//! The attempts of an adversary who wants the operator to lose money, and who has read how requests are counted.
//!
//! Data for `exposure.rs`, in addition to the kinds in `attacks.rs`; the last tests here are attempts that do not fit a kind.

use std::io::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_ledger::{Act, Change, KeyChange, KeySettings, SecretHash};
use farebox_protocol::Family;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::attacks::{
    Attack, EVERY, HONEST, PROSE, Written, anything, document, family, light, picture, png, random,
    said, side_by_side, streamed, talk,
};
use crate::support::billing::{Bills, Manner, Thinks};
use crate::support::load::{Dice, sized};
use crate::support::pdf::{noted, pdf};
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, ask, path};

/// A placeholder in a body for JSON that no library writes.
const HERE: &str = "@@";

/// All attempts.
pub(super) fn all() -> Vec<Attack> {
    let slow = |_: &mut Dice| Manner {
        late: 20,
        pace: 10,
        limited: true,
        ..Manner::default()
    };
    let silent = |dice: &mut Dice| Manner {
        silent_usage: dice.below(2) == 0,
        pace: 3,
        limited: true,
        ..Manner::default()
    };
    vec![
        Attack {
            name: "names written twice, on $2",
            balance: "2",
            asks: marked,
            written: twice,
            ..HONEST
        },
        Attack {
            name: "escapes, zero widths, tags, on $5",
            balance: "5",
            asks: marked,
            written: escaped,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "compressed bodies",
            asks: |dice| talk(dice, 100, 100),
            written: compressed,
            ..HONEST
        },
        Attack {
            name: "large schemas, arguments, options, on $5",
            balance: "5",
            asks: schemas,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "nested to the limit, on $2",
            balance: "2",
            asks: |dice| {
                let text = json!(PROSE.repeat(60));
                let deep = (0..60).fold(
                    text,
                    |inside, _| json!([{"type": "text", "content": inside}]),
                );
                let family = family(dice);
                (family, said(family, deep, 100))
            },
            dear: true,
            ..HONEST
        },
        Attack {
            name: "low detail where nobody reads it, left before the finish",
            manner: slow,
            asks: |dice| streamed(low_detail(dice)),
            leaves: |_| Some(150),
            ..HONEST
        },
        Attack {
            name: "cache writes, left at any moment",
            manner: |_| Manner {
                caches: true,
                late: 60,
                pace: 3,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(cached(dice, Family::Messages, 800)),
            leaves: |dice| Some(dice.below(300)),
            ..HONEST
        },
        Attack {
            name: "cache marks on long chats, left at any moment",
            manner: |_| Manner {
                caches: true,
                late: 60,
                pace: 3,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(cached(dice, Family::Chat, 3_000)),
            leaves: |dice| Some(dice.below(300)),
            ..HONEST
        },
        Attack {
            name: "predictions of which nothing is taken, on $3",
            balance: "3",
            asks: predicted,
            ..HONEST
        },
        Attack {
            name: "the same without usage, left at any moment",
            manner: silent,
            asks: |dice| streamed(predicted(dice)),
            leaves: |dice| Some(100 + dice.below(200)),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "notes and form fields, on $5",
            balance: "5",
            asks: |dice| {
                let family = family(dice);
                (
                    family,
                    said(
                        family,
                        json!([document(family, "application/pdf", &NOTED)]),
                        100,
                    ),
                )
            },
            dear: true,
            ..HONEST
        },
        Attack {
            name: "streams that nobody reads",
            // Every day at most 20,000 characters a second on each stream: a busy machine reads more than that too late.
            manner: |_| Manner {
                pace: sized(3, 1),
                piece: sized(60, 400) as usize,
                limited: true,
                ..Manner::default()
            },
            answers: |_| PROSE.repeat(700),
            asks: |dice| streamed(talk(dice, 5, 30_000)),
            deaf: true,
            leaves: |dice| Some(100 + dice.below(900)),
            ..HONEST
        },
        Attack {
            name: "prose and then consonants, on $3",
            balance: "3",
            manner: |_| Manner {
                pace: side_by_side(),
                piece: 60,
                limited: true,
                ..Manner::default()
            },
            answers: |dice| PROSE.repeat(20) + &random(dice, "bcdfghjklmnpqrstvwxz", 6_000),
            asks: |dice| streamed(talk(dice, 5, 20_000)),
            ..HONEST
        },
        Attack {
            name: "dense text on pages, left before the finish",
            manner: slow,
            asks: |dice| streamed(page_of_signs(dice)),
            leaves: |_| Some(sized(400, 1_000)),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "dense text on pages, on $3",
            balance: "3",
            asks: page_of_signs,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "pictures that say two sizes, left before the finish",
            manner: slow,
            asks: |dice| streamed(two_sizes(dice)),
            leaves: |_| Some(sized(300, 1_000)),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "pictures that say two sizes, on $3",
            balance: "3",
            asks: two_sizes,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "parts of other servers, on $1",
            balance: "1",
            asks: foreign_part,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "packed files called text, on $3",
            balance: "3",
            asks: packed,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "text where only seals are read, left before the finish",
            manner: slow,
            asks: |dice| streamed(unsealed(dice)),
            leaves: |_| Some(sized(400, 1_000)),
            ..HONEST
        },
        Attack {
            name: "whole answers that take too long",
            provider: "timeouts = { whole = \"300ms\" }",
            manner: |_| Manner {
                late: 1_000,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| {
                let (family, mut body) = talk(dice, 900, 32_000);
                body["stream"] = json!(false);
                (family, body)
            },
            ..HONEST
        },
        Attack {
            name: "long streams that nobody reads, all left at once",
            manner: |_| Manner {
                pace: sized(3, 1),
                piece: 60,
                limited: true,
                ..Manner::default()
            },
            answers: |_| PROSE.repeat(sized(700, 2_500) as usize),
            asks: |dice| streamed(talk(dice, 5, 60_000)),
            deaf: true,
            leaves: |_| Some(sized(1_000, 4_000)),
            ..HONEST
        },
        Attack {
            name: "large prompts on $0.30, left at once",
            balance: "0.30",
            manner: |_| Manner {
                late: 60,
                pace: 3,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(talk(dice, 900, 1_000)),
            leaves: |dice| Some(dice.below(120)),
            ..HONEST
        },
        Attack {
            name: "budgets and efforts, translated to chat, left while it reasons",
            speaks: "[\"chat\"]",
            reasons: true,
            manner: |_| Manner {
                hidden: 16_000,
                late: 5,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(thoughtful(dice)),
            leaves: |_| Some(sized(600, 4_000)),
            by_the_clock: true,
            ..HONEST
        },
        Attack {
            name: "reasoning before the first frame, left at once",
            speaks: "[\"chat\"]",
            reasons: true,
            manner: |_| Manner {
                hidden: sized(260, 1_000),
                thinks: Thinks::BeforeFrames,
                pace: 20,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(talk(dice, 5, 32_000)),
            seen_before: true,
            leaves: |dice| Some(50 + dice.below(500)),
            ..HONEST
        },
        Attack {
            name: "system prompts, tools, pictures and schemas, translated to chat, left before the finish",
            speaks: "[\"chat\"]",
            manner: slow,
            asks: |dice| streamed(carried(dice)),
            leaves: |dice| Some(150 + dice.below(150)),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "anything at random, translated to responses",
            speaks: "[\"responses\"]",
            ..anything()
        },
        Attack {
            name: "anything at random, translated to messages",
            speaks: "[\"messages\"]",
            ..anything()
        },
    ]
}

/// A request with a placeholder for its only message's content.
fn marked(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let mut body = said(family, json!(HERE), 100);
    body["stream"] = json!(dice.below(2) == 0);
    (family, body)
}

/// Two members of one name: a parser that takes the other one reads, produces or does more.
fn twice(dice: &mut Dice, body: String) -> Written {
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
fn escaped(dice: &mut Dice, body: String) -> Written {
    let text = match dice.below(5) {
        0 => r"\u5217\u8f66\u665a\u70b9".repeat(2_500),
        1 => r"\u200b\u200d\u2060\ufeff".repeat(2_500),
        2 => r"\udb40\udc41\udb40\udc42".repeat(2_500),
        3 => "\u{200b}\u{200d}\u{2060}\u{feff}".repeat(2_500),
        _ => r"\u0061\u007a\u0071\u0078".repeat(2_500),
    };
    (body.replace(HERE, &text).into_bytes(), &[])
}

fn compressed(dice: &mut Dice, body: String) -> Written {
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
fn schemas(dice: &mut Dice) -> (Family, Value) {
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
fn low_detail(dice: &mut Dice) -> (Family, Value) {
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
fn cached(dice: &mut Dice, family: Family, lines: u64) -> (Family, Value) {
    let text = PROSE.repeat(1 + dice.below(lines) as usize);
    let part = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    (family, said(family, json!([part]), 1_000))
}

/// A predicted answer that the model will not give, in light and in ordinary text.
fn predicted(dice: &mut Dice) -> (Family, Value) {
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
static SIGNS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let sets = [
        "bcdfghjklmnpqrstvwxz",
        "!#$%&*+,-./:;<=>?@[]^_{|}~",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    ];
    sets.map(|signs| STANDARD.encode(pdf(&[random(&mut Dice::new(5), signs, 200_000).as_str()])))
});

fn page_of_signs(dice: &mut Dice) -> (Family, Value) {
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
static TWO_SIZES: LazyLock<[String; 3]> = LazyLock::new(|| {
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

fn two_sizes(dice: &mut Dice) -> (Family, Value) {
    let (family, url) = (family(dice), &TWO_SIZES[dice.below(3) as usize]);
    (
        family,
        said(family, (0..60).map(|_| picture(family, url)).collect(), 100),
    )
}

/// Content that some servers fetch or remember.
fn foreign_part(dice: &mut Dice) -> (Family, Value) {
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
static PACKED: LazyLock<String> = LazyLock::new(|| {
    let mut packed =
        flate2::write::DeflateEncoder::new(b"PK\x03\x04".to_vec(), flate2::Compression::best());
    packed.write_all(PROSE.repeat(3_000).as_bytes()).unwrap();
    STANDARD.encode(packed.finish().unwrap())
});

fn packed(dice: &mut Dice) -> (Family, Value) {
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
fn thoughtful(dice: &mut Dice) -> (Family, Value) {
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
fn carried(dice: &mut Dice) -> (Family, Value) {
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
fn unsealed(dice: &mut Dice) -> (Family, Value) {
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

static NOTED: LazyLock<String> = LazyLock::new(|| STANDARD.encode(noted(&PROSE.repeat(1_500))));

/// A gateway and what its provider billed, for attempts with one answer of 4,000 words that takes 2 s.
async fn talkative() -> (Gateway, ScriptedUpstream, Bills) {
    let bills = Bills::default();
    let manner = Manner {
        late: 20,
        pace: 1,
        piece: 60,
        ..Manner::default()
    };
    let upstream = {
        let bills = bills.clone();
        ScriptedUpstream::start(Script::by(move |seen, number| {
            bills.reply(seen, number, &PROSE.repeat(900), manner)
        }))
        .await
    };
    (Gateway::before(&upstream).await, upstream, bills)
}

/// Nearly everything billed is charged; returns a line with both.
async fn assert_paid(
    gateway: &Gateway,
    key: &crate::support::TestKey,
    upstream: &ScriptedUpstream,
    bills: &Bills,
    who: &str,
) -> String {
    gateway.settled().await;
    let charged: i64 = gateway
        .charges(key)
        .await
        .iter()
        .map(|charge| -charge.amount.picos())
        .sum();
    let billed: i64 = bills
        .ended(upstream)
        .iter()
        .map(|billed| billed.cost())
        .sum();
    assert!(
        billed > 0 && billed - charged <= billed / 10 + 200_000 * 3_000_000,
        "{who}: billed {billed}, charged {charged}"
    );
    assert!(
        charged * 100 >= billed * 80,
        "{who}: billed {billed}, charged {charged}"
    );
    format!(
        "{who}: billed {:.3}, charged {:.3}",
        billed as f64 / 1e12,
        charged as f64 / 1e12
    )
}

#[tokio::test]
async fn a_key_that_changes_while_it_streams_pays_for_what_was_made() {
    let now = || farebox::clock::now();
    let later = farebox_ledger::Timestamp::from_millis(now().millis() + 300);
    let limited = KeySettings {
        concurrency: Some(1),
        expires_at: Some(later),
        ..KeySettings::default()
    };
    let changes = [
        ("blocked", Change::Block),
        ("revoked", Change::Revoke),
        (
            "rotated",
            Change::Rotate {
                secret: SecretHash::of("another"),
                old_until: None,
            },
        ),
        ("limited and expired", Change::Set(limited)),
    ];
    for (who, change) in changes {
        let (gateway, upstream, bills) = talkative().await;
        let key = gateway.key("5").await;
        let mut body = ask(Family::Chat, "test-model", true);
        body["max_tokens"] = json!(60_000);
        let asking = (0..8).map(|_| gateway.post(path(Family::Chat), &key, &body));
        let changing = async {
            upstream.request(0).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let act = Act {
                operation: farebox::clock::operation_id(),
                actor: "test".to_owned(),
                at: now(),
            };
            gateway
                .ledger
                .change_key(KeyChange {
                    key: key.id,
                    change,
                    act,
                })
                .await
                .unwrap();
        };
        tokio::join!(futures_util::future::join_all(asking), changing);
        println!(
            "{}",
            assert_paid(&gateway, &key, &upstream, &bills, who).await
        );
    }
}

#[tokio::test]
async fn requests_in_one_write_and_a_closed_line_are_paid_for() {
    let (gateway, upstream, bills) = talkative().await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Chat, "test-model", true);
    body["messages"][0]["content"] = json!(PROSE.repeat(600));
    let body = body.to_string();
    let head = |method: &str, length: usize| {
        let lines = [
            format!("{method} /v1/chat/completions HTTP/1.1"),
            "host: x".to_owned(),
            format!("content-length: {length}"),
        ];
        format!(
            "{}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\r\n",
            lines.join("\r\n"),
            key.secret
        )
    };
    let address = gateway.base.trim_start_matches("http://").to_owned();
    for (round, half) in [false, true].into_iter().enumerate() {
        let mut line = tokio::net::TcpStream::connect(&address).await.unwrap();
        // A HEAD first: its answer has no body, so a naive reader takes the next answer's head for it.
        let all = head("HEAD", 0) + &(head("POST", body.len()) + &body).repeat(4);
        line.write_all(all.as_bytes()).await.unwrap();
        if half {
            line.shutdown().await.unwrap();
        }
        let mut some = vec![0; 4_096];
        let _ = tokio::time::timeout(Duration::from_millis(700), line.read(&mut some)).await;
        upstream.request(round).await;
        drop(line);
    }
    // A request whose sender left may have been served first: the books cover what the provider read.
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!(
        "{}",
        assert_paid(&gateway, &key, &upstream, &bills, "pipelined, and left").await
    );
}

/// Places that a request line or a header could lead to, if any of it went upstream as it came.
const ELSEWHERE: [&str; 20] = [
    "/v1/chat/completions/../files",
    "/v1/chat/completions/..%2f..%2ffiles",
    "/v1/%63hat/completions",
    "/v1/chat%2fcompletions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/chat/completions/",
    "/v1/chat/completions;/../batches",
    "/v1/chat/completions?model=dear&path=/files#x",
    "http://other.example/v1/chat/completions",
    "/v1/responses/resp_1",
    "/v1/responses/resp_1/cancel",
    "/v1/responses/compact",
    "/v1/files",
    "/v1/batches",
    "/v1/fine_tuning/jobs",
    "/v1/images/generations",
    "/native/v1/messages/batches",
    "/native/v1/messages/count_tokens/../batches",
    "/native/v1/messages?beta=true",
];

#[tokio::test]
async fn no_request_line_and_no_header_leads_elsewhere() {
    let (gateway, upstream, bills) = talkative().await;
    let key = gateway.key("5").await;
    let mut body = ask(Family::Chat, "test-model", false);
    body["max_tokens"] = json!(100);
    let body = body.to_string();
    let address = gateway.base.trim_start_matches("http://").to_owned();
    let headers = "openai-organization: org-x\r\nopenai-project: p\r\nx-http-method-override: DELETE\r\nx-original-url: /v1/files\r\n\
                   x-stainless-helper: x\r\nanthropic-dangerous-direct-browser-access: true\r\nopenai-beta: assistants=v2\r\n\
                   forwarded: host=other.example\r\nx-goog-api-key: k\r\nconnection: close, content-length\r\nupgrade: h2c\r\n";
    for method in ["POST", "PUT", "DELETE", "PATCH", "CONNECT", "GET"] {
        for place in ELSEWHERE {
            let mut line = tokio::net::TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "{method} {place} HTTP/1.1\r\nhost: other.example\r\nauthorization: Bearer {}\r\n",
                key.secret
            );
            let all = format!(
                "{head}{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = line.write_all(all.as_bytes()).await;
            let _ = tokio::time::timeout(Duration::from_secs(5), line.read_to_end(&mut Vec::new()))
                .await;
        }
    }
    let known = [
        "host",
        "user-agent",
        "content-type",
        "accept",
        "accept-encoding",
        "authorization",
        "x-api-key",
        "anthropic-version",
        "content-length",
    ];
    for seen in upstream.requests() {
        assert_eq!(seen.method, "POST");
        // The last place is the native path, with a query that is not passed on.
        assert!(
            matches!(seen.path.as_str(), "/v1/chat/completions" | "/v1/messages"),
            "{}",
            seen.path
        );
        let unknown = |header: &&(String, String)| !known.contains(&header.0.as_str());
        let others: Vec<_> = seen.headers.iter().filter(unknown).collect();
        assert!(others.is_empty(), "{others:?}");
    }
    println!(
        "{}",
        assert_paid(&gateway, &key, &upstream, &bills, "request lines").await
    );
}

#[test]
fn every_attempt_has_a_name_of_its_own() {
    let mut names: Vec<&str> = all().iter().map(|attack| attack.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
    assert!(all().iter().any(|attack| attack.speaks != EVERY));
}
