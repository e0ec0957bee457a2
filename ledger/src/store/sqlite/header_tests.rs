//! What happens to a ledger's file behind SQLite's back, and to entries that a wrong clock has dated.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::batch::Batch;
use super::*;
use crate::{
    Act, Amount, Credit, CreditKind, EntryQuery, KeySettings, Membership, NewKey, OperationId,
    Perform,
};

fn op(number: u64) -> OperationId {
    OperationId::from_bytes(u128::from(number).to_be_bytes())
}

fn new(path: &Path) -> SqliteLedger {
    SqliteLedger::create(path, OpenMode::Serve, Durability::Prompt).unwrap()
}

fn open(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap()
}

fn act(operation: u64) -> Act {
    Act {
        operation: op(operation),
        actor: "ada".to_owned(),
        at: Timestamp::from_millis(1_000),
    }
}

async fn create(ledger: &SqliteLedger, number: u64) {
    let new = NewKey {
        within: Membership::default(),
        id: KeyId::from_random(number),
        secret: SecretHash([1; 32]),
        settings: KeySettings::default(),
        first_credit: Some((Amount::from_picos(1_000_000), format!("first-{number}"))),
        purse: None,
        act: act(number),
    };
    ledger.perform(new).await.unwrap();
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

#[test]
fn a_backup_copied_over_the_live_file_is_noticed_and_not_taken_with_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let (path, backup) = (dir.path().join("a.db"), dir.path().join("backup.db"));
    run(async {
        let ledger = new(&path);
        create(&ledger, 1).await;
        ledger.backup(&backup).await.unwrap();
        create(&ledger, 2).await;
        assert_eq!(ledger.look(true), FilesCheck::Here);
        // In place, as `cp` does it: the file keeps its inode.
        std::fs::write(&path, std::fs::read(&backup).unwrap()).unwrap();
        let refused = ledger.perform(NewKey {
            within: Membership::default(),
            id: KeyId::from_random(3),
            secret: SecretHash([1; 32]),
            settings: KeySettings::default(),
            first_credit: None,
            purse: None,
            act: act(3),
        });
        let refused = refused.await.map(drop);
        assert!(
            matches!(&refused, Err(LedgerError::Unavailable(why)) if why.words().contains("written over")),
            "{refused:?}"
        );
        assert_eq!(ledger.look(true), FilesCheck::Away);
        let why = ledger.obstacle().unwrap().fault.cause;
        assert!(why.contains("-wal"), "{why}");
        // Another process that comes now is told as well.
        let second = SqliteLedger::open(&path, OpenMode::Write, Durability::Prompt).map(drop);
        assert!(
            matches!(&second, Err(LedgerError::Unusable(why)) if why.words().contains("belongs to another file")),
            "{second:?}"
        );
    });
}

#[test]
fn a_log_that_is_ones_own_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("a.db"), dir.path().join("copy.db"));
    let beside = |path: &Path| paths::wal_path(path);
    run(async {
        let ledger = new(&path);
        for number in 1..=20 {
            create(&ledger, number).await;
            // As a crash leaves it.
            std::fs::copy(&path, &copy).unwrap();
            std::fs::copy(beside(&path), beside(&copy)).unwrap();
            let again = SqliteLedger::open(&copy, OpenMode::Write, Durability::Prompt).unwrap();
            let known = again.find_key(KeyId::from_random(number)).await.unwrap();
            assert!(known.is_some());
        }
    });
}

#[test]
fn an_older_log_is_not_taken_for_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (log, old) = (paths::wal_path(&path), dir.path().join("old"));
    run(async {
        let ledger = new(&path);
        for number in 1..=40 {
            create(&ledger, number).await;
        }
        std::fs::copy(&log, &old).unwrap();
        ledger.close();
        let ledger = open(&path);
        for number in 41..=80 {
            create(&ledger, number).await;
        }
        ledger.close();
        drop(ledger);
        std::fs::copy(&old, &log).unwrap();
        let taken = SqliteLedger::open(&path, OpenMode::Serve, Durability::Prompt).map(drop);
        assert!(
            matches!(&taken, Err(LedgerError::Unusable(why)) if why.words().contains("an earlier state of it")),
            "{taken:?}"
        );
    });
}

#[test]
fn a_log_that_is_cut_off_is_named_and_what_is_left_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    run(async {
        let ledger = new(&path);
        for number in 1..=20 {
            create(&ledger, number).await;
        }
        let log = std::fs::OpenOptions::new()
            .write(true)
            .open(paths::wal_path(&path))
            .unwrap();
        log.set_len(log.metadata().unwrap().len() / 2).unwrap();
        assert_eq!(ledger.look(true), FilesCheck::Away);
        let why = ledger.obstacle().unwrap().fault.cause;
        assert!(why.contains("a.db-wal was cut off"), "{why}");
        assert!(ledger.fatal().await.contains("cut off"));
        drop(ledger);
        let second = SqliteLedger::open(&path, OpenMode::ReadOnly, Durability::Prompt).map(drop);
        assert!(
            matches!(&second, Err(LedgerError::Unusable(why)) if why.words().contains("are gone")),
            "only the gateway goes on: {second:?}"
        );
        let ledger = open(&path);
        assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
        let keys = ledger.totals().await.unwrap().keys;
        assert!(keys < 20, "{keys}");
        create(&ledger, 30).await;
    });
}

#[test]
fn who_finds_other_files_than_the_gateway_has_open_opens_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let (index, away) = (paths::index_path(&path), dir.path().join("away"));
    let command = |mode| SqliteLedger::open(&path, mode, Durability::Prompt).map(drop);
    run(async {
        let mut lock = ServeLock::acquire(&path, Duration::ZERO).unwrap();
        let ledger = new(&path);
        create(&ledger, 1).await;
        command(OpenMode::Write).unwrap();
        lock.record(&ledger).unwrap();
        let console = SqliteLedger::open(&path, OpenMode::Write, Durability::Prompt).unwrap();
        std::fs::rename(&index, &away).unwrap();
        for mode in [OpenMode::Write, OpenMode::ReadOnly] {
            let refused = command(mode);
            assert!(
                matches!(&refused, Err(LedgerError::Unusable(why)) if why.words().contains("has another")),
                "{refused:?}"
            );
        }
        assert!(!index.exists(), "nobody has begun another index");
        let refused = console.find_key(KeyId::from_random(1)).await.map(drop);
        assert!(
            matches!(refused, Err(LedgerError::Unavailable(_))),
            "{refused:?}"
        );
        std::fs::rename(&away, &index).unwrap();
        console.find_key(KeyId::from_random(1)).await.unwrap();
        create(&console, 2).await;
        assert_eq!(ledger.look(true), FilesCheck::Here);
        assert_eq!(ledger.totals().await.unwrap().keys, 2);
    });
}

#[test]
fn an_index_that_was_cut_off_and_made_longer_again_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    run(async {
        let ledger = new(&path);
        create(&ledger, 1).await;
        let path = paths::index_path(&path);
        let long = path.metadata().unwrap().len();
        assert!(long > 2_000_000, "no log needs that much: {long}");
        let index = super::index::LogIndex::open(&path).unwrap();
        assert!(index.is_whole());
        assert!(!index.is_cut().unwrap());
        let file = descriptors::kept(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&*file, &[0; 1 << 14], 1 << 14).unwrap();
        assert!(!index.is_whole());
        file.set_len(1 << 14).unwrap();
        assert_eq!(ledger.look(true), FilesCheck::Away);
        file.set_len(long).unwrap();
    });
}

/// As a program with a clock 30 days ahead booked it before the ledger's clock was asked.
#[test]
fn a_misdated_entry_dates_nothing_else_and_is_exported_where_it_belongs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    run(async {
        let key = KeyId::from_random(1);
        create(&new(&path), 1).await;
        let now = crate::value::clock::now();
        let ahead = Timestamp::from_millis(now.millis() + 30 * 86_400_000);
        let paid = |number: u64, at| Credit {
            operation: op(number),
            to: key.into(),
            amount: Amount::from_picos(1_000),
            kind: CreditKind::TopUp,
            reference: format!("paid-{number}"),
            actor: "ada".to_owned(),
            at,
        };
        {
            let (conn, _) = files::open_ledger(&path, OpenMode::Write).unwrap();
            let mut batch = Batch::new(&conn, None);
            batch.begin().unwrap();
            // An earlier version believed whatever clock it was given.
            batch.rows.now = ahead.millis() * 1_000;
            let misdated = Operation::Credit(Box::new(paid(10, ahead)));
            batch.run(&misdated).unwrap().unwrap();
            batch.commit().unwrap();
        }
        let ledger = open(&path);
        let next = ledger.perform(paid(11, now)).await.unwrap().entry;
        assert_eq!(next.at, now, "the ledger's clock counts again");
        let wrong = ledger.perform(paid(12, ahead)).await.unwrap().entry;
        assert!(
            wrong.at.millis() < now.millis() + 60_000,
            "and nobody else's"
        );
        let report = ledger.verify().await.unwrap();
        let of_step = |note: &String| note.contains("clock that ran ahead");
        assert!(
            report.notes.len() == 1 && report.notes.iter().all(of_step),
            "{report:?}"
        );
        let month = EntryQuery {
            until: Some(Timestamp::from_millis(now.millis() + 60_000)),
            ..EntryQuery::default()
        };
        let exported = ledger.entries(month).await.unwrap();
        assert_eq!(exported.len(), 4, "the misdated one, too: {exported:?}");
        let later = EntryQuery {
            since: Some(Timestamp::from_millis(now.millis() + 86_400_000)),
            ..EntryQuery::default()
        };
        assert_eq!(ledger.entries(later).await.unwrap(), Vec::new());
    });
}

/// The POSIX locks that this process has on a file.
fn locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let (inode, me) = (path.metadata().unwrap().ino(), std::process::id());
    // In one call: between two, lines that come and go would make others appear twice or never.
    let mut all = [0; 4_096];
    let length = std::fs::File::open("/proc/locks")
        .and_then(|mut list| list.read(&mut all))
        .unwrap();
    let all = String::from_utf8_lossy(&all[..length]);
    let is_mine =
        |line: &&str| line.contains(&format!(" {me} ")) && line.contains(&format!(":{inode} "));
    all.lines().filter(is_mine).count()
}

#[test]
fn reading_the_header_drops_none_of_sqlites_locks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    run(async {
        let ledger = new(&path);
        create(&ledger, 1).await;
        let before = locks(&path);
        assert!(before > 0, "SQLite locks a file that it has open");
        for number in 2..20 {
            assert_eq!(ledger.look(true), FilesCheck::Here);
            create(&ledger, number).await;
            // Another opening and closing of the same file by this process, which reads the header, too.
            let second = SqliteLedger::open(&path, OpenMode::Write, Durability::Prompt).unwrap();
            second.find_key(KeyId::from_random(number)).await.unwrap();
            drop(second);
            // It closes on a thread of its own, and takes locks for that. Locks that are dropped never come back, so one right count
            // is enough.
            let patience = std::time::Instant::now() + Duration::from_secs(20);
            let mut now = locks(&path);
            while now != before && std::time::Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(5));
                now = locks(&path);
            }
            assert_eq!(now, before);
        }
        // What this is about: any descriptor that is closed drops them all.
        drop(std::fs::File::open(&path).unwrap());
        assert_eq!(locks(&path), 0);
    });
}
