//! Auto top-up: asked for in the transaction of its cause, one at a time, and ended by its payment, a failure or a dispute.

use std::sync::Arc;

use farebox_ledger::*;
use serde_json::{Value, json};

use super::common::*;
use super::refused;

const RULE: TopUpRule = TopUpRule {
    threshold: Amount::from_picos(5_000_000_000_000),
    refill: Refill::Amount(Amount::from_picos(20_000_000_000_000)),
    per_month: 3,
};

fn customer() -> CustomerId {
    CustomerId::made_for(key(1))
}

async fn set(
    ledger: &SharedLedger,
    operation: u64,
    change: CustomerAct,
) -> Result<Customer, LedgerError> {
    let change = CustomerChange {
        customer: customer(),
        change,
        act: act(operation, 250),
    };
    ledger.perform(change).await
}

/// What was asked for, oldest first, and what the rule is doing now; with so many events in all.
async fn wishes(ledger: &SharedLedger, count: usize) -> (Vec<Value>, AutoTopUpState) {
    let told = events(&**ledger, count).await;
    assert_eq!(told.len(), count, "{told:?}");
    let told = told
        .iter()
        .filter(|event| event.kind == EventKind::TopUpWanted);
    let told = told.map(|event| event.document()["data"].clone()).collect();
    let known = ledger.find_customer(customer()).await.unwrap().unwrap();
    let state = known.auto_top_up.unwrap().state(clock::now()).unwrap();
    (told, state)
}

async fn charge(ledger: &SharedLedger, operation: u64, dollars: u64) {
    let hold = new_hold(1, operation, "0.01");
    ledger.perform(hold).await.unwrap();
    let finished = finish(operation, dollars * 1_000_000);
    ledger.perform(Arc::new(finished)).await.unwrap();
}

fn payment(operation: u64, reference: &str, amount: &str) -> NewPayment {
    NewPayment {
        customer: customer(),
        credit: usd(amount),
        reference: reference.to_owned(),
        paid: PaidSum::in_usd(usd(amount)),
        addressee: None,
        expected: None,
        reservation: None,
        plan: None,
        unsold: None,
        act: act(operation, 300),
    }
}

pub(crate) async fn money_is_asked_for_when_a_settlement_crosses_the_threshold(
    ledger: SharedLedger,
) {
    ledger.perform(new_key(1, 10, Some("10"))).await.unwrap();
    // The customer, its key and its first top-up.
    assert_eq!(events(&*ledger, 3).await.len(), 3);
    for _ in 0..2 {
        let made = set(&ledger, 11, CustomerAct::SetAutoTopUp(RULE, None))
            .await
            .unwrap();
        assert_eq!(made.auto_top_up.unwrap().rule, Some(RULE));
    }
    charge(&ledger, 20, 4).await;
    assert_eq!(wishes(&ledger, 3).await, (vec![], AutoTopUpState::Ready));
    charge(&ledger, 21, 2).await;
    let reference = format!("auto-top-up:{}-4", customer());
    let (told, state) = wishes(&ledger, 4).await;
    let AutoTopUpState::Pending(wish) = state else {
        panic!("{state:?}");
    };
    let expected = json!({
        "reference": reference, "amount": "20.00", "balance": "4.00", "threshold": "5.00", "until": wish.until(),
    });
    assert_eq!(told, [expected]);
    // One at a time, whatever the balance does.
    charge(&ledger, 22, 1).await;
    assert_eq!(wishes(&ledger, 4).await.0.len(), 1);
    // Any other payment is none of its business; its own one ends it, in any spelling, once.
    ledger
        .perform(top_up(1, 30, "0.50", "inv-1"))
        .await
        .unwrap();
    assert_eq!(wishes(&ledger, 5).await.1, AutoTopUpState::Pending(wish));
    for _ in 0..3 {
        let paid = payment(31, &reference.to_uppercase(), "20");
        let moved = ledger.perform(paid).await.unwrap();
        assert_eq!(moved.customer.account.balance(), usd("23.5"));
    }
    assert_eq!(wishes(&ledger, 6).await.1, AutoTopUpState::Ready);
    let acts = ledger
        .audit(Some(customer().into()), None, 9)
        .await
        .unwrap();
    let set = acts
        .iter()
        .find(|act| act.act == "set_auto_top_up")
        .unwrap();
    let details: Value = serde_json::from_str(&set.details).unwrap();
    assert_eq!(
        details,
        json!({ "threshold": "5.00", "amount": "20.00", "per_month": 3 })
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_month_has_no_more_wishes_than_its_rule_allows(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    let to_target = TopUpRule {
        refill: Refill::Target(usd("6")),
        ..RULE
    };
    // Set below the threshold, it asks at once.
    set(&ledger, 11, CustomerAct::SetAutoTopUp(to_target, None))
        .await
        .unwrap();
    let mut number = 4;
    for turn in 0..3 {
        let (told, state) = wishes(&ledger, usize::try_from(number).unwrap()).await;
        assert_eq!(told.len(), turn + 1);
        let wanted = &told[turn];
        let missing = if turn == 0 { "5.00" } else { "2.00" };
        assert_eq!(wanted["amount"], missing, "what is missing to the target");
        assert!(matches!(state, AutoTopUpState::Pending(_)));
        let turn = u64::try_from(turn).unwrap();
        let reference = format!("auto-top-up:{}-{number}", customer());
        ledger
            .perform(payment(30 + turn, &reference, missing))
            .await
            .unwrap();
        charge(&ledger, 20 + turn, 2).await;
        // The payment, and the next wish.
        number += 2;
    }
    // The last payment is told, and nothing is asked for any more in this month.
    let (told, state) = wishes(&ledger, 9).await;
    assert_eq!(told.len(), 3);
    assert!(matches!(state, AutoTopUpState::UsedUp(_)), "{state:?}");
    for (operation, change) in [
        (12, CustomerAct::ClearAutoTopUp),
        (13, CustomerAct::SetAutoTopUp(to_target, None)),
    ] {
        set(&ledger, operation, change).await.unwrap();
    }
    assert_eq!(
        wishes(&ledger, 9).await.0.len(),
        3,
        "set anew, it counts on"
    );
    let more = TopUpRule {
        per_month: 4,
        ..to_target
    };
    set(&ledger, 14, CustomerAct::SetAutoTopUp(more, None))
        .await
        .unwrap();
    assert_eq!(wishes(&ledger, 10).await.0.len(), 4);
    sound(&*ledger).await;
}

pub(crate) async fn a_wish_that_fails_rests_and_a_dispute_ends_the_rule(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    set(&ledger, 11, CustomerAct::SetAutoTopUp(RULE, None))
        .await
        .unwrap();
    let fail = |number| CustomerAct::FailTopUp {
        number,
        reason: Some("card declined".to_owned()),
    };
    let unknown = refused(set(&ledger, 12, fail(3)).await);
    assert!(matches!(unknown, Refusal::NotApplicable(_)), "{unknown:?}");
    for operation in [13, 13, 14] {
        set(&ledger, operation, fail(4)).await.unwrap();
    }
    let (told, state) = wishes(&ledger, 4).await;
    assert!(matches!(state, AutoTopUpState::Resting(_)), "{state:?}");
    charge(&ledger, 20, 0).await;
    assert_eq!(
        (told.len(), wishes(&ledger, 4).await.0.len()),
        (1, 1),
        "it rests"
    );
    // Set again, it begins anew.
    set(&ledger, 15, CustomerAct::SetAutoTopUp(RULE, None))
        .await
        .unwrap();
    assert_eq!(wishes(&ledger, 5).await.0.len(), 2);
    let reference = format!("auto-top-up:{}-5", customer());
    ledger.perform(payment(30, &reference, "20")).await.unwrap();
    let booked = refused(set(&ledger, 16, fail(5)).await);
    assert!(booked.to_string().contains("was booked"), "{booked}");
    // A refund is no dispute.
    ledger
        .perform(refund_of(&reference, 40, "1"))
        .await
        .unwrap();
    assert_eq!(wishes(&ledger, 7).await.1, AutoTopUpState::Ready);
    let dispute = NewReversal {
        kind: ReversalKind::Dispute,
        ..refund_of(&reference, 41, "19")
    };
    ledger.perform(dispute).await.unwrap();
    let (told, state) = wishes(&ledger, 9).await;
    assert_eq!(state, AutoTopUpState::Off(AutoTopUpOff::Dispute));
    assert_eq!(
        told.len(),
        2,
        "nothing is wanted although the balance is low"
    );
    sound(&*ledger).await;
}

pub(crate) async fn names_of_wishes_are_theirs_alone(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    ledger.perform(new_key(2, 12, Some("1"))).await.unwrap();
    let next = format!("Auto-top-up:{}-4", customer());
    assert!(ledger.perform(top_up(1, 21, "5", &next)).await.is_err());
    let odd = refused(ledger.perform(top_up(1, 21, "5", "auto-top-up:me")).await);
    assert!(matches!(odd, Refusal::NotApplicable(_)), "{odd:?}");
    set(&ledger, 11, CustomerAct::SetAutoTopUp(RULE, None))
        .await
        .unwrap();
    let gift = CreditKind::Adjust {
        reason: "gift".into(),
        is_paid: false,
    };
    let gift = refused(ledger.perform(credit(1, 22, gift, "5", &next)).await);
    assert!(gift.to_string().contains("choose another"), "{gift}");
    let of_other = refused(ledger.perform(top_up(2, 23, "5", &next)).await);
    assert!(
        matches!(of_other, Refusal::NotApplicable(_)),
        "{of_other:?}"
    );
    ledger.perform(top_up(1, 24, "20", &next)).await.unwrap();
    assert!(matches!(wishes(&ledger, 8).await.1, AutoTopUpState::Ready));
    // Who sells may say that a payment failed, and sets no rule.
    ledger
        .perform(new_token(1, 50, TokenRole::Sell, Some("100")))
        .await
        .unwrap();
    let of_shop = |operation, change| {
        let change = CustomerChange {
            customer: customer(),
            change,
            act: act(operation, 250),
        };
        asked(1, 100, Operation::ChangeCustomer(Box::new(change)))
    };
    let rule = refused(
        ledger
            .ask(of_shop(51, CustomerAct::SetAutoTopUp(RULE, None)))
            .await,
    );
    assert!(matches!(rule, Refusal::NotAllowed(_)), "{rule:?}");
    let failed = CustomerAct::FailTopUp {
        number: 4,
        reason: None,
    };
    let late = refused(ledger.ask(of_shop(52, failed)).await);
    assert!(late.to_string().contains("was booked"), "{late}");
    sound(&*ledger).await;
}

/// Its money came, so it is kept for somebody to look at.
pub(crate) async fn a_payment_that_no_rule_wished_is_kept(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    let never = format!("auto-top-up:{}-99", customer());
    for (operation, reference) in [(20, &*never), (19, "auto-top-up:nobody")] {
        let kept = ledger
            .perform(payment(operation, reference, "5"))
            .await
            .unwrap();
        let PaymentStatus::Unapplied { why } = kept.payment.status else {
            panic!("{kept:?}");
        };
        assert!(why.contains("no auto top-up of customer"), "{why}");
    }
    let again = ledger.perform(payment(20, &never, "5")).await.unwrap();
    assert!(again.repeated, "told again it is the same");
    assert_eq!(ledger.unapplied().await.unwrap().len(), 2);
    // It is assigned like any other, and who credits by hand names something else.
    assert!(ledger.perform(top_up(1, 21, "5", &never)).await.is_err());
    sound(&*ledger).await;
}

/// Nothing but time passes for a customer without money: somebody looks.
pub(crate) async fn a_rule_that_waited_is_found_when_its_time_has_come(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("1"))).await.unwrap();
    set(&ledger, 11, CustomerAct::SetAutoTopUp(RULE, None))
        .await
        .unwrap();
    let fail = CustomerAct::FailTopUp {
        number: 4,
        reason: None,
    };
    set(&ledger, 12, fail).await.unwrap();
    let now = clock::now();
    let later = |hours: i64| Timestamp::from_millis(now.millis() + hours * 3_600_000);
    assert_eq!(ledger.due_top_ups(later(23)).await.unwrap(), []);
    assert_eq!(ledger.due_top_ups(later(25)).await.unwrap(), [customer()]);
    // Judged by the ledger's own clock, it is too early.
    let judge = JudgeTopUp {
        customer: customer(),
        operation: op(60),
    };
    ledger.apply(judge.clone().into()).await.unwrap();
    assert_eq!(wishes(&ledger, 4).await.0.len(), 1);
    for operation in [13, 14] {
        let change = if operation == 13 {
            CustomerAct::Suspend
        } else {
            CustomerAct::Resume
        };
        set(&ledger, operation, change).await.unwrap();
    }
    set(&ledger, 15, CustomerAct::Suspend).await.unwrap();
    assert_eq!(
        ledger.due_top_ups(later(25)).await.unwrap(),
        [],
        "it is not served"
    );
    set(&ledger, 16, CustomerAct::SetAutoTopUp(RULE, None))
        .await
        .unwrap();
    assert_eq!(wishes(&ledger, 7).await.0.len(), 1);
    set(&ledger, 17, CustomerAct::Resume).await.unwrap();
    assert_eq!(wishes(&ledger, 9).await.0.len(), 2, "served again, it asks");
    ledger.apply(judge.into()).await.unwrap();
    assert_eq!(wishes(&ledger, 9).await.0.len(), 2, "one at a time");
    sound(&*ledger).await;
}
