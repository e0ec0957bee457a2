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

#[path = "../../tests/support/skip.rs"]
mod skip;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const FIRST_PAINT: Duration = Duration::from_millis(100);
const SCREEN: Duration = Duration::from_millis(50);

/// The console on a terminal of its own, and what it draws.
struct Running {
    child: Child,
    drawn: Receiver<Vec<u8>>,
    since: Instant,
}

impl Running {
    fn start(ledger: &Path, home: &Path) -> Self {
        let command = format!(
            "stty cols 80 rows 24; exec {} --ledger {}",
            env!("CARGO_BIN_EXE_farebox-console"),
            ledger.display()
        );
        let since = Instant::now();
        let mut child = Command::new("script")
            .args(["-qfec", &command, "/dev/null"])
            .env("XDG_STATE_HOME", home)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let (tell, drawn) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(read @ 1..) = out.read(&mut bytes) {
                if tell.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            drawn,
            since,
        }
    }

    /// Until these bytes were drawn, from the last key or the start on.
    fn until(&self, text: &str) -> Duration {
        let mut all = Vec::new();
        while !all.windows(text.len()).any(|part| part == text.as_bytes()) {
            match self.drawn.recv_timeout(Duration::from_secs(60)) {
                Ok(more) => all.extend(more),
                Err(error) => unreachable!(
                    "{text:?} was not drawn ({error}): {}",
                    String::from_utf8_lossy(&all)
                ),
            }
        }
        self.since.elapsed()
    }

    fn press(&mut self, key: &str) {
        // What is still being drawn for the key before does not count for this one.
        while self.drawn.recv_timeout(Duration::from_millis(150)) != Err(RecvTimeoutError::Timeout)
        {
        }
        self.since = Instant::now();
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(key.as_bytes())
            .unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.stdin.as_mut().unwrap().write_all(b"\x03");
        std::thread::sleep(Duration::from_millis(50));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
