//! A meter while an answer runs and at its end, for every kind of usage a provider may report.
//!
//! Prices are $3 in, $15 out, $3.75 for a cache write: 3, 15 and 3.75 million picodollars a token.

use farebox_protocol::{Classes, FrameFacts, TextSize, WireUsage};

use super::*;
use crate::config::{self, ProcessSecrets, Source};
use crate::metering::Lifetimes;

mod classes;
mod unshown;

const CATALOG: &str = r#"
[[model]]
model             = "Test"
slug              = "test"
provider          = "Tests"
best_path         = "chat"
best_environments = ["tests"]
price             = { input = "3", output = "15", cache_read = "0.30", cache_write = "3.75" }
capabilities      = ["streaming"]
limits            = { context = 200_000, max_output = 64_000 }
"#;

const ROUTES: &str = r#"
[provider.sim]
simulated = true
[[route]]
slug    = "test"
targets = [ { provider = "sim", model = "sim" } ]
"#;

const START: Start = Start {
    estimated_input: 1_000,
    most_input: 200_000,
    images: 0,
    output_limit: 4_000,
    choices: 1,
    predicted: 0,
    lifetimes: Lifetimes::NONE,
    classes: Classes::STANDARD,
};

fn meter() -> Meter {
    predicting(0)
}

/// A meter for a request that predicts this many tokens of its answer.
fn predicting(predicted: u64) -> Meter {
    let start = Start { predicted, ..START };
    Meter::new(model(CATALOG), start)
}

fn model(catalog: &str) -> Arc<Model> {
    let secrets = ProcessSecrets { lenient: true };
    let (config, faults) = config::load(
        &Source::new("catalog.toml", catalog),
        &Source::new("routes.toml", ROUTES),
        &secrets,
    );
    let config = config.unwrap_or_else(|| panic!("{}", faults.render(config::Paint::Plain)));
    Arc::clone(&config.catalog.models[0])
}

fn says(input: u64, output: u64) -> WireUsage {
    WireUsage {
        input: Some(input),
        output: Some(output),
        ..WireUsage::default()
    }
}

fn shows(bytes: u64) -> FrameFacts {
    FrameFacts {
        shown: TextSize {
            ascii: bytes,
            other: 0,
        },
        ..FrameFacts::default()
    }
}

const TOOK: Duration = Duration::from_secs(1);

fn picos(counted: &Counted) -> i64 {
    farebox_ledger::bill::cost(&counted.lines).unwrap().picos()
}

#[test]
fn a_prediction_is_held_for_and_counted_where_nobody_says_what_was_taken() {
    let mut meter = predicting(500);
    meter.observe(&shows(700), &WireUsage::default());
    let local = Local {
        input: 1_000,
        output: 180,
    };
    let ended = |meter: &Meter| {
        meter
            .finish(Ending::Complete, Some(local), TOOK)
            .usage
            .output
    };
    assert_eq!(
        ended(&meter),
        500,
        "180 shown, and 320 that the answer has not"
    );
    meter.report(&says(1_000, 190), true);
    assert_eq!(
        ended(&meter),
        190,
        "the provider's count has what it rejected"
    );
}

#[test]
fn a_marked_prompt_costs_a_cache_write_where_the_answer_was_cut_before_anybody_counted() {
    let mut meter = meter();
    meter.mark_cache(true);
    meter.observe(&shows(350), &WireUsage::default());
    let cut = meter.finish(Ending::Cut, None, TOOK).usage;
    assert_eq!((cut.input, cut.cache_write), (0, 700));
    assert_eq!(
        meter.finish(Ending::Complete, None, TOOK).usage.cache_write,
        0,
        "nobody left"
    );
    meter.report(&says(900, 1), false);
    assert_eq!(
        meter.finish(Ending::Cut, None, TOOK).usage.input,
        900,
        "the provider has said it"
    );
}

#[test]
fn the_final_count_is_charged_and_a_missing_one_is_ours() {
    let mut meter = meter();
    meter.observe(&shows(350), &WireUsage::default());
    let ours = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!(
        (ours.evidence, ours.usage.input, ours.usage.output),
        (Some(Evidence::Local), 700, 70)
    );
    meter.report(&says(900, 1), false);
    meter.observe(&shows(350), &WireUsage::default());
    let ours = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!(
        (ours.evidence, ours.usage.input, ours.usage.output),
        (Some(Evidence::Local), 900, 140),
        "late usage never came"
    );
    meter.report(&says(900, 170), true);
    let theirs = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!(
        (theirs.evidence, picos(&theirs)),
        (Some(Evidence::Provider), 900 * 3_000_000 + 170 * 15_000_000)
    );
}

#[test]
fn an_absurd_count_is_disputed_within_bounds_and_never_re_rates() {
    let local = Local {
        input: 800,
        output: 150,
    };
    for (wire, input, output) in [
        (says(300_000, 1), 200_000, 150),
        (says(10, 8_001), 800, 8_000),
        (
            WireUsage {
                malformed: true,
                ..says(10, 1)
            },
            800,
            150,
        ),
        (
            WireUsage {
                malformed: true,
                ..says(900, 200)
            },
            900,
            200,
        ),
        (
            WireUsage {
                cache_read: Some(2_000),
                input_is_total: true,
                ..says(1_000, 1)
            },
            0,
            150,
        ),
    ] {
        let mut meter = meter();
        meter.observe(&shows(700), &WireUsage::default());
        meter.report(&wire, false);
        let ended = meter.finish(Ending::Complete, Some(local), TOOK);
        assert_eq!(
            (ended.evidence, ended.usage.input, ended.usage.output),
            (Some(Evidence::Disputed), input, output),
            "{wire:?}"
        );
        meter.report(&says(900, 170), true);
        assert_eq!(
            meter.finish(Ending::Complete, None, TOOK).evidence,
            Some(Evidence::Provider),
            "the last count decides"
        );
    }
}

#[test]
fn a_disputed_output_is_bounded_by_what_the_time_allows() {
    let mut meter = meter();
    meter.report(&says(1_000, 900_000), true);
    let ended = meter.finish(Ending::Complete, None, Duration::from_secs(100));
    assert_eq!(
        (ended.evidence, ended.usage.output),
        (Some(Evidence::Disputed), 15_000),
        "150 tokens a second"
    );
}

#[test]
fn zero_beside_words_is_no_count() {
    let local = Local {
        input: 800,
        output: 150,
    };
    for (wire, input, output) in [
        (says(0, 0), 800, 150),
        (says(0, 170), 800, 170),
        (says(900, 0), 900, 150),
    ] {
        let mut meter = meter();
        meter.observe(&shows(700), &WireUsage::default());
        meter.report(&wire, true);
        assert!(meter.needs_local(Ending::Complete), "{wire:?}");
        let ended = meter.finish(Ending::Complete, Some(local), TOOK);
        assert_eq!(
            (ended.evidence, ended.usage.input, ended.usage.output),
            (Some(Evidence::Local), input, output),
            "{wire:?}"
        );
    }
}

#[test]
fn an_early_count_is_not_the_ends() {
    let local = Local {
        input: 800,
        output: 150,
    };
    let mut meter = meter();
    meter.report(&says(900, 1), false);
    meter.observe(&shows(700), &WireUsage::default());
    let ended = meter.finish(Ending::Complete, Some(local), TOOK);
    assert_eq!(
        (ended.evidence, ended.usage.input, ended.usage.output),
        (Some(Evidence::Local), 900, 150)
    );
    meter.report(&says(900, 170), false);
    let ended = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!(
        (ended.evidence, ended.usage.output),
        (Some(Evidence::Provider), 170),
        "nothing was shown after it"
    );
}

#[test]
fn reasoning_is_outside_where_the_total_says_so() {
    let mut meter = meter();
    let outside = WireUsage {
        reasoning: Some(900),
        total: Some(1_000 + 100 + 900),
        ..says(1_000, 100)
    };
    meter.report(&outside, true);
    let ended = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!((ended.usage.output, ended.usage.reasoning), (100, 900));
    let inside = WireUsage {
        reasoning: Some(90),
        total: Some(1_100),
        ..says(1_000, 100)
    };
    let mut meter = self::meter();
    meter.report(&inside, true);
    let ended = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!((ended.usage.output, ended.usage.reasoning), (10, 90));
}

fn step(input: u64, output: u64) -> farebox_protocol::ReportedUsage {
    farebox_protocol::ReportedUsage {
        input,
        output,
        ..farebox_protocol::ReportedUsage::default()
    }
}

#[test]
fn each_step_of_an_answer_may_fill_the_context() {
    let mut meter = meter();
    let wire = WireUsage {
        compactions: vec![step(180_000, 3_500)],
        ..says(150_000, 1_000)
    };
    meter.report(&wire, true);
    let ended = meter.finish(Ending::Complete, None, TOOK);
    assert_eq!(ended.evidence, Some(Evidence::Provider));
    assert_eq!(picos(&ended), 330_000 * 3_000_000 + 4_500 * 15_000_000);
    for absurd in [(200_001, 1), (180_000, 200_000)] {
        let mut meter = self::meter();
        meter.report(
            &WireUsage {
                compactions: vec![step(absurd.0, absurd.1)],
                ..says(1_000, 1_000)
            },
            true,
        );
        assert_eq!(
            meter.finish(Ending::Complete, None, TOOK).evidence,
            Some(Evidence::Disputed),
            "{absurd:?}"
        );
    }
    let mut cut = self::meter();
    cut.report(&wire, false);
    cut.observe(&shows(35_000), &WireUsage::default());
    let ended = cut.finish(
        Ending::Cut,
        Some(Local {
            input: 900,
            output: 10_000,
        }),
        TOOK,
    );
    assert_eq!(
        picos(&ended),
        330_000 * 3_000_000 + 10_000 * 15_000_000,
        "the larger output, with the same steps"
    );
}

#[test]
fn a_broken_stream_costs_its_words_and_not_its_prompt() {
    let mut meter = meter();
    meter.observe(&shows(700), &WireUsage::default());
    meter.report(&says(900, 1), false);
    let ended = meter.finish(
        Ending::Broken,
        Some(Local {
            input: 800,
            output: 150,
        }),
        TOOK,
    );
    assert_eq!(
        (ended.evidence, picos(&ended)),
        (Some(Evidence::Local), 150 * 15_000_000)
    );
}

#[test]
fn silence_that_the_customer_asked_for_costs_its_prompt() {
    let counts = Some(Local {
        input: 800,
        output: 0,
    });
    let ended = |usage: Option<&WireUsage>| {
        let mut meter = meter();
        meter.ask_silence();
        usage
            .into_iter()
            .for_each(|usage| meter.report(usage, true));
        let local = counts.filter(|_| meter.needs_local(Ending::Complete));
        (meter.finish(Ending::Complete, local, TOOK), meter)
    };
    for said in [None, Some(says(0, 0))] {
        let (counted, meter) = ended(said.as_ref());
        assert_eq!(
            (counted.evidence, picos(&counted)),
            (Some(Evidence::Local), 800 * 3_000_000),
            "{said:?}"
        );
        assert_eq!(
            meter.miscount(Ending::Complete, &counted),
            Some(Miscount::Missing)
        );
        assert_eq!(
            meter.finish(Ending::Broken, counts, TOOK).lines,
            Vec::new(),
            "a break stays free"
        );
    }
    let (counted, _) = ended(Some(&says(900, 0)));
    assert_eq!(
        (counted.evidence, picos(&counted)),
        (Some(Evidence::Provider), 900 * 3_000_000)
    );
    let mut meter = meter();
    meter.expect(150_000, true);
    meter.pass(Duration::from_secs(10), Duration::from_secs(10));
    meter.ask_silence();
    let counted = meter.finish(Ending::Complete, counts, TOOK);
    assert_eq!(
        counted.usage.output, 1_500,
        "reasoning that used up the limit, by its time"
    );
}

#[test]
fn no_output_is_free_unless_the_provider_says_what_it_did() {
    let mut meter = meter();
    for ending in [Ending::Nothing, Ending::Broken, Ending::Complete] {
        assert_eq!(
            meter.finish(ending, None, TOOK).lines,
            Vec::new(),
            "{ending:?}"
        );
    }
    assert_eq!(
        picos(&meter.finish(Ending::Cut, None, TOOK)),
        700 * 3_000_000,
        "a customer who leaves pays the input"
    );
    meter.report(&says(900, 0), true);
    assert_eq!(meter.finish(Ending::Broken, None, TOOK).lines, Vec::new());
    assert_eq!(
        picos(&meter.finish(Ending::Complete, None, TOOK)),
        900 * 3_000_000
    );
}
