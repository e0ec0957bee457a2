//! Votes on targets: one for each customer, question and day, kept for thirty days, the same on every store.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use common::*;
use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;

fn vote(target: &str, question: Question, day: i64, customer: u64, value: u64) -> Vote {
    Vote {
        target: target.to_owned(),
        question,
        day,
        customer: CustomerId::made_for(key(customer)),
        value,
    }
}

async fn one_vote_a_day(ledger: &dyn Ledger) {
    use Question::{Count, Pace};
    let cast = vec![
        vote("a/m", Pace, 100, 1, 90_000),
        vote("a/m", Pace, 100, 2, 70_000),
        vote("a/m", Count, 100, 1, 1_100),
        vote("b/m", Pace, 100, 1, 10),
    ];
    ledger.vote(cast.clone()).await.unwrap();
    let mut sorted = cast;
    sorted.sort();
    assert_eq!(ledger.votes().await.unwrap(), sorted);
    // A later vote of the same day replaces the customer's own, and nobody else's.
    ledger
        .vote(vec![vote("a/m", Pace, 100, 1, 80_000)])
        .await
        .unwrap();
    ledger
        .vote(vec![vote("a/m", Pace, 101, 1, 85_000)])
        .await
        .unwrap();
    let paces = |votes: Vec<Vote>| -> Vec<(i64, u64)> {
        let of_a = |vote: &Vote| vote.target == "a/m" && vote.question == Pace;
        votes
            .into_iter()
            .filter(of_a)
            .map(|vote| (vote.day, vote.value))
            .collect()
    };
    assert_eq!(
        paces(ledger.votes().await.unwrap()),
        [(100, 80_000), (100, 70_000), (101, 85_000)]
    );
    // Thirty days later the first day counts no more; other questions and targets are untouched.
    let late = 100 + VOTE_DAYS;
    ledger
        .vote(vec![vote("a/m", Pace, late, 3, 60_000)])
        .await
        .unwrap();
    assert_eq!(
        paces(ledger.votes().await.unwrap()),
        [(101, 85_000), (late, 60_000)]
    );
    assert_eq!(ledger.votes().await.unwrap().len(), 4);
    ledger.forget_votes("a/m".to_owned()).await.unwrap();
    let left = ledger.votes().await.unwrap();
    assert_eq!(left, [vote("b/m", Pace, 100, 1, 10)]);
}

#[test]
fn a_customer_has_one_vote_a_day_in_memory() {
    run(async { one_vote_a_day(&MemoryLedger::new()).await });
}

#[test]
fn a_customer_has_one_vote_a_day_in_a_file_and_it_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    run(async {
        let ledger = SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt).unwrap();
        one_vote_a_day(&ledger).await;
        ledger.close();
        let again = SqliteLedger::open(&path, OpenMode::Serve, Durability::Prompt).unwrap();
        assert_eq!(again.votes().await.unwrap().len(), 1);
        sound(&again).await;
    });
}

#[test]
fn a_customer_has_one_vote_a_day_in_a_database() {
    on_postgres(async |ledger| one_vote_a_day(&*ledger).await);
}
