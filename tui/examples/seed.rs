//! Makes a ledger to look at: `seed PATH KEYS REQUESTS`. For trying and measuring the console; never run by the tests of others.
//!
//! Everything goes through the public contract of the ledger, many operations at once so that commits are shared.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use farebox_ledger::sqlite::{Durability, OpenMode, SqliteLedger};
use farebox_ledger::{
    Act, Amount, Bill, Hold, KeyId, KeySettings, Ledger, LedgerError, Line, NewHold, NewKey, OperationId, SecretHash, Timestamp,
    Usage,
};

const AT_ONCE: u64 = 256;
const SLUGS: [&str; 4] = ["large-model", "small-model", "thinking-model", "fast-model"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: seed PATH KEYS REQUESTS")?;
    let keys: u64 = args.next().unwrap_or_default().parse()?;
    let requests: u64 = args.next().unwrap_or_default().parse()?;
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(path, OpenMode::Create, Durability::Prompt)?);
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let started = Timestamp::from_millis(now - 7 * 86_400_000);
    in_groups(keys, |number| create(Arc::clone(&ledger), number, started)).await?;
    let step = 7 * 86_400_000 / i64::try_from(requests.max(1))?.max(1);
    in_groups(requests, |number| {
        let at = Timestamp::from_millis(started.millis() + step.saturating_mul(i64::try_from(number).unwrap_or(0)));
        request(Arc::clone(&ledger), number, keys, at)
    })
    .await?;
    Ok(())
}

async fn in_groups<F>(count: u64, make: impl Fn(u64) -> F) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    F: Future<Output = Result<(), LedgerError>> + Send + 'static,
{
    let mut number = 0;
    while number < count {
        let mut group = tokio::task::JoinSet::new();
        for member in number..count.min(number + AT_ONCE) {
            group.spawn(make(member));
        }
        while let Some(done) = group.join_next().await {
            done??;
        }
        number += AT_ONCE;
    }
    Ok(())
}

/// The same ids every time, spread over the whole range.
fn key_id(number: u64) -> KeyId {
    KeyId::from_random(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13)
}

fn operation(kind: u128, number: u64, at: Timestamp) -> OperationId {
    OperationId::new(at, kind << 64 | u128::from(number))
}

async fn create(ledger: Arc<dyn Ledger>, number: u64, at: Timestamp) -> Result<(), LedgerError> {
    let names = ["build@ci", "sandbox", "ops@team.example", "tools", "pilot", "eval", "notebooks"];
    let name = names.get(usize::try_from(number % 7).unwrap_or(0)).copied().unwrap_or_default();
    let cents = i64::try_from(number.wrapping_mul(7919) % 20_000).unwrap_or(0) + 1;
    let settings = KeySettings { label: format!("customer-{number}-{name}"), ..KeySettings::default() };
    let first_credit =
        (!number.is_multiple_of(11)).then(|| (Amount::from_picos(cents * 10_000_000_000), format!("inv-{number}")));
    let at = Timestamp::from_millis(at.millis() + i64::try_from(number).unwrap_or(0));
    let act = Act { operation: operation(1, number, at), actor: "seed".to_owned(), at };
    let secret = SecretHash::of(&format!("seed {number}"));
    ledger.create_key(NewKey { id: key_id(number), secret, settings, first_credit, act }).await.map(|_| ())
}

async fn request(ledger: Arc<dyn Ledger>, number: u64, keys: u64, at: Timestamp) -> Result<(), LedgerError> {
    // A few keys are busy, the others are not.
    let chosen = if number.is_multiple_of(3) { number % 7 + 1 } else { number.wrapping_mul(2_654_435_761) % keys.max(1) };
    let slug = SLUGS.get(usize::try_from(number % 4).unwrap_or(0)).copied().unwrap_or_default();
    let (input, output) = (number % 9000 + 100, number % 700 + 20);
    let rate = |picos| Amount::from_picos(picos);
    let new = NewHold {
        request: operation(2, number, at),
        key: key_id(chosen),
        amount: Amount::from_picos(2_000_000_000),
        slug: slug.to_owned(),
        family: "chat".to_owned(),
        at,
    };
    let hold = match Hold::open(ledger, new).await {
        Ok(hold) => hold,
        Err(LedgerError::Refused(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let bill = Bill {
        slug: slug.to_owned(),
        family: "chat".to_owned(),
        target: format!("sim/{slug}"),
        status: 200,
        end_reason: "stop".to_owned(),
        first_byte_ms: Some(120),
        total_ms: 900,
        usage: Usage { input, output, ..Usage::default() },
        lines: vec![
            Line { what: "input".into(), count: input, rate: rate(30_000) },
            Line { what: "output".into(), count: output, rate: rate(150_000) },
        ],
        ..Bill::default()
    };
    hold.settle(bill, at).await.map(|_| ())
}
