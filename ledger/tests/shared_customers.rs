//! Several keys of one customer at three gateways at once: the last dollar of its balance and of each kind of cap, and batches and moves
//! over shared customers, which never lock each other for good; and messages about payments that all of them hear. Few rounds for every day, 500 races and 10,000 pairs with
//! `FAREBOX_FULL=1`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;

use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::*;

const GATEWAYS: usize = 3;
const KEYS: u64 = 4;
const CUSTOMERS: u64 = 8;

fn full() -> bool {
    std::env::var_os("FAREBOX_FULL").is_some()
}

fn customer(number: u64) -> CustomerId {
    CustomerId::from_random(9_000 + number)
}

/// The number of a customer's key, unique among all.
fn key_number(of: u64, which: u64) -> u64 {
    100 + of * KEYS + which
}

/// A customer without anything else.
fn made_customer(number: u64, operation: u64) -> NewCustomer {
    NewCustomer {
        id: customer(number),
        ..new_customer(number, operation)
    }
}

/// A customer of so many dollars with its keys.
async fn make(ledger: &PostgresLedger, number: u64, dollars: &str) {
    let operation = 1_000_000 + number * 10;
    let new = made_customer(number, operation);
    ledger.perform(new).await.unwrap();
    for which in 0..KEYS {
        let mut key = new_key(key_number(number, which), operation + 1 + which, None);
        key.within.customer = Some(customer(number));
        ledger.perform(key).await.unwrap();
    }
    let paid = Credit {
        to: customer(number).into(),
        ..top_up(1, operation + 9, dollars, &format!("paid {number}"))
    };
    ledger.perform(paid).await.unwrap();
}

fn hold_of(number: u64, which: u64, request: u64, dollars: &str) -> NewHold {
    NewHold {
        customer: customer(number),
        ..new_hold(key_number(number, which), request, dollars)
    }
}

async fn gateways(url: &str) -> Vec<Arc<PostgresLedger>> {
    let mut all = Vec::new();
    for _ in 0..GATEWAYS {
        all.push(gateway(url).await);
    }
    all
}

/// What bounds a race to one dollar.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Balance,
    OfCustomer(CapInterval),
    OfKey(CapInterval),
    /// A default of the house, of customers or else of keys.
    Default(bool, CapInterval),
}

/// Puts defaults into force that bind in a race: none where something else does.
async fn set_defaults(ledger: &PostgresLedger, number: u64, bound: Bound) {
    let mut defaults = Defaults::default();
    if let Bound::Default(of_customers, interval) = bound {
        let cap = Cap {
            interval,
            model: None,
            limit: usd("1"),
        };
        let settings = if of_customers {
            &mut defaults.customer
        } else {
            &mut defaults.key
        };
        settings.caps.push(cap);
    }
    let act = act(4_000_000 + number, 2);
    ledger.perform(SetDefaults { defaults, act }).await.unwrap();
}

async fn bind(ledger: &PostgresLedger, number: u64, bound: Bound) {
    let cap = |interval| Cap {
        interval,
        model: None,
        limit: usd("1"),
    };
    let operation = 2_000_000 + number;
    match bound {
        Bound::Balance | Bound::Default(..) => {}
        Bound::OfCustomer(interval) => {
            let change = CustomerChange {
                customer: customer(number),
                change: CustomerAct::SetCap(cap(interval)),
                act: act(operation, 2),
            };
            ledger.perform(change).await.unwrap();
        }
        Bound::OfKey(interval) => {
            let change = KeyChange {
                key: key(key_number(number, 0)),
                change: Change::SetCap(cap(interval)),
                act: act(operation, 2),
            };
            ledger.perform(change).await.unwrap();
        }
    }
}

#[test]
fn nobody_gets_past_the_last_dollar_of_a_shared_purse() {
    with_cluster("the last dollar of a customer", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        let bounds: Vec<Bound> = std::iter::once(Bound::Balance)
            .chain(CapInterval::ALL.map(Bound::OfCustomer))
            .chain(CapInterval::ALL.map(Bound::OfKey))
            .chain(CapInterval::ALL.map(|interval| Bound::Default(true, interval)))
            .chain(CapInterval::ALL.map(|interval| Bound::Default(false, interval)))
            .collect();
        let rounds = if full() { 500 } else { bounds.len() as u64 };
        for round in 0..rounds {
            let bound = bounds[usize::try_from(round).unwrap() % bounds.len()];
            let dollars = if matches!(bound, Bound::Balance) {
                "1"
            } else {
                "90"
            };
            make(&ledgers[0], round, dollars).await;
            bind(&ledgers[0], round, bound).await;
            // Of one that is in use already: what it holds counts.
            let early = hold_of(round, 0, 9_000_000 + round, "0.1");
            ledgers[1].perform(early).await.unwrap();
            let setter = &ledgers[usize::try_from(round).unwrap() % GATEWAYS];
            set_defaults(setter, round, bound).await;
            let racers = (0..24_u64).map(|racer| {
                let ledger = Arc::clone(&ledgers[usize::try_from(racer).unwrap() % GATEWAYS]);
                let which = if matches!(bound, Bound::OfKey(_) | Bound::Default(false, _)) {
                    0
                } else {
                    racer % KEYS
                };
                let request = 10_000_000 + round * 100 + racer;
                tokio::spawn(async move {
                    let new = hold_of(round, which, request, "0.1");
                    if ledger.perform(new).await.is_ok() {
                        let _ = ledger.perform(moved(request, "0.2", 1)).await;
                        let cost = 10_000 * (1 + racer % 40);
                        ledger
                            .perform(Arc::new(finish(request, cost)))
                            .await
                            .unwrap();
                    }
                })
            });
            let racers = racers.collect::<Vec<_>>();
            if matches!(bound, Bound::Default(..)) {
                // Every connection is cut in the middle of it.
                let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
                cluster.psql(&database, cut).unwrap();
            }
            for racer in racers {
                racer.await.unwrap();
            }
            let ended = Finish {
                at: clock::now(),
                ..finish(9_000_000 + round, 50_000)
            };
            ledgers[2].perform(Arc::new(ended)).await.unwrap();
            let after = ledgers[0].find_customer(customer(round)).await.unwrap();
            let account = after.unwrap().account;
            assert_eq!(account.held, Amount::ZERO, "{bound:?}");
            assert!(account.spent <= usd("1"), "{bound:?}: {account:?}");
            assert!(account.spent > Amount::ZERO, "{bound:?}");
        }
        sound(&*ledgers[0]).await;
    });
}

/// Two gateways make a customer with one external id in the same instant: one of them has it, and the other is told whose it is.
#[test]
fn an_external_id_is_taken_once_at_several_gateways() {
    with_cluster("one external id at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        for round in 0..if full() { 500 } else { 20 } {
            let external_id = format!("crm-{round}");
            let racers = ledgers.iter().zip(0_u64..).map(|(ledger, place)| {
                let (ledger, external_id) = (Arc::clone(ledger), external_id.clone());
                tokio::spawn(async move {
                    let number = round * 10 + place;
                    let mut new = made_customer(number, 3_000_000 + number);
                    new.settings.external_id = Some(external_id);
                    ledger.perform(new).await
                })
            });
            let mut made = Vec::new();
            for racer in racers.collect::<Vec<_>>() {
                match racer.await.unwrap() {
                    Ok(customer) => made.push(customer.id),
                    Err(LedgerError::Refused(Refusal::ExternalIdUsed {
                        external_id: id,
                        customer,
                    })) => {
                        assert_eq!(id, external_id);
                        let owner = ledgers[0].find_external(&id).await.unwrap().unwrap();
                        assert_eq!(customer, owner.id);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(made.len(), 1, "{external_id}");
            let found = ledgers[1].find_external(&external_id).await.unwrap();
            assert_eq!(found.unwrap().id, made[0]);
        }
        sound(&*ledgers[0]).await;
    });
}

#[test]
fn batches_and_moves_over_shared_customers_never_lock_each_other() {
    with_cluster("pairs of shared customers", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        for number in 0..CUSTOMERS {
            make(&ledgers[0], number, "1000").await;
        }
        let pairs = if full() { 10_000 } else { 300 };
        let begun = std::time::Instant::now();
        let work = (0..24_u64).map(|worker| {
            let ledgers = ledgers.clone();
            tokio::spawn(async move {
                for turn in (worker..pairs).step_by(24) {
                    // A cheap shuffle: which two customers, and which of their keys.
                    let random = (turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                    let (a, b) = (random % CUSTOMERS, (random >> 8) % CUSTOMERS);
                    let ledger = &ledgers[usize::try_from(turn).unwrap() % GATEWAYS];
                    let request = 10_000_000 + turn * 10;
                    let (one, other) = (
                        ledger.perform(hold_of(a, random % KEYS, request, "0.1")),
                        ledger.perform(hold_of(b, (random >> 4) % KEYS, request + 1, "0.1")),
                    );
                    let (one, other) = tokio::join!(one, other);
                    one.unwrap();
                    other.unwrap();
                    if a != b && turn % 3 == 0 {
                        let moved = NewMove {
                            from: customer(a),
                            into: customer(b),
                            amount: usd("0.01"),
                            reference: format!("move {turn}"),
                            act: act(request + 2, 3),
                        };
                        ledger.perform(moved).await.unwrap();
                    }
                    let (one, other) = tokio::join!(
                        ledger.perform(Arc::new(finish(request, 1))),
                        ledger.perform(Arc::new(finish(request + 1, 1)))
                    );
                    one.unwrap();
                    other.unwrap();
                }
            })
        });
        for worker in work.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
        let deadlocks =
            format!("SELECT deadlocks FROM pg_stat_database WHERE datname = '{database}'");
        assert_eq!(cluster.psql(&database, &deadlocks).unwrap(), "0");
        println!("{pairs} pairs in {:?}", begun.elapsed());
        sound(&*ledgers[0]).await;
    });
}

/// Every gateway hears of the payment and of all that went back of it, each in another order and between requests.
#[test]
fn what_several_gateways_hear_of_a_payment_is_booked_once() {
    use ReversalKind::{Dispute, DisputeWon, Refund};
    const MESSAGES: [(ReversalKind, &str); 4] = [
        (Refund, "2.38"),
        (Dispute, "11.90"),
        (Refund, "5.95"),
        (DisputeWon, "7.14"),
    ];
    let gross = |text: &str| Gross::parse(text).unwrap();
    with_cluster("money back at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        for round in 0..if full() { 500 } else { 8 } {
            make(&ledgers[0], round, "1").await;
            let name = format!("pi-{round}");
            let told = ledgers.iter().zip(0_u64..).map(|(ledger, place)| {
                let (ledger, payment) = (Arc::clone(ledger), name.clone());
                let first = 10_000_000 + round * 1_000 + place * 100;
                tokio::spawn(async move {
                    let new = NewPayment {
                        customer: customer(round),
                        paid: PaidSum {
                            currency: "EUR".to_owned(),
                            gross: gross("11.90"),
                            tax: gross("1.90"),
                        },
                        credit: usd("10"),
                        reference: payment.clone(),
                        addressee: None,
                        expected: None,
                        reservation: None,
                        plan: None,
                        unsold: None,
                        act: act(first, 3),
                    };
                    let booked = !ledger.perform(new).await.unwrap().repeated;
                    for step in 0..4 {
                        let (kind, so_far) =
                            MESSAGES[usize::try_from(step + place).unwrap() % MESSAGES.len()];
                        let message = NewReversal {
                            payment: payment.clone(),
                            kind,
                            cumulative: gross(so_far),
                            whole: None,
                            reference: format!("{payment} {kind:?} {so_far}"),
                            act: act(first + 1 + step, 4),
                        };
                        ledger.perform(message).await.unwrap();
                        let request = first + 50 + step;
                        let new = hold_of(round, place, request, "1.5");
                        if ledger.perform(new).await.is_ok() {
                            let ended = ledger.perform(Arc::new(finish(request, 1_000_000))).await;
                            ended.unwrap();
                        }
                    }
                    booked
                })
            });
            let mut bookings = 0;
            for gateway in told.collect::<Vec<_>>() {
                bookings += usize::from(gateway.await.unwrap());
            }
            assert_eq!(bookings, 1);
            let payment = ledgers[1].payment(&name).await.unwrap().unwrap();
            let registers = [
                payment.registers.refunded,
                payment.registers.withdrawn,
                payment.registers.reinstated,
            ];
            assert_eq!(registers, ["5.95", "11.90", "7.14"].map(gross));
            assert_eq!(payment.due(), usd("9"));
            // Of 11 dollars 9 are due, so what was spent beyond 2 is owed.
            let found = ledgers[2].find_customer(customer(round)).await;
            let found = found.unwrap().unwrap();
            let left = usd("2").checked_sub(found.account.spent).unwrap();
            let owed = Amount::ZERO.max(left.checked_neg().unwrap());
            assert_eq!((found.account.held, found.claim), (Amount::ZERO, owed));
            assert_eq!(found.account.balance(), Amount::ZERO.max(left));
        }
        sound(&*ledgers[0]).await;
    });
}

/// A payment that can be booked nowhere has its reference and no entry, so nothing but the reference itself keeps two gateways apart.
#[test]
fn a_reference_is_taken_once_whether_its_money_can_be_booked_or_not() {
    with_cluster("one reference at several gateways", async |cluster| {
        let database = cluster.database();
        let ledgers = gateways(&cluster.url(&database)).await;
        // Two closed customers, and one that takes money.
        for number in 0..GATEWAYS as u64 {
            let new = made_customer(number, 1_000 + number);
            ledgers[0].perform(new).await.unwrap();
            if number > 0 {
                let close = CustomerChange {
                    customer: customer(number),
                    change: CustomerAct::Close,
                    act: act(2_000 + number, 2),
                };
                ledgers[0].perform(close).await.unwrap();
            }
        }
        for round in 0..if full() { 2_000 } else { 60 } {
            let name = format!("race {round}");
            let told = ledgers.iter().zip(0_u64..).map(|(ledger, place)| {
                let (ledger, reference) = (Arc::clone(ledger), name.clone());
                let operation = 10_000_000 + round * 10 + place;
                tokio::spawn(async move {
                    if place == 0 {
                        let paid = Credit {
                            to: customer(place).into(),
                            ..top_up(1, operation, "0.1", &reference)
                        };
                        return ledger.perform(paid).await.map(|_| true);
                    }
                    let gross = Gross::parse("0.1").unwrap();
                    let new = NewPayment {
                        customer: customer(place),
                        paid: PaidSum {
                            currency: "USD".to_owned(),
                            gross,
                            tax: Gross::ZERO,
                        },
                        credit: usd("0.1"),
                        reference,
                        addressee: None,
                        expected: None,
                        reservation: None,
                        plan: None,
                        unsold: None,
                        act: act(operation, 3),
                    };
                    ledger.perform(new).await.map(|_| false)
                })
            });
            // What is booked takes over the name of what could not be, and nothing else does.
            let (mut booked, mut kept) = (0, 0);
            for gateway in told.collect::<Vec<_>>() {
                match gateway.await.unwrap() {
                    Ok(true) => booked += 1,
                    Ok(false) => kept += 1,
                    Err(LedgerError::Refused(Refusal::ReferenceUsed { .. })) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(booked, 1, "{name}");
            assert!(kept <= 1, "{name}: {kept} kept");
        }
        sound(&*ledgers[0]).await;
    });
}
