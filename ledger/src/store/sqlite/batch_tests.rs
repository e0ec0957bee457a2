//! The writer's transactions: what they remember between two commits, and what they leave for later ones.

use std::path::PathBuf;
use std::sync::Arc;

use super::batch::Batch;
use super::tests::{new_hold, new_key, op};
use super::{files, totals, verify};
use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::store::rows::number;
use crate::{
    Act, Amount, Bill, BillLine, Finish, KeyId, NewHold, NewKey, OpenMode, Refusal, SecretHash,
    Timestamp,
};

/// A new ledger's connection, and the file that others may open.
fn connection() -> (tempfile::TempDir, PathBuf, rusqlite::Connection) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    files::make_new(&path).unwrap();
    let conn = files::open(&path, OpenMode::Write).unwrap();
    (dir, path, conn)
}

/// One operation in a transaction of its own.
fn commit(batch: &mut Batch<'_>, operation: &Operation) -> Result<Outcome, Refusal> {
    batch.begin().unwrap();
    let outcome = run_in(batch, operation);
    batch.commit().unwrap();
    outcome
}

fn run_in(batch: &mut Batch<'_>, operation: &Operation) -> Result<Outcome, Refusal> {
    batch.run(operation).unwrap()
}

fn finish(number: u64) -> Operation {
    ended_at(number, 0)
}

/// The end of a hold that costs so many picodollars.
fn ended_at(number: u64, cost: i64) -> Operation {
    let bill = Bill {
        slug: "s".to_owned(),
        lines: vec![BillLine {
            what: "output".into(),
            count: 1,
            rate: Amount::from_picos(cost),
            class: None,
        }],
        ..Bill::default()
    };
    Operation::Finish(Arc::new(Finish {
        request: op(number),
        bill,
        at: Timestamp::default(),
    }))
}

#[test]
fn a_pair_takes_six_statements() {
    let (_dir, _path, conn) = connection();
    let mut batch = Batch::new(&conn, None);
    commit(&mut batch, &Operation::Create(Box::new(new_key()))).unwrap();
    let mut statements = 0;
    for pair in 0..3 {
        batch.begin().unwrap();
        let before = batch.tables.statements.runs();
        run_in(&mut batch, &Operation::Open(new_hold(100 + pair))).unwrap();
        batch.flush().unwrap();
        run_in(&mut batch, &finish(100 + pair)).unwrap();
        batch.flush().unwrap();
        statements = batch.tables.statements.runs() - before;
        batch.commit().unwrap();
    }
    assert_eq!(statements, 6, "once key, slug and hour are known");
}

#[test]
fn what_is_remembered_does_not_survive_another_programs_commit() {
    let (_dir, path, conn) = connection();
    let other = files::open(&path, OpenMode::Write).unwrap();
    let (mut gateway, mut console) = (Batch::new(&conn, None), Batch::new(&other, None));
    commit(&mut gateway, &Operation::Create(Box::new(new_key()))).unwrap();
    commit(&mut gateway, &Operation::Open(new_hold(100))).unwrap();
    commit(&mut gateway, &Operation::Open(new_hold(101))).unwrap();
    // Ends one of the holds, so that its id is used, and all the money is held.
    commit(&mut console, &finish(100)).unwrap();
    let rest = NewHold {
        ways: vec![crate::HoldWay::exactly(Amount::from_picos(1_000_000 - 10))],
        ..new_hold(102)
    };
    commit(&mut console, &Operation::Open(rest)).unwrap();
    let used = commit(&mut gateway, &Operation::Open(new_hold(100))).unwrap_err();
    assert_eq!(used, Refusal::OperationUsed(op(100)));
    assert!(matches!(
        commit(&mut gateway, &Operation::Open(new_hold(103))),
        Err(Refusal::Insufficient { .. })
    ));
    commit(&mut gateway, &finish(101)).unwrap();
    commit(&mut gateway, &Operation::Open(new_hold(103))).unwrap();
    let report = verify::verify(&conn, &[], &|| true).unwrap();
    assert_eq!(
        (report.faults, batch_totals(&conn)),
        (Vec::<String>::new(), (3, 2))
    );
}

/// Entries and open holds.
fn batch_totals(conn: &rusqlite::Connection) -> (i64, i64) {
    let open = conn
        .query_row("SELECT count(*) FROM holds", [], |row| row.get(0))
        .unwrap();
    let counted = totals::count(conn).unwrap();
    (number(counted.sums.totals.entries), open)
}

/// Ends of holds leave the row of the totals for the next ones to write, and whoever reads adds them: a reader, another writer, and the
/// one that begins anew.
#[test]
fn the_row_of_the_totals_may_wait_for_its_entries() {
    let (_dir, path, conn) = connection();
    let other = files::open(&path, OpenMode::Write).unwrap();
    let mut batch = Batch::new(&conn, None);
    commit(&mut batch, &Operation::Create(Box::new(new_key()))).unwrap();
    let began = totals::count(&conn).unwrap();
    assert_eq!((began.written, began.sums.totals.entries), (1, 1));
    let rounds = totals::LAG.unsigned_abs() + 5;
    let mut most = 0;
    for round in 0..rounds {
        // Every third commit is another writer's, which has to find what the others left.
        let mut other = (round % 3 == 2).then(|| Batch::new(&other, None));
        let batch = other.as_mut().unwrap_or(&mut batch);
        commit(batch, &Operation::Open(new_hold(100 + round))).unwrap();
        commit(batch, &ended_at(100 + round, 3)).unwrap();
        let now = totals::count(&conn).unwrap();
        let ended = round + 1;
        assert_eq!(now.sums.totals.entries, 1 + ended);
        assert_eq!(now.sums.charges, began.sums.charges + number(ended));
        assert_eq!(now.sums.totals.spent, i128::from(3 * ended));
        most = most.max(number(now.sums.totals.entries) - now.written);
        let report = verify::verify(&conn, &[], &|| true).unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
    }
    assert_eq!(most, totals::LAG - 1);
    // A new key is in no entry, so it writes the row.
    let first_credit = Some((Amount::from_picos(1), "second".to_owned()));
    let act = Act {
        operation: op(2),
        ..new_key().act
    };
    let more = NewKey {
        id: KeyId::from_random(2),
        secret: SecretHash([2; 32]),
        first_credit,
        act,
        ..new_key()
    };
    commit(&mut batch, &Operation::Create(Box::new(more))).unwrap();
    let now = totals::count(&conn).unwrap();
    assert_eq!(number(now.sums.totals.entries), now.written);
}

#[test]
fn what_is_remembered_does_not_survive_a_rollback() {
    let (_dir, _path, conn) = connection();
    let mut batch = Batch::new(&conn, None);
    commit(&mut batch, &Operation::Create(Box::new(new_key()))).unwrap();
    batch.begin().unwrap();
    run_in(&mut batch, &Operation::Open(new_hold(100))).unwrap();
    run_in(&mut batch, &Operation::Open(new_hold(101))).unwrap();
    run_in(&mut batch, &finish(100)).unwrap();
    batch.roll_back().unwrap();
    assert!(matches!(
        commit(&mut batch, &finish(101)),
        Err(Refusal::NoSuchHold(_))
    ));
    commit(&mut batch, &Operation::Open(new_hold(100))).unwrap();
    commit(&mut batch, &finish(100)).unwrap();
    assert_eq!(
        (
            verify::verify(&conn, &[], &|| true).unwrap().faults,
            batch_totals(&conn)
        ),
        (Vec::<String>::new(), (2, 0))
    );
}

#[test]
fn a_row_that_is_not_what_was_remembered_is_not_overwritten() {
    for sql in [
        "UPDATE accounts SET held = held + 1",
        "UPDATE accounts SET seq = seq + 1",
        "DELETE FROM holds",
    ] {
        let (_dir, _path, conn) = connection();
        let mut batch = Batch::new(&conn, None);
        commit(&mut batch, &Operation::Create(Box::new(new_key()))).unwrap();
        commit(&mut batch, &Operation::Open(new_hold(100))).unwrap();
        batch.begin().unwrap();
        // On the writer's own connection, where the data version cannot tell.
        conn.execute(sql, []).unwrap();
        run_in(&mut batch, &finish(100)).unwrap();
        assert!(batch.flush().is_err(), "{sql}");
        batch.roll_back().unwrap();
        commit(&mut batch, &finish(100)).unwrap();
    }
}
