//! The bounds of a token's day: each at its edge, over midnight, and by any number of deeds in any order.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test ends at the first surprise"
)]

use proptest::prelude::*;

use super::*;
use crate::{Act, NewToken, OperationId, SecretHash};

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

fn token(role: TokenRole, daily: Option<&str>) -> Token {
    NewToken {
        id: TokenId::from_random(1),
        secret: SecretHash([1; 32]),
        label: "shop".to_owned(),
        role,
        daily: daily.map(usd),
        expires_at: None,
        act: Act {
            operation: OperationId::from_bytes([1; 16]),
            actor: "ada".to_owned(),
            at: Timestamp::from_millis(1),
        },
    }
    .token()
}

const MONDAY: UtcDay = UtcDay(20_000);

fn books(amount: &str) -> TokenDeed {
    TokenDeed::Books {
        amount: usd(amount),
        is_payment: true,
    }
}

/// The days of one token, as a ledger keeps them.
#[derive(Default)]
struct Days(Vec<TokenDay>);

impl Days {
    fn today(&self, token: &Token, today: UtcDay) -> TokenToday {
        TokenToday::of(token.id, today, &self.0)
    }

    fn does(&mut self, token: &Token, today: UtcDay, deed: TokenDeed) -> Result<(), Refusal> {
        let day = self.today(token, today).with(token, deed)?;
        self.0.retain(|known| known.day != today);
        self.0.push(day);
        Ok(())
    }
}

fn reached(refused: Result<(), Refusal>) -> DailyReached {
    match refused.unwrap_err() {
        Refusal::DailyReached(reached) => *reached,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_day_is_sold_up_to_its_bound_and_the_next_begins_anew() {
    let (shop, mut days) = (token(TokenRole::Sell, Some("10")), Days::default());
    days.does(&shop, MONDAY, books("7.99")).unwrap();
    assert_eq!(days.today(&shop, MONDAY).nearly_reached(&shop), None);
    days.does(&shop, MONDAY, books("0.01")).unwrap();
    let near = days.today(&shop, MONDAY).nearly_reached(&shop);
    assert_eq!(near, Some(DailyBound::Credit));
    assert_eq!(days.today(&shop, MONDAY.next()).nearly_reached(&shop), None);
    let refused = reached(days.does(&shop, MONDAY, books("2.000000000001")));
    assert_eq!(
        (refused.what, refused.done),
        (DailyBound::Credit, usd("8").picos())
    );
    assert_eq!(refused.ends_at, MONDAY.next().begin());
    assert_eq!(
        refused.to_string(),
        format!(
            "token {} may credit 10.00 USD a day (UTC); 8.00 are done today, and this is 2.000000000001 more; the day ends at \
             2024-10-05T00:00:00.000Z",
            shop.id
        )
    );
    days.does(&shop, MONDAY, books("2")).unwrap();
    days.does(&shop, MONDAY.next(), books("10")).unwrap();
    assert_eq!(days.0.iter().map(|day| day.payments).sum::<i64>(), 4);
}

#[test]
fn what_it_makes_is_bounded_by_what_it_sells() {
    for (daily, most) in [("1", 20), ("20.99", 20), ("21", 21), ("500", 500)] {
        let shop = token(TokenRole::Sell, Some(daily));
        for (deed, what) in [
            (TokenDeed::Customer, DailyBound::Customers),
            (TokenDeed::Key, DailyBound::Keys),
            (TokenDeed::Reissue, DailyBound::Reissues),
        ] {
            let mut days = Days::default();
            for _ in 0..most {
                days.does(&shop, MONDAY, deed).unwrap();
            }
            let refused = reached(days.does(&shop, MONDAY, deed));
            assert_eq!((refused.what, refused.most), (what, most), "{daily}");
            days.does(&shop, MONDAY.next(), deed).unwrap();
        }
    }
    let (shop, mut days) = (token(TokenRole::Sell, Some("1")), Days::default());
    for _ in 0..200 {
        days.does(&shop, MONDAY, TokenDeed::Unapplied).unwrap();
    }
    let refused = reached(days.does(&shop, MONDAY, TokenDeed::Unapplied));
    assert_eq!(refused.what, DailyBound::Unapplied);
}

#[test]
fn a_recall_of_one_bad_day_fits() {
    let (shop, mut days) = (token(TokenRole::Sell, Some("100")), Days::default());
    for _ in 0..10 {
        days.does(&shop, MONDAY, books("10")).unwrap();
    }
    let back = TokenDeed::Reverses {
        amount: usd("10"),
        is_first: true,
    };
    let last = UtcDay(MONDAY.number() + 59);
    for _ in 0..10 {
        days.does(&shop, last, back).unwrap();
    }
    let refused = reached(days.does(&shop, last, back));
    assert_eq!(refused.what, DailyBound::Reversed);
    // More of one payment is no second payment; another one is, and there were ten.
    let free = |is_first| TokenDeed::Reverses {
        amount: Amount::ZERO,
        is_first,
    };
    days.does(&shop, last, free(false)).unwrap();
    let refused = reached(days.does(&shop, last, free(true)));
    assert_eq!(
        (refused.what, refused.most),
        (DailyBound::ReversedPayments, 10)
    );
    // A day later none of them counts.
    let refused = reached(days.does(&shop, last.next(), free(true)));
    assert_eq!(refused.most, 0);
}

#[test]
fn who_manages_is_bounded_in_credit_alone_and_only_if_a_bound_was_given() {
    let (crm, mut days) = (token(TokenRole::Manage, Some("5")), Days::default());
    for _ in 0..500 {
        days.does(&crm, MONDAY, TokenDeed::Customer).unwrap();
    }
    assert_eq!(days.today(&crm, MONDAY).nearly_reached(&crm), None);
    let refused = reached(days.does(&crm, MONDAY, books("6")));
    assert_eq!(refused.what, DailyBound::Credit);
    let free = token(TokenRole::Manage, None);
    days.does(&free, MONDAY, books("1000000")).unwrap();
}

fn any_deed() -> impl Strategy<Value = TokenDeed> {
    let amount = (1_i64..40).prop_map(|dimes| Amount::from_picos(dimes * 100_000_000_000));
    (0..6, amount, any::<bool>()).prop_map(|(kind, amount, flag)| match kind {
        0 => TokenDeed::Books {
            amount,
            is_payment: flag,
        },
        1 => TokenDeed::Customer,
        2 => TokenDeed::Key,
        3 => TokenDeed::Reissue,
        4 => TokenDeed::Reverses {
            amount,
            is_first: flag,
        },
        _ => TokenDeed::Unapplied,
    })
}

proptest! {
    /// Whatever a thief does in whatever order, no day passes a bound, and what is refused changes nothing.
    #[test]
    fn no_day_passes_a_bound(deeds in prop::collection::vec((0_i64..3, any_deed()), 0..400)) {
        let (shop, mut days) = (token(TokenRole::Sell, Some("8")), Days::default());
        for (later, deed) in deeds {
            let today = UtcDay(MONDAY.number() + later);
            let before = days.today(&shop, today);
            match days.does(&shop, today, deed) {
                Ok(()) => {
                    let after = days.today(&shop, today);
                    for what in DailyBound::ALL {
                        let most = after.most(&shop, what).unwrap();
                        prop_assert!(after.day.done(what) >= before.day.done(what));
                        prop_assert!(after.day.done(what) <= most, "{what:?}");
                    }
                }
                Err(Refusal::DailyReached(reached)) => {
                    prop_assert_eq!(days.today(&shop, today), before);
                    prop_assert!(reached.done + reached.more > reached.most);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
