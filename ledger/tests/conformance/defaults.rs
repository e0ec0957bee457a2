//! Defaults of the house: what binds whoever has set nothing of its own.

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

fn of_keys(caps: &[Cap]) -> Defaults {
    Defaults {
        key: DefaultSettings {
            caps: caps.to_vec(),
            ..DefaultSettings::default()
        },
        ..Defaults::default()
    }
}

async fn set(ledger: &SharedLedger, operation: u64, defaults: Defaults) {
    let act = act(operation, 250);
    ledger.perform(SetDefaults { defaults, act }).await.unwrap();
}

async fn of_key(ledger: &SharedLedger) -> Key {
    ledger.find_key(key(1)).await.unwrap().unwrap()
}

/// Limit, charged and held of caps, and whether each is a default.
fn counted(caps: &Caps) -> Vec<(Amount, Amount, Amount, bool)> {
    let one = |counted: &CountedCap| {
        let counts = counted.current;
        let (limit, is_default) = (counted.cap.limit, counted.is_default());
        (limit, counts.charged, counts.held, is_default)
    };
    caps.iter().map(one).collect()
}

/// 0.7 are spent, and 1 is held.
async fn used(ledger: &SharedLedger) {
    ledger.perform(new_key(1, 10, Some("9"))).await.unwrap();
    let at = clock::now();
    for request in [20, 21] {
        let hold = NewHold {
            at,
            ..new_hold(1, request, "1")
        };
        ledger.perform(hold).await.unwrap();
    }
    let ended = Finish {
        at,
        ..finish(20, 700_000)
    };
    ledger.perform(Arc::new(ended)).await.unwrap();
}

pub(crate) async fn a_default_binds_who_has_set_nothing(ledger: SharedLedger) {
    used(&ledger).await;
    let monthly = cap(CapInterval::Month, "2");
    let mut defaults = of_keys(std::slice::from_ref(&monthly));
    defaults.customer.caps = vec![cap(CapInterval::Total, "5")];
    (defaults.key.rate, defaults.customer.low_balance) = (Some(50), Some(usd("8.1")));
    set(&ledger, 30, defaults.clone()).await;
    let so_far = |limit| (usd(limit), usd("0.7"), usd("1"), true);
    let found = of_key(&ledger).await;
    assert_eq!(counted(&found.caps), [so_far("2")]);
    assert_eq!(counted(&found.customer.caps), [so_far("5")]);
    assert_eq!((found.rate(), found.settings.rate), (Some(50), None));
    assert_eq!(found.customer.warned_below(), Some(usd("8.1")));
    let query = KeyQuery {
        limit: 9,
        ..KeyQuery::default()
    };
    let keys = ledger.list_keys(query).await.unwrap();
    assert_eq!(keys, std::slice::from_ref(&found));
    let listed = CustomerQuery {
        limit: 9,
        ..CustomerQuery::default()
    };
    let listed = ledger.list_customers(listed).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&found.customer));
    match refused(ledger.perform(new_hold(1, 22, "0.4")).await) {
        Refusal::CapReached(reached) => {
            assert_eq!((reached.cap, reached.room), (monthly.clone(), usd("0.3")));
        }
        other => panic!("{other:?}"),
    }
    ledger.perform(new_hold(1, 22, "0.3")).await.unwrap();
    // The same again changes nothing.
    set(&ledger, 31, defaults.clone()).await;
    let acts = ledger.house_acts().await.unwrap();
    assert_eq!(acts.len(), 1);
    assert_eq!(
        (&*acts[0].act, acts[0].of),
        ("set_defaults", HouseSubject::Defaults)
    );
    // A lower one than what is held cuts nothing, and gives room again when that has fallen.
    defaults.key.caps = vec![cap(CapInterval::Month, "1.2")];
    set(&ledger, 32, defaults.clone()).await;
    assert_eq!(of_key(&ledger).await.room("small", clock::now()), usd("0"));
    assert!(ledger.perform(new_hold(1, 23, "0.1")).await.is_err());
    let ended = ledger.perform(Arc::new(finish(21, 100_000))).await.unwrap();
    assert_eq!(ended.charge, usd("0.1"));
    ledger.perform(Arc::new(finish(22, 0))).await.unwrap();
    ledger.perform(new_hold(1, 23, "0.4")).await.unwrap();
    // Without a line in the file it binds no more.
    set(&ledger, 33, Defaults::default()).await;
    let found = of_key(&ledger).await;
    assert!(found.caps.is_empty() && found.customer.caps.is_empty());
    assert_eq!((found.rate(), found.customer.warned_below()), (None, None));
    ledger.perform(new_hold(1, 24, "5")).await.unwrap();
    assert!(ledger.verify().await.unwrap().faults.is_empty());
}

pub(crate) async fn a_setting_of_its_own_wins(ledger: SharedLedger) {
    used(&ledger).await;
    let mut defaults = of_keys(&[cap(CapInterval::Month, "2"), cap(CapInterval::Total, "3")]);
    (defaults.key.concurrency, defaults.customer.concurrency) = (Some(3), Some(5));
    set(&ledger, 30, defaults.clone()).await;
    let found = of_key(&ledger).await;
    let limits = |key: &Key| (key.concurrency(), key.customer_concurrency());
    assert_eq!(limits(&found), (Some(3), 5));
    let own = Change::SetCap(cap(CapInterval::Total, "8"));
    let capped = ledger.perform(change(1, 31, own)).await.unwrap();
    let so_far = |limit, is_default| (usd(limit), usd("0.7"), usd("1"), is_default);
    assert_eq!(counted(&capped.caps), [so_far("8", false)]);
    assert_eq!(capped, of_key(&ledger).await);
    let more = Change::Edit(KeyEdit {
        concurrency: Said::Set(9),
        ..KeyEdit::default()
    });
    let more = ledger.perform(change(1, 32, more)).await.unwrap();
    assert_eq!(limits(&more), (Some(9), 9));
    // Without one of its own it has the defaults again, with what is spent by then.
    let cleared = Change::ClearCap {
        interval: CapInterval::Total,
        model: None,
    };
    let cleared = ledger.perform(change(1, 33, cleared)).await.unwrap();
    let both = [so_far("2", true), so_far("3", true)];
    assert_eq!(counted(&cleared.caps), both);
    assert_eq!(cleared, of_key(&ledger).await);
    let default = Change::ClearCap {
        interval: CapInterval::Month,
        model: None,
    };
    let refusal = refused(ledger.perform(change(1, 34, default)).await);
    assert!(matches!(refusal, Refusal::NotApplicable(_)), "{refusal:?}");
    // An owner lowers a default, and gets no further than it.
    let owner = NewKey {
        within: Membership {
            customer: Some(CustomerId::made_for(key(1))),
            is_owner: true,
            made_by: None,
        },
        ..new_key(2, 35, None)
    };
    let made = ledger.perform(owner).await.unwrap();
    assert_eq!(counted(&made.caps).len(), 2, "of a key that is new");
    let by_owner = |operation, limit| {
        let change = change(1, operation, Change::SetCap(cap(CapInterval::Month, limit)));
        ledger.ask(Asked {
            by: Asker::Owner(key(2)),
            at: at(300),
            once: None,
            expected: None,
            operation: Operation::Change(Box::new(change)),
        })
    };
    let refusal = refused(by_owner(36, "2.01").await);
    assert!(matches!(refusal, Refusal::Limit(_)), "{refusal:?}");
    by_owner(37, "1.5").await.unwrap();
    let found = of_key(&ledger).await;
    assert_eq!(
        counted(&found.caps),
        [so_far("1.5", true), so_far("3", true)]
    );
    set(&ledger, 38, Defaults::default()).await;
    let found = of_key(&ledger).await;
    assert_eq!(counted(&found.caps), [so_far("1.5", false)]);
    assert!(ledger.verify().await.unwrap().faults.is_empty());
}

pub(crate) async fn defaults_that_make_no_sense_are_refused(ledger: SharedLedger) {
    let mut of_key = Defaults::default();
    of_key.key.low_balance = Some(usd("1"));
    let mut negative = Defaults::default();
    negative.customer.low_balance = Some(usd("-1"));
    let (day, month) = (cap(CapInterval::Day, "5"), cap(CapInterval::Month, "4"));
    let wrong = [
        of_keys(&[day.clone(), month]),
        of_keys(&[day.clone(), day]),
        of_keys(&[cap(CapInterval::Day, "0")]),
        of_key,
        negative,
    ];
    for (operation, defaults) in (50..).zip(wrong) {
        let act = act(operation, 250);
        refused(ledger.perform(SetDefaults { defaults, act }).await);
    }
    assert!(ledger.house_acts().await.unwrap().is_empty());
}

/// Many requests want the last dollar of a default at once, while it comes, changes and goes: charged and held never pass the limit of
/// that time.
pub(crate) async fn nobody_gets_past_the_last_dollar_of_a_default(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("90"))).await.unwrap();
    ledger.perform(new_hold(1, 99, "0.1")).await.unwrap();
    set(&ledger, 11, of_keys(&[cap(CapInterval::Month, "1")])).await;
    let racers = (0..48_u64).map(|racer| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            for turn in 0..4 {
                let request = 100 + racer * 10 + turn;
                if ledger.perform(new_hold(1, request, "0.1")).await.is_err() {
                    continue;
                }
                let _ = ledger.perform(moved(request, "0.2", 1)).await;
                let ended = Finish {
                    at: clock::now(),
                    ..finish(request, 10_000 * (1 + racer % 40))
                };
                ledger.perform(Arc::new(ended)).await.unwrap();
                let counts = of_key(&ledger).await.caps.iter().next().unwrap().current;
                let used = counts.charged.checked_add(counts.held).unwrap();
                assert!(used <= usd("1"), "{counts:?}");
            }
        })
    });
    for racer in racers.collect::<Vec<_>>() {
        racer.await.unwrap();
    }
    let counts = of_key(&ledger).await.caps.iter().next().unwrap().current;
    assert_eq!(counts.held, usd("0.1"));
    assert_eq!(counts.charged, account(&*ledger, 1).await.spent);
    // It goes and comes back: what was spent is in the rollup.
    set(&ledger, 12, Defaults::default()).await;
    set(&ledger, 13, of_keys(&[cap(CapInterval::Month, "1")])).await;
    let again = of_key(&ledger).await.own.caps;
    let again = again.iter().next().unwrap().current;
    let sums = (again.charged, again.held);
    assert_eq!(sums, (counts.charged, counts.held));
}
