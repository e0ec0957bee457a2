//! Time without output: what it costs, what is held for it, and what it tells about a target's pace.

use super::*;
use crate::metering::pace::Pace;

#[test]
fn a_wait_counts_where_the_pace_is_known_and_is_exposure_elsewhere() {
    let pace = Pace {
        median: 60_000,
        p95: 90_000,
    };
    let left = |known: Option<Pace>| {
        let mut meter = meter();
        meter.may_hide(Hiding::new(known, &meter.model.limits, false));
        meter.wait(Duration::from_secs(10));
        let waited = meter.charge_if_cut();
        meter.hide(Duration::from_secs(2));
        let cut = meter.charge_if_cut();
        (
            waited.usage.output,
            cut.usage.output,
            meter.running_output(),
            cut.owed.unwrap().output,
        )
    };
    assert_eq!(
        left(Some(pace)),
        (600, 720, 1_080, 720 + 37),
        "the median is charged, nearly the fastest held; a quarter of a second more is owed"
    );
    assert_eq!(
        left(None),
        (0, 300, 4_000, 1_800 + 37),
        "it may have been a queue"
    );
}

#[test]
fn a_finished_stream_tells_the_pace_of_what_it_did_not_show() {
    let reasoned = |output: u64, reasoning: u64| Usage {
        input: 9,
        output,
        reasoning,
        ..Usage::default()
    };
    let pace = |shown: u64, unseen: u64, usage: &Usage| {
        let mut meter = meter();
        meter.wait(Duration::from_millis(1_500));
        meter.hide(Duration::from_millis(unseen));
        meter.observe(&shows(shown), &says(9, output_total(usage)));
        meter.report(&says(9, output_total(usage)), true);
        meter.observed_pace(usage)
    };
    assert_eq!(pace(350, 500, &reasoned(100, 900)), None, "two seconds");
    assert_eq!(
        pace(350, 4_500, &reasoned(100, 900)),
        Some(150_000),
        "900 tokens in six seconds"
    );
    assert_eq!(
        pace(3_500, 4_500, &reasoned(100, 900)),
        Some(0),
        "it showed its reasoning"
    );
    assert_eq!(
        pace(350, 4_500, &reasoned(100, 40)),
        None,
        "too little to tell"
    );
    assert_eq!(
        pace(350, 4_500, &reasoned(1_000, 0)),
        Some(150_000),
        "counted as output"
    );
}

#[test]
fn silence_ends_a_stream_only_where_the_hold_is_not_the_whole_limit() {
    let due = |whole| {
        let mut meter = meter();
        let pace = Some(Pace::named(100));
        meter.may_hide(Hiding::new(pace, &meter.model.limits, whole));
        meter.hide(Duration::from_secs(10));
        (meter.cost_due().picos(), meter.cost_at_most().picos())
    };
    let (input, hidden) = (1_000 * 3_750_000, 1_000 * 15_000_000);
    assert_eq!(due(true), (input, input + hidden));
    assert_eq!(due(false), (input + hidden, input + hidden));
}

#[test]
fn what_nobody_counted_of_a_finished_answer_is_charged_where_the_pace_is_known() {
    let finished = |known: Option<Pace>| {
        let mut meter = meter();
        meter.may_hide(Hiding::new(known, &meter.model.limits, false));
        meter.hide(Duration::from_secs(10));
        meter.observe(&shows(350), &WireUsage::default());
        let ended = meter.finish(Ending::Complete, None, TOOK);
        (ended.usage.output, ended.owed.unwrap().output)
    };
    assert_eq!(finished(Some(Pace::named(100))), (1_070, 1_085));
    assert_eq!(finished(None), (70, 1_585), "exposure");
}
