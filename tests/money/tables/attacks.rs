//! The attacks of the table: who wants more of a provider than was paid for. A row has several; the worst one counts.

use farebox_protocol::Family;
use serde_json::json;

use super::asks::{Ask, Text, ask};
use super::page::judge;
use super::scenario::Step::{
    Becomes, Begin, Cap, Ended, Forgive, Jump, NewPurse, Rest, Send, TopUp,
};
use super::scenario::{Attack, Step, at, attack, setting, times};
use super::world::{House, Model, PLAIN, Setting};
use crate::support::billing::counting::Tokenizer;
use crate::support::billing::making::{Part, hidden, shown, whole};
use crate::support::billing::provider::{Binds, Caches, First, HONEST, Nature, Plays, Queue, Says};
use crate::support::sized;

/// A row of the table: its figure is at most this.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) before: &'static str,
    pub(super) now: f64,
    pub(super) attacks: fn() -> Vec<Attack>,
}

macro_rules! rows {
    ($($name:ident, $before:literal, $now:literal, $attacks:expr;)*) => {
        /// All rows.
        pub(super) const ROWS: &[Row] = &[
            $(Row { name: stringify!($name), before: $before, now: $now, attacks: $attacks },)*
        ];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                judge(stringify!($name)).await;
            }
        )*
    };
}

rows! {
    tool_calls_that_come_whole, "8.0", 1.0, calls_that_come_whole;
    tool_calls_that_come_whole_at_three_gateways, "8.0", 1.0, calls_at_a_fleet;
    a_word_between_hidden_output, "8.1", 1.0, || vec![word_between(), counts_less()];
    one_choice_of_eight_talks, "2.7", 1.0, || vec![one_choice_talks()];
    the_client_does_not_read, "1.5", 1.0, || vec![reads_nothing()];
    a_target_faster_than_anyone_knew, "3.9–8.0", 1.0, faster;
    slow_and_fast_teachers, "3.9–8.0", 1.0, || vec![slow_teacher(), fast_teacher()];
    a_provider_that_finishes_what_is_closed, "8.1; 2.9", 1.1, finishes;
    large_prompts_squeezed_by_idle_whole_requests, "2.9", 1.1, || vec![squeeze(1)];
    large_prompts_squeezed_at_three_gateways, "2.9", 1.1, || vec![squeeze(3)];
    a_cap_set_while_requests_run, "1.4", 1.1, || vec![cap_while_running()];
    leavings_with_marks_moved, "1.9", 1.1, || vec![marks_moved()];
    leavings_with_another_field_changed, "1.3", 1.1, || vec![other_field()];
    leavings_of_one_prompt_32_times_at_once, "3.1", 1.1, || vec![one_prompt()];
    leavings_at_a_fast_target_that_nobody_named, "–", 1.1, || vec![fast_leavings()];
    limits_that_do_not_bind, "8.0", 1.1, not_binding;
    prompts_just_above_a_tiers_edge, "–", 1.1, || vec![above_an_edge()];
    texts_chosen_against_the_tokenizer, "0.9", 1.1, || vec![chosen_texts()];
    no_first_frame_in_bursts, "1.1", 1.1, || vec![no_frame("bursts", "2", 24, 60, sized(2, 3), 0)];
    no_first_frame_of_64_full_contexts, "223", 1.2, || vec![full_contexts()];
    no_first_frame_every_hour_of_a_day, "53", 1.7, || vec![no_frame("a day", "2", 8, 20_000, sized(6, 24), sized(4, 1))];
    no_first_frame_of_30_days, "–", 1.7, || vec![no_frame("30 days", "2", 8, 20_000, sized(10, 720), sized(72, 1))];
    no_first_frame_excused_all_day, "–", 10.0, || vec![excused()];
    two_targets_that_both_bill, "2.1", 1.7, || vec![two_bills()];
    pace_taught_slow_then_leavings, "0.9", 2.0, || vec![taught_slow()];
}

/// A call that comes whole at its end, 32 times.
fn buffered(tokens: u64) -> Vec<Ask> {
    times(32, &ask(&[whole(tokens)]))
}

fn calls_that_come_whole() -> Vec<Attack> {
    let mut all = Vec::new();
    for family in Family::ALL {
        for (speed, pace) in [(2_000.0, 20), (150.0, 120)] {
            for (model, first) in [
                ("plain", First::Begun),
                ("reasons", First::Begun),
                ("plain", First::Shown),
            ] {
                let nature = Nature { first, ..at(speed) };
                let request = Ask {
                    family,
                    model,
                    ..ask(&[whole(25_000)])
                };
                let name = format!("{family}, {model}, {speed} a second, first frame {first:?}");
                let steps = vec![Send(times(32, &request))];
                all.push(attack(&name, "1", setting(pace, nature), steps));
            }
        }
    }
    // Every day one of each family.
    all.into_iter().step_by(sized(7, 1) as usize).collect()
}

fn calls_at_a_fleet() -> Vec<Attack> {
    let three = Setting {
        gateways: 3,
        ..setting(10, at(2_000.0))
    };
    vec![attack(
        "three gateways",
        "1",
        three,
        vec![Send(buffered(25_000))],
    )]
}

fn word_between() -> Attack {
    let says: Vec<Part> = (0..14).flat_map(|_| [hidden(1_800), shown(2)]).collect();
    let steps = vec![Send(times(32, &ask(&says)))];
    attack("12 s hidden, a word", "1", setting(120, at(150.0)), steps)
}

/// What the provider counts with every chunk leaves out what is hidden, until the end.
fn counts_less() -> Attack {
    let nature = Nature {
        says: Says::AlwaysLess,
        ..at(150.0)
    };
    let says = [shown(2), hidden(1_500), shown(2), hidden(10_500), shown(20)];
    let request = Ask {
        model: "reasons",
        ..ask(&says)
    };
    attack(
        "counts that leave it out",
        "1",
        setting(100, nature),
        vec![Send(times(32, &request))],
    )
}

fn one_choice_talks() -> Attack {
    let request = Ask {
        says: vec![vec![shown(20_000)], vec![whole(20_000)]],
        n: 8,
        ..ask(&[]).limit(20_000)
    };
    let steps = vec![Send(times(8, &request))];
    attack("n = 8", "1", setting(100, at(150.0)), steps)
}

fn reads_nothing() -> Attack {
    let request = Ask {
        deaf: 340.0,
        ..ask(&[shown(25_000)])
    };
    let steps = vec![Send(times(32, &request))];
    attack("reads every 30 s", "1", setting(120, at(150.0)), steps)
}

fn faster() -> Vec<Attack> {
    let mut waves = vec![Send(buffered(25_000))];
    for _ in 1..sized(3, 8) {
        waves.extend([Rest(60.0), NewPurse, Send(buffered(25_000))]);
    }
    let first = vec![Send(buffered(25_000))];
    vec![
        attack("the first wave", "1", setting(20, at(1_000.0)), first),
        attack("later ones", "1", setting(60, at(1_000.0)), waves),
    ]
}

/// Ten finished answers behind long prompts teach a slow speed.
fn slow_teacher() -> Attack {
    let nature = Nature {
        prefill: 6_000.0,
        ..at(300.0)
    };
    let lesson = ask(&[shown(1_100)]).limit(1_200).prompt(1, 190_000);
    let mut steps: Vec<Step> = (0..sized(3, 10))
        .map(|_| Send(vec![lesson.clone()]))
        .collect();
    steps.extend([Forgive, NewPurse, Send(buffered(25_000))]);
    attack(
        "a slow teacher",
        "1",
        setting(60, nature),
        topped(steps, "20"),
    )
}

/// The same with more money at first.
fn topped(mut steps: Vec<Step>, dollars: &'static str) -> Vec<Step> {
    steps.insert(0, TopUp(dollars));
    steps
}

/// A rejected prediction, billed at once, teaches a fast one.
fn fast_teacher() -> Attack {
    let predicted = json!({"type": "content", "content": "late train ".repeat(30_000)});
    let lesson = Ask {
        extra: json!({"prediction": predicted}),
        tools: false,
        limit: None,
        ..ask(&[shown(300)])
    };
    let steps = vec![Send(vec![lesson]), NewPurse, Send(buffered(25_000))];
    attack(
        "a fast teacher",
        "1",
        setting(100, at(150.0)),
        topped(steps, "4"),
    )
}

fn finishes() -> Vec<Attack> {
    let setting = || {
        let mut setting = setting(
            60,
            Nature {
                stops: false,
                ..at(300.0)
            },
        );
        setting.houses[0].lines = "stops = false";
        setting
    };
    let streams = vec![Send(times(32, &ask(&[shown(25_000)])))];
    let mut leavings = Vec::new();
    for _ in 0..sized(2, 8) {
        let left = ask(&[shown(10_000)]).limit(10_000).leaves(4.0);
        leavings.extend([Send(times(16, &left)), Rest(60.0)]);
    }
    vec![
        attack("streams", "1", setting(), streams),
        attack("leavings", "20", setting(), leavings),
    ]
}

/// Large prompts begin, then whole requests that are idle take what money there is.
fn squeeze(gateways: usize) -> Attack {
    let big = Ask {
        text: Text::Letters,
        ..ask(&[shown(20)]).limit(300).prompt(1, 155_000)
    };
    let idle = |limit| Ask {
        model: "idle",
        stream: false,
        ..ask(&[shown(3)]).limit(limit)
    };
    let many = [(40, 60_000), (4, 20_000), (4, 4_000), (4, 1_000), (4, 300)];
    let asks = many.into_iter();
    let asks = asks.flat_map(|(count, limit)| times(count, &idle(limit)));
    let calm = Nature {
        queue: Queue::Always(6.0),
        prefill: 1e6,
        ..at(100.0)
    };
    let slow = Nature {
        queue: Queue::Always(9.0),
        first: First::Shown,
        ..calm
    };
    let idle = Model {
        slug: "idle",
        targets: &[1],
        ..PLAIN
    };
    // A database does not run faster.
    let pace = if gateways > 1 { 2 } else { sized(4, 2) as u32 };
    let mut setting = setting(pace, calm);
    setting.gateways = gateways;
    setting.houses.push(House {
        nature: slow,
        lines: "",
    });
    setting.models.push(idle);
    let steps = vec![
        Begin(times(18, &big), 0.01),
        Rest(2.5),
        Begin(asks.collect(), 0.02),
        Ended,
    ];
    attack(&format!("{gateways} gateways"), "20", setting, steps)
}

fn cap_while_running() -> Attack {
    let request = Ask {
        text: Text::Letters,
        ..ask(&[shown(300)]).limit(400).prompt(1, 31_000)
    };
    let steps = vec![
        Begin(times(16, &request), 0.01),
        Rest(4.0),
        Cap("0.01"),
        Ended,
    ];
    attack("a cap of $0.01", "20", setting(5, at(50.0)), steps)
}

/// A conversation of 60,000 tokens that the provider has, and eight leavings of it, so many times.
fn leavings(nature: Nature, pace: u32, know: &Ask, left: &[Ask], waves: u64) -> Attack {
    let mut steps = Vec::new();
    for _ in 0..2 {
        steps.extend([Send(vec![know.clone()]), Rest(15.0)]);
    }
    for wave in 0..waves {
        let at = usize::try_from(wave).unwrap() * 8 % left.len();
        steps.extend([Send(left[at..at + 8].to_vec()), Rest(60.0)]);
    }
    attack("leavings", "20", setting(pace, nature), steps)
}

fn marks_moved() -> Attack {
    let nature = Nature {
        caches: Caches::Marks,
        plays: Plays::Lenient,
        ..at(50.0)
    };
    let know = Ask {
        mark: Some(59),
        ..ask(&[shown(20)]).limit(8_000).prompt(1, 60_000)
    };
    let left = Ask {
        mark: Some(0),
        says: vec![vec![shown(6_000)]],
        ..know.clone().leaves(4.0)
    };
    leavings(nature, 20, &know, &times(8, &left), sized(1, 6))
}

fn other_field() -> Attack {
    let nature = Nature {
        caches: Caches::ByItself,
        ..at(50.0)
    };
    let know = ask(&[shown(20)]).limit(8_000).prompt(1, 60_000);
    let left = |number: usize| Ask {
        says: vec![vec![shown(6_000)]],
        extra: json!({"prompt_cache_key": format!("other-{number}")}),
        ..know.clone().leaves(4.0)
    };
    let all: Vec<Ask> = (0..96).map(left).collect();
    leavings(nature, 40, &know, &all, sized(3, 12))
}

fn one_prompt() -> Attack {
    let nature = Nature {
        caches: Caches::ByItself,
        ..at(50.0)
    };
    let left = |number| {
        ask(&[shown(sized(600, 6_000))])
            .limit(8_000)
            .prompt(1, 120_000)
            .leaves(4.0 + 0.05 * f64::from(number))
    };
    let steps = vec![Send((0..32).map(left).collect())];
    // A machine with other work needs seconds to read 32 such prompts.
    attack("32 at once", "20", setting(1, nature), steps)
}

fn fast_leavings() -> Attack {
    let left = ask(&[shown(20), whole(60_000)]).limit(64_000).leaves(28.0);
    let waves = (0..sized(4, 40)).flat_map(|_| [Send(times(16, &left)), Rest(62.0)]);
    attack(
        "1,000 a second",
        "20",
        setting(60, at(1_000.0)),
        waves.collect(),
    )
}

fn not_binding() -> Vec<Attack> {
    let twice = |asks: Vec<Ask>| {
        vec![
            Send(asks.clone()),
            Rest(30.0),
            Forgive,
            TopUp("1"),
            Send(asks),
        ]
    };
    let ignores = Nature {
        binds: Binds::Nothing,
        ..at(150.0)
    };
    let beside = Nature {
        binds: Binds::Text,
        ..at(150.0)
    };
    let ignored = ask(&[whole(25_000)]).limit(300);
    let reasoning = Ask {
        model: "reasons",
        ..ask(&[hidden(12_000), shown(100)]).limit(300)
    };
    let steps = [twice(times(32, &ignored)), twice(times(32, &reasoning))];
    let [first, second] = steps;
    vec![
        attack("ignored", "1", setting(120, ignores), first),
        attack("reasoning beside them", "1", setting(80, beside), second),
    ]
}

fn above_an_edge() -> Attack {
    // Ours counts 178,000, the provider 204,700.
    let nature = Nature {
        tier: Some(200_000),
        counts: 1_150,
        queue: Queue::Always(3.0),
        prefill: 1e6,
        ..at(100.0)
    };
    let mut setting = setting(2, nature);
    setting.models[0] = Model {
        context: 1_000_000,
        tier: Some(200_000),
        ..PLAIN
    };
    let request = ask(&[shown(250)]).limit(300).prompt(1, 178_000);
    let count = sized(12, 40) as usize;
    attack(
        "15 % more than ours",
        "20",
        setting,
        vec![Send(times(count, &request))],
    )
}

fn chosen_texts() -> Attack {
    let nature = Nature {
        tokenizer: Tokenizer::Cl100k,
        queue: Queue::Always(6.0),
        prefill: 1e6,
        ..at(100.0)
    };
    let request = Ask {
        text: Text::Tamil,
        ..ask(&[shown(20)]).limit(300).prompt(1, 36_000)
    };
    attack(
        "an older table of tokens",
        "20",
        setting(5, nature),
        vec![Send(times(40, &request))],
    )
}

/// Streams whose first frame never comes in time, in bursts.
fn no_frame(
    name: &str,
    dollars: &'static str,
    count: usize,
    prompt: u64,
    bursts: u64,
    hours: u64,
) -> Attack {
    let nature = Nature {
        first: First::Shown,
        ..at(150.0)
    };
    let request = ask(&[whole(20_000)]).limit(20_000).prompt(1, prompt);
    let mut setting = setting(100, nature);
    setting.houses[0].lines = if hours == 0 {
        "timeouts = { first_byte = \"4s\" }"
    } else {
        "timeouts = { first_byte = \"60s\" }"
    };
    let pause = if hours == 0 { Rest(60.0) } else { Jump(hours) };
    let steps = (0..bursts).flat_map(|_| [Send(times(count, &request)), pause.clone()]);
    attack(name, dollars, setting, steps.collect())
}

fn full_contexts() -> Attack {
    let mut attack = no_frame("an hour apart", "100", 64, 190_000, sized(1, 3), 1);
    attack.setting.pace = sized(8, 3) as u32;
    attack.setting.houses[0].nature.prefill = 50_000.0;
    attack
}

/// The target is stuck for everybody, our own requests too.
fn excused() -> Attack {
    let mut attack = no_frame("stuck", "2", 8, 20_000, sized(4, 24), 1);
    attack
        .steps
        .insert(1, Becomes(|nature| nature.stuck = true));
    attack
}

fn two_bills() -> Attack {
    let late = Nature {
        first: First::Shown,
        ..at(150.0)
    };
    let mut setting = setting(60, late);
    setting.houses[0].lines = "timeouts = { first_byte = \"30s\" }";
    setting.houses.push(House {
        nature: Nature {
            terse: 50,
            ..at(150.0)
        },
        lines: "",
    });
    setting.models[0].targets = &[0, 1];
    let request = ask(&[whole(20_000)]).limit(20_000).prompt(1, 20_000);
    let steps = (0..sized(3, 24)).flat_map(|_| [Send(times(8, &request)), Jump(1)]);
    attack("the first is late", "2", setting, steps.collect())
}

fn taught_slow() -> Attack {
    let queueing = Nature {
        first: First::Accepted,
        queue: Queue::Always(30.0),
        ..at(150.0)
    };
    let lesson = Ask {
        model: "reasons",
        ..ask(&[shown(900)]).limit(2_000)
    };
    let left = Ask {
        model: "reasons",
        ..ask(&[hidden(9_000), shown(3_000)])
            .limit(32_000)
            .prompt(1, 2_000)
            .leaves(28.0)
    };
    let mut steps: Vec<Step> = (0..sized(2, 6)).map(|_| Send(times(20, &lesson))).collect();
    steps.extend([
        Forgive,
        NewPurse,
        Becomes(|nature| nature.queue = HONEST.queue),
    ]);
    for _ in 0..sized(2, 6) {
        steps.extend([Send(times(16, &left)), Rest(90.0)]);
    }
    attack("a queue teaches", "20", setting(60, queueing), steps)
}
