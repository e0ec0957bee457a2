//! Holds: reserved, extended, settled, dropped and recovered.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

pub(crate) async fn holds_reserve_and_settle_once(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "2")).await.unwrap();
    ledger.perform(new_hold(1, 20, "2")).await.unwrap();
    assert_eq!(account(&*ledger, 1).await.held, usd("2"));
    let refusal = Refusal::Insufficient {
        needed: usd("3.000001"),
        available: usd("3"),
        held: usd("2"),
    };
    assert_eq!(
        refused(ledger.perform(new_hold(1, 21, "3.000001")).await),
        refusal
    );
    let open = ledger.open_holds(None, 10).await.unwrap();
    assert_eq!(
        (open.len(), open[0].request, open[0].amount, open[0].used),
        (1, op(20), usd("2"), Amount::ZERO)
    );
    assert_eq!(
        ledger.open_holds(Some((key(2)).into()), 10).await.unwrap(),
        Vec::new()
    );
    let finished = ledger
        .perform(Arc::new(finish(20, 1_500_000)))
        .await
        .unwrap();
    assert_eq!(
        finished,
        EndedHold {
            charge: usd("1.5"),
            loss: Amount::ZERO,
            remaining: usd("3.5")
        }
    );
    assert_eq!(
        ledger.perform(Arc::new(finish(20, 0))).await.unwrap(),
        finished,
        "a release after the settlement changes nothing"
    );
    let entry = ledger.entry(op(20)).await.unwrap().unwrap();
    assert_eq!(
        (entry.kind, entry.amount, entry.balance_after, &*entry.actor),
        (EntryKind::Charge, usd("-1.5"), usd("3.5"), "gateway")
    );
    assert_eq!(
        entry.bill,
        Some(Bill {
            hold: usd("2"),
            ..bill(1_500_000)
        })
    );
    let held: SharedLedger = Arc::clone(&ledger);
    let hold = Hold::open(held, new_hold(1, 22, "3.5")).await.unwrap();
    let released = hold
        .release(
            Bill {
                slug: "small".to_owned(),
                ..Bill::default()
            },
            at(600),
        )
        .await
        .unwrap();
    assert_eq!(
        released,
        EndedHold {
            charge: Amount::ZERO,
            loss: Amount::ZERO,
            remaining: usd("3.5")
        }
    );
    let released = ledger.entry(op(22)).await.unwrap().unwrap();
    assert_eq!(
        (released.amount, released.bill.unwrap().evidence),
        (Amount::ZERO, None),
        "nobody counted anything"
    );
    assert_eq!(
        refused(ledger.perform(Arc::new(finish(99, 1))).await),
        Refusal::NoSuchHold(op(99))
    );
    assert_eq!(
        refused(ledger.perform(Arc::new(finish(10, 1))).await),
        Refusal::NoSuchHold(op(10)),
        "a top-up is not a hold"
    );
    let totals = ledger.totals().await.unwrap();
    assert_eq!(
        (totals.entries, totals.holds, totals.held, totals.spent),
        (3, 0, 0, 1_500_000_000_000)
    );
    sound(&*ledger).await;
}

pub(crate) async fn holds_are_refused_by_key_state(ledger: SharedLedger) {
    let mut new = new_key(1, 10, Some("5"));
    new.settings.expires_at = Some(at(401));
    ledger.perform(new).await.unwrap();
    ledger.perform(new_key(2, 11, None)).await.unwrap();
    assert_eq!(
        refused(ledger.perform(new_hold(3, 20, "1")).await),
        Refusal::NoSuchKey(key(3))
    );
    assert!(
        matches!(
            refused(ledger.perform(new_hold(2, 20, "0")).await),
            Refusal::Insufficient { .. }
        ),
        "nothing left: not even free"
    );
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    let late = NewHold {
        at: at(401),
        ..new_hold(1, 21, "1")
    };
    assert_eq!(
        refused(ledger.perform(late).await),
        Refusal::NotActive(KeyStatus::Expired)
    );
    assert_eq!(
        refused(ledger.perform(moved(20, "2", 1)).await),
        Refusal::NotActive(KeyStatus::Expired)
    );
    ledger.perform(change(1, 12, Change::Block)).await.unwrap();
    assert_eq!(
        refused(ledger.perform(new_hold(1, 22, "1")).await),
        Refusal::NotActive(KeyStatus::Blocked)
    );
    assert!(matches!(
        refused(ledger.perform(new_hold(1, 23, "-1")).await),
        Refusal::NotActive(_)
    ));
    ledger.perform(Arc::new(finish(20, 1))).await.unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn an_operation_id_is_spent_once(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    let used = |operation| Refusal::OperationUsed(op(operation));
    assert_eq!(
        refused(ledger.perform(new_hold(1, 20, "2")).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.perform(new_hold(1, 10, "1")).await),
        used(10)
    );
    assert_eq!(
        refused(ledger.perform(top_up(1, 20, "1", "x")).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.perform(change(1, 20, Change::Block)).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.perform(change(1, 10, Change::Block)).await),
        used(10)
    );
    assert_eq!(
        refused(ledger.perform(new_key(2, 20, None)).await),
        used(20)
    );
    ledger.perform(Arc::new(finish(20, 1))).await.unwrap();
    assert_eq!(
        refused(ledger.perform(new_hold(1, 20, "1")).await),
        used(20),
        "an ended hold is not opened again"
    );
    assert_eq!(
        refused(ledger.perform(moved(20, "1", 1)).await),
        Refusal::NoSuchHold(op(20))
    );
    assert_eq!(
        refused(
            ledger
                .perform(NewLink {
                    key: key(1),
                    token: secret(9),
                    expires: at(900),
                    act: act(20, 1)
                })
                .await
        ),
        used(20)
    );
    sound(&*ledger).await;
}

pub(crate) async fn holds_move_and_checkpoint(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let mut hold = Hold::open(Arc::clone(&ledger), new_hold(1, 20, "1"))
        .await
        .unwrap();
    hold.checkpoint(bill(900_000), Some(usd("3")), at(450))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.held, usd("3"));
    hold.checkpoint(bill(950_000), Some(usd("2")), at(451))
        .await
        .unwrap();
    assert_eq!(
        (hold.amount(), account(&*ledger, 1).await.held),
        (usd("2"), usd("2"))
    );
    let open = ledger.open_holds(Some(key(1).into()), 10).await.unwrap();
    assert_eq!((open[0].amount, open[0].used), (usd("2"), usd("0.95")));
    let late = HoldMove {
        number: 2,
        ..moved(20, "4", 1)
    };
    let held = ledger.perform(late).await.unwrap();
    assert_eq!((held.amount, held.by_cap), (usd("2"), false));
    let same = ledger.open_holds(None, 10).await.unwrap();
    assert_eq!(same, open, "one that was overtaken changes nothing");
    let all = hold
        .checkpoint(bill(960_000), Some(usd("5.01")), at(452))
        .await;
    assert_eq!(all.unwrap().amount, usd("5"), "as far as there is room");
    assert_eq!(account(&*ledger, 1).await.available(), Amount::ZERO);
    sound(&*ledger).await;
    hold.settle(bill(5_000_000), at(500)).await.unwrap();
    assert_eq!(
        refused(ledger.perform(moved(21, "1", 1)).await),
        Refusal::NoSuchHold(op(21))
    );
    sound(&*ledger).await;
}

/// A request names what it costs and what each token of its limit adds; the ledger grants what its share of the room buys.
pub(crate) async fn a_limit_is_granted_by_the_room(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("10"))).await.unwrap();
    let way = |fixed: &str, most| HoldWay {
        fixed: usd(fixed),
        token: usd("0.001"),
        floor: 400,
        least: 100,
        most,
    };
    let new = |operation, ways: &[HoldWay]| NewHold {
        ways: ways.to_vec(),
        ..new_hold(1, operation, "0")
    };
    let open = async |new| Hold::open(Arc::clone(&ledger), new).await;
    // Alone: half of what is left beyond the input.
    let mut first = open(new(20, &[way("2", 9_000)])).await.unwrap();
    assert_eq!((first.granted().limit, first.amount()), (4_000, usd("6")));
    // Beside it: an eighth, and at least the floor.
    let second = open(new(21, &[way("0.8", 9_000)])).await.unwrap();
    assert_eq!((second.granted().limit, second.amount()), (400, usd("1.2")));
    // The first way has no room, the second has.
    let ways = [way("2.5", 9_000), way("2.4", 9_000)];
    let third = open(new(22, &ways)).await.unwrap();
    let granted = third.granted();
    assert_eq!((granted.way, granted.limit), (1, 400));
    assert_eq!(account(&*ledger, 1).await.available(), Amount::ZERO);
    let refusal = refused(open(new(23, &[way("0", 9_000)])).await.map(drop));
    assert!(matches!(refusal, Refusal::Insufficient { needed, .. } if needed == usd("0.4")));
    // A repetition is answered as the first time.
    let again = ledger.perform(new(22, &ways)).await.unwrap();
    assert_eq!(again.amount, usd("2.8"));
    // Another way in place of what it holds: everything else is held by others.
    first.reopen(vec![way("5", 9_000)], at(460)).await.unwrap();
    assert_eq!((first.granted().limit, first.amount()), (400, usd("5.4")));
    let refusal = refused(first.reopen(vec![way("5.7", 9_000)], at(461)).await);
    assert!(matches!(refusal, Refusal::Insufficient { needed, .. } if needed == usd("0.7")));
    assert_eq!(first.amount(), usd("5.4"), "a refused move changes nothing");
    for hold in [first, second, third] {
        hold.release(Bill::default(), at(470)).await.unwrap();
    }
    // Alone it is content with less than the floor.
    let last = open(new(24, &[way("9.9", 9_000)])).await.unwrap();
    assert_eq!(last.granted().limit, 100);
    sound(&*ledger).await;
}

pub(crate) async fn a_charge_beyond_the_balance_is_the_operators_loss(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    ledger.perform(new_hold(1, 21, "1")).await.unwrap();
    let finished = ledger
        .perform(Arc::new(finish(20, 6_000_000)))
        .await
        .unwrap();
    assert_eq!(
        finished,
        EndedHold {
            charge: usd("4"),
            loss: usd("2"),
            remaining: usd("1")
        }
    );
    assert_eq!(
        ledger.perform(Arc::new(finish(20, 1))).await.unwrap(),
        finished
    );
    let bill = ledger.entry(op(20)).await.unwrap().unwrap().bill.unwrap();
    assert_eq!(
        (bill.hold, bill.loss, bill.total().unwrap()),
        (usd("1"), usd("2"), usd("6"))
    );
    assert_eq!(
        account(&*ledger, 1).await,
        Account {
            credit: usd("5"),
            spent: usd("4"),
            held: usd("1")
        }
    );
    assert_eq!(ledger.totals().await.unwrap().loss, 2_000_000_000_000);
    ledger
        .perform(Arc::new(finish(21, 1_000_000)))
        .await
        .unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn absurd_bills_are_refused_and_abandoned_ones_disputed(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    ledger.perform(moved(20, "1", 250_000)).await.unwrap();
    let mut absurd = finish(20, 1);
    absurd.bill.lines[0].count = u64::MAX;
    assert!(matches!(
        refused(ledger.perform(Arc::new(absurd.clone())).await),
        Refusal::Limit(_)
    ));
    let mut counts = finish(20, 1);
    counts.bill.usage.input = u64::MAX;
    assert!(matches!(
        refused(ledger.perform(Arc::new(counts)).await),
        Refusal::Limit(_)
    ));
    let checkpoint = HoldMove {
        checkpoint: Some(absurd.bill.clone()),
        ..moved(20, "1", 1)
    };
    assert!(matches!(
        refused(ledger.perform(checkpoint).await),
        Refusal::Limit(_)
    ));
    ledger.abandon_hold(Arc::new(absurd));
    let entry = eventually(&ledger, op(20)).await;
    let bill = entry.bill.unwrap();
    assert_eq!(
        (entry.amount, bill.evidence, bill.usage.output),
        (usd("-0.25"), Some(Evidence::Disputed), 250_000)
    );
    sound(&*ledger).await;
}

/// The entry that the resolver makes in its own time.
async fn eventually(ledger: &SharedLedger, operation: OperationId) -> JournalEntry {
    for _ in 0..30_000 {
        if let Some(entry) = ledger.entry(operation).await.unwrap() {
            return entry;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("the hold was never resolved");
}

pub(crate) async fn a_dropped_hold_is_settled_with_its_note(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let mut hold = Hold::open(Arc::clone(&ledger), new_hold(1, 20, "1"))
        .await
        .unwrap();
    hold.note(bill(300_000), at(460));
    drop(hold);
    assert_eq!(eventually(&ledger, op(20)).await.amount, usd("-0.3"));
    drop(
        Hold::open(Arc::clone(&ledger), new_hold(1, 21, "1"))
            .await
            .unwrap(),
    );
    let entry = eventually(&ledger, op(21)).await;
    assert_eq!(
        (entry.amount, entry.bill.unwrap().end_reason),
        (Amount::ZERO, EndReason::Dropped)
    );
    ledger.abandon_hold(Arc::new(finish(99, 5)));
    assert_eq!(account(&*ledger, 1).await.held, Amount::ZERO);
    sound(&*ledger).await;
}

pub(crate) async fn recovery_settles_checkpoints_and_releases_the_rest(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    assert_eq!(
        ledger.recover(at(50)).await.unwrap(),
        Recovered {
            epoch: 1,
            settled: 0,
            released: 0
        }
    );
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    ledger.perform(moved(20, "2", 1_250_000)).await.unwrap();
    ledger.perform(new_hold(1, 21, "1")).await.unwrap();
    assert_eq!(ledger.open_holds(None, 9).await.unwrap()[0].epoch, 1);
    assert_eq!(
        ledger.recover(at(800)).await.unwrap(),
        Recovered {
            epoch: 2,
            settled: 1,
            released: 1
        }
    );
    assert_eq!(ledger.open_holds(None, 9).await.unwrap(), Vec::new());
    let settled = ledger.entry(op(20)).await.unwrap().unwrap();
    let bill = settled.bill.unwrap();
    assert_eq!(
        (settled.amount, settled.at, bill.evidence, bill.end_reason),
        (
            usd("-1.25"),
            at(800),
            Some(Evidence::Recovered),
            EndReason::Recovered
        )
    );
    let released = ledger.entry(op(21)).await.unwrap().unwrap();
    let nothing = released.bill.unwrap();
    assert_eq!((released.amount, &*nothing.slug), (Amount::ZERO, "small"));
    assert_eq!(
        (bill.exposure, nothing.exposure),
        (usd("0.75"), usd("1")),
        "what was held beyond the checkpoints"
    );
    let hours = ledger.usage(key(1), at(0), at(3_600)).await.unwrap();
    assert_eq!(
        (hours[0].exposure, hours[0].unmetered),
        (usd("1.75"), usd("1.75")),
        "and the key is not blamed for it"
    );
    let totals = ledger.totals().await.unwrap();
    assert_eq!((totals.exposure, totals.cost), (1_750_000_000_000, 0));
    let late = ledger
        .perform(Arc::new(finish(20, 2_000_000)))
        .await
        .unwrap();
    assert_eq!(
        late.charge,
        usd("1.25"),
        "a settlement after recovery changes nothing"
    );
    assert_eq!(
        ledger.recover(at(900)).await.unwrap(),
        Recovered {
            epoch: 3,
            settled: 0,
            released: 0
        }
    );
    sound(&*ledger).await;
}
