//! What a stolen token does in a day, and what it does not.

use farebox_ledger::*;

use super::common::*;
use super::refused;

const SHOP: u8 = 1;

fn customer(number: u64) -> CustomerId {
    CustomerId::from_random(number)
}

/// A token that sells for thirty dollars a day, one that manages, and a customer of the first.
async fn tokens(ledger: &dyn Ledger) {
    for (number, role, daily) in [
        (SHOP, TokenRole::Sell, Some("30")),
        (2, TokenRole::Sell, Some("30")),
        (4, TokenRole::Manage, None),
    ] {
        let new = new_token(number, 900 + u64::from(number), role, daily);
        ledger.perform(new).await.unwrap();
    }
    let made = Operation::CreateCustomer(Box::new(new_customer(1, 10)));
    ledger.ask(asked(SHOP, 400, made)).await.unwrap();
}

fn pay(number: u64, operation: u64, dollars: &str, reference: &str) -> Operation {
    Operation::Pay(Box::new(new_payment(number, operation, dollars, reference)))
}

fn back(payment: &str, operation: u64, cumulative: &str) -> Operation {
    Operation::Reverse(Box::new(refund_of(payment, operation, cumulative)))
}

/// How many of these a token does until a bound stops it, and which.
async fn done(
    ledger: &dyn Ledger,
    operations: impl Iterator<Item = Operation>,
) -> (usize, DailyBound) {
    let mut done = 0;
    for operation in operations {
        match ledger.ask(asked(SHOP, 400, operation)).await {
            Ok(_) => done += 1,
            Err(LedgerError::Refused(Refusal::DailyReached(reached))) => {
                assert!(reached.ends_at > clock::now());
                return (done, reached.what);
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("nothing stopped it");
}

async fn moved(ledger: &dyn Ledger, by: u8, operation: Operation) -> PaymentMoved {
    let answered = ledger.ask(asked(by, 400, operation)).await.unwrap();
    match answered.outcome {
        Some(Outcome::Payment(moved)) => *moved,
        other => panic!("{other:?}"),
    }
}

async fn balance(ledger: &dyn Ledger, number: u64) -> Amount {
    let found = ledger.find_customer(customer(number)).await.unwrap();
    found.unwrap().account.balance()
}

pub(crate) async fn a_stolen_token_does_so_much_in_a_day_and_no_more(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let made = |number| Operation::CreateCustomer(Box::new(new_customer(number, 1_000 + number)));
    let customers = done(&*ledger, (100..).map(made)).await;
    assert_eq!(customers, (29, DailyBound::Customers), "one was there");
    // Neither with a key nor with a payment is there one more.
    let mut first = new_key(200, 1_901, None);
    first.within.customer = Some(customer(200));
    let enrol = Enrolment {
        customer: new_customer(200, 1_900),
        key: first,
    }
    .into();
    refused(ledger.ask(asked(SHOP, 400, enrol)).await);
    let payment = new_payment(200, 1_903, "1", "pi-first");
    let paid = FirstPayment {
        customer: new_customer(200, 1_902),
        payment,
    }
    .into();
    refused(ledger.ask(asked(SHOP, 400, paid)).await);
    assert_eq!(ledger.find_customer(customer(200)).await.unwrap(), None);
    assert_eq!(ledger.payment("pi-first").await.unwrap(), None);
    // A key for each, whose secrets are replaced so many times.
    for number in 100..129 {
        let mut new = new_key(number, 2_000 + number, None);
        new.within.customer = Some(customer(number));
        let create = Operation::Create(Box::new(new));
        ledger.ask(asked(SHOP, 400, create)).await.unwrap();
    }
    let reissue = |number: u64| {
        let what = Change::Reissue { secret: secret(9) };
        Operation::Change(Box::new(change(100 + number % 29, 3_000 + number, what)))
    };
    let reissued = done(&*ledger, (0..).map(reissue)).await;
    assert_eq!(reissued, (30, DailyBound::Reissues));
    // Two thousand made-up references: what is beyond the daily bound is kept, and not for ever.
    let payment = |number: u64| pay(1, 10_000 + number, "1", &format!("pi-{number}"));
    let paid = done(&*ledger, (0..2_000).map(payment)).await;
    assert_eq!(paid, (230, DailyBound::Unapplied));
    assert_eq!(balance(&*ledger, 1).await, usd("30"));
    assert_eq!(ledger.unapplied().await.unwrap().len(), 200);
    // What was booked is taken back, and after that nothing.
    let back = |number: u64| back(&format!("pi-{number}"), 20_000 + number, "1");
    for number in 0..30 {
        ledger.ask(asked(SHOP, 400, back(number))).await.unwrap();
    }
    assert_eq!(balance(&*ledger, 1).await, usd("0"));
    let today = UtcDay::of(clock::now());
    let days = ledger.token_days(today).await.unwrap();
    let shop = TokenId::from_random(SHOP.into());
    let expected = TokenDay {
        booked: usd("30"),
        payments: 30,
        customers: 30,
        keys: 29,
        reissues: 30,
        reversed: usd("30"),
        reversed_payments: 30,
        unapplied: 200,
        ..TokenDay::empty(shop, today)
    };
    assert_eq!(days, [expected]);
    // Another one has a day of its own, and who manages has no bound.
    let other = new_customer(300, 4_000);
    let other = Operation::CreateCustomer(Box::new(other));
    ledger.ask(asked(2, 400, other)).await.unwrap();
    ledger.ask(asked(4, 400, made(301))).await.unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn a_reversal_beyond_the_bound_waits_and_is_told(ledger: SharedLedger) {
    tokens(&*ledger).await;
    for (number, reference) in [(20, "pi-1"), (21, "pi-2"), (22, "pi-3")] {
        let paid = moved(&*ledger, SHOP, pay(1, number, "10", reference)).await;
        assert_eq!(paid.payment.status, PaymentStatus::Booked);
    }
    let dispute = |payment: &str, operation, kind, cumulative: &str| {
        Operation::Reverse(Box::new(NewReversal {
            kind,
            ..refund_of(payment, operation, cumulative)
        }))
    };
    use ReversalKind::{Dispute, DisputeWon};
    for (operation, reference) in [(30, "pi-1"), (31, "pi-2")] {
        moved(&*ledger, SHOP, dispute(reference, operation, Dispute, "10")).await;
    }
    // Won and lost again, the credit of a dispute counts each time: the bound of what is credited is reached first.
    let won = moved(&*ledger, SHOP, dispute("pi-1", 32, DisputeWon, "10")).await;
    assert_eq!((won.entry, won.payment.waiting.len()), (None, 1));
    assert_eq!(balance(&*ledger, 1).await, usd("10"));
    let told = moved(&*ledger, SHOP, back("pi-3", 33, "10")).await;
    assert!(told.entry.is_some());
    assert_eq!(balance(&*ledger, 1).await, usd("0"));
    // Thirty were taken back today. What it told of and somebody else booked is its own as well, and waits.
    let kept = moved(&*ledger, SHOP, pay(1, 34, "20", "pi-4")).await;
    assert!(matches!(
        kept.payment.status,
        PaymentStatus::Unapplied { .. }
    ));
    let assign = UnappliedAct {
        payment: "pi-4".to_owned(),
        end: UnappliedEnd::Assign(customer(1)),
        act: act(35, 400),
    };
    moved(&*ledger, 4, Operation::EndUnapplied(Box::new(assign))).await;
    let part = moved(&*ledger, SHOP, back("pi-4", 36, "5")).await;
    assert_eq!(
        (part.entry, part.customer.account.balance()),
        (None, usd("20"))
    );
    // More of it raises what waits.
    moved(&*ledger, SHOP, back("pi-4", 40, "20")).await;
    let waits = ledger.unapplied().await.unwrap();
    let waiting = |payment: &Payment| {
        let waiting = &payment.waiting[0];
        (waiting.kind, waiting.cumulative, waiting.reference.clone())
    };
    let all: Vec<_> = waits.iter().map(waiting).collect();
    let gross = |text| Gross::parse(text).unwrap();
    assert_eq!(
        all,
        [
            (DisputeWon, gross("10"), "refund-32".to_owned()),
            (ReversalKind::Refund, gross("20"), "refund-40".to_owned())
        ]
    );
    // Told again it waits on, and is told of once.
    let acts = ledger.audit(None, None, 999).await.unwrap().len();
    let again = moved(&*ledger, SHOP, dispute("pi-1", 37, DisputeWon, "10")).await;
    assert_eq!((again.entry, again.repeated), (None, true));
    assert_eq!(ledger.audit(None, None, 999).await.unwrap().len(), acts);
    let events = events(&*ledger, 13).await;
    let told = events
        .iter()
        .filter(|event| event.kind == EventKind::ReversalUnapplied);
    assert_eq!(told.count(), 2, "one for each payment");
    // A command, or who manages, books it; then nothing waits.
    let booked = moved(&*ledger, 4, dispute("pi-1", 38, DisputeWon, "10")).await;
    assert_eq!(booked.entry.unwrap().amount, usd("10"));
    assert_eq!(booked.payment.waiting, []);
    let back = moved(&*ledger, 4, back("pi-4", 41, "20")).await;
    assert_eq!(back.entry.unwrap().amount, usd("-20"));
    assert_eq!(ledger.unapplied().await.unwrap(), []);
    let same = moved(&*ledger, SHOP, dispute("pi-1", 39, DisputeWon, "10")).await;
    assert!(same.repeated);
    sound(&*ledger).await;
}

pub(crate) async fn a_recall_of_one_bad_day_fits(ledger: SharedLedger) {
    tokens(&*ledger).await;
    for number in 0..30 {
        let paid = pay(1, 100 + number, "1", &format!("pi-{number}"));
        ledger.ask(asked(SHOP, 400, paid)).await.unwrap();
    }
    // Each in two messages, and each message twice.
    for number in 0..30_u64 {
        for (place, cumulative) in [(0, "0.4"), (1, "0.4"), (2, "1"), (3, "1")] {
            let operation = 1_000 + number * 10 + place;
            let told = back(&format!("pi-{number}"), operation, cumulative);
            let told = moved(&*ledger, SHOP, told).await;
            assert_eq!(told.payment.waiting, []);
        }
    }
    assert_eq!(balance(&*ledger, 1).await, usd("0"));
    let days = ledger.token_days(UtcDay::of(clock::now())).await.unwrap();
    assert_eq!(
        (days[0].reversed, days[0].reversed_payments),
        (usd("30"), 30)
    );
    sound(&*ledger).await;
}

pub(crate) async fn a_name_that_was_made_up_is_taken_over(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let victim = new_customer(2, 11);
    ledger.perform(victim).await.unwrap();
    for (number, reference) in (0..4).zip(["inv-1", "inv-2", "inv-3", "inv-4"]) {
        let kept = moved(&*ledger, SHOP, pay(1, 20 + number, "31", reference)).await;
        assert!(matches!(
            kept.payment.status,
            PaymentStatus::Unapplied { .. }
        ));
        // Whoever stole the token says that it went back, too.
        moved(&*ledger, SHOP, back(reference, 30 + number, "31")).await;
    }
    // Not by a token that sells.
    let theirs = refused(ledger.ask(asked(2, 400, pay(2, 40, "5", "INV-1"))).await);
    assert!(matches!(theirs, Refusal::ReferenceUsed { .. }), "{theirs}");
    // By who manages, with a payment; by a command, with a top-up, and with a key's first credit.
    let booked = moved(&*ledger, 4, pay(2, 41, "5", "INV-1")).await;
    assert_eq!(
        (booked.payment.status, booked.payment.customer),
        (PaymentStatus::Booked, customer(2))
    );
    assert_eq!(booked.payment.registers, Registers::default());
    let typed = Credit {
        to: customer(2).into(),
        ..top_up(2, 42, "6", "inv-2")
    };
    assert!(!ledger.perform(typed.clone()).await.unwrap().repeated);
    assert!(ledger.perform(typed).await.unwrap().repeated);
    let mut first = new_key(7, 43, Some("7"));
    first.first_credit = Some((usd("7"), "inv-3".to_owned()));
    ledger.perform(first).await.unwrap();
    assert_eq!(balance(&*ledger, 2).await, usd("11"));
    let left = ledger.unapplied().await.unwrap();
    assert_eq!((left.len(), left[0].reference.as_str()), (1, "inv-4"));
    // What goes back of it is that of the new payment.
    let told = moved(&*ledger, 4, back("inv-2", 44, "6")).await;
    assert_eq!(
        (told.payment.credit, told.customer.id),
        (usd("6"), customer(2))
    );
    assert_eq!(balance(&*ledger, 2).await, usd("5"));
    // Only a payment takes it over, and only from one that stands nowhere.
    let corrected = Credit {
        kind: CreditKind::Adjust {
            reason: "gift".to_owned(),
            is_paid: false,
        },
        to: customer(2).into(),
        ..top_up(2, 45, "1", "inv-4")
    };
    let used = refused(ledger.perform(corrected).await);
    assert!(matches!(used, Refusal::ReferenceUsed { .. }), "{used}");
    let used = refused(ledger.ask(asked(4, 400, pay(1, 46, "9", "inv-2"))).await);
    assert!(matches!(used, Refusal::ReferenceUsed { .. }), "{used}");
    sound(&*ledger).await;
}
