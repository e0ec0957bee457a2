//! Failing storage: a full disk that recovers by itself, and I/O errors after which nothing false was confirmed.
//!
//! The disk is a small tmpfs; strace injects single errors, including a full disk, into the real binary. If mounting or tracing is
//! not permitted, the test says so and proves nothing.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use farebox_ledger::Ledger;
use farebox_protocol::Family;
use futures_util::future::join_all;

use super::full_disk::Shell;
use crate::process::bad_days::{over, told};
use crate::support::checker::{Outside, Payment, judge, reading};
use crate::support::load::{
    self, Dice, Load, Mark, UPSTREAM_KEY, create, ends_properly, honest, marked, place, usd,
};
use crate::support::process::{Served, client, farebox};
use crate::support::skip::{installed, skip};
use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{Answer, TestKey, path, sized};

/// The time limit for anything that happens by itself.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const PROVIDED: [(&str, &str); 1] = [UPSTREAM_KEY];

/// A small separate file system, removed when this is dropped.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    /// `None` if mounting is not permitted.
    pub(crate) fn mount(at: &Path, mib: u64) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(at)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(at.to_owned()))
    }

    /// Fills all free space with a file of this name.
    pub(crate) fn fill(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[1; 4_096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(crate) async fn post(
    base: &str,
    key: &TestKey,
    family: Family,
    stream: bool,
    number: u64,
) -> reqwest::Response {
    let body = marked(
        family,
        "test-model",
        stream,
        Mark {
            number,
            pieces: 10,
            pace: 0,
        },
    );
    client()
        .post(format!("{base}{}", path(family)))
        .bearer_auth(&key.secret)
        .json(&body)
        .send()
        .await
        .unwrap()
}

/// Requests whole answers until one has this status.
pub(crate) async fn asked_until(base: &str, key: &TestKey, status: u16) -> Answer {
    let begun = Instant::now();
    for number in 1_000.. {
        let answer =
            Answer::read(post(base, key, Family::ALL[number % 3], false, number as u64).await)
                .await;
        if answer.status == status {
            return answer;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "waited in vain for {status}: {answer:?}"
        );
        assert!([200, 503].contains(&answer.status), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("the loop returns or fails");
}

/// A gateway on a small disk, with streams that wait for the gate.
struct Filling {
    served: Served,
    disk: SmallDisk,
    folder: tempfile::TempDir,
    gate: Gate,
    upstream: ScriptedUpstream,
    ledger: PathBuf,
    key: TestKey,
    streams: Vec<reqwest::Response>,
}

impl Filling {
    /// `None` if mounting is not permitted.
    async fn start(streams: usize) -> Option<Self> {
        let gate = Gate::new();
        let held_back = gate.clone();
        let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
            let (_, speech) = load::speech(seen);
            if seen.json()["stream"] == true {
                speech.stream().gate_after(7, &held_back)
            } else {
                speech.whole()
            }
        }))
        .await;
        let (folder, _) = place(&upstream);
        let disk = SmallDisk::mount(&folder.path().join("disk"), 100)?;
        let ledger = disk.0.join("farebox.db");
        let first = create(&ledger);
        let key = load::key(&first, "100").await;
        first.close();
        drop(first);
        let served = serve_on_disk(folder.path());
        let served = served.watched(&ledger.display().to_string());
        let post = |number: usize| {
            let family = Family::ALL[number % 3];
            post(&served.base, &key, family, true, number as u64)
        };
        let streams = join_all((0..streams).map(post)).await;
        assert!(streams.iter().all(|answer| answer.status() == 200));
        Some(Self {
            served,
            disk,
            folder,
            gate,
            upstream,
            ledger,
            key,
            streams,
        })
    }

    /// Lets the streams end. Returns when their customers have all of them.
    async fn end_streams(&mut self) {
        self.gate.open();
        for (number, answer) in self.streams.drain(..).enumerate() {
            let text = answer.text().await.unwrap();
            assert!(
                ends_properly(Family::ALL[number % 3], &text),
                "{text}\n{}",
                self.served.log()
            );
        }
    }

    /// Starts the gateway once more and stops it, after which nothing is due.
    fn starts_again(&self) {
        let mut served = serve_on_disk(self.folder.path());
        served.signal("TERM");
        assert!(served.ended().success(), "{}", served.log());
        assert!(
            served.log().contains("every request is settled"),
            "{}",
            served.log()
        );
        assert!(!self.ledger.with_extension("db.unsettled").exists());
    }

    /// All that was made is booked, once.
    async fn is_booked(&self) {
        let totals = reading(&self.ledger).totals().await.unwrap();
        let made: i64 = self.upstream.requests().iter().map(load::true_cost).sum();
        assert_eq!(
            (totals.held, totals.spent + totals.loss),
            (0, i128::from(made)),
            "{}",
            self.served.log()
        );
        assert_eq!(
            reading(&self.ledger).verify().await.unwrap().faults,
            Vec::<String>::new()
        );
    }
}

fn serve_on_disk(folder: &Path) -> Served {
    Served::start_with(folder, &["--ledger", "disk/farebox.db"], &PROVIDED)
}

const NOT_MOUNTED: &str = "a full disk: mounting a tmpfs is not permitted here";

/// 24 streams end on a disk that stays full, through the stop and the next start, too: their room was reserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_end_on_a_full_disk_are_charged_in_full_after_a_stop() {
    let Some(mut filling) = Filling::start(24).await else {
        return skip(NOT_MOUNTED);
    };
    filling.disk.fill("filling");
    asked_until(&filling.served.base, &filling.key, 503).await;
    filling.end_streams().await;
    filling.served.signal("TERM");
    assert!(filling.served.ended().success(), "{}", filling.served.log());
    filling.starts_again();
    filling.is_booked().await;
}

/// 24 streams end while another program keeps the ledger from being written, through the stop, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_end_while_nothing_can_be_written_are_charged_in_full_after_a_stop() {
    let Some(mut filling) = Filling::start(24).await else {
        return skip(NOT_MOUNTED);
    };
    if !installed(
        "sqlite3",
        "a ledger that another program keeps from being written",
    ) {
        return;
    }
    let shell = Shell::open(&filling.ledger, ".timeout 30000\nBEGIN IMMEDIATE;");
    asked_until(&filling.served.base, &filling.key, 503).await;
    filling.end_streams().await;
    told(&filling.served, "unresolved", "").await;
    filling.served.signal("TERM");
    assert!(filling.served.ended().success(), "{}", filling.served.log());
    let log = filling.served.log();
    assert!(log.contains("bills that wait in"), "{log}");
    assert!(!log.contains("every request is settled"), "{log}");
    drop(shell);
    let run = |arguments: &[&str]| {
        let output = farebox(filling.folder.path(), &["--ledger", "disk/farebox.db"])
            .args(arguments)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (well, text) = run(&["ledger", "verify"]);
    assert!(
        well && text.contains("db.unsettled for the next start"),
        "{text}"
    );
    let (well, text) = run(&["ledger", "backup", "backup.db"]);
    assert!(well && text.contains("not in the backup"), "{text}");
    let (well, text) = run(&["ledger", "copy", "--to", "postgres://a@127.0.0.1:1/b"]);
    assert!(!well && text.contains("nothing was copied"), "{text}");
    filling.starts_again();
    filling.is_booked().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_selling_and_everything_settles_when_there_is_space_again() {
    let Some(mut filling) = Filling::start(6).await else {
        return skip(NOT_MOUNTED);
    };
    let full = filling.disk.fill("filling");
    let Filling {
        upstream,
        key,
        served,
        ..
    } = &filling;
    let refused = asked_until(&served.base, key, 503).await;
    assert!(
        refused
            .text
            .contains("billing is unavailable at the moment"),
        "{}",
        refused.text
    );
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let dispatched = upstream.requests().len();
    assert_eq!(
        post(&served.base, key, Family::Chat, false, 1)
            .await
            .status(),
        503
    );
    assert_eq!(
        upstream.requests().len(),
        dispatched,
        "nothing is bought that cannot be booked"
    );
    told(served, "disk_full", "").await;
    filling.end_streams().await;
    let Filling {
        upstream,
        ledger,
        key,
        served,
        ..
    } = &filling;
    // Room in the log may come back by itself, when it has been copied; the first entry is the key's credit.
    let totals = reading(ledger).totals().await.unwrap();
    assert_eq!(
        totals.holds + totals.entries - 1,
        upstream.requests().len() as u64,
        "what could not be booked is kept"
    );

    fs::remove_file(full).unwrap();
    let begun = Instant::now();
    while !reading(ledger)
        .open_holds(None, 1)
        .await
        .unwrap()
        .is_empty()
    {
        assert!(
            begun.elapsed() < PATIENCE,
            "holds stay open:\n{}",
            served.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    asked_until(&served.base, key, 200).await;
    over(served, "disk_full", "").await;
    served.signal("TERM");
    assert!(filling.served.ended().success(), "{}", filling.served.log());
    filling.is_booked().await;
}

/// What is injected, by turns: system calls, and the error that one of them gives.
const INJECTED: [(&str, &str); 3] = [
    ("fsync,fdatasync", "EIO"),
    ("pwrite64", "EIO"),
    ("pwrite64", "ENOSPC"),
];

/// A command of the gateway with the Nth of these system calls failing in each of its threads.
fn failing(folder: &Path, (call, error): (&str, &str), nth: u64, arguments: &[&str]) -> Command {
    let plain = farebox(folder, &[]);
    let mut command = Command::new("strace");
    command
        .env_clear()
        .current_dir(folder)
        .args([
            "-D",
            "-f",
            "-q",
            "--seccomp-bpf",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={call}"),
        ])
        .args(["-e", &format!("inject={call}:error={error}:when={nth}")])
        .arg(plain.get_program())
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// Whether a program may be traced here.
fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    traced.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_io_error_ends_the_gateway_a_full_disk_does_not_and_nothing_acknowledged_is_lost() {
    if !can_trace() {
        return skip("I/O errors: strace is missing or not permitted here");
    }
    let upstream = ScriptedUpstream::start(honest()).await;
    let (folder, ledger) = place(&upstream);
    let first = create(&ledger);
    let keys = [
        load::key(&first, "900").await,
        load::key(&first, "900").await,
    ];
    first.close();
    let (numbers, mut outside, mut dice) = (
        Arc::new(AtomicU64::new(1)),
        Outside::default(),
        Dice::new(7),
    );
    let (mut at_work, mut slowest) = (0, Duration::ZERO);
    for round in 0..sized(6, 240) {
        let fault = INJECTED[(round % 3) as usize];
        let nth = 2 + dice.below(if round % 3 == 0 { 10 } else { 200 });
        let mut command = failing(folder.path(), fault, nth, &["serve"]);
        match Served::start_or_end(command.envs(PROVIDED)) {
            Err(status) => assert!(!status.success(), "{fault:?} {nth}"),
            Ok(mut served) => {
                let load = Load::start(&served.base, &keys, 6, &numbers, round);
                if fault.1 == "EIO" {
                    slowest = slowest.max(failed(&mut served));
                    outside.told.extend(load.end().await);
                } else {
                    // It may have been refused or not; either way it goes on, and stops well.
                    tokio::time::sleep(Duration::from_millis(200 + dice.below(300))).await;
                    outside.told.extend(load.end().await);
                    served.signal("TERM");
                    assert!(
                        served.ended().success(),
                        "{fault:?} {nth}: {}",
                        served.log()
                    );
                }
                at_work += 1;
            }
        }
    }
    let mut served = Served::start_with(folder.path(), &[], &PROVIDED);
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let judged = judge(&ledger, &outside, &upstream.requests()).await;
    println!(
        "{} errors, {at_work} of them under load, ended within {slowest:?}; {judged:?}",
        sized(6, 240)
    );
    assert!(at_work > 0 && judged.acknowledged > 0, "{judged:?}");
}

/// Waits for the end of a gateway whose ledger fails; returns how long that took.
fn failed(served: &mut Served) -> Duration {
    let begun = Instant::now();
    while !served.log().contains("no more writes are safe") {
        assert!(
            begun.elapsed() < PATIENCE,
            "no error was met:\n{}",
            served.log()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let failed = Instant::now();
    let status = served.ended();
    assert!(
        !status.success() && served.log().contains("the ledger stopped"),
        "{status:?} {}",
        served.log()
    );
    failed.elapsed()
}

#[tokio::test]
async fn a_payment_that_meets_an_io_error_is_never_confirmed_falsely() {
    if !can_trace() {
        return skip("I/O errors: strace is missing or not permitted here");
    }
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("farebox.db");
    let first = create(&ledger);
    let key = load::key(&first, "1").await.id;
    let (mut outside, mut dice) = (Outside::default(), Dice::new(11));
    let (mut confirmed, mut unknown) = (0, 0);
    for round in 0..sized(34, 560) {
        let fault = INJECTED[(round % 3) as usize];
        let nth = 1 + dice.below(if round % 3 == 0 { 4 } else { 16 });
        let (id, reference) = (key.to_string(), format!("paid-{round}"));
        let arguments = ["keys", "top-up", &id, "0.25", "--reference", &reference];
        let status = failing(folder.path(), fault, nth, &arguments)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        let acknowledged = status.success();
        assert!(
            acknowledged || matches!(status.code(), Some(1 | 75)),
            "{fault:?} {nth}: {status:?}"
        );
        confirmed += u32::from(acknowledged);
        unknown += u32::from(status.code() == Some(75));
        outside.payments.push(Payment {
            key,
            amount: usd("0.25"),
            reference,
            acknowledged,
        });
    }
    first.close();
    judge(&ledger, &outside, &[]).await;
    println!(
        "{} errors: {confirmed} payments confirmed, {unknown} unknown",
        outside.payments.len()
    );
    assert!(unknown > 0, "some errors met a commit");
}

/// `cp backup farebox.db` beneath a running gateway: noticed within a second, and no answer is sold by what is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_copied_over_the_live_file_stops_selling_within_a_second() {
    let upstream = ScriptedUpstream::start(honest()).await;
    let (folder, _) = place(&upstream);
    let path = folder.path().join("farebox.db");
    let first = create(&path);
    let key = load::key(&first, "100").await;
    first.close();
    drop(first);
    let mut served = Served::start_with(folder.path(), &[], &PROVIDED);
    asked_until(&served.base, &key, 200).await;
    let backup = farebox(folder.path(), &["ledger", "backup", "backup.db"]).output();
    assert!(backup.unwrap().status.success());
    for number in 0..20 {
        let answer =
            Answer::read(post(&served.base, &key, Family::Chat, false, number).await).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // In place, as `cp` does it: the file keeps its inode.
    std::fs::write(
        &path,
        std::fs::read(folder.path().join("backup.db")).unwrap(),
    )
    .unwrap();
    let (begun, asked) = (Instant::now(), upstream.requests().len());
    asked_until(&served.base, &key, 503).await;
    let sold = upstream.requests().len() - asked;
    println!(
        "| live copy over the file | stops {:.2} s after it |",
        begun.elapsed().as_secs_f64()
    );
    assert_eq!(sold, 0, "no answer is sold by a ledger that is gone");
    let full = sized(0, 1) == 1;
    assert!(begun.elapsed() < Duration::from_secs(1) || !full);
    // The gateway has ended, or says at each request that it cannot sell.
    let second = farebox(folder.path(), &["keys", "list"]).output().unwrap();
    assert!(
        !second.status.success(),
        "commands do not take the log of another file either: {}",
        String::from_utf8_lossy(&second.stdout)
    );
    served.signal("TERM");
    served.ended();
    assert!(served.log().contains("written over"), "{}", served.log());
}
