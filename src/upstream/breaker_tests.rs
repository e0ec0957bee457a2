//! The breaker's rules, one by one, with the clock passed in.

use super::*;

const POLICY: BreakerPolicy = BreakerPolicy {
    failures: 3,
    open: Duration::from_secs(30),
};
const ANN: Holder = Holder(1);
const BOB: Holder = Holder(2);
const CAT: Holder = Holder(3);
const BROKEN: TargetFault = TargetFault {
    unreachable: false,
    rest: None,
};
const UNREACHABLE: TargetFault = TargetFault {
    unreachable: true,
    rest: None,
};

fn after(start: Instant, secs: u64) -> Instant {
    start + Duration::from_secs(secs)
}

fn named(secs: u64) -> TargetFault {
    TargetFault {
        unreachable: false,
        rest: Some(Duration::from_secs(secs)),
    }
}

/// A request of `key` that fails.
#[track_caller]
fn fail(breaker: &mut Breaker, key: Holder, now: Instant, fault: TargetFault) {
    let leave = breaker.admit(key, true, now).unwrap();
    breaker.failed(leave, now, POLICY, fault);
}

/// A request of `key` that is answered.
#[track_caller]
fn answer(breaker: &mut Breaker, key: Holder, now: Instant) {
    let mut leave = breaker.admit(key, true, now).unwrap();
    breaker.began(&mut leave, now);
    breaker.succeeded(leave, now);
}

/// Sends a request of our own and returns what it found at once.
fn probe(breaker: &mut Breaker, verdict: ProbeVerdict, now: Instant) {
    breaker.probing.sent(now);
    breaker.probed(verdict, now, now);
}

/// Paused for all since `now`.
fn paused(now: Instant) -> Breaker {
    let mut breaker = Breaker::default();
    for key in [ANN, BOB] {
        fail(&mut breaker, key, now, BROKEN);
    }
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), now);
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn a_customers_failures_pause_the_target_for_it_alone() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, ANN, start, BROKEN);
    }
    assert_eq!(breaker.is_open_to(ANN, start), Some(TRY_EVERY));
    assert_eq!(
        (breaker.state(), breaker.paused_for(start).count()),
        (BreakerState::Closed, 1)
    );
    answer(&mut breaker, BOB, start);

    // One trial every five seconds; a failed one pauses again.
    let trial = breaker.admit(ANN, true, after(start, 5)).unwrap();
    assert!(breaker.admit(ANN, true, after(start, 5)).is_err());
    breaker.failed(trial, after(start, 6), POLICY, BROKEN);
    assert!(breaker.admit(ANN, true, after(start, 10)).is_err());
    answer(&mut breaker, ANN, after(start, 11));
    assert_eq!(breaker.paused_for(after(start, 11)).count(), 0);
    assert!(breaker.admit(ANN, true, after(start, 11)).is_ok());
}

#[test]
fn fifty_customers_that_fail_on_purpose_pause_nobody_else() {
    let start = Instant::now();
    for fault in [BROKEN, named(600)] {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            for key in 1..=50 {
                if breaker.is_open_to(Holder(key), start).is_none() {
                    fail(&mut breaker, Holder(key), start, fault);
                }
            }
        }
        assert_eq!(breaker.paused_for(start).count(), 50);
        assert_eq!(breaker.state(), BreakerState::Closed);
        probe(&mut breaker, ProbeVerdict::Passed, start);
        assert_eq!(breaker.is_open_to(Holder(99), start), None);
        answer(&mut breaker, Holder(99), start);
    }
}

#[test]
fn a_request_of_our_own_that_fails_pauses_it_for_all_and_one_that_passes_resumes_it() {
    let start = Instant::now();
    let mut breaker = paused(start);
    assert_eq!(breaker.is_open_to(CAT, after(start, 20)), Some(TRY_EVERY));
    assert_eq!(breaker.probe_due(start), Some(after(start, 5)));
    for secs in [5, 10, 15] {
        probe(
            &mut breaker,
            ProbeVerdict::Failed(BROKEN),
            after(start, secs),
        );
        assert_eq!(
            breaker.probe_due(after(start, secs)),
            Some(after(start, secs + 5))
        );
    }
    probe(&mut breaker, ProbeVerdict::Passed, after(start, 20));
    assert_eq!(breaker.state(), BreakerState::Closed);
    for key in [ANN, BOB, CAT] {
        assert_eq!(breaker.is_open_to(key, after(start, 20)), None);
        assert!(
            !breaker.doubts(key, after(start, 20)),
            "it was not their doing"
        );
    }
    assert_eq!(breaker.probe_due(after(start, 20)), None);
}

#[test]
fn connections_that_fail_pause_it_for_all_whoever_met_them() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, ANN, start, UNREACHABLE);
    }
    assert!(breaker.admit(BOB, true, start).is_err() && breaker.doubts_connection());
    breaker.probed(ProbeVerdict::Reached, start, start);
    assert!(breaker.admit(BOB, true, start).is_ok());

    // An answer of any kind shows that there was a connection.
    let mut breaker = Breaker::default();
    for fault in [UNREACHABLE, UNREACHABLE, BROKEN, UNREACHABLE, UNREACHABLE] {
        let leave = Leave {
            key: ANN,
            waiting: None,
            trial: Trial::No,
        };
        breaker.failed(leave, start, POLICY, fault);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn we_ask_when_two_customers_have_failed_or_wait_too_long() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, ANN, start, BROKEN);
    }
    assert_eq!(breaker.probe_due(start), None, "one proves nothing");
    fail(&mut breaker, BOB, after(start, 2), BROKEN);
    assert_eq!(breaker.probe_due(after(start, 2)), Some(after(start, 2)));
    assert_eq!(breaker.probe_due(after(start, 120)), None, "long ago");

    let mut breaker = Breaker::default();
    let first = breaker.admit(ANN, true, start).unwrap();
    let again = breaker.admit(ANN, true, start).unwrap();
    assert_eq!(breaker.probe_due(start), None);
    let mut second = breaker.admit(BOB, true, after(start, 3)).unwrap();
    assert_eq!(
        breaker.probe_due(after(start, 4)),
        Some(after(start, 13)),
        "ten seconds after the second"
    );
    breaker.began(&mut second, after(start, 5));
    assert_eq!(breaker.probe_due(after(start, 14)), None);
    breaker.abandoned(first, after(start, 15));
    breaker.failed(again, after(start, 15), POLICY, BROKEN);
    assert!(breaker.waiting.is_empty());
    assert!(
        breaker.admit(ANN, false, start).unwrap().waiting.is_none(),
        "a whole answer has no first frame"
    );
}

#[test]
fn each_success_doubles_the_interval_up_to_five_minutes() {
    let (mut now, mut breaker) = (Instant::now(), Breaker::default());
    let mut intervals = Vec::new();
    for _ in 0..9 {
        for key in [ANN, BOB] {
            fail(&mut breaker, key, now, BROKEN);
        }
        let due = breaker.probe_due(now).unwrap();
        intervals.push((due - now).as_secs());
        now = due;
        probe(&mut breaker, ProbeVerdict::Passed, now);
    }
    assert_eq!(intervals, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), now);
    assert_eq!(breaker.probe_due(now), Some(now + TRY_EVERY));
}

#[test]
fn who_fails_while_ours_pass_is_sent_to_the_next_target_first() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for key in [ANN, BOB, ANN, ANN] {
        fail(&mut breaker, key, start, BROKEN);
    }
    assert!(!breaker.doubts(ANN, start) && breaker.is_open_to(ANN, start).is_some());
    probe(&mut breaker, ProbeVerdict::Passed, after(start, 1));
    let now = after(start, 2);
    assert!(breaker.doubts(ANN, now) && breaker.doubts(BOB, now) && !breaker.doubts(CAT, now));
    assert_eq!(breaker.is_open_to(ANN, now), None, "last, but served");
    answer(&mut breaker, ANN, now);
    assert!(!breaker.doubts(ANN, now));
    assert!(!breaker.doubts(BOB, after(start, 61)), "not forever");
}

#[test]
fn a_named_rest_binds_who_earned_it_and_everybody_only_when_we_are_told_the_same() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, named(600));
    assert_eq!(
        breaker.is_open_to(ANN, after(start, 10)),
        Some(Duration::from_secs(50)),
        "a minute at most, and no trial"
    );
    fail(&mut breaker, BOB, start, named(20));
    answer(&mut breaker, CAT, start);
    probe(&mut breaker, ProbeVerdict::Passed, after(start, 1));
    assert!(breaker.is_open_to(ANN, after(start, 10)).is_some());

    probe(
        &mut breaker,
        ProbeVerdict::Failed(named(40)),
        after(start, 20),
    );
    assert_eq!(
        breaker.is_open_to(CAT, after(start, 30)),
        Some(Duration::from_secs(30))
    );
    assert_eq!(
        breaker.probe_due(after(start, 30)),
        Some(after(start, 60)),
        "we keep to it as well"
    );
    probe(&mut breaker, ProbeVerdict::Passed, after(start, 60));
    assert_eq!(breaker.is_open_to(CAT, after(start, 60)), None);

    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, named(0));
    assert!(
        breaker.admit(ANN, true, start).is_ok(),
        "zero names no time"
    );
}

#[test]
fn where_we_cannot_ask_one_customers_request_in_five_seconds_decides() {
    let start = Instant::now();
    let mut breaker = paused(start);
    probe(&mut breaker, ProbeVerdict::Unasked, after(start, 5));
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    let now = after(start, 6);
    let trial = breaker.admit(CAT, true, now).unwrap();
    assert_eq!(breaker.is_open_to(ANN, now), Some(TRY_EVERY));
    breaker.abandoned(trial, now);
    let trial = breaker.admit(CAT, true, now).unwrap();
    breaker.failed(trial, after(start, 8), POLICY, BROKEN);
    let now = after(start, 11);
    assert!(
        breaker.admit(CAT, true, now).is_err(),
        "who has failed leaves the next trial to others"
    );
    answer(&mut breaker, ANN, now);
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert!(breaker.admit(CAT, true, now).is_ok());
}

#[test]
fn ours_that_always_fail_at_a_working_target_do_not_pause_it_for_good() {
    let start = Instant::now();
    let mut breaker = paused(start);
    let now = after(start, 30);
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), now);
    let mut trial = breaker.admit(CAT, true, now).unwrap();
    assert_eq!(
        breaker.is_open_to(Holder(4), now),
        Some(TRY_EVERY),
        "one customer's request, not all"
    );
    breaker.began(&mut trial, now);
    assert_eq!(breaker.state(), BreakerState::Closed);
    for key in [ANN, BOB] {
        fail(&mut breaker, key, after(start, 40), BROKEN);
    }
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), after(start, 40));
    assert_eq!(
        breaker.state(),
        BreakerState::Closed,
        "a customer was served while ours failed"
    );
    // A connection that cannot be made is evidence all the same, and so are ours once one has passed.
    probe(&mut breaker, ProbeVerdict::Passed, after(start, 50));
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), after(start, 60));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_first_frame_resumes_it_and_an_outdated_failure_pauses_nothing() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    let mut slow = breaker.admit(CAT, true, start).unwrap();
    for key in [ANN, BOB] {
        fail(&mut breaker, key, start, BROKEN);
    }
    probe(&mut breaker, ProbeVerdict::Failed(BROKEN), start);
    breaker.began(&mut slow, after(start, 1));
    assert_eq!(breaker.state(), BreakerState::Closed);

    breaker.probed(ProbeVerdict::Passed, after(start, 5), after(start, 6));
    breaker.probed(
        ProbeVerdict::Failed(BROKEN),
        after(start, 2),
        after(start, 60),
    );
    assert_eq!(
        breaker.state(),
        BreakerState::Closed,
        "sent before one that passed"
    );
}

#[test]
fn requests_sent_before_a_pause_do_not_prolong_it_and_a_mere_beginning_forgives_nothing() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    let old = breaker.admit(ANN, true, start).unwrap();
    for _ in 0..3 {
        let mut leave = breaker.admit(ANN, true, start).unwrap();
        breaker.began(&mut leave, start);
        breaker.failed(leave, start, POLICY, BROKEN);
    }
    assert_eq!(breaker.paused_for(start).count(), 1);
    breaker.failed(old, after(start, 29), POLICY, BROKEN);
    assert_eq!(breaker.paused_for(after(start, 31)).count(), 0);
}

#[test]
fn customers_without_failures_are_not_remembered_and_others_are_bounded() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for key in 0..5_000 {
        answer(&mut breaker, Holder(key), start);
    }
    assert!(breaker.keys.is_empty() && breaker.waiting.is_empty());
    for key in 0..5_000 {
        fail(&mut breaker, Holder(key), start, BROKEN);
    }
    assert!(breaker.keys.len() <= KEYS_REMEMBERED);
}
