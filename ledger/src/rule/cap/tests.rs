//! The rule of caps: windows, room, what a new one counts, and what makes no sense.

use super::*;
use crate::rule::customer::KeyPurse;

const NONE: PastSpending<'static> = PastSpending {
    hours: &[],
    holds: &[],
};

/// What a purse that only these caps bound admits.
trait Admits {
    fn hold(&mut self, slug: &str, day: UtcDay, amount: Amount) -> Result<(), Refusal>;
    fn extend(&mut self, slug: &str, day: UtcDay, more: Amount) -> Result<(), Refusal>;
}

impl Admits for Caps {
    fn hold(&mut self, slug: &str, day: UtcDay, amount: Amount) -> Result<(), Refusal> {
        let mut purse = KeyPurse::bounded_by(self.clone());
        purse.hold(slug, day, amount)?;
        *self = purse.of_key;
        Ok(())
    }

    fn extend(&mut self, slug: &str, day: UtcDay, more: Amount) -> Result<(), Refusal> {
        let mut purse = KeyPurse::bounded_by(self.clone());
        purse.extend(slug, day, Amount::ZERO, more)?;
        *self = purse.of_key;
        Ok(())
    }
}

fn picos(picos: i64) -> Amount {
    Amount::from_picos(picos)
}

fn cap(interval: CapInterval, limit: i64) -> Cap {
    Cap {
        interval,
        model: None,
        limit: picos(limit),
    }
}

fn day(text: &str) -> UtcDay {
    UtcDay::parse(text).unwrap()
}

fn caps(all: &[Cap], today: UtcDay) -> Caps {
    let mut caps = Caps::default();
    for cap in all {
        caps.set(cap, today, NONE).unwrap();
    }
    caps
}

#[test]
fn charged_and_held_of_a_window_never_pass_its_cap() {
    let today = day("2026-11-24");
    let mut caps = caps(
        &[cap(CapInterval::Day, 100), cap(CapInterval::Month, 150)],
        today,
    );
    caps.hold("m", today, picos(60)).unwrap();
    assert_eq!(caps.room("m", today, picos(1_000)), picos(40));
    assert_eq!(
        caps.room("m", today, picos(7)),
        picos(7),
        "the purse has less"
    );
    let refused = caps.clone().hold("m", today, picos(41)).unwrap_err();
    let Refusal::CapReached(reached) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (
            reached.cap.interval,
            reached.room,
            reached.spent,
            reached.held
        ),
        (CapInterval::Day, picos(40), picos(0), picos(60))
    );
    assert_eq!(reached.resets_at, Some(day("2026-11-25").begin()));
    caps.extend("m", today, picos(40)).unwrap();
    caps.end("m", today, picos(100), picos(90));
    assert_eq!(caps.room("m", today, picos(1_000)), picos(10));
    let tomorrow = day("2026-11-25");
    assert_eq!(
        caps.room("m", tomorrow, picos(1_000)),
        picos(60),
        "of the month"
    );
    caps.hold("m", tomorrow, picos(60)).unwrap();
    assert!(
        caps.hold("m", tomorrow, picos(0)).is_err(),
        "as an empty purse"
    );
}

#[test]
fn a_hold_stays_in_the_window_in_which_it_was_opened() {
    let (monday, tuesday) = (day("2026-11-23"), day("2026-11-24"));
    let mut caps = caps(&[cap(CapInterval::Day, 100)], monday);
    caps.hold("m", monday, picos(70)).unwrap();
    caps.hold("m", tuesday, picos(100)).unwrap();
    caps.extend("m", monday, picos(30)).unwrap();
    assert!(caps.extend("m", monday, picos(1)).is_err());
    caps.end("m", monday, picos(100), picos(100));
    caps.refund("m", monday, picos(20));
    caps.end("m", tuesday, picos(100), picos(10));
    let counted = caps.iter().next().unwrap();
    assert_eq!(counted.counts(monday).unwrap().charged, picos(80));
    assert_eq!(counted.counts(tuesday).unwrap().charged, picos(10));
    caps.refund("m", tuesday, picos(50));
    assert_eq!(
        caps.room("m", tuesday, picos(1_000)),
        picos(100),
        "not more than it was"
    );
    let wednesday = day("2026-11-25");
    caps.hold("m", wednesday, picos(1)).unwrap();
    assert_eq!(
        caps.room("m", monday, picos(1_000)),
        picos(0),
        "no longer counted"
    );
    assert!(caps.extend("m", monday, picos(1)).is_err());
    caps.end("m", monday, picos(5), picos(5));
    assert_eq!(caps.room("m", wednesday, picos(1_000)), picos(99));
}

#[test]
fn a_cap_of_a_model_counts_that_model_alone() {
    let today = day("2026-11-24");
    let of_model = Cap {
        model: Some("big".to_owned()),
        ..cap(CapInterval::Week, 10)
    };
    let mut caps = caps(&[of_model, cap(CapInterval::Week, 100)], today);
    caps.hold("small", today, picos(50)).unwrap();
    assert_eq!(caps.room("big", today, picos(1_000)), picos(10));
    assert_eq!(caps.room("small", today, picos(1_000)), picos(50));
    caps.clear(CapInterval::Week, Some("big")).unwrap();
    assert!(caps.clear(CapInterval::Week, Some("big")).is_err());
    assert_eq!(caps.room("big", today, picos(1_000)), picos(50));
}

#[test]
fn a_new_cap_counts_what_its_window_has_seen() {
    let today = day("2026-11-24");
    let hold = |slug: &str| OpenHold {
        request: crate::OperationId::from_bytes([1; 16]),
        key: crate::KeyId::from_random(1),
        amount: picos(5),
        used: Amount::ZERO,
        slug: slug.to_owned(),
        family: "chat".to_owned(),
        at: today.begin(),
        epoch: 1,
    };
    let hour = |day: UtcDay, slug: &str, charge| (day.begin(), slug.to_owned(), picos(charge));
    let (big, small) = (hold("big"), hold("small"));
    let spending = PastSpending {
        hours: &[
            hour(day("2026-11-22"), "big", 1_000),
            hour(day("2026-11-23"), "big", 100),
            hour(today, "big", 10),
            hour(today, "small", 1),
        ],
        holds: &[(&big, today), (&small, today), (&big, day("2026-11-22"))],
    };
    let counts = |interval, model: Option<&str>| {
        let mut caps = Caps::default();
        let cap = Cap {
            model: model.map(str::to_owned),
            ..cap(interval, 1)
        };
        caps.set(&cap, today, spending).unwrap();
        let now = caps.iter().next().unwrap().current;
        (now.charged.picos(), now.held.picos())
    };
    assert_eq!(counts(CapInterval::Day, None), (11, 10));
    assert_eq!(counts(CapInterval::Week, None), (111, 10));
    assert_eq!(counts(CapInterval::Total, None), (1_111, 15));
    assert_eq!(counts(CapInterval::Day, Some("small")), (1, 5));
}

#[test]
fn a_cap_that_makes_no_sense_is_refused() {
    let today = day("2026-11-24");
    let mut caps = caps(&[cap(CapInterval::Week, 100)], today);
    let refused = |caps: &mut Caps, cap: &Cap| match caps.set(cap, today, NONE) {
        Err(Refusal::Limit(why)) => why,
        other => panic!("{other:?}"),
    };
    let crossed = refused(&mut caps, &cap(CapInterval::Day, 101_000_000));
    assert!(
        crossed.contains("per day") && crossed.contains("per week"),
        "{crossed}"
    );
    assert!(refused(&mut caps, &cap(CapInterval::Month, 99)).contains("does not fit"));
    for limit in [0, -1, i64::MAX] {
        refused(&mut caps, &cap(CapInterval::Week, limit));
    }
    for number in 1..Caps::MOST {
        let model = Some(number.to_string());
        let cap = Cap {
            model,
            ..cap(CapInterval::Day, 1_000)
        };
        caps.set(&cap, today, NONE).unwrap();
    }
    assert!(refused(&mut caps, &cap(CapInterval::Total, 1_000)).contains("at most 8"));
    caps.set(&cap(CapInterval::Week, 50), today, NONE).unwrap();
    assert_eq!(
        caps.room("m", today, picos(1_000)),
        picos(50),
        "changed, not added"
    );
}
