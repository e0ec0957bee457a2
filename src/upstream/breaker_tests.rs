//! The breaker's rules, one by one, with the clock passed in.

use super::*;

const POLICY: BreakerPolicy = BreakerPolicy {
    failures: 3,
    open: Duration::from_secs(30),
};
const ANN: Holder = Holder(1);
const BOB: Holder = Holder(2);
const BROKEN: Fault = Fault {
    certain: false,
    rest: None,
};
const CERTAIN: Fault = Fault {
    certain: true,
    rest: None,
};

fn after(start: Instant, secs: u64) -> Instant {
    start + Duration::from_secs(secs)
}

fn named(secs: u64) -> Fault {
    Fault {
        certain: false,
        rest: Some(Duration::from_secs(secs)),
    }
}

/// A request of `key` that fails.
#[track_caller]
fn fail(breaker: &mut Breaker, key: Holder, now: Instant, fault: Fault) {
    let leave = breaker.admit(key, now).unwrap();
    breaker.failed(leave, now, POLICY, fault);
}

/// A request of `key` that is answered.
#[track_caller]
fn answer(breaker: &mut Breaker, key: Holder, now: Instant) {
    let mut leave = breaker.admit(key, now).unwrap();
    breaker.began(&mut leave);
    breaker.succeeded(leave, now, POLICY);
}

/// Open for all keys since `now`.
fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::default();
    for key in [ANN, BOB, ANN] {
        fail(&mut breaker, key, now, BROKEN);
    }
    assert_eq!(breaker.state(now).0, BreakerState::Open);
    breaker
}

#[test]
fn one_keys_failures_close_the_target_to_that_key_alone() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, ANN, start, BROKEN);
    }
    assert_eq!(
        breaker.admit(ANN, after(start, 10)),
        Err(Duration::from_secs(20))
    );
    assert_eq!(
        (breaker.state(start).0, breaker.keys_closed(start)),
        (BreakerState::Closed, 1)
    );
    answer(&mut breaker, BOB, after(start, 10));

    let trial = breaker.admit(ANN, after(start, 30)).unwrap();
    assert_eq!(
        breaker.admit(ANN, after(start, 30)),
        Err(TRIAL_WAIT),
        "one trial of the key's own"
    );
    breaker.failed(trial, after(start, 31), POLICY, BROKEN);
    assert_eq!(
        breaker.admit(ANN, after(start, 32)),
        Err(Duration::from_secs(29))
    );
    answer(&mut breaker, ANN, after(start, 61));
    assert_eq!(breaker.keys_closed(after(start, 61)), 0);
}

#[test]
fn it_opens_for_all_when_the_last_outcomes_of_two_keys_all_failed() {
    let start = Instant::now();
    let mut breaker = opened(start);
    let stranger = Holder(9);
    assert_eq!(
        breaker.admit(stranger, after(start, 10)),
        Err(Duration::from_secs(20))
    );
    assert_eq!(breaker.failures(), 3);

    let mut trial = breaker.admit(stranger, after(start, 30)).unwrap();
    assert_eq!(breaker.admit(BOB, after(start, 30)), Err(TRIAL_WAIT));
    assert_eq!(breaker.state(after(start, 30)).0, BreakerState::HalfOpen);
    breaker.began(&mut trial);
    assert!(breaker.admit(BOB, after(start, 30)).is_ok());
    assert_eq!(breaker.failures(), 0);
}

#[test]
fn a_success_of_another_key_in_between_keeps_it_open_to_all() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, BROKEN);
    answer(&mut breaker, BOB, start);
    fail(&mut breaker, ANN, start, BROKEN);
    fail(&mut breaker, Holder(3), start, BROKEN);
    assert_eq!(breaker.state(start).0, BreakerState::Closed);
    fail(&mut breaker, Holder(3), start, BROKEN);
    assert_eq!(breaker.state(start).0, BreakerState::Open);
}

#[test]
fn what_no_request_can_cause_opens_it_for_all_whoever_met_it() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, ANN, start, CERTAIN);
    }
    assert!(breaker.admit(BOB, start).is_err());
}

#[test]
fn a_named_rest_binds_the_key_that_earned_it_until_a_second_earns_one() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, named(60));
    assert_eq!(breaker.admit(ANN, start), Err(Duration::from_secs(60)));
    answer(&mut breaker, BOB, start);
    fail(&mut breaker, BOB, after(start, 5), named(20));
    assert_eq!(
        breaker.admit(Holder(3), after(start, 5)),
        Err(Duration::from_secs(20))
    );

    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, named(10));
    fail(&mut breaker, BOB, after(start, 11), named(10));
    assert_eq!(
        breaker.state(after(start, 11)).0,
        BreakerState::Closed,
        "the first rest was over"
    );
    let mut breaker = Breaker::default();
    fail(&mut breaker, ANN, start, named(0));
    assert!(breaker.admit(ANN, start).is_ok(), "zero names no time");
}

#[test]
fn one_keys_failed_trials_do_not_keep_the_target_from_the_others() {
    let start = Instant::now();
    let mut breaker = opened(start);
    fail(&mut breaker, ANN, after(start, 31), BROKEN);
    assert!(
        breaker.admit(ANN, after(start, 31)).is_err(),
        "closed to her"
    );
    answer(&mut breaker, BOB, after(start, 61));
    assert_eq!(breaker.state(after(start, 61)).0, BreakerState::Closed);
}

#[test]
fn failed_trials_of_two_keys_or_for_certain_open_it_again() {
    let start = Instant::now();
    let mut breaker = opened(start);
    fail(&mut breaker, Holder(7), after(start, 31), BROKEN);
    fail(&mut breaker, Holder(8), after(start, 31), BROKEN);
    assert_eq!(
        breaker.admit(Holder(9), after(start, 32)),
        Err(Duration::from_secs(29))
    );

    let mut breaker = opened(start);
    fail(&mut breaker, Holder(7), after(start, 31), CERTAIN);
    assert_eq!(
        breaker.admit(Holder(9), after(start, 32)),
        Err(Duration::from_secs(29))
    );
}

#[test]
fn an_abandoned_trial_frees_its_place() {
    let start = Instant::now();
    let mut breaker = opened(start);
    let trial = breaker.admit(Holder(9), after(start, 31)).unwrap();
    breaker.abandoned(trial, after(start, 32));
    assert!(breaker.admit(Holder(8), after(start, 32)).is_ok());
}

#[test]
fn success_resets_the_count_and_a_mere_beginning_does_not() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 0..10 {
        fail(&mut breaker, ANN, start, BROKEN);
        fail(&mut breaker, ANN, start, BROKEN);
        answer(&mut breaker, ANN, start);
    }
    assert_eq!(breaker.keys_closed(start), 0);
    for _ in 0..3 {
        let mut leave = breaker.admit(ANN, start).unwrap();
        breaker.began(&mut leave);
        breaker.failed(leave, start, POLICY, BROKEN);
    }
    assert_eq!(breaker.keys_closed(start), 1);
}

#[test]
fn old_requests_do_not_move_an_open_breaker() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    let old: Vec<Leave> = (0..2)
        .map(|_| breaker.admit(Holder(9), start).unwrap())
        .collect();
    for key in [ANN, BOB, ANN] {
        fail(&mut breaker, key, start, BROKEN);
    }
    breaker.failed(old[0], after(start, 20), POLICY, BROKEN);
    breaker.succeeded(old[1], after(start, 20), POLICY);
    assert_eq!(
        breaker.admit(Holder(8), after(start, 29)),
        Err(Duration::from_secs(1))
    );
    assert!(breaker.admit(Holder(8), after(start, 30)).is_ok());
}

#[test]
fn keys_that_fail_on_purpose_do_not_take_the_target_from_one_that_it_serves() {
    let start = Instant::now();
    for fault in [BROKEN, CERTAIN, named(600)] {
        let mut breaker = Breaker::default();
        answer(&mut breaker, Holder(7), start);
        for key in [ANN, BOB, Holder(3), ANN, BOB] {
            if breaker.state(start).0 == BreakerState::Closed
                && breaker.is_open_to(key, start).is_none()
            {
                fail(&mut breaker, key, start, fault);
            }
        }
        assert_eq!(breaker.state(start).0, BreakerState::Open);
        assert!(breaker.admit(Holder(8), start).is_err(), "a stranger waits");
        assert_eq!(breaker.is_open_to(Holder(7), start), None);
        answer(&mut breaker, Holder(7), start);
        assert_eq!(
            breaker.state(start).0,
            BreakerState::Closed,
            "{fault:?}: the target works"
        );
    }
}

#[test]
fn in_an_outage_a_served_key_pays_one_try() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    answer(&mut breaker, Holder(7), start);
    for key in [ANN, BOB, ANN] {
        fail(&mut breaker, key, start, BROKEN);
    }
    fail(&mut breaker, Holder(7), after(start, 1), BROKEN);
    assert_eq!(
        breaker.admit(Holder(7), after(start, 2)),
        Err(Duration::from_secs(28))
    );
    assert_eq!(breaker.state(after(start, 2)).0, BreakerState::Open);
}

#[test]
fn who_was_served_is_forgotten_in_time_and_number() {
    let start = Instant::now();
    let mut served = Served::default();
    served.note(ANN, start);
    assert!(served.knows(ANN, after(start, 59)));
    served.note(BOB, after(start, 59));
    assert!(!served.knows(ANN, after(start, 89)) && served.knows(BOB, after(start, 89)));
    assert!(!served.knows(BOB, after(start, 200)));
    for key in 0..100_000 {
        served.note(Holder(key), after(start, 200));
    }
    assert!(served.recent.len() + served.before.len() <= 2 * KEYS_SERVED);
    assert!(served.knows(Holder(99_999), after(start, 200)));
}

#[test]
fn keys_without_failures_are_not_remembered() {
    let start = Instant::now();
    let mut breaker = Breaker::default();
    for key in 0..5_000 {
        answer(&mut breaker, Holder(key), start);
    }
    assert!(breaker.keys.is_empty());
    for key in 0..5_000 {
        let leave = Leave {
            key: Holder(key),
            trial: (false, false),
            served: false,
        };
        breaker.failed(
            leave,
            start,
            BreakerPolicy {
                failures: 100_000,
                ..POLICY
            },
            BROKEN,
        );
    }
    assert!(breaker.keys.len() <= KEYS_REMEMBERED);
}
