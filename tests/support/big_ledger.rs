//! The only generator of big ledgers: keys, each with a first credit and a known secret, and a month of their requests.
//!
//! It writes through the ledger's own contract, so its ledgers stay valid when the format changes. It keeps enough operations under
//! way that the writer's batches are always full. Included with `#[path]` wherever a big ledger is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farebox_ledger::{
    Act, Amount, Bill, BillLine, CustomerId, EndReason, Finish, KeyId, KeySettings, Ledger,
    Membership, NewHold, NewKey, OperationId, Perform, Secret, SharedLedger, Timestamp, Usage,
};
use tokio::task::JoinSet;

const IN_FLIGHT: u64 = 1024;
const MONTH_MS: i64 = 30 * 24 * 3_600_000;
/// One request in three belongs to one of this many busy keys; the others are spread over all.
const BUSY: u64 = 7;
const SLUGS: [&str; 4] = ["large-model", "small-model", "thinking-model", "fast-model"];
const HOLD: Amount = Amount::from_picos(2_000_000_000);

/// Writes `keys` keys and so many requests that the ledger has `entries` entries in all, the last one at `until`. Ids and
/// secrets are the same every time.
pub(crate) async fn generate(ledger: &SharedLedger, keys: u64, entries: u64, until: Timestamp) {
    let requests = entries.saturating_sub(keys);
    let began = until.millis() - MONTH_MS;
    many(keys, ledger, move |ledger, number| async move {
        create(&*ledger, number, requests, Timestamp::from_millis(began)).await;
    })
    .await;
    many(requests, ledger, move |ledger, number| async move {
        let passed = i128::from(MONTH_MS) * i128::from(number + 1) / i128::from(requests);
        charge(
            &*ledger,
            number,
            keys,
            Timestamp::from_millis(began + passed as i64),
        )
        .await;
    })
    .await;
}

/// Runs `count` jobs in about their order, [`IN_FLIGHT`] at any time.
async fn many<F>(
    count: u64,
    ledger: &SharedLedger,
    job: impl Fn(SharedLedger, u64) -> F + Copy + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..IN_FLIGHT.min(count) {
        let (ledger, next) = (Arc::clone(ledger), Arc::clone(&next));
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                job(Arc::clone(&ledger), number).await;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
}

/// The id of the key with this number, spread over the whole range.
pub(crate) fn key_id(number: u64) -> KeyId {
    KeyId::from_random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13)
}

/// The secret of the key with this number.
pub(crate) fn secret(number: u64) -> Secret {
    Secret::generate(key_id(number), [7; 32])
}

fn operation(kind: u128, number: u64, at: Timestamp) -> OperationId {
    OperationId::new(at, kind << 64 | u128::from(number))
}

async fn create(ledger: &dyn Ledger, number: u64, requests: u64, at: Timestamp) {
    let name = [
        "build@ci",
        "sandbox",
        "ops@team.example",
        "tools",
        "pilot",
        "eval",
        "notebooks",
    ][number as usize % 7];
    let settings = KeySettings {
        label: format!("customer-{number}-{name}"),
        ..KeySettings::default()
    };
    // Enough for all its requests, and something that differs from key to key.
    let cents = (10_000
        + number.wrapping_mul(7919) % 20_000
        + if number < BUSY { requests } else { 0 }) as i64;
    let first_credit = Some((
        Amount::from_picos(cents * 10_000_000_000),
        format!("inv-{number}"),
    ));
    let at = Timestamp::from_millis(at.millis() + number as i64);
    let act = Act {
        operation: operation(1, number, at),
        actor: "generator".to_owned(),
        at,
    };
    let new = NewKey {
        within: Membership::default(),
        id: key_id(number),
        secret: secret(number).hash(),
        settings,
        first_credit,
        purse: None,
        act,
    };
    ledger.perform(new).await.unwrap();
}

async fn charge(ledger: &dyn Ledger, number: u64, keys: u64, at: Timestamp) {
    let spread = number.wrapping_mul(2_654_435_761) % keys;
    let key = key_id(if number.is_multiple_of(3) {
        number / 3 % BUSY.min(keys)
    } else {
        spread
    });
    let request = operation(2, number, at);
    let (slug, family) = (
        SLUGS[number as usize % SLUGS.len()].to_owned(),
        "chat".to_owned(),
    );
    ledger
        .perform(NewHold {
            request,
            customer: CustomerId::made_for(key),
            key,
            ways: vec![farebox_ledger::HoldWay::exactly(HOLD)],
            slug: slug.clone(),
            family: family.clone(),
            at,
        })
        .await
        .unwrap();
    let (input, output) = (number % 9_000 + 100, number % 700 + 20);
    let line = |what: &'static str, count, picos| BillLine {
        what: what.into(),
        count,
        rate: Amount::from_picos(picos),
        class: None,
    };
    let bill = Bill {
        target: format!("sim/{slug}"),
        slug,
        family,
        status: 200,
        end_reason: EndReason::Stop,
        first_byte_ms: Some(120),
        total_ms: 900,
        answer_id: Some(format!("chatcmpl-{number:024x}")),
        usage: Usage {
            input,
            output,
            ..Usage::default()
        },
        lines: vec![
            line("input", input, 30_000),
            line("output", output, 150_000),
        ],
        ..Bill::default()
    };
    ledger
        .perform(Arc::new(Finish { request, bill, at }))
        .await
        .unwrap();
}
