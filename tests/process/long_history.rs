//! A ledger with a long history, a million entries with `FAREBOX_FULL=1`: how long a gateway takes to start on it, and `verify` and the
//! month's export while it sells, on both stores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use farebox_ledger::{LedgerAddress, OpenMode, Opening, clock};
use tokio::task::block_in_place;

use crate::support::big_ledger;
use crate::support::cluster::Cluster;
use crate::support::load::{Load, UPSTREAM_KEY, honest, key, place};
use crate::support::process::{Served, farebox};
use crate::support::sized;
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;

const KEYS: u64 = 1_000;
/// These databases have no standby.
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");

/// Runs a command and returns what it prints, and how long it took.
fn timed(folder: &Path, ledger: &str, arguments: &[&str]) -> (String, Duration) {
    let begun = Instant::now();
    let output = farebox(folder, arguments)
        .envs([SINGLE, ("FAREBOX_LEDGER", ledger)])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{trouble}");
    (said, begun.elapsed())
}

/// Returns the row of `docs/results/fleet.md`.
async fn tried(store: &str, folder: &Path, address: &str) -> String {
    let entries = sized(4_000, 1_000_000);
    let opened: LedgerAddress = address.parse().unwrap();
    let opening = Opening {
        allow_single: true,
        ..Opening::new(OpenMode::Serve)
    };
    let ledger = opened.create(&opening).await.unwrap();
    let until = clock::now();
    big_ledger::generate(&(ledger.clone() as _), KEYS, entries, until).await;
    let customer = key(&*ledger, "900").await;
    ledger.close();
    drop(ledger);
    let begun = Instant::now();
    let mut served = block_in_place(|| {
        Served::start_with(
            folder,
            &[],
            &[UPSTREAM_KEY, SINGLE, ("FAREBOX_LEDGER", address)],
        )
    });
    let started = begun.elapsed();
    let numbers = Arc::new(AtomicU64::new(1));
    let load = Load::start(&served.base, &[customer], 4, &numbers, 7);
    let ((verified, verify), (csv, export)) = block_in_place(|| {
        let verify = timed(folder, address, &["ledger", "verify"]);
        // All of it: the history is a month long.
        let month = "ledger entries --since 2000-01-01 --until 2999-01-01 --format csv";
        let month: Vec<&str> = month.split(' ').collect();
        (verify, timed(folder, address, &month))
    });
    let told = load.end().await;
    assert!(verified.contains("the books are sound"), "{verified}");
    let lines = csv.lines().count() as u64;
    assert!(lines > entries, "{lines} lines of {entries} entries");
    assert!(!told.is_empty(), "it sold meanwhile");
    let row = format!(
        "| {store} | {entries} | {:.2} s | {:.1} s | {:.1} s | {} |",
        started.as_secs_f64(),
        verify.as_secs_f64(),
        export.as_secs_f64(),
        told.len()
    );
    served.signal("TERM");
    assert!(
        block_in_place(|| served.ended()).success(),
        "{}",
        served.log()
    );
    row
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_on_a_file() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let (folder, _) = place(&upstream);
    let path = folder.path().join("farebox.db").display().to_string();
    println!("{}", tried("SQLite", folder.path(), &path).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_in_a_database() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a long history in a database: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(honest()).await;
    let (folder, _) = place(&upstream);
    let address = cluster.url(&cluster.database());
    println!("{}", tried("PostgreSQL", folder.path(), &address).await);
}
