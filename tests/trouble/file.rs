//! The rows of a ledger in a file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Asked, Row, all_rows, not_tested};
use crate::money::full_disk::Shell;
use crate::money::storage::SmallDisk;
use crate::process::bad_machines::Machine;
use crate::process::identity::{move_all, put_back};
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::process::Served;
use crate::support::skip::installed;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{TestKey, sized, talking};

/// A gateway with a key, on a machine that can be broken. Its ledger is in `disk`, a folder of its own.
struct Place {
    served: Served,
    key: TestKey,
    ledger: PathBuf,
    folder: tempfile::TempDir,
    _upstream: ScriptedUpstream,
}

impl Place {
    /// `None` where the folder cannot be made a disk of its own.
    async fn start(machine: &Machine, mount: impl FnOnce(&Path) -> bool) -> Option<Self> {
        let upstream = ScriptedUpstream::start(talking("PONG")).await;
        let (folder, _) = load::place(&upstream);
        let disk = folder.path().join("disk");
        if !mount(&disk) {
            return None;
        }
        let ledger = disk.join("farebox.db");
        let book = load::create(&ledger);
        let key = load::key(&book, "100").await;
        book.close();
        drop(book);
        let environment = [&machine.environment()[..], &[UPSTREAM_KEY]].concat();
        let arguments = ["--ledger", "disk/farebox.db"];
        let served = Served::start_with(folder.path(), &arguments, &environment);
        Some(Self {
            served,
            key,
            ledger,
            folder,
            _upstream: upstream,
        })
    }
}

fn folder(at: &Path) -> bool {
    std::fs::create_dir(at).is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_writer_a_slow_disk_a_moved_file_and_a_clock_that_jumps_are_told() {
    let Some(machine) = Machine::new() else {
        return not_tested("faults of a machine: there is no compiler");
    };
    if !installed("sqlite3", "another program that writes to the ledger") {
        return not_tested("faults of a file: sqlite3 is not installed");
    }
    let place = Place::start(&machine, folder).await.unwrap();
    let asked = Asked::start(&place.served, &place.key).await;

    let mut shell = None;
    let mut row = Row::new(
        "another writer",
        "ledger_blocked",
        &["another program is writing"],
        "let it finish, or end that process",
    );
    let begin = || Shell::open(&place.ledger, "BEGIN IMMEDIATE;");
    asked.told(&row, || shell = Some(begin())).await;
    // It is one process, and stays told while callers are refused one after the other.
    let pid = shell.as_ref().map_or(0, Shell::id);
    row.says.push(format!("process {pid} (sqlite3)"));
    tokio::time::sleep(Duration::from_secs(sized(1, 11))).await;
    asked.told(&row, || {}).await;
    asked.over(&row, || shell = None).await;

    slow_syncs(&asked, &machine).await;

    let row = Row::new(
        "a moved file",
        "ledger_displaced",
        &["cannot be written", "moved or deleted"],
        "put the ledger back",
    );
    let (at, away) = (
        place.ledger.parent().unwrap(),
        place.folder.path().join("away"),
    );
    let (move_away, back) = (|| move_all(at, &away), || put_back(&away, at));
    asked.goes_through(&row, move_away, back).await;

    let row = Row::new(
        "a clock that jumps",
        "clock_jumped",
        &["jumped ahead by about 50 s"],
        "timedatectl",
    );
    let (jump, set_back) = (
        || machine.set("seconds", "45"),
        || machine.set("seconds", "0"),
    );
    asked.goes_through(&row.beside(), jump, set_back).await;
}

/// The disk takes from one to fifteen seconds for a sync. A commit that waits for none goes on meanwhile.
async fn slow_syncs(asked: &Asked<'_>, machine: &Machine) {
    for (what, millis) in [
        ("a sync of 1 s", "1000"),
        ("a sync of 3 s", "3000"),
        ("a sync of 15 s", "15000"),
    ] {
        let says = ["has been under way for more than a second"];
        let row = Row::new(what, "ledger_slow", &says, "iostat").at_times();
        asked.told(&row, || machine.set("sync", millis)).await;
        if millis == "15000" && all_rows() {
            // All the time.
            tokio::time::sleep(Duration::from_secs(11)).await;
            asked.told(&row, || {}).await;
        }
        asked.over(&row, || machine.set("sync", "0")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reader_and_a_full_disk_are_told() {
    // In small sizes both are among `money::full_disk`.
    if !all_rows() {
        return;
    }
    let Some(machine) = Machine::new() else {
        return not_tested("faults of a machine: there is no compiler");
    };
    let mut disk = None;
    let mount = |at: &Path| {
        disk = SmallDisk::mount(at, 200);
        disk.is_some()
    };
    let Some(place) = Place::start(&machine, mount).await else {
        return not_tested(
            "a long reader, and a full disk: mounting a tmpfs is not permitted here",
        );
    };
    let asked = Asked::start(&place.served, &place.key).await;

    let mut shell = Some(Shell::open(
        &place.ledger,
        "BEGIN; SELECT count(*) FROM entries;",
    ));
    let process = format!("process {} (sqlite3)", shell.as_ref().map_or(0, Shell::id));
    let row = Row::new("a long reader", "log_held", &[&process], "forgotten shell").beside();
    // It is none before ten seconds have passed.
    tokio::time::sleep(Duration::from_secs(10)).await;
    asked.told(&row, || {}).await;
    asked.over(&row, || shell = None).await;

    let row = Row::new(
        "a full disk",
        "disk_full",
        &["the disk is full"],
        "free space",
    );
    let (disk, mut filled) = (disk.unwrap(), None);
    asked
        .told(&row, || filled = Some(disk.fill("filling")))
        .await;
    asked
        .over(&row, || std::fs::remove_file(filled.unwrap()).unwrap())
        .await;
}

/// A disk in a file, as one that has become read-only after a fault.
struct FaultyDisk(PathBuf);

impl FaultyDisk {
    fn run(program: &str, arguments: &[&str], at: &Path) -> bool {
        let mut command = Command::new(program);
        let done = command.args(arguments).arg(at).output();
        done.is_ok_and(|done| done.status.success())
    }

    /// `None` where loop devices are not permitted.
    fn mount(at: &Path) -> Option<Self> {
        let image = at.with_extension("image");
        std::fs::create_dir(at).unwrap();
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(200 << 20));
        let done = made.is_ok() && Self::run("mkfs.ext4", &["-q"], &image);
        let disk = Self(at.to_owned());
        (done && disk.mount_again()).then_some(disk)
    }

    fn mount_again(&self) -> bool {
        let image = self.0.with_extension("image");
        Self::run("mount", &["-o", "loop", image.to_str().unwrap()], &self.0)
    }

    /// As after a fault of the disk: whoever has a file open keeps it, and nothing can be written.
    fn fail(&self) {
        assert!(Self::run("mount", &["-o", "remount,abort"], &self.0));
    }

    fn mend(&self) {
        let (image, mended) = (
            self.0.with_extension("image"),
            self.0.with_extension("mended"),
        );
        // Whoever has a file of the old one open, as this process, keeps it.
        assert!(Self::run("umount", &["-l"], &self.0));
        std::fs::copy(&image, &mended).unwrap();
        Self::run("e2fsck", &["-p"], &mended);
        std::fs::rename(mended, image).unwrap();
        assert!(self.mount_again());
    }
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        Self::run("umount", &["-l"], &self.0);
    }
}

/// Nobody can tell whether what was being written is there, so the process ends with its reason, and starts on the mended disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_becomes_read_only_is_in_the_last_words() {
    let Some(machine) = Machine::new() else {
        return not_tested("faults of a machine: there is no compiler");
    };
    let mut disk = None;
    let mount = |at: &Path| {
        disk = FaultyDisk::mount(at);
        disk.is_some()
    };
    let Some(mut place) = Place::start(&machine, mount).await else {
        return not_tested(
            "a disk that becomes read-only: loop devices and ext4 are not available here",
        );
    };
    let disk = disk.unwrap();
    place
        .served
        .ask("test-model", &place.key.secret)
        .await
        .unwrap();
    disk.fail();
    let begun = std::time::Instant::now();
    let refused = place.served.ask("test-model", &place.key.secret).await;
    assert!(refused.is_err(), "{refused:?}");
    let ended = place.served.ended();
    let (log, took) = (place.served.log(), begun.elapsed());
    assert!(!ended.success(), "{log}");
    let last = log
        .lines()
        .find(|line| line.contains("alert=\"ledger_stopped\""));
    let said = last.is_some_and(|line| line.contains("has become read-only"));
    assert!(said && log.contains("mount it again for writing"), "{log}");
    println!("a read-only disk: told after {} ms", took.as_millis());
    assert!(!all_rows() || took < Duration::from_secs(2), "{took:?}");
    disk.mend();
    let environment = [&machine.environment()[..], &[UPSTREAM_KEY]].concat();
    let arguments = ["--ledger", "disk/farebox.db"];
    let served = Served::start_with(place.folder.path(), &arguments, &environment);
    served.ask("test-model", &place.key.secret).await.unwrap();
}
