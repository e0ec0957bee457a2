//! The model test: random sequences of operations have the same outcomes on the reference store, on SQLite and on PostgreSQL.
//!
//! Ids, references and amounts come from small ranges, so that repetitions, conflicts and empty balances happen all the time.
//! After every step the accounts are compared; every sequence ends with `verify`. 2,000 sequences are tried on SQLite and 60 on PostgreSQL,
//! 100,000 and 3,000 with `FAREBOX_FULL=1`.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;
#[path = "model/customers.rs"]
mod customers;
#[path = "model/defaults.rs"]
mod defaults;
#[path = "model/facts.rs"]
mod facts;
#[path = "model/gifts.rs"]
mod gifts;
#[path = "model/ground.rs"]
mod ground;
#[path = "model/plans.rs"]
mod plans;
#[path = "model/sales.rs"]
mod sales;
#[path = "model/seen.rs"]
mod seen;
#[path = "model/sizes.rs"]
mod sizes;

use std::sync::Arc;

use common::*;
use customers::{a_cap, a_limit, by_owner, customers, is_of_owner, made_by_owner};
use facts::{a_change, a_credit, a_payment, a_reversal, cents, cost, hour};
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;
use gifts::{Gift, Reached, Standing, gift, give, redeem, take_back};
use ground::{memory_dir, sequences};
use plans::{PlanStep, plan};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sales::sale;
use seen::{difference, everything, glance, recent, without_limits, without_positions};
use sizes::{To, Way, a_way, to, ways};

#[derive(Debug, Clone)]
enum Step {
    Create {
        key: u64,
        operation: u64,
        money: i64,
        reference: u64,
    },
    Change {
        key: u64,
        operation: u64,
        change: u8,
        time: i64,
    },
    Customer {
        key: u64,
        operation: u64,
        act: u8,
        amount: i64,
    },
    Cap {
        key: u64,
        operation: u64,
        cap: u8,
        limit: i64,
    },
    Defaults {
        operation: u64,
        which: u8,
        limit: i64,
    },
    Credit {
        key: u64,
        operation: u64,
        kind: u8,
        amount: i64,
        reference: u64,
        request: u64,
    },
    Pay {
        key: u64,
        operation: u64,
        amount: i64,
        reference: u64,
    },
    Sale {
        sale: u8,
        number: u64,
        key: u64,
        operation: u64,
        amount: i64,
        reference: u64,
    },
    Back {
        operation: u64,
        kind: u8,
        told: i64,
        payment: u64,
        reference: u64,
    },
    Unapplied {
        key: u64,
        operation: u64,
        payment: u64,
    },
    Give {
        key: u64,
        operation: u64,
        gift: Gift,
    },
    Plan {
        key: u64,
        operation: u64,
        plan: PlanStep,
    },
    TakeBack {
        key: u64,
        operation: u64,
        number: u64,
    },
    Redeem {
        key: u64,
        operation: u64,
        code: u8,
    },
    Settle {
        key: u64,
    },
    Wait(i64),
    Open {
        key: u64,
        operation: u64,
        ways: Vec<Way>,
        time: i64,
    },
    Move {
        operation: u64,
        number: u32,
        to: To,
        count: Option<u64>,
        time: i64,
    },
    Finish {
        operation: u64,
        count: u64,
        time: i64,
    },
    Abandon {
        operation: u64,
        count: u64,
    },
    Recover,
    Link {
        key: u64,
        operation: u64,
        token: u8,
    },
    Consume {
        token: u8,
        time: i64,
    },
    Session {
        key: u64,
        token: u8,
        time: i64,
    },
    CloseSession {
        token: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (key, operation, request, money) = (1..4_u64, 1..40_u64, 100..130_u64, -3..60_i64);
    let (count, time, token, reference) = (0..60_u64, 0..100_i64, 0..4_u8, 0..12_u64);
    let reference_of = reference.clone();
    prop_oneof![
        3 => (key.clone(), operation.clone(), money.clone(), reference.clone())
            .prop_map(|(key, operation, money, reference)| Step::Create { key, operation, money, reference }),
        2 => (key.clone(), operation.clone(), 0..8_u8, time.clone())
            .prop_map(|(key, operation, change, time)| Step::Change { key, operation, change, time }),
        2 => (key.clone(), operation.clone(), 0..12_u8, money.clone())
            .prop_map(|(key, operation, cap, limit)| Step::Cap { key, operation, cap, limit }),
        2 => (operation.clone(), 0..6_u8, money.clone())
            .prop_map(|(operation, which, limit)| Step::Defaults { operation, which, limit }),
        3 => (key.clone(), operation.clone(), 0..14_u8, money.clone())
            .prop_map(|(key, operation, act, amount)| Step::Customer { key, operation, act, amount }),
        5 => (key.clone(), operation.clone(), 0..6_u8, money.clone(), reference, request.clone()).prop_map(
            |(key, operation, kind, amount, reference, request)| Step::Credit { key, operation, kind, amount, reference, request }),
        3 => (key.clone(), operation.clone(), money.clone(), reference_of.clone())
            .prop_map(|(key, operation, amount, reference)| Step::Pay { key, operation, amount, reference }),
        5 => (0..6_u8, 1..6_u64, key.clone(), operation.clone(), money.clone(), reference_of.clone()).prop_map(
            |(sale, number, key, operation, amount, reference)| Step::Sale { sale, number, key, operation, amount, reference }),
        5 => (operation.clone(), 0..3_u8, 0..70_i64, reference_of.clone(), reference_of.clone())
            .prop_map(|(operation, kind, told, payment, reference)| Step::Back { operation, kind, told, payment, reference }),
        1 => (key.clone(), operation.clone(), reference_of)
            .prop_map(|(key, operation, payment)| Step::Unapplied { key, operation, payment }),
        8 => (key.clone(), operation.clone(), gift()).prop_map(|(key, operation, gift)| Step::Give { key, operation, gift }),
        8 => (key.clone(), operation.clone(), plan()).prop_map(|(key, operation, plan)| Step::Plan { key, operation, plan }),
        1 => (key.clone(), operation.clone(), 0..9_u64)
            .prop_map(|(key, operation, number)| Step::TakeBack { key, operation, number }),
        2 => (key.clone(), operation.clone(), 0..12_u8)
            .prop_map(|(key, operation, code)| Step::Redeem { key, operation, code }),
        1 => key.clone().prop_map(|key| Step::Settle { key }),
        8 => prop_oneof![10 => 0..15_i64, 5 => (0..30_i64).prop_map(|hours| hours * 3_600), 1 => (0..900_i64).prop_map(|hours| hours * 3_600)].prop_map(Step::Wait),
        8 => (key.clone(), request.clone(), ways(money.clone()), time.clone())
            .prop_map(|(key, operation, ways, time)| Step::Open { key, operation, ways, time }),
        6 => (request.clone(), 1..5_u32, to(money), proptest::option::of(count.clone()), time.clone())
            .prop_map(|(operation, number, to, count, time)| Step::Move { operation, number, to, count, time }),
        8 => (request.clone(), count.clone(), time.clone())
            .prop_map(|(operation, count, time)| Step::Finish { operation, count, time }),
        1 => (request, count).prop_map(|(operation, count)| Step::Abandon { operation, count }),
        1 => Just(Step::Recover),
        1 => (key.clone(), operation, token.clone()).prop_map(|(key, operation, token)| Step::Link { key, operation, token }),
        1 => (token.clone(), time.clone()).prop_map(|(token, time)| Step::Consume { token, time }),
        1 => (key, token.clone(), time).prop_map(|(key, token, time)| Step::Session { key, token, time }),
        1 => token.prop_map(|token| Step::CloseSession { token }),
    ]
}

/// Runs a step and gives its whole outcome as text.
async fn apply(ledger: &dyn Ledger, step: Step) -> String {
    match step {
        Step::Create {
            key,
            operation,
            money,
            reference,
        } => {
            let first_credit = (money > 0).then(|| (cents(money), format!("r-{reference}")));
            if let Some(made) = made_by_owner(key, operation, money) {
                return by_owner(ledger, Operation::Create(Box::new(made))).await;
            }
            format!(
                "{:?}",
                ledger
                    .perform(NewKey {
                        first_credit,
                        // The third key joins the first one's customer, every other time.
                        within: Membership {
                            customer: (key == 3 && operation % 2 == 0)
                                .then(|| CustomerId::made_for(common::key(1))),
                            is_owner: key == 1,
                            made_by: None,
                        },
                        ..new_key(key, operation, None)
                    })
                    .await
            )
        }
        Step::Change {
            key,
            operation,
            change: number,
            time,
        } => {
            format!(
                "{:?}",
                ledger
                    .perform(change(key, operation, a_change(number, time)))
                    .await
            )
        }
        Step::Customer {
            key,
            operation,
            act,
            amount,
        } => customers(ledger, key, operation, act, amount).await,
        Step::Cap {
            key,
            operation,
            cap,
            limit,
        } => {
            let change = change(key, operation, a_limit(operation, a_cap(cap, limit)));
            if is_of_owner(operation) {
                return by_owner(ledger, Operation::Change(Box::new(change))).await;
            }
            format!("{:?}", ledger.perform(change).await)
        }
        Step::Defaults {
            operation,
            which,
            limit,
        } => defaults::set(ledger, operation, which, limit).await,
        Step::Credit {
            key,
            operation,
            kind,
            amount,
            reference,
            request,
        } => {
            format!(
                "{:?}",
                ledger
                    .perform(a_credit(key, operation, kind, amount, reference, request))
                    .await
            )
        }
        Step::Pay {
            key,
            operation,
            amount,
            reference,
        } => {
            let new = a_payment(key, operation, amount, reference);
            format!("{:?}", ledger.perform(new).await)
        }
        Step::Sale {
            sale: what,
            number,
            key,
            operation,
            amount,
            reference,
        } => sale(ledger, what, (number, operation), (key, amount, reference)).await,
        Step::Back {
            operation,
            kind,
            told,
            payment,
            reference,
        } => {
            let new = a_reversal(operation, kind, told, payment, reference);
            format!("{:?}", ledger.perform(new).await)
        }
        Step::Unapplied {
            key,
            operation,
            payment,
        } => {
            let ending = UnappliedAct {
                payment: format!("r-{payment}"),
                end: UnappliedEnd::Assign(CustomerId::made_for(common::key(key))),
                act: act(operation, 400),
            };
            format!("{:?}", ledger.perform(ending).await)
        }
        Step::Give {
            key,
            operation,
            gift,
        } => give(ledger, (key, operation), gift).await,
        Step::Plan {
            key,
            operation,
            plan,
        } => plans::change(ledger, (key, operation), plan).await,
        Step::TakeBack {
            key,
            operation,
            number,
        } => take_back(ledger, (key, operation), number).await,
        Step::Redeem {
            key,
            operation,
            code,
        } => redeem(ledger, (key, operation), code).await,
        Step::Settle { key } => {
            let customer = CustomerId::made_for(common::key(key));
            format!("{:?}", ledger.perform(SettleGrants { customer }).await)
        }
        // Once for all stores, before any of them looks.
        Step::Wait(_) => String::new(),
        Step::Open {
            key,
            operation,
            ways,
            time,
        } => {
            let found = ledger.find_key(common::key(key)).await.unwrap();
            let own = CustomerId::made_for(common::key(key));
            format!(
                "{:?}",
                ledger
                    .perform(NewHold {
                        customer: found.map_or(own, |key| key.belongs_to),
                        ways: ways.iter().map(a_way).collect(),
                        at: hour(time),
                        slug: gifts::slug(operation).to_owned(),
                        ..new_hold(key, operation, "1")
                    })
                    .await
            )
        }
        Step::Move {
            operation,
            number,
            to,
            count,
            time,
        } => {
            let moved = HoldMove {
                request: op(operation),
                number,
                to: match to {
                    To::Same => NewSize::Same,
                    To::Amount(size) => NewSize::Amount(cents(size)),
                    To::Ways(ways) => NewSize::Ways(ways.iter().map(a_way).collect()),
                },
                checkpoint: count.map(cost),
                at: hour(time),
            };
            format!("{:?}", ledger.perform(moved).await)
        }
        Step::Finish {
            operation,
            count,
            time,
        } => {
            format!(
                "{:?}",
                ledger
                    .perform(Arc::new(Finish {
                        request: op(operation),
                        bill: cost(count),
                        at: hour(time)
                    }))
                    .await
            )
        }
        Step::Abandon { operation, count } => {
            let finish = Finish {
                request: op(operation),
                bill: cost(count),
                at: hour(1),
            };
            ledger.abandon_hold(Arc::new(finish.clone()));
            // The resolver has its own time. The same end again has no second effect, and is there when it answers.
            format!("{:?}", ledger.perform(Arc::new(finish)).await)
        }
        Step::Recover => format!("{:?}", ledger.recover(hour(50)).await),
        Step::Link {
            key: number,
            operation,
            token,
        } => {
            let new = NewLink {
                key: key(number),
                token: secret(token),
                expires: hour(50),
                act: act(operation, 10),
            };
            format!("{:?}", ledger.perform(new).await)
        }
        Step::Consume { token, time } => {
            format!("{:?}", ledger.consume_link(secret(token), hour(time)).await)
        }
        Step::Session {
            key: number,
            token,
            time,
        } => {
            let session = Session {
                token: secret(token),
                key: key(number),
                at: hour(time),
                expires: hour(time + 10),
            };
            format!("{:?}", ledger.perform(session).await)
        }
        Step::CloseSession { token } => {
            format!("{:?}", ledger.perform(CloseSession(secret(token))).await)
        }
    }
}

/// The file is open twice, as by a gateway and a console, and the console does one step in five: what each remembers must not
/// survive the other's commits.
#[test]
fn both_stores_do_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reached = Reached::default();
    // A copy of a ledger is made sooner than a ledger.
    let (mode, durability) = (OpenMode::Write, Durability::Prompt);
    let new = memory_dir();
    let empty = new.path().join("farebox.db");
    SqliteLedger::create(&empty, mode, durability)
        .unwrap()
        .close();
    TestRunner::new(sequences(2_000, 100_000))
        .run(
            &prop::collection::vec((step(), prop::bool::weighted(0.2)), 1..80),
            |steps| {
                runtime.block_on(async {
                    let mut clock = Standing::begin();
                    let reference = MemoryLedger::new();
                    let dir = memory_dir();
                    let path = dir.path().join("farebox.db");
                    std::fs::copy(&empty, &path).unwrap();
                    let gateway = SqliteLedger::open(&path, mode, durability).unwrap();
                    let console = SqliteLedger::open(&path, mode, durability).unwrap();
                    for (step, by_console) in steps {
                        clock.step(&step);
                        let sqlite = if by_console { &console } else { &gateway };
                        let expected = without_limits(&apply(&reference, step.clone()).await);
                        let found = without_limits(&apply(sqlite, step.clone()).await);
                        prop_assert_eq!(found, expected, "{:?}", step);
                        let expected = glance(&reference).await;
                        prop_assert_eq!(glance(sqlite).await, expected, "after {:?}", step);
                    }
                    reached.note(&reference).await;
                    let told = recent(&reference, 0).await.len();
                    let (seen, expected) = (
                        everything(&gateway, told).await,
                        everything(&reference, told).await,
                    );
                    prop_assert_eq!(difference(&seen, &expected), None);
                    prop_assert_eq!(plans::laws(&gateway).await, Ok(()));
                    prop_assert_eq!(gateway.verify().await.unwrap().faults, Vec::<String>::new());
                    prop_assert_eq!(
                        reference.verify().await.unwrap().faults,
                        Vec::<String>::new()
                    );
                    Ok(())
                })
            },
        )
        .unwrap();
    println!("{}", reached.check());
}

#[test]
fn postgresql_does_the_same() {
    let Some(cluster) = cluster::Cluster::shared() else {
        return skip("the model on PostgreSQL: it is not installed");
    };
    // A copy of a ledger is made sooner than a ledger. Beside a sequence of another store, the clock would be ahead of the database's.
    let empty = cluster.database();
    let alone = Standing::begin();
    drop(run(new_postgres(&cluster.url(&empty), OpenMode::Write)).unwrap());
    drop(alone);
    TestRunner::new(sequences(60, 3_000))
        .run(&prop::collection::vec(step(), 1..80), |steps| {
            let database = cluster.copy_of(&empty);
            let url = cluster.url(&database);
            run(async {
                let mut clock = Standing::begin();
                let reference = MemoryLedger::new();
                let ledger = postgres(&url, OpenMode::Write).await.unwrap();
                for step in steps {
                    clock.step(&step);
                    let expected =
                        without_limits(&without_positions(&apply(&reference, step.clone()).await));
                    prop_assert_eq!(
                        without_limits(&without_positions(&apply(&ledger, step.clone()).await)),
                        expected,
                        "{:?}",
                        step
                    );
                    prop_assert_eq!(
                        glance(&ledger).await,
                        glance(&reference).await,
                        "after {:?}",
                        step
                    );
                }
                let told = recent(&reference, 0).await.len();
                let (seen, expected) = (
                    everything(&ledger, told).await,
                    everything(&reference, told).await,
                );
                let (seen, expected) = (without_positions(&seen), without_positions(&expected));
                prop_assert_eq!(difference(&seen, &expected), None);
                prop_assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
                Ok(())
            })?;
            cluster.drop_database(&database);
            Ok(())
        })
        .unwrap();
}
