//! Bodies of requests: honest ones, large ones, and those that are hard to count.
//!
//! Data for `exposure.rs` and its neighbours. Makes no assertions of its own.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::ask;
use crate::support::load::Dice;
use crate::support::pdf::{pdf, saved_again};

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
pub(super) fn eight((_, body): (Family, Value)) -> (Family, Value) {
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
pub(super) fn told_not_to((family, mut body): (Family, Value)) -> (Family, Value) {
    match family {
        Family::Chat if body.to_string().len() % 2 == 0 => body["reasoning"] = json!("none"),
        Family::Chat => body["reasoning_effort"] = json!("none"),
        Family::Responses => body["reasoning"] = json!({"effort": "none"}),
        Family::Messages => body["thinking"] = json!({"type": "disabled"}),
    }
    (family, body)
}

pub(super) fn tools(family: Family) -> Value {
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
pub(super) fn media(dice: &mut Dice) -> (Family, Value) {
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
pub(super) static PDFS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let first = pdf(&[PROSE.repeat(8).as_str(); 30]);
    let again = saved_again(&first);
    [STANDARD.encode(first), STANDARD.encode(again)]
});

/// One page with 600 KB of text.
pub(super) static BOOK: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(pdf(&[PROSE.repeat(6_700).as_str()])));

pub(super) fn twice_saved(dice: &mut Dice) -> (Family, Value) {
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
pub(super) fn book(dice: &mut Dice) -> (Family, Value) {
    let media = ["application/pdf", "text/plain", "image/png", ""][dice.below(4) as usize];
    let family = family(dice);
    (
        family,
        said(family, json!([document(family, media, &BOOK)]), 100),
    )
}

/// Things that would buy more than tokens.
pub(super) fn unsold(dice: &mut Dice) -> (Family, Value) {
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
pub(super) fn odd(dice: &mut Dice) -> (Family, Value) {
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
pub(super) const LIGHT: [&str; 8] = [
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

pub(super) static LIGHT_TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
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
pub(super) static TEXT_FILE: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(random(&mut Dice::new(4), "7 ~!q\n", 90_000)));

pub(super) fn text_file(dice: &mut Dice) -> (Family, Value) {
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
