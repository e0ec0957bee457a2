//! Bills that a full disk or a failing one leaves behind are booked by the next start, in full and once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use super::batch::Batch;
use super::tests::{create, limit_pages, new_hold, op, open, run, test};
use super::*;
use crate::{Bill, BillLine, EndReason, Hold, HoldMove, NewSize, Perform};

/// A bill too long for what is left of a full disk. Its request costs 7 picodollars.
fn bill() -> Bill {
    let line = BillLine {
        what: "output".into(),
        count: 7,
        rate: Amount::from_picos(1),
        class: None,
    };
    Bill {
        slug: "s".to_owned(),
        answer_id: Some("e".repeat(3_000)),
        lines: vec![line],
        ..Bill::default()
    }
}

/// What ends the writer.
fn broken(_: &mut Batch<'_>) -> rusqlite::Result<()> {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
    Err(rusqlite::Error::SqliteFailure(code, None))
}

async fn hold(ledger: &Arc<SqliteLedger>, number: u64) -> Result<Hold, LedgerError> {
    Hold::open(Arc::clone(ledger) as Arc<dyn Ledger>, new_hold(number)).await
}

/// The same ledger as its next gateway opens it.
fn again(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap()
}

async fn is_sound(ledger: &SqliteLedger, spent: i128) {
    let totals = ledger.totals().await.unwrap();
    assert_eq!((totals.spent, totals.held, totals.holds), (spent, 0, 0));
    assert_eq!(ledger.verify().await.unwrap().faults, Vec::<String>::new());
}

/// Leaves bills of a full disk, each of a hold with a checkpoint of nothing. Returns how many, and the file.
async fn leave_some(ledger: Arc<SqliteLedger>) -> (usize, PathBuf) {
    create(&ledger).await;
    ledger.begin(Timestamp::default()).await.unwrap();
    limit_pages(&ledger, 4).await;
    let mut opened = Vec::new();
    for number in 100.. {
        match hold(&ledger, number).await {
            Ok(hold) => opened.push(hold),
            Err(_) => break,
        }
    }
    let count = opened.len();
    for hold in opened {
        let _ = hold.settle(bill(), Timestamp::default()).await;
    }
    let left = ledger.close();
    assert!(
        left.bills > 1 && left.bills <= count && left.holds == 0,
        "{left:?}"
    );
    assert_eq!(
        left.cost,
        Amount::times(Amount::from_picos(7), left.bills as u64).unwrap()
    );
    assert!(
        left.to_string().contains(".unsettled for the next start"),
        "{left}"
    );
    let found = left.file.metadata().unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
    let address = crate::LedgerAddress::File(ledger.path().to_owned());
    assert_eq!(address.unsettled(None).unwrap(), left);
    (count, left.file)
}

#[test]
fn bills_of_a_full_disk_are_booked_once_by_the_next_start() {
    let (_dir, ledger) = open();
    run(async {
        let path = ledger.path().to_owned();
        let (count, file) = leave_some(ledger).await;
        let kept = fs::read(&file).unwrap();
        let spent = 7 * count as i128;
        let ledger = again(&path);
        ledger.begin(Timestamp::default()).await.unwrap();
        is_sound(&ledger, spent).await;
        let found = file.metadata().unwrap();
        assert!(
            found.len() == 0 && found.blocks() > 0,
            "empty, with room: {found:?}"
        );
        assert!(ledger.close().is_nothing());
        assert!(!file.exists(), "nothing is due");
        // As after a crash just before it was emptied.
        fs::write(&file, kept).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let ledger = again(&path);
        ledger.begin(Timestamp::default()).await.unwrap();
        is_sound(&ledger, spent).await;
    });
}

#[test]
fn bills_of_a_writer_that_stopped_are_booked_by_the_next_start() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        ledger.begin(Timestamp::default()).await.unwrap();
        let hold = hold(&ledger, 100).await.unwrap();
        assert!(ledger.submit(test(broken)).await.is_err());
        assert!(hold.settle(bill(), Timestamp::default()).await.is_err());
        let left = ledger.close();
        assert_eq!((left.bills, left.holds), (1, 0));
        let ledger = again(ledger.path());
        ledger.begin(Timestamp::default()).await.unwrap();
        is_sound(&ledger, 7).await;
    });
}

#[test]
fn a_file_that_is_not_as_it_was_written_keeps_the_gateway_from_starting() {
    let (_dir, ledger) = open();
    run(async {
        let path = ledger.path().to_owned();
        let (count, file) = leave_some(ledger).await;
        let kept = fs::read_to_string(&file).unwrap();
        let second = kept.find('\n').unwrap() + 40;
        let mut flipped = kept.clone().into_bytes();
        flipped[second] ^= 1;
        for (text, why) in [
            (flipped, "line 2 of"),
            (b"something else\n".to_vec(), "is not a file of bills"),
            (b"torn".to_vec(), "is not a file of bills"),
        ] {
            fs::write(&file, &text).unwrap();
            let refused = again(&path).begin(Timestamp::default()).await.unwrap_err();
            let refused = refused.to_string();
            assert!(
                refused.contains(why) && refused.contains("move it away"),
                "{refused}"
            );
            assert_eq!(fs::read(&file).unwrap(), text, "it is left alone");
        }
        let other = path.with_file_name("other.db");
        let beside = path.with_file_name("other.db.unsettled");
        fs::write(&file, &kept).unwrap();
        fs::copy(&file, &beside).unwrap();
        let made = SqliteLedger::create(&other, OpenMode::Serve, Durability::Prompt).unwrap();
        let refused = made.begin(Timestamp::default()).await.unwrap_err();
        assert!(
            refused.to_string().contains("of another ledger"),
            "{refused}"
        );
        // Of a line that a crash cut off, recovery does the rest.
        fs::write(&file, &kept[..kept.len() - 1]).unwrap();
        let ledger = again(&path);
        ledger.begin(Timestamp::default()).await.unwrap();
        is_sound(&ledger, 7 * (count as i128 - 1)).await;
    });
}

#[test]
fn a_bill_whose_hold_was_recovered_meanwhile_is_not_charged_again() {
    let (_dir, ledger) = open();
    run(async {
        let path = ledger.path().to_owned();
        create(&ledger).await;
        ledger.begin(Timestamp::default()).await.unwrap();
        let hold = hold(&ledger, 100).await.unwrap();
        let mut checkpoint = bill();
        checkpoint.lines[0].count = 2;
        let moved = HoldMove {
            request: op(100),
            number: 1,
            to: NewSize::Amount(Amount::from_picos(20)),
            checkpoint: Some(checkpoint),
            at: Timestamp::default(),
        };
        ledger.perform(moved).await.unwrap();
        assert!(ledger.submit(test(broken)).await.is_err());
        assert!(hold.settle(bill(), Timestamp::default()).await.is_err());
        assert_eq!(ledger.close().bills, 1);
        let ledger = again(&path);
        // As a version does that does not know the file.
        ledger.recover(Timestamp::default()).await.unwrap();
        ledger.begin(Timestamp::default()).await.unwrap();
        is_sound(&ledger, 2).await;
        let entry = ledger.entry(op(100)).await.unwrap().unwrap();
        let charged = entry.bill.unwrap();
        assert_eq!(charged.end_reason, EndReason::Recovered);
        assert_eq!(
            charged.exposure,
            Amount::from_picos(18),
            "all that was held beyond"
        );
    });
}

#[test]
fn a_bill_that_its_ledger_does_not_know_keeps_the_gateway_from_starting() {
    let (_dir, ledger) = open();
    run(async {
        create(&ledger).await;
        ledger.begin(Timestamp::default()).await.unwrap();
        // Never opened, and nothing to charge.
        let resolve = |number, bill| {
            let finish = Finish {
                request: op(number),
                bill,
                at: Timestamp::default(),
            };
            Arc::new(finish)
        };
        let unsettled = ledger.unsettled.as_ref().unwrap();
        unsettled.close(&[resolve(101, Bill::default())]);
        ledger.close();
        let ledger = again(ledger.path());
        ledger.begin(Timestamp::default()).await.unwrap();
        let unsettled = ledger.unsettled.as_ref().unwrap();
        unsettled.close(&[resolve(102, bill())]);
        ledger.close();
        let ledger = again(ledger.path());
        let refused = ledger.begin(Timestamp::default()).await.unwrap_err();
        assert!(
            refused.to_string().contains("bring back the ledger"),
            "{refused}"
        );
    });
}
