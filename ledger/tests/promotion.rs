//! How soon a gateway sells again after a promotion, in every way in which a primary can be gone and every way to reach the servers:
//! a machine without power behind a router, a frozen process, a disk that hangs; one standby, two, PgBouncer before each server, one
//! PgBouncer for all.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and says how long things took"
)]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::netns::{MACHINES, Network};
use common::pair::{Disk, Pair};
use common::pooler::Pooler;
use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::store::Store as _;
use farebox_ledger::*;

/// How soon after the promotion. Asserted at full size alone: every day the machine may be busy.
const BOUND: Duration = Duration::from_secs(10);
/// How long to wait for it.
const PATIENCE: Duration = Duration::from_secs(90);

/// How the primary is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// Its power is cut: nothing answers at its address.
    Power,
    /// Its processes are frozen: they take connections and answer nothing.
    Frozen,
    /// Its disk hangs: it answers, and writes nothing.
    Disk(Disk),
}

/// How gateways reach the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Directly,
    /// Through a PgBouncer on each machine.
    PoolerEach,
}

async fn serve(url: &str) -> Arc<PostgresLedger> {
    let opened = postgres_as(url, &Opening::new(OpenMode::Serve)).await;
    Arc::new(opened.unwrap())
}

/// Opens and ends a hold as soon as that is possible.
async fn sells(ledger: &PostgresLedger, request: u64) {
    let begun = Instant::now();
    loop {
        let opened = ledger.perform(new_hold(1, request, "0.01")).await;
        if opened.is_ok() {
            ledger
                .perform(Arc::new(finish(request, 1_000)))
                .await
                .unwrap();
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{opened:?}: {:#?}",
            ledger.stats()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn in_time(what: &str, took: Duration) {
    println!("| {what} | {:.1} s |", took.as_secs_f64());
    let full = std::env::var_os("FAREBOX_FULL").is_some();
    assert!(took < BOUND || !full, "{what}: {took:?}");
}

/// Loses the primary, promotes, and measures until a gateway that was running sells again. With one standby a new one must stream
/// first, so that is where the time begins.
fn promoted(gone: Gone, standbys: usize, reached: Reached) {
    let what = format!("{gone:?}, {standbys} standby, {reached:?}");
    let Some(network) = Network::start() else {
        return skip("promotions: network namespaces are not permitted here");
    };
    let disk = match gone {
        Gone::Disk(disk) => Some(disk),
        Gone::Power | Gone::Frozen => None,
    };
    let direct = reached == Reached::Directly;
    let addresses: &[&'static str] = if direct { &MACHINES } else { &[] };
    let Some(mut pair) = network.at_the_server(|| Pair::start_at(standbys, disk, addresses)) else {
        return skip("promotions: PostgreSQL is not installed");
    };
    if disk.is_some() && !pair.has_disks() {
        return skip(
            "a disk that hangs: loop devices and ext4, or FUSE and bindfs, are not available here",
        );
    }
    let poolers: Option<Vec<Pooler>> = network.at_the_server(|| {
        let machines = (0..=standbys).filter(|_| !direct);
        let start = |server| Pooler::start(pair.folder(server), "session", Some(MACHINES[server]));
        machines.map(start).collect()
    });
    let Some(poolers) = poolers else {
        return skip("promotions behind PgBouncer: it is not installed");
    };
    let machines = MACHINES.get(..=standbys).unwrap().join(",");
    let url = format!("postgres://farebox@{machines}/postgres?sslmode=disable");
    network.at_the_gateway(|| {
        run(async {
            let ledger = serve(&url).await;
            ledger.recover(at(1)).await.unwrap();
            ledger.perform(new_key(1, 10, Some("50"))).await.unwrap();
            sells(&ledger, 20).await;
            let old = pair.primary();
            match gone {
                Gone::Power => {
                    network.silence(MACHINES[old]);
                    pair.kill(old);
                }
                Gone::Frozen => {
                    pair.signal(old, "STOP");
                    poolers.get(old).into_iter().for_each(Pooler::freeze);
                }
                Gone::Disk(_) => assert!(pair.hang_disk(old), "its disk can hang"),
            }
            assert!(ledger.perform(new_hold(1, 21, "0.01")).await.is_err());
            // The operator takes his time.
            tokio::time::sleep(Duration::from_secs(3)).await;
            if standbys == 1 {
                // Its address stays silent; a new standby is built where there is room.
                if gone != Gone::Power {
                    network.silence(MACHINES[old]);
                    pair.kill(old);
                }
                tokio::task::block_in_place(|| {
                    network.at_the_server(|| {
                        pair.promote();
                        pair.build_standbys();
                    });
                });
            } else {
                tokio::task::block_in_place(|| pair.promote_beside(1));
            }
            let begun = Instant::now();
            sells(&ledger, 22).await;
            in_time(&what, begun.elapsed());
            let begun = Instant::now();
            let fresh = serve(&url).await;
            fresh.recover(at(2)).await.unwrap();
            sells(&fresh, 23).await;
            in_time(&format!("{what}: a gateway that starts"), begun.elapsed());
            // A graceful stop after a failover leaves at once, whatever is still silent.
            for ledger in [fresh, ledger] {
                let begun = Instant::now();
                tokio::task::block_in_place(|| ledger.close());
                in_time(&format!("{what}: a graceful stop"), begun.elapsed());
            }
            pair.release_disk(old);
        });
    });
}

#[test]
fn a_machine_without_power_and_one_standby() {
    promoted(Gone::Power, 1, Reached::Directly);
}

#[test]
fn a_machine_without_power_and_two_standbys() {
    promoted(Gone::Power, 2, Reached::Directly);
}

#[test]
fn a_frozen_process_and_two_standbys() {
    promoted(Gone::Frozen, 2, Reached::Directly);
}

#[test]
fn a_hanging_disk_and_two_standbys() {
    promoted(Gone::Disk(Disk::Freezing), 2, Reached::Directly);
}

#[test]
fn a_hanging_fuse_and_two_standbys() {
    promoted(Gone::Disk(Disk::Fuse), 2, Reached::Directly);
}

#[test]
fn a_machine_without_power_behind_a_pooler_each() {
    promoted(Gone::Power, 2, Reached::PoolerEach);
}

#[test]
fn a_frozen_machine_behind_a_pooler_each() {
    promoted(Gone::Frozen, 2, Reached::PoolerEach);
}

#[test]
fn one_pooler_for_all_that_is_led_to_the_promoted_server() {
    let Some(mut pair) = Pair::start_with(2, false) else {
        return skip("one PgBouncer for all: PostgreSQL is not installed");
    };
    let Some(pooler) = Pooler::start(pair.folder(0), "session", None) else {
        return skip("one PgBouncer for all: it is not installed");
    };
    run(async {
        let ledger = serve(&Pair::url_at([pooler.folder()], "postgres")).await;
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("50"))).await.unwrap();
        sells(&ledger, 20).await;
        let old = pair.primary();
        pair.signal(old, "STOP");
        assert!(ledger.perform(new_hold(1, 21, "0.01")).await.is_err());
        tokio::task::block_in_place(|| pair.promote_beside(1));
        pooler.lead_to(pair.folder(1));
        let begun = Instant::now();
        sells(&ledger, 22).await;
        in_time("Frozen, 2 standbys, one PgBouncer for all", begun.elapsed());
        sound(&*ledger).await;
    });
}

#[test]
fn a_pooler_that_shares_sessions_is_refused() {
    let Some(pair) = Pair::start_with(1, false) else {
        return skip("a transaction pool: PostgreSQL is not installed");
    };
    let Some(pooler) = Pooler::start(pair.folder(0), "transaction", None) else {
        return skip("a transaction pool: PgBouncer is not installed");
    };
    run(async {
        let url = Pair::url_at([pooler.folder()], "postgres");
        for opened in [
            postgres(&url, OpenMode::Serve).await.map(drop),
            postgres(&url, OpenMode::ReadOnly).await.map(drop),
            new_postgres(&url, OpenMode::Write).await.map(drop),
        ] {
            assert!(
                matches!(&opened, Err(LedgerError::Unusable(why)) if why.words().contains("pool_mode = session")),
                "{opened:?}"
            );
        }
        assert_eq!(
            pair.sql("SELECT count(*) FROM pg_class WHERE relname = 'keys'"),
            "0"
        );
    });
}
