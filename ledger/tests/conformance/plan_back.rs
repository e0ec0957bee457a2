//! What goes back of plans: payments that are reversed, and periods that are given up for credit.

use farebox_ledger::*;

use super::common::*;
use super::plans::*;
use super::{account, refused};

pub(crate) async fn a_change_at_once_and_back_gains_nothing(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    charge(&*ledger, 100, 500).await;
    // Of two dollars that run a request gives one back: that is worth 80 cents, as the 18 free ones are worth 14.40.
    ledger.perform(new_hold(1, 101, "2")).await.unwrap();
    let other = PlanTerms {
        price: usd("40"),
        allowance: usd("60"),
        ..named("other", coder())
    };
    let change = changed(1, 30, to(other.clone(), true));
    let answer = ledger.perform(change.clone()).await.unwrap();
    assert!(ledger.perform(change).await.unwrap().repeated);
    assert_eq!(
        answer.customer.grants.pool(answer.customer.account),
        usd("14.4")
    );
    assert_eq!(answer.subscription.state.status, SubscriptionStatus::Lapsed);
    charge(&*ledger, 101, 100).await;
    assert_eq!(parts(&*ledger, 101).await, "plan -1.00");
    assert_eq!(account(&*ledger, 1).await.balance(), usd("15.2"));
    // Back again: nothing runs, so there is nothing more.
    ledger
        .perform(changed(1, 31, to(coder(), true)))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("15.2"));
    assert_eq!(
        booked(&*ledger, EntryKind::Adjust).await,
        [usd("14.4"), usd("0.8")]
    );
    // The new plan needs its own payment.
    buy(&*ledger, 32, purchase(1, 1, other)).await;
    assert_eq!(available(&*ledger, "small").await, usd("75.2"));
    // What was given became nothing, and never does.
    let given = PlanChange {
        subscription: sub(2),
        ..changed(2, 33, PlanAct::Give(purchase(2, 1, named("gift", coder()))))
    };
    ledger.perform(given).await.unwrap();
    ledger
        .perform(changed(2, 34, to(coder(), true)))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("75.2"));
    sound(&*ledger).await;
}

pub(crate) async fn a_reversal_takes_no_more_than_the_payment(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("7"))).await.unwrap();
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    charge(&*ledger, 100, 500).await;
    // Half of it: what is free of the period.
    ledger
        .perform(refund_of("sale-20", 30, "10"))
        .await
        .unwrap();
    assert_eq!(available(&*ledger, "small").await, usd("14.5"));
    assert_eq!(claim(&*ledger).await, usd("0"));
    // All of it, by a dispute too: five dollars were used, which are worth four.
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of("sale-20", 31, "20")
    };
    ledger.perform(dispute.clone()).await.unwrap();
    assert!(ledger.perform(dispute).await.unwrap().repeated);
    ledger
        .perform(refund_of("sale-20", 32, "20"))
        .await
        .unwrap();
    assert_eq!(available(&*ledger, "small").await, usd("3"));
    assert_eq!(claim(&*ledger).await, usd("0"));
    let of = subscription(&*ledger, 1).await;
    assert_eq!(
        (of.state.status, of.state.running),
        (SubscriptionStatus::Lapsed, None)
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_reversal_after_a_change_takes_what_was_given(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "5")).await.unwrap();
    charge(&*ledger, 100, 500).await;
    ledger
        .perform(changed(1, 30, to(named("other", coder()), true)))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("16"));
    // Sixteen are there, and four were used.
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of("sale-20", 31, "20")
    };
    ledger.perform(dispute).await.unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    assert_eq!(claim(&*ledger).await, usd("4"));
    // A period's payment pays no claim, and nothing is served until it is paid.
    buy(&*ledger, 32, purchase(1, 1, named("other", coder()))).await;
    assert_eq!(claim(&*ledger).await, usd("4"));
    assert_eq!(available(&*ledger, "small").await, usd("0"));
    let won = NewReversal {
        kind: ReversalKind::DisputeWon,
        ..refund_of("sale-20", 33, "20")
    };
    ledger.perform(won).await.unwrap();
    assert_eq!(claim(&*ledger).await, usd("0"));
    assert_eq!(available(&*ledger, "small").await, usd("41"));
    sound(&*ledger).await;
}

pub(crate) async fn what_has_not_begun_goes_back_first(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    buy(&*ledger, 20, purchase(1, 4, coder())).await;
    ledger
        .perform(refund_of("sale-20", 30, "30"))
        .await
        .unwrap();
    // One and a half periods: the last one, and half of the one before.
    let of = subscription(&*ledger, 1).await;
    assert_eq!(of.paid_ahead(), 2);
    assert_eq!(of.state.sold[0].taken, usd("12.5"));
    assert_eq!(available(&*ledger, "small").await, usd("25"));
    // No account had it, and its name is taken all the same.
    assert_eq!(booked(&*ledger, EntryKind::Reversal).await, [usd("0")]);
    buy(
        &*ledger,
        21,
        purchase(2, 1, named("other", stopping(coder()))),
    )
    .await;
    let again = NewReversal {
        payment: "sale-21".to_owned(),
        act: act(32, 400),
        ..refund_of("sale-20", 30, "10")
    };
    let taken = refused(ledger.perform(again).await);
    assert!(matches!(taken, Refusal::ReferenceUsed { .. }), "{taken}");
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of("sale-20", 31, "50")
    };
    ledger.perform(dispute).await.unwrap();
    assert_eq!(subscription(&*ledger, 1).await.paid_ahead(), 0);
    assert_eq!(available(&*ledger, "small").await, usd("25"));
    assert_eq!(claim(&*ledger).await, usd("0"));
    assert_eq!(
        booked(&*ledger, EntryKind::Reversal).await,
        [usd("0"), usd("-25")]
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_sale_that_cannot_be_booked_is_money(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    let unsold = NewPayment {
        unsold: Some("the catalog sells no such plan".to_owned()),
        ..sale(20, purchase(1, 2, coder()))
    };
    ledger.perform(unsold).await.unwrap();
    ledger
        .perform(refund_of("sale-20", 30, "10"))
        .await
        .unwrap();
    let assign = UnappliedAct {
        payment: "sale-20".to_owned(),
        end: UnappliedEnd::Assign(customer()),
        act: act(31, 400),
    };
    let assigned = ledger.perform(assign).await.unwrap();
    // Forty were paid for fifty of use; ten of them had gone back.
    assert_eq!(assigned.entry.unwrap().amount, usd("40"));
    assert_eq!(account(&*ledger, 1).await.balance(), usd("30"));
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of("sale-20", 32, "40")
    };
    ledger.perform(dispute).await.unwrap();
    assert_eq!(account(&*ledger, 1).await.balance(), usd("0"));
    assert_eq!(claim(&*ledger).await, usd("0"));
    sound(&*ledger).await;
}

pub(crate) async fn what_a_given_up_period_gets_back_is_credit_to_the_last(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, None)).await.unwrap();
    buy(&*ledger, 20, purchase(1, 1, coder())).await;
    ledger.perform(new_hold(1, 100, "25")).await.unwrap();
    ledger
        .perform(changed(1, 30, to(named("other", coder()), true)))
        .await
        .unwrap();
    assert_eq!(account(&*ledger, 1).await.available(), usd("0"));
    ledger.perform(changed(1, 31, PlanAct::End)).await.unwrap();
    charge(&*ledger, 100, 500).await;
    assert_eq!(account(&*ledger, 1).await.balance(), usd("16"));
    // A reversal takes no more than that and what was used.
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of("sale-20", 32, "20")
    };
    ledger.perform(dispute).await.unwrap();
    assert_eq!(claim(&*ledger).await, usd("4"));
    sound(&*ledger).await;
}
