//! The books: creates a ledger with funded keys through the ledger's contract, and checks that it equals what was served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Act, Amount, Durability, KeyId, KeySettings, Ledger, Membership, NewKey, OpenMode, OperationId,
    Perform, Secret, Timestamp,
};
use tokio::runtime::Runtime;

/// What each key has: more than any round spends.
const FUNDS: i64 = 50_000_000_000_000_000;
/// Keys made at once, so that they share commits.
const TOGETHER: u64 = 512;

/// The key with this number: the same id and secret in every run.
fn key(number: u64) -> (KeyId, Secret) {
    // Spread like random ids, so that rows lie as scattered as they do in life.
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 27;
    let id = KeyId::from_random(mixed);
    let mut random = [7; 32];
    random[..8].copy_from_slice(&number.to_be_bytes());
    (id, Secret::generate(id, random))
}

/// The secrets of the first keys, as customers send them.
pub(crate) fn secrets(count: u64) -> Vec<String> {
    (0..count)
        .map(|number| key(number).1.reveal().to_owned())
        .collect()
}

fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

/// Makes funded keys in a ledger that may be new; those that are there already stay as they are.
pub(crate) fn make(ledger: &Path, count: u64) -> Result<(), String> {
    make_with(ledger, count, |_| FUNDS)
}

/// The same with other funds, in picodollars for each key's number.
pub(crate) fn make_with(ledger: &Path, count: u64, funds: fn(u64) -> i64) -> Result<(), String> {
    runtime()?
        .block_on(fill(ledger, count, funds))
        .map_err(|error| format!("{}: {error}", ledger.display()))
}

async fn fill(
    path: &Path,
    count: u64,
    funds: fn(u64) -> i64,
) -> Result<(), Box<dyn std::error::Error>> {
    let ledger = Arc::new(SqliteLedger::create(
        path,
        OpenMode::Write,
        Durability::Prompt,
    )?);
    let millis = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let now = Timestamp::from_millis(i64::try_from(millis)?);
    let tasks: Vec<_> = (0..TOGETHER)
        .map(|task| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                for number in (task..count).step_by(TOGETHER as usize) {
                    ledger.perform(new_key(number, now, funds(number))).await?;
                }
                Ok::<_, farebox_ledger::LedgerError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    ledger.close();
    Ok(())
}

/// Copies a ledger whole, whatever of it is still in its write-ahead log.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = runtime()?.block_on(async {
        SqliteLedger::open(from, OpenMode::ReadOnly, Durability::Prompt)?
            .backup(to)
            .await
    });
    copied
        .map(drop)
        .map_err(|error| format!("{}: {error}", to.display()))
}

/// Has the system forget what it remembers of a ledger's file, so that a start finds it on the disk.
pub(crate) fn forget(ledger: &Path) -> Result<(), String> {
    let forgotten = || {
        let file = std::fs::File::open(ledger)?;
        file.sync_all()?;
        Ok::<_, std::io::Error>(rustix::fs::fadvise(
            &file,
            0,
            None,
            rustix::fs::Advice::DontNeed,
        )?)
    };
    forgotten().map_err(|error| format!("{}: {error}", ledger.display()))
}

/// Removes a ledger with the files beside it.
pub(crate) fn remove(ledger: &Path) {
    for ending in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(format!("{}{ending}", ledger.display()));
    }
}

fn new_key(number: u64, now: Timestamp, funds: i64) -> NewKey {
    let (id, secret) = key(number);
    // Fixed ids: making a key again has no second effect.
    let operation = OperationId::new(
        Timestamp::from_millis(1_790_000_000_000),
        u128::from(number) | 0xbe << 72,
    );
    NewKey {
        within: Membership::default(),
        id,
        secret: secret.hash(),
        settings: KeySettings {
            label: format!("customer {number}"),
            // What is measured is the gateway, not its limit for one key.
            rate: Some(1_000_000),
            ..KeySettings::default()
        },
        first_credit: (funds > 0).then(|| (Amount::from_picos(funds), format!("bench-{number}"))),
        purse: None,
        act: Act {
            operation,
            actor: "bench".to_owned(),
            at: now,
        },
    }
}

/// A ledger of a gateway that runs, and what its customers were given until now.
#[derive(Debug)]
pub(crate) struct BenchBooks {
    pub(crate) ledger: PathBuf,
    /// Answers to each key.
    pub(crate) answers: Vec<u64>,
}

impl BenchBooks {
    /// Compares the ledger with `served`, the upstream's own count of answers that cost so much: in sum and for each key, to the last
    /// picodollar.
    pub(crate) fn check(&self, served: u64, each: i64) -> Result<(), String> {
        runtime()?
            .block_on(self.compare(served, each))
            .map_err(|error| format!("the books: {error}"))
    }

    async fn compare(&self, served: u64, each: i64) -> Result<(), Box<dyn std::error::Error>> {
        let ledger = SqliteLedger::open(&self.ledger, OpenMode::ReadOnly, Durability::Prompt)?;
        let totals = ledger.totals().await?;
        let cost = i128::from(served) * i128::from(each);
        if (totals.spent, totals.holds, totals.held, totals.loss) != (cost, 0, 0, 0) {
            let fault = format!(
                "{served} answers were served, which cost {cost} picodollars; the ledger says {totals:?}"
            );
            return Err(fault.into());
        }
        let ids: Vec<KeyId> = (0..self.answers.len())
            .map(|number| key(number as u64).0)
            .collect();
        for (found, answers) in ledger.find_keys(&ids).await?.iter().zip(&self.answers) {
            let cost = i64::try_from(*answers)? * each;
            if found.customer.account.spent.picos() != cost {
                return Err(format!(
                    "{} got {answers} answers for {cost} picodollars: {:?}",
                    found.id, found.customer.account
                )
                .into());
            }
        }
        Ok(())
    }
}
