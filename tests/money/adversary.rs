//! What somebody tries who was told to make the operator lose money, and who has read how requests are counted.
//!
//! Data for `exposure.rs`, beside the kinds in `attacks.rs`; the last tests here are attempts that are no requests of a kind.

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
    Attack, EVERY, HONEST, PROSE, Written, anything, document, family, light, picture, png, random, said, streamed, talk,
};
use crate::support::billing::{Bills, Manner};
use crate::support::load::Dice;
use crate::support::pdf::noted;
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, ask, path};

/// Stands in a body where JSON goes that no library writes.
const HERE: &str = "@@";

/// All attempts.
pub(super) fn all() -> Vec<Attack> {
    let slow = |_: &mut Dice| Manner { late: 20, pace: 10, limited: true, ..Manner::default() };
    let silent = |dice: &mut Dice| Manner { silent_usage: dice.below(2) == 0, pace: 3, limited: true, ..Manner::default() };
    vec![
        Attack { name: "names written twice, on $2", balance: "2", asks: marked, written: twice, ..HONEST },
        Attack { name: "escapes, zero widths, tags, on $5", balance: "5", asks: marked, written: escaped, dear: true, ..HONEST },
        Attack { name: "compressed bodies", asks: |dice| talk(dice, 100, 100), written: compressed, ..HONEST },
        Attack { name: "large schemas, arguments, options, on $5", balance: "5", asks: schemas, dear: true, ..HONEST },
        Attack {
            name: "nested to the limit, on $2",
            balance: "2",
            asks: |dice| {
                let text = json!(PROSE.repeat(60));
                let deep = (0..60).fold(text, |inside, _| json!([{"type": "text", "content": inside}]));
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
            manner: |_| Manner { caches: true, late: 60, pace: 3, limited: true, ..Manner::default() },
            asks: |dice| streamed(cached(dice)),
            leaves: |dice| Some(dice.below(300)),
            ..HONEST
        },
        Attack { name: "predictions of which nothing is taken, on $3", balance: "3", asks: predicted, ..HONEST },
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
                (family, said(family, json!([document(family, "application/pdf", &NOTED)]), 100))
            },
            dear: true,
            ..HONEST
        },
        Attack {
            name: "streams that nobody reads",
            manner: |_| Manner { pace: 1, piece: 400, limited: true, ..Manner::default() },
            answers: |_| PROSE.repeat(700),
            asks: |dice| streamed(talk(dice, 5, 30_000)),
            deaf: true,
            leaves: |dice| Some(100 + dice.below(900)),
            ..HONEST
        },
        Attack {
            name: "prose and then consonants, on $3",
            balance: "3",
            manner: |_| Manner { pace: 3, piece: 60, limited: true, ..Manner::default() },
            answers: |dice| PROSE.repeat(20) + &random(dice, "bcdfghjklmnpqrstvwxz", 6_000),
            asks: |dice| streamed(talk(dice, 5, 20_000)),
            ..HONEST
        },
        Attack { name: "anything at random, translated to responses", speaks: "[\"responses\"]", ..anything() },
        Attack { name: "anything at random, translated to messages", speaks: "[\"messages\"]", ..anything() },
    ]
}

/// A request with a mark in the place of its only message's content.
fn marked(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let mut body = said(family, json!(HERE), 100);
    body["stream"] = json!(dice.below(2) == 0);
    (family, body)
}

/// Two members of one name: whoever takes the other one reads, makes or does more.
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
        4 => front(&format!(r#""messages":[{{"role":"user","content":"{long}"}}]"#)),
        5 => body.replace("\"role\":\"user\"", &format!(r#""role":"user","content":"{long}""#)),
        6 => content(&format!(r#"{{"type":"image_url","image_url":{film}}}"#)),
        7 => content(r#"{"type":"input_image","image_url":"gs://bucket/film.mp4","image_url":"https://example.com/a.png"}"#),
        8 => content(r#"{"type":"image_url","image_url":{"url":"gs://b/film.mp4"},"file":{"url":"https://example.com/a.png"}}"#),
        9 => content(r#"{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"high","detail":"low"}}"#),
        10 => front(r#""tools":[{"type":"shell","environment":{"type":"code_interpreter"},"environment":{"type":"local"}}]"#),
        _ => front(r#""thinking":{"type":"enabled","budget_tokens":60000,"type":"disabled"}"#),
    };
    (written.into_bytes(), &[])
}

/// The same signs as a sender writes them who wants them to look like less: escaped, invisible, joined.
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
    let headers: &[&[(&str, &str)]] =
        &[&[("content-encoding", "gzip")], &[("content-encoding", "identity, gzip")], &[("x-content-encoding", "gzip")]];
    (gzip.finish().unwrap(), headers[dice.below(3) as usize])
}

/// Text in places that are read as JSON, or as options.
fn schemas(dice: &mut Dice) -> (Family, Value) {
    let numbers: Value = (0..8_000).map(|n| json!(n * 7_919 % 1_000_003)).collect();
    let names: Value =
        (0..4_000).map(|n| (format!("n{}", n * 7_919 % 10_007), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let schema = if dice.below(2) == 0 { json!({"enum": numbers}) } else { json!({"type": "object", "properties": names}) };
    let (family, mut body) = talk(dice, 5, 100);
    match (family, dice.below(4)) {
        (Family::Chat, 0) => {
            body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        }
        (Family::Messages, 0) => {
            let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": schema});
            let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "x"});
            let turns = [json!({"role": "user", "content": "x"}), json!({"role": "assistant", "content": [call]})];
            body["messages"] = json!([turns[0], turns[1], {"role": "user", "content": [result]}]);
        }
        (_, 1) => body["metadata"] = json!({ "a": PROSE.repeat(200) }),
        (Family::Chat, 2) => (body["user"], body["stop"]) = (json!(PROSE.repeat(200)), json!([PROSE.repeat(100), "x"])),
        (Family::Chat, _) => body["tools"] = json!([{"type": "function", "function": {"name": "n", "parameters": schema}}]),
        (Family::Responses, _) => body["tools"] = json!([{"type": "function", "name": "n", "parameters": schema}]),
        (Family::Messages, _) => body["tools"] = json!([{"name": "n", "input_schema": schema}]),
    }
    (family, body)
}

/// Pictures of full price whose `detail` stands where their family does not look.
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
    (family, said(family, (0..60).map(|_| part()).collect(), 1_000))
}

/// A long prompt with the mark of the native family.
fn cached(dice: &mut Dice) -> (Family, Value) {
    let text = PROSE.repeat(1 + dice.below(800) as usize);
    let part = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    (Family::Messages, said(Family::Messages, json!([part]), 1_000))
}

/// An answer foretold that nobody will give, in light and in ordinary text.
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

static NOTED: LazyLock<String> = LazyLock::new(|| STANDARD.encode(noted(&PROSE.repeat(1_500))));

/// A gateway and what its provider billed, for attempts with one answer of 4,000 words that takes 2 s.
async fn talkative() -> (Gateway, ScriptedUpstream, Bills) {
    let bills = Bills::default();
    let manner = Manner { late: 20, pace: 1, piece: 60, ..Manner::default() };
    let upstream = {
        let bills = bills.clone();
        ScriptedUpstream::start(Script::by(move |seen, number| bills.reply(seen, number, &PROSE.repeat(900), manner))).await
    };
    (Gateway::before(&upstream).await, upstream, bills)
}

/// Nearly everything billed is charged; returns a line that tells both.
async fn assert_paid(
    gateway: &Gateway,
    key: &crate::support::TestKey,
    upstream: &ScriptedUpstream,
    bills: &Bills,
    who: &str,
) -> String {
    gateway.settled().await;
    let charged: i64 = gateway.charges(key).await.iter().map(|charge| -charge.amount.picos()).sum();
    let billed: i64 = bills.ended(upstream).iter().map(|billed| billed.cost()).sum();
    assert!(billed > 0 && billed - charged <= billed / 10 + 200_000 * 3_000_000, "{who}: billed {billed}, charged {charged}");
    assert!(charged * 100 >= billed * 80, "{who}: billed {billed}, charged {charged}");
    format!("{who}: billed {:.3}, charged {:.3}", billed as f64 / 1e12, charged as f64 / 1e12)
}

#[tokio::test]
async fn a_key_that_changes_while_it_streams_pays_for_what_was_made() {
    let now = || farebox::clock::now();
    let later = farebox_ledger::Timestamp::from_millis(now().millis() + 300);
    let limited = KeySettings { concurrency: Some(1), expires_at: Some(later), ..KeySettings::default() };
    let changes = [
        ("blocked", Change::Block),
        ("revoked", Change::Revoke),
        ("rotated", Change::Rotate { secret: SecretHash::of("another"), old_until: None }),
        ("limited and expired", Change::Set(limited)),
    ];
    for (who, change) in changes {
        let (gateway, upstream, bills) = talkative().await;
        let key = gateway.key("5").await;
        let mut body = ask(Family::Chat, "test-model", true);
        body["max_tokens"] = json!(60_000);
        let asking = (0..8).map(|_| gateway.post(path(Family::Chat), &key, &body));
        let changing = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let act = Act { operation: farebox::clock::operation_id(), actor: "test".to_owned(), at: now() };
            gateway.ledger.change_key(KeyChange { key: key.id, change, act }).await.unwrap();
        };
        tokio::join!(futures_util::future::join_all(asking), changing);
        println!("{}", assert_paid(&gateway, &key, &upstream, &bills, who).await);
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
        let lines =
            [format!("{method} /v1/chat/completions HTTP/1.1"), "host: x".to_owned(), format!("content-length: {length}")];
        format!("{}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\r\n", lines.join("\r\n"), key.secret)
    };
    let address = gateway.base.trim_start_matches("http://").to_owned();
    for half in [false, true] {
        let mut line = tokio::net::TcpStream::connect(&address).await.unwrap();
        // A HEAD first: its answer has no body, so whoever reads on takes the next answer's head for it.
        let all = head("HEAD", 0) + &(head("POST", body.len()) + &body).repeat(4);
        line.write_all(all.as_bytes()).await.unwrap();
        if half {
            line.shutdown().await.unwrap();
        }
        let mut some = vec![0; 4_096];
        let _ = tokio::time::timeout(Duration::from_millis(700), line.read(&mut some)).await;
        drop(line);
    }
    // Who has left may have been first to be served: the books are about what the provider read.
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("{}", assert_paid(&gateway, &key, &upstream, &bills, "pipelined, and left").await);
}

#[test]
fn every_attempt_has_a_name_of_its_own() {
    let mut names: Vec<&str> = all().iter().map(|attack| attack.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
    assert!(all().iter().any(|attack| attack.speaks != EVERY));
}
