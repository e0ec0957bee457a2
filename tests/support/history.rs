//! A long history of one key, written straight into the ledger: thirty days of small requests with three models.

use std::time::Duration;

use farebox::clock;
use farebox_ledger::{Amount, Bill, Finish, KeyId, Ledger, Line, NewHold, OperationId, Timestamp, Usage};
use futures_util::stream::{self, StreamExt};

const DAYS: i64 = 30;

/// Writes so many charges, oldest first.
pub(crate) async fn write(ledger: &dyn Ledger, key: KeyId, entries: i64) {
    let (now, step) = (clock::now().millis(), Duration::from_hours(24).as_millis() as i64 * DAYS / entries);
    stream::iter(0..entries)
        .for_each_concurrent(512, async |number| {
            let at = Timestamp::from_millis(now - (entries - number) * step);
            let slug = ["test-model", "test-blind", "test-other"][(number % 3) as usize];
            one(ledger, key, slug, at).await;
        })
        .await;
}

async fn one(ledger: &dyn Ledger, key: KeyId, slug: &str, at: Timestamp) {
    let request = OperationId::new(at, u128::from_be_bytes(clock::random()));
    let amount = Amount::from_usd_str("0.0001").unwrap();
    let hold = NewHold { request, key, amount, slug: slug.to_owned(), family: "chat".to_owned(), at };
    ledger.open_hold(hold).await.unwrap();
    let bill = Bill {
        slug: slug.to_owned(),
        family: "chat".to_owned(),
        status: 200,
        end_reason: "stop".to_owned(),
        first_byte_ms: Some(120),
        total_ms: 950,
        hold: amount,
        usage: Usage { input: 70, cache_read: 20, output: 10, ..Usage::default() },
        lines: vec![Line { what: "output".into(), count: 10, rate: Amount::from_usd_str("0.000001").unwrap() }],
        ..Bill::default()
    };
    ledger.finish_hold(Finish { request, bill, at }).await.unwrap();
}
