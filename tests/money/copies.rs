//! `ledger copy` that does not reach its end: killed half-way, or onto a full disk. The source is as it was and can be served, and
//! the next copy is whole.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use farebox_ledger::{LedgerAddress, OpenMode, Opening, clock};

use crate::support::big_ledger;
use crate::support::cluster::Cluster;
use crate::support::process::farebox;
use crate::support::skip::skip;

const KEYS: u64 = 50;
const ENTRIES: u64 = 3_000;
/// These databases have no standby.
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");

fn command(folder: &Path, ledger: &str, arguments: &[&str]) -> Command {
    let mut command = farebox(folder, arguments);
    command.envs([SINGLE, ("FAREBOX_LEDGER", ledger)]);
    command
}

fn run(folder: &Path, ledger: &str, arguments: &[&str]) -> (bool, String) {
    let output = command(folder, ledger, arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

async fn made(folder: &Path) {
    let path = folder.join("a.db").display().to_string();
    let address: LedgerAddress = path.parse().unwrap();
    let ledger = address
        .create(&Opening::new(OpenMode::Serve))
        .await
        .unwrap();
    big_ledger::generate(&(ledger.clone() as _), KEYS, ENTRIES, clock::now()).await;
    ledger.close();
}

/// Kills a copy after a while; whether it was killed before it ended.
fn killed(folder: &Path, from: &str, to: &str, after: u64) -> bool {
    let mut copy = command(folder, from, &["ledger", "copy", "--to", to]);
    copy.stdout(Stdio::null()).stderr(Stdio::null());
    let mut copy = copy.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(after));
    let running = copy.try_wait().unwrap().is_none();
    let _ = copy.kill();
    copy.wait().unwrap();
    running
}

/// The source is sound, and takes a payment: nothing marked it as moved.
fn is_as_it_was(folder: &Path, ledger: &str, number: u64) {
    let (sound, said) = run(folder, ledger, &["ledger", "verify"]);
    assert!(sound && said.contains("the books are sound"), "{said}");
    let key = big_ledger::key_id(0).to_string();
    let reference = format!("paid-{number}");
    let (paid, said) = run(
        folder,
        ledger,
        &["keys", "top-up", &key, "1", "--reference", &reference],
    );
    assert!(paid, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_killed_half_way_leaves_a_source_that_is_whole() {
    let Some(cluster) = Cluster::shared() else {
        return skip("copies that are killed: PostgreSQL is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    made(folder.path()).await;
    let there = cluster.url(&cluster.database());
    let mut hits = 0;
    for (number, after) in [20, 60, 120, 200, 300].into_iter().enumerate() {
        if !killed(folder.path(), "a.db", &there, after) {
            break;
        }
        hits += 1;
        is_as_it_was(folder.path(), "a.db", number as u64);
    }
    assert!(hits > 0, "none was killed");
    let (copied, said) = run(folder.path(), "a.db", &["ledger", "copy", "--to", &there]);
    // One that was killed after its last commit has moved the ledger.
    assert!(
        copied || said.contains("was moved") || said.contains("not empty"),
        "{said}"
    );
    let mut hits = 0;
    for (number, after) in [20, 60, 120, 200, 300].into_iter().enumerate() {
        if !killed(folder.path(), &there, "b.db", after) || folder.path().join("b.db").exists() {
            break;
        }
        hits += 1;
        is_as_it_was(folder.path(), &there, 100 + number as u64);
    }
    assert!(hits > 0, "none was killed");
    if !folder.path().join("b.db").exists() {
        let (copied, said) = run(folder.path(), &there, &["ledger", "copy", "--to", "b.db"]);
        assert!(copied, "{said}");
    }
    let (sound, said) = run(folder.path(), "b.db", &["ledger", "verify"]);
    assert!(sound && said.contains("the books are sound"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_onto_a_full_disk_leaves_nothing_and_a_source_that_is_whole() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a copy onto a full disk: PostgreSQL is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        return skip("a copy onto a full disk: mounting a tmpfs is not permitted here");
    }
    made(folder.path()).await;
    let there = cluster.url(&cluster.database());
    let (copied, said) = run(folder.path(), "a.db", &["ledger", "copy", "--to", &there]);
    assert!(copied, "{said}");
    let (copied, said) = run(
        folder.path(),
        &there,
        &["ledger", "copy", "--to", "disk/b.db"],
    );
    let left: Vec<_> = std::fs::read_dir(&disk).unwrap().collect();
    let unmounted = Command::new("umount").arg("-l").arg(&disk).status();
    assert!(
        !copied && (said.contains("full") || said.contains("space")),
        "{said}"
    );
    assert!(left.is_empty(), "{left:?}");
    assert!(unmounted.unwrap().success());
    is_as_it_was(folder.path(), &there, 1);
}
