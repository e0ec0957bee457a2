//! Bad days of a ledger on PostgreSQL: wrong addresses and roles, other schemas, commits cut or held in the middle, a key that
//! stays locked, and ten seconds without the database.
//!
//! Each ends in a clear error or a bounded wait: never a false confirmation, and never a double charge.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::proxy::{AtCommit, Proxy};
use common::*;
use farebox_ledger::OpenMode;
use farebox_ledger::store::Store;
use farebox_ledger::*;

/// How long to wait for what happens by itself, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an operation returns when the database answers in time. On a busy machine a caller asks again, as here.
async fn available<T: std::fmt::Debug>(ask: impl AsyncFn() -> Result<T, LedgerError>) -> T {
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(LedgerError::Unavailable(_)) if begun.elapsed() < PATIENCE => {}
            answered => return answered.unwrap(),
        }
    }
}

#[test]
fn a_commit_that_is_cut_has_one_effect() {
    with_cluster("commits cut in the middle", async |cluster| {
        let database = cluster.database();
        let proxy = Proxy::start(cluster.folder());
        let (cut, other) = (
            gateway(&proxy.url(&database)).await,
            gateway(&cluster.url(&database)).await,
        );
        other.perform(new_key(1, 10, Some("5"))).await.unwrap();
        for (number, fault) in (100..)
            .step_by(10)
            .zip([AtCommit::CutBefore, AtCommit::CutAfter])
        {
            proxy.arm(fault);
            available(async || cut.perform(new_hold(1, number, "1")).await).await;
            assert!(proxy.has_hit(), "{fault:?}");
            proxy.arm(fault);
            let finished =
                available(async || cut.perform(Arc::new(finish(number, 250_000))).await).await;
            assert!(proxy.has_hit(), "{fault:?}");
            assert_eq!(finished.charge, usd("0.25"));
            proxy.arm(fault);
            let credit = top_up(1, number + 1, "1", &format!("paid-{number}"));
            assert_eq!(
                available(async || cut.perform(credit.clone()).await)
                    .await
                    .entry
                    .amount,
                usd("1")
            );
            assert!(proxy.has_hit(), "{fault:?}");
        }
        let account = other
            .find_key(key(1))
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(
            account,
            Account {
                credit: usd("7"),
                spent: usd("0.5"),
                held: usd("0")
            }
        );
        sound(&*other).await;
    });
}

#[test]
fn a_gateway_that_stands_still_before_its_commit_confirms_only_what_is_stored() {
    with_cluster(
        "a gateway stopped between its check and its COMMIT",
        async |cluster| {
            let database = cluster.database();
            let proxy = Proxy::start(cluster.folder());
            let (held, other) = (
                gateway(&proxy.url(&database)).await,
                gateway(&cluster.url(&database)).await,
            );
            other.perform(new_key(1, 10, Some("1"))).await.unwrap();
            // It has seen a whole dollar and has the key's lock; the server takes both from it after three seconds.
            proxy.arm(AtCommit::Hold(Duration::from_secs(5)));
            let late = tokio::spawn({
                let held = Arc::clone(&held);
                async move { held.perform(new_hold(1, 20, "1")).await }
            });
            while !proxy.has_hit() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let begun = Instant::now();
            let mut second = other.perform(new_hold(1, 21, "1")).await;
            while matches!(second, Err(LedgerError::Unavailable(_))) && begun.elapsed() < PATIENCE {
                second = other.perform(new_hold(1, 21, "1")).await;
            }
            let late = late.await.unwrap();
            assert_eq!(
                u8::from(second.is_ok()) + u8::from(late.is_ok()),
                1,
                "one dollar, one hold: {second:?}, {late:?}"
            );
            let account = other
                .find_key(key(1))
                .await
                .unwrap()
                .unwrap()
                .customer
                .account;
            assert_eq!(account.held, usd("1"));
            sound(&*other).await;
        },
    );
}

#[test]
fn a_locked_key_keeps_nobody_else_waiting() {
    with_cluster("a key that stays locked", async |cluster| {
        let database = cluster.database();
        let ledger = gateway(&cluster.url(&database)).await;
        for number in 1..=5 {
            ledger
                .perform(new_key(number, 10 + number, Some("50")))
                .await
                .unwrap();
        }
        ledger.perform(new_hold(1, 20, "1")).await.unwrap();
        let locked = lock_key(cluster, &database, 1, "60");
        let hot: Vec<_> = (30..34)
            .map(|number| {
                let ledger = Arc::clone(&ledger);
                tokio::spawn(async move { ledger.perform(new_hold(1, number, "1")).await })
            })
            .collect();
        // A request that leaves at once: its hold is asked for, and its end comes behind it.
        let left = Hold::open(Arc::clone(&ledger) as SharedLedger, new_hold(1, 40, "0.5"));
        assert!(
            tokio::time::timeout(Duration::from_millis(50), left)
                .await
                .is_err(),
            "its key is locked"
        );
        for number in 2..=5 {
            ledger
                .perform(new_hold(number, 50 + number, "1"))
                .await
                .unwrap();
            ledger
                .perform(Arc::new(finish(50 + number, 1)))
                .await
                .unwrap();
        }
        assert!(!locked.is_finished(), "the others went on");
        let end = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid() \
             AND datname = current_database()";
        cluster.psql(&database, end).unwrap();
        locked.join().unwrap();
        let mut waited = 0;
        for task in hot {
            match task.await.unwrap() {
                Ok(_) => waited += 1,
                // On a very slow machine the others took longer than its patience.
                refused => assert!(
                    matches!(refused, Err(LedgerError::Unavailable(_))),
                    "{refused:?}"
                ),
            }
        }
        ledger.perform(Arc::new(finish(20, 1))).await.unwrap();
        let begun = Instant::now();
        while ledger
            .open_holds(Some(key(1).into()), 10)
            .await
            .unwrap()
            .len()
            != waited
        {
            assert!(
                begun.elapsed() < PATIENCE,
                "the hold of the request that left has ended"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sound(&*ledger).await;
    });
}

/// Locks a key's account for a while, as another gateway's commit that waits for a standby does.
fn lock_key(
    cluster: &'static Cluster,
    database: &str,
    number: u64,
    seconds: &str,
) -> JoinHandle<()> {
    let (account, database) = (key(number).to_i64(), database.to_owned());
    let sql = format!(
        "BEGIN; SELECT 1 FROM accounts WHERE id = {account} FOR UPDATE; SELECT pg_sleep({seconds})"
    );
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep({seconds})' AND state = 'active' \
         AND datname = current_database() AND pid <> pg_backend_pid()"
    );
    let locked = std::thread::spawn({
        let database = database.clone();
        move || drop(cluster.psql(&database, &sql))
    });
    while cluster.psql(&database, &waits).unwrap() != "1" {
        std::thread::sleep(Duration::from_millis(20));
    }
    locked
}

#[test]
fn a_hold_that_could_not_be_ended_is_ended_without_another_operation() {
    with_cluster(
        "a hold whose end was given up for a while",
        async |cluster| {
            let database = cluster.database();
            let ledger = gateway(&cluster.url(&database)).await;
            ledger.perform(new_key(1, 11, Some("5"))).await.unwrap();
            ledger.perform(new_hold(1, 20, "1")).await.unwrap();
            // Longer than the lane of the key has patience.
            let locked = lock_key(cluster, &database, 1, "5.5");
            ledger.abandon_hold(Arc::new(finish(20, 250_000)));
            locked.join().unwrap();
            let begun = Instant::now();
            while !ledger.open_holds(None, 1).await.unwrap().is_empty() {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "nobody ends the hold: {:?}",
                    ledger.stats()
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(
                ledger
                    .find_key(key(1))
                    .await
                    .unwrap()
                    .unwrap()
                    .customer
                    .account
                    .spent,
                usd("0.25")
            );
            sound(&*ledger).await;
        },
    );
}

/// A role whose right to write is taken away and given back, as an administrator does by mistake.
#[test]
fn a_hold_whose_end_the_server_rejects_is_ended_when_it_no_longer_does() {
    with_cluster("rights taken away for a while", async |cluster| {
        let database = cluster.database();
        let sql = |sql: &str| cluster.psql(&database, sql).unwrap();
        let role = format!("seller_{database}");
        sql(&format!(
            "CREATE ROLE {role} LOGIN; ALTER DATABASE {database} OWNER TO {role}; GRANT ALL ON SCHEMA public TO {role}; \
             GRANT pg_monitor TO {role}"
        ));
        let url = cluster
            .url(&database)
            .replace("farebox@", &format!("{role}@"));
        let ledger = gateway(&url).await;
        ledger.perform(new_key(1, 11, Some("5"))).await.unwrap();
        for number in 20..26 {
            ledger.perform(new_hold(1, number, "0.5")).await.unwrap();
        }
        sql(&format!("REVOKE INSERT ON entries FROM {role}"));
        for number in 20..26 {
            ledger.abandon_hold(Arc::new(finish(number, 250_000)));
        }
        let begun = Instant::now();
        while ledger.stats().unresolved_by.get("42501") != Some(&6) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", ledger.stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(ledger.stats().unresolved, 6);
        sql(&format!("GRANT INSERT ON entries TO {role}"));
        while !ledger.open_holds(None, 1).await.unwrap().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", ledger.stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(ledger.stats().unresolved, 0);
        let account = ledger
            .find_key(key(1))
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(account.spent, usd("1.5"), "each is charged what it cost");
        sound(&*ledger).await;
    });
}

#[test]
fn ten_seconds_without_the_database_end_in_errors_and_then_in_answers() {
    with_cluster("a database that is away", async |cluster| {
        let database = cluster.database();
        let proxy = Proxy::start(cluster.folder());
        let mut fleet = Vec::new();
        for _ in 0..3 {
            fleet.push(gateway(&proxy.url(&database)).await);
        }
        fleet[0].perform(new_key(1, 10, Some("50"))).await.unwrap();
        fleet[1].perform(new_hold(1, 20, "1")).await.unwrap();
        proxy.set_up(false);
        let away = Instant::now();
        while away.elapsed() < Duration::from_secs(10) {
            let asked = Instant::now();
            let answer = fleet[0].perform(new_hold(1, 21, "1")).await;
            assert!(
                matches!(
                    answer,
                    Err(LedgerError::Unavailable(_) | LedgerError::Unknown(_))
                ),
                "{answer:?}"
            );
            assert!(
                asked.elapsed() < PATIENCE,
                "a bounded wait: {:?}",
                asked.elapsed()
            );
            assert!(fleet[2].find_key(key(1)).await.is_err());
        }
        assert!(
            fleet.iter().all(|ledger| ledger.lapsed()),
            "streams end and nothing is sold"
        );
        proxy.set_up(true);
        let begun = Instant::now();
        while fleet.iter().any(|ledger| ledger.lapsed()) {
            assert!(begun.elapsed() < PATIENCE, "everybody is back");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let tasks: Vec<_> = (0..45_u64)
            .map(|number| {
                let ledger = Arc::clone(&fleet[usize::try_from(number % 3).unwrap()]);
                tokio::spawn(async move { ledger.perform(new_hold(1, 100 + number, "1")).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert!(
            fleet.iter().all(|ledger| !ledger.stopped()),
            "nobody was taken for dead by others who were away, too"
        );
        assert_eq!(
            fleet[1]
                .perform(Arc::new(finish(20, 1_000)))
                .await
                .unwrap()
                .charge,
            usd("0.001")
        );
        let dead = cluster
            .psql(
                &database,
                "SELECT count(*) FROM nodes WHERE ended IS NOT NULL",
            )
            .unwrap();
        assert_eq!(dead, "0");
        sound(&*fleet[2]).await;
    });
}

#[test]
fn wrong_roles_and_servers_are_refused_in_words() {
    with_cluster("wrong roles", async |cluster| {
        let database = cluster.database();
        let by = |role: &str| {
            cluster
                .url(&database)
                .replace("farebox@", &format!("{role}@"))
        };
        // The rule for this one role comes before the one that trusts everybody.
        cluster
            .psql(
                &database,
                "CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE poor LOGIN",
            )
            .unwrap();
        let rules = "CREATE TABLE r (n serial, line text); INSERT INTO r (line) VALUES ('local all locked scram-sha-256'); \
             DO $$ BEGIN EXECUTE format('COPY r (line) FROM %L', current_setting('hba_file')); \
             EXECUTE format('COPY (SELECT line FROM r ORDER BY n) TO %L', current_setting('hba_file')); END $$; \
             DROP TABLE r; SELECT pg_reload_conf()";
        cluster.psql(&database, rules).unwrap();
        let mut wrong = refused(&by("locked:wr0ng"), OpenMode::Serve).await;
        for _ in 0..600 {
            if wrong.contains("password") {
                break;
            }
            // The server reads its rules anew in its own time.
            tokio::time::sleep(Duration::from_millis(100)).await;
            wrong = refused(&by("locked:wr0ng"), OpenMode::Serve).await;
        }
        assert!(
            wrong.contains("password authentication failed") && !wrong.contains("wr0ng"),
            "{wrong}"
        );
        let poor = refused(&by("poor"), OpenMode::Serve).await;
        assert!(
            poor.contains("permission denied") && poor.contains("owns"),
            "{poor}"
        );
        drop(
            new_postgres(&cluster.url(&database), OpenMode::Write)
                .await
                .unwrap(),
        );
        for mode in [OpenMode::Serve, OpenMode::ReadOnly] {
            let poor = refused(&by("poor"), mode).await;
            assert!(poor.contains("permission denied"), "{poor}");
        }
        cluster
            .psql(
                &database,
                &format!("ALTER DATABASE {database} SET default_transaction_read_only = on"),
            )
            .unwrap();
        let standby = refused(&cluster.url(&database), OpenMode::Serve).await;
        assert!(
            standby.contains("writ"),
            "a server that takes no writes: {standby}"
        );
        postgres(&cluster.url(&database), OpenMode::ReadOnly)
            .await
            .unwrap();
        let nobody = refused("postgres://farebox@127.0.0.1:1/ledger", OpenMode::Serve).await;
        assert!(nobody.contains("refused"), "{nobody}");
    });
}

#[test]
fn a_keys_limits_hold_for_all_gateways_together() {
    with_cluster("limits of a fleet", async |cluster| {
        let database = cluster.database();
        let mut fleet = Vec::new();
        for _ in 0..3 {
            fleet.push(gateway(&cluster.url(&database)).await);
        }
        let limited = |number, concurrency, rate| {
            let mut new = new_key(number, number, Some("50"));
            (new.settings.concurrency, new.settings.rate) = (concurrency, rate);
            new
        };
        fleet[0].perform(limited(1, Some(4), None)).await.unwrap();
        fleet[0].perform(limited(2, None, Some(5))).await.unwrap();
        let open = async |key: u64, first: u64| {
            let tasks: Vec<_> = (0..15_u64)
                .map(|number| {
                    let ledger = Arc::clone(&fleet[usize::try_from(number % 3).unwrap()]);
                    tokio::spawn(async move {
                        (
                            first + number,
                            ledger.perform(new_hold(key, first + number, "1")).await,
                        )
                    })
                })
                .collect();
            let (mut opened, mut refused) = (Vec::new(), Vec::new());
            for task in tasks {
                match task.await.unwrap() {
                    (request, Ok(_)) => opened.push(request),
                    (_, Err(LedgerError::Refused(refusal))) => refused.push(refusal),
                    other => unreachable!("{other:?}"),
                }
            }
            (opened, refused)
        };
        let (opened, refused) = open(1, 100).await;
        assert_eq!(opened.len(), 4);
        assert!(
            refused
                .iter()
                .all(|refusal| *refusal == Refusal::TooManyAtOnce(4)),
            "{refused:?}"
        );
        fleet[2]
            .perform(Arc::new(finish(opened[0], 1)))
            .await
            .unwrap();
        fleet[1].perform(new_hold(1, 200, "1")).await.unwrap();
        assert!(fleet[0].perform(new_hold(1, 201, "1")).await.is_err());
        fleet[1].perform(new_hold(1, 200, "1")).await.unwrap();
        let begun = Instant::now();
        let (opened, refused) = open(2, 300).await;
        let most = 6 + usize::try_from(begun.elapsed().as_millis()).unwrap() * 5 / 1_000;
        assert!(
            (5..=most).contains(&opened.len()),
            "five, and as many a second: {} of {most}",
            opened.len()
        );
        assert!(
            refused
                .iter()
                .all(|refusal| matches!(refusal, Refusal::TooFast { rate: 5, .. })),
            "{refused:?}"
        );
        sound(&*fleet[1]).await;
    });
}

#[test]
fn gateways_tell_which_files_they_run() {
    with_cluster("what gateways tell", async |cluster| {
        let database = cluster.database();
        let (first, second) = (
            gateway(&cluster.url(&database)).await,
            gateway(&cluster.url(&database)).await,
        );
        let told = async |so: fn(&[Gateway]) -> bool| {
            let begun = Instant::now();
            while !so(&first.gateways().await.unwrap()) {
                assert!(begun.elapsed() < PATIENCE);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        first.announce("a b".to_owned());
        told(|all| {
            all.len() == 2
                && all.iter().any(|gateway| gateway.configuration == "a b")
                && !Gateway::differ(all)
        })
        .await;
        second.announce("a c".to_owned());
        told(Gateway::differ).await;
        second.announce("a b".to_owned());
        told(|all| !Gateway::differ(all) && all.iter().all(|gateway| gateway.silent_ms < 5_000))
            .await;
        first.perform(new_key(1, 10, Some("5"))).await.unwrap();
        second.perform(new_hold(1, 20, "1")).await.unwrap();
        told(|all| all.iter().map(|gateway| gateway.holds).sum::<u64>() == 1).await;
        drop(second);
        told(|all| all.len() == 1).await;
    });
}
