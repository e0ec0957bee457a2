//! The honest people of the table: agents of several kinds, a batch, people who press Esc. A row asks some of them for some figures.

use std::sync::atomic::{AtomicU64, Ordering};

use farebox_protocol::Family;
use serde_json::json;

use super::asks::{Ask, Block, ask, blocks};
use super::crowd::{Figures, Maker, People, Work, between, chance};
use super::page::judge_people;
use super::scenario::{at, setting};
use super::world::{PLAIN, Setting};
use crate::support::billing::counting::Tokenizer;
use crate::support::billing::making::{DEAR, Part, hidden, shown, whole};
use crate::support::billing::provider::{Caches, HONEST, Nature, Queue, Says};
use crate::support::load::Dice;
use crate::support::sized;

/// One figure of a row: of whom, how it reads, and whether it is as the rule says.
pub(super) struct Figure {
    pub(super) of: fn() -> People,
    pub(super) what: What,
    pub(super) bound: i64,
}

/// What is looked at. Shares are in thousandths; counts are over all seeds of the full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// At least so much of the purse is used.
    Used,
    /// At most so many requests are refused although money is there.
    RefusedFalsely,
    GaveUp,
    CutTooEarly,
    /// At most so many of both.
    RefusedOrGaveUp,
    /// At most so much of the money pays for answers that were cut.
    OnCut,
    /// Charged ÷ billed is exactly this.
    Finished,
    /// Charged ÷ billed is within a tenth of this.
    Left,
    /// At least so many are served.
    Served,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) before: &'static str,
    pub(super) figures: &'static [Figure],
}

macro_rules! rows {
    ($($name:ident, $before:literal, [$($of:ident $what:ident $bound:literal),* $(,)?];)*) => {
        /// All rows.
        pub(super) const ROWS: &[Row] = &[
            $(Row { name: stringify!($name), before: $before, figures: &[
                $(Figure { of: $of, what: What::$what, bound: $bound },)*
            ] },)*
        ];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                judge_people(stringify!($name)).await;
            }
        )*
    };
}

rows! {
    finished_requests_are_charged_what_is_billed, "1.000", [ten_on_5 Finished 1_000];
    esc_on_long_answers_costs_what_is_billed, "0.8–4.7", [esc Left 1_000];
    ten_agents_use_their_purse, "90; 27; 96 %", [ten_on_5 Used 980, ten_on_1 Used 960, ten_on_20 Used 990];
    ten_agents_are_served_while_money_is_there, "774; 237; 17", [ten_on_5 RefusedFalsely 6, ten_on_5 GaveUp 2, ten_on_5 CutTooEarly 6];
    late_first_frames_slow_and_fast_targets, "733; 813; 438", [late RefusedOrGaveUp 30, slow RefusedOrGaveUp 30, fast RefusedOrGaveUp 15];
    a_dear_model_on_5_dollars, "27 %; 163", [dear Used 960, dear RefusedFalsely 5];
    coding_agents_use_their_purse, "96; 76 %; 336; 4", [
        four_coders Used 990, one_coder Used 980, four_coders RefusedFalsely 2, one_coder RefusedFalsely 1];
    eight_coding_agents_with_late_first_frames, "518", [eight_coders RefusedFalsely 15];
    whole_answers_64_at_once, "223; 5 %", [batch_on_20 Served 1_024, batch_on_5 Used 990];
    money_spent_on_cut_answers, "5; 8; 17 %", [ten_on_5 OnCut 50, long_reasoning OnCut 220, ten_on_1 OnCut 200];
    thinking_budgets_of_32000, "–", [budgets RefusedFalsely 4];
}

impl What {
    /// The values, one for each seed or one for all.
    pub(super) fn of(self, figures: &Figures) -> Vec<i64> {
        let count = |count: usize| vec![i64::try_from(count).unwrap()];
        match self {
            Self::Used => figures.used.clone(),
            Self::OnCut => figures.on_cut.clone(),
            Self::Finished => figures.finished.clone(),
            Self::Left => figures.left.clone(),
            Self::RefusedFalsely => count(figures.refused_falsely),
            Self::GaveUp => count(figures.gave_up),
            Self::CutTooEarly => count(figures.cut_too_early),
            Self::RefusedOrGaveUp => count(figures.refused_falsely + figures.gave_up),
            Self::Served => count(figures.served),
        }
    }

    /// Whether these values are as the rule says. Every day few are asked: a part of what one may be refused in all.
    pub(super) fn holds(self, figures: &Figures, bound: i64) -> bool {
        let values = self.of(figures);
        let mean = values.iter().sum::<i64>() / i64::try_from(values.len().max(1)).unwrap();
        let few = if sized(0, 1) == 1 {
            bound
        } else {
            bound / 4 + 1
        };
        match self {
            Self::Used => !figures.to_the_end || mean >= bound,
            // A few answers that were cut are a large part of one small purse.
            Self::OnCut => {
                !figures.to_the_end || mean <= bound * i64::try_from(sized(2, 1)).unwrap()
            }
            Self::Finished => values.iter().all(|value| *value == bound),
            Self::Left => values.iter().all(|value| (value - bound).abs() <= 100),
            Self::Served => values[0] >= bound * i64::try_from(sized(1, 16)).unwrap() / 16,
            Self::RefusedFalsely | Self::GaveUp | Self::CutTooEarly | Self::RefusedOrGaveUp => {
                values[0] <= few
            }
        }
    }
}

/// A provider whose requests wait 0.4 s in the mean, and which caches by itself.
fn usual() -> Nature {
    Nature {
        queue: Queue::Mean(0.4),
        caches: Caches::ByItself,
        ..HONEST
    }
}

fn people(
    name: &'static str,
    dollars: &'static str,
    agents: u64,
    nature: Nature,
    asks: fn(u64, &mut Dice) -> Maker,
) -> People {
    People {
        name,
        dollars,
        agents,
        setting: Setting {
            pace: sized(20, 8) as u32,
            ..setting(1, nature)
        },
        work: Work::UntilTheEnd(2),
        asks,
    }
}

/// The same in a time that is so many times as fast, with one request of each agent, every day: their answers take long.
fn short(people: People, pace: u64) -> People {
    People {
        setting: Setting {
            pace: sized(pace, 8) as u32,
            ..people.setting
        },
        work: Work::UntilTheEnd(1),
        ..people
    }
}

pub(super) fn ten_on_5() -> People {
    people("ten agents on $5", "5", 10, usual(), mixed)
}

fn ten_on_1() -> People {
    let people = people("ten agents on $1", "1", 10, usual(), mixed);
    People {
        work: Work::UntilTheEnd(u64::MAX),
        ..people
    }
}

fn ten_on_20() -> People {
    short(people("ten agents on $20", "20", 10, usual(), mixed), 20)
}

fn late() -> People {
    let nature = Nature {
        queue: Queue::Mean(30.0),
        ..usual()
    };
    short(
        people(
            "ten agents on $5, first frames after 30 s",
            "5",
            10,
            nature,
            mixed,
        ),
        40,
    )
}

fn slow() -> People {
    let nature = Nature {
        speed: 25.0,
        ..usual()
    };
    short(
        people(
            "ten agents on $5, 25 tokens a second",
            "5",
            10,
            nature,
            mixed,
        ),
        60,
    )
}

fn fast() -> People {
    let nature = Nature {
        speed: 2_000.0,
        ..usual()
    };
    short(
        people(
            "ten agents on $5, 2,000 tokens a second",
            "5",
            10,
            nature,
            mixed,
        ),
        20,
    )
}

fn dear() -> People {
    let nature = Nature {
        prices: DEAR,
        ..usual()
    };
    let mut people = people("ten agents on $5, $75 a million", "5", 10, nature, mixed);
    for model in &mut people.setting.models {
        model.prices = DEAR;
    }
    people
}

fn long_reasoning() -> People {
    short(
        people(
            "ten agents on $5, reasoning of minutes",
            "5",
            10,
            usual(),
            |agent, _| mix(agent, (4_800.0, 14_400.0), 100),
        ),
        60,
    )
}

/// At a vendor with another table of tokens, who counts with every chunk.
fn budgets() -> People {
    let nature = Nature {
        tokenizer: Tokenizer::Cl100k,
        says: Says::Always,
        ..usual()
    };
    short(
        people(
            "ten agents on $5, thinking budgets of 32,000",
            "5",
            10,
            nature,
            |agent, dice| {
                let mut asks = mixed(agent, dice);
                Box::new(move |dice| Ask {
                    family: Family::Messages,
                    model: "reasons",
                    extra: json!({"thinking": {"type": "enabled", "budget_tokens": 32_000}}),
                    ..asks(dice)
                })
            },
        ),
        30,
    )
}

fn four_coders() -> People {
    people(
        "four coding agents on $5",
        "5",
        4,
        usual(),
        |agent, dice| coder(agent, dice, 0, (300.0, 2_000.0)),
    )
}

fn one_coder() -> People {
    people("a coding agent on $1", "1", 1, usual(), |agent, dice| {
        coder(agent, dice, 0, (300.0, 2_000.0))
    })
}

fn eight_coders() -> People {
    let nature = Nature {
        queue: Queue::Mean(20.0),
        ..usual()
    };
    short(
        people(
            "eight coding agents on $20, first frames after 20 s",
            "20",
            8,
            nature,
            |agent, dice| coder(agent, dice, 0, (300.0, 2_000.0)),
        ),
        40,
    )
}

fn esc() -> People {
    let people = people(
        "two coding agents on $20 who press Esc",
        "20",
        2,
        Nature {
            caches: Caches::ByItself,
            queue: Queue::Mean(0.4),
            ..at(45.0)
        },
        |agent, dice| coder(agent, dice, sized(60, 15), (1_500.0, 8_000.0)),
    );
    People {
        work: Work::UntilTheEnd(3),
        ..people
    }
}

fn batch(name: &'static str, dollars: &'static str) -> People {
    let people = people(name, dollars, 64, usual(), |agent, _| {
        Box::new(move |dice| Ask {
            stream: false,
            tools: false,
            ..ask(&[shown(between(dice, 500.0, 2_000.0))])
                .limit(64_000)
                .prompt(fresh(agent), between(dice, 800.0, 4_000.0))
        })
    });
    People {
        work: Work::Batch(sized(64, 256)),
        ..people
    }
}

fn batch_on_20() -> People {
    batch("64 whole answers at once on $20", "20")
}

fn batch_on_5() -> People {
    batch("64 whole answers at once on $5", "5")
}

/// Numbers of blocks that nobody has sent before.
fn fresh(agent: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    1_000_000 * (agent + 1) + 1_000 * NEXT.fetch_add(1, Ordering::Relaxed)
}

fn mixed(agent: u64, _: &mut Dice) -> Maker {
    mix(agent, (500.0, 6_000.0), 33)
}

/// Prompts of 2,000 to 60,000 tokens, of which the provider mostly has the beginning; answers of 300 to 3,000; whole and streamed; a
/// part with reasoning that is not shown.
fn mix(agent: u64, reasoning: (f64, f64), hides: u64) -> Maker {
    Box::new(move |dice| {
        let hides = chance(dice, hides);
        let (prompt, output) = (
            between(dice, 2_000.0, 60_000.0),
            between(dice, 300.0, 3_000.0),
        );
        let known = if chance(dice, 70) { prompt * 3 / 5 } else { 0 };
        let mut pieces: Vec<Block> = blocks(1_000 * agent, known / 1_000 * 1_000);
        pieces.extend(blocks(fresh(agent), prompt - known));
        let mut says: Vec<Part> = Vec::new();
        if hides {
            says.push(hidden(between(dice, reasoning.0, reasoning.1)));
        }
        says.push(if chance(dice, 70) {
            shown(output)
        } else {
            whole(output)
        });
        Ask {
            model: if hides { "reasons" } else { "plain" },
            prompt: pieces,
            stream: chance(dice, 50),
            ..ask(&says).limit(64_000)
        }
    })
}

/// A conversation that grows from 60,000 to 120,000 tokens, and begins anew. So many in a hundred turns are left.
fn coder(agent: u64, dice: &mut Dice, esc: u64, answers: (f64, f64)) -> Maker {
    let mut tokens = 60_000 + dice.below(20_000);
    let mut first = fresh(agent);
    Box::new(move |dice| {
        tokens += between(dice, 300.0, 4_000.0);
        if tokens > 120_000 {
            tokens = 60_000 + dice.below(20_000);
            first = fresh(agent);
        }
        let output = between(dice, answers.0, answers.1);
        let says = if chance(dice, 50) {
            shown(output)
        } else {
            whole(output)
        };
        let leave = chance(dice, esc).then(|| between(dice, 3_000.0, 20_000.0) as f64 / 1e3);
        Ask {
            leave,
            ..ask(&[says]).limit(64_000).prompt(first, tokens)
        }
    })
}

#[test]
fn the_models_of_the_people_have_limits_of_64000() {
    assert!(
        setting(1, usual())
            .models
            .iter()
            .all(|model| model.max_output == PLAIN.max_output)
    );
}
