//! Reservations: they count against the daily bound of their token, end by payment, by hand and by time, and move no money.

use farebox_ledger::*;

use super::common::*;
use super::refused;

const SHOP: u8 = 1;
const OTHER: u8 = 2;

/// Two tokens that sell, of a hundred dollars a day each, and one that manages.
async fn tokens(ledger: &dyn Ledger) {
    for (number, role, daily) in [
        (SHOP, TokenRole::Sell, Some("100")),
        (OTHER, TokenRole::Sell, Some("100")),
        (3, TokenRole::Manage, None),
    ] {
        let new = new_token(number, 900 + u64::from(number), role, daily);
        ledger.perform(new).await.unwrap();
    }
    for number in [1, 2] {
        ledger.perform(new_customer(number, number)).await.unwrap();
    }
}

fn in_minutes(minutes: i64) -> Timestamp {
    Timestamp::from_millis(clock::now().millis() + minutes * 60_000)
}

fn reservation(number: u64, dollars: &str) -> NewReservation {
    NewReservation {
        id: ReservationId::from_random(number),
        prolongs: false,
        customer: None,
        plan: None,
        credit: usd(dollars),
        until: in_minutes(20),
        act: act(1_000 + number, 400),
    }
}

async fn reserve(ledger: &dyn Ledger, new: NewReservation) -> Result<Reservation, LedgerError> {
    let answered = ledger.ask(asked(SHOP, 400, new.into())).await?;
    Reservation::try_from(answered.outcome.unwrap())
}

async fn end(ledger: &dyn Ledger, token: u8, number: u64) {
    let id = ReservationId::from_random(number);
    let act = act(2_000 + number, 400);
    let end = EndReservation { id, act };
    ledger.ask(asked(token, 400, end.into())).await.unwrap();
}

async fn pay(
    ledger: &dyn Ledger,
    operation: u64,
    dollars: &str,
    reservation: Option<u64>,
) -> PaymentStatus {
    let new = NewPayment {
        reservation: reservation.map(ReservationId::from_random),
        ..new_payment(1, operation, dollars, &format!("pi-{operation}"))
    };
    let paid = ledger.ask(asked(SHOP, 400, new.into())).await.unwrap();
    let paid = PaymentMoved::try_from(paid.outcome.unwrap()).unwrap();
    paid.payment.status
}

fn why(status: PaymentStatus) -> String {
    match status {
        PaymentStatus::Unapplied { why } => why,
        other => panic!("{other:?}"),
    }
}

fn sold_out(result: Result<Reservation, LedgerError>) -> SoldOut {
    match refused(result) {
        Refusal::SoldOut(sold_out) => *sold_out,
        other => panic!("{other}"),
    }
}

pub(crate) async fn what_is_reserved_counts_until_it_ends(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let first = reserve(&*ledger, reservation(1, "30")).await.unwrap();
    // The same again is the same; another token's bound is another one.
    let same = reserve(&*ledger, reservation(1, "30")).await.unwrap();
    assert_eq!((same.at, same.credit), (first.at, first.credit));
    let theirs = reservation(9, "50");
    ledger.ask(asked(OTHER, 400, theirs.into())).await.unwrap();
    let second = reserve(&*ledger, reservation(2, "20")).await.unwrap();
    assert!(second.until <= in_minutes(20));
    let full = sold_out(reserve(&*ledger, reservation(3, "1")).await);
    assert_eq!(full.most, usd("0"));
    assert!(full.free_at.is_some_and(|at| at <= in_minutes(20)));
    // A payment without one finds what is left of the day: 100 less 50.
    let late = why(pay(&*ledger, 10, "50.01", None).await);
    assert!(
        late.contains("0.00 are done today, 50.00 are reserved"),
        "{late}"
    );
    assert_eq!(pay(&*ledger, 11, "50", None).await, PaymentStatus::Booked);
    // Now only what was reserved can be booked, each for its own.
    assert_eq!(
        pay(&*ledger, 12, "30", Some(1)).await,
        PaymentStatus::Booked
    );
    let twice = why(pay(&*ledger, 13, "30", Some(1)).await);
    assert!(twice.contains("had ended before"), "{twice}");
    let foreign = why(pay(&*ledger, 14, "20", Some(9)).await);
    assert!(foreign.contains("had ended before"), "{foreign}");
    // Nobody else gives it up; whoever made it does, as often as it likes.
    end(&*ledger, OTHER, 2).await;
    assert_eq!(ledger.all::<Reservation>().await.unwrap(), {
        let theirs = ledger.all::<Reservation>().await.unwrap().pop().unwrap();
        [second, theirs]
    });
    end(&*ledger, SHOP, 2).await;
    end(&*ledger, SHOP, 2).await;
    assert_eq!(
        pay(&*ledger, 15, "20", Some(2)).await,
        PaymentStatus::Booked
    );
    let left = ledger.all::<Reservation>().await.unwrap();
    assert_eq!(left.len(), 1, "the other token's");
    sound(&*ledger).await;
}

pub(crate) async fn a_payment_takes_its_own_place_and_no_other(ledger: SharedLedger) {
    tokens(&*ledger).await;
    reserve(&*ledger, reservation(1, "50")).await.unwrap();
    assert_eq!(pay(&*ledger, 10, "50", None).await, PaymentStatus::Booked);
    // It was paid less than it was kept for: what is left is free. Told again, and under another name, it takes no second place.
    assert_eq!(
        pay(&*ledger, 11, "40", Some(1)).await,
        PaymentStatus::Booked
    );
    assert_eq!(
        pay(&*ledger, 11, "40", Some(1)).await,
        PaymentStatus::Booked
    );
    reserve(&*ledger, reservation(2, "5")).await.unwrap();
    // A repetition that names another one ends that, too.
    assert_eq!(
        pay(&*ledger, 11, "40", Some(2)).await,
        PaymentStatus::Booked
    );
    assert_eq!(ledger.all::<Reservation>().await.unwrap(), []);
    // Kept as unapplied, it has come all the same.
    reserve(&*ledger, reservation(3, "5")).await.unwrap();
    let much = why(pay(&*ledger, 12, "11", Some(3)).await);
    assert!(!much.contains("ended"), "{much}");
    assert_eq!(ledger.all::<Reservation>().await.unwrap(), []);
    sound(&*ledger).await;
}

pub(crate) async fn a_checkout_that_is_completed_unpaid_keeps_its_place(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let longer = |number, dollars: &str| NewReservation {
        prolongs: true,
        until: in_minutes(60 * 24 * 30),
        ..reservation(number, dollars)
    };
    let unknown = refused(reserve(&*ledger, longer(1, "50")).await);
    assert_eq!(
        unknown,
        Refusal::NoSuchReservation(ReservationId::from_random(1))
    );
    let made = reserve(&*ledger, reservation(1, "50")).await.unwrap();
    let kept = reserve(&*ledger, longer(1, "50")).await.unwrap();
    let weeks = 14 * 24 * 60 * 60 * 1_000;
    assert_eq!(kept.until.millis(), made.at.millis() + weeks);
    let other = refused(reserve(&*ledger, longer(1, "49")).await);
    assert!(matches!(other, Refusal::NotApplicable(_)), "{other}");
    // One whose time is over takes a place only if there is one.
    let short = NewReservation {
        until: Timestamp::from_millis(clock::now().millis() + 300),
        ..reservation(2, "10")
    };
    end(&*ledger, SHOP, 1).await;
    reserve(&*ledger, short).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    reserve(&*ledger, reservation(3, "45")).await.unwrap();
    sold_out(reserve(&*ledger, longer(2, "10")).await);
    end(&*ledger, SHOP, 3).await;
    let anew = reserve(&*ledger, longer(2, "10")).await.unwrap();
    assert!(anew.until > in_minutes(60 * 24 * 13));
    // What was paid is not kept again by a message that comes late.
    pay(&*ledger, 10, "10", Some(2)).await;
    let paid = refused(reserve(&*ledger, longer(2, "10")).await);
    assert!(matches!(paid, Refusal::NoSuchReservation(_)), "{paid}");
    sound(&*ledger).await;
}

pub(crate) async fn nothing_is_reserved_that_could_not_be_booked(ledger: SharedLedger) {
    tokens(&*ledger).await;
    let of = |number, customer: u64| NewReservation {
        customer: Some(CustomerId::from_random(customer)),
        ..reservation(number, "10")
    };
    reserve(&*ledger, of(1, 1)).await.unwrap();
    let unknown = refused(reserve(&*ledger, of(2, 77)).await);
    assert!(matches!(unknown, Refusal::NoSuchCustomer(_)), "{unknown}");
    let suspend = CustomerChange {
        customer: CustomerId::from_random(2),
        change: CustomerAct::Suspend,
        act: act(50, 400),
    };
    ledger.perform(suspend).await.unwrap();
    let stopped = refused(reserve(&*ledger, of(2, 2)).await);
    assert_eq!(stopped, Refusal::CustomerStopped(CustomerStatus::Suspended));
    // A customer with the highest balance.
    for operation in 60..70 {
        let rich = new_payment(1, operation, "100000", &format!("big-{operation}"));
        ledger.perform(rich).await.unwrap();
    }
    let rich = refused(reserve(&*ledger, of(3, 1)).await);
    assert!(matches!(rich, Refusal::Limit(_)), "{rich}");
    for wrong in [
        NewReservation {
            until: at(400),
            ..reservation(4, "1")
        },
        reservation(4, "0"),
        reservation(4, "100001"),
    ] {
        let refusal = refused(reserve(&*ledger, wrong).await);
        assert!(matches!(refusal, Refusal::Limit(_)), "{refusal}");
    }
    // Only tokens reserve.
    let house = refused(ledger.perform(reservation(5, "1")).await);
    assert!(matches!(house, Refusal::NotAllowed(_)), "{house}");
    let unbounded = reservation(6, "100000");
    ledger.ask(asked(3, 400, unbounded.into())).await.unwrap();
    sound(&*ledger).await;
}
