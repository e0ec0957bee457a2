//! What a meter says while an answer runs and at its end, for every kind of usage a provider may report.
//!
//! Prices are $3 in, $15 out, $3.75 for a cache write: 3, 15 and 3.75 million picodollars a token.

use farebox_protocol::{FrameFacts, TextSize, WireUsage};

use super::*;
use crate::config::{self, ProcessSecrets, Source};

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

fn meter() -> Meter {
    let secrets = ProcessSecrets { lenient: true };
    let (config, faults) = config::load(&Source::new("catalog.toml", CATALOG), &Source::new("routes.toml", ROUTES), &secrets);
    let config = config.unwrap_or_else(|| panic!("{}", faults.render(config::Paint::Plain)));
    let start = Start {
        estimated_input: 1_000,
        text: TextSize { ascii: 3_500, other: 0 },
        images: 0,
        output_limit: 4_000,
        one_hour_cache: false,
    };
    Meter::new(Arc::clone(&config.catalog.models[0]), start)
}

fn says(input: u64, output: u64) -> WireUsage {
    WireUsage { input: Some(input), output: Some(output), ..WireUsage::default() }
}

fn shows(bytes: u64) -> FrameFacts {
    FrameFacts { shown: TextSize { ascii: bytes, other: 0 }, ..FrameFacts::default() }
}

const HELD: Amount = Amount::from_picos(50_000_000_000);

fn picos(counted: &Counted) -> i64 {
    farebox_ledger::account::cost(&counted.lines).unwrap().picos()
}

#[test]
fn what_is_not_counted_yet_is_covered_at_its_dearest() {
    let mut meter = meter();
    assert_eq!(meter.running_cost().picos(), 1_000 * 3_750_000, "any input may turn out to be written to a cache");
    meter.observe(&shows(700), &WireUsage::default());
    assert_eq!(meter.running_cost().picos(), 1_000 * 3_750_000 + 200 * 15_000_000);
    let counted = FrameFacts { usage: true, ..FrameFacts::default() };
    meter.observe(&counted, &says(1_500, 150));
    assert_eq!(meter.running_cost().picos(), 1_500 * 3_000_000 + 150 * 15_000_000, "re-rated by the exact count");
    meter.observe(&shows(350), &WireUsage::default());
    assert_eq!((meter.running_output(), meter.running_cost().picos()), (250, 1_500 * 3_000_000 + 250 * 15_000_000));
}

#[test]
fn hidden_output_is_metered_by_time_until_it_is_counted() {
    let mut meter = meter();
    for _ in 0..1_000 {
        meter.hide(Duration::from_millis(3));
    }
    assert_eq!(meter.running_output(), 450, "150 tokens a second, however small the steps");
    assert_eq!(meter.so_far().usage.output, 450);
    meter.report(&says(1_000, 300), false);
    assert_eq!((meter.running_output(), meter.so_far().usage.output), (300, 300), "the provider's count takes its place");
    meter.report(&says(1_000, 300), false);
    meter.hide(Duration::from_secs(1));
    assert_eq!(meter.so_far().usage.output, 450, "what is hidden afterwards comes on top");
    let ended = meter.finish(Ending::Complete, HELD);
    assert_eq!(ended.evidence, Evidence::Local, "a count from the middle is not the end's");
}

#[test]
fn the_final_count_is_charged_and_a_missing_one_is_ours() {
    let mut meter = meter();
    meter.observe(&shows(700), &WireUsage::default());
    let ours = meter.finish(Ending::Complete, HELD);
    assert_eq!((ours.evidence, ours.usage.input, ours.usage.output), (Evidence::Local, 700, 140));
    meter.report(&says(900, 1), false);
    let ours = meter.finish(Ending::Complete, HELD);
    assert_eq!((ours.evidence, ours.usage.input, ours.usage.output), (Evidence::Local, 900, 140), "late usage never came");
    meter.report(&says(900, 170), true);
    let theirs = meter.finish(Ending::Complete, HELD);
    assert_eq!((theirs.evidence, picos(&theirs)), (Evidence::Provider, 900 * 3_000_000 + 170 * 15_000_000));
}

#[test]
fn an_absurd_count_is_disputed_at_most_the_hold_and_never_re_rates() {
    let absurd = [says(300_000, 1), says(10, 8_001), WireUsage { malformed: true, ..says(10, 1) }, {
        WireUsage { cache_read: Some(20), input_is_total: true, ..says(10, 1) }
    }];
    for wire in absurd {
        let mut meter = meter();
        meter.observe(&shows(700), &WireUsage::default());
        let before = meter.running_cost();
        meter.report(&wire, false);
        assert_eq!(meter.running_cost(), before, "{wire:?}");
        let ended = meter.finish(Ending::Complete, HELD);
        assert_eq!((ended.evidence, ended.usage.input, ended.usage.output), (Evidence::Disputed, 700, 140), "{wire:?}");
        for held in [0, 1, 3_000_000, 700 * 3_000_000, 700 * 3_000_000 + 15_000_001] {
            let ended = meter.finish(Ending::Complete, Amount::from_picos(held));
            assert!(picos(&ended) <= held, "{wire:?} {held}");
        }
        meter.report(&says(900, 170), true);
        assert_eq!(meter.finish(Ending::Complete, HELD).evidence, Evidence::Provider, "the last count decides");
    }
}

#[test]
fn a_believed_input_that_is_larger_than_the_hold_is_disputed_too() {
    let mut meter = meter();
    meter.report(&says(190_000, 1), false);
    meter.report(&says(190_000, 900_000), true);
    assert!(picos(&meter.finish(Ending::Complete, HELD)) <= HELD.picos());
}

#[test]
fn no_output_is_free_unless_the_provider_says_what_it_did() {
    let mut meter = meter();
    for ending in [Ending::Nothing, Ending::Broken, Ending::Complete] {
        assert_eq!(meter.finish(ending, HELD).lines, Vec::new(), "{ending:?}");
    }
    assert_eq!(picos(&meter.finish(Ending::Cut, HELD)), 700 * 3_000_000, "a customer who leaves pays the input");
    meter.report(&says(900, 0), true);
    assert_eq!(meter.finish(Ending::Broken, HELD).lines, Vec::new());
    assert_eq!(picos(&meter.finish(Ending::Complete, HELD)), 900 * 3_000_000);
}
