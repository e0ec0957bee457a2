//! *When the disk fills* in `docs/operations.md`, from a forgotten shell to selling again: the shell is told, the log stops at its
//! limit, the disk is filled to its last byte, and what runs is settled all the same; then the shell ends, and then a start.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{Ledger, Perform};
use farebox_protocol::Family;
use futures_util::future::join_all;
use reqwest::Response;

use super::storage::{PROVIDED, SmallDisk, asked_until, post};
use crate::process::bad_days::{over, told};
use crate::support::checker::reading;
use crate::support::load::{self, create, ends_properly, place, usd};
use crate::support::process::Served;
use crate::support::skip::{installed, skip};
use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{TestKey, payment};

/// The time limit for anything that happens by itself.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMIT: &[&str] = &["--ledger", "disk/farebox.db", "--wal-limit", "96MiB"];

/// An operator's shell that has begun a transaction and was forgotten.
pub(crate) struct Shell(Child);

impl Shell {
    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Runs this, and waits for more.
    pub(crate) fn open(ledger: &Path, statements: &str) -> Self {
        let mut child = Command::new("sqlite3")
            .arg(ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(format!("{statements}\n").as_bytes())
            .unwrap();
        Self(child)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn log_bytes(ledger: &Path) -> u64 {
    let mut log = ledger.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).map_or(0, |found| found.len())
}

/// Payments, each a commit of its own, until the log is this long.
async fn grow_log(ledger: &SqliteLedger, key: &TestKey, path: &Path, bytes: u64) {
    for number in 0.. {
        if log_bytes(path) >= bytes {
            return;
        }
        let paid = payment(key.id, usd("0.01"), format!("grows-{bytes}-{number}"));
        ledger.perform(paid).await.unwrap();
    }
}

async fn until_nothing_is_held(ledger: &Path, served: &Served) {
    let begun = Instant::now();
    while !(reading(ledger).open_holds(None, 1).await.unwrap()).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{}", served.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn streams(served: &Served, key: &TestKey, numbers: std::ops::Range<u64>) -> Vec<Response> {
    let streams = join_all(numbers.map(|number| {
        let family = Family::ALL[(number % 3) as usize];
        post(&served.base, key, family, true, number)
    }));
    let streams = streams.await;
    assert!(streams.iter().all(|answer| answer.status() == 200));
    streams
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_shell_and_a_full_disk_stop_only_what_is_new() {
    let gates = [Gate::new(), Gate::new()];
    let held_back = gates.clone();
    let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
        let (mark, speech) = load::speech(seen);
        if seen.json()["stream"] == true {
            speech
                .stream()
                .gate_after(7, &held_back[(mark.number / 6) as usize])
        } else {
            speech.whole()
        }
    }))
    .await;
    let (folder, _) = place(&upstream);
    if !installed("sqlite3", "a reader that keeps the ledger's log") {
        return;
    }
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk"), 300) else {
        return skip("a full disk: mounting a tmpfs is not permitted here");
    };
    let ledger = disk.0.join("farebox.db");
    let own = create(&ledger);
    let key = load::key(&own, "100").await;
    let mut served = Served::start_with(folder.path(), LIMIT, &PROVIDED);
    let running = streams(&served, &key, 0..6).await;

    // The shell is told after 10 s, a warning at 64 MiB, and at the limit nothing new is sold.
    let shell = Shell::open(&ledger, "BEGIN; SELECT count(*) FROM entries;");
    // Running streams write nothing, and a log that nobody writes need not be copied.
    let asking = async {
        loop {
            asked_until(&served.base, &key, 200).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let alert = tokio::select! {
        alert = told(&served, "log_held", "") => alert,
        () = asking => unreachable!("it asks without end"),
    };
    let process = format!("process {} (sqlite3)", shell.id());
    let named = |text: &str| assert!(text.contains(&process), "{process}: {text}");
    named(alert["reason"].as_str().unwrap());
    assert_eq!(alert["pids"][0], shell.id());
    grow_log(&own, &key, &ledger, 64 << 20).await;
    named(
        told(&served, "log_grows", "").await["reason"]
            .as_str()
            .unwrap(),
    );
    grow_log(&own, &key, &ledger, 96 << 20).await;
    named(
        told(&served, "log_limit", "").await["reason"]
            .as_str()
            .unwrap(),
    );
    asked_until(&served.base, &key, 503).await;

    // To the last byte: what runs is settled although the shell is still there.
    let filling = disk.fill("filling");
    told(&served, "disk_full", "").await;
    gates[0].open();
    for (number, answer) in running.into_iter().enumerate() {
        let text = answer.text().await.unwrap();
        assert!(ends_properly(Family::ALL[number % 3], &text), "{text}");
    }
    until_nothing_is_held(&ledger, &served).await;
    assert!(log_bytes(&ledger) >= 96 << 20);

    // Without the shell the log is copied and cut on the full disk, and its space is enough to sell again.
    drop(shell);
    asked_until(&served.base, &key, 200).await;
    over(&served, "disk_full", "").await;
    assert!(log_bytes(&ledger) < 64 << 20);

    // Killed on a full disk with holds: a start ends them there, and sells when there is space.
    let running = streams(&served, &key, 6..12).await;
    let refilling = disk.fill("refilling");
    asked_until(&served.base, &key, 503).await;
    served.kill();
    drop(running);
    let mut served = Served::start_with(folder.path(), LIMIT, &PROVIDED);
    until_nothing_is_held(&ledger, &served).await;
    asked_until(&served.base, &key, 503).await;
    told(&served, "disk_full", "").await;
    fs::remove_file(refilling).unwrap();
    fs::remove_file(filling).unwrap();
    asked_until(&served.base, &key, 200).await;
    over(&served, "disk_full", "").await;
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let faults = reading(&ledger).verify().await.unwrap().faults;
    assert_eq!(faults, Vec::<String>::new());
}
