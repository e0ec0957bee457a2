//! The outside checker must find what it exists for: a lost charge, one above the truth, a lost payment, a hold left open.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use farebox::clock;
use farebox_ledger::{
    Amount, Bill, BillLine, CustomerId, Evidence, Finish, Ledger, NewHold, OperationId, Perform,
};
use farebox_protocol::Family;

use super::{Outside, Payment, judge};
use crate::support::load::{self, Mark, Told, marked, open, usd};
use crate::support::upstream::Seen;
use crate::support::{TestKey, path};

/// What the upstream makes in [`books`]: 400 tokens of input, 1,500 of output.
const MADE: i64 = 400 * 3_000_000 + 1_500 * 15_000_000;

/// A ledger with one charge of one key, and all that is known of it outside.
async fn books(charge: i64) -> (tempfile::TempDir, PathBuf, TestKey, Outside, Seen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("farebox.db");
    let ledger = load::create(&path);
    let key = load::key(&ledger, "1").await;
    let request = clock::operation_id();
    hold(&ledger, &key, request).await;
    let lines = vec![BillLine {
        what: "output".into(),
        count: 1,
        rate: Amount::from_picos(charge),
        class: None,
    }];
    ledger
        .perform(Arc::new(Finish {
            request,
            bill: Bill {
                lines,
                evidence: Some(Evidence::Provider),
                ..Bill::default()
            },
            at: clock::now(),
        }))
        .await
        .unwrap();
    ledger.close();
    let cost = Some(Amount::from_picos(charge));
    let told = Told {
        key: key.id,
        number: 1,
        request: Some(request),
        cost,
        complete: false,
        status: 200,
    };
    (
        folder,
        path,
        key,
        Outside {
            told: vec![told],
            payments: Vec::new(),
        },
        seen(1),
    )
}

async fn hold(ledger: &dyn Ledger, key: &TestKey, request: OperationId) {
    let (slug, family) = ("test-model".to_owned(), "chat".to_owned());
    ledger
        .perform(NewHold {
            request,
            customer: CustomerId::made_for(key.id),
            key: key.id,
            ways: vec![farebox_ledger::HoldWay::exactly(usd("0.5"))],
            slug,
            family,
            at: clock::now(),
        })
        .await
        .unwrap();
}

/// A whole answer of ten pieces that was sent.
fn seen(number: u64) -> Seen {
    let body = marked(
        Family::Chat,
        "test-model",
        false,
        Mark {
            number,
            pieces: 10,
            pace: 0,
        },
    );
    Seen {
        method: "POST".to_owned(),
        path: path(Family::Chat).to_owned(),
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
        at: Instant::now(),
        connection: 0,
        closed_at: None,
        completed: true,
        sent: Arc::new(1.into()),
    }
}

#[tokio::test]
async fn honest_books_pass() {
    let (_folder, path, _, outside, seen) = books(MADE).await;
    assert_eq!(judge(&path, &outside, &[seen]).await.acknowledged, 1);
}

#[tokio::test]
#[should_panic(expected = "an acknowledged charge is lost")]
async fn a_lost_charge_is_found() {
    let (_folder, path, _, mut outside, seen) = books(MADE).await;
    outside.told[0].request = Some(clock::operation_id());
    judge(&path, &outside, &[seen]).await;
}

#[tokio::test]
#[should_panic(expected = "charge and loss are what was made")]
async fn another_charge_than_what_was_made_is_found() {
    let (_folder, path, _, outside, seen) = books(MADE - 1).await;
    judge(&path, &outside, &[seen]).await;
}

#[tokio::test]
#[should_panic(expected = "charge, loss and exposure are")]
async fn what_is_billed_and_neither_charged_nor_exposed_is_found() {
    let (_folder, path, key, mut outside, seen) = books(MADE).await;
    let mut all = vec![seen];
    for number in 2..9 {
        all.push(self::seen(number));
        outside.told.push(Told {
            key: key.id,
            number,
            request: None,
            cost: None,
            complete: false,
            status: 0,
        });
    }
    judge(&path, &outside, &all).await;
}

#[tokio::test]
#[should_panic(expected = "there is no entry")]
async fn a_request_without_an_entry_is_found() {
    let (_folder, path, key, mut outside, seen) = books(MADE).await;
    let request = Some(clock::operation_id());
    outside.told.push(Told {
        key: key.id,
        number: 2,
        request,
        cost: None,
        complete: false,
        status: 200,
    });
    judge(&path, &outside, &[seen, self::seen(2)]).await;
}

#[tokio::test]
#[should_panic(expected = "do not fit what was made")]
async fn a_charge_that_nobody_was_told_of_is_found_when_it_is_too_large() {
    let (_folder, path, _, mut outside, seen) = books(MADE + 1).await;
    (outside.told[0].request, outside.told[0].cost) = (None, None);
    judge(&path, &outside, &[seen]).await;
}

#[tokio::test]
#[should_panic(expected = "was acknowledged and is lost")]
async fn a_lost_payment_is_found() {
    let (_folder, path, key, mut outside, seen) = books(MADE).await;
    let reference = "never-arrived".to_owned();
    outside.payments.push(Payment {
        key: key.id,
        amount: usd("1"),
        reference,
        acknowledged: true,
    });
    judge(&path, &outside, &[seen]).await;
}

#[tokio::test]
#[should_panic(expected = "no hold is open")]
async fn a_hold_that_is_left_open_is_found() {
    let (_folder, path, key, outside, seen) = books(MADE).await;
    let ledger = open(&path);
    hold(&ledger, &key, clock::operation_id()).await;
    ledger.close();
    judge(&path, &outside, &[seen]).await;
}
