//! Tokens of the admin API at three gateways at once: a daily bound is met exactly, and a request with one key is made once, whoever
//! hears of it, also while another gateway still works on it.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::*;

const GATEWAYS: usize = 3;

fn full() -> bool {
    std::env::var_os("FAREBOX_FULL").is_some()
}

async fn gateways(url: &str) -> Vec<Arc<PostgresLedger>> {
    let mut all = Vec::new();
    for _ in 0..GATEWAYS {
        all.push(gateway(url).await);
    }
    all
}

/// Of 24 payments of 40 cents at once, each of another customer, a bound of two dollars lets five be booked.
#[test]
fn no_gateway_credits_beyond_a_daily_bound() {
    with_cluster("the daily bound of a token", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        for round in 0..if full() { 200_u8 } else { 4 } {
            let first = 10_000 + u64::from(round) * 1_000;
            let new = new_token(round, first, TokenRole::Sell, Some("2"));
            ledgers[0].perform(new).await.unwrap();
            let racers = (0..24_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                tokio::spawn(async move {
                    let (customer, operation) = (first + racer, first + 100 + racer * 2);
                    let reference = format!("pi-{operation}");
                    let pay = FirstPayment {
                        customer: new_customer(customer, operation),
                        payment: new_payment(customer, operation + 1, "0.4", &reference),
                    };
                    let pay = pay.into();
                    match ledger.ask(asked(round, 300, pay)).await {
                        Ok(Answered {
                            outcome: Some(Outcome::Payment(paid)),
                            ..
                        }) => Some(paid.payment.status == PaymentStatus::Booked),
                        // Of 24 customers it may make 20.
                        Err(LedgerError::Refused(Refusal::DailyReached(_))) => None,
                        other => panic!("{other:?}"),
                    }
                })
            });
            let (mut made, mut booked) = (0, 0);
            for racer in racers.collect::<Vec<_>>() {
                if let Some(is_booked) = racer.await.unwrap() {
                    made += 1;
                    booked += usize::from(is_booked);
                }
            }
            assert_eq!((made, booked), (20, 5));
            let today = UtcDay::of(clock::now());
            let days = ledgers[1].token_days(today).await.unwrap();
            let token = TokenId::from_random(round.into());
            let day = days.iter().find(|day| day.token == token).unwrap();
            let expected = TokenDay {
                booked: usd("2"),
                payments: 5,
                customers: 20,
                unapplied: 15,
                ..TokenDay::empty(token, today)
            };
            assert_eq!(*day, expected);
        }
        sound(&*ledgers[0]).await;
    });
}

/// Of 24 buyers at once, each of whom wants 25 cents, a bound of two dollars lets four begin; whoever comes without is sold what is left,
/// and each of the four is sold theirs.
#[test]
fn no_gateway_reserves_beyond_half_of_a_daily_bound() {
    with_cluster("reservations of a token", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        ledgers[0].perform(new_customer(7, 7)).await.unwrap();
        for round in 0..if full() { 200_u8 } else { 4 } {
            let first = 10_000 + u64::from(round) * 1_000;
            let new = new_token(round, first, TokenRole::Sell, Some("2"));
            ledgers[0].perform(new).await.unwrap();
            let until = Timestamp::from_millis(clock::now().millis() + 600_000);
            let racers = (0..24_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                let id = ReservationId::from_random(first + racer);
                let new = NewReservation {
                    id,
                    prolongs: false,
                    customer: Some(CustomerId::from_random(7)),
                    plan: None,
                    credit: usd("0.25"),
                    until,
                    act: act(first + 100 + racer, 300),
                };
                tokio::spawn(async move {
                    match ledger.ask(asked(round, 300, new.into())).await {
                        Ok(_) => Some(id),
                        Err(LedgerError::Refused(Refusal::SoldOut(_))) => None,
                        Err(other) => panic!("{other}"),
                    }
                })
            });
            let mut kept = Vec::new();
            for racer in racers.collect::<Vec<_>>() {
                kept.extend(racer.await.unwrap());
            }
            assert_eq!(kept.len(), 4);
            // Twenty come without one, four of whom find room, while the four pay.
            let others = std::iter::repeat_n(None, 20);
            let payers = (0_u64..).zip(kept.into_iter().map(Some).chain(others));
            let payers = payers.map(|(payer, reservation)| {
                let ledger = Arc::clone(&ledgers[usize::try_from(payer).unwrap() % GATEWAYS]);
                let operation = first + 200 + payer;
                let pay = NewPayment {
                    reservation,
                    ..new_payment(7, operation, "0.25", &format!("pi-{operation}"))
                };
                tokio::spawn(async move {
                    let paid = ledger.ask(asked(round, 300, pay.into())).await.unwrap();
                    let paid = PaymentMoved::try_from(paid.outcome.unwrap()).unwrap();
                    (reservation.is_some(), paid.payment.status)
                })
            });
            let mut booked = [0, 0];
            for payer in payers.collect::<Vec<_>>() {
                let (is_kept, status) = payer.await.unwrap();
                booked[usize::from(is_kept)] += usize::from(status == PaymentStatus::Booked);
            }
            assert_eq!(booked, [4, 4]);
            assert_eq!(ledgers[1].all::<Reservation>().await.unwrap(), []);
        }
        sound(&*ledgers[0]).await;
    });
}

/// The same request at every gateway, eight times each, every time as another operation: one customer, one payment, one answer.
#[test]
fn a_request_that_every_gateway_hears_is_made_once() {
    with_cluster("one request at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        let new = new_token(1, 1, TokenRole::Sell, Some("100000"));
        ledgers[0].perform(new).await.unwrap();
        for round in 0..if full() { 300_u64 } else { 12 } {
            let racers = (0..24_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                tokio::spawn(async move {
                    let operation = 10_000 + round * 100 + racer * 2;
                    let mut first = new_key(operation, operation + 1, None);
                    first.within.customer = Some(CustomerId::from_random(operation));
                    let enrol = Enrolment {
                        customer: new_customer(operation, operation),
                        key: first,
                    };
                    let enrol = asked(1, 300, enrol.into());
                    let key = format!("round {round}");
                    ledger.ask(once(enrol, &key, "body")).await.unwrap()
                })
            });
            let mut answers = Vec::new();
            for racer in racers.collect::<Vec<_>>() {
                answers.push(racer.await.unwrap());
            }
            let made = answers.iter().filter(|answered| !answered.is_replay());
            assert_eq!(made.count(), 1);
            let first = &answers[0].answer;
            assert!(answers.iter().all(|answered| answered.answer == *first));
        }
        let customers = CustomerQuery {
            limit: 1_000,
            ..CustomerQuery::default()
        };
        let customers = ledgers[0].list_customers(customers).await.unwrap();
        assert_eq!(customers.len(), if full() { 300 } else { 12 });
        sound(&*ledgers[0]).await;
    });
}

/// Another gateway holds the key and does not come to an end: who repeats the request waits two seconds, and is told so.
#[test]
fn who_repeats_a_request_that_still_runs_waits_two_seconds() {
    with_cluster("a request that still runs", async |cluster| {
        let database = cluster.database();
        let ledger = gateway(&cluster.url(&database)).await;
        let new = new_token(1, 1, TokenRole::Manage, None);
        ledger.perform(new).await.unwrap();
        let ask = async |operation| {
            let made = Operation::CreateCustomer(Box::new(new_customer(7, operation)));
            ledger.ask(once(asked(1, 300, made), "a", "body")).await
        };
        ask(10).await.unwrap();
        // Now as if another gateway were at it: nothing is written yet, and its lock is held for a while.
        let locked = "SELECT pg_advisory_lock(1717662310, ('x' || encode(substring(id FROM 1 FOR 4), 'hex'))::bit(32)::int) FROM answers; \
             DELETE FROM answers; SELECT pg_sleep(4)";
        let (of, server) = (
            database.clone(),
            common::cluster::Cluster::shared().unwrap(),
        );
        let other = std::thread::spawn(move || server.psql(&of, locked));
        let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        while cluster.psql(&database, sleeps).unwrap() != "1" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = Instant::now();
        let refused = ask(10).await.map(drop);
        assert!(
            matches!(refused, Err(LedgerError::Refused(Refusal::StillRunning))),
            "{refused:?}"
        );
        assert!(begun.elapsed() >= Duration::from_secs(2));
        // Nobody else waits for it.
        let plain = asked(
            1,
            300,
            Operation::CreateCustomer(Box::new(new_customer(8, 20))),
        );
        ledger.ask(once(plain, "b", "body")).await.unwrap();
        assert!(!other.is_finished(), "it was still at it");
        other.join().unwrap().unwrap();
        let again = ask(10).await.unwrap();
        assert!(!again.is_replay(), "the very same operation");
        assert!(ask(11).await.unwrap().is_replay());
    });
}

/// Two customers at three gateways, and one code for each round.
#[test]
fn a_voucher_is_worth_something_at_one_gateway_only() {
    with_cluster("vouchers at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        for number in [1, 2] {
            let new = new_key(number, number, None);
            ledgers[0].perform(new).await.unwrap();
        }
        let rounds = if full() { 50_u8 } else { 8 };
        ledgers[0].perform(new_lot(1, 20, rounds)).await.unwrap();
        for code in 0..rounds {
            let racers = (0..12_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                let operation = 1_000 + u64::from(code) * 100 + racer;
                tokio::spawn(async move {
                    let new = redemption(200 + code, 1 + racer % 2, operation);
                    match ledger.perform(new).await {
                        Ok(posted) => usize::from(!posted.repeated),
                        Err(LedgerError::Refused(Refusal::NoSuchVoucher)) => 0,
                        Err(other) => panic!("{other}"),
                    }
                })
            });
            let mut first = 0;
            for racer in racers.collect::<Vec<_>>() {
                first += racer.await.unwrap();
            }
            assert_eq!(first, 1);
        }
        let lot = ledgers[1].all::<Lot>().await.unwrap().remove(0);
        assert_eq!(lot.redeemed, u32::from(rounds));
        sound(&*ledgers[0]).await;
    });
}

/// Each round, three gateways edit the same customer as they all read it: one of them does, and the others are told.
#[test]
fn of_edits_of_one_state_at_several_gateways_one_is_made() {
    with_cluster("edits at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        let token = new_token(1, 1, TokenRole::Manage, None);
        ledgers[0].perform(token).await.unwrap();
        ledgers[0].perform(new_customer(7, 2)).await.unwrap();
        let customer = CustomerId::from_random(7);
        for round in 0..if full() { 300_u64 } else { 12 } {
            let position = ledgers[0].last_act(customer.into()).await.unwrap();
            let racers = (0..9_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                let edit = CustomerEdit {
                    label: Some(format!("racer {racer}")),
                    ..CustomerEdit::default()
                };
                let change = CustomerChange {
                    customer,
                    change: CustomerAct::Edit(edit),
                    act: act(1_000 + round * 100 + racer, 400),
                };
                let expected = ExpectedAct {
                    of: customer.into(),
                    position,
                };
                let edit = Asked {
                    expected: Some(expected),
                    ..asked(1, 400, Operation::ChangeCustomer(Box::new(change)))
                };
                tokio::spawn(async move {
                    match ledger.ask(edit).await {
                        Ok(_) => Some(racer),
                        Err(LedgerError::Refused(Refusal::ChangedSince { .. })) => None,
                        Err(other) => panic!("{other}"),
                    }
                })
            });
            let mut made = Vec::new();
            for racer in racers.collect::<Vec<_>>() {
                made.extend(racer.await.unwrap());
            }
            let found = ledgers[1].find_customer(customer).await.unwrap().unwrap();
            let label = |racer: &u64| format!("racer {racer}");
            let labels: Vec<String> = made.iter().map(label).collect();
            assert_eq!(labels, [found.settings.label]);
        }
        sound(&*ledgers[0]).await;
    });
}
