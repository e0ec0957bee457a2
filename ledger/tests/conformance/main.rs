//! One suite for every store: each sentence of the `Ledger` contract as a test.
//!
//! Every test runs on the reference store, on SQLite and on PostgreSQL, and ends with `verify`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
mod common;
mod lists;

use std::sync::Arc;

use common::*;
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::*;
use lists::{
    an_act_is_found_by_its_operation, keys_are_listed_in_pages, keys_are_paged_by_what_moves,
    margins_are_by_key_target_and_day, several_keys_are_one_read,
};

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::common::run(super::$name(super::Arc::new(super::MemoryLedger::new()))); })+
        }
        mod sqlite {
            $(#[test] fn $name() { let (_dir, ledger) = super::common::sqlite(); super::common::run(super::$name(ledger)); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::common::on_postgres(async |ledger| super::$name(ledger).await); })+
        }
    };
}

stories!(
    keys_are_created_once_with_their_first_money,
    keys_are_listed_in_pages,
    keys_are_paged_by_what_moves,
    several_keys_are_one_read,
    an_act_is_found_by_its_operation,
    key_changes_are_applied_once_and_audited,
    revoked_is_for_ever,
    credits_post_once_per_reference,
    references_are_one_in_every_spelling,
    credits_obey_the_limits,
    adjustments_take_only_what_is_available,
    refunds_never_exceed_their_charge,
    holds_reserve_and_settle_once,
    holds_are_refused_by_key_state,
    an_operation_id_is_spent_once,
    extensions_grow_and_checkpoint,
    a_charge_beyond_the_balance_is_the_operators_loss,
    absurd_bills_are_refused_and_abandoned_ones_disputed,
    a_dropped_hold_is_settled_with_its_note,
    recovery_settles_checkpoints_and_releases_the_rest,
    history_is_filtered_and_paged,
    answers_are_found_by_their_own_id,
    usage_is_rolled_up_by_hour_and_slug,
    margins_are_by_key_target_and_day,
    sessions_end_with_the_key,
    links_open_once,
    slugs_keep_their_first_date,
);

fn refused<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Refusal {
    match result {
        Err(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

async fn account(ledger: &dyn Ledger, number: u64) -> Account {
    ledger.find_key(key(number)).await.unwrap().unwrap().account
}

async fn keys_are_created_once_with_their_first_money(ledger: SharedLedger) {
    let made = ledger
        .create_key(new_key(1, 10, Some("5.00")))
        .await
        .unwrap();
    assert_eq!(
        (
            made.account.credit,
            made.status(at(100)),
            made.last_entry_at
        ),
        (usd("5"), Status::Active, Some(at(100)))
    );
    assert_eq!(
        ledger
            .create_key(new_key(1, 10, Some("5.00")))
            .await
            .unwrap(),
        made
    );
    assert_eq!(ledger.find_key(key(1)).await.unwrap(), Some(made.clone()));
    assert_eq!(ledger.find_key(key(2)).await.unwrap(), None);
    assert!(matches!(
        refused(ledger.create_key(new_key(1, 11, None)).await),
        Refusal::NotApplicable(_)
    ));
    let mut other = new_key(2, 12, Some("5.00"));
    other.first_credit = Some((usd("5"), "first-1".to_owned()));
    assert_eq!(
        refused(ledger.create_key(other.clone()).await),
        Refusal::ReferenceUsed {
            reference: "first-1".into(),
            key: key(1)
        }
    );
    other.first_credit = Some((usd("100000.01"), "big".to_owned()));
    assert!(matches!(
        refused(ledger.create_key(other).await),
        Refusal::Limit(_)
    ));
    assert_eq!(
        ledger.find_key(key(2)).await.unwrap(),
        None,
        "a refused creation leaves nothing"
    );
    let empty = ledger.create_key(new_key(3, 13, None)).await.unwrap();
    assert_eq!(
        (empty.account, empty.last_entry_at),
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

async fn key_changes_are_applied_once_and_audited(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    let settings = KeySettings {
        label: "New".into(),
        models: Some(vec!["small".into()]),
        rate: Some(3),
        ..KeySettings::default()
    };
    let set = change(1, 11, Change::Set(settings.clone()));
    let changed = ledger.change_key(set.clone()).await.unwrap();
    assert_eq!(changed.settings, settings);
    assert_eq!(ledger.change_key(set).await.unwrap(), changed);
    let rotate = change(
        1,
        12,
        Change::Rotate {
            secret: secret(2),
            old_until: Some(at(900)),
        },
    );
    let rotated = ledger.change_key(rotate.clone()).await.unwrap();
    assert!(
        rotated.opens_with(secret(2), at(1))
            && rotated.opens_with(secret(1), at(899))
            && !rotated.opens_with(secret(1), at(900))
    );
    ledger.change_key(rotate).await.unwrap();
    let other = change(
        1,
        12,
        Change::Rotate {
            secret: secret(3),
            old_until: Some(at(900)),
        },
    );
    assert_eq!(
        refused(ledger.change_key(other).await),
        Refusal::OperationUsed(op(12))
    );
    let at_once = ledger
        .change_key(change(
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
            .change_key(change(1, 14, Change::Block))
            .await
            .unwrap()
            .stored_status,
        Status::Blocked
    );
    assert_eq!(
        ledger
            .change_key(change(1, 15, Change::Block))
            .await
            .unwrap()
            .stored_status,
        Status::Blocked
    );
    assert_eq!(
        ledger
            .change_key(change(1, 16, Change::Unblock))
            .await
            .unwrap()
            .stored_status,
        Status::Active
    );
    assert_eq!(
        refused(ledger.change_key(change(9, 17, Change::Block)).await),
        Refusal::NoSuchKey(key(9))
    );
    let long = KeySettings {
        label: "x".repeat(201),
        ..KeySettings::default()
    };
    assert!(matches!(
        refused(ledger.change_key(change(1, 18, Change::Set(long))).await),
        Refusal::Limit(_)
    ));
    ledger.credit(top_up(1, 19, "1", "r-19")).await.unwrap();
    let audit = ledger.audit(Some(key(1)), None, 100).await.unwrap();
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
            .audit(Some(key(1)), Some(audit[1].position), 2)
            .await
            .unwrap(),
        audit[2..4]
    );
    assert_eq!(
        ledger.audit(Some(key(9)), None, 2).await.unwrap(),
        Vec::new()
    );
    sound(&*ledger).await;
}

async fn revoked_is_for_ever(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    ledger.finish_hold(finish(20, 1_000)).await.unwrap();
    ledger
        .change_key(change(1, 11, Change::Revoke))
        .await
        .unwrap();
    ledger
        .change_key(change(1, 12, Change::Revoke))
        .await
        .unwrap();
    for (operation, what) in [
        (13, Change::Unblock),
        (14, Change::Block),
        (15, Change::Set(KeySettings::default())),
    ] {
        assert!(matches!(
            refused(ledger.change_key(change(1, operation, what)).await),
            Refusal::NotApplicable(_)
        ));
    }
    assert!(matches!(
        refused(ledger.credit(top_up(1, 16, "1", "late")).await),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 21, "1")).await),
        Refusal::NotActive(Status::Revoked)
    );
    let refund = CreditKind::Refund {
        request: op(20),
        reason: "closing".into(),
    };
    ledger
        .credit(credit(1, 17, refund, "0.001", "refund"))
        .await
        .unwrap();
    let back = CreditKind::Adjust {
        reason: "paid back".into(),
    };
    ledger
        .credit(credit(1, 18, back, "-5", "back"))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    sound(&*ledger).await;
}

async fn credits_post_once_per_reference(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.create_key(new_key(2, 11, None)).await.unwrap();
    let posted = ledger
        .credit(top_up(1, 12, "20.00", "inv-1"))
        .await
        .unwrap();
    assert!(!posted.repeated);
    assert_eq!(
        (
            posted.entry.seq,
            posted.entry.balance_after,
            posted.key.account.credit
        ),
        (2, usd("25"), usd("25"))
    );
    for operation in [12, 13] {
        let again = ledger
            .credit(top_up(1, operation, "20.00", "inv-1"))
            .await
            .unwrap();
        assert!(again.repeated);
        assert_eq!(
            (again.entry, again.key),
            (posted.entry.clone(), posted.key.clone())
        );
    }
    let conflict = Refusal::ReferenceUsed {
        reference: "inv-1".into(),
        key: key(1),
    };
    assert_eq!(
        refused(ledger.credit(top_up(1, 14, "21.00", "inv-1")).await),
        conflict
    );
    assert_eq!(
        refused(ledger.credit(top_up(2, 14, "20.00", "inv-1")).await),
        conflict
    );
    assert_eq!(
        refused(ledger.credit(top_up(1, 12, "20.00", "inv-2")).await),
        Refusal::OperationUsed(op(12))
    );
    assert_eq!(
        refused(ledger.credit(top_up(9, 15, "20.00", "inv-3")).await),
        Refusal::NoSuchKey(key(9))
    );
    let adjust = CreditKind::Adjust {
        reason: "gift".into(),
    };
    assert_eq!(
        refused(ledger.credit(credit(1, 16, adjust, "20.00", "inv-1")).await),
        conflict
    );
    assert!(matches!(
        refused(ledger.credit(top_up(1, 17, "1", " ")).await),
        Refusal::NotApplicable(_)
    ));
    assert!(
        ledger
            .credit(top_up(1, 18, "5", "first-1"))
            .await
            .unwrap()
            .repeated,
        "the first credit has a reference too"
    );
    assert_eq!(account(&*ledger, 1).await.credit, usd("25"));
    sound(&*ledger).await;
}

async fn references_are_one_in_every_spelling(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, None)).await.unwrap();
    let posted = ledger
        .credit(top_up(1, 11, "5", " Caf\u{e9}-7 "))
        .await
        .unwrap();
    assert_eq!(
        posted.entry.reference.as_deref(),
        Some("Caf\u{e9}-7"),
        "stored trimmed and composed"
    );
    let spellings = [
        "Caf\u{e9}-7",
        "cafe\u{301}-7",
        "CAF\u{c9}-7",
        "\tCAFE\u{301}-7\n",
    ];
    for (operation, spelling) in (20..).zip(spellings) {
        let again = ledger
            .credit(top_up(1, operation, "5", spelling))
            .await
            .unwrap();
        assert!(
            again.repeated && again.entry == posted.entry,
            "{spelling:?}"
        );
        let conflict = Refusal::ReferenceUsed {
            reference: "Caf\u{e9}-7".into(),
            key: key(1),
        };
        assert_eq!(
            refused(ledger.credit(top_up(1, operation, "6", spelling)).await),
            conflict
        );
        let mut other = new_key(2, 40, None);
        other.first_credit = Some((usd("5"), spelling.to_owned()));
        assert_eq!(refused(ledger.create_key(other).await), conflict);
    }
    for (operation, unseen) in (50..).zip(["inv\n7", "inv\u{0}7", "inv\u{200b}7", "\u{202e}inv"]) {
        assert!(matches!(
            refused(ledger.credit(top_up(1, operation, "5", unseen)).await),
            Refusal::NotApplicable(_)
        ));
    }
    assert_eq!(account(&*ledger, 1).await.credit, usd("5"));
    sound(&*ledger).await;
}

async fn credits_obey_the_limits(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, None)).await.unwrap();
    for (operation, amount) in [(11, "0"), (12, "-1"), (13, "100000.000001")] {
        assert!(matches!(
            refused(ledger.credit(top_up(1, operation, amount, amount)).await),
            Refusal::Limit(_)
        ));
    }
    for number in 0..10 {
        ledger
            .credit(top_up(1, 20 + number, "100000", &format!("big-{number}")))
            .await
            .unwrap();
    }
    assert!(matches!(
        refused(ledger.credit(top_up(1, 40, "0.000001", "more")).await),
        Refusal::Limit(_)
    ));
    sound(&*ledger).await;
}

async fn adjustments_take_only_what_is_available(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "2")).await.unwrap();
    let adjust = |operation, amount: &str| {
        credit(
            1,
            operation,
            CreditKind::Adjust {
                reason: "typing error".into(),
            },
            amount,
            &format!("adjust-{operation}"),
        )
    };
    let refusal = Refusal::Insufficient {
        needed: usd("3.01"),
        available: usd("3"),
        held: usd("2"),
    };
    assert_eq!(refused(ledger.credit(adjust(11, "-3.01")).await), refusal);
    assert!(matches!(
        refused(ledger.credit(adjust(12, "0")).await),
        Refusal::Limit(_)
    ));
    let posted = ledger.credit(adjust(13, "-3")).await.unwrap();
    assert_eq!(
        (posted.entry.amount, posted.entry.reason.as_deref()),
        (usd("-3"), Some("typing error"))
    );
    assert_eq!(
        ledger
            .credit(adjust(14, "1.5"))
            .await
            .unwrap()
            .key
            .account
            .available(),
        usd("1.50")
    );
    let unexplained = credit(
        1,
        15,
        CreditKind::Adjust {
            reason: String::new(),
        },
        "1",
        "adjust-15",
    );
    assert!(matches!(
        refused(ledger.credit(unexplained).await),
        Refusal::NotApplicable(_)
    ));
    sound(&*ledger).await;
}

async fn refunds_never_exceed_their_charge(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.create_key(new_key(2, 11, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "2")).await.unwrap();
    let refund = |number, operation, request, amount: &str| {
        let kind = CreditKind::Refund {
            request: op(request),
            reason: "bad answer".into(),
        };
        credit(
            number,
            operation,
            kind,
            amount,
            &format!("refund-{operation}"),
        )
    };
    let nothing = |request| Refusal::NotRefundable {
        request: op(request),
        refundable: Amount::ZERO,
    };
    assert_eq!(
        refused(ledger.credit(refund(1, 12, 20, "1")).await),
        nothing(20),
        "not ended yet"
    );
    ledger.finish_hold(finish(20, 2_000_000)).await.unwrap();
    assert_eq!(
        refused(ledger.credit(refund(2, 13, 20, "1")).await),
        nothing(20),
        "another key's request"
    );
    assert_eq!(
        refused(ledger.credit(refund(1, 14, 10, "1")).await),
        nothing(10),
        "not a charge"
    );
    let posted = ledger.credit(refund(1, 15, 20, "1.5")).await.unwrap();
    assert_eq!(
        (posted.entry.request(), posted.key.account.spent),
        (Some(op(20)), usd("0.5"))
    );
    assert!(
        ledger
            .credit(refund(1, 15, 20, "1.5"))
            .await
            .unwrap()
            .repeated
    );
    let left = Refusal::NotRefundable {
        request: op(20),
        refundable: usd("0.5"),
    };
    assert_eq!(
        refused(ledger.credit(refund(1, 16, 20, "0.500001")).await),
        left
    );
    ledger.credit(refund(1, 17, 20, "0.5")).await.unwrap();
    assert_eq!(
        refused(ledger.credit(refund(1, 18, 20, "0.000001")).await),
        nothing(20)
    );
    assert_eq!(
        account(&*ledger, 1).await,
        Account {
            credit: usd("5"),
            ..Account::default()
        }
    );
    assert_eq!(ledger.totals().await.unwrap().spent, 0);
    sound(&*ledger).await;
}

async fn holds_reserve_and_settle_once(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "2")).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "2")).await.unwrap();
    assert_eq!(account(&*ledger, 1).await.held, usd("2"));
    let refusal = Refusal::Insufficient {
        needed: usd("3.000001"),
        available: usd("3"),
        held: usd("2"),
    };
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 21, "3.000001")).await),
        refusal
    );
    let open = ledger.open_holds(None, 10).await.unwrap();
    assert_eq!(
        (open.len(), open[0].request, open[0].amount, open[0].used),
        (1, op(20), usd("2"), Amount::ZERO)
    );
    assert_eq!(
        ledger.open_holds(Some(key(2)), 10).await.unwrap(),
        Vec::new()
    );
    let finished = ledger.finish_hold(finish(20, 1_500_000)).await.unwrap();
    assert_eq!(
        finished,
        Finished {
            charge: usd("1.5"),
            loss: Amount::ZERO,
            available: usd("3.5")
        }
    );
    assert_eq!(
        ledger.finish_hold(finish(20, 0)).await.unwrap(),
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
        Finished {
            charge: Amount::ZERO,
            loss: Amount::ZERO,
            available: usd("3.5")
        }
    );
    let released = ledger.entry(op(22)).await.unwrap().unwrap();
    assert_eq!(
        (released.amount, released.bill.unwrap().evidence),
        (Amount::ZERO, None),
        "nobody counted anything"
    );
    assert_eq!(
        refused(ledger.finish_hold(finish(99, 1)).await),
        Refusal::NoSuchHold(op(99))
    );
    assert_eq!(
        refused(ledger.finish_hold(finish(10, 1)).await),
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

async fn holds_are_refused_by_key_state(ledger: SharedLedger) {
    let mut new = new_key(1, 10, Some("5"));
    new.settings.expires_at = Some(at(401));
    ledger.create_key(new).await.unwrap();
    ledger.create_key(new_key(2, 11, None)).await.unwrap();
    assert_eq!(
        refused(ledger.open_hold(new_hold(3, 20, "1")).await),
        Refusal::NoSuchKey(key(3))
    );
    assert!(
        matches!(
            refused(ledger.open_hold(new_hold(2, 20, "0")).await),
            Refusal::Insufficient { .. }
        ),
        "nothing left: not even free"
    );
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    let late = NewHold {
        at: at(401),
        ..new_hold(1, 21, "1")
    };
    assert_eq!(
        refused(ledger.open_hold(late).await),
        Refusal::NotActive(Status::Expired)
    );
    assert_eq!(
        refused(ledger.extend_hold(extension(20, "2", 1)).await),
        Refusal::NotActive(Status::Expired)
    );
    ledger
        .change_key(change(1, 12, Change::Block))
        .await
        .unwrap();
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 22, "1")).await),
        Refusal::NotActive(Status::Blocked)
    );
    assert!(matches!(
        refused(ledger.open_hold(new_hold(1, 23, "-1")).await),
        Refusal::NotActive(_)
    ));
    ledger.finish_hold(finish(20, 1)).await.unwrap();
    sound(&*ledger).await;
}

async fn an_operation_id_is_spent_once(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    let used = |operation| Refusal::OperationUsed(op(operation));
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 20, "2")).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 10, "1")).await),
        used(10)
    );
    assert_eq!(
        refused(ledger.credit(top_up(1, 20, "1", "x")).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.change_key(change(1, 20, Change::Block)).await),
        used(20)
    );
    assert_eq!(
        refused(ledger.change_key(change(1, 10, Change::Block)).await),
        used(10)
    );
    assert_eq!(
        refused(ledger.create_key(new_key(2, 20, None)).await),
        used(20)
    );
    ledger.finish_hold(finish(20, 1)).await.unwrap();
    assert_eq!(
        refused(ledger.open_hold(new_hold(1, 20, "1")).await),
        used(20),
        "an ended hold is not opened again"
    );
    assert_eq!(
        refused(ledger.extend_hold(extension(20, "1", 1)).await),
        Refusal::NoSuchHold(op(20))
    );
    assert_eq!(
        refused(
            ledger
                .create_link(key(1), secret(9), at(900), act(20, 1))
                .await
        ),
        used(20)
    );
    sound(&*ledger).await;
}

async fn extensions_grow_and_checkpoint(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    let mut hold = Hold::open(Arc::clone(&ledger), new_hold(1, 20, "1"))
        .await
        .unwrap();
    hold.extend(usd("3"), bill(900_000), at(450)).await.unwrap();
    hold.extend(usd("2"), bill(950_000), at(451)).await.unwrap();
    assert_eq!(
        (hold.amount(), account(&*ledger, 1).await.held),
        (usd("3"), usd("3"))
    );
    let open = ledger.open_holds(Some(key(1)), 10).await.unwrap();
    assert_eq!((open[0].amount, open[0].used), (usd("3"), usd("0.95")));
    let refusal = Refusal::Insufficient {
        needed: usd("2.01"),
        available: usd("2"),
        held: usd("3"),
    };
    assert_eq!(
        refused(hold.extend(usd("5.01"), bill(1), at(452)).await),
        refusal
    );
    assert_eq!(
        ledger.open_holds(None, 10).await.unwrap(),
        open,
        "a refused extension changes nothing"
    );
    ledger
        .extend_hold(extension(20, "5", 960_000))
        .await
        .unwrap();
    ledger
        .extend_hold(extension(20, "5", 960_000))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.available(), Amount::ZERO);
    sound(&*ledger).await;
    hold.settle(bill(5_000_000), at(500)).await.unwrap();
    assert_eq!(
        refused(ledger.extend_hold(extension(21, "1", 1)).await),
        Refusal::NoSuchHold(op(21))
    );
    sound(&*ledger).await;
}

async fn a_charge_beyond_the_balance_is_the_operators_loss(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    ledger.open_hold(new_hold(1, 21, "1")).await.unwrap();
    let finished = ledger.finish_hold(finish(20, 6_000_000)).await.unwrap();
    assert_eq!(
        finished,
        Finished {
            charge: usd("4"),
            loss: usd("2"),
            available: Amount::ZERO
        }
    );
    assert_eq!(ledger.finish_hold(finish(20, 1)).await.unwrap(), finished);
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
    ledger.finish_hold(finish(21, 1_000_000)).await.unwrap();
    sound(&*ledger).await;
}

async fn absurd_bills_are_refused_and_abandoned_ones_disputed(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    ledger
        .extend_hold(extension(20, "1", 250_000))
        .await
        .unwrap();
    let mut absurd = finish(20, 1);
    absurd.bill.lines[0].count = u64::MAX;
    assert!(matches!(
        refused(ledger.finish_hold(absurd.clone()).await),
        Refusal::Limit(_)
    ));
    let mut counts = finish(20, 1);
    counts.bill.usage.input = u64::MAX;
    assert!(matches!(
        refused(ledger.finish_hold(counts).await),
        Refusal::Limit(_)
    ));
    let checkpoint = Extension {
        checkpoint: absurd.bill.clone(),
        ..extension(20, "1", 1)
    };
    assert!(matches!(
        refused(ledger.extend_hold(checkpoint).await),
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
async fn eventually(ledger: &SharedLedger, operation: OperationId) -> Entry {
    for _ in 0..30_000 {
        if let Some(entry) = ledger.entry(operation).await.unwrap() {
            return entry;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("the hold was never resolved");
}

async fn a_dropped_hold_is_settled_with_its_note(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
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

async fn recovery_settles_checkpoints_and_releases_the_rest(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    assert_eq!(
        ledger.recover(at(50)).await.unwrap(),
        Recovered {
            epoch: 1,
            settled: 0,
            released: 0
        }
    );
    ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
    ledger
        .extend_hold(extension(20, "2", 1_250_000))
        .await
        .unwrap();
    ledger.open_hold(new_hold(1, 21, "1")).await.unwrap();
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
    let late = ledger.finish_hold(finish(20, 2_000_000)).await.unwrap();
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

async fn history_is_filtered_and_paged(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.create_key(new_key(2, 11, Some("5"))).await.unwrap();
    for number in 0..20 {
        let owner = 1 + number % 2;
        ledger
            .open_hold(new_hold(owner, 100 + number, "0.1"))
            .await
            .unwrap();
        let end = Finish {
            at: at(1_000 + i64::try_from(number).unwrap()),
            ..finish(100 + number, number)
        };
        ledger.finish_hold(end).await.unwrap();
    }
    let find = async |query: EntryQuery| ledger.entries(query).await.unwrap();
    let all = find(EntryQuery::default()).await;
    assert_eq!(all.len(), 22);
    assert!(
        all.is_sorted_by(|one, next| one.position < next.position),
        "with gaps, where several gateways write"
    );
    let mine = find(EntryQuery {
        key: Some(key(1)),
        ..EntryQuery::default()
    })
    .await;
    assert_eq!(
        mine,
        all.iter()
            .filter(|entry| entry.key == key(1))
            .cloned()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        mine.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        (1..=11).collect::<Vec<_>>()
    );
    for owner in [None, Some(key(1))] {
        let rows = if owner.is_some() { &mine } else { &all };
        let newest = find(EntryQuery {
            key: owner,
            limit: Some(3),
            ..EntryQuery::default()
        })
        .await;
        assert_eq!(newest, rows[rows.len() - 3..]);
        for before in [newest[0].position, newest[0].position + 1] {
            let older = find(EntryQuery {
                key: owner,
                before: Some(before),
                limit: Some(2),
                ..EntryQuery::default()
            })
            .await;
            let behind: Vec<Entry> = rows
                .iter()
                .filter(|entry| entry.position < before)
                .cloned()
                .collect();
            assert_eq!(older, behind[behind.len() - 2..]);
        }
        let between = EntryQuery {
            key: owner,
            since: Some(at(1_005)),
            until: Some(at(1_010)),
            ..EntryQuery::default()
        };
        let inside = |entry: &&Entry| entry.at >= at(1_005) && entry.at < at(1_010);
        assert_eq!(
            find(between).await,
            rows.iter().filter(inside).cloned().collect::<Vec<_>>()
        );
    }
    assert_eq!(
        find(EntryQuery {
            key: Some(key(9)),
            ..EntryQuery::default()
        })
        .await,
        Vec::new()
    );
    sound(&*ledger).await;
}

async fn answers_are_found_by_their_own_id(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.create_key(new_key(2, 11, Some("5"))).await.unwrap();
    for (operation, count) in [(20, 7), (21, 8), (22, 7)] {
        ledger
            .open_hold(new_hold(1, operation, "0.1"))
            .await
            .unwrap();
        ledger.finish_hold(finish(operation, count)).await.unwrap();
    }
    let newest = ledger
        .entry_by_answer(key(1), "answer-7")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(newest.operation, op(22));
    assert_eq!(
        ledger.entry_by_answer(key(1), "answer-9").await.unwrap(),
        None
    );
    assert_eq!(
        ledger.entry_by_answer(key(2), "answer-7").await.unwrap(),
        None,
        "another key's answer"
    );
}

async fn usage_is_rolled_up_by_hour_and_slug(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.create_key(new_key(2, 11, Some("5"))).await.unwrap();
    for (owner, operation, slug, count, seconds) in [
        (1, 20, "b", 10, 3_600),
        (1, 21, "b", 5, 7_199),
        (1, 22, "a", 1, 7_199),
        (1, 23, "a", 2, 7_200),
        (2, 24, "a", 3, 7_200),
    ] {
        ledger
            .open_hold(new_hold(owner, operation, "0.1"))
            .await
            .unwrap();
        let ended = Bill {
            slug: slug.to_owned(),
            ..bill(count)
        };
        ledger
            .finish_hold(Finish {
                request: op(operation),
                bill: ended,
                at: at(seconds),
            })
            .await
            .unwrap();
    }
    let rows = ledger.usage(key(1), at(3_700), at(99_999)).await.unwrap();
    let short: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.hour,
                &*row.slug,
                row.requests,
                row.usage.output,
                row.charge,
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (at(3_600), "a", 1, 1, usd("0.000001")),
            (at(3_600), "b", 2, 15, usd("0.000015")),
            (at(7_200), "a", 1, 2, usd("0.000002")),
        ]
    );
    assert_eq!(
        ledger.usage(key(1), at(0), at(7_200)).await.unwrap(),
        rows[..2]
    );
    assert_eq!(
        ledger.usage(key(1), at(7_200), at(7_201)).await.unwrap(),
        rows[2..]
    );
    assert_eq!(
        ledger.usage(key(9), at(0), at(99_999)).await.unwrap(),
        Vec::new()
    );
    let slugs = ledger.slug_use(at(7_300)).await.unwrap();
    assert_eq!(
        slugs,
        [SlugUse {
            slug: "a".into(),
            keys: 2,
            requests: 2
        }]
    );
    let slugs = ledger.slug_use(at(0)).await.unwrap();
    assert_eq!(
        slugs,
        [
            SlugUse {
                slug: "a".into(),
                keys: 2,
                requests: 3
            },
            SlugUse {
                slug: "b".into(),
                keys: 1,
                requests: 2
            }
        ]
    );
    sound(&*ledger).await;
}

async fn sessions_end_with_the_key(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, None)).await.unwrap();
    let session = |token: u8| Session {
        token: secret(token),
        key: key(1),
        at: at(500),
        expires: at(600),
    };
    ledger.open_session(session(50)).await.unwrap();
    ledger.open_session(session(50)).await.unwrap();
    assert!(matches!(
        refused(
            ledger
                .open_session(Session {
                    at: at(501),
                    ..session(50)
                })
                .await
        ),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        ledger.find_session(secret(50), at(599)).await.unwrap(),
        Some(key(1))
    );
    assert_eq!(
        ledger.find_session(secret(50), at(600)).await.unwrap(),
        None
    );
    assert_eq!(
        ledger.find_session(secret(51), at(500)).await.unwrap(),
        None
    );
    ledger.close_session(secret(50)).await.unwrap();
    ledger.close_session(secret(50)).await.unwrap();
    assert_eq!(
        ledger.find_session(secret(50), at(500)).await.unwrap(),
        None
    );
    for (operation, what) in [
        (
            11,
            Change::Rotate {
                secret: secret(2),
                old_until: Some(at(999)),
            },
        ),
        (12, Change::Block),
        (13, Change::Revoke),
    ] {
        let token = u8::try_from(operation).unwrap();
        ledger.open_session(session(token)).await.unwrap();
        ledger
            .create_link(key(1), secret(token), at(900), act(operation + 100, 400))
            .await
            .unwrap();
        ledger.change_key(change(1, operation, what)).await.unwrap();
        assert_eq!(
            ledger.find_session(secret(token), at(500)).await.unwrap(),
            None
        );
        assert_eq!(
            ledger.consume_link(secret(token), at(500)).await.unwrap(),
            None
        );
        if operation == 12 {
            assert_eq!(
                refused(ledger.open_session(session(60)).await),
                Refusal::NotActive(Status::Blocked)
            );
            ledger
                .change_key(change(1, 20, Change::Unblock))
                .await
                .unwrap();
            assert_eq!(
                ledger.find_session(secret(token), at(500)).await.unwrap(),
                None,
                "unblocking does not bring it back"
            );
        }
    }
    assert_eq!(
        refused(ledger.open_session(session(61)).await),
        Refusal::NotActive(Status::Revoked)
    );
    sound(&*ledger).await;
}

async fn links_open_once(ledger: SharedLedger) {
    ledger.create_key(new_key(1, 10, None)).await.unwrap();
    ledger
        .create_link(key(1), secret(70), at(900), act(11, 400))
        .await
        .unwrap();
    ledger
        .create_link(key(1), secret(70), at(900), act(11, 400))
        .await
        .unwrap();
    assert!(matches!(
        refused(
            ledger
                .create_link(key(1), secret(70), at(900), act(12, 400))
                .await
        ),
        Refusal::NotApplicable(_)
    ));
    assert_eq!(
        refused(
            ledger
                .create_link(key(9), secret(71), at(900), act(13, 400))
                .await
        ),
        Refusal::NoSuchKey(key(9))
    );
    assert_eq!(
        ledger.consume_link(secret(70), at(899)).await.unwrap(),
        Some(key(1))
    );
    assert_eq!(
        ledger.consume_link(secret(70), at(899)).await.unwrap(),
        None
    );
    ledger
        .create_link(key(1), secret(72), at(900), act(14, 400))
        .await
        .unwrap();
    assert_eq!(
        ledger.consume_link(secret(72), at(900)).await.unwrap(),
        None,
        "expired"
    );
    let audit = ledger.audit(Some(key(1)), None, 9).await.unwrap();
    assert_eq!(
        audit.iter().map(|record| &*record.act).collect::<Vec<_>>(),
        ["link", "link", "create"]
    );
    sound(&*ledger).await;
}

async fn slugs_keep_their_first_date(ledger: SharedLedger) {
    ledger
        .publish(vec!["b".into(), "a".into()], at(1))
        .await
        .unwrap();
    ledger.create_key(new_key(1, 10, Some("1"))).await.unwrap();
    ledger.open_hold(new_hold(1, 20, "0.1")).await.unwrap();
    ledger.finish_hold(finish(20, 1)).await.unwrap();
    let published = |slug: &str, seconds| PublishedSlug {
        slug: slug.into(),
        since: at(seconds),
    };
    assert_eq!(
        ledger.published().await.unwrap(),
        [published("a", 1), published("b", 1)],
        "use is not publication"
    );
    ledger
        .publish(vec!["b".into(), "small".into()], at(2))
        .await
        .unwrap();
    assert_eq!(
        ledger.published().await.unwrap(),
        [published("a", 1), published("b", 1), published("small", 2)]
    );
    sound(&*ledger).await;
}
