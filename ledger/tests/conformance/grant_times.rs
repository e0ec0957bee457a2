//! What becomes of money when its grant begins or ends, and what else bounds it: refunds, claims, caps.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::*;

use super::common::*;
use super::grants::{
    DAY, SECOND, available, end, from_now, give, grant, left, paid, parts, until, void,
};
use super::{account, refused};

async fn wait_for(instant: Timestamp) {
    while clock::now() < instant {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn what_is_held_when_a_grant_ends_is_spent(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    let record = give(&*ledger, until(3 * SECOND / 2, grant(1, 20, "5"))).await;
    ledger.perform(new_hold(1, 100, "3")).await.unwrap();
    ledger.perform(new_hold(1, 101, "1")).await.unwrap();
    wait_for(record.grant.expires_at.unwrap()).await;
    // Whoever tells of it again is answered as before.
    let again = NewGrant {
        expires_at: record.grant.expires_at,
        ..grant(1, 21, "5")
    };
    assert!(ledger.perform(again).await.unwrap().repeated);
    // Reads know it before anybody has booked it, and a hold takes nothing of it.
    assert_eq!(account(&*ledger, 1).await.credit, usd("4"));
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    let refusal = refused(ledger.perform(new_hold(1, 102, "0.01")).await);
    assert!(matches!(refusal, Refusal::Insufficient { .. }), "{refusal}");
    assert_eq!(
        left(&*ledger, 1).await,
        (usd("3"), usd("3"), GrantStatus::Expired)
    );
    // Two dollars of it are charged, and what the first hold does not need of it ends with it.
    assert_eq!(end(&*ledger, 100, 1_500_000).await.charge, usd("1.5"));
    assert_eq!(parts(&*ledger, 100).await, [(1, usd("-1.5"))]);
    let smaller = HoldMove {
        to: NewSize::Amount(usd("0.25")),
        checkpoint: None,
        ..moved(101, "0", 0)
    };
    ledger.perform(smaller).await.unwrap();
    end(&*ledger, 101, 250_000).await;
    let entries = ledger.entries(EntryQuery::default()).await.unwrap();
    let expired = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Expired);
    let expired = Amount::checked_sum(expired.map(|entry| entry.amount)).unwrap();
    let charged = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Charge);
    let parts = charged
        .flat_map(|entry| &entry.parts)
        .filter(|part| part.grant.is_some());
    let charged = Amount::checked_sum(parts.map(|part| part.amount)).unwrap();
    assert_eq!(Amount::checked_sum([expired, charged]), Some(usd("-5")));
    assert_eq!(left(&*ledger, 1).await.0, usd("0"));
    let refusal = refused(ledger.perform(void(1, 30)).await);
    assert!(
        matches!(&refusal, Refusal::NotApplicable(why) if why.contains("expired")),
        "{refusal}"
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_refund_after_the_end_is_a_grant_for_30_days(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let of_model = NewGrant {
        models: Some(vec!["small".to_owned()]),
        ..until(2 * SECOND, grant(1, 20, "2"))
    };
    let record = give(&*ledger, of_model).await;
    ledger.perform(new_hold(1, 100, "3")).await.unwrap();
    end(&*ledger, 100, 3_000_000).await;
    assert_eq!(parts(&*ledger, 100).await, [(1, usd("-2")), (0, usd("-1"))]);
    let refund = |operation, amount: &str| {
        let kind = CreditKind::Refund {
            request: op(100),
            reason: "bad answer".to_owned(),
        };
        credit(1, operation, kind, amount, &format!("refund-{operation}"))
    };
    // Last taken first: the pool, then the grant, which can be used again.
    ledger.perform(refund(30, "0.75")).await.unwrap();
    assert_eq!(parts(&*ledger, 30).await, [], "the pool alone");
    let again = ledger.perform(refund(31, "0.5")).await.unwrap();
    assert_eq!(
        parts(&*ledger, 31).await,
        [(0, usd("0.25")), (1, usd("0.25"))]
    );
    assert_eq!(again.customer.account.balance(), usd("5.25"));
    assert_eq!(
        left(&*ledger, 1).await,
        (usd("0.25"), usd("0"), GrantStatus::Active)
    );
    wait_for(record.grant.expires_at.unwrap()).await;
    let before = clock::now();
    let late = ledger.perform(refund(32, "1")).await.unwrap();
    assert_eq!(late.customer.account.balance(), usd("6"), "0.25 have ended");
    let repeated = ledger.perform(refund(33, "1")).await;
    assert!(matches!(refused(repeated), Refusal::NotRefundable { .. }));
    assert!(ledger.perform(refund(32, "1")).await.unwrap().repeated);
    let [part] = &late.entry.parts[..] else {
        panic!("{:?}", late.entry)
    };
    let query = GrantQuery {
        id: part.grant,
        limit: 1,
        ..GrantQuery::default()
    };
    let made = ledger.grants(query).await.unwrap().remove(0);
    assert_eq!(
        (made.reference, made.grant.kind),
        (GrantName(None), GrantKind::Promotional)
    );
    assert_eq!(
        (made.grant.remaining, made.grant.models),
        (usd("1"), record.grant.models)
    );
    let lasts = made.grant.expires_at.unwrap().millis() - before.millis();
    assert!(
        (30 * DAY..30 * DAY + 60 * SECOND).contains(&lasts),
        "{lasts}"
    );
    ledger.perform(refund(34, "0.75")).await.unwrap();
    let nothing = refused(ledger.perform(refund(35, "0.000001")).await);
    assert!(
        matches!(nothing, Refusal::NotRefundable { .. }),
        "{nothing}"
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_pending_grant_counts_once_it_begins(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let begins = from_now(SECOND);
    let later = NewGrant {
        effective_at: Some(begins),
        ..until(2 * DAY, grant(1, 20, "2"))
    };
    let made = ledger.perform(later).await.unwrap();
    assert_eq!(made.grant.grant.status, GrantStatus::Pending);
    assert_eq!(made.customer.account, Account::default());
    let customer = made.customer.id;
    assert_eq!(ledger.entries(EntryQuery::default()).await.unwrap(), []);
    wait_for(begins).await;
    assert_eq!(account(&*ledger, 1).await.credit, usd("2"), "reckoned in");
    assert_eq!(ledger.entries(EntryQuery::default()).await.unwrap(), []);
    assert_eq!(ledger.due_grants(clock::now()).await.unwrap(), [customer]);
    for _ in 0..2 {
        ledger.perform(SettleGrants { customer }).await.unwrap();
        let entries = ledger.entries(EntryQuery::default()).await.unwrap();
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| (entry.kind, entry.amount))
            .collect();
        assert_eq!(entries, [(EntryKind::Grant, usd("2"))]);
    }
    assert_eq!(ledger.due_grants(clock::now()).await.unwrap(), []);
    // A hold looks by itself.
    let begins = from_now(SECOND / 2);
    let later = NewGrant {
        effective_at: Some(begins),
        ..grant(2, 21, "3")
    };
    give(&*ledger, later).await;
    wait_for(begins).await;
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    end(&*ledger, 100, 5_000_000).await;
    assert_eq!(parts(&*ledger, 100).await, [(1, usd("-2")), (2, usd("-3"))]);
    sound(&*ledger).await;
}

pub(crate) async fn what_nobody_paid_pays_no_claim(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    ledger.perform(top_up(1, 20, "4", "inv-1")).await.unwrap();
    give(&*ledger, paid(grant(1, 21, "2"))).await;
    let later = NewGrant {
        expires_at: Some(from_now(20 * DAY)),
        ..paid(grant(2, 22, "2"))
    };
    give(&*ledger, later).await;
    give(&*ledger, grant(3, 23, "5")).await;
    ledger.perform(new_hold(1, 100, "7.5")).await.unwrap();
    end(&*ledger, 100, 7_500_000).await;
    assert_eq!(
        parts(&*ledger, 100).await,
        [(1, usd("-2")), (2, usd("-2")), (3, usd("-3.5"))]
    );
    // All of the pool goes back, and later what else was paid.
    give(
        &*ledger,
        NewGrant {
            expires_at: Some(from_now(3 * DAY)),
            ..paid(grant(4, 24, "1"))
        },
    )
    .await;
    give(
        &*ledger,
        NewGrant {
            expires_at: Some(from_now(5 * DAY)),
            ..paid(grant(5, 25, "1"))
        },
    )
    .await;
    let back = ledger.perform(refund_of("inv-1", 30, "4")).await.unwrap();
    assert_eq!(back.entry.unwrap().parts, [], "the pool alone");
    let back = ledger.perform(refund_of("grant-2", 31, "2")).await.unwrap();
    assert_eq!(
        (back.customer.claim, back.entry.unwrap().amount),
        (usd("0"), usd("-2"))
    );
    assert_eq!(parts(&*ledger, 31).await, [(5, usd("-1")), (4, usd("-1"))]);
    let back = ledger.perform(refund_of("grant-1", 32, "2")).await.unwrap();
    assert_eq!(back.customer.claim, usd("2"));
    assert_eq!(
        back.customer.account.available(),
        usd("1.5"),
        "of what nobody paid"
    );
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    let refusal = refused(ledger.perform(new_hold(1, 101, "0.01")).await);
    assert!(
        matches!(refusal, Refusal::Insufficient { available, .. } if available == usd("0")),
        "{refusal}"
    );
    give(&*ledger, grant(6, 33, "1")).await;
    refused(ledger.perform(new_hold(1, 101, "0.01")).await);
    let paid = ledger.perform(top_up(1, 34, "3", "inv-2")).await.unwrap();
    assert_eq!(
        (paid.customer.claim, paid.customer.account.balance()),
        (usd("0"), usd("3.5"))
    );
    ledger.perform(new_hold(1, 101, "3.5")).await.unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn a_cap_and_a_grant_bound_a_request_together(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    let cap = Cap {
        interval: CapInterval::Day,
        model: Some("small".to_owned()),
        limit: usd("3"),
    };
    ledger
        .perform(change(1, 11, Change::SetCap(cap)))
        .await
        .unwrap();
    let of_model = |slug: &str, new| NewGrant {
        models: Some(vec![slug.to_owned()]),
        ..until(DAY, new)
    };
    give(&*ledger, of_model("small", grant(1, 20, "4"))).await;
    give(&*ledger, of_model("other", grant(2, 21, "4"))).await;
    let racers = (0..12_u64).map(|racer| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            let request = 100 + racer;
            let held = ledger.perform(new_hold(1, request, "0.7")).await;
            if held.is_err() {
                return Amount::ZERO;
            }
            // A charge beyond its hold, as far as there is room.
            end(&*ledger, request, 900_000).await.charge
        })
    });
    let mut charged = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        charged.push(racer.await.unwrap());
    }
    let all = Amount::checked_sum(charged).unwrap();
    assert!(all <= usd("3"), "{all}");
    let more = refused(ledger.perform(new_hold(1, 200, "1")).await);
    assert!(matches!(more, Refusal::CapReached(_)), "{more}");
    // The cap has room, and there is nothing for this model.
    let odd = NewHold {
        slug: "odd".to_owned(),
        ..new_hold(1, 201, "2")
    };
    let refusal = refused(ledger.perform(odd).await);
    assert!(matches!(refusal, Refusal::Insufficient { .. }), "{refusal}");
    assert_eq!(left(&*ledger, 2).await.0, usd("4"));
    let of_small = left(&*ledger, 1).await.0;
    assert_eq!(
        Amount::checked_sum([of_small, all]),
        Some(usd("4")),
        "before the pool"
    );
    sound(&*ledger).await;
}
