//! The attempts of an adversary who wants the operator to lose money, and who has read how requests are counted.
//!
//! Data for `exposure.rs`, in addition to the kinds in `attacks.rs`; `adversary/apart.rs` has the attempts that do not fit a kind.

mod apart;
mod bodies;

use farebox_protocol::Family;
use serde_json::json;

use super::attacks::{Attack, EVERY, HONEST, anything, side_by_side};
use super::bodies::{PROSE, document, family, random, said, streamed, talk};
use crate::support::billing::{Manner, Thinks};
use crate::support::load::{Dice, sized};
use bodies::{
    NOTED, cached, carried, compressed, escaped, foreign_part, low_detail, marked, packed,
    page_of_signs, predicted, schemas, thoughtful, twice, two_sizes, unsealed,
};

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

#[test]
fn every_attempt_has_a_name_of_its_own() {
    let mut names: Vec<&str> = all().iter().map(|attack| attack.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
    assert!(all().iter().any(|attack| attack.speaks != EVERY));
}
