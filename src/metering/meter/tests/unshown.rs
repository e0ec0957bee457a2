//! What is charged of output that nobody counted and nobody saw, and what a counted prompt leaves to be held.

use super::*;

/// 100 tokens a second.
const PACE: u64 = 100_000;

fn left(meter: &Meter, shown: u64) -> u64 {
    let local = Local {
        input: 800,
        output: shown,
    };
    meter.finish(Ending::Cut, Some(local), TOOK).usage.output
}

fn after(seconds: (u64, u64), hides: bool) -> Meter {
    let mut meter = meter();
    meter.expect(PACE, hides);
    let [frame, text] = [seconds.0, seconds.1].map(Duration::from_secs);
    meter.pass(frame, text);
    meter.observe(&shows(350), &WireUsage::default());
    meter
}

#[test]
fn a_target_that_may_hide_output_is_charged_for_what_it_makes_in_its_time() {
    assert_eq!(left(&after((10, 0), true), 90), 1_000);
    assert_eq!(left(&after((10, 0), true), 1_500), 1_500, "it showed more");
    assert_eq!(
        left(&after((1_000, 0), true), 90),
        4_000,
        "at most what it was allowed"
    );
    assert_eq!(left(&after((10, 1), false), 90), 90);
}

#[test]
fn a_long_silence_behind_the_text_is_charged_everywhere() {
    assert_eq!(
        left(&after((10, 2), false), 90),
        90,
        "the next word takes its time"
    );
    assert_eq!(left(&after((10, 5), false), 90), 590);
}

#[test]
fn each_of_several_answers_is_made_at_the_pace() {
    let start = Start {
        choices: 3,
        output_limit: 12_000,
        ..START
    };
    let mut meter = Meter::new(model(CATALOG), start);
    meter.expect(PACE, false);
    meter.pass(Duration::from_secs(10), Duration::ZERO);
    assert_eq!(left(&meter, 90), 3_000);
}

#[test]
fn nobody_has_seen_what_was_given_up() {
    let mut meter = meter();
    meter.expect(PACE, false);
    meter.unseen(Duration::from_secs(7));
    assert_eq!(left(&meter, 0), 700);
}

#[test]
fn an_answer_without_a_count_is_charged_like_a_leaving() {
    let meter = after((10, 0), true);
    let local = Local {
        input: 800,
        output: 90,
    };
    let ended = meter.finish(Ending::Complete, Some(local), TOOK);
    assert_eq!(
        (ended.evidence, ended.usage.output),
        (Some(Evidence::Local), 1_000)
    );
}

#[test]
fn a_counted_prompt_is_priced_without_its_answer() {
    let mut meter = meter();
    assert_eq!(meter.counted_prompt(), None);
    meter.report(&says(0, 90), false);
    assert_eq!(meter.counted_prompt(), None, "zeros are no count");
    meter.report(&says(800, 95), false);
    let cost = Amount::from_picos(800 * 3_000_000);
    assert_eq!(meter.counted_prompt(), Some((cost, 800)));
}

#[test]
fn a_count_clearly_above_what_was_allowed_is_an_excess() {
    let counted = |output| Usage {
        output,
        ..Usage::default()
    };
    let meter = meter();
    assert_eq!(
        meter.excess(&counted(4_564)),
        None,
        "an eighth and 64 tokens"
    );
    assert_eq!(meter.excess(&counted(4_565)), Some(565));
}

#[test]
fn output_that_was_not_shown_is_seen_in_the_count() {
    let mut meter = meter();
    meter.observe(&shows(3_500), &WireUsage::default());
    let counted = |output, reasoning| Usage {
        output,
        reasoning,
        ..Usage::default()
    };
    assert!(!meter.hid(&counted(1_000, 0)));
    assert!(
        meter.hid(&counted(1_000, 800)),
        "reasoning beside all of the text"
    );
    assert!(!meter.hid(&counted(100, 900)), "reasoning that was shown");
    assert!(meter.hid(&counted(9_000, 0)));
}
