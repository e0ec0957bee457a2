//! Several gateways on one PostgreSQL: shared keys, a gateway that falls silent, connections cut at any moment.
//!
//! Only what the contract leaves to the store; the conformance suite, which also runs on PostgreSQL, covers the contract.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::*;
use farebox_ledger::OpenMode;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;

/// How long to wait for what takes a lease, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn three_gateways_hold_the_last_dollar_once() {
    with_cluster("a fleet on one key", async |cluster| {
        let (_, fleet) = fleet(cluster, 3).await;
        hold_the_last_dollar_once(
            &fleet
                .into_iter()
                .map(|gateway| gateway as SharedLedger)
                .collect::<Vec<_>>(),
            10,
        )
        .await;
    });
}

/// A gateway looks every 5 s whose streams have to end, and twice a second who of those that wait can be served: 5,000 keys, and 1,000.
#[test]
fn a_look_at_thousands_of_keys_is_one_statement() {
    const LOOKS: u64 = 200;
    with_cluster("the statements of a look", async |cluster| {
        let (database, fleet) = fleet(cluster, 1).await;
        let keys: Vec<KeyId> = (1..=5_000).map(key).collect();
        let count =
            format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'");
        let transactions = || -> u64 {
            let count = cluster.psql("postgres", &count).unwrap();
            count.trim().parse().unwrap()
        };
        let before = transactions();
        for _ in 0..LOOKS {
            assert_eq!(fleet[0].ended(&keys).await.unwrap(), []);
            assert_eq!(fleet[0].find_keys(&keys[..1_000]).await.unwrap(), []);
        }
        // The server counts for others a connection's transactions when that rests.
        let begun = Instant::now();
        let mut after = transactions();
        while after < before + 2 * LOOKS && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(200)).await;
            after = transactions();
        }
        // Besides these, the gateway renews its lease.
        let made = after - before;
        assert!((2 * LOOKS..10 * LOOKS).contains(&made), "{made}");
    });
}

/// As the last dollar of a key, the last one of a cap: three gateways hold, extend and charge, and nobody sees more than the cap.
#[test]
fn three_gateways_never_pass_a_cap() {
    with_cluster("a fleet on one cap", async |cluster| {
        let (_, fleet) = fleet(cluster, 3).await;
        fleet[0].perform(new_key(1, 1, Some("50"))).await.unwrap();
        let cap = Cap {
            interval: CapInterval::Month,
            model: None,
            limit: usd("1"),
        };
        fleet[0]
            .perform(change(1, 2, Change::SetCap(cap)))
            .await
            .unwrap();
        let racers: Vec<_> = (0..24_u64)
            .map(|racer| {
                let ledger = Arc::clone(&fleet[usize::try_from(racer % 3).unwrap()]);
                tokio::spawn(async move {
                    for turn in 0..6 {
                        let request = 100 + racer * 10 + turn;
                        if ledger.perform(new_hold(1, request, "0.1")).await.is_err() {
                            continue;
                        }
                        let _ = ledger.perform(moved(request, "0.2", 1)).await;
                        let cost = 3_000 * (1 + racer % 40);
                        ledger
                            .perform(Arc::new(finish(request, cost)))
                            .await
                            .unwrap();
                        let key = ledger.find_key(key(1)).await.unwrap().unwrap();
                        let counts = key.caps.iter().next().unwrap().current;
                        let used = counts.charged.checked_add(counts.held).unwrap();
                        assert!(used <= usd("1"), "{counts:?}");
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.unwrap();
        }
        let key = fleet[1].find_key(key(1)).await.unwrap().unwrap();
        let counts = key.caps.iter().next().unwrap().current;
        assert_eq!(
            (counts.held, counts.charged),
            (usd("0"), key.customer.account.spent)
        );
        assert!(key.customer.account.spent.is_positive());
        sound(&*fleet[2]).await;
    });
}

#[test]
fn one_payment_sent_to_every_gateway_is_one_credit() {
    with_cluster("a payment at several gateways", async |cluster| {
        let (_, fleet) = fleet(cluster, 3).await;
        for number in 1..=2 {
            fleet[0]
                .perform(new_key(number, number, None))
                .await
                .unwrap();
        }
        for round in 0..20_u64 {
            let tasks: Vec<_> = (0..6_u64)
                .map(|number| {
                    let ledger = Arc::clone(&fleet[usize::try_from(number % 3).unwrap()]);
                    // Half of them for the other key: one reference, one key.
                    let credit = top_up(
                        1 + number % 2,
                        1_000 + round * 10 + number,
                        "1",
                        &format!("inv-{round}"),
                    );
                    tokio::spawn(async move { ledger.perform(credit).await })
                })
                .collect();
            let mut posted = 0;
            for task in tasks {
                match task.await.unwrap() {
                    Ok(done) => posted += u64::from(!done.repeated),
                    Err(LedgerError::Refused(Refusal::ReferenceUsed { .. })) => {}
                    Err(other) => unreachable!("{other:?}"),
                }
            }
            assert_eq!(posted, 1, "round {round}");
        }
        let keys = fleet[1].find_keys(&[key(1), key(2)]).await.unwrap();
        assert_eq!(
            Amount::checked_sum(keys.iter().map(|key| key.customer.account.credit)),
            Some(usd("20"))
        );
        sound(&*fleet[2]).await;
    });
}

#[test]
fn a_silent_gateway_is_fenced_and_its_holds_end_at_their_checkpoints() {
    with_cluster("a gateway that falls silent", async |cluster| {
        let (database, fleet) = fleet(cluster, 2).await;
        // Before its first sign of life, so that a slow machine makes the time longer, never shorter.
        let begun = Instant::now();
        // Opened for other purposes it has an epoch, and never renews it.
        let silent = postgres(&cluster.url(&database), OpenMode::Write)
            .await
            .unwrap();
        assert_eq!(silent.recover(at(1)).await.unwrap().epoch, 3);
        silent.perform(new_key(1, 10, Some("5"))).await.unwrap();
        silent.perform(new_hold(1, 20, "1")).await.unwrap();
        silent.perform(new_hold(1, 21, "1")).await.unwrap();
        silent.perform(moved(20, "2", 250_000)).await.unwrap();
        fleet[0].perform(new_hold(1, 22, "1")).await.unwrap();
        while fleet[1].open_holds(None, 10).await.unwrap().len() > 1 {
            assert!(begun.elapsed() < PATIENCE, "holds of a dead gateway end");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            begun.elapsed() > Duration::from_secs(8),
            "nobody is taken for dead sooner"
        );
        let charged = fleet[0].entry(op(20)).await.unwrap().unwrap();
        assert_eq!(
            (charged.amount, charged.bill.unwrap().end_reason),
            (usd("-0.25"), EndReason::Recovered)
        );
        // It comes back with the whole bill: too late, and it may write nothing any more.
        let late = silent.perform(Arc::new(finish(20, 1_000_000))).await;
        assert!(matches!(late, Err(LedgerError::Unavailable(_))), "{late:?}");
        assert!(silent.fatal().await.contains("considered this one dead") && silent.stopped());
        assert!(matches!(
            silent.perform(new_hold(1, 23, "1")).await,
            Err(LedgerError::Unavailable(_))
        ));
        let kept = cluster
            .psql(&database, "SELECT cost, epoch FROM late_bills")
            .unwrap();
        assert_eq!(
            kept, "1000000000000|3",
            "what it cost is the operator's exposure"
        );
        let account = fleet[1]
            .find_key(key(1))
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(
            (account.spent, account.held),
            (usd("0.25"), usd("1")),
            "those who live keep their holds"
        );
        fleet[0].perform(Arc::new(finish(22, 1))).await.unwrap();
        sound(&*fleet[0]).await;
    });
}

#[test]
fn bills_that_the_server_rejects_until_the_stop_are_booked_by_the_next_start() {
    with_cluster("bills that a gateway keeps", async |cluster| {
        let (database, folder) = (cluster.database(), tempfile::tempdir().unwrap());
        let (url, state) = (cluster.url(&database), folder.path().join("state"));
        let sql = |sql: &str| cluster.psql(&database, sql).unwrap();
        let address: LedgerAddress = url.parse().unwrap();
        let opening = Opening {
            allow_single: true,
            state: Some(state.clone()),
            ..Opening::new(OpenMode::Serve)
        };
        let open = async || postgres_as(&url, &opening).await.unwrap();
        // Opens holds, and leaves their bills.
        let leave = async |ledger: PostgresLedger, numbers: std::ops::Range<u64>| {
            for number in numbers.clone() {
                ledger.perform(new_hold(1, number, "0.5")).await.unwrap();
                ledger.perform(moved(number, "1", 100_000)).await.unwrap();
            }
            sql("ALTER TABLE entries ADD CONSTRAINT none CHECK (kind <> 2) NOT VALID");
            for number in numbers.clone() {
                ledger.abandon_hold(Arc::new(finish(number, 250_000)));
            }
            let begun = Instant::now();
            while ledger.stats().unresolved < numbers.clone().count() {
                assert!(begun.elapsed() < PATIENCE, "{:?}", ledger.stats());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let left = tokio::task::block_in_place(|| ledger.close());
            sql("ALTER TABLE entries DROP CONSTRAINT none");
            left
        };
        let spent = async |ledger: &PostgresLedger| {
            let key = ledger.find_key(key(1)).await.unwrap().unwrap();
            key.customer.account.spent
        };
        let ledger = open().await;
        ledger.begin(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let left = leave(ledger, 20..23).await;
        assert_eq!((left.bills, left.cost), (3, usd("0.75")));
        assert_eq!(address.unsettled(Some(&state)).unwrap(), left);
        let ledger = open().await;
        ledger.begin(at(2)).await.unwrap();
        assert_eq!(spent(&ledger).await, usd("0.75"), "each in full");
        assert!(address.unsettled(Some(&state)).unwrap().is_nothing());
        assert_eq!(leave(ledger, 30..31).await.bills, 1);
        // Another gateway ends the hold before this one is back.
        sql("UPDATE nodes SET ended = now() WHERE ended IS NULL");
        let other = gateway(&url).await;
        assert_eq!(spent(&other).await, usd("0.85"), "at its checkpoint");
        let ledger = open().await;
        ledger.begin(at(3)).await.unwrap();
        assert_eq!(spent(&other).await, usd("0.85"), "not again");
        assert_eq!(
            sql("SELECT cost FROM late_bills"),
            "250000000000",
            "what it cost is exposure"
        );
        drop(ledger);
        assert!(!left.file.exists(), "nothing is due");
        let ledger = postgres(&url, OpenMode::Serve).await.unwrap();
        ledger.begin(at(4)).await.unwrap();
        let left = leave(ledger, 40..41).await;
        assert_eq!((left.bills, left.holds), (0, 1), "without a state file");
        sound(&*other).await;
    });
}

#[test]
fn cut_connections_lose_nothing_and_charge_nothing_twice() {
    with_cluster("cut connections", async |cluster| {
        let (database, fleet) = fleet(cluster, 3).await;
        for number in 0..4 {
            fleet[0]
                .perform(new_key(number, 10 + number, Some("100")))
                .await
                .unwrap();
        }
        let (over, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let tasks: Vec<_> = (0..12_u64)
            .map(|task| {
                let ledger: SharedLedger =
                    Arc::clone(&fleet[usize::try_from(task % 3).unwrap()]) as SharedLedger;
                let (over, done) = (Arc::clone(&over), Arc::clone(&done));
                tokio::spawn(async move {
                    let (mut settled, mut asked) = (Vec::new(), Vec::new());
                    for number in 0.. {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        let request = 10_000 + task * 100_000 + number;
                        let Ok(hold) =
                            Hold::open(Arc::clone(&ledger), new_hold(task % 4, request, "0.01"))
                                .await
                        else {
                            continue;
                        };
                        asked.push(request);
                        if hold.settle(bill(7), at(500)).await.is_ok() {
                            settled.push(request);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    (settled, asked)
                })
            })
            .collect();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'farebox' \
             AND datname = current_database() AND random() < 0.5";
        let begun = Instant::now();
        for round in 0.. {
            if round >= 30 && done.load(Ordering::Relaxed) > 100 {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{done:?} were settled");
            tokio::time::sleep(Duration::from_millis(100)).await;
            cluster.psql(&database, cut).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        let (mut settled, mut asked) = (Vec::new(), Vec::new());
        for task in tasks {
            let (done, tried) = task.await.unwrap();
            settled.extend(done);
            asked.extend(tried);
        }
        // Abandoned holds are with the resolvers, which retry.
        let begun = Instant::now();
        while !fleet[0].open_holds(None, 10).await.unwrap().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "every hold ends");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut charged = 0_i64;
        for request in &asked {
            let entry = fleet[1].entry(op(*request)).await.unwrap();
            charged += entry.map_or(0, |entry| -entry.amount.picos());
        }
        for request in &settled {
            let entry = fleet[1].entry(op(*request)).await.unwrap().unwrap();
            assert_eq!(
                entry.amount,
                usd("-0.000007"),
                "what was acknowledged is there"
            );
        }
        let spent: i64 = fleet[0]
            .find_keys(&[key(0), key(1), key(2), key(3)])
            .await
            .unwrap()
            .iter()
            .map(|key| key.customer.account.spent.picos())
            .sum();
        assert_eq!(spent, charged, "each request once");
        sound(&*fleet[2]).await;
    });
}

#[test]
fn wrong_databases_are_refused_in_words() {
    with_cluster("wrong databases", async |cluster| {
        let refused = async |url: &str, mode| match postgres(url, mode).await {
            Err(LedgerError::Unusable(why) | LedgerError::Misplaced(why)) => why.to_string(),
            other => unreachable!("{other:?}"),
        };
        let missing = refused(&cluster.url("no_such_database"), OpenMode::Serve).await;
        assert!(
            missing.contains("no_such_database") && missing.contains("does not exist"),
            "{missing}"
        );
        let nobody = cluster
            .url("postgres")
            .replace("farebox@", "mallory:s3cret@");
        let nobody = refused(&nobody, OpenMode::Serve).await;
        assert!(
            nobody.contains("mallory") && !nobody.contains("s3cret"),
            "{nobody}"
        );
        let database = cluster.database();
        let url = cluster.url(&database);
        for mode in [OpenMode::Write, OpenMode::ReadOnly] {
            assert!(
                refused(&url, mode)
                    .await
                    .contains("there is no ledger in this database")
            );
        }
        assert_eq!(
            cluster
                .psql(
                    &database,
                    "SELECT count(*) FROM pg_class WHERE relname = 'keys'"
                )
                .unwrap(),
            "0"
        );
        drop(new_postgres(&url, OpenMode::Write).await.unwrap());
        let reader = postgres(&url, OpenMode::ReadOnly).await.unwrap();
        assert!(matches!(
            reader.perform(new_hold(1, 20, "1")).await,
            Err(LedgerError::Unavailable(_))
        ));
        cluster
            .psql(&database, "UPDATE identity SET version = 99")
            .unwrap();
        for mode in [OpenMode::Serve, OpenMode::ReadOnly] {
            assert!(refused(&url, mode).await.contains("newer version"));
        }
        let foreign = cluster.database();
        cluster.psql(&foreign, "CREATE TABLE mine (x int)").unwrap();
        assert!(
            refused(&cluster.url(&foreign), OpenMode::Serve)
                .await
                .contains("another program")
        );
        assert_eq!(
            cluster
                .psql(
                    &foreign,
                    "SELECT count(*) FROM pg_class WHERE relname = 'accounts'"
                )
                .unwrap(),
            "0"
        );
    });
}

/// Waits until something is so.
async fn becomes(what: &str, so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_clock_half_a_minute_off_stops_selling_until_it_is_right() {
    with_cluster("clocks that differ", async |cluster| {
        let (database, fleet) = fleet(cluster, 1).await;
        let ledger = &fleet[0];
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        // The database's clock, as statements of new sessions see it.
        let set = |seconds: i64| {
            let sql = format!(
                "CREATE OR REPLACE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS \
                 $$ SELECT clock_timestamp() + interval '{seconds} s' $$; \
                 ALTER DATABASE {database} SET search_path = public, pg_catalog; \
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
            );
            cluster.psql(&database, &sql).unwrap();
        };
        for seconds in [40, -3_600] {
            set(seconds);
            becomes("the clock is seen to be wrong", async || {
                ledger
                    .obstacle()
                    .is_some_and(|trouble| trouble.fault.kind == TroubleKind::ClockWrong)
            })
            .await;
            let refused = ledger.perform(new_hold(1, 20, "1")).await;
            assert!(
                matches!(&refused, Err(LedgerError::Unavailable(why)) if why.words().contains("clock")),
                "{refused:?}"
            );
            ledger
                .perform(top_up(
                    1,
                    1_000 + seconds.unsigned_abs(),
                    "1",
                    &format!("paid-{seconds}"),
                ))
                .await
                .unwrap();
            set(0);
            becomes("the clock is right again", async || {
                ledger.obstacle().is_none()
            })
            .await;
        }
        ledger.perform(new_hold(1, 20, "1")).await.unwrap();
    });
}

#[test]
fn a_hold_of_its_own_that_no_request_knows_is_ended() {
    with_cluster("a hold without a request", async |cluster| {
        let (database, fleet) = fleet(cluster, 1).await;
        let ledger = &fleet[0];
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        ledger.perform(new_hold(1, 20, "1")).await.unwrap();
        // What a commit whose answer was lost leaves behind, and an interruption.
        let lost = "INSERT INTO holds SELECT '\\x00000000000000000000000000000015', key, opened, amount, used, slug, family, at, epoch FROM holds; \
             UPDATE accounts SET held = held * 2, opened = opened + 1";
        cluster.psql(&database, lost).unwrap();
        let cut = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        );
        cluster.psql(&database, &cut).unwrap();
        becomes(
            "the hold is ended",
            async || matches!(ledger.open_holds(None, 10).await.as_deref(), Ok([known]) if known.request == op(20)),
        )
        .await;
        ledger.perform(Arc::new(finish(20, 1_000))).await.unwrap();
        assert_eq!(
            ledger
                .entry(op(21))
                .await
                .unwrap()
                .unwrap()
                .bill
                .unwrap()
                .evidence,
            Some(Evidence::Recovered)
        );
        sound(&**ledger).await;
    });
}
