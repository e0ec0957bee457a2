//! Grants at two gateways at once: the instants at which they begin and end, and names that something else may take. The callers' clocks
//! are two seconds ahead and behind; the database's decides. One round for every day, 60 with `FAREBOX_FULL=1`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::*;

/// So many customers race for the same instant.
const CUSTOMERS: u64 = 6;
const RACERS: u64 = 16;

fn rounds() -> u64 {
    if std::env::var_os("FAREBOX_FULL").is_some() {
        60
    } else {
        1
    }
}

fn from_now(millis: i64) -> Timestamp {
    Timestamp::from_millis(clock::now().millis() + millis)
}

async fn wait_for(instant: Timestamp) {
    while clock::now() < instant {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn customer(number: u64) -> CustomerId {
    CustomerId::made_for(key(number))
}

fn grant(number: u64, dollars: &str) -> NewGrant {
    NewGrant {
        id: GrantId::from_random(number),
        customer: customer(number),
        kind: GrantKind::Promotional,
        amount: usd(dollars),
        priority: Grant::PRIORITY,
        effective_at: None,
        expires_at: None,
        models: None,
        reference: format!("race {number}"),
        act: Act {
            at: clock::now(),
            ..act(1_000_000 + number, 1)
        },
    }
}

async fn entries(ledger: &PostgresLedger, number: u64) -> Vec<JournalEntry> {
    let of = EntryQuery {
        customer: Some(customer(number)),
        ..EntryQuery::default()
    };
    ledger.entries(of).await.unwrap()
}

fn sum(entries: &[JournalEntry], kind: EntryKind) -> Amount {
    let of_kind = entries.iter().filter(|entry| entry.kind == kind);
    Amount::checked_sum(of_kind.map(|entry| entry.amount)).unwrap()
}

/// Holds, makes smaller and ends a request around an instant; what was charged.
async fn request(ledger: Arc<PostgresLedger>, number: u64, id: u64, begins: Timestamp) -> Amount {
    wait_for(begins).await;
    let skew = if id.is_multiple_of(2) { 2_000 } else { -2_000 };
    let hold = NewHold {
        at: from_now(skew),
        ..new_hold(number, id, "0.5")
    };
    if ledger.perform(hold).await.is_err() {
        return Amount::ZERO;
    }
    if id.is_multiple_of(3) {
        let smaller = HoldMove {
            to: NewSize::Amount(usd("0.2")),
            checkpoint: None,
            ..moved(id, "0", 0)
        };
        ledger.perform(smaller).await.unwrap();
    }
    let ended = ledger
        .perform(Arc::new(finish(id, 20_000 * (id % 16))))
        .await;
    ended.unwrap().charge
}

#[test]
fn nothing_is_spent_twice_at_the_instant_of_an_end() {
    with_cluster("grants that end at two gateways", async |cluster| {
        let (_, gateways) = fleet(cluster, 2).await;
        for round in 0..rounds() {
            let numbers = || (0..CUSTOMERS).map(|number| 1 + round * CUSTOMERS + number);
            for number in numbers() {
                let new = new_key(number, 2_000_000 + number, None);
                gateways[0].perform(new).await.unwrap();
            }
            let end = from_now(1_500);
            let mut races = Vec::new();
            for number in numbers() {
                let new = NewGrant {
                    expires_at: Some(end),
                    ..grant(number, "3")
                };
                gateways[0].perform(new).await.unwrap();
                for racer in 0..RACERS {
                    let gateway = Arc::clone(&gateways[usize::try_from(racer % 2).unwrap()]);
                    let early = i64::try_from(racer).unwrap() * 12 - 120;
                    let begins = Timestamp::from_millis(end.millis() + early);
                    let id = 10_000_000 + number * 100 + racer;
                    let race = request(gateway, number, id, begins);
                    races.push((number, tokio::spawn(race)));
                }
                for gateway in &gateways {
                    let gateway = Arc::clone(gateway);
                    let customer = customer(number);
                    let looks = async move {
                        wait_for(end).await;
                        let settled = gateway.perform(SettleGrants { customer }).await;
                        settled.map(|()| Amount::ZERO).unwrap()
                    };
                    races.push((number, tokio::spawn(looks)));
                }
            }
            let mut charged = Vec::new();
            for (number, race) in races {
                charged.push((number, race.await.unwrap()));
            }
            for number in numbers() {
                for (gateway, id) in gateways.iter().zip(0..) {
                    let late = new_hold(number, 20_000_000 + number * 100 + id, "0.01");
                    assert!(gateway.perform(late).await.is_err(), "it has ended");
                }
                let booked = entries(&gateways[0], number).await;
                let of_it = charged.iter().filter(|(of, _)| *of == number);
                let of_it = Amount::checked_sum(of_it.map(|(_, charge)| *charge)).unwrap();
                assert_eq!(
                    of_it.checked_neg().unwrap(),
                    sum(&booked, EntryKind::Charge)
                );
                let ended = sum(&booked, EntryKind::Expired);
                let gone = Amount::checked_sum([of_it, ended.checked_neg().unwrap()]);
                assert_eq!(gone, Some(usd("3")));
                let found = gateways[1].find_key(key(number)).await.unwrap().unwrap();
                assert_eq!(found.customer.account.balance(), Amount::ZERO);
                assert_eq!(found.customer.account.held, Amount::ZERO);
            }
        }
        sound(&*gateways[0]).await;
    });
}

#[test]
fn a_grant_begins_once_whoever_looks() {
    with_cluster("grants that begin at two gateways", async |cluster| {
        let (_, gateways) = fleet(cluster, 2).await;
        for round in 0..rounds() {
            let numbers = || (0..CUSTOMERS).map(|number| 1 + round * CUSTOMERS + number);
            let begins = from_now(1_000);
            for number in numbers() {
                let new = new_key(number, 2_000_000 + number, None);
                gateways[0].perform(new).await.unwrap();
                let new = NewGrant {
                    effective_at: Some(begins),
                    ..grant(number, "3")
                };
                gateways[1].perform(new).await.unwrap();
            }
            let mut races = Vec::new();
            for number in numbers() {
                for racer in 0..RACERS {
                    let gateway = Arc::clone(&gateways[usize::try_from(racer % 2).unwrap()]);
                    races.push(tokio::spawn(async move {
                        wait_for(begins).await;
                        if racer < 2 {
                            let customer = customer(number);
                            gateway.perform(SettleGrants { customer }).await.unwrap();
                        }
                        let id = 10_000_000 + number * 100 + racer;
                        gateway.perform(new_hold(number, id, "0.5")).await.is_ok()
                    }));
                }
            }
            let mut admitted = 0;
            for race in races {
                admitted += u64::from(race.await.unwrap());
            }
            assert_eq!(admitted, 6 * CUSTOMERS, "three dollars are six holds");
            for number in numbers() {
                let booked = entries(&gateways[0], number).await;
                let kinds: Vec<_> = booked.iter().map(|entry| entry.kind).collect();
                assert_eq!(kinds, [EntryKind::Grant]);
            }
        }
        sound(&*gateways[0]).await;
    });
}

/// One that begins later has no entry, so nothing but its name keeps it apart from what else would have it.
#[test]
fn a_name_is_taken_once_by_a_grant_or_a_payment() {
    with_cluster("the names of grants at two gateways", async |cluster| {
        let (_, gateways) = fleet(cluster, 2).await;
        for number in [1, 2] {
            let new = new_key(number, 2_000_000 + number, None);
            gateways[0].perform(new).await.unwrap();
        }
        let full = rounds() > 1;
        for round in 0..if full { 1_000 } else { 30 } {
            let name = format!("name {round}");
            let given = NewGrant {
                id: GrantId::from_random(round),
                customer: customer(1),
                effective_at: Some(from_now(3_600_000)),
                reference: name.to_uppercase(),
                ..grant(round, "0.01")
            };
            let given = NewGrant {
                act: act(10_000_000 + round * 10, 5),
                ..given
            };
            let void = VoidGrant {
                grant: given.id,
                customer: customer(1),
                act: act(10_000_003 + round * 10, 5),
            };
            let paid = top_up(2, 10_000_001 + round * 10, "0.01", &name);
            let (one, other) = (&gateways[0], &gateways[1]);
            let (given, paid) = tokio::join!(one.perform(given), other.perform(paid));
            assert!(given.is_ok() != paid.is_ok(), "{name}: {given:?} {paid:?}");
            if given.is_ok() {
                other.perform(void).await.unwrap();
            }
        }
        sound(&*gateways[0]).await;
    });
}

/// Both may be in one batch, in which the charge uses the grant up.
#[test]
fn a_refund_beside_its_charge_finds_its_grant() {
    with_cluster("a refund in the batch of its charge", async |cluster| {
        let (_, gateways) = fleet(cluster, 1).await;
        let ledger = &gateways[0];
        ledger.perform(new_key(1, 2_000_001, None)).await.unwrap();
        let mut both = 0;
        for round in 0..if rounds() > 1 { 1_000 } else { 40 } {
            let id = 10_000_000 + round * 10;
            let given = NewGrant {
                customer: customer(1),
                act: act(id, 1),
                ..grant(round, "1")
            };
            ledger.perform(given).await.unwrap();
            ledger.perform(new_hold(1, id + 1, "1")).await.unwrap();
            let kind = CreditKind::Refund {
                request: op(id + 1),
                reason: "bad answer".to_owned(),
            };
            let refund = credit(1, id + 2, kind, "1", &format!("refund {round}"));
            // What fills the writer's hands meanwhile.
            let before = top_up(1, id + 3, "1", &format!("before {round}"));
            let finish = Arc::new(finish(id + 1, 1_000_000));
            let (before, ended, refund) = tokio::join!(
                ledger.perform(before),
                ledger.perform(finish),
                ledger.perform(refund)
            );
            before.unwrap();
            ended.unwrap();
            match refund {
                Ok(_) => both += 1,
                Err(LedgerError::Refused(Refusal::NotRefundable { .. })) => {}
                Err(other) => panic!("{other}"),
            }
            let void = VoidGrant {
                grant: GrantId::from_random(round),
                customer: customer(1),
                act: act(id + 4, 1),
            };
            // What was not refunded is used up.
            let _ = ledger.perform(void).await;
        }
        println!("{both} were refunded beside their charge");
        sound(&**ledger).await;
    });
}
