//! What a rule asks for, and its laws.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test ends at the first surprise"
)]

use proptest::prelude::*;

use super::*;

fn usd(dollars: i64) -> Amount {
    Amount::from_picos(dollars.saturating_mul(1_000_000_000_000))
}

/// An hour of January 2026.
fn hour(hour: i64) -> Timestamp {
    let january = UtcDay::parse("2026-01-01").unwrap().begin();
    Timestamp::from_millis(january.millis() + hour * 3_600_000)
}

fn rule(refill: Refill, per_month: u32) -> TopUpRule {
    TopUpRule {
        threshold: usd(5),
        refill,
        per_month,
    }
}

/// Set here, with nobody's card.
const NOBODY: (Option<TokenId>, Option<ProcessorRef>) = (None, None);

fn armed(per_month: u32) -> AutoTopUp {
    let rule = rule(Refill::Amount(usd(20)), per_month);
    AutoTopUp::default().set(rule, NOBODY, hour(0)).unwrap()
}

#[test]
fn what_is_wanted_is_an_amount_or_what_is_missing_to_a_target() {
    let of_amount = armed(3);
    assert_eq!(of_amount.wanted(usd(5), hour(1)), None, "not below it");
    assert_eq!(of_amount.wanted(usd(4), hour(1)), Some(usd(20)));
    let to_target = rule(Refill::Target(usd(25)), 3);
    let to_target = AutoTopUp::default()
        .set(to_target, NOBODY, hour(0))
        .unwrap();
    assert_eq!(to_target.wanted(usd(4), hour(1)), Some(usd(21)));
    assert_eq!(to_target.wanted(usd(0), hour(1)), Some(usd(25)));
    assert_eq!(AutoTopUp::default().wanted(usd(0), hour(1)), None);
}

#[test]
fn a_rule_that_cannot_be_met_is_refused_with_what_is_wrong() {
    for (rule, says) in [
        (rule(Refill::Amount(Amount::ZERO), 1), "more than zero"),
        (rule(Refill::Target(usd(5)), 1), "above its threshold"),
        (rule(Refill::Amount(usd(200_000)), 1), "a top-up is at most"),
        (rule(Refill::Amount(usd(20)), 0), "1 to 1000 times a month"),
        (
            rule(Refill::Amount(usd(20)), 1_001),
            "1 to 1000 times a month",
        ),
        (
            TopUpRule {
                threshold: Amount::ZERO,
                ..rule(Refill::Amount(usd(20)), 1)
            },
            "the threshold",
        ),
    ] {
        let refused = AutoTopUp::default().set(rule, NOBODY, hour(0)).unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
    }
}

#[test]
fn one_is_pending_at_a_time_and_a_booking_ends_it() {
    let asked = armed(3).ask(7, usd(20), hour(1));
    assert_eq!(asked.wanted(usd(0), hour(2)), None);
    let other = asked.booked(6, hour(2));
    assert!(matches!(
        other.state(hour(2)),
        Some(AutoTopUpState::Pending(wish)) if wish.number == 7 && wish.until() == hour(25)
    ));
    let booked = asked.booked(7, hour(2));
    assert_eq!(booked.state(hour(2)), Some(AutoTopUpState::Ready));
    assert_eq!(booked.wanted(usd(4), hour(2)), Some(usd(20)));
    assert!(booked.failed(7, None, hour(3)).is_err(), "it was booked");
}

#[test]
fn a_failure_rests_for_a_day_and_the_third_turns_the_rule_off() {
    let mut now = 0;
    let mut auto = armed(100);
    for failures in 1..=3 {
        auto = auto
            .ask(failures, usd(20), hour(now))
            .failed(failures, None, hour(now + 1))
            .unwrap();
        assert_eq!(
            auto.failed(failures, None, hour(now + 2)),
            Ok(auto.clone()),
            "said again"
        );
        if failures < 3 {
            let resting = AutoTopUpState::Resting(hour(now + 25));
            assert_eq!(auto.state(hour(now + 2)), Some(resting));
            assert_eq!(auto.wanted(usd(0), hour(now + 24)), None);
            assert_eq!(auto.wanted(usd(0), hour(now + 25)), Some(usd(20)));
        }
        now += 25;
    }
    let off = AutoTopUpState::Off(AutoTopUpOff::Failures);
    assert_eq!(auto.state(hour(now + 1_000)), Some(off));
    let again = auto.set(auto.rule.unwrap(), NOBODY, hour(now)).unwrap();
    assert_eq!(again.state(hour(now)), Some(AutoTopUpState::Ready));
    assert_eq!(again.failures(hour(now)), 0);
}

#[test]
fn a_day_without_booking_is_a_failure_whether_or_not_somebody_looks() {
    let asked = armed(100).ask(1, usd(20), hour(0));
    assert!(matches!(
        asked.state(hour(23)),
        Some(AutoTopUpState::Pending(_))
    ));
    assert_eq!(
        asked.state(hour(24)),
        Some(AutoTopUpState::Resting(hour(48)))
    );
    assert_eq!(asked.wanted(usd(0), hour(48)), Some(usd(20)));
    assert_eq!(asked.booked(1, hour(30)).failures(hour(30)), 1, "too late");
    assert_eq!(
        asked.failed(1, None, hour(30)).unwrap().failures(hour(30)),
        1,
        "once"
    );
    let twice = asked.ask(2, usd(20), hour(48)).ask(3, usd(20), hour(96));
    assert_eq!(twice.failures(hour(119)), 2);
    assert_eq!(twice.failures(hour(120)), 3);
    assert_eq!(twice.wanted(usd(0), hour(1_000)), None);
    let booked = asked.ask(2, usd(20), hour(48)).booked(2, hour(50));
    assert_eq!(booked.failures(hour(50)), 0, "a booking forgives");
}

#[test]
fn a_month_has_so_many_and_the_next_one_as_many_again() {
    let mut auto = armed(2);
    for number in 1..=2 {
        auto = auto
            .ask(number, usd(20), hour(number))
            .booked(number, hour(number));
    }
    let february = UtcDay::parse("2026-02-01").unwrap().begin();
    assert_eq!(auto.state(hour(5)), Some(AutoTopUpState::UsedUp(february)));
    assert_eq!(auto.wanted(usd(0), hour(5)), None);
    let again = auto
        .cleared()
        .set(auto.rule.unwrap(), NOBODY, hour(6))
        .unwrap();
    assert_eq!(
        again.wanted(usd(0), hour(6)),
        None,
        "set again, it counts on"
    );
    assert_eq!(auto.wanted(usd(0), february), Some(usd(20)));
    assert_eq!(auto.wishes(february), 0);
    let in_february = auto.ask(3, usd(20), february);
    assert_eq!(
        in_february.wishes(hour(1)),
        1,
        "a clock set back makes no new month"
    );
}

#[test]
fn a_dispute_turns_it_off() {
    let off = armed(3).disputed();
    let why = AutoTopUpState::Off(AutoTopUpOff::Dispute);
    assert_eq!(off.state(hour(1)), Some(why));
    assert_eq!(off.wanted(usd(0), hour(1)), None);
    assert_eq!(AutoTopUp::default().disputed(), AutoTopUp::default());
}

#[test]
fn a_wish_has_a_name_that_is_found_again() {
    let customer = CustomerId::from_random(99);
    let name = TopUpWish::reference(customer, 17);
    assert_eq!(TopUpWish::named(&name), Some((customer, 17)));
    let spelled = format!(" {} ", name.to_uppercase());
    assert_eq!(TopUpWish::named(&spelled), Some((customer, 17)));
    let other = name.replace("-17", "-017");
    assert_eq!(
        (TopUpWish::named(&other), TopUpWish::is_reference(&other)),
        (None, true)
    );
    assert!(!TopUpWish::is_reference("inv-17"));
    assert!(
        serde_json::from_str::<AutoTopUp>("[]").is_err(),
        "none of ours"
    );
    let known = AutoTopUp::default();
    assert_eq!(
        serde_json::to_string(&known).unwrap(),
        r#"{"month":0,"wishes":0,"failures":0}"#
    );
    let asked = armed(3)
        .ask(1, usd(20), hour(0))
        .failed(1, None, hour(1))
        .unwrap();
    let stored = serde_json::to_string(&asked).unwrap();
    assert_eq!(serde_json::from_str::<AutoTopUp>(&stored).unwrap(), asked);
}

#[test]
fn a_token_sets_a_rule_of_who_came_to_it_for_a_day() {
    let [shop, other] = [1, 2].map(TokenId::from_random);
    let came = AutoTopUp::default().visited(shop, hour(0));
    assert_eq!(came.visited_until(), Some(hour(24)));
    assert!(came.is_agreed_with(shop, hour(23)) && !came.is_agreed_with(other, hour(23)));
    assert!(!came.is_agreed_with(shop, hour(24)), "a day is over");
    let card = ProcessorRef("cus_1".to_owned());
    let of = rule(Refill::Amount(usd(20)), 3);
    let set = came
        .set(of, (Some(shop), Some(card.clone())), hour(1))
        .unwrap();
    assert!(set.is_agreed_with(shop, hour(999)), "it is its own");
    assert_eq!(
        (set.by, set.processor_ref.as_ref()),
        (Some(shop), Some(&card))
    );
    assert_eq!(set.erased().processor_ref, None);
    let cleared = set.cleared();
    assert_eq!((cleared.by, &cleared.processor_ref), (None, &None));
    assert!(!format!("{set:?}").contains("cus_1"), "{set:?}");
    for wrong in ["", "x".repeat(129).as_str()] {
        let card = Some(ProcessorRef(wrong.to_owned()));
        assert!(came.set(of, (None, card), hour(1)).is_err(), "{wrong:?}");
    }
    let failed = set
        .ask(1, usd(20), hour(2))
        .failed(1, Some("card_declined"), hour(3))
        .unwrap();
    let told = failed
        .failed_wish(hour(4))
        .map(|(wish, why)| (wish.number, why));
    assert_eq!(told, Some((1, "card_declined")));
    assert_eq!(
        failed.newest_wish(hour(4)).map(|(_, word)| word),
        Some("failed")
    );
    // The next one has not failed yet, and nobody says why when its time is over.
    let next = failed.ask(2, usd(20), hour(28));
    assert_eq!(next.failed_wish(hour(29)), None);
    assert_eq!(
        next.failed_wish(hour(52)).map(|(_, why)| why),
        Some("no payment came")
    );
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Judge(i64),
    Book,
    BookLate(i64),
    Fail(i64),
    Set(u32),
    Clear,
    Dispute,
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..8_i64).prop_map(Step::Judge),
        2 => Just(Step::Book),
        1 => (0..40_i64).prop_map(Step::BookLate),
        2 => (0..40_i64).prop_map(Step::Fail),
        1 => (1..4_u32).prop_map(Step::Set),
        1 => Just(Step::Clear),
        1 => Just(Step::Dispute),
        3 => (1..60_i64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever happens in whichever order: one at a time, no more than allowed in a month, none while it rests or is off.
    #[test]
    fn never_two_at_once_and_never_more_than_allowed(steps in prop::collection::vec(step(), 1..200)) {
        let (mut auto, mut now, mut number) = (armed(2), 0, 0);
        // The numbers, hours and ends of all wishes, kept apart from what the rule keeps.
        let mut made: Vec<(i64, Timestamp)> = Vec::new();
        let mut open: Option<(i64, i64)> = None;
        let mut failed_at: Option<i64> = None;
        for step in steps {
            if let Some((_, since)) = open && now >= since + 24 {
                (open, failed_at) = (None, Some(since + 24));
            }
            match step {
                Step::Judge(balance) => {
                    if let Some(amount) = auto.wanted(usd(balance), hour(now)) {
                        number += 1;
                        prop_assert!(balance < 5);
                        prop_assert_eq!(open, None, "one at a time");
                        prop_assert!(failed_at.is_none_or(|at| now >= at + 24), "a day of rest");
                        auto = auto.ask(number, amount, hour(now));
                        made.push((number, hour(now)));
                        (open, failed_at) = (Some((number, now)), None);
                        let month = CapInterval::Month.window(UtcDay::of(hour(now)));
                        let in_month = made.iter().filter(|(_, at)| {
                            CapInterval::Month.window(UtcDay::of(*at)) == month
                        });
                        let allowed = auto.rule.unwrap().per_month;
                        // A rule may have allowed more before it was set to less.
                        prop_assert!(in_month.count() <= usize::try_from(allowed.max(3)).unwrap());
                        prop_assert!(auto.wishes(hour(now)) <= allowed);
                    }
                }
                Step::Book => {
                    auto = auto.booked(number, hour(now));
                    open = None;
                }
                Step::BookLate(old) => auto = auto.booked(number - 1 - old, hour(now)),
                Step::Fail(old) if old > 0 => {
                    prop_assert!(auto.failed(number - old, None, hour(now)).is_err());
                }
                Step::Fail(_) => {
                    if let Ok(failed) = auto.failed(number, None, hour(now)) {
                        auto = failed;
                        if open.take().is_some() {
                            failed_at = Some(now);
                        }
                    }
                }
                Step::Set(per_month) => {
                    auto = auto.set(rule(Refill::Amount(usd(20)), per_month), NOBODY, hour(now)).unwrap();
                    failed_at = None;
                }
                Step::Clear => auto = auto.cleared(),
                Step::Dispute => {
                    auto = auto.disputed();
                    prop_assert_eq!(auto.wanted(usd(0), hour(now)), None);
                }
                Step::Wait(hours) => now += hours,
            }
            let stored = serde_json::to_string(&auto).unwrap();
            prop_assert_eq!(&serde_json::from_str::<AutoTopUp>(&stored).unwrap(), &auto);
        }
    }
}
