//! How fast the real console is on a ledger of 10,000 keys and 100,000 entries: first paint, first rows and other screens.
//!
//! The promised times are asserted with `FAREBOX_FULL=1`, for the best of several tries; every day they are only printed, because the
//! machine may be slow or busy. `FAREBOX_BIG_LEDGER` names an existing ledger to use instead, created by the example `seed`. `script`
//! gives the console a terminal.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what is wrong by failing"
)]

#[path = "support/running.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
mod running;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::path::PathBuf;
use std::time::Duration;

use running::Running;

const FIRST_PAINT: Duration = Duration::from_millis(100);
const SCREEN: Duration = Duration::from_millis(50);

#[test]
fn first_paint_and_screens_are_quick() {
    if !skip::installed("script", "the console's speed") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ledger = std::env::var_os("FAREBOX_BIG_LEDGER").map_or_else(
        || {
            let small = directory.path().join("farebox.db");
            support::seed(&small, 10_000, 100_000);
            small
        },
        PathBuf::from,
    );
    let start = || Running::start(&ledger, directory.path());
    // A console that stands still between two keys draws what changed for both: every day each key is the first one of its console.
    let full = std::env::var_os("FAREBOX_FULL").is_some();
    let tries = if full { 5 } else { 1 };
    let first = (0..tries).map(|_| start().until(" fb")).min().unwrap();
    let rows = (0..tries).map(|_| start().until("k_")).min().unwrap();
    println!("first paint {first:?}, first rows {rows:?}");
    assert!(
        !full || (first < FIRST_PAINT && rows < FIRST_PAINT * 2),
        "first paint {first:?}, rows {rows:?}"
    );
    for (key, back, drawn) in [
        ("5", "1", "Holds"),
        ("6", "1", "Audit"),
        ("7", "1", "Books"),
        ("\r", "\x1b", "Paid"),
        ("G", "g", "customer-"),
    ] {
        let mut console = start();
        console.until("k_");
        let best = (0..tries).map(|_| {
            console.press(key);
            let took = console.until(drawn);
            console.press(back);
            took
        });
        let best = best.min().unwrap();
        println!("{key:?} {best:?}");
        assert!(!full || best < SCREEN, "{key:?} took {best:?}");
    }
}

mod support {
    //! The example that seeds ledgers, run as a program.

    use std::path::Path;
    use std::process::Command;

    pub(crate) fn seed(path: &Path, keys: u64, entries: u64) {
        let target = Path::new(env!("CARGO_BIN_EXE_farebox-console"))
            .parent()
            .unwrap();
        let seeded = Command::new(target.join("examples/seed"))
            .arg(path)
            .args([keys.to_string(), entries.to_string()])
            .status();
        assert!(seeded.unwrap().success());
    }
}
