//! The ledger's identity: files that are moved, deleted, restored, linked or planted while the real programs run.
//!
//! No payment is confirmed in a file that is not the ledger, nothing is sold from one, and no planted file with a name that the
//! programs use is followed or overwritten.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::payment;
use crate::support::process::{Served, client, farebox, json};
use crate::support::skip::{installed, skip};

/// How long to wait until the gateway notices. It looks every half second, and the machine may be busy.
const NOTICED: Duration = Duration::from_secs(60);
const FILES: [&str; 3] = ["farebox.db", "farebox.db-wal", "farebox.db-shm"];

/// The shipped files and a ledger with a key of 100 USD: its id and secret.
fn place() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (id, secret) = furnish(folder.path(), "first");
    (folder, id, secret)
}

fn furnish(folder: &Path, reference: &str) -> (String, String) {
    for name in ["catalog.toml", "routes.toml"] {
        fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(name),
            folder.join(name),
        )
        .unwrap();
    }
    let made = json(
        folder,
        &[
            "keys",
            "create",
            "--new-ledger",
            "--label",
            "t",
            "--balance",
            "100",
            "--reference",
            reference,
        ],
    );
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// Exit code and all output.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    said(&mut farebox(folder, arguments))
}

fn said(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(text).unwrap(),
    )
}

fn top_up(folder: &Path, id: &str, reference: &str) -> (i32, String) {
    run(
        folder,
        &["keys", "top-up", id, "1", "--reference", reference],
    )
}

/// How often each reference occurs in the ledger of this folder.
fn booked(folder: &Path, reference: &str) -> usize {
    let entries = json(folder, &["ledger", "entries"]);
    entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["reference"] == reference)
        .count()
}

/// Moves the ledger away, with its log and shared memory; which of them there are is SQLite's business.
fn move_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in FILES {
        let _ = fs::rename(from.join(name), to.join(name));
    }
}

/// Moves all of it back, the ledger last, as the manual says: a command that finds it without its log begins another log.
fn put_back(from: &Path, to: &Path) {
    for name in FILES.iter().rev() {
        let _ = fs::rename(from.join(name), to.join(name));
    }
}

async fn readiness(served: &Served) -> (u16, String) {
    let answer = client()
        .get(format!("{}/readyz", served.admin))
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Waits until `/readyz` answers with this status; what it says then.
async fn until(served: &Served, status: u16) -> String {
    let begun = Instant::now();
    loop {
        let (found, text) = readiness(served).await;
        if found == status {
            return text;
        }
        assert!(
            begun.elapsed() < NOTICED,
            "still {found} {text}:\n{}",
            served.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn status(served: &Served) -> Value {
    client()
        .get(format!("{}/status", served.admin))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_ledger_that_is_moved_stops_the_sale_until_it_is_back() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(status(&served).await["ledger"]["displaced"], Value::Null);
    move_all(folder, &away);
    let refused = served.ask("sim-chat", &secret).await.unwrap_err();
    assert!(
        refused.starts_with("503") && refused.contains("ledger_unavailable"),
        "{refused}"
    );
    let why = until(&served, 503).await;
    assert!(why.contains("farebox.db was moved or deleted"), "{why}");
    let shown = status(&served).await;
    assert!(
        shown["ledger"]["displaced"]
            .as_str()
            .unwrap()
            .contains("moved or deleted"),
        "{shown}"
    );
    assert_eq!(
        (&shown["ledger"]["writable"], &shown["ready"]),
        (&Value::Bool(false), &Value::Bool(false))
    );
    let (code, text) = top_up(folder, &id, "during");
    assert!(
        code == 1 && text.contains("there is no ledger at"),
        "{text}"
    );
    assert!(
        !folder.join("farebox.db").exists(),
        "nobody makes another one"
    );
    put_back(&away, folder);
    until(&served, 200).await;
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "after").0, 0);
    assert_eq!((booked(folder, "during"), booked(folder, "after")), (0, 1));
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

#[tokio::test]
async fn a_restored_copy_is_opened_and_recovered_under_the_gateway() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let mut served = Served::start(folder, &[]);
    assert_eq!(run(folder, &["ledger", "backup", "copy.db"]).0, 0);
    assert_eq!(top_up(folder, &id, "forgotten").0, 0);
    move_all(folder, &away);
    until(&served, 503).await;
    fs::copy(folder.join("copy.db"), folder.join("farebox.db")).unwrap();
    until(&served, 200).await;
    served.wait_for_log("recovered; selling resumes");
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "later").0, 0);
    assert_eq!(
        (booked(folder, "forgotten"), booked(folder, "later")),
        (0, 1),
        "all of it is in the file at the path"
    );
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
    assert_eq!(
        booked(&away, "forgotten"),
        1,
        "the file that was moved away is as it was"
    );
    assert_eq!(booked(&away, "later"), 0);
}

#[tokio::test]
async fn another_ledger_in_its_place_is_not_sold_from() {
    let (folder, id, secret) = place();
    let (folder, away) = (folder.path(), folder.path().join("away"));
    let other = tempfile::tempdir().unwrap();
    let (_, other_secret) = furnish(other.path(), "other");
    let served = Served::start(folder, &[]);
    move_all(folder, &away);
    fs::copy(other.path().join("farebox.db"), folder.join("farebox.db")).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let why = until(&served, 503).await;
    assert!(why.contains("another ledger is in its place"), "{why}");
    for secret in [&secret, &other_secret] {
        assert!(served.ask("sim-chat", secret).await.is_err());
    }
    move_all(folder, &folder.join("other"));
    put_back(&away, folder);
    until(&served, 200).await;
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "after").0, 0);
}

#[tokio::test]
async fn a_deleted_log_ends_the_gateway_and_loses_nothing() {
    let (folder, id, secret) = place();
    let folder = folder.path();
    let mut served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    // Half a second after its own commits the gateway copies the log; the payment comes later and is in the log alone.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(top_up(folder, &id, "before").0, 0);
    fs::remove_file(folder.join("farebox.db-wal")).unwrap();
    let (code, text) = top_up(folder, &id, "into-nothing");
    assert!(
        code == 1 && text.contains("farebox.db-wal was moved or deleted"),
        "{text}"
    );
    let refused = served.ask("sim-chat", &secret).await.unwrap_err();
    assert!(refused.starts_with("503"), "{refused}");
    assert_eq!(served.ended().code(), Some(1), "{}", served.log());
    assert!(
        served.log().contains("start the gateway again"),
        "{}",
        served.log()
    );
    let served = Served::start(folder, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
    assert_eq!(top_up(folder, &id, "into-nothing").0, 0);
    assert_eq!(
        (booked(folder, "before"), booked(folder, "into-nothing")),
        (1, 1)
    );
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

/// Payments run while the files are moved away and back, and while the gateway is killed; none that was confirmed is missing.
#[tokio::test]
async fn no_confirmed_payment_is_in_a_file_that_is_not_the_ledger() {
    let (folder, id, _) = place();
    let rounds: u64 = if std::env::var_os("FAREBOX_FULL").is_some() {
        60
    } else {
        8
    };
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    for round in 0..rounds {
        let (path, away, id) = (
            folder.path().to_owned(),
            folder.path().join(format!("away-{round}")),
            id.clone(),
        );
        let mut served = Served::start(&path, &[]);
        let payer = {
            let (path, id) = (path.clone(), id.clone());
            std::thread::spawn(move || {
                let pay = |number| {
                    let reference = format!("r{round}-{number}");
                    let begun = Instant::now();
                    let (code, text) = top_up(&path, &id, &reference);
                    assert!([0, 1, 75].contains(&code), "{code} {text}");
                    (reference, code, begun, Instant::now())
                };
                (0..12).map(pay).collect::<Vec<_>>()
            })
        };
        let random = (seed ^ (round * 7_919)).wrapping_mul(6_364_136_223_846_793_005) >> 33;
        std::thread::sleep(Duration::from_millis(random % 150));
        let kind = round % 4;
        // A restored copy in every second round, the same files back in the others; the gateway is killed in half of each.
        if kind < 2 {
            assert_eq!(
                run(&path, &["ledger", "backup", &format!("copy-{round}.db")]).0,
                0
            );
        }
        let moved = Instant::now();
        move_all(&path, &away);
        if kind % 2 == 0 {
            served.kill();
        }
        std::thread::sleep(Duration::from_millis(random % 40));
        if kind < 2 {
            fs::copy(path.join(format!("copy-{round}.db")), path.join("new.db")).unwrap();
            fs::rename(path.join("new.db"), path.join("farebox.db")).unwrap();
        } else {
            put_back(&away, &path);
        }
        let back = Instant::now();
        let paid = payer.join().unwrap();
        drop(served);
        let places = if kind < 2 {
            vec![path.clone(), away.clone()]
        } else {
            vec![path.clone()]
        };
        for (reference, code, begun, ended) in paid {
            let found: Vec<usize> = places
                .iter()
                .map(|place| booked(place, &reference))
                .collect();
            let told =
                format!("seed {seed}, round {round}, {reference}: exit {code}, found {found:?}");
            assert!(found.iter().all(|count| *count <= 1), "{told}");
            if code != 0 {
                continue;
            }
            assert!(found.contains(&1), "confirmed and nowhere: {told}");
            if begun > back {
                assert_eq!(
                    found[0], 1,
                    "confirmed after the restore, in the file that was moved away: {told}"
                );
            } else if ended < moved && kind < 2 {
                assert_eq!(found[1], 1, "{told}");
            }
        }
        assert_eq!(run(&path, &["ledger", "verify"]).0, 0);
    }
}

#[tokio::test]
async fn a_second_gateway_is_refused_by_whatever_name_it_comes() {
    let (folder, id, secret) = place();
    let folder = folder.path();
    let served = Served::start(folder, &[]);
    let links = tempfile::tempdir().unwrap();
    let (file, directory) = (links.path().join("link.db"), links.path().join("folder"));
    symlink(folder.join("farebox.db"), &file).unwrap();
    symlink(folder, &directory).unwrap();
    for name in [file.clone(), directory.join("farebox.db")] {
        let name = name.to_str().unwrap();
        let mut second = farebox(
            folder,
            &[
                "serve",
                "--ledger",
                name,
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
        );
        let (code, text) = said(&mut second);
        assert!(code == 1 && text.contains("is in use by process"), "{text}");
        assert_eq!(
            run(
                folder,
                &[
                    "--ledger",
                    name,
                    "keys",
                    "top-up",
                    &id,
                    "1",
                    "--reference",
                    name
                ]
            )
            .0,
            0,
            "a command may"
        );
        assert_eq!(booked(folder, name), 1);
    }
    assert!(
        !links.path().join("link.db-wal").exists() && !links.path().join("link.db.lock").exists()
    );
    served.ask("sim-chat", &secret).await.unwrap();
    // A deleted lock is taken again, so a second gateway is still refused.
    fs::remove_file(folder.join("farebox.db.lock")).unwrap();
    let begun = Instant::now();
    // Whoever has the lock writes into its file who it is.
    while fs::read(folder.join("farebox.db.lock"))
        .unwrap_or_default()
        .is_empty()
    {
        assert!(begun.elapsed() < NOTICED);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        run(
            folder,
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0"
            ]
        )
        .1
        .contains("is in use by")
    );
    drop(served);
    fs::hard_link(folder.join("farebox.db"), folder.join("twin.db")).unwrap();
    for arguments in [
        &["serve", "--ledger", "twin.db"][..],
        &["serve"],
        &["keys", "top-up", &id, "1", "--reference", "twin"],
    ] {
        let (code, text) = run(folder, arguments);
        assert!(code == 1 && text.contains("2 names (hard links)"), "{text}");
    }
    fs::remove_file(folder.join("twin.db")).unwrap();
    // A linked folder is an ordinary place for a ledger.
    let served = Served::start(&directory, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
}

/// A container that gets the file alone would write a log of its own beside it: money paid here would not be there, and the same
/// money could be spent in both.
#[test]
fn a_ledger_that_is_mounted_by_itself_is_refused_and_one_whose_folder_is_mounted_is_not() {
    if !installed("unshare", "a ledger that is mounted by itself") {
        return;
    }
    let (folder, id, _) = place();
    let (folder, other) = (folder.path(), folder.path().join("other"));
    fs::create_dir(&other).unwrap();
    let program = env!("CARGO_BIN_EXE_farebox");
    // The mount is in a name space of its own, and gone with it.
    let mounted = |what: &str, at: &str, command: &str| {
        let script =
            format!("mount --bind {what} {at} || exit 99; umask 077; exec {program} {command}");
        said(
            Command::new("unshare")
                .args(["--mount", "--propagation", "private", "sh", "-c", &script])
                .current_dir(folder),
        )
    };
    fs::write(other.join("farebox.db"), []).unwrap();
    let pay = format!("keys top-up {id} 1 --ledger other/farebox.db --reference");
    let (code, text) = mounted("farebox.db", "other/farebox.db", &format!("{pay} alone"));
    if code == 99 || code == -1 || text.contains("unshare failed") {
        return skip("a ledger that is mounted by itself: mounting is not permitted");
    }
    assert!(code == 1 && text.contains("is mounted by itself"), "{text}");
    assert_eq!(
        (
            booked(folder, "alone"),
            fs::read_dir(&other).unwrap().count()
        ),
        (0, 1),
        "nothing was made beside it"
    );
    let (code, text) = mounted(
        "farebox.db",
        "other/farebox.db",
        "serve --ledger other/farebox.db --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0",
    );
    assert!(code == 1 && text.contains("is mounted by itself"), "{text}");
    let (code, text) = mounted(".", "other", &format!("{pay} folder"));
    assert_eq!((code, booked(folder, "folder")), (0, 1), "{text}");
}

/// An empty log reads as a file without anchors, and anchors written into it would overwrite commits.
#[test]
fn neither_anchors_nor_backups_are_written_into_the_ledgers_own_files() {
    let (folder, ..) = place();
    let folder = folder.path();
    fs::remove_file(folder.join("farebox.db.lock")).ok();
    for name in [
        "farebox.db",
        "farebox.db-wal",
        "./farebox.db-shm",
        "farebox.db-journal",
        "farebox.db.lock",
    ] {
        let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        let (code, text) = run(
            folder,
            &[&["serve", "--anchors", name][..], &listen].concat(),
        );
        assert!(
            code == 1 && text.contains("this file is the ledger's own"),
            "{name}: {text}"
        );
        let (code, text) = run(folder, &["ledger", "backup", name]);
        assert!(
            code == 1 && (text.contains("uses this name") || text.contains("already exists")),
            "{name}: {text}"
        );
    }
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

#[test]
fn only_a_command_that_says_so_makes_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for arguments in [
        &["keys", "create", "--label", "t"][..],
        &[
            "keys",
            "create",
            "--label",
            "t",
            "--balance",
            "1",
            "--reference",
            "r",
        ],
        &["keys", "list"],
        &["keys", "show", "k_0000000000"],
        &["keys", "top-up", "k_0000000000", "1", "--reference", "r"],
        &[
            "keys",
            "adjust",
            "k_0000000000",
            "+1",
            "--reason",
            "x",
            "--reference",
            "r",
        ],
        &["keys", "block", "k_0000000000"],
        &["keys", "rotate", "k_0000000000"],
        &["keys", "link", "k_0000000000"],
        &["ledger", "entries"],
        &["ledger", "verify"],
        &["ledger", "backup", "copy.db"],
    ] {
        let (code, text) = run(folder, arguments);
        assert!(
            code == 1 && text.contains("there is no ledger at ") && text.contains("--new-ledger"),
            "{arguments:?}: {text}"
        );
        assert!(
            text.contains(
                folder
                    .canonicalize()
                    .unwrap()
                    .join("farebox.db")
                    .to_str()
                    .unwrap()
            ),
            "{text}"
        );
        assert_eq!(folder.read_dir().unwrap().count(), 0, "{arguments:?}");
    }
    assert_eq!(
        run(
            folder,
            &[
                "--ledger",
                "no/such/folder.db",
                "keys",
                "create",
                "--new-ledger",
                "--label",
                "t"
            ]
        )
        .0,
        1
    );
    assert_eq!(
        run(folder, &["keys", "create", "--new-ledger", "--label", "t"]).0,
        0
    );
    assert_eq!(run(folder, &["keys", "create", "--label", "t"]).0, 0);
}

/// What is in a folder that others can write to stays as it is, whatever name it has.
#[test]
fn nothing_that_was_planted_is_followed_or_written_over() {
    let (folder, _, _) = place();
    let folder = folder.path();
    let precious = folder.join("precious");
    let untouched = || {
        let found = precious.metadata().unwrap();
        assert_eq!(
            (fs::read_to_string(&precious).unwrap(), found.mode() & 0o777),
            ("precious, no end of line".to_owned(), 0o640)
        );
    };
    fs::write(&precious, "precious, no end of line").unwrap();
    fs::set_permissions(&precious, PermissionsExt::from_mode(0o640)).unwrap();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--anchors",
        "anchors",
    ];
    let plant: [fn(&Path, &Path); 6] = [
        |at, precious| symlink(precious, at).unwrap(),
        |at, _| symlink("nowhere", at).unwrap(),
        |at, precious| fs::hard_link(precious, at).unwrap(),
        |at, _| assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
        |at, _| drop(std::os::unix::net::UnixListener::bind(at).unwrap()),
        |at, precious| assert!(fs::copy(precious, at).unwrap() > 0),
    ];
    for (number, plant) in plant.iter().enumerate() {
        for name in ["farebox.db.lock", "anchors"] {
            let at = folder.join(name);
            let _ = fs::remove_file(&at);
            plant(&at, &precious);
            let before = at.symlink_metadata().unwrap();
            let (code, text) = run(folder, &serve);
            assert!(code == 1 && text.contains(name), "{name} {number}: {text}");
            let after = at.symlink_metadata().unwrap();
            assert_eq!(
                (before.ino(), before.len(), before.mode()),
                (after.ino(), after.len(), after.mode()),
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
        }
        for name in ["copy.db", "copy.db.part", "copy.db-journal"] {
            let at = folder.join(name);
            plant(&at, &precious);
            let before = at.symlink_metadata().unwrap();
            let (code, text) = run(folder, &["ledger", "backup", "copy.db"]);
            assert_eq!(
                code,
                i32::from(name == "copy.db"),
                "{name} {number}: {text}"
            );
            let after = at.symlink_metadata().unwrap();
            assert_eq!(
                (before.ino(), before.len()),
                (after.ino(), after.len()),
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
            let _ = fs::remove_file(folder.join("copy.db"));
        }
        for name in ["farebox.db-wal", "farebox.db-shm"] {
            if number == 5 {
                // A plain file of that name is SQLite's to judge.
                continue;
            }
            let at = folder.join(name);
            let _ = fs::remove_file(&at);
            plant(&at, &precious);
            assert_eq!(
                run(folder, &["keys", "create", "--label", "x"]).0,
                1,
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
        }
        assert!(!folder.join("nowhere").exists());
        untouched();
    }
    let left = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains(".part")).count(), 0);
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

#[test]
fn dates_count_their_offset_and_the_past_is_refused() {
    let (folder, id, _) = place();
    let folder = folder.path();
    let set = |date: &str| run(folder, &["keys", "set", &id, "--expires", date]);
    for (typed, understood) in [
        ("2127-01-31", "2127-02-01T00:00:00.000Z"),
        ("2127-01-31T00:30:00+01:00", "2127-01-30T23:30:00.000Z"),
        ("2127-01-31T00:30:00Z", "2127-01-31T00:30:00.000Z"),
    ] {
        let (code, text) = set(typed);
        assert!(
            code == 0 && text.contains(&format!("expires at {understood}")),
            "{typed}: {text}"
        );
        let made = json(
            folder,
            &["keys", "create", "--label", "dated", "--expires", typed],
        );
        assert_eq!(made["expires_at"], understood);
    }
    let (code, text) = set("2020-01-01T00:00:00+02:00");
    assert!(
        code == 1
            && text
                .contains("would have expired at 2019-12-31T22:00:00.000Z, which is in the past"),
        "{text}"
    );
    assert_eq!(
        run(
            folder,
            &[
                "keys",
                "create",
                "--label",
                "old",
                "--expires",
                "2020-01-01"
            ]
        )
        .0,
        1
    );
    assert_eq!(
        set("2127-01-31T00:30:00").0,
        2,
        "an instant without an offset is nobody's"
    );
    let kept = json(folder, &["keys", "show", &id]);
    assert_eq!(kept["expires_at"], "2127-01-31T00:30:00.000Z");
}

#[test]
fn who_acts_is_never_unknown() {
    let (folder, id, _) = place();
    let folder = folder.path();
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned();
    let pay = |number: &str, environment: &[(&str, &str)], more: &[&str]| {
        let arguments = [
            &["keys", "top-up", &id, "1", "--reference", number, "--json"],
            more,
        ]
        .concat();
        let output = farebox(folder, &arguments)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["entry"]["actor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(pay("1", &[], &[]), user);
    assert_eq!(
        pay("2", &[("USER", "somebody"), ("LOGNAME", "somebody")], &[]),
        user,
        "a variable is not a user"
    );
    assert_eq!(pay("3", &[("SUDO_USER", "ada")], &[]), "ada");
    assert_eq!(
        pay("4", &[("SUDO_USER", "ada")], &["--operator", "bob"]),
        "bob"
    );
}

#[test]
fn a_ledger_of_somebody_else_names_the_owner_and_the_way() {
    let (folder, id, _) = place();
    let folder = folder.path();
    if folder.metadata().unwrap().uid() != 0 {
        println!("skipped: only root can act as another user");
        return;
    }
    // The binary where everybody may run it.
    let open = tempfile::tempdir().unwrap();
    fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = open.path().join("farebox");
    // By another process: a file that this one still writes to cannot be run by its children.
    let copied = Command::new("cp")
        .args([Path::new(env!("CARGO_BIN_EXE_farebox")), &binary])
        .status()
        .unwrap();
    assert!(copied.success());
    let as_nobody = |arguments: &[&str]| {
        said(
            Command::new(&binary)
                .env_clear()
                .args(arguments)
                .uid(65_534)
                .gid(65_534)
                .current_dir("/")
                .stdin(Stdio::null()),
        )
    };
    let ledger = folder.join("farebox.db");
    let ledger = ledger.to_str().unwrap();
    for mode in [0o700, 0o755] {
        fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
        for arguments in [
            &["keys", "list"][..],
            &["keys", "top-up", &id, "1", "--reference", "x"],
            &["ledger", "verify"],
        ] {
            let (code, text) = as_nobody(&[&["--ledger", ledger], arguments].concat());
            assert!(
                code == 1 && text.contains("belongs to root") && text.contains("sudo -u root"),
                "{mode:o} {text}"
            );
        }
    }
}

/// The drill of docs/operations.md, by its own commands, under traffic and with a console open all the time.
#[tokio::test]
async fn the_restore_drill_works_as_it_is_written() {
    use farebox_ledger::sqlite::SqliteLedger;
    use farebox_ledger::{Amount, Durability, Ledger, OpenMode};

    let (folder, id, secret) = place();
    let folder = folder.path().canonicalize().unwrap();
    fs::create_dir(folder.join("backups")).unwrap();
    let mut served = Some(Served::start(&folder, &[]));
    // What a console has open: the same store, with the same reopening.
    let console = SqliteLedger::open(
        folder.join("farebox.db"),
        OpenMode::Write,
        Durability::Prompt,
    )
    .unwrap();
    let manual =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md"))
            .unwrap();
    let section = manual.split("## Back up and restore").nth(1).unwrap();
    let blocks: Vec<&str> = section
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let [backup, restore] = blocks[..] else {
        panic!("two blocks of commands: {blocks:?}")
    };
    let shell = |command: &str| {
        let here = command
            .replace("/var/lib/farebox", folder.to_str().unwrap())
            .replace(
                "/var/backups/farebox",
                folder.join("backups").to_str().unwrap(),
            )
            .replace("2026-11-21", "$(date +%F)")
            .replace("-o farebox -g farebox ", "");
        let script = format!("set -euo pipefail; fb() {{ \"$@\"; }}; {here}");
        let mut shell = Command::new("bash");
        let binaries = Path::new(env!("CARGO_BIN_EXE_farebox")).parent().unwrap();
        let path = format!("{}:/usr/bin:/bin", binaries.display());
        shell
            .env_clear()
            .env("PATH", path)
            .current_dir(&folder)
            .args(["-c", &script]);
        let (code, text) = said(&mut shell);
        assert_eq!(code, 0, "{command}: {text}");
    };
    backup.lines().for_each(shell);
    assert_eq!(top_up(&folder, &id, "forgotten").0, 0);
    for line in restore.lines().filter(|line| !line.trim().is_empty()) {
        match line.split('#').next().unwrap().trim() {
            "systemctl stop farebox" => {
                let mut stopping = served.take().unwrap();
                stopping.signal("TERM");
                assert!(stopping.ended().success());
            }
            "systemctl start farebox" => served = Some(Served::start(&folder, &[])),
            _ => shell(line),
        }
    }
    let served = served.expect("the drill ends with a start");
    served.ask("sim-chat", &secret).await.unwrap();
    let amount = Amount::from_usd_str("35").unwrap();
    console
        .credit(payment(
            id.parse().unwrap(),
            amount,
            "from-the-console".to_owned(),
        ))
        .await
        .unwrap();
    assert_eq!(
        (
            booked(&folder, "forgotten"),
            booked(&folder, "from-the-console")
        ),
        (0, 1),
        "it is in the served ledger"
    );
    assert_eq!(run(&folder, &["ledger", "verify"]).0, 0);
}
