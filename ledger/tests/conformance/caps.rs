//! Caps: exact bounds of what a key spends in a day, a week, a month or in all.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

fn cap(interval: CapInterval, limit: &str) -> Cap {
    Cap {
        interval,
        model: None,
        limit: usd(limit),
    }
}

async fn set(ledger: &SharedLedger, operation: u64, cap: Cap) -> Key {
    let change = change(1, operation, Change::SetCap(cap));
    ledger.perform(change).await.unwrap()
}

async fn of_key(ledger: &SharedLedger) -> Key {
    ledger.find_key(key(1)).await.unwrap().unwrap()
}

fn reached<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> CapReached {
    match refused(result) {
        Refusal::CapReached(reached) => *reached,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn caps_bound_holds_extensions_and_charges(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    let monthly = cap(CapInterval::Month, "3");
    let made = set(&ledger, 11, monthly.clone()).await;
    assert_eq!(made, of_key(&ledger).await);
    ledger.perform(new_hold(1, 20, "2")).await.unwrap();
    ledger.perform(new_hold(1, 21, "0.5")).await.unwrap();
    let full = reached(ledger.perform(new_hold(1, 22, "0.6")).await);
    assert_eq!((full.cap, full.needed), (monthly, usd("0.6")));
    assert_eq!(
        (full.room, full.spent, full.held),
        (usd("0.5"), usd("0"), usd("2.5"))
    );
    assert!(full.resets_at.is_some());
    // As far as there is room, and no further.
    for number in 1..3 {
        let grown = HoldMove {
            number,
            ..moved(21, "1.1", 1)
        };
        let held = ledger.perform(grown).await.unwrap();
        assert_eq!((held.amount, held.by_cap), (usd("1"), true));
    }
    assert_eq!(
        reached(ledger.perform(new_hold(1, 22, "0")).await).room,
        usd("0"),
        "as an empty purse"
    );
    // What it cost beyond its hold is paid as far as there is room.
    let ended = ledger
        .perform(Arc::new(finish(20, 1_500_000)))
        .await
        .unwrap();
    assert_eq!((ended.charge, ended.remaining), (usd("1.5"), usd("1.5")));
    let ended = ledger
        .perform(Arc::new(finish(21, 1_700_000)))
        .await
        .unwrap();
    assert_eq!((ended.charge, ended.loss), (usd("1.5"), usd("0.2")));
    assert_eq!(ended.remaining, usd("0"));
    assert_eq!(account(&*ledger, 1).await.available(), usd("6"));
    ledger.verify().await.unwrap();
}

pub(crate) async fn a_lowered_cap_cuts_no_hold(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    set(&ledger, 11, cap(CapInterval::Total, "5")).await;
    ledger.perform(new_hold(1, 20, "4")).await.unwrap();
    let lowered = set(&ledger, 12, cap(CapInterval::Total, "1")).await;
    assert_eq!(lowered.caps.iter().count(), 1);
    assert!(ledger.perform(new_hold(1, 21, "0.1")).await.is_err());
    let ended = ledger
        .perform(Arc::new(finish(20, 6_000_000)))
        .await
        .unwrap();
    assert_eq!((ended.charge, ended.loss), (usd("4"), usd("2")));
    let clear = Change::ClearCap {
        interval: CapInterval::Total,
        model: None,
    };
    let cleared = ledger.perform(change(1, 13, clear.clone())).await;
    assert!(cleared.unwrap().caps.is_empty());
    ledger.perform(new_hold(1, 21, "5")).await.unwrap();
    assert!(matches!(
        refused(ledger.perform(change(1, 14, clear)).await),
        Refusal::NotApplicable(_)
    ));
}

pub(crate) async fn a_new_cap_counts_what_is_spent_and_held(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    let now = clock::now();
    for request in [20, 21] {
        let hold = NewHold {
            at: now,
            ..new_hold(1, request, "1")
        };
        ledger.perform(hold).await.unwrap();
    }
    let ended = Finish {
        at: now,
        ..finish(20, 700_000)
    };
    ledger.perform(Arc::new(ended)).await.unwrap();
    let counted = |key: &Key| {
        let caps = key.caps.iter();
        let counts = caps.map(|counted| (counted.current.charged, counted.current.held));
        counts.collect::<Vec<_>>()
    };
    set(&ledger, 11, cap(CapInterval::Month, "2")).await;
    let other = Cap {
        model: Some("other".to_owned()),
        ..cap(CapInterval::Month, "2")
    };
    let both = set(&ledger, 12, other).await;
    let so_far = (usd("0.7"), usd("1"));
    assert_eq!(counted(&both), [so_far, (usd("0"), usd("0"))]);
    // A refund gives room back.
    let refund = CreditKind::Refund {
        request: op(20),
        reason: "bad".to_owned(),
    };
    let posted = ledger.perform(credit(1, 13, refund, "0.2", "r-1")).await;
    let key = posted.unwrap().key;
    assert_eq!(counted(key.as_ref().unwrap())[0], (usd("0.5"), usd("1")));
    assert_eq!(key, Some(of_key(&ledger).await));
}

pub(crate) async fn caps_that_make_no_sense_are_refused(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    set(&ledger, 11, cap(CapInterval::Week, "5")).await;
    for (operation, wrong) in [
        (12, cap(CapInterval::Day, "5.01")),
        (13, cap(CapInterval::Month, "4.99")),
        (14, cap(CapInterval::Week, "0")),
        (15, cap(CapInterval::Week, "-1")),
    ] {
        let refusal = refused(
            ledger
                .perform(change(1, operation, Change::SetCap(wrong)))
                .await,
        );
        assert!(matches!(refusal, Refusal::Limit(_)), "{refusal:?}");
    }
    let same = set(&ledger, 11, cap(CapInterval::Week, "5")).await;
    assert_eq!(
        same.caps.iter().count(),
        1,
        "a repeated act has no second effect"
    );
    let acts = ledger.audit(Some(key(1).into()), None, 1).await.unwrap();
    assert_eq!(acts[0].act, "set_cap");
    assert!(acts[0].details.contains("\"week\""), "{acts:?}");
}

/// Many requests want the last dollar of a cap at once: charged and held never pass it.
pub(crate) async fn nobody_gets_past_the_last_dollar_of_a_cap(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("90"))).await.unwrap();
    set(&ledger, 11, cap(CapInterval::Month, "1")).await;
    let racers = (0..48_u64).map(|racer| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            for turn in 0..4 {
                let request = 100 + racer * 10 + turn;
                if ledger.perform(new_hold(1, request, "0.1")).await.is_err() {
                    continue;
                }
                let _ = ledger.perform(moved(request, "0.2", 1)).await;
                let cost = 10_000 * (1 + racer % 40);
                ledger
                    .perform(Arc::new(finish(request, cost)))
                    .await
                    .unwrap();
                let counted = of_key(&ledger).await.own.caps;
                let counts = counted.iter().next().unwrap().current;
                let used = counts.charged.checked_add(counts.held).unwrap();
                assert!(used <= usd("1"), "{counts:?}");
            }
        })
    });
    for racer in racers.collect::<Vec<_>>() {
        racer.await.unwrap();
    }
    let counts = of_key(&ledger).await.caps.iter().next().unwrap().current;
    assert_eq!(counts.held, usd("0"));
    assert_eq!(counts.charged, account(&*ledger, 1).await.spent);
}
