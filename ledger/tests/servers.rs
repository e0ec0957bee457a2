//! The servers of a ledger: a promoted one is found although the old primary is silent, a stale primary is never used, and operators
//! are told the state of each.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and says how long things took"
)]

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

/// How soon a promoted server is found. Asserted at full size alone: every day the machine may be busy.
const BOUND: Duration = Duration::from_secs(10);
/// How long to wait for it.
const PATIENCE: Duration = Duration::from_secs(90);

fn with_three(what: &str, test: impl AsyncFnOnce(Pair)) {
    match Pair::start_with(2, false) {
        Some(pair) => run(test(pair)),
        None => skip(what),
    }
}

async fn open(
    url: &str,
    mode: OpenMode,
    state: Option<&Path>,
) -> Result<Arc<PostgresLedger>, LedgerError> {
    let opening = Opening {
        state: state.map(Path::to_owned),
        ..Opening::new(mode)
    };
    postgres_as(url, &opening).await.map(Arc::new)
}

async fn refused(url: &str, mode: OpenMode, state: Option<&Path>) -> String {
    match open(url, mode, state).await {
        Err(LedgerError::Unusable(why)) => why.to_string(),
        other => unreachable!("{other:?}"),
    }
}

/// Opens and ends a hold as soon as that is possible, and returns how long it took.
async fn sells(ledger: &PostgresLedger, request: u64) -> Duration {
    let begun = Instant::now();
    loop {
        let opened = ledger.perform(new_hold(1, request, "0.01")).await;
        if opened.is_ok() {
            let took = begun.elapsed();
            ledger
                .perform(Arc::new(finish(request, 1_000)))
                .await
                .unwrap();
            return took;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{opened:?}: {:#?}",
            ledger.servers()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn in_time(what: &str, took: Duration) {
    println!(
        "{what}: selling {:.1} s after the promotion",
        took.as_secs_f64()
    );
    let full = std::env::var_os("FAREBOX_FULL").is_some();
    assert!(took < BOUND || !full, "{what}: {took:?}");
}

fn state_of(ledger: &PostgresLedger, pair: &Pair, server: usize) -> String {
    let folder = pair.folder(server).display().to_string();
    (ledger.servers().into_iter())
        .find(|server| server.place.starts_with(&folder))
        .map(|server| server.state)
        .unwrap_or_default()
}

#[test]
fn a_promoted_server_is_found_although_the_old_primary_is_silent() {
    with_three("a silent primary", async |mut pair| {
        let (url, folder) = (pair.url("postgres"), tempfile::tempdir().unwrap());
        let state = folder.path().join("state");
        let ledger = open(&url, OpenMode::Serve, Some(&state)).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("50"))).await.unwrap();
        sells(&ledger, 20).await;
        let old = pair.primary();
        // Either standby may have confirmed that, and the one that is promoted must have it.
        let level =
            "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn = pg_current_wal_flush_lsn()";
        pair.until(old, level, "2");
        // A frozen process: it takes connections and answers nothing.
        pair.signal(old, "STOP");
        assert!(ledger.perform(new_hold(1, 21, "0.01")).await.is_err());
        pair.promote_beside(1);
        in_time(
            "a running gateway, a frozen primary",
            sells(&ledger, 22).await,
        );
        let begun = Instant::now();
        let fresh = open(&url, OpenMode::Serve, None).await.unwrap();
        fresh.recover(at(2)).await.unwrap();
        in_time("a fresh gateway, a frozen primary", begun.elapsed());
        let begun = Instant::now();
        let command = open(&url, OpenMode::Write, None).await.unwrap();
        command.perform(top_up(1, 30, "1", "paid")).await.unwrap();
        in_time("a command, a frozen primary", begun.elapsed());
        let read = open(&url, OpenMode::ReadOnly, None).await.unwrap();
        assert_eq!(
            read.find_key(key(1))
                .await
                .unwrap()
                .unwrap()
                .customer
                .account
                .credit,
            usd("51"),
            "reads go to the primary"
        );
        assert_eq!(state_of(&read, &pair, old), "does not answer");
        // It wakes, and takes writes for all it knows: nobody uses it, and everybody is told.
        pair.signal(old, "CONT");
        let begun = Instant::now();
        while !state_of(&ledger, &pair, old).contains("stale primary on timeline 1: fence it") {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", ledger.servers());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sells(&ledger, 23).await;
        // The promoted one is away, and the stale one alone is there: refused, without advice that would split the ledger.
        let promoted = pair.primary();
        pair.kill(promoted);
        let why = refused(&url, OpenMode::Serve, Some(&state)).await;
        assert!(why.contains("fence"), "{why}");
        let why = refused(&url, OpenMode::Write, None).await;
        assert!(why.contains("fence"), "{why}");
        assert!(ledger.perform(new_hold(1, 24, "0.01")).await.is_err());
        let (begun, why) = (Instant::now(), || why_not(&*ledger));
        while !why().contains("stale primary on timeline 1: fence it") {
            assert!(begun.elapsed() < PATIENCE, "{}", why());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn a_stale_primary_is_not_used_although_it_has_a_standby_and_the_promoted_one_has_none() {
    with_three("a stale primary with a standby", async |mut pair| {
        let url = pair.url("postgres");
        let ledger = open(&url, OpenMode::Serve, None).await.unwrap();
        ledger.recover(at(1)).await.unwrap();
        ledger.perform(new_key(1, 10, Some("50"))).await.unwrap();
        sells(&ledger, 20).await;
        let old = pair.primary();
        pair.kill(old);
        pair.promote();
        let promoted = pair.primary();
        // It boots as it was, before anybody has led its other standby away.
        pair.run_server(old);
        let streams = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum' AND state = 'streaming'";
        pair.until(old, streams, "1");
        let begun = Instant::now();
        while !state_of(&ledger, &pair, old).contains("stale primary on timeline 1: fence it") {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", ledger.servers());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(ledger.perform(new_hold(1, 21, "0.01")).await.is_err());
        // Commands and gateways that start wait for the promoted server's standby, too, and say why.
        for mode in [OpenMode::Write, OpenMode::Serve] {
            let why = refused(&url, mode, None).await;
            assert!(
                why.contains("0 of 1 synchronous standbys")
                    && why.contains("stale primary on timeline 1: fence it"),
                "{why}"
            );
        }
        // Nor is it used by those that have seen the promoted one, when that one is away.
        pair.kill(promoted);
        let begun = Instant::now();
        while state_of(&ledger, &pair, promoted).contains("primary on timeline 2") {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", ledger.servers());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(ledger.perform(new_hold(1, 22, "0.01")).await.is_err());
        pair.until(old, "SELECT count(*) FROM entries", "2");
        // What followed the stale one has gone another way, and is built anew.
        pair.run_server(promoted);
        pair.build_standbys();
        sells(&ledger, 23).await;
        sound(&*ledger).await;
    });
}

#[test]
fn a_name_that_leads_nowhere_and_a_refusing_port_hold_nobody_up() {
    with_three("addresses that lead nowhere", async |pair| {
        let server = pair.folder(pair.primary()).display().to_string();
        // Accepts and says nothing, as a machine behind a broken network does.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let url = format!(
            "postgres://farebox@127.0.0.1:{port},127.0.0.1:1,no-such-host.invalid:5432,{}:5432/postgres?sslmode=disable",
            server.replace('/', "%2F")
        );
        let begun = Instant::now();
        let ledger = open(&url, OpenMode::Serve, None).await.unwrap();
        in_time("silent, refused and unknown addresses", begun.elapsed());
        let states: Vec<String> = (ledger.servers().iter())
            .map(|server| server.state.clone())
            .collect();
        assert_eq!(states[0], "does not answer");
        assert!(states[1].contains("refused"), "{states:?}");
        assert!(
            states[2].contains("cannot be resolved") || states[2] == "does not answer",
            "{states:?}"
        );
        assert!(states[3].contains("in use"), "{states:?}");
        let why = refused(
            &format!("postgres://farebox@127.0.0.1:{port},127.0.0.1:1/postgres"),
            OpenMode::Write,
            None,
        )
        .await;
        assert!(
            why.contains(&format!("127.0.0.1:{port}: does not answer"))
                && why.contains("127.0.0.1:1: "),
            "{why}"
        );
    });
}

#[test]
fn a_standby_is_read_only_when_asked_for() {
    with_three("a standby that is read", async |pair| {
        let url = pair.url("postgres");
        let ledger = open(&url, OpenMode::Serve, None).await.unwrap();
        ledger.perform(new_key(1, 10, Some("50"))).await.unwrap();
        let standby = Pair::url_at([pair.folder(pair.standby())], "postgres");
        let why = refused(&standby, OpenMode::ReadOnly, None).await;
        assert!(
            why.contains("--standby") && why.contains("s behind"),
            "{why}"
        );
        let LedgerAddress::Postgres(database) = url.parse().unwrap() else {
            unreachable!()
        };
        let opening = Opening {
            standby: true,
            ..Opening::new(OpenMode::ReadOnly)
        };
        let begun = Instant::now();
        // A standby confirms before it shows, and one of two may confirm nothing yet.
        let read = loop {
            match PostgresLedger::open(&database, &opening).await {
                Ok(read) => break read,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        while read.find_key(key(1)).await.unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}
