//! Rare but allowed requests: several answers, encrypted documents and documents with more inside than their pages show, lone
//! surrogates, and stop strings that end an answer before its first word.
//!
//! Data for `exposure.rs`, in addition to the kinds in `attacks.rs`. Makes no assertions of its own.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::attacks::{Attack, HONEST, Written};
use super::bodies::{PROSE, dense, document, family, said, streamed, talk};
use crate::support::billing::Manner;
use crate::support::load::Dice;
use crate::support::pdf::{encrypted, equipped, pdf};

/// A placeholder in a body for text that no library writes.
const HERE: &str = "@@";

/// All kinds.
pub(super) fn all() -> Vec<Attack> {
    let slow = |_: &mut Dice| Manner {
        late: 20,
        pace: 20,
        limited: true,
        ..Manner::default()
    };
    vec![
        Attack {
            name: "several answers, best_of, logprobs, on $3",
            balance: "3",
            answers: |dice| {
                if dice.below(2) == 0 {
                    dense(dice)
                } else {
                    PROSE.repeat(20)
                }
            },
            asks: several,
            ..HONEST
        },
        Attack {
            name: "several answers, left at any moment",
            manner: |dice| Manner {
                silent_usage: dice.below(2) == 0,
                late: 20,
                pace: 5,
                piece: 60,
                limited: true,
                ..Manner::default()
            },
            answers: |dice| {
                if dice.below(2) == 0 {
                    dense(dice)
                } else {
                    PROSE.repeat(20)
                }
            },
            asks: |dice| streamed(several(dice)),
            leaves: |dice| Some(100 + dice.below(300)),
            ..HONEST
        },
        Attack {
            name: "encrypted documents, on $5",
            balance: "5",
            asks: locked,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "encrypted documents, left before the finish",
            manner: slow,
            asks: |dice| streamed(locked(dice)),
            leaves: |_| Some(200),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "fonts, scripts and files inside documents, left before the finish",
            manner: slow,
            asks: |dice| {
                let family = family(dice);
                streamed((
                    family,
                    said(
                        family,
                        json!([document(family, "application/pdf", &EQUIPPED)]),
                        100,
                    ),
                ))
            },
            leaves: |_| Some(200),
            dear: true,
            ..HONEST
        },
        Attack {
            name: "halves of characters, on $5",
            balance: "5",
            asks: |dice| {
                let family = family(dice);
                (family, said(family, json!(HERE), 100))
            },
            written: halved,
            ..HONEST
        },
        Attack {
            name: "stopped before the first word, no usage",
            manner: |dice| {
                let silent_usage = dice.below(2) == 0;
                Manner {
                    silent_usage,
                    zero_usage: !silent_usage,
                    limited: true,
                    ..Manner::default()
                }
            },
            answers: |_| String::new(),
            asks: stopped,
            ..HONEST
        },
    ]
}

/// Only chat has several answers.
fn several(dice: &mut Dice) -> (Family, Value) {
    let text = PROSE.repeat(1 + dice.below(60) as usize);
    let mut body = said(Family::Chat, json!(text), 4_000);
    (body["n"], body["stream"]) = (json!(1 + dice.below(8)), json!(dice.below(2) == 0));
    match dice.below(5) {
        0 => body["best_of"] = json!(8),
        1 => (body["logprobs"], body["top_logprobs"]) = (json!(true), json!(20)),
        _ => {}
    }
    (Family::Chat, body)
}

/// Thirty pages and a book on one page, under both spellings of the entry that says so.
static LOCKED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let documents = [
        pdf(&[PROSE.repeat(8).as_str(); 30]),
        pdf(&[PROSE.repeat(6_700).as_str()]),
    ];
    let spelled = |name: &'static str| {
        documents
            .iter()
            .map(move |plain| STANDARD.encode(encrypted(plain, name)))
    };
    spelled("/Encrypt").chain(spelled("/Encr#79pt")).collect()
});

fn locked(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    (
        family,
        said(
            family,
            json!([document(
                family,
                "application/pdf",
                &LOCKED[dice.below(4) as usize]
            )]),
            100,
        ),
    )
}

/// 64,000 characters of 8,000 codes.
static EQUIPPED: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(equipped(8_000, &PROSE.repeat(900))));

/// Text that no JSON library writes, but some read.
fn halved(dice: &mut Dice, body: String) -> Written {
    let text =
        [r"\ud800", r"\udc00", r"\udc00\ud800", r"a\ud800"][dice.below(4) as usize].repeat(4_000);
    (body.replace(HERE, &text).into_bytes(), &[])
}

/// A long prompt, and stop strings of which the first word certainly contains one.
fn stopped(dice: &mut Dice) -> (Family, Value) {
    let (_, mut body) = talk(dice, 5, 1_000);
    let family = if dice.below(2) == 0 {
        Family::Chat
    } else {
        Family::Messages
    };
    let stream = body["stream"].take();
    body = said(
        family,
        json!(PROSE.repeat(1 + dice.below(800) as usize)),
        1_000,
    );
    body["stream"] = stream;
    body[if family == Family::Chat {
        "stop"
    } else {
        "stop_sequences"
    }] = json!(["a", "e", "i", " "]);
    (family, body)
}
