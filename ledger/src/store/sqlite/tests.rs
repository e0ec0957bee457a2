//! What only this module can test: a full disk, and a file that cannot be trusted.
//!
//! Both are caused from inside the writer's own connection.

use std::time::Duration;

use super::batch::Batch;
use super::*;
use crate::batch::operation::OperationClass;
use crate::{
    Act, Amount, Bill, CustomerId, Hold, KeySettings, Membership, NewHold, NewKey, NewLink,
    Perform, Refusal,
};
use std::sync::Arc;

pub(super) fn open() -> (tempfile::TempDir, Arc<SqliteLedger>) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::create(
        dir.path().join("farebox.db"),
        OpenMode::Serve,
        Durability::Prompt,
    )
    .unwrap();
    (dir, Arc::new(ledger))
}

pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

pub(super) fn op(number: u64) -> OperationId {
    OperationId::from_bytes(u128::from(number).to_be_bytes())
}

pub(super) fn new_hold(number: u64) -> NewHold {
    let (slug, family) = ("s".repeat(900), "chat".to_owned());
    NewHold {
        request: op(number),
        customer: CustomerId::made_for(KeyId::from_random(1)),
        key: KeyId::from_random(1),
        ways: vec![crate::HoldWay::exactly(Amount::from_picos(10))],
        slug,
        family,
        at: Timestamp::default(),
    }
}

pub(super) fn new_key() -> NewKey {
    let act = Act {
        operation: op(1),
        actor: "ada".to_owned(),
        at: Timestamp::default(),
    };
    let first_credit = Some((Amount::from_picos(1_000_000), "first".to_owned()));
    NewKey {
        within: Membership::default(),
        id: KeyId::from_random(1),
        secret: SecretHash([1; 32]),
        settings: KeySettings::default(),
        first_credit,
        purse: None,
        act,
    }
}

pub(super) async fn create(ledger: &SqliteLedger) {
    ledger.perform(new_key()).await.unwrap();
}

/// Something that no operation does.
pub(super) fn test(
    work: impl Fn(&mut Batch<'_>) -> rusqlite::Result<()> + Send + 'static,
) -> BatchWork {
    BatchWork::Test(OperationClass::Settle, Box::new(work))
}

/// Sets how many pages the file may have, on the writer's connection.
pub(super) async fn limit_pages(ledger: &SqliteLedger, more: i64) {
    let set = move |batch: &mut Batch<'_>| {
        let pages: i64 = batch
            .conn
            .query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let limit = pages.saturating_add(more);
        batch
            .conn
            .query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(()))?;
        Ok(())
    };
    ledger.submit(test(set)).await.unwrap();
}

#[test]
fn a_full_disk_stops_holds_and_mends_itself() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        limit_pages(&ledger, 4).await;
        let mut opened = Vec::new();
        let error = loop {
            match Hold::open(
                Arc::clone(&ledger) as Arc<dyn Ledger>,
                new_hold(100 + opened.len() as u64),
            )
            .await
            {
                Ok(hold) => opened.push(hold),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, LedgerError::Unavailable(text) if text.words().contains("full")),
            "{error:?}"
        );
        assert!(opened.len() > 2 && ledger.obstacle().is_some());
        // Settlements with long bills do not fit either: they wait in the resolver.
        let count = opened.len();
        for hold in opened {
            let bill = Bill {
                slug: "s".to_owned(),
                answer_id: Some("e".repeat(3_000)),
                ..Bill::default()
            };
            let _ = hold.settle(bill, Timestamp::default()).await;
        }
        assert!(ledger.stats().unresolved > 0);
        assert!(matches!(
            ledger.perform(new_hold(90)).await,
            Err(LedgerError::Unavailable(_))
        ));
        limit_pages_when_full(&ledger).await;
        for _ in 0..3_000 {
            if ledger.stats().unresolved == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ledger.perform(new_hold(91)).await.unwrap();
        assert!(ledger.obstacle().is_none());
        let totals = ledger.totals().await.unwrap();
        assert_eq!((totals.entries, totals.holds), (1 + count as u64, 1));
        assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
    });
}

/// Frees space again; the first attempts may still share a batch with what does not fit.
async fn limit_pages_when_full(ledger: &SqliteLedger) {
    let set = |batch: &mut Batch<'_>| {
        batch
            .conn
            .query_row("PRAGMA max_page_count = 100000", [], |_| Ok(()))
    };
    for _ in 0..200 {
        if ledger.submit(test(set)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_io_error_stops_the_writer_for_good() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        let broken = |_: &mut Batch<'_>| -> rusqlite::Result<()> {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
            Err(rusqlite::Error::SqliteFailure(code, None))
        };
        let shared = Arc::clone(&ledger);
        let together = tokio::spawn(async move { shared.fatal().await });
        assert!(matches!(
            ledger.submit(test(broken)).await,
            Err(LedgerError::Unknown(_))
        ));
        assert!(matches!(
            ledger.perform(new_hold(100)).await,
            Err(LedgerError::Unavailable(_))
        ));
        assert!(
            together.await.unwrap().contains("stopped")
                && ledger.record.stands(LedgerWork::Writer)
                && ledger.stopped()
        );
        assert!(
            ledger
                .find_key(KeyId::from_random(1))
                .await
                .unwrap()
                .is_some(),
            "reading goes on"
        );
    });
}

#[test]
fn one_failing_operation_does_not_fail_its_batch() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        let wrong = |batch: &mut Batch<'_>| {
            batch
                .conn
                .execute("UPDATE accounts SET held = -1", [])
                .map(|_| ())
        };
        let (first, second, third) = tokio::join!(
            ledger.perform(new_hold(100)),
            ledger.submit(test(wrong)),
            ledger.perform(new_hold(101))
        );
        assert!(first.is_ok() && third.is_ok());
        assert!(matches!(second, Err(LedgerError::Unavailable(_))));
        let again = ledger.perform(new_hold(101)).await;
        assert_eq!(again.map(|held| held.amount), Ok(Amount::from_picos(10)));
        let other = NewHold {
            ways: vec![crate::HoldWay::exactly(Amount::from_picos(11))],
            ..new_hold(101)
        };
        assert_eq!(
            ledger.perform(other).await,
            Err(LedgerError::Refused(Refusal::OperationUsed(op(101))))
        );
    });
}

/// Work of this class that records SQLite's `synchronous` and ends when it is released.
fn held_up(
    class: OperationClass,
    released: std::sync::mpsc::Receiver<()>,
    synced: &Arc<Mutex<Vec<i64>>>,
) -> BatchWork {
    let synced = Arc::clone(synced);
    let work = move |batch: &mut Batch<'_>| {
        synced.lock().unwrap().push(
            batch
                .conn
                .query_row("PRAGMA synchronous", [], |row| row.get(0))?,
        );
        released.recv().unwrap();
        Ok(())
    };
    BatchWork::Test(class, Box::new(work))
}

#[test]
fn what_comes_while_a_batch_runs_joins_it_and_a_payment_does_not() {
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    let (_dir, ledger) = open();
    let synced = Arc::default();
    // The operations below are queued while the first one runs. Returns the number of commits that all of them took.
    let commits = async |classes: &[OperationClass]| {
        let before = ledger.stats().commits;
        let mut tasks = Vec::new();
        let mut releases = Vec::new();
        for (at, class) in classes.iter().enumerate() {
            let (release, released) = std::sync::mpsc::channel();
            let (ledger, work) = (Arc::clone(&ledger), held_up(*class, released, &synced));
            releases.push(release);
            let running = synced.lock().unwrap().len();
            tasks.push(tokio::spawn({
                let ledger = Arc::clone(&ledger);
                async move { ledger.submit(work).await.unwrap() }
            }));
            while if at == 0 {
                synced.lock().unwrap().len() == running
            } else {
                ledger.stats().queued < at
            } {
                tokio::task::yield_now().await;
            }
        }
        releases
            .iter()
            .for_each(|release| release.send(()).unwrap());
        for task in tasks {
            task.await.unwrap();
        }
        ledger.stats().commits - before
    };
    run(async {
        assert_eq!(
            commits(&[OperationClass::Settle; 5]).await,
            2,
            "nobody was expected to come together"
        );
        assert_eq!(
            commits(&[OperationClass::Settle; 4]).await,
            1,
            "four came together before"
        );
        assert_eq!(*synced.lock().unwrap(), [NORMAL; 9]);
        assert_eq!(
            commits(&[
                OperationClass::Settle,
                OperationClass::Money,
                OperationClass::Settle
            ])
            .await,
            2,
            "the first batch is not synced"
        );
        assert_eq!(synced.lock().unwrap().split_off(9), [NORMAL, FULL, FULL]);
    });
}

#[test]
fn closing_does_not_wait_for_space() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        ledger.perform(new_hold(100)).await.unwrap();
        limit_pages(&ledger, 0).await;
        let bill = Bill {
            slug: "s".to_owned(),
            answer_id: Some("e".repeat(30_000)),
            ..Bill::default()
        };
        ledger.abandon_hold(Arc::new(Finish {
            request: op(100),
            bill,
            at: Timestamp::default(),
        }));
        ledger.close();
        assert_eq!(ledger.totals().await.unwrap().holds, 1, "left for recovery");
    });
}

#[test]
fn a_panicking_writer_leaves_nobody_waiting() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        let bug = |_: &mut Batch<'_>| -> rusqlite::Result<()> { panic!("a bug, on purpose") };
        assert!(matches!(
            ledger.submit(test(bug)).await,
            Err(LedgerError::Unknown(_))
        ));
        assert!(ledger.fatal().await.contains("panicked"));
        assert!(matches!(
            ledger.perform(new_hold(100)).await,
            Err(LedgerError::Unavailable(_))
        ));
    });
}

#[test]
fn a_closed_ledger_is_whole_in_its_one_file() {
    let (dir, ledger) = open();
    run(create(&ledger));
    ledger.close();
    assert_eq!(
        std::fs::metadata(dir.path().join("farebox.db-wal"))
            .unwrap()
            .len(),
        0
    );
    let copy = dir.path().join("copy.db");
    std::fs::copy(dir.path().join("farebox.db"), &copy).unwrap();
    let copied = SqliteLedger::open(&copy, OpenMode::ReadOnly, Durability::Prompt).unwrap();
    assert_eq!(run(copied.totals()).unwrap(), run(ledger.totals()).unwrap());
}

#[test]
fn statements_are_prepared_once() {
    let (dir, ledger) = open();
    run(create(&ledger));
    let conn = files::open(&dir.path().join("farebox.db"), OpenMode::ReadOnly).unwrap();
    for id in 0..3 {
        reads::find_key(&conn, KeyId::from_random(id)).unwrap();
    }
    let statement = conn.prepare_cached(&rows::KEY_BY_ID).unwrap();
    assert_eq!(
        statement.get_status(rusqlite::StatementStatus::RePrepare),
        0
    );
}

#[test]
fn a_token_that_nobody_was_given_does_not_reach_the_writer() {
    run(async {
        let (_dir, ledger) = open();
        create(&ledger).await;
        let (token, end) = (SecretHash([7; 32]), Timestamp::from_millis(900));
        let act = Act {
            operation: op(9),
            actor: "ada".to_owned(),
            at: Timestamp::default(),
        };
        ledger
            .perform(NewLink {
                key: KeyId::from_random(1),
                token,
                expires: end,
                act,
            })
            .await
            .unwrap();
        let before = ledger.stats().operations;
        for number in 100..200 {
            assert_eq!(
                ledger
                    .consume_link(SecretHash([number; 32]), Timestamp::default())
                    .await
                    .unwrap(),
                None
            );
        }
        assert_eq!(
            ledger.consume_link(token, end).await.unwrap(),
            None,
            "expired"
        );
        assert_eq!(ledger.stats().operations, before);
        assert_eq!(
            ledger
                .consume_link(token, Timestamp::default())
                .await
                .unwrap(),
            Some(KeyId::from_random(1))
        );
        assert_eq!(
            ledger
                .consume_link(token, Timestamp::default())
                .await
                .unwrap(),
            None,
            "once"
        );
        assert_eq!(ledger.stats().operations, before + 1);
    });
}
