//! Requests that name a run are summed by it: of one key and of its customer, month by month, also after a crash.

use std::sync::Arc;

use farebox_ledger::*;
use futures_util::future::join_all;

use super::common::*;
use super::customers::{credit_of, customer, hold_of, key_of, new_customer};

/// 29 November 1970, and 2 December.
const NOVEMBER: i64 = 332 * 86_400;
const DECEMBER: i64 = 335 * 86_400;
/// Names at once: a customer may have 64 requests at once.
const AT_ONCE: usize = 60;

fn months() -> (StatementMonth, StatementMonth) {
    ["1970-01", "1971-01"]
        .map(|month| month.parse().unwrap())
        .into()
}

fn run_bill(run: &str, count: u64) -> Bill {
    let mut bill = bill(count);
    if !run.is_empty() {
        bill.facts.insert(RunName::FACT.to_owned(), run.to_owned());
    }
    bill
}

async fn ended(ledger: &dyn Ledger, by: u64, request: u64, run: &str, count: u64, seconds: i64) {
    ledger
        .perform(hold_of(by, 1, request, "0.1"))
        .await
        .unwrap();
    let finish = Finish {
        request: op(request),
        bill: run_bill(run, count),
        at: at(seconds),
    };
    ledger.perform(Arc::new(finish)).await.unwrap();
}

async fn read(
    ledger: &dyn Ledger,
    key: Option<KeyId>,
    limit: u32,
) -> Vec<(String, String, u64, i64)> {
    let query = RunQuery {
        customer: customer(1),
        key,
        months: months(),
        limit,
    };
    let sums = ledger.usage_by_run(query).await.unwrap();
    let shown = |sum: RunSum| {
        let micros = sum.charge.picos() / 1_000_000;
        (sum.month.to_string(), sum.run, sum.requests, micros)
    };
    sums.into_iter().map(shown).collect()
}

fn row(month: &str, run: &str, requests: u64, micros: i64) -> (String, String, u64, i64) {
    (month.to_owned(), run.to_owned(), requests, micros)
}

async fn two_keys(ledger: &dyn Ledger) {
    ledger.perform(new_customer(1, 10, None)).await.unwrap();
    for (number, operation) in [(1, 11), (2, 12)] {
        ledger.perform(key_of(number, 1, operation)).await.unwrap();
    }
    ledger
        .perform(credit_of(1, 13, "50", "paid"))
        .await
        .unwrap();
}

pub(crate) async fn requests_are_summed_by_the_run_that_they_name(ledger: SharedLedger) {
    two_keys(&*ledger).await;
    ledger.recover(at(50)).await.unwrap();
    let requests = [
        (1, "night", 5, NOVEMBER),
        (1, "day", 7, NOVEMBER),
        (2, "night", 11, NOVEMBER),
        (2, "", 13, NOVEMBER),
        (1, "night", 17, DECEMBER),
        (2, "free", 0, DECEMBER),
    ];
    for ((by, run, count, seconds), request) in requests.into_iter().zip(20..) {
        ended(&*ledger, by, request, run, count, seconds).await;
        // A repeated end adds nothing.
        let again = Finish {
            request: op(request),
            bill: run_bill(run, count),
            at: at(seconds),
        };
        ledger.perform(Arc::new(again)).await.unwrap();
        sound(&*ledger).await;
    }
    let all = [
        row("1970-11", "night", 2, 16),
        row("1970-11", "day", 1, 7),
        row("1970-12", "night", 1, 17),
        row("1970-12", "free", 1, 0),
    ];
    assert_eq!(read(&*ledger, None, 9).await, all);
    assert_eq!(read(&*ledger, None, 1).await, all[..1]);
    assert_eq!(
        read(&*ledger, Some(key(2)), 9).await,
        [row("1970-11", "night", 1, 11), all[3].clone()]
    );
    assert_eq!(read(&*ledger, Some(key(3)), 9).await, []);
    // What a crash leaves is charged by its checkpoint, which names the run.
    ledger.perform(hold_of(2, 1, 40, "1")).await.unwrap();
    let checkpoint = HoldMove {
        checkpoint: Some(run_bill("night", 19)),
        ..moved(40, "1", 19)
    };
    ledger.perform(checkpoint).await.unwrap();
    ledger.recover(at(DECEMBER + 60)).await.unwrap();
    assert_eq!(
        read(&*ledger, None, 9).await[2],
        row("1970-12", "night", 2, 36)
    );
    sound(&*ledger).await;
}

pub(crate) async fn names_beyond_the_most_of_a_month_are_others(ledger: SharedLedger) {
    two_keys(&*ledger).await;
    let most = u64::from(RunSum::MOST_NAMES);
    let numbers: Vec<u64> = (0..most).collect();
    for some in numbers.chunks(AT_ONCE) {
        let each = some.iter().map(async |number| {
            ended(
                &*ledger,
                1,
                1_000 + number,
                &format!("run {number}"),
                1,
                NOVEMBER,
            )
            .await;
        });
        join_all(each).await;
    }
    let (late, request) = (NOVEMBER, 1_000 + most);
    for (by, run, number) in [
        (1, "one more", 0),
        (2, "run 7", 1),
        (2, "and more", 2),
        (1, "run 7", 3),
    ] {
        ended(&*ledger, by, request + number, run, 100, late).await;
    }
    // Another month begins anew.
    ended(&*ledger, 1, request + 9, "one more", 3, DECEMBER).await;
    let found = read(&*ledger, None, 20_000).await;
    assert_eq!(u64::try_from(found.len()).unwrap(), most + 2);
    assert_eq!(
        found[..3],
        [
            row("1970-11", "run 7", 3, 201),
            row("1970-11", "", 2, 200),
            row("1970-11", "run 0", 1, 1)
        ]
    );
    assert_eq!(found.last().unwrap(), &row("1970-12", "one more", 1, 3));
    sound(&*ledger).await;
}
