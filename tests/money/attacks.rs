//! Customers who want something for nothing, and honest ones: their requests, when they leave, and how they are answered.
//!
//! Data for `exposure.rs`. Makes no assertions of its own.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::{
    PROSE, book, dense, eight, light, media, odd, said, streamed, talk, text_file, told_not_to,
    tools, twice_saved, unsold,
};
use crate::support::billing::Manner;
use crate::support::load::{Dice, sized};

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

/// Milliseconds between the pieces of dense answers side by side: each of 64 streams has 1,500 characters a second every day, 5,000 at
/// full size. At 20,000 an unoptimised gateway beside its upstream on two CPUs reads later than is sent, and what waits in sockets is
/// billed and not counted. The balance bounds what is billed, at any pace.
pub(super) fn side_by_side() -> u64 {
    sized(40, 12)
}
