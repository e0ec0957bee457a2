//! Makes a ledger to look at and to measure with: `seed PATH KEYS ENTRIES`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a program for developers: it says what is wrong by failing"
)]

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{Durability, OpenMode, SharedLedger, Timestamp};

#[path = "../../tests/support/big_ledger.rs"]
mod big_ledger;

#[tokio::main]
async fn main() {
    let usage = "usage: seed PATH KEYS ENTRIES";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, keys, entries] = args.as_slice() else {
        return eprintln!("{usage}");
    };
    let (Ok(keys), Ok(entries)) = (keys.parse(), entries.parse()) else {
        return eprintln!("{usage}");
    };
    let began = Instant::now();
    let ledger = Arc::new(SqliteLedger::create(path, OpenMode::Write, Durability::Prompt).unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let until = Timestamp::from_millis(now.as_millis().try_into().unwrap());
    big_ledger::generate(&(Arc::clone(&ledger) as SharedLedger), keys, entries, until).await;
    ledger.close();
    drop(ledger);
    // The last connection to close may write, and leaves one file that is complete.
    rusqlite::Connection::open(path)
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    eprintln!(
        "{path}: {keys} keys, {entries} entries in {:.0?}",
        began.elapsed()
    );
}
