//! Auto top-up at three gateways at once: one wish at a time and no more than allowed, whoever settles, judges and pays. And a rule that
//! somebody edited is found.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::*;

const ALLOWED: u32 = 5;

fn rule() -> TopUpRule {
    TopUpRule {
        threshold: usd("100"),
        refill: Refill::Amount(usd("20")),
        per_month: ALLOWED,
    }
}

fn customer() -> CustomerId {
    CustomerId::made_for(key(1))
}

async fn set(ledger: &dyn Ledger, operation: u64) {
    let change = CustomerChange {
        customer: customer(),
        change: CustomerAct::SetAutoTopUp(rule(), None),
        act: act(operation, 250),
    };
    ledger.perform(change).await.unwrap();
}

/// Pays whatever is asked for at all gateways at once, as a callback that comes several times does.
async fn pay(fleet: &[Arc<PostgresLedger>], numbers: &AtomicU64) {
    let known = fleet[0].find_customer(customer()).await.unwrap().unwrap();
    let state = known.auto_top_up.unwrap().state(clock::now());
    let Some(AutoTopUpState::Pending(wish)) = state else {
        return;
    };
    let reference = TopUpWish::reference(customer(), wish.number);
    let paid = fleet.iter().map(|ledger| {
        let operation = numbers.fetch_add(1, Ordering::Relaxed);
        let credit = Credit {
            to: customer().into(),
            ..top_up(1, operation, "20", &reference)
        };
        ledger.perform(credit)
    });
    for paid in futures(paid).await {
        paid.unwrap();
    }
}

/// All of them, polled together.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(all).await
}

/// What a program does that hears of all this: each wish must follow the booking of the one before.
fn count_wishes(told: &[Event]) -> u32 {
    let mut told: Vec<&Event> = told.iter().collect();
    told.sort_by_key(|event| event.seq);
    let (mut open, mut wishes) = (None, 0);
    for event in told {
        let reference = event.document()["data"]["reference"].clone();
        match event.kind {
            EventKind::TopUpWanted => {
                assert_eq!(open, None, "one at a time");
                open = Some(reference);
                wishes += 1;
            }
            EventKind::TopUpBooked if open.as_ref() == Some(&reference) => open = None,
            _ => {}
        }
    }
    wishes
}

#[test]
fn a_fleet_asks_once_at_a_time_and_no_more_than_allowed() {
    with_cluster("auto top-up of a fleet", async |cluster| {
        let (_, fleet) = fleet(cluster, 3).await;
        fleet[0].perform(new_key(1, 10, Some("100"))).await.unwrap();
        set(&*fleet[0], 11).await;
        let numbers = Arc::new(AtomicU64::new(100_000));
        let racers = (0..48_u64).map(|racer| {
            let ledger = Arc::clone(&fleet[usize::try_from(racer % 3).unwrap()]);
            tokio::spawn(async move {
                let request = 1_000 + racer;
                ledger.perform(new_hold(1, request, "1")).await.unwrap();
                ledger
                    .perform(Arc::new(finish(request, 1_000_000)))
                    .await
                    .unwrap();
                let judge = JudgeTopUp {
                    customer: customer(),
                    operation: op(5_000 + racer),
                };
                ledger.apply(judge.into()).await.unwrap();
            })
        });
        let racers: Vec<_> = racers.collect();
        let over = Arc::new(AtomicBool::new(false));
        let paying = {
            let (fleet, numbers, over) = (fleet.clone(), Arc::clone(&numbers), Arc::clone(&over));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    pay(&fleet, &numbers).await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                // A booking may ask again at once.
                for _ in 0..=ALLOWED {
                    pay(&fleet, &numbers).await;
                }
            })
        };
        for racer in racers {
            racer.await.unwrap();
        }
        over.store(true, Ordering::Relaxed);
        paying.await.unwrap();
        let known = fleet[1].find_customer(customer()).await.unwrap().unwrap();
        let asked = known.auto_top_up.unwrap().wishes(clock::now());
        let expected = 3 + usize::try_from(asked).unwrap() * 2;
        let told = events(&*fleet[2], expected).await;
        assert_eq!(count_wishes(&told), asked);
        assert!((1..=ALLOWED).contains(&asked), "{asked}");
        let paid = format!("{}.00", 100 - 48 + 20 * asked);
        assert_eq!(known.account.balance().to_string(), paid, "each paid once");
        sound(&*fleet[0]).await;
    });
}

#[test]
fn a_rule_that_somebody_edited_is_found() {
    let (dir, ledger) = sqlite();
    run(async {
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        set(&*ledger, 11).await;
        sound(&*ledger).await;
        let conn = rusqlite::Connection::open(dir.path().join("farebox.db")).unwrap();
        let edit = |from: &str, to: &str| {
            let sql = "UPDATE accounts SET auto_top_up = replace(auto_top_up, ?1, ?2) WHERE instr(auto_top_up, ?1)";
            assert_eq!(conn.execute(sql, [from, to]).unwrap(), 1, "{from}");
        };
        // What it has asked for so far bounds what it asks for, and is no part of the books.
        edit(r#""wishes":1"#, r#""wishes":0"#);
        sound(&*ledger).await;
        edit(r#""amount":"20.00""#, r#""amount":"90.00""#);
        let report = ledger.verify().await.unwrap();
        assert_eq!(report.faults.len(), 1, "{report:?}");
        assert!(
            report.faults[0].contains("without an audit record"),
            "{report:?}"
        );
    });
}
