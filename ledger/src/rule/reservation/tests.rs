//! Reservations: how long they live, and the room that a token has for them.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test ends at the first surprise"
)]

use proptest::prelude::*;

use super::*;
use crate::{NewToken, OperationId, SecretHash, TokenRole, UtcDay};

const MONDAY: UtcDay = UtcDay(20_000);

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

fn act() -> Act {
    Act {
        operation: OperationId::from_bytes([1; 16]),
        actor: "ada".to_owned(),
        at: Timestamp::from_millis(1),
    }
}

fn token(daily: Option<&str>) -> Token {
    NewToken {
        id: TokenId::from_random(1),
        secret: SecretHash([1; 32]),
        label: "shop".to_owned(),
        role: TokenRole::Manage,
        daily: daily.map(usd),
        expires_at: None,
        act: act(),
    }
    .token()
}

/// So many seconds after Monday began.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(MONDAY.begin().millis() + seconds * 1_000)
}

fn wants(credit: &str, until: i64, prolongs: bool) -> NewReservation {
    NewReservation {
        id: ReservationId::from_random(1),
        prolongs,
        customer: None,
        plan: None,
        credit: usd(credit),
        until: at(until),
        act: act(),
    }
}

fn made(credit: &str, until: i64) -> Reservation {
    let made = wants(credit, until, false).made(None, TokenId::from_random(1), at(0));
    made.unwrap()
}

fn booked(amount: &str) -> TokenDay {
    TokenDay {
        booked: usd(amount),
        ..TokenDay::empty(TokenId::from_random(1), MONDAY)
    }
}

fn room(booked_today: &str, others: &[Reservation], credit: &str) -> Result<(), SoldOut> {
    let others: Vec<_> = others.iter().collect();
    let day = booked(booked_today);
    let room = TokenToday::check_room(&token(Some("100")), &day, &others, usd(credit), at(60));
    room.map_err(|refusal| match refusal {
        Refusal::SoldOut(sold_out) => *sold_out,
        other => panic!("{other:?}"),
    })
}

#[test]
fn one_lives_for_half_an_hour_and_for_two_weeks_once_its_checkout_was_completed() {
    let own = TokenId::from_random(1);
    assert_eq!(made("1", 600).until, at(600));
    let first = made("1", 9_999);
    assert_eq!(first.until, at(1_800), "shortened");
    assert!(first.is_live(at(1_799)) && !first.is_live(at(1_800)));
    assert!(!first.is_forgotten(at(5_399)) && first.is_forgotten(at(5_400)));
    let weeks = 14 * 86_400;
    let longer = wants("1", 99 * 86_400, true).made(Some(&first), own, at(1_000));
    assert_eq!(longer.unwrap().until, at(weeks));
    let again = wants("1", 99 * 86_400, true).made(Some(&first), own, at(weeks));
    assert!(matches!(again, Err(Refusal::NoSuchReservation(_))));
    for (new, known) in [
        (wants("1", 0, false), None),
        (wants("2", 600, true), Some(&first)),
    ] {
        assert!(new.made(known, own, at(0)).is_err(), "{new:?}");
    }
}

#[test]
fn half_of_what_is_left_of_the_day_can_be_reserved() {
    assert_eq!(room("0", &[], "50"), Ok(()));
    assert_eq!(room("60", &[made("15", 600)], "5"), Ok(()));
    let refused = room("60", &[made("15", 600)], "5.000000000001").unwrap_err();
    assert_eq!((refused.most, refused.free_at), (usd("5"), Some(at(600))));
    // The first end that leaves room counts; what is over counts no more.
    let others = [made("20", 600), made("20", 1_200), made("20", 50)];
    let refused = room("0", &others, "25").unwrap_err();
    assert_eq!((refused.most, refused.free_at), (usd("10"), Some(at(600))));
    // More than half of what is left today is free tomorrow.
    let refused = room("10", &[], "50").unwrap_err();
    assert_eq!(
        (refused.most, refused.free_at),
        (usd("45"), Some(MONDAY.next().begin()))
    );
    let never = room("0", &[], "50.000000000001").unwrap_err();
    assert_eq!((never.most, never.free_at), (usd("50"), None));
    assert!(never.to_string().contains("never is"), "{never}");
    let largest = TokenToday::largest_reservation(&token(Some("100")));
    assert_eq!(largest, Some(usd("50")));
}

#[test]
fn without_a_bound_only_their_number_counts() {
    let others: Vec<_> = (0..1_000).map(|_| made("1", 600)).collect();
    let others: Vec<_> = others.iter().collect();
    let check = |others: &[&Reservation]| {
        TokenToday::check_room(&token(None), &booked("9"), others, usd("9000"), at(0))
    };
    assert_eq!(check(&others[1..]), Ok(()));
    match check(&others) {
        Err(Refusal::SoldOut(refused)) => {
            assert_eq!((refused.most, refused.free_at), (usd("0"), Some(at(600))));
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// Whatever was reserved and booked before: what is let in stays within half, and the instant that is named has room.
    #[test]
    fn an_instant_that_is_named_has_room(
        cents in proptest::collection::vec((1..2_000_i64, 1..1_800_i64), 0..9),
        sold in 0..12_000_i64,
        wanted in 1..7_000_i64,
    ) {
        let picos = |cents: i64| Amount::from_picos(cents * 10_000_000_000);
        let others: Vec<_> = cents
            .iter()
            .map(|(cents, until)| Reservation { credit: picos(*cents), ..made("1", *until) })
            .collect();
        let others: Vec<_> = others.iter().collect();
        let day = TokenDay { booked: picos(sold), ..booked("0") };
        let check = |at| TokenToday::check_room(&token(Some("100")), &day, &others, picos(wanted), at);
        match check(at(0)) {
            Ok(()) => {
                let sum: i64 = cents.iter().map(|(cents, _)| cents).sum();
                prop_assert!(2 * (sum + wanted) <= 10_000 - sold);
            }
            Err(Refusal::SoldOut(refused)) => match refused.free_at {
                Some(free) if free < MONDAY.next().begin() => {
                    prop_assert_eq!(check(free), Ok(()));
                    let before = Timestamp::from_millis(free.millis() - 1);
                    prop_assert!(check(before).is_err());
                }
                Some(_) => prop_assert!(wanted <= 5_000),
                None => prop_assert!(wanted > 5_000),
            },
            Err(other) => panic!("{other:?}"),
        }
    }
}
