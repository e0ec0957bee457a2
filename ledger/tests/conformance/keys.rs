//! Keys: created once with their first money, changed, and revoked for ever.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

pub(crate) async fn keys_are_created_once_with_their_first_money(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, Some("5.00"))).await.unwrap();
    assert_eq!(
        (
            made.customer.account.credit,
            made.status(at(100)),
            made.customer.last_entry_at
        ),
        (usd("5"), KeyStatus::Active, Some(at(100)))
    );
    assert_eq!(
        ledger.perform(new_key(1, 10, Some("5.00"))).await.unwrap(),
        made
    );
    assert_eq!(ledger.find_key(key(1)).await.unwrap(), Some(made.clone()));
    assert_eq!(ledger.find_key(key(2)).await.unwrap(), None);
    assert!(matches!(
        refused(ledger.perform(new_key(1, 11, None)).await),
        Refusal::NotApplicable(_)
    ));
    let mut other = new_key(2, 12, Some("5.00"));
    other.first_credit = Some((usd("5"), "first-1".to_owned()));
    assert_eq!(
        refused(ledger.perform(other.clone()).await),
        Refusal::ReferenceUsed {
            reference: "first-1".into(),
            customer: CustomerId::made_for(key(1))
        }
    );
    other.first_credit = Some((usd("100000.01"), "big".to_owned()));
    assert!(matches!(
        refused(ledger.perform(other).await),
        Refusal::Limit(_)
    ));
    assert_eq!(
        ledger.find_key(key(2)).await.unwrap(),
        None,
        "a refused creation leaves nothing"
    );
    let empty = ledger.perform(new_key(3, 13, None)).await.unwrap();
    assert_eq!(
        (empty.customer.account, empty.customer.last_entry_at),
        (Account::default(), None)
    );
    let entry = ledger.entry(op(10)).await.unwrap().unwrap();
    assert_eq!(
        (entry.kind, entry.seq, entry.amount, entry.balance_after),
        (EntryKind::TopUp, 1, usd("5"), usd("5"))
    );
    let totals = ledger.totals().await.unwrap();
    assert_eq!(
        (totals.keys, totals.entries, totals.credit),
        (2, 1, 5_000_000_000_000)
    );
    sound(&*ledger).await;
}

pub(crate) async fn key_changes_are_applied_once_and_audited(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let settings = KeySettings {
        label: "New".into(),
        models: Some(vec!["small".into()]),
        rate: Some(3),
        ..KeySettings::default()
    };
    let edit = KeyEdit {
        label: Some("New".into()),
        models: Said::Set(vec!["small".into()]),
        rate: Said::Set(3),
        ..KeyEdit::default()
    };
    let set = change(1, 11, Change::Edit(edit));
    let changed = ledger.perform(set.clone()).await.unwrap();
    assert_eq!(changed.settings, settings);
    assert_eq!(ledger.perform(set).await.unwrap(), changed);
    let rotate = change(
        1,
        12,
        Change::Rotate {
            secret: secret(2),
            old_until: Some(at(900)),
        },
    );
    let rotated = ledger.perform(rotate.clone()).await.unwrap();
    assert!(
        rotated.opens_with(secret(2), at(1))
            && rotated.opens_with(secret(1), at(899))
            && !rotated.opens_with(secret(1), at(900))
    );
    ledger.perform(rotate).await.unwrap();
    let other = change(
        1,
        12,
        Change::Rotate {
            secret: secret(3),
            old_until: Some(at(900)),
        },
    );
    assert_eq!(
        refused(ledger.perform(other).await),
        Refusal::OperationUsed(op(12))
    );
    let at_once = ledger
        .perform(change(
            1,
            13,
            Change::Rotate {
                secret: secret(4),
                old_until: None,
            },
        ))
        .await
        .unwrap();
    assert!(at_once.opens_with(secret(4), at(1)) && !at_once.opens_with(secret(2), at(1)));
    assert_eq!(
        ledger
            .perform(change(1, 14, Change::Block))
            .await
            .unwrap()
            .stored_status,
        KeyStatus::Blocked
    );
    assert_eq!(
        ledger
            .perform(change(1, 15, Change::Block))
            .await
            .unwrap()
            .stored_status,
        KeyStatus::Blocked
    );
    assert_eq!(
        ledger
            .perform(change(1, 16, Change::Unblock))
            .await
            .unwrap()
            .stored_status,
        KeyStatus::Active
    );
    assert_eq!(
        refused(ledger.perform(change(9, 17, Change::Block)).await),
        Refusal::NoSuchKey(key(9))
    );
    let long = KeyEdit {
        label: Some("x".repeat(201)),
        ..KeyEdit::default()
    };
    assert!(matches!(
        refused(ledger.perform(change(1, 18, Change::Edit(long))).await),
        Refusal::Limit(_)
    ));
    ledger.perform(top_up(1, 19, "1", "r-19")).await.unwrap();
    let audit = ledger.audit(Some(key(1).into()), None, 100).await.unwrap();
    let acts: Vec<&str> = audit.iter().rev().map(|record| &*record.act).collect();
    assert_eq!(
        acts,
        [
            "create", "set", "rotate", "rotate", "block", "block", "unblock", "top_up"
        ]
    );
    assert!(audit.iter().all(|record| record.actor == "ada"
        && serde_json::from_str::<serde_json::Value>(&record.details).is_ok()));
    assert_eq!(ledger.audit(None, None, 2).await.unwrap(), audit[..2]);
    assert_eq!(
        ledger
            .audit(Some(key(1).into()), Some(audit[1].position), 2)
            .await
            .unwrap(),
        audit[2..4]
    );
    assert_eq!(
        ledger.audit(Some((key(9)).into()), None, 2).await.unwrap(),
        Vec::new()
    );
    sound(&*ledger).await;
}

pub(crate) async fn revoked_is_for_ever(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    ledger.perform(Arc::new(finish(20, 1_000))).await.unwrap();
    ledger.perform(change(1, 11, Change::Revoke)).await.unwrap();
    ledger.perform(change(1, 12, Change::Revoke)).await.unwrap();
    for (operation, what) in [
        (13, Change::Unblock),
        (14, Change::Block),
        (15, Change::Edit(KeyEdit::default())),
    ] {
        assert!(matches!(
            refused(ledger.perform(change(1, operation, what)).await),
            Refusal::NotApplicable(_)
        ));
    }
    assert!(matches!(
        refused(ledger.perform(top_up(1, 16, "1", "late")).await),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        refused(ledger.perform(new_hold(1, 21, "1")).await),
        Refusal::NotActive(KeyStatus::Revoked)
    );
    let refund = CreditKind::Refund {
        request: op(20),
        reason: "closing".into(),
    };
    ledger
        .perform(credit(1, 17, refund, "0.001", "refund"))
        .await
        .unwrap();
    let back = CreditKind::Adjust {
        reason: "paid back".into(),
        is_paid: true,
    };
    ledger
        .perform(credit(1, 18, back, "-5", "back"))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    sound(&*ledger).await;
}

pub(crate) async fn keys_that_have_ended_are_named(ledger: SharedLedger) {
    for number in 1..=4 {
        let new = new_key(number, 10 + number, Some("5"));
        ledger.perform(new).await.unwrap();
    }
    // One that nobody has made has not ended.
    let all = [key(1), key(2), key(3), key(4), key(9)];
    let ended = async |keys: &[KeyId]| -> Vec<KeyId> {
        let mut found = ledger.ended(keys).await.unwrap();
        found.sort();
        found
    };
    let sorted = |mut keys: Vec<KeyId>| -> Vec<KeyId> {
        keys.sort();
        keys
    };
    assert_eq!(ended(&all).await, []);
    assert_eq!(ended(&[]).await, []);
    ledger.perform(change(1, 21, Change::Block)).await.unwrap();
    ledger.perform(change(2, 22, Change::Revoke)).await.unwrap();
    let of_customer = |operation, change| CustomerChange {
        customer: CustomerId::made_for(key(3)),
        change,
        act: act(operation, 100),
    };
    let suspended = of_customer(23, CustomerAct::Suspend);
    ledger.perform(suspended).await.unwrap();
    for _ in 0..2 {
        assert_eq!(ended(&all).await, sorted(vec![key(1), key(2), key(3)]));
        assert_eq!(ended(&[key(4), key(3)]).await, [key(3)]);
        // What requests do changes none of it.
        let request = ledger.totals().await.unwrap().entries + 30;
        ledger.perform(new_hold(4, request, "1")).await.unwrap();
        ledger
            .perform(Arc::new(finish(request, 1_000)))
            .await
            .unwrap();
    }
    ledger
        .perform(change(1, 24, Change::Unblock))
        .await
        .unwrap();
    let resumed = of_customer(25, CustomerAct::Resume);
    ledger.perform(resumed).await.unwrap();
    assert_eq!(ended(&all).await, [key(2)]);
    sound(&*ledger).await;
}
