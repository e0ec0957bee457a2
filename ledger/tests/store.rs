//! The SQLite store as a file that several threads and processes share.
//!
//! Only what the contract leaves to the store: opening, refusing, locking, racing, durability, recovery of many holds.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use farebox_ledger::sqlite::{ServeLock, SqliteLedger};
use farebox_ledger::*;

fn open(path: &Path, mode: OpenMode) -> Result<SqliteLedger, LedgerError> {
    SqliteLedger::open(path, mode, Durability::Prompt)
}

fn create(path: &Path) -> Result<SqliteLedger, LedgerError> {
    SqliteLedger::create(path, OpenMode::Write, Durability::Prompt)
}

fn unusable(result: Result<SqliteLedger, LedgerError>) -> String {
    match result {
        Err(LedgerError::Unusable(text)) => text.to_string(),
        other => unreachable!("{other:?}"),
    }
}

fn misplaced(result: Result<SqliteLedger, LedgerError>) -> String {
    match result {
        Err(LedgerError::Misplaced(text)) => text.to_string(),
        other => unreachable!("{other:?}"),
    }
}

const MODES: [OpenMode; 3] = [OpenMode::Serve, OpenMode::Write, OpenMode::ReadOnly];

#[test]
fn a_ledger_is_made_only_when_asked_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    for mode in MODES {
        assert!(misplaced(open(&path, mode)).contains("there is no ledger at"));
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
    // What a process that ended too early leaves.
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    drop(create(&path).unwrap());
    for mode in MODES {
        drop(open(&path, mode).unwrap());
    }
    let before = std::fs::read(&path).unwrap();
    assert!(misplaced(create(&path)).contains("leave it out"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(unusable(open(dir.path(), OpenMode::Serve)).contains("is not a file"));
    let nowhere = dir.path().join("no/such/dir.db");
    assert!(misplaced(open(&nowhere, OpenMode::Serve)).contains("its folder does not exist"));
    assert!(unusable(create(&nowhere)).contains("does not exist; choose the ledger"));
}

/// Many processes may be told at once to make it: one does, and the others say that it is there.
#[test]
fn one_of_many_makes_a_ledger() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("farebox.db");
        let makers: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || create(&path).map(drop))
            })
            .collect();
        let made = makers.into_iter().map(|maker| maker.join().unwrap());
        let (made, refused): (Vec<_>, Vec<_>) = made.partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 3), "{refused:?}");
        assert!(
            refused
                .iter()
                .all(|refused| matches!(refused, Err(LedgerError::Misplaced(_)))),
            "{refused:?}"
        );
    }
}

/// Its commits are all that is left of a ledger, and SQLite removes a log beside a file that is missing or empty.
#[test]
fn a_log_without_its_ledger_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (path, log) = (
        dir.path().join("farebox.db"),
        dir.path().join("farebox.db-wal"),
    );
    std::fs::write(&log, "commits").unwrap();
    for empty in [false, true] {
        if empty {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        for mode in MODES {
            assert!(misplaced(open(&path, mode)).contains("is there without its ledger"));
        }
        assert!(misplaced(create(&path)).contains("is there without its ledger"));
        assert_eq!(std::fs::read(&log).unwrap(), b"commits");
    }
}

/// The ledgers that somebody may have meant, and only those. Nothing appears beside them.
#[test]
fn ledgers_nearby_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let near = dir.path().join("100% of it?.db");
    create(&near).unwrap().close();
    let moved = dir.path().join("moved.db");
    create(&moved).unwrap().close();
    let foreign = dir.path().join("foreign.db");
    for (path, sql) in [
        (&moved, "PRAGMA user_version = 1000017"),
        (&foreign, "CREATE TABLE mine (x)"),
    ] {
        let conn = rusqlite::Connection::open(path).unwrap();
        conn.execute_batch(sql).unwrap();
    }
    std::fs::write(dir.path().join("notes.txt"), "text ".repeat(100)).unwrap();
    let files = || {
        let mut names: Vec<_> = (dir.path().read_dir().unwrap())
            .map(|file| file.unwrap().file_name())
            .collect();
        names.sort_unstable();
        names
    };
    let before = files();
    let said = misplaced(open(&dir.path().join("farebox.db"), OpenMode::Serve));
    assert!(
        said.contains(&format!("ledgers nearby: {}. Name yours", near.display())),
        "{said}"
    );
    let working = std::env::current_dir().unwrap();
    assert!(
        said.contains(&format!("working folder: {}", working.display()))
            && said.contains("serve --new-ledger")
    );
    assert_eq!(files(), before);
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let text = write(
        "notes.txt",
        b"not a database, but long enough to look like one"
            .repeat(20)
            .as_slice(),
    );
    assert!(unusable(open(&text, OpenMode::Serve)).contains("is not a ledger"));
    let empty = write("empty.db", b"");
    assert!(misplaced(open(&empty, OpenMode::Write)).contains("is empty"));
    assert_eq!(empty.metadata().unwrap().len(), 0);
    let foreign = write("foreign.db", b"");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE mine (x)")
        .unwrap();
    let before = std::fs::read(&foreign).unwrap();
    assert!(unusable(open(&foreign, OpenMode::Serve)).contains("another program"));
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
    let newer = dir.path().join("newer.db");
    drop(create(&newer).unwrap());
    rusqlite::Connection::open(&newer)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    assert!(unusable(open(&newer, OpenMode::Serve)).contains("newer version"));
    let shared = dir.path().join("shared.db");
    drop(create(&shared).unwrap());
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o664)).unwrap();
    assert!(unusable(open(&shared, OpenMode::Write)).contains("chmod o-rwx"));
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o660)).unwrap();
    open(&shared, OpenMode::Write).unwrap();
}

#[test]
fn a_reader_cannot_write() {
    let (dir, ledger) = sqlite();
    run(ledger.perform(new_key(1, 10, Some("5")))).unwrap();
    let reader = open(&dir.path().join("farebox.db"), OpenMode::ReadOnly).unwrap();
    assert!(run(reader.find_key(key(1))).unwrap().is_some());
    assert!(matches!(
        run(reader.perform(new_hold(1, 20, "1"))),
        Err(LedgerError::Unavailable(_))
    ));
    reader.abandon_hold(Arc::new(finish(20, 1)));
}

#[test]
fn one_gateway_serves_a_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    let lock = ServeLock::acquire(&path, Duration::ZERO).unwrap();
    let Err(LedgerError::Unusable(text)) = ServeLock::acquire(&path, Duration::from_millis(60))
    else {
        unreachable!()
    };
    assert!(
        text.words().contains(&format!(
            "is in use by process {} since 2",
            std::process::id()
        )),
        "{text}"
    );
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || ServeLock::acquire(&path, Duration::from_secs(20))
    });
    std::thread::sleep(Duration::from_millis(20));
    drop(lock);
    waiting.join().unwrap().unwrap();
    assert!(dir.path().join("farebox.db.lock").exists());
}

#[test]
fn two_stores_on_one_file_hold_the_last_dollar_once() {
    let (dir, first) = sqlite();
    let second = Arc::new(open(&dir.path().join("farebox.db"), OpenMode::Write).unwrap());
    run(hold_the_last_dollar_once(&[first, second], 20));
}

/// A million requests would be exact too; here ten thousand, from many tasks, beside credits from another process.
#[test]
fn many_small_charges_are_exact() {
    let (dir, gateway) = sqlite();
    let console = open(&dir.path().join("farebox.db"), OpenMode::Write).unwrap();
    run(async {
        for number in 0..8 {
            gateway
                .perform(new_key(number, 10 + number, Some("1")))
                .await
                .unwrap();
        }
        let tasks: Vec<_> = (0..40_u64)
            .map(|task| {
                let ledger: SharedLedger = Arc::clone(&gateway) as SharedLedger;
                tokio::spawn(async move {
                    for number in 0..50 {
                        let hold = Hold::open(
                            Arc::clone(&ledger),
                            new_hold(task % 8, 10_000 + task * 100 + number, "0.01"),
                        )
                        .await
                        .unwrap();
                        hold.settle(bill(7), at(500)).await.unwrap();
                    }
                })
            })
            .collect();
        for number in 0..20 {
            console
                .perform(top_up(
                    number % 8,
                    100 + number,
                    "0.5",
                    &format!("during-{number}"),
                ))
                .await
                .unwrap();
            sound(&console).await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        let totals = gateway.totals().await.unwrap();
        assert_eq!(
            (totals.entries, totals.holds, totals.held),
            (8 + 2_000 + 20, 0, 0)
        );
        assert_eq!(
            (totals.credit, totals.spent),
            (18_000_000_000_000, 2_000 * 7_000_000)
        );
        assert_eq!(console.totals().await.unwrap(), totals);
        let stats = gateway.stats();
        assert!(
            stats.operations >= 4_000 && stats.commits < stats.operations,
            "{stats:?}"
        );
        sound(&*gateway).await;
    });
}

#[test]
fn a_key_revoked_by_another_process_is_refused_at_once() {
    let (dir, gateway) = sqlite();
    let console = open(&dir.path().join("farebox.db"), OpenMode::Write).unwrap();
    run(async {
        gateway.perform(new_key(1, 10, Some("5"))).await.unwrap();
        gateway.perform(new_hold(1, 20, "1")).await.unwrap();
        console
            .perform(change(1, 11, Change::Revoke))
            .await
            .unwrap();
        let refused = Err(LedgerError::Refused(Refusal::NotActive(KeyStatus::Revoked)));
        assert_eq!(gateway.perform(new_hold(1, 21, "1")).await, refused);
        assert_eq!(gateway.perform(moved(20, "2", 1)).await, refused);
        assert_eq!(
            gateway
                .find_key(key(1))
                .await
                .unwrap()
                .unwrap()
                .stored_status,
            KeyStatus::Revoked
        );
    });
}

#[test]
fn everything_is_there_after_a_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    for round in 0..3_u64 {
        let durability = if round == 1 {
            Durability::Strict
        } else {
            Durability::Prompt
        };
        let ledger = if round == 0 {
            SqliteLedger::create(&path, OpenMode::Serve, durability).unwrap()
        } else {
            SqliteLedger::open(&path, OpenMode::Serve, durability).unwrap()
        };
        run(async {
            ledger
                .perform(new_key(round, 10 + round, Some("1")))
                .await
                .unwrap();
            ledger
                .perform(new_hold(round, 100 + round, "1"))
                .await
                .unwrap();
            ledger.abandon_hold(Arc::new(finish(100 + round, 10)));
            ledger.close();
            ledger.close();
            let closed = ledger.perform(new_hold(round, 200, "1")).await;
            assert!(matches!(closed, Err(LedgerError::Unavailable(_))));
            let totals = ledger.totals().await.unwrap();
            assert_eq!(
                (totals.entries, totals.holds),
                (2 * (round + 1), 0),
                "what was abandoned is settled before the end"
            );
            sound(&ledger).await;
        });
    }
}

#[test]
fn ten_thousand_holds_are_recovered_in_time() {
    const HOLDS: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    run(async {
        let ledger = Arc::new(file(&path, OpenMode::Serve).unwrap());
        ledger.recover(at(1)).await.unwrap();
        for number in 0..10 {
            ledger
                .perform(new_key(number, 10 + number, Some("10000")))
                .await
                .unwrap();
        }
        let tasks = (0..100_u64).map(|task| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                for number in (0..HOLDS).filter(|number| number % 100 == task) {
                    ledger
                        .perform(new_hold(number % 10, 1_000 + number, "1"))
                        .await
                        .unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        ledger.perform(moved(1_000, "2", 500)).await.unwrap();
    });
    let ledger = open(&path, OpenMode::Serve).unwrap();
    let begun = Instant::now();
    let recovered = run(ledger.recover(at(900))).unwrap();
    let took = begun.elapsed();
    assert_eq!(
        (recovered.epoch, recovered.settled, recovered.released),
        (2, 1, 9_999)
    );
    // A second without optimisation; a square would take minutes.
    assert!(took < Duration::from_secs(60), "{took:?}");
    run(sound(&ledger));
}
