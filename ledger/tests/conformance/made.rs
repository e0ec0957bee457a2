//! Keys that an owner key makes: they count in its caps, get no more than it has room for, and are no more than a customer may have.

use std::sync::Arc;

use farebox_ledger::*;

use super::actors::{OWNER, by_owner};
use super::common::*;
use super::{account, refused};

fn own() -> CustomerId {
    CustomerId::made_for(key(OWNER))
}

async fn owner(ledger: &SharedLedger, credit: &str) {
    let mut new = new_key(OWNER, 10, Some(credit));
    new.within.is_owner = true;
    ledger.perform(new).await.unwrap();
}

fn total(limit: &str) -> Cap {
    Cap {
        interval: CapInterval::Total,
        model: None,
        limit: usd(limit),
    }
}

/// A key that the owner makes with this limit.
fn new_made(number: u64, limit: &str) -> NewKey {
    NewKey {
        within: Membership {
            customer: Some(own()),
            is_owner: false,
            made_by: Some(key(OWNER)),
        },
        purse: Some(total(limit)),
        ..new_key(number, 1_000 + number, None)
    }
}

async fn make(ledger: &SharedLedger, number: u64, limit: &str) -> Result<Key, LedgerError> {
    let new = Operation::Create(Box::new(new_made(number, limit)));
    let answered = ledger.ask(by_owner(new)).await?;
    answered.outcome.unwrap().try_into()
}

async fn change_as_owner(
    ledger: &SharedLedger,
    number: u64,
    operation: u64,
    what: Change,
) -> Result<Key, LedgerError> {
    let change = Operation::Change(Box::new(change(number, operation, what)));
    let answered = ledger.ask(by_owner(change)).await?;
    answered.outcome.unwrap().try_into()
}

fn hold(number: u64, request: u64, amount: &str) -> NewHold {
    NewHold {
        customer: own(),
        ..new_hold(number, request, amount)
    }
}

async fn found(ledger: &SharedLedger, number: u64) -> Key {
    ledger.find_key(key(number)).await.unwrap().unwrap()
}

fn counts(key: &Key) -> (Amount, Amount) {
    let counted = key.caps.iter().next().unwrap().current;
    (counted.charged, counted.held)
}

pub(crate) async fn what_a_made_key_spends_counts_in_the_caps_of_its_maker(ledger: SharedLedger) {
    owner(&ledger, "9").await;
    let cap = change(OWNER, 11, Change::SetCap(total("3")));
    ledger.perform(cap).await.unwrap();
    for (number, limit) in [(2, "1"), (3, "2")] {
        let made = make(&ledger, number, limit).await.unwrap();
        assert_eq!(made.counts_in, Some(key(OWNER)));
        assert_eq!(made, found(&ledger, number).await);
    }
    ledger.perform(hold(2, 20, "0.8")).await.unwrap();
    ledger.perform(hold(OWNER, 21, "1.5")).await.unwrap();
    assert_eq!(found(&ledger, 3).await.spendable(clock::now()), usd("0.7"));
    assert_eq!(counts(&found(&ledger, OWNER).await), (usd("0"), usd("2.3")));
    match refused(ledger.perform(hold(3, 22, "0.8")).await) {
        Refusal::CapReached(reached) => {
            assert_eq!(reached.scope, Scope::Key(key(OWNER)));
            assert_eq!((reached.room, reached.held), (usd("0.7"), usd("2.3")));
        }
        other => panic!("{other:?}"),
    }
    let grown = HoldMove {
        number: 1,
        ..moved(20, "1.4", 1)
    };
    let grown = ledger.perform(grown).await.unwrap();
    assert_eq!((grown.amount, grown.by_cap), (usd("1"), true), "its own");
    let ended = ledger.perform(Arc::new(finish(20, 900_000))).await.unwrap();
    assert_eq!(ended.remaining, usd("0.1"));
    assert_eq!(
        counts(&found(&ledger, OWNER).await),
        (usd("0.9"), usd("1.5"))
    );
    let refund = CreditKind::Refund {
        request: op(20),
        reason: "bad".to_owned(),
    };
    let refund = Credit {
        to: Scope::Key(key(2)),
        ..credit(2, 13, refund, "0.4", "r-1")
    };
    ledger.perform(refund).await.unwrap();
    assert_eq!(
        counts(&found(&ledger, OWNER).await),
        (usd("0.5"), usd("1.5"))
    );

    // A cap that is set later counts what its keys have spent and hold.
    ledger.perform(hold(3, 23, "0.5")).await.unwrap();
    let monthly = Cap {
        interval: CapInterval::Month,
        limit: usd("2.9"),
        ..total("0")
    };
    let set = ledger.perform(change(OWNER, 14, Change::SetCap(monthly)));
    let set = set.await.unwrap();
    let newest = set.caps.iter().last().unwrap().current;
    assert_eq!(newest.held, usd("2"));
    ledger.perform(Arc::new(finish(23, 100_000))).await.unwrap();
    ledger.verify().await.unwrap();
}

pub(crate) async fn a_made_key_gets_no_more_than_its_maker_has_room_for(ledger: SharedLedger) {
    owner(&ledger, "2").await;
    for (number, wrong) in [(2, "0"), (3, "-1")] {
        let refusal = refused(make(&ledger, number, wrong).await);
        assert!(matches!(refusal, Refusal::Limit(_)), "{refusal:?}");
    }
    let above = |limit: &str, left: &str, room: &str| Refusal::AboveRoom {
        limit: usd(limit),
        left: usd(left),
        room: usd(room),
    };
    assert_eq!(
        refused(make(&ledger, 4, "2.01").await),
        above("2.01", "2.01", "2")
    );
    ledger.perform(hold(OWNER, 20, "0.5")).await.unwrap();
    assert_eq!(
        refused(make(&ledger, 4, "1.6").await),
        above("1.6", "1.6", "1.5")
    );
    make(&ledger, 4, "1.5").await.unwrap();
    ledger.perform(hold(4, 21, "1")).await.unwrap();
    // It has 0.5 left, and so has its maker.
    let refill = |limit: &str| Change::SetPurse(total(limit));
    assert_eq!(
        refused(change_as_owner(&ledger, 4, 30, refill("1.6")).await),
        above("1.6", "0.6", "0.5")
    );
    let lowered = change_as_owner(&ledger, 4, 31, refill("1.2"))
        .await
        .unwrap();
    assert_eq!(lowered.spendable(clock::now()), usd("0.2"));
    let raised = change_as_owner(&ledger, 4, 32, refill("1.5"))
        .await
        .unwrap();
    assert_eq!(raised, found(&ledger, 4).await);
    // The seller gives no such limit, and no key that nobody made has one.
    let refusal = refused(ledger.perform(change(OWNER, 33, refill("1"))).await);
    assert!(matches!(refusal, Refusal::NotApplicable(_)), "{refusal:?}");
    let mut alone = new_made(5, "1");
    alone.within = Membership::default();
    let refusal = refused(ledger.perform(alone).await);
    assert!(matches!(refusal, Refusal::NotApplicable(_)), "{refusal:?}");
    ledger.perform(Arc::new(finish(21, 1))).await.unwrap();
    ledger.verify().await.unwrap();
}

pub(crate) async fn sixty_keys_are_made_a_minute_and_no_more(ledger: SharedLedger) {
    owner(&ledger, "9").await;
    let racers = (0..100).map(|racer| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move { make(&ledger, 100 + racer, "0.2").await })
    });
    let mut made = 0;
    for racer in racers.collect::<Vec<_>>() {
        match racer.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(
                refused(Err::<(), _>(error)),
                Refusal::TooManyMade(MadeBound::Minute)
            ),
        }
    }
    assert_eq!(made, 60);
    ledger.verify().await.unwrap();
}

/// The owner's own requests run beside those of fifty keys, each with twenty cents: none passes them, and the balance ends exact.
pub(crate) async fn fifty_purses_hold_in_any_race(ledger: SharedLedger) {
    owner(&ledger, "12").await;
    let runs = (0..50_u64).map(|run| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            let number = 100 + run;
            make(&ledger, number, "0.2").await.unwrap();
            for turn in 0..6 {
                let request = 10_000 + run * 10 + turn;
                if ledger.perform(hold(number, request, "0.05")).await.is_err() {
                    continue;
                }
                let _ = ledger.perform(moved(request, "0.09", 1)).await;
                let cost = 30_000 + 10_000 * (run % 7);
                let end = Arc::new(finish(request, cost));
                ledger.perform(end).await.unwrap();
                let (charged, held) = counts(&found(&ledger, number).await);
                let used = charged.checked_add(held).unwrap();
                assert!(used <= usd("0.2"), "{used}");
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
    let mut spent = usd("0");
    for run in 0..50 {
        let (charged, held) = counts(&found(&ledger, 100 + run).await);
        assert_eq!(held, usd("0"));
        assert!(charged <= usd("0.2"));
        spent = spent.checked_add(charged).unwrap();
    }
    assert_eq!(account(&*ledger, OWNER).await.spent, spent);
    assert!(spent > usd("5"), "{spent}");
    ledger.verify().await.unwrap();
}

pub(crate) async fn an_owner_key_names_reissues_and_ends_what_it_made(ledger: SharedLedger) {
    owner(&ledger, "5").await;
    let mut other = new_key(9, 12, None);
    other.within.customer = Some(own());
    ledger.perform(other).await.unwrap();
    let now = clock::now();
    let in_an_hour = Timestamp::from_millis(now.millis() + 3_600_000);
    let mut made = new_made(2, "1");
    made.settings.expires_at = Some(in_an_hour);
    let noted = Some(MetadataPairs::from([("task".to_owned(), "17\0".to_owned())]).into());
    made.settings.metadata.clone_from(&noted);
    let made = Operation::Create(Box::new(made));
    ledger.ask(by_owner(made)).await.unwrap();
    make(&ledger, 3, "1").await.unwrap();
    let named = |label: &str| {
        Change::Edit(KeyEdit {
            label: Some(label.to_owned()),
            ..KeyEdit::default()
        })
    };
    let renamed = change_as_owner(&ledger, 2, 40, named("run 2"))
        .await
        .unwrap();
    assert_eq!(renamed.settings.label, "run 2");
    assert_eq!(renamed.settings.metadata, noted, "for ever");
    assert_eq!(renamed, found(&ledger, 2).await);
    let endless = Change::Edit(KeyEdit {
        expires_at: Said::Clear,
        ..KeyEdit::default()
    });
    for (number, operation, what) in [
        (2, 41, endless),
        (9, 42, named("mine")),
        (9, 43, Change::Revoke),
        (9, 44, Change::SetPurse(total("1"))),
    ] {
        let refusal = refused(change_as_owner(&ledger, number, operation, what).await);
        assert!(matches!(refusal, Refusal::NotAllowed(_)), "{refusal:?}");
    }
    let reissue = |number| Change::Reissue {
        secret: secret(number),
    };
    change_as_owner(&ledger, 2, 45, reissue(7)).await.unwrap();
    let used = MarkUsed { key: key(2), now };
    ledger.perform(used).await.unwrap();
    let refusal = refused(change_as_owner(&ledger, 2, 46, reissue(8)).await);
    assert!(matches!(refusal, Refusal::NotApplicable(_)), "{refusal:?}");

    let list = async |blocked, hours: i64| {
        let query = KeyQuery {
            made: Some(MadeQuery {
                by: key(OWNER),
                blocked,
            }),
            now: Timestamp::from_millis(now.millis() + hours * 3_600_000),
            limit: 9,
            ..KeyQuery::default()
        };
        let found = ledger.list_keys(query).await.unwrap();
        let mut ids: Vec<_> = found.iter().map(|key| key.id).collect();
        ids.sort_unstable();
        ids
    };
    let mut both = vec![key(2), key(3)];
    both.sort_unstable();
    assert_eq!(list(false, 24).await, both, "expired for less than a day");
    assert_eq!(list(false, 25).await, [key(3)], "and for a day");
    change_as_owner(&ledger, 3, 47, Change::Block)
        .await
        .unwrap();
    assert_eq!(list(false, 0).await, [key(2)]);
    assert_eq!(list(true, 0).await, both);
    change_as_owner(&ledger, 3, 48, Change::Revoke)
        .await
        .unwrap();
    assert_eq!(list(true, 0).await, [key(2)]);
    assert!(
        ledger.find_key(key(3)).await.unwrap().is_some(),
        "in the books"
    );
    ledger.verify().await.unwrap();
}

pub(crate) async fn a_repeated_order_makes_one_key(ledger: SharedLedger) {
    owner(&ledger, "5").await;
    let order = |number: u64, body: &str| {
        let new = Operation::Create(Box::new(new_made(number, "1")));
        once(by_owner(new), "run-1", body)
    };
    let first = ledger.ask(order(2, "a")).await.unwrap();
    assert!(!first.is_replay());
    let again = ledger.ask(order(3, "a")).await.unwrap();
    assert!(again.is_replay());
    assert_eq!(again.answer, first.answer);
    assert_eq!(
        refused(ledger.ask(order(4, "b")).await),
        Refusal::KeyOfOtherBody
    );
    for number in [3, 4] {
        assert_eq!(ledger.find_key(key(number)).await.unwrap(), None);
    }
    // The same name of another owner key is another order.
    let mut second = new_key(8, 12, None);
    (second.within.customer, second.within.is_owner) = (Some(own()), true);
    ledger.perform(second).await.unwrap();
    let mut new = new_made(5, "1");
    new.within.made_by = Some(key(8));
    let other = Asked {
        by: Asker::Owner(key(8)),
        ..once(by_owner(Operation::Create(Box::new(new))), "run-1", "a")
    };
    assert!(!ledger.ask(other).await.unwrap().is_replay());
    // Who may not act is answered nothing.
    ledger
        .perform(change(OWNER, 50, Change::Block))
        .await
        .unwrap();
    assert_eq!(
        refused(ledger.ask(order(6, "a")).await),
        Refusal::NotActive(KeyStatus::Blocked)
    );
    ledger.verify().await.unwrap();
}
