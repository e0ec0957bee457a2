//! Money back: payments, registers, claims and unapplied payments.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;
use super::{account, refused};

fn gross(text: &str) -> Gross {
    Gross::parse(text).unwrap()
}

/// 11.90 EUR with tax, for 10 USD.
fn payment(customer: CustomerId, operation: u64, reference: &str) -> NewPayment {
    NewPayment {
        customer,
        paid: PaidSum {
            currency: "EUR".to_owned(),
            gross: gross("11.90"),
            tax: gross("1.90"),
        },
        credit: usd("10"),
        reference: reference.to_owned(),
        addressee: None,
        expected: None,
        reservation: None,
        plan: None,
        unsold: None,
        act: act(operation, 300),
    }
}

fn reversal(
    of: &str,
    operation: u64,
    kind: ReversalKind,
    cumulative: &str,
    name: &str,
) -> NewReversal {
    NewReversal {
        payment: of.to_owned(),
        kind,
        cumulative: gross(cumulative),
        whole: None,
        reference: name.to_owned(),
        act: act(operation, 350),
    }
}

async fn claim(ledger: &dyn Ledger, customer: CustomerId) -> Amount {
    let found = ledger.find_customer(customer).await.unwrap();
    found.unwrap().claim
}

/// A command, a form and a processor may tell of the same money, one with its particulars.
pub(crate) async fn a_top_up_and_a_payment_of_one_name_are_the_same(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let customer = made.customer.id;
    let paid = |operation, name: &str| NewPayment {
        paid: PaidSum::in_usd(usd("10")),
        ..payment(customer, operation, name)
    };
    let typed = |operation, name: &str| Credit {
        to: customer.into(),
        ..top_up(1, operation, "10", name)
    };
    ledger.perform(typed(20, "inv-1")).await.unwrap();
    ledger.perform(paid(21, "inv-2")).await.unwrap();
    ledger.perform(top_up(1, 22, "10", "inv-3")).await.unwrap();
    for (operation, name) in [(30, "INV-1"), (31, "inv-2"), (32, "inv-3")] {
        let moved = ledger.perform(paid(operation, name)).await.unwrap();
        assert!(moved.repeated, "{name}");
        assert_eq!(moved.customer.account.balance(), usd("30"));
    }
    let posted = ledger.perform(typed(40, "inv-2")).await.unwrap();
    assert!(posted.repeated);
    let euros = payment(customer, 41, "inv-1");
    let refusal = refused(ledger.perform(euros).await);
    assert!(
        matches!(refusal, Refusal::ReferenceUsed { .. }),
        "{refusal}"
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_payment_told_five_times_is_booked_once(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let customer = made.customer.id;
    for operation in 20..25 {
        let paid = ledger.perform(payment(customer, operation, "pi-1")).await;
        let paid = paid.unwrap();
        assert_eq!(paid.repeated, operation != 20);
        assert_eq!(paid.payment.status, PaymentStatus::Booked);
        let entry = paid.entry.unwrap();
        assert_eq!((entry.amount, entry.operation), (usd("10"), op(20)));
    }
    assert_eq!(account(&*ledger, 1).await.credit, usd("10"));
    let mut other = payment(customer, 30, "PI-1");
    other.credit = usd("11");
    assert!(matches!(
        refused(ledger.perform(other).await),
        Refusal::ReferenceUsed { .. }
    ));
    let plain = top_up(1, 31, "5", "pi-1");
    assert!(matches!(
        refused(ledger.perform(plain).await),
        Refusal::ReferenceUsed { .. }
    ));
    let told_for_its_key = ledger.perform(top_up(1, 33, "10", "pi-1")).await.unwrap();
    assert!(told_for_its_key.repeated);
    assert_eq!(account(&*ledger, 1).await.credit, usd("10"));
    let found = ledger.payment(" Pi-1").await.unwrap().unwrap();
    assert_eq!(found.paid.gross, gross("11.90"));
    let mut nonsense = payment(customer, 32, "pi-2");
    nonsense.paid.currency = "eur".to_owned();
    assert!(matches!(
        refused(ledger.perform(nonsense).await),
        Refusal::NotApplicable(_)
    ));
    sound(&*ledger).await;
}

pub(crate) async fn what_went_back_is_taken_once(ledger: SharedLedger) {
    use ReversalKind::{Dispute, DisputeWon, Refund};
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let customer = made.customer.id;
    ledger.perform(payment(customer, 20, "pi-1")).await.unwrap();
    let early = reversal("pi-2", 21, Refund, "1", "re-0");
    assert_eq!(
        refused(ledger.perform(early).await),
        Refusal::NoSuchPayment("pi-2".to_owned())
    );
    for (operation, kind, told, name, moved, credit) in [
        (30, Refund, "5.95", "re-1", Some("-5"), "5"),
        (31, Refund, "5.95", "re-1", Some("-5"), "5"),
        (32, Refund, "5.95", "re-2", None, "5"),
        (33, Dispute, "11.90", "dp-1", Some("-5"), "0"),
        (34, Refund, "11.90", "re-3", None, "0"),
        (35, DisputeWon, "11.90", "dp-2", None, "0"),
    ] {
        let done = ledger
            .perform(reversal("pi-1", operation, kind, told, name))
            .await
            .unwrap();
        assert_eq!(
            done.entry.map(|entry| entry.amount),
            moved.map(usd),
            "{name} {told}"
        );
        assert_eq!(account(&*ledger, 1).await.credit, usd(credit));
    }
    assert_eq!(claim(&*ledger, customer).await, usd("0"));
    // The name of a message is spent with it.
    let other = reversal("pi-1", 40, DisputeWon, "11.90", "re-1");
    assert!(matches!(
        refused(ledger.perform(other).await),
        Refusal::ReferenceUsed { .. }
    ));
    // A top-up without particulars was paid in dollars.
    ledger.perform(top_up(1, 41, "8", "cash-1")).await.unwrap();
    let back = reversal("cash-1", 42, Refund, "2", "re-9");
    let back = ledger.perform(back).await.unwrap();
    assert_eq!(back.entry.unwrap().amount, usd("-2"));
    sound(&*ledger).await;
}

pub(crate) async fn what_is_not_there_is_a_claim_that_is_paid_first(ledger: SharedLedger) {
    use ReversalKind::{Dispute, DisputeWon};
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let customer = made.customer.id;
    ledger.perform(payment(customer, 20, "pi-1")).await.unwrap();
    ledger.perform(new_hold(1, 100, "4")).await.unwrap();
    ledger.perform(new_hold(1, 101, "3")).await.unwrap();
    ledger
        .perform(Arc::new(finish(101, 3_000_000)))
        .await
        .unwrap();
    let taken = reversal("pi-1", 30, Dispute, "11.90", "dp-1");
    let taken = ledger.perform(taken).await.unwrap();
    assert_eq!(taken.entry.unwrap().amount, usd("-3"));
    assert_eq!(claim(&*ledger, customer).await, usd("7"));
    // It refuses by itself, and what a hold releases pays it.
    assert!(matches!(
        refused(ledger.perform(new_hold(1, 102, "0")).await),
        Refusal::Insufficient { .. }
    ));
    let ended = ledger
        .perform(Arc::new(finish(100, 1_000_000)))
        .await
        .unwrap();
    assert_eq!((ended.charge, ended.remaining), (usd("1"), usd("0")));
    assert_eq!(claim(&*ledger, customer).await, usd("4"));
    let again = ledger
        .perform(Arc::new(finish(100, 1_000_000)))
        .await
        .unwrap();
    assert_eq!(again.remaining, usd("0"));
    // So does a refund, and a top-up ends it.
    let reason = CreditKind::Refund {
        request: op(101),
        reason: "late".to_owned(),
    };
    ledger
        .perform(credit(1, 31, reason, "1", "rf-1"))
        .await
        .unwrap();
    assert_eq!(claim(&*ledger, customer).await, usd("3"));
    let paid = ledger.perform(top_up(1, 32, "5", "inv-2")).await.unwrap();
    assert_eq!(
        (paid.customer.claim, paid.customer.account.available()),
        (usd("0"), usd("2"))
    );
    ledger.perform(new_hold(1, 103, "1")).await.unwrap();
    // A dispute that is won gives back everything that was taken for it.
    let won = reversal("pi-1", 33, DisputeWon, "11.90", "dp-2");
    let won = ledger.perform(won).await.unwrap();
    assert_eq!(won.entry.unwrap().amount, usd("10"));
    assert_eq!(won.customer.account.available(), usd("11"));
    sound(&*ledger).await;
}

pub(crate) async fn a_payment_that_cannot_be_booked_is_kept(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let other = ledger.perform(new_key(2, 11, None)).await.unwrap();
    let (closed, open) = (made.customer.id, other.customer.id);
    let change = CustomerChange {
        customer: closed,
        change: CustomerAct::Close,
        act: act(12, 200),
    };
    ledger.perform(change).await.unwrap();
    for (operation, name) in [(20, "pi-1"), (21, "pi-1"), (22, "pi-2")] {
        let kept = ledger
            .perform(payment(closed, operation, name))
            .await
            .unwrap();
        assert_eq!(kept.entry, None);
        assert!(
            matches!(kept.payment.status, PaymentStatus::Unapplied { ref why } if why.contains("closed"))
        );
    }
    assert_eq!(ledger.unapplied().await.unwrap().len(), 2);
    let reason = "a gift".to_owned();
    let is_paid = false;
    let gift = CreditKind::Adjust { reason, is_paid };
    let gift = credit(2, 23, gift, "10", "pi-1");
    assert!(matches!(
        refused(ledger.perform(gift).await),
        Refusal::ReferenceUsed { .. }
    ));
    // Half of it goes back before anybody has it.
    let back = reversal("pi-1", 24, ReversalKind::Refund, "5.95", "re-1");
    assert_eq!(ledger.perform(back).await.unwrap().entry, None);
    let ending = |payment: &str, operation, end| UnappliedAct {
        payment: payment.to_owned(),
        end,
        act: act(operation, 400),
    };
    for operation in [30, 30] {
        let assigned = ending("pi-1", operation, UnappliedEnd::Assign(open));
        let assigned = ledger.perform(assigned).await.unwrap();
        assert_eq!(assigned.entry.unwrap().amount, usd("10"));
        assert_eq!(assigned.customer.account.balance(), usd("5"));
    }
    // Its processor tells about it again, and knows nothing of the other customer.
    let again = ledger.perform(payment(closed, 25, "pi-1")).await.unwrap();
    assert!(again.repeated);
    assert_eq!(
        (again.customer.id, again.entry.unwrap().operation),
        (open, op(30))
    );
    let twice = ending("pi-1", 31, UnappliedEnd::Assign(open));
    assert!(matches!(
        refused(ledger.perform(twice).await),
        Refusal::NotApplicable(_)
    ));
    let reason = "by bank transfer".to_owned();
    let returned = ending("pi-2", 32, UnappliedEnd::Return { reason });
    let returned = ledger.perform(returned).await.unwrap();
    assert_eq!(returned.payment.status, PaymentStatus::Returned);
    assert_eq!(ledger.unapplied().await.unwrap(), []);
    sound(&*ledger).await;
}

/// Every order of the same messages, some of them twice, with spending before them, ends in the same.
pub(crate) async fn any_order_of_messages_ends_in_the_same(ledger: SharedLedger) {
    use ReversalKind::{Dispute, DisputeWon, Refund};
    let messages = [
        (Refund, "2.38"),
        (Refund, "5.95"),
        (Dispute, "11.90"),
        (DisputeWon, "3.57"),
        (Refund, "2.38"),
    ];
    let mut ends = Vec::new();
    for (order, number) in (1..=20_u64).enumerate() {
        let first = number * 100;
        let made = ledger.perform(new_key(number, first, None)).await;
        let customer = made.unwrap().customer.id;
        let name = format!("pi-{number}");
        let paid = payment(customer, first + 1, &name);
        ledger.perform(paid).await.unwrap();
        let mut hold = new_hold(number, first + 2, "6");
        hold.customer = customer;
        ledger.perform(hold).await.unwrap();
        ledger
            .perform(Arc::new(finish(first + 2, 6_000_000)))
            .await
            .unwrap();
        for step in 0..messages.len() {
            // A different walk through the messages for each customer.
            let stride = [1, 2, 3, 4][order % 4];
            let place = (order / 4 + step * stride) % messages.len();
            let (kind, told) = messages[place];
            let operation = first + 10 + step as u64;
            let text = format!("msg-{number}-{step}");
            let told = reversal(&name, operation, kind, told, &text);
            ledger.perform(told).await.unwrap();
        }
        let payment = ledger.payment(&name).await.unwrap().unwrap();
        let found = ledger.find_customer(customer).await.unwrap().unwrap();
        ends.push((payment.registers, found.claim, found.account));
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    assert_eq!(ends[0].1, usd("6"), "all of it is due, and 4 were there");
    sound(&*ledger).await;
}

/// Part of it was captured, or the buyer paid in a currency of their own: the money came, and nobody knows for what.
pub(crate) async fn a_payment_of_another_sum_is_kept(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let asked = |currency: &str, sum: &str| {
        Some(AskedSum {
            currency: currency.to_owned(),
            gross: gross(sum),
        })
    };
    for (operation, currency, sum) in [
        (20_u64, "EUR", "11.91"),
        (21, "USD", "11.90"),
        (22, "JPY", "1190"),
    ] {
        let new = NewPayment {
            expected: asked(currency, sum),
            ..payment(made.customer.id, operation, &format!("pi-{operation}"))
        };
        for repeated in [false, true] {
            let kept = ledger.perform(new.clone()).await.unwrap();
            assert_eq!((kept.repeated, kept.entry), (repeated, None));
            let why = format!(
                "11.90 EUR was paid where {} {currency} was asked",
                gross(sum)
            );
            assert_eq!(kept.payment.status, PaymentStatus::Unapplied { why });
        }
    }
    let right = NewPayment {
        expected: asked("EUR", "11.9"),
        ..payment(made.customer.id, 30, "pi-30")
    };
    let booked = ledger.perform(right).await.unwrap();
    assert_eq!(booked.payment.status, PaymentStatus::Booked);
    assert_eq!(ledger.unapplied().await.unwrap().len(), 3);
    let told = events(&*ledger, 6).await;
    let told = told
        .iter()
        .filter(|event| event.kind == EventKind::TopUpUnapplied);
    assert_eq!(told.count(), 3);
    // A person looks at it, and it buys what it bought.
    let assign = UnappliedAct {
        payment: "pi-22".to_owned(),
        end: UnappliedEnd::Assign(made.customer.id),
        act: act(40, 400),
    };
    ledger.perform(assign).await.unwrap();
    assert_eq!(account(&*ledger, 1).await.credit, usd("20"));
    sound(&*ledger).await;
}

/// As its processor names both, in whatever currency.
pub(crate) async fn what_goes_back_is_a_part_of_the_payment(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let paid = payment(made.customer.id, 20, "pi-1");
    ledger.perform(paid).await.unwrap();
    let back = |operation: u64, kind, part: &str, whole: &str| NewReversal {
        whole: Some(gross(whole)),
        ..reversal("pi-1", operation, kind, part, &format!("re-{operation}"))
    };
    use ReversalKind::{Dispute, DisputeWon, Refund};
    for (operation, kind, part, whole, refunded, credit) in [
        // Yen, of which there are many: half.
        (30, Refund, "1011", "2022", "5.95", "5"),
        // Told again in its own currency, and less in another one: nothing new.
        (31, Refund, "5.95", "11.90", "5.95", "5"),
        (32, Refund, "1", "1190", "5.95", "5"),
        // Two thirds, rounded down.
        (33, Refund, "2", "3", "7.9333", "3.333361344538"),
        (34, Dispute, "9999", "9999", "7.9333", "0"),
        (35, DisputeWon, "9999", "9998", "7.9333", "3.333361344538"),
        // All of it, and more cannot go back.
        (36, Refund, "1300", "1299", "11.90", "0"),
    ] {
        let moved = ledger.perform(back(operation, kind, part, whole)).await;
        let registers = moved.unwrap().payment.registers;
        assert_eq!(registers.refunded, gross(refunded), "{operation}");
        assert_eq!(
            account(&*ledger, 1).await.credit,
            usd(credit),
            "{operation}"
        );
    }
    let reasons = ledger.entries(EntryQuery::default()).await.unwrap();
    let first = reasons.iter().find_map(|entry| entry.reason.clone());
    assert_eq!(first.unwrap(), "refund of payment pi-1, 5.95 so far");
    let nothing = refused(ledger.perform(back(40, Refund, "0", "0")).await);
    assert!(matches!(nothing, Refusal::Limit(_)), "{nothing}");
    sound(&*ledger).await;
}
