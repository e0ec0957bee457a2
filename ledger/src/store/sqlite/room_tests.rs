//! The log's bound: what is reserved is enough, a reader is noticed, and nothing new is held beyond the limit.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use rusqlite::Connection;

use super::log_readers::{Copied, LogReaders};
use super::room::PER_HOLD;
use super::tests::{create, new_hold, open, run};
use super::*;
use crate::store::room::reserve;
use crate::store::stats::LOG_LOUD;
use crate::{Bill, Hold, TroubleKind};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// An operator's shell with an open transaction.
fn reader(ledger: &SqliteLedger) -> Connection {
    let conn = Connection::open(ledger.path()).unwrap();
    conn.execute_batch("BEGIN; SELECT count(*) FROM entries")
        .unwrap();
    conn
}

fn log_bytes(ledger: &SqliteLedger) -> u64 {
    paths::wal_path(ledger.path()).metadata().unwrap().len()
}

async fn until(what: &str, happens: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn hold(ledger: &Arc<SqliteLedger>, number: u64) -> Result<Hold, LedgerError> {
    let ledger = Arc::clone(ledger) as Arc<dyn Ledger>;
    Hold::open(ledger, new_hold(number)).await
}

/// A bill as long as they get.
fn long_bill() -> Bill {
    Bill {
        slug: "s".repeat(900),
        answer_id: Some("e".repeat(3_000)),
        ..Bill::default()
    }
}

#[test]
fn reserved_blocks_lie_beyond_the_end_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("file")).unwrap();
    file.set_len(10_000).unwrap();
    reserve(&file, 10_000, 1 << 20).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!(found.len(), 10_000);
    assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
}

#[test]
fn what_is_reserved_for_a_hold_is_enough_for_its_end() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        let reader = reader(&ledger);
        let mut holds = Vec::new();
        for number in 0..1_000 {
            holds.push(hold(&ledger, 1_000 + number * 7_919).await.unwrap());
        }
        let (mut before, mut most, first) = (log_bytes(&ledger), 0, log_bytes(&ledger));
        let count = holds.len() as u64;
        for hold in holds {
            hold.settle(long_bill(), Timestamp::default())
                .await
                .unwrap();
            let after = log_bytes(&ledger);
            most = most.max(after - before);
            before = after;
        }
        let average = (before - first) / count;
        println!("a settlement adds {average} bytes to the log, {most} at most");
        assert!(most <= PER_HOLD, "{most}");
        drop(reader);
    });
}

#[test]
fn a_log_at_its_limit_takes_no_holds_but_their_ends_and_mends_itself() {
    let (_dir, ledger) = open();
    ledger.limit_log(LOG_LOUD);
    run(async {
        create(&ledger).await;
        let reader = reader(&ledger);
        let kept = hold(&ledger, 101).await.unwrap();
        let mut number = 1_000;
        while log_bytes(&ledger) < LOG_LOUD {
            number += 1;
            let hold = hold(&ledger, number).await.unwrap();
            hold.settle(long_bill(), Timestamp::default())
                .await
                .unwrap();
        }
        until("a look at the log", || {
            ledger
                .obstacle()
                .is_some_and(|trouble| trouble.fault.kind == TroubleKind::LogLimit)
        })
        .await;
        let refused = hold(&ledger, 102).await;
        assert!(
            matches!(&refused, Err(LedgerError::Unavailable(why)) if why.words().contains("--wal-limit")),
            "{refused:?}"
        );
        kept.settle(long_bill(), Timestamp::default())
            .await
            .unwrap();
        drop(reader);
        until("an end", || ledger.obstacle().is_none()).await;
        assert!(log_bytes(&ledger) < LOG_LOUD, "it was cut");
        hold(&ledger, 103).await.unwrap();
        assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
    });
}

#[test]
fn a_reader_is_told_after_ten_seconds_without_a_copied_page() {
    let (_dir, ledger) = open();
    let opened = ledger.opened();
    let mut readers = LogReaders::of(&opened.location).unwrap();
    let (begun, mut pages) = (Instant::now(), 10);
    let mut note = |after: u64, copied| {
        pages += 1;
        readers.note(Copied { pages, copied }, begun + Duration::from_secs(after))
    };
    assert_eq!(note(0, 5), None);
    assert_eq!(note(9, 5), None);
    assert_eq!(note(10, 6), None, "a page was copied");
    assert_eq!(note(19, 6), None);
    let held = note(21, 6).unwrap();
    assert_eq!(held.blockers, []);
    assert!(held.cause.contains("of this gateway"), "{held}");
    assert_eq!(note(30, 1_000), None, "all is copied");
    assert_eq!(note(60, 6), None, "it begins anew");
}
