//! Grants: credit that begins, ends, is taken back, and is used in one order.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

pub(super) const SECOND: i64 = 1_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

pub(super) fn from_now(millis: i64) -> Timestamp {
    Timestamp::from_millis(clock::now().millis() + millis)
}

pub(super) fn id(number: u64) -> GrantId {
    GrantId::from_random(number)
}

/// A promotional grant of so much without an end for the first key's customer.
pub(super) fn grant(number: u64, operation: u64, amount: &str) -> NewGrant {
    NewGrant {
        id: id(number),
        customer: CustomerId::made_for(key(1)),
        kind: GrantKind::Promotional,
        amount: usd(amount),
        priority: Grant::PRIORITY,
        effective_at: None,
        expires_at: None,
        models: None,
        reference: format!("grant-{number}"),
        act: Act {
            at: clock::now(),
            ..act(operation, 100)
        },
    }
}

pub(super) fn until(millis: i64, new: NewGrant) -> NewGrant {
    NewGrant {
        expires_at: Some(from_now(millis)),
        ..new
    }
}

pub(super) fn paid(new: NewGrant) -> NewGrant {
    NewGrant {
        kind: GrantKind::Paid,
        ..until(9 * DAY, new)
    }
}

pub(super) fn void(number: u64, operation: u64) -> VoidGrant {
    VoidGrant {
        grant: id(number),
        customer: CustomerId::made_for(key(1)),
        act: act(operation, 200),
    }
}

pub(super) async fn give(ledger: &dyn Ledger, new: NewGrant) -> GrantRecord {
    ledger.perform(new).await.unwrap().grant
}

async fn known(ledger: &dyn Ledger, number: u64) -> Grant {
    let query = GrantQuery {
        id: Some(id(number)),
        limit: 2,
        ..GrantQuery::default()
    };
    let found = ledger.grants(query).await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].grant.clone()
}

/// What is left of a grant, what of it is held, and what became of it.
pub(super) async fn left(ledger: &dyn Ledger, number: u64) -> (Amount, Amount, GrantStatus) {
    let grant = known(ledger, number).await;
    (grant.remaining, grant.held, grant.status)
}

/// Where the money of an operation's entry came from or went to: grants by their numbers, 0 for the pool.
pub(super) async fn parts(ledger: &dyn Ledger, operation: u64) -> Vec<(u64, Amount)> {
    let entry = ledger.entry(op(operation)).await.unwrap().unwrap();
    let number = |grant: Option<GrantId>| match grant {
        None => 0,
        Some(of) => (1..99).find(|number| id(*number) == of).unwrap_or(99),
    };
    let parts = entry.parts.iter();
    parts
        .map(|part| (number(part.grant), part.amount))
        .collect()
}

pub(super) async fn end(ledger: &dyn Ledger, operation: u64, cost: u64) -> EndedHold {
    let finish = finish(operation, cost);
    ledger.perform(Arc::new(finish)).await.unwrap()
}

pub(super) async fn available(ledger: &dyn Ledger, slug: &str) -> Amount {
    let found = ledger.find_key(key(1)).await.unwrap().unwrap();
    found.customer.available(slug)
}

pub(crate) async fn money_is_used_in_one_order(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("3"))).await.unwrap();
    let of_model = NewGrant {
        models: Some(vec!["other".to_owned()]),
        ..until(DAY, grant(1, 11, "5"))
    };
    let last = NewGrant {
        priority: 60,
        ..grant(2, 12, "1")
    };
    let first = NewGrant {
        priority: 0,
        ..grant(3, 13, "1")
    };
    for new in [
        of_model,
        last,
        first,
        until(9 * DAY, grant(4, 14, "2")),
        paid(grant(5, 15, "2")),
    ] {
        give(&*ledger, new).await;
    }
    let given = account(&*ledger, 1).await;
    assert_eq!(given.credit, usd("14"), "grants are part of the account");
    assert_eq!(available(&*ledger, "small").await, usd("9"));
    assert_eq!(available(&*ledger, "other").await, usd("14"));
    // A hold takes from the end: the last, the pool, and a dollar of what was paid and ends.
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    assert_eq!(left(&*ledger, 2).await.1, usd("1"));
    assert_eq!(left(&*ledger, 5).await.1, usd("1"));
    let refusal = refused(ledger.perform(new_hold(1, 101, "4.01")).await);
    let expected = Refusal::Insufficient {
        needed: usd("4.01"),
        available: usd("4"),
        held: usd("5"),
    };
    assert_eq!(refusal, expected);
    // The charge goes from the beginning, with what is free.
    let ended = end(&*ledger, 100, 4_500_000).await;
    assert_eq!((ended.charge, ended.remaining), (usd("4.5"), usd("4.5")));
    let expected = [(3, "-1"), (4, "-2"), (5, "-1.5")];
    assert_eq!(
        parts(&*ledger, 100).await,
        expected.map(|(of, amount)| (of, usd(amount)))
    );
    assert_eq!(
        left(&*ledger, 3).await,
        (usd("0"), usd("0"), GrantStatus::Exhausted)
    );
    assert_eq!(
        left(&*ledger, 5).await,
        (usd("0.5"), usd("0"), GrantStatus::Active)
    );
    ledger.perform(new_hold(1, 102, "4.5")).await.unwrap();
    end(&*ledger, 102, 9_000_000).await;
    let expected = [(5, "-0.5"), (0, "-3"), (2, "-1")];
    assert_eq!(
        parts(&*ledger, 102).await,
        expected.map(|(of, amount)| (of, usd(amount)))
    );
    assert_eq!(
        left(&*ledger, 1).await,
        (usd("5"), usd("0"), GrantStatus::Active)
    );
    assert_eq!(account(&*ledger, 1).await.balance(), usd("5"));
    sound(&*ledger).await;
}

pub(crate) async fn the_33rd_grant_is_refused(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("3"))).await.unwrap();
    ledger.perform(new_lot(1, 20, 2)).await.unwrap();
    // Those that begin later count, too.
    for number in 1..=32 {
        let later = from_now(DAY);
        let new = NewGrant {
            effective_at: (number > 20).then_some(later),
            ..grant(number, 100 + number, "1")
        };
        give(&*ledger, new).await;
    }
    let gift = |operation, is_paid| {
        let reason = "gift".to_owned();
        let kind = CreditKind::Adjust { reason, is_paid };
        credit(1, operation, kind, "1", &format!("gift-{operation}"))
    };
    let refusals = [
        refused(ledger.perform(grant(33, 200, "1")).await),
        refused(ledger.perform(gift(201, false)).await),
        refused(ledger.perform(redemption(200, 1, 202)).await),
    ];
    for refusal in refusals {
        assert!(
            matches!(&refusal, Refusal::NotApplicable(why) if why.contains("32")),
            "{refusal}"
        );
    }
    ledger.perform(gift(203, true)).await.unwrap();
    // What was refused can be told again; one that is over makes room.
    ledger.perform(void(32, 204)).await.unwrap();
    ledger.perform(redemption(200, 1, 205)).await.unwrap();
    refused(ledger.perform(grant(33, 200, "1")).await);
    ledger.perform(new_hold(1, 206, "26")).await.unwrap();
    end(&*ledger, 206, 22_000_000).await;
    give(&*ledger, grant(33, 200, "1")).await;
    sound(&*ledger).await;
}

pub(crate) async fn grants_that_make_no_sense_are_refused(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    for amount in ["0", "-1", "100000.000001"] {
        let refusal = refused(ledger.perform(grant(1, 20, amount)).await);
        assert!(matches!(refusal, Refusal::Limit(_)), "{amount}: {refusal}");
    }
    let wrong = |change: fn(&mut NewGrant)| {
        let mut new = until(DAY, grant(1, 20, "1"));
        change(&mut new);
        new
    };
    let all = [
        wrong(|new| new.effective_at = Some(from_now(2 * DAY))),
        wrong(|new| new.effective_at = new.expires_at),
        wrong(|new| new.expires_at = Some(from_now(-SECOND))),
        // Nor does it help that the caller's clock is behind.
        wrong(|new| (new.expires_at, new.act.at) = (Some(from_now(-SECOND)), at(100))),
        wrong(|new| new.priority = 101),
        wrong(|new| (new.kind, new.expires_at) = (GrantKind::Paid, None)),
        wrong(|new| new.models = Some(Vec::new())),
        wrong(|new| new.reference = " ".to_owned()),
        wrong(|new| new.reference = "voucher:l_0000000001-1".to_owned()),
        wrong(|new| new.customer = CustomerId::from_random(9)),
    ];
    for new in all {
        let refusal = refused(ledger.perform(new).await);
        let is_said = matches!(
            refusal,
            Refusal::Limit(_) | Refusal::NotApplicable(_) | Refusal::NoSuchCustomer(_)
        );
        assert!(is_said, "{refusal}");
    }
    assert_eq!(ledger.all::<GrantRecord>().await.unwrap(), []);
    give(&*ledger, until(DAY, grant(1, 20, "100000"))).await;
    let again = refused(ledger.perform(grant(1, 21, "1")).await);
    assert!(matches!(again, Refusal::ReferenceUsed { .. }), "{again}");
    let other_name = NewGrant {
        reference: "other".to_owned(),
        ..grant(1, 22, "1")
    };
    assert_eq!(
        refused(ledger.perform(other_name).await),
        Refusal::OperationUsed(op(22))
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_grant_is_taken_back_once(ledger: SharedLedger) {
    for number in [1, 2] {
        ledger
            .perform(new_key(number, 10 + number, None))
            .await
            .unwrap();
    }
    give(&*ledger, grant(1, 20, "5")).await;
    ledger.perform(new_hold(1, 100, "2")).await.unwrap();
    let of_other = VoidGrant {
        customer: CustomerId::made_for(key(2)),
        ..void(1, 30)
    };
    assert_eq!(
        refused(ledger.perform(of_other).await),
        Refusal::NoSuchGrant(id(1))
    );
    assert_eq!(
        refused(ledger.perform(void(9, 30)).await),
        Refusal::NoSuchGrant(id(9))
    );
    let mut answers = Vec::new();
    for operation in [30, 30, 31] {
        let voided = ledger.perform(void(1, operation)).await.unwrap();
        let grant = voided.grant.grant;
        answers.push(voided.repeated);
        assert_eq!(
            (grant.remaining, grant.status),
            (usd("2"), GrantStatus::Voided)
        );
        assert_eq!(voided.customer.account.credit, usd("2"));
    }
    assert_eq!(answers, [false, true, true]);
    // What is held is spent, and what comes back of it is void.
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    end(&*ledger, 100, 500_000).await;
    let entries = ledger.entries(EntryQuery::default()).await.unwrap();
    let kinds: Vec<_> = entries
        .iter()
        .map(|entry| (entry.kind, entry.amount))
        .collect();
    let expected = [
        (EntryKind::Grant, usd("5")),
        (EntryKind::Void, usd("-3")),
        (EntryKind::Charge, usd("-0.5")),
        (EntryKind::Void, usd("-1.5")),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    assert_eq!(left(&*ledger, 1).await.0, usd("0"));
    // What is used up has nothing left to take back.
    give(&*ledger, grant(2, 40, "1")).await;
    ledger.perform(new_hold(1, 101, "1")).await.unwrap();
    end(&*ledger, 101, 1_000_000).await;
    let refusal = refused(ledger.perform(void(2, 41)).await);
    assert!(
        matches!(&refusal, Refusal::NotApplicable(why) if why.contains("exhausted")),
        "{refusal}"
    );
    // One that has not begun was in no sum.
    let later = NewGrant {
        effective_at: Some(from_now(DAY)),
        ..grant(3, 42, "1")
    };
    give(&*ledger, later).await;
    ledger.perform(void(3, 43)).await.unwrap();
    assert_eq!(ledger.entry(op(43)).await.unwrap(), None);
    sound(&*ledger).await;
}

pub(crate) async fn a_grants_reference_is_nobody_elses(ledger: SharedLedger) {
    for number in [1, 2] {
        ledger
            .perform(new_key(number, 10 + number, None))
            .await
            .unwrap();
    }
    let later = NewGrant {
        effective_at: Some(from_now(DAY)),
        ..until(3 * DAY, grant(2, 21, "2"))
    };
    for new in [until(2 * DAY, grant(1, 20, "2")), later] {
        let first = ledger.perform(new.clone()).await.unwrap();
        assert!(!first.repeated);
        for operation in [new.act.operation, op(22)] {
            let again = NewGrant {
                id: id(50),
                reference: new.reference.to_uppercase(),
                act: Act {
                    operation,
                    ..new.act.clone()
                },
                ..new.clone()
            };
            let again = ledger.perform(again).await.unwrap();
            assert!(again.repeated);
            assert_eq!(again.grant, first.grant);
        }
        let used = Refusal::ReferenceUsed {
            reference: new.reference.clone(),
            customer: new.customer,
        };
        let other = NewGrant {
            amount: usd("2.01"),
            ..new.clone()
        };
        assert_eq!(refused(ledger.perform(other).await), used);
        let other = NewGrant {
            customer: CustomerId::made_for(key(2)),
            ..new.clone()
        };
        assert_eq!(refused(ledger.perform(other).await), used);
        let paid = top_up(1, 30, "2", &new.reference);
        assert_eq!(refused(ledger.perform(paid).await), used);
        let first_money = NewKey {
            first_credit: Some((usd("2"), new.reference.clone())),
            ..new_key(3, 31, None)
        };
        assert_eq!(refused(ledger.perform(first_money).await), used);
        let moved = NewMove {
            from: CustomerId::made_for(key(1)),
            into: CustomerId::made_for(key(2)),
            amount: usd("1"),
            reference: new.reference.clone(),
            act: act(32, 300),
        };
        assert_eq!(refused(ledger.perform(moved).await), used);
    }
    // And the other way round.
    ledger.perform(top_up(1, 40, "1", "inv-1")).await.unwrap();
    let named_so = NewGrant {
        reference: " INV-1".to_owned(),
        ..grant(3, 41, "1")
    };
    let refusal = refused(ledger.perform(named_so).await);
    assert!(
        matches!(refusal, Refusal::ReferenceUsed { .. }),
        "{refusal}"
    );
    assert_eq!(account(&*ledger, 1).await.credit, usd("3"));
    sound(&*ledger).await;
}

pub(crate) async fn what_was_paid_is_told_from_what_was_given(ledger: SharedLedger) {
    for number in [1, 2] {
        ledger
            .perform(new_key(number, 10 + number, None))
            .await
            .unwrap();
    }
    let customer = CustomerId::made_for(key(1));
    let correct = |operation, amount: &str, is_paid| {
        let reason = "a correction".to_owned();
        let kind = CreditKind::Adjust { reason, is_paid };
        credit(1, operation, kind, amount, &format!("adjust-{operation}"))
    };
    let given = ledger.perform(correct(20, "2", false)).await.unwrap();
    assert_eq!(given.entry.kind, EntryKind::Adjust);
    assert!(matches!(
        given.entry.parts[..],
        [MoneyPart { grant: Some(_), .. }]
    ));
    assert!(
        ledger
            .perform(correct(20, "2", false))
            .await
            .unwrap()
            .repeated
    );
    let paid_up = ledger.perform(correct(21, "3", true)).await.unwrap();
    assert_eq!(paid_up.entry.parts, []);
    // A lot of vouchers gives, or pays.
    ledger.perform(new_lot(1, 30, 1)).await.unwrap();
    let paying = NewLot {
        kind: GrantKind::Paid,
        codes: vec![secret(210)],
        ..new_lot(2, 31, 1)
    };
    ledger.perform(paying).await.unwrap();
    let gift = ledger.perform(redemption(200, 1, 32)).await.unwrap();
    assert_eq!(
        (gift.entry.kind, gift.entry.parts.len()),
        (EntryKind::Grant, 1)
    );
    let pays = ledger.perform(redemption(210, 1, 33)).await.unwrap();
    assert_eq!(
        (pays.entry.kind, pays.entry.parts.len()),
        (EntryKind::Adjust, 0)
    );
    assert_eq!(account(&*ledger, 1).await.credit, usd("9"));
    // Moves, corrections and what is written off take from the pool alone: five dollars.
    let moved = |operation, amount: &str| NewMove {
        from: customer,
        into: CustomerId::made_for(key(2)),
        amount: usd(amount),
        reference: format!("move-{operation}"),
        act: act(operation, 300),
    };
    let beyond = Refusal::Insufficient {
        needed: usd("5.01"),
        available: usd("5"),
        held: usd("0"),
    };
    assert_eq!(refused(ledger.perform(moved(40, "5.01")).await), beyond);
    assert_eq!(
        refused(ledger.perform(correct(41, "-5.01", false)).await),
        beyond
    );
    let written_off = |operation, amount: &str| {
        let reason = "it leaves".to_owned();
        credit(
            1,
            operation,
            CreditKind::WriteOff { reason },
            amount,
            &format!("off-{operation}"),
        )
    };
    assert_eq!(
        refused(ledger.perform(written_off(42, "-5.01")).await),
        beyond
    );
    ledger.perform(moved(43, "2")).await.unwrap();
    ledger.perform(correct(44, "-1", false)).await.unwrap();
    ledger.perform(written_off(45, "-2")).await.unwrap();
    // Whoever has a grant is not closed.
    let close = |operation| CustomerChange {
        customer,
        change: CustomerAct::Close,
        act: act(operation, 400),
    };
    let refusal = refused(ledger.perform(close(50)).await);
    assert!(
        matches!(&refusal, Refusal::NotApplicable(why) if why.contains("grant")),
        "{refusal}"
    );
    for (operation, record) in (51..).zip(ledger.all::<GrantRecord>().await.unwrap()) {
        let of = VoidGrant {
            grant: record.grant.id,
            customer,
            act: act(operation, 400),
        };
        ledger.perform(of).await.unwrap();
    }
    let closed = ledger.perform(close(60)).await.unwrap();
    assert_eq!(closed.status, CustomerStatus::Closed);
    let late = refused(ledger.perform(grant(1, 61, "1")).await);
    assert!(matches!(late, Refusal::NotApplicable(_)), "{late}");
    sound(&*ledger).await;
}

pub(crate) async fn grants_are_listed_and_told(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let customer = CustomerId::made_for(key(1));
    // Two that end in half a day, and began before that was told.
    for number in [1, 2] {
        let new = NewGrant {
            effective_at: Some(from_now(-2 * DAY)),
            ..until(DAY / 2, grant(number, 20 + number, "1"))
        };
        give(&*ledger, new).await;
    }
    give(&*ledger, grant(3, 23, "1")).await;
    ledger.perform(SettleGrants { customer }).await.unwrap();
    ledger.perform(SettleGrants { customer }).await.unwrap();
    ledger.perform(void(3, 24)).await.unwrap();
    let told = events(&*ledger, 8).await;
    let told: Vec<_> = told
        .iter()
        .filter(|event| event.kind.as_str().starts_with("grant."))
        .collect();
    let count = |kind| told.iter().filter(|event| event.kind == kind).count();
    assert_eq!(count(EventKind::GrantGiven), 3);
    assert_eq!(count(EventKind::GrantExpiring), 2);
    assert_eq!(count(EventKind::GrantVoided), 1);
    let near = told
        .iter()
        .find(|event| event.kind == EventKind::GrantExpiring)
        .unwrap();
    assert!(near.data.contains("\"days\":1"), "{}", near.data);
    let page = |query: GrantQuery| {
        let ledger = Arc::clone(&ledger);
        async move {
            let found = ledger.grants(query).await.unwrap();
            let ids = found.iter().map(|known| known.grant.id);
            (
                ids.collect::<Vec<_>>(),
                found.last().map(|last| (last.created_at, last.grant.id)),
            )
        }
    };
    let all = |limit| GrantQuery {
        customer: Some(customer),
        limit,
        ..GrantQuery::default()
    };
    let (mut ids, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let (more, last) = page(GrantQuery { after, ..all(2) }).await;
        if more.is_empty() {
            break;
        }
        (after, pages) = (last, pages + 1);
        ids.extend(more);
    }
    assert_eq!(pages, 2);
    let (whole, _) = page(all(9)).await;
    assert_eq!(ids, whole);
    let mut oldest = ledger.all::<GrantRecord>().await.unwrap();
    oldest.reverse();
    assert_eq!(
        ids,
        oldest
            .iter()
            .map(|known| known.grant.id)
            .collect::<Vec<_>>()
    );
    let voided = GrantQuery {
        status: Some(GrantStatus::Voided),
        ..all(9)
    };
    assert_eq!(page(voided).await.0, [id(3)]);
    let named = GrantQuery {
        reference: Some(" GRANT-2".to_owned()),
        ..all(9)
    };
    assert_eq!(page(named).await.0, [id(2)]);
    let of_other = GrantQuery {
        customer: Some(CustomerId::from_random(77)),
        ..all(9)
    };
    assert_eq!(page(of_other).await.0, []);
    sound(&*ledger).await;
}
