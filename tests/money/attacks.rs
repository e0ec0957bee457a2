//! Customers who want something for nothing, and honest ones: their requests, when they leave, and how they are answered.
//!
//! Data for `exposure.rs`. Makes no assertions of its own.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::ask;
use crate::support::billing::Manner;
use crate::support::load::{Dice, sized};
use crate::support::pdf::{pdf, saved_again};

/// One kind of customer, and how the provider treats them.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// The balance of each round's key.
    pub(super) balance: &'static str,
    /// The model can reason.
    pub(super) reasons: bool,
    /// Settings of the provider.
    pub(super) provider: &'static str,
    pub(super) manner: fn(&mut Dice) -> Manner,
    pub(super) answers: fn(&mut Dice) -> String,
    pub(super) asks: fn(&mut Dice) -> (Family, Value),
    /// How the body is encoded, and its headers.
    pub(super) written: fn(&mut Dice, String) -> Written,
    /// Families of the provider.
    pub(super) speaks: &'static str,
    /// The customer reads nothing of a stream.
    pub(super) deaf: bool,
    /// Another customer was served before, so the gateway has seen this provider's counts.
    pub(super) seen_before: bool,
    /// After how many milliseconds the customer leaves.
    pub(super) leaves: fn(&mut Dice) -> Option<u64>,
    /// Ours counts more than the provider does, by a documented rule.
    pub(super) dear: bool,
    /// What the provider bills grows with the time until it hears that the customer has left.
    pub(super) by_the_clock: bool,
}

/// A body as sent, and the headers that describe it.
pub(super) type Written = (Vec<u8>, &'static [(&'static str, &'static str)]);

/// All families.
pub(super) const EVERY: &str = "[\"chat\", \"responses\", \"messages\"]";

pub(super) const HONEST: Attack = Attack {
    name: "honest customers, honest usage",
    balance: "1000",
    reasons: false,
    provider: "",
    manner: |_| Manner {
        limited: true,
        ..Manner::default()
    },
    answers: |_| "Some words of an answer, 1,024 of them in all, and then a few more. ".repeat(5),
    asks: |dice| talk(dice, 900, 100),
    written: |_, body| (body.into_bytes(), &[]),
    speaks: EVERY,
    deaf: false,
    seen_before: false,
    leaves: |_| None,
    dear: false,
    by_the_clock: false,
};

/// All kinds, honest ones first.
pub(super) fn all() -> Vec<Attack> {
    let silent = |_: &mut Dice| Manner {
        silent_usage: true,
        limited: true,
        ..Manner::default()
    };
    let slow = |_: &mut Dice| Manner {
        late: 60,
        pace: 3,
        limited: true,
        ..Manner::default()
    };
    vec![
        HONEST,
        Attack {
            name: "a provider that says nothing of usage",
            manner: silent,
            ..HONEST
        },
        Attack {
            name: "honest customers on $2",
            balance: "2",
            ..HONEST
        },
        Attack {
            name: "1: large prompts, left before the first frame",
            manner: |_| Manner {
                late: 150,
                pace: 10,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(talk(dice, 900, 1_000)),
            leaves: |_| Some(100),
            ..HONEST
        },
        Attack {
            name: "1: left at any moment",
            manner: slow,
            asks: |dice| streamed(talk(dice, 900, 1_000)),
            leaves: |dice| Some(dice.below(400)),
            ..HONEST
        },
        Attack {
            name: "2: pictures and documents, left before the finish",
            manner: |_| Manner {
                late: 20,
                pace: 20,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(media(dice)),
            leaves: |_| Some(sized(400, 1_500)),
            // A page counts 3,000 tokens by the rule of admission.
            dear: true,
            ..HONEST
        },
        Attack {
            name: "3: documents saved twice, on $2",
            balance: "2",
            asks: twice_saved,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "3: a book on one page, on $3",
            balance: "3",
            asks: book,
            dear: true,
            ..HONEST
        },
        Attack {
            name: "4: left while the model reasons unasked",
            reasons: true,
            manner: |_| Manner {
                hidden: 16_000,
                late: 5,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| streamed(talk(dice, 10, 32_000)),
            leaves: |_| Some(sized(600, 4_000)),
            by_the_clock: true,
            ..HONEST
        },
        Attack {
            name: "4: the same with eight answers at once",
            reasons: true,
            manner: |_| Manner {
                hidden: 16_000,
                late: 5,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| eight(streamed(talk(dice, 10, 32_000))),
            leaves: |_| Some(sized(600, 4_000)),
            by_the_clock: true,
            ..HONEST
        },
        Attack {
            name: "4: the same, told not to reason",
            reasons: true,
            manner: |_| Manner {
                hidden: 16_000,
                late: 5,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| told_not_to(streamed(talk(dice, 10, 32_000))),
            leaves: |_| Some(sized(600, 4_000)),
            by_the_clock: true,
            ..HONEST
        },
        Attack {
            name: "5 and 9: reasoning beside a limit of 100",
            provider: "reasoning = \"outside\"",
            reasons: true,
            manner: |_| Manner {
                hidden: sized(300, 1_500),
                outside: true,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| talk(dice, 10, 100),
            ..HONEST
        },
        Attack {
            name: "5 and 9: the same on $0.10",
            balance: "0.10",
            provider: "reasoning = \"outside\"",
            reasons: true,
            manner: |_| Manner {
                hidden: sized(300, 1_500),
                outside: true,
                limited: true,
                ..Manner::default()
            },
            asks: |dice| talk(dice, 10, 1),
            ..HONEST
        },
        Attack {
            name: "5: one token more than the context",
            manner: |_| Manner {
                limited: true,
                ..Manner::default()
            },
            asks: |dice| {
                let text = " word".repeat(200_001 - 10 - dice.below(9) as usize);
                (Family::Messages, said(Family::Messages, json!(text), 100))
            },
            balance: "200",
            ..HONEST
        },
        Attack {
            name: "6: fields, parts and flags without a price",
            asks: unsold,
            ..HONEST
        },
        Attack {
            name: "7: text in odd places, on $2",
            balance: "2",
            asks: odd,
            ..HONEST
        },
        Attack {
            name: "7: text that weighs little, on $10",
            balance: "10",
            asks: light,
            ..HONEST
        },
        Attack {
            name: "7: text files, on $10",
            balance: "10",
            asks: text_file,
            ..HONEST
        },
        Attack {
            name: "8: usage of zero beside dense answers",
            manner: |_| Manner {
                zero_usage: true,
                piece: 9,
                limited: true,
                ..Manner::default()
            },
            answers: dense,
            asks: |dice| talk(dice, 20, 4_000),
            ..HONEST
        },
        Attack {
            name: "dense answers side by side, on $3",
            balance: "3",
            manner: |_| Manner {
                pace: side_by_side(),
                piece: 60,
                limited: true,
                ..Manner::default()
            },
            answers: |dice| dense(dice).repeat(3),
            asks: |dice| streamed(talk(dice, 5, 20_000)),
            ..HONEST
        },
        Attack {
            name: "dense answers without usage, on $3",
            balance: "3",
            manner: |_| Manner {
                pace: side_by_side(),
                piece: 60,
                silent_usage: true,
                limited: true,
                ..Manner::default()
            },
            answers: |dice| dense(dice).repeat(3),
            asks: |dice| streamed(talk(dice, 5, 20_000)),
            ..HONEST
        },
        Attack {
            name: "anything at random, translated to chat",
            speaks: "[\"chat\"]",
            ..anything()
        },
    ]
}

/// All of it mixed.
pub(super) fn anything() -> Attack {
    Attack {
        name: "anything at random",
        reasons: true,
        manner: |dice| Manner {
            silent_usage: dice.below(4) == 0,
            zero_usage: dice.below(6) == 0,
            hidden: if dice.below(5) == 0 {
                dice.below(150)
            } else {
                0
            },
            outside: false,
            late: dice.below(120),
            pace: dice.below(4),
            piece: [0, 0, 7, 40][dice.below(4) as usize],
            limited: true,
            // Without both, words and usage, an answer is free: see the limits in `docs/PROMISES.md`.
            counts_silence: true,
            ..Manner::default()
        },
        answers: |dice| match dice.below(4) {
            0 => dense(dice),
            1 => String::new(),
            _ => PROSE.repeat(1 + dice.below(9) as usize),
        },
        asks: |dice| {
            let (family, mut body) = match dice.below(9) {
                0 => media(dice),
                1 => twice_saved(dice),
                2 => odd(dice),
                3 => light(dice),
                4 => text_file(dice),
                5 => unsold(dice),
                _ => talk(dice, 600, 2_000),
            };
            body["stream"] = json!(dice.below(3) > 0);
            if dice.below(3) == 0 {
                body["tools"] = tools(family);
            }
            (family, body)
        },
        leaves: |dice| (dice.below(2) == 0).then(|| dice.below(500)),
        dear: true,
        ..HONEST
    }
}

pub(super) const PROSE: &str =
    "Who knew that the train was late, and whose 8,412 pieces of luggage stood at the station? ";

pub(super) fn family(dice: &mut Dice) -> Family {
    Family::ALL[dice.below(3) as usize]
}

/// A request with this content and output limit.
pub(super) fn said(family: Family, content: Value, limit: u64) -> Value {
    let mut body = ask(family, "test-model", false);
    let name = if family == Family::Responses {
        "max_output_tokens"
    } else {
        "max_tokens"
    };
    body[name] = json!(limit);
    body[if family == Family::Responses {
        "input"
    } else {
        "messages"
    }] = json!([{"role": "user", "content": content}]);
    body
}

/// Some lines of prose, code, digits and Chinese.
pub(super) fn talk(dice: &mut Dice, lines: u64, limit: u64) -> (Family, Value) {
    let family = family(dice);
    let all = [
        "fn main() { println!(\"{}\", 42); }\n",
        "Who knew that the train was late?\n",
        "8,412 3.14159 77\n",
        "列车晚点了。\n",
    ];
    let text: String = (0..=dice.below(lines))
        .map(|_| all[dice.below(4) as usize])
        .collect();
    let mut body = said(family, json!(text), limit);
    body["stream"] = json!(dice.below(2) == 0);
    (family, body)
}

pub(super) fn streamed((family, mut body): (Family, Value)) -> (Family, Value) {
    body["stream"] = json!(true);
    (family, body)
}

/// Only chat has several answers.
fn eight((_, body): (Family, Value)) -> (Family, Value) {
    let text = body["messages"][0]["content"].clone();
    let mut body = said(
        Family::Chat,
        if text.is_null() {
            json!("Think.")
        } else {
            text
        },
        32_000,
    );
    (body["n"], body["stream"]) = (json!(8), json!(true));
    (Family::Chat, body)
}

/// In every form that could be taken for it, by a customer who knows that this provider ignores it.
fn told_not_to((family, mut body): (Family, Value)) -> (Family, Value) {
    match family {
        Family::Chat if body.to_string().len() % 2 == 0 => body["reasoning"] = json!("none"),
        Family::Chat => body["reasoning_effort"] = json!("none"),
        Family::Responses => body["reasoning"] = json!({"effort": "none"}),
        Family::Messages => body["thinking"] = json!({"type": "disabled"}),
    }
    (family, body)
}

fn tools(family: Family) -> Value {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string", "description": PROSE}}});
    match family {
        Family::Chat => {
            json!([{"type": "function", "function": {"name": "read", "parameters": schema}}])
        }
        Family::Responses => json!([{"type": "function", "name": "read", "parameters": schema}]),
        Family::Messages => json!([{"name": "read", "input_schema": schema}]),
    }
}

pub(super) fn picture(family: Family, url: &str) -> Value {
    let data = url.split_once(";base64,").map(|(_, data)| data);
    match (family, data) {
        (Family::Chat, _) => json!({"type": "image_url", "image_url": {"url": url}}),
        (Family::Responses, _) => json!({"type": "input_image", "image_url": url}),
        (Family::Messages, None) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        (Family::Messages, Some(data)) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
        }
    }
}

pub(super) fn document(family: Family, media: &str, data: &str) -> Value {
    let url = format!("data:{media};base64,{data}");
    match family {
        Family::Chat => json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}}),
        Family::Responses => json!({"type": "input_file", "filename": "a.pdf", "file_data": url}),
        Family::Messages => {
            json!({"type": "document", "source": {"type": "base64", "media_type": media, "data": data}})
        }
    }
}

/// The head of a PNG of this size: nobody here decodes more.
pub(super) fn png(width: u32, height: u32) -> String {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    png.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    png.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    format!("data:image/png;base64,{}", STANDARD.encode(png))
}

/// Pictures of any size, or a document, among a few words.
fn media(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    let content: Vec<Value> = if dice.below(2) == 0 {
        let url = match dice.below(3) {
            0 => "https://example.com/a.png".to_owned(),
            _ => png(64 + dice.below(2_400) as u32, 64 + dice.below(2_400) as u32),
        };
        (0..=dice.below(90))
            .map(|_| picture(family, &url))
            .collect()
    } else {
        vec![document(
            family,
            "application/pdf",
            &PDFS[dice.below(2) as usize],
        )]
    };
    (family, said(family, json!(content), 1_000))
}

/// Thirty pages in object streams, and the same saved once more.
static PDFS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let first = pdf(&[PROSE.repeat(8).as_str(); 30]);
    let again = saved_again(&first);
    [STANDARD.encode(first), STANDARD.encode(again)]
});

/// One page with 600 KB of text.
static BOOK: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(pdf(&[PROSE.repeat(6_700).as_str()])));

fn twice_saved(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    (
        family,
        said(
            family,
            json!([document(family, "application/pdf", &PDFS[1])]),
            100,
        ),
    )
}

/// As the document that it is, and declared as cheaper types.
fn book(dice: &mut Dice) -> (Family, Value) {
    let media = ["application/pdf", "text/plain", "image/png", ""][dice.below(4) as usize];
    let family = family(dice);
    (
        family,
        said(family, json!([document(family, media, &BOOK)]), 100),
    )
}

/// Things that would buy more than tokens.
fn unsold(dice: &mut Dice) -> (Family, Value) {
    let (family, mut body) = talk(dice, 5, 100);
    match dice.below(6) {
        0 => body["web_search_options"] = json!({}),
        1 => body["search_parameters"] = json!({}),
        2 => body["tools"] = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]),
        3 => {
            body = said(
                family,
                json!([picture(family, "data:video/mp4;base64,AAAA")]),
                100,
            )
        }
        4 => {
            body = said(
                family,
                json!([picture(family, "gs://bucket/film.mp4")]),
                100,
            )
        }
        _ => body["tools"] = json!([{"type": "code_interpreter_20990101", "name": "x"}]),
    }
    (family, body)
}

/// 60 KB in places that are easily overlooked.
fn odd(dice: &mut Dice) -> (Family, Value) {
    let (family, text) = (family(dice), PROSE.repeat(660));
    let mut body = said(family, json!("x"), 100);
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    match dice.below(7) {
        0 => body[list][0]["role"] = json!(text),
        1 => body[list][0]["id"] = json!(text),
        2 => body[list][0]["name"] = json!(text),
        3 => body[list][0]["content"] = json!([{"type": "text", "text": "x", "filename": text}]),
        4 => body[list][0]["content"] = json!([{"type": text, "text": "x"}]),
        5 => body["metadata"] = json!({ "documents": text }),
        _ => body[list][0][text.get(..40_000).unwrap().trim_end()] = json!("x"),
    }
    (family, body)
}

/// Symbols whose fast estimate is a tenth to a half of a tokenizer's count.
const LIGHT: [&str; 8] = [
    "!#$%&'()*+,-./:;<=>?@[]^_`{|}~",
    "bcdfghjklmnpqrstvwxz",
    "abcdefghijklmnopqrstuvwxyz~^`|@#",
    "\u{e000}\u{e001}\u{e002}\u{e100}\u{f000}",
    "𒀀𒀁𒀂𒀃𒀄𒀅",
    "ܐܒܓܕܖܗܘܙܚܛ",
    "\u{1}\u{2}\u{3}\u{4}\u{5}",
    "⠁⠂⠃⠄⠅⠆⠇⠈",
];

pub(super) fn random(dice: &mut Dice, signs: &str, length: usize) -> String {
    let signs: Vec<char> = signs.chars().collect();
    (0..length)
        .map(|_| signs[dice.below(signs.len() as u64) as usize])
        .collect()
}

static LIGHT_TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    LIGHT
        .iter()
        .map(|signs| random(&mut Dice::new(3), signs, 40_000))
        .collect()
});

/// Text whose characters seem to weigh less than they are billed.
pub(super) fn light(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    (
        family,
        said(family, json!(LIGHT_TEXTS[dice.below(8) as usize]), 100),
    )
}

/// A text file of which nearly every byte is a token.
static TEXT_FILE: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(random(&mut Dice::new(4), "7 ~!q\n", 90_000)));

fn text_file(dice: &mut Dice) -> (Family, Value) {
    let family = family(dice);
    (
        family,
        said(
            family,
            json!([document(family, "text/plain", &TEXT_FILE)]),
            100,
        ),
    )
}

/// Milliseconds between the pieces of dense answers side by side: each of 64 streams has 1,500 characters a second every day, 5,000 at
/// full size. At 20,000 an unoptimised gateway beside its upstream on two CPUs reads later than is sent, and what waits in sockets is
/// billed and not counted. The balance bounds what is billed, at any pace.
pub(super) fn side_by_side() -> u64 {
    sized(40, 12)
}

/// Text that takes many tokens to a byte.
pub(super) fn dense(dice: &mut Dice) -> String {
    let sets = [
        "0123456789",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "!#$%&'()*+,-./:;<=>?@[]^_{|}~",
        "列车晚点了谁的行李在站台",
    ];
    let signs = sets[dice.below(4) as usize];
    random(dice, signs, 3_000)
}
