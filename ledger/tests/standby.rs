//! A primary and its standby: nothing is sold without a standby, nothing is confirmed before the standby has it, and a ledger that
//! has gone back in time is detected and refused.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::pair::Pair;
use common::*;
use farebox_ledger::anchor::{self, AnchorFile};
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;

fn with_pair(what: &str, test: impl AsyncFnOnce(Pair)) {
    match Pair::start() {
        Some(pair) => run(test(pair)),
        None => skip(what),
    }
}

/// Opens the ledger that both servers may have.
async fn open(
    pair: &Pair,
    mode: OpenMode,
    state: Option<&Path>,
    allow_single: bool,
) -> Result<Arc<PostgresLedger>, LedgerError> {
    open_as(
        pair,
        &Opening {
            allow_single,
            state: state.map(Path::to_owned),
            ..Opening::new(mode)
        },
    )
    .await
}

async fn open_as(pair: &Pair, opening: &Opening) -> Result<Arc<PostgresLedger>, LedgerError> {
    let opened = postgres_as(&pair.url("postgres"), opening).await;
    opened.map(Arc::new)
}

/// A payment that is confirmed although the standby has not heard of it, as an operator should never permit; then the primary is
/// gone. `known` runs before that.
async fn lose_a_payment(pair: &mut Pair, ledger: &PostgresLedger, known: impl AsyncFnOnce()) {
    let replayed = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
    becomes("the standby has the key", async || {
        pair.sql(replayed) == "t"
    })
    .await;
    pair.signal(pair.standby(), "STOP");
    ledger.perform(top_up(1, 30, "1", "paid")).await.unwrap();
    known().await;
    pair.kill(pair.primary());
    // What its socket has of the entry must not arrive after all.
    pair.kill(pair.standby());
    pair.run_server(pair.standby());
    pair.promote();
    pair.wait_for_nobody();
}

/// Waits until something is so.
async fn becomes(what: &str, so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < Duration::from_secs(90), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn nothing_is_sold_without_a_standby() {
    with_pair("a standby that goes away", async |mut pair| {
        let ledger = open(&pair, OpenMode::Serve, None, false).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        ledger.perform(new_hold(1, 20, "1")).await.unwrap();
        assert_eq!(ledger.stats().standby, Standby::Streaming(1));
        let LedgerAddress::Postgres(standby) =
            Pair::url_at([pair.folder(pair.standby())], "postgres")
                .parse()
                .unwrap()
        else {
            unreachable!()
        };
        let refused = PostgresLedger::open(&standby, &Opening::new(OpenMode::Write))
            .await
            .map(drop);
        assert!(
            matches!(&refused, Err(LedgerError::Unusable(why)) if why.words().contains("the address of the primary")),
            "{refused:?}"
        );
        pair.kill(pair.standby());
        becomes("the standby is missed", async || {
            why_not(&*ledger).contains("0 of 1")
        })
        .await;
        assert_eq!(ledger.stats().standby, Standby::Streaming(0));
        let refused = ledger.perform(new_hold(1, 21, "1")).await;
        assert!(
            matches!(&refused, Err(LedgerError::Unavailable(why)) if why.words().contains("0 of 1")),
            "{refused:?}"
        );
        let refused = open(&pair, OpenMode::Write, None, false).await.map(drop);
        assert!(
            matches!(&refused, Err(LedgerError::Unusable(why)) if why.words().contains("0 of 1")),
            "{refused:?}"
        );
        pair.run_server(pair.standby());
        becomes("it sells again", async || {
            ledger.obstacle().is_none() && !ledger.lapsed()
        })
        .await;
        ledger.perform(new_hold(1, 21, "1")).await.unwrap();
        // Whatever streams would do, also a backup that keeps nothing.
        pair.wait_for("ANY 1 (a, *)");
        becomes("a setting that any program meets is seen", async || {
            ledger.obstacle().is_some()
        })
        .await;
        let refused = ledger.perform(new_hold(1, 22, "1")).await;
        assert!(
            matches!(&refused, Err(LedgerError::Unavailable(why)) if why.words().contains("pg_basebackup")),
            "{refused:?}"
        );
        // Commits that wait for nobody are refused while it runs, and at the start.
        pair.wait_for_nobody();
        let seen = async || why_not(&*ledger).contains("--allow-single");
        becomes("commits that wait for nobody are seen", seen).await;
        let refused = open(&pair, OpenMode::Write, None, false).await.map(drop);
        assert!(
            matches!(&refused, Err(LedgerError::Unusable(why)) if why.words().contains("--allow-single")),
            "{refused:?}"
        );
        let trial = open(&pair, OpenMode::Write, None, true).await.unwrap();
        assert!(trial.stats().standby == Standby::Single && trial.obstacle().is_none());
        trial.perform(new_key(2, 11, Some("5"))).await.unwrap();
        sound(&*ledger).await;
    });
}

/// A wait for the standby that somebody cancels: the server says that it has committed, and the standby has nothing.
#[test]
fn a_cancelled_commit_is_not_confirmed_before_the_standby_has_it() {
    with_pair("the cancel trap", async |pair| {
        let ledger = open(&pair, OpenMode::Serve, None, false).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        pair.signal(pair.standby(), "STOP");
        let asked = {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move { ledger.perform(top_up(1, 30, "1", "paid")).await })
        };
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
        becomes("its commit waits for the standby", async || {
            pair.sql(waiting) != "0"
        })
        .await;
        let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
        pair.sql(cancel);
        becomes("the warning makes it unknown", async || {
            ledger.stats().unknown_commits > 0
        })
        .await;
        assert_eq!(
            pair.sql("SELECT count(*) FROM entries WHERE kind = 1"),
            "2",
            "a bare read sees it already"
        );
        becomes("the repeated one waits, too", async || {
            pair.sql(waiting) != "0"
        })
        .await;
        assert!(
            !asked.is_finished(),
            "nothing is confirmed that the standby does not have"
        );
        pair.signal(pair.standby(), "CONT");
        assert!(
            asked.await.unwrap().unwrap().repeated,
            "the first attempt has done it"
        );
        let account = ledger
            .find_key(key(1))
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(account.credit, usd("6"));
        sound(&*ledger).await;
    });
}

#[test]
fn a_ledger_that_went_back_in_time_is_refused_until_the_loss_is_accepted() {
    with_pair("going back in time", async |mut pair| {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        pair.wait_for_nobody();
        let ledger = open(&pair, OpenMode::Serve, Some(&state), true)
            .await
            .unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let knows =
            async || std::fs::read_to_string(&state).is_ok_and(|text| text.contains("\"seq\":2"));
        lose_a_payment(&mut pair, &ledger, async || {
            becomes("the file knows it", knows).await
        })
        .await;
        becomes("the loss is found", async || {
            why_not(&*ledger).contains("back in time")
        })
        .await;
        for refused in [
            ledger.perform(new_hold(1, 20, "1")).await.map(drop),
            ledger.perform(top_up(1, 31, "1", "again")).await.map(drop),
            open(&pair, OpenMode::Serve, Some(&state), true)
                .await
                .map(drop),
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("back in time") && refused.contains("accept --lost"),
                "{refused}"
            );
        }
        let address: LedgerAddress = pair.url("postgres").parse().unwrap();
        let opening = Opening {
            allow_single: true,
            state: Some(state.clone()),
            ..Opening::new(OpenMode::Write)
        };
        let accepted = address.accept_lost(&opening, "ada", at(700)).await.unwrap();
        assert!(
            accepted.generation == 2
                && accepted.lost.iter().any(|lost| lost.contains("entry 2 of")),
            "{accepted:?}"
        );
        assert_eq!(pair.sql("SELECT actor, generation FROM losses"), "ada|2");
        becomes("it goes on with the new generation", async || {
            ledger.obstacle().is_none() && !ledger.lapsed()
        })
        .await;
        ledger.perform(top_up(1, 31, "1", "again")).await.unwrap();
        ledger.perform(new_hold(1, 20, "1")).await.unwrap();
        sound(&*ledger).await;
        drop(ledger);
        drop(
            open(&pair, OpenMode::Serve, Some(&state), true)
                .await
                .unwrap(),
        );
    });
}

#[test]
fn a_ledger_without_what_the_newest_anchor_covers_is_refused_until_the_loss_is_accepted() {
    with_pair("an anchor that is not covered", async |mut pair| {
        let folder = tempfile::tempdir().unwrap();
        let anchors = folder.path().join("anchors");
        pair.wait_for_nobody();
        let serve = Opening {
            allow_single: true,
            anchors: Some(anchors.clone()),
            ..Opening::new(OpenMode::Serve)
        };
        let ledger = open_as(&pair, &serve).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let mut file = AnchorFile::open(&anchors).unwrap();
        lose_a_payment(&mut pair, &ledger, async || {
            file.append(ledger.anchor(file.last(), at(2)).await.unwrap())
                .unwrap();
        })
        .await;
        drop(ledger);
        // Another gateway, which has written nothing itself.
        let refused = open_as(&pair, &serve)
            .await
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("back in time: entry 2 of") && refused.contains("accept --lost"),
            "{refused}"
        );
        let address: LedgerAddress = pair.url("postgres").parse().unwrap();
        let write = Opening {
            mode: OpenMode::Write,
            ..serve.clone()
        };
        let accepted = address.accept_lost(&write, "ada", at(700)).await.unwrap();
        assert!(
            accepted.generation == 2 && accepted.lost.len() == 2,
            "{accepted:?}"
        );
        let again = address
            .accept_lost(&write, "ada", at(701))
            .await
            .unwrap_err()
            .to_string();
        assert!(again.contains("nothing is missing"), "{again}");
        let ledger = open_as(&pair, &serve).await.unwrap();
        ledger.recover(at(3)).await.unwrap();
        assert_eq!(ledger.generations().await.unwrap(), [(2, at(700))]);
        // What is left is said again, for the generation that has begun.
        let next = ledger.anchor(file.last(), at(4)).await.unwrap();
        file.append(next).unwrap();
        let report = ledger
            .verify_with(anchor::read(&anchors).unwrap())
            .await
            .unwrap();
        assert_eq!((report.anchors, report.faults), (1, Vec::<String>::new()));
    });
}

#[test]
fn strict_waits_until_the_standby_has_everything_on_disk() {
    with_pair("strict durability on PostgreSQL", async |pair| {
        pair.sql("ALTER SYSTEM SET log_statement = 'all'");
        pair.sql("SELECT pg_reload_conf()");
        let logged = async || {
            pair.sql("SELECT 'logged'");
            pair.log(pair.primary())
                .contains("statement: SELECT 'logged'")
        };
        becomes("statements are logged", logged).await;
        for (number, durability) in [(1, Durability::Strict), (2, Durability::Prompt)] {
            let before = pair.log(pair.primary()).len();
            let ledger = open_as(
                &pair,
                &Opening {
                    durability,
                    ..Opening::new(OpenMode::Serve)
                },
            )
            .await
            .unwrap();
            ledger.recover(at(1)).await.unwrap();
            ledger
                .perform(new_key(number, 10 * number, Some("5")))
                .await
                .unwrap();
            ledger
                .perform(new_hold(number, 10 * number + 1, "1"))
                .await
                .unwrap();
            ledger
                .perform(Arc::new(finish(10 * number + 1, 250_000)))
                .await
                .unwrap();
            becomes("its lease is renewed", async || {
                pair.log(pair.primary())[before..].contains("UPDATE nodes SET renewals")
            })
            .await;
            let log = pair.log(pair.primary()).split_off(before);
            assert_eq!(
                log.contains("synchronous_commit = remote_write"),
                durability == Durability::Prompt,
                "{durability:?}"
            );
            sound(&*ledger).await;
        }
    });
}
