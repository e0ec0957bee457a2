//! A primary and its standby: nothing is sold without a standby, nothing is confirmed that it does not have, and a ledger that
//! has gone back in time is found and refused.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::pair::Pair;
use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;
use farebox_ledger::{OpenMode, Standby};

fn with_pair(what: &str, test: impl AsyncFnOnce(Pair)) {
    match Pair::start() {
        Some(pair) => run(test(pair)),
        None => skip(what),
    }
}

/// Opens the ledger that both servers may have.
async fn open(pair: &Pair, mode: OpenMode, state: Option<&Path>, allow_single: bool) -> Result<Arc<PostgresLedger>, LedgerError> {
    let LedgerAddress::Postgres(config) = pair.url("postgres").parse().unwrap() else { unreachable!() };
    let opening = Opening { allow_single, state: state.map(Path::to_owned), ..Opening::new(mode) };
    PostgresLedger::open(&config, &opening).await.map(Arc::new)
}

/// Waits until something is so.
async fn becomes(what: &str, so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn nothing_is_sold_without_a_standby() {
    with_pair("a standby that goes away", async |mut pair| {
        let ledger = open(&pair, OpenMode::Serve, None, false).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
        ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
        assert_eq!(ledger.stats().standby, Standby::Streaming(1));
        pair.kill(pair.standby());
        becomes("the standby is missed", async || matches!(ledger.stats().standby, Standby::Missing(_))).await;
        assert!(!ledger.stats().is_writable());
        let refused = ledger.open_hold(new_hold(1, 21, "1")).await;
        assert!(matches!(&refused, Err(LedgerError::Unavailable(why)) if why.contains("0 of 1")), "{refused:?}");
        let refused = open(&pair, OpenMode::Write, None, false).await.map(drop);
        assert!(matches!(&refused, Err(LedgerError::Unusable(why)) if why.contains("0 of 1")), "{refused:?}");
        pair.run_server(pair.standby());
        becomes("it sells again", async || ledger.stats().is_writable() && !ledger.lapsed()).await;
        ledger.open_hold(new_hold(1, 21, "1")).await.unwrap();
        // Commits that wait for nobody are refused while it runs, and at the start.
        pair.wait_for_nobody();
        becomes("commits that wait for nobody are seen", async || !ledger.stats().is_writable()).await;
        let refused = open(&pair, OpenMode::Write, None, false).await.map(drop);
        assert!(matches!(&refused, Err(LedgerError::Unusable(why)) if why.contains("--allow-single")), "{refused:?}");
        let trial = open(&pair, OpenMode::Write, None, true).await.unwrap();
        assert!(trial.stats().standby == Standby::Single && trial.stats().is_writable());
        trial.create_key(new_key(2, 11, Some("5"))).await.unwrap();
        sound(&*ledger).await;
    });
}

/// A wait for the standby that somebody cancels: the server says that it has committed, and the standby has nothing.
#[test]
fn a_cancelled_commit_is_not_confirmed_before_the_standby_has_it() {
    with_pair("the cancel trap", async |pair| {
        let ledger = open(&pair, OpenMode::Serve, None, false).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
        pair.signal(pair.standby(), "STOP");
        let asked = {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move { ledger.credit(top_up(1, 30, "1", "paid")).await })
        };
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
        becomes("its commit waits for the standby", async || pair.sql(waiting) != "0").await;
        let cancel =
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
        pair.sql(cancel);
        becomes("the warning makes it unknown", async || ledger.stats().unknown_commits > 0).await;
        assert_eq!(pair.sql("SELECT count(*) FROM entries WHERE kind = 1"), "2", "a bare read sees it already");
        becomes("the repeated one waits, too", async || pair.sql(waiting) != "0").await;
        assert!(!asked.is_finished(), "nothing is confirmed that the standby does not have");
        pair.signal(pair.standby(), "CONT");
        assert!(asked.await.unwrap().unwrap().repeated, "the first attempt has done it");
        let account = ledger.find_key(key(1)).await.unwrap().unwrap().account;
        assert_eq!(account.credit, usd("6"));
        sound(&*ledger).await;
    });
}

#[test]
fn a_ledger_that_went_back_in_time_is_refused_until_the_loss_is_accepted() {
    with_pair("going back in time", async |mut pair| {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        // As an operator should never run it: nobody waits for the standby.
        pair.wait_for_nobody();
        let ledger = open(&pair, OpenMode::Serve, Some(&state), true).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
        let replayed = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
        becomes("the standby has the key", async || pair.sql(replayed) == "t").await;
        pair.signal(pair.standby(), "STOP");
        ledger.credit(top_up(1, 30, "1", "paid")).await.unwrap();
        becomes("the file knows it", async || std::fs::read_to_string(&state).is_ok_and(|text| text.contains("\"seq\":2"))).await;
        pair.kill(pair.primary());
        // What its socket has of the entry must not arrive after all.
        pair.kill(pair.standby());
        pair.run_server(pair.standby());
        pair.promote();
        pair.wait_for_nobody();
        becomes("the loss is found", async || ledger.stats().uncertain().is_some_and(|why| why.contains("back in time"))).await;
        assert!(!ledger.stats().is_writable());
        for refused in [
            ledger.open_hold(new_hold(1, 20, "1")).await.map(drop),
            ledger.credit(top_up(1, 31, "1", "again")).await.map(drop),
            open(&pair, OpenMode::Serve, Some(&state), true).await.map(drop),
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("back in time") && refused.contains("accept --lost"), "{refused}");
        }
        let address: LedgerAddress = pair.url("postgres").parse().unwrap();
        let opening = Opening { allow_single: true, state: Some(state.clone()), ..Opening::new(OpenMode::Write) };
        let accepted = address.accept_lost(&opening, "ada", at(700)).await.unwrap();
        assert!(accepted.generation == 2 && accepted.lost.iter().any(|lost| lost.contains("entry 2 of")), "{accepted:?}");
        assert_eq!(pair.sql("SELECT actor, generation FROM losses"), "ada|2");
        becomes("it goes on with the new generation", async || ledger.stats().is_writable() && !ledger.lapsed()).await;
        ledger.credit(top_up(1, 31, "1", "again")).await.unwrap();
        ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
        sound(&*ledger).await;
        drop(ledger);
        drop(open(&pair, OpenMode::Serve, Some(&state), true).await.unwrap());
    });
}
