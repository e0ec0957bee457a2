//! The rule of caps: windows, room, what a new one counts, and what makes no sense.

use super::*;
use crate::HoldWay;
use crate::rule::purse::KeyPurse;

const NONE: PastSpending<'static> = PastSpending::NONE;

/// What a purse that only these caps bound admits.
trait Admits {
    fn hold(&mut self, slug: &str, day: UtcDay, amount: Amount) -> Result<(), Refusal>;
    /// How much of `more` there is room for.
    fn grow(&mut self, slug: &str, day: UtcDay, more: Amount) -> Amount;
}

impl Admits for Caps {
    fn hold(&mut self, slug: &str, day: UtcDay, amount: Amount) -> Result<(), Refusal> {
        let mut purse = KeyPurse::bounded_by(self.clone());
        let none = (Amount::ZERO, &mut Vec::new());
        purse.hold((slug, day), none, &[HoldWay::exactly(amount)])?;
        *self = purse.of_key;
        Ok(())
    }

    fn grow(&mut self, slug: &str, day: UtcDay, more: Amount) -> Amount {
        let mut purse = KeyPurse::bounded_by(self.clone());
        let none = (Amount::ZERO, &mut Vec::new());
        let grown = purse.move_to((slug, day), none, more).unwrap();
        *self = purse.of_key;
        grown.amount
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
        caps.set(cap, CapMaker::Seller, today, NONE).unwrap();
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
    assert_eq!(caps.grow("m", today, picos(41)), picos(40));
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
    assert_eq!(caps.grow("m", monday, picos(30)), picos(30));
    assert_eq!(caps.grow("m", monday, picos(1)), picos(0));
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
    assert_eq!(caps.grow("m", monday, picos(1)), picos(0));
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
    let clear = |caps: &mut Caps| caps.clear(CapInterval::Week, Some("big"), CapMaker::Seller);
    clear(&mut caps).unwrap();
    assert!(clear(&mut caps).is_err());
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
        caps.set(&cap, CapMaker::Seller, today, spending).unwrap();
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
    let refused = |caps: &mut Caps, cap: &Cap| match caps.set(cap, CapMaker::Seller, today, NONE) {
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
        caps.set(&cap, CapMaker::Seller, today, NONE).unwrap();
    }
    assert!(refused(&mut caps, &cap(CapInterval::Total, 1_000)).contains("at most 8"));
    let fifty = cap(CapInterval::Week, 50);
    caps.set(&fifty, CapMaker::Seller, today, NONE).unwrap();
    assert_eq!(
        caps.room("m", today, picos(1_000)),
        picos(50),
        "changed, not added"
    );
}

/// The limits of one cap, of both.
fn limits(caps: &Caps, interval: CapInterval) -> Option<(Option<i64>, Option<i64>, i64, CapMaker)> {
    let found = caps
        .iter()
        .find(|counted| counted.cap.interval == interval)?;
    let CapLimits { seller, owner } = found.limits();
    let picos = |limit: Option<Amount>| limit.map(Amount::picos);
    let stands = found.cap.limit.picos();
    Some((picos(seller), picos(owner), stands, found.made_by))
}

#[test]
fn an_owner_only_lowers_what_the_seller_set_and_it_comes_back() {
    use CapInterval::Day;
    let today = day("2026-11-24");
    let mut caps = caps(&[cap(Day, 100)], today);
    let set = |caps: &mut Caps, limit, by| caps.set(&cap(Day, limit), by, today, NONE);
    let above = set(&mut caps, 101, CapMaker::Owner)
        .unwrap_err()
        .to_string();
    assert!(above.contains("an owner can only lower"), "{above}");
    let cleared = caps.clear(Day, None, CapMaker::Owner).unwrap_err();
    assert!(
        cleared
            .to_string()
            .contains("only the seller can remove it")
    );
    set(&mut caps, 40, CapMaker::Owner).unwrap();
    assert_eq!(
        limits(&caps, Day),
        Some((Some(100), Some(40), 40, CapMaker::Owner))
    );
    caps.hold("m", today, picos(40)).unwrap();
    assert!(caps.hold("m", today, picos(1)).is_err());
    // The seller lowers his below it, and raises it again: the owner's is kept.
    set(&mut caps, 30, CapMaker::Seller).unwrap();
    assert_eq!(
        limits(&caps, Day),
        Some((Some(30), Some(40), 30, CapMaker::Seller))
    );
    set(&mut caps, 200, CapMaker::Seller).unwrap();
    assert_eq!(
        limits(&caps, Day),
        Some((Some(200), Some(40), 40, CapMaker::Owner))
    );
    caps.clear(Day, None, CapMaker::Owner).unwrap();
    assert_eq!(
        limits(&caps, Day),
        Some((Some(200), None, 200, CapMaker::Seller))
    );
    assert_eq!(
        caps.room("m", today, picos(1_000)),
        picos(160),
        "what was held counts on"
    );
    // The seller's goes, and the owner's stays; then a seller may remove it, too.
    set(&mut caps, 50, CapMaker::Owner).unwrap();
    caps.clear(Day, None, CapMaker::Seller).unwrap();
    assert_eq!(
        limits(&caps, Day),
        Some((None, Some(50), 50, CapMaker::Owner))
    );
    set(&mut caps, 60, CapMaker::Owner).unwrap();
    caps.clear(Day, None, CapMaker::Seller).unwrap();
    assert_eq!(limits(&caps, Day), None);
}

#[test]
fn caps_of_before_are_the_sellers_and_are_written_as_before() {
    let old = r#"[{"interval":"day","model":null,"limit":"1.00","current":{"since":20000,"charged":"0.00","held":"0.00"}}]"#;
    let caps: Caps = serde_json::from_str(old).unwrap();
    assert_eq!(caps.iter().next().unwrap().made_by, CapMaker::Seller);
    assert_eq!(serde_json::to_string(&caps).unwrap(), old);
    let audited = serde_json::to_string(&caps.settings()).unwrap();
    assert_eq!(
        audited,
        r#"[{"interval":"day","model":null,"limit":"1.00"}]"#
    );
}

/// What somebody does to one of three caps: a new limit, or none.
type CapDeed = (bool, usize, Option<i64>);

proptest::proptest! {
    /// Whatever both do in any order, each has the limits that it set and nobody else changed, the lesser one stands, and no owner ever
    /// raises what the seller's alone would allow.
    #[test]
    fn caps_of_seller_and_owner_survive_each_other(
        deeds in proptest::collection::vec((proptest::bool::ANY, 0_usize..3, proptest::option::of(1_i64..50)), 0..40)
    ) {
        let today = day("2026-11-24");
        let (mut both, mut sellers) = (Caps::default(), Caps::default());
        let mut owners = [None; 3];
        let intervals = [CapInterval::Day, CapInterval::Week, CapInterval::Total];
        for (is_owner, place, limit) in deeds as Vec<CapDeed> {
            let (interval, before) = (intervals[place], both.clone());
            let by = if is_owner { CapMaker::Owner } else { CapMaker::Seller };
            let change = |caps: &mut Caps| match limit {
                Some(limit) => caps.set(&cap(interval, limit), by, today, NONE),
                None => caps.clear(interval, None, by),
            };
            let done = change(&mut both);
            if done.is_err() {
                proptest::prop_assert_eq!(&both, &before);
            }
            if is_owner {
                if done.is_ok() {
                    owners[place] = limit;
                }
            } else if limit.is_none() && limits(&before, interval).is_some_and(|known| known.0.is_none()) {
                owners[place] = None;
            } else {
                let alone = change(&mut sellers);
                proptest::prop_assert_eq!(done.is_ok(), alone.is_ok(), "an owner never keeps a seller from anything");
            }
            for (interval, owner) in intervals.into_iter().zip(owners) {
                let seller = limits(&sellers, interval).map(|known| known.2);
                let expected = match (seller, owner) {
                    (None, None) => None,
                    (seller, owner) => {
                        let stands = seller.into_iter().chain(owner).min().unwrap_or_default();
                        let is_sellers = seller == Some(stands);
                        let by = if is_sellers { CapMaker::Seller } else { CapMaker::Owner };
                        Some((seller, owner, stands, by))
                    }
                };
                proptest::prop_assert_eq!(limits(&both, interval), expected);
            }
        }
    }
}
