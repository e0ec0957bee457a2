//! Commands and consoles are as careful as the gateway: their clocks, hard links, a schema that changes under them, and errors that
//! name what to mend.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::path::Path;

use common::cluster::Cluster;
use common::proxy::Proxy;
use common::*;
use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::sqlite::FilesCheck;
use farebox_ledger::store::Store as _;
use farebox_ledger::*;

const DAY: i64 = 86_400_000;

fn why<T>(opened: Result<T, LedgerError>) -> String {
    match opened.map(drop) {
        Err(LedgerError::Unusable(why)) => why.to_string(),
        Err(LedgerError::Unavailable(why)) => why.to_string(),
        other => unreachable!("{other:?}"),
    }
}

/// Sets the clock of a database, as statements of new sessions see it.
fn set_clock(cluster: &Cluster, database: &str, seconds: i64) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
         $$ SELECT pg_catalog.clock_timestamp() + interval '{seconds} s' $$; \
         ALTER DATABASE {database} SET search_path = public, pg_catalog"
    );
    cluster.psql(database, &sql).unwrap();
}

fn now() -> Timestamp {
    clock::now()
}

fn later(by: i64) -> Timestamp {
    Timestamp::from_millis(now().millis() + by)
}

#[test]
fn a_command_whose_clock_is_ahead_of_the_databases_is_refused() {
    with_cluster("clocks of commands", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        let gateway = postgres(&url, OpenMode::Serve).await.unwrap();
        gateway.recover(now()).await.unwrap();
        drop(gateway);
        set_clock(cluster, &database, -20);
        let why = why(postgres(&url, OpenMode::Write).await);
        assert!(
            why.contains("s ahead of the database's") && why.contains("nothing was changed"),
            "{why}"
        );
        postgres(&url, OpenMode::ReadOnly).await.unwrap();
        // Behind, or a little ahead: the ledger's clock dates what it books.
        for seconds in [-5, 3_600] {
            set_clock(cluster, &database, seconds);
            postgres(&url, OpenMode::Write).await.unwrap();
        }
    });
}

#[test]
fn a_step_back_in_time_is_accepted_and_named() {
    with_cluster("a step back in time", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        // The database's own clock ran ahead for a while.
        set_clock(cluster, &database, 30 * 24 * 3_600);
        let ledger = new_postgres(&url, OpenMode::Write).await.unwrap();
        ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let ahead = Credit {
            at: later(30 * DAY),
            ..top_up(1, 11, "1", "ahead")
        };
        let ahead = ledger.perform(ahead).await.unwrap().entry;
        assert!(ahead.at > later(29 * DAY), "{ahead:?}");
        drop(ledger);
        set_clock(cluster, &database, 0);
        let ledger = postgres(&url, OpenMode::Write).await.unwrap();
        let right = Credit {
            at: now(),
            ..top_up(1, 12, "1", "right")
        };
        let right = ledger.perform(right).await.unwrap().entry;
        assert!(
            right.at < later(60_000),
            "the clock counts again: {right:?}"
        );
        let report = ledger.verify().await.unwrap();
        assert!(report.faults.is_empty(), "{report:?}");
        let [note] = report.notes.as_slice() else {
            unreachable!("{report:?}")
        };
        assert!(note.contains("clock that ran ahead"), "{note}");
        let month = EntryQuery {
            until: Some(later(60_000)),
            ..EntryQuery::default()
        };
        let month = ledger.entries(month).await.unwrap();
        assert_eq!(month.len(), 3, "with the misdated one: {month:?}");
    });
}

#[test]
fn a_command_whose_clock_is_behind_the_newest_entry_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    run(async {
        let gateway = file(&path, OpenMode::Serve).unwrap();
        gateway.perform(new_key(1, 10, None)).await.unwrap();
        for (operation, ahead) in [(11, 8_000), (12, 9_000)] {
            let paid = Credit {
                at: later(ahead),
                ..top_up(1, operation, "1", &format!("paid-{operation}"))
            };
            gateway.perform(paid).await.unwrap();
            drop(file(&path, OpenMode::Write).unwrap());
        }
        gateway.close();
        drop(gateway);
        // As from a machine whose clock is an hour ahead of this one.
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(
            "DROP TRIGGER IF EXISTS entries_no_update; UPDATE entries SET at = at + 3600000 WHERE position = 2",
        )
        .unwrap_or_else(|error| unreachable!("{error}"));
        drop(conn);
        let an_hour = std::time::SystemTime::now() + std::time::Duration::from_secs(3_600);
        let written = |when| {
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(when).unwrap();
        };
        written(an_hour);
        let why = why(file(&path, OpenMode::Write));
        assert!(
            why.contains("after this machine's clock")
                && why.contains(&format!("touch {}", path.display())),
            "{why}"
        );
        file(&path, OpenMode::ReadOnly).unwrap();
        file(&path, OpenMode::Serve).unwrap();
        // The way out: the clock ran ahead then, and is right now, so what it dated counts no more.
        written(std::time::SystemTime::now());
        let command = file(&path, OpenMode::Write).unwrap();
        let paid = Credit {
            at: now(),
            ..top_up(1, 20, "1", "paid-20")
        };
        let paid = command.perform(paid).await.unwrap().entry;
        assert!(paid.at < later(60_000), "{paid:?}");
    });
}

/// Nothing but the commands writes, because no key has money left; while a gateway has the file open, its log shows when.
#[test]
fn a_misdated_entry_in_a_log_that_was_written_since_keeps_no_command_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    run(async {
        let gateway = file(&path, OpenMode::Serve).unwrap();
        gateway.perform(new_key(1, 10, None)).await.unwrap();
        let paid = Credit {
            at: now(),
            ..top_up(1, 11, "1", "paid")
        };
        gateway.perform(paid).await.unwrap();
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(
            "DROP TRIGGER IF EXISTS entries_no_update; UPDATE entries SET at = at + 2592000000",
        )
        .unwrap_or_else(|error| unreachable!("{error}"));
        drop(conn);
        let log = folder.path().join("a.db-wal");
        let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(2_592_000);
        let written = |when| {
            let file = std::fs::File::options().append(true).open(&log).unwrap();
            file.set_modified(when).unwrap();
        };
        written(ahead);
        let refused = why(file(&path, OpenMode::Write));
        let remedy = format!("touch {}", log.canonicalize().unwrap().display());
        assert!(refused.contains(&remedy), "{refused}");
        written(std::time::SystemTime::now());
        let command = file(&path, OpenMode::Write).unwrap();
        command.perform(top_up(1, 20, "1", "more")).await.unwrap();
    });
}

#[test]
fn a_ledger_with_two_names_is_refused_by_readers_and_backups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    run(async {
        let gateway = file(&path, OpenMode::Serve).unwrap();
        gateway.perform(new_key(1, 10, Some("5"))).await.unwrap();
        gateway.close();
    });
    let second = folder.path().join("b.db");
    std::fs::hard_link(&path, &second).unwrap();
    for name in [&path, &second] {
        for mode in [OpenMode::ReadOnly, OpenMode::Write, OpenMode::Serve] {
            let why = why(file(name, mode));
            assert!(why.contains("2 names (hard links)"), "{mode:?}: {why}");
        }
    }
    std::fs::remove_file(&second).unwrap();
    file(&path, OpenMode::ReadOnly).unwrap();
}

#[test]
fn a_schema_named_like_the_role_is_no_false_alarm() {
    with_cluster("a schema of the role's name", async |cluster| {
        for first in [true, false] {
            let database = cluster.database();
            let url = cluster.url(&database);
            let make = || cluster.psql(&database, "CREATE SCHEMA farebox").unwrap();
            if first {
                make();
            }
            let ledger = new_postgres(&url, OpenMode::Write).await.unwrap();
            ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
            drop(ledger);
            if !first {
                make();
            }
            let ledger = postgres(&url, OpenMode::Write).await.unwrap();
            ledger.perform(top_up(1, 11, "1", "paid")).await.unwrap();
            sound(&ledger).await;
        }
    });
}

#[test]
fn a_newer_schema_is_made_when_no_older_gateway_runs_and_ends_open_consoles() {
    with_cluster("a migration under gateways", async |cluster| {
        let database = cluster.database();
        let proxy = Proxy::start(cluster.folder());
        let gateway = postgres(&proxy.url(&database), OpenMode::Serve)
            .await
            .unwrap();
        gateway.recover(at(1)).await.unwrap();
        gateway.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let console = postgres(&cluster.url(&database), OpenMode::Write)
            .await
            .unwrap();
        // What a later version finds, as long as gateways of this one run.
        let old = cluster.copy_of_running(&database);
        let LedgerAddress::Postgres(address) = cluster.url(&old).parse().unwrap() else {
            unreachable!()
        };
        let steps = ["ALTER TABLE lessons ADD COLUMN weight bigint NOT NULL DEFAULT 1"];
        let version = "SELECT version FROM identity";
        let before: i32 = cluster.psql(&old, version).unwrap().parse().unwrap();
        cluster
            .psql(&old, "UPDATE nodes SET renewed_at = now()")
            .unwrap();
        let refused = why(PostgresLedger::migrate_by(&address, &steps).await);
        let name = gateway.node().unwrap().to_owned();
        assert!(
            refused.contains(&name) && refused.contains("stop every gateway first"),
            "{refused}"
        );
        assert_eq!(cluster.psql(&old, version).unwrap(), before.to_string());
        // One that died, or is frozen, is in nobody's way, and its epoch ends.
        cluster
            .psql(
                &old,
                "UPDATE nodes SET renewed_at = now() - interval '1 minute'",
            )
            .unwrap();
        for _ in 0..2 {
            PostgresLedger::migrate_by(&address, &steps).await.unwrap();
        }
        let living = "SELECT count(*) FROM nodes WHERE ended IS NULL";
        assert_eq!(cluster.psql(&old, living).unwrap(), "0");
        let newer = (before + 1).to_string();
        assert_eq!(cluster.psql(&old, version).unwrap(), newer);
        assert_eq!(
            cluster.psql(&old, "SELECT weight FROM lessons").unwrap(),
            ""
        );
        let late = why(postgres(&cluster.url(&old), OpenMode::Serve).await);
        assert!(late.contains("by a newer version"), "{late}");
        // A console of this version, when a newer one has changed the schema.
        let newer = format!("UPDATE identity SET version = {newer}");
        cluster.psql(&database, &newer).unwrap();
        let late = console.perform(top_up(1, 30, "1", "late")).await;
        assert!(
            matches!(&late, Err(LedgerError::Unavailable(why)) if why.to_string().contains("use that version")),
            "{late:?}"
        );
    });
}

#[test]
fn a_console_does_not_write_into_a_file_that_was_moved_or_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    run(async {
        let gateway = file(&path, OpenMode::Serve).unwrap();
        gateway.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let console = file(&path, OpenMode::Write).unwrap();
        console.perform(top_up(1, 11, "1", "before")).await.unwrap();
        let outside = rusqlite::Connection::open(&path).unwrap();
        for (added, said) in [
            (1_000_000, "was moved to another store"),
            (1, "use that version"),
        ] {
            let version: i64 = outside
                .query_row("PRAGMA user_version", [], |row| row.get(0))
                .unwrap();
            outside
                .pragma_update(None, "user_version", version + added)
                .unwrap();
            let late = why(console.perform(top_up(1, 12, "1", "late")).await);
            assert!(late.contains(said), "{late}");
            outside
                .pragma_update(None, "user_version", version)
                .unwrap();
        }
        console.perform(top_up(1, 13, "1", "after")).await.unwrap();
    });
}

/// A newer version has upgraded the ledger under a running gateway, which nobody asks for anything.
#[test]
fn a_gateway_whose_ledger_got_a_newer_schema_stops_selling_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let gateway = file(&path, OpenMode::Serve).unwrap();
    let outside = rusqlite::Connection::open(&path).unwrap();
    let version: i64 = outside
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    let set = |version: i64| {
        outside
            .pragma_update(None, "user_version", version)
            .unwrap();
    };
    assert_eq!(gateway.look(true), FilesCheck::Here);
    set(version + 1);
    for _ in 0..3 {
        assert_eq!(gateway.look(true), FilesCheck::Away);
        let why = why_not(&gateway);
        assert!(why.contains("use that version"), "{why}");
    }
    set(version);
    assert_eq!(gateway.look(true), FilesCheck::Here);
    assert_eq!(gateway.obstacle(), None);

    with_cluster("a newer schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        let gateway = postgres(&url, OpenMode::Serve).await.unwrap();
        gateway.recover(at(1)).await.unwrap();
        let set = |sql: &str| cluster.psql(&database, sql).unwrap();
        let until = async |writable: bool| {
            let begun = std::time::Instant::now();
            while gateway.obstacle().is_none() != writable {
                assert!(begun.elapsed().as_secs() < 20, "{:?}", gateway.troubles());
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        until(true).await;
        set("UPDATE identity SET version = version + 1");
        until(false).await;
        let why = why_not(&gateway);
        assert!(why.contains("use that version"), "{why}");
        set("UPDATE identity SET version = version - 1");
        until(true).await;
    });
}

#[test]
fn rows_of_gateways_that_ended_long_ago_are_deleted_and_missed_by_nobody() {
    with_cluster("rows of gateways", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        let with_state = || Opening {
            state: Some(state.clone()),
            allow_single: true,
            ..Opening::new(OpenMode::Serve)
        };
        let LedgerAddress::Postgres(address) = url.parse().unwrap() else {
            unreachable!()
        };
        drop(new_postgres(&url, OpenMode::Write).await.unwrap());
        let first = PostgresLedger::open(&address, &with_state()).await.unwrap();
        first.recover(at(1)).await.unwrap();
        first.perform(new_key(1, 10, Some("5"))).await.unwrap();
        let begun = std::time::Instant::now();
        let renewals = |state: &Path| {
            let text = std::fs::read_to_string(state).unwrap_or_default();
            let known: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            known["run"]["renewals"].as_i64().unwrap_or_default()
        };
        while renewals(&state) < 2 {
            assert!(begun.elapsed().as_secs() < 20, "it does not renew");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        first.close();
        drop(first);
        // It ended 31 days ago, and its state file says so, too.
        let back = 31 * 86_400_000_000_i64;
        let text = std::fs::read_to_string(&state).unwrap();
        let mut known: serde_json::Value = serde_json::from_str(&text).unwrap();
        let started = known["run"]["started"].as_i64().unwrap();
        known["run"]["started"] = (started - back).into();
        std::fs::write(&state, known.to_string()).unwrap();
        let aged = "UPDATE nodes SET started_at = started_at - interval '31 days', ended = now() - interval '31 days'";
        cluster.psql(&database, aged).unwrap();
        let second = postgres(&url, OpenMode::Serve).await.unwrap();
        second.recover(at(2)).await.unwrap();
        let old = "SELECT count(*) FROM nodes WHERE ended < now() - interval '30 days'";
        let begun = std::time::Instant::now();
        while cluster.psql(&database, old).unwrap() != "0" {
            assert!(begun.elapsed().as_secs() < 20, "the row stays");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        drop(second);
        let third = PostgresLedger::open(&address, &with_state()).await.unwrap();
        third.recover(at(3)).await.unwrap();
        assert_eq!(third.obstacle(), None);
        // One that ended lately and has no row is missing.
        known["run"]["started"] = started.into();
        drop(third);
        std::fs::write(&state, known.to_string()).unwrap();
        let late = PostgresLedger::open(&address, &with_state()).await;
        let late = match late {
            Ok(late) => late.recover(at(4)).await.map(drop),
            Err(error) => Err(error),
        };
        assert!(
            late.unwrap_err()
                .to_string()
                .contains("renewals of this gateway")
        );
    });
}

#[test]
fn every_error_of_a_connection_names_its_server_and_what_to_mend() {
    with_cluster("errors of connections", async |cluster| {
        let folder = tempfile::tempdir().unwrap();
        let (missing, empty) = (
            folder.path().join("none.crt"),
            folder.path().join("empty.crt"),
        );
        std::fs::write(&empty, "no certificate\n").unwrap();
        let with = |file: &Path| {
            format!(
                "postgres://farebox@db.example.invalid:5499/ledger?sslrootcert={}",
                file.display()
            )
        };
        for (url, said) in [
            (
                with(&missing),
                ["db.example.invalid:5499", "sslrootcert=", "none.crt"],
            ),
            (
                with(&empty),
                ["db.example.invalid:5499", "sslrootcert=", "empty.crt"],
            ),
            (
                "postgres://farebox@127.0.0.1:1/ledger".to_owned(),
                ["127.0.0.1:1", "refused", ""],
            ),
            (
                "postgres://farebox@db.example.invalid:5499/ledger".to_owned(),
                ["db.example.invalid:5499", "", ""],
            ),
            (
                cluster.url("no_such_database"),
                [".s.PGSQL.5432", "no_such_database", "does not exist"],
            ),
            (
                cluster.url("postgres").replace("farebox@", "nobody_here@"),
                [".s.PGSQL.5432", "nobody_here", "does not exist"],
            ),
        ] {
            let why = why(postgres(&url, OpenMode::ReadOnly).await);
            assert!(said.iter().all(|part| why.contains(part)), "{url}: {why}");
        }
    });
}
