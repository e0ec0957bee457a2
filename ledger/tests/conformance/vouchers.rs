//! Vouchers: redeemed once, by one of those who try, and told nothing of to anybody else.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

async fn customers(ledger: &dyn Ledger) {
    for number in [1, 2] {
        let new = new_key(number, 10 + number, None);
        ledger.perform(new).await.unwrap();
    }
}

pub(crate) async fn a_voucher_is_redeemed_once(ledger: SharedLedger) {
    customers(&*ledger).await;
    let lot = ledger.perform(new_lot(1, 20, 4)).await.unwrap();
    let again = ledger.perform(new_lot(1, 20, 4)).await.unwrap();
    assert_eq!((&again, lot.count, lot.redeemed), (&lot, 4, 0));
    refused(ledger.perform(new_lot(1, 21, 4)).await);
    let first = ledger.perform(redemption(200, 1, 30)).await.unwrap();
    let reference = format!("voucher:{}-1", lot.id);
    assert_eq!(first.entry.reference.as_deref(), Some(&*reference));
    assert_eq!(
        (first.entry.kind, first.repeated),
        (EntryKind::Grant, false)
    );
    assert_eq!(account(&*ledger, 1).await.balance(), usd("2"));
    // Again by the same customer, whatever the operation: the same entry.
    for operation in [30, 31] {
        let again = ledger.perform(redemption(200, 1, operation)).await.unwrap();
        assert_eq!((again.entry, again.repeated), (first.entry.clone(), true));
    }
    // Used by another, unknown, void and expired are one answer.
    let mut answers = vec![
        refused(ledger.perform(redemption(200, 2, 32)).await),
        refused(ledger.perform(redemption(99, 2, 33)).await),
    ];
    let late = Redemption {
        act: act(34, 500),
        ..redemption(201, 2, 34)
    };
    answers.push(refused(ledger.perform(late).await));
    ledger.perform(redemption(202, 2, 35)).await.unwrap();
    let voided = ledger
        .perform(VoidLot {
            lot: lot.id,
            act: act(36, 400),
        })
        .await
        .unwrap();
    assert_eq!((voided.redeemed, voided.is_void), (2, true));
    answers.push(refused(ledger.perform(redemption(201, 2, 37)).await));
    assert!(
        answers
            .iter()
            .all(|refusal| *refusal == Refusal::NoSuchVoucher)
    );
    // What was redeemed before stays, and so does its answer.
    assert!(
        ledger
            .perform(redemption(202, 2, 38))
            .await
            .unwrap()
            .repeated
    );
    assert_eq!(account(&*ledger, 2).await.balance(), usd("2"));
    assert_eq!(
        ledger.all::<Lot>().await.unwrap(),
        std::slice::from_ref(&voided)
    );
    // Who made and voided it is in the audit, each once, without the codes; voiding it again is no act.
    assert_eq!(
        ledger
            .perform(VoidLot {
                lot: lot.id,
                act: act(42, 401)
            })
            .await
            .unwrap(),
        voided
    );
    let acts = ledger.house_acts().await.unwrap();
    let words: Vec<_> = acts.iter().map(|act| (act.seq, &*act.act)).collect();
    assert_eq!(words, [(1, "create_lot"), (2, "void_lot")]);
    let of = HouseSubject::Lot(lot.id);
    assert!(acts.iter().all(|act| act.of == of && act.actor == "ada"));
    let told = format!("{acts:?}");
    assert!(!told.contains(&"c8".repeat(32)), "{told}");
    // Nobody else's money has such a name.
    let typed = top_up(1, 40, "1", &format!("VOUCHER:{}-3", lot.id));
    refused(ledger.perform(typed).await);
    let unknown = LotId::from_random(9);
    let refusal = refused(
        ledger
            .perform(VoidLot {
                lot: unknown,
                act: act(41, 400),
            })
            .await,
    );
    assert_eq!(refusal, Refusal::NoSuchLot(unknown));
    sound(&*ledger).await;
}

pub(crate) async fn of_some_lots_a_customer_redeems_one(ledger: SharedLedger) {
    customers(&*ledger).await;
    let lot = NewLot {
        once_per_customer: true,
        ..new_lot(1, 20, 3)
    };
    ledger.perform(lot).await.unwrap();
    ledger.perform(redemption(200, 1, 30)).await.unwrap();
    let second = refused(ledger.perform(redemption(201, 1, 31)).await);
    assert!(matches!(second, Refusal::NotApplicable(_)), "{second}");
    assert!(
        ledger
            .perform(redemption(200, 1, 32))
            .await
            .unwrap()
            .repeated
    );
    ledger.perform(redemption(201, 2, 33)).await.unwrap();
    for wrong in [0, 10_001] {
        let codes = (0..wrong).map(|_| secret(1)).collect();
        let lot = NewLot {
            codes,
            ..new_lot(2, 40, 1)
        };
        assert!(matches!(
            refused(ledger.perform(lot).await),
            Refusal::Limit(_)
        ));
    }
    sound(&*ledger).await;
}

/// Sixteen at once, of two customers: one gets it, and whoever repeats it for the same customer gets its entry.
pub(crate) async fn one_of_two_gets_a_voucher(ledger: SharedLedger) {
    customers(&*ledger).await;
    ledger.perform(new_lot(1, 20, 8)).await.unwrap();
    for code in 0..8_u8 {
        let racers = (0..16_u64).map(|racer| {
            let ledger = Arc::clone(&ledger);
            let operation = 1_000 + u64::from(code) * 100 + racer;
            tokio::spawn(async move {
                let new = redemption(200 + code, 1 + racer % 2, operation);
                ledger.perform(new).await.map(|posted| posted.repeated)
            })
        });
        let mut first = 0;
        for racer in racers.collect::<Vec<_>>() {
            match racer.await.unwrap() {
                Ok(repeated) => first += usize::from(!repeated),
                Err(LedgerError::Refused(Refusal::NoSuchVoucher)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(first, 1);
    }
    let all = [account(&*ledger, 1).await, account(&*ledger, 2).await];
    let all = Amount::checked_sum(all.iter().map(Account::balance));
    assert_eq!(all, Some(usd("16")));
    sound(&*ledger).await;
}
